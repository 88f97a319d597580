//! Sizes, durations, shares, bounds, objectives, moments, patterns and models: what is read is printed in a form that is read as the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_model::{Bound, Bytes, Moment, Nanos, Objective, Pattern, Ratio, SimSpec};

fuzz_target!(|text: &str| {
    let _ = text.parse::<Ratio>();
    if let Ok(nanos) = text.parse::<Nanos>() {
        assert_eq!(nanos.exact().parse(), Ok(nanos));
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        assert_eq!(bytes.exact().parse(), Ok(bytes));
    }
    if let Ok(bound) = text.parse::<Bound>() {
        // A quantile goes through percent, and so through rounding.
        let again: Bound = bound.to_string().parse().unwrap();
        assert!(again.latency == bound.latency && (again.quantile - bound.quantile).abs() < 1e-6);
    }
    if let Ok(objective) = text.parse::<Objective>() {
        assert_eq!(objective.to_string().parse(), Ok(objective));
    }
    if let Ok(moment) = text.parse::<Moment>() {
        assert_eq!(moment.to_string().parse(), Ok(moment));
    }
    if let Ok(pattern) = text.parse::<Pattern>() {
        assert_eq!(pattern.to_string().parse(), Ok(pattern));
    }
    if let Ok(spec) = text.parse::<SimSpec>() {
        assert_eq!(spec.to_string().trim_start_matches("sim:").parse(), Ok(spec));
    }
});
