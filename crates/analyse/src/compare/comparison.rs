//! Two or more sides, each of one run or several: their conditions, the ratio of each figure, and
//! whether it is a real difference.
//!
//! Input: the summaries of the runs' points; the first side is the baseline. Output: conditions that
//! differ, headline figures and load points with their ratio to the baseline and its 95 % interval,
//! and a verdict. Figures are only compared at the same load: the latency at the knee is the one at
//! the depth of the baseline's knee, or at the next greater depth that all runs have; maxima are
//! compared if both are a plateau or of one load, else the rates at the greatest depth that all runs
//! have. Soaks and imported series have their figures over all rounds instead.
//!
//! A figure of several runs has the error of the differences between them. Of one run, only its own
//! error is known: how storage differs from one run to the next is not in it.
//!
//! At 95 %, one in twenty rows differs by chance. Each row is still judged by its own interval,
//! because it is shown to be looked at. The verdict uses the headline figures only, with Holm's
//! method, so that at most one in twenty comparisons of the same thing calls it different, whatever
//! the number of figures and sides. The first figure, the highest rate, has half of that chance. If
//! something stalled, three quarters of all are left to the number of stalls: they are rare, and no
//! other figure shows them.

use super::conditions::{Condition, conditions};
use super::difference::{Change, Judgement, holm, of_runs};
use super::power::{RunsNeeded, runs_needed};
use super::row::Row;
use super::side::{ComparedSide, Side};
use super::standstill::{self, STALLS, STOOD_STILL};
use super::subject::{Scope, Subject};
use crate::figures::latency::{LatencyFigure, ShownIn};
use crate::figures::quantity::{Unit, per_second};
use crate::point::backlog::RateMet;
use crate::point::summary::{ClassSummary, PointSummary};
use crate::search::shape::curve_shape;
use crate::search::sustained;
use rigel_model::{Bytes, Coordinates, Ratio, Step};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{CONFIDENCE, Limits};
use rigel_stats::verdict::BoundVerdict;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// The change of a class at a load that all runs of the side and of the baseline have.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoadChange {
    /// Index of the side; the baseline is 0.
    pub run: usize,
    /// The load, in words.
    pub load: String,
    /// The class of I/O.
    pub class: String,
    /// Operations per second.
    pub iops: Option<Change>,
    /// Median response time.
    pub p50: Option<Change>,
    /// 99th percentile of response time.
    pub p99: Option<Change>,
}

/// The certain differences of a side from the baseline, judged over all headline figures of all
/// sides together.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Verdict {
    /// Index of the side; the baseline is 0.
    pub run: usize,
    /// Number of headline figures with an interval.
    pub judged: usize,
    /// Names of headline figures that are worse.
    pub worse: Vec<String>,
    /// Names of headline figures that are better.
    pub better: Vec<String>,
    /// The lowest offered rate that one serves and the other does not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub served_by_one: Option<ServedByOne>,
    /// The headline figure known least precisely, and the difference that its interval allows, as
    /// a fraction; null in JSON if any is.
    #[schemars(with = "Option<(String, Option<f64>)>")]
    pub widest: Option<(String, f64)>,
    /// With several runs a side, the number of runs that would show a difference.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs_needed: Vec<RunsNeeded>,
}

/// An offered rate that one of two sides certainly serves, and the other certainly does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct ServedByOne {
    /// Operations due per second.
    pub rate_per_s: u64,
    /// True if it is the baseline that serves it.
    pub by_baseline: bool,
}

/// Headline figures that are slower than the limit allows: a rate lower, or a response time higher,
/// by more than `limit`.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Slower {
    /// The limit, as a fraction.
    pub limit: Ratio,
    /// Side and figure of the certain ones.
    pub certain: Vec<(usize, String)>,
    /// Side and figure of the possible ones: the interval reaches beyond the limit.
    pub possible: Vec<(usize, String)>,
}

/// Runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Comparison {
    /// Names of the sides, the baseline first.
    pub names: Vec<String>,
    /// The sides with their runs.
    pub sides: Vec<ComparedSide>,
    /// Start time of each side's first run.
    pub started: Vec<String>,
    /// Indexes of the sides with an incomplete run.
    pub incomplete: Vec<usize>,
    /// The warnings of each side: how often each was raised, by name.
    pub warnings: Vec<BTreeMap<String, usize>>,
    /// The tool of each imported side. It reports fewer conditions and no intervals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub imported: BTreeMap<usize, String>,
    /// Number of rounds or samples of each side of soaks or imported series, in its shortest run.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rounds: BTreeMap<usize, usize>,
    /// Conditions that differ.
    pub conditions: Vec<Condition>,
    /// Figures of whole runs.
    pub figures: Vec<Row>,
    /// Loads that a side shares with the baseline.
    pub points: Vec<LoadChange>,
    /// The verdict on each side but the first.
    pub verdicts: Vec<Verdict>,
    /// The figures that exceed the slowdown limit, if one was given.
    pub slower: Option<Slower>,
}

