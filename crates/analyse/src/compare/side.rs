//! A side of a comparison: the runs that were measured on one state of the storage.

use super::subject::Subject;
use serde::Serialize;
use std::collections::BTreeMap;

/// The runs of one side, of which there is at least one.
#[derive(Debug, Clone)]
pub struct Side<'s, 'a> {
    /// Its name: that of its run, if there is only one.
    pub name: String,
    /// Its runs.
    pub runs: &'s [Subject<'a>],
}

impl<'s, 'a> Side<'s, 'a> {
    /// A side of one run.
    pub fn of(run: &'s Subject<'a>) -> Self {
        Self {
            name: run.name.clone(),
            runs: std::slice::from_ref(run),
        }
    }

    /// The first run.
    pub(super) fn first(&self) -> &'s Subject<'a> {
        &self.runs[0]
    }

    /// How often each warning was raised, in all runs.
    pub(super) fn warnings(&self) -> BTreeMap<String, usize> {
        let mut all = BTreeMap::new();
        for (name, times) in self.runs.iter().flat_map(|run| &run.warnings) {
            *all.entry(name.clone()).or_default() += times;
        }
        all
    }

    /// The tools that measured its runs, if not Rigel.
    pub(super) fn imported(&self) -> Option<String> {
        let mut tools: Vec<&str> = self
            .runs
            .iter()
            .filter_map(|run| run.imported.as_deref())
            .collect();
        tools.dedup();
        (!tools.is_empty()).then(|| tools.join(", "))
    }
}

/// A side as it is reported.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ComparedSide {
    /// Its name.
    pub name: String,
    /// Its runs.
    pub runs: Vec<SideRun>,
}

/// A run of a side.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct SideRun {
    /// Its name.
    pub name: String,
    /// Start time.
    pub started: String,
    /// True if every planned point ran to its end.
    pub complete: bool,
    /// How often each warning was raised, by name.
    pub warnings: BTreeMap<String, usize>,
    /// The tool that measured it, if not Rigel.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub imported: Option<String>,
    /// Number of rounds or samples, if it is a soak or an imported series.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rounds: Option<usize>,
}

impl ComparedSide {
    /// The side as it is reported.
    pub fn of(side: &Side) -> Self {
        let run = |run: &Subject| SideRun {
            name: run.name.clone(),
            started: run.header.started.clone(),
            complete: run.whole,
            warnings: run.warnings.clone(),
            imported: run.imported.clone(),
            rounds: run.over_time.rounds(),
        };
        Self {
            name: side.name.clone(),
            runs: side.runs.iter().map(run).collect(),
        }
    }
}
