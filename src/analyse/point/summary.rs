//! Summary of a data point: rates, latencies with their bands, steadiness, coverage, and findings.
//!
//! Everything is computed from the record, whenever it is needed. Names carry their unit; MB are
//! 10^6 bytes, MiB 2^20.

use super::sql::SqlSummary;
use super::steady::{Steady, steady};
use crate::analyse::figures::confidence::{BoundCheck, Confidence, Estimate};
use crate::analyse::figures::quantity::{count, percent, rounded_percent, time};
use crate::model::{
    Bound, Coordinates, Counters, Finding, FindingName, Kind, Load, MIB, Nanos, Pattern, Sample,
    Step, Until,
};
use crate::record::{End, Latencies, PointRecord, StreamRecord};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// Summary of one point.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointSummary {
    /// The step and its load.
    #[serde(flatten)]
    pub coordinates: Coordinates,
    /// How it ended.
    pub end: End,
    /// Wall-clock time of its start.
    pub started: String,
    /// Duration of the warm-up in seconds.
    pub warm_up_s: f64,
    /// Measured time in seconds.
    pub measured_s: f64,
    /// CPU time of this process per operation, user and system. `None` if nothing completed, and
    /// for an open loop, whose thread busy-waits for the next operation.
    pub cpu_us_per_io: Option<f64>,
    /// Summary of each class.
    pub classes: Vec<ClassSummary>,
    /// The kernel's counts of the devices below during the point; `None` if not available.
    pub witness: Option<DeviceBytes>,
    /// Figures of database sessions; `None` for raw I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<Box<SqlSummary>>,
    /// Findings about this point.
    pub findings: Vec<Finding>,
}

/// Summary of one class of operations.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassSummary {
    /// The class, such as `small`.
    pub name: String,
    /// Bytes of one operation.
    pub io_bytes: u32,
    /// Number of operations that closed loops keep outstanding.
    pub outstanding: u32,
    /// Completed operations.
    pub done: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Failed operations, by cause.
    pub failed: BTreeMap<String, u64>,
    /// Operations that were due and never started.
    pub unserved: u64,
    /// Operations due per second, in an open loop: done, failed and unserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// Open loop: true if at most min(in-flight limit, 1 % of due operations) were never started,
    /// and the queue did not grow throughout. That many may be waiting at any moment,
    /// including the end of the measurement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// Completed operations per second.
    pub iops: f64,
    /// 2^20 bytes per second.
    pub mib_per_s: f64,
    /// Response times; `None` if nothing completed.
    #[serde(flatten)]
    pub latency: Option<LatencySummary>,
    /// Confidence intervals of the figures; `None` if there are too few windows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// Open loop: the times from issue to completion, without the time that operations waited to
    /// be issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<LatencySummary>,
    /// Open loop: the times from due, with a free slot, to issue: what the tool added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_delay: Option<LatencySummary>,
    /// Comparison of the response times with the bound, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<BoundCheck>,
    /// Rate times mean response time: the outstanding operations, by Little's law.
    pub littles_law: f64,
    /// SNIA's judgement on the seconds; `None` if there are too few.
    pub steady: Option<Steady>,
    /// The blocks that were touched.
    pub coverage: CoverageSummary,
    /// Figures reported by another tool; `None` for what Rigel measured.
    #[serde(rename = "told", skip_serializing_if = "Option::is_none")]
    pub reported: Option<ReportedFigures>,
}

/// Another tool's figures of a class, as far as they are compared. `None` means not reported.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ReportedFigures {
    /// Bytes per second.
    pub bytes_per_s: Option<f64>,
    /// Median response time.
    pub p50_us: Option<f64>,
    /// 99th percentile.
    pub p99_us: Option<f64>,
    /// 99.9th percentile.
    pub p999_us: Option<f64>,
}

/// Response times in microseconds. The true quantile lies within 0.4 % of the figure: half the
/// width of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub deviation_us: f64,
    /// Minimum.
    pub min_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
    /// 99.9th percentile.
    pub p999_us: f64,
    /// Maximum.
    pub max_us: f64,
}

