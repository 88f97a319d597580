//! The conclusion of a curve, of raw I/O or of a database's sessions.

use super::result::{CurveResult, LogCurve};
use crate::naming::Naming;
use rigel_analyse::BoundVerdict;
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failures, limit};
use rigel_analyse::figures::quantity::{
    Amount, Unit, bound_in_words, capital, count, counted, multiple, percent, time,
};
use rigel_analyse::point::sql::SqlSummary;
use rigel_analyse::point::summary::PointSummary;
use rigel_analyse::search::at_load::AtLoad;
use rigel_model::Step;
use std::fmt::Write;

/// Rates are the page cache's and not storage's if it served more than this share of the blocks.
const MEMORY_FROM: f64 = 0.1;

/// `workload` is what each operation does.
pub(super) fn conclusion(found: &CurveResult, workload: &str) -> Conclusion {
    let naming = found.naming();
    // For a single point of sessions, their sentence says everything.
    let mut text = found
        .busiest()
        .map_or_else(String::new, |(_, point, sql)| sessions(point, sql));
    if !found.logs.is_empty() {
        text.push_str(&logs(&found.logs));
    } else if let Some(most) = found
        .maximum
        .filter(|_| text.is_empty() || found.points.len() > 1)
    {
        let _ = write!(text, " {}", closed(found, &most, naming));
    }
    if let Some(delivered) = found.delivered.and_then(|found| found.sentence()) {
        let _ = write!(text, " {delivered}");
    }
    text.push_str(&offered(found, naming));
    let undecided = undecided(found, naming);
    // Sentences about commits and sessions name their work themselves.
    if let Some(rest) = text.trim_start().strip_prefix("It ")
        && naming == Naming::RAW
        && !workload.is_empty()
    {
        text = format!("{}: it {rest}", capital(workload));
    }
    let failure = failures(&found.points).or_else(|| {
        let is_broken = found.bound_verdict() == Some(BoundVerdict::Broken);
        let bound = found.bound.as_ref().filter(|_| is_broken)?;
        let offered = found.sustained.broken_rate;
        let served = offered.and_then(|rate| served(found, rate, naming));
        let load = found
            .sustained
            .offered_verdict
            .map_or("load", |_| "offered rate");
        Some(format!(
            "No {load} met the bound of {}{}.",
            bound_in_words(bound),
            served.unwrap_or_default()
        ))
    });
    if text.is_empty() && undecided.is_none() && failure.is_none() {
        text.push_str("The run measured too little for a conclusion.");
    }
    let objections = Objections {
        caution: undecided,
        failure,
    };
    objections.conclude(text.trim_start(), &found.findings)
}

/// `: of 2,500 I/Os per second 2,001 were served, p99 4.51 s`, of an offered rate; of one that was served `: at
/// 2,500 I/Os per second p99 is 433 ms`.
fn served(found: &CurveResult, rate: u64, naming: Naming) -> Option<String> {
    let mut points = found.points.iter();
    let point = points.find(|point| point.coordinates.rate() == Some(rate))?;
    let class = point.classes.first()?;
    let p99 = class.latency.map(|latency| time(latency.p99_us));
    if !class.is_not_met() {
        let rate = count(rate as f64);
        return Some(format!(
            ": at {rate} {} per second p99 is {}",
            naming.one, p99?
        ));
    }
    Some(format!(
        ": of {} {} per second {} were served{}",
        count(rate as f64),
        naming.one,
        count(class.iops),
        p99.map_or_else(String::new, |p99| format!(", p99 {p99}"))
    ))
}

/// What each of several logs takes, and how they compare by the fewest writers.
fn logs(all: &[LogCurve]) -> String {
    let mut text = String::new();
    for one in all {
        let Some(fewest) = one.fewest else {
            continue;
        };
        let writers = counted(fewest.depth.into(), "writer");
        let _ = write!(
            text,
            " {} takes {} commits/s of {writers}",
            capital(&one.log.about()),
            count(fewest.iops.value)
        );
        let maximum = one.maximum.filter(|most| most.depth > fewest.depth);
        if let Some(most) = maximum {
            let _ = write!(text, " and {} of {}", count(most.iops.value), most.depth);
        }
        if let Some(times) = one.times {
            let differs = times.interval.is_some_and(|limits| {
                limits.low > 1.0 || limits.high.is_some_and(|high| high < 1.0)
            });
            let _ = if differs {
                write!(
                    text,
                    ", {} times as many by {writers}",
                    multiple(times.value)
                )
            } else {
                write!(text, ", as far as was measured as many by {writers}")
            };
        }
        text.push('.');
    }
    text
}

