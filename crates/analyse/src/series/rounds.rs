//! One round of a series of hours or days, reduced to the figures that are compared with other
//! rounds.
//!
//! A soak's journal holds thousands of whole records. Each is reduced to a [`Round`] as it is read,
//! so that a report of a week holds only one record at a time. Rounds are made from other tools'
//! figures, too.

use crate::figures::confidence::BoundCheck;
use crate::figures::latency::LatencySummary;
use crate::figures::quantity::rounded_percent;
use crate::point::load::{device_loads, host_load};
use crate::search::run_checks::is_stalled;
use rigel_model::record::{End, PointRecord, StreamRecord, Window};
use rigel_model::{Bound, Coordinates, Measure, Moment, Objective, Sample, Until};
use serde::Serialize;

/// One round. Times in microseconds; `None` means unknown.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Round {
    /// Number of the round, from 1. Missing numbers are skipped rounds.
    pub number: u32,
    /// Start of the measurement.
    pub begin: Moment,
    /// Measured time in seconds.
    pub seconds: f64,
    /// Completed operations.
    pub done: f64,
    /// Failed operations.
    pub failed: u64,
    /// Operations that were offered and never began.
    pub unserved: u64,
    /// Requested operations, if the work is fixed.
    pub asked: Option<u64>,
    /// Operations per second that were due; `None` of a closed loop.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered_per_s: Option<f64>,
    /// Operations per second; for other tools' figures, their values. `None` if nothing was
    /// measured.
    pub rate: Option<f64>,
    /// Response times.
    #[serde(flatten)]
    pub latency: LatencySummary<Option<f64>>,
    /// How it ended.
    pub end: RoundEnd,
    /// Result of each objective, in their order.
    pub kept: Vec<ObjectiveCheck>,
    /// Load of the host and its disks during the round; `None` if unknown.
    pub host: Option<RoundHost>,
}

/// How a round ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RoundEnd {
    /// As planned, with all work done.
    Whole,
    /// The time limit came before the work was done.
    Cut,
    /// The user stopped it.
    Stopped,
    /// It could not be measured, or not to its end.
    Broken(String),
}

/// Result of an objective in a round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ObjectiveCheck {
    /// True if it was kept. A broken round keeps none. `None` if operations of a closed loop kept it that
    /// sent none while others stood still: who arrives then waits, and is not counted.
    pub kept: Option<bool>,
    /// Fraction of operations within it; `None` if the objective is not about single operations.
    pub share: Option<f64>,
}

/// Load of the host and its busiest disk in a round, as fractions of 1.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RoundHost {
    /// The busiest of the target's disks; `None` if there is none.
    pub device: Option<String>,
    /// Fraction of time it was busy.
    pub device_busy: Option<f64>,
    /// Mean number of I/Os in its queue.
    pub queue: Option<f64>,
    /// Fraction of the CPUs in use.
    pub cpu_busy: f64,
    /// Fraction of CPU time taken by the hypervisor.
    pub stolen: f64,
    /// Fraction of time in which some task waited for I/O; `None` if the kernel does not count it.
    pub io_pressure: Option<f64>,
    /// Megabytes (10^6) per second that the disks moved beyond the round's own requests.
    pub others_mb_per_s: Option<f64>,
}

impl Round {
    /// True if its rate is usable: it was measured to its end or to its time limit.
    pub fn counts(&self) -> bool {
        self.rate.is_some() && matches!(self.end, RoundEnd::Whole | RoundEnd::Cut)
    }

    /// True if a part of what was offered never began, or all of a fixed work took longer than it was due: less is
    /// served than is offered.
    pub fn is_overloaded(&self) -> bool {
        const PART: f64 = 0.01;
        /// Standard deviations of a Poisson count.
        const DEVIATIONS: f64 = 4.0;
        let offered = self.offered_per_s.filter(|_| self.asked.is_some());
        let late = offered.map_or(0.0, |offered| offered * self.seconds - self.done);
        self.unserved as f64 > PART * self.done
            || late > PART * self.done + DEVIATIONS * self.done.sqrt()
    }

    /// Its rate, if that is usable.
    pub fn counted_rate(&self) -> Option<f64> {
        self.rate.filter(|_| self.counts())
    }

