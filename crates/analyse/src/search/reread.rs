//! Reading again after the sweep: did parts that had just been read answer faster than others?
//!
//! Input: the summaries of the parts, in pairs. Output: the ratio of their mean response times, with
//! its interval, and an answer: a cache was seen, was not seen, or it is undecided.
//!
//! A cache that holds all of the target, or nothing of it, makes no difference between parts. So
//! "not seen" does not say that there is none.

use crate::point::summary::PointSummary;
use rigel_model::Coordinates;
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{Interval, Limits};
use serde::Serialize;

/// A cache was seen if other parts took longer by more than this factor: the order in which a disk
/// reads neighbours makes differences of a few percent.
const SLOWER: f64 = 1.2;

/// Minimum number of pairs.
const PAIRS_MIN: usize = 3;

/// Response times of parts that had just been read, and of others, at depth 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct RereadTest {
    /// Bytes of each part.
    pub part_bytes: u64,
    /// Number of pairs of parts.
    pub pairs: usize,
    /// Mean response time of parts that had just been read: the geometric mean over the pairs.
    pub just_read_us: f64,
    /// The same of other parts.
    pub other_us: f64,
    /// The second over the first.
    pub ratio: f64,
    /// 95 % interval of the ratio: Student's t on the logarithms of the pairs' ratios.
    pub ratio_interval: Interval,
    /// True if other parts certainly took longer by more than a fifth, false if they certainly did
    /// not; `None` if neither is certain.
    pub is_cached: Option<bool>,
}

impl RereadTest {
    /// The test of a run; `None` if it has fewer than three complete pairs.
    pub(super) fn of(points: &[PointSummary]) -> Option<Self> {
        let mean_of = |wanted: u32, again: bool| {
            points.iter().find_map(|point| match point.coordinates {
                Coordinates::Reread {
                    pair,
                    bytes,
                    just_read,
                } if pair == wanted && just_read == again => {
                    let class = point
                        .classes
                        .first()
                        .filter(|class| class.failed.is_empty())?;
                    Some((bytes, class.latency?.mean_us))
                }
                _ => None,
            })
        };
        let numbers = points.iter().filter_map(|point| match point.coordinates {
            Coordinates::Reread {
                pair,
                just_read: true,
                ..
            } => Some(pair),
            _ => None,
        });
        let pairs: Vec<_> = numbers
            .filter_map(|pair| Some((mean_of(pair, true)?, mean_of(pair, false)?)))
            .collect();
        if pairs.len() < PAIRS_MIN {
            return None;
        }
        let values = pairs.iter().map(|((_, one), (_, other))| (*one, *other));
        let (just_read, others): (Vec<f64>, Vec<f64>) = values.unzip();
        let both = just_read.iter().zip(&others);
        let ratios: Vec<f64> = both.map(|(one, other)| other / one).collect();
        let ratio = Estimate::of_values(&ratios)?;
        let ratio_interval = ratio.interval.and_then(Limits::both)?;
        Some(Self {
            part_bytes: pairs[0].0.0,
            pairs: pairs.len(),
            just_read_us: Estimate::of_values(&just_read)?.value,
            other_us: Estimate::of_values(&others)?.value,
            ratio: ratio.value,
            ratio_interval,
            is_cached: if ratio_interval.low > SLOWER {
                Some(true)
            } else if ratio_interval.high < SLOWER {
                Some(false)
            } else {
                None
            },
        })
    }
}
