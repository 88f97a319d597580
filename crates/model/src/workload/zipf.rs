//! Numbers with a Zipf distribution, exactly and without a table.
//!
//! Input: an exponent, the number of ranks, random bits. Output: a rank, the k-th with a
//! probability proportional to `k^-theta`. Rejection-inversion of W. Hörmann and G. Derflinger,
//! Rejection-inversion to generate variates from monotone discrete distributions, ACM TOMACS 6
//! (1996): it works for every exponent above 0. The method of Gray et al. (SIGMOD 1994), which YCSB
//! and fio use, is an approximation, first needs a sum over all ranks, and works only below 1.

use super::rng::Rng;
use crate::Pattern;

/// An exponent within this distance of 1 is treated as 1. Closer to 1, the rounding errors of the
/// power, some 1e-16 / distance, exceed the error of the logarithm: a fraction `distance * ln x`,
/// 3e-7 in a volume of 2^40 blocks.
const NEAR: f64 = 1e-8;

/// A sampler of ranks `1..=ranks`.
#[derive(Debug, Clone)]
pub(super) struct Zipf {
    ranks: u64,
    theta: f64,
    /// 1 - theta, and its reciprocal.
    rise: f64,
    fall: f64,
    /// True if theta is (nearly) 1.
    is_logarithm: bool,
    /// The integral of the hat function at both ends: draws are uniform between them.
    from: f64,
    to: f64,
    /// A rank at most this far above its draw is accepted without a further check.
    sure: f64,
}

impl Zipf {
    /// Creates a sampler of ranks up to `ranks` with exponent `theta`, clamped to its valid range.
    pub(super) fn new(ranks: u64, theta: f64) -> Self {
        let theta = theta.clamp(0.0, Pattern::THETA_MAX);
        let rise = 1.0 - theta;
        let is_logarithm = rise.abs() < NEAR;
        let mut zipf = Self {
            ranks,
            theta,
            rise,
            fall: rise.recip(),
            is_logarithm,
            from: 0.0,
            to: 0.0,
            sure: 0.0,
        };
        zipf.from = zipf.integral(1.5) - 1.0;
        zipf.to = zipf.integral(ranks as f64 + 0.5);
        zipf.sure = 2.0 - zipf.inverse(zipf.integral(2.5) - zipf.weight(2.0));
        zipf
    }

    /// Draws the next rank, from 0 on.
    #[inline]
    pub(super) fn draw(&self, rng: &mut Rng) -> u64 {
        loop {
            let area = self.to + rng.unit() * (self.from - self.to);
            let value = self.inverse(area);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "float casts saturate"
            )]
            let rank = ((value + 0.5) as u64).clamp(1, self.ranks);
            let x = rank as f64;
            if x - value <= self.sure || area >= self.integral(x + 0.5) - self.weight(x) {
                return rank - 1;
            }
        }
    }

    /// `x^-theta`.
    fn weight(&self, x: f64) -> f64 {
        x.powf(-self.theta)
    }

    /// An integral of `x^-theta`: `x^(1-theta) / (1-theta)`, and `ln x` if theta is 1.
    fn integral(&self, x: f64) -> f64 {
        if self.is_logarithm {
            x.ln()
        } else {
            x.powf(self.rise) / self.rise
        }
    }

    /// The inverse of the integral: the `x` whose integral is `area`.
    #[inline]
    fn inverse(&self, area: f64) -> f64 {
        if self.is_logarithm {
            area.exp()
        } else {
            ((self.rise * area).ln() * self.fall).exp()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Number of draws per rank.
    fn counts(ranks: u64, theta: f64, draws: u32) -> Vec<f64> {
        let (zipf, mut rng) = (Zipf::new(ranks, theta), Rng::new(3, 0));
        let mut counts = vec![0.0; usize::try_from(ranks).unwrap()];
        (0..draws).for_each(|_| counts[usize::try_from(zipf.draw(&mut rng)).unwrap()] += 1.0);
        counts
    }

    #[test]
    fn ranks_come_as_often_as_the_law_says() {
        const DRAWS: u32 = 200_000;
        for ranks in [1, 2, 10, 1000] {
            for theta in [0.01, 0.5, 0.99, 1.0, 1.0 + 1e-9, 1.5, 3.0, 10.0] {
                let counts = counts(ranks, theta, DRAWS);
                let total: f64 = (1..=ranks).map(|rank| (rank as f64).powf(-theta)).sum();
                let expected =
                    |rank: usize| f64::from(DRAWS) * (rank as f64 + 1.0).powf(-theta) / total;
                // Pearson's test over ranks expected five times or more; all others form one cell.
                let (mut chi_square, mut cells, mut rest) = (0.0, 0.0, (0.0, 0.0));
                let mut add = |count: f64, expected: f64| {
                    chi_square += (count - expected).powi(2) / expected;
                    cells += 1.0;
                };
                for (rank, count) in counts.iter().enumerate() {
                    if expected(rank) >= 5.0 {
                        add(*count, expected(rank));
                    } else {
                        rest = (rest.0 + count, rest.1 + expected(rank));
                    }
                }
                if rest.1 >= 5.0 {
                    add(rest.0, rest.1);
                }
                // Chi-square has mean n and deviation sqrt(2n); its tail is longer than that of the
                // normal distribution.
                let freedom: f64 = cells - 1.0;
                let most = freedom + 5.0 * (2.0 * freedom).sqrt() + 10.0;
                assert!(
                    chi_square <= most,
                    "theta {theta}, {ranks} ranks: {chi_square} over {cells} cells"
                );
            }
        }
    }

    #[test]
    fn in_a_volume_of_8_pib_the_share_of_the_first_ranks_is_right() {
        const RANKS: u64 = 1 << 40;
        const DRAWS: u32 = 100_000;
        for theta in [0.5f64, 0.99, 1.0, 1.2] {
            let (zipf, mut rng) = (Zipf::new(RANKS, theta), Rng::new(5, 0));
            // Half of the ranks on a logarithmic scale. The sum of k^-theta by Euler and Maclaurin
            // from 1000 on.
            let sum = |end: f64| {
                let first: f64 = (1..1000).map(|rank| f64::from(rank).powf(-theta)).sum();
                let integral = if (theta - 1.0).abs() < 1e-9 {
                    (end / 1000.0).ln()
                } else {
                    (end.powf(1.0 - theta) - 1000f64.powf(1.0 - theta)) / (1.0 - theta)
                };
                first + integral + f64::midpoint(1000f64.powf(-theta), end.powf(-theta))
            };
            let share = sum((1u64 << 20) as f64) / sum(RANKS as f64);
            let expected = f64::from(DRAWS) * share;
            let count = (0..DRAWS).filter(|_| zipf.draw(&mut rng) < 1 << 20).count() as f64;
            let deviation = (expected * (1.0 - share)).sqrt();
            assert!(
                (count - expected).abs() < 5.0 * deviation + 1.0,
                "theta {theta}: {count}, expected {expected}"
            );
        }
    }
}
