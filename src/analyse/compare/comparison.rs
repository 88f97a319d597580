//! Two or more runs side by side: their conditions, the ratio of each figure, and whether it is a
//! real difference.
//!
//! Input: the summaries of the runs' points; the first run is the baseline. Output: conditions that
//! differ, headline figures and load points with their ratio to the baseline and its 95 % interval,
//! and a verdict. Figures are only compared at the same load: the latency at the knee is the one at
//! the depth of the baseline's knee, or at the next greater depth that all runs have. Soaks and
//! imported series have their figures over all rounds instead.
//!
//! At 95 %, one in twenty rows differs by chance. Each row is still judged by its own interval,
//! because it is shown to be looked at. The verdict uses the headline figures only, with Holm's
//! method, so that at most one in twenty comparisons of two runs of the same thing calls them
//! different, whatever the number of figures and runs.

use super::conditions::{Condition, conditions};
use super::difference::{Change, Figure, FigureUnit, Judgement, holm};
use super::subject::{Scope, Subject};
use crate::analyse::figures::statistics::{CONFIDENCE, Interval};
use crate::analyse::point::summary::{ClassSummary, PointSummary};
use crate::analyse::search::calibration;
use crate::analyse::search::shape::curve_shape;
use crate::model::{Bytes, Coordinates, Ratio, Step};
use serde::Serialize;
use std::collections::BTreeMap;

/// One figure of all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Name of the figure.
    pub name: String,
    /// Its unit.
    pub unit: FigureUnit,
    /// True if the verdict uses it.
    pub headline: bool,
    /// The kind of I/O it is about.
    pub scope: Scope,
    /// The figure of each run; `None` where it was not measured.
    pub figures: Vec<Option<Figure>>,
    /// The change of each run but the first, against the first.
    pub changes: Vec<Option<Change>>,
}

/// The change of a class at a load that the run and the baseline both have.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LoadChange {
    /// Index of the run; the baseline is 0.
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

/// The certain differences of a run from the baseline, judged over all headline figures of all runs
/// together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Index of the run; the baseline is 0.
    pub run: usize,
    /// Number of headline figures with an interval.
    pub judged: usize,
    /// Names of headline figures that are worse.
    pub worse: Vec<String>,
    /// Names of headline figures that are better.
    pub better: Vec<String>,
    /// The headline figure known least precisely, and the difference that its interval allows, as
    /// a fraction.
    pub widest: Option<(String, f64)>,
}

/// Headline figures that are slower than the limit allows: a rate lower, or a response time higher,
/// by more than `limit`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Slower {
    /// The limit, as a fraction.
    pub limit: Ratio,
    /// Run and figure of the certain ones.
    pub certain: Vec<(usize, String)>,
    /// Run and figure of the possible ones: the interval reaches beyond the limit.
    pub possible: Vec<(usize, String)>,
}

/// Runs side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Names of the runs, the baseline first.
    pub names: Vec<String>,
    /// Start time of each run.
    pub started: Vec<String>,
    /// Indexes of the incomplete runs.
    pub incomplete: Vec<usize>,
    /// The warnings of each run: how often each was raised, by name.
    pub warnings: Vec<BTreeMap<String, usize>>,
    /// The tool of each imported run. It reports fewer conditions and no intervals.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub imported: BTreeMap<usize, String>,
    /// Number of rounds or samples of each soak or imported series.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub rounds: BTreeMap<usize, usize>,
    /// Conditions that differ.
    pub conditions: Vec<Condition>,
    /// Figures of whole runs.
    pub figures: Vec<Row>,
    /// Loads that a run shares with the baseline.
    pub points: Vec<LoadChange>,
    /// The verdict on each run but the first.
    pub verdicts: Vec<Verdict>,
    /// The figures that exceed the slowdown limit, if one was given.
    pub slower: Option<Slower>,
}

/// Compares the first of `subjects` with each of the others. `slower_limit` is the allowed slowdown
/// as a fraction, if the user gave one.
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
        names: subjects
            .iter()
            .map(|subject| subject.name.clone())
            .collect(),
        started: subjects
            .iter()
            .map(|subject| subject.header.started.clone())
            .collect(),
        incomplete: (0..subjects.len())
            .filter(|index| !subjects[*index].whole)
            .collect(),
        warnings: subjects
            .iter()
            .map(|subject| subject.warnings.clone())
            .collect(),
        imported: subjects
            .iter()
            .enumerate()
            .filter_map(|(run, one)| Some((run, one.imported.clone()?)))
            .collect(),
        rounds: subjects
            .iter()
            .enumerate()
            .filter_map(|(run, one)| Some((run, one.over_time.rounds()?)))
            .collect(),
        points: (1..subjects.len())
            .flat_map(|run| load_changes(subjects, run, &conditions))
            .collect(),
        conditions,
        verdicts: verdicts(&figures, subjects.len()),
        slower: slower_limit.map(|limit| slower(&figures, limit)),
        figures,
    }
}

