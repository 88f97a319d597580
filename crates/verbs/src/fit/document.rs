//! The report of a fit: the streams at the highest multiple that held, every multiple, and latency
//! against multiple.

use super::conclusion::interval_in_words;
use super::request::{FitRequest, OfferedStream};
use super::result::{FitResult, TriedMultiple, TriedStream, is_same, judged_figure};
use rigel_analyse::demand::stream_objective::{assumed_in_words, objective_in_words};
use rigel_analyse::figures::latency::LatencyFigure;
use rigel_analyse::figures::quantity::multiple as rounded;
use rigel_analyse::{
    BoundVerdict, Conclusion, Estimate, PointSummary, RunTrust, demand_at_least, quantity,
};
use rigel_model::record::RankGroup;
use rigel_model::record::journal::Run;
use rigel_model::{DemandKind, DemandStream, Measure, Objective, quantile_name};
use rigel_report::columns::TableOf;
use rigel_report::data::value;
use rigel_report::document::Extent;
use rigel_report::document::{
    Axis, Block, Chart, Document, Headline, Lines, Mark, Plot, Section, Series, Shape, Status, Unit,
};
use rigel_report::frame::about_server;
use rigel_report::points::{self, Units};
use rigel_report::text;
use rigel_report::{parts, setup, sql, timeline};
use std::path::Path;

/// Number of streams among the headline figures.
const HEADLINES: usize = 3;

/// Number of streams whose intervals fit into a line of text.
const INTERVALS_MAX: usize = 2;

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    result: &FitResult,
    findings: Section,
    frame: Document,
) -> Document {
    let Some(request) = &run.header.invocation.asked::<FitRequest>("fit") else {
        return frame;
    };
    let workload = workload(request);
    let tried = match result.multiples.len() {
        1 => "1 multiple".into(),
        count => format!("{count} multiples"),
    };
    Document {
        about: about_server(&run.header, &workload, &tried),
        headlines: headlines(request, result),
        standing: [one_multiple(result), demand_at_least(&request.interval)]
            .into_iter()
            .flatten()
            .chain(frame.standing)
            .collect(),
        sections: sections(run, request, result, findings, &workload),
        ..frame
    }
}

/// `1 × is 7,147/s random reads of 8 KiB, 28/s log writes of 12 KiB.`
fn one_multiple(result: &FitResult) -> Option<String> {
    let stream = |one: &OfferedStream| {
        let rate = parts::per_second(one.per_s);
        match one.kind {
            // They are of several blocks.
            DemandKind::Operations => format!("{rate} {}", one.kind.words()),
            kind => format!("{rate} {} of {}", kind.words(), parts::size(one.length)),
        }
    };
    let streams: Vec<String> = result.offered.iter().map(stream).collect();
    (!streams.is_empty()).then(|| format!("1 × is {}.", streams.join(", ")))
}

/// `the demand of PROD by AWR, reads only`.
fn workload(request: &FitRequest) -> String {
    let part = if request.writes {
        "reads and writes"
    } else {
        "reads only"
    };
    let work = request.sessions.map_or_else(String::new, |sessions| {
        format!(
            "; {}: {}, {}",
            parts::counted(sessions.number.into(), "session"),
            sessions.terms.work,
            sessions.terms.work.tables
        )
    });
    format!(
        "{}, by {}, {part}{work}",
        interval_in_words(request),
        request.source
    )
}

/// What one of several targets carries.
#[derive(Debug)]
pub struct FitOfTarget<'a> {
    /// The target's name.
    pub target: &'a str,
    /// The directory of its run.
    pub run: &'a Path,
    /// What it carries.
    pub found: &'a FitResult,
    /// How far the figures can be trusted.
    pub trust: RunTrust,
}

