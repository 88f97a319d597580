//! What the live view knows of a run: fed by events, and without a terminal.
//!
//! Goes in: what happens, and when. Comes out: [`State`], plain data that [`draw`](super::draw) shows. All of it is
//! bounded, so that a run of weeks takes no more memory than one of minutes. It reads no clock: `now` is handed in.

use super::point::PointNow;
use super::unit::Unit;
use crate::analyse::{self, DeviceLoad, HostLoad, PointSummary};
use crate::drive::Live;
use crate::model::{Nanos, Point, Sample, Step};
use crate::record::{End, PointRecord};
use std::collections::VecDeque;

/// Windows that are kept to be drawn: more than the columns of any terminal.
const COLUMNS_MAX: usize = 512;

/// Points that are kept for the list.
const POINTS_MAX: usize = 256;

/// Looks at the host that are kept.
const HOSTS_MAX: usize = 128;

/// How often a running point is looked at.
const LOOK: Nanos = Nanos::from_millis(180);

/// Everything that is shown.
#[derive(Debug, Clone, Default)]
pub(in crate::cli) struct State {
    /// The verb and its target.
    pub(super) title: String,
    /// What is being done.
    pub(super) stage: Stage,
    /// Somebody asked for the end.
    pub(super) draining: bool,
    /// The number of the point that runs, from 1; 0 before the first.
    pub(super) number: usize,
    /// How many points there are, as far as that is known.
    pub(super) points: usize,
    /// Seconds that were left, and when that was said.
    left: Option<(f64, Nanos)>,
    /// The point that runs.
    pub(super) point: Option<PointNow>,
    /// Windows, the youngest last, of all points; of a soak its rounds, and the last seconds of the one that runs.
    pub(super) columns: VecDeque<Column>,
    /// What a column is; none before the first point.
    pub(super) span: Option<Span>,
    /// How throughput is told.
    pub(super) unit: Unit,
    /// The points that are done, the youngest last.
    pub(super) done: VecDeque<Done>,
    /// The host, the youngest look last.
    pub(super) hosts: VecDeque<HostNow>,
    /// When the point that runs was last looked at.
    looked: Nanos,
    /// When the point that runs began.
    point_began: Nanos,
}

/// What is being done.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Stage {
    /// Getting ready, or something else without a measure.
    #[default]
    Ready,
    /// Something without a measure.
    Doing(String),
    /// Files or tables are filled.
    Filling {
        /// What is filled.
        what: String,
        /// Bytes done.
        done: u64,
        /// Bytes in all.
        of: u64,
    },
    /// Nothing is done until then.
    Waiting {
        /// What for.
        what: String,
        /// When it is over.
        until: Nanos,
    },
    /// A point is there, and nothing was seen of it yet.
    Beginning,
    /// A point runs.
    Running,
}

/// What a column stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// A window so wide.
    Window(Nanos),
    /// A round: its windows are too wide to wait for.
    Round,
}

/// One window of the point's first class, which is the one asked about.
#[derive(Debug, Clone)]
pub(super) struct Column {
    /// It was before measuring, or in a round that is not over: only its throughput is known.
    pub(super) warming: bool,
    /// The first of its point.
    pub(super) first: bool,
    /// Operations done a second.
    pub(super) rate: f64,
    /// Operations that failed.
    pub(super) failed: u64,
    /// Response times; none if nothing was done.
    pub(super) latency: Option<Percentiles>,
    /// Operations by response time, [`BINS_A_DECADE`] bins to a power of ten, from a microsecond.
    pub(super) bins: [u32; BINS],
}

/// Bins to a power of ten.
pub(super) const BINS_A_DECADE: usize = 8;

/// From a microsecond to a hundred seconds; what is beyond falls into the outermost.
pub(super) const BINS: usize = 8 * BINS_A_DECADE;

/// The bin of a response time.
pub(super) fn bin_of(latency: Nanos) -> usize {
    let decades = (latency.as_micros_f64().max(1.0)).log10();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not negative, and below BINS")]
    let bin = (decades * BINS_A_DECADE as f64) as usize;
    bin.min(BINS - 1)
}

/// The least response time of a bin.
pub(super) fn edge_of(bin: usize) -> Nanos {
    Nanos::from_micros_f64(10f64.powf(bin as f64 / BINS_A_DECADE as f64))
}

/// Response times of one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Percentiles {
    /// Half are not slower.
    pub(super) p50: Nanos,
    /// 99 % are not slower.
    pub(super) p99: Nanos,
    /// The slowest.
    pub(super) max: Nanos,
}

/// A point that is done.
#[derive(Debug, Clone)]
pub(super) struct Done {
    /// Its load.
    pub(super) name: String,
    /// Operations a second of its first class.
    pub(super) rate: f64,
    /// How that is told.
    pub(super) unit: Unit,
    /// Median and 99th percentile of response time, if anything was done.
    pub(super) latency: Option<(Nanos, Nanos)>,
    /// It ended as planned.
    pub(super) complete: bool,
}