impl Comparison {
    /// True if the figures of `scope` in this run are of different work than the baseline's; they
    /// are not compared.
    #[must_use]
    pub fn is_of_other_work(&self, run: usize, scope: Scope) -> bool {
        is_of_other_work(&self.conditions, run, scope)
    }

    /// True if there is a ratio between this run and the baseline for at least one figure or load.
    #[must_use]
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
    #[must_use]
    pub fn is_beside(&self, other: &LoadChange) -> bool {
        self.run == other.run && self.load == other.load && self.class != other.class
    }
}

impl FigureUnit {
    fn more_is_better(self) -> bool {
        self != FigureUnit::Microseconds
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

    fn large(&self) -> impl Iterator<Item = PointClass<'_>> {
        self.of(|point| point.step() == Step::Large || point.coordinates.large_alone().is_some())
    }

    fn knee(&self) -> Option<u32> {
        let knee = curve_shape(self.small().map(|(_, class)| class), self.tolerance).knee?;
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

/// The highest sustained rate, with the range up to the lowest rate that was not sustained.
fn sustained_rate(points: &[PointSummary]) -> Option<Figure> {
    let found = calibration::sustained(points);
    let kept = found.kept_rate? as f64;
    let broken = found
        .broken_rate
        .map(|rate| rate as f64)
        .filter(|broken| *broken > kept);
    let between = broken.map(|broken| Interval {
        low: kept,
        high: broken,
    });
    Some(Figure::within(kept, between))
}

fn greatest<'a>(found: impl Iterator<Item = PointClass<'a>>) -> Option<PointClass<'a>> {
    found.max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
}

fn iops((_, class): PointClass) -> Option<Figure> {
    let is_known = class.done > 0 || class.reported.is_some() && class.iops > 0.0;
    is_known.then(|| Figure::of_mean(class.iops, class.confidence.map(|known| known.iops)))
}

fn mb_per_s((_, class): PointClass) -> Option<Figure> {
    if let Some(reported) = class.reported {
        return reported
            .bytes_per_s
            .map(|bytes| Figure::unknown(bytes / 1e6));
    }
    let scale = f64::from(class.io_bytes) / 1e6;
    let mean = class.confidence.map(|known| known.iops.scaled(scale));
    (class.done > 0).then(|| Figure::of_mean(class.iops * scale, mean))
}

/// The compared quantiles.
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

    /// This quantile of the class. Its interval has the rate's degrees of freedom: same windows,
    /// same number of batches.
    fn of(self, (_, class): PointClass) -> Option<Figure> {
        if let Some(reported) = class.reported {
            let value = match self {
                Tail::P50 => reported.p50_us,
                Tail::P99 => reported.p99_us,
                Tail::P999 => reported.p999_us,
            };
            return value.map(Figure::unknown);
        }
        let (latency, known) = (class.latency?, class.confidence);
        let (value, interval) = match self {
            Tail::P50 => (latency.p50_us, known.and_then(|known| known.p50_us)),
            Tail::P99 => (latency.p99_us, known.and_then(|known| known.p99_us)),
            Tail::P999 => (latency.p999_us, known.and_then(|known| known.p999_us)),
        };
        Some(Figure::of_quantile(
            value,
            interval.zip(known.map(|known| known.iops.degrees)),
        ))
    }
}

// ---- the rows ----

fn row(
    subjects: &[Subject],
    name: impl Into<String>,
    unit: FigureUnit,
    headline: bool,
    scope: Scope,
    of: impl Fn(&Subject) -> Option<Figure>,
) -> Row {
    let figures: Vec<Option<Figure>> = subjects.iter().map(of).collect();
    let against =
        |figure: &Option<Figure>| Change::of(&figures[0]?, &(*figure)?, unit.more_is_better());
    let changes = figures.iter().skip(1).map(against).collect();
    Row {
        name: name.into(),
        unit,
        headline,
        scope,
        figures,
        changes,
    }
}

