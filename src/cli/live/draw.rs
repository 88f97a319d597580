//! Draws a frame of the live view: chooses the panels that fit, and fills them.
//!
//! Input: a [`LiveState`], the time, and an area of any size. Output: cells. On a small terminal
//! the least important panels are left out first. Nothing is drawn outside of the area.

use super::cells::{Buffer, Rect};
use super::chart::{self, put_right};
use super::column::{LiveColumn, Span};
use super::look::ColourMode;
use super::point::PointNow;
use super::state::{Activity, DonePoint, LiveState};
use anstyle::Style;
use rigel_analyse::quantity::{capital, clock, rounded_percent as percent, time};
use rigel_analyse::{LatencyFigure, ShownIn};
use rigel_model::{Bytes, Nanos};
use std::borrow::Cow;

/// Minimum width for lists beside the charts.
const WIDE: u16 = 100;

/// Minimum height for lists beside the charts.
const TALL: u16 = 20;

/// Width of a rate in the list of points, in columns.
const RATE: u16 = 13;

/// Width of a response time in it.
const FIGURE: u16 = 8;

/// Fraction of stolen CPU time above which a warning is shown.
const STEAL: f64 = 0.01;

/// Help text: the keys.
const HELP: [&str; 9] = [
    "q, Esc, Ctrl-C  stop, and keep the results so far",
    "Ctrl-C again    exit at once",
    "p               pause and resume the display",
    "?               this help",
    "",
    "A column is a window of time (soak: a round),",
    "the newest at the right; a line in the heat map",
    "marks the start of a point. Shades show the number",
    "of operations, on a logarithmic scale.",
];

/// Options of a frame besides the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameOptions {
    /// Colour mode.
    pub(super) look: ColourMode,
    /// True if the picture is frozen.
    pub(super) frozen: bool,
    /// True if the help is shown.
    pub(super) help: bool,
}

/// Draws a frame.
pub(super) fn draw(buffer: &mut Buffer, state: &LiveState, now: Nanos, view: FrameOptions) {
    let area = buffer.area();
    if area.width == 0 || area.height == 0 {
        return;
    }
    let look = view.look;
    let mut rest = FreeRows(area);
    header(buffer, rest.take(1), state, now, look);
    if area.height >= 6 {
        overall(buffer, rest.take(1), state, look);
    }
    if area.height >= 2 {
        load(buffer, rest.take(1), state, now, look);
    }
    if area.height >= 5 {
        keys(buffer, rest.take_last(1), view);
    }
    if area.width >= WIDE && area.height >= TALL {
        rest.take(1);
        let mut rows = rest.0;
        rows.height -= 1;
        let right = (rows.width * 36 / 100).clamp(43, 52);
        let side = Rect {
            x: rows.right() - right,
            width: right,
            ..rows
        };
        rows.width -= right + 3;
        charts(buffer, rows, state, look);
        let mut side = FreeRows(side);
        let host = host_rows(state);
        host_panel(buffer, side.take_last(host), state, look);
        side.take_last(1);
        list(buffer, side.0, state, look);
    } else {
        narrow(buffer, rest, state, look);
    }
    if view.help {
        help(buffer, area, look);
    }
}

/// The unused rows of an area.
struct FreeRows(Rect);

impl FreeRows {
    /// Takes rows from the top, or as many as there are.
    fn take(&mut self, rows: u16) -> Rect {
        let taken = Rect {
            height: rows.min(self.0.height),
            ..self.0
        };
        self.0.y += taken.height;
        self.0.height -= taken.height;
        taken
    }

    /// Takes rows from the bottom.
    fn take_last(&mut self, rows: u16) -> Rect {
        let height = rows.min(self.0.height);
        self.0.height -= height;
        Rect {
            y: self.0.bottom(),
            height,
            ..self.0
        }
    }
}

