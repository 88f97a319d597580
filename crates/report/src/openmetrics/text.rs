//! Metrics as text: `OpenMetrics` 1.0.0, and its predecessor, the text format 0.0.4.
//!
//! Neither has native histograms: both use classic buckets.

use super::family::{Family, LIMITS, Metric, Sort, Times, Value};
use std::fmt::Write;

/// One of the two text formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenMetrics,
    Prometheus,
}

/// Encodes the families as text. `created` is the beginning of the counters, in seconds since 1970.
pub(super) fn encode(families: &[Family], created: i64, dialect: Dialect) -> Vec<u8> {
    let mut text = String::new();
    for family in families {
        head(&mut text, family, dialect);
        let created = (dialect == Dialect::OpenMetrics).then_some(created);
        family
            .metrics
            .iter()
            .for_each(|metric| samples(&mut text, family, metric, created));
    }
    if dialect == Dialect::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text.into_bytes()
}

/// Writes type, unit and help, in the order and with the names of the dialect.
fn head(text: &mut String, family: &Family, dialect: Dialect) {
    let help = family.help.replace('\\', "\\\\").replace('\n', "\\n");
    match dialect {
        Dialect::OpenMetrics => {
            let sort = match family.sort {
                Sort::Counter => "counter",
                Sort::Gauge => "gauge",
                Sort::Info => "info",
                Sort::Histogram => "histogram",
            };
            line(text, &format!("# TYPE {} {sort}", family.name));
            if let Some(unit) = family.unit {
                line(text, &format!("# UNIT {} {unit}", family.name));
            }
            line(
                text,
                &format!("# HELP {} {}", family.name, help.replace('"', "\\\"")),
            );
        }
        Dialect::Prometheus => {
            let sort = match family.sort {
                Sort::Counter => "counter",
                Sort::Gauge | Sort::Info => "gauge",
                Sort::Histogram => "histogram",
            };
            line(text, &format!("# HELP {} {help}", family.full_name()));
            line(text, &format!("# TYPE {} {sort}", family.full_name()));
        }
    }
}

fn samples(text: &mut String, family: &Family, metric: &Metric, created: Option<i64>) {
    let labels = |more: Option<(&str, &str)>| {
        let own = metric
            .labels
            .iter()
            .map(|(name, value)| (*name, value.as_str()));
        let pairs: Vec<String> = own
            .chain(more)
            .map(|(name, value)| format!("{name}=\"{}\"", escaped(value)))
            .collect();
        if pairs.is_empty() {
            String::new()
        } else {
            format!("{{{}}}", pairs.join(","))
        }
    };
    let name = &family.name;
    match &metric.value {
        Value::Number(value) => {
            line(
                text,
                &format!("{}{} {}", family.full_name(), labels(None), number(*value)),
            );
        }
        Value::Times(Times {
            count,
            sum,
            classic,
            ..
        }) => {
            for ((_, limit), counted) in LIMITS.iter().zip(classic) {
                line(
                    text,
                    &format!("{name}_bucket{} {counted}", labels(Some(("le", limit)))),
                );
            }
            line(
                text,
                &format!("{name}_bucket{} {count}", labels(Some(("le", "+Inf")))),
            );
            line(text, &format!("{name}_count{} {count}", labels(None)));
            line(
                text,
                &format!("{name}_sum{} {}", labels(None), number(*sum)),
            );
        }
    }
    if let Some(created) =
        created.filter(|_| matches!(family.sort, Sort::Counter | Sort::Histogram))
    {
        line(text, &format!("{name}_created{} {created}", labels(None)));
    }
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("a string takes all");
}

fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('\n', "\\n")
        .replace('"', "\\\"")
}

fn number(value: f64) -> String {
    if value.is_nan() {
        "NaN".into()
    } else if value.is_infinite() {
        if value > 0.0 {
            "+Inf".into()
        } else {
            "-Inf".into()
        }
    } else {
        value.to_string()
    }
}
