//! Several ranks on one device, against the device's own log: what is in the sum of the ranks is what
//! the device answered while all of them measured, with the times that it took.
//!
//! Each rank has one read outstanding and reads block after block, from a block that is in its
//! record. So the log tells which rank made a read, and in which point. A rank's windows begin
//! between two of its reads. That bounds, for each window of the sum, which reads of the log are in
//! it, whatever the machine does meanwhile.

use super::LENGTH;
use super::bounds::{Between, Log, Operation, Shared, assert_holds};
use super::device::{Behaviour, Device, Served, at_once};
use crate::common::launched::{self, Rank};
use crate::common::pmi::{Dialect, Server};
use crate::common::{Missing, Place, rigel, test, text};
use rigel_analyse::{self as analyse, HostRounds, summarise};
use rigel_model::record::journal::Run;
use rigel_model::record::{End, Latencies, PointRecord, RankRecord, Window};
use rigel_model::{ActiveRanks, Coordinates, Pattern};
use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::process::Output;
use std::time::{Duration, Instant};

/// Size of a device: no rank reaches the part of another.
pub(super) const BYTES: u64 = 64 << 30;

/// Visits of half a second to one depth, and rounds of two seconds: ranks alone, some of them, all.
const LINE: &str =
    "curve TARGET --depth 1 --pattern sequential --point-min 1s --point-max 1s --seed 1 --out out";

/// A mounted device, or why there is none.
pub(super) fn device(place: &Place, service: Duration, servers: usize) -> Result<Device, Missing> {
    let behaviour = Behaviour {
        servers,
        ..Behaviour::fixed(service)
    };
    Device::mount(&place.0, BYTES, behaviour).map_err(|error| Missing(error.to_string()))
}

#[track_caller]
pub(super) fn completed(place: &Place, outputs: &[Output]) -> Run {
    for output in outputs {
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{said}");
    }
    Run::read(&place.0.join("out")).unwrap()
}

/// One merged point, and what the devices saw of it.
struct Witnessed<'a> {
    point: &'a PointRecord,
    parts: &'a [RankRecord],
    /// By part.
    operations: Vec<Vec<Operation>>,
    reads: Vec<Served>,
    shared: Shared,
}

/// Finds the reads of each rank and point in the logs: `log_of` has the number of the log for each
/// rank. Every read of the size that is measured is in exactly one record.
fn witnessed(
    run: &Run,
    logs: Vec<Vec<Served>>,
    log_of: impl Fn(u32) -> usize,
    (began, ended): (Instant, Instant),
) -> Vec<Witnessed<'_>> {
    let blocks = BYTES / u64::from(LENGTH);
    // By log and block, in the order in which the reads came.
    let mut unclaimed: BTreeMap<(usize, u64), VecDeque<Served>> = BTreeMap::new();
    for (number, mut reads) in logs.into_iter().enumerate() {
        // Ranks also look at small pieces of a target, to know that all mean the same.
        reads.retain(|read| read.bytes == LENGTH);
        reads.sort_by_key(|read| read.came);
        for read in reads {
            let block = read.offset / u64::from(LENGTH);
            unclaimed
                .entry((number, block))
                .or_default()
                .push_back(read);
        }
    }
    let log = Log::between(Vec::new(), began, ended);
    let mut claim = |part: &RankRecord, what: &str| {
        let stream = &part.record.streams[0];
        let [Pattern::Sequential { start }] = stream.patterns[..] else {
            panic!("{what}: {:?}", stream.patterns);
        };
        let total = stream.total();
        assert_eq!(total.failures(), 0, "{what}");
        let chain: Vec<Served> = (0..stream.warm_up_done + total.done)
            .map(|number| {
                let block = (start + number) % blocks;
                let reads = unclaimed.get_mut(&(log_of(part.rank), block));
                reads
                    .and_then(VecDeque::pop_front)
                    .unwrap_or_else(|| panic!("{what}: the device saw no read number {number}"))
            })
            .collect();
        let is_chain = chain.windows(2).all(|two| two[0].went <= two[1].came);
        assert!(is_chain, "{what}: two reads at once");
        chain
    };
    let mut found = Vec::new();
    for ranked in &run.ranks.parts {
        let point = &run.points[ranked.at];
        let what = point.coordinates.name();
        assert_eq!(point.end, End::Complete, "{what}");
        let (mut reads, mut operations) = (Vec::new(), Vec::new());
        for part in &ranked.parts {
            let what = format!("{what}, rank {}", part.rank);
            let chain = claim(part, &what);
            let warm_up = usize::try_from(part.record.streams[0].warm_up_done).unwrap();
            operations.push(log.chain(&chain, warm_up));
            reads.extend(chain);
        }
        let windows = &point.streams[0].kinds[0].windows;
        let skipped = skipped(point, &ranked.parts);
        let shared = Shared {
            ranks: skipped.into_iter().zip(operations.clone()).collect(),
            windows: windows.len(),
            width: point.window.0,
        };
        found.push(Witnessed {
            point,
            parts: &ranked.parts,
            operations,
            reads,
            shared,
        });
    }
    let left: usize = unclaimed.values().map(VecDeque::len).sum();
    assert_eq!(left, 0, "reads that the device answered and no record has");
    found
}

