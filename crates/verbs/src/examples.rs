//! Values that tests of several crates use.

use crate::curve::{CurveRequest, Loads};
use crate::fit::FitRequest;
use rigel_model::examples::interval;
use rigel_model::{Arrivals, DemandAt, DemandStream, Mix, Nanos, Pattern, Ratio};

/// A request for these streams, with the usual options.
pub fn fit(streams: Vec<DemandStream>) -> FitRequest {
    FitRequest {
        named: "awr.html".into(),
        source: "AWR".into(),
        database: "PROD".into(),
        block: 8192,
        is_block_assumed: false,
        at: DemandAt::Peak,
        interval: interval(streams),
        of_ranks: Vec::new(),
        intervals: 1,
        below: 0.0,
        burst: None,
        findings: Vec::new(),
        objectives: Vec::new(),
        need: 1.0,
        lowest: 0.125,
        highest: 256.0,
        precision: Ratio::from_parts_per_million(100_000),
        point_time: Nanos::from_secs(10),
        writes: false,
        log: None,
        sessions: None,
    }
}

/// A curve of reads at these loads with the usual options.
pub fn curve(loads: Loads) -> CurveRequest {
    CurveRequest {
        is_sql_run: false,
        loads,
        arrivals: Arrivals::Poisson,
        in_flight_max: 256,
        length: 8192,
        mix: Mix::READS,
        pattern: Pattern::Uniform,
        logs: Vec::new(),
        background: Vec::new(),
        provisioned: None,
        bound: None,
        precision: Ratio::of(2, 100),
        point_least: Nanos::from_secs(5),
        point_most: Nanos::from_secs(20),
        sql: None,
        neighbours_per_s: None,
        ranks: 0,
    }
}
