//! Moments as other tools write them.

use crate::model::Moment;

/// Which of two numbers that could both be a month is one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// 04/23/2016.
    MonthFirst,
    /// 23/04/2016.
    DayFirst,
}

impl Order {
    /// What the dates of a file show: day first where some first number is no month, else month first; and whether they
    /// show it.
    #[must_use]
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> (Self, bool) {
        let mut shown = None;
        let mut told = true;
        for text in texts {
            let Some((first, second)) = slashed(text) else { continue };
            match (first > 12, second > 12) {
                (true, false) => return (Self::DayFirst, true),
                (false, true) => shown = Some(Self::MonthFirst),
                _ => told = false,
            }
        }
        (shown.unwrap_or(Self::MonthFirst), told || shown.is_some())
    }
}

/// The first two numbers of a date with slashes whose first is no year.
fn slashed(text: &str) -> Option<(u32, u32)> {
    let date = text.split_whitespace().next()?;
    let mut parts = date.split('/');
    let (first, second) = (parts.next()?, parts.next()?);
    parts.next()?;
    (first.len() <= 2).then_some(())?;
    Some((first.parse().ok()?, second.parse().ok()?))
}

/// The moment that `text` tells: RFC 3339 and its relatives, `11/21/26 15:43:21`, `04/23/2016 10:17:05 AM`,
/// `23.04.2016 10:17`, `23-APR-16 10.17.00.000 AM`, seconds since 1970. Without an offset it is taken for UTC.
#[must_use]
pub fn moment(text: &str, order: Order) -> Option<Moment> {
    let text = text.trim();
    if let Ok(moment) = text.parse() {
        return Some(moment);
    }
    if let Some(moment) = since_1970(text) {
        return Some(moment);
    }
    let mut words = text.split([' ', 'T', '\t']).filter(|word| !word.is_empty());
    let (year, month, day) = date(words.next()?, order)?;
    let rest: Vec<&str> = words.collect();
    let (time, rest) = rest.split_first().map_or(("00:00", &[][..]), |(time, rest)| (*time, rest));
    let (hour, minute, second) = clock(time, rest.first().copied())?;
    let zone = rest.last().copied().filter(|word| word.starts_with(['+', '-', 'Z'])).unwrap_or("");
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}").parse().ok()
}

/// Seconds or milliseconds since 1970, of this century: any other number is more likely to be something else.
fn since_1970(text: &str) -> Option<Moment> {
    let digits = text.split('.').next()?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) || !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let seconds: i64 = match digits.len() {
        9 | 10 => digits.parse().ok()?,
        12 | 13 => digits.parse::<i64>().ok()? / 1000,
        _ => return None,
    };
    let first: Moment = "1970-01-01T00:00:00Z".parse().ok()?;
    (seconds > 946_684_800).then(|| first.plus_seconds(seconds))
}

fn date(text: &str, order: Order) -> Option<(u32, u32, u32)> {
    let separator = text.chars().find(|c| ['/', '.', '-'].contains(c))?;
    let parts: Vec<&str> = text.split(separator).collect();
    let [first, second, third] = parts[..] else { return None };
    if first.len() == 4 {
        return Some((first.parse().ok()?, month(second)?, third.parse().ok()?));
    }
    let year: u32 = third.parse().ok()?;
    let year = if third.len() <= 2 { 2000 + year } else { year };
    let days_first = separator != '/' || order == Order::DayFirst;
    let (day, name) = if days_first { (first, second) } else { (second, first) };
    Some((year, month(name)?, day.parse().ok()?))
}

/// A month by its number or its English name.
fn month(text: &str) -> Option<u32> {
    const NAMES: [&str; 12] = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let lower = text.to_lowercase();
    let named = NAMES.iter().zip(1..).find(|(name, _)| lower.starts_with(**name)).map(|(_, number)| number);
    named.or_else(|| text.parse().ok())
}

/// `10:17`, `10:17:05.123`, `10.17.05`, before or after noon if `half` says so.
fn clock(text: &str, half: Option<&str>) -> Option<(u32, u32, u32)> {
    let (text, joined) = match text.to_ascii_uppercase() {
        upper if upper.ends_with("AM") => (text.get(..text.len() - 2)?, Some("AM")),
        upper if upper.ends_with("PM") => (text.get(..text.len() - 2)?, Some("PM")),
        _ => (text, None),
    };
    let mut parts = text.split([':', '.', ',']);
    let hour: u32 = parts.next()?.parse().ok()?;
    let minute: u32 = parts.next()?.parse().ok()?;
    let second: u32 = parts.next().map_or(Some(0), |second| second.parse().ok())?;
    let hour = match (joined.or(half).map(str::to_ascii_uppercase).as_deref(), hour) {
        (Some("AM"), 12) => 0,
        (Some("PM"), 1..=11) => hour + 12,
        _ => hour,
    };
    (hour < 24 && minute < 60 && second <= 60).then_some((hour, minute, second.min(59)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn moments_are_read_as_tools_write_them() {
        for text in [
            "2016-04-23T22:17:05",
            "2016-04-23 22:17:05.123",
            "2016-04-23T22:17:05+0000",
            "2016/04/23 22:17:05",
            "04/23/2016 10:17:05 PM",
            "04/23/16 22:17:05",
            "23.04.2016 22:17:05",
            "23-APR-16 10.17.05.000000 PM",
            "23-APR-2016 22:17:05",
            "1461449825",
            "1461449825000",
        ] {
            let read = moment(text, Order::MonthFirst).map(|moment| moment.to_string());
            assert_eq!(read.as_deref(), Some("2016-04-23T22:17:05+00:00"), "{text}");
        }
        assert_eq!(moment("12/04/2016", Order::DayFirst).unwrap().date(), "2016-04-12");
        assert_eq!(moment("04/23/2016 12:10:00 AM", Order::MonthFirst).unwrap().time(), "00:10");
        for wrong in ["", "6272", "10:17", "23/04/2016 10:17", "April", "1.5", "loop0"] {
            assert_eq!(moment(wrong, Order::MonthFirst), None, "{wrong}");
        }
    }

    #[test]
    fn the_dates_of_a_file_show_which_number_is_the_month() {
        assert_eq!(Order::of(["04/05/16", "04/23/16"].into_iter()), (Order::MonthFirst, true));
        assert_eq!(Order::of(["05/04/16", "23/04/16"].into_iter()), (Order::DayFirst, true));
        assert_eq!(Order::of(["05/04/16"].into_iter()), (Order::MonthFirst, false));
        assert_eq!(Order::of(["2016-04-23"].into_iter()), (Order::MonthFirst, true));
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "\\PC*", day in any::<bool>()) {
            let _ = moment(&text, if day { Order::DayFirst } else { Order::MonthFirst });
        }
    }
}
