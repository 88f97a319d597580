//! Two or more runs side by side: under which conditions, each figure's ratio, and whether it is a difference.
//!
//! Goes in: the summaries of the points of runs, the first of them the baseline. Comes out: conditions that differ,
//! headline figures and load points with the ratio to the baseline and its 95 % interval, and a verdict. A figure is
//! compared with one at the same load only: the latency at the knee is that at the depth of the baseline's knee, or the
//! next greater one that all runs have. Runs that go on over time, soaks and imported series, have their figures over
//! all rounds instead.
//!
//! Of many rows one in twenty differs by chance, at 95 %. A row is judged by its own interval all the same, as it
//! stands there to be looked at; the verdict goes by the headline figures alone, and by Holm's method, so that it calls
//! two runs of the same thing different in one of twenty comparisons at most, however many figures and runs there are.

use super::calibration::{self, curve_facts};
use super::conditions::{Condition, Scope, Term, conditions};
use super::difference::{Change, Figure, Judgement, holm};
use super::over_time::OverTime;
use super::statistics::{CONFIDENCE, Interval};
use super::summary::{ClassSummary, PointSummary};
use crate::model::{Bytes, Coordinates, Ratio, Step};
use crate::record::journal::Header;
use serde::Serialize;
use std::collections::BTreeMap;

/// A run that is compared.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// What it is called.
    pub name: String,
    /// What was to be measured, by what, on what.
    pub header: &'a Header,
    /// What it was asked for.
    pub terms: Vec<Term>,
    /// Its points; of a soak none.
    pub points: Vec<PointSummary>,
    /// What it shows over time, if it goes on for long: a soak, or an imported series.
    pub over_time: OverTime,
    /// Share of the maximum that is still as good, to find the knee.
    pub tolerance: f64,
    /// Every point that was planned ran to its end.
    pub whole: bool,
    /// How often each warning was raised, by name.
    pub warnings: BTreeMap<String, usize>,
    /// The tool that measured it, if that was not Rigel.
    pub imported: Option<String>,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Operations a second: more is better.
    PerSecond,
    /// Megabytes (10^6) a second: more is better.
    MbPerSecond,
    /// Microseconds: less is better.
    Microseconds,
    /// Outstanding I/Os: neither is better.
    Outstanding,
    /// A share of 1: shown, never judged.
    Share,
    /// How many there are: shown, never judged.
    Count,
    /// Whatever another tool counts in a unit of its own: nobody can say whether more is better.
    Other,
}

/// A figure of every run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// In which unit.
    pub unit: Unit,
    /// The verdict goes by it.
    pub headline: bool,
    /// Of which I/O.
    pub scope: Scope,
    /// Of each run; none where it was not measured.
    pub figures: Vec<Option<Figure>>,
    /// Of each run but the first, against the first.
    pub changes: Vec<Option<Change>>,
}

/// What a class did at a load that a run and the baseline both have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadChange {
    /// Which run, counted from the baseline, which is 0.
    pub run: usize,
    /// The load, in words.
    pub load: String,
    /// The class of I/O.
    pub class: String,
    /// Operations a second.
    pub iops: Option<Change>,
    /// Median response time.
    pub p50: Option<Change>,
    /// 99 % are not slower.
    pub p99: Option<Change>,
}

/// What is certain of a run against the baseline, over all headline figures of all runs together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Which run, counted from the baseline, which is 0.
    pub run: usize,
    /// How many headline figures have an interval.
    pub judged: usize,
    /// Headline figures that are worse, by name.
    pub worse: Vec<String>,
    /// Headline figures that are better, by name.
    pub better: Vec<String>,
    /// The headline figure that is known least well: what difference its interval leaves room for, as a share.
    pub widest: Option<(String, f64)>,
}

/// Headline figures that are slower than a limit allows: a rate by so much less, a response time by so much more.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slower {
    /// The share.
    pub limit: Ratio,
    /// Run and figure that certainly are.
    pub certain: Vec<(usize, String)>,
    /// Run and figure that may be: the interval reaches beyond the limit.
    pub possible: Vec<(usize, String)>,
}

/// Runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// What the runs are called, the baseline first.
    pub names: Vec<String>,
    /// When each was begun.
    pub started: Vec<String>,
    /// Which of them are not whole.
    pub incomplete: Vec<usize>,
    /// The warnings of each, by name, with how often each was raised.
    pub warnings: Vec<BTreeMap<String, usize>>,
    /// Which of them another tool measured, and which: it tells less of the conditions, and has no intervals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub imported: BTreeMap<usize, String>,
    /// How many rounds or samples each run has that goes on over time.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rounds: BTreeMap<usize, usize>,
    /// Conditions that differ.
    pub conditions: Vec<Condition>,
    /// Figures of the runs as a whole.
    pub figures: Vec<Row>,
    /// Loads that a run has in common with the baseline.
    pub points: Vec<LoadChange>,
    /// Of each run but the first.
    pub verdicts: Vec<Verdict>,
    /// Against the limit that was asked about.
    pub slower: Option<Slower>,
}

/// The first of `subjects` against each of the others. `slower_limit`: by which share a run may be slower, if that is
/// asked about.
#[must_use]
pub fn compare(subjects: &[Subject], slower_limit: Option<Ratio>) -> Comparison {
    let conditions = conditions(subjects);
    let mut figures = rows_at_loads(subjects);
    figures.extend(rows_over_time(subjects));
    for row in &mut figures {
        for (index, change) in row.changes.iter_mut().enumerate() {
            *change = change.filter(|_| !is_of_other_work(&conditions, index + 1, row.scope));
        }
    }
    Comparison {
        names: subjects.iter().map(|subject| subject.name.clone()).collect(),
        started: subjects.iter().map(|subject| subject.header.started.clone()).collect(),
        incomplete: (0..subjects.len()).filter(|index| !subjects[*index].whole).collect(),
        warnings: subjects.iter().map(|subject| subject.warnings.clone()).collect(),
        imported: subjects.iter().enumerate().filter_map(|(run, one)| Some((run, one.imported.clone()?))).collect(),
        rounds: subjects.iter().enumerate().filter_map(|(run, one)| Some((run, one.over_time.rounds()?))).collect(),
        points: (1..subjects.len()).flat_map(|run| load_changes(subjects, run, &conditions)).collect(),
        conditions,
        verdicts: verdicts(&figures, subjects.len()),
        slower: slower_limit.map(|limit| slower(&figures, limit)),
        figures,
    }
}

impl Comparison {
    /// The figures of `scope` in the run at `run` are of other work than the baseline's, and are not compared.
    #[must_use]
    pub fn is_of_other_work(&self, run: usize, scope: Scope) -> bool {
        is_of_other_work(&self.conditions, run, scope)
    }

    /// The run at `run` and the baseline have some figure or load of which there is a ratio.
    #[must_use]
    pub fn has_common(&self, run: usize) -> bool {
        let at_load = self.points.iter().any(|point| point.run == run && point.iops.is_some());
        at_load || self.figures.iter().any(|row| row.changes[run - 1].is_some())
    }
}

fn is_of_other_work(conditions: &[Condition], run: usize, scope: Scope) -> bool {
    let decides = |condition: &Condition| condition.not_compared.is_some_and(|other| other.meets(scope));
    conditions.iter().any(|condition| condition.run == run && decides(condition))
}

impl LoadChange {
    /// Of another class at the same load of the same run.
    #[must_use]
    pub fn is_beside(&self, other: &LoadChange) -> bool {
        self.run == other.run && self.load == other.load && self.class != other.class
    }
}

impl Unit {
    fn more_is_better(self) -> bool {
        self != Unit::Microseconds
    }
}

// ---- the figures of a run ----

/// A point with its class, of those that a figure is taken from.
type Found<'a> = (&'a PointSummary, &'a ClassSummary);

impl Subject<'_> {
    fn of(&self, wanted: impl Fn(&PointSummary) -> bool) -> impl Iterator<Item = Found<'_>> {
        let points = self.points.iter().filter(move |point| wanted(point));
        points.filter_map(|point| Some((point, point.classes.first()?)))
    }

    /// Small random I/O in a closed loop, of which the curve is made; in a matrix, without large I/O beside.
    fn small(&self) -> impl Iterator<Item = Found<'_>> {
        self.of(|point| depth_alone(point).is_some())
    }

    fn small_at(&self, depth: u32) -> Option<Found<'_>> {
        self.small().find(|(point, _)| depth_alone(point) == Some(depth))
    }

    fn large(&self) -> impl Iterator<Item = Found<'_>> {
        self.of(|point| point.step() == Step::Large || point.coordinates.large_alone().is_some())
    }

    fn knee(&self) -> Option<u32> {
        let knee = curve_facts(self.small().map(|(_, class)| class), self.tolerance).knee?;
        let depths = self.small().filter_map(|(point, _)| depth_alone(point));
        depths.into_iter().find(|depth| (f64::from(*depth) - knee.load).abs() < 0.5)
    }

    fn term(&self, name: &str) -> Option<&str> {
        self.terms.iter().find(|term| term.name == name).map(|term| term.value.as_str())
    }
}

