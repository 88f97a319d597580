//! Points of a run with several ranks: what each rank measures of a point, and rounds in which some
//! of the ranks measure while the others wait.
//!
//! The ranks are compared at one load, the same for each: every one alone, then 2, 4, 8 … of them,
//! then all; and all that again, so that a slow change of the storage is not taken for what hosts
//! do to each other. On request, one rank offers a fixed rate while the others climb.

use super::search::SMALL;
use crate::PointSummary;
use rigel_model::{ActiveRanks, Coordinates, Load, Pattern, Point, Ratio, Step};

/// Number of rounds.
const ROUNDS: u32 = 2;

/// Maximum number of ranks that are measured alone: of more, some with equal distances between
/// their numbers.
const ALONE_MAX: u32 = 8;

/// Outstanding I/Os of each neighbour of the rank whose rate is fixed; 0 if they wait.
const DEPTHS_OF_NEIGHBOURS: [u32; 5] = [0, 1, 4, 16, 64];

/// The point as `rank` of `size` measures it, on a volume of `usable` bytes; `None` if the rank
/// waits.
///
/// Depths and in-flight limits are those of each rank. An offered rate is that of all ranks
/// together, and each offers an equal part: independent arrivals added up are independent arrivals.
/// Only in rounds, and of streams that one rank alone has, the rate is that of each rank. Blocks
/// are drawn with a seed of the rank's own, and a sequential read begins at a part of the volume of
/// its own, since a cache that all ranks share would answer the second of them.
pub fn of_rank(point: &Point, rank: u32, size: u32, usable: u64) -> Option<Point> {
    let active = point.coordinates.active_ranks();
    if !active.includes(rank) {
        return None;
    }
    let mut own = point.clone();
    own.seed = point.seed.wrapping_add(u64::from(rank));
    let is_each = point.coordinates.step() == Step::Hosts;
    own.streams.retain(|stream| point.is_of_rank(stream, rank));
    for stream in &mut own.streams {
        if let Load::Open { rate, .. } = &mut stream.load
            && !is_each
            && stream.rank.is_none()
        {
            *rate /= f64::from(active.count(size).max(1));
        }
        if let Pattern::Sequential { start } = &mut stream.pattern
            && stream.mix.writes == Ratio::ZERO
        {
            let blocks = (usable / u64::from(stream.length.max(1))).max(1);
            let part = u128::from(blocks) * u128::from(rank) / u128::from(size.max(1));
            let part = u64::try_from(part).unwrap_or(0);
            *start = (*start % blocks + part) % blocks;
        }
    }
    Some(own)
}

/// The load of each rank in the rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadOfEach {
    /// Outstanding I/Os, or the in-flight limit.
    pub depth: u32,
    /// Offered operations per second; 0 in a closed loop.
    pub rate_per_s: u64,
}

/// The next point of the rounds after those in `done`, at `load`; `None` if they are complete, or
/// if there is only one rank. Once begun, all rounds have the load of the first.
pub fn next(size: u32, load: Option<LoadOfEach>, done: &[PointSummary]) -> Option<Coordinates> {
    let begun = done.iter().find_map(|point| match point.coordinates {
        Coordinates::Hosts {
            depth, rate_per_s, ..
        } => Some(LoadOfEach { depth, rate_per_s }),
        _ => None,
    });
    first_not_done(&steps(size), begun.or(load)?, done)
}

/// The first point that is not done, of rounds of these steps.
fn first_not_done(
    steps: &[ActiveRanks],
    load: LoadOfEach,
    done: &[PointSummary],
) -> Option<Coordinates> {
    let LoadOfEach { depth, rate_per_s } = load;
    let mut points = (1..=ROUNDS).flat_map(|round| {
        let coordinates = move |active: &ActiveRanks| Coordinates::Hosts {
            active: *active,
            depth,
            rate_per_s,
            round,
        };
        steps.iter().map(coordinates)
    });
    points.find(|wanted| done.iter().all(|point| point.coordinates != *wanted))
}

/// The next point after those rounds, of more and more ranks at a greater depth; `None` if they are
/// complete, or if `load` has no greater depth than the rounds. Once begun, all have the load of the
/// first.
pub fn next_of_ladder(
    size: u32,
    load: Option<LoadOfEach>,
    done: &[PointSummary],
) -> Option<Coordinates> {
    let depths = done.iter().filter_map(|point| match point.coordinates {
        Coordinates::Hosts { depth, .. } => Some(depth),
        _ => None,
    });
    let of_rounds = depths.clone().next()?;
    let begun = depths.clone().find(|depth| *depth != of_rounds);
    let depth = begun.or(load.map(|load| load.depth))?;
    let ladder = steps(size).into_iter().filter(|active| match active {
        ActiveRanks::Only(rank) => *rank == 0,
        _ => true,
    });
    let ladder: Vec<ActiveRanks> = ladder.collect();
    let load = LoadOfEach {
        depth,
        rate_per_s: 0,
    };
    first_not_done(&ladder, load, done).filter(|_| depth > of_rounds)
}

