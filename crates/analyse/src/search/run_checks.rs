//! Checks of a run for effects that distort it: a cache that served reads, a cap, burst credit that
//! ran out, stalls of all I/O, drift from beginning to end, and figures that stayed imprecise.
//!
//! Each is a [`Finding`] with its evidence and its hint. Findings about a single point are in that
//! point's summary.

use super::at_load::{AtLoad, reads_alone};
use super::credit::{burst_credit, ran_out};
use super::kernel_witness::contradicted;
use super::reread::RereadTest;
use super::shape::CurveShape;
use crate::figures::quantity::{count, mb_per_second, rounded_percent};
use crate::point::backlog::RateMet;
use crate::point::events::Events;
use crate::point::stalls::{StallExtent, StallsSeen};
use crate::point::summary::{ClassSummary, PointSummary};
use crate::point::visits::Variation;
use rigel_model::record::PointRecord;
use rigel_model::{Bytes, Coordinates, Figure, Finding, FindingName, Nanos, Ratio, Severity, Step};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::Limits;
use serde::Serialize;

/// Reads are from a cache if their median is below this fraction of the median over the whole
/// volume.
const FASTER: f64 = 0.7;

/// A second pass over the same blocks is faster than by chance if it is faster by this factor.
const SECOND_PASS: f64 = 1.3;

/// Fraction of large random reads that met a block which had been read, above which a cache of what was
/// read is in their figures.
const READ_AGAIN: f64 = 0.1;

/// Smallest difference between the same load early and late that is worth a warning.
const DRIFT: f64 = 0.05;

/// Minimum duration of a stalled operation, in microseconds.
const STALL_US: f64 = 20_000.0;

/// Minimum duration of a stalled operation, as a multiple of its point's p99: the tail of a busy
/// device does not reach that far.
const STALL_TIMES: f64 = 50.0;

/// The results of reading the same blocks again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct CacheTest {
    /// Megabytes (10^6) per second of the first pass over one part of the volume, in large
    /// sequential reads.
    pub first_pass_mb_per_s: Option<f64>,
    /// Megabytes (10^6) per second of the second pass.
    pub second_pass_mb_per_s: Option<f64>,
    /// True if a cache has what was just read, and large random reads met such blocks: nearly all reads
    /// of the second pass were faster than half of the first's.
    pub large_cached: bool,
    /// Median response time of random reads at depth 1, by working set, ascending by its size.
    pub working_sets: Vec<WorkingSet>,
    /// Median response time of random reads at depth 1 over the whole volume.
    pub whole_p50_us: Option<f64>,
    /// Bytes of the largest working set that a cache served; `None` if no set was faster than the
    /// whole volume.
    pub cache_at_least: Option<u64>,
    /// Bytes of the smallest larger working set, which no cache served; `None` if there was none.
    pub cache_below: Option<u64>,
    /// Parts that were read again after the sweep; `None` if no cache was suspected to hold all of
    /// the target.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reread: Option<RereadTest>,
}

/// Random reads within the first part of the volume.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct WorkingSet {
    /// Bytes of that part of the volume.
    pub bytes: u64,
    /// Median response time.
    pub p50_us: f64,
}

/// True if random reads within a part of the volume are so much faster than over the whole that a
/// cache must serve them.
pub fn answers_from_cache(part: &ClassSummary, whole: &ClassSummary) -> bool {
    // The median of a handful of operations means nothing.
    const OPERATIONS_MIN: u64 = 500;
    let median = |class: &ClassSummary| class.latency.map(|latency| latency.p50_us);
    let Some((fast, slow)) = median(part).zip(median(whole)) else {
        return false;
    };
    let interval = whole.confidence.and_then(|confidence| confidence.p50_us);
    let apart = interval.is_none_or(|interval| fast < interval.low);
    part.done.min(whole.done) >= OPERATIONS_MIN && apart && fast < FASTER * slow
}

