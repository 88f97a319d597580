//! The operations of an open loop that took longer than a bound, in blocks of time.
//!
//! Input: the windows of a stream. Output: a block for each second or so, for the curve of late
//! operations over the rates of a run.

use super::stalls::response_jumps;
use rigel_model::record::{StreamRecord, Window};
use rigel_model::{Bound, Load};
use rigel_stats::curve::LateBlock;

/// Usual length of a block in seconds: longer than most queues remember.
const BLOCK_S: f64 = 1.5;

/// The operations of an open loop in blocks of time, and the bound that some of them missed.
#[derive(Debug, Clone, PartialEq)]
pub struct LateOperations {
    /// The bound.
    pub bound: Bound,
    /// The blocks, in order of time; their load is the rate as planned.
    pub blocks: Vec<LateBlock>,
}

impl LateOperations {
    /// The blocks of consecutive windows of `width_s` seconds; `None` of a closed loop. Failed
    /// operations are late. Operations that a stall delayed are left out: how often stalls come is
    /// known better from all measurements of a run together.
    pub(super) fn of(
        stream: &StreamRecord,
        windows: &[Window],
        width_s: f64,
        bound: Bound,
    ) -> Option<Self> {
        let rates = stream.loads.iter().map(|load| match load {
            Load::Open { rate, .. } => Some(*rate),
            Load::Closed { .. } => None,
        });
        let load = rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)?;
        let mut stalled = vec![false; windows.len()];
        for stall in response_jumps(windows, width_s) {
            stalled[stall.windows].fill(true);
        }
        let pairs = windows.iter().zip(stalled);
        let windows: Vec<&Window> = pairs.filter(|(_, out)| !out).map(|(one, _)| one).collect();
        let each = whole(BLOCK_S / width_s).clamp(1, windows.len().max(1));
        let count = (windows.len() / each).max(1);
        let part =
            |at: usize| &windows[at * windows.len() / count..(at + 1) * windows.len() / count];
        let block = |windows: &[&Window]| {
            let sum =
                |of: fn(&Window) -> u64| windows.iter().map(|one| of(one)).sum::<u64>() as f64;
            let missed = sum(Window::failures);
            let (done, within) = (
                sum(|window| window.response.histogram.count()),
                windows
                    .iter()
                    .map(|window| within(window, bound))
                    .sum::<u64>() as f64,
            );
            LateBlock {
                load,
                count: done + missed,
                late: done - within + missed,
            }
        };
        Some(Self {
            bound,
            blocks: (0..count).map(|at| block(part(at))).collect(),
        })
    }
}

/// The number of operations of a window that certainly took no longer than the bound.
pub(crate) fn within(window: &Window, bound: Bound) -> u64 {
    let buckets = window.response.histogram.buckets();
    let fast = buckets.take_while(|(_, high, _)| *high <= bound.latency.0);
    fast.map(|(.., count)| count).sum()
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of windows"
)]
fn whole(windows: f64) -> usize {
    windows.round() as usize
}
