//! A database as a target: its servers, its tables, facts and counters.

use super::{
    Bytes, Error, Kind, LifeCycle, LogKind, Nanos, Ratio, SyncMethod, shell_path, shell_word,
};
use crate::serde_defaults::{is_one, one};
use crate::usage;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// A supported database management system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Dbms {
    /// `PostgreSQL`.
    Postgres,
    /// `MySQL` and `MariaDB`, with `InnoDB`.
    Mysql,
}

impl Dbms {
    /// The engine's name in options, and the scheme of its URLs.
    pub fn name(self) -> &'static str {
        match self {
            Dbms::Postgres => "postgres",
            Dbms::Mysql => "mysql",
        }
    }

    /// Bytes that a write of the log has beside those that are new. `PostgreSQL` counts the new ones, writes
    /// pages of 8 KiB as a whole, and the one that is not full again with each write; `InnoDB` counts what it
    /// writes.
    pub fn log_bytes_again(self) -> f64 {
        match self {
            Dbms::Postgres => 8192.0,
            Dbms::Mysql => 0.0,
        }
    }

    /// How a server writes its log, by its settings; `None` if it waits for no write. Where none of our methods
    /// is its own, it is that with the same system calls.
    ///
    /// `PostgreSQL`: documentation of `wal_recycle` and `wal_sync_method`. `MariaDB`: commit 24648768 of its
    /// sources, on what `innodb_flush_method` stands for since 11.0. `MySQL` 8.0: `innodb_use_fdatasync`.
    pub fn log_of(self, settings: &BTreeMap<String, String>) -> Option<LogKind> {
        let setting = |name: &str| settings.get(name).map_or("", String::as_str);
        let is_on = |name: &str| setting(name).eq_ignore_ascii_case("on");
        let is_off = |name: &str| setting(name).eq_ignore_ascii_case("off");
        let (life_cycle, method) = match self {
            Dbms::Postgres if is_off("fsync") => return None,
            Dbms::Postgres => {
                let is_new = is_off("wal_recycle") && is_off("wal_init_zero");
                let method = match setting("wal_sync_method") {
                    "open_datasync" | "open_sync" => SyncMethod::OpenDatasync,
                    "fsync" | "fsync_writethrough" => SyncMethod::Fsync,
                    _ => SyncMethod::Fdatasync,
                };
                (
                    if is_new {
                        LifeCycle::Sized
                    } else {
                        LifeCycle::Reused
                    },
                    method,
                )
            }
            Dbms::Mysql => {
                let is_through = is_on("innodb_log_file_write_through")
                    || setting("innodb_flush_method") == "O_DSYNC";
                let method = if is_through && is_off("innodb_log_file_buffering") {
                    SyncMethod::Direct
                } else if is_through {
                    SyncMethod::OpenDatasync
                } else if is_on("innodb_use_fdatasync") || setting("version").contains("MariaDB") {
                    SyncMethod::Fdatasync
                } else {
                    SyncMethod::Fsync
                };
                (LifeCycle::Reused, method)
            }
        };
        Some(LogKind::of(life_cycle).by(method))
    }
}

/// Equivalent servers under test: sessions connect to them in turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SqlTarget {
    /// The database management system.
    pub dbms: Dbms,
    /// Their URLs, without passwords: `postgres://user@host/database`.
    pub urls: Vec<String>,
    /// The directory of a private server that we started; `None` for existing servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private_in: Option<String>,
    /// How a private server is made, so that a resumed run can make it again; `None` for existing
    /// servers, and in journals of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub private: Option<PrivateServer>,
}

/// How a private server is made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrivateServer {
    /// The folder of its programs as the user named it; `None` = the newest installed.
    pub bin: Option<PathBuf>,
    /// Size of its buffer cache.
    pub buffer_cache: Bytes,
    /// Settings that the user gave, by their names in the server's manual.
    pub settings: Vec<(String, String)>,
    /// Maximum number of concurrent sessions.
    pub sessions: u32,
    /// Number of connections that load its tables.
    pub load_degree: u32,
    /// Device number of its directory: the storage under test. `None` before the server is made.
    pub device: Option<(u32, u32)>,
}

