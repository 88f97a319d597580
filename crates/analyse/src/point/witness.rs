//! The kernel as a witness: what it counted of a point's bytes.
//!
//! Input: samples of the kernel's counters, and the operations of the point. Output: both sums, and a warning if they
//! differ.

use crate::figures::quantity::percent;
use rigel_model::record::PointRecord;
use rigel_model::{Counters, Finding, FindingName, Sample};
use serde::Serialize;

/// Allowed relative difference between the kernel's count and ours.
const WITNESS_TOLERANCE: f64 = 0.02;

/// The kernel's count of bytes, and ours.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DeviceBytes {
    /// Bytes the devices transferred between the first sample and the last.
    pub device_bytes: u64,
    /// Bytes of the operations completed in that time, warm-up included.
    pub asked_bytes: u64,
}

impl DeviceBytes {
    /// The sum over visits; `None` if one of them is unknown.
    pub(super) fn sum(visits: impl Iterator<Item = Option<Self>>) -> Option<Self> {
        visits
            .reduce(|one, other| {
                let (first, second) = (one?, other?);
                Some(Self {
                    device_bytes: first.device_bytes.saturating_add(second.device_bytes),
                    asked_bytes: first.asked_bytes.saturating_add(second.asked_bytes),
                })
            })
            .flatten()
    }
}

/// The kernel's count of bytes between the first and the last sample, over all devices.
pub(super) fn witness(record: &PointRecord, done: &[u64]) -> Option<DeviceBytes> {
    let (first, last) = (record.samples.first()?, record.samples.last()?);
    let bytes = |sample: &Sample, of: fn(&Counters) -> u64| {
        sample.devices.values().map(of).sum::<u64>() * 512
    };
    let sectors = |counters: &Counters| counters.read_sectors + counters.write_sectors;
    // For databases, `SqlSummary` compares the server's own counts instead.
    if first.devices.is_empty() || record.streams.iter().any(|stream| stream.sql.is_some()) {
        return None;
    }
    let asked = record.streams.iter().zip(done);
    let asked = asked.map(|(stream, done)| (done + stream.warm_up_done) * u64::from(stream.length));
    Some(DeviceBytes {
        device_bytes: bytes(last, sectors).saturating_sub(bytes(first, sectors)),
        asked_bytes: asked.sum(),
    })
}

/// True if the point writes to files of logs. Their filesystem notes new sizes and new blocks, and writes the
/// rest of a block again: no other load, however much it is.
fn is_of_logs(record: &PointRecord) -> bool {
    let mut streams = record.asked.iter().flat_map(|point| &point.streams);
    streams.any(|stream| stream.log.is_some())
}

/// Warns if the kernel counted other bytes than were asked for.
pub(super) fn witness_warning(witness: DeviceBytes, record: &PointRecord) -> Option<Finding> {
    let cell = record.coordinates;
    let (device, asked) = (witness.device_bytes as f64, witness.asked_bytes as f64);
    if asked <= 0.0 {
        return None;
    }
    let share = device / asked;
    if share < 1.0 - WITNESS_TOLERANCE {
        return Some(Finding::warning(
            FindingName::NotFromDevice,
            format!(
                "at {cell} the device transferred only {} of the bytes; the rest did not \
                 come from it",
                percent(share)
            ),
            "a cache, a hole or another layer served the I/O: measure a completely written file, \
             with direct I/O",
        ));
    }
    (share > 1.0 + WITNESS_TOLERANCE && !is_of_logs(record)).then(|| {
        Finding::warning(
            FindingName::DeviceLoad,
            format!(
                "at {cell} the device transferred {} of the requested bytes: it has other \
                 load",
                percent(share)
            ),
            "measure when the device is otherwise idle; the figures are for the capacity left by \
             the other load",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::reads_of_a_millisecond as record;
    use rigel_model::{Load, LogKind, Mix, Pattern, Point, Stream, Until, WarmUp};

    #[test]
    fn what_a_filesystem_writes_for_a_log_is_no_other_load() {
        let twice = DeviceBytes {
            device_bytes: 2_000_000,
            asked_bytes: 1_000_000,
        };
        let mut reads = record();
        let names = |record: &PointRecord| {
            let found = witness_warning(twice, record);
            found.map(|finding| finding.is(FindingName::DeviceLoad))
        };
        assert_eq!(names(&reads), Some(true));
        reads.asked = Some(Box::new(Point {
            coordinates: reads.coordinates,
            streams: vec![Stream {
                name: "log".into(),
                load: Load::Closed { depth: 1 },
                mix: Mix::LOG,
                pattern: Pattern::Sequential { start: 0 },
                length: 4096,
                log: Some(LogKind::GROW),
                objective: None,
                sql: None,
                rank: None,
            }],
            warm_up: WarmUp::NONE,
            until: Until::Ops(1),
            window: Point::second(),
            seed: 1,
        }));
        assert_eq!(names(&reads), None);
    }
}
