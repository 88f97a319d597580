//! Counters of `PostgreSQL`, and the waits of its sessions, through a separate connection to one
//! server.
//!
//! Input: the application name of our sessions. Output: the server's counters, of our tables where
//! it counts per table.

use super::client::failed;
use super::protocol::{PostgresClient, PostgresError, PostgresStatement};
use crate::access::Address;
use crate::tables::SCHEMA;
use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos, ServerSample};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Observes the sessions through a separate connection to one server.
pub(super) struct PostgresMonitor {
    probe: Mutex<PostgresProbe>,
    /// The server's first process, if it runs on this machine.
    pub(super) postmaster: Option<u32>,
}

pub(super) struct PostgresProbe {
    pub(super) client: PostgresClient,
    counters: PostgresStatement,
    waits: PostgresStatement,
    application: String,
    pub(super) seen: BTreeMap<String, u64>,
    pub(super) looks: u64,
    /// Number of its own statements, which the server counts as commits too.
    asked: u64,
}

impl PostgresMonitor {
    pub(super) fn new(
        mut client: PostgresClient,
        address: &Address,
        application: &str,
    ) -> Result<Self, Error> {
        let asked = |error: &PostgresError| failed(address, "report its statistics", error);
        let row = client
            .query_one(
                "SELECT current_setting('server_version_num')::int, pg_backend_pid()",
                &[],
            )
            .map_err(|error| asked(&error))?;
        let version = row.value(0).map_err(|error| asked(&error))?;
        let pid = row.value(1).map_err(|error| asked(&error))?;
        client
            .query(
                "SELECT set_config('application_name', $1, false)",
                &[&format!("{application}-monitor")],
            )
            .map_err(|error| asked(&error))?;
        let counters = client
            .prepare(&counters_statement(version), &[])
            .map_err(|error| asked(&error))?;
        let waits = client
            .prepare(
                "SELECT coalesce(wait_event_type || ':' || wait_event, 'CPU'), count(*) FROM \
                 pg_stat_activity WHERE application_name = $1 AND state = 'active' GROUP BY 1",
                &[],
            )
            .map_err(|error| asked(&error))?;
        let local = address.is_socket()
            || ["localhost", "127.0.0.1", "::1"].contains(&address.host.as_str());
        let postmaster = if local { parent_of(pid) } else { None };
        let probe = PostgresProbe {
            client,
            counters,
            waits,
            application: application.into(),
            seen: BTreeMap::new(),
            looks: 0,
            asked: 0,
        };
        Ok(Self {
            probe: Mutex::new(probe),
            postmaster,
        })
    }

    pub(super) fn probe(&self) -> std::sync::MutexGuard<'_, PostgresProbe> {
        self.probe
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// The parent of a server process, if that process runs on this machine.
fn parent_of(pid: i32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (name, rest) = stat.split_once('(')?.1.rsplit_once(") ")?;
    if !name.starts_with("postgres") {
        return None;
    }
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// The statement for the counters: of our tables where the server counts per table, otherwise of
/// the whole server.
fn counters_statement(version: i32) -> String {
    let written = if version >= 180_000 {
        "(SELECT (sum(write_bytes) / 8192)::bigint FROM pg_stat_io WHERE object = 'relation')"
    } else if version >= 160_000 {
        "(SELECT sum(writes)::bigint FROM pg_stat_io WHERE object = 'relation')"
    } else {
        "(SELECT (buffers_checkpoint + buffers_clean + buffers_backend)::bigint FROM \
         pg_stat_bgwriter)"
    };
    let syncs = if version >= 180_000 {
        "(SELECT sum(fsyncs)::bigint FROM pg_stat_io WHERE object = 'wal')"
    } else {
        "(SELECT wal_sync FROM pg_stat_wal)"
    };
    format!(
        "SELECT t.heap, t.heap + t.index, t.heap_read + t.index_read, (d.blk_read_time * \
         1e6)::bigint, {written}, (SELECT wal_bytes::bigint FROM pg_stat_wal), {syncs}, \
         d.xact_commit FROM (SELECT coalesce(sum(heap_blks_read + heap_blks_hit), 0)::bigint AS \
         heap, coalesce(sum(idx_blks_read + idx_blks_hit), 0)::bigint AS index, \
         coalesce(sum(heap_blks_read), 0)::bigint AS heap_read, coalesce(sum(idx_blks_read), \
         0)::bigint AS index_read FROM pg_statio_user_tables WHERE schemaname = '{SCHEMA}') t, \
         pg_stat_database d WHERE d.datname = current_database()"
    )
}

impl PostgresProbe {
    pub(super) fn look(&mut self) -> Result<(), PostgresError> {
        self.asked += 1;
        let values = [self.application.as_str()];
        for row in self.client.query_prepared(&self.waits, &values)? {
            *self.seen.entry(row.text(0).into()).or_default() += row.value::<u64>(1)?;
        }
        self.looks += 1;
        Ok(())
    }

    pub(super) fn counters(&mut self) -> Result<ServerSample, PostgresError> {
        self.asked += 1;
        let rows = self.client.query_prepared(&self.counters, &[])?;
        // A value that is absent or no count is not known.
        let number = |at: usize| rows.first()?.optional(at).ok().flatten();
        Ok(ServerSample {
            visited: number(0),
            logical: number(1),
            physical: number(2),
            read_time: number(3).map(Nanos),
            written: number(4),
            log_bytes: number(5),
            log_syncs: number(6),
            commits: number(7).map(|commits| commits.saturating_sub(self.asked)),
            waits: self.seen.clone(),
            looks: self.looks,
            ..ServerSample::default()
        })
    }

    /// Waits until the sessions are gone: the last thing they do is publish their counters.
    pub(super) fn flush(&mut self) -> Result<(), PostgresError> {
        let clock = Clock::real();
        for _ in 0..100 {
            let row = self.client.query_one(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1",
                &[&self.application],
            )?;
            if row.value::<u64>(0)? == 0 {
                break;
            }
            clock.wait_until(clock.now().plus(Nanos::from_millis(50)));
        }
        Ok(())
    }
}
