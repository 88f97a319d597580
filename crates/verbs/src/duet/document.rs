//! The report of `rigel duet`.

use super::conclusion;
use super::result::{ArmResult, DuetResult};
use super::rounds::ROUNDS_LEAST;
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
        sections,
        ..frame
    }
}

/// The arms, and how each stands against the first.
fn arms(found: &DuetResult) -> Section {
    let table = TableOf::of("Arms", &found.arms)
        .text("arm", |arm| arm.arm)
        .text("is", |arm| arm.name.clone())
        .per_second(found.rate, |arm| arm.iops.value)
        .count("MB/s", |arm| arm.mb_per_s)
        .time("p50", |arm| arm.p50_us)
        .time("p99", |arm| arm.p99_us)
        .number("visits", |arm| arm.visits)
        .text("against A", |arm| {
            let of = arm.against_first.as_ref();
            of.map_or_else(String::new, conclusion::change)
        })
        .text("answer", |arm| {
            arm.against_first.map_or("", |of| of.answer.word())
        });
    let lead = format!(
        "Every round visits each arm once, in random order; a multiple of A's throughput is that of the \
         same round. Intervals hold the truth at every moment of the run, all together, but for {} of \
         runs; a difference within ± {} is none.",
        conclusion::percent(found.error),
        conclusion::percent(found.margin)
    );
    let charts = found.arms.iter().skip(1).map(chart);
    let blocks = std::iter::once(table.block()).chain(parts::beside(charts));
    parts::section("arms", "Arms", &lead, blocks.collect::<Vec<Block>>())
}

/// The rounds of an arm, and what was known after each.
fn chart(arm: &ArmResult) -> Option<Chart> {
    let last = arm.course.last()?;
    let numbers =
        |from: usize, count: usize| (from..from + count).map(|round| round as f64).collect();
    let rounds = Series {
        name: "in one round".into(),
        faint: true,
        x: numbers(1, arm.rounds.len()),
        y: arm.rounds.iter().copied().map(Some).collect(),
        ..Series::default()
    };
    let together = Series {
        name: "all so far".into(),
        x: numbers(ROUNDS_LEAST, arm.course.len()),
        y: arm.course.iter().map(|of| Some(of.value)).collect(),
        band: arm.course.iter().map(|of| of.interval).collect(),
        ..Series::default()
    };
    let lines = Lines {
        x: Axis {
            label: "round".into(),
            ..Axis::default()
        },
        y: Axis {
            label: format!("throughput of {} as a multiple of A's", arm.arm),
            ..Axis::default()
        },
        series: vec![together, rounds],
        ..Lines::default()
    };
    let description = format!(
        "{}: {} rounds, and the answer narrows to {}",
        arm.arm,
        arm.rounds.len(),
        parts::Amount::new(*last, Unit::Change).in_cell()
    );
    let title = format!("{} against A, round by round", arm.arm);
    Some(parts::chart(
        &format!("rounds-{}", arm.arm.to_ascii_lowercase()),
        &title,
        description,
        Plot::Lines(lines),
    ))
}

fn headlines(found: &DuetResult) -> Vec<Headline> {
    let arms = found.arms.iter().enumerate().skip(1);
    let figures = arms.filter_map(|(at, arm)| {
        let of = arm.against_first?;
        let amount = parts::Amount::new(of.ratio, Unit::Change);
        Some(parts::headline(
            &format!("duet.arms.{at}.against_first.ratio.value"),
            &format!("{} against A", arm.arm),
            of.ratio.value,
            amount.to_string(),
            amount.range(),
            of.answer.word().into(),
        ))
    });
    figures.take(4).collect()
}
