//! Runs side by side: conditions that differ, figures with their ratios, load points, a verdict.
//!
//! Input: journals that were read; the first is the baseline. Output: text of at most 120 columns, or JSON.

use super::table;
use crate::analyse::{
    BOUND, Change, Comparison, Estimate, Figure, FigureUnit, Judgement, Limits, LoadChange, OverTime, ROUNDS_MIN,
    Round, Row, RunResult, Scope, SoakResult, Subject, Term, Verdict, quantity,
};
use crate::model::{Bytes, Finding, Load, Mix, Nanos, Pattern, Request, Severity, SoakRequest, SqlTerms};
use crate::record::End;
use crate::record::journal::{Header, Run};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Width of the names on the left.
const NAME_WIDTH: usize = 28;
/// Width of a run's column if two are compared.
const PAIR_WIDTH: usize = 22;
/// Width of the baseline's column if more are compared.
const FIRST_WIDTH: usize = 12;
/// Width of each other run's column if more are compared.
const OTHER_WIDTH: usize = 20;
/// Maximum number of runs next to the baseline.
const OTHERS_MAX: usize = 3;
/// Default tolerance to find the knee, for runs without a precision option.
const TOLERANCE: f64 = 0.02;
/// Maximum width of the text.
const WIDTH: usize = 120;

/// Prepares a run for a comparison.
#[must_use]
pub fn subject<'a>(name: &str, run: &'a Run) -> Subject<'a> {
    let header = &run.header;
    let result = super::result(run);
    if let RunResult::Imported(found) = &result {
        return super::imported::subject(name, run, found);
    }
    let request = header.request();
    let records = run.latest();
    let points = result.points().to_vec();
    // Warnings about a matrix or a curve as a whole are not counted.
    let of_run = if let RunResult::Calibration(found) = &result { &found.findings[..] } else { &[] };
    let ended = !run.cut && !records.is_empty() && records.iter().all(|record| record.end == End::Complete);
    let through = match request {
        Request::Orion(_) => records.len() >= header.points.len(),
        request => request.next(header.facts.usable.0, 0, &points).is_none(),
    };
    let of_points = points.iter().flat_map(|point| &point.findings);
    let warnings = warnings_in(header.findings.iter().chain(of_run).chain(of_points));
    Subject {
        name: name.into(),
        header,
        terms: terms(header),
        tolerance: request.precision().get(),
        whole: ended && through,
        points,
        over_time: OverTime::default(),
        warnings,
        imported: None,
    }
}

/// Prepares a soak for a comparison; `ended` means that its journal ends with a complete line and no process is
/// writing it.
#[must_use]
pub fn soak_subject<'a>(name: &str, header: &'a Header, result: &SoakResult, ended: bool) -> Subject<'a> {
    let SoakResult { rounds, found, findings } = result;
    let with = |wanted: fn(&&Round) -> bool| rounds.iter().filter(wanted).count();
    let of_rounds = [
        ("broken rounds", found.rounds.broken),
        ("missing rounds", found.rounds.missing),
        ("failures", with(|round| round.failed > 0)),
        ("idle rounds", with(|round| round.counts() && round.done <= 0.0)),
    ];
    let mut warnings = warnings_in(header.findings.iter().chain(findings));
    warnings.extend(of_rounds.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.into(), count)));
    Subject {
        name: name.into(),
        header,
        terms: terms(header),
        points: Vec::new(),
        over_time: OverTime::of_rounds(rounds, found),
        tolerance: TOLERANCE,
        whole: ended && found.rounds.ahead == 0 && found.troubles.is_empty(),
        warnings,
        imported: None,
    }
}

