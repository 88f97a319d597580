//! What an earlier run expects of another one: not to be worse than it.
//!
//! Input: `not worse than RUN by 10%`. Output: what that run measured, as expectations. The run's own
//! uncertainty counts for the other one: limits lie beyond the far ends of its intervals, so that what is
//! not met is worse by more than was allowed.

use super::profile::{Expected, ProfileUsed};
use rigel_analyse::figures::latency::LatencyFigure;
use rigel_analyse::{ClassSummary, PointSummary, RateMet};
use rigel_model::record::journal::Header;
use rigel_model::{
    Bytes, Coordinates, Error, Expectation, ExpectedLoad, ExpectedOf, MIB, Measure, Nanos,
    Objective, Ratio, usage,
};
use std::path::PathBuf;

/// Offered rates above this part of the greatest throughput wait in a queue, whose length says more of a
/// small difference than 10 % of it.
const QUEUE_FROM: f64 = 0.7;

/// Most that a run may be worse by: beyond it nothing would be expected.
const WORSE_MOST: f64 = 0.99;

/// An earlier run, and by how much another one may be worse.
#[derive(Debug, Clone, PartialEq)]
pub struct Baseline {
    /// Its directory or journal.
    pub path: PathBuf,
    by: Ratio,
}

impl Baseline {
    /// The run that an argument names; `None` if it is meant to be something else.
    ///
    /// # Errors
    /// It does not say which run, or by how much.
    pub fn named(argument: &str) -> Result<Option<Self>, Error> {
        let Some(rest) = argument.trim().strip_prefix(Expectation::NOT_WORSE) else {
            return Ok(None);
        };
        let (path, share) = rest.rsplit_once(" by ").unwrap_or((rest, ""));
        let share = share.trim();
        if !share.ends_with('%') {
            return Err(usage!(
                "'{argument}' does not say which run, and by how much",
                "write it as 'not worse than RUN by 10%', in quotes"
            ));
        }
        let by = share.parse::<Ratio>().ok();
        let by = by.filter(|by| (1e-4..=WORSE_MOST).contains(&by.get()));
        let by = by.ok_or_else(|| {
            usage!(
                "'{argument}': {share} is out of range",
                "give 0.01% to {most}%",
                most = WORSE_MOST * 100.0
            )
        })?;
        let path = path.trim().into();
        Ok(Some(Self { path, by }))
    }

    /// What it expects, by its header and its points.
    ///
    /// # Errors
    /// It has no figure that another run could be worse than.
    pub fn expected(&self, header: &Header, points: &[PointSummary]) -> Result<Expected, Error> {
        let path = self.path.display();
        let (size, expectations) = of_points(points, self.by.get());
        if expectations.is_empty() {
            return Err(usage!(
                "the run '{path}' has no load that could be measured again with an interval",
                "give a run of rigel calibrate, curve or expect; compare others with rigel compare"
            ));
        }
        let from = ProfileUsed {
            name: format!("{}{path} by {}", Expectation::NOT_WORSE, self.by.exact()),
            source: format!("what was measured of {}", header.facts.name),
            date: header.started.chars().take("2026-11-25".len()).collect(),
        };
        Ok(Expected {
            from,
            size,
            expectations,
        })
    }
}

/// What a run measured at a load that can be expected.
struct Measured<'a> {
    of: ExpectedOf,
    load: ExpectedLoad,
    class: &'a ClassSummary,
}

/// The expectations of these points, and the size of their small reads.
fn of_points(points: &[PointSummary], by: f64) -> (Option<Bytes>, Vec<Expectation>) {
    let all: Vec<Measured> = points.iter().filter_map(Measured::of).collect();
    let small = all.iter().filter(|one| one.of == ExpectedOf::Reads);
    let size = small.clone().map(|one| one.class.io_bytes).next();
    let small = small.filter(|one| Some(one.class.io_bytes) == size);
    let closed = small.clone().filter(|one| one.depth().is_some());
    let (best, lowest) = (best(closed.clone()), closed.min_by_key(|one| one.depth()));
    let most = best.map_or(f64::INFINITY, |best| best.class.iops * QUEUE_FROM);
    let at_rates = small.filter(|one| match one.load {
        ExpectedLoad::Rate(rate) => rate as f64 <= most && one.class.met == Some(RateMet::Yes),
        _ => false,
    });
    let large = all.iter().filter(|one| one.of == ExpectedOf::Throughput);
    let logs = all.iter().filter(|one| one.of == ExpectedOf::Log);
    // At one load the throughput says the response time.
    let lowest = lowest.filter(|lowest| best.map(Measured::depth) != Some(lowest.depth()));
    let rates = best.into_iter().chain(self::best(large));
    let p50 = lowest
        .into_iter()
        .filter_map(|one| one.within(LatencyFigure::P50, by));
    let p99 = at_rates
        .chain(logs)
        .filter_map(|one| one.within(LatencyFigure::P99, by));
    let expected = rates
        .filter_map(|one| one.at_least(by))
        .chain(p50)
        .chain(p99);
    (size.map(|bytes| Bytes(bytes.into())), expected.collect())
}

