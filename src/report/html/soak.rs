//! The page of a series of rounds: the verdict, the timeline, the calendar, changes, objectives.

use super::page::{Axis, Block, Chart, Headline, Heat, Lines, Mark, Page, Plot, Section, Series, Shape};
use super::page::{Status, Table, Unit};
use super::{setup, words};
use crate::analyse::{Breach, DailyPattern, Predictability, Quantity, Round, RoundHost, SeriesFigures, SoakResult};
use crate::model::{Bytes, Finding, Load, Moment, Request};
use crate::record::journal::Header;
use crate::report::soak::{self, middle};

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

/// The page of a soak.
#[must_use]
pub fn page(header: &Header, result: &SoakResult) -> Page {
    let target = &header.facts.name;
    let begun = header.started.parse::<Moment>().map_or_else(|_| header.started.clone(), Moment::short);
    let mut page = of_series(header, result);
    page.title = format!("{target}: rigel soak, {begun}");
    page.heading = format!("rigel soak of {target}, {begun}");
    page.sections.push(setup::section(header, &workload(header)));
    page
}

/// The workload of a round, in words; empty if the run is not a soak.
fn workload(header: &Header) -> String {
    let Request::Soak(request) = header.request() else { return String::new() };
    let round = match request.work {
        Some(work) => {
            let limit = words::lasting(request.limit);
            format!("rounds of {} operations, {limit} at the most", words::count(work as f64))
        }
        None => "rounds that follow on each other".into(),
    };
    let load = match request.load {
        Load::Closed { depth } => format!("{depth} outstanding"),
        Load::Open { rate, .. } => format!("{} a second at random times", words::count(rate)),
    };
    let size = Bytes(request.length.into());
    let what = match (request.sql, request.mix.writes.get()) {
        (Some(terms), _) => crate::report::sql::work_line(&terms.work),
        (None, 0.0) => format!("reads of {size}, {}", request.pattern),
        (None, 1.0) => format!("writes of {size}, {}", request.pattern),
        (None, writes) => format!("I/O of {size}, {} of it writes, {}", words::percent(writes), request.pattern),
    };
    format!(
        "{what}; {load}; {round}, one every {}, for {}",
        words::lasting(request.every),
        words::lasting(request.lasting)
    )
}

/// The page of a series from any source. The caller adds title, heading and setup.
pub(super) fn of_series(header: &Header, result: &SoakResult) -> Page {
    let found = &result.found;
    let mut sections: Vec<Section> = timeline(result).into_iter().collect();
    sections.extend(calendar(&result.rounds));
    sections.extend(found.daily.iter().find(|daily| daily.of == Quantity::Rate).map(daily));
    sections.extend(what_changed(found));
    sections.extend(objectives(found));
    let findings: Vec<Finding> = header.findings.iter().chain(&result.findings).cloned().collect();
    if !findings.is_empty() {
        let lead = "What a reader must know of this run, with what to do about it.".into();
        let blocks = vec![Block::Findings(findings)];
        sections.push(Section { id: "findings".into(), title: "Findings".into(), lead, blocks });
    }
    sections.push(rounds(result));
    Page { conclusion: result.conclusion(header), figures: headlines(found), sections, ..Page::default() }
}

/// The position of a moment on the axis of local time. All moments use the UTC offset of the first; otherwise the hour
/// that is repeated in autumn would be drawn over the previous one.
pub(super) fn wall(moment: Moment, first: Moment) -> f64 {
    moment.by_the_clock_of(first).wall_seconds() as f64
}

/// `5,012/s`.
fn rate(value: f64) -> String {
    words::count(value) + "/s"
}

/// Formats a value of a quantity with its unit.
fn show(of: Quantity, value: f64) -> String {
    match of {
        Quantity::Rate => rate(value),
        Quantity::P99Us => words::time(value),
    }
}

