//! Other tools' figures in our terms: which of our loads each load corresponds to, its latencies,
//! and time series.
//!
//! Input: imported figures. Output: figures for reports and comparisons. What the tool does not
//! report is `None`.

use super::rounds::{Round, RoundEnd};
use crate::figures::latency::{LatencySummary, Statistic};
use crate::point::coverage::CoverageSummary;
use crate::point::events::Events;
use crate::point::summary::{ClassSummary, PointSummary, ReportedFigures};
use rigel_model::record::End;
use rigel_model::record::database::Printed;
use rigel_model::record::imported::{
    Counted, Figures, Flow, Imported, ImportedSeries, LoadPoint, ReportedLatency, ReportedLoad,
};
use rigel_model::{Coordinates, MIB, Moment, Resolution, Step, SyncMethod, arithmetic};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Summary of one imported source.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ImportedSummary {
    /// The files it was read from.
    pub sources: Vec<String>,
    /// The tool that wrote them.
    pub tool: String,
    /// Its version; `None` if not reported.
    pub version: Option<String>,
    /// What it reports about the host, the target and the options.
    #[serde(rename = "told")]
    pub reported: Vec<(String, String)>,
    /// Notes for the reader of the figures.
    pub notes: Vec<String>,
    /// Figures at each load.
    pub loads: Vec<LoadFigures>,
    /// Time series.
    pub series: Vec<SeriesSummary>,
}

impl ImportedSummary {
    /// True for the loads of a scale-up series, which are of a database's reports: their number is
    /// that of sessions, which do other work than I/O as well.
    pub fn is_of_sessions(&self) -> bool {
        !self.loads.is_empty() && matches!(self.tool.as_str(), "AWR" | "Statspack" | "Oracle")
    }

    /// `fio 3.33`.
    pub fn tool_and_version(&self) -> String {
        self.version.as_ref().map_or_else(
            || self.tool.clone(),
            |version| format!("{} {version}", self.tool),
        )
    }
}

/// Figures of one class and kind of operation at one load. `None` means that the tool does not
/// report it.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LoadFigures {
    /// The tool's name of the load.
    pub label: String,
    /// The load in words: `depth 8`, `500/s`, `Small=1, Large=0`.
    pub load: String,
    /// Name of the corresponding point of ours, such as `depth:8`; `None` if there is none.
    pub like: Option<String>,
    /// `small` or `large`.
    pub class: String,
    /// `read`, `write`, `mixed` or `trim`.
    pub kind: String,
    /// Bytes of one operation.
    pub io_bytes: Option<u32>,
    /// Measured time in seconds.
    pub seconds: Option<f64>,
    /// Completed operations.
    pub done: Option<u64>,
    /// Operations per second.
    pub iops: Option<f64>,
    /// 2^20 bytes per second.
    pub mib_per_s: Option<f64>,
    /// Response times, including submission.
    #[serde(flatten)]
    pub latency: LatencySummary<Option<f64>>,
    /// The times of the quantiles: `total`, or `completion` if they exclude submission.
    pub quantiles_of: Option<String>,
    /// Rate times mean: the average number of outstanding operations by Little's law.
    pub littles_law: Option<f64>,
    /// Requested number of outstanding operations.
    pub outstanding: Option<u32>,
    /// Number of processes that share the load.
    pub processes: Option<u32>,
    /// Operations that took less than a microsecond, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below_1_us: Option<u64>,
    /// The quantiles that are missing are at least so long: the tool's histogram ends there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least_us: Option<f64>,
}

/// Summary of a time series.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeriesSummary {
    /// Name of the series.
    pub name: String,
    /// Unit of its values; empty if not reported.
    pub unit: String,
    /// Start of the first sample.
    pub begin: Option<Moment>,
    /// End of the last sample, or its start if it does not say how long it took.
    pub end: Option<Moment>,
    /// Median of the values.
    pub median: Option<f64>,
    /// The minimum value, and when its sample began.
    pub least: Option<(f64, Moment)>,
    /// The maximum value, and when its sample began.
    pub greatest: Option<(f64, Moment)>,
    /// The samples.
    pub samples: Vec<Counted>,
}

