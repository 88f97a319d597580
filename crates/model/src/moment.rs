//! A moment of wall-clock time, with the UTC offset of the clock it was read from.

use super::Error;
use crate::usage;
use jiff::civil::DateTime;
use jiff::tz::{Offset, TimeZone};
use jiff::{Timestamp, Zoned};
use serde::{Deserialize, Serialize};
use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A moment with a resolution of one second. It is compared in UTC and shown in local time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Moment {
    /// Seconds since 1970-01-01T00:00:00Z.
    seconds: i64,
    /// Seconds that local time was ahead of UTC.
    offset: i32,
}

impl Moment {
    /// A moment in UTC, from seconds since 1970-01-01T00:00:00Z; `None` outside the calendar, whose years have four
    /// digits.
    pub fn from_unix_seconds(seconds: i64) -> Option<Self> {
        let moment = Timestamp::from_second(seconds).ok()?;
        let utc = moment.to_zoned(TimeZone::UTC);
        (utc.year() > 0).then_some(Self { seconds, offset: 0 })
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    pub fn unix_seconds(self) -> i64 {
        self.seconds
    }

    /// The moment this many seconds later, or earlier if negative; the offset stays.
    pub fn plus_seconds(self, seconds: i64) -> Self {
        Self {
            seconds: self.seconds.saturating_add(seconds),
            ..self
        }
    }

    /// Seconds from `earlier` to this moment; negative if `earlier` is later.
    pub fn since(self, earlier: Moment) -> i64 {
        self.seconds.saturating_sub(earlier.seconds)
    }

    /// Seconds since 1970-01-01T00:00:00 in local time, for axes of local time.
    pub fn wall_seconds(self) -> i64 {
        self.seconds.saturating_add(i64::from(self.offset))
    }

    /// The same moment with the UTC offset of `other`.
    pub fn by_the_clock_of(self, other: Moment) -> Self {
        Self {
            offset: other.offset,
            ..self
        }
    }

    /// Seconds since local midnight.
    pub fn second_of_day(self) -> u32 {
        u32::try_from(self.wall_seconds().rem_euclid(86_400)).expect("less than a day")
    }

    /// Days since 1970-01-01 on the local calendar.
    pub fn day(self) -> i64 {
        self.wall_seconds().div_euclid(86_400)
    }

    /// Local date, `2016-04-23`.
    pub fn date(self) -> String {
        self.local().strftime("%Y-%m-%d").to_string()
    }

    /// Local time of day, `10:17`.
    pub fn time(self) -> String {
        self.local().strftime("%H:%M").to_string()
    }

    /// Local date and time without the offset, for display: `2016-04-23 10:17`.
    pub fn short(self) -> String {
        self.local().strftime("%Y-%m-%d %H:%M").to_string()
    }

    /// Local date and time to a resolution: `2016-04-23 10:17:05`.
    pub fn shown(self, resolution: Resolution) -> String {
        match resolution {
            Resolution::Minutes => self.short(),
            Resolution::Seconds => self.local().strftime("%Y-%m-%d %H:%M:%S").to_string(),
        }
    }

    fn offset(self) -> Offset {
        Offset::from_seconds(self.offset).unwrap_or(Offset::UTC)
    }

    fn local(self) -> Zoned {
        let offset = self.offset();
        Timestamp::from_second(self.seconds)
            .unwrap_or_default()
            .to_zoned(TimeZone::fixed(offset))
    }
}

/// Resolution in which moments are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Resolution {
    /// Minutes.
    #[default]
    Minutes,
    /// Seconds, if several moments may fall into one minute.
    Seconds,
}

impl Resolution {
    /// The resolution for events that are this many seconds apart.
    pub fn of_steps(seconds: f64) -> Self {
        const MINUTES: f64 = 300.0;
        if seconds < MINUTES {
            Self::Seconds
        } else {
            Self::Minutes
        }
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> Ordering {
        self.seconds
            .cmp(&other.seconds)
            .then(self.offset.cmp(&other.offset))
    }
}

impl fmt::Display for Moment {
    /// `2016-04-23T10:17:00+02:00`, as in the journal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // An imported series has millions of moments, and formats by `strftime` take several times as long.
        let offset = self.offset();
        let local = offset.to_datetime(Timestamp::from_second(self.seconds).unwrap_or_default());
        let (sign, ahead) = match offset.seconds() {
            ahead @ 0.. => ('+', ahead),
            behind => ('-', -behind),
        };
        let (hours, minutes) = (ahead / 3600, ahead / 60 % 60);
        write!(f, "{local}{sign}{hours:02}:{minutes:02}")
    }
}

