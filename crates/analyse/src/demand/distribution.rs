//! Distributions of waits: the tables of an event joined into one, and its percentiles.

use rigel_model::LatencyShare;
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::{WaitBucket, WaitHistogram};

/// Waits below which a p99 is chance.
pub(super) const P99_WAITS_MIN: f64 = 1000.0;

/// The printed counts of the histograms of `events`, added.
pub(super) fn counted(report: &DatabaseReport, events: &[&str]) -> f64 {
    let rows = report.histograms.iter();
    rows.filter(|row| events.contains(&row.event.as_str()))
        .flat_map(|row| &row.buckets)
        .filter_map(|bucket| bucket.count)
        .sum()
}

/// The distribution of the waits of `events`, weighted by their number. Empty if the report has
/// none.
pub(super) fn distribution(report: &DatabaseReport, events: &[&str]) -> Vec<LatencyShare> {
    let mut sum: Vec<LatencyShare> = Vec::new();
    let mut all = 0.0;
    for event in events {
        let rows: Vec<&WaitHistogram> = report
            .histograms
            .iter()
            .filter(|row| row.event == *event)
            .collect();
        let joined = joined(&rows);
        let weight = weight(&rows);
        if joined.is_empty() || weight <= 0.0 {
            continue;
        }
        all += weight;
        for one in joined {
            let bucket = sum.iter_mut().find(|known| known.is_same_bucket(&one));
            match bucket {
                Some(bucket) => bucket.share += one.share * weight,
                None => sum.push(LatencyShare {
                    share: one.share * weight,
                    ..one
                }),
            }
        }
    }
    for one in &mut sum {
        one.share /= all;
    }
    sum.sort_by(|one, other| one.low_us.total_cmp(&other.low_us));
    sum
}

/// Number of waits of an event, by its own row: only a weight between events.
fn weight(rows: &[&WaitHistogram]) -> f64 {
    let main = rows.iter().find(|row| !row.is_detail);
    let counted = |row: &WaitHistogram| {
        let counts = row.buckets.iter().filter_map(|bucket| bucket.count);
        counts.sum::<f64>()
    };
    main.map_or(0.0, |row| {
        row.waits.map_or_else(|| counted(row), |waits| waits.value)
    })
}

/// A bucket with its lower bound.
struct TimeBucket<'a> {
    low_us: f64,
    high_us: f64,
    percent: f64,
    label: &'a str,
}

impl TimeBucket<'_> {
    fn is_from(&self, low_us: f64, high_us: f64) -> bool {
        self.low_us.total_cmp(&low_us).is_eq() && self.high_us.total_cmp(&high_us).is_eq()
    }
}

/// The tables of one event joined: each interval between two bounds takes its share from the table
/// in which it is one bucket. Tables in detail divide the first or the last bucket of others. Every
/// table covers all times, so an interval in which one of them has nothing is empty.
fn joined(rows: &[&WaitHistogram]) -> Vec<LatencyShare> {
    let tables: Vec<Vec<TimeBucket>> = rows.iter().map(|row| with_bounds(row)).collect();
    let all = || tables.iter().flatten();
    let mut bounds: Vec<f64> = all().flat_map(|one| [one.low_us, one.high_us]).collect();
    bounds.sort_by(f64::total_cmp);
    bounds.dedup();
    let mut shares = Vec::new();
    for pair in bounds.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let covers = |one: &&TimeBucket| one.low_us <= low && one.high_us >= high;
        if let Some(own) = all().find(|one| one.is_from(low, high)) {
            shares.push(share(own.label, low, high, own.percent));
        } else if tables
            .iter()
            .all(|table| table.iter().any(|one| covers(&one)))
        {
            let width = |one: &&TimeBucket| one.high_us - one.low_us;
            let around = all()
                .filter(covers)
                .min_by(|one, other| width(one).total_cmp(&width(other)));
            if let Some(around) = around {
                let is_taken = |one: &&TimeBucket| {
                    one.low_us >= around.low_us && one.high_us <= around.high_us && !covers(one)
                };
                let taken: f64 = all().filter(is_taken).map(|one| one.percent).sum();
                shares.push(share(around.label, low, high, around.percent - taken));
            }
        }
    }
    shares.retain(|one| one.share > 0.0);
    let sum: f64 = shares.iter().map(|one| one.share).sum();
    for one in &mut shares {
        one.share /= sum;
    }
    shares
}

