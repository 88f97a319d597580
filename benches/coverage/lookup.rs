//! Where figures stand in the JSON of a run. Nothing else in this benchmark knows a key.
//!
//! Input: the output of `--json`, of this version or an older one. Output: figures with the ends of
//! their intervals. A key that is missing gives `None` and never an error, because one table is
//! made of several versions.

use rigel_stats::mean::Mean;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;

/// A printed figure and the ends of its interval, as far as they are given.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Printed {
    pub(crate) value: f64,
    pub(crate) low: Option<f64>,
    pub(crate) high: Option<f64>,
}

impl Printed {
    /// `{value, interval: {low, high}}`, or `{value, error, degrees}` of a mean.
    fn of(figure: &Value) -> Option<Self> {
        let value = figure["value"].as_f64()?;
        if let (Some(error), Some(degrees)) = (figure["error"].as_f64(), figure["degrees"].as_f64())
        {
            let effective_n = figure["effective_n"].as_f64().unwrap_or(f64::NAN);
            let mean = Mean {
                value,
                error,
                effective_n,
                degrees,
            };
            let interval = mean.interval();
            let (low, high) = (Some(interval.low), Some(interval.high));
            return Some(Self { value, low, high });
        }
        Some(Self::within(value, &figure["interval"]))
    }

    fn within(value: f64, limits: &Value) -> Self {
        Self {
            value,
            low: limits["low"].as_f64(),
            high: limits["high"].as_f64(),
        }
    }
}

/// The five figures of a point, in this order.
pub(crate) const FIGURES: [&str; 5] = ["throughput", "mean", "p50", "p99", "p99.9"];

/// A point of `curve`: figures in operations per second and seconds.
#[derive(Debug)]
pub(crate) struct PointFigures {
    pub(crate) figures: [Option<Printed>; 5],
    pub(crate) served: Served,
    /// True if the point itself has a warning.
    pub(crate) is_warned: bool,
}

/// Whether an offered rate is said to be served.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Served {
    Yes,
    No,
    Undecided,
}

impl Served {
    /// A boolean, or the name of one of three answers.
    fn of(class: &Value) -> Self {
        const YES: [&str; 3] = ["yes", "met", "kept"];
        const NO: [&str; 3] = ["no", "not_met", "broken"];
        let answer = ["served", "met"].iter().find_map(|key| class.get(key));
        match answer {
            Some(Value::Bool(true)) => Self::Yes,
            Some(Value::Bool(false)) => Self::No,
            Some(Value::String(answer)) if YES.contains(&answer.as_str()) => Self::Yes,
            Some(Value::String(answer)) if NO.contains(&answer.as_str()) => Self::No,
            _ => Self::Undecided,
        }
    }
}

/// The points of a curve, without those that were measured again at its end.
pub(crate) fn points(run: &Value) -> Vec<PointFigures> {
    let (searched, _): (Vec<&Value>, _) =
        array(&run["points"]).iter().partition(|it| !is_closing(it));
    searched.into_iter().filter_map(point).collect()
}

/// A depth of the search of a calibration, all of its visits.
pub(crate) fn at_depth(run: &Value, depth: u32) -> Option<PointFigures> {
    let is_it = |it: &&Value| it["step"] == "depth" && it["depth"] == depth;
    point(array(&run["points"]).iter().find(is_it)?)
}

/// Throughput of the measurement of fixed length at the end, if there is one.
pub(crate) fn closing(run: &Value) -> Option<Printed> {
    point(array(&run["points"]).iter().find(|it| is_closing(it))?)?.figures[0]
}

fn is_closing(point: &Value) -> bool {
    ["closing", "closing_depth"]
        .iter()
        .any(|step| point["step"] == *step)
}

fn point(point: &Value) -> Option<PointFigures> {
    let class = point["classes"].get(0)?;
    let known = &class["confidence"];
    let quantile = |key: &str| {
        let printed = Printed::within(class[key].as_f64()?, &known[key]);
        Some(scaled(printed, 1e-6))
    };
    let throughput = Printed::of(&known["iops"]).or_else(|| Printed::of(class.get("iops")?));
    let mean = Printed::of(&known["mean_us"]).map(|printed| scaled(printed, 1e-6));
    let tails = [quantile("p50_us"), quantile("p99_us"), quantile("p999_us")];
    Some(PointFigures {
        figures: [throughput, mean, tails[0], tails[1], tails[2]],
        served: Served::of(class),
        is_warned: !warnings(point).is_empty(),
    })
}

fn scaled(printed: Printed, factor: f64) -> Printed {
    Printed {
        value: printed.value * factor,
        low: printed.low.map(|low| low * factor),
        high: printed.high.map(|high| high * factor),
    }
}

