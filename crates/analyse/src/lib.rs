//! Analysis: derives figures and findings from facts and records.
//!
//! Input: facts, samples, recordings. Output: derived figures, and findings with their evidence and
//! hint. Analysis is pure and never fails: it leaves out what it cannot know, and raises a finding
//! where it doubts. It opens nothing and reads no clock, so it works on last year's journal.
//!
//! A folder imports only those before it: `figures`, then `point`, then `search`, `series` and `ranks`,
//! then `demand` and `compare`. `conclusion` and `advice` are made of these. Other modules take everything
//! from here.

pub mod advice;
pub mod compare;
pub mod conclusion;
pub mod demand;
#[cfg(any(test, feature = "examples"))]
pub mod examples;
pub mod figures;
pub mod plan;
pub mod point;
pub mod preflight_checks;
pub mod ranks;
pub mod reported_knee;
pub mod search;
pub mod series;

pub use advice::plan_crossing::{
    COSTS_ASKED as PLAN_COSTS_ASKED, PlanTest, crossings as plan_crossings,
};
pub use advice::{
    Advice, AdviceTerms, Decision, Opinion, Product, ProductAdvice, ProductDefault, Relevance,
    advise,
};
pub use compare::claimed::{ClaimBeside, beside};
pub use compare::comparison::{
    BOUND, Comparison, LoadChange, Slower, Verdict, compare, compare_sides,
};
pub use compare::conditions::Condition;
pub use compare::difference::{Change, Judgement};
pub use compare::next_run::NextRun;
pub use compare::over_time::{Course, FigureOverTime, OverTime, ROUNDS_MIN};
pub use compare::power::RunsNeeded;
pub use compare::row::Row;
pub use compare::side::{ComparedSide, Side, SideRun};
pub use compare::subject::{Scope, Subject, Term};
pub use conclusion::{
    CauseFound, Conclusion, FigureAsked, FigureTrust, RunTrust, Sight, SightReader, Status,
    TrustLevel,
};
pub use demand::{
    Answer, BusiestInterval, DatabaseFigures, DatabaseResult, DemandAgainst, DemandOfInstances,
    EventBucket, EventDistribution, LoopFigures, LoopKind, LoopWait, LoopWitness, OwnCost,
    StorageRoom, StreamAgainst, StreamPoint, StreamRoom, Usage, WaitShare, WatchDemands,
    WatchReader, WatchResult, WatchedPoint, WatchedSource, WatchedStream, against, at_one_time,
    bound_of_bucket, database, demand_at_least, demand_censored, demand_findings, demands,
    has_possible_reads, hidden_log_writes, hidden_times, hidden_waits, imported_demands,
    load_points,
};
pub use figures::confidence::{BoundCheck, Confidence, is_enough};
pub use figures::latency::{LatencyFigure, LatencySummary, ShownIn, Statistic};
pub use figures::modes;
pub use figures::quantile::{Quantile, precise};
pub use figures::quantity;
pub use point::backlog::RateMet;
pub use point::coverage::CoverageSummary;
pub use point::events::Events;
pub use point::expected::{Criteria, ExpectedLimit, ExpectedVerdict};
pub use point::load::{DeviceLoad, HostLoad, device_loads, host_load};
pub use point::objective::ObjectiveVerdict;
pub use point::so_far::SoFar;
pub use point::sql;
pub use point::steady::Steady;
pub use point::summary::{
    ClassSummary, PointSummary, RankClasses, ReportedFigures, VisitFigures, summarise,
    summarise_judged, summarise_within,
};
pub use point::syncs::SyncSummary;
pub use point::verified;
pub use point::visits::{Variation, variation, widen, widen_at};
pub use point::witness::DeviceBytes;
pub use preflight_checks::preflight_findings;
pub use ranks::{
    AloneFigures, CacheReach, FactDifference, HostFigures, HostRounds, HostsAtLoad, LadderGrowth,
    LadderStep, Neighbours, NeighboursStep, Overlap, RanksResult, SoakHost, SoakHosts, each_load,
    ranks,
};
pub use reported_knee::{MARGIN as KNEE_MARGIN, ReportedKnee};
pub use rigel_stats::estimate::Estimate;
pub use rigel_stats::knee::{Cap, CurvePoint, Knee, KneeRange, Plateau, cap, knee};
pub use rigel_stats::mean::{BATCHES_MIN, CONFIDENCE, Interval, Level, Limits, Looks, Mean};
pub use rigel_stats::robust::median;
pub use rigel_stats::verdict::{BoundVerdict, Wanted};
pub use search::at_load::{AtLoad, AtRate};
pub use search::bracket::Bracket;
pub use search::calibration::{Calibration, LogWrites, calibration};
pub use search::closing::ClosingFigures;
pub use search::reread::RereadTest;
pub use search::run_checks::{CacheTest, answers_from_cache};
pub use search::shape::{CurveShape, curve_shape};
pub use search::sustained::{Sustained, rate_beside, rate_expected, sustained};
pub use series::calendar::Recurrence;
pub use series::causes::Causes;
pub use series::change_points::FALSE_ALARMS_ONE_IN;
pub use series::episodes::{Episode, SLOWDOWN};
pub use series::fixed_work::CutRounds;
pub use series::host_shift::{HostCounter, HostShift};
pub use series::imported::{
    ImportedSummary, LoadFigures, SeriesSummary, imported, is_one_work, places, rounds, summaries,
};
pub use series::predictability::{order, predictability};
pub use series::rounds::{ObjectiveCheck, Round, RoundEnd, RoundHost, numbered_round, round};
pub use series::series_figures::{Extreme, Hour, SeriesFigures};
pub use series::soak::{SoakReader, SoakResult};
pub use series::types::{
    Breach, CalendarPattern, ChangePoint, ObjectiveResult, Outlier, Predictability,
    PredictabilityTerms, Predictable, Quantity, RangeOfRounds, RoundCounts, Samples, SeriesClass,
    SpreadChange, Trend,
};
