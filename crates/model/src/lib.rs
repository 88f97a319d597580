//! Plain data types that all other modules share.
//!
//! Input: text and numbers. Output: values that parse, print and serialise. This module imports
//! none of our other modules, accesses no device, reads no clock and prints nothing.

pub mod arithmetic;
mod bound;
mod burst;
mod demand;
mod demand_at;
mod engine;
mod error;
#[cfg(any(test, feature = "examples"))]
pub mod examples;
mod expectation;
mod fact;
mod figure;
pub mod files;
mod finding;
mod finding_name;
mod invocation;
mod log_file;
mod moment;
mod objective;
mod op;
mod pattern;
mod plan_times;
mod point;
mod point_limits;
mod provisioned;
pub mod record;
mod serde_defaults;
mod spoken;
mod sql;
mod stalled;
mod target;
pub(crate) mod text;
mod trust_cause;
mod units;
pub mod workload;

pub use bound::{Bound, quantile_name};
pub use burst::Burst;
pub use demand::{
    Demand, DemandInterval, DemandKind, DemandOperations, DemandStream, LatencyShare, LeftOut,
};
pub use demand_at::DemandAt;
pub use engine::{EngineInfo, FioEngine};
pub use error::Error;
pub use expectation::{Expectation, ExpectedLoad, ExpectedOf};
pub use fact::{
    BlockDevice, Counters, Extents, FileKind, Host, LimitFacts, OwnThreads, Sample, TargetFacts,
    VolumeMember,
};
pub use figure::Figure;
pub use finding::{Finding, FindingWithCause, Severity, with_causes};
pub use finding_name::{FindingKind, FindingName, FindingReach};
pub use invocation::{Invocation, OrionFiles, RunOptions};
pub use log_file::{LifeCycle, LogKind, SyncMethod};
pub use moment::{Moment, Resolution};
pub use objective::{Measure, Objective};
pub use op::{Cause, Completion, Fault, Kind, Op, Outcome, Slot, WrongBytes};
pub use pattern::Pattern;
pub use plan_times::{PlanCosts, PlanTime, TablePlan};
pub use point::{
    ActiveRanks, Arrivals, Coordinates, Layer, Load, Mix, Point, Step, Stream, Until, WarmUp,
    arm_letter,
};
pub use point_limits::PointLimits;
pub use provisioned::Provisioned;
pub use spoken::{decoded, spoken};
pub use sql::{
    Dbms, HotSpot, PrivateServer, ReadWay, Redo, ServerFacts, ServerSample, SqlTarget, SqlWork,
    Tables, Think,
};
pub use stalled::{STALLED, StallDetector, StallLook, StalledIo};
pub use target::{Cache, Distribution, Layout, Limit, SimSpec, Slow, SpeedLevel, Stall, Target};
pub use text::{
    drives_a_terminal, escaped, escaped_json, file_name, in_line, letters_changed, listed,
    read_file_name, shell_path, shell_word, unobeyed,
};
pub use trust_cause::{TrustCause, Weight};
pub use units::{Bytes, GIB, KIB, MIB, Nanos, Ratio, per_second, plain, tidy, whole_per_second};