/// Number of times each warning was raised, by name.
pub(super) fn warnings_in<'a>(findings: impl Iterator<Item = &'a Finding>) -> BTreeMap<String, usize> {
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
            terms.extend([size(Scope::Small, request.block), size(Scope::Large, request.large)]);
            terms.extend(work(Mix::READS, Pattern::Uniform));
            terms.push(Term::deciding(Scope::All, "load beside", &"none"));
            terms.push(Term::known("longest point", &request.point_most));
        }
        Request::Curve(request) | Request::Sql(request) => {
            terms.push(size(Scope::Small, request.length));
            terms.extend(request.sql.map_or_else(|| work(request.mix, request.pattern).into(), of_sessions));
            terms.extend(request.sql.map(|SqlTerms { stop, .. }| Term::known("ends by", &format!("{stop:?}"))));
            let beside = request.background.map_or_else(
                || "none".to_string(),
                |background| format!("{} of {}", background.depth, Bytes(background.length.into())),
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
            terms.extend(request.sql.map_or_else(|| work(request.mix, request.pattern).into(), of_sessions));
            terms.push(Term::deciding(Scope::All, "load beside", &"none"));
            terms.extend(of_rounds(request));
        }
        Request::Orion(_) | Request::Import(_) => {
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
        let reads = if server.direct { "past the page cache" } else { "through the page cache" };
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
        Load::Open { rate, in_flight_max, .. } => format!("{rate}/s, {in_flight_max} in flight at most"),
    };
    let work = request.work.map_or_else(|| "what is done in its time".into(), |work| format!("{work} operations"));
    [
        Term::deciding(Scope::All, "load", &load),
        Term::deciding(Scope::All, "work of a round", &work),
        Term::known("a round every", &request.every.exact()),
        Term::known("longest round", &request.limit.exact()),
        Term::known("was to last", &request.lasting.exact()),
    ]
}

/// The work of database sessions, which replaces mix and pattern.
fn of_sessions(SqlTerms { work, .. }: SqlTerms) -> Vec<Term> {
    vec![
        Term::deciding(Scope::All, "pattern", &super::sql::work_line(&work)),
        Term::deciding(Scope::All, "tables", &super::sql::tables_line(work.tables)),
    ]
}

/// The comparison as text.
#[must_use]
pub fn text(comparison: &Comparison) -> String {
    let mut text = conditions(comparison);
    text.push_str(&reserves(comparison));
    text.push('\n');
    text.push_str(&if comparison.names.len() == 2 { pair(comparison) } else { columns(comparison) });
    for run in 1..comparison.names.len() {
        text.push_str(&loads(comparison, run));
    }
    text.push('\n');
    comparison.verdicts.iter().for_each(|verdict| text.push_str(&self::verdict(comparison, verdict)));
    text.push_str(&slower(comparison));
    text
}

/// The comparison as one JSON document. Fields are only added, never renamed or removed.
#[must_use]
pub fn json(comparison: &Comparison) -> String {
    let mut text = serde_json::to_string_pretty(comparison).expect("a comparison is made of maps with text keys");
    text.push('\n');
    text
}

fn conditions(comparison: &Comparison) -> String {
    let mut text = String::new();
    for (run, name) in comparison.names.iter().enumerate().skip(1) {
        let different: Vec<_> = comparison.conditions.iter().filter(|condition| condition.run == run).collect();
        if different.is_empty() {
            let _ = writeln!(text, "{name} was made under the same conditions as {}", comparison.names[0]);
            continue;
        }
        let _ = writeln!(text, "{name} was made under other conditions than {}:", comparison.names[0]);
        for condition in different {
            let mark = condition
                .not_compared
                .map_or_else(String::new, |scope| format!("  {} are not compared", figures_of(scope)));
            let line = format!("  {:<NAME_WIDTH$}{} -> {}{mark}", condition.name, condition.before, condition.after);
            if line.chars().count() <= WIDTH {
                let _ = writeln!(text, "{line}");
            } else {
                let _ = writeln!(text, "  {:<NAME_WIDTH$}{}", condition.name, condition.before);
                let _ = writeln!(text, "  {:>NAME_WIDTH$}{}{mark}", "-> ", condition.after);
            }
        }
    }
    text
}

/// Figures in words: `figures of small I/O`.
pub(super) fn figures_of(scope: Scope) -> &'static str {
    match scope {
        Scope::Small => "figures of small I/O",
        Scope::Large => "figures of large I/O",
        Scope::Log => "figures of log writes",
        Scope::All => "all figures",
    }
}

