//! The noise of a run: by how much visits to a load differ, known from all loads together.
//!
//! Input: for each load how far its visits lie from their common mean, and how much of that the counting of single
//! operations would explain. Output: the error of the mean of some visits to one load. Each load has few visits, and
//! alone knows its own noise hardly at all (of two visits Student's t is 12.7); a run has dozens.
//!
//! The variance of a visit is that of a level which changes from visit to visit, and one that is the smaller the more
//! was counted: `level + counting · dispersion / n`. Both are fitted to the squares of all visits by Fisher scoring,
//! which gives restricted maximum likelihood for normal deviations (Searle, Casella and `McCulloch`, Variance
//! Components, 1992, chapter 6). So a slow device, whose depth 1 counts a hundredth of what depth 128 does, has wide
//! intervals only there; and a shared disk, where all loads vary alike, has the same at all.

use crate::mean::Spread;

/// What one visit adds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Deviation {
    /// The logarithm of its value less that of the mean of its load.
    pub size: f64,
    /// The variance that its own operations give it: [`Dispersion`] / n for a rate of n operations.
    pub counted: f64,
}

/// How unevenly operations come within a visit, as the variance of their number in a window divided by its mean: 1 if
/// they come independently, 0 if they keep time. Each load has its own, drawn to the common one as far as chance
/// explains what they differ by (James and Stein, Proceedings of the Fourth Berkeley Symposium, 1961).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dispersion {
    common: f64,
    /// The part of a load's distance from the common one that is its own.
    own: f64,
}

impl Dispersion {
    /// That of these loads, each with its dispersion and the degrees of freedom of that; `None` without any.
    pub fn of(loads: &[(f64, f64)]) -> Option<Self> {
        let degrees: f64 = loads.iter().map(|(_, degrees)| degrees).sum();
        let number = loads.len() as f64;
        let common = loads
            .iter()
            .map(|(one, degrees)| one * degrees)
            .sum::<f64>()
            / degrees;
        let seen = loads
            .iter()
            .map(|(one, _)| (one - common).powi(2))
            .sum::<f64>();
        // A variance of d degrees of freedom has the variance 2 / d, relative to its square.
        let chance = |(_, degrees): &(f64, f64)| 2.0 * common * common / degrees;
        let by_chance = loads.iter().map(chance).sum::<f64>() / number;
        let own = if number > 1.0 && seen > 0.0 {
            (1.0 - by_chance * (number - 1.0) / seen).max(0.0)
        } else {
            0.0
        };
        (degrees > 0.0).then_some(Self { common, own })
    }

    /// That of a load, which shows this by itself with these degrees of freedom, if anything.
    pub fn of_load(self, shown: Option<(f64, f64)>) -> f64 {
        shown.map_or(self.common, |(shown, _)| {
            self.common + self.own * (shown - self.common)
        })
    }
}

/// The noise of a visit to any load of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Noise {
    /// The variance of the level between visits, however much each of them counts.
    pub level: f64,
    /// What the variance of counting is multiplied with: 1 if that is all, more if neighbouring windows are alike.
    pub counting: f64,
    /// Degrees of freedom: all visits, less one for each load.
    pub degrees: f64,
}

impl Noise {
    /// The noise that these loads show, each with its visits; `None` if no load was visited twice.
    pub fn of<'a>(loads: impl IntoIterator<Item = &'a [Deviation]>) -> Option<Self> {
        /// More than enough: each step solves the equations for the weights of the one before.
        const STEPS: usize = 50;
        /// Less than any measurement can tell, so that weights stay finite.
        const LEAST: f64 = 1e-12;
        let mut squares = Vec::new();
        let mut degrees = 0.0;
        for visits in loads.into_iter().filter(|visits| visits.len() > 1) {
            // Around the mean of few visits they deviate less than around the truth.
            let missing = 1.0 - 1.0 / visits.len() as f64;
            degrees += visits.len() as f64 - 1.0;
            squares.extend(visits.iter().map(|visit| Square {
                size: visit.size * visit.size / missing,
                counted: visit.counted,
                weight: missing,
            }));
        }
        if degrees <= 0.0 {
            return None;
        }
        let mean = squares.iter().map(|one| one.size).sum::<f64>() / squares.len() as f64;
        let (mut level, mut counting) = (mean, 0.0);
        for _ in 0..STEPS {
            let variance = |one: &Square| (level + counting * one.counted).max(LEAST);
            let found = least_squares(&squares, variance);
            if found == (level, counting) {
                break;
            }
            (level, counting) = found;
        }
        // However alike a few visits are by chance, their own operations make them differ.
        if counting < 1.0 {
            counting = 1.0;
            for _ in 0..STEPS {
                let weight = |one: &Square| one.weight / (level + one.counted).max(LEAST).powi(2);
                let of = |value: &dyn Fn(&Square) -> f64| {
                    squares
                        .iter()
                        .map(|one| weight(one) * value(one))
                        .sum::<f64>()
                };
                let found = (of(&|one| one.size - one.counted) / of(&|_| 1.0)).max(0.0);
                if (found - level).abs() <= f64::EPSILON * level {
                    break;
                }
                level = found;
            }
        }
        Some(Self {
            level,
            counting,
            degrees,
        })
    }

    /// The relative error of the mean of `visits`, whose counting alone would give the variance `counted`.
    pub fn of_mean(&self, visits: f64, counted: f64) -> Spread {
        Spread {
            error: (self.level / visits + self.counting * counted).sqrt(),
            degrees: self.degrees,
        }
    }
}

