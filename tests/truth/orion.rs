//! Orion's six files follow from the journal, which anybody can read, and every cell accounts for
//! all of its time.
//!
//! The arithmetic here is written independently from the contents of the journal, and uses none of
//! the library's.

use super::{engine_names, journal, rigel, rigel_orion};
use crate::common::{Place, scratch_file, text};
use rigel_model::MIB;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const FILES: [&str; 6] = [
    "summary.txt",
    "mbps.csv",
    "iops.csv",
    "lat.csv",
    "hist.txt",
    "trace.txt",
];

/// The texts of a run's six files, by the suffixes of their names.
fn files(directory: &Path) -> BTreeMap<&'static str, String> {
    let names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let of = |end: &str| {
        names
            .iter()
            .find(|path| text(path).ends_with(&format!("_{end}")))
    };
    FILES
        .map(|end| {
            (
                end,
                fs::read_to_string(of(end).unwrap_or_else(|| panic!("no {end}"))).unwrap(),
            )
        })
        .into()
}

/// Totals of one class of one cell, over kinds and seconds.
#[derive(Debug, Default, Clone, Copy)]
struct Class {
    bytes: u64,
    outstanding: u64,
    done: u64,
    sum_ns: u64,
    max_ns: u64,
    seconds: f64,
}

impl Class {
    fn of(point: &Value, name: &str) -> Option<Self> {
        let stream = point["streams"]
            .as_array()
            .unwrap()
            .iter()
            .find(|stream| stream["name"] == name)?;
        let outstanding = stream["loads"]
            .as_array()
            .unwrap()
            .iter()
            .map(|load| load["closed"]["depth"].as_u64().unwrap())
            .sum();
        let mut class = Self {
            bytes: stream["length"].as_u64().unwrap(),
            outstanding,
            seconds: point["measured"].as_u64().unwrap() as f64 / 1e9,
            ..Self::default()
        };
        for kind in stream["kinds"].as_array().unwrap() {
            for window in kind["windows"].as_array().unwrap() {
                assert!(window["failed"].is_null(), "{window}");
                let done = window["done"].as_u64().unwrap();
                let buckets = window["response"]["histogram"].as_array().unwrap();
                assert_eq!(
                    buckets
                        .iter()
                        .map(|bucket| bucket[1].as_u64().unwrap())
                        .sum::<u64>(),
                    done
                );
                class.done += done;
                class.sum_ns += window["response"]["sum"].as_u64().unwrap();
                class.max_ns = class
                    .max_ns
                    .max(window["response"]["max"].as_u64().unwrap());
            }
        }
        Some(class)
    }

    fn iops(&self) -> f64 {
        self.done as f64 / self.seconds
    }

    fn mbps(&self) -> f64 {
        self.iops() * self.bytes as f64 / 1_048_576.0
    }

    fn mean_us(&self) -> f64 {
        self.sum_ns as f64 / self.done as f64 / 1e3
    }
}

fn cell(point: &Value) -> (u64, u64) {
    let number = |name: &str| point["coordinates"][name].as_u64().unwrap();
    (number("small"), number("large"))
}

/// A csv file of Orion: the text of each cell, by small and large load.
fn matrix(text: &str) -> BTreeMap<(u64, u64), String> {
    let mut lines = text
        .lines()
        .map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
    let head = lines.next().unwrap();
    assert_eq!(head[0], "Large/Small");
    let mut cells = BTreeMap::new();
    for line in lines {
        for (column, value) in head
            .iter()
            .zip(&line)
            .skip(1)
            .filter(|(_, value)| !value.is_empty())
        {
            cells.insert(
                (column.parse().unwrap(), line[0].parse().unwrap()),
                (*value).to_string(),
            );
        }
    }
    cells
}

/// The result of `figure` for one class of every cell that has it.
fn recomputed(
    points: &[Value],
    class: &str,
    figure: fn(&Class) -> String,
) -> BTreeMap<(u64, u64), String> {
    points
        .iter()
        .filter_map(|point| Some((cell(point), figure(&Class::of(point, class)?))))
        .collect()
}

#[test]
fn files_follow_from_the_journal_and_cells_account_for_their_time() {
    let place = Place::new("truth-orion");
    let file = scratch_file("truth-orion", 64 * MIB);
    std::thread::scope(|scope| {
        for name in engine_names() {
            let (place, target) = (&place, text(&file.path));
            let level = [
                "-matrix",
                "detailed",
                "-num_small",
                "2",
                "-num_large",
                "1",
                "-duration",
                "1",
                "-cache_size",
                "0",
            ];
            scope.spawn(move || {
                let arguments = [&level[..], &["--target", target, "--engine", name]].concat();
                let mut runs = (0..10)
                    .map(|number| rigel_orion(place, &format!("{name}-{number}"), &arguments));
                // If the machine gives some cell no time at all there is nothing to check: retry.
                let run = runs.find(|run| journal(run).1.iter().all(did_something));
                let run = run.expect("the machine leaves each cell some time");
                check(name, &run);
                // The same again, only from the journal.
                let again = place.0.join(format!("{name}-again"));
                fs::create_dir(&again).unwrap();
                let status = rigel(&["report", text(&run), "--orion-files", text(&again)]).status;
                assert!(status.success(), "{name}");
                assert_eq!(files(&run), files(&again), "{name}");
            });
        }
    });
}

fn did_something(point: &Value) -> bool {
    ["small", "large"]
        .into_iter()
        .filter_map(|name| Class::of(point, name))
        .all(|class| class.done > 0)
}

