//! The part `levels`: calibrations of a device whose speed varies, as recorded or at random.
//!
//! Input: files of counts in the folder of `--levels`, if there is one. Output: how often the intervals hold the value of
//! the long run, and their score beside the one of an oracle, which knows how much runs of this device differ.

use super::Bench;
use super::lookup::{self, Printed};
use super::modelled::LARGE;
use super::table::{MISS, Tally, head, mean, rows};
use super::truths::{Saturated, bisect};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The device: exponential servers.
const SERVERS: u32 = 4;
const SERVICE: f64 = 250e-6;
const DEVICE: &str = "sim:4,250us";

/// Levels at random: windows that differ, and phases of seconds and of minutes.
const RANDOM: [(&str, f64); 4] = [
    ("15%over150ms", 0.15),
    ("10%over2s", 0.10),
    ("10%over20s", 0.10),
    ("30%over1s", 0.30),
];

/// The depths whose figures are shown: fewer operations than servers, as many, and more.
const DEPTHS: [u32; 3] = [1, 4, 16];

/// A level, with the share of time that it lasts.
type Share = (f64, f64);

/// One reads the intervals of a figure out of a run.
type Read = Box<dyn Fn(&Value) -> Option<Printed>>;

pub(crate) fn levels(bench: &Bench) -> Result<(), String> {
    let mut all: Vec<(String, String, Vec<Share>)> = Vec::new();
    for (text, deviation) in RANDOM {
        all.push((text.into(), text.into(), log_normal(deviation)));
    }
    for path in files(bench.settings.levels.as_deref())? {
        let file = Path::new(&path).file_stem().unwrap_or_default();
        let name = file.display().to_string();
        all.push((name, path.clone(), recorded(&path)?));
    }
    head(
        "levels: intervals where the speed varies",
        &format!(
            "`rigel calibrate {DEVICE},level=LEVEL`, {} runs each. Truth: the long run, in which every level lasts its share of \
             the time. The score is the width and {MISS} × the miss, as shares of the truth. An oracle gives each run's \
             value ± the half-width that holds the truth in 95 % of these runs.",
            bench.runs()
        ),
        &format!(
            "level | figure | truth | {} | oracle's half-width | score / oracle's",
            Tally::HEAD
        ),
    );
    for (row, (name, level, shares)) in all.iter().enumerate() {
        let runs = bench.each(row, |_| format!("calibrate {DEVICE},level={level}"))?;
        for (figure, truth, read) in figures(shares) {
            let found: Vec<Option<Printed>> = runs.iter().map(&read).collect();
            let mut tally = Tally::default();
            found.iter().for_each(|it| tally.add(*it, truth));
            let values = found.iter().flatten().map(|it| it.value / truth);
            let (half, oracle) = oracle(values.collect());
            let times = tally
                .score()
                .map_or("-".into(), |score| format!("{:.2}", score / oracle));
            rows(&[format!(
                "{name} | {figure} | {truth:.6} | {} | ± {:.1} % | {times}",
                tally.cells(),
                half * 100.0
            )]);
        }
    }
    Ok(())
}

/// The figures with their truths: per second and in seconds.
fn figures(shares: &[Share]) -> Vec<(String, f64, Read)> {
    let full = f64::from(SERVERS) / SERVICE;
    let mut all: Vec<(String, f64, Read)> = vec![
        ("max IOPS".into(), full, Box::new(lookup::maximum)),
        (
            "bytes/s".into(),
            full * f64::from(LARGE),
            Box::new(lookup::large),
        ),
    ];
    for depth in DEPTHS {
        let rate = f64::from(depth.min(SERVERS)) / SERVICE;
        let quantile = |quantile: f64| {
            let longest = 1000.0 * SERVICE * f64::from(depth);
            bisect(longest, |time| longer(shares, depth, time) > 1.0 - quantile)
        };
        // Throughput, p50 and p99 of the five figures of a point.
        for (name, at, truth) in [
            ("IOPS", 0, rate),
            ("p50", 2, quantile(0.5)),
            ("p99", 3, quantile(0.99)),
        ] {
            let read = move |run: &Value| lookup::at_depth(run, depth)?.figures[at];
            all.push((format!("{name}, depth {depth}"), truth, Box::new(read)));
        }
    }
    all
}

/// The share of operations of a closed loop that take longer than `time`. A level lasts long beside an operation, so each
/// has the response times of a device of its speed, and more operations the faster it is.
fn longer(shares: &[Share], depth: u32, time: f64) -> f64 {
    let at = |level: f64| match depth.checked_sub(SERVERS) {
        Some(_) => Saturated {
            servers: SERVERS,
            service: SERVICE,
            depth,
        }
        .longer(time * level),
        None => (-time * level / SERVICE).exp(),
    };
    let late: f64 = shares
        .iter()
        .map(|(level, share)| share * level * at(*level))
        .sum();
    let all: f64 = shares.iter().map(|(level, share)| share * level).sum();
    late / all
}

/// The levels of a log-normal distribution of mean 1, by slices of the normal one.
fn log_normal(deviation: f64) -> Vec<Share> {
    const SLICES: i32 = 1000;
    let variance = (deviation * deviation).ln_1p();
    let slice = |at: i32| {
        let normal = 6.0 * f64::from(at) / f64::from(SLICES);
        let level = (normal * variance.sqrt() - variance / 2.0).exp();
        (level, (-normal * normal / 2.0).exp())
    };
    (-SLICES..=SLICES).map(slice).collect()
}

/// The files of a folder, in the order of their names.
fn files(folder: Option<&Path>) -> Result<Vec<String>, String> {
    let Some(folder) = folder else {
        return Ok(Vec::new());
    };
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.extension().is_some_and(|extension| extension == "csv") {
            paths.push(path.display().to_string());
        }
    }
    paths.sort();
    Ok(paths)
}

/// The levels of a file: its last column, in windows that last equally long.
fn recorded(path: &str) -> Result<Vec<Share>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let counts = text.lines().skip(1).map(|line| {
        let (_, count) = line.rsplit_once(',').unwrap_or(("", line));
        count
            .trim()
            .parse::<f64>()
            .map_err(|_| format!("{path}: '{line}' has no count"))
    });
    let counts = counts.collect::<Result<Vec<f64>, String>>()?;
    let mean = mean(&counts).ok_or(format!("{path} has no counts"))?;
    Ok(counts
        .into_iter()
        .map(|count| (count / mean, 1.0))
        .collect())
}

/// The half-width of the oracle's intervals and their mean score, of values as shares of the truth.
fn oracle(values: Vec<f64>) -> (f64, f64) {
    let mut off: Vec<f64> = values
        .into_iter()
        .map(|value| (value - 1.0).abs())
        .collect();
    off.sort_by(f64::total_cmp);
    let half = off.get(off.len() * 95 / 100).copied().unwrap_or(f64::NAN);
    let misses: Vec<f64> = off.iter().map(|off| (off - half).max(0.0)).collect();
    (half, 2.0 * half + MISS * mean(&misses).unwrap_or(f64::NAN))
}
