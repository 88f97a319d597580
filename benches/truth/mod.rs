//! The part `truth`: how close measurements come to known values.
//!
//! The devices are those of tests/truth, which asserts bounds that hold on any machine. Here the
//! distance itself is shown: measured and witnessed values side by side in one run, with the range
//! over the rounds. Device and Rigel have priority over everything else on the machine, where that
//! is allowed.

#[path = "../../tests/truth/capped.rs"]
mod capped;
#[path = "../../tests/common/mod.rs"]
mod common;
#[path = "../../tests/truth/device.rs"]
mod device;
#[path = "../../tests/truth/points.rs"]
mod points;

use crate::common::{Folder, Settings};
use capped::Group;
use common::{Loop, Missing, need, scratch_file, text, wait};
use device::{Behaviour, Device, Served, at_once};
use points::{LENGTH, engine, engine_names, measure, reads};
use rigel_model::record::PointRecord;
use rigel_model::{Layout, MIB, Nanos, Pattern, Step, Until, WarmUp};
use rigel_verbs::calibrate::CalibrateRequest;
use serde_json::Value;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const SIZE: u64 = 64 * MIB;
/// Number of calibrations whose spread is shown.
const CALIBRATIONS: usize = 10;

/// The tables of this part.
pub(crate) fn tables(settings: &Settings, folder: &Folder) -> Result<(), String> {
    // A thread of its own keeps its priority and control group to itself.
    std::thread::scope(|scope| {
        let all = || {
            schedule("--fifo", 2);
            times(settings, folder)?;
            beside_fio(settings, folder)?;
            cap(settings)
        };
        scope.spawn(all).join().expect("measuring does not panic")
    })
    .map_err(|Missing(why)| why)
}

/// A figure over the rounds: its median and range.
struct Rounds(Vec<f64>);

impl Rounds {
    fn shown(mut self, digits: usize) -> String {
        self.0.sort_by(f64::total_cmp);
        let [Some(least), Some(middle), Some(most)] =
            [0, self.0.len() / 2, self.0.len().wrapping_sub(1)].map(|at| self.0.get(at))
        else {
            return "–".into();
        };
        format!("{middle:.digits$} ({least:.digits$} to {most:.digits$})")
    }
}

/// Quantiles and rate of one run, as one of the parties saw it.
#[derive(Clone, Copy)]
struct Seen {
    p50_us: f64,
    p99_us: f64,
    rate: f64,
}

impl Seen {
    fn by_device(log: &[Served]) -> Self {
        let mut took: Vec<f64> = log
            .iter()
            .map(|read| (read.went - read.came).as_secs_f64() * 1e6)
            .collect();
        took.sort_by(f64::total_cmp);
        let quantile = |percent: usize| {
            took.get((took.len() * percent).div_ceil(100).max(1) - 1)
                .copied()
                .unwrap_or(f64::NAN)
        };
        let first = log.iter().map(|read| read.came).min();
        let last = log.iter().map(|read| read.went).max();
        let span = first
            .zip(last)
            .map_or(f64::NAN, |(first, last)| (last - first).as_secs_f64());
        Self {
            p50_us: quantile(50),
            p99_us: quantile(99),
            rate: log.len() as f64 / span,
        }
    }

    fn by_rigel(record: &PointRecord) -> Self {
        let total = record.streams[0].total();
        let quantile = |q| {
            total
                .response
                .histogram
                .quantile(q)
                .map_or(f64::NAN, |band| band.middle() / 1e3)
        };
        Self {
            p50_us: quantile(0.5),
            p99_us: quantile(0.99),
            rate: total.done as f64 / record.measured.as_secs_f64(),
        }
    }
}

/// Sets a policy of the kernel's scheduler for the calling thread and those it starts. If this is
/// not allowed, nothing changes.
fn schedule(policy: &str, priority: u32) {
    let thread = rustix::thread::gettid().as_raw_nonzero().to_string();
    let _ = need("chrt", &[policy, "--pid", &priority.to_string(), &thread]);
}