/// Number of points of all rounds.
pub fn points_expected(size: u32) -> usize {
    steps(size).len() * ROUNDS as usize
}

/// The next point after those in `done` at which one of `size` ranks offers I/Os per second, with an
/// in-flight limit, beside the others; `None` if they are complete, or if there is only one rank.
pub fn next_beside(size: u32, offered: (u64, u32), done: &[PointSummary]) -> Option<Coordinates> {
    if size < 2 {
        return None;
    }
    let points = (1..=ROUNDS)
        .flat_map(|round| DEPTHS_OF_NEIGHBOURS.map(|depth| beside(size, offered, depth, round)));
    let is_done = |wanted: &Coordinates| done.iter().any(|point| point.coordinates == *wanted);
    points.into_iter().find(|wanted| !is_done(wanted))
}

/// Of those points, the one with the most outstanding I/Os.
pub fn most_beside(size: u32, offered: (u64, u32)) -> Option<Coordinates> {
    let depth = DEPTHS_OF_NEIGHBOURS
        .into_iter()
        .max()
        .filter(|_| size > 1)?;
    Some(beside(size, offered, depth, 1))
}

/// The rank with the fixed rate is the last, since rank 0 has the run to conduct.
pub fn beside(
    size: u32,
    (rate_per_s, in_flight_max): (u64, u32),
    depth: u32,
    round: u32,
) -> Coordinates {
    Coordinates::Neighbours {
        rank: size.saturating_sub(1),
        rate_per_s,
        in_flight_max,
        depth,
        round,
    }
}

/// Number of points at which one rank is beside the others.
pub fn points_beside() -> usize {
    DEPTHS_OF_NEIGHBOURS.len() * ROUNDS as usize
}

/// What is measured in a round.
fn steps(size: u32) -> Vec<ActiveRanks> {
    if size < 2 {
        return Vec::new();
    }
    let alone = size.min(ALONE_MAX);
    let each = (0..alone).map(|at| {
        let rank = u64::from(at) * u64::from(size) / u64::from(alone);
        ActiveRanks::Only(u32::try_from(rank).unwrap_or(0))
    });
    let doubled = (1..u32::BITS)
        .map(|power| 1 << power)
        .take_while(|count| *count < size);
    each.chain(doubled.map(ActiveRanks::First))
        .chain([ActiveRanks::All])
        .collect()
}

/// The closed loop with the most operations per second of small I/O among `done`, or else the
/// highest offered rate, divided among `size` ranks.
pub fn fullest(size: u32, done: &[PointSummary]) -> Option<LoadOfEach> {
    let of = |step: Step| {
        let points = done.iter().filter(move |point| point.step() == step);
        points.filter_map(|point| {
            let class = point.classes.iter().find(|class| class.name == SMALL)?;
            Some((point.coordinates, class.iops))
        })
    };
    let closed = of(Step::Depth).max_by(|one, other| one.1.total_cmp(&other.1));
    if let Some((coordinates, _)) = closed {
        return Some(LoadOfEach {
            depth: coordinates.outstanding(),
            rate_per_s: 0,
        });
    }
    let (coordinates, _) = of(Step::Rate).max_by_key(|(coordinates, _)| coordinates.rate())?;
    let each = coordinates.rate()? / u64::from(size.max(1));
    Some(LoadOfEach {
        depth: coordinates.outstanding(),
        rate_per_s: each.max(1),
    })
}

/// True for the number of ranks of a run that one process measured alone.
pub fn is_alone(ranks: &u32) -> bool {
    *ranks == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use ActiveRanks::{All, First, Only};

    #[test]
    fn a_round_has_each_host_alone_then_more_and_more_of_them() {
        assert_eq!(steps(1), []);
        assert_eq!(steps(2), [Only(0), Only(1), All]);
        assert_eq!(steps(3), [Only(0), Only(1), Only(2), First(2), All]);
        assert_eq!(
            steps(4),
            [Only(0), Only(1), Only(2), Only(3), First(2), All]
        );
        let many = steps(1000);
        assert_eq!(many[..3], [Only(0), Only(125), Only(250)]);
        assert_eq!(
            many[8..],
            [2, 4, 8, 16, 32, 64, 128, 256, 512]
                .map(First)
                .into_iter()
                .chain([All])
                .collect::<Vec<_>>()
        );
    }
}
