//! What a report of a database says about its I/O: AWR, Statspack, and captures of their tables.
//!
//! Facts only, as printed: a number keeps the place of its last digit, because that decides how far
//! two figures of one report may differ. A figure that the report does not print is `None`.
//! Analysis checks the figures against each other and derives the demand.

use super::loop_record::LoopRecord;
use crate::Moment;
use serde::{Deserialize, Serialize};

/// A number as printed: its value, and half of its last place in the same unit. 0 for a count that
/// was printed in full.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(from = "(f64, f64)", into = "(f64, f64)")]
pub struct Printed {
    /// The value.
    pub value: f64,
    /// Half of the last place.
    pub half: f64,
}

impl Printed {
    /// The interval in which the true value lies.
    pub fn range(self) -> (f64, f64) {
        (self.value - self.half, self.value + self.half)
    }

    /// The number in another unit.
    pub fn scaled(self, factor: f64) -> Self {
        Self {
            value: self.value * factor,
            half: self.half * factor,
        }
    }
}

impl From<(f64, f64)> for Printed {
    fn from((value, half): (f64, f64)) -> Self {
        Self { value, half }
    }
}

impl From<Printed> for (f64, f64) {
    fn from(printed: Printed) -> Self {
        (printed.value, printed.half)
    }
}

/// What kind of report it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReportKind {
    /// AWR report of one instance, as text.
    #[default]
    AwrText,
    /// AWR report of one instance, as HTML.
    AwrHtml,
    /// AWR report of all instances of a RAC database.
    AwrGlobal,
    /// AWR report of one pluggable database.
    AwrPdb,
    /// Statspack report.
    Statspack,
    /// One snapshot of a capture by AWR-Miner or one of its relatives.
    Capture,
    /// A listing of a histogram of waits.
    Listing,
    /// The spool of a run by the files of `rigel sql script`.
    Spool,
    /// Sections of a report without its first page.
    Fragment,
}

impl ReportKind {
    /// Its name in reports and tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::AwrText => "awr-text",
            Self::AwrHtml => "awr-html",
            Self::AwrGlobal => "awr-global",
            Self::AwrPdb => "awr-pdb",
            Self::Statspack => "statspack",
            Self::Capture => "capture",
            Self::Listing => "listing",
            Self::Spool => "spool",
            Self::Fragment => "fragment",
        }
    }
}

/// Who it is about.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseIdentity {
    /// Name of the database.
    pub db_name: Option<String>,
    /// Its identifier.
    pub db_id: Option<String>,
    /// Release, such as `19.0.0.0.0`.
    pub release: Option<String>,
    /// Name of the instance; `None` for a report of all.
    pub instance: Option<String>,
    /// Its number.
    pub instance_number: Option<u32>,
    /// True if the database is a RAC.
    pub is_rac: Option<bool>,
    /// True if it is a container database.
    pub is_cdb: Option<bool>,
    /// Name of the container that the report is of, if it is of one.
    pub container: Option<String>,
    /// The host, or the hosts.
    pub host: Option<String>,
    /// Its platform.
    pub platform: Option<String>,
    /// CPUs.
    pub cpus: Option<u32>,
    /// Cores.
    pub cores: Option<u32>,
    /// Memory in 2^30 bytes.
    pub memory_gib: Option<f64>,
    /// Block size in bytes.
    pub block_bytes: Option<u32>,
    /// When the instance was started.
    pub startup: Option<Moment>,
    /// Number of instances that the database has, by the snapshots.
    pub instances: Option<u32>,
}

/// The time between two snapshots.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SnapshotWindow {
    /// Number of the first snapshot.
    pub begin_id: Option<u64>,
    /// Number of the last one.
    pub end_id: Option<u64>,
    /// When the first one was taken.
    pub begin: Option<Moment>,
    /// When the last one was taken.
    pub end: Option<Moment>,
    /// Elapsed time as printed, in seconds.
    pub elapsed_s: Option<Printed>,
    /// DB time as printed on the first page, in seconds.
    pub db_time_s: Option<Printed>,
}

/// Which sessions a table of waits covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WaitTable {
    /// Foreground sessions.
    Foreground,
    /// Background processes.
    Background,
    /// Both.
    Both,
    /// The list of the most important events on the first page.
    Top,
}

/// A row of a table of waits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    /// The table.
    pub of: WaitTable,
    /// Name of the event.
    pub event: String,
    /// Its class, where the table has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// Number of waits.
    pub waits: Option<Printed>,
    /// Their time in seconds.
    pub time_s: Option<Printed>,
    /// Their mean in microseconds.
    pub mean_us: Option<Printed>,
    /// Their share in percent, of DB time or of the time of background processes.
    pub percent: Option<Printed>,
}

/// One bucket of a histogram as printed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WaitBucket {
    /// Head of the column: `<512us`.
    pub label: String,
    /// Upper bound in microseconds; `None` for the last bucket, which has none.
    pub high_us: Option<f64>,
    /// Share of the waits in percent.
    pub percent: Option<Printed>,
    /// Number of waits, where it is printed.
    pub count: Option<f64>,
}

