//! The whole run on one time axis: throughput, response times, wait events of database sessions,
//! and the counters of the host and its disks.

use super::document::{Axis, Block, Lines, Mark, Plot, Section, Series, Shape, Unit};
use super::parts;
use super::points::Units;
use rigel_analyse::{
    self as analyse, LatencyFigure, LatencySummary, ShownIn, device_loads, host_load,
};
use rigel_model::record::journal::Run;
use rigel_model::record::{PointRecord, StreamRecord, Window};
use rigel_model::{Moment, Sample};
use std::fmt::Write;

/// Maximum number of drawn windows; more are merged with their neighbours.
const WINDOWS_MAX: usize = 2000;
/// Maximum number of drawn intervals between samples.
const SAMPLES_MAX: usize = 1000;
/// Maximum number of points with marks at their start; more would hide the curves.
const MARKED_MAX: usize = 12;
/// Maximum number of events with their own colour; the others are drawn together.
const EVENTS_MAX: usize = 7;
/// Maximum length in seconds of a drawn pause between two points; longer pauses are shortened to
/// it.
const PAUSE_MAX: f64 = 300.0;
/// I/O size from which on megabytes per second say more than operations per second.
const LARGE: u32 = 64 << 10;

/// A point and its start, in seconds since the start of the run.
struct Part<'a> {
    record: &'a PointRecord,
    begun: f64,
}

impl Part<'_> {
    fn end(&self) -> f64 {
        self.begun + self.record.warm_up.as_secs_f64() + self.record.measured.as_secs_f64()
    }
}

/// The timeline; `None` if the run measured nothing.
pub fn section(run: &Run, units: Units<'_>) -> Option<Section> {
    let (parts, squeezed) = in_time(run);
    if parts.is_empty() {
        return None;
    }
    let thin = thinning(
        parts.iter().map(|part| part.record.whole_windows()).sum(),
        WINDOWS_MAX,
    );
    let mut panels = rates(&parts, thin, units);
    panels.push(latencies(&parts, thin));
    panels.extend(waits(&parts));
    panels.extend(host(&parts));
    panels.retain(|panel| !panel.series.is_empty());
    if parts.len() <= MARKED_MAX
        && let Some(first) = panels.first_mut()
    {
        first.marks = parts.iter().map(begun).collect();
    }
    let span = parts.last().map_or(0.0, Part::end);
    let description = format!(
        "{} over {}, from top to bottom: {}.",
        parts::counted(parts.len() as u64, "point"),
        parts::time(span * 1e6),
        panels
            .iter()
            .map(|panel| panel.y.label.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    );
    let chart = parts::chart(
        "timeline-chart",
        "The run over time",
        description,
        Plot::Stack { panels },
    );
    let mut lead =
        "Points in the order in which they ran; gaps are warm-up and preparation.".to_string();
    if thin > 1 {
        let _ = write!(lead, " Each step combines {thin} windows.");
    }
    if squeezed {
        lead.push_str(" Pauses of more than five minutes are drawn as five minutes.");
    }
    if parts.iter().all(|part| part.record.samples.is_empty()) {
        lead.push_str(" The host was not sampled: the target is a model on virtual time.");
    }
    Some(parts::section(
        "timeline",
        "Timeline",
        &lead,
        vec![Block::Chart(Box::new(chart))],
    ))
}

fn begun(part: &Part<'_>) -> Mark {
    Mark {
        at: part.begun,
        upright: true,
        label: part.record.coordinates.to_string(),
        ..Mark::default()
    }
}

/// The points with their starts, and whether any pause was shortened. Wall-clock time has a
/// resolution of a second and stands still for a model, so no point begins before the end of the
/// previous one.
fn in_time(run: &Run) -> (Vec<Part<'_>>, bool) {
    let origin = run.header.started.parse::<Moment>().ok();
    let (mut parts, mut end, mut left_out): (Vec<Part<'_>>, f64, f64) = (Vec::new(), 0.0, 0.0);
    for record in &run.points {
        let since = origin
            .zip(record.started.parse::<Moment>().ok())
            .map(|(origin, begun)| begun.since(origin));
        let mut begun = (since.unwrap_or(0) as f64 - left_out).max(end);
        if begun - end > PAUSE_MAX {
            left_out += begun - end - PAUSE_MAX;
            begun = end + PAUSE_MAX;
        }
        parts.push(Part { record, begun });
        end = parts.last().map_or(end, Part::end);
    }
    (parts, left_out > 0.0)
}

/// Number of neighbours to merge so that at most `most` remain.
fn thinning(number: usize, most: usize) -> usize {
    number.div_ceil(most).max(1)
}

/// The windows of a stream, `thin` merged at a time: the time of their middle, their duration, and
/// their content.
fn windows<'a>(
    part: &'a Part<'_>,
    stream: &'a StreamRecord,
    thin: usize,
) -> impl Iterator<Item = (f64, f64, Window)> + 'a {
    let (width, whole) = (
        part.record.window.as_secs_f64(),
        part.record.whole_windows(),
    );
    let from = part.begun + part.record.warm_up.as_secs_f64();
    (0..whole).step_by(thin).map(move |first| {
        let last = (first + thin).min(whole);
        let together: Window = (first..last).flat_map(|at| stream.windows_at(at)).sum();
        (
            from + width * f64::midpoint(first as f64, last as f64),
            width * (last - first) as f64,
            together,
        )
    })
}

