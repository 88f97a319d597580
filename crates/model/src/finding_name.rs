//! The table of findings: name, cause, weight, severity, what it means and what to do.
//!
//! docs/findings.md is made of it. Within a cause the strongest evidence comes first.

use super::figure::Figure;
use super::trust_cause::{TrustCause, Weight};

/// The figures that a warning of a kind is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FindingReach {
    /// All figures of the run.
    Run,
    /// Those of the load at which it was found.
    Load,
    /// Always this one.
    Figure(Figure),
}

/// What is known about all findings of a name.
#[derive(Debug, Clone, Copy)]
pub struct FindingKind {
    /// As it stands in reports and journals, in kebab case.
    pub name: &'static str,
    /// Its cause.
    pub cause: TrustCause,
    /// What a warning of this name does to the trust in the figures.
    pub weight: Weight,
    /// The figures that it is about.
    pub about: FindingReach,
    /// The severities it has, in words.
    pub severity: &'static str,
    /// When it is raised, and what it means.
    pub meaning: &'static str,
    /// What to do about it.
    pub hint: &'static str,
}

/// The column that most rows leave out.
macro_rules! about {
    () => {
        FindingReach::Run
    };
    (Load) => {
        FindingReach::Load
    };
    ($figure:ident) => {
        FindingReach::Figure(Figure::$figure)
    };
}

macro_rules! finding_names {
    ($($cause:ident {
        $($variant:ident = $name:literal, $weight:ident $(of $about:ident)?, $severity:literal,
            $meaning:literal, $hint:literal;)+
    })+) => {
        /// The names of all findings, for scripts to match on.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FindingName {
            $($(#[doc = concat!("The finding `", $name, "`.")] $variant,)+)+
        }

        impl FindingName {
            /// All of them, by cause.
            pub const ALL: &[FindingName] = &[$($(FindingName::$variant,)+)+];

            /// The row of the table.
            pub const fn kind(self) -> FindingKind {
                match self {
                    $($(FindingName::$variant => FindingKind {
                        name: $name,
                        cause: TrustCause::$cause,
                        weight: Weight::$weight,
                        about: about!($($about)?),
                        severity: $severity,
                        meaning: $meaning,
                        hint: $hint,
                    },)+)+
                }
            }
        }
    };
}

impl FindingKind {
    /// The only figure that it is always about.
    pub const fn figure(self) -> Option<Figure> {
        match self.about {
            FindingReach::Figure(figure) => Some(figure),
            FindingReach::Run | FindingReach::Load => None,
        }
    }
}

impl FindingName {
    /// As it stands in reports and journals, in kebab case.
    pub const fn name(self) -> &'static str {
        self.kind().name
    }

    /// The finding of this name; `None` for one of another version.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name)
    }
}

