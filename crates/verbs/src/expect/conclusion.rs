//! The conclusion of `rigel expect`: the outcome, and the line that decides it.

use super::profile::ProfileUsed;
use super::request::ExpectRequest;
use super::result::{ExpectResult, ExpectedLine};
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failed, time_to_decide};
use rigel_analyse::figures::quantity::{Amount, Unit, counted, listed, rounded_length};
use rigel_analyse::{BoundVerdict, Estimate, ExpectedLimit, Limits};
use rigel_model::record::journal::Header;
use rigel_model::{Expectation, Measure};

/// More than this times what a volume is sold with comes from elsewhere.
const MORE_THAN_SOLD: f64 = 2.0;

pub(super) fn conclusion(header: &Header, found: &ExpectResult) -> Conclusion {
    let request: Option<ExpectRequest> = header.invocation.asked("expect");
    // Only a volume is sold with so much; others ask for what is enough.
    let profiles = request.map_or_else(Vec::new, |request| request.profiles);
    let is_sold = profiles.iter().any(ProfileUsed::is_sold);
    let names = profiles.into_iter().map(|one| one.name);
    // A run is no profile, and its lines name it.
    let names: Vec<String> = names
        .filter(|name| !name.starts_with(Expectation::NOT_WORSE))
        .collect();
    let objections = Objections {
        caution: is_sold.then(|| more_than_sold(found)).flatten(),
        failure: failed(&found.points, "each is taken to be slower than any limit"),
    };
    objections
        .conclude(&answer(found, &names), &found.findings)
        .with_outcome(found.outcome)
}

/// Cautions of a volume that does far more than its profile has, if it does: that lasts no longer than what
/// it comes from, and a run of minutes may not see its end.
fn more_than_sold(found: &ExpectResult) -> Option<String> {
    let lines = found
        .lines
        .iter()
        .filter_map(|line| match line.condition.limit.0 {
            Measure::Rate(sold) => Some((line.figure?.least() / sold, line)),
            _ => None,
        });
    let (times, line) = lines.max_by(|one, other| one.0.total_cmp(&other.0))?;
    (times > MORE_THAN_SOLD).then(|| {
        format!(
            "It does at least {times:.0} times as much as {} asks: by burst credit or a cache, perhaps, which rigel \
             calibrate looks for.",
            line.condition
        )
    })
}

/// The outcome in a sentence, with the line that decides it; `profiles` are the names of those that were asked.
pub(crate) fn answer(found: &ExpectResult, profiles: &[String]) -> String {
    let of = if profiles.is_empty() {
        String::new()
    } else {
        format!(" for {}", listed(profiles))
    };
    let all = found.lines.len() as u64;
    let deciding = found.with(found.outcome);
    match (found.outcome, &deciding[..]) {
        (BoundVerdict::Kept, [line]) => format!("Met{of}: {}.", said(line)),
        (BoundVerdict::Kept, [_, _]) => format!("Met{of}: both expectations."),
        (BoundVerdict::Kept, _) => format!("Met{of}: all {}.", counted(all, "expectation")),
        (outcome, [first, rest @ ..]) => {
            let heading = match outcome {
                BoundVerdict::Broken => "Not met",
                BoundVerdict::NotMeasured => "Not measured",
                BoundVerdict::Undecided | BoundVerdict::Kept => "Undecided",
            };
            let of_all = match rest.len() {
                0 => String::new(),
                others => format!(", {} of {all}", others + 1),
            };
            format!("{heading}{of}{of_all}: {}.", said(first))
        }
        (_, []) => "Nothing was expected.".into(),
    }
}

/// `p99<2ms@3000/s: 3.4 ms (3.1 to 3.9)`, and what would decide it.
pub(super) fn said(line: &ExpectedLine) -> String {
    let condition = line.condition;
    match line.outcome {
        BoundVerdict::NotMeasured => format!("{condition}: {}", line.why),
        BoundVerdict::Undecided => {
            format!("{condition}: {}; {}", figure(line), more_in_words(line))
        }
        BoundVerdict::Kept | BoundVerdict::Broken => format!("{condition}: {}", figure(line)),
    }
}

