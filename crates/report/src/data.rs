//! The machine-readable report: JSON and CSV.

use super::csv::CsvTable;
use rigel_analyse::sql::{ServerFigures, ServerRate};
use rigel_analyse::{ClassSummary, Conclusion, HostsAtLoad, PointSummary, RanksResult, ranks};
use rigel_model::record::StallEvent;
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Finding, Host, TargetFacts};
use serde::Serialize;
use std::collections::BTreeMap;

/// Version of the format of JSON reports. Since 2, coordinates name their loads.
const FORMAT: u32 = 1;

/// The start of every JSON report of a run: the command, the target, and the versions.
#[derive(Debug, Serialize)]
pub struct Head<'a> {
    /// Version of the report format.
    format: u32,
    version: &'a str,
    started: &'a str,
    command: &'a [String],
    engine: &'a str,
    engine_about: &'a str,
    host: &'a Host,
    target: &'a TargetFacts,
}

impl<'a> Head<'a> {
    /// The start of the report of the run with this header.
    pub fn of(header: &'a Header) -> Self {
        Self {
            format: FORMAT,
            version: &header.version,
            started: &header.started,
            command: &header.command,
            engine: &header.engine.name,
            engine_about: &header.engine_about,
            host: &header.host,
            target: &header.facts,
        }
    }
}

/// A report as one JSON document with a final line break.
pub fn document(report: &impl Serialize) -> String {
    serde_json::to_string_pretty(report).expect("a report is made of maps with text keys") + "\n"
}

/// The JSON report. Fields are only added, never renamed or removed.
#[derive(Serialize)]
struct RunReport<'a, M> {
    #[serde(flatten)]
    head: Head<'a>,
    conclusion: Conclusion,
    points_planned: usize,
    points: &'a [PointSummary],
    /// The verb's own results.
    #[serde(flatten)]
    own: M,
    /// For a run with several ranks: its hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<RanksResult>,
    /// For a run with several ranks, if asked for: its hosts at every load.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    each_host: &'a [HostsAtLoad],
    /// When storage or a server stopped answering, and when it went on.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stalls: &'a [StallEvent],
    findings: Vec<&'a Finding>,
}

/// What the JSON reports of all verbs have.
pub struct Reported<'a> {
    /// The run.
    pub run: &'a Run,
    /// Its conclusion.
    pub conclusion: Conclusion,
    /// Its points.
    pub points: &'a [PointSummary],
    /// All findings.
    pub findings: Vec<&'a Finding>,
    /// All hosts at every load, if asked for.
    pub each_host: &'a [HostsAtLoad],
}

impl Reported<'_> {
    /// The report as one JSON document, with the verb's `own` results as members.
    pub fn json(self, own: impl Serialize) -> String {
        let (header, points) = (&self.run.header, self.points);
        document(&RunReport {
            head: Head::of(header),
            conclusion: self.conclusion,
            points_planned: header.points.len().max(points.len()),
            points,
            own,
            ranks: ranks(self.run),
            each_host: self.each_host,
            stalls: &self.run.stalls,
            findings: self.findings,
        })
    }

    /// The same with `results` as the member `name`.
    pub fn json_with(self, name: &str, results: &impl Serialize) -> String {
        self.json(BTreeMap::from([(name, results)]))
    }
}

/// The report of a run as CSV: a header line, then one line for every class of every point. Columns
/// are only added at the end, never renamed or removed.
pub fn csv(points: &[PointSummary]) -> String {
    let mut table = CsvTable::new(
        "small,large,class,io_bytes,outstanding,done,failed,iops,mib_per_s,mean_us,deviation_us,\
         min_us,p50_us,p90_us,p99_us,p999_us,max_us,littles_law,steady,cpu_us_per_io,warm_up_s,\
         measured_s,distinct_blocks,step,offered,iops_low,iops_high,p50_low_us,p50_high_us,\
         p99_low_us,p99_high_us,service_p50_us,service_p99_us,delay_p99_us,unserved,blocks_per_s,\
         logical_per_s,physical_per_s,written_per_s,log_bytes_per_s,commits_per_s,db_cpus,\
         physical_per_db_cpu_s,page_cache_share,kernel_mean_us",
    );
    for point in points {
        for class in &point.classes {
            let failed: u64 = class.failed.values().sum();
            let (small, large) = point.coordinates.small_and_large();
            table
                .value(small)
                .value(large)
                .text(&class.name)
                .value(class.io_bytes)
                .value(class.outstanding);
            table
                .value(class.done)
                .value(failed)
                .value(format_args!("{:.2}", class.iops));
            table.figure(Some(class.mib_per_s));
            let times = class.latency.map(|l| {
                [
                    l.mean_us,
                    l.deviation_us,
                    l.min_us,
                    l.p50_us,
                    l.p90_us,
                    l.p99_us,
                    l.p999_us,
                    l.max_us,
                ]
            });
            (0..8).for_each(|at| {
                table.figure(times.map(|times| times[at]));
            });
            let steady = class
                .steady
                .and_then(|steady| steady.steady)
                .map(|steady| if steady { "yes" } else { "no" });
            let cpu = point.cpu_us_per_io.map(|cpu| format!("{cpu:.4}"));
            table
                .value(format_args!("{:.4}", class.littles_law))
                .maybe(steady)
                .maybe(cpu);
            table
                .figure(Some(point.warm_up_s))
                .figure(Some(point.measured_s))
                .value(class.coverage.distinct);
            confidence(&mut table, point, class);
            of_server(&mut table, point);
            table.figure(class.kernel_mean_us);
            table.end();
        }
    }
    table.into_text()
}

/// Writes the columns from `step` to `unserved`: intervals, and figures of an open loop. Empty
/// means unknown.
fn confidence(table: &mut CsvTable, point: &PointSummary, class: &ClassSummary) {
    let known = class.confidence;
    let intervals = [
        class.rate().interval,
        known.and_then(|known| known.p50_us),
        known.and_then(|known| known.p99_us),
    ];
    table
        .value(point.coordinates.step_name())
        .figure(class.offered);
    for interval in intervals {
        table
            .figure(interval.map(|limits| limits.low))
            .figure(interval.and_then(|limits| limits.high));
    }
    table
        .figure(class.service.map(|service| service.p50_us))
        .figure(class.service.map(|service| service.p99_us));
    table
        .figure(class.scheduling_delay.map(|delay| delay.p99_us))
        .value(class.unserved);
}

/// Writes the columns from `blocks_per_s` on: a database server's figures. Empty for raw I/O, and
/// if not reported.
fn of_server(table: &mut CsvTable, point: &PointSummary) {
    let sql = point.sql.as_deref();
    let server = sql.and_then(|sql| sql.server.as_ref());
    let rate = |of: fn(&ServerFigures) -> Option<ServerRate>| {
        server.and_then(of).map(|figure| figure.per_s)
    };
    let figures = [
        sql.map(|sql| sql.visited.per_s),
        rate(|server| server.logical),
        rate(|server| server.physical),
        rate(|server| server.written),
        rate(|server| server.log_bytes),
        rate(|server| server.commits),
        rate(|server| server.cpu_us),
        server.and_then(|server| server.physical_per_cpu_s),
        server.and_then(|server| server.page_cache_share),
    ];
    figures.into_iter().for_each(|figure| {
        table.figure(figure);
    });
}
