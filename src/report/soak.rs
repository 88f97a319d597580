//! The report of a series of rounds: the verdict, figures, a timeline, changes with their dates, objectives.
//!
//! Input: rounds and their analysis, from a soak's journal or from another tool's figures. What is unknown of such
//! figures, such as latencies, is left out.

use super::csv::CsvTable;
use super::data::{self, Head};
use super::document::{
    Axis, Block, Document, Headline, Heat, Lines, Mark, Merge, Plot, Section, Series, Shape, Status, Table, Unit,
};
use super::frame::{about, frame};
use super::{parts, setup};
use crate::analyse::{
    Breach, ChangePoint, Conclusion, CutRounds, DailyPattern, Episode, HostShift, ObjectiveResult, Outlier,
    Predictability, Quantity, Round, RoundEnd, RoundHost, SeriesFigures, SoakResult,
};
use crate::model::{Bytes, Finding, Load, Moment, Request, Resolution};
use crate::record::journal::Header;
use serde::Serialize;

/// Maximum number of listed changes and slowdowns in text.
const LIST_MAX: usize = 12;

/// A figure of a round, or of its host.
type Of<T> = fn(&T) -> Option<f64>;

/// Minimum range of a calendar's colours, as a fraction of the median on either side: smaller differences are no
/// pattern.
const CALENDAR_SPAN: f64 = 0.15;

/// Maximum number of headline figures.
const FIGURES_MAX: usize = 4;

/// Maximum number of points of a series; with more rounds, several share a point.
const POINTS_MAX: usize = 2000;

/// Maximum number of rows in the table of rounds.
const ROWS_MAX: usize = 1000;

/// Maximum number of marked breaches per objective.
const MARKS_MAX: usize = 100;

/// The report of a soak. It needs only the header: the journal of a soak of weeks is never in memory as a whole.
#[must_use]
pub fn document(header: &Header, result: &SoakResult) -> Document {
    let workload = workload(header);
    let mut document = of_series(header, result, frame(header, result.conclusion(header)));
    document.about = about(header, &workload, &measured(result));
    document.sections.push(setup::section(header, &workload));
    document
}

/// `672 of 700 rounds, 2026-03-01 12:30 to 2026-03-08 12:30`.
fn measured(result: &SoakResult) -> String {
    let of = result.found.rounds.planned.map_or_else(String::new, |planned| format!(" of {planned}"));
    let to = result.found.resolution;
    let span = match (result.rounds.first(), result.rounds.last()) {
        (Some(first), Some(last)) => format!(", {} to {}", first.begin.shown(to), last.finish().shown(to)),
        _ => String::new(),
    };
    let rounds = result.rounds.len();
    let plural = if rounds == 1 && of.is_empty() { "" } else { "s" };
    format!("{rounds}{of} round{plural}{span}")
}

/// The workload of a round, in words; empty if the run is not a soak.
fn workload(header: &Header) -> String {
    let Request::Soak(request) = header.request() else { return String::new() };
    let round = match request.work {
        Some(work) => {
            let limit = parts::lasting(request.limit);
            format!("rounds of {} operations, at most {limit}", parts::count(work as f64))
        }
        None => "rounds without a pause between them".into(),
    };
    let load = match request.load {
        Load::Closed { depth } => format!("{depth} outstanding"),
        Load::Open { rate, .. } => format!("{} per second at random times", parts::count(rate)),
    };
    let size = Bytes(request.length.into());
    let what = match (request.sql, request.mix.writes.get()) {
        (Some(terms), _) => terms.work.to_string(),
        (None, 0.0) => format!("reads of {size}, {}", request.pattern),
        (None, 1.0) => format!("writes of {size}, {}", request.pattern),
        (None, writes) => format!("I/O of {size}, {} of it writes, {}", parts::percent(writes), request.pattern),
    };
    format!(
        "{what}; {load}; {round}, one every {}, for {}",
        parts::lasting(request.every),
        parts::lasting(request.lasting)
    )
}

/// The headlines and sections of a series from any source. The caller adds a line about it, and the setup.
pub(super) fn of_series(header: &Header, result: &SoakResult, frame: Document) -> Document {
    let found = &result.found;
    let mut sections: Vec<Section> = spread(found).into_iter().collect();
    let calendar = calendar(&result.rounds);
    sections
        .extend(timeline(result).map(|timeline| if calendar.is_none() { parts::in_text(timeline) } else { timeline }));
    sections.extend(calendar);
    sections.extend(found.daily.iter().find(|daily| daily.of == Quantity::Rate).map(daily));
    sections.extend(what_changed(found));
    sections.extend(objectives(found));
    sections.push(parts::findings(header.findings.iter().chain(&result.findings)));
    sections.push(rounds(result));
    Document { headlines: headlines(found), sections, ..frame }
}

