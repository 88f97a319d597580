//! The conclusion of another tool's figures.

use super::result::ImportedResult;
use rigel_analyse::conclusion::parts::{Conclusion, Status};
use rigel_analyse::demand::{DatabaseFigures, DatabaseResult, bound_of_bucket, mean_time};
use rigel_analyse::figures::modes;
use rigel_analyse::figures::quantity::{bytes, count, counted, rounded_length, time};
use rigel_analyse::series::imported::{ImportedSummary, LoadFigures, SeriesSummary};
use rigel_analyse::series::soak::SoakResult;
use rigel_model::record::imported::ClaimedCalibration;
use rigel_model::record::journal::Header;
use rigel_model::{Demand, DemandKind, DemandStream, Severity, file_name};
use std::collections::BTreeSet;

pub(super) fn conclusion(header: &Header, result: &ImportedResult) -> Conclusion {
    if let Some(series) = &result.series {
        return series.conclusion(header);
    }
    let mut all = header.findings.iter().chain(&result.findings);
    let status = if all.any(|finding| finding.severity != Severity::Note) {
        Status::Warning
    } else {
        Status::Plain
    };
    Conclusion {
        status,
        sentence: sentence(result),
    }
}

/// A sentence or two for each kind of figures that the sources have.
fn sentence(result: &ImportedResult) -> String {
    let database = result.database.as_ref();
    let of_database = database
        .and_then(of_loops)
        .or_else(|| database.and_then(of_distributions))
        .or_else(|| database.and_then(of_database));
    let mut parts: Vec<String> = of_database.into_iter().collect();
    parts.extend(result.claims.last().map(claimed));
    parts.extend(of_analysed_series(result));
    parts.extend(of_loads(result));
    let device = result.device.as_ref();
    parts.extend(device.and_then(|device| of_demand(device, None)));
    parts.extend(device.and_then(|device| of_layers(device, &result.other_devices)));
    parts.extend(of_series(result));
    parts.join(" ")
}

/// The loads that a tool reports, and the highest of them; `None` if there are none. Those of
/// sessions are the database's.
fn of_loads(result: &ImportedResult) -> Option<String> {
    let is_own = |source: &&ImportedSummary| !source.loads.is_empty() && !source.is_of_sessions();
    let sources: Vec<&ImportedSummary> = result.sources.iter().filter(is_own).collect();
    let loads = sources
        .iter()
        .map(|source| source.loads.len())
        .sum::<usize>();
    if loads == 0 {
        return None;
    }
    // Beside other answers, the line of trust has to say it.
    let without_interval = if result.sources.len() == sources.len() {
        " No confidence interval is reported."
    } else {
        ""
    };
    let reported = format!(
        "{} {}",
        reported_by(&sources),
        counted(loads as u64, "load")
    );
    let Some((best, iops)) = result.best().and_then(|(_, best)| Some((best, best.iops?))) else {
        return Some(format!(
            "{reported} without a rate{}.{without_interval}",
            first_latency(result).unwrap_or_default()
        ));
    };
    let LoadFigures {
        load,
        kind,
        latency,
        ..
    } = best;
    let p99 = match (latency.p99_us, best.at_least_us) {
        (Some(p99), _) => format!(", p99 {}", time(p99)),
        (None, Some(end)) => format!(", p99 at least {}", time(end)),
        (None, None) => String::new(),
    };
    Some(format!(
        "{reported}: the maximum is {} {}s per second at {load}{p99}.{without_interval}",
        count(iops),
        if kind == "mixed" { "operation" } else { kind },
    ))
}

/// `fio 3.33 and Orion report`.
fn reported_by(sources: &[&ImportedSummary]) -> String {
    let tools = sources.iter().map(|source| source.tool_and_version());
    let mut tools: Vec<String> = tools.collect();
    tools.dedup();
    let verb = if tools.len() == 1 {
        "reports"
    } else {
        "report"
    };
    format!("{} {verb}", tools.join(" and "))
}

