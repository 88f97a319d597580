//! Databases as targets: tables with one row per block, which SQL creates, finds, reads, updates
//! and removes.
//!
//! Input: an [`Access`] and a request. Output: tables, an [`Engine`] on them, and the server's own
//! counters. Only objects that were made here are dropped or altered: a manifest in the database
//! lists them.

pub mod access;
mod chunks;
mod counters;
mod loading;
mod mysql;
mod pairs;
mod peer;
mod postgres;
mod status;
mod tables;
mod tls;

pub mod server;

pub use self::postgres::{PlanRun, PlanSession, converse};
pub use access::{Access, Address, Secret};
pub use loading::{LoadEvent, LoadListen, LoadRequest, LoadResult};
pub use status::ServerStatus;
pub use tables::SCHEMA;

use self::mysql::Mysql;
use self::postgres::Postgres;
use access::PASSWORD_HINT;
use rigel_device::engine::Engine;
use rigel_model::{Dbms, Error, Finding, Nanos, ServerFacts, SqlWork, Tables, usage};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// The tables that Rigel has loaded into a database; `None` if there are none or they are
/// incomplete.
///
/// # Errors
/// The server cannot be reached.
pub fn find(access: &Access) -> Result<Option<Tables>, Error> {
    let address = &access.servers[0];
    match access.dbms() {
        Dbms::Postgres => postgres::find(&mut postgres::connect(access, address)?, address),
        Dbms::Mysql => mysql::find(access, address),
    }
}

/// The local files of the tables for reads by key, in block order. The server first writes all data
/// to them.
///
/// # Errors
/// The server cannot be reached, does not run on this machine, or its files cannot be found.
pub fn files(access: &Access, tables: Tables) -> Result<Vec<PathBuf>, Error> {
    match access.dbms() {
        Dbms::Postgres => postgres::files(access, tables),
        Dbms::Mysql => Err(usage!(
            "the files of a MySQL table cannot be located",
            "give a PostgreSQL server"
        )),
    }
}

/// True if the server at `address` requires a password and none is known.
///
/// # Errors
/// It cannot be reached for another reason.
pub fn wants_password(access: &Access, address: &Address) -> Result<bool, Error> {
    let tried = match address.dbms {
        Dbms::Postgres => postgres::connect(access, address).map(drop),
        // The database may not exist yet.
        Dbms::Mysql => mysql::connect_outside(access, address).map(drop),
    };
    match tried {
        Err(Error::Failed { hint, .. }) if hint == PASSWORD_HINT => Ok(true),
        other => other.map(|()| false),
    }
}

/// Makes tables on every server of `access`, or resumes an interrupted load. Does nothing if the
/// tables are complete.
///
/// # Errors
/// A server cannot be reached or refuses, has different tables of ours or somebody else's objects
/// under our names; or `stop` was set. Rows loaded so far stay, and the next call resumes.
pub fn load(
    access: &Access,
    request: &LoadRequest,
    stop: &AtomicBool,
    listen: &LoadListen,
) -> Result<LoadResult, Error> {
    let load_one = match access.dbms() {
        Dbms::Postgres => postgres::load,
        Dbms::Mysql => mysql::load,
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
        Dbms::Postgres => postgres::remove(access),
        Dbms::Mysql => mysql::remove(access),
    }
}

/// An engine, facts about its server, and warnings about it.
pub type OpenedDatabase = (Box<dyn Engine>, ServerFacts, Vec<Finding>);

/// Opens the engine for `work`. Also returns facts about the server, and warnings about it.
///
/// # Errors
/// A server cannot be reached, or does not have the tables for `work`.
pub fn open(
    access: Access,
    work: SqlWork,
    statement_timeout: Option<Nanos>,
) -> Result<OpenedDatabase, Error> {
    let in_clear = access.clear_text_warning();
    let (engine, facts, mut findings): OpenedDatabase = match access.dbms() {
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
