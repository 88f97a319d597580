//! State of the live view: updated by events, independent of the terminal.
//!
//! Input: events and their times. Output: [`LiveState`], plain data that [`draw`](super::draw)
//! shows. Its size is bounded, so a run of weeks needs no more memory than one of minutes. It does
//! not read a clock: callers pass `now`.

use super::column::{LiveColumn, Span};
use super::point::PointNow;
use super::unit::ThroughputUnit;
use rigel_analyse::quantity::rounded_percent;
use rigel_analyse::{self as analyse, DeviceLoad, HostLoad, LatencySummary, PointSummary};
use rigel_drive::Live;
use rigel_measure::run::RunningRanks;
use rigel_model::record::{DiskInterval, End, FlowKind, PointRecord, WatchedInterval, Window};
use rigel_model::{Nanos, Point, Sample, StalledIo, Step};
use std::collections::VecDeque;

/// Maximum number of windows to keep: more than the columns of any terminal.
const COLUMNS_MAX: usize = 512;

/// Maximum number of points in the list.
const POINTS_MAX: usize = 256;

/// Maximum number of host samples to keep.
const HOSTS_MAX: usize = 128;

/// Interval between two looks at a running point.
const LOOK: Nanos = Nanos::from_millis(180);

/// Everything that is shown.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct LiveState {
    /// The verb and its target.
    pub(super) title: String,
    /// Current activity.
    pub(super) stage: Activity,
    /// True once a stop was requested.
    pub(super) draining: bool,
    /// Number of the running point, from 1; 0 before the first.
    pub(super) number: usize,
    /// Number of points, known or usual; 0 if nobody knows it.
    pub(super) points: usize,
    /// What a point is called: an interval, for a watch.
    pub(super) step: &'static str,
    /// Seconds left, and when that was reported.
    left: Option<(f64, Nanos)>,
    /// The running point.
    pub(super) point: Option<PointNow>,
    /// Windows of all points, the latest last. For a soak its rounds, and the last seconds of the
    /// running one.
    pub(super) columns: VecDeque<LiveColumn>,
    /// Time span of a column; `None` before the first point.
    pub(super) span: Option<Span>,
    /// Unit of the throughput.
    pub(super) unit: ThroughputUnit,
    /// Completed points, the latest last.
    pub(super) done: VecDeque<DonePoint>,
    /// The kinds of requests of the latest interval of a watch, with their shares.
    pub(super) streams: Vec<DonePoint>,
    /// Samples of the host, the latest last.
    pub(super) hosts: VecDeque<HostNow>,
    /// Time of the last look at the running point.
    looked: Nanos,
    /// When the running point began.
    point_began: Nanos,
    /// What is outstanding while the running point, or a server that is watched, stalls.
    pub(super) stalled: Option<StalledIo>,
}

/// Current activity.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Activity {
    /// Preparing, or another activity without progress information.
    #[default]
    Ready,
    /// An activity without progress information.
    Doing(String),
    /// Files or tables are being filled.
    Filling {
        /// Name of the files or tables.
        what: String,
        /// Bytes done.
        done: u64,
        /// Total bytes.
        of: u64,
    },
    /// Waiting for a time.
    Waiting {
        /// Reason for the wait.
        what: String,
        /// End of the wait.
        until: Nanos,
    },
    /// A point has started, but there is no data yet.
    Beginning,
    /// A point is running.
    Running,
}

/// A completed point.
#[derive(Debug, Clone)]
pub(super) struct DonePoint {
    /// Its load.
    pub(super) name: String,
    /// Operations per second of its first class.
    pub(super) rate: f64,
    /// Unit of the rate.
    pub(super) unit: ThroughputUnit,
    /// Response times, if anything completed.
    pub(super) latency: Option<LatencySummary>,
    /// True if it ended as planned.
    pub(super) complete: bool,
}

/// Load of the host between two samples.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HostNow {
    /// The disks below the target.
    pub(super) devices: Vec<(String, DeviceLoad)>,
    /// The CPUs; `None` if they are not looked at.
    pub(super) host: Option<HostLoad>,
}

impl LiveState {
    /// The state before any event.
    pub(super) fn new(title: &str, points: usize) -> Self {
        Self {
            title: title.into(),
            points,
            step: "point",
            ..Self::default()
        }
    }

