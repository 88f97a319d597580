//! Charts of latency against throughput, and of throughput against depth.

use super::document::{
    Axis, Block, Chart, Headline, Lines, Mark, Plot, Series, Shape, Status, Unit,
};
use super::parts::{self, Amount};
use rigel_analyse::{
    ClassSummary, CurveShape, Estimate, LatencyFigure, LatencySummary, PointSummary, RateMet,
    ShownIn, Sustained,
};
use rigel_model::{Arrivals, Bound, Coordinates};
/// A bound is drawn if it is at most this many times the maximum measured value.
const BOUND_REACH: f64 = 12.0;

/// A point and its class.
pub type At<'a> = (&'a PointSummary, &'a ClassSummary);

/// The first class of each `wanted` point, in ascending order of load.
pub fn first_classes(
    points: &[PointSummary],
    wanted: impl Fn(&PointSummary) -> bool,
) -> Vec<At<'_>> {
    let chosen = points.iter().filter(|point| wanted(point));
    let mut classes: Vec<At<'_>> = chosen
        .filter_map(|point| Some((point, point.classes.first()?)))
        .collect();
    classes.sort_by_key(|(point, _)| point.coordinates);
    classes
}

/// A group of loads, drawn as one line for p50 and one for p99.
pub struct Group<'a> {
    /// Prefix of p50 and p99 in the legend; may be empty.
    pub name: &'a str,
    /// The loads, ascending.
    pub loads: Vec<At<'a>>,
    /// The shape of the series.
    pub shape: Shape,
}

/// One chart per group with loads, side by side with the same axes; `None` if there is nothing to
/// draw.
pub fn latency_charts(groups: Vec<(Group<'_>, Vec<Mark>)>, unit_name: &str) -> Option<Block> {
    let groups: Vec<_> = groups
        .into_iter()
        .filter(|(group, _)| !group.loads.is_empty())
        .collect();
    if groups.len() < 2 {
        let (mut group, marks) = groups.into_iter().next()?;
        group.name = "";
        return parts::beside([latency_chart(&[group], marks, unit_name)]);
    }
    let mut charts: Vec<Chart> = Vec::new();
    for (at, (group, marks)) in groups.into_iter().enumerate() {
        let title = group.name;
        let mut chart = latency_chart(&[Group { name: "", ..group }], marks, unit_name)?;
        chart.title = title.into();
        if at > 0 {
            chart.id = format!("{}-{}", chart.id, at + 1);
        }
        charts.push(chart);
    }
    align(&mut charts);
    parts::beside(charts.into_iter().map(Some))
}

/// Gives line charts the same axes, which include everything that is drawn.
fn align(charts: &mut [Chart]) {
    const ROOM: f64 = 1.15;
    let (mut most, mut low, mut high) = (0.0_f64, f64::INFINITY, 0.0_f64);
    for chart in &*charts {
        let Plot::Lines(lines) = &chart.plot else {
            continue;
        };
        most = most.max(lines.x.range.map_or(0.0, |(_, most)| most));
        let levels = lines
            .marks
            .iter()
            .filter(|mark| !mark.upright)
            .map(|mark| mark.at);
        let bands = lines
            .series
            .iter()
            .flat_map(|series| series.band.iter().flatten());
        let ends = bands
            .flat_map(|known| std::iter::once(known.low).chain(known.high))
            .chain(levels);
        let values = lines
            .series
            .iter()
            .flat_map(|series| series.y.iter().flatten().copied());
        for value in values
            .chain(ends)
            .filter(|value| *value > 0.0 && value.is_finite())
        {
            (low, high) = (low.min(value), high.max(value));
        }
    }
    for chart in charts {
        let Plot::Lines(lines) = &mut chart.plot else {
            continue;
        };
        lines.x.range = Some((0.0, most));
        lines.y.range = Some((low / ROOM, high * ROOM));
    }
}

/// Median and p99 over throughput, with intervals; `None` if there is nothing to draw.
pub fn latency_chart(groups: &[Group<'_>], marks: Vec<Mark>, unit_name: &str) -> Option<Chart> {
    let mut series = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        for (colour, figure) in (2 * at..).zip(LatencyFigure::shown_in(ShownIn::Lines)) {
            let colour = u8::try_from(colour % 8).unwrap_or(0);
            series.extend(latency_series(group, figure, colour));
        }
    }
    series.retain(|series| !series.x.is_empty());
    for alone in series
        .iter_mut()
        .filter(|series| series.x.len() == 1 && !series.faint)
    {
        alone.shape = Shape::Points;
    }
    if series.is_empty() {
        return None;
    }
    let described: Vec<String> = groups
        .iter()
        .filter_map(|group| describe(group, unit_name))
        .collect();
    let description = format!("{}.", described.join("; "));
    let lines = Lines {
        x: Axis {
            label: unit_name.into(),
            unit: Unit::PerSecond,
            range: from_zero(series.iter().flat_map(|series| &series.x), 1.03),
            ..Axis::default()
        },
        y: Axis {
            label: "response time".into(),
            unit: Unit::Microseconds,
            log: true,
            range: None,
        },
        right: None,
        marks: within_reach(marks, &series),
        series,
    };
    Some(parts::chart(
        "latency-chart",
        "Latency against throughput",
        description,
        Plot::Lines(lines),
    ))
}

/// An axis from zero to `margin` times the maximum; `None` if no value is positive.
fn from_zero<'a>(values: impl Iterator<Item = &'a f64>, margin: f64) -> Option<(f64, f64)> {
    let most = values.copied().fold(0.0, f64::max);
    (most > 0.0).then_some((0.0, most * margin))
}

