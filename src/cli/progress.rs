//! Progress of a run: one line that is redrawn on a terminal, plain lines without a terminal, or
//! the live view.

use super::live::{ThroughputUnit, View};
use super::output;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rigel_analyse::quantity;
use rigel_analyse::{ClassSummary, LatencyFigure, PointSummary, ShownIn, summarise};
use rigel_device::clock::Clock;
use rigel_drive::Live;
use rigel_measure::run::{Event, RunningRanks};
use rigel_model::record::{End, PointRecord, WatchedInterval};
use rigel_model::{
    Bytes, Coordinates, MIB, Nanos, Point, Sample, StalledIo, Step, Until, in_line, spoken,
};
use std::fmt::Write;
use std::io::IsTerminal;
use std::sync::atomic::Ordering::Relaxed;

/// Interval between progress lines without a terminal.
const LINE_EVERY: Nanos = Nanos::from_secs(10);

/// Without a terminal, each of this many parts of a run has a line, even if it is shorter than that.
const LINES_MIN: usize = 10;

/// The form of progress output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgressMode {
    /// No progress output.
    Silent,
    /// Lines.
    Lines,
    /// The live screen.
    Live,
}

impl ProgressMode {
    /// The form according to the options `--no-progress` and `--live`.
    pub(super) fn of(no_progress: bool, live: bool) -> Self {
        match (no_progress, live) {
            (true, _) => Self::Silent,
            (_, true) => Self::Live,
            _ => Self::Lines,
        }
    }
}

/// How many points a run has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Total {
    /// This many; 0 if it has no end.
    Known(usize),
    /// A search that usually takes this many, and may take more or fewer.
    Usual(usize),
}

impl Total {
    /// The number of points, known or usual.
    fn points(self) -> usize {
        match self {
            Self::Known(points) | Self::Usual(points) => points,
        }
    }

    /// The total at point `number`; 0 if nobody knows how many there are.
    fn at(self, number: usize) -> usize {
        match self {
            Self::Usual(usual) if number > usual => 0,
            total => total.points(),
        }
    }

    /// `point 3 of 8`, `point 3 of about 8`, `point 9, 8 are usual`.
    fn in_words(self, number: usize) -> String {
        match self {
            Self::Known(0) => format!("point {number}"),
            Self::Known(points) => format!("point {number} of {points}"),
            Self::Usual(usual) if number <= usual => format!("point {number} of about {usual}"),
            Self::Usual(usual) => format!("point {number}, {usual} are usual"),
        }
    }

    /// Seconds until the last point ends, if `ended` points of `each` seconds have ended and the current one has
    /// run for `elapsed`; `None` if that is not known, as of a search beyond what is usual.
    fn left(self, ended: usize, each: f64, elapsed: f64) -> Option<f64> {
        const SHOWN_LEAST: f64 = 0.5;
        let left = each * self.points().checked_sub(ended)? as f64 - elapsed;
        Some(left).filter(|left| *left >= SHOWN_LEAST)
    }

    /// `, 40 s left`; of a search `, about 40 s left`; empty if that is not known.
    fn left_in_words(self, left: Option<f64>) -> String {
        let about = if let Self::Usual(_) = self {
            "about "
        } else {
            ""
        };
        left.map_or_else(String::new, |left| {
            format!(", {about}{} left", seconds(left))
        })
    }
}

/// Shows the progress of a run.
pub(super) struct Progress {
    clock: Clock,
    /// `None` if nothing is shown.
    line: Option<ProgressLine>,
    total: Total,
    number: usize,
    /// Planned time of a point.
    seconds_planned: f64,
    /// True if points begin on a timetable, however long the previous ones took.
    on_timetable: bool,
    began: Nanos,
    printed: Nanos,
    /// Number of the last point that has a line.
    last_printed: usize,
    /// Live counters at the last redraw.
    last: (Nanos, Vec<(u64, u64)>),
    /// The ranks that measure the current point; `None` if this process measures alone.
    ranks: Option<RunningRanks>,
}

enum ProgressLine {
    Terminal(ProgressBar),
    Plain,
    Live(View),
}

