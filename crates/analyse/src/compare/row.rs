//! One figure of all sides, with its change from the baseline.

use super::difference::{Change, of_runs};
use super::side::Side;
use super::subject::{Scope, Subject};
use crate::figures::quantity::Unit;
use rigel_stats::estimate::Estimate;
use serde::Serialize;

/// One figure of all sides.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Row {
    /// Name of the figure.
    pub name: String,
    /// Its unit.
    pub unit: Unit,
    /// True if the verdict uses it.
    pub headline: bool,
    /// The kind of I/O it is about.
    pub scope: Scope,
    /// The figure of each side; `None` where it was not measured in all of its runs.
    pub figures: Vec<Option<Estimate>>,
    /// The figure of each run of each side; empty if every side is a single run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Vec<Option<Estimate>>>,
    /// The change of each side but the first, against the first.
    pub changes: Vec<Option<Change>>,
}

impl Row {
    /// The row of a figure that `of` takes from each run.
    pub(super) fn of(
        sides: &[Side],
        name: impl Into<String>,
        (unit, headline, scope): (Unit, bool, Scope),
        of: impl Fn(&Subject) -> Option<Estimate>,
    ) -> Self {
        let runs: Vec<Vec<Option<Estimate>>> = sides
            .iter()
            .map(|side| side.runs.iter().map(&of).collect())
            .collect();
        let of_side = |runs: &Vec<Option<Estimate>>| {
            let all: Option<Vec<Estimate>> = runs.iter().copied().collect();
            of_runs(&all?, unit)
        };
        let figures: Vec<Option<Estimate>> = runs.iter().map(of_side).collect();
        let against = |figure: &Option<Estimate>| {
            Change::of(&figures[0]?, &(*figure)?, unit.more_is_better())
        };
        let changes = figures.iter().skip(1).map(against).collect();
        Self {
            name: name.into(),
            unit,
            headline,
            scope,
            figures,
            runs: of_several(sides, runs),
            changes,
        }
    }

    /// True unless two sides have the figure and no change was made of it.
    pub(super) fn has_every_change(&self) -> bool {
        let mut others = self.figures.iter().skip(1).zip(&self.changes);
        self.figures[0].is_none()
            || others.all(|(figure, change)| figure.is_none() || change.is_some())
    }

    /// True if some side has 0, with which there is no ratio.
    pub fn has_zero(&self, side: usize) -> bool {
        let is_zero = |side: usize| self.figures[side].is_some_and(|it| it.value <= 0.0);
        is_zero(0) || is_zero(side)
    }

    /// True if no side has such an event.
    pub fn has_no_event(&self) -> bool {
        let is_zero = |figure: &Option<Estimate>| figure.is_some_and(|it| it.value <= 0.0);
        self.unit.is_of_events() && self.figures.iter().all(is_zero)
    }
}

/// The figures of runs, if some side has several.
pub(super) fn of_several<T>(sides: &[Side], runs: Vec<Vec<T>>) -> Vec<Vec<T>> {
    if sides.iter().all(|side| side.runs.len() == 1) {
        Vec::new()
    } else {
        runs
    }
}