/// By part: the number of its first windows that are not in the sum. There is a choice of which the
/// sum is the sum, window by window.
fn skipped(point: &PointRecord, parts: &[RankRecord]) -> Vec<usize> {
    let windows = |record: &PointRecord| record.streams[0].kinds[0].windows.clone();
    let (sum, of_parts) = (
        windows(point),
        parts.iter().map(|part| windows(&part.record)),
    );
    let of_parts: Vec<Vec<Window>> = of_parts.collect();
    let dropped = usize::try_from(point.merge.as_ref().unwrap().windows_dropped).unwrap();
    let mut choices = vec![Vec::new()];
    for _ in parts {
        choices = choices
            .iter()
            .flat_map(|choice: &Vec<usize>| {
                (0..=dropped).map(|skipped| [&choice[..], &[skipped]].concat())
            })
            .collect();
    }
    let is_sum = |choice: &Vec<usize>| {
        sum.iter().enumerate().all(|(at, window)| {
            let pairs = of_parts.iter().zip(choice);
            let all = pairs.filter_map(|(of_part, skipped)| of_part.get(at + skipped));
            let mut total = Window::default();
            all.for_each(|window| total.merge(window));
            let counts = |window: &Window| {
                let Latencies { histogram, sum, .. } = window.response.clone();
                (window.done, histogram, sum)
            };
            counts(&total) == counts(window)
        })
    };
    choices
        .into_iter()
        .find(is_sum)
        .unwrap_or_else(|| panic!("{}: not the sum of its parts", point.coordinates.name()))
}

impl Witnessed<'_> {
    /// Checks each rank's record and the sum against the log.
    fn assert_holds(&self) {
        let what = self.point.coordinates.name();
        for (part, operations) in self.parts.iter().zip(&self.operations) {
            let what = format!("{what}, rank {}", part.rank);
            assert_holds(&part.record, operations, &what);
        }
        let sum = &self.point.streams[0].kinds[0].windows;
        self.shared.assert_holds(sum, &what);
    }

    /// Number of operations that the log allows in one rank's own windows, and their length in
    /// seconds: the sum may have left windows out.
    fn count_of(&self, rank: u32) -> (Between, f64) {
        let at = self.parts.iter().position(|part| part.rank == rank);
        let operations = self.operations[at.expect("it measured")].clone();
        let record = &self.parts[at.expect("it measured")].record;
        let own = Shared {
            ranks: vec![(0, operations)],
            windows: record.streams[0].kinds[0].windows.len(),
            width: record.window.0,
        };
        (own.count(), record.measured.as_secs_f64())
    }

    fn active(&self) -> ActiveRanks {
        self.point.coordinates.active_ranks()
    }

    fn is_of_rounds(&self) -> bool {
        matches!(self.point.coordinates, Coordinates::Hosts { .. })
    }

    fn seconds(&self) -> f64 {
        self.point.measured.as_secs_f64()
    }
}

/// The points of the rounds at which these ranks measured.
fn rounds_of<'a>(
    points: &'a [Witnessed<'a>],
    active: ActiveRanks,
) -> impl Iterator<Item = &'a Witnessed<'a>> {
    let is_wanted = move |point: &&Witnessed<'_>| point.is_of_rounds() && point.active() == active;
    points.iter().filter(is_wanted)
}

/// Number of operations that the log allows in all of these points, and their length in seconds.
fn counted<'a>(
    points: impl Iterator<Item = &'a Witnessed<'a>>,
    of: impl Fn(&Witnessed<'_>) -> (Between, f64),
) -> (Between, f64) {
    let none = (Between::exactly(0), 0.0);
    points.map(of).fold(none, |all, (count, seconds)| {
        (all.0.plus(count), all.1 + seconds)
    })
}

