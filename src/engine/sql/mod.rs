//! Databases as targets: tables with one row per block, which SQL creates, finds, reads, updates and removes.
//!
//! Input: an [`Access`] and a request. Output: tables, an [`Engine`] on them, and the server's own counters. Only
//! objects that were made here are dropped or altered: a manifest in the database lists them.

pub mod access;
mod chunks;
mod mysql;
mod mysql_load;
mod mysql_watch;
mod postgres;
mod postgres_load;
mod tls;

pub use access::{Access, Address, Secret};

use self::mysql::Mysql;
use self::postgres::Postgres;
use super::Engine;
use crate::model::{Dbms, Error, Finding, FindingName, Nanos, ServerFacts, ServerSample, SqlWork, Tables};
use crate::workload::rng::Rng;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Schema (or table prefix) of all our objects in a database.
pub const SCHEMA: &str = "rigel";

const PASSWORD_CURE: &str =
    "set PGPASSWORD or MYSQL_PWD, use ~/.pgpass or --password-file, or run in a terminal to be asked";

/// Problem and hint if a password would be sent to a server without TLS.
fn no_tls() -> (String, String) {
    (
        "offers no TLS, and the password would be readable on the network".into(),
        "enable TLS on the server; or add sslmode=disable to the URL if the network is private".into(),
    )
}

/// Name of table `number`, from 0, for reads by key.
fn blocks_table(number: usize) -> String {
    format!("blocks_{}", number + 1)
}

/// Name of table `number`, from 0, for scans.
fn scan_table(number: usize) -> String {
    format!("scan_{}", number + 1)
}

/// Random characters from a set of 64: letters, digits, a dot and an underscore.
fn random_text(rng: &mut Rng, characters: usize) -> impl Iterator<Item = u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";
    let mut bits = 0;
    (0..characters).map(move |number| {
        // 64 bits contain ten characters of six bits.
        bits = if number % 10 == 0 { rng.bits() } else { bits >> 6 };
        ALPHABET[(bits & 63) as usize]
    })
}

/// Observes a server during a measurement, outside its sessions: its counters, and the waits of the sessions.
pub trait Witness: Sync {
    /// Begins a point: discards the waits seen before.
    fn begin(&self);

    /// Samples the current waits of the sessions. Takes about a millisecond.
    fn look(&self);

    /// The server's counters; `None` if it does not answer.
    fn counters(&self) -> Option<ServerSample>;

    /// Waits until the counters include all work of sessions that are now closed, a few seconds at most.
    fn settle(&self);

    /// The first process of each server, if all servers run on this machine.
    fn processes(&self) -> Vec<u32>;
}

/// Request to load tables.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// The tables to make.
    pub tables: Tables,
    /// Number of connections that load in parallel.
    pub degree: u32,
    /// The tablespace to create them in; `None` = the database's default.
    pub tablespace: Option<String>,
}

/// Progress of making tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadEvent {
    /// Rows were loaded.
    Rows {
        /// Rows loaded so far.
        done: u64,
        /// Rows in total.
        of: u64,
    },
    /// The indexes are being created.
    Indexing,
    /// Rows, blocks and order are being verified.
    Verifying,
}

/// Receives the progress of making tables, from any thread.
pub type LoadListen<'a> = dyn Fn(LoadEvent) + Sync + 'a;

/// Result of a load.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Rows that an earlier load had loaded.
    pub rows_before: u64,
    /// Total rows.
    pub rows: u64,
    /// Blocks that contain them.
    pub blocks: u64,
    /// Correlation of key and position; near 0 if neighbouring keys are far apart.
    pub correlation: f64,
}

/// The tables that Rigel has loaded into a database; `None` if there are none or they are incomplete.
///
/// # Errors
/// The server cannot be reached.
pub fn find(access: &Access) -> Result<Option<Tables>, Error> {
    let address = &access.servers[0];
    match access.dbms() {
        Dbms::Postgres => postgres_load::find(&mut postgres::connect(access, address)?, address),
        Dbms::Mysql => mysql_load::find(access, address),
    }
}

/// The local files of the tables for reads by key, in block order. The server first writes all data to them.
///
/// # Errors
/// The server cannot be reached, does not run on this machine, or its files cannot be found.
pub fn files(access: &Access, tables: Tables) -> Result<Vec<PathBuf>, Error> {
    match access.dbms() {
        Dbms::Postgres => postgres::files(access, tables),
        Dbms::Mysql => Err(Error::usage("the files of a MySQL table cannot be located", "give a PostgreSQL server")),
    }
}

/// True if a server requires a password and none is known.
///
/// # Errors
/// A server cannot be reached for another reason.
pub fn wants_password(access: &Access) -> Result<bool, Error> {
    let tried = match access.dbms() {
        Dbms::Postgres => postgres::connect(access, &access.servers[0]).map(drop),
        // The database may not exist yet.
        Dbms::Mysql => mysql::connect_outside(access, &access.servers[0]).map(drop),
    };
    match tried {
        Err(Error::Failed { hint, .. }) if hint == PASSWORD_CURE => Ok(true),
        other => other.map(|()| false),
    }
}

/// Makes tables on every server of `access`, or resumes an interrupted load. Does nothing if the tables are complete.
///
/// # Errors
/// A server cannot be reached or refuses, has different tables of ours or somebody else's objects under our names; or
/// `stop` was set. Rows loaded so far stay, and the next call resumes.
pub fn load(access: &Access, request: &LoadRequest, stop: &AtomicBool, listen: &LoadListen) -> Result<Loaded, Error> {
    let load_one = match access.dbms() {
        Dbms::Postgres => postgres_load::load,
        Dbms::Mysql => mysql_load::load,
    };
    let mut loaded = None;
    for address in &access.servers {
        loaded = Some(load_one(access, address, request, stop, listen)?);
    }
    Ok(loaded.expect("there is at least one server"))
}

