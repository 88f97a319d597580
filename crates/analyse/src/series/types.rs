//! The terms of a series of rounds, and the types of its results.
//!
//! `predictability`, `budget` and `verdict` fill them in.

use super::calendar::Recurrence;
use super::episodes::Episode;
use super::fixed_work::CutRounds;
use super::host_shift::HostShift;
use super::series_figures::SeriesFigures;
use crate::figures::quantity::rounded_percent;
use rigel_model::{Moment, Objective, Resolution};
use rigel_stats::mean::Interval;
use rigel_stats::verdict::BoundVerdict;
use serde::{Serialize, Serializer};

/// The terms of a series.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PredictabilityTerms {
    /// The objectives of each round, in the order of [`Round::kept`](crate::Round::kept).
    pub objectives: Vec<Objective>,
    /// The fraction of time for which each objective must be kept, such as 0.99.
    pub share: f64,
    /// Seconds from the start of one round to the start of the next; `None` if unknown.
    pub every_seconds: Option<f64>,
    /// Planned number of rounds; `None` if unknown.
    pub planned: Option<u32>,
    /// True for an open loop: throughput is then the requested rate, so response time is judged.
    pub is_open: bool,
    /// What the values are of, in words.
    pub samples: Samples,
}

/// What the values of a series are of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Samples {
    /// Measurements, with pauses between them.
    #[default]
    Rounds,
    /// Parts of the time, one after the other, as reports of a database are.
    Intervals,
}

impl Samples {
    /// `round`, `interval`.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Rounds => "round",
            Self::Intervals => "interval",
        }
    }
}

/// The analysis of a series of rounds.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Predictability {
    /// The verdict on one scale.
    pub predictable: Predictable,
    /// What was seen, in a word.
    pub word: SeriesClass,
    /// The verdict in a sentence or two.
    pub verdict: String,
    /// Resolution of the moments in the verdict.
    #[serde(skip)]
    pub resolution: Resolution,
    /// What the values are of, in words.
    #[serde(skip)]
    pub samples: Samples,
    /// The judged quantity: response time of an open loop, if known, else throughput.
    pub judged_by: Quantity,
    /// Problems so frequent that no figure of the other rounds makes up for them: rounds without a
    /// figure, failed operations, rounds in which no operation completed. As sentences, with
    /// which the verdict begins.
    pub troubles: Vec<String>,
    /// Rounds by outcome.
    pub rounds: RoundCounts,
    /// Rounds that a time limit cut short; `None` if there were none, or it cannot be known.
    pub cut: Option<CutRounds>,
    /// Figures of the rate, in operations per second; `None` if no round was measured.
    pub rate: Option<SeriesFigures>,
    /// Figures of the median response time, in microseconds.
    pub p50_us: Option<SeriesFigures>,
    /// Figures of the 99th percentile of response time, in microseconds.
    pub p99_us: Option<SeriesFigures>,
    /// The ranges that 95 % of the rounds lie in.
    pub ranges: Vec<RangeOfRounds>,
    /// Half the range of 95 % of the rounds around their level, on the logarithmic scale.
    #[serde(skip)]
    pub around: Vec<(Quantity, f64)>,
    /// Quantities that changed too often to separate the changes. For them no changes, trends,
    /// slowdowns or outliers are reported.
    pub changed_too_often: Vec<Quantity>,
    /// Permanent changes of level, ascending by quantity and time.
    pub changes: Vec<ChangePoint>,
    /// Quantities that rose or fell steadily.
    pub trends: Vec<Trend>,
    /// Changes of the spread of the rounds.
    pub spread_changes: Vec<SpreadChange>,
    /// What repeats every day or every week.
    pub calendar: Vec<CalendarPattern>,
    /// Single rounds that stand out from their neighbours.
    pub outliers: Vec<Outlier>,
    /// Slowdowns that began within the series.
    pub episodes: Vec<Episode>,
    /// Results of the objectives, in their order.
    pub objectives: Vec<ObjectiveResult>,
}

impl Predictability {
    /// Whether all objectives are met; `None` if there are none.
    pub fn outcome(&self) -> Option<BoundVerdict> {
        let verdicts = self.objectives.iter().map(|result| result.outcome);
        BoundVerdict::all_of_some(verdicts)
    }
}

