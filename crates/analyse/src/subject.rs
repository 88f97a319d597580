//! Runs as subjects of a comparison: what was asked, what was measured, and which warnings were
//! raised.
//!
//! Input: a journal that was read, and the results of its run. Output: a [`Subject`].

use super::compare::comparison::BOUND;
use super::compare::difference::Figure;
use super::compare::over_time::OverTime;
use super::compare::subject::{Scope, Subject, Term};
use super::point::standstill::PointStalls;
use super::result::{ImportedResult, RunResult, with_loads};
use super::search::calibration::Calibration;
use super::series::imported::summaries;
use super::series::rounds::Round;
use super::series::soak::SoakResult;
use crate::request::{FitRequest, Request, SoakRequest, SqlTerms};
use crate::request::{Header, Run};
use rigel_model::record::End;
use rigel_model::record::imported::{Figures, LoadPoint, ReportedLoad};
use rigel_model::{Bytes, Finding, Load, Mix, Pattern, Ratio, Severity};
use std::collections::BTreeMap;

/// Default tolerance to find the knee, for runs without a precision option.
const TOLERANCE: f64 = 0.02;

impl<'a> Subject<'a> {
    /// A run with its results. `is_more_planned` means that its search is incomplete.
    pub fn of_run(name: &str, run: &'a Run, result: &RunResult, is_more_planned: bool) -> Self {
        if let RunResult::Imported(found) = result {
            return Self::of_imported(name, run, found);
        }
        let header = &run.header;
        let records = run.joined();
        let points = result.points().to_vec();
        // Warnings about a matrix or a curve as a whole are not counted.
        let of_run = if let RunResult::Calibration(found) = result {
            &found.findings[..]
        } else {
            &[]
        };
        let of_points = points.iter().flat_map(|point| &point.findings);
        let warnings = warnings_in(header.findings.iter().chain(of_run).chain(of_points));
        let ended = !run.cut
            && !records.is_empty()
            && records.iter().all(|record| record.end == End::Complete);
        let is_through = match header.request() {
            Request::Orion(_) => records.len() >= header.points.len(),
            _ => !is_more_planned,
        };
        Self {
            name: name.into(),
            header,
            terms: terms(header),
            tolerance: header.request().precision().get(),
            whole: ended && is_through,
            stalls: records.iter().filter_map(PointStalls::of).collect(),
            max_iops: match result {
                RunResult::Calibration(found) => max_iops(found),
                _ => None,
            },
            points,
            over_time: OverTime::default(),
            warnings,
            imported: None,
        }
    }

    /// A soak; `ended` means that its journal ends with a complete line and no process is writing
    /// it.
    pub fn of_soak(name: &str, header: &'a Header, result: &SoakResult, ended: bool) -> Self {
        let SoakResult {
            rounds,
            found,
            findings,
            // A comparison is of the sums.
            hosts: _,
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
        Self {
            name: name.into(),
            header,
            terms: terms(header),
            points: Vec::new(),
            stalls: Vec::new(),
            max_iops: None,
            over_time: OverTime::of_rounds(rounds, found),
            tolerance: TOLERANCE,
            whole: ended && found.rounds.ahead == 0 && found.troubles.is_empty(),
            warnings,
            imported: None,
        }
    }

    /// Figures of another tool.
    fn of_imported(name: &str, run: &'a Run, result: &ImportedResult) -> Self {
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
        Self {
            name: name.into(),
            header: &run.header,
            terms: terms_of_loads(&points),
            points: summaries(&all),
            stalls: Vec::new(),
            max_iops: None,
            over_time: OverTime::of_imported(&run.imported),
            tolerance: TOLERANCE,
            whole: !run.cut,
            warnings: warnings_in(run.header.findings.iter().chain(&result.findings)),
            imported: Some(tools.join(" and ")),
        }
    }
}

/// The maximum rate of small reads, as the report of a calibration has it.
fn max_iops(found: &Calibration) -> Option<Figure> {
    let visits = found.curve.knee.map_or(1, |knee| knee.plateau.visits);
    let degrees = (visits as f64 - 1.0).max(1.0);
    Some(Figure::of_estimate(found.maximum?.iops, degrees))
}

/// Number of times each warning was raised, by name.
fn warnings_in<'a>(findings: impl Iterator<Item = &'a Finding>) -> BTreeMap<String, usize> {
    let mut warnings = BTreeMap::new();
    for finding in findings.filter(|finding| finding.severity != Severity::Note) {
        *warnings.entry(finding.name.clone()).or_default() += 1;
    }
    warnings
}

