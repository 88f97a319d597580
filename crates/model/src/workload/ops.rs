//! The operations of one stream.

use super::permutation::Permutation;
use super::rng::Rng;
use super::sessions::SessionOps;
use super::zipf::Zipf;
use crate::{Kind, Nanos, Op, Pattern, Ratio, Stream};

/// An endless sequence of operations.
#[derive(Debug, Clone)]
pub struct Ops {
    rng: Rng,
    positions: Positions,
    /// A draw below this is a write: the fraction of writes, times 2^32.
    write_below: u64,
    write_kind: Kind,
    extent: u64,
    length: u32,
    /// Only for a database session.
    session: Option<Box<SessionOps>>,
}

#[derive(Debug, Clone)]
enum Positions {
    Uniform,
    /// The session decides the position and the kind.
    Session,
    Sequential {
        next: u64,
    },
    Zipf {
        ranks: Zipf,
        scatter: Permutation,
    },
    Hotspot {
        /// A draw below this goes to the hot part: its fraction of operations, times 2^32.
        hot_below: u64,
        /// Blocks in the hot part.
        hot: u64,
    },
    Permutation {
        order: Permutation,
        /// Index in the order at which the stream begins.
        start: u64,
        /// Offsets from there to this worker's next operation and to its first one, and the
        /// distance between two of its operations.
        next: u64,
        first: u64,
        stride: u64,
    },
    /// A permutation of the blocks from `begin` on.
    Part {
        begin: u64,
        blocks: u64,
        order: Permutation,
        next: u64,
        first: u64,
        stride: u64,
    },
}

/// The worker and stream that draw the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Index of the stream in its point.
    pub stream: u32,
    /// Index of the worker in its point, or of the database session.
    pub worker: u32,
    /// Number of earlier workers, or sessions, that serve the stream too.
    pub turn: u64,
    /// Number of workers, or sessions, that serve the stream.
    pub workers: u64,
}

impl Share {
    /// The only worker of the only stream.
    pub const ALL: Share = Share {
        stream: 0,
        worker: 0,
        turn: 0,
        workers: 1,
    };
}

impl Ops {
    /// The operations of `stream` that belong to `share`, over `extent` blocks of the stream's
    /// length.
    ///
    /// # Panics
    /// If `extent` is 0, or less than the tables of a session: callers refuse such a volume.
    pub fn new(stream: &Stream, extent: u64, seed: u64, share: Share) -> Self {
        assert!(extent > 0, "a volume must hold at least one operation");
        assert!(
            stream.sql.is_none_or(|work| work.extent() <= extent),
            "a volume must hold the tables of its sessions"
        );
        // All workers of a stream scatter and order its blocks in the same way.
        let permutation = || Permutation::new(extent, seed ^ u64::from(share.stream));
        let positions = match stream.pattern {
            _ if stream.sql.is_some() => Positions::Session,
            Pattern::Uniform => Positions::Uniform,
            Pattern::Sequential { start } => Positions::Sequential {
                next: start % extent,
            },
            Pattern::Zipf { theta } => Positions::Zipf {
                ranks: Zipf::new(extent, theta),
                scatter: permutation(),
            },
            Pattern::Hotspot { space, share } => {
                let most = if share == Ratio::ONE {
                    extent
                } else {
                    extent - 1
                };
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "at most the extent"
                )]
                let hot = (space.get() * extent as f64).round() as u64;
                // A single block is always hot.
                Positions::Hotspot {
                    hot_below: parts(share),
                    hot: hot.clamp(1, most.max(1)),
                }
            }
            Pattern::Permutation { start } => {
                // If there are more workers than blocks, the remaining workers start again at the
                // beginning.
                let first = share.turn % extent;
                let stride = share.workers.max(1);
                Positions::Permutation {
                    order: permutation(),
                    start: start % extent,
                    next: first,
                    first,
                    stride,
                }
            }
            Pattern::Part { start, blocks } => {
                let begin = start % extent;
                let blocks = blocks.clamp(1, extent - begin);
                let first = share.turn % blocks;
                Positions::Part {
                    begin,
                    blocks,
                    order: Permutation::new(blocks, seed ^ u64::from(share.stream)),
                    next: first,
                    first,
                    stride: share.workers.max(1),
                }
            }
        };
        let generator = (u64::from(share.stream) << 32) | u64::from(share.worker);
        Self {
            rng: Rng::new(seed, generator),
            positions,
            write_below: parts(stream.mix.writes),
            write_kind: stream.mix.write_kind(),
            extent,
            length: stream.length,
            session: stream
                .sql
                .map(|work| Box::new(SessionOps::new(work, share.turn))),
        }
    }

    /// Pause (think time) of the session before the operation just made.
    #[inline]
    pub fn pause(&mut self) -> Nanos {
        self.session
            .as_ref()
            .map_or(Nanos(0), |session| session.pause(&mut self.rng))
    }

    /// The next operation.
    #[inline]
    pub fn next_op(&mut self) -> Op {
        let position = match &mut self.positions {
            Positions::Uniform => self.rng.below(self.extent),
            Positions::Sequential { next } => {
                let position = *next;
                *next = if position + 1 == self.extent {
                    0
                } else {
                    position + 1
                };
                position
            }
            Positions::Session => return self.next_of_session(),
            _ => self.next_elsewhere(),
        };
        let write = self.write_below > 0 && self.rng.bits() >> 32 < self.write_below;
        Op {
            position,
            length: self.length,
            kind: if write { self.write_kind } else { Kind::Read },
        }
    }

    #[inline(never)]
    fn next_of_session(&mut self) -> Op {
        let session = self
            .session
            .as_mut()
            .expect("a session's positions come with its work");
        let (position, kind) = session.next(&mut self.rng);
        Op {
            position,
            length: self.length,
            kind,
        }
    }

    /// The next position of the other patterns. A separate function, so that the caller stays
    /// short: with all patterns in one function, making a uniform operation takes 12 ns instead
    /// of 4.
    #[inline(never)]
    fn next_elsewhere(&mut self) -> u64 {
        match &mut self.positions {
            Positions::Zipf { ranks, scatter } => scatter.of(ranks.draw(&mut self.rng)),
            Positions::Hotspot { hot_below, hot } => {
                if *hot == self.extent || self.rng.bits() >> 32 < *hot_below {
                    self.rng.below(*hot)
                } else {
                    *hot + self.rng.below(self.extent - *hot)
                }
            }
            Positions::Permutation {
                order,
                start,
                next,
                first,
                stride,
            } => {
                let place = *start + *next;
                *next = if *next + *stride < self.extent {
                    *next + *stride
                } else {
                    *first
                };
                order.of(if place < self.extent {
                    place
                } else {
                    place - self.extent
                })
            }
            Positions::Part {
                begin,
                blocks,
                order,
                next,
                first,
                stride,
            } => {
                let place = *next;
                *next = if *stride < *blocks - *next {
                    *next + *stride
                } else {
                    *first
                };
                *begin + order.of(place)
            }
            Positions::Uniform | Positions::Sequential { .. } | Positions::Session => {
                unreachable!("made where the operation is made")
            }
        }
    }
}

