//! Figures of a run over time, for comparisons: the rounds of a soak, or another tool's time
//! series.
//!
//! Input: rounds with their analysis, or imported series. Output: each quantity round by round, and
//! its figures over all rounds. The interval of the median allows for correlation of neighbouring
//! rounds. The other figures (the worst hour, the variation, fractions, counts) have no known error
//! and are shown alone.

use crate::figures::latency::{LatencyFigure, ShownIn};
use crate::figures::quantile::error_of_share;
use crate::figures::quantity::Unit;
use crate::series::imported;
use crate::series::predictability::{known, predictability};
use crate::series::rounds::Round;
use crate::series::series_figures::series_figures;
use crate::series::types::{Predictability, PredictabilityTerms, Quantity};
use rigel_model::record::imported::{Figures, Imported, ImportedSeries};
use rigel_stats::estimate::Estimate;
use rigel_stats::mean::{Interval, Level, Spread, t_quantile};
use rigel_stats::robust;

/// Minimum number of rounds for an interval of the median; with fewer, their correlation cannot be
/// estimated.
pub const ROUNDS_MIN: usize = 40;

/// Name of operations per second, in runs of any tool.
const THROUGHPUT: &str = "throughput";

/// Figures of a run over time; empty for a run at loads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OverTime {
    /// Each quantity, round by round.
    pub courses: Vec<Course>,
    /// The figures over all rounds.
    pub figures: Vec<FigureOverTime>,
}

/// The values of a quantity, round by round.
#[derive(Debug, Clone, PartialEq)]
pub struct Course {
    /// Name: `throughput`, `p50`, `p99` or `max`, whatever a tool calls them, or the tool's own
    /// name.
    pub name: String,
    /// Unit of the values.
    pub unit: Unit,
    /// Seconds since the first value's round, and the value, of each round that has one; ascending
    /// by time.
    pub values: Vec<(f64, f64)>,
}

/// A figure over all rounds.
#[derive(Debug, Clone, PartialEq)]
pub struct FigureOverTime {
    /// Name, such as `median p99`.
    pub name: String,
    /// Unit of the figure.
    pub unit: Unit,
    /// True if the verdict uses it.
    pub headline: bool,
    /// The figure.
    pub figure: Estimate,
}

impl OverTime {
    /// The figures of a series of rounds, ascending by time, and of its analysis.
    pub fn of_rounds(rounds: &[Round], found: &Predictability) -> Self {
        let mut made = Self::default();
        made.add(
            THROUGHPUT,
            Unit::PerSecond,
            &values(rounds, |round| round.rate),
        );
        for figure in LatencyFigure::shown_in(ShownIn::Charts) {
            let times = values(rounds, |round| round.latency.get(figure));
            made.add(figure.label(), Unit::Microseconds, &times);
        }
        for result in &found.objectives {
            let share = result.share_kept.map(Estimate::from);
            made.show(format!("{} met for", result.objective), Unit::Share, share);
        }
        if found.rate.is_some() {
            // If the rate changed too often to separate the changes, they are not counted.
            let is_told = !found.changed_too_often.contains(&Quantity::Rate);
            let count = |many: usize| is_told.then(|| Estimate::from(many as f64));
            made.show(
                "changes of level".into(),
                Unit::Count,
                count(found.changes.len()),
            );
            made.show("slowdowns".into(), Unit::Count, count(found.episodes.len()));
        }
        made
    }

