//! A demand beside a calibration: how much of what the storage can do the database uses.
//!
//! Input: one interval of a demand, and a calibration. Output: for each stream the part of the
//! storage's time that it needs, as a range, and whether it fits.
//!
//! The calibration measured one size of random I/O, one large size, and appends of a few sizes. An
//! I/O between two sizes needs at least the time of the smaller and at most that of the larger, and
//! at most the time of as many small ones as it is long. Both limits are printed, so that the
//! answer is certain or says that it is not.

use crate::figures::confidence::Estimate;
use crate::figures::quantity::{mb_per_second, per_second, rounded_percent};
use crate::search::at_load::AtLoad;
use crate::search::calibration::{Calibration, LogWrites};
use rigel_model::{Bytes, Demand, DemandInterval, DemandKind, DemandStream, Moment, Step};
use serde::Serialize;

/// An answer from figures that have intervals: whether storage serves a demand, whether a setting
/// matters for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// Certainly.
    Yes,
    /// Certainly not.
    No,
    /// The figures do not decide it.
    Undecided,
}

impl Answer {
    /// The answer in one word.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::No => "no",
            Self::Undecided => "undecided",
        }
    }
}

/// The part of the storage's time that a stream needs; 1 is all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Usage {
    /// At least this part.
    pub low: f64,
    /// At most this part; `None` if the calibration did not measure what would show it.
    pub high: Option<f64>,
}

impl Usage {
    /// No time at all.
    pub(crate) const NONE: Self = Self {
        low: 0.0,
        high: Some(0.0),
    };

    /// The parts of two streams together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            high: self.high.zip(other.high).map(|(one, two)| one + two),
        }
    }

    fn fits(self) -> Answer {
        match self.high {
            Some(high) if high <= 1.0 => Answer::Yes,
            _ if self.low > 1.0 => Answer::No,
            _ => Answer::Undecided,
        }
    }
}

/// A stream of the demand beside what the storage does.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamAgainst {
    /// The kind of I/O.
    pub kind: DemandKind,
    /// Operations per second that the database asked for.
    pub per_s: f64,
    /// Their mean size; `None` if the source does not give it.
    pub mean_bytes: Option<f64>,
    /// Mean latency as the database saw it.
    pub database_us: Option<f64>,
    /// Mean response time of this storage at the lowest measured load that is at least as high, for
    /// I/Os of the measured size; `None` if none was measured.
    pub storage_us: Option<Estimate>,
    /// The part of the storage's time that the stream needs.
    pub usage: Usage,
    /// Whether it fits, alone.
    pub fits: Answer,
    /// The figure of the calibration that decides, in words; or what is missing.
    pub by: String,
}

/// A demand beside a calibration.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DemandAgainst {
    /// Database and instance in words.
    pub database: String,
    /// The file or snapshots of the interval.
    pub label: String,
    /// When it began.
    pub begin: Option<Moment>,
    /// Its length.
    pub seconds: Option<f64>,
    /// The share of intervals with less I/O.
    pub share_below: f64,
    /// Number of intervals of the demand.
    pub intervals: usize,
    /// Its streams whose rate is known and above zero.
    pub streams: Vec<StreamAgainst>,
    /// The kinds of I/O of which there was none in the interval; what the source does not say is
    /// neither here nor among the streams.
    pub idle: Vec<DemandKind>,
    /// The sum over streams, without log writes: those wait for each other and not for a share of
    /// the throughput.
    pub together: Usage,
    /// Whether all streams fit together.
    pub fits: Answer,
    /// Why the database might have asked for more; empty if nothing speaks for it.
    pub censored: String,
}