/// A fraction, times 2^32.
fn parts(share: Ratio) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a ratio is between 0 and 1"
    )]
    let parts = (share.get() * 2f64.powi(32)).round() as u64;
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Load, Mix};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn stream(pattern: Pattern, write_percent: f64) -> Stream {
        Stream {
            objective: None,
            sql: None,
            name: "small".into(),
            load: Load::Closed { depth: 1 },
            mix: Mix {
                writes: Ratio::from_percent(write_percent).unwrap(),
                durable: false,
            },
            pattern,
            length: 8192,
            rank: None,
            log: None,
        }
    }

    #[test]
    fn sequential_positions_wrap_at_the_end() {
        let mut ops = Ops::new(
            &stream(Pattern::Sequential { start: 3 }, 0.0),
            5,
            1,
            Share::ALL,
        );
        let positions: Vec<u64> = (0..7).map(|_| ops.next_op().position).collect();
        assert_eq!(positions, [3, 4, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn uniform_positions_touch_the_expected_number_of_blocks() {
        let extent = 10_000;
        let mut ops = Ops::new(&stream(Pattern::Uniform, 0.0), extent, 1, Share::ALL);
        let map = crate::record::CoverageMap::new(extent);
        (0..20_000).for_each(|_| map.touch(ops.next_op().position));
        let coverage = map.read();
        let off = (coverage.distinct as f64 - coverage.expected_uniform()).abs();
        assert!(
            off < 5.0 * coverage.expected_uniform_deviation(),
            "{coverage:?}"
        );
    }

    #[test]
    fn the_mix_has_the_requested_shares() {
        let mut ops = Ops::new(&stream(Pattern::Uniform, 30.0), 100, 1, Share::ALL);
        let writes = (0..100_000)
            .filter(|_| ops.next_op().kind == Kind::Write)
            .count();
        // Standard deviation 145: five of them.
        assert!(writes.abs_diff(30_000) < 725, "{writes}");
        let mut ops = Ops::new(&stream(Pattern::Uniform, 100.0), 100, 1, Share::ALL);
        assert!((0..1000).all(|_| ops.next_op().kind == Kind::Write));
    }

    #[test]
    fn the_kinds_that_come_are_those_the_mix_announces() {
        for writes in [0.0, 30.0, 100.0] {
            for durable in [false, true] {
                let mut stream = stream(Pattern::Uniform, writes);
                stream.mix.durable = durable;
                let mut ops = Ops::new(&stream, 100, 1, Share::ALL);
                let mut kinds: Vec<Kind> = (0..1000).map(|_| ops.next_op().kind).collect();
                kinds.sort_unstable();
                kinds.dedup();
                assert_eq!(
                    kinds,
                    stream.mix.kinds(),
                    "{writes} % writes, durable {durable}"
                );
            }
        }
    }

    #[test]
    fn a_hotspot_gets_its_share_and_either_part_is_even() {
        for (text, extent, hot, share) in [
            ("hotspot:20%:80%", 1000, 200, 0.8),
            ("hotspot:0.5%:25%", 1000, 5, 0.25),
            ("hotspot:0.001%:50%", 10, 1, 0.5),
            ("hotspot:99.99%:50%", 10, 9, 0.5),
            ("hotspot:30%:100%", 1000, 300, 1.0),
            ("hotspot:10%:10%", 1, 1, 1.0),
        ] {
            let mut ops = Ops::new(&stream(text.parse().unwrap(), 0.0), extent, 1, Share::ALL);
            let positions: Vec<u64> = (0..100_000).map(|_| ops.next_op().position).collect();
            assert!(
                positions.iter().all(|position| *position < extent),
                "{text}"
            );
            let count = |range: std::ops::Range<u64>| {
                positions.iter().filter(|at| range.contains(at)).count() as f64
            };
            let near = |count: f64, share: f64| {
                (count - 1e5 * share).abs() <= 5.0 * (1e5 * share * (1.0 - share)).sqrt()
            };
            assert!(near(count(0..hot), share), "{text}: {}", count(0..hot));
            assert!(
                near(count(0..hot / 2), share * (hot / 2) as f64 / hot as f64),
                "{text}"
            );
            let (rest, half) = (extent - hot, (extent - hot) / 2);
            if rest > 0 {
                assert!(
                    near(
                        count(hot..hot + half),
                        (1.0 - share) * half as f64 / rest as f64
                    ),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn popular_blocks_are_the_same_for_every_worker_and_no_neighbours() {
        let counts = |worker| {
            let share = Share {
                worker,
                ..Share::ALL
            };
            let mut ops = Ops::new(
                &stream(Pattern::Zipf { theta: 0.99 }, 0.0),
                100_000,
                1,
                share,
            );
            let mut counts = BTreeMap::new();
            (0..200_000).for_each(|_| *counts.entry(ops.next_op().position).or_insert(0u32) += 1);
            let mut counts: Vec<(u32, u64)> = counts
                .into_iter()
                .map(|(position, count)| (count, position))
                .collect();
            counts.sort_unstable_by(|a, b| b.cmp(a));
            counts
        };
        let (one, other) = (counts(0), counts(1));
        assert_ne!(one, other, "two workers draw the same");
        let first = |counts: &[(u32, u64)]| {
            counts
                .iter()
                .take(3)
                .map(|(_, position)| *position)
                .collect::<Vec<_>>()
        };
        assert_eq!(first(&one), first(&other));
        let mut popular: Vec<u64> = one.iter().take(50).map(|(_, position)| *position).collect();
        popular.sort_unstable();
        // Fifty draws from 100,000: one pair of neighbours is expected in 40 such tests, three of
        // them hardly ever.
        assert!(
            popular
                .windows(2)
                .filter(|pair| pair[1] - pair[0] < 2)
                .count()
                < 3,
            "{popular:?}"
        );
        assert!(popular[0] < 20_000 && popular[49] > 80_000, "{popular:?}");
    }

    proptest! {
        #[test]
        fn a_permutation_visits_every_block_once_however_many_workers_share_it(
            extent in 1u64..2000, start in any::<u64>(), workers in 1u64..20, seed in any::<u64>()
        ) {
            let mut visits = vec![0; usize::try_from(extent).unwrap()];
            for turn in 0..workers {
                let share = Share { stream: 1, worker: u32::try_from(turn).unwrap(), turn, workers };
                let mut ops = Ops::new(&stream(Pattern::Permutation { start }, 0.0), extent, seed, share);
                // Fixed work is divided in the same way.
                for _ in 0..extent / workers + u64::from(turn < extent % workers) {
                    visits[usize::try_from(ops.next_op().position).unwrap()] += 1;
                }
            }
            prop_assert!(visits.iter().all(|visits| *visits == 1), "{visits:?}");
        }
    }

    #[test]
    fn a_permutation_continues_where_another_ended_and_wraps_around() {
        let positions = |start, count| -> Vec<u64> {
            let mut ops = Ops::new(
                &stream(Pattern::Permutation { start }, 0.0),
                10,
                7,
                Share::ALL,
            );
            (0..count).map(|_| ops.next_op().position).collect()
        };
        let twice = positions(0, 20);
        assert_eq!(twice[..10], twice[10..]);
        assert_eq!(positions(4, 10), twice[4..14]);
    }
}
