//! The conclusion and the findings of a comparison.

use super::{Conclusion, Status};
use crate::analyse::compare::comparison::{Comparison, Row, Verdict};
use crate::analyse::compare::over_time::ROUNDS_MIN;
use crate::analyse::figures::quantity;
use crate::model::{Finding, FindingName, Severity};

impl Comparison {
    /// The verdict on each run but the baseline, and on the slowdown limit, if one was given.
    #[must_use]
    pub fn conclusion(&self) -> Conclusion {
        let verdicts = self.verdicts.iter().map(|verdict| self.sentence(verdict));
        let sentences: Vec<String> = verdicts.chain(self.of_limit()).collect();
        let worse = self
            .verdicts
            .iter()
            .any(|verdict| !verdict.worse.is_empty());
        let better = self
            .verdicts
            .iter()
            .any(|verdict| !verdict.better.is_empty());
        let doubtful =
            self.verdicts.iter().any(|verdict| verdict.judged == 0) || !self.incomplete.is_empty();
        let status = match (worse, doubtful, better) {
            (true, ..) => Status::Bad,
            (_, true, _) => Status::Warning,
            (.., true) => Status::Good,
            _ => Status::Plain,
        };
        Conclusion {
            status,
            sentence: sentences.join(" "),
        }
    }

    fn sentence(&self, verdict: &Verdict) -> String {
        let (name, baseline) = (&self.names[verdict.run], &self.names[0]);
        let judged = verdict.judged;
        if judged == 0 {
            return format!(
                "{name} against {baseline}: not known, as no headline figure has an interval in \
                 both."
            );
        }
        let parts: Vec<String> = [("worse", &verdict.worse), ("better", &verdict.better)]
            .into_iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(word, names)| format!("{word} in {}", self.with_ratios(verdict.run, names)))
            .collect();
        if parts.is_empty() {
            let room = verdict
                .widest
                .as_ref()
                .map_or_else(String::new, |(figure, room)| {
                    let room = if room.is_finite() {
                        quantity::percent(*room)
                    } else {
                        "any difference".into()
                    };
                    format!(" The least precise, {figure}, may differ by up to {room}.")
                });
            return format!(
                "{name} against {baseline}: no difference shown. Headline figures judged: \
                 {judged}.{room}"
            );
        }
        let doubt = if [0, verdict.run]
            .iter()
            .any(|run| !self.warnings[*run].is_empty())
        {
            " The runs have warnings, which may be why they differ."
        } else {
            ""
        };
        format!(
            "{name} against {baseline}: {}. Headline figures judged: {judged}, with 95 % \
             confidence in all together.{doubt}",
            parts.join("; ")
        )
    }

    /// The named figures, each with its change in percent.
    fn with_ratios(&self, run: usize, names: &[String]) -> String {
        let one = |name: &String| {
            let change = self
                .figures
                .iter()
                .find(|row| row.name == *name)
                .and_then(|row| row.changes[run - 1]);
            change.map_or_else(
                || name.clone(),
                |change| format!("{name} {}", quantity::change(change.ratio)),
            )
        };
        names.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// The result of the slowdown limit; `None` if none was given.
    fn of_limit(&self) -> Option<String> {
        let slower = self.slower.as_ref()?;
        let limit = slower.limit;
        let listed = |found: &[(usize, String)]| {
            let names = found.iter().map(|(run, figure)| {
                if self.names.len() == 2 {
                    figure.clone()
                } else {
                    format!("{figure} of {}", self.names[*run])
                }
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let certain = if slower.certain.is_empty() {
            format!("No headline figure is certainly slower by more than {limit}.")
        } else {
            format!(
                "Certainly slower by more than {limit}: {}.",
                listed(&slower.certain)
            )
        };
        if slower.possible.is_empty() {
            return Some(certain);
        }
        let hint = if self.rounds.is_empty() {
            "a smaller --precision decides"
        } else {
            "longer runs decide"
        };
        let possible = listed(&slower.possible);
        Some(format!(
            "{certain} Possibly slower by more than {limit}, as their intervals reach beyond it: \
             {possible}; {hint}."
        ))
    }

    /// Warnings about the runs, by name, and notes on what is unknown of them; each run's own
    /// report has the details.
    #[must_use]
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (run, name) in self.names.iter().enumerate() {
            findings.extend(
                self.not_reported(run)
                    .map(|what| Finding::note(FindingName::Imported, what)),
            );
            let hint = "let it run longer, or use shorter rounds (--every)";
            findings.extend(
                self.without_intervals(run)
                    .map(|what| Finding::warning(FindingName::Rounds, what, hint)),
            );
            if self.incomplete.contains(&run) {
                let what = format!(
                    "{name} is incomplete: {}; only what was measured is compared",
                    self.why_incomplete(run)
                );
                findings.push(Finding::warning(
                    FindingName::Incomplete,
                    what,
                    "resume it with --resume, or measure again",
                ));
            }
            for (warning, times) in &self.warnings[run] {
                let times = if *times > 1 {
                    format!(", {times} times")
                } else {
                    String::new()
                };
                let what = format!("{name} has the warning '{warning}'{times}");
                let hint = format!("`rigel report {name}` shows the details");
                findings.push(Finding {
                    severity: Severity::Warning,
                    name: warning.clone(),
                    what,
                    hint,
                });
            }
        }
        findings
    }

    /// What is unknown about a run of another tool; `None` if Rigel measured it.
    fn not_reported(&self, run: usize) -> Option<String> {
        let (name, tool) = (&self.names[run], self.imported.get(&run)?);
        let rest = if self.rounds.contains_key(&run) {
            "nor whether the same load was requested"
        } else {
            "and without intervals a difference may be chance"
        };
        Some(format!(
            "{name} was measured by {tool}: what it does not report of host, target and size of \
             the target is not compared, {rest}"
        ))
    }

    /// Why no figure of a run over time has an interval; `None` if one has, or if the run is at
    /// loads.
    fn without_intervals(&self, run: usize) -> Option<String> {
        let (name, rounds) = (&self.names[run], *self.rounds.get(&run)?);
        if rounds < ROUNDS_MIN {
            return Some(format!(
                "{name} has fewer rounds than intervals need: {rounds} of {ROUNDS_MIN}"
            ));
        }
        let has_intervals = self
            .figures
            .iter()
            .any(|row| row.figures[run].is_some_and(|it| it.is_known()));
        let what = || {
            format!(
                "{name} has no intervals: neighbouring rounds are so much alike that {rounds} are \
                 too few"
            )
        };
        (!has_intervals).then(what)
    }

    /// Possible reasons why a run is incomplete.
    fn why_incomplete(&self, run: usize) -> &'static str {
        if self.rounds.contains_key(&run) {
            "it ended early or is still running, or rounds are missing or broke"
        } else {
            "it was stopped, or a point broke"
        }
    }

    /// Why this figure of the run has no ratio to the baseline's.
    #[must_use]
    pub fn without_ratio(&self, row: &Row, run: usize) -> &'static str {
        if self.is_of_other_work(run, row.scope) {
            return "not compared";
        }
        let is_in_both = row.figures[0].is_some() && row.figures[run].is_some();
        if is_in_both {
            "no ratio with 0"
        } else {
            "not measured in both"
        }
    }
}
