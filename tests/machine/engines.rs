//! One contract for every engine: each in the table of engines must pass all of it, and so must
//! those without files.

use crate::common::{self, Missing, Place, Scratch, scratch_file};
use rigel_device::clock::Clock;
use rigel_device::engine::layout::VolumeMap;
use rigel_device::engine::log::LogFile;
use rigel_device::engine::null::Null;
use rigel_device::engine::opened::Opened;
use rigel_device::engine::sim::Sim;
use rigel_device::engine::volume::Volume;
use rigel_device::engine::{ENGINES, Engine, guard};
use rigel_drive::{DetachedTerms, LogEngines, Terms};
use rigel_model::record::StreamRecord;
use rigel_model::{
    Cause, Completion, Coordinates, Kind, Layout, Load, LogKind, Mix, Nanos, Op, Outcome, Pattern,
    Point, Ratio, Slot, Stream, Until, WarmUp,
};
use std::collections::BTreeSet;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const BLOCK: u32 = 8192;
const BLOCKS: u64 = 2048;
const SLOTS: usize = 32;

/// Mode of opening a volume.
#[derive(Clone, Copy)]
struct Access {
    write: bool,
    direct: bool,
}

fn volume(files: &[&Scratch], access: Access) -> Volume {
    let map = VolumeMap::new(
        &vec![BLOCKS * u64::from(BLOCK); files.len()],
        Layout::Concat,
        BLOCK.into(),
    )
    .unwrap();
    let members: Vec<_> = files
        .iter()
        .map(|file| Opened::open(&file.path).unwrap())
        .collect();
    if access.write {
        let destroy: Vec<_> = files.iter().map(|file| file.path.clone()).collect();
        let permits: Vec<_> = members
            .into_iter()
            .map(|member| guard::permit(member, &destroy).unwrap())
            .collect();
        Volume::to_write(&permits, map, access.direct).unwrap()
    } else {
        Volume::to_read(&members, map, access.direct).unwrap()
    }
}

/// Every engine for files, on the same files.
fn file_engines(files: &[&Scratch], access: Access) -> Vec<Box<dyn Engine>> {
    let volume = || volume(files, access);
    ENGINES
        .iter()
        .map(|engine| (engine.open)(Clock::real(), volume(), &[BLOCK; SLOTS]).unwrap())
        .collect()
}

const READ: Access = Access {
    write: false,
    direct: true,
};
const WRITE: Access = Access {
    write: true,
    direct: true,
};

fn engines(file: &Scratch) -> Vec<Box<dyn Engine>> {
    let mut engines = file_engines(&[file], READ);
    engines.push(Box::new(Null::new(
        Clock::real(),
        BLOCKS * u64::from(BLOCK),
    )));
    engines.push(Box::new(Sim::new(
        format!("4,100us,size={}", BLOCKS * u64::from(BLOCK))
            .parse()
            .unwrap(),
        1,
    )));
    engines
}

fn op(kind: Kind, position: u64) -> Op {
    Op {
        position,
        length: BLOCK,
        kind,
    }
}

/// Submits `ops`, one per slot, and reaps until all are complete.
fn execute(engine: &dyn Engine, ops: &[Op]) -> Vec<Completion> {
    let mut session = engine.open(&vec![BLOCK; ops.len()]).unwrap();
    let mut over = Vec::new();
    for (slot, op) in ops.iter().enumerate() {
        session.submit(Slot::try_from(slot).unwrap(), *op).unwrap();
    }
    while over.len() < ops.len() {
        session
            .reap(engine.clock().now().plus(Nanos::from_secs(10)), &mut over)
            .unwrap();
    }
    over
}

#[test]
fn engines_have_the_properties_of_the_table() {
    let file = scratch_file("contract-table", BLOCKS * u64::from(BLOCK));
    for (engine, listed) in file_engines(&[&file], READ).iter().zip(ENGINES) {
        assert_eq!(engine.name(), listed.info.name);
        assert_eq!(
            engine.slots_max() == 1,
            listed.info.thread_per_io,
            "{}",
            engine.name()
        );
    }
}

#[test]
fn every_operation_ends_once_in_its_own_slot() {
    let file = scratch_file("contract-slots", BLOCKS * u64::from(BLOCK));
    for engine in engines(&file) {
        let slots = engine.slots_max().min(SLOTS);
        let ops: Vec<Op> = (0..slots as u64).map(|i| op(Kind::Read, i * 61)).collect();
        let over = execute(engine.as_ref(), &ops);
        let seen: BTreeSet<Slot> = over.iter().map(|completion| completion.slot).collect();
        assert_eq!(
            (over.len(), seen.len()),
            (slots, slots),
            "{}",
            engine.name()
        );
        assert!(
            over.iter()
                .all(|completion| completion.outcome == Outcome::Done),
            "{}: {over:?}",
            engine.name()
        );
    }
}