/// Draws panels one below the other, as far as they fit.
fn narrow(buffer: &mut Buffer, mut rest: FreeRows, state: &LiveState, look: ColourMode) {
    let rows = rest.0.height;
    // The most important panels come first; remaining rows go to the heat map.
    let throughput = 1 + if rows >= 15 { 3 } else { u16::from(rows >= 5) };
    let times = if rows >= 7 { 4 } else { 1 };
    let host = if rows >= 8 {
        host_rows(state).min(3)
    } else {
        u16::from(rows >= 4)
    };
    let done = u16::try_from(state.done.len()).unwrap_or(u16::MAX);
    let list_rows = if rows >= 13 { done.clamp(1, 4) + 1 } else { 0 };
    throughput_panel(buffer, rest.take(throughput), state, look);
    times_panel(buffer, rest.take(times), state, look);
    let host = rest.take_last(host);
    let points = rest.take_last(if rest.0.height >= list_rows + 4 || rows < 17 {
        list_rows
    } else {
        0
    });
    if rest.0.height >= 4 {
        heat_panel(buffer, rest.0, state, look);
    }
    list(buffer, points, state, look);
    host_panel(buffer, host, state, look);
}

/// Draws the charts on a large terminal.
fn charts(buffer: &mut Buffer, area: Rect, state: &LiveState, look: ColourMode) {
    let mut rest = FreeRows(area);
    let is_tall = area.height >= 26;
    throughput_panel(buffer, rest.take(if is_tall { 6 } else { 4 }), state, look);
    rest.take(1);
    times_panel(buffer, rest.take(if is_tall { 7 } else { 4 }), state, look);
    rest.take(1);
    heat_panel(buffer, rest.0, state, look);
}

fn header(buffer: &mut Buffer, area: Rect, state: &LiveState, now: Nanos, look: ColourMode) {
    let left = state.left(now).filter(|_| !state.draining);
    let left = left.map_or_else(String::new, |left| format!(", {} left", clock(left)));
    let time = format!("{} elapsed{left}", clock(now.as_secs_f64()));
    let width = u16::try_from(time.chars().count()).unwrap_or(u16::MAX);
    // The time is more important than the end of a long name, but less than its beginning.
    let is_room = area.width >= width + 12;
    let right = if is_room {
        area.right() - width - 1
    } else {
        area.right()
    };
    let x = buffer.put(area.x, area.y, right, "rigel ", look.title());
    buffer.put(x, area.y, right, &state.title, ColourMode::strong());
    if is_room {
        put_right(
            buffer,
            area.x,
            area.right(),
            area.y,
            &time,
            ColourMode::faint(),
        );
    }
}

/// Draws the progress of the run.
fn overall(buffer: &mut Buffer, area: Rect, state: &LiveState, look: ColourMode) {
    let text = match &state.stage {
        Activity::Filling { done, of, .. } => format!("{} of {}", whole(*done), Bytes(*of)),
        _ if state.number == 0 => format!("before the first {}", state.step),
        _ if state.points == 0 => format!("{} {}", state.step, state.number),
        _ => format!("{} {} of {}", state.step, state.number, state.points),
    };
    let x = buffer.put(area.x, area.y, area.right(), &text, ColourMode::strong()) + 2;
    let share = state.share();
    let room = area.right().saturating_sub(x + 7);
    chart::gauge(
        buffer,
        Rect {
            x,
            width: room,
            ..area
        },
        share,
        look,
    );
    put_right(
        buffer,
        x,
        area.right(),
        area.y,
        &format!("{:.0} %", share * 100.0),
        ColourMode::strong(),
    );
}

/// Rounds bytes down to whole MiB, so that the width of the figure stays constant.
fn whole(bytes: u64) -> String {
    format!("{} MiB", bytes >> 20)
}

/// Draws the current activity.
fn load(buffer: &mut Buffer, area: Rect, state: &LiveState, now: Nanos, look: ColourMode) {
    let mut x = area.x;
    if state.draining {
        let text = if area.width < 60 {
            "stopping"
        } else {
            "stopping: the results so far are kept"
        };
        x = buffer.put(x, area.y, area.right(), text, look.warning()) + 2;
    }
    if let Some(stalled) = state.stalled {
        let text = stalled.to_string();
        x = buffer.put(x, area.y, area.right(), &text, look.warning()) + 2;
    }
    let (strong, faint) = match (&state.stage, &state.point) {
        (Activity::Running, Some(point)) => (point.name.clone(), running(point)),
        (Activity::Doing(what) | Activity::Filling { what, .. }, _) => {
            (what.clone(), String::new())
        }
        (Activity::Waiting { what, until }, _) => (
            what.clone(),
            format!("in {}", clock(until.since(now).as_secs_f64())),
        ),
        (Activity::Beginning, _) => (format!("starting point {}", state.number), String::new()),
        _ => ("preparing".to_string(), String::new()),
    };
    let x = buffer.put(x, area.y, area.right(), &strong, ColourMode::strong()) + 2;
    buffer.put(x, area.y, area.right(), &faint, ColourMode::faint());
}

