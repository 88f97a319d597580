//! Which blocks a point touched, and whether chance explains their number.

use rigel_model::Pattern;
use rigel_model::record::StreamRecord;
use serde::Serialize;

/// Allowed deviation of coverage from theory, in standard deviations: chance exceeds six once in
/// 500 million.
const COVERAGE_TOLERANCE: f64 = 6.0;

/// The blocks of the volume that a class touched, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CoverageSummary {
    /// Blocks in the volume.
    pub blocks: u64,
    /// Number of distinct watched blocks that were touched.
    pub watched: u64,
    /// Distinct watched blocks touched.
    pub distinct: u64,
    /// Expected number of distinct blocks for as many uniform draws: `M (1 - e^(-N/M))`; `None`
    /// for other patterns.
    pub expected: Option<f64>,
    /// Standard deviation of `expected`.
    pub expected_deviation: Option<f64>,
    /// Number of slices of the volume, of 33 to 64, with at least one touched block.
    pub slices_touched: usize,
    /// Number of all slices.
    pub slices: usize,
}

impl CoverageSummary {
    /// What a stream touched.
    pub(super) fn of(stream: &StreamRecord) -> Self {
        let coverage = &stream.coverage;
        // A database operation visits a range of rows, so the blocks are not independent draws.
        let uniform = stream.sql.is_none()
            && stream
                .patterns
                .iter()
                .all(|pattern| *pattern == Pattern::Uniform);
        Self {
            blocks: coverage.extent,
            watched: coverage.tracked,
            distinct: coverage.distinct,
            expected: uniform.then(|| coverage.expected_uniform()),
            expected_deviation: uniform.then(|| coverage.expected_uniform_deviation()),
            slices_touched: coverage.slices.iter().filter(|count| **count > 0).count(),
            slices: coverage.slices.len(),
        }
    }

    /// The expected number of distinct blocks, if chance does not explain that many were touched.
    pub(super) fn beyond_chance(&self) -> Option<f64> {
        /// So many blocks are drawn again that their number is normal.
        const MANY: f64 = 100.0;
        let (expected, deviation) = self.expected.zip(self.expected_deviation)?;
        let (distinct, blocks) = (self.distinct as f64, self.watched as f64);
        if (distinct - expected).abs() <= COVERAGE_TOLERANCE * deviation.max(1.0) {
            return None;
        }
        // The number of draws, and how many of them were, and should be, of a block drawn before.
        let draws = -blocks * (-expected / blocks).ln_1p();
        let (again, usual) = (draws - distinct, draws - expected);
        if usual >= MANY {
            return Some(expected);
        }
        // Few are Poisson's, whose tail is longer than the normal one: Chernoff's bound of it.
        let of_more = if again > 0.0 {
            again * (again / usual).ln()
        } else {
            0.0
        };
        let exponent = of_more - again + usual;
        (exponent > COVERAGE_TOLERANCE.powi(2) / 2.0).then_some(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_few_blocks_that_were_drawn_again_are_chance() {
        // 1,194 draws of 524,288 blocks: 1.36 of a block drawn before, 9 of them once in 60,000 times.
        let drawn = |again: u64| {
            let (draws, blocks) = (1194.0, 524_288.0);
            let expected: f64 = -blocks * f64::exp_m1(-draws / blocks);
            let summary = CoverageSummary {
                blocks: 524_288,
                watched: 524_288,
                distinct: 1194 - again,
                expected: Some(expected),
                expected_deviation: Some(1.17),
                slices_touched: 64,
                slices: 64,
            };
            summary.beyond_chance().is_some()
        };
        assert!(![0, 1, 9].into_iter().any(drawn));
        assert!([20, 600].into_iter().all(drawn));
    }
}