/// Removes a bound far above all values, which would compress the measured values into a corner.
fn within_reach(marks: Vec<Mark>, series: &[Series]) -> Vec<Mark> {
    let most = series
        .iter()
        .flat_map(|series| &series.y)
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    marks
        .into_iter()
        .filter(|mark| mark.upright || mark.at <= BOUND_REACH * most)
        .collect()
}

/// The line through loads that each gave more throughput than all previous ones, and the other
/// loads as fainter points. These are mostly beyond the knee: a line back and forth through them
/// would be misleading.
fn latency_series(group: &Group<'_>, figure: LatencyFigure, colour: u8) -> [Series; 2] {
    let name = format!("{} {}", group.name, figure.label());
    let name = name.trim().to_string();
    let made = |name: String, shape| Series {
        name,
        shape,
        colour: Some(colour),
        ..Series::default()
    };
    let mut line = made(name.clone(), group.shape);
    let mut others: Vec<(&At<'_>, Estimate)> = Vec::new();
    let add = |series: &mut Series, (point, class): &At<'_>, time: &Estimate| {
        series.x.push(class.iops);
        series.y.push(Some(time.value));
        series.band.push(time.interval);
        series.labels.push(load_name(point, class));
    };
    for load in &group.loads {
        let Some(time) = load.1.time(figure) else {
            continue;
        };
        if line.x.last().is_none_or(|last| load.1.iops > *last) {
            add(&mut line, load, &time);
        } else {
            others.push((load, time));
        }
    }
    others.sort_by(|(one, _), (other, _)| one.1.iops.total_cmp(&other.1.iops));
    let mut rest = Series {
        faint: true,
        ..made(format!("{name}, no more throughput"), Shape::Points)
    };
    others
        .iter()
        .for_each(|(load, time)| add(&mut rest, load, time));
    for series in [&mut line, &mut rest] {
        if series.band.iter().all(Option::is_none) {
            series.band.clear();
        }
    }
    [line, rest]
}