/// True if many of the point's large random reads were of blocks that it had read before.
fn comes_back(point: &PointSummary) -> bool {
    let of_class = |class: &ClassSummary| {
        let coverage = &class.coverage;
        let again = 1.0 - coverage.distinct as f64 / class.done as f64;
        coverage.watched == coverage.blocks && again > READ_AGAIN
    };
    point.step() == Step::Large && point.classes.iter().any(of_class)
}

/// What to do about a cache that answered.
const LARGER_VOLUME: &str = "measure a volume many times as large as the cache, or as large as the \
                             active part of the database";

impl CacheTest {
    /// The cache test of a run; `points` are the summaries of `records`. Where credit ran out, a part may be
    /// faster than the whole since it was read before: then it shows no cache.
    pub fn of(records: &[PointRecord], points: &[PointSummary]) -> Self {
        let first = |at: Coordinates| {
            points
                .iter()
                .find(|point| point.coordinates == at)?
                .classes
                .first()
        };
        // A pass that completed no read before its time limit has no rate.
        let read = |class: &&ClassSummary| class.done > 0;
        let pass = |pass| {
            first(Coordinates::Pass { pass })
                .filter(read)
                .map(|class| class.bytes_per_s() / 1e6)
        };
        let whole = reads_alone(points);
        let mut sets: Vec<(u64, &ClassSummary)> = points
            .iter()
            .filter_map(|point| match point.coordinates {
                Coordinates::Within { bytes } => Some((bytes, point.classes.first()?)),
                _ => None,
            })
            .collect();
        sets.sort_by_key(|(bytes, _)| *bytes);
        let had_credit = burst_credit(records, points).is_some();
        let cached = |(_, set): &&(u64, &ClassSummary)| {
            !had_credit && whole.is_some_and(|whole| answers_from_cache(set, whole))
        };
        let cache_at_least = sets.iter().filter(cached).map(|(bytes, _)| *bytes).max();
        let p50 = |class: &ClassSummary| class.latency.map(|latency| latency.p50_us);
        let latency = |pass| first(Coordinates::Pass { pass })?.latency;
        let is_kept = latency(1)
            .zip(latency(2))
            .is_some_and(|(first, second)| second.p99_us < FASTER * first.p50_us);
        Self {
            first_pass_mb_per_s: pass(1),
            second_pass_mb_per_s: pass(2),
            large_cached: is_kept && points.iter().any(comes_back),
            whole_p50_us: whole.and_then(p50),
            cache_below: cache_at_least.and_then(|least| {
                sets.iter()
                    .map(|(bytes, _)| *bytes)
                    .filter(|bytes| *bytes > least)
                    .min()
            }),
            cache_at_least,
            reread: RereadTest::of(points),
            working_sets: sets
                .iter()
                .filter_map(|(bytes, class)| {
                    Some(WorkingSet {
                        bytes: *bytes,
                        p50_us: p50(class)?,
                    })
                })
                .collect(),
        }
    }

    fn warnings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let (Some(least), Some(whole)) = (self.cache_at_least, self.whole_p50_us) {
            let set = self.working_sets.iter().find(|set| set.bytes == least);
            let fast = set.map_or(0.0, |set| set.p50_us);
            let size = match self.cache_below {
                Some(below) => format!("a cache of {} to {}", Bytes(least), Bytes(below)),
                None => format!("a cache of {} or more", Bytes(least)),
            };
            findings.push(Finding::warning(
                FindingName::Cache,
                format!(
                    "random reads within the first {} take {} at the median, over the whole \
                     volume {}: {size} serves them",
                    Bytes(least),
                    Nanos::from_micros_f64(fast),
                    Nanos::from_micros_f64(whole)
                ),
                LARGER_VOLUME,
            ));
        }
        if let (Some(first), Some(second)) = (self.first_pass_mb_per_s, self.second_pass_mb_per_s)
            && second > SECOND_PASS * first
        {
            let passes = format!(
                "the first pass over one part ran at {}, the second over the same blocks at {}: a \
                 lower layer cached them",
                mb_per_second(first.round()),
                mb_per_second(second.round())
            );
            findings.push(if self.large_cached {
                Finding::warning(
                    FindingName::Cache,
                    format!("{passes}, and large random reads met blocks that had been read"),
                    LARGER_VOLUME,
                )
            } else {
                Finding {
                    severity: Severity::Note,
                    name: FindingName::SecondPass.name().into(),
                    what: passes,
                    hint: String::new(),
                    figure: None,
                }
            });
        }
        findings
    }
}

