//! The report of a comparison: conditions that differ, each figure with its ratio, the overlaid
//! curves, distributions and rounds of all runs.
//!
//! Input: journals that were read; the first is the baseline.

use super::columns::TableOf;
use super::distribution::Chosen;
use super::document::{
    Axis, Block, ChangeRow, Changes, Document, HEADLINES_MAX, Headline, Lines, Merge, Plot,
    Section, Series, Shape, Status, Table, Unit,
};
use super::parts::{self, Amount};
use super::soak::thinned;
use super::throughput::{self, At, Group, first_classes};
use super::{distribution, setup};
use rigel_analyse::{
    Change, ComparedSide, Comparison, Conclusion, Course, Estimate, Judgement, Limits, LoadChange,
    PointSummary, Row, RunTrust, Scope, Subject, summarise_within,
};
use rigel_model::record::PointRecord;
use rigel_model::record::journal::Run;
use rigel_model::{Bound, Finding, FindingWithCause, Step};
use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};

/// Maximum number of sides of which one figure is in large type.
const SIDES_MAX: usize = 8;

/// Maximum number of drawn changes.
const CHANGES_MAX: usize = 24;

/// Maximum number of quantities drawn over time: iostat has hundreds.
const PANELS_MAX: usize = 12;

/// The JSON report. Fields are only added, never renamed or removed.
#[derive(Serialize, JsonSchema)]
struct ComparisonReport<'a> {
    conclusion: Conclusion,
    trust: RunTrust,
    #[serde(flatten)]
    comparison: &'a Comparison,
    findings: Vec<FindingWithCause<'a>>,
}

/// The JSON Schema of [`json`].
pub fn schema() -> Schema {
    super::data::schema_of::<ComparisonReport>()
}

/// The comparison as one JSON document.
pub fn json(comparison: &Comparison) -> String {
    let (conclusion, findings) = (comparison.conclusion(), comparison.findings());
    super::data::document(&ComparisonReport {
        conclusion,
        trust: trust(comparison, &findings),
        comparison,
        findings: findings.iter().map(FindingWithCause::from).collect(),
    })
}

fn trust(comparison: &Comparison, findings: &[Finding]) -> RunTrust {
    let trust = RunTrust::of_each(findings.iter(), &[]);
    let mut imported = comparison.imported.keys();
    // A series has intervals whoever recorded it.
    if imported.any(|side| !comparison.rounds.contains_key(side)) {
        trust.unchecked()
    } else {
        trust
    }
}

/// The report of these runs and their `comparison`; the first run is the baseline.
pub fn document(runs: &[(&Run, &Subject)], comparison: &Comparison) -> Document {
    let sides: Vec<String> = comparison.sides.iter().map(named).collect();
    let names = sides.join(", ");
    Document {
        title: format!("{names}: rigel compare"),
        heading: format!("rigel compare of {names}"),
        about: about(comparison),
        conclusion: comparison.conclusion(),
        outcome: comparison.outcome(),
        headlines: figures(comparison),
        trust: Some(trust(comparison, &comparison.findings())),
        standing: Vec::new(),
        next: Vec::new(),
        sections: sections(runs, comparison),
    }
}

/// A side by its name; where that is a letter, with its first run.
fn named(side: &ComparedSide) -> String {
    match &side.runs[..] {
        [first, _, ..] => format!("{} ({}, …)", side.name, first.name),
        _ => side.name.clone(),
    }
}

/// Which side is the baseline, and the runs of each side if one has several.
fn about(comparison: &Comparison) -> String {
    let baseline = format!("{} is the baseline", comparison.names[0]);
    if comparison.is_of_single_runs() {
        return baseline;
    }
    let sides = comparison.sides.iter().map(|side| {
        let runs: Vec<&str> = side.runs.iter().map(|run| run.name.as_str()).collect();
        format!("{}: {}", side.name, runs.join(", "))
    });
    format!("{}; {baseline}", sides.collect::<Vec<_>>().join("; "))
}

