//! Rounds over time: the timeline, the calendar of days by hours, what repeats.

use super::super::columns::TableOf;
use super::figures::{POINTS_MAX, thinned, wall};
use crate::document::{Axis, Block, Heat, Lines, Mark, Merge, Plot, Section, Series, Status, Unit};
use crate::parts;
use rigel_analyse::{
    Breach, CalendarPattern, LatencyFigure, Predictability, Quantity, Round, RoundEnd, RoundHost,
    ShownIn, SoakResult,
};
use rigel_model::{Measure, Moment, Objective};

/// Minimum range of a calendar's colours, as a fraction of the median on either side: smaller
/// differences are no pattern.
const CALENDAR_SPAN: f64 = 0.15;

/// Maximum number of listed times that repeat.
const LIST_MAX: usize = 12;

/// Maximum number of marked breaches per objective.
const MARKS_MAX: usize = 100;

/// A figure of a round, or of its host.
type Of<T> = fn(&T) -> Option<f64>;

/// The timeline of all rounds; `None` if no round has a figure.
pub(super) fn timeline(result: &SoakResult) -> Option<Section> {
    let (rounds, found) = (&result.rounds, &result.found);
    let first = rounds.first()?.begin;
    let changed = rounds
        .iter()
        .any(|round| round.begin.by_the_clock_of(first) != round.begin);
    let begun = if changed {
        "begun, by the clock before it was changed"
    } else {
        "begun"
    };
    let each = rounds.len().div_ceil(POINTS_MAX);
    let mut panels = panels(rounds, first, each, begun);
    for lines in &mut panels {
        lines.y.log = lines.y.unit == Unit::Microseconds;
    }
    // What decides comes first.
    panels.sort_by_key(|lines| lines.y.unit != unit_of(found.judged_by));
    if panels.is_empty() {
        return None;
    }
    mark(&mut panels, found, first);
    let shown: Vec<&str> = panels.iter().map(|lines| lines.y.label.as_str()).collect();
    let shown = parts::capital(&shown.join(", "));
    let noun = found.samples.noun();
    let description = format!("{shown} of {} {noun}s. {}", rounds.len(), found.verdict);
    let chart = parts::chart(
        "timeline-chart",
        &format!("{}s over time", parts::capital(noun)),
        description,
        Plot::Stack { panels },
    );
    let what = if each > 1 {
        format!(
            "{each} {noun}s share a point: their median, minimum throughput, maximum p99 and max"
        )
    } else {
        format!("Every {noun}")
    };
    let lead = format!("{what}; changes, slowdowns and missed objectives are marked.");
    Some(parts::section(
        "timeline",
        "Timeline",
        &lead,
        vec![Block::Chart(Box::new(chart))],
    ))
}

/// The panels of the timeline that have figures, over an axis of this name.
fn panels(rounds: &[Round], first: Moment, each: usize, begun: &str) -> Vec<Lines> {
    let axis = || Axis {
        label: begun.into(),
        unit: Unit::Moment,
        ..Axis::default()
    };
    let series = |name: &str, value: &dyn Fn(&Round) -> Option<f64>, merge| {
        thinned(name, rounds, |round| wall(round.begin, first), value, merge)
    };
    let panel = |label: &str, unit, range, all: Vec<Series>| {
        let series: Vec<Series> = all
            .into_iter()
            .filter(|series| series.y.iter().any(Option::is_some))
            .collect();
        let y = Axis {
            label: label.into(),
            unit,
            range,
            ..Axis::default()
        };
        (!series.is_empty()).then(|| Lines {
            x: axis(),
            y,
            series,
            ..Lines::default()
        })
    };
    let shares: [(&str, Of<RoundHost>); 4] = [
        ("disk busy", |host| host.device_busy),
        ("CPU in use", |host| Some(host.cpu_busy)),
        ("CPU stolen", |host| Some(host.stolen)),
        ("I/O pressure", |host| host.io_pressure),
    ];
    let of_host = |(name, value): (&str, Of<RoundHost>)| {
        series(name, &|round| value(round.host.as_ref()?), Merge::Median)
    };
    let greatest = rounds
        .iter()
        .filter_map(Round::counted_rate)
        .fold(0.0, f64::max);
    let greatest = if greatest > 0.0 { greatest } else { 1.0 };
    let mut throughput = vec![series("throughput", &Round::counted_rate, Merge::Median)];
    if each > 1 {
        throughput.push(series("minimum", &Round::counted_rate, Merge::Least));
    }
    let latency = LatencyFigure::shown_in(ShownIn::Charts).map(|figure| {
        // The middle of merged rounds; of tails the worst.
        let merge = match figure {
            LatencyFigure::P50 => Merge::Median,
            _ => Merge::Greatest,
        };
        series(figure.label(), &|round| round.latency.get(figure), merge)
    });
    let panels = [
        panel(
            "throughput",
            Unit::PerSecond,
            Some((0.0, greatest)),
            throughput,
        ),
        panel("response time", Unit::Microseconds, None, latency.collect()),
        panel(
            "of the time",
            Unit::Share,
            Some((0.0, 1.0)),
            shares.map(of_host).into(),
        ),
        panel(
            "I/Os in the queue",
            Unit::Number,
            None,
            vec![of_host(("disk queue", |host| host.queue))],
        ),
        panel(
            "I/O of others",
            Unit::MbPerSecond,
            None,
            vec![of_host(("others", |host| host.others_mb_per_s))],
        ),
    ];
    panels.into_iter().flatten().collect()
}

