//! Parses the loads of `curve`: `1..64`, `1k..30k/500`, `10%..120%`, `1,2,5,9`; a mix; a second
//! stream.
//!
//! Input: the text of one option. Output: values of a plan, or a refusal that names the option, its
//! text and a hint. Opens nothing.

use super::calibrate::size_of_io;
use rigel_model::{
    Bytes, Error, KIB, MIB, Mix, Ratio, per_second, plain, tidy, usage, whole_per_second,
};
use rigel_verbs::curve::Loads;
use rigel_verbs::curve::{Background, BackgroundKind};

/// Most outstanding I/Os of an open loop, where nothing is given.
pub(super) const IN_FLIGHT: u32 = 256;

/// Maximum number of points of a curve.
const POINTS_MAX: f64 = 200.0;

/// Approximate number of steps between the ends of a range of rates.
const STEPS: f64 = 11.0;

/// The meaning of the numbers of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeUnit {
    Depth,
    Rate,
    Percent,
}

impl RangeUnit {
    fn greatest(self) -> f64 {
        match self {
            RangeUnit::Depth => 4096.0,
            RangeUnit::Rate => 1e8,
            RangeUnit::Percent => 1000.0,
        }
    }

    fn print(self, value: f64) -> String {
        if self == RangeUnit::Percent {
            format!("{value}%")
        } else {
            value.to_string()
        }
    }
}

/// An option as typed.
#[derive(Clone, Copy)]
struct GivenOption<'a> {
    option: &'a str,
    text: &'a str,
    usage: &'a str,
}

/// How `--depth` and `--sessions` are written.
const DEPTHS_USAGE: &str =
    "write it as 1..64, which doubles, 8..64/8, a list such as 1,2,5,9, or a single number";

/// How `--rate` is written.
const RATES_USAGE: &str = "write it as 1k..30k, 1k..30k/500, a list such as 500,1k,2k, a single \
                           rate, or in percent of the maximum: 10%..120%";

/// The loads of `--depth` or `--sessions`, whichever `option` names: a range doubles unless it has
/// a step.
///
/// # Errors
/// The text is invalid.
pub fn depths(option: &str, text: &str) -> Result<Loads, Error> {
    let given = GivenOption {
        option,
        text,
        usage: DEPTHS_USAGE,
    };
    let (values, _) = given.values(|number| Some((plain(number)?, RangeUnit::Depth)))?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, and 4096 at most"
    )]
    Ok(Loads::Depths(
        values.into_iter().map(|value| value as u32).collect(),
    ))
}

/// The loads of `--rate`: operations per second, or percent of the maximum.
///
/// # Errors
/// The text is neither, or mixes both.
pub fn rates(text: &str) -> Result<Loads, Error> {
    let given = GivenOption {
        option: "--rate",
        text,
        usage: RATES_USAGE,
    };
    let (values, unit) = given.values(|number| match number.strip_suffix('%') {
        Some(percent) => Some((plain(percent)?, RangeUnit::Percent)),
        None => Some((per_second(number)?, RangeUnit::Rate)),
    })?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, and 10^8 at most"
    )]
    Ok(match unit {
        RangeUnit::Percent => Loads::Percents(values),
        _ => Loads::Rates(values.into_iter().map(|value| value as u64).collect()),
    })
}

