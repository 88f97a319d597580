//! What searches have in common: the length of windows and warm-ups, the classes of I/O, the seeds of
//! points, and the climb to the maximum throughput.

use rigel_model::{ActiveRanks, Coordinates, LogKind, Nanos, Ratio, WarmUp};

/// The class of small I/O, which the results are about.
pub const SMALL: &str = "small";
/// The class of large I/O.
pub const LARGE: &str = "large";
/// The class of small I/O of the ranks beside one whose figures are asked for.
pub const NEIGHBOURS: &str = "neighbours";

/// Width of a window: short, so that a few seconds have enough windows for an interval.
pub const WINDOW: Nanos = Nanos::from_millis(100);

/// Minimum number of windows of a precise point: with fewer, an interval that is narrow by chance
/// would end it.
pub const WINDOWS_MIN: u64 = 20;

/// Warm-up before each measurement: long enough to see whether throughput is steady.
pub const WARM_UP: WarmUp = WarmUp {
    least: Nanos::from_millis(300),
    most: Nanos::from_secs(2),
};

/// The state of a search for the maximum throughput.
pub struct Climb {
    /// The depth to measure next; `None` if throughput no longer rises or the maximum depth is
    /// reached.
    pub wanted: Option<u32>,
    /// The maximum throughput so far.
    pub best: f64,
    /// Number of depths measured so far.
    pub tried: usize,
}

/// Searches from depth 1 by `deeper`, up to `most`, until `patience` consecutive depths gained no
/// more than `precision`; `iops` returns the measured rate at a depth.
pub fn climb(
    precision: Ratio,
    patience: u32,
    most: u32,
    deeper: impl Fn(u32) -> u32,
    iops: impl Fn(u32) -> Option<f64>,
) -> Climb {
    let gain = 1.0 + precision.get();
    let (mut best, mut without_gain, mut tried) = (0.0, 0, 0);
    let mut depth = 1;
    loop {
        let Some(iops) = iops(depth) else {
            return Climb {
                wanted: Some(depth),
                best,
                tried,
            };
        };
        tried += 1;
        without_gain = if iops > best * gain {
            0
        } else {
            without_gain + 1
        };
        best = iops.max(best);
        if without_gain >= patience || depth >= most {
            return Climb {
                wanted: None,
                best,
                tried,
            };
        }
        depth = deeper(depth);
    }
}

/// Doubles the depth.
pub fn doubled(depth: u32) -> u32 {
    depth * 2
}

/// The seed of a point: it differs between points, and between runs.
pub fn seed_of(seed: u64, coordinates: Coordinates) -> u64 {
    let (small, large) = coordinates.small_and_large();
    let (which, value) = match coordinates {
        Coordinates::Cell { .. } => (0, 0),
        Coordinates::Pass { pass } => (1, u64::from(pass)),
        Coordinates::Within { bytes } => (2, bytes),
        Coordinates::Depth { log, .. } => (3, log.map_or(0, LogKind::code)),
        Coordinates::Sessions { .. } => (3, 0),
        Coordinates::Rate { rate_per_s, .. } => (4, rate_per_s),
        Coordinates::Large { .. } => (5, 0),
        Coordinates::Stream => (6, 0),
        Coordinates::Write { .. } => (7, 0),
        Coordinates::Mixed { write_percent, .. } => (41, u64::from(write_percent)),
        Coordinates::LargeWrite { sustained } => (40, u64::from(sustained)),
        Coordinates::Log { bytes, log, .. } => {
            let state = log.map_or(0, LogKind::code);
            (8, state << 32 | u64::from(bytes))
        }
        Coordinates::Again { .. } => (9, 0),
        Coordinates::ClosingDepth { .. } => (30, 0),
        Coordinates::ClosingWrite { .. } => (32, 0),
        Coordinates::Reread { pair, .. } => (33, u64::from(pair)),
        Coordinates::Refill {
            pause_ms,
            drain,
            of_large,
            ..
        } => {
            let which = 39 + (u64::from(drain) << 8) + (u64::from(of_large) << 40);
            (which, u64::from(pause_ms))
        }
        Coordinates::Precondition { pass } => (34, u64::from(pass)),
        Coordinates::Layer { layer, round, .. } => (10 + layer as u64, u64::from(round)),
        Coordinates::Round { round, .. } => (20, u64::from(round)),
        Coordinates::Hosts {
            active,
            rate_per_s,
            round,
            ..
        } => {
            let which = match active {
                ActiveRanks::All => 0,
                ActiveRanks::First(count) => 1 << 32 | u64::from(count),
                ActiveRanks::Only(rank) => 2 << 32 | u64::from(rank),
            };
            (
                35 + (u64::from(round) << 8),
                which ^ rate_per_s.rotate_left(40),
            )
        }
        Coordinates::Multiple { thousandths } => (36, u64::from(thousandths)),
        Coordinates::Arm { arm, .. } => (38, u64::from(arm)),
        Coordinates::Neighbours {
            rate_per_s,
            depth,
            round,
            ..
        } => (
            37 + (u64::from(round) << 8),
            u64::from(depth) ^ rate_per_s.rotate_left(40),
        ),
    };
    // Knuth's multiplier for 64 bits mixes each part into the rest.
    let mix = |seed: u64, part: u64| {
        (seed ^ part)
            .wrapping_mul(6_364_136_223_846_793_005)
            .rotate_left(29)
    };
    [u64::from(small), u64::from(large), which, value]
        .into_iter()
        .fold(seed, mix)
}
