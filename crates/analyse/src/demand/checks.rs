//! Checks of a report against itself: figures that have to agree, each with its tolerance.
//!
//! Every finding names both figures. A figure that fails is not used by the demand. A genuine report
//! keeps the tolerances; an edited or invented one breaks several.

use super::distribution::mean_bounds_us;
use super::evidence::{
    Bounds, LOG_WRITE, MULTI_BLOCK, PARALLEL_READ, SINGLE_BLOCK, bytes_per_request, divisor,
    divisor_of, is_impossible_size, shared, time_model, times_of, total, total_of, waited,
};
use super::rates::{MIB, PROFILE_LINES, TWICE, db_time_s, rate, seconds as seconds_of};
use super::streams::{RandomReadRates, counted_random_reads};
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::{Printed, ReportKind, StatisticRow, WaitTable};
use rigel_model::{Finding, FindingName, file_name};

/// What to do about figures that contradict each other.
const HINT: &str = "compare the two figures in the report; if it was edited or shortened, make it \
                    again from the snapshots";

/// Beginnings of the names of events of storage.
const STORAGE: &[&str] = &[
    "cell ",
    "control file",
    "db file",
    "direct path",
    "log file",
];

/// Two tables of a report are read one after the other: their figures may be of times that differ by
/// so many seconds.
const APART_S: f64 = 5.0;

/// Number of findings of one check that are named one by one.
const NAMED_MAX: usize = 5;

/// All findings about one report.
pub(super) fn findings(report: &DatabaseReport) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let Some(last) = &report.cut_after {
        findings.push(cut(report, last));
    }
    waits(report, &mut findings);
    histograms(report, &mut findings);
    blocks(report, &mut findings);
    profiles(report, &mut findings);
    requests(report, &mut findings);
    redo(report, &mut findings);
    windows(report, &mut findings);
    instances(report, &mut findings);
    metrics(report, &mut findings);
    impossible(report, &mut findings);
    random_reads(report, &mut findings);
    cpu(report, &mut findings);
    synthetic(report, &mut findings);
    findings
}

fn name(report: &DatabaseReport) -> String {
    let file = file_name(&report.file);
    match (report.kind, report.window.end_id) {
        (ReportKind::Capture, Some(snap)) => format!("{file}, snapshot {snap}"),
        _ => file.to_string(),
    }
}

fn cut(report: &DatabaseReport, last: &str) -> Finding {
    let after = if last.is_empty() {
        String::new()
    } else {
        format!(", after the section '{last}'")
    };
    if report.kind == ReportKind::Spool {
        return Finding::warning(
            FindingName::ReportCut,
            format!("{} is cut short: {last}", name(report)),
            "give the whole spool as run.sh wrote it, or run it again",
        );
    }
    if report.kind == ReportKind::Capture {
        let file = file_name(&report.file);
        return Finding::warning(
            FindingName::ReportCut,
            format!("{file} is not whole: {last}"),
            "give the whole capture, or make it again",
        );
    }
    Finding::warning(
        FindingName::ReportCut,
        format!(
            "{} ends before the report does{after}: what is whole was read",
            name(report)
        ),
        "give the whole file, which ends with 'End of Report'",
    )
}

fn differ(report: &DatabaseReport, what: &str) -> Finding {
    Finding::warning(
        FindingName::FiguresDiffer,
        format!("{}: {what}", name(report)),
        HINT,
    )
}

/// Names the first few of `all`, and counts the others.
fn some(report: &DatabaseReport, all: Vec<String>, what: &str, findings: &mut Vec<Finding>) {
    let others = all.len().saturating_sub(NAMED_MAX);
    for one in all.into_iter().take(NAMED_MAX) {
        findings.push(differ(report, &one));
    }
    if others > 0 {
        findings.push(differ(report, &format!("{others} more {what}")));
    }
}

fn table(of: WaitTable) -> &'static str {
    match of {
        WaitTable::Foreground => "foreground waits",
        WaitTable::Background => "background waits",
        WaitTable::Both => "waits",
        WaitTable::Top => "top events",
    }
}

