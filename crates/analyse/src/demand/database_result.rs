//! The reports of an import together: series of each instance, sums over instances, findings.

use super::database_figures::DatabaseFigures;
use super::event_distribution::{EventDistribution, event_distributions};
use super::loops::{self, LoopFigures};
use super::{checks, notes, rates, report_figures, scale_up, streams};
use crate::series::soak::SoakResult;
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::{ReportKind, WaitTable};
use rigel_model::record::imported::{Counted, Figures, Imported, ImportedSeries};
use rigel_model::{
    Demand, DemandInterval, DemandStream, Finding, FindingName, LatencyShare, LeftOut, LogKind,
    Moment, file_name,
};
use rigel_stats::robust::median;
use serde::Serialize;

/// How far apart the snapshots of two instances may begin to be one window.
pub(super) const SAME_WINDOW_S: i64 = 90;

/// The share of DB time of an event in a report.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WaitShare {
    /// Position of the report in [`DatabaseResult::figures`].
    pub report: usize,
    /// The event, or the CPU.
    pub event: String,
    /// Its share of DB time in percent.
    pub percent: f64,
}

/// What reports of databases say.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DatabaseResult {
    /// Figures of each report, in order of time.
    pub figures: Vec<DatabaseFigures>,
    /// A demand for each instance; then the sum over the instances of a RAC database, if all are
    /// there.
    pub demands: Vec<Demand>,
    /// What the sessions of each spool did, in order of sessions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loops: Vec<LoopFigures>,
    /// The most important waits of each report.
    pub waits: Vec<WaitShare>,
    /// The waits of each event, of files that have nothing but distributions.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub distributions: Vec<EventDistribution>,
    /// Parameters that matter to I/O, of the first report.
    pub parameters: Vec<(String, String)>,
    /// The analysis of the requests of one instance over time.
    #[serde(skip)]
    pub series: Option<SoakResult>,
    /// Findings about the reports.
    #[serde(skip)]
    pub findings: Vec<Finding>,
}

impl DatabaseResult {
    /// True if any rate or mean of a stream of I/O is known: listings have distributions alone.
    pub fn has_streams(&self) -> bool {
        let intervals = self.demands.iter().flat_map(|demand| &demand.intervals);
        let mut streams = intervals.flat_map(|interval| &interval.streams);
        streams.any(|stream| stream.per_s.or(stream.mean_us).is_some())
    }

    /// Position of the demand that answers for the storage: the sum over all instances if it is
    /// there, else the one with the most operations.
    pub fn main_demand(&self) -> Option<usize> {
        let peak = |at: &usize| self.demands[*at].peak_operations_per_s();
        (0..self.demands.len()).max_by(|one, other| peak(one).total_cmp(&peak(other)))
    }
}

/// A report with what was derived from it.
struct Derived<'a> {
    source: String,
    report: &'a DatabaseReport,
    interval: DemandInterval,
    sessions: Option<u32>,
    findings: Vec<Finding>,
}

