//! The level of throughput that more load does not raise, the load where it begins, and the cap of
//! throughput if there is one.
//!
//! Input: throughput with its error and in each visit, and mean response time, at some loads of a
//! closed loop. Output: the plateau, the knee, and a hard limit if there is one. Only measured
//! loads are judged, nothing between them: how precisely the knee is located depends on the choice
//! of loads.

use crate::mean::{Interval, Mean, Spread, t_quantile};
use serde::Serialize;

/// A point of a closed loop's curve.
#[derive(Debug, Clone, PartialEq)]
pub struct CurvePoint {
    /// Outstanding I/Os.
    pub load: f64,
    /// Operations, or bytes, per second.
    pub throughput: Mean,
    /// Mean response time in seconds.
    pub response: f64,
}

impl CurvePoint {
    /// Half the width of the interval of its throughput, as a fraction of it.
    fn precision(&self) -> f64 {
        self.throughput.interval().relative(self.throughput.value)
    }
}

/// The throughput that more load does not raise: the maximum.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Plateau {
    /// Mean over its loads, each with the same weight. Which of them is the highest is chance.
    pub throughput: f64,
    /// The 95 % confidence interval.
    pub interval: Interval,
    /// Its lowest load.
    pub from: f64,
    /// Its highest load.
    pub to: f64,
    /// Degrees of freedom of its error.
    #[serde(skip)]
    pub degrees: f64,
}

impl Plateau {
    /// The mean over `points`, which must be in ascending order of load; with limits on a logarithmic scale, so that
    /// none is negative. `None` if there are no points.
    ///
    /// Their errors are independent, but what is known of them is not: it is the noise of one run. Loads that differ
    /// by more than their errors make it wider (Birge, Physical Review 40, 1932).
    fn of(points: &[CurvePoint]) -> Option<Self> {
        let (first, last) = (points.first()?, points.last()?);
        let (mut sum, mut squares, mut degrees) = (0.0, 0.0, f64::INFINITY);
        for point in points {
            sum += point.throughput.value;
            squares += point.throughput.error.powi(2);
            degrees = point.throughput.degrees.min(degrees);
        }
        let throughput = sum / points.len() as f64;
        let off = |point: &CurvePoint| (point.throughput.value - throughput).powi(2);
        let apart = points.iter().map(off).sum::<f64>() / (points.len() as f64 - 1.0).max(1.0);
        let expected = squares / points.len() as f64;
        let spread = Spread {
            error: apart.max(expected).sqrt() / (points.len() as f64).sqrt() / throughput,
            degrees,
        };
        Some(Self {
            throughput,
            interval: Interval::around(throughput, spread.half_width()),
            from: first.load,
            to: last.load,
            degrees,
        })
    }

    /// Half the width of its interval, as a fraction of its throughput.
    fn precision(&self) -> f64 {
        (self.interval.high / self.throughput).ln()
    }
}

/// Where the knee may be, as far as the measured loads show.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct KneeRange {
    /// One more than the highest load that certainly gives less than the plateau.
    pub low: f64,
    /// The lowest load that certainly gives as much, by itself or with those below it from the knee
    /// on; `None` if no load does, or if throughput may still rise beyond the highest one.
    pub high: Option<f64>,
}

/// The load beyond which latency grows and throughput does not.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Knee {
    /// Outstanding I/Os at the knee: the lowest measured load whose throughput cannot be
    /// distinguished from the plateau.
    pub load: f64,
    /// The loads between which it lies.
    pub range: KneeRange,
    /// Throughput at the knee.
    pub throughput: Mean,
    /// The throughput from there on.
    pub plateau: Plateau,
    /// True if a smaller load was measured and gave less, or if the knee is at a load of one, the
    /// smallest possible.
    pub bounded_below: bool,
    /// True if a larger load was measured where latency grew instead of throughput.
    pub bounded_above: bool,
}

impl Knee {
    /// True if the curve was measured on both sides of the knee.
    pub fn bracketed(&self) -> bool {
        self.bounded_below && self.bounded_above
    }
}

