//! Times in which this program itself did not run: it was stopped, or its machine was.
//!
//! Input: the record of a point, in which late looks of the program at itself say so. Output: the record
//! without the windows of these times. They say nothing of the storage.

use super::recording::{PointRecord, StreamRecord};
use crate::Nanos;
use std::borrow::Cow;

impl PointRecord {
    /// True if its figures are of times in which this program did not run, too: they say nothing of the
    /// storage's pauses.
    pub fn has_suspensions(&self) -> bool {
        !self.suspended.is_empty() && self.left_out == Nanos(0)
    }

    /// The same without the windows that touch times in which this program did not run; `None` if none is
    /// left. A fixed amount of work stays as it is.
    ///
    /// An open loop goes on with all that was due meanwhile: nothing after such a time is as it would be.
    pub fn outside_suspensions(&self) -> Option<Cow<'_, Self>> {
        let is_work = self
            .asked
            .as_ref()
            .is_some_and(|point| point.until.is_work());
        if self.suspended.is_empty() || self.left_out > Nanos(0) || is_work {
            return Some(Cow::Borrowed(self));
        }
        let whole = self.whole_windows();
        let mut keeps = vec![true; whole];
        let is_open = self.streams.iter().any(StreamRecord::is_open);
        let window_of =
            |at: Nanos| usize::try_from(at.0 / self.window.0.max(1)).unwrap_or(usize::MAX);
        for suspension in &self.suspended {
            // Operations that were outstanding then were due shortly before.
            let first = window_of(suspension.at).saturating_sub(1).min(whole);
            let end = window_of(suspension.until).saturating_add(1);
            let end = if is_open { whole } else { end.min(whole) };
            keeps[first..end.max(first)].fill(false);
        }
        let left = keeps.iter().filter(|keeps| **keeps).count();
        match left {
            0 => None,
            all if all == whole => Some(Cow::Borrowed(self)),
            left => Some(Cow::Owned(self.with_windows(&keeps, left as u64))),
        }
    }

    /// The same with the windows that it `keeps`, and without what was counted over all of them.
    fn with_windows(&self, keeps: &[bool], left: u64) -> Self {
        let measured = Nanos(left.saturating_mul(self.window.0));
        let mut record = Self {
            measured,
            left_out: self.measured.since(measured),
            // They count what the host did meanwhile.
            samples: Vec::new(),
            ..self.clone()
        };
        let begins = keeps.first() == Some(&true);
        for stream in &mut record.streams {
            for kind in &mut stream.kinds {
                kind.windows = kept(&kind.windows, keeps);
            }
            stream.unserved = kept(&stream.unserved, keeps);
            stream.delay = None;
            if keeps.last() != Some(&true) {
                stream.drained = 0;
            }
            if !begins {
                stream.censored = None;
            }
        }
        record
    }
}

fn kept<T: Clone>(all: &[T], keeps: &[bool]) -> Vec<T> {
    let pairs = all.iter().zip(keeps);
    let kept = pairs.filter(|(_, keeps)| **keeps);
    kept.map(|(one, _)| one.clone()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::visits::joined;
    use crate::record::{Coverage, End, KindRecord, Suspension, Window};
    use crate::{Coordinates, Kind, Load, Pattern};

    /// Ten windows of a second, of which window n has n operations.
    fn record(load: Load, suspended: &[(u64, u64)]) -> PointRecord {
        let window = |done| Window {
            done,
            ..Window::default()
        };
        let stream = StreamRecord {
            name: "small".into(),
            length: 8192,
            loads: vec![load],
            patterns: vec![Pattern::Uniform],
            sql: None,
            kinds: vec![KindRecord {
                kind: Kind::Read,
                windows: (0..10).map(window).collect(),
            }],
            unserved: Vec::new(),
            drained: 0,
            censored: None,
            delay: None,
            warm_up_done: 0,
            coverage: Coverage::default(),
        };
        let suspension = |(at, lasts): &(u64, u64)| Suspension {
            at: Nanos::from_millis(*at),
            until: Nanos::from_millis(at + lasts),
            lasts: Nanos::from_millis(*lasts),
        };
        PointRecord {
            coordinates: Coordinates::at_depth(4),
            started: String::new(),
            began: Nanos(0),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(10),
            end: End::Complete,
            cpu: Nanos(0),
            cpus: 1,
            window: Nanos::from_secs(1),
            asked: None,
            streams: vec![stream],
            samples: Vec::new(),
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: suspended.iter().map(suspension).collect(),
            left_out: Nanos(0),
        }
    }

    fn counts(record: &PointRecord) -> Vec<u64> {
        let windows = record.streams[0].kinds[0].windows.iter();
        windows.map(|window| window.done).collect()
    }

    const CLOSED: Load = Load::Closed { depth: 4 };

    #[test]
    fn windows_of_a_suspension_are_left_out_with_the_one_before() {
        let of = |suspended: &[(u64, u64)]| {
            let record = record(CLOSED, suspended);
            let left = record.outside_suspensions()?.into_owned();
            assert_eq!(left.measured.plus(left.left_out), record.measured);
            assert_eq!(
                left.measured.0,
                counts(&left).len() as u64 * record.window.0
            );
            // Once is enough.
            assert_eq!(*left.outside_suspensions()?, left);
            Some(counts(&left))
        };
        assert_eq!(of(&[]), Some((0..10).collect()));
        assert_eq!(of(&[(3200, 2000)]), Some(vec![0, 1, 6, 7, 8, 9]));
        // In what ran on after the end, and before the beginning.
        assert_eq!(of(&[(10_300, 30_000)]), Some((0..9).collect()));
        assert_eq!(of(&[(0, 0)]), Some((1..10).collect()));
        assert_eq!(of(&[(0, 1500), (5000, 30_000)]), Some(vec![2, 3]));
        assert_eq!(of(&[(500, 30_000)]), None);
    }

    #[test]
    fn an_open_loop_ends_with_a_suspension() {
        let open = Load::Open {
            rate: 200.0,
            arrivals: crate::Arrivals::Poisson,
            in_flight_max: 64,
        };
        let left = record(open, &[(3200, 2000)]);
        let left = left.outside_suspensions().unwrap();
        assert_eq!(counts(&left), [0, 1]);
        assert!(record(open, &[(1200, 0)]).outside_suspensions().is_none());
    }

    #[test]
    fn a_visit_without_a_window_left_does_not_count_unless_it_is_the_only_one() {
        let whole = record(CLOSED, &[]);
        let gone = record(CLOSED, &[(500, 30_000)]);
        let both = joined(&[gone.clone(), whole.clone()]).remove(0);
        assert_eq!(counts(&both), counts(&whole));
        assert_eq!(both.suspended, gone.suspended);
        let only = joined(std::slice::from_ref(&gone)).remove(0);
        assert_eq!((counts(&only), only.left_out), (counts(&gone), Nanos(0)));
    }
}
