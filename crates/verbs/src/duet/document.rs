//! The report of `rigel duet`.

use super::conclusion;
use super::result::{ArmResult, Compared, DuetResult};
use super::rounds::{DuetFigure, ROUNDS_LEAST};
use rigel_analyse::figures::quantity::rounded_percent;
use rigel_model::TargetFacts;
use rigel_model::record::journal::Run;
use rigel_report::columns::TableOf;
use rigel_report::document::{
    Axis, Block, Chart, Document, Headline, Lines, Plot, Section, Series, Unit,
};
use rigel_report::frame::about;
use rigel_report::points::{self, Units};
use rigel_report::{distribution, parts, setup};

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    found: &DuetResult,
    findings: Section,
    frame: Document,
) -> Document {
    let workload = parts::counted(found.arms.len() as u64, "arm");
    let visits: usize = found.arms.iter().map(|arm| arm.visits).sum();
    let measured = parts::counted(visits as u64, "visit");
    let units = Units::of(found.rate);
    let records = run.joined();
    let named = records
        .iter()
        .map(|record| (record.coordinates.to_string(), record));
    let mut sections = vec![parts::on_screen(arms(found)), findings];
    sections.extend(distribution::section(&named.collect::<Vec<_>>()));
    sections.push(points::section(run, &found.points, units));
    sections.extend(points::coverage(&found.points, &run.header.findings));
    sections.push(setup::section(&run.header, &workload));
    Document {
        about: about(&run.header, &workload, &measured),
        headlines: headlines(found),
        standing: places(run, found)
            .into_iter()
            .chain(frame.standing)
            .collect(),
        sections,
        ..frame
    }
}

/// `A is on ext4 of loop0, B on xfs of vda.`; `None` if all arms are on one.
fn places(run: &Run, found: &DuetResult) -> Option<String> {
    let facts = std::iter::once(&run.header.facts).chain(&run.header.facts_of_others);
    let places: Option<Vec<String>> = facts.map(place).collect();
    let places = places.filter(|places| places.len() == found.arms.len())?;
    let first = places.first()?;
    if places.iter().all(|place| place == first) {
        return None;
    }
    let each = found.arms.iter().zip(&places);
    let each: Vec<String> = each
        .map(|(arm, place)| format!("{} is on {place}", arm.arm))
        .collect();
    Some(format!("{}.", each.join(", ")))
}

/// `ext4 of loop0`: the filesystem and the disks of a target; `None` of what has no files.
fn place(facts: &TargetFacts) -> Option<String> {
    let member = facts.members.first()?;
    let disks: Vec<&str> = member
        .devices
        .iter()
        .map(|disk| disk.name.as_str())
        .collect();
    let disks = if disks.is_empty() {
        "an unknown device".into()
    } else {
        disks.join(" and ")
    };
    Some(match &member.filesystem {
        Some(filesystem) => format!("{filesystem} of {disks}"),
        None => disks,
    })
}

/// The arms, and how each stands against the first.
fn arms(found: &DuetResult) -> Section {
    let (table, offered) = match found.rate_per_s {
        None => (by_throughput(found), String::new()),
        Some(rate) => {
            let rate = parts::count(rate as f64);
            let said = format!(" Each is offered {rate} operations a second, at random times.");
            (by_response(found), said)
        }
    };
    let order = if found.together {
        "all at the same time"
    } else {
        "in random order"
    };
    let lead = format!(
        "Every round visits each arm once, {order}; a multiple of A's figure is that of the same \
         round.{offered} Intervals hold the truth at every moment of the run, all together, but for {} of \
         runs; a difference within ± {} is none.",
        rounded_percent(found.error.get()),
        rounded_percent(found.margin.get())
    );
    let charts = found.arms.iter().flat_map(|arm| {
        let compared = arm.against_first.iter();
        compared.map(move |of| chart(arm.arm, of))
    });
    let blocks = std::iter::once(table).chain(parts::beside(charts));
    parts::section("arms", "Arms", &lead, blocks.collect::<Vec<Block>>())
}

