//! Families of metrics for all formats, and the conversion of our histogram into Prometheus's.

use rigel_model::record::{Latencies, histogram::Band};

/// Prefix of all names.
pub(super) const PREFIX: &str = "rigel";

/// Bucket limits of a classic histogram: in nanoseconds, and in seconds as `OpenMetrics` writes
/// them. Prometheus itself formats the limits from protobuf in the same way, so a series is the
/// same in every format.
pub(super) const LIMITS: [(u64, &str); 19] = [
    (10_000, "1e-05"),
    (20_000, "2e-05"),
    (50_000, "5e-05"),
    (100_000, "0.0001"),
    (200_000, "0.0002"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_000_000, "0.002"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (20_000_000, "0.02"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (200_000_000, "0.2"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1.0"),
    (2_000_000_000, "2.0"),
    (5_000_000_000, "5.0"),
    (10_000_000_000, "10.0"),
];

/// Resolution of native histograms: each power of two is divided into 2^5 buckets, so each is 2.2 %
/// wide.
pub(super) const SCHEMA: i32 = 5;

/// Kind of the values of a family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Grows from the soak's beginning; its samples end in `_total`.
    Counter,
    /// May rise and fall.
    Gauge,
    /// Always 1, with the information in its labels; its sample ends in `_info`.
    Info,
    /// Counts per bucket.
    Histogram,
}

/// Metrics of one name.
#[derive(Debug)]
pub(super) struct Family {
    /// The name without the suffix of its samples.
    pub(super) name: String,
    pub(super) sort: Sort,
    /// The base unit at the end of the name; `None` for counts.
    pub(super) unit: Option<&'static str>,
    pub(super) help: &'static str,
    pub(super) metrics: Vec<Metric>,
}

/// One labelled metric of a family.
#[derive(Debug)]
pub(super) struct Metric {
    pub(super) labels: Vec<(&'static str, String)>,
    pub(super) value: Value,
}

/// Value of a metric.
#[derive(Debug)]
pub(super) enum Value {
    Number(f64),
    Times(Times),
}

/// Response times in Prometheus's two kinds of histogram.
///
/// Each of our buckets is counted as a whole at its middle. It is at most 0.78 % wide. So a time
/// counts in the right Prometheus bucket or, within 0.4 % of a limit, in the neighbouring one: a
/// limit is exact within 0.4 %, and a quantile from the native histogram within 2.2 % + 0.4 %. The
/// same bucket always maps to the same Prometheus bucket, so no count ever falls.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Times {
    /// Number of times.
    pub(super) count: u64,
    /// Sum in seconds; exact.
    pub(super) sum: f64,
    /// For each of [`LIMITS`], the number of times up to the limit.
    pub(super) classic: Vec<u64>,
    /// Number of zero times.
    pub(super) zeros: u64,
    /// Native buckets that are not empty, ascending: bucket i contains times above 2^((i-1)/32) up
    /// to 2^(i/32) seconds.
    pub(super) native: Vec<(i32, u64)>,
}

impl Times {
    pub(super) fn of(latencies: &Latencies) -> Self {
        let mut times = Self {
            count: latencies.histogram.count(),
            sum: latencies.sum as f64 / 1e9,
            classic: vec![0; LIMITS.len()],
            zeros: 0,
            native: Vec::new(),
        };
        for (low, high, count) in latencies.histogram.buckets() {
            let middle = Band { low, high }.middle();
            for (counted, (limit, _)) in times.classic.iter_mut().zip(LIMITS) {
                *counted += if middle <= limit as f64 { count } else { 0 };
            }
            if high == 0 {
                times.zeros += count;
                continue;
            }
            let index = native_index(middle / 1e9);
            match times.native.last_mut() {
                Some((last, counted)) if *last == index => *counted += count,
                _ => times.native.push((index, count)),
            }
        }
        times
    }
}

/// The native bucket of a time above zero.
#[expect(
    clippy::cast_possible_truncation,
    reason = "64 bits of nanoseconds have indices from -957 to 1095"
)]
fn native_index(seconds: f64) -> i32 {
    (seconds.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

impl Family {
    /// Creates a family without metrics; its full name is `rigel_` and `name`.
    pub(super) fn new(name: &str, sort: Sort, help: &'static str) -> Self {
        let unit = ["seconds", "ratio"]
            .into_iter()
            .find(|unit| name.ends_with(&format!("_{unit}")));
        let name = if name.is_empty() {
            PREFIX.to_string()
        } else {
            format!("{PREFIX}_{name}")
        };
        Self {
            name,
            sort,
            unit,
            help,
            metrics: Vec::new(),
        }
    }

    /// Adds a metric if there is a value.
    pub(super) fn with(
        mut self,
        labels: &[(&'static str, &str)],
        value: impl Into<Option<f64>>,
    ) -> Self {
        if let Some(value) = value.into() {
            self.push(labels, Value::Number(value));
        }
        self
    }

    /// Adds a metric.
    pub(super) fn push(&mut self, labels: &[(&'static str, &str)], value: Value) {
        let labels = labels
            .iter()
            .map(|(name, value)| (*name, (*value).to_string()))
            .collect();
        self.metrics.push(Metric { labels, value });
    }

    /// Suffix of its sample names, except for histograms.
    pub(super) fn ending(&self) -> &'static str {
        match self.sort {
            Sort::Counter => "_total",
            Sort::Info => "_info",
            Sort::Gauge | Sort::Histogram => "",
        }
    }

    /// Its name in formats older than `OpenMetrics`.
    pub(super) fn full_name(&self) -> String {
        format!("{}{}", self.name, self.ending())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rigel_model::record::Histogram;

    pub(crate) fn latencies(values: &[u64]) -> Latencies {
        let mut histogram = Histogram::default();
        values.iter().for_each(|value| histogram.record(*value));
        let sum = values.iter().sum();
        let (min, max) = (values.iter().min().copied(), values.iter().max().copied());
        Latencies {
            histogram,
            sum,
            min: min.unwrap_or(u64::MAX),
            max: max.unwrap_or(0),
            ..Latencies::default()
        }
    }

    #[test]
    fn buckets_hold_what_the_specification_says() {
        // Bucket 0 ends at 1 s, bucket 32 at 2 s, bucket -32 at 0.5 s; upper limits belong to them.
        for (seconds, index) in [
            (1.0, 0),
            (1.000_001, 1),
            (2.0, 32),
            (2.1, 35),
            (0.5, -32),
            (0.501, -31),
            (1e-9, -956),
        ] {
            assert_eq!(native_index(seconds), index, "{seconds}");
        }
        let times = Times::of(&latencies(&[
            0,
            0,
            1,
            5_000,
            150_000,
            150_001,
            20_000_000_000,
        ]));
        assert_eq!((times.count, times.zeros), (7, 2));
        assert_eq!(times.classic[..5], [4, 4, 4, 4, 6]);
        assert_eq!(times.classic[18], 6, "20 s is above the last limit");
        assert_eq!(times.native.iter().map(|(_, count)| count).sum::<u64>(), 5);
    }

    #[test]
    fn limits_read_as_what_they_are() {
        for (nanoseconds, text) in LIMITS {
            assert!(
                (text.parse::<f64>().unwrap() * 1e9 - nanoseconds as f64).abs() < 1e-3,
                "{text}"
            );
        }
        assert!(LIMITS.windows(2).all(|two| two[0].0 < two[1].0));
    }

    proptest! {
        #[test]
        fn every_time_counts_once_and_within_the_stated_error(
            values in prop::collection::vec((10u32..64, any::<u64>()).prop_map(|(shift, value)| value >> shift), 1..80)
        ) {
            let times = Times::of(&latencies(&values));
            let native: u64 = times.native.iter().map(|(_, count)| count).sum();
            prop_assert_eq!(native + times.zeros, values.len() as u64);
            prop_assert!(times.native.windows(2).all(|two| two[0].0 < two[1].0));
            for ((limit, _), counted) in LIMITS.iter().zip(&times.classic) {
                let most = |share: f64| *limit as f64 * share;
                let within = |share: f64| values.iter().filter(|value| **value as f64 <= most(share)).count();
                prop_assert!(within(0.996) as u64 <= *counted && *counted <= within(1.004) as u64);
            }
            // Values by rank must be in buckets by rank.
            let mut sorted: Vec<u64> = values.iter().copied().filter(|value| *value > 0).collect();
            sorted.sort_unstable();
            let mut sorted = sorted.into_iter();
            for (index, count) in &times.native {
                for _ in 0..*count {
                    let seconds = sorted.next().unwrap() as f64 / 1e9;
                    let upper = (f64::from(*index) / 32.0).exp2();
                    prop_assert!(seconds <= upper * 1.004 && seconds >= upper / 1.0219 / 1.004, "{seconds} in {upper}");
                }
            }
        }
    }
}
