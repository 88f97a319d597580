//! Several modes of the response times of a point at which no operation waits for another.
//!
//! Input: a record. Output: a finding that names each mode with its share, where there are several.
//! Under a deeper queue the times are those of the queue as well, and tell less of the storage.

use crate::figures::confidence::{level_of, whole_windows};
use crate::figures::modes;
use rigel_model::record::{Histogram, PointRecord};
use rigel_model::{Finding, Load};

/// Says which modes the times have, if there are several, of one kind of operation, one at a time.
pub(super) fn modes(record: &PointRecord) -> Option<Finding> {
    let [stream] = record.streams.as_slice() else {
        return None;
    };
    let is_alone = stream.loads.as_slice() == [Load::Closed { depth: 1 }];
    let kinds = stream.kinds.iter().filter(|kind| kind.done() > 0);
    if !is_alone || stream.sql.is_some() || kinds.count() != 1 {
        return None;
    }
    let windows = whole_windows(stream, record);
    let times: Vec<&Histogram> = windows
        .iter()
        .map(|window| &window.response.histogram)
        .collect();
    let what = format!("{} I/O at {}", stream.name, record.coordinates);
    modes::finding(&what, &times, level_of(record))
}