/// A row for each arm.
fn by_throughput(found: &DuetResult) -> Block {
    let table = TableOf::of("Arms", &found.arms)
        .text("arm", |arm| arm.arm)
        .text("is", |arm| arm.name.clone())
        .per_second(found.rate, |arm| arm.iops.value)
        .count("MB/s", |arm| arm.mb_per_s)
        .time("p50", |arm| arm.p50_us)
        .time("p99", |arm| arm.p99_us)
        .number("visits", |arm| arm.visits)
        .text("against A", |arm| {
            let of = arm.by(DuetFigure::Throughput);
            of.map_or_else(String::new, conclusion::change)
        })
        .text("answer", |arm| {
            let of = arm.by(DuetFigure::Throughput);
            of.map_or("", |of| conclusion::answer_word(found, of))
        });
    table.block()
}

/// A row for each arm and figure.
fn by_response(found: &DuetResult) -> Block {
    let figures = found.figures.iter();
    let rows: Vec<(&ArmResult, DuetFigure)> = figures
        .flat_map(|figure| found.arms.iter().map(|arm| (arm, *figure)))
        .collect();
    let table = TableOf::of("Arms", &rows)
        .text("arm", |(arm, _)| arm.arm)
        .text("is", |(arm, _)| arm.name.clone())
        .text("figure", |(_, figure)| figure.word())
        .time("time", |(arm, figure)| match figure {
            DuetFigure::P99 => arm.p99_us,
            DuetFigure::P50 | DuetFigure::Throughput => arm.p50_us,
        })
        .per_second(found.rate, |(arm, _)| arm.iops.value)
        .number("visits", |(arm, _)| arm.visits)
        .text("against A", |(arm, figure)| {
            let of = arm.by(*figure);
            of.map_or_else(String::new, conclusion::change)
        })
        // On a screen the sentence says it, and the times need the room.
        .text("answer", |(arm, figure)| {
            let of = arm.by(*figure);
            of.map_or("", |of| conclusion::answer_word(found, of))
        })
        .on_page();
    table.block()
}

/// The rounds of an arm, and what was known after each.
fn chart(arm: char, of: &Compared) -> Option<Chart> {
    let (last, figure) = (of.course.last()?, of.figure.word());
    let numbers =
        |from: usize, count: usize| (from..from + count).map(|round| round as f64).collect();
    let rounds = Series {
        name: "in one round".into(),
        faint: true,
        x: numbers(1, of.rounds.len()),
        y: of.rounds.iter().copied().map(Some).collect(),
        ..Series::default()
    };
    let together = Series {
        name: "all so far".into(),
        x: numbers(ROUNDS_LEAST, of.course.len()),
        y: of.course.iter().map(|so_far| Some(so_far.value)).collect(),
        band: of.course.iter().map(|so_far| so_far.interval).collect(),
        ..Series::default()
    };
    let lines = Lines {
        x: Axis {
            label: "round".into(),
            ..Axis::default()
        },
        y: Axis {
            label: format!("{figure} of {arm} as a multiple of A's"),
            ..Axis::default()
        },
        series: vec![together, rounds],
        ..Lines::default()
    };
    let description = format!(
        "{arm}: {} rounds, and the answer narrows to {}",
        of.rounds.len(),
        parts::Amount::new(*last, Unit::Change).in_cell()
    );
    let title = match of.figure {
        DuetFigure::Throughput => format!("{arm} against A, round by round"),
        DuetFigure::P50 | DuetFigure::P99 => format!("{figure} of {arm} against A, round by round"),
    };
    Some(parts::chart(
        &format!("rounds-{}-{figure}", arm.to_ascii_lowercase()),
        &title,
        description,
        Plot::Lines(lines),
    ))
}

fn headlines(found: &DuetResult) -> Vec<Headline> {
    let arms = found.arms.iter().enumerate().skip(1);
    let figures = arms.flat_map(|(at, arm)| {
        let compared = arm.against_first.iter().enumerate();
        compared.map(move |(number, of)| {
            let amount = parts::Amount::new(of.ratio, Unit::Change);
            let name = match of.figure {
                DuetFigure::Throughput => format!("{} against A", arm.arm),
                figure => format!("{} of {} against A", figure.word(), arm.arm),
            };
            parts::headline(
                &format!("duet.arms.{at}.against_first.{number}.ratio.value"),
                &name,
                of.ratio.value,
                amount.to_string(),
                amount.range(),
                conclusion::answer_word(found, of).into(),
            )
        })
    });
    figures.take(4).collect()
}