/// How a load's throughput compares with a plateau.
struct AgainstPlateau {
    /// It may be as good: within the margin, or not certainly below it.
    may: bool,
    /// It is certainly within the margin.
    is_certain: bool,
    /// However imprecise it is, a tenth less is not as good.
    is_near: bool,
}

impl AgainstPlateau {
    fn of(point: &CurvePoint, level: f64, precision: f64, margin: f64) -> Self {
        const NEAR: f64 = 0.9;
        let value = point.throughput.value;
        let unsure = point.precision().hypot(precision);
        let enough = (1.0 - margin) * level;
        Self {
            may: value * (1.0 + unsure) >= enough,
            is_certain: value * (1.0 - unsure) >= enough,
            is_near: value >= NEAR * level,
        }
    }
}

/// The knee of a curve; the points may be in any order. It is the lowest load whose throughput
/// cannot be distinguished from that of the plateau, or is within `margin` (0.02 for 2 %) of it; but never
/// one whose throughput is below nine tenths of it. `None` if no point has a throughput above zero.
///
/// The plateau is made of all loads from the knee on, except the lowest and the highest ones if they
/// certainly give less. A load in between that gave less has met a stall, and belongs to it.
pub fn knee(points: &[CurvePoint], margin: f64) -> Option<Knee> {
    const PASSES: usize = 3;
    let points = sorted(points);
    let low = |point: &&CurvePoint| point.throughput.interval().low;
    let best = points.iter().max_by(|a, b| low(a).total_cmp(&low(b)))?;
    let (mut level, mut precision) = (best.throughput.value, best.precision());
    let (mut at, mut plateau) = (0, Plateau::of(std::slice::from_ref(best))?);
    for _ in 0..PASSES {
        let against = |point: &CurvePoint| AgainstPlateau::of(point, level, precision, margin);
        at = points.iter().position(|point| {
            let against = against(point);
            against.may && against.is_near
        })?;
        let last = points.iter().rposition(|point| against(point).may)?.max(at);
        // The margin is for the knee. A load that certainly gives less, if only by a percent, would
        // lower the plateau.
        let full = |point: &CurvePoint| AgainstPlateau::of(point, level, precision, 0.0).may;
        let first = points[at..=last].iter().position(full).unwrap_or(0);
        plateau = Plateau::of(&points[at + first..=last])?;
        (level, precision) = (plateau.throughput, plateau.precision());
    }
    let against = |point: &CurvePoint| AgainstPlateau::of(point, level, precision, margin);
    let knee = &points[at];
    let below = points[..at].iter().rev().find(|point| !against(point).may);
    // On a level curve response time grows in proportion to load (Little's law); half of that
    // growth is more than chance.
    let slower = |point: &CurvePoint| {
        point.response / knee.response - 1.0 > (point.load / knee.load - 1.0) / 2.0
    };
    let bounded_above = points[at + 1..]
        .iter()
        .filter(|point| point.load > knee.load)
        .any(slower);
    // Throughput falls with no load of the plateau. So that of a load is at least the mean from the
    // knee to it, of which more is known. What all loads of the plateau have in common is no
    // difference between them.
    let as_much = |last: &CurvePoint| {
        let upto = points[at..]
            .iter()
            .take_while(|point| point.load <= last.load);
        let upto: Vec<CurvePoint> = upto.cloned().collect();
        Plateau::of(&upto).is_some_and(|upto| {
            let unsure = (upto.precision().powi(2) - precision.powi(2))
                .max(0.0)
                .sqrt();
            upto.throughput * (1.0 - unsure) >= (1.0 - margin) * level
        })
    };
    let is_certain = |point: &&CurvePoint| {
        let is_level = bounded_above && point.load <= plateau.to;
        against(point).is_certain || is_level && as_much(point)
    };
    let certain = points[at..].iter().find(is_certain);
    Some(Knee {
        load: knee.load,
        range: KneeRange {
            low: below.map_or(points[0].load, |point| point.load + 1.0),
            high: certain.map(|point| point.load),
        },
        throughput: knee.throughput,
        plateau,
        bounded_below: below.is_some() || knee.load <= 1.0,
        bounded_above,
    })
}

