//! Analysis: derives figures and findings from facts and records.
//!
//! Input: facts, samples, recordings. Output: derived figures, and findings with their evidence and hint. Analysis is
//! pure and never fails: it leaves out what it cannot know, and raises a finding where it doubts. It opens nothing and
//! reads no clock, so it works on last year's journal.

mod advice;
mod budget;
mod calibration;
mod causes;
mod change_points;
mod compare;
mod conclusion;
mod conditions;
mod confidence;
mod curve;
mod difference;
mod episodes;
mod fixed_work;
mod host;
mod host_shift;
mod imported;
mod knee;
mod layers;
mod least_squares;
mod load;
mod matrix;
mod over_time;
mod predictability;
mod preflight_checks;
mod quantile;
pub mod quantity;
mod result;
mod robust;
mod rounds;
mod run_checks;
mod series_figures;
mod soak;
pub mod sql;
mod statistics;
mod steady;
mod subject;
mod summary;
mod usl;
mod verdict;

#[cfg(test)]
pub(crate) use advice::tests as advice_example;
pub use advice::{Advice, Opinion, Product, Section, advise, warnings_of};
pub use budget::{Breach, ObjectiveResult};
pub use calibration::{AtLoad, Calibration, CurveFacts, LogWrites, Sustained, calibration, curve_facts};
pub use causes::Causes;
pub use change_points::FALSE_ALARMS_ONE_IN;
pub use compare::{BOUND, Comparison, LoadChange, Row, Slower, Subject, Unit, Verdict, compare};
pub use conclusion::{Conclusion, Status};
pub use conditions::{Condition, Scope, Term};
pub use confidence::{Confidence, Estimate, Within, is_precise};
pub use curve::{CurveResult, Naming, curve};
pub use difference::{Change, Figure, Judgement};
pub use episodes::{Episode, SLOWDOWN};
pub use fixed_work::CutRounds;
pub use host_shift::{HostCounter, HostShift};
pub use imported::{
    ImportedSummary, LoadFigures, SeriesSummary, Told, imported, is_one_work, places, rounds, summaries,
};
pub use knee::{Cap, Knee, Loaded, cap, knee};
pub use layers::{LayerFigures, LayerStep, LayerTable, LayersResult, layers};
pub use load::{DeviceLoad, HostLoad, device_loads, host_load};
pub use matrix::{MatrixCell, MatrixResult};
pub use over_time::{Course, FigureOverTime, OverTime, ROUNDS_MIN};
pub use predictability::{
    ChangePoint, DailyPattern, Outlier, Predictability, PredictabilityTerms, Quantity, RoundCounts, Trend, Word, order,
    predictability,
};
pub use preflight_checks::preflight_findings;
pub use quantile::{Quantile, precise};
pub use result::{ImportedResult, RunResult};
pub use robust::median;
#[cfg(test)]
pub(crate) use rounds::example as example_rounds;
pub use rounds::{Kept, Round, RoundEnd, RoundHost, numbered_round, round};
pub use run_checks::{CacheTest, answers_from_cache};
pub use series_figures::{Extreme, Hour, SeriesFigures};
pub use soak::{SoakReader, SoakResult};
pub use statistics::{BATCHES_MIN, CONFIDENCE, Interval, Limits, Mean, difference, ratio};
pub use steady::{Steady, steady};
pub use summary::{
    ClassSummary, CoverageSummary, LatencySummary, PointSummary, Witness, latency, summarise, summarise_within,
};
pub use usl::{Peak, Usl, usl};
