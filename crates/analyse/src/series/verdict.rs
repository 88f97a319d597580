//! The verdict on a series, as a word and a sentence.

use super::budget::share;
use super::calendar::Recurrence;
use super::change_points::VALUES_MIN;
use super::episodes::Episode;
use super::rounds::{LEAST_SHOWN, Round, measured_part};
use super::series_figures::SeriesFigures;
use super::types::{
    ChangePoint, ObjectiveResult, Predictability, Predictable, Quantity, Samples, SeriesClass,
    SpreadChange, Trend,
};
use crate::figures::quantity::{
    capital, count, counted, rounded_length, rounded_percent as percent,
};
use rigel_model::{Nanos, Resolution};
use rigel_stats::verdict::BoundVerdict;

/// Throughput is predictable if 95 % of its rounds lie within this fraction of the median, and no
/// change, trend or slowdown is larger.
pub(super) const WITHIN: f64 = 0.10;
/// The same for p99, as the ratio of the upper limit to the lower one: a tail is never as steady as
/// the rate.
const WITHIN_TAIL: f64 = 2.7;
/// Smallest change of level or trend that decides the word, for throughput and for p99, if it is
/// also larger than half the range of the rounds around their level.
const COUNTS: f64 = 0.05;
const COUNTS_TAIL: f64 = 0.10;
/// Maximum number of recurrences that the verdict names.
const NAMED_MAX: usize = 2;

/// Fraction of rounds without figures, or without all that was offered, above which the verdict begins with them.
const WITHOUT_FIGURES: f64 = 0.01;
/// Fraction of failed operations from which on it is shown in percent.
const FAILED_SHARE: f64 = 0.001;

/// Problems so frequent that the verdict begins with them; `counting` are the rounds with a rate.
pub(super) fn troubles(
    rounds: &[Round],
    counting: &[&Round],
    result: &Predictability,
) -> Vec<String> {
    let (counts, noun) = (&result.rounds, result.samples.noun());
    let mut troubles = Vec::new();
    let due = rounds.len() + counts.missing;
    let of = |count: usize| format!("{count} of {}", counted(due as u64, noun));
    if (counts.broken + counts.missing) as f64 > WITHOUT_FIGURES * due as f64 {
        if counts.broken > 0 {
            troubles.push(format!("{} could not be measured.", of(counts.broken)));
        }
        if counts.missing > 0 {
            troubles.push(format!("{} did not take place.", of(counts.missing)));
        }
    }
    if counts.failed_operations > 0 {
        let done: f64 = rounds
            .iter()
            .map(|round| round.done)
            .filter(|done| done.is_finite())
            .sum();
        let failed = counts.failed_operations as f64;
        let failed_share = failed / (done + failed);
        troubles.push(if failed_share >= FAILED_SHARE {
            format!("{} of operations failed.", share(failed_share))
        } else {
            format!("{failed} of {:.0} operations failed.", done + failed)
        });
    }
    let counted_if =
        |is_so: fn(&Round) -> bool| counting.iter().filter(|round| is_so(round)).count();
    let of_measured = counted(counting.len() as u64, &format!("measured {noun}"));
    let idle = counted_if(|round| round.rate.is_some_and(|rate| rate <= 0.0));
    if idle > 0 {
        troubles.push(format!(
            "In {idle} of {of_measured} no operation completed."
        ));
    }
    let overloaded = counted_if(Round::is_overloaded);
    if overloaded as f64 > WITHOUT_FIGURES * counting.len() as f64 {
        troubles.push(format!(
            "In {overloaded} of {of_measured} less was served than was offered."
        ));
    }
    troubles
}