/// Several targets and what each carries, best first, on one screen.
pub fn fits(mut all: Vec<FitOfTarget<'_>>) -> String {
    let rank = |one: &FitOfTarget| {
        let found = one.found;
        (found.held.unwrap_or(0.0), found.not_held.unwrap_or(0.0))
    };
    all.sort_by(|one, other| {
        let ((held, limit), (other_held, other_limit)) = (rank(one), rank(other));
        other_held
            .total_cmp(&held)
            .then(other_limit.total_cmp(&limit))
    });
    let need = all.first().map_or(1.0, |one| one.found.need);
    let sentence = together(&all, need);
    let table = TableOf::of("", &all)
        .text("target", |one| one.target.to_string())
        .number("carries", |one| carried(one.found))
        .text(&format!("{} ×", rounded(need)), |one| {
            answer(one.found.verdict)
        })
        .text("breaks first", |one| {
            let first = one.found.breaks_first.iter();
            first
                .map(|kind| kind.words())
                .collect::<Vec<_>>()
                .join(", ")
        })
        .text("trust", |one| one.trust.level.words())
        .text("run", |one| one.run.display().to_string());
    let blocks = vec![table.block()];
    let document = Document {
        heading: "rigel fit: the same demand on each target".into(),
        conclusion: Conclusion {
            sentence,
            ..Conclusion::default()
        },
        sections: vec![parts::on_screen(parts::section(
            "targets", "Targets", "", blocks,
        ))],
        ..Document::default()
    };
    text::render(&document, Extent::Screen)
}

/// The highest multiple that held and the lowest that did not: `2 to 2.38 ×`.
fn carried(found: &FitResult) -> String {
    let (held, not_held) = (found.held.map(rounded), found.not_held.map(rounded));
    match (held, not_held) {
        (Some(held), Some(not_held)) => format!("{held} to {not_held} ×"),
        (Some(held), None) => format!("at least {held} ×"),
        (None, Some(not_held)) => format!("less than {not_held} ×"),
        (None, None) => "-".into(),
    }
}

/// How many of the targets carry what is needed, and which of them, best first, carries most.
fn together(all: &[FitOfTarget<'_>], need: f64) -> String {
    let carry = all
        .iter()
        .filter(|one| one.found.verdict == BoundVerdict::Kept)
        .count();
    let demand = format!("{} × of the demand", rounded(need));
    let number = match carry {
        0 => format!("None of {} targets carries {demand}", all.len()),
        1 => format!("1 of {} targets carries {demand}", all.len()),
        several => format!("{several} of {} targets carry {demand}", all.len()),
    };
    let best = all.first().filter(|one| one.found.held.is_some());
    best.map_or(format!("{number}."), |one| {
        format!("{number}. {} carries most.", one.target)
    })
}

fn answer(verdict: BoundVerdict) -> &'static str {
    match verdict {
        BoundVerdict::Kept => "held",
        BoundVerdict::Broken => "not held",
        BoundVerdict::Undecided => "undecided",
        BoundVerdict::NotMeasured => "not measured",
    }
}

fn headlines(request: &FitRequest, result: &FitResult) -> Vec<Headline> {
    let mut figures = Vec::new();
    let of = format!("times the demand of {}", request.database);
    let times = |multiple: f64| format!("{} ×", rounded(multiple));
    let (low, high) = result.ends();
    match (result.by_curve(), low, high) {
        // What was asked comes first, and not the multiple that happens to be known.
        _ if result.verdict == BoundVerdict::Undecided => figures.push(parts::headline(
            "fit.need",
            &format!("carries {}", times(result.need)),
            result.need,
            "undecided".into(),
            known_range(low, high),
            of,
        )),
        (Some(carries), Some(low), Some(high)) => figures.push(parts::headline(
            "fit.carries.value",
            "carries",
            carries,
            times(carries),
            format!("{} to {} ×", rounded(low), rounded(high)),
            of,
        )),
        (None, Some(low), Some(high)) => figures.push(parts::headline(
            "fit.held",
            "carries",
            low,
            times(low),
            format!("not {} ×", rounded(high)),
            of,
        )),
        (_, Some(low), None) => figures.push(parts::headline(
            "fit.held",
            "carries at least",
            low,
            times(low),
            result
                .multiples
                .last()
                .filter(|last| last.multiple > low)
                .map_or_else(
                    || "the highest that was tried".into(),
                    |last| format!("up to {} × undecided", rounded(last.multiple)),
                ),
            of,
        )),
        (_, None, Some(high)) => figures.push(parts::headline(
            "fit.not_held",
            "does not carry",
            high,
            times(high),
            "no multiple held".into(),
            of,
        )),
        _ => {}
    }
    let shown = result.shown();
    let index = result.multiples.iter().position(|one| Some(one) == shown);
    if let Some((at, tried)) = index.zip(shown) {
        let mut streams: Vec<(usize, &TriedStream)> = tried.streams.iter().enumerate().collect();
        // What breaks first is the figure to know.
        streams.sort_by_key(|(_, stream)| !result.breaks_first.contains(&stream.kind));
        for (index, stream) in streams.into_iter().take(HEADLINES) {
            figures.extend(headline(at, index, tried, stream));
        }
    }
    figures
}

