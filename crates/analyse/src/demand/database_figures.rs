//! The figures of one report that people compare: one line of a spreadsheet.

use rigel_model::Moment;
use serde::Serialize;

/// Figures of one report. Reads and writes are requests, never blocks; MiB are 2^20 bytes; latencies
/// are means of waits, in microseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DatabaseFigures {
    /// The file.
    pub file: String,
    /// Number at the end of the file's name, if the files are a scale-up series.
    pub sessions: Option<u32>,
    /// Kind of the report.
    pub kind: String,
    /// Release of the database.
    pub release: Option<String>,
    /// Its name.
    pub db: Option<String>,
    /// The instance; `None` for all.
    pub instance: Option<String>,
    /// When it began.
    pub begin: Option<Moment>,
    /// The time that the counters cover.
    pub seconds: Option<f64>,
    /// CPUs of the host.
    pub cpus: Option<u32>,
    /// DB time per second.
    pub active_sessions: Option<f64>,
    /// CPU seconds per second, foreground and background.
    pub cpu_seconds_per_s: Option<f64>,
    /// Statements.
    pub executions_per_s: Option<f64>,
    /// Commits and rollbacks.
    pub transactions_per_s: Option<f64>,
    /// Blocks from the buffer cache.
    pub logical_reads_per_s: Option<f64>,
    /// Read requests of the database: without log, backup and control files.
    pub db_reads_per_s: Option<f64>,
    /// Their data.
    pub db_read_mib_per_s: Option<f64>,
    /// All read requests.
    pub all_reads_per_s: Option<f64>,
    /// Their data.
    pub all_read_mib_per_s: Option<f64>,
    /// Write requests of the database.
    pub db_writes_per_s: Option<f64>,
    /// Their data.
    pub db_write_mib_per_s: Option<f64>,
    /// All write requests.
    pub all_writes_per_s: Option<f64>,
    /// Their data.
    pub all_write_mib_per_s: Option<f64>,
    /// Redo.
    pub redo_mib_per_s: Option<f64>,
    /// Writes of the log.
    pub redo_writes_per_s: Option<f64>,
    /// Their mean size, with what fills their last block.
    pub redo_write_bytes: Option<f64>,
    /// Random reads, as the demand has them.
    pub random_reads_per_s: Option<f64>,
    /// Waits for single-block reads.
    pub single_block_waits: Option<f64>,
    /// Mean of a single-block read.
    pub random_read_us: Option<f64>,
    /// Median of a single-block read.
    pub random_read_p50_us: Option<f64>,
    /// 99th percentile of a single-block read.
    pub random_read_p99_us: Option<f64>,
    /// Mean of a multi-block read.
    pub multiblock_read_us: Option<f64>,
    /// Mean of a direct read.
    pub direct_read_us: Option<f64>,
    /// Mean of a call that reads several blocks.
    pub parallel_read_us: Option<f64>,
    /// Mean of a log write.
    pub log_write_us: Option<f64>,
    /// 99th percentile of a log write.
    pub log_write_p99_us: Option<f64>,
    /// Commits that waited.
    pub commits_per_s: Option<f64>,
    /// Mean wait of a commit.
    pub commit_us: Option<f64>,
    /// 99th percentile of the wait of a commit.
    pub commit_p99_us: Option<f64>,
    /// Mean of a batch of page writes.
    pub page_write_batch_us: Option<f64>,
    /// CPU of the host that is busy.
    pub host_busy_percent: Option<f64>,
    /// Time of the host's CPUs that waits for I/O.
    pub io_wait_percent: Option<f64>,
    /// The event with the most time.
    pub top_event: Option<String>,
    /// Its share of DB time.
    pub top_event_percent: Option<f64>,
    /// Number of findings about the report.
    pub findings: usize,
}
