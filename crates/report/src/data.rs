//! The machine-readable report: JSON and CSV.

use super::csv::CsvTable;
use rigel_analyse::sql::{ServerFigures, ServerRate};
use rigel_analyse::{
    ClassSummary, Conclusion, Estimate, HostsAtLoad, Limits, NextRun, PointSummary, RanksResult,
    RunTrust, Sight, ranks, verified,
};
use rigel_model::record::StallEvent;
use rigel_model::record::journal::{Header, Run};
use rigel_model::{FindingWithCause, Host, TargetFacts};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the format of JSON reports. Since 2, coordinates name their loads.
const FORMAT: u32 = 1;

/// The start of every JSON report of a run: the command, the target, and the versions.
#[derive(Debug, Serialize, JsonSchema)]
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
    /// How the run ended; absent if its journal does not say so.
    #[serde(skip_serializing_if = "Option::is_none")]
    ended: Option<ReportedEnd>,
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
            ended: None,
        }
    }

    /// The same with how the run ended.
    #[must_use]
    pub fn ended(self, ended: Option<ReportedEnd>) -> Self {
        Self { ended, ..self }
    }
}

/// A report as one JSON document with a final line break.
pub fn document(report: &impl Serialize) -> String {
    serde_json::to_string_pretty(report).expect("a report is made of maps with text keys") + "\n"
}

/// The JSON report. Fields are only added, never renamed or removed.
#[derive(Serialize, JsonSchema)]
struct RunReport<'a, M> {
    #[serde(flatten)]
    head: Head<'a>,
    conclusion: Conclusion,
    trust: RunTrust,
    /// What the run cannot have seen.
    sight: Sight,
    /// What earlier runs beside it say of the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next_run: Option<NextRun>,
    /// What was expected of the run, and whether it is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    expect: Option<Value>,
    /// What looking at the blocks found, if they were looked at.
    #[serde(skip_serializing_if = "Option::is_none")]
    verified: Option<verified::VerifiedFigures>,
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
    findings: Vec<FindingWithCause<'a>>,
}

/// How a run ended.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ReportedEnd {
    /// `complete`, `stopped` by a signal, `failed`, `killed`, or still `running`.
    pub how: &'static str,
    /// Why it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Its exit status; absent if it was killed or is still running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u8>,
    /// Visits, rounds or intervals that were measured.
    pub measured: usize,
    /// About how many would be, if more were planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planned: Option<usize>,
}

/// A report that has what every verb's has, and nothing else.
#[derive(Serialize, JsonSchema)]
pub struct NothingOfItsOwn {}

/// Makes the JSON Schema of a document.
pub type SchemaOf = fn() -> Schema;

/// The JSON Schema of documents of this type, as they are written: draft 2020-12.
pub fn schema_of<Document: JsonSchema>() -> Schema {
    generator().into_root_schema_for::<Document>()
}

/// That of [`Reported::json`] with the members of `Own`.
pub fn schema<Own: JsonSchema>() -> Schema {
    schema_of::<RunReport<Own>>()
}

/// That of [`Reported::json_with`] with `Results` as the member `name`.
///
/// # Panics
/// Never: the schema of a report is an object.
pub fn schema_with<Results: JsonSchema>(name: &str) -> Schema {
    let mut generator = generator();
    let results = generator.subschema_for::<Results>();
    let mut schema = generator.into_root_schema_for::<RunReport<NothingOfItsOwn>>();
    let members = schema.ensure_object();
    let of_all = members["properties"].as_object_mut();
    of_all
        .expect("a report has members")
        .insert(name.into(), results.into());
    let required = members["required"].as_array_mut();
    required
        .expect("a report has members")
        .push(Value::from(name));
    schema
}

fn generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
}

/// What the JSON reports of all verbs have.
pub struct Reported<'a> {
    /// The run.
    pub run: &'a Run,
    /// How it ended.
    pub ended: Option<ReportedEnd>,
    /// Its conclusion.
    pub conclusion: Conclusion,
    /// How far its figures can be trusted.
    pub trust: RunTrust,
    /// What the run cannot have seen.
    pub sight: Sight,
    /// What earlier runs beside it say of the next one.
    pub next_run: Option<NextRun>,
    /// What was expected of it with the answers, if it is of another verb than `expect`.
    pub expect: Option<Value>,
    /// What looking at its blocks found, if they were looked at.
    pub verified: Option<verified::VerifiedFigures>,
    /// Its points.
    pub points: &'a [PointSummary],
    /// All findings.
    pub findings: Vec<FindingWithCause<'a>>,
    /// All hosts at every load, if asked for.
    pub each_host: &'a [HostsAtLoad],
}

