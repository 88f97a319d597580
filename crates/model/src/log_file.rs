//! How a database writes its log: the state of the file, how a record is made durable, and by how many files.
//!
//! Input: text such as `reused+fsync`, or a journal. Output: a [`LogKind`], which prints as the text it is parsed from.

use super::Error;
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The state of a log's file before each write. A filesystem that must also note a new size, or that a
/// block is written now, does so before the write is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LifeCycle {
    /// The file grows with each write.
    Grow,
    /// Its blocks are reserved, and its size grows with each write.
    Reserved,
    /// It has its size and its blocks, and they were never written: etcd's log.
    Sized,
    /// All of it was written before: the logs of Oracle and `InnoDB`, and that of `PostgreSQL` with
    /// `wal_recycle`.
    Reused,
}

impl LifeCycle {
    /// All, from that with most work for the filesystem to that with least.
    pub const ALL: [LifeCycle; 4] = [Self::Grow, Self::Reserved, Self::Sized, Self::Reused];

    /// The name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Grow => "grow",
            Self::Reserved => "reserved",
            Self::Sized => "sized",
            Self::Reused => "reused",
        }
    }

    /// What the file is, in a few words.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Grow => "a file that grows",
            Self::Reserved => "a file with reserved space",
            Self::Sized => "a file that has its size",
            Self::Reused => "a file that is reused",
        }
    }
}

/// How a record is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SyncMethod {
    /// `pwrite` and `fdatasync`: `PostgreSQL`'s default, etcd.
    Fdatasync,
    /// `pwrite` and `fsync`: `InnoDB`.
    Fsync,
    /// `pwrite` to a file that was opened with `O_DSYNC`: `PostgreSQL`'s `open_datasync`.
    OpenDatasync,
    /// The same with `O_DIRECT`: Oracle.
    Direct,
    /// `pwritev2` with `RWF_DSYNC`.
    RwfDsync,
    /// A write and an fdatasync that `io_uring` does one after the other, by one system call.
    Uring,
}

impl SyncMethod {
    /// All, the default first.
    pub const ALL: [SyncMethod; 6] = [
        Self::Fdatasync,
        Self::Fsync,
        Self::OpenDatasync,
        Self::Direct,
        Self::RwfDsync,
        Self::Uring,
    ];

    /// The name in options.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fdatasync => "fdatasync",
            Self::Fsync => "fsync",
            Self::OpenDatasync => "open_datasync",
            Self::Direct => "direct",
            Self::RwfDsync => "rwf_dsync",
            Self::Uring => "uring",
        }
    }

    /// What the system is asked for, in a few words.
    pub const fn about(self) -> &'static str {
        match self {
            Self::Fdatasync => "pwrite and fdatasync",
            Self::Fsync => "pwrite and fsync",
            Self::OpenDatasync => "pwrite with O_DSYNC",
            Self::Direct => "pwrite with O_DSYNC and O_DIRECT",
            Self::RwfDsync => "pwritev2 with RWF_DSYNC",
            Self::Uring => "a write and an fdatasync linked by io_uring",
        }
    }

    /// True if the sync is a call of its own, which can be for the records of several writers.
    pub const fn is_shared(self) -> bool {
        matches!(self, Self::Fdatasync | Self::Fsync)
    }
}

/// Offsets and lengths of direct writes are multiples of it.
const DIRECT: u32 = 4096;

/// How a log is written.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
pub struct LogKind {
    /// The state of its file.
    pub life_cycle: LifeCycle,
    /// How a record is made durable.
    pub method: SyncMethod,
    /// True if each writer has a file of its own, as many databases on one volume; false if all write to
    /// one, and commit together.
    pub is_own: bool,
}

impl LogKind {
    /// A file that grows.
    pub const GROW: LogKind = Self::of(LifeCycle::Grow);
    /// A file with reserved space.
    pub const RESERVED: LogKind = Self::of(LifeCycle::Reserved);
    /// A file that has its size.
    pub const SIZED: LogKind = Self::of(LifeCycle::Sized);
    /// A file that is reused.
    pub const REUSED: LogKind = Self::of(LifeCycle::Reused);

    /// How Oracle writes its redo log.
    pub const ORACLE: LogKind = Self::REUSED.by(SyncMethod::Direct);

    /// A file in each state.
    pub const STATES: [LogKind; 4] = [Self::GROW, Self::RESERVED, Self::SIZED, Self::REUSED];