/// What is known beside an undecided multiple; empty if nothing is.
fn known_range(low: Option<f64>, high: Option<f64>) -> String {
    let held = low.map(|low| format!("{} × held", rounded(low)));
    let not_held = high.map(|high| format!("{} × not held", rounded(high)));
    held.into_iter()
        .chain(not_held)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The judged figure of a stream at a multiple.
fn headline(
    at: usize,
    index: usize,
    tried: &TriedMultiple,
    stream: &TriedStream,
) -> Option<Headline> {
    let objective = stream.objective.map(|known| known.objective);
    let figure = stream.judged_us?;
    let label = format!("{} of {}", measure_name(objective), stream.kind.words());
    let limit = objective.map_or_else(String::new, |objective| {
        format!("; {}", objective_in_words(objective))
    });
    Some(parts::latency(
        &format!("fit.multiples.{at}.streams.{index}.judged_us.value"),
        &label,
        figure,
        format!("at {} ×{limit}", rounded(tried.multiple)),
    ))
}

fn sections(
    run: &Run,
    request: &FitRequest,
    result: &FitResult,
    findings: Section,
    workload: &str,
) -> Vec<Section> {
    let group = run.header.ranks.as_deref();
    let mut streams = streams(request, result);
    if let Some((group, shown)) = group.zip(result.shown()) {
        streams.blocks.extend(hosts(group, request, shown));
    }
    let mut sections = vec![multiples(request, result, group), findings];
    let units = Units::of("op/s");
    sections.extend(timeline::section(run, units));
    sections.push(streams);
    sections.extend(database(result));
    sections.push(points::section(run, &result.points, units));
    sections.extend(points::coverage(&result.points, &run.header.findings));
    sections.push(setup::section(&run.header, workload));
    sections
}

/// What the server did at each multiple, rising, and at the one that is shown; `None` if the target
/// is no database.
fn database(result: &FitResult) -> Option<Section> {
    let with_sessions = |point: &&PointSummary| point.sql.is_some();
    let mut points: Vec<&PointSummary> = result.points.iter().filter(with_sessions).collect();
    let multiple = |point: &PointSummary| point.coordinates.multiple().unwrap_or(0.0);
    points.sort_by(|one, other| multiple(one).total_cmp(&multiple(other)));
    let is_shown = |point: &&&PointSummary| {
        let shown = result.shown().map(|tried| tried.multiple);
        shown.is_some_and(|shown| is_same(multiple(point), shown))
    };
    let shown = *points.iter().find(is_shown).or(points.first())?;
    Some(sql::database(&points, shown))
}

/// The streams of the demand at the multiple that is shown, and what the answer means.
fn streams(request: &FitRequest, result: &FitResult) -> Section {
    let shown = result.shown();
    let operations = request.operations();
    let demanded = operations
        .iter()
        .chain(&request.interval.streams)
        .filter(|stream| stream.per_s.is_some_and(|per_s| per_s > 0.0));
    let caption = shown.map_or_else(String::new, |shown| {
        format!(
            "Offered at {} ×: {}",
            rounded(shown.multiple),
            answer(shown.verdict)
        )
    });
    let mut blocks = vec![demanded_and_done(&caption, demanded, result)];
    blocks.extend(meaning(request, result).map(Block::Text));
    blocks.extend(log_writes(request).map(Block::Text));
    blocks.extend(assumptions(request).map(Block::Text));
    blocks.extend(left_out(request).map(Block::Text));
    parts::section(
        "streams",
        "What was demanded, and what was done",
        "Each kind of I/O of the database is a stream of its own; all run at once, at times of \
         their own, and response times count from when an operation was due. There: as the \
         database saw it.",
        blocks,
    )
}

/// Each host at the multiple that is shown, and what each offers.
fn hosts(group: &RankGroup, request: &FitRequest, shown: &TriedMultiple) -> Vec<Block> {
    let hosts = shown
        .streams
        .iter()
        .flat_map(|stream| stream.hosts.iter().map(move |host| (stream, host)));
    let caption = format!("Each host at {} ×", rounded(shown.multiple));
    let offers = if request.of_ranks.is_empty() {
        format!(
            "Each of the {} ranks offers an equal part of the demand.",
            group.size()
        )
    } else {
        let each: Vec<String> = (0..)
            .zip(&request.of_ranks)
            .map(|(rank, one)| format!("{} that of {}", group.label(rank), one.database))
            .collect();
        format!(
            "The demand is the sum of all instances at one time; each rank offers its own: {}.",
            each.join(", ")
        )
    };
    let judged = "Rates are sums over the hosts. Every host must keep the objectives with its own \
                  response times: a multiple that one of them does not hold is not held.";
    vec![
        TableOf::of(&caption, hosts)
            .text("stream", |(stream, _)| stream.kind.words())
            .text("host", |(_, host)| group.label(host.rank))
            .count("offered/s", |(_, host)| host.offered_per_s)
            .count("done/s", |(_, host)| host.done_per_s)
            .time("mean", |(_, host)| host.mean_us.map(|mean| mean.value))
            .time("p99 (95 % interval)", |(_, host)| host.p99_us)
            .text("objective", |(stream, host)| {
                let worst = stream.worst_host().map(|worst| worst.rank);
                let is_worst = worst == Some(host.rank) && stream.hosts.len() > 1;
                let worst = if is_worst { " (worst host)" } else { "" };
                format!("{}{worst}", answer(host.verdict))
            })
            .block(),
        Block::Text(format!("{offers} {judged}")),
    ]
}

fn demanded_and_done<'a>(
    caption: &str,
    demanded: impl Iterator<Item = &'a DemandStream>,
    result: &FitResult,
) -> Block {
    let shown = result.shown();
    let rows = demanded.map(|stream| {
        let tried =
            shown.and_then(|tried| tried.streams.iter().find(|one| one.kind == stream.kind));
        (stream, tried)
    });
    TableOf::of(caption, rows)
        .text("stream", |(stream, _)| stream.kind.words())
        .number("demanded/s", |(stream, _)| {
            parts::known(stream.per_s, parts::count)
        })
        .on_page()
        .number("size", |(stream, _)| {
            // Not of operations, which are of several blocks.
            let offered = result
                .offered
                .iter()
                .find(|one| one.kind == stream.kind && one.kind != DemandKind::Operations);
            offered.map_or_else(
                || parts::known(stream.mean_bytes, parts::bytes),
                |offered| parts::size(offered.length),
            )
        })
        .on_page()
        .number("offered/s", |(_, tried)| {
            parts::known(*tried, |tried| parts::count(tried.offered_per_s))
        })
        .number("done/s", |(_, tried)| {
            parts::known(*tried, |tried| parts::count(tried.done_per_s))
        })
        .time("mean here", |(_, tried)| {
            value(tried.and_then(|tried| tried.mean_us))
        })
        .on_page()
        .time("mean there", |(stream, _)| stream.mean_us)
        .on_page()
        .time("p99 here", |(_, tried)| {
            value(tried.and_then(|tried| tried.p99_us))
        })
        .text("objective", |(_, tried)| {
            match tried.map(|it| (it.objective, it.verdict)) {
                None => "not offered".into(),
                Some((None, verdict)) => format!("served: {}", answer(verdict)),
                Some((Some(known), verdict)) => {
                    format!(
                        "{}: {}",
                        objective_in_words(known.objective),
                        answer(verdict)
                    )
                }
            }
        })
        .block()
}

