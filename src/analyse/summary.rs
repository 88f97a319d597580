//! What a data point showed: rates, latencies with their bands, steadiness, coverage, and what to doubt.
//!
//! Everything is computed from the record, again whenever it is asked for. Names carry their unit; MB are 10^6 bytes,
//! MiB 2^20.

use super::confidence::{Confidence, Estimate, Within};
use super::imported::Told;
use super::sql::SqlSummary;
use super::steady::{Steady, steady};
use crate::model::{Bound, Coordinates, Counters, Finding, Kind, Load, MIB, Nanos, Pattern, Sample, Step, Until};
use crate::record::{End, Latencies, PointRecord, StreamRecord};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;

/// What one point showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PointSummary {
    /// What it tried, and at which load.
    #[serde(flatten)]
    pub coordinates: Coordinates,
    /// How it ended.
    pub end: End,
    /// Wall-clock time of its beginning.
    pub started: String,
    /// How long it ran before measuring began.
    pub warm_up_s: f64,
    /// How long it was measured.
    pub measured_s: f64,
    /// CPU time of this process for each operation, user and system; none if nothing was done, and of an open loop,
    /// whose thread stays awake for the next operation.
    pub cpu_us_per_io: Option<f64>,
    /// By class.
    pub classes: Vec<ClassSummary>,
    /// What the kernel counted on the devices below meanwhile; none where it cannot be told.
    pub witness: Option<Witness>,
    /// What the sessions of a database did; none for raw I/O.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sql: Option<Box<SqlSummary>>,
    /// What is doubtful.
    pub findings: Vec<Finding>,
}

/// What one class of operations showed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClassSummary {
    /// The class, such as `small`.
    pub name: String,
    /// Bytes of one operation.
    pub io_bytes: u32,
    /// Operations kept outstanding by closed loops.
    pub outstanding: u32,
    /// Operations done.
    pub done: u64,
    /// Of those, reads.
    pub reads: u64,
    /// Of those, writes.
    pub writes: u64,
    /// Operations that failed, by cause.
    pub failed: BTreeMap<String, u64>,
    /// Operations that were due and never started.
    pub unserved: u64,
    /// Operations due a second, in an open loop: done, failed and unserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<f64>,
    /// Whether what was offered was met, in an open loop: what never began is no more than what could be in flight, and
    /// no more than a hundredth of what was due. So much may wait at any moment, the last of the measurement too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub met: Option<bool>,
    /// Operations done a second.
    pub iops: f64,
    /// 2^20 bytes a second.
    pub mib_per_s: f64,
    /// Response times; none if nothing was done.
    #[serde(flatten)]
    pub latency: Option<LatencySummary>,
    /// How well the figures are known; none where the windows are too few to tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<Confidence>,
    /// From issued to done, in an open loop: what the target took, without the time that operations waited to be
    /// issued.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<LatencySummary>,
    /// In an open loop, from due, with a free slot, to issued: what the tool added.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_delay: Option<LatencySummary>,
    /// How the response times stand to the bound that was asked about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// Rate times mean response time: by Little's law, the operations outstanding.
    pub littles_law: f64,
    /// SNIA's judgement on the seconds; none if they are too few.
    pub steady: Option<Steady>,
    /// Which blocks were touched.
    pub coverage: CoverageSummary,
    /// What another tool tells of it; none of what Rigel measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<Told>,
}

/// Response times in microseconds. A quantile lies within 0.4 % of the figure: half the width of a bucket.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatencySummary {
    /// Mean.
    pub mean_us: f64,
    /// Standard deviation.
    pub deviation_us: f64,
    /// Least.
    pub min_us: f64,
    /// Median.
    pub p50_us: f64,
    /// 90 % are not slower.
    pub p90_us: f64,
    /// 99 % are not slower.
    pub p99_us: f64,
    /// 99.9 % are not slower.
    pub p999_us: f64,
    /// Greatest.
    pub max_us: f64,
}