/// The load of a point, and its progress.
fn running(point: &PointNow) -> String {
    let (loads, slowest) = (point.loads(), point.slowest());
    let seconds = |nanos: Nanos| format!("{:.1} s", nanos.as_secs_f64());
    let stands = match (point.measuring_since, point.work(), point.most()) {
        (None, ..) => format!("warming up for {}", seconds(point.elapsed)),
        (_, Some((done, ops)), _) => {
            format!(
                "{done} of {ops} operations done in {}",
                seconds(point.measured())
            )
        }
        (_, None, Some(most)) if point.precision().is_some() => {
            format!(
                "measured {} of {} at most",
                seconds(point.measured()),
                seconds(most)
            )
        }
        (_, None, Some(most)) => format!(
            "measured {} of {}",
            seconds(point.measured()),
            seconds(most)
        ),
        (_, None, None) => format!("measured {}", seconds(point.measured())),
    };
    let beside = point.beside.iter().fold(String::new(), |text, class| {
        format!("{text}, and also {class}")
    });
    let mean = point.mean.filter(|_| point.span == Span::Round);
    let mean = mean.map_or_else(String::new, |mean| format!(", mean {mean} now"));
    format!("{loads}, {stands}{mean}{beside}{slowest}")
}

fn keys(buffer: &mut Buffer, area: Rect, view: FrameOptions) {
    let look = view.look;
    let mut x = area.x;
    if view.frozen {
        x = buffer.put(x, area.y, area.right(), "paused", look.warning()) + 2;
    }
    let freeze = if view.frozen { "resume" } else { "pause" };
    let stop = if area.width < 60 {
        "stop"
    } else {
        "stop, keep results"
    };
    for (key, what) in [("q", stop), ("p", freeze), ("?", "help")] {
        x = buffer.put(x, area.y, area.right(), key, ColourMode::strong()) + 1;
        x = buffer.put(x, area.y, area.right(), what, ColourMode::faint()) + 3;
    }
}

/// Draws the title of a panel: its name, its main text, and a fainter text beside it.
fn title(
    buffer: &mut Buffer,
    area: Rect,
    name: &str,
    strong: &str,
    faint: &str,
    look: ColourMode,
) -> u16 {
    // A narrow terminal shows figures instead of names.
    let name = if area.width <= 40 { "" } else { name };
    let gap = if name.is_empty() { 0 } else { 2 };
    let x = buffer.put(area.x, area.y, area.right(), name, look.title()) + gap;
    let x = buffer.put(x, area.y, area.right(), strong, ColourMode::strong());
    let gap = u16::from(!strong.is_empty());
    buffer.put(x + gap, area.y, area.right(), faint, ColourMode::faint())
}

/// The columns that a chart in `area` shows.
fn visible(
    state: &LiveState,
    area: Rect,
) -> impl DoubleEndedIterator<Item = &LiveColumn> + Clone + use<'_> {
    let from = state.columns.len().saturating_sub(chart::shown(area));
    state.columns.range(from..)
}

