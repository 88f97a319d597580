//! What a run over several hosts costs: rank 0 to unpack, journal and merge the records of all ranks
//! of a point, and every rank in CPU time for each operation.

mod cpu;

use crate::common::Settings;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use rigel_analyse::is_enough;
use rigel_device::engine::sim::Sim;
use rigel_drive::Terms;
use rigel_model::record::journal::Header;
use rigel_model::record::journal::Journal;
use rigel_model::record::journal::Run;
use rigel_model::record::ranks::merged;
use rigel_model::record::{PointRecord, RankClock, RankRecord};
use rigel_model::{Coordinates, Nanos, SimSpec};
use rigel_verbs::calibrate::CalibrateRequest;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

/// Numbers of ranks that are measured.
const RANKS: [u32; 4] = [2, 16, 100, 1000];

/// Prints the costs of a record of a model and of the largest record of a real run, and the CPU time
/// of an operation. Files are made in `folder`.
pub(crate) fn ranks(folder: &Path, settings: &Settings) -> Result<(), String> {
    println!("\n## Ranks: the cost of a point at rank 0\n");
    let rounds = settings.rounds;
    let (real, header) = largest(folder, settings)?;
    let name = "five seconds of a model at depth 32";
    costs(name, &part()?, &header, folder, rounds)?;
    let name = format!(
        "the largest of a calibration, {}",
        real.record.coordinates.name()
    );
    costs(&name, &real, &header, folder, rounds)?;
    cpu::cpu(folder, settings)
}

/// The point with the longest record of a calibration of a file, as a rank's, and the calibration's
/// header.
fn largest(folder: &Path, settings: &Settings) -> Result<(RankRecord, Header), String> {
    let out = folder.join("calibration");
    let output = Command::new(&settings.rigel)
        .args([
            "calibrate",
            "--scratch-size",
            "1GiB",
            "--no-progress",
            "--out",
        ])
        .args([&out, folder])
        .output()
        .map_err(|error| format!("{}: {error}", settings.rigel.display()))?;
    let run = Run::read(&out).map_err(|error| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("{error}: {said}")
    })?;
    let length = |record: &PointRecord| serde_json::to_vec(record).map_or(0, |text| text.len());
    let record = run.points.into_iter().max_by_key(length);
    let part = RankRecord {
        rank: 0,
        clock: RankClock::default(),
        began: Nanos(0),
        record: record.ok_or("a calibration without points")?,
    };
    Ok((part, run.header))
}

/// Prints a row for each number of ranks, all with this record: the medians of `rounds`.
fn costs(
    name: &str,
    part: &RankRecord,
    header: &Header,
    folder: &Path,
    rounds: u32,
) -> Result<(), String> {
    let said = |error: rigel_model::Error| error.to_string();
    let text = serde_json::to_vec(part).map_err(|error| error.to_string())?;
    let packed = packed(&text)?;
    println!(
        "A record of {} windows ({name}): {:.0} KB of JSON, {:.0} KB packed, {:.0} KB in memory.\n",
        part.record.streams[0].kinds[0].windows.len(),
        text.len() as f64 / 1e3,
        packed.len() as f64 / 1e3,
        in_memory(part) as f64 / 1e3
    );
    println!("| ranks | unpack and parse | merge | journal | together |\n|---|---|---|---|---|");
    for count in RANKS {
        let mut times = [const { Vec::new() }; 3];
        let place = folder.join("journal");
        let mut journal = Journal::create(&place, header).map_err(said)?;
        for _ in 0..rounds {
            let mut clock = Instant::now();
            let mut lap = |times: &mut Vec<f64>| {
                times.push(clock.elapsed().as_secs_f64() * 1e3);
                clock = Instant::now();
            };
            let parts: Vec<RankRecord> = (0..count)
                .map(|rank| unpacked(&packed, rank))
                .collect::<Result<_, _>>()?;
            lap(&mut times[0]);
            let sum = merged(String::new(), &parts).ok_or("no sum of all ranks")?;
            lap(&mut times[1]);
            journal.point_of_ranks(&parts, &sum).map_err(said)?;
            lap(&mut times[2]);
            drop(sum);
        }
        drop(journal);
        std::fs::remove_dir_all(&place).map_err(|error| error.to_string())?;
        let [unpack, merge, journal] = times.map(median);
        let all = unpack + journal + merge;
        println!("| {count} | {unpack:.1} ms | {merge:.1} ms | {journal:.1} ms | {all:.1} ms |");
    }
    println!();
    Ok(())
}

/// What one rank measures in five seconds at depth 32 of a device of a known kind.
fn part() -> Result<RankRecord, String> {
    let spec: SimSpec = "sim:8,100us"
        .parse()
        .or_else(|_| "8,100us".parse())
        .map_err(|error: rigel_model::Error| error.to_string())?;
    let request = CalibrateRequest {
        point_least: Nanos(0),
        ..CalibrateRequest::DEFAULT
    };
    let mut point = request.point(Coordinates::at_depth(32), spec.bytes.0, 1);
    point.until = rigel_model::Until::Elapsed(Nanos::from_secs(5));
    let terms = Terms {
        cue: None,
        workers: 1,
        stop: &AtomicBool::new(false),
        enough: &|classes| {
            classes
                .first()
                .is_some_and(|windows| is_enough(point.until, windows))
        },
    };
    let record = rigel_drive::point(&Sim::new(spec, 1), &point, &terms, &mut |_| ())
        .map_err(|error| error.to_string())?;
    Ok(RankRecord {
        rank: 0,
        clock: RankClock::default(),
        began: Nanos(0),
        record,
    })
}

fn packed(text: &[u8]) -> Result<Vec<u8>, String> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(text).map_err(|error| error.to_string())?;
    encoder.finish().map_err(|error| error.to_string())
}

fn unpacked(packed: &[u8], rank: u32) -> Result<RankRecord, String> {
    let mut text = Vec::new();
    ZlibDecoder::new(packed)
        .read_to_end(&mut text)
        .map_err(|error| error.to_string())?;
    let part = serde_json::from_slice::<RankRecord>(&text).map_err(|error| error.to_string())?;
    Ok(RankRecord { rank, ..part })
}

/// Bytes of the histograms, which are nearly all of a record in memory.
fn in_memory(part: &RankRecord) -> usize {
    let windows = part.record.streams.iter().flat_map(|stream| &stream.kinds);
    let windows = windows.flat_map(|kind| &kind.windows);
    windows
        .map(|window| {
            size_of_val(window)
                + window.response.histogram.buckets().count() * size_of::<(u16, u64)>()
        })
        .sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}
