//! Reading again after the sweep, where a cache is suspected to hold all of the target.
//!
//! Parts of the volume come in pairs. One of a pair is read, and then measured: whatever caches
//! reads below has it. The other is measured after a third part was read, so that both measurements
//! follow the same work. All parts are different, scattered over the volume, and equally large.

use super::request::CalibrateRequest;
use rigel_analyse::plan::search::SMALL;
use rigel_analyse::search::at_load::reads_alone;
use rigel_analyse::search::unseen::certain_median_us;
use rigel_analyse::{ClassSummary, PointSummary, answers_from_cache};
use rigel_model::{Coordinates, Load, MIB, Mix, Nanos, Pattern, Point, Stream, Until, WarmUp};

/// Number of pairs.
const PAIRS: u32 = 6;

/// Parts of each pair: the one that is read twice, the other one, and the one that is read before.
const PARTS_OF_PAIR: u64 = 3;

/// Time in which a part is read once, as far as depth 1 tells.
const TIME: Nanos = Nanos::from_millis(200);

/// Maximum time of one measurement.
const TIME_MAX: Nanos = Nanos::from_secs(1);

/// Minimum number of blocks in a part, and its maximum size.
const BLOCKS_MIN: u64 = 64;
const PART_MAX: u64 = 16 * MIB;

/// The next part to measure on a volume of `usable` bytes; `None` if no cache is suspected, or all
/// were measured.
pub(super) fn next(
    request: &CalibrateRequest,
    done: &[PointSummary],
    usable: u64,
) -> Option<Coordinates> {
    let below = request.suspect_below?;
    let low = reads_alone(done)?;
    let is_slow = certain_median_us(low)? >= below.as_micros_f64();
    if is_slow || is_found(done, low) {
        return None;
    }
    let bytes = size(request, low.iops, usable)?;
    let is_done = |pair: u32, just_read: bool| {
        done.iter().any(|point| {
            matches!(point.coordinates, Coordinates::Reread { pair: known, just_read: which, .. }
                if known == pair && which == just_read)
        })
    };
    let order = |pair: u32| {
        // Neither is always the first.
        let first = pair % 2 == 1;
        [(pair, first), (pair, !first)]
    };
    (1..=PAIRS)
        .flat_map(order)
        .find(|(pair, just_read)| !is_done(*pair, *just_read))
        .map(|(pair, just_read)| Coordinates::Reread {
            pair,
            bytes,
            just_read,
        })
}

/// Number of measurements.
pub(super) fn points_expected(request: &CalibrateRequest) -> usize {
    request.suspect_below.map_or(0, |_| 2 * PAIRS as usize)
}

/// True if a part answered faster than the whole: then a cache is known already.
fn is_found(done: &[PointSummary], whole: &ClassSummary) -> bool {
    done.iter()
        .filter(|point| matches!(point.coordinates, Coordinates::Within { .. }))
        .filter_map(|point| point.classes.first())
        .any(|part| answers_from_cache(part, whole))
}

/// Bytes of each part; `None` if the volume is too small for all of them.
fn size(request: &CalibrateRequest, iops: f64, usable: u64) -> Option<u64> {
    let block = u64::from(request.block);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float casts saturate"
    )]
    let blocks = (iops * TIME.as_secs_f64()) as u64;
    let room = usable / (2 * PARTS_OF_PAIR * u64::from(PAIRS)) / block;
    let blocks = blocks.max(BLOCKS_MIN).min(PART_MAX / block).min(room);
    (blocks >= BLOCKS_MIN).then_some(blocks * block)
}

/// The measurement of a part, at these coordinates.
pub(super) fn point(
    request: &CalibrateRequest,
    coordinates: Coordinates,
    usable: u64,
    seed: u64,
) -> Point {
    let Coordinates::Reread {
        pair,
        bytes,
        just_read,
    } = coordinates
    else {
        unreachable!("asked for a part alone");
    };
    let which = u64::from(!just_read);
    let blocks = bytes / u64::from(request.block);
    part(
        request,
        coordinates,
        (pair, which, usable),
        seed,
        Until::Work {
            ops: blocks,
            most: TIME_MAX,
        },
    )
}

