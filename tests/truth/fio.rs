//! fio accepts the jobs that we print, and follows them: block size, direction, depth, files. The
//! amount of I/O is not checked.

use super::device::{Behaviour, at_once};
use super::{LENGTH, faulty, rigel, rigel_orion};
use crate::common::{Missing, Place, Scratch, need, scratch_file, test, text};
use rigel_model::MIB;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Expected fio job for a class of a data point.
struct Expect {
    /// Name of the class.
    name: &'static str,
    length: u64,
    rw: &'static str,
    /// The option that keeps I/Os outstanding, and their number.
    outstanding: (&'static str, &'static str),
    /// Percentage of writes.
    writes: f64,
}

const SMALL: Expect = Expect {
    name: "small",
    length: 8192,
    rw: "randread",
    outstanding: ("iodepth", "4"),
    writes: 0.0,
};
const LARGE: Expect = Expect {
    name: "large",
    length: 1 << 20,
    rw: "randread",
    outstanding: ("iodepth", "2"),
    writes: 0.0,
};

/// Runs the cell `small,large` on `files`, gets its job from `rigel report`, and runs fio with it.
fn job_of(
    name: &str,
    files: &[Scratch],
    (small, large): (u32, u32),
    options: &[&str],
    expected: &[Expect],
) {
    let place = Place::new(&format!("truth-fio-{name}"));
    let (small, large) = (small.to_string(), large.to_string());
    let cell = [
        "-matrix",
        "point",
        "-num_small",
        &small,
        "-num_large",
        &large,
        "-duration",
        "1",
        "-cache_size",
        "0",
    ];
    let targets: Vec<&str> = files
        .iter()
        .flat_map(|file| ["--target", text(&file.path)])
        .collect();
    let run = rigel_orion(&place, "run", &[&cell[..], options, &targets].concat());
    let job = job_for_a_second(&run, &format!("{small},{large}"));
    let path = place.0.join("job.fio");
    std::fs::write(&path, &job).unwrap();
    // If the machine gives fio no CPU time it cannot follow the job: retry.
    let report = (0..10)
        .map(|_| fio(&path, name))
        .find(|report| jobs(report).iter().all(|job| ios(job) > 0));
    let report = report.expect("the machine leaves fio some time");
    let jobs = jobs(&report);
    assert_eq!(
        jobs.len(),
        expected.len(),
        "{name}: each class is reported apart\n{job}"
    );
    for (expect, found) in expected.iter().zip(jobs) {
        check(expect, found, &format!("{name}: {found:#}\n{job}"));
    }
}

/// The printed job of a point, with a second in place of the time that a comparison needs.
fn job_for_a_second(run: &Path, point: &str) -> String {
    let printed = rigel(&["report", text(run), "--emit-fio", point]);
    assert!(
        printed.status.success(),
        "{point}: {}",
        String::from_utf8_lossy(&printed.stderr)
    );
    let job = String::from_utf8(printed.stdout).unwrap();
    assert!(job.contains("\nruntime=10000ms\n"), "{job}");
    job.replace("\nruntime=10000ms\n", "\nruntime=1000ms\n")
}

/// fio's report of a job.
fn fio(job: &Path, name: &str) -> Value {
    let output = need("fio", &["--output-format=json", text(job)]);
    let output = output.unwrap_or_else(|Missing(why)| {
        panic!("{name}: {why}\n{}", std::fs::read_to_string(job).unwrap())
    });
    // Messages of fio may precede the document.
    serde_json::from_str(&output[output.find('{').unwrap()..]).unwrap()
}

fn jobs(report: &Value) -> &[Value] {
    report["jobs"].as_array().unwrap()
}

/// I/Os of one side of a job, or of both.
fn ios(job: &Value) -> u64 {
    ["read", "write"]
        .map(|side| job[side]["total_ios"].as_u64().unwrap())
        .iter()
        .sum()
}

fn check(expect: &Expect, found: &Value, what: &str) {
    let (option, outstanding) = expect.outstanding;
    assert!(
        found["jobname"].as_str().unwrap().starts_with(expect.name),
        "{what}"
    );
    assert_eq!(found["error"], 0, "{what}");
    let options = &found["job options"];
    assert_eq!(options["bs"], expect.length.to_string(), "{what}");
    assert_eq!(options["rw"], expect.rw, "{what}");
    assert_eq!(options[option], outstanding, "{what}");
    // And what it actually did.
    let of = |side: &str, figure: &str| found[side][figure].as_u64().unwrap();
    let [reads, writes] = ["read", "write"].map(|side| of(side, "total_ios"));
    let bytes = of("read", "io_bytes") + of("write", "io_bytes");
    assert_eq!(bytes, (reads + writes) * expect.length, "{what}");
    // fio steers towards the mix, and draws within it: allow six standard deviations of chance as
    // well.
    let share = 100.0 * writes as f64 / (reads + writes) as f64;
    let chance = 6.0 * (expect.writes * (100.0 - expect.writes) / (reads + writes) as f64).sqrt();
    let steered = if expect.writes == 0.0 { 0.0 } else { 10.0 };
    assert!(
        (share - expect.writes).abs() <= steered + chance,
        "{share} %: {what}"
    );
    // fio waits only when its maximum is outstanding. So at least one of each `depth` I/Os that it
    // issues fills the last slot, except for an incomplete turn at the end. It reports this in
    // percent, rounded to a tenth.
    let depth: u32 = if option == "iodepth" {
        outstanding.parse().unwrap()
    } else {
        1
    };
    let level = |depth: &str| found["iodepth_level"][depth].as_f64().unwrap();
    let turns = (reads + writes + 1).saturating_sub(depth.into()) as f64 / f64::from(depth);
    assert!(
        level(&depth.to_string()) >= 100.0 * turns / (reads + writes) as f64 - 0.1,
        "{what}"
    );
    let deeper = [8, 16, 32].map(|deeper| level(&deeper.to_string()));
    assert!(
        deeper.iter().sum::<f64>() + level(">=64") < f64::EPSILON,
        "{what}"
    );
}

