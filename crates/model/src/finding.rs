//! A finding: a sentence about a run that a reader must know, with its evidence and its hint.

use super::in_line;
use super::text::read_in_line;
use serde::{Deserialize, Serialize};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth knowing; the figures stand.
    Note,
    /// The figures may mislead.
    Warning,
    /// The run would be meaningless, or is not allowed.
    Refusal,
}

macro_rules! finding_names {
    ($($(#[$doc:meta])+ $variant:ident = $name:literal,)+) => {
        /// The names of all findings, for scripts to match on. docs/findings.md says what to do about each.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FindingName {
            $($(#[$doc])+ $variant,)+
        }

        impl FindingName {
            /// All of them, by name.
            pub const ALL: &[FindingName] = &[$(FindingName::$variant,)+];

            /// As it stands in reports and journals, in kebab case.
            pub const fn name(self) -> &'static str {
                match self {
                    $(FindingName::$variant => $name,)+
                }
            }
        }
    };
}

finding_names! {
    /// The limit of kernel AIO requests is near.
    Aio = "aio",
    /// Rounds of a soak ended early: the target failed.
    BrokenRounds = "broken-rounds",
    /// The buffer cache of the database answers, and storage is not read.
    BufferCache = "buffer-cache",
    /// Nobody said how large a block of the database is.
    BlockAssumed = "block-assumed",
    /// The storage was fast at first, then fell to a lower rate: a credit for bursts ran out.
    BurstCredit = "burst-credit",
    /// The run is too short to see burst credit that lasts for minutes.
    BurstUnseen = "burst-unseen",
    /// The busiest minute of a snapshot has many times its mean rate.
    Bursts = "bursts",
    /// The figures are averages, and bursts within them are unknown.
    BurstsUnknown = "bursts-unknown",
    /// A cache between Rigel and the device answers reads.
    Cache = "cache",
    /// The whole target may lie in a cache.
    CacheSuspected = "cache-suspected",
    /// The calibration is of other storage than that which is watched.
    CalibrationElsewhere = "calibration-elsewhere",
    /// Throughput runs into a hard limit.
    Cap = "cap",
    /// The clock source of the machine is slow or coarse.
    Clock = "clock",
    /// The clock on the wall was set back during the series.
    ClockBack = "clock-back",
    /// The filesystem compresses or shares blocks.
    Compression = "compression",
    /// The closing measurement gave another throughput than the search.
    ClosingDiffers = "closing-differs",
    /// The filesystem writes to a new place each time.
    CopyOnWrite = "copy-on-write",
    /// A report cut counts to the width of their column; the whole ones are used.
    CountCut = "count-cut",
    /// The blocks touched are not those that chance would touch.
    Coverage = "coverage",
    /// A report has more CPU time than DB time.
    CpuAboveDbTime = "cpu-above-db-time",
    /// Other processes use the CPU before the run.
    CpuBusy = "cpu-busy",
    /// The CPU is the limit, and not the storage.
    CpuLimit = "cpu-limit",
    /// The hypervisor took CPU time for others during a point.
    CpuStolen = "cpu-stolen",
    /// The process may use fewer CPUs than there are.
    Cpus = "cpus",
    /// The database of a report asked for nearly nothing.
    DatabaseIdle = "database-idle",
    /// The database waited for storage, and may have wanted more than it got.
    DemandCensored = "demand-censored",
    /// Requests of a report's database are in none of the streams of its demand.
    DemandIncomplete = "demand-incomplete",
    /// Threads of Rigel waited for a CPU.
    Descheduled = "descheduled",
    /// The device transferred more than this run asked for: it has other work.
    DeviceLoad = "device-load",
    /// Direct I/O is not possible here.
    DirectIo = "direct-io",
    /// The same load gave another rate at the end than at first.
    Drift = "drift",
    /// The run ended while nothing completed.
    EndedInStall = "ended-in-stall",
    /// A better engine is not available, so another is used.
    Engine = "engine",
    /// The kernel dropped events of requests.
    EventsLost = "events-lost",
    /// The storage of a report is an Exadata.
    Exadata = "exadata",
    /// Operations failed; the figures are of the others.
    Failures = "failures",
    /// Two figures of one report contradict each other.
    FiguresDiffer = "figures-differ",
    /// A figure of a report is impossible for any storage.
    FiguresImpossible = "figures-impossible",
    /// The file lies in many pieces.
    Fragmented = "fragmented",
    /// Others may have the file open that is written to.
    HoldersUnseen = "holders-unseen",
    /// The target has blocks that were never written.
    Holes = "holes",
    /// A figure was imported, and the tool does not report everything.
    Imported = "imported",
    /// The run ended before all of its points were measured.
    Incomplete = "incomplete",
    /// The server reads the row after the last of a range, too.
    IndexCondition = "index-condition",
    /// Reports do not cover all instances of a database.
    InstancesMissing = "instances-missing",
    /// Processes wait for I/O before the run.
    IoPressure = "io-pressure",
    /// `io_uring` is not available, or limited.
    IoUring = "io-uring",
    /// The kernel's mean time of I/Os contradicts Rigel's.
    KernelTime = "kernel-time",
    /// The target lies on a filesystem in layers, such as overlayfs.
    LayeredFilesystem = "layered-filesystem",
    /// Rate, response time and outstanding operations do not fit together.
    LittlesLaw = "littles-law",
    /// Little memory may be locked, so buffers may not be registered.
    LockedMemory = "locked-memory",
    /// The log writes of a disk look like its other writes.
    LogWritesHidden = "log-writes-hidden",
    /// The target is a loop device.
    LoopDevice = "loop-device",
    /// The target fits into memory, or memory is short.
    Memory = "memory",
    /// The device keeps its data in memory.
    MemoryDevice = "memory-device",
    /// The filesystem keeps its data in memory.
    MemoryFilesystem = "memory-filesystem",
    /// The memory of a private server is limited, page cache included.
    MemoryLimit = "memory-limit",
    /// The kernel may merge adjacent requests.
    Merges = "merges",
    /// The target lies on a filesystem over the network.
    NetworkFilesystem = "network-filesystem",
    /// A setting of the server makes commits less safe than others are.
    NotDurable = "not-durable",
    /// The device transferred less than was asked for: something else answered.
    NotFromDevice = "not-from-device",
    /// Flash was not written full before its writes were measured.
    NotPreconditioned = "not-preconditioned",
    /// The requests of disks are counted and not traced.
    NotTraced = "not-traced",
    /// Throughput still rose at the maximum depth.
    NotReached = "not-reached",
    /// No operation was completed.
    NothingDone = "nothing-done",
    /// The target is null: nothing is measured but Rigel.
    Null = "null",
    /// A report is of one container of a database.
    OneContainer = "one-container",
    /// Few files may be open at the same time.
    OpenFiles = "open-files",
    /// The device works for others before the run.
    OtherLoad = "other-load",
    /// Rigel itself used noticeable CPU time.
    OwnCost = "own-cost",
    /// The page cache answers, and storage is not read.
    PageCache = "page-cache",
    /// The memory of a private server could not be limited.
    PageCacheUnlimited = "page-cache-unlimited",
    /// A password is sent without encryption.
    PasswordWithoutTls = "password-without-tls",
    /// Sessions of a database have several operations in flight on each connection.
    Pipelined = "pipelined",
    /// Some figures are less precise than was asked for.
    Precision = "precision",
    /// The server reads pages that nobody asked for.
    RandomReadAhead = "random-read-ahead",
    /// A stream of a demand is too rare to decide how much of it a storage carries.
    RareStream = "rare-stream",
    /// The clock of a rank drifts, or is not known for certain.
    RankClock = "rank-clock",
    /// A rank was lost, which ended the run.
    RankLost = "rank-lost",
    /// The journal is that of a rank, and not of the run.
    RankJournal = "rank-journal",
    /// The offered rate was not served.
    RateNotMet = "rate-not-met",
    /// The device is read-only.
    ReadOnly = "read-only",
    /// Ways to count the random reads of a report give different rates.
    ReadsCountedApart = "reads-counted-apart",
    /// Reads of a database came from memory and not from storage.
    ReadsFromMemory = "reads-from-memory",
    /// A report ends before its end.
    ReportCut = "report-cut",
    /// Several figures of a report contradict each other.
    ReportDoubted = "report-doubted",
    /// The device says that it spins.
    Rotational = "rotational",
    /// There are too few rounds for an interval.
    Rounds = "rounds",
    /// Reports are read as a series with more and more sessions.
    ScaleUp = "scale-up",
    /// The I/O scheduler reorders or delays requests.
    Scheduler = "scheduler",
    /// Rigel itself issued operations late.
    SchedulingDelay = "scheduling-delay",
    /// The second pass over the same part was faster: a cache holds it.
    SecondPass = "second-pass",
    /// Windows of a series overlap, leave gaps, or an instance was restarted between.
    SeriesGaps = "series-gaps",
    /// Intervals of a watch were cut short.
    ShortIntervals = "short-intervals",
    /// The target is a model.
    Sim = "sim",
    /// The windows of several hosts do not lie over each other.
    Skew = "skew",
    /// Reads of a database take longer than a published bar.
    SlowReads = "slow-reads",
    /// The scratch file is small.
    SmallScratch = "small-scratch",
    /// A spool has errors of the database or its client.
    SpoolErrors = "spool-errors",
    /// The device is made of others.
    StackedDevice = "stacked-device",
    /// Single operations took far longer than all others.
    Stall = "stall",
    /// The hypervisor takes CPU time for others before the run.
    Steal = "steal",
    /// The p99 is far above the median at low load.
    Tail = "tail",
    /// A server does not measure how long its I/O takes.
    TimesHidden = "times-hidden",
    /// A point of an open loop is too short for its load.
    TooShort = "too-short",
    /// The kernel's counters have requests that its trace has not.
    TraceIncomplete = "trace-incomplete",
    /// One host is slower than the others.
    Unequal = "unequal",
    /// Throughput or response time changed during a point.
    Unsteady = "unsteady",
    /// A server hides from this user what others' sessions wait for.
    WaitsHidden = "waits-hidden",
    /// The wall clocks of the hosts differ.
    WallClock = "wall-clock",
    /// Two independent counts of the same work differ.
    Witnesses = "witnesses",
    /// The device has a write-back cache.
    WriteCache = "write-cache",
    /// What the write guard would say to a run that writes.
    WriteGuard = "write-guard",
}

/// A sentence with its evidence and its hint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// Short stable name, such as `holes` or `scheduler`, for scripts to match on.
    pub name: String,
    /// What was found: names the thing and its value.
    #[serde(deserialize_with = "read_in_line")]
    pub what: String,
    /// What to do about it; empty for a note that needs no action. Older journals have `cure`.
    #[serde(deserialize_with = "read_in_line")]
    pub hint: String,
}

impl Finding {
    /// A finding that does not affect the figures.
    pub fn note(name: FindingName, what: impl Into<String>) -> Self {
        Self {
            severity: Severity::Note,
            name: name.name().into(),
            what: in_line(&what.into()).into_owned(),
            hint: String::new(),
        }
    }

    /// A finding that makes the figures doubtful.
    pub fn warning(name: FindingName, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            name: name.name().into(),
            what: in_line(&what.into()).into_owned(),
            hint: in_line(&hint.into()).into_owned(),
        }
    }

    /// A finding that forbids the run.
    pub fn refusal(name: FindingName, what: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            severity: Severity::Refusal,
            name: name.name().into(),
            what: in_line(&what.into()).into_owned(),
            hint: in_line(&hint.into()).into_owned(),
        }
    }

    /// True if the finding has this name.
    pub fn is(&self, name: FindingName) -> bool {
        self.name == name.name()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_kebab_case_and_each_is_explained() {
        let page = include_str!("../../../docs/findings.md");
        let rows = page.lines().filter_map(|line| {
            line.strip_prefix("| `")?
                .split_once('`')
                .map(|(name, _)| name)
        });
        let mut explained: Vec<&str> = rows.collect();
        explained.sort_unstable();
        let mut names: Vec<&str> = FindingName::ALL.iter().map(|name| name.name()).collect();
        names.sort_unstable();
        assert_eq!(
            explained, names,
            "docs/findings.md has one row for each name"
        );
        let is_kebab = |name: &&str| {
            name.split('-')
                .all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase()))
        };
        assert!(names.iter().all(is_kebab), "{names:?}");
    }
}