/// What the multiple says of bursts within the interval.
fn meaning(request: &FitRequest, result: &FitResult) -> Option<String> {
    let average = result.held.zip(request.interval.seconds);
    let mut sentences: Vec<String> = Vec::new();
    if let Some((held, seconds)) = average.filter(|(_, seconds)| *seconds > 10.0) {
        sentences.push(format!(
            "The demand is an average of {}, and hides the bursts within them. A second that is {} \
             times as busy as this average is still within the objectives.",
            quantity::rounded_length(seconds),
            rounded(held)
        ));
    }
    sentences.extend(request.burst.map(|burst| {
        let hour = if burst.known_s < 3540.0 {
            format!(
                "the {} around them",
                quantity::rounded_length(burst.known_s)
            )
        } else {
            "their hour".into()
        };
        format!(
            "The busiest ten seconds of the whole demand ({}) had {} times the I/O of {hour}.",
            burst.begin.short(),
            rounded(burst.ratio)
        )
    }));
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Where log writes went; `None` if none were offered.
fn log_writes(request: &FitRequest) -> Option<String> {
    request.offers_log().then(|| match request.log {
        Some(log) => format!("Log writes went to {}.", log.in_full()),
        None => "Log writes overwrote blocks of the target, each durable before it counted: the best case. \
                 In a directory they are made as the database makes them."
            .into(),
    })
}

/// What was assumed because nobody said it.
fn assumptions(request: &FitRequest) -> Option<String> {
    let mut assumptions: Vec<String> = Vec::new();
    if request.is_block_assumed {
        assumptions.push(format!(
            "a block has {}, because the demand does not say it (--size)",
            parts::size(request.block)
        ));
    }
    let offered = request.offered();
    for one in request.objectives.iter().filter(|one| one.is_assumed) {
        if offered.iter().all(|it| it.kind != one.kind) {
            continue;
        }
        assumptions.push(assumed_in_words(one));
    }
    (!assumptions.is_empty()).then(|| {
        format!(
            "Assumed: {}. --slo sets an objective.",
            assumptions.join("; ")
        )
    })
}

/// The streams that are not offered, and why; and I/O that is no part of the demand.
fn left_out(request: &FitRequest) -> Option<String> {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (kind, why) in request.left_out() {
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, kinds)) => kinds.push(kind.words()),
            None => reasons.push((why, vec![kind.words()])),
        }
    }
    let mut parts: Vec<String> = reasons
        .into_iter()
        .map(|(why, kinds)| format!("{} ({why})", kinds.join(", ")))
        .collect();
    if let Some(out) = request.interval.left_out {
        const MEGABYTES: f64 = 1.048_576;
        parts.push(format!(
            "{} MB/s read and {} MB/s written by backups, archiving and others",
            parts::count(out.read_mib_per_s * MEGABYTES),
            parts::count(out.write_mib_per_s * MEGABYTES)
        ));
    }
    (!parts.is_empty()).then(|| format!("Left out: {}.", parts.join("; ")))
}

