//! What Oracle's own calibration claims: alone, and beside a calibration of ours.

use super::columns::TableOf;
use super::data;
use super::document::{Conclusion, Document, Section, Status};
use super::parts;
use rigel_analyse::{AtLoad, ClaimBeside, Estimate};
use rigel_model::Bytes;
use rigel_model::record::imported::ClaimedCalibration;
use schemars::Schema;

/// A latency. In whole milliseconds, as the view has it, it is rounded.
pub fn latency(ms: Option<f64>) -> String {
    match ms {
        Some(ms) if ms.fract() != 0.0 => format!("{ms} ms"),
        Some(ms) if ms < 0.5 => "below 0.5 ms".into(),
        Some(ms) => format!("{ms} ± 0.5 ms"),
        None => "-".into(),
    }
}

/// The rows of an import.
pub fn section(claims: &[ClaimedCalibration]) -> Option<Section> {
    (!claims.is_empty()).then(|| {
        parts::section(
            "claims",
            "What CALIBRATE_IO claims",
            "As DBA_RSRC_IO_CALIBRATE has it. `rigel compare CALIBRATION THIS` puts a calibration of \
             Rigel's beside it.",
            vec![
                TableOf::of("", claims)
                    .text("begin", |claim| parts::known(claim.started.as_ref(), String::clone))
                    .text("end", |claim| parts::known(claim.ended.as_ref(), String::clone))
                    .count("max IOPS", |claim| claim.max_iops)
                    .count("max MB/s", |claim| claim.max_mbps)
                    .count("one process MB/s", |claim| claim.max_pmbps)
                    .number("latency", |claim| latency(claim.latency_ms))
                    .count("disks", |claim| claim.disks)
                    .block(),
            ],
        )
    })
}

fn estimate(figure: Estimate, show: fn(f64) -> String) -> String {
    let limits = figure
        .interval
        .and_then(|limits| Some((limits.low, limits.high?)));
    match limits {
        Some((low, high)) => {
            format!("{} ({} to {})", show(figure.value), show(low), show(high))
        }
        None => show(figure.value),
    }
}

/// The JSON Schema of [`json`].
pub fn schema() -> Schema {
    data::schema_of::<ClaimBeside>()
}

/// The comparison as one JSON document.
pub fn json(claim: &ClaimBeside) -> String {
    data::document(claim)
}

/// The comparison of `ours` with `theirs`.
pub fn document(ours: &str, theirs: &str, found: &ClaimBeside) -> Document {
    let claim = &found.claim;
    let of = |at: Option<AtLoad>, figure: fn(&AtLoad) -> Estimate, show: fn(f64) -> String| {
        parts::known(at, |at| estimate(figure(&at), show))
    };
    let row = |name: &str, claimed: String, mean: String, p99: String| {
        (name.to_string(), claimed, mean, p99)
    };
    let (mean, p99) = (found.by_mean, found.by_p99);
    let outstanding =
        |at: Option<AtLoad>| parts::known(at, |at| format!("{} outstanding", at.depth));
    let size = mean.or(p99).map_or_else(String::new, |at| {
        format!(" of {}", Bytes(at.io_bytes.into()))
    });
    let rows = vec![
        row(
            &format!("random reads{size} per second"),
            parts::known(claim.max_iops, parts::count),
            of(mean, |at| at.iops, parts::count),
            of(p99, |at| at.iops, parts::count),
        ),
        row(
            "mean latency there",
            latency(claim.latency_ms),
            of(mean, |at| at.mean_us, parts::time),
            of(p99, |at| at.mean_us, parts::time),
        ),
        row(
            "p99 there",
            "not known".into(),
            of(mean, |at| at.p99_us, parts::time),
            of(p99, |at| at.p99_us, parts::time),
        ),
        row(
            "load there",
            "not known".into(),
            outstanding(mean),
            outstanding(p99),
        ),
        row(
            "large reads, MB/s",
            parts::known(claim.max_mbps, parts::count),
            of(found.large, |at| at.mb_per_s, parts::count),
            "as to the left".into(),
        ),
        row(
            "one process, MB/s",
            parts::known(claim.max_pmbps, parts::count),
            of(found.stream, |at| at.mb_per_s, parts::count),
            "as to the left".into(),
        ),
    ];
    let bound = format!("{} ms", found.bound_ms);
    let default = if found.is_default_bound {
        " The claim does not state its maximum latency: 20 ms is the procedure's default."
    } else {
        ""
    };
    let lead = format!(
        "Theirs has no interval, and its latency is in whole milliseconds. Ours in brackets: 95 % \
         intervals.{default} They are comparable only if both are of the same storage, idle otherwise."
    );
    Document {
        title: format!("rigel compare of {ours}, {theirs}"),
        heading: format!("rigel compare of {ours}, {theirs}"),
        conclusion: conclusion(found),
        sections: vec![parts::on_screen(parts::section(
            "claimed",
            "Claimed and measured",
            &lead,
            vec![
                TableOf::of("", rows)
                    .text("", |row| row.0.clone())
                    .number(&format!("claimed by {theirs}"), |row| row.1.clone())
                    .number(&format!("{ours}, mean within {bound}"), |row| row.2.clone())
                    .number(&format!("{ours}, p99 within {bound}"), |row| row.3.clone())
                    .block(),
            ],
        ))],
        ..Document::default()
    }
}

fn conclusion(claim: &ClaimBeside) -> Conclusion {
    let sentence = match claim.claim.max_iops.zip(claim.by_mean) {
        Some((claimed, ours)) if ours.iops.value > 0.0 => format!(
            "CALIBRATE_IO claims {} reads per second, {:.2} times the {} that we measured with a mean \
             latency within {} ms.",
            parts::count(claimed),
            claimed / ours.iops.value,
            parts::count(ours.iops.value),
            claim.bound_ms
        ),
        _ => "One of the two has no reads per second within the bound of latency.".into(),
    };
    Conclusion {
        status: Status::Plain,
        sentence,
    }
}