/// Summarises one imported source.
pub fn imported(source: &Imported) -> ImportedSummary {
    let (loads, series) = match &source.figures {
        Figures::Loads(points) => (load_figures(points), Vec::new()),
        Figures::Series(series) => (Vec::new(), series.iter().map(series_figures).collect()),
        Figures::Database(_) | Figures::Claims(_) => (Vec::new(), Vec::new()),
    };
    ImportedSummary {
        sources: source.sources.clone(),
        tool: source.tool.clone(),
        version: source.version.clone(),
        reported: source.reported.clone(),
        notes: source
            .notes
            .iter()
            .cloned()
            .chain(gaps(&source.figures))
            .collect(),
        loads,
        series,
    }
}

// ---- loads ----

/// One line for each kind of each load, and another for both together if a class reads and writes.
fn load_figures(points: &[LoadPoint]) -> Vec<LoadFigures> {
    let places = places(points);
    let mut all = Vec::new();
    for (point, place) in points.iter().zip(places) {
        for flow in &point.flows {
            all.push(figures(point, flow, place));
        }
        for both in classes(point)
            .into_iter()
            .filter(|both| !point.flows.contains(both))
        {
            all.push(figures(point, &both, place));
        }
    }
    all
}

/// The figures of one kind of operation at a load; `place` is the corresponding load of ours.
pub(super) fn figures(point: &LoadPoint, flow: &Flow, place: Option<Coordinates>) -> LoadFigures {
    let us = |ns: Option<f64>| ns.map(|ns| ns / 1e3);
    // If the time to submit was not added, the completion times are the next best, and are labelled
    // as such.
    let total = flow.latency("total").or_else(|| flow.latency("completion"));
    let timed = quantiles(flow);
    let end = timed.and_then(quantiles_end);
    let iops = rate(point, flow);
    let outstanding = match (&point.load, flow.class.as_str()) {
        (ReportedLoad::Cell { small, .. }, "small") => Some(*small),
        (ReportedLoad::Cell { large, .. }, _) => Some(*large),
        (ReportedLoad::Closed { depth }, _) => Some(*depth),
        (ReportedLoad::Open { .. } | ReportedLoad::Other(_), _) => None,
    };
    let mean = total.and_then(|total| total.mean);
    LoadFigures {
        label: point.label.clone(),
        load: words_of(point, flow),
        like: place.map(|place| place.name()),
        class: flow.class.clone(),
        kind: flow.kind.clone(),
        io_bytes: flow.io_bytes,
        seconds: point.seconds,
        done: flow.done,
        iops,
        mib_per_s: bytes_per_s(point, flow).map(|bytes| bytes / MIB as f64),
        latency: LatencySummary::from_figures(|figure| {
            us(match figure.statistic() {
                Statistic::Mean => mean,
                Statistic::Deviation => total?.deviation,
                Statistic::Min => total?.min,
                Statistic::Quantile(quantile) => timed?
                    .quantile(quantile)
                    .filter(|ns| end.is_none_or(|end| *ns < end)),
                Statistic::Max => total?.max,
            })
        }),
        quantiles_of: timed.map(|timed| timed.of.clone()),
        littles_law: match flow.kind.as_str() {
            "sync" => outstanding_of(point, &flow.class),
            _ => own_outstanding(point, flow),
        },
        outstanding,
        processes: point.processes,
        below_1_us: timed.and_then(below_1_us).filter(|_| {
            // A completion that came before its submission returned has no time of its own.
            total
                .and_then(|total| total.min)
                .is_none_or(|min| min < LEAST_NS as f64)
        }),
        at_least_us: us(end),
    }
}

/// Operations per second. Rates of processes add up only if all of them ran together.
fn rate(point: &LoadPoint, flow: &Flow) -> Option<f64> {
    rate_of_all(point, flow.done?).or(flow.iops)
}

fn bytes_per_s(point: &LoadPoint, flow: &Flow) -> Option<f64> {
    match flow.done.and_then(|done| rate_of_all(point, done)) {
        Some(rate) => Some(rate * f64::from(flow.io_bytes?)),
        None => flow.bytes_per_s,
    }
}