/// Every multiple with its streams, in a table and a chart.
fn multiples(request: &FitRequest, result: &FitResult, group: Option<&RankGroup>) -> Section {
    let kinds: Vec<DemandKind> = result.offered.iter().map(|one| one.kind).collect();
    let chart = chart(request, result, &kinds);
    let mut blocks: Vec<Block> = parts::beside([chart]).into_iter().collect();
    blocks.push(each_multiple(request, result, &kinds, group));
    let lead = "Held: every stream was served and its 95 % interval lies within the objective. Not \
                held: one was not served, or lies beyond it. Undecided: what was measured \
                does not decide, as Rigel itself had no CPU, the figure has no interval, or the limit lies \
                within it. By the curve: all multiples together decide, and its own figures \
                alone do not.";
    parts::on_screen(parts::section(
        "multiples",
        "Latency against multiple",
        lead,
        blocks,
    ))
}

/// `p99`, `mean`.
fn measure_name(objective: Option<Objective>) -> String {
    let label = judged_figure(objective).label();
    match objective.map(|objective| objective.0) {
        Some(Measure::Quantile(quantile, _)) if LatencyFigure::of_quantile(quantile).is_none() => {
            format!("{label}, judged by {},", quantile_name(quantile))
        }
        _ => label.into(),
    }
}