/// The blocks of the volume that a class touched, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoverageSummary {
    /// Blocks in the volume.
    pub blocks: u64,
    /// Number of distinct watched blocks that were touched.
    pub watched: u64,
    /// Distinct watched blocks touched.
    pub distinct: u64,
    /// Expected number of distinct blocks for as many uniform draws: `M (1 - e^(-N/M))`; `None`
    /// for other patterns.
    pub expected: Option<f64>,
    /// Standard deviation of `expected`.
    pub expected_deviation: Option<f64>,
    /// Number of slices of the volume, of 33 to 64, with at least one touched block.
    pub slices_touched: usize,
    /// Number of all slices.
    pub slices: usize,
}

/// The kernel's count of bytes, and ours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceBytes {
    /// Bytes the devices transferred between the first sample and the last.
    pub device_bytes: u64,
    /// Bytes of the operations completed in that time, warm-up included.
    pub asked_bytes: u64,
}

/// Allowed relative difference between the kernel's count and ours.
const WITNESS_TOLERANCE: f64 = 0.02;

/// Allowed deviation of coverage from theory, in standard deviations: chance exceeds six once in
/// 500 million.
const COVERAGE_TOLERANCE: f64 = 6.0;

/// Fraction of available CPU time in use above which the CPU is the limit.
const CPU_TOLERANCE: f64 = 0.95;

/// Allowed p99 of the scheduling delay, as a fraction of the median response time.
const DELAY_TOLERANCE: f64 = 0.5;

/// Range of an open loop's mean response times per second, as a fraction of their mean, above which
/// a warning is raised.
const RESPONSE_RANGE: f64 = 3.0;

/// Scheduling delay in microseconds that is short compared with any storage.
const DELAY_LEAST_US: f64 = 10.0;

/// Allowed relative deviation from Little's law.
const LITTLE_TOLERANCE: f64 = 0.01;

impl PointSummary {
    /// The step of the point.
    #[must_use]
    pub fn step(&self) -> Step {
        self.coordinates.step()
    }

    /// True if this is a closed loop with a depth of `load` small I/Os.
    #[must_use]
    pub fn is_at_depth(&self, load: f64) -> bool {
        let depth = self.coordinates.depth().or(self.coordinates.small_alone());
        depth.is_some_and(|depth| (f64::from(depth) - load).abs() < 0.5)
    }
}

impl ClassSummary {
    /// Completed operations per second with their interval. No interval for an offered load that
    /// was not met: windows count operations by due time, and the last ones were never served,
    /// so the windows are not samples of one rate.
    #[must_use]
    pub fn rate(&self) -> Estimate {
        let known = self.confidence.filter(|_| self.met != Some(false));
        Estimate {
            value: self.iops,
            interval: known.map(|confidence| confidence.iops.interval().into()),
        }
    }

    /// True if the load was met without failures, and within the bound on response time if there is
    /// one.
    #[must_use]
    pub fn sustained(&self) -> bool {
        self.met != Some(false)
            && self.failed.is_empty()
            && self.within.is_none_or(|within| within.kept)
    }
}

/// Summarises a point.
#[must_use]
pub fn summarise(record: &PointRecord) -> PointSummary {
    summarise_within(record, None)
}