/// Seconds with as many digits as an interval of them needs.
fn seconds(range: Bounds) -> String {
    format!("{:.4} to {:.4} s", range.0, range.1)
}

/// Waits times average is the time, and the share of the total.
fn waits(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    let mut all = Vec::new();
    let rows = report.waits.iter().filter(|row| row.of != WaitTable::Top);
    for row in rows.filter(|row| row.waits.is_some_and(|waits| waits.value > 0.0)) {
        let times = times_of(row, total_of(report, row.of));
        let pairs = times
            .iter()
            .enumerate()
            .flat_map(|(at, one)| times[at + 1..].iter().map(move |other| (one, other)));
        let broken = pairs
            .filter(|(one, other)| shared(one.1, other.1).is_none())
            .map(|((what, one), (against, other))| {
                format!(
                    "{} of '{}': {what} is {}, {against} is {}",
                    table(row.of),
                    row.event,
                    seconds(*one),
                    seconds(*other)
                )
            });
        all.extend(broken.take(1));
    }
    some(report, all, "rows of waits contradict themselves", findings);
}

/// A mean lies where its histogram is, and shares sum to 100.
fn histograms(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const TOLERANCE: f64 = 0.03;
    const SHARES: f64 = 1.5;
    /// Histogram and event table are of slightly different times: few waits differ by more.
    const WAITS_MIN: f64 = 1000.0;
    let mut all = Vec::new();
    for row in report.histograms.iter().filter(|row| !row.is_detail) {
        let shares: f64 = row
            .buckets
            .iter()
            .filter_map(|bucket| bucket.percent)
            .map(|percent| percent.value)
            .sum();
        if row.buckets.iter().any(|bucket| bucket.percent.is_some())
            && (shares - 100.0).abs() > SHARES
        {
            all.push(format!(
                "the shares of the histogram of '{}' sum to {shares:.1} %",
                row.event
            ));
        }
        let same = report
            .histograms
            .iter()
            .filter(|other| other.event == row.event && !other.is_detail);
        let event = [row.event.as_str()];
        // Waits of other kinds may last longer than any bucket.
        let is_io = STORAGE.iter().any(|start| row.event.starts_with(start));
        let is_one = same.count() == 1 && is_io;
        let Some(waited) = waited(report, &event).filter(|_| is_one) else {
            continue;
        };
        let Some((low, high)) = waited.mean_range_us().filter(|_| waited.waits >= WAITS_MIN) else {
            continue;
        };
        let (least, greatest) = mean_bounds_us(report, &row.event);
        let is_below = high < least * (1.0 - TOLERANCE);
        let is_above = greatest.is_some_and(|greatest| low > greatest * (1.0 + TOLERANCE));
        if is_below || is_above {
            let to = greatest.map_or_else(String::new, |us| format!(" to {us:.1}"));
            all.push(format!(
                "the average of '{}' is {low:.1} to {high:.1} us, and its histogram allows \
                 {least:.1}{to} us",
                row.event
            ));
        }
    }
    some(report, all, "histograms contradict their events", findings);
    cut_counts(report, findings);
}

/// The count of a text's histogram is cut to five characters: 118.3 stands for 118.3K. The event
/// table has the whole count.
fn cut_counts(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const TIMES: [(f64, f64); 2] = [(930.0, 1070.0), (0.93e6, 1.07e6)];
    let cut: Vec<String> = report
        .histograms
        .iter()
        .filter(|row| row.may_be_cut && !row.is_detail)
        .filter_map(|row| {
            let printed = row.waits?.value;
            let whole = waited(report, &[row.event.as_str()])?.waits;
            let times = whole / printed;
            TIMES
                .iter()
                .any(|(low, high)| (*low..=*high).contains(&times))
                .then(|| {
                    format!(
                        "{printed} of '{}' is {whole} in the table of events",
                        row.event
                    )
                })
        })
        .collect();
    if let Some(first) = cut.first() {
        findings.push(Finding::note(
            FindingName::CountCut,
            format!(
                "{}: {} counts of the histogram are cut to five characters: {first}",
                name(report),
                cut.len()
            ),
        ));
    }
}