/// Appends a value to a series.
fn push(series: &mut Series, at: f64, value: Option<f64>, label: &str) {
    series.x.push(shortened(at));
    series.y.push(value.map(shortened));
    series.labels.push(label.into());
}

fn gap(series: &mut Series, at: f64) {
    if series.x.last().is_some_and(|last| *last < at) {
        push(series, at, None, "");
    }
}

/// Rounds to six significant digits, more than are visible.
fn shortened(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let scale = 10f64.powf(5.0 - value.abs().log10().floor());
    (value * scale).round() / scale
}

fn over_time(label: &str, unit: Unit) -> Lines {
    Lines {
        x: Axis {
            label: "since the run began".into(),
            unit: Unit::Seconds,
            ..Axis::default()
        },
        y: Axis {
            label: label.into(),
            unit,
            ..Axis::default()
        },
        ..Lines::default()
    }
}

/// Throughput: operations per second of small I/O, bytes per second of large I/O.
fn rates(parts: &[Part<'_>], thin: usize, units: Units<'_>) -> Vec<Lines> {
    let panel = |large: bool| {
        let (label, unit) = if large {
            (units.bytes.name(), units.bytes)
        } else {
            (units.operations, Unit::PerSecond)
        };
        let mut panel = over_time(label, unit);
        panel.y.range = Some((0.0, 0.0));
        for part in parts {
            let streams = part
                .record
                .streams
                .iter()
                .filter(|stream| (stream.length >= LARGE) == large);
            for stream in streams {
                let series = named(&mut panel.series, &stream.name);
                gap(series, part.begun);
                let label = part.record.coordinates.to_string();
                let scale = if large {
                    f64::from(stream.length) / units.bytes.bytes()
                } else {
                    1.0
                };
                for (at, seconds, window) in windows(part, stream, thin) {
                    push(
                        series,
                        at,
                        Some(window.done as f64 / seconds * scale),
                        &label,
                    );
                }
            }
        }
        let most = panel
            .series
            .iter()
            .flat_map(|series| &series.y)
            .flatten()
            .copied()
            .fold(0.0, f64::max);
        panel.y.range = Some((0.0, most * 1.05));
        panel
    };
    [false, true]
        .map(panel)
        .into_iter()
        .filter(|panel| !panel.series.is_empty())
        .collect()
}

/// The series with this name, created if necessary.
fn named<'a>(all: &'a mut Vec<Series>, name: &str) -> &'a mut Series {
    let index = all
        .iter()
        .position(|series| series.name == name)
        .unwrap_or_else(|| {
            all.push(Series {
                name: name.into(),
                ..Series::default()
            });
            all.len() - 1
        });
    &mut all[index]
}