fn throughput_panel(buffer: &mut Buffer, area: Rect, state: &LiveState, look: ColourMode) {
    if area.height == 0 {
        return;
    }
    let unit = state.unit;
    let now = state
        .columns
        .back()
        .map_or_else(|| "-".to_string(), |column| unit.rate(column.rate));
    let failed: u64 = visible(state, area).map(|column| column.failed).sum();
    let interval = state.point.as_ref().and_then(PointNow::interval);
    let asked = state.point.as_ref().and_then(PointNow::precision);
    // Wider than the interval of the report, which looks once. So it is not set beside what was asked.
    let mut words = interval.map_or_else(String::new, |(rate, half)| {
        if area.width < 50 {
            format!("± {}", percent(half))
        } else {
            format!("mean {} ± {} so far", unit.number(rate), percent(half))
        }
    });
    let is_in_round = state.span == Some(Span::Round)
        && state.columns.back().is_some_and(|column| column.warming);
    if is_in_round && area.width >= 50 {
        words = "faint: the last seconds of the current round".into();
    }
    let mut x = title(buffer, area, "Throughput", &now, &words, look) + 2;
    if failed > 0 {
        x = buffer.put(
            x,
            area.y,
            area.right(),
            &format!("{failed} failed"),
            look.warning(),
        ) + 2;
    }
    if let (Some(point), Some(_)) = (&state.point, asked) {
        let narrowing: Vec<f64> = point.narrowing.iter().copied().collect();
        let top = narrowing.iter().copied().fold(0.0, f64::max);
        let width = area.right().saturating_sub(x).min(16);
        chart::spark(
            buffer,
            Rect {
                x,
                width,
                height: 1,
                ..area
            },
            &narrowing,
            top,
            look.bar(),
        );
    }
    let plot = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    if plot.height == 0 || area.width <= chart::LABEL + 4 {
        return;
    }
    let top = visible(state, area)
        .filter(|column| column.unit == unit)
        .map(|column| column.rate)
        .fold(0.0, f64::max);
    if top > 0.0 {
        let end = plot.x + chart::LABEL - 1;
        put_right(
            buffer,
            plot.x,
            end,
            plot.y,
            &unit.rate(top),
            ColourMode::faint(),
        );
        if plot.height > 1 {
            put_right(
                buffer,
                plot.x,
                end,
                plot.bottom() - 1,
                "0",
                ColourMode::faint(),
            );
        }
        chart::rates(buffer, plot, visible(state, area), (top, unit), look);
    }
}

fn times_panel(buffer: &mut Buffer, area: Rect, state: &LiveState, look: ColourMode) {
    if area.height == 0 {
        return;
    }
    let figures = || LatencyFigure::shown_in(ShownIn::Charts);
    let seen = || visible(state, area).filter_map(|column| column.latency);
    let least = seen().map(|times| times.p50_us).reduce(f64::min);
    let range = least.zip(seen().map(|times| times.max_us).reduce(f64::max));
    let now = visible(state, area).rev().find_map(|column| column.latency);
    let shown = |figure| now.map_or("-".to_string(), |now| time(now.get(figure)));
    let panels = u16::try_from(figures().count()).unwrap_or(u16::MAX);
    if area.height <= panels || area.width <= chart::LABEL + 4 {
        let all = figures().map(|figure| format!("{} {}", figure.label(), shown(figure)));
        let all: Vec<String> = all.collect();
        title(buffer, area, "Response time", &all.join("  "), "", look);
        return;
    }
    let words = range.map_or_else(String::new, |(low, high)| {
        format!("{} to {}, log scale", time(low), time(high))
    });
    title(buffer, area, "Response time", "", &words, look);
    let each = (area.height - 1) / panels;
    for (at, figure) in (0u16..).zip(figures().rev()) {
        let row = Rect {
            y: area.y + 1 + at * each,
            height: each,
            ..area
        };
        let y = row.bottom() - 1;
        let x = buffer.put(row.x, y, row.right(), figure.label(), ColourMode::faint());
        put_right(
            buffer,
            x,
            row.x + chart::LABEL - 1,
            y,
            &shown(figure),
            ColourMode::strong(),
        );
        if let Some(range) = range {
            chart::times(buffer, row, visible(state, area), figure, range, look);
        }
    }
}