    /// Files or tables are being filled; `left` is the remaining time in seconds.
    pub(in crate::cli) fn fill(&mut self, what: &str, done: u64, of: u64, left: f64, now: Nanos) {
        self.stage = Activity::Filling {
            what: what.into(),
            done,
            of,
        };
        self.left = Some((left, now));
    }

    /// Starts an activity without progress information.
    pub(in crate::cli) fn say(&mut self, what: &str) {
        self.stage = Activity::Doing(what.into());
        self.left = None;
    }

    /// Waits until `until`.
    pub(in crate::cli) fn wait(&mut self, what: &str, until: Nanos) {
        self.stage = Activity::Waiting {
            what: what.into(),
            until,
        };
    }

    /// Point `number` of `points` begins.
    pub(in crate::cli) fn begin(&mut self, number: usize, points: usize, now: Nanos) {
        (self.number, self.points) = (number, points);
        self.stage = Activity::Beginning;
        self.point = None;
        self.stalled = None;
        self.forget_seconds();
        self.point_began = now;
        self.looked = Nanos(0);
    }

    /// Sets the remaining time in seconds; `None` if it is unknown.
    pub(in crate::cli) fn set_left(&mut self, seconds: Option<f64>, now: Nanos) {
        self.left = seconds.map(|seconds| (seconds, now));
    }

    /// True if a look at the running point is due.
    pub(in crate::cli) fn wants_look(&self, now: Nanos) -> bool {
        self.looked == Nanos(0) || now.since(self.looked) >= LOOK
    }

    /// A point is running.
    pub(in crate::cli) fn live(
        &mut self,
        point: &Point,
        live: &Live,
        samples: &[Sample],
        now: Nanos,
    ) {
        self.looked = now;
        self.stalled = live.stalled;
        self.stage = Activity::Running;
        let running = self.point.get_or_insert_with(|| PointNow::new(point));
        running.look(point, live, &mut self.columns);
        (self.span, self.unit) = (Some(running.span), running.unit);
        while self.columns.len() > COLUMNS_MAX {
            self.columns.pop_front();
        }
        // A model's time passes faster than the host's.
        let is_model = live.elapsed > now.since(self.point_began).plus(Nanos::from_secs(1));
        if let [.., before, after] = samples
            && !is_model
            && running.is_fresh(samples.len())
        {
            let devices = analyse::device_loads(before, after);
            self.hosts.push_back(HostNow {
                devices,
                host: Some(analyse::host_load(before, after)),
            });
            while self.hosts.len() > HOSTS_MAX {
                self.hosts.pop_front();
            }
        }
    }

    /// Ranks measure the running point together.
    pub(in crate::cli) fn share_with(&mut self, ranks: Option<&RunningRanks>) {
        if let Some(point) = &mut self.point {
            point.ranks = ranks.cloned();
        }
    }

    /// A point was written to the journal.
    pub(in crate::cli) fn end(&mut self, record: &PointRecord, summary: &PointSummary) {
        self.stalled = None;
        let is_round = record.coordinates.step() == Step::Round;
        if is_round {
            self.span = Some(Span::Round);
            self.point = None;
            self.forget_seconds();
        }
        let Some((class, stream)) = summary.classes.first().zip(record.streams.first()) else {
            return;
        };
        let unit = ThroughputUnit::of(stream.sql.is_some(), stream.length);
        if is_round {
            self.unit = unit;
            self.columns.push_back(LiveColumn {
                rate: class.iops,
                unit,
                ..LiveColumn::of(&stream.total(), record.measured)
            });
            while self.columns.len() > COLUMNS_MAX {
                self.columns.pop_front();
            }
        }
        self.done.push_back(DonePoint {
            name: record.coordinates.to_string(),
            rate: class.iops,
            unit,
            latency: class.latency,
            complete: record.end == End::Complete,
        });
        while self.done.len() > POINTS_MAX {
            self.done.pop_front();
        }
    }

    /// A server that is watched has not answered for ten seconds, or all answer.
    pub(in crate::cli) fn silent(&mut self, stalled: Option<StalledIo>) {
        self.stalled = stalled;
    }

