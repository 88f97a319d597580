//! `PostgreSQL` as an engine: a session is a connection, an operation a prepared statement.
//!
//! Input: the work and its servers. Output: sessions, facts about the servers, and their counters.
//! The plan is fixed to an index scan that reads one block
//! after another. A bitmap scan would sort and prefetch, which is a different workload.

use super::client::{VERSION_MIN, connect, failed, settings};
use super::group::PostgresGroup;
use super::pipeline::PostgresPipeline;
use super::protocol::{PostgresClient, PostgresError};
use super::session::{PostgresSession, SEGMENT_BLOCKS, list_statement, read_statement, segment_of};
use super::watch::PostgresMonitor;
use crate::access::{Access, Address};
use crate::tables::{DistinctServers, SCHEMA, blocks_table};
use rigel_device::clock::Clock;
use rigel_device::engine::blocking::Blocking;
use rigel_device::engine::{Engine, ServerMonitor, Session};
use rigel_model::{
    Bytes, Dbms, Error, Finding, FindingName, Kind, Nanos, ReadWay, ServerFacts, ServerSample,
    SqlWork, Tables, failed, usage,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Maximum number of sessions in one thread: each waits for the turn of the others.
const SESSIONS_MAX: usize = 64;

/// `PostgreSQL` on one or several servers.
pub(crate) struct Postgres {
    access: Access,
    work: SqlWork,
    clock: Clock,
    /// Number of connections opened so far: servers get them in turn.
    opened: AtomicUsize,
    monitors: Vec<PostgresMonitor>,
    about: String,
    /// Timeout after which the server cancels a statement.
    statement_timeout: Option<Nanos>,
    /// First file of each table of the first server, for [`ReadWay::File`].
    files: Vec<String>,
}

impl Postgres {
    /// Opens the engine for `work` on the servers of `access`. Also returns facts and warnings
    /// about them.
    ///
    /// # Errors
    /// One of them cannot be reached, is too old, or does not have the tables for `work`.
    pub(crate) fn open(
        access: Access,
        work: SqlWork,
        statement_timeout: Option<Nanos>,
    ) -> Result<(Self, ServerFacts, Vec<Finding>), Error> {
        let mut monitors = Vec::new();
        let (mut facts, mut findings) = (ServerFacts::default(), Vec::new());
        let mut distinct = DistinctServers::default();
        for (number, address) in access.servers.iter().enumerate() {
            let mut client = connect(&access, address)?;
            distinct.add(instance(&mut client), address)?;
            let loaded = super::load::find(&mut client, address)?;
            crate::tables::refuse_other_tables(address, loaded, work.tables)?;
            client
                .batch(&settings(work.way))
                .map_err(|error| failed(address, "apply its settings", &error))?;
            if number == 0 {
                facts = describe(&mut client, address, &work)?;
                findings = warnings(&facts);
                findings.extend(pipelined(&work));
            }
            monitors.push(PostgresMonitor::new(client, address, &access.application)?);
        }
        facts.local = monitors.iter().all(|monitor| monitor.postmaster.is_some());
        let files = if work.way == ReadWay::File {
            table_files(&monitors[0], &access.servers[0], work.tables)?
        } else {
            Vec::new()
        };
        let about = format!(
            "postgres: {}, {} rows per statement by {}, prepared",
            facts.version,
            work.blocks(Kind::Read),
            scan_of(work.way).0
        );
        let opened = AtomicUsize::new(0);
        Ok((
            Self {
                access,
                work,
                clock: Clock::real(),
                opened,
                monitors,
                about,
                statement_timeout,
                files,
            },
            facts,
            findings,
        ))
    }
}

impl Engine for Postgres {
    fn name(&self) -> &'static str {
        Dbms::Postgres.name()
    }

    fn about(&self) -> String {
        self.about.clone()
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        if self.work.pipeline > 1 {
            self.work.pipeline as usize
        } else {
            SESSIONS_MAX
        }
    }

    fn usable(&self) -> u64 {
        self.work.tables.bytes().0
    }

    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        let clock = self.clock.clone();
        if self.work.pipeline > 1 {
            let session = self.session()?;
            return Ok(Box::new(PostgresPipeline::new(
                session,
                clock,
                lengths.len(),
            )));
        }
        if lengths.len() > 1 {
            let sessions = lengths
                .iter()
                .map(|_| self.session())
                .collect::<Result<_, _>>()?;
            return Ok(Box::new(PostgresGroup::new(sessions, clock)));
        }
        let mut session = self.session()?;
        Ok(Box::new(Blocking::new(clock, move |op| {
            session.execute(op)
        })))
    }

    fn server_monitor(&self) -> Option<&dyn ServerMonitor> {
        Some(self)
    }
}

