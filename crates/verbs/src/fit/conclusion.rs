//! The conclusion of a fit: how many times a demand the target carries, and what breaks first.

use super::request::FitRequest;
use super::result::{FitResult, TriedStream};
use rigel_analyse::BoundVerdict;
use rigel_analyse::conclusion::parts::{Conclusion, Objections, Status, failures};
use rigel_analyse::demand::stream_objective::{StreamObjective, objective_of_stream};
use rigel_analyse::figures::quantity::multiple as rounded;
use rigel_analyse::figures::quantity::{capital, listed, time};
use rigel_model::record::RankGroup;
use rigel_model::record::journal::Header;
use rigel_model::{DemandAt, Finding, FindingName, Moment, Target};
use std::fmt::Write;

pub(super) fn conclusion(header: &Header, result: &FitResult) -> Conclusion {
    let Some(request) = &header.invocation.asked::<FitRequest>("fit") else {
        return Conclusion::default();
    };
    let mut sentence = answer(request, result, &header.facts.name, header.ranks.as_deref());
    // "a scratch file of 4 GiB in t": a path or a model stays as it is written.
    if matches!(header.target, Target::Scratch { .. }) {
        sentence = capital(&sentence);
    }
    let objections = Objections {
        caution: None,
        failure: failures(&result.points),
    };
    let answer = objections.conclude(&sentence, &result.findings);
    let status = match result.verdict {
        BoundVerdict::Broken => Status::Bad,
        BoundVerdict::Undecided | BoundVerdict::NotMeasured if answer.status != Status::Bad => {
            Status::Warning
        }
        _ => answer.status,
    };
    Conclusion { status, ..answer }
}

/// The answer in a sentence: which part, how many times, of what, and what breaks first.
fn answer(
    request: &FitRequest,
    result: &FitResult,
    target: &str,
    group: Option<&RankGroup>,
) -> String {
    let mut text = String::new();
    let is_credit = |finding: &Finding| finding.is(FindingName::BurstCredit);
    if result.findings.iter().any(is_credit) {
        text.push_str("While burst credit lasts, perhaps. ");
    }
    if request.is_for_reads_only() {
        text.push_str("Reads only: ");
    }
    let of = interval_in_words(request);
    let mut with = with_objectives(request, result);
    if group.is_some() {
        with.push_str(" on every host");
    }
    let is_undecided = result.verdict == BoundVerdict::Undecided;
    let _ = match result.ends() {
        _ if is_undecided => write!(
            text,
            "{target}: whether it carries {} × of {of}{with} is undecided{}",
            rounded(result.need),
            known_ends(result)
        ),
        (Some(low), Some(high)) => match result.by_curve() {
            Some(carries) => write!(
                text,
                "{target} carries {} × [{}, {}] of {of}{with}",
                rounded(carries),
                rounded(low),
                rounded(high)
            ),
            None => write!(
                text,
                "{target} carries {} ×, and not {} ×, of {of}{with}",
                rounded(low),
                rounded(high)
            ),
        },
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
        // Then nothing decides what is needed either.
        (None, None) => Ok(()),
    };
    let first: Vec<&str> = result
        .breaks_first
        .iter()
        .map(|kind| kind.words())
        .collect();
    if !first.is_empty() {
        let _ = write!(text, "; {} break first", listed(&first));
        text.extend(group.and_then(|group| on_hosts(result, group)));
        if failures(&result.points).is_some() {
            text.push_str(": a stream of which I/Os fail is not carried");
        }
    }
    text.push('.');
    text.extend(too_slow_alone(result));
    if result.verdict == BoundVerdict::Broken && result.held.is_some() {
        let _ = write!(text, " {} × is not held.", rounded(result.need));
    } else if result.verdict == BoundVerdict::Kept && request.need > 1.0 {
        let _ = write!(text, " {} × is held.", rounded(result.need));
    }
    text
}