fn check(name: &str, run: &Path) {
    let (header, points) = journal(run);
    assert_eq!(header["engine"]["name"], name);
    assert!(
        header["engine_about"].as_str().unwrap().contains(name),
        "{name}: {}",
        header["engine_about"]
    );
    let cells: Vec<_> = points.iter().map(cell).collect();
    assert_eq!(cells, [(1, 0), (2, 0), (0, 1), (1, 1), (2, 1)], "{name}");
    assert!(
        points.iter().all(|point| point["end"] == "complete"),
        "{name}"
    );
    check_law(name, &points);

    let files = files(run);
    let csv = |file: &str| matrix(&files[file]);
    assert_eq!(
        csv("iops.csv"),
        recomputed(&points, "small", |class| format!("{:.0}", class.iops())),
        "{name}"
    );
    assert_eq!(
        csv("lat.csv"),
        recomputed(&points, "small", |class| format!("{:.2}", class.mean_us())),
        "{name}"
    );
    assert_eq!(
        csv("mbps.csv"),
        recomputed(&points, "large", |class| format!("{:.2}", class.mbps())),
        "{name}"
    );
    check_summary(name, &points, &files["summary.txt"]);
    check_lines(name, &points, &files);
}

/// Checks that the response times of each slot in a closed loop are contiguous. Without a warm-up,
/// those of a cell add up to at least the measured time of each slot, plus at most the duration of
/// the last operations beyond it.
fn check_law(name: &str, points: &[Value]) {
    for point in points {
        let (small, large) = cell(point);
        for (class, outstanding) in [("small", small), ("large", large)] {
            let Some(class) = Class::of(point, class) else {
                assert_eq!(outstanding, 0, "{name} {small},{large}");
                continue;
            };
            assert_eq!(class.outstanding, outstanding);
            let what = format!("{name} {small},{large}: {class:?}");
            let measured = point["measured"].as_u64().unwrap();
            assert!(
                class.sum_ns <= outstanding * (measured + class.max_ns),
                "{what}"
            );
            // A single thread fills all slots at once, or none in time; with several, each starts
            // when the machine lets it.
            let places = if name == "psync" {
                outstanding.min(1)
            } else {
                outstanding
            };
            assert!(class.sum_ns >= places * measured, "{what}");
        }
    }
}

/// Checks that the maxima and the minimum of the summary are those of the cells that it names, and
/// that its histogram contains every small I/O of the cell above it.
fn check_summary(name: &str, points: &[Value], summary: &str) {
    let figures = |class: &str, figure: fn(&Class) -> f64| {
        points
            .iter()
            .filter_map(|point| Some((cell(point), figure(&Class::of(point, class)?))))
            .collect::<Vec<_>>()
    };
    // Two cells can tie to the last digit: both rules name the one that was measured first.
    let most = |figures: Vec<((u64, u64), f64)>| {
        figures
            .into_iter()
            .rev()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap()
    };
    let least = |figures: Vec<((u64, u64), f64)>| {
        figures
            .into_iter()
            .min_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap()
    };
    let has = |line: String| {
        assert!(
            summary.lines().any(|other| other == line),
            "{name}: no '{line}' in\n{summary}"
        );
    };
    let ((small, large), mbps) = most(figures("large", Class::mbps));
    has(format!(
        "Maximum Large MBPS={mbps:.2} @ Small={small} and Large={large}"
    ));
    let ((small, large), us) = least(figures("small", Class::mean_us));
    has(format!(
        "Minimum Small Latency={us:.3} usecs @ Small={small} and Large={large}"
    ));
    let ((small, large), iops) = most(figures("small", Class::iops));
    has(format!(
        "Maximum Small IOPS={iops:.0} @ Small={small} and Large={large}"
    ));
    has(format!(
        "Small Read / Write Latency Histogram @ Small={small} and Large={large}"
    ));

    let counts = |line: &str| {
        let mut words = line
            .split_once("us:")?
            .1
            .split_whitespace()
            .map(|word| word.parse::<u64>().unwrap());
        Some((words.next().unwrap(), words.next().unwrap()))
    };
    let histogram: Vec<_> = summary.lines().filter_map(counts).collect();
    assert_eq!(histogram.len(), 28, "{name}");
    let done = Class::of(
        points
            .iter()
            .find(|point| cell(point) == (small, large))
            .unwrap(),
        "small",
    )
    .unwrap()
    .done;
    assert_eq!(
        histogram.iter().map(|(reads, _)| reads).sum::<u64>(),
        done,
        "{name}"
    );
    assert!(histogram.iter().all(|(_, writes)| *writes == 0), "{name}");
}

/// Checks that `hist.txt` and `trace.txt` add up to the operations done, and bytes to I/Os.
fn check_lines(name: &str, points: &[Value], files: &BTreeMap<&str, String>) {
    let of = |file: &str, key: &str| -> Vec<Vec<u64>> {
        let lines = files[file]
            .lines()
            .filter_map(|line| line.strip_prefix(key));
        lines
            .map(|line| {
                line.split_whitespace()
                    .map(|word| word.parse().unwrap_or(u64::MAX))
                    .collect()
            })
            .collect()
    };
    for point in points {
        let (small, large) = cell(point);
        for class in ["small", "large"] {
            let Some(expected) = Class::of(point, class) else {
                continue;
            };
            let key = format!("Small={small} Large={large} {class} ");
            let buckets = of("hist.txt", &format!("{key}read "));
            let (sum, buckets) = buckets.split_last().unwrap();
            assert_eq!(
                (sum[2], buckets.iter().map(|line| line[2]).sum()),
                (expected.done, expected.done),
                "{name} {key}"
            );
            let seconds = of("trace.txt", &key);
            let column = |at: usize| seconds.iter().map(|line| line[at]).sum::<u64>();
            assert_eq!([1, 2, 3].map(column), [expected.done, 0, 0], "{name} {key}");
            assert_eq!(column(4), expected.done * expected.bytes, "{name} {key}");
        }
    }
}