/// Median, p99 and maximum response time of the first class of every point.
fn latencies(parts: &[Part<'_>], thin: usize) -> Lines {
    let mut panel = over_time("response time", Unit::Microseconds);
    panel.y.log = true;
    let figures = || LatencyFigure::shown_in(ShownIn::Charts);
    let series = |figure: LatencyFigure| Series {
        name: figure.label().into(),
        ..Series::default()
    };
    panel.series = figures().map(series).collect();
    for part in parts {
        let Some(stream) = part.record.streams.first() else {
            continue;
        };
        panel
            .series
            .iter_mut()
            .for_each(|series| gap(series, part.begun));
        for (at, _, window) in windows(part, stream, thin) {
            let summary = LatencySummary::of(&window.response);
            for (series, figure) in panel.series.iter_mut().zip(figures()) {
                push(series, at, summary.map(|summary| summary.get(figure)), "");
            }
        }
    }
    panel
        .series
        .iter_mut()
        .for_each(|series| series.labels.clear());
    panel
}

/// Wait events of database sessions, their physical reads and the server's CPU; empty for raw I/O.
fn waits(parts: &[Part<'_>]) -> Vec<Lines> {
    let moments: Vec<(f64, analyse::sql::ServerMoment)> = parts
        .iter()
        .filter_map(|part| Some((part.begun, analyse::sql::sql(part.record)?)))
        .flat_map(|(begun, sql)| {
            sql.timeline
                .into_iter()
                .map(move |moment| (begun + moment.at_s, moment))
        })
        .collect();
    if moments.is_empty() {
        return Vec::new();
    }
    let mut events: Vec<(String, f64)> = Vec::new();
    for (event, sessions) in moments.iter().flat_map(|(_, moment)| &moment.waits) {
        match events.iter_mut().find(|(known, _)| known == event) {
            Some((_, sum)) => *sum += sessions,
            None => events.push((event.clone(), *sessions)),
        }
    }
    events.sort_by(|one, other| other.1.total_cmp(&one.1));
    let mut waiting = over_time("sessions in", Unit::Number);
    let own: Vec<&str> = events
        .iter()
        .take(EVENTS_MAX)
        .map(|(event, _)| event.as_str())
        .collect();
    let stacked = |name: &str, of: &dyn Fn(&analyse::sql::ServerMoment) -> f64| Series {
        name: name.into(),
        shape: Shape::Stacked,
        x: moments.iter().map(|(at, _)| shortened(*at)).collect(),
        y: moments
            .iter()
            .map(|(_, moment)| Some(shortened(of(moment))))
            .collect(),
        ..Series::default()
    };
    for event in &own {
        let of =
            |moment: &analyse::sql::ServerMoment| moment.waits.get(*event).copied().unwrap_or(0.0);
        waiting.series.push(stacked(event, &of));
    }
    if events.len() > EVENTS_MAX {
        let others = |moment: &analyse::sql::ServerMoment| {
            moment
                .waits
                .iter()
                .filter(|(event, _)| !own.contains(&event.as_str()))
                .map(|(_, share)| share)
                .sum()
        };
        waiting.series.push(stacked("other events", &others));
    }
    let line = |label: &str, unit, of: fn(&analyse::sql::ServerMoment) -> Option<f64>| {
        let mut panel = over_time(label, unit);
        let mut series = Series {
            name: label.into(),
            ..Series::default()
        };
        moments
            .iter()
            .for_each(|(at, moment)| push(&mut series, *at, of(moment), ""));
        series.labels.clear();
        if series.y.iter().any(Option::is_some) {
            panel.series.push(series);
        }
        panel
    };
    vec![
        waiting,
        line("physical reads", Unit::PerSecond, |moment| {
            moment.physical_per_s
        }),
        line("database CPUs busy", Unit::Number, |moment| moment.cpu),
    ]
}

/// The kernel's counters between samples: the disks' queues, then utilisation.
fn host(parts: &[Part<'_>]) -> Vec<Lines> {
    let thin = thinning(
        parts.iter().map(|part| part.record.samples.len()).sum(),
        SAMPLES_MAX,
    );
    let (mut queue, mut shares) = (
        over_time("disk queue", Unit::Number),
        over_time("busy", Unit::Share),
    );
    shares.y.range = Some((0.0, 1.0));
    for part in parts {
        let samples: Vec<&Sample> = part.record.samples.iter().step_by(thin).collect();
        for pair in samples.windows(2) {
            let [before, after] = pair else { continue };
            // Intervals shorter than a few ticks of the kernel's clock show nothing.
            if after.at.since(before.at).as_secs_f64() < 0.1 {
                continue;
            }
            let middle =
                part.begun + f64::midpoint(before.at.as_secs_f64(), after.at.as_secs_f64());
            let add = |panel: &mut Lines, name: &str, value: Option<f64>| {
                let series = named(&mut panel.series, name);
                series.x.push(shortened(middle));
                series.y.push(value.map(shortened));
            };
            for (name, load) in device_loads(before, after) {
                add(&mut queue, &name, Some(load.queue));
                add(&mut shares, &format!("{name} utilisation"), Some(load.busy));
            }
            let host = host_load(before, after);
            add(&mut shares, "CPU", Some(host.busy));
            add(&mut shares, "CPU stolen", Some(host.stolen));
            if host.io_pressure.is_some() {
                add(&mut shares, "I/O pressure", host.io_pressure);
            }
        }
    }
    vec![queue, shares]
}
