//! Latency histograms in nanoseconds: log-linear, with buckets under 1 % wide.
//!
//! Input: values in nanoseconds. Output: counts per bucket, and bands that contain an exact
//! quantile. [`Bins`] is the dense form for the main loop; [`Histogram`] is the sparse form for the
//! journal and for analysis. Neither drops or clips a value, and merging loses nothing.
//!
//! Values below 256 have one bucket each. From there on each power of two is divided into 128 equal
//! buckets, so a bucket is at most 1/128 = 0.78 % as wide as its lower edge.

use serde::{Deserialize, Serialize};

/// Log2 of the number of buckets per power of two.
const SUB_BITS: u32 = 7;
/// Number of buckets per power of two.
const SUB: u64 = 1 << SUB_BITS;
/// Number of buckets; enough for any `u64`.
pub const BUCKETS: usize = ((64 - SUB_BITS + 1) * (1 << SUB_BITS)) as usize;

/// The bucket that contains `value`.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "below BUCKETS")]
pub fn bucket_of(value: u64) -> usize {
    // Values with at most SUB_BITS + 1 significant bits have one bucket each: shift 0.
    let shift = (63 - SUB_BITS).saturating_sub((value | 1).leading_zeros());
    (u64::from(shift) * SUB + (value >> shift)) as usize
}

/// The minimum value of `bucket`.
pub fn lower_edge(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let shift = (bucket / SUB).saturating_sub(1);
    (bucket - shift * SUB) << shift
}

/// The maximum value of `bucket`.
pub fn upper_edge(bucket: usize) -> u64 {
    if bucket + 1 == BUCKETS {
        u64::MAX
    } else {
        lower_edge(bucket + 1) - 1
    }
}

/// The dense form: one counter per bucket, one addition per value.
///
/// Counters of 32 bits keep it in a processor's L1 cache. A long window of a fast target can
/// overflow a bucket: then 2^32 are carried over.
#[derive(Debug, Clone)]
pub struct Bins {
    counts: Box<[u32; BUCKETS]>,
    /// The bucket of each counter overflow.
    carried: Vec<u16>,
}

impl Default for Bins {
    fn default() -> Self {
        let counts = vec![0; BUCKETS]
            .into_boxed_slice()
            .try_into()
            .expect("BUCKETS elements were made");
        Self {
            counts,
            carried: Vec::new(),
        }
    }
}

impl Bins {
    /// Counts `value`.
    #[inline]
    pub fn record(&mut self, value: u64) {
        let bucket = bucket_of(value);
        let count = &mut self.counts[bucket];
        *count = count.wrapping_add(1);
        if *count == 0 {
            self.carry(bucket);
        }
    }

    #[cold]
    fn carry(&mut self, bucket: usize) {
        self.carried
            .push(u16::try_from(bucket).expect("BUCKETS fits"));
    }

    /// Moves all counts into a histogram, leaving these bins empty.
    pub fn take(&mut self) -> Histogram {
        let mut pairs = Vec::new();
        for (bucket, count) in self
            .counts
            .iter_mut()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            pairs.push((
                u16::try_from(bucket).expect("BUCKETS fits"),
                u64::from(*count),
            ));
            *count = 0;
        }
        let mut histogram = Histogram(pairs);
        self.carried
            .drain(..)
            .for_each(|bucket| histogram.add(bucket, 1 << u32::BITS));
        histogram
    }
}

/// The sparse form: `(bucket, count)` in ascending order of bucket, no count zero.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<(u16, u64)>")]
pub struct Histogram(Vec<(u16, u64)>);

/// A closed interval that is certain to contain a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// Lower bound, in nanoseconds.
    pub low: u64,
    /// Upper bound, in nanoseconds.
    pub high: u64,
}

impl Band {
    /// The middle: at most half a bucket from the true value.
    pub fn middle(self) -> f64 {
        f64::midpoint(self.low as f64, self.high as f64)
    }
}

impl TryFrom<Vec<(u16, u64)>> for Histogram {
    type Error = String;

    fn try_from(pairs: Vec<(u16, u64)>) -> Result<Self, String> {
        let ascending = pairs.windows(2).all(|two| two[0].0 < two[1].0);
        let in_range = pairs
            .iter()
            .all(|(bucket, count)| usize::from(*bucket) < BUCKETS && *count > 0);
        if ascending && in_range {
            Ok(Self(pairs))
        } else {
            Err("buckets of a histogram out of order or out of range".into())
        }
    }
}

