//! How much the storage varied between visits, and what that adds to every interval.
//!
//! A visit's own windows show how precise its figures are if the storage stays as it is during the
//! visit. Visits to the same point at different times show how much it changes meanwhile. That
//! variation is estimated from all points together, since each has few visits: a stall that one
//! point saw widens the intervals of all others, which might have seen it too.

use super::events::{Events, EventsSeen};
use super::summary::{ClassSummary, PointSummary, VisitFigures};
use super::visit_part::QUANTILES;
use crate::figures::confidence::Confidence;
use crate::figures::latency::LatencyFigure;
use crate::figures::quantile::limits_in_noise;
use rigel_model::{Coordinates, Step};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{Level, Limits, Mean, Spread, floor, t_quantile};
use rigel_stats::noise::{Deviation, Dispersion, Noise};
use serde::Serialize;

/// The noise of the closed loops of a run that were measured in visits.
#[derive(Debug, Clone, Copy)]
struct RunNoise {
    rate: Noise,
    dispersion: Dispersion,
    quantiles: [Option<Noise>; 3],
}

/// The dispersion of a load in all its visits, and its degrees of freedom.
fn dispersion(class: &ClassSummary) -> Option<(f64, f64)> {
    let parts = || class.parts.iter().map(|part| part.dispersion);
    let degrees: f64 = parts().map(|(_, degrees)| degrees).sum();
    let sum: f64 = parts().map(|(one, degrees)| one * degrees).sum();
    (degrees > 0.0).then_some((sum / degrees, degrees))
}

impl RunNoise {
    /// That of these loads; `None` if no load was visited twice.
    fn of<'a>(classes: impl Iterator<Item = &'a ClassSummary> + Clone) -> Option<Self> {
        let closed = classes.filter(|class| class.offered.is_none());
        let dispersions: Vec<(f64, f64)> = closed.clone().filter_map(dispersion).collect();
        let common = Dispersion::of(&dispersions)?;
        let noise = |of_load: &dyn Fn(&ClassSummary) -> Vec<Deviation>| {
            let loads: Vec<Vec<Deviation>> = closed.clone().map(of_load).collect();
            Noise::of(loads.iter().map(Vec::as_slice))
        };
        let rates = |class: &ClassSummary| {
            let own = common.of_load(dispersion(class));
            let rates = class.parts.iter().map(|part| Deviation {
                counted: own * part.rate.counted,
                ..part.rate
            });
            rates.collect()
        };
        let quantile = |at: usize| {
            noise(&|class| {
                let parts = class.parts.iter();
                parts.filter_map(|part| part.quantiles[at]).collect()
            })
        };
        Some(Self {
            rate: noise(&rates)?,
            dispersion: common,
            quantiles: [0, 1, 2].map(quantile),
        })
    }

    /// The intervals of a class in it, with this error; `None` of an open loop, and of one that was measured in one
    /// piece.
    fn confidence(&self, class: &ClassSummary, error: f64) -> Option<Confidence> {
        let visits = class.parts.len() as f64;
        let latency = class.latency?;
        if class.offered.is_some() || class.parts.is_empty() || class.iops <= 0.0 {
            return None;
        }
        let own = self.dispersion.of_load(dispersion(class));
        let counted = own / (class.done as f64 + 0.5);
        let spread = self.rate.of_mean(visits, counted);
        let mean = |value: f64| Mean {
            value,
            error: spread.error * value,
            effective_n: visits,
            degrees: spread.degrees,
        };
        let at = Level::one_look(error);
        let quantiles = [0, 1, 2].map(|at| {
            let noise = self.quantiles[at]?;
            let limits = limits_in_noise(&class.times, QUANTILES[at], (noise, visits), error)?;
            Some(limits.scaled(1e-3))
        });
        Some(Confidence {
            iops: mean(class.iops).at(at),
            // By Little's law a closed loop's mean response time varies as its throughput.
            mean_us: Some(mean(latency.mean_us).at(at)),
            p50_us: quantiles[0],
            p99_us: quantiles[1],
            p999_us: quantiles[2],
        })
    }
}

/// How much throughput varied from visit to visit, beyond what the visits' own windows explain.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Variation {
    /// Standard deviation between visits, as a fraction of the throughput.
    pub share: f64,
    /// Standard deviation between visits that their own windows explain, likewise.
    pub within: f64,
    /// Degrees of freedom: all visits, less one for each point.
    pub degrees: f64,
    /// The error of a mean over the run, likewise, if states of the storage last longer than a visit: more
    /// visits do not make it smaller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lasting: Option<Spread>,
}

impl Variation {
    /// The error that it alone gives to a single visit.
    pub fn of_a_visit(&self) -> Spread {
        Spread {
            error: self.share,
            degrees: self.degrees,
        }
    }

