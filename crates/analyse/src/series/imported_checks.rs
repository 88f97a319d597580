//! Doubts about figures of another tool: the five checks of arithmetic, and what the tool itself says.
//!
//! Input: one imported source. Output: findings, each with both figures. Every source passes through here; reports
//! of databases also have tables of their own to compare ([`crate::demand`]).

use super::imported::{figures, outstanding_of, quantiles, quantiles_end, together, words};
use crate::figures::quantity::{count, counted, time};
use rigel_model::arithmetic::{block_between, outstanding, shared};
use rigel_model::record::database::Printed;
use rigel_model::record::imported::{
    ClaimedCalibration, Counted, Figures, Imported, ImportedSeries, LoadPoint, ReportedLoad,
};
use rigel_model::{Bytes, Finding, FindingName, MIB};
use std::collections::BTreeMap;

/// Allowed relative deviation of outstanding operations from Little's law. fio's means leave out
/// the time between the end of one operation and the start of the next.
const LITTLE_TOLERANCE: f64 = 0.15;

/// Number of series of one source that are named one by one.
const NAMED_MAX: usize = 3;

/// All findings about one source.
pub fn doubts(source: &Imported) -> Vec<Finding> {
    match &source.figures {
        Figures::Loads(points) => {
            let mut findings: Vec<Finding> = points.iter().flat_map(of_load).collect();
            findings.extend(derived_rate(points));
            findings
        }
        Figures::Series(series) => repeated(series)
            .into_iter()
            .chain(queues(source, series))
            .collect(),
        Figures::Claims(claims) => claims.iter().flat_map(of_claim).collect(),
        Figures::Database(_) => Vec::new(),
    }
}

// ---- loads ----

fn of_load(point: &LoadPoint) -> Vec<Finding> {
    let mut findings = ended_by_error(point);
    findings.extend(through_page_cache(point));
    findings.extend(ran_apart(point));
    findings.extend(too_fast(point));
    findings.extend(at_least(point));
    findings.extend(little(point));
    findings
}

fn name(point: &LoadPoint) -> String {
    let load = words(point);
    // A cell of Orion's is its own load.
    if point.label == load {
        load
    } else {
        format!("{}, {load}", point.label)
    }
}

/// Processes that ended by an error, among them those that read other data than they wrote.
fn ended_by_error(point: &LoadPoint) -> Vec<Finding> {
    /// EILSEQ, by which fio ends if it verifies: of Linux, and of Windows.
    const DATA_DIFFER: [i64; 2] = [84, 42];
    let mut counts: BTreeMap<i64, u64> = BTreeMap::new();
    for error in &point.errors {
        *counts.entry(*error).or_default() += 1;
    }
    let of_processes = |count: u64| match point.process_seconds.len() {
        0 => String::new(),
        all => format!(", {count} of its {all} processes"),
    };
    let finding = |(error, count): (i64, u64)| {
        let (name, of) = (name(point), of_processes(count));
        if DATA_DIFFER.contains(&error) {
            Finding::warning(
                FindingName::WrongBlocks,
                format!(
                    "{name}: the data that were read are not the data that were written{of} (error {error}, EILSEQ)"
                ),
                "trust this storage with nothing before you know why: the lines 'verify:' of fio name the blocks",
            )
        } else {
            Finding::warning(
                FindingName::JobFailed,
                format!(
                    "{name}: the job ended by error {error}{of}: its figures are of what came before"
                ),
                "remove the cause, which fio prints, and measure again",
            )
        }
    };
    counts.into_iter().map(finding).collect()
}

