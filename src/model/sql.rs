//! A database as a target: which servers, which tables, what they are and what they counted.

use super::{Bytes, Kind, Nanos, Ratio};
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

/// What a session does, operation after operation: the SLOB method. Shares are exact: they are dealt, not drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SqlWork {
    /// Where.
    pub tables: Tables,
    /// Rows, and so blocks, that one read visits by key.
    pub read_rows: u32,
    /// Rows, and so blocks, that one update changes.
    pub update_rows: u32,
    /// Share of all operations that update.
    pub updates: Ratio,
    /// Share of the reads that scan a whole table instead.
    pub scans: Ratio,
    /// How much of a row an update changes.
    pub redo: Redo,
    /// A part of every table that gets operations of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_spot: Option<HotSpot>,
    /// Every so manieth operation of a session goes to the first table instead of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_schema_every: Option<u32>,
    /// Pauses of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
    /// By which way a block is read.
    #[serde(default)]
    pub way: ReadWay,
}

impl SqlWork {
    /// The plain work on `tables`: reads of 64 blocks.
    #[must_use]
    pub fn reads(tables: Tables) -> Self {
        Self {
            tables,
            read_rows: 64,
            update_rows: 64,
            updates: Ratio::ZERO,
            scans: Ratio::ZERO,
            redo: Redo::Lite,
            hot_spot: None,
            hot_schema_every: None,
            think: None,
            way: ReadWay::Row,
        }
    }

    /// Blocks that one operation of `kind` visits.
    #[must_use]
    pub fn blocks(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Read => self.read_rows.into(),
            Kind::Write | Kind::Log => self.update_rows.into(),
            Kind::Scan => self.tables.scan_blocks,
        }
    }

    /// The kinds of operation that occur.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        let (updates, scans) = (self.updates, if self.updates == Ratio::ONE { Ratio::ZERO } else { self.scans });
        let occurs = |kind: &Kind| match kind {
            Kind::Read => updates != Ratio::ONE && scans != Ratio::ONE,
            Kind::Write => updates != Ratio::ZERO,
            Kind::Scan => scans != Ratio::ZERO,
            Kind::Log => false,
        };
        Kind::ALL.into_iter().filter(occurs).collect()
    }
}

/// How much of a row an update changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redo {
    /// Two of the nineteen columns.
    #[default]
    Lite,
    /// All of them.
    Heavy,
}

/// By which way a database reads a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadWay {
    /// Through the buffer cache, touching a row.
    #[default]
    Row,
    /// As a piece of a file, without the buffer cache.
    File,
}

/// A part of every table that gets operations of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HotSpot {
    /// Every so manieth operation of a session goes there.
    pub every: u32,
    /// Its first row, from 0.
    pub first: u64,
    /// Its rows.
    pub rows: u64,
}

/// Pauses of a session, as a user has them between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Think {
    /// After every so manieth operation.
    pub every: u32,
    /// The shortest pause.
    pub least: Nanos,
    /// The longest; all between are equally likely.
    pub most: Nanos,
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
