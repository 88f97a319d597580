//! The token buckets of storage that is sold by rate: how many operations or bytes it lends, and how fast it
//! takes them back.
//!
//! Input: records of reads at the knee, each after a pause of known length, while no credit was left. Output:
//! the rate that lasts, the credit that a second of pause brings back, and the most that comes back.
//!
//! What came back in a pause is what was done after it beyond the rate that lasts, if it was read until that
//! rate was reached again.

use super::at_load::AtLoad;
use super::credit::{STEP, STEP_DEVIATIONS, counts};
use crate::figures::quantity::count;
use crate::point::summary::PointSummary;
use rigel_model::record::PointRecord;
use rigel_model::{Finding, FindingName, Nanos, Step};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{Level, Limits, Mean};
use serde::Serialize;

/// A pause brought back all if it brought less than this part of what its longer time lets expect.
const ALL: f64 = 0.6;

/// Less than this part of what lasts, per second of pause, is no credit.
const SOME: f64 = 0.2;

/// Shares of the rate that the pauses tell may differ by this much.
const ALIKE: f64 = 0.2;

/// Pauses of which nothing came back end the search.
const PAUSES_IN_VAIN: usize = 2;

/// Part of a record, at its end, in which what came back is used up.
const END: usize = 3;

/// By how much single measurements of large reads vary where there is no credit.
pub const LARGE_VARIES: f64 = 1.3;

/// True if these rates, each of what lasts, may be one.
pub fn is_same_rate(one: f64, other: f64) -> bool {
    (one / other - 1.0).abs() < ALIKE / 2.0
}

/// What a measurement did.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Operations per second.
    pub per_s: f64,
    /// Number of operations.
    pub count: f64,
}

impl Pace {
    /// True if a fall from `fast` to this pace is more than chance, and one that pauses may undo.
    pub fn is_worth_pausing(self, fast: Self) -> bool {
        let chance = (1.0 / fast.count + 1.0 / self.count).sqrt();
        let least = STEP.ln() + STEP_DEVIATIONS * chance;
        self.per_s > 0.0 && (fast.per_s / self.per_s).ln() >= least
    }
}

/// What came back in a pause.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Regained {
    /// Length of the pause in seconds.
    pub paused: f64,
    /// Operations beyond the rate that lasts.
    pub operations: f64,
}

impl Regained {
    /// True if the last of these pauses brought back all: little more than the shorter one before it, where
    /// `slow` lasts, which is also what a bucket gets back in a second.
    pub fn is_all(pauses: &[Self], slow: f64) -> bool {
        match pauses {
            [.., before, last] => {
                let more = last.operations - before.operations;
                before.operations > 0.0 && more < ALL * slow * (last.paused - before.paused)
            }
            _ => false,
        }
    }

    /// True if nothing comes back, where `slow` lasts.
    pub fn is_none(pauses: &[Self], slow: f64) -> bool {
        let is_none = |one: &Self| one.operations < SOME * slow * one.paused;
        pauses.len() >= PAUSES_IN_VAIN && pauses.iter().all(is_none)
    }
}

/// A token bucket of operations.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TokenBucket {
    /// Operations per second without credit.
    pub sustained_per_s: Estimate,
    /// Operations of credit that a second of pause brings back.
    pub refill_per_s: Estimate,
    /// Operations of credit at most; without an upper end if the longest pause did not bring back all.
    pub burst: Estimate,
}

