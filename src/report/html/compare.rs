//! The page of a comparison: the verdict, each figure with its ratio, the overlaid curves, distributions and rounds of
//! all runs, and the conditions that differ.

use super::distribution::Chosen;
use super::page::{Axis, Block, Conclusion, Headline, Lines, Page, Plot, Section, Series, Shape, Status, Table, Unit};
use super::soak::{Thin, thinned};
use super::throughput::{self, At, Group, first_classes};
use super::{distribution, setup, words};
use crate::analyse::{
    self, Change, Comparison, Course, Judgement, Limits, LoadChange, PointSummary, Row, Scope, Subject,
    summarise_within,
};
use crate::model::{Finding, FindingName, Severity, Step};
use crate::record::PointRecord;
use crate::record::journal::Run;
use crate::report::comparison;

/// Maximum number of figures in large type.
const FIGURES_MAX: usize = 4;

/// Maximum number of quantities drawn over time: iostat has hundreds.
const PANELS_MAX: usize = 12;

/// The page of these runs, with `found` as their comparison; the first run is the baseline.
#[must_use]
pub fn compared(runs: &[(&Run, &Subject)], found: &Comparison) -> Page {
    let names = found.names.join(", ");
    Page {
        title: format!("{names}: rigel compare"),
        heading: format!("rigel compare of {names}"),
        conclusion: conclusion(found),
        figures: figures(found),
        sections: sections(runs, found),
    }
}

fn conclusion(found: &Comparison) -> Conclusion {
    let sentences: Vec<String> = found
        .verdicts
        .iter()
        .map(|verdict| {
            let text = comparison::verdict(found, verdict);
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            // On a page the verdict comes first, so the warnings are below it.
            let text = text
                .replace("; headline figures judged", ". Headline figures judged")
                .replace(" the runs have warnings, named above", ". The runs have warnings, named below");
            format!("{text}.")
        })
        .collect();
    let worse = found.verdicts.iter().any(|verdict| !verdict.worse.is_empty());
    let better = found.verdicts.iter().any(|verdict| !verdict.better.is_empty());
    let doubtful = found.verdicts.iter().any(|verdict| verdict.judged == 0) || !found.incomplete.is_empty();
    let status = match (worse, doubtful, better) {
        (true, ..) => Status::Bad,
        (_, true, _) => Status::Warning,
        (.., true) => Status::Good,
        _ => Status::Plain,
    };
    Conclusion { status, sentence: sentences.join(" ") }
}

/// The headline ratios of the first run after the baseline. Certain differences come first, because an imported series
/// may have dozens of figures.
fn figures(found: &Comparison) -> Vec<Headline> {
    let headlines = found.figures.iter().enumerate().filter(|(_, row)| row.headline);
    let with = headlines.filter_map(|(index, row)| Some((index, row, (*row.changes.first()?)?)));
    let mut with: Vec<(usize, &Row, Change)> = with.collect();
    let differs = |row: &Row| {
        found.verdicts.first().is_some_and(|it| it.worse.contains(&row.name) || it.better.contains(&row.name))
    };
    with.sort_by_key(|(_, row, _)| !differs(row));
    with.into_iter()
        .take(FIGURES_MAX)
        .map(|(index, row, change)| {
            let interval = change.interval.map_or_else(
                || words::UNKNOWN.to_string(),
                |Limits { low, high }| match high {
                    Some(high) => format!("{low:.3} to {high:.3}"),
                    None => format!("at least {low:.3}"),
                },
            );
            let [before, after] = [0, 1].map(|run| value(row, run));
            Headline {
                name: format!("figures.{index}.changes.0.ratio"),
                label: row.name.clone(),
                value: format!("× {:.3}", change.ratio),
                interval,
                note: format!("{}: {before} and {after}", word(change.judgement)),
                exact: change.ratio,
            }
        })
        .collect()
}

fn value(row: &Row, run: usize) -> String {
    let text = row.figures[run].map_or_else(|| "-".into(), |figure| comparison::shown(figure, row.unit));
    text.replace("us", " µs").replace("ms", " ms")
}

