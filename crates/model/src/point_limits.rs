//! What a point may ask of a target that was prepared for certain points.
//!
//! Input: the points for which a target was prepared, which are those with the largest and the most
//! operations. Output: a refusal of any other point that asks for more. Points come from a plan, but
//! a plan follows from a journal or from another rank, which may contain any numbers: what is
//! refused here would be written outside of the target, or end the program.

use super::{Bytes, Error, Load, Nanos, Point, Ratio, SqlWork, Stream, Until};
use crate::record::bounds::WINDOWS_MAX;
use crate::usage;

/// What a point may ask for.
#[derive(Debug, Clone, Default)]
pub struct PointLimits {
    /// Bytes of the target that operations may reach.
    usable: u64,
    /// Lengths of operations for which there are buffers.
    lengths: Vec<u32>,
    /// Maximum number of outstanding operations.
    slots_max: u64,
    /// True if operations may write.
    writes: bool,
    /// The works for which sessions of a database were prepared; empty if the target is none.
    works: Vec<SqlWork>,
}

impl PointLimits {
    /// The limits of a target of `usable` bytes that was prepared for these points.
    pub fn of(prepared: &[Point], usable: u64, writes: bool, is_database: bool) -> Self {
        let streams = || prepared.iter().flat_map(|point| &point.streams);
        let works = streams().filter_map(|stream| stream.sql);
        Self {
            usable,
            lengths: streams().map(|stream| stream.length).collect(),
            slots_max: prepared.iter().map(slots).max().unwrap_or(0),
            writes,
            works: works.filter(|_| is_database).collect(),
        }
    }
}

/// Outstanding operations of all streams of a point.
fn slots(point: &Point) -> u64 {
    let of_stream = |stream: &Stream| u64::from(stream.load.slots());
    point.streams.iter().map(of_stream).sum()
}

impl Point {
    /// Refuses a point that asks for more than the target was prepared for.
    ///
    /// # Errors
    /// The sentence names the point, the value and the limit.
    pub fn check(&self, limits: &PointLimits) -> Result<(), Error> {
        let refused = |why: String| {
            Err(usage!(
                "{coordinates} cannot be measured: {why}",
                "the journal is damaged or of another version, or rank 0 is",
                coordinates = self.coordinates
            ))
        };
        if self.streams.is_empty() {
            return refused("it has no stream of operations".into());
        }
        if self.window == Nanos(0) {
            return refused("its windows last 0s".into());
        }
        let windows = self
            .until
            .longest()
            .map_or(0, |most| most.0 / self.window.0);
        if windows > WINDOWS_MAX {
            return refused(format!(
                "it lasts {windows} windows, and the limit is {WINDOWS_MAX}"
            ));
        }
        let slots = slots(self);
        if slots == 0 || slots > limits.slots_max {
            return refused(format!(
                "it has {slots} outstanding operations, and the target was prepared for 1 to {}",
                limits.slots_max
            ));
        }
        match self.streams.iter().find_map(|stream| stream.misfit(limits)) {
            Some((stream, why)) => refused(format!("{stream} {why}")),
            None => Ok(()),
        }
    }
}

impl Stream {
    /// Its name, and what it asks for that the target was not prepared for; `None` if nothing.
    fn misfit(&self, limits: &PointLimits) -> Option<(&str, String)> {
        let misfit = |why: String| Some((&*self.name, why));
        let length = Bytes(self.length.into());
        if !limits.lengths.contains(&self.length) {
            return misfit(format!(
                "has operations of {length}, for which nothing was prepared"
            ));
        }
        if self.length == 0 || length.0 > limits.usable {
            return misfit(format!(
                "has operations of {length}, and the target has {}",
                Bytes(limits.usable)
            ));
        }
        if let Load::Open { rate, .. } = self.load
            && !(rate.is_finite() && rate > 0.0)
        {
            return misfit(format!("has {rate} operations per second"));
        }
        if self.mix.writes > Ratio::ZERO && !limits.writes {
            return misfit("writes, and the target was prepared for reads".into());
        }
        match self.sql {
            // Their positions are those of tables, whatever the size of the target is.
            Some(_) if limits.works.is_empty() => {
                misfit("has sessions of a database, and the target is none".into())
            }
            Some(work) if !limits.works.contains(&work) => {
                misfit("has sessions with other work than the database was prepared for".into())
            }
            Some(work) if work.extent() > limits.usable / length.0 => misfit(format!(
                "has tables of {} blocks, and the database has {}",
                work.extent(),
                limits.usable / length.0
            )),
            _ => None,
        }
    }
}