    /// True if chance within visits does not explain the variation: the ratio of the variances is
    /// more than three standard deviations above one.
    pub fn is_significant(&self) -> bool {
        const DEVIATIONS: f64 = 3.0;
        let ratio = 1.0 + (self.share / self.within).powi(2);
        ratio > 1.0 + DEVIATIONS * (2.0 / self.degrees).sqrt()
    }
}

/// The stalls that a load met, also those that began before a visit and have only their end in it: the windows
/// show that there was one, and the operations that waited how long it was.
pub fn stalls_met(class: &ClassSummary) -> Events {
    let lost = class.lost.unwrap_or_default();
    let mean = |of: &Events| of.seconds / of.times.max(1) as f64;
    let longest_s = class.longest_us().unwrap_or(0.0) / 1e6;
    let each_s = if class.stalls.is_none() {
        mean(&lost).max(longest_s)
    } else {
        mean(&class.stalls)
    };
    let mut met = Events::default();
    met.include(lost.times.max(class.stalls.times), each_s);
    met
}

/// Points whose visits vary alike: reads, or writes.
fn is_of_group(coordinates: Coordinates, writes: bool) -> bool {
    match coordinates.step() {
        Step::Depth | Step::Large | Step::Stream | Step::Rate | Step::Arm => !writes,
        Step::Write | Step::Log => writes,
        _ => false,
    }
}

/// The variation between visits of these points' closed loops: of reads, or of `writes`; `None` if
/// no point has two visits. The points must not be widened yet.
///
/// The component of variance between visits in a one-way analysis of variance, by the method of
/// moments, pooled over the points (Searle, Casella and `McCulloch`, Variance Components, 1992,
/// chapter 3). All variances are relative to the point's throughput. What makes visits at neighbouring times
/// alike, whatever their load, is a state of the storage.
pub fn variation(points: &[PointSummary], writes: bool) -> Option<Variation> {
    variation_of(points.iter(), writes)
}

fn variation_of<'a>(
    points: impl Iterator<Item = &'a PointSummary>,
    writes: bool,
) -> Option<Variation> {
    let (mut excess, mut all_within, mut degrees) = (0.0, 0.0, 0.0);
    let mut in_time = Vec::new();
    for point in points {
        let confidence = point.classes.first().and_then(|class| class.confidence);
        let Some(mean) = confidence
            .map(|confidence| confidence.iops)
            .filter(|mean| mean.value > 0.0 && is_of_group(point.coordinates, writes))
        else {
            continue;
        };
        let visits = point.visits.len() as f64;
        if visits < 2.0 || point.coordinates.rate().is_some() {
            continue;
        }
        let residual = |visit: &VisitFigures| visit.iops / mean.value - 1.0;
        let squares: f64 = point
            .visits
            .iter()
            .map(|visit| residual(visit).powi(2))
            .sum();
        // Around the mean of few visits they deviate less than around the truth.
        let deviation = |visit| residual(visit) * (visits / (visits - 1.0)).sqrt();
        let of_point = point.visits.iter();
        in_time.extend(of_point.map(|visit| (&visit.started, visit.began, deviation(visit))));
        let within = visits * (mean.error / mean.value).powi(2);
        excess += squares - (visits - 1.0) * within;
        all_within += (visits - 1.0) * within;
        degrees += visits - 1.0;
    }
    in_time.sort_by_key(|(started, began, _)| (*started, *began));
    let in_time: Vec<f64> = in_time.iter().map(|(.., deviation)| *deviation).collect();
    (degrees > 0.0).then(|| Variation {
        lasting: floor(&in_time),
        share: (excess / degrees).max(0.0).sqrt(),
        within: (all_within / degrees).sqrt(),
        degrees,
    })
}

/// Widens the intervals of all points by the variation between visits of their kind, and by the
/// stalls and slow phases that any of them met. A figure of `k` visits carries a `k`-th of the
/// variance between visits; one of a long time carries less of the stalls. Points that were widened
/// stay as they are.
pub fn widen(points: &mut [PointSummary]) {
    widen_at(points, Level::ONE_LOOK.error);
}

/// The same, where the intervals have this error.
pub fn widen_at(points: &mut [PointSummary], error: f64) {
    widen_beside(points, error, |_| true);
}

/// Widens the intervals of all points, and gives the variation of reads. If large ones ran on burst credit that
/// small ones did not use, what they varied says nothing of the others.
pub fn widen_reads(points: &mut [PointSummary], large_on_credit: bool) -> Option<Variation> {
    let is_large = |point: &PointSummary| {
        matches!(point.step(), Step::Large | Step::Stream) || point.coordinates.is_refill_of_large()
    };
    let counts = |point: &PointSummary| !large_on_credit || !is_large(point);
    let variation = variation_of(points.iter().filter(|point| counts(point)), false);
    widen_beside(points, Level::ONE_LOOK.error, counts);
    variation
}

