//! The page of a run: its figures equal those of the JSON report, it is small, and it is written
//! after every run. Uses the simulated device, whose virtual time gives the same figures for the
//! same seed.

use crate::common::{Place, rigel};
use rigel_analyse::BoundVerdict;
use rigel_model::record::journal::Run;
use rigel_report::document::{Block, ChangeRow, Chart, Document, Lines, Plot};
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Output;

/// Maximum size of the page of an ordinary run.
const BYTES_MAX: usize = 2_000_000;

fn done(place: &Place, arguments: &str) -> Output {
    let output = rigel(place, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments}: {output:?}");
    output
}

/// Headline figures: their path in the JSON report, and their value.
fn headlines(page: &str) -> Vec<(String, f64)> {
    let attribute = |part: &str, name: &str| {
        let (_, rest) = part.split_once(&format!("{name}=\""))?;
        rest.split_once('"').map(|(value, _)| value.to_string())
    };
    let parts = page
        .split("<div data-name=")
        .skip(1)
        .map(|rest| format!("data-name={rest}"));
    parts
        .map(|part| {
            let name = attribute(&part, "data-name").unwrap();
            let value = attribute(&part, "data-value").unwrap().parse().unwrap();
            (name, value)
        })
        .collect()
}

/// The figure at a path such as `points.3.classes.0.p99_us`.
fn figure(document: &Value, place: &str) -> f64 {
    let pointer = format!("/{}", place.replace('.', "/"));
    document
        .pointer(&pointer)
        .and_then(Value::as_f64)
        .unwrap_or_else(|| panic!("no figure at {place}"))
}

/// The page beside the journal, after comparing its figures with `document`.
fn checked(place: &Place, run: &str, document: &Value) -> String {
    let page = std::fs::read_to_string(place.0.join(format!("{run}/report.html"))).unwrap();
    assert!(page.len() < BYTES_MAX, "{run}: {} bytes", page.len());
    let headlines = headlines(&page);
    assert!((2..=5).contains(&headlines.len()), "{run}: {headlines:?}");
    for (name, value) in headlines {
        let told = figure(document, &name);
        assert!(
            (value - told).abs() <= 1e-9 * told.abs(),
            "{run}: {name} is {value} on the page and {told} in JSON"
        );
    }
    same_findings(place, run, document);
    page
}

/// Text, page and JSON must report the same findings equally often.
fn same_findings(place: &Place, run: &str, document: &Value) {
    let mut raised: BTreeMap<String, usize> = BTreeMap::new();
    for finding in document["findings"].as_array().unwrap() {
        *raised
            .entry(finding["name"].as_str().unwrap().into())
            .or_default() += 1;
    }
    let sections = built(place, run).sections;
    let on_page = sections
        .iter()
        .flat_map(|section| &section.blocks)
        .filter_map(|block| match block {
            Block::Causes(causes) => Some(causes.iter().flat_map(|found| &found.findings)),
            _ => None,
        });
    let text = reported(place, run);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = words(&text);
    let mut told: BTreeMap<String, usize> = BTreeMap::new();
    for finding in on_page.flatten() {
        // Repeated findings appear once, with the number of the others.
        let more = finding
            .what
            .rsplit_once(" (and ")
            .and_then(|(_, rest)| rest.strip_suffix(" more of this kind)"));
        *told.entry(finding.name.clone()).or_default() +=
            1 + more.map_or(0, |more| more.parse::<usize>().unwrap());
        assert!(
            text.contains(&words(&finding.what)),
            "{run}: the text has no '{}':\n{text}",
            finding.what
        );
    }
    assert_eq!(told, raised, "{run}: on the page and in JSON");
    let conclusion = serde_json::to_value(built(place, run).conclusion).unwrap();
    assert_eq!(
        conclusion, document["conclusion"],
        "{run}: on the page and in JSON"
    );
    let sentence = conclusion["sentence"].as_str().unwrap();
    assert!(
        !sentence.is_empty() && text.contains(&words(sentence)),
        "{run}: the text has no '{sentence}':\n{text}"
    );
}

