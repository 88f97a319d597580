//! A data point: one or a few streams that run together for a limited time.

use super::{Bytes, Kind, LogKind, Nanos, Objective, Pattern, Ratio, SqlWork};
use crate::serde_defaults::{is_one, is_zero, one};
use serde::{Deserialize, Serialize};

/// Identifies a point of a plan: its step and its load. No two points of a run have the same.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(tag = "step", rename_all = "lowercase")]
pub enum Coordinates {
    /// A cell of a matrix of small and large loads.
    Cell {
        /// Outstanding small I/Os.
        small: u32,
        /// Outstanding large I/Os, or sequential streams.
        large: u32,
    },
    /// One pass over one part of the volume, in large sequential reads.
    Pass {
        /// Number of the pass, from 1.
        pass: u32,
    },
    /// Random reads within the first bytes of the volume, at depth 1.
    Within {
        /// Size of that part in bytes.
        bytes: u64,
    },
    /// Small I/O in a closed loop.
    Depth {
        /// Outstanding I/Os.
        depth: u32,
        /// Outstanding large reads of a second stream.
        #[serde(default, skip_serializing_if = "is_zero")]
        large_beside: u32,
        /// The log that they write to, if several are compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<LogKind>,
    },
    /// Sessions of a database in a closed loop.
    Sessions {
        /// Number of sessions.
        sessions: u32,
    },
    /// Small I/O, or a database's operations, in an open loop.
    Rate {
        /// Offered operations per second.
        rate_per_s: u64,
        /// Maximum number of operations in flight.
        in_flight_max: u32,
        /// Outstanding large reads of a second stream.
        #[serde(default, skip_serializing_if = "is_zero")]
        large_beside: u32,
    },
    /// Large random reads in a closed loop.
    Large {
        /// Outstanding I/Os.
        depth: u32,
    },
    /// One sequential stream at depth 1.
    Stream,
    /// Small random writes in a closed loop.
    Write {
        /// Outstanding I/Os.
        depth: u32,
    },
    /// Small random reads and writes in a closed loop.
    Mixed {
        /// Outstanding I/Os.
        depth: u32,
        /// Writes among 100 of them.
        write_percent: u32,
    },
    /// Large sequential writes, like those of a backup or of a compaction.
    LargeWrite {
        /// False for the first minute, true for what comes after it.
        sustained: bool,
    },
    /// Durable appends at depth 1, like those of a log writer.
    Log {
        /// Bytes of one append.
        bytes: u32,
        /// How the log's own file is written; `None` if blocks of the volume are overwritten.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        log: Option<LogKind>,
        /// Sessions that commit together.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        writers: u32,
    },
    /// The load of an earlier depth, measured again.
    Again {
        /// Outstanding I/Os.
        depth: u32,
    },
    /// The depth at the knee, measured again for a fixed time after the search.
    #[serde(rename = "closing_depth")]
    ClosingDepth {
        /// Outstanding I/Os.
        depth: u32,
    },
    /// The depth of the best write throughput, measured again for a fixed time after the search.
    #[serde(rename = "closing_write")]
    ClosingWrite {
        /// Outstanding I/Os.
        depth: u32,
    },
    /// Random reads of a part of the volume at depth 1, each block once, after the sweep.
    Reread {
        /// Number of the pair of parts, from 1.
        pair: u32,
        /// Size of the part in bytes.
        bytes: u64,
        /// True if the part was read a moment before; false if another part was.
        just_read: bool,
    },
    /// Random reads at the knee, or large ones, after a pause, once burst credit was used up.
    Refill {
        /// Outstanding I/Os.
        depth: u32,
        /// Length of the pause in milliseconds; 0 while credit is used up before the first.
        pause_ms: u32,
        /// Number of such reads without a pause, from 0.
        #[serde(default, skip_serializing_if = "is_zero")]
        drain: u32,
        /// True for large reads.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        of_large: bool,
    },
    /// Writes of the whole volume, before writes are measured.
    Precondition {
        /// Number of the pass: 1 is sequential, 2 in random order.
        pass: u32,
    },
    /// Random reads of blocks by one layer between raw storage and a row.
    Layer {
        /// The layer.
        layer: Layer,
        /// Sessions, threads, or outstanding I/Os.
        sessions: u32,
        /// Number of the round, from 1.
        round: u32,
    },
    /// A round of a soak.
    Round {
        /// Number of the round, from 1.
        round: u32,
        /// Outstanding I/Os, or the in-flight limit.
        outstanding: u32,
    },
    /// Small I/O by some of the ranks of a run, each with the same load, while the others wait. In
    /// a closed loop, unless a rate is given.
    Hosts {
        /// The ranks that measure.
        active: ActiveRanks,
        /// Outstanding I/Os of each of them, or its in-flight limit.
        depth: u32,
        /// Offered operations per second of each of them; 0 in a closed loop.
        #[serde(default, skip_serializing_if = "is_zero")]
        rate_per_s: u64,
        /// Number of the round, from 1.
        round: u32,
    },
    /// Small I/O of one rank at a fixed offered rate, beside the other ranks in a closed loop.
    Neighbours {
        /// The rank with the fixed rate.
        rank: u32,
        /// Operations per second that it offers.
        rate_per_s: u64,
        /// Its in-flight limit.
        in_flight_max: u32,
        /// Outstanding I/Os of each other rank; 0 if they wait.
        depth: u32,
        /// Number of the round, from 1.
        round: u32,
    },
    /// Random reads by one of the arms of a duet.
    Arm {
        /// Its number, from 0.
        arm: u32,
        /// Outstanding I/Os.
        depth: u32,
    },
    /// All streams of a demand at once, at a multiple of their rates.
    Multiple {
        /// The multiple, times 1000.
        thousandths: u32,
    },
}

