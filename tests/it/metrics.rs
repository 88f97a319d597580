//! The metrics of a soak conform to the formats' specifications and match the measurements.
//!
//! A small strict checker parses the text format, and a decoder that shares no code with the
//! encoder parses the protobuf; both are then compared with the rounds. The Grafana dashboard and
//! the manual must not name unknown metrics. `RIGEL_TEST_SERVE=127.0.0.1:9464 cargo test --test it
//! scrape -- --ignored` serves rounds of a model for a minute, for scraping by a Prometheus.

use crate::common::run;
use proptest::prelude::*;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::{LatencyFigure, PredictabilityTerms, Round, Status, predictability, round};
use rigel_device::engine::sim::Sim;
use rigel_model::record::{Latencies, PointRecord, RankClock, RankGroup, RankRecord};
use rigel_model::{
    Coordinates, Load, Mix, Nanos, Objective, Pattern, Point, Stream, Until, WarmUp,
};
use rigel_report::openmetrics::{About, Exposed, ExposedWatch, Format};
use std::collections::{BTreeMap, BTreeSet};

const HOSTILE: &str = "a \"quoted\" \\ name\nof two lines";

fn objectives() -> Vec<Objective> {
    ["p99<2ms", "rate>1"]
        .iter()
        .map(|text| text.parse().unwrap())
        .collect()
}

fn about(target: &str) -> About {
    About {
        verb: "soak".into(),
        target: target.into(),
        engine: "sim".into(),
        started: "2026-01-02T03:04:05+01:00".parse().unwrap(),
        planned: Some(Nanos::from_secs(7 * 86_400)),
        objectives: objectives(),
        share: 0.75,
    }
}

/// A round of fixed work on a model, with a disk that was half busy meanwhile.
fn measured(number: u32, spec: &str) -> (Round, PointRecord) {
    let stream = |name: &str, depth| Stream {
        objective: None,
        sql: None,
        name: name.into(),
        load: Load::Closed { depth },
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        length: 8192,
        rank: None,
        log: None,
    };
    let point = Point {
        coordinates: Coordinates::Round {
            round: number,
            outstanding: 8,
        },
        streams: vec![stream("small", 8), stream("large", 1)],
        warm_up: WarmUp::NONE,
        until: Until::Ops(20_000),
        seed: number.into(),
        window: Point::second(),
    };
    let mut record = run(
        &Sim::new(
            spec.trim_start_matches("sim:").parse().unwrap(),
            number.into(),
        ),
        &point,
    );
    record.started = format!("2026-01-02T03:{:02}:05+01:00", number % 60);
    record.asked = Some(Box::new(point));
    record.samples = [(0, 0), (10, 5000)]
        .map(|(at, busy_ms)| rigel_model::Sample {
            at: Nanos::from_secs(at),
            devices: [(
                "sda".to_string(),
                rigel_model::Counters {
                    busy_ms,
                    ..Default::default()
                },
            )]
            .into(),
            cpu_ticks: [100 * at, 0, 0, 300 * at, 0, 0, 0, 0],
            ..Default::default()
        })
        .into();
    (round(&record, &objectives()).expect("a round"), record)
}

fn soaked(rounds: &[(u32, &str)]) -> (Exposed, Vec<(Round, PointRecord)>) {
    let mut exposed = Exposed::new(about("sim:8,100us"));
    let rounds: Vec<_> = rounds
        .iter()
        .map(|(number, spec)| measured(*number, spec))
        .collect();
    rounds
        .iter()
        .for_each(|(round, record)| exposed.add_round(round, record));
    (exposed, rounds)
}

/// The response times of all rounds, for one class or for all classes.
fn times(rounds: &[(Round, PointRecord)], class: &str) -> Latencies {
    let mut all = Latencies::default();
    rounds
        .iter()
        .for_each(|(_, record)| all.merge(&record.stream(class).unwrap().total().response));
    all
}

// ---- a checker of OpenMetrics text ----