/// Which blocks of the volume a class touched, warm-up included.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CoverageSummary {
    /// Blocks in the volume.
    pub blocks: u64,
    /// Blocks watched one by one: all of them, up to 2^26.
    pub watched: u64,
    /// Distinct watched blocks touched.
    pub distinct: u64,
    /// Distinct blocks that as many uniform draws touch: `M (1 - e^(-N/M))`; none for other patterns.
    pub expected: Option<f64>,
    /// Standard deviation of that.
    pub expected_deviation: Option<f64>,
    /// Slices of the volume, of 33 to 64, in which something was touched.
    pub slices_touched: usize,
    /// Slices in all.
    pub slices: usize,
}

/// What the kernel counted against what was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Witness {
    /// Bytes the devices transferred between the first sample and the last.
    pub device_bytes: u64,
    /// Bytes of the operations done meanwhile, warm-up included.
    pub asked_bytes: u64,
}

/// Shares by which the kernel's count may differ from ours before it is worth a word.
const WITNESS_TOLERANCE: f64 = 0.02;

/// Standard deviations by which coverage may differ from theory: chance exceeds six once in 500 million.
const COVERAGE_TOLERANCE: f64 = 6.0;

/// Share of the CPU time there is beyond which the CPU is the limit.
const CPU_TOLERANCE: f64 = 0.95;

/// Share of the median response time by which one in a hundred operations may be issued late.
const DELAY_TOLERANCE: f64 = 0.5;

/// Range of an open loop's mean response times, from second to second, as a share of their mean, that is worth a word.
const RESPONSE_RANGE: f64 = 3.0;

/// Microseconds of lateness that no storage is fast enough to mind.
const DELAY_LEAST_US: f64 = 10.0;

/// Share by which Little's law may be off.
const LITTLE_TOLERANCE: f64 = 0.01;

impl PointSummary {
    /// What the point tried.
    #[must_use]
    pub fn step(&self) -> Step {
        self.coordinates.step()
    }

    /// True for the closed loop of this many small I/Os, a depth as analysis has it.
    #[must_use]
    pub fn is_at_depth(&self, load: f64) -> bool {
        let depth = self.coordinates.depth().or(self.coordinates.small_alone());
        depth.is_some_and(|depth| (f64::from(depth) - load).abs() < 0.5)
    }
}

impl ClassSummary {
    /// Operations done a second, with their interval. None of an offered load that was not met: its windows tell of
    /// when operations were due, and those due last were never served, so they are no samples of one rate.
    #[must_use]
    pub fn rate(&self) -> Estimate {
        let known = self.confidence.filter(|_| self.met != Some(false));
        Estimate { value: self.iops, interval: known.map(|confidence| confidence.iops.interval().into()) }
    }

    /// True for a load that was met without failures, and within the bound on response time if one was asked about.
    #[must_use]
    pub fn sustained(&self) -> bool {
        self.met != Some(false) && self.failed.is_empty() && self.within.is_none_or(|within| within.kept)
    }
}

/// Sums up a point.
#[must_use]
pub fn summarise(record: &PointRecord) -> PointSummary {
    summarise_within(record, None)
}

/// Sums up a point, and says whether its response times keep `bound`.
#[must_use]
pub fn summarise_within(record: &PointRecord, bound: Option<Bound>) -> PointSummary {
    let classes: Vec<ClassSummary> = record.streams.iter().map(|stream| class(stream, record, bound)).collect();
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
    findings.extend(sql.iter().flat_map(|sql| super::sql::warnings(sql, &record.coordinates.to_string())));
    PointSummary {
        coordinates: record.coordinates,
        end: record.end.clone(),
        started: record.started.clone(),
        warm_up_s: record.warm_up.as_secs_f64(),
        measured_s: record.measured.as_secs_f64(),
        cpu_us_per_io: (done > 0 && !is_open(record)).then(|| record.cpu.as_micros_f64() / done as f64),
        classes,
        witness,
        sql,
        findings,
    }
}

/// True if some stream has due times of its own.
fn is_open(record: &PointRecord) -> bool {
    record.streams.iter().flat_map(|stream| &stream.loads).any(|load| matches!(load, Load::Open { .. }))
}