/// A row of a table of histograms.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitHistogram {
    /// Name of the event.
    pub event: String,
    /// True for a table that shows a part of the range in detail: its `waits` are those of that
    /// part, its shares are of all waits.
    pub is_detail: bool,
    /// Number of waits.
    pub waits: Option<Printed>,
    /// True if the cell was as wide as the column, so that a suffix may have been cut.
    pub may_be_cut: bool,
    /// Upper bound of the table's first bucket, which covers everything below it.
    pub first_bound_us: Option<f64>,
    /// Upper bound of the table's last but one bucket, at which the last one begins.
    pub last_bound_us: Option<f64>,
    /// The buckets, ascending; those without waits are left out.
    pub buckets: Vec<WaitBucket>,
}

impl WaitHistogram {
    /// The histogram of `event` among those listed so far; a new one, without buckets, if there is
    /// none.
    pub fn listed<'a>(all: &'a mut Vec<Self>, event: &str) -> &'a mut Self {
        let listed = all.iter().position(|row| row.event == event);
        let index = listed.unwrap_or_else(|| {
            all.push(Self {
                event: event.into(),
                ..Self::default()
            });
            all.len() - 1
        });
        &mut all[index]
    }

    /// Where the bucket below `high_us` begins. Bounds are powers of two, except the bucket `<=1s`
    /// of tables before 12.2, which begins at 32 ms.
    pub fn below(&self, high_us: f64) -> f64 {
        const SECOND_US: f64 = 1_024_000.0;
        let is_wide =
            !self.is_detail && high_us == SECOND_US && self.last_bound_us == Some(high_us);
        if is_wide {
            SECOND_US / 32.0
        } else {
            high_us / 2.0
        }
    }
}

/// A row of I/O by function or by file type.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IoStatRow {
    /// Name of the function or the file type.
    pub name: String,
    /// The instance in a report of several; `*` for their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Read requests per second.
    pub reads_per_s: Option<Printed>,
    /// Read, in 2^20 bytes per second.
    pub read_mib_per_s: Option<Printed>,
    /// Write requests per second.
    pub writes_per_s: Option<Printed>,
    /// Written, in 2^20 bytes per second.
    pub write_mib_per_s: Option<Printed>,
    /// Mean latency in microseconds, of waits or of small reads.
    pub mean_us: Option<Printed>,
}

/// A row of the statistics of an instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StatisticRow {
    /// Its name.
    pub name: String,
    /// The difference between the snapshots.
    pub total: Option<Printed>,
    /// Per second.
    pub per_s: Option<Printed>,
}

/// A named figure: of the load profile, the time model, or of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NamedFigure {
    /// Its name.
    pub name: String,
    /// The instance in a report of several; `Sum` for their sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    /// Its value.
    pub value: Printed,
}

/// Averages of one-minute metrics of one instance in a snapshot of a capture.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaptureMetrics {
    /// Number of the instance.
    pub instance: String,
    /// Number of one-minute samples.
    pub minutes: f64,
    /// Each metric by the name of its column.
    pub figures: Vec<(String, Printed)>,
}

/// Everything that was read from one report, or from one snapshot of a capture.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DatabaseReport {
    /// The file.
    pub file: String,
    /// Its kind.
    pub kind: ReportKind,
    /// Heading of the last section that was read, if the file ends before the report does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_after: Option<String>,
    /// Who it is about.
    pub identity: DatabaseIdentity,
    /// When.
    pub window: SnapshotWindow,
    /// Load profile, per second, by the name of its line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub load_profile: Vec<NamedFigure>,
    /// I/O profile, per second: reads and writes by the name of the line, such as
    /// `Total Requests: read`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub io_profile: Vec<NamedFigure>,
    /// Time model, in seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub time_model: Vec<NamedFigure>,
    /// CPU of the host in percent: `%User`, `%System`, `%WIO`, `%Idle`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_cpu: Vec<NamedFigure>,
    /// Waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitRow>,
    /// Histograms of waits.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histograms: Vec<WaitHistogram>,
    /// I/O by function.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub functions: Vec<IoStatRow>,
    /// I/O by file type.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_types: Vec<IoStatRow>,
    /// Statistics that say something about I/O.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub statistics: Vec<StatisticRow>,
    /// Figures of each instance and their sum, in a report of several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_instance: Vec<NamedFigure>,
    /// Parameters that matter to I/O.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<(String, String)>,
    /// Metrics of each instance, in a capture.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<CaptureMetrics>,
    /// What the sessions of a spool counted themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<LoopRecord>,
    /// What the reader of the file noticed: cells that were not read, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_number_is_two_numbers_in_the_journal() {
        let printed = Printed {
            value: 5.1,
            half: 0.05,
        };
        let text = serde_json::to_string(&printed).unwrap();
        assert_eq!(text, "[5.1,0.05]");
        assert_eq!(serde_json::from_str::<Printed>(&text).unwrap(), printed);
    }

    #[test]
    fn an_empty_report_takes_little_space_and_is_read_again() {
        let report = DatabaseReport::default();
        let text = serde_json::to_string(&report).unwrap();
        assert!(!text.contains("waits"), "{text}");
        assert_eq!(
            serde_json::from_str::<DatabaseReport>(&text).unwrap(),
            report
        );
    }
}