/// The range of 95 % of the rounds, in words.
fn range(figures: &SeriesFigures, show: impl Fn(f64) -> String) -> String {
    format!("95 % of {} rounds: {} to {}", words::count(figures.rounds as f64), show(figures.low), show(figures.high))
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
        let note = format!("{} asked{used}", soak::share(result.share_asked));
        let label = format!("{} kept for", result.objective);
        figures.push(headline(&format!("objectives.{at}.share_kept"), &label, soak::share(kept), note, kept));
    } else if let (Quantity::P99Us, Some(figure)) = (found.judged_by, &found.rate) {
        let median = headline("rate.median", "median throughput", rate(figure.median), String::new(), figure.median);
        figures.push(Headline { interval: range(figure, rate), ..median });
    } else if let Some(p99) = &found.p99_us {
        let median = headline("p99_us.median", "median p99", words::time(p99.median), String::new(), p99.median);
        figures.push(Headline { interval: range(p99, words::time), ..median });
    }
    if let Some(cut) = &found.cut {
        let limit = cut.limit_seconds.map_or_else(String::new, |limit| format!("by the time limit of {limit:.0} s"));
        let value = format!("{} of {}", cut.rounds, cut.of);
        figures.push(headline("cut.rounds", "rounds cut short", value, limit, cut.rounds as f64));
    }
    figures.truncate(FIGURES_MAX);
    figures
}

/// How the values of rounds that share a point are combined.
#[derive(Clone, Copy)]
pub(super) enum Thin {
    Median,
    Least,
    Greatest,
}

/// The series of rounds over time; with many rounds, several share a point.
pub(super) fn thinned<T>(
    name: &str,
    rounds: &[T],
    begin: impl Fn(&T) -> f64,
    value: &dyn Fn(&T) -> Option<f64>,
    thin: Thin,
) -> Series {
    let shared = || rounds.chunks(rounds.len().div_ceil(POINTS_MAX).max(1));
    let one = |some: &[T]| {
        let values = some.iter().filter_map(value);
        match thin {
            Thin::Median => middle(values),
            Thin::Least => values.reduce(f64::min),
            Thin::Greatest => values.reduce(f64::max),
        }
    };
    Series {
        name: name.into(),
        shape: Shape::Line,
        x: shared().map(|some| begin(&some[0])).collect(),
        y: shared().map(one).collect(),
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
    let series = |name: &str, value: &dyn Fn(&Round) -> Option<f64>, thin| {
        thinned(name, rounds, |round| wall(round.begin, first), value, thin)
    };
    let panel = |label: &str, unit, range, all: Vec<Series>| {
        let series: Vec<Series> = all.into_iter().filter(|series| series.y.iter().any(Option::is_some)).collect();
        let y = Axis { label: label.into(), unit, range, ..Axis::default() };
        (!series.is_empty()).then(|| Lines { x: axis(), y, series, ..Lines::default() })
    };
    let latencies: [(&str, Of<Round>, Thin); 3] = [
        ("p50", |round| round.p50_us, Thin::Median),
        ("p99", |round| round.p99_us, Thin::Greatest),
        ("max", |round| round.max_us, Thin::Greatest),
    ];
    let shares: [(&str, Of<RoundHost>); 4] = [
        ("disk busy", |host| host.device_busy),
        ("CPU in use", |host| Some(host.cpu_busy)),
        ("CPU stolen", |host| Some(host.stolen)),
        ("I/O pressure", |host| host.io_pressure),
    ];
    let of_host =
        |(name, value): (&str, Of<RoundHost>)| series(name, &|round| value(round.host.as_ref()?), Thin::Median);
    let greatest = rounds.iter().filter_map(Round::counted_rate).fold(0.0, f64::max);
    let greatest = if greatest > 0.0 { greatest } else { 1.0 };
    let mut throughput = vec![series("throughput", &Round::counted_rate, Thin::Median)];
    if each > 1 {
        throughput.push(series("least", &Round::counted_rate, Thin::Least));
    }
    let latency = latencies.map(|(name, value, thin)| series(name, &value, thin)).into();
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
    let shown = words::capital(&shown.join(", "));
    let description = format!("{shown} of {} rounds. {}", rounds.len(), found.verdict);
    let chart = Chart {
        id: "timeline-chart".into(),
        title: "Rounds over time".into(),
        description,
        plot: Plot::Stack { panels },
    };
    let what = if each > 1 {
        format!("{each} rounds share a point: their median, their least throughput, their greatest p99 and max")
    } else {
        "Every round in its place".into()
    };
    let lead = format!("{what}; changes and slowdowns are marked, and times in which an objective was missed.");
    let blocks = vec![Block::Chart(Box::new(chart))];
    Some(Section { id: "timeline".into(), title: "Timeline".into(), lead, blocks })
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
            middle(day.iter().filter(|round| round.begin.second_of_day() / 3600 == hour).filter_map(value))
        };
        let values: Vec<Vec<Option<f64>>> =
            days.iter().map(|day| (0..24).map(|hour| of_hour(day, hour)).collect()).collect();
        let known = values.iter().flatten().any(Option::is_some);
        let usual = middle(values.iter().flatten().flatten().copied());
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
        let chart = Chart { id: id.into(), title: title.into(), description, plot: Plot::Heat(heat) };
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
    let lead = "Each cell is an hour: what recurs daily stands in columns, what happened once stands alone.".into();
    Some(Section { id: "calendar".into(), title: "Calendar".into(), lead, blocks })
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
    let description = soak::daily(pattern);
    let chart = Chart {
        id: "daily-chart".into(),
        title: "Throughput by the hour of the day".into(),
        description: description.clone() + ".",
        plot: Plot::Lines(lines),
    };
    let blocks = vec![Block::Chart(Box::new(chart))];
    Section { id: "daily".into(), title: "Daily pattern".into(), lead: words::capital(&description) + ".", blocks }
}