/// Median, mean, variation and extremes of each quantity; `None` if no round has figures.
fn spread(found: &Predictability) -> Option<Section> {
    type Show = fn(f64) -> String;
    let all: [(&str, &Option<SeriesFigures>, Show); 3] =
        [("throughput", &found.rate, rate), ("p50", &found.p50_us, parts::time), ("p99", &found.p99_us, parts::time)];
    let row = |(name, figures, show): (&str, &Option<SeriesFigures>, Show)| {
        let figures = figures.as_ref()?;
        let at = |value: f64, at: Moment| format!("{}, {}", show(value), at.shown(found.resolution));
        Some(vec![
            name.to_string(),
            show(figures.median),
            show(figures.mean),
            parts::known(figures.variation, parts::percent),
            format!("{} to {}", show(figures.low), show(figures.high)),
            at(figures.least.value, figures.least.at),
            at(figures.greatest.value, figures.greatest.at),
        ])
    };
    let columns = ["", "#median", "*#mean", "#varies by", "95 % of rounds", "minimum", "maximum"];
    let table = parts::rows("Rounds", &columns, all.into_iter().filter_map(row).collect());
    let hour = |name: &str, figures: &SeriesFigures, show: Show, worst: bool| {
        let hour = if worst { figures.least_hour } else { figures.greatest_hour }?;
        let (value, share) = (show(hour.value), hour.of_median * 100.0);
        let begin = hour.begin.shown(found.resolution);
        Some(format!("Worst hour of {name}: {value} on average, {share:.0} % of the median, from {begin}."))
    };
    let worst = found.rate.as_ref().and_then(|figures| hour("throughput", figures, rate, true));
    let slowest = found.p99_us.as_ref().and_then(|figures| hour("p99", figures, parts::time, false));
    let mut blocks = vec![Block::Table(table)];
    blocks.extend(worst.into_iter().chain(slowest).map(Block::Text));
    let lead = "Over all complete rounds; the variation is the standard deviation over the mean.";
    let section = parts::section("spread", "How much rounds vary", lead, blocks);
    (!section.blocks.is_empty()).then_some(section)
}

/// The position of a moment on the axis of local time. All moments use the UTC offset of the first; otherwise the hour
/// that is repeated in autumn would be drawn over the previous one.
pub(super) fn wall(moment: Moment, first: Moment) -> f64 {
    moment.by_the_clock_of(first).wall_seconds() as f64
}

/// `5,012/s`.
pub(super) fn rate(value: f64) -> String {
    parts::count(value) + "/s"
}

/// Formats a value of a quantity with its unit.
fn show(of: Quantity, value: f64) -> String {
    match of {
        Quantity::Rate => rate(value),
        Quantity::P99Us => parts::time(value),
    }
}

/// The range of 95 % of the rounds, in words.
fn range(figures: &SeriesFigures, show: impl Fn(f64) -> String) -> String {
    format!("95 % of {} rounds: {} to {}", parts::count(figures.rounds as f64), show(figures.low), show(figures.high))
}

fn headlines(found: &Predictability) -> Vec<Headline> {
    let mut figures = Vec::new();
    // The name is the path in the JSON report.
    let headline = |name: &str, label: &str, value: String, note: String, exact: f64| Headline {
        name: format!("predictability.{name}"),
        label: label.into(),
        value,
        interval: String::new(),
        note,
        exact,
    };
    // The quantity that the verdict uses comes first.
    let (of, main) = match found.judged_by {
        Quantity::Rate => ("rate", &found.rate),
        Quantity::P99Us => ("p99_us", &found.p99_us),
    };
    if let Some(figure) = main {
        let quantity = found.judged_by;
        let label = format!("median {}", quantity.name());
        let value = show(quantity, figure.median);
        let median = headline(&format!("{of}.median"), &label, value, String::new(), figure.median);
        figures.push(Headline { interval: range(figure, |value| show(quantity, value)), ..median });
        let (name, hour) = match quantity {
            Quantity::Rate => ("least_hour", figure.least_hour),
            Quantity::P99Us => ("greatest_hour", figure.greatest_hour),
        };
        if let Some(hour) = hour {
            let note = format!("{} from {}", show(quantity, hour.value), hour.begin.shown(found.resolution));
            let value = format!("{:.0} %", hour.of_median * 100.0);
            let name = format!("{of}.{name}.of_median");
            figures.push(headline(&name, "worst hour, of the median", value, note, hour.of_median));
        }
        if let Some(variation) = figure.variation {
            let value = format!("{:.1} %", variation * 100.0);
            let name = format!("{of}.variation");
            figures.push(headline(&name, "varies by", value, "deviation over mean".into(), variation));
        }
    }
    let least = found.objectives.iter().enumerate().filter_map(|(at, result)| Some((at, result, result.share_kept?)));
    if let Some((at, result, kept)) = least.min_by(|a, b| a.2.total_cmp(&b.2)) {
        let used = result.budget_used.map_or_else(String::new, |used| format!(", budget used {:.0} %", used * 100.0));
        let note = format!("{} required{used}", share(result.share_asked));
        let label = format!("{} met for", result.objective);
        figures.push(headline(&format!("objectives.{at}.share_kept"), &label, share(kept), note, kept));
    } else if let (Quantity::P99Us, Some(figure)) = (found.judged_by, &found.rate) {
        let median = headline("rate.median", "median throughput", rate(figure.median), String::new(), figure.median);
        figures.push(Headline { interval: range(figure, rate), ..median });
    } else if let Some(p99) = &found.p99_us {
        let median = headline("p99_us.median", "median p99", parts::time(p99.median), String::new(), p99.median);
        figures.push(Headline { interval: range(p99, parts::time), ..median });
    }
    if let Some(cut) = &found.cut {
        let limit = cut.limit_seconds.map_or_else(String::new, |limit| format!("by the time limit of {limit:.0} s"));
        let value = format!("{} of {}", cut.rounds, cut.of);
        figures.push(headline("cut.rounds", "rounds cut short", value, limit, cut.rounds as f64));
    }
    figures.truncate(FIGURES_MAX);
    figures
}