/// Summarises a point, and checks its response times against `bound`.
#[must_use]
pub fn summarise_within(record: &PointRecord, bound: Option<Bound>) -> PointSummary {
    let classes: Vec<ClassSummary> = record
        .streams
        .iter()
        .map(|stream| class(stream, record, bound))
        .collect();
    let done: u64 = classes.iter().map(|class| class.done).sum();
    let witness = witness(record, &classes);
    let mut findings = Vec::new();
    for class in &classes {
        check_class(class, record, &mut findings);
    }
    findings.extend(cpu_warning(record));
    findings.extend(super::host::warnings(record));
    findings.extend(witness.and_then(|witness| witness_warning(witness, record.coordinates)));
    let sql = super::sql::sql(record).map(Box::new);
    findings.extend(
        sql.iter()
            .flat_map(|sql| super::sql::warnings(sql, &record.coordinates.to_string())),
    );
    PointSummary {
        coordinates: record.coordinates,
        end: record.end.clone(),
        started: record.started.clone(),
        warm_up_s: record.warm_up.as_secs_f64(),
        measured_s: record.measured.as_secs_f64(),
        cpu_us_per_io: (done > 0 && !is_open(record))
            .then(|| record.cpu.as_micros_f64() / done as f64),
        classes,
        witness,
        sql,
        findings,
    }
}

/// True if any stream is an open loop.
fn is_open(record: &PointRecord) -> bool {
    record
        .streams
        .iter()
        .flat_map(|stream| &stream.loads)
        .any(|load| matches!(load, Load::Open { .. }))
}

fn class(stream: &StreamRecord, record: &PointRecord, bound: Option<Bound>) -> ClassSummary {
    let (total, measured) = (stream.total(), record.measured);
    let seconds = measured.as_secs_f64();
    let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let done_of = |kind| {
        let windows = stream
            .kinds
            .iter()
            .filter(|record| record.kind == kind)
            .flat_map(|record| &record.windows);
        windows.map(|window| window.done).sum::<u64>()
    };
    let iops = rate(total.done as f64);
    let blocks: u64 = match stream.sql {
        None => total.done,
        Some(work) => stream
            .kinds
            .iter()
            .map(|kind| kind.total().done * work.blocks(kind.kind))
            .sum(),
    };
    let latency = latency(&total.response);
    let unserved = stream.unserved.iter().sum();
    let open = stream
        .loads
        .iter()
        .any(|load| matches!(load, Load::Open { .. }));
    let in_flight: u64 = stream
        .loads
        .iter()
        .map(|load| u64::from(load.slots()))
        .sum();
    let due = total.done + total.failures() + unserved;
    let closed = |load: &Load| {
        if let Load::Closed { depth } = load {
            *depth
        } else {
            0
        }
    };
    ClassSummary {
        name: stream.name.clone(),
        io_bytes: stream.length,
        outstanding: stream.loads.iter().map(closed).sum(),
        done: total.done,
        reads: done_of(Kind::Read),
        writes: done_of(Kind::Write) + done_of(Kind::Log),
        unserved,
        offered: open.then(|| rate(due as f64)),
        met: open.then(|| unserved <= in_flight.min(due / 100) && !is_outrun(stream, record, due)),
        iops,
        mib_per_s: rate(blocks as f64) * f64::from(stream.length) / MIB as f64,
        littles_law: latency.map_or(0.0, |latency| iops * latency.mean_us / 1e6),
        latency,
        confidence: Confidence::of(stream, record),
        service: total.service.as_ref().and_then(self::latency),
        scheduling_delay: stream.delay.as_ref().and_then(self::latency),
        within: bound.map(|bound| {
            BoundCheck::of(
                &total.response.histogram,
                unserved + total.failures(),
                bound,
            )
        }),
        steady: steady(&if open {
            response_spans(stream, record)
        } else {
            spans(stream, record)
        }),
        coverage: coverage(stream),
        reported: None,
        failed: total.failed,
    }
}

/// True if the queue of an open loop grew throughout. Either more than a hundredth of the due
/// operations ended after the measurement, and the last quarter took on average more than 1.5 times
/// as long as the first; or more than half of all ended after it.
fn is_outrun(stream: &StreamRecord, record: &PointRecord, due: u64) -> bool {
    const GROWTH: f64 = 1.5;
    let whole = record.whole_windows();
    let mut late = 0;
    for at in 0..whole {
        // An operation that took longer than from the start of its due window to the end of the
        // measurement certainly ended after it.
        let left = record.measured.since(Nanos(record.window.0 * at as u64));
        let of_window = stream
            .windows_at(at)
            .flat_map(|window| window.response.histogram.buckets());
        late += of_window
            .filter(|(low, ..)| *low > left.0)
            .map(|(.., count)| count)
            .sum::<u64>();
    }
    let mean = |windows: Range<usize>| {
        let (sum, count) = responses(stream, windows);
        sum as f64 / count.max(1) as f64
    };
    late > due / 2 || late > due / 100 && mean(whole * 3 / 4..whole) > GROWTH * mean(0..whole / 4)
}

