//! The conclusion of `rigel duet`: what is known of each arm against the first.

use super::result::{ArmResult, Compared, DuetResult};
use super::rounds::DuetAnswer;
use rigel_analyse::BoundVerdict;
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failures, time_to_decide};
use rigel_analyse::figures::quantity::{Amount, Unit};
use rigel_model::Ratio;

pub(super) fn conclusion(found: &DuetResult) -> Conclusion {
    let others = found.arms.iter().skip(1);
    let sentences: Vec<String> = others.map(|arm| said(found, arm)).collect();
    let objections = Objections {
        caution: None,
        failure: failures(&found.points),
    };
    objections
        .conclude(&sentences.join(" "), &found.findings)
        .with_outcome(found.outcome())
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
    match time_to_decide(of.more_s) {
        Some(time) => format!("about {time} would decide it"),
        None if of.ratio.interval.is_some() => {
            "no day would decide it, but a greater --margin may".into()
        }
        None => "too few rounds were measured".into(),
    }
}
