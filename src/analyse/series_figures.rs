//! Figures of one quantity over all rounds: its middle, its spread, its extremes, its worst hour.

use super::robust::{median, quantile};
use super::rounds::Round;
use crate::model::Moment;
use serde::Serialize;

const HOUR: f64 = 3600.0;

/// One quantity over all rounds, in its unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SeriesFigures {
    /// Rounds of which it is known.
    pub rounds: usize,
    /// Half of the rounds are not above it.
    pub median: f64,
    /// Mean of the rounds.
    pub mean: f64,
    /// Standard deviation over the mean, a share of 1. None of a single round, and where all are 0.
    pub variation: Option<f64>,
    /// 95 % of the rounds lie from here
    pub low: f64,
    /// to here: quantiles 0.025 and 0.975.
    pub high: f64,
    /// The least, and when.
    pub least: Extreme,
    /// The greatest, and when.
    pub greatest: Extreme,
    /// The hour with the least mean, weighted by time. None of a series shorter than two hours, nor of a median of 0.
    pub least_hour: Option<Hour>,
    /// The hour with the greatest mean.
    pub greatest_hour: Option<Hour>,
}

/// A round's figure and when the round began.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Extreme {
    /// The figure.
    pub value: f64,
    /// When its round began.
    pub at: Moment,
    /// The round's number.
    pub round: u32,
}

/// What an hour had on average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Hour {
    /// When it began: with a round.
    pub begin: Moment,
    /// The mean of what was measured within it, weighted by time.
    pub value: f64,
    /// That over the median of all rounds.
    pub of_median: f64,
}

/// The figures of rounds with their values, which are finite. None of no rounds.
pub(super) fn series_figures(known: &[(&Round, f64)]) -> Option<SeriesFigures> {
    let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let middle = median(&values)?;
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let extreme = |(round, value): &(&Round, f64)| Extreme { value: *value, at: round.begin, round: round.number };
    let hours = hours(known, middle);
    Some(SeriesFigures {
        rounds: values.len(),
        median: middle,
        mean,
        variation: (values.len() > 1 && mean > 0.0).then(|| (squares / (n - 1.0)).sqrt() / mean),
        low: quantile(&values, 0.025)?,
        high: quantile(&values, 0.975)?,
        least: known.iter().min_by(|a, b| a.1.total_cmp(&b.1)).map(extreme)?,
        greatest: known.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(extreme)?,
        least_hour: hours.iter().min_by(|a, b| a.value.total_cmp(&b.value)).copied(),
        greatest_hour: hours.iter().max_by(|a, b| a.value.total_cmp(&b.value)).copied(),
    })
}

/// The hour from the beginning of each round on, as far as it lies within the series; none if that is below two hours.
/// An hour of which less than two thirds as much was measured as of most, before a gap, is no hour to go by.
fn hours(known: &[(&Round, f64)], middle: f64) -> Vec<Hour> {
    let (Some((first, _)), Some((last, _))) = (known.first(), known.last()) else { return Vec::new() };
    let whole = last.finish().since(first.begin) as f64;
    if whole < 2.0 * HOUR || middle <= 0.0 {
        return Vec::new();
    }
    let mut hours: Vec<(Moment, f64, f64)> = Vec::with_capacity(known.len());
    for (at, (from, _)) in known.iter().enumerate() {
        let end = from.begin.plus_seconds(3600);
        // The last hour must be one.
        if at > 0 && end > last.finish() {
            break;
        }
        let (mut weight, mut sum) = (0.0, 0.0);
        for (round, value) in known[at..].iter().take_while(|(round, _)| round.begin < end) {
            let rest = end.since(round.begin) as f64;
            // A figure without a duration counts as a second.
            let seconds = round.seconds.max(1.0).min(rest);
            weight += seconds;
            sum += seconds * value;
        }
        hours.push((from.begin, weight, sum / weight));
    }
    let weights: Vec<f64> = hours.iter().map(|(_, weight, _)| *weight).collect();
    let enough = median(&weights).unwrap_or(0.0) * 2.0 / 3.0;
    let is_whole = |(_, weight, _): &(Moment, f64, f64)| *weight >= enough;
    let hour = |(begin, _, value): (Moment, f64, f64)| Hour { begin, value, of_median: value / middle };
    hours.into_iter().filter(is_whole).map(hour).collect()
}