fn each_multiple(
    request: &FitRequest,
    result: &FitResult,
    kinds: &[DemandKind],
    group: Option<&RankGroup>,
) -> Block {
    // The question, and what answers it.
    let kept = [
        Some(1.0),
        Some(result.need),
        result.held,
        result.not_held.or(result.held),
    ];
    // Where rounding would print two multiples alike, both are printed exactly.
    let is_double = |multiple: f64| {
        let all = result.multiples.iter();
        all.filter(|tried| rounded(tried.multiple) == rounded(multiple))
            .count()
            > 1
    };
    let times = |multiple: f64| {
        if is_double(multiple) {
            format!("{multiple} ×")
        } else {
            format!("{} ×", rounded(multiple))
        }
    };
    let mut table = TableOf::of("", &result.multiples)
        .decided_by(|tried| {
            kept.iter()
                .flatten()
                .any(|one| is_same(tried.multiple, *one))
        })
        .number("multiple", |tried| times(tried.multiple))
        .text("answer", |tried| {
            let by = if tried.is_by_curve() {
                ", by the curve"
            } else {
                ""
            };
            let why = tried.why_undecided();
            let why = why.map_or_else(String::new, |why| format!(": {}", why.words()));
            format!("{}{by}{why}", answer(tried.verdict))
        });
    // The streams that break first decide; else all that can.
    let can = |kind: &&DemandKind| request.objective(**kind).is_some();
    let breaks = |kind: &&DemandKind| result.breaks_first.contains(kind);
    let deciding = kinds.iter().filter(can).filter(breaks);
    let mut deciding: Vec<DemandKind> = deciding.copied().collect();
    if deciding.is_empty() {
        deciding.extend(kinds.iter().filter(can));
    }
    deciding.truncate(INTERVALS_MAX);
    for kind in kinds {
        let objective = request.objective(*kind);
        let decides = deciding.contains(kind);
        let heading = format!("{} of {}", measure_name(objective), kind.words());
        table = table
            .time(&heading, |tried| {
                let stream = tried.streams.iter().find(|stream| stream.kind == *kind);
                let figure = stream.and_then(|stream| stream.judged_us)?;
                // The intervals of many streams would not fit into a line.
                let interval = figure
                    .interval
                    .filter(|_| decides || kinds.len() <= INTERVALS_MAX);
                Some(Estimate { interval, ..figure })
            })
            .on_page_if(!decides);
    }
    let broken = |tried: &&TriedMultiple| {
        let is_broken = |stream: &&TriedStream| stream.verdict == BoundVerdict::Broken;
        let broken = tried.streams.iter().filter(is_broken);
        let broken: Vec<String> = broken
            .map(|stream| match group.zip(stream.worst_host()) {
                Some((group, host)) => {
                    format!("{} on {}", stream.kind.words(), group.label(host.rank))
                }
                None => stream.kind.words().into(),
            })
            .collect();
        match &broken[..] {
            [first, _, rest @ ..] if !rest.is_empty() => {
                format!("{first} and {} more", rest.len() + 1)
            }
            few => few.join(", "),
        }
    };
    table.text("does not hold", broken).may_be_cut().block()
}