/// The longest breaches, at most `MARKS_MAX`.
fn longest(breaches: &[Breach]) -> Vec<&Breach> {
    let mut longest: Vec<&Breach> = breaches.iter().collect();
    longest.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    longest.truncate(MARKS_MAX);
    longest
}

/// The unit of the axis on which a quantity is.
fn unit_of(quantity: Quantity) -> Unit {
    match quantity {
        Quantity::Rate => Unit::PerSecond,
        Quantity::P99Us => Unit::Microseconds,
    }
}

/// The axis on which an objective is, and its place there.
fn limit(objective: Objective) -> (Unit, f64) {
    match objective.0 {
        Measure::Quantile(_, limit) | Measure::Mean(limit) | Measure::Max(limit) => {
            (Unit::Microseconds, limit.as_micros_f64())
        }
        Measure::Rate(rate) => (Unit::PerSecond, rate),
    }
}

/// Marks objectives, changes and slowdowns, and the longest breaches in the panel of latencies.
fn mark(panels: &mut [Lines], found: &Predictability, first: Moment) {
    let wall = |moment| wall(moment, first);
    for lines in panels {
        let upright = |at, to, label: String, tone| Mark {
            at,
            to,
            upright: true,
            label,
            tone,
        };
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
                    longest(&result.breaches)
                        .into_iter()
                        .map(move |breach| (breach, label.clone()))
                });
                lines.marks.extend(breaches.map(|(one, label)| {
                    upright(wall(one.begin), Some(wall(one.end)), label, Status::Bad)
                }));
            }
            _ => continue,
        }
        let objectives = found.objectives.iter().map(|result| result.objective);
        lines.marks.extend(objectives.filter_map(|objective| {
            let (unit, at) = limit(objective);
            (unit == lines.y.unit).then(|| Mark {
                at,
                label: objective.to_string(),
                tone: Status::Warning,
                ..Mark::default()
            })
        }));
        let here = found
            .changes
            .iter()
            .filter(|change| unit_of(change.of) == lines.y.unit);
        lines.marks.extend(here.map(|change| {
            let label = format!("{} {}", change.of.name(), parts::change(change.factor));
            upright(wall(change.at), None, label, Status::Warning)
        }));
    }
}

/// A calendar of days by hours; `None` for a series shorter than two days.
pub(super) fn calendar(rounds: &[Round]) -> Option<Section> {
    let (first, last) = (rounds.first()?, rounds.last()?);
    if last.finish().since(first.begin) < 2 * 86_400 {
        return None;
    }
    let field = |id: &str, title: &str, label: &str, unit, value: fn(&Round) -> Option<f64>| {
        // Rows are given from bottom to top, so the days are reversed to have the first at the top.
        let days: Vec<&[Round]> = rounds
            .chunk_by(|one, other| one.begin.day() == other.begin.day())
            .rev()
            .collect();
        let of_hour = |day: &[Round], hour: u32| {
            Merge::Median.of(&day
                .iter()
                .filter(|round| round.begin.second_of_day() / 3600 == hour)
                .filter_map(value)
                .collect::<Vec<_>>())
        };
        let values: Vec<Vec<Option<f64>>> = days
            .iter()
            .map(|day| (0..24).map(|hour| of_hour(day, hour)).collect())
            .collect();
        let has_values = values.iter().flatten().any(Option::is_some);
        let usual = Merge::Median.of(&values
            .iter()
            .flatten()
            .flatten()
            .copied()
            .collect::<Vec<_>>());
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
        has_values.then(|| Block::Chart(Box::new(chart)))
    };
    let blocks: Vec<Block> = [
        field(
            "calendar-throughput",
            "Throughput",
            "median throughput of the hour",
            Unit::PerSecond,
            Round::counted_rate,
        ),
        field(
            "calendar-p99",
            "p99",
            "median p99 of the hour",
            Unit::Microseconds,
            |round| round.latency.p99_us,
        ),
    ]
    .into_iter()
    .flatten()
    .collect();
    let lead =
        "Each cell is an hour: what recurs daily forms columns, what happened once stands alone.";
    let calendar = parts::in_text(parts::section("calendar", "Calendar", lead, blocks));
    Some(with_days(calendar, rounds))
}

