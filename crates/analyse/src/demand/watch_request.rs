//! The request of `rigel watch`: which disks and databases are observed, how often and how long.

use crate::plan::Plan;
use rigel_model::{DemandKind, Nanos};
use serde::{Deserialize, Serialize};

/// The request of `rigel watch`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchRequest {
    /// Disks, or partitions of disks.
    pub disks: Vec<WatchedDisk>,
    /// URLs of databases, without passwords.
    pub urls: Vec<String>,
    /// Length of an interval.
    pub every: Nanos,
    /// Duration of the whole; `None` = until it is stopped.
    pub lasting: Option<Nanos>,
    /// Bytes of a block: reads of up to two of them count as random.
    pub block: u32,
    /// True if nobody said how large a block is.
    pub is_block_assumed: bool,
    /// What the storage can do, by a calibration; `None` without `--against`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub against: Option<StorageServes>,
}

/// A disk, or the part of it that is observed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct WatchedDisk {
    /// The kernel's name of the disk or partition: `nvme0n1p2`.
    pub name: String,
    /// Major and minor number of the whole disk.
    pub number: (u32, u32),
    /// Sectors of 512 bytes that belong to a partition: the first one, and how many; `None` for a
    /// whole disk.
    pub sectors: Option<(u64, u64)>,
    /// Why it is observed: the directory or device that the user named.
    pub named: String,
}

/// What a calibration says that storage serves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StorageServes {
    /// The directory of the calibration.
    pub run: String,
    /// Its target.
    pub target: String,
    /// The host on which it ran.
    pub host: String,
    /// Names of the disks below the target; empty for a model.
    pub disks: Vec<String>,
    /// What was measured, by kind of I/O.
    pub streams: Vec<ServedStream>,
}

/// One kind of I/O that a calibration measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServedStream {
    /// The kind.
    pub kind: DemandKind,
    /// Operations per second.
    pub per_s: f64,
    /// Bytes of an operation.
    pub bytes: u32,
    /// The condition in words: `within 1 ms at p99`; empty if there was none.
    pub within: String,
}

impl Plan for WatchRequest {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn points_expected(&self) -> usize {
        self.intervals().unwrap_or(0) as usize
    }

    fn point_seconds(&self) -> f64 {
        self.every.as_secs_f64()
    }
}

impl WatchRequest {
    /// Number of intervals; `None` = until it is stopped.
    pub fn intervals(&self) -> Option<u32> {
        let lasting = self.lasting?;
        Some(u32::try_from(lasting.0.div_ceil(self.every.0.max(1))).unwrap_or(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_number_of_intervals_covers_the_whole_time() {
        let request = |lasting: Option<u64>| WatchRequest {
            every: Nanos::from_secs(10),
            lasting: lasting.map(Nanos::from_secs),
            ..WatchRequest::default()
        };
        assert_eq!(request(None).intervals(), None);
        assert_eq!(request(Some(60)).intervals(), Some(6));
        assert_eq!(request(Some(61)).intervals(), Some(7));
    }
}
