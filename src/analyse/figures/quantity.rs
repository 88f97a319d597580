//! Formats numbers: thousands separators, times with their unit, fractions in percent, intervals.
//!
//! All reports format their figures here.

use super::confidence::Estimate;
use super::statistics::Limits;
use crate::model::{Bytes, Nanos};

/// Text for a figure without an interval.
pub const UNKNOWN: &str = "interval not known";

/// `79,941`; below a hundred with one decimal if it is not whole.
#[must_use]
pub fn count(value: f64) -> String {
    if value.abs() < 99.95 && value.fract().abs() > 1e-9 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = if value <= -0.5 {
        "-".to_string()
    } else {
        String::new()
    };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `450 µs`, `1.24 ms`: three significant digits of microseconds.
#[must_use]
pub fn time(us: f64) -> String {
    Nanos::from_micros_f64(us).to_string()
}

/// `8 KiB`.
#[must_use]
pub fn size(bytes: u32) -> String {
    Bytes(bytes.into()).to_string()
}

/// `12.5 %`.
#[must_use]
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `12 %`, `0.3 %`: without a decimal place from 10 % on.
pub(in crate::analyse) fn rounded_percent(share: f64) -> String {
    if share >= 0.0995 {
        format!("{:.0} %", share * 100.0)
    } else {
        format!("{:.1} %", share * 100.0)
    }
}

/// `± 1.2 %`; `± ?` if unknown.
#[must_use]
pub fn precision(estimate: Estimate) -> String {
    match estimate.precision() {
        Some(share) if share.is_finite() => format!("± {}", percent(share)),
        _ => "± ?".into(),
    }
}

/// `± 0.4 %`.
#[must_use]
pub fn plus_minus(estimate: Estimate) -> String {
    match estimate.interval {
        Some(_) => precision(estimate),
        None => UNKNOWN.into(),
    }
}

/// `438 to 463 µs`; `at least 438 µs` if the upper limit is unknown.
#[must_use]
pub fn from_to(interval: Option<Limits>) -> String {
    let Some(Limits { low, high }) = interval else {
        return UNKNOWN.into();
    };
    let Some(high) = high else {
        return format!("at least {}", time(low));
    };
    let (low, high) = (time(low), time(high));
    let unit = |text: &str| {
        text.split_once(' ')
            .map_or_else(String::new, |(_, unit)| unit.to_string())
    };
    let same = unit(&low) == unit(&high);
    let low = if same {
        low.split(' ').next().unwrap_or_default().to_string()
    } else {
        low
    };
    format!("{low} to {high}")
}

/// `458 µs (438 to 463)`, for a table cell.
#[must_use]
pub fn time_between(estimate: Estimate) -> String {
    let value = time(estimate.value);
    if estimate.interval.is_none() {
        return value;
    }
    let between = from_to(estimate.interval);
    let unit = value.split_once(' ').map_or("", |(_, unit)| unit);
    let words: Vec<&str> = between.split(' ').collect();
    match words[..] {
        [low, to, high, same] if same == unit => format!("{value} ({low} {to} {high})"),
        _ => format!("{value} ({between})"),
    }
}

/// Formats a bound such as `20ms@p99` as `20 ms at p99`.
#[must_use]
pub fn bound_in_words(bound: &str) -> String {
    let text = bound.replace('@', " at ");
    let unit = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(unit);
    format!(
        "{number} {}",
        rest.strip_prefix("us")
            .map_or(rest.to_string(), |rest| format!("µs{rest}"))
    )
}

/// Capitalises the first letter.
#[must_use]
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// `1 point`, `20 points`.
#[must_use]
pub fn points(number: usize) -> String {
    if number == 1 {
        "1 point".into()
    } else {
        format!("{number} points")
    }
}

/// `1 sample`, `20 samples`.
#[must_use]
pub fn samples(number: usize) -> String {
    if number == 1 {
        "1 sample".into()
    } else {
        format!("{number} samples")
    }
}

/// A requested duration: `7 days`, `15 min`, `90 s`.
#[must_use]
pub fn lasting(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    let units = [(86_400.0, "days"), (3600.0, "h"), (60.0, "min")];
    let whole = units
        .iter()
        .find(|(size, _)| seconds > 0.0 && seconds % size == 0.0);
    whole.map_or_else(
        || time.exact(),
        |(size, name)| format!("{} {name}", seconds / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        let counts = [0.0, 7.25, 99.96, 999.6, 79_941.4, 1_234_567.0, -12_345.0].map(count);
        assert_eq!(
            counts,
            ["0", "7.2", "100", "1,000", "79,941", "1,234,567", "-12,345"]
        );
        assert_eq!(
            [0.25, 102.4, 1234.5, 2e6].map(time),
            ["250 ns", "102 µs", "1.23 ms", "2.00 s"]
        );
        let interval = |low, high| {
            Some(Limits {
                low,
                high: Some(high),
            })
        };
        assert_eq!(from_to(interval(438.0, 463.0)), "438 to 463 µs");
        assert_eq!(from_to(interval(980.0, 1200.0)), "980 µs to 1.20 ms");
        assert_eq!(from_to(None), UNKNOWN);
        let open = Some(Limits {
            low: 438.0,
            high: None,
        });
        assert_eq!(from_to(open), "at least 438 µs");
        assert_eq!(
            time_between(Estimate {
                value: 1450.0,
                interval: open
            }),
            "1.45 ms (at least 438 µs)"
        );
        let between = |interval| {
            time_between(Estimate {
                value: 450.0,
                interval,
            })
        };
        assert_eq!(between(interval(438.0, 463.0)), "450 µs (438 to 463)");
        assert_eq!(
            between(interval(438.0, 1463.0)),
            "450 µs (438 µs to 1.46 ms)"
        );
    }
}