/// The series of rounds over time; with many rounds, several share a point.
pub(super) fn thinned<T>(
    name: &str,
    rounds: &[T],
    begin: impl Fn(&T) -> f64,
    value: &dyn Fn(&T) -> Option<f64>,
    merge: Merge,
) -> Series {
    let shared = || rounds.chunks(rounds.len().div_ceil(POINTS_MAX).max(1));
    let one = |some: &[T]| merge.of(&some.iter().filter_map(value).collect::<Vec<f64>>());
    Series {
        name: name.into(),
        shape: Shape::Line,
        x: shared().map(|some| begin(&some[0])).collect(),
        y: shared().map(one).collect(),
        merge,
        ..Series::default()
    }
}

/// The timeline of all rounds; `None` if no round has a figure.
fn timeline(result: &SoakResult) -> Option<Section> {
    let (rounds, found) = (&result.rounds, &result.found);
    let first = rounds.first()?.begin;
    let changed = rounds.iter().any(|round| round.begin.by_the_clock_of(first) != round.begin);
    let begun = if changed { "begun, by the clock before it was changed" } else { "begun" };
    let axis = || Axis { label: begun.into(), unit: Unit::Moment, ..Axis::default() };
    let each = rounds.len().div_ceil(POINTS_MAX);
    let series = |name: &str, value: &dyn Fn(&Round) -> Option<f64>, merge| {
        thinned(name, rounds, |round| wall(round.begin, first), value, merge)
    };
    let panel = |label: &str, unit, range, all: Vec<Series>| {
        let series: Vec<Series> = all.into_iter().filter(|series| series.y.iter().any(Option::is_some)).collect();
        let y = Axis { label: label.into(), unit, range, ..Axis::default() };
        (!series.is_empty()).then(|| Lines { x: axis(), y, series, ..Lines::default() })
    };
    let latencies: [(&str, Of<Round>, Merge); 3] = [
        ("p50", |round| round.p50_us, Merge::Median),
        ("p99", |round| round.p99_us, Merge::Greatest),
        ("max", |round| round.max_us, Merge::Greatest),
    ];
    let shares: [(&str, Of<RoundHost>); 4] = [
        ("disk busy", |host| host.device_busy),
        ("CPU in use", |host| Some(host.cpu_busy)),
        ("CPU stolen", |host| Some(host.stolen)),
        ("I/O pressure", |host| host.io_pressure),
    ];
    let of_host =
        |(name, value): (&str, Of<RoundHost>)| series(name, &|round| value(round.host.as_ref()?), Merge::Median);
    let greatest = rounds.iter().filter_map(Round::counted_rate).fold(0.0, f64::max);
    let greatest = if greatest > 0.0 { greatest } else { 1.0 };
    let mut throughput = vec![series("throughput", &Round::counted_rate, Merge::Median)];
    if each > 1 {
        throughput.push(series("minimum", &Round::counted_rate, Merge::Least));
    }
    let latency = latencies.map(|(name, value, merge)| series(name, &value, merge)).into();
    let mut panels: Vec<Lines> = [
        panel("throughput", Unit::PerSecond, Some((0.0, greatest)), throughput),
        panel("response time", Unit::Microseconds, None, latency),
        panel("of the time", Unit::Share, Some((0.0, 1.0)), shares.map(of_host).into()),
        panel("I/Os in the queue", Unit::Number, None, vec![of_host(("disk queue", |host| host.queue))]),
        panel("I/O of others", Unit::MbPerSecond, None, vec![of_host(("others", |host| host.others_mb_per_s))]),
    ]
    .into_iter()
    .flatten()
    .collect();
    for lines in &mut panels {
        lines.y.log = lines.y.unit == Unit::Microseconds;
    }
    if panels.is_empty() {
        return None;
    }
    mark(&mut panels, found, first);
    let shown: Vec<&str> = panels.iter().map(|lines| lines.y.label.as_str()).collect();
    let shown = parts::capital(&shown.join(", "));
    let description = format!("{shown} of {} rounds. {}", rounds.len(), found.verdict);
    let chart = parts::chart("timeline-chart", "Rounds over time", description, Plot::Stack { panels });
    let what = if each > 1 {
        format!("{each} rounds share a point: their median, minimum throughput, maximum p99 and max")
    } else {
        "Every round".into()
    };
    let lead = format!("{what}; changes, slowdowns and missed objectives are marked.");
    Some(parts::section("timeline", "Timeline", &lead, vec![Block::Chart(Box::new(chart))]))
}

