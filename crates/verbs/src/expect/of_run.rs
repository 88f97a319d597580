//! What is expected of a run that another verb measured, or that was imported.
//!
//! Input: the run and expectations. Output: a line for each, by the intervals of the figures that the run's
//! own report shows, at the error of the whole list. Nobody stopped such a run because of these lines, so one
//! look is all there is.

use super::plan::STALLS_SEEN_LEAST;
use super::result::{ExpectResult, ExpectedLine, not_served, unit_of};
use rigel_analyse::compare::subject::Maxima;
use rigel_analyse::figures::latency::LatencyFigure;
use rigel_analyse::plan::visits::time_used;
use rigel_analyse::search::sustained::judge_together;
use rigel_analyse::{
    BoundVerdict, ClassSummary, Criteria, Estimate, ExpectedLimit, ExpectedVerdict, Limits,
    PointSummary, RateMet, summaries, summarise_judged, widen_at,
};
use rigel_model::record::PointRecord;
use rigel_model::record::journal::Run;
use rigel_model::{Coordinates, Expectation, ExpectedOf, Finding, Measure, Ratio};

/// Probability of a wrong answer in the whole list, in percent.
const ERROR_PERCENT: u64 = 1;

/// What a run shows.
#[derive(Default)]
pub struct RunEvidence<'a> {
    /// The records of all loads, of each the visits joined.
    pub records: &'a [PointRecord],
    /// Points that were imported.
    pub imported: Vec<PointSummary>,
    /// The maxima that all loads together tell.
    pub maxima: Maxima,
    /// What was found before the first point.
    pub before: &'a [Finding],
}

/// Whether a run keeps what is expected; `maxima` are those that all loads together tell.
pub fn expected_of(run: &Run, maxima: Maxima, expected: &[Expectation]) -> ExpectResult {
    let evidence = RunEvidence {
        records: &run.joined(),
        imported: summaries(&run.imported),
        maxima,
        before: &run.header.findings,
    };
    expected_by(evidence, expected)
}

/// The same, by what it shows.
pub fn expected_by(evidence: RunEvidence, expectations: &[Expectation]) -> ExpectResult {
    let records = evidence.records;
    let pooled = |one: &Expectation| match one.of {
        ExpectedOf::Reads if one.is_at_best() => evidence.maxima.iops,
        ExpectedOf::Throughput if one.is_at_best() => evidence.maxima.mb_per_s,
        _ => None,
    };
    let looks_at = |one: &Expectation| {
        let here = records.iter().filter(|record| one.is_of(load_of(record)));
        if pooled(one).is_some() {
            1
        } else {
            here.count().max(1)
        }
    };
    let looks: usize = expectations.iter().map(looks_at).sum();
    let error = Ratio::of(ERROR_PERCENT, 100);
    let by = Criteria {
        error: error.get() / looks.max(1) as f64,
        ..Criteria::from(None)
    };
    let measured = records.iter().map(|record| summarise_judged(record, &by));
    let mut points: Vec<PointSummary> = measured.collect();
    widen_at(&mut points, by.error);
    judge_together(&mut points);
    for (point, record) in points.iter_mut().zip(records) {
        point.coordinates = load_of(record);
    }
    points.extend(evidence.imported);
    let lines: Vec<ExpectedLine> = expectations
        .iter()
        .map(|one| {
            let line = line(*one, &points);
            let line = match pooled(one) {
                Some(maximum) => line.by(maximum.at(by.error)),
                None => line,
            };
            line.unless_host_limits(&points, evidence.before)
        })
        .collect();
    ExpectResult {
        outcome: BoundVerdict::all_of(lines.iter().map(|line| line.outcome)),
        error,
        is_sequential: false,
        lines,
        points: Vec::new(),
        findings: Vec::new(),
    }
}

/// The load of a record: writers of a log's own file, which a curve knows by their number, are commits to it.
fn load_of(record: &PointRecord) -> Coordinates {
    let asked = record
        .asked
        .as_ref()
        .and_then(|asked| asked.streams.first());
    let log = asked.and_then(|stream| Some((stream.log?, stream.length)));
    match (record.coordinates, log) {
        (Coordinates::Depth { depth, .. }, Some((log, bytes))) => Coordinates::Log {
            bytes,
            log: Some(log),
            writers: depth,
        },
        (other, _) => other,
    }
}

impl ExpectedLine {
    /// The same, decided by a figure of all its loads together.
    fn by(self, figure: Estimate) -> Self {
        let limit = ExpectedLimit::from(&self.condition);
        let times = limit.times_to_decide(figure);
        Self {
            outcome: limit.verdict(figure),
            load: String::new(),
            figure: Some(figure),
            more_s: times.map(|times| (times - 1.0) * self.measured_s),
            why: String::new(),
            ..self
        }
    }
}

/// An expectation at one load.
struct AtPoint<'a> {
    point: &'a PointSummary,
    class: &'a ClassSummary,
    found: ExpectedVerdict,
}

