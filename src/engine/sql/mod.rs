//! Databases as targets: tables of one row a block, made, found, worked on and removed by their own SQL.
//!
//! Goes in: an [`Access`] and what is to be done. Comes out: tables, an [`Engine`] on them, and what the
//! server itself counted. Nothing is dropped or altered that was not made here: a manifest in the database says what
//! was.

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
use crate::model::{Dbms, Error, Finding, Nanos, ServerFacts, ServerSample, SqlWork, Tables};
use crate::workload::rng::Rng;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Where all that is ours stands in a database.
pub const SCHEMA: &str = "rigel";

const PASSWORD_CURE: &str = "put it in PGPASSWORD or MYSQL_PWD, in ~/.pgpass, in a file named by --password-file, or run in a terminal to be asked";

/// What is wrong and what to do where a password was to be sent, and the server has no TLS.
fn no_tls() -> (String, String) {
    (
        "offers no TLS, and the password would be sent for all on the way to read".into(),
        "switch on TLS on the server; or add sslmode=disable to the URL if nobody else is on that network".into(),
    )
}

/// The name of table `number`, from 0, that is read by key.
fn blocks_table(number: usize) -> String {
    format!("blocks_{}", number + 1)
}

/// The name of table `number`, from 0, that is scanned.
fn scan_table(number: usize) -> String {
    format!("scan_{}", number + 1)
}

/// So many random characters, of 64: letters, digits, a dot and an underscore.
fn random_text(rng: &mut Rng, characters: usize) -> impl Iterator<Item = u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._";
    let mut bits = 0;
    (0..characters).map(move |number| {
        // Ten characters of six bits are in 64.
        bits = if number % 10 == 0 { rng.bits() } else { bits >> 6 };
        ALPHABET[(bits & 63) as usize]
    })
}

/// What looks on while a server is measured, from outside its sessions: what it counted, and what they waited for.
pub trait Witness: Sync {
    /// A point begins: what was seen waiting before does not count.
    fn begin(&self);

    /// Looks once at what the sessions wait for. Takes a millisecond or so.
    fn look(&self);

    /// The server's counters; none if it does not answer.
    fn counters(&self) -> Option<ServerSample>;

    /// Waits, a few seconds at most, until the counters hold all that sessions now closed have done.
    fn settle(&self);

    /// The first process of each server that runs on this machine.
    fn processes(&self) -> Vec<u32>;
}

/// What tables are to be made, and how.
#[derive(Debug, Clone)]
pub struct LoadRequest {
    /// The tables.
    pub tables: Tables,
    /// Connections that load at the same time.
    pub degree: u32,
    /// The tablespace in which they are made; none = the database's.
    pub tablespace: Option<String>,
}

/// What happens while tables are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadEvent {
    /// Rows are there, of so many in all.
    Rows {
        /// So far.
        done: u64,
        /// In all.
        of: u64,
    },
    /// The indexes are made.
    Indexing,
    /// Rows, blocks and order are checked.
    Verifying,
}

/// Hears how far making the tables is, from whichever thread.
pub type LoadListen<'a> = dyn Fn(LoadEvent) + Sync + 'a;

/// What became of a request for tables.
#[derive(Debug, Clone, PartialEq)]
pub struct Loaded {
    /// Rows that were there before, from an earlier load.
    pub rows_before: u64,
    /// Rows in all.
    pub rows: u64,
    /// Blocks that hold them.
    pub blocks: u64,
    /// Correlation of key and place; near 0 where neighbouring keys lie far apart.
    pub correlation: f64,
}

/// The tables that a database has from us; none if there are none, or they are not wholly loaded.
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

/// The files of the tables that are read by key, on this machine, in the order of their blocks. All that was written to
/// the tables is in them then.
///
/// # Errors
/// The server cannot be reached, does not run on this machine, or its files cannot be told.
pub fn files(access: &Access, tables: Tables) -> Result<Vec<PathBuf>, Error> {
    match access.dbms() {
        Dbms::Postgres => postgres::files(access, tables),
        Dbms::Mysql => Err(Error::usage(
            "MySQL's blocks are in no files of a table alone that we know",
            "name a PostgreSQL server",
        )),
    }
}

