//! The fuzz targets on a fixed sample: sound inputs, and the same inputs damaged. A fuzzer tests
//! more (`make fuzz`); here each target is compiled and run in every build.

#[allow(unreachable_pub, reason = "it is the library of another package, too")]
#[path = "../../fuzz/src/lib.rs"]
pub(crate) mod targets;

use rigel_model::workload::rng::Rng;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Damaged copies of each sound input.
const DAMAGED: usize = 6;

/// The same of inputs that are whole files.
const DAMAGED_FILES: usize = 2;

/// How a target takes its input.
enum Takes {
    Text(fn(&str)),
    Bytes(fn(&[u8])),
    Pieces(fn((u16, &[u8]))),
    TextAndBytes(fn((&str, &[u8]))),
}

use Takes::{Bytes, Pieces, Text, TextAndBytes};

impl Takes {
    /// The type of the input, as its target declares it.
    fn of_type(&self) -> &'static str {
        match self {
            Text(_) => "&str",
            Bytes(_) => "&[u8]",
            Pieces(_) => "(u16, &[u8])",
            TextAndBytes(_) => "(&str, &[u8])",
        }
    }

    fn call(&self, input: &[u8]) {
        let text = String::from_utf8_lossy(input);
        match self {
            Text(target) => target(&text),
            Bytes(target) => target(input),
            Pieces(target) => [1, 7, 4096]
                .iter()
                .for_each(|piece| target((*piece, input))),
            TextAndBytes(target) => target((&text, input)),
        }
    }
}

/// Every target: its name, how it takes its input, sound inputs, and files with more of them.
type Target = (
    &'static str,
    Takes,
    &'static [&'static str],
    &'static [&'static str],
);

const JOURNALS: &[&str] = &["journals/v0.1.0.jsonl", "journals/v0.1.0-file.jsonl"];

const EVENT: &str = "name: block_rq_issue\nID: 1193\nformat:\n\tfield:unsigned short common_type;\t\
                     offset:0;\tsize:2;\tsigned:0;\n\n\tfield:dev_t dev;\toffset:8;\tsize:4;\t\
                     signed:0;\n\tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\tfield:\
                     unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\tfield:char \
                     rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n";

#[rustfmt::skip]
const TARGETS: [Target; 18] = [
    ("access", Text(targets::access), &["postgres://ana:pw@h:5433/d?sslmode=require", "mysql://h/d"], &[]),
    ("awr", Text(targets::awr), &[], &["imports/awr_synthetic.txt", "imports/awr_synthetic.html"]),
    ("conf", Text(targets::conf), &["UPDATE_PCT=25\nSCALE=64M\nRUN_TIME=300\n"], &[]),
    ("http", Bytes(targets::http), &["GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"], &[]),
    ("import", Text(targets::import), &["1, 5, 0, 4096, 0\n"], &["imports/iostat_10.txt", "imports/fio_rate.json"]),
    ("journal", Bytes(targets::journal), &[], JOURNALS),
    ("lun", Text(targets::lun), &["/dev/a\n# disk\n/dev/b\n"], &[]),
    ("marker", Text(targets::marker), &["process 5\nport 5432\n"], &[]),
    ("orion_arguments", Text(targets::orion_arguments), &["-run\nsimple\n-testname\na\n-num_disks\n4", "-help"], &[]),
    ("packed", Bytes(targets::packed), &["{\"fio version\"", "Device r/s w/s\nsda 1 2\n"], &[]),
    ("postgres", Pieces(targets::postgres), &["R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", "E\0\0\0\x09Mno\0\0"], &[]),
    ("quantities", Text(targets::quantities), &["4GiB", "1.5ms", "p99<20ms", "p99<2ms±5%@3000/s", "{\"name\":\"a\",\"about\":\"b\",\"source\":\"c\",\"date\":\"2026-11-25\",\"expect\":[]}", "25%", "3000iops,125MiB/s", "2026-01-02T03:04:05Z", "sim:4,250us"], &[]),
    ("ranges", Text(targets::ranges), &["1..64", "100,200,400", "10%..90%", "r70w30", "8x1MiB"], &[]),
    ("reports", Bytes(targets::reports), &[], JOURNALS),
    ("signature", Bytes(targets::signature), &["LABELONE\0\0LVM2 001", "\u{1}CD001"], &[]),
    ("soak", Bytes(targets::soak), &[], JOURNALS),
    ("tracepoint", TextAndBytes(targets::tracepoint), &[EVENT], &[]),
    ("words", Text(targets::words), &["a b", "\u{1b}[2J'$(id)'"], &[]),
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The input with something cut off, repeated, or replaced.
fn damaged(input: &[u8], rng: &mut Rng) -> Vec<u8> {
    let place = |rng: &mut Rng| usize::try_from(rng.below(input.len() as u64 + 1)).unwrap();
    let (one, other) = (place(rng), place(rng));
    let (from, to) = (one.min(other), one.max(other));
    let (before, part, after) = (&input[..from], &input[from..to], &input[to..]);
    match rng.below(4) {
        0 => before.to_vec(),
        1 => [before, part, part, after].concat(),
        2 => [before, b"-99999999999999999999e9", after].concat(),
        _ => [before, &[0xff, 0x1b, b'\n', 0], after].concat(),
    }
}

#[test]
fn every_fuzz_target_holds_on_sound_and_on_damaged_inputs() {
    let mut rng = Rng::new(28, 0);
    for (name, takes, inputs, files) in &TARGETS {
        let read = |file: &&str| fs::read(root().join("tests").join(file)).unwrap();
        let sound = inputs
            .iter()
            .map(|text| (text.as_bytes().to_vec(), DAMAGED));
        for (input, times) in sound.chain(files.iter().map(|file| (read(file), DAMAGED_FILES))) {
            println!("{name}: {} bytes", input.len());
            takes.call(&input);
            for _ in 0..times {
                let input = damaged(&input, &mut rng);
                println!("{name}: {}", String::from_utf8_lossy(&input));
                takes.call(&input);
            }
        }
    }
}

#[test]
fn every_fuzz_target_is_one_of_these_and_only_calls_it() {
    let folder = root().join("fuzz/fuzz_targets");
    let files: BTreeSet<PathBuf> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    let expected = TARGETS.map(|(name, ..)| folder.join(format!("{name}.rs")));
    assert_eq!(files, BTreeSet::from(expected));
    let manifest = fs::read_to_string(root().join("fuzz/Cargo.toml")).unwrap();
    for (name, takes, ..) in &TARGETS {
        let text = fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        let expected = format!(
            "//! Calls `rigel_fuzz::{name}` with what the fuzzer makes.\n#![no_main]\n\n\
             libfuzzer_sys::fuzz_target!(|input: {}| rigel_fuzz::{name}(input));\n",
            takes.of_type()
        );
        assert_eq!(text, expected, "{name}");
        let declared = format!("name = \"{name}\"\npath = \"fuzz_targets/{name}.rs\"\n");
        assert!(manifest.contains(&declared), "fuzz/Cargo.toml: {name}");
    }
}