/// One sample: its name, its labels, its value.
#[derive(Debug, Clone, PartialEq)]
struct Line {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

/// A family: its type, and its samples.
#[derive(Debug, Default, PartialEq)]
struct Checked {
    sort: String,
    unit: Option<String>,
    help: Option<String>,
    samples: Vec<Line>,
}

fn is_name(text: &str, more: &str) -> bool {
    let letter = |c: char| c.is_ascii_alphabetic() || c == '_' || more.contains(c);
    text.starts_with(letter) && text.chars().all(|c| letter(c) || c.is_ascii_digit())
}

/// Undoes `\\`, `\n` and `\"`; anything else after a backslash is an error.
fn unescaped(text: &str) -> Result<String, String> {
    let mut characters = text.chars();
    let mut plain = String::new();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') => '"',
                other => return Err(format!("escape {other:?}")),
            },
            '"' => return Err("a quote without a backslash".into()),
            other => other,
        });
    }
    Ok(plain)
}

fn sample(line: &str) -> Result<Line, String> {
    let wrong = || format!("no sample: {line}");
    let end = line.find(['{', ' ']).ok_or_else(wrong)?;
    let name = &line[..end];
    let mut rest = &line[end..];
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        loop {
            let (label, value) = rest.split_once("=\"").ok_or_else(wrong)?;
            let mut escaped = false;
            let close = value.char_indices().find(|(_, character)| {
                let closes = *character == '"' && !escaped;
                escaped = *character == '\\' && !escaped;
                closes
            });
            let (close, _) = close.ok_or_else(wrong)?;
            if !is_name(label, "")
                || labels
                    .insert(label.into(), unescaped(&value[..close])?)
                    .is_some()
            {
                return Err(format!("label '{label}' in {line}"));
            }
            rest = &value[close + 1..];
            match rest.strip_prefix(',') {
                Some(more) => rest = more,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').ok_or_else(wrong)?;
    }
    let number = rest
        .strip_prefix(' ')
        .filter(|number| !number.contains(' '))
        .ok_or_else(wrong)?;
    let is_number = number
        .bytes()
        .all(|byte| b"0123456789.+-eE".contains(&byte));
    let value = if is_number || ["NaN", "+Inf", "-Inf"].contains(&number) {
        number.parse().ok()
    } else {
        None
    };
    let name = Some(name)
        .filter(|name| is_name(name, ":"))
        .ok_or_else(wrong)?;
    Ok(Line {
        name: name.into(),
        labels,
        value: value.ok_or_else(wrong)?,
    })
}

/// Parses `OpenMetrics` 1.0.0 and checks its rules.
fn check(text: &str) -> Result<BTreeMap<String, Checked>, String> {
    let text = text.strip_suffix("# EOF\n").ok_or("no # EOF at the end")?;
    let mut families: BTreeMap<String, Checked> = BTreeMap::new();
    let mut open: Option<String> = None;
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        if let Some(comment) = line.strip_prefix("# ") {
            let mut words = comment.splitn(3, ' ');
            let (Some(what), Some(name), Some(rest)) = (words.next(), words.next(), words.next())
            else {
                return Err(format!("comment: {line}"));
            };
            if open.as_deref() != Some(name) {
                if what != "TYPE" || !is_name(name, ":") || families.contains_key(name) {
                    return Err(format!(
                        "a family that begins again, or without its type: {line}"
                    ));
                }
                open = Some(name.into());
            }
            let family = families.entry(name.into()).or_default();
            if !family.samples.is_empty() {
                return Err(format!("metadata after samples: {line}"));
            }
            match what {
                "TYPE" if family.sort.is_empty() => family.sort = rest.into(),
                "UNIT" if family.unit.is_none() && name.ends_with(&format!("_{rest}")) => {
                    family.unit = Some(rest.into());
                }
                "HELP" if family.help.is_none() => family.help = Some(unescaped(rest)?),
                _ => return Err(format!("comment: {line}")),
            }
            continue;
        }
        let sample = sample(line)?;
        let name = open.as_deref().ok_or("a sample without a family")?;
        let family = families.get_mut(name).unwrap();
        let ending = sample
            .name
            .strip_prefix(name)
            .ok_or_else(|| format!("{} in {name}", sample.name))?;
        let endings: &[&str] = match family.sort.as_str() {
            "counter" => &["_total", "_created"],
            "gauge" => &[""],
            "info" => &["_info"],
            "histogram" => &["_bucket", "_count", "_sum", "_created"],
            other => return Err(format!("type {other}")),
        };
        if !endings.contains(&ending)
            || family.samples.contains(&Line {
                value: sample.value,
                ..sample.clone()
            })
        {
            return Err(format!(
                "{} twice, or not of a {}",
                sample.name, family.sort
            ));
        }
        if family.sort != "gauge" && (sample.value < 0.0 || sample.value.is_nan()) {
            return Err(format!("{line} is not of a {}", family.sort));
        }
        family.samples.push(sample);
    }
    for (name, family) in families
        .iter()
        .filter(|(_, family)| family.sort == "histogram")
    {
        check_histogram(name, family)?;
    }
    Ok(families)
}

