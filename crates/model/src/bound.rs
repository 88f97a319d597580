//! A bound on response time that a fraction of operations must keep.

use super::{Error, Nanos};
use crate::usage;
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;
use std::str::FromStr;

/// The fraction `quantile` of operations takes at most `latency`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Maximum response time within the bound.
    pub latency: Nanos,
    /// Fraction of operations that must be within it: 0.99 for p99; between 0 and 1.
    #[serde(deserialize_with = "between_zero_and_one")]
    pub quantile: f64,
}

/// A damaged journal may have any number.
fn between_zero_and_one<'a, D: Deserializer<'a>>(from: D) -> Result<f64, D::Error> {
    let quantile = f64::deserialize(from)?;
    if quantile > 0.0 && quantile < 1.0 {
        Ok(quantile)
    } else {
        let what = format!("{quantile} is no fraction of operations");
        Err(de::Error::custom(what))
    }
}

impl Bound {
    /// `CALIBRATE_IO`'s default for `max_latency`, at our default quantile.
    pub const CALIBRATE_IO: Bound = Bound {
        latency: Nanos::from_millis(20),
        quantile: 0.99,
    };
}

impl fmt::Display for Bound {
    /// `2ms@p99`: the form that [`Bound::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}@{}",
            self.latency.exact(),
            quantile_name(self.quantile)
        )
    }
}

/// `p99.9` for 0.999.
pub fn quantile_name(quantile: f64) -> String {
    // Six decimals are more than anybody needs, and hide binary rounding.
    let percent = format!("{:.6}", quantile * 100.0);
    format!("p{}", percent.trim_end_matches('0').trim_end_matches('.'))
}

impl FromStr for Bound {
    type Err = Error;

    /// Parses `2ms`, which is `2ms@p99`, or `500us@p99.9`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not a bound on latency",
                "write it with its unit, as 2ms or 500us@p99.9"
            )
        };
        let (latency, quantile) = text.split_once('@').unwrap_or((text, "p99"));
        let latency: Nanos = latency.parse().map_err(|_| wrong())?;
        let percent = quantile
            .trim()
            .strip_prefix('p')
            .and_then(|percent| percent.parse::<f64>().ok());
        let quantile = percent
            .map(|percent| percent / 100.0)
            .filter(|q| (0.01..1.0).contains(q))
            .ok_or_else(wrong)?;
        if latency == Nanos(0) {
            Err(wrong())
        } else {
            Ok(Self { latency, quantile })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_bound_is_a_latency_and_a_quantile() {
        for (text, micros, quantile) in [
            ("2ms", 2000, 0.99),
            ("500us@p99.9", 500, 0.999),
            ("20ms", 20_000, 0.99),
            ("1ms@p50", 1000, 0.5),
            // Found by the fuzzer: printed and read again, it was another one.
            ("5111111151110ms", 5_111_111_151_110_000, 0.99),
        ] {
            let bound: Bound = text.parse().unwrap();
            assert_eq!(bound.latency, Nanos::from_micros(micros), "{text}");
            assert!((bound.quantile - quantile).abs() < 1e-9, "{text}");
            let again: Bound = bound.to_string().parse().unwrap();
            assert_eq!(again.latency, bound.latency, "{text}");
        }
        assert_eq!(
            "500us@p99.9".parse::<Bound>().unwrap().to_string(),
            "500us@p99.9"
        );
        for text in [
            "",
            "0",
            "2 lightyears",
            "2ms@99",
            "2ms@p100",
            "2ms@p0",
            "-1ms",
        ] {
            let error = text.parse::<Bound>().unwrap_err();
            assert_eq!(error.exit_status(), 2, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "([0-9]{1,20}|[a-z@. ]|.){0,12}") {
            let _ = text.parse::<Bound>();
        }
    }
}
