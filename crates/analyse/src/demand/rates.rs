//! Statistics per second, and what follows from two of them.
//!
//! A rate is looked up here alone: in the table of statistics, else in the profiles of the first page,
//! which is all that a page pasted into a mail has.

use super::evidence::{divisor, time_model, total};
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::Printed;

/// Bytes in a mebibyte.
pub(super) const MIB: f64 = 1_048_576.0;

/// Waits below which an event has no latency worth naming.
pub(super) const WAITS_MIN: f64 = 100.0;

/// The time that the counters cover, in seconds.
pub(super) fn seconds(report: &DatabaseReport) -> Option<f64> {
    divisor(report).map(|(low, high)| f64::midpoint(low, high))
}

/// Transactions: no statistic of its own, but the sum of two.
pub(super) const TRANSACTIONS: &str = "user commits and rollbacks";

/// Write requests to log files, of all members of a group: more than the statistic `redo writes`.
pub(super) const LOG_FILE_WRITES: &str = "write requests to log files";

/// CPU time of foreground and background sessions: lines of the time model.
const DB_CPU: &str = "DB CPU";
const BACKGROUND_CPU: &str = "background cpu time";

/// Lines of the load profile and the I/O profile of a first page, the statistic that each is of, and
/// how many of the line's units one unit of the statistic is.
pub(super) const PROFILE_LINES: &[(&str, &str, f64)] = &[
    ("Redo size (bytes)", "redo size", 1.0),
    ("Redo size", "redo size", 1.0),
    ("Logical read (blocks)", "session logical reads", 1.0),
    ("Logical reads", "session logical reads", 1.0),
    ("Physical read (blocks)", "physical reads", 1.0),
    ("Physical reads", "physical reads", 1.0),
    ("Physical write (blocks)", "physical writes", 1.0),
    ("Physical writes", "physical writes", 1.0),
    ("Read IO requests", "physical read IO requests", 1.0),
    ("Write IO requests", "physical write IO requests", 1.0),
    ("Read IO (MB)", "physical read bytes", 1.0 / MIB),
    ("Write IO (MB)", "physical write bytes", 1.0 / MIB),
    ("Executes (SQL)", "execute count", 1.0),
    ("Executes", "execute count", 1.0),
    ("Transactions", TRANSACTIONS, 1.0),
    ("DB CPU(s)", DB_CPU, 1.0),
    ("Background CPU(s)", BACKGROUND_CPU, 1.0),
    (
        "Total Requests: read",
        "physical read total IO requests",
        1.0,
    ),
    (
        "Total Requests: write",
        "physical write total IO requests",
        1.0,
    ),
    ("Database Requests: read", "physical read IO requests", 1.0),
    (
        "Database Requests: write",
        "physical write IO requests",
        1.0,
    ),
    ("Redo Requests: write", LOG_FILE_WRITES, 1.0),
    ("Total (MB): read", "physical read total bytes", 1.0 / MIB),
    ("Total (MB): write", "physical write total bytes", 1.0 / MIB),
    ("Database (MB): read", "physical read bytes", 1.0 / MIB),
    ("Database (MB): write", "physical write bytes", 1.0 / MIB),
    ("Database (blocks): read", "physical reads", 1.0),
    ("Database (blocks): write", "physical writes", 1.0),
    (
        "Via Buffer Cache (blocks): read",
        "physical reads cache",
        1.0,
    ),
    (
        "Via Buffer Cache (blocks): write",
        "physical writes from cache",
        1.0,
    ),
    ("Direct (blocks): read", "physical reads direct", 1.0),
    ("Direct (blocks): write", "physical writes direct", 1.0),
];

/// Reports round twice: 0.3484 to 0.35, and that to 0.4.
pub(super) const TWICE: f64 = 1.11;

/// A statistic per second.
pub(super) fn rate(report: &DatabaseReport, name: &str) -> Option<f64> {
    printed_rate(report, name).map(|rate| rate.value)
}

/// A statistic per second: exact by the table of statistics, else as a profile prints it.
pub(super) fn printed_rate(report: &DatabaseReport, name: &str) -> Option<Printed> {
    let exact = total(report, name).zip(seconds(report));
    exact
        .map(|(total, seconds)| Printed {
            value: total / seconds,
            half: 0.0,
        })
        .or_else(|| of_profile(report, name))
}