fn closed(result: &CurveResult, most: &AtLoad, naming: Naming) -> String {
    let Naming { rate, place, .. } = naming;
    let maximum = count(most.iops.value);
    let (p50, p99) = (time(most.p50_us.value), time(most.p99_us.value));
    match result.shape.knee.filter(|_| {
        result
            .points
            .iter()
            .filter(|point| point.step() == Step::Depth)
            .count()
            > 1
    }) {
        Some(knee) if knee.bounded_above => format!(
            "It does {maximum} {rate} with {} or more {place}{}.",
            knee.load,
            limit(&result.points, &result.shape, &result.findings)
        ),
        Some(_) => format!(
            "It does {maximum} {rate} with {} {place}, and was still rising there: median {p50}, \
             p99 {p99}.",
            most.depth
        ),
        None => format!(
            "It does {maximum} {rate} with {} {place}: median {p50}, p99 {p99}.",
            most.depth
        ),
    }
}

/// Says which offered rates were served, and which were not.
fn offered(result: &CurveResult, naming: Naming) -> String {
    let sustained = &result.sustained;
    let within = result.bound.as_ref().map_or_else(String::new, |bound| {
        format!(" within {}", bound_in_words(bound))
    });
    let operations = naming.one;
    let mut text = match (sustained.kept, sustained.kept_rate, sustained.broken_rate) {
        (Some(at), Some(rate), broken) => {
            let but = match (broken, sustained.undecided_rate) {
                (Some(broken), _) => format!(", but not {}", count(broken as f64)),
                (None, Some(undecided)) => {
                    format!("; {} is undecided", count(undecided as f64))
                }
                (None, None) => ", the maximum that was offered".into(),
            };
            let (p50, p99) = (time(at.p50_us.value), time(at.p99_us.value));
            let rate = count(rate as f64);
            format!(
                " It serves {rate} {operations} per second that arrive {}{within} (median {p50}, p99 \
                 {p99}){but}.",
                sustained.arrivals.in_words()
            )
        }
        // Of one that all loads break, the failure says so.
        (_, _, Some(broken))
            if sustained.offered_verdict == Some(BoundVerdict::Broken)
                && result.bound_verdict() != Some(BoundVerdict::Broken) =>
        {
            let rates = result
                .points
                .iter()
                .filter(|point| point.coordinates.rate().is_some());
            let mut classes = rates.filter_map(|point| point.classes.first());
            if classes.all(|class| !class.failed.is_empty()) {
                " Operations failed at each offered rate, so none was served.".into()
            } else {
                let served = served(result, broken, naming).unwrap_or_default();
                format!(" No offered rate was served{within}{served}.")
            }
        }
        // None was kept for certain, as where all are near the bound.
        _ => sustained.rate.map_or_else(String::new, |rate| {
            let rate = Amount::new(rate, Unit::Number).in_cell();
            let arriving = sustained.arrivals.in_words();
            format!(" By all rates it serves {rate} {operations} per second that arrive {arriving}{within}.")
        }),
    };
    if let (Some(closed), Some(_)) = (sustained.closed, &result.bound) {
        let (depth, iops) = (closed.depth, count(closed.iops.value));
        let _ = write!(
            text,
            " With a constant {depth} {}, {iops} {} stay{within}.",
            naming.place, naming.rate
        );
    }
    text
}

