//! The demands that a run knows of: of imported reports of databases, of another tool's series, and
//! of sessions that Rigel itself ran on a database.
//!
//! Input: a run, or the figures of imported files. Output: demands, the one that answers for the
//! storage first. A figure that the source does not give stays absent.

use super::database_result::{SAME_WINDOW_S, database};
use super::memory;
use super::read_kind::reads_of;
use super::watched_demand::WatchDemands;
use crate::figures::quantity::{count, time};
use crate::point::sql::SqlSummary;
use crate::point::summary::{PointSummary, summarise};
use crate::series::imported_checks::doubts;
use rigel_model::record::imported::{Figures, Imported, ImportedSeries};
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord, Window};
use rigel_model::{
    Dbms, Demand, DemandInterval, DemandKind, DemandOperations, DemandStream, Finding, FindingName,
    Kind, Moment, ServerFacts, file_name,
};
use std::collections::HashMap;

/// The demands of a run, by what it holds; empty if it says nothing about a demand.
pub fn demands(run: &Run) -> Vec<Demand> {
    if !run.watched.is_empty() {
        let mut demands = WatchDemands::default();
        let each = run.watched.iter();
        each.for_each(|interval| demands.add(&run.header, interval));
        return demands.finish();
    }
    match &run.header.facts.server {
        Some(server) => of_sessions(run, server).into_iter().collect(),
        None => imported_demands(&run.imported),
    }
}

/// The demands in another tool's figures; of devices, the busiest one first.
pub fn imported_demands(all: &[Imported]) -> Vec<Demand> {
    let mut demands: Vec<Demand> = Vec::new();
    if let Some(database) = database(all) {
        let main = database.main_demand();
        demands.extend(database.demands);
        if let Some(main) = main {
            demands[..=main].rotate_right(1);
        }
    }
    let of_series = |one: &Imported| match &one.figures {
        Figures::Series(series) => of_series(one, series),
        _ => Vec::new(),
    };
    let mut devices: Vec<Demand> = all.iter().flat_map(of_series).collect();
    let peak = Demand::peak_operations_per_s;
    devices.sort_by(|one, other| peak(other).total_cmp(&peak(one)));
    demands.extend(devices);
    demands.retain(|demand| !demand.intervals.is_empty());
    demands
}

/// Doubts about `demands`, of which `interval` is offered: the findings of their reports about that interval and
/// about all of them together; of what Rigel itself counted, that memory answered.
pub fn demand_findings(
    demands: &[Demand],
    all: &[Imported],
    interval: &DemandInterval,
) -> Vec<Finding> {
    let mut findings = of_reports(all, interval);
    if all.is_empty() {
        let mut own = demands.iter();
        findings.extend(own.find_map(|demand| memory::of_demand(demand, interval)));
    }
    findings
}

/// `At least this: 54.0 % of DB time waited for single-block reads.`; `None` if nothing speaks for more.
pub fn demand_at_least(interval: &DemandInterval) -> Option<String> {
    let why = &interval.censored;
    (!why.is_empty()).then(|| format!("At least this: {why}."))
}

/// Says that a database may have asked for more than it got; `None` if nothing speaks for it.
pub fn demand_censored(database: &str, interval: &DemandInterval) -> Option<Finding> {
    (!interval.censored.is_empty()).then(|| {
        Finding::note(
            FindingName::DemandCensored,
            format!(
                "{database}: {}: it may have wanted more than it got, so read the demand as \"at \
                 least this\"",
                interval.censored
            ),
        )
    })
}

fn of_reports(all: &[Imported], interval: &DemandInterval) -> Vec<Finding> {
    let Some(database) = database(all) else {
        return all.iter().flat_map(doubts).collect();
    };
    // The reports of other instances of the same time are part of a sum.
    let is_other_time = |one: &&DemandInterval| {
        let begins = one.begin.zip(interval.begin);
        begins.is_none_or(|(one, own)| one.since(own).abs() > SAME_WINDOW_S)
    };
    let intervals = database.demands.iter().flat_map(|demand| &demand.intervals);
    let labels: Vec<&str> = intervals
        .filter(is_other_time)
        .map(|one| one.label.as_str())
        .filter(|label| *label != interval.label && !label.is_empty())
        .collect();
    let is_of_another = |finding: &Finding| {
        let rest = |label: &&str| finding.what.strip_prefix(*label);
        let mut rests = labels.iter().filter_map(rest);
        rests.any(|rest| rest.starts_with([':', ' ', ',']))
    };
    let mut findings = database.findings;
    // Of the interval that is offered, [`demand_censored`] says it.
    findings.retain(|finding| !finding.is(FindingName::DemandCensored) && !is_of_another(finding));
    findings
}