impl Postgres {
    /// One more session, on the server whose turn it is.
    fn session(&self) -> Result<PostgresSession<'_>, Error> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let turn = crate::tables::server_of(number, self.work.tables, self.access.servers.len());
        let address = &self.access.servers[turn];
        let mut client = connect(&self.access, address)?;
        client
            .batch(&settings(self.work.way))
            .map_err(|error| failed(address, "apply its settings", &error))?;
        if let Some(timeout) = self.statement_timeout {
            let text = format!("SET statement_timeout = {}", timeout.0.div_ceil(1_000_000));
            client
                .batch(&text)
                .map_err(|error| failed(address, "apply its settings", &error))?;
        }
        // Requires a superuser or a grant; without it the server's read times stay unknown.
        let _ = client.batch("SET track_io_timing = on");
        Ok(PostgresSession::new(client, self.work, &self.files))
    }
}

/// Facts about the server, including its plan for the read.
fn describe(
    client: &mut PostgresClient,
    address: &Address,
    work: &SqlWork,
) -> Result<ServerFacts, Error> {
    let asked = |error: &PostgresError| failed(address, "report its settings", error);
    let number: i32 = client
        .query_one("SELECT current_setting('server_version_num')::int", &[])
        .and_then(|row| row.value(0))
        .map_err(|error| asked(&error))?;
    if number < VERSION_MIN {
        return Err(usage!(
            "'{address}' is PostgreSQL {major}",
            "its statistics are not sufficient: use PostgreSQL 14 or newer",
            major = number / 10_000
        ));
    }
    let rows = client
        .query(
            "SELECT name, current_setting(name) FROM pg_settings WHERE name IN ('server_version', \
             'shared_buffers', 'block_size', 'debug_io_direct', 'io_method', 'io_workers', \
             'fsync', 'synchronous_commit', 'full_page_writes', 'wal_level', 'max_wal_size', \
             'checkpoint_timeout', 'effective_io_concurrency', 'huge_pages', 'track_io_timing', \
             'autovacuum', 'data_checksums', 'max_connections', 'data_directory', 'wal_recycle', \
             'wal_init_zero', 'wal_sync_method')",
            &[],
        )
        .map_err(|error| asked(&error))?;
    let settings: BTreeMap<String, String> = rows
        .iter()
        .map(|row| (row.text(0).into(), row.text(1).into()))
        .collect();
    let cache = client
        .query_one(
            "SELECT pg_size_bytes(current_setting('shared_buffers'))",
            &[],
        )
        .and_then(|row| row.value(0))
        .map_err(|error| asked(&error))?;
    let plan = plan(client, address, work)?;
    Ok(ServerFacts {
        version: format!(
            "PostgreSQL {}",
            settings.get("server_version").map_or("?", String::as_str)
        ),
        tables: Some(work.tables),
        direct: settings
            .get("debug_io_direct")
            .is_some_and(|setting| setting.contains("data")),
        settings,
        plan,
        local: false,
        buffer_cache: Bytes(cache),
    })
}

/// What identifies a database of a running server, whose counters are its own. A replica has the
/// identifier of its primary, and was started at another moment.
fn instance(client: &mut PostgresClient) -> Option<String> {
    let asked = "SELECT system_identifier || ' ' || pg_postmaster_start_time() || ' ' || \
                 current_database() FROM pg_control_system()";
    let row = client.query_one(asked, &[]).ok()?;
    Some(row.text(0).into())
}

/// The server's plan for the read, which must be the one that is to be measured.
fn plan(
    client: &mut PostgresClient,
    address: &Address,
    work: &SqlWork,
) -> Result<Vec<String>, Error> {
    let keys = 64..64 + work.blocks(Kind::Read);
    let statement = if work.way == ReadWay::Prefetch {
        // The plan repeats the list: a few keys are enough to see it.
        let keys: Vec<String> = keys.take(4).map(|key| key.to_string()).collect();
        list_statement(0).replace("$1", &format!("'{{{}}}'::bigint[]", keys.join(",")))
    } else {
        read_statement(0)
            .replace("$1", &keys.start.to_string())
            .replace("$2", &keys.end.to_string())
    };
    let plan: Vec<String> = client
        .query(&format!("EXPLAIN (COSTS OFF) {statement}"), &[])
        .map_err(|error| failed(address, "explain the read", &error))?
        .iter()
        .map(|row| row.text(0).into())
        .collect();
    let (words, wanted) = scan_of(work.way);
    if plan.iter().any(|line| line.contains(wanted)) {
        return Ok(plan);
    }
    Err(failed!(
        "'{address}' does not read by {words}: {plan}",
        "check that the tables have their index, or load them again",
        plan = plan.join(" | ")
    ))
}

