//! Robust statistics, which a few outliers cannot move, and the tail of a normal distribution.

/// Ratio of the standard deviation of normal noise to the median of its absolute values.
pub const MAD_TO_DEVIATION: f64 = 1.4826;

/// The middle value, or the mean of the two in the middle; `None` if there are no values.
pub fn median(values: &[f64]) -> Option<f64> {
    quantile(values, 0.5)
}

/// A quantile, interpolated between neighbours (Hyndman and Fan, American Statistician 50, 1996,
/// type 7).
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a place in the series"
)]
pub fn quantile(values: &[f64], quantile: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = quantile.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
    let (below, share) = (place.floor() as usize, place.fract());
    let above = (below + 1).min(sorted.len() - 1);
    Some(sorted[below] + share * (sorted[above] - sorted[below]))
}

/// The median absolute deviation, scaled to the standard deviation of normal noise.
pub fn spread(values: &[f64]) -> f64 {
    let Some(middle) = median(values) else {
        return 0.0;
    };
    let distances: Vec<f64> = values.iter().map(|value| (value - middle).abs()).collect();
    MAD_TO_DEVIATION * median(&distances).unwrap_or(0.0)
}

/// The standard deviation of independent noise, from the median difference of neighbours, so that
/// levels, slopes, steps and a few outliers do not count. If most neighbours are equal, it is a
/// quarter of the root mean square of the differences over √2, without the largest twentieth of
/// them.
pub fn spread_of_differences(values: &[f64]) -> f64 {
    let mut differences: Vec<f64> = values
        .windows(2)
        .map(|two| (two[1] - two[0]).abs())
        .collect();
    let usual = deviation_of_differences(&differences);
    if usual > 0.0 {
        return usual;
    }
    differences.sort_by(f64::total_cmp);
    differences.truncate(differences.len() - differences.len().div_ceil(20));
    let squares = differences
        .iter()
        .map(|difference| difference * difference)
        .sum::<f64>();
    (squares / differences.len().max(1) as f64 / 2.0).sqrt() / 4.0
}

/// The standard deviation of independent noise with these sizes of differences between neighbours,
/// from their median.
pub fn deviation_of_differences(sizes: &[f64]) -> f64 {
    MAD_TO_DEVIATION * median(sizes).unwrap_or(0.0) / std::f64::consts::SQRT_2
}

/// The median of the half of the values that lie closest together. It is the usual level, even if
/// nearly half of the values are far off to one side (Andrews et al., Robust Estimates of Location,
/// 1972: the shorth).
pub fn usual(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2 + 1;
    let closest = sorted
        .windows(half.min(sorted.len()).max(1))
        .min_by(|one, other| {
            (one[one.len() - 1] - one[0]).total_cmp(&(other[other.len() - 1] - other[0]))
        })?;
    median(closest)
}

/// The value that a normal variable exceeds with the probability `tail`, at most a half (Abramowitz
/// and Stegun, 26.2.23; to 0.0005).
pub fn normal_quantile(tail: f64) -> f64 {
    let t = (-2.0 * tail.clamp(1e-300, 0.5).ln()).sqrt();
    let above = 2.515_517 + 0.802_853 * t + 0.010_328 * t * t;
    t - above / (1.0 + 1.432_788 * t + 0.189_269 * t * t + 0.001_308 * t * t * t)
}