/// The judged latency of each stream over the multiples, with the objectives and the answer.
fn chart(request: &FitRequest, result: &FitResult, kinds: &[DemandKind]) -> Option<Chart> {
    if result.multiples.len() < 2 {
        return None;
    }
    let mut marks: Vec<Mark> = Vec::new();
    let mut series = Vec::new();
    for (at, kind) in kinds.iter().enumerate() {
        let colour = u8::try_from(at % 8).ok();
        let objective = request.objective(*kind);
        let figures: Vec<(f64, Estimate)> = result
            .multiples
            .iter()
            .filter_map(|tried| {
                let stream = tried.streams.iter().find(|stream| stream.kind == *kind)?;
                Some((tried.multiple, stream.judged_us?))
            })
            .collect();
        series.push(Series {
            name: format!("{}, {}", kind.words(), measure_name(objective)),
            shape: Shape::Line,
            colour,
            x: figures.iter().map(|(multiple, _)| *multiple).collect(),
            y: figures
                .iter()
                .map(|(_, figure)| Some(figure.value))
                .collect(),
            band: figures.iter().map(|(_, figure)| figure.interval).collect(),
            ..Series::default()
        });
        marks.extend(limit(objective).map(|us| Mark {
            at: us,
            label: parts::known(objective, |it| {
                format!("{} {}", kind.words(), objective_in_words(it))
            }),
            tone: Status::Warning,
            ..Mark::default()
        }));
    }
    marks.extend(answer_mark(result));
    let description = match (result.held, result.not_held) {
        (Some(held), Some(not_held)) => format!(
            "Latency of each stream at each multiple of the demand: {} × held, {} × did not.",
            rounded(held),
            rounded(not_held)
        ),
        _ => "Latency of each stream at each multiple of the demand.".into(),
    };
    let lines = Lines {
        x: Axis {
            label: "multiple of the demand".into(),
            unit: Unit::Number,
            log: true,
            range: None,
        },
        y: Axis {
            label: "response time".into(),
            unit: Unit::Microseconds,
            log: true,
            range: None,
        },
        right: None,
        series,
        marks,
    };
    Some(parts::chart(
        "fit-chart",
        "Latency against multiple",
        description,
        Plot::Lines(lines),
    ))
}

/// What is carried, with its interval; else the end that is known.
fn answer_mark(result: &FitResult) -> Option<Mark> {
    let times = |multiple: f64| format!("{} ×", rounded(multiple));
    let mark = |at, to, label, tone| Mark {
        at,
        to,
        upright: true,
        label,
        tone,
    };
    Some(match result.ends() {
        (Some(low), Some(high)) => {
            let range = format!("{} to {}", rounded(low), times(high));
            let label = match result.by_curve() {
                Some(carries) => format!("carries {} ({range})", times(carries)),
                None => format!("carries {range}"),
            };
            mark(low, Some(high), label, Status::Good)
        }
        (Some(low), None) => mark(low, None, format!("held: {}", times(low)), Status::Good),
        (None, Some(high)) => mark(
            high,
            None,
            format!("not held: {}", times(high)),
            Status::Bad,
        ),
        (None, None) => return None,
    })
}

/// The limit of an objective in microseconds.
fn limit(objective: Option<Objective>) -> Option<f64> {
    match objective?.0 {
        Measure::Quantile(_, limit) | Measure::Mean(limit) | Measure::Max(limit) => {
            Some(limit.as_micros_f64())
        }
        Measure::Rate(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fit::result::fit;
    use crate::golden;
    use rigel_analyse::examples;
    use rigel_model::record::{PointRecord, RankLines};
    use rigel_model::{Coordinates, Ratio};

    /// Sessions at a multiple, with `hits` of four blocks in the buffer cache.
    fn point(thousandths: u32, hits: u64) -> PointRecord {
        let mut record = examples::sessions(Ratio::ZERO);
        record.coordinates = Coordinates::Multiple { thousandths };
        record.streams[0].name = DemandKind::Operations.words().into();
        for sample in &mut record.samples {
            let server = sample.server.as_mut().unwrap();
            server.physical = server.logical.map(|blocks| blocks / 4 * (4 - hits));
        }
        record
    }

    #[test]
    fn what_the_server_did_is_said_of_each_multiple() {
        let records = [point(2000, 1), point(1000, 2)];
        let found = fit(
            &records,
            &RankLines::default(),
            &crate::examples::fit(Vec::new()),
        );
        let section = database(&found).unwrap();
        golden::check("fit-database.txt", &text::section(&section));
    }

    #[test]
    fn a_fit_on_a_disk_has_no_database() {
        let mut record = point(1000, 2);
        record.streams[0].sql = None;
        let found = fit(
            &[record],
            &RankLines::default(),
            &crate::examples::fit(Vec::new()),
        );
        assert_eq!(database(&found), None);
    }
}