    /// An interval of a watch has ended.
    pub(in crate::cli) fn observed(&mut self, interval: &WatchedInterval) {
        let measured = interval.measured;
        (self.number, self.step) = (interval.number as usize, "interval");
        self.stage = Activity::Doing("watching".into());
        self.span = Some(Span::Window(measured));
        let column = LiveColumn::of(&interval.together(), measured);
        self.done.push_back(DonePoint {
            name: format!("interval {}", interval.number),
            rate: column.rate,
            unit: self.unit,
            latency: column.latency,
            complete: true,
        });
        self.streams = streams(interval);
        let devices = disk_loads(interval);
        if !devices.is_empty() {
            let host = None;
            self.hosts.push_back(HostNow { devices, host });
            while self.hosts.len() > HOSTS_MAX {
                self.hosts.pop_front();
            }
        }
        self.columns.push_back(column);
        while self.columns.len() > COLUMNS_MAX {
            self.columns.pop_front();
        }
        while self.done.len() > POINTS_MAX {
            self.done.pop_front();
        }
    }

    /// Removes the seconds of a round: its own column replaces them.
    fn forget_seconds(&mut self) {
        while self.span == Some(Span::Round)
            && self.columns.back().is_some_and(|column| column.warming)
        {
            self.columns.pop_back();
        }
    }

    /// Seconds left at `now`; `None` if unknown.
    pub(super) fn left(&self, now: Nanos) -> Option<f64> {
        let (seconds, at) = self.left?;
        // What should have ended by now ends nobody knows when.
        Some(seconds - now.since(at).as_secs_f64()).filter(|left| *left > 0.0)
    }

    /// Completed fraction: of the points, or of the bytes to fill.
    pub(super) fn share(&self) -> f64 {
        if let Activity::Filling { done, of, .. } = self.stage {
            return done as f64 / of.max(1) as f64;
        }
        if self.points == 0 {
            return 0.0;
        }
        let ended = self.number.saturating_sub(usize::from(
            self.point.is_some() || self.stage == Activity::Beginning,
        ));
        let running = self.point.as_ref().map_or(0.0, PointNow::share);
        ((ended as f64 + running) / self.points.max(1) as f64).min(1.0)
    }
}

/// The kinds of requests of an interval, over all of its disks, each with its share of the requests;
/// none where requests were only counted.
fn streams(interval: &WatchedInterval) -> Vec<DonePoint> {
    let traced = interval.disks.iter().filter_map(DiskInterval::all_requests);
    let mut kinds: Vec<(FlowKind, Window)> = Vec::new();
    for flow in traced.flat_map(|traced| &traced.flows) {
        let index = kinds
            .iter()
            .position(|(kind, _)| *kind == flow.kind)
            .unwrap_or_else(|| {
                kinds.push((flow.kind, Window::default()));
                kinds.len() - 1
            });
        let window = &mut kinds[index].1;
        window.done += flow.requests - flow.failed.min(flow.requests);
        window.response.merge(flow.response());
    }
    kinds.retain(|(_, window)| window.done > 0);
    kinds.sort_by_key(|(_, window)| std::cmp::Reverse(window.done));
    let all: u64 = kinds.iter().map(|(_, window)| window.done).sum();
    let stream = |(kind, window): &(FlowKind, Window)| {
        let column = LiveColumn::of(window, interval.measured);
        let share = rounded_percent(window.done as f64 / all as f64);
        DonePoint {
            name: format!("{share} {}", kind.words()),
            rate: column.rate,
            unit: ThroughputUnit::Iops,
            latency: column.latency,
            complete: true,
        }
    };
    kinds.iter().map(stream).collect()
}

/// How busy the disks of an interval were, by the kernel's counters.
fn disk_loads(interval: &WatchedInterval) -> Vec<(String, DeviceLoad)> {
    let sample = |at: Nanos, of: usize| Sample {
        at,
        devices: interval
            .disks
            .iter()
            .filter_map(|disk| Some((disk.name.clone(), disk.counters.as_ref()?[of])))
            .collect(),
        ..Sample::default()
    };
    analyse::device_loads(&sample(Nanos(0), 0), &sample(interval.measured, 1))
}
