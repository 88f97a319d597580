//! Whether storage that was calibrated keeps an objective under a load, and how certain that is.
//!
//! Input: an objective, the load, and a calibration. Output: yes, no or undecided, with the figure
//! that decides, in words.
//!
//! *No* is certain if one I/O at a time, or an offered rate that is not higher, already takes longer.
//! *Yes* needs an upper bound on the response time, of which there are two:
//!
//! * An offered rate of small reads that needs at least as much of the storage was measured. If some
//!   I/Os are longer than a small read, its response time counts as many times.
//! * The storage is never slower than if it did one I/O at a time, each as long as the longest. That
//!   is a queue with one server: mean `T / (1 - u)`, and a quantile of it is the mean times
//!   `ln(1 / (1 - q))`. `T` is the time at the lowest load, or the time between two I/Os at the
//!   highest throughput if a limit makes that longer; `u` is the part of the storage that is used.

use super::answer::Answer;
use super::stream_objective::objective_in_words;
use crate::figures::quantity::{per_second, time};
use crate::point::backlog::RateMet;
use crate::search::at_load::AtLoad;
use crate::search::calibration::Calibration;
use rigel_model::{Measure, Objective};
use rigel_stats::estimate::Estimate;

/// The time of one I/O at the lowest load, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct TimeAlone {
    /// Its mean is at least this.
    pub(super) mean_low: f64,
    /// Its 99th percentile is at least this.
    pub(super) p99_low: f64,
    /// It is shorter than exponential times with this mean; `None` if that is not known.
    pub(super) high_us: Option<f64>,
}

impl TimeAlone {
    /// The time of an I/O that is at least as long as the one that was measured.
    pub(super) fn at_least(at: AtLoad) -> Self {
        let low = |of: Estimate| of.interval.map_or(0.0, |limits| limits.low);
        Self {
            mean_low: low(at.mean_us),
            p99_low: low(at.p99_us),
            high_us: None,
        }
    }

    /// The lower limit of the figure that an objective is about.
    fn least_us(self, objective: Objective) -> f64 {
        match objective.0 {
            Measure::Mean(_) => self.mean_low,
            Measure::Quantile(quantile, _) if quantile >= P99 => self.p99_low,
            _ => 0.0,
        }
    }
}

/// The quantile that every load was measured for.
const P99: f64 = 0.99;

/// The mean of exponential times that are nowhere shorter than those of this load, as far as mean,
/// p99 and p99.9 show it.
pub(super) fn exponential_us(at: AtLoad) -> Option<f64> {
    let mean = high(at.mean_us)?;
    let of_quantile = |us: Estimate, quantile: f64| us.greatest() / tail(quantile);
    Some(
        mean.max(of_quantile(at.p99_us, P99))
            .max(of_quantile(at.p999_us, 0.999)),
    )
}

/// A quantile of exponential times, in means.
fn tail(quantile: f64) -> f64 {
    -(1.0 - quantile).ln()
}

/// The upper limit of a figure, if it is known.
fn high(of: Estimate) -> Option<f64> {
    of.interval?.high
}

/// All that the storage does at the same time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StorageLoad {
    /// At most this part of the storage's time; `None` if that is not known.
    pub(super) used: Option<f64>,
    /// At least this many reads per second, each of at least the small size.
    pub(super) reads_per_s: f64,
    /// The longest I/O takes at most this long at the lowest load.
    pub(super) longest_us: Option<f64>,
    /// The longest I/O takes at most so many times as long as a small read.
    pub(super) longest_times: Option<f64>,
}

impl StorageLoad {
    /// No load.
    pub(super) const NONE: Self = Self {
        used: Some(0.0),
        reads_per_s: 0.0,
        longest_us: Some(0.0),
        longest_times: Some(1.0),
    };

    /// Both at the same time.
    pub(super) fn plus(self, other: Self) -> Self {
        let both =
            |one: Option<f64>, other: Option<f64>, of: fn(f64, f64) -> f64| Some(of(one?, other?));
        Self {
            used: both(self.used, other.used, |one, other| one + other),
            reads_per_s: self.reads_per_s + other.reads_per_s,
            longest_us: both(self.longest_us, other.longest_us, f64::max),
            longest_times: both(self.longest_times, other.longest_times, f64::max),
        }
    }
}

/// One kind of I/O that has to keep an objective.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JudgedStream {
    /// What it has to keep.
    pub(super) objective: Objective,
    /// The time of one of its I/Os at the lowest load.
    pub(super) alone: TimeAlone,
    /// I/Os per second that wait for each other; 0 for I/Os that do not.
    pub(super) serial_per_s: f64,
    /// True for reads of at least the small size, which take no less than small reads.
    pub(super) is_like_small_reads: bool,
}

