//! The streams of a database in an interval, by two readings of its counters.
//!
//! Input: counters by the server's own names. Output: streams. What this version of the server does
//! not count is absent; a time of zero is one that the server does not measure.

use super::watched_streams::SeenStream;
use rigel_model::{Dbms, DemandKind};
use std::collections::BTreeMap;

/// Reads of more than this many blocks on average are multi-block reads.
const RANDOM_BLOCKS_MAX: f64 = 2.0;

/// Counters before and after, by name.
pub(super) struct CounterChange<'a> {
    /// At the beginning.
    pub(super) before: &'a BTreeMap<String, u64>,
    /// At the end.
    pub(super) after: &'a BTreeMap<String, u64>,
}

impl CounterChange<'_> {
    /// How much a counter rose; `None` if the server does not have it, or it went back.
    fn rise(&self, name: &str) -> Option<f64> {
        let change = self.after.get(name)?.checked_sub(*self.before.get(name)?)?;
        Some(change as f64)
    }

    /// The sum of several counters, of which at least one must be known.
    fn sum(&self, names: &[&str]) -> Option<f64> {
        let rises: Vec<f64> = names.iter().filter_map(|name| self.rise(name)).collect();
        (!rises.is_empty()).then(|| rises.iter().sum())
    }

    /// A figure of `pg_stat_io` over some kinds of object and context.
    fn io(&self, places: &[&str], what: &str) -> Option<f64> {
        let names: Vec<String> = places
            .iter()
            .map(|place| format!("pg_stat_io.{place}.{what}"))
            .collect();
        self.sum(&names.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// The streams of a database with blocks of this many bytes.
pub(super) fn of_database(change: &CounterChange<'_>, block: f64) -> Vec<SeenStream> {
    let is_postgres = change.after.keys().any(|name| name.starts_with("pg_stat_"));
    let all = if is_postgres {
        of_postgres(change, block)
    } else {
        of_innodb(change)
    };
    all.into_iter()
        .flatten()
        .filter(|stream| stream.operations > 0.0)
        .collect()
}

/// A stream of `operations`, if they are known.
fn stream(
    kind: DemandKind,
    operations: Option<f64>,
    bytes: Option<f64>,
    total_us: Option<f64>,
    rate_of: &'static str,
) -> Option<SeenStream> {
    Some(SeenStream {
        name: kind.words(),
        kind: Some(kind),
        operations: operations?,
        bytes,
        total_us: total_us.filter(|us| *us > 0.0),
        rate_of,
        latency_of: "the server's own timing",
        ..SeenStream::default()
    })
}

fn of_postgres(change: &CounterChange<'_>, block: f64) -> Vec<Option<SeenStream>> {
    let blocks = |count: Option<f64>| count.map(|count| count * block);
    // Since version 16 by kind of object and context.
    let shared = ["relation.normal", "relation.vacuum"];
    let reads = change.io(&shared, "reads");
    if reads.is_none() {
        let reads = change.rise("pg_stat_database.blks_read");
        let written = change.sum(&[
            "pg_stat_bgwriter.buffers_checkpoint",
            "pg_stat_bgwriter.buffers_clean",
            "pg_stat_bgwriter.buffers_backend",
        ]);
        return vec![
            stream(
                DemandKind::RandomReads,
                reads,
                blocks(reads),
                change.rise("pg_stat_database.blk_read_time_us"),
                "pg_stat_database.blks_read: blocks read past the buffer cache, one at a time",
            ),
            stream(
                DemandKind::PageWrites,
                written,
                blocks(written),
                None,
                "pg_stat_bgwriter: buffers of checkpoints, the background writer and backends",
            ),
            log_of_postgres(change),
        ];
    }
    // Version 18 counts reads, and no longer counts writes of the log in pg_stat_wal.
    let is_in_blocks = change.after.contains_key("pg_stat_wal.wal_write");
    let bytes = change.io(&shared, "read_bytes");
    let mean = bytes.zip(reads).map(|(bytes, reads)| bytes / reads);
    let is_large = mean.is_some_and(|mean| mean > RANDOM_BLOCKS_MAX * block);
    let kind = if is_large {
        DemandKind::MultiblockReads
    } else {
        DemandKind::RandomReads
    };
    let bulk = ["relation.bulkread"];
    let direct = ["relation.bulkwrite", "temp relation.normal"];
    let scans = SeenStream {
        name: "reads of large scans",
        ..stream(
            DemandKind::MultiblockReads,
            change.io(&bulk, "reads"),
            change.io(&bulk, "read_bytes"),
            change.io(&bulk, "read_time_us"),
            if is_in_blocks {
                "pg_stat_io: reads in the context bulkread, counted in blocks also where several \
                 are read at once"
            } else {
                "pg_stat_io: reads in the context bulkread"
            },
        )
        .unwrap_or_default()
    };
    vec![
        stream(
            kind,
            reads,
            bytes,
            change.io(&shared, "read_time_us"),
            if is_in_blocks {
                "pg_stat_io: reads of relations in the contexts normal and vacuum, counted in \
                 blocks also where several are read at once"
            } else {
                "pg_stat_io: reads of relations in the contexts normal and vacuum"
            },
        ),
        Some(scans),
        stream(
            DemandKind::PageWrites,
            change.io(&shared, "writes"),
            change.io(&shared, "write_bytes"),
            change.io(&shared, "write_time_us"),
            "pg_stat_io: writes of relations in the contexts normal and vacuum",
        ),
        stream(
            DemandKind::DirectWrites,
            change.io(&direct, "writes"),
            change.io(&direct, "write_bytes"),
            change.io(&direct, "write_time_us"),
            "pg_stat_io: writes in the context bulkwrite, and of temporary relations",
        ),
        log_of_postgres(change),
    ]
}

/// Appends to the log: a sync for each, with the bytes between two of them.
fn log_of_postgres(change: &CounterChange<'_>) -> Option<SeenStream> {
    let wal = ["wal.normal"];
    let new = change.rise("pg_stat_wal.wal_bytes");
    let syncs = change
        .io(&wal, "fsyncs")
        .or_else(|| change.rise("pg_stat_wal.wal_sync"));
    // With open_datasync the write itself is durable, and no sync is counted.
    let writes = change
        .io(&wal, "writes")
        .or_else(|| change.rise("pg_stat_wal.wal_write"));
    let time = change
        .sum(&[
            "pg_stat_wal.wal_write_time_us",
            "pg_stat_wal.wal_sync_time_us",
        ])
        .or_else(|| {
            let parts = [
                change.io(&wal, "write_time_us"),
                change.io(&wal, "fsync_time_us"),
            ];
            parts.into_iter().sum()
        });
    let (appends, how) = match syncs.filter(|syncs| *syncs > 0.0) {
        Some(syncs) => (
            Some(syncs),
            "syncs of the WAL; the size is that of the pages written between two of them",
        ),
        None => (writes, "writes of the WAL; the size is that of their pages"),
    };
    // Since version 18 it counts the pages.
    let counted = change.io(&wal, "write_bytes");
    let again = Dbms::Postgres.log_bytes_again();
    let of_pages = || Some(new? + appends? * again);
    let bytes = counted.or_else(of_pages);
    stream(DemandKind::LogWrites, appends, bytes, time, how)
}

fn of_innodb(change: &CounterChange<'_>) -> Vec<Option<SeenStream>> {
    let page = change
        .after
        .get("Innodb_page_size")
        .map(|page| *page as f64);
    let pages = |count: Option<f64>| count.zip(page).map(|(count, page)| count * page);
    let reads = change.rise("Innodb_buffer_pool_reads");
    let ahead = change.rise("Innodb_buffer_pool_read_ahead");
    let written = change.rise("Innodb_pages_written");
    let doubled = change.rise("Innodb_dblwr_writes");
    // With O_DSYNC the write itself is durable, and no sync is counted.
    let syncs = change.rise("Innodb_os_log_fsyncs");
    let syncs = syncs
        .filter(|syncs| *syncs > 0.0)
        .or_else(|| change.rise("Innodb_log_writes"))
        .or(syncs);
    vec![
        stream(
            DemandKind::RandomReads,
            reads,
            pages(reads),
            None,
            "Innodb_buffer_pool_reads: pages that a session had to wait for",
        ),
        stream(
            DemandKind::MultiblockReads,
            ahead,
            pages(ahead),
            None,
            "Innodb_buffer_pool_read_ahead: pages read ahead, each counted as one read",
        ),
        stream(
            DemandKind::PageWrites,
            written,
            pages(written),
            None,
            "Innodb_pages_written",
        ),
        stream(
            DemandKind::DirectWrites,
            doubled,
            pages(change.rise("Innodb_dblwr_pages_written")),
            None,
            "Innodb_dblwr_writes: batches of the doublewrite buffer",
        ),
        stream(
            DemandKind::LogWrites,
            syncs,
            change.rise("Innodb_os_log_written"),
            None,
            "syncs of the redo log, or its writes where the server counts no syncs",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn streams(pairs: &[(&str, u64)]) -> Vec<SeenStream> {
        let after: BTreeMap<String, u64> = pairs
            .iter()
            .map(|(name, value)| ((*name).to_string(), 1000 + value))
            .collect();
        let before = after.keys().map(|name| (name.clone(), 1000)).collect();
        let change = CounterChange {
            before: &before,
            after: &after,
        };
        of_database(&change, 8192.0)
    }

    fn found(streams: &[SeenStream], kind: DemandKind) -> (f64, Option<f64>, Option<f64>) {
        let one = streams.iter().find(|one| one.kind == Some(kind)).unwrap();
        (one.operations, one.bytes, one.total_us)
    }

    #[test]
    fn postgres_15_counts_blocks_and_the_wal() {
        let streams = streams(&[
            ("pg_stat_database.blks_read", 500),
            ("pg_stat_database.blk_read_time_us", 50_000),
            ("pg_stat_bgwriter.buffers_checkpoint", 30),
            ("pg_stat_bgwriter.buffers_clean", 5),
            ("pg_stat_bgwriter.buffers_backend", 5),
            ("pg_stat_wal.wal_bytes", 81_920),
            ("pg_stat_wal.wal_sync", 10),
            ("pg_stat_wal.wal_write", 12),
            ("pg_stat_wal.wal_sync_time_us", 0),
        ]);
        let block = 8192.0;
        assert_eq!(
            found(&streams, DemandKind::RandomReads),
            (500.0, Some(500.0 * block), Some(50_000.0))
        );
        assert_eq!(
            found(&streams, DemandKind::PageWrites),
            (40.0, Some(40.0 * block), None)
        );
        // A time of zero is one that the server does not measure. Each sync writes the last page again.
        assert_eq!(
            found(&streams, DemandKind::LogWrites),
            (10.0, Some(81_920.0 + 10.0 * 8192.0), None)
        );
    }

    #[test]
    fn postgres_18_counts_bytes_and_contexts() {
        let streams = streams(&[
            ("pg_stat_io.relation.normal.reads", 100),
            ("pg_stat_io.relation.normal.read_bytes", 100 * 8192),
            ("pg_stat_io.relation.bulkread.reads", 10),
            ("pg_stat_io.relation.bulkread.read_bytes", 10 * 131_072),
            ("pg_stat_io.relation.normal.writes", 7),
            ("pg_stat_io.relation.bulkwrite.writes", 3),
            ("pg_stat_io.wal.normal.fsyncs", 20),
            ("pg_stat_io.wal.normal.writes", 25),
            ("pg_stat_io.wal.normal.write_bytes", 25 * 8192),
            ("pg_stat_wal.wal_bytes", 40_960),
        ]);
        assert!((found(&streams, DemandKind::RandomReads).0 - 100.0).abs() < 1e-9);
        let scans = found(&streams, DemandKind::MultiblockReads);
        assert_eq!(scans.1, Some(10.0 * 131_072.0));
        assert!((found(&streams, DemandKind::DirectWrites).0 - 3.0).abs() < 1e-9);
        let log = found(&streams, DemandKind::LogWrites);
        assert_eq!((log.0, log.1), (20.0, Some(25.0 * 8192.0)));
    }

    #[test]
    fn innodb_counts_pages() {
        let mut streams = streams(&[
            ("Innodb_buffer_pool_reads", 100),
            ("Innodb_pages_written", 40),
            ("Innodb_os_log_written", 5120),
            ("Innodb_log_writes", 10),
            ("Innodb_page_size", 15_384),
        ]);
        assert_eq!(
            found(&streams, DemandKind::RandomReads).1,
            Some(100.0 * 16_384.0)
        );
        assert_eq!(
            found(&streams, DemandKind::LogWrites),
            (10.0, Some(5120.0), None)
        );
        streams.retain(|one| one.kind == Some(DemandKind::DirectWrites));
        assert!(streams.is_empty(), "what is not counted is absent");
    }

    proptest! {
        #[test]
        fn no_counters_make_it_panic(
            before in proptest::collection::btree_map("pg_stat_(io|wal|database)[.](relation|wal)[.](normal|reads)[.]?(reads|fsyncs|read_bytes)?|Innodb_[a-z_]{1,20}", any::<u64>(), 0..12),
            after in proptest::collection::btree_map("pg_stat_(io|wal|database)[.](relation|wal)[.](normal|reads)[.]?(reads|fsyncs|read_bytes)?|Innodb_[a-z_]{1,20}", any::<u64>(), 0..12),
        ) {
            let change = CounterChange { before: &before, after: &after };
            for stream in of_database(&change, 8192.0) {
                prop_assert!(stream.operations >= 0.0);
            }
        }
    }

    #[test]
    fn a_log_that_is_never_synced_is_counted_by_its_writes() {
        let log = |syncs: u64, writes: u64| {
            let counters = [
                ("Innodb_os_log_fsyncs", syncs),
                ("Innodb_log_writes", writes),
            ];
            found(&streams(&counters), DemandKind::LogWrites).0
        };
        assert!((log(0, 70) - 70.0).abs() < 1e-9);
        assert!((log(50, 70) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn postgres_16_says_that_it_counts_blocks() {
        let how = |log: &str| {
            let reads = "pg_stat_io.relation.normal.reads";
            streams(&[(reads, 10), (log, 0)])[0].rate_of
        };
        assert!(how("pg_stat_wal.wal_write").contains("counted in blocks"));
        assert!(!how("pg_stat_wal.wal_bytes").contains("counted in blocks"));
    }
}
