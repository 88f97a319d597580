//! The maximum throughput of large reads.
//!
//! Input: the points of a calibration and its token buckets. Output: the figure that lasts. A visit of the
//! search is short beside the credit of a bucket of bytes, so that the closing measurement decides: large reads
//! that went on without a pause until they were no slower than before.

use super::at_load::AtLoad;
use super::bucket::{Buckets, LARGE_VARIES, TokenBucket, is_same_rate};
use super::closing::{differ_by, differs, together};
use crate::point::summary::PointSummary;
use crate::point::visits::Variation;
use rigel_model::{Figure, Finding, Ratio, Step};
use rigel_stats::estimate::Estimate;

/// The closing measurement may be lower than the search by this fraction, and higher by any: each depth is
/// searched for few seconds, and what is missed is credit, which is far more.
const ALIKE: Ratio = Ratio::from_parts_per_million(100_000);

/// The closing measurement decides alone if the interval of the search is this many times as wide.
const VAGUE: f64 = 3.0;

/// Large random reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct LargeReads {
    /// At the depth of their maximum, at the rate that lasts.
    pub(super) maximum: AtLoad,
    /// The search and the closing measurement, if they differ.
    missed: Option<(AtLoad, AtLoad)>,
    /// Megabytes per second, if the closing measurement and others did as many, whatever their depth.
    pub(super) level_mb_per_s: Option<Estimate>,
}

impl LargeReads {
    /// Those of these points; `None` if there are none. If burst credit ran out during the run, `on_credit`, this is
    /// why a closing measurement is lower.
    pub(super) fn of(
        points: &[PointSummary],
        buckets: &Buckets,
        variation: Option<Variation>,
        on_credit: bool,
    ) -> Option<Self> {
        if let Some(bucket) = buckets.large {
            return drained(points, bucket, true).map(Self::lasting);
        }
        let searched = points.iter().filter(|point| point.step() == Step::Large);
        let searched = searched.filter_map(|point| Some((point, point.classes.first()?)));
        let greatest = searched
            .clone()
            .max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
        let maximum = greatest.and_then(|(point, class)| AtLoad::of(point, class))?;
        // A bucket of operations counts those of any size: large ones that fell to its rate had no credit left, and
        // faster ones have.
        let held = buckets.operations.filter(|bucket| {
            let lasts = bucket.sustained_per_s.value;
            searched
                .clone()
                .any(|(_, class)| class.iops > lasts || is_same_rate(class.iops, lasts))
        });
        if let Some(bucket) = held {
            return Some(Self::lasting(maximum.with_rate(bucket.sustained_per_s)));
        }
        let closed = Self::closed(points, maximum, variation, on_credit);
        Some(closed.unwrap_or_else(|| Self::lasting(maximum)))
    }

    fn lasting(maximum: AtLoad) -> Self {
        Self {
            maximum,
            missed: None,
            level_mb_per_s: None,
        }
    }

    /// What the search, of which `maximum` is the greatest, and the closing measurement show together; `None` without
    /// a closing measurement.
    fn closed(
        points: &[PointSummary],
        maximum: AtLoad,
        variation: Option<Variation>,
        on_credit: bool,
    ) -> Option<Self> {
        let at = |point: &PointSummary| AtLoad::of(point, point.classes.first()?);
        let closing = last_without_pause(points, true)?;
        let depth = closing.coordinates.outstanding();
        let is_own = |point: &&PointSummary| {
            point.step() == Step::Large && point.coordinates.outstanding() == depth
        };
        let own = points.iter().find(is_own)?;
        let drains: Vec<&PointSummary> = lasting_without_pause(points);
        let seconds = [
            own.measured_s,
            drains.iter().map(|drain| drain.measured_s).sum(),
        ];
        let rates: Vec<f64> = drains.iter().copied().filter_map(rate_from_cold).collect();
        let (own, closing) = (at(own)?, at(closing)?);
        let closing = Estimate::of_values(&rates).map_or(closing, |lasting| {
            closing.with_rate(lasting.with_least_error())
        });
        let pair = (own, closing);
        let is_missed = closing.iops.value < own.iops.value && differ_by(ALIKE, &pair);
        // Long visits hide most of the credit with which each begins.
        let is_vague = match (own.iops.precision(), closing.iops.precision()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(closing)) => own > VAGUE * closing,
        };
        let lasts = if is_missed || is_vague {
            closing
        } else {
            together(own, closing, seconds, variation)
        };
        let maximum = match is_missed {
            true if !on_credit => closing.with_rate(closing.iops.covering(own.iops)),
            // Which of several depths was the fastest may be chance, and is known of this one best.
            false if !is_vague && maximum.iops.least() > lasts.iops.greatest() => maximum,
            _ => lasts,
        };
        let alike = points.iter().filter(|point| {
            matches!(point.step(), Step::Large | Step::Stream)
                && point
                    .classes
                    .first()
                    .is_some_and(|class| is_same_rate(class.iops, lasts.iops.value))
        });
        Some(Self {
            maximum,
            missed: Some(pair).filter(|_| is_missed && !on_credit),
            level_mb_per_s: Some(lasts.mb_per_s).filter(|_| alike.count() > 1),
        })
    }

    /// Says that the closing measurement differs, if it does.
    pub(super) fn differs(&self) -> Option<Finding> {
        differs(("large reads", Figure::MaxThroughput), self.missed.as_ref())
    }
}

/// The large reads that went on without a pause, from where they were not much faster than at the end. The first begin
/// with what credit the pause before them brought.
fn lasting_without_pause(points: &[PointSummary]) -> Vec<&PointSummary> {
    let rate = |point: &PointSummary| point.classes.first().map_or(0.0, |class| class.iops);
    let drains = || {
        points
            .iter()
            .rev()
            .filter(|point| point.coordinates.is_without_pause(true))
    };
    let last = drains().next().map_or(0.0, rate);
    let later = drains().count().saturating_sub(1);
    drains()
        .take(later.max(1))
        .take_while(|drain| rate(drain) <= LARGE_VARIES * last)
        .collect()
}

/// The rate of a measurement from its first operation on: all that are outstanding are due at its very beginning.
fn rate_from_cold(point: &PointSummary) -> Option<f64> {
    let class = point.classes.first()?;
    let later = class.done.checked_sub(class.outstanding.into())?;
    Some(later as f64 / point.measured_s).filter(|rate| *rate > 0.0)
}

/// The last small or `large` reads that went on without a pause.
fn last_without_pause(points: &[PointSummary], large: bool) -> Option<&PointSummary> {
    points
        .iter()
        .rfind(|point| point.coordinates.is_without_pause(large))
}

/// The last reads without credit and without a pause before them, at the rate that lasts.
pub(super) fn drained(points: &[PointSummary], bucket: TokenBucket, large: bool) -> Option<AtLoad> {
    let point = last_without_pause(points, large)?;
    let at_load = AtLoad::of(point, point.classes.first()?)?;
    Some(at_load.with_rate(bucket.sustained_per_s))
}