/// The ranks of a run that measure a point; the others wait.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ActiveRanks {
    /// All.
    All,
    /// This many, from rank 0 on.
    First(u32),
    /// One alone, by its number.
    Only(u32),
}

impl ActiveRanks {
    /// True if `rank` measures.
    pub const fn includes(self, rank: u32) -> bool {
        match self {
            Self::All => true,
            Self::First(count) => rank < count,
            Self::Only(only) => rank == only,
        }
    }

    /// How many of `size` ranks measure.
    pub fn count(self, size: u32) -> u32 {
        match self {
            Self::All => size,
            Self::First(count) => count.min(size),
            Self::Only(only) => u32::from(only < size),
        }
    }

    /// Machine-readable name.
    pub fn name(self) -> String {
        match self {
            Self::All => "all".into(),
            Self::First(count) => format!("first:{count}"),
            Self::Only(rank) => format!("only:{rank}"),
        }
    }
}

/// What a point measures, without its load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// A cell of a matrix.
    Cell,
    /// A pass over one part of the volume.
    Pass,
    /// Random reads within a part of the volume.
    Within,
    /// Small I/O, or a database's sessions, in a closed loop.
    Depth,
    /// An open loop.
    Rate,
    /// Large random reads.
    Large,
    /// One sequential stream.
    Stream,
    /// Small random writes.
    Write,
    /// Small random reads and writes.
    Mixed,
    /// Large sequential writes.
    LargeWrite,
    /// Durable appends.
    Log,
    /// An earlier depth, measured again.
    Again,
    /// A load that was found by the search, measured again for a fixed time.
    Closing,
    /// Reads of a part, to find a cache that holds all of the volume.
    Reread,
    /// Reads after a pause, to find what comes back of burst credit.
    Refill,
    /// Writes before writes are measured.
    Precondition,
    /// One layer between storage and a row.
    Layer,
    /// A round of a soak.
    Round,
    /// Small I/O by some of the ranks.
    Hosts,
    /// Small I/O of one rank beside the others.
    Neighbours,
    /// One of the arms of a duet.
    Arm,
    /// A multiple of a demand.
    Multiple,
}

