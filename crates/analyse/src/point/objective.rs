//! Whether a class of operations keeps the objective that its point was asked to keep.

use crate::figures::confidence::{BoundCheck, Confidence};
use rigel_model::record::{PointRecord, StreamRecord};
use rigel_model::{Measure, Nanos, Objective};
use rigel_stats::estimate::Estimate;
use rigel_stats::verdict::{BoundVerdict, Wanted};
use serde::Serialize;

/// What a class must keep, and whether it does.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ObjectiveVerdict {
    /// The limit.
    pub objective: Objective,
    /// Whether it is kept, by the 95 % interval of the figure.
    pub verdict: BoundVerdict,
    /// True if the measured operations keep it, whether certain or not.
    pub kept: bool,
}

impl ObjectiveVerdict {
    /// Judges the figures of a class: `within` is the check of an objective that is a bound,
    /// `measured` are the mean and the maximum response time in microseconds. The maximum has no
    /// interval: what was measured decides.
    pub(super) fn of(
        objective: Objective,
        within: Option<BoundCheck>,
        confidence: Option<Confidence>,
        measured: Option<[f64; 2]>,
    ) -> Self {
        let is_below = |at: usize, limit: Nanos| {
            measured.is_some_and(|measured| measured[at] <= limit.as_micros_f64())
        };
        let (verdict, kept) = match objective.0 {
            Measure::Quantile(..) => within.map_or((BoundVerdict::Undecided, false), |within| {
                (within.verdict, within.kept)
            }),
            Measure::Mean(limit) => {
                let mean = confidence.and_then(|known| known.mean_us);
                let most = Wanted::AtMost(limit.as_micros_f64());
                let verdict = mean.map_or(BoundVerdict::Undecided, |mean| {
                    Estimate::from(mean).against(most)
                });
                (verdict, is_below(0, limit))
            }
            Measure::Max(limit) => {
                let met = is_below(1, limit);
                let verdict = match (measured, met) {
                    (None, _) => BoundVerdict::Undecided,
                    (Some(_), true) => BoundVerdict::Kept,
                    (Some(_), false) => BoundVerdict::Broken,
                };
                (verdict, met)
            }
            // That is an objective of a round; whether a stream's rate is served is judged anyway.
            Measure::Rate(_) => (BoundVerdict::Undecided, false),
        };
        Self {
            objective,
            verdict,
            kept,
        }
    }
}

/// The objective that the streams of a class were asked to keep.
pub(super) fn objective_of(stream: &StreamRecord, record: &PointRecord) -> Option<Objective> {
    let asked = record.asked.as_ref()?;
    let asked = asked.streams.iter().find(|asked| asked.name == stream.name);
    asked?.objective
}