impl TokenBucket {
    /// The bucket that these records of small or `large` reads show; `None` if they show none.
    pub fn of(records: &[PointRecord], large: bool) -> Option<Self> {
        let records: Vec<&PointRecord> = refills(records, large).collect();
        let before = std::iter::once(None).chain(records.iter().map(|record| Some(*record)));
        let refills: Vec<Refill> = records
            .iter()
            .zip(before)
            .filter_map(|(record, before)| Refill::of(record, before))
            .collect();
        let (drains, pauses): (Vec<&Refill>, Vec<&Refill>) =
            refills.iter().partition(|one| one.paused <= 0.0);
        let drained = drains.last().filter(|_| pauses.len() >= 2)?;
        let lasts = drained.end_rate();
        // Only ends without credit tell what lasts.
        let ends = pauses.iter().filter(|one| one.end_rate() <= STEP * lasts);
        let ends = ends.flat_map(|one| one.end());
        let all: Vec<f64> = drained.end().iter().chain(ends).copied().collect();
        let mean = Mean::of_batches(&all)?.scaled(1.0 / drained.window_s);
        let slow = mean.value;
        let is_used_up = |one: &&&Refill| one.end_rate() <= STEP * slow;
        let error_of = |one: &Refill| mean.error * one.seconds();
        let regained = |one: &Refill| Regained {
            paused: one.paused,
            // The pause is not quite one.
            operations: one.done() - slow * one.seconds() + one.paused,
        };
        let known: Vec<(Regained, f64)> = pauses
            .iter()
            .filter(is_used_up)
            .map(|one| (regained(one), error_of(one)))
            .collect();
        let found: Vec<Regained> = known.iter().map(|(one, _)| *one).collect();
        let is_full = Regained::is_all(&found, slow);
        let (most, error) = *known.last()?;
        // Pauses that brought back all say nothing of how fast.
        let is_part = |one: &Regained| !is_full || one.operations < 0.9 * most.operations;
        let parts: Vec<Regained> = found.into_iter().filter(is_part).collect();
        let line = RefillLine::through(&parts)?;
        let refill = line.per_s;
        let is_alike = |one: &Regained| line.missed(one).abs() < ALIKE * refill * one.paused;
        let is_one = refill > SOME * slow && parts.iter().all(is_alike);
        let is_certain = most.operations > 4.0 * error;
        let errors = Level::ONE_LOOK.errors(mean.degrees, mean.effective_n);
        let around = |value: f64, error: f64| Limits {
            low: (value - errors * error).max(0.0),
            high: Some(value + errors * error),
        };
        (is_one && is_certain).then(|| {
            let longest = parts.iter().map(|one| one.paused).fold(0.0, f64::max);
            let of_refill = line.error(&parts).max(error / longest.max(1.0));
            // What was read in a pause after which the bucket was full is not missing in it.
            let lent = most.operations - if is_full { most.paused } else { 0.0 };
            let burst = around(lent, error);
            Self {
                sustained_per_s: Estimate::new(slow, Some(mean.limits())).with_least_error(),
                refill_per_s: Estimate::new(refill, Some(around(refill, of_refill)))
                    .with_least_error(),
                burst: Estimate::new(
                    lent,
                    Some(Limits {
                        high: burst.high.filter(|_| is_full),
                        ..burst
                    }),
                )
                .with_least_error(),
            }
        })
    }

    /// `2,000 reads/s sustained, 6,000 lent, 2,000 back in each second of pause`.
    fn in_words(&self) -> String {
        let of = |figure: Estimate| count(rounded(figure.value));
        format!(
            "{} reads/s sustained, {}{} lent, {} back in each second of pause",
            of(self.sustained_per_s),
            at_least(self.burst),
            of(self.burst),
            of(self.refill_per_s)
        )
    }
}

/// A token bucket of bytes, in megabytes of 10⁶ bytes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ByteBucket {
    /// Megabytes per second without credit.
    pub sustained_mb_per_s: Estimate,
    /// Megabytes of credit that a second of pause brings back.
    pub refill_mb_per_s: Estimate,
    /// Megabytes of credit at most; without an upper end if the longest pause did not bring back all.
    pub burst_mb: Estimate,
}

impl ByteBucket {
    /// That of reads of `io_bytes` each, which show `bucket`.
    fn of(bucket: TokenBucket, io_bytes: u32) -> Self {
        let megabytes = f64::from(io_bytes) / 1e6;
        Self {
            sustained_mb_per_s: bucket.sustained_per_s.scaled(megabytes),
            refill_mb_per_s: bucket.refill_per_s.scaled(megabytes),
            burst_mb: bucket.burst.scaled(megabytes),
        }
    }

    /// `125 MB/s sustained, 3,000 MB lent, 125 MB back in each second of pause`.
    fn in_words(&self) -> String {
        let of = |figure: Estimate| count(rounded(figure.value));
        format!(
            "{} MB/s sustained, {}{} MB lent, {} MB back in each second of pause",
            of(self.sustained_mb_per_s),
            at_least(self.burst_mb),
            of(self.burst_mb),
            of(self.refill_mb_per_s)
        )
    }
}

/// The buckets of a storage. One of bytes holds small reads too, and one of operations large ones: what one
/// bucket explains needs no second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Buckets {
    /// What small reads show, whatever they are held by.
    pub(super) small: Option<TokenBucket>,
    /// What large reads show.
    pub(super) large: Option<TokenBucket>,
    /// The bucket of operations.
    pub(super) operations: Option<TokenBucket>,
    /// The bucket of bytes.
    pub(super) bytes: Option<ByteBucket>,
    /// What holds small reads, where the credit of a limit of bytes lasted as long as they were measured.
    limit: Option<ByteLimit>,
}

/// Megabytes per second that large reads and small ones did.
#[derive(Debug, Clone, Copy, PartialEq)]
struct ByteLimit {
    large: f64,
    small: f64,
}