/// Warnings and notes about a run as a whole.
pub fn warnings(
    records: &[PointRecord],
    points: &[PointSummary],
    curve: &CurveShape,
    cache: &CacheTest,
    variation: Option<Variation>,
    precision: Ratio,
) -> Vec<Finding> {
    let mut findings = cache.warnings();
    // Credit that ran out is why visits differ.
    let credit = burst_credit(records, points);
    findings.extend(credit.or_else(|| variation.and_then(varied)));
    findings.extend(stalled(records, points));
    findings.extend(contradicted(points));
    findings.extend(capped(points, curve));
    findings.extend(drifted(points));
    findings.extend(
        [
            (Step::Depth, "small reads", Figure::MaxIops),
            (Step::Large, "large reads", Figure::MaxThroughput),
            (Step::Write, "writes", Figure::Writes),
        ]
        .map(|(step, name, figure)| Some(unreached(points, step, name)?.at(Some(figure))))
        .into_iter()
        .flatten(),
    );
    findings.extend(imprecise(points, precision));
    findings
}

/// Warnings and notes about a matrix as a whole: credit that ran out, stalls, and a cap of small
/// loads without large ones.
pub fn warnings_of_matrix(
    records: &[PointRecord],
    points: &[PointSummary],
    shape: &CurveShape,
) -> Vec<Finding> {
    ran_out(records)
        .into_iter()
        .chain(stalled(records, points))
        .chain(contradicted(points))
        .chain(capped(points, shape))
        .collect()
}

/// What to do about storage that stalled.
pub(crate) const SEE_THE_LOGS: &str = "find the time in the timeline of the HTML page, then see \
                                       the log of the kernel (dmesg) and of the device: a reset, a \
                                       path failover, a snapshot, another tenant";

/// Warns of stalls: of operations that took far longer than their point's p99, and of those that
/// the windows show.
pub fn stalled(records: &[PointRecord], points: &[PointSummary]) -> Option<Finding> {
    let in_windows = repeated(records, points);
    let what = match (longest(records, points), in_windows) {
        (Some(longest), Some(repeated)) => format!("{longest}; {repeated}"),
        (one, other) => one.or(other)?,
    };
    Some(Finding::warning(FindingName::Stall, what, SEE_THE_LOGS))
}

/// How often, how long and for what share of the time I/O stalled, over all points.
fn repeated(records: &[PointRecord], points: &[PointSummary]) -> Option<String> {
    let mut seen = StallsSeen::default();
    for point in points {
        // Where an offered rate is not served, times jump with its backlog.
        if let Some(class) = point
            .classes
            .first()
            .filter(|class| class.met != Some(RateMet::No))
        {
            // Nothing completed at all, where other loads show that it is no slow storage.
            let dead = worst_of(point, (records, points));
            let dead = dead.filter(|long| class.done == 0 && long.class.name == class.name);
            let stalls = dead.map(|long| Events::one(long.took_us / 1e6, point.measured_s));
            seen.add(&stalls.unwrap_or(class.stalls), point.measured_s);
        }
    }
    seen.in_words("point")
}

