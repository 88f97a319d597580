//! Preconditioning: the whole volume is written twice before writes are measured.
//!
//! Flash that was never written full accepts writes faster than it can in the long run. SNIA's
//! Solid State Storage Performance Test Specification (version 2.0.2, preconditioning) writes twice
//! the capacity sequentially, then the workload under test until it is steady. Here the volume is
//! written once sequentially, and once in random order in blocks of the size that is measured: the
//! second pass leaves the device's tables as the workload does.

use rigel_analyse::PointSummary;
use rigel_analyse::plan::search::{LARGE, SMALL, seed_of};
use rigel_model::{
    Coordinates, GIB, Load, Mix, Nanos, Pattern, Point, Ratio, Stream, Until, WarmUp,
};

/// The passes: sequential, then in random order.
pub(super) const PASSES: [u32; 2] = [1, 2];

/// The volume for which windows are a second wide; they grow with it, so that a record stays small.
const OF_A_SECOND: u64 = 256 * GIB;

/// The next pass after those in `done`; `None` if it was not asked for, or is complete.
pub(super) fn next(is_wanted: bool, done: &[PointSummary]) -> Option<Coordinates> {
    let passes = PASSES.map(|pass| Coordinates::Precondition { pass });
    let is_left = |pass: &Coordinates| done.iter().all(|point| point.coordinates != *pass);
    passes.into_iter().find(is_left).filter(|_| is_wanted)
}

/// A pass over a volume of `usable` bytes, in blocks of the small or the large one of `sizes`.
pub(super) fn point(pass: u32, sizes: [u32; 2], usable: u64, seed: u64) -> Point {
    let coordinates = Coordinates::Precondition { pass };
    let (name, length, pattern) = if pass == PASSES[0] {
        (LARGE, sizes[1], Pattern::Sequential { start: 0 })
    } else {
        (SMALL, sizes[0], Pattern::Permutation { start: 0 })
    };
    let load = Load::Closed {
        depth: coordinates.outstanding(),
    };
    let stream = Stream {
        objective: None,
        sql: None,
        name: name.into(),
        load,
        mix: Mix {
            writes: Ratio::ONE,
            durable: false,
        },
        pattern,
        length,
        rank: None,
        log: None,
    };
    Point {
        coordinates,
        streams: vec![stream],
        warm_up: WarmUp::NONE,
        // What is left at the end of a volume is smaller than one I/O.
        until: Until::Ops((usable / u64::from(length)).max(1)),
        seed: seed_of(seed, coordinates),
        window: Nanos::from_secs(usable.div_ceil(OF_A_SECOND).max(1)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::MIB;

    #[test]
    fn both_passes_write_the_whole_volume_in_their_own_order() {
        for (pass, length) in [(1, 1 << 20), (2, 8192)] {
            let point = point(pass, [8192, 1 << 20], 64 * MIB, 1);
            let stream = &point.streams[0];
            assert_eq!(point.until, Until::Ops(64 * MIB / length));
            assert_eq!(
                (stream.mix.writes, u64::from(stream.length)),
                (Ratio::ONE, length)
            );
        }
        assert_eq!(next(false, &[]), None);
        assert_eq!(next(true, &[]), Some(Coordinates::Precondition { pass: 1 }));
    }
}