fn class(stream: &StreamRecord, record: &PointRecord, bound: Option<Bound>) -> ClassSummary {
    let (total, measured) = (stream.total(), record.measured);
    let seconds = measured.as_secs_f64();
    let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let done_of = |kind| {
        let windows = stream.kinds.iter().filter(|record| record.kind == kind).flat_map(|record| &record.windows);
        windows.map(|window| window.done).sum::<u64>()
    };
    let iops = rate(total.done as f64);
    let blocks: u64 = match stream.sql {
        None => total.done,
        Some(work) => stream.kinds.iter().map(|kind| kind.total().done * work.blocks(kind.kind)).sum(),
    };
    let latency = latency(&total.response);
    let unserved = stream.unserved.iter().sum();
    let open = stream.loads.iter().any(|load| matches!(load, Load::Open { .. }));
    let in_flight: u64 = stream.loads.iter().map(|load| u64::from(load.slots())).sum();
    let due = total.done + total.failures() + unserved;
    let closed = |load: &Load| if let Load::Closed { depth } = load { *depth } else { 0 };
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
        within: bound.map(|bound| Within::of(&total.response.histogram, unserved + total.failures(), bound)),
        steady: steady(&if open { response_spans(stream, record) } else { spans(stream, record) }),
        coverage: coverage(stream),
        told: None,
        failed: total.failed,
    }
}

/// True if the queue of an open loop grew throughout: more than a hundredth of what was due ended after the
/// measurement, and what was due late took half as long again as what was due early; or half of all did.
fn is_outrun(stream: &StreamRecord, record: &PointRecord, due: u64) -> bool {
    const GROWTH: f64 = 1.5;
    let whole = record.whole_windows();
    let mut late = 0;
    for at in 0..whole {
        // What was due in a window and took longer than from its beginning to the end has certainly ended after that.
        let left = record.measured.since(Nanos(record.window.0 * at as u64));
        let of_window = stream.windows_at(at).flat_map(|window| window.response.histogram.buckets());
        late += of_window.filter(|(low, ..)| *low > left.0).map(|(.., count)| count).sum::<u64>();
    }
    let mean = |windows: Range<usize>| {
        let (sum, count) = responses(stream, windows);
        sum as f64 / count.max(1) as f64
    };
    late > due / 2 || late > due / 100 && mean(whole * 3 / 4..whole) > GROWTH * mean(0..whole / 4)
}

/// The response times in these windows: their sum in nanoseconds, and how many they are.
fn responses(stream: &StreamRecord, windows: Range<usize>) -> (u64, u64) {
    windows
        .flat_map(|at| stream.windows_at(at))
        .fold((0, 0), |(sum, count), window| (sum + window.response.sum, count + window.response.histogram.count()))
}

/// Mean response time in each span, in nanoseconds: what tells whether an open loop was steady, since throughput there
/// is what was offered.
fn response_spans(stream: &StreamRecord, record: &PointRecord) -> Vec<u64> {
    let mean = |windows| {
        let (sum, count) = responses(stream, windows);
        sum / count.max(1)
    };
    whole_spans(record).map(mean).collect()
}

/// Operations done in each span.
fn spans(stream: &StreamRecord, record: &PointRecord) -> Vec<u64> {
    let done = |windows: Range<usize>| windows.flat_map(|at| stream.windows_at(at)).map(|window| window.done).sum();
    whole_spans(record).map(done).collect()
}

/// The windows of each span that was measured to its end: of each second, or of each fifth of a measurement that was
/// shorter than five.
fn whole_spans(record: &PointRecord) -> impl Iterator<Item = Range<usize>> {
    const SECOND: u64 = 1_000_000_000;
    let in_a_second = usize::try_from(SECOND / record.window.0.clamp(1, SECOND)).expect("windows of a second fit");
    let whole = record.whole_windows();
    let width = in_a_second.min((whole / 5).max(1));
    (0..whole / width).map(move |span| span * width..(span + 1) * width)
}

