//! Oracle: the system statistics by which the optimizer weighs single-block reads against
//! multiblock reads.
//!
//! Workload statistics are two times and a number of blocks. Statistics without a workload are a
//! seek time and a transfer speed, from which Oracle computes the time of a read of n bytes as
//! `IOSEEKTIM + n / IOTFRSPEED` (Oracle SQL Tuning Guide, System Statistics). Both are derived from
//! the same two measured times.

use super::decision::Decision;
use super::product::Product;
use super::setting::{Advice, Ground, other_block, size, three_digits, unsteady_or_unknown};
use crate::{AtLoad, Estimate, Interval, Limits};

const SOURCE: &str = "Oracle SQL Tuning Guide, System Statistics; PL/SQL Packages and Types \
                      Reference, DBMS_STATS.SET_SYSTEM_STATS; blogs.oracle.com/optimizer, Should \
                      You Gather System Statistics? (2018)";

/// The statistics: of a workload, then without one.
const NAMES: [&str; 5] = ["SREADTIM", "MREADTIM", "MBRC", "IOSEEKTIM", "IOTFRSPEED"];

/// The block size of nearly every database.
const BLOCK: u32 = 8192;

/// Bytes per millisecond of a megabyte per second.
const BYTES_PER_MS: f64 = 1e3;

/// The times of a single-block and of a multiblock read, in milliseconds, each one at a time.
#[derive(Clone, Copy)]
struct Reads {
    single: AtLoad,
    multi: AtLoad,
    single_ms: Estimate,
    multi_ms: Estimate,
}

impl Reads {
    /// `None` if either was not measured, or if the larger read took no longer: Oracle does not use
    /// such statistics. Nor are there any if it took so little longer that its bytes would come
    /// faster than this storage transfers them: then the difference is not that of the transfer.
    fn of(ground: &Ground) -> Option<Self> {
        let calibration = ground.found;
        let (single, multi) = (
            calibration.low_load?,
            calibration.stream.or(calibration.large_low_load)?,
        );
        let is_longer =
            multi.io_bytes >= 2 * single.io_bytes && multi.mean_us.value > single.mean_us.value;
        let reads = Self {
            single,
            multi,
            single_ms: single.mean_us.scaled(1e-3),
            multi_ms: multi.mean_us.scaled(1e-3),
        };
        let most = calibration
            .large
            .map_or(f64::INFINITY, |at| at.mb_per_s.greatest());
        let is_usable = is_longer && {
            let bytes_per_ms = reads.speed().value;
            bytes_per_ms <= most * BYTES_PER_MS
        };
        is_usable.then_some(reads)
    }

    /// Blocks of one multiblock read.
    fn blocks(&self) -> f64 {
        f64::from(self.multi.io_bytes / self.single.io_bytes)
    }

    /// `f` of both times, with the lowest and the highest value that it has within their intervals:
    /// it must rise with one time and fall with the other.
    fn between(&self, f: impl Fn(f64, f64) -> f64) -> Estimate {
        let interval = |of: Estimate| of.interval.and_then(Limits::both);
        let ends = interval(self.single_ms).zip(interval(self.multi_ms));
        let limits = ends.filter(|(single, multi)| multi.low > single.high).map(
            |(single, multi): (Interval, Interval)| {
                let (closest, farthest) = (f(single.low, multi.high), f(single.high, multi.low));
                Limits {
                    low: closest.min(farthest),
                    high: Some(closest.max(farthest)),
                }
            },
        );
        Estimate::new(f(self.single_ms.value, self.multi_ms.value), limits)
    }

    /// Bytes per millisecond at which the part of a read beyond the first block is transferred.
    fn speed(&self) -> Estimate {
        let more = f64::from(self.multi.io_bytes - self.single.io_bytes);
        self.between(|single_ms, multi_ms| more / (multi_ms - single_ms))
    }

    /// Milliseconds of a read without its transfer.
    fn seek_ms(&self) -> Estimate {
        let more = f64::from(self.multi.io_bytes - self.single.io_bytes);
        let block = f64::from(self.single.io_bytes);
        self.between(|single_ms, multi_ms| single_ms - block * (multi_ms - single_ms) / more)
    }
}

