//! The results of an import: what other tools measured.

use rigel_analyse::demand::{DatabaseResult, database, imported_demands, load_points};
use rigel_analyse::reported_knee::{ReportedKnee, reported_knee};
use rigel_analyse::series::imported::{ImportedSummary, LoadFigures, imported};
use rigel_analyse::series::imported_checks::doubts;
use rigel_analyse::series::soak::SoakResult;
use rigel_model::record::imported::{ClaimedCalibration, Figures, Imported};
use rigel_model::{Demand, Finding};

/// Figures that other tools measured.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedResult {
    /// One summary for each source, in reading order.
    pub sources: Vec<ImportedSummary>,
    /// The analysis of a single throughput series, as for a soak's rounds.
    pub series: Option<SoakResult>,
    /// Of several sources the analyses of those that are one throughput series each, with the index
    /// of the source.
    pub series_of_sources: Vec<(usize, SoakResult)>,
    /// What reports of databases say, if some of the sources are such reports.
    pub database: Option<DatabaseResult>,
    /// What the busiest device of iostat served, if no report of a database says what was asked for.
    pub device: Option<Demand>,
    /// The other devices of iostat, each with the most operations per second that it served.
    pub other_devices: Vec<(String, f64)>,
    /// The knee of the loads, if they are one curve.
    pub knee: Option<ReportedKnee>,
    /// What Oracle's own calibration claims.
    pub claims: Vec<ClaimedCalibration>,
    /// Findings about the figures as a whole.
    pub findings: Vec<Finding>,
}

impl ImportedResult {
    /// The results of all sources.
    pub fn of(all: &[Imported]) -> Self {
        let all = &with_loads(all);
        let sources: Vec<ImportedSummary> = all.iter().map(imported).collect();
        let analysed = all.iter().enumerate();
        let analysed = analysed.filter_map(|(at, one)| Some((at, one_series(one)?)));
        let mut series_of_sources: Vec<(usize, SoakResult)> = analysed.collect();
        let series = if all.len() == 1 {
            series_of_sources.pop().map(|(_, series)| series)
        } else {
            None
        };
        let database = database(all);
        let mut devices = devices(all).into_iter();
        let device = devices.next().filter(|_| database.is_none());
        let other_devices = devices.map(|other| {
            let peak = other.peak_operations_per_s();
            (other.database, peak)
        });
        let other_devices = other_devices.collect();
        let of_series = series.iter().flat_map(|series| series.findings.clone());
        let own = all.iter().zip(&sources);
        let findings = own
            .filter(|(_, summary)| !summary.is_of_sessions())
            .flat_map(|(source, _)| doubts(source))
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
            series_of_sources,
            database,
            device,
            other_devices,
            knee,
            findings,
        }
    }

    /// The load with the maximum rate, and its path in the JSON report. Loads of sessions are the
    /// database's, and not among them.
    pub fn best(&self) -> Option<(String, &LoadFigures)> {
        let sources = self.sources.iter().enumerate();
        let own = sources.filter(|(_, source)| !source.is_of_sessions());
        let places = own.flat_map(|(file, source)| {
            let place = move |at| format!("imported.{file}.loads.{at}");
            // A write is not durable before its sync: that has the time.
            let has_syncs = |load: &LoadFigures| {
                let mut others = source.loads.iter();
                load.kind == "write"
                    && others.any(|other| other.kind == "sync" && other.label == load.label)
            };
            source
                .loads
                .iter()
                .enumerate()
                .filter(move |(_, load)| !has_syncs(load))
                .map(move |(at, load)| (place(at), load))
        });
        let with_rate = places.filter_map(|(place, load)| Some((load.iops?, place, load)));
        with_rate
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, place, load)| (place, load))
    }
}

/// The devices of iostat, first the one that served the most operations in its busiest interval.
fn devices(all: &[Imported]) -> Vec<Demand> {
    let mut devices = imported_demands(all);
    devices.retain(|demand| demand.source == "iostat");
    devices
}

/// The sources, with the loads of a scale-up series of a database's reports behind them.
pub fn with_loads(all: &[Imported]) -> Vec<Imported> {
    let mut sources = all.to_vec();
    for one in all {
        let Figures::Database(reports) = &one.figures else {
            continue;
        };
        let points = load_points(reports);
        if !points.is_empty() {
            sources.push(Imported {
                reported: Vec::new(),
                notes: Vec::new(),
                figures: Figures::Loads(points),
                ..one.clone()
            });
        }
    }
    sources
}

/// Analyses a source that is exactly one throughput series, as for a soak's rounds. `None` for a
/// latency or a fraction, where less may be better.
fn one_series(source: &Imported) -> Option<SoakResult> {
    let Figures::Series(all) = &source.figures else {
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