fn heat_panel(buffer: &mut Buffer, area: Rect, state: &LiveState, look: ColourMode) {
    if area.height < 3 {
        return;
    }
    let columns = state.columns.len().min(chart::shown(area));
    let rounds = visible(state, area)
        .filter(|column| !column.warming)
        .count();
    let words = match state.span {
        Some(Span::Round) if rounds == 0 => {
            "a column is a round; no round is complete yet".to_string()
        }
        Some(Span::Round) => format!("a column is a round; {rounds} are shown"),
        Some(Span::Window(width)) if columns > 0 => {
            let span = Nanos(width.0.saturating_mul(columns as u64));
            format!(
                "a column is {}, all are {}",
                time(width.as_micros_f64()),
                span_text(span)
            )
        }
        _ => "no measurements yet".to_string(),
    };
    title(buffer, area, "Response times over time", "", &words, look);
    let plot = Rect {
        y: area.y + 1,
        height: area.height - 1,
        ..area
    };
    chart::heat(buffer, plot, visible(state, area), look);
}

fn span_text(span: Nanos) -> String {
    if span < Nanos::from_secs(120) {
        format!("{:.0} s", span.as_secs_f64())
    } else {
        clock(span.as_secs_f64())
    }
}

/// Number of rows of the host panel.
fn host_rows(state: &LiveState) -> u16 {
    let devices = state.hosts.back().map_or(0, |host| host.devices.len());
    2 + u16::try_from(devices.min(4)).unwrap_or(0)
}

fn host_panel(buffer: &mut Buffer, area: Rect, state: &LiveState, look: ColourMode) {
    if area.height == 0 {
        return;
    }
    let mut rows = FreeRows(area);
    if area.height > 1 {
        let is_one_of_several = state
            .point
            .as_ref()
            .is_some_and(|point| point.ranks.is_some());
        let words = if is_one_of_several {
            "that of rank 0 alone, last second"
        } else {
            "last second"
        };
        title(buffer, rows.take(1), "Host", "", words, look);
    }
    let Some(now) = state.hosts.back() else {
        buffer.put(
            area.x,
            rows.0.y.min(area.bottom() - 1),
            area.right(),
            "no data yet",
            ColourMode::faint(),
        );
        return;
    };
    let cpu = now.host.as_ref().map(|host| (host, rows.take_last(1)));
    for (name, load) in &now.devices {
        let row = rows.take(1);
        if row.height == 0 {
            break;
        }
        let busy: Vec<f64> = state.hosts.iter().map(|host| busy_of(host, name)).collect();
        let figures = format!(
            "{:>3.0} % busy, queue {:.1}, {:.0} MB/s",
            load.busy * 100.0,
            load.queue,
            load.megabytes_per_s
        );
        line(buffer, row, name, &figures, &busy, look);
    }
    let Some((host, cpu)) = cpu else {
        return;
    };
    let pressure = host
        .io_pressure
        .map_or_else(String::new, |share| format!("  I/O {}", percent(share)));
    let figures = format!(
        "{:>3.0} % busy  steal {}{pressure}",
        host.busy * 100.0,
        percent(host.stolen)
    );
    let busy: Vec<f64> = state
        .hosts
        .iter()
        .filter_map(|host| Some(host.host.as_ref()?.busy))
        .collect();
    line(buffer, cpu, "CPU", &figures, &busy, look);
    if host.stolen > STEAL {
        buffer.put(cpu.x, cpu.y, cpu.x + 3, "CPU", look.warning());
    }
}

fn busy_of(host: &super::state::HostNow, name: &str) -> f64 {
    host.devices
        .iter()
        .find(|(known, _)| known == name)
        .map_or(0.0, |(_, load)| load.busy)
}

/// Draws a row of the host panel: name, figures, and a chart of its utilization.
fn line(buffer: &mut Buffer, row: Rect, name: &str, figures: &str, busy: &[f64], look: ColourMode) {
    let x = buffer.put(row.x, row.y, row.right(), name, ColourMode::strong());
    let x = buffer.put(
        (row.x + 8).max(x + 1),
        row.y,
        row.right(),
        figures,
        Style::new(),
    ) + 1;
    let width = row.right().saturating_sub(x);
    if width >= 3 {
        chart::spark(buffer, Rect { x, width, ..row }, busy, 1.0, look.bar());
    }
}

