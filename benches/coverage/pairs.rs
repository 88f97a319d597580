//! The parts about several runs: `compare` on models, and `disk` on what is here.

use super::lookup::{self, has_sides, verdicts};
use super::points::stalling;
use super::table::{distribution, head, rows, share};
use super::{Bench, in_parallel};
use std::collections::BTreeSet;
use std::f64::consts::TAU;
use std::path::PathBuf;

/// What the second device of a pair is like.
#[derive(Clone, Copy)]
enum Other {
    /// Its service takes longer by this share.
    Slower(f64),
    /// It stands still a tenth of a period drawn from this range, in seconds.
    Stalls(f64, f64),
    /// Both are the same on average, and each run finds service times that vary by this share,
    /// as a standard deviation.
    Varies(f64),
}

impl Other {
    fn name(self) -> String {
        match self {
            Other::Slower(0.0) => "the same device".into(),
            Other::Slower(share) => format!("{:.0} % slower", share * 100.0),
            Other::Stalls(low, high) => format!("stands still 10 % of each {low} to {high} s"),
            Other::Varies(share) => format!("the same, state varies by {:.0} %", share * 100.0),
        }
    }

    /// The target of a run, on the side of the baseline or on the other.
    fn target(self, bench: &Bench, row: usize, run: u32, is_baseline: bool) -> String {
        let service = |factor: f64| format!("sim:4,{:.0}ns", 250e3 * factor);
        match self {
            Other::Varies(share) => {
                // Box and Muller, Annals of Mathematical Statistics 29, 1958.
                let mut draws = bench.draws(row, run);
                let normal = (2.0 * draws.exponential()).sqrt() * (TAU * draws.unit()).cos();
                service(1.0 + share * normal)
            }
            _ if is_baseline => service(1.0),
            Other::Slower(share) => service(1.0 + share),
            Other::Stalls(low, high) => stalling(bench, row, run, (low, high)),
        }
    }
}

/// What one comparison said: its verdicts, and [`FAILS`].
type Answer = BTreeSet<String>;

/// That `--fail-if-slower` made the exit status 3.
const FAILS: &str = "fails";

/// Pairs of calibrations, and three against three if the program compares sides.
pub(crate) fn compare(bench: &Bench) -> Result<(), String> {
    let one = "worse | better | open | --fail-if-slower 5% fails";
    let columns =
        format!("second device | one run a side: pairs | {one} | three a side: pairs | {one}");
    let others = [
        Other::Slower(0.0),
        Other::Slower(0.03),
        Other::Slower(0.05),
        Other::Slower(0.1),
        Other::Stalls(8.0, 12.0),
        Other::Stalls(3.0, 5.0),
        Other::Varies(0.01),
        Other::Varies(0.02),
        Other::Varies(0.05),
    ];
    let runs = bench.runs().div_ceil(2);
    let sides = pair(bench, 99, 0, others[0], 3)?.is_some();
    head(
        "compare: is the second device called different?",
        "Whole calibrations of `sim:4,250us` and of a second device; worse and better: it says so \
         of a headline figure; open: it says how many runs would decide.",
        &columns,
    );
    for (row, other) in others.into_iter().enumerate() {
        let single = answers(bench, row, runs, other, 1)?;
        let several = if sides {
            answers(bench, row, runs, other, 3)?
        } else {
            Vec::new()
        };
        rows(&[format!(
            "{} | {} | {}",
            other.name(),
            cells(&single),
            cells(&several)
        )]);
    }
    if !sides {
        println!("\nThis program does not compare sides of several runs.");
    }
    Ok(())
}

fn answers(
    bench: &Bench,
    row: usize,
    runs: u32,
    other: Other,
    a_side: u32,
) -> Result<Vec<Answer>, String> {
    let found = in_parallel(runs, |number| pair(bench, row, number, other, a_side))?;
    Ok(found.into_iter().flatten().collect())
}

