//! Numbers, times and labels of buckets as Oracle's reports print them.
//!
//! A number keeps the place of its last digit. A number that could be read in two ways, such as
//! `1.234,5`, is not read.

use rigel_model::MIB;
use rigel_model::record::database::Printed;

/// A number and what stands behind it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Lettered<'a> {
    value: f64,
    /// Half of the last printed place.
    half: f64,
    /// True if neither a fraction nor an exponent nor a suffix hides digits.
    is_whole: bool,
    suffix: &'a str,
}

fn lettered(text: &str) -> Option<Lettered<'_>> {
    let text = text.trim();
    let end = text
        .char_indices()
        .find(|(at, c)| {
            let is_exponent = matches!(c, 'e' | 'E')
                && *at > 0
                && text[at + 1..].starts_with(['+', '-', '0', '1', '2', '3']);
            !(c.is_ascii_digit()
                || matches!(c, '.' | ',')
                || (matches!(c, '-' | '+') && (*at == 0 || text[..*at].ends_with(['e', 'E'])))
                || is_exponent)
        })
        .map_or(text.len(), |(at, _)| at);
    let (number, suffix) = text.split_at(end);
    let plain = without_groups(number)?;
    let value = plain
        .parse::<f64>()
        .ok()
        .filter(|value| value.is_finite())?;
    let (mantissa, exponent) = plain
        .split_once(['e', 'E'])
        .map_or((plain.as_str(), 0), |(mantissa, exponent)| {
            (mantissa, exponent.parse::<i32>().unwrap_or(0))
        });
    let decimals = mantissa
        .split_once('.')
        .map_or(0, |(_, digits)| digits.len());
    let place = exponent.saturating_sub(i32::try_from(decimals).unwrap_or(i32::MAX));
    let half = 0.5 * 10f64.powi(place);
    let suffix = suffix.trim();
    Some(Lettered {
        value,
        half: if half.is_finite() { half } else { return None },
        is_whole: decimals == 0 && exponent == 0 && suffix.is_empty(),
        suffix,
    })
}

/// Removes commas between groups of three digits. `None` for other commas.
fn without_groups(number: &str) -> Option<String> {
    if !number.contains(',') {
        return Some(number.to_string());
    }
    let (whole, rest) = number.split_once('.').unwrap_or((number, ""));
    let unsigned = whole.trim_start_matches(['-', '+']);
    let mut groups = unsigned.split(',');
    let first = groups.next()?;
    let is_grouped = (1..=3).contains(&first.len())
        && groups.all(|group| group.len() == 3)
        && !rest.contains(',');
    is_grouped.then(|| number.replace(',', ""))
}

/// True for a number that can only have a decimal comma: `1.234,5`, `60,25 (mins)`. Other numbers with a
/// comma may be lists, such as a file and a block.
pub(super) fn has_decimal_comma(text: &str) -> bool {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','));
    let (number, unit) = text.split_at(end.unwrap_or(text.len()));
    let Some((whole, decimals)) = number.split_once(',') else {
        return false;
    };
    let mut groups = whole.split('.');
    let is_grouped = (1..=3).contains(&groups.next().map_or(0, str::len))
        && groups.all(|group| group.len() == 3);
    let is_decimal = !decimals.is_empty() && decimals.bytes().all(|byte| byte.is_ascii_digit());
    let is_time = unit.trim_start().starts_with("(mins)");
    is_grouped && is_decimal && (is_time || unit.len() <= 2 && whole.contains('.'))
}

/// A number that may be a suffix of thousands away from its value.
fn scaled(text: &str, step: f64) -> Option<(Printed, bool)> {
    let number = lettered(text)?;
    let power = match number.suffix {
        "" => 0,
        "K" => 1,
        "M" => 2,
        "G" => 3,
        "T" => 4,
        "P" => 5,
        _ => return None,
    };
    let factor = step.powi(power);
    let printed = Printed {
        value: number.value * factor,
        half: number.half * factor,
    };
    Some((printed, number.is_whole))
}

/// A rate, a share, or a time in the unit of its header: `1,399,224.84`, `.5`, `321.5K`, `4.8E+08`.
/// `None` if it is blank, `N/A`, did not fit (`####`), or could be read in two ways.
pub(crate) fn figure(text: &str) -> Option<Printed> {
    scaled(text, 1000.0).map(|(printed, _)| printed)
}

/// A count: one that is printed in full is exact.
pub(crate) fn count(text: &str) -> Option<Printed> {
    let (printed, is_whole) = scaled(text, 1000.0)?;
    (printed.value >= 0.0).then_some(Printed {
        half: if is_whole { 0.0 } else { printed.half },
        ..printed
    })
}

