//! Quantities with their unit: time in nanoseconds, sizes in bytes, fractions in `0..=1`.

use super::Error;
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Bytes in a KiB.
pub const KIB: u64 = 1 << 10;
/// Bytes in a MiB.
pub const MIB: u64 = 1 << 20;
/// Bytes in a GiB.
pub const GIB: u64 = 1 << 30;

/// A duration, or a moment counted from the origin of its clock, in nanoseconds.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Nanos(pub u64);

impl Nanos {
    /// Later than any clock reaches.
    pub const MAX: Nanos = Nanos(u64::MAX);

    /// From whole seconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Nanos(seconds * 1_000_000_000)
    }

    /// From whole milliseconds.
    pub const fn from_millis(milliseconds: u64) -> Self {
        Nanos(milliseconds * 1_000_000)
    }

    /// From whole microseconds.
    pub const fn from_micros(microseconds: u64) -> Self {
        Nanos(microseconds * 1_000)
    }

    /// From seconds, to the nearest nanosecond; negative values and NaN become zero.
    pub fn from_secs_f64(seconds: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "float casts saturate"
        )]
        Nanos((seconds * 1e9).round() as u64)
    }

    /// From microseconds, to the nearest nanosecond; negative values and NaN become zero.
    pub fn from_micros_f64(us: f64) -> Self {
        Self::from_secs_f64(us / 1e6)
    }

    /// In seconds.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In microseconds.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }

    /// The sum; saturates at the maximum.
    pub const fn plus(self, other: Nanos) -> Nanos {
        Nanos(self.0.saturating_add(other.0))
    }

    /// Time from `earlier` to here; zero if `earlier` is later.
    pub const fn since(self, earlier: Nanos) -> Nanos {
        Nanos(self.0.saturating_sub(earlier.0))
    }
}

impl fmt::Display for Nanos {
    /// As [`Nanos::number_and_unit`]. Every report writes a time so.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.number_and_unit();
        write!(f, "{number}{unit}")
    }
}

impl Nanos {
    /// True if it is no time.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// In the largest unit below the value, with three significant digits: `850 ns`, `12.3 µs`,
    /// `4.56 ms`, `7.89 s`. The unit begins with a space.
    pub fn number_and_unit(self) -> (String, &'static str) {
        let nanos = self.0 as f64;
        let (value, unit) = match self.0 {
            0..1_000 => return (self.0.to_string(), " ns"),
            // From here on it would be "1000 µs".
            1_000..999_500 => (nanos / 1e3, " µs"),
            999_500..999_500_000 => (nanos / 1e6, " ms"),
            _ => (nanos / 1e9, " s"),
        };
        // Above these bounds, rounding would add a digit: 9.995 is "10.0".
        let decimals = usize::from(value < 99.95) + usize::from(value < 9.995);
        (format!("{value:.decimals$}"), unit)
    }

    /// In the largest unit without a fraction, such as `1500us`; [`Nanos::from_str`] reads it back
    /// exactly.
    pub fn exact(self) -> String {
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        let whole = units.iter().find(|(_, size)| self.0.is_multiple_of(*size));
        whole.map_or_else(
            || format!("{}ns", self.0),
            |(unit, size)| format!("{}{unit}", self.0 / size),
        )
    }
}

impl FromStr for Nanos {
    type Err = Error;

    /// Parses `100us`, `1.5ms`, `2s`, `3m`, `1h`, `2w`. A bare number is refused, but for 0: it would be
    /// seconds to one reader, and milliseconds to another.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not a duration",
                "write it with its unit, as 100us, 1.5ms, 2s, 3m, 1h or 7d"
            )
        };
        let (number, unit) = split_number(text).ok_or_else(wrong)?;
        let scale: u64 = match unit {
            "ns" => 1,
            "us" | "µs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "" if number == 0.0 => 1,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            "d" => 86_400_000_000_000,
            "w" => 604_800_000_000_000,
            _ => return Err(wrong()),
        };
        // A float is not exact beyond 2^53 ns, which are 104 days.
        let digits = text.trim().strip_suffix(unit).unwrap_or_default();
        if number * scale as f64 > Self::MAX.0 as f64 {
            return Err(usage!("'{text}' is too long", "give at most 213503d"));
        }
        if let Ok(whole) = digits.trim_end().parse::<u64>() {
            return Ok(Nanos(whole.saturating_mul(scale)));
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "split_number gives no negatives; float casts saturate"
        )]
        Ok(Nanos((number * scale as f64).round() as u64))
    }
}