/// The system statistics.
pub(super) fn settings(ground: &Ground) -> Vec<Advice> {
    let reads = Reads::of(ground);
    NAMES
        .map(|name| setting(ground, reads.as_ref(), name))
        .to_vec()
}

fn setting(ground: &Ground, reads: Option<&Reads>, name: &'static str) -> Advice {
    let blank = Advice {
        // Whatever was measured, or not.
        decision: Decision::leave(
            "they change every plan, and Oracle advises most systems to keep the defaults",
        ),
        ..ground.blank(Product::Oracle, name, SOURCE)
    };
    // A read of flash takes a tenth of a millisecond: three decimals are microseconds.
    let milliseconds = |ms: f64| format!("{ms:.3}");
    // Storage may be so fast that the seek time disappears in the error of the other two times.
    let Some(reads) = reads.filter(|reads| reads.seek_ms().value > 0.0) else {
        return blank.not_measured(
            "no single-block read was measured beside a multiblock read that took so much longer, \
             each one at a time, that the time of a transfer is known",
            ground.command("--as oracle"),
        );
    };
    let (single, multi) = (size(reads.single.io_bytes), size(reads.multi.io_bytes));
    let (derivation, advice) = match name {
        "SREADTIM" => (
            format!("mean time of a random read of {single} at depth 1, in ms"),
            blank.valued(reads.single_ms, milliseconds),
        ),
        "MREADTIM" => (
            format!("mean time of a read of {multi} at depth 1, in ms"),
            blank.valued(reads.multi_ms, milliseconds),
        ),
        "MBRC" => (
            format!("blocks of a multiblock read: {multi} over {single}"),
            Advice {
                value: Some(three_digits(reads.blocks())),
                ..blank
            },
        ),
        "IOSEEKTIM" => (
            format!("SREADTIM less the transfer of {single} at IOTFRSPEED, in ms"),
            blank.valued(reads.seek_ms(), milliseconds),
        ),
        _ => (
            format!(
                "the bytes that a read of {multi} has more than one of {single}, over the time \
                 that it takes longer, in bytes per ms"
            ),
            blank.valued(reads.speed(), three_digits),
        ),
    };
    Advice {
        derivation,
        misleads: "these are times of idle storage without any cache; a statistic decides about \
                   every plan of the database. Oracle advises most systems to keep the defaults"
            .into(),
        warnings: unsteady_or_unknown(&[Some(reads.single), Some(reads.multi)])
            .into_iter()
            .chain(other_block(reads.single, BLOCK, "--as oracle"))
            .collect(),
        ..advice
    }
}

/// The statements, each a comment: they change the plans of the whole database.
pub(super) fn apply(settings: &[Advice]) -> Vec<String> {
    let values: Option<Vec<(&str, &String)>> = settings
        .iter()
        .filter(|setting| NAMES.contains(&setting.setting))
        .map(|setting| Some((setting.setting, setting.value.as_ref()?)))
        .collect();
    let Some(values) = values else {
        return vec!["-- System statistics: not measured.".into()];
    };
    let calls = |wanted: &[&str]| -> Vec<String> {
        let wanted = values.iter().filter(|(name, _)| wanted.contains(name));
        wanted
            .map(|(name, value)| format!("-- EXEC DBMS_STATS.SET_SYSTEM_STATS('{name}', {value});"))
            .collect()
    };
    let mut lines: Vec<String> = [
        "-- System statistics change the plans of the whole database, and no plan was tested. \
         Oracle advises",
        "-- most systems to keep the defaults. EXEC DBMS_STATS.DELETE_SYSTEM_STATS; returns to \
         them.",
        "-- Either with a workload (ms, ms, blocks):",
    ]
    .map(String::from)
    .to_vec();
    lines.extend(calls(&["SREADTIM", "MREADTIM", "MBRC"]));
    lines.push("-- or without one (ms, bytes per ms), which those above override:".into());
    lines.extend(calls(&["IOSEEKTIM", "IOTFRSPEED"]));
    lines
}