/// What latencies are in sum; none if there are none.
#[must_use]
pub fn latency(latencies: &Latencies) -> Option<LatencySummary> {
    let Latencies { histogram, sum, sum_squares, min, max } = latencies;
    let count = histogram.count();
    if count == 0 {
        return None;
    }
    let mean = *sum as f64 / count as f64;
    let quantile = |q| {
        let band = histogram.quantile(q).map_or(0.0, crate::record::Band::middle);
        // The extremes are known exactly, and no quantile lies outside them. (`clamp` panics on a damaged record.)
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
    // A database's operation visits a range of rows, which makes neighbours of independent draws.
    let uniform = stream.sql.is_none() && stream.patterns.iter().all(|pattern| *pattern == Pattern::Uniform);
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
fn witness(record: &PointRecord, classes: &[ClassSummary]) -> Option<Witness> {
    let (first, last) = (record.samples.first()?, record.samples.last()?);
    let bytes = |sample: &Sample, of: fn(&Counters) -> u64| sample.devices.values().map(of).sum::<u64>() * 512;
    let sectors = |counters: &Counters| counters.read_sectors + counters.write_sectors;
    // What a database reads is told apart from what it was asked for by what it counts itself.
    if first.devices.is_empty() || record.streams.iter().any(|stream| stream.sql.is_some()) {
        return None;
    }
    let asked = record.streams.iter().zip(classes);
    let asked = asked.map(|(stream, class)| (class.done + stream.warm_up_done) * u64::from(stream.length));
    Some(Witness { device_bytes: bytes(last, sectors).saturating_sub(bytes(first, sectors)), asked_bytes: asked.sum() })
}

fn check_class(class: &ClassSummary, record: &PointRecord, findings: &mut Vec<Finding>) {
    let cell = format!("{} I/O at {}", class.name, record.coordinates);
    if !class.failed.is_empty() {
        let causes: Vec<String> = class.failed.iter().map(|(cause, count)| format!("{count} x {cause}")).collect();
        findings.push(Finding::warning(
            "failures",
            format!("{cell}: {} failed; the figures are of the others", causes.join(", ")),
            "see the kernel's log (dmesg) and the device's own",
        ));
    }
    check_offered(class, &cell, findings);
    if class.done == 0 && class.failed.is_empty() && class.outstanding > 0 {
        findings.push(Finding::warning(
            "nothing-done",
            format!("{cell}: nothing was done in {:.1} s", record.measured.as_secs_f64()),
            "measure longer: an operation takes longer than the measurement",
        ));
    }
    // Of a rate that was not met the operations due last were never served, which says nothing of steadiness.
    // Response times near the limit vary more than SNIA allows throughput to: only a queue that comes and goes is told.
    let tolerated = |steady: &Steady| steady.steady || class.offered.is_some() && steady.range < RESPONSE_RANGE;
    if let Some(steady) = class.steady.filter(|steady| !tolerated(steady) && class.met != Some(false)) {
        findings.push(Finding::warning(
            "unsteady",
            format!(
                "{cell} was not steady: {} ranged over {:.0} % of its mean, and {}",
                if class.offered.is_some() { "response time" } else { "throughput" },
                steady.range * 100.0,
                trend(steady.slope)
            ),
            "measure longer, or when the device has less other work",
        ));
    }
    if !class.failed.is_empty() || class.done == 0 {
        // What failed took its time and its place in the pattern, and is in none of the figures below.
        return;
    }
    if let (Some(expected), Some(deviation)) = (class.coverage.expected, class.coverage.expected_deviation) {
        let off = class.coverage.distinct as f64 - expected;
        if off.abs() > COVERAGE_TOLERANCE * deviation.max(1.0) {
            findings.push(Finding::warning(
                "coverage",
                format!("{cell} touched {} distinct blocks, and chance says {expected:.0}", class.coverage.distinct),
                "report this: the volume was not read as it should be",
            ));
        }
    }
    let outstanding = f64::from(class.outstanding);
    let off = (class.littles_law - outstanding).abs();
    // Operations in flight at the edges are counted whole or not at all, and what stalls there may last long: the
    // longest operation is what the time of each place may be off by.
    let edge = class.latency.map_or(f64::INFINITY, |latency| latency.max_us / 1e6 / record.measured.as_secs_f64());
    // What was due before the measurement and held up its beginning is in none of its windows.
    let stream = record.streams.iter().find(|stream| stream.name == class.name);
    let idle = |at: &usize| stream.is_some_and(|stream| stream.windows_at(*at).all(|window| window.done == 0));
    let whole = record.whole_windows();
    let edge = edge + (0..whole).take_while(idle).count() as f64 / whole.max(1) as f64;
    // Sessions that pause, and those through with their share of fixed work before others, have nothing outstanding.
    let pauses = stream.and_then(|stream| stream.sql).is_some_and(|work| work.think.is_some())
        || record.asked.as_ref().is_some_and(|point| matches!(point.until, Until::Ops(_) | Until::Work { .. }));
    let off = if pauses { (class.littles_law - outstanding).max(0.0) } else { off };
    if record.end == End::Complete && outstanding > 0.0 && off > (LITTLE_TOLERANCE + edge) * outstanding {
        findings.push(Finding::warning(
            "littles-law",
            format!("{cell}: rate times latency is {:.2}, and {outstanding} were outstanding", class.littles_law),
            "report this: one of the three figures is wrong",
        ));
    }
}

/// A slope over the mean, in words. A fall by more than the mean is no percentage that a reader can make sense of.
fn trend(slope: f64) -> String {
    let word = if slope < 0.0 { "fell" } else { "rose" };
    if slope.abs() <= 1.0 {
        return format!("{word} by {:.0} % from beginning to end", slope.abs() * 100.0);
    }
    let [first, last] = [-0.5, 0.5].map(|side| (1.0 + side * slope).max(0.0));
    format!("{word} from {first:.1} times its mean to {last:.1} times")
}

/// An offered load that was not served, and a tool that was late itself.
fn check_offered(class: &ClassSummary, cell: &str, findings: &mut Vec<Finding>) {
    let Some(offered) = class.offered else { return };
    if class.met == Some(false) {
        findings.push(Finding::note(
            "rate-not-met",
            format!(
                "{cell}: of {offered:.0} a second that were due, {:.0} were served; {} of them never began",
                class.iops, class.unserved
            ),
        ));
    }
    let medians = class.scheduling_delay.zip(class.latency);
    if let Some((delay, response)) =
        medians.filter(|(delay, response)| delay.p99_us > (DELAY_TOLERANCE * response.p50_us).max(DELAY_LEAST_US))
    {
        findings.push(Finding::warning(
            "scheduling-delay",
            format!(
                "{cell}: Rigel itself issued one I/O in a hundred {:.0} us late or more, beside a median response of \
                 {:.0} us",
                delay.p99_us, response.p50_us
            ),
            "leave it more CPU; the service times are without it",
        ));
    }
}

/// A tool that has no CPU left measures itself.
fn cpu_warning(record: &PointRecord) -> Option<Finding> {
    let available = record.measured.as_secs_f64() * f64::from(record.cpus);
    let busy = record.cpu.as_secs_f64() / available;
    // A thread that stays awake for what is due next is busy by its own will.
    // Nor is a model's time the CPU's: no samples of the host are taken beside it.
    let real = !record.samples.is_empty();
    (real && available > 0.0 && busy > CPU_TOLERANCE && !is_open(record)).then(|| {
        Finding::warning(
            "cpu-limit",
            format!(
                "at {} Rigel's own threads kept {} of the CPUs busy for {:.0} % of the time: the storage may do more",
                record.coordinates,
                record.cpus,
                busy * 100.0
            ),
            "give it more with --workers, if there are more CPUs; else take the figures as what this machine can ask for",
        )
    })
}

fn witness_warning(witness: Witness, cell: Coordinates) -> Option<Finding> {
    let (device, asked) = (witness.device_bytes as f64, witness.asked_bytes as f64);
    if asked <= 0.0 {
        return None;
    }
    let share = device / asked;
    if share < 1.0 - WITNESS_TOLERANCE {
        return Some(Finding::warning(
            "not-from-device",
            format!(
                "at {cell} the device transferred {:.1} % of the bytes; the rest came from somewhere else",
                share * 100.0
            ),
            "a cache, a hole or another layer answered: measure a file that is written, with direct I/O",
        ));
    }
    (share > 1.0 + WITNESS_TOLERANCE).then(|| {
        Finding::warning(
            "other-load",
            format!(
                "at {cell} the device transferred {:.1} % of the bytes asked for: it has other work",
                share * 100.0
            ),
            "measure when the device is otherwise idle, or take the figures as what is left beside that work",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Coordinates, Outcome, SqlWork, Tables, Think};
    use crate::record::{Coverage, CoverageMap, KindRecord, Recorder, Times, Window};

    #[test]
    fn no_trend_is_told_as_a_fall_by_more_than_there_was() {
        assert_eq!(trend(-0.4), "fell by 40 % from beginning to end");
        assert_eq!(trend(-1.36), "fell from 1.7 times its mean to 0.3 times");
        assert_eq!(trend(2.6), "rose from 0.0 times its mean to 2.3 times");
    }

    /// A point of 10 s in which one operation after the other took 1 ms, on every block of a small volume in turn.
    fn record() -> PointRecord {
        let mut recorder = Recorder::new(false, &[Kind::Read], std::sync::Arc::default());
        recorder.measure_from(Nanos(0));
        let map = CoverageMap::new(100);
        for i in 0..10_000 {
            let due = Nanos::from_millis(i);
            let done = due.plus(Nanos::from_millis(1));
            recorder.record(Kind::Read, Times { due, start: due, done }, Outcome::Done);
            map.touch(i % 100);
        }
        let mut stream = StreamRecord {
            sql: None,
            name: "small".into(),
            length: 8192,
            loads: vec![Load::Closed { depth: 1 }],
            patterns: vec![Pattern::Uniform],
            kinds: vec![KindRecord { kind: Kind::Read, windows: Vec::new() }],
            unserved: Vec::new(),
            delay: None,
            warm_up_done: 0,
            coverage: map.read(),
        };
        recorder.pour_into(&mut stream);
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
        summarise(record).findings.into_iter().map(|finding| finding.name).collect()
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
        // All alike: every figure is the same, exactly.
        for figure in [latency.mean_us, latency.min_us, latency.p50_us, latency.p999_us, latency.max_us] {
            assert!((figure - 1000.0).abs() < 1e-9, "{latency:?}");
        }
        assert!(latency.deviation_us < 1e-3);
        assert_eq!(class.steady.map(|steady| steady.steady), Some(true));
        assert_eq!(names(&record()), Vec::<String>::new());
    }

    #[test]
    fn a_corner_of_the_volume_is_no_coverage() {
        let mut record = record();
        record.streams[0].coverage = Coverage { distinct: 10, ..record.streams[0].coverage.clone() };
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
        let tables = Tables { schemas: 1, scale: 10_000, scan_blocks: 0, block: 8192 };
        let think = Some(Think { every: 1, least: Nanos(1), most: Nanos(1) });
        let mut record = record();
        record.streams[0].sql = Some(SqlWork { think, ..SqlWork::reads(tables) });
        record.streams[0].loads = vec![Load::Closed { depth: 2 }];
        assert!(!names(&record).contains(&"littles-law".to_string()));
        record.streams[0].kinds[0].windows.iter_mut().for_each(|window| window.response.sum *= 4);
        assert!(names(&record).contains(&"littles-law".to_string()));
    }

    #[test]
    fn a_stall_at_the_edge_is_no_contradiction() {
        let mut record = record();
        let latencies = &mut record.streams[0].kinds[0].windows[9].response;
        // The last of ten thousand operations took 200 ms: most of that lies past the end.
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
            devices: [("sda".to_string(), Counters { read_sectors: sectors, ..Counters::default() })].into(),
            ..Sample::default()
        };
        let mut record = record();
        record.samples = vec![sample(1000), sample(1000 + 10_000 * 16)];
        assert_eq!(names(&record), Vec::<String>::new());
        record.samples[1] = sample(1000 + 5_000 * 16);
        assert_eq!(names(&record), ["not-from-device"]);
        record.samples[1] = sample(1000 + 15_000 * 16);
        assert_eq!(names(&record), ["other-load"]);
    }

    #[test]
    fn a_tool_without_cpu_to_spare_is_doubted() {
        let mut record = record();
        record.cpu = Nanos::from_millis(9800);
        // On virtual time there are no samples, and no CPU that could be short.
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
        record.streams[0].kinds[0].windows[3].failed.insert("short transfer".into(), 7);
        assert_eq!(names(&record), ["failures", "unsteady"]);
        record.streams[0].kinds[0].windows.clear();
        assert_eq!(names(&record), ["nothing-done"]);
    }
}
