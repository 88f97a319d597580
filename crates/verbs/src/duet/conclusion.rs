//! The conclusion of `rigel duet`: what is known of each arm against the first.

use super::result::{ArmResult, Compared, DuetResult};
use super::rounds::DuetAnswer;
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failures};
use rigel_analyse::figures::quantity::{Amount, Unit, rounded_length};
use rigel_analyse::{BoundVerdict, Status};
use rigel_model::Ratio;

/// Longer than this is not said to decide, in seconds: a day.
const SAID_MOST_S: f64 = 86_400.0;

pub(super) fn conclusion(found: &DuetResult) -> Conclusion {
    let others = found.arms.iter().skip(1);
    let said: Vec<String> = others.map(|arm| said(found, arm)).collect();
    let objections = Objections {
        caution: None,
        failure: failures(&found.points),
    };
    let answer = objections.conclude(&said.join(" "), &found.findings);
    let status = match found.outcome() {
        BoundVerdict::Broken | BoundVerdict::NotMeasured => Status::Bad,
        BoundVerdict::Undecided if answer.status != Status::Bad => Status::Warning,
        BoundVerdict::Undecided | BoundVerdict::Kept => answer.status,
    };
    Conclusion { status, ..answer }
}

/// The answer of one arm, in a sentence.
fn said(found: &DuetResult, arm: &ArmResult) -> String {
    // The table names more than two.
    let name = |arm: &ArmResult| match found.arms.len() {
        2 => format!("{} ({})", arm.arm, arm.name),
        _ => arm.arm.to_string(),
    };
    let (first, second) = (name(&found.arms[0]), name(arm));
    let Some(of) = arm.against_first else {
        return format!("{first} and {second} were not both measured.");
    };
    let change = format!("{} of throughput", change(&of));
    if let Some(limit) = found.slower_most.map(percent) {
        let than = format!("slower than {first} by more than {limit}: {change}");
        return match of.verdict {
            BoundVerdict::Broken => format!("{second} is {than}."),
            BoundVerdict::Kept => format!("{second} is not {than}."),
            _ => format!("Undecided whether {second} is {than}; {}.", more(&of)),
        };
    }
    let gives = format!("{} gives {change}", arm.arm);
    match of.answer {
        DuetAnswer::Different => format!("{first} and {second} differ: {gives}."),
        DuetAnswer::Equivalent => {
            let margin = percent(found.margin);
            format!("{first} and {second} are equivalent: {gives}, within ± {margin}.")
        }
        DuetAnswer::Undecided => {
            format!(
                "Undecided between {first} and {second}: {gives}; {}.",
                more(&of)
            )
        }
    }
}

/// A share as it was given: `2.0 %`.
pub(super) fn percent(share: Ratio) -> String {
    Amount::new(share.get().into(), Unit::RoundedPercent).to_string()
}

/// The multiple as a change, with its interval.
pub(super) fn change(of: &Compared) -> String {
    Amount::new(of.ratio, Unit::Change).in_cell()
}

/// What would decide it.
fn more(of: &Compared) -> String {
    match of.more_s.filter(|more| *more <= SAID_MOST_S) {
        Some(more) => format!(
            "about {} more would decide it",
            rounded_length(more.max(1.0).round())
        ),
        None if of.ratio.interval.is_some() => {
            "no day would decide it, but a greater --margin may".into()
        }
        None => "too few rounds were measured".into(),
    }
}
