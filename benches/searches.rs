//! Time and repeatability of the searches, and punctuality of the open loop.
//!
//!     cargo bench --bench searches -- [time] [repeat] [pacer] [ranks] [--rounds 10] [--seconds 60]
//!                                     [--size-gib 4] [--folder target/bench] [--rigel PROGRAM]
//!
//! Input: the parts to run; all of them if none is named. Output: tables in Markdown for
//! docs/performance.md. `time` compares a calibration's time to max IOPS with `orion -run oltp`
//! with `--seconds` per point, on one file. `repeat` makes `--rounds` calibrations of the bare disk
//! and counts how many agree with the pooled value. `pacer` offers 100,000 operations per second to
//! the null target: all delay is then the tool's. `ranks` measures what a point of many ranks costs
//! rank 0, with the record of a model and the largest of a calibration, and what an operation costs a
//! rank in CPU time, beside one process; it needs mpiexec.hydra. The benchmark does not judge:
//! whether a goal is met is for the reader of the table.

mod common;
mod ranks;

use common::{Folder, Settings};
use serde_json::Value;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const PARTS: [&str; 4] = ["time", "repeat", "pacer", "ranks"];

fn main() -> ExitCode {
    let result = Settings::from_arguments(&PARTS, 60, 10).and_then(|settings| {
        for part in &settings.parts {
            match part.as_str() {
                "time" => time_to_maximum(&settings)?,
                "repeat" => repeat(&settings)?,
                "ranks" => ranks::ranks(&folder(&settings)?.0, &settings)?,
                _ => pacer(&settings)?,
            }
        }
        Ok(())
    });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(what) => {
            eprintln!("searches: {what}");
            ExitCode::FAILURE
        }
    }
}

// ---- the parts ----

fn time_to_maximum(settings: &Settings) -> Result<(), String> {
    let folder = folder(settings)?;
    let file = filled(&folder, settings.size_gib)?;
    let ours = Timed::run(
        settings,
        &[
            "calibrate",
            text(&file),
            "--json",
            "--out",
            text(&folder.0.join("calibrate")),
        ],
    )?;
    let seconds = settings.seconds.to_string();
    let run = folder.0.join("orion");
    let orion = [
        "orion",
        "-run",
        "oltp",
        "-num_disks",
        "1",
        "-duration",
        &seconds,
        "--target",
        text(&file),
    ];
    let theirs = Timed::run(
        settings,
        &[&orion[..], &["--json", "--out", text(&run)]].concat(),
    )?;
    let found = &ours.json["calibration"]["maximum"]["iops"];
    // The maximum is known after the last depth, searched or refined; its precision is that of the
    // decisive point.
    let until = |json: &Value, last: &dyn Fn(&Value) -> bool| -> f64 {
        let points = json["points"].as_array().map_or(&[][..], Vec::as_slice);
        let end = points.iter().rposition(last).map_or(0, |at| at + 1);
        points[..end]
            .iter()
            .map(|point| number(&point["warm_up_s"]) + number(&point["measured_s"]))
            .sum()
    };
    let to_maximum = until(&ours.json, &|point| point["step"] == "depth");
    let all = until(&theirs.json, &|_| true);
    let greatest = theirs.json["points"].as_array().into_iter().flatten();
    let greatest = greatest
        .map(|point| number(&point["classes"][0]["iops"]))
        .fold(0.0, f64::max);
    println!("\n## Time to max IOPS\n");
    println!(
        "| | max IOPS | seconds to it, measuring and warming up | the whole command \
         |\n|---|---|---|---|"
    );
    let half = (number(&found["interval"]["high"]) - number(&found["interval"]["low"]))
        / 2.0
        / number(&found["value"]);
    println!(
        "| rigel calibrate | {:.0} ± {:.1} % | {to_maximum:.0} | {:.0} s, with all else that it \
         measures |",
        number(&found["value"]),
        half * 100.0,
        ours.seconds
    );
    println!(
        "| orion -run oltp, {seconds} s a point | {greatest:.0} | {all:.0} | {:.0} s |",
        theirs.seconds
    );
    println!("\nRatio: {:.1}", all / to_maximum);
    Ok(())
}

