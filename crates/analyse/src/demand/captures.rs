//! Snapshots of captures: rates are averages of one-minute metrics of each instance, and the
//! histogram of waits is summed over the instances.

use super::database_figures::DatabaseFigures;
use super::distribution::{P99_WAITS_MIN, counted, distribution, quantile_us};
use super::evidence::{COMMIT, LOG_WRITE, MULTI_BLOCK, SINGLE_BLOCK};
use super::rates::possible;
use rigel_model::record::DatabaseReport;
use rigel_model::{DemandKind, DemandStream};

/// Bytes in a mebibyte.
const MIB: f64 = 1_048_576.0;

/// Seconds in a minute.
const MINUTE_S: f64 = 60.0;

/// Sum of a metric over the instances; `None` if an instance does not have it.
pub(super) fn metric(report: &DatabaseReport, name: &str) -> Option<f64> {
    let of = |one: &rigel_model::record::database::CaptureMetrics| {
        let (_, figure) = one.figures.iter().find(|(known, _)| known == name)?;
        Some(figure.value)
    };
    let sum = report.metrics.iter().map(of).sum::<Option<f64>>()?;
    (!report.metrics.is_empty()).then_some(sum)
}

/// Length of a snapshot: the instance with the most one-minute samples.
fn seconds(report: &DatabaseReport) -> Option<f64> {
    let minutes = report
        .metrics
        .iter()
        .map(|one| one.minutes)
        .fold(0.0, f64::max);
    (minutes > 0.0).then_some(minutes * MINUTE_S)
}

/// Waits of `events` per second, from the histogram.
fn waits_per_s(report: &DatabaseReport, events: &[&str]) -> Option<f64> {
    let has_any = !report.histograms.is_empty();
    let seconds = seconds(report).filter(|_| has_any)?;
    Some(counted(report, events) / seconds)
}

/// True if the histogram has more waits for reads than there were read requests: its counts are of
/// a longer time than the one-minute samples.
pub(super) fn is_of_longer_time(report: &DatabaseReport) -> bool {
    const ABOVE: f64 = 1.2;
    const READS_MIN: f64 = 50.0;
    let waits = waits_per_s(report, SINGLE_BLOCK)
        .zip(waits_per_s(report, MULTI_BLOCK))
        .map(|(single, multi)| single + multi);
    waits
        .zip(metric(report, "read_iops"))
        .is_some_and(|(waits, reads)| waits > READS_MIN && waits > ABOVE * reads)
}

/// Read requests of a snapshot per second, by kind.
struct ReadRates {
    random: Option<f64>,
    /// How that was derived.
    how: &'static str,
    /// Of several blocks, into the cache; `None` without a histogram of waits.
    multi: Option<f64>,
    direct: Option<f64>,
}

impl ReadRates {
    /// Of all read requests those that are in no other stream are direct, or single blocks that a call of
    /// several read, of which the histogram has one wait.
    fn of(report: &DatabaseReport) -> Self {
        /// A smaller part of all requests is the error of averages of one-minute samples.
        const PART_MIN: f64 = 0.01;
        let single = waits_per_s(report, SINGLE_BLOCK);
        let multi = waits_per_s(report, MULTI_BLOCK);
        let known = single.unwrap_or(0.0) + multi.unwrap_or(0.0);
        let all = metric(report, "read_iops").filter(|_| !is_of_longer_time(report));
        let is_much = |rate: &f64| all.is_some_and(|all| *rate > PART_MIN * all && *rate > 0.0);
        let others = all.map(|all| all - known).filter(is_much);
        // If the capture does not count direct reads, all requests outside the histogram are direct.
        let requests = metric(report, "read_iops_direct");
        let most = requests.or_else(|| others.filter(|_| single.is_some()));
        // A request reads one block at least.
        let blocks = metric(report, "read_bks_direct").unwrap_or(f64::INFINITY);
        let most = most.map(|most| most.min(blocks));
        let direct = most.zip(others).map(|(most, others)| most.min(others));
        let direct = direct.filter(is_much);
        let rest = others
            .map(|others| others - direct.unwrap_or(0.0))
            .filter(is_much);
        let (random, how) = match (single, rest) {
            (Some(single), None) => (Some(single), "counts of the histogram of waits"),
            (Some(single), Some(rest)) => (
                Some(single + rest),
                "read requests without direct and multi-block reads",
            ),
            (None, rest) => (
                rest,
                "read requests without direct reads: of one block and of several",
            ),
        };
        Self {
            random,
            how,
            multi,
            direct,
        }
    }

    /// Mean size of the reads into the cache, of one block and of several together.
    fn random_bytes(&self, report: &DatabaseReport) -> Option<f64> {
        let blocks = metric(report, "read_bks")? - metric(report, "read_bks_direct")?;
        possible(blocks * f64::from(report.identity.block_bytes?) / self.random?)
    }
}

