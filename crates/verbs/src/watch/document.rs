//! The report of a watch: what each disk and each database was asked for, over time, and what
//! Rigel itself needed for it.

use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::figures::quantity::multiple as rounded;
use rigel_analyse::quantity::counted;
use rigel_analyse::{
    Conclusion, Predictability, RunTrust, StorageRoom, WatchResult, WatchedPoint, WatchedSource,
    WatchedStream,
};
use rigel_model::record::StallEvent;
use rigel_model::record::journal::Header;
use rigel_model::{Bytes, FindingWithCause, Moment, Nanos};
use rigel_report::columns::TableOf;
use rigel_report::csv::CsvTable;
use rigel_report::data::{self, Head, Reported};
use rigel_report::document::{
    Axis, Block, Document, HEADLINES_MAX, Headline, Lines, Merge, Plot, Section, Series, Unit,
};
use rigel_report::soak::{thinned, wall};
use rigel_report::{parts, setup};
use schemars::{JsonSchema, Schema};
use serde::Serialize;

/// The report of a watch. It needs only the header: a journal of weeks is never in memory as a
/// whole.
pub(super) fn document(
    header: &Header,
    result: &WatchResult,
    findings: Section,
    frame: Document,
) -> Document {
    let what = what(header);
    let courses = result.sources.iter().enumerate();
    let mut sections: Vec<Section> = courses
        .filter_map(|(at, source)| over_time(at, source, result))
        .collect();
    sections.push(findings);
    sections.extend(together(&result.sources));
    let is_alone = result.sources.len() == 1;
    let each = result.sources.iter().enumerate();
    sections.extend(each.map(|(at, source)| {
        let section = streams(at, source);
        if is_alone {
            parts::on_screen(section)
        } else {
            section
        }
    }));
    sections.extend(result.room.as_ref().map(|room| room_section(header, room)));
    sections.push(own_cost(result));
    sections.push(setup::section(header, &what));
    Document {
        about: [
            what,
            header.engine_about.clone(),
            measured(result),
            format!("Rigel {}", header.version),
        ]
        .into_iter()
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("; "),
        headlines: headlines(result),
        sections,
        ..frame
    }
}

/// The JSON report of a watch. Fields are only added, never renamed or removed.
#[derive(Serialize, JsonSchema)]
struct WatchReport<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    conclusion: Conclusion,
    trust: RunTrust,
    watch: &'a WatchResult,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictability: Option<&'a Predictability>,
    /// When a disk or server stopped answering, and when it went on.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stalls: &'a [StallEvent],
    findings: Vec<FindingWithCause<'a>>,
}

/// The JSON Schema of [`json`].
pub(super) fn schema() -> Schema {
    data::schema_of::<WatchReport>()
}

/// The report as one JSON document.
pub(super) fn json(report: Reported, result: &WatchResult) -> String {
    data::document(&WatchReport {
        head: Head::of(&report.run.header).ended(report.ended),
        conclusion: report.conclusion,
        trust: report.trust,
        watch: result,
        predictability: result.course.as_ref().map(|course| &course.found),
        stalls: &report.run.stalls,
        findings: report.findings,
    })
}

/// The report as CSV: a line for each stream of each source in each interval.
pub(super) fn csv(result: &WatchResult) -> String {
    let rows = result.sources.iter().flat_map(|source| {
        let points = source.points.iter();
        points.flat_map(move |point| {
            let streams = source.streams.iter().zip(&point.streams);
            streams.map(move |(stream, seen)| (source, point, stream, seen))
        })
    });
    CsvTable::of(rows)
        .value("begun", |(_, point, ..)| point.begin)
        .figure("seconds", |(_, point, ..)| point.seconds)
        .text("source", |(source, ..)| &source.name)
        .value("stream", |(.., stream, _)| stream.name.clone())
        .figure("per_s", |(.., seen)| seen.per_s)
        .figure("p99_us", |(.., seen)| seen.p99_us)
        .into_text()
}