/// Compares the first of `runs` with each of the others, one run a side. `slower_limit` is the
/// allowed slowdown as a fraction, if the user gave one.
pub fn compare(runs: &[Subject], slower_limit: Option<Ratio>) -> Comparison {
    let sides: Vec<Side> = runs.iter().map(Side::of).collect();
    compare_sides(&sides, slower_limit)
}

/// Compares the first of `sides` with each of the others. `slower_limit` is the allowed slowdown as
/// a fraction, if the user gave one.
pub fn compare_sides(sides: &[Side], slower_limit: Option<Ratio>) -> Comparison {
    let conditions = conditions(sides);
    let mut figures = rows_at_loads(sides);
    figures.extend(standstill::rows(sides));
    figures.extend(rows_over_time(sides));
    for row in &mut figures {
        for (index, change) in row.changes.iter_mut().enumerate() {
            *change = change.filter(|_| !is_of_other_work(&conditions, index + 1, row.scope));
        }
    }
    let rounds = |side: &Side| {
        let of_runs = side.runs.iter().filter_map(|run| run.over_time.rounds());
        of_runs.min()
    };
    let numbered = || sides.iter().enumerate();
    let mut verdicts = verdicts(&figures, sides.len(), slower_limit);
    for verdict in &mut verdicts {
        verdict.served_by_one = served_by_one(sides, verdict.run);
    }
    Comparison {
        names: sides.iter().map(|side| side.name.clone()).collect(),
        sides: sides.iter().map(ComparedSide::of).collect(),
        started: sides
            .iter()
            .map(|side| side.first().header.started.clone())
            .collect(),
        incomplete: numbered()
            .filter(|(_, side)| side.runs.iter().any(|run| !run.whole))
            .map(|(index, _)| index)
            .collect(),
        warnings: sides.iter().map(Side::warnings).collect(),
        imported: numbered()
            .filter_map(|(index, side)| Some((index, side.imported()?)))
            .collect(),
        rounds: numbered()
            .filter_map(|(index, side)| Some((index, rounds(side)?)))
            .collect(),
        points: (1..sides.len())
            .flat_map(|side| load_changes(sides, side, &conditions))
            .collect(),
        conditions,
        verdicts,
        slower: slower_limit.map(|limit| slower(&figures, limit)),
        figures,
    }
}

impl Comparison {
    /// Whether no figure is slower than the limit allows; `None` if no limit was given.
    pub fn outcome(&self) -> Option<BoundVerdict> {
        let slower = self.slower.as_ref()?;
        // Otherwise a build step that cannot judge anything would always pass.
        let is_judged = self.verdicts.iter().all(|verdict| verdict.judged > 0);
        let is_broken = !slower.certain.is_empty();
        let is_kept = is_judged && !is_broken && slower.possible.is_empty();
        Some(BoundVerdict::of(is_kept, is_broken))
    }

    /// True if every side is a single run.
    pub fn is_of_single_runs(&self) -> bool {
        self.sides.iter().all(|side| side.runs.len() == 1)
    }

    /// True if the figures of `scope` in this run are of different work than the baseline's; they
    /// are not compared.
    pub fn is_of_other_work(&self, run: usize, scope: Scope) -> bool {
        is_of_other_work(&self.conditions, run, scope)
    }

    /// True if there is a ratio between this run and the baseline for at least one figure or load.
    pub fn has_common(&self, run: usize) -> bool {
        let at_load = self
            .points
            .iter()
            .any(|point| point.run == run && point.iops.is_some());
        at_load
            || self
                .figures
                .iter()
                .any(|row| row.changes[run - 1].is_some())
    }
}

fn is_of_other_work(conditions: &[Condition], run: usize, scope: Scope) -> bool {
    let decides = |condition: &Condition| {
        condition
            .not_compared
            .is_some_and(|other| other.meets(scope))
    };
    conditions
        .iter()
        .any(|condition| condition.run == run && decides(condition))
}

impl LoadChange {
    /// True if `other` is another class at the same load of the same run.
    pub fn is_beside(&self, other: &LoadChange) -> bool {
        self.run == other.run && self.load == other.load && self.class != other.class
    }
}

// ---- the figures of a run ----

/// A point and the class that a figure is taken from.
type PointClass<'a> = (&'a PointSummary, &'a ClassSummary);