/// A size in bytes.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(transparent)]
pub struct Bytes(pub u64);

impl fmt::Display for Bytes {
    /// In the largest binary unit that is not above the value: `4 GiB`, `1.5 MiB`, `512 bytes`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TiB", KIB * GIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)];
        match units.iter().find(|(_, size)| self.0 >= *size) {
            None => write!(f, "{} bytes", self.0),
            Some((unit, size)) if self.0.is_multiple_of(*size) => {
                write!(f, "{} {unit}", self.0 / size)
            }
            Some((unit, size)) => write!(f, "{:.1} {unit}", self.0 as f64 / *size as f64),
        }
    }
}

impl Bytes {
    /// In the largest binary unit without a fraction, such as `4GiB`; [`Bytes::from_str`] reads it
    /// back exactly.
    pub fn exact(self) -> String {
        let units = [("GiB", GIB), ("MiB", MIB), ("KiB", KIB)];
        let whole = units
            .iter()
            .find(|(_, size)| self.0 > 0 && self.0.is_multiple_of(*size));
        whole.map_or_else(
            || self.0.to_string(),
            |(unit, size)| format!("{}{unit}", self.0 / size),
        )
    }
}

/// Parses digits and a point, and nothing else: `1500`, `0.5`.
pub fn plain(text: &str) -> Option<f64> {
    let text = text.trim();
    let is_plain = text.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.parse()
        .ok()
        .filter(|value: &f64| is_plain && value.is_finite())
}

/// Parses a rate in operations per second: `1500`, `1.5k`, `2M`; here k is 1000.
pub fn per_second(text: &str) -> Option<f64> {
    let text = text.trim();
    let scaled = [('k', 1e3), ('K', 1e3), ('M', 1e6)];
    let parts = scaled
        .iter()
        .find_map(|(suffix, scale)| Some((text.strip_suffix(*suffix)?, scale)));
    let (number, scale) = parts.unwrap_or((text, &1.0));
    // Removes binary rounding: a thousandth of a thousand is one.
    plain(number).map(|value| tidy(value * scale))
}

/// The same of a rate that is a whole number, from 1 to 10^9.
pub fn whole_per_second(text: &str) -> Option<u64> {
    let rate = per_second(text)?;
    let is_whole = (1.0..=1e9).contains(&rate) && rate.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a whole number up to 10^9"
    )]
    is_whole.then_some(rate as u64)
}

/// Removes the rounding errors of binary fractions.
pub fn tidy(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl FromStr for Bytes {
    type Err = Error;

    /// Parses `8k` = `8KiB` = 8192; `8KB` = 8000; a bare number is bytes.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not a size",
                "write it as 8k, 64KiB, 4GiB (powers of 1024) or 1MB (powers of 1000)"
            )
        };
        let (number, unit) = split_number(text).ok_or_else(wrong)?;
        let scale = match unit.to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "k" | "kib" => KIB,
            "m" | "mib" => MIB,
            "g" | "gib" => GIB,
            "t" | "tib" => KIB * GIB,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            _ => return Err(wrong()),
        };
        let bytes = number * scale as f64;
        if bytes > 2f64.powi(53) {
            return Err(usage!("'{text}' is too large", "give at most 8192TiB"));
        }
        if bytes.fract() != 0.0 {
            return Err(wrong());
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked above"
        )]
        Ok(Bytes(bytes as u64))
    }
}

/// A fraction between 0 and 1.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, PartialOrd, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(try_from = "f64", into = "f64")]
pub struct Ratio(f64);

impl TryFrom<f64> for Ratio {
    type Error = String;

    fn try_from(value: f64) -> Result<Self, String> {
        (0.0..=1.0)
            .contains(&value)
            .then_some(Self(value))
            .ok_or_else(|| format!("a share of {value}, which is not between 0 and 1"))
    }
}

impl From<Ratio> for f64 {
    fn from(ratio: Ratio) -> Self {
        ratio.0
    }
}

impl Ratio {
    /// Zero.
    pub const ZERO: Ratio = Ratio(0.0);
    /// One.
    pub const ONE: Ratio = Ratio(1.0);

    /// `percent` / 100; `None` outside `0..=100`.
    pub fn from_percent(percent: f64) -> Option<Self> {
        (0.0..=100.0)
            .contains(&percent)
            .then_some(Ratio(percent / 100.0))
    }