/// `vda and postgres://…, every 10 s`.
fn what(header: &Header) -> String {
    let Some(request) = header.invocation.asked::<WatchRequest>("watch") else {
        return String::new();
    };
    let disks = request.disks.iter().map(|disk| &disk.name);
    let names: Vec<&str> = disks.chain(&request.urls).map(String::as_str).collect();
    format!(
        "{}; an interval every {}",
        names.join(" and "),
        parts::lasting(request.every)
    )
}

/// `6 intervals, 60 s`.
fn measured(result: &WatchResult) -> String {
    format!(
        "{}, {}",
        counted(result.intervals as u64, "interval"),
        parts::lasting(Nanos::from_secs_f64(result.seconds.round().max(1.0)))
    )
}

fn headlines(result: &WatchResult) -> Vec<Headline> {
    let mut figures = Vec::new();
    for (at, source) in result.sources.iter().enumerate() {
        if let Some(busiest) = source.busiest.filter(|busiest| busiest.per_s > 0.0) {
            figures.push(parts::headline(
                &format!("watch.sources.{at}.busiest.per_s"),
                "busiest interval",
                busiest.per_s,
                parts::per_second(busiest.per_s),
                String::new(),
                format!("{}, {}", source.name, busiest.begin.short()),
            ));
        }
        for (index, stream) in source.streams.iter().enumerate() {
            figures.extend(headline(at, index, source, stream));
        }
    }
    figures.truncate(HEADLINES_MAX);
    figures
}

/// The latency of a stream that a database asks for; `None` if it is unknown.
fn headline(
    at: usize,
    index: usize,
    source: &WatchedSource,
    stream: &WatchedStream,
) -> Option<Headline> {
    let (name, figure) = match (stream.kind?, stream.response, stream.mean_us) {
        (_, Some(times), _) => ("response.p99_us", times.p99_us),
        (_, None, mean) => ("mean_us", mean?),
    };
    let what = if name == "mean_us" { "mean" } else { "p99" };
    Some(parts::headline(
        &format!("watch.sources.{at}.streams.{index}.{name}"),
        &format!("{what} of {}", stream.name),
        figure,
        parts::time(figure),
        String::new(),
        format!("{}, {}", source.name, parts::per_second(stream.per_s)),
    ))
}

/// The streams of a source.
fn streams(at: usize, source: &WatchedSource) -> Section {
    // Where every time is known, the mean says less than its distribution.
    let is_distributed = source
        .streams
        .iter()
        .any(|stream| stream.response.is_some());
    let table = TableOf::of("", &source.streams)
        .text("stream", |stream| stream.name.clone())
        .count("per second", |stream| stream.per_s)
        .count("busiest", |stream| stream.busiest_per_s)
        .count("MB/s", |stream| Some(stream.bytes_per_s()? / 1e6))
        .number("mean size", |stream| {
            let size = stream.mean_bytes.filter(|size| *size > 0.0);
            parts::known(size, parts::bytes)
        })
        .time("mean", |stream| stream.mean_us)
        .on_page_if(is_distributed)
        .time("p50", |stream| stream.response.map(|times| times.p50_us))
        .on_page_if(!is_distributed)
        .time("p99", |stream| stream.response.map(|times| times.p99_us))
        .on_page_if(!is_distributed)
        .time("max", |stream| stream.response.map(|times| times.max_us))
        .on_page()
        .rounded_percent("sequential", |stream| stream.sequential)
        .on_page()
        .count("number", |stream| stream.operations)
        .on_page()
        .number("failed", |stream| stream.failed)
        .on_page();
    let mut blocks = vec![table.block()];
    blocks.extend(source.log.map(|log| {
        let log = log.in_full();
        Block::Text(format!("It writes its log to {log}."))
    }));
    blocks.extend(apart(source));
    if source.gaps > 0 {
        blocks.push(Block::Text(format!(
            "Intervals without figures: {}{}.",
            parts::count(source.gaps as f64),
            if source.gap.is_empty() {
                String::new()
            } else {
                format!("; of the last one: {}", source.gap)
            }
        )));
    }
    blocks.extend(waits(source));
    let times = if is_distributed {
        " Times are from the first sight of a request to its end; those of log writes to the end of the \
         flush that made them durable."
            .into()
    } else {
        let measured = source
            .streams
            .iter()
            .find(|stream| stream.mean_us.is_some());
        measured.map_or_else(String::new, |stream| {
            format!(" Times are {}.", stream.latency_of)
        })
    };
    let busy = source.busy.map_or_else(String::new, |busy| {
        format!(" It was busy {} of the time.", parts::rounded_percent(busy))
    });
    let lead = format!(
        "By {}.{times} Busiest: the interval with the most of the kind.{busy}",
        source.by
    );
    parts::section(
        &format!("demand-{at}"),
        &format!("I/O of {}", source.name),
        &lead,
        blocks,
    )
}