/// Checks that buckets are in order, never decrease, and end with `+Inf`, which equals the count.
fn check_histogram(name: &str, family: &Checked) -> Result<(), String> {
    let of = |ending: &str| {
        let name = format!("{name}{ending}");
        family
            .samples
            .iter()
            .filter(move |sample| sample.name == name)
    };
    for count in of("_count") {
        let own = |bucket: &&Line| {
            let mut labels = bucket.labels.clone();
            labels.remove("le");
            labels == count.labels
        };
        let buckets: Vec<(f64, f64)> = of("_bucket")
            .filter(own)
            .map(|line| (line.labels["le"].parse().unwrap(), line.value))
            .collect();
        let ascending = buckets
            .windows(2)
            .all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1);
        let closed = buckets.last() == Some(&(f64::INFINITY, count.value));
        if !ascending || !closed || of("_sum").filter(|sum| sum.labels == count.labels).count() != 1
        {
            return Err(format!(
                "buckets of {name}: {buckets:?}, count {}",
                count.value
            ));
        }
    }
    Ok(())
}

fn opened(exposed: &Exposed) -> BTreeMap<String, Checked> {
    let text = String::from_utf8(exposed.encode(Format::OpenMetrics)).unwrap();
    check(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn value(families: &BTreeMap<String, Checked>, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
    let matches = |line: &&Line| {
        line.name == name
            && labels
                .iter()
                .all(|(label, value)| line.labels.get(*label).is_some_and(|own| own == value))
    };
    families
        .values()
        .flat_map(|family| &family.samples)
        .find(matches)
        .map(|line| line.value)
}

#[test]
fn a_body_is_made_once_a_round() {
    let (_, rounds) = soaked(&[(1, "sim:8,100us"), (2, "sim:8,3ms")]);
    let mut exposed = Exposed::new(about("sim:8,100us"));
    let mut bodies = Vec::new();
    for (round, record) in &rounds {
        exposed.add_round(round, record);
        for format in Format::ALL {
            let [(_, first), (_, again)] = [(); 2].map(|()| exposed.answer(format.content_type()));
            assert!(std::sync::Arc::ptr_eq(&first, &again), "{format:?}");
            assert_eq!(first[..], exposed.encode(format)[..], "{format:?}");
            bodies.push(first);
        }
    }
    assert!(
        (0..3).all(|format| bodies[format] != bodies[format + 3]),
        "the second round is in all of them"
    );
}

#[test]
fn the_checker_refuses_what_breaks_the_rules() {
    let good = "# TYPE a counter\n# HELP a x\na_total{b=\"c\\\"}\"} 1\n# TYPE d_seconds gauge\n# \
                UNIT d_seconds seconds\nd_seconds 1.5e-3\n# EOF\n";
    assert_eq!(check(good).unwrap().len(), 2);
    for (from, to) in [
        ("# EOF\n", ""),
        ("a_total", "a"),
        ("gauge", "counter"),
        ("1.5e-3", "1.5 x"),
        ("1.5e-3", "inf"),
        ("{b=", "{1b="),
        ("\\\"", "\""),
        ("# UNIT d_seconds seconds", "# UNIT d_seconds bytes"),
        ("# TYPE d_seconds gauge\n", ""),
        (" 1\n", " -1\n"),
        ("d_seconds", "a"),
    ] {
        assert!(check(&good.replace(from, to)).is_err(), "{from} as {to}");
    }
    let histogram = "# TYPE h histogram\nh_bucket{le=\"1.0\"} 2\nh_bucket{le=\"+Inf\"} 3\nh_count \
                     3\nh_sum 4\n# EOF\n";
    assert!(check(histogram).is_ok());
    for (from, to) in [
        ("} 2", "} 4"),
        ("} 3", "} 2"),
        ("1.0", "+Inf"),
        ("h_sum 4\n", ""),
    ] {
        assert!(
            check(&histogram.replace(from, to)).is_err(),
            "{from} as {to}"
        );
    }
}

#[test]
fn text_is_open_metrics_with_the_measured_figures() {
    let (exposed, rounds) = soaked(&[(1, "sim:8,100us"), (2, "sim:8,100us"), (5, "sim:8,3ms")]);
    let families = opened(&exposed);
    let get = |name: &str, labels: &[(&str, &str)]| value(&families, name, labels);
    let small = times(&rounds, "small");
    let done = small.histogram.count() as f64;
    assert_eq!(
        get(
            "rigel_operations_total",
            &[("class", "small"), ("kind", "read")]
        ),
        Some(done)
    );
    assert_eq!(
        get("rigel_response_seconds_count", &[("class", "small")]),
        Some(done)
    );
    assert_eq!(
        get("rigel_response_seconds_sum", &[("class", "small")]),
        Some(small.sum as f64 / 1e9)
    );
    assert_eq!(get("rigel_operations_created", &[]), Some(1_767_319_445.0));
    let last = &rounds[2].0;
    assert_eq!(get("rigel_round_number", &[]), Some(5.0));
    assert_eq!(get("rigel_round_operations_per_second", &[]), last.rate);
    for figure in LatencyFigure::ALL {
        let labels = [("statistic", figure.label())];
        let known = last.latency.get(*figure).map(|us| us / 1e6);
        assert!(known.is_some(), "{labels:?}");
        assert_eq!(get("rigel_round_response_seconds", &labels), known);
    }
    assert_eq!(get("rigel_rounds_total", &[("end", "whole")]), Some(3.0));
    assert_eq!(get("rigel_rounds_total", &[("end", "broken")]), Some(0.0));
    assert_eq!(get("rigel_rounds_missed_total", &[]), Some(2.0), "3 and 4");
    assert_eq!(
        get("rigel_objective_met", &[("objective", "p99<2ms")]),
        Some(0.0)
    );
    assert_eq!(
        get("rigel_objective_met", &[("objective", "rate>1")]),
        Some(1.0)
    );
    assert_eq!(
        get("rigel_objective_met_ratio", &[("objective", "p99<2ms")]),
        Some(2.0 / 3.0)
    );
    assert_eq!(
        get("rigel_error_budget_used_ratio", &[("objective", "p99<2ms")]),
        Some(4.0 / 3.0)
    );
    assert_eq!(
        get("rigel_error_budget_used_ratio", &[("objective", "rate>1")]),
        Some(0.0)
    );
    assert_eq!(
        get("rigel_device_busy_ratio", &[("device", "sda")]),
        Some(0.5)
    );
    assert_eq!(get("rigel_host_cpu_busy_ratio", &[]), Some(0.25));
    assert_eq!(
        get("rigel_host_io_pressure_ratio", &[]),
        None,
        "the kernel did not say"
    );
    assert_eq!(
        get(
            "rigel_info",
            &[
                ("target", "sim:8,100us"),
                ("engine", "sim"),
                ("verb", "soak")
            ]
        ),
        Some(1.0)
    );
    assert_eq!(get("rigel_soak_planned_seconds", &[]), Some(604_800.0));
    assert!(families.values().all(|family| family.help.is_some()));
}

#[test]
fn the_conclusion_is_one_of_its_states() {
    let (mut exposed, _) = soaked(&[(1, "sim:8,100us")]);
    let states = |exposed: &Exposed| {
        let families = opened(exposed);
        let get = |status: Status| {
            value(
                &families,
                "rigel_soak_conclusion",
                &[("status", status.name())],
            )
        };
        Status::ALL.map(get)
    };
    assert_eq!(states(&exposed), [None; 4], "before there is one");
    for (at, status) in Status::ALL.into_iter().enumerate() {
        exposed.conclude(status);
        let mut expected = [Some(0.0); 4];
        expected[at] = Some(1.0);
        assert_eq!(states(&exposed), expected);
        assert_eq!(serde_json::to_value(status).unwrap(), status.name());
    }
}

#[test]
fn the_error_budget_is_that_of_the_report() {
    // Round 2 misses its objective, and 3 to 5 do not take place: a stall. The gap before round 9
    // has another cause.
    let (exposed, rounds) = soaked(&[
        (1, "sim:8,100us"),
        (2, "sim:8,3ms"),
        (6, "sim:8,100us"),
        (9, "sim:8,100us"),
    ]);
    let rounds: Vec<Round> = rounds.into_iter().map(|(round, _)| round).collect();
    let About {
        objectives, share, ..
    } = about("sim:8,100us");
    let terms = PredictabilityTerms {
        objectives,
        share,
        every_seconds: Some(60.0),
        planned: None,
        is_open: false,
        samples: rigel_analyse::Samples::Rounds,
    };
    let reported = predictability(&rounds, &terms).objectives[0]
        .budget_used
        .unwrap();
    let exposed = value(
        &opened(&exposed),
        "rigel_error_budget_used_ratio",
        &[("objective", "p99<2ms")],
    )
    .unwrap();
    assert!((reported - 4.0 / 7.0 / 0.25).abs() < 1e-9, "{reported}");
    assert!(
        (exposed - reported).abs() < 1e-9,
        "{exposed} where the report has {reported}"
    );
}

#[test]
fn both_texts_say_the_same() {
    let (exposed, _) = soaked(&[(1, "sim:8,100us")]);
    let lines = |format| {
        let text = String::from_utf8(exposed.encode(format)).unwrap();
        text.lines()
            .filter(|line| !line.starts_with('#') && !line.contains("_created"))
            .map(String::from)
            .collect()
    };
    let (old, new): (Vec<String>, Vec<String>) = (lines(Format::Text), lines(Format::OpenMetrics));
    assert_eq!(old, new);
    // There, metadata uses the names of the samples.
    let text = String::from_utf8(exposed.encode(Format::Text)).unwrap();
    for line in [
        "# TYPE rigel_operations_total counter",
        "# TYPE rigel_info gauge",
        "# TYPE rigel_response_seconds histogram",
    ] {
        assert!(text.lines().any(|own| own == line), "{line}\n{text}");
    }
}

#[test]
fn before_the_first_round_there_is_little_and_it_is_right() {
    let exposed = Exposed::new(about(HOSTILE));
    let families = opened(&exposed);
    assert_eq!(
        value(&families, "rigel_info", &[("target", HOSTILE)]),
        Some(1.0)
    );
    assert_eq!(
        value(&families, "rigel_rounds_total", &[("end", "whole")]),
        Some(0.0)
    );
    assert_eq!(value(&families, "rigel_round_number", &[]), None);
    assert!(!decode(&exposed.encode(Format::Protobuf)).is_empty());
}

#[test]
fn exposed_metrics_do_not_grow_with_rounds() {
    let (round, record) = measured(1, "sim:8,100us");
    let mut exposed = Exposed::new(about("sim:8,100us"));
    let mut lines = BTreeSet::new();
    for number in 1..=200 {
        let mut record = record.clone();
        // An unlimited number of causes.
        record.streams[0].kinds[0].windows[0].failed = [(format!("SQLSTATE {number}"), 1)].into();
        exposed.add_round(
            &Round {
                number,
                ..round.clone()
            },
            &record,
        );
        if number > 60 {
            lines.insert(
                exposed
                    .encode(Format::Text)
                    .split(|byte| *byte == b'\n')
                    .count(),
            );
        }
    }
    assert_eq!(lines.len(), 1, "{lines:?}");
    let failures = value(
        &opened(&exposed),
        "rigel_operation_failures_total",
        &[("cause", "other")],
    );
    assert_eq!(failures, Some(150.0));
}

// ---- a decoder of protobuf ----

/// Fields in order: number and value.
#[derive(Debug, Clone, PartialEq)]
enum Wire<'a> {
    Varint(u64),
    Double(f64),
    Bytes(&'a [u8]),
}

fn varint(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..70).step_by(7) {
        let byte = bytes[0];
        *bytes = &bytes[1..];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return value;
        }
    }
    panic!("a varint of more than ten bytes");
}