#[test]
fn with_nothing_outstanding_reap_waits_until_its_time_and_no_longer() {
    let file = scratch_file("contract-wait", BLOCKS * u64::from(BLOCK));
    for engine in engines(&file) {
        let clock = engine.clock();
        let mut session = engine.open(&[BLOCK]).unwrap();
        let mut over = Vec::new();
        let due = clock.now().plus(Nanos::from_millis(20));
        session.reap(due, &mut over).unwrap();
        assert!(clock.now() >= due, "{} came back early", engine.name());
        session.reap(Nanos(0), &mut over).unwrap();
        assert!(over.is_empty(), "{}", engine.name());
    }
}

#[test]
fn a_read_past_the_end_is_a_short_transfer_and_no_fault() {
    let file = scratch_file("contract-end", BLOCKS * u64::from(BLOCK));
    let engines: Vec<_> = file_engines(&[&file], READ).into_iter().collect();
    // Somebody cuts the file while it is measured.
    let cut = std::fs::File::options()
        .write(true)
        .open(&file.path)
        .unwrap();
    cut.set_len((BLOCKS - 2) * u64::from(BLOCK)).unwrap();
    for engine in engines {
        let over = execute(engine.as_ref(), &[op(Kind::Read, BLOCKS - 1)]);
        assert_eq!(
            over[0].outcome,
            Outcome::Failed(Cause::Short),
            "{}",
            engine.name()
        );
    }
}

#[test]
fn the_kernel_refuses_writes_to_a_volume_opened_for_reading() {
    let file = scratch_file("contract-readonly", BLOCKS * u64::from(BLOCK));
    let before = std::fs::read(&file.path).unwrap();
    for engine in file_engines(&[&file], READ) {
        for kind in [Kind::Write, Kind::Log] {
            let over = execute(engine.as_ref(), &[op(kind, 0)]);
            assert!(
                matches!(over[0].outcome, Outcome::Failed(Cause::Errno(_))),
                "{}: {over:?}",
                engine.name()
            );
        }
    }
    assert_eq!(std::fs::read(&file.path).unwrap(), before);
}

#[test]
fn writes_land_where_they_should_and_no_sector_is_written_twice() {
    for number in 0..ENGINES.len() {
        let files = [
            scratch_file("contract-write-a", BLOCKS * u64::from(BLOCK)),
            scratch_file("contract-write-b", BLOCKS * u64::from(BLOCK)),
        ];
        let engine = file_engines(&[&files[0], &files[1]], WRITE).remove(number);
        let before = files
            .each_ref()
            .map(|file| std::fs::read(&file.path).unwrap());
        // One block in each file, and the last and first block where the files meet.
        let positions = [7, BLOCKS - 1, BLOCKS, BLOCKS + 9];
        for (position, kind) in
            positions
                .into_iter()
                .zip([Kind::Write, Kind::Log, Kind::Write, Kind::Log])
        {
            execute(engine.as_ref(), &[op(kind, position)]);
        }
        let after = files
            .each_ref()
            .map(|file| std::fs::read(&file.path).unwrap());
        let mut sectors = BTreeSet::new();
        for block in 0..2 * BLOCKS {
            let at = |files: &[Vec<u8>; 2]| {
                let start = usize::try_from(block % BLOCKS * u64::from(BLOCK)).unwrap();
                files[usize::from(block >= BLOCKS)][start..start + BLOCK as usize].to_vec()
            };
            let changed = at(&before) != at(&after);
            assert_eq!(
                changed,
                positions.contains(&block),
                "{}: block {block}",
                engine.name()
            );
            if changed {
                at(&after).chunks(512).for_each(|sector| {
                    assert!(sectors.insert(sector.to_vec()), "{}", engine.name());
                });
            }
        }
    }
}