/// The streams of all sources in one table; `None` of a single one.
fn together(sources: &[WatchedSource]) -> Option<Section> {
    let rows = sources.iter().flat_map(|source| {
        let streams = source.streams.iter().enumerate();
        streams.map(move |(at, stream)| (source, at, stream))
    });
    let table = TableOf::of("", rows)
        .text("of", |(source, at, _)| {
            // The URL of a database is as long as a line.
            let name = source.name.split("://").next().unwrap_or_default();
            if *at == 0 { name } else { "" }.to_string()
        })
        .text("stream", |(.., stream)| stream.name.clone())
        .count("per second", |(.., stream)| stream.per_s)
        .count("busiest", |(.., stream)| stream.busiest_per_s)
        .count("MB/s", |(.., stream)| Some(stream.bytes_per_s()? / 1e6))
        .time("mean", |(.., stream)| stream.mean_us)
        .time("p99", |(.., stream)| {
            stream.response.map(|times| times.p99_us)
        });
    let lead = "Busiest: the interval with the most of the kind. Of databases: what the server counts and times.";
    let section = parts::section("demand", "I/O of all", lead, vec![table.block()]);
    (sources.len() > 1).then(|| parts::on_screen(section))
}

/// What the sessions of a database waited for; `None` if nobody was seen.
fn waits(source: &WatchedSource) -> Option<Block> {
    /// Number of waits in the table.
    const LISTED_MAX: usize = 12;
    let active = source.active.filter(|active| *active > 0.0)?;
    let caption = format!(
        "What active sessions waited for; {} were active on average",
        parts::count(active)
    );
    let waits = TableOf::of(&caption, source.waits.iter().take(LISTED_MAX))
        .text("wait", |(name, _)| name.clone())
        .rounded_percent("share", |(_, share)| *share)
        .number("sessions", |(_, share)| parts::count(active * share));
    Some(waits.block())
}

/// Time in the queue and in the disk, apart; `None` if nothing was queued.
fn apart(source: &WatchedSource) -> Option<Block> {
    let was_queued = |stream: &&WatchedStream| stream.queue.is_some();
    source.streams.iter().find(was_queued)?;
    let table = TableOf::of("Queue and disk apart", &source.streams)
        .text("stream", |stream| stream.name.clone())
        .rounded_percent("queued", |stream| {
            let queued = stream.queued?;
            Some(queued as f64 / stream.operations.max(1.0))
        })
        .time("mean in the queue", |stream| {
            stream.queue.map(|times| times.mean_us)
        })
        .time("p99 in the queue", |stream| {
            stream.queue.map(|times| times.p99_us)
        })
        .time("mean in the disk", |stream| {
            stream.device.map(|times| times.mean_us)
        })
        .time("p99 in the disk", |stream| {
            stream.device.map(|times| times.p99_us)
        });
    Some(table.block())
}