finding_names! {
    Failures {
        WrongBlocks = "wrong-blocks", Spoil, "warning",
            "With `--verify`, or fio's: blocks differ from what was written. *Rotten*: in bits. *Misdirected*: written for \
             elsewhere. *Torn*: part of a write. *Stale*: an earlier write, the last is lost.",
            "Trust this storage with nothing yet.";
        JobFailed = "job-failed", Spoil, "warning",
            "A job ended by an error.",
            "Measure again.";
        Failures = "failures", Doubt, "warning",
            "Operations failed; figures are of the others.",
            "Read `dmesg` and the target's log.";
        BrokenRounds = "broken-rounds", Doubt, "warning",
            "Rounds of a soak broke; the text has up to 20 causes, with dates.",
            "See what happened to the target then.";
        SpoolErrors = "spool-errors", Doubt, "warning",
            "A spool of `rigel sql script` has errors.",
            "Remove the cause, run it again.";
    }
    Cache {
        MemoryDevice = "memory-device", Spoil, "warning",
            "zram or a RAM disk: no storage is measured.",
            "Give a device of the storage.";
        MemoryFilesystem = "memory-filesystem", Spoil, "warning",
            "tmpfs, ramfs, hugetlbfs or devtmpfs: no storage is measured.",
            "Give a file on the storage.";
        Holes = "holes", Spoil, "note, refusal",
            "Blocks never written need no device to be read. Refusal from 0.1 % of the target.",
            "Give a directory, or fill the file. `--allow-holes` measures it anyway.";
        NotFromDevice = "not-from-device", Doubt of Load, "warning",
            "The device moved below 98 % of this point's bytes: a cache, hole or layer answered.",
            "Measure a written file with direct I/O.";
        Cache = "cache", Doubt, "warning",
            "Reads of a part have a median below 70 % of the whole's, parts just read were a fifth faster, or large \
             reads met cached blocks ([how](methods/calibrate_io.md#what-a-calibration-cannot-see)).",
            "Measure a target many times as large as the cache.";
        PageCache = "page-cache", Doubt, "warning, refusal",
            "The page cache served over 1 % and 200 blocks of a server; in `layers`, over 5 %; or fio's, without \
             `direct=1`. Refusal: all.",
            "Direct I/O (`debug_io_direct=data`), less memory, or a larger `--scale`.";
        BufferCache = "buffer-cache", Doubt, "warning",
            "Tables are below twice the buffer cache; in `layers`, it served over 5 % of blocks.",
            "Larger `--scale` or smaller `--buffer-cache`.";
        PageCacheUnlimited = "page-cache-unlimited", Doubt, "warning",
            "As `memory-limit`, but the memory could not be limited.",
            "PostgreSQL 16, root, or tables larger than memory.";
        ReadsFromMemory = "reads-from-memory", Doubt, "warning",
            "A database's single-block reads average below 50 µs, or a fifth are below 64 µs with a second mode.",
            "The disk's own demand; Oracle: `filesystemio_options = setall`.";
        CacheSuspected = "cache-suspected", Doubt, "warning",
            "A small target (below memory, or 64 GiB unless local flash), half of whose reads at low load are \
             faster than its medium.",
            "Measure a target several times as large as any cache.";
        Memory = "memory", Doubt, "note, warning",
            "The target is smaller than memory. Warning with `--buffered`: it is kept whole.",
            "Omit `--buffered`, or use a larger target.";
        SmallScratch = "small-scratch", Aside, "note",
            "The scratch file is below 4 GiB: a quarter of the free space.",
            "Make room, or name a larger filesystem.";
        Modes = "modes", Aside, "note",
            "One at a time, operations ended in several ways.",
            "A cache or tier in front, or a second path.";
        SecondPass = "second-pass", Aside, "note",
            "A second pass over a part was over 1.3 times as fast.",
            "See `cache`.";
        MemoryLimit = "memory-limit", Aside, "note",
            "A private server reads through the page cache; memory is limited to 32 MiB beyond its own.",
            "Nothing.";
        Compression = "compression", Doubt, "warning",
            "A filesystem with compression reads compressible data faster.",
            "Let Rigel make the file, or mount without.";
    }
    Contradiction {
        Coverage = "coverage", Spoil, "warning",
            "Uniform I/O touched a number of blocks over six standard deviations from chance.",
            "Report this: Rigel read wrongly.";
        LittlesLaw = "littles-law", Spoil, "warning",
            "Rate times response time differs from what was outstanding by over 1 % (imported: 15 %).",
            "Report this: operations were lost or counted twice.";
        ReportDoubted = "report-doubted", Spoil, "warning",
            "Three checks of a report fail: edited, invented, or misread.",
            "Use no figure of it.";
        KernelTime = "kernel-time", Doubt of Load, "warning, note",
            "The kernel's mean time of I/Os contradicts Rigel's: over 1.25 times it (warning), or below half and 100 \
             µs less ([when](methods/statistics.md#the-kernels-mean)).",
            "Look for other users of the disk, `io.max`, `nr_requests`, locks of the filesystem.";
        Witnesses = "witnesses", Doubt, "warning",
            "Two counts of blocks differ by over 1 % and 200.",
            "Look for other sessions, a vacuum, a checkpoint.";
        FiguresDiffer = "figures-differ", Doubt, "warning",
            "Figures of a report that must agree differ; the text has both.",
            "Make an edited report again.";
        FiguresImpossible = "figures-impossible", Doubt, "warning",
            "An impossible figure is not used.",
            "As `figures-differ`; 19c global reports count reads by function wrongly.";
        RepeatedTime = "repeated-time", Doubt, "warning",
            "Imported samples begin at the same time.",
            "One file each.";
        ReadsCountedApart = "reads-counted-apart", Aside, "note",
            "Two counts of a report's random reads differ by over 10 %; the first is used.",
            "Use the range.";
        CpuAboveDbTime = "cpu-above-db-time", Aside, "note",
            "DB CPU exceeds DB time.",
            "Do not use shares of DB time.";
        CountCut = "count-cut", Aside, "note",
            "AWR text cuts histogram counts to five characters; whole ones are used.",
            "Nothing.";
    }
    Incomplete {
        TraceIncomplete = "trace-incomplete", Doubt, "warning",
            "`watch`: the trace lacks over 2 % of requests; those intervals use counters.",
            "Stop other tracers, run it again.";
        EventsLost = "events-lost", Doubt, "note, warning",
            "`watch`: the kernel dropped events; warning: of over 2 % of requests.",
            "`nice -n -10`";
        RankLost = "rank-lost", Doubt, "warning",
            "A lost host ended the run; finished points count.",
            "Mend it, then `--resume` with as many ranks.";
        EndedInStall = "ended-in-stall", Doubt, "warning",
            "The run ended after ten seconds without a completion; not resumed.",
            "Read `dmesg` and the server's log, then resume.";
        Incomplete = "incomplete", Doubt, "warning",
            "Not all points were measured.",
            "`--resume DIR`";
        ReportCut = "report-cut", Doubt, "warning",
            "The file ends before its report; whole parts were read.",
            "Give the whole file.";
        InstancesMissing = "instances-missing", Doubt, "warning",
            "Reports or snapshots lack instances of a RAC.",
            "Give all instances, or `awrgrpt.sql`.";
        OneContainer = "one-container", Aside, "note",
            "A report of one pluggable database lacks log writes.",
            "Give the report of the root.";
        SeriesGaps = "series-gaps", Aside, "note",
            "Windows overlap or leave gaps, or an instance was restarted.",
            "Nothing, if meant.";
        RankJournal = "rank-journal", Aside, "note",
            "A rank other than 0 wrote this journal.",
            "Read that of rank 0.";
        Imported = "imported", Aside, "note",
            "Another tool measured this; only what it reports is compared.",
            "Nothing.";
    }
    Stall {
        Stall = "stall", Doubt, "warning",
            "An operation took 20 ms and 50 times the p99, three stalls took 1 % of the time, or a \
             watched disk completed nothing for 10 s ([Stalls](methods/statistics.md#stalls)).",
            "Find it in the page's timeline; read `dmesg` and the device's log, on the named host first.";
        SlowReads = "slow-reads", Doubt, "warning",
            "A report's single-block reads average above 10 ms.",
            "`rigel calibrate` shows what the storage can do.";
        Tail = "tail", Aside, "note",
            "With one outstanding read, the p99 is ten times the median.",
            "Nothing; no load causes it.";
    }
    OtherLoad {
        OtherLoad = "other-load", Doubt, "warning",
            "Others used the device before the run: over 50 IOPS, 5 MB/s or 5 % busy.",
            "Find and stop them (`iotop -o`).";
        DeviceLoad = "device-load", Doubt of Load, "warning",
            "The device moved over 102 % of this point's bytes.",
            "Measure when it is idle: others took a part.";
        IoPressure = "io-pressure", Doubt, "warning",
            "Before the run, tasks waited for I/O over 10 % of the time.",
            "Find them: `iotop -o`.";
    }
    BusyMachine {
        CpuLimit = "cpu-limit", Doubt of Load, "warning, note",
            "Rigel's threads used over 95 % of their CPU time (closed loop); note in `layers`: CPUs over 90 % busy.",
            "More `--workers`, or it is this machine's limit.";
        SchedulingDelay = "scheduling-delay", Doubt of Load, "warning",
            "Operations were issued late: p99 above half the median and 10 µs.",
            "Leave it more CPU; service times exclude it.";
        Descheduled = "descheduled", Doubt of Load, "warning",
            "Rigel's threads waited for CPUs over 2 % of the time.",
            "Stop other users of the CPUs.";
        CpuStolen = "cpu-stolen", Doubt of Load, "warning",
            "The hypervisor took over 1 % of CPU time during a point.",
            "A less busy host, or another time.";
        CpuBusy = "cpu-busy", Doubt, "warning",
            "Before the run, CPUs were over 25 % busy.",
            "Find and stop it (`top`).";
        Steal = "steal", Doubt, "warning",
            "Before the run, the hypervisor took over 1 % of CPU time.",
            "As `cpu-stolen`.";
        Suspended = "suspended", Doubt, "note, warning",
            "Rigel itself did not run for a second or longer: stopped, or its machine was. That time is left out; \
             warning: nothing else was measured.",
            "A paused VM, a frozen cgroup, `SIGSTOP`; not the storage.";
        Cpus = "cpus", Aside, "note",
            "This process may use one CPU only.",
            "Allow more.";
        OwnCost = "own-cost", Aside, "note",
            "`watch` itself used over 2 % of a CPU.",
            "Nothing, if CPUs are idle.";
    }
    Drift {
        Drift = "drift", Doubt, "warning",
            "Visits to one load vary by over 5 % beyond chance, or a load was held above one that was not.",
            "Measure at a quieter time, or `--for 15min`.";
        ClosingDiffers = "closing-differs", Doubt of Load, "warning",
            "The longer closing measurement, which counts, differs from the search.",
            "`--for 15min`, or `rigel soak` for hours.";
        Unsteady = "unsteady", Doubt of Load, "warning",
            "Throughput, or response time of an open loop, changed by 10 % within a point \
             ([Steady](methods/statistics.md#steady)).",
            "Measure longer, or at a quieter time.";
        ClockSet = "clock-set", Aside, "note",
            "The clock was set during a soak; rounds keep the earlier times.",
            "Nothing.";
        ClockBack = "clock-back", Aside, "note",
            "The clock was set back; rounds are sorted by date.",
            "Nothing.";
    }
    Limit {
        BurstCredit = "burst-credit", Doubt, "warning",
            "Throughput fell for good from 1.25 times as much or more: credit ran out.",
            "The later rate is the sustained one; run again now.";
        Cap = "cap", Aside, "note",
            "Throughput stays within 1 % over three loads and a factor of four; response time grows.",
            "Look for provisioned IOPS, the machine's limit, `io.max`.";
        RateNotMet = "rate-not-met", Aside, "note",
            "An offered rate was not served: too many waited at the end, or ever more ([an open loop that is \
             too short](methods/statistics.md#an-open-loop-that-is-too-short)).",
            "Offer less.";
    }
    TooShort {
        NothingDone = "nothing-done", Spoil, "warning",
            "A closed loop completed nothing, and nothing failed.",
            "Measure longer.";
        NotReached = "not-reached", Doubt of Load, "warning",
            "Large I/O still gained over 2 % at the last depth; or Rigel was the limit of an offered load.",
            "`rigel curve --size 1MiB --depth 32..256`; `mpiexec -n 4 rigel …`";
        NotPreconditioned = "not-preconditioned", Doubt of Writes, "warning",
            "Flash was measured before twice its size was written.",
            "`--precondition`, or `rigel soak TARGET --for 4h --mix write=100`";
        Rounds = "rounds", Doubt, "warning",
            "Rounds below 40, or too much alike, have no interval.",
            "A longer soak, or shorter `--every`.";
        RateUncertain = "rate-uncertain", Doubt of SustainedRate, "warning",
            "The interval of the rate within the bound, or of `fit`'s multiple, spans over 1.5 times, or none is decided.",
            "`--for 15min`; of `fit` `--point-time 60s`";
        DatabaseIdle = "database-idle", Doubt, "warning",
            "The database made under one request per second.",
            "A report of a busy hour.";
        TooShort = "too-short", Aside, "note",
            "Below ten independent observations: no interval, no verdict.",
            "`--point-max`, or offer less.";
        Precision = "precision", Aside, "note",
            "Intervals exceed `--precision`.",
            "`--point-max`";
        ShortIntervals = "short-intervals", Aside, "note",
            "`watch`: intervals below half of `--every` count in sums alone.",
            "Nothing.";
    }
    Hosts {
        Unequal = "unequal", Doubt, "warning",
            "A host has below 0.8 of the median rate, or 1.5 times the p99, beyond chance \
             ([ranks](methods/ranks-figures.md#a-slow-host)).",
            "Compare it by the named facts.";
        Skew = "skew", Doubt, "warning, note",
            "Windows of hosts are a tenth apart; note: none is common \
             ([ranks](methods/ranks-figures.md#common-windows)).",
            "Find the host short of CPUs; measure longer.";
        RankClock = "rank-clock", Doubt, "warning",
            "A host's clock drifts over 500 ppm or is uncertain by a tenth of a window.",
            "Check clock source and network.";
        WallClock = "wall-clock", Aside, "warning",
            "Wall clocks differ by over a second; no figure uses them.",
            "Synchronise them.";
    }
    Demand {
        DemandIncomplete = "demand-incomplete", Doubt, "warning, note",
            "Requests of unknown kind are in no stream; note: one of several log members.",
            "Read it as \"at least\"; give the whole instance.";
        NotTraced = "not-traced", Doubt, "warning",
            "`watch` could not trace requests: rates, mean sizes and times only.",
            "Root, or a tracing group: [Rights](methods/watch.md#rights).";
        LogWritesHidden = "log-writes-hidden", Doubt, "warning, note",
            "Without flushes (write-through disks) log writes count as page writes.",
            "Add the database's URL.";
        WaitsHidden = "waits-hidden", Doubt, "warning",
            "PostgreSQL hides waits of other users' sessions.",
            "`GRANT pg_monitor`";
        CalibrationElsewhere = "calibration-elsewhere", Doubt, "warning",
            "`--against` a calibration of another host or disk.",
            "Nothing if you move there; else calibrate here.";
        DemandCensored = "demand-censored", Aside, "note",
            "Sessions waited over 1 % for buffers, log or limits, or 30 % for reads, and may want more.",
            "Read it as \"at least\".";
        TimesHidden = "times-hidden", Aside, "note",
            "`track_io_timing` is off: no times, usual limits in `fit`.",
            "Turn it on (`pg_test_timing` shows its cost).";
        BlockAssumed = "block-assumed", Aside, "note",
            "`watch` takes 8 KiB for a block.",
            "`--size`";
        RareStream = "rare-stream", Aside, "note",
            "A stream below a thousandth of operations and bytes is offered, but decides nothing.",
            "Nothing.";
        Bursts = "bursts", Aside, "note",
            "The busiest minute is many times the mean.",
            "Size for it.";
        BurstsUnknown = "bursts-unknown", Aside, "note",
            "Averages hide bursts.",
            "Shorter windows.";
        Exadata = "exadata", Aside, "note",
            "Latencies are of Exadata's flash or memory.",
            "No objective for other storage.";
        ScaleUp = "scale-up", Aside, "note",
            "Numbers that end file names are read as sessions.",
            "Rename if not.";
    }
    Setup {
        NotVerified = "not-verified", Doubt, "warning",
            "`--verify` compared no block: none was read, or what was written is unknown.",
            "Measure a scratch file, or run it again on what it filled.";
        DirectIo = "direct-io", Doubt, "warning",
            "ZFS, FUSE, 9p, vboxsf, virtiofs or `data=journal` may buffer direct I/O.",
            "A file on ext4 or XFS, or the device.";
        LayeredFilesystem = "layered-filesystem", Doubt, "warning",
            "overlay, aufs or ecryptfs may copy or buffer.",
            "A file on the filesystem below, such as a volume.";
        LoopDevice = "loop-device", Doubt, "warning",
            "A loop device: two layers, perhaps the page cache.",
            "The file itself, or `losetup --direct-io=on`.";
        CopyOnWrite = "copy-on-write", Doubt, "warning",
            "btrfs, ZFS or bcachefs write blocks anew and check sums.",
            "btrfs: `chattr +C` on the empty directory.";
        Fragmented = "fragmented", Doubt, "note, warning",
            "16 or more pieces, on average below 1 MiB; warning below 64 KiB, or if it spins.",
            "Make the file again; `e4defrag`, `xfs_fsr`.";
        Scheduler = "scheduler", Doubt, "warning",
            "A device that does not spin has a scheduler, which holds requests back.",
            "`echo none > /sys/block/NAME/queue/scheduler`";
        Clock = "clock", Doubt, "warning",
            "Reading the clock, as every I/O does, needs a system call.",
            "`echo tsc` to `current_clocksource`, if offered; else see `dmesg`.";
        Engine = "engine", Doubt, "warning",
            "io_uring is not possible, so libaio is used.",
            "`sysctl kernel.io_uring_disabled=0`; in containers, seccomp.";
        NotDurable = "not-durable", Doubt, "warning",
            "A server's setting makes writes less safe.",
            "Set it before comparing writes.";
        IndexCondition = "index-condition", Doubt, "warning",
            "MySQL also reads the row after a range.",
            "Expect one more page per read.";
        RandomReadAhead = "random-read-ahead", Doubt, "warning",
            "`innodb_random_read_ahead` is on: unasked pages are read.",
            "Turn it off.";
        HoldersUnseen = "holders-unseen", Aside, "warning",
            "Others may have the written file open, unseen from here.",
            "Make sure, or give a directory.";
        PasswordWithoutTls = "password-without-tls", Aside, "warning",
            "A password crosses the network in clear (`sslmode=disable`).",
            "`sslmode=require` or `verify-full`";
        IoUring = "io-uring", Aside, "note",
            "`kernel.io_uring_disabled` is 2, or 1 (privileged only).",
            "`sysctl kernel.io_uring_disabled=0`";
        Aio = "aio", Aside, "note",
            "Below 4096 asynchronous I/Os are left.",
            "`sysctl fs.aio-max-nr=1048576`";
        LockedMemory = "locked-memory", Aside, "note",
            "Below 64 MiB may be locked: buffers may stay unregistered.",
            "`ulimit -l unlimited`";
        OpenFiles = "open-files", Aside, "note",
            "Below 1024 files may be open.",
            "`ulimit -n 1024`";
        Pipelined = "pipelined", Aside, "note",
            "`--pipeline`: several operations in flight a connection.",
            "Compare equal pipelines only.";
        NetworkFilesystem = "network-filesystem", Aside, "note",
            "nfs, cifs, smb3, ceph, lustre, gpfs or beegfs: with network and server cache.",
            "A file several times the server's memory.";
        StackedDevice = "stacked-device", Aside, "note",
            "`dm-` or `md`: all devices below together.",
            "Nothing.";
        Merges = "merges", Aside, "note",
            "The kernel may merge adjacent requests (`nomerges` is 0).",
            "Nothing.";
        WriteCache = "write-cache", Aside, "note",
            "A write is complete when in the device's cache.",
            "Nothing.";
        Rotational = "rotational", Aside, "note",
            "The device says it spins, as virtual disks often do wrongly.",
            "Nothing.";
        ReadOnly = "read-only", Aside, "note",
            "The filesystem is mounted read-only.",
            "For writes, another target.";
        WriteGuard = "write-guard", Aside, "note",
            "`check`: writes would be refused, whatever `--destroy` says.",
            "Follow its hint.";
        Sim = "sim", Aside, "note",
            "The target is a model.",
            "Nothing, if meant.";
        Null = "null", Aside, "note",
            "`null:` does no I/O: Rigel's own speed.",
            "Nothing, if meant.";
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::path::Path;

    /// Maximum number of words of the page.
    const WORDS_MAX: usize = 3500;

    const OPENING: &str = "\
# Findings

<!-- Made from crates/model/src/finding_name.rs: `UPDATE_GOLDEN=1 cargo test -p rigel-model --lib` writes it again. -->

A finding is a sentence about a run: it names a thing and its value, and its hint says what to do. It has a severity, a
short name for scripts to match on (`findings[].name` in JSON), and a cause (`findings[].cause`).

* A *note* does not affect the figures.
* A *warning* means that the figures may mislead.
* A *refusal* means that a run would be meaningless. Rigel does not start it, unless an option allows it.

One cause, such as a busy machine, shows in many findings. Text and page show those of one cause as one; `rigel report
RUN --verbose`, the page and JSON have each of them. Their sum is one line:

* *Trust: good.* No warning affects the figures. *Good, but for MB/s*: one affects only that one.
* *Trust: not checked.* Another tool measured, and reports nothing to check.
* *Trust: with care.* The line names the most damaging cause. Then come the hints of the first three.
* *Trust: do not use.* The figures are not of the storage, or contradict themselves: a refusal, or a name with \u{2717}.

Names with \u{2013} affect no figure, whatever their severity; with \u{25E6} only those of the loads
where it was. The host is watched for one second before a run, without
I/O of Rigel's own. `rigel check` shows the same findings without a run, and exits with status 3 if one is a warning or
a refusal.
";

    /// docs/findings.md.
    fn page() -> String {
        let mut page = OPENING.to_string();
        for cause in TrustCause::ALL {
            let title = cause.title();
            let (first, rest) = title.split_at(1);
            let _ = write!(
                page,
                "\n## {}{rest}\n\n| name | severity | what it means | what to do |\n|---|---|---|---|\n",
                first.to_uppercase()
            );
            let kinds = FindingName::ALL.iter().map(|name| name.kind());
            for kind in kinds.filter(|kind| kind.cause == cause) {
                let mark = match kind.weight {
                    Weight::Spoil => " \u{2717}",
                    Weight::Aside if kind.severity != "note" => " \u{2013}",
                    Weight::Doubt if kind.about != FindingReach::Run => " \u{25E6}",
                    Weight::Aside | Weight::Doubt => "",
                };
                let _ = writeln!(
                    page,
                    "| `{}`{mark} | {} | {} | {} |",
                    kind.name, kind.severity, kind.meaning, kind.hint
                );
            }
        }
        page
    }

    #[test]
    fn the_page_of_findings_is_made_of_the_table() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/findings.md");
        let page = page();
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, &page).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap();
        assert!(
            written == page,
            "docs/findings.md differs from the table: UPDATE_GOLDEN=1 cargo test writes it anew"
        );
        let words = page.split_whitespace().count();
        assert!(words <= WORDS_MAX, "{words} words, at most {WORDS_MAX}");
    }

    #[test]
    fn names_are_kebab_case_and_known_by_it() {
        for name in FindingName::ALL {
            let kebab = name.name();
            assert_eq!(FindingName::of(kebab), Some(*name));
            let mut words = kebab.split('-');
            assert!(
                words.all(|word| !word.is_empty() && word.chars().all(|c| c.is_ascii_lowercase())),
                "{kebab}"
            );
        }
    }

    #[test]
    fn causes_are_in_order_of_damage_and_complete() {
        assert!(TrustCause::ALL.is_sorted());
        for cause in TrustCause::ALL {
            assert!(
                FindingName::ALL
                    .iter()
                    .any(|name| name.kind().cause == cause),
                "{cause:?}"
            );
        }
    }
}
