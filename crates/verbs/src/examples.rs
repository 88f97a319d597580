//! Values that tests of several crates use.

use crate::fit::FitRequest;
use rigel_model::examples::interval;
use rigel_model::{DemandAt, DemandStream, Nanos, Ratio};

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
        sessions: None,
    }
}
