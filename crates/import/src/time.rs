//! Parses times as other tools write them.

use rigel_model::Moment;

/// Which of two numbers that could both be a month is the month.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// 04/23/2016.
    MonthFirst,
    /// 23/04/2016.
    DayFirst,
}

impl Order {
    /// Detects the order from the dates of a file. It is day first if some first number cannot be a
    /// month, and month first if some second number cannot. Also returns whether the dates
    /// decide it. If not, dates with slashes are read as in the USA.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> (Self, bool) {
        let (mut shown, mut usual) = (None, Self::MonthFirst);
        let mut decided = true;
        for date in texts.filter_map(Numbers::of) {
            match (date.first > 12, date.second > 12) {
                (true, false) => return (Self::DayFirst, true),
                (false, true) => shown = Some(Self::MonthFirst),
                _ => {
                    decided = false;
                    usual = if date.separator == '/' {
                        Self::MonthFirst
                    } else {
                        Self::DayFirst
                    };
                }
            }
        }
        (shown.unwrap_or(usual), decided || shown.is_some())
    }

    fn first_word(self) -> &'static str {
        match self {
            Self::MonthFirst => "month",
            Self::DayFirst => "day",
        }
    }
}

/// A date of three numbers that does not begin with a year of four digits.
struct Numbers {
    separator: char,
    first: u32,
    second: u32,
    third: u32,
    /// True if the last number has at most two digits.
    is_short: bool,
}

impl Numbers {
    fn of(text: &str) -> Option<Self> {
        let date = text.split([' ', 'T', '\t']).find(|word| !word.is_empty())?;
        let separator = date.chars().find(|c| SEPARATORS.contains(c))?;
        let parts: Vec<&str> = date.split(separator).collect();
        let [first, second, third] = parts[..] else {
            return None;
        };
        (first.len() <= 2).then_some(())?;
        Some(Self {
            separator,
            first: first.parse().ok()?,
            second: second.parse().ok()?,
            third: third.parse().ok()?,
            is_short: third.len() <= 2,
        })
    }

    /// True if the year may be the first or the last number: the last may be a day, and the second
    /// a month.
    fn may_begin_with_year(&self) -> bool {
        self.is_short && (1..=12).contains(&self.second) && (1..=31).contains(&self.third)
    }
}

/// Separators between the parts of a date.
const SEPARATORS: [char; 3] = ['/', '.', '-'];

/// The order of the dates of a file, and notes about the assumptions.
pub fn manner<'a>(mut texts: impl Iterator<Item = &'a str> + Clone) -> (Order, Vec<String>) {
    let (order, is_shown) = Order::of(texts.clone());
    let mut notes = Vec::new();
    if !is_shown {
        let first = order.first_word();
        notes.push(format!(
            "dates do not show whether the month or the day comes first: the {first} is taken to"
        ));
    }
    let mut dates = texts
        .clone()
        .filter_map(Numbers::of)
        .filter(|date| date.is_short)
        .peekable();
    if dates.peek().is_some() && dates.all(|date| date.may_begin_with_year()) {
        notes.push(
            "dates do not show whether the year comes first or last: it is taken to come last"
                .into(),
        );
    }
    if !texts.any(has_offset) {
        notes.push("times have no offset from UTC: they are shown as written".into());
    }
    (order, notes)
}

/// True if a time contains its offset from UTC; seconds since 1970 are UTC.
fn has_offset(text: &str) -> bool {
    text.get(16..)
        .is_some_and(|rest| rest.contains(['+', 'Z', '-']))
        || since_1970(text).is_some()
}

/// Why `text` is not a date and time, as the end of a sentence.
pub fn why_not(text: &str) -> &'static str {
    match Numbers::of(text) {
        Some(date) if date.separator == '-' && date.may_begin_with_year() => {
            "may have its year first or last"
        }
        _ => "is not a date and time",
    }
}

/// Parses the time in `text`: RFC 3339 and similar forms, `11/21/26 15:43:21`, `04/23/2016 10:17:05
/// AM`, `23.04.2016 10:17`, `23-APR-16 10.17.00.000 AM`, seconds since 1970. Without an offset it
/// is assumed to be UTC. Returns `None` for `26-03-01`, whose year may be first or last.
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
    let (time, rest) = rest
        .split_first()
        .map_or(("00:00", &[][..]), |(time, rest)| (*time, rest));
    let (hour, minute, second) = clock(time, rest.first().copied())?;
    let zone = rest
        .last()
        .copied()
        .filter(|word| word.starts_with(['+', '-', 'Z']))
        .unwrap_or("");
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{zone}")
        .parse()
        .ok()
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, from the year 2000 on: an earlier
/// number is more likely something else.
fn since_1970(text: &str) -> Option<Moment> {
    let digits = text.split('.').next()?;
    if !digits.bytes().all(|byte| byte.is_ascii_digit())
        || !text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
    {
        return None;
    }
    let units = match digits.len() {
        9 | 10 => 1,
        12 | 13 => 1000,
        15 | 16 => 1_000_000,
        18 | 19 => 1_000_000_000,
        _ => return None,
    };
    let seconds = digits.parse::<i64>().ok()? / units;
    let first: Moment = "1970-01-01T00:00:00Z".parse().ok()?;
    (seconds > 946_684_800).then(|| first.plus_seconds(seconds))
}

