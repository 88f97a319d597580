//! Files that others made, read in a process with little memory: kilobytes that would become
//! gigabytes, journals that claim more than they contain, and names that look like lines of ours.

use crate::common::{Place, rigel};
use flate2::{Compression, write::GzEncoder};
use rigel_model::workload::rng::Rng;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Address space of a reader, in KiB: 1 GiB, of which the program itself maps some 100 MiB.
const MEMORY_KIB: u32 = 1 << 20;

/// The first line of an AWR report.
const AWR: &str = "WORKLOAD REPOSITORY report for\n\n";

/// Runs the program on `words` with [`MEMORY_KIB`].
fn bounded(place: &Place, words: &[&str]) -> Output {
    bounded_by(place, MEMORY_KIB, words)
}

/// Runs the program on `words` in this address space. Running out of memory ends it by a signal.
fn bounded_by(place: &Place, kib: u32, words: &[&str]) -> Output {
    Command::new("sh")
        .arg("-c")
        .arg(format!("ulimit -v {kib} && exec \"$0\" \"$@\""))
        .arg(env!("CARGO_BIN_EXE_rigel"))
        .args(words)
        .current_dir(&place.0)
        .output()
        .unwrap()
}

#[track_caller]
fn said(output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr[..]].concat();
    String::from_utf8(text).unwrap()
}

/// `piece`, `times` times, compressed.
fn packed(begin: &str, piece: u8, times: usize) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(begin.as_bytes()).unwrap();
    let pieces = vec![piece; 1 << 20];
    for _ in 0..times >> 20 {
        packed.write_all(&pieces).unwrap();
    }
    packed.finish().unwrap()
}

#[test]
fn kilobytes_of_another_tools_file_do_not_become_gigabytes() {
    let place = Place::new("hostile-imports");
    let ruler = |columns: usize| format!("{}\n", "- ".repeat(columns).trim_end());
    let listing = format!(
        "{}\n{}{}",
        "WAIT_TIME_MICRO WAIT_COUNT".to_string() + &" x".repeat(100_000),
        "--------------- ---------- ".to_string() + &ruler(100_000),
        "1 2\n".repeat(1000)
    );
    let within = format!("{AWR}{}{}", ruler(256), "x\n".repeat(400_000));
    let inputs: [(&str, Vec<u8>, &str); 8] = [
        (
            "columns.txt",
            format!("{AWR}{}{}", ruler(200_000), "x\n".repeat(3000)).into(),
            "and the limit of a line is 64 KiB",
        ),
        (
            "narrower.txt",
            format!("{AWR}{}{}", ruler(30_000), "x\n".repeat(3000)).into(),
            "is a ruler of 30000 columns, and the limit is 256",
        ),
        ("listing.txt", listing.into(), "and the limit of a line is"),
        (
            "breaks.gz",
            packed(AWR, b'\n', 64 << 20),
            "more than 32 MiB when uncompressed",
        ),
        (
            "escapes.gz",
            packed(AWR, 0x1b, 64 << 20),
            "more than 32 MiB when uncompressed",
        ),
        // Of no known format, which is looked for in all of it.
        (
            "lines.txt",
            [&b"x"[..], &vec![b'\n'; 17 << 20]].concat(),
            "has no known format",
        ),
        (
            "tables.html",
            format!("<table>{}", "<td>x".repeat(3 << 20)).into(),
            "has no known format",
        ),
        // At the limits it is read, as far as there is anything in it.
        ("within.txt", within.into(), "within.txt"),
    ];
    for (name, bytes, part) in inputs {
        std::fs::write(place.0.join(name), bytes).unwrap();
        let output = bounded_by(
            &place,
            MEMORY_KIB / 4,
            &["import", name, "--out", "imported"],
        );
        let text = said(&output);
        assert!(
            matches!(output.status.code(), Some(1 | 2)) && text.contains(part),
            "{name}: {output:?}"
        );
        assert!(text.contains(&format!("'{name}'")), "{text}");
    }
}

