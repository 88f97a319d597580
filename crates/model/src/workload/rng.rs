//! Random numbers: xoshiro256++ of Blackman and Vigna, seeded by splitmix64.
//!
//! Input: a seed. Output: 64 random bits at a time. Our own implementation, because the sequence is
//! part of a run's record: a seed in a journal must give the same operations in every later
//! version. Not for secrets.

/// A generator. The same seed always gives the same numbers.
#[derive(Debug, Clone)]
pub struct Rng([u64; 4]);

impl Rng {
    /// Creates a generator for `seed`; `stream` distinguishes generators with the same seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut state = seed ^ stream.wrapping_mul(0xd134_2543_de82_ef95);
        Self(std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        }))
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let s = &mut self.0;
        let result = s[0].wrapping_add(s[3]).rotate_left(23).wrapping_add(s[0]);
        let t = s[1] << 17;
        s[2] ^= s[0];
        s[3] ^= s[1];
        s[1] ^= s[2];
        s[0] ^= s[3];
        s[2] ^= t;
        s[3] = s[3].rotate_left(45);
        result
    }

    /// A number in `0..end`, uniform to within `end` / 2^64. `end` must not be 0.
    #[inline]
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of a 128-bit product (Lemire 2019), without his rejection step: for a
        // volume of 2^40 blocks the bias is one part in 16 million.
        #[allow(clippy::cast_possible_truncation, reason = "the high half fits")]
        let high = ((u128::from(self.bits()) * u128::from(end)) >> 64) as u64;
        high
    }

    /// A number in `0.0..1.0`, with 53 random bits.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// A number from the exponential distribution of mean 1.
    #[inline]
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// A number from the normal distribution of mean 0 and deviation 1 (Box and Muller 1958).
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// A count from the Poisson distribution of this mean, by exponential gaps; of many events by the
    /// normal distribution, which is the same to within a percent there.
    pub fn poisson(&mut self, mean: f64) -> f64 {
        const MANY: f64 = 500.0;
        if mean >= MANY {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0);
        }
        let (mut time, mut count) = (self.exponential(), 0.0);
        while time <= mean {
            time += self.exponential();
            count += 1.0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_of_a_seed_never_changes() {
        // From the authors' C program, state seeded by splitmix64(42): if this fails, old seeds
        // have lost their meaning.
        let mut rng = Rng::new(42, 0);
        let first: Vec<u64> = (0..3).map(|_| rng.bits()).collect();
        assert_eq!(
            first,
            [
                15_021_278_609_987_233_951,
                5_881_210_131_331_364_753,
                18_149_643_915_985_481_100
            ]
        );
    }

    #[test]
    fn every_number_below_comes_equally_often() {
        let mut rng = Rng::new(1, 0);
        let mut seen = [0u32; 10];
        (0..100_000).for_each(|_| seen[usize::try_from(rng.below(10)).unwrap()] += 1);
        // The standard deviation of each count is 95: allow five of them.
        assert!(
            seen.iter().all(|count| count.abs_diff(10_000) < 475),
            "{seen:?}"
        );
    }

    #[test]
    fn exponential_numbers_have_mean_and_deviation_1() {
        let mut rng = Rng::new(2, 0);
        let values: Vec<f64> = (0..100_000).map(|_| rng.exponential()).collect();
        let mean = values.iter().sum::<f64>() / 1e5;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / 1e5;
        assert!(
            (mean - 1.0).abs() < 0.02 && (variance - 1.0).abs() < 0.05,
            "{mean} {variance}"
        );
    }
}
