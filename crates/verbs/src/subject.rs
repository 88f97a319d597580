//! Runs as they are compared: what was asked, what was measured, and which warnings were
//! raised.
//!
//! Input: a journal that was read, and the results of its run. Output: a [`Subject`].

use crate::import::ImportedResult;
use crate::import::result::with_loads;
use crate::{Verb, VerbResult};
use rigel_analyse::Estimate;
use rigel_analyse::compare::comparison::BOUND;
use rigel_analyse::compare::over_time::OverTime;
use rigel_analyse::compare::subject::{Maxima, Scope, Subject, Term};
use rigel_analyse::series::imported::summaries;
use rigel_analyse::series::rounds::Round;
use rigel_analyse::series::soak::SoakResult;
use rigel_model::record::End;
use rigel_model::record::imported::{Figures, LoadPoint, ReportedLoad};
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Bytes, Finding, Ratio, Severity};
use std::collections::BTreeMap;

/// Default tolerance to find the knee, for runs without a precision option.
const TOLERANCE: f64 = 0.02;

/// A run as it is compared with others; `name` is what the user calls it.
pub fn subject<'a>(
    name: &str,
    run: &'a Run,
    verb: &dyn Verb,
    results: &dyn VerbResult,
) -> Subject<'a> {
    let own = results.subject(name, run, verb);
    own.unwrap_or_else(|| of_points(name, run, verb, results))
}

/// A run that is compared by its points.
fn of_points<'a>(
    name: &str,
    run: &'a Run,
    verb: &dyn Verb,
    results: &dyn VerbResult,
) -> Subject<'a> {
    let header = &run.header;
    let records = run.joined();
    let points = results.points().to_vec();
    let of_points = points.iter().flat_map(|point| &point.findings);
    let of_run = results.compared_findings();
    let warnings = warnings_in(header.findings.iter().chain(of_run).chain(of_points));
    let ended = run.is_complete()
        && !records.is_empty()
        && records.iter().all(|record| record.end == End::Complete);
    // A matrix has its points in the header.
    let is_through = records.len() >= header.points.len() && !verb.is_more_planned(run);
    Subject {
        name: name.into(),
        header,
        terms: terms(header, verb),
        tolerance: verb.precision().get(),
        whole: ended && is_through,
        maxima: results.maxima(),
        points,
        over_time: OverTime {
            courses: Vec::new(),
            figures: results.answered().into_iter().collect(),
        },
        warnings,
        imported: None,
    }
}

/// A soak; `ended` means that its journal says nothing else.
pub fn of_soak<'a>(
    name: &str,
    header: &'a Header,
    verb: &dyn Verb,
    result: &SoakResult,
    ended: bool,
) -> Subject<'a> {
    let SoakResult {
        rounds,
        found,
        findings,
        // A comparison is of the sums.
        hosts: _,
        verified: _,
        sight: _,
    } = result;
    let with = |wanted: fn(&&Round) -> bool| rounds.iter().filter(wanted).count();
    let of_rounds = [
        ("broken rounds", found.rounds.broken),
        ("missing rounds", found.rounds.missing),
        ("failures", with(|round| round.failed > 0)),
        (
            "idle rounds",
            with(|round| round.counts() && round.done <= 0.0),
        ),
    ];
    let mut warnings = warnings_in(header.findings.iter().chain(findings));
    warnings.extend(
        of_rounds
            .into_iter()
            .filter(|(_, count)| *count > 0)
            .map(|(name, count)| (name.into(), count)),
    );
    Subject {
        name: name.into(),
        header,
        terms: terms(header, verb),
        points: Vec::new(),
        maxima: Maxima::default(),
        over_time: OverTime::of_rounds(rounds, found),
        tolerance: TOLERANCE,
        whole: ended && found.rounds.ahead == 0 && found.troubles.is_empty(),
        warnings,
        imported: None,
    }
}