    /// The figures of imported series. Of two with the same name, the first counts.
    pub fn of_imported(all: &[Imported]) -> Self {
        let series = all.iter().flat_map(|one| match &one.figures {
            Figures::Series(series) => series.as_slice(),
            Figures::Loads(_) | Figures::Database(_) | Figures::Claims(_) => &[],
        });
        let series: Vec<&ImportedSeries> = series.collect();
        let mut made = Self::default();
        for one in &series {
            let named = quantity(one, series.len() == 1);
            if made.courses.iter().any(|course| course.name == named.name) {
                continue;
            }
            let mut rounds = imported::rounds(one);
            rounds.sort_by_key(|round| round.begin);
            if named.name == THROUGHPUT {
                let result = predictability(&rounds, &PredictabilityTerms::default());
                let Self { courses, figures } = Self::of_rounds(&rounds, &result);
                made.courses.extend(courses);
                made.figures.extend(figures);
            } else {
                let values = values(&rounds, |round| Some(round.rate? * named.scale));
                made.add(&named.name, named.unit, &values);
            }
        }
        made
    }

    /// The figure of this name and unit.
    pub fn figure(&self, name: &str, unit: Unit) -> Option<Estimate> {
        let same = |one: &&FigureOverTime| one.name == name && one.unit == unit;
        self.figures.iter().find(same).map(|one| one.figure)
    }

    /// Number of rounds, or samples of the longest series; `None` for a run at loads.
    pub fn rounds(&self) -> Option<usize> {
        self.courses.iter().map(|course| course.values.len()).max()
    }

    /// Adds a quantity with its figures, if it has values. The verdict does not use a round's maximum response time,
    /// which is one value of many, nor values of which it is unknown whether more is better.
    fn add(&mut self, name: &str, unit: Unit, known: &[(&Round, f64)]) {
        let Some((figures, (first, _))) = series_figures(known).zip(known.first()) else {
            return;
        };
        let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
        let interval = median_interval(&values).filter(|_| unit != Unit::Other);
        self.figures.push(FigureOverTime {
            name: format!("median {name}"),
            unit,
            headline: unit != Unit::Other && name != "max",
            figure: match interval {
                Some((interval, degrees)) => {
                    Estimate::new(figures.median, Some(interval.into())).with_degrees(degrees)
                }
                None => figures.median.into(),
            },
        });
        let hour = match name {
            THROUGHPUT => figures.least_hour,
            "p99" => figures.greatest_hour,
            _ => None,
        };
        self.show(
            format!("worst hour of {name}"),
            unit,
            hour.map(|hour| Estimate::from(hour.value)),
        );
        if name == THROUGHPUT {
            self.show(
                "throughput varies by".into(),
                Unit::Share,
                figures.variation.map(Estimate::from),
            );
        }
        let since = |round: &Round| round.begin.since(first.begin) as f64;
        let values = known
            .iter()
            .map(|(round, value)| (since(round), *value))
            .collect();
        self.courses.push(Course {
            name: name.into(),
            unit,
            values,
        });
    }

    /// Adds a figure that is not judged, if it is known.
    fn show(&mut self, name: String, unit: Unit, figure: Option<Estimate>) {
        self.figures.extend(figure.map(|figure| FigureOverTime {
            name,
            unit,
            headline: false,
            figure,
        }));
    }
}

/// The rounds that count and have a value, with that value.
fn values(rounds: &[Round], of: impl Fn(&Round) -> Option<f64>) -> Vec<(&Round, f64)> {
    let counting = rounds
        .iter()
        .filter(|round| known(round.counted_rate()).is_some());
    counting
        .filter_map(|round| Some((round, known(of(round))?)))
        .collect()
}

/// A tool's series in our terms.
struct NamedQuantity {
    name: String,
    unit: Unit,
    /// Factor from the tool's unit to `unit`.
    scale: f64,
}