/// How the server finds rows that are read in this way: in words, and in its plan.
fn scan_of(way: ReadWay) -> (&'static str, &'static str) {
    match way {
        ReadWay::Row | ReadWay::File => ("index scan", "Index Scan using"),
        ReadWay::Prefetch => ("bitmap scan, read ahead", "Bitmap Heap Scan"),
    }
}

/// Says what the figures of pipelined sessions are.
fn pipelined(work: &SqlWork) -> Option<Finding> {
    (work.pipeline > 1).then(|| {
        Finding::note(
            FindingName::Pipelined,
            format!(
                "each connection has up to {} operations in flight (--pipeline): an application \
                 gets these rates only if it pipelines too",
                work.pipeline
            ),
        )
    })
}

/// Warnings about settings that make a run doubtful.
fn warnings(facts: &ServerFacts) -> Vec<Finding> {
    let mut findings = Vec::from_iter(crate::counters::cache_warning(facts, "buffer cache"));
    let wanted = [
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("synchronous_commit", "on"),
    ];
    findings.extend(crate::counters::less_durable(facts, &wanted));
    findings
}

/// The files of the tables for reads by key, in block order, after a checkpoint.
pub(crate) fn files(access: &Access, tables: Tables) -> Result<Vec<PathBuf>, Error> {
    let address = &access.servers[0];
    let refused = |error: &PostgresError| failed(address, "report the files of its tables", error);
    let mut client = connect(access, address)?;
    client
        .batch("CHECKPOINT")
        .map_err(|error| failed(address, "write its cache", &error))?;
    let mut files = Vec::new();
    for table in 0..tables.schemas as usize {
        let name = format!("{SCHEMA}.{}", blocks_table(table));
        let row = client
            .query_one(
                "SELECT current_setting('data_directory') || '/' || \
                 pg_relation_filepath($1::text::regclass)",
                &[&name],
            )
            .map_err(|error| refused(&error))?;
        let first = row.text(0);
        files.extend(
            (0..tables.scale.div_ceil(SEGMENT_BLOCKS))
                .map(|segment| segment_of(first, segment).into()),
        );
    }
    match files.iter().find(|file: &&PathBuf| !file.is_file()) {
        Some(file) => Err(failed!(
            "'{address}' has its table in '{file}', which is not visible here",
            "give a server on this machine whose files this user may read",
            file = file.display()
        )),
        None => Ok(files),
    }
}

/// The files of the tables for reads by key, relative to the data directory.
fn table_files(
    monitor: &PostgresMonitor,
    address: &Address,
    tables: Tables,
) -> Result<Vec<String>, Error> {
    let mut probe = monitor.probe();
    (0..tables.schemas as usize)
        .map(|table| {
            let name = format!("{SCHEMA}.{}", blocks_table(table));
            let row = probe
                .client
                .query_one("SELECT pg_relation_filepath($1::text::regclass)", &[&name]);
            row.map(|row| row.text(0).into())
                .map_err(|error| failed(address, "report the files of its tables", &error))
        })
        .collect()
}

impl ServerMonitor for Postgres {
    fn begin(&self) {
        for monitor in &self.monitors {
            let mut probe = monitor.probe();
            probe.seen.clear();
            probe.looks = 0;
        }
    }

    fn look(&self) {
        // Ignore errors: the sessions detect a server that does not answer.
        self.monitors
            .iter()
            .for_each(|monitor| drop(monitor.probe().look()));
    }

    fn counters(&self) -> Option<ServerSample> {
        crate::counters::sum_of_all(
            self.monitors
                .iter()
                .map(|monitor| monitor.probe().counters().ok()),
        )
    }

    fn flush(&self) {
        self.monitors
            .iter()
            .for_each(|monitor| drop(monitor.probe().flush()));
    }

    fn processes(&self) -> Vec<u32> {
        crate::counters::all_or_none(self.monitors.iter().map(|monitor| monitor.postmaster))
    }
}