/// Whether these I/Os keep their objective under `load`, which contains them unless they wait for
/// each other; and the figure that decides, in words.
pub(super) fn keeps(
    judged: &JudgedStream,
    load: StorageLoad,
    calibration: &Calibration,
) -> (Answer, String) {
    let objective = judged.objective;
    let (limit, name) = match objective.0 {
        Measure::Mean(limit) => (limit.as_micros_f64(), "mean"),
        Measure::Quantile(_, limit) => (limit.as_micros_f64(), "p99"),
        Measure::Max(_) | Measure::Rate(_) => {
            let words = format!("{} cannot be judged", objective_in_words(objective));
            return (Answer::Undecided, words);
        }
    };
    let least = judged.alone.least_us(objective);
    if least > limit {
        let words = format!("{name} is at least {} for one at a time", time(least));
        return (Answer::No, words);
    }
    if let Some(words) = broken(judged, load, limit, calibration) {
        return (Answer::No, words);
    }
    let bounds = [
        by_rates(judged, load, calibration),
        by_one_server(judged, load),
    ];
    let bound = bounds.into_iter().flatten().reduce(f64::min);
    match bound {
        Some(us) if us <= limit => (Answer::Yes, format!("{name} at most {}", time(us))),
        Some(us) if us.is_finite() => (
            Answer::Undecided,
            format!("{name} is certainly below {} only", time(us)),
        ),
        _ => (
            Answer::Undecided,
            format!("{name} is not known at this load"),
        ),
    }
}

/// The figure that an objective is about.
fn figure(at: AtLoad, objective: Objective) -> Option<Estimate> {
    match objective.0 {
        Measure::Mean(_) => Some(at.mean_us),
        Measure::Quantile(quantile, _) if (quantile - P99).abs() < 1e-9 => Some(at.p99_us),
        _ => None,
    }
}

/// The lowest offered rate up to that of `load` that was not served, or took longer than `limit`.
fn broken(
    judged: &JudgedStream,
    load: StorageLoad,
    limit: f64,
    calibration: &Calibration,
) -> Option<String> {
    let is_longer = |at: AtLoad| {
        let limits = figure(at, judged.objective).and_then(|of| of.interval);
        limits.is_some_and(|limits| limits.low > limit)
    };
    let mut lower = calibration
        .rates
        .iter()
        .filter(|_| judged.is_like_small_reads)
        .filter(|rate| rate.offered_per_s <= load.reads_per_s);
    let rate = lower.find(|rate| rate.met == RateMet::No || is_longer(rate.at))?;
    let reads = per_second(rate.offered_per_s);
    Some(if rate.met == RateMet::No {
        format!("{reads} were not served")
    } else {
        let us = figure(rate.at, judged.objective)?.value;
        format!("{reads} took {}", time(us))
    })
}

/// An upper bound by the offered rates that were measured: of the first that needs at least as much
/// of the storage as `load`.
fn by_rates(judged: &JudgedStream, load: StorageLoad, calibration: &Calibration) -> Option<f64> {
    if judged.serial_per_s > 0.0 {
        return None;
    }
    let needed = load.used? * calibration.maximum?.iops.least();
    let times = load.longest_times?;
    let served = calibration
        .rates
        .iter()
        .filter(|rate| rate.met == RateMet::Yes);
    served
        .filter(|rate| rate.offered_per_s >= needed)
        .filter_map(|rate| high(figure(rate.at, judged.objective)?))
        .map(|us| us * times)
        .reduce(f64::min)
}

/// An upper bound by a storage that does one I/O at a time.
fn by_one_server(judged: &JudgedStream, load: StorageLoad) -> Option<f64> {
    let (used, longest) = (load.used?, load.longest_us?);
    if used >= 1.0 {
        return None;
    }
    let wait = used / (1.0 - used) * longest;
    let is_serial = judged.serial_per_s > 0.0;
    // A writer that waits for its last write is busy while that waits for others.
    let own = judged.alone.high_us? + if is_serial { wait } else { 0.0 };
    let busy = judged.serial_per_s * own / 1e6;
    if busy >= 1.0 {
        return None;
    }
    let own = own / (1.0 - busy);
    match judged.objective.0 {
        Measure::Mean(_) => Some(own + if is_serial { 0.0 } else { wait }),
        Measure::Quantile(quantile, _) => {
            let beyond = 1.0 - quantile;
            // Half of what may be late is late by itself, half waits for others.
            let waits = (longest / (1.0 - used) * (2.0 * used / beyond).ln()).max(0.0);
            let apart = own * tail(1.0 - beyond / 2.0) + waits;
            let together = longest.max(own) / (1.0 - used) * tail(quantile);
            Some(if used <= 0.0 {
                own * tail(quantile)
            } else if is_serial {
                apart
            } else {
                apart.min(together)
            })
        }
        Measure::Max(_) | Measure::Rate(_) => None,
    }
}
