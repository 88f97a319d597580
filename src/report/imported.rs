//! Imported figures as text and as CSV, and as a subject of comparisons.
//!
//! A figure that the tool does not report is `-`, and a note below the table explains what is missing.

use super::comparison::warnings_in;
use super::csv::Table;
use super::soak;
use super::table;
use crate::analyse::summaries;
use crate::analyse::{ImportedResult, ImportedSummary, LoadFigures, OverTime, Scope, SeriesSummary, Subject, Term};
use crate::model::{Bytes, Moment, Nanos, Ratio};
use crate::record::imported::{Figures, LoadPoint, ReportedLoad};
use crate::record::journal::Run;
use std::fmt::Write;

/// Maximum width of the text.
const WIDTH: usize = 120;
/// Maximum number of listed series; iostat has hundreds.
const SERIES_MAX: usize = 60;

/// The heading, and the figures.
pub(super) fn parts(run: &Run, result: &ImportedResult) -> (String, String) {
    let header = &run.header;
    let imported =
        format!("imported {} by Rigel {}; nothing here was measured by it\n", header.started, header.version);
    let mut text = String::new();
    for (index, found) in result.sources.iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&heading(found));
        if !found.loads.is_empty() {
            text.push_str(&loads(&found.loads));
            text.push_str(&wrapped("not reported", &not_told(found)));
        }
        if !found.series.is_empty() {
            text.push_str(&series(&found.series));
        }
        for note in &found.notes {
            text.push_str(&wrapped("note", note));
        }
    }
    if let Some(series) = &result.series {
        text.push('\n');
        text.push_str(&soak::series(series));
    }
    (imported, text)
}

fn heading(found: &ImportedSummary) -> String {
    let version = found.version.as_ref().map_or_else(String::new, |version| format!(" {version}"));
    let mut text = wrapped(&format!("{}{version}", found.tool), &found.sources.join(", "));
    for (name, value) in &found.told {
        text.push_str(&wrapped(name, value));
    }
    text.push('\n');
    text
}

/// `name: words`, wrapped.
fn wrapped(name: &str, words: &str) -> String {
    if words.is_empty() { String::new() } else { table::wrapped(&format!("{name}:"), words, 2, WIDTH) }
}

fn loads(loads: &[LoadFigures]) -> String {
    let label = loads.iter().map(|load| load.label.chars().count()).max().unwrap_or(0).clamp(3, 20);
    let load = loads.iter().map(|load| load.load.chars().count()).max().unwrap_or(0).clamp(4, 26);
    let mut text = format!(
        "{:<label$} {:<load$} {:<5} {:>8} {:>9} {:>8} {:>7} {:>7} {:>7} {:>7} {:>7}  by Little\n",
        "job", "load", "kind", "size", "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9", "max"
    );
    let time = |us: Option<f64>| us.map_or_else(|| "-".into(), |us| Nanos::from_micros_f64(us).to_string());
    for one in loads {
        let number = |value: Option<f64>, decimals: usize| {
            value.map_or_else(|| "-".into(), |value| format!("{value:.decimals$}"))
        };
        let size = one.io_bytes.map_or_else(|| "-".into(), |bytes| Bytes(bytes.into()).to_string());
        let [mean, p50, p99, p999, max] = [one.mean_us, one.p50_us, one.p99_us, one.p999_us, one.max_us].map(time);
        let _ = writeln!(
            text,
            "{:<label$} {:<load$} {:<5} {size:>8} {:>9} {:>8} {mean:>7} {p50:>7} {p99:>7} {p999:>7} {max:>7}  {}",
            shortened(&one.label, label),
            shortened(&one.load, load),
            one.kind,
            number(one.iops, 0),
            number(one.mib_per_s, 1),
            number(one.littles_law, 2)
        );
    }
    text + "by Little: operations outstanding, reckoned from IOPS and the mean\n"
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width { text.into() } else { text.chars().take(width - 1).chain(['…']).collect() }
}