/// Figures of another tool.
pub(crate) fn of_imported<'a>(name: &str, run: &'a Run, result: &ImportedResult) -> Subject<'a> {
    let all = with_loads(&run.imported);
    let points: Vec<&LoadPoint> = all
        .iter()
        .flat_map(|one| match &one.figures {
            Figures::Loads(points) => points.as_slice(),
            Figures::Series(_) | Figures::Database(_) | Figures::Claims(_) => &[],
        })
        .collect();
    let mut tools: Vec<String> = Vec::new();
    for one in &result.sources {
        let tool = one.version.as_ref().map_or(one.tool.clone(), |version| {
            format!("{} {version}", one.tool)
        });
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    Subject {
        name: name.into(),
        header: &run.header,
        terms: terms_of_loads(&points),
        points: summaries(&all),
        maxima: Maxima {
            iops: most_of_plateau(result),
            mb_per_s: None,
        },
        over_time: OverTime::of_imported(&run.imported),
        tolerance: TOLERANCE,
        whole: run.is_complete(),
        warnings: warnings_in(run.header.findings.iter().chain(&result.findings)),
        imported: Some(tools.join(" and ")),
    }
}

/// The highest rate of loads of which the highest only waited longer; `None` of other loads, because
/// more of them may do more.
fn most_of_plateau(result: &ImportedResult) -> Option<Estimate> {
    result.knee.as_ref().filter(|knee| knee.is_reached)?;
    let loads = result.sources.iter().flat_map(|source| &source.loads);
    let most = loads.filter_map(|load| load.iops).max_by(f64::total_cmp);
    most.map(Estimate::from)
}

/// Number of times each warning was raised, by name.
fn warnings_in<'a>(findings: impl Iterator<Item = &'a Finding>) -> BTreeMap<String, usize> {
    let mut warnings = BTreeMap::new();
    for finding in findings.filter(|finding| finding.severity != Severity::Note) {
        *warnings.entry(finding.name.clone()).or_default() += 1;
    }
    warnings
}

/// The conditions of the run that affect its figures.
fn terms(header: &Header, verb: &dyn Verb) -> Vec<Term> {
    let mut terms = verb.terms(header);
    if let Some(server) = &header.facts.server {
        let reads = if server.direct {
            "past the page cache"
        } else {
            "through the page cache"
        };
        terms.push(Term::known("server", &server.version));
        terms.push(Term::known("buffer cache", &server.buffer_cache));
        terms.push(Term::known("server reads", &reads));
    }
    terms.extend(verb.bound().map(|bound| Term::known(BOUND, &bound)));
    if verb.name() != "orion" {
        terms.push(Term::known("precision", &verb.precision().exact()));
    }
    terms.push(Term::known("verb", &verb.name()));
    terms
}

/// Workload parameters, where the tool reports them and all loads agree.
fn terms_of_loads(points: &[&LoadPoint]) -> Vec<Term> {
    let mut terms = Vec::new();
    let is_one = points.windows(2).all(|two| {
        let size = |point: &LoadPoint| point.flows.first().and_then(|flow| flow.io_bytes);
        let is_cell = matches!(two[0].load, ReportedLoad::Cell { .. });
        two[0].pattern == two[1].pattern
            && two[0].writes_percent == two[1].writes_percent
            && (is_cell || size(two[0]) == size(two[1]))
    });
    let size = |class: &str| {
        let flows = points.iter().flat_map(|point| &point.flows);
        let mut sizes: Vec<u32> = flows
            .filter(|flow| flow.class == class)
            .filter_map(|flow| flow.io_bytes)
            .collect();
        sizes.sort_unstable();
        sizes.dedup();
        if let [one] = sizes[..] {
            Some(Bytes(one.into()))
        } else {
            None
        }
    };
    let is_large_alone = is_one && size("small").is_none();
    // A curve of large I/O counts as a curve of small I/O of that size.
    let small = if is_large_alone {
        size("large").filter(|_| !is_matrix(points))
    } else {
        size("small")
    };
    terms.extend(small.map(|size| Term::deciding(Scope::Small, "size of a small I/O", &size)));
    if !is_large_alone || is_matrix(points) {
        terms.extend(
            size("large").map(|size| Term::deciding(Scope::Large, "size of a large I/O", &size)),
        );
    }
    // If the workloads differ, each load has its own step, or none.
    let first = points.first().filter(|_| is_one);
    let share = first.and_then(|point| Ratio::from_percent(point.writes_percent?));
    terms.extend(share.map(|share| Term::deciding(Scope::All, "share of writes", &share.exact())));
    terms.extend(first.and_then(|point| {
        Some(Term::deciding(
            Scope::All,
            "pattern",
            point.pattern.as_ref()?,
        ))
    }));
    terms
}

fn is_matrix(points: &[&LoadPoint]) -> bool {
    points
        .iter()
        .any(|point| matches!(point.load, ReportedLoad::Cell { .. }))
}