/// An amount of data in 2^20 bytes: `73.799M`, `16.3G`, `4.53`. A bare number is in that unit. `0M`
/// stands for less than half of the third decimal.
pub(super) fn mebibytes(text: &str) -> Option<Printed> {
    const STEP: f64 = 1024.0;
    let number = lettered(text)?;
    let factor = match number.suffix {
        "" | "M" => 1.0,
        "K" => 1.0 / STEP,
        "G" => STEP,
        "T" => STEP * STEP,
        "P" => STEP * STEP * STEP,
        _ => return None,
    };
    let half = if number.value == 0.0 && number.suffix == "M" {
        0.5e-3
    } else {
        number.half * factor
    };
    Some(Printed {
        value: number.value * factor,
        half,
    })
}

/// A time in microseconds: `353.90us`, `52.86 s`, `.00ns`. A bare number has the unit of its header:
/// `bare_us` microseconds.
pub(super) fn microseconds(text: &str, bare_us: Option<f64>) -> Option<Printed> {
    let number = lettered(text)?;
    let factor = match number.suffix {
        "" => bare_us?,
        "ns" => 1e-3,
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3600e6,
        _ => return None,
    };
    (number.value >= 0.0).then_some(Printed {
        value: number.value * factor,
        half: number.half * factor,
    })
}

/// A share in percent with the count that some tables print behind it: `0.0(539)`, `<0.01(88)`.
pub(super) fn share_and_count(text: &str) -> (Option<Printed>, Option<f64>) {
    let text = text.trim();
    let (share, counted) = match text.split_once('(') {
        Some((share, rest)) => (
            share,
            rest.strip_suffix(')')
                .and_then(count)
                .map(|count| count.value),
        ),
        None => (text, None),
    };
    // Below the last printed place.
    let printed = match share.strip_prefix('<') {
        Some(bound) => figure(bound).map(|bound| Printed {
            value: bound.value / 2.0,
            half: bound.value / 2.0,
        }),
        None => figure(share),
    };
    (printed, counted)
}

/// Bytes of a size such as `8K` or `8192`.
pub(super) fn block_bytes(text: &str) -> Option<u32> {
    let number = lettered(text)?;
    let bytes = match number.suffix {
        "" => number.value,
        "K" | "k" => number.value * 1024.0,
        "M" => number.value * MIB as f64,
        _ => return None,
    };
    let is_block = (512.0..=MIB as f64).contains(&bytes) && bytes.fract() == 0.0;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "up to 2^20"
    )]
    is_block.then_some(bytes as u32)
}

/// What the head of a histogram's column says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum BucketHead {
    /// Waits below this many microseconds, as the label is written.
    Below(f64),
    /// The last bucket, without an upper bound.
    Above(f64),
}

/// The head of a histogram's column: `<512us`, `<1/8s`, `<=1s`, `>=1s`, `< 1m`. `None` for another
/// head.
pub(super) fn bucket_head(text: &str) -> Option<BucketHead> {
    let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let (is_last, label) = match text.strip_prefix('<') {
        Some(label) => (false, label),
        None => (true, text.strip_prefix('>')?),
    };
    let label = label.strip_prefix('=').unwrap_or(label);
    let digits = label
        .find(|c: char| !c.is_ascii_digit() && c != '/')
        .unwrap_or(label.len());
    let (number, unit) = label.split_at(digits);
    let value = match number.split_once('/') {
        Some((above, below)) => above.parse::<f64>().ok()? / below.parse::<f64>().ok()?,
        None => number.parse().ok()?,
    };
    let unit_us = match unit {
        // Heads of text reports are cut to five characters or four: `<128u`, `>=512`, `<512`. Only
        // microseconds have three digits.
        "us" | "u" | "" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" => 60e6,
        "h" => 3600e6,
        _ => return None,
    };
    let us = value * unit_us;
    (us.is_finite() && us > 0.0).then_some(if is_last {
        BucketHead::Above(us)
    } else {
        BucketHead::Below(us)
    })
}