/// Checks what the report says of rounds against the log: the rates of the ladder, and each host's
/// rate together as a part of its rate alone.
#[track_caller]
fn assert_rounds_hold(rounds: &HostRounds, points: &[Witnessed<'_>], size: u32) {
    for step in &rounds.ladder {
        let active = match step.ranks {
            1 => ActiveRanks::Only(0),
            all if all == size => ActiveRanks::All,
            some => ActiveRanks::First(some),
        };
        let (count, seconds) = counted(rounds_of(points, active), |point| {
            (point.shared.count(), point.seconds())
        });
        assert!(
            count.allows(step.sum.value * seconds),
            "{} ranks do {} a second, and the log has {count:?} reads in {seconds} s",
            step.ranks,
            step.sum.value
        );
    }
    assert_eq!(rounds.alone.len(), usize::try_from(size).unwrap());
    for figures in &rounds.alone {
        let rank = figures.rank;
        let at = |active| counted(rounds_of(points, active), |point| point.count_of(rank));
        let (alone, alone_s) = at(ActiveRanks::Only(rank));
        let (together, together_s) = at(ActiveRanks::All);
        let (least, most) = together.over(alone);
        let of_time = alone_s / together_s;
        let ratio = figures.rate_ratio.as_ref().expect("it is a closed loop");
        assert!(
            (least * of_time..=most * of_time).contains(&ratio.value),
            "rank {rank} keeps {} of its rate, and the log has {together:?} reads beside \
             {alone:?}",
            ratio.value
        );
    }
}

/// Runs `size` ranks on a device with this number of servers, and checks what is reported of them.
fn measured_together(name: &str, size: u32, servers: usize) -> Result<(), Missing> {
    let place = Place::new(name);
    let device = device(&place, Duration::from_millis(4), servers)?;
    let line = LINE.replace("TARGET", text(&device.path));
    let began = Instant::now();
    let (_server, ranks) =
        launched::start(&place, &line, usize::try_from(size).unwrap(), |_, _| ());
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    let ended = Instant::now();
    let run = completed(&place, &outputs);
    let points = witnessed(&run, vec![device.take()], |_| 0, (began, ended));
    for point in &points {
        let what = point.point.coordinates.name();
        point.assert_holds();
        let ranks = usize::try_from(point.active().count(size)).unwrap();
        let most = at_once(&point.reads);
        assert!(
            most <= ranks.min(servers),
            "{what}: {most} at once of {ranks} ranks on {servers} servers"
        );
        // What the servers can do in this time, and one more read for each rank: the last of its
        // reads ends after the windows.
        let took = point.reads.iter().map(|read| read.went - read.came);
        let shortest = took.min().expect("something was read");
        let turns = (point.seconds() / shortest.as_secs_f64()).ceil() + 1.0;
        let can = servers as f64 * turns + ranks as f64;
        let done = point.point.streams[0].total().done as f64;
        assert!(
            done <= can,
            "{what}: {done} done, and the servers can {can}"
        );
    }
    let found = analyse::ranks(&run).expect("a run of ranks");
    let rounds = found.rounds.expect("the ranks measured in turns");
    assert_rounds_hold(&rounds, &points, size);
    Ok(())
}

#[test]
fn the_sum_of_three_ranks_is_what_two_servers_answered() {
    test(
        "the_sum_of_three_ranks_is_what_two_servers_answered",
        || measured_together("truth-ranks-sum", 3, 2),
    );
}

#[test]
fn two_ranks_take_from_each_other_what_one_server_gives() {
    test(
        "two_ranks_take_from_each_other_what_one_server_gives",
        || measured_together("truth-ranks-interference", 2, 1),
    );
}

#[test]
fn merged_percentiles_are_those_of_the_logs_of_both_devices() {
    test(
        "merged_percentiles_are_those_of_the_logs_of_both_devices",
        || {
            let place = Place::new("truth-ranks-percentiles");
            let devices = [1, 10].map(|time| device(&place, Duration::from_millis(time), 4));
            let [one, ten] = devices;
            let devices = [one?, ten?];
            // The same path, which is another device for each rank.
            let line = LINE.replace("TARGET", "/proc/self/fd/0 --separate");
            let began = Instant::now();
            let (_server, ends) = Server::start(Dialect::Hydra5, 2, usize::MAX);
            let ranks: Vec<Rank> = ends
                .into_iter()
                .enumerate()
                .map(|(rank, end)| {
                    let mut command = rigel(&place, &line);
                    command.env("RIGEL_TEST_BOOT_ID", format!("boot-{rank}"));
                    command.stdin(File::open(&devices[rank].path).unwrap());
                    Rank::start(command, &end, rank, 2)
                })
                .collect();
            let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
            let ended = Instant::now();
            let run = completed(&place, &outputs);
            let logs = devices.iter().map(Device::take).collect();
            let points = witnessed(&run, logs, |rank| rank as usize, (began, ended));
            for point in &points {
                point.assert_holds();
                let summary = summarise(point.point);
                let class = &summary.classes[0];
                let latency = class.latency.expect("reads were done");
                for (q, figure) in [
                    (0.5, latency.p50_us),
                    (0.9, latency.p90_us),
                    (0.99, latency.p99_us),
                ] {
                    let what = point.point.coordinates.name();
                    point.shared.assert_quantile(q, class.done, figure, &what);
                }
            }
            Ok(())
        },
    );
}