/// The square of a deviation.
struct Square {
    size: f64,
    counted: f64,
    weight: f64,
}

/// The line `level + counting · counted` through the squares, none of its two parts below zero. A square of a normal
/// deviation has a variance of twice the square of its mean.
fn least_squares(squares: &[Square], variance: impl Fn(&Square) -> f64) -> (f64, f64) {
    let [mut w, mut wx, mut wxx, mut wy, mut wxy] = [0.0; 5];
    for one in squares {
        let weight = one.weight / variance(one).powi(2);
        w += weight;
        wx += weight * one.counted;
        wxx += weight * one.counted * one.counted;
        wy += weight * one.size;
        wxy += weight * one.counted * one.size;
    }
    let determinant = w * wxx - wx * wx;
    // Loads that all counted alike do not tell the parts apart.
    if determinant <= 1e-9 * w * wxx {
        return (wy / w, 0.0);
    }
    let level = (wxx * wy - wx * wxy) / determinant;
    let counting = (w * wxy - wx * wy) / determinant;
    if level < 0.0 {
        (0.0, wxy / wxx)
    } else if counting < 0.0 {
        (wy / w, 0.0)
    } else {
        (level, counting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random, from a normal distribution.
    struct Normal(u64);

    impl Normal {
        fn uniform(&mut self) -> f64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
        }

        fn next(&mut self) -> f64 {
            let radius = (-2.0 * self.uniform().ln()).sqrt();
            radius * (std::f64::consts::TAU * self.uniform()).cos()
        }
    }

    /// The visits of ten loads, two or three each, that count 5 to 2560 operations: their deviations, and that of
    /// the mean of each load from the truth.
    fn run(normal: &mut Normal, level: f64, counting: f64) -> Vec<(Vec<Deviation>, f64)> {
        let load = |at: usize| {
            let counted = 1.0 / (5.0 * 2.0_f64.powf(at as f64));
            let deviation = (level * level + counting * counted).sqrt();
            let values: Vec<f64> = (0..2 + at % 2).map(|_| deviation * normal.next()).collect();
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let visits = values.iter().map(|value| Deviation {
                size: value - mean,
                counted,
            });
            (visits.collect(), mean)
        };
        (0..10).map(load).collect()
    }

    #[test]
    fn intervals_of_all_loads_hold_the_truth_and_are_as_narrow_as_the_noise_allows() {
        for (level, counting) in [(0.0, 1.0), (0.1, 1.0), (0.05, 2.0), (0.02, 4.0)] {
            let mut normal = Normal(1);
            let (mut held, mut of, mut widths, mut allowed) = (0, 0, 0.0, 0.0);
            for _ in 0..400 {
                let loads = run(&mut normal, level, counting);
                let noise = Noise::of(loads.iter().map(|(visits, _)| visits.as_slice())).unwrap();
                assert!((noise.degrees - 15.0).abs() < 1e-9);
                for (visits, off) in loads {
                    let (count, counted) = (visits.len() as f64, visits[0].counted);
                    let half = noise.of_mean(count, counted / count).half_width();
                    held += usize::from(off.abs() <= half);
                    of += 1;
                    widths += half;
                    allowed += 1.96 * ((level * level + counting * counted) / count).sqrt();
                }
            }
            let what = format!("{level}, {counting}: {held} of {of}, {}", widths / allowed);
            assert!(100 * held >= 92 * of && 100 * held <= 98 * of, "{what}");
            assert!(widths < 1.15 * allowed, "{what}");
        }
    }

    #[test]
    fn a_load_keeps_its_own_dispersion_where_chance_does_not_explain_it() {
        // Of fourteen degrees each, 0.8 to 1.2 are chance.
        let alike = Dispersion::of(&[(0.8, 14.0), (1.0, 14.0), (1.2, 14.0)]).unwrap();
        let of = |one: f64| Some((one, 14.0));
        assert!((alike.of_load(of(0.8)) - 1.0).abs() < 1e-9, "{alike:?}");
        // A throttle keeps time, and a single reader does not.
        let apart = Dispersion::of(&[(0.0, 14.0), (0.0, 14.0), (0.0, 14.0), (1.0, 14.0)]).unwrap();
        assert!(
            apart.of_load(of(1.0)) > 0.9 && apart.of_load(of(0.0)) < 0.1,
            "{apart:?}"
        );
        assert!((apart.of_load(None) - 0.25).abs() < 1e-9);
        assert_eq!(Dispersion::of(&[]), None);
    }

    #[test]
    fn visits_that_do_not_differ_have_no_noise_and_single_ones_say_nothing() {
        let same = Deviation {
            size: 0.0,
            counted: 0.01,
        };
        let none = Noise::of([&[same; 3][..], &[same; 2]]).unwrap();
        assert!(
            (none.of_mean(3.0, 0.003).error - 0.003_f64.sqrt()).abs() < 1e-9,
            "{none:?}"
        );
        assert!(none.of_mean(3.0, 0.0).error < 1e-9, "{none:?}");
        assert!((none.degrees - 3.0).abs() < 1e-9);
        assert_eq!(Noise::of([&[same][..], &[same], &[]]), None);
    }
}