/// Two figures of one quantity.
fn agree(
    report: &DatabaseReport,
    what: [&str; 2],
    figures: [Option<f64>; 2],
    tolerance: f64,
    findings: &mut Vec<Finding>,
) {
    let [Some(one), Some(other)] = figures else {
        return;
    };
    // A single operation between two readings is no contradiction.
    let most = (tolerance * one.abs().max(other.abs())).max(1.0);
    if (one - other).abs() > most {
        let [name, against] = what;
        findings.push(differ(
            report,
            &format!("{name} is {one:.2}, and {against} is {other:.2}"),
        ));
    }
}

/// Blocks are cached or direct, and have the size of a block.
fn blocks(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const TOLERANCE: f64 = 0.001;
    let of = |name: &str| total(report, name);
    let sum = |one: &str, other: &str| Some(of(one)? + of(other)?);
    let block = report.identity.block_bytes.map(f64::from);
    let in_blocks = |name: &str| of(name).zip(block).map(|(bytes, block)| bytes / block);
    for (what, figures) in [
        (
            ["physical reads", "physical reads cache + direct"],
            [
                of("physical reads"),
                sum("physical reads cache", "physical reads direct"),
            ],
        ),
        (
            ["physical writes", "physical writes from cache + direct"],
            [
                of("physical writes"),
                sum("physical writes from cache", "physical writes direct"),
            ],
        ),
        (
            ["physical read bytes / block size", "physical reads"],
            [in_blocks("physical read bytes"), of("physical reads")],
        ),
        (
            ["physical write bytes / block size", "physical writes"],
            [in_blocks("physical write bytes"), of("physical writes")],
        ),
    ] {
        agree(report, what, figures, TOLERANCE, findings);
    }
}

/// Load profile, I/O profile and statistics of one quantity.
fn profiles(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    for (line, statistic, factor) in PROFILE_LINES {
        let rows = report.load_profile.iter().chain(&report.io_profile);
        let Some(row) = rows.into_iter().find(|row| row.name == *line) else {
            continue;
        };
        let row_of_statistic = report.statistics.iter().find(|row| row.name == *statistic);
        let Some(per_s) = row_of_statistic.and_then(|row| row.per_s) else {
            continue;
        };
        let of_table = per_s.scaled(*factor);
        let wide = Printed {
            half: row.value.half * TWICE + 1e-9 * of_table.value.abs(),
            ..row.value
        };
        if shared(wide.range(), of_table.range()).is_none() {
            findings.push(differ(
                report,
                &format!(
                    "'{line}' is {} per second, and '{statistic}' {} per second",
                    row.value.value, of_table.value
                ),
            ));
        }
    }
}