/// The host between two looks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct HostNow {
    /// The disks below the target.
    pub(super) devices: Vec<(String, DeviceLoad)>,
    /// The CPUs.
    pub(super) host: HostLoad,
}

impl State {
    /// Before anything happened.
    pub(super) fn new(title: &str, points: usize) -> Self {
        Self { title: title.into(), points, ..Self::default() }
    }

    /// Files or tables are being filled; so many seconds are left.
    pub(in crate::cli) fn fill(&mut self, what: &str, done: u64, of: u64, left: f64, now: Nanos) {
        self.stage = Stage::Filling { what: what.into(), done, of };
        self.left = Some((left, now));
    }

    /// Something without a measure is being done.
    pub(in crate::cli) fn say(&mut self, what: &str) {
        self.stage = Stage::Doing(what.into());
        self.left = None;
    }

    /// Nothing is done until `until`.
    pub(in crate::cli) fn wait(&mut self, what: &str, until: Nanos) {
        self.stage = Stage::Waiting { what: what.into(), until };
    }

    /// Point `number` of `points` begins.
    pub(in crate::cli) fn begin(&mut self, number: usize, points: usize, now: Nanos) {
        (self.number, self.points) = (number, points);
        self.stage = Stage::Beginning;
        self.point = None;
        self.forget_seconds();
        self.point_began = now;
        self.looked = Nanos(0);
    }

    /// So many seconds are left.
    pub(in crate::cli) fn set_left(&mut self, seconds: f64, now: Nanos) {
        self.left = Some((seconds, now));
    }

    /// True if a look at the running point is due.
    pub(in crate::cli) fn wants_look(&self, now: Nanos) -> bool {
        self.looked == Nanos(0) || now.since(self.looked) >= LOOK
    }

    /// A point is running.
    pub(in crate::cli) fn live(&mut self, point: &Point, live: &Live, samples: &[Sample], now: Nanos) {
        self.looked = now;
        self.stage = Stage::Running;
        let running = self.point.get_or_insert_with(|| PointNow::new(point));
        running.look(point, live, &mut self.columns);
        (self.span, self.unit) = (Some(running.span), running.unit);
        while self.columns.len() > COLUMNS_MAX {
            self.columns.pop_front();
        }
        // The time of a model goes by faster than that of the host.
        let is_model = live.elapsed > now.since(self.point_began).plus(Nanos::from_secs(1));
        if let [.., before, after] = samples
            && !is_model
            && running.is_fresh(samples.len())
        {
            let devices = analyse::device_loads(before, after);
            self.hosts.push_back(HostNow { devices, host: analyse::host_load(before, after) });
            while self.hosts.len() > HOSTS_MAX {
                self.hosts.pop_front();
            }
        }
    }

    /// A point is in the journal.
    pub(in crate::cli) fn end(&mut self, record: &PointRecord, summary: &PointSummary) {
        let is_round = record.coordinates.step() == Step::Round;
        if is_round {
            self.span = Some(Span::Round);
            self.point = None;
            self.forget_seconds();
        }
        let Some((class, stream)) = summary.classes.first().zip(record.streams.first()) else { return };
        let unit = Unit::of(stream.sql.is_some(), stream.length);
        if is_round {
            self.unit = unit;
            self.columns.push_back(Column { rate: class.iops, ..Column::of(&stream.total(), record.measured) });
            while self.columns.len() > COLUMNS_MAX {
                self.columns.pop_front();
            }
        }
        let latency = class.latency.map(|latency| {
            let [p50, p99] = [latency.p50_us, latency.p99_us].map(Nanos::from_micros_f64);
            (p50, p99)
        });
        self.done.push_back(Done {
            name: record.coordinates.to_string(),
            rate: class.iops,
            unit,
            latency,
            complete: record.end == End::Complete,
        });
        while self.done.len() > POINTS_MAX {
            self.done.pop_front();
        }
    }

    /// Takes the seconds of a round out again: its column stands for them.
    fn forget_seconds(&mut self) {
        while self.span == Some(Span::Round) && self.columns.back().is_some_and(|column| column.warming) {
            self.columns.pop_back();
        }
    }

    /// Seconds that are left at `now`; none if that is not known.
    pub(super) fn left(&self, now: Nanos) -> Option<f64> {
        let (seconds, at) = self.left?;
        Some((seconds - now.since(at).as_secs_f64()).max(0.0))
    }

    /// Share of the whole that is done: of the points, or of the bytes that are filled.
    pub(super) fn share(&self) -> f64 {
        if let Stage::Filling { done, of, .. } = self.stage {
            return done as f64 / of.max(1) as f64;
        }
        let ended = self.number.saturating_sub(usize::from(self.point.is_some() || self.stage == Stage::Beginning));
        let running = self.point.as_ref().map_or(0.0, PointNow::share);
        ((ended as f64 + running) / self.points.max(1) as f64).min(1.0)
    }
}