impl Subject<'_> {
    fn of(&self, wanted: impl Fn(&PointSummary) -> bool) -> impl Iterator<Item = PointClass<'_>> {
        let points = self.points.iter().filter(move |point| wanted(point));
        points.filter_map(|point| Some((point, point.classes.first()?)))
    }

    /// Points of small random I/O in a closed loop, which make the curve; in a matrix, those
    /// without large I/O.
    fn small(&self) -> impl Iterator<Item = PointClass<'_>> {
        self.of(|point| depth_alone(point).is_some())
    }

    fn small_at(&self, depth: u32) -> Option<PointClass<'_>> {
        self.small()
            .find(|(point, _)| depth_alone(point) == Some(depth))
    }

    /// The point at an offered rate, if it is served.
    fn served(&self, rate: u64) -> Option<PointClass<'_>> {
        self.of(|point| point.coordinates.rate() == Some(rate))
            .find(|(_, class)| class.met == Some(RateMet::Yes))
    }

    /// The depths of small random I/O, in order.
    pub fn depths(&self) -> Vec<u32> {
        let depths = self.small().filter_map(|(point, _)| depth_alone(point));
        depths.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    fn large(&self) -> impl Iterator<Item = PointClass<'_>> {
        self.of(|point| point.step() == Step::Large || point.coordinates.large_alone().is_some())
    }

    /// The depth from which on more of them do no more; `None` of a run that has only one.
    fn knee(&self) -> Option<u32> {
        if self.depths().len() < 2 {
            return None;
        }
        let knee = curve_shape(self.small(), self.tolerance).knee?;
        let depths = self.small().filter_map(|(point, _)| depth_alone(point));
        depths
            .into_iter()
            .find(|depth| (f64::from(*depth) - knee.load).abs() < 0.5)
    }

    fn term(&self, name: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.name == name)
            .map(|term| term.value.as_str())
    }
}

/// The rate at which the bound is met exactly; where it is not known, the highest that was kept, with
/// the range up to the lowest that was not.
fn sustained_rate(points: &[PointSummary]) -> Option<Estimate> {
    let sustained = sustained::sustained(points);
    if let Some(rate) = sustained.rate {
        return Some(rate);
    }
    let held = sustained.kept_rate? as f64;
    let broken = sustained
        .broken_rate
        .map(|rate| rate as f64)
        .filter(|broken| *broken > held);
    let between = broken.map(|broken| Limits {
        low: held,
        high: Some(broken),
    });
    Some(Estimate::between(held, between))
}

/// The same maximum as the report of the run has; only the highest rate measured, if the run did not
/// reach a plateau.
pub(super) fn max_iops(subject: &Subject) -> Option<Estimate> {
    subject
        .maxima
        .iops
        .or_else(|| iops(greatest(subject.small())?))
}

fn greatest<'a>(found: impl Iterator<Item = PointClass<'a>>) -> Option<PointClass<'a>> {
    found.max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
}

/// True if the maxima of both runs are of like loads: they are at the same one, or over the same ones.
fn has_like_maxima(one: &Subject, other: &Subject, of: &OfMaximum) -> bool {
    let loads = |run: &Subject| -> BTreeSet<Coordinates> {
        of(run).iter().map(|(point, _)| point.coordinates).collect()
    };
    let highest = |run: &Subject| greatest(of(run).into_iter()).map(|(point, _)| point.coordinates);
    highest(one) == highest(other) || loads(one) == loads(other)
}

