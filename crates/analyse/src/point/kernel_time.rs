//! The kernel's own figure of response time: the time that I/Os spent in the queue of the block
//! device and in the device, by the kernel's counters, over the I/Os that it completed.
//!
//! Rigel's clock, its due times and its records take no part in it, so it is an independent witness
//! of the mean response time. Little's law is none in a closed loop, where it holds by construction.
//!
//! The kernel counts from the moment when a request is allocated to its completion (fields 4 and 8
//! of `/sys/block/*/stat`: Documentation/block/stat.rst of Linux). What an I/O waits for before
//! that is not in it: a limit of a control group, a free request, a CPU.

use crate::figures::quantity::count;
use rigel_model::record::PointRecord;
use rigel_model::{Counters, Sample};

/// Allowed relative difference between the number of I/Os that the devices completed and ours. With
/// a larger one the kernel's mean is that of other I/Os: of pieces, of merged ones or of others'.
const COUNT_TOLERANCE: f64 = 0.02;

/// Maximum relative error of the kernel's mean from counting in whole milliseconds.
const RESOLUTION_MAX: f64 = 0.05;

/// The kernel's mean time of a class's I/Os, or why it is unknown.
pub(super) type KernelMean = Result<f64, String>;

/// The kinds of I/O of a class. The kernel counts them apart, so that the writes of others, such as
/// those of a log, are in no figure of reads.
#[derive(Debug, Clone, Copy)]
struct Kinds {
    reads: bool,
    writes: bool,
}

impl Kinds {
    fn sum(self, reads: u64, writes: u64) -> u64 {
        let reads = if self.reads { reads } else { 0 };
        let writes = if self.writes { writes } else { 0 };
        reads.saturating_add(writes)
    }
}

/// The kernel's counts of the I/Os of one piece of measuring, or of several.
#[derive(Debug, Clone, Copy, Default)]
struct KernelCounts {
    /// I/Os completed from the first sample to the last.
    all: u64,
    /// I/Os completed from the first sample in the measured time to the last.
    measured: u64,
    /// The time that those took together, in milliseconds.
    measured_ms: u64,
    /// Maximum error of that time: each reading of a counter is rounded to milliseconds.
    error_ms: u64,
    /// Number of pieces.
    pieces: u64,
}

impl KernelCounts {
    /// The I/Os of these kinds between the samples of a record that was measured in one piece;
    /// `None` without counters.
    fn of(record: &PointRecord, kinds: Kinds) -> Option<Self> {
        let [first, .., last] = record.samples.as_slice() else {
            return None;
        };
        if first.devices.is_empty() || !first.devices.keys().eq(last.devices.keys()) {
            return None;
        }
        // Journals of earlier versions may have no sample in the measured time. Then the warm-up,
        // which has the same load, is included.
        let before_last = &record.samples[..record.samples.len() - 1];
        let from = before_last
            .iter()
            .find(|sample| {
                sample.at >= record.warm_up && sample.devices.keys().eq(last.devices.keys())
            })
            .unwrap_or(first);
        let since = |from: &Sample, of: &dyn Fn(&Counters) -> u64| {
            let total = |sample: &Sample| {
                let counters = sample.devices.values();
                counters.fold(0, |sum: u64, counters| sum.saturating_add(of(counters)))
            };
            total(last).saturating_sub(total(from))
        };
        let ios = |counters: &Counters| kinds.sum(counters.reads, counters.writes);
        let ms = |counters: &Counters| kinds.sum(counters.read_ms, counters.write_ms);
        Some(Self {
            all: since(first, &ios),
            measured: since(from, &ios),
            measured_ms: since(from, &ms),
            error_ms: kinds.sum(1, 1) * last.devices.len() as u64,
            pieces: 1,
        })
    }

    fn plus(self, other: Self) -> Self {
        Self {
            all: self.all.saturating_add(other.all),
            measured: self.measured.saturating_add(other.measured),
            measured_ms: self.measured_ms.saturating_add(other.measured_ms),
            error_ms: self.error_ms.saturating_add(other.error_ms),
            pieces: self.pieces + other.pieces,
        }
    }
}

