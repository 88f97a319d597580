//! The conclusion of a calibration.

use super::request;
use rigel_analyse::BoundVerdict;
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failures, limit};
use rigel_analyse::figures::quantity::{
    Amount, Unit, bound_in_words, count, mb_per_second, size, time,
};
use rigel_analyse::search::at_load::AtLoad;
use rigel_analyse::search::calibration::Calibration;
use rigel_model::record::journal::Header;
use rigel_model::{LogKind, Step};

/// Writers of a group that the answer names.
const TOGETHER: u32 = 16;

pub(super) fn conclusion(header: &Header, calibration: &Calibration) -> Conclusion {
    let answer: Vec<String> = [
        at_most(calibration),
        calibration
            .delivered
            .and_then(|delivered| delivered.sentence()),
        written(calibration),
        committed(calibration),
        sustained(calibration),
    ]
    .into_iter()
    .flatten()
    .collect();
    let answer = match answer.join(" ") {
        none if none.is_empty() => {
            "The run measured too little for a conclusion about this storage.".into()
        }
        answer => answer,
    };
    // Missing the bound is a failure only if the user gave one; the default is from Oracle's
    // procedure.
    let asked = request::is_bound_given(header);
    let is_broken = calibration.bound_verdict() == BoundVerdict::Broken;
    let objections = Objections {
        caution: kept_none(calibration).filter(|_| !asked || !is_broken),
        failure: failures(&calibration.points)
            .or_else(|| kept_none(calibration).filter(|_| asked && is_broken)),
    };
    let mut conclusion = objections.conclude(&answer, &calibration.findings);
    // What decides about the figures comes before what only adds to them.
    if let Some(alone) = alone(calibration) {
        conclusion.sentence = format!("{} {alone}", conclusion.sentence);
    }
    conclusion
}

/// The maximum, and why it is one.
fn at_most(found: &Calibration) -> Option<String> {
    let most = found.maximum?;
    // With a single depth, nothing is known of others.
    let is_only = found.low_load.is_some_and(|low| low.depth == most.depth) && most.depth != 1;
    let knee = found
        .at_knee
        .filter(|_| found.curve.knee.is_some_and(|knee| knee.bounded_above));
    let shown = knee.unwrap_or(most);
    let why = match (knee, is_only) {
        (Some(_), _) => limit(&found.points, &found.curve, &found.findings).into(),
        (None, false) if found.on_credit.is_none() => "; throughput was still rising there".into(),
        (None, _) => String::new(),
    };
    let before = found.on_credit.map_or_else(String::new, |iops| {
        let when = if found.bucket.is_some() || found.byte_bucket.is_some() {
            "before burst credit ran out"
        } else {
            "on burst credit, or before other load began"
        };
        format!(", and did {} {when}", count(iops.value))
    });
    // The depths were compared on credit.
    let is_on_credit = found.on_credit.is_some() || found.bucket.is_some();
    let or_more = if knee.is_some() && !is_on_credit {
        " or more"
    } else {
        ""
    };
    Some(format!(
        "It does {} reads of {} per second with {}{or_more} outstanding{}{before}{why}.",
        count(most.iops.value),
        size(most.io_bytes),
        shown.depth,
        on_each(shown)
    ))
}

/// The writes, if there were any.
fn written(calibration: &Calibration) -> Option<String> {
    let random = calibration.writes.map(|at| {
        let (rate, bytes) = (count(at.iops.value), size(at.io_bytes));
        format!("{rate} random writes of {bytes} per second")
    });
    let log = calibration.log_writes.first().map(|one| {
        let (rate, bytes) = (count(one.at.iops.value), size(one.bytes));
        format!("{rate} durable appends of {bytes} by one log writer")
    });
    let parts: Vec<String> = random.into_iter().chain(log).collect();
    let large = largely_written(calibration).unwrap_or_default();
    (!parts.is_empty()).then(|| format!("It does {}.{large}", parts.join(", and ")))
}

/// The throughput of large writes, and that of their first minute if it is certainly another.
fn largely_written(calibration: &Calibration) -> Option<String> {
    let lasting = calibration.large_writes.lasting?.mb_per_s;
    let first = calibration.large_writes.first_minute.map(|at| at.mb_per_s);
    let first = first.filter(|first| first.least() > lasting.greatest());
    let before = first.map_or_else(String::new, |first| {
        format!(", and {} in their first minute", mb_per_second(first.value))
    });
    Some(format!(
        " Large writes last at {}{before}.",
        mb_per_second(lasting.value)
    ))
}

