//! The conclusion of `rigel duet`: what is known of each arm against the first.

use super::result::{ArmResult, Compared, DuetResult, is_overloaded};
use super::rounds::{DuetAnswer, DuetFigure};
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failures, time_to_decide};
use rigel_analyse::figures::quantity::{self, Amount, Unit, per_second, rounded_percent};
use rigel_analyse::{BoundVerdict, ClassSummary, RateMet};
use rigel_model::arm_letter;
use rigel_report::answers::TestCase;

pub(super) fn conclusion(found: &DuetResult) -> Conclusion {
    let others = found.arms.iter().skip(1);
    let of_arm = |arm| said(found, arm).into_iter().chain(summed(found, arm));
    let sentences: Vec<String> = others.flat_map(of_arm).collect();
    let objections = Objections {
        caution: None,
        failure: failures(&found.points).or_else(|| unserved(found)),
    };
    objections
        .conclude(&sentences.join(" "), &found.findings)
        .with_outcome(found.outcome())
}

/// Names the arms that do not serve the offered rate: what they answer in time is not what is offered.
fn unserved(found: &DuetResult) -> Option<String> {
    // What waits at the end of a visit because of a stall is served later.
    let is_behind = |class: &ClassSummary| {
        is_overloaded(class, found.rate_per_s)
            || class.met == Some(RateMet::No) && class.stalls.is_none()
    };
    let fails = |number: &u32| {
        let mut points = found.points.iter();
        let point = points.find(|point| point.coordinates.arm() == Some(*number));
        point.is_some_and(|point| point.classes.first().is_some_and(is_behind))
    };
    let arms = (0..).take(found.arms.len()).filter(fails).map(arm_letter);
    let arms: Vec<String> = arms.map(|letter| letter.to_string()).collect();
    let rate = found.rate_per_s.filter(|_| !arms.is_empty())?;
    let verb = if arms.len() == 1 { "does" } else { "do" };
    Some(format!(
        "{} {verb} not serve the {} offered: times grow with the time that is measured.",
        arms.join(" and "),
        per_second(rate as f64)
    ))
}

/// The answers of all arms. Without a limit of how much slower one may be, each is as it should be once it is known.
pub(super) fn answers(found: &DuetResult) -> Vec<TestCase> {
    let first = found.arms.first().map_or("", |arm| &arm.name);
    let others = found.arms.iter().skip(1);
    let seconds = found.used_s;
    let of_arm = |arm: &ArmResult| -> Vec<TestCase> {
        if arm.against_first.is_empty() {
            return vec![TestCase {
                name: format!("{} against {first}", arm.name),
                verdict: BoundVerdict::NotMeasured,
                word: "not measured",
                said: said(found, arm).concat(),
                seconds,
            }];
        }
        let compared = arm.against_first.iter().zip(said(found, arm));
        compared
            .map(|(of, said)| TestCase {
                name: format!("{} against {first}: {}", arm.name, of.figure.word()),
                verdict: of.verdict,
                word: answer_word(found, of),
                said,
                seconds,
            })
            .collect()
    };
    others.flat_map(of_arm).collect()
}

/// The answer in a word: whether the arm is slower than it may be; without such a limit, whether it differs.
pub(super) fn answer_word(found: &DuetResult, of: &Compared) -> &'static str {
    match (found.slower_most, of.verdict) {
        (None, _) => of.answer.word(),
        (_, BoundVerdict::Broken) => "slower",
        (_, BoundVerdict::Kept) => "not slower",
        _ => DuetAnswer::Undecided.word(),
    }
}

