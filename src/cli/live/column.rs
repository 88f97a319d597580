//! One column of the live view: a window or a round, with its rate and its response times.

use super::unit::ThroughputUnit;
use rigel_analyse::LatencySummary;
use rigel_model::Nanos;
use rigel_model::record::Window;

/// Time span of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Span {
    /// A window of this width.
    Window(Nanos),
    /// A round: its windows are too wide to wait for.
    Round,
}

/// One window of the point's first class, which is the measured one.
#[derive(Debug, Clone)]
pub(super) struct LiveColumn {
    /// True if it is from the warm-up, or from an incomplete round: only its throughput is known.
    pub(super) warming: bool,
    /// True if it is the first of its point.
    pub(super) first: bool,
    /// Completed operations per second.
    pub(super) rate: f64,
    /// Unit in which its point shows the rate.
    pub(super) unit: ThroughputUnit,
    /// Failed operations.
    pub(super) failed: u64,
    /// Response times; `None` if nothing completed.
    pub(super) latency: Option<LatencySummary>,
    /// Operations by response time, in [`BINS_A_DECADE`] bins per power of ten, from one
    /// microsecond.
    pub(super) bins: [u32; BINS],
}

/// Bins per power of ten.
pub(super) const BINS_A_DECADE: usize = 8;

/// Number of bins, from a microsecond to a hundred seconds. The outermost bins include everything
/// beyond.
pub(super) const BINS: usize = 8 * BINS_A_DECADE;

/// The bin of a response time.
pub(super) fn bin_of(latency: Nanos) -> usize {
    let decades = (latency.as_micros_f64().max(1.0)).log10();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "not negative, and below BINS"
    )]
    let bin = (decades * BINS_A_DECADE as f64) as usize;
    bin.min(BINS - 1)
}

/// The minimum response time of a bin.
pub(super) fn edge_of(bin: usize) -> Nanos {
    Nanos::from_micros_f64(10f64.powf(bin as f64 / BINS_A_DECADE as f64))
}

impl LiveColumn {
    /// A column without any operations.
    pub(super) fn empty() -> Self {
        Self {
            warming: false,
            first: false,
            rate: 0.0,
            unit: ThroughputUnit::default(),
            failed: 0,
            latency: None,
            bins: [0; BINS],
        }
    }

    /// The column for a window.
    pub(super) fn of(window: &Window, width: Nanos) -> Self {
        let mut bins = [0u32; BINS];
        for (low, high, count) in window.response.histogram.buckets() {
            let bin = &mut bins[bin_of(Nanos(low.midpoint(high)))];
            *bin = bin.saturating_add(u32::try_from(count).unwrap_or(u32::MAX));
        }
        let rate = window.done as f64 / width.as_secs_f64().max(1e-9);
        Self {
            rate,
            failed: window.failures(),
            latency: LatencySummary::of(&window.response),
            bins,
            ..Self::empty()
        }
    }
}