/// The sum of histograms, such as those of all windows of a point. Beyond a few, a counter for each
/// bucket is several times as fast as merging one after the other.
impl<'a> FromIterator<&'a Histogram> for Histogram {
    fn from_iter<I: IntoIterator<Item = &'a Histogram>>(histograms: I) -> Self {
        Self::sum(&histograms.into_iter().collect::<Vec<_>>())
    }
}

impl Histogram {
    /// Counts `value`. Used for the few values that come too late for the bins.
    pub fn record(&mut self, value: u64) {
        self.add(u16::try_from(bucket_of(value)).expect("BUCKETS fits"), 1);
    }

    fn add(&mut self, bucket: u16, count: u64) {
        match self.0.binary_search_by_key(&bucket, |pair| pair.0) {
            Ok(at) => self.0[at].1 = self.0[at].1.saturating_add(count),
            Err(at) => self.0.insert(at, (bucket, count)),
        }
    }

    /// Adds all counts of `other`.
    ///
    /// A window has few buckets that the sum of those before has not: usually this only adds.
    pub fn merge(&mut self, other: &Histogram) {
        let ours = &mut self.0;
        let (mut at, mut absent) = (0, 0);
        for &(bucket, count) in &other.0 {
            while at < ours.len() && ours[at].0 < bucket {
                at += 1;
            }
            match ours.get_mut(at) {
                Some(our) if our.0 == bucket => our.1 = our.1.saturating_add(count),
                _ => absent += 1,
            }
        }
        // From the end, so that nothing is moved twice. The gap is as wide as what is still absent.
        let mut from = ours.len();
        ours.resize(from + absent, (0, 0));
        for &(bucket, count) in other.0.iter().rev() {
            if absent == 0 {
                break;
            }
            while from > 0 && ours[from - 1].0 > bucket {
                from -= 1;
                ours[from + absent] = ours[from];
            }
            if from == 0 || ours[from - 1].0 < bucket {
                absent -= 1;
                ours[from + absent] = (bucket, count);
            }
        }
    }

    /// The sum of all of them.
    fn sum(histograms: &[&Histogram]) -> Self {
        let pairs = || histograms.iter().map(|one| &one.0);
        let from = pairs().filter_map(|pairs| pairs.first()).min();
        let to = pairs().filter_map(|pairs| pairs.last()).max();
        let (Some(&(from, _)), Some(&(to, _))) = (from, to) else {
            return Self::default();
        };
        let mut sums = vec![0_u64; usize::from(to - from) + 1];
        for &(bucket, count) in pairs().flatten() {
            let sum = &mut sums[usize::from(bucket - from)];
            *sum = sum.saturating_add(count);
        }
        let pairs = (from..=to).zip(sums).filter(|(_, count)| *count > 0);
        Self(pairs.collect())
    }

    /// Number of counted values.
    pub fn count(&self) -> u64 {
        let counts = self.0.iter().map(|(_, count)| *count);
        counts.fold(0, u64::saturating_add)
    }

