//! Storage that does not answer several ranks, from the beginning or later: the run names every rank that did not answer, ends with
//! its status, and leaves no process behind.
//!
//! The devices are files of this process, which answer no read from the hang until all ranks have
//! ended.

use crate::common::launched::{Rank, journal, start, statuses};
use crate::common::pmi::{Dialect, Server};
use crate::common::{
    Loop, Missing, Mounted, Place, journal_lines, need, one_at_a_time, rigel, stderr, test, text,
    wait_until,
};
use crate::device::{Behaviour, Device};
use crate::hang::Frozen;
use rigel_model::MIB;
use rigel_model::record::End;
use std::fs::File;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Output;
use std::time::Duration;

/// Two ranks, each on the device that its number in `devices` says; those in `hung` stop answering.
/// Returns what the ranks printed.
fn hang(
    place: &Place,
    line: &str,
    devices: [usize; 2],
    hung: &[usize],
) -> Result<(Server, Vec<Output>), Missing> {
    let mount = |_: usize| {
        let behaviour = Behaviour::fixed(Duration::from_millis(1));
        Device::mount(&place.0, 64 * MIB, behaviour).map_err(|error| Missing(error.to_string()))
    };
    let count = devices[1] + 1;
    let mounted: Vec<Device> = (0..count).map(mount).collect::<Result<_, _>>()?;
    let line = format!("{line} --separate --no-progress --out out");
    let (server, ends) = Server::start(Dialect::Hydra5, 2, usize::MAX);
    let start = |(rank, end): (usize, UnixStream)| {
        let mut command = rigel(place, &line);
        command.env("RIGEL_TEST_BOOT_ID", format!("boot-{rank}"));
        let directory = mounted[devices[rank]].path.parent().unwrap();
        command.stdin(File::open(directory).unwrap());
        Rank::start(command, &end, rank, 2)
    };
    let ranks: Vec<Rank> = ends.into_iter().enumerate().map(start).collect();
    let run = place.0.join("out");
    wait_until("the first point is done", || journal_lines(&run) >= 4);
    for device in hung {
        mounted[*device].hang(true);
    }
    // Nothing answers before this has returned.
    let outputs = ranks.into_iter().map(Rank::end).collect();
    for device in hung {
        mounted[*device].hang(false);
    }
    Ok((server, outputs))
}

/// All that a run whose ranks in `lost` did not answer must leave.
fn check(place: &Place, server: &Server, outputs: &[Output], lost: &[u32]) {
    let said = stderr(&outputs[0]);
    let run = journal(place, "out");
    let ranks: Vec<u32> = run.ranks.lost.iter().map(|lost| lost.rank).collect();
    assert_eq!(ranks, lost, "{said}");
    assert!(
        run.ranks
            .lost
            .iter()
            .all(|lost| lost.how.contains("did not answer"))
    );
    assert_eq!(run.ended.as_ref().map(|end| end.status), Some(6), "{said}");
    assert!(!run.points.is_empty());
    assert!(run.points.iter().all(|point| point.end == End::Complete));
    assert_eq!(statuses(outputs)[0], Some(6), "{said}");
    // The other one ends itself, if its I/O does not end.
    let other = outputs[1].status;
    assert!(
        other.code() == Some(6) || other.signal() == Some(9),
        "{other}"
    );
    for rank in lost {
        assert!(said.contains(&format!("rank {rank} on ")), "{said}");
    }
    assert!(said.contains("did not answer"), "{said}");
    wait_until("the job is ended", || server.state().aborted.is_some());
    assert_eq!(server.state().aborted.as_deref(), Some("6"));
}

/// Points of one or both ranks.
const CURVE: &str = "curve /proc/self/fd/0/file --depth 4 --precision 0.1% --point-max 1s";

/// Points of both ranks alone.
const SOAK: &str = "soak /proc/self/fd/0/file --work 100ops --every 1s --for 1h";

