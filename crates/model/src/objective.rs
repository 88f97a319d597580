//! A service-level objective: what each round of a soak must keep.

use super::{Bound, Error, Nanos, bound::quantile_name};
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A figure and its limit.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Measure {
    /// This fraction of operations must take at most this long.
    Quantile(f64, Nanos),
    /// The mean response time must be at most this long.
    Mean(Nanos),
    /// No operation may take longer than this.
    Max(Nanos),
    /// At least this many operations per second must complete.
    Rate(f64),
}

/// An objective that a round keeps or misses. A round that could not be measured keeps none.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Objective(pub Measure);

impl Objective {
    /// The objective as a bound on a quantile; `None` if it is on something else.
    pub fn bound(self) -> Option<Bound> {
        match self.0 {
            Measure::Quantile(quantile, latency) => Some(Bound { latency, quantile }),
            Measure::Mean(_) | Measure::Max(_) | Measure::Rate(_) => None,
        }
    }
}

impl fmt::Display for Objective {
    /// `p99<2ms`, `rate>5000`: the form that [`Objective::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Measure::Quantile(quantile, latency) => {
                write!(f, "{}<{}", quantile_name(quantile), latency.exact())
            }
            Measure::Mean(latency) => write!(f, "mean<{}", latency.exact()),
            Measure::Max(latency) => write!(f, "max<{}", latency.exact()),
            Measure::Rate(rate) => write!(f, "rate>{rate}"),
        }
    }
}

impl From<Objective> for String {
    fn from(objective: Objective) -> Self {
        objective.to_string()
    }
}

impl TryFrom<String> for Objective {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for Objective {
    type Err = Error;

    /// Parses `p99<2ms`, `mean<500us`, `max<100ms` or `rate>5000`; `<=` and `>=` mean the same.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not an objective",
                "write it as 'p99<2ms', 'mean<500us', 'max<100ms' or 'rate>5000', in quotes, \
                 because of the shell"
            )
        };
        let limit = |rest: &str| rest.trim_start_matches('=').trim().to_string();
        if let Some((name, rest)) = text.split_once('>') {
            let rate = limit(rest)
                .replace('_', "")
                .parse::<f64>()
                .ok()
                .filter(|rate| rate.is_finite() && *rate > 0.0);
            return match name.trim() {
                "rate" | "iops" => Ok(Self(Measure::Rate(rate.ok_or_else(wrong)?))),
                _ => Err(wrong()),
            };
        }
        let (name, rest) = text.split_once('<').ok_or_else(wrong)?;
        let latency: Nanos = limit(rest).parse().ok().ok_or_else(wrong)?;
        if latency == Nanos(0) {
            return Err(wrong());
        }
        let measure = match name.trim() {
            "mean" => Measure::Mean(latency),
            "max" => Measure::Max(latency),
            name => {
                let percent = name
                    .strip_prefix('p')
                    .and_then(|percent| percent.parse::<f64>().ok());
                let quantile = percent
                    .map(|percent| percent / 100.0)
                    .filter(|q| (0.01..1.0).contains(q));
                Measure::Quantile(quantile.ok_or_else(wrong)?, latency)
            }
        };
        Ok(Self(measure))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn objectives_read_as_people_write_them() {
        for (text, shown) in [
            ("p99<2ms", "p99<2ms"),
            ("p99.9 <= 500us", "p99.9<500us"),
            ("mean<1ms", "mean<1ms"),
            ("max<1s", "max<1s"),
            ("iops>=5000", "rate>5000"),
        ] {
            assert_eq!(text.parse::<Objective>().unwrap().to_string(), shown);
        }
        for wrong in [
            "", "p99", "p99>2ms", "p100<2ms", "p99<0ms", "p99<2", "rate<5", "rate>-1", "rate>inf",
            "p<1ms",
        ] {
            assert!(wrong.parse::<Objective>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "\\PC*") {
            if let Ok(objective) = text.parse::<Objective>() {
                prop_assert_eq!(objective.to_string().parse::<Objective>().unwrap(), objective);
            }
        }
    }
}