#[test]
fn a_write_never_repeats_data_that_was_read() {
    for number in 0..ENGINES.len() {
        let file = scratch_file("contract-read-write", BLOCKS * u64::from(BLOCK));
        std::fs::write(
            &file.path,
            vec![0; usize::try_from(BLOCKS).unwrap() * BLOCK as usize],
        )
        .unwrap();
        let engine = file_engines(&[&file], WRITE).remove(number);
        let mut sectors = BTreeSet::new();
        // Two sessions that do the same: read zeros, then write from the same slot.
        for session in 0..2 {
            let (mut session, from) = (engine.open(&[BLOCK]).unwrap(), 10 * session);
            let mut over = Vec::new();
            for (done, op) in (1..).zip([
                op(Kind::Read, from),
                op(Kind::Write, from + 1),
                op(Kind::Log, from + 2),
            ]) {
                session.submit(0, op).unwrap();
                while over.len() < done {
                    session
                        .reap(engine.clock().now().plus(Nanos::from_secs(10)), &mut over)
                        .unwrap();
                }
            }
            let start = usize::try_from(from + 1).unwrap() * BLOCK as usize;
            let bytes = std::fs::read(&file.path).unwrap();
            for sector in bytes[start..start + 2 * BLOCK as usize].chunks(512) {
                let random = sector
                    .chunks(16)
                    .all(|bytes| bytes.iter().any(|byte| *byte != 0));
                assert!(random, "{}: what was read was written", engine.name());
                assert!(
                    sectors.insert(sector.to_vec()),
                    "{}: a sector was written twice",
                    engine.name()
                );
            }
        }
    }
}

#[test]
fn every_engine_completes_every_operation() {
    let file = scratch_file("contract-loop", BLOCKS * u64::from(BLOCK));
    let stream = |name: &str, depth| Stream {
        objective: None,
        sql: None,
        name: name.into(),
        load: Load::Closed { depth },
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        length: BLOCK,
        rank: None,
        log: None,
    };
    let point = Point {
        coordinates: Coordinates::cell(7, 2),
        streams: vec![stream("small", 7), stream("large", 2)],
        warm_up: WarmUp::NONE,
        until: Until::Ops(5000),
        seed: 3,
        window: Point::second(),
    };
    let terms = Terms {
        workers: 1,
        stop: &AtomicBool::new(false),
        enough: &|_| false,
        cue: None,
    };
    for engine in engines(&file) {
        let record = rigel_drive::point(engine.as_ref(), &point, &terms, &mut |_| ()).unwrap();
        for stream in &record.streams {
            let total = stream.total();
            assert_eq!(
                (total.done, total.failures()),
                (5000, 0),
                "{} {}",
                engine.name(),
                stream.name
            );
            assert_eq!(total.response.histogram.count(), 5000);
            let coverage = &stream.coverage;
            let off = (coverage.distinct as f64 - coverage.expected_uniform()).abs();
            assert!(
                off < 6.0 * coverage.expected_uniform_deviation(),
                "{}: {coverage:?}",
                engine.name()
            );
        }
    }
}

#[test]
fn every_engine_does_log_writes() {
    let file = scratch_file("contract-log", BLOCKS * u64::from(BLOCK));
    let stream = Stream {
        objective: None,
        sql: None,
        name: "log".into(),
        load: Load::Closed { depth: 2 },
        mix: Mix {
            writes: Ratio::ONE,
            durable: true,
        },
        pattern: Pattern::Sequential { start: 0 },
        length: BLOCK,
        rank: None,
        log: None,
    };
    let point = Point {
        coordinates: Coordinates::cell(2, 0),
        streams: vec![stream],
        warm_up: WarmUp::NONE,
        until: Until::Ops(50),
        seed: 3,
        window: Point::second(),
    };
    let terms = Terms {
        workers: 1,
        stop: &AtomicBool::new(false),
        enough: &|_| false,
        cue: None,
    };
    let without_file = engines(&file).into_iter().skip(3);
    let place = Place::new("contract-logs");
    let logs = LogKind::STATES.map(|log| Box::new(log_file(&place, log)) as _);
    for engine in file_engines(&[&file], WRITE)
        .into_iter()
        .chain(without_file)
        .chain(logs)
    {
        let record = rigel_drive::point(engine.as_ref(), &point, &terms, &mut |_| ()).unwrap();
        let kinds: Vec<_> = record.streams[0]
            .kinds
            .iter()
            .map(|kind| (kind.kind, kind.total().done))
            .collect();
        assert_eq!(kinds, [(Kind::Log, 50)], "{}", engine.name());
    }
}

