//! Figures: what all of the analysis computes with, and how a number becomes text.
//!
//! Input: numbers, such as the operations of each window. Output: means, quantiles and medians with
//! their error, checks of a bound, and numbers as text. This folder imports no other of `analyse`.

pub mod confidence;
pub mod latency;
pub mod modes;
pub mod quantile;
pub mod quantity;
pub mod tail;