/// Rows of the figures over time that at least one run has.
fn rows_over_time(subjects: &[Subject]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for one in subjects
        .iter()
        .flat_map(|subject| &subject.over_time.figures)
    {
        if rows.iter().all(|row| row.name != one.name) {
            let same = |subject: &Subject| subject.over_time.figure(&one.name, one.unit);
            rows.push(row(
                subjects,
                one.name.clone(),
                one.unit,
                one.headline,
                Scope::All,
                same,
            ));
        }
    }
    rows
}

/// Rows of the figures at loads that at least one run has.
fn rows_at_loads(subjects: &[Subject]) -> Vec<Row> {
    let Some(baseline) = subjects.first() else {
        return Vec::new();
    };
    let rate = |name: &str, of: &dyn Fn(&Subject) -> Option<Figure>| {
        row(
            subjects,
            name,
            FigureUnit::PerSecond,
            true,
            Scope::Small,
            of,
        )
    };
    let mb = |name: &str, of: &dyn Fn(&Subject) -> Option<Figure>| {
        row(
            subjects,
            name,
            FigureUnit::MbPerSecond,
            true,
            Scope::Large,
            of,
        )
    };
    let latencies = |place: &str, depth: u32| {
        // The tail beyond p99 is based on few values: it is shown, but no verdict uses it.
        Tail::ALL.map(|tail| {
            let name = format!("{} {place}", tail.name());
            let of = |subject: &Subject| tail.of(subject.small_at(depth)?);
            row(
                subjects,
                name,
                FigureUnit::Microseconds,
                tail != Tail::P999,
                Scope::Small,
                of,
            )
        })
    };
    let step = |step: Step| move |point: &PointSummary| point.step() == step;
    let is_sql = baseline.points.iter().any(|point| point.sql.is_some());
    let most = if is_sql { "max op/s" } else { "max IOPS" };
    let mut rows = vec![
        rate(most, &|subject| iops(greatest(subject.small())?)),
        mb("max MB/s", &|subject| mb_per_s(greatest(subject.large())?)),
        mb("one process MB/s", &|subject| {
            mb_per_s(subject.of(step(Step::Stream)).next()?)
        }),
    ];
    rows.extend(latencies("at low load", 1));
    if let Some((place, depth)) = knee_in_common(subjects) {
        rows.extend(latencies(&place, depth));
    }
    rows.push(row(
        subjects,
        "knee depth",
        FigureUnit::Outstanding,
        false,
        Scope::Small,
        |subject| {
            subject
                .knee()
                .map(|depth| Figure::unknown(f64::from(depth)))
        },
    ));
    rows.push(sustained(subjects));
    rows.push(rate("writes, IOPS", &|subject| {
        iops(greatest(subject.of(step(Step::Write)))?)
    }));
    let mut sizes: Vec<u32> = baseline
        .points
        .iter()
        .filter_map(|point| log_size(point.coordinates))
        .collect();
    sizes.sort_unstable();
    for size in sizes {
        let name = format!("log writes of {}, /s", Bytes(size.into()));
        // The name contains the size, so sizes cannot be confused.
        let mut row = rate(&name, &|subject| {
            iops(
                subject
                    .of(|point| log_size(point.coordinates) == Some(size))
                    .next()?,
            )
        });
        row.scope = Scope::Log;
        rows.push(row);
    }
    rows.retain(|row| row.figures.iter().any(Option::is_some));
    rows
}