impl Progress {
    /// Progress of points of about `seconds` each. `title` is the top line of the live view: verb and
    /// target.
    pub(super) fn new(title: &str, total: Total, seconds: f64, way: ProgressMode) -> Self {
        let lines = || {
            if !std::io::stderr().is_terminal() {
                return ProgressLine::Plain;
            }
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(
                ProgressStyle::with_template("{wide_msg}").expect("a template without mistakes"),
            );
            ProgressLine::Terminal(bar)
        };
        let line = match way {
            ProgressMode::Silent => None,
            ProgressMode::Lines => Some(lines()),
            ProgressMode::Live => Some(
                View::open(&in_line(&spoken(title)), total.points()).map_or_else(
                    |why| {
                        output::remark(&format!(
                            "no live view: {why}; progress is printed in lines\n"
                        ));
                        lines()
                    },
                    ProgressLine::Live,
                ),
            ),
        };
        let clock = Clock::real();
        Self {
            began: clock.now(),
            printed: clock.now(),
            last_printed: 0,
            clock,
            line,
            total,
            number: 0,
            seconds_planned: seconds,
            on_timetable: false,
            last: (Nanos(0), Vec::new()),
            ranks: None,
        }
    }

    /// Shows that `what` is in progress: filling a scratch file, or tables.
    pub(super) fn fill(&mut self, what: &str, done: Bytes, of: Bytes) {
        let spent = self.clock.now().since(self.began);
        self.fill_since(spent, what, done, of);
    }

    /// The same for work that began `spent` ago.
    fn fill_since(&mut self, spent: Nanos, what: &str, done: Bytes, of: Bytes) {
        let (now, spent) = (self.clock.now(), spent.as_secs_f64());
        let left = if done.0 > 0 {
            spent * (of.0 - done.0) as f64 / done.0 as f64
        } else {
            0.0
        };
        let text = format!("{what}: {} of {of}, {} left", whole(done), seconds(left));
        match &self.line {
            Some(ProgressLine::Live(view)) => {
                view.update(|state, now| state.fill(what, done.0, of.0, left, now));
            }
            Some(ProgressLine::Terminal(bar)) => bar.set_message(in_line(&text).into_owned()),
            Some(ProgressLine::Plain) if now >= self.printed.plus(LINE_EVERY) => {
                self.printed = now;
                output::remark(&format!("{text}\n"));
            }
            _ => {}
        }
    }

    /// Shows that something without a measurable size is in progress.
    pub(super) fn say(&mut self, what: &str) {
        let what = &spoken(what);
        match &self.line {
            Some(ProgressLine::Terminal(bar)) => bar.set_message(in_line(what).into_owned()),
            Some(ProgressLine::Plain) => output::remark(&format!("{}\n", in_line(what))),
            Some(ProgressLine::Live(view)) => view.update(|state, _| state.say(&in_line(what))),
            None => {}
        }
    }

    /// Shows an interval of a watch: `line` where there is no live view.
    pub(super) fn observed(&mut self, interval: &WatchedInterval, line: &str) {
        if let Some(ProgressLine::Live(view)) = &self.line {
            view.update(|state, _| state.observed(interval));
        } else {
            self.say(line);
        }
    }

    /// Shows how long a server that is watched has not answered; `None` if it does. The line of a
    /// terminal is that of the last interval again once the next one has ended.
    pub(super) fn silent(&self, stalled: Option<StalledIo>) {
        match (&self.line, stalled) {
            (Some(ProgressLine::Live(view)), _) => view.update(|state, _| state.silent(stalled)),
            (Some(ProgressLine::Terminal(bar)), Some(stalled)) => {
                bar.set_message(stalled.to_string());
            }
            _ => {}
        }
    }

