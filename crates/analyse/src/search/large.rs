//! The maximum throughput of large reads.
//!
//! Input: the points of a calibration and its token buckets. Output: the figure that lasts. A visit of the
//! search is short beside the credit of a bucket of bytes, so that the closing measurement decides: large reads
//! that went on without a pause until they were no slower than before.

use super::at_load::AtLoad;
use super::bucket::{Buckets, TokenBucket, is_same_rate};
use super::closing::{differ_by, differs, together};
use crate::point::summary::{ClassSummary, PointSummary};
use crate::point::visits::Variation;
use rigel_model::{Finding, Ratio, Step};
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
        let lasting = |maximum| Self {
            maximum,
            missed: None,
            level_mb_per_s: None,
        };
        if let Some(bucket) = buckets.large {
            return drained(points, bucket, true).map(lasting);
        }
        let searched = points.iter().filter(|point| point.step() == Step::Large);
        let searched = searched.filter_map(|point| Some((point, point.classes.first()?)));
        let at = |(point, class): (&PointSummary, &ClassSummary)| AtLoad::of(point, class);
        let greatest = searched
            .clone()
            .max_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops));
        let maximum = greatest.and_then(at)?;
        // A bucket of operations counts those of any size: large ones that fell to its rate had no credit left, and
        // faster ones have.
        if let Some(bucket) = buckets.operations {
            let lasts = bucket.sustained_per_s;
            let is_held = |rate: f64| rate > lasts.value || is_same_rate(rate, lasts.value);
            if searched.clone().any(|(_, class)| is_held(class.iops)) {
                return Some(lasting(maximum.with_rate(lasts)));
            }
        }
        let closing = last_without_pause(points, true);
        let own = closing.and_then(|closing| {
            let depth = closing.coordinates.outstanding();
            let mut own = searched.filter(|(point, _)| point.coordinates.outstanding() == depth);
            Some((own.next()?, (closing, closing.classes.first()?)))
        });
        let Some((own, closing)) = own else {
            return Some(lasting(maximum));
        };
        let seconds = [own.0.measured_s, closing.0.measured_s];
        let (own, closing) = (at(own)?, at(closing)?);
        let pair = (own, closing);
        let is_missed = closing.iops.value < own.iops.value && differ_by(ALIKE, &pair);
        if is_missed && on_credit {
            return Some(lasting(closing));
        }
        if is_missed {
            return Some(Self {
                maximum: closing.with_rate(closing.iops.covering(own.iops)),
                missed: Some(pair),
                level_mb_per_s: None,
            });
        }
        // Long visits hide most of the credit with which each begins.
        let is_vague = match (own.iops.precision(), closing.iops.precision()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(own), Some(closing)) => own > VAGUE * closing,
        };
        if is_vague {
            return Some(lasting(closing));
        }
        // Which of several depths was the fastest may be chance, and is known of this one best.
        let both = together(own, closing, seconds, variation);
        let is_best = maximum.iops.least() <= both.iops.greatest();
        let alike = points.iter().filter(|point| {
            matches!(point.step(), Step::Large | Step::Stream)
                && point
                    .classes
                    .first()
                    .is_some_and(|class| is_same_rate(class.iops, both.iops.value))
        });
        Some(Self {
            level_mb_per_s: Some(both.mb_per_s).filter(|_| alike.count() > 1),
            ..lasting(if is_best { both } else { maximum })
        })
    }

    /// Says that the closing measurement differs, if it does.
    pub(super) fn differs(&self) -> Option<Finding> {
        differs("large reads", self.missed.as_ref())
    }
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