fn mount(folder: &Folder, behaviour: Behaviour) -> Result<Device, Missing> {
    // The device's threads inherit the priority of the starting thread, which is below Rigel's.
    let device = std::thread::scope(|scope| {
        let start = || {
            schedule("--fifo", 1);
            Device::mount(&folder.0, SIZE, behaviour)
        };
        scope.spawn(start).join().expect("mounting does not panic")
    });
    // Each thread of the crate first clears its own 16 MiB.
    wait(200);
    device.map_err(|error| Missing(error.to_string()))
}

fn heading(settings: &Settings, what: &str) {
    println!(
        "\n### {what}\n\nMedian and range of {} rounds of {} s.\n",
        settings.rounds, settings.seconds
    );
}

/// Runs `body`; if `awake`, idle-priority threads keep the CPUs from sleeping.
fn with_cpus<T>(awake: bool, body: impl FnOnce() -> T) -> T {
    let over = AtomicBool::new(!awake);
    std::thread::scope(|scope| {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..cpus {
            scope.spawn(|| {
                schedule("--idle", 0);
                while !over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        wait(50);
        let result = body();
        over.store(true, Ordering::Relaxed);
        result
    })
}

/// Times and rates of a device with 500 us per read, 5 ms for one read in 50, and four reads at
/// once.
fn times(settings: &Settings, folder: &Folder) -> Result<(), Missing> {
    let behaviour = Behaviour {
        slow: (50, Duration::from_millis(5)),
        ..Behaviour::fixed(Duration::from_micros(500))
    };
    let mean = (49.0 * 500e-6 + 5e-3) / 50.0;
    heading(
        settings,
        "Measured beside the device's own log: 500 µs, one read in 50 takes 5 ms, four served at \
         once",
    );
    println!(
        "| engine | outstanding | CPUs | p50: device µs | measured − device µs | measured ÷ \
         device | p99 ÷ | IOPS ÷ device's | IOPS ÷ programmed | served at once |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for name in engine_names() {
        for depth in [1, 4, 8] {
            for (awake, cpus) in [(false, "may sleep"), (true, "kept awake")] {
                let mut columns: [Vec<f64>; 6] = Default::default();
                let mut most = 0;
                for _ in 0..settings.rounds {
                    let device = mount(folder, behaviour)?;
                    let (record, log) =
                        with_cpus(awake, || point(&device, name, depth, settings.seconds));
                    let (ours, theirs) = (Seen::by_rigel(&record), Seen::by_device(&log));
                    let programmed = f64::from(depth.min(4)) / mean;
                    let figures = [
                        theirs.p50_us,
                        ours.p50_us - theirs.p50_us,
                        ours.p50_us / theirs.p50_us,
                        ours.p99_us / theirs.p99_us,
                        ours.rate / theirs.rate,
                        ours.rate / programmed,
                    ];
                    columns
                        .iter_mut()
                        .zip(figures)
                        .for_each(|(column, figure)| column.push(figure));
                    most = most.max(at_once(&log));
                }
                let shown: Vec<String> = columns
                    .into_iter()
                    .zip([1, 1, 3, 3, 4, 3])
                    .map(|(column, digits)| Rounds(column).shown(digits))
                    .collect();
                println!(
                    "| {name} | {depth} | {cpus} | {} | {most} |",
                    shown.join(" | ")
                );
            }
        }
    }
    Ok(())
}

/// One point on a device, and the device's log of it.
fn point(device: &Device, name: &str, depth: u32, seconds: u32) -> (PointRecord, Vec<Served>) {
    let engine = engine(
        name,
        std::slice::from_ref(&device.path),
        Layout::Concat,
        LENGTH,
        depth,
    );
    let until = Until::Elapsed(Nanos::from_secs(seconds.into()));
    device.take();
    let record = measure(
        engine.as_ref(),
        &reads(Pattern::Uniform, LENGTH, depth, WarmUp::NONE, until),
    );
    (record, device.take())
}

/// fio and Rigel in turn, on a device whose time is long compared with the overhead of a program.
fn beside_fio(settings: &Settings, folder: &Folder) -> Result<(), Missing> {
    heading(
        settings,
        "Rigel beside fio: 10 ms, one read in 33 takes 30 ms, four served at once",
    );
    println!(
        "| outstanding | IOPS: rigel ÷ fio | p50 ÷ | p99 ÷ | fio's p50 ÷ device's | rigel's p50 ÷ \
         device's |"
    );
    println!("|---|---|---|---|---|---|");
    let behaviour = Behaviour {
        slow: (33, Duration::from_millis(30)),
        ..Behaviour::fixed(Duration::from_millis(10))
    };
    for depth in [1, 2, 4] {
        let mut columns: [Vec<f64>; 5] = Default::default();
        let device = mount(folder, behaviour)?;
        for _ in 0..settings.rounds {
            let (record, log) = point(&device, "uring", depth, settings.seconds);
            let (ours, witnessed) = (Seen::by_rigel(&record), Seen::by_device(&log));
            let (theirs, seen) = (
                fio(&device, depth, settings.seconds)?,
                Seen::by_device(&device.take()),
            );
            let figures = [
                ours.rate / theirs.rate,
                ours.p50_us / theirs.p50_us,
                ours.p99_us / theirs.p99_us,
                theirs.p50_us / seen.p50_us,
                ours.p50_us / witnessed.p50_us,
            ];
            columns
                .iter_mut()
                .zip(figures)
                .for_each(|(column, figure)| column.push(figure));
        }
        let shown: Vec<String> = columns
            .into_iter()
            .map(|column| Rounds(column).shown(3))
            .collect();
        println!("| {depth} | {} |", shown.join(" | "));
    }
    Ok(())
}

/// The same job by fio.
fn fio(device: &Device, depth: u32, seconds: u32) -> Result<Seen, Missing> {
    let line = format!(
        "--name=bench --filename={} --readonly --direct=1 --rw=randread --bs={LENGTH} \
         --ioengine=io_uring --iodepth={depth} --lat_percentiles=1 --clat_percentiles=0 \
         --time_based --runtime={seconds} --norandommap=1 --output-format=json",
        text(&device.path)
    );
    let output = need("fio", &line.split_whitespace().collect::<Vec<_>>())?;
    let json: Option<Value> = output
        .find('{')
        .and_then(|at| serde_json::from_str(&output[at..]).ok());
    let json = json.ok_or(Missing("fio's answer was not understood".into()))?;
    let read = &json["jobs"][0]["read"];
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let percentile = |name: &str| number(&read["lat_ns"]["percentile"][name]) / 1e3;
    Ok(Seen {
        p50_us: percentile("50.000000"),
        p99_us: percentile("99.000000"),
        rate: number(&read["iops"]),
    })
}

/// Rates under one of the kernel's caps, and calibrations of it.
fn cap(settings: &Settings) -> Result<(), Missing> {
    let file = scratch_file("bench-truth", 32 * MIB);
    let group = Group::new()?;
    group.enter()?;
    heading(
        settings,
        "Under a cap of the kernel's: loop devices of a cached file",
    );
    println!("| engine | cap, reads a second | IOPS ÷ cap |\n|---|---|---|");
    for name in engine_names() {
        for cap in [500, 2000] {
            let mut to_cap = Vec::new();
            for _ in 0..settings.rounds {
                let device = Loop::new(&file.path)?;
                group.cap(&device.0, cap)?;
                let engine = engine(
                    name,
                    std::slice::from_ref(&device.0),
                    Layout::Concat,
                    LENGTH,
                    16,
                );
                // The initial burst has ended by then.
                let warm_up = WarmUp {
                    least: Nanos::from_millis(1500),
                    most: Nanos::from_millis(1500),
                };
                let until = Until::Elapsed(Nanos::from_secs(settings.seconds.into()));
                let record = measure(
                    engine.as_ref(),
                    &reads(Pattern::Uniform, LENGTH, 16, warm_up, until),
                );
                to_cap.push(Seen::by_rigel(&record).rate / f64::from(cap));
            }
            println!("| {name} | {cap} | {} |", Rounds(to_cap).shown(4));
        }
    }
    calibrations(&group, &file.path)
}

/// Token buckets as calibrations find them, compared with the settings of the device.
pub(crate) fn buckets(settings: &Settings, folder: &Folder) -> Result<(), String> {
    println!(
        "\n### Token buckets, by rigel calibrate\n\nMedian and range of {} calibrations, as shares of the \
         device's.\n\n| reads/s | lent | servers, service | sustained | refill | burst |\n\
         |---|---|---|---|---|---|",
        settings.rounds
    );
    for (rate, burst, servers, service_ms) in [(1000, 3000, 8, 2), (400, 1000, 4, 2), (0, 0, 4, 2)]
    {
        let mut columns: [Vec<f64>; 3] = Default::default();
        for seed in 0..settings.rounds {
            let behaviour = Behaviour {
                limit: (rate, burst),
                servers,
                ..Behaviour::fixed(Duration::from_millis(service_ms))
            };
            let device = mount(folder, behaviour).map_err(|Missing(why)| why)?;
            let paths = std::slice::from_ref(&device.path);
            let engine = engine("uring", paths, Layout::Concat, LENGTH, 256);
            let request = CalibrateRequest {
                depth_max: 64,
                visits_until: CalibrateRequest::DEFAULT.visits_until,
                ..CalibrateRequest::lasting(Nanos::from_secs(30))
            };
            let found = common::calibrate(engine.as_ref(), &request, seed.into(), |_| true);
            let Some(bucket) = found.bucket else { continue };
            let shares = [
                bucket.sustained_per_s.value / f64::from(rate),
                bucket.refill_per_s.value / f64::from(rate),
                bucket.burst.value / f64::from(burst),
            ];
            columns
                .iter_mut()
                .zip(shares)
                .for_each(|(column, share)| column.push(share));
        }
        let shown = columns.map(|column| match column.len() {
            0 => "none".to_string(),
            count => format!("{} in {count}", Rounds(column).shown(3)),
        });
        println!(
            "| {rate} | {burst} | {servers}, {service_ms} ms | {} |",
            shown.join(" | ")
        );
    }
    Ok(())
}

/// Two devices of which one is slower by a known part, by `rigel duet` and by comparing a curve of each.
pub(crate) fn duets(settings: &Settings, folder: &Folder) -> Result<(), String> {
    println!(
        "\n### Which of two devices is faster\n\nFour reads at once of 2 ms, and of that many times as \
         long. Medians and ranges of {} rounds.\n\n| times | by | answers | slower by, % | seconds |\n\
         |---|---|---|---|---|",
        settings.rounds
    );
    for times in [1.05, 1.005] {
        let mut found: [(Vec<String>, Vec<f64>, Vec<f64>); 2] = Default::default();
        for round in 0..settings.rounds {
            let places = ["a", "b"].map(|name| Folder::make(&folder.0, name));
            let [first, second] = places;
            let (first, second) = (first?, second?);
            let of = |place: &Folder, times: f64| {
                let behaviour = Behaviour {
                    servers: 4,
                    ..Behaviour::fixed(Duration::from_secs_f64(times * 2e-3))
                };
                mount(place, behaviour).map_err(|Missing(why)| why)
            };
            let (first, second) = (of(&first, 1.0)?, of(&second, times)?);
            let paths = (text(&first.path), text(&second.path));
            let at = (settings, folder);
            let by = [duet(at, paths, round), curves(at, paths, round)];
            for (all, (answer, slower, seconds)) in found.iter_mut().zip(by) {
                all.0.push(answer);
                all.1.push(slower);
                all.2.push(seconds);
            }
        }
        for (name, (answers, slower, seconds)) in ["duet", "compare"].iter().zip(found) {
            let answers = answers.join(", ");
            let (slower, seconds) = (Rounds(slower).shown(2), Rounds(seconds).shown(0));
            println!("| {times} | {name} | {answers} | {slower} | {seconds} |");
        }
    }
    Ok(())
}

/// The answer of a duet, by how many percent the second is slower, and how long it took.
fn duet(at: (&Settings, &Folder), paths: (&str, &str), seed: u32) -> (String, f64, f64) {
    let line = format!("duet {} {} --depth 8 --seed {seed}", paths.0, paths.1);
    let (found, seconds) = measured(at, &line, "duet");
    let against = &found["duet"]["arms"][1]["against_first"][0];
    let ratio = against["ratio"]["value"].as_f64().unwrap_or(f64::NAN);
    let answer = against["answer"].as_str().unwrap_or("none").to_string();
    (answer, (1.0 / ratio - 1.0) * 100.0, seconds)
}

/// The same by two curves, one after the other, and their comparison.
fn curves(at: (&Settings, &Folder), paths: (&str, &str), seed: u32) -> (String, f64, f64) {
    let of = |path: &str, name: &str| {
        let line = format!("curve {path} --depth 8 --seed {seed}");
        measured(at, &line, name).1
    };
    let seconds = of(paths.0, "first") + of(paths.1, "second");
    let (found, _) = measured(at, "compare first second", "compare");
    let rows = found["figures"].as_array();
    let is_rate = |row: &&Value| {
        row["name"]
            .as_str()
            .is_some_and(|name| name.contains("IOPS"))
    };
    let change = rows.and_then(|rows| rows.iter().find(is_rate));
    let change = change.map_or(&Value::Null, |row| &row["changes"][0]);
    let ratio = change["ratio"].as_f64().unwrap_or(f64::NAN);
    let answer = change["judgement"].as_str().unwrap_or("none").to_string();
    (answer, (1.0 / ratio - 1.0) * 100.0, seconds)
}

/// The JSON report of a run of the program in the folder of the benchmark, and how long it took.
fn measured((settings, folder): (&Settings, &Folder), line: &str, out: &str) -> (Value, f64) {
    let began = Instant::now();
    let mut command = Command::new(&settings.rigel);
    command
        .current_dir(&folder.0)
        .args(line.split(' '))
        .arg("--json");
    if out != "compare" {
        let _ = std::fs::remove_dir_all(folder.0.join(out));
        command.args(["--no-progress", "--out", out]);
    }
    let output = command
        .output()
        .map(|output| output.stdout)
        .unwrap_or_default();
    let seconds = began.elapsed().as_secs_f64();
    (serde_json::from_slice(&output).unwrap_or_default(), seconds)
}

/// The depth searches of ten simultaneous calibrations of one cap; each spends its time waiting.
fn calibrations(group: &Group, file: &std::path::Path) -> Result<(), Missing> {
    const CAP: u32 = 2000;
    let devices = (0..CALIBRATIONS)
        .map(|_| Loop::new(file))
        .collect::<Result<Vec<_>, _>>()?;
    let search = |device: &Loop| {
        group.enter()?;
        group.cap(&device.0, CAP)?;
        let engine = engine(
            "uring",
            std::slice::from_ref(&device.0),
            Layout::Concat,
            LENGTH,
            256,
        );
        let request = CalibrateRequest {
            point_most: Nanos::from_secs(20),
            ..CalibrateRequest::DEFAULT
        };
        let found = common::calibrate(engine.as_ref(), &request, 5, |point| {
            point.coordinates.step() == Step::Depth
        });
        Ok((
            found.maximum.map_or(f64::NAN, |maximum| maximum.iops.value),
            found.curve.cap.is_some(),
        ))
    };
    let found: Vec<(f64, bool)> = std::thread::scope(|scope| {
        let threads: Vec<_> = devices
            .iter()
            .map(|device| scope.spawn(move || search(device)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("a calibration comes to its end"))
            .collect::<Result<_, _>>()
    })?;
    let maxima = || found.iter().map(|(iops, _)| *iops);
    let (least, most) = maxima().fold((f64::MAX, 0.0f64), |(low, high), iops| {
        (low.min(iops), high.max(iops))
    });
    println!(
        "\nTen calibrations of a cap of {CAP} reads a second, at the same time: from {least:.0} \
         to {most:.0} IOPS,"
    );
    println!(
        "greatest ÷ least {:.4}; {} of them name a cap.",
        most / least,
        found.iter().filter(|(_, named)| *named).count()
    );
    Ok(())
}