/// One comparison of `a_side` runs on each side. `None` if the program does not know sides.
fn pair(
    bench: &Bench,
    row: usize,
    number: u32,
    other: Other,
    a_side: u32,
) -> Result<Option<Answer>, String> {
    let mut folders: Vec<PathBuf> = Vec::new();
    for at in 0..2 * a_side {
        // Six seeds for each pair; one run a side takes the first of each three.
        let run = number * 6 + at * (3 / a_side);
        let target = other.target(bench, row, run, at < a_side);
        let folder = bench.folder.join(format!("{row}-{a_side}-{run}"));
        bench.measure(
            &format!("calibrate {target}"),
            bench.seed(row, run),
            &folder,
        )?;
        folders.push(folder);
    }
    let names: Vec<String> = folders.iter().map(|it| it.display().to_string()).collect();
    let (baseline, other) = names.split_at(names.len() / 2);
    let judged = ["compare", "--json", "--fail-if-slower", "5%"].map(str::to_string);
    let output = if a_side > 1 {
        bench.execute(&[&judged, baseline, &["--".into()], other].concat())?
    } else {
        // One run a side is judged only with this option, which earlier versions do not know.
        let single = bench.execute(&[&judged[..], &["--single-run".into()], &names].concat())?;
        if single.stdout.is_empty() {
            bench.execute(&[&judged[..], &names].concat())?
        } else {
            single
        }
    };
    for folder in folders {
        let _ = std::fs::remove_dir_all(folder);
    }
    let Ok(comparison) = serde_json::from_slice(&output.stdout) else {
        let why = String::from_utf8_lossy(&output.stderr).into_owned();
        return if a_side > 1 { Ok(None) } else { Err(why) };
    };
    if a_side > 1 && !has_sides(&comparison) {
        return Ok(None);
    }
    let mut said = verdicts(&comparison);
    if output.status.code() == Some(3) {
        said.insert(FAILS.into());
    }
    Ok(Some(said))
}

fn cells(answers: &[Answer]) -> String {
    let counted = ["worse", "better", "open", FAILS].map(|word| {
        let with = answers.iter().filter(|answer| answer.contains(word));
        with.count().to_string()
    });
    format!("{} | {}", answers.len(), counted.join(" | "))
}

/// Ten calibrations in a row of a scratch file in the working folder: how well they agree.
pub(crate) fn disk(bench: &Bench) -> Result<(), String> {
    let runs = bench.runs().min(10);
    let words = format!(
        "calibrate {} --scratch-size {}GiB",
        bench.folder.display(),
        bench.settings.size_gib
    );
    let mut found = Vec::new();
    for run in 0..runs {
        let folder = bench.folder.join(format!("disk-{run}"));
        found.push(bench.measure(&words, bench.seed(0, run), &folder)?);
    }
    let maxima: Vec<_> = found.iter().filter_map(lookup::maximum).collect();
    let pooled = maxima.iter().map(|it| it.value).sum::<f64>() / maxima.len() as f64;
    head(
        "disk: calibrations in a row",
        &format!("{words}; pooled: {pooled:.0} IOPS"),
        "run | max IOPS | interval | holds the pooled value | knee | s | warnings",
    );
    let mut holds = 0;
    for (run, json) in found.iter().enumerate() {
        let Some(printed) = lookup::maximum(json) else {
            continue;
        };
        let (low, high) = (
            printed.low.unwrap_or(f64::NAN),
            printed.high.unwrap_or(f64::NAN),
        );
        let held = low <= pooled && pooled <= high;
        holds += u32::from(held);
        let names: Vec<String> = lookup::warnings(json).into_iter().collect();
        rows(&[format!(
            "{run} | {:.0} | {low:.0} to {high:.0} | {} | {} | {:.0} | {}",
            printed.value,
            if held { "yes" } else { "no" },
            lookup::knee(json).map_or("-".into(), |knee| knee.value.to_string()),
            lookup::length_s(json),
            names.join(", ")
        )]);
    }
    let knees = found.iter().filter_map(lookup::knee).map(|knee| knee.value);
    println!(
        "\nThe pooled value is held by {}. Knees: {}.",
        share(holds, runs),
        distribution(knees)
    );
    Ok(())
}
