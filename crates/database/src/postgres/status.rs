//! The counters of a whole `PostgreSQL` server, and what its sessions wait for.

use super::client::{VERSION_MIN, connect, failed};
use super::protocol::{PostgresClient, PostgresError, PostgresRow};
use crate::access::{Access, Address};
use crate::pairs::numbers;
use rigel_model::{Dbms, Error, LogKind, usage};
use std::collections::BTreeMap;
use std::fmt::Write;

/// A connection for statistics.
pub(crate) struct PostgresStatus {
    client: PostgresClient,
    counters: String,
    block: u32,
    /// How the server writes its log; `None` if it waits for no write.
    pub(crate) log: Option<LogKind>,
    /// True if this user may not see what others' sessions wait for.
    pub(crate) hides_waits: bool,
    /// True if the server does not measure how long its I/O takes.
    pub(crate) hides_times: bool,
}

/// Active sessions by what they wait for, without our own. A sender of the log to a standby is
/// active also while it has nothing to do.
const WAITS: &str = "SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU'), \
                     count(*)::text FROM pg_stat_activity WHERE state = 'active' AND backend_type \
                     IN ('client backend', 'parallel worker') AND pid <> pg_backend_pid() GROUP BY \
                     1";

impl PostgresStatus {
    /// Connects; also returns product and version, and the size of a block.
    pub(crate) fn connect(
        access: &Access,
        address: &Address,
    ) -> Result<(Self, String, u32), Error> {
        let mut client = connect(access, address)?;
        let asked = |error: &PostgresError| failed(address, "report its statistics", error);
        let facts = rows(
            &mut client,
            "SELECT name, setting FROM pg_settings WHERE name IN ('server_version_num', \
             'server_version', 'block_size', 'track_io_timing', 'fsync', 'wal_sync_method', \
             'wal_recycle', 'wal_init_zero') UNION ALL SELECT 'sees_all', \
             pg_has_role('pg_read_all_stats', 'USAGE')::text",
        )
        .map_err(|error| asked(&error))?;
        let fact = |name: &str| {
            let row = facts.iter().find(|(known, _)| known == name);
            row.and_then(|(_, value)| value.clone()).unwrap_or_default()
        };
        let number: i32 = fact("server_version_num").parse().unwrap_or(0);
        let version = format!("PostgreSQL {}", fact("server_version"));
        if number < VERSION_MIN {
            return Err(usage!(
                "'{address}' is {version}",
                "its statistics are not sufficient: use PostgreSQL 14 or newer"
            ));
        }
        let counters = counters_statement(number);
        rows(&mut client, &counters).map_err(|error| asked(&error))?;
        let block = fact("block_size").parse().unwrap_or(8192);
        let settings = facts.iter().cloned();
        let settings = settings.filter_map(|(name, value)| Some((name, value?)));
        let status = Self {
            log: Dbms::Postgres.log_of(&settings.collect()),
            client,
            counters,
            block,
            hides_waits: fact("sees_all") == "false",
            hides_times: fact("track_io_timing") == "off",
        };
        Ok((status, version, block))
    }

    pub(crate) fn counters(&mut self) -> Result<BTreeMap<String, u64>, String> {
        let counters = rows(&mut self.client, &self.counters);
        let mut counters = counters.map(numbers).map_err(|error| error.in_words())?;
        counters.insert("block_size".into(), self.block.into());
        Ok(counters)
    }

    pub(crate) fn waits(&mut self) -> Result<BTreeMap<String, u64>, String> {
        let waits = rows(&mut self.client, WAITS);
        waits.map(numbers).map_err(|error| error.in_words())
    }
}

/// The rows of a statement with two columns of text.
fn rows(
    client: &mut PostgresClient,
    statement: &str,
) -> Result<Vec<(String, Option<String>)>, PostgresError> {
    let rows = client.query(statement, &[])?;
    let pair = |row: &PostgresRow| Ok((row.value(0)?, row.optional(1)?));
    rows.iter().map(pair).collect()
}