/// The longest breaches, at most `MARKS_MAX`.
fn longest(breaches: &[Breach]) -> Vec<&Breach> {
    let mut longest: Vec<&Breach> = breaches.iter().collect();
    longest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    longest.truncate(MARKS_MAX);
    longest
}

/// Marks changes and slowdowns, and the longest breaches in the panel of latencies.
fn mark(panels: &mut [Lines], found: &Predictability, first: Moment) {
    let wall = |moment| wall(moment, first);
    for lines in panels {
        let upright = |at, to, label: String, tone| Mark { at, to, upright: true, label, tone };
        match lines.y.unit {
            Unit::PerSecond => {
                lines.marks.extend(found.episodes.iter().map(|slow| {
                    let end = wall(slow.end.unwrap_or(slow.last_slow));
                    upright(wall(slow.begin), Some(end), "slowdown".into(), Status::Bad)
                }));
            }
            Unit::Microseconds => {
                let breaches = found.objectives.iter().flat_map(|result| {
                    let label = format!("{} missed", result.objective);
                    longest(&result.breaches).into_iter().map(move |breach| (breach, label.clone()))
                });
                lines.marks.extend(
                    breaches.map(|(one, label)| upright(wall(one.begin), Some(wall(one.end)), label, Status::Bad)),
                );
            }
            _ => continue,
        }
        let unit_of = |of| if of == Quantity::Rate { Unit::PerSecond } else { Unit::Microseconds };
        let here = found.changes.iter().filter(|change| unit_of(change.of) == lines.y.unit);
        lines.marks.extend(here.map(|change| {
            let label = format!("{} {:+.1} %", change.of.name(), (change.factor - 1.0) * 100.0);
            upright(wall(change.at), None, label, Status::Warning)
        }));
    }
}

/// A calendar of days by hours; `None` for a series shorter than two days.
fn calendar(rounds: &[Round]) -> Option<Section> {
    let (first, last) = (rounds.first()?, rounds.last()?);
    if last.finish().since(first.begin) < 2 * 86_400 {
        return None;
    }
    let field = |id: &str, title: &str, label: &str, unit, value: fn(&Round) -> Option<f64>| {
        // Rows are given from bottom to top, so the days are reversed to have the first at the top.
        let days: Vec<&[Round]> = rounds.chunk_by(|one, other| one.begin.day() == other.begin.day()).rev().collect();
        let of_hour = |day: &[Round], hour: u32| {
            Merge::Median.of(&day
                .iter()
                .filter(|round| round.begin.second_of_day() / 3600 == hour)
                .filter_map(value)
                .collect::<Vec<_>>())
        };
        let values: Vec<Vec<Option<f64>>> =
            days.iter().map(|day| (0..24).map(|hour| of_hour(day, hour)).collect()).collect();
        let known = values.iter().flatten().any(Option::is_some);
        let usual = Merge::Median.of(&values.iter().flatten().flatten().copied().collect::<Vec<_>>());
        let heat = Heat {
            x_label: "hour of the day".into(),
            columns: (0..24).map(|hour| format!("{hour:02}")).collect(),
            y_label: "day".into(),
            downward: true,
            rows: days.iter().map(|day| day[0].begin.date()).collect(),
            values,
            unit,
            label: label.into(),
            log: false,
            range: usual
                .filter(|usual| *usual > 0.0)
                .map(|usual| (usual * (1.0 - CALENDAR_SPAN), usual * (1.0 + CALENDAR_SPAN))),
            written: false,
        };
        let description = format!("{label}: {} days by 24 hours.", days.len());
        let chart = parts::chart(id, title, description, Plot::Heat(heat));
        known.then(|| Block::Chart(Box::new(chart)))
    };
    let blocks: Vec<Block> = [
        field(
            "calendar-throughput",
            "Throughput",
            "median throughput of the hour",
            Unit::PerSecond,
            Round::counted_rate,
        ),
        field("calendar-p99", "p99", "median p99 of the hour", Unit::Microseconds, |round| round.p99_us),
    ]
    .into_iter()
    .flatten()
    .collect();
    let lead = "Each cell is an hour: what recurs daily forms columns, what happened once stands alone.";
    let calendar = parts::in_text(parts::section("calendar", "Calendar", lead, blocks));
    Some(with_days(calendar, rounds))
}

