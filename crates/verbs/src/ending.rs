//! How a run ended, in words: whether it measured all that it was to measure, and what to do if not.
//!
//! Input: a run as its journal has it. Output: a finding, the member of the JSON report, and the
//! command that resumes the run.

use crate::verb::Verb;
use rigel_analyse::quantity::counted;
use rigel_model::record::journal::{Header, Run};
use rigel_model::record::{Ending, HowEnded};
use rigel_model::{Finding, FindingName, SqlTarget, Target, shell_path, shell_word};
use rigel_report::data::ReportedEnd;
use std::path::Path;

/// Warns of a run that did not measure all that it was to measure; `None` if it did, or if its journal
/// does not say so. `place` is its directory or its journal.
pub(crate) fn finding(run: &Run, verb: &dyn Verb, place: Option<&Path>) -> Option<Finding> {
    let after = after(run, verb);
    let how = match run.ending() {
        Ending::Unknown => return None,
        Ending::Said(end) => match &end.how {
            HowEnded::Complete => return None,
            HowEnded::Stopped => format!("was stopped {after}"),
            HowEnded::Failed(why) => format!("failed {after}: {why}"),
        },
        Ending::Killed => format!("was killed {after}"),
        Ending::Running => format!("is still running, {after}"),
    };
    let hint = match run.ending() {
        Ending::Running => "report it again when it has ended".into(),
        _ if verb.command() == "import" => "import the files again".into(),
        _ => format!(
            "resume it with `{}`",
            resume_command(verb, &run.header, place)
        ),
    };
    Some(Finding::warning(
        FindingName::Incomplete,
        format!("the run is not complete: it {how}"),
        hint,
    ))
}

/// `after 3 of about 9 visits`.
fn after(run: &Run, verb: &dyn Verb) -> String {
    let (measured, planned) = measured_and_planned(run, verb);
    let what = match verb.name() {
        "soak" => "round",
        "watch" => "interval",
        "import" => "file",
        _ if verb.is_known_beforehand() => "data point",
        _ => "visit",
    };
    let about = if verb.is_known_beforehand() || matches!(verb.name(), "soak" | "watch") {
        ""
    } else {
        "about "
    };
    match planned {
        _ if measured == 0 => format!("before its first {what}"),
        Some(planned) => {
            format!(
                "after {measured} of {about}{}",
                counted(planned as u64, what)
            )
        }
        None => format!("after {}", counted(measured as u64, what)),
    }
}

/// Visits, rounds or intervals that were measured, and how many would be, if more are known of.
fn measured_and_planned(run: &Run, verb: &dyn Verb) -> (usize, Option<usize>) {
    let in_memory = run.points.len() + run.watched.len() + run.imported.len();
    let measured = run.lines_read.max(in_memory);
    let planned = verb.points_expected();
    (
        measured,
        Some(planned).filter(|planned| *planned > measured),
    )
}

/// How the run ended, for its JSON report; `None` if its journal does not say so.
pub(crate) fn reported(run: &Run, verb: &dyn Verb) -> Option<ReportedEnd> {
    let (how, why, status) = match run.ending() {
        Ending::Unknown => return None,
        Ending::Killed => ("killed", None, None),
        Ending::Running => ("running", None, None),
        Ending::Said(end) => {
            let (how, why) = match &end.how {
                HowEnded::Complete => ("complete", None),
                HowEnded::Stopped => ("stopped", None),
                HowEnded::Failed(why) => ("failed", Some(why.clone())),
            };
            (how, why, Some(end.status))
        }
    };
    let (measured, planned) = measured_and_planned(run, verb);
    Some(ReportedEnd {
        how,
        why,
        status,
        measured,
        planned,
    })
}

/// The command that resumes the run with this header, in this directory or journal.
pub fn resume_command(verb: &dyn Verb, header: &Header, place: Option<&Path>) -> String {
    let again = match &header.target {
        Target::Sql(SqlTarget {
            private: Some(server),
            ..
        }) => verb.server_options(server),
        _ => String::new(),
    };
    format!(
        "rigel {} --resume {}{}{again}",
        verb.command(),
        place.map_or_else(|| "RUN".into(), shell_path),
        named_again(header)
    )
}

/// What follows `--resume RUN` where several ranks resume the run: its target, as it was named.
pub fn named_again(header: &Header) -> String {
    let Some(group) = &header.ranks else {
        return String::new();
    };
    let option = if header.invocation.verb == "orion" {
        "--target "
    } else {
        ""
    };
    let names: Vec<String> = match &header.target {
        Target::Paths { members, .. } => members
            .iter()
            .map(|path| path.display().to_string())
            .collect(),
        Target::Scratch { directory, .. } => vec![directory.display().to_string()],
        Target::Sql(servers) => servers.urls.clone(),
        model @ (Target::Sim(_) | Target::Null { .. }) => vec![model.to_string()],
    };
    let words = names
        .iter()
        .map(|name| format!(" {option}{}", shell_word(name)));
    let flags = [
        (" --separate", group.separate),
        (" --same-blocks", group.same_blocks),
    ];
    let flags = flags.iter().filter(|(_, is_set)| *is_set);
    words
        .chain(flags.map(|(flag, _)| (*flag).to_string()))
        .collect()
}