/// Commits to a log of its own, if there was one: by how many sessions, and what a log costs that grows.
fn committed(calibration: &Calibration) -> Option<String> {
    let alone = calibration.commits(LogKind::REUSED, 1)?;
    let rate = count(alone.iops.value);
    let group = calibration.commits(LogKind::REUSED, TOGETHER);
    let together = group.map_or_else(String::new, |group| {
        format!(", {TOGETHER} together {}", count(group.iops.value))
    });
    // Of two that may be equal, none is called slower.
    let grown = calibration.commits(LogKind::GROW, 1).and_then(|grown| {
        let times = alone.iops.over(grown.iops);
        (times.interval?.low > 1.0)
            .then(|| format!(" A log that grows is {:.1} times slower.", times.value))
    });
    Some(format!(
        "To a log that is reused, one session commits {rate} times a second{together}.{grown}",
        grown = grown.unwrap_or_default()
    ))
}

/// The rate of reads at random times that is served within the bound.
fn sustained(calibration: &Calibration) -> Option<String> {
    let rate = match (calibration.sustained.rate, calibration.sustained.kept_rate) {
        (Some(rate), _) => Amount::new(rate, Unit::Number).in_cell(),
        (None, Some(rate)) => format!("at least {}", count(rate as f64)),
        (None, None) => return None,
    };
    Some(format!(
        "Within {} it serves {rate} per second that arrive at random times.",
        bound_in_words(&calibration.bound)
    ))
}

/// What one reader gets that waits for each read.
fn alone(calibration: &Calibration) -> Option<String> {
    let low = calibration.low_load?;
    let who = low.ranks.map_or_else(
        || "One reader alone gets".to_string(),
        |ranks| format!("{ranks} readers, one on each rank, get"),
    );
    Some(format!(
        "{who} {} per second, half of them within {}.",
        count(low.iops.value),
        time(low.p50_us.value)
    ))
}

/// Where a number outstanding is, if several ranks measured together.
fn on_each(at: AtLoad) -> &'static str {
    if at.ranks.is_some() {
        " on each rank"
    } else {
        ""
    }
}

/// Says that no offered rate certainly kept the bound, if rates were offered.
fn kept_none(found: &Calibration) -> Option<String> {
    let rates = || found.points.iter().any(|point| point.step() == Step::Rate);
    let is_known = found.sustained.kept.is_some() || found.sustained.rate.is_some();
    (!is_known && rates()).then(|| {
        let bound = bound_in_words(&found.bound);
        let of_rates = found
            .points
            .iter()
            .filter(|point| point.step() == Step::Rate);
        let mut classes = of_rates.filter_map(|point| point.classes.first());
        match found.bound_verdict() {
            _ if classes.all(|class| !class.failed.is_empty()) => {
                format!("I/Os failed at each offered rate, so none met the bound of {bound}.")
            }
            BoundVerdict::Broken => format!("No offered rate met the bound of {bound}."),
            _ => format!(
                "Whether an offered rate meets the bound of {bound} is undecided: measure longer, \
                 with --for 15min."
            ),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::examples;

    #[test]
    fn commits_are_in_the_answer_and_a_log_that_grows_only_where_it_is_slower() {
        let mut found = examples::calibration();
        assert_eq!(
            committed(&found).as_deref(),
            Some(
                "To a log that is reused, one session commits 1,000 times a second, 16 together \
                 9,000. A log that grows is 2.0 times slower."
            )
        );
        found.log_files[0].at.iops = found.log_files[2].at.iops;
        assert!(!committed(&found).unwrap().contains("grows"));
    }

    #[test]
    fn writes_that_were_measured_are_in_the_answer() {
        let mut found = examples::calibration();
        assert_eq!(
            written(&found).as_deref(),
            Some(
                "It does 40,000 random writes of 16 KiB per second, and 1,000 durable appends of \
                 4 KiB by one log writer. Large writes last at 839 MB/s, and 2,097 MB/s in their first minute."
            )
        );
        let text = conclusion(&examples::header(), &found).sentence;
        assert!(text.contains("random writes"), "{text}");
        found.writes = None;
        found.large_writes.lasting = found.large_writes.first_minute;
        assert!(!written(&found).unwrap().contains("first minute"));
        found.log_writes.clear();
        assert_eq!(written(&found), None);
    }
}