/// Reads, and writes that are not synced, without direct I/O.
fn through_page_cache(point: &LoadPoint) -> Option<Finding> {
    let engine = point.buffered_by.as_ref()?;
    let is_cached = |kind: &str| kind != "sync" && (kind != "write" || point.syncs.is_none());
    let kinds: Vec<String> = point
        .flows
        .iter()
        .filter(|flow| is_cached(&flow.kind) && flow.kind != "mixed")
        .map(|flow| format!("{}s", flow.kind))
        .collect();
    let kinds = if kinds.is_empty() && point.flows.iter().any(|flow| is_cached(&flow.kind)) {
        "reads and writes".to_string()
    } else {
        kinds.join(" and ")
    };
    let how = if engine == "mmap" {
        "mmap".to_string()
    } else {
        format!("{engine} without direct=1")
    };
    (!kinds.is_empty()).then(|| {
        Finding::warning(
            FindingName::PageCache,
            format!(
                "{}: {kinds} went through the page cache ({how}): memory may have answered",
                name(point)
            ),
            "measure with direct=1 and an engine such as libaio",
        )
    })
}

/// Processes that ended at different times have no rate together.
fn ran_apart(point: &LoadPoint) -> Option<Finding> {
    let share = together(point)?;
    let seconds = point.seconds.unwrap_or(0.0);
    let flow = point.flows.iter().find(|flow| flow.done.is_some())?;
    let over_all = figures(point, flow, None).iops?;
    Some(Finding::warning(
        FindingName::FiguresDiffer,
        format!(
            "{}: its processes ended at different times, and ran together for {:.0} % of the time: {} {}s per second \
             are of all {}, and the sum of their rates, {}, is of no time",
            name(point),
            share * 100.0,
            count(over_all),
            flow.kind,
            time(seconds * 1e6),
            count(flow.iops?)
        ),
        "measure with time_based and runtime, so that all end together",
    ))
}

/// Operations that took less than a microsecond.
fn too_fast(point: &LoadPoint) -> Vec<Finding> {
    let is_part = point.flows.len() > 1;
    let flows = point.flows.iter();
    let own = flows.filter(|flow| !is_part || flow.kind != "mixed");
    own.filter_map(|flow| {
        let load = figures(point, flow, None);
        let below = load.below_1_us?;
        let of_all = load
            .done
            .map_or_else(String::new, |done| format!(" of {done}"));
        Some(Finding::warning(
            FindingName::FiguresImpossible,
            format!(
                "{}: {below}{of_all} {}s took less than 1 µs, and no storage answers in less than \
                 1 µs: a cache did, or the clock was wrong",
                name(point),
                load.kind
            ),
            "measure with direct I/O, on a target larger than the memory",
        ))
    })
    .collect()
}

/// Quantiles that lie where the tool's histogram ends, or whose mean is above them.
fn at_least(point: &LoadPoint) -> Option<Finding> {
    point.flows.iter().find_map(|flow| {
        let timed = quantiles(flow)?;
        let end = quantiles_end(timed)?;
        let mut censored = timed.quantiles.iter().filter(|(_, value)| *value >= end);
        let least = censored.next()?.0;
        let us = |ns: f64| time(ns / 1e3);
        let known = [("the mean is", timed.mean), ("the maximum", timed.max)];
        let beside: Vec<String> = known
            .into_iter()
            .filter_map(|(what, value)| Some(format!("{what} {}", us(value?))))
            .collect();
        Some(Finding::warning(
            FindingName::FiguresImpossible,
            format!(
                "{}: percentiles from {} % on are at least {}, where the tool's histogram ends: {}",
                name(point),
                least * 100.0,
                us(end),
                beside.join(", ")
            ),
            "use the mean and the maximum, or a log of each I/O",
        ))
    })
}