/// Notes about incomplete and imported runs, missing intervals, and warnings.
fn reserves(comparison: &Comparison) -> String {
    let mut text = String::new();
    let runs = || 0..comparison.names.len();
    runs().filter_map(|run| not_told(comparison, run)).for_each(|said| text.push_str(&wrapped(&said)));
    runs().filter_map(|run| without_intervals(comparison, run)).for_each(|said| text.push_str(&wrapped(&said)));
    for (run, name) in comparison.names.iter().enumerate() {
        if comparison.incomplete.contains(&run) {
            let _ =
                writeln!(text, "{name} is not whole: {}; what there is, is compared", why_incomplete(comparison, run));
        }
        let warnings: Vec<String> = comparison.warnings[run]
            .iter()
            .map(|(warning, times)| if *times > 1 { format!("{warning} (in {times} places)") } else { warning.clone() })
            .collect();
        if !warnings.is_empty() {
            text.push_str(&wrapped(&format!("{name} has warnings, told by `rigel report`: {}", warnings.join(", "))));
        }
    }
    text
}

/// What is unknown about a run of another tool; `None` if Rigel measured it.
pub(super) fn not_told(comparison: &Comparison, run: usize) -> Option<String> {
    let (name, tool) = (&comparison.names[run], comparison.imported.get(&run)?);
    let rest = if comparison.rounds.contains_key(&run) {
        "nor whether as much was asked of it"
    } else {
        "and without intervals nobody can say which differences are chance"
    };
    Some(format!(
        "{name} was measured by {tool}: what it does not tell of host, target and size of the target is not compared, \
         {rest}"
    ))
}

/// Why no figure of a run over time has an interval; `None` if one has, or if the run is at loads.
pub(super) fn without_intervals(comparison: &Comparison, run: usize) -> Option<String> {
    let (name, rounds) = (&comparison.names[run], *comparison.rounds.get(&run)?);
    if rounds < ROUNDS_MIN {
        return Some(format!("{name} has fewer rounds than intervals need: {rounds} of {ROUNDS_MIN}"));
    }
    let has_intervals = comparison.figures.iter().any(|row| row.figures[run].is_some_and(|it| it.is_known()));
    let said = || {
        format!("{name} has no intervals: its rounds are so much like their neighbours that {rounds} tell too little")
    };
    (!has_intervals).then(said)
}

/// Possible reasons why a run is incomplete.
pub(super) fn why_incomplete(comparison: &Comparison, run: usize) -> &'static str {
    if comparison.rounds.contains_key(&run) {
        "it ended early or goes on still, or rounds are missing or broke"
    } else {
        "it was stopped, or a point broke"
    }
}

/// Two runs: one line per figure.
fn pair(comparison: &Comparison) -> String {
    let mut text = format!(
        "{:<NAME_WIDTH$}{:<PAIR_WIDTH$}{:<PAIR_WIDTH$}ratio\n",
        "",
        shortened(&comparison.names[0], PAIR_WIDTH - 2),
        shortened(&comparison.names[1], PAIR_WIDTH - 2)
    );
    for row in &comparison.figures {
        let [before, after] = [0, 1].map(|run| row.figures[run].map_or_else(|| "-".into(), |it| shown(it, row.unit)));
        let change = row.changes[0].map_or_else(|| without_ratio(comparison, row, 1).into(), judged);
        let name = shortened(&row.name, NAME_WIDTH - 1);
        let _ = writeln!(text, "{name:<NAME_WIDTH$}{before:<PAIR_WIDTH$}{after:<PAIR_WIDTH$}{change}");
    }
    text
}

/// More than two runs: one column each, in blocks that fit the width.
fn columns(comparison: &Comparison) -> String {
    let mut text = String::new();
    let others: Vec<usize> = (1..comparison.names.len()).collect();
    for block in others.chunks(OTHERS_MAX) {
        let _ = write!(text, "{:<NAME_WIDTH$}{:<FIRST_WIDTH$}", "", shortened(&comparison.names[0], FIRST_WIDTH - 1));
        for run in block {
            let width = OTHER_WIDTH + 8;
            let _ = write!(text, "{:<width$}", shortened(&comparison.names[*run], width - 2));
        }
        end_line(&mut text);
        for row in &comparison.figures {
            let name = shortened(&row.name, NAME_WIDTH - 1);
            let _ = write!(text, "{name:<NAME_WIDTH$}{:<FIRST_WIDTH$}", value(row, 0));
            for run in block {
                let change = row.changes[run - 1].map_or_else(
                    || "-".to_string(),
                    |change| format!("{:.3} {}", change.ratio, word(change.judgement)),
                );
                let _ = write!(text, "{:<FIRST_WIDTH$}{:<16}", value(row, *run), change);
            }
            end_line(&mut text);
        }
        text.push('\n');
    }
    text.push_str("= no difference shown, ? not known; intervals by --json, or two runs at a time\n");
    text
}