    /// The counts as `(lower edge, upper edge, count)`, ascending, both edges inclusive, in
    /// nanoseconds.
    pub fn buckets(&self) -> impl Iterator<Item = (u64, u64, u64)> + '_ {
        self.0
            .iter()
            .map(|&(bucket, count)| (lower_edge(bucket.into()), upper_edge(bucket.into()), count))
    }

    /// The number of values that are certainly not above `limit`: those in the bucket that contains it are
    /// not among them, unless it is its upper edge.
    pub fn count_within(&self, limit: u64) -> u64 {
        let within = self.buckets().take_while(|(_, high, _)| *high <= limit);
        within.map(|(.., count)| count).sum()
    }

    /// The number of values that are certainly above `limit`.
    pub fn count_above(&self, limit: u64) -> u64 {
        let above = self.buckets().skip_while(|(low, ..)| *low <= limit);
        above.map(|(.., count)| count).sum()
    }

    /// The band that contains the exact `q`-quantile: the smallest recorded value that at least a
    /// fraction `q` of all values do not exceed. `None` if nothing was recorded.
    pub fn quantile(&self, q: f64) -> Option<Band> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of a count; float casts saturate"
        )]
        let rank = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut seen: u64 = 0;
        let at = self.0.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        })?;
        let bucket = at.0.into();
        Some(Band {
            low: lower_edge(bucket),
            high: upper_edge(bucket),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn histogram(values: &[u64]) -> Histogram {
        let mut bins = Bins::default();
        values.iter().for_each(|value| bins.record(*value));
        bins.take()
    }

    /// Values of every magnitude, not mostly huge ones.
    fn latency() -> impl Strategy<Value = u64> {
        (0u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift)
    }

    #[test]
    fn a_bucket_holds_more_than_its_counter() {
        let mut bins = Bins::default();
        for (value, before) in [(100, u32::MAX), (5000, u32::MAX - 1), (7, 3)] {
            bins.counts[bucket_of(value)] = before;
            bins.record(value);
        }
        // One counter that overflowed, one at its maximum, one far from it; then one more value in
        // the bucket that overflowed.
        bins.record(100);
        let pair = |value: u64, count: u64| (u16::try_from(bucket_of(value)).unwrap(), count);
        assert_eq!(
            bins.take().0,
            [
                pair(7, 4),
                pair(100, (1 << 32) + 1),
                pair(5000, u64::from(u32::MAX))
            ]
        );
        bins.counts[bucket_of(100)] = u32::MAX;
        bins.record(100);
        assert_eq!(
            bins.take().0,
            [pair(100, 1 << 32)],
            "a counter that stands at its beginning"
        );
        assert_eq!(bins.take().0, [], "and nothing is left");
    }

    #[test]
    fn every_bucket_begins_where_the_one_before_ends_and_is_under_one_percent_wide() {
        for bucket in 0..BUCKETS {
            let (low, high) = (lower_edge(bucket), upper_edge(bucket));
            assert_eq!(bucket_of(low), bucket);
            assert_eq!(bucket_of(high), bucket);
            assert!(
                (high - low) as f64 <= low as f64 / 128.0,
                "{bucket}: {low}..={high}"
            );
        }
        assert_eq!(upper_edge(BUCKETS - 1), u64::MAX);
    }

    #[test]
    fn taking_leaves_the_bins_empty() {
        let mut bins = Bins::default();
        bins.record(5);
        assert_eq!(bins.take().count(), 1);
        assert_eq!(bins.take().count(), 0);
    }

    proptest! {
        #[test]
        fn every_quantile_band_holds_the_exact_quantile(
            mut values in prop::collection::vec(latency(), 1..200), q in 0.0f64..=1.0
        ) {
            let band = histogram(&values).quantile(q).unwrap();
            values.sort_unstable();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            let exact = values[rank - 1];
            prop_assert!(band.low <= exact && exact <= band.high, "{exact} outside {band:?}");
        }

        #[test]
        fn values_on_either_side_of_a_limit_are_counted_but_for_those_in_its_bucket(
            values in prop::collection::vec(latency(), 0..50), limit in latency()
        ) {
            let all = histogram(&values);
            let (within, above) = (all.count_within(limit), all.count_above(limit));
            let exact = values.iter().filter(|value| **value <= limit).count() as u64;
            prop_assert!(within <= exact && above <= all.count() - exact);
            let beside = values.iter().filter(|value| bucket_of(**value) == bucket_of(limit));
            prop_assert!(all.count() - within - above <= beside.count() as u64);
        }

        #[test]
        fn merging_is_recording_together_in_any_order(
            a in prop::collection::vec(latency(), 0..50),
            b in prop::collection::vec(latency(), 0..50),
            c in prop::collection::vec(latency(), 0..50),
        ) {
            let together = histogram(&[a.clone(), b.clone(), c.clone()].concat());
            let (a, b, c) = (histogram(&a), histogram(&b), histogram(&c));
            let mut left = a.clone();
            left.merge(&b);
            left.merge(&c);
            let mut right = c;
            right.merge(&b);
            right.merge(&a);
            let sum: Histogram = [&a, &b, &right].into_iter().collect();
            let mut twice = together.clone();
            twice.merge(&a);
            twice.merge(&b);
            prop_assert_eq!(&sum, &twice);
            prop_assert_eq!(&left, &together);
            prop_assert_eq!(&right, &together);
        }

        #[test]
        fn one_by_one_is_the_same_as_dense(values in prop::collection::vec(latency(), 0..50)) {
            let mut sparse = Histogram::default();
            values.iter().for_each(|value| sparse.record(*value));
            prop_assert_eq!(sparse, histogram(&values));
        }

        #[test]
        fn json_brings_back_the_same(values in prop::collection::vec(latency(), 0..50)) {
            let before = histogram(&values);
            let text = serde_json::to_string(&before).unwrap();
            prop_assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), before);
        }
    }
}