/// Outstanding operations that are not those of the load.
fn little(point: &LoadPoint) -> Vec<Finding> {
    if together(point).is_some() {
        return Vec::new();
    }
    let mut classes: Vec<&str> = point.flows.iter().map(|flow| flow.class.as_str()).collect();
    classes.sort_unstable();
    classes.dedup();
    let finding = |class: &str| {
        let wanted = match (&point.load, class) {
            (ReportedLoad::Cell { small, .. }, "small") => *small,
            (ReportedLoad::Cell { large, .. }, _) => *large,
            (ReportedLoad::Closed { depth }, _) => *depth,
            (ReportedLoad::Open { .. } | ReportedLoad::Other(_), _) => return None,
        };
        let little = outstanding_of(point, class)?;
        // What waits in the tool is in its times.
        let most = point.ignored_depth.unwrap_or(wanted).max(wanted);
        let (wanted_f, most) = (f64::from(wanted), f64::from(most));
        let is_kept = little >= wanted_f * (1.0 - LITTLE_TOLERANCE)
            && little <= most * (1.0 + LITTLE_TOLERANCE);
        (wanted > 0 && !is_kept).then(|| {
            Finding::warning(
                FindingName::LittlesLaw,
                format!(
                    "{}: {wanted} should be outstanding, but by Little's law \
                     {little:.2} were on average: the load was not the one named",
                    name(point)
                ),
                "compare this load by its average number of outstanding I/Os",
            )
        })
    };
    classes.into_iter().filter_map(finding).collect()
}

/// A figure with the places that a program prints of it at least.
fn printed(value: f64) -> Printed {
    let text = format!("{value}");
    let places = text.find('.').map_or(0, |point| text.len() - point - 1);
    Printed {
        value,
        half: 0.5 * 10_f64.powi(-i32::try_from(places).unwrap_or(i32::MAX)),
    }
}

/// A greatest rate of small operations that is the greatest throughput of large ones ÷ a block.
fn derived_rate(points: &[LoadPoint]) -> Option<Finding> {
    let flows = || points.iter().flat_map(|point| &point.flows);
    let of_class = |class: &'static str| flows().filter(move |flow| flow.class == class);
    let rate = of_class("small")
        .filter_map(|flow| flow.iops)
        .reduce(f64::max)?;
    let bytes = of_class("large")
        .filter_map(|flow| flow.bytes_per_s)
        .reduce(f64::max)?;
    derived(rate, bytes, "the tool")
}

fn derived(rate: f64, bytes_per_s: f64, who: &str) -> Option<Finding> {
    let units = [MIB as f64, 1e6, 1.0];
    let block = units
        .into_iter()
        .find_map(|unit| block_between(printed(rate), printed(bytes_per_s / unit).scaled(unit)))?;
    Some(Finding::warning(
        FindingName::FiguresImpossible,
        format!(
            "{who} has {} small operations per second, to four digits its throughput of large ones ÷ {}: one of the \
             two was not measured",
            count(rate),
            Bytes(block)
        ),
        "measure both",
    ))
}

// ---- claims ----

/// Figures of `CALIBRATE_IO` that cannot be of one storage.
fn of_claim(claim: &ClaimedCalibration) -> Vec<Finding> {
    let mut findings = Vec::new();
    let impossible = |what: String| {
        Finding::warning(
            FindingName::FiguresImpossible,
            format!("CALIBRATE_IO claims {what}"),
            "calibrate again, on idle storage",
        )
    };
    let above = |one: f64, other: f64| {
        shared(
            printed(one).range(),
            (f64::NEG_INFINITY, printed(other).range().1),
        )
        .is_none()
    };
    if let Some((iops, mbps)) = claim.max_iops.zip(claim.max_mbps) {
        // It reads large blocks of 1 MiB, and a small one is read no slower.
        if above(mbps, iops) {
            findings.push(impossible(format!(
                "{} reads of a block per second, and {} of 1 MiB: small reads take no longer than large ones",
                count(iops),
                count(mbps)
            )));
        }
        findings.extend(derived(iops, mbps * MIB as f64, "CALIBRATE_IO"));
    }
    if let Some((one, all)) = claim.max_pmbps.zip(claim.max_mbps)
        && above(one, all)
    {
        findings.push(impossible(format!(
            "{} MB/s by one process, and {} MB/s by all",
            count(one),
            count(all)
        )));
    }
    findings
}

// ---- series ----