impl Reported<'_> {
    /// The report as one JSON document, with the verb's `own` results as members.
    pub fn json(self, own: impl Serialize) -> String {
        let (header, points) = (&self.run.header, self.points);
        document(&RunReport {
            head: Head::of(header).ended(self.ended),
            conclusion: self.conclusion,
            trust: self.trust,
            sight: self.sight,
            next_run: self.next_run,
            expect: self.expect,
            verified: self.verified,
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
/// are read by their names, which are never changed or removed.
pub fn csv(points: &[PointSummary]) -> String {
    let rows = points.iter().flat_map(|point| {
        point
            .classes
            .iter()
            .map(move |class| PointRow { point, class })
    });
    CsvTable::of(rows)
        .value("small", |row| row.point.coordinates.small_and_large().0)
        .value("large", |row| row.point.coordinates.small_and_large().1)
        .text("class", |row| &row.class.name)
        .value("io_bytes", |row| row.class.io_bytes)
        .value("outstanding", |row| row.class.outstanding)
        .value("done", |row| row.class.done)
        .value("failed", |row| row.class.failed.values().sum::<u64>())
        .value("iops", |row| format!("{:.2}", row.class.iops))
        .figure("mib_per_s", |row| row.class.mib_per_s)
        .times(|row, figure| Some(row.class.latency?.get(figure)))
        .value("littles_law", |row| format!("{:.4}", row.class.littles_law))
        .maybe("steady", |row| {
            let steady = row.class.steady.and_then(|steady| steady.steady)?;
            Some(if steady { "yes" } else { "no" })
        })
        .maybe("cpu_us_per_io", |row| {
            row.point.cpu_us_per_io.map(|cpu| format!("{cpu:.4}"))
        })
        .figure("warm_up_s", |row| row.point.warm_up_s)
        .figure("measured_s", |row| row.point.measured_s)
        .value("distinct_blocks", |row| row.class.coverage.distinct)
        .value("step", |row| row.point.coordinates.step_name())
        .figure("offered", |row| row.class.offered)
        .figure("iops_low", |row| low(row.class.rate().interval))
        .figure("iops_high", |row| high(row.class.rate().interval))
        .figure("p50_low_us", |row| {
            low(row.class.confidence.and_then(|of| of.p50_us))
        })
        .figure("p50_high_us", |row| {
            high(row.class.confidence.and_then(|of| of.p50_us))
        })
        .figure("p99_low_us", |row| {
            low(row.class.confidence.and_then(|of| of.p99_us))
        })
        .figure("p99_high_us", |row| {
            high(row.class.confidence.and_then(|of| of.p99_us))
        })
        .figure("service_p50_us", |row| {
            row.class.service.map(|service| service.p50_us)
        })
        .figure("service_p99_us", |row| {
            row.class.service.map(|service| service.p99_us)
        })
        .figure("delay_p99_us", |row| {
            row.class.scheduling_delay.map(|delay| delay.p99_us)
        })
        .value("unserved", |row| row.class.unserved)
        .figure("blocks_per_s", |row| {
            row.point.sql.as_ref().map(|sql| sql.visited.per_s)
        })
        .figure("logical_per_s", |row| {
            row.server_per_s(|server| server.logical)
        })
        .figure("physical_per_s", |row| {
            row.server_per_s(|server| server.physical)
        })
        .figure("written_per_s", |row| {
            row.server_per_s(|server| server.written)
        })
        .figure("log_bytes_per_s", |row| {
            row.server_per_s(|server| server.log_bytes)
        })
        .figure("commits_per_s", |row| {
            row.server_per_s(|server| server.commits)
        })
        .figure("db_cpus", |row| row.server_per_s(|server| server.cpu_us))
        .figure("physical_per_db_cpu_s", |row| {
            row.server()?.physical_per_cpu_s
        })
        .figure("page_cache_share", |row| row.server()?.page_cache_share)
        .figure("kernel_mean_us", |row| row.class.kernel_mean_us)
        .into_text()
}

/// A line of the csv.
struct PointRow<'a> {
    point: &'a PointSummary,
    class: &'a ClassSummary,
}

impl<'a> PointRow<'a> {
    /// What a database's server did; `None` for raw I/O.
    fn server(&self) -> Option<&'a ServerFigures> {
        self.point.sql.as_ref()?.server.as_ref()
    }

    fn server_per_s(&self, of: fn(&ServerFigures) -> Option<ServerRate>) -> Option<f64> {
        Some(of(self.server()?)?.per_s)
    }
}

/// A figure without its interval.
pub fn value(figure: Option<Estimate>) -> Option<f64> {
    Some(figure?.value)
}

/// The lower end of an interval.
pub fn low(interval: Option<Limits>) -> Option<f64> {
    Some(interval?.low)
}

/// The upper end of an interval.
pub fn high(interval: Option<Limits>) -> Option<f64> {
    interval?.high
}