impl PrivateServer {
    /// The options that name programs and settings, as on a command line, each with a space before
    /// it.
    ///
    /// A resumed run needs them again: a journal alone must not decide which program is run, and a
    /// setting may contain a command.
    pub fn confirmed_options(&self) -> String {
        let bin = self
            .bin
            .iter()
            .map(|bin| format!(" --server-bin {}", shell_path(bin)));
        let settings = self.settings.iter().map(|(name, value)| {
            format!(" --server-set {}", shell_word(&format!("{name}={value}")))
        });
        bin.chain(settings).collect()
    }
}

/// The tables that `load` creates: `schemas` tables with `scale` rows each, where each row fills a
/// block; and as many tables without an index, to be scanned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tables {
    /// Number of tables that are read by key.
    pub schemas: u32,
    /// Rows, and so blocks, of each table that is read by key.
    pub scale: u64,
    /// Rows, and so blocks, of each table that is scanned.
    pub scan_blocks: u64,
    /// Bytes of a block: the database's page.
    pub block: u32,
}

impl Tables {
    /// Bytes of all tables that are read by key.
    pub fn bytes(&self) -> Bytes {
        self.bytes_of(self.scale)
    }

    /// Bytes of all tables that are scanned.
    pub fn scanned_bytes(&self) -> Bytes {
        self.bytes_of(self.scan_blocks)
    }

    /// Bytes of `blocks` in each table. A journal may contain any numbers.
    fn bytes_of(&self, blocks: u64) -> Bytes {
        Bytes(
            u64::from(self.schemas)
                .saturating_mul(blocks)
                .saturating_mul(u64::from(self.block)),
        )
    }
}

/// The work of a session's operations: the SLOB method. Fractions are exact, because operations are
/// dealt, not drawn.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct SqlWork {
    /// The tables.
    pub tables: Tables,
    /// Rows, and so blocks, that one read by key visits.
    pub read_rows: u32,
    /// Rows, and so blocks, that one update changes.
    pub update_rows: u32,
    /// Fraction of all operations that are updates.
    pub updates: Ratio,
    /// Fraction of the reads that scan a whole table instead.
    pub scans: Ratio,
    /// How much of a row an update changes.
    pub redo: Redo,
    /// A part of every table that receives every n-th operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_spot: Option<HotSpot>,
    /// Every n-th operation of a session goes to the first table instead of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hot_schema_every: Option<u32>,
    /// Pauses of the sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub think: Option<Think>,
    /// How a block is read.
    #[serde(default)]
    pub way: ReadWay,
    /// Maximum number of operations in flight on each connection. 1, as applications work: an
    /// operation is sent after the answer to the one before it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pipeline: u32,
}

impl SqlWork {
    /// The default work on `tables`: reads of 64 blocks.
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
            pipeline: 1,
        }
    }

    /// Number of blocks that one operation of `kind` visits.
    pub fn blocks(&self, kind: Kind) -> u64 {
        match kind {
            Kind::Read => self.read_rows.into(),
            Kind::Write | Kind::Log => self.update_rows.into(),
            Kind::Scan => self.tables.scan_blocks,
        }
    }

    /// Number of blocks, over all tables, among which the positions of its operations lie.
    pub fn extent(&self) -> u64 {
        let spot_end = |spot: HotSpot| spot.first.saturating_add(spot.rows.max(1));
        let last_table = self.hot_spot.map_or(1, spot_end).max(self.tables.scale);
        let before = u64::from(self.tables.schemas.saturating_sub(1));
        before
            .saturating_mul(self.tables.scale)
            .saturating_add(last_table)
    }

    /// Refuses work whose parts do not fit together. A journal may contain any numbers.
    ///
    /// # Errors
    /// The sentence names the option and the value.
    pub fn check(&self) -> Result<(), Error> {
        if self.pipeline > 1 && self.think.is_some() {
            return Err(usage!(
                "--pipeline and --think exclude each other: a session that sends ahead does not \
                 pause",
                "leave one of them out"
            ));
        }
        let bytes = |rows: u64| Bytes(rows.saturating_mul(self.tables.block.into()));
        if let Some(spot) = self.hot_spot
            && (spot.rows == 0 || spot.first.saturating_add(spot.rows) > self.tables.scale)
        {
            return Err(usage!(
                "a hot spot of {rows} at offset {first} is not within a table of {scale}",
                "give a smaller offset or size, or load larger tables",
                rows = bytes(spot.rows),
                first = bytes(spot.first),
                scale = bytes(self.tables.scale)
            ));
        }
        let widest = self.read_rows.max(if self.updates == Ratio::ZERO {
            0
        } else {
            self.update_rows
        });
        let (room, what) = self
            .hot_spot
            .map_or((self.tables.scale, "a table"), |spot| {
                (spot.rows, "the hot spot")
            });
        if u64::from(widest) > room {
            return Err(usage!(
                "an operation of {widest} rows does not fit into {what} of {room} rows",
                "give a smaller --work-unit, or larger tables"
            ));
        }
        Ok(())
    }

    /// The kinds of operation that can occur.
    pub fn kinds(&self) -> Vec<Kind> {
        let (updates, scans) = (
            self.updates,
            if self.updates == Ratio::ONE {
                Ratio::ZERO
            } else {
                self.scans
            },
        );
        let occurs = |kind: &Kind| match kind {
            Kind::Read => updates != Ratio::ONE && scans != Ratio::ONE,
            Kind::Write => updates != Ratio::ZERO,
            Kind::Scan => scans != Ratio::ZERO,
            Kind::Log => false,
        };
        Kind::ALL.into_iter().filter(occurs).collect()
    }
}

