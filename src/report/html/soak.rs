//! The page of a series of rounds: the verdict, the timeline, the calendar, what changed, objectives.

use super::imported::local;
use super::page::{
    Answer, Axis, Block, Chart, Column, Headline, Heat, Lines, Mark, Page, Plot, Section, Series, Shape,
};
use super::page::{Table, Tone, Unit};
use super::{setup, words};
use crate::analyse::{DailyPattern, Predictability, Quantity, Round, RoundHost, Word};
use crate::model::{Bytes, Finding, Load, Moment};
use crate::plan::Search;
use crate::record::journal::Header;
use crate::report::soak::{self, SoakResult, middle};

/// A figure of a round, or of its host.
type Of<T> = fn(&T) -> Option<f64>;

/// Share of the median, on either side, that a calendar's colours span at the least: less is no pattern to look at.
const CALENDAR_SPAN: f64 = 0.15;

/// Figures at the top, at most.
const FIGURES_MAX: usize = 4;

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

/// What a round does, in words; empty where the run is no soak.
fn workload(header: &Header) -> String {
    let Some(Search::Soak(request)) = Search::of(&header.plan) else { return String::new() };
    let round = match request.work {
        Some(work) => {
            format!("rounds of {} operations, {} at the most", words::count(work as f64), request.limit.exact())
        }
        None => "rounds that follow on each other".into(),
    };
    let load = match request.load {
        Load::Closed { depth } => format!("{depth} outstanding"),
        Load::Open { rate, .. } => format!("{} a second at random times", words::count(rate)),
    };
    let what = match request.sql {
        Some(terms) => crate::report::sql::work_line(&terms.work),
        None => format!(
            "I/O of {}, {} of it writes, {}",
            Bytes(request.length.into()),
            words::percent(request.mix.writes.get()),
            request.pattern
        ),
    };
    format!("{what}; {load}; {round}, one every {}, for {}", request.every.exact(), request.lasting.exact())
}

/// What a series says, whoever made it; title, heading and what was run are the caller's.
pub(super) fn of_series(header: &Header, result: &SoakResult) -> Page {
    let found = &result.found;
    let mut sections = vec![timeline(result)];
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
    Page {
        answer: Answer { tone: tone(found), sentence: found.verdict.clone() },
        figures: headlines(found),
        sections,
        ..Page::default()
    }
}

fn tone(found: &Predictability) -> Tone {
    if found.objectives.iter().any(|result| result.met == Some(false)) {
        return Tone::Bad;
    }
    match found.word {
        Word::Steady | Word::Daily => Tone::Good,
        Word::TooFew => Tone::Plain,
        Word::Drifting | Word::Stepped | Word::Erratic => Tone::Doubt,
        Word::Slowed => Tone::Bad,
    }
}

fn headlines(found: &Predictability) -> Vec<Headline> {
    let mut figures = Vec::new();
    let headline = |name: &str, label: &str, value: String, note: String, exact: f64| Headline {
        name: name.into(),
        label: label.into(),
        value,
        interval: String::new(),
        note,
        exact,
    };
    if let Some(rate) = &found.rate {
        let range = format!("95 % of {} rounds: {} to {}", rate.rounds, soak::rate(rate.low), soak::rate(rate.high));
        figures.push(headline("rate.median", "median throughput", soak::rate(rate.median), range, rate.median));
        if let Some(hour) = rate.least_hour {
            let note = format!("{} from {}", soak::rate(hour.value), hour.begin.short());
            let value = format!("{:.0} %", hour.of_median * 100.0);
            figures.push(headline(
                "rate.least_hour.of_median",
                "worst hour, of the median",
                value,
                note,
                hour.of_median,
            ));
        }
        if let Some(variation) = rate.variation {
            let value = format!("{:.1} %", variation * 100.0);
            figures.push(headline("rate.variation", "varies by", value, "deviation over mean".into(), variation));
        }
    }
    let least = found.objectives.iter().filter_map(|result| Some((result, result.share_kept?)));
    if let Some((result, kept)) = least.min_by(|a, b| a.1.total_cmp(&b.1)) {
        let used = result.budget_used.map_or_else(String::new, |used| format!(", budget used {:.0} %", used * 100.0));
        let note = format!("{} asked{used}", soak::share(result.share_asked));
        let label = format!("{} kept for", result.objective);
        figures.push(headline("objectives.share_kept", &label, soak::share(kept), note, kept));
    } else if let Some(p99) = &found.p99_us {
        let range = format!("95 % of rounds: {} to {}", soak::time(p99.low), soak::time(p99.high));
        figures.push(headline("p99_us.median", "median p99", soak::time(p99.median), range, p99.median));
    }
    if let Some(cut) = &found.cut {
        let limit = cut.limit_seconds.map_or_else(String::new, |limit| format!("by the time limit of {limit:.0} s"));
        let value = format!("{} of {}", cut.rounds, cut.of);
        figures.push(headline("cut.rounds", "rounds cut short", value, limit, cut.rounds as f64));
    }
    figures.truncate(FIGURES_MAX);
    figures
}