/// The result of all reports; `None` if there are none.
pub fn database(all: &[Imported]) -> Option<DatabaseResult> {
    let mut derived: Vec<Derived> = Vec::new();
    for one in all {
        let Figures::Database(reports) = &one.figures else {
            continue;
        };
        let together: Vec<&DatabaseReport> = reports.iter().collect();
        let sessions = scale_up::sessions(&together);
        for (at, report) in reports.iter().enumerate() {
            let interval = streams::interval(report);
            let findings = checks::findings(report);
            derived.push(Derived {
                source: one.tool.clone(),
                report,
                interval,
                sessions: sessions.as_ref().map(|sessions| sessions[at]),
                findings,
            });
        }
    }
    if derived.is_empty() {
        return None;
    }
    derived.sort_by_key(|one| (one.sessions, one.report.window.begin));
    let groups = groups(&derived);
    let mut findings = Vec::new();
    let mut demands = Vec::new();
    for group in &groups {
        let (demand, of_group) = demand(&derived, group);
        demands.push(demand);
        findings.extend(of_group);
    }
    findings.extend(sums(&derived, &groups, &mut demands));
    let series = groups
        .iter()
        .max_by_key(|group| group.len())
        .and_then(|group| series(&derived, group));
    let figures = derived
        .iter()
        .map(|one| DatabaseFigures {
            sessions: one.sessions,
            findings: one.findings.len(),
            ..report_figures::figures(one.report, &one.interval)
        })
        .collect();
    let loops: Vec<LoopFigures> = derived
        .iter()
        .filter_map(|one| loops::figures(one.report))
        .collect();
    let of_spools = derived.iter().flat_map(|one| {
        let figures = loops::figures(one.report);
        figures.map_or_else(Vec::new, |figures| loops::findings(one.report, &figures))
    });
    findings.extend(of_spools);
    let of_reports = derived.iter().flat_map(|one| {
        let file = file_name(&one.report.file);
        let mut findings = one.findings.clone();
        findings.extend(notes::notes(one.report, &one.interval));
        findings.extend(notes::against_bars(one.report, file));
        findings
    });
    findings.extend(of_reports);
    findings.extend(series.iter().flat_map(|series| series.findings.clone()));
    Some(DatabaseResult {
        figures,
        demands,
        loops,
        waits: waits(&derived),
        distributions: event_distributions(
            &derived.iter().map(|one| one.report).collect::<Vec<_>>(),
        ),
        parameters: derived[0].report.parameters.clone(),
        series,
        findings,
    })
}

/// Positions of the reports of each instance, in order of time.
fn groups(derived: &[Derived]) -> Vec<Vec<usize>> {
    let key = |one: &Derived| {
        let who = &one.report.identity;
        (
            one.source.clone(),
            who.db_id.clone().or_else(|| who.db_name.clone()),
            who.instance.clone(),
            who.container.clone(),
            one.report.kind == ReportKind::AwrGlobal,
        )
    };
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for (at, one) in derived.iter().enumerate() {
        let group = groups
            .iter_mut()
            .find(|group| key(&derived[group[0]]) == key(one));
        match group {
            Some(group) => group.push(at),
            None => groups.push(vec![at]),
        }
    }
    groups
}

fn named(report: &DatabaseReport) -> String {
    let who = &report.identity;
    let db = who.db_name.clone().or_else(|| who.db_id.clone());
    let db = db.unwrap_or_else(|| "a database".into());
    match (&who.instance, &who.container) {
        // Every instance of a RAC may have the container open.
        (Some(instance), Some(container)) if who.is_rac == Some(true) => {
            format!("{db}/{instance}/{container}")
        }
        (_, Some(container)) => format!("{db}/{container}"),
        (Some(instance), None) => format!("{db}/{instance}"),
        (None, None) => db,
    }
}

/// The demand of the reports of one instance, and findings about the series.
fn demand(derived: &[Derived], group: &[usize]) -> (Demand, Vec<Finding>) {
    let first = derived[group[0]].report;
    let mut findings = Vec::new();
    let of = |at: &usize| &derived[*at];
    let whole: Vec<&Derived> = without_missing_instances(derived, group, &mut findings);
    findings.extend(bursts(&whole));
    findings.extend(gaps(&group.iter().map(of).collect::<Vec<_>>()));
    let is_numbered = first.kind != ReportKind::Spool;
    let numbers = group.iter().filter_map(|at| derived[*at].sessions);
    let (sessions, last) = (derived[group[0]].sessions, numbers.max());
    // The number of a RAC's instance is that of all of its reports.
    if let Some(sessions) = sessions.filter(|_| is_numbered && sessions != last) {
        findings.push(Finding::note(
            FindingName::ScaleUp,
            format!(
                "the numbers at the end of the file names, {sessions} to {}, are read as sessions: \
                 the reports are a scale-up series",
                last.unwrap_or(sessions)
            ),
        ));
    }
    let demand = Demand {
        source: derived[group[0]].source.clone(),
        database: named(first),
        release: first.identity.release.clone(),
        host: first.identity.host.clone(),
        block_bytes: rates::block_bytes(first),
        log: Some(LogKind::ORACLE),
        intervals: whole.iter().map(|one| one.interval.clone()).collect(),
        sum_of: Vec::new(),
        is_device: false,
    };
    (demand, findings)
}