/// The verdict on one scale: whether 95 % of the rounds lie within a stated range of the median, and
/// nothing changed by more than that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Predictable {
    /// They do.
    Yes,
    /// They do after what repeats daily or weekly is taken away.
    ByTheCalendar,
    /// They do not, or rounds failed.
    No,
    /// Fewer than ten rounds were measured.
    Undecided,
}

/// What was seen in a series, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SeriesClass {
    /// Fewer than ten rounds were measured: too early to judge.
    TooFew,
    /// It stays the same.
    Steady,
    /// It repeats a pattern daily or weekly, and is steady otherwise.
    Calendar,
    /// It rises or falls steadily.
    Drifting,
    /// It changed from one level to another.
    Stepped,
    /// It slowed down for a while, or is still slow.
    Slowed,
    /// It varies from round to round without a detected pattern: fewer than 95 % of the rounds lie
    /// within the range that counts as predictable.
    Erratic,
    /// Too many rounds could not be measured, operations failed, or some rounds completed no
    /// operation; the measured rounds show no other pattern.
    Failing,
}

/// Rounds by outcome.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct RoundCounts {
    /// Planned rounds; `None` if unknown.
    pub planned: Option<u32>,
    /// Rounds with a usable rate.
    pub measured: usize,
    /// Rounds that could not be measured, or not to their end.
    pub broken: usize,
    /// Rounds that the user stopped.
    pub stopped: usize,
    /// Skipped rounds: their numbers are missing before the last.
    pub missing: usize,
    /// Planned rounds after the last: still to come, or never started.
    pub ahead: usize,
    /// Failed operations in all rounds.
    pub failed_operations: u64,
}

/// A judged quantity of the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Operations per second.
    Rate,
    /// The 99th percentile of response time, in microseconds.
    P99Us,
}

impl Quantity {
    /// Display name.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Rate => "throughput",
            Quantity::P99Us => "p99",
        }
    }
}

/// A permanent change of a figure between two rounds.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ChangePoint {
    /// The quantity.
    pub of: Quantity,
    /// Start of the first round after the change.
    pub at: Moment,
    /// Number of that round.
    pub round: u32,
    /// Start of the last step, if it changed in several steps the same way; `None` for a change in
    /// one step.
    pub until: Option<Moment>,
    /// Ratio of the value after to the value before.
    pub factor: f64,
    /// 95 % interval of the factor; only for a change in one step.
    pub interval: Option<Interval>,
    /// What changed on the host; `None` if the host is unknown, empty if nothing changed.
    pub host: Option<Vec<HostShift>>,
}

/// A quantity that rose or fell steadily.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Trend {
    /// The quantity.
    pub of: Quantity,
    /// Ratio of the value a day later: 0.98 is 2 % less per day.
    pub factor_per_day: f64,
    /// 95 % interval of `factor_per_day`.
    pub interval: Interval,
    /// Ratio of the value at the end of the series to that at its beginning.
    pub factor: f64,
}

impl Trend {
    /// True if the series lasts for a day at least: of a shorter one nobody knows what a day does.
    pub fn lasts_a_day(&self) -> bool {
        self.factor_per_day.ln().abs() <= self.factor.ln().abs()
    }
}

/// The range that 95 % of the rounds lie in, relative to their median.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RangeOfRounds {
    /// The quantity.
    pub of: Quantity,
    /// Ratio of the lower limit to the median.
    pub low: f64,
    /// Ratio of the upper limit to the median.
    pub high: f64,
    /// The same after what repeats by the calendar is taken away; equal to `low` if nothing does.
    pub low_by_calendar: f64,
    /// The same for the upper limit.
    pub high_by_calendar: f64,
}

/// A change of the spread of the rounds around their level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SpreadChange {
    /// The quantity.
    pub of: Quantity,
    /// Start of the first round after the change.
    pub at: Moment,
    /// Number of that round.
    pub round: u32,
    /// Before the change, 95 % of the rounds lie within this fraction of their level.
    pub before: f64,
    /// After the change.
    pub after: f64,
}