/// Adds a table with the figures of each day.
fn with_days(mut calendar: Section, rounds: &[Round]) -> Section {
    let row = |day: &[Round]| {
        let rates: Vec<f64> = day.iter().filter_map(Round::counted_rate).collect();
        let p99s: Vec<f64> = day.iter().filter_map(|round| round.p99_us).collect();
        let broken = day.iter().filter(|round| matches!(round.end, RoundEnd::Broken(_))).count();
        vec![
            day[0].begin.date(),
            day.len().to_string(),
            broken.to_string(),
            parts::known(Merge::Median.of(&rates), rate),
            parts::known(Merge::Least.of(&rates), rate),
            parts::known(Merge::Greatest.of(&p99s), parts::time),
        ]
    };
    let rows = rounds.chunk_by(|one, other| one.begin.day() == other.begin.day()).map(row).collect();
    let columns = ["day", "#rounds", "#broken", "#median throughput", "#minimum", "#maximum p99"];
    calendar.blocks.push(Block::Table(Table { folded: true, ..parts::rows("Each day", &columns, rows) }));
    calendar
}

fn daily(pattern: &DailyPattern) -> Section {
    let known = pattern.hours.iter().enumerate().filter_map(|(hour, value)| Some((hour as f64, (*value)?)));
    let (x, y): (Vec<f64>, Vec<Option<f64>>) = known.map(|(hour, value)| (hour, Some(value))).unzip();
    let lines = Lines {
        x: Axis { label: "hour of the day".into(), range: Some((0.0, 23.0)), ..Axis::default() },
        y: Axis { label: "of the day's level".into(), unit: Unit::Share, ..Axis::default() },
        series: vec![Series { name: "throughput".into(), x, y, ..Series::default() }],
        ..Lines::default()
    };
    let sentence = daily_sentence(pattern);
    let chart = parts::chart("daily-chart", "Throughput by the hour of the day", sentence.clone(), Plot::Lines(lines));
    let blocks = vec![Block::Chart(Box::new(chart)), Block::Text(sentence)];
    parts::section("daily", "Daily pattern", "", blocks)
}

/// Describes a daily pattern in a sentence.
fn daily_sentence(pattern: &DailyPattern) -> String {
    let percent = |factor: f64| format!("{:+.1} %", (factor - 1.0) * 100.0);
    format!(
        "{} follows the hour of the day: {} at about {:02}:00, {} at about {:02}:00.",
        parts::capital(pattern.of.name()),
        percent(pattern.peak_factor),
        pattern.peak_hour,
        percent(pattern.trough_factor),
        pattern.trough_hour
    )
}

/// `+1.5 %`.
fn change_of(factor: f64) -> String {
    format!("{:+.1} %", (factor - 1.0) * 100.0)
}

/// Slowdowns, changes of level, trends and single rounds that stand out, each with its date and size.
fn what_changed(found: &Predictability) -> Option<Section> {
    let to = found.resolution;
    let too_often = found.changed_too_often.iter().map(|of| too_often(*of));
    let episodes = found.episodes.iter().take(LIST_MAX).map(|slow| episode(slow, to));
    let sentence = |text: String| Block::Text(parts::capital(&text) + ".");
    let mut blocks: Vec<Block> = too_often.chain(episodes).map(sentence).collect();
    if !found.changes.is_empty() {
        let row = |change: &ChangePoint| {
            let interval = change.interval.map_or_else(String::new, |interval| {
                format!("{} to {}", change_of(interval.low), change_of(interval.high))
            });
            let until = change.until.map_or_else(String::new, |until| format!(" to {}, in steps", until.shown(to)));
            vec![
                format!("{}{until}, round {}", change.at.shown(to), change.round),
                change.of.name().into(),
                change_of(change.factor),
                interval,
                host(change.host.as_deref()),
            ]
        };
        let columns = ["when", "what", "#change", "#95 % interval", "host"];
        let rows = found.changes.iter().take(LIST_MAX).map(row).collect();
        blocks.push(Block::Table(parts::rows("Changes of level", &columns, rows)));
    }
    blocks.extend(found.trends.iter().map(|trend| {
        let percent = |factor: f64| format!("{:+.2} %", (factor - 1.0) * 100.0);
        let interval = format!("{} to {}", percent(trend.interval.low), percent(trend.interval.high));
        let (name, daily) = (trend.of.name(), percent(trend.factor_per_day));
        sentence(format!("{name} {daily} per day ({interval}), {} over the series", percent(trend.factor)))
    }));
    // The daily pattern of throughput has a section of its own.
    let other_patterns = found.daily.iter().filter(|daily| daily.of != Quantity::Rate);
    blocks.extend(other_patterns.map(|pattern| Block::Text(daily_sentence(pattern))));
    let left_out = found.episodes.len().saturating_sub(LIST_MAX) + found.changes.len().saturating_sub(LIST_MAX);
    if left_out > 0 {
        blocks.push(sentence(format!("{left_out} more are in the JSON report")));
    }
    blocks.extend(outliers(found).map(sentence));
    let lead = "Each with its date and size, and what the host showed at that time.";
    (!blocks.is_empty()).then(|| parts::section("changes", "What changed", lead, blocks))
}

