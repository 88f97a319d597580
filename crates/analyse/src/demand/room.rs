//! How much room a storage leaves beside what is asked of it today.
//!
//! Input: what a calibration measured, and the busiest rate of each kind of I/O. Output: for each
//! kind the share of what the storage serves, and how many times as much it would serve.
//!
//! An I/O of another size than the measured one counts as as many of them as it is long; large reads
//! are compared by their bytes. Log writes wait for each other and not for a share of the
//! throughput, so the sum over kinds leaves them out.

use super::watch_request::{ServedStream, StorageServes};
use super::watched_types::{StorageRoom, StreamRoom, WatchedSource, WatchedStream};
use crate::figures::quantity::multiple;
use crate::figures::quantity::{mb_per_second, per_second};
use crate::search::at_load::AtLoad;
use crate::search::calibration::Calibration;
use rigel_model::DemandKind;

impl StorageServes {
    /// What `calibration` measured; the caller adds where.
    pub fn of(calibration: &Calibration) -> Self {
        let served = |kind: DemandKind, at: AtLoad, within: &str| ServedStream {
            kind,
            per_s: at.iops.value,
            bytes: at.io_bytes,
            within: within.into(),
        };
        let within = format!("within {}", calibration.bound);
        let reads = match (calibration.sustained.kept, calibration.maximum) {
            (Some(kept), _) => Some(served(DemandKind::RandomReads, kept, &within)),
            (None, maximum) => maximum.map(|at| served(DemandKind::RandomReads, at, "")),
        };
        let large = calibration.large;
        let mut streams: Vec<ServedStream> = reads.into_iter().collect();
        streams.extend(large.map(|at| served(DemandKind::MultiblockReads, at, "")));
        streams.extend(
            calibration
                .writes
                .map(|at| served(DemandKind::PageWrites, at, "")),
        );
        streams.extend(calibration.log_writes.iter().map(|one| ServedStream {
            bytes: one.bytes,
            ..served(DemandKind::LogWrites, one.at, "by one writer")
        }));
        Self {
            streams,
            ..Self::default()
        }
    }

    /// The figure that operations of this kind and size are compared with.
    fn figure(&self, kind: DemandKind, bytes: f64) -> Option<&ServedStream> {
        let like = match kind {
            DemandKind::DirectReads => DemandKind::MultiblockReads,
            DemandKind::DirectWrites | DemandKind::PageAndDirectWrites => DemandKind::PageWrites,
            other => other,
        };
        let alike = || self.streams.iter().filter(|one| one.kind == like);
        let as_long = alike().filter(|one| f64::from(one.bytes) >= bytes);
        as_long
            .min_by_key(|one| one.bytes)
            .or_else(|| alike().max_by_key(|one| one.bytes))
    }
}

/// The room beside the demand of `source`, which may be several disks.
pub(super) fn room(source: &WatchedSource, disks: usize, serves: &StorageServes) -> StorageRoom {
    let verb = if disks > 1 { "use" } else { "uses" };
    let mut storage = StorageRoom {
        source: source.name.clone(),
        ..StorageRoom::default()
    };
    for stream in &source.streams {
        let Some(kind) = stream.kind.filter(|_| stream.busiest_per_s > 0.0) else {
            continue;
        };
        match of_stream(kind, stream, serves, verb) {
            Some(room) => {
                if kind != DemandKind::LogWrites {
                    storage.used_together += room.used;
                }
                storage.streams.push(room);
            }
            None => storage.not_measured.push(kind),
        }
    }
    storage
}