fn word(judgement: Judgement) -> &'static str {
    match judgement {
        Judgement::Better => "better",
        Judgement::Worse => "worse",
        Judgement::NoDifferenceShown => "no difference shown",
        Judgement::NotKnown => "not known",
    }
}

fn sections(runs: &[(&Run, &Subject)], found: &Comparison) -> Vec<Section> {
    let what = if found.rounds.is_empty() {
        "A greatest throughput is that of the best single depth here; a run's own page takes depths that are level \
         together."
    } else {
        "Medians are over rounds, with 95 % intervals that allow for neighbours that are alike; the rest is shown, not \
         judged."
    };
    let lead = format!("Each against {}, which is the baseline. {what}", found.names[0]);
    let mut sections = vec![words::section("figures", "Figures side by side", &lead, vec![Block::Table(table(found))])];
    let points: Vec<Vec<PointSummary>> = runs.iter().map(|(run, _)| points_of(run)).collect();
    sections.extend(drawn(runs, &points));
    sections.extend(over_time(runs));
    let records: Vec<Vec<PointRecord>> = runs.iter().map(|(run, _)| run.latest()).collect();
    let same_work = (1..runs.len()).all(|run| !found.is_of_other_work(run, Scope::Small));
    let shown = if same_work { chosen(runs, &records) } else { Vec::new() };
    let mut distributions = distribution::section(&shown);
    if let Some(section) = &mut distributions {
        section.lead = "The same load in each run: every operation is in these.".into();
    }
    sections.extend(distributions);
    sections.extend(loads(found));
    sections.push(conditions(found));
    sections.push(warnings(found));
    sections.push(commands(runs));
    sections
}

fn points_of(run: &Run) -> Vec<PointSummary> {
    let bound = run.header.request().bound();
    run.latest().iter().map(|record| summarise_within(record, bound)).collect()
}

fn table(found: &Comparison) -> Table {
    let mut columns = vec![String::new(), format!("#{}", found.names[0])];
    for name in &found.names[1..] {
        columns.extend([format!("#{name}"), "#ratio (95 % interval)".into(), String::new()]);
    }
    let rows = found.figures.iter().map(|row| {
        let mut cells = vec![row.name.clone(), value(row, 0)];
        for (at, change) in row.changes.iter().enumerate() {
            cells.push(value(row, at + 1));
            cells.extend(change.map_or_else(
                || ["-".into(), comparison::without_ratio(found, row, at + 1).into()],
                |change| [comparison::ratio(&change), word(change.judgement).into()],
            ));
        }
        cells
    });
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    words::rows("Figures of the runs as a whole", &columns, rows.collect())
}

/// The drawn loads of a run: small I/O in a closed loop, or an open loop.
fn curve_of(points: &[PointSummary]) -> Vec<At<'_>> {
    let closed = first_classes(points, |point| {
        point.step() == Step::Depth || point.coordinates.small_alone().is_some_and(|small| small > 0)
    });
    if closed.len() > 1 { closed } else { first_classes(points, |point| point.step() == Step::Rate) }
}

fn drawn(runs: &[(&Run, &Subject)], points: &[Vec<PointSummary>]) -> Option<Section> {
    let groups: Vec<Group<'_>> = runs
        .iter()
        .zip(points)
        .map(|((_, subject), points)| Group { name: &subject.name, loads: curve_of(points), shape: Shape::Line })
        .collect();
    let is_sql = points.iter().flatten().any(|point| point.sql.is_some());
    let mut chart = throughput::latency_chart(&groups, Vec::new(), if is_sql { "op/s" } else { "IOPS" })?;
    // A run has the same colour for its median and its p99.
    if let Plot::Lines(lines) = &mut chart.plot {
        for series in &mut lines.series {
            let run = runs.iter().position(|(_, subject)| series.name.starts_with(&format!("{} p", subject.name)));
            series.colour = run.and_then(colour);
        }
    }
    let lead =
        "All runs over each other. Whiskers are 95 % intervals: where they do not reach each other, the runs differ.";
    let blocks = throughput::beside([Some(chart)]).into_iter().collect();
    Some(words::section("latency-throughput", "Latency against throughput", lead, blocks))
}