/// The greatest rate that was sustained, up to the least that was not.
fn sustained_rate(points: &[PointSummary]) -> Option<Figure> {
    let found = calibration::sustained(points);
    let kept = found.kept_rate? as f64;
    let broken = found.broken_rate.map(|rate| rate as f64).filter(|broken| *broken > kept);
    let between = broken.map(|broken| Interval { low: kept, high: broken });
    Some(Figure::within(kept, between))
}

fn greatest<'a>(found: impl Iterator<Item = Found<'a>>) -> Option<Found<'a>> {
    found.max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
}

fn iops((_, class): Found) -> Option<Figure> {
    let is_known = class.done > 0 || class.told.is_some() && class.iops > 0.0;
    is_known.then(|| Figure::of_mean(class.iops, class.confidence.map(|known| known.iops)))
}

fn mb_per_s((_, class): Found) -> Option<Figure> {
    if let Some(told) = class.told {
        return told.bytes_per_s.map(|bytes| Figure::unknown(bytes / 1e6));
    }
    let scale = f64::from(class.io_bytes) / 1e6;
    let mean = class.confidence.map(|known| known.iops.scaled(scale));
    (class.done > 0).then(|| Figure::of_mean(class.iops * scale, mean))
}

/// The quantiles that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tail {
    P50,
    P99,
    P999,
}

impl Tail {
    const ALL: [Tail; 3] = [Tail::P50, Tail::P99, Tail::P999];

    fn name(self) -> &'static str {
        match self {
            Tail::P50 => "p50",
            Tail::P99 => "p99",
            Tail::P999 => "p99.9",
        }
    }

    /// Of this class. Its interval is told from the same windows as that of the rate, in as many batches.
    fn of(self, (_, class): Found) -> Option<Figure> {
        if let Some(told) = class.told {
            let value = match self {
                Tail::P50 => told.p50_us,
                Tail::P99 => told.p99_us,
                Tail::P999 => told.p999_us,
            };
            return value.map(Figure::unknown);
        }
        let (latency, known) = (class.latency?, class.confidence);
        let (value, interval) = match self {
            Tail::P50 => (latency.p50_us, known.and_then(|known| known.p50_us)),
            Tail::P99 => (latency.p99_us, known.and_then(|known| known.p99_us)),
            Tail::P999 => (latency.p999_us, known.and_then(|known| known.p999_us)),
        };
        Some(Figure::of_quantile(value, interval.zip(known.map(|known| known.iops.degrees))))
    }
}

// ---- the rows ----

fn row(
    subjects: &[Subject],
    name: impl Into<String>,
    unit: Unit,
    headline: bool,
    scope: Scope,
    of: impl Fn(&Subject) -> Option<Figure>,
) -> Row {
    let figures: Vec<Option<Figure>> = subjects.iter().map(of).collect();
    let against = |figure: &Option<Figure>| Change::of(&figures[0]?, &(*figure)?, unit.more_is_better());
    let changes = figures.iter().skip(1).map(against).collect();
    Row { name: name.into(), unit, headline, scope, figures, changes }
}

/// The figures over time that at least one run has.
fn rows_over_time(subjects: &[Subject]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for one in subjects.iter().flat_map(|subject| &subject.over_time.figures) {
        if rows.iter().all(|row| row.name != one.name) {
            let same = |subject: &Subject| subject.over_time.figure(&one.name, one.unit);
            rows.push(row(subjects, one.name.clone(), one.unit, one.headline, Scope::All, same));
        }
    }
    rows
}