/// The verdict on each source that is one throughput series; of several its first sentence.
fn of_analysed_series(result: &ImportedResult) -> Vec<String> {
    let all = &result.series_of_sources;
    let sentence = |(at, series): &(usize, SoakResult)| {
        let files = result.sources[*at].sources.iter();
        let names: Vec<&str> = files.map(|path| file_name(path)).collect();
        let verdict = series.found.verdict.as_str();
        let first = verdict.split_once(". ").map_or(verdict, |(first, _)| first);
        let verdict = if all.len() > 1 { first } else { verdict };
        format!("{}: {}.", names.join(", "), verdict.trim_end_matches('.'))
    };
    all.iter().map(sentence).collect()
}

/// The series that have no verdict, with their number and time; `None` if there are none.
fn of_series(found: &ImportedResult) -> Option<String> {
    let is_analysed = |at: usize| found.series_of_sources.iter().any(|(of, _)| *of == at);
    let others = found.sources.iter().enumerate();
    let others = others.filter(|(at, source)| !source.series.is_empty() && !is_analysed(*at));
    let sources: Vec<&ImportedSummary> = others.map(|(_, source)| source).collect();
    let series = || sources.iter().flat_map(|source| &source.series);
    let first = series().next()?;
    let samples: usize = series().map(|one| one.samples.len()).sum();
    let length = series().filter_map(|one| Some(one.end?.since(one.begin?) as f64));
    let length = length.fold(0.0, f64::max);
    let of = if length > 0.0 {
        format!(" of {}", rounded_length(length))
    } else {
        String::new()
    };
    let number = match series().count() {
        1 => "one series".into(),
        number => format!("{number} series"),
    };
    let shown = first
        .median
        .zip(first.greatest)
        .filter(|_| are_alike(series()));
    let figures = shown.map(|(median, (most, _))| {
        let value = |value: f64| series_value(value, &first.unit);
        format!(
            ": {} has a median of {}, at most {}",
            first.name,
            value(median),
            value(most)
        )
    });
    let unnamed = if first.unit.is_empty() && series().count() == 1 {
        let name = &first.name;
        format!(
            " What {name} is of, its name does not say: a column iops or reads_per_s has a verdict."
        )
    } else {
        String::new()
    };
    let has = |column: &str| series().any(|one| one.name.ends_with(column));
    let without_x = if has(" tps") && !has(" r/s") {
        " Without iostat's -x, reads and writes are told apart only by bytes."
    } else {
        ""
    };
    Some(format!(
        "{} {number}{of} with {}{}.{unnamed}{without_x}",
        reported_by(&sources),
        counted(samples as u64, "sample"),
        figures.unwrap_or_default()
    ))
}

/// True if the first of these series stand for all: logs have rates, times or both, and iostat has
/// shares and queues of each device too.
pub(super) fn are_alike<'a>(series: impl Iterator<Item = &'a SeriesSummary>) -> bool {
    const UNITS_MAX: usize = 2;
    let units: BTreeSet<&str> = series.map(|one| one.unit.as_str()).collect();
    units.len() <= UNITS_MAX
}

/// A value of a series with its unit, where the file has one.
pub(super) fn series_value(value: f64, unit: &str) -> String {
    match unit {
        "us" => time(value),
        "" => count(value),
        unit if unit.starts_with('/') => format!("{}{unit}", count(value)),
        unit => format!("{} {unit}", count(value)),
    }
}

/// The latency of the first load that has one.
fn first_latency(result: &ImportedResult) -> Option<String> {
    let mut loads = result.sources.iter().flat_map(|source| &source.loads);
    let load = loads.find(|load| load.latency.p50_us.or(load.latency.mean_us).is_some())?;
    let p99 = load
        .latency
        .p99_us
        .map_or_else(String::new, |p99| format!(", p99 {}", time(p99)));
    let (name, middle) = match (load.latency.p50_us, load.latency.mean_us) {
        (Some(p50), _) => ("p50", p50),
        (None, mean) => ("mean", mean?),
    };
    Some(format!(
        ": at {} the {name} is {}{p99}",
        load.load,
        time(middle)
    ))
}