/// What the storage of a calibration serves beside what was asked for.
fn room_section(header: &Header, room: &StorageRoom) -> Section {
    let request = header.invocation.asked::<WatchRequest>("watch");
    let serves = request
        .and_then(|request| request.against)
        .unwrap_or_default();
    let table = TableOf::of("", &room.streams)
        .text("stream", |stream| stream.kind.words())
        .count("busiest", |stream| stream.per_s)
        .count("served", |stream| stream.serves_per_s)
        .rounded_percent("used", |stream| stream.used)
        .number("room", |stream| format!("{} ×", rounded(1.0 / stream.used)));
    let mut blocks = vec![table.block()];
    if room.streams.len() > 1 {
        blocks.push(Block::Text(format!(
            "If the busiest intervals of all kinds but log writes fell together, they would use {} \
             of the storage.",
            parts::rounded_percent(room.used_together)
        )));
    }
    let missing: Vec<&str> = room.not_measured.iter().map(|kind| kind.words()).collect();
    if !missing.is_empty() {
        blocks.push(Block::Text(format!(
            "Not measured by the calibration: {} (rigel calibrate --write measures writes).",
            missing.join(", ")
        )));
    }
    let lead = format!(
        "Each kind in its busiest interval, beside what the calibration {} of {} measured for \
         operations of that size, alone. rigel fit offers all kinds at once and answers exactly.",
        serves.run, serves.target
    );
    parts::section("room", "Room beside a calibration", &lead, blocks)
}

/// Operations and latency of a source over time, and whether the demand stays the same, which is judged of the
/// first one.
fn over_time(at: usize, source: &WatchedSource, result: &WatchResult) -> Option<Section> {
    let first = source.points.first()?.begin;
    let panels = [
        panel(
            source,
            first,
            Unit::PerSecond,
            "per second",
            &|point, at| Some(point.streams.get(at).map_or(0.0, |seen| seen.per_s)),
        ),
        panel(source, first, Unit::Microseconds, "p99", &|point, at| {
            point.streams.get(at).and_then(|seen| seen.p99_us)
        }),
    ];
    let panels: Vec<Lines> = panels
        .into_iter()
        .filter(|lines| !lines.series.is_empty())
        .collect();
    let course = result.course.as_ref().filter(|_| at == 0);
    let verdict = course.map_or("", |course| &course.found.verdict);
    let chart = parts::chart(
        &format!("course-{at}-chart"),
        "Demand over time",
        format!(
            "Operations of {} per second, by stream. {verdict}",
            source.name
        ),
        Plot::Stack { panels },
    );
    let lead = format!("Operations of {} in each interval.", source.name);
    let mut blocks = vec![Block::Chart(Box::new(chart))];
    blocks.extend((!verdict.is_empty()).then(|| Block::Text(verdict.into())));
    let title = format!("Demand of {} over time", source.name);
    Some(parts::section(
        &format!("course-{at}"),
        &title,
        &lead,
        blocks,
    ))
}

/// One figure of every stream over time.
fn panel(
    source: &WatchedSource,
    first: Moment,
    unit: Unit,
    label: &str,
    of: &dyn Fn(&WatchedPoint, usize) -> Option<f64>,
) -> Lines {
    let series = source.streams.iter().enumerate().map(|(at, stream)| {
        let value = |point: &WatchedPoint| of(point, at);
        thinned(
            &stream.name,
            &source.points,
            |point| wall(point.begin, first),
            &value,
            Merge::Greatest,
        )
    });
    let is_known = |series: &Series| series.y.iter().any(Option::is_some);
    Lines {
        x: Axis {
            label: "begun".into(),
            unit: Unit::Moment,
            ..Axis::default()
        },
        y: Axis {
            label: label.into(),
            log: unit == Unit::Microseconds,
            unit,
            ..Axis::default()
        },
        series: series.filter(is_known).collect(),
        ..Lines::default()
    }
}

/// What Rigel itself needed.
fn own_cost(result: &WatchResult) -> Section {
    let own = result.own;
    let costs = [
        (
            "CPU time",
            format!("{} of one CPU", parts::percent(own.cpu)),
        ),
        (
            "resident memory, at most",
            Bytes(own.memory_bytes).to_string(),
        ),
        ("events lost", parts::count(own.lost_events as f64)),
        (
            "requests that began unseen",
            parts::count(own.unmatched as f64),
        ),
        (
            "requests that were only counted",
            parts::count(own.missed as f64),
        ),
    ];
    let table = TableOf::of("", costs)
        .text("", |(name, _)| *name)
        .number("value", |(_, value)| value.clone());
    parts::section(
        "own-cost",
        "What Rigel itself needed",
        "A watch makes no load. What the kernel needs to write an event is not in these figures: it \
         is part of the time of those who make the requests.",
        vec![table.block()],
    )
}