impl DemandAgainst {
    /// Why the answer is what it is, in words.
    #[must_use]
    pub fn reason(&self) -> String {
        let of = |fits: Answer| self.streams.iter().find(|one| one.fits == fits);
        match (self.fits, of(Answer::No), of(Answer::Undecided)) {
            (Answer::No, Some(one), _) => format!(
                "the {} need at least {} of what this storage can do",
                one.kind.words(),
                rounded_percent(one.usage.low)
            ),
            (Answer::Undecided, _, Some(one)) => format!("{}: {}", one.kind.words(), one.by),
            (Answer::Yes, ..) => format!(
                "the streams together need at most {} of what this storage can do",
                rounded_percent(self.together.high.unwrap_or_default())
            ),
            _ => format!(
                "each stream fits alone, and together they need {} to {} of what this storage can \
                 do",
                rounded_percent(self.together.low),
                rounded_percent(self.together.high.unwrap_or_default())
            ),
        }
    }
}

/// The interval of `demand` with the most I/O, beside what `found` measured. `None` if no stream of
/// it has a rate.
#[must_use]
pub fn against(demand: &Demand, found: &Calibration) -> Option<DemandAgainst> {
    let (interval, share_below) = demand.busiest()?;
    let DemandInterval {
        label,
        begin,
        seconds,
        censored,
        ..
    } = interval;
    let streams: Vec<StreamAgainst> = interval
        .streams
        .iter()
        .filter_map(|stream| beside(stream, demand.block_bytes, found))
        .collect();
    let of = |wanted: fn(DemandKind) -> bool| {
        let chosen = streams.iter().filter(|one| wanted(one.kind));
        chosen.fold(Usage::NONE, |sum, one| sum.plus(one.usage))
    };
    let together = of(|kind| kind != DemandKind::LogWrites);
    // Reads and writes may have ways of their own: only one of the two can show that it is too much.
    let sides = [
        of(DemandKind::is_read),
        of(|kind| !kind.is_read() && kind != DemandKind::LogWrites),
    ];
    let is_any = |fits: Answer| streams.iter().any(|one| one.fits == fits);
    let fits = if is_any(Answer::No) || sides.iter().any(|side| side.low > 1.0) {
        Answer::No
    } else if is_any(Answer::Undecided) || together.fits() != Answer::Yes {
        Answer::Undecided
    } else {
        Answer::Yes
    };
    let is_idle = |stream: &&DemandStream| stream.per_s == Some(0.0);
    let idle = interval.streams.iter().filter(is_idle);
    (!streams.is_empty()).then(|| DemandAgainst {
        database: demand.database.clone(),
        label: label.clone(),
        begin: *begin,
        seconds: *seconds,
        share_below,
        intervals: demand.intervals.len(),
        idle: idle.map(|stream| stream.kind).collect(),
        streams,
        together,
        fits,
        censored: censored.clone(),
    })
}

/// A stream beside the figures that it is compared with.
fn beside(
    stream: &DemandStream,
    block_bytes: Option<u32>,
    found: &Calibration,
) -> Option<StreamAgainst> {
    let per_s = stream.per_s.filter(|rate| *rate > 0.0)?;
    let kind = stream.kind;
    let bytes = stream.mean_bytes.or_else(|| {
        let of_blocks = kind == DemandKind::RandomReads;
        block_bytes.map(f64::from).filter(|_| of_blocks)
    });
    let (usage, storage_us, by) = match kind {
        DemandKind::LogWrites => log_writes(per_s, bytes, found),
        _ if kind.is_read() => reads(per_s, bytes, kind, found),
        _ => writes(per_s, bytes, found),
    };
    Some(StreamAgainst {
        kind,
        per_s,
        mean_bytes: bytes,
        database_us: stream.mean_us,
        storage_us,
        usage,
        fits: usage.fits(),
        by,
    })
}

/// What a stream is compared with: its usage, the response time, and the figure in words.
type Beside = (Usage, Option<Estimate>, String);