    /// `parts` / 1,000,000; at most one.
    pub const fn from_parts_per_million(parts: u32) -> Self {
        if parts > 1_000_000 {
            Self::ONE
        } else {
            Ratio(parts as f64 / 1e6)
        }
    }

    /// `part` / `whole`; one if `part` is larger, or if `whole` is zero.
    pub fn of(part: u64, whole: u64) -> Self {
        if part >= whole {
            Self::ONE
        } else {
            Ratio(part as f64 / whole as f64)
        }
    }

    /// As a number between 0 and 1.
    pub fn get(self) -> f64 {
        self.0
    }

    /// One minus this fraction.
    pub fn complement(self) -> Self {
        Ratio(1.0 - self.0)
    }

    /// In percent with the fewest decimals that [`Ratio::from_str`] reads back exactly, such as
    /// `0.5%`.
    pub fn exact(self) -> String {
        let text = |decimals| format!("{:.decimals$}%", self.0 * 100.0);
        // A number that was parsed from percent needs no more decimals than an f64 has digits.
        (0..17)
            .map(text)
            .find(|text| text.parse() == Ok(self))
            .unwrap_or_else(|| text(17))
    }
}

impl fmt::Display for Ratio {
    /// In percent with at most two decimals, such as `12.5 %`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} %", (self.0 * 1e4).round() / 100.0)
    }
}

impl FromStr for Ratio {
    type Err = Error;

    /// Parses `5%` or `0.05`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || usage!("'{text}' is not a share", "write it as 5% or 0.05");
        let (number, unit) = split_number(text).ok_or_else(wrong)?;
        let percent = match unit {
            "%" => number,
            "" => number * 100.0,
            _ => return Err(wrong()),
        };
        Ratio::from_percent(percent).ok_or_else(wrong)
    }
}

/// Splits `1.5ms` into 1.5 and `ms`; `None` if it does not start with a plain decimal number.
fn split_number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let number = text[..end].parse().ok()?;
    Some((number, text[end..].trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn durations_are_read_in_every_unit() {
        for (text, nanos) in [
            ("250ns", 250),
            ("100us", 100_000),
            ("1.5 ms", 1_500_000),
            ("2s", 2_000_000_000),
            ("2w", 1_209_600_000_000_000),
            ("0", 0),
            ("3m", 180_000_000_000),
            ("5111111151110 ms", 5_111_111_151_110_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Nanos(nanos)), "{text}");
        }
        for text in ["", "2", "ms", "-1s", "1 day", "1..2s", "0x10"] {
            assert!(text.parse::<Nanos>().is_err(), "{text}");
        }
        assert_eq!(Nanos(0).exact(), "0s");
    }

    #[test]
    fn sizes_tell_1024_from_1000() {
        for (text, bytes) in [
            ("8k", 8192),
            ("8KiB", 8192),
            ("8KB", 8000),
            ("1.5M", 3 << 19),
            ("4GiB", 4 << 30),
            ("512", 512),
        ] {
            assert_eq!(text.parse(), Ok(Bytes(bytes)), "{text}");
        }
        for text in ["", "k", "8q", "0.3", "1e9"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
    }

    #[test]
    fn three_significant_digits_are_kept_at_the_edges() {
        for (nanos, text) in [
            (999, "999 ns"),
            (9_994, "9.99 µs"),
            (9_996, "10.0 µs"),
            (99_960, "100 µs"),
            (1_234_567, "1.23 ms"),
        ] {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn shares_outside_0_to_100_percent_are_refused() {
        assert_eq!("5%".parse::<Ratio>().map(Ratio::get), Ok(0.05));
        assert!("101%".parse::<Ratio>().is_err());
        assert!("5ms".parse::<Ratio>().is_err());
        let read = |text: &str| serde_json::from_str::<Ratio>(text).map(Ratio::get).ok();
        assert_eq!(
            ["0", "0.05", "1"].map(read),
            [Some(0.0), Some(0.05), Some(1.0)]
        );
        assert_eq!(["-0.1", "1.01", "1e308", "null"].map(read), [None; 4]);
        assert_eq!(serde_json::to_string(&Ratio::ONE).unwrap(), "1.0");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in ".{0,12}") {
            let _ = (text.parse::<Nanos>(), text.parse::<Bytes>(), text.parse::<Ratio>());
        }
    }
}
