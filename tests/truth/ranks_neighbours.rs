//! One rank with a fixed rate beside a neighbour, on a device with one server, against the device's
//! own log: it has the reads of both ranks, and response times are no shorter than what it took.

use super::LENGTH;
use super::device::Served;
use super::ranks::{BYTES, completed, device};
use crate::common::launched::{self, Rank};
use crate::common::{Place, test, text};
use rigel_analyse as analyse;
use rigel_model::record::{RankRecord, StreamRecord};
use rigel_model::{Coordinates, Load, Pattern};
use std::process::Output;
use std::time::Duration;

/// Rounds of two seconds, in which the second rank offers 50 reads a second. Of other seeds, one in thirty
/// has two streams whose blocks overlap, so that the log does not say which of them read one.
const LINE: &str = "curve TARGET --depth 1 --pattern sequential --point-min 1s --point-max 1s \
                    --neighbours 50 --seed 1 --out out";

/// The reads of a rank at a point: block after block, from one that is in its record.
fn reads_of<'a>(stream: &StreamRecord, log: &'a [Served], what: &str) -> Vec<&'a Served> {
    let [Pattern::Sequential { start }] = stream.patterns[..] else {
        panic!("{what}: {:?}", stream.patterns);
    };
    let blocks = BYTES / u64::from(LENGTH);
    let number = stream.warm_up_done + stream.done();
    let is_own = |read: &&Served| {
        let block = read.offset / u64::from(LENGTH);
        (block + blocks - start) % blocks < number
    };
    let found: Vec<&Served> = log.iter().filter(is_own).collect();
    assert_eq!(found.len() as u64, number, "{what}: reads in the log");
    found
}

/// Checks the response times of a rank against the time that its reads were in the device: the
/// response time of a read is at least that, so the k-th of the measured ones is at least the k-th
/// of all.
fn assert_waited(stream: &StreamRecord, reads: &[&Served], what: &str) {
    let mut took: Vec<Duration> = reads.iter().map(|read| read.went - read.came).collect();
    took.sort_unstable();
    let total = stream.total();
    assert!(total.done > 0 && total.failures() == 0, "{what}");
    for q in [0.5, 0.99] {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let place = ((q * total.done as f64).ceil() as usize).max(1) - 1;
        let most = total.response.histogram.quantile(q).unwrap().high;
        let least = took[place].as_nanos();
        assert!(
            u128::from(most) >= least,
            "{what}: {q}: {most} and {least} ns"
        );
    }
}

#[test]
fn a_rank_beside_its_neighbour_has_the_reads_and_times_of_the_log() {
    test(
        "a_rank_beside_its_neighbour_has_the_reads_and_times_of_the_log",
        || {
            let place = Place::new("truth-ranks-neighbours");
            let device = device(&place, Duration::from_millis(2), 1)?;
            let line = LINE.replace("TARGET", text(&device.path));
            let (_server, ranks) = launched::start(&place, &line, 2, |_, _| ());
            let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
            let run = completed(&place, &outputs);
            let log: Vec<Served> = device.take();
            let log: Vec<Served> = log
                .into_iter()
                .filter(|read| read.bytes == LENGTH)
                .collect();
            let mut depths = Vec::new();
            for ranked in &run.ranks.parts {
                let coordinates = run.points[ranked.at].coordinates;
                let Coordinates::Neighbours { rank, depth, .. } = coordinates else {
                    continue;
                };
                depths.push(depth);
                let what = coordinates.name();
                let (own, others): (Vec<&RankRecord>, Vec<&RankRecord>) =
                    ranked.parts.iter().partition(|part| part.rank == rank);
                let [own] = own[..] else {
                    panic!("{what}: not one record of rank {rank}");
                };
                let stream = &own.record.streams[0];
                assert!(matches!(stream.loads[..], [Load::Open { .. }]), "{what}");
                let reads = reads_of(stream, &log, &what);
                assert_waited(stream, &reads, &what);
                assert_eq!(others.is_empty(), depth == 0, "{what}");
                for other in others {
                    let stream = &other.record.streams[0];
                    assert_eq!(stream.loads, [Load::Closed { depth }], "{what}");
                    let theirs = reads_of(stream, &log, &what);
                    // The server took reads of one between reads of the other.
                    let span = |of: &[&Served]| {
                        let came = of.iter().map(|read| read.came).min().expect("it read");
                        let went = of.iter().map(|read| read.went).max().expect("it read");
                        (came, went)
                    };
                    let ((came, went), theirs) = (span(&reads), span(&theirs));
                    assert!(came < theirs.1 && theirs.0 < went, "{what}");
                }
            }
            assert_eq!(depths, [0, 1, 4, 16, 64].repeat(2));
            let found = analyse::ranks(&run).and_then(|found| found.neighbours);
            let found = found.expect("they were measured");
            assert_eq!((found.rank, found.rate_per_s, found.rounds), (1, 50, 2));
            let reported: Vec<u32> = found.steps.iter().map(|step| step.depth).collect();
            assert_eq!(reported, [0, 1, 4, 16, 64]);
            for step in &found.steps {
                assert_eq!(step.neighbours.is_none(), step.depth == 0, "{step:?}");
                assert_eq!(step.p99_ratio.is_none(), step.depth == 0, "{step:?}");
            }
            Ok(())
        },
    );
}