impl Coordinates {
    /// A cell of a matrix of small and large loads.
    pub const fn cell(small: u32, large: u32) -> Self {
        Self::Cell { small, large }
    }

    /// Small I/O in a closed loop, without a second stream.
    pub const fn at_depth(depth: u32) -> Self {
        Self::Depth {
            depth,
            large_beside: 0,
            log: None,
        }
    }

    /// The step of the point, without its load.
    pub const fn step(self) -> Step {
        match self {
            Self::Cell { .. } => Step::Cell,
            Self::Pass { .. } => Step::Pass,
            Self::Within { .. } => Step::Within,
            Self::Depth { .. } | Self::Sessions { .. } => Step::Depth,
            Self::Rate { .. } => Step::Rate,
            Self::Large { .. } => Step::Large,
            Self::Stream => Step::Stream,
            Self::Write { .. } => Step::Write,
            Self::Mixed { .. } => Step::Mixed,
            Self::LargeWrite { .. } => Step::LargeWrite,
            Self::Log { .. } => Step::Log,
            Self::Again { .. } => Step::Again,
            Self::ClosingDepth { .. } | Self::ClosingWrite { .. } => Step::Closing,
            Self::Reread { .. } => Step::Reread,
            Self::Refill { .. } => Step::Refill,
            Self::Precondition { .. } => Step::Precondition,
            Self::Layer { .. } => Step::Layer,
            Self::Round { .. } => Step::Round,
            Self::Hosts { .. } => Step::Hosts,
            Self::Neighbours { .. } => Step::Neighbours,
            Self::Arm { .. } => Step::Arm,
            Self::Multiple { .. } => Step::Multiple,
        }
    }

    /// Outstanding I/Os, threads or sessions of the point's main stream, or its in-flight limit.
    pub const fn outstanding(self) -> u32 {
        match self {
            Self::Depth { depth, .. }
            | Self::Large { depth }
            | Self::Write { depth }
            | Self::Mixed { depth, .. }
            | Self::Again { depth }
            | Self::ClosingDepth { depth }
            | Self::Refill { depth, .. }
            | Self::ClosingWrite { depth }
            | Self::Arm { depth, .. }
            | Self::Hosts { depth, .. } => depth,
            Self::Neighbours { in_flight_max, .. } | Self::Rate { in_flight_max, .. } => {
                in_flight_max
            }
            Self::Sessions { sessions } | Self::Layer { sessions, .. } => sessions,
            Self::Round { outstanding, .. } => outstanding,
            Self::Cell { small: 0, large } => large,
            Self::Cell { small, .. } => small,
            Self::Precondition { pass: 1 } | Self::LargeWrite { .. } => 8,
            Self::Precondition { .. } => 32,
            Self::Pass { .. } | Self::Within { .. } | Self::Stream | Self::Reread { .. } => 1,
            Self::Log { writers, .. } => writers,
            // Each of its streams has a limit of its own.
            Self::Multiple { .. } => 0,
        }
    }

    /// The pause before reads that show what came back of burst credit.
    pub fn pause(self) -> Option<Nanos> {
        if let Self::Refill { pause_ms, .. } = self {
            Some(Nanos::from_millis(pause_ms.into()))
        } else {
            None
        }
    }

    /// `large reads after a pause of 2 s`.
    fn refill_in_words(self) -> String {
        let reads = if self.is_refill_of_large() {
            "large reads"
        } else {
            "reads"
        };
        match self.pause().filter(|pause| *pause > Nanos(0)) {
            None => format!("{reads} without a pause"),
            Some(pause) => format!("{reads} after a pause of {pause}"),
        }
    }

    /// True if these are large reads that show what came back of burst credit.
    pub fn is_refill_of_large(self) -> bool {
        matches!(self, Self::Refill { of_large: true, .. })
    }