/// Names the single rounds that differ most from their neighbours.
fn outliers(found: &Predictability) -> Option<String> {
    let mut farthest: Vec<&Outlier> = found.outliers.iter().collect();
    farthest.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    let one = |outlier: &&Outlier| {
        let value = show(outlier.of, outlier.value);
        format!("{} {value} on {}", outlier.of.name(), outlier.at.shown(found.resolution))
    };
    let named: Vec<String> = farthest.iter().take(3).map(one).collect();
    let (count, differs) = (farthest.len(), if farthest.len() == 1 { "round differs" } else { "rounds differ" });
    (count > 0).then(|| format!("{count} single {differs} from their neighbours: {}", named.join(", ")))
}

/// Replaces the list of changes of a quantity that changed too often.
fn too_often(of: Quantity) -> String {
    format!("{}: too many changes to tell apart, so none is listed", of.name())
}

/// Describes a slowdown in a sentence.
fn episode(slow: &Episode, to: Resolution) -> String {
    let end = slow.end.map_or("not over when the series ended".into(), |end| format!("over from {} on", end.shown(to)));
    format!(
        "slowdown: from {} on below {}, usually {}; worst {} ({:.0} % lower) on {}; {end}; {} rounds; {}",
        slow.begin.shown(to),
        rate(slow.edge),
        rate(slow.usual),
        rate(slow.worst_rate),
        slow.lost() * 100.0,
        slow.worst.shown(to),
        slow.rounds,
        host(slow.host.as_deref())
    )
}

/// Describes what changed on the host.
fn host(shifts: Option<&[HostShift]>) -> String {
    match shifts {
        None => "nothing is known of the host".into(),
        Some([]) => "no counter of the host changed with it".into(),
        Some(shifts) => shifts.iter().map(HostShift::sentence).collect::<Vec<_>>().join(", "),
    }
}

/// Formats a fraction in percent; 100 % is shown only if it is exact.
pub(super) fn share(value: f64) -> String {
    let shown = format!("{:.2}", value * 100.0);
    if shown == "100.00" && value < 1.0 { "99.99 %".into() } else { format!("{shown} %") }
}

fn objectives(found: &Predictability) -> Option<Section> {
    let row = |result: &ObjectiveResult| {
        let met = match result.met {
            Some(true) => "met",
            Some(false) => "missed",
            None => "not known",
        };
        let breach = result.longest_breach.map_or_else(
            || "none".into(),
            |breach| format!("{} to {}", breach.begin.shown(found.resolution), breach.end.shown(found.resolution)),
        );
        vec![
            result.objective.to_string(),
            met.into(),
            result.share_kept.map_or_else(|| "not known".into(), share),
            share(result.share_asked),
            result.budget_used.map_or_else(|| "-".into(), |used| format!("{:.0} %", used * 100.0)),
            format!("{} of {}", result.missed, result.kept + result.missed),
            result.unknown.to_string(),
            breach,
        ]
    };
    let columns = [
        "objective",
        "",
        "#met for",
        "#required",
        "#budget used",
        "#rounds that missed it",
        "*#unknown",
        "longest breach",
    ];
    let table = parts::rows("Objectives and their error budgets", &columns, found.objectives.iter().map(row).collect());
    let lead = "The share of time in which each was met; a broken round has missed it.";
    (!table.rows.is_empty()).then(|| parts::section("objectives", "Objectives", lead, vec![Block::Table(table)]))
}

fn rounds(result: &SoakResult) -> Section {
    let or_none = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".into(), show);
    let row = |round: &Round| {
        vec![
            round.number.to_string(),
            round.begin.shown(result.found.resolution),
            format!("{:.0}", round.seconds),
            parts::count(round.done.round()),
            or_none(round.rate, rate),
            or_none(round.p50_us, parts::time),
            or_none(round.p99_us, parts::time),
            or_none(round.max_us, parts::time),
            end_name(&round.end).into(),
        ]
    };
    // Text has the rounds in its timeline.
    let columns = ["*#round", "*begun", "*#seconds", "*#done", "*#throughput", "*#p50", "*#p99", "*#max", "*end"];
    let all = &result.rounds;
    let last = &all[all.len().saturating_sub(ROWS_MAX)..];
    let caption = if last.len() < all.len() {
        let (shown, all) = (parts::count(last.len() as f64), parts::count(all.len() as f64));
        format!("The last {shown} of {all} rounds; rigel report --format csv has all")
    } else {
        "Every round".into()
    };
    let table = Table { folded: true, ..parts::rows(&caption, &columns, last.iter().map(row).collect()) };
    let mut blocks: Vec<Block> = incomplete(&result.found).into_iter().map(Block::Text).collect();
    blocks.push(Block::Table(table));
    let lead = "Rounds that are not complete, and the figures of each.";
    parts::section("rounds", "Rounds", lead, blocks)
}

