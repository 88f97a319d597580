//! Several ranks on one device whose rate the kernel caps: the sum is what the kernel counted, and a
//! host that alone is capped is the one that the report names.

use super::capped::Group;
use super::throttle::{Counted, on_capped, polled, reads_done};
use crate::common::launched::{self, Rank};
use crate::common::{Missing, Place, in_time, test, text, wait_until};
use rigel_analyse::{self as analyse, HostsAtLoad};
use rigel_model::record::journal::Run;
use rigel_model::record::{PointRecord, RankedPoint};
use std::path::Path;
use std::process::{Command, Output};

/// Outstanding reads of each rank.
const DEPTH: u64 = 4;

/// Blocks that each rank reads of a target before anything is measured, to know that all mean the
/// same.
const SAMPLED: u64 = 64;

/// Runs ranks on a device to their end.
fn measured(
    place: &Place,
    device: &Path,
    (size, seconds): (usize, u32),
    of_rank: impl Fn(usize, &mut Command),
) -> Run {
    let line = format!(
        "curve {} --depth {DEPTH} --point-min {seconds}s --point-max {seconds}s --out out",
        text(device)
    );
    let (_server, ranks) = launched::start(place, &line, size, of_rank);
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    for output in &outputs {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    Run::read(&place.0.join("out")).unwrap()
}

/// Reads in the warm-ups of some records, and while they measured.
fn made<'a>(records: impl Iterator<Item = &'a PointRecord>) -> (u64, u64) {
    records.fold((0, 0), |(warm_up, done), record| {
        let stream = &record.streams[0];
        assert_eq!(stream.total().failures(), 0);
        (warm_up + stream.warm_up_done, done + stream.total().done)
    })
}

fn of_ranks(point: &RankedPoint) -> impl Iterator<Item = &PointRecord> {
    point.parts.iter().map(|part| &part.record)
}

#[test]
fn the_sum_below_a_cap_is_what_the_kernel_counts() {
    test("the_sum_below_a_cap_is_what_the_kernel_counts", || {
        on_capped("truth-ranks-cap", 500, below_a_cap)
    });
}

fn below_a_cap(group: &Group, device: &Path) -> Result<(), Missing> {
    const RANKS: u64 = 2;
    let place = Place::new("truth-ranks-cap");
    group.enter()?;
    let start = reads_done(device);
    let (run, kernel) = polled(device, start, || {
        measured(&place, device, (2, 1), |_, _| ())
    });
    let points = &run.ranks.parts;
    let (warm_up, done) = made(points.iter().flat_map(of_ranks));
    let all = warm_up + done + RANKS * SAMPLED;
    wait_until("the kernel has counted every read", || {
        reads_done(device) - start >= all
    });
    assert_eq!(
        reads_done(device) - start,
        all,
        "reads that the kernel counted, and those of all ranks in their records"
    );
    let mut before = RANKS * SAMPLED;
    for ranked in points {
        before = assert_point(&run.points[ranked.at], ranked, &kernel, before);
    }
    Ok(())
}

/// Checks the time of a sum against the kernel, which had counted `before` reads when the point
/// began. Returns its count at the end.
///
/// A rank began to measure after all but the outstanding ones of its reads of the warm-up, and
/// before its first other read was done. The kernel counts a read a little before or after its rank
/// knows of it: again only those that are outstanding.
fn assert_point(sum: &PointRecord, ranked: &RankedPoint, kernel: &Counted, before: u64) -> u64 {
    let what = sum.coordinates.name();
    let merge = sum.merge.as_ref().expect("a sum of ranks");
    let places = DEPTH * ranked.parts.len() as u64;
    let (warm_up, done) = made(of_ranks(ranked));
    let (begun, over) = (before + warm_up, before + warm_up + done);
    let looks = &kernel.looks;
    // One of the ranks measured by then; the last one began later by the skew.
    let some_measure = looks.iter().find(|look| look.count > begun);
    let all_measure = some_measure.map_or(kernel.ended, |look| {
        look.after + merge.skew.0 + merge.clock_bound.0
    });
    let none_measures = looks
        .iter()
        .rev()
        .find(|look| look.count + 2 * places < begun);
    let none_measures = none_measures.map_or(0, |look| look.before);
    let unfinished = looks
        .iter()
        .rev()
        .find(|look| look.count + 2 * places < over);
    let unfinished = unfinished.map_or(0, |look| look.before);
    let finished = looks.iter().find(|look| look.count > over);
    let finished = finished.map_or(kernel.ended, |look| look.after);
    for part in &ranked.parts {
        let measured = part.record.measured.0;
        let (least, most) = (
            unfinished.saturating_sub(all_measure),
            finished - none_measures,
        );
        assert!(
            (least..=most).contains(&measured),
            "{what}: rank {} measured {measured} ns, by the kernel {least} to {most}",
            part.rank
        );
    }
    let of_sum = sum.streams[0].total().done;
    assert!(of_sum <= done, "{what}: {of_sum} in the sum of {done}");
    if merge.windows_dropped == 0 {
        assert_eq!(of_sum, done, "{what}: no window was left out");
    }
    over
}

#[test]
fn the_one_host_that_is_capped_is_named() {
    test("the_one_host_that_is_capped_is_named", || {
        on_capped("truth-ranks-slow", 50, one_capped)
    });
}

fn one_capped(group: &Group, device: &Path) -> Result<(), Missing> {
    group.reads(device)?;
    // How precisely rates are known in a time, and so whether a host can be named, depends on what
    // else runs here.
    in_time("the capped host was named", |factor| {
        let place = &Place::new(&format!("truth-ranks-slow-{factor}"));
        let counted = group.reads(device).unwrap_or(0);
        let run = std::thread::scope(|scope| {
            let capped = |rank, _: &mut Command| {
                if rank == 2 {
                    group
                        .enter()
                        .unwrap_or_else(|missing| panic!("{}", missing.0));
                }
            };
            let running = move || measured(place, device, (3, factor), capped);
            scope.spawn(running).join().unwrap()
        });
        let parts = run.ranks.parts.iter().flat_map(|point| &point.parts);
        let of_capped = parts.filter(|part| part.rank == 2);
        let (warm_up, done) = made(of_capped.map(|part| &part.record));
        let in_group = group.reads(device).unwrap_or(0) - counted;
        assert_eq!(
            in_group,
            warm_up + done + SAMPLED,
            "reads that the kernel counted for the capped rank, and those in its records"
        );
        let found = analyse::ranks(&run).expect("a run of ranks");
        let at_load = found.at_load.expect("all ranks measured");
        let slow = slow_hosts(&at_load);
        assert!(slow.iter().all(|rank| *rank == 2), "{slow:?}: {at_load:?}");
        let is_named = found
            .findings
            .iter()
            .any(|finding| finding.name == "unequal" && finding.what.contains(":2 does"));
        assert_eq!(is_named, !slow.is_empty(), "{:?}", found.findings);
        is_named.then_some(())
    });
    Ok(())
}

fn slow_hosts(at_load: &HostsAtLoad) -> Vec<u32> {
    let slow = at_load.hosts.iter().filter(|host| host.is_slow);
    slow.map(|host| host.rank).collect()
}