    /// True if these are small or `large` reads that go on without a pause, to show what lasts.
    pub fn is_without_pause(self, large: bool) -> bool {
        matches!(self, Self::Refill { pause_ms: 0, of_large, .. } if of_large == large)
    }

    /// The multiple of a demand.
    pub fn multiple(self) -> Option<f64> {
        if let Self::Multiple { thousandths } = self {
            Some(f64::from(thousandths) / 1e3)
        } else {
            None
        }
    }

    /// The ranks that measure the point, of a run with several.
    pub const fn active_ranks(self) -> ActiveRanks {
        match self {
            Self::Hosts { active, .. } => active,
            Self::Neighbours { rank, depth: 0, .. } => ActiveRanks::Only(rank),
            _ => ActiveRanks::All,
        }
    }

    /// The depth of a closed loop of a curve, or its sessions.
    pub const fn depth(self) -> Option<u32> {
        match self {
            Self::Depth { depth, .. } => Some(depth),
            Self::Sessions { sessions } => Some(sessions),
            _ => None,
        }
    }

    /// The log that a closed loop of a curve writes to, if several are compared.
    pub const fn log(self) -> Option<LogKind> {
        match self {
            Self::Depth { log, .. } => log,
            _ => None,
        }
    }

    /// Offered operations per second of an open loop.
    pub const fn rate(self) -> Option<u64> {
        if let Self::Rate { rate_per_s, .. } = self {
            Some(rate_per_s)
        } else {
            None
        }
    }

    /// The number of a duet's arm.
    pub const fn arm(self) -> Option<u32> {
        if let Self::Arm { arm, .. } = self {
            Some(arm)
        } else {
            None
        }
    }

    /// Operations per second that each rank offers in a round of some of the ranks; `None` in a
    /// closed loop, and for other points.
    pub const fn rate_of_each(self) -> Option<u64> {
        match self {
            Self::Hosts { rate_per_s, .. } if rate_per_s > 0 => Some(rate_per_s),
            _ => None,
        }
    }

    /// Small I/Os of a cell without large ones.
    pub const fn small_alone(self) -> Option<u32> {
        if let Self::Cell { small, large: 0 } = self {
            Some(small)
        } else {
            None
        }
    }

    /// Large I/Os of a cell without small ones.
    pub const fn large_alone(self) -> Option<u32> {
        if let Self::Cell { small: 0, large } = self {
            Some(large)
        } else {
            None
        }
    }

    /// Small and large outstanding I/Os, as Orion counts them. Point seeds and the CSV report use
    /// this pair.
    pub const fn small_and_large(self) -> (u32, u32) {
        match self {
            Self::Cell { small, large } => (small, large),
            Self::Depth {
                depth,
                large_beside,
                ..
            } => (depth, large_beside),
            Self::Rate {
                in_flight_max,
                large_beside,
                ..
            } => (in_flight_max, large_beside),
            Self::Large { depth } => (0, depth),
            Self::Pass { .. } | Self::Stream => (0, 1),
            other => (other.outstanding(), 0),
        }
    }

