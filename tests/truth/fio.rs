//! fio accepts the jobs that we print, and does what they say: block size, direction, depth, files.

use super::{rigel, rigel_orion};
use crate::common::{Missing, Place, Scratch, need, scratch_file, test, text};
use rigel::model::MIB;
use serde_json::Value;

/// What a class of a data point must be to fio.
struct Expect {
    /// The class.
    name: &'static str,
    length: u64,
    rw: &'static str,
    /// The option that keeps I/Os outstanding, and how many.
    outstanding: (&'static str, &'static str),
    /// Percent.
    writes: f64,
}

const SMALL: Expect =
    Expect { name: "small", length: 8192, rw: "randread", outstanding: ("iodepth", "4"), writes: 0.0 };
const LARGE: Expect =
    Expect { name: "large", length: 1 << 20, rw: "randread", outstanding: ("iodepth", "2"), writes: 0.0 };

/// A run of the cell `small,large` on `files`, its job by `rigel report`, and what fio did with that.
fn job_of(name: &str, files: &[Scratch], (small, large): (u32, u32), options: &[&str], expected: &[Expect]) {
    let place = Place::new(&format!("truth-fio-{name}"));
    let (small, large) = (small.to_string(), large.to_string());
    let cell = ["-matrix", "point", "-num_small", &small, "-num_large", &large, "-duration", "1", "-cache_size", "0"];
    let targets: Vec<&str> = files.iter().flat_map(|file| ["--target", text(&file.path)]).collect();
    let run = rigel_orion(&place, "run", &[&cell[..], options, &targets].concat());
    let printed = rigel(&["report", text(&run), "--emit-fio", &format!("{small},{large}")]);
    let job = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.status.success(), "{name}: {}", String::from_utf8_lossy(&printed.stderr));

    let path = place.0.join("job.fio");
    std::fs::write(&path, &job).unwrap();
    let output = need("fio", &["--output-format=json", text(&path)]);
    let Ok(output) = output.map_err(|Missing(why)| why).inspect_err(|why| panic!("{name}: {why}\n{job}")) else {
        return;
    };
    // Remarks of fio's may stand before the document.
    let report: Value = serde_json::from_str(&output[output.find('{').unwrap()..]).unwrap();
    let jobs = report["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), expected.len(), "{name}: each class is reported apart\n{job}");
    for (expect, found) in expected.iter().zip(jobs) {
        check(expect, found, &format!("{name}: {found:#}\n{job}"));
    }
}

fn check(expect: &Expect, found: &Value, what: &str) {
    let (option, outstanding) = expect.outstanding;
    assert!(found["jobname"].as_str().unwrap().starts_with(expect.name), "{what}");
    assert_eq!(found["error"], 0, "{what}");
    let options = &found["job options"];
    assert_eq!(options["bs"], expect.length.to_string(), "{what}");
    assert_eq!(options["rw"], expect.rw, "{what}");
    assert_eq!(options[option], outstanding, "{what}");
    // And what it did, whatever it was told.
    let of = |side: &str, figure: &str| found[side][figure].as_u64().unwrap();
    let [reads, writes] = ["read", "write"].map(|side| of(side, "total_ios"));
    let bytes = of("read", "io_bytes") + of("write", "io_bytes");
    assert!(reads + writes > 0, "{what}");
    assert_eq!(bytes, (reads + writes) * expect.length, "{what}");
    let share = 100.0 * writes as f64 / (reads + writes) as f64;
    assert!((share - expect.writes).abs() <= if expect.writes == 0.0 { 0.0 } else { 10.0 }, "{share} %: {what}");
    let depth = if option == "iodepth" { outstanding } else { "1" };
    assert!(found["iodepth_level"][depth].as_f64().unwrap() > 50.0, "{what}");
}

fn file(name: &str) -> Scratch {
    scratch_file(&format!("truth-fio-{name}"), 64 * MIB)
}

#[test]
fn fio_does_what_the_printed_jobs_say() {
    test("fio_does_what_the_printed_jobs_say", || {
        need("fio", &["--version"])?;
        let streams = ["-type", "seq", "-num_streamIO", "2"];
        let sequential = || Expect { rw: "read", ..LARGE };
        std::thread::scope(|scope| {
            scope.spawn(|| job_of("one", &[file("one")], (4, 0), &["--engine", "uring"], &[SMALL]));
            scope.spawn(|| job_of("several", &[file("a"), file("b")], (4, 0), &["--engine", "libaio"], &[SMALL]));
            scope.spawn(|| job_of("mixed", &[file("mixed")], (4, 2), &["--engine", "uring"], &[SMALL, LARGE]));
            scope.spawn(|| {
                let threads = |expect, count| Expect { outstanding: ("numjobs", count), ..expect };
                let expected = [threads(SMALL, "3"), threads(LARGE, "2")];
                job_of("threads", &[file("threads")], (3, 2), &["--engine", "psync"], &expected);
            });
            scope.spawn(|| job_of("sequential", &[file("sequential")], (0, 2), &streams, &[sequential()]));
            scope.spawn(|| job_of("streams", &[file("c"), file("d")], (0, 3), &streams, &[sequential()]));
            scope.spawn(|| {
                let options = [&streams[..], &["-simulate", "raid0"]].concat();
                job_of("striped", &[file("e"), file("f")], (0, 2), &options, &[sequential()]);
            });
            scope.spawn(|| {
                let target = file("write");
                let path = text(&target.path).to_string();
                let options = ["-write", "30", "--destroy", &path];
                let expected = [Expect { rw: "randrw", writes: 30.0, ..SMALL }];
                job_of("write", std::slice::from_ref(&target), (4, 0), &options, &expected);
            });
        });
        Ok(())
    });
}