/// Widens by the variation and the events of those points of which `counts` is true.
fn widen_beside(points: &mut [PointSummary], error: f64, counts: impl Fn(&PointSummary) -> bool) {
    // An error is written as that of an interval of 95 %.
    let wider =
        |degrees: f64| Level::one_look(error).errors(degrees, degrees + 1.0) / t_quantile(degrees);
    if points.iter().any(|point| point.is_widened) {
        return;
    }
    for writes in [false, true] {
        let variation = variation_of(points.iter().filter(|point| counts(point)), writes);
        let own = |point: &&PointSummary| counts(point) && is_of_group(point.coordinates, writes);
        let classes = points.iter().filter(own).flat_map(|point| &point.classes);
        let noise = RunNoise::of(classes);
        let mut evidence = EventsSeen::default();
        for point in points.iter().filter(|point| counts(point)) {
            let is_closing = is_closing(point, writes);
            if is_closing || is_of_group(point.coordinates, writes) {
                let Some(class) = point.classes.first() else {
                    continue;
                };
                evidence.include(&stalls_met(class), point.measured_s);
            }
        }
        for point in points.iter_mut() {
            let is_closing = is_closing(point, writes);
            if !is_closing && !is_of_group(point.coordinates, writes) {
                continue;
            }
            // A closing measurement lasts longer than the changes that visits show.
            let added = variation.filter(|_| !is_closing).map(|variation| Spread {
                error: wider(variation.degrees) * variation.share
                    / (point.visits_made() as f64).sqrt(),
                degrees: variation.degrees,
            });
            let degrees = evidence.degrees().max(1.0);
            let at_least = Spread {
                error: wider(degrees) * evidence.error_over(point.measured_s),
                degrees,
            };
            for class in &mut point.classes {
                let known = noise.filter(|_| !is_closing);
                match known.and_then(|noise| noise.confidence(class, error)) {
                    Some(known) => {
                        class.confidence = Some(known);
                        widen_class(class, None, at_least);
                    }
                    None => widen_class(class, added, at_least),
                }
            }
            point.is_widened = true;
        }
    }
}

/// True if this is a closing measurement of reads, or of `writes`.
fn is_closing(point: &PointSummary, writes: bool) -> bool {
    match point.coordinates {
        Coordinates::ClosingDepth { .. } => !writes,
        Coordinates::ClosingWrite { .. } => writes,
        at => !writes && at.is_without_pause(true),
    }
}

fn widen_class(class: &mut ClassSummary, added: Option<Spread>, at_least: Spread) {
    let Some(known) = &mut class.confidence else {
        return;
    };
    let widened = |mean: Mean| {
        let mean = added.map_or(mean, |added| mean.with_error(added));
        // The point's own error includes the stalls that it met.
        if at_least.error * mean.value > mean.error {
            Mean {
                error: at_least.error * mean.value,
                degrees: at_least.degrees,
                ..mean
            }
        } else {
            mean
        }
    };
    let (latency, degrees) = (class.latency, known.iops.degrees);
    let limits = |figure, limits: Option<Limits>| {
        let known = Estimate::new(latency?.get(figure), limits).with_degrees(degrees);
        added
            .map_or(known, |added| known.with_error(added))
            .interval
    };
    *known = Confidence {
        // An open loop's throughput is what it was offered.
        iops: if class.offered.is_some() {
            known.iops
        } else {
            widened(known.iops)
        },
        mean_us: known.mean_us.map(widened),
        p50_us: limits(LatencyFigure::P50, known.p50_us),
        p99_us: limits(LatencyFigure::P99, known.p99_us),
        p999_us: limits(LatencyFigure::P999, known.p999_us),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::reads_of_a_millisecond;
    use crate::point::events::Events;
    use crate::point::summary::summarise;

    /// The relative error of a measurement of 10 s at depth 2, where one at depth 1 met these events.
    fn error_beside(lost: Events, stalls: Events) -> f64 {
        let points = [1, 2].map(|depth| {
            let mut point = summarise(&reads_of_a_millisecond());
            point.coordinates = Coordinates::at_depth(depth);
            point
        });
        let [mut met, mut other] = points;
        (met.classes[0].lost, met.classes[0].stalls) = (Some(lost), stalls);
        other.classes[0].lost = Some(Events::default());
        let mut points = [met, other];
        widen(&mut points);
        let iops = points[1].classes[0].confidence.unwrap().iops;
        iops.error / iops.value
    }

    fn one(seconds: f64) -> Events {
        Events {
            times: 1,
            seconds,
            squares: seconds * seconds,
            ..Events::default()
        }
    }

    #[test]
    fn a_stall_counts_with_its_length_however_little_of_it_lies_in_a_visit() {
        let none = Events::default();
        let error = error_beside(one(0.4), one(3.0));
        // One event of 3 s in 20 s, over 10 s.
        let expected = (3.0f64 * 3.0 / 20.0 / 10.0).sqrt();
        assert!((error / expected - 1.0).abs() < 1e-9, "{error}");
        // A slow phase, in which operations went on.
        assert!((error_beside(one(3.0), none) / expected - 1.0).abs() < 1e-9);
        assert!(error_beside(none, none) < 1e-3);
    }
}
