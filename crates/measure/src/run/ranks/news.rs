//! What ranks tell rank 0 of a point that all of them measure.

use super::now::RunningCounts;
use rigel_model::record::{PointRecord, StallEvent, Window};
use rigel_model::{Nanos, Sample};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What another rank tells rank 0 of a point.
#[derive(Serialize, Deserialize)]
pub(super) enum News {
    /// It is warm.
    Warm,
    /// Complete windows of the first class, by number: more of them, and earlier ones that have
    /// changed.
    Windows(BTreeMap<usize, Window>),
    /// What it has done so far.
    Counts(RunningCounts),
    /// Its storage stopped answering, or went on.
    Stalled(StallEvent),
    /// A part of its record, which is too long for one message: the next windows of a kind of
    /// operations of a class, by their positions in the record.
    Slice {
        stream: usize,
        kind: usize,
        windows: Vec<Window>,
    },
    /// The next counters of its host.
    Samples(Vec<Sample>),
    /// It is over, and this is the record without what was sent before; measuring began at this
    /// moment of the sender's clock.
    Over {
        record: Box<PointRecord>,
        began: Nanos,
    },
}

/// A record, and when it began on its rank's clock.
pub(super) type RankPart = (PointRecord, Nanos);
