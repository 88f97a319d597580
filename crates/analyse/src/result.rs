//! The results of a run, for any verb.
//!
//! Input: a journal that was read. Output: a [`RunResult`]. Reports in every form are made from it
//! alone, so that they cannot contradict each other.

use super::demand::{DatabaseResult, WatchReader, WatchResult, database, load_points};
use super::figures::confidence::BoundVerdict;
use super::point::summary::PointSummary;
use super::ranks::ranks;
use super::reported_knee::{ReportedKnee, reported_knee};
use super::search::calibration::{Calibration, calibration};
use super::search::curve::{CurveResult, curve};
use super::search::fit::{FitResult, fit};
use super::search::layers::{LayersResult, layers};
use super::search::matrix::MatrixResult;
use super::search::unseen::unseen;
use super::series::imported::{ImportedSummary, LoadFigures, imported};
use super::series::soak::{SoakReader, SoakResult};
use crate::request::Request;
use crate::request::Run;
use rigel_model::record::imported::{ClaimedCalibration, Figures, Imported};
use rigel_model::record::{End, StallChange};
use rigel_model::{Finding, FindingName};

/// Allowed relative deviation of outstanding operations from Little's law. fio's means leave out
/// the time between the end of one operation and the start of the next.
const LITTLE_TOLERANCE: f64 = 0.15;

/// The results of a run, by verb.
#[derive(Debug, Clone, PartialEq)]
pub enum RunResult {
    /// Results of `rigel orion`.
    Matrix(MatrixResult),
    /// Results of `rigel calibrate`.
    Calibration(Box<Calibration>),
    /// Results of `rigel curve` and `rigel sql run`.
    Curve(Box<CurveResult>),
    /// Results of `rigel layers`.
    Layers(LayersResult),
    /// Results of `rigel soak`.
    Soak(Box<SoakResult>),
    /// Results of `rigel fit`.
    Fit(Box<FitResult>),
    /// Results of `rigel watch`.
    Watch(Box<WatchResult>),
    /// Results of `rigel import`.
    Imported(Box<ImportedResult>),
}

/// Figures that other tools measured.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedResult {
    /// One summary for each source, in reading order.
    pub sources: Vec<ImportedSummary>,
    /// The analysis of a single throughput series, as for a soak's rounds.
    pub series: Option<SoakResult>,
    /// What reports of databases say, if some of the sources are such reports.
    pub database: Option<DatabaseResult>,
    /// The knee of the loads, if they are one curve.
    pub knee: Option<ReportedKnee>,
    /// What Oracle's own calibration claims.
    pub claims: Vec<ClaimedCalibration>,
    /// Findings about the figures as a whole.
    pub findings: Vec<Finding>,
}

impl RunResult {
    /// Evaluates `run`. `is_more_planned` decides from the measured points whether a search is
    /// incomplete.
    pub fn of(run: &Run, is_more_planned: &dyn Fn(&[PointSummary]) -> bool) -> Self {
        let mut result = Self::of_verb(run, is_more_planned);
        // A soak has its own findings about the hosts, over all rounds.
        let is_soak = matches!(result, Self::Soak(_));
        if let Some(found) = ranks(run).filter(|_| !is_soak) {
            result.add_findings(found.findings);
        }
        if let Some(ended) = ended_in_stall(run) {
            // The conclusion names the first warning.
            result.findings_mut().insert(0, ended);
        }
        result
    }

    /// Adds findings about the run as a whole.
    fn add_findings(&mut self, more: Vec<Finding>) {
        self.findings_mut().extend(more);
    }

    fn findings_mut(&mut self) -> &mut Vec<Finding> {
        match self {
            Self::Matrix(found) => &mut found.findings,
            Self::Calibration(found) => &mut found.findings,
            Self::Curve(found) => &mut found.findings,
            Self::Layers(found) => &mut found.findings,
            Self::Fit(found) => &mut found.findings,
            Self::Soak(found) => &mut found.findings,
            Self::Watch(found) => &mut found.findings,
            Self::Imported(found) => &mut found.findings,
        }
    }