/// A snapshot of a capture without the row of an instance is no smaller load.
fn without_missing_instances<'a, 'b>(
    derived: &'a [Derived<'b>],
    group: &[usize],
    findings: &mut Vec<Finding>,
) -> Vec<&'a Derived<'b>> {
    let all: Vec<&Derived> = group.iter().map(|at| &derived[*at]).collect();
    let is_capture = all[0].report.kind == ReportKind::Capture;
    let most = all
        .iter()
        .map(|one| one.report.metrics.len())
        .max()
        .unwrap_or(0);
    let is_whole = |one: &&Derived| !is_capture || one.report.metrics.len() == most;
    let whole: Vec<&Derived> = all.iter().copied().filter(|one| is_whole(one)).collect();
    let missing = all.len() - whole.len();
    let of_longer_time = |one: &&Derived| super::captures::is_of_longer_time(one.report);
    let (longer, whole): (Vec<&Derived>, Vec<&Derived>) = if is_capture {
        whole.into_iter().partition(of_longer_time)
    } else {
        (Vec::new(), whole)
    };
    if let Some(first) = longer.first() {
        findings.push(Finding::warning(
            FindingName::FiguresDiffer,
            format!(
                "{}: in {} snapshots, the first of them {}, the histogram of waits has more than \
                 1.2 times the read requests: it covers more time than the one-minute samples",
                named(first.report),
                longer.len(),
                first.report.window.end_id.unwrap_or(0)
            ),
            "read the demand as that of the other snapshots",
        ));
    }
    if missing > 0 {
        findings.push(Finding::warning(
            FindingName::InstancesMissing,
            format!(
                "{}: {missing} of {} snapshots lack the row of one of {most} instances: they are \
                 left out of the demand, because their sums would be too small",
                named(all[0].report),
                all.len()
            ),
            "read the demand as that of the other snapshots",
        ));
    }
    whole
}