fn ends(line: &str, devices: [usize; 2], hung: &[usize], lost: &[u32]) {
    let numbers: Vec<String> = lost.iter().map(u32::to_string).collect();
    let name = format!("ranks-hang-{}", numbers.join("-"));
    test(&name, || {
        let place = Place::new(&name);
        let (server, outputs) = hang(&place, line, devices, hung)?;
        check(&place, &server, &outputs, lost);
        Ok(())
    });
}

#[test]
fn storage_that_hangs_on_all_hosts_ends_the_run_and_all_ranks_are_named() {
    ends(SOAK, [0, 0], &[0], &[0, 1]);
}

#[test]
fn a_rank_whose_storage_hangs_is_named_and_ends() {
    ends(CURVE, [0, 1], &[1], &[1]);
}

#[test]
fn rank_0_whose_storage_hangs_is_named_and_ends() {
    ends(CURVE, [0, 1], &[0], &[0]);
}

#[test]
fn storage_that_does_not_answer_while_ranks_agree_is_named_and_ends_all() {
    test("ranks-hang-agree", || {
        let place = Place::new("ranks-hang-agree");
        let behaviour = Behaviour::fixed(Duration::ZERO);
        let device = Device::mount(&place.0, 64 * MIB, behaviour)
            .map_err(|error| Missing(error.to_string()))?;
        device.hang(true);
        let line = format!("curve {} --depth 1 --out out", text(&device.path));
        let (server, ranks) = start(&place, &line, 2, |_, _| ());
        // The kernel ends no thread that waits for such a read, so the launcher is asked to.
        wait_until("the job is ended", || server.state().aborted.is_some());
        device.hang(false);
        let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
        let said = stderr(&outputs[0]);
        assert_eq!(statuses(&outputs), [Some(1); 2], "{said}");
        assert!(
            said.contains("rank 0 on ") && said.contains(text(&device.path)),
            "{said}"
        );
        assert!(said.contains("no answer for"), "{said}");
        assert!(!place.0.join("out").exists());
        Ok(())
    });
}

#[test]
fn a_scratch_file_that_hangs_is_named_by_each_rank_and_one_signal_ends_all() {
    test("ranks-hang-scratch", || {
        let _alone = one_at_a_time();
        let place = Place::new("ranks-hang-scratch");
        let disk = Loop::new(&place.file("image", 256 * MIB))?;
        need("mkfs.ext4", &["-q", text(&disk.0)])?;
        let mounted = Mounted::new(&disk.0, &place)?;
        // Ended after the storage answers again, also if this fails.
        let mut ranks: Vec<Rank> = Vec::new();
        let frozen = Frozen::begin(&mounted.0)?;
        let line = "curve mounted --scratch-size 64MiB --separate --depth 1 --out out";
        let (server, ends) = Server::start(Dialect::Hydra5, 2, usize::MAX);
        let said = |rank: usize| place.0.join(format!("said-{rank}"));
        let start = |(rank, end): (usize, UnixStream)| {
            let mut command = rigel(&place, line);
            command.env("RIGEL_TEST_BOOT_ID", format!("boot-{rank}"));
            let to = File::create(said(rank)).unwrap();
            Rank::start_to(to, command, &end, (rank, 2))
        };
        ranks.extend(ends.into_iter().enumerate().map(start));
        let host = rustix::system::uname();
        let host = host.nodename().to_str().unwrap();
        let expected =
            format!("making a scratch file in 'mounted' on {host}: nothing has completed for 1");
        for rank in [0, 1] {
            wait_until(&format!("rank {rank} says what hangs"), || {
                let said = std::fs::read_to_string(said(rank)).unwrap();
                said.contains(&expected)
            });
        }
        ranks[1].signal("TERM");
        // The kernel ends no thread that waits for such storage, so the launcher is asked to.
        wait_until("the job is ended", || server.state().aborted.is_some());
        drop(frozen);
        let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
        assert_eq!(statuses(&outputs), [Some(1); 2]);
        assert!(!place.0.join("out").exists());
        Ok(())
    });
}