/// The figures at loads that at least one run has.
fn rows_at_loads(subjects: &[Subject]) -> Vec<Row> {
    let Some(baseline) = subjects.first() else { return Vec::new() };
    let rate = |name: &str, of: &dyn Fn(&Subject) -> Option<Figure>| {
        row(subjects, name, Unit::PerSecond, true, Scope::Small, of)
    };
    let mb = |name: &str, of: &dyn Fn(&Subject) -> Option<Figure>| {
        row(subjects, name, Unit::MbPerSecond, true, Scope::Large, of)
    };
    let latencies = |place: &str, depth: u32| {
        // The tail beyond p99 is of few values: it is shown, and no verdict rests on it.
        Tail::ALL.map(|tail| {
            let name = format!("{} {place}", tail.name());
            let of = |subject: &Subject| tail.of(subject.small_at(depth)?);
            row(subjects, name, Unit::Microseconds, tail != Tail::P999, Scope::Small, of)
        })
    };
    let step = |step: Step| move |point: &PointSummary| point.step() == step;
    let mut rows = vec![
        rate("max IOPS", &|subject| iops(greatest(subject.small())?)),
        mb("max MB/s", &|subject| mb_per_s(greatest(subject.large())?)),
        mb("one process MB/s", &|subject| mb_per_s(subject.of(step(Step::Stream)).next()?)),
    ];
    rows.extend(latencies("at low load", 1));
    if let Some((place, depth)) = knee_in_common(subjects) {
        rows.extend(latencies(&place, depth));
    }
    rows.push(row(subjects, "knee depth", Unit::Outstanding, false, Scope::Small, |subject| {
        subject.knee().map(|depth| Figure::unknown(f64::from(depth)))
    }));
    rows.push(sustained(subjects));
    rows.push(rate("writes, IOPS", &|subject| iops(greatest(subject.of(step(Step::Write)))?)));
    let mut sizes: Vec<u32> = baseline.points.iter().filter_map(|point| log_size(point.coordinates)).collect();
    sizes.sort_unstable();
    for size in sizes {
        let name = format!("log writes of {}, /s", Bytes(size.into()));
        // Their size is in their name.
        let mut row =
            rate(&name, &|subject| iops(subject.of(|point| log_size(point.coordinates) == Some(size)).next()?));
        row.scope = Scope::Log;
        rows.push(row);
    }
    rows.retain(|row| row.figures.iter().any(Option::is_some));
    rows
}

/// The depth of the baseline's knee, in words too; where a run was not measured there, the next greater depth that all
/// of them have, since the search visits other depths in each. None at a depth of 1, which is the low load.
fn knee_in_common(subjects: &[Subject]) -> Option<(String, u32)> {
    let (baseline, others) = subjects.split_first()?;
    let knee = baseline.knee()?;
    let in_common = |depth: &u32| others.iter().all(|other| other.small_at(*depth).is_some());
    let depths = baseline.small().filter_map(|(point, _)| depth_alone(point));
    let depth = depths.filter(|depth| *depth >= knee.max(2)).filter(in_common).min()?;
    let place = if depth == knee { format!("at knee depth {depth}") } else { format!("at depth {depth} near knee") };
    Some((place, depth))
}

fn log_size(coordinates: Coordinates) -> Option<u32> {
    if let Coordinates::Log { bytes } = coordinates { Some(bytes) } else { None }
}

/// The depth of small random I/O in a closed loop; of a matrix, without large I/O beside.
fn depth_alone(point: &PointSummary) -> Option<u32> {
    point.coordinates.depth().or(point.coordinates.small_alone())
}

/// What the search between two rates finds has no error that is known: chance at the edge of the bound moves it, and
/// in one of eight pairs of runs of one device, one keeps a rate that the other breaks. It is shown and not judged;
/// under different bounds there is no ratio either.
fn sustained(subjects: &[Subject]) -> Row {
    let of = |subject: &Subject| sustained_rate(&subject.points);
    let mut row = row(subjects, "sustained rate", Unit::PerSecond, false, Scope::Small, of);
    let bound = subjects[0].term(BOUND);
    for (change, subject) in row.changes.iter_mut().zip(&subjects[1..]) {
        *change = change.filter(|_| subject.term(BOUND) == bound);
    }
    row
}

/// The name of the term that says under which bound a rate is sustained.
pub const BOUND: &str = "bound on latency";

/// The loads that the run at `run` has in common with the baseline, in their order. A pass over one part of the volume
/// is none: it tells a cache from a device. Where `conditions` say that the work was another, there is none either.
fn load_changes(subjects: &[Subject], run: usize, conditions: &[Condition]) -> Vec<LoadChange> {
    let mut points: Vec<&PointSummary> = subjects[0].points.iter().filter(|point| point.step() != Step::Pass).collect();
    points.sort_by_key(|point| {
        let (small, large) = point.coordinates.small_and_large();
        (point.step(), point.coordinates.rate(), large, small, point.coordinates)
    });
    let mut found = Vec::new();
    for before in points {
        let either_imported = subjects[0].imported.is_some() || subjects[run].imported.is_some();
        let same = |point: &&PointSummary| is_same_load(before, point, either_imported);
        let Some(after) = subjects[run].points.iter().find(same) else { continue };
        for one in &before.classes {
            let Some(other) = after.classes.iter().find(|other| other.name == one.name) else { continue };
            // Beside another class each depends on the other's size.
            let scope = match one.name.as_str() {
                _ if before.classes.len() > 1 => Scope::All,
                "large" => Scope::Large,
                _ => Scope::Small,
            };
            if is_of_other_work(conditions, run, scope) {
                continue;
            }
            let change = |of: &dyn Fn(Found) -> Option<Figure>, more_is_better| {
                Change::of(&of((before, one))?, &of((after, other))?, more_is_better)
            };
            found.push(LoadChange {
                run,
                load: before.coordinates.to_string(),
                class: one.name.clone(),
                iops: change(&iops, true),
                p50: change(&|found| Tail::P50.of(found), false),
                p99: change(&|found| Tail::P99.of(found), false),
            });
        }
    }
    found
}