/// Rounds that are not complete, a sentence for each kind.
fn incomplete(found: &Predictability) -> Vec<String> {
    let mut lines: Vec<String> = found.cut.iter().map(|rounds| cut(rounds, found.resolution) + ".").collect();
    let counts = &found.rounds;
    let mut count = |count: usize, one: &str, many: &str| {
        if count > 0 {
            lines.push(format!("{count} {}.", if count == 1 { one } else { many }));
        }
    };
    count(counts.broken, "round broke and has no figures", "rounds broke and have no figures");
    count(counts.stopped, "round was stopped and is left out", "rounds were stopped and are left out");
    count(counts.missing, "round did not take place", "rounds did not take place");
    count(counts.ahead, "planned round is missing", "planned rounds are missing");
    if counts.failed_operations > 0 {
        lines.push(format!("{} operations failed.", counts.failed_operations));
    }
    lines
}

/// Describes the cut rounds in a sentence.
fn cut(cut: &CutRounds, to: Resolution) -> String {
    let (was, s) = if cut.rounds == 1 { ("was", "") } else { ("were", "s") };
    let limit = cut.limit_seconds.map_or_else(String::new, |seconds| format!(" of {seconds:.0} s"));
    let work = cut.work.map_or_else(String::new, |work| format!(", before their work of {work:.0} was done"));
    let when = format!("between {} and {}", cut.first.shown(to), cut.last.shown(to));
    let pieces = match cut.in_pieces {
        0 => String::new(),
        1 => "; 1 round is in two lines, which are merged".into(),
        count => format!("; {count} rounds are in two lines each, which are merged"),
    };
    let inferred = if cut.inferred { " (inferred: most rounds did the same work)" } else { "" };
    format!(
        "{} of {} round{s} {was} cut short by the time limit{limit}{work}, {when}{inferred}{pieces}",
        cut.rounds, cut.of
    )
}

/// The rounds as CSV: a header line, then one line per round. Columns are only added at the end, never renamed or
/// removed.
#[must_use]
pub fn csv(result: &SoakResult) -> String {
    let mut table = CsvTable::new(
        "round,begin,seconds,done,failed,asked,rate,mean_us,p50_us,p99_us,max_us,end,kept,device,device_busy,\
         queue,cpu_busy,stolen,io_pressure,others_mb_per_s",
    );
    for round in &result.rounds {
        let kept: Vec<&str> = round.kept.iter().map(|kept| if kept.kept { "1" } else { "0" }).collect();
        let host = round.host.as_ref();
        table.value(round.number).value(round.begin).figure(Some(round.seconds));
        table.value(format_args!("{:.0}", round.done)).value(round.failed).maybe(round.asked);
        table.figure(round.rate).figure(round.mean_us).figure(round.p50_us).figure(round.p99_us).figure(round.max_us);
        table.value(end_name(&round.end)).value(kept.join(" "));
        table.text(host.and_then(|host| host.device.as_deref()).unwrap_or_default());
        table.figure(host.and_then(|host| host.device_busy)).figure(host.and_then(|host| host.queue));
        table.figure(host.map(|host| host.cpu_busy)).figure(host.map(|host| host.stolen));
        table.figure(host.and_then(|host| host.io_pressure)).figure(host.and_then(|host| host.others_mb_per_s));
        table.end();
    }
    table.into_text()
}

fn end_name(end: &RoundEnd) -> &'static str {
    match end {
        RoundEnd::Whole => "whole",
        RoundEnd::Cut => "cut",
        RoundEnd::Stopped => "stopped",
        RoundEnd::Broken(_) => "broken",
    }
}

/// The JSON report of a soak. Fields are only added, never renamed or removed.
#[derive(Serialize)]
struct SoakReport<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    conclusion: Conclusion,
    predictability: &'a Predictability,
    rounds: &'a [Round],
    findings: Vec<&'a Finding>,
}