fn of_stream(
    kind: DemandKind,
    stream: &WatchedStream,
    serves: &StorageServes,
    verb: &str,
) -> Option<StreamRoom> {
    let bytes = stream.mean_bytes.unwrap_or(0.0);
    let figure = serves.figure(kind, bytes)?;
    let by_bytes = figure.kind == DemandKind::MultiblockReads;
    let ratio = bytes / f64::from(figure.bytes);
    let size = if by_bytes {
        ratio
    } else {
        ratio.ceil().max(1.0)
    };
    let serves_per_s = figure.per_s / size.max(f64::MIN_POSITIVE);
    let busiest = if by_bytes {
        stream.busiest_bytes_per_s? / bytes
    } else {
        stream.busiest_per_s
    };
    let used = busiest / serves_per_s;
    let in_words = |per_s: f64| {
        if by_bytes {
            mb_per_second(per_s * bytes / 1e6)
        } else {
            per_second(per_s)
        }
    };
    let (asked, of) = (in_words(busiest), in_words(serves_per_s));
    let within = if figure.within.is_empty() {
        String::new()
    } else {
        format!(" {}", figure.within)
    };
    let sentence = format!(
        "{verb} {asked} of the {of} of {} that this storage serves{within}: room for {} times",
        kind.words(),
        multiple(1.0 / used)
    );
    Some(StreamRoom {
        kind,
        per_s: busiest,
        serves_per_s,
        used,
        sentence,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(kind: DemandKind, per_s: f64, bytes: f64) -> WatchedStream {
        WatchedStream {
            name: kind.words().into(),
            kind: Some(kind),
            busiest_per_s: per_s,
            busiest_bytes_per_s: Some(per_s * bytes),
            mean_bytes: Some(bytes),
            ..WatchedStream::default()
        }
    }

    fn served(kind: DemandKind, per_s: f64, bytes: u32, within: &str) -> ServedStream {
        ServedStream {
            kind,
            per_s,
            bytes,
            within: within.into(),
        }
    }

    #[test]
    fn room_is_what_is_served_over_what_is_used() {
        let source = WatchedSource {
            name: "sda".into(),
            streams: vec![
                asked(DemandKind::RandomReads, 3200.0, 8192.0),
                asked(DemandKind::MultiblockReads, 100.0, 131_072.0),
                asked(DemandKind::PageWrites, 50.0, 16_384.0),
                asked(DemandKind::LogWrites, 100.0, 6000.0),
            ],
            ..WatchedSource::default()
        };
        let serves = StorageServes {
            streams: vec![
                served(
                    DemandKind::RandomReads,
                    11_800.0,
                    8192,
                    "within 1 ms at p99",
                ),
                served(DemandKind::MultiblockReads, 200.0, 1 << 20, ""),
                served(DemandKind::LogWrites, 900.0, 4096, "by one writer"),
                served(DemandKind::LogWrites, 500.0, 8192, "by one writer"),
            ],
            ..StorageServes::default()
        };
        let found = room(&source, 1, &serves);
        assert_eq!(
            found.streams[0].sentence,
            "uses 3,200/s of the 11,800/s of random reads that this storage serves within 1 ms at \
             p99: room for 3.69 times"
        );
        // 100 of 128 KiB are a sixteenth of 200 of 1 MiB.
        assert!((found.streams[1].used - 1.0 / 16.0).abs() < 1e-9);
        // An append of 6,000 bytes is compared with one of 8 KiB.
        assert!((found.streams[2].used - 0.2).abs() < 1e-9);
        assert_eq!(found.not_measured, [DemandKind::PageWrites]);
        let together = 3200.0 / 11_800.0 + 1.0 / 16.0;
        assert!((found.used_together - together).abs() < 1e-9);
    }

    #[test]
    fn large_reads_are_compared_by_the_bytes_of_their_busiest_interval() {
        // The interval with the most reads is not that with the most bytes.
        let source = WatchedSource {
            streams: vec![WatchedStream {
                busiest_bytes_per_s: Some(50.0 * 1_048_576.0),
                ..asked(DemandKind::MultiblockReads, 300.0, 131_072.0)
            }],
            ..WatchedSource::default()
        };
        let serves = StorageServes {
            streams: vec![served(DemandKind::MultiblockReads, 200.0, 1 << 20, "")],
            ..StorageServes::default()
        };
        let found = room(&source, 1, &serves);
        assert!((found.streams[0].used - 0.25).abs() < 1e-9, "{found:?}");
    }
}
