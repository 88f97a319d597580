//! The report of imported figures: loads and time series of other tools.
//!
//! A figure that the tool does not report is `-`, and a note below the table explains what is
//! missing.

use super::conclusion::{are_alike, series_value};
use super::result::ImportedResult;
use super::sweep;
use rigel_analyse::{
    ImportedSummary, KNEE_MARGIN, LatencyFigure, LoadFigures, ReportedKnee, SeriesSummary, ShownIn,
    demand_at_least, quantity,
};
use rigel_model::record::Histogram;
use rigel_model::record::imported::Figures;
use rigel_model::record::journal::Run;
use rigel_model::{Moment, Resolution};
use rigel_report::columns::{TableOf, pairs};
use rigel_report::csv::CsvTable;
use rigel_report::document::{
    Axis, Block, Document, HEADLINES_MAX, Headline, Lines, Mark, Plot, Section, Series, Shape, Unit,
};
use rigel_report::{claimed, database, distribution, parts, soak};

/// Megabytes in a mebibyte.
const MIB: f64 = 1.048_576;

/// Maximum number of drawn series: iostat has hundreds.
const DRAWN_MAX: usize = 12;

/// Maximum number of overlaid distributions.
const DISTRIBUTIONS_MAX: usize = 4;

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    result: &ImportedResult,
    findings: Section,
    frame: Document,
) -> Document {
    let header = &run.header;
    let mut document = Document {
        about: format!(
            "imported {} by Rigel {}; not measured by Rigel",
            header.started, header.version
        ),
        ..frame
    };
    document.standing.extend(at_least(result));
    if let Some(series) = &result.series {
        document = soak::of_series(series, document);
    } else if let Some(found) = &result.database {
        document.sections.push(findings);
        let loads = result.sources.iter().flat_map(|one| &one.loads);
        // Of spools, loads are of reads, of updates and of both: a curve is of one of them.
        let kind = loads.clone().next().map(|load| &load.kind);
        let loads: Vec<&LoadFigures> = loads.filter(|load| Some(&load.kind) == kind).collect();
        document
            .sections
            .extend(curve(&loads, result.knee.as_ref()));
        document = database::complete(run, found, document);
    } else {
        document.sections.push(findings);
        document.sections.extend(claimed::section(&result.claims));
        add_figures(&mut document, run, result);
    }
    let lead = "These figures were not measured by Rigel.";
    // The loads of a scale-up series are of the reports that stand before them.
    let is_own = |one: &&ImportedSummary| !one.is_of_sessions();
    let own = result.sources.iter().filter(is_own);
    let blocks = own.flat_map(source_facts).collect();
    document.sections.push(parts::section(
        "source",
        "Where it comes from",
        lead,
        blocks,
    ));
    document
}

/// Says that the demand in the sentence may have been more; `None` if nothing speaks for it.
fn at_least(result: &ImportedResult) -> Option<String> {
    let database = result.database.as_ref()?;
    let (busiest, _) = database.demands[database.main_demand()?].busiest()?;
    demand_at_least(busiest)
}

/// Adds the loads, distributions and series of all sources.
fn add_figures(document: &mut Document, run: &Run, result: &ImportedResult) {
    let sources = &result.sources;
    let loads: Vec<&LoadFigures> = sources.iter().flat_map(|one| &one.loads).collect();
    let series: Vec<&SeriesSummary> = sources.iter().flat_map(|one| &one.series).collect();
    document.headlines = match result.best() {
        Some((place, load)) => headlines(&place, load),
        None if are_alike(series.iter().copied()) => series_headlines(sources),
        None => Vec::new(),
    };
    let sections = &mut document.sections;
    let knee = result.knee.as_ref();
    let of_sweep = sweep::section(&loads).map(|mut section| {
        section.blocks.extend(knee.map(knee_block));
        section
    });
    sections.extend(of_sweep.or_else(|| curve(&loads, knee)));
    sections.extend(distributions(run));
    sections.extend(over_time(&series));
    if !loads.is_empty() {
        let mut blocks = vec![table(&loads)];
        let with_loads = sources.iter().filter(|one| !one.loads.is_empty());
        blocks.extend(with_loads.map(|source| Block::Text(not_reported(source))));
        sections.push(parts::section(
            "loads",
            "Every load",
            "As the tool reports it.",
            blocks,
        ));
    }
    if !series.is_empty() {
        let lead = "Each series with its minimum and maximum, and when they were.";
        sections.push(parts::section(
            "series",
            "Every series",
            lead,
            vec![series_table(&series)],
        ));
    }
}