/// A hard limit of throughput.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Cap {
    /// Operations, or bytes, per second.
    pub throughput: f64,
    /// Its 95 % confidence interval.
    pub interval: Interval,
    /// The lowest load at which throughput reached it.
    pub from: f64,
    /// The highest such load, which is the highest measured.
    pub to: f64,
}

/// The hard limit of throughput, if there is one. From the knee, or the load after it, to the
/// highest load:
///
/// - throughput is the same within 1 % or within its interval, and shows no larger trend;
/// - there are at least three loads, spanning a factor of four;
/// - response time rises in proportion to load;
/// - their mean is known to 5 %.
///
/// A throttle looks like this, and so does a fixed number of servers. A device that becomes slower
/// under load or still gains a little does not.
///
/// The value is the mean of the level points: see [`Plateau`].
pub fn cap(points: &[CurvePoint]) -> Option<Cap> {
    const KNEE: f64 = 0.02;
    let knee = knee(points, KNEE)?;
    let beyond: Vec<CurvePoint> = sorted(points)
        .into_iter()
        .filter(|point| point.load >= knee.load)
        .collect();
    let after = beyond
        .iter()
        .take_while(|point| point.load <= knee.load)
        .count();
    level(&beyond).or_else(|| level(&beyond[after..]))
}

/// The cap that these points show; they must be in ascending order of load.
fn level(points: &[CurvePoint]) -> Option<Cap> {
    const LOADS_MIN: usize = 3;
    const SPAN_MIN: f64 = 4.0;
    const LEVEL: f64 = 0.01;
    const KNOWN: f64 = 0.05;
    const PROPORTIONAL: f64 = 0.15;
    let (first, last) = (points.first()?, points.last()?);
    let loads = 1 + points
        .windows(2)
        .filter(|two| two[0].load < two[1].load)
        .count();
    if loads < LOADS_MIN || last.load < SPAN_MIN * first.load {
        return None;
    }
    let plateau = Plateau::of(points)?;
    let value = plateau.throughput;
    let half = |point: &CurvePoint| point.throughput.interval().half_width();
    let is_level = |point: &CurvePoint| {
        (point.throughput.value - value).abs() <= half(point).max(LEVEL * value)
    };
    // Imprecise points agree with anything.
    let proven = plateau.precision() <= KNOWN;
    let is_proportional = |point: &CurvePoint| {
        let growth = (point.response / first.response) / (point.load / first.load);
        (growth - 1.0).abs() <= PROPORTIONAL
    };
    let (rise, rise_error) = rise(points);
    let no_trend = rise.abs() <= (LEVEL * value).max(t_quantile(f64::INFINITY) * rise_error);
    if !proven
        || !no_trend
        || !points
            .iter()
            .all(|point| is_level(point) && is_proportional(point))
    {
        return None;
    }
    Some(Cap {
        throughput: value,
        interval: plateau.interval,
        from: first.load,
        to: last.load,
    })
}

/// The rise of throughput from the lowest to the highest load, by a line fitted over the logarithm
/// of load, and its standard error.
fn rise(points: &[CurvePoint]) -> (f64, f64) {
    let logs: Vec<f64> = points.iter().map(|point| point.load.ln()).collect();
    let middle = logs.iter().sum::<f64>() / logs.len() as f64;
    let (mut xx, mut xy, mut variance) = (0.0, 0.0, 0.0);
    for (log, point) in logs.iter().zip(points) {
        let x = log - middle;
        xx += x * x;
        xy += x * point.throughput.value;
        variance += (x * point.throughput.error).powi(2);
    }
    let span = logs[logs.len() - 1] - logs[0];
    (xy / xx * span, variance.sqrt() / xx * span)
}