    /// The results of the verb, where the sums of several ranks count like what one process measured.
    fn of_verb(run: &Run, is_more_planned: &dyn Fn(&[PointSummary]) -> bool) -> Self {
        let records = run.joined();
        match run.header.request() {
            Request::Orion(_) => Self::Matrix(MatrixResult::of(&records)),
            Request::Calibrate(request) => {
                let mut found = calibration(&records, request.bound, request.precision);
                let (suspected, others): (Vec<_>, Vec<_>) =
                    unseen(&run.header, &run.points, &found)
                        .into_iter()
                        .partition(|finding| {
                            finding.is(FindingName::CacheSuspected)
                                || finding.is(FindingName::Cache)
                        });
                // The conclusion names the first warning, and this one is about every figure.
                found.findings.splice(0..0, suspected);
                found.findings.extend(others);
                let ended = records.iter().all(|record| record.end == End::Complete);
                if !ended || is_more_planned(&found.points) {
                    found.findings.insert(0, incomplete("calibrate"));
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
                let parts = run.ranks.parts.iter();
                parts.for_each(|point| reader.add_parts(&point.parts));
                reader.end(run.header.ranks.as_deref(), &run.ranks);
                Self::Soak(Box::new(reader.result(request)))
            }
            Request::Fit(request) => {
                let mut found = fit(&records, &run.ranks, request);
                let ended = records.iter().all(|record| record.end == End::Complete);
                if !ended || is_more_planned(&found.points) {
                    found.findings.insert(0, incomplete("fit"));
                }
                Self::Fit(Box::new(found))
            }
            Request::Watch(request) => {
                let mut reader = WatchReader::default();
                run.watched.iter().for_each(|interval| reader.add(interval));
                Self::Watch(Box::new(reader.result(request)))
            }
            Request::Import(_) => Self::Imported(Box::new(ImportedResult::of(&run.imported))),
        }
    }

    /// The measured points, in order; empty for rounds and for figures of another tool.
    pub fn points(&self) -> &[PointSummary] {
        match self {
            Self::Matrix(found) => &found.points,
            Self::Calibration(found) => &found.points,
            Self::Curve(found) => &found.points,
            Self::Layers(found) => &found.points,
            Self::Fit(found) => &found.points,
            Self::Soak(_) | Self::Watch(_) | Self::Imported(_) => &[],
        }
    }

    /// Whether any load of a curve kept the latency bound; `None` if the curve had none, and for
    /// other runs.
    pub fn bound_verdict(&self) -> Option<BoundVerdict> {
        match self {
            Self::Curve(found) => found.bound_verdict(),
            _ => None,
        }
    }

    /// Findings about the run as a whole.
    pub fn findings(&self) -> &[Finding] {
        match self {
            Self::Matrix(found) => &found.findings,
            Self::Calibration(found) => &found.findings,
            Self::Curve(found) => &found.findings,
            Self::Layers(found) => &found.findings,
            Self::Fit(found) => &found.findings,
            Self::Soak(found) => &found.findings,
            Self::Watch(found) => &found.findings,
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
        let all = &with_loads(all);
        let sources: Vec<ImportedSummary> = all.iter().map(imported).collect();
        let series = one_series(all);
        let database = database(all);
        let of_series = series.iter().flat_map(|series| series.findings.clone());
        let findings = sources
            .iter()
            .filter(|source| !source.is_of_sessions())
            .flat_map(warnings_of_loads)
            .chain(of_series)
            .chain(database.iter().flat_map(|found| found.findings.clone()))
            .collect();
        let loads = sources.iter().flat_map(|one| &one.loads);
        // Of spools, loads are of reads, of updates and of both: a curve is of one of them.
        let kind = loads.clone().next().map(|load| &load.kind);
        let loads: Vec<&LoadFigures> = loads.filter(|load| Some(&load.kind) == kind).collect();
        let knee = reported_knee(&loads);
        let claims = all.iter().flat_map(|one| match &one.figures {
            Figures::Claims(claims) => claims.as_slice(),
            _ => &[],
        });
        Self {
            claims: claims.cloned().collect(),
            sources,
            series,
            database,
            knee,
            findings,
        }
    }

    /// The load with the maximum rate, and its path in the JSON report.
    pub fn best(&self) -> Option<(String, &LoadFigures)> {
        let places = self.sources.iter().enumerate().flat_map(|(file, source)| {
            let place = move |at| format!("imported.{file}.loads.{at}");
            source
                .loads
                .iter()
                .enumerate()
                .map(move |(at, load)| (place(at), load))
        });
        let with_rate = places.filter_map(|(place, load)| Some((load.iops?, place, load)));
        with_rate
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, place, load)| (place, load))
    }
}

/// The sources, with the loads of a scale-up series of a database's reports behind them.
pub(super) fn with_loads(all: &[Imported]) -> Vec<Imported> {
    let mut sources = all.to_vec();
    for one in all {
        let Figures::Database(reports) = &one.figures else {
            continue;
        };
        let points = load_points(reports);
        if !points.is_empty() {
            sources.push(Imported {
                told: Vec::new(),
                notes: Vec::new(),
                figures: Figures::Loads(points),
                ..one.clone()
            });
        }
    }
    sources
}