/// The headline ratios of the first side after the baseline; of many sides, one figure of each. Certain
/// differences come first, because an imported series may have dozens of figures.
fn figures(comparison: &Comparison) -> Vec<Headline> {
    if let Some(index) = comparison.figure_of_many() {
        let row = &comparison.figures[index];
        let of_side = |(side, change): (usize, &Option<Change>)| {
            let change = (*change)?;
            Some(Headline {
                label: format!("{} of {}", row.name, comparison.names[side + 1]),
                ..ratio(index, row, side, (change, word(change.judgement)))
            })
        };
        let sides = row.changes.iter().enumerate().filter_map(of_side);
        return sides.take(SIDES_MAX).collect();
    }
    let headlines = comparison
        .figures
        .iter()
        .enumerate()
        .filter(|(_, row)| row.headline);
    let with = headlines.filter_map(|(index, row)| Some((index, row, (*row.changes.first()?)?)));
    let mut with: Vec<(usize, &Row, Change)> = with.collect();
    let differs = |row: &Row| {
        comparison
            .verdicts
            .first()
            .is_some_and(|it| it.worse.contains(&row.name) || it.better.contains(&row.name))
    };
    with.sort_by_key(|(_, row, _)| !differs(row));
    // One of many figures may differ by chance.
    let judged = |row: &Row, judgement: Judgement| match judgement {
        Judgement::Better if !differs(row) => "maybe better",
        Judgement::Worse if !differs(row) => "maybe worse",
        known => word(known),
    };
    with.into_iter()
        .take(HEADLINES_MAX)
        .map(|(index, row, change)| ratio(index, row, 0, (change, judged(row, change.judgement))))
        .collect()
}

/// A figure's ratio of the side after the baseline that has this index, and its judgement in words.
fn ratio(index: usize, row: &Row, side: usize, (change, judged): (Change, &str)) -> Headline {
    if row.unit.is_of_events() {
        return of_events(index, row, side, change);
    }
    let interval = match interval(&change) {
        none if none.is_empty() => parts::UNKNOWN.into(),
        known => known,
    };
    // The interval of the ratio is that of the difference; the table has each side's own.
    let [before, after] = [0, side + 1].map(|run| {
        parts::known(row.figures[run], |figure| {
            amount(figure, row.unit).to_string()
        })
    });
    Headline {
        name: format!("figures.{index}.changes.{side}.ratio"),
        label: row.name.clone(),
        value: format!("× {:.3}", change.ratio),
        interval,
        note: format!("{judged}: {before} and {after}"),
        exact: change.ratio,
        ..Headline::default()
    }
}

/// The figures of events, which may be none on one side: then there is no ratio.
fn of_events(index: usize, row: &Row, side: usize, change: Change) -> Headline {
    let run = side + 1;
    Headline {
        name: format!("figures.{index}.figures.{run}.value"),
        label: row.name.clone(),
        value: value(row, run),
        interval: String::new(),
        note: format!(
            "{}: {} in the baseline",
            word(change.judgement),
            value(row, 0)
        ),
        exact: row.figures[run].map_or(0.0, |figure| figure.value),
        ..Headline::default()
    }
}

fn value(row: &Row, run: usize) -> String {
    parts::known(row.figures[run], |figure| shown(figure, row.unit))
}

/// `80,123 ± 0.6 %`.
fn shown(figure: Estimate, unit: Unit) -> String {
    let value = amount(figure, unit);
    let Some(interval) = figure.interval else {
        return value.to_string();
    };
    match (figure.is_known(), figure.precision()) {
        (true, Some(share)) if share >= 1.0 => format!("{value} ± over 100 %"),
        (true, Some(_)) => format!("{value} {}", value.plus_minus()),
        (true, None) => value.in_cell(),
        // The range between two values that were tried.
        _ => interval.high.map_or_else(
            || value.to_string(),
            |high| format!("{value} to {}", amount(high.into(), unit)),
        ),
    }
}

/// A figure of a row, whose name says of what a rate is.
fn amount(estimate: Estimate, unit: Unit) -> Amount {
    let unit = match unit {
        Unit::PerSecond | Unit::MbPerSecond => Unit::Number,
        unit => unit,
    };
    Amount::new(estimate, unit)
}

/// A ratio: `0.832`.
fn digits(value: f64) -> String {
    match value {
        f64::INFINITY => "-".into(),
        ..10.0 => format!("{value:.3}"),
        ..1000.0 => format!("{value:.1}"),
        _ => "over 1000".into(),
    }
}

