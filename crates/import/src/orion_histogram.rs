//! The histogram of a cell in Orion's summary: `Small Read / Write Latency Histogram @ …` and its
//! rows.
//!
//! Input: lines. Output: how many reads and writes are in each bucket, the bounds that this sets to
//! their means, and the counts in our buckets. Its buckets are as wide as the latencies in them.

use super::source::number;
use rigel_model::record::Histogram;
use rigel_model::record::histogram::{bucket_of, lower_edge, upper_edge};
use rigel_model::record::imported::{ReportedLatency, is_countable};

/// What the line above the rows begins with.
pub(super) const HEAD: &str = "Small Read / Write Latency Histogram";

/// Where a bucket that begins at 0 and is wider than a microsecond begins on the logarithmic scale.
const FIRST_US: f64 = 1.0;

/// A row: from, to in microseconds, reads, writes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct HistogramRow {
    from_us: u32,
    to_us: u32,
    pub(super) counts: [u64; 2],
}

impl HistogramRow {
    /// Reads `64 - 128 us: 1112243 ( 91.12%) 0 ( 0.00%)`, with the shares of 19c or without; `None`
    /// for another line, and for one that is cut.
    pub(super) fn of(line: &str) -> Option<Self> {
        let (bounds, counts) = line.split_once("us:")?;
        let (from, to) = bounds.split_once(" - ")?;
        let counts = without_brackets(counts);
        let mut counts = counts.split_whitespace().map(str::parse::<u64>);
        let row = Self {
            from_us: from.trim().parse().ok()?,
            to_us: to.trim().parse().ok()?,
            counts: [counts.next()?.ok()?, counts.next()?.ok()?],
        };
        (counts.next().is_none() && row.from_us < row.to_us).then_some(row)
    }

    /// True if the line begins as a row, whether it is whole or not.
    pub(super) fn begins(line: &str) -> bool {
        let bounds = line.split_once("us:").map_or("", |(bounds, _)| bounds);
        bounds
            .split_once(" - ")
            .is_some_and(|(from, _)| number(from, false).is_some())
    }
}