/// Adds a table with the figures of each day.
fn with_days(mut calendar: Section, rounds: &[Round]) -> Section {
    let rates = |day: &[Round]| {
        day.iter()
            .filter_map(Round::counted_rate)
            .collect::<Vec<f64>>()
    };
    let days = rounds.chunk_by(|one, other| one.begin.day() == other.begin.day());
    let table = TableOf::of("Each day", days)
        .text("day", |day| day[0].begin.date())
        .number("number", |day| day.len())
        .number("broken", |day| {
            let is_broken = |round: &&Round| matches!(round.end, RoundEnd::Broken(_));
            day.iter().filter(is_broken).count()
        })
        .per_second("median throughput", |day| Merge::Median.of(&rates(day)))
        .per_second("minimum", |day| Merge::Least.of(&rates(day)))
        .time("maximum p99", |day| {
            let p99s: Vec<f64> = day
                .iter()
                .filter_map(|round| round.latency.p99_us)
                .collect();
            Merge::Greatest.of(&p99s)
        })
        .folded_if(true);
    calendar.blocks.push(table.block());
    calendar
}

/// What repeats by the calendar: a sentence for each time, and the hours of the day.
pub(super) fn repeats(pattern: &CalendarPattern) -> Section {
    let series = |name: &str, hours: &[Option<f64>]| {
        let points = hours.iter().enumerate();
        let points = points.filter_map(|(hour, value)| Some((hour as f64, (*value)?)));
        let (x, y): (Vec<f64>, Vec<Option<f64>>) =
            points.map(|(hour, value)| (hour, Some(value))).unzip();
        Series {
            name: name.into(),
            x,
            y,
            ..Series::default()
        }
    };
    let both = [
        series("Monday to Friday", &pattern.working_days),
        series("Saturday and Sunday", &pattern.weekends),
    ];
    let lines = Lines {
        x: Axis {
            label: "hour of the day".into(),
            range: Some((0.0, 23.0)),
            ..Axis::default()
        },
        y: Axis {
            label: "of the level".into(),
            unit: Unit::Share,
            ..Axis::default()
        },
        series: both
            .into_iter()
            .filter(|series| !series.x.is_empty())
            .collect(),
        ..Lines::default()
    };
    let sentences = repeating(pattern);
    let title = format!(
        "{} by the hour of the day",
        parts::capital(pattern.of.name())
    );
    let (id, chart_id) = match pattern.of {
        Quantity::Rate => ("repeats", "repeats-chart"),
        Quantity::P99Us => ("repeats-p99", "repeats-p99-chart"),
    };
    let chart = parts::chart(chart_id, &title, sentences.join(" "), Plot::Lines(lines));
    let blocks = [Block::Chart(Box::new(chart))]
        .into_iter()
        .chain(sentences.into_iter().map(Block::Text))
        .collect();
    let title = format!("{} that repeats", parts::capital(pattern.of.name()));
    let lead = "Times of the day and the week that differ from the level, and on how many days.";
    parts::section(id, &title, lead, blocks)
}

/// A sentence for each time that stands out, the largest difference first.
fn repeating(pattern: &CalendarPattern) -> Vec<String> {
    let all = &pattern.recurrences;
    let named = all
        .iter()
        .take(LIST_MAX)
        .map(|one| parts::capital(&pattern.sentence(one)) + ".");
    let left_out = all.len().saturating_sub(LIST_MAX);
    let more = (left_out > 0).then(|| format!("{left_out} more are in the JSON report."));
    named.chain(more).collect()
}
