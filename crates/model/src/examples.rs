//! Made-up values that tests of several crates share.

use crate::{DemandInterval, DemandKind, DemandStream};

/// A stream with a rate and a size.
pub fn stream(kind: DemandKind, per_s: f64, bytes: Option<f64>) -> DemandStream {
    DemandStream {
        kind,
        per_s: Some(per_s),
        mean_bytes: bytes,
        mean_us: None,
        mean_range_us: None,
        waits: None,
        latencies: Vec::new(),
        rate_of: String::new(),
        latency_of: String::new(),
    }
}

/// An hour with these streams.
pub fn interval(streams: Vec<DemandStream>) -> DemandInterval {
    DemandInterval {
        label: "awr.html".into(),
        begin: None,
        seconds: Some(3600.0),
        streams,
        left_out: None,
        censored: String::new(),
        operations: None,
    }
}