/// The load of which the most is certain.
fn best<'a>(all: impl Iterator<Item = &'a Measured<'a>>) -> Option<&'a Measured<'a>> {
    let least = |one: &Measured| one.class.rate().least();
    all.max_by(|one, other| least(one).total_cmp(&least(other)))
}

impl<'a> Measured<'a> {
    /// A point, if its load can be expected and all of its operations succeeded.
    fn of(point: &'a PointSummary) -> Option<Self> {
        let class = point.classes.first()?;
        let (of, load) = match point.coordinates {
            Coordinates::Depth {
                depth,
                large_beside: 0,
                log: None,
            } => (ExpectedOf::Reads, ExpectedLoad::Depth(depth)),
            Coordinates::Rate {
                rate_per_s,
                large_beside: 0,
                ..
            } => (ExpectedOf::Reads, ExpectedLoad::Rate(rate_per_s)),
            Coordinates::Large { depth } if u64::from(class.io_bytes) == MIB => {
                (ExpectedOf::Throughput, ExpectedLoad::Depth(depth))
            }
            Coordinates::Log {
                bytes,
                log: Some(log),
                writers,
            } => {
                let load = ExpectedLoad::Log {
                    log,
                    bytes,
                    writers,
                };
                (ExpectedOf::Log, load)
            }
            _ => return None,
        };
        let is_whole = class.done > 0 && class.failed.is_empty();
        let is_expected = class.writes == 0 || of == ExpectedOf::Log;
        (is_whole && is_expected).then_some(Self { of, load, class })
    }

    fn depth(&self) -> Option<u32> {
        match self.load {
            ExpectedLoad::Depth(depth) => Some(depth),
            _ => None,
        }
    }

    fn expect(&self, limit: Measure) -> Expectation {
        Expectation {
            of: self.of,
            limit: Objective(limit),
            load: Some(self.load),
            margin: Ratio::ZERO,
        }
    }

    /// A lower limit of the rate; `None` if the run's interval is not known.
    fn at_least(&self, by: f64) -> Option<Expectation> {
        let low = self.class.rate().interval?.low * (1.0 - by);
        let limit = match self.of {
            ExpectedOf::Throughput => low * f64::from(self.class.io_bytes) / 1e6,
            _ => low,
        };
        let limit = limit.floor();
        (limit > 0.0).then(|| self.expect(Measure::Rate(limit)))
    }

    /// An upper limit of the response time; `None` if the run's interval has no upper end.
    fn within(&self, which: LatencyFigure, by: f64) -> Option<Expectation> {
        let high_us = self.class.time(which)?.interval?.high? * (1.0 + by);
        // Three digits.
        let step = 10_f64.powf(high_us.log10().floor() - 2.0);
        let limit = Nanos::from_micros_f64((high_us / step).ceil() * step);
        let quantile = if which == LatencyFigure::P99 {
            0.99
        } else {
            0.5
        };
        Some(self.expect(Measure::Quantile(quantile, limit)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_run_or_no_share_is_refused() {
        for argument in [
            "not worse than run",
            "not worse than run by 10",
            "not worse than run by much",
            "not worse than run by",
        ] {
            let refused = Baseline::named(argument).unwrap_err().to_string();
            assert!(refused.contains("by how much"), "{argument}: {refused}");
        }
        for share in ["0%", "150%", "-3%"] {
            let refused = Baseline::named(&format!("not worse than run by {share}"));
            assert!(refused.unwrap_err().to_string().contains("out of range"));
        }
        assert_eq!(Baseline::named("p99<2ms@3000/s").unwrap(), None);
        let found = Baseline::named("not worse than a by b by 1.5%")
            .unwrap()
            .unwrap();
        assert_eq!((found.path, found.by.get()), ("a by b".into(), 0.015));
    }
}
