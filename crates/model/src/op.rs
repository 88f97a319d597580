//! One operation and its outcome.

use serde::{Deserialize, Serialize};

/// What an operation does to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Read one block at a position (pread).
    Read,
    /// Overwrite one block at a position (pwrite).
    Write,
    /// A write that completes when its data is durable, like those of a database's log writer:
    /// write and fdatasync, or `O_DSYNC`.
    Log,
    /// Read a whole table of a database, one block after the other.
    Scan,
}

impl Kind {
    /// Every kind, in the order of reports.
    pub const ALL: [Kind; 4] = [Kind::Read, Kind::Write, Kind::Log, Kind::Scan];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Read => "read",
            Kind::Write => "write",
            Kind::Log => "log",
            Kind::Scan => "scan",
        }
    }

    /// Its index in [`Kind::ALL`], for tables by kind.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// One operation in 16 bytes: kind, position and length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Block number in units of `length` from the start of the volume.
    pub position: u64,
    /// Bytes.
    pub length: u32,
    /// What it does.
    pub kind: Kind,
}

/// The index of a slot for one outstanding operation within a session: `0..slots`.
pub type Slot = u16;

/// A completed operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// The slot it was submitted in; it is free again.
    pub slot: Slot,
    /// How it ended.
    pub outcome: Outcome,
}

/// How an operation ended. A failed operation is data: it is counted by cause and the run
/// continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All requested bytes were transferred.
    Done,
    /// The operation failed.
    Failed(Cause),
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// The kernel's error number.
    Errno(i32),
    /// Fewer bytes than requested were transferred.
    Short,
    /// A statement affected a different number of rows than intended.
    Rows,
    /// The bytes that were read are not those that were written.
    Wrong(WrongBytes),
    /// A database's error, by its SQLSTATE: five characters of ASCII.
    SqlState([u8; 5]),
}

/// How the bytes of a block differ from those that were written, the worst last.
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
#[serde(rename_all = "lowercase")]
pub enum WrongBytes {
    /// What an earlier write had left there: a later one that was acknowledged is lost.
    Stale,
    /// A part of a write, and a part of what was there before.
    Torn,
    /// What was written to another place.
    Misdirected,
    /// What nothing has written.
    Rotten,
    /// Zeros, where something had been written.
    Gone,
}

impl WrongBytes {
    /// Every way, in the order of reports.
    pub const ALL: [WrongBytes; 5] = [
        WrongBytes::Rotten,
        WrongBytes::Gone,
        WrongBytes::Misdirected,
        WrongBytes::Torn,
        WrongBytes::Stale,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            WrongBytes::Stale => "stale",
            WrongBytes::Torn => "torn",
            WrongBytes::Misdirected => "misdirected",
            WrongBytes::Rotten => "rotten",
            WrongBytes::Gone => "gone",
        }
    }
}

impl Cause {
    /// The cause in words: `short transfer`, the system's error text, or the database's code.
    pub fn name(self) -> String {
        match self {
            Cause::Errno(number) => std::io::Error::from_raw_os_error(number).to_string(),
            Cause::Short => "short transfer".into(),
            Cause::Rows => "rows missing".into(),
            Cause::Wrong(how) => format!("{} block", how.name()),
            Cause::SqlState(state) => {
                let code: String = state.iter().map(|byte| char::from(*byte)).collect();
                format!("SQLSTATE {code}{}", state_in_words(&code))
            }
        }
    }
}

/// Meanings of the codes that can occur in a run, in the words of the SQL standard and
/// `PostgreSQL`.
fn state_in_words(code: &str) -> &'static str {
    match code {
        "40001" => " (serialization failure)",
        "40P01" => " (deadlock)",
        "42P01" | "42S02" => " (table missing)",
        "42501" => " (insufficient privilege)",
        "53100" => " (disk full)",
        "53200" => " (out of memory)",
        "55P03" => " (lock not available)",
        "57014" => " (statement timeout)",
        "70100" => " (statement ended: timeout or KILL)",
        "58030" => " (I/O error)",
        "XX001" => " (data corrupted)",
        _ => "",
    }
}

impl Outcome {
    /// The outcome of a transfer of `length` bytes whose system call returned `result`: a count of
    /// bytes, or a negative error number.
    pub fn of_transfer(result: i64, length: u32) -> Self {
        if result == i64::from(length) {
            Outcome::Done
        } else if result < 0 {
            Outcome::Failed(Cause::Errno(i32::try_from(-result).unwrap_or(i32::MAX)))
        } else {
            Outcome::Failed(Cause::Short)
        }
    }
}

/// The session itself failed: it accepts no more operations, and the point ends as broken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(pub String);

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