    /// The point's name in options: `4,1`, `depth:8`, `rate:12000`.
    pub fn name(&self) -> String {
        match self {
            Self::Cell { small, large } => format!("{small},{large}"),
            Self::Pass { pass } => format!("pass:{pass}"),
            Self::Within { bytes } => format!("within:{bytes}"),
            Self::Depth {
                depth, log: None, ..
            } => format!("depth:{depth}"),
            Self::Depth {
                depth,
                log: Some(log),
                ..
            } => format!("depth:{depth}:{log}"),
            Self::Sessions { sessions } => format!("sessions:{sessions}"),
            Self::Rate { rate_per_s, .. } => format!("rate:{rate_per_s}"),
            Self::Large { depth } => format!("large:{depth}"),
            Self::Stream => "stream".into(),
            Self::Write { depth } => format!("write:{depth}"),
            Self::Mixed {
                depth,
                write_percent,
            } => format!("mix:{depth}:{write_percent}"),
            Self::LargeWrite { sustained: false } => "large_write:first".into(),
            Self::LargeWrite { sustained: true } => "large_write:sustained".into(),
            Self::Log {
                bytes, log: None, ..
            } => format!("log:{bytes}"),
            Self::Log {
                bytes,
                log: Some(log),
                writers,
            } => format!("log:{log}:{bytes}:{writers}"),
            Self::Again { .. } => "again".into(),
            Self::ClosingDepth { depth } => format!("closing_depth:{depth}"),
            Self::ClosingWrite { depth } => format!("closing_write:{depth}"),
            Self::Reread {
                pair, just_read, ..
            } => format!(
                "reread:{pair}:{}",
                if *just_read { "again" } else { "other" }
            ),
            Self::Refill {
                pause_ms,
                drain,
                of_large,
                ..
            } => {
                let large = if *of_large { "large_" } else { "" };
                match pause_ms {
                    0 => format!("{large}drain:{drain}"),
                    pause_ms => format!("{large}refill:{pause_ms}"),
                }
            }
            Self::Precondition { pass } => format!("precondition:{pass}"),
            Self::Layer {
                layer,
                sessions,
                round,
            } => format!("layer:{}:{round}:{sessions}", layer.name()),
            Self::Round { round, .. } => format!("round:{round}"),
            Self::Hosts { active, round, .. } => format!("hosts:{}:{round}", active.name()),
            Self::Neighbours { depth, round, .. } => format!("neighbours:{depth}:{round}"),
            Self::Arm { arm, .. } => format!("arm:{}", arm_letter(*arm)),
            Self::Multiple { thousandths } => {
                format!("multiple:{}", f64::from(*thousandths) / 1e3)
            }
        }
    }

    /// One word for CSV: the name without a load that has its own column.
    pub fn step_name(&self) -> String {
        match self {
            Self::Cell { .. } => "cell".into(),
            Self::Depth { log: None, .. } => "depth".into(),
            Self::Depth { log: Some(log), .. } => format!("depth:{log}"),
            Self::Sessions { .. } => "sessions".into(),
            Self::Large { .. } => "large".into(),
            Self::Write { .. } => "write".into(),
            Self::Layer { layer, round, .. } => format!("layer:{}:{round}", layer.name()),
            other => other.name(),
        }
    }
}

/// A layer on the way from raw storage to a row, by which blocks are read.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// Raw I/O, all outstanding at once from one thread.
    Async,
    /// Raw I/O, with one waiting thread per I/O.
    Sync,
    /// A database's sessions, without its buffer cache: blocks as pieces of files.
    File,
    /// A database's sessions, through its buffer cache: rows by index.
    Row,
    /// The same rows in one list, whose blocks the database reads ahead.
    Prefetch,
    /// Rows by index, with one row per statement.
    Single,
}

impl Layer {
    /// All layers, from storage upwards.
    pub const ALL: [Layer; 6] = [
        Layer::Async,
        Layer::Sync,
        Layer::File,
        Layer::Row,
        Layer::Prefetch,
        Layer::Single,
    ];

    /// Machine-readable name.
    pub fn name(self) -> &'static str {
        match self {
            Layer::Async => "async",
            Layer::Sync => "sync",
            Layer::File => "file",
            Layer::Row => "row",
            Layer::Prefetch => "prefetch",
            Layer::Single => "single",
        }
    }

    /// Its number in reports: `1` to `4`, `4a` and `4b`.
    pub fn number(self) -> &'static str {
        match self {
            Layer::Async => "1",
            Layer::Sync => "2",
            Layer::File => "3",
            Layer::Row => "4",
            Layer::Prefetch => "4a",
            Layer::Single => "4b",
        }
    }

    /// True if a database's sessions read the blocks.
    pub fn is_database(self) -> bool {
        !matches!(self, Layer::Async | Layer::Sync)
    }
}