/// The response times in these windows: their sum in nanoseconds, and their number.
fn responses(stream: &StreamRecord, windows: Range<usize>) -> (u64, u64) {
    windows
        .flat_map(|at| stream.windows_at(at))
        .fold((0, 0), |(sum, count), window| {
            (
                sum + window.response.sum,
                count + window.response.histogram.count(),
            )
        })
}

/// Mean response time of each span in nanoseconds. It shows whether an open loop was steady, since
/// its throughput is the offered rate.
fn response_spans(stream: &StreamRecord, record: &PointRecord) -> Vec<u64> {
    let mean = |windows| {
        let (sum, count) = responses(stream, windows);
        sum / count.max(1)
    };
    whole_spans(record).map(mean).collect()
}

/// Completed operations of each span.
fn spans(stream: &StreamRecord, record: &PointRecord) -> Vec<u64> {
    let done = |windows: Range<usize>| {
        windows
            .flat_map(|at| stream.windows_at(at))
            .map(|window| window.done)
            .sum()
    };
    whole_spans(record).map(done).collect()
}

/// The windows of each complete span: each second, or each fifth of a measurement shorter than five
/// seconds.
fn whole_spans(record: &PointRecord) -> impl Iterator<Item = Range<usize>> {
    const SECOND: u64 = 1_000_000_000;
    let in_a_second = usize::try_from(SECOND / record.window.0.clamp(1, SECOND))
        .expect("windows of a second fit");
    let whole = record.whole_windows();
    let width = in_a_second.min((whole / 5).max(1));
    (0..whole / width).map(move |span| span * width..(span + 1) * width)
}

/// Summarises latencies; `None` if there are none.
#[must_use]
pub fn latency(latencies: &Latencies) -> Option<LatencySummary> {
    let Latencies {
        histogram,
        sum,
        sum_squares,
        min,
        max,
    } = latencies;
    let count = histogram.count();
    if count == 0 {
        return None;
    }
    let mean = *sum as f64 / count as f64;
    let quantile = |q| {
        let band = histogram
            .quantile(q)
            .map_or(0.0, crate::record::Band::middle);
        // The extremes are exact, and no quantile lies outside them. (`clamp` would panic on a
        // damaged record.)
        band.max(*min as f64).min(*max as f64) / 1e3
    };
    Some(LatencySummary {
        mean_us: mean / 1e3,
        deviation_us: (sum_squares / count as f64 - mean * mean).max(0.0).sqrt() / 1e3,
        min_us: *min as f64 / 1e3,
        p50_us: quantile(0.5),
        p90_us: quantile(0.9),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        max_us: *max as f64 / 1e3,
    })
}

fn coverage(stream: &StreamRecord) -> CoverageSummary {
    let coverage = &stream.coverage;
    // A database operation visits a range of rows, so the blocks are not independent draws.
    let uniform = stream.sql.is_none()
        && stream
            .patterns
            .iter()
            .all(|pattern| *pattern == Pattern::Uniform);
    CoverageSummary {
        blocks: coverage.extent,
        watched: coverage.tracked,
        distinct: coverage.distinct,
        expected: uniform.then(|| coverage.expected_uniform()),
        expected_deviation: uniform.then(|| coverage.expected_uniform_deviation()),
        slices_touched: coverage.slices.iter().filter(|count| **count > 0).count(),
        slices: coverage.slices.len(),
    }
}

