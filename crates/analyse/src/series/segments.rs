//! Optimal segmentation of a series into stretches of one level: PELT (Killick, Fearnhead and
//! Eckley, "Optimal detection of changepoints with a linear computational cost", Journal of the
//! American Statistical Association 107, 2012).
//!
//! Input: values in units of their noise, a penalty per change, the minimum length of a segment.
//! Output: the places of the changes that minimise the squared distances from the segments' means
//! plus the penalties, over all segmentations.

/// Maximum number of places at which a change is looked for; a longer series is searched in steps,
/// and each change is then moved to the best place within a step.
const PLACES_MAX: usize = 1000;

/// Running sums, from which the cost of any segment follows.
struct Costs {
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Costs {
    fn of(values: &[f64]) -> Self {
        let running = |power: i32| {
            let mut sum = 0.0;
            let add = values.iter().map(|value| {
                sum += value.powi(power);
                sum
            });
            std::iter::once(0.0)
                .chain(add.collect::<Vec<_>>())
                .collect()
        };
        Self {
            sums: running(1),
            squares: running(2),
        }
    }

    /// The squared distances of the values in this range from their mean.
    fn of_segment(&self, from: usize, to: usize) -> f64 {
        let sum = self.sums[to] - self.sums[from];
        self.squares[to] - self.squares[from] - sum * sum / (to - from) as f64
    }
}

/// The first index of every segment but the first, ascending.
pub(super) fn changes(values: &[f64], penalty: f64, least: usize) -> Vec<usize> {
    let n = values.len();
    let costs = Costs::of(values);
    let step = n.div_ceil(PLACES_MAX).max(1);
    let places: Vec<usize> = (0..n).step_by(step).chain([n]).collect();
    // For each place: the lowest cost of the values before it, and where its last segment begins.
    let mut best = vec![(-penalty, 0); places.len()];
    // The possible beginnings of the last segment, each with the place from which on it is not
    // needed. A beginning that another one beats is needed until that other one may begin a segment.
    let mut open: Vec<(usize, usize)> = vec![(0, usize::MAX)];
    for end in 1..places.len() {
        let cost = |from: usize| best[from].0 + costs.of_segment(places[from], places[end]);
        let long = |from: usize| places[end] - places[from] >= least;
        let best_start = open
            .iter()
            .filter(|(from, _)| long(*from))
            .map(|(from, _)| (cost(*from) + penalty, *from))
            .min_by(|a, b| a.0.total_cmp(&b.0));
        let Some(best_start) = best_start else {
            best[end] = (f64::INFINITY, 0);
            continue;
        };
        for (from, until) in &mut open {
            if *until == usize::MAX && long(*from) && cost(*from) >= best_start.0 {
                *until = end + least.div_ceil(step);
            }
        }
        open.retain(|(_, until)| end < *until);
        best[end] = best_start;
        open.push((end, usize::MAX));
    }
    let mut changes = Vec::new();
    let mut end = places.len() - 1;
    while best[end].1 > 0 {
        end = best[end].1;
        changes.push(places[end]);
    }
    changes.reverse();
    if step > 1 {
        improve(&costs, &mut changes, n, step, least);
    }
    changes
}

/// Moves each change to the best place within a step.
fn improve(costs: &Costs, changes: &mut [usize], n: usize, step: usize, least: usize) {
    for index in 0..changes.len() {
        let from = if index == 0 { 0 } else { changes[index - 1] };
        let to = changes.get(index + 1).copied().unwrap_or(n);
        let cost = |at: &usize| costs.of_segment(from, *at) + costs.of_segment(*at, to);
        let near = changes[index].saturating_sub(step)..=changes[index] + step;
        let possible = near.filter(|at| *at >= from + least && at + least <= to);
        let best = possible.min_by(|a, b| cost(a).total_cmp(&cost(b)));
        changes[index] = best.unwrap_or(changes[index]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lowest cost over all segmentations, by trying all.
    fn lowest(values: &[f64], penalty: f64, least: usize) -> (f64, Vec<usize>) {
        let costs = Costs::of(values);
        let mut best = (f64::INFINITY, Vec::new());
        for mask in 0_u32..1 << (values.len() - 1) {
            let places: Vec<usize> = (1..values.len())
                .filter(|at| mask >> (at - 1) & 1 == 1)
                .collect();
            let ends: Vec<usize> = [0]
                .into_iter()
                .chain(places.clone())
                .chain([values.len()])
                .collect();
            if ends.windows(2).any(|two| two[1] - two[0] < least) {
                continue;
            }
            let cost: f64 = ends
                .windows(2)
                .map(|two| costs.of_segment(two[0], two[1]))
                .sum();
            let cost = cost + penalty * places.len() as f64;
            if cost < best.0 - 1e-9 {
                best = (cost, places);
            }
        }
        best
    }

    #[test]
    fn the_segmentation_is_the_best_of_all() {
        let mut rng = rigel_model::workload::rng::Rng::new(11, 0);
        let mut with_changes = 0;
        for penalty in [0.5, 1.0, 2.0] {
            for least in [1, 2, 3] {
                for _ in 0..20 {
                    let level = |at: usize| if (4..8).contains(&at) { 1.5 } else { 0.0 };
                    let values: Vec<f64> = (0..13).map(|at| level(at) + 2.0 * rng.unit()).collect();
                    let (_, expected) = lowest(&values, penalty, least);
                    let found = changes(&values, penalty, least);
                    assert_eq!(found, expected, "{values:?} {penalty} {least}");
                    with_changes += usize::from(!found.is_empty());
                }
            }
        }
        assert!((40..180).contains(&with_changes), "{with_changes}");
    }

    #[test]
    fn a_change_in_a_long_series_is_found_at_its_place() {
        let mut rng = rigel_model::workload::rng::Rng::new(12, 0);
        let value = |at: usize| {
            if (12_345..12_360).contains(&at) {
                20.0
            } else {
                0.0
            }
        };
        let values: Vec<f64> = (0..20_000).map(|at| value(at) + rng.unit()).collect();
        assert_eq!(changes(&values, 30.0, 3), [12_345, 12_360]);
    }
}