/// The verdict on an analysis; `counting` are the rounds with a rate.
pub(super) fn verdict(
    result: &Predictability,
    counting: &[&Round],
) -> (Predictable, SeriesClass, String) {
    let (Some(rate), Some(first), Some(last)) = (&result.rate, counting.first(), counting.last())
    else {
        let nothing = format!(
            "Nothing was measured: no {} has a rate.",
            result.samples.noun()
        );
        return with_troubles(result, Predictable::Undecided, SeriesClass::TooFew, nothing);
    };
    let seconds = last.finish().since(first.begin);
    let paused = measured_part(counting.iter().copied()).map_or_else(String::new, |part| {
        format!(", of which {part} was measured")
    });
    let took = format!(
        "{} over {}{paused}",
        counted(rate.rounds as u64, result.samples.noun()),
        rounded_length(seconds as f64)
    );
    if rate.rounds < VALUES_MIN {
        let text = format!("Too early to judge: {took}, fewer than the minimum of {VALUES_MIN}.");
        return with_troubles(result, Predictable::Undecided, SeriesClass::TooFew, text);
    }
    let (predictable, word, text) = judged(result, &took);
    with_troubles(result, predictable, word, text)
}

/// The verdict with troubles and what is said of objectives before it.
fn with_troubles(
    result: &Predictability,
    predictable: Predictable,
    word: SeriesClass,
    text: String,
) -> (Predictable, SeriesClass, String) {
    let has_failed = !result.troubles.is_empty() && predictable != Predictable::Undecided;
    (
        if has_failed {
            Predictable::No
        } else {
            predictable
        },
        word_of(result, word),
        said_first(result, text),
    )
}

/// Replaces a good word, or "too few", by "failing" if there are troubles.
fn word_of(result: &Predictability, word: SeriesClass) -> SeriesClass {
    match word {
        SeriesClass::Steady | SeriesClass::Calendar | SeriesClass::TooFew
            if !result.troubles.is_empty() =>
        {
            SeriesClass::Failing
        }
        word => word,
    }
}

/// Prepends the troubles to the text, and why objectives are missed or not known to be met, the missed
/// ones first.
fn said_first(result: &Predictability, text: String) -> String {
    let mut objectives: Vec<&ObjectiveResult> = result.objectives.iter().collect();
    objectives.sort_by_key(|objective| objective.outcome != BoundVerdict::Broken);
    let objectives = objectives.into_iter().map(ObjectiveResult::sentence);
    let sentences = result.troubles.iter().cloned().chain(objectives);
    let sentences = sentences.filter(|sentence| !sentence.is_empty());
    sentences.chain([text]).collect::<Vec<_>>().join(" ")
}

fn judged(result: &Predictability, took: &str) -> (Predictable, SeriesClass, String) {
    let main = result.judged_by;
    let second = if main == Quantity::Rate {
        Quantity::P99Us
    } else {
        Quantity::Rate
    };
    let but = Judged::of(result, second).filter(|but| but.word != SeriesClass::Steady);
    let worst = result
        .episodes
        .iter()
        .max_by(|a, b| a.lost().total_cmp(&b.lost()));
    if let Some(worst) = worst {
        let text = slowed(worst, result.episodes.len() - 1, result.resolution);
        return (
            Predictable::No,
            SeriesClass::Slowed,
            text + &repeats(result, main),
        );
    }
    let Some(shape) = Judged::of(result, main) else {
        return (
            Predictable::Undecided,
            SeriesClass::TooFew,
            took.to_string(),
        );
    };
    let of_main = if main == Quantity::Rate {
        ""
    } else {
        "p99 of "
    };
    let within = format!("{of_main}{}", range(result, main));
    let (predictable, word) = (shape.predictable, shape.word);
    let opening = match (predictable, main) {
        (Predictable::No, _) => "Not predictable",
        _ if !result.troubles.is_empty() => match result.samples {
            Samples::Rounds => "Among the measured rounds",
            Samples::Intervals => "Among the measured intervals",
        },
        (Predictable::ByTheCalendar, _) => "Predictable by the calendar",
        (_, Quantity::P99Us) => "Predictable in response time",
        (_, Quantity::Rate) if but.is_some() => "Predictable in throughput",
        _ => "Predictable",
    };
    let text = match (predictable, word) {
        (Predictable::No, SeriesClass::Erratic) => {
            let spread = spread_change(result, main).unwrap_or_default();
            let repeats = repeats(result, main);
            format!("{took} differ without a pattern, {within}.{spread}{repeats}")
        }
        (Predictable::No, _) => {
            format!("{} {took}, {within}.{}", shape.text, repeats(result, main))
        }
        (Predictable::ByTheCalendar, _) => {
            format!("{}; {took}, {within}.", named(result, main))
        }
        _ => {
            let also = match word {
                SeriesClass::Steady => minor(result, main),
                SeriesClass::Calendar => repeats(result, main),
                _ => format!(" But {}", shape.text),
            };
            format!("{took}, {within}.{also}")
        }
    };
    let word = match (word, &but) {
        (SeriesClass::Steady, Some(but)) => but.word,
        (word, _) => word,
    };
    // What is as bad is no contrast.
    let joined = if predictable == Predictable::No {
        "And"
    } else {
        "But"
    };
    let but = but.map_or_else(String::new, |but| {
        // Nothing follows it here.
        let text = but.text.trim_end_matches([':', '.']);
        format!(" {joined} {text}.")
    });
    (predictable, word, format!("{opening}: {text}{but}"))
}