    /// Shows an event of a run. A point that begins is the next one, or the round with its number.
    pub(super) fn on_event(&mut self, event: &Event) {
        match event {
            Event::Fill { done, of } => self.fill("filling a scratch file", *done, *of),
            Event::LookForHolders { target } => self.aside(|| {
                output::remark(&format!(
                    "looking who has '{}' open\n",
                    in_line(&target.display().to_string())
                ));
            }),
            Event::Begin { point } => match point.coordinates {
                Coordinates::Round { round, .. } => self.begin_number(round as usize),
                _ => self.begin(),
            },
            Event::Live {
                point,
                live,
                samples,
                ranks,
            } => {
                self.ranks = ranks.cloned();
                self.live(point, live, samples);
            }
            Event::Parts(_) => {}
            Event::End(record) => self.end(record),
            Event::Waiting { left } => self.waiting(*left),
            Event::Stall(event) => self.aside(|| output::remark(&format!("{event}\n"))),
            Event::Trouble(what) => self.aside(|| output::remark(&format!("{what}\n"))),
        }
    }

    /// Shows that a point begins.
    fn begin(&mut self) {
        if self.number == 0 {
            self.began = self.clock.now();
        }
        self.number += 1;
        self.last = (Nanos(0), Vec::new());
        self.ranks = None;
        if let Some(ProgressLine::Live(view)) = &self.line {
            let left = self.seconds_left(self.number - 1, Nanos(0));
            view.update(|state, now| {
                state.begin(self.number, self.total.at(self.number), now);
                state.set_left(left, now);
            });
        }
    }

    /// Shows that this round of a soak begins, counted from 1.
    fn begin_number(&mut self, number: usize) {
        // On a timetable, the time of a round is known.
        self.on_timetable = true;
        self.number = number - 1;
        self.begin();
    }

    /// Shows the time until the next round of a soak.
    fn waiting(&mut self, left: Nanos) {
        let ended = self.number;
        match &self.line {
            Some(ProgressLine::Terminal(bar)) => {
                let of = match self.total.points() {
                    0 => String::new(),
                    rounds => format!(" of {rounds}"),
                };
                bar.set_message(format!(
                    "round {ended}{of} done, next in {}",
                    seconds(left.as_secs_f64())
                ));
            }
            Some(ProgressLine::Live(view)) => {
                view.update(|state, now| {
                    state.wait(&format!("round {}", ended + 1), now.plus(left));
                });
            }
            _ => {}
        }
    }

    /// Shows how much of the target a pass of preconditioning has written.
    fn preconditioning(&mut self, point: &Point, live: &Live) {
        let (Until::Ops(ops), Some(class), Some(stream)) =
            (point.until, live.classes.first(), point.streams.first())
        else {
            return;
        };
        let bytes = |ops: u64| Bytes(ops.saturating_mul(stream.length.into()));
        let done = class.done.load(Relaxed).min(ops);
        let what = point.coordinates.to_string();
        self.fill_since(live.elapsed, &what, bytes(done), bytes(ops));
    }

    /// Shows a running point.
    fn live(&mut self, point: &Point, live: &Live, samples: &[Sample]) {
        if point.coordinates.step() == Step::Precondition {
            self.preconditioning(point, live);
            return;
        }
        if let Some(ProgressLine::Live(view)) = &self.line {
            let left = self.seconds_left(self.number.saturating_sub(1), live.elapsed);
            view.update(|state, now| {
                if state.wants_look(now) {
                    state.live(point, live, samples, now);
                    state.share_with(self.ranks.as_ref());
                    state.set_left(left, now);
                }
            });
        }
        let Some(ProgressLine::Terminal(bar)) = &self.line else {
            return;
        };
        let counts: Vec<(u64, u64)> = live
            .classes
            .iter()
            .map(|class| (class.done.load(Relaxed), class.response.load(Relaxed)))
            .collect();
        let (then, before) = std::mem::replace(&mut self.last, (live.elapsed, counts.clone()));
        let span = live.elapsed.since(then).as_secs_f64();
        // The most important part comes first, because a narrow terminal truncates the line.
        let left = self.seconds_left(self.number.saturating_sub(1), live.elapsed);
        let mut text = format!(
            "{}{}: {}",
            self.total.in_words(self.number),
            self.total.left_in_words(left),
            point.coordinates
        );
        if let Some(ranks) = &self.ranks {
            let _ = write!(text, " | {ranks}");
        }
        if live.measuring_since.is_none() {
            text.push_str(" | warming up");
        }
        if let Some(stalled) = live.stalled {
            let _ = write!(text, " | {stalled}");
        }
        if before.len() == counts.len() && span > 0.0 {
            for ((name, (done, response)), (done_before, response_before)) in
                rigel_drive::classes(point).iter().zip(&counts).zip(&before)
            {
                let done = done.saturating_sub(*done_before);
                if done == 0 {
                    continue;
                }
                let stream = point.streams.iter().find(|stream| stream.name == *name);
                let is_sql = stream.is_some_and(|stream| stream.sql.is_some());
                let unit = stream.map_or(ThroughputUnit::Iops, |stream| {
                    ThroughputUnit::of(is_sql, stream.length)
                });
                let name = label(name, is_sql);
                let rate = done as f64 / span;
                let mean = Nanos(response.saturating_sub(*response_before) / done);
                // Only one rate per class, so that two classes fit in 80 columns: the one that is
                // usual for this size.
                let _ = if let ThroughputUnit::Bytes(length) = unit {
                    write!(
                        text,
                        " | {name}{} {mean}",
                        quantity::mb_per_second((rate * f64::from(length) / 1e6).round())
                    )
                } else {
                    write!(
                        text,
                        " | {name}{} {} {mean}",
                        quantity::count(rate.round()),
                        unit.name()
                    )
                };
            }
        }
        if let Some(slowest) = self.ranks.as_ref().and_then(|ranks| ranks.slowest.as_ref()) {
            let rate = quantity::count(slowest.rate.round());
            let _ = write!(text, " | slowest {} {rate}/s", slowest.name);
        }
        bar.set_message(in_line(&text).into_owned());
    }