fn cut<'a>(bytes: &mut &'a [u8]) -> &'a [u8] {
    let length = usize::try_from(varint(bytes)).unwrap();
    let (piece, rest) = bytes.split_at(length);
    *bytes = rest;
    piece
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Wire<'_>)> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Wire::Varint(varint(&mut bytes)),
            1 => {
                let (double, rest) = bytes.split_at(8);
                bytes = rest;
                Wire::Double(f64::from_le_bytes(double.try_into().unwrap()))
            }
            2 => Wire::Bytes(cut(&mut bytes)),
            other => panic!("wire type {other}"),
        };
        fields.push((tag >> 3, value));
    }
    fields
}

fn all(message: &[u8], field: u64, get: impl Fn(&Wire<'_>) -> Option<f64>) -> Vec<f64> {
    fields(message)
        .iter()
        .filter(|(number, _)| *number == field)
        .map(|(_, wire)| get(wire).unwrap())
        .collect()
}

fn messages(message: &[u8], field: u64) -> Vec<&[u8]> {
    let bytes = |(number, wire)| match wire {
        Wire::Bytes(bytes) if number == field => Some(bytes),
        _ => None,
    };
    fields(message).into_iter().filter_map(bytes).collect()
}

fn text(message: &[u8], field: u64) -> String {
    String::from_utf8(messages(message, field)[0].into()).unwrap()
}

fn unsigned(wire: &Wire<'_>) -> Option<f64> {
    if let Wire::Varint(value) = wire {
        Some(*value as f64)
    } else {
        None
    }
}

fn signed(wire: &Wire<'_>) -> Option<f64> {
    let Wire::Varint(value) = wire else {
        return None;
    };
    let half = (value >> 1) as f64;
    Some(if value & 1 == 0 { half } else { -half - 1.0 })
}

fn double(wire: &Wire<'_>) -> Option<f64> {
    if let Wire::Double(value) = wire {
        Some(*value)
    } else {
        None
    }
}

/// Families by name: type, and metrics as labels and the message of the value.
type Decoded<'a> = BTreeMap<String, (f64, Vec<(BTreeMap<String, String>, &'a [u8])>)>;

