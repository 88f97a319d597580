//! Records of a run: histograms, counts per second, coverage, the journal.
//!
//! Input: times and outcomes of all operations. Output: [`PointRecord`]s, and the journal that
//! contains them. This module stores facts. It never judges and never opens a target.

pub(crate) mod bounds;
pub mod coverage;
pub mod database;
pub mod histogram;
pub mod imported;
pub mod journal;
pub mod loop_record;
mod merge;
pub mod ranks;
mod recording;
mod run_end;
mod stall;
mod suspended;
mod suspension;
mod verified;
pub mod visits;
mod watched;

pub use coverage::{Coverage, CoverageMap};
pub use database::DatabaseReport;
pub use histogram::{Band, Histogram};
pub use imported::Imported;
pub use loop_record::LoopRecord;
pub use merge::RankMerge;
pub use ranks::{
    RankClock, RankFacts, RankGroup, RankLines, RankLost, RankRecord, RankedPoint, TargetIdentity,
};
pub use recording::{
    End, KindRecord, Latencies, OperationTimes, PointRecord, Recorder, SharedWindows, StreamRecord,
    WINDOW, Window,
};
pub use run_end::{Ending, HowEnded, RunEnd};
pub use stall::{StallChange, StallEvent};
pub use suspension::{SUSPENDED, Suspension};
pub use verified::{Verified, WrongBlock};
pub use watched::{
    DatabaseInterval, DiskInterval, FlowKind, RequestFlow, TracedRequests, WatchedInterval,
};