/// Names what repeats by the calendar, the largest first: `every night 02:00 to 03:00, 40 % slower
/// (7 of 7 nights)`.
fn named(result: &Predictability, of: Quantity) -> String {
    let Some(pattern) = result.calendar.iter().find(|pattern| pattern.of == of) else {
        return String::new();
    };
    let all = &pattern.recurrences;
    let named = all.iter().take(NAMED_MAX).map(|one| pattern.sentence(one));
    let more = match all.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    named.collect::<Vec<_>>().join("; ") + &more
}

/// The same as a sentence; empty if nothing repeats.
fn repeats(result: &Predictability, of: Quantity) -> String {
    match named(result, of) {
        nothing if nothing.is_empty() => nothing,
        named => format!(" {}.", capital(&named)),
    }
}

/// The largest change of the spread, as a sentence.
fn spread_change(result: &Predictability, of: Quantity) -> Option<String> {
    let changes = result
        .spread_changes
        .iter()
        .filter(|change| change.of == of);
    let size = |change: &SpreadChange| (change.after / change.before).ln().abs();
    let change = changes.max_by(|a, b| size(a).total_cmp(&size(b)))?;
    Some(format!(
        " 95 % of them differed by up to {} before {}, and by up to {} after it.",
        percent(change.before),
        change.at.shown(result.resolution),
        percent(change.after)
    ))
}

/// Describes the worst slowdown, and the number of others.
fn slowed(worst: &Episode, others: usize, resolution: Resolution) -> String {
    let others = match others {
        0 => String::new(),
        1 => " It slowed down once more.".into(),
        more => format!(" It slowed down {more} more times."),
    };
    let end = worst
        .end
        .map_or("not recovered when the series ended".into(), |end| {
            format!("recovered on {}", end.shown(resolution))
        });
    format!(
        "Not predictable: throughput fell by {}, from {} to {} per second: slow from \
         {}, worst on {}, {end}.{others}",
        percent(worst.lost()),
        count(worst.usual.round()),
        count(worst.worst_rate.round()),
        worst.begin.shown(resolution),
        worst.worst.shown(resolution),
    )
}

/// A quantity's verdict on the scale, and what decided it, as a clause that begins with its name.
struct Judged {
    predictable: Predictable,
    word: SeriesClass,
    text: String,
}

