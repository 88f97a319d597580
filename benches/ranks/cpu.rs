//! CPU time of an operation, measured by one process and by ranks: windows, signs of life and the
//! common beginning of points must not cost the loop anything.

use crate::common::Settings;
use rigel_model::record::PointRecord;
use rigel_model::record::journal::Run;
use rigel_model::{ActiveRanks, Coordinates};
use std::path::Path;
use std::process::{Command, Stdio};

/// Outstanding operations of a process.
const DEPTH: &str = "8";

/// Prints a table: for each target the medians of `settings.rounds`, in which one process and two
/// ranks take turns. Needs mpiexec.hydra.
pub(crate) fn cpu(folder: &Path, settings: &Settings) -> Result<(), String> {
    println!("\n## Ranks: CPU time of an operation, in ns\n");
    println!(
        "| target | one process | one of two ranks measures | both measure |\n|---|---|---|---|"
    );
    let storage = folder.join("storage");
    std::fs::create_dir_all(&storage).map_err(|error| error.to_string())?;
    let storage = storage.to_str().ok_or("a folder with a plain name")?;
    for target in [&["null:"][..], &[storage, "--scratch-size", "256MiB"]] {
        let mut times = [const { Vec::new() }; 3];
        for _ in 0..settings.rounds {
            let one = measured(folder, settings, target, false)?;
            times[0].extend(cost(one.points.iter()));
            let ranks = measured(folder, settings, target, true)?;
            for (times, wanted) in times[1..]
                .iter_mut()
                .zip([ActiveRanks::Only(0), ActiveRanks::All])
            {
                let is_wanted = |at: Coordinates| matches!(at, Coordinates::Hosts { active, .. } if active == wanted);
                let parts = ranks.ranks.parts.iter().flat_map(|point| &point.parts);
                let records = parts.map(|part| &part.record);
                times.extend(cost(records.filter(|record| is_wanted(record.coordinates))));
            }
        }
        let [one, alone, both] = times.map(super::median);
        let name = if target.len() == 1 {
            "`null:`"
        } else {
            "files"
        };
        println!("| {name} | {one:.0} | {alone:.0} | {both:.0} |");
    }
    Ok(())
}

/// Nanoseconds of CPU for each operation of all records together.
fn cost<'a>(records: impl Iterator<Item = &'a PointRecord>) -> Option<f64> {
    let sum = records.fold((0.0, 0.0), |(cpu, done), record| {
        let made = record.streams[0].total().done;
        (cpu + record.cpu.0 as f64, done + made as f64)
    });
    (sum.1 > 0.0).then(|| sum.0 / sum.1)
}

/// Runs one process, or two ranks, and reads its journal.
fn measured(
    folder: &Path,
    settings: &Settings,
    target: &[&str],
    as_ranks: bool,
) -> Result<Run, String> {
    let out = folder.join("cpu");
    let _ = std::fs::remove_dir_all(&out);
    let mut command = if as_ranks {
        let mut launcher = Command::new("mpiexec.hydra");
        launcher.args(["-n", "2"]).arg(&settings.rigel);
        launcher
    } else {
        Command::new(&settings.rigel)
    };
    command
        .arg("curve")
        .args(target)
        .args(["--depth", DEPTH, "--point-min", "3s", "--point-max", "3s"])
        .args(["--no-progress", "--out"])
        .arg(&out)
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    let output = command
        .output()
        .map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{target:?}, ranks {as_ranks}: {said}"));
    }
    Run::read(&out).map_err(|error| error.to_string())
}