fn file(name: &str) -> Scratch {
    scratch_file(&format!("truth-fio-{name}"), 64 * MIB)
}

#[test]
fn fio_runs_the_printed_jobs_as_described() {
    test("fio_runs_the_printed_jobs_as_described", || {
        need("fio", &["--version"])?;
        let streams = ["-type", "seq", "-num_streamIO", "2"];
        let sequential = || Expect {
            rw: "read",
            ..LARGE
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                job_of(
                    "one",
                    &[file("one")],
                    (4, 0),
                    &["--engine", "uring"],
                    &[SMALL],
                );
            });
            scope.spawn(|| {
                job_of(
                    "several",
                    &[file("a"), file("b")],
                    (4, 0),
                    &["--engine", "libaio"],
                    &[SMALL],
                );
            });
            scope.spawn(|| {
                job_of(
                    "mixed",
                    &[file("mixed")],
                    (4, 2),
                    &["--engine", "uring"],
                    &[SMALL, LARGE],
                );
            });
            scope.spawn(|| {
                let threads = |expect, count| Expect {
                    outstanding: ("numjobs", count),
                    ..expect
                };
                let expected = [threads(SMALL, "3"), threads(LARGE, "2")];
                job_of(
                    "threads",
                    &[file("threads")],
                    (3, 2),
                    &["--engine", "psync"],
                    &expected,
                );
            });
            scope.spawn(|| {
                job_of(
                    "sequential",
                    &[file("sequential")],
                    (0, 2),
                    &streams,
                    &[sequential()],
                );
            });
            scope.spawn(|| {
                job_of(
                    "streams",
                    &[file("c"), file("d")],
                    (0, 3),
                    &streams,
                    &[sequential()],
                );
            });
            scope.spawn(|| {
                let options = [&streams[..], &["-simulate", "raid0"]].concat();
                job_of(
                    "striped",
                    &[file("e"), file("f")],
                    (0, 2),
                    &options,
                    &[sequential()],
                );
            });
            scope.spawn(|| {
                let target = file("write");
                let path = text(&target.path).to_string();
                let options = ["-write", "30", "--destroy", &path];
                let expected = [Expect {
                    rw: "randrw",
                    writes: 30.0,
                    ..SMALL
                }];
                job_of(
                    "write",
                    std::slice::from_ref(&target),
                    (4, 0),
                    &options,
                    &expected,
                );
            });
        });
        Ok(())
    });
}

#[test]
fn fio_keeps_as_many_outstanding_as_the_job_of_a_curve_says() {
    test(
        "fio_keeps_as_many_outstanding_as_the_job_of_a_curve_says",
        || {
            need("fio", &["--version"])?;
            let place = Place::new("truth-fio-curve");
            // Answers none of the first four reads before it has all of them.
            let behaviour = Behaviour {
                together: 4,
                ..Behaviour::fixed(Duration::from_millis(1))
            };
            let device = faulty::mount(&place, behaviour)?;
            let run = place.0.join("run");
            let arguments = [
                "curve",
                text(&device.path),
                "--depth",
                "4",
                "--engine",
                "uring",
                "--point-max",
                "1s",
            ];
            let made = rigel(
                &[
                    &arguments[..],
                    &["--out", text(&run), "--no-progress", "--json"],
                ]
                .concat(),
            );
            assert!(
                made.status.success(),
                "{}",
                String::from_utf8_lossy(&made.stderr)
            );
            let ours = device.take();
            let path = place.0.join("job.fio");
            std::fs::write(&path, job_for_a_second(&run, "depth:4")).unwrap();
            let report = fio(&path, "curve");
            let theirs = device.take();
            for (who, log) in [("rigel", &ours), ("fio", &theirs)] {
                assert_eq!(at_once(log), 4, "reads at once of {who}");
                assert!(
                    log.iter()
                        .all(|read| read.bytes == LENGTH && read.offset % u64::from(LENGTH) == 0),
                    "{who}"
                );
            }
            // Neither includes its warm-up.
            let curve: Value = serde_json::from_slice(&made.stdout).unwrap();
            let done = curve["points"][0]["classes"][0]["done"].as_u64().unwrap();
            assert!(done <= ours.len() as u64, "{done} of {}", ours.len());
            assert!(
                ios(&jobs(&report)[0]) <= theirs.len() as u64,
                "{} of {}",
                ios(&jobs(&report)[0]),
                theirs.len()
            );
            Ok(())
        },
    );
}
