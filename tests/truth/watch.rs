//! `rigel watch` beside requests whose number and sizes are known: every request of a loop device is
//! in its journal once, with its bytes, whatever the machine does meanwhile.

use super::{rigel, witness::Device};
use crate::common::{
    Missing, Place, journal_lines, kill, scratch_file, signal, test, text, wait_until,
};
use rigel_model::record::journal::Header;
use rigel_model::record::journal::Run;
use rigel_model::record::{DiskInterval, FlowKind, RequestFlow, TracedRequests};
use rigel_model::{Counters, MIB};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `O_DIRECT` of Linux on x86-64.
const DIRECT: i32 = 0o40_000;

/// Direct I/O needs memory aligned to a page.
const ALIGNMENT: usize = 4096;

/// Longest time from a log write to its flush.
const FLUSH_GAP_MAX: Duration = Duration::from_millis(10);

/// Bytes of the largest request here.
const LARGEST: usize = 65_536;

/// A watch of `device`, which has begun.
fn begun(place: &Place, device: &Path, more: &[&str]) -> Child {
    let out = place.0.join("run");
    let child = Command::new(env!("CARGO_BIN_EXE_rigel"))
        .args(["watch", text(device), "--every", "1s", "--no-progress"])
        .args(["--out", text(&out)])
        .args(more)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The header is written when the events are being recorded.
    wait_until("the watch has begun", || Header::read(&out).is_ok());
    child
}

fn ended(child: Child) -> Output {
    signal(child.id(), "INT");
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // A process that waits in the kernel for a disk that stands still is left behind, and that is said.
    let is_left = said.contains("left behind, as the kernel does not end it");
    assert_eq!(output.status.code(), Some(i32::from(is_left)), "{said}");
    output
}

/// Fails as missing where this machine or user cannot trace.
fn traced(run: &Run) -> Result<(), Missing> {
    let finding = run
        .header
        .findings
        .iter()
        .find(|one| one.name == "not-traced");
    finding.map_or(Ok(()), |finding| Err(Missing(finding.what.clone())))
}

/// Reads and writes of an interval that the kernel's counters have, and the trace has not.
fn not_traced(disk: &DiskInterval) -> Option<u64> {
    let ([before, after], traced) = (disk.counters?, disk.traced.as_ref()?);
    let counted = after.reads - before.reads + after.writes - before.writes;
    let data = traced.flows.iter().filter(|flow| flow.kind.is_data());
    let seen = data.map(|flow| flow.requests).sum::<u64>() + traced.empty_writes;
    Some(counted.saturating_sub(seen))
}

/// Requests and bytes of one kind over all intervals.
fn sums(run: &Run, kind: FlowKind) -> (u64, u64) {
    let of_kind = |flow: &&RequestFlow| flow.kind == kind;
    let flows = run
        .watched
        .iter()
        .flat_map(|interval| &interval.disks)
        .filter_map(|disk| disk.traced.as_ref())
        .flat_map(|traced| &traced.flows);
    flows
        .filter(of_kind)
        .fold((0, 0), |(requests, bytes), flow| {
            assert_eq!(flow.device.histogram.count(), flow.requests - flow.failed);
            (requests + flow.requests, bytes + flow.bytes)
        })
}

fn open(device: &Path) -> File {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(DIRECT)
        .open(device)
        .unwrap()
}

