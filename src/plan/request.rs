//! Plans whose next point depends on what the ones before it showed, `layers` and `soak`, under one name.

use super::{CalibrateRequest, CurveRequest, LayersRequest, SoakRequest, SqlTerms};
use crate::analyse::PointSummary;
use crate::model::{Bound, Coordinates, Nanos, Point, Ratio, Step};
use serde::{Deserialize, Serialize};

/// What was asked for. Kept in the journal's header under the verb's name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// `rigel calibrate`.
    Calibrate(CalibrateRequest),
    /// `rigel curve`.
    Curve(CurveRequest),
    /// `rigel sql run`: a curve of one load or several, of a database's sessions.
    Sql(CurveRequest),
    /// `rigel layers`: the same blocks by one layer after the other.
    Layers(LayersRequest),
    /// `rigel soak`: the same round again and again.
    Soak(SoakRequest),
}

impl Search {
    /// The search that a journal's header tells of; none if its run was made by another verb.
    #[must_use]
    pub fn of(plan: &serde_json::Value) -> Option<Self> {
        let asked = |verb: &str| plan.get(verb).cloned();
        let calibrate = || serde_json::from_value(asked("calibrate")?).ok().map(Self::Calibrate);
        let curve = || serde_json::from_value(asked("curve")?).ok().map(Self::Curve);
        let sql = || serde_json::from_value(asked("sql")?).ok().map(Self::Sql);
        let layers = || serde_json::from_value(asked("layers")?).ok().map(Self::Layers);
        let soak = || serde_json::from_value(asked("soak")?).ok().map(Self::Soak);
        calibrate().or_else(curve).or_else(sql).or_else(layers).or_else(soak)
    }

    /// The verb.
    #[must_use]
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Calibrate(_) => "calibrate",
            Self::Curve(_) => "curve",
            Self::Sql(_) => "sql",
            Self::Layers(_) => "layers",
            Self::Soak(_) => "soak",
        }
    }

    /// The point that comes next on a volume of `usable` bytes, after those that are done; none when all is known.
    #[must_use]
    pub fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        match self {
            Self::Calibrate(request) => request.next(usable, seed, done),
            Self::Curve(request) | Self::Sql(request) => request.next(usable, seed, done),
            Self::Layers(request) => request.next(seed, done),
            Self::Soak(request) => {
                let rounds = done.iter().filter_map(|point| match point.step {
                    Step::Round(number) => Some(number),
                    _ => None,
                });
                let next = rounds.max().unwrap_or(0) + 1;
                (next <= request.rounds()).then(|| request.point(next, Nanos(0), usable, seed))
            }
        }
    }

    /// What is driven before a point, and not recorded.
    #[must_use]
    pub fn warming(&self, coordinates: Coordinates, usable: u64, seed: u64) -> Option<Point> {
        match self {
            Self::Calibrate(request) => request.warming(coordinates, usable, seed),
            Self::Curve(_) | Self::Sql(_) | Self::Layers(_) | Self::Soak(_) => None,
        }
    }

    /// Points with the most that any may have outstanding: what must be granted before anything begins.
    #[must_use]
    pub fn extremes(&self, usable: u64, seed: u64) -> Vec<Point> {
        match self {
            Self::Calibrate(request) => request.extremes(usable, seed),
            Self::Curve(request) | Self::Sql(request) => request.extremes(usable, seed),
            Self::Layers(request) => request.extremes(seed),
            Self::Soak(request) => vec![request.point(1, Nanos(0), usable, seed)],
        }
    }

    /// How many points there are, roughly, when `done` are done.
    #[must_use]
    pub fn points_expected(&self, done: usize) -> usize {
        match self {
            Self::Calibrate(request) => request.points_expected(done),
            Self::Curve(request) | Self::Sql(request) => request.points_expected(done),
            Self::Layers(request) => request.points_expected(),
            Self::Soak(request) => request.rounds() as usize,
        }
    }

    /// Seconds that a point takes at the most.
    #[must_use]
    pub fn point_seconds(&self) -> f64 {
        match self {
            Self::Calibrate(request) => request.point_seconds(),
            Self::Curve(request) | Self::Sql(request) => request.point_seconds(),
            Self::Layers(request) => request.point_seconds(),
            Self::Soak(request) => request.every.as_secs_f64(),
        }
    }

    /// The bound on latency that points are held against, if there is one.
    #[must_use]
    pub fn bound(&self) -> Option<Bound> {
        match self {
            Self::Calibrate(request) => Some(request.bound),
            Self::Curve(request) | Self::Sql(request) => request.bound,
            Self::Layers(_) | Self::Soak(_) => None,
        }
    }

    /// Half-width of a figure's 95 % interval that is wanted, as a share of it.
    #[must_use]
    pub fn precision(&self) -> Ratio {
        match self {
            Self::Calibrate(request) => request.precision,
            Self::Curve(request) | Self::Sql(request) => request.precision,
            Self::Layers(_) | Self::Soak(_) => LayersRequest::precision(),
        }
    }

    /// What the sessions of a database do; none for raw I/O.
    #[must_use]
    pub fn sql(&self) -> Option<SqlTerms> {
        match self {
            Self::Calibrate(_) | Self::Layers(_) => None,
            Self::Curve(request) | Self::Sql(request) => request.sql,
            Self::Soak(request) => request.sql,
        }
    }

    /// The unit in which members of a volume are cut, so that no I/O lies on two of them.
    #[must_use]
    pub fn grain(&self) -> u64 {
        match self {
            Self::Calibrate(request) => request.grain(),
            Self::Curve(request) | Self::Sql(request) => request.grain(),
            Self::Layers(request) => request.block().into(),
            Self::Soak(request) => request.length.into(),
        }
    }

    /// Bytes of the largest I/O.
    #[must_use]
    pub fn largest(&self) -> u64 {
        match self {
            Self::Calibrate(request) => request.largest(),
            Self::Curve(request) | Self::Sql(request) => request.largest(),
            Self::Layers(request) => request.block().into(),
            Self::Soak(request) => request.length.into(),
        }
    }

    /// True if some point writes.
    #[must_use]
    pub fn writes(&self) -> bool {
        match self {
            Self::Calibrate(request) => request.writes,
            Self::Curve(request) | Self::Sql(request) => request.writes(),
            Self::Layers(_) => false,
            Self::Soak(request) => request.writes(),
        }
    }
}