/// The streams of a snapshot.
pub(super) fn streams(report: &DatabaseReport, found: &mut Vec<DemandStream>) {
    let block = report.identity.block_bytes.map(f64::from);
    let of = |kind, events: &[&str], per_s: Option<f64>, bytes, how: &str| DemandStream {
        kind,
        per_s,
        mean_bytes: bytes,
        mean_us: None,
        mean_range_us: None,
        waits: waits_per_s(report, events)
            .filter(|_| !events.is_empty())
            .or(per_s)
            .zip(seconds(report))
            .map(|(per_s, seconds)| per_s * seconds),
        latencies: distribution(report, events),
        rate_of: how.into(),
        latency_of: if events.is_empty() {
            String::new()
        } else {
            "the histogram of waits, over all instances".into()
        },
    };
    let reads = ReadRates::of(report);
    let multi = reads.multi;
    let counts = "counts of the histogram of waits";
    if let Some(random) = reads.random {
        let bytes = match multi {
            Some(_) => block,
            None => reads.random_bytes(report),
        };
        found.push(of(
            DemandKind::RandomReads,
            SINGLE_BLOCK,
            Some(random),
            bytes,
            reads.how,
        ));
    }
    if multi.is_some() {
        found.push(of(
            DemandKind::MultiblockReads,
            MULTI_BLOCK,
            multi,
            None,
            counts,
        ));
    }
    if let Some(direct) = reads.direct {
        let by_blocks = || Some(metric(report, "read_bks_direct")? * block? / direct);
        // Without that, as large as all reads of several blocks are on average.
        let by_bytes = || {
            let random = reads.random.unwrap_or(0.0) * block?;
            let bytes = metric(report, "read_mb_s")? * MIB - random;
            Some(bytes / (direct + multi.unwrap_or(0.0)))
        };
        let bytes = by_blocks().or_else(by_bytes).and_then(possible);
        let how = match metric(report, "read_iops_direct") {
            Some(_) => "direct read requests",
            None => "read requests without single-block and multi-block reads",
        };
        found.push(of(DemandKind::DirectReads, &[], Some(direct), bytes, how));
    }
    let log = waits_per_s(report, LOG_WRITE);
    let writes = metric(report, "write_iops");
    if let Some(writes) = writes {
        let derived = match log {
            Some(_) => "derived: all writes without log writes",
            None => "all writes, with those of the log",
        };
        let rest = Some((writes - log.unwrap_or(0.0)).max(0.0));
        found.push(of(
            DemandKind::PageAndDirectWrites,
            &[],
            rest,
            None,
            derived,
        ));
    }
    if let Some(log) = log {
        let redo = metric(report, "redo_mb_s").map(|mib| mib * MIB / log);
        let bytes = redo.filter(|bytes| *bytes > 0.0 && bytes.is_finite());
        found.push(of(
            DemandKind::LogWrites,
            LOG_WRITE,
            Some(log),
            bytes,
            counts,
        ));
    }
}

/// The figures of a snapshot.
pub(super) fn figures(report: &DatabaseReport, figures: &mut DatabaseFigures) {
    let of = |name: &str| metric(report, name);
    figures.seconds = seconds(report);
    figures.active_sessions = of("aas");
    figures.executions_per_s = of("exec_s");
    figures.transactions_per_s = of("commits_s");
    figures.logical_reads_per_s = of("l_reads_s");
    figures.all_reads_per_s = of("read_iops");
    figures.all_read_mib_per_s = of("read_mb_s");
    figures.all_writes_per_s = of("write_iops");
    figures.all_write_mib_per_s = of("write_mb_s");
    figures.redo_mib_per_s = of("redo_mb_s");
    figures.redo_writes_per_s = waits_per_s(report, LOG_WRITE);
    figures.redo_write_bytes = figures
        .redo_mib_per_s
        .zip(figures.redo_writes_per_s)
        .map(|(mib, writes)| mib * MIB / writes)
        .filter(|bytes| *bytes > 0.0 && bytes.is_finite());
    figures.commits_per_s = waits_per_s(report, COMMIT);
    figures.host_busy_percent = of("os_cpu").map(|sum| sum / report.metrics.len() as f64);
    let quantile_of = |events: &[&str], quantile: f64| {
        let waits = waits_per_s(report, events)? * seconds(report)?;
        let all = distribution(report, events);
        (waits >= P99_WAITS_MIN)
            .then(|| quantile_us(&all, quantile))
            .flatten()
    };
    figures.single_block_waits = waits_per_s(report, SINGLE_BLOCK)
        .zip(seconds(report))
        .map(|(per_s, seconds)| per_s * seconds);
    figures.random_read_p50_us = quantile_of(SINGLE_BLOCK, 0.5);
    figures.random_read_p99_us = quantile_of(SINGLE_BLOCK, 0.99);
    figures.log_write_p99_us = quantile_of(LOG_WRITE, 0.99);
    figures.commit_p99_us = quantile_of(COMMIT, 0.99);
    // Milliseconds of a synchronous single-block read, since 11.2, of one instance.
    if let [one] = &report.metrics[..] {
        let reported = one.figures.iter().find(|(name, _)| name == "s_blk_r_lat");
        figures.random_read_us = reported
            .map(|(_, ms)| ms.value * 1e3)
            .filter(|us| *us > 0.0);
    }
}