impl Until {
    /// The longest time that the measurement may take; `None` for an amount of work without a limit.
    pub const fn longest(self) -> Option<Nanos> {
        match self {
            Self::Elapsed(most) | Self::Precise { most, .. } | Self::Work { most, .. } => {
                Some(most)
            }
            Self::Ops(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Coordinates, Mix, Pattern, Tables, WarmUp};

    const USABLE: u64 = 1 << 20;

    fn point() -> Point {
        Point {
            coordinates: Coordinates::at_depth(4),
            streams: vec![Stream {
                name: "small".into(),
                load: Load::Closed { depth: 4 },
                mix: Mix::READS,
                pattern: Pattern::Uniform,
                length: 8192,
                objective: None,
                sql: None,
                rank: None,
                log: None,
            }],
            warm_up: WarmUp::NONE,
            until: Until::Elapsed(Nanos::from_secs(1)),
            window: Nanos::from_millis(100),
            seed: 1,
        }
    }

    fn work() -> SqlWork {
        SqlWork::reads(Tables {
            schemas: 1,
            scale: 128,
            scan_blocks: 1,
            block: 8192,
        })
    }

    #[test]
    fn a_point_that_the_target_was_not_prepared_for_is_refused_by_name() {
        let limits = PointLimits::of(&[point()], USABLE, false, false);
        assert_eq!(point().check(&limits), Ok(()));
        let refused = |change: &dyn Fn(&mut Point), why: &str| {
            let mut point = point();
            change(&mut point);
            let error = point.check(&limits).unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(error.to_string().contains(why), "{why}: {error}");
        };
        refused(&|point| point.streams.clear(), "no stream");
        refused(&|point| point.window = Nanos(0), "windows last 0s");
        refused(&|point| point.window = Nanos(1), "1000000000 windows");
        refused(
            &|point| point.streams[0].length = 0,
            "operations of 0 bytes",
        );
        refused(
            &|point| point.streams[0].length = 4096,
            "nothing was prepared",
        );
        refused(
            &|point| point.streams[0].load = Load::Closed { depth: u32::MAX },
            "4294967295 outstanding operations",
        );
        refused(
            &|point| point.streams[0].load = Load::Closed { depth: 0 },
            "0 outstanding operations",
        );
        for rate in [0.0, f64::NAN, f64::INFINITY, -1.0] {
            let load = Load::Open {
                rate,
                arrivals: crate::Arrivals::Poisson,
                in_flight_max: 1,
            };
            refused(
                &|point| point.streams[0].load = load,
                "operations per second",
            );
        }
        refused(
            &|point| point.streams[0].mix.writes = Ratio::ONE,
            "prepared for reads",
        );
        refused(
            &|point| point.streams[0].sql = Some(work()),
            "sessions of a database, and the target is none",
        );
    }

    #[test]
    fn sessions_do_the_work_that_the_database_was_prepared_for() {
        let mut point = point();
        point.streams[0].sql = Some(work());
        let limits = PointLimits::of(std::slice::from_ref(&point), USABLE, false, true);
        assert_eq!(point.check(&limits), Ok(()));
        let mut other = point.clone();
        other.streams[0].sql = Some(SqlWork {
            updates: Ratio::ONE,
            ..work()
        });
        let error = other.check(&limits).unwrap_err().to_string();
        assert!(error.contains("other work"), "{error}");
        let limits = PointLimits::of(std::slice::from_ref(&point), USABLE / 2, false, true);
        let error = point.check(&limits).unwrap_err().to_string();
        assert!(
            error.contains("tables of 128 blocks, and the database has 64"),
            "{error}"
        );
        // A plan that is not for a database prepares no sessions, whatever its points say.
        let limits = PointLimits::of(std::slice::from_ref(&point), USABLE, true, false);
        assert!(point.check(&limits).is_err());
    }
}
