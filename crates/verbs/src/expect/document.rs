//! The report of `rigel expect`.

use super::conclusion;
use super::request::ExpectRequest;
use super::result::{ExpectResult, ExpectedLine, words};
use rigel_analyse::{BoundVerdict, Conclusion};
use rigel_model::record::journal::Run;
use rigel_report::columns::TableOf;
use rigel_report::document::{Document, HEADLINES_MAX, Headline, Section};
use rigel_report::frame::about;
use rigel_report::points::{self, Units};
use rigel_report::{distribution, parts, setup, timeline};

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    found: &ExpectResult,
    findings: Section,
    frame: Document,
) -> Document {
    let workload = parts::counted(found.lines.len() as u64, "expectation");
    let measured = parts::counted(found.points.len() as u64, "load");
    let units = Units::of("IOPS");
    let records = run.joined();
    let named = records
        .iter()
        .map(|record| (record.coordinates.to_string(), record));
    let mut sections = vec![parts::on_screen(lines(run, found)), findings];
    sections.extend(distribution::section(&named.collect::<Vec<_>>()));
    sections.extend(timeline::section(run, units));
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

/// The lines, those that decide the outcome first.
pub(crate) fn lines(run: &Run, found: &ExpectResult) -> Section {
    let mut ranked: Vec<&ExpectedLine> = found.lines.iter().collect();
    ranked.sort_by_key(|line| match line.outcome {
        BoundVerdict::Broken => 0,
        BoundVerdict::NotMeasured => 1,
        BoundVerdict::Undecided => 2,
        BoundVerdict::Kept => 3,
    });
    let table = TableOf::of("Expectations", ranked)
        .text("outcome", |line| {
            format!("{} {}", line.outcome.mark(), words(line.outcome))
        })
        .text("expected", |line| line.condition)
        .text("measured", |line| conclusion::figure(line))
        .number("operations", |line| parts::count(line.operations as f64))
        .text("", |line| match line.outcome {
            BoundVerdict::Undecided => conclusion::more(line),
            _ => String::new(),
        });
    let request: Option<ExpectRequest> = run.header.invocation.asked("expect");
    let profiles = request.map_or_else(Vec::new, |request| request.profiles);
    let sources = profiles
        .iter()
        .filter(|from| !from.source.is_empty() || !from.date.is_empty())
        .map(|from| {
            let of = [&from.source, &from.date].map(String::as_str);
            let known: Vec<&str> = of.into_iter().filter(|text| !text.is_empty()).collect();
            format!(" {} by {}.", from.name, known.join(", "))
        });
    let moment = if found.is_sequential {
        " at every moment of the run"
    } else {
        ""
    };
    let lead = format!(
        "Intervals hold the truth{moment}, all together, but for {} of runs.{}",
        parts::percent(found.error.get()),
        sources.collect::<String>()
    );
    parts::section("expectations", "Expectations", &lead, vec![table.block()])
}

fn headlines(found: &ExpectResult) -> Vec<Headline> {
    let lines = found.lines.iter().enumerate();
    let figures = lines.filter_map(|(at, line)| {
        let figure = line.figure?;
        let amount = conclusion::amount(line, figure);
        let headline = parts::headline(
            &format!("expect.lines.{at}.figure.value"),
            &line.condition.to_string(),
            figure.value,
            amount.to_string(),
            amount.range(),
            format!("{} {}", line.outcome.mark(), words(line.outcome)),
        );
        Some(Headline {
            tone: Conclusion::of_outcome(line.outcome).status,
            ..headline
        })
    });
    figures.take(HEADLINES_MAX).collect()
}