/// The interval of a ratio: `0.826 to 0.838`; empty if it is not known.
fn interval(change: &Change) -> String {
    match change.interval {
        Some(Limits {
            low,
            high: Some(high),
        }) => format!("{} to {}", digits(low), digits(high)),
        Some(Limits { low, high: None }) => format!("at least {}", digits(low)),
        None => String::new(),
    }
}

fn word(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::NoDifferenceShown => "no difference shown",
        Judgement::NotKnown => "not known",
    }
}

/// A judgement in a narrow column.
fn sign(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::NoDifferenceShown => "=",
        Judgement::NotKnown => "?",
        judgement => word(judgement),
    }
}

fn sections(runs: &[(&Run, &Subject)], comparison: &Comparison) -> Vec<Section> {
    let what = if comparison.rounds.is_empty() {
        "Stalls and the time stood still are of all points together."
    } else {
        "Medians are over rounds, with 95 % intervals that allow for similar neighbours; the rest \
         is not judged."
    };
    let lead = format!(
        "Ratios are to {}, the baseline. {what}",
        comparison.names[0]
    );
    let mut sections: Vec<Section> = changes(comparison).into_iter().collect();
    sections.push(parts::findings(&trust(comparison, &comparison.findings())));
    let points: Vec<Vec<PointSummary>> = runs.iter().map(|(run, _)| points_of(run)).collect();
    let colours = colours(runs, comparison);
    sections.extend(drawn(runs, &points, &colours));
    sections.extend(over_time(runs, &colours));
    let records: Vec<Vec<PointRecord>> = runs.iter().map(|(run, _)| run.joined()).collect();
    let same_work =
        (1..comparison.names.len()).all(|side| !comparison.is_of_other_work(side, Scope::Small));
    let shown = if same_work {
        chosen(runs, &records)
    } else {
        Vec::new()
    };
    let mut distributions = distribution::section(&shown);
    if let Some(section) = &mut distributions {
        section.lead = "The same load in each run, with all operations.".into();
    }
    sections.extend(distributions);
    sections.push(conditions(comparison));
    let figures = vec![Block::Table(table(comparison))];
    sections.push(parts::section(
        "figures",
        "Figures side by side",
        &lead,
        figures,
    ));
    sections.extend(each_run(comparison));
    sections.push(loads(comparison));
    sections.push(commands(runs));
    sections
}

fn points_of(run: &Run) -> Vec<PointSummary> {
    #[derive(Deserialize)]
    struct Asked {
        bound: Option<Bound>,
    }
    let invocation = &run.header.invocation;
    let asked: Option<Asked> = invocation.asked(&invocation.verb);
    let bound = asked.and_then(|asked| asked.bound);
    run.joined()
        .iter()
        .map(|record| summarise_within(record, bound))
        .collect()
}

/// The change of each figure whose interval is known; `None` if there is none.
fn changes(comparison: &Comparison) -> Option<Section> {
    let several = comparison.names.len() > 2;
    let rows = comparison.figures.iter().flat_map(|row| {
        let sides = row.changes.iter().zip(&comparison.names[1..]);
        sides.filter_map(move |(change, side)| {
            let change = (*change)?;
            Some(ChangeRow {
                name: if several {
                    format!("{}, {side}", row.name)
                } else {
                    row.name.clone()
                },
                ratio: change.ratio,
                band: change.interval?,
                judgement: word(change.judgement).into(),
                tone: tone(change.judgement),
            })
        })
    });
    let mut rows: Vec<ChangeRow> = rows.filter(|row| row.ratio.is_finite()).collect();
    // An imported series may have dozens: those that differ come first then.
    let all = rows.len();
    if all > CHANGES_MAX {
        rows.sort_by_key(|row| row.tone == Status::Plain);
        rows.truncate(CHANGES_MAX);
    }
    let left_out = match all - rows.len() {
        0 => String::new(),
        more => format!(" {more} more are in the table below."),
    };
    let differ = rows.iter().filter(|row| row.tone != Status::Plain).count();
    let description = format!(
        "{differ} of {} differ from {} by more than chance explains.{left_out}",
        rows.len(),
        comparison.names[0]
    );
    let plot = Plot::Changes(Changes { rows });
    let chart = parts::chart("changes-chart", "Change of each figure", description, plot);
    (all > 0).then(|| {
        let blocks = vec![Block::Chart(Box::new(chart))];
        parts::section("changes", "What differs", "", blocks)
    })
}