impl Judged {
    /// The shape of a quantity; `None` if it has no figures.
    fn of(result: &Predictability, of: Quantity) -> Option<Self> {
        figures(result, of)?;
        let range = result.ranges.iter().find(|range| range.of == of);
        let (plain, by_calendar) = range.map_or((true, true), |range| {
            let by_calendar = (range.low_by_calendar, range.high_by_calendar);
            (
                is_within(of, (range.low, range.high)),
                is_within(of, by_calendar),
            )
        });
        let pattern = result.calendar.iter().find(|pattern| pattern.of == of);
        let is_large = |recurrence: &Recurrence| exceeds(of, recurrence.extreme_factor);
        let recurs = pattern.is_some_and(|pattern| pattern.recurrences.iter().any(is_large));
        let on_scale = match (plain, by_calendar) {
            (_, false) => Predictable::No,
            (true, true) if !recurs => Predictable::Yes,
            (_, true) => Predictable::ByTheCalendar,
        };
        let with = |word, factor: f64, text| {
            let predictable = if exceeds(of, factor) {
                Predictable::No
            } else {
                on_scale
            };
            Some(Self {
                predictable,
                word,
                text,
            })
        };
        if result.changed_too_often.contains(&of) && on_scale == Predictable::No {
            let text = format!("{} changed too often to tell the changes apart:", of.name());
            return with(SeriesClass::Stepped, f64::INFINITY, text);
        }
        let least = smallest(result, of);
        if let Some(change) =
            greatest(result, of).filter(|change| change.factor.ln().abs() >= least)
        {
            let text = format!(
                "{}.{}",
                sentence(change, result.resolution),
                more(result, of)
            );
            return with(SeriesClass::Stepped, change.factor, text);
        }
        let trend = result.trends.iter().find(|trend| trend.of == of);
        if let Some(trend) = trend.filter(|trend| trend.factor.ln().abs() >= least) {
            return with(SeriesClass::Drifting, trend.factor, trending(trend));
        }
        if on_scale == Predictable::No {
            let noun = result.samples.noun();
            let text = format!(
                "{} differs from {noun} to {noun} without a pattern, {}.",
                of.name(),
                self::range(result, of)
            );
            return with(SeriesClass::Erratic, 1.0, text);
        }
        if pattern.is_some() {
            let text = format!(
                "{} repeats by the calendar: {}.",
                of.name(),
                named(result, of)
            );
            return with(SeriesClass::Calendar, 1.0, text);
        }
        with(SeriesClass::Steady, 1.0, String::new())
    }
}

/// True if a range of rounds, relative to their median, counts as predictable.
fn is_within(of: Quantity, (low, high): (f64, f64)) -> bool {
    match of {
        Quantity::Rate => (high - 1.0).max(1.0 - low) <= WITHIN,
        Quantity::P99Us => high / low <= WITHIN_TAIL,
    }
}

/// True if a change by this factor goes beyond the range that counts as predictable.
fn exceeds(of: Quantity, factor: f64) -> bool {
    match of {
        Quantity::Rate => (factor - 1.0).abs() > WITHIN,
        Quantity::P99Us => factor.ln().abs() > WITHIN_TAIL.ln() / 2.0,
    }
}

/// The smallest change that decides the word: a stated size, and half the range of the rounds around
/// their level. A change that is smaller than the usual differences is no verdict.
fn smallest(result: &Predictability, of: Quantity) -> f64 {
    let counts = if of == Quantity::Rate {
        COUNTS
    } else {
        COUNTS_TAIL
    };
    let around = result.around.iter().find(|(quantity, _)| *quantity == of);
    around.map_or(counts, |(_, half)| half.max(counts))
}

/// `throughput falls by 2.0 % per day, 13 % in total.`; of a series of less than a day only the total.
fn trending(trend: &Trend) -> String {
    let way = if trend.factor < 1.0 { "falls" } else { "rises" };
    let (a_day, whole) = (
        percent((trend.factor_per_day - 1.0).abs()),
        percent((trend.factor - 1.0).abs()),
    );
    let name = trend.of.name();
    if trend.lasts_a_day() {
        format!("{name} {way} by {a_day} per day, {whole} in total.")
    } else {
        format!("{name} {way} by {whole} in total.")
    }
}