fn date(text: &str, order: Order) -> Option<(u32, u32, u32)> {
    let separator = text.chars().find(|c| SEPARATORS.contains(c))?;
    let parts: Vec<&str> = text.split(separator).collect();
    let [first, second, third] = parts[..] else {
        return None;
    };
    if first.len() == 4 {
        return Some((first.parse().ok()?, month(second)?, third.parse().ok()?));
    }
    if separator == '-' && Numbers::of(text).is_some_and(|date| date.may_begin_with_year()) {
        return None;
    }
    let year: u32 = third.parse().ok()?;
    // With two digits, 50 to 99 belong to the last century, as in Oracle's RR.
    let year = if third.len() > 2 {
        year
    } else {
        year + if year < 50 { 2000 } else { 1900 }
    };
    let is_name = |part: &str| part.parse::<u32>().is_err();
    let is_month_first = is_name(first) || !is_name(second) && order == Order::MonthFirst;
    let (name, day) = if is_month_first {
        (first, second)
    } else {
        (second, first)
    };
    Some((year, month(name)?, day.parse().ok()?))
}

/// A month by its number or its English name.
fn month(text: &str) -> Option<u32> {
    const NAMES: [&str; 12] = [
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ];
    let lower = text.to_lowercase();
    let named = NAMES
        .iter()
        .zip(1..)
        .find(|(name, _)| lower.starts_with(**name))
        .map(|(_, number)| number);
    named.or_else(|| text.parse().ok())
}

/// Parses `10:17`, `10:17:05.123` or `10.17.05`; `half` may be AM or PM.
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
    let hour = match (
        joined.or(half).map(str::to_ascii_uppercase).as_deref(),
        hour,
    ) {
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
            "APR-23-2016 22:17:05",
            "23-04-2016 22:17:05",
            "04-23-2016 22:17:05",
            "1461449825000",
            "1461449825000000",
            "1461449825000000000",
            "1461449825.75",
        ] {
            let read =
                moment(text, Order::of([text].into_iter()).0).map(|moment| moment.to_string());
            assert_eq!(read.as_deref(), Some("2016-04-23T22:17:05+00:00"), "{text}");
        }
        assert_eq!(
            moment("12/04/2016", Order::DayFirst).unwrap().date(),
            "2016-04-12"
        );
        assert_eq!(
            moment("04/23/2016 12:10:00 AM", Order::MonthFirst)
                .unwrap()
                .time(),
            "00:10"
        );
        let year = |text: &str| moment(text, Order::DayFirst).unwrap().date();
        assert_eq!(
            (year("31-DEC-99"), year("31-DEC-49")),
            ("1999-12-31".into(), "2049-12-31".into())
        );
        for wrong in [
            "",
            "26-03-01 00:00",
            "6272",
            "10:17",
            "23/04/2016 10:17",
            "April",
            "1.5",
            "loop0",
        ] {
            assert_eq!(moment(wrong, Order::MonthFirst), None, "{wrong}");
        }
    }

    #[test]
    fn the_dates_of_a_file_show_which_number_is_the_month() {
        assert_eq!(
            Order::of(["04/05/16", "04/23/16"].into_iter()),
            (Order::MonthFirst, true)
        );
        assert_eq!(
            Order::of(["05/04/16", "23/04/16"].into_iter()),
            (Order::DayFirst, true)
        );
        assert_eq!(
            Order::of(["05/04/16"].into_iter()),
            (Order::MonthFirst, false)
        );
        assert_eq!(
            Order::of(["2016-04-23"].into_iter()),
            (Order::MonthFirst, true)
        );
        assert_eq!(
            Order::of(["03-01-2026"].into_iter()),
            (Order::DayFirst, false)
        );
        assert_eq!(
            Order::of(["03.01.2026", "03.23.2026"].into_iter()),
            (Order::MonthFirst, true)
        );
        assert_eq!(
            Order::of(["03-JAN-2026"].into_iter()),
            (Order::MonthFirst, true)
        );
    }

    #[test]
    fn ambiguous_dates_are_noted() {
        let notes = |texts: &[&'static str]| manner(texts.iter().copied()).1.join("; ");
        assert!(
            notes(&["03-01-2026"]).contains("month or the day comes first: the day is taken to")
        );
        assert!(
            notes(&["03/01/2026"]).contains("month or the day comes first: the month is taken to")
        );
        assert!(notes(&["26/03/01", "27/03/01"]).contains("year comes first or last"));
        assert!(!notes(&["11/21/26", "12/01/26"]).contains("first"));
        assert!(notes(&["2026-01-03 10:00"]).contains("no offset"));
        for reported in [
            "1461449825.5",
            "1461449825",
            "2016-04-23T10:17Z",
            "2016-04-23T10:17:05-05:00",
        ] {
            assert_eq!(notes(&[reported]), "", "{reported}");
        }
        assert_eq!(
            (why_not("26-03-01"), why_not("x")),
            ("may have its year first or last", "is not a date and time")
        );
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "\\PC*", day in any::<bool>()) {
            let _ = moment(&text, if day { Order::DayFirst } else { Order::MonthFirst });
        }
    }
}