/// The points over which a maximum is taken.
type OfMaximum<'f> = dyn for<'r> Fn(&'r Subject) -> Vec<PointClass<'r>> + 'f;

/// True if the run's throughput no longer rises at its highest loads.
fn has_plateau(run: &Subject) -> bool {
    let knee = || curve_shape(run.small(), run.tolerance).knee;
    run.maxima.iops.is_some() || knee().is_some_and(|knee| knee.bounded_above)
}

/// A row of maxima, without the changes between maxima of unlike loads.
fn row_of_maxima(
    sides: &[Side],
    mut row: Row,
    is_like: impl Fn(&Subject, &Subject) -> bool,
) -> Row {
    let baseline = sides[0].first();
    for (change, side) in row.changes.iter_mut().zip(&sides[1..]) {
        let mut runs = sides[0].runs.iter().chain(side.runs);
        *change = change.filter(|_| runs.all(|run| is_like(baseline, run)));
    }
    row
}

fn iops((_, class): PointClass) -> Option<Estimate> {
    let is_known = class.done > 0 || class.reported.is_some() && class.iops > 0.0;
    is_known.then(|| class.rate())
}

fn mb_per_s((_, class): PointClass) -> Option<Estimate> {
    if let Some(reported) = class.reported {
        return reported
            .bytes_per_s
            .map(|bytes| Estimate::from(bytes / 1e6));
    }
    let scale = class.operation_bytes() / 1e6;
    (class.done > 0).then(|| class.rate().scaled(scale))
}

/// A figure of a class's response times.
fn latency((_, class): PointClass, figure: LatencyFigure) -> Option<Estimate> {
    class.time(figure)
}

// ---- the rows ----

/// Rows of the figures over time that at least one run has.
fn rows_over_time(sides: &[Side]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let runs = sides.iter().flat_map(|side| side.runs);
    for one in runs.flat_map(|run| &run.over_time.figures) {
        if rows.iter().all(|row| row.name != one.name) {
            let same = |subject: &Subject| subject.over_time.figure(&one.name, one.unit);
            let kind = (one.unit, one.headline, Scope::All);
            rows.push(Row::of(sides, one.name.clone(), kind, same));
        }
    }
    rows
}

/// Rows of the figures at loads that at least one run has.
fn rows_at_loads(sides: &[Side]) -> Vec<Row> {
    let Some(baseline) = sides.first().map(Side::first) else {
        return Vec::new();
    };
    let rate = |name: &str, of: &dyn Fn(&Subject) -> Option<Estimate>| {
        let kind = (Unit::PerSecond, true, Scope::Small);
        Row::of(sides, name, kind, of)
    };
    let mb = |name: &str, of: &dyn Fn(&Subject) -> Option<Estimate>| {
        let kind = (Unit::MbPerSecond, true, Scope::Large);
        Row::of(sides, name, kind, of)
    };
    let step = |step: Step| move |point: &PointSummary| point.step() == step;
    let is_sql = baseline.points.iter().any(|point| point.sql.is_some());
    let unit = if is_sql { "op/s" } else { "IOPS" };
    // A plateau is the same maximum, whatever loads it was reached with.
    let is_like_small = |one: &Subject, other: &Subject| {
        let is_plateau = has_plateau(one) && has_plateau(other);
        is_plateau || has_like_maxima(one, other, &|run| run.small().collect())
    };
    // A search of Rigel's ends at a maximum; another tool has the loads that somebody chose.
    let is_like = |of: &OfMaximum, one: &Subject, other: &Subject| {
        let is_own = one.imported.is_none() && other.imported.is_none();
        is_own || has_like_maxima(one, other, of)
    };
    // Of runs at one load each, nothing is known of others.
    let mut runs = sides.iter().flat_map(|side| side.runs);
    let is_of_several = runs.any(|run| run.maxima.iops.is_some() || run.depths().len() > 1);
    let most = row_of_maxima(
        sides,
        rate(&format!("max {unit}"), &|run| {
            max_iops(run).filter(|_| is_of_several)
        }),
        is_like_small,
    );
    let has_maxima = most.figures[0].is_some() && most.has_every_change();
    let most_mb = mb("max MB/s", &|subject| {
        let of_points = || mb_per_s(greatest(subject.large())?);
        subject.maxima.mb_per_s.or_else(of_points)
    });
    let mut rows = vec![
        most,
        row_of_maxima(sides, most_mb, |one, other| {
            is_like(&|run| run.large().collect(), one, other)
        }),
        mb("one process MB/s", &|subject| {
            mb_per_s(subject.of(step(Step::Stream)).next()?)
        }),
    ];
    let deepest = if has_maxima {
        None
    } else {
        deepest_in_common(sides)
    };
    rows.extend(deepest.map(|depth| {
        rate(&format!("{unit} at depth {depth}"), &|subject| {
            iops(subject.small_at(depth)?)
        })
    }));
    rows.extend(rows_of_latencies(sides, "at low load", &|run| {
        run.small_at(1)
    }));
    let knee = knee_in_common(sides);
    let deepest = deepest.filter(|depth| *depth > 1);
    let at_deepest = || deepest.map(|depth| (format!("at depth {depth}"), depth));
    if let Some((place, depth)) = knee.or_else(at_deepest) {
        rows.extend(rows_of_latencies(sides, &place, &|run| run.small_at(depth)));
    }
    // The rates of a search are near its limit, where a small difference makes a long queue.
    let rate_in_common = rate_in_common(sides).filter(|_| !has_maxima);
    if let Some(per_s) = rate_in_common {
        let place = format!("at {}", per_second(per_s as f64));
        rows.extend(rows_of_latencies(sides, &place, &|run| run.served(per_s)));
    }
    rows.push(Row::of(
        sides,
        "knee depth",
        (Unit::Outstanding, false, Scope::Small),
        |subject| subject.knee().map(|depth| Estimate::from(f64::from(depth))),
    ));
    rows.push(sustained(sides));
    let written = rate("writes, IOPS", &|subject| {
        iops(greatest(subject.of(step(Step::Write)))?)
    });
    rows.push(row_of_maxima(sides, written, |one, other| {
        is_like(&|run| run.of(step(Step::Write)).collect(), one, other)
    }));
    rows.extend(rows_of_logs(sides, baseline));
    rows.retain(|row| row.figures.iter().any(Option::is_some));
    rows
}

/// A row for each figure of response times at one load.
fn rows_of_latencies(
    sides: &[Side],
    place: &str,
    at: &dyn for<'r> Fn(&'r Subject) -> Option<PointClass<'r>>,
) -> Vec<Row> {
    let rows = LatencyFigure::shown_in(ShownIn::Tables).map(|figure| {
        let name = format!("{} {place}", figure.label());
        let of = |subject: &Subject| latency(at(subject)?, figure);
        // A maximum is one operation: runs of the same storage differ in it by half, and no number of
        // them would show that nothing is slower.
        let is_headline = figure != LatencyFigure::Max;
        let kind = (Unit::Microseconds, is_headline, Scope::Small);
        Row::of(sides, name, kind, of)
    });
    rows.collect()
}

