//! Five checks of figures that somebody else printed.
//!
//! Input: figures, each with half of its last printed place. Output: whether all of them can be true. A figure is
//! doubted only if no number that would have been printed so passes.
//!
//! 1. Outstanding operations are their rate times their time (Little's law): [`outstanding`].
//! 2. A mean is at most what the quantiles and the maximum allow: [`mean_max`].
//! 3. A rate times the length of its interval is a number of operations, so whole: [`is_whole`].
//! 4. A rate is the number of operations in the whole time: [`rate_of_all`].
//! 5. A rate of small operations that is a throughput of large ones ÷ a block was not measured: [`block_between`].

use crate::record::database::Printed;

/// The interval in which a figure lies.
pub type Bounds = (f64, f64);

/// The common part of two intervals; `None` if they have none.
pub fn shared(one: Bounds, other: Bounds) -> Option<Bounds> {
    let (low, high) = (one.0.max(other.0), one.1.min(other.1));
    let slack = 1e-9 * high.abs().max(low.abs());
    (low <= high + slack).then(|| (low.min(high), high.max(low)))
}

/// Operations outstanding on average: of each kind its operations per second times its mean in seconds.
pub fn outstanding(kinds: &[(Printed, Printed)]) -> Bounds {
    let of = |(rate, mean): &(Printed, Printed)| {
        let (rate, mean) = (rate.range(), mean.range());
        (rate.0.max(0.0) * mean.0.max(0.0), rate.1 * mean.1)
    };
    let each = kinds.iter().map(of);
    each.fold((0.0, 0.0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

/// The greatest mean that values with these quantiles and this maximum have. Quantiles are in order of their
/// shares, each of at most `above` times its value.
pub fn mean_max(quantiles: &[(f64, f64)], above: f64, max: f64) -> f64 {
    let (mut before, mut mean) = (0.0, 0.0);
    for (share, value) in quantiles {
        mean += (share - before) * (value * above).min(max);
        before = *share;
    }
    mean + (1.0 - before) * max
}

/// Whether `rate` may have been computed from a number of operations in `seconds`; `None` if any rate may, because
/// its last printed place stands for an operation or more.
pub fn is_whole(rate: Printed, seconds: f64) -> Option<bool> {
    let count = rate.scaled(seconds).range();
    let slack = 1e-9 * count.1.abs();
    (count.1 - count.0 < 1.0).then(|| (count.1 + slack).floor() >= count.0 - slack)
}

/// Operations per second of processes that did `done` in all, over the time of the longest; `None` if as many
/// seconds of each are known to the last printed place, so that their rates may be added.
pub fn rate_of_all(done: u64, seconds: &[Printed]) -> Option<f64> {
    let longest = seconds.iter().map(|one| one.value).reduce(f64::max)?;
    let ends = seconds.iter().map(|one| one.range());
    let common = ends.reduce(|one, other| (one.0.max(other.0), one.1.min(other.1)))?;
    (common.0 > common.1 && longest > 0.0).then(|| done as f64 / longest)
}

/// Bytes of the block, a power of two, that a throughput of large operations has for each small operation, to four
/// digits; `None` if there is none, or if the figures have fewer digits.
pub fn block_between(rate: Printed, bytes_per_s: Printed) -> Option<u64> {
    /// Half of the fourth digit of 1.000.
    const FOUR_DIGITS: f64 = 5e-4;
    let has_digits = |one: Printed| one.value > 0.0 && one.half <= FOUR_DIGITS * one.value;
    let blocks = (9..=30).map(|power| 1_u64 << power);
    let is_between = |block: &u64| {
        let quotient = rate.scaled(*block as f64);
        shared(quotient.range(), bytes_per_s.range()).is_some()
    };
    (has_digits(rate) && has_digits(bytes_per_s))
        .then(|| blocks.into_iter().find(is_between))
        .flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: f64, half: f64) -> Printed {
        Printed { value, half }
    }

    #[test]
    fn outstanding_operations_are_known_to_the_printed_places() {
        let reads = (printed(800.0, 0.005), printed(1.2e-3, 5e-6));
        let (low, high) = outstanding(&[reads]);
        assert!((low..=high).contains(&0.96) && high < 0.97, "{low} {high}");
    }

    #[test]
    fn a_mean_above_all_quantiles_needs_a_maximum_that_explains_it() {
        let ends = [(0.5, 17.1), (0.99, 17.1)];
        assert!(mean_max(&ends, 1.0, 94.4) < 41.2);
        // One of a thousand took so long that the mean is above the p99.
        assert!(mean_max(&[(0.5, 1.0), (0.99, 2.0)], 1.0, 5000.0) > 10.0);
    }

    #[test]
    fn a_count_is_whole_and_a_mean_since_boot_is_not() {
        let rate = |value| printed(value, 0.005);
        assert_eq!(is_whole(rate(88.33), 3.0), Some(true));
        assert_eq!(is_whole(rate(12.34), 10.0), Some(false));
        assert_eq!(is_whole(rate(12.34), 100.0), None);
    }

    #[test]
    fn rates_are_added_only_if_all_ran_together() {
        let ran = |seconds: &[f64]| -> Option<f64> {
            let seconds: Vec<Printed> = seconds.iter().map(|one| printed(*one, 0.0005)).collect();
            rate_of_all(200_000, &seconds)
        };
        assert_eq!(ran(&[10.0, 100.0]), Some(2000.0));
        assert_eq!(ran(&[10.0, 10.0]), None);
        assert_eq!(ran(&[]), None);
    }

    #[test]
    fn a_quotient_is_a_block_to_four_digits() {
        let claim = |mb: f64, half| block_between(printed(24_002.0, 0.5), printed(mb, half));
        assert_eq!(claim(24_002.0 * 8192.0, 500.0), Some(8192));
        assert_eq!(claim(24_002.0 * 8200.0, 500.0), None);
        assert_eq!(claim(24_002.0 * 8192.0, 1e6), None, "three digits");
    }
}