    /// True if it kept the objective at `index`; `None` if unknown. A broken round kept none, and a
    /// stopped one says nothing.
    pub fn has_kept(&self, index: usize) -> Option<bool> {
        match self.end {
            RoundEnd::Broken(_) => Some(false),
            RoundEnd::Stopped => None,
            RoundEnd::Whole | RoundEnd::Cut => self.kept.get(index)?.kept,
        }
    }

    /// Number of skipped rounds between `before`, or the beginning, and this one.
    pub fn missing_after(&self, before: Option<&Round>) -> u32 {
        self.number
            .saturating_sub(before.map_or(0, |before| before.number))
            .saturating_sub(1)
    }

    /// The end of the measurement.
    #[expect(clippy::cast_possible_truncation, reason = "float casts saturate")]
    pub fn finish(&self) -> Moment {
        self.begin.plus_seconds(self.seconds.round() as i64)
    }
}

/// The smallest share that is shown: none is exactly zero.
pub(super) const LEAST_SHOWN: f64 = 0.001;

/// The share of a series' time in which something was measured; `None` if that is most of it, and without
/// rounds.
pub(super) fn measured_share<'a>(rounds: impl Iterator<Item = &'a Round> + Clone) -> Option<f64> {
    const PAUSED: f64 = 0.9;
    let (first, last) = (rounds.clone().next()?, rounds.clone().last()?);
    let measured: f64 = rounds.map(|round| round.seconds).sum();
    let share = measured / last.finish().since(first.begin) as f64;
    (share < PAUSED).then_some(share)
}

/// The same in words.
pub(super) fn measured_part<'a>(rounds: impl Iterator<Item = &'a Round> + Clone) -> Option<String> {
    measured_share(rounds).map(|share| rounded_percent(share.max(LEAST_SHOWN)))
}

/// The round of a record. Only the first class counts. `None` if the record is not a round or has
/// no valid start time.
pub fn round(record: &PointRecord, objectives: &[Objective]) -> Option<Round> {
    let Coordinates::Round { round: number, .. } = record.coordinates else {
        return None;
    };
    numbered_round(number, record, objectives)
}

/// The figures of any point, as those of round `number`. `None` if its start is not a time.
pub fn numbered_round(
    number: u32,
    record: &PointRecord,
    objectives: &[Objective],
) -> Option<Round> {
    let begin: Moment = record.started.parse().ok()?;
    let stream = record.streams.first();
    let total = stream
        .map(rigel_model::record::StreamRecord::total)
        .unwrap_or_default();
    let unserved: u64 = stream.map_or(0, |stream| stream.unserved.iter().sum());
    let seconds = record.measured.as_secs_f64();
    let asked = record.asked.as_ref().and_then(|point| match point.until {
        Until::Ops(ops) | Until::Work { ops, .. } => Some(ops),
        Until::Elapsed(_) | Until::Precise { .. } => None,
    });
    let over = total.done + total.failures();
    let end = match &record.end {
        End::Complete if asked.is_some_and(|asked| over < asked) => RoundEnd::Cut,
        End::Complete => RoundEnd::Whole,
        End::Stopped => RoundEnd::Stopped,
        End::Broken(why) => RoundEnd::Broken(why.clone()),
    };
    let is_broken = matches!(end, RoundEnd::Broken(_));
    // The operations before a round broke may be fast, but a broken round has no figures and keeps
    // no objective.
    let rate =
        (seconds > 0.0 && !is_broken).then(|| stream.map_or(0.0, |stream| record.rate_of(stream)));
    let of = |objective: &Objective| {
        let check = kept(*objective, &total, unserved, rate);
        let is_hidden =
            || stream.is_some_and(|stream| hides_waiting(*objective, stream, &total, seconds));
        ObjectiveCheck {
            kept: match check.kept {
                _ if is_broken => Some(false),
                Some(true) if is_hidden() => None,
                kept => kept,
            },
            ..check
        }
    };
    let latency = LatencySummary::of(&total.response).filter(|_| !is_broken);
    Some(Round {
        number,
        begin,
        seconds,
        done: total.done as f64,
        failed: total.failures(),
        unserved,
        asked,
        offered_per_s: stream.and_then(StreamRecord::offered_per_s),
        rate,
        latency: latency.into(),
        kept: objectives.iter().map(of).collect(),
        end,
        host: host(record),
    })
}

