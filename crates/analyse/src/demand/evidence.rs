//! What a report says of events and statistics, as intervals: a printed number is known to half of
//! its last place.

pub(super) use rigel_model::arithmetic::{Bounds, shared};
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::{IoStatRow, Printed, ReportKind, WaitRow, WaitTable};

/// Events of single-block reads, which exclude each other.
pub(super) const SINGLE_BLOCK: &[&str] = &[
    "db file sequential read",
    "cell single block physical read",
    "cell single block physical read: RDMA",
    "cell single block physical read: flash cache",
    "cell single block physical read: pmem cache",
    "cell single block physical read: xrmem cache",
];

/// Events of multi-block reads through the buffer cache.
pub(super) const MULTI_BLOCK: &[&str] =
    &["db file scattered read", "cell multiblock physical read"];

/// Events of direct reads.
pub(super) const DIRECT_READ: &[&str] = &["direct path read", "direct path read temp"];

/// Events of calls that read several single blocks.
pub(super) const PARALLEL_READ: &[&str] =
    &["db file parallel read", "cell list of blocks physical read"];

/// Events of direct writes.
pub(super) const DIRECT_WRITE: &[&str] = &["direct path write", "direct path write temp"];

/// The write of the log.
pub(super) const LOG_WRITE: &[&str] = &["log file parallel write"];

/// The wait of a commit.
pub(super) const COMMIT: &[&str] = &["log file sync"];

/// A batch of page writes.
pub(super) const PAGE_WRITE_BATCH: &[&str] = &["db file parallel write"];

/// Waits of one or several events.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Waited {
    /// Number of waits.
    pub(super) waits: f64,
    /// Interval of their total time in seconds; `None` if the figures of a row contradict each
    /// other.
    pub(super) time_s: Option<Bounds>,
}

impl Waited {
    /// Interval of the mean in microseconds.
    pub(super) fn mean_range_us(&self) -> Option<Bounds> {
        let (low, high) = self.time_s?;
        (self.waits > 0.0).then(|| (low / self.waits * 1e6, high / self.waits * 1e6))
    }

    /// Middle of the interval of the mean, in microseconds.
    pub(super) fn mean_us(&self) -> Option<f64> {
        self.mean_range_us()
            .map(|(low, high)| f64::midpoint(low, high))
    }
}

/// What a row of waits says of their total time, each as an interval in seconds: the time itself,
/// waits times mean, and the share of `of_s`.
pub(super) fn times_of(row: &WaitRow, of_s: Option<Printed>) -> Vec<(&'static str, Bounds)> {
    let mut times = Vec::new();
    if let Some(time) = row.time_s {
        times.push(("its time", time.range()));
    }
    if let Some((waits, mean)) = row.waits.zip(row.mean_us) {
        let (low, high) = mean.range();
        let (fewest, most) = waits.range();
        times.push((
            "waits times average",
            (low.max(0.0) * fewest / 1e6, high * most / 1e6),
        ));
    }
    if let Some((percent, of)) = row.percent.zip(of_s) {
        let (low, high) = percent.range();
        let (least, most) = of.range();
        times.push((
            "its share of the total",
            (low.max(0.0) / 100.0 * least, high / 100.0 * most),
        ));
    }
    times
}

/// The total that shares of a table are of. Global and Statspack tables have shares of something
/// else, or in another unit.
pub(super) fn total_of(report: &DatabaseReport, of: WaitTable) -> Option<Printed> {
    if !matches!(report.kind, ReportKind::AwrText | ReportKind::AwrHtml) {
        return None;
    }
    match of {
        WaitTable::Foreground => time_model(report, "DB time"),
        WaitTable::Background => time_model(report, "background elapsed time"),
        WaitTable::Both | WaitTable::Top => None,
    }
}

/// A line of the time model, in seconds.
pub(super) fn time_model(report: &DatabaseReport, name: &str) -> Option<Printed> {
    let row = report.time_model.iter().find(|row| row.name == name)?;
    Some(row.value)
}

/// The time of a row as all of its figures allow it; `None` if they contradict each other.
pub(super) fn time_of(report: &DatabaseReport, row: &WaitRow) -> Option<Bounds> {
    let times = times_of(row, total_of(report, row.of));
    let (first, rest) = times.split_first()?;
    rest.iter()
        .try_fold(first.1, |range, (_, other)| shared(range, *other))
}

