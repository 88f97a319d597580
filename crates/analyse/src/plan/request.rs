//! What a request says about its points, for all verbs.
//!
//! All points of `orion` are known in advance, and an import has none: `next` returns `None` for
//! both.

use super::orion::{SIZE_KB_MAX, VolumeShape};
use crate::PointSummary;
use crate::request::{LayersRequest, Request, SqlTerms};
use rigel_model::{Bound, Bytes, Coordinates, Error, KIB, Nanos, Point, Ratio, Tables, Target};

impl Request {
    /// The next point on a volume of `usable` bytes after those in `done`; `None` if there are no
    /// more.
    pub fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        match self {
            Self::Calibrate(request) => request.next(usable, seed, done),
            Self::Curve(request) | Self::Sql(request) => request.next(usable, seed, done),
            Self::Layers(request) => request.next(seed, done),
            Self::Fit(request) => request.next(usable, seed, done),
            Self::Soak(request) => {
                let rounds = done.iter().filter_map(|point| match point.coordinates {
                    Coordinates::Round { round, .. } => Some(round),
                    _ => None,
                });
                let next = rounds.max().unwrap_or(0) + 1;
                (next <= request.rounds()).then(|| request.point(next, Nanos(0), usable, seed))
            }
            Self::Orion(_) | Self::Watch(_) | Self::Import(_) => None,
        }
    }

    /// The unrecorded load before a point.
    pub fn warming(&self, coordinates: Coordinates, usable: u64, seed: u64) -> Option<Point> {
        match self {
            Self::Calibrate(request) => request.warming(coordinates, usable, seed),
            Self::Orion(request) => request.warming(coordinates, seed),
            Self::Curve(_)
            | Self::Sql(_)
            | Self::Layers(_)
            | Self::Soak(_)
            | Self::Fit(_)
            | Self::Watch(_)
            | Self::Import(_) => None,
        }
    }

    /// Points that a bench is prepared for: all of a matrix; of a search, those with the maximum
    /// outstanding.
    pub fn prepared(&self, volume: VolumeShape<'_>, seed: u64) -> Vec<Point> {
        match self {
            Self::Orion(request) => request.points(volume, seed),
            other => other.extremes(volume.usable, seed),
        }
    }

    /// Points with the maximum number of outstanding I/Os, which must be available before anything
    /// begins.
    pub fn extremes(&self, usable: u64, seed: u64) -> Vec<Point> {
        match self {
            Self::Calibrate(request) => request.extremes(usable, seed),
            Self::Curve(request) | Self::Sql(request) => request.extremes(usable, seed),
            Self::Layers(request) => request.extremes(seed),
            Self::Fit(request) => request.extremes(usable, seed),
            Self::Soak(request) => vec![request.point(1, Nanos(0), usable, seed)],
            Self::Orion(_) | Self::Watch(_) | Self::Import(_) => Vec::new(),
        }
    }

    /// The approximate number of points when `done` are complete.
    pub fn points_expected(&self, done: usize) -> usize {
        match self {
            Self::Calibrate(request) => request.points_expected(done),
            Self::Curve(request) | Self::Sql(request) => request.points_expected(done),
            Self::Layers(request) => request.points_expected(),
            Self::Fit(request) => request.points_expected(done),
            Self::Soak(request) => request.rounds() as usize,
            Self::Orion(request) => request.cells().len(),
            Self::Watch(request) => request.intervals().unwrap_or(0) as usize,
            Self::Import(_) => 0,
        }
    }

    /// Maximum time of a point in seconds.
    pub fn point_seconds(&self) -> f64 {
        match self {
            Self::Calibrate(request) => request.point_seconds(),
            Self::Curve(request) | Self::Sql(request) => request.point_seconds(),
            Self::Layers(request) => request.point_seconds(),
            Self::Fit(request) => request.point_seconds(),
            Self::Soak(request) => request.every.as_secs_f64(),
            Self::Orion(request) => request.point_seconds(),
            Self::Watch(request) => request.every.as_secs_f64(),
            Self::Import(_) => 0.0,
        }
    }

    /// The latency bound that points are judged by, if there is one.
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Self::Calibrate(request) => Some(request.bound),
            Self::Curve(request) | Self::Sql(request) => request.bound,
            Self::Orion(_)
            | Self::Layers(_)
            | Self::Soak(_)
            | Self::Fit(_)
            | Self::Watch(_)
            | Self::Import(_) => None,
        }
    }

    /// Requested half-width of a figure's 95 % interval, as a fraction of the figure.
    pub fn precision(&self) -> Ratio {
        match self {
            Self::Calibrate(request) => request.precision,
            Self::Curve(request) | Self::Sql(request) => request.precision,
            Self::Fit(request) => request.precision,
            Self::Orion(_) | Self::Layers(_) | Self::Soak(_) | Self::Watch(_) | Self::Import(_) => {
                LayersRequest::precision()
            }
        }
    }

    /// The work of database sessions; `None` for raw I/O.
    pub fn sql(&self) -> Option<SqlTerms> {
        match self {
            Self::Orion(_)
            | Self::Calibrate(_)
            | Self::Layers(_)
            | Self::Watch(_)
            | Self::Import(_) => None,
            Self::Fit(request) => request.sessions.map(|sessions| sessions.terms),
            Self::Curve(request) | Self::Sql(request) => request.sql,
            Self::Soak(request) => request.sql,
        }
    }

    /// The tables of the database; `None` for raw I/O.
    pub fn tables(&self) -> Option<Tables> {
        match self {
            Self::Layers(request) => Some(request.work.tables),
            other => other.sql().map(|terms| terms.work.tables),
        }
    }

    /// True if all points are known before the first is measured.
    pub fn is_known_beforehand(&self) -> bool {
        matches!(self, Self::Orion(_) | Self::Layers(_))
    }

    /// The unit in which members of a volume are cut, so that no I/O spans two of them.
    pub fn grain(&self) -> u64 {
        match self {
            Self::Calibrate(request) => request.grain(),
            Self::Curve(request) | Self::Sql(request) => request.grain(),
            Self::Layers(request) => request.block().into(),
            Self::Soak(request) => request.length.into(),
            Self::Fit(request) => request.largest(),
            Self::Orion(request) => request.grain(),
            Self::Watch(_) | Self::Import(_) => 1,
        }
    }

    /// Bytes of the largest I/O.
    pub fn largest(&self) -> u64 {
        match self {
            Self::Calibrate(request) => request.largest(),
            Self::Curve(request) | Self::Sql(request) => request.largest(),
            Self::Layers(request) => request.block().into(),
            Self::Soak(request) => request.length.into(),
            Self::Fit(request) => request.largest(),
            Self::Orion(request) => request.largest_io(),
            Self::Watch(_) | Self::Import(_) => 0,
        }
    }

    /// Refuses numbers that no command line can ask for: a journal that is resumed, or another rank,
    /// may contain any. Requests that measure nothing have none.
    ///
    /// # Errors
    /// A size is zero or too large, there are too many points, or sessions of a database are to
    /// work on a target that is none.
    pub fn check(&self, target: &Target) -> Result<(), Error> {
        self.check_sessions(target)?;
        self.check_sizes()
    }

    /// Refuses I/Os of a size that no command line can ask for.
    ///
    /// # Errors
    /// A size is zero or too large, or there are too many points.
    pub fn check_sizes(&self) -> Result<(), Error> {
        let sizes = match self {
            Self::Calibrate(request) => vec![request.block, request.large],
            Self::Curve(request) | Self::Sql(request) => {
                let beside = request.background.map(|background| background.length);
                [request.length].into_iter().chain(beside).collect()
            }
            Self::Soak(request) => vec![request.length],
            Self::Fit(request) => vec![request.block],
            Self::Layers(request) => vec![request.block()],
            Self::Orion(request) => return request.check(),
            Self::Watch(_) | Self::Import(_) => return Ok(()),
        };
        let wrong = |size: u64| {
            Error::usage(
                format!("this run has I/Os of {}", Bytes(size)),
                "an I/O has from 512 bytes to 1GiB: the journal is damaged, or of another version",
            )
        };
        let smallest = sizes.into_iter().map(u64::from).min().unwrap_or(0);
        if smallest < 512 {
            return Err(wrong(smallest));
        }
        let largest = self.largest();
        if largest > u64::from(SIZE_KB_MAX) * KIB {
            return Err(wrong(largest));
        }
        if let Self::Soak(request) = self
            && request.every == Nanos(0)
        {
            return Err(Error::usage(
                "this soak begins a round every 0s",
                "the journal is damaged, or of another version",
            ));
        }
        Ok(())
    }

    /// Refuses sessions on a target without tables: their positions would not be those of the
    /// target. Refuses tables of more blocks than can be counted.
    fn check_sessions(&self, target: &Target) -> Result<(), Error> {
        let damaged = "the journal is damaged, or of another version";
        let work = match self {
            Self::Layers(request) => Some(request.work),
            other => other.sql().map(|terms| terms.work),
        };
        let Some(work) = work else { return Ok(()) };
        if !matches!(target, Target::Sql(_)) {
            let what = format!("this run has sessions of a database, and '{target}' is none");
            return Err(Error::usage(what, damaged));
        }
        let Tables {
            schemas,
            scale,
            block,
            ..
        } = work.tables;
        let blocks = scale.checked_mul(schemas.into());
        let bytes = blocks.and_then(|blocks| blocks.checked_mul(block.into()));
        if bytes.is_none_or(|bytes| bytes == 0) {
            let what = format!(
                "this run has {schemas} tables of {scale} blocks of {}",
                Bytes(block.into())
            );
            return Err(Error::usage(what, damaged));
        }
        work.check()
    }

    /// True if any point writes.
    pub fn writes(&self) -> bool {
        match self {
            Self::Calibrate(request) => request.writes,
            Self::Curve(request) | Self::Sql(request) => request.writes(),
            Self::Orion(request) => request.write > 0,
            Self::Layers(_) | Self::Watch(_) | Self::Import(_) => false,
            Self::Soak(request) => request.writes(),
            Self::Fit(request) => request.writes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::curve::tests::request as curve;
    use crate::request::{CurveRequest, Loads};
    use rigel_model::{Dbms, SqlTarget};

    #[test]
    fn sessions_work_on_a_database_whose_blocks_can_be_counted() {
        let database = Target::Sql(SqlTarget {
            dbms: Dbms::Postgres,
            urls: Vec::new(),
            private_in: None,
            private: None,
        });
        let request = |change: &dyn Fn(&mut CurveRequest)| {
            let mut curve = curve(Loads::Depths(vec![1]));
            change(&mut curve);
            Request::Curve(curve)
        };
        assert_eq!(request(&|_| ()).check(&database), Ok(()));
        assert_eq!(
            request(&|curve| curve.sql = None).check(&Target::Null { bytes: Bytes(0) }),
            Ok(())
        );
        let refused = |request: &Request, target: &Target, why: &str| {
            let error = request.check(target).unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
        };
        refused(
            &request(&|_| ()),
            &Target::Null { bytes: Bytes(0) },
            "sessions of a database",
        );
        for (schemas, scale) in [(u32::MAX, u64::MAX), (2, 1 << 63), (0, 10_000), (1, 0)] {
            let odd = request(&|curve| {
                let tables = &mut curve.sql.as_mut().unwrap().work.tables;
                (tables.schemas, tables.scale) = (schemas, scale);
            });
            refused(
                &odd,
                &database,
                &format!("{schemas} tables of {scale} blocks"),
            );
        }
        let odd = request(&|curve| curve.sql.as_mut().unwrap().work.read_rows = 10_001);
        refused(&odd, &database, "an operation of 10001 rows");
    }
}
