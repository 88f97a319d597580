//! Figures of one quantity over all rounds: median, spread, extremes, worst hour.

use super::rounds::Round;
use rigel_model::Moment;
use rigel_stats::robust::{median, quantile};
use serde::Serialize;

const HOUR: f64 = 3600.0;

/// Figures of one quantity over all rounds, in its unit.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SeriesFigures {
    /// Number of rounds with a value.
    pub rounds: usize,
    /// Median of the rounds.
    pub median: f64,
    /// Mean of the rounds.
    pub mean: f64,
    /// Standard deviation divided by the mean, as a fraction of 1. `None` for a single round, or
    /// if all values are 0.
    pub variation: Option<f64>,
    /// Lower limit of 95 % of the rounds: quantile 0.025.
    pub low: f64,
    /// Upper limit of 95 % of the rounds: quantile 0.975.
    pub high: f64,
    /// The minimum, and its round.
    pub least: Extreme,
    /// The maximum, and its round.
    pub greatest: Extreme,
    /// The hour with the lowest mean, weighted by time; `None` if the series is shorter than two
    /// hours or the median is 0.
    pub least_hour: Option<Hour>,
    /// The hour with the highest mean.
    pub greatest_hour: Option<Hour>,
}

/// An extreme value and its round.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Extreme {
    /// The value.
    pub value: f64,
    /// Start of the round.
    pub at: Moment,
    /// Number of the round.
    pub round: u32,
}

/// The mean of an hour.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Hour {
    /// Start of the hour, which is the start of a round.
    pub begin: Moment,
    /// Mean of the values in the hour, weighted by measured time.
    pub value: f64,
    /// The mean divided by the median of all rounds.
    pub of_median: f64,
}

/// The figures of rounds with finite values; `None` if there are no rounds.
pub(crate) fn series_figures(known: &[(&Round, f64)]) -> Option<SeriesFigures> {
    let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let middle = median(&values)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let extreme = |(round, value): &(&Round, f64)| Extreme {
        value: *value,
        at: round.begin,
        round: round.number,
    };
    let hours = hours(known, middle);
    Some(SeriesFigures {
        rounds: values.len(),
        median: middle,
        mean,
        variation: (values.len() > 1 && mean > 0.0).then(|| (squares / (n - 1.0)).sqrt() / mean),
        low: quantile(&values, 0.025)?,
        high: quantile(&values, 0.975)?,
        least: known
            .iter()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .map(extreme)?,
        greatest: known
            .iter()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .map(extreme)?,
        least_hour: hours
            .iter()
            .min_by(|a, b| a.value.total_cmp(&b.value))
            .copied(),
        greatest_hour: hours
            .iter()
            .max_by(|a, b| a.value.total_cmp(&b.value))
            .copied(),
    })
}

/// The hours that begin with each round and lie within the series; none if the series is shorter
/// than two hours. An hour is ignored if it holds less than two thirds of the median measured time
/// per hour.
fn hours(known: &[(&Round, f64)], middle: f64) -> Vec<Hour> {
    let (Some((first, _)), Some((last, _))) = (known.first(), known.last()) else {
        return Vec::new();
    };
    let whole = last.finish().since(first.begin) as f64;
    if whole < 2.0 * HOUR || middle <= 0.0 {
        return Vec::new();
    }
    let mut hours: Vec<(Moment, f64, f64)> = Vec::with_capacity(known.len());
    for (at, (from, _)) in known.iter().enumerate() {
        let end = from.begin.plus_seconds(3600);
        // The last hour must be complete.
        if at > 0 && end > last.finish() {
            break;
        }
        let (mut weight, mut sum) = (0.0, 0.0);
        for (round, value) in known[at..]
            .iter()
            .take_while(|(round, _)| round.begin < end)
        {
            let rest = end.since(round.begin) as f64;
            // A value without a duration counts as one second.
            let seconds = round.seconds.max(1.0).min(rest);
            weight += seconds;
            sum += seconds * value;
        }
        hours.push((from.begin, weight, sum / weight));
    }
    let weights: Vec<f64> = hours.iter().map(|(_, weight, _)| *weight).collect();
    let enough = median(&weights).unwrap_or(0.0) * 2.0 / 3.0;
    let is_whole = |(_, weight, _): &(Moment, f64, f64)| *weight >= enough;
    let hour = |(begin, _, value): (Moment, f64, f64)| Hour {
        begin,
        value,
        of_median: value / middle,
    };
    hours.into_iter().filter(is_whole).map(hour).collect()
}