/// What a quantity repeats every day or every week.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CalendarPattern {
    /// The quantity.
    pub of: Quantity,
    /// The times that stand out, the largest difference first.
    pub recurrences: Vec<Recurrence>,
    /// Median of the rounds that began in each hour from Monday to Friday, relative to the level;
    /// `None` if no round began.
    pub working_days: Vec<Option<f64>>,
    /// The same for Saturday and Sunday.
    pub weekends: Vec<Option<f64>>,
}

impl CalendarPattern {
    /// `every night 02:00 to 03:00, 40 % slower (7 of 7 nights)`.
    pub fn sentence(&self, recurrence: &Recurrence) -> String {
        let (less, more) = match self.of {
            Quantity::Rate => ("slower", "faster"),
            Quantity::P99Us => ("lower", "higher"),
        };
        let (factor, extreme) = (recurrence.factor, recurrence.extreme_factor);
        // A pattern that rises and falls within the stretch is described by its maximum.
        let is_flat = extreme.ln().abs() < 1.5 * factor.ln().abs();
        let (upto, factor) = if is_flat {
            ("", factor)
        } else {
            ("up to ", extreme)
        };
        let way = if factor < 1.0 { less } else { more };
        let of = if self.of == Quantity::Rate {
            ""
        } else {
            "p99 "
        };
        format!(
            "{}, {of}{upto}{} {way} ({})",
            recurrence.when(),
            rounded_percent((factor - 1.0).abs()),
            recurrence.occurrences()
        )
    }
}

/// A single round that stands out from its neighbours.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Outlier {
    /// The quantity.
    pub of: Quantity,
    /// Start of the round.
    pub at: Moment,
    /// Number of the round.
    pub round: u32,
    /// The round's value.
    pub value: f64,
    /// Ratio of the value to the median of the five rounds around it.
    pub factor: f64,
}

/// How well an objective was kept.
///
/// A round stands for its interval: the time between rounds or, where there is none, its measured
/// time. A broken round has missed every objective. A stopped round and a skipped one say nothing.
/// But if a round missed the objective and the next ones were skipped, it stands for their time
/// too: a stall longer than a round leaves no other trace.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ObjectiveResult {
    /// The objective.
    pub objective: Objective,
    /// The fraction of time for which it must be kept.
    pub share_asked: f64,
    /// Rounds that kept it.
    pub kept: usize,
    /// Rounds that missed it, broken ones included.
    pub missed: usize,
    /// Broken rounds among the missed ones.
    pub broken: usize,
    /// Rounds that say nothing: stopped, or hidden. Skipped rounds are not counted.
    pub unknown: usize,
    /// Unknown rounds of a closed loop, which sent nothing while all I/O stood still.
    pub hidden: usize,
    /// Fraction of the known time for which it was kept; `None` if nothing is known.
    pub share_kept: Option<f64>,
    /// At least this fraction of all time, at 95 %, where between the rounds nothing was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_least: Option<f64>,
    /// Seconds for which it may be missed in the known time.
    pub budget_seconds: f64,
    /// Seconds for which it was missed.
    pub missed_seconds: f64,
    /// The fraction of the budget that is used; above 1 if it is exceeded. `None` if there is no
    /// budget.
    pub budget_used: Option<f64>,
    /// True if it was kept for the required fraction of time, where between the rounds nothing was
    /// measured certainly so; null in JSON if that is not known.
    #[serde(rename = "met", serialize_with = "as_known")]
    #[schemars(with = "Option<bool>")]
    pub outcome: BoundVerdict,
    /// The longest breach: consecutive rounds that missed it.
    pub longest_breach: Option<Breach>,
    /// All breaches, in order of time.
    pub breaches: Vec<Breach>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn as_known<S: Serializer>(outcome: &BoundVerdict, serializer: S) -> Result<S::Ok, S::Error> {
    let is_met = match outcome {
        BoundVerdict::Kept => Some(true),
        BoundVerdict::Broken => Some(false),
        BoundVerdict::Undecided | BoundVerdict::NotMeasured => None,
    };
    is_met.serialize(serializer)
}

/// Consecutive rounds that missed an objective.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Breach {
    /// Start of its first round.
    pub begin: Moment,
    /// End of its last round; if the next rounds were skipped, the start of the first one that
    /// ran.
    pub end: Moment,
    /// Rounds that missed it.
    pub rounds: usize,
    /// Seconds that these rounds stand for.
    pub seconds: f64,
}
