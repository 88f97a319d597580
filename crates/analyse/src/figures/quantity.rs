//! How a number becomes text for people: an amount with its unit and its interval.
//!
//! Input: a number or an estimate, and its unit. Output: text. The unit chooses the scale, the
//! decimals and the form of the interval, here and nowhere else. Only charts (crate `rigel-report`)
//! and the live view, which have few columns, write shorter numbers. Files that programs read (JSON,
//! csv, Orion's) have their own formats.

pub use rigel_model::listed;
use rigel_model::{Bytes, KIB, MIB, Nanos};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::Limits;
use serde::Serialize;
use std::fmt;

/// Text for a figure without an interval.
pub const UNKNOWN: &str = "interval not known";

/// The unit of a figure. It chooses how the figure is written, and says which direction is better.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// `79,941`; below a hundred with three significant digits: `31.5`, `0.03`.
    #[default]
    Number,
    /// Events per second: `79,941/s`. More is better.
    PerSecond,
    /// Megabytes (10^6) per second: `613 MB/s`. More is better.
    MbPerSecond,
    /// Mebibytes (2^20) per second, as Orion reports them.
    MibPerSecond,
    /// Microseconds, in the largest unit below the value: `450 µs`, `1.24 ms`. Less is better.
    Microseconds,
    /// Events per minute: fewer are better.
    PerMinute,
    /// Outstanding I/Os: neither direction is better.
    Outstanding,
    /// A count of what a run has: shown, never judged.
    Count,
    /// A unit of another tool: unknown whether more is better.
    Other,
    /// A fraction, in percent with one decimal: `12.5 %`.
    Percent,
    /// A fraction, in percent without a decimal from 10 % on: `12 %`, `0.3 %`.
    RoundedPercent,
    /// A fraction of time or operations, in percent with two decimals. 100 % is written only if it
    /// is exact. Charts draw all fractions in it, and write three significant digits.
    Share,
    /// A share of the measured time: `0 %`, `0.01 %`, `9.8 %`. Less is better.
    TimeShare,
    /// A factor, as the change that it makes: `+1.5 %`.
    Change,
    /// The same with two decimals: `+0.02 %`.
    FineChange,
    /// Of axes alone: a quantile, drawn at `-log10(1 - q)`, which is its value; charts write p50,
    /// p99, p99.9.
    Nines,
    /// Of axes alone: seconds since the beginning.
    Seconds,
    /// Of axes alone: seconds since 1970 in the run's local time, which charts write as date and
    /// time.
    Moment,
}

impl Unit {
    /// The number, and what follows it.
    fn write(self, value: f64) -> (String, &'static str) {
        let percent = value * 100.0;
        match self {
            Self::Microseconds => Nanos::from_micros_f64(value).number_and_unit(),
            Self::RoundedPercent if value >= 0.0995 => (format!("{percent:.0}"), " %"),
            Self::TimeShare if percent <= 0.0 => ("0".into(), " %"),
            Self::TimeShare if percent < 0.95 => (format!("{percent:.2}"), " %"),
            Self::Percent | Self::RoundedPercent | Self::TimeShare => {
                (format!("{percent:.1}"), " %")
            }
            Self::Share if value < 1.0 && percent >= 99.995 => ("99.99".into(), " %"),
            Self::Share => (format!("{percent:.2}"), " %"),
            Self::Change => (signed(value, 1), " %"),
            Self::FineChange => (signed(value, 2), " %"),
            _ => (grouped(value), self.suffix()),
        }
    }

    /// What follows its numbers, for a unit that always has the same.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::PerSecond => "/s",
            Self::MbPerSecond => " MB/s",
            Self::MibPerSecond => " MiB/s",
            Self::Seconds => " s",
            _ => "",
        }
    }

    /// The same as a heading: `MB/s`.
    pub fn name(self) -> &'static str {
        self.suffix().trim_start()
    }

    /// Bytes per second in one of it; 1 for a unit without bytes.
    pub fn bytes(self) -> f64 {
        match self {
            Self::MbPerSecond => 1e6,
            Self::MibPerSecond => MIB as f64,
            _ => 1.0,
        }
    }

    /// True for figures of counted events, of which there may be none.
    pub fn is_of_events(self) -> bool {
        matches!(self, Self::PerMinute | Self::TimeShare)
    }

    /// True if a larger figure is better.
    pub(crate) fn more_is_better(self) -> bool {
        self != Self::Microseconds && !self.is_of_events()
    }

    /// True for a measured quantity of which one direction is known to be better.
    pub(crate) fn is_judged(self) -> bool {
        matches!(
            self,
            Self::PerSecond | Self::MbPerSecond | Self::Microseconds
        )
    }
}