fn line(condition: Expectation, points: &[PointSummary]) -> ExpectedLine {
    let here = points
        .iter()
        .filter(|point| condition.is_of(point.coordinates));
    let here: Vec<AtPoint> = here
        .filter_map(|point| {
            let class = point.classes.iter().find(|class| class.done > 0)?;
            Some(AtPoint::of(&condition, point, class))
        })
        .collect();
    let verdicts = here.iter().map(|at| at.found.verdict);
    let is_at_best = condition.is_at_best();
    // Of rates the one that is certainly greatest, of times the longest.
    let value = |at: &AtPoint| {
        let figure = at.found.figure.map(|figure| {
            if is_at_best {
                figure.least()
            } else {
                figure.value
            }
        });
        figure.unwrap_or(0.0)
    };
    let outcome = if is_at_best {
        BoundVerdict::any_of(verdicts)
    } else {
        BoundVerdict::all_of(verdicts)
    };
    let has_outcome = |at: &&AtPoint| at.found.verdict == outcome;
    let by_value = |one: &&AtPoint, other: &&AtPoint| value(one).total_cmp(&value(other));
    let deciding = here.iter().filter(has_outcome).max_by(by_value);
    let measured_s: f64 = here.iter().map(|at| at.point.measured_s).sum();
    let mut line = ExpectedLine {
        outcome,
        condition,
        load: match (&here[..], deciding) {
            ([], _) | (_, None) => String::new(),
            ([one], _) => one.point.coordinates.to_string(),
            (_, Some(best)) if is_at_best => best.point.coordinates.to_string(),
            _ => String::new(),
        },
        figure: deciding.and_then(|at| at.found.figure),
        unit: unit_of(&condition),
        operations: here.iter().map(|at| at.class.done).sum(),
        measured_s,
        more_s: deciding.and_then(|at| Some((at.found.times? - 1.0) * at.point.measured_s)),
        why: String::new(),
    };
    let Some(deciding) = deciding else {
        line.outcome = BoundVerdict::NotMeasured;
        line.why = format!(
            "no operation of this run had this load; rigel expect '{condition}' TARGET measures it"
        );
        return line;
    };
    let is_longest = matches!(condition.limit.0, Measure::Max(_));
    let interval = deciding.found.figure.map(|figure| figure.interval);
    if interval.is_none() {
        line.outcome = BoundVerdict::NotMeasured;
        line.why = "this run has no such figure".into();
    } else if deciding.class.reported.is_some() && line.outcome == BoundVerdict::Undecided {
        line.why = "another tool reports it, and no interval".into();
    } else if is_test(deciding.point, deciding.class) {
        line.why = "by the figure of the test alone, which has no interval".into();
    } else if line.outcome == BoundVerdict::Broken && !is_longest {
        line.why = not_served(deciding.point).unwrap_or_default();
    } else if is_longest {
        let all: Vec<PointSummary> = here.iter().map(|at| at.point.clone()).collect();
        line = line.unless_too_short(STALLS_SEEN_LEAST.as_secs_f64() - time_used(&all));
    }
    line
}

impl<'a> AtPoint<'a> {
    fn of(condition: &Expectation, point: &'a PointSummary, class: &'a ClassSummary) -> Self {
        let (figure, limit) = (figure(condition, class), ExpectedLimit::from(condition));
        let is_test = is_test(point, class);
        let verdict = match (figure, condition.limit.0) {
            (None, _) => BoundVerdict::NotMeasured,
            (Some(figure), _) if is_test => limit.verdict(as_exact(figure)),
            // The longest operation has no interval: what was measured decides.
            (Some(longest), Measure::Max(limit)) if longest.value > limit.as_micros_f64() => {
                BoundVerdict::Broken
            }
            (Some(_), Measure::Max(_)) => BoundVerdict::Kept,
            (Some(figure), _) => served(limit.verdict(figure), class),
        };
        let undecided = figure.filter(|_| verdict == BoundVerdict::Undecided);
        let found = ExpectedVerdict {
            index: 0,
            verdict,
            figure,
            calm: None,
            times: undecided.and_then(|figure| limit.times_to_decide(figure)),
        };
        Self {
            point,
            class,
            found,
        }
    }
}

/// True for another tool's test of a log, which is passed or failed by the figure that it reports, as those who
/// recommend it say.
fn is_test(point: &PointSummary, class: &ClassSummary) -> bool {
    class.reported.is_some() && matches!(point.coordinates, Coordinates::Log { .. })
}

/// A figure that is taken as it is.
fn as_exact(figure: Estimate) -> Estimate {
    let interval = Some(Limits {
        low: figure.value,
        high: Some(figure.value),
    });
    Estimate { interval, ..figure }
}

