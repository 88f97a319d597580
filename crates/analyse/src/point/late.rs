//! The operations of an open loop that took longer than a bound, in blocks of time.
//!
//! Input: the windows of a stream. Output: a block for each second or so, for the curve of late
//! operations over the rates of a run.

use super::stalls::ResponseJump;
use rigel_model::Bound;
use rigel_model::record::{StreamRecord, Window};
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
    /// The blocks, in order of time; their load is the rate as planned. Without the operations that a stall
    /// delayed: how often stalls come is known better from all measurements of a run together.
    pub blocks: Vec<LateBlock>,
    /// The operations of each block that a stall delayed.
    delayed: Vec<LateBlock>,
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

    /// The blocks with all operations, where what looked like stalls were queues.
    pub fn with_delayed(&self) -> impl Iterator<Item = LateBlock> {
        let pairs = self.blocks.iter().zip(&self.delayed);
        pairs.map(|(block, delayed)| LateBlock {
            count: block.count + delayed.count,
            late: block.late + delayed.late,
            ..*block
        })
    }

    /// The blocks of consecutive windows of `width_s` seconds; `None` of a closed loop. Failed
    /// operations are late.
    pub(super) fn of(
        stream: &StreamRecord,
        windows: &[Window],
        width_s: f64,
        (bound, stalls): (Bound, &[ResponseJump]),
    ) -> Option<Self> {
        let load = stream.offered_per_s()?;
        let mut stalled = vec![false; windows.len()];
        for stall in stalls {
            stalled[stall.windows.clone()].fill(true);
        }
        let windows: Vec<(&Window, bool)> = windows.iter().zip(stalled).collect();
        let each = whole(BLOCK_S / width_s).max(1);
        let calm = windows.iter().filter(|(_, out)| !out).count();
        let count = (calm / each).max(BLOCKS_LEAST);
        let block = |at: usize, stalled: bool| {
            let part = &windows[at * windows.len() / count..(at + 1) * windows.len() / count];
            let of = || part.iter().filter(|(_, out)| *out == stalled);
            let sum = |count: &dyn Fn(&Window) -> u64| of().map(|(one, _)| count(one)).sum::<u64>();
            let all = sum(&|window| window.response.histogram.count() + window.failures());
            let limit = bound.latency.0;
            let in_time = sum(&|window| window.response.histogram.count_within(limit));
            LateBlock {
                load,
                count: all as f64,
                late: (all - in_time) as f64,
            }
        };
        let blocks = |stalled| (0..count).map(|at| block(at, stalled)).collect();
        Some(Self {
            bound,
            blocks: blocks(false),
            delayed: blocks(true),
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