/// Requests by function and file type sum to all requests, and have a possible size.
fn requests(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const READS: f64 = 0.025;
    const WRITES: f64 = 0.05;
    let apart = seconds_of(report).map_or(0.0, |seconds| APART_S / seconds);
    // What DBWR writes to the files of a container is in no statistic of its own sessions.
    let is_container = report.kind == ReportKind::AwrPdb;
    for (of, rows) in [
        ("I/O by function", &report.functions),
        ("I/O by file type", &report.file_types),
    ] {
        let mut doubted = Vec::new();
        let all = rows.iter().filter(|row| {
            row.instance.as_deref().is_none_or(|of| of == "*") && !row.name.contains('(')
        });
        for row in all {
            for (what, per_s, mib) in [
                ("reads", row.reads_per_s, row.read_mib_per_s),
                ("writes", row.writes_per_s, row.write_mib_per_s),
            ] {
                let size = bytes_per_request(per_s, mib);
                if let Some(size) = size.filter(|size| is_impossible_size(*size)) {
                    doubted.push(format!(
                        "{} {what}/s of {} at {} MiB/s would be {:.1} bytes each",
                        per_s.map_or(0.0, |per_s| per_s.value),
                        row.name,
                        mib.map_or(0.0, |mib| mib.value),
                        f64::midpoint(size.0, size.1)
                    ));
                }
            }
        }
        if let Some(first) = doubted.first() {
            findings.push(Finding::warning(
                FindingName::FiguresImpossible,
                format!(
                    "{}: {of}: {first}{}: these counts are not used",
                    name(report),
                    more(doubted.len())
                ),
                "none is needed for reports of 19c for all instances, which count reads by function \
                 wrongly: their statistics and file types are right",
            ));
        }
        let total = rows
            .iter()
            .find(|row| row.name == "Total" && row.instance.as_deref().is_none_or(|of| of == "*"));
        let Some(total) = total.filter(|_| doubted.is_empty()) else {
            continue;
        };
        for (what, printed, statistic, tolerance) in [
            (
                "reads",
                total.reads_per_s,
                "physical read total IO requests",
                READS,
            ),
            (
                "writes",
                total.writes_per_s,
                "physical write total IO requests",
                WRITES,
            ),
        ] {
            let tolerance = tolerance + apart;
            let Some((printed, reported)) = printed
                .zip(rate(report, statistic))
                .filter(|_| !is_container || what == "reads")
            else {
                continue;
            };
            let (low, high) = printed.range();
            if shared(
                (low * (1.0 - tolerance), high * (1.0 + tolerance)),
                (reported, reported),
            )
            .is_none()
            {
                findings.push(differ(
                    report,
                    &format!(
                        "{what} of {of} are {}/s, and '{statistic}' is {reported:.2}/s",
                        printed.value
                    ),
                ));
            }
        }
    }
}

fn more(count: usize) -> String {
    match count {
        0 | 1 => String::new(),
        count => format!(" (and {} more)", count - 1),
    }
}

/// Redo has blocks of 512 bytes or 4 KiB; its writes are waited for once; their sizes are counted.
fn redo(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const BLOCKS: [Bounds; 2] = [(470.0, 515.0), (3900.0, 4100.0)];
    const WRITES_MIN: f64 = 1000.0;
    const WAITS: Bounds = (0.96, 1.01);
    const SYNC: f64 = 1.02;
    const SIZES: f64 = 1e-4;
    let of = |name: &str| total(report, name);
    let writes = of("redo writes").filter(|writes| *writes >= WRITES_MIN);
    let per_block = of("redo size")
        .zip(of("redo blocks written").filter(|blocks| *blocks >= WRITES_MIN))
        .map(|(size, blocks)| (size + of("redo wastage").unwrap_or(0.0)) / blocks);
    if let Some(bytes) = per_block
        && !BLOCKS
            .iter()
            .any(|(low, high)| (*low..=*high).contains(&bytes))
    {
        findings.push(differ(
            report,
            &format!(
                "redo size + redo wastage is {bytes:.1} bytes for each of the redo blocks written, \
                 whose size is 512 or 4096"
            ),
        ));
    }
    if let Some((waited, writes)) = waited(report, LOG_WRITE).zip(writes) {
        let share = waited.waits / writes;
        if !(WAITS.0..=WAITS.1).contains(&share) {
            findings.push(differ(
                report,
                &format!(
                    "'log file parallel write' has {} waits, and 'redo writes' is {writes}: {share:.3} \
                     waits a write",
                    waited.waits
                ),
            ));
        }
    }
    if let Some((waited, synched)) = waited(report, &["log file sync"]).zip(of("redo synch writes"))
        && waited.waits > synched * SYNC + 1.0
    {
        findings.push(differ(
            report,
            &format!(
                "'log file sync' has {} waits, and 'redo synch writes' is {synched}",
                waited.waits
            ),
        ));
    }
    let sizes: Vec<f64> = report
        .statistics
        .iter()
        .filter(|row| row.name.starts_with("redo write size count ("))
        .filter_map(|row| row.total)
        .map(|total| total.value)
        .collect();
    if sizes.len() >= 9 {
        let what = ["the sum of 'redo write size count'", "'redo writes'"];
        agree(
            report,
            what,
            [Some(sizes.iter().sum()), writes],
            SIZES,
            findings,
        );
    }
}