/// Waits of `events` together, over all sessions. A table of all sessions counts, else those of
/// foreground and background, else the list on the first page.
pub(super) fn waited(report: &DatabaseReport, events: &[&str]) -> Option<Waited> {
    waited_in(report, events, &[WaitTable::Both])
        .or_else(|| {
            waited_in(
                report,
                events,
                &[WaitTable::Foreground, WaitTable::Background],
            )
        })
        .or_else(|| waited_in(report, events, &[WaitTable::Top]))
}

/// Waits of `events` together, in these tables.
pub(super) fn waited_in(
    report: &DatabaseReport,
    events: &[&str],
    tables: &[WaitTable],
) -> Option<Waited> {
    let mut waited: Option<Waited> = None;
    let rows = report
        .waits
        .iter()
        .filter(|row| tables.contains(&row.of) && events.contains(&row.event.as_str()));
    for row in rows {
        let Some(waits) = row.waits else { continue };
        let time = if waits.value > 0.0 {
            time_of(report, row)
        } else {
            Some((0.0, 0.0))
        };
        let sum = waited.get_or_insert(Waited {
            waits: 0.0,
            time_s: Some((0.0, 0.0)),
        });
        sum.waits += waits.value;
        sum.time_s = sum
            .time_s
            .zip(time)
            .map(|(sum, more)| (sum.0 + more.0.max(0.0), sum.1 + more.1));
    }
    waited
}

/// Total of a statistic between the snapshots.
pub(super) fn total(report: &DatabaseReport, name: &str) -> Option<f64> {
    let row = report.statistics.iter().find(|row| row.name == name)?;
    row.total.map(|total| total.value)
}

/// The time that the counters cover, as total / per second of the statistic that gives it most
/// precisely. Elapsed time is printed in steps of 0.6 s, and snapshot times are not those of the
/// counters.
pub(super) fn divisor(report: &DatabaseReport) -> Option<Bounds> {
    /// A wider interval is no better than the elapsed time.
    const WIDTH_MAX: f64 = 1e-4;
    let precisely = report
        .statistics
        .iter()
        .filter_map(divisor_of)
        .min_by(|one, other| {
            let width = |range: &Bounds| (range.1 - range.0) / range.0;
            width(one).total_cmp(&width(other))
        });
    let elapsed = report.window.elapsed_s.map(Printed::range);
    precisely
        .filter(|range| (range.1 - range.0) / range.0 < WIDTH_MAX || elapsed.is_none())
        .or(elapsed)
        .filter(|range| range.0 > 0.0)
}

/// The time that one statistic implies.
pub(super) fn divisor_of(row: &rigel_model::record::database::StatisticRow) -> Option<Bounds> {
    let (total, per_s) = (row.total?, row.per_s?);
    let (low, high) = per_s.range();
    let range = (total.value / high, total.value / low);
    (low > 0.0 && total.value > 0.0 && total.half == 0.0 && range.1.is_finite()).then_some(range)
}

/// The row of a function, over all instances.
pub(super) fn function<'a>(report: &'a DatabaseReport, name: &str) -> Option<&'a IoStatRow> {
    of_all(&report.functions, name)
}

/// The row of a file type, over all instances.
pub(super) fn file_type<'a>(report: &'a DatabaseReport, name: &str) -> Option<&'a IoStatRow> {
    of_all(&report.file_types, name)
}

fn of_all<'a>(rows: &'a [IoStatRow], name: &str) -> Option<&'a IoStatRow> {
    rows.iter()
        .find(|row| row.name == name && row.instance.as_deref().is_none_or(|of| of == "*"))
}

/// Bytes of one request, as an interval: `None` if nothing was transferred, or too little to tell.
pub(super) fn bytes_per_request(per_s: Option<Printed>, mib: Option<Printed>) -> Option<Bounds> {
    const MIB: f64 = 1_048_576.0;
    let (per_s, mib) = (per_s?, mib?);
    let (fewest, most) = per_s.range();
    let (least, greatest) = mib.range();
    (fewest > 0.0 && mib.value > 0.0)
        .then(|| (least.max(0.0) * MIB / most, greatest * MIB / fewest))
}