fn decode(mut bytes: &[u8]) -> Decoded<'_> {
    let mut families = BTreeMap::new();
    while !bytes.is_empty() {
        let family = cut(&mut bytes);
        let sort = all(family, 3, unsigned)[0];
        let value_field = match sort {
            0.0 => 3,
            1.0 => 2,
            _ => 7,
        };
        let metric = |metric| {
            let labels = messages(metric, 1)
                .into_iter()
                .map(|label| (text(label, 1), text(label, 2)))
                .collect();
            (labels, messages(metric, value_field)[0])
        };
        let before = families.insert(
            text(family, 1),
            (sort, messages(family, 4).into_iter().map(metric).collect()),
        );
        assert!(before.is_none(), "{} twice", text(family, 1));
    }
    families
}

/// Native buckets: upper limit in seconds, and count.
fn native(histogram: &[u8]) -> Vec<(f64, f64)> {
    let schema = all(histogram, 5, signed)[0];
    let mut deltas = all(histogram, 13, signed).into_iter();
    let (mut index, mut count, mut buckets) = (0.0, 0.0, Vec::new());
    for span in messages(histogram, 12) {
        index += all(span, 1, signed)[0];
        let length = all(span, 2, unsigned)[0];
        let mut taken = 0.0;
        while taken < length {
            taken += 1.0;
            count += deltas.next().unwrap();
            buckets.push(((index / schema.exp2()).exp2(), count));
            index += 1.0;
        }
    }
    assert_eq!(deltas.next(), None);
    buckets
}

