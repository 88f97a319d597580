//! Notes when storage stops answering, and when it goes on.

use rigel_device::clock;
use rigel_model::record::{StallChange, StallEvent};
use rigel_model::{Coordinates, StalledIo};

/// The stall of a running point, as far as it was reported.
pub(in crate::run) struct PointStall {
    coordinates: Coordinates,
    /// As it was at the last look, and when it was reported last.
    current: Option<(StalledIo, StalledIo)>,
}

impl PointStall {
    pub(super) fn new(coordinates: Coordinates) -> Self {
        Self {
            coordinates,
            current: None,
        }
    }

    /// What is to be reported of the point after a look. A stall that lasts is reported whenever it
    /// has lasted twice as long.
    pub(super) fn look(&mut self, stalled: Option<StalledIo>) -> Option<StallEvent> {
        let (change, shown) = match (stalled, self.current) {
            (None, None) => return None,
            (Some(stalled), None) => {
                self.current = Some((stalled, stalled));
                (StallChange::Begun, stalled)
            }
            (Some(stalled), Some((_, reported))) => {
                let is_due = stalled.silent.0 >= reported.silent.0.saturating_mul(2);
                self.current = Some((stalled, if is_due { stalled } else { reported }));
                if !is_due {
                    return None;
                }
                (StallChange::Lasts, stalled)
            }
            (None, Some((last, _))) => {
                self.current = None;
                (StallChange::Over, last)
            }
        };
        Some(self.event(change, shown))
    }

    /// What is to be reported when the point has ended: whether it ended in a stall.
    pub(super) fn end(&self) -> Option<StallEvent> {
        let (last, _) = self.current?;
        Some(self.event(StallChange::Ended, last))
    }

    fn event(&self, change: StallChange, stalled: StalledIo) -> StallEvent {
        StallEvent {
            coordinates: self.coordinates,
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
        let mut stall = PointStall::new(Coordinates::at_depth(4));
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