/// The depth of the baseline's knee, and its name. If a run was not measured there, the next
/// greater depth that all runs have, because each search visits different depths. `None` at depth
/// 1, which is the low load.
fn knee_in_common(subjects: &[Subject]) -> Option<(String, u32)> {
    let (baseline, others) = subjects.split_first()?;
    let knee = baseline.knee()?;
    let in_common = |depth: &u32| others.iter().all(|other| other.small_at(*depth).is_some());
    let depths = baseline.small().filter_map(|(point, _)| depth_alone(point));
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

fn log_size(coordinates: Coordinates) -> Option<u32> {
    if let Coordinates::Log { bytes } = coordinates {
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

/// The row of the sustained rate. It is shown but not judged: the search between two rates has no
/// known error. Chance at the edge of the bound moves it, and in one of eight pairs of runs on one
/// device, one run keeps a rate that the other breaks. Under different bounds there is no ratio
/// either.
fn sustained(subjects: &[Subject]) -> Row {
    let of = |subject: &Subject| sustained_rate(&subject.points);
    let mut row = row(
        subjects,
        "sustained rate",
        FigureUnit::PerSecond,
        false,
        Scope::Small,
        of,
    );
    let bound = subjects[0].term(BOUND);
    for (change, subject) in row.changes.iter_mut().zip(&subjects[1..]) {
        *change = change.filter(|_| subject.term(BOUND) == bound);
    }
    row
}

/// Name of the term with the latency bound of the sustained rate.
pub const BOUND: &str = "bound on latency";

/// The loads that this run shares with the baseline, in order. Passes over a part of the volume are
/// left out: they distinguish a cache from a device. Loads of different work, according to
/// `conditions`, are left out too.
fn load_changes(subjects: &[Subject], run: usize, conditions: &[Condition]) -> Vec<LoadChange> {
    let mut points: Vec<&PointSummary> = subjects[0]
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
    let mut found = Vec::new();
    for before in points {
        let either_imported = subjects[0].imported.is_some() || subjects[run].imported.is_some();
        let same = |point: &&PointSummary| is_same_load(before, point, either_imported);
        let Some(after) = subjects[run].points.iter().find(same) else {
            continue;
        };
        for one in &before.classes {
            let Some(other) = after.classes.iter().find(|other| other.name == one.name) else {
                continue;
            };
            // If classes run together, each depends on the other's size.
            let scope = match one.name.as_str() {
                _ if before.classes.len() > 1 => Scope::All,
                "large" => Scope::Large,
                _ => Scope::Small,
            };
            if is_of_other_work(conditions, run, scope) {
                continue;
            }
            let change = |of: &dyn Fn(PointClass) -> Option<Figure>, more_is_better| {
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

/// True if both points have the same load. Tools differ in their in-flight limit at an offered
/// rate; if the rate is met, it is the same load all the same.
fn is_same_load(one: &PointSummary, other: &PointSummary, either_imported: bool) -> bool {
    let offered = |point: &PointSummary| match point.coordinates {
        Coordinates::Rate {
            rate_per_s,
            large_beside,
            ..
        } => Some((rate_per_s, large_beside)),
        _ => None,
    };
    let is_same_rate = || offered(one).is_some() && offered(one) == offered(other);
    one.coordinates == other.coordinates || either_imported && is_same_rate()
}

// ---- the verdict ----

/// The headline figures with a known error, and the run of each.
fn judged(rows: &[Row]) -> Vec<(usize, &Row, Change)> {
    let of =
        |row| move |(index, change): (usize, &Option<Change>)| Some((index + 1, row, (*change)?));
    let changes = rows
        .iter()
        .filter(|row| row.headline)
        .flat_map(|row| row.changes.iter().enumerate().filter_map(of(row)));
    changes
        .filter(|(.., change)| change.chance(1.0).is_some())
        .collect()
}

fn verdicts(rows: &[Row], runs: usize) -> Vec<Verdict> {
    let judged = judged(rows);
    let chances: Vec<f64> = judged
        .iter()
        .filter_map(|(.., change)| change.chance(1.0))
        .map(|one| 2.0 * one)
        .collect();
    let certain = holm(&chances, 1.0 - CONFIDENCE);
    let room = |change: &Change| {
        let interval = change.interval?;
        Some((interval.high.unwrap_or(f64::INFINITY) - 1.0).max(1.0 / interval.low - 1.0))
    };
    let verdict = |run| {
        let of_run = || {
            judged
                .iter()
                .zip(&certain)
                .filter(move |((of, ..), _)| *of == run)
        };
        let named = |wanted: Judgement| {
            let named =
                of_run().filter(|((.., change), certain)| **certain && change.judgement == wanted);
            named.map(|((_, row, _), _)| row.name.clone()).collect()
        };
        let rooms =
            of_run().filter_map(|((_, row, change), _)| Some((row.name.clone(), room(change)?)));
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

/// Figures slower than the limit. "Certain" means: if no headline figure were slower by more than
/// the limit, at most one in forty comparisons would show this by chance. That is one side of the
/// 95 % interval, with Holm's method as for the verdict.
fn slower(rows: &[Row], limit: Ratio) -> Slower {
    let mut found = Slower {
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
    let chances: Vec<f64> = judged
        .iter()
        .map(|(_, row, change)| {
            change
                .chance(allowed(row))
                .filter(|_| beyond(row, change.ratio))
                .unwrap_or(1.0)
        })
        .collect();
    let certain = holm(&chances, (1.0 - CONFIDENCE) / 2.0);
    for ((run, row, change), certain) in judged.iter().zip(certain) {
        let reaches = change.interval.is_some_and(|interval| {
            beyond(row, interval.low) || beyond(row, interval.high.unwrap_or(f64::INFINITY))
        });
        if certain {
            found.certain.push((*run, row.name.clone()));
        } else if reaches {
            found.possible.push((*run, row.name.clone()));
        }
    }
    found
}