/// The statement for all counters: a row for each, with its name and its number as text.
fn counters_statement(version: i32) -> String {
    let mut text = String::from(
        "SELECT 'pg_stat_database.' || k, v::bigint::text FROM (SELECT sum(blks_read) AS a, \
         sum(blk_read_time) * 1000 AS b, sum(xact_commit) AS c, sum(temp_files) AS d, \
         sum(temp_bytes) AS e FROM pg_stat_database) s, LATERAL (VALUES ('blks_read', \
         a::numeric), ('blk_read_time_us', b::numeric), ('xact_commit', c::numeric), \
         ('temp_files', d::numeric), ('temp_bytes', e::numeric)) n (k, v)",
    );
    // Moments in microseconds that tell a restart and a reset, when no counter has fallen.
    text.push_str(
        " UNION ALL SELECT 'pg_postmaster_start_time', (extract(epoch FROM \
         pg_postmaster_start_time()) * 1000000)::bigint::text",
    );
    let counted = if version >= 160_000 {
        "pg_stat_io"
    } else {
        "pg_stat_bgwriter"
    };
    for view in ["pg_stat_database", "pg_stat_wal", counted] {
        let _ = write!(
            text,
            " UNION ALL SELECT '{view}.stats_reset', coalesce(max(extract(epoch FROM \
             stats_reset) * 1000000), 0)::bigint::text FROM {view}"
        );
    }
    if version >= 160_000 {
        let bytes = if version >= 180_000 {
            ("read_bytes", "write_bytes")
        } else {
            ("reads * op_bytes", "writes * op_bytes")
        };
        let _ = write!(
            text,
            " UNION ALL SELECT 'pg_stat_io.' || object || '.' || context || '.' || k, \
             v::bigint::text FROM (SELECT object, context, sum(reads) AS a, sum({}) AS b, \
             sum(read_time) * 1000 AS c, sum(writes) AS d, sum({}) AS e, sum(write_time) * 1000 \
             AS f, sum(fsyncs) AS g, sum(fsync_time) * 1000 AS h FROM pg_stat_io GROUP BY 1, 2) s, \
             LATERAL (VALUES ('reads', a::numeric), ('read_bytes', b::numeric), \
             ('read_time_us', c::numeric), ('writes', d::numeric), ('write_bytes', e::numeric), \
             ('write_time_us', f::numeric), ('fsyncs', g::numeric), ('fsync_time_us', \
             h::numeric)) n (k, v) WHERE v IS NOT NULL",
            bytes.0, bytes.1
        );
    } else {
        text.push_str(
            " UNION ALL SELECT 'pg_stat_bgwriter.' || k, v::text FROM pg_stat_bgwriter, LATERAL \
             (VALUES ('buffers_checkpoint', buffers_checkpoint), ('buffers_clean', \
             buffers_clean), ('buffers_backend', buffers_backend)) n (k, v)",
        );
    }
    let wal = if version >= 180_000 {
        "('wal_bytes', wal_bytes::numeric)"
    } else {
        "('wal_bytes', wal_bytes::numeric), ('wal_write', wal_write::numeric), ('wal_sync', \
         wal_sync::numeric), ('wal_write_time_us', (wal_write_time * 1000)::numeric), \
         ('wal_sync_time_us', (wal_sync_time * 1000)::numeric)"
    };
    let _ = write!(
        text,
        " UNION ALL SELECT 'pg_stat_wal.' || k, v::bigint::text FROM pg_stat_wal, LATERAL (VALUES \
         {wal}) n (k, v)"
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_is_asked_for_what_it_has() {
        let [old, middle, new] = [150_000, 160_000, 180_000].map(counters_statement);
        assert!(old.contains("pg_stat_bgwriter") && !old.contains("pg_stat_io"));
        assert!(middle.contains("reads * op_bytes") && middle.contains("wal_sync::numeric"));
        assert!(new.contains("sum(read_bytes)") && !new.contains("wal_sync"));
        assert!(old.contains("'pg_stat_bgwriter.stats_reset'"));
        assert!(new.contains("'pg_stat_io.stats_reset'"));
    }
}