/// A figure of a line, in the unit in which it is expected.
pub(super) fn amount(line: &ExpectedLine, figure: Estimate) -> Amount {
    match line.condition.mib_per_s() {
        Some(_) => Amount::new(figure.scaled(Expectation::MIB_OF_MB), Unit::MibPerSecond),
        None => Amount::new(figure, line.unit),
    }
}

/// The figure of a line with its interval, or what is not met besides it.
pub(super) fn figure(line: &ExpectedLine) -> String {
    if line.outcome == BoundVerdict::Broken && !line.why.is_empty() {
        return line.why.clone();
    }
    let Some(figure) = line.figure else {
        return "no figure".into();
    };
    let amount = self::amount(line, figure);
    if let Measure::Max(_) = line.condition.limit.0 {
        return format!("{amount} in {}", rounded_length(line.measured_s));
    }
    match figure.interval {
        // Nothing is known of the lower limit where visits differ that much.
        Some(Limits {
            low,
            high: Some(high),
        }) if low <= 0.0 => {
            let high = self::amount(line, high.into());
            format!("{amount} (at most {high})")
        }
        // The limit itself is no figure that was measured.
        Some(Limits {
            low,
            high: Some(high),
        }) if is_cut(line, high) => {
            let [low, high] = [low, high].map(|end| self::amount(line, end.into()));
            format!("{amount} ({low} to below {high})")
        }
        _ => amount.in_cell(),
    }
}

/// True if the interval of a quantile that is kept ends where its operations were counted: at the limit.
fn is_cut(line: &ExpectedLine, high: f64) -> bool {
    let limit = ExpectedLimit::from(&line.condition).forgiven();
    line.outcome == BoundVerdict::Kept && (high / limit - 1.0).abs() < 1e-9
}

/// How much longer would decide a line that is undecided, in a few words.
pub(super) fn more(line: &ExpectedLine) -> String {
    if !line.why.is_empty() {
        let is_known = has_both_ends(line);
        return if is_known {
            "measure again"
        } else {
            "no interval"
        }
        .into();
    }
    match time_to_decide(line.more_s) {
        Some(time) => time,
        None if has_both_ends(line) => "not by more time".into(),
        None => "too short".into(),
    }
}

/// True if a longer time would only narrow what is known already.
fn has_both_ends(line: &ExpectedLine) -> bool {
    let interval = line.figure.and_then(|figure| figure.interval);
    interval.is_some_and(|interval| interval.high.is_some())
}

fn more_in_words(line: &ExpectedLine) -> String {
    if !line.why.is_empty() {
        return line.why.clone();
    }
    match time_to_decide(line.more_s) {
        Some(time) => format!("about {time} would decide it"),
        None if has_both_ends(line) => {
            "no more time would decide it, but a margin such as ±5% may".into()
        }
        None => "too little was measured".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_is_known_and_what_would_decide_it() {
        let line = |outcome, limits: Option<(f64, Option<f64>)>, more_s| ExpectedLine {
            outcome,
            condition: "p99<2ms@3000/s".parse().unwrap(),
            load: "3000/s".into(),
            figure: Some(Estimate::new(
                1900.0,
                limits.map(|(low, high)| Limits { low, high }),
            )),
            unit: Unit::Microseconds,
            operations: 9000,
            measured_s: 3.0,
            more_s,
            why: String::new(),
        };
        let kept = line(BoundVerdict::Kept, Some((0.0, Some(2000.0))), None);
        assert_eq!(said(&kept), "p99<2ms@3000/s: 1.90 ms (at most 2.00 ms)");
        let known = Some((1800.0, Some(2100.0)));
        let later = line(BoundVerdict::Undecided, known, Some(300.0));
        assert_eq!(
            said(&later),
            "p99<2ms@3000/s: 1.90 ms (1.80 to 2.10); about 5 minutes more would decide it"
        );
        let never = line(BoundVerdict::Undecided, known, None);
        assert!(said(&never).ends_with("a margin such as ±5% may"));
        let short = line(BoundVerdict::Undecided, None, None);
        assert_eq!(more(&short), "too short");
        let broken = ExpectedLine {
            why: "3,000/s offered, and not served".into(),
            ..line(BoundVerdict::Broken, known, None)
        };
        assert_eq!(
            said(&broken),
            "p99<2ms@3000/s: 3,000/s offered, and not served"
        );
    }
}