/// All rates are of one time, and that is the elapsed time.
fn windows(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const APART_S: f64 = 2.0;
    let Some((low, high)) = divisor(report) else {
        return;
    };
    let wide = (low - APART_S, high + APART_S);
    let mut all = Vec::new();
    for row in &report.statistics {
        let twice = StatisticRow {
            per_s: row.per_s.map(|per_s| Printed {
                half: per_s.half * TWICE,
                ..per_s
            }),
            ..row.clone()
        };
        if let Some(range) = divisor_of(&twice)
            && shared(range, wide).is_none()
        {
            all.push(format!(
                "total / per second of '{}' is {:.1} to {:.1} s, and others imply {:.1} s",
                row.name,
                range.0,
                range.1,
                f64::midpoint(low, high)
            ));
        }
    }
    some(report, all, "statistics imply another time", findings);
    let window = &report.window;
    if let Some(elapsed) = window.elapsed_s
        && report.kind != ReportKind::Capture
        && shared(elapsed.range(), wide).is_none()
    {
        findings.push(differ(
            report,
            &format!(
                "elapsed time is {:.1} s, and the rates of statistics imply {:.1} s",
                elapsed.value,
                f64::midpoint(low, high)
            ),
        ));
    }
}

/// Figures of instances sum to their total.
fn instances(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    let mut all = Vec::new();
    let sums = report
        .per_instance
        .iter()
        .filter(|row| row.instance.as_deref() == Some("Sum"));
    for sum in sums {
        let parts = report
            .per_instance
            .iter()
            .filter(|row| row.name == sum.name && row.instance != sum.instance);
        let (mut low, mut high) = (0.0, 0.0);
        let mut count = 0;
        for part in parts {
            let range = part.value.range();
            (low, high, count) = (low + range.0, high + range.1, count + 1);
        }
        // A blank cell hides an instance.
        let is_whole = report
            .identity
            .instances
            .is_none_or(|instances| count >= instances);
        if count > 0 && is_whole && shared((low, high), sum.value.range()).is_none() {
            all.push(format!(
                "'{}' of the instances sums to {}, and the report has {}",
                sum.name,
                f64::midpoint(low, high),
                sum.value.value
            ));
        }
    }
    some(report, all, "sums over instances differ", findings);
}

/// The average of a metric is not above its maximum.
fn metrics(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const SLACK: f64 = 0.05;
    let mut all = Vec::new();
    for one in &report.metrics {
        for (metric, value) in &one.figures {
            let greatest = one
                .figures
                .iter()
                .find(|(name, _)| name.strip_suffix("_max") == Some(metric));
            if let Some((_, greatest)) = greatest
                && value.value > greatest.value + SLACK
            {
                all.push(format!(
                    "{metric} of instance {} is {} on average, and {} at most",
                    one.instance, value.value, greatest.value
                ));
            }
        }
    }
    some(report, all, "averages are above their maximum", findings);
}

/// Rates and latencies that no hardware has.
fn impossible(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const REQUESTS_MAX: f64 = 50e6;
    const MIB_MAX: f64 = 1e12 / MIB;
    const READ_MIN_US: f64 = 1.0;
    let mut all = Vec::new();
    for (statistic, what, factor, greatest) in [
        (
            "physical read total IO requests",
            "reads/s",
            1.0,
            REQUESTS_MAX,
        ),
        (
            "physical write total IO requests",
            "writes/s",
            1.0,
            REQUESTS_MAX,
        ),
        (
            "physical read total bytes",
            "MiB/s read",
            1.0 / MIB,
            MIB_MAX,
        ),
        (
            "physical write total bytes",
            "MiB/s written",
            1.0 / MIB,
            MIB_MAX,
        ),
    ] {
        if let Some(rate) = rate(report, statistic).map(|rate| rate * factor)
            && rate > greatest
        {
            all.push(format!("{rate:.0} {what}, more than any storage"));
        }
    }
    if let Some(waited) = waited(report, SINGLE_BLOCK)
        && waited.waits >= 1000.0
        && let Some((_, high)) = waited.mean_range_us()
        && high < READ_MIN_US
    {
        all.push(format!("a single-block read of {high:.3} us on average"));
    }
    for one in all {
        findings.push(Finding::warning(
            FindingName::FiguresImpossible,
            format!("{}: {one}", name(report)),
            HINT,
        ));
    }
}