/// True if a server wants a password, and none is known.
///
/// # Errors
/// A server cannot be reached for another reason.
pub fn wants_password(access: &Access) -> Result<bool, Error> {
    let tried = match access.dbms() {
        Dbms::Postgres => postgres::connect(access, &access.servers[0]).map(drop),
        // The database may still have to be made.
        Dbms::Mysql => mysql::connect_outside(access, &access.servers[0]).map(drop),
    };
    match tried {
        Err(Error::Failed { hint, .. }) if hint == PASSWORD_CURE => Ok(true),
        other => other.map(|()| false),
    }
}

/// Makes tables on every server of `access`, or goes on with a load that was cut short. A second load of what is there
/// does nothing.
///
/// # Errors
/// A server cannot be reached or refuses, has other tables of ours or somebody else's things under our name; or `stop`
/// was set. What was loaded so far stays and is gone on with next time.
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

/// Removes what [`load`] made, and nothing else. Answers what was removed, by name.
///
/// # Errors
/// A server cannot be reached or refuses.
pub fn remove(access: &Access) -> Result<Vec<String>, Error> {
    match access.dbms() {
        Dbms::Postgres => postgres_load::remove(access),
        Dbms::Mysql => mysql_load::remove(access),
    }
}

/// An engine, what its server is, and what is doubtful about it.
pub type Opened = (Box<dyn Engine>, ServerFacts, Vec<Finding>);

/// The engine for `work`, what the server is, and what is doubtful about it.
///
/// # Errors
/// A server cannot be reached, or does not have the tables that `work` is for.
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

/// Which of so many servers session `number` goes to. They take them in turn, and once every table had its sessions,
/// one further: sessions take the tables in turn as well, and each table is to be visited on each server.
fn server_of(number: usize, tables: Tables, servers: usize) -> usize {
    let tables = tables.schemas.max(1) as usize;
    let together = (1..=servers).map(|times| tables * times).find(|all| all.is_multiple_of(servers));
    (number + number / together.unwrap_or(1)) % servers
}

/// Refuses tables other than those that are wanted.
fn refuse_other_tables(address: &Address, found: Option<Tables>, wanted: Tables) -> Result<(), Error> {
    match found {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(Error::usage(
            format!("'{address}' has {}, and {} are wanted", in_words(found), in_words(wanted)),
            "give the size that is there, or make the tables anew: rigel sql drop, then rigel sql load",
        )),
        None => Err(Error::usage(
            format!("'{address}' has no tables of ours, or not all of them"),
            format!("make them: rigel sql load {address}"),
        )),
    }
}

fn in_words(tables: Tables) -> String {
    format!("{} tables of {} rows and {} rows to scan", tables.schemas, tables.scale, tables.scan_blocks)
}

/// The processes of all servers, each once; none if some server's are not on this machine: counters of a part would be
/// held against those of all.
fn all_or_none(processes: impl Iterator<Item = Option<u32>>) -> Vec<u32> {
    let mut processes = processes.collect::<Option<Vec<u32>>>().unwrap_or_default();
    processes.sort_unstable();
    processes.dedup();
    processes
}

/// The tables fit into the server's own cache, which it calls by `name`, or nearly so.
fn cache_warning(facts: &ServerFacts, name: &str) -> Option<Finding> {
    let (tables, cache) = (facts.tables?.bytes(), facts.buffer_cache);
    (tables.0 < cache.0 * 2).then(|| {
        Finding::warning(
            "buffer cache",
            format!("the tables are {tables} and the {name} is {cache}: most reads are answered from it"),
            "load larger tables (--scale), or measure logical reads on purpose",
        )
    })
}

/// The counters of all servers together; none if one of them does not answer.
fn sum_of_all(mut samples: impl Iterator<Item = Option<ServerSample>>) -> Option<ServerSample> {
    let first = samples.next()??;
    samples.try_fold(first, |sum, next| Some(sum_of(sum, &next?)))
}

/// The counters of two servers together; none where one of them does not tell.
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
