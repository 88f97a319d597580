//! Stalls per minute, and the share of time in which the storage stood still.
//!
//! Input: the stalls in each point of each run. Output: two rows. All points count together, of
//! whatever load: a point is too short to see an event that comes every ten seconds, a whole run
//! is not.

use super::counts::{CountPair, dispersion};
use super::difference::Change;
use super::row::{Row, of_several};
use super::side::Side;
use super::subject::{Scope, Subject};
use crate::figures::quantity::Unit;
use crate::point::events::EventsSeen;
use crate::point::summary::PointSummary;
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{Spread, t_quantile};

/// Name of the row of stalls per minute.
pub(super) const STALLS: &str = "stalls per minute";

/// Name of the row of the share of time.
pub(super) const STOOD_STILL: &str = "time stood still";

/// Both rows; empty unless every run has points whose stalls are known.
pub(super) fn rows(sides: &[Side]) -> Vec<Row> {
    let all: Vec<Vec<EventsSeen>> = sides
        .iter()
        .map(|side| side.runs.iter().map(|run| sum(&seen_in(run))).collect())
        .collect();
    let mut runs = all.iter().flatten();
    if !runs.all(|run| run.seconds > 0.0) {
        return Vec::new();
    }
    let totals: Vec<EventsSeen> = all.iter().map(|runs| sum(runs)).collect();
    let row = |name: &str, unit, value: &dyn Fn(&EventsSeen) -> f64| {
        let figure = |one: &EventsSeen| Some(Estimate::from(value(one)));
        let of_runs = all.iter().map(|runs| runs.iter().map(figure).collect());
        Row {
            name: name.into(),
            unit,
            headline: true,
            scope: Scope::All,
            figures: totals.iter().map(figure).collect(),
            runs: of_several(sides, of_runs.collect()),
            changes: Vec::new(),
        }
    };
    let mut stalls = row(STALLS, Unit::PerMinute, &|one| {
        60.0 * one.times() / one.seconds
    });
    let mut share = row(STOOD_STILL, Unit::TimeShare, &|one| {
        one.events.seconds / one.seconds
    });
    for other in 1..sides.len() {
        let change = Changed::of([&sides[0], &sides[other]], [totals[0], totals[other]]);
        stalls.changes.push(change.as_ref().map(Changed::of_rate));
        share.changes.push(change.as_ref().map(Changed::of_time));
    }
    vec![stalls, share]
}

/// The stalls of the first class of each point that Rigel measured.
fn seen_in(run: &Subject) -> Vec<EventsSeen> {
    let of = |point: &PointSummary| {
        let class = point.classes.first()?;
        let mut seen = EventsSeen::default();
        seen.include(&class.stalls, point.measured_s);
        (class.reported.is_none() && class.done > 0).then_some(seen)
    };
    run.points.iter().filter_map(of).collect()
}

fn sum(all: &[EventsSeen]) -> EventsSeen {
    let mut sum = EventsSeen::default();
    for one in all {
        sum.events.add(&one.events);
        sum.seconds += one.seconds;
    }
    sum
}

/// The stalls of two sides of which at least one has stalls.
struct Changed {
    totals: [EventsSeen; 2],
    counted: CountPair,
    dispersion: f64,
}

impl Changed {
    fn of(sides: [&Side; 2], totals: [EventsSeen; 2]) -> Option<Self> {
        let dispersion = dispersion_of(sides);
        let [before, after] = totals.map(|one| (one.times(), one.seconds));
        Some(Self {
            totals,
            counted: CountPair::of(before, after, dispersion)?,
            dispersion,
        })
    }

    fn ratio(&self, of: fn(&EventsSeen) -> f64) -> f64 {
        let [before, after] = self.totals.map(|one| of(&one) / one.seconds);
        after / before
    }

    fn of_rate(&self) -> Change {
        Change::of_events(self.ratio(EventsSeen::times), self.counted)
    }

    /// The stalled time is a sum of durations whose number is random: its variance is the sum of
    /// their squares, times the dispersion. If one side has no stall, their number alone decides.
    fn of_time(&self) -> Change {
        let ratio = self.ratio(|one| one.events.seconds);
        if self.totals.iter().any(|one| one.events.is_none()) {
            return Change::of_events(ratio, self.counted);
        }
        let variances = self
            .totals
            .map(|one| one.events.squares / one.events.seconds.powi(2));
        let events: f64 = self.totals.iter().map(EventsSeen::times).sum();
        let spread = Spread {
            error: (self.dispersion * variances.iter().sum::<f64>()).sqrt(),
            degrees: (events / self.dispersion - 2.0).max(1.0),
        };
        Change::of_less(ratio, spread)
    }
}

/// The dispersion of the number of stalls over points, and over runs if there are several a side.
/// Few runs tell little of it, so it is larger then by the square of Student's t relative to the
/// normal distribution.
fn dispersion_of(sides: [&Side; 2]) -> f64 {
    let counts = |all: &[EventsSeen]| -> Vec<(f64, f64)> {
        all.iter().map(|one| (one.times(), one.seconds)).collect()
    };
    let of_points: Vec<Vec<(f64, f64)>> = sides
        .iter()
        .map(|side| {
            side.runs
                .iter()
                .flat_map(|run| counts(&seen_in(run)))
                .collect()
        })
        .collect();
    let of_runs: Vec<Vec<(f64, f64)>> = sides
        .iter()
        .map(|side| {
            let runs: Vec<EventsSeen> = side.runs.iter().map(|run| sum(&seen_in(run))).collect();
            counts(&runs)
        })
        .collect();
    let degrees: usize = sides.iter().map(|side| side.runs.len() - 1).sum();
    let few = if degrees > 0 {
        (t_quantile(degrees as f64) / t_quantile(f64::INFINITY)).powi(2)
    } else {
        1.0
    };
    dispersion(&of_points).max(dispersion(&of_runs)) * few
}