/// The whole report of a run, which ends with the status of its outcome.
fn reported(place: &Place, run: &str) -> String {
    let report = format!("report {run} --verbose");
    let output = rigel(place, &report).output().unwrap();
    let measured = crate::common::evaluated(&Run::read(&place.0.join(run)).unwrap());
    let status = match measured.outcome() {
        None | Some(BoundVerdict::Kept) => 0,
        Some(BoundVerdict::Broken) => 3,
        Some(BoundVerdict::Undecided) => 4,
        Some(BoundVerdict::NotMeasured) => 5,
    };
    assert_eq!(output.status.code(), Some(status), "{report}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

fn of(run: &Run) -> Document {
    crate::common::evaluated(run).document()
}

/// The contents of the page of a run.
fn built(place: &Place, run: &str) -> Document {
    of(&Run::read(&place.0.join(run)).unwrap())
}

/// Checks every page: unique names, rows as wide as their head, series that can be drawn.
fn well_formed(page: &Document) {
    let mut names: Vec<&str> = Vec::new();
    let mut blocks: Vec<&Block> = Vec::new();
    for section in &page.sections {
        names.push(&section.id);
        blocks.extend(&section.blocks);
    }
    while let Some(block) = blocks.pop() {
        match block {
            Block::Chart(chart) => {
                names.push(&chart.id);
                can_be_drawn(chart);
            }
            Block::Table(table) => {
                let is_whole = |row: &Vec<String>| row.len() == table.columns.len();
                assert!(
                    !table.rows.is_empty() && table.rows.iter().all(is_whole),
                    "{table:?}"
                );
            }
            Block::Causes(causes) => assert!(!causes.is_empty()),
            Block::Text(text) | Block::Code(text) => assert!(!text.is_empty()),
            Block::Beside(inside) => blocks.extend(inside),
        }
    }
    let number = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), number, "{names:?}");
    assert!(
        page.conclusion.sentence.ends_with('.') && !page.conclusion.sentence.contains("  "),
        "{}",
        page.conclusion.sentence
    );
}

fn can_be_drawn(chart: &Chart) {
    assert!(chart.description.ends_with('.'), "{}", chart.description);
    let panels: &[Lines] = match &chart.plot {
        Plot::Lines(lines) => std::slice::from_ref(lines),
        Plot::Stack { panels } => panels,
        Plot::Heat(heat) => {
            assert_eq!(heat.values.len(), heat.rows.len());
            assert!(
                heat.values
                    .iter()
                    .all(|row| row.len() == heat.columns.len())
            );
            return;
        }
        Plot::Changes(changes) => {
            let has_interval =
                |row: &ChangeRow| row.band.high.is_none_or(|high| row.band.low <= high);
            assert!(!changes.rows.is_empty() && changes.rows.iter().all(has_interval));
            return;
        }
    };
    for series in panels.iter().flat_map(|panel| &panel.series) {
        let number = series.x.len();
        assert!(
            number > 0 && series.y.len() == number,
            "{}: {}",
            chart.id,
            series.name
        );
        assert!(
            [0, number].contains(&series.band.len()) && [0, number].contains(&series.labels.len()),
            "{}",
            chart.id
        );
        assert!(
            series.x.windows(2).all(|two| two[0] <= two[1]),
            "{}: {}",
            chart.id,
            series.name
        );
        assert!(
            series
                .x
                .iter()
                .chain(series.y.iter().flatten())
                .all(|value| value.is_finite()),
            "{}",
            chart.id
        );
    }
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_figures_of_every_page_are_those_of_the_json_report() {
    let place = Place::new("html");
    for (run, arguments) in [
        ("calibrate", "calibrate sim:8,1ms --closing 5s"),
        ("depths", "curve sim:8,1ms --depth 1..32"),
        (
            "rates",
            "curve sim:8,1ms --rate 10%..120% --max-latency 10ms",
        ),
        (
            "tail",
            "calibrate sim:8,500us,slow=25ms@1.5%,limit=2000/s+10000",
        ),
    ] {
        let output = done(
            &place,
            &format!("{arguments} --seed 7 --no-progress --json --out {run}"),
        );
        let page = checked(&place, run, &json(&output));
        well_formed(&built(&place, run));
        assert!(
            page.contains("latency-throughput") && page.contains("timeline"),
            "{run}"
        );
        let remarks = String::from_utf8(output.stderr).unwrap();
        assert!(remarks.contains(&format!("{run}/report.html")), "{remarks}");
    }
}

#[test]
fn the_figures_of_a_fits_page_are_those_of_its_json_report() {
    let place = Place::new("html-fit");
    let day = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/imports/awr_synthetic.html"
    );
    for (run, target) in [
        ("carries", "sim:8,500us --write"),
        ("never", "sim:1,100ms"),
        ("always", "sim:64,20us"),
    ] {
        let limits = "--multiples 0.25..4 --point-time 2s --seed 7 --no-progress";
        let fitted = rigel(
            &place,
            &format!("fit {day} {target} {limits} --json --out {run}"),
        )
        .output()
        .unwrap();
        let status = if run == "never" { 3 } else { 0 };
        assert_eq!(fitted.status.code(), Some(status), "{run}");
        let page = checked(&place, run, &json(&fitted));
        assert!(
            page.contains("fit-chart") && page.contains("streams"),
            "{run}"
        );
    }
}

