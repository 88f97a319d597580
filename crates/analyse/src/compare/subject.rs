//! A run as it is compared: its terms, points and figures.

use super::over_time::OverTime;
use crate::plan::SqlTerms;
use crate::point::summary::PointSummary;
use rigel_model::record::journal::Header;
use rigel_model::{Bytes, Mix, Pattern};
use rigel_stats::estimate::Estimate;
use serde::Serialize;
use std::collections::BTreeMap;

/// The greatest throughput that a run has one answer for, whatever single loads show: without the credit that
/// these had, and over all loads that reach it.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Maxima {
    /// Small reads per second.
    pub iops: Option<Estimate>,
    /// Megabytes per second of large reads.
    pub mb_per_s: Option<Estimate>,
}

/// One of the compared runs.
#[derive(Debug, Clone)]
pub struct Subject<'a> {
    /// Name of the run.
    pub name: String,
    /// The journal's header: request, engine and target.
    pub header: &'a Header,
    /// The options of the request that are compared.
    pub terms: Vec<Term>,
    /// Its points; empty for a soak.
    pub points: Vec<PointSummary>,
    /// The maxima that its report has, if they are not those over its points.
    pub maxima: Maxima,
    /// Its figures over time, if it is a soak or an imported series.
    pub over_time: OverTime,
    /// Throughput within this fraction of the maximum counts as equal to it when the knee is
    /// searched.
    pub tolerance: f64,
    /// True if every planned point ran to its end.
    pub whole: bool,
    /// Number of times each warning was raised, by name.
    pub warnings: BTreeMap<String, usize>,
    /// The tool that measured it, if not Rigel.
    pub imported: Option<String>,
}

/// An option of the request, or another condition of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Term {
    /// Name of the term, such as `small I/O`.
    pub name: &'static str,
    /// Its value, in words.
    pub value: String,
    /// The figures that are of different work if this value differs; `None` if the term is only a
    /// circumstance.
    pub decides: Option<Scope>,
}

/// A group of figures, by kind of I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Figures of small I/O.
    Small,
    /// Figures of large I/O.
    Large,
    /// Figures of durable appends; each figure has its own size.
    Log,
    /// All figures of a run.
    All,
}

impl Scope {
    /// True if a figure can belong to both.
    pub(super) fn meets(self, other: Self) -> bool {
        self == other || self == Scope::All || other == Scope::All
    }
}

impl Term {
    /// The size of an I/O of this scope.
    pub fn size(scope: Scope, bytes: u32) -> Self {
        let name = if scope == Scope::Large {
            "size of a large I/O"
        } else {
            "size of a small I/O"
        };
        Self::deciding(scope, name, &Bytes(bytes.into()))
    }

    /// Reads and writes, and the blocks to visit.
    pub fn work(mix: Mix, pattern: Pattern) -> Vec<Self> {
        vec![
            Self::deciding(Scope::All, "share of writes", &mix.writes.exact()),
            Self::deciding(Scope::All, "pattern", &pattern),
        ]
    }

    /// The work of database sessions, which replaces mix and pattern.
    pub fn sessions(SqlTerms { work, .. }: SqlTerms) -> Vec<Self> {
        vec![
            Self::deciding(Scope::All, "pattern", &work),
            Self::deciding(Scope::All, "tables", &work.tables),
        ]
    }

    /// The work of sessions, if there are any, else of raw I/O.
    pub fn work_of(sql: Option<SqlTerms>, mix: Mix, pattern: Pattern) -> Vec<Self> {
        sql.map_or_else(|| Self::work(mix, pattern), Self::sessions)
    }

    /// True if the request decides it, and not the server that was found.
    pub fn is_requested(&self) -> bool {
        !self.name.starts_with("server") && self.name != "buffer cache"
    }

    /// A term that may differ between compared runs.
    pub fn known(name: &'static str, value: &impl ToString) -> Self {
        Self {
            name,
            value: value.to_string(),
            decides: None,
        }
    }

    /// A term that determines the work behind the figures of `scope`.
    pub fn deciding(scope: Scope, name: &'static str, value: &impl ToString) -> Self {
        Self {
            name,
            value: value.to_string(),
            decides: Some(scope),
        }
    }
}