/// `depth 8`, with a remark if an offered rate was not met.
fn load_name(point: &PointSummary, class: &ClassSummary) -> String {
    let name = match point.coordinates {
        Coordinates::Rate {
            rate_per_s: rate, ..
        } => format!("{} offered per second", parts::count(rate as f64)),
        Coordinates::Cell { small, large: 0 } => format!("depth {small}"),
        _ => point.coordinates.to_string(),
    };
    if class.met == Some(RateMet::No) {
        format!("{name}, not met")
    } else {
        name
    }
}

/// Describes a group at its lowest and its highest load.
fn describe(group: &Group<'_>, unit_name: &str) -> Option<String> {
    let with: Vec<(&At<'_>, LatencySummary)> = group
        .loads
        .iter()
        .filter_map(|load| Some((load, load.1.latency?)))
        .collect();
    let what = if group.name.is_empty() {
        "Response time"
    } else {
        group.name.trim_end_matches(',')
    };
    let times = |((_, class), latency): &(&At<'_>, LatencySummary)| {
        let (p50, p99) = (parts::time(latency.p50_us), parts::time(latency.p99_us));
        format!(
            "median {p50} and p99 {p99} at {} {unit_name}",
            parts::count(class.iops)
        )
    };
    let least = times(with.first()?);
    Some(if with.len() == 1 {
        format!("{what}: {least}")
    } else {
        format!("{what}: {least}, {}", times(with.last()?))
    })
}

/// Marks at the knee, the cap, the bound and the rate that can be sustained, with their intervals.
pub fn marks(shape: &CurveShape, bound: Option<Bound>, sustained: Option<&Sustained>) -> Vec<Mark> {
    let mut marks = Vec::new();
    if let Some(knee) = shape.knee.filter(|knee| knee.bounded_above) {
        let label = format!("knee, depth {}", knee.load);
        let limits = knee.throughput.limits();
        marks.push(Mark {
            at: limits.low,
            to: limits.high,
            upright: true,
            label,
            ..Mark::default()
        });
    }
    // If the knee is at the cap, two marks at the same place say less than one.
    if let Some(cap) = shape.cap.filter(|cap| {
        shape
            .knee
            .is_none_or(|knee| !cap.interval.contains(knee.throughput.value))
    }) {
        let label = format!("cap, {}", parts::count(cap.throughput));
        marks.push(Mark {
            at: cap.throughput,
            upright: true,
            label,
            tone: Status::Warning,
            ..Mark::default()
        });
    }
    if let Some(bound) = bound {
        let latency = bound.latency.as_micros_f64();
        marks.push(Mark {
            at: latency,
            label: format!("bound {bound}"),
            tone: Status::Bad,
            ..Mark::default()
        });
    }
    marks.extend(sustained.and_then(|sustained| answer(sustained, bound)));
    marks
}

/// The rate that can be sustained, with its interval: that of the curve through all offered rates,
/// else from the highest that was served to the lowest that was not.
fn answer(sustained: &Sustained, bound: Option<Bound>) -> Option<Mark> {
    let what = bound.map_or_else(
        || "rate that is met".to_string(),
        |bound| format!("within {}", parts::bound_in_words(&bound.to_string())),
    );
    let mark = |at: f64, to, label| Mark {
        at,
        to,
        upright: true,
        label,
        tone: Status::Good,
    };
    if let Some(rate) = sustained.rate
        && let Some(known) = rate.interval
    {
        let label = format!("{what}: {}", Amount::new(rate, Unit::PerSecond).in_cell());
        return Some(mark(known.low, known.high, label));
    }
    let met = sustained.kept_rate? as f64;
    let broken = sustained.broken_rate.map(|broken| broken as f64);
    let label = match broken {
        Some(broken) => format!(
            "{what}: {} to {}",
            parts::count(met),
            parts::per_second(broken)
        ),
        None => format!("{what}: {} or more", parts::per_second(met)),
    };
    Some(mark(met, broken, label))
}

/// The group of the closed loop and that of the offered rates, each with its marks.
pub fn closed_and_open<'a>(
    closed: Vec<At<'a>>,
    open: Vec<At<'a>>,
    shape: &CurveShape,
    bound: Option<Bound>,
    sustained: &Sustained,
) -> Vec<(Group<'a>, Vec<Mark>)> {
    let of_closed = marks(shape, bound, None);
    let mut of_open = marks(shape, bound, Some(sustained));
    // The knee is a depth, which an offered load does not have.
    of_open.retain(|mark| !of_closed.contains(mark) || !mark.upright);
    vec![
        (
            Group {
                name: "A constant number outstanding",
                loads: closed,
                shape: Shape::Line,
            },
            of_closed,
        ),
        (
            Group {
                name: match sustained.arrivals {
                    Arrivals::Poisson => "Offered at random times",
                    Arrivals::Uniform => "Offered at equal intervals",
                },
                loads: open,
                shape: Shape::Line,
            },
            of_open,
        ),
    ]
}