/// The share of the longest process's time in which all processes ran, if it is below 100 % as printed. A process
/// ends when its last operation does, so its length is known to within the longest operation.
pub(super) fn together(point: &LoadPoint) -> Option<f64> {
    let all = point.process_seconds.iter().copied();
    let (shortest, longest) = (all.clone().reduce(f64::min)?, all.reduce(f64::max)?);
    let share = shortest / longest;
    let is_apart = rate_of_processes(point, 1).is_some() && (share * 100.0).round() < 100.0;
    is_apart.then_some(share)
}

fn rate_of_all(point: &LoadPoint, done: u64) -> Option<f64> {
    together(point).and_then(|_| rate_of_processes(point, done))
}

fn rate_of_processes(point: &LoadPoint, done: u64) -> Option<f64> {
    /// Half a millisecond.
    const HALF: f64 = 5e-4;
    let latencies = point.flows.iter().flat_map(|flow| &flow.latencies);
    let longest_ns = latencies.filter_map(|one| one.max).fold(0.0, f64::max);
    let half = HALF + longest_ns / 2e9;
    let seconds = point.process_seconds.iter();
    let seconds: Vec<Printed> = seconds.map(|value| (*value, half).into()).collect();
    arithmetic::rate_of_all(done, &seconds)
}

/// Rate times mean.
fn own_outstanding(point: &LoadPoint, flow: &Flow) -> Option<f64> {
    let total = flow.latency("total").or_else(|| flow.latency("completion"));
    let (low, high) = arithmetic::outstanding(&[(
        (rate(point, flow)?, 0.0).into(),
        (total?.mean? / 1e9, 0.0).into(),
    )]);
    Some(f64::midpoint(low, high))
}

/// Operations of a class that were outstanding on average, by Little's law: of all kinds, and while writes were
/// synced.
pub(super) fn outstanding_of(point: &LoadPoint, class: &str) -> Option<f64> {
    let of_class = || point.flows.iter().filter(|flow| flow.class == class);
    let is_single = |flow: &&Flow| flow.kind != "mixed";
    let singles: Option<Vec<f64>> = of_class()
        .filter(is_single)
        .map(|flow| own_outstanding(point, flow))
        .collect();
    match singles {
        Some(singles) if !singles.is_empty() => Some(singles.iter().sum()),
        _ => own_outstanding(point, of_class().find(|flow| !is_single(flow))?),
    }
}

/// Width of a bin of fio's histogram, and at most that of ours, as a part of its time.
const BIN: f64 = 1.0 / 64.0;

/// The time from which on quantiles are lower bounds: where the tool's histogram ends, or the greatest quantile if
/// the mean is above what it allows.
pub(super) fn quantiles_end(timed: &ReportedLatency) -> Option<f64> {
    let greatest = timed.quantiles.last().map(|(_, value)| *value);
    let at_end = timed.histogram_end.and_then(|end| {
        let reported = timed.quantiles.iter().map(|(_, value)| *value);
        reported
            .filter(|value| *value >= end)
            .reduce(f64::min)
            .or(Some(end * (1.0 - BIN)))
    });
    let contradicted = || {
        let (mean, max) = (timed.mean?, timed.max?);
        let most = arithmetic::mean_max(&timed.quantiles, 1.0 + BIN, max);
        greatest.filter(|_| mean > most * (1.0 + 1e-9))
    };
    at_end.or_else(contradicted)
}

/// No storage answers in less.
const LEAST_NS: u64 = 1000;

/// Operations in buckets below a microsecond; `None` if there are none.
fn below_1_us(timed: &ReportedLatency) -> Option<u64> {
    let buckets = timed
        .histogram
        .iter()
        .flat_map(rigel_model::record::Histogram::buckets);
    let below = buckets.take_while(|(_, high, _)| *high < LEAST_NS);
    Some(below.map(|(.., count)| count).sum()).filter(|count| *count > 0)
}

/// The times with quantiles: those of whole operations, or else those without submission.
pub(super) fn quantiles(flow: &Flow) -> Option<&ReportedLatency> {
    let has = |timed: &&ReportedLatency| timed.histogram.is_some() || !timed.quantiles.is_empty();
    ["total", "completion"]
        .iter()
        .find_map(|of| flow.latency(of).filter(has))
}