fn share(label: &str, low_us: f64, high_us: f64, percent: f64) -> LatencyShare {
    LatencyShare {
        label: label.to_string(),
        low_us,
        high_us: Some(high_us).filter(|high| high.is_finite()),
        share: percent / 100.0,
    }
}

/// The buckets of a row with their lower bounds. In a row of shares, a bucket begins where the
/// previous head ends; heads without waits are not there, and heads are powers of two, so it is
/// half the upper bound. The first head of a table covers everything below it.
fn with_bounds(row: &WaitHistogram) -> Vec<TimeBucket<'_>> {
    let counted: f64 = row.buckets.iter().filter_map(|bucket| bucket.count).sum();
    let has_shares = row.buckets.iter().any(|bucket| bucket.percent.is_some());
    let percent = |bucket: &WaitBucket| {
        if has_shares {
            exact_percent(row, bucket)
        } else if counted > 0.0 {
            bucket.count.unwrap_or(0.0) / counted * 100.0
        } else {
            0.0
        }
    };
    let last_bound = row.last_bound_us.unwrap_or_else(|| {
        let bounds = row.buckets.iter().filter_map(|bucket| bucket.high_us);
        bounds.fold(0.0, f64::max)
    });
    row.buckets
        .iter()
        .map(|bucket| {
            let low_us = match bucket.high_us {
                Some(high) if row.first_bound_us.is_some_and(|first| high <= first) => 0.0,
                Some(high) => row.below(high),
                None => last_bound,
            };
            TimeBucket {
                low_us,
                high_us: bucket.high_us.unwrap_or(f64::INFINITY),
                percent: percent(bucket),
                label: &bucket.label,
            }
        })
        .collect()
}

/// The share of a bucket. Where it rounds to 0 and its count is printed, the count tells it.
fn exact_percent(row: &WaitHistogram, bucket: &WaitBucket) -> f64 {
    let printed = bucket.percent.map_or(0.0, |percent| percent.value);
    match (bucket.count, row.waits) {
        (Some(count), Some(waits)) if !row.is_detail && waits.value > 0.0 => {
            count / waits.value * 100.0
        }
        _ => printed,
    }
}

/// The `quantile` of a distribution in microseconds: logarithmic within a bucket. If the last one,
/// which has no upper bound, holds it, its lower bound. `None` for an empty distribution, and if the
/// first one holds it, which begins at 0.
pub(super) fn quantile_us(all: &[LatencyShare], quantile: f64) -> Option<f64> {
    let mut below = 0.0;
    for one in all {
        if below + one.share >= quantile - 1e-12 {
            let Some(high) = one.high_us else {
                return Some(one.low_us);
            };
            let part = ((quantile - below) / one.share).clamp(0.0, 1.0);
            return (one.low_us > 0.0).then(|| one.low_us * (high / one.low_us).powf(part));
        }
        below += one.share;
    }
    all.last().map(|one| one.high_us.unwrap_or(one.low_us))
}