/// Without what stands in brackets: the shares of 19c are cumulative, and follow from the counts.
fn without_brackets(text: &str) -> String {
    let mut depth = 0_u32;
    let outside = |c: &char| {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    text.chars().filter(outside).collect()
}

/// The kinds in the order of the columns.
pub(super) const KINDS: [&str; 2] = ["read", "write"];

/// Number of the operations of a kind; `None` if it is none or beyond what can be counted.
pub(super) fn done(rows: &[HistogramRow], kind: usize) -> Option<u64> {
    rows.iter()
        .try_fold(0_u64, |sum, row| sum.checked_add(row.counts[kind]))
        .filter(|done| (1..1 << 62).contains(done))
}

/// The interval in which the mean of a kind lies, in nanoseconds: as if all operations took the lower
/// or the upper bound of their buckets.
pub(super) fn mean_bounds_ns(rows: &[HistogramRow], kind: usize) -> Option<(f64, f64)> {
    let all = done(rows, kind)? as f64;
    let sum = |bound: fn(&HistogramRow) -> u32| {
        let weighted = |row: &HistogramRow| f64::from(bound(row)) * row.counts[kind] as f64;
        rows.iter().map(weighted).sum::<f64>() / all * 1e3
    };
    Some((sum(|row| row.from_us), sum(|row| row.to_us)))
}

/// The counts of a kind in our buckets: those of a row are spread evenly on a logarithmic scale,
/// from the minimum to the maximum that `line` reports. `None` if there are none.
pub(super) fn spread(
    rows: &[HistogramRow],
    kind: usize,
    line: Option<&ReportedLatency>,
) -> Option<Histogram> {
    done(rows, kind)?;
    let least = line.and_then(|line| line.min).unwrap_or(0.0);
    let most = line.and_then(|line| line.max).unwrap_or(f64::INFINITY);
    let mut counts = std::collections::BTreeMap::<u16, u64>::new();
    for row in rows.iter().filter(|row| row.counts[kind] > 0) {
        let (from, to) = (f64::from(row.from_us) * 1e3, f64::from(row.to_us) * 1e3);
        // A line of another cell may have bounds outside the row.
        let low = if least < to { from.max(least) } else { from };
        let high = if most > from { to.min(most) } else { to };
        for (bucket, count) in spread_row(low, high, row.counts[kind]) {
            let sum = counts.entry(bucket).or_default();
            *sum = sum.saturating_add(count);
        }
    }
    let pairs: Vec<(u16, u64)> = counts.into_iter().collect();
    Histogram::try_from(pairs).ok().filter(is_countable)
}

/// The count in each of our buckets between `low` and `high`, in nanoseconds.
fn spread_row(low: f64, high: f64, count: u64) -> Vec<(u16, u64)> {
    let first = if low >= 1.0 {
        low
    } else if high > FIRST_US * 1e3 {
        FIRST_US * 1e3
    } else {
        1.0
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most 2^32 us; float casts saturate"
    )]
    let whole = |value: f64| value as u64;
    let high = high.max(first);
    // The upper bound is the lower one of the next row.
    let (from, to) = (
        bucket_of(whole(first)),
        bucket_of(whole(high - 1.0).max(whole(first))),
    );
    let width = (high / first).ln();
    let share = |bucket: usize| {
        let edge = (upper_edge(bucket) as f64 + 1.0).clamp(first, high);
        if bucket == to || width <= 0.0 {
            1.0
        } else {
            (edge / first).ln() / width
        }
    };
    let mut before = 0;
    let mut pairs = Vec::new();
    for bucket in from..=to {
        debug_assert!(lower_edge(bucket) as f64 <= high);
        let upto = whole((share(bucket) * count as f64).round()).min(count);
        let upto = if bucket == to { count } else { upto };
        if upto > before {
            pairs.extend(
                u16::try_from(bucket)
                    .ok()
                    .map(|bucket| (bucket, upto - before)),
            );
        }
        before = upto.max(before);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "\
        0 - 1\t\tus:\t\t0\t\t\t5
       64 - 128        us:         1112243 ( 91.12%)              0 (  0.00%)
      128 - 256        us:          102320 ( 99.50%)              7 (  0.00%)";

    fn rows() -> Vec<HistogramRow> {
        ROWS.lines().filter_map(HistogramRow::of).collect()
    }

    #[test]
    fn rows_of_both_layouts_are_read() {
        let counts: Vec<[u64; 2]> = rows().iter().map(|row| row.counts).collect();
        assert_eq!(counts, [[0, 5], [1_112_243, 0], [102_320, 7]]);
        for cut in [
            "64 - 128 us: 12",
            "64 - 128",
            "a - b us: 1 2",
            "4 - 2 us: 1 2",
            "",
        ] {
            assert_eq!(HistogramRow::of(cut), None, "{cut}");
        }
        assert!(HistogramRow::begins("64 - 128 us: 12") && !HistogramRow::begins("avg=1 us"));
    }

    #[test]
    fn counts_are_spread_over_their_row_and_none_is_lost() {
        let histogram = spread(&rows(), 0, None).unwrap();
        assert_eq!(histogram.count(), 1_214_563);
        let band = |share| histogram.quantile(share).unwrap().middle();
        // 91.58 % are below 128 us: the median is at 0.546 of the octave above 64 us.
        assert!((band(0.5) / 93_440.0 - 1.0).abs() < 0.01, "{}", band(0.5));
        assert!((128e3..256e3).contains(&band(0.99)));
        let below: u64 = histogram
            .buckets()
            .filter(|of| of.0 < 64_000)
            .map(|of| of.2)
            .sum();
        assert_eq!(below, 0);
        let writes = spread(&rows(), 1, None).unwrap();
        let below: u64 = writes
            .buckets()
            .filter(|of| of.0 < 1000)
            .map(|of| of.2)
            .sum();
        assert_eq!((below, writes.count()), (5, 12));
    }

    #[test]
    fn the_line_of_the_cell_bounds_the_outer_rows() {
        let line = ReportedLatency {
            min: Some(100e3),
            max: Some(130e3),
            ..ReportedLatency::default()
        };
        let histogram = spread(&rows(), 0, Some(&line)).unwrap();
        let (low, high) = (
            histogram.quantile(0.0).unwrap(),
            histogram.quantile(1.0).unwrap(),
        );
        assert!(
            low.high >= 100_000 && high.low <= 130_000,
            "{low:?} {high:?}"
        );
        let (least, most) = mean_bounds_ns(&rows(), 0).unwrap();
        assert!((69_000.0..70_000.0).contains(&least) && (138_000.0..139_000.0).contains(&most));
    }

    #[test]
    fn counts_beyond_all_bounds_are_none() {
        let row = HistogramRow {
            from_us: 0,
            to_us: u32::MAX,
            counts: [u64::MAX, 1 << 62],
        };
        assert_eq!((done(&[row, row], 0), done(&[row], 1)), (None, None));
        assert_eq!(spread(&[row], 0, None), None);
    }
}