/// The same load. Other tools have another most in flight at an offered rate: met, it is the same load all the same.
fn is_same_load(one: &PointSummary, other: &PointSummary, either_imported: bool) -> bool {
    let offered = |point: &PointSummary| match point.coordinates {
        Coordinates::Rate { rate_per_s, large_beside, .. } => Some((rate_per_s, large_beside)),
        _ => None,
    };
    let is_same_rate = || offered(one).is_some() && offered(one) == offered(other);
    one.coordinates == other.coordinates || either_imported && is_same_rate()
}

// ---- the verdict ----

/// The headline figures whose error is known, with the run they are of.
fn judged(rows: &[Row]) -> Vec<(usize, &Row, Change)> {
    let of = |row| move |(index, change): (usize, &Option<Change>)| Some((index + 1, row, (*change)?));
    let changes =
        rows.iter().filter(|row| row.headline).flat_map(|row| row.changes.iter().enumerate().filter_map(of(row)));
    changes.filter(|(.., change)| change.chance(1.0).is_some()).collect()
}

fn verdicts(rows: &[Row], runs: usize) -> Vec<Verdict> {
    let judged = judged(rows);
    let chances: Vec<f64> = judged.iter().filter_map(|(.., change)| change.chance(1.0)).map(|one| 2.0 * one).collect();
    let certain = holm(&chances, 1.0 - CONFIDENCE);
    let room = |change: &Change| {
        let interval = change.interval?;
        Some((interval.high.unwrap_or(f64::INFINITY) - 1.0).max(1.0 / interval.low - 1.0))
    };
    let verdict = |run| {
        let of_run = || judged.iter().zip(&certain).filter(move |((of, ..), _)| *of == run);
        let named = |wanted: Judgement| {
            let named = of_run().filter(|((.., change), certain)| **certain && change.judgement == wanted);
            named.map(|((_, row, _), _)| row.name.clone()).collect()
        };
        let rooms = of_run().filter_map(|((_, row, change), _)| Some((row.name.clone(), room(change)?)));
        Verdict {
            run,
            judged: of_run().count(),
            worse: named(Judgement::Worse),
            better: named(Judgement::Better),
            widest: rooms.max_by(|(_, one), (_, other)| one.total_cmp(other)),
        }
    };
    (1..runs).map(verdict).collect()
}

/// Certain is what chance would show in one of forty comparisons at most if no headline figure were slower by more than
/// the limit: the same side of the 95 % interval, and Holm's method, as of the verdict.
fn slower(rows: &[Row], limit: Ratio) -> Slower {
    let mut found = Slower { limit, certain: Vec::new(), possible: Vec::new() };
    let allowed = |row: &Row| if row.unit.more_is_better() { 1.0 - limit.get() } else { 1.0 + limit.get() };
    let beyond =
        |row: &Row, value: f64| if row.unit.more_is_better() { value < allowed(row) } else { value > allowed(row) };
    let judged = judged(rows);
    let chances: Vec<f64> = judged
        .iter()
        .map(|(_, row, change)| change.chance(allowed(row)).filter(|_| beyond(row, change.ratio)).unwrap_or(1.0))
        .collect();
    let certain = holm(&chances, (1.0 - CONFIDENCE) / 2.0);
    for ((run, row, change), certain) in judged.iter().zip(certain) {
        let reaches = change
            .interval
            .is_some_and(|interval| beyond(row, interval.low) || beyond(row, interval.high.unwrap_or(f64::INFINITY)));
        if certain {
            found.certain.push((*run, row.name.clone()));
        } else if reaches {
            found.possible.push((*run, row.name.clone()));
        }
    }
    found
}
