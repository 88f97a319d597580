//! How often 95 % intervals hold the truth, on models of devices whose truth is known.
//!
//!     cargo bench --bench coverage -- [open] [closed] [overload] [stalls] [maximum] [sustained]
//!                                     [warnings] [compare] [fit] [verdicts] [disk] [random]
//!                                     [levels] [--runs 100] [--for 10min] [--levels DIR]
//!                                     [--program PROGRAM] [--folder target/bench]
//!
//! Input: the parts to run; all of them but `disk` if none is named. Output: tables in Markdown.
//! `--for` ends the part `random` after that time; it goes on with the next call. `--levels` has recorded levels for the
//! part `levels`: files as `sim:` reads them.
//! Each part runs the program on `sim:` targets, in virtual time, many times with its own seeds,
//! and compares what it prints with closed forms from queueing theory (`truths.rs`), or with a simulation
//! of its own (`modelled.rs`). `--program`
//! makes the same table of another build. The benchmark does not judge; the same program and
//! `--runs` give the same tables. Seeds are above five million: no test uses these, so that no rule
//! is judged on the runs that it was chosen by.

mod calibrations;
#[allow(dead_code, reason = "each benchmark uses its own part of it")]
#[path = "../common/mod.rs"]
mod common;
mod fits;
mod levels;
mod lookup;
mod modelled;
mod pairs;
mod points;
mod random;
mod table;
mod truths;
mod verdicts;

use common::{Folder, Settings};
use rigel_model::workload::rng::Rng;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

const PARTS: [&str; 13] = [
    "open",
    "closed",
    "overload",
    "stalls",
    "maximum",
    "sustained",
    "warnings",
    "compare",
    "fit",
    "verdicts",
    DISK,
    // A part's place decides its seeds: a new one comes last.
    RANDOM,
    "levels",
];
/// Takes half an hour of real time, so it runs only if it is named.
const DISK: &str = "disk";
/// The part that ends after a given time, and goes on with the next call.
const RANDOM: &str = "random";
const FIRST_SEED: u64 = 5_000_000;
/// Seeds of one row of a table; a comparison needs six, and `--runs` gives half as many of them.
const SEEDS_OF_ROW: u64 = 10_000;
const RUNS_MAX: u32 = 3_000;
/// Programs that run at the same time.
const PROCESSES: u32 = 2;

fn main() -> ExitCode {
    let result = Settings::from_arguments(&PARTS, 60, 100).and_then(|mut settings| {
        let disk = std::env::args().any(|argument| argument == DISK);
        settings.parts.retain(|part| part != DISK || disk);
        if settings.rounds > RUNS_MAX {
            return Err(format!("--runs is at most {RUNS_MAX}"));
        }
        if settings.length.is_some() {
            if settings.parts.iter().any(|part| part != RANDOM) {
                return Err(format!(
                    "--for is of the part {RANDOM} alone: name it, and no other"
                ));
            }
            if !settings.has_rounds {
                settings.rounds = RUNS_MAX;
            }
        }
        let name = format!("coverage-{}", std::process::id());
        let folder = Folder::make(&settings.folder, &name)?;
        for part in &settings.parts {
            let at = PARTS.iter().position(|known| known == part);
            let bench = Bench {
                settings: &settings,
                folder: &folder.0,
                part: at.expect("a part is one of these"),
            };
            match part.as_str() {
                "open" => points::open(&bench)?,
                "closed" => points::closed(&bench)?,
                "overload" => points::overload(&bench)?,
                "stalls" => points::stalls(&bench)?,
                "maximum" => calibrations::maximum(&bench)?,
                "sustained" => calibrations::sustained(&bench)?,
                "warnings" => calibrations::warnings(&bench)?,
                "compare" => pairs::compare(&bench)?,
                "fit" => fits::fit(&bench)?,
                "verdicts" => verdicts::verdicts(&bench)?,
                RANDOM => random::random(&bench)?,
                "levels" => levels::levels(&bench)?,
                _ => pairs::disk(&bench)?,
            }
        }
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("coverage: {what}");
            ExitCode::FAILURE
        }
    }
}

/// A part of the benchmark, with what it needs to run the program.
pub(crate) struct Bench<'a> {
    settings: &'a Settings,
    folder: &'a Path,
    part: usize,
}

impl Bench<'_> {
    pub(crate) fn runs(&self) -> u32 {
        self.settings.rounds
    }

    /// The seed of a run: no other run of the benchmark has it, whichever parts are selected.
    pub(crate) fn seed(&self, row: usize, run: u32) -> u64 {
        let row = u64::try_from(self.part * 100 + row).expect("few rows");
        FIRST_SEED + row * SEEDS_OF_ROW + u64::from(run)
    }

    /// Random numbers that vary the device of a run.
    pub(crate) fn draws(&self, row: usize, run: u32) -> Rng {
        Rng::new(self.seed(row, run), 1)
    }

    /// Output of `rigel WORDS --seed … --json` of all runs of a row, in their order; `words` get the
    /// number of the run.
    pub(crate) fn each(
        &self,
        row: usize,
        words: impl Fn(u32) -> String + Sync,
    ) -> Result<Vec<Value>, String> {
        eprintln!("{}, row {row}: {}", PARTS[self.part], words(0));
        in_parallel(self.runs(), |run| {
            let folder = self.folder.join(format!("{row}-{run}"));
            let json = self.measure(&words(run), self.seed(row, run), &folder);
            // The journals of thousands of runs would fill the disk.
            let _ = std::fs::remove_dir_all(&folder);
            json
        })
    }

    /// The JSON output of one run, whose journal stays in `folder`.
    pub(crate) fn measure(&self, words: &str, seed: u64, folder: &Path) -> Result<Value, String> {
        self.answer(words, seed, folder).map(|(json, _)| json)
    }

    /// The JSON output of one run, whose journal stays in `folder`, and the exit status.
    pub(crate) fn answer(
        &self,
        words: &str,
        seed: u64,
        folder: &Path,
    ) -> Result<(Value, Option<i32>), String> {
        let mut words: Vec<String> = words.split(' ').map(str::to_string).collect();
        let out = folder.display().to_string();
        words.extend(["--seed".into(), seed.to_string(), "--out".into(), out]);
        words.extend(["--json".into(), "--no-progress".into()]);
        let output = self.execute(&words)?;
        // Status 3 and 4 are results: no rate met the bound, or it is undecided.
        let json = serde_json::from_slice(&output.stdout)
            .map_err(|_| format!("{words:?}: {}", String::from_utf8_lossy(&output.stderr)))?;
        Ok((json, output.status.code()))
    }

    pub(crate) fn execute(&self, words: &[String]) -> Result<Output, String> {
        let program: &PathBuf = &self.settings.rigel;
        let output = Command::new(program).args(words).output();
        output.map_err(|error| format!("{}: {error}", program.display()))
    }
}

/// Runs `one` for each number, [`PROCESSES`] at a time.
pub(crate) fn in_parallel<T: Send>(
    runs: u32,
    one: impl Fn(u32) -> Result<T, String> + Sync,
) -> Result<Vec<T>, String> {
    let (next, done) = (AtomicU32::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..PROCESSES {
            scope.spawn(|| {
                loop {
                    let run = next.fetch_add(1, Ordering::Relaxed);
                    if run >= runs {
                        return;
                    }
                    let result = one(run);
                    done.lock().expect("no thread panics").push((run, result));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("no thread panics");
    done.sort_by_key(|(run, _)| *run);
    done.into_iter().map(|(_, result)| result).collect()
}
