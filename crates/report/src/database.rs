//! The report of a database's reports: what it asked of its storage, what it got, and how the
//! figures fit together.

use super::columns::{TableOf, pairs};
use super::csv::CsvTable;
use super::document::{
    Axis, Block, Chart, Document, Headline, Lines, Plot, Section, Series, Shape, Unit,
};
use super::{event_distribution, loops, parts, soak};
use rigel_analyse::demand::mean_time;
use rigel_analyse::quantity::rounded_length;
use rigel_analyse::{DatabaseResult, bound_of_bucket};
use rigel_model::record::database::{DatabaseReport, IoStatRow, Printed, WaitTable};
use rigel_model::record::imported::Figures;
use rigel_model::record::journal::Run;
use rigel_model::{
    Demand, DemandInterval, DemandKind, DemandStream, LatencyShare, Moment, file_name,
};

/// Megabytes in a mebibyte.
const MEGABYTES: f64 = 1.048_576;

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
    let mut sections: Vec<Section> = latency(result).into_iter().collect();
    sections.extend(waits_over_time(result));
    sections.extend(over_time(result));
    sections.extend(loops::sections(result));
    sections.extend(event_distribution::sections(result));
    // Listings have distributions alone, and dashes would be all there is of the rest.
    let has_only_distributions = !result.distributions.is_empty() && !result.has_streams();
    if !has_only_distributions {
        sections.push(demand(result));
    }
    sections.extend(waits(&reports));
    sections.extend(by_function(&reports));
    if !has_only_distributions {
        sections.push(listed(result));
    }
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
    let index = result.main_demand()?;
    Some((index, &result.demands[index]))
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
    let mut headlines = Vec::new();
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
            headlines.push(parts::rate(
                &name("per_s"),
                &format!("{words} per second"),
                per_s.into(),
                note.clone(),
            ));
        }
        if let Some(us) = stream.mean_us {
            let label = format!("mean latency of {words}");
            headlines.push(parts::latency(
                &name("mean_us"),
                &label,
                us.into(),
                stream.latency_of.clone(),
            ));
        }
    }
    headlines
}

fn megabytes(stream: &DemandStream) -> Option<f64> {
    Some(stream.per_s? * stream.mean_bytes? / 1e6)
}

fn mean(stream: &DemandStream) -> String {
    parts::known(mean_time(stream), |time| time)
}

/// The `quantile` of a distribution as a bucket: `below 512 µs`.
fn bucket(all: &[LatencyShare], quantile: f64) -> String {
    let mut below = 0.0;
    for one in all {
        below += one.share;
        if below >= quantile - 1e-9 {
            return match one.high_us {
                Some(high) => format!("< {}", bound_of_bucket(high)),
                None => format!("> {}", bound_of_bucket(one.low_us)),
            };
        }
    }
    "-".into()
}

/// The streams of an interval.
fn streams(caption: &str, streams: &[DemandStream]) -> Block {
    /// Waits below which a p99 is chance.
    const P99_WAITS_MIN: f64 = 1000.0;
    TableOf::of(caption, streams)
        .text("stream", |stream| stream.kind.words())
        .count("per second", |stream| stream.per_s)
        .number("mean size", |stream| {
            parts::known(stream.mean_bytes, parts::bytes)
        })
        .count("MB/s", |stream| megabytes(stream))
        .number("mean latency", |stream| mean(stream))
        .number("p50", |stream| bucket(&stream.latencies, 0.5))
        .number("p99", |stream| {
            let has_tail = stream.waits.filter(|waits| *waits >= P99_WAITS_MIN);
            parts::known(has_tail, |_| bucket(&stream.latencies, 0.99))
        })
        .text("from", |stream| stream.rate_of.clone())
        .on_page()
        .block()
}