/// `begin` and `piece`, `times` times, compressed.
fn packed_text(begin: &str, piece: &str, times: usize) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(begin.as_bytes()).unwrap();
    packed.write_all(piece.repeat(times).as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[test]
fn kilobytes_of_cells_do_not_become_gigabytes() {
    const CSV: &str = "time,v\n2026-01-01 00:00:00,5\n";
    const HTML: &str = "<html><h1>WORKLOAD REPOSITORY report for</h1><h3>Load Profile</h3><table>";
    const LOG: &str = "0,1,0,0\n";
    let place = Place::new("hostile-cells");
    let ruler = format!("{AWR}{}\n", "- ".repeat(256).trim_end());
    let row = format!("{}\n", "x ".repeat(255));
    let lines = 30 << 20;
    let inputs: [(&str, Vec<u8>, &str); 6] = [
        (
            "cells.txt",
            packed_text(&ruler, &row, lines / row.len()),
            "has tables of more than 2000000 cells, the limit of a report",
        ),
        (
            "cells.html",
            packed_text(HTML, "<td>x", lines / 5),
            "has tables of more than 2000000 cells, the limit of a report",
        ),
        (
            "rows.html",
            packed_text(HTML, "<TR>", lines / 4),
            "has tables of more than 2000000 cells, the limit of a report",
        ),
        (
            "commas.csv",
            packed_text(CSV, ",", lines),
            "of memory when parsed, and the limit is 512 MiB",
        ),
        (
            "rows.csv",
            packed_text(CSV, "a\n", lines / 2),
            "of memory when parsed, and the limit is 512 MiB",
        ),
        (
            "t_lat.1.log",
            packed_text("", LOG, lines / LOG.len()),
            "t_lat.1.log",
        ),
    ];
    for (name, bytes, part) in inputs {
        assert!(bytes.len() < 400 << 10, "{name}: {}", bytes.len());
        std::fs::write(place.0.join(name), bytes).unwrap();
        let output = bounded(&place, &["import", name, "--out", "imported"]);
        assert!(
            matches!(output.status.code(), Some(0..=2)) && said(&output).contains(part),
            "{name}: {output:?}"
        );
    }
}

/// `piece` as often as the limit of parsed memory allows, if each counts for this many bytes.
fn to_the_limit(begin: &str, piece: &str, bytes: usize, end: &str) -> Vec<u8> {
    let times = (510 << 20) / bytes;
    format!("{begin}{}{end}", vec![piece; times].join(",")).into()
}

#[test]
fn json_takes_no_more_memory_than_is_allowed_whatever_is_in_it() {
    const FIO: &str = "{\"fio version\":\"fio-3.33\",\"jobs\":[";
    const IOSTAT: &str = "{\"sysstat\":{\"hosts\":[{\"nodename\":\"a\",\"statistics\":[";
    const DISK: &str = "{\"disk\":[{\"disk_device\":\"a\",\"r/s\":1,\"w/s\":1,\"util\":1}]}";
    const REFUSED: &str = "of memory when parsed, and the limit is 512 MiB";
    let place = Place::new("hostile-json");
    let named = |piece: &str, count: usize| {
        let pieces: Vec<String> = (0..count)
            .map(|number| piece.replace('#', &number.to_string()))
            .collect();
        pieces.join(",")
    };
    let jobs = format!("{FIO}{}]}}", named("{\"jobname\":\"#\"}", 12_000));
    let options = format!(
        "{{\"fio version\":\"fio-3.33\",\"global options\":{{{}}},\"jobs\":[{}]}}",
        named("\"#\":0", 10_000),
        named("{}", 10_000),
    );
    let depth = 1 << 20;
    let inputs: [(&str, Vec<u8>, &str); 12] = [
        (
            "above.json",
            [FIO.as_bytes(), &b"0,".repeat(6 << 20), b"0]}"].concat(),
            REFUSED,
        ),
        (
            "numbers.json",
            to_the_limit(FIO, "0", 100, "]}"),
            "numbers.json",
        ),
        (
            "arrays.json",
            to_the_limit(FIO, "[0]", 260, "]}"),
            "arrays.json",
        ),
        (
            "objects.json",
            to_the_limit(FIO, "{\"a\":0}", 782, "]}"),
            "objects.json",
        ),
        (
            "texts.json",
            to_the_limit(FIO, "\"aaaaaaaa\"", 109, "]}"),
            "texts.json",
        ),
        (
            "deep.json",
            format!("{FIO}{}", "[".repeat(depth)).into(),
            "recursion limit exceeded",
        ),
        ("jobs.json", jobs.into(), REFUSED),
        ("options.json", options.into(), REFUSED),
        (
            "i-numbers.json",
            to_the_limit(IOSTAT, "0", 100, "]}]}}"),
            "i-numbers.json",
        ),
        (
            "i-objects.json",
            to_the_limit(IOSTAT, "{}", 780, "]}]}}"),
            "i-objects.json",
        ),
        (
            "i-disks.json",
            to_the_limit(IOSTAT, DISK, 2000, "]}]}}"),
            "i-disks.json",
        ),
        (
            "i-deep.json",
            format!("{IOSTAT}{}", "[".repeat(depth)).into(),
            "recursion limit exceeded",
        ),
    ];
    for (name, bytes, part) in inputs {
        std::fs::write(place.0.join(name), bytes).unwrap();
        let _ = std::fs::remove_dir_all(place.0.join("imported"));
        let output = bounded(&place, &["import", name, "--out", "imported"]);
        assert!(
            matches!(output.status.code(), Some(0..=2)) && said(&output).contains(part),
            "{name}: {output:?}"
        );
    }
}

#[test]
fn many_files_of_the_allowed_length_do_not_add_up() {
    let place = Place::new("hostile-many");
    let names: Vec<String> = (0..12)
        .map(|number| format!("t_lat.{number}.log"))
        .collect();
    let log = packed_text("", "0,1,0,0\n", (31 << 20) / 8);
    let unpacked = packed(AWR, b'\n', 31 << 20);
    for (bytes, count, part) in [
        (&log, 4, "lines together, and the limit is 8000000"),
        (
            &unpacked,
            12,
            "together more than on disk, and the limit is 256 MiB",
        ),
    ] {
        for name in &names[..count] {
            std::fs::write(place.0.join(name), bytes).unwrap();
        }
        let files = names[..count].iter().map(String::as_str);
        let words: Vec<&str> = ["import", "--out", "imported"]
            .into_iter()
            .chain(files)
            .collect();
        let output = bounded(&place, &words);
        assert_eq!(output.status.code(), Some(2), "{output:?}");
        assert!(said(&output).contains(part), "{output:?}");
    }
}

#[test]
fn many_devices_of_iostat_are_each_read() {
    // As many as are read of one file.
    const DEVICES: usize = 4096;
    let place = Place::new("hostile-devices");
    let report = |second: u32| {
        let rows: Vec<String> = (0..DEVICES)
            .map(|device| format!("dev{device} {second} 1.0\n"))
            .collect();
        format!(
            "2026-11-21T10:00:{second}+0000\nDevice r/s %util\n{}\n",
            rows.concat()
        )
    };
    let head = "Linux 5.4.0 (db1) \t2026-11-21 \t_x86_64_\t(2 CPU)\n\n\n";
    let text = format!("{head}{}{}", report(11), report(12));
    let source = rigel_import::Source {
        name: "iostat.txt",
        text: &text,
    };
    std::fs::write(place.0.join(source.name), source.text).unwrap();
    let found = rigel_import::iostat::read(source).unwrap();
    let rigel_model::record::imported::Figures::Series(series) = found.figures else {
        panic!("iostat has series")
    };
    assert_eq!(series.len(), 2 * DEVICES);
    assert!(series.iter().all(|series| series.samples.len() == 2));
}

/// The journal of a run of one point, as lines.
fn journal(place: &Place) -> Vec<serde_json::Value> {
    const RUN: &str = "orion -run oltp -num_small 1 -duration 1 --target sim:1,10ms,fixed --seed 7 \
                       --no-progress --out run";
    let output = rigel(place, RUN).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = std::fs::read_to_string(place.0.join("run/journal.jsonl")).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn write_journal(place: &Place, name: &str, lines: &[serde_json::Value]) -> PathBuf {
    let path = place.0.join(name);
    let text: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    std::fs::write(&path, text.concat()).unwrap();
    path
}

#[test]
fn a_journal_needs_no_more_memory_than_it_contains() {
    let place = Place::new("hostile-windows");
    let lines = journal(&place);
    for (measured, window) in [(50, 30), (55, 34), (63, 40), (63, 0), (50, 20)] {
        let mut lines = lines.clone();
        let point = lines.iter_mut().find_map(|line| line.get_mut("point"));
        let point = point.unwrap();
        point["measured"] = (1_u64 << measured).into();
        point["window"] = (1_u64 << window).into();
        write_journal(&place, "claims.jsonl", &lines);
        for words in [
            &["report", "claims.jsonl"][..],
            &["report", "claims.jsonl", "--json"],
            &["report", "claims.jsonl", "--html", "page.html"],
            &["orion", "--resume", "claims.jsonl"],
        ] {
            let output = bounded(&place, words);
            assert!(
                matches!(output.status.code(), Some(0..=4)),
                "{words:?} of 2^{measured} / 2^{window}: {output:?}"
            );
            let is_refused = said(&output).contains("and the limit is 10000000");
            assert_eq!(is_refused, measured - window > 24, "{words:?}: {output:?}");
        }
    }
}

#[test]
fn a_resumed_journal_does_not_write_beyond_its_file() {
    const BYTES: u64 = 64 << 20;
    let place = Place::new("hostile-sessions");
    let file = place.0.join("target");
    std::fs::write(&file, vec![7; 64 << 20]).unwrap();
    let destroy = file.display().to_string();
    let line = "curve target --depth 1,2 --mix write=100 --seed 1 --point-max 2s --no-progress \
                --out run";
    let output = rigel(&place, line).args(["--destroy", &destroy]).output();
    let output = output.unwrap();
    assert!(matches!(output.status.code(), Some(0 | 3)), "{output:?}");
    let text = std::fs::read_to_string(place.0.join("run/journal.jsonl")).unwrap();
    let mut header: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    header["header"]["plan"]["curve"]["sql"] = serde_json::json!({
        "work": {
            "tables": {"schemas": 1, "scale": 1 << 23, "scan_blocks": 1, "block": 8192},
            "read_rows": 1, "update_rows": 1, "updates": 1.0, "scans": 0.0, "redo": "lite",
        },
        "stop": "precise",
        "warm_up": {"least": 0, "most": 0},
        "statement_timeout": null,
    });
    std::fs::write(place.0.join("run/journal.jsonl"), format!("{header}\n")).unwrap();
    let resume = "curve --resume run --no-progress";
    let output = rigel(&place, resume).args(["--destroy", &destroy]).output();
    let output = output.unwrap();
    assert_eq!(std::fs::metadata(&file).unwrap().len(), BYTES, "{output:?}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    let text = said(&output);
    assert!(text.contains("sessions of a database"), "{text}");
}

#[test]
fn every_reader_refuses_a_journal_whose_operations_have_no_bytes() {
    let place = Place::new("hostile-sizes");
    let line = "calibrate sim:1,1ms,size=64MiB --seed 1 --no-progress --out run";
    assert!(rigel(&place, line).output().unwrap().status.success());
    let text = std::fs::read_to_string(place.0.join("run/journal.jsonl")).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let mut header: serde_json::Value = serde_json::from_str(first).unwrap();
    header["header"]["plan"]["calibrate"]["large"] = 0.into();
    std::fs::write(place.0.join("odd.jsonl"), format!("{header}\n{rest}")).unwrap();
    for words in [
        "report odd.jsonl",
        "report odd.jsonl --json",
        "compare odd.jsonl run",
        "calibrate --resume odd.jsonl",
    ] {
        let output = rigel(&place, words).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{words}: {output:?}");
        assert!(
            said(&output).contains("this run has I/Os of 0 bytes"),
            "{words}: {output:?}"
        );
    }
}

/// One change of a text that may make a reader take more: a part of it many times, rulers, control
/// characters, numbers without end.
fn grown(text: &str, rng: &mut Rng) -> String {
    let mut place = |below: usize| usize::try_from(rng.below(below as u64 + 1)).unwrap();
    let ascii: String = text.chars().filter(char::is_ascii).collect();
    let (from, to) = (place(ascii.len()), place(ascii.len()));
    let (from, to) = (from.min(to), from.max(to).min(from.min(to) + 2000));
    let piece = &ascii[from..to];
    let times = (1 << 20) / (piece.len() + 1);
    let put = match place(5) {
        0 => piece.repeat(times),
        1 => format!("\n{}\n", "- ".repeat(place(40_000))),
        2 => format!("\n{}\n{}", "- ".repeat(250), "x\n".repeat(300_000)),
        3 => "\u{1b}".repeat(place(1 << 20)),
        4 => "[".repeat(place(1 << 20)),
        _ => "9".repeat(place(1 << 16)),
    };
    format!("{}{put}{}", &ascii[..from], &ascii[from..])
}

#[test]
fn grown_files_of_all_tools_fit_into_little_memory() {
    let place = Place::new("hostile-grown");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let samples = [
        "tests/imports/awr_synthetic.txt",
        "tests/imports/awr_synthetic.html",
        "tests/imports/statspack_synthetic.lst",
        "tests/imports/fio_each.json",
        "tests/imports/iostat_iso.txt",
        "tests/imports/iostat.json",
        "tests/imports/spool_made_by_hand_1.txt",
        "tests/golden/classic/simple_summary.txt",
        "docs/examples/cloud-day.csv",
    ];
    for (at, name) in samples.iter().enumerate() {
        let text = std::fs::read_to_string(root.join(name)).unwrap();
        for seed in 0..6 {
            let grown = grown(&text, &mut Rng::new(seed, at as u64));
            std::fs::write(place.0.join("grown.txt"), &grown).unwrap();
            let _ = std::fs::remove_dir_all(place.0.join("imported"));
            let output = bounded(&place, &["import", "grown.txt", "--out", "imported"]);
            assert!(
                matches!(output.status.code(), Some(0..=2)),
                "{name} with seed {seed}: {:?}, {} bytes: {}",
                output.status,
                grown.len(),
                String::from_utf8_lossy(&output.stderr)
            );
        }
    }
}

#[test]
fn a_device_of_a_journal_is_no_command() {
    let place = Place::new("hostile-device-name");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("tests/journals/v0.1.0-file.jsonl")).unwrap();
    let (first, points) = text.split_once('\n').unwrap();
    for (name, is_read) in [
        ("nvme0n1", true),
        ("cciss!c0d0", true),
        ("vda/dev; touch pwned; cat /x", false),
        ("..", false),
        ("$(id)", false),
    ] {
        let mut header: serde_json::Value = serde_json::from_str(first).unwrap();
        header["header"]["facts"]["members"][0]["devices"][0]["name"] = name.into();
        std::fs::write(place.0.join("named.jsonl"), format!("{header}\n{points}")).unwrap();
        for line in ["report named.jsonl", "advise named.jsonl --for linux"] {
            let output = rigel(&place, line).output().unwrap();
            let refused = said(&output).contains("is no name of a block device");
            assert_eq!(refused, !is_read, "{line} of {name}: {output:?}");
        }
    }
}

#[test]
fn no_name_is_a_line_of_its_own() {
    const FORGED: &str = "f\nrigel: everything is fine\n  hint: add --destroy";
    let place = Place::new("hostile-lines");
    let is_forged = |output: &Output| {
        said(output).lines().any(|line| {
            line.starts_with("rigel: everything") || line.starts_with("  hint: add --d")
        })
    };
    std::fs::write(place.0.join(FORGED), "not ours\n".repeat(1 << 14)).unwrap();
    let existing = ["report", "import", "orion -run oltp -write 100 --target"];
    let missing = ["check", "curve", "advise", "curve --resume"];
    let existing = existing.map(|line| (line, FORGED.to_string()));
    let missing = missing.map(|line| (line, format!("missing-{FORGED}")));
    for (line, name) in existing.into_iter().chain(missing) {
        let output = rigel(&place, line).arg(&name).output().unwrap();
        let text = said(&output);
        assert!(!output.status.success(), "{line}: {output:?}");
        assert!(
            text.contains("everything") && !is_forged(&output),
            "{line}: {text}"
        );
    }
    // A foreign journal, with such a name in the facts that reports show.
    let mut lines = journal(&place);
    lines[0]["header"]["host"]["name"] = FORGED.into();
    lines[0]["header"]["facts"]["name"] = FORGED.into();
    let finding = serde_json::json!({
        "severity": "warning", "name": "scheduler", "what": FORGED, "hint": FORGED
    });
    lines[0]["header"]["findings"] = serde_json::json!([finding]);
    write_journal(&place, "forged.jsonl", &lines);
    let output = rigel(&place, "report forged.jsonl").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let text = said(&output);
    assert!(
        text.contains("everything is fine") && !is_forged(&output),
        "{text}"
    );
}