/// A statistic per second as the first page prints it.
fn of_profile(report: &DatabaseReport, name: &str) -> Option<Printed> {
    let lines = PROFILE_LINES.iter().filter(|(_, of, _)| *of == name);
    let line = |(line, _, factor): &(&str, &str, f64)| {
        let mut rows = report.load_profile.iter().chain(&report.io_profile);
        let printed = rows
            .find(|row| row.name == *line)?
            .value
            .scaled(1.0 / factor);
        Some(Printed {
            half: printed.half * TWICE,
            ..printed
        })
    };
    lines.into_iter().find_map(line)
}

/// Bytes that the database reads per second: as reported, else blocks of the block size.
pub(super) fn read_bytes(report: &DatabaseReport) -> Option<f64> {
    bytes(report, "physical read bytes", "physical reads")
}

/// Bytes that the database writes per second, without those of the log.
pub(super) fn written_bytes(report: &DatabaseReport) -> Option<f64> {
    bytes(report, "physical write bytes", "physical writes")
}

fn bytes(report: &DatabaseReport, bytes: &str, blocks: &str) -> Option<f64> {
    let of_blocks = || Some(rate(report, blocks)? * f64::from(block_bytes(report)?));
    rate(report, bytes).or_else(of_blocks)
}

/// The block size: as printed, else the bytes over the blocks of all reads or writes. A report of a
/// container prints none.
pub(super) fn block_bytes(report: &DatabaseReport) -> Option<u32> {
    /// Sizes that a database can have.
    const SIZES: [u32; 5] = [2048, 4096, 8192, 16384, 32768];
    // Snapshots of two counters are not of the same moment.
    const APART: f64 = 1e-3;
    let derived = |bytes: &str, blocks: &str| {
        let (bytes, blocks) = (printed_rate(report, bytes)?, printed_rate(report, blocks)?);
        let (low, high) = (
            bytes.range().0 / blocks.range().1 * (1.0 - APART),
            bytes.range().1 / blocks.range().0 * (1.0 + APART),
        );
        let is_possible = |size: &u32| (low..=high).contains(&f64::from(*size));
        let mut possible = SIZES.into_iter().filter(is_possible);
        // Few blocks, printed coarsely, allow several sizes.
        possible
            .next()
            .filter(|_| possible.next().is_none() && blocks.range().0 > 0.0)
    };
    report
        .identity
        .block_bytes
        .or_else(|| derived("physical read bytes", "physical reads"))
        .or_else(|| derived("physical write bytes", "physical writes"))
}

/// CPU seconds of foreground and background sessions per second.
pub(super) fn cpu_per_s(report: &DatabaseReport) -> Option<f64> {
    let per_s = |name: &str| {
        let of_model = || Some(time_model(report, name)?.value / seconds(report)?);
        of_model().or_else(|| Some(of_profile(report, name)?.value))
    };
    Some(per_s(DB_CPU)? + per_s(BACKGROUND_CPU).unwrap_or(0.0))
}

/// DB time in seconds.
pub(super) fn db_time_s(report: &DatabaseReport) -> Option<f64> {
    let printed = time_model(report, "DB time").or(report.window.db_time_s);
    printed.map(|time| time.value)
}

/// Bytes that are written to a member of the log per second, with what fills the last block of each
/// write.
pub(super) fn log_bytes(report: &DatabaseReport) -> Option<f64> {
    Some(rate(report, "redo size")? + rate(report, "redo wastage").unwrap_or(0.0))
}

/// Mean size of a write of the log, with what fills its last block.
pub(super) fn redo_write_bytes(report: &DatabaseReport) -> Option<f64> {
    let writes = rate(report, "redo writes").filter(|writes| *writes > 0.0)?;
    Some(log_bytes(report)? / writes)
}

/// Largest request that a database makes: a longer write of the log is several.
pub(super) const REQUEST_MAX_BYTES: f64 = 1_048_576.0;

/// A mean size that follows from differences of large rates: `None` if no request is so long or so short.
pub(super) fn possible(bytes: f64) -> Option<f64> {
    /// The parts of a difference are not of exactly the same time.
    const SLACK: f64 = 1.05;
    const SECTOR: f64 = 512.0;
    (SECTOR..=REQUEST_MAX_BYTES * SLACK)
        .contains(&bytes)
        .then_some(bytes)
}
