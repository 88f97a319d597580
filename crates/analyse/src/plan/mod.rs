//! Plans: pure values that decide which data point comes next.
//!
//! Input: a request in the terms of its method. Output: the points to run, in order, and their
//! expected number and duration. A plan opens nothing, measures nothing and reads no clock.

pub mod ranks;
pub mod search;
pub mod sessions;
pub mod soak;
pub mod visits;

use crate::{Criteria, PointSummary};
use rigel_model::{
    Bound, Bytes, Coordinates, Error, KIB, Point, Ratio, SqlWork, Tables, Target, usage,
};
pub use sessions::{SqlStop, SqlTerms};
use std::fmt::Debug;

/// Maximum size of an I/O, in KB.
pub const SIZE_KB_MAX: u32 = 1024 * 1024;

/// The shape of the volume, which determines where sequential streams begin.
#[derive(Debug, Clone, Copy)]
pub struct VolumeShape<'a> {
    /// Start of each member in the volume, in bytes, ascending; used only for a concatenation.
    pub member_starts: &'a [u64],
    /// Bytes of the volume that operations can reach.
    pub usable: u64,
}

/// What the request of a verb says about its points. The defaults are those of a verb that measures
/// nothing by itself.
pub trait Plan: Debug {
    /// The verb: the first word after `rigel`.
    fn name(&self) -> &'static str;

    /// The next point on a volume of `usable` bytes after those in `done`; `None` if there are no
    /// more, or if they are [listed](Self::lists_points).
    fn next(&self, _usable: u64, _seed: u64, _done: &[PointSummary]) -> Option<Point> {
        None
    }

    /// Points that begin together with the next one, each on a bench of its own.
    fn beside(&self, _usable: u64, _seed: u64, _done: &[PointSummary]) -> Vec<Point> {
        Vec::new()
    }

    /// The unrecorded load before a point.
    fn warming(&self, _coordinates: Coordinates, _usable: u64, _seed: u64) -> Option<Point> {
        None
    }

    /// Points that a bench is prepared for: all of a run that lists them; of a search, those with the
    /// maximum outstanding.
    fn prepared(&self, volume: VolumeShape<'_>, seed: u64) -> Vec<Point> {
        self.extremes(volume.usable, seed)
    }

    /// Points with the maximum number of outstanding I/Os, which must be available before anything
    /// begins.
    fn extremes(&self, _usable: u64, _seed: u64) -> Vec<Point> {
        Vec::new()
    }

    /// The number of points; of a search, the usual one: it may take more or fewer.
    fn points_expected(&self) -> usize {
        0
    }

    /// Maximum time of a point in seconds, warm-up included.
    fn point_seconds(&self) -> f64 {
        0.0
    }

    /// The latency bound that points are judged by, if there is one.
    fn bound(&self) -> Option<Bound> {
        None
    }

    /// What points are judged by while they are measured, and in a report.
    fn judged(&self) -> Criteria {
        self.bound().into()
    }

    /// Requested half-width of a figure's 95 % interval, as a fraction of the figure; of points that
    /// end by time, the smallest difference between runs that matters.
    fn precision(&self) -> Ratio {
        Ratio::of(2, 100)
    }

    /// The terms of database sessions; `None` for raw I/O.
    fn sql(&self) -> Option<SqlTerms> {
        None
    }

    /// The work of database sessions; `None` for raw I/O.
    fn work(&self) -> Option<SqlWork> {
        self.sql().map(|terms| terms.work)
    }

    /// The tables of the database; `None` for raw I/O.
    fn tables(&self) -> Option<Tables> {
        self.work().map(|work| work.tables)
    }

    /// True if all points are known before the first is measured.
    fn is_known_beforehand(&self) -> bool {
        false
    }

    /// True if [`prepared`](Self::prepared) has all points, in their order: the journal's header lists
    /// them, and [`next`](Self::next) has none.
    fn lists_points(&self) -> bool {
        false
    }

    /// The sizes of I/O that were asked for, in bytes.
    fn sizes(&self) -> Vec<u32> {
        Vec::new()
    }

    /// The unit in which members of a volume are cut, so that no I/O spans two of them.
    fn grain(&self) -> u64 {
        let sizes = self.sizes().into_iter();
        sizes.map(u64::from).fold(1, least_common_multiple)
    }

    /// Bytes of the largest I/O.
    fn largest(&self) -> u64 {
        self.sizes().into_iter().max().unwrap_or(0).into()
    }

    /// Refuses numbers that no command line can ask for: a journal that is resumed, or another rank,
    /// may contain any.
    fn check_values(&self) -> Result<(), Error> {
        check_sizes(self.sizes(), self.largest())
    }

    /// True if any point writes.
    fn writes(&self) -> bool {
        false
    }
}

/// Refuses I/Os of a size that no command line can ask for; without sizes nothing is measured.
///
/// # Errors
/// The sentence names the size.
pub fn check_sizes(sizes: Vec<u32>, largest: u64) -> Result<(), Error> {
    let Some(smallest) = sizes.into_iter().min() else {
        return Ok(());
    };
    let is_odd = |size: &u64| !(512..=u64::from(SIZE_KB_MAX) * KIB).contains(size);
    match [smallest.into(), largest].into_iter().find(is_odd) {
        None => Ok(()),
        Some(size) => Err(usage!(
            "this run has I/Os of {size}",
            "an I/O has from 512 bytes to 1GiB: the journal is damaged, or of another version",
            size = Bytes(size)
        )),
    }
}

/// Refuses sessions on a target without tables: their positions would not be those of the
/// target. Refuses tables of more blocks than can be counted.
pub fn check_sessions(work: SqlWork, target: &Target) -> Result<(), Error> {
    let damaged = "the journal is damaged, or of another version";
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

/// The least common multiple, as far as it can be counted.
pub fn least_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a.saturating_mul(b / divisor.max(1))
}