/// The usable points in ascending order of load.
fn sorted(points: &[CurvePoint]) -> Vec<CurvePoint> {
    let usable = |point: &&CurvePoint| {
        point.load > 0.0 && point.throughput.value > 0.0 && point.response > 0.0
    };
    let mut points: Vec<CurvePoint> = points.iter().filter(usable).cloned().collect();
    points.sort_by(|one, other| one.load.total_cmp(&other.load));
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLERANCE: f64 = 0.02;
    const POWERS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];

    /// A closed loop's curve with the relative error `error`; response time by Little's law.
    fn curve(loads: &[f64], error: f64, throughput: impl Fn(f64) -> f64) -> Vec<CurvePoint> {
        let point = |load: &f64| {
            let value = throughput(*load);
            let throughput = Mean {
                value,
                error: error * value,
                effective_n: 20.0,
                degrees: 9.0,
            };
            CurvePoint {
                load: *load,
                throughput,
                response: load / value,
            }
        };
        loads.iter().map(point).collect()
    }

    /// A fixed number of servers that need 1 ms per operation.
    fn servers(count: f64) -> impl Fn(f64) -> f64 {
        move |load| load.min(count) * 1000.0
    }

    #[test]
    fn fixed_servers_have_their_knee_at_their_number() {
        let every: Vec<f64> = (1..=40).map(f64::from).collect();
        for count in [1.0, 3.0, 16.0, 27.0] {
            let mut points = curve(&every, 0.001, servers(count));
            points.reverse();
            let knee = knee(&points, TOLERANCE).unwrap();
            assert!((knee.load - count).abs() < 1e-9, "{count}: {knee:?}");
            assert!(
                (knee.plateau.throughput - count * 1000.0).abs() < 1e-6 && knee.bracketed(),
                "{knee:?}"
            );
            assert_eq!(
                knee.range,
                KneeRange {
                    low: count,
                    high: Some(count)
                }
            );
        }
    }

    #[test]
    fn a_knee_at_either_end_is_not_bracketed() {
        let knee_of = |loads: &[f64]| knee(&curve(loads, 0.001, servers(16.0)), TOLERANCE).unwrap();
        let rising = knee_of(&POWERS[..5]);
        assert!(
            (rising.load - 16.0).abs() < 1e-9 && rising.bounded_below && !rising.bounded_above,
            "{rising:?}"
        );
        let level = knee_of(&POWERS[5..]);
        assert!(
            (level.load - 32.0).abs() < 1e-9 && !level.bounded_below && level.bounded_above,
            "{level:?}"
        );
        // Loads so close that throughput rises by less than the tolerance between them, and latency
        // hardly grows.
        let close = knee(
            &curve(&[60.0, 61.0], 0.001, |load| load.powf(0.8)),
            TOLERANCE,
        )
        .unwrap();
        assert!(
            (close.load - 60.0).abs() < 1e-9 && !close.bounded_above,
            "{close:?}"
        );
    }

    #[test]
    fn many_loads_on_a_plateau_bound_the_knee_from_above_where_none_does_alone() {
        let high = |points: &[CurvePoint]| knee(points, TOLERANCE).unwrap().range.high;
        let mut points = curve(&POWERS, 0.015, servers(4.0));
        assert!(points.iter().all(|point| point.precision() > TOLERANCE));
        assert!(
            high(&points).is_some_and(|high| (4.0..=64.0).contains(&high)),
            "{points:?}"
        );
        // The plateau begins at 16, whatever a slightly lower load adds to it.
        points = curve(&POWERS, 0.015, |load| {
            servers(16.0)(if (load - 8.0).abs() < 0.5 { 15.4 } else { load })
        });
        assert!(high(&points).is_some_and(|high| high >= 16.0), "{points:?}");
        // Nothing excludes that throughput rises beyond the highest load.
        assert_eq!(high(&curve(&POWERS[..3], 0.015, servers(4.0))), None);
    }

    #[test]
    fn loads_without_a_significant_difference_count_as_equal() {
        let noisy = |load: f64| {
            [1000.0, 1900.0, 3700.0, 3900.0][POWERS.iter().position(|l| *l >= load).unwrap()]
        };
        let load = |error| {
            knee(&curve(&POWERS[..4], error, noisy), TOLERANCE)
                .unwrap()
                .load
        };
        assert!((load(0.001) - 8.0).abs() < 1e-9);
        assert!((load(0.03) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn nothing_has_no_knee() {
        assert_eq!(knee(&[], TOLERANCE), None);
        assert_eq!(knee(&curve(&POWERS, 0.01, |_| 0.0), TOLERANCE), None);
        assert_eq!(cap(&[]), None);
    }

    #[test]
    fn a_cap_is_found_with_its_value() {
        for error in [0.0, 0.002, 0.01] {
            let cap = cap(&curve(&POWERS, error, |load| (load * 1300.0).min(5000.0))).unwrap();
            assert!((cap.throughput / 5000.0 - 1.0).abs() < 0.001, "{cap:?}");
            assert!(
                cap.interval.contains(5000.0) && cap.interval.relative(5000.0) < 0.01,
                "{cap:?}"
            );
            assert!(
                (cap.from - 4.0).abs() < 1e-9 && (cap.to - 256.0).abs() < 1e-9,
                "{cap:?}"
            );
        }
        // The knee is not quite at the cap yet.
        let cap = cap(&curve(&POWERS, 0.001, |load| {
            if load < 6.0 { load * 1230.0 } else { 5000.0 }
        }))
        .unwrap();
        assert!(
            (cap.from - 8.0).abs() < 1e-9 && cap.interval.contains(5000.0),
            "{cap:?}"
        );
    }

    #[test]
    fn a_cap_is_no_more_certain_than_its_points_agree() {
        let jagged = |load: f64| {
            if load.log2() % 2.0 < 0.5 {
                4980.0
            } else {
                5020.0
            }
        };
        let cap = cap(&curve(&POWERS[2..], 0.0001, jagged)).unwrap();
        assert!(
            cap.interval.contains(5000.0) && cap.interval.half_width() > 8.0,
            "{cap:?}"
        );
    }

    #[test]
    fn a_curve_that_rises_or_falls_has_no_cap() {
        let law = |sigma: f64, kappa: f64| {
            move |n: f64| 1000.0 * n / (1.0 + sigma * (n - 1.0) + kappa * n * (n - 1.0))
        };
        let none = |throughput: &dyn Fn(f64) -> f64| {
            assert_eq!(cap(&curve(&POWERS, 0.002, throughput)), None);
        };
        none(&law(0.05, 0.0));
        none(&law(0.02, 0.0005));
        none(&law(0.0, 0.0));
        // Half a percent per doubling, which no single step would show.
        none(&|load| {
            if load < 8.0 {
                load * 1000.0
            } else {
                8000.0 * (1.0 + 0.005 * (load / 8.0).log2())
            }
        });
        // The same downwards.
        none(&|load| {
            if load < 8.0 {
                load * 1000.0
            } else {
                8000.0 * (1.0 - 0.005 * (load / 8.0).log2())
            }
        });
    }

    #[test]
    fn too_little_shows_no_cap() {
        let level = |load: f64| (load * 1000.0).min(5000.0);
        assert_eq!(
            cap(&curve(&[4.0, 5.0, 8.0, 16.0], 0.001, level)),
            None,
            "a factor of 3.2"
        );
        assert_eq!(
            cap(&curve(&[4.0, 5.0, 40.0], 0.001, level)),
            None,
            "two loads"
        );
        assert_eq!(cap(&curve(&POWERS, 0.08, level)), None, "hardly known");
        let mut points = curve(&POWERS, 0.001, level);
        points.iter_mut().for_each(|point| point.response = 0.001);
        assert_eq!(cap(&points), None, "latency does not rise");
    }
}