/// Why this figure of the run has no ratio to the baseline's.
pub(super) fn without_ratio(comparison: &Comparison, row: &Row, run: usize) -> &'static str {
    if comparison.is_of_other_work(run, row.scope) {
        return "not compared";
    }
    let is_in_both = row.figures[0].is_some() && row.figures[run].is_some();
    if is_in_both { "no ratio with 0" } else { "not measured in both" }
}

fn end_line(text: &mut String) {
    text.truncate(text.trim_end_matches(' ').len());
    text.push('\n');
}

fn value(row: &Row, run: usize) -> String {
    row.figures[run].map_or_else(|| "-".into(), |figure| bare(figure.estimate, row.unit))
}

fn loads(comparison: &Comparison, run: usize) -> String {
    const WIDTH: usize = 28;
    let of_run: Vec<&LoadChange> = comparison.points.iter().filter(|point| point.run == run).collect();
    let (name, baseline) = (&comparison.names[run], &comparison.names[0]);
    if of_run.is_empty() && !comparison.rounds.is_empty() {
        return String::new();
    }
    if of_run.is_empty() {
        return format!("\n{name} and {baseline} have no load in common\n");
    }
    let mut text = format!("\n{name} over {baseline}, at each load that both have\n");
    let _ = writeln!(text, "{:<NAME_WIDTH$}{:<WIDTH$}{:<WIDTH$}p99", "", "IOPS", "p50");
    let text_of = |change: Option<Change>| {
        change.map_or_else(|| "-".into(), |change| format!("{} {}", ratio(&change), word(change.judgement)))
    };
    let (mut judged, mut different) = (0, 0);
    for point in of_run {
        let changes = [point.iops, point.p50, point.p99];
        for change in changes.into_iter().flatten() {
            judged += usize::from(change.judgement != Judgement::NotKnown);
            different += usize::from(matches!(change.judgement, Judgement::Better | Judgement::Worse));
        }
        let load = if comparison.points.iter().any(|other| other.run == run && other.is_beside(point)) {
            format!("{} {}", point.load, point.class)
        } else {
            point.load.clone()
        };
        let [iops, p50, p99] = changes.map(text_of);
        let _ = write!(text, "{load:<NAME_WIDTH$}{iops:<WIDTH$}{p50:<WIDTH$}{p99}");
        end_line(&mut text);
    }
    let _ = writeln!(
        text,
        "= no difference shown, ? not known. {different} of {judged} ratios differ, each by its own interval; \
         chance alone makes one in 20"
    );
    text
}

pub(super) fn verdict(comparison: &Comparison, verdict: &Verdict) -> String {
    let (name, baseline) = (&comparison.names[verdict.run], &comparison.names[0]);
    let judged = verdict.judged;
    if judged == 0 {
        return format!("{name} against {baseline}: not known, as no headline figure has an interval in both\n");
    }
    let parts: Vec<String> = [("worse", &verdict.worse), ("better", &verdict.better)]
        .into_iter()
        .filter(|(_, names)| !names.is_empty())
        .map(|(word, names)| format!("{word} in {}", with_ratios(comparison, verdict.run, names)))
        .collect();
    let sentence = if parts.is_empty() {
        let room = verdict.widest.as_ref().map_or_else(String::new, |(figure, room)| {
            let room = if room.is_finite() { format!("{:.1} %", room * 100.0) } else { "any difference".into() };
            format!(", of which the least known, {figure}, leaves room for {room}")
        });
        format!("{name} against {baseline}: no difference shown; headline figures judged: {judged}{room}")
    } else {
        format!(
            "{name} against {baseline}: {}; headline figures judged: {judged}, with 95 % confidence in all together",
            parts.join("; ")
        )
    };
    let mut text = wrapped(&sentence);
    if !parts.is_empty() && [0, verdict.run].iter().any(|run| !comparison.warnings[*run].is_empty()) {
        text.push_str("  the runs have warnings, named above: what differs may be what is doubtful\n");
    }
    text
}