/// The colour of a run in all charts.
fn colour(run: usize) -> Option<u8> {
    u8::try_from(run % 8).ok()
}

/// The unit of an axis.
fn axis_unit(unit: analyse::FigureUnit) -> Unit {
    match unit {
        analyse::FigureUnit::PerSecond => Unit::PerSecond,
        analyse::FigureUnit::MbPerSecond => Unit::MbPerSecond,
        analyse::FigureUnit::Microseconds => Unit::Microseconds,
        analyse::FigureUnit::Share => Unit::Share,
        analyse::FigureUnit::Outstanding | analyse::FigureUnit::Count | analyse::FigureUnit::Other => Unit::Number,
    }
}

/// All runs over time, each from its own start: one panel per quantity, one line per run.
fn over_time(runs: &[(&Run, &Subject)]) -> Option<Section> {
    let mut courses: Vec<(usize, &Course)> = runs
        .iter()
        .enumerate()
        .flat_map(|(run, (_, one))| one.over_time.courses.iter().map(move |course| (run, course)))
        .collect();
    // Quantities that are judged come first.
    courses.sort_by_key(|(_, course)| course.unit == analyse::FigureUnit::Other);
    let line = |(run, course): (usize, &Course)| Series {
        colour: colour(run),
        ..thinned(&runs[run].1.name, &course.values, |at| at.0, &|at| Some(at.1), Thin::Median)
    };
    let (mut panels, mut names): (Vec<Lines>, Vec<&str>) = (Vec::new(), Vec::new());
    for (_, course) in &courses {
        let is_same = |(_, other): &&(usize, &Course)| other.name == course.name && other.unit == course.unit;
        let same = || courses.iter().filter(is_same).copied();
        // A quantity of only one run cannot be compared.
        if names.contains(&course.name.as_str()) || same().count() < 2 {
            continue;
        }
        names.push(&course.name);
        let x = Axis { label: "since each began".into(), unit: Unit::Seconds, ..Axis::default() };
        let y = Axis { label: course.name.clone(), unit: axis_unit(course.unit), ..Axis::default() };
        panels.push(Lines { x, y, series: same().map(line).collect(), ..Lines::default() });
    }
    if panels.is_empty() {
        return None;
    }
    panels.truncate(PANELS_MAX);
    let description =
        format!("{} of {} runs, each from its own beginning.", names[..panels.len()].join(", "), runs.len());
    let left_out = match names.len() - panels.len() {
        0 => String::new(),
        more => format!(" {more} more quantities stand in the table above."),
    };
    let chart = throughput::chart("rounds", "All runs over each other", description, Plot::Stack { panels });
    let lead =
        format!("Each run from its own beginning. Of many rounds several share a point: their median.{left_out}");
    Some(words::section("timeline", "Rounds over time", &lead, vec![Block::Chart(Box::new(chart))]))
}

/// The lowest and the highest load that all runs have in common, for each run; empty if there is none.
fn chosen<'a>(runs: &[(&Run, &Subject)], records: &'a [Vec<PointRecord>]) -> Vec<Chosen<'a>> {
    let common: Vec<&PointRecord> = records.first().map_or_else(Vec::new, |first| {
        let everywhere = |record: &&PointRecord| {
            records.iter().all(|others| others.iter().any(|other| other.coordinates == record.coordinates))
        };
        let usable = |record: &&PointRecord| {
            matches!(record.coordinates.step(), Step::Depth | Step::Rate | Step::Cell)
                && record.coordinates.small_and_large().0 > 0
        };
        first.iter().filter(usable).filter(everywhere).collect()
    });
    let (Some(least), Some(most)) = (
        common.iter().min_by_key(|record| record.coordinates),
        common.iter().max_by_key(|record| (record.coordinates.small_and_large().1 == 0, record.coordinates)),
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
            let found = records.iter().find(|record| record.coordinates == coordinates);
            chosen.extend(found.map(|record| (format!("{}, {coordinates}", subject.name), record)));
        }
    }
    chosen
}

