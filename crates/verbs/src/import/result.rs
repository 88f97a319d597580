//! The results of an import: what other tools measured.

use rigel_analyse::demand::{DatabaseResult, database, imported_demands, load_points};
use rigel_analyse::reported_knee::{ReportedKnee, reported_knee};
use rigel_analyse::series::imported::{ImportedSummary, LoadFigures, imported};
use rigel_analyse::series::predictability::repeated;
use rigel_analyse::series::soak::SoakResult;
use rigel_model::record::imported::{ClaimedCalibration, Figures, Imported};
use rigel_model::{Demand, Finding, FindingName};

/// Allowed relative deviation of outstanding operations from Little's law. fio's means leave out
/// the time between the end of one operation and the start of the next.
const LITTLE_TOLERANCE: f64 = 0.15;

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
        let device = busiest_device(all).filter(|_| database.is_none());
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
            series_of_sources,
            database,
            device,
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

/// The device of iostat that served the most operations in its busiest interval.
fn busiest_device(all: &[Imported]) -> Option<Demand> {
    let mut demands = imported_demands(all).into_iter();
    demands.find(|demand| demand.source == "iostat")
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
                told: Vec::new(),
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
    let mut found = SoakResult::of_imported(series)?;
    found.findings.extend(repeated(&found.rounds));
    Some(found)
}

/// Warns of loads where, by Little's law, the outstanding operations were fewer or more than
/// requested, and of times that no storage has.
fn warnings_of_loads(source: &ImportedSummary) -> Vec<Finding> {
    let mut warnings = Vec::new();
    for one in &source.loads {
        let is_part = source.loads.iter().any(|other| {
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
    use rigel_import::{Source, csv_columns::Columns, read};

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
