//! The conclusion of a fit: how many times a demand the target carries, and what breaks first.

use super::request::FitRequest;
use super::result::FitResult;
use rigel_analyse::conclusion::parts::{Conclusion, Objections, Status, failures};
use rigel_analyse::demand::stream_objective::{StreamObjective, objective_of_stream};
use rigel_analyse::figures::confidence::BoundVerdict;
use rigel_analyse::figures::quantity::multiple as rounded;
use rigel_analyse::figures::quantity::{capital, listed};
use rigel_model::record::RankGroup;
use rigel_model::record::journal::Header;
use rigel_model::{DemandAt, Moment, Target};
use std::fmt::Write;

pub(super) fn conclusion(header: &Header, found: &FitResult) -> Conclusion {
    let Some(request) = &header.invocation.asked::<FitRequest>("fit") else {
        return Conclusion::default();
    };
    let mut sentence = answer(request, found, &header.facts.name, header.ranks.as_deref());
    // "a scratch file of 4 GiB in t": a path or a model stays as it is written.
    if matches!(header.target, Target::Scratch { .. }) {
        sentence = capital(&sentence);
    }
    let objections = Objections {
        caution: None,
        failure: failures(&found.points),
    };
    let answer = objections.conclude(&sentence, &found.findings);
    let status = match found.verdict {
        BoundVerdict::Broken => Status::Bad,
        BoundVerdict::Undecided if answer.status != Status::Bad => Status::Warning,
        BoundVerdict::Undecided | BoundVerdict::Kept => answer.status,
    };
    Conclusion { status, ..answer }
}

/// The answer in a sentence: which part, how many times, of what, and what breaks first.
fn answer(
    request: &FitRequest,
    found: &FitResult,
    target: &str,
    group: Option<&RankGroup>,
) -> String {
    let mut text = String::new();
    if request.is_for_reads_only() {
        text.push_str("Reads only: ");
    }
    let of = interval_in_words(request);
    let mut with = with_objectives(request, found);
    if group.is_some() {
        with.push_str(" on every host");
    }
    let _ = match found.ends() {
        (Some(low), Some(high)) => write!(
            text,
            "{target} carries {} × [{}, {}] of {of}{with}",
            found
                .carries
                .map_or_else(String::new, |it| rounded(it.value)),
            rounded(low),
            rounded(high)
        ),
        (Some(low), None) => write!(
            text,
            "{target} carries at least {} × of {of}{with}",
            rounded(low)
        ),
        (None, Some(high)) => write!(
            text,
            "{target} does not carry {} × of {of}{with}",
            rounded(high)
        ),
        (None, None) => write!(
            text,
            "{target}: what was measured does not decide how much it carries of {of}{with}"
        ),
    };
    let first: Vec<&str> = found.breaks_first.iter().map(|kind| kind.words()).collect();
    if !first.is_empty() {
        let _ = write!(text, "; {} break first", listed(&first));
        text.extend(group.and_then(|group| on_hosts(found, group)));
    }
    text.push('.');
    if found.verdict == BoundVerdict::Undecided {
        let _ = write!(
            text,
            " Whether {} × is held is undecided.",
            rounded(found.need)
        );
    } else if found.verdict == BoundVerdict::Broken && found.held.is_some() {
        let _ = write!(text, " {} × is not held.", rounded(found.need));
    }
    text
}

/// `, on h3`, `, on every host, the worst is h3`: where the streams broke that broke first.
fn on_hosts(found: &FitResult, group: &RankGroup) -> Option<String> {
    const NAMED_MOST: usize = 3;
    let names: Vec<String> = found
        .breaks_on
        .iter()
        .map(|rank| group.label(*rank))
        .collect();
    let worst = names.first()?;
    let all: Vec<&str> = names.iter().map(String::as_str).collect();
    Some(if all.len() == group.size() {
        format!(", on every host, the worst is {worst}")
    } else if all.len() <= NAMED_MOST {
        format!(", on {}", listed(&all))
    } else {
        format!(
            ", on {} of {} hosts, the worst is {worst}",
            all.len(),
            group.size()
        )
    })
}

/// `the busiest of 24 intervals of PROD (2016-04-23 12:59, 60 min)`.
pub(super) fn interval_in_words(request: &FitRequest) -> String {
    let which = match (request.at, request.intervals) {
        (_, 1) => "the demand".into(),
        (DemandAt::Peak, count) => format!("the busiest of {count} intervals"),
        (DemandAt::P95, count) => format!("the p95 of {count} intervals"),
        (DemandAt::Time(_), _) => "the interval".into(),
    };
    let interval = &request.interval;
    let when = interval.begin.map(Moment::short);
    let length = interval.seconds.map(lasting);
    let when: Vec<String> = when.into_iter().chain(length).collect();
    let when = if when.is_empty() {
        String::new()
    } else {
        format!(" ({})", when.join(", "))
    };
    format!("{which} of {}{when}", request.database)
}

/// `60 min`, `45 s`, `72 h`.
fn lasting(seconds: f64) -> String {
    match seconds {
        ..120.0 => format!("{seconds:.0} s"),
        ..7200.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.0} h", seconds / 3600.0),
    }
}

/// ` with random reads p99 < 2 ms and log writes p99 < 5 ms`, of the streams that were offered.
fn with_objectives(request: &FitRequest, found: &FitResult) -> String {
    let offered = |one: &&StreamObjective| found.offered.iter().any(|it| it.kind == one.kind);
    let said: Vec<String> = request
        .objectives
        .iter()
        .filter(offered)
        .map(objective_of_stream)
        .collect();
    if said.is_empty() {
        String::new()
    } else {
        format!(" with {}", listed(&said))
    }
}