/// A row for each size of the baseline's log writes.
fn rows_of_logs(sides: &[Side], baseline: &Subject) -> Vec<Row> {
    let points = baseline.points.iter();
    let lengths: BTreeSet<u32> = points
        .filter_map(|point| log_size(point.coordinates))
        .collect();
    let row = |size: u32| {
        // The name contains the size, so sizes cannot be confused.
        let name = format!("log writes of {}, /s", Bytes(size.into()));
        let kind = (Unit::PerSecond, true, Scope::Log);
        Row::of(sides, name, kind, |subject| {
            let is_of_size = |point: &PointSummary| log_size(point.coordinates) == Some(size);
            iops(subject.of(is_of_size).next()?)
        })
    };
    lengths.into_iter().map(row).collect()
}

/// The depth of the baseline's knee, of several runs the middle one, and its name. If a run was not
/// measured there, the next greater depth that all runs have, because each search visits different
/// depths. `None` at depth 1, which is the low load.
fn knee_in_common(sides: &[Side]) -> Option<(String, u32)> {
    let baseline = sides.first()?;
    let mut knees: Vec<u32> = baseline.runs.iter().filter_map(Subject::knee).collect();
    knees.sort_unstable();
    let knee = *knees.get(knees.len() / 2)?;
    let runs = || sides.iter().flat_map(|side| side.runs);
    let in_common = |depth: &u32| runs().all(|run| run.small_at(*depth).is_some());
    let depths = baseline
        .first()
        .small()
        .filter_map(|(point, _)| depth_alone(point));
    let depth = depths
        .filter(|depth| *depth >= knee.max(2))
        .filter(in_common)
        .min()?;
    let place = if depth == knee {
        format!("at knee depth {depth}")
    } else {
        format!("at depth {depth} near knee")
    };
    Some((place, depth))
}

/// The greatest depth of small random I/O that all runs have.
fn deepest_in_common(sides: &[Side]) -> Option<u32> {
    let baseline = sides.first()?.first();
    let runs = || sides.iter().flat_map(|side| side.runs);
    let in_common = |depth: &u32| runs().all(|run| run.small_at(*depth).is_some());
    baseline.depths().into_iter().rfind(in_common)
}

/// The lowest offered rate that only one of the baseline and another side serves.
fn served_by_one(sides: &[Side], other: usize) -> Option<ServedByOne> {
    let met = |side: &Side, rate: u64| {
        let of = |run: &Subject| {
            let at_rate = |point: &PointSummary| point.coordinates.rate() == Some(rate);
            run.of(at_rate).next().and_then(|(_, class)| class.met)
        };
        let mut all = side.runs.iter().map(of);
        let first = all.next().flatten()?;
        all.all(|one| one == Some(first)).then_some(first)
    };
    let baseline = &sides[0];
    // The rates of a search are near its limit, where chance decides.
    if baseline.first().maxima.iops.is_some() {
        return None;
    }
    offered_rates(baseline).into_iter().find_map(|rate_per_s| {
        let both = (met(baseline, rate_per_s)?, met(&sides[other], rate_per_s)?);
        let by_baseline = both == (RateMet::Yes, RateMet::No);
        let by_one = by_baseline || both == (RateMet::No, RateMet::Yes);
        by_one.then_some(ServedByOne {
            rate_per_s,
            by_baseline,
        })
    })
}

/// The greatest offered rate that all runs serve.
fn rate_in_common(sides: &[Side]) -> Option<u64> {
    let runs = || sides.iter().flat_map(|side| side.runs);
    let mut rates = offered_rates(sides.first()?).into_iter().rev();
    rates.find(|rate| runs().all(|run| run.served(*rate).is_some()))
}

/// The rates that were offered in the first run of a side, rising.
fn offered_rates(side: &Side) -> Vec<u64> {
    let points = side.first().points.iter();
    let mut rates: Vec<u64> = points
        .filter_map(|point| point.coordinates.rate())
        .collect();
    rates.sort_unstable();
    rates
}

fn log_size(coordinates: Coordinates) -> Option<u32> {
    if let Coordinates::Log {
        bytes, log: None, ..
    } = coordinates
    {
        Some(bytes)
    } else {
        None
    }
}

/// The depth of small random I/O in a closed loop; in a matrix, only without large I/O.
fn depth_alone(point: &PointSummary) -> Option<u32> {
    point
        .coordinates
        .depth()
        .or(point.coordinates.small_alone())
}

/// The row of the sustained rate. No verdict uses it: the search between two rates has no known
/// error. Chance at the edge of the bound moves it, and in one of eight pairs of runs on one device,
/// one run keeps a rate that the other breaks. Under different bounds there is no ratio either.
fn sustained(sides: &[Side]) -> Row {
    let of = |subject: &Subject| sustained_rate(&subject.points);
    let kind = (Unit::PerSecond, false, Scope::Small);
    let mut row = Row::of(sides, "sustained rate", kind, of);
    let bound = sides[0].first().term(BOUND);
    for (change, side) in row.changes.iter_mut().zip(&sides[1..]) {
        *change = change.filter(|_| side.first().term(BOUND) == bound);
    }
    row
}