/// The named figures, each with its change in percent.
fn with_ratios(comparison: &Comparison, run: usize, names: &[String]) -> String {
    let one = |name: &String| {
        let row = comparison.figures.iter().find(|row| row.name == *name);
        let change = row.and_then(|row| row.changes[run - 1]);
        change.map_or_else(|| name.clone(), |change| format!("{name} {:+.1} %", (change.ratio - 1.0) * 100.0))
    };
    names.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The result of the slowdown limit; empty if none was given.
fn slower(comparison: &Comparison) -> String {
    let Some(slower) = &comparison.slower else { return String::new() };
    let limit = slower.limit.exact();
    let listed = |found: &[(usize, String)]| {
        let names = found.iter().map(|(run, figure)| {
            if comparison.names.len() == 2 { figure.clone() } else { format!("{figure} of {}", comparison.names[*run]) }
        });
        names.collect::<Vec<_>>().join(", ")
    };
    let mut text = if slower.certain.is_empty() {
        format!("no headline figure is certainly slower by more than {limit}\n")
    } else {
        wrapped(&format!("certainly slower by more than {limit}: {}", listed(&slower.certain)))
    };
    if !slower.possible.is_empty() {
        let hint = if comparison.rounds.is_empty() { "a smaller --precision tells" } else { "longer runs tell" };
        text.push_str(&wrapped(&format!(
            "may be slower by more than {limit}, as their intervals reach beyond it: {}; {hint}",
            listed(&slower.possible)
        )));
    }
    text
}

/// `80123 ± 0.6 %`.
pub(super) fn shown(figure: Figure, unit: FigureUnit) -> String {
    let value = bare(figure.estimate, unit);
    let Some(interval) = figure.estimate.interval else { return value };
    match unit {
        FigureUnit::PerSecond | FigureUnit::MbPerSecond | FigureUnit::Microseconds if figure.is_known() => {
            match figure.estimate.precision() {
                Some(share) if share >= 1.0 => format!("{value} ± over 100 %"),
                None => super::calibration::latency(figure.estimate),
                Some(_) => format!("{value} {}", quantity::precision(figure.estimate)),
            }
        }
        // The range between two values that were tried.
        _ => interval.high.map_or_else(
            || value.clone(),
            |high| format!("{value} to {}", bare(Estimate { value: high, interval: None }, unit)),
        ),
    }
}

fn bare(estimate: Estimate, unit: FigureUnit) -> String {
    match unit {
        FigureUnit::Microseconds => Nanos::from_micros_f64(estimate.value).to_string(),
        FigureUnit::Share => super::soak::share(estimate.value),
        _ if estimate.value < 99.95 && estimate.value.fract() > 0.0 => format!("{:.1}", estimate.value),
        _ => format!("{:.0}", estimate.value),
    }
}

/// `0.832 [0.826, 0.838]`.
pub(super) fn ratio(change: &Change) -> String {
    let digits = |value: f64| match value {
        ..10.0 => format!("{value:.3}"),
        ..1000.0 => format!("{value:.1}"),
        _ => "over 1000".into(),
    };
    match change.interval {
        Some(Limits { low, high }) => {
            let high = high.map_or_else(|| "?".into(), digits);
            format!("{} [{}, {high}]", digits(change.ratio), digits(low))
        }
        None => digits(change.ratio),
    }
}

fn judged(change: Change) -> String {
    let words = match change.judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::NoDifferenceShown => "no difference shown",
        Judgement::NotKnown => "not known",
    };
    format!("{:<24}{words}", ratio(&change))
}

fn word(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::NoDifferenceShown => "=",
        Judgement::NotKnown => "?",
    }
}

/// The end of a name that is too long, because names of runs differ at the end.
fn shortened(name: &str, width: usize) -> String {
    let length = name.chars().count();
    if length <= width {
        return name.into();
    }
    let end: String = name.chars().skip(length - (width - 1)).collect();
    format!("…{end}")
}

/// Wraps a sentence.
fn wrapped(sentence: &str) -> String {
    table::wrapped("", sentence, 2, WIDTH)
}
