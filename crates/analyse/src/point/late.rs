//! The operations of an open loop that took longer than a bound, in blocks of time.
//!
//! Input: the windows of a stream. Output: a block for each second or so, for the curve of late
//! operations over the rates of a run.

use super::stalls::ResponseJump;
use crate::figures::confidence::within;
use rigel_model::record::{StreamRecord, Window};
use rigel_model::{Bound, Load};
use rigel_stats::curve::LateBlock;

/// Usual length of a block in seconds: longer than most queues remember.
const BLOCK_S: f64 = 5.0;

/// Least number of blocks of a measurement, which are shorter then.
const BLOCKS_LEAST: usize = 2;

/// The operations of an open loop in blocks of time, and the bound that some of them missed.
#[derive(Debug, Clone, PartialEq)]
pub struct LateOperations {
    /// The bound.
    pub bound: Bound,
    /// The blocks, in order of time; their load is the rate as planned.
    pub blocks: Vec<LateBlock>,
}

impl LateOperations {
    /// The share of operations that was late, without those that a stall delayed.
    pub fn share(&self) -> f64 {
        let sum = |of: fn(&LateBlock) -> f64| self.blocks.iter().map(of).sum::<f64>();
        let all = sum(|block| block.count);
        if all > 0.0 {
            sum(|block| block.late) / all
        } else {
            0.0
        }
    }

    /// The blocks of consecutive windows of `width_s` seconds; `None` of a closed loop. Failed
    /// operations are late. Operations that a stall delayed are left out: how often stalls come is
    /// known better from all measurements of a run together.
    pub(super) fn of(
        stream: &StreamRecord,
        windows: &[Window],
        width_s: f64,
        (bound, stalls): (Bound, &[ResponseJump]),
    ) -> Option<Self> {
        let rates = stream.loads.iter().map(|load| match load {
            Load::Open { rate, .. } => Some(*rate),
            Load::Closed { .. } => None,
        });
        let load = rates.sum::<Option<f64>>().filter(|rate| *rate > 0.0)?;
        let mut stalled = vec![false; windows.len()];
        for stall in stalls {
            stalled[stall.windows.clone()].fill(true);
        }
        let pairs = windows.iter().zip(stalled);
        let windows: Vec<&Window> = pairs.filter(|(_, out)| !out).map(|(one, _)| one).collect();
        let each = whole(BLOCK_S / width_s).max(1);
        let count = (windows.len() / each).max(BLOCKS_LEAST);
        let part =
            |at: usize| &windows[at * windows.len() / count..(at + 1) * windows.len() / count];
        let block = |windows: &[&Window]| {
            let sum = |of: &dyn Fn(&Window) -> u64| windows.iter().map(|one| of(one)).sum::<u64>();
            let all = sum(&|window| window.response.histogram.count() + window.failures());
            let in_time = sum(&|window| within(&window.response.histogram, bound));
            LateBlock {
                load,
                count: all as f64,
                late: (all - in_time) as f64,
            }
        };
        Some(Self {
            bound,
            blocks: (0..count).map(|at| block(part(at))).collect(),
        })
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number of windows"
)]
fn whole(windows: f64) -> usize {
    windows.round() as usize
}