/// The report as one JSON document.
#[must_use]
pub fn json(header: &Header, result: &SoakResult) -> String {
    let report = SoakReport {
        head: Head::of(header),
        conclusion: result.conclusion(header),
        predictability: &result.found,
        rounds: &result.rounds,
        findings: header.findings.iter().chain(&result.findings).collect(),
    };
    data::document(&report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{PredictabilityTerms, example_rounds, predictability};
    use crate::model::{Host, ImportRequest, Invocation, Layout, Target, TargetFacts};
    use crate::record::journal::{EngineChoice, FORMAT};
    use crate::report::html::render;

    fn header() -> Header {
        Header {
            format: FORMAT,
            version: "0.1.0".into(),
            started: "2026-01-02T03:04:05+00:00".into(),
            command: vec!["soak".into()],
            target: Target::Paths { members: Vec::new(), layout: Layout::Concat },
            engine: EngineChoice { name: "sim".into(), buffered: false },
            engine_about: String::new(),
            points: Vec::new(),
            invocation: Invocation::of(Request::Import(ImportRequest::default())),
            host: Host::default(),
            facts: TargetFacts { name: "disk".into(), ..TargetFacts::default() },
            findings: Vec::new(),
        }
    }

    fn result(rounds: Vec<Round>, of: usize) -> SoakResult {
        result_of(rounds, of, false)
    }

    fn result_of(rounds: Vec<Round>, of: usize, is_open: bool) -> SoakResult {
        let objectives = vec!["p99<2ms".parse().unwrap(), "p99<1ms".parse().unwrap()];
        let terms =
            PredictabilityTerms { objectives, share: 0.4, every_seconds: Some(300.0), planned: Some(20_000), is_open };
        let found = predictability(&rounds[..of], &terms);
        SoakResult { rounds, found, findings: Vec::new() }
    }

    #[test]
    fn sixty_days_are_small_and_keep_the_least() {
        let mut all = example_rounds(17_280);
        all[9_001].rate = Some(17.0);
        let page = document(&header(), &result(all, 600));
        let Some(Block::Chart(chart)) = page.sections[1].blocks.first() else { panic!("{:?}", page.sections[1]) };
        let Plot::Stack { panels } = &chart.plot else { panic!("{chart:?}") };
        let series: Vec<&Series> = panels.iter().flat_map(|panel| &panel.series).collect();
        assert!(series.iter().all(|series| series.y.len() <= POINTS_MAX));
        let least = series.iter().find(|series| series.name == "minimum").unwrap();
        assert!(least.y.contains(&Some(17.0)) && !series[0].y.contains(&Some(17.0)));
        let bytes = render(&page).len();
        assert!(bytes < 2_000_000, "{bytes} bytes");
    }

    #[test]
    fn a_clock_that_is_set_to_winter_time_draws_no_line_backwards() {
        let mut all = example_rounds(48);
        for (at, round) in all.iter_mut().enumerate() {
            let offset = if at < 24 { "+02:00" } else { "+01:00" };
            let zone: Moment = format!("2026-01-02T00:00:00{offset}").parse().unwrap();
            round.begin = round.begin.by_the_clock_of(zone);
        }
        let Some(Block::Chart(chart)) = timeline(&result(all, 48)).unwrap().blocks.pop() else { panic!("no chart") };
        let Plot::Stack { panels } = &chart.plot else { panic!("{chart:?}") };
        let x = &panels[0].series[0].x;
        assert!(x.len() == 48 && x.windows(2).all(|two| (two[1] - two[0] - 300.0).abs() < 1e-9), "{x:?}");
        assert!(panels[0].x.label.contains("before it was changed"), "{}", panels[0].x.label);
    }

    #[test]
    fn large_figures_are_those_of_the_json_report() {
        for is_open in [false, true] {
            large_figures_are_in_the_report(is_open);
        }
    }

    fn large_figures_are_in_the_report(is_open: bool) {
        let result = result_of(example_rounds(60), 60, is_open);
        let report: serde_json::Value = serde_json::from_str(&json(&header(), &result)).unwrap();
        let page = document(&header(), &result);
        let names: Vec<&str> = page.headlines.iter().map(|figure| figure.name.as_str()).collect();
        assert!(names.contains(&"predictability.objectives.1.share_kept"), "{names:?}");
        for figure in &page.headlines {
            let told =
                report.pointer(&format!("/{}", figure.name.replace('.', "/"))).and_then(serde_json::Value::as_f64);
            let told = told.unwrap_or(f64::NAN);
            // The JSON parser rounds the last digit.
            assert!((told - figure.exact).abs() <= 1e-12 * told.abs(), "{}: {told}", figure.name);
        }
        let median = &page.headlines[0];
        let (value, least) = if is_open { ("1.51 ms", "1.50 ms to ") } else { ("12,0", "12,0") };
        let interval = format!("95 % of 60 rounds: {least}");
        assert!(median.value.starts_with(value) && median.interval.starts_with(&interval), "{median:?}");
        let said = incomplete(&result.found);
        assert!(said.contains(&"19940 planned rounds are missing.".to_string()), "{said:?}");
    }

    #[test]
    fn a_soak_without_rounds_has_no_empty_chart() {
        let page = document(&header(), &result(Vec::new(), 0));
        assert!(page.sections.iter().all(|section| section.id != "timeline"));
        assert!(page.sections.iter().flat_map(|section| &section.blocks).all(|block| match block {
            Block::Table(table) => !table.rows.is_empty(),
            _ => true,
        }));
    }
}
