//! What operations and their units are called: of raw I/O, of log writes, of database sessions.

/// Names of operations and units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Naming {
    /// Unit of the rate.
    pub rate: &'static str,
    /// Plural name of the operations.
    pub one: &'static str,
    /// Name of what a depth counts.
    pub place: &'static str,
}

impl Naming {
    /// Names for raw I/O.
    pub const RAW: Naming = Naming {
        rate: "IOPS",
        one: "I/Os",
        place: "outstanding",
    };
    /// Names for the writers of a log.
    pub const COMMITS: Naming = Naming {
        rate: "commits/s",
        one: "commits",
        place: "writers",
    };
    /// Names for database sessions, where an operation is a statement over a work unit.
    pub const SESSIONS: Naming = Naming {
        rate: "op/s",
        one: "operations",
        place: "sessions",
    };
}