/// Changes and trends that are too small for the verdict, as a sentence.
fn minor(result: &Predictability, of: Quantity) -> String {
    if let Some(change) = greatest(result, of) {
        let sentence = sentence(change, result.resolution);
        return format!(" Within that, {sentence}.{}", more(result, of));
    }
    let trend = result.trends.iter().find(|trend| trend.of == of);
    trend.map_or_else(String::new, |trend| {
        format!(" Within that, {}", trending(trend))
    })
}

fn figures(result: &Predictability, of: Quantity) -> Option<&SeriesFigures> {
    match of {
        Quantity::Rate => result.rate.as_ref(),
        Quantity::P99Us => result.p99_us.as_ref(),
    }
}

/// The range of most rounds: `95 % of them within ±1.2 % of the median`, `95 % of them between 6ms
/// and 7.2ms`; with a large pattern, also the range without it.
fn range(result: &Predictability, of: Quantity) -> String {
    let Some(figures) = figures(result, of) else {
        return String::new();
    };
    let SeriesFigures {
        median, low, high, ..
    } = *figures;
    if of == Quantity::P99Us {
        let time = Nanos::from_micros_f64;
        return format!("95 % of them between {} and {}", time(low), time(high));
    }
    // A median of 0 has no relative range.
    if median <= 0.0 {
        return format!(
            "95 % of them between {} and {} per second, with a median of 0",
            count(low.round()),
            count(high.round())
        );
    }
    let range = result.ranges.iter().find(|range| range.of == of);
    let calendar = result.calendar.iter().any(|pattern| pattern.of == of);
    let without = range
        .filter(|_| calendar)
        .map_or_else(String::new, |range| {
            let within = within_of(range.low_by_calendar, range.high_by_calendar);
            format!(", and {within} it without what repeats")
        });
    let within = within_of(low / median, high / median);
    format!("95 % of them {within} the median{without}")
}

/// `within ±1.2 % of`, or `between 40 % below and 20 % above`: a wide range is seldom the same on both sides.
fn within_of(low: f64, high: f64) -> String {
    let (below, above) = (1.0 - low, high - 1.0);
    let most = below.max(above).max(LEAST_SHOWN);
    if most <= WITHIN {
        return format!("within ±{} of", percent(most));
    }
    let [below, above] = [below, above].map(|share| percent(share.max(LEAST_SHOWN)));
    format!("between {below} below and {above} above")
}

fn greatest(result: &Predictability, of: Quantity) -> Option<&ChangePoint> {
    let of_it = result.changes.iter().filter(|change| change.of == of);
    of_it.max_by(|a, b| a.factor.ln().abs().total_cmp(&b.factor.ln().abs()))
}

fn more(result: &Predictability, of: Quantity) -> String {
    match result
        .changes
        .iter()
        .filter(|change| change.of == of)
        .count()
    {
        0 | 1 => String::new(),
        2 => " It changed once more.".into(),
        count => format!(" It changed {} more times.", count - 1),
    }
}

/// `throughput fell by 30.1 % on 2016-04-23 19:17`.
fn sentence(change: &ChangePoint, resolution: Resolution) -> String {
    /// So much more is no question of percent.
    const TIMES: f64 = 10.0;
    let name = change.of.name();
    let by = percent((change.factor - 1.0).abs());
    let how = match change.factor {
        ..1.0 => format!("fell by {by}"),
        TIMES.. => format!("rose to {} times as much", count(change.factor.round())),
        _ => format!("rose by {by}"),
    };
    let when = match change.until {
        Some(until) => format!(
            "from {} to {}",
            change.at.shown(resolution),
            until.shown(resolution)
        ),
        None => format!("on {}", change.at.shown(resolution)),
    };
    format!("{name} {how} {when}")
}