/// Removes everything that [`load`] made, and nothing else. Returns the names of removed objects.
///
/// # Errors
/// A server cannot be reached or refuses.
pub fn remove(access: &Access) -> Result<Vec<String>, Error> {
    match access.dbms() {
        Dbms::Postgres => postgres_load::remove(access),
        Dbms::Mysql => mysql_load::remove(access),
    }
}

/// An engine, facts about its server, and warnings about it.
pub type Opened = (Box<dyn Engine>, ServerFacts, Vec<Finding>);

/// Opens the engine for `work`. Also returns facts about the server, and warnings about it.
///
/// # Errors
/// A server cannot be reached, or does not have the tables for `work`.
pub fn open(access: Access, work: SqlWork, statement_timeout: Option<Nanos>) -> Result<Opened, Error> {
    let in_clear = access.clear_text_warning();
    let (engine, facts, mut findings): Opened = match access.dbms() {
        Dbms::Postgres => {
            let (engine, facts, findings) = Postgres::open(access, work, statement_timeout)?;
            (Box::new(engine), facts, findings)
        }
        Dbms::Mysql => {
            let (engine, facts, findings) = Mysql::open(access, work, statement_timeout)?;
            (Box::new(engine), facts, findings)
        }
    };
    findings.extend(in_clear);
    Ok((engine, facts, findings))
}

/// The server for session `number`. Sessions take the servers in turn, and also the tables in turn. So the turn shifts
/// by one server after each full cycle, and each table is visited on each server.
fn server_of(number: usize, tables: Tables, servers: usize) -> usize {
    let tables = tables.schemas.max(1) as usize;
    let together = (1..=servers).map(|times| tables * times).find(|all| all.is_multiple_of(servers));
    (number + number / together.unwrap_or(1)) % servers
}

/// Refuses tables other than the wanted ones.
fn refuse_other_tables(address: &Address, found: Option<Tables>, wanted: Tables) -> Result<(), Error> {
    match found {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(Error::usage(
            format!("'{address}' has {}, but {} are expected", in_words(found), in_words(wanted)),
            "give the existing size, or create the tables again: rigel sql drop, then rigel sql load",
        )),
        None => Err(Error::usage(
            format!("'{address}' has no tables of rigel sql load, or not all of them"),
            format!("create them: rigel sql load {address}"),
        )),
    }
}

fn in_words(tables: Tables) -> String {
    format!("{} tables of {} rows and {} rows to scan", tables.schemas, tables.scale, tables.scan_blocks)
}

/// The processes of all servers, without duplicates. Empty if any server is not on this machine: counters of some
/// servers cannot be compared with the total.
fn all_or_none(processes: impl Iterator<Item = Option<u32>>) -> Vec<u32> {
    let mut processes = processes.collect::<Option<Vec<u32>>>().unwrap_or_default();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// Warns if the tables (nearly) fit into the server's own cache, which it calls `name`.
fn cache_warning(facts: &ServerFacts, name: &str) -> Option<Finding> {
    let (tables, cache) = (facts.tables?.bytes(), facts.buffer_cache);
    (tables.0 < cache.0 * 2).then(|| {
        Finding::warning(
            FindingName::BufferCache,
            format!("the tables have {tables} and the {name} {cache}: it serves most of the reads"),
            "load larger tables (--scale), unless you want to measure logical reads",
        )
    })
}

/// Sum of the counters of all servers; `None` if one of them does not answer.
fn sum_of_all(mut samples: impl Iterator<Item = Option<ServerSample>>) -> Option<ServerSample> {
    let first = samples.next()??;
    samples.try_fold(first, |sum, next| Some(sum_of(sum, &next?)))
}

/// Sum of the counters of two servers; a counter that one of them does not report is `None`.
fn sum_of(mut sum: ServerSample, other: &ServerSample) -> ServerSample {
    let add = |a: Option<u64>, b: Option<u64>| Some(a? + b?);
    sum.visited = add(sum.visited, other.visited);
    sum.logical = add(sum.logical, other.logical);
    sum.physical = add(sum.physical, other.physical);
    sum.read_time = sum.read_time.zip(other.read_time).map(|(a, b)| a.plus(b));
    sum.written = add(sum.written, other.written);
    sum.log_bytes = add(sum.log_bytes, other.log_bytes);
    sum.log_syncs = add(sum.log_syncs, other.log_syncs);
    sum.commits = add(sum.commits, other.commits);
    for (event, count) in &other.waits {
        *sum.waits.entry(event.clone()).or_default() += count;
    }
    sum.looks = sum.looks.max(other.looks);
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_table_is_visited_on_every_server_by_equally_many_sessions() {
        for (schemas, servers) in [(1, 1), (1, 2), (2, 2), (4, 2), (2, 4), (3, 2), (5, 3)] {
            let tables = Tables { schemas, scale: 1000, scan_blocks: 1, block: 8192 };
            let pair = |number: usize| (number % schemas as usize, server_of(number, tables, servers));
            let all = schemas as usize * servers;
            let pairs: BTreeSet<_> = (0..all).map(pair).collect();
            assert_eq!(pairs.len(), all, "{schemas} tables, {servers} servers");
            let on_first = (0..servers * 6).filter(|number| pair(*number).1 == 0).count();
            assert!(on_first.abs_diff(6) <= 1, "{schemas} tables, {servers} servers: {on_first}");
        }
    }
}