/// Name of the term with the latency bound of the sustained rate.
pub const BOUND: &str = "bound on latency";

/// The loads that all runs of this side share with those of the baseline, in order. Passes over a
/// part of the volume are left out: they distinguish a cache from a device. Loads of different
/// work, according to `conditions`, are left out too.
fn load_changes(sides: &[Side], side: usize, conditions: &[Condition]) -> Vec<LoadChange> {
    let (baseline, other) = (&sides[0], &sides[side]);
    let mut points: Vec<&PointSummary> = baseline
        .first()
        .points
        .iter()
        .filter(|point| point.step() != Step::Pass)
        .collect();
    points.sort_by_key(|point| {
        let (small, large) = point.coordinates.small_and_large();
        (
            point.step(),
            point.coordinates.rate(),
            large,
            small,
            point.coordinates,
        )
    });
    let runs = || baseline.runs.iter().chain(other.runs);
    let any_imported = runs().any(|run| run.imported.is_some());
    let mut changes = Vec::new();
    for before in points {
        for one in &before.classes {
            // If classes run together, each depends on the other's size.
            let scope = match one.name.as_str() {
                _ if before.classes.len() > 1 => Scope::All,
                "large" => Scope::Large,
                _ => Scope::Small,
            };
            let has_class =
                |run: &Subject| class_at(run, before, &one.name, any_imported).is_some();
            if is_of_other_work(conditions, side, scope) || !runs().all(has_class) {
                continue;
            }
            let figure = |side: &Side, unit, of: &dyn Fn(PointClass) -> Option<Estimate>| {
                let of_run = |run| of(class_at(run, before, &one.name, any_imported)?);
                let figures: Option<Vec<Estimate>> = side.runs.iter().map(of_run).collect();
                of_runs(&figures?, unit)
            };
            let change = |unit: Unit, of: &dyn Fn(PointClass) -> Option<Estimate>| {
                let (before, after) = (figure(baseline, unit, of)?, figure(other, unit, of)?);
                Change::of(&before, &after, unit.more_is_better())
            };
            changes.push(LoadChange {
                run: side,
                load: before.coordinates.to_string(),
                class: one.name.clone(),
                iops: change(Unit::PerSecond, &iops),
                p50: change(Unit::Microseconds, &|class| {
                    latency(class, LatencyFigure::P50)
                }),
                p99: change(Unit::Microseconds, &|class| {
                    latency(class, LatencyFigure::P99)
                }),
            });
        }
    }
    changes
}

/// The class of this name in the run's point of the same load.
fn class_at<'r>(
    run: &'r Subject,
    before: &PointSummary,
    class: &str,
    any_imported: bool,
) -> Option<PointClass<'r>> {
    let mut points = run.points.iter();
    let point = points.find(|point| is_same_load(before, point, any_imported))?;
    let class = point.classes.iter().find(|other| other.name == class)?;
    Some((point, class))
}

/// True if both points have the same load. Tools differ in their in-flight limit at an offered
/// rate; if the rate is met, it is the same load all the same.
fn is_same_load(one: &PointSummary, other: &PointSummary, any_imported: bool) -> bool {
    let offered = |point: &PointSummary| match point.coordinates {
        Coordinates::Rate {
            rate_per_s,
            large_beside,
            ..
        } => Some((rate_per_s, large_beside)),
        _ => None,
    };
    let is_same_rate = || offered(one).is_some() && offered(one) == offered(other);
    one.coordinates == other.coordinates || any_imported && is_same_rate()
}

// ---- the verdict ----

/// The headline figures with a known error, and the side of each. If one side has no stall, the time
/// stood still has no error but that of the number of stalls, which is judged already.
fn judged(rows: &[Row]) -> Vec<(usize, &Row, Change)> {
    let of =
        |row| move |(index, change): (usize, &Option<Change>)| Some((index + 1, row, (*change)?));
    let changes = rows
        .iter()
        .filter(|row| row.headline)
        .flat_map(|row| row.changes.iter().enumerate().filter_map(of(row)));
    changes
        .filter(|(_, row, change)| change.chance(1.0).is_some() && !follows_stalls(row, change))
        .collect()
}

/// True for the time stood still if it is judged by the number of stalls.
fn follows_stalls(row: &Row, change: &Change) -> bool {
    row.name == STOOD_STILL && change.is_counted()
}

/// The weight of stalls in Holm's method, relative to all rows but them together. A run has few
/// stalls, so their number needs most of the level; the others have it whole if nothing stalled.
const STALLS_WEIGHT: f64 = 3.0;

