//! How the file of a database's log is when a record is written to it.

use super::Error;
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The state of a log's file before each write. A filesystem that must also note a new size, or that a
/// block is written now, does so before the write is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

impl fmt::Display for LifeCycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for LifeCycle {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| {
            usage!(
                "'{text}' is not a life cycle of a log's file",
                "use grow, reserved, sized or reused"
            )
        })
    }
}