#[test]
fn the_figures_of_a_soaks_page_are_those_of_its_json_report() {
    let place = Place::new("html-soak");
    let soak =
        "soak sim:8,100us,slow=5ms@0.5% --work 1kops --every 15m --for 3d --seed 7 --no-progress";
    for (run, objective) in [
        ("plain", ""),
        ("objective", "--slo p99<10ms --slo-share 95%"),
    ] {
        done(&place, &format!("{soak} {objective} --out {run}"));
        let document = json(&done(&place, &format!("report {run} --json")));
        let page = checked(&place, run, &document);
        assert!(
            page.contains("timeline-chart") && page.contains("calendar"),
            "{run}"
        );
    }
}

#[test]
fn the_figures_of_an_imported_page_are_those_of_its_json_report() {
    let place = Place::new("html-import");
    let root = env!("CARGO_MANIFEST_DIR");
    for (run, files) in [
        (
            "fio",
            "tests/imports/fio_each.json tests/imports/fio_depth8_plus.json \
             tests/imports/fio_three.json",
        ),
        ("mixed", "tests/imports/fio_mixed_lat.json"),
        ("day", "docs/examples/cloud-day.csv"),
    ] {
        let files: Vec<String> = files
            .split(' ')
            .map(|file| format!("{root}/{file}"))
            .collect();
        done(&place, &format!("import {} --out {run}", files.join(" ")));
        let document = json(&done(&place, &format!("report {run} --json")));
        checked(&place, run, &document);
        well_formed(&built(&place, run));
    }
    // If the rate and mean of a load do not match its requested depth, every output warns.
    let told = std::fs::read_to_string(format!("{root}/tests/imports/fio_three.json")).unwrap();
    std::fs::write(
        place.0.join("deeper.json"),
        told.replace("\"iodepth\": \"2\"", "\"iodepth\": \"8\""),
    )
    .unwrap();
    done(&place, "import deeper.json --out deeper");
    let document = json(&done(&place, "report deeper --json"));
    checked(&place, "deeper", &document);
    assert_eq!(document["findings"][0]["name"], "littles-law", "{document}");
    std::fs::write(
        place.0.join("x_lat.1.log"),
        "0, 123456, 0, 8192, 0, 0\n1000, 223456, 0, 8192, 0, 0\n",
    )
    .unwrap();
    done(&place, "import x_lat.1.log --out log");
    let document = json(&done(&place, "report log --json"));
    checked(&place, "log", &document);
    // For different kinds of series there is no headline.
    done(
        &place,
        &format!("import {root}/tests/imports/iostat_iso.txt --out iostat"),
    );
    let page = built(&place, "iostat");
    well_formed(&page);
    assert!(
        page.headlines.is_empty() && page.sections.iter().any(|section| section.id == "timeline")
    );
}

#[test]
fn an_orion_run_has_its_matrix_as_fields() {
    let place = Place::new("html-orion");
    let arguments = "orion -run advanced -matrix detailed -num_disks 1 -duration 2 --target \
                     sim:4,1ms --seed 7 --no-progress";
    done(&place, &format!("{arguments} --out run"));
    let document = json(&done(&place, "report run --json"));
    let page = checked(&place, "run", &document);
    well_formed(&built(&place, "run"));
    for field in ["matrix-iops", "matrix-mbps", "matrix-p99"] {
        assert!(page.contains(field), "{field}");
    }
    assert!(
        page.contains("rigel orion -run advanced"),
        "the command to run it again"
    );
}

#[test]
fn throughput_that_still_rises_has_no_knee() {
    let place = Place::new("html-rising");
    let arguments = "orion -run advanced -matrix row -num_large 0 -num_disks 1 -duration 20 --target \
                     sim:64,1ms --seed 7 --no-progress";
    done(&place, &format!("{arguments} --out run"));
    let document = json(&done(&place, "report run --json"));
    let page = checked(&place, "run", &document);
    assert!(!page.contains("knee, depth"), "a mark");
    let text = String::from_utf8(done(&place, "report run").stdout).unwrap();
    let words: Vec<&str> = text.split_whitespace().collect();
    assert!(
        words
            .join(" ")
            .contains("Throughput was still rising with 5 outstanding"),
        "{text}"
    );
}