#[test]
fn protobuf_and_text_have_the_same_content() {
    let (exposed, _) = soaked(&[(1, "sim:8,100us"), (3, "sim:8,3ms")]);
    let bytes = exposed.encode(Format::Protobuf);
    let mut compared = 0;
    let text = opened(&exposed);
    for (name, (sort, metrics)) in decode(&bytes) {
        for (labels, message) in metrics {
            let labels: Vec<(&str, &str)> = labels
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            if sort < 4.0 {
                let told = value(&text, &name, &labels);
                assert_eq!(told, Some(all(message, 1, double)[0]), "{name} {labels:?}");
            } else {
                let count = all(message, 1, unsigned)[0];
                assert_eq!(value(&text, &format!("{name}_count"), &labels), Some(count));
                assert_eq!(
                    value(&text, &format!("{name}_sum"), &labels),
                    Some(all(message, 2, double)[0])
                );
                let told = &text[&name].samples;
                let told = told.iter().filter(|line| {
                    line.labels.contains_key("le") && line.labels["class"] == labels[0].1
                });
                let classic: Vec<f64> = messages(message, 3)
                    .iter()
                    .map(|bucket| all(bucket, 1, unsigned)[0])
                    .collect();
                assert_eq!(
                    classic,
                    told.map(|line| line.value)
                        .take(classic.len())
                        .collect::<Vec<_>>()
                );
            }
            compared += 1;
        }
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn native_buckets_give_our_own_quantiles_within_the_stated_error() {
    let (exposed, rounds) = soaked(&[
        (1, "sim:8,100us"),
        (2, "sim:4,2ms"),
        (3, "sim:8,100us,slow=50ms@0.5%"),
    ]);
    let bytes = exposed.encode(Format::Protobuf);
    let (sort, metrics) = &decode(&bytes)["rigel_response_seconds"];
    assert_eq!((*sort, metrics.len()), (4.0, 2));
    for (labels, message) in metrics {
        let ours = times(&rounds, &labels["class"]).histogram;
        let buckets = native(message);
        let zeros = all(message, 7, unsigned)[0];
        let theirs = zeros + buckets.iter().map(|(_, count)| count).sum::<f64>();
        assert!((theirs - ours.count() as f64).abs() < 0.5, "{theirs}");
        assert_eq!(
            all(messages(message, 15)[0], 1, unsigned),
            [1_767_319_445.0],
            "created"
        );
        for quantile in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = (quantile * ours.count() as f64).ceil();
            let mut seen = zeros;
            let upper = buckets.iter().find(|(_, count)| {
                seen += count;
                seen >= rank
            });
            let (upper, ours) = (
                upper.unwrap().0,
                ours.quantile(quantile).unwrap().middle() / 1e9,
            );
            assert!(
                ours <= upper * 1.004 && ours >= upper / 1.0219 / 1.004,
                "{quantile}: {ours}, {upper}"
            );
        }
    }
}

proptest! {
    #[test]
    fn any_target_and_any_cause_stay_within_the_grammar(target in "\\PC*|[\\\\\"\n{}=, a]*", cause in "[\\\\\"\n{}=, a]*") {
        let mut exposed = Exposed::new(about(&target));
        let (round, mut record) = measured_once().clone();
        record.streams[0].kinds[0].windows[0].failed = [(cause.clone(), 3)].into();
        exposed.add_round(&round, &record);
        let families = opened(&exposed);
        prop_assert_eq!(value(&families, "rigel_info", &[("target", &target)]), Some(1.0));
        prop_assert_eq!(value(&families, "rigel_operation_failures_total", &[("cause", &cause)]), Some(3.0));
        let bytes = exposed.encode(Format::Protobuf);
        prop_assert_eq!(&decode(&bytes)["rigel_info"].1[0].0["target"], &target);
    }
}

fn measured_once() -> &'static (Round, PointRecord) {
    static ROUND: std::sync::OnceLock<(Round, PointRecord)> = std::sync::OnceLock::new();
    ROUND.get_or_init(|| measured(1, "sim:8,100us"))
}