/// The weight of the first figure in Holm's method, the highest rate, relative to all others but
/// stalls together. The plan measures it best, and the rare operations of the tails should not cost
/// it its power.
const FIRST_WEIGHT: f64 = 1.0;

/// The weight of each judged figure in Holm's method. Only ratios of them matter.
fn weights(judged: &[(usize, &Row, Change)]) -> Vec<f64> {
    let is_stalls = |row: &Row| row.name == STALLS;
    let first = judged
        .iter()
        .map(|(_, row, _)| row)
        .find(|row| !is_stalls(row));
    let is_first = |row: &Row| first.is_some_and(|first| first.name == row.name);
    let count =
        |of: &dyn Fn(&Row) -> bool| judged.iter().filter(|(_, row, _)| of(row)).count() as f64;
    let (stalls, firsts) = (count(&is_stalls), count(&is_first));
    let others = (judged.len() as f64 - stalls - firsts).max(1.0);
    let weight = |row: &Row| match () {
        () if is_stalls(row) => STALLS_WEIGHT * (1.0 + FIRST_WEIGHT) * others / stalls,
        () if is_first(row) => FIRST_WEIGHT * others / firsts,
        () => 1.0,
    };
    judged.iter().map(|(_, row, _)| weight(row)).collect()
}

/// Which of the judged changes are certain, by Holm's method.
fn certain(judged: &[(usize, &Row, Change)], weights: &[f64]) -> Vec<bool> {
    let weighted: Vec<(f64, f64)> = judged
        .iter()
        .filter_map(|(.., change)| change.chance(1.0))
        .map(|one| 2.0 * one)
        .zip(weights.iter().copied())
        .collect();
    holm(&weighted, 1.0 - CONFIDENCE)
}

fn verdicts(rows: &[Row], sides: usize, limit: Option<Ratio>) -> Vec<Verdict> {
    let judged = judged(rows);
    let weights = weights(&judged);
    let certain = certain(&judged, &weights);
    let share = |name: &str| {
        let index = judged.iter().position(|(_, row, _)| row.name == name);
        index.map_or(1.0, |index| weights[index]) / weights.iter().sum::<f64>().max(1.0)
    };
    let room = |change: &Change| {
        let interval = change.interval.filter(|_| !change.is_counted())?;
        Some((interval.high.unwrap_or(f64::INFINITY) - 1.0).max(1.0 / interval.low - 1.0))
    };
    let verdict = |side| {
        let of_side = || {
            judged
                .iter()
                .zip(&certain)
                .filter(move |((of, ..), _)| *of == side)
        };
        let named = |wanted: Judgement| {
            let with_it =
                of_side().filter(|((.., change), certain)| **certain && change.judgement == wanted);
            let mut names: Vec<String> = with_it.map(|((_, row, _), _)| row.name.clone()).collect();
            if names.iter().any(|name| name == STALLS) {
                let follows = |row: &&Row| {
                    let change: Option<Change> = row.changes[side - 1];
                    change.is_some_and(|change| follows_stalls(row, &change))
                };
                names.extend(rows.iter().filter(follows).map(|row| row.name.clone()));
            }
            names
        };
        // How much a number of rare events may differ says little.
        let measured = of_side().filter(|((_, row, _), _)| !row.unit.is_of_events());
        let rooms =
            measured.filter_map(|((_, row, change), _)| Some((row.name.clone(), room(change)?)));
        let (worse, better) = (named(Judgement::Worse), named(Judgement::Better));
        let is_open = worse.is_empty() && better.is_empty();
        Verdict {
            run: side,
            judged: of_side().count(),
            served_by_one: None,
            widest: rooms.max_by(|(_, one), (_, other)| one.total_cmp(other)),
            runs_needed: if is_open {
                runs_needed(rows, side, share, limit)
            } else {
                Vec::new()
            },
            worse,
            better,
        }
    };
    (1..sides).map(verdict).collect()
}