#[test]
fn every_request_is_in_the_journal_once_with_its_bytes() {
    test(
        "every_request_is_in_the_journal_once_with_its_bytes",
        || {
            let file = scratch_file("watch-truth", 64 * MIB);
            let device = Device::new(&file)?;
            let place = Place::new("watch-truth");
            let child = begun(&place, &device.path(), &[]);
            let target = open(&device.path());
            let mut memory = vec![7; LARGEST + ALIGNMENT];
            let from = memory.as_ptr().align_offset(ALIGNMENT);
            let page = &mut memory[from..from + LARGEST];
            // One after the other, so that the kernel has nothing to merge.
            for at in 0..700u64 {
                target
                    .read_exact_at(&mut page[..8192], at * 5 % 500 * 65_536)
                    .unwrap();
            }
            for at in 0..90u64 {
                target
                    .read_exact_at(&mut page[..65_536], at * 131_072)
                    .unwrap();
            }
            for at in 0..300u64 {
                target
                    .write_all_at(&page[..4096], at * 7 % 300 * 8192)
                    .unwrap();
            }
            let mut prompt = 0;
            for at in 0..40u64 {
                let began = Instant::now();
                target.write_all_at(&page[..4096], at * 8192).unwrap();
                target.sync_data().unwrap();
                prompt += u64::from(began.elapsed() < FLUSH_GAP_MAX);
            }
            drop(target);
            // Without a cache the kernel asks the device for no flush.
            let has_cache = device.setting("queue/write_cache") == "write back";
            ended(child);
            let run = Run::read(&place.0.join("run")).unwrap();
            traced(&run)?;
            // A kernel that finds its buffer full drops an event and counts it. One that runs another
            // program on the CPU skips ours and may not count that: the disk's counters witness it, and
            // so do completions without a beginning, and requests without an end.
            let disks: Vec<&DiskInterval> = run.watched.iter().flat_map(|one| &one.disks).collect();
            let of_trace = |of: fn(&TracedRequests) -> u64| -> u64 {
                disks
                    .iter()
                    .map(|disk| of(disk.traced.as_ref().unwrap()))
                    .sum()
            };
            let lost = of_trace(|traced| traced.lost)
                + disks
                    .iter()
                    .filter_map(|disk| not_traced(disk))
                    .sum::<u64>();
            let without_twin = of_trace(|traced| traced.unmatched + traced.abandoned)
                + disks
                    .last()
                    .map_or(0, |disk| disk.traced.as_ref().unwrap().open);
            let evidence = format!("{lost} lost, {without_twin} halves: {:#?}", run.watched);
            assert!(lost + without_twin < 113, "of 1,130 requests: {evidence}");
            // Every missing request was reported as missing in one of these ways.
            let reported = lost + without_twin;
            let all = |(requests, bytes): (u64, u64), made: u64, each: u64| {
                assert!(
                    requests <= made && requests + reported >= made && bytes == requests * each,
                    "{requests} requests of {bytes} bytes, where {made} of {each} bytes were made: {evidence}"
                );
            };
            all(sums(&run, FlowKind::RandomReads), 700, 8192);
            all(sums(&run, FlowKind::MultiblockReads), 90, 65_536);
            let (pages, page_bytes) = sums(&run, FlowKind::PageWrites);
            let (logs, log_bytes) = sums(&run, FlowKind::LogWrites);
            all((pages + logs, page_bytes + log_bytes), 340, 4096);
            // The kernel counts a write for each flush that somebody asks for: the trace has it.
            let rose = |of: fn(&Counters) -> u64| -> u64 {
                let edges = disks.iter().map(|disk| disk.counters.unwrap());
                edges.map(|[before, after]| of(&after) - of(&before)).sum()
            };
            let empty = of_trace(|traced| traced.empty_writes);
            let made_durable = rose(|counters| counters.writes).saturating_sub(340);
            assert_eq!(made_durable, if has_cache { 40 } else { 0 }, "{evidence}");
            assert!(
                empty <= made_durable && empty + reported >= made_durable,
                "{empty}: {evidence}"
            );
            // A flush after each of the last forty writes made that write durable. Where the machine
            // was slow between the two, that does not show.
            let flushes = sums(&run, FlowKind::Flushes).0;
            assert!(
                flushes <= made_durable && flushes + reported >= made_durable,
                "{flushes}: {evidence}"
            );
            let certain = prompt.min(made_durable).saturating_sub(reported);
            assert!(
                (certain..=flushes).contains(&logs),
                "{prompt} to {made_durable}: {logs}: {evidence}"
            );
            Ok(())
        },
    );
}

#[test]
fn reads_that_end_on_an_idle_cpu_are_seen() {
    test("reads_that_end_on_an_idle_cpu_are_seen", || {
        const READS: u64 = 300;
        let file = scratch_file("watch-idle", 16 * MIB);
        let place = Place::new("watch-idle");
        let child = begun(&place, &file.path, &[]);
        let target = open(&file.path);
        let mut memory = vec![7; 2 * ALIGNMENT];
        let from = memory.as_ptr().align_offset(ALIGNMENT);
        let page = &mut memory[from..from + ALIGNMENT];
        for at in 0..READS {
            let place = at * 31 % 400 * 32_768;
            target.read_exact_at(page, place).unwrap();
            // The disk completes a request in an interrupt. Where nothing else runs, that interrupts
            // an idle CPU.
            std::thread::sleep(Duration::from_millis(2));
        }
        drop(target);
        ended(child);
        let run = Run::read(&place.0.join("run")).unwrap();
        traced(&run)?;
        // Others may read, too. By `perf_event_open` alone hardly any of them were seen. By eBPF all
        // are on a machine that does nothing else, and up to one in a hundred is missing beside other
        // load: docs/methods/watch.md.
        let (seen, _) = sums(&run, FlowKind::RandomReads);
        assert!(seen * 10 >= READS * 9, "{seen} of {READS} reads");
        Ok(())
    });
}

#[test]
fn a_watch_that_is_killed_keeps_its_intervals_and_goes_on() {
    test(
        "a_watch_that_is_killed_keeps_its_intervals_and_goes_on",
        || {
            let file = scratch_file("watch-killed", 16 * MIB);
            let device = Device::new(&file)?;
            let place = Place::new("watch-killed");
            let mut child = begun(&place, &device.path(), &["--for", "1h"]);
            let out = place.0.join("run");
            wait_until("two intervals are in the journal", || {
                journal_lines(&out) >= 3
            });
            kill(&mut child);
            let before = Run::read(&out).unwrap();
            assert!(before.watched.len() >= 2);
            let again = Command::new(env!("CARGO_BIN_EXE_rigel"))
                .args(["watch", "--resume", text(&out), "--no-progress"])
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .unwrap();
            let known = before.watched.len();
            wait_until("a further interval is in the journal", || {
                Run::read(&out).is_ok_and(|run| run.watched.len() > known)
            });
            ended(again);
            let after = Run::read(&out).unwrap();
            assert_eq!(after.watched[..known], before.watched[..]);
            let numbers: Vec<u32> = after.watched.iter().map(|one| one.number).collect();
            assert!(numbers.is_sorted() && numbers[known] > numbers[known - 1]);
            // Its report can be made, and says what was not observed.
            let report = rigel(&["report", text(&out)]);
            assert_eq!(report.status.code(), Some(0));
            Ok(())
        },
    );
}