/// What an arm of a duet is called: A, B, C.
pub fn arm_letter(arm: u32) -> char {
    char::from_u32(u32::from(b'A') + arm % 26).unwrap_or('A')
}

/// `, grow`; empty without a log.
fn named(log: Option<LogKind>) -> String {
    log.map_or_else(String::new, |log| format!(", {log}"))
}

/// All rounds together have no number.
fn round_number(f: &mut std::fmt::Formatter<'_>, round: u32) -> std::fmt::Result {
    match round {
        0 => Ok(()),
        _ => write!(f, ", round {round}"),
    }
}

impl std::fmt::Display for Coordinates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let beside = |f: &mut std::fmt::Formatter<'_>, large_beside: u32| match large_beside {
            0 => Ok(()),
            large => write!(f, ", with {large} large"),
        };
        match *self {
            Self::Cell { small, large } => write!(f, "Small={small}, Large={large}"),
            Self::Pass { pass } => write!(f, "pass {pass} over one part"),
            Self::Within { bytes } => write!(f, "random reads within {}", Bytes(bytes)),
            Self::Depth {
                depth,
                large_beside,
                log,
            } => {
                write!(f, "depth {depth}{}", named(log))?;
                beside(f, large_beside)
            }
            Self::Sessions { sessions } => write!(
                f,
                "{sessions} session{}",
                if sessions == 1 { "" } else { "s" }
            ),
            Self::Rate {
                rate_per_s,
                large_beside,
                ..
            } => {
                write!(f, "{rate_per_s}/s")?;
                beside(f, large_beside)
            }
            Self::Large { depth } => write!(f, "large reads, depth {depth}"),
            Self::Stream => write!(f, "one sequential stream"),
            Self::Write { depth } => write!(f, "writes, depth {depth}"),
            Self::Mixed {
                depth,
                write_percent,
            } => write!(f, "{write_percent} % writes, depth {depth}"),
            Self::LargeWrite { sustained: false } => write!(f, "the first minute of large writes"),
            Self::LargeWrite { sustained: true } => {
                write!(f, "large writes after their first minute")
            }
            Self::Log {
                bytes,
                log,
                writers,
            } => {
                write!(f, "log writes of {}", Bytes(bytes.into()))?;
                if let Some(log) = log {
                    write!(f, " to {}", log.about())?;
                }
                match writers {
                    1 => Ok(()),
                    _ => write!(f, ", {writers} writers"),
                }
            }
            Self::Again { depth } => write!(f, "depth {depth} again"),
            Self::ClosingDepth { depth } => write!(f, "closing measurement, depth {depth}"),
            Self::ClosingWrite { depth } => write!(f, "closing measurement, writes, depth {depth}"),
            Self::Reread {
                pair, just_read, ..
            } => {
                let which = if just_read {
                    "just read"
                } else {
                    "not just read"
                };
                write!(f, "re-read {pair}, a part {which}")
            }
            Self::Refill { .. } => f.write_str(&self.refill_in_words()),
            Self::Precondition { pass: 1 } => write!(f, "preconditioning, sequential writes"),
            Self::Precondition { .. } => write!(f, "preconditioning, random writes"),
            Self::Layer {
                layer,
                sessions,
                round,
            } => {
                write!(f, "layer {} of {sessions}, round {round}", layer.number())
            }
            Self::Round { round, .. } => write!(f, "round {round}"),
            Self::Hosts { active, round, .. } => {
                match active {
                    ActiveRanks::All => write!(f, "all ranks")?,
                    ActiveRanks::First(count) => write!(f, "the first {count} ranks")?,
                    ActiveRanks::Only(rank) => write!(f, "rank {rank} alone")?,
                }
                round_number(f, round)
            }
            Self::Neighbours {
                rank, depth, round, ..
            } => {
                match depth {
                    0 => write!(f, "rank {rank} while its neighbours wait")?,
                    _ => write!(f, "rank {rank} beside depth {depth} on each neighbour")?,
                }
                round_number(f, round)
            }
            Self::Arm { arm, depth } => write!(f, "arm {}, depth {depth}", arm_letter(arm)),
            Self::Multiple { thousandths } => write!(f, "{} ×", f64::from(thousandths) / 1e3),
        }
    }
}