/// A stream without latencies.
fn stream(kind: DemandKind, per_s: Option<f64>, bytes: Option<f64>, how: &str) -> DemandStream {
    DemandStream {
        kind,
        per_s,
        mean_bytes: bytes.filter(|bytes| bytes.is_finite() && *bytes > 0.0),
        mean_us: None,
        mean_range_us: None,
        waits: None,
        latencies: Vec::new(),
        rate_of: how.into(),
        latency_of: String::new(),
    }
}

/// The columns of one device or of a csv file that make a demand.
#[derive(Default)]
struct DemandColumns<'a> {
    reads: Option<&'a ImportedSeries>,
    read_bytes: Option<(&'a ImportedSeries, f64)>,
    read_ms: Option<&'a ImportedSeries>,
    writes: Option<&'a ImportedSeries>,
    write_bytes: Option<(&'a ImportedSeries, f64)>,
    write_ms: Option<&'a ImportedSeries>,
}

/// A demand for each device of iostat; one for a csv file.
fn of_series(source: &Imported, series: &[ImportedSeries]) -> Vec<Demand> {
    let mut devices: Vec<(&str, DemandColumns)> = Vec::new();
    let mut places: HashMap<&str, usize> = HashMap::new();
    for one in series {
        // The columns of iostat are named `DEVICE COLUMN`.
        let (device, column) = if source.tool == "iostat" {
            one.name.rsplit_once(' ').unwrap_or(("", &one.name))
        } else {
            ("", one.name.as_str())
        };
        let index = *places.entry(device).or_insert_with(|| {
            devices.push((device, DemandColumns::default()));
            devices.len() - 1
        });
        devices[index].1.add(one, column);
    }
    devices
        .into_iter()
        .filter_map(|(device, columns)| {
            let named = source.sources.first().map_or("", String::as_str);
            let file = file_name(named);
            Some(Demand {
                source: source.tool.clone(),
                database: if device.is_empty() { file } else { device }.into(),
                release: source.version.clone(),
                host: None,
                block_bytes: None,
                log: None,
                intervals: columns.intervals()?,
                sum_of: Vec::new(),
                is_device: !device.is_empty(),
            })
        })
        .collect()
}

impl<'a> DemandColumns<'a> {
    fn add(&mut self, series: &'a ImportedSeries, column: &str) {
        /// Bytes of a sector, as iostat counts them.
        const SECTOR: f64 = 512.0;
        match column {
            "r/s" => self.reads = Some(series),
            "w/s" => self.writes = Some(series),
            "rkB/s" => self.read_bytes = Some((series, 1024.0)),
            "wkB/s" => self.write_bytes = Some((series, 1024.0)),
            "rMB/s" => self.read_bytes = Some((series, 1024.0 * 1024.0)),
            "wMB/s" => self.write_bytes = Some((series, 1024.0 * 1024.0)),
            "rsec/s" => self.read_bytes = Some((series, SECTOR)),
            "wsec/s" => self.write_bytes = Some((series, SECTOR)),
            "r_await" => self.read_ms = Some(series),
            "w_await" => self.write_ms = Some(series),
            // Of a csv file: rates of reads and of writes by their names.
            name if series.unit == "/s" => {
                let name = name.to_ascii_lowercase();
                let place = if name.contains("read") {
                    &mut self.reads
                } else if name.contains("write") {
                    &mut self.writes
                } else {
                    return;
                };
                place.get_or_insert(series);
            }
            _ => {}
        }
    }

    /// An interval for each sample of reads or writes; `None` without such columns.
    fn intervals(&self) -> Option<Vec<DemandInterval>> {
        let samples = &self.reads.or(self.writes)?.samples;
        let rates: HashMap<&str, HashMap<Moment, Option<f64>>> = [
            self.reads,
            self.read_bytes.map(|(series, _)| series),
            self.read_ms,
            self.writes,
            self.write_bytes.map(|(series, _)| series),
            self.write_ms,
        ]
        .into_iter()
        .flatten()
        .map(|series| (series.name.as_str(), first_rates(series)))
        .collect();
        let intervals = samples.iter().map(|sample| {
            let rate_at = |series: Option<&ImportedSeries>| {
                let rates = rates.get(series?.name.as_str())?;
                rates.get(&sample.begin).copied().flatten()
            };
            let size = |bytes: Option<(&ImportedSeries, f64)>, per_s: Option<f64>| {
                let (series, factor) = bytes?;
                Some(rate_at(Some(series))? * factor / per_s.filter(|per_s| *per_s > 0.0)?)
            };
            let mut streams = Vec::new();
            if let Some(reads) = self.reads {
                let per_s = rate_at(Some(reads));
                let bytes = size(self.read_bytes, per_s);
                let kind = reads_of(bytes);
                let how = match bytes {
                    Some(_) => "all reads of the device; the mean size hides a mixture",
                    None => "the column of reads; one block each",
                };
                let mut reading = stream(kind, per_s, bytes, &format!("{}: {how}", reads.name));
                with_latency(&mut reading, rate_at(self.read_ms), self.read_ms);
                streams.push(reading);
            }
            if let Some(writes) = self.writes {
                let per_s = rate_at(Some(writes));
                let bytes = size(self.write_bytes, per_s);
                let how = match bytes {
                    Some(_) => "all writes, those of the log among them",
                    None => "the column of writes; one block each",
                };
                let how = format!("{}: {how}", writes.name);
                let mut writing = stream(DemandKind::PageAndDirectWrites, per_s, bytes, &how);
                with_latency(&mut writing, rate_at(self.write_ms), self.write_ms);
                streams.push(writing);
            }
            DemandInterval {
                label: format!("sample of {}", sample.begin.short()),
                begin: Some(sample.begin),
                seconds: sample.seconds,
                streams,
                left_out: None,
                censored: String::new(),
                operations: None,
            }
        });
        Some(intervals.collect())
    }
}

/// The rate of each sample by its time; of several at one time, the first one's.
fn first_rates(series: &ImportedSeries) -> HashMap<Moment, Option<f64>> {
    let samples = series.samples.iter().rev();
    samples
        .map(|sample| (sample.begin, sample.rate()))
        .collect()
}

/// The kernel's mean time of a device's operations, to the printed place.
fn with_latency(stream: &mut DemandStream, ms: Option<f64>, series: Option<&ImportedSeries>) {
    stream.mean_us = ms.filter(|ms| *ms > 0.0).map(|ms| ms * 1e3);
    let half_us = series.and_then(|series| series.half).map(|half| half * 1e3);
    stream.mean_range_us = stream
        .mean_us
        .zip(half_us)
        .map(|(us, half)| ((us - half).max(0.0), us + half));
    if stream.mean_us.is_some() {
        stream.latency_of = "await of the device".into();
    }
}

/// The mean time of a stream, with its limits if it was printed to few digits.
pub fn mean_time(stream: &DemandStream) -> Option<String> {
    /// An interval that is wider is worth showing.
    const WIDE: f64 = 0.05;
    let us = stream.mean_us?;
    Some(match stream.mean_range_us {
        Some((low, high)) if high - low > WIDE * us => {
            format!("{} ({} to {})", time(us), time(low), time(high))
        }
        _ => time(us),
    })
}

/// The demand of a database's sessions that Rigel ran: an interval for each load.
fn of_sessions(run: &Run, server: &ServerFacts) -> Option<Demand> {
    let tables = server.tables?;
    let block = f64::from(tables.block);
    let records = run.joined();
    let complete = records.iter().filter(|record| record.end == End::Complete);
    let intervals: Vec<DemandInterval> = complete
        .filter_map(|record| {
            let point = summarise(record);
            let sql = point.sql.as_deref()?;
            let streams = streams_of_sessions(sql, block, server.dbms())?;
            let operations = operations_of(record, sql);
            let censored = if is_open(record) {
                ""
            } else {
                "its sessions wait for storage before they ask again"
            };
            Some(DemandInterval {
                operations,
                censored: censored.into(),
                ..interval_of(&point, streams)
            })
        })
        .collect();
    (!intervals.is_empty()).then(|| Demand {
        source: "rigel sql".into(),
        database: run.header.facts.name.clone(),
        release: Some(server.version.clone()),
        host: Some(run.header.host.name.clone()).filter(|name| !name.is_empty()),
        block_bytes: Some(tables.block),
        log: server.log(),
        intervals,
        sum_of: Vec::new(),
        is_device: false,
    })
}

fn interval_of(point: &PointSummary, streams: Vec<DemandStream>) -> DemandInterval {
    DemandInterval {
        label: point.coordinates.to_string(),
        begin: point.started.parse::<Moment>().ok(),
        seconds: Some(point.measured_s),
        streams,
        left_out: None,
        censored: String::new(),
        operations: None,
    }
}

/// True if operations were due at times of their own.
fn is_open(record: &PointRecord) -> bool {
    let mut loads = record.streams.iter().flat_map(|stream| &stream.loads);
    loads.all(|load| load.is_open())
}

/// What the sessions did, by their own counts; `None` if they completed nothing.
fn operations_of(record: &PointRecord, sql: &SqlSummary) -> Option<DemandOperations> {
    let stream = record.streams.iter().find(|stream| stream.sql.is_some())?;
    let mean_us = |wanted: &dyn Fn(Kind) -> bool| {
        let kinds = stream.kinds.iter().filter(|kind| wanted(kind.kind));
        let total: Window = kinds.flat_map(|kind| &kind.windows).sum();
        (total.done > 0).then(|| total.response.sum as f64 / 1e3 / total.done as f64)
    };
    let is_read = |kind| matches!(kind, Kind::Read | Kind::Scan);
    (sql.operations_per_s > 0.0).then_some(DemandOperations {
        per_s: sql.operations_per_s,
        mean_us: mean_us(&|_| true),
        read_mean_us: mean_us(&is_read),
        sessions: sql.sessions,
        work: stream.sql?,
    })
}

/// The streams by the server's counters; `None` if it counts no reads.
fn streams_of_sessions(sql: &SqlSummary, block: f64, dbms: Dbms) -> Option<Vec<DemandStream>> {
    let server = sql.server.as_ref()?;
    let reads = server.physical?;
    let mut random = stream(
        DemandKind::RandomReads,
        Some(reads.per_s),
        Some(block),
        "the server's count of blocks read past its buffer cache",
    );
    random.mean_us = server.read_mean_us;
    if random.mean_us.is_some() {
        random.latency_of = "the server's own timing of reads".into();
    }
    let mut streams = vec![random];
    streams.extend(server.written.map(|written| {
        stream(
            DemandKind::PageWrites,
            Some(written.per_s),
            Some(block),
            "the server's count of blocks written",
        )
    }));
    streams.extend(server.log_syncs.map(|syncs| {
        let bytes = server
            .log_bytes
            .filter(|_| syncs.per_s > 0.0)
            .map(|bytes| bytes.per_s / syncs.per_s + dbms.log_bytes_again());
        let how = format!(
            "syncs of the log, {} per second; size from its bytes",
            count(syncs.per_s)
        );
        stream(DemandKind::LogWrites, Some(syncs.per_s), bytes, &how)
    }));
    Some(streams)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_import::{Source, csv_columns, read};
    use rigel_model::DemandAt;
    use std::fmt::Write;

    fn found(name: &str, text: &str) -> Vec<Demand> {
        let sources = [Source { name, text }];
        imported_demands(&read(&sources, None, &csv_columns::Columns::default()).unwrap())
    }

    #[test]
    fn a_published_day_is_a_demand_of_random_reads() {
        let text = include_str!("../../../../docs/examples/cloud-day.csv");
        let demands = found("cloud-day.csv", text);
        let [demand] = &demands[..] else {
            panic!("{demands:?}")
        };
        let (busiest, _) = demand.interval_at(DemandAt::Peak).unwrap();
        let reads = busiest.stream(DemandKind::RandomReads).unwrap();
        assert!(
            (7100.0..7200.0).contains(&reads.per_s.unwrap()),
            "{reads:?}"
        );
        assert_eq!((reads.mean_bytes, reads.mean_us), (None, None));
        assert_eq!(busiest.streams.len(), 1);
    }

    #[test]
    fn each_device_of_iostat_is_a_demand_with_sizes_and_means() {
        let text = include_str!("../../../../tests/imports/iostat_iso.txt");
        // A device that does less, and is listed before.
        let with_another = |line: &str| match line.strip_prefix("vda") {
            Some(figures) => {
                let reads = figures.split_whitespace().next().unwrap();
                format!("sda{}\n{line}\n", figures.replacen(reads, "1.00", 1))
            }
            None => format!("{line}\n"),
        };
        let text: String = text.lines().map(with_another).collect();
        let demands = found("iostat.txt", &text);
        let names = demands.iter().map(|demand| &demand.database);
        assert_eq!(
            names.collect::<Vec<_>>(),
            ["vda", "sda"],
            "the busiest first"
        );
        for demand in &demands {
            assert_eq!(demand.source, "iostat");
            for stream in demand.intervals.iter().flat_map(|one| &one.streams) {
                let is_large = stream.mean_bytes.is_some_and(|bytes| bytes > 16384.0);
                assert_eq!(
                    is_large && stream.kind.is_read(),
                    stream.kind == DemandKind::MultiblockReads
                );
            }
        }
    }

    #[test]
    fn what_speaks_against_a_report_speaks_against_its_demand() {
        let whole = include_str!("../../../../tests/imports/awr_synthetic.html");
        let cut = &whole[..whole.len() - 40];
        let read = |name, text| {
            let sources = [Source { name, text }];
            read(&sources, None, &csv_columns::Columns::default()).unwrap()
        };
        let is_cut = |all: &[Imported], label: &str, later_s: i64| {
            let mut interval = imported_demands(all)[0].intervals[0].clone();
            interval.label = label.into();
            interval.begin = interval.begin.map(|begin| begin.plus_seconds(later_s));
            let found = demand_findings(&[], all, &interval);
            found.iter().any(|one| one.is(FindingName::ReportCut))
        };
        assert!(is_cut(&read("cut.html", cut), "cut.html", 0));
        assert!(!is_cut(&read("whole.html", whole), "whole.html", 0));
        // Nor is it a doubt about another interval.
        assert!(!is_cut(&read("cut.html", cut), "other.html", 3600));
        assert!(is_cut(&read("cut.html", cut), "sum of 2 instances", 0));
    }

    #[test]
    fn every_sample_of_a_long_series_has_its_own_figures() {
        const SAMPLES: usize = 20_000;
        let mut text = String::from("time,reads_per_second,writes_per_second\n");
        let begin: Moment = "2026-01-01T00:00".parse().unwrap();
        for sample in 0..SAMPLES {
            let at = begin.plus_seconds(10 * i64::try_from(sample).unwrap());
            writeln!(text, "{at},{},{}", sample + 1, 2 * sample + 1).unwrap();
        }
        let demands = found("long.csv", &text);
        let intervals = &demands[0].intervals;
        assert_eq!(intervals.len(), SAMPLES);
        for (sample, interval) in intervals.iter().enumerate() {
            let rates: Vec<Option<f64>> = interval.streams.iter().map(|one| one.per_s).collect();
            assert_eq!(
                rates,
                [Some((sample + 1) as f64), Some((2 * sample + 1) as f64)]
            );
        }
    }

    #[test]
    fn figures_without_reads_and_writes_are_no_demand() {
        let text = "time,commits_per_second\n2026-01-01T00:00,5\n2026-01-01T00:10,6\n";
        assert!(found("commits.csv", text).is_empty());
    }
}