#[test]
fn paper_has_the_hints_of_the_findings() {
    let page = rigel_report::html::render(&Document::default());
    let (_, print) = page.split_once("@media print").unwrap();
    let hidden = print
        .lines()
        .find(|line| line.contains("display: none"))
        .unwrap();
    let of_all = |rule: &str| rule.trim() == ".hint";
    assert!(!hidden.split(['{', ',']).any(of_all), "{hidden}");
}

#[test]
fn a_page_is_written_again_where_it_is_asked_for_and_nowhere_else() {
    let place = Place::new("html-again");
    done(
        &place,
        "curve sim:2,200us --depth 1,2,4 --seed 7 --no-progress --out run",
    );
    let first = std::fs::read_to_string(place.0.join("run/report.html")).unwrap();
    let printed = done(&place, "report run --html -");
    assert_eq!(
        String::from_utf8(printed.stdout).unwrap(),
        first,
        "the same journal makes the same page"
    );
    done(&place, "report run --html page.html");
    assert_eq!(
        std::fs::read_to_string(place.0.join("page.html")).unwrap(),
        first
    );
    std::fs::remove_file(place.0.join("run/report.html")).unwrap();
    done(&place, "report run --html");
    assert_eq!(
        std::fs::read_to_string(place.0.join("run/report.html")).unwrap(),
        first
    );
    let journal = std::fs::read(place.0.join("run/journal.jsonl")).unwrap();
    let refused = rigel(&place, "report run --html run/journal.jsonl")
        .output()
        .unwrap();
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert_eq!(
        std::fs::read(place.0.join("run/journal.jsonl")).unwrap(),
        journal
    );
    let leftovers = std::fs::read_dir(place.0.join("run")).unwrap().count();
    assert_eq!(leftovers, 2, "a journal and a page");
}

#[test]
fn runs_are_compared_on_one_page() {
    let place = Place::new("html-compare");
    done(
        &place,
        "curve sim:8,1ms --depth 1..32 --seed 7 --no-progress --out before",
    );
    done(
        &place,
        "curve sim:8,1300us --depth 1..32 --seed 7 --no-progress --out after",
    );
    let document = json(&done(&place, "compare before after --json"));
    done(&place, "compare before after --html page.html");
    let page = std::fs::read_to_string(place.0.join("page.html")).unwrap();
    assert!(page.len() < BYTES_MAX);
    let headlines = headlines(&page);
    assert!(!headlines.is_empty());
    for (name, value) in headlines {
        assert!((value - figure(&document, &name)).abs() < 1e-9, "{name}");
    }
    assert!(
        page.contains("after against before: worse in"),
        "the verdict"
    );
}

#[test]
fn runs_of_one_side_have_one_colour() {
    let place = Place::new("html-sides");
    for (run, seed) in [("a1", 1), ("a2", 2), ("b1", 3), ("b2", 4)] {
        let service = if run.starts_with('a') {
            "1ms"
        } else {
            "1300us"
        };
        let line =
            format!("curve sim:8,{service} --depth 1..16 --seed {seed} --no-progress --out {run}");
        done(&place, &line);
    }
    done(&place, "compare --html page.html a1 a2 -- b1 b2");
    let page = std::fs::read_to_string(place.0.join("page.html")).unwrap();
    let colour = |run: &str| {
        let (_, series) = page.split_once(&format!("\"name\":\"{run} p50\"")).unwrap();
        let (_, colour) = series.split_once("\"colour\":").unwrap();
        colour.split(',').next().unwrap().to_string()
    };
    assert_eq!(colour("a1"), colour("a2"));
    assert_eq!(colour("b1"), colour("b2"));
    assert_ne!(colour("a1"), colour("b1"));
}

#[test]
fn the_oldest_journals_have_their_page() {
    for name in ["v0.1.0", "v0.1.0-file"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join(format!("tests/journals/{name}.jsonl"));
        let page = of(&Run::read(&path).unwrap());
        well_formed(&page);
        assert!(
            page.title.contains("rigel orion") && page.headlines.len() >= 2,
            "{name}: {:?}",
            page.headlines
        );
    }
}