/// Maximum number of windows of a measurement: three days of seconds. Each window takes memory and
/// space in the journal, even if it is empty.
const WINDOWS_MOST: u64 = 1 << 18;

impl Until {
    /// True if it ends with its work, and time only limits it.
    pub fn is_work(self) -> bool {
        matches!(self, Self::Ops(_) | Self::Work { .. })
    }

    /// The width of the windows of a measurement that ends this way: `usual`, or a multiple of it
    /// if there would be too many windows.
    pub fn window(self, usual: Nanos) -> Nanos {
        let (Self::Elapsed(most) | Self::Precise { most, .. } | Self::Work { most, .. }) = self
        else {
            return usual;
        };
        let times = most.0.div_ceil(usual.0.saturating_mul(WINDOWS_MOST)).max(1);
        Nanos(usual.0.saturating_mul(times))
    }
}

/// One data point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Its coordinates in the plan.
    pub coordinates: Coordinates,
    /// The streams that run together.
    pub streams: Vec<Stream>,
    /// The warm-up before the measurement.
    pub warm_up: WarmUp,
    /// When it ends.
    pub until: Until,
    /// Width of the windows in its record.
    #[serde(default = "Point::second")]
    pub window: Nanos,
    /// Seed of all its random choices.
    pub seed: u64,
}

impl Point {
    /// True if `rank` measures this stream of the point: its own ones, and those of no rank. Beside
    /// its neighbours, a rank with a stream of its own has no part in what the others do.
    pub fn is_of_rank(&self, stream: &Stream, rank: u32) -> bool {
        let is_own = |stream: &Stream| stream.rank == Some(rank);
        let takes_part =
            || self.coordinates.step() != Step::Neighbours || !self.streams.iter().any(is_own);
        is_own(stream) || (stream.rank.is_none() && takes_part())
    }

    /// The width of windows for measurements of a minute and more.
    pub const fn second() -> Nanos {
        Nanos::from_secs(1)
    }
}

/// One stream of operations: a load, a workload and a size.
///
/// Streams with the same name are one class: their operations are recorded together.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    /// The class, such as `small` or `large`.
    pub name: String,
    /// When operations are due.
    pub load: Load,
    /// The kinds of operation.
    pub mix: Mix,
    /// The positions.
    pub pattern: Pattern,
    /// Bytes of one operation; for a database, of one block.
    pub length: u32,
    /// Its writes go to a log's own file in this state, and not to blocks of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// What its response times must keep; `None` if the point is judged in another way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<Objective>,
    /// The work of database sessions, which replaces `mix` and `pattern`; `None` for raw I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sql: Option<SqlWork>,
    /// The only rank that has it, with its own rate; `None` if all ranks have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
}

impl Stream {
    /// The kinds of operation that can occur, in the order of [`Kind::ALL`].
    pub fn kinds(&self) -> Vec<Kind> {
        self.sql
            .as_ref()
            .map_or_else(|| self.mix.kinds().to_vec(), SqlWork::kinds)
    }
}

/// When operations are due.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Closed loop: a constant number of outstanding operations; the next one is issued when one
    /// completes.
    Closed {
        /// Outstanding operations.
        depth: u32,
    },
    /// Open loop: operations are due at times of their own, whatever the target does.
    Open {
        /// Offered load in operations per second.
        rate: f64,
        /// How the due times are spaced.
        arrivals: Arrivals,
        /// Maximum number of outstanding operations. Operations that are due beyond it wait, and
        /// the wait counts as response time.
        in_flight_max: u32,
    },
}