/// The kernel's count of bytes between the first and the last sample, over all devices.
fn witness(record: &PointRecord, classes: &[ClassSummary]) -> Option<DeviceBytes> {
    let (first, last) = (record.samples.first()?, record.samples.last()?);
    let bytes = |sample: &Sample, of: fn(&Counters) -> u64| {
        sample.devices.values().map(of).sum::<u64>() * 512
    };
    let sectors = |counters: &Counters| counters.read_sectors + counters.write_sectors;
    // For databases, `SqlSummary` compares the server's own counts instead.
    if first.devices.is_empty() || record.streams.iter().any(|stream| stream.sql.is_some()) {
        return None;
    }
    let asked = record.streams.iter().zip(classes);
    let asked =
        asked.map(|(stream, class)| (class.done + stream.warm_up_done) * u64::from(stream.length));
    Some(DeviceBytes {
        device_bytes: bytes(last, sectors).saturating_sub(bytes(first, sectors)),
        asked_bytes: asked.sum(),
    })
}

fn check_class(class: &ClassSummary, record: &PointRecord, findings: &mut Vec<Finding>) {
    let cell = format!("{} I/O at {}", class.name, record.coordinates);
    if !class.failed.is_empty() {
        let causes: Vec<String> = class
            .failed
            .iter()
            .map(|(cause, count)| format!("{count} x {cause}"))
            .collect();
        findings.push(Finding::warning(
            FindingName::Failures,
            format!(
                "{cell}: {} failed; the figures are for the others",
                causes.join(", ")
            ),
            "see the log of the kernel (dmesg) and of the device",
        ));
    }
    check_offered(class, &cell, findings);
    if class.done == 0 && class.failed.is_empty() && class.outstanding > 0 {
        findings.push(Finding::warning(
            FindingName::NothingDone,
            format!("{cell}: no operation completed in {}", record.measured),
            "measure longer: one operation takes longer than the measurement",
        ));
    }
    // If a rate was not met, the operations due last were never served, so steadiness cannot be
    // judged. Response times near the limit vary more than SNIA allows for throughput: only a
    // queue that comes and goes is reported.
    let tolerated =
        |steady: &Steady| steady.steady || class.offered.is_some() && steady.range < RESPONSE_RANGE;
    if let Some(steady) = class
        .steady
        .filter(|steady| !tolerated(steady) && class.met != Some(false))
    {
        findings.push(Finding::warning(
            FindingName::Unsteady,
            format!(
                "{cell} was not steady: {} ranged over {} of its mean, and {}",
                if class.offered.is_some() {
                    "response time"
                } else {
                    "throughput"
                },
                rounded_percent(steady.range),
                trend(steady.slope)
            ),
            "measure longer, or when the device has less other load",
        ));
    }
    if !class.failed.is_empty() || class.done == 0 {
        // Failed operations took time and a place in the pattern, but are in none of the figures
        // below.
        return;
    }
    if let (Some(expected), Some(deviation)) =
        (class.coverage.expected, class.coverage.expected_deviation)
    {
        let off = class.coverage.distinct as f64 - expected;
        if off.abs() > COVERAGE_TOLERANCE * deviation.max(1.0) {
            findings.push(Finding::warning(
                FindingName::Coverage,
                format!(
                    "{cell} touched {} distinct blocks, but {expected:.0} are expected by chance",
                    class.coverage.distinct
                ),
                "report this as a bug: the volume was not read as planned",
            ));
        }
    }
    check_littles_law(class, record, &cell, findings);
}

