//! The conclusion and the findings of a comparison.

use super::{Conclusion, Status};
use crate::compare::comparison::{Comparison, Verdict};
use crate::compare::over_time::ROUNDS_MIN;
use crate::compare::row::Row;
use crate::compare::side::SideRun;
use crate::figures::quantity::{self, Amount};
use rigel_model::{Finding, FindingName, Severity, TrustCause, in_line, shell_word};
use rigel_stats::estimate::Estimate;
use rigel_stats::verdict::BoundVerdict;

/// True if the baseline serves a rate that this side does not.
fn has_lost(verdict: &Verdict) -> bool {
    verdict.served_by_one.is_some_and(|one| one.by_baseline)
}

impl Comparison {
    /// The verdict on each side but the baseline, and on the slowdown limit, if one was given.
    pub fn conclusion(&self) -> Conclusion {
        let of_one = |one| self.served(one).into_iter().chain([self.sentence(one)]);
        let verdicts = self.of_many_sides().map_or_else(
            || self.verdicts.iter().flat_map(of_one).collect(),
            |all| vec![all],
        );
        let sentences: Vec<String> = verdicts
            .into_iter()
            .chain(self.of_limit())
            .chain(self.of_single_runs())
            .collect();
        let worse = self
            .verdicts
            .iter()
            .any(|verdict| !verdict.worse.is_empty() || has_lost(verdict));
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

    /// Index of the first headline figure that all sides have. `None` for one or two sides beside the baseline:
    /// each of those gets a sentence of its own.
    pub fn figure_of_many(&self) -> Option<usize> {
        const SENTENCES_MAX: usize = 2;
        let has_all = |row: &Row| row.headline && row.changes.iter().all(Option::is_some);
        let is_many = self.verdicts.len() > SENTENCES_MAX;
        is_many
            .then(|| self.figures.iter().position(has_all))
            .flatten()
    }

    /// Each side by that figure.
    fn of_many_sides(&self) -> Option<String> {
        let row = &self.figures[self.figure_of_many()?];
        let of_side = |verdict: &Verdict| {
            let change = row.changes[verdict.run - 1]?;
            let is_certain =
                verdict.worse.contains(&row.name) || verdict.better.contains(&row.name);
            let or_not = if is_certain { "" } else { " (may be chance)" };
            let (name, change) = (
                self.counted_name(verdict.run),
                quantity::change(change.ratio),
            );
            Some(format!("{name} {change}{or_not}"))
        };
        let sides: Vec<String> = self.verdicts.iter().filter_map(of_side).collect();
        Some(format!(
            "Against {}, in {}: {}.",
            self.counted_name(0),
            row.name,
            sides.join(", ")
        ))
    }

    /// The rate that only one of both serves.
    fn served(&self, verdict: &Verdict) -> Option<String> {
        let one = verdict.served_by_one?;
        let (name, baseline) = (self.counted_name(verdict.run), self.counted_name(0));
        let (does, not) = if one.by_baseline {
            (baseline, name)
        } else {
            (name, baseline)
        };
        let rate = quantity::per_second(one.rate_per_s as f64);
        Some(format!("{does} serves {rate}, and {not} does not."))
    }

    fn sentence(&self, verdict: &Verdict) -> String {
        let (name, baseline) = (self.counted_name(verdict.run), self.counted_name(0));
        let judged = verdict.judged;
        if judged == 0 {
            let changes = self.changes_without_interval(verdict.run);
            let has_common = self.points.iter().any(|point| point.run == verdict.run);
            let changes = if !changes.is_empty() {
                format!("{changes}; it may be chance, as no figure has an interval in both")
            } else if has_common {
                "not known, as no figure has an interval in both".into()
            } else {
                "not known, as they have no load in common".into()
            };
            return format!(
                "{name} against {baseline}: {changes}.{}{}",
                self.of_unlike_maxima(verdict.run),
                runs_needed(verdict)
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
                        format!("up to {}", quantity::percent(*room))
                    } else {
                        "any amount".into()
                    };
                    format!(" The least precise, {figure}, may differ by {room}.")
                });
            return format!(
                "{name} against {baseline}: no difference shown in {}.{room}{}{}",
                quantity::counted(judged as u64, "figure"),
                self.of_unlike_maxima(verdict.run),
                runs_needed(verdict)
            );
        }
        // Too short a measurement shows less, and no difference that is none.
        let is_short = |name: &str| {
            let known = FindingName::of(name);
            known.is_some_and(|name| name.kind().cause == TrustCause::TooShort)
        };
        let mut warnings = [0, verdict.run]
            .into_iter()
            .flat_map(|run| self.warnings[run].keys());
        let doubt = if warnings.any(|name| !is_short(name)) {
            " The warnings of the runs may be why."
        } else {
            ""
        };
        format!(
            "{name} against {baseline}: {}; certain to 95 % in {} together.{}{doubt}",
            parts.join("; "),
            quantity::counted(judged as u64, "figure"),
            self.of_unlike_maxima(verdict.run)
        )
    }

    /// Why maxima have no ratio, if it is because they are of unlike loads; empty if they are alike.
    fn of_unlike_maxima(&self, run: usize) -> &'static str {
        let is_unlike = |row: &Row| {
            row.headline
                && row.name.starts_with("max ")
                && row.changes[run - 1].is_none()
                && row.figures[0].is_some()
                && row.figures[run].is_some()
                && !row.has_zero(run)
                && !self.is_of_other_work(run, row.scope)
        };
        if self.figures.iter().any(is_unlike) {
            " Maxima are not compared: they are of different loads."
        } else {
            ""
        }
    }

    /// `IOPS at depth 8 -2.1 %, p50 at depth 8 +0.3 %`: headline figures that both sides have.
    fn changes_without_interval(&self, run: usize) -> String {
        let has_change = |row: &&Row| row.headline && row.changes[run - 1].is_some();
        let rows = self.figures.iter().filter(has_change);
        let names: Vec<String> = rows.map(|row| row.name.clone()).collect();
        self.with_ratios(run, &names)
    }

    /// `B (3 runs)`; without a number if each side is a single run.
    fn counted_name(&self, side: usize) -> String {
        let name = &self.names[side];
        match self.sides[side].runs.len() {
            1 => name.clone(),
            runs => format!("{name} ({runs} runs)"),
        }
    }

    /// What two single runs cannot tell; `None` if some side has several.
    fn of_single_runs(&self) -> Option<String> {
        self.is_of_single_runs().then(|| {
            "One run a side cannot tell this from variation between runs; several can: `rigel compare \
             A1 A2 A3 -- B1 B2 B3`."
                .into()
        })
    }

    /// The named figures, each with its change in percent; for stalls, both figures.
    fn with_ratios(&self, run: usize, names: &[String]) -> String {
        let words = |name: &String| {
            let row = self.figures.iter().find(|row| row.name == *name);
            if let Some([before, after]) = row.and_then(|row| of_events(row, run)) {
                return format!("{name} {after} instead of {before}");
            }
            let change = row.and_then(|row| row.changes[run - 1]);
            change.map_or_else(
                || name.clone(),
                |change| format!("{name} {}", quantity::change(change.ratio)),
            )
        };
        few(names.iter().map(words).collect())
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
            few(names.collect())
        };
        let answer = match self.outcome()? {
            BoundVerdict::Broken => format!(
                "Certainly slower by more than {limit}: {}.",
                listed(&slower.certain)
            ),
            BoundVerdict::Kept => format!("None is slower by more than {limit}."),
            BoundVerdict::Undecided | BoundVerdict::NotMeasured => {
                format!("Whether one is slower by more than {limit} is undecided.")
            }
        };
        if slower.possible.is_empty() {
            return Some(answer);
        }
        let hint = match (self.is_of_single_runs(), self.rounds.is_empty()) {
            (false, _) => "more runs decide",
            (true, true) => "a smaller --precision decides",
            (true, false) => "longer runs decide",
        };
        let possible = listed(&slower.possible);
        Some(format!(
            "{answer} Possibly, by their intervals: {possible}; {hint}."
        ))
    }

    /// Warnings about the runs, by name, and notes on what is unknown of them; each run's own
    /// report has the details.
    pub fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (side, compared) in self.sides.iter().enumerate() {
            for (at, run) in compared.runs.iter().enumerate() {
                let is_known = self.figures.iter().any(|row| {
                    let of_run = row
                        .runs
                        .get(side)
                        .map_or(row.figures[side], |runs| runs[at]);
                    of_run.is_some_and(Estimate::is_known)
                });
                findings.extend(of_run(run, is_known));
            }
        }
        findings
    }

    /// Why this figure of the side has no ratio to the baseline's.
    pub fn without_ratio(&self, row: &Row, side: usize) -> &'static str {
        if self.is_of_other_work(side, row.scope) {
            return "not compared";
        }
        if row.has_no_event() {
            return "none";
        }
        if row.figures[0].is_some() && row.figures[side].is_some() {
            return if row.has_zero(side) {
                "no ratio with 0"
            } else {
                "not alike"
            };
        }
        if self.is_of_single_runs() {
            "not measured in both"
        } else {
            "not measured in all"
        }
    }
}