fn timeline(result: &SoakResult) -> Section {
    let (rounds, found) = (&result.rounds, &result.found);
    let axis = || Axis { label: "begun".into(), unit: Unit::Moment, ..Axis::default() };
    let series = |name: &str, value: &dyn Fn(&Round) -> Option<f64>, shape| Series {
        name: name.into(),
        shape,
        x: rounds.iter().map(|round| local(round.begin)).collect(),
        y: rounds.iter().map(value).collect(),
        ..Series::default()
    };
    let panel = |label: &str, unit, range, all: Vec<Series>| {
        let series: Vec<Series> = all.into_iter().filter(|series| series.y.iter().any(Option::is_some)).collect();
        let y = Axis { label: label.into(), unit, range, ..Axis::default() };
        (!series.is_empty()).then(|| Lines { x: axis(), y, series, ..Lines::default() })
    };
    let rate = |round: &Round| round.rate.filter(|_| round.counts());
    let latencies: [(&str, Of<Round>); 3] =
        [("p50", |round| round.p50_us), ("p99", |round| round.p99_us), ("max", |round| round.max_us)];
    let shares: [(&str, Of<RoundHost>); 4] = [
        ("disk busy", |host| host.device_busy),
        ("CPU in use", |host| Some(host.cpu_busy)),
        ("CPU stolen", |host| Some(host.stolen)),
        ("I/O pressure", |host| host.io_pressure),
    ];
    let of_host =
        |(name, value): (&str, Of<RoundHost>)| series(name, &|round| value(round.host.as_ref()?), Shape::Line);
    let greatest = rounds.iter().filter_map(rate).fold(0.0, f64::max);
    let latency = latencies.map(|(name, value)| series(name, &value, Shape::Line)).into();
    let mut panels: Vec<Lines> = [
        panel("throughput", Unit::PerSecond, Some((0.0, greatest)), vec![series("throughput", &rate, Shape::Line)]),
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
    mark(&mut panels, found);
    let description =
        format!("Throughput, response times and the host over {} rounds. {}", rounds.len(), found.verdict);
    let chart =
        Chart { id: "timeline-chart".into(), title: "Every round".into(), description, plot: Plot::Stack { panels } };
    Section {
        id: "timeline".into(),
        title: "Timeline".into(),
        lead: "Every round in its place; changes and slowdowns are marked, and times in which an objective was missed."
            .into(),
        blocks: vec![Block::Chart(Box::new(chart))],
    }
}

/// Marks changes and slowdowns where they were, and breaches at the latencies.
fn mark(panels: &mut [Lines], found: &Predictability) {
    for lines in panels {
        let upright = |at, to, label: String, tone| Mark { at, to, upright: true, label, tone };
        match lines.y.unit {
            Unit::PerSecond => {
                lines.marks.extend(found.episodes.iter().map(|slow| {
                    let end = local(slow.end.unwrap_or(slow.last_slow));
                    upright(local(slow.begin), Some(end), "slowdown".into(), Tone::Bad)
                }));
            }
            Unit::Microseconds => {
                let breaches = found.objectives.iter().flat_map(|result| {
                    let label = format!("{} missed", result.objective);
                    result.breaches.iter().map(move |breach| (breach, label.clone()))
                });
                lines.marks.extend(
                    breaches.map(|(one, label)| upright(local(one.begin), Some(local(one.end)), label, Tone::Bad)),
                );
            }
            _ => continue,
        }
        let unit_of = |of| if of == Quantity::Rate { Unit::PerSecond } else { Unit::Microseconds };
        let here = found.changes.iter().filter(|change| unit_of(change.of) == lines.y.unit);
        lines.marks.extend(here.map(|change| {
            let label = format!("{} {:+.1} %", change.of.name(), (change.factor - 1.0) * 100.0);
            upright(local(change.at), None, label, Tone::Doubt)
        }));
    }
}

/// Days against hours; none of less than two days.
fn calendar(rounds: &[Round]) -> Option<Section> {
    let (first, last) = (rounds.first()?, rounds.last()?);
    if last.finish().since(first.begin) < 2 * 86_400 {
        return None;
    }
    let field = |id: &str, title: &str, label: &str, unit, value: fn(&Round) -> Option<f64>| {
        // Rows go from bottom to top: the first day stands at the top.
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
            rows: days.iter().map(|day| day[0].begin.date()).collect(),
            values,
            unit,
            label: label.into(),
            log: false,
            range: usual.map(|usual| (usual * (1.0 - CALENDAR_SPAN), usual * (1.0 + CALENDAR_SPAN))),
            written: false,
        };
        let description = format!("{label}: {} days by 24 hours", days.len());
        let chart = Chart { id: id.into(), title: title.into(), description, plot: Plot::Heat(heat) };
        known.then(|| Block::Chart(Box::new(chart)))
    };
    let rate = |round: &Round| round.rate.filter(|_| round.counts());
    let blocks: Vec<Block> = [
        field("calendar-throughput", "Throughput", "median throughput of the hour", Unit::PerSecond, rate),
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
        description: description.clone(),
        plot: Plot::Lines(lines),
    };
    let blocks = vec![Block::Chart(Box::new(chart))];
    Section { id: "daily".into(), title: "Daily pattern".into(), lead: capital(&description) + ".", blocks }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

fn table(caption: &str, columns: &[(&str, bool)], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|(name, is_number)| Column { name: (*name).into(), is_number: *is_number });
    Table { caption: caption.into(), columns: columns.collect(), rows, folded: false }
}

