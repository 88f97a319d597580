//! The report of a database's reports: what it asked of its storage, what it got, and how the
//! figures fit together.

use super::csv::CsvTable;
use super::document::{
    Axis, Block, Chart, Document, Headline, Lines, Plot, Section, Series, Shape, Table, Unit,
};
use super::{event_distribution, loops, parts, soak};
use rigel_analyse::quantity::rounded_length;
use rigel_analyse::{DatabaseFigures, DatabaseResult, Estimate};
use rigel_model::record::database::{DatabaseReport, IoStatRow, Printed, WaitRow, WaitTable};
use rigel_model::record::imported::Figures;
use rigel_model::record::journal::Run;
use rigel_model::{Demand, DemandInterval, DemandKind, DemandStream, LatencyShare, Moment};

/// Megabytes in a mebibyte.
const MEGABYTES: f64 = 1.048_576;

/// Bytes in a mebibyte.
const MIB: f64 = 1_048_576.0;

/// Intervals that are listed one by one in text.
const LISTED_MAX: usize = 60;

/// Adds headlines and sections to `document`, which has the heading and the conclusion.
pub fn complete(run: &Run, result: &DatabaseResult, document: Document) -> Document {
    let reports: Vec<&DatabaseReport> = run
        .imported
        .iter()
        .flat_map(|one| match &one.figures {
            Figures::Database(reports) => reports.as_slice(),
            Figures::Loads(_) | Figures::Series(_) | Figures::Claims(_) => &[],
        })
        .collect();
    let mut sections: Vec<Section> = loops::sections(result);
    sections.extend(event_distribution::sections(result));
    // Listings have distributions alone, and dashes would be all there is of the rest.
    let has_only_distributions = !result.distributions.is_empty() && !result.has_streams();
    if !has_only_distributions {
        sections.push(demand(result));
    }
    sections.extend(latency(result));
    sections.extend(waits_over_time(result));
    sections.extend(waits(&reports));
    sections.extend(by_function(&reports));
    if !has_only_distributions {
        sections.push(listed(result));
    }
    sections.extend(over_time(run, result));
    sections.extend(parameters(result));
    Document {
        headlines: if result.loops.is_empty() {
            headlines(result)
        } else {
            loops::headlines(result)
        },
        sections: document.sections.into_iter().chain(sections).collect(),
        ..document
    }
}

/// The demand that headlines and conclusion are about: the sum of all instances, or the first.
fn main_demand(result: &DatabaseResult) -> Option<(usize, &Demand)> {
    let at = result.main_demand()?;
    Some((at, &result.demands[at]))
}

fn headlines(result: &DatabaseResult) -> Vec<Headline> {
    let Some((at, demand)) = main_demand(result) else {
        return Vec::new();
    };
    let Some((busiest, _)) = demand.busiest() else {
        return Vec::new();
    };
    let interval = demand
        .intervals
        .iter()
        .position(|one| std::ptr::eq(one, busiest))
        .unwrap_or(0);
    let note = if demand.intervals.len() > 1 {
        format!("in the busiest interval, {}", busiest.label)
    } else {
        busiest.label.clone()
    };
    let plain = |value| Estimate {
        value,
        interval: None,
    };
    let mut found = Vec::new();
    for (of, stream) in busiest.streams.iter().enumerate() {
        let name = |figure: &str| {
            format!("database.demands.{at}.intervals.{interval}.streams.{of}.{figure}")
        };
        let words = stream.kind.words();
        let is_main = matches!(stream.kind, DemandKind::RandomReads | DemandKind::LogWrites);
        if !is_main {
            continue;
        }
        if let Some(per_s) = stream.per_s {
            found.push(parts::rate(
                &name("per_s"),
                &format!("{words} per second"),
                plain(per_s),
                note.clone(),
            ));
        }
        if let Some(us) = stream.mean_us {
            let label = format!("mean latency of {words}");
            found.push(parts::latency(
                &name("mean_us"),
                &label,
                plain(us),
                stream.latency_of.clone(),
            ));
        }
    }
    found
}

/// A rate: small ones keep their digits.
fn rate(per_s: f64) -> String {
    if per_s.abs() < 99.95 {
        parts::three_digits(per_s)
    } else {
        parts::count(per_s)
    }
}

fn bytes(size: f64) -> String {
    const KIB: f64 = 1024.0;
    if size >= MIB {
        format!("{} MiB", parts::three_digits(size / MIB))
    } else {
        format!("{} KiB", parts::three_digits(size / KIB))
    }
}