fn repeat(settings: &Settings) -> Result<(), String> {
    let folder = folder(settings)?;
    let file = filled(&folder, settings.size_gib)?;
    let mut runs = Vec::new();
    for round in 0..settings.rounds {
        let run = folder.0.join(format!("repeat-{round}"));
        let timed = Timed::run(
            settings,
            &["calibrate", text(&file), "--json", "--out", text(&run)],
        )?;
        let iops = &timed.json["calibration"]["maximum"]["iops"];
        let names: Vec<String> = timed.json["findings"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|finding| finding["severity"] != "note")
            .map(|finding| finding["name"].as_str().unwrap_or_default().to_string())
            .collect();
        let interval = (
            number(&iops["interval"]["low"]),
            number(&iops["interval"]["high"]),
        );
        eprintln!(
            "round {round}: {:.0} {interval:?} {names:?}",
            number(&iops["value"])
        );
        runs.push((number(&iops["value"]), interval, names, timed.seconds));
    }
    let pooled = runs.iter().map(|run| run.0).sum::<f64>() / runs.len() as f64;
    println!("\n## Repeatability on the bare disk\n\nPooled: {pooled:.0} IOPS\n");
    println!(
        "| run | max IOPS | 95 % interval | holds the pooled value | said to have drifted or been \
         unsteady | s |"
    );
    println!("|---|---|---|---|---|---|");
    let mut agree = 0;
    for (number, (value, (low, high), names, seconds)) in runs.iter().enumerate() {
        let holds = *low <= pooled && pooled <= *high;
        let said = ["drift", "unsteady", "burst-credit", "other-load"];
        let said: Vec<&str> = said
            .into_iter()
            .filter(|name| names.iter().any(|found| found == name))
            .collect();
        agree += u32::from(holds || !said.is_empty());
        let holds = if holds { "yes" } else { "no" };
        println!(
            "| {number} | {value:.0} | {low:.0} to {high:.0} | {holds} | {} | {seconds:.0} |",
            said.join(", ")
        );
    }
    println!(
        "\n{agree} of {} hold the pooled value, or said why they need not.",
        runs.len()
    );
    Ok(())
}

fn pacer(settings: &Settings) -> Result<(), String> {
    let folder = folder(settings)?;
    println!("\n## The pacer's own lateness: 100,000 a second on null\n");
    println!(
        "| arrivals | p50 µs | p99 µs | p99.9 µs | max µs | done a second \
         |\n|---|---|---|---|---|---|"
    );
    for arrivals in ["poisson", "uniform"] {
        let run = folder.0.join(format!("pacer-{arrivals}"));
        let options = [
            "curve",
            "null:",
            "--rate",
            "100k",
            "--arrivals",
            arrivals,
            "--point-max",
            "10s",
        ];
        let tail = ["--precision", "0.1%", "--json", "--out", text(&run)];
        let timed = Timed::run(settings, &[&options[..], &tail].concat())?;
        let class = &timed.json["points"][0]["classes"][0];
        let delay = &class["scheduling_delay"];
        println!(
            "| {arrivals} | {:.2} | {:.2} | {:.2} | {:.0} | {:.0} |",
            number(&delay["p50_us"]),
            number(&delay["p99_us"]),
            number(&delay["p999_us"]),
            number(&delay["max_us"]),
            number(&class["iops"])
        );
    }
    Ok(())
}

// ---- what they share ----

fn folder(settings: &Settings) -> Result<Folder, String> {
    Folder::make(
        &settings.folder,
        &format!("searches-{}", std::process::id()),
    )
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of benchmarks are plain")
}

/// A run of the program, with its output and its duration.
struct Timed {
    json: Value,
    seconds: f64,
}

impl Timed {
    fn run(settings: &Settings, arguments: &[&str]) -> Result<Self, String> {
        eprintln!("rigel {}", arguments.join(" "));
        let began = Instant::now();
        let output = Command::new(&settings.rigel)
            .args(arguments)
            .arg("--no-progress")
            .output()
            .map_err(|error| format!("{}: {error}", settings.rigel.display()))?;
        let seconds = began.elapsed().as_secs_f64();
        if !output.status.success() {
            return Err(format!(
                "{}: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        let json = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
        Ok(Self { json, seconds })
    }
}

/// A file of random bytes.
fn filled(folder: &Folder, gib: u32) -> Result<PathBuf, String> {
    let path = folder.0.join("file");
    let fill = || -> std::io::Result<()> {
        let mut file = File::create(&path)?;
        let mut piece = vec![0; 1 << 20];
        let mut rng = rigel_model::workload::rng::Rng::new(gib.into(), 0);
        for _ in 0..u64::from(gib) << 10 {
            rigel_model::workload::content::fill(&mut piece, &mut rng);
            file.write_all(&piece)?;
        }
        file.sync_all()
    };
    fill().map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(path)
}
