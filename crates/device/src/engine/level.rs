//! How the speed of a modelled device varies in time: a level for each window of [`SpeedLevel::WINDOW`].
//!
//! Input: what a model says of its level, which may be the name of a file of counts, and the seed. Output: the level of
//! any window; the mean is 1. The same seed always gives the same levels, and another one others.

use crate::bounded;
use rigel_model::workload::rng::Rng;
use rigel_model::{Error, SpeedLevel, in_line, usage};
use std::fs::{self, File};
use std::io::Read;
use std::path::Path;

/// The most bytes of a file of counts: two days of windows.
const FILE_MAX: u64 = 64 << 20;

/// The column of the counts.
const COLUMN: &str = "count";

/// The characters of a wrong value that an error shows.
const SHOWN: usize = 20;

/// The stream of random numbers of a seed that levels have for themselves.
const STREAM: u64 = u64::MAX;

/// The levels of a device.
#[derive(Debug)]
pub(super) enum Levels {
    /// Those of a file, from this one on, again and again.
    Repeated { levels: Vec<f64>, first: u64 },
    /// Random ones, as far as they are drawn.
    Drawn(Drawn),
}

/// A log-normal AR(1).
#[derive(Debug)]
pub(super) struct Drawn {
    rng: Rng,
    /// Variance of the logarithm.
    variance: f64,
    /// Correlation of neighbours.
    correlation: f64,
    /// The last logarithm, less its mean.
    last: f64,
    levels: Vec<f64>,
}

impl Levels {
    /// The levels of a device with this seed.
    ///
    /// # Errors
    /// The file cannot be read, or is not one of counts.
    pub(super) fn open(level: &SpeedLevel, seed: u64) -> Result<Self, Error> {
        let mut rng = Rng::new(seed, STREAM);
        match level {
            SpeedLevel::File(path) => {
                let counts = counts(path)?;
                let mean = counts.iter().sum::<f64>() / counts.len() as f64;
                let levels: Vec<f64> = counts.iter().map(|count| count / mean).collect();
                let first = rng.below(levels.len() as u64);
                Ok(Self::Repeated { levels, first })
            }
            SpeedLevel::Random { deviation, over } => {
                // A log-normal number of mean 1 has this variance of its logarithm.
                let variance = deviation.get().powi(2).ln_1p();
                let windows = over.as_secs_f64() / SpeedLevel::WINDOW.as_secs_f64();
                Ok(Self::Drawn(Drawn {
                    last: variance.sqrt() * rng.normal(),
                    rng,
                    variance,
                    correlation: (-1.0 / windows).exp(),
                    levels: Vec::new(),
                }))
            }
        }
    }

    /// The level of a window, counted from the beginning of the run.
    pub(super) fn at(&mut self, window: u64) -> f64 {
        match self {
            Self::Repeated { levels, first } => {
                let at = (*first + window) % levels.len() as u64;
                levels[usize::try_from(at).expect("below a length")]
            }
            Self::Drawn(drawn) => {
                let window = usize::try_from(window).expect("a run has few windows");
                while drawn.levels.len() <= window {
                    drawn.draw();
                }
                drawn.levels[window]
            }
        }
    }
}

impl Drawn {
    fn draw(&mut self) {
        self.levels.push((self.last - self.variance / 2.0).exp());
        let fresh = (self.variance * (1.0 - self.correlation.powi(2))).sqrt();
        self.last = self.correlation * self.last + fresh * self.rng.normal();
    }
}

/// Refuses a level whose file is not one of counts.
///
/// # Errors
/// As said.
pub fn check(level: &SpeedLevel) -> Result<(), Error> {
    match level {
        SpeedLevel::File(path) => counts(path).map(drop),
        SpeedLevel::Random { .. } => Ok(()),
    }
}

/// The counts of a file: a table of comma-separated values, whose first line names the column.
fn counts(path: &Path) -> Result<Vec<f64>, Error> {
    let path = path.to_path_buf();
    let named = in_line(&path.display().to_string()).into_owned();
    let hint = "a file of levels has a first line that names its columns, one of them 'count', and a line for each 100 ms";
    let what = format!("reading '{named}'");
    let text = bounded::call(&what, bounded::ANSWER, move || text(&path))?
        .map_err(|why| usage!("the level '{named}' cannot be read: {why}", "{hint}"))?;
    let mut lines = text.lines().enumerate();
    let first = lines.next().map_or("", |(_, line)| line);
    let column = first
        .split(',')
        .map(str::trim)
        .position(|name| name == COLUMN);
    let column = column.ok_or_else(|| {
        usage!(
            "the level '{named}', line 1: there is no column '{COLUMN}'",
            "{hint}"
        )
    })?;
    let mut counts = Vec::new();
    for (at, line) in lines {
        let value = line.split(',').nth(column).unwrap_or_default().trim();
        let count = value.parse::<f64>().ok();
        let count = count.filter(|count| count.is_finite() && *count >= 0.0);
        counts.push(count.ok_or_else(|| {
            let shown: String = value.chars().take(SHOWN).collect();
            usage!(
                "the level '{named}', line {line}: '{shown}' is no count of operations",
                "{hint}",
                line = at + 1,
                shown = in_line(&shown)
            )
        })?);
    }
    if counts.iter().sum::<f64>() <= 0.0 {
        return Err(usage!("the level '{named}' has no count above 0", "{hint}"));
    }
    Ok(counts)
}