/// Our name and unit for a series. A rate that is the only series, or that has a name soaks use, is
/// compared with soaks; all others with series of the same name.
fn quantity(series: &ImportedSeries, alone: bool) -> NamedQuantity {
    let quantity = |name: &str, unit, scale| NamedQuantity {
        name: name.into(),
        unit,
        scale,
    };
    let (name, unit) = (series.name.to_lowercase(), series.unit.as_str());
    let scale = |unit| match unit {
        "ns" => Some(1e-3),
        "us" | "µs" => Some(1.0),
        "ms" => Some(1e3),
        "s" => Some(1e6),
        _ => None,
    };
    // The name `p99_us` contains its unit.
    let (stem, suffix) = name
        .rsplit_once('_')
        .filter(|(_, end)| scale(end).is_some())
        .unwrap_or((&name, ""));
    if let Some(scale) = scale(if unit.is_empty() { suffix } else { unit }) {
        let is_known = LatencyFigure::shown_in(ShownIn::Charts).any(|one| one.label() == stem);
        return quantity(
            if is_known { stem } else { &series.name },
            Unit::Microseconds,
            scale,
        );
    }
    let is_counted = series.samples.iter().all(|sample| sample.value.is_none());
    let is_named = ["iops", "rate", THROUGHPUT].contains(&name.as_str());
    if unit == "/s" || is_counted || is_named && unit.is_empty() {
        return quantity(
            if alone || is_named {
                THROUGHPUT
            } else {
                &series.name
            },
            Unit::PerSecond,
            1.0,
        );
    }
    let named = if name.contains(&unit.to_lowercase()) {
        series.name.clone()
    } else {
        format!("{}, {unit}", series.name)
    };
    quantity(
        &named,
        if unit.ends_with("/s") {
            Unit::PerSecond
        } else {
            Unit::Other
        },
        1.0,
    )
}

/// The 95 % confidence interval of the median, and its degrees of freedom.
///
/// The fraction of rounds below the median is a mean of ones and zeros, and its error is estimated
/// from batches of neighbouring rounds. The quantiles of the rounds at both limits of that
/// fraction's interval are the limits of the median. They extend to the outer edges of the values'
/// rounding: a histogram's bucket, or a tool's last digit.
fn median_interval(values: &[f64]) -> Option<(Interval, f64)> {
    if values.len() < ROUNDS_MIN {
        return None;
    }
    let middle = robust::median(values)?;
    let part = |value: &f64| {
        let side = value.total_cmp(&middle);
        [f64::from(side.is_lt()), f64::from(side.is_eq()), 1.0]
    };
    let parts: Vec<[f64; 3]> = values.iter().map(part).collect();
    let Spread { error, degrees } = error_of_share(&parts, 0.5, Level::ONE_LOOK.batch)?;
    let half = t_quantile(degrees) * error;
    // The rounds differ so much that the interval would extend from the minimum to the maximum.
    if half >= 0.5 {
        return None;
    }
    let (low, high) = (
        robust::quantile(values, 0.5 - half)?,
        robust::quantile(values, 0.5 + half)?,
    );
    let rounding = least_step(values) / 2.0;
    Some((
        Interval {
            low: low - rounding,
            high: high + rounding,
        },
        degrees,
    ))
}