/// The interval of the mean that the distribution of an event allows, in microseconds, with half of
/// the last place of every share. The upper end is `None` if waits may lie in the last bucket.
pub(super) fn mean_bounds_us(report: &DatabaseReport, event: &str) -> (f64, Option<f64>) {
    let all = distribution(report, &[event]);
    let rows = || report.histograms.iter().filter(|row| row.event == event);
    let last_bound = rows()
        .filter_map(|row| row.last_bound_us)
        .fold(0.0, f64::max);
    let mut low: f64 = all.iter().map(|one| one.share * one.low_us).sum();
    let mut high = all
        .iter()
        .map(|one| Some(one.share * one.high_us?))
        .sum::<Option<f64>>();
    for row in rows() {
        for bucket in &row.buckets {
            let half = bucket.percent.map_or(0.0, |percent| percent.half) / 100.0;
            match bucket.high_us {
                // A table in detail has everything below it in its first bucket.
                Some(bound) if row.is_detail && row.first_bound_us == Some(bound) => {}
                Some(bound) => {
                    low -= half * row.below(bound);
                    high = high.map(|high| high + half * bound);
                }
                // Another table divides the last bucket of this one.
                None if row.last_bound_us.is_some_and(|last| last < last_bound) => {}
                None => high = None,
            }
        }
    }
    (low.max(0.0), high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::record::database::Printed;

    fn row(is_detail: bool, buckets: &[(&str, Option<f64>, f64)]) -> WaitHistogram {
        let bounds = buckets.iter().filter_map(|(_, high, _)| *high);
        WaitHistogram {
            event: "e".into(),
            is_detail,
            waits: Some(Printed {
                value: 1000.0,
                half: 0.0,
            }),
            may_be_cut: false,
            first_bound_us: bounds.clone().next(),
            last_bound_us: bounds.max_by(f64::total_cmp),
            buckets: buckets
                .iter()
                .filter(|(_, _, percent)| *percent > 0.0)
                .map(|(label, high_us, percent)| WaitBucket {
                    label: (*label).into(),
                    high_us: *high_us,
                    percent: Some(Printed {
                        value: *percent,
                        half: 0.05,
                    }),
                    count: None,
                })
                .collect(),
        }
    }

    #[test]
    fn a_table_in_detail_divides_the_open_bucket_of_the_first() {
        let report = DatabaseReport {
            histograms: vec![
                row(
                    false,
                    &[
                        ("<8us", Some(8.0), 0.0),
                        ("<16us", Some(16.0), 60.0),
                        (">=16us", None, 40.0),
                    ],
                ),
                row(
                    true,
                    &[
                        ("<16us", Some(16.0), 60.0),
                        ("<32us", Some(32.0), 30.0),
                        ("<64us", Some(64.0), 0.0),
                        (">=64us", None, 10.0),
                    ],
                ),
            ],
            ..DatabaseReport::default()
        };
        let found = distribution(&report, &["e"]);
        let reported: Vec<(f64, Option<f64>, f64)> = found
            .iter()
            .map(|one| (one.low_us, one.high_us, (one.share * 1e3).round()))
            .collect();
        assert_eq!(
            reported,
            [
                (8.0, Some(16.0), 600.0),
                (16.0, Some(32.0), 300.0),
                (64.0, None, 100.0)
            ]
        );
        assert!((quantile_us(&found, 0.5).unwrap() - 8.0 * 2f64.powf(5.0 / 6.0)).abs() < 1e-9);
        assert!((quantile_us(&found, 0.99).unwrap() - 64.0).abs() < 1e-9);
        assert_eq!(mean_bounds_us(&report, "e").1, None);
    }

    #[test]
    fn counts_alone_are_a_distribution_too() {
        let mut counted = row(
            false,
            &[("<1ms", Some(1000.0), 1.0), ("<4ms", Some(4000.0), 1.0)],
        );
        for (bucket, count) in counted.buckets.iter_mut().zip([30.0, 10.0]) {
            bucket.percent = None;
            bucket.count = Some(count);
        }
        let report = DatabaseReport {
            histograms: vec![counted],
            ..DatabaseReport::default()
        };
        let found = distribution(&report, &["e"]);
        assert!((found[0].share - 0.75).abs() < 1e-12);
        assert!(
            (found[1].low_us - 2000.0).abs() < 1e-9,
            "half the upper bound"
        );
    }

    #[test]
    fn an_empty_report_has_no_distribution() {
        assert!(distribution(&DatabaseReport::default(), &["e"]).is_empty());
        assert_eq!(quantile_us(&[], 0.5), None);
    }
}