fn reads(per_s: f64, bytes: Option<f64>, kind: DemandKind, found: &Calibration) -> Beside {
    let Some(small) = found.maximum else {
        let by = "the calibration has no random reads: it was stopped early";
        return (Usage::default(), None, by.into());
    };
    // The bound is certainly kept up to the first rate, and no rate above the second was served.
    let kept = found.sustained.kept;
    let sure = kept.map_or_else(|| small.iops.least(), |at| at.iops.least());
    let most = small.iops.greatest().max(sure);
    let size = Size {
        sure_per_s: sure,
        most_per_s: most,
        ..Size::of(small)
    };
    let usage = usage(per_s, bytes, size, found.large.map(Size::of));
    let words = kept.map_or_else(
        || format!("{} without a bound", per_second(small.iops.value)),
        |at| format!("{} within {}", per_second(at.iops.value), found.bound),
    );
    let of = if kind == DemandKind::RandomReads {
        words
    } else {
        match found.large {
            Some(at) => format!(
                "{words}; {} of large reads",
                mb_per_second(at.mb_per_s.value)
            ),
            None => format!("{words}; large reads were not measured"),
        }
    };
    let time = (kind == DemandKind::RandomReads)
        .then(|| response(per_s, found))
        .flatten();
    (usage, time, of)
}

fn writes(per_s: f64, bytes: Option<f64>, found: &Calibration) -> Beside {
    let Some(at) = found.writes else {
        let by = "writes were not measured: calibrate with --write";
        return (Usage::default(), None, by.into());
    };
    let usage = usage(per_s, bytes, Size::of(at), None);
    (
        usage,
        None,
        format!("{} random writes", per_second(at.iops.value)),
    )
}

/// Appends that wait for each other: the part of the time in which one is on its way.
fn log_writes(per_s: f64, bytes: Option<f64>, found: &Calibration) -> Beside {
    if found.log_writes.is_empty() {
        let by = "log writes were not measured: calibrate with --write --as postgres";
        return (Usage::default(), None, by.into());
    }
    let Some(bytes) = bytes else {
        let by = "the mean size of a log write is not known";
        return (Usage::default(), None, by.into());
    };
    let of_size = |one: &&LogWrites| f64::from(one.bytes);
    let larger = found
        .log_writes
        .iter()
        .filter(|one| of_size(one) >= bytes)
        .min_by_key(|one| one.bytes);
    let smaller = found
        .log_writes
        .iter()
        .filter(|one| of_size(one) <= bytes)
        .max_by_key(|one| one.bytes);
    let usage = Usage {
        low: smaller.map_or(0.0, |one| per_s / one.at.iops.greatest()),
        high: larger.map(|one| per_s / one.at.iops.least()),
    };
    let by = larger.or(smaller).map_or_else(String::new, |one| {
        format!(
            "{} appends of {} by one writer",
            per_second(one.at.iops.value),
            Bytes(one.bytes.into())
        )
    });
    (usage, larger.map(|one| one.at.mean_us), by)
}

/// A measured size.
#[derive(Clone, Copy)]
struct Size {
    bytes: f64,
    /// This number per second is certainly served.
    sure_per_s: f64,
    /// No more than this number per second is served.
    most_per_s: f64,
}

impl Size {
    fn of(at: AtLoad) -> Self {
        Self {
            bytes: at.io_bytes.into(),
            sure_per_s: at.iops.least(),
            most_per_s: at.iops.greatest(),
        }
    }

    /// The most time that an I/O of `bytes` needs: that of as many of this size.
    fn at_most(self, bytes: f64) -> f64 {
        (bytes / self.bytes).ceil() / self.sure_per_s
    }
}

/// The part of the time that `per_s` I/Os of `bytes` need on a device on which an I/O of `small`
/// and of `large` size was measured.
fn usage(per_s: f64, bytes: Option<f64>, small: Size, large: Option<Size>) -> Usage {
    let Some(bytes) = bytes else {
        return Usage::default();
    };
    let as_large = large.map_or(f64::INFINITY, |large| large.at_most(bytes));
    let as_small = small.at_most(bytes);
    // What is smaller than a small one may be faster than it.
    let one = if bytes < small.bytes {
        0.0
    } else {
        1.0 / small.most_per_s
    };
    // A byte is cheapest in the largest I/O that was measured; beyond its size that is unknown.
    let by_bytes = large.map_or(0.0, |large| {
        let bandwidth = (large.bytes * large.most_per_s).max(small.bytes * small.most_per_s);
        bytes.min(large.bytes) / bandwidth
    });
    Usage {
        low: per_s * one.max(by_bytes),
        high: Some(per_s * as_small.min(as_large)),
    }
}