fn tone(judgement: Judgement) -> Status {
    match judgement {
        Judgement::Better => Status::Good,
        Judgement::Worse => Status::Bad,
        Judgement::NoDifferenceShown | Judgement::NotKnown => Status::Plain,
    }
}

/// One column for each run, with its ratio and the judgement of it.
fn table(comparison: &Comparison) -> Table {
    let several = comparison.names.len() > 2;
    let value = |row: &Row, run: usize| match row.figures[run] {
        // Their intervals are in the JSON report, and in comparisons of two.
        Some(figure) if several => amount(figure, row.unit).to_string(),
        _ => value(row, run),
    };
    let mut table = TableOf::of("Figures of the runs as a whole", &comparison.figures)
        .text("", |row| row.name.clone())
        .number(&comparison.names[0], |row| value(row, 0));
    for (at, name) in comparison.names[1..].iter().enumerate() {
        table = table
            .number(name, |row| value(row, at + 1))
            .number("ratio", |row| {
                parts::known(row.changes[at], |change| digits(change.ratio))
            })
            .text("95 % interval", |row| {
                row.changes[at].map_or_else(String::new, |change| interval(&change))
            })
            .on_page_if(several)
            .text("", |row| match row.changes[at] {
                Some(change) if several => sign(change.judgement),
                Some(change) => word(change.judgement),
                None => comparison.without_ratio(row, at + 1),
            });
    }
    table.table()
}

/// The figures of each run, if some side has several. Wide tables are shown on a page only.
fn each_run(found: &Comparison) -> Option<Section> {
    if found.is_of_single_runs() {
        return None;
    }
    let runs = || found.sides.iter().flat_map(|side| &side.runs);
    let figures = found
        .figures
        .iter()
        .map(|row| (row, row.runs.iter().flatten().collect()));
    let mut table = TableOf::of("Figures of each run", figures)
        .text("", |(row, _): &(&Row, Vec<_>)| row.name.clone());
    for (at, run) in runs().enumerate() {
        table = table.number(&run.name, |(row, figures)| {
            parts::known(*figures[at], |figure| amount(figure, row.unit).to_string())
        });
    }
    let lead = "What a side's figure is the geometric mean of; stalls are added up.";
    Some(parts::section(
        "runs",
        "Run by run",
        lead,
        vec![table.block()],
    ))
}

/// The drawn loads of a run: small I/O in a closed loop, or an open loop.
fn curve_of(points: &[PointSummary]) -> Vec<At<'_>> {
    let closed = first_classes(points, |point| {
        point.step() == Step::Depth
            || point
                .coordinates
                .small_alone()
                .is_some_and(|small| small > 0)
    });
    if closed.len() > 1 {
        closed
    } else {
        first_classes(points, |point| point.step() == Step::Rate)
    }
}

fn drawn(
    runs: &[(&Run, &Subject)],
    points: &[Vec<PointSummary>],
    colours: &[Option<u8>],
) -> Option<Section> {
    let groups: Vec<Group<'_>> = runs
        .iter()
        .zip(points)
        .map(|((_, subject), points)| Group {
            name: &subject.name,
            loads: curve_of(points),
            shape: Shape::Line,
        })
        .collect();
    let is_sql = points.iter().flatten().any(|point| point.sql.is_some());
    let mut chart =
        throughput::latency_chart(&groups, Vec::new(), if is_sql { "op/s" } else { "IOPS" })?;
    // A side has the same colour for the medians and the p99 of all its runs.
    if let Plot::Lines(lines) = &mut chart.plot {
        for series in &mut lines.series {
            let run = runs
                .iter()
                .position(|(_, subject)| series.name.starts_with(&format!("{} p", subject.name)));
            series.colour = run.and_then(|run| colours[run]);
        }
    }
    let lead = "All runs in one chart. Whiskers are 95 % intervals: where they do not overlap, \
                the runs differ.";
    let blocks = parts::beside([Some(chart)]).into_iter().collect();
    Some(parts::section(
        "latency-throughput",
        "Latency against throughput",
        lead,
        blocks,
    ))
}