/// The options of the request that affect its figures.
fn terms(header: &Header) -> Vec<Term> {
    const SMALL: &str = "size of a small I/O";
    const LARGE: &str = "size of a large I/O";
    let size = |scope, bytes: u32| {
        let name = if scope == Scope::Large { LARGE } else { SMALL };
        Term::deciding(scope, name, &Bytes(bytes.into()))
    };
    let work = |mix: Mix, pattern: Pattern| {
        [
            Term::deciding(Scope::All, "share of writes", &mix.writes.exact()),
            Term::deciding(Scope::All, "pattern", &pattern),
        ]
    };
    let mut terms = Vec::new();
    let request = header.request();
    match request {
        Request::Calibrate(request) => {
            terms.extend([
                size(Scope::Small, request.block),
                size(Scope::Large, request.large),
            ]);
            terms.extend(work(Mix::READS, Pattern::Uniform));
            terms.push(Term::deciding(Scope::All, "load beside", &"none"));
            terms.push(Term::known("longest point", &request.point_most));
        }
        Request::Curve(request) | Request::Sql(request) => {
            terms.push(size(Scope::Small, request.length));
            terms.extend(
                request
                    .sql
                    .map_or_else(|| work(request.mix, request.pattern).into(), of_sessions),
            );
            terms.extend(
                request
                    .sql
                    .map(|SqlTerms { stop, .. }| Term::known("ends by", &format!("{stop:?}"))),
            );
            let beside = request.background.map_or_else(
                || "none".to_string(),
                |background| {
                    format!(
                        "{} of {}",
                        background.depth,
                        Bytes(background.length.into())
                    )
                },
            );
            terms.push(Term::deciding(Scope::All, "load beside", &beside));
            terms.push(Term::known("longest point", &request.point_most));
        }
        Request::Layers(request) => {
            terms.push(size(Scope::Small, request.block()));
            terms.extend(work(Mix::READS, Pattern::Uniform));
            terms.push(Term::known("longest point", &request.point_time));
        }
        Request::Soak(request) => {
            terms.push(size(Scope::Small, request.length));
            terms.extend(
                request
                    .sql
                    .map_or_else(|| work(request.mix, request.pattern).into(), of_sessions),
            );
            terms.push(Term::deciding(Scope::All, "load beside", &"none"));
            terms.extend(of_rounds(request));
        }
        Request::Fit(request) => {
            terms.push(size(Scope::Small, request.block));
            terms.extend(of_demand(request));
        }
        Request::Orion(_) | Request::Watch(_) | Request::Import(_) => {
            let streams = || header.points.iter().flat_map(|point| &point.streams);
            let first = |name: &str| streams().find(|stream| stream.name == name);
            terms.extend(first("small").map(|stream| size(Scope::Small, stream.length)));
            terms.extend(first("large").map(|stream| size(Scope::Large, stream.length)));
            if let Some(stream) = first("small").or_else(|| first("large")) {
                terms.extend(work(stream.mix, stream.pattern));
            }
        }
    }
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
    terms.extend(request.bound().map(|bound| Term::known(BOUND, &bound)));
    if !matches!(request, Request::Orion(_)) {
        terms.push(Term::known("precision", &request.precision().exact()));
    }
    terms.push(Term::known("verb", &request.verb()));
    terms
}

/// The load and the timetable of a soak.
fn of_rounds(request: &SoakRequest) -> [Term; 5] {
    let load = match request.load {
        Load::Closed { depth } => format!("{depth} outstanding"),
        Load::Open {
            rate,
            in_flight_max,
            ..
        } => format!("{rate}/s, {in_flight_max} in flight at most"),
    };
    let work = request.work.map_or_else(
        || "as much as its time allows".into(),
        |work| format!("{work} operations"),
    );
    [
        Term::deciding(Scope::All, "load", &load),
        Term::deciding(Scope::All, "work of a round", &work),
        Term::known("a round every", &request.every.exact()),
        Term::known("longest round", &request.limit.exact()),
        Term::known("was to last", &request.lasting.exact()),
    ]
}

/// What is offered of a demand.
fn of_demand(request: &FitRequest) -> Vec<Term> {
    let demand = format!("{} of {}", request.interval.label, request.named);
    let writes = if request.writes {
        "offered"
    } else {
        "left out"
    };
    let mut terms = vec![
        Term::deciding(Scope::All, "demand", &demand),
        Term::deciding(Scope::All, "writes", &writes),
        Term::known("time of a multiple", &request.point_time),
    ];
    if let Some(sessions) = request.sessions {
        terms.extend(of_sessions(sessions.terms));
        terms.push(Term::deciding(Scope::All, "sessions", &sessions.number));
    }
    terms
}

/// The work of database sessions, which replaces mix and pattern.
fn of_sessions(SqlTerms { work, .. }: SqlTerms) -> Vec<Term> {
    vec![
        Term::deciding(Scope::All, "pattern", &work),
        Term::deciding(Scope::All, "tables", &work.tables),
    ]
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