impl Buckets {
    /// Those that these records show.
    pub(super) fn of(records: &[PointRecord]) -> Self {
        let [small, large] = [false, true].map(|large| TokenBucket::of(records, large));
        let size = |large: bool| {
            let mut streams = refills(records, large).filter_map(|one| one.streams.first());
            streams.next().map(|stream| stream.length)
        };
        let lasts = |bucket: TokenBucket| bucket.sustained_per_s.value;
        let both = small.zip(large).zip(size(false).zip(size(true)));
        let is_of_bytes = both.is_some_and(|((small, large), (short, long))| {
            is_same_rate(
                lasts(small) * f64::from(short),
                lasts(large) * f64::from(long),
            )
        });
        // Where the bucket is so small that large reads never had credit, their rate tells whose it is.
        let of_small = small.zip(size(false)).filter(|_| large.is_none());
        let of_small = of_small.filter(|(small, short)| {
            let lasts = lasts(*small) * f64::from(*short);
            large_bytes_per_s(records).is_some_and(|rate| is_same_rate(lasts, rate))
        });
        let is_of_operations =
            both.is_some_and(|((small, large), _)| is_same_rate(lasts(small), lasts(large)));
        let bytes = large.zip(size(true)).filter(|_| !is_of_operations);
        Self {
            small,
            large,
            operations: small.filter(|_| !is_of_bytes && of_small.is_none()),
            bytes: bytes
                .or(of_small)
                .map(|(large, long)| ByteBucket::of(large, long)),
            limit: None,
        }
    }

    /// Small reads at the rate that a limit of bytes lets last, if these were faster and so had credit: it may have
    /// held out for as long as they were measured. The limit is the bucket of bytes. Without one it is what large
    /// reads do at any depth, if small ones did more than that, but hardly: no storage moves fewer bytes in large
    /// reads.
    pub(super) fn held_by_bytes(
        &mut self,
        small: AtLoad,
        large_mb_per_s: Option<Estimate>,
    ) -> Option<AtLoad> {
        let megabytes = f64::from(small.io_bytes) / 1e6;
        if let Some(bytes) = self.bytes {
            let lasts = bytes.sustained_mb_per_s.scaled(1.0 / megabytes);
            return (lasts.greatest() < small.iops.value).then(|| small.with_rate(lasts));
        }
        let lasts = large_mb_per_s?.scaled(1.0 / megabytes);
        let is_held = lasts.greatest() < small.iops.value;
        (is_held && is_same_rate(small.iops.value, lasts.value)).then(|| {
            self.limit = Some(ByteLimit {
                large: lasts.value * megabytes,
                small: small.mb_per_s.value,
            });
            small.with_rate(lasts)
        })
    }

    /// One stream of large reads: it lasts no faster than many do.
    pub(super) fn held(&self, stream: AtLoad, large: Option<AtLoad>) -> AtLoad {
        let has_credit = self.bytes.is_some() || self.operations.is_some();
        match large.filter(|_| has_credit) {
            Some(large) if large.iops.greatest() < stream.iops.value => {
                stream.with_rate(large.iops)
            }
            _ => stream,
        }
    }

    /// Names them, in place of what they explain: credit that was only supposed, and changes of pace.
    pub(super) fn name_in(&self, findings: &mut Vec<Finding>) {
        if let Some(warning) = self.warning() {
            findings.retain(|finding| !is_explained(finding));
            findings.insert(0, warning);
        }
    }

    /// Takes from points what they explain.
    pub(super) fn explain(&self, points: &mut [PointSummary]) {
        if self.small.is_some() || self.large.is_some() {
            for point in points {
                point.findings.retain(|finding| !is_explained(finding));
            }
        }
    }

    /// That a sweep ran on their credit in part.
    fn warning(&self) -> Option<Finding> {
        let operations = self.operations.map(|bucket| bucket.in_words());
        let bytes = self.bytes.map(|bucket| bucket.in_words());
        let of_limit = |limit: ByteLimit| {
            format!(
                "a limit of bytes holds large reads at {} MB/s, and small ones did {} MB/s on its credit",
                count(rounded(limit.large)),
                count(rounded(limit.small))
            )
        };
        let sentence = match (operations, bytes) {
            (None, None) => of_limit(self.limit?),
            (Some(one), None) | (None, Some(one)) => format!("it is a token bucket: {one}"),
            (Some(one), Some(other)) => format!("it has two token buckets: {one}; {other}"),
        };
        Some(Finding::warning(
            FindingName::BurstCredit,
            sentence,
            "use the sustained rate; a load that stays below it has the credit when it needs it",
        ))
    }
}