// ---- what speaks of the metrics ----

/// Every family that can be exposed.
fn every_family() -> BTreeMap<String, Checked> {
    let (mut exposed, mut rounds) = soaked(&[(1, "sim:8,100us")]);
    let (round, record) = &mut rounds[0];
    record.streams[0].kinds[0].windows[0].failed = [("short transfer".to_string(), 1)].into();
    let host = round.host.as_mut().unwrap();
    (host.io_pressure, host.others_mb_per_s) = (Some(0.1), Some(1.0));
    exposed.add_round(round, record);
    let of_rank = RankRecord {
        rank: 0,
        clock: RankClock::default(),
        began: Nanos(0),
        record: record.clone(),
    };
    exposed.add_ranks(&RankGroup::default(), &[of_rank]);
    exposed.conclude(Status::Plain);
    opened(&exposed)
}

/// Their names, both of samples and of families.
fn names() -> BTreeSet<String> {
    let families = every_family();
    let mut names: BTreeSet<String> = families
        .values()
        .flat_map(|family| &family.samples)
        .map(|line| line.name.clone())
        .collect();
    names.extend(
        families
            .iter()
            .filter(|(_, family)| family.sort == "histogram")
            .map(|(name, _)| name.clone()),
    );
    names.retain(|name| !name.ends_with("_created"));
    names
}