/// The I/Os of a class, as Rigel counted them.
#[derive(Debug, Clone, Copy)]
pub(super) struct OwnIos {
    /// Completed reads, and writes.
    pub(super) reads: u64,
    pub(super) writes: u64,
    /// True if any failed.
    pub(super) any_failed: bool,
    /// Mean number of outstanding I/Os.
    pub(super) outstanding: f64,
}

/// The kernel's mean time in microseconds of the I/Os of the only one of `classes`; `None` if there
/// are no counters to compare with.
pub(super) fn kernel_mean(record: &PointRecord, classes: &[OwnIos]) -> Option<KernelMean> {
    if record.streams.iter().any(|stream| stream.sql.is_some()) {
        return None;
    }
    let pieces = record.pieces();
    let kinds = Kinds {
        reads: classes.iter().any(|class| class.reads > 0),
        writes: classes.iter().any(|class| class.writes > 0),
    };
    let counts = pieces
        .iter()
        .map(|piece| KernelCounts::of(piece, kinds))
        .reduce(|sum, next| Some(sum?.plus(next?)))??;
    let [class] = classes else {
        return Some(Err(
            "the kernel's counters do not distinguish the classes of I/O".into(),
        ));
    };
    if class.any_failed {
        return Some(Err("I/Os failed".into()));
    }
    let warm_up = record.streams.iter().map(|stream| stream.warm_up_done);
    let done = class.reads.saturating_add(class.writes);
    let own = warm_up.fold(done, u64::saturating_add);
    Some(mean(counts, own, class.outstanding))
}

/// The mean of these counts, if the I/Os are ours: `own` were completed, warm-up included, with
/// `outstanding` at a time on average.
fn mean(counts: KernelCounts, own: u64, outstanding: f64) -> KernelMean {
    // Those in flight when measuring began are in no count of ours.
    let allowed = COUNT_TOLERANCE * own as f64 + outstanding.ceil() * counts.pieces as f64;
    if counts.all.abs_diff(own) as f64 > allowed {
        let why = if counts.all > own {
            "some were split, or the device has other load"
        } else {
            "some were merged, or answered without the device"
        };
        return Err(format!(
            "the device completed {} I/Os for {} of Rigel's: {why}",
            count(counts.all as f64),
            count(own as f64)
        ));
    }
    if counts.measured == 0 || counts.error_ms as f64 > RESOLUTION_MAX * counts.measured_ms as f64 {
        return Err(format!(
            "the kernel counts whole milliseconds, and {} I/Os took {} ms together",
            count(counts.measured as f64),
            counts.measured_ms
        ));
    }
    Ok(counts.measured_ms as f64 * 1e3 / counts.measured as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: u64, measured: u64, measured_ms: u64) -> KernelCounts {
        KernelCounts {
            all,
            measured,
            measured_ms,
            error_ms: 1,
            pieces: 1,
        }
    }

    #[test]
    fn the_mean_is_the_time_in_queue_over_the_completed_ios_of_the_measured_time() {
        assert_eq!(mean(counts(1200, 1000, 250), 1200, 1.0), Ok(250.0));
    }

    #[test]
    fn without_our_ios_alone_in_the_counts_the_mean_is_unknown() {
        let why = |counts, own, outstanding| mean(counts, own, outstanding).unwrap_err();
        let split = why(counts(2000, 2000, 800), 1000, 1.0);
        assert!(
            split.contains("2,000 I/Os for 1,000") && split.contains("split"),
            "{split}"
        );
        assert!(why(counts(500, 500, 800), 1000, 1.0).contains("merged"));
        assert!(why(counts(1000, 1000, 12), 1000, 1.0).contains("whole milliseconds"));
        assert!(why(counts(0, 0, 0), 0, 0.0).contains("whole milliseconds"));
        // Those in flight when measuring began may be in one count and not in the other.
        assert_eq!(mean(counts(1052, 1000, 250), 1000, 32.0), Ok(250.0));
        assert!(mean(counts(1053, 1000, 250), 1000, 32.0).is_err());
    }
}