/// The colours of the runs in all charts: those of one side have one colour.
fn colours(runs: &[(&Run, &Subject)], comparison: &Comparison) -> Vec<Option<u8>> {
    let of_run = |(index, (_, subject)): (usize, &(&Run, &Subject))| {
        let is_own = |side: &ComparedSide| side.runs.iter().any(|run| run.name == subject.name);
        let side = comparison.sides.iter().position(is_own).unwrap_or(index);
        u8::try_from(side % 8).ok()
    };
    runs.iter().enumerate().map(of_run).collect()
}

/// All runs over time, each from its own start: one panel per quantity, one line per run.
fn over_time(runs: &[(&Run, &Subject)], colours: &[Option<u8>]) -> Option<Section> {
    let mut courses: Vec<(usize, &Course)> = runs
        .iter()
        .enumerate()
        .flat_map(|(run, (_, one))| {
            one.over_time
                .courses
                .iter()
                .map(move |course| (run, course))
        })
        .collect();
    // Quantities that are judged come first.
    courses.sort_by_key(|(_, course)| course.unit == Unit::Other);
    let line = |(run, course): (usize, &Course)| Series {
        colour: colours[run],
        ..thinned(
            &runs[run].1.name,
            &course.values,
            |at| at.0,
            &|at| Some(at.1),
            Merge::Median,
        )
    };
    let (mut panels, mut names): (Vec<Lines>, Vec<&str>) = (Vec::new(), Vec::new());
    for (_, course) in &courses {
        let is_same =
            |(_, other): &&(usize, &Course)| other.name == course.name && other.unit == course.unit;
        let same = || courses.iter().filter(is_same).copied();
        // A quantity of only one run cannot be compared.
        if names.contains(&course.name.as_str()) || same().count() < 2 {
            continue;
        }
        names.push(&course.name);
        let x = Axis {
            label: "since the start of each".into(),
            unit: Unit::Seconds,
            ..Axis::default()
        };
        let y = Axis {
            label: course.name.clone(),
            unit: match course.unit {
                Unit::Other => Unit::Number,
                unit => unit,
            },
            ..Axis::default()
        };
        panels.push(Lines {
            x,
            y,
            series: same().map(line).collect(),
            ..Lines::default()
        });
    }
    if panels.is_empty() {
        return None;
    }
    panels.truncate(PANELS_MAX);
    let description = format!(
        "{} of {} runs, each from its own start.",
        names[..panels.len()].join(", "),
        runs.len()
    );
    let left_out = match names.len() - panels.len() {
        0 => String::new(),
        more => format!(" {more} more quantities are in the tables."),
    };
    let chart = parts::chart(
        "rounds",
        "All runs in one chart",
        description,
        Plot::Stack { panels },
    );
    let lead = format!(
        "Each run from its own start. If there are many rounds, several share a point: their \
         median.{left_out}"
    );
    Some(parts::section(
        "timeline",
        "Rounds over time",
        &lead,
        vec![Block::Chart(Box::new(chart))],
    ))
}

/// The lowest and the highest load that all runs have in common, for each run; empty if there is
/// none.
fn chosen<'a>(runs: &[(&Run, &Subject)], records: &'a [Vec<PointRecord>]) -> Vec<Chosen<'a>> {
    let common: Vec<&PointRecord> = records.first().map_or_else(Vec::new, |first| {
        let everywhere = |record: &&PointRecord| {
            records.iter().all(|others| {
                others
                    .iter()
                    .any(|other| other.coordinates == record.coordinates)
            })
        };
        let usable = |record: &&PointRecord| {
            matches!(
                record.coordinates.step(),
                Step::Depth | Step::Rate | Step::Cell
            ) && record.coordinates.small_and_large().0 > 0
        };
        first.iter().filter(usable).filter(everywhere).collect()
    });
    let (Some(least), Some(most)) = (
        common.iter().min_by_key(|record| record.coordinates),
        common.iter().max_by_key(|record| {
            (
                record.coordinates.small_and_large().1 == 0,
                record.coordinates,
            )
        }),
    ) else {
        return Vec::new();
    };
    let mut wanted = vec![least.coordinates];
    if most.coordinates != least.coordinates {
        wanted.push(most.coordinates);
    }
    let mut chosen = Vec::new();
    for coordinates in wanted {
        for ((_, subject), records) in runs.iter().zip(records) {
            let record = records
                .iter()
                .find(|record| record.coordinates == coordinates);
            chosen
                .extend(record.map(|record| (format!("{}, {coordinates}", subject.name), record)));
        }
    }
    chosen
}