/// The load of one kind of operation in words: syncs follow writes.
fn words_of(point: &LoadPoint, flow: &Flow) -> String {
    match &point.syncs {
        Some(syncs) if flow.kind == "sync" => {
            let name = match syncs.method {
                SyncMethod::Fsync => "fsync",
                _ => "fdatasync",
            };
            match syncs.writes_each {
                1 => format!("{name} after each write"),
                each => format!("{name} after {each} writes"),
            }
        }
        _ => words(point),
    }
}

pub(super) fn words(point: &LoadPoint) -> String {
    match &point.load {
        ReportedLoad::Cell { small, large } => Coordinates::cell(*small, *large).to_string(),
        ReportedLoad::Closed { depth } => match point.processes {
            Some(processes) if processes > 1 => format!("depth {depth}, {processes} processes"),
            _ => format!("depth {depth}"),
        },
        ReportedLoad::Open { rate, in_flight } => {
            format!("{rate}/s, {in_flight} in flight at most")
        }
        ReportedLoad::Other(words) => words.clone(),
    }
}

/// The flows of a load, one per class: reads and writes of a class are combined, unless the tool
/// reports them together, too. Where writes are synced, the syncs stand for them.
fn classes(point: &LoadPoint) -> Vec<Flow> {
    let mut classes: Vec<(String, Vec<&Flow>)> = Vec::new();
    for flow in &point.flows {
        match classes.iter_mut().find(|(name, _)| *name == flow.class) {
            Some((_, flows)) => flows.push(flow),
            None => classes.push((flow.class.clone(), vec![flow])),
        }
    }
    classes
        .into_iter()
        .map(|(name, flows)| {
            match flows
                .iter()
                .find(|flow| matches!(&*flow.kind, "mixed" | "sync"))
            {
                Some(together) => (*together).clone(),
                None if flows.len() == 1 => flows[0].clone(),
                None => both(name, &flows),
            }
        })
        .collect()
}

fn both(class: String, flows: &[&Flow]) -> Flow {
    let sum = |of: fn(&Flow) -> Option<f64>| flows.iter().map(|flow| of(flow)).sum::<Option<f64>>();
    let timed = |of: &str| {
        let all: Option<Vec<ReportedLatency>> =
            flows.iter().map(|flow| flow.latency(of).cloned()).collect();
        all.map(|all| ReportedLatency::together(of, &all))
    };
    let size = flows[0].io_bytes;
    Flow {
        class,
        kind: "mixed".into(),
        io_bytes: size.filter(|_| flows.iter().all(|flow| flow.io_bytes == size)),
        done: flows
            .iter()
            .try_fold(0u64, |sum, flow| sum.checked_add(flow.done?)),
        iops: sum(|flow| flow.iops),
        bytes_per_s: sum(|flow| flow.bytes_per_s),
        latencies: ["total", "completion", "submission"]
            .into_iter()
            .filter_map(timed)
            .collect(),
    }
}

/// The workload of a load: two loads with different workloads are not on one curve.
fn work(point: &LoadPoint) -> (Option<&str>, Option<u64>, Option<u32>) {
    let writes = point.writes_percent.map(f64::to_bits);
    (
        point.pattern.as_deref(),
        writes,
        point.flows.first().and_then(|flow| flow.io_bytes),
    )
}

/// True if all loads have the same workload, as those of a curve do.
pub fn is_one_work(points: &[LoadPoint]) -> bool {
    points.windows(2).all(|two| work(&two[0]) == work(&two[1]))
}