/// The answers of one arm, in a sentence each.
fn said(found: &DuetResult, arm: &ArmResult) -> Vec<String> {
    // The table names more than two.
    let name = |arm: &ArmResult| match found.arms.len() {
        2 => format!("{} ({})", arm.arm, arm.name),
        _ => arm.arm.to_string(),
    };
    let (first, second) = (name(&found.arms[0]), name(arm));
    if arm.against_first.is_empty() {
        let both = [&found.arms[0], arm].iter().all(|one| one.visits > 0);
        return vec![if both {
            format!(
                "{first} and {second} cannot be compared: in some rounds nothing completed in time."
            )
        } else {
            format!("{first} and {second} were not both measured.")
        }];
    }
    // The first sentence says which they are.
    let letters = (found.arms[0].arm.to_string(), arm.arm.to_string());
    let names = std::iter::once((first, second)).chain(std::iter::repeat(letters));
    let compared = arm.against_first.iter().zip(names);
    compared
        .map(|(of, (first, second))| answer(found, (&first, &second), arm.arm, of))
        .collect()
}

/// The times of all rounds together, where they are far from the mean of the rounds: a stall within one of
/// them is a small part of all, and most of that round.
fn summed(found: &DuetResult, arm: &ArmResult) -> Option<String> {
    const PART: f64 = 1.0 / 3.0;
    let first = found.arms.first()?;
    let far = arm.against_first.iter().filter_map(|of| {
        let (own, other) = match of.figure {
            DuetFigure::Throughput => return None,
            DuetFigure::P50 => (arm.p50_us?, first.p50_us?),
            DuetFigure::P99 => (arm.p99_us?, first.p99_us?),
        };
        let ratio = own / other;
        let apart = (ratio / of.ratio.value).ln().abs();
        let least = found
            .margin
            .get()
            .ln_1p()
            .max(of.ratio.value.ln().abs() * PART);
        let is_far = apart.is_finite() && apart > least;
        is_far.then(|| format!("{} is {}", of.figure.word(), quantity::change(ratio)))
    });
    let far: Vec<String> = far.collect();
    (!far.is_empty()).then(|| {
        format!(
            "Of all rounds together, {}'s {}: some rounds differ by far more than others.",
            arm.arm,
            far.join(", ")
        )
    })
}

/// One answer of the arm `letter`.
fn answer(
    found: &DuetResult,
    (first, second): (&str, &str),
    letter: char,
    of: &Compared,
) -> String {
    let change = change(of);
    let (of_what, change, gives) = match of.figure {
        DuetFigure::Throughput => {
            let change = format!("{change} of throughput");
            let gives = format!("{letter} gives {change}");
            (String::new(), change, gives)
        }
        figure => {
            let gives = format!("{letter}'s is {change}");
            (format!(" in {}", figure.word()), change, gives)
        }
    };
    if let Some(limit) = found.slower_most.map(|most| rounded_percent(most.get())) {
        let than = format!("slower than {first} by more than {limit}{of_what}");
        return match of.verdict {
            BoundVerdict::Broken => format!("{second} is {than}: {change}."),
            BoundVerdict::Kept => format!("{second} is not {than}: {change}."),
            _ => format!(
                "Undecided whether {second} is {than}: {change}; {}.",
                more(of)
            ),
        };
    }
    match of.answer {
        DuetAnswer::Different => format!("{first} and {second} differ{of_what}: {gives}."),
        DuetAnswer::Equivalent => {
            let margin = rounded_percent(found.margin.get());
            format!("{first} and {second} are equivalent{of_what}: {gives}, within ± {margin}.")
        }
        DuetAnswer::Undecided => {
            format!(
                "Undecided between {first} and {second}{of_what}: {gives}; {}.",
                more(of)
            )
        }
    }
}

/// The multiple as a change, with its interval.
pub(super) fn change(of: &Compared) -> String {
    Amount::new(of.ratio, Unit::Change).in_cell()
}

/// What would decide it.
fn more(of: &Compared) -> String {
    match time_to_decide(of.more_s) {
        Some(time) => format!("about {time} would decide it"),
        None if of.ratio.interval.is_some() => {
            "no day would decide it, but a greater --margin may".into()
        }
        None => "too few rounds were measured".into(),
    }
}
