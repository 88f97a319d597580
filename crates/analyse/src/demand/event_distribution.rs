//! The distribution of each event of a listing or of a part of a report, whatever it waits for.
//!
//! Input: reports without rates, of which histograms are all that is known. Output: buckets with
//! counts and shares, quantiles, modes.

use super::distribution::{distribution, quantile_us};
use crate::figures::modes::{CountedRange, Mode, modes};
use crate::figures::quantity::{count, time};
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::{ReportKind, WaitBucket, WaitHistogram};
use serde::Serialize;

/// The waits of an event.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct EventDistribution {
    /// The file that they were listed in.
    pub file: String,
    /// The container or instance, if the listing has several.
    pub container: Option<String>,
    /// Name of the event.
    pub event: String,
    /// Number of waits; `None` if only shares are known.
    pub waits: Option<f64>,
    /// The buckets with waits, ascending.
    pub buckets: Vec<EventBucket>,
    /// Median, interpolated within its bucket; `None` if it is in the first bucket, which begins at
    /// 0.
    pub p50_us: Option<f64>,
    /// 90th percentile.
    pub p90_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
    /// Its modes, in microseconds.
    pub modes: Vec<Mode>,
}

/// A bucket of an event's waits.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct EventBucket {
    /// Lower bound in microseconds.
    pub low_us: f64,
    /// Upper bound; `None` for the last bucket, which has none.
    pub high_us: Option<f64>,
    /// Number of waits, if known.
    pub count: Option<f64>,
    /// Its share of all waits of the event.
    pub share: f64,
    /// The share up to its upper bound.
    pub cumulated: f64,
}

/// The distributions of the reports that have nothing else, those with the most waits first. The
/// intervals between snapshots of one file are added.
pub(super) fn event_distributions(reports: &[&DatabaseReport]) -> Vec<EventDistribution> {
    let mut joined: Vec<DatabaseReport> = Vec::new();
    for report in reports.iter().filter(|report| has_no_rates(report)) {
        let is_next = |known: &&mut DatabaseReport| {
            known.file == report.file
                && known.identity.container == report.identity.container
                && known.window.end_id == report.window.begin_id
                && report.window.begin_id.is_some()
        };
        match joined.iter_mut().rev().find(is_next) {
            Some(known) => add(known, report),
            None => joined.push((*report).clone()),
        }
    }
    let mut distributions: Vec<EventDistribution> = joined.iter().flat_map(of_report).collect();
    distributions.sort_by(|one, other| {
        let waits = |one: &EventDistribution| one.waits.unwrap_or(0.0);
        waits(other).total_cmp(&waits(one))
    });
    distributions
}

fn has_no_rates(report: &DatabaseReport) -> bool {
    matches!(report.kind, ReportKind::Listing | ReportKind::Fragment)
}

/// Adds the counts of the interval after those of `sum`.
fn add(sum: &mut DatabaseReport, next: &DatabaseReport) {
    sum.window.end_id = next.window.end_id;
    for row in &next.histograms {
        let histogram = WaitHistogram::listed(&mut sum.histograms, &row.event);
        histogram.first_bound_us = histogram.first_bound_us.or(row.first_bound_us);
        for bucket in &row.buckets {
            let bits = |one: &WaitBucket| one.high_us.map(f64::to_bits);
            match histogram
                .buckets
                .iter_mut()
                .find(|one| bits(one) == bits(bucket))
            {
                Some(one) => one.count = one.count.zip(bucket.count).map(|(a, b)| a + b),
                None => histogram.buckets.push(bucket.clone()),
            }
        }
    }
}

fn of_report(report: &DatabaseReport) -> Vec<EventDistribution> {
    let mut events: Vec<&str> = Vec::new();
    for row in &report.histograms {
        if !events.contains(&row.event.as_str()) {
            events.push(&row.event);
        }
    }
    let of_event = |event: &str| {
        let all = distribution(report, &[event]);
        let rows = || report.histograms.iter().filter(|row| row.event == event);
        let counts = || {
            rows()
                .flat_map(|row| &row.buckets)
                .map(|bucket| bucket.count)
        };
        let is_counted = counts().all(|count| count.is_some());
        let printed = rows().find_map(|row| row.waits.filter(|_| !row.is_detail));
        let waits = printed.map(|waits| waits.value);
        let waits = waits.or_else(|| is_counted.then(|| counts().flatten().sum()));
        let mut cumulated = 0.0;
        let buckets: Vec<EventBucket> = all
            .iter()
            .map(|one| {
                cumulated += one.share;
                EventBucket {
                    low_us: one.low_us,
                    high_us: one.high_us,
                    count: waits.map(|waits| (waits * one.share).round()),
                    share: one.share,
                    cumulated,
                }
            })
            .collect();
        let ranges: Vec<CountedRange> = all
            .iter()
            .map(|one| CountedRange {
                low: one.low_us,
                high: one.high_us,
                count: one.share * waits.unwrap_or(MANY),
            })
            .collect();
        (!buckets.is_empty()).then(|| EventDistribution {
            file: report.file.clone(),
            container: report.identity.container.clone(),
            event: event.to_string(),
            waits,
            buckets,
            p50_us: quantile_us(&all, 0.5),
            p90_us: quantile_us(&all, 0.9),
            p99_us: quantile_us(&all, 0.99),
            p999_us: quantile_us(&all, 0.999),
            modes: modes(&ranges),
        })
    };
    events.into_iter().filter_map(of_event).collect()
}