/// The corresponding load of ours for each load; `None` if there is none.
///
/// Loads of one workload are points of a curve. Loads of several workloads are steps of
/// `calibrate`: small random reads, large random reads, one stream of large sequential reads, small
/// random writes.
///
/// A sweep has the same number of outstanding operations in several numbers of processes. The one
/// with the fewest processes is the corresponding load: Rigel's are of one process.
pub fn places(points: &[LoadPoint]) -> Vec<Option<Coordinates>> {
    let is_curve = is_one_work(points);
    let mut places: Vec<Option<Coordinates>> =
        points.iter().map(|point| place(point, is_curve)).collect();
    let mut fewest: BTreeMap<Coordinates, u32> = BTreeMap::new();
    for (place, point) in places.iter().zip(points) {
        if let (Some(place), Some(processes)) = (place, point.processes) {
            let least = fewest.entry(*place).or_insert(processes);
            *least = processes.min(*least);
        }
    }
    for (place, point) in places.iter_mut().zip(points) {
        let least = place.and_then(|place| fewest.get(&place));
        if point
            .processes
            .is_some_and(|processes| Some(&processes) != least)
        {
            *place = None;
        }
    }
    places
}

fn place(point: &LoadPoint, is_curve: bool) -> Option<Coordinates> {
    if let Some(sync) = point.flows.iter().find(|flow| flow.kind == "sync") {
        return Some(Coordinates::Log {
            bytes: sync.io_bytes?,
            log: Some(point.syncs.as_ref()?.log?),
            writers: point.processes?,
        })
        .filter(|_| point.beside.is_empty());
    }
    if !point.beside.is_empty() || point.flows.iter().any(|flow| flow.kind == "trim") {
        return None;
    }
    let is_large = point.flows.first()?.class == "large";
    let kind = (is_large, point.pattern.as_deref(), point.writes_percent);
    let is_small_read = matches!(kind, (false, Some("uniform"), Some(0.0)));
    match point.load {
        ReportedLoad::Cell { small, large } => Some(Coordinates::cell(small, large)),
        ReportedLoad::Open { rate, in_flight } if is_curve || is_small_read => {
            Some(Coordinates::Rate {
                rate_per_s: rate,
                in_flight_max: in_flight,
                large_beside: 0,
            })
        }
        ReportedLoad::Closed { depth } if is_curve || is_small_read => {
            Some(Coordinates::at_depth(depth))
        }
        ReportedLoad::Closed { depth } => match kind {
            (true, Some("uniform"), Some(0.0)) => Some(Coordinates::Large { depth }),
            (true, Some("sequential"), Some(0.0)) if depth == 1 => Some(Coordinates::Stream),
            (false, Some("uniform"), Some(100.0)) => Some(Coordinates::Write { depth }),
            _ => None,
        },
        ReportedLoad::Open { .. } | ReportedLoad::Other(_) => None,
    }
}

/// The points with a corresponding load of ours, summarised like ours. They have no intervals and
/// no coverage, because other tools record neither.
pub fn summaries(all: &[Imported]) -> Vec<PointSummary> {
    let mut summaries = Vec::new();
    for source in all {
        let Figures::Loads(points) = &source.figures else {
            continue;
        };
        let is_curve = is_one_work(points);
        for (point, place) in points.iter().zip(places(points)) {
            let Some(place) = place else { continue };
            let name = |flow: &Flow| {
                if is_curve && place.step() != Step::Cell {
                    "small".into()
                } else {
                    flow.class.clone()
                }
            };
            let classes = classes(point)
                .iter()
                .map(|flow| class(name(flow), point, flow))
                .collect();
            summaries.push(summary(point, place, classes));
        }
    }
    summaries
}

fn summary(point: &LoadPoint, place: Coordinates, classes: Vec<ClassSummary>) -> PointSummary {
    PointSummary {
        coordinates: place,
        end: End::Complete,
        started: point
            .began
            .map_or_else(String::new, |began| began.to_string()),
        warm_up_s: 0.0,
        measured_s: point.seconds.unwrap_or(0.0),
        cpu_us_per_io: None,
        of_ranks: Vec::new(),
        ranks: None,
        classes,
        witness: None,
        sql: None,
        visits: Vec::new(),
        verified: None,
        syncs: None,
        is_widened: false,
        findings: Vec::new(),
    }
}