/// The figure that a condition is about, in the unit of its limit.
fn figure(condition: &Expectation, class: &ClassSummary) -> Option<Estimate> {
    let figure = match condition.limit.0 {
        Measure::Rate(_) if condition.of == ExpectedOf::Throughput => {
            return Some(class.rate().scaled(f64::from(class.io_bytes) / 1e6));
        }
        Measure::Rate(_) => return Some(class.rate()),
        Measure::Mean(_) => LatencyFigure::Mean,
        Measure::Max(_) if class.met == Some(RateMet::No) => {
            return class.longest_us().map(Estimate::from);
        }
        Measure::Max(_) => LatencyFigure::Max,
        Measure::Quantile(quantile, _) => {
            let known = [
                (0.5, LatencyFigure::P50),
                (0.99, LatencyFigure::P99),
                (0.999, LatencyFigure::P999),
            ];
            let same = |q: f64| (q - quantile).abs() < 1e-9;
            known.into_iter().find(|(q, _)| same(*q))?.1
        }
    };
    class.time(figure)
}

/// No response time keeps anything at a rate that is not served, or where operations failed.
fn served(found: BoundVerdict, class: &ClassSummary) -> BoundVerdict {
    let is_known = class.met != Some(RateMet::Undecided);
    match found {
        _ if class.met == Some(RateMet::No) => BoundVerdict::Broken,
        BoundVerdict::Kept if !is_known || !class.failed.is_empty() || class.unserved > 0 => {
            BoundVerdict::Undecided
        }
        found => found,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expect::conclusion::{figure, more};
    use rigel_analyse::examples::sessions;

    fn answers(evidence: RunEvidence, expected: &[&str]) -> Vec<(BoundVerdict, String, String)> {
        let expected = expected.iter().map(|one| one.parse().unwrap());
        let found = expected_by(evidence, &expected.collect::<Vec<_>>());
        let lines = found.lines.iter();
        lines
            .map(|line| (line.outcome, figure(line), more(line)))
            .collect()
    }

    #[test]
    fn what_a_run_does_not_have_is_not_measured_and_a_stall_not_excluded_within_seconds() {
        let mut record = sessions(Ratio::ZERO);
        record.coordinates = Coordinates::at_depth(4);
        let evidence = RunEvidence {
            records: std::slice::from_ref(&record),
            ..RunEvidence::default()
        };
        let found = answers(
            evidence,
            &[
                "iops>=1@depth:8",
                "p95<1s@depth:4",
                "no stall>1h",
                "no stall>1us",
            ],
        );
        let outcomes: Vec<BoundVerdict> = found.iter().map(|line| line.0).collect();
        let (unknown, open) = (BoundVerdict::NotMeasured, BoundVerdict::Undecided);
        assert_eq!(
            outcomes,
            [unknown, unknown, open, BoundVerdict::Broken],
            "{found:?}"
        );
    }

    #[test]
    fn a_test_of_a_log_is_decided_by_its_own_p99() {
        let text = include_str!("../../../../tests/imports/fio_fdatasync.json");
        let of = |text: &str| {
            let sources = [rigel_import::Source { name: "f", text }];
            let columns = rigel_import::csv_columns::Columns::default();
            let all = rigel_import::read(&sources, None, &columns).unwrap();
            let evidence = RunEvidence {
                imported: rigel_analyse::summaries(&all),
                ..RunEvidence::default()
            };
            let expected = ["log p99<10ms@sized:2300", "log p99<20ms@sized:2300"];
            let found = answers(evidence, &expected);
            found.into_iter().map(|line| line.0).collect::<Vec<_>>()
        };
        assert_eq!(of(text), [BoundVerdict::Broken, BoundVerdict::Kept]);
        // A file that is overwritten is no new one.
        let reused = text.replace("\"bs\"", "\"overwrite\":\"1\",\"bs\"");
        assert_eq!(of(&reused), [BoundVerdict::NotMeasured; 2]);
    }

    #[test]
    fn a_figure_of_another_tool_without_interval_decides_nothing() {
        let mut point = rigel_analyse::summarise(&sessions(Ratio::ZERO));
        point.coordinates = Coordinates::at_depth(4);
        for class in &mut point.classes {
            class.confidence = None;
            class.reported = Some(rigel_analyse::ReportedFigures {
                bytes_per_s: None,
                latency: rigel_analyse::LatencySummary::default(),
            });
        }
        let evidence = RunEvidence {
            imported: vec![point],
            ..RunEvidence::default()
        };
        let found = answers(evidence, &["iops>=1"]);
        assert_eq!(
            (found[0].0, found[0].2.as_str()),
            (BoundVerdict::Undecided, "no interval")
        );
    }

    #[test]
    fn a_maximum_of_all_loads_decides_about_a_rate_without_a_load() {
        let evidence = RunEvidence {
            maxima: Maxima {
                iops: Some(Estimate::new(
                    1000.0,
                    Some(rigel_analyse::Limits {
                        low: 990.0,
                        high: Some(1010.0),
                    }),
                )),
                mb_per_s: None,
            },
            ..RunEvidence::default()
        };
        let found = answers(evidence, &["iops>=900", "iops>=1000", "iops>=1100"]);
        let outcomes: Vec<BoundVerdict> = found.iter().map(|line| line.0).collect();
        let expected = [
            BoundVerdict::Kept,
            BoundVerdict::Undecided,
            BoundVerdict::Broken,
        ];
        assert_eq!(outcomes, expected, "{found:?}");
    }
}