/// Says that the measured time does not decide whether any load is served within the bound, and what
/// it showed; `None` if one certainly is, or certainly none.
fn undecided(result: &CurveResult, naming: Naming) -> Option<String> {
    let sustained = &result.sustained;
    let verdict = result
        .bound_verdict()
        .or(sustained.offered_verdict)
        .filter(|_| !result.points.is_empty())?;
    if verdict != BoundVerdict::Undecided {
        return None;
    }
    let within = result.bound.as_ref().map_or_else(String::new, |bound| {
        format!(" within {}", bound_in_words(bound))
    });
    let Some(rate) = sustained.undecided_rate else {
        return Some(format!(
            "Whether any load is served{within} is undecided: measure longer."
        ));
    };
    let point = result
        .points
        .iter()
        .find(|point| point.coordinates.rate() == Some(rate))?;
    let latency = point.classes.first().and_then(|class| class.latency);
    let seen = latency.map_or_else(String::new, |latency| {
        format!(
            " (p99 {}, maximum {})",
            time(latency.p99_us),
            time(latency.max_us)
        )
    });
    Some(format!(
        "Whether it serves {} {} per second {}{within} is undecided: {} were too short{seen}. \
         Measure longer.",
        count(rate as f64),
        naming.one,
        sustained.arrivals.in_words(),
        time(point.measured_s * 1e6),
    ))
}

/// Describes the sessions of the busiest point and where their time goes.
fn sessions(point: &PointSummary, sql: &SqlSummary) -> String {
    let pipelined = match sql.pipeline {
        ..=1 => String::new(),
        in_flight => format!(", pipelined with {in_flight} operations in flight each,"),
    };
    let server = sql.server.as_ref();
    let cached = server.and_then(|server| server.page_cache_share);
    let cached = cached.filter(|share| *share > 0.01).map(|share| {
        format!(
            "The page cache served {} of the blocks read, and not storage.",
            percent(share)
        )
    });
    // Rates that are mostly memory's are no answer about storage: that comes first.
    let is_memory = server.and_then(|server| server.page_cache_share) > Some(MEMORY_FROM);
    let (first, last) = match cached {
        Some(cached) if is_memory => (format!("{cached} "), String::new()),
        Some(cached) => (String::new(), format!(" {cached}")),
        None => (String::new(), String::new()),
    };
    let mut text = format!(
        "{first}{}{pipelined} read {} blocks per second",
        counted(sql.sessions.into(), "session"),
        count(sql.visited.per_s)
    );
    if let Some(physical) = server.and_then(|server| server.physical) {
        let _ = write!(
            text,
            ", {} of them past the buffer cache",
            count(physical.per_s)
        );
    }
    if let Some(latency) = point.classes.first().and_then(|class| class.latency) {
        let (p50, p99) = (time(latency.p50_us), time(latency.p99_us));
        let _ = write!(
            text,
            "; half of the operations take {p50}, 99 % at most {p99}"
        );
    }
    let _ = write!(text, ".{}{last}", spent(sql));
    text
}

/// Says where the sessions' time went: the first wait event, and the CPU share.
fn spent(sql: &SqlSummary) -> String {
    let waited = sql.waits.iter().find(|wait| wait.event != "CPU");
    let cpu = sql.waits.iter().find(|wait| wait.event == "CPU");
    match (waited, cpu) {
        (Some(wait), Some(cpu)) => format!(
            " They spend {} of their time in {} and {} on the CPU.",
            percent(wait.share),
            wait.event,
            percent(cpu.share)
        ),
        (Some(wait), None) => format!(
            " They spend {} of their time in {}.",
            percent(wait.share),
            wait.event
        ),
        (None, Some(_)) => " They never waited: the CPU is their limit.".into(),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::examples;
    use rigel_analyse::point::summary::summarise;
    use rigel_model::Ratio;

    #[test]
    fn rates_of_the_page_cache_are_said_to_be_that_before_they_are_named() {
        let said = |share: f64| {
            let point = summarise(&examples::sessions(Ratio::ZERO));
            let mut sql = point.sql.clone().unwrap();
            sql.server.as_mut().unwrap().page_cache_share = Some(share);
            sessions(&point, &sql)
        };
        let cached = "The page cache served 90.0 % of the blocks read, and not storage. ";
        assert!(said(0.9).starts_with(cached), "{}", said(0.9));
        assert!(said(0.05).ends_with("and not storage."), "{}", said(0.05));
        assert!(!said(0.001).contains("page cache"), "{}", said(0.001));
    }
}