/// The longest of the operations that took far longer than their point's p99, and the number of
/// other points with such operations. Points of several ranks are judged with their hosts. What a cache
/// does not have takes as long as in the first pass over a part, and is no stall.
fn longest(records: &[PointRecord], points: &[PointSummary]) -> Option<String> {
    let mut stalls: Vec<_> = points
        .iter()
        .filter(|point| {
            // Nor does a point say anything of the storage in which this program did not run.
            let is_left_out =
                |record: &&PointRecord| record.merge.is_some() || record.has_suspensions();
            let mut of_ranks = records.iter().filter(is_left_out);
            of_ranks.all(|record| record.coordinates != point.coordinates)
        })
        .filter_map(|point| Some((worst_of(point, (records, points))?, point.coordinates)))
        .filter(|(long, at)| {
            at.step() != Step::Large
                || uncached_p99_us(points).is_none_or(|us| is_stalled(long.took_us, us))
        })
        .collect();
    stalls.sort_by(|(one, _), (other, _)| other.took_us.total_cmp(&one.took_us));
    let (long, at) = stalls.first()?;
    let record = records.iter().find(|record| record.coordinates == *at);
    let extent = record.map_or(StallExtent::Unknown, |record| {
        StallExtent::of(record, &long.class.name, long.took_us)
    });
    let place = if long.class.latency.is_some() {
        "there"
    } else {
        "of other loads"
    };
    let others = at_more_points(stalls.len() - 1);
    Some(format!(
        "at {at} an operation took {}, {:.0} times the p99 {place}{others}{}",
        Nanos::from_micros_f64(long.took_us),
        long.took_us / long.p99_us,
        extent.words()
    ))
}

/// The p99 of the first pass over a part of the volume, of which nothing was in a cache.
fn uncached_p99_us(points: &[PointSummary]) -> Option<f64> {
    let is_first = |point: &&PointSummary| point.coordinates == Coordinates::Pass { pass: 1 };
    let latency = points.iter().find(is_first)?.classes.first()?.latency?;
    Some(latency.p99_us)
}

/// The number of other points, in words.
pub(crate) fn at_more_points(count: usize) -> String {
    match count {
        0 => String::new(),
        1 => ", and at one more point".into(),
        more => format!(", and at {more} more points"),
    }
}

/// True if the longest operation took far longer than the p99.
pub(crate) fn is_stalled(max_us: f64, p99_us: f64) -> bool {
    max_us >= STALL_US && max_us >= STALL_TIMES * p99_us
}

/// An operation that took far longer than usual.
struct UnusualOperation<'a> {
    took_us: f64,
    p99_us: f64,
    class: &'a ClassSummary,
}

/// The longest of a point's operations that took far longer than its p99; or, if none completed, than
/// that of other loads of the run with operations as long in bytes.
fn worst_of<'a>(
    point: &'a PointSummary,
    (records, points): (&[PointRecord], &[PointSummary]),
) -> Option<UnusualOperation<'a>> {
    let of_class = |class: &'a ClassSummary| {
        let (took_us, p99_us) = match class.latency {
            Some(latency) => (latency.max_us, latency.p99_us),
            None => (
                outstanding_us(point, class, records)?,
                p99_of_others_us(class, points)?,
            ),
        };
        is_stalled(took_us, p99_us).then_some(UnusualOperation {
            took_us,
            p99_us,
            class,
        })
    };
    let long = point.classes.iter().filter_map(of_class);
    long.max_by(|one, other| one.took_us.total_cmp(&other.took_us))
}

/// How long the operations of a class of which none completed were outstanding.
fn outstanding_us(
    point: &PointSummary,
    class: &ClassSummary,
    records: &[PointRecord],
) -> Option<f64> {
    let is_here = |record: &&PointRecord| record.coordinates == point.coordinates;
    let stream = records.iter().find(is_here)?.stream(&class.name)?;
    Some(stream.longest() as f64 / 1e3)
}

/// The longest p99 of loads of operations as long in bytes.
fn p99_of_others_us(class: &ClassSummary, points: &[PointSummary]) -> Option<f64> {
    let classes = points.iter().flat_map(|point| &point.classes);
    let alike = classes.filter(|other| other.io_bytes == class.io_bytes);
    let p99 = alike.filter_map(|other| Some(other.latency?.p99_us));
    p99.max_by(f64::total_cmp)
}

/// True if throughput has a hard limit that a throttle sets. Then half of the I/Os are much faster
/// than the mean that Little's law gives, because they wait in turns; a busy device does not make
/// them wait in turns.
pub(crate) fn is_throttled(points: &[PointSummary], curve: &CurveShape) -> bool {
    const IN_TURNS: f64 = 0.5;
    let is_skewed = |depth| {
        let point = points.iter().find(|point| point.is_at_depth(depth));
        let latency = point.and_then(|point| point.classes.first()?.latency);
        latency.is_some_and(|latency| latency.p50_us < IN_TURNS * latency.mean_us)
    };
    // A device of which some operations are slow looks like that without a queue, too.
    curve.cap.is_some_and(|cap| is_skewed(cap.from)) && !is_skewed(1.0)
}

