//! Comparison of two numbers of events, each counted over a time of its own.
//!
//! Input: the events and the time of each side. Output: the probability of such a difference by
//! chance, and the interval of the ratio of the two rates. Given the sum of both counts, the events
//! of one side follow the binomial distribution (Przyborowski and Wilenski, Biometrika 31, 1940).
//! Of the observed count itself, half the probability counts: the mid-p of Lancaster, Journal of
//! the American Statistical Association 56, 1961, because the exact test is too strict for small
//! numbers. With no event on one side, that is the exact test of both directions together.
//!
//! Events in groups are not independent, so fewer of them count: both numbers are divided by the
//! dispersion, the variance of the counts relative to that of the Poisson distribution (`McCullagh`
//! and Nelder, Generalized Linear Models, 1989, ch. 6).

use rigel_stats::mean::{CONFIDENCE, Limits};

/// Maximum number of events that count: the test takes time in proportion to it.
const EVENTS_MAX: f64 = 10_000.0;

/// The events on both sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct CountPair {
    before: u32,
    after: u32,
    /// The time after, divided by the time before.
    exposure: f64,
}

impl CountPair {
    /// `before` and `after` are the events and the time of each side; `None` without any time or
    /// event. `dispersion` is at least 1.
    pub(super) fn of(before: (f64, f64), after: (f64, f64), dispersion: f64) -> Option<Self> {
        let events = before.0 + after.0;
        if events <= 0.0 || before.1 <= 0.0 || after.1 <= 0.0 {
            return None;
        }
        let divisor = dispersion.max(1.0).max(events / EVENTS_MAX);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most EVENTS_MAX; float casts saturate"
        )]
        let count = |events: f64| (events / divisor).floor() as u32;
        Some(Self {
            before: count(before.0),
            after: count(after.0),
            exposure: after.1 / before.1,
        })
    }

    /// The probability that chance alone makes the ratio of the rates differ from `limit` this far
    /// to this side, if `limit` is the true ratio.
    pub(super) fn chance(self, limit: f64) -> f64 {
        let odds = limit * self.exposure;
        let expected = f64::from(self.before) * odds;
        if f64::from(self.after) >= expected {
            self.upper(odds)
        } else {
            // The roles of the sides are exchanged.
            self.reversed().upper(1.0 / odds)
        }
    }

    /// The 95 % interval of the ratio of the rates.
    pub(super) fn limits(self) -> Limits {
        let level = (1.0 - CONFIDENCE) / 2.0;
        let lowest = |pair: Self| {
            if pair.after == 0 {
                return 0.0;
            }
            // The probability rises with the odds.
            let (mut low, mut high) = (-40.0f64, 40.0f64);
            for _ in 0..60 {
                let middle = f64::midpoint(low, high);
                if pair.upper(middle.exp()) < level {
                    low = middle;
                } else {
                    high = middle;
                }
            }
            low.exp()
        };
        let high = lowest(self.reversed());
        Limits {
            low: lowest(self) / self.exposure,
            high: (high > 0.0).then(|| 1.0 / (high * self.exposure)),
        }
    }

    fn reversed(self) -> Self {
        Self {
            before: self.after,
            after: self.before,
            exposure: 1.0 / self.exposure,
        }
    }

    /// The probability of more events after than observed, and half that of as many, if one event
    /// is after with these odds.
    fn upper(self, odds: f64) -> f64 {
        let all = self.before + self.after;
        let (of_after, of_before) = (odds.ln() - odds.ln_1p(), -odds.ln_1p());
        let mut log_ways = 0.0;
        let (mut sum, mut observed) = (0.0, 0.0);
        // From all events after, downwards.
        for before in 0..=self.before {
            if before > 0 {
                log_ways += f64::from(all - before + 1).ln() - f64::from(before).ln();
            }
            let chance = log_ways + f64::from(all - before) * of_after;
            observed = (chance + f64::from(before) * of_before).exp();
            sum += observed;
        }
        sum - observed / 2.0
    }
}

/// The dispersion of counts: Pearson's statistic divided by its degrees of freedom, at least 1.
/// Each group has a rate of its own; its counts are given with the time of each.
pub(super) fn dispersion(groups: &[Vec<(f64, f64)>]) -> f64 {
    let (mut statistic, mut degrees) = (0.0, 0.0);
    for group in groups {
        let events: f64 = group.iter().map(|(events, _)| events).sum();
        let time: f64 = group.iter().map(|(_, time)| time).sum();
        if events <= 0.0 || time <= 0.0 {
            continue;
        }
        let measured = || group.iter().filter(|(_, time)| *time > 0.0);
        statistic += measured()
            .map(|(count, of)| {
                let expected = events / time * of;
                (count - expected).powi(2) / expected
            })
            .sum::<f64>();
        degrees += measured().count() as f64 - 1.0;
    }
    if degrees > 0.0 {
        (statistic / degrees).max(1.0)
    } else {
        1.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(before: f64, after: f64) -> CountPair {
        CountPair::of((before, 60.0), (after, 60.0), 1.0).unwrap()
    }

    #[test]
    fn the_chance_is_that_of_tossing_a_coin() {
        // Ten of ten: 1 / 1024, of which half counts.
        assert!((pair(0.0, 10.0).chance(1.0) - 1.0 / 2048.0).abs() < 1e-12);
        // One or none of three before: (1 + 3 / 2) / 8.
        assert!((pair(1.0, 2.0).chance(1.0) - 2.5 / 8.0).abs() < 1e-12);
        assert!((pair(2.0, 1.0).chance(1.0) - 2.5 / 8.0).abs() < 1e-12);
        assert!((pair(5.0, 5.0).chance(1.0) - 0.5).abs() < 1e-12);
        // Twice the time: one event is after with a probability of 2 / 3.
        let longer = CountPair::of((0.0, 30.0), (4.0, 60.0), 1.0).unwrap();
        assert!((longer.chance(1.0) - (2.0f64 / 3.0).powi(4) / 2.0).abs() < 1e-12);
        assert_eq!(CountPair::of((0.0, 60.0), (0.0, 60.0), 1.0), None);
    }

    #[test]
    fn a_limit_of_the_interval_is_reached_by_chance_one_time_in_forty() {
        for pair in [pair(10.0, 25.0), pair(0.0, 7.0), pair(300.0, 290.0)] {
            let limits = pair.limits();
            for limit in [Some(limits.low), limits.high].into_iter().flatten() {
                assert!((pair.chance(limit) - 0.025).abs() < 1e-9, "{limits:?}");
            }
        }
        assert_eq!(pair(0.0, 7.0).limits().high, None);
        let none_after = pair(7.0, 0.0).limits();
        assert!(none_after.low <= 0.0 && none_after.high.is_some_and(|high| high < 1.0));
    }

    #[test]
    fn events_in_groups_count_less() {
        // Ten events in one of ten seconds.
        let mut grouped = vec![(0.0, 1.0); 10];
        grouped[3].0 = 10.0;
        assert!((dispersion(&[grouped.clone()]) - 10.0).abs() < 1e-9);
        // Evenly spread events are no reason for more confidence.
        assert!((dispersion(&[vec![(1.0, 1.0); 10]]) - 1.0).abs() < 1e-9);
        // A side without events tells nothing about groups.
        let quiet = vec![(0.0, 1.0); 10];
        assert!((dispersion(&[grouped, quiet]) - 10.0).abs() < 1e-9);
        let spread = CountPair::of((0.0, 60.0), (10.0, 60.0), 10.0).unwrap();
        assert!((spread.chance(1.0) - 0.25).abs() < 1e-9);
    }
}