/// Every `rigel_…` in a text.
fn named(text: &str) -> BTreeSet<String> {
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words = text
        .split(|c| !of_name(c))
        .filter(|word| word.starts_with("rigel_"));
    words.map(String::from).collect()
}

/// The names of a watch: of its counters, the gauge, and the histogram.
fn names_of_a_watch() -> BTreeSet<String> {
    let interval = rigel_analyse::examples::watched();
    let mut exposed =
        ExposedWatch::new(interval.started.parse().unwrap(), &WatchRequest::default());
    exposed.add(&interval);
    named(std::str::from_utf8(&exposed.answer("").1).unwrap())
}

#[test]
fn the_dashboards_name_metrics_that_are_there() {
    for (name, there, queries_least) in [("soak", names(), 15), ("watch", names_of_a_watch(), 7)] {
        let text = std::fs::read_to_string(format!("contrib/grafana/rigel-{name}.json")).unwrap();
        let dashboard: serde_json::Value = serde_json::from_str(&text).expect("json");
        let panels = dashboard["panels"].as_array().unwrap();
        let targets: Vec<_> = panels
            .iter()
            .filter_map(|panel| panel["targets"].as_array())
            .flatten()
            .collect();
        let queries: Vec<&str> = targets
            .iter()
            .map(|target| target["expr"].as_str().expect("a query"))
            .collect();
        assert!(queries.len() >= queries_least, "{name}: {}", queries.len());
        let asked = named(&queries.join("\n"));
        let missing: BTreeSet<_> = asked.difference(&there).collect();
        assert!(missing.is_empty(), "{name}: not exposed: {missing:?}");
        let ids: BTreeSet<u64> = panels
            .iter()
            .map(|panel| panel["id"].as_u64().unwrap())
            .collect();
        assert_eq!(ids.len(), panels.len(), "each panel has an id of its own");
        for target in targets {
            assert_eq!(target["datasource"]["uid"], "${datasource}", "{target}");
        }
    }
}

#[test]
fn the_table_of_the_manual_is_made_of_the_metrics() {
    let row = |(name, family): (&String, &Checked)| {
        let exposed = match family.sort.as_str() {
            "counter" | "info" => &family.samples[0].name,
            _ => name,
        };
        let labels = family.samples.iter().flat_map(|line| line.labels.keys());
        let labels: BTreeSet<&str> = labels
            .map(String::as_str)
            .filter(|label| *label != "le")
            .collect();
        let by: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
        let by = if by.is_empty() {
            String::new()
        } else {
            format!(" by {}", by.join(", "))
        };
        let help = family.help.as_deref().expect("each has a help text");
        format!("| `{exposed}` | {}{by} | {help} |\n", family.sort)
    };
    let table: String = every_family().iter().map(row).collect();
    let table = format!("| metric | type | what it is |\n|---|---|---|\n{table}");
    let path = "docs/methods/metrics.md";
    let text = std::fs::read_to_string(path).unwrap();
    let begin = text.find("| metric |").expect("a table");
    let end = begin + text[begin..].find("\n\n").expect("its end") + 1;
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, text[..begin].to_string() + &table + &text[end..]).unwrap();
    } else {
        let hint = "UPDATE_GOLDEN=1 cargo test --test it metrics:: writes it again";
        assert_eq!(&text[begin..end], table, "{hint}");
    }
    let readme = std::fs::read_to_string("contrib/README.md").unwrap();
    assert!(named(&readme).is_subset(&names()), "{:?}", named(&readme));
}