/// Notes a p99 far above the median with one outstanding read, where there is nothing to queue
/// behind.
pub(super) fn tail(low_load: AtLoad) -> Option<Finding> {
    const TIMES: f64 = 10.0;
    let times = low_load.p99_us.value / low_load.p50_us.value;
    (times >= TIMES).then(|| {
        let p99 = Nanos::from_micros_f64(low_load.p99_us.value);
        let what = format!(
            "at depth 1, 1 % of the reads take {p99} or longer, {times:.0} times the median"
        );
        Finding::note(FindingName::Tail, what)
    })
}

/// Notes the hard limit of throughput, and whether it looks like a throttle or a busy device.
fn capped(points: &[PointSummary], curve: &CurveShape) -> Option<Finding> {
    let cap = curve.cap?;
    let point = points.iter().find(|point| point.is_at_depth(cap.from))?;
    let latency = point.classes.first()?.latency?;
    let why = if is_throttled(points, curve) {
        format!(
            "half of the I/Os take {} or less, but the mean is {}: they wait for a throttle, not \
             for the device",
            Nanos::from_micros_f64(latency.p50_us),
            Nanos::from_micros_f64(latency.mean_us)
        )
    } else {
        "a configured limit, or all parts of the device in use".into()
    };
    let half = cap.interval.half_width() / cap.throughput;
    Some(Finding {
        severity: Severity::Note,
        name: FindingName::Cap.name().into(),
        what: format!(
            "throughput stays at {} IOPS (± {}) from depth {} to {}, and response time grows \
             in proportion: {why}",
            count(cap.throughput.round()),
            rounded_percent(half),
            cap.from,
            cap.to
        ),
        hint: "look for a matching limit: the volume's provisioned IOPS, the machine type's, a \
               cgroup's io.max"
            .into(),
        figure: None,
    })
}

/// Warns if the same load gave different rates early and late.
fn drifted(points: &[PointSummary]) -> Option<Finding> {
    let again = points.iter().find(|point| point.step() == Step::Again)?;
    let depth = again.coordinates.outstanding();
    let early = points
        .iter()
        .find(|point| point.coordinates.depth() == Some(depth))?;
    let rate = |point: &PointSummary| Some(point.classes.first()?.rate());
    let (before, after) = (rate(early)?, rate(again)?);
    after.differs_from(before, DRIFT).then(|| {
        Finding::warning(
            FindingName::Drift,
            format!(
                "depth {depth} gave {} IOPS at first and {} at the end: the storage changed \
                 during the run",
                count(before.value.round()),
                count(after.value.round())
            ),
            "measure again, at a quieter time, and compare the two runs with `rigel compare`",
        )
    })
}

/// Warns if throughput at the same load varied between visits by more than chance, or had states that
/// last.
pub fn varied(variation: Variation) -> Option<Finding> {
    let lasting = variation.lasting.map_or(0.0, |lasting| lasting.error);
    let what = if variation.is_significant() && variation.share > DRIFT {
        format!(
            "throughput at the same load varied by {} from visit to visit: the storage changed during \
             the run, and all intervals are wider for it",
            rounded_percent(variation.share)
        )
    } else if lasting > DRIFT {
        format!(
            "throughput had states that lasted, and changed by {} from one to the next: the storage \
             changed during the run, and the interval of max IOPS is wider for it",
            rounded_percent(lasting)
        )
    } else {
        return None;
    };
    Some(Finding::warning(
        FindingName::Drift,
        what,
        "measure again, at a quieter time, or longer with `--for 15min`",
    ))
}