/// A number with its unit, and its interval if that is known, as people read it. `Display` writes
/// the value alone: `450 µs`.
#[derive(Debug, Clone, Copy)]
pub struct Amount {
    value: f64,
    interval: Option<Limits>,
    unit: Unit,
}

impl Amount {
    /// An estimate in this unit.
    pub fn new(figure: Estimate, unit: Unit) -> Self {
        Self {
            value: figure.value,
            interval: figure.interval,
            unit,
        }
    }

    /// The value with its interval, for a cell of a table: `458 µs (438 to 463)`.
    pub fn in_cell(&self) -> String {
        let (number, unit) = self.unit.write(self.value);
        let between = self.between(unit).map(|between| format!(" ({between})"));
        format!("{number}{unit}{}", between.unwrap_or_default())
    }

    /// The interval alone: `438 to 463 µs`; `at least 438 µs` if the upper limit is unknown.
    pub fn range(&self) -> String {
        self.between("").unwrap_or_else(|| UNKNOWN.into())
    }

    /// The interval as a fraction of the value: `± 0.4 %`. Where that says nothing, its limits.
    pub fn plus_minus(&self) -> String {
        self.share()
            .map_or_else(|| self.range(), |share| format!("± {}", error_share(share)))
    }

    /// Half the width of the interval as a fraction of the value: `0.4 %`; `?` if unknown, or more
    /// than 100 %.
    pub fn precision(&self) -> String {
        self.share().map_or_else(|| "?".into(), error_share)
    }

    /// Half the width of the interval as a fraction of the value, if it is known and below 1: beyond that, not
    /// even the order of magnitude is known.
    fn share(&self) -> Option<f64> {
        let both = self.interval.and_then(Limits::both)?;
        Some(both.relative(self.value)).filter(|share| *share <= 1.0)
    }

    /// The limits; `known` is a unit that need not be repeated.
    fn between(&self, known: &str) -> Option<String> {
        let limits = self.interval?;
        let (low, low_unit) = self.unit.write(limits.low);
        let new = |unit: &'static str| if unit == known { "" } else { unit };
        Some(match limits.high.map(|high| self.unit.write(high)) {
            None => format!("at least {low}{}", new(low_unit)),
            Some((high, unit)) if unit == low_unit => format!("{low} to {high}{}", new(unit)),
            Some((high, unit)) => format!("{low}{low_unit} to {high}{unit}"),
        })
    }
}

/// An error as a share of its figure: nothing is exact.
fn error_share(share: f64) -> String {
    const SHOWN: f64 = 0.0005;
    if share < SHOWN {
        "<0.1 %".into()
    } else {
        percent(share)
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.unit.write(self.value);
        write!(out, "{number}{unit}")
    }
}