    /// A file in this state for all writers, by `pwrite` and `fdatasync`.
    pub const fn of(life_cycle: LifeCycle) -> Self {
        Self {
            life_cycle,
            method: SyncMethod::Fdatasync,
            is_own: false,
        }
    }

    /// The same by another method.
    #[must_use]
    pub const fn by(self, method: SyncMethod) -> Self {
        Self { method, ..self }
    }

    /// Refuses writers that cannot commit together, and records that cannot be written.
    ///
    /// # Errors
    /// The method makes one record durable, and several writers have one file; or a direct write is not of
    /// whole blocks.
    pub fn check(self, writers: u32, bytes: u32) -> Result<(), Error> {
        if self.method == SyncMethod::Direct && !bytes.is_multiple_of(DIRECT) {
            return Err(usage!(
                "a record of {bytes} bytes cannot be written with O_DIRECT",
                "give a multiple of {DIRECT}, or another method than direct"
            ));
        }
        if writers > 1 && !self.is_own && !self.method.is_shared() {
            let method = self.method.name();
            return Err(usage!(
                "{writers} writers of one log cannot commit together by {method}, which makes one record durable",
                "give each a file, '{self}+own', or leave out {method}"
            ));
        }
        Ok(())
    }

    /// A number for it, from 1 on: for the seeds of points.
    pub const fn code(self) -> u64 {
        1 + self.life_cycle as u64 + 8 * self.method as u64 + 64 * self.is_own as u64
    }

    /// What it is, with its method also where that is the usual one.
    pub fn in_full(self) -> String {
        let own = if self.is_own { " of each writer" } else { "" };
        let (file, method) = (self.life_cycle.about(), self.method.about());
        format!("{file}{own}, by {method}")
    }

    /// What it is, in a few words.
    pub fn about(self) -> String {
        let mut about = self.life_cycle.about().to_string();
        if self.is_own {
            about.push_str(" of each writer");
        }
        if self.method != SyncMethod::Fdatasync {
            about.push_str(", by ");
            about.push_str(self.method.about());
        }
        about
    }
}

impl fmt::Display for LogKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.life_cycle.name())?;
        if self.method != SyncMethod::Fdatasync {
            write!(f, "+{}", self.method.name())?;
        }
        if self.is_own {
            f.write_str("+own")?;
        }
        Ok(())
    }
}

impl From<LogKind> for String {
    fn from(kind: LogKind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for LogKind {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for LogKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let mut words = text.split('+');
        let state = words.next().unwrap_or_default();
        let found = LifeCycle::ALL.into_iter().find(|one| one.name() == state);
        let mut kind = Self::of(found.ok_or_else(|| {
            usage!(
                "'{state}' is not a life cycle of a log's file",
                "use grow, reserved, sized or reused"
            )
        })?);
        for word in words {
            let method = SyncMethod::ALL.into_iter().find(|one| one.name() == word);
            match method {
                Some(method) => kind.method = method,
                None if word == "own" => kind.is_own = true,
                None => {
                    return Err(usage!(
                        "'{word}' is not a way to make a record of a log durable",
                        "use fdatasync, fsync, open_datasync, direct, rwf_dsync or uring, such as {state}+fsync; \
                         {state}+own gives each writer a file"
                    ));
                }
            }
        }
        Ok(kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_as_it_prints() {
        for life_cycle in LifeCycle::ALL {
            for method in SyncMethod::ALL {
                for is_own in [false, true] {
                    let kind = LogKind {
                        life_cycle,
                        method,
                        is_own,
                    };
                    assert_eq!(kind.to_string().parse::<LogKind>().unwrap(), kind);
                }
            }
        }
        assert_eq!(LogKind::GROW.to_string(), "grow");
        assert_eq!(
            "reused+fsync+own".parse::<LogKind>().unwrap().to_string(),
            "reused+fsync+own"
        );
        let refused = "reused+sync".parse::<LogKind>().unwrap_err().to_string();
        assert!(
            refused.contains("'sync'") && refused.contains("reused+fsync"),
            "{refused}"
        );
    }

    #[test]
    fn writers_of_one_file_share_a_sync_or_have_one_each() {
        let direct = LogKind::REUSED.by(SyncMethod::Direct);
        assert!(direct.check(1, 4096).is_ok() && LogKind::GROW.check(64, 2300).is_ok());
        assert!(direct.check(4, 4096).is_err() && direct.check(1, 2300).is_err());
        let own = LogKind {
            is_own: true,
            ..direct
        };
        assert!(own.check(4, 8192).is_ok());
    }
}