/// The figures of a load; `place` is its path in the JSON report.
fn headlines(place: &str, best: &LoadFigures) -> Vec<Headline> {
    // A cell of Orion's is its own load.
    let load = if best.label == best.load {
        best.label.clone()
    } else {
        format!("{}, {}", best.label, best.load)
    };
    let name = |figure: &str| format!("{place}.{figure}");
    [
        best.iops
            .map(|iops| parts::rate(&name("iops"), "max IOPS", iops.into(), load.clone())),
        best.mib_per_s.map(|mib| {
            let value = parts::mb_per_second(mib * MIB);
            parts::headline(
                &name("mib_per_s"),
                "throughput there",
                mib,
                value,
                String::new(),
                load.clone(),
            )
        }),
        best.latency
            .p50_us
            .map(|p50| parts::latency(&name("p50_us"), "p50 there", p50.into(), load.clone())),
        best.latency
            .p99_us
            .map(|p99| parts::latency(&name("p99_us"), "p99 there", p99.into(), load.clone())),
        best.at_least_us
            .filter(|_| best.latency.p99_us.is_none())
            .map(|end| {
                let value = format!("at least {}", parts::time(end));
                parts::headline(
                    &name("at_least_us"),
                    "p99 there",
                    end,
                    value,
                    String::new(),
                    load.clone(),
                )
            }),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The first series with their medians.
fn series_headlines(sources: &[ImportedSummary]) -> Vec<Headline> {
    let numbered = sources.iter().enumerate().flat_map(|(file, source)| {
        let series = source.series.iter().enumerate();
        series.map(move |(at, series)| (format!("imported.{file}.series.{at}.median"), series))
    });
    let headline = |(name, series): (String, &SeriesSummary)| {
        let median = series.median?;
        let value = |value: f64| series_value(value, &series.unit);
        let range = series.least.zip(series.greatest);
        let range = range.map_or_else(String::new, |((least, _), (most, _))| {
            format!("median; {} to {}", value(least), value(most))
        });
        let (label, value) = (&series.name, value(median));
        Some(parts::headline(
            &name,
            label,
            median,
            value,
            String::new(),
            range,
        ))
    };
    numbered.filter_map(headline).take(HEADLINES_MAX).collect()
}

/// Latency against throughput, if there are at least two loads.
fn curve(loads: &[&LoadFigures], knee: Option<&ReportedKnee>) -> Option<Section> {
    // Many tools report only means.
    let figures =
        std::iter::once(LatencyFigure::Mean).chain(LatencyFigure::shown_in(ShownIn::Lines));
    let series = figures.filter_map(|figure| {
        let mut points: Vec<(f64, f64, String)> = loads
            .iter()
            .filter_map(|load| Some((load.iops?, load.latency.get(figure)?, load.label.clone())))
            .collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        (points.len() > 1).then(|| Series {
            name: figure.label().into(),
            shape: Shape::Points,
            x: points.iter().map(|point| point.0).collect(),
            y: points.iter().map(|point| Some(point.1)).collect(),
            labels: points.into_iter().map(|point| point.2).collect(),
            ..Series::default()
        })
    });
    let series: Vec<Series> = series.collect();
    let mut lines = parts::latency_over_iops(series);
    if lines.series.is_empty() {
        return None;
    }
    lines.marks.extend(knee.map(|knee| Mark {
        at: knee.iops,
        upright: true,
        label: format!("knee, {}", knee.label),
        ..Mark::default()
    }));
    let description = format!("Each of {} loads that the tool reports.", loads.len());
    let chart = parts::chart(
        "imported-curve",
        "Latency against throughput",
        description,
        Plot::Lines(lines),
    );
    let lead = "Points are not joined: they may be of different work.";
    Some(parts::section(
        "latency-throughput",
        "Latency",
        lead,
        std::iter::once(Block::Chart(Box::new(chart)))
            .chain(knee.map(knee_block))
            .collect(),
    ))
}

fn knee_block(knee: &ReportedKnee) -> Block {
    Block::Text(knee_in_words(knee))
}

fn knee_in_words(knee: &ReportedKnee) -> String {
    let place = format!(
        "{}: {} at a mean of {}",
        knee.label,
        quantity::per_second(knee.iops),
        quantity::time(knee.mean_us)
    );
    let same = KNEE_MARGIN * 100.0;
    if knee.is_reached {
        format!(
            "Knee: {place}. More load only waits longer; rates within {same:.0} % count as the \
             same, because a load that was measured once has no interval."
        )
    } else if knee.is_highest {
        format!("The throughput still rises at the highest load, {place}: the knee lies beyond.")
    } else {
        format!(
            "The throughput is the same from this load on, and so is the mean, so that something \
             else than storage limits it: {place}."
        )
    }
}

/// Distributions of response times, for loads whose tool reports a histogram.
fn distributions(run: &Run) -> Option<Section> {
    let points = run.imported.iter().flat_map(|one| match &one.figures {
        Figures::Loads(points) => points.as_slice(),
        Figures::Series(_) | Figures::Database(_) | Figures::Claims(_) => &[],
    });
    let flows = points.flat_map(|point| point.flows.iter().map(move |flow| (point, flow)));
    let all: Vec<(String, Histogram)> = flows
        .filter_map(|(point, flow)| {
            let of = |name: &str| {
                flow.latencies
                    .iter()
                    .find(|it| it.of == name && it.histogram.is_some())
            };
            let histogram = of("total")
                .or_else(|| of("completion"))?
                .histogram
                .clone()?;
            (histogram.count() > 0).then(|| (format!("{}, {}", point.label, flow.kind), histogram))
        })
        .collect();
    let drawn: Vec<(&str, Histogram)> = all
        .iter()
        .take(DISTRIBUTIONS_MAX)
        .map(|(name, histogram)| (name.as_str(), histogram.clone()))
        .collect();
    let mut section = distribution::of_histograms(&drawn)?;
    section.lead = if drawn.len() < all.len() {
        format!(
            "{} of {} loads, from the tool's own bins.",
            drawn.len(),
            all.len()
        )
    } else {
        "From the tool's own bins.".into()
    };
    Some(section)
}

fn over_time(all: &[&SeriesSummary]) -> Option<Section> {
    let drawn = || {
        all.iter()
            .filter(|series| series.samples.len() > 1)
            .take(DRAWN_MAX)
    };
    let first = drawn().next()?.samples.first()?.begin;
    let panel = |series: &&SeriesSummary| Lines {
        x: Axis {
            label: "time".into(),
            unit: Unit::Moment,
            ..Axis::default()
        },
        y: Axis {
            label: match series.unit.as_str() {
                "" => series.name.clone(),
                unit => format!("{}, {unit}", series.name),
            },
            unit: Unit::Number,
            ..Axis::default()
        },
        series: vec![Series {
            name: series.name.clone(),
            x: series
                .samples
                .iter()
                .map(|sample| soak::wall(sample.begin, first))
                .collect(),
            y: series.samples.iter().map(|sample| sample.value).collect(),
            ..Series::default()
        }],
        ..Lines::default()
    };
    let panels: Vec<Lines> = drawn().map(panel).collect();
    if panels.is_empty() {
        return None;
    }
    let lead = if drawn().count() < all.len() {
        format!(
            "{} of {} series; the table below has all.",
            panels.len(),
            all.len()
        )
    } else {
        String::new()
    };
    let description = format!("{} series on one axis of time.", panels.len());
    let chart = parts::chart(
        "imported-series",
        "Over time",
        description,
        Plot::Stack { panels },
    );
    Some(parts::section(
        "timeline",
        "Timeline",
        &lead,
        vec![Block::Chart(Box::new(chart))],
    ))
}

fn table(loads: &[&LoadFigures]) -> Block {
    TableOf::of("Loads; - is what the tool does not report", loads)
        .text("name", |load| load.label.clone())
        .text("load", |load| load.load.clone())
        .text("kind", |load| load.kind.clone())
        .number("size", |load| parts::known(load.io_bytes, parts::size))
        .count("IOPS", |load| load.iops)
        .count("MB/s", |load| load.mib_per_s.map(|mib| mib * MIB))
        .times(ShownIn::Pages, |load, figure| load.latency.get(figure))
        .number("outstanding by Little's law", |load| {
            parts::known(load.littles_law, |law| format!("{law:.2}"))
        })
        .block()
}

/// Explains which figures the tool does not report.
fn not_reported(found: &ImportedSummary) -> String {
    let tool = &found.tool;
    let lacks = |of: fn(&LoadFigures) -> bool| found.loads.iter().any(of);
    let mut missing = vec![format!(
        "{tool} does not report single seconds, so there is no confidence interval and no check \
         for a steady state; nor which blocks it touched"
    )];
    if lacks(|load| load.iops.is_some() && load.class != "large" && load.latency.mean_us.is_none())
    {
        missing.push("nor the latency of some loads".into());
    }
    if let Some(end) = found.loads.iter().find_map(|load| load.at_least_us) {
        missing.push(format!(
            "nor percentiles from {} on, where its histogram ends: a - stands for at least that",
            parts::time(end)
        ));
    }
    if lacks(|load| {
        load.latency.mean_us.is_some()
            && load.latency.p99_us.is_none()
            && load.at_least_us.is_none()
    }) {
        missing.push("nor the percentiles of some loads".into());
    }
    if lacks(|load| load.quantiles_of.as_deref() == Some("completion")) {
        missing.push(
            "percentiles are of completion (clat), without the time to submit: \
             --lat_percentiles=1 includes it"
                .into(),
        );
    }
    format!(
        "Not reported in {}: {}.",
        files(&found.sources),
        missing.join("; ")
    )
}

fn series_table(all: &[&SeriesSummary]) -> Block {
    let when = |series: &SeriesSummary, value: Option<(f64, Moment)>| {
        let steps = series.samples.windows(2);
        let step = steps.map(|two| two[1].begin.since(two[0].begin) as f64);
        let resolution = Resolution::of_steps(step.fold(f64::INFINITY, f64::min));
        parts::known(value, |(value, at)| {
            format!("{} at {}", parts::count(value), at.shown(resolution))
        })
    };
    TableOf::of("Series", all)
        .text("series", |series| series.name.clone())
        .text("unit", |series| series.unit.clone())
        .number("samples", |series| series.samples.len())
        .number("median", |series| parts::known(series.median, parts::count))
        .text("minimum", |series| when(series, series.least))
        .text("maximum", |series| when(series, series.greatest))
        .folded_if(all.len() > DRAWN_MAX)
        .block()
}

/// The names of files, or the first and the last of many.
fn files(names: &[String]) -> String {
    const NAMED_MAX: usize = 8;
    match names {
        [first, .., last] if names.len() > NAMED_MAX => {
            format!("{} files, {first} to {last}", names.len())
        }
        _ => names.join(", "),
    }
}

/// What a file says about itself, and notes about reading it.
fn source_facts(source: &ImportedSummary) -> Vec<Block> {
    let mut facts = vec![
        ("files".to_string(), files(&source.sources)),
        ("written by".into(), source.tool_and_version()),
    ];
    facts.extend(source.reported.iter().cloned());
    let mut blocks = vec![pairs(
        "What the file says about itself",
        ["", "value"],
        facts,
    )];
    blocks.extend(source.notes.iter().map(|note| Block::Text(note.clone())));
    blocks
}

/// The report as CSV: one line for each kind of each load, or one line per sample of a series.
/// Columns are read by their names.
pub(super) fn csv(result: &ImportedResult) -> String {
    let sources = &result.sources;
    let mut text = String::new();
    if sources.iter().any(|one| !one.loads.is_empty()) {
        text.push_str(&loads_csv(sources));
    }
    if sources.iter().any(|one| !one.series.is_empty()) {
        text.push_str(&series_csv(sources));
    }
    if let Some(found) = &result.database {
        text = database::csv(found);
    }
    text
}

/// One line for each kind of each load.
fn loads_csv(sources: &[ImportedSummary]) -> String {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let rows = sources
        .iter()
        .flat_map(|one| one.loads.iter().map(move |load| (one, load)));
    CsvTable::of(rows)
        .text("source", |(one, _)| source(one))
        .text("tool", |(one, _)| &one.tool)
        .text("job", |(_, load)| &load.label)
        .text("load", |(_, load)| &load.load)
        .text("like", move |(_, load)| text(&load.like))
        .text("class", |(_, load)| &load.class)
        .text("kind", |(_, load)| &load.kind)
        .maybe("io_bytes", |(_, load)| load.io_bytes)
        .figure("seconds", |(_, load)| load.seconds)
        .maybe("done", |(_, load)| load.done)
        .figure("iops", |(_, load)| load.iops)
        .figure("mib_per_s", |(_, load)| load.mib_per_s)
        .times(|(_, load), figure| load.latency.get(figure))
        .text("quantiles_of", move |(_, load)| text(&load.quantiles_of))
        .figure("littles_law", |(_, load)| load.littles_law)
        .maybe("processes", |(_, load)| load.processes)
        .into_text()
}

/// One line for each sample.
fn series_csv(found: &[ImportedSummary]) -> String {
    let rows = found.iter().flat_map(|one| {
        let series = one.series.iter();
        series.flat_map(move |series| {
            series
                .samples
                .iter()
                .map(move |sample| (one, series, sample))
        })
    });
    CsvTable::of(rows)
        .text("source", |(one, ..)| source(one))
        .text("tool", |(one, ..)| &one.tool)
        .text("series", |(_, series, _)| &series.name)
        .text("unit", |(_, series, _)| &series.unit)
        .value("begin", |(.., sample)| sample.begin)
        .figure("seconds", |(.., sample)| sample.seconds)
        .figure("value", |(.., sample)| sample.value)
        .figure("count", |(.., sample)| sample.count)
        .into_text()
}

/// The first file with these figures.
fn source(one: &ImportedSummary) -> &str {
    one.sources.first().map_or("", String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::ImportRequest;
    use crate::{Evaluated, Verb, golden, screen};
    use rigel_analyse::{Judgement, TrustLevel, compare};
    use rigel_import::{Source, csv_columns::Columns, read};

    use rigel_model::record::journal::Header;
    use rigel_model::record::journal::{EngineChoice, FORMAT};
    use rigel_model::{Host, Layout, Target, TargetFacts};
    use rigel_report::document::Extent;
    use rigel_report::{compare as comparison, text};

    fn evaluated(run: Run) -> Evaluated {
        Evaluated::of(run).unwrap()
    }

    fn run(files: &[(&str, &str)]) -> Run {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source { name, text })
            .collect();
        let imported = read(&sources, None, &Columns::default()).unwrap();
        let header = Header {
            format: FORMAT,
            version: "0.1.0".into(),
            started: "2026-01-02T03:04:05+00:00".into(),
            command: vec!["import".into()],
            target: Target::Paths {
                members: Vec::new(),
                layout: Layout::Concat,
            },
            engine: EngineChoice {
                name: imported[0].tool.clone(),
                buffered: false,
                verify: false,
            },
            engine_about: String::new(),
            points: Vec::new(),
            invocation: ImportRequest::default().invocation(),
            host: Host::default(),
            facts_of_others: Vec::new(),
            facts: TargetFacts {
                name: files[0].0.into(),
                ..TargetFacts::default()
            },
            findings: Vec::new(),
            ranks: None,
            says_end: false,
        };
        Run {
            imported,
            ..Run::begun(header)
        }
    }

    fn fio() -> Run {
        let files = [
            (
                "depth8.json",
                include_str!("../../../../tests/imports/fio_depth8_plus.json"),
            ),
            (
                "each.json",
                include_str!("../../../../tests/imports/fio_each.json"),
            ),
            (
                "mixed.json",
                include_str!("../../../../tests/imports/fio_mixed_lat.json"),
            ),
            (
                "nolat.json",
                include_str!("../../../../tests/imports/fio_nolat.json"),
            ),
        ];
        run(&files)
    }

    fn series() -> Run {
        let files = [
            (
                "cloud-day.csv",
                include_str!("../../../../docs/examples/cloud-day.csv"),
            ),
            (
                "iostat.txt",
                include_str!("../../../../tests/imports/iostat_iso.txt"),
            ),
        ];
        run(&files)
    }

    fn awr() -> Run {
        run(&[(
            "awr_synthetic.html",
            include_str!("../../../../tests/imports/awr_synthetic.html"),
        )])
    }

    #[test]
    fn reports_look_as_they_should() {
        for (name, run) in [("fio", fio()), ("series", series()), ("awr", awr())] {
            let run = evaluated(run);
            let text = |extent| text::render(&run.document(), extent);
            screen::must_fit(&text(Extent::Screen));
            golden::check(&format!("imported/{name}.txt"), &text(Extent::Screen));
            golden::check(&format!("imported/{name}.verbose.txt"), &text(Extent::Full));
            golden::check(&format!("imported/{name}.csv"), &run.results.csv());
        }
    }

    #[test]
    fn a_rac_is_shown_first_by_its_sum_whose_reason_is_said_once() {
        let of_instance = |number: u32| {
            include_str!("../../../../tests/imports/awr_synthetic.txt")
                .replace(
                    "synth1              1",
                    &format!("synth{number}              {number}"),
                )
                .replace("SYNTH/synth1", &format!("SYNTH/synth{number}"))
                .replace("11.2.0.4.0  NO", "11.2.0.4.0  YES")
        };
        let (one, two) = (of_instance(1), of_instance(2));
        let rac = evaluated(run(&[("awr_one.txt", &one), ("awr_two.txt", &two)]));
        let shown = |extent| text::render(&rac.document(), extent);
        let screen = shown(Extent::Screen);
        let table = screen.lines().find(|line| line.starts_with("random reads"));
        let rate = table.unwrap().split_whitespace().nth(2).unwrap();
        assert!(screen.contains(&format!("{rate} random reads")), "{screen}");
        let reason = "waited for single-block reads (2 of 2 instances have such waits).";
        let full = shown(Extent::Full);
        let full = full.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(full.matches(reason).count(), 1, "{full}");
    }

    #[test]
    fn the_answer_has_each_kind_of_figures_of_several_files() {
        let cloud = include_str!("../../../../docs/examples/cloud-day.csv");
        let fio = include_str!("../../../../tests/imports/fio_three.json");
        let log =
            "0, 123456, 0, 8192, 0, 0\n1000, 223456, 0, 8192, 0, 0\n2000, 150000, 0, 8192, 0, 0\n";
        let files = [
            ("here/cloud-day.csv", cloud),
            ("fio.json", fio),
            ("x_lat.1.log", log),
        ];
        let said = evaluated(run(&files)).conclusion().sentence;
        for part in [
            "cloud-day.csv: Not predictable: throughput fell by 93 %",
            "fio 3.33 reports 3 loads: the maximum is 22,659 writes per second",
            ": lat has a median of",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let two = [("one.csv", cloud), ("two.csv", cloud)];
        let evaluated = evaluated(run(&two));
        let text = text::render(&evaluated.document(), Extent::Screen);
        for verdict in ["one.csv: Not predictable", "two.csv: Not predictable"] {
            assert!(text.contains(verdict), "{text}");
        }
    }

    #[test]
    fn only_what_can_be_checked_is_called_good() {
        let level = |files: &[(&str, &str)]| evaluated(run(files)).trust().level;
        let fio = include_str!("../../../../tests/imports/fio_three.json");
        let awr = include_str!("../../../../tests/imports/awr_synthetic.txt");
        assert_eq!(level(&[("fio.json", fio)]), TrustLevel::NotChecked);
        assert_ne!(level(&[("awr.txt", awr)]), TrustLevel::NotChecked);
    }

    #[test]
    fn a_log_of_latencies_has_its_figures() {
        let log =
            "0, 123456, 0, 8192, 0, 0\n1000, 223456, 0, 8192, 0, 0\n2000, 150000, 0, 8192, 0, 0\n";
        let run = evaluated(run(&[("x_lat.1.log", log)]));
        let text = text::render(&run.document(), Extent::Screen);
        screen::must_fit(&text);
        for label in ["lat ", "p50 ", "p99 ", "max "] {
            let row = text.lines().find(|line| line.starts_with(label));
            assert!(row.is_some_and(|row| row.contains("µs")), "{text}");
        }
    }

    #[test]
    fn a_scale_up_series_of_reports_is_compared_by_sessions() {
        let text = include_str!("../../../../tests/imports/awr_synthetic.txt");
        let files = [
            ("awr.txt.1", text),
            ("awr.txt.4", text),
            ("awr.txt.16", text),
        ];
        let (one, other) = (evaluated(run(&files)), evaluated(run(&files)));
        let found = compare(&[one.subject("one"), other.subject("other")], None);
        let points: Vec<String> = found.points.iter().map(|row| row.load.clone()).collect();
        assert_eq!(points.len(), 3, "{points:?}");
        let said = text::render(&one.document(), Extent::Full);
        assert_eq!(said.matches("  AWR\n").count(), 1, "{said}");
    }

    #[test]
    fn only_a_throughput_is_judged_as_one() {
        let mut run = run(&[(
            "cloud-day.csv",
            include_str!("../../../../docs/examples/cloud-day.csv"),
        )]);
        let said = |run: &Run| text::render(&evaluated(run.clone()).document(), Extent::Full);
        assert!(said(&run).contains("throughput fell by 93 %"));
        let Figures::Series(all) = &mut run.imported[0].figures else {
            panic!("no series")
        };
        all[0].unit = "ms".into();
        let found = ImportedResult::of(&run.imported);
        let said = said(&run);
        assert!(
            found.series.is_none() && !said.contains("/s") && !said.contains("throughput"),
            "{said}"
        );
    }

    #[test]
    fn json_has_what_was_imported() {
        let report: serde_json::Value = serde_json::from_str(&evaluated(series()).json()).unwrap();
        assert_eq!(
            report["imported"][0]["series"][0]["samples"][0]["value"],
            6272.0
        );
        assert_eq!(
            report["imported"][0]["series"][0]["samples"][0]["begin"],
            "2016-04-23T10:17:00+00:00"
        );
        assert_eq!(report["points"], serde_json::json!([]));
    }

    #[test]
    fn two_imports_are_compared_without_a_verdict() {
        let one = evaluated(run(&[(
            "depth8.json",
            include_str!("../../../../tests/imports/fio_depth8_plus.json"),
        )]));
        let slower = include_str!("../../../../tests/imports/fio_depth8_plus.json")
            .replace("55479.76012", "27739.88006");
        let other = evaluated(run(&[("slower.json", slower.as_str())]));
        let found = compare(&[one.subject("one"), other.subject("other")], None);
        let change = found.points[0].iops.unwrap();
        assert!(
            (change.ratio - 0.5).abs() < 1e-9
                && change.judgement == Judgement::NotKnown
                && change.interval.is_none()
        );
        let said = text::render(&comparison::document(&[], &found), Extent::Full);
        assert!(
            said.contains("other was measured by fio 3.33: what it does not report")
                && said.contains("not known"),
            "{said}"
        );
    }

    #[test]
    fn a_listing_alone_shows_every_event_and_no_row_of_dashes() {
        let run = run(&[(
            "pasted.txt",
            "EVENT                          WAIT_TIME_MICRO WAIT_COUNT\n\
             ------------------------------ --------------- ----------\n\
             enq: TX - row lock contention          1048576        400\n\
             db file sequential read                   1024        750\n\
             db file sequential read                   8192        250\n",
        )]);
        let document = evaluated(run).document();
        let said = text::render(&document, Extent::Full);
        let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
        for part in [
            "db file sequential read in pasted.txt: of 1,000 waits half took < 1,024 µs, 99 % < 8,192 µs, the \
             longest < 8,192 µs; 75 % up to 1,024 µs, 25 % from 4,096 µs to 8,192 µs.",
            "enq: TX - row lock contention",
        ] {
            assert!(words.contains(part), "{part}: {said}");
        }
        // What is said to stand below does, on one screen, too.
        let screen = text::render(&document, Extent::Screen);
        let below = screen.split("1 other distribution below.").nth(1);
        assert!(
            below.is_some_and(|below| below.contains("enq: TX - row lock contention")),
            "{screen}"
        );
        let is_bucket = |line: &str| {
            let words = line.split_whitespace().take(5);
            words.eq(["up", "to", "8,192", "µs", "250"])
        };
        assert!(said.lines().any(is_bucket), "{said}");
        let is_blank = |line: &str| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.iter().filter(|word| **word == "-").count() > 2
        };
        assert!(!said.lines().any(is_blank), "{said}");
    }

    #[test]
    fn orions_cells_are_compared_by_cell() {
        let files = [
            (
                "o_iops.csv",
                include_str!("../../../../tests/golden/classic/simple_iops.csv"),
            ),
            (
                "o_mbps.csv",
                include_str!("../../../../tests/golden/classic/simple_mbps.csv"),
            ),
            (
                "o_summary.txt",
                include_str!("../../../../tests/golden/classic/simple_summary.txt"),
            ),
        ];
        let (one, other) = (evaluated(run(&files)), evaluated(run(&files)));
        let found = compare(&[one.subject("one"), other.subject("other")], None);
        assert_eq!(found.points.len(), 7);
        assert!(
            found.conditions.is_empty() && found.figures.iter().any(|row| row.name == "max MB/s")
        );
    }

    fn iostat(devices: &[&str]) -> String {
        let head = "Linux 6.1.0 (db1) \t2026-05-14 \t_x86_64_\t(4 CPU)\n\n\n";
        let report = |second: u32| {
            let rows: String = devices.iter().flat_map(|row| [*row, "\n"]).collect();
            format!(
                "2026-05-14T10:00:{second}+0000\nDevice r/s rkB/s r_await aqu-sz %util\n{rows}\n"
            )
        };
        format!("{head}{}", [10, 20].map(report).concat())
    }

    #[test]
    fn a_device_that_lies_over_others_names_them() {
        let said = |devices: &[&str]| {
            let text = iostat(devices);
            evaluated(run(&[("iostat.txt", &text)]))
                .conclusion()
                .sentence
        };
        let (upper, lower) = (
            "dm-0 1389.00 5556.00 1.00 1.39 50.0",
            "sda 246.00 984.00 1.00 0.25 9.0",
        );
        let both = said(&[lower, upper]);
        assert!(
            both.contains("dm-0 is made of other devices") && both.contains("sda (at most 246/s)"),
            "{both}"
        );
        let disk = upper.replace("dm-0", "sdb");
        assert!(!said(&[lower, &disk]).contains("made of"));
    }

    #[test]
    fn a_time_in_whole_milliseconds_has_its_limits() {
        let text = iostat(&["sda 800 3200 1 1 50"]);
        let said = evaluated(run(&[("iostat.txt", &text)]))
            .conclusion()
            .sentence;
        assert!(
            said.contains("in 1.00 ms (500 µs to 1.50 ms) on average"),
            "{said}"
        );
    }

    #[test]
    fn a_sync_and_a_censored_percentile_are_the_figures_of_their_loads() {
        let headlines = |text: &str| {
            let document = evaluated(run(&[("fio.json", text)])).document();
            let labels = document.headlines.into_iter();
            labels.map(|one| (one.label, one.value)).collect::<Vec<_>>()
        };
        let of = |text: &str, label: &str| {
            let all = headlines(text);
            all.iter().find(|one| one.0 == label).unwrap().1.clone()
        };
        let sync = include_str!("../../../../tests/imports/fio_fdatasync.json");
        assert_eq!(of(sync, "p99 there"), "14.1 ms");
        let end = include_str!("../../../../tests/imports/fio_saturated_histogram.json");
        assert_eq!(of(end, "p99 there"), "at least 17.1 s");
        let apart = include_str!("../../../../tests/imports/fio_two_runtimes.json");
        assert_eq!(of(apart, "max IOPS"), "2,000");
    }
}