/// How far the run trusts its figures, in its words; [`GOOD`] if nothing speaks against them.
pub(crate) fn trust(run: &Value) -> String {
    run["trust"]["level"].as_str().unwrap_or("-").to_string()
}

/// Whether a calibration trusts its max IOPS, its throughput, its latency at low load and its sustained rate; all of
/// them as the run, where versions did not tell them apart.
pub(crate) fn trusted_figures(run: &Value) -> [bool; 4] {
    let figures = run["trust"]["figures"].as_array();
    ["max-iops", "max-throughput", "low-load", "sustained-rate"].map(|name| {
        let own = figures.and_then(|figures| figures.iter().find(|one| one["figure"] == name));
        own.map_or(trust(run) == GOOD, |own| own["level"] == GOOD)
    })
}

/// See [`trust`].
pub(crate) const GOOD: &str = "good";

/// Throughput of large reads of a calibration, in bytes per second.
pub(crate) fn large(run: &Value) -> Option<Printed> {
    let figure = Printed::of(&run["calibration"]["large"]["mb_per_s"])?;
    Some(scaled(figure, 1e6))
}

/// p99 of one reader of a calibration, in seconds.
pub(crate) fn low_load_p99(run: &Value) -> Option<Printed> {
    let figure = Printed::of(&run["calibration"]["low_load"]["p99_us"])?;
    Some(scaled(figure, 1e-6))
}

/// Max IOPS of a calibration, the headline.
pub(crate) fn maximum(run: &Value) -> Option<Printed> {
    Printed::of(&run["calibration"]["maximum"]["iops"])
}

/// The knee of a calibration, and its range if one is given.
pub(crate) fn knee(run: &Value) -> Option<Printed> {
    let knee = &run["calibration"]["curve"]["knee"];
    let range = ["range", "interval"].iter().find_map(|key| knee.get(key));
    Some(Printed::within(
        knee["load"].as_f64()?,
        range.unwrap_or(&Value::Null),
    ))
}

/// The sustained rate of a calibration with its interval; of older versions, the rate that met the
/// bound, and the lowest one that did not.
pub(crate) fn sustained(run: &Value) -> Option<Printed> {
    let found = &run["calibration"]["sustained"];
    Printed::of(&found["rate"]).or_else(|| {
        let value = found["kept_rate"].as_f64()?;
        Some(Printed {
            value,
            low: Some(value),
            high: found["broken_rate"].as_f64(),
        })
    })
}

/// Names of the warnings of a run, or of a point.
pub(crate) fn warnings(run: &Value) -> BTreeSet<String> {
    findings(run, true)
}

/// Names of the notes of a run, without the one that says that a model is no device.
pub(crate) fn notes(run: &Value) -> BTreeSet<String> {
    let mut names = findings(run, false);
    names.remove("sim");
    names
}

fn findings(run: &Value, warnings: bool) -> BTreeSet<String> {
    array(&run["findings"])
        .iter()
        .filter(|finding| {
            // Reports of format 1 said doubt.
            let severity = &finding["severity"];
            (severity == "warning" || severity == "doubt") == warnings
        })
        .filter_map(|finding| finding["name"].as_str().map(str::to_string))
        .collect()
}

/// Virtual length of a run in seconds: warm-up and measurement of all points.
pub(crate) fn length_s(run: &Value) -> f64 {
    let number = |value: &Value| value.as_f64().unwrap_or(0.0);
    array(&run["points"])
        .iter()
        .map(|point| number(&point["warm_up_s"]) + number(&point["measured_s"]))
        .sum()
}

/// The outcome of `expect`.
pub(crate) fn outcome(run: &Value) -> Option<&str> {
    run["expect"]["outcome"].as_str()
}

/// The first answer of `duet` on the second arm, and the multiple of its figure.
pub(crate) fn answer(run: &Value) -> (Option<&str>, Option<Printed>) {
    let of = &run["duet"]["arms"][1]["against_first"][0];
    (of["answer"].as_str(), Printed::of(&of["ratio"]))
}

/// What a comparison says of its headline figures, all together: `worse`, `better`, and `open` if
/// it says how many runs would decide.
pub(crate) fn verdicts(comparison: &Value) -> BTreeSet<String> {
    let names = [
        ("worse", "worse"),
        ("better", "better"),
        ("runs_needed", "open"),
    ];
    array(&comparison["verdicts"])
        .iter()
        .flat_map(|verdict| {
            names
                .iter()
                .filter(|(key, _)| !array(&verdict[*key]).is_empty())
        })
        .map(|(_, name)| (*name).to_string())
        .collect()
}

/// True if six runs were compared as two sides, which have a name each, and not as six.
pub(crate) fn has_sides(comparison: &Value) -> bool {
    array(&comparison["names"]).len() == 2
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}
