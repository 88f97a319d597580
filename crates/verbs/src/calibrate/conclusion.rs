//! The conclusion of a calibration.

use super::request::CalibrateRequest;
use rigel_analyse::conclusion::parts::{
    Conclusion, Objections, failures, sentence_of, throttle, warnings,
};
use rigel_analyse::figures::confidence::BoundVerdict;
use rigel_analyse::figures::quantity::{Amount, AmountUnit, bound_in_words, count, size, time};
use rigel_analyse::search::at_load::AtLoad;
use rigel_analyse::search::calibration::Calibration;
use rigel_model::record::journal::Header;
use rigel_model::{FindingName, Step};
use std::fmt::Write;

pub(super) fn conclusion(header: &Header, found: &Calibration) -> Conclusion {
    let mut text = String::new();
    if let Some(low) = found.low_load {
        let _ = write!(
            text,
            "{} {} reads of {} per second, half of them within {}{}",
            low.ranks.map_or_else(
                || "One session that reads one block at a time gets".to_string(),
                |ranks| format!(
                    "{ranks} sessions, one on each rank, that read one block at a time get \
                     together"
                )
            ),
            count(low.iops.value),
            size(low.io_bytes),
            time(low.p50_us.value),
            at_most(found)
        );
    }
    if let Some(rate) = found.sustained.rate {
        let _ = write!(
            text,
            " Within {} it serves {} per second that arrive at random times.",
            bound_in_words(&found.bound),
            Amount::new(rate, AmountUnit::Number).in_cell()
        );
    } else if let (Some(at), Some(rate)) = (found.sustained.kept, found.sustained.kept_rate) {
        let _ = write!(
            text,
            " Within {} it serves {} per second that arrive at random times, p99 {}.",
            bound_in_words(&found.bound),
            count(rate as f64),
            time(at.p99_us.value)
        );
    }
    if text.is_empty() {
        text.push_str("The run measured too little for a conclusion about this storage.");
    }
    // Missing the bound is a failure only if the user gave one; the default is from Oracle's
    // procedure.
    let request: Option<CalibrateRequest> = header.invocation.asked("calibrate");
    let asked = request.is_some_and(|request| request.bound_given);
    let is_broken = found.bound_verdict() == BoundVerdict::Broken;
    let cautions: Vec<String> = throttle(&found.findings, &found.points, &found.curve)
        .into_iter()
        .chain(sentence_of(FindingName::Tail, &found.findings))
        .chain(kept_none(found).filter(|_| !asked || !is_broken))
        .collect();
    let objections = Objections {
        caution: (!cautions.is_empty()).then(|| cautions.join(" ")),
        failure: failures(&found.points)
            .or_else(|| kept_none(found).filter(|_| asked && is_broken)),
    };
    objections.conclude(
        text.trim_start(),
        &warnings(header, &found.findings, &found.points),
    )
}

fn at_most(found: &Calibration) -> String {
    match (
        found.maximum,
        found
            .at_knee
            .filter(|_| found.curve.knee.is_some_and(|knee| knee.bounded_above)),
    ) {
        (_, Some(knee)) if knee.depth == 1 => "; more at a time only increase latency.".into(),
        (_, Some(knee)) => {
            format!(
                "; {} at a time{} get {}, and more only increase latency.",
                knee.depth,
                on_each(knee),
                count(found.maximum.unwrap_or(knee).iops.value)
            )
        }
        // With a single depth, nothing is known of others.
        (Some(most), _) if found.low_load.is_some_and(|low| low.depth == most.depth) => ".".into(),
        (Some(most), _) => {
            format!(
                "; {} at a time{} get {}, and throughput was still rising there.",
                most.depth,
                on_each(most),
                count(most.iops.value)
            )
        }
        _ => ".".into(),
    }
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
        match found.bound_verdict() {
            BoundVerdict::Broken => format!("No offered rate met the bound of {bound}."),
            _ => format!(
                "Whether an offered rate meets the bound of {bound} is undecided: measure longer, \
                 with --for 15min."
            ),
        }
    })
}