/// What was asked for: first the demand that the conclusion is about, then that of each instance in
/// its busiest interval.
fn demand(result: &DatabaseResult) -> Section {
    let mut blocks = Vec::new();
    let main = main_demand(result);
    let others = result.demands.iter().enumerate();
    let others = others.filter(|(at, _)| main.is_none_or(|(main, _)| main != *at));
    for (_, demand) in main.into_iter().chain(others) {
        let Some((busiest, below)) = demand.busiest() else {
            continue;
        };
        let caption = caption(
            &demand.database,
            &busiest.label,
            busiest.begin,
            busiest.seconds,
            &among(demand.intervals.len(), below),
        );
        blocks.push(streams(&caption, &busiest.streams));
        blocks.extend(beside(busiest).map(Block::Text));
        blocks.extend(spread(demand).map(Block::Text));
    }
    parts::on_screen(parts::section(
        "demand",
        "What the database asked for, and what it got",
        "Each kind of I/O has its own line. - is what the reports do not say. Percentiles are \
         bounds of buckets.",
        blocks,
    ))
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
    let mut sentences = Vec::new();
    if let Some(out) = interval.left_out {
        sentences.push(format!(
            "Left out: {} MB/s read, {} MB/s written by backups, archiving, control files and \
             others.",
            parts::count(out.read_mib_per_s * MEGABYTES),
            parts::count(out.write_mib_per_s * MEGABYTES)
        ));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
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
    let quantile = |share: f64| {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index"
        )]
        let place = ((all.len() - 1) as f64 * share).round() as usize;
        parts::count(all[place])
    };
    Some(format!(
        "I/O operations per second over {} intervals: median {}, p95 {}, peak {}.",
        all.len(),
        quantile(0.5),
        quantile(0.95),
        quantile(1.0)
    ))
}

/// The distributions of the busiest interval; of several without a rate none is.
fn latency(result: &DatabaseResult) -> Option<Section> {
    let (_, demand) = main_demand(result)?;
    let (busiest, _) = demand.busiest()?;
    if demand.intervals.len() > 1 && busiest.operations_per_s() <= 0.0 {
        return None;
    }
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
        let figures = &result.figures[at];
        match (figures.sessions, figures.begin.zip(first)) {
            (Some(sessions), _) => f64::from(sessions),
            (None, Some((begin, first))) => soak::wall(begin, first),
            (None, None) => at as f64,
        }
    };
    let has_sessions = result.figures.iter().all(|one| one.sessions.is_some());
    let share = |event: &str, report: usize| {
        let row = result
            .waits
            .iter()
            .find(|one| one.report == report && one.event == event);
        row.map_or(0.0, |one| one.percent / 100.0)
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
    Some(parts::section(
        "waits-over-time",
        "What sessions waited for",
        "",
        vec![Block::Chart(Box::new(chart))],
    ))
}