/// What Oracle's calibration claims. Its view has the latency in whole milliseconds.
fn claimed(claim: &ClaimedCalibration) -> String {
    let figure =
        |figure: Option<f64>, unit: &str| figure.map(|figure| format!("{}{unit}", count(figure)));
    let latency = claim.latency_ms.map(|ms| {
        if ms.fract() != 0.0 {
            format!("a latency of {ms} ms")
        } else if ms < 0.5 {
            "a latency below 0.5 ms".to_string()
        } else {
            format!("a latency of {ms} ms, to half a millisecond")
        }
    });
    let parts: Vec<String> = [
        figure(claim.max_iops, " reads per second"),
        latency,
        figure(claim.max_mbps, " MB/s"),
        figure(claim.max_pmbps, " MB/s by one process"),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!(
        "CALIBRATE_IO claims {}. It has no interval, and does not say which blocks it read.",
        parts.join(", ")
    )
}

/// What the sessions of spools did at most.
fn of_loops(result: &DatabaseResult) -> Option<String> {
    let best = result
        .loops
        .iter()
        .max_by(|one, other| one.blocks_per_s.total_cmp(&other.blocks_per_s))?;
    let which = match result.loops.len() {
        1 => String::new(),
        count => format!(", the most of {count} spools"),
    };
    let physical = best.physical_reads_per_s.map_or_else(
        || "physical reads are unknown".into(),
        |reads| format!("{} of them were physical reads", count(reads)),
    );
    let latencies: Vec<String> = best
        .kinds
        .iter()
        .filter_map(|kind| {
            Some(format!(
                "a{} {} took {} on average, p99 {}",
                if kind.kind == "update" { "n" } else { "" },
                kind.kind,
                time(kind.latency.mean_us?),
                time(kind.latency.p99_us?)
            ))
        })
        .collect();
    Some(format!(
        "{} in the server visited {} blocks per second{which}; {physical}. {}{}.",
        counted(best.sessions.into(), "session"),
        count(best.blocks_per_s),
        if latencies.is_empty() {
            "No operation was completed"
        } else {
            "Of operations, "
        },
        latencies.join(", ")
    ))
}

/// The waits of one event, where distributions are all there is: one of storage if there is any.
fn of_distributions(result: &DatabaseResult) -> Option<String> {
    let all = result.distributions.as_slice();
    let first = all.first().filter(|_| !result.has_streams())?;
    let event = all.iter().find(|one| one.is_of_storage()).unwrap_or(first);
    let waits = event
        .waits
        .map_or_else(String::new, |waits| format!("of {} waits ", count(waits)));
    // Of a single mode the bounds say it all.
    let modes = if event.modes.len() > 1 {
        format!("; {}", modes::in_words(&event.modes, bound_of_bucket))
    } else {
        String::new()
    };
    let others = match all.len() - 1 {
        0 => String::new(),
        others => format!(" {} below.", counted(others as u64, "other distribution")),
    };
    Some(format!(
        "{} in {}: {waits}half took {}, 99 % {}, the longest {}{modes}. Rates are unknown.{others}",
        event.event,
        file_name(&event.file),
        event.bound_of(0.5),
        event.bound_of(0.99),
        event.bound_of(1.0)
    ))
}

fn of_database(result: &DatabaseResult) -> Option<String> {
    of_demand(&result.demands[result.main_demand()?], Some(result))
}

/// What the busiest interval of a database or device asked for, and what it got; `result` has what is
/// known of the database besides.
fn of_demand(demand: &Demand, result: Option<&DatabaseResult>) -> Option<String> {
    let (busiest, _) = demand.busiest()?;
    let when = busiest
        .begin
        .map_or_else(String::new, |begin| format!(" from {}", begin.short()));
    let length = busiest.seconds.map_or_else(String::new, |seconds| {
        format!(", {}", rounded_length(seconds))
    });
    let which = match demand.intervals.len() {
        1 => String::new(),
        count => format!(", in the busiest of {count} intervals"),
    };
    let rate = |per_s: f64| {
        if per_s < 10.0 {
            format!("{per_s:.2}")
        } else {
            count(per_s)
        }
    };
    let words = |kind: DemandKind| {
        let stream = busiest.stream(kind)?;
        if stream.per_s.is_none() {
            return half_below(stream);
        }
        let per_s = rate(stream.per_s.filter(|per_s| *per_s >= 0.005)?);
        let size = stream
            .mean_bytes
            .map_or_else(String::new, |size| format!(" of {}", bytes(size)));
        let mean =
            mean_time(stream).map_or_else(String::new, |time| format!(" in {time} on average"));
        Some(format!("{per_s} {} per second{size}{mean}", kind.words()))
    };
    let parts: Vec<String> = [
        DemandKind::RandomReads,
        DemandKind::MultiblockReads,
        DemandKind::DirectReads,
        DemandKind::SmartScans,
        DemandKind::LogWrites,
        DemandKind::PageAndDirectWrites,
    ]
    .into_iter()
    .filter_map(words)
    .collect();
    let asked = match result {
        Some(result) if parts.is_empty() => all_requests(result),
        _ => parts.join(", "),
    };
    Some(format!(
        "{}{when}{length}{which}: {asked}.",
        demand.database
    ))
}

/// Beginnings of the kernel's names of disks and their partitions. Those of the device mapper and of md, and names
/// that users gave, are of devices that are made of others.
const DISKS: &[&str] = &[
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "dasd", "nbd", "rbd", "loop", "ram", "zram", "sr",
    "fd", "pmem", "zd",
];

/// That a device lies over others, and which others the source has; `None` for a disk.
fn of_layers(device: &Demand, others: &[(String, f64)]) -> Option<String> {
    const NAMED_MAX: usize = 4;
    let is_disk = |name: &str| DISKS.iter().any(|start| name.starts_with(start));
    let name = &device.database;
    if is_disk(name) || others.is_empty() {
        return None;
    }
    let named: Vec<String> = others
        .iter()
        .take(NAMED_MAX)
        .map(|(name, peak)| format!("{name} (at most {}/s)", count(*peak)))
        .collect();
    let more = match others.len().saturating_sub(NAMED_MAX) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    Some(format!(
        "{name} is made of other devices, which count the same I/O again: the source also has {}{more}.",
        named.join(", ")
    ))
}

/// All requests of the busiest report, where single streams are not known.
fn all_requests(result: &DatabaseResult) -> String {
    let of = |one: &DatabaseFigures| Some((one.all_reads_per_s?, one.all_writes_per_s?));
    let busiest = result
        .figures
        .iter()
        .filter_map(of)
        .max_by(|one, other| (one.0 + one.1).total_cmp(&(other.0 + other.1)));
    busiest.map_or_else(
        || "single streams of I/O are not reported".into(),
        |(reads, writes)| {
            format!(
                "single streams of I/O are not reported; at most {} read and {} write requests per \
                 second",
                count(reads),
                count(writes)
            )
        },
    )
}

/// The bucket of the median, where a distribution is all that is known.
fn half_below(stream: &DemandStream) -> Option<String> {
    let mut below = 0.0;
    let median = stream.latencies.iter().find(|one| {
        below += one.share;
        below >= 0.5
    })?;
    let bound = time(median.high_us?);
    Some(format!(
        "half of the {} take less than {bound}",
        stream.kind.words()
    ))
}