impl GivenOption<'_> {
    fn wrong(self, why: &str) -> Error {
        usage!(
            "{option} {text}: {why}",
            self.usage,
            option = self.option,
            text = self.text
        )
    }

    /// The loads, ascending, and their unit.
    fn values(
        self,
        number: impl Fn(&str) -> Option<(f64, RangeUnit)>,
    ) -> Result<(Vec<f64>, RangeUnit), Error> {
        let read = |text: &str| {
            let read = number(text)
                .ok_or_else(|| self.wrong(&format!("'{text}' is not a number here")))?;
            self.check(read.0, read.1).map(|()| read)
        };
        let (values, unit) = match self.text.split_once("..") {
            Some((first, rest)) => {
                let (last, step) = rest
                    .split_once('/')
                    .map_or((rest, None), |(last, step)| (last, Some(step)));
                let ((first, unit), (last, last_unit)) = (read(first)?, read(last)?);
                let step = step.map(read).transpose()?;
                if last_unit != unit || step.is_some_and(|(_, step_unit)| step_unit != unit) {
                    return Err(self.wrong("percentages and plain numbers are mixed"));
                }
                (
                    self.range(first, last, step.map(|(step, _)| step), unit)?,
                    unit,
                )
            }
            None => self.list(read)?,
        };
        Ok((values, unit))
    }

    /// Parses a list of one or several loads.
    fn list(
        self,
        read: impl Fn(&str) -> Result<(f64, RangeUnit), Error>,
    ) -> Result<(Vec<f64>, RangeUnit), Error> {
        let read: Vec<(f64, RangeUnit)> =
            self.text.split(',').map(read).collect::<Result<_, _>>()?;
        self.refuse_many(read.len() as f64)?;
        let unit = read[0].1;
        if read.iter().any(|(_, other)| *other != unit) {
            return Err(self.wrong("percentages and plain numbers are mixed"));
        }
        let values: Vec<f64> = read.into_iter().map(|(value, _)| value).collect();
        if let Some(two) = values.windows(2).find(|two| two[0] >= two[1]) {
            let [before, after] = [two[0], two[1]].map(|value| unit.print(value));
            return Err(self.wrong(&format!(
                "{after} comes after {before}, and a list must be ascending"
            )));
        }
        Ok((values, unit))
    }

    fn check(self, value: f64, unit: RangeUnit) -> Result<(), Error> {
        let shown = unit.print(value);
        if value <= 0.0 {
            return Err(self.wrong(&format!("{shown} is not a load")));
        }
        if unit != RangeUnit::Percent && value.fract() != 0.0 {
            return Err(self.wrong(&format!("{shown} is not a whole number")));
        }
        if value > unit.greatest() {
            return Err(self.wrong(&format!(
                "{shown} is more than {}",
                unit.print(unit.greatest())
            )));
        }
        Ok(())
    }

    fn refuse_many(self, points: f64) -> Result<(), Error> {
        if points <= POINTS_MAX {
            return Ok(());
        }
        let what = format!(
            "{} {}: that makes {points:.0} points; the maximum is {POINTS_MAX}",
            self.option, self.text
        );
        Err(Error::usage(
            what,
            "use larger steps, as in 1..64/8 or 1k..30k/5k",
        ))
    }

    /// The loads from `first` to `last`, both included.
    fn range(
        self,
        first: f64,
        last: f64,
        step: Option<f64>,
        unit: RangeUnit,
    ) -> Result<Vec<f64>, Error> {
        if first > last {
            let turned = format!("{}..{}", unit.print(last), unit.print(first));
            let what = format!("{} {}: the range runs backwards", self.option, self.text);
            return Err(Error::usage(what, format!("write it as {turned}")));
        }
        let mut values = match step {
            None if unit == RangeUnit::Depth => {
                std::iter::successors(Some(first), |value| Some(value * 2.0))
                    .take_while(|value| *value < last)
                    .collect()
            }
            step => {
                let step = step.unwrap_or_else(|| round_step(last - first, unit));
                let steps = tidy((last - first) / step).floor();
                self.refuse_many(steps + 1.0)?;
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "checked to be few"
                )]
                (0..=steps as u32)
                    .map(|number| tidy(first + f64::from(number) * step))
                    .collect::<Vec<_>>()
            }
        };
        if values.last().is_none_or(|value| *value < last) {
            values.push(last);
        }
        self.refuse_many(values.len() as f64)?;
        Ok(values)
    }
}

/// A round step that divides `span` into about [`STEPS`] parts.
fn round_step(span: f64, unit: RangeUnit) -> f64 {
    let wanted = span / STEPS;
    if wanted <= 0.0 {
        return 1.0;
    }
    let decade = 10f64.powf(wanted.log10().floor());
    let round = [1.0, 2.0, 2.5, 5.0, 10.0].map(|digit| digit * decade);
    let off = |step: &f64| (step / wanted).ln().abs();
    let step = round
        .into_iter()
        .min_by(|one, other| off(one).total_cmp(&off(other)))
        .unwrap_or(wanted);
    if unit == RangeUnit::Percent {
        step
    } else {
        step.round().max(1.0)
    }
}

/// Parses `read=70,write=30`; `log` instead of `write` for writes that complete when they are
/// durable.
///
/// # Errors
/// A kind is unknown or given twice, writes are of two kinds, or the shares do not sum to 100 %.
pub fn mix(text: &str) -> Result<Mix, Error> {
    const USAGE: &str =
        "write it as read=70,write=30, in percent; log instead of write for durable writes";
    let wrong = |why: String| usage!("--mix {text}: {why}", USAGE);
    let mut shares: Vec<(&str, f64)> = Vec::new();
    for part in text.split(',') {
        let (kind, share) = part
            .split_once('=')
            .ok_or_else(|| wrong(format!("'{part}' is not KIND=SHARE")))?;
        let kind = kind.trim();
        if !["read", "write", "log"].contains(&kind) {
            return Err(wrong(format!("'{kind}' is not a kind of I/O")));
        }
        if shares.iter().any(|(known, _)| *known == kind) {
            return Err(wrong(format!("'{kind}' is given twice")));
        }
        let share = share.trim();
        let percent = plain(share.strip_suffix('%').unwrap_or(share));
        shares.push((
            kind,
            percent.ok_or_else(|| wrong(format!("'{share}' is not a percentage")))?,
        ));
    }
    let share = |wanted: &str| {
        shares
            .iter()
            .find(|(kind, _)| *kind == wanted)
            .map_or(0.0, |(_, share)| *share)
    };
    let (writes, log) = (share("write"), share("log"));
    if writes > 0.0 && log > 0.0 {
        return Err(wrong("write and log exclude each other".into()));
    }
    let sum = tidy(shares.iter().map(|(_, share)| share).sum());
    if (sum - 100.0).abs() > 1e-6 {
        return Err(wrong(format!("the shares sum to {sum} %, not to 100 %")));
    }
    let ratio = Ratio::from_percent((writes + log).min(100.0));
    Ok(Mix {
        writes: ratio.expect("a share of what sums to 100"),
        durable: log > 0.0,
    })
}