/// Bytes per second of the fastest large reads of the search.
fn large_bytes_per_s(records: &[PointRecord]) -> Option<f64> {
    let large = records
        .iter()
        .filter(|record| record.coordinates.step() == Step::Large);
    let rate = |record: &PointRecord| {
        let stream = record.streams.first()?;
        let bytes = stream.total().done as f64 * f64::from(stream.length);
        Some(bytes / record.measured.as_secs_f64())
    };
    large.filter_map(rate).max_by(f64::total_cmp)
}

/// True if a token bucket is why this was found.
fn is_explained(finding: &Finding) -> bool {
    const EXPLAINED: [FindingName; 4] = [
        FindingName::BurstCredit,
        FindingName::ClosingDiffers,
        FindingName::Drift,
        FindingName::Unsteady,
    ];
    EXPLAINED.iter().any(|name| finding.is(*name))
}

/// The records of small or `large` reads without a pause, and after one.
fn refills(records: &[PointRecord], large: bool) -> impl Iterator<Item = &PointRecord> {
    records.iter().filter(move |record| {
        let at = record.coordinates;
        at.step() == Step::Refill && at.is_refill_of_large() == large
    })
}

/// What stands before a burst of which only the lower end is known.
fn at_least(burst: Estimate) -> &'static str {
    match burst.interval.and_then(|interval| interval.high) {
        Some(_) => "",
        None => "at least ",
    }
}

/// To three digits: no bucket is known better.
fn rounded(value: f64) -> f64 {
    let unit = 10f64.powf((value.abs().max(1.0).log10().floor() - 2.0).max(0.0));
    (value / unit).round() * unit
}

/// The line through what pauses brought back. It does not begin at zero: between two measurements nothing is
/// read for some milliseconds more than the pause.
#[derive(Clone, Copy)]
struct RefillLine {
    per_s: f64,
    at_zero: f64,
}

impl RefillLine {
    /// The line of least squares; `None` through fewer than two pauses.
    fn through(pauses: &[Regained]) -> Option<Self> {
        let count = pauses.len() as f64;
        let mean = |of: fn(&Regained) -> f64| pauses.iter().map(of).sum::<f64>() / count;
        let (length, operations) = (mean(|one| one.paused), mean(|one| one.operations));
        let squares: f64 = pauses.iter().map(|one| (one.paused - length).powi(2)).sum();
        let products = pauses
            .iter()
            .map(|one| (one.paused - length) * (one.operations - operations));
        let per_s = products.sum::<f64>() / squares;
        (pauses.len() >= 2 && squares > 0.0).then_some(Self {
            per_s,
            at_zero: operations - per_s * length,
        })
    }

    /// How far a pause lies from the line.
    fn missed(&self, one: &Regained) -> f64 {
        one.operations - self.at_zero - self.per_s * one.paused
    }

    /// The standard error of its slope, by how far these pauses lie from it.
    fn error(&self, pauses: &[Regained]) -> f64 {
        let count = pauses.len() as f64;
        let mean = pauses.iter().map(|one| one.paused).sum::<f64>() / count;
        let squares: f64 = pauses.iter().map(|one| (one.paused - mean).powi(2)).sum();
        let missed: f64 = pauses.iter().map(|one| self.missed(one).powi(2)).sum();
        (missed / (count - 2.0).max(1.0) / squares).sqrt()
    }
}

/// Reads after a pause.
struct Refill {
    paused: f64,
    counts: Vec<f64>,
    window_s: f64,
}

/// How long nothing was read before a record: as the clock tells, which knows of what it takes to begin; else
/// as long as was asked.
fn paused(record: &PointRecord, before: Option<&PointRecord>) -> Nanos {
    let asked = record.coordinates.pause().unwrap_or(Nanos(0));
    let ended = before.map(|before| before.began.plus(before.measured));
    let found = ended.filter(|_| asked > Nanos(0) && record.began > Nanos(0));
    let found = found.map(|ended| record.began.since(ended));
    found.filter(|found| *found >= asked).unwrap_or(asked)
}

impl Refill {
    /// The reads of a record, the one `before` which was the last before its pause.
    fn of(record: &PointRecord, before: Option<&PointRecord>) -> Option<Self> {
        let stream = record.streams.first()?;
        let counts = counts(stream, record.whole_windows());
        (counts.len() >= END).then(|| Self {
            paused: paused(record, before).as_secs_f64(),
            counts,
            window_s: record.window.as_secs_f64(),
        })
    }

    /// Its end, without credit.
    fn end(&self) -> &[f64] {
        &self.counts[self.counts.len() - self.counts.len() / END..]
    }

    /// The rate there.
    fn end_rate(&self) -> f64 {
        let end = self.end();
        end.iter().sum::<f64>() / end.len() as f64 / self.window_s
    }

    fn done(&self) -> f64 {
        self.counts.iter().sum()
    }

    fn seconds(&self) -> f64 {
        self.counts.len() as f64 * self.window_s
    }
}
