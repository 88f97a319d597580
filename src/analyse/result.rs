//! What a run found, whichever verb made it.
//!
//! Goes in: a journal that was read. Comes out: a [`RunResult`]. Reports in every form are made of it and of nothing
//! else, so that they cannot say different things.

use super::calibration::{Calibration, calibration};
use super::curve::{CurveResult, curve};
use super::imported::{ImportedSummary, LoadFigures, imported, rounds};
use super::layers::{LayersResult, layers};
use super::matrix::MatrixResult;
use super::predictability::{PredictabilityTerms, order, predictability};
use super::soak::{SoakReader, SoakResult};
use super::summary::PointSummary;
use crate::model::{Finding, Request};
use crate::record::End;
use crate::record::imported::{Figures, Imported};
use crate::record::journal::Run;

/// Share by which outstanding operations may differ from Little's law before it is worth a word. fio's means leave out
/// what goes on between the end of one operation and the beginning of the next.
const LITTLE_TOLERANCE: f64 = 0.15;

/// What a run found, by the verb that made it.
#[derive(Debug, Clone, PartialEq)]
pub enum RunResult {
    /// Of `rigel orion`.
    Matrix(MatrixResult),
    /// Of `rigel calibrate`.
    Calibration(Box<Calibration>),
    /// Of `rigel curve` and `rigel sql run`.
    Curve(Box<CurveResult>),
    /// Of `rigel layers`.
    Layers(LayersResult),
    /// Of `rigel soak`.
    Soak(Box<SoakResult>),
    /// Of `rigel import`.
    Imported(Box<ImportedResult>),
}

/// What other tools measured.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedResult {
    /// One for each source, in the order it was read.
    pub sources: Vec<ImportedSummary>,
    /// What one series of a throughput says of days, as the rounds of a soak do.
    pub series: Option<SoakResult>,
    /// Findings of the figures as a whole.
    pub findings: Vec<Finding>,
}

impl RunResult {
    /// What `run` found. `is_more_planned` tells from the points that were measured whether a search is incomplete.
    #[must_use]
    pub fn of(run: &Run, is_more_planned: &dyn Fn(&[PointSummary]) -> bool) -> Self {
        let records = run.latest();
        match run.header.request() {
            Request::Orion(_) => Self::Matrix(MatrixResult::of(&records)),
            Request::Calibrate(request) => {
                let mut found = calibration(&records, request.bound, request.precision);
                let ended = records.iter().all(|record| record.end == End::Complete);
                if !ended || is_more_planned(&found.points) {
                    found.findings.insert(0, incomplete());
                }
                Self::Calibration(Box::new(found))
            }
            Request::Curve(request) | Request::Sql(request) => {
                Self::Curve(Box::new(curve(&records, request.bound, request.precision)))
            }
            Request::Layers(_) => Self::Layers(layers(&records, run.header.host.cpus)),
            Request::Soak(request) => {
                let mut reader = SoakReader::new(&request.objectives);
                records.iter().for_each(|record| reader.add(record));
                Self::Soak(Box::new(reader.result(request)))
            }
            Request::Import(_) => Self::Imported(Box::new(ImportedResult::of(&run.imported))),
        }
    }

    /// The points that were measured, in order; empty where there are rounds, or figures of another tool.
    #[must_use]
    pub fn points(&self) -> &[PointSummary] {
        match self {
            Self::Matrix(found) => &found.points,
            Self::Calibration(found) => &found.points,
            Self::Curve(found) => &found.points,
            Self::Layers(found) => &found.points,
            Self::Soak(_) | Self::Imported(_) => &[],
        }
    }

    /// Findings of the run as a whole.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Matrix(found) => &found.findings,
            Self::Calibration(found) => &found.findings,
            Self::Curve(found) => &found.findings,
            Self::Layers(found) => &found.findings,
            Self::Soak(found) => &found.findings,
            Self::Imported(found) => &found.findings,
        }
    }

    /// All findings: `before`, those of the run as a whole, and those of its points.
    pub fn all_findings<'a>(&'a self, before: &'a [Finding]) -> impl Iterator<Item = &'a Finding> {
        let of_points = self.points().iter().flat_map(|point| &point.findings);
        before.iter().chain(self.findings()).chain(of_points)
    }
}

impl ImportedResult {
    fn of(all: &[Imported]) -> Self {
        let sources: Vec<ImportedSummary> = all.iter().map(imported).collect();
        let series = one_series(all);
        let of_series = series.iter().flat_map(|series| series.findings.clone());
        let findings = sources.iter().flat_map(warnings_of_loads).chain(of_series).collect();
        Self { sources, series, findings }
    }

    /// The load with the maximum rate, and its place in the JSON report.
    #[must_use]
    pub fn best(&self) -> Option<(String, &LoadFigures)> {
        let places = self.sources.iter().enumerate().flat_map(|(file, source)| {
            let place = move |at| format!("imported.{file}.loads.{at}");
            source.loads.iter().enumerate().map(move |(at, load)| (place(at), load))
        });
        let with_rate = places.filter_map(|(place, load)| Some((load.iops?, place, load)));
        with_rate.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, place, load)| (place, load))
    }
}

fn incomplete() -> Finding {
    Finding::warning(
        "incomplete",
        "the run ended before it was through: figures are of what was measured until then, and more may be to come",
        "resume it by `rigel calibrate --resume` and its directory",
    )
}

/// Of a run that is one series of a throughput and nothing else: what that says of days, as a soak's rounds would. None
/// of a latency or a share, for which less may be better.
fn one_series(all: &[Imported]) -> Option<SoakResult> {
    let [Imported { figures: Figures::Series(all), .. }] = all else { return None };
    let [series] = all.as_slice() else { return None };
    let is_counted = || series.samples.iter().all(|sample| sample.value.is_none());
    if !series.unit.ends_with("/s") && !is_counted() {
        return None;
    }
    let mut rounds = rounds(series);
    let findings = order(&mut rounds).into_iter().collect();
    let found = predictability(&rounds, &PredictabilityTerms::default());
    (rounds.len() > 1).then_some(SoakResult { rounds, found, findings })
}

/// Loads of which Little's law says that fewer or more operations were outstanding than the tool was asked for.
fn warnings_of_loads(found: &ImportedSummary) -> Vec<Finding> {
    let mut warnings = Vec::new();
    for one in &found.loads {
        let (Some(little), Some(outstanding)) = (one.littles_law, one.outstanding) else { continue };
        let is_part = found
            .loads
            .iter()
            .any(|other| other.label == one.label && other.kind != one.kind && other.class == one.class);
        if outstanding == 0 || is_part && one.kind != "mixed" {
            continue;
        }
        let share = little / f64::from(outstanding);
        if (share - 1.0).abs() > LITTLE_TOLERANCE {
            warnings.push(Finding::warning(
                "littles-law",
                format!(
                    "{}: {outstanding} were to be outstanding, and by Little's law {little:.2} were on average: the \
                     load was not what its name says",
                    one.label
                ),
                "compare this load by the number that was outstanding on average",
            ));
        }
    }
    warnings
}