/// Samples that begin when another one does.
fn repeated(series: &[ImportedSeries]) -> Option<Finding> {
    let of = |series: &ImportedSeries| {
        let is_repeated = |two: &&[Counted]| two[1].begin == two[0].begin;
        let mut pairs = series.samples.windows(2).filter(is_repeated);
        let first = pairs.next()?[0].begin;
        Some((1 + pairs.count(), series.samples.len(), first))
    };
    let (times, all, first) = series
        .iter()
        .filter_map(of)
        .max_by_key(|(times, ..)| *times)?;
    Some(Finding::warning(
        FindingName::RepeatedTime,
        format!("{times} of {all} samples begin when another one does, the first at {first}"),
        "use one file for each instance, or device, and no part of it twice",
    ))
}

/// The columns of a device that Little's law connects.
#[derive(Default)]
struct QueueColumns<'a> {
    queue: Option<&'a ImportedSeries>,
    /// Rates, each with the times of its operations.
    rates: BTreeMap<&'a str, &'a ImportedSeries>,
    times: BTreeMap<&'a str, &'a ImportedSeries>,
}

/// Devices of iostat whose queue is not their rates times their times.
fn queues(source: &Imported, series: &[ImportedSeries]) -> Vec<Finding> {
    if source.tool != "iostat" {
        return Vec::new();
    }
    let mut devices: BTreeMap<&str, QueueColumns> = BTreeMap::new();
    for one in series {
        let Some((device, column)) = one.name.rsplit_once(' ') else {
            continue;
        };
        let columns = devices.entry(device).or_default();
        match column {
            "aqu-sz" | "avgqu-sz" => columns.queue = Some(one),
            "r/s" | "w/s" | "d/s" | "f/s" => {
                columns.rates.insert(&column[..1], one);
            }
            "r_await" | "w_await" | "d_await" | "f_await" => {
                columns.times.insert(&column[..1], one);
            }
            _ => {}
        }
    }
    let all: Vec<String> = devices
        .iter()
        .filter_map(|(device, columns)| columns.contradiction(device))
        .collect();
    let others = all.len().saturating_sub(NAMED_MAX);
    let rest = (others > 0).then(|| format!("so do {}", counted(others as u64, "other device")));
    let named = all.into_iter().take(NAMED_MAX).chain(rest);
    let hint = "trust neither its queue nor its times: some drivers count only one of them";
    named
        .map(|what| Finding::warning(FindingName::FiguresDiffer, what, hint))
        .collect()
}