/// The text of a regular file that is not too long.
fn text(path: &Path) -> Result<String, String> {
    let facts = fs::metadata(path).map_err(|error| error.to_string())?;
    if !facts.is_file() {
        return Err("it is no regular file".into());
    }
    let mut text = String::new();
    let file = File::open(path).map_err(|error| error.to_string())?;
    let read = file.take(FILE_MAX + 1).read_to_string(&mut text);
    read.map_err(|error| error.to_string())?;
    if text.len() as u64 > FILE_MAX {
        return Err(format!("it is longer than {} MiB", FILE_MAX >> 20));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(text: &str) -> SpeedLevel {
        let spec: rigel_model::SimSpec = format!("1,1ms,level={text}").parse().unwrap();
        spec.level.unwrap()
    }

    fn first(text: &str, seed: u64, windows: u64) -> Vec<f64> {
        let mut levels = Levels::open(&level(text), seed).unwrap();
        (0..windows).map(|window| levels.at(window)).collect()
    }

    /// Mean, standard deviation and correlation at this distance.
    fn moments(values: &[f64], distance: usize) -> [f64; 3] {
        let number = values.len() as f64;
        let mean = values.iter().sum::<f64>() / number;
        let products = |distance: usize| -> f64 {
            let pairs = values.iter().zip(&values[distance..]);
            pairs.map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>()
        };
        let variance = products(0);
        [
            mean,
            (variance / number).sqrt(),
            products(distance) / variance,
        ]
    }

    #[test]
    fn random_levels_have_the_deviation_and_the_correlation_that_were_asked_for() {
        for (text, deviation, after_a_second) in [
            ("15% over 300ms", 0.15, (-1.0f64 / 0.3).exp()),
            ("8% over 2s", 0.08, (-0.5f64).exp()),
            ("60% over 1s", 0.6, (-1.0f64).exp()),
        ] {
            let levels = first(text, 3, 400_000);
            let [mean, found, correlation] = moments(&levels, 10);
            assert!((mean - 1.0).abs() < 0.01, "{text}: {mean}");
            assert!((found / deviation - 1.0).abs() < 0.05, "{text}: {found}");
            // That of the level; its logarithm has exactly the one that is asked for.
            let variance = (deviation * deviation).ln_1p();
            let expected = (after_a_second * variance).exp_m1() / variance.exp_m1();
            assert!(
                (correlation - expected).abs() < 0.03,
                "{text}: {correlation}"
            );
        }
        assert_eq!(first("8% over 2s", 3, 50), first("8% over 2s", 3, 50));
        assert_ne!(first("8% over 2s", 3, 50), first("8% over 2s", 4, 50));
        assert_eq!(first("0% over 2s", 3, 50), [1.0; 50]);
    }

    /// The levels of a file with this text, and the error of one that has none.
    fn of_file(name: &str, text: &str) -> Result<Vec<f64>, String> {
        let path = std::env::temp_dir().join(format!("rigel-level-{}-{name}", std::process::id()));
        fs::write(&path, text).unwrap();
        let read = counts(&path).map_err(|error| error.to_string());
        fs::remove_file(&path).unwrap();
        read
    }

    #[test]
    fn a_file_of_counts_is_read_by_the_name_of_its_column() {
        let read = of_file(
            "named",
            "seconds,visit,count\n0.0,0,30\n0.1,0,10\n0.2,0,0\n",
        );
        assert_eq!(read.unwrap(), [30.0, 10.0, 0.0]);
        let read = of_file("alone", "count\r\n30\r\n10.5\r\n");
        assert_eq!(read.unwrap(), [30.0, 10.5]);
    }

    #[test]
    fn a_file_that_is_none_of_counts_is_refused_by_line_and_value() {
        for (name, text, line, value) in [
            ("empty", "", "line 1", "'count'"),
            ("other", "seconds,rate\n0.0,7\n", "line 1", "'count'"),
            ("word", "count\n7\nseven\n", "line 3", "'seven'"),
            ("negative", "count\n-7\n", "line 2", "'-7'"),
            ("infinite", "count\ninf\n", "line 2", "'inf'"),
            ("short", "seconds,count\n0.0\n", "line 2", "''"),
            ("still", "count\n0\n0\n", "no count above 0", ""),
            ("headed", "count\n", "no count above 0", ""),
        ] {
            let error = of_file(name, text).unwrap_err();
            let is_named = error.contains(line) && error.contains(value);
            assert!(is_named && error.contains(&format!("-{name}'")), "{error}");
        }
        for path in ["/nowhere/levels.csv", "/", "/dev/zero"] {
            let error = check(&level(path)).unwrap_err();
            assert_eq!(error.exit_status(), 2, "{error}");
            assert!(error.to_string().contains(&format!("'{path}'")), "{error}");
        }
    }
}
