//! What is said of a series of rounds whose truth is known: steps, slopes, waves, noise, and a published day.

use rigel::analyse::{
    FALSE_ALARMS_ONE_IN, Kept, Predictability, PredictabilityTerms, Quantity, Round, RoundEnd, Word, predictability,
};
use rigel::model::Moment;
use rigel::workload::rng::Rng;

const QUARTER: f64 = 900.0;
const DAY: f64 = 86_400.0;

/// Normal, of mean 0 and deviation 1 (Box and Muller 1958).
fn normal(rng: &mut Rng) -> f64 {
    (2.0 * rng.exponential()).sqrt() * (std::f64::consts::TAU * rng.unit()).cos()
}

/// Student's t with three degrees of freedom, scaled to deviation 1: single values of ten deviations are not rare.
fn heavy(rng: &mut Rng) -> f64 {
    let squares: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
    normal(rng) / (squares / 3.0).sqrt() / 3f64.sqrt()
}

/// Noise of deviation 1.
#[derive(Debug, Clone, Copy)]
enum Noise {
    Independent,
    /// Neighbours correlate by 0.3.
    Correlated,
    /// With heavy tails.
    Heavy,
}

impl Noise {
    fn series(self, rng: &mut Rng, n: usize) -> Vec<f64> {
        let rho: f64 = 0.3;
        let mut at = normal(rng);
        let mut next = || match self {
            Noise::Independent => normal(rng),
            Noise::Heavy => heavy(rng),
            Noise::Correlated => {
                at = rho * at + (1.0 - rho * rho).sqrt() * normal(rng);
                at
            }
        };
        (0..n).map(|_| next()).collect()
    }
}

fn start() -> Moment {
    "2026-03-02T00:00:00+01:00".parse().unwrap()
}

/// A round that began so many seconds after the start.
fn round(index: usize, every: f64, rate: f64, p99_us: f64) -> Round {
    #[allow(clippy::cast_possible_truncation, reason = "whole seconds of a few weeks")]
    let begin = start().plus_seconds((index as f64 * every) as i64);
    Round {
        number: u32::try_from(index).unwrap() + 1,
        begin,
        seconds: 1e6 / rate,
        done: 1e6,
        failed: 0,
        asked: Some(1_000_000),
        rate: Some(rate),
        mean_us: None,
        p50_us: Some(p99_us / 3.0),
        p99_us: Some(p99_us),
        max_us: Some(p99_us * 4.0),
        end: RoundEnd::Whole,
        kept: vec![Kept { kept: p99_us < 2000.0, share: None }],
        host: None,
    }
}

/// Rounds every quarter of an hour around 5,000 a second and a p99 of 1.5 ms, with noise of `deviation` on the rate and
/// twice that on the latency; `shape` says by round and seconds what is added to the logarithm of the rate.
fn series(seed: u64, n: usize, noise: (Noise, f64), shape: impl Fn(usize, f64) -> f64) -> Vec<Round> {
    let mut rng = Rng::new(seed, n as u64);
    let (kind, deviation) = noise;
    let (rates, latencies) = (kind.series(&mut rng, n), kind.series(&mut rng, n));
    let one = |index: usize| {
        let shaped = shape(index, index as f64 * QUARTER);
        let rate = 5000.0 * (shaped + deviation * rates[index]).exp();
        round(index, QUARTER, rate, 1500.0 * (2.0 * deviation * latencies[index]).exp())
    };
    (0..n).map(one).collect()
}

fn found(rounds: &[Round]) -> Predictability {
    predictability(rounds, &PredictabilityTerms { share: 0.99, ..PredictabilityTerms::default() })
}

/// What was said to have changed: in words, for a failing test to show.
fn told(found: &Predictability) -> Vec<String> {
    let changes =
        found.changes.iter().map(|change| format!("{:?} {:.3} at {}", change.of, change.factor, change.round));
    let trends = found.trends.iter().map(|trend| format!("{:?} trend {:.4}", trend.of, trend.factor_per_day));
    let daily = found.daily.iter().map(|daily| format!("{:?} daily {:.3}", daily.of, daily.peak_factor));
    let slow = found.episodes.iter().map(|episode| format!("slow from {}", episode.first_round));
    changes.chain(trends).chain(daily).chain(slow).collect()
}

/// In how many of so many series of noise something is told.
fn false_alarms(seeds: std::ops::Range<u64>, n: usize, noise: Noise, deviation: f64) -> Vec<String> {
    let alarm = |seed: u64| {
        let said = told(&found(&series(seed, n, (noise, deviation), |_, _| 0.0)));
        (!said.is_empty()).then(|| format!("{noise:?}, {n} rounds, seed {seed}: {}", said.join("; ")))
    };
    seeds.filter_map(alarm).collect()
}

#[test]
fn nothing_is_invented_in_two_hundred_series_of_noise() {
    let mut alarms = Vec::new();
    for noise in [Noise::Independent, Noise::Correlated, Noise::Heavy] {
        for n in [20, 96, 288] {
            alarms.extend(false_alarms(0..200, n, noise, 0.03));
        }
    }
    assert!(alarms.is_empty(), "{}", alarms.join("\n"));
}