/// The busiest report's list of top events.
fn waits(reports: &[&DatabaseReport]) -> Option<Section> {
    let [report] = reports else { return None };
    let rows = report.waits.iter().filter(|row| row.of == WaitTable::Top);
    let table = TableOf::of("Top events, as printed", rows)
        .text("event", |row| row.event.clone())
        .count("waits", |row| row.waits.map(|waits| waits.value))
        .count("seconds", |row| row.time_s.map(|time| time.value))
        .number("mean", |row| parts::known(row.mean_us, printed_time))
        .number("share of DB time", |row| {
            parts::known(row.percent, |percent| format!("{} %", percent.value))
        })
        .table();
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
    let of_all = |row: &&IoStatRow| {
        row.instance.as_deref().is_none_or(|of| of == "*") && !row.name.contains('(')
    };
    let megabytes = |mib: Option<Printed>| mib.map(|mib| mib.value * MEGABYTES);
    let table = |caption: &str, rows: &[IoStatRow]| {
        TableOf::of(caption, rows.iter().filter(of_all))
            .text("", |row| row.name.clone())
            .number("reads/s", |row| {
                let reads = parts::known(row.reads_per_s, |reads| parts::count(reads.value));
                if rigel_analyse::has_possible_reads(row) {
                    reads
                } else {
                    format!("doubted: {reads}")
                }
            })
            .count("MB/s read", |row| megabytes(row.read_mib_per_s))
            .count("writes/s", |row| {
                row.writes_per_s.map(|writes| writes.value)
            })
            .count("MB/s written", |row| megabytes(row.write_mib_per_s))
            .time("mean", |row| row.mean_us.map(|mean| mean.value))
            .block()
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
    let megabytes = |mib: Option<f64>| mib.map(|mib| mib * MEGABYTES);
    let caption = "All I/O of each report; reads and writes are requests";
    let table = TableOf::of(caption, &result.figures)
        .text("report", |one| file_name(&one.file).to_string())
        .text("begin", |one| parts::known(one.begin, Moment::short))
        .number("minutes", |one| {
            parts::known(one.seconds, |seconds| format!("{:.0}", seconds / 60.0))
        })
        .count("reads/s", |one| one.all_reads_per_s)
        .count("MB/s read", |one| megabytes(one.all_read_mib_per_s))
        .count("writes/s", |one| one.all_writes_per_s)
        .count("MB/s written", |one| megabytes(one.all_write_mib_per_s))
        .time("read mean", |one| one.random_read_us)
        .time("read p99", |one| one.random_read_p99_us)
        .on_page()
        .time("log write", |one| one.log_write_us)
        .time("commit", |one| one.commit_us)
        .number("findings", |one| one.findings)
        .on_page()
        .folded_if(result.figures.len() > LISTED_MAX)
        .block();
    parts::section("reports", "Every report", "", vec![table])
}

/// The predictability of the requests over time.
fn over_time(result: &DatabaseResult) -> Vec<Section> {
    let Some(series) = &result.series else {
        return Vec::new();
    };
    let document = soak::of_series(series, Document::default());
    // Findings have their own section.
    let sections = document.sections.into_iter();
    sections
        .filter(|section| section.id != "findings")
        .collect()
}

fn parameters(result: &DatabaseResult) -> Option<Section> {
    let table = || {
        let parameters = result.parameters.iter().map(|(name, value)| (name, value));
        pairs("", ["parameter", "value"], parameters)
    };
    (!result.parameters.is_empty()).then(|| {
        let title = "Parameters that matter to I/O";
        parts::section("parameters", title, "", vec![table()])
    })
}

/// One line for each report, for spreadsheets. MB are 2^20 bytes, as in the reports; latencies are
/// whole microseconds. Columns are only added at the end.
pub fn csv(result: &DatabaseResult) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let whole = |figure: Option<f64>| figure.map(|figure| format!("{figure:.0}"));
    CsvTable::of(&result.figures)
        .text("file", |one| &one.file)
        .maybe("sessions", |one| one.sessions)
        .text("kind", |one| &one.kind)
        .text("release", move |one| text(&one.release))
        .text("db", move |one| text(&one.db))
        .text("instance", move |one| text(&one.instance))
        .maybe("begin", |one| one.begin)
        .figure("seconds", |one| one.seconds)
        .maybe("cpus", |one| one.cpus)
        .figure("active_sessions", |one| one.active_sessions)
        .figure("cpu_seconds_per_s", |one| one.cpu_seconds_per_s)
        .figure("executions_per_s", |one| one.executions_per_s)
        .figure("transactions_per_s", |one| one.transactions_per_s)
        .figure("logical_reads_per_s", |one| one.logical_reads_per_s)
        .figure("db_reads_per_s", |one| one.db_reads_per_s)
        .figure("db_read_mb_per_s", |one| one.db_read_mib_per_s)
        .figure("all_reads_per_s", |one| one.all_reads_per_s)
        .figure("all_read_mb_per_s", |one| one.all_read_mib_per_s)
        .figure("db_writes_per_s", |one| one.db_writes_per_s)
        .figure("db_write_mb_per_s", |one| one.db_write_mib_per_s)
        .figure("all_writes_per_s", |one| one.all_writes_per_s)
        .figure("all_write_mb_per_s", |one| one.all_write_mib_per_s)
        // A few hundred bytes of redo per second would round to 0.
        .maybe("redo_mb_per_s", |one| {
            one.redo_mib_per_s.map(|mib| format!("{mib:.4}"))
        })
        .figure("redo_writes_per_s", |one| one.redo_writes_per_s)
        .maybe("redo_write_bytes", move |one| whole(one.redo_write_bytes))
        .figure("random_reads_per_s", |one| one.random_reads_per_s)
        .maybe("random_read_us", move |one| whole(one.random_read_us))
        .maybe("random_read_p50_us", move |one| {
            whole(one.random_read_p50_us)
        })
        .maybe("random_read_p99_us", move |one| {
            whole(one.random_read_p99_us)
        })
        .maybe("multiblock_read_us", move |one| {
            whole(one.multiblock_read_us)
        })
        .maybe("direct_read_us", move |one| whole(one.direct_read_us))
        .maybe("parallel_read_us", move |one| whole(one.parallel_read_us))
        .maybe("log_write_us", move |one| whole(one.log_write_us))
        .maybe("log_write_p99_us", move |one| whole(one.log_write_p99_us))
        .maybe("commit_us", move |one| whole(one.commit_us))
        .maybe("commit_p99_us", move |one| whole(one.commit_p99_us))
        .maybe("page_write_batch_us", move |one| {
            whole(one.page_write_batch_us)
        })
        .figure("host_busy_percent", |one| one.host_busy_percent)
        .figure("io_wait_percent", |one| one.io_wait_percent)
        .text("top_event", move |one| text(&one.top_event))
        .figure("top_event_percent", |one| one.top_event_percent)
        .value("findings", |one| one.findings)
        .into_text()
}