/// The ratios at each load that a run shares with the baseline; a sentence if it shares none.
fn loads(found: &Comparison) -> Section {
    let several = found.names.len() > 2;
    let load = |point: &&LoadChange| {
        let mut others = found.points.iter().filter(|other| other.run == point.run);
        if others.any(|other| other.is_beside(point)) {
            format!("{} {}", point.load, point.class)
        } else {
            point.load.clone()
        }
    };
    let ratio = |change: Option<Change>| {
        parts::known(change, |change| {
            let interval = Some(interval(&change)).filter(|text| !text.is_empty() && !several);
            let interval = interval.map_or_else(String::new, |interval| format!(" ({interval})"));
            let judgement = match change.judgement {
                Judgement::NoDifferenceShown => "=",
                Judgement::NotKnown => "?",
                judgement => word(judgement),
            };
            format!("{}{interval} {judgement}", digits(change.ratio))
        })
    };
    let caption = format!("Ratio to {} at each load that both have", found.names[0]);
    let table = TableOf::of(&caption, &found.points)
        .text("run", |point| found.names[point.run].clone())
        .on_page_if(!several)
        .text("load", load)
        .text("throughput", |point| ratio(point.iops))
        .text("p50", |point| ratio(point.p50))
        .text("p99", |point| ratio(point.p99))
        .folded_if(found.points.len() > 14);
    let mut blocks = vec![table.block()];
    let changes = || {
        found
            .points
            .iter()
            .flat_map(|point| [point.iops, point.p50, point.p99])
            .flatten()
    };
    let judged = changes()
        .filter(|change| change.judgement != Judgement::NotKnown)
        .count();
    let different = changes()
        .filter(|change| matches!(change.judgement, Judgement::Better | Judgement::Worse))
        .count();
    if judged > 0 {
        blocks.push(Block::Text(format!(
            "= no difference shown, ? not known. {different} of {judged} ratios differ, each \
             judged by its own interval; by chance alone one in 20 does."
        )));
    }
    for run in (1..found.names.len()).filter(|_| found.rounds.is_empty()) {
        if found.points.iter().all(|point| point.run != run) {
            blocks.push(Block::Text(format!(
                "{} and {} have no load in common.",
                found.names[run], found.names[0]
            )));
        }
    }
    parts::section("loads", "Load by load", "", blocks)
}

/// What differs between the conditions of the runs.
fn conditions(found: &Comparison) -> Section {
    let several = found.names.len() > 2;
    let there = if several { "there" } else { &found.names[1] };
    let table = TableOf::of("Conditions that differ", &found.conditions)
        .text("run", |it| found.names[it.run].clone())
        .on_page_if(!several)
        .text("condition", |it| it.name)
        .text(&found.names[0], |it| it.before.clone())
        .text(there, |it| it.after.clone())
        .text("not compared", |it| it.not_compared.map_or("", figures_of));
    let mut blocks = vec![];
    for run in 1..found.names.len() {
        if found
            .conditions
            .iter()
            .all(|condition| condition.run != run)
        {
            let (name, baseline) = (&found.names[run], &found.names[0]);
            blocks.push(Block::Text(format!(
                "{name} was made under the same conditions as {baseline}."
            )));
        }
    }
    blocks.push(table.block());
    let lead = "A condition that differs may be why figures differ.";
    parts::section("conditions", "Conditions", lead, blocks)
}

/// Figures in words: `figures of small I/O`.
fn figures_of(scope: Scope) -> &'static str {
    match scope {
        Scope::Small => "figures of small I/O",
        Scope::Large => "figures of large I/O",
        Scope::Log => "figures of log writes",
        Scope::All => "all figures",
    }
}

/// The command of each run.
fn commands(runs: &[(&Run, &Subject)]) -> Section {
    let mut blocks = Vec::new();
    for (run, Subject { name, .. }) in runs {
        let header = &run.header;
        let text = format!(
            "{name}: {}, begun {}, by Rigel {}",
            header.facts.name, header.started, header.version
        );
        blocks.extend([Block::Text(text), Block::Code(setup::again(header))]);
    }
    let lead = "The commands that repeat them, with the same seeds.";
    parts::section("setup", "What was run", lead, blocks)
}