/// Explains which figures the tool does not report.
fn not_told(found: &ImportedSummary) -> String {
    let tool = &found.tool;
    let lacks = |of: fn(&LoadFigures) -> bool| found.loads.iter().any(of);
    let mut parts = vec![format!(
        "{tool} tells no seconds one by one, so no interval of confidence and no steadiness; nor which blocks it touched"
    )];
    if lacks(|load| load.iops.is_some() && load.class != "large" && load.mean_us.is_none()) {
        parts.push("of some loads it tells no latency".into());
    }
    if lacks(|load| load.mean_us.is_some() && load.p99_us.is_none()) {
        parts.push("of some loads no percentiles".into());
    }
    if lacks(|load| load.quantiles_of.as_deref() == Some("completion")) {
        parts.push(
            "percentiles are of completion (clat), without the time to submit: --lat_percentiles=1 has it in".into(),
        );
    }
    parts.join("; ")
}

fn series(series: &[SeriesSummary]) -> String {
    let width = series.iter().map(|one| one.name.chars().count()).max().unwrap_or(0).clamp(6, 36);
    let mut text = String::new();
    if let (Some(begin), Some(end)) =
        (series.iter().filter_map(|one| one.begin).min(), series.iter().filter_map(|one| one.end).max())
    {
        let _ = writeln!(text, "from {} to {}", begin.short(), end.short());
    }
    let _ = writeln!(
        text,
        "{:<width$} {:<9} {:>6} {:>11} {:>11} {:<18} {:>11} since",
        "series", "unit", "n", "median", "least", "since", "greatest"
    );
    for one in series.iter().take(SERIES_MAX) {
        let figure = |value: Option<f64>| value.map_or_else(|| "-".into(), bare);
        let extreme = |value: Option<(f64, Moment)>| {
            (figure(value.map(|value| value.0)), value.map_or_else(String::new, |value| value.1.short()))
        };
        let ((least, least_at), (greatest, greatest_at)) = (extreme(one.least), extreme(one.greatest));
        let _ = writeln!(
            text,
            "{:<width$} {:<9} {:>6} {:>11} {least:>11} {least_at:<18} {greatest:>11} {greatest_at}",
            shortened(&one.name, width),
            if one.unit.is_empty() { "-" } else { &one.unit },
            one.samples.len(),
            figure(one.median)
        );
    }
    if series.len() > SERIES_MAX {
        let _ = writeln!(text, "and {} more, told by --format csv and json", series.len() - SERIES_MAX);
    }
    text
}

/// Formats a value with two decimals where they are significant, and with more for very small values.
fn bare(value: f64) -> String {
    if value.abs() >= 1000.0 || value.fract() == 0.0 {
        format!("{value:.0}")
    } else if value.abs() < 0.1 {
        three_digits(value)
    } else {
        format!("{value:.2}")
    }
}

/// Three significant digits of a value below a hundred, without trailing zeros: `31.5`, `0.03`, `0.00123`.
pub(super) fn three_digits(value: f64) -> String {
    // Differences below a billionth are meaningless for counted values.
    let decimals = (1..9).find(|decimals| value.abs() * 10f64.powi(*decimals) >= 99.95).unwrap_or(9);
    let text = format!("{value:.0$}", usize::try_from(decimals).unwrap_or(0));
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The report as CSV: one line for each kind of each load, or one line per sample of a series. Columns are only added
/// at the end.
#[must_use]
pub fn csv(result: &ImportedResult) -> String {
    let found = &result.sources;
    let mut text = String::new();
    if found.iter().any(|one| !one.loads.is_empty()) {
        text.push_str(&loads_csv(found));
    }
    if found.iter().any(|one| !one.series.is_empty()) {
        text.push_str(&series_csv(found));
    }
    text
}

/// One line for each kind of each load.
fn loads_csv(found: &[ImportedSummary]) -> String {
    let mut table = Table::new(
        "source,tool,job,load,like,class,kind,io_bytes,seconds,done,iops,mib_per_s,mean_us,deviation_us,min_us,p50_us,\
         p90_us,p99_us,p999_us,max_us,quantiles_of,littles_law",
    );
    for (one, load) in found.iter().flat_map(|one| one.loads.iter().map(move |load| (one, load))) {
        table.text(source(one)).text(&one.tool).text(&load.label).text(&load.load);
        table.text(load.like.as_deref().unwrap_or_default()).text(&load.class).text(&load.kind);
        table.maybe(load.io_bytes).figure(load.seconds).maybe(load.done).figure(load.iops).figure(load.mib_per_s);
        table.figure(load.mean_us).figure(load.deviation_us).figure(load.min_us).figure(load.p50_us);
        table.figure(load.p90_us).figure(load.p99_us).figure(load.p999_us).figure(load.max_us);
        table.text(load.quantiles_of.as_deref().unwrap_or_default()).figure(load.littles_law).end();
    }
    table.into_text()
}

/// One line for each sample.
fn series_csv(found: &[ImportedSummary]) -> String {
    let mut table = Table::new("source,tool,series,unit,begin,seconds,value,count");
    for (one, series) in found.iter().flat_map(|one| one.series.iter().map(move |series| (one, series))) {
        for sample in &series.samples {
            table.text(source(one)).text(&one.tool).text(&series.name).text(&series.unit);
            table.value(sample.begin).figure(sample.seconds).figure(sample.value).figure(sample.count).end();
        }
    }
    table.into_text()
}

/// The first file with these figures.
fn source(one: &ImportedSummary) -> &str {
    one.sources.first().map_or("", String::as_str)
}

/// The imported figures as a subject of a comparison.
pub(super) fn subject<'a>(name: &str, run: &'a Run, result: &ImportedResult) -> Subject<'a> {
    let points: Vec<&LoadPoint> = run
        .imported
        .iter()
        .flat_map(|one| match &one.figures {
            Figures::Loads(points) => points.as_slice(),
            Figures::Series(_) => &[],
        })
        .collect();
    let warnings = warnings_in(run.header.findings.iter().chain(&result.findings));
    let mut tools: Vec<String> = Vec::new();
    for one in &result.sources {
        let tool = one.version.as_ref().map_or(one.tool.clone(), |version| format!("{} {version}", one.tool));
        if !tools.contains(&tool) {
            tools.push(tool);
        }
    }
    Subject {
        name: name.into(),
        header: &run.header,
        terms: terms(&points),
        points: summaries(&run.imported),
        over_time: OverTime::of_imported(&run.imported),
        tolerance: 0.02,
        whole: !run.cut,
        warnings,
        imported: Some(tools.join(" and ")),
    }
}

