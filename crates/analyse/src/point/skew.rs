//! Whether the windows of several ranks lie over each other.

use crate::figures::quantity::time;
use rigel_model::record::PointRecord;
use rigel_model::record::ranks::SKEW_DOUBTFUL;
use rigel_model::{Finding, FindingName};

/// Warns of a merged point whose windows are further apart than a tenth of their width, or whose
/// clocks are known less well than that.
pub(super) fn skew(record: &PointRecord) -> Option<Finding> {
    let merge = record.merge.as_ref()?;
    let limit = SKEW_DOUBTFUL * record.window.0 as f64;
    let micros = |nanos: u64| time(nanos as f64 / 1e3);
    if !merge.is_common {
        return Some(Finding::note(
            FindingName::Skew,
            format!(
                "at {} no whole window of {} is common to all ranks: rates are over the time from \
                 the first beginning to the last end, and so too low",
                record.coordinates, record.window
            ),
        ));
    }
    if merge.skew_left.0 as f64 > limit {
        return Some(Finding::warning(
            FindingName::Skew,
            format!(
                "at {} the windows of {} of the ranks are {} apart: what is added up was not \
                 measured at the same time",
                record.coordinates,
                record.window,
                micros(merge.skew_left.0)
            ),
            "look for a host that is short of CPUs, and measure for longer: sums and quantiles \
             over many windows hardly change, the interval of the sum may",
        ));
    }
    (merge.clock_bound.0 as f64 > limit).then(|| {
        Finding::warning(
            FindingName::RankClock,
            format!(
                "at {} a rank's clock is known only to within {}, and windows last {}",
                record.coordinates,
                micros(merge.clock_bound.0),
                record.window
            ),
            "the way to rank 0 is slow or uneven: start the ranks nearer to each other",
        )
    })
}