/// The bound that a label stands for. Since 12.2 bounds are powers of two of a microsecond, before
/// they are powers of two of a millisecond: `<1s` is 1,048,576 or 1,024,000 microseconds.
pub(super) fn true_bound_us(labelled_us: f64, is_in_microseconds: bool) -> f64 {
    let unit = if is_in_microseconds { 1.0 } else { 1e3 };
    unit * (labelled_us / unit).log2().round().exp2()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_place_of_their_last_digit() {
        for (text, value, half) in [
            ("1,399,224.84", 1_399_224.84, 0.005),
            (".5", 0.5, 0.05),
            ("321.5K", 321_500.0, 50.0),
            ("4.8E+08", 4.8e8, 5e6),
            ("-291.55", -291.55, 0.005),
            ("2.1M", 2.1e6, 5e4),
            ("0", 0.0, 0.5),
        ] {
            let printed = figure(text).unwrap();
            assert!(
                (printed.value - value).abs() < 1e-9 * value.abs().max(1.0),
                "{text}"
            );
            assert!(
                (printed.half - half).abs() < 1e-9 * half,
                "{text}: {printed:?}"
            );
        }
        assert!(count("98,875,012").unwrap().half.abs() < 1e-12);
        assert!((count("35K").unwrap().half - 500.0).abs() < 1e-9);
    }

    #[test]
    fn a_number_with_two_senses_is_not_read() {
        for text in [
            "1.234,5", "12,34", "1,2345", "########", "N/A", "", "  ", "-", "1,234,", "e5",
            "1e999", "5 apples",
        ] {
            assert_eq!(figure(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_decimal_comma_is_told_from_one_between_thousands() {
        for text in [
            "1.234,5",
            "60,25 (mins)",
            "1.353,90us",
            "1.234.567,123",
            "1.321,5K",
        ] {
            assert!(has_decimal_comma(text), "{text}");
        }
        for text in [
            "1,234.5",
            "1,234",
            "12,345,678",
            "1,234K",
            "1.5",
            ".5",
            "",
            ",",
            "1,",
            "a,5",
            "1,2,3",
            "1,23 apples",
            "123,456us",
        ] {
            assert!(!has_decimal_comma(text), "{text}");
        }
    }

    #[test]
    fn times_have_the_unit_that_is_printed() {
        for (text, us) in [
            ("353.90us", 353.9),
            ("2.46ms", 2460.0),
            ("52.86 s", 52_860_000.0),
            (".00ns", 0.0),
            ("143.2ns", 0.1432),
            (".95ms", 950.0),
        ] {
            let read = microseconds(text, None).unwrap().value;
            assert!((read - us).abs() < 1e-6 * us.max(1.0), "{text}: {read}");
        }
        assert_eq!(microseconds("4", None), None);
        assert!((microseconds("4", Some(1e3)).unwrap().half - 500.0).abs() < 1e-9);
    }

    #[test]
    fn data_is_in_steps_of_1024_and_counts_are_in_steps_of_1000() {
        assert!((mebibytes("16.3G").unwrap().value - 16.3 * 1024.0).abs() < 1e-9);
        assert!((mebibytes(".041M").unwrap().value - 0.041).abs() < 1e-12);
        assert!((count("10.7K").unwrap().value - 10_700.0).abs() < 1e-9);
        assert_eq!(block_bytes("8K"), Some(8192));
        assert_eq!(block_bytes("8K8"), None);
    }

    #[test]
    fn a_share_may_have_its_count_behind_it() {
        assert_eq!(share_and_count("0.0(539)").1, Some(539.0));
        let (below, counted) = share_and_count("<0.01(88)");
        assert_eq!(counted, Some(88.0));
        assert!((below.unwrap().range().1 - 0.01).abs() < 1e-12);
        assert_eq!(share_and_count(""), (None, None));
    }

    #[test]
    fn heads_of_buckets_are_powers_of_two_of_their_unit() {
        let bound = |text, is_us| match bucket_head(text).unwrap() {
            BucketHead::Below(us) | BucketHead::Above(us) => true_bound_us(us, is_us),
        };
        for (text, is_us, us) in [
            ("<8us", true, 8.0),
            ("<128u", true, 128.0),
            (">=512", true, 512.0),
            ("<512", true, 512.0),
            ("<1ms", true, 1024.0),
            ("<1s", true, 1_048_576.0),
            ("<1/8s", true, 131_072.0),
            ("< 1m", true, 67_108_864.0),
            ("<1ms", false, 1000.0),
            ("<=1s", false, 1_024_000.0),
            ("<1/8s", false, 128_000.0),
            ("< 1m", false, 65_536_000.0),
        ] {
            assert!((bound(text, is_us) - us).abs() < 1e-6, "{text}");
        }
        for text in ["Event", "<", ">", "<0ms", "<1/0s", "Waits 64ms to 2s"] {
            assert_eq!(bucket_head(text), None, "{text}");
        }
    }
}