fn loads(found: &Comparison) -> Option<Section> {
    if found.points.is_empty() {
        return None;
    }
    let row = |point: &LoadChange| {
        let mut cells = vec![found.names[point.run].clone(), format!("{} {}", point.load, point.class)];
        cells.extend([point.iops, point.p50, point.p99].map(|change| {
            let said = |change: Change| format!("{} {}", comparison::ratio(&change), word(change.judgement));
            change.map_or_else(|| "-".into(), said)
        }));
        cells
    };
    let columns = ["run", "load", "#throughput", "#p50", "#p99"];
    let caption = format!("Ratio to {} at each load that both have", found.names[0]);
    let mut table = words::rows(&caption, &columns, found.points.iter().map(row).collect());
    table.folded = table.rows.len() > 14;
    let lead = "Each ratio is judged by its own interval: by chance alone one in 20 differs.";
    Some(words::section("loads", "Load by load", lead, vec![Block::Table(table)]))
}

fn conditions(found: &Comparison) -> Section {
    let rows: Vec<Vec<String>> = found
        .conditions
        .iter()
        .map(|it| {
            let left_out = it.not_compared.map_or("", comparison::figures_of);
            vec![found.names[it.run].clone(), it.name.into(), it.before.clone(), it.after.clone(), left_out.into()]
        })
        .collect();
    let (lead, blocks) = if rows.is_empty() {
        ("The runs were made under the same conditions.", Vec::new())
    } else {
        let before = found.names[0].clone();
        let columns = ["run", "condition", before.as_str(), "there", "not compared"];
        let table = words::rows("Conditions that differ", &columns, rows);
        ("What differs here may be why the figures do.", vec![Block::Table(table)])
    };
    words::section("conditions", "Conditions that differ", lead, blocks)
}

/// Warnings about the runs, by name; each run's own page has the details.
fn warnings(found: &Comparison) -> Section {
    let mut findings = Vec::new();
    for (run, name) in found.names.iter().enumerate() {
        findings.extend(comparison::not_told(found, run).map(|what| Finding::note(FindingName::Imported, what)));
        let hint = "let it go on for longer; shorter rounds, by --every, are more of them";
        findings.extend(
            comparison::without_intervals(found, run).map(|what| Finding::warning(FindingName::Rounds, what, hint)),
        );
        if found.incomplete.contains(&run) {
            let why = comparison::why_incomplete(found, run);
            let what = format!("{name} is not whole: {why}; what there is, is compared");
            findings.push(Finding::warning(FindingName::Incomplete, what, "resume it by --resume, or measure again"));
        }
        for (warning, times) in &found.warnings[run] {
            let times = if *times > 1 { format!(", in {times} places") } else { String::new() };
            let what = format!("{name} has this warning{times}");
            let hint = format!("`rigel report {name} --html` shows the details");
            findings.push(Finding { severity: Severity::Warning, name: warning.clone(), what, hint });
        }
    }
    let has_warnings = findings.iter().any(|finding| finding.severity != Severity::Note);
    let lead = if has_warnings { "What differs may be what is doubtful." } else { "No run has warnings." };
    let blocks = if findings.is_empty() { Vec::new() } else { vec![Block::Findings(findings)] };
    words::section("findings", "Warnings and notes", lead, blocks)
}

/// The command of each run.
fn commands(runs: &[(&Run, &Subject)]) -> Section {
    let mut blocks = Vec::new();
    for (run, Subject { name, .. }) in runs {
        let header = &run.header;
        let text = format!("{name}: {}, begun {}, by Rigel {}", header.facts.name, header.started, header.version);
        blocks.extend([Block::Text(text), Block::Code(setup::again(header))]);
    }
    let lead = "The commands that run them again, with the same random choices.";
    words::section("setup", "What was run", lead, blocks)
}