/// The first names, and how many more there are: the report has all of them.
fn few(mut names: Vec<String>) -> String {
    const NAMED_MAX: usize = 3;
    let more = names.len().saturating_sub(NAMED_MAX);
    // "and 1 more" would say less than the name.
    if more > 1 {
        names.truncate(NAMED_MAX);
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// Both figures of a row of events, in words; `None` for other rows.
fn of_events(row: &Row, side: usize) -> Option<[String; 2]> {
    if !row.unit.is_of_events() {
        return None;
    }
    let of = |side: usize| Some(Amount::new(row.figures[side]?, row.unit).to_string());
    Some([of(0)?, of(side)?])
}

/// ` A difference of 5 % shows in max IOPS with 3 runs a side.`; empty if unknown.
fn runs_needed(verdict: &Verdict) -> String {
    let shown: Vec<String> = verdict
        .runs_needed
        .iter()
        .map(|one| {
            let runs = one
                .runs
                .map_or_else(|| "over 1000".into(), |runs| runs.to_string());
            format!("{runs} runs a side for {}", one.figure)
        })
        .collect();
    verdict.runs_needed.first().map_or_else(String::new, |one| {
        format!(
            " To show a difference of {}, it takes about {}.",
            quantity::percent(one.difference),
            shown.join(", ")
        )
    })
}

/// The findings about a run; `is_known` if one of its figures has an interval.
fn of_run(run: &SideRun, is_known: bool) -> Vec<Finding> {
    let (name, mut findings) = (&run.name, Vec::new());
    findings.extend(not_reported(run).map(|what| Finding::note(FindingName::Imported, what)));
    let hint = "let it run longer, or use shorter rounds (--every)";
    findings.extend(
        without_intervals(run, is_known)
            .map(|what| Finding::warning(FindingName::Rounds, what, hint)),
    );
    if !run.complete {
        let why = if run.rounds.is_some() {
            "it ended early or is still running, or rounds are missing or broke"
        } else {
            "it was stopped, or a point broke"
        };
        findings.push(Finding::warning(
            FindingName::Incomplete,
            format!("{name} is incomplete: {why}; only what was measured is compared"),
            "resume it with --resume, or measure again",
        ));
    }
    for (warning, times) in &run.warnings {
        let times = if *times > 1 {
            format!(", {times} times")
        } else {
            String::new()
        };
        let what = format!("{name} has the warning '{}'{times}", in_line(warning));
        let hint = format!("`rigel report {}` shows the details", shell_word(name));
        findings.push(Finding {
            severity: Severity::Warning,
            name: warning.clone(),
            what,
            hint,
            figure: None,
        });
    }
    findings
}

/// What is unknown about a run of another tool; `None` if Rigel measured it.
fn not_reported(run: &SideRun) -> Option<String> {
    let (name, tool) = (&run.name, run.imported.as_ref()?);
    let rest = if run.rounds.is_some() {
        "nor whether the same load was requested"
    } else {
        "and without intervals a difference may be chance"
    };
    Some(format!(
        "{name} was measured by {tool}: what it does not report of host, target and size of the \
         target is not compared, {rest}"
    ))
}

/// Why no figure of a run over time has an interval; `None` if one has, or if the run is at loads.
fn without_intervals(run: &SideRun, is_known: bool) -> Option<String> {
    let (name, rounds) = (&run.name, run.rounds?);
    if rounds < ROUNDS_MIN {
        return Some(format!(
            "{name} has fewer rounds than intervals need: {rounds} of {ROUNDS_MIN}"
        ));
    }
    (!is_known).then(|| {
        format!(
            "{name} has no intervals: neighbouring rounds are so much alike that {rounds} are too \
             few"
        )
    })
}
