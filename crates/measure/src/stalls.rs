//! Notes when storage or a server stops answering, and when it goes on.
//!
//! Input: at each look, what is outstanding while nothing completes. Output: what is to be reported.

use rigel_device::clock;
use rigel_model::record::{StallChange, StallEvent};
use rigel_model::{Coordinates, StalledIo};

/// A stall, as far as it was reported.
#[derive(Default)]
struct OpenStall {
    /// As it was at the last look, and when it was reported last.
    current: Option<(StalledIo, StalledIo)>,
}

impl OpenStall {
    /// What is to be reported after a look. A stall that lasts is reported whenever it has lasted
    /// twice as long.
    fn look(&mut self, stalled: Option<StalledIo>) -> Option<(StallChange, StalledIo)> {
        match (stalled, self.current) {
            (None, None) => None,
            (Some(stalled), None) => {
                self.current = Some((stalled, stalled));
                Some((StallChange::Begun, stalled))
            }
            (Some(stalled), Some((_, reported))) => {
                let is_due = stalled.silent.0 >= reported.silent.0.saturating_mul(2);
                self.current = Some((stalled, if is_due { stalled } else { reported }));
                is_due.then_some((StallChange::Lasts, stalled))
            }
            (None, Some((last, _))) => {
                self.current = None;
                Some((StallChange::Over, last))
            }
        }
    }

    /// What is to be reported at the end: whether it came during a stall.
    fn end(&self) -> Option<(StallChange, StalledIo)> {
        let (last, _) = self.current?;
        Some((StallChange::Ended, last))
    }
}

/// The stall of a running point, of a disk or server that is watched, or of a preparation.
pub(crate) struct NamedStall {
    coordinates: Option<Coordinates>,
    what: Option<String>,
    host: Option<String>,
    stall: OpenStall,
}

impl NamedStall {
    pub(crate) fn of_point(coordinates: Coordinates) -> Self {
        Self {
            coordinates: Some(coordinates),
            what: None,
            host: None,
            stall: OpenStall::default(),
        }
    }

    /// Of what is no point, with the name of the host if there are several.
    pub(crate) fn of(what: &str, host: Option<&str>) -> Self {
        Self {
            coordinates: None,
            what: Some(what.into()),
            host: host.map(Into::into),
            stall: OpenStall::default(),
        }
    }

    /// What is to be reported after a look.
    pub(crate) fn look(&mut self, stalled: Option<StalledIo>) -> Option<StallEvent> {
        let reported = self.stall.look(stalled)?;
        Some(self.event(reported))
    }

    /// What is to be reported when the point, or the watch, has ended.
    pub(crate) fn end(&self) -> Option<StallEvent> {
        self.stall.end().map(|reported| self.event(reported))
    }

    fn event(&self, (change, stalled): (StallChange, StalledIo)) -> StallEvent {
        StallEvent {
            coordinates: self.coordinates,
            what: self.what.clone(),
            host: self.host.clone(),
            noticed: clock::wall_time(),
            change,
            stalled,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Nanos;

    #[test]
    fn a_stall_is_reported_when_it_begins_at_twice_its_length_and_when_it_ends() {
        let mut stall = NamedStall::of_point(Coordinates::at_depth(4));
        let at = |seconds| {
            Some(StalledIo {
                silent: Nanos::from_secs(seconds),
                outstanding: 4,
                oldest: Nanos::from_secs(seconds),
            })
        };
        let mut changes = Vec::new();
        for stalled in [None, at(10), at(11), at(19), at(20), at(39), None, None] {
            changes.extend(
                stall
                    .look(stalled)
                    .map(|event| (event.change, event.stalled)),
            );
        }
        let expected = [
            (StallChange::Begun, 10),
            (StallChange::Lasts, 20),
            (StallChange::Over, 39),
        ];
        assert_eq!(
            changes,
            expected.map(|(change, s)| (change, at(s).unwrap()))
        );
        assert_eq!(stall.end(), None);
        stall.look(at(12));
        assert_eq!(stall.end().unwrap().change, StallChange::Ended);
    }
}
