//! The operations of one stream.

use super::rng::Rng;
use crate::model::{Kind, Op, Pattern, Stream};

/// An endless sequence of operations.
#[derive(Debug, Clone)]
pub struct Ops {
    rng: Rng,
    positions: Positions,
    /// A draw below this is a write: the share of writes in 2^32 parts.
    write_below: u64,
    extent: u64,
    length: u32,
}

#[derive(Debug, Clone)]
enum Positions {
    Uniform,
    Sequential { next: u64 },
}

impl Ops {
    /// The operations of `stream` over `extent` blocks of its length. `share` tells apart the workers of a stream.
    ///
    /// # Panics
    /// If `extent` is 0: a volume without room for one operation is refused before.
    #[must_use]
    pub fn new(stream: &Stream, extent: u64, seed: u64, share: u64) -> Self {
        assert!(extent > 0, "a volume must hold at least one operation");
        let positions = match stream.pattern {
            Pattern::Uniform => Positions::Uniform,
            Pattern::Sequential { start } => Positions::Sequential { next: start % extent },
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a ratio is between 0 and 1")]
        let write_below = (stream.mix.writes.get() * 2f64.powi(32)).round() as u64;
        Self { rng: Rng::new(seed, share), positions, write_below, extent, length: stream.length }
    }

    /// The next operation.
    #[inline]
    pub fn next_op(&mut self) -> Op {
        let position = match &mut self.positions {
            Positions::Uniform => self.rng.below(self.extent),
            Positions::Sequential { next } => {
                let position = *next;
                *next = if position + 1 == self.extent { 0 } else { position + 1 };
                position
            }
        };
        let write = self.write_below > 0 && self.rng.bits() >> 32 < self.write_below;
        Op { position, length: self.length, kind: if write { Kind::Write } else { Kind::Read } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Load, Mix, Ratio};

    fn stream(pattern: Pattern, write_percent: f64) -> Stream {
        Stream {
            name: "small".into(),
            load: Load::Closed { depth: 1 },
            mix: Mix { writes: Ratio::from_percent(write_percent).unwrap() },
            pattern,
            length: 8192,
        }
    }

    #[test]
    fn sequential_positions_wrap_at_the_end() {
        let mut ops = Ops::new(&stream(Pattern::Sequential { start: 3 }, 0.0), 5, 1, 0);
        let positions: Vec<u64> = (0..7).map(|_| ops.next_op().position).collect();
        assert_eq!(positions, [3, 4, 0, 1, 2, 3, 4]);
    }

    #[test]
    fn uniform_positions_touch_what_theory_says() {
        let extent = 10_000;
        let mut ops = Ops::new(&stream(Pattern::Uniform, 0.0), extent, 1, 0);
        let map = crate::record::CoverageMap::new(extent);
        (0..20_000).for_each(|_| map.touch(ops.next_op().position));
        let coverage = map.read();
        let off = (coverage.distinct as f64 - coverage.expected_uniform()).abs();
        assert!(off < 5.0 * coverage.expected_uniform_deviation(), "{coverage:?}");
    }

    #[test]
    fn the_mix_is_what_was_asked_for() {
        let mut ops = Ops::new(&stream(Pattern::Uniform, 30.0), 100, 1, 0);
        let writes = (0..100_000).filter(|_| ops.next_op().kind == Kind::Write).count();
        // Standard deviation 145: five of them.
        assert!(writes.abs_diff(30_000) < 725, "{writes}");
        let mut ops = Ops::new(&stream(Pattern::Uniform, 100.0), 100, 1, 0);
        assert!((0..1000).all(|_| ops.next_op().kind == Kind::Write));
    }
}