/// How many times the mean of its snapshot the busiest minute is, in captures.
fn bursts(all: &[&Derived]) -> Option<Finding> {
    const READS_MIN: f64 = 50.0;
    let mut ratios: Vec<f64> = all
        .iter()
        .flat_map(|one| &one.report.metrics)
        .filter_map(|instance| {
            let of = |name: &str| {
                let (_, figure) = instance.figures.iter().find(|(known, _)| known == name)?;
                Some(figure.value)
            };
            let (mean, greatest) = (of("read_iops")?, of("read_iops_max")?);
            (mean >= READS_MIN).then(|| greatest / mean)
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    let p95 = ratios.get(ratios.len() * 95 / 100).copied()?;
    Some(Finding::note(
        FindingName::Bursts,
        format!(
            "{}: the busiest minute of an instance in a snapshot has {:.1} times its mean read \
             requests (median of {} above {READS_MIN} per second; p95 {p95:.1})",
            named(all[0].report),
            median(&ratios)?,
            ratios.len()
        ),
    ))
}

/// Overlaps, gaps and restarts between windows that follow each other.
fn gaps(all: &[&Derived]) -> Vec<Finding> {
    const APART_S: i64 = 90;
    let mut findings = Vec::new();
    if all.iter().any(|one| one.sessions.is_some()) {
        return findings;
    }
    let (mut overlaps, mut gaps, mut restarts) = (0, 0, 0);
    for two in all.windows(2) {
        let (one, next) = (two[0].report, two[1].report);
        if let (Some(end), Some(begin)) = (one.window.end, next.window.begin) {
            overlaps += usize::from(end.since(begin) > APART_S);
            gaps += usize::from(begin.since(end) > APART_S);
        }
        let starts = (one.identity.startup, next.identity.startup);
        if let (Some(before), Some(after)) = starts {
            // HTML of 11.2 to 12.2 prints the month in place of the minutes.
            const HOUR_S: i64 = 3600;
            restarts += usize::from((after.since(before)).abs() > HOUR_S);
        }
    }
    let name = named(all[0].report);
    for (count, what) in [
        (
            overlaps,
            "windows overlap the one before: time counts twice",
        ),
        (gaps, "gaps between windows: that time is not covered"),
        (restarts, "restarts of the instance between windows"),
    ] {
        if count > 0 {
            findings.push(Finding::note(
                FindingName::SeriesGaps,
                format!("{name}: {count} {what}"),
            ));
        }
    }
    findings
}

/// The number of a database, and one of its containers.
type DatabaseId = (String, Option<String>);

/// Adds the sum over the instances of a RAC database, for windows in which all of them are there.
fn sums(derived: &[Derived], groups: &[Vec<usize>], demands: &mut Vec<Demand>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut of_database: Vec<(DatabaseId, Vec<usize>)> = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let report = derived[group[0]].report;
        let is_instance =
            report.identity.is_rac == Some(true) && report.identity.instance.is_some();
        let Some(id) = report.identity.db_id.clone().filter(|_| is_instance) else {
            continue;
        };
        let id = (id, report.identity.container.clone());
        match of_database.iter_mut().find(|(known, _)| *known == id) {
            Some((_, groups)) => groups.push(at),
            None => of_database.push((id, vec![at])),
        }
    }
    for (_, members) in of_database {
        let report = derived[groups[members[0]][0]].report;
        let all = report.identity.instances.unwrap_or(0) as usize;
        let mut db = report.identity.db_name.clone().unwrap_or_default();
        if let Some(container) = &report.identity.container {
            db = format!("{db}/{container}");
        }
        if members.len() < all {
            findings.push(Finding::warning(
                FindingName::InstancesMissing,
                format!(
                    "{db}: reports of {} of {all} instances: shared storage serves all of them",
                    members.len()
                ),
                "give the reports of the other instances for the same snapshots, or the global \
                 report (awrgrpt.sql)",
            ));
            continue;
        }
        if members.len() < 2 {
            continue;
        }
        let others = &members[1..];
        let mut intervals = Vec::new();
        for at in &groups[members[0]] {
            let begin = &derived[*at];
            let same = |group: &usize| {
                groups[*group]
                    .iter()
                    .map(|at| &derived[*at])
                    .find(|other| is_same_window(begin.report, other.report))
            };
            let parts: Option<Vec<&Derived>> = others.iter().map(same).collect();
            if let Some(mut parts) = parts {
                parts.insert(0, begin);
                let parts: Vec<&DemandInterval> = parts.iter().map(|one| &one.interval).collect();
                intervals.push(sum(&parts));
            }
        }
        if !intervals.is_empty() {
            demands.push(Demand {
                database: format!("{db}, all {} instances", members.len()),
                host: None,
                intervals,
                sum_of: members
                    .iter()
                    .map(|at| demands[*at].database.clone())
                    .collect(),
                ..demands[members[0]].clone()
            });
        }
    }
    findings
}

fn is_same_window(one: &DatabaseReport, other: &DatabaseReport) -> bool {
    let (first, second) = (&one.window, &other.window);
    let is_near = |first: Option<Moment>, second: Option<Moment>| {
        first
            .zip(second)
            .is_some_and(|(first, second)| first.since(second).abs() <= SAME_WINDOW_S)
    };
    first.begin_id == second.begin_id
        && first.end_id == second.end_id
        && is_near(first.begin, second.begin)
}

/// The demand of several instances in one window. Latencies are weighted by waits.
pub(super) fn sum(parts: &[&DemandInterval]) -> DemandInterval {
    let mut streams: Vec<DemandStream> = Vec::new();
    for part in parts {
        for stream in &part.streams {
            match streams.iter_mut().find(|known| known.kind == stream.kind) {
                Some(known) => *known = both(known, stream),
                None => streams.push(stream.clone()),
            }
        }
    }
    let left_out = |of: fn(&LeftOut) -> f64| {
        let each = parts.iter().map(|part| Some(of(part.left_out.as_ref()?)));
        each.sum::<Option<f64>>()
    };
    DemandInterval {
        label: format!("sum of {} instances", parts.len()),
        streams,
        left_out: left_out(|out| out.read_mib_per_s)
            .zip(left_out(|out| out.write_mib_per_s))
            .map(|(read_mib_per_s, write_mib_per_s)| LeftOut {
                read_mib_per_s,
                write_mib_per_s,
            }),
        censored: censored_sum(parts),
        ..parts[0].clone()
    }
}

/// Why the instances may have wanted more than they got: the first reason, and how many have one. The
/// demand of each instance has its own.
fn censored_sum(parts: &[&DemandInterval]) -> String {
    let reasons = || {
        let each = parts.iter().map(|part| part.censored.as_str());
        each.filter(|reason| !reason.is_empty())
    };
    reasons().next().map_or_else(String::new, |first| {
        let (count, all) = (reasons().count(), parts.len());
        format!("{first} ({count} of {all} instances have such waits)")
    })
}

/// Two streams of one kind together.
fn both(one: &DemandStream, other: &DemandStream) -> DemandStream {
    let per_s = one.per_s.zip(other.per_s).map(|(one, other)| one + other);
    let mean = |of: fn(&DemandStream) -> Option<f64>, weight: fn(&DemandStream) -> Option<f64>| {
        let (a, b) = (weight(one)?, weight(other)?);
        (a + b > 0.0).then_some(())?;
        let of = |stream: &DemandStream, weight: f64| {
            if weight > 0.0 {
                of(stream).map(|value| value * weight)
            } else {
                Some(0.0)
            }
        };
        Some((of(one, a)? + of(other, b)?) / (a + b))
    };
    let (a, b) = (one.waits.unwrap_or(0.0), other.waits.unwrap_or(0.0));
    let mut latencies: Vec<LatencyShare> = Vec::new();
    if !one.latencies.is_empty() && !other.latencies.is_empty() && a + b > 0.0 {
        let weighted = [(one, a), (other, b)];
        for (share, weight) in weighted
            .iter()
            .flat_map(|(stream, weight)| stream.latencies.iter().map(move |share| (share, weight)))
        {
            let part = share.share * weight / (a + b);
            let bucket = latencies
                .iter_mut()
                .find(|known| known.is_same_bucket(share));
            match bucket {
                Some(bucket) => bucket.share += part,
                None => latencies.push(LatencyShare {
                    share: part,
                    ..share.clone()
                }),
            }
        }
        latencies.sort_by(|one, other| one.low_us.total_cmp(&other.low_us));
    }
    DemandStream {
        per_s,
        mean_bytes: mean(|stream| stream.mean_bytes, |stream| stream.per_s),
        mean_us: mean(|stream| stream.mean_us, |stream| stream.waits),
        mean_range_us: None,
        waits: one.waits.zip(other.waits).map(|(one, other)| one + other),
        latencies,
        ..one.clone()
    }
}

/// The I/O requests of one instance over time, as a series.
fn series(derived: &[Derived], group: &[usize]) -> Option<SoakResult> {
    let all: Vec<&Derived> = group.iter().map(|at| &derived[*at]).collect();
    let most = all
        .iter()
        .map(|one| one.report.metrics.len())
        .max()
        .unwrap_or(0);
    if all.len() < 2 || all[0].sessions.is_some() {
        return None;
    }
    let samples = all
        .iter()
        .filter(|one| one.report.metrics.len() == most)
        .filter_map(|one| {
            let figures = report_figures::figures(one.report, &one.interval);
            Some(Counted {
                begin: one.report.window.begin?,
                seconds: figures.seconds,
                value: Some(figures.all_reads_per_s? + figures.all_writes_per_s?),
                count: None,
            })
        })
        .collect();
    SoakResult::of_imported(&ImportedSeries {
        name: "I/O requests".into(),
        unit: "/s".into(),
        samples,
        ..ImportedSeries::default()
    })
}

/// The list of top events of each report.
fn waits(derived: &[Derived]) -> Vec<WaitShare> {
    const EVENTS_MAX: usize = 10;
    let of = |(at, one): (usize, &Derived)| {
        let rows = one
            .report
            .waits
            .iter()
            .filter(|row| row.of == WaitTable::Top);
        rows.filter_map(|row| Some((row.event.clone(), row.percent?.value)))
            .take(EVENTS_MAX)
            .map(|(event, percent)| WaitShare {
                report: at,
                event,
                percent,
            })
            .collect::<Vec<_>>()
    };
    derived.iter().enumerate().flat_map(of).collect()
}