fn kept(
    Objective(measure): Objective,
    total: &Window,
    unserved: u64,
    rate: Option<f64>,
) -> ObjectiveCheck {
    let missed = unserved + total.failures();
    let whole = |kept| ObjectiveCheck {
        kept: Some(kept && total.done > 0 && missed == 0),
        share: None,
    };
    match measure {
        Measure::Quantile(quantile, latency) => {
            let within = BoundCheck::of(
                &total.response.histogram,
                missed,
                Bound { latency, quantile },
            );
            ObjectiveCheck {
                kept: Some(within.kept),
                share: Some(within.share),
            }
        }
        Measure::Mean(limit) => whole(total.response.sum <= limit.0.saturating_mul(total.done)),
        Measure::Max(limit) => whole(total.response.max <= limit.0),
        Measure::Rate(least) => ObjectiveCheck {
            kept: Some(rate.is_some_and(|rate| rate >= least)),
            share: None,
        },
    }
}

/// True if operations of a closed loop took so much longer than the others, and so much of the time, that
/// those who arrive by themselves may have waited beyond the objective, one in `1 - quantile` or in the mean:
/// for as long as all stand still, a closed loop sends none.
fn hides_waiting(
    Objective(measure): Objective,
    stream: &StreamRecord,
    total: &Window,
    seconds: f64,
) -> bool {
    if stream.is_open() {
        return false;
    }
    let times = &total.response.histogram;
    let p99_us = times.quantile(0.99).map_or(0.0, |band| band.middle() / 1e3);
    let waiting = times
        .buckets()
        .map(|(low, high, count)| (low.midpoint(high), count as f64))
        .filter(|(middle, _)| is_stalled(*middle as f64 / 1e3, p99_us));
    let of_slots = stream.slots().max(1) as f64 * seconds;
    match measure {
        Measure::Quantile(quantile, limit) => {
            let beyond_s =
                waiting.map(|(middle, count)| middle.saturating_sub(limit.0) as f64 / 1e9 * count);
            beyond_s.sum::<f64>() / of_slots > 1.0 - quantile
        }
        Measure::Mean(limit) => {
            // Who arrives while all stand still waits for half of it on average.
            let waited_s =
                waiting.map(|(middle, count)| (middle as f64 / 1e9).powi(2) / 2.0 * count);
            let mean_s = total.response.sum as f64 / 1e9 / total.done.max(1) as f64;
            mean_s + waited_s.sum::<f64>() / of_slots > limit.as_secs_f64()
        }
        Measure::Max(_) | Measure::Rate(_) => false,
    }
}

fn host(record: &PointRecord) -> Option<RoundHost> {
    let (first, last) = (record.samples.first()?, record.samples.last()?);
    let load = host_load(first, last);
    let devices = device_loads(first, last);
    let busiest = devices
        .iter()
        .max_by(|(_, one), (_, other)| one.busy.total_cmp(&other.busy));
    let seconds = last.at.since(first.at).as_secs_f64();
    let moved = |sample: &Sample| -> u64 {
        sample
            .devices
            .values()
            .map(|device| (device.read_sectors + device.write_sectors) * 512)
            .sum()
    };
    let asked: u64 = record
        .streams
        .iter()
        .filter(|stream| stream.sql.is_none())
        .map(|stream| (stream.done() + stream.warm_up_done) * u64::from(stream.length))
        .sum();
    let is_raw = record.streams.iter().all(|stream| stream.sql.is_none());
    let others = moved(last)
        .saturating_sub(moved(first))
        .saturating_sub(asked);
    Some(RoundHost {
        device: busiest.map(|(name, _)| name.clone()),
        device_busy: busiest.map(|(_, load)| load.busy),
        queue: busiest.map(|(_, load)| load.queue),
        cpu_busy: load.busy,
        stolen: load.stolen,
        io_pressure: load.io_pressure,
        others_mb_per_s: (is_raw && !devices.is_empty() && seconds > 0.0)
            .then(|| others as f64 / 1e6 / seconds),
    })
}