fn megabytes(stream: &DemandStream) -> Option<f64> {
    Some(stream.per_s? * stream.mean_bytes? / 1e6)
}

fn mean(stream: &DemandStream) -> String {
    /// An interval that is wider is worth showing.
    const WIDE: f64 = 0.05;
    match (stream.mean_us, stream.mean_range_us) {
        (Some(us), Some((low, high))) if high - low > WIDE * us => {
            format!(
                "{} ({} to {})",
                parts::time(us),
                parts::time(low),
                parts::time(high)
            )
        }
        (us, _) => parts::known(us, parts::time),
    }
}

/// The `quantile` of a distribution as a bucket: `below 512 µs`.
fn bucket(all: &[LatencyShare], quantile: f64) -> String {
    let mut below = 0.0;
    for one in all {
        below += one.share;
        if below >= quantile - 1e-9 {
            return match one.high_us {
                Some(high) => format!("< {}", parts::time(high)),
                None => format!("> {}", parts::time(one.low_us)),
            };
        }
    }
    "-".into()
}

fn stream_row(stream: &DemandStream) -> Vec<String> {
    /// Waits below which a p99 is chance.
    const P99_WAITS_MIN: f64 = 1000.0;
    let has_tail = stream.waits.is_some_and(|waits| waits >= P99_WAITS_MIN);
    vec![
        stream.kind.words().into(),
        parts::known(stream.per_s, rate),
        parts::known(stream.mean_bytes, bytes),
        parts::known(megabytes(stream), rate),
        mean(stream),
        bucket(&stream.latencies, 0.5),
        if has_tail {
            bucket(&stream.latencies, 0.99)
        } else {
            "-".into()
        },
        stream.rate_of.clone(),
    ]
}

/// What was asked for, for each instance in its busiest interval.
fn demand(result: &DatabaseResult) -> Section {
    let columns = [
        "stream",
        "#per second",
        "#mean size",
        "#MB/s",
        "#mean latency",
        "#p50",
        "#p99",
        "*from",
    ];
    let mut blocks = Vec::new();
    for demand in &result.demands {
        let Some((busiest, below)) = demand.busiest() else {
            continue;
        };
        let rows = busiest.streams.iter().map(stream_row).collect();
        blocks.push(Block::Table(parts::rows(
            &caption(
                &demand.database,
                &busiest.label,
                busiest.begin,
                busiest.seconds,
                &among(demand.intervals.len(), below),
            ),
            &columns,
            rows,
        )));
        blocks.extend(beside(busiest).map(Block::Text));
        blocks.extend(spread(demand).map(Block::Text));
    }
    parts::section(
        "demand",
        "What the database asked for, and what it got",
        "Each kind of I/O has its own line. - is what the reports do not say. Percentiles are \
         bounds of buckets.",
        blocks,
    )
}

/// An interval of a demand in words: of which database, from which file, when, and what it is among
/// others.
pub fn caption(
    database: &str,
    label: &str,
    begin: Option<Moment>,
    seconds: Option<f64>,
    among: &str,
) -> String {
    let when = begin.map_or_else(String::new, |begin| format!(", from {}", begin.short()));
    let length = seconds.map_or_else(String::new, |seconds| {
        format!(", {}", rounded_length(seconds))
    });
    format!("{database}, {label}{when}{length}{among}")
}

/// What the busiest interval is among others: nothing if it is the only one.
pub fn among(intervals: usize, share_below: f64) -> String {
    if intervals == 1 {
        return String::new();
    }
    let below = share_below * 100.0;
    format!(": the busiest of {intervals} intervals ({below:.0} % are below it)")
}

/// What is not part of the demand, and what speaks for more.
fn beside(interval: &DemandInterval) -> Option<String> {
    let mut said = Vec::new();
    if let Some(out) = interval.left_out {
        said.push(format!(
            "Left out: {} MB/s read, {} MB/s written by backups, archiving, control files and \
             others.",
            rate(out.read_mib_per_s * MEGABYTES),
            rate(out.write_mib_per_s * MEGABYTES)
        ));
    }
    if !interval.censored.is_empty() {
        said.push(format!("At least this: {}.", interval.censored));
    }
    (!said.is_empty()).then(|| said.join(" "))
}

