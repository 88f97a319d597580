//! A database as a target: which servers, which tables, what they are and what they counted.

use super::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A database management system whose statements we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dbms {
    /// `PostgreSQL`.
    Postgres,
    /// `MySQL` and `MariaDB`, with `InnoDB`.
    Mysql,
}

impl Dbms {
    /// The name by which the engine is asked for, and the scheme of its URLs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dbms::Postgres => "postgres",
            Dbms::Mysql => "mysql",
        }
    }
}

/// Servers under test, one as good as the other: sessions go to them in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlTarget {
    /// What they are.
    pub dbms: Dbms,
    /// Where they are, without any password: `postgres://user@host/database`.
    pub urls: Vec<String>,
    /// The directory in which a private server was made; none for servers that were there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_in: Option<String>,
}

/// The tables that `load` makes: `schemas` of them, each with `scale` rows of which each fills a block; and as many to
/// be scanned, without an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tables {
    /// Tables that are read by key.
    pub schemas: u32,
    /// Rows, and so blocks, of each.
    pub scale: u64,
    /// Rows, and so blocks, of each table that is scanned.
    pub scan_blocks: u64,
    /// Bytes of a block: the database's page.
    pub block: u32,
}

impl Tables {
    /// Bytes of all tables that are read by key.
    #[must_use]
    pub fn bytes(&self) -> Bytes {
        Bytes(u64::from(self.schemas) * self.scale * u64::from(self.block))
    }
}

/// What a server and its tables are, as found before the first point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// As the server gives it.
    pub version: String,
    /// The tables.
    pub tables: Option<Tables>,
    /// Settings that decide what is measured, by name: the buffer cache, direct I/O, durability.
    pub settings: BTreeMap<String, String>,
    /// How the server executes the read by key, line by line, as its own `EXPLAIN` says.
    pub plan: Vec<String>,
    /// True if its processes are on this machine, so that their CPU and I/O can be seen.
    pub local: bool,
    /// Reads past its buffer cache go past the page cache too.
    pub direct: bool,
    /// Bytes of its buffer cache.
    pub buffer_cache: Bytes,
}

/// Counters of a server at one moment. Only differences mean anything. None where the server, or this machine, does not
/// tell.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerSample {
    /// Blocks of our tables visited in the buffer cache, whether or not they were there.
    pub visited: Option<u64>,
    /// Blocks visited in the buffer cache, of tables and indexes of the whole database.
    pub logical: Option<u64>,
    /// Of those, blocks that were not there and were read.
    pub physical: Option<u64>,
    /// Time the server waited for those reads.
    pub read_time: Option<Nanos>,
    /// Blocks written to files, by whichever process.
    pub written: Option<u64>,
    /// Bytes of write-ahead (redo) log made.
    pub log_bytes: Option<u64>,
    /// Times the log was made durable.
    pub log_syncs: Option<u64>,
    /// Transactions committed.
    pub commits: Option<u64>,
    /// CPU time of its processes, user and system, where they are on this machine.
    pub cpu: Option<Nanos>,
    /// Bytes its processes read from storage, as the kernel counts them (`/proc/PID/io`).
    pub storage_read: Option<u64>,
    /// Bytes its processes wrote to storage, likewise.
    pub storage_written: Option<u64>,
    /// How often a session of ours was seen waiting, by event, since the point began; `CPU` for one that was not
    /// waiting. From samples, about ten a second.
    pub waits: BTreeMap<String, u64>,
    /// Samples that were taken of waits.
    pub looks: u64,
}