impl QueueColumns<'_> {
    /// Both figures, if they are no printings of one number.
    fn contradiction(&self, device: &str) -> Option<String> {
        let queue = self.queue?;
        let half = |series: &ImportedSeries| series.half.unwrap_or(0.0);
        let printed = |series: &ImportedSeries, sample: &Counted| -> Option<Printed> {
            let samples = &series.samples;
            let at = samples
                .binary_search_by_key(&sample.begin, |one| one.begin)
                .ok()?;
            Some((samples[at].value?, half(series)).into())
        };
        let (mut shown, mut low, mut high, mut seconds, mut longest_s) =
            (0.0, 0.0, 0.0, 0.0, 0.0_f64);
        for sample in &queue.samples {
            let (Some(value), Some(length)) = (sample.value, sample.seconds) else {
                continue;
            };
            let kinds: Vec<(Printed, Printed)> = self
                .rates
                .iter()
                .filter_map(|(kind, rates)| {
                    let times = self.times.get(kind)?;
                    Some((
                        printed(rates, sample)?,
                        printed(times, sample)?.scaled(1e-3),
                    ))
                })
                .collect();
            if kinds.is_empty() {
                continue;
            }
            let of = outstanding(&kinds);
            shown += value * length;
            low += of.0 * length;
            high += of.1 * length;
            seconds += length;
            let times = kinds.iter().map(|(_, time)| time.range().1);
            longest_s = times.fold(longest_s, f64::max);
        }
        if seconds <= 0.0 {
            return None;
        }
        // What was outstanding at both ends is counted by its end in the one, and by its time in the other.
        let at_ends = queue
            .samples
            .iter()
            .filter_map(|sample| sample.value)
            .fold(high / seconds, f64::max)
            * longest_s
            / seconds;
        let (own, by_law) = (shown / seconds, (low / seconds, high / seconds));
        let around = (own - half(queue) - at_ends, own + half(queue) + at_ends);
        shared(around, by_law).is_none().then(|| {
            format!(
                "{device}: {own:.2} operations were outstanding on average by its queue, and {:.2} by Little's law, rates \
                 times times",
                f64::midpoint(by_law.0, by_law.1)
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_import::{Source, csv_columns::Columns, read};

    fn findings(name: &str, text: &str) -> Vec<Finding> {
        let sources = [Source { name, text }];
        let read = read(&sources, None, &Columns::default()).unwrap();
        read.iter().flat_map(doubts).collect()
    }

    fn named(name: FindingName, text: &str) -> Vec<String> {
        let all = findings("f", text).into_iter();
        all.filter(|one| one.is(name)).map(|one| one.what).collect()
    }

    #[test]
    fn an_answer_within_a_microsecond_is_not_one_of_storage() {
        let of = |below: u64| {
            let text = format!(
                "Small Read / Write Latency Histogram @ Small=3 and Large=0\n0 - 1 us: {below} 0\n512 - 1024 \
                 us: {} 0\n134217728 - 268435456 us: 0 0\n",
                100 - below
            );
            named(FindingName::FiguresImpossible, &text)
        };
        let [what] = &of(7)[..] else {
            panic!("{:?}", of(7))
        };
        assert!(
            what.contains("7 of 100 reads took less than 1 µs"),
            "{what}"
        );
        assert!(of(0).is_empty());
    }

    #[test]
    fn a_completion_before_its_submission_ended_is_no_fast_answer() {
        let text = include_str!("../../../../tests/imports/fio_clat_below_1us.json");
        assert_eq!(findings("f", text), []);
        let fast = text.replace("\"min\": 40000", "\"min\": 700");
        assert_eq!(named(FindingName::FiguresImpossible, &fast).len(), 1);
    }

    #[test]
    fn data_that_differ_and_other_errors_are_told_apart() {
        let text = include_str!("../../../../tests/imports/fio_verify_error.json");
        assert_eq!(named(FindingName::WrongBlocks, text).len(), 1);
        let windows = text.replace("\"error\": 84", "\"error\": 42");
        assert_eq!(named(FindingName::WrongBlocks, &windows).len(), 1);
        let full = text.replace("\"error\": 84", "\"error\": 28");
        let what = &named(FindingName::JobFailed, &full)[0];
        assert!(what.contains("the job ended by error 28"), "{what}");
        assert_eq!(
            findings("f", &text.replace("\"error\": 84", "\"error\": 0")),
            []
        );
    }

    #[test]
    fn processes_that_ended_apart_have_no_sum_of_rates() {
        let text = include_str!("../../../../tests/imports/fio_two_runtimes.json");
        let what = &named(FindingName::FiguresDiffer, text)[0];
        assert!(
            what.contains("ran together for 10 % of the time: 2,000 writes per second"),
            "{what}"
        );
        let together = text.replace("\"runtime\": 100000", "\"runtime\": 10000");
        assert_eq!(named(FindingName::FiguresDiffer, &together), [""; 0]);
        // A process ends when its last operation does.
        let late = text.replace("\"runtime\": 100000", "\"runtime\": 10008");
        assert_eq!(named(FindingName::FiguresDiffer, &late), [""; 0]);
    }

    #[test]
    fn percentiles_at_the_end_of_a_histogram_are_lower_bounds() {
        let text = include_str!("../../../../tests/imports/fio_saturated_histogram.json");
        let what = &named(FindingName::FiguresImpossible, text)[0];
        assert!(what.contains("from 50 % on are at least 17.1 s"), "{what}");
        // Without the end of fio's histogram, the mean alone shows it.
        let other = text.replace("17112760320", "16000000000");
        let what = &named(FindingName::FiguresImpossible, &other)[0];
        assert!(what.contains("at least 16.0 s"), "{what}");
        let possible = other.replace("\"mean\": 41200000000.0", "\"mean\": 15000000000.0");
        assert_eq!(named(FindingName::FiguresImpossible, &possible), [""; 0]);
    }

    #[test]
    fn what_goes_through_the_page_cache_says_so() {
        let direct = include_str!("../../../../tests/imports/fio_clat_below_1us.json");
        let text = direct.replace("\"direct\": \"1\"", "\"direct\": \"0\"");
        let what = &named(FindingName::PageCache, &text)[0];
        assert!(
            what.contains("reads went through the page cache (libaio without direct=1)"),
            "{what}"
        );
        // Writes that are synced are not answered by memory.
        let synced = include_str!("../../../../tests/imports/fio_fdatasync.json");
        assert_eq!(findings("f", synced), []);
        let unsynced = synced.replace("\"fdatasync\":\"1\"", "\"end_fsync\":\"1\"");
        assert_eq!(named(FindingName::PageCache, &unsynced).len(), 1);
    }

    #[test]
    fn an_engine_of_one_io_has_depth_1() {
        let text = include_str!("../../../../tests/imports/fio_psync_iodepth32.json");
        assert_eq!(findings("f", text), []);
        let honest = text.replace("psync", "libaio");
        let what = &named(FindingName::LittlesLaw, &honest)[0];
        assert!(what.contains("32 should be outstanding"), "{what}");
    }

    #[test]
    fn a_rate_that_is_a_throughput_by_a_block_was_not_measured() {
        let of = |iops: u32, mbps: u32, pmbps: u32| {
            let text =
                format!("max_iops = {iops}\nlatency = 9\nmax_mbps = {mbps}\nmax_pmbps = {pmbps}\n");
            named(FindingName::FiguresImpossible, &text)
        };
        assert_eq!(of(24_002, 175, 170), [""; 0]);
        assert!(
            of(256_000, 2000, 2000)[0].contains("÷ 8 KiB"),
            "{:?}",
            of(256_000, 2000, 2000)
        );
        assert!(
            of(154, 18_579, 170)[0]
                .contains("154 reads of a block per second, and 18,579 of 1 MiB")
        );
        assert!(of(24_002, 175, 180)[0].contains("180 MB/s by one process"));
    }

    /// A file of iostat in which the queue is that of the rates and times, or `queue`.
    fn iostat(queue: &str) -> String {
        let head = "Linux 6.1.0 (db1) \t2026-05-14 \t_x86_64_\t(4 CPU)\n\n\n";
        let report = |second: u32| {
            format!(
                "2026-05-14T10:00:{second}+0000\nDevice r/s r_await w/s w_await aqu-sz %util\n\
                 md0 16383.00 0.21 5.00 2.00 {queue} 72.2\n\n"
            )
        };
        format!("{head}{}", [10, 20, 30].map(report).concat())
    }

    #[test]
    fn a_queue_that_is_not_rate_times_time_is_doubted() {
        assert_eq!(findings("f", &iostat("3.45")), []);
        let what = &named(FindingName::FiguresDiffer, &iostat("0.00"))[0];
        assert!(
            what.contains("md0: 0.00 operations") && what.contains("3.45 by Little's law"),
            "{what}"
        );
    }

    #[test]
    fn repeated_times_are_found_in_every_kind_of_series() {
        let twice = format!("{0}{0}", iostat("3.45"));
        let what = &named(FindingName::RepeatedTime, &twice)[0];
        assert!(
            what.starts_with("3 of 6 samples begin when another one does"),
            "{what}"
        );
        assert_eq!(named(FindingName::RepeatedTime, &iostat("3.45")), [""; 0]);
        let csv = "time,iops\n2026-05-14T10:00,5\n2026-05-14T10:00,6\n2026-05-14T10:10,7\n";
        assert_eq!(named(FindingName::RepeatedTime, csv).len(), 1);
    }
}