impl From<Moment> for String {
    fn from(moment: Moment) -> Self {
        moment.to_string()
    }
}

impl TryFrom<String> for Moment {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for Moment {
    type Err = Error;

    /// Parses RFC 3339, with `T` or a space, with or without seconds, or a date alone. Without an
    /// offset it is UTC.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not a date and time",
                "write it as 2016-04-23T10:17 or 2016-04-23 10:17:05+02:00"
            )
        };
        let text = text.trim();
        // The offset can only be in the time, after the date.
        let split = text
            .get(10..)
            .and_then(|time| time.find(['+', '-', 'Z', 'z']))
            .map(|at| at + 10);
        let (civil, offset) = split.map_or((text, ""), |at| text.split_at(at));
        let civil: DateTime = civil.trim_end().parse().map_err(|_| wrong())?;
        if civil.year() < 1 {
            return Err(wrong());
        }
        let offset = match offset {
            "" | "Z" | "z" => Offset::UTC,
            offset => {
                let seconds = offset_seconds(offset).ok_or_else(wrong)?;
                Offset::from_seconds(seconds).map_err(|_| wrong())?
            }
        };
        let seconds = offset.to_timestamp(civil).map_err(|_| wrong())?.as_second();
        Ok(Self {
            seconds,
            offset: offset.seconds(),
        })
    }
}

/// Parses `+02:00`, `-0530` or `+02` into seconds.
fn offset_seconds(text: &str) -> Option<i32> {
    let (sign, digits) = if let Some(digits) = text.strip_prefix('-') {
        (-1, digits)
    } else {
        (1, &text[1..])
    };
    let digits = digits.replace(':', "");
    if digits.bytes().any(|byte| !byte.is_ascii_digit()) {
        return None;
    }
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "0"),
        4 => digits.split_at(2),
        _ => return None,
    };
    Some(sign * (hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn moment(text: &str) -> Moment {
        text.parse().unwrap()
    }

    #[test]
    fn moments_are_read_in_the_forms_that_tools_write() {
        assert_eq!(
            moment("2016-04-23T10:17").to_string(),
            "2016-04-23T10:17:00+00:00"
        );
        assert_eq!(moment("2016-04-23 10:17:05").unix_seconds(), 1_461_406_625);
        let there = moment("2016-04-23T10:17:05+05:30");
        assert_eq!(there.since(moment("2016-04-23T10:17:05Z")), -19_800);
        assert_eq!(
            (there.second_of_day(), there.time().as_str()),
            (10 * 3600 + 17 * 60 + 5, "10:17")
        );
        assert_eq!(
            moment("2016-04-23T10:17:05-0500")
                .plus_seconds(86_400)
                .short(),
            "2016-04-24 10:17"
        );
        assert_eq!(
            there.shown(Resolution::of_steps(60.0)),
            "2016-04-23 10:17:05"
        );
        assert_eq!(there.shown(Resolution::of_steps(900.0)), "2016-04-23 10:17");
        for wrong in [
            "",
            "yesterday",
            "23.4.2016",
            "2016-13-01T00:00",
            "2016-04-23T10:17+2:00x",
            "10:17",
            // It would be printed with four characters less.
            "-000001-11-11",
            "0000-01-01T00:00",
        ] {
            assert!(wrong.parse::<Moment>().is_err(), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(seconds in -60_000_000_000i64..250_000_000_000, quarters in -56i32..=56) {
            let moment = Moment { seconds, offset: quarters * 900 };
            prop_assert_eq!(moment.to_string().parse::<Moment>().ok(), Some(moment));
        }

        #[test]
        fn no_text_breaks_the_parser(text in "\\PC*") {
            let _ = text.parse::<Moment>();
        }
    }
}