    /// Shows that a point is in the journal.
    fn end(&mut self, record: &PointRecord) {
        if let Some(ProgressLine::Live(view)) = &self.line {
            let summary = summarise(record);
            view.update(|state, _| state.end(record, &summary));
        }
        let wrong = went_wrong(record);
        if matches!(self.line, Some(ProgressLine::Plain)) && self.is_due(!wrong.is_empty()) {
            let left = self.seconds_left(self.number, Nanos(0));
            let left = self.total.left_in_words(left);
            let figures = short_figures(&summarise(record));
            // What went wrong may be all there is to say.
            let first = if figures.is_empty() {
                wrong.strip_prefix(';')
            } else {
                None
            };
            let figures = figures + first.unwrap_or(&wrong);
            let ranks = self.ranks.as_ref();
            let ranks = ranks.map_or_else(String::new, |ranks| format!(", {ranks}"));
            let point = self.total.in_words(self.number);
            let line = format!("{point}: {}{ranks}:{figures}{left}", record.coordinates);
            output::remark(&format!("{line}\n"));
        }
    }

    /// Whether the point that ended has a line: the first, one where something `went_wrong`, and others
    /// after an interval or a part of the run. Of a search nobody knows which point is the last.
    fn is_due(&mut self, went_wrong: bool) -> bool {
        let now = self.clock.now();
        let part = self.total.points().div_ceil(LINES_MIN).max(1);
        let is_due = went_wrong
            || self.number <= 1
            || self.number - self.last_printed.min(self.number) >= part
            || now >= self.printed.plus(LINE_EVERY);
        if is_due {
            (self.printed, self.last_printed) = (now, self.number);
        }
        is_due
    }

    /// Runs `print` without disturbing the line that is redrawn.
    pub(super) fn aside(&self, print: impl FnOnce()) {
        match &self.line {
            Some(ProgressLine::Terminal(bar)) => bar.suspend(print),
            Some(ProgressLine::Live(view)) => view.aside(print),
            _ => print(),
        }
    }

    /// Ends the output.
    pub(super) fn finish(&self) {
        match &self.line {
            Some(ProgressLine::Terminal(bar)) => bar.finish_and_clear(),
            Some(ProgressLine::Live(view)) => view.close(),
            _ => {}
        }
    }

    /// Seconds until the last point ends, if `ended` points have ended and the current one has run
    /// for `elapsed`; `None` if unknown. Based on the time of the previous points, or on the planned time.
    fn seconds_left(&self, ended: usize, elapsed: Nanos) -> Option<f64> {
        let spent = self.clock.now().since(self.began).as_secs_f64();
        let each = if ended > 0 && !self.on_timetable {
            (spent - elapsed.as_secs_f64()) / ended as f64
        } else {
            self.seconds_planned
        };
        self.total.left(ended, each, elapsed.as_secs_f64())
    }
}