/// Commas between thousands; below a hundred three significant digits, without trailing zeros.
fn grouped(value: f64) -> String {
    if value.abs() < 99.95 {
        return three_digits(value);
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = if value < 0.0 {
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

/// A factor as a change in percent, with a sign unless it is none: `+1.5`, `−1.5`, `0.0`.
fn signed(factor: f64, digits: usize) -> String {
    let text = format!("{:+.digits$}", (factor - 1.0) * 100.0);
    let is_none = text.bytes().all(|byte| !(b'1'..=b'9').contains(&byte)) && factor.is_finite();
    if is_none {
        text[1..].into()
    } else {
        text.replace('-', "−")
    }
}

/// `31.5`, `0.03`, `0.00123`. Differences below a billionth are meaningless for counted values.
fn three_digits(value: f64) -> String {
    let decimals = (1..9)
        .find(|decimals| value.abs() * 10f64.powi(*decimals) >= 99.95)
        .unwrap_or(9);
    let text = format!("{value:.0$}", usize::try_from(decimals).unwrap_or(0));
    match text.trim_end_matches('0').trim_end_matches('.') {
        "-0" => "0".into(),
        text => text.into(),
    }
}

fn shown(value: f64, unit: Unit) -> String {
    Amount::new(value.into(), unit).to_string()
}

/// [`Unit::Number`]: `79,941`.
pub fn count(value: f64) -> String {
    shown(value, Unit::Number)
}

/// [`Unit::PerSecond`]: `5,012/s`.
pub fn per_second(value: f64) -> String {
    shown(value, Unit::PerSecond)
}

/// [`Unit::MbPerSecond`]: `613 MB/s`.
pub fn mb_per_second(value: f64) -> String {
    shown(value, Unit::MbPerSecond)
}

/// [`Unit::Microseconds`]: `450 µs`.
pub fn time(us: f64) -> String {
    shown(us, Unit::Microseconds)
}

/// [`Unit::Percent`]: `12.5 %`.
pub fn percent(share: f64) -> String {
    shown(share, Unit::Percent)
}

/// [`Unit::RoundedPercent`]: `12 %`, `0.3 %`.
pub fn rounded_percent(share: f64) -> String {
    shown(share, Unit::RoundedPercent)
}

/// [`Unit::Share`]: `99.95 %`.
pub fn share(share: f64) -> String {
    shown(share, Unit::Share)
}

/// [`Unit::Change`]: `+1.5 %` for 1.015.
pub fn change(factor: f64) -> String {
    shown(factor, Unit::Change)
}

/// `8 KiB`.
pub fn size(bytes: u32) -> String {
    Bytes(bytes.into()).to_string()
}

/// A size that is measured, or a mean: `8.25 KiB`, `157 KiB`, `1.43 MiB`.
pub fn bytes(size: f64) -> String {
    let (scale, unit) = if size < MIB as f64 {
        (KIB, "KiB")
    } else {
        (MIB, "MiB")
    };
    format!("{} {unit}", count(size / scale as f64))
}

/// Formats a bound such as `20ms@p99` as `20 ms at p99`, and `1023us` as `1.023 ms`.
pub fn bound_in_words(bound: &str) -> String {
    let text = bound.replace('@', " at ");
    let unit = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (number, rest) = text.split_at(unit);
    let thousands = number.parse().map_or(0.0, |number: f64| number / 1000.0);
    if let Some(rest) = rest.strip_prefix("us").filter(|_| thousands >= 1.0) {
        return format!("{thousands} ms{rest}");
    }
    format!(
        "{number} {}",
        rest.strip_prefix("us")
            .map_or(rest.to_string(), |rest| format!("µs{rest}"))
    )
}

/// Capitalises the first letter.
pub fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// `1 interval`, `1,200 requests`: a number of things whose plural is regular.
pub fn counted(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {thing}{plural}", count(number as f64))
}

/// A requested duration: `7 days`, `15 min`, `90 s`.
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

/// The length of an interval that was not asked for, rounded: `60 minutes`, `24 hours`, `7 days`.
pub fn rounded_length(seconds: f64) -> String {
    const MINUTE: f64 = 60.0;
    const HOUR: f64 = 60.0 * MINUTE;
    const DAY: f64 = 24.0 * HOUR;
    let tenths = |size: f64| (seconds / size * 10.0).round() / 10.0;
    if seconds >= 2.0 * DAY {
        format!("{} days", tenths(DAY))
    } else if seconds >= 3.0 * HOUR {
        format!("{} hours", tenths(HOUR))
    } else if seconds >= 2.0 * MINUTE {
        format!("{:.0} minutes", seconds / MINUTE)
    } else {
        format!("{} s", tenths(1.0))
    }
}

/// Seconds like a clock: `0:42`, `12:34`, `3:12:34`, `4d 03:12`. The page's script writes them so, too.
pub fn clock(seconds: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float casts saturate"
    )]
    let whole = seconds.max(0.0).round() as u64;
    let (days, hours, minutes, rest) = (
        whole / 86_400,
        whole / 3600 % 24,
        whole / 60 % 60,
        whole % 60,
    );
    match (days, hours) {
        (0, 0) => format!("{minutes}:{rest:02}"),
        (0, hours) => format!("{hours}:{minutes:02}:{rest:02}"),
        (days, hours) => format!("{days}d {hours:02}:{minutes:02}"),
    }
}

/// A multiple with as many digits as it is worth: `0.25`, `2.71`, `13`.
pub fn multiple(value: f64) -> String {
    let decimals = match value {
        ..1.0 => 3,
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_rounded_to_what_a_reader_needs() {
        let all = [60.2, 3613.0, 10_000.0, 86_398.99, 259_195.46, 604_795.0].map(rounded_length);
        let known = [
            "60.2 s",
            "60 minutes",
            "167 minutes",
            "24 hours",
            "3 days",
            "7 days",
        ];
        assert_eq!(all, known);
        assert_eq!(rounded_length(100_000.0), "27.8 hours");
        let clocks = [0.4, 42.0, 754.0, 11_554.0, 357_120.0].map(clock);
        assert_eq!(clocks, ["0:00", "0:42", "12:34", "3:12:34", "4d 03:12"]);
        assert_eq!(
            [8192.0, 8447.7, 1.5e6].map(bytes),
            ["8 KiB", "8.25 KiB", "1.43 MiB"]
        );
    }

    #[test]
    fn figures_are_written_for_people() {
        let counts = [0.0, 7.25, 99.96, 999.6, 79_941.4, 1_234_567.0, -12_345.0].map(count);
        assert_eq!(
            counts,
            [
                "0",
                "7.25",
                "100",
                "1,000",
                "79,941",
                "1,234,567",
                "-12,345"
            ]
        );
        let small = [0.03, 31.52, 0.001_234_5, -5.25, -1e-12, 7.0].map(count);
        assert_eq!(small, ["0.03", "31.5", "0.00123", "-5.25", "0", "7"]);
        assert_eq!(
            [0.25, 102.4, 1234.5, 2e6].map(time),
            ["250 ns", "102 µs", "1.23 ms", "2.00 s"]
        );
        assert_eq!(
            [1.0, 0.999_999, 0.5].map(share),
            ["100.00 %", "99.99 %", "50.00 %"]
        );
        assert_eq!([1.015, 0.7].map(change), ["+1.5 %", "−30.0 %"]);
        assert_eq!(
            [0.0123, 0.0996, 1.0].map(rounded_percent),
            ["1.2 %", "10 %", "100 %"]
        );
    }

    fn between(value: f64, low: f64, high: Option<f64>) -> Amount {
        let interval = Some(Limits { low, high });
        Amount::new(Estimate::new(value, interval), Unit::Microseconds)
    }

    #[test]
    fn an_interval_repeats_no_unit_that_is_known() {
        let ranges = [
            between(450.0, 438.0, Some(463.0)),
            between(1100.0, 980.0, Some(1200.0)),
            between(450.0, 438.0, None),
            Amount::new(450.0.into(), Unit::Microseconds),
        ];
        assert_eq!(
            ranges.map(|amount| amount.range()),
            [
                "438 to 463 µs",
                "980 µs to 1.20 ms",
                "at least 438 µs",
                UNKNOWN
            ]
        );
        let cells = [
            between(450.0, 438.0, Some(463.0)),
            between(450.0, 438.0, Some(1463.0)),
            between(1450.0, 438.0, Some(463.0)),
            between(1450.0, 438.0, None),
            between(450.0, 438.0, None),
            Amount::new(450.0.into(), Unit::Microseconds),
        ];
        assert_eq!(
            cells.map(|amount| amount.in_cell()),
            [
                "450 µs (438 to 463)",
                "450 µs (438 µs to 1.46 ms)",
                "1.45 ms (438 to 463 µs)",
                "1.45 ms (at least 438 µs)",
                "450 µs (at least 438)",
                "450 µs",
            ]
        );
        let wide = [
            between(500.0, 400.0, Some(600.0)),
            between(500.0, 400.0, None),
        ];
        assert_eq!(
            wide.map(|amount| amount.plus_minus()),
            ["± 20.0 %", "at least 400 µs"]
        );
        let unknown = between(500.0, 0.0, Some(2600.0));
        assert_eq!(
            unknown.plus_minus(),
            "0 ns to 2.60 ms",
            "not even its order of magnitude is known"
        );
    }
}