/// Warns if throughput still rose at the maximum depth of a search.
fn unreached(points: &[PointSummary], step: Step, name: &str) -> Option<Finding> {
    const GAIN: f64 = 1.02;
    let of_step = points.iter().filter(|point| point.step() == step);
    let mut loads: Vec<(u32, Estimate)> = of_step
        .filter_map(|point| {
            Some((
                point.coordinates.outstanding(),
                point.classes.first()?.rate(),
            ))
        })
        .collect();
    loads.sort_by_key(|(depth, _)| *depth);
    let [.., (_, before), (depth, last)] = loads[..] else {
        return None;
    };
    // The depths of a curve are the user's; only a calibration has large reads of their own.
    if points.iter().all(|point| point.step() != Step::Large) {
        return None;
    }
    let both = |one: Estimate| one.interval.and_then(Limits::both);
    let by_chance = both(before)
        .zip(both(last))
        .is_some_and(|(before, last)| before.overlaps(last));
    let options = match step {
        Step::Write => "--mix write=100 ",
        Step::Large => "--size 1MiB ",
        _ => "",
    };
    (last.value > GAIN * before.value && !by_chance).then(|| {
        let beyond = format!(
            "measure higher depths: `rigel curve TARGET {options}--depth {depth}..{}`",
            8 * depth
        );
        Finding::warning(
            FindingName::NotReached,
            format!(
                "throughput of {name} was still rising at depth {depth}, the maximum tried: the \
                 limit is higher"
            ),
            beyond,
        )
    })
}

/// Notes points whose figures are less precise than requested.
fn imprecise(points: &[PointSummary], precision: Ratio) -> Option<Finding> {
    let precision_of = |point: &PointSummary| {
        let reaches = matches!(
            point.step(),
            Step::Depth | Step::Large | Step::Stream | Step::Write | Step::Again
        );
        let class = point.classes.first().filter(|_| reaches)?;
        class
            .rate()
            .precision()
            .map(|known| (known, point.coordinates))
    };
    let mut wide: Vec<_> = points
        .iter()
        .filter_map(precision_of)
        .filter(|(half, _)| half.is_finite() && *half > precision.get())
        .collect();
    wide.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let (worst, at) = *wide.first()?;
    let (asked, worst) = (rounded_percent(precision.get()), rounded_percent(worst));
    let what = match wide.len() {
        1 => format!("one point missed the requested precision of {asked}: {worst} ({at})"),
        many => format!(
            "{many} points missed the requested precision of {asked}, the worst with {worst} \
             ({at})"
        ),
    };
    Some(Finding {
        severity: Severity::Note,
        name: FindingName::Precision.name().into(),
        what,
        hint: "give a point more time with --point-max, or measure when the storage has less \
               other load"
            .into(),
        figure: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::summary::summarise;

    /// A closed loop, of which one operation took five seconds while windows were as given.
    fn with_a_long_operation(windows_are_empty: bool) -> PointRecord {
        let mut record = crate::examples::sessions(Ratio::ZERO);
        let windows = &mut record.streams[0].kinds[0].windows;
        for window in windows.iter_mut() {
            (window.response.min, window.response.max) = (40_000_000, 40_000_000);
        }
        let count = if windows_are_empty { 4 } else { 1 };
        for _ in 0..count {
            windows[2].done += 1;
            windows[2].response.record(Nanos::from_secs(5));
        }
        if windows_are_empty {
            windows[3..7].fill(rigel_model::record::Window::default());
        }
        record
    }

    #[test]
    fn all_io_stalled_only_if_no_other_operation_completed() {
        let text = |record: PointRecord| {
            let summary = summarise(&record);
            longest(&[record], &[summary]).unwrap()
        };
        let all = text(with_a_long_operation(true));
        assert!(all.ends_with(": all I/O stalled"), "{all}");
        let alone = text(with_a_long_operation(false));
        assert!(alone.ends_with(": others completed meanwhile"), "{alone}");
        // Sessions that pause had nothing outstanding, perhaps.
        let mut pausing = with_a_long_operation(false);
        pausing.streams[0].sql.as_mut().unwrap().think = Some(rigel_model::Think {
            every: 1,
            least: Nanos(1),
            most: Nanos(1),
        });
        let unknown = text(pausing);
        assert!(unknown.ends_with("times the p99 there"), "{unknown}");
    }
}