impl fmt::Display for Tables {
    /// `2 tables of 131072 rows, one to a block of 8 KiB`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.schemas {
            1 => write!(out, "1 table")?,
            number => write!(out, "{number} tables")?,
        }
        write!(
            out,
            " of {} rows, one to a block of {}",
            self.scale,
            Bytes(self.block.into())
        )
    }
}

impl fmt::Display for SqlWork {
    /// `reads of 64 rows by index; 25 % updates of 64 rows, 2 columns`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way = match self.way {
            ReadWay::Row => "rows by index",
            ReadWay::Prefetch => "rows by bitmap scan, read ahead",
            ReadWay::File => "blocks of its files, without the buffer cache",
        };
        write!(out, "reads of {} {way}", self.read_rows)?;
        if self.scans != Ratio::ZERO {
            write!(
                out,
                ", {} of them scans of {} blocks",
                self.scans, self.tables.scan_blocks
            )?;
        }
        if self.updates != Ratio::ZERO {
            let columns = match self.redo {
                Redo::Lite => "2 columns",
                Redo::Heavy => "all columns",
            };
            write!(
                out,
                "; {} updates of {} rows, {columns}",
                self.updates, self.update_rows
            )?;
        }
        if let Some(spot) = self.hot_spot {
            write!(
                out,
                "; every {}th in a hot spot of {} rows",
                spot.every, spot.rows
            )?;
        }
        if let Some(every) = self.hot_schema_every {
            write!(out, "; every {every}th in the first table")?;
        }
        if let Some(think) = self.think {
            write!(
                out,
                "; a pause of {} to {} after every {}th",
                think.least, think.most, think.every
            )?;
        }
        if self.pipeline > 1 {
            write!(
                out,
                "; pipelined, {} in flight per connection",
                self.pipeline
            )?;
        }
        Ok(())
    }
}

/// How much of a row an update changes.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Redo {
    /// Two of the nineteen columns.
    #[default]
    Lite,
    /// All columns.
    Heavy,
}

/// How a database reads a block.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum ReadWay {
    /// Through the buffer cache, touching a row.
    #[default]
    Row,
    /// Through the buffer cache, touching a row; the database knows all rows of a statement in
    /// advance and reads their blocks ahead, if it can.
    Prefetch,
    /// As a piece of a file, without the buffer cache.
    File,
}

/// A part of every table that receives every n-th operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct HotSpot {
    /// Every n-th operation of a session goes there.
    pub every: u32,
    /// Index of its first row, from 0.
    pub first: u64,
    /// Number of its rows.
    pub rows: u64,
}