/// Three ways to count random reads.
fn random_reads(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const APART: f64 = 0.10;
    const READS_MIN: f64 = 1.0;
    const PER_WAIT: Bounds = (0.80, 1.30);
    let rates = RandomReadRates::of(report);
    let all: Vec<(&str, f64)> = [
        ("requests by function", rates.requests),
        ("waits", rates.waits),
        ("blocks without read-ahead", rates.blocks),
    ]
    .into_iter()
    .filter_map(|(what, rate)| Some((what, rate?)))
    .collect();
    let values = || all.iter().map(|(_, rate)| *rate);
    let (least, greatest) = (
        values().fold(f64::INFINITY, f64::min),
        values().fold(0.0, f64::max),
    );
    if greatest >= READS_MIN && greatest > least * (1.0 + APART) {
        let rates: Vec<String> = all
            .iter()
            .map(|(what, rate)| format!("{rate:.1} by {what}"))
            .collect();
        let counts = counted_random_reads(report).map_or_else(String::new, |stream| {
            let per_s = stream.per_s.unwrap_or_default();
            format!("; the demand has {per_s:.1}: {}", stream.rate_of)
        });
        findings.push(Finding::note(
            FindingName::ReadsCountedApart,
            format!(
                "{}: random reads per second are {}{counts}",
                name(report),
                rates.join(", ")
            ),
        ));
    }
    let events: Vec<&str> = [SINGLE_BLOCK, MULTI_BLOCK, PARALLEL_READ].concat();
    let blocks = total(report, "physical reads cache")
        .zip(total(report, "physical reads cache prefetch"))
        .map(|(cache, ahead)| cache - ahead);
    if let Some((blocks, waited)) = blocks.zip(waited(report, &events))
        && waited.waits >= 1000.0
    {
        let share = blocks / waited.waits;
        if !(PER_WAIT.0..=PER_WAIT.1).contains(&share) {
            findings.push(Finding::note(
                FindingName::ReadsCountedApart,
                format!(
                    "{}: {share:.2} blocks were read into the cache without read-ahead for each \
                     wait; 0.80 to 1.30 is usual",
                    name(report)
                ),
            ));
        }
    }
}

fn cpu(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    let time = db_time_s(report).zip(time_model(report, "DB CPU"));
    if let Some((time, cpu)) = time
        && cpu.range().0 > time + 1.0
    {
        findings.push(Finding::note(
            FindingName::CpuAboveDbTime,
            format!(
                "{}: DB CPU is {:.1} s, more than DB time, {time:.1} s: shares of DB time mislead",
                name(report),
                cpu.value
            ),
        ));
    }
}

/// Several contradictions together: the report was edited or made up.
fn synthetic(report: &DatabaseReport, findings: &mut Vec<Finding>) {
    const CONTRADICTIONS: usize = 3;
    let broken = findings
        .iter()
        .filter(|finding| finding.is(FindingName::FiguresDiffer))
        .count();
    if broken >= CONTRADICTIONS {
        findings.insert(
            0,
            Finding::warning(
                FindingName::ReportDoubted,
                format!(
                    "{}: {broken} checks fail: it was edited, or made up, or is not read as it is \
                     meant",
                    name(report)
                ),
                "use none of its figures before that is cleared up: make the report again",
            ),
        );
    }
}