/// The minimum distance between two different values. It is the rounding step if values are rounded
/// coarsely, else close to zero. 0 if all are equal.
fn least_step(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let steps = sorted
        .windows(2)
        .map(|two| two[1] - two[0])
        .filter(|step| *step > 0.0);
    steps.reduce(f64::min).unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Moment;
    use rigel_model::record::imported::Counted;

    fn series(name: &str, unit: &str) -> ImportedSeries {
        let begin: Moment = "2026-03-02T00:00:00+00:00".parse().unwrap();
        let sample = |at: i64| Counted {
            begin: begin.plus_seconds(60 * at),
            seconds: Some(60.0),
            value: Some(2.0 + (at % 7) as f64 / 10.0),
            count: None,
        };
        ImportedSeries {
            name: name.into(),
            unit: unit.into(),
            samples: (0..40).map(sample).collect(),
            ..ImportedSeries::default()
        }
    }

    fn imported(series: Vec<ImportedSeries>) -> Imported {
        Imported {
            sources: vec!["x.csv".into()],
            tool: "csv".into(),
            version: None,
            reported: Vec::new(),
            notes: Vec::new(),
            figures: Figures::Series(series),
        }
    }

    #[test]
    fn imported_quantities_have_the_same_names_as_those_of_a_soak() {
        for (name, unit, known) in [
            ("iops", "", (THROUGHPUT, Unit::PerSecond, 1.0)),
            ("Rate", "/s", (THROUGHPUT, Unit::PerSecond, 1.0)),
            ("p99_us", "", ("p99", Unit::Microseconds, 1.0)),
            ("p99_ms", "ms", ("p99", Unit::Microseconds, 1e3)),
            ("P50", "ms", ("p50", Unit::Microseconds, 1e3)),
            (
                "sda r_await",
                "ms",
                ("sda r_await", Unit::Microseconds, 1e3),
            ),
            ("sda rkB/s", "kB/s", ("sda rkB/s", Unit::PerSecond, 1.0)),
            ("moved", "MB/s", ("moved, MB/s", Unit::PerSecond, 1.0)),
            ("sda r/s", "/s", ("sda r/s", Unit::PerSecond, 1.0)),
            ("sda %util", "%", ("sda %util", Unit::Other, 1.0)),
            ("sessions", "", ("sessions", Unit::Other, 1.0)),
        ] {
            let reported = quantity(&series(name, unit), false);
            assert_eq!(
                (reported.name.as_str(), reported.unit, reported.scale),
                known,
                "{name} {unit}"
            );
        }
        assert_eq!(
            quantity(&series("physical_reads_per_second", "/s"), true).name,
            THROUGHPUT
        );
    }

    #[test]
    fn quantities_without_a_direction_are_not_judged() {
        let all = [imported(vec![
            series("sda r_await", "ms"),
            series("sda %util", "%"),
            series("sda r_await", "ms"),
        ])];
        let found = OverTime::of_imported(&all);
        let headlines: Vec<(&str, bool)> = found
            .figures
            .iter()
            .map(|it| (it.name.as_str(), it.headline))
            .collect();
        assert_eq!(
            headlines,
            [("median sda r_await", true), ("median sda %util", false)]
        );
        assert!(
            !found
                .figure("median sda %util", Unit::Other)
                .unwrap()
                .is_known()
        );
        let wait = found
            .figure("median sda r_await", Unit::Microseconds)
            .unwrap();
        assert!(
            (wait.value - 2300.0).abs() < 1e-9 && wait.is_known(),
            "{wait:?}"
        );
        assert_eq!(
            (found.rounds(), found.courses[0].values[1].0),
            (Some(40), 60.0)
        );
    }

    #[test]
    fn a_median_of_few_rounds_has_no_interval() {
        let values: Vec<f64> = (0..ROUNDS_MIN)
            .map(|at| 100.0 + (at * 7 % 20) as f64)
            .collect();
        let (interval, _) = median_interval(&values).unwrap();
        assert!(
            interval.contains(109.5) && interval.low > 100.0 && interval.high < 119.0,
            "{interval:?}"
        );
        assert_eq!(median_interval(&values[1..]), None);
        // On a slope, every round is like the one before it.
        let slope: Vec<f64> = (0..40).map(f64::from).collect();
        assert_eq!(median_interval(&slope), None);
        assert_eq!(
            median_interval(&[7.0; ROUNDS_MIN]).unwrap().0,
            Interval {
                low: 7.0,
                high: 7.0
            }
        );
    }

    #[test]
    fn a_rounded_value_is_known_only_to_its_last_digit() {
        let rounded = |at: usize| if at.is_multiple_of(9) { 0.41 } else { 0.40 };
        let (interval, _) = median_interval(&(0..60).map(rounded).collect::<Vec<f64>>()).unwrap();
        assert!(
            (interval.low - 0.395).abs() < 1e-9 && (interval.high - 0.405).abs() < 1e-9,
            "{interval:?}"
        );
    }
}