fn class(name: String, point: &LoadPoint, flow: &Flow) -> ClassSummary {
    let reported = figures(point, flow, None);
    let done = flow.done.unwrap_or(0);
    let of_kind = |kind: &str| {
        point
            .flows
            .iter()
            .filter(|flow| flow.kind == kind)
            .filter_map(|flow| flow.done)
            .sum()
    };
    ClassSummary {
        name,
        io_bytes: flow.io_bytes.unwrap_or(0),
        outstanding: reported.outstanding.unwrap_or(0),
        in_flight_max: reported.outstanding.unwrap_or(0).into(),
        done,
        reads: of_kind("read"),
        writes: of_kind("write"),
        failed: BTreeMap::new(),
        unserved: 0,
        offered: if let ReportedLoad::Open { rate, .. } = point.load {
            Some(rate as f64)
        } else {
            None
        },
        met: None,
        is_too_short: false,
        iops: reported.iops.unwrap_or(0.0),
        mib_per_s: reported.mib_per_s.unwrap_or(0.0),
        latency: reported.latency.all(),
        kernel_mean_us: None,
        kernel_mean_unknown: None,
        confidence: None,
        service: None,
        scheduling_delay: None,
        within: None,
        late: None,
        objective: None,
        expected: Vec::new(),
        littles_law: reported.littles_law.unwrap_or(0.0),
        lost: None,
        stalls: Events::default(),
        steady: None,
        coverage: CoverageSummary {
            blocks: 0,
            watched: 0,
            distinct: 0,
            expected: None,
            expected_deviation: None,
            slices_touched: 0,
            slices: 0,
        },
        parts: Vec::new(),
        times: Arc::default(),
        reported: Some(ReportedFigures {
            bytes_per_s: bytes_per_s(point, flow),
            latency: reported.latency,
        }),
    }
}

// ---- series ----

/// An interval between samples is a gap if it exceeds the usual interval by this factor.
const GAP: f64 = 1.5;

/// Usual seconds between samples: the median of the intervals above zero, the upper one if there
/// are two.
fn usual_interval(series: &ImportedSeries) -> Option<f64> {
    let between = series
        .samples
        .windows(2)
        .map(|two| two[1].begin.since(two[0].begin));
    let mut intervals: Vec<i64> = between.filter(|seconds| *seconds > 0).collect();
    intervals.sort_unstable();
    intervals
        .get(intervals.len() / 2)
        .map(|seconds| *seconds as f64)
}

/// Duration of each sample. A sample without one lasts until the next sample begins, but over a gap
/// no longer than usual, because nothing was counted there. The last sample lasts as long as the
/// one before it.
fn lengths(series: &ImportedSeries) -> Vec<f64> {
    let usual = usual_interval(series).unwrap_or(0.0);
    let until_next = |at: usize| {
        let (this, next) = (series.samples.get(at)?, series.samples.get(at + 1)?);
        let seconds = Some(next.begin.since(this.begin) as f64).filter(|seconds| *seconds > 0.0)?;
        Some(if seconds > GAP * usual {
            usual
        } else {
            seconds
        })
    };
    let length = |(at, sample): (usize, &Counted)| {
        sample
            .seconds
            .or_else(|| until_next(at))
            .or_else(|| until_next(at.checked_sub(1)?))
            .unwrap_or(0.0)
    };
    series.samples.iter().enumerate().map(length).collect()
}

/// A note about gaps in the longest series; `None` if there is no gap.
fn gaps(figures: &Figures) -> Option<String> {
    let Figures::Series(all) = figures else {
        return None;
    };
    let series = all.iter().max_by_key(|series| series.samples.len())?;
    let usual = usual_interval(series)?;
    let ends = series
        .samples
        .iter()
        .zip(lengths(series))
        .map(|(sample, seconds)| after(sample.begin, seconds));
    let spans = ends
        .zip(series.samples.iter().skip(1))
        .map(|(end, next)| (end, next.begin));
    let is_gap = |(from, to): &(Moment, Moment)| to.since(*from) as f64 >= (GAP - 1.0) * usual;
    let gaps: Vec<(Moment, Moment)> = spans.filter(is_gap).collect();
    let (from, to) = gaps.iter().max_by_key(|(from, to)| to.since(*from))?;
    let shown = |at: &Moment| at.shown(Resolution::of_steps(usual));
    let span = format!("from {} to {}", shown(from), shown(to));
    Some(match gaps.len() {
        1 => format!("there are no samples {span}"),
        count => format!("there are {count} gaps without samples, the longest {span}"),
    })
}