/// Parses streams that run beside, such as `large:2`, `large:2@512k` or `read:5000/s,write:500/s@16k`: a
/// number outstanding in a closed loop, or I/Os per second at random times.
///
/// # Errors
/// The text is invalid.
pub fn background(text: &str) -> Result<Vec<Background>, Error> {
    let mut all: Vec<Background> = Vec::new();
    for one in text.split(',') {
        let found = stream_beside(text, one.trim())?;
        if all.iter().any(|known| known.kind == found.kind) {
            let kind = found.kind.name();
            return Err(usage!(
                "--background {text}: '{kind}' is given twice",
                "give each kind once"
            ));
        }
        all.push(found);
    }
    Ok(all)
}

fn stream_beside(text: &str, one: &str) -> Result<Background, Error> {
    const USAGE: &str = "write it as large:2 for 2 outstanding reads of 1MiB, as large:2@512k, or as \
                         read:5000/s,write:500/s@16k for I/Os per second";
    let wrong = |why: &str| usage!("--background {text}: {why}", USAGE);
    let (kind, rest) = one.split_once(':').unwrap_or((one, ""));
    let kind = BackgroundKind::ALL
        .into_iter()
        .find(|known| known.name() == kind);
    let kind = kind.ok_or_else(|| wrong("the kinds are large, read and write"))?;
    let (load, size) = rest
        .split_once('@')
        .map_or((rest, None), |(load, size)| (load, Some(size)));
    let (depth, per_s) = if let Some(per_s) = load.trim().strip_suffix("/s") {
        let whole = whole_per_second(per_s);
        let per_s =
            whole.ok_or_else(|| wrong("I/Os per second must be a whole number from 1 on"))?;
        (IN_FLIGHT, Some(per_s))
    } else {
        let depth = load
            .trim()
            .parse()
            .ok()
            .filter(|depth| (1..=4096).contains(depth));
        let depth =
            depth.ok_or_else(|| wrong("the number of outstanding I/Os must be from 1 to 4096"))?;
        (depth, None)
    };
    let usual = match kind {
        BackgroundKind::Large => MIB,
        BackgroundKind::Read | BackgroundKind::Write => 8 * KIB,
    };
    let size = size.map_or(Ok(Bytes(usual)), |size| {
        size.parse()
            .map_err(|_| wrong("the part after @ is not a size"))
    })?;
    Ok(Background {
        kind,
        length: size_of_io("--background", size)?,
        depth,
        per_s,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn depths_double_step_or_are_listed() {
        for (text, wanted) in [
            ("1..64", &[1, 2, 4, 8, 16, 32, 64][..]),
            ("1..50", &[1, 2, 4, 8, 16, 32, 50]),
            ("3..20", &[3, 6, 12, 20]),
            ("8..8", &[8]),
            ("1..10/3", &[1, 4, 7, 10]),
            ("1..9/3", &[1, 4, 7, 9]),
            ("1,2,5,9", &[1, 2, 5, 9]),
            ("16", &[16]),
        ] {
            assert_eq!(
                depths("--depth", text),
                Ok(Loads::Depths(wanted.to_vec())),
                "{text}"
            );
        }
    }

    #[test]
    fn rates_take_about_twelve_round_steps() {
        let rates = |text| match super::rates(text) {
            Ok(Loads::Rates(rates)) => rates,
            other => panic!("{other:?}"),
        };
        let steps = rates("1k..30k");
        assert_eq!(
            (steps.len(), steps[0], steps[1], steps[12]),
            (13, 1000, 3500, 30_000)
        );
        assert_eq!(rates("1k..2k/500"), [1000, 1500, 2000]);
        assert_eq!(rates("500,1.5k,2M"), [500, 1500, 2_000_000]);
        assert_eq!(rates("1..3"), [1, 2, 3]);
    }

    #[test]
    fn shares_of_the_maximum_take_steps_of_ten() {
        let tens: Vec<f64> = (1..=12).map(|ten| f64::from(ten) * 10.0).collect();
        assert_eq!(rates("10%..120%"), Ok(Loads::Percents(tens)));
        assert_eq!(
            rates("50%..60%/2.5%"),
            Ok(Loads::Percents(vec![50.0, 52.5, 55.0, 57.5, 60.0]))
        );
        assert_eq!(rates("80%"), Ok(Loads::Percents(vec![80.0])));
    }

    #[test]
    fn loads_that_make_no_sense_are_refused_by_option_and_text_with_a_hint() {
        let plain = [
            "", "x", "1..", "..5", "1..2..3", "64..1", "0", "0..4", "1.5", "-1", "1..4097",
            "1..4/0", "1..4/x",
        ];
        let lists = ["1,,2", "2,1", "1,1", "1..4096/1", "1e3", "inf", "NaN", "5%"];
        for text in plain.into_iter().chain(lists) {
            let error = depths("--sessions", text).unwrap_err();
            assert_eq!(error.exit_status(), 2, "{text}");
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("--sessions {text}: ")),
                "{error}"
            );
            assert!(error.to_string().contains("hint: "), "{error}");
        }
        for text in [
            "10%..120",
            "10..120%",
            "10,20%",
            "10%..20%/5",
            "0%",
            "1001%",
            "1k..1M/1",
            "0.5",
            "1kk",
            "200M",
        ] {
            let error = rates(text).unwrap_err();
            assert!(
                error.to_string().starts_with(&format!("--rate {text}: ")),
                "{error}"
            );
        }
    }

    #[test]
    fn a_mix_sums_to_a_hundred() {
        let ratio = |percent| Ratio::from_percent(percent).unwrap();
        assert_eq!(
            mix("read=70,write=30"),
            Ok(Mix {
                writes: ratio(30.0),
                durable: false
            })
        );
        assert_eq!(
            mix("log=25%,read=75%"),
            Ok(Mix {
                writes: ratio(25.0),
                durable: true
            })
        );
        assert_eq!(mix("read=100"), Ok(Mix::READS));
        assert_eq!(mix("write=100").map(|mix| mix.writes), Ok(Ratio::ONE));
        for text in [
            "",
            "read",
            "read=70",
            "read=70,write=40",
            "read=50,read=50",
            "trim=100",
            "read=-1",
            "read=x",
        ] {
            assert!(
                mix(text)
                    .unwrap_err()
                    .to_string()
                    .starts_with(&format!("--mix {text}: ")),
                "{text}"
            );
        }
        assert!(mix("write=50,log=50").is_err());
    }

    #[test]
    fn streams_beside_are_a_number_outstanding_or_per_second() {
        let large = |length, depth| Background {
            kind: BackgroundKind::Large,
            length,
            depth,
            per_s: None,
        };
        assert_eq!(background("large:2"), Ok(vec![large(1 << 20, 2)]));
        assert_eq!(background("large:4@512k"), Ok(vec![large(512 << 10, 4)]));
        let open = |kind, length, per_s| Background {
            kind,
            length,
            depth: 256,
            per_s: Some(per_s),
        };
        assert_eq!(
            background("read:5k/s, write:500/s@16k"),
            Ok(vec![
                open(BackgroundKind::Read, 8192, 5000),
                open(BackgroundKind::Write, 16_384, 500)
            ])
        );
        for text in [
            "read:0/s",
            "read:0.5/s",
            "read:/s",
            "read:5,read:6",
            "",
            "large",
            "large:",
            "large:0",
            "large:x",
            "small:2",
            "large:2@",
            "large:2@1000",
            "large:5000",
        ] {
            assert_eq!(background(text).unwrap_err().exit_status(), 2, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_range_holds_both_ends_ascending(first in 1u32..4096, more in 0u32..4096, step in 30u32..100) {
            let last = (first + more).min(4096);
            for text in [format!("{first}..{last}"), format!("{first}..{last}/{step}")] {
                let Ok(Loads::Depths(depths)) = depths("--depth", &text) else { panic!("{text}") };
                prop_assert_eq!((depths[0], depths[depths.len() - 1]), (first, last));
                prop_assert!(depths.windows(2).all(|two| two[0] < two[1]), "{:?}", depths);
            }
            let Ok(Loads::Rates(rates)) = rates(&format!("{first}..{last}")) else { panic!("{first}..{last}") };
            prop_assert_eq!((rates[0], rates[rates.len() - 1]), (first.into(), last.into()));
            prop_assert!(rates.len() <= 17 && rates.windows(2).all(|two| two[0] < two[1]), "{:?}", rates);
        }

        #[test]
        fn no_text_makes_a_parser_panic(text in "([0-9]{1,20}|[.]{2}|[a-z%,/@=:. ]|.){0,12}") {
            let _ = (depths("--depth", &text), rates(&text), mix(&text), background(&text));
        }
    }
}