/// Number of waits that shares without one are taken as of: very many.
const MANY: f64 = 1e9;

impl EventDistribution {
    /// True for an event of storage, as far as its name says so.
    pub fn is_of_storage(&self) -> bool {
        const BEGINNINGS: [&str; 5] = [
            "db file ",
            "direct path ",
            "log file parallel",
            "cell ",
            "control file ",
        ];
        BEGINNINGS.iter().any(|begin| self.event.starts_with(begin))
    }

    /// The bound of the bucket that holds a quantile: `< 4,096 µs`. Where in the bucket it is, nobody counted.
    pub fn bound_of(&self, quantile: f64) -> String {
        const ROUNDING: f64 = 1e-9;
        let mut buckets = self.buckets.iter();
        let bucket = buckets.find(|bucket| bucket.cumulated >= quantile - ROUNDING);
        match bucket.map(|bucket| (bucket.low_us, bucket.high_us)) {
            Some((_, Some(high))) => format!("< {}", bound_of_bucket(high)),
            Some((low, None)) => format!("> {}", bound_of_bucket(low)),
            None => "-".into(),
        }
    }
}

/// A bound of a bucket as the database has it: `1,024 µs`, where powers of two of a microsecond or of a
/// millisecond are counted.
pub fn bound_of_bucket(us: f64) -> String {
    let is_power = |value: f64| value >= 1.0 && (value.log2() - value.log2().round()).abs() < 1e-12;
    if is_power(us) {
        format!("{} µs", count(us))
    } else if is_power(us / 1e3) {
        format!("{} ms", count(us / 1e3))
    } else {
        time(us)
    }
}

#[cfg(test)]
mod tests {
    use super::bound_of_bucket;
    use crate::demand::{DatabaseResult, database};
    use crate::figures::modes::in_words;
    use rigel_import::{Source, csv_columns::Columns, read};

    fn result(text: &str) -> DatabaseResult {
        let source = Source {
            name: "pasted.txt",
            text,
        };
        database(&read(&[source], None, &Columns::default()).unwrap()).unwrap()
    }

    #[test]
    fn every_event_of_a_listing_has_its_distribution() {
        let found = result(
            "EVENT                          WAIT_TIME_MICRO WAIT_COUNT\n\
             ------------------------------ --------------- ----------\n\
             enq: TX - row lock contention          1048576        400\n\
             db file sequential read                    512        100\n\
             db file sequential read                   1024        600\n\
             db file sequential read                   2048         50\n\
             db file sequential read                   4096        100\n\
             db file sequential read                   8192        150\n",
        );
        let events: Vec<&str> = found
            .distributions
            .iter()
            .map(|one| one.event.as_str())
            .collect();
        assert_eq!(
            events,
            ["db file sequential read", "enq: TX - row lock contention"]
        );
        let reads = &found.distributions[0];
        assert_eq!(reads.waits, Some(1000.0));
        let of: Vec<(f64, Option<f64>, f64)> = reads
            .buckets
            .iter()
            .map(|one| (one.low_us, one.count, (one.cumulated * 1000.0).round()))
            .collect();
        assert_eq!(
            of,
            [
                (256.0, Some(100.0), 100.0),
                (512.0, Some(600.0), 700.0),
                (1024.0, Some(50.0), 750.0),
                (2048.0, Some(100.0), 850.0),
                (4096.0, Some(150.0), 1000.0)
            ]
        );
        // 400 of the 600 above 512 us: two thirds of the octave.
        let p50 = reads.p50_us.unwrap();
        assert!(
            (p50 / 512.0 / 2f64.powf(2.0 / 3.0) - 1.0).abs() < 1e-9,
            "{p50}"
        );
        assert_eq!(
            in_words(&reads.modes, bound_of_bucket),
            "75 % up to 2,048 µs, 25 % above"
        );
        // The 850th of 1000 waits is the last below 4,096 us.
        let bounds = [0.5, 0.85, 0.99].map(|quantile| reads.bound_of(quantile));
        assert_eq!(bounds, ["< 1,024 µs", "< 4,096 µs", "< 8,192 µs"]);
        let shown = [1.0, 524_288.0, 1000.0, 1_024_000.0, 1500.0].map(bound_of_bucket);
        assert_eq!(shown, ["1 µs", "524,288 µs", "1 ms", "1,024 ms", "1.50 ms"]);
        assert!(reads.is_of_storage() && !found.distributions[1].is_of_storage());
    }

    #[test]
    fn snapshots_of_a_listing_are_added_and_a_single_one_counts_by_itself() {
        let rows = |snap: u32, count: u32| {
            let event = "db file sequential rea";
            format!("{snap:>10} {event:<22} {:>15} {count:>10}\n", 1)
        };
        let head = "   SNAP_ID EVENT_NAME             WAIT_TIME_MILLI WAIT_COUNT\n\
                    ---------- ---------------------- --------------- ----------\n";
        let text = format!("{head}{}{}{}", rows(7, 1000), rows(8, 1010), rows(9, 1030));
        let found = result(&text);
        assert_eq!(found.distributions[0].waits, Some(30.0));
        assert_eq!(found.figures.len(), 2);
        let found = result(&format!("{head}{}", rows(7, 1000)));
        assert_eq!(found.distributions[0].waits, Some(1000.0));
    }
}