impl Load {
    /// Number of slots for outstanding operations that the load needs.
    pub fn slots(self) -> u32 {
        match self {
            Load::Closed { depth } => depth,
            Load::Open { in_flight_max, .. } => in_flight_max,
        }
    }

    /// True if operations are due at times of their own.
    pub fn is_open(self) -> bool {
        matches!(self, Load::Open { .. })
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

impl Arrivals {
    /// When operations are due, in words.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Poisson => "at random times",
            Self::Uniform => "at equal intervals",
        }
    }
}

/// The kinds of operation in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Mix {
    /// Fraction of operations that are writes; each operation is drawn independently.
    pub writes: Ratio,
    /// True if the writes are [`Kind::Log`], which complete when their data is durable.
    #[serde(default)]
    pub durable: bool,
}

impl Mix {
    /// Reads only.
    pub const READS: Mix = Mix {
        writes: Ratio::ZERO,
        durable: false,
    };

    /// Writes only, which are durable when the storage makes them so.
    pub const WRITES: Mix = Mix {
        writes: Ratio::ONE,
        durable: false,
    };

    /// Log writes only.
    pub const LOG: Mix = Mix {
        writes: Ratio::ONE,
        durable: true,
    };

    /// The kinds that can occur in this mix.
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
    pub fn write_kind(self) -> Kind {
        if self.durable { Kind::Log } else { Kind::Write }
    }
}

/// The warm-up before a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarmUp {
    /// Minimum duration.
    pub least: Nanos,
    /// Maximum duration; the measurement begins earlier if throughput is steady.
    pub most: Nanos,
}

impl WarmUp {
    /// No warm-up: measure from the first operation.
    pub const NONE: WarmUp = WarmUp {
        least: Nanos(0),
        most: Nanos(0),
    };
}

/// When a point ends. Times are counted from the end of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// After this time.
    Elapsed(Nanos),
    /// After exactly this many operations of each stream.
    Ops(u64),
    /// After exactly this many operations of each stream, or after `most`, whichever comes first.
    Work {
        /// Number of operations.
        ops: u64,
        /// Maximum measured time.
        most: Nanos,
    },
    /// When the figures are precise: the half-width of the 95 % interval of throughput and of
    /// median response time is within `precision` of their values.
    Precise {
        /// Required precision, as a fraction of the value.
        precision: Ratio,
        /// Minimum measured time.
        least: Nanos,
        /// Maximum measured time, precise or not.
        most: Nanos,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn coordinates_say_what_they_are() {
        let read = |value: &serde_json::Value| {
            serde_json::from_value::<Coordinates>(value.clone()).unwrap()
        };
        let depth = Coordinates::Depth {
            depth: 8,
            large_beside: 2,
            log: None,
        };
        let rate = Coordinates::Rate {
            rate_per_s: 900,
            in_flight_max: 512,
            large_beside: 0,
        };
        let layer = Coordinates::Layer {
            layer: Layer::Row,
            sessions: 4,
            round: 2,
        };
        for (coordinates, text) in [
            (
                Coordinates::cell(4, 1),
                json!({"step": "cell", "small": 4, "large": 1}),
            ),
            (
                depth,
                json!({"step": "depth", "depth": 8, "large_beside": 2}),
            ),
            (
                rate,
                json!({"step": "rate", "rate_per_s": 900, "in_flight_max": 512}),
            ),
            (Coordinates::Stream, json!({"step": "stream"})),
            (
                layer,
                json!({"step": "layer", "layer": "row", "sessions": 4, "round": 2}),
            ),
            (
                Coordinates::Round {
                    round: 7,
                    outstanding: 8,
                },
                json!({"step": "round", "round": 7, "outstanding": 8}),
            ),
        ] {
            assert_eq!(serde_json::to_value(coordinates).unwrap(), text);
            assert_eq!(read(&text), coordinates);
        }
    }
}