/// Says why a point broke, and how many of its operations failed, by cause.
fn went_wrong(record: &PointRecord) -> String {
    let mut text = match &record.end {
        End::Broken(why) => format!("; broken: {why}"),
        End::Complete | End::Stopped => String::new(),
    };
    for (cause, count) in record
        .streams
        .iter()
        .flat_map(|stream| stream.total().failed)
    {
        let _ = write!(text, "; {count} failed: {cause}");
    }
    text
}

/// The figures of a point's classes, in short.
fn short_figures(summary: &PointSummary) -> String {
    /// Number of classes in a line.
    const SHOWN_MOST: usize = 2;
    let class = |class: &ClassSummary| {
        let latency = class.latency.map_or_else(String::new, |latency| {
            let time = |figure: LatencyFigure| {
                format!("{} {}", figure.label(), quantity::time(latency.get(figure)))
            };
            let times: Vec<String> = LatencyFigure::shown_in(ShownIn::Lines).map(time).collect();
            format!(", {}", times.join(" "))
        });
        let is_sql = summary.sql.is_some();
        let rate = match ThroughputUnit::of(is_sql, class.io_bytes) {
            ThroughputUnit::Bytes(_) => quantity::mb_per_second(class.bytes_per_s() / 1e6),
            unit => format!("{} {}", quantity::count(class.iops.round()), unit.name()),
        };
        let is_alone = is_sql || summary.classes.len() == 1;
        format!(" {}{rate}{latency}", label(&class.name, is_alone))
    };
    // More are wider than a line: the most frequent say most.
    let mut shown: Vec<&ClassSummary> = summary.classes.iter().collect();
    if shown.len() > SHOWN_MOST {
        shown.sort_by(|one, other| other.iops.total_cmp(&one.iops));
    }
    let others = shown.len().saturating_sub(SHOWN_MOST);
    shown.truncate(SHOWN_MOST);
    let classes: Vec<String> = shown.into_iter().map(class).collect();
    let more = if others > 0 {
        format!("; and {others} more")
    } else {
        String::new()
    };
    classes.join(";") + &more
}

/// The name of a class before its figures; of one that `is_alone` they need none.
fn label(class: &str, is_alone: bool) -> String {
    if is_alone {
        String::new()
    } else {
        format!("{class} ")
    }
}

/// Rounds to whole MiB, so that a redrawn line does not jump.
fn whole(bytes: Bytes) -> String {
    format!("{} MiB", bytes.0 / MIB)
}

/// Whole seconds; minutes, hours or days for longer times.
fn seconds(seconds: f64) -> String {
    match seconds {
        days if days >= 2.0 * 86_400.0 => format!("{:.1} days", days / 86_400.0),
        hours if hours >= 2.0 * 3600.0 => format!("{:.1} h", hours / 3600.0),
        minutes if minutes >= 120.0 => format!("{:.0} min", minutes / 60.0),
        seconds => format!("{seconds:.0} s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_total_that_nobody_knows_is_not_made_up() {
        let search = Total::Usual(8);
        assert_eq!(search.in_words(8), "point 8 of about 8");
        assert_eq!(search.in_words(14), "point 14, 8 are usual");
        assert_eq!((search.at(8), search.at(9)), (8, 0));
        assert_eq!(search.left(3, 10.0, 4.0), Some(46.0));
        // Nor is the end of what takes longer than it usually does.
        assert_eq!(search.left(7, 10.0, 12.0), None);
        assert_eq!(search.left(13, 10.0, 0.0), None);
        assert_eq!(Total::Known(3).left(2, 10.0, 12.0), None);
        assert_eq!(Total::Known(0).left(5, 10.0, 1.0), None);
        assert_eq!(Total::Known(3).left_in_words(Some(46.0)), ", 46 s left");
        assert_eq!(search.left_in_words(Some(46.0)), ", about 46 s left");
        assert_eq!(search.left_in_words(None), "");
    }
}