#[test]
fn a_log_with_a_file_of_its_own_is_written_beside_the_volume() {
    let before = vec![7; usize::try_from(BLOCKS).unwrap() * BLOCK as usize];
    let file = scratch_file("contract-beside", BLOCKS * u64::from(BLOCK));
    std::fs::write(&file.path, &before).unwrap();
    let stream = |name: &str, mix, length, log| Stream {
        objective: None,
        sql: None,
        name: name.into(),
        load: Load::Closed { depth: 3 },
        mix,
        pattern: Pattern::Uniform,
        length,
        rank: None,
        log,
    };
    let (grow, reused) = (LogKind::GROW, LogKind::REUSED);
    let point = Point {
        coordinates: Coordinates::cell(3, 0),
        streams: vec![
            stream("reads", Mix::READS, BLOCK, None),
            stream("grow", Mix::LOG, 2300, Some(grow)),
            stream("reused", Mix::LOG, 512, Some(reused)),
        ],
        warm_up: WarmUp::NONE,
        until: Until::Ops(60),
        seed: 3,
        window: Point::second(),
    };
    let place = Place::new("contract-beside-logs");
    let logs = [grow, reused].map(|kind| (kind, Arc::new(log_file(&place, kind)) as _));
    let logs: Arc<LogEngines> = Arc::new(logs.into());
    for volume in file_engines(&[&file], WRITE) {
        let (name, volume) = (volume.name(), Arc::from(volume));
        let terms = DetachedTerms {
            workers: 1,
            stop: &AtomicBool::new(false),
            enough: Box::new(|_| false),
            cue: None,
        };
        let engines = (&volume, &logs);
        let record = rigel_drive::detached(engines, &point, terms, &mut |_| ()).unwrap();
        let done = |stream: &StreamRecord| (stream.kinds[0].kind, stream.total().done);
        let done: Vec<(Kind, u64)> = record.streams.iter().map(done).collect();
        let expected = [Kind::Read, Kind::Log, Kind::Log].map(|kind| (kind, 60));
        assert_eq!(done, expected, "{name}");
        assert!(
            std::fs::read(&file.path).unwrap() == before,
            "{name}: the volume was changed"
        );
    }
}

fn log_file(place: &Place, log: LogKind) -> LogFile {
    LogFile::new(&place.0, log, 4).unwrap()
}

/// The file without a name that this process has open in a directory.
fn open_in(place: &Place) -> std::fs::File {
    let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
    let mut paths = open.map(|entry| entry.path());
    let is_there =
        |path: &PathBuf| std::fs::read_link(path).is_ok_and(|target| target.starts_with(&place.0));
    std::fs::File::open(paths.find(is_there).expect("it is open")).unwrap()
}

#[test]
fn a_commit_is_over_when_it_is_on_the_disk_whatever_the_state_of_the_logs_file() {
    common::test(
        "a_commit_is_over_when_it_is_on_the_disk_whatever_the_state_of_the_logs_file",
        || {
            for kind in LogKind::STATES {
                let place = Place::new(&format!("contract-log-{kind}"));
                let log = log_file(&place, kind);
                let file = open_in(&place);
                for position in 0..20 {
                    execute(&log, &[op(Kind::Log, position)]);
                    assert_eq!(unwritten(&file)?, 0, "{kind}: record {position}");
                }
            }
            Ok(())
        },
    );
}

/// Number of pages of `file` in the page cache that are not on disk: dirty, or being written.
fn unwritten(file: &std::fs::File) -> Result<u64, Missing> {
    // Linux 6.5; the number is the same on every architecture.
    const CACHESTAT: libc::c_long = 451;
    // Offset and length, 0 for all.
    let range = [0u64; 2];
    // Pages cached, dirty, being written, evicted, evicted recently.
    let mut pages = [0u64; 5];
    // SAFETY: the kernel reads two words and writes five.
    let result = unsafe {
        libc::syscall(
            CACHESTAT,
            file.as_raw_fd(),
            range.as_ptr(),
            pages.as_mut_ptr(),
            0,
        )
    };
    if result == 0 {
        Ok(pages[1] + pages[2])
    } else {
        Err(Missing(std::io::Error::last_os_error().to_string()))
    }
}