/// Warns of a run that ended while nothing completed; `None` if a resumed run measured more.
fn ended_in_stall(run: &Run) -> Option<Finding> {
    let last = run.stalls.last()?;
    // Both are wall-clock times in one format. What began later was measured by a resumed run.
    let is_measured = run
        .points
        .iter()
        .any(|point| point.end == End::Complete && point.started > last.noticed);
    if last.change != StallChange::Ended || is_measured {
        return None;
    }
    let host = last.host.iter().map(|host| format!(" on {host}"));
    let host: String = host.collect();
    Some(Finding::warning(
        FindingName::EndedInStall,
        format!(
            "the run ended at {}{host} while {}",
            last.coordinates, last.stalled
        ),
        "see the log of the kernel (dmesg) and of the device or server; then resume the run",
    ))
}

fn incomplete(verb: &str) -> Finding {
    Finding::warning(
        FindingName::Incomplete,
        "the run ended before it was complete: the figures cover only the part that was measured",
        format!("resume it with `rigel {verb} --resume DIR`, with its directory"),
    )
}

/// Analyses a run that is exactly one throughput series, as for a soak's rounds. `None` for a
/// latency or a fraction, where less may be better.
fn one_series(all: &[Imported]) -> Option<SoakResult> {
    let [
        Imported {
            figures: Figures::Series(all),
            ..
        },
    ] = all
    else {
        return None;
    };
    let [series] = all.as_slice() else {
        return None;
    };
    let is_counted = || series.samples.iter().all(|sample| sample.value.is_none());
    if !series.unit.ends_with("/s") && !is_counted() {
        return None;
    }
    SoakResult::of_imported(series)
}

/// Warns of loads where, by Little's law, the outstanding operations were fewer or more than
/// requested, and of times that no storage has.
fn warnings_of_loads(found: &ImportedSummary) -> Vec<Finding> {
    let mut warnings = Vec::new();
    for one in &found.loads {
        let is_part = found.loads.iter().any(|other| {
            (&other.label, &other.load, &other.class) == (&one.label, &one.load, &one.class)
                && other.kind != one.kind
        });
        warnings.extend(too_fast(one).filter(|_| !is_part || one.kind != "mixed"));
        let (Some(little), Some(outstanding)) = (one.littles_law, one.outstanding) else {
            continue;
        };
        if outstanding == 0 || is_part && one.kind != "mixed" {
            continue;
        }
        let share = little / f64::from(outstanding);
        if (share - 1.0).abs() > LITTLE_TOLERANCE {
            warnings.push(Finding::warning(
                FindingName::LittlesLaw,
                format!(
                    "{}, {}: {outstanding} should be outstanding, but by Little's law \
                     {little:.2} were on average: the load was not the one named",
                    one.label, one.load
                ),
                "compare this load by its average number of outstanding I/Os",
            ));
        }
    }
    warnings
}

/// Warns of operations of a load that took less than a microsecond.
fn too_fast(load: &LoadFigures) -> Option<Finding> {
    let below = load.below_1_us?;
    let of_all = load
        .done
        .map_or_else(String::new, |done| format!(" of {done}"));
    Some(Finding::warning(
        FindingName::FiguresImpossible,
        format!(
            "{}, {}: {below}{of_all} {}s took less than 1 µs, and no storage answers in less than \
             1 µs: a cache did, or the clock was wrong",
            load.label, load.load, load.kind
        ),
        "measure with direct I/O, on a target larger than the memory",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_import::{Source, read, table::Columns};

    fn result_of(counts: [u64; 2]) -> ImportedResult {
        let text = format!(
            "Small Read / Write Latency Histogram @ Small=3 and Large=0\n0 - 1 us: {} 0\n512 - 1024 \
             us: {} 0\n134217728 - 268435456 us: 0 0\n",
            counts[0], counts[1]
        );
        let source = Source {
            name: "pasted.txt",
            text: &text,
        };
        ImportedResult::of(&read(&[source], None, &Columns::default()).unwrap())
    }

    #[test]
    fn an_answer_within_a_microsecond_is_not_one_of_storage() {
        let found = result_of([7, 93]);
        let [finding] = found.findings.as_slice() else {
            panic!("{:?}", found.findings)
        };
        assert!(finding.is(FindingName::FiguresImpossible));
        assert!(
            finding.what.contains("7 of 100 reads took less than 1 µs"),
            "{}",
            finding.what
        );
        assert!(result_of([0, 93]).findings.is_empty());
    }
}
