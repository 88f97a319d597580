//! A series on the logarithmic scale, on which changes are factors.

/// Smallest change that is worth reporting, on the logarithmic scale: 1 %.
pub(super) const WORTH_TELLING: f64 = 0.01;

/// A series of finite values, with one time per value.
#[derive(Debug, Clone)]
pub(super) struct LogSeries {
    /// Seconds since the first value.
    pub(super) seconds: Vec<f64>,
    /// Seconds since local midnight.
    pub(super) of_day: Vec<f64>,
    /// Days since 1970-01-01 on the local calendar.
    pub(super) day: Vec<i64>,
    /// Values, as logarithms.
    pub(super) values: Vec<f64>,
}
