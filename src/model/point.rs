//! A data point: a few streams that run together for a while.

use super::{Bytes, Kind, Nanos, Pattern, Ratio, SqlWork};
use serde::{Deserialize, Serialize};

/// Which point of a plan this is: what it tries, and at which load. No two points of a run have the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Coordinates {
    /// Outstanding small I/Os.
    pub small: u32,
    /// Outstanding large I/Os, or sequential streams.
    pub large: u32,
    /// What the point tries.
    #[serde(default, skip_serializing_if = "Step::is_cell")]
    pub step: Step,
}

impl Coordinates {
    /// A cell of a matrix of small and large loads.
    #[must_use]
    pub const fn cell(small: u32, large: u32) -> Self {
        Self { small, large, step: Step::Cell }
    }

    /// The name by which the point is asked for: `4,1`, `depth:8`, `rate:12000`.
    #[must_use]
    pub fn name(&self) -> String {
        match self.step {
            Step::Cell => format!("{},{}", self.small, self.large),
            Step::Depth | Step::Write | Step::Layer(..) => format!("{}:{}", self.step, self.small),
            Step::Large => format!("{}:{}", self.step, self.large),
            step => step.to_string(),
        }
    }
}

/// What a point tries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Step {
    /// A cell of a matrix: its loads say all.
    #[default]
    Cell,
    /// This pass, from 1, over one part of the volume, in large sequential reads.
    Pass(u32),
    /// Random reads within the first so many bytes of the volume.
    Within(u64),
    /// Small I/O in a closed loop.
    Depth,
    /// Small I/O in an open loop, so many operations a second.
    Rate(u64),
    /// Large random reads in a closed loop.
    Large,
    /// One sequential stream, one read after the other.
    Stream,
    /// Small random writes in a closed loop.
    Write,
    /// Durable appends of so many bytes, one after the other, as a log writer makes them.
    Log(u32),
    /// The load of an earlier point once more.
    Again,
    /// Random reads of blocks by one layer of the way to a row, in this round, from 1.
    Layer(Layer, u32),
    /// This round of a soak, from 1.
    Round(u32),
}

/// By which layer of the way from storage to a row blocks are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Raw I/O, all of it outstanding at once from one thread.
    Async,
    /// Raw I/O, a thread for each, which waits for it.
    Sync,
    /// A database's sessions, without its buffer cache: blocks as pieces of files.
    File,
    /// A database's sessions, through its buffer cache: rows by index.
    Row,
    /// The same with one row a statement.
    Single,
}

impl Layer {
    /// All of them, from storage up.
    pub const ALL: [Layer; 5] = [Layer::Async, Layer::Sync, Layer::File, Layer::Row, Layer::Single];

    /// One word, for programs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Layer::Async => "async",
            Layer::Sync => "sync",
            Layer::File => "file",
            Layer::Row => "row",
            Layer::Single => "single",
        }
    }

    /// Its number in reports: `1` to `4`, and `4b`.
    #[must_use]
    pub fn number(self) -> &'static str {
        match self {
            Layer::Async => "1",
            Layer::Sync => "2",
            Layer::File => "3",
            Layer::Row => "4",
            Layer::Single => "4b",
        }
    }

    /// True if a database's sessions read the blocks.
    #[must_use]
    pub fn is_database(self) -> bool {
        !matches!(self, Layer::Async | Layer::Sync)
    }
}

impl Step {
    /// True for a cell of a matrix.
    #[must_use]
    pub fn is_cell(&self) -> bool {
        *self == Step::Cell
    }
}

impl std::fmt::Display for Step {
    /// One word, for programs: `depth`, `rate:12000`, `log:8192`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Cell => f.write_str("cell"),
            Step::Pass(number) => write!(f, "pass:{number}"),
            Step::Within(bytes) => write!(f, "within:{bytes}"),
            Step::Depth => f.write_str("depth"),
            Step::Rate(rate) => write!(f, "rate:{rate}"),
            Step::Large => f.write_str("large"),
            Step::Stream => f.write_str("stream"),
            Step::Write => f.write_str("write"),
            Step::Log(bytes) => write!(f, "log:{bytes}"),
            Step::Again => f.write_str("again"),
            Step::Layer(layer, round) => write!(f, "layer:{}:{round}", layer.name()),
            Step::Round(number) => write!(f, "round:{number}"),
        }
    }
}

impl std::fmt::Display for Coordinates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { small, large, step } = *self;
        let beside = |f: &mut std::fmt::Formatter<'_>| match large {
            0 => Ok(()),
            large => write!(f, ", {large} large beside"),
        };
        match step {
            Step::Cell => write!(f, "Small={small}, Large={large}"),
            Step::Pass(number) => write!(f, "pass {number} over one part"),
            Step::Within(bytes) => write!(f, "random reads within {}", Bytes(bytes)),
            Step::Depth => write!(f, "depth {small}").and_then(|()| beside(f)),
            Step::Rate(rate) => write!(f, "{rate}/s").and_then(|()| beside(f)),
            Step::Large => write!(f, "large reads, depth {large}"),
            Step::Stream => write!(f, "one sequential stream"),
            Step::Write => write!(f, "writes, depth {small}"),
            Step::Log(bytes) => write!(f, "log writes of {}", Bytes(bytes.into())),
            Step::Again => write!(f, "depth {small} again"),
            Step::Layer(layer, round) => write!(f, "layer {} of {small}, round {round}", layer.number()),
            Step::Round(number) => write!(f, "round {number}"),
        }
    }
}