/// Pauses of a session, like a user's between two requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Think {
    /// A pause follows every n-th operation.
    pub every: u32,
    /// Minimum pause.
    pub least: Nanos,
    /// Maximum pause; all durations between are equally likely.
    pub most: Nanos,
}

/// Facts about a server and its tables, from before the first point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerFacts {
    /// Version, as the server reports it.
    pub version: String,
    /// The tables.
    pub tables: Option<Tables>,
    /// Settings that affect the measurement, by name: the buffer cache, direct I/O, durability.
    pub settings: BTreeMap<String, String>,
    /// How the server executes the read by key, line by line, from its `EXPLAIN`.
    pub plan: Vec<String>,
    /// True if its processes are on this machine, so that their CPU and I/O can be seen.
    pub local: bool,
    /// True if reads past its buffer cache bypass the page cache too.
    pub direct: bool,
    /// Size of its buffer cache.
    pub buffer_cache: Bytes,
}

impl ServerFacts {
    /// Its system.
    pub fn dbms(&self) -> Dbms {
        if self.version.starts_with("PostgreSQL") {
            Dbms::Postgres
        } else {
            Dbms::Mysql
        }
    }

    /// How it writes its log; `None` if it waits for no write.
    pub fn log(&self) -> Option<LogKind> {
        self.dbms().log_of(&self.settings)
    }
}

/// Counters of a server at one moment. Only differences are meaningful. `None` means that the
/// server, or this machine, does not report the figure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ServerSample {
    /// Blocks of our tables visited in the buffer cache, whether they were in it or not.
    pub visited: Option<u64>,
    /// Blocks visited in the buffer cache, of tables and indexes of the whole database.
    pub logical: Option<u64>,
    /// Blocks that were not in the buffer cache and were read.
    pub physical: Option<u64>,
    /// Time that the server waited for those reads.
    pub read_time: Option<Nanos>,
    /// Blocks written to files, by any process.
    pub written: Option<u64>,
    /// Bytes of write-ahead (redo) log written.
    pub log_bytes: Option<u64>,
    /// Number of log syncs.
    pub log_syncs: Option<u64>,
    /// Committed transactions.
    pub commits: Option<u64>,
    /// CPU time of its processes, user and system, if they are on this machine.
    pub cpu: Option<Nanos>,
    /// Bytes that its processes read from storage, as the kernel counts them (`/proc/PID/io`).
    pub storage_read: Option<u64>,
    /// Bytes that its processes wrote to storage, as the kernel counts them.
    pub storage_written: Option<u64>,
    /// Number of times that a session of ours was seen in each wait event since the point began;
    /// `CPU` if it was not waiting. From about ten samples per second.
    pub waits: BTreeMap<String, u64>,
    /// Number of samples of wait events.
    pub looks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_servers_settings_say_how_it_writes_its_log() {
        let read = |dbms: Dbms, settings: &[(&str, &str)]| {
            let owned = |(name, value): &(&str, &str)| ((*name).into(), (*value).into());
            dbms.log_of(&settings.iter().map(owned).collect())
                .map_or("none".into(), |kind| kind.to_string())
        };
        let (postgres, mysql) = (Dbms::Postgres, Dbms::Mysql);
        let recycled = [("wal_recycle", "on"), ("wal_sync_method", "fdatasync")];
        assert_eq!(read(postgres, &recycled), "reused");
        // On copy-on-write filesystems both are switched off.
        let new = [("wal_recycle", "off"), ("wal_init_zero", "off")];
        assert_eq!(read(postgres, &new), "sized");
        let synced = [("wal_sync_method", "open_datasync")];
        assert_eq!(read(postgres, &synced), "reused+open_datasync");
        assert_eq!(read(postgres, &[("fsync", "off")]), "none");
        assert_eq!(read(mysql, &[("version", "8.0.36")]), "reused+fsync");
        let fdatasync = [("innodb_use_fdatasync", "ON")];
        assert_eq!(read(mysql, &fdatasync), "reused");
        assert_eq!(read(mysql, &[("version", "10.11.6-MariaDB")]), "reused");
        let through = [
            ("innodb_log_file_write_through", "ON"),
            ("innodb_log_file_buffering", "OFF"),
        ];
        assert_eq!(read(mysql, &through), "reused+direct");
    }
}