/// Peak, p95 and median over the intervals of a demand.
fn spread(demand: &Demand) -> Option<String> {
    let mut all: Vec<f64> = demand
        .intervals
        .iter()
        .map(DemandInterval::operations_per_s)
        .collect();
    if all.len() < 2 {
        return None;
    }
    all.sort_by(f64::total_cmp);
    let at = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let place = ((all.len() - 1) as f64 * share).round() as usize;
        rate(all[place])
    };
    Some(format!(
        "I/O operations per second over {} intervals: median {}, p95 {}, peak {}.",
        all.len(),
        at(0.5),
        at(0.95),
        at(1.0)
    ))
}

/// The distributions of the busiest interval.
fn latency(result: &DatabaseResult) -> Option<Section> {
    let (_, demand) = main_demand(result)?;
    let (busiest, _) = demand.busiest()?;
    let charts: Vec<Option<Chart>> = busiest
        .streams
        .iter()
        .filter(|stream| !stream.latencies.is_empty())
        .map(|stream| Some(histogram(stream)))
        .collect();
    let block = parts::beside(charts)?;
    let lead = format!(
        "As the database saw it in {}: the share of operations in each bucket of its histogram.",
        busiest.label
    );
    Some(parts::section("latency", "Latency", &lead, vec![block]))
}

fn histogram(stream: &DemandStream) -> Chart {
    let id = format!("histogram-{}", stream.kind.words().replace(' ', "-"));
    let words = stream.kind.words();
    // A bucket is drawn at the middle of its range on a logarithmic axis.
    let middle = |one: &LatencyShare| match one.high_us {
        Some(high) if one.low_us > 0.0 => (one.low_us * high).sqrt(),
        Some(high) => high / 2f64.sqrt(),
        None => one.low_us * 2f64.sqrt(),
    };
    let lines = Lines {
        x: Axis {
            label: "latency".into(),
            unit: Unit::Microseconds,
            log: true,
            ..Axis::default()
        },
        y: Axis {
            label: "share of operations".into(),
            unit: Unit::Share,
            range: Some((0.0, 0.0)),
            ..Axis::default()
        },
        series: vec![Series {
            name: words.into(),
            shape: Shape::Bars,
            x: stream.latencies.iter().map(middle).collect(),
            y: stream.latencies.iter().map(|one| Some(one.share)).collect(),
            labels: stream
                .latencies
                .iter()
                .map(|one| format!("{}: {}", one.label, parts::percent(one.share)))
                .collect(),
            ..Series::default()
        }],
        ..Lines::default()
    };
    let description = format!(
        "{words}: half take {}, 99 % {}.",
        bucket(&stream.latencies, 0.5),
        bucket(&stream.latencies, 0.99)
    );
    parts::chart(&id, &parts::capital(words), description, Plot::Lines(lines))
}

/// The most important waits of each report, stacked.
fn waits_over_time(result: &DatabaseResult) -> Option<Section> {
    const EVENTS_MAX: usize = 7;
    let reports = result.figures.len();
    let mut sums: Vec<(&str, f64)> = Vec::new();
    for one in &result.waits {
        match sums.iter_mut().find(|(event, _)| *event == one.event) {
            Some((_, sum)) => *sum += one.percent,
            None => sums.push((&one.event, one.percent)),
        }
    }
    sums.sort_by(|one, other| other.1.total_cmp(&one.1));
    if reports < 2 || sums.is_empty() {
        return None;
    }
    let first = result.figures.iter().find_map(|one| one.begin);
    let place = |at: usize| {
        let one = &result.figures[at];
        match (one.sessions, one.begin.zip(first)) {
            (Some(sessions), _) => f64::from(sessions),
            (None, Some((begin, first))) => soak::wall(begin, first),
            (None, None) => at as f64,
        }
    };
    let has_sessions = result.figures.iter().all(|one| one.sessions.is_some());
    let share = |event: &str, report: usize| {
        let found = result
            .waits
            .iter()
            .find(|one| one.report == report && one.event == event);
        found.map_or(0.0, |one| one.percent / 100.0)
    };
    let series = sums.iter().take(EVENTS_MAX).map(|(event, _)| Series {
        name: (*event).to_string(),
        shape: Shape::Stacked,
        x: (0..reports).map(place).collect(),
        y: (0..reports)
            .map(|report| Some(share(event, report)))
            .collect(),
        ..Series::default()
    });
    let lines = Lines {
        x: Axis {
            label: if has_sessions { "sessions" } else { "time" }.into(),
            unit: if has_sessions || first.is_none() {
                Unit::Number
            } else {
                Unit::Moment
            },
            ..Axis::default()
        },
        y: Axis {
            label: "share of DB time".into(),
            unit: Unit::Share,
            ..Axis::default()
        },
        series: series.collect(),
        ..Lines::default()
    };
    let description = format!(
        "The {} most important waits of {reports} reports.",
        sums.len().min(EVENTS_MAX)
    );
    let chart = parts::chart("waits-stacked", "Waits", description, Plot::Lines(lines));
    Some(parts::full(parts::section(
        "waits-over-time",
        "What sessions waited for",
        "",
        vec![Block::Chart(Box::new(chart))],
    )))
}