/// Compares the outstanding operations with rate times latency.
fn check_littles_law(
    class: &ClassSummary,
    record: &PointRecord,
    cell: &str,
    findings: &mut Vec<Finding>,
) {
    let outstanding = f64::from(class.outstanding);
    let off = (class.littles_law - outstanding).abs();
    // Operations in flight at the edges count as a whole or not at all, and stalls there may last
    // long: the time of each slot may be wrong by the longest operation.
    let edge = class.latency.map_or(f64::INFINITY, |latency| {
        latency.max_us / 1e6 / record.measured.as_secs_f64()
    });
    // Operations that were due before the measurement and delayed its beginning are in none of its
    // windows.
    let stream = record
        .streams
        .iter()
        .find(|stream| stream.name == class.name);
    let idle = |at: &usize| {
        stream.is_some_and(|stream| stream.windows_at(*at).all(|window| window.done == 0))
    };
    let whole = record.whole_windows();
    let edge = edge + (0..whole).take_while(idle).count() as f64 / whole.max(1) as f64;
    // Sessions that pause, and those that finish their share of fixed work before others, have
    // nothing outstanding.
    let pauses = stream
        .and_then(|stream| stream.sql)
        .is_some_and(|work| work.think.is_some())
        || record
            .asked
            .as_ref()
            .is_some_and(|point| matches!(point.until, Until::Ops(_) | Until::Work { .. }));
    let off = if pauses {
        (class.littles_law - outstanding).max(0.0)
    } else {
        off
    };
    if record.end == End::Complete
        && outstanding > 0.0
        && off > (LITTLE_TOLERANCE + edge) * outstanding
    {
        findings.push(Finding::warning(
            FindingName::LittlesLaw,
            format!(
                "{cell}: rate times latency is {:.2}, but {outstanding} were outstanding",
                class.littles_law
            ),
            "report this as a bug: one of the three figures is wrong",
        ));
    }
}

/// Describes a slope relative to the mean. A fall by more than the mean would be a meaningless
/// percentage.
fn trend(slope: f64) -> String {
    let word = if slope < 0.0 { "fell" } else { "rose" };
    if slope.abs() <= 1.0 {
        return format!(
            "{word} by {} from start to end",
            rounded_percent(slope.abs())
        );
    }
    let [first, last] = [-0.5, 0.5].map(|side| (1.0 + side * slope).max(0.0));
    format!("{word} from {first:.1} times its mean to {last:.1} times")
}

/// Notes an offered load that was not met, and warns if Rigel itself issued late.
fn check_offered(class: &ClassSummary, cell: &str, findings: &mut Vec<Finding>) {
    let Some(offered) = class.offered else { return };
    if class.met == Some(false) {
        findings.push(Finding::note(
            FindingName::RateNotMet,
            format!(
                "{cell}: {} operations per second were due, {} were served; {} never started",
                count(offered.round()),
                count(class.iops.round()),
                count(class.unserved as f64)
            ),
        ));
    }
    let medians = class.scheduling_delay.zip(class.latency);
    if let Some((delay, response)) = medians.filter(|(delay, response)| {
        delay.p99_us > (DELAY_TOLERANCE * response.p50_us).max(DELAY_LEAST_US)
    }) {
        findings.push(Finding::warning(
            FindingName::SchedulingDelay,
            format!(
                "{cell}: Rigel itself issued 1 % of the I/Os {} late or more; the median \
                 response time is {}",
                time(delay.p99_us),
                time(response.p50_us)
            ),
            "give it more CPU; service times do not include the delay",
        ));
    }
}

/// Warns if the tool has no CPU left: then it measures itself.
fn cpu_warning(record: &PointRecord) -> Option<Finding> {
    let available = record.measured.as_secs_f64() * f64::from(record.cpus);
    let busy = record.cpu.as_secs_f64() / available;
    // Open-loop workers busy-wait, so their CPU use is not a limit. Nor is a model's time that of
    // the CPU: no samples of the host are taken for it.
    let real = !record.samples.is_empty();
    (real && available > 0.0 && busy > CPU_TOLERANCE && !is_open(record)).then(|| {
        Finding::warning(
            FindingName::CpuLimit,
            format!(
                "at {} Rigel's own threads kept {} of the CPUs busy for {} of the time: the \
                 storage may be able to do more",
                record.coordinates,
                record.cpus,
                rounded_percent(busy)
            ),
            "use more threads with --workers, if there are more CPUs; otherwise the figures are \
             the limit of this machine",
        )
    })
}