/// What is read before: the same part, or a third one.
pub(super) fn warming(
    request: &CalibrateRequest,
    coordinates: Coordinates,
    usable: u64,
    seed: u64,
) -> Option<Point> {
    let Coordinates::Reread {
        pair,
        bytes,
        just_read,
    } = coordinates
    else {
        return None;
    };
    let which = if just_read { 0 } else { 2 };
    let ops = bytes / u64::from(request.block);
    let read = part(
        request,
        coordinates,
        (pair, which, usable),
        seed,
        Until::Ops(ops),
    );
    // In another order than it is measured.
    Some(Point {
        seed: read.seed ^ 1,
        ..read
    })
}

/// Reads of part `which` of a pair on a volume of `usable` bytes.
fn part(
    request: &CalibrateRequest,
    coordinates: Coordinates,
    (pair, which, usable): (u32, u64, u64),
    seed: u64,
    until: Until,
) -> Point {
    let Coordinates::Reread { bytes, .. } = coordinates else {
        unreachable!("asked for a part alone");
    };
    let block = u64::from(request.block);
    let (blocks, extent) = (bytes / block, usable / block);
    let parts = PARTS_OF_PAIR * u64::from(PAIRS);
    // Each part lies at random within its own stretch of the volume.
    let number = PARTS_OF_PAIR * u64::from(pair.saturating_sub(1)) + which;
    let stretch = extent / parts;
    let of_part = rigel_analyse::plan::search::seed_of(seed ^ number, coordinates);
    let start = number % parts * stretch + of_part % stretch.saturating_sub(blocks).max(1);
    let stream = Stream {
        objective: None,
        sql: None,
        name: SMALL.into(),
        load: Load::Closed { depth: 1 },
        mix: Mix::READS,
        pattern: Pattern::Part { start, blocks },
        length: request.block,
        rank: None,
        log: None,
    };
    Point {
        coordinates,
        streams: vec![stream],
        warm_up: WarmUp::NONE,
        until,
        seed: of_part,
        window: rigel_analyse::plan::search::WINDOW,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::GIB;

    /// First and last block of a point's part.
    fn blocks_of(point: &Point) -> (u64, u64) {
        match point.streams[0].pattern {
            Pattern::Part { start, blocks } => (start, start + blocks - 1),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn parts_do_not_overlap_but_for_the_one_that_is_read_again() {
        let request = CalibrateRequest::DEFAULT;
        for (usable, iops) in [(64 * MIB, 50_000.0), (4 * GIB, 12_000.0), (GIB, 100.0)] {
            let bytes = size(&request, iops, usable).unwrap();
            let mut parts = Vec::new();
            for pair in 1..=PAIRS {
                let at = |just_read| Coordinates::Reread {
                    pair,
                    bytes,
                    just_read,
                };
                let point = |at| blocks_of(&point(&request, at, usable, 7));
                let before = |at| blocks_of(&warming(&request, at, usable, 7).unwrap());
                assert_eq!(before(at(true)), point(at(true)), "the part was just read");
                parts.extend([point(at(true)), point(at(false)), before(at(false))]);
            }
            parts.sort_unstable();
            assert_eq!(parts.len(), 18);
            for two in parts.windows(2) {
                assert!(two[0].1 < two[1].0, "{two:?} of {usable}");
            }
            assert!(parts[17].1 < usable / u64::from(request.block));
        }
    }

    #[test]
    fn a_volume_without_room_for_the_parts_is_not_read_again() {
        let request = CalibrateRequest::DEFAULT;
        assert_eq!(size(&request, 10_000.0, 16 * MIB), None);
        // A slow disk gets the minimum, a fast one the maximum.
        assert_eq!(size(&request, 10.0, GIB), Some(64 * 8192));
        assert_eq!(size(&request, 1e6, 4 * GIB), Some(16 * MIB));
    }
}