/// `; 0.5 × is held, 64 × is not`: what is known where the needed multiple is undecided.
fn known_ends(result: &FitResult) -> String {
    match result.ends() {
        (Some(low), Some(high)) => {
            format!("; {} × is held, {} × is not", rounded(low), rounded(high))
        }
        (Some(low), None) => format!("; {} × is held", rounded(low)),
        (None, Some(high)) => format!("; {} × is not held", rounded(high)),
        (None, None) => String::new(),
    }
}

/// Says that no multiple can help, because I/Os take too long even where hardly two are on their way
/// at once; `None` if some multiple held, or if queues may be the reason.
fn too_slow_alone(result: &FitResult) -> Option<String> {
    // With this many on average, by Little's law, one in ten meets another.
    const OUTSTANDING: f64 = 0.1;
    let lowest = result
        .multiples
        .first()
        .filter(|one| one.verdict == BoundVerdict::Broken)?;
    let of = |stream: &TriedStream| Some(stream.done_per_s * stream.mean_us?.value / 1e6);
    let outstanding: Option<f64> = lowest.streams.iter().map(of).sum();
    outstanding.filter(|outstanding| *outstanding < OUTSTANDING)?;
    let is_too_slow = |stream: &&TriedStream| {
        stream.objective.is_some() && stream.verdict == BoundVerdict::Broken
    };
    let stream = lowest.streams.iter().find(is_too_slow)?;
    let (mean, p99) = (stream.mean_us?.value, stream.p99_us?.value);
    Some(format!(
        " One of the {} alone is too slow: mean {}, p99 {} at {} ×.",
        stream.kind.words(),
        time(mean),
        time(p99),
        rounded(lowest.multiple)
    ))
}

/// `, on h3`, `, on every host, the worst is h3`: where the streams broke that broke first.
fn on_hosts(result: &FitResult, group: &RankGroup) -> Option<String> {
    const NAMED_MOST: usize = 3;
    let names: Vec<String> = result
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
    let objectives: Vec<String> = request
        .objectives
        .iter()
        .filter(offered)
        .map(objective_of_stream)
        .collect();
    if objectives.is_empty() {
        String::new()
    } else {
        format!(" with {}", listed(&objectives))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use crate::fit::result::TriedMultiple;
    use rigel_analyse::Estimate;
    use rigel_analyse::point::objective::ObjectiveVerdict;
    use rigel_model::examples::stream;
    use rigel_model::{DemandKind, Objective};

    #[test]
    fn one_read_alone_that_is_too_slow_is_named_and_a_queue_is_not() {
        let request = examples::fit(vec![stream(DemandKind::RandomReads, 80.0, Some(8192.0))]);
        let objective: Objective = "p99<2ms".parse().unwrap();
        let known = |value: f64| Estimate::from(value);
        let said = |done_per_s: f64| {
            let tried = TriedStream {
                kind: DemandKind::RandomReads,
                offered_per_s: done_per_s,
                done_per_s,
                mean_us: Some(known(5000.0)),
                p99_us: Some(known(9000.0)),
                judged_us: Some(known(9000.0)),
                objective: Some(ObjectiveVerdict {
                    objective,
                    verdict: BoundVerdict::Broken,
                    kept: false,
                }),
                verdict: BoundVerdict::Broken,
                kept: false,
                is_rare: false,
                by_curve: false,
                undecided: None,
                hosts: Vec::new(),
            };
            let found = FitResult {
                carries: None,
                held: None,
                not_held: Some(0.125),
                need: 1.0,
                verdict: BoundVerdict::Broken,
                breaks_first: vec![DemandKind::RandomReads],
                breaks_on: Vec::new(),
                multiples: vec![TriedMultiple {
                    multiple: 0.125,
                    measured_s: 10.0,
                    verdict: BoundVerdict::Broken,
                    kept: false,
                    streams: vec![tried],
                }],
                offered: request.offered(),
                points: Vec::new(),
                findings: Vec::new(),
            };
            answer(&request, &found, "disk", None)
        };
        let alone = said(10.0);
        assert!(
            alone.contains("One of the random reads alone is too slow: mean 5.00 ms, p99 9.00 ms"),
            "{alone}"
        );
        assert!(!said(1000.0).contains("alone"), "{}", said(1000.0));
    }
}