fn what_changed(found: &Predictability) -> Option<Section> {
    let too_often = found.changed_too_often.iter().map(|of| soak::too_often(*of));
    let episode = |slow| soak::episode(slow, found.resolution);
    let sentences = too_often.chain(found.episodes.iter().map(episode));
    let mut blocks: Vec<Block> = sentences.map(|sentence| Block::Text(words::capital(&sentence))).collect();
    let percent = |factor: f64| format!("{:+.1} %", (factor - 1.0) * 100.0);
    if !found.changes.is_empty() {
        let row = |change: &crate::analyse::ChangePoint| {
            let interval = change.interval.map_or_else(String::new, |interval| {
                format!("{} to {}", percent(interval.low), percent(interval.high))
            });
            let until = change.until.map_or_else(String::new, |until| format!(" to {}", until.shown(found.resolution)));
            vec![
                change.at.shown(found.resolution) + &until,
                change.of.name().into(),
                percent(change.factor),
                interval,
                soak::host(change.host.as_deref()),
            ]
        };
        let columns = ["when", "what", "#change", "#95 % interval", "host"];
        blocks.push(Block::Table(words::rows("Changes of level", &columns, found.changes.iter().map(row).collect())));
    }
    blocks.extend(found.trends.iter().map(|trend| {
        let interval = format!("{} to {}", percent(trend.interval.low), percent(trend.interval.high));
        let text = format!("{} {} a day ({interval})", trend.of.name(), percent(trend.factor_per_day));
        Block::Text(words::capital(&text) + &format!(", {} over the series.", percent(trend.factor)))
    }));
    let lead = "Each with its date and size, and what the host showed at that time.".into();
    (!blocks.is_empty()).then(|| Section { id: "changes".into(), title: "What changed".into(), lead, blocks })
}