/// Throughput over depth, with intervals; `None` with fewer than two depths.
pub fn depth_chart(loads: &[At<'_>], shape: &CurveShape, unit_name: &str) -> Option<Chart> {
    let mut loads = loads.to_vec();
    loads.sort_by_key(|(point, class)| point.outstanding_each(class));
    let each = |(point, class): &At<'_>| point.outstanding_each(class);
    let (first, last) = (each(loads.first()?), each(loads.last()?));
    if first == last {
        return None;
    }
    let measured = over_depth("measured", &loads, 1.0, |class| class.iops);
    let series = vec![measured];
    let reached = shape.knee.filter(|knee| knee.bounded_above);
    let knee = reached.map(|knee| Mark {
        at: knee.load,
        upright: true,
        label: "knee".into(),
        ..Mark::default()
    });
    let description = format!(
        "{unit_name} by operations outstanding: {} at depth {first}, {} at depth {last}.",
        parts::count(loads[0].1.iops),
        parts::count(loads[loads.len() - 1].1.iops)
    );
    let lines = Lines {
        x: Axis {
            label: "outstanding".into(),
            unit: Unit::Number,
            log: true,
            range: None,
        },
        y: Axis {
            label: unit_name.into(),
            unit: Unit::PerSecond,
            range: from_zero(series.iter().flat_map(|series| &series.y).flatten(), 1.05),
            ..Axis::default()
        },
        right: None,
        series,
        marks: knee.into_iter().collect(),
    };
    Some(parts::chart(
        "throughput-depth",
        "Throughput over depth",
        description,
        Plot::Lines(lines),
    ))
}

/// Number of outstanding large I/Os.
fn large(point: &PointSummary) -> u32 {
    point.coordinates.small_and_large().1
}

/// Bytes per second of large I/O over depth; `None` with fewer than two depths.
pub fn large_chart(loads: &[At<'_>], what: &str, unit: Unit) -> Option<Chart> {
    let mut loads = loads.to_vec();
    loads.sort_by_key(|(point, _)| large(point));
    let (first, last) = (loads.first()?, loads.last()?);
    if large(first.0) == large(last.0) {
        return None;
    }
    let mut series = over_depth("large reads", &loads, 1.0 / unit.bytes(), |class| {
        class.iops
    });
    series.x = loads
        .iter()
        .map(|(point, _)| f64::from(large(point)))
        .collect();
    let rate = |class: &ClassSummary| class.bytes_per_s() / unit.bytes();
    let description = format!(
        "{} of {what} by operations outstanding: {} at depth {}, {} at depth {}.",
        unit.name(),
        parts::count(rate(first.1)),
        large(first.0),
        parts::count(rate(last.1)),
        large(last.0)
    );
    let scale = first.1.operation_bytes();
    series
        .y
        .iter_mut()
        .flatten()
        .for_each(|value| *value *= scale);
    series
        .band
        .iter_mut()
        .flatten()
        .for_each(|band| *band = band.scaled(scale));
    let series = vec![series];
    let lines = Lines {
        x: Axis {
            label: "outstanding".into(),
            unit: Unit::Number,
            log: true,
            range: None,
        },
        y: Axis {
            label: unit.name().into(),
            unit,
            range: from_zero(series.iter().flat_map(|series| &series.y).flatten(), 1.05),
            ..Axis::default()
        },
        right: None,
        series,
        marks: Vec::new(),
    };
    Some(parts::chart(
        "large-depth",
        "Throughput of large I/O",
        description,
        Plot::Lines(lines),
    ))
}

fn over_depth(name: &str, loads: &[At<'_>], scale: f64, of: fn(&ClassSummary) -> f64) -> Series {
    let mut series = Series {
        name: name.into(),
        ..Series::default()
    };
    for (point, class) in loads {
        series.x.push(f64::from(point.outstanding_each(class)));
        series.y.push(Some(of(class) * scale));
        series
            .band
            .push(class.rate().interval.map(|interval| interval.scaled(scale)));
        series.labels.push(load_name(point, class));
    }
    series
}

/// The knee with its range, and the extent of the plateau, in a sentence each.
pub fn knee(shape: &CurveShape) -> Vec<String> {
    let Some(knee) = shape.knee else {
        return Vec::new();
    };
    let reached = if knee.bounded_above {
        "beyond it latency grows and throughput does not"
    } else {
        "not reached, as throughput still rose at the maximum depth"
    };
    let range = match knee.range.high {
        Some(high) if high <= knee.range.low => String::new(),
        Some(high) => format!(" (between {} and {high})", knee.range.low),
        None => format!(" ({} or more)", knee.range.low),
    };
    let plateau = &knee.plateau;
    let mut sentences = vec![format!("Knee: depth {}{range}, {reached}.", knee.load)];
    if plateau.to > plateau.from {
        sentences.push(format!(
            "Throughput is level from depth {} to {}.",
            plateau.from, plateau.to
        ));
    }
    sentences
}

/// The rate at which a bound is met exactly, as a headline figure; `path` is where the results of
/// sustained rates are in the JSON report. `None` if it is not known.
pub fn sustained_headline(path: &str, label: &str, sustained: &Sustained) -> Option<Headline> {
    let rate = sustained.rate?;
    let amount = Amount::new(rate, Unit::PerSecond);
    let highest = match (sustained.kept, sustained.kept_rate) {
        (Some(at), Some(kept)) => format!(
            "{} certainly kept it, p99 {}",
            parts::per_second(kept as f64),
            parts::time(at.p99_us.value)
        ),
        _ => "no rate certainly kept it".into(),
    };
    let (value, interval) = (amount.to_string(), amount.range());
    let note = format!("offered {}; {highest}", sustained.arrivals.in_words());
    let name = format!("{path}.rate.value");
    Some(parts::headline(
        &name, label, rate.value, value, interval, note,
    ))
}

/// The same in a sentence: `Within 20 ms at p99: 56,521/s (55,900 to 57,000), …`.
pub fn sustained_sentence(bound: &str, sustained: &Sustained) -> Option<String> {
    let amount = Amount::new(sustained.rate?, Unit::PerSecond);
    Some(format!(
        "Within {bound}: {}, offered {}, by all offered rates.",
        amount.in_cell(),
        sustained.arrivals.in_words()
    ))
}

/// The lowest rate that was not sustained, and the lowest below it that is undecided.
pub fn not_sustained(sustained: &Sustained) -> String {
    let rate = |rate: u64| parts::per_second(rate as f64);
    match (sustained.broken_rate, sustained.undecided_rate) {
        (Some(broken), Some(undecided)) => format!(
            "{} was not met, and {} is undecided",
            rate(broken),
            rate(undecided)
        ),
        (Some(broken), None) => format!("{} was not met", rate(broken)),
        (None, Some(undecided)) => format!("{} is undecided", rate(undecided)),
        (None, None) => "no higher rate was offered".into(),
    }
}