/// The busiest report's list of top events.
fn waits(reports: &[&DatabaseReport]) -> Option<Section> {
    let [report] = reports else { return None };
    let row = |row: &WaitRow| {
        vec![
            row.event.clone(),
            parts::known(row.waits, |waits| parts::count(waits.value)),
            parts::known(row.time_s, |time| rate(time.value)),
            parts::known(row.mean_us, printed_time),
            parts::known(row.percent, |percent| format!("{} %", percent.value)),
        ]
    };
    let rows = report.waits.iter().filter(|row| row.of == WaitTable::Top);
    let columns = ["event", "#waits", "#seconds", "#mean", "#share of DB time"];
    let table = parts::rows("Top events, as printed", &columns, rows.map(row).collect());
    (!table.rows.is_empty()).then(|| {
        parts::section(
            "waits",
            "What sessions waited for",
            "",
            vec![Block::Table(table)],
        )
    })
}

/// A printed time; one that rounds to 0 is below its last place.
fn printed_time(mean: Printed) -> String {
    if mean.value < mean.half {
        format!("< {}", parts::time(mean.range().1))
    } else {
        parts::time(mean.value)
    }
}

/// I/O by function and by file type of a single report.
fn by_function(reports: &[&DatabaseReport]) -> Option<Section> {
    let [report] = reports else { return None };
    let row = |row: &&IoStatRow| {
        let read_is_possible = rigel_analyse::has_possible_reads(row);
        let reads = parts::known(row.reads_per_s, |reads| rate(reads.value));
        vec![
            row.name.clone(),
            if read_is_possible {
                reads
            } else {
                format!("doubted: {reads}")
            },
            parts::known(row.read_mib_per_s, |mib| rate(mib.value * MEGABYTES)),
            parts::known(row.writes_per_s, |writes| rate(writes.value)),
            parts::known(row.write_mib_per_s, |mib| rate(mib.value * MEGABYTES)),
            parts::known(row.mean_us, |mean| parts::time(mean.value)),
        ]
    };
    let of_all = |row: &&IoStatRow| {
        row.instance.as_deref().is_none_or(|of| of == "*") && !row.name.contains('(')
    };
    let columns = [
        "",
        "#reads/s",
        "#MB/s read",
        "#writes/s",
        "#MB/s written",
        "#mean",
    ];
    let table = |caption: &str, rows: &[IoStatRow]| {
        let rows: Vec<&IoStatRow> = rows.iter().filter(of_all).collect();
        Block::Table(parts::rows(
            caption,
            &columns,
            rows.iter().map(row).collect(),
        ))
    };
    let section = parts::section(
        "io-by-function",
        "I/O by function and file type",
        "",
        vec![
            table("By function", &report.functions),
            table("By file type", &report.file_types),
        ],
    );
    (!section.blocks.is_empty()).then_some(section)
}

/// One line for each report.
fn listed(result: &DatabaseResult) -> Section {
    let row = |one: &DatabaseFigures| {
        let time = |us: Option<f64>| parts::known(us, parts::time);
        vec![
            one.file.rsplit('/').next().unwrap_or_default().to_string(),
            parts::known(one.begin, Moment::short),
            parts::known(one.seconds, |seconds| format!("{:.0}", seconds / 60.0)),
            parts::known(one.all_reads_per_s, rate),
            parts::known(one.all_read_mib_per_s, |mib| rate(mib * MEGABYTES)),
            parts::known(one.all_writes_per_s, rate),
            parts::known(one.all_write_mib_per_s, |mib| rate(mib * MEGABYTES)),
            time(one.random_read_us),
            time(one.random_read_p99_us),
            time(one.log_write_us),
            time(one.commit_us),
            one.findings.to_string(),
        ]
    };
    let columns = [
        "report",
        "begin",
        "#minutes",
        "#reads/s",
        "#MB/s read",
        "#writes/s",
        "#MB/s written",
        "#read mean",
        "*#read p99",
        "#log write",
        "#commit",
        "*#findings",
    ];
    let table = parts::rows(
        "All I/O of each report; reads and writes are requests",
        &columns,
        result.figures.iter().map(row).collect(),
    );
    let section = parts::section(
        "reports",
        "Every report",
        "",
        vec![Block::Table(Table {
            folded: result.figures.len() > LISTED_MAX,
            ..table
        })],
    );
    if result.figures.len() > LISTED_MAX {
        parts::full(section)
    } else {
        section
    }
}