fn objectives(found: &Predictability) -> Option<Section> {
    let row = |result: &crate::analyse::ObjectiveResult| {
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
            result.share_kept.map_or_else(|| "not known".into(), soak::share),
            soak::share(result.share_asked),
            result.budget_used.map_or_else(|| "-".into(), |used| format!("{:.0} %", used * 100.0)),
            format!("{} of {}", result.missed, result.kept + result.missed),
            breach,
        ]
    };
    let columns = ["objective", "", "#kept for", "#asked", "#budget used", "#rounds that missed it", "longest breach"];
    let table = words::rows("Objectives and their error budgets", &columns, found.objectives.iter().map(row).collect());
    (!table.rows.is_empty()).then(|| Section {
        id: "objectives".into(),
        title: "Objectives".into(),
        lead: "The share of time for which each was kept; a round that broke has missed it.".into(),
        blocks: vec![Block::Table(table)],
    })
}

fn rounds(result: &SoakResult) -> Section {
    let or_none = |value: Option<f64>, show: fn(f64) -> String| value.map_or_else(|| "-".into(), show);
    let row = |round: &Round| {
        vec![
            round.number.to_string(),
            round.begin.shown(result.found.resolution),
            format!("{:.0}", round.seconds),
            words::count(round.done.round()),
            or_none(round.rate, rate),
            or_none(round.p50_us, words::time),
            or_none(round.p99_us, words::time),
            or_none(round.max_us, words::time),
            soak::end_name(&round.end).into(),
        ]
    };
    let columns = ["#round", "begun", "#seconds", "#done", "#throughput", "#p50", "#p99", "#max", "end"];
    let all = &result.rounds;
    let last = &all[all.len().saturating_sub(ROWS_MAX)..];
    let caption = if last.len() < all.len() {
        let (shown, all) = (words::count(last.len() as f64), words::count(all.len() as f64));
        format!("The last {shown} of {all} rounds; rigel report --format csv has all")
    } else {
        "Every round".into()
    };
    let table = Table { folded: true, ..words::rows(&caption, &columns, last.iter().map(row).collect()) };
    let said = soak::rounds(&result.found);
    let lead = said.lines().skip(2).map(str::trim).collect::<Vec<_>>().join(" ");
    let blocks = if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    Section { id: "rounds".into(), title: "Rounds".into(), lead: words::capital(&lead), blocks }
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
        let page = page(&header(), &result(all, 600));
        let Some(Block::Chart(chart)) = page.sections[0].blocks.first() else { panic!("{:?}", page.sections[0]) };
        let Plot::Stack { panels } = &chart.plot else { panic!("{chart:?}") };
        let series: Vec<&Series> = panels.iter().flat_map(|panel| &panel.series).collect();
        assert!(series.iter().all(|series| series.y.len() <= POINTS_MAX));
        let least = series.iter().find(|series| series.name == "least").unwrap();
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
        let report: serde_json::Value = serde_json::from_str(&soak::json(&header(), &result)).unwrap();
        let page = page(&header(), &result);
        let names: Vec<&str> = page.figures.iter().map(|figure| figure.name.as_str()).collect();
        assert!(names.contains(&"predictability.objectives.1.share_kept"), "{names:?}");
        for figure in &page.figures {
            let told =
                report.pointer(&format!("/{}", figure.name.replace('.', "/"))).and_then(serde_json::Value::as_f64);
            let told = told.unwrap_or(f64::NAN);
            // The JSON parser rounds the last digit.
            assert!((told - figure.exact).abs() <= 1e-12 * told.abs(), "{}: {told}", figure.name);
        }
        let median = &page.figures[0];
        let (value, least) = if is_open { ("1.51 ms", "1.50 ms to ") } else { ("12,0", "12,0") };
        let interval = format!("95 % of 60 rounds: {least}");
        assert!(median.value.starts_with(value) && median.interval.starts_with(&interval), "{median:?}");
        let said = soak::rounds(&result.found);
        assert!(said.contains("19940 planned rounds are not there\n"), "{said}");
    }

    #[test]
    fn a_soak_without_rounds_has_no_empty_chart() {
        let page = page(&header(), &result(Vec::new(), 0));
        assert!(page.sections.iter().all(|section| section.id != "timeline"));
        assert!(page.sections.iter().flat_map(|section| &section.blocks).all(|block| match block {
            Block::Table(table) => !table.rows.is_empty(),
            _ => true,
        }));
    }
}