/// Workload parameters, where the tool reports them and all loads agree.
fn terms(points: &[&LoadPoint]) -> Vec<Term> {
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
        let mut sizes: Vec<u32> = flows.filter(|flow| flow.class == class).filter_map(|flow| flow.io_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if let [one] = sizes[..] { Some(Bytes(one.into())) } else { None }
    };
    let is_large_alone = is_one && size("small").is_none();
    // A curve of large I/O counts as a curve of small I/O of that size.
    let small = if is_large_alone { size("large").filter(|_| !is_matrix(points)) } else { size("small") };
    terms.extend(small.map(|size| Term::deciding(Scope::Small, "size of a small I/O", &size)));
    if !is_large_alone || is_matrix(points) {
        terms.extend(size("large").map(|size| Term::deciding(Scope::Large, "size of a large I/O", &size)));
    }
    // If the workloads differ, each load has its own step, or none.
    let first = points.first().filter(|_| is_one);
    let share = first.and_then(|point| Ratio::from_percent(point.writes_percent?));
    terms.extend(share.map(|share| Term::deciding(Scope::All, "share of writes", &share.exact())));
    terms.extend(first.and_then(|point| Some(Term::deciding(Scope::All, "pattern", point.pattern.as_ref()?))));
    terms
}

fn is_matrix(points: &[&LoadPoint]) -> bool {
    points.iter().any(|point| matches!(point.load, ReportedLoad::Cell { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Judgement, RunResult, compare};
    use crate::import::{Source, read, table::Columns};
    use crate::model::{Host, ImportRequest, Invocation, Layout, Request, Target, TargetFacts};
    use crate::record::journal::{EngineChoice, FORMAT, Header};
    use crate::report::{comparison, data, golden};

    fn run(files: &[(&str, &str)]) -> Run {
        let sources: Vec<Source> = files.iter().map(|(name, text)| Source { name, text }).collect();
        let imported = read(&sources, None, &Columns::default()).unwrap();
        let header = Header {
            format: FORMAT,
            version: "0.1.0".into(),
            started: "2026-01-02T03:04:05+00:00".into(),
            command: vec!["import".into()],
            target: Target::Paths { members: Vec::new(), layout: Layout::Concat },
            engine: EngineChoice { name: imported[0].tool.clone(), buffered: false },
            engine_about: String::new(),
            points: Vec::new(),
            invocation: Invocation::of(Request::Import(ImportRequest::default())),
            host: Host::default(),
            facts: TargetFacts { name: files[0].0.into(), ..TargetFacts::default() },
            findings: Vec::new(),
        };
        Run { header, points: Vec::new(), imported, cut: false }
    }

    fn fio() -> Run {
        let files = [
            ("depth8.json", include_str!("../../tests/imports/fio_depth8_plus.json")),
            ("each.json", include_str!("../../tests/imports/fio_each.json")),
            ("mixed.json", include_str!("../../tests/imports/fio_mixed_lat.json")),
            ("nolat.json", include_str!("../../tests/imports/fio_nolat.json")),
        ];
        run(&files)
    }

    fn series() -> Run {
        let files = [
            ("cloud-day.csv", include_str!("../../docs/examples/cloud-day.csv")),
            ("iostat.txt", include_str!("../../tests/imports/iostat_iso.txt")),
        ];
        run(&files)
    }

    #[test]
    fn reports_look_as_they_should() {
        for (name, run) in [("fio", fio()), ("series", series())] {
            let RunResult::Imported(found) = crate::report::result(&run) else { unreachable!("it was imported") };
            golden::check(
                &format!("imported/{name}.txt"),
                &crate::report::text(&run, &crate::report::result(&run), crate::report::table::Detail::Usual),
            );
            golden::check(&format!("imported/{name}.csv"), &csv(&found));
        }
    }

    #[test]
    fn only_a_throughput_is_judged_as_one() {
        let mut run = run(&[("cloud-day.csv", include_str!("../../docs/examples/cloud-day.csv"))]);
        let said =
            |run: &Run| crate::report::text(run, &crate::report::result(run), crate::report::table::Detail::Usual);
        assert!(said(&run).contains("throughput fell by 93 %"));
        let Figures::Series(all) = &mut run.imported[0].figures else { panic!("no series") };
        all[0].unit = "ms".into();
        let RunResult::Imported(found) = crate::report::result(&run) else { unreachable!("it was imported") };
        let said = said(&run);
        assert!(found.series.is_none() && !said.contains("/s") && !said.contains("throughput"), "{said}");
    }

    #[test]
    fn small_figures_keep_three_digits() {
        let said = [0.03, 31.52, 0.001_234_5, 99.96, -5.25, 0.0, 7.0].map(three_digits);
        assert_eq!(said, ["0.03", "31.5", "0.00123", "100", "-5.25", "0", "7"]);
        assert_eq!([0.03, 0.0031, 0.25, 16.5, 2800.4].map(bare), ["0.03", "0.0031", "0.25", "16.50", "2800"]);
    }

    #[test]
    fn json_has_what_was_imported() {
        let report: serde_json::Value =
            serde_json::from_str(&data::json(&series(), &crate::report::result(&series()))).unwrap();
        assert_eq!(report["imported"][0]["series"][0]["samples"][0]["value"], 6272.0);
        assert_eq!(report["imported"][0]["series"][0]["samples"][0]["begin"], "2016-04-23T10:17:00+00:00");
        assert_eq!(report["points"], serde_json::json!([]));
    }

    #[test]
    fn two_imports_are_compared_without_a_verdict() {
        let one = run(&[("depth8.json", include_str!("../../tests/imports/fio_depth8_plus.json"))]);
        let slower = include_str!("../../tests/imports/fio_depth8_plus.json").replace("55479.76012", "27739.88006");
        let other = run(&[("slower.json", slower.as_str())]);
        let found = compare(&[comparison::subject("one", &one), comparison::subject("other", &other)], None);
        let change = found.points[0].iops.unwrap();
        assert!(
            (change.ratio - 0.5).abs() < 1e-9 && change.judgement == Judgement::NotKnown && change.interval.is_none()
        );
        let said = comparison::text(&found);
        assert!(
            said.contains("other was measured by fio 3.33: what it does not tell") && said.contains("not known"),
            "{said}"
        );
    }

    #[test]
    fn orions_cells_are_compared_by_cell() {
        let files = [
            ("o_iops.csv", include_str!("../../tests/golden/classic/simple_iops.csv")),
            ("o_mbps.csv", include_str!("../../tests/golden/classic/simple_mbps.csv")),
            ("o_summary.txt", include_str!("../../tests/golden/classic/simple_summary.txt")),
        ];
        let (one, other) = (run(&files), run(&files));
        let found = compare(&[comparison::subject("one", &one), comparison::subject("other", &other)], None);
        assert_eq!(found.points.len(), 7);
        assert!(found.conditions.is_empty() && found.figures.iter().any(|row| row.name == "max MB/s"));
    }
}