#[test]
fn a_log_write_is_over_when_it_is_on_the_disk_and_another_write_before() {
    common::test(
        "a_log_write_is_over_when_it_is_on_the_disk_and_another_write_before",
        || {
            // Through the page cache, where the difference is visible.
            let cached = Access {
                write: true,
                direct: false,
            };
            let file = scratch_file("contract-durable", BLOCKS * u64::from(BLOCK));
            let opened = std::fs::File::open(&file.path).unwrap();
            for engine in file_engines(&[&file], cached) {
                for position in 0..20 {
                    execute(engine.as_ref(), &[op(Kind::Log, position)]);
                    assert_eq!(
                        unwritten(&opened)?,
                        0,
                        "{}: block {position}",
                        engine.name()
                    );
                }
                // The kernel may write a page at any time, but not twenty at once.
                let mut most = 0;
                for position in 0..20 {
                    execute(engine.as_ref(), &[op(Kind::Write, position)]);
                    most = most.max(unwritten(&opened)?);
                }
                assert!(most > 0, "{}", engine.name());
                opened.sync_all().unwrap();
            }
            Ok(())
        },
    );
}

#[test]
fn a_scan_reads() {
    let file = scratch_file("contract-scan", BLOCKS * u64::from(BLOCK));
    let before = std::fs::read(&file.path).unwrap();
    for engine in file_engines(&[&file], WRITE) {
        let over = execute(engine.as_ref(), &[op(Kind::Scan, 1)]);
        assert_eq!(over[0].outcome, Outcome::Done, "{}", engine.name());
    }
    assert!(
        std::fs::read(&file.path).unwrap() == before,
        "a scan has written"
    );
}

#[test]
fn an_engine_describes_itself() {
    let file = scratch_file("contract-about", BLOCKS * u64::from(BLOCK));
    for engine in engines(&file) {
        assert!(!engine.about().is_empty());
        assert!(
            engine.usable() >= BLOCKS * u64::from(BLOCK),
            "{}",
            engine.name()
        );
        assert!(engine.slots_max() > 0);
    }
}

/// Makes `io_uring_setup` fail with EPERM in this process, as containers do, with a seccomp filter.
fn forbid_io_uring() -> std::io::Result<()> {
    const LOAD_SYSCALL_NUMBER: libc::sock_filter = libc::sock_filter {
        code: 0x20,
        jt: 0,
        jf: 0,
        k: 0,
    };
    let program = [
        LOAD_SYSCALL_NUMBER,
        libc::sock_filter {
            code: 0x15,
            jt: 0,
            jf: 1,
            k: u32::try_from(libc::SYS_io_uring_setup).unwrap_or(0),
        },
        libc::sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: libc::SECCOMP_RET_ERRNO | 1,
        },
        libc::sock_filter {
            code: 0x06,
            jt: 0,
            jf: 0,
            k: libc::SECCOMP_RET_ALLOW,
        },
    ];
    let filter = libc::sock_fprog {
        len: 4,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: plain system calls; the filter is copied by the kernel before this returns.
    let refused = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
            || libc::prctl(
                libc::PR_SET_SECCOMP,
                libc::SECCOMP_MODE_FILTER,
                &raw const filter,
            ) != 0
    };
    if refused {
        Err(std::io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[test]
fn where_io_uring_is_forbidden_libaio_is_used_and_that_is_said() {
    let file = scratch_file("contract-forbidden", BLOCKS * u64::from(BLOCK));
    let out = common::scratch_directory().join(format!("forbidden-{}", std::process::id()));
    let rigel = |engine: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_rigel"));
        command.args([
            "orion",
            "-run",
            "advanced",
            "-matrix",
            "point",
            "-num_small",
            "2",
            "-num_large",
            "0",
        ]);
        command.args([
            "-duration",
            "1",
            "-size_large",
            "8",
            "--json",
            "--no-progress",
            "--engine",
            engine,
        ]);
        command
            .arg("--target")
            .arg(&file.path)
            .arg("--out")
            .arg(&out);
        // SAFETY: the closure makes two system calls and allocates nothing.
        unsafe { command.pre_exec(forbid_io_uring) };
        command.output().unwrap()
    };
    let answer = rigel("auto");
    std::fs::remove_dir_all(&out).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert!(
        report["engine_about"]
            .as_str()
            .unwrap()
            .starts_with("libaio"),
        "{report}"
    );
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().any(|finding| finding["name"] == "engine"),
        "{findings:?}"
    );
    let point = &report["points"][0];
    assert!(
        point["end"] == "complete" && point["classes"][0]["failed"] == serde_json::json!({}),
        "{point}"
    );
    let answer = rigel("uring");
    assert_eq!(answer.status.code(), Some(1));
    assert!(
        String::from_utf8_lossy(&answer.stderr).contains("io_uring cannot be used here"),
        "{answer:?}"
    );
    assert!(!out.exists(), "nothing is left behind");
}