/// True if requests of this size do not exist: outside 512 bytes to 32 MiB. 19c prints such counts
/// of reads in `IOStat by Function` of global reports.
pub(super) fn is_impossible_size(bytes: Bounds) -> bool {
    const LEAST: f64 = 512.0;
    const GREATEST: f64 = 33_554_432.0;
    bytes.1 < LEAST || bytes.0 > GREATEST
}

/// True if the reads of a row have a possible size, or too few to tell.
pub fn has_possible_reads(row: &IoStatRow) -> bool {
    bytes_per_request(row.reads_per_s, row.read_mib_per_s).is_none_or(|it| !is_impossible_size(it))
}

/// True if the storage is an Exadata: its reads come from flash or memory behind the network.
pub(super) fn is_exadata(report: &DatabaseReport) -> bool {
    let cell_reads = |row: &&WaitRow| {
        row.event.starts_with("cell ")
            && row.event.contains("read")
            && row.waits.is_some_and(|waits| waits.value > 0.0)
    };
    report.waits.iter().any(|row| cell_reads(&row))
        || report
            .histograms
            .iter()
            .any(|row| row.event.starts_with("cell single block"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(value: f64, half: f64) -> Printed {
        Printed { value, half }
    }

    fn row(of: WaitTable, waits: f64, time_s: f64, mean_ms: f64, percent: f64) -> WaitRow {
        WaitRow {
            of,
            event: "db file sequential read".into(),
            class: None,
            waits: Some(printed(waits, 0.0)),
            time_s: Some(printed(time_s, 0.5)),
            mean_us: Some(printed(mean_ms * 1e3, 500.0)),
            percent: Some(printed(percent, 0.05)),
        }
    }

    /// The worked example of the contract: 1,173 waits, 5 s, 4 ms, 5.1 % of 88.9 s.
    #[test]
    fn a_mean_is_known_better_than_it_is_printed() {
        let mut report = DatabaseReport::default();
        report
            .time_model
            .push(rigel_model::record::database::NamedFigure {
                name: "background elapsed time".into(),
                instance: None,
                value: printed(88.9, 0.05),
            });
        report
            .waits
            .push(row(WaitTable::Background, 1173.0, 5.0, 4.0, 5.1));
        let (low, high) = waited(&report, SINGLE_BLOCK)
            .unwrap()
            .mean_range_us()
            .unwrap();
        assert!((3836.0..3850.0).contains(&low), "{low}");
        assert!((3890.0..3910.0).contains(&high), "{high}");
    }

    #[test]
    fn figures_that_contradict_each_other_have_no_mean() {
        let mut report = DatabaseReport::default();
        report
            .waits
            .push(row(WaitTable::Foreground, 1173.0, 50.0, 4.0, 5.1));
        let waited = waited(&report, SINGLE_BLOCK).unwrap();
        assert!((waited.waits - 1173.0).abs() < 1e-9 && waited.mean_us().is_none());
    }

    #[test]
    fn waits_of_foreground_and_background_are_added_and_a_table_of_both_is_not() {
        let mut report = DatabaseReport::default();
        report
            .waits
            .push(row(WaitTable::Foreground, 1000.0, 4.0, 4.0, 0.0));
        report
            .waits
            .push(row(WaitTable::Background, 500.0, 2.0, 4.0, 0.0));
        assert!((waited(&report, SINGLE_BLOCK).unwrap().waits - 1500.0).abs() < 1e-9);
        report
            .waits
            .push(row(WaitTable::Both, 1500.0, 6.0, 4.0, 0.0));
        assert!((waited(&report, SINGLE_BLOCK).unwrap().waits - 1500.0).abs() < 1e-9);
    }

    #[test]
    fn five_bytes_a_request_do_not_exist() {
        let size = bytes_per_request(
            Some(printed(113_950_484.15, 0.005)),
            Some(printed(552.37, 0.005)),
        );
        assert!(is_impossible_size(size.unwrap()));
        let size = bytes_per_request(Some(printed(441.58, 0.005)), Some(printed(26.887, 0.0005)));
        assert!(!is_impossible_size(size.unwrap()));
        assert_eq!(
            bytes_per_request(Some(printed(0.0, 0.005)), Some(printed(0.0, 0.5))),
            None
        );
    }
}