/// The predictability of the requests over time.
fn over_time(run: &Run, result: &DatabaseResult) -> Vec<Section> {
    let Some(series) = &result.series else {
        return Vec::new();
    };
    let document = soak::of_series(&run.header, series, Document::default());
    // Findings have their own section.
    let sections = document.sections.into_iter();
    sections
        .filter(|section| section.id != "findings")
        .collect()
}

fn parameters(result: &DatabaseResult) -> Option<Section> {
    let rows: Vec<Vec<String>> = result
        .parameters
        .iter()
        .map(|(name, value)| vec![name.clone(), value.clone()])
        .collect();
    (!rows.is_empty()).then(|| {
        parts::full(parts::section(
            "parameters",
            "Parameters that matter to I/O",
            "",
            vec![Block::Table(parts::rows("", &["parameter", "value"], rows))],
        ))
    })
}

/// One line for each report, for spreadsheets. MB are 2^20 bytes, as in the reports; latencies are
/// whole microseconds. Columns are only added at the end.
pub fn csv(result: &DatabaseResult) -> String {
    let mut table = CsvTable::new(
        "file,sessions,kind,release,db,instance,begin,seconds,cpus,active_sessions,\
         cpu_seconds_per_s,executions_per_s,transactions_per_s,logical_reads_per_s,db_reads_per_s,\
         db_read_mb_per_s,all_reads_per_s,all_read_mb_per_s,db_writes_per_s,db_write_mb_per_s,\
         all_writes_per_s,all_write_mb_per_s,redo_mb_per_s,redo_writes_per_s,redo_write_bytes,\
         random_reads_per_s,random_read_us,random_read_p50_us,random_read_p99_us,\
         multiblock_read_us,direct_read_us,parallel_read_us,log_write_us,log_write_p99_us,\
         commit_us,commit_p99_us,page_write_batch_us,host_busy_percent,io_wait_percent,top_event,\
         top_event_percent,findings",
    );
    for one in &result.figures {
        let text = |text: &Option<String>| text.clone().unwrap_or_default();
        table.text(&one.file).maybe(one.sessions).text(&one.kind);
        table
            .text(&text(&one.release))
            .text(&text(&one.db))
            .text(&text(&one.instance));
        table.maybe(one.begin).figure(one.seconds).maybe(one.cpus);
        for figure in [
            one.active_sessions,
            one.cpu_seconds_per_s,
            one.executions_per_s,
            one.transactions_per_s,
            one.logical_reads_per_s,
            one.db_reads_per_s,
            one.db_read_mib_per_s,
            one.all_reads_per_s,
            one.all_read_mib_per_s,
            one.db_writes_per_s,
            one.db_write_mib_per_s,
            one.all_writes_per_s,
            one.all_write_mib_per_s,
        ] {
            table.figure(figure);
        }
        // A few hundred bytes of redo per second would round to 0.
        table.maybe(one.redo_mib_per_s.map(|mib| format!("{mib:.4}")));
        table.figure(one.redo_writes_per_s);
        let whole = |figure: Option<f64>| figure.map(|figure| format!("{figure:.0}"));
        table
            .maybe(whole(one.redo_write_bytes))
            .figure(one.random_reads_per_s);
        for us in [
            one.random_read_us,
            one.random_read_p50_us,
            one.random_read_p99_us,
            one.multiblock_read_us,
            one.direct_read_us,
            one.parallel_read_us,
            one.log_write_us,
            one.log_write_p99_us,
            one.commit_us,
            one.commit_p99_us,
            one.page_write_batch_us,
        ] {
            table.maybe(whole(us));
        }
        table
            .figure(one.host_busy_percent)
            .figure(one.io_wait_percent);
        table
            .text(&text(&one.top_event))
            .figure(one.top_event_percent);
        table.value(one.findings).end();
    }
    table.into_text()
}