/// Mean response time at the lowest measured load of random reads with at least this throughput.
fn response(per_s: f64, found: &Calibration) -> Option<Estimate> {
    let classes = found
        .points
        .iter()
        .filter(|point| matches!(point.step(), Step::Depth | Step::Rate))
        .filter_map(|point| Some((point, point.classes.first()?)));
    classes
        .filter(|(_, class)| class.iops >= per_s && !class.is_not_met())
        .min_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
        .and_then(|(point, class)| AtLoad::of(point, class))
        .map(|at| at.mean_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use crate::examples::against as against_example;

    fn stream(kind: DemandKind, per_s: f64, bytes: f64) -> DemandStream {
        rigel_model::examples::stream(kind, per_s, Some(bytes))
    }

    /// Time of one of the example's eight servers for a read: 100 us and 1 ns a byte.
    fn part(per_s: f64, bytes: f64) -> f64 {
        per_s * (100e-6 + bytes * 1e-9) / 8.0
    }

    #[test]
    fn the_range_holds_what_a_device_that_is_known_needs() {
        for kib in [8, 12, 16, 64, 100, 128, 512, 700, 1024, 2048] {
            let bytes = f64::from(kib << 10);
            let found = against_example(vec![stream(DemandKind::MultiblockReads, 100.0, bytes)]);
            let (usage, truth) = (found.streams[0].usage, part(100.0, bytes));
            let high = usage.high.expect("both sizes were measured");
            assert!(
                usage.low <= truth && truth <= high,
                "{kib} KiB: {usage:?} and not {truth}"
            );
        }
    }

    #[test]
    fn the_answer_is_yes_no_or_undecided() {
        let most = 1.0 / part(1.0, 8192.0);
        let fits = |share: f64| {
            let found =
                against_example(vec![stream(DemandKind::RandomReads, share * most, 8192.0)]);
            (found.streams[0].fits, found.fits)
        };
        assert_eq!(fits(0.5), (Answer::Yes, Answer::Yes));
        assert_eq!(fits(1.0), (Answer::Undecided, Answer::Undecided));
        assert_eq!(fits(1.1), (Answer::No, Answer::No));
    }

    #[test]
    fn streams_that_fit_alone_may_be_too_much_together() {
        let half = 0.6 / part(1.0, 8192.0);
        let found = against_example(vec![
            stream(DemandKind::RandomReads, half, 8192.0),
            stream(DemandKind::PageWrites, 24_000.0, 16384.0),
        ]);
        assert!(found.streams.iter().all(|one| one.fits == Answer::Yes));
        assert_eq!(found.fits, Answer::Undecided, "{:?}", found.together);
        assert!(found.reason().starts_with("each stream fits alone"));
        // Two kinds of reads have no way of their own.
        let reads = against_example(vec![
            stream(DemandKind::RandomReads, half, 8192.0),
            stream(DemandKind::DirectReads, half, 8192.0),
        ]);
        assert_eq!(reads.fits, Answer::No);
    }

    #[test]
    fn log_writes_need_the_time_of_an_append_of_at_least_their_size() {
        // The example has 1,000 appends of 4 KiB a second.
        let of = |per_s, bytes| {
            against_example(vec![stream(DemandKind::LogWrites, per_s, bytes)])
                .streams
                .remove(0)
        };
        assert_eq!(of(500.0, 4096.0).fits, Answer::Yes);
        assert_eq!(of(500.0, 3000.0).fits, Answer::Yes);
        assert_eq!(of(1100.0, 4096.0).fits, Answer::No);
        let larger = of(500.0, 9000.0);
        assert_eq!((larger.usage.high, larger.fits), (None, Answer::Undecided));
    }

    #[test]
    fn what_was_not_measured_is_named() {
        let mut found = examples::calibration();
        found.writes = None;
        let (usage, _, by) = writes(100.0, Some(8192.0), &found);
        assert_eq!((usage.high, usage.fits()), (None, Answer::Undecided));
        assert!(by.contains("--write"), "{by}");
    }
}