/// A measurement has no more windows than this: three days of seconds. Each takes memory and a place in the journal,
/// whether anything happens in it or not.
const WINDOWS_MOST: u64 = 1 << 18;

impl Until {
    /// The width of the windows of a measurement that ends so: `usual`, or a multiple of it where they would be too
    /// many.
    #[must_use]
    pub fn window(self, usual: Nanos) -> Nanos {
        let (Self::Elapsed(most) | Self::Precise { most, .. } | Self::Work { most, .. }) = self else { return usual };
        let times = most.0.div_ceil(usual.0.saturating_mul(WINDOWS_MOST)).max(1);
        Nanos(usual.0.saturating_mul(times))
    }
}

/// One data point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its place in the plan.
    pub coordinates: Coordinates,
    /// What runs, together.
    pub streams: Vec<Stream>,
    /// What comes before measuring.
    pub warm_up: WarmUp,
    /// When it ends.
    pub until: Until,
    /// Width of the windows that its record is cut into.
    #[serde(default = "Point::second")]
    pub window: Nanos,
    /// Seed of every random choice in it.
    pub seed: u64,
}

impl Point {
    /// The width of windows that suits measurements of a minute and more.
    #[must_use]
    pub const fn second() -> Nanos {
        Nanos::from_secs(1)
    }
}

/// One stream of operations: a load, a workload and the part of the volume it works on.
///
/// Streams of one name are one class: their operations are recorded together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The class, such as `small` or `large`.
    pub name: String,
    /// When operations are due.
    pub load: Load,
    /// Which kinds of operation.
    pub mix: Mix,
    /// Which positions.
    pub pattern: Pattern,
    /// Bytes of one operation; of a database's, of one block.
    pub length: u32,
    /// The work of a database's sessions, which takes the place of `mix` and `pattern`; none for raw I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlWork>,
}

impl Stream {
    /// The kinds of operation that can occur, in the order of [`Kind::ALL`].
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        self.sql.as_ref().map_or_else(|| self.mix.kinds().to_vec(), SqlWork::kinds)
    }
}

/// When operations are due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Closed loop: a constant number of outstanding operations; one is issued as one completes.
    Closed {
        /// Outstanding operations.
        depth: u32,
    },
    /// Open loop: operations are due at times of their own, whatever the target does.
    Open {
        /// Offered load, operations a second.
        rate: f64,
        /// How the due times are spaced.
        arrivals: Arrivals,
        /// Most operations outstanding; those due beyond it wait, and the wait counts as response time.
        in_flight_max: u32,
    },
}

impl Load {
    /// Places for outstanding operations that the load needs.
    #[must_use]
    pub fn slots(self) -> u32 {
        match self {
            Load::Closed { depth } => depth,
            Load::Open { in_flight_max, .. } => in_flight_max,
        }
    }
}

/// How the due times of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Independent arrivals: exponential gaps.
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// Which kinds of operation a stream is made of.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Share of operations that are writes; each operation is drawn independently.
    pub writes: Ratio,
    /// The writes are [`Kind::Log`]: each is over when its data is durable.
    #[serde(default)]
    pub durable: bool,
}

impl Mix {
    /// Reads only.
    pub const READS: Mix = Mix { writes: Ratio::ZERO, durable: false };

    /// The kinds that can occur in this mix.
    #[must_use]
    pub fn kinds(self) -> &'static [Kind] {
        match (self.writes, self.durable) {
            (Ratio::ZERO, _) => &[Kind::Read],
            (Ratio::ONE, false) => &[Kind::Write],
            (Ratio::ONE, true) => &[Kind::Log],
            (_, false) => &[Kind::Read, Kind::Write],
            (_, true) => &[Kind::Read, Kind::Log],
        }
    }

    /// The kind of its writes.
    #[must_use]
    pub fn write_kind(self) -> Kind {
        if self.durable { Kind::Log } else { Kind::Write }
    }
}

/// What comes before measuring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// At least this long.
    pub least: Nanos,
    /// Measuring begins when throughput is steady, and at the latest now.
    pub most: Nanos,
}

impl WarmUp {
    /// Measure from the first operation.
    pub const NONE: WarmUp = WarmUp { least: Nanos(0), most: Nanos(0) };
}

/// When a point ends. Times are counted from the end of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// After this long.
    Elapsed(Nanos),
    /// After exactly this many operations of each stream.
    Ops(u64),
    /// After exactly this many operations of each stream, or after `most`, whichever comes first.
    Work {
        /// Operations.
        ops: u64,
        /// Measured at most this long, done or not.
        most: Nanos,
    },
    /// As soon as the figures are precise: the half-width of the 95 % interval of throughput and of median response
    /// time within `precision` of their values.
    Precise {
        /// Share of the value.
        precision: Ratio,
        /// Measured at least this long.
        least: Nanos,
        /// Measured at most this long, precise or not.
        most: Nanos,
    },
}
