//! Journals with values that Rigel never writes: every report of such a run is made, or the journal
//! is refused. A fuzzer tests more (`fuzz/`); this is a fixed sample for every build.

use crate::common::{Place, entries, evaluated, rigel, subject};
use rigel_analyse::Calibration;
use rigel_analyse::{AdviceTerms, Product, compare};
use rigel_device::engine;
use rigel_model::record::journal::Run;
use rigel_model::workload::rng::Rng;
use rigel_report::document::Extent;
use rigel_report::{self as report, advice, compare as comparison, data, fio, html, text};
use rigel_verbs::calibrate::oracle_row;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Minimum number of mutations of each valid journal.
const MUTATIONS: u64 = 20;

/// Maximum number, if all of the first were reported, or all refused.
const MUTATIONS_MAX: u64 = 400;

/// Makes all reports of a run, alone and compared with the original run.
fn report_of(run: &Run, sound: &Run) {
    let measured = evaluated(run);
    let document = measured.document();
    let _ = (measured.json(), data::csv(measured.results.points()));
    let _ = html::render(&document);
    let _ = [Extent::Full, Extent::Screen].map(|extent| text::render(&document, extent));
    let _ = measured.results.csv();
    let _ = report::csv_of_hosts(run);
    if let Some(found) = measured.results.downcast_ref::<Calibration>() {
        let _ = oracle_row::oracle_row(run, found);
        let _ = (
            [Extent::Full, Extent::Screen].map(|extent| {
                advice::text(run, found, &Product::ALL, AdviceTerms::default(), extent)
            }),
            advice::json(run, found, &Product::ALL, AdviceTerms::default()),
        );
    }
    for point in run.header.points.iter().take(4) {
        let _ = fio::job(
            run,
            measured.verb.grain(),
            &point.coordinates.name(),
            engine::info(&run.header.engine.name),
        );
    }
    let subjects = [subject("sound", sound), subject("mutated", run)];
    let found = compare(&subjects, None);
    let _ = comparison::json(&found);
    let runs: Vec<_> = [sound, run].into_iter().zip(&subjects).collect();
    let document = comparison::document(&runs, &found);
    let _ = (
        html::render(&document),
        text::render(&document, Extent::Full),
    );
}

/// Descends randomly into a document, and replaces the value where it stops.
fn mutate(value: &mut Value, rng: &mut Rng) {
    let stops = rng.below(12) == 0;
    match value {
        Value::Array(inside) if !inside.is_empty() && !stops => {
            let length = inside.len() as u64;
            return mutate(
                &mut inside[usize::try_from(rng.below(length)).unwrap()],
                rng,
            );
        }
        Value::Object(inside) if !inside.is_empty() && !stops => {
            let length = inside.len() as u64;
            let at = usize::try_from(rng.below(length)).unwrap();
            return mutate(inside.values_mut().nth(at).unwrap(), rng);
        }
        _ => {}
    }
    let other = match value {
        Value::Number(_) => {
            let numbers = [
                json!(0),
                json!(1),
                json!(-1),
                json!(7),
                json!(u32::MAX),
                json!(1_u64 << 63),
                json!(u64::MAX),
                json!(u64::MAX - 1),
                json!(1e308),
                json!(1e-308),
                json!(0.5),
            ];
            numbers[usize::try_from(rng.below(numbers.len() as u64)).unwrap()].clone()
        }
        Value::String(_) => match rng.below(4) {
            0 => json!(""),
            1 => json!("<script>alert(1)</script>\u{1b}[2J\u{202e}"),
            2 => json!("x".repeat(70_000)),
            _ => json!("=1\n[global]\nexec_prerun=id"),
        },
        Value::Array(inside) if inside.len() > 1 && rng.below(2) == 0 => {
            inside.truncate(1);
            return;
        }
        Value::Array(_) => json!([]),
        Value::Bool(is) => json!(!*is),
        Value::Null | Value::Object(_) => Value::Null,
    };
    *value = other;
}

/// Makes reports of `sound` journals with one to four mutated values. Returns how many were
/// reported and how many refused.
fn reported(name: &str, sound: &str) -> (u64, u64) {
    let path = Path::new(name);
    let whole = Run::parse(path, sound.as_bytes()).unwrap();
    let lines: Vec<Value> = sound
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (mut reports, mut refusals) = (0, 0);
    for seed in 0..MUTATIONS_MAX {
        if seed >= MUTATIONS && reports > 0 && refusals > 0 {
            break;
        }
        let mut rng = Rng::new(seed, lines.len() as u64);
        let mut mutated = BTreeMap::new();
        for _ in 0..=rng.below(4) {
            let at = usize::try_from(rng.below(lines.len() as u64)).unwrap();
            let line = mutated.entry(at).or_insert_with(|| lines[at].clone());
            mutate(line, &mut rng);
        }
        // Most lines stay as they are: they are neither copied nor written anew.
        let mut text = String::with_capacity(sound.len());
        for (at, line) in sound.lines().enumerate() {
            match mutated.get(&at) {
                Some(line) => writeln!(text, "{line}").unwrap(),
                None => text.extend([line, "\n"]),
            }
        }
        match Run::parse(path, text.as_bytes()) {
            Ok(run) => {
                let told = std::panic::catch_unwind(|| report_of(&run, &whole));
                assert!(told.is_ok(), "{name}: seed {seed} ends in a panic");
                reports += 1;
            }
            Err(error) => {
                assert!(
                    error.to_string().contains("hint: "),
                    "{name}: seed {seed}: {error}"
                );
                refusals += 1;
            }
        }
    }
    (reports, refusals)
}

#[test]
fn a_journal_with_any_values_is_reported_or_refused() {
    let place = Place::new("mutated");
    let mut sound: Vec<(String, String)> =
        entries(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals"))
            .iter()
            .map(|path| {
                (
                    path.display().to_string(),
                    std::fs::read_to_string(path).unwrap(),
                )
            })
            .collect();
    for (name, line) in [
        ("calibration", "calibrate sim:2,1ms,size=64MiB --seed 1"),
        (
            "curve",
            "curve sim:2,1ms,size=64MiB --rate 50%..100% --seed 1",
        ),
        ("imported", "import series.csv"),
    ] {
        std::fs::write(place.0.join("series.csv"), SERIES).unwrap();
        let output = rigel(&place, line).args(["--out", name]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read_to_string(place.0.join(name).join("journal.jsonl")).unwrap();
        sound.push((name.into(), text));
    }
    sound.push(("ranks".into(), crate::ranks::journal_text()));
    for (name, text) in sound {
        let (reports, refusals) = reported(&name, &text);
        assert!(
            reports > 0 && refusals > 0,
            "{name}: {reports} reported, {refusals} refused"
        );
    }
}

const SERIES: &str =
    "time,reads\n2026-01-01 00:00:00,5\n2026-01-01 00:01:00,7\n2026-01-01 00:02:00,6\n";