/// The moment `seconds` after `begin`, rounded to the second.
#[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
fn after(begin: Moment, seconds: f64) -> Moment {
    begin.plus_seconds(seconds.round().clamp(0.0, 1e9) as i64)
}

/// The samples of a series as rounds, for the analysis of hours or days.
pub fn rounds(series: &ImportedSeries) -> Vec<Round> {
    let is_per_second = series.unit.ends_with("/s");
    let round = |(at, (sample, seconds)): (usize, (&Counted, f64))| {
        let rate = sample.rate();
        let counted = || {
            if is_per_second {
                rate.map_or(0.0, |rate| rate * seconds)
            } else {
                0.0
            }
        };
        Round {
            number: u32::try_from(at + 1).unwrap_or(u32::MAX),
            begin: sample.begin,
            seconds,
            done: sample.count.unwrap_or_else(counted),
            failed: 0,
            unserved: 0,
            asked: None,
            offered_per_s: None,
            rate,
            latency: LatencySummary::default(),
            end: RoundEnd::Whole,
            kept: Vec::new(),
            host: None,
        }
    };
    series
        .samples
        .iter()
        .zip(lengths(series))
        .enumerate()
        .map(round)
        .collect()
}

fn series_figures(series: &ImportedSeries) -> SeriesSummary {
    let mut values: Vec<(f64, Moment)> = series
        .samples
        .iter()
        .filter_map(|sample| Some((sample.rate()?, sample.begin)))
        .collect();
    values.sort_by(|one, other| one.0.total_cmp(&other.0));
    let middle = values.len() / 2;
    let median = match values.len() {
        0 => None,
        n if n % 2 == 1 => Some(values[middle].0),
        _ => Some(f64::midpoint(values[middle - 1].0, values[middle].0)),
    };
    let end = |sample: &Counted| after(sample.begin, sample.seconds.unwrap_or(0.0));
    SeriesSummary {
        name: series.name.clone(),
        unit: series.unit.clone(),
        begin: series.samples.first().map(|sample| sample.begin),
        end: series.samples.last().map(end),
        median,
        least: values.first().copied(),
        greatest: values.last().copied(),
        samples: series.samples.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_import::{Source, csv_columns, fio, table};

    fn cloud_day() -> Imported {
        let text = include_str!("../../../../docs/examples/cloud-day.csv");
        table::read(
            Source {
                name: "cloud-day.csv",
                text,
            },
            &csv_columns::Columns::default(),
        )
        .unwrap()
    }

    fn of_fio(text: &str) -> Imported {
        fio::read(Source {
            name: "f.json",
            text,
        })
        .unwrap()
    }

    #[test]
    fn a_series_becomes_rounds_with_all_its_figures() {
        let Figures::Series(series) = cloud_day().figures else {
            unreachable!("a csv has series")
        };
        let rounds = rounds(&series[0]);
        assert_eq!(rounds.len(), 51);
        let (first, final_one) = (&rounds[0], &rounds[50]);
        assert_eq!((first.number, final_one.number), (1, 51));
        assert_eq!(
            (first.begin.short().as_str(), first.seconds),
            ("2016-04-23 10:17", 1018.0)
        );
        assert!(
            (first.done - 6_385_274.0).abs() < 0.5
                && first.rate == Some(6272.0)
                && first.asked.is_none()
        );
        let summed = imported(&cloud_day());
        let least = summed.series[0].least.unwrap();
        assert!((least.0 - 416.0).abs() < 0.5, "{least:?}");
    }

    #[test]
    fn samples_without_a_length_last_until_the_next_one() {
        let text = "time,value\n2016-04-23T10:00,5\n2016-04-23T10:10,6\n2016-04-23T10:30,7\n";
        let found =
            table::read(Source { name: "f", text }, &csv_columns::Columns::default()).unwrap();
        let Figures::Series(series) = found.figures else {
            unreachable!("a csv has series")
        };
        let seconds: Vec<f64> = rounds(&series[0])
            .iter()
            .map(|round| round.seconds)
            .collect();
        assert_eq!(seconds, [600.0, 1200.0, 1200.0]);
    }

    #[test]
    fn a_sample_before_a_gap_has_the_usual_duration_and_the_gap_is_noted() {
        let of = |text: &str| {
            table::read(Source { name: "f", text }, &csv_columns::Columns::default()).unwrap()
        };
        let times = [
            "1T10:00", "1T10:15", "1T10:30", "1T16:30", "1T16:45", "1T17:00", "2T05:00", "2T05:15",
        ];
        let text = times.map(|time| format!("2026-03-0{time},5\n")).concat();
        let found = of(&text);
        let Figures::Series(series) = &found.figures else {
            unreachable!("a csv has series")
        };
        assert!(
            rounds(&series[0])
                .iter()
                .all(|round| (round.seconds - 900.0).abs() < 0.5)
        );
        let notes = imported(&found).notes.join("; ");
        let expected = "there are 2 gaps without samples, the longest from 2026-03-01 17:15 to \
                        2026-03-02 05:00";
        assert!(notes.contains(expected), "{notes}");
        let without = imported(&of(&text[..text.find("2026-03-02").unwrap()]))
            .notes
            .join("; ");
        assert!(
            without.contains("there are no samples from 2026-03-01 10:45 to 2026-03-01 16:30"),
            "{without}"
        );
        assert!(
            imported(&cloud_day())
                .notes
                .iter()
                .all(|note| !note.contains("there are no samples"))
        );
    }

    #[test]
    fn loads_have_their_place_among_ours() {
        let places_of = |text: &str| {
            let Figures::Loads(points) = of_fio(text).figures else {
                unreachable!("fio has loads")
            };
            places(&points)
                .into_iter()
                .map(|place| place.map(|place| place.name()))
                .collect::<Vec<_>>()
        };
        let named = |names: &[&str]| {
            names
                .iter()
                .map(|name| Some((*name).to_string()))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            places_of(include_str!(
                "../../../../tests/imports/fio_depth8_plus.json"
            )),
            named(&["depth:8"])
        );
        assert_eq!(
            places_of(include_str!("../../../../tests/imports/fio_rate.json")),
            named(&["rate:500"])
        );
        // A small read, a small write, and large reads at depth 2, which correspond to no step.
        let several = places_of(include_str!("../../../../tests/imports/fio_three.json"));
        assert_eq!(
            (&several[..2], &several[2]),
            (&named(&["depth:1", "write:1"])[..], &None)
        );
    }

    #[test]
    fn a_summary_has_only_the_imported_figures() {
        let points = summaries(&[of_fio(include_str!(
            "../../../../tests/imports/fio_depth8_plus.json"
        ))]);
        let class = &points[0].classes[0];
        let latency = class.latency.unwrap();
        assert!((class.iops - 55_479.760_12).abs() < 1e-6 && class.confidence.is_none());
        assert!(
            (latency.mean_us - 143.702_359).abs() < 1e-3,
            "with the time to submit: {latency:?}"
        );
        assert!((latency.p99_us / 240.640 - 1.0).abs() < 1.0 / 64.0);
        let points = summaries(&[of_fio(include_str!(
            "../../../../tests/imports/fio_each.json"
        ))]);
        let class = &points[0].classes[0];
        assert_eq!(
            (class.latency, class.reported.unwrap().latency.p99_us),
            (None, None)
        );
    }

    #[test]
    fn reads_and_writes_of_a_mix_are_put_together_from_their_bins() {
        let reported = imported(&of_fio(include_str!(
            "../../../../tests/imports/fio_mixed_lat.json"
        )));
        let [read, write, both] = &reported.loads[..] else {
            panic!("{:?}", reported.loads)
        };
        assert_eq!(
            (read.kind.as_str(), write.kind.as_str(), both.kind.as_str()),
            ("read", "write", "mixed")
        );
        let p99 = |load: &LoadFigures| load.latency.p99_us.unwrap();
        assert!(p99(both) >= p99(read).min(p99(write)) && p99(both) <= p99(read).max(p99(write)));
        assert!(
            (both.littles_law.unwrap() / 4.0 - 1.0).abs() < 0.1,
            "{both:?}"
        );
    }
}
