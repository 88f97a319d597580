//! Journals with values that Rigel never writes: every report of such a run is made, or the journal
//! is refused. A fuzzer tests more (`fuzz/`); this is a fixed sample for every build.

use crate::common::{Place, entries, evaluated, rigel};
use crate::fuzz::targets::{comparison_of, every_report};
use rigel_model::record::journal::Run;
use rigel_model::workload::rng::Rng;
use rigel_verbs::Evaluated;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};

/// Minimum number of mutations of each valid journal.
const MUTATIONS: u64 = 20;

/// Maximum number, if all of the first were reported, or all refused.
const MUTATIONS_MAX: u64 = 400;

/// Makes all reports of a run, alone and compared with the original run.
fn report_of(run: &Run, sound: &Evaluated) {
    let measured = evaluated(run);
    every_report(&measured);
    comparison_of([("sound", sound), ("mutated", &measured)]);
}

/// Numbers that break arithmetic which does not expect them.
fn numbers() -> [Value; 11] {
    [
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
    ]
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
            let numbers = numbers();
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

/// A sound journal: its name, its text, and each of its lines.
struct Sound {
    name: String,
    text: String,
    lines: Vec<Value>,
    run: Evaluated,
}

impl Sound {
    fn of(name: String, text: String) -> Self {
        let lines = text.lines();
        let lines = lines.map(|line| serde_json::from_str(line).unwrap());
        Self {
            lines: lines.collect(),
            run: evaluated(&Run::parse(Path::new(&name), text.as_bytes()).unwrap()),
            name,
            text,
        }
    }

    /// Makes all reports of the journal in which these lines are others. False if it is refused.
    fn is_reported_with(&self, others: &BTreeMap<usize, Value>, what: &str) -> bool {
        // Most lines stay as they are: they are neither copied nor written anew.
        let mut text = String::with_capacity(self.text.len());
        for (at, line) in self.text.lines().enumerate() {
            match others.get(&at) {
                Some(line) => writeln!(text, "{line}").unwrap(),
                None => text.extend([line, "\n"]),
            }
        }
        let read = Run::parse(Path::new(&self.name), text.as_bytes());
        // What its verb cannot read is refused, too.
        match read.and_then(|run| rigel_verbs::of(&run.header).map(|_| run)) {
            Ok(run) => {
                // Nothing of it is used after a panic.
                let reports = AssertUnwindSafe(|| report_of(&run, &self.run));
                let told = std::panic::catch_unwind(reports);
                assert!(told.is_ok(), "{}: {what} ends in a panic", self.name);
                true
            }
            Err(error) => {
                let words = error.to_string();
                assert!(words.contains("hint: "), "{}: {what}: {words}", self.name);
                false
            }
        }
    }

    /// Makes reports with one to four mutated values. Returns how many were reported and how many
    /// refused.
    fn reported(&self) -> (u64, u64) {
        let (mut reports, mut refusals) = (0, 0);
        for seed in 0..MUTATIONS_MAX {
            if seed >= MUTATIONS && reports > 0 && refusals > 0 {
                break;
            }
            let mut rng = Rng::new(seed, self.lines.len() as u64);
            let mut mutated = BTreeMap::new();
            for _ in 0..=rng.below(4) {
                let at = usize::try_from(rng.below(self.lines.len() as u64)).unwrap();
                let line = mutated.entry(at).or_insert_with(|| self.lines[at].clone());
                mutate(line, &mut rng);
            }
            if self.is_reported_with(&mutated, &format!("seed {seed}")) {
                reports += 1;
            } else {
                refusals += 1;
            }
        }
        (reports, refusals)
    }
}

/// Adds the pointers to all numbers of a document, with their names: equal for all elements of a list.
fn pointers(value: &Value, (name, pointer): (String, String), found: &mut Vec<[String; 2]>) {
    match value {
        Value::Number(_) => found.push([name, pointer]),
        Value::Array(inside) => {
            for (at, value) in inside.iter().enumerate() {
                let next = (format!("{name}/*"), format!("{pointer}/{at}"));
                pointers(value, next, found);
            }
        }
        Value::Object(inside) => {
            for (key, value) in inside {
                let escaped = key.replace('~', "~0").replace('/', "~1");
                let next = (format!("{name}/{key}"), format!("{pointer}/{escaped}"));
                pointers(value, next, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Journals of the older files, of verbs that measure, of another tool's figures and of ranks.
fn sound(place: &Place) -> Vec<Sound> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals");
    let of_file = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        Sound::of(path.display().to_string(), text)
    };
    let mut sound: Vec<Sound> = entries(&folder).iter().map(of_file).collect();
    std::fs::write(place.0.join("series.csv"), SERIES).unwrap();
    for (name, line) in [
        (
            "calibration",
            "calibrate sim:2,1ms,size=64MiB --point-max 2s --seed 1",
        ),
        (
            "curve",
            "curve sim:2,1ms,size=64MiB --rate 50%..100% --point-max 2s --seed 1",
        ),
        ("imported", "import series.csv"),
    ] {
        let output = rigel(place, line).args(["--out", name]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = std::fs::read_to_string(place.0.join(name).join("journal.jsonl")).unwrap();
        sound.push(Sound::of(name.into(), text));
    }
    let of_ranks = crate::ranks::journal_text();
    sound.push(Sound::of("ranks".into(), of_ranks));
    sound
}

#[test]
fn a_journal_with_any_values_is_reported_or_refused() {
    for sound in sound(&Place::new("mutated")) {
        let (reports, refusals) = sound.reported();
        assert!(
            reports > 0 && refusals > 0,
            "{}: {reports} reported, {refusals} refused",
            sound.name
        );
    }
}

#[test]
fn each_number_of_a_journal_may_be_any_other() {
    let mut names = BTreeSet::new();
    let (mut reports, mut refusals) = (0, 0);
    for sound in sound(&Place::new("mutated-each")) {
        for (at, line) in sound.lines.iter().enumerate() {
            let mut found = Vec::new();
            pointers(line, (String::new(), String::new()), &mut found);
            for [name, pointer] in found {
                // A rank's record is that of a point.
                if !names.insert(name.replace("/rank/record", "/point")) {
                    continue;
                }
                let others = numbers();
                let mut mutated = line.clone();
                *mutated.pointer_mut(&pointer).unwrap() =
                    others[names.len() % others.len()].clone();
                if sound.is_reported_with(&BTreeMap::from([(at, mutated)]), &name) {
                    reports += 1;
                } else {
                    refusals += 1;
                }
            }
        }
    }
    assert!(reports > 50 && refusals > 20, "{reports}, {refusals}");
}

const SERIES: &str =
    "time,reads\n2026-01-01 00:00:00,5\n2026-01-01 00:01:00,7\n2026-01-01 00:02:00,6\n";
