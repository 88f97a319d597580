//! Stalls of what a watch observes: disks with requests in flight of which none completes, and
//! databases that do not answer.
//!
//! Input: the kernel's counters, the traced requests, and since when a database has been asked.
//! Output: events, and the longest stall at this moment.

use super::databases::DatabaseWatch;
use super::requests::Requests;
use crate::stalls::NamedStall;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_device::clock;
use rigel_device::observe::disk_progress;
use rigel_model::record::StallEvent;
use rigel_model::{Nanos, StallDetector, StalledIo};

/// Time between two looks at disks and databases.
const EVERY: Nanos = Nanos::from_secs(1);

/// What a watch says while an interval lasts.
pub enum WatchNews<'a> {
    /// A disk or database has stopped answering, or answers again.
    Stall(&'a StallEvent),
    /// The longest stall now; `None` if all answer.
    Silent(Option<StalledIo>),
}

/// The stalls of all disks and databases of a watch.
pub(super) struct WatchedStalls {
    disks: Vec<WatchedStall>,
    databases: Vec<WatchedStall>,
    /// When the next look is due.
    due: Nanos,
}

/// One disk or database.
struct WatchedStall {
    /// Its name, as its intervals have it.
    name: String,
    detector: StallDetector,
    named: NamedStall,
}

impl WatchedStalls {
    pub(super) fn of(request: &WatchRequest, databases: &[DatabaseWatch]) -> Self {
        let now = clock::monotonic();
        let of = |name: &str| WatchedStall {
            name: name.into(),
            detector: StallDetector::new(now, EVERY),
            named: NamedStall::of(name, None),
        };
        Self {
            disks: request.disks.iter().map(|disk| of(&disk.name)).collect(),
            databases: databases.iter().map(|one| of(one.name())).collect(),
            due: now.plus(EVERY),
        }
    }

    /// Looks again, if it is time: tells of what has stopped completing, or completes again.
    pub(super) fn look(
        &mut self,
        requests: &[Option<Requests>],
        databases: &[DatabaseWatch],
        hear: &mut dyn FnMut(WatchNews),
    ) {
        let now = clock::monotonic();
        if now < self.due {
            return;
        }
        self.due = now.plus(EVERY);
        let mut longest: Option<StalledIo> = None;
        let mut note = |named: &mut NamedStall, stalled: Option<StalledIo>| {
            if let Some(event) = named.look(stalled) {
                hear(WatchNews::Stall(&event));
            }
            let both = longest.into_iter().chain(stalled);
            longest = both.max_by_key(|stalled| stalled.silent);
        };
        for (stall, requests) in self.disks.iter_mut().zip(requests) {
            // Of a disk that is gone nothing is known.
            if let Some(counts) = disk_progress(&stall.name) {
                let traced = requests.as_ref().and_then(Requests::oldest);
                let stalled = of_disk(&mut stall.detector, now, counts, traced);
                note(&mut stall.named, stalled);
            }
        }
        for (stall, database) in self.databases.iter_mut().zip(databases) {
            let since = database.asked_since();
            // Another question is another time.
            let progress = since.map_or(0, |since| since.0);
            let outstanding = || (u64::from(since.is_some()), since);
            let look = stall.detector.look(now, progress, outstanding);
            note(&mut stall.named, look.stalled);
        }
        hear(WatchNews::Silent(longest));
    }

    /// Tells of what still does not answer at the end.
    pub(super) fn end(&self, hear: &mut dyn FnMut(WatchNews)) {
        let all = self.disks.iter().chain(&self.databases);
        for event in all.filter_map(|stall| stall.named.end()) {
            hear(WatchNews::Stall(&event));
        }
    }
}

/// The stall of a disk, of which `completed` requests have ended and `in_flight` have not. `traced` is
/// when the oldest of them was issued, if that was seen.
fn of_disk(
    detector: &mut StallDetector,
    now: Nanos,
    (completed, in_flight): (u64, u64),
    traced: Option<Nanos>,
) -> Option<StalledIo> {
    let look = detector.look(now, completed, || (in_flight, None));
    if in_flight == 0 {
        detector.idle();
    }
    let stalled = look.stalled?;
    let seen = traced.map_or(Nanos(0), |issued| now.since(issued));
    Some(StalledIo {
        oldest: stalled.oldest.max(seen),
        ..stalled
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_stalls_once_a_request_was_in_flight_for_ten_seconds_and_none_ended() {
        let mut detector = StallDetector::new(Nanos(0), EVERY);
        let mut look = |second: u64, counts: (u64, u64), traced: Option<u64>| {
            let traced = traced.map(Nanos::from_secs);
            of_disk(&mut detector, Nanos::from_secs(second), counts, traced)
        };
        // An idle disk completes nothing, and one that has begun anew is not as old as its idleness.
        let idle: Vec<_> = (1..=30)
            .filter_map(|second| look(second, (7, 0), None))
            .collect();
        assert_eq!(idle, []);
        let begun: Vec<_> = (31..=39)
            .filter_map(|second| look(second, (7, 2), None))
            .collect();
        assert_eq!(begun, []);
        let counted = look(40, (7, 2), None).unwrap();
        let ten = Nanos::from_secs(10);
        assert_eq!(
            (counted.silent, counted.outstanding, counted.oldest),
            (ten, 2, ten)
        );
        // The oldest was issued before another one ended.
        let traced = look(41, (7, 2), Some(25)).unwrap();
        assert_eq!(
            (traced.silent, traced.oldest),
            (Nanos::from_secs(11), Nanos::from_secs(16))
        );
        assert_eq!(look(42, (8, 1), None), None);
    }
}
