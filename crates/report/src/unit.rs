//! Formats values of charts. The page's script, `base.js`, formats them in the same way.

use crate::document::Unit;
use rigel_analyse::quantity::{self, Amount};
use rigel_model::{Moment, Resolution};

/// A value with its unit, for a table or a sentence: `79,941/s`, `450 µs`, `12.5 %`, `p99.9`.
pub fn text(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Seconds => duration(value),
        Unit::Share | Unit::Nines | Unit::Moment => short(unit, value),
        _ => Amount::new(value.into(), unit).to_string(),
    }
}

/// A value in few characters, for a cell or an axis: `79.9k`, `450 µs`.
pub fn short(unit: Unit, value: f64) -> String {
    match unit {
        Unit::Microseconds => match value.abs() {
            size if size >= 999.5e3 => format!("{} s", significant(value / 1e6, 3)),
            size if size >= 999.5 => format!("{} ms", significant(value / 1e3, 3)),
            _ => format!("{} µs", significant(value, 3)),
        },
        Unit::Share => format!("{} %", significant(value * 100.0, 3)),
        Unit::Nines => quantile(value),
        Unit::Seconds => format!("{} s", significant(value, 3)),
        Unit::Moment => moment(value),
        _ => match value.abs() {
            size if size >= 999.5e6 => format!("{}G", significant(value / 1e9, 3)),
            size if size >= 999.5e3 => format!("{}M", significant(value / 1e6, 3)),
            size if size >= 9999.5 => format!("{}k", significant(value / 1e3, 3)),
            size if size >= 999.5 => quantity::count(value.round()),
            _ => significant(value, 3),
        },
    }
}

/// This number of significant digits, without trailing zeros.
pub fn significant(value: f64, digits: i32) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 {
            "0".into()
        } else {
            value.to_string()
        };
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "the exponent of an f64 is below 400"
    )]
    let decimals = (digits - 1 - value.abs().log10().floor() as i32).clamp(0, 12);
    let text = format!("{value:.*}", usize::try_from(decimals).unwrap_or(0));
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// Formats `-log10(1 - 0.999)` as `p99.9`.
fn quantile(drawn: f64) -> String {
    let rest = 10f64.powf(-drawn) * 100.0;
    #[expect(clippy::cast_possible_truncation, reason = "a few nines")]
    let decimals = (1 - rest.log10().floor() as i32).clamp(0, 9);
    let text = format!(
        "{:.*}",
        usize::try_from(decimals).unwrap_or(0),
        100.0 - rest
    );
    format!(
        "p{}",
        if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        }
    )
}

/// Formats seconds since the beginning: `12.5 s`, from two minutes on as a clock.
fn duration(seconds: f64) -> String {
    if seconds.abs() < 120.0 {
        return format!("{} s", significant(seconds, 4));
    }
    quantity::clock(seconds)
}

/// Formats seconds in local time as `2026-03-01 12:30:05`.
fn moment(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what is out of range is said so by the conversion"
    )]
    let moment = Moment::from_unix_seconds(seconds.round() as i64);
    moment.map_or_else(
        || significant(seconds, 12),
        |moment| moment.shown(Resolution::Seconds),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_people_read_them() {
        for (unit, value, long, compact) in [
            (Unit::Number, 0.0, "0", "0"),
            (Unit::Number, 0.012_345, "0.0123", "0.0123"),
            (Unit::PerSecond, 79_941.3, "79,941/s", "79.9k"),
            (Unit::PerSecond, 1_234_567.0, "1,234,567/s", "1.23M"),
            (Unit::PerSecond, 9_999.4, "9,999/s", "9,999"),
            (Unit::Number, -1234.0, "-1,234", "-1,234"),
            (Unit::MbPerSecond, 612.6, "613 MB/s", "613"),
            (Unit::Microseconds, 87.26, "87.3 µs", "87.3 µs"),
            (Unit::Microseconds, 4500.0, "4.50 ms", "4.5 ms"),
            (Unit::Microseconds, 2.0e6, "2.00 s", "2 s"),
            (Unit::Share, 0.125, "12.5 %", "12.5 %"),
            (Unit::Nines, std::f64::consts::LOG10_2, "p50", "p50"),
            (Unit::Nines, 3.0, "p99.9", "p99.9"),
            (Unit::Nines, 0.0, "p0", "p0"),
            (Unit::Seconds, 12.5, "12.5 s", "12.5 s"),
            (Unit::Seconds, 205.0, "3:25", "205 s"),
            (Unit::Seconds, 93_805.0, "1d 02:03", "93805 s"),
            (
                Unit::Moment,
                1_772_368_205.0,
                "2026-03-01 12:30:05",
                "2026-03-01 12:30:05",
            ),
        ] {
            assert_eq!(
                (text(unit, value).as_str(), short(unit, value).as_str()),
                (long, compact),
                "{unit:?} {value}"
            );
        }
    }
}