fn what_changed(found: &Predictability) -> Option<Section> {
    let mut blocks: Vec<Block> = found.episodes.iter().map(|slow| Block::Text(capital(&soak::episode(slow)))).collect();
    let percent = |factor: f64| format!("{:+.1} %", (factor - 1.0) * 100.0);
    if !found.changes.is_empty() {
        let row = |change: &crate::analyse::ChangePoint| {
            let interval = change.interval.map_or_else(String::new, |interval| {
                format!("{} to {}", percent(interval.low), percent(interval.high))
            });
            let until = change.until.map_or_else(String::new, |until| format!(" to {}", until.short()));
            vec![
                change.at.short() + &until,
                change.of.name().into(),
                percent(change.factor),
                interval,
                soak::host(change.host.as_deref()),
            ]
        };
        let columns = [("when", false), ("what", false), ("change", true), ("95 % interval", true), ("host", false)];
        blocks.push(Block::Table(table("Changes of level", &columns, found.changes.iter().map(row).collect())));
    }
    blocks.extend(found.trends.iter().map(|trend| {
        let interval = format!("{} to {}", percent(trend.interval.low), percent(trend.interval.high));
        let text = format!("{} {} a day ({interval})", trend.of.name(), percent(trend.factor_per_day));
        Block::Text(capital(&text) + &format!(", {} over the series.", percent(trend.factor)))
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
        let breach = result
            .longest_breach
            .map_or_else(|| "none".into(), |breach| format!("{} to {}", breach.begin.short(), breach.end.short()));
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
    let columns = [
        ("objective", false),
        ("", false),
        ("kept for", true),
        ("asked", true),
        ("budget used", true),
        ("rounds that missed it", true),
        ("longest breach", false),
    ];
    let table = table("Objectives and their error budgets", &columns, found.objectives.iter().map(row).collect());
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
            round.begin.short(),
            format!("{:.0}", round.seconds),
            format!("{:.0}", round.done),
            or_none(round.rate, soak::rate),
            or_none(round.p50_us, soak::time),
            or_none(round.p99_us, soak::time),
            or_none(round.max_us, soak::time),
            soak::end_name(&round.end).into(),
        ]
    };
    let columns = [
        ("round", true),
        ("begun", false),
        ("seconds", true),
        ("done", true),
        ("throughput", true),
        ("p50", true),
        ("p99", true),
        ("max", true),
        ("end", false),
    ];
    let all = result.rounds.iter().map(row).collect();
    let table = Table { folded: true, ..table("Every round", &columns, all) };
    let said = soak::rounds(&result.found);
    let lead = said.lines().skip(2).map(str::trim).collect::<Vec<_>>().join(" ");
    let blocks = vec![Block::Table(table)];
    Section { id: "rounds".into(), title: "Rounds".into(), lead: capital(&lead), blocks }
}