/// Figures slower than the limit. "Certain" means: if no headline figure were slower by more than
/// the limit, at most one in forty comparisons would show this by chance. That is one side of the
/// 95 % interval, with Holm's method as for the verdict.
fn slower(rows: &[Row], limit: Ratio) -> Slower {
    let mut slower = Slower {
        limit,
        certain: Vec::new(),
        possible: Vec::new(),
    };
    let allowed = |row: &Row| {
        if row.unit.more_is_better() {
            1.0 - limit.get()
        } else {
            1.0 + limit.get()
        }
    };
    let beyond = |row: &Row, value: f64| {
        if row.unit.more_is_better() {
            value < allowed(row)
        } else {
            value > allowed(row)
        }
    };
    let judged = judged(rows);
    let chances = judged.iter().map(|(_, row, change)| {
        change
            .chance(allowed(row))
            .filter(|_| beyond(row, change.ratio))
            .unwrap_or(1.0)
    });
    let weighted: Vec<(f64, f64)> = chances.zip(weights(&judged)).collect();
    let certain = holm(&weighted, (1.0 - CONFIDENCE) / 2.0);
    for ((run, row, change), certain) in judged.iter().zip(certain) {
        let reaches = change.interval.is_some_and(|interval| {
            beyond(row, interval.low) || beyond(row, interval.high.unwrap_or(f64::INFINITY))
        });
        if certain {
            slower.certain.push((*run, row.name.clone()));
        } else if reaches {
            slower.possible.push((*run, row.name.clone()));
        }
    }
    slower
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::workload::rng::Rng;
    use rigel_stats::mean::Mean;

    /// The error of a figure within a run: an interval of ± 2 % at 19 degrees of freedom.
    const WITHIN: f64 = 0.00956;

    /// True if two sides of `runs` runs, ten figures each, are called different. The state of the
    /// storage differs from run to run by `deviation`, alike for half of the figures and
    /// independently for the others. The second side has `faster` times the rates.
    fn differ(rng: &mut Rng, runs: usize, deviation: f64, faster: f64) -> bool {
        const FIGURES: usize = 10;
        let mut values = [vec![Vec::new(); FIGURES], vec![Vec::new(); FIGURES]];
        for (side, factor) in [1.0, faster].into_iter().enumerate() {
            for _ in 0..runs {
                let common = rng.normal();
                for (figure, values) in values[side].iter_mut().enumerate() {
                    let state = if figure < FIGURES / 2 {
                        common
                    } else {
                        rng.normal()
                    };
                    let log = deviation * state + WITHIN * rng.normal();
                    values.push(1000.0 * factor * log.exp());
                }
            }
        }
        let figure = |value: &f64| {
            let mean = Mean {
                value: *value,
                error: WITHIN * value,
                effective_n: 20.0,
                degrees: 19.0,
            };
            Estimate::from(mean)
        };
        let unit = Unit::PerSecond;
        let side = |values: &[f64]| {
            let runs: Vec<Estimate> = values.iter().map(figure).collect();
            of_runs(&runs, unit).unwrap()
        };
        let rows: Vec<Row> = (0..FIGURES)
            .map(|at| {
                let [before, after] = [0, 1].map(|of: usize| side(&values[of][at]));
                Row {
                    name: at.to_string(),
                    unit,
                    headline: true,
                    scope: Scope::All,
                    figures: vec![Some(before), Some(after)],
                    runs: Vec::new(),
                    changes: vec![Change::of(&before, &after, true)],
                }
            })
            .collect();
        let judged = judged(&rows);
        let certain = certain(&judged, &weights(&judged));
        let is_worse_or_better =
            |change: &Change| matches!(change.judgement, Judgement::Worse | Judgement::Better);
        let mut changes = judged.iter().zip(certain);
        changes.any(|((.., change), certain)| certain && is_worse_or_better(change))
    }

    /// Comparisons; docs/methods/compare.md has the counts with `RIGEL_PAIRS=1000`.
    fn comparisons() -> u64 {
        let wanted = std::env::var("RIGEL_PAIRS").ok();
        wanted.and_then(|pairs| pairs.parse().ok()).unwrap_or(200)
    }

    /// The share of comparisons that call the sides different.
    fn called(runs: usize, deviation: f64, faster: f64) -> f64 {
        let (count, mut rng) = (comparisons(), Rng::new(runs as u64, 11));
        let found = (0..count)
            .filter(|_| differ(&mut rng, runs, deviation, faster))
            .count();
        println!("{runs} a side, deviation {deviation}, {faster}: {found} of {count}");
        found as f64 / count as f64
    }

    #[test]
    fn runs_that_vary_are_called_different_one_time_in_twenty_at_most() {
        for runs in [2, 3, 5] {
            for deviation in [0.0, 0.01, 0.02, 0.05] {
                let found = called(runs, deviation, 1.0);
                // Of 200 with a chance of 5 % each, more than 18 occur one time in 100.
                assert!(found <= 0.09, "{runs} a side, {deviation}: {found}");
            }
        }
    }

    #[test]
    fn single_runs_that_vary_are_often_called_different() {
        // This is why a conclusion on single runs has a reservation.
        assert!(called(1, 0.0, 1.0) <= 0.09);
        assert!(called(1, 0.01, 1.0) > 0.1);
        assert!(called(1, 0.02, 1.0) > 0.5);
        assert!(called(1, 0.05, 1.0) > 0.5);
    }

    #[test]
    fn a_difference_of_a_tenth_is_found_with_enough_runs() {
        for (runs, deviation, at_least) in [(3, 0.0, 0.95), (3, 0.01, 0.95), (5, 0.02, 0.95)] {
            let found = called(runs, deviation, 0.9);
            assert!(found >= at_least, "{runs} a side, {deviation}: {found}");
        }
        // Fewer runs, or more variation, find less; nothing promises how much.
        for (runs, deviation) in [(2, 0.01), (3, 0.02), (3, 0.05), (5, 0.05)] {
            called(runs, deviation, 0.9);
        }
    }
}