fn witness_warning(witness: DeviceBytes, cell: Coordinates) -> Option<Finding> {
    let (device, asked) = (witness.device_bytes as f64, witness.asked_bytes as f64);
    if asked <= 0.0 {
        return None;
    }
    let share = device / asked;
    if share < 1.0 - WITNESS_TOLERANCE {
        return Some(Finding::warning(
            FindingName::NotFromDevice,
            format!(
                "at {cell} the device transferred only {} of the bytes; the rest did not \
                 come from it",
                percent(share)
            ),
            "a cache, a hole or another layer served the I/O: measure a completely written file, \
             with direct I/O",
        ));
    }
    (share > 1.0 + WITNESS_TOLERANCE).then(|| {
        Finding::warning(
            FindingName::DeviceLoad,
            format!(
                "at {cell} the device transferred {} of the requested bytes: it has other \
                 load",
                percent(share)
            ),
            "measure when the device is otherwise idle; the figures are for the capacity left by \
             the other load",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Coordinates, Outcome, SqlWork, Tables, Think};
    use crate::record::{Coverage, CoverageMap, KindRecord, OperationTimes, Recorder, Window};

    #[test]
    fn a_steep_trend_is_reported_in_times_of_the_mean() {
        assert_eq!(trend(-0.4), "fell by 40 % from start to end");
        assert_eq!(trend(-1.36), "fell from 1.7 times its mean to 0.3 times");
        assert_eq!(trend(2.6), "rose from 0.0 times its mean to 2.3 times");
    }

    /// A point of 10 s with one operation after the other of 1 ms, on every block of a small volume
    /// in turn.
    fn record() -> PointRecord {
        let mut recorder = Recorder::new(false, &[Kind::Read], std::sync::Arc::default());
        recorder.measure_from(Nanos(0));
        let map = CoverageMap::new(100);
        for i in 0..10_000 {
            let due = Nanos::from_millis(i);
            let done = due.plus(Nanos::from_millis(1));
            recorder.record(
                Kind::Read,
                OperationTimes {
                    due,
                    start: due,
                    done,
                },
                Outcome::Done,
            );
            map.touch(i % 100);
        }
        let mut stream = StreamRecord {
            sql: None,
            name: "small".into(),
            length: 8192,
            loads: vec![Load::Closed { depth: 1 }],
            patterns: vec![Pattern::Uniform],
            kinds: vec![KindRecord {
                kind: Kind::Read,
                windows: Vec::new(),
            }],
            unserved: Vec::new(),
            delay: None,
            warm_up_done: 0,
            coverage: map.read(),
        };
        recorder.merge_into(&mut stream);
        PointRecord {
            coordinates: Coordinates::cell(1, 0),
            started: String::new(),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(10),
            end: End::Complete,
            cpu: Nanos::from_millis(50),
            cpus: 1,
            window: crate::record::WINDOW,
            asked: None,
            streams: vec![stream],
            samples: Vec::new(),
        }
    }

    fn names(record: &PointRecord) -> Vec<String> {
        summarise(record)
            .findings
            .into_iter()
            .map(|finding| finding.name)
            .collect()
    }

    #[test]
    fn figures_are_those_of_the_record() {
        let summary = summarise(&record());
        let class = &summary.classes[0];
        assert_eq!((class.done, class.reads, class.writes), (10_000, 10_000, 0));
        assert!((class.iops - 1000.0).abs() < 1e-9 && (class.littles_law - 1.0).abs() < 1e-9);
        assert!((class.mib_per_s - 7.8125).abs() < 1e-9);
        assert_eq!(summary.cpu_us_per_io, Some(5.0));
        let latency = class.latency.unwrap();
        // All operations are equal, so every figure is exactly the same.
        for figure in [
            latency.mean_us,
            latency.min_us,
            latency.p50_us,
            latency.p999_us,
            latency.max_us,
        ] {
            assert!((figure - 1000.0).abs() < 1e-9, "{latency:?}");
        }
        assert!(latency.deviation_us < 1e-3);
        assert_eq!(class.steady.map(|steady| steady.steady), Some(true));
        assert_eq!(names(&record()), Vec::<String>::new());
    }

    #[test]
    fn a_corner_of_the_volume_is_no_coverage() {
        let mut record = record();
        record.streams[0].coverage = Coverage {
            distinct: 10,
            ..record.streams[0].coverage.clone()
        };
        assert_eq!(names(&record), ["coverage"]);
    }

    #[test]
    fn a_rate_that_contradicts_its_latency_is_doubted() {
        let mut record = record();
        record.streams[0].loads = vec![Load::Closed { depth: 2 }];
        assert_eq!(names(&record), ["littles-law"]);
    }

    #[test]
    fn sessions_that_pause_have_less_outstanding() {
        let tables = Tables {
            schemas: 1,
            scale: 10_000,
            scan_blocks: 0,
            block: 8192,
        };
        let think = Some(Think {
            every: 1,
            least: Nanos(1),
            most: Nanos(1),
        });
        let mut record = record();
        record.streams[0].sql = Some(SqlWork {
            think,
            ..SqlWork::reads(tables)
        });
        record.streams[0].loads = vec![Load::Closed { depth: 2 }];
        assert!(!names(&record).contains(&"littles-law".to_string()));
        record.streams[0].kinds[0]
            .windows
            .iter_mut()
            .for_each(|window| window.response.sum *= 4);
        assert!(names(&record).contains(&"littles-law".to_string()));
    }

    #[test]
    fn a_stall_at_the_edge_is_no_contradiction() {
        let mut record = record();
        let latencies = &mut record.streams[0].kinds[0].windows[9].response;
        // The last of ten thousand operations took 200 ms, most of it after the end of the
        // measurement.
        latencies.sum += 199_000_000;
        latencies.max = 200_000_000;
        assert_eq!(names(&record), Vec::<String>::new());
        let latencies = &mut record.streams[0].kinds[0].windows[9].response;
        latencies.sum += 400_000_000;
        assert_eq!(names(&record), ["littles-law"]);
    }

    #[test]
    fn the_kernel_is_heard_as_a_witness() {
        let sample = |sectors| Sample {
            devices: [(
                "sda".to_string(),
                Counters {
                    read_sectors: sectors,
                    ..Counters::default()
                },
            )]
            .into(),
            ..Sample::default()
        };
        let mut record = record();
        record.samples = vec![sample(1000), sample(1000 + 10_000 * 16)];
        assert_eq!(names(&record), Vec::<String>::new());
        record.samples[1] = sample(1000 + 5_000 * 16);
        assert_eq!(names(&record), ["not-from-device"]);
        record.samples[1] = sample(1000 + 15_000 * 16);
        assert_eq!(names(&record), ["device-load"]);
    }

    #[test]
    fn a_tool_without_cpu_to_spare_is_doubted() {
        let mut record = record();
        record.cpu = Nanos::from_millis(9800);
        // In virtual time there are no samples, and no CPU that could be short.
        assert_eq!(names(&record), Vec::<String>::new());
        record.samples = vec![Sample::default()];
        assert_eq!(names(&record), ["cpu-limit"]);
        record.cpus = 2;
        assert_eq!(names(&record), Vec::<String>::new());
    }

    #[test]
    fn failures_and_unsteadiness_are_said() {
        let mut record = record();
        record.streams[0].kinds[0].windows[5] = Window::default();
        // A second without operations also breaks the law: 9 s of work in 10 s.
        assert_eq!(names(&record), ["unsteady", "littles-law"]);
        record.streams[0].kinds[0].windows[3]
            .failed
            .insert("short transfer".into(), 7);
        assert_eq!(names(&record), ["failures", "unsteady"]);
        record.streams[0].kinds[0].windows.clear();
        assert_eq!(names(&record), ["nothing-done"]);
    }
}