/// Draws the list of completed points.
fn list(buffer: &mut Buffer, area: Rect, state: &LiveState, look: ColourMode) {
    if area.height < 2 {
        return;
    }
    let mut rows = FreeRows(area);
    let head = rows.take(1);
    let figures = || LatencyFigure::shown_in(ShownIn::Lines);
    let columns = u16::try_from(figures().count()).unwrap_or(0);
    let name = (area.width.saturating_sub(RATE + columns * FIGURE)).clamp(8, 30);
    let ends = (0..=columns).map(|column| area.x + name + RATE + column * FIGURE);
    let ends: Vec<u16> = ends.collect();
    // Of a watch, what the latest interval consists of says more than a list of sums.
    let (name_of_rows, words) = if state.streams.is_empty() {
        let words = format!("{} done", state.done.len());
        (format!("{}s", capital(state.step)), words)
    } else {
        ("Requests".into(), "last interval".into())
    };
    title(buffer, head, &name_of_rows, "", &words, look);
    let headings = std::iter::once("rate").chain(figures().map(LatencyFigure::label));
    for (end, what) in ends.iter().zip(headings) {
        put_right(
            buffer,
            area.x + name,
            *end,
            head.y,
            what,
            ColourMode::faint(),
        );
    }
    let from = state.done.len().saturating_sub(usize::from(rows.0.height));
    let is_watch = !state.streams.is_empty();
    let points = state.done.range(from..).filter(|_| !is_watch);
    for done in points.chain(&state.streams) {
        let row = rows.take(1);
        if row.height > 0 {
            done_row(buffer, row, done, name, &ends);
        }
    }
    if state.done.is_empty() {
        buffer.put(
            area.x,
            head.y + 1,
            area.right(),
            "none yet",
            ColourMode::faint(),
        );
    }
}

fn done_row(buffer: &mut Buffer, row: Rect, done: &DonePoint, name: u16, ends: &[u16]) {
    let style = if done.complete {
        ColourMode::strong()
    } else {
        ColourMode::faint()
    };
    buffer.put(row.x, row.y, row.x + name, &end_of(&done.name, name), style);
    let times = LatencyFigure::shown_in(ShownIn::Lines).map(|figure| {
        let latency = done.latency;
        latency.map_or("-".to_string(), |latency| time(latency.get(figure)))
    });
    let figures = std::iter::once(done.unit.rate(done.rate)).chain(times);
    for (end, figure) in ends.iter().zip(figures) {
        let plain = Style::new();
        put_right(
            buffer,
            row.x + name,
            (*end).min(row.right()),
            row.y,
            &figure,
            if done.complete {
                plain
            } else {
                ColourMode::faint()
            },
        );
    }
}

/// A name in `width` columns with one of them free. Points differ in how their names end: the depth, the rate.
fn end_of(name: &str, width: u16) -> Cow<'_, str> {
    let (length, room) = (name.chars().count(), usize::from(width).saturating_sub(1));
    if length <= room {
        return name.into();
    }
    let end = name.char_indices().nth(length - room.saturating_sub(1));
    format!("…{}", end.map_or("", |(at, _)| &name[at..])).into()
}

/// Draws the help in the centre.
fn help(buffer: &mut Buffer, area: Rect, look: ColourMode) {
    let width = 53.min(area.width);
    let height = u16::try_from(HELP.len() + 2)
        .unwrap_or(u16::MAX)
        .min(area.height);
    let x = area.x + (area.width - width) / 2;
    let y = area.y + (area.height - height) / 2;
    let blank = " ".repeat(usize::from(width));
    let style = if look == ColourMode::Plain {
        ColourMode::strong()
    } else {
        look.bar()
    };
    for y in y..y + height {
        buffer.put(x, y, x + width, &blank, Style::new());
    }
    let rule = "─".repeat(usize::from(width));
    buffer.put(x, y, x + width, &rule, style);
    buffer.put(x, y + height - 1, x + width, &rule, style);
    for (text, y) in HELP.iter().zip(y + 1..(y + height).saturating_sub(1)) {
        buffer.put(x + 2, y, x + width, text, Style::new());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_too_long_keeps_what_differs() {
        assert_eq!(end_of("large reads, depth 8", 21), "large reads, depth 8");
        assert_eq!(end_of("large reads, depth 8", 16), "…reads, depth 8");
        assert_eq!(end_of("large reads, depth 8", 4), "… 8");
    }
}
