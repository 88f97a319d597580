//! How far the figures of a run can be trusted: its findings by cause, in order of damage.
//!
//! Input: all findings of a run and its points. Output: [`RunTrust`], which text, page and JSON show.

use crate::point::summary::PointSummary;
use rigel_model::{Figure, Finding, FindingName, Severity, TrustCause, Weight, listed};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// How far figures can be trusted.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema,
)]
pub enum TrustLevel {
    /// No warning affects them.
    #[default]
    #[serde(rename = "good")]
    Good,
    /// Nothing was checked: another tool measured them, and says nothing that could be.
    #[serde(rename = "not checked")]
    NotChecked,
    /// Warnings do.
    #[serde(rename = "with care")]
    WithCare,
    /// They are not of the storage, or contradict themselves.
    #[serde(rename = "do not use")]
    DoNotUse,
}

impl TrustLevel {
    /// That of figures under findings of this greatest weight, if there are any.
    fn under(weight: Option<Weight>) -> Self {
        match weight {
            Some(Weight::Spoil) => Self::DoNotUse,
            Some(Weight::Doubt) => Self::WithCare,
            Some(Weight::Aside) | None => Self::Good,
        }
    }

    /// `good`, `not checked`, `with care`, `do not use`: as in files.
    pub fn words(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::NotChecked => "not checked",
            Self::WithCare => "with care",
            Self::DoNotUse => "do not use",
        }
    }
}

/// All findings of a run, one group for each cause, and what follows from them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(into = "ReportedTrust")]
pub struct RunTrust {
    /// How far the answer can be trusted: all figures, or those that decide.
    pub level: TrustLevel,
    /// How far each figure can be trusted, if the answer has several.
    pub figures: Vec<FigureTrust>,
    /// The causes, the most damaging first: those that affect the answer, those that affect other figures, and those
    /// that change no decision.
    pub causes: Vec<CauseFound>,
}

/// A figure of an answer that has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FigureAsked {
    /// The figure.
    pub figure: Figure,
    /// True if it decides how far the run as a whole can be trusted.
    pub decides: bool,
}

/// How far one figure can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FigureTrust {
    /// The figure.
    pub figure: Figure,
    /// How far.
    pub level: TrustLevel,
}

/// A cause with its findings.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(into = "ReportedCause")]
pub struct CauseFound {
    /// The cause.
    pub cause: TrustCause,
    /// The highest severity of its findings.
    pub severity: Severity,
    /// The greatest weight of its findings.
    #[schemars(skip)]
    pub weight: Weight,
    /// The figures that it affects and the answer does not depend on; empty if it affects the answer, or nothing.
    pub only: Vec<Figure>,
    /// False if the strongest finding is about the run as a whole: fewer points may show something
    /// weaker.
    #[schemars(skip)]
    pub is_of_points: bool,
    /// Number of points with such a finding that affects the figures.
    pub points: usize,
    /// Number of all points.
    pub of_points: usize,
    /// Its findings, the strongest evidence first. Of a run there is one for each name, whose
    /// sentence says how many more there are.
    pub findings: Vec<Finding>,
}

impl RunTrust {
    /// The trust that follows from `findings`, which are all of a run; those of `points` are among
    /// them.
    pub fn of<'a>(findings: impl Iterator<Item = &'a Finding>, points: &[PointSummary]) -> Self {
        Self::of_figures(findings, points, &[])
    }

    /// The same of an answer with several figures: a doubt about one of them does not affect the others.
    pub fn of_figures<'a>(
        findings: impl Iterator<Item = &'a Finding>,
        points: &[PointSummary],
        figures: &[FigureAsked],
    ) -> Self {
        let mut trust = Self::judged(findings, points, figures);
        for found in &mut trust.causes {
            found.findings = one_of_each_name(&found.findings);
        }
        trust
    }

    /// The same with every finding, for those of several runs: findings of a name are about different
    /// ones there.
    pub fn of_each<'a>(
        findings: impl Iterator<Item = &'a Finding>,
        points: &[PointSummary],
    ) -> Self {
        Self::judged(findings, points, &[])
    }

    fn judged<'a>(
        findings: impl Iterator<Item = &'a Finding>,
        points: &[PointSummary],
        figures: &[FigureAsked],
    ) -> Self {
        let all: Vec<&Finding> = findings.collect();
        let reach = |finding: &Finding| Reach::of(finding, figures);
        let groups = TrustCause::ALL.iter().flat_map(|cause| {
            Reach::ALL.map(|wanted| {
                let is_of = |one: &Finding| one.cause() == *cause && reach(one) == wanted;
                group(*cause, wanted, is_of, &all, points)
            })
        });
        let mut causes: Vec<CauseFound> = groups.flatten().collect();
        causes.sort_by_key(CauseFound::order);
        let level_of = |affects: &dyn Fn(&Finding) -> bool| {
            let weights = all
                .iter()
                .filter(|one| affects(one))
                .map(|one| one.weight());
            TrustLevel::under(weights.max())
        };
        let of_figure = |asked: &FigureAsked| FigureTrust {
            figure: asked.figure,
            level: level_of(&|one| {
                let only = doubted(one, figures);
                only.is_none_or(|figure| figure == asked.figure)
            }),
        };
        Self {
            level: level_of(&|one| reach(one) == Reach::Answer),
            figures: figures.iter().map(of_figure).collect(),
            causes,
        }
    }

    /// The same of this and of what `other` is about, for an answer that needs both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for found in other.causes {
            let is_same = |one: &&mut CauseFound| {
                let affects = |one: &CauseFound| one.weight != Weight::Aside;
                let reach = |one: &CauseFound| (affects(one), one.only.is_empty());
                one.cause == found.cause && reach(one) == reach(&found)
            };
            match self.causes.iter_mut().find(is_same) {
                Some(known) => {
                    known.severity = known.severity.max(found.severity);
                    known.weight = known.weight.max(found.weight);
                    known.findings.extend(found.findings);
                }
                None => self.causes.push(found),
            }
        }
        self.causes.sort_by_key(CauseFound::order);
        self.level = self.level.max(other.level);
        for known in &mut self.figures {
            known.level = known.level.max(other.level);
        }
        self
    }

    /// How far this figure can be trusted.
    pub fn level_of(&self, figure: Figure) -> TrustLevel {
        let known = self.figures.iter().find(|known| known.figure == figure);
        known.map_or(self.level, |known| known.level)
    }

    /// The causes that affect figures.
    pub fn doubts(&self) -> impl Iterator<Item = &CauseFound> {
        let affects = |found: &&CauseFound| found.weight != Weight::Aside;
        self.causes.iter().filter(affects)
    }

    /// The same for figures that nothing could be checked of: the absence of warnings does not make
    /// them good.
    #[must_use]
    pub fn unchecked(self) -> Self {
        let level = match self.level {
            TrustLevel::Good => TrustLevel::NotChecked,
            doubted => doubted,
        };
        Self { level, ..self }
    }

    /// `Trust: with care: others used the disk in 31 of 59 points; it may do more.`
    pub fn sentence(&self) -> String {
        let Some(worst) = self.doubts().next() else {
            return match self.level {
                TrustLevel::NotChecked => {
                    "Trust: not checked: another tool measured, and reports no intervals.".into()
                }
                _ => "Trust: good.".into(),
            };
        };
        // Whatever else affects the figures, those of a part of the run are not those of all of it.
        let cut = FindingName::Incomplete;
        let is_cut = |found: &CauseFound| found.findings.iter().any(|one| one.is(cut));
        let why = if self.doubts().any(is_cut) && !is_cut(worst) {
            format!("the run is not complete, {}", worst.happened())
        } else {
            worst.sentence()
        };
        if worst.only.is_empty() {
            let level = self.level.max(TrustLevel::WithCare).words();
            return format!("Trust: {level}: {why}.");
        }
        let doubted = self.doubts().flat_map(|found| &found.only);
        let doubted: BTreeSet<Figure> = doubted.copied().collect();
        let names: Vec<String> = doubted.iter().map(|one| one.words().into()).collect();
        let level = self.level.words();
        format!("Trust: {level}, but for {}: {why}.", listed(&names))
    }
}

/// What a finding affects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// The answer.
    Answer,
    /// A figure that the answer does not depend on.
    Figure,
    /// Nothing.
    Nothing,
}

impl Reach {
    const ALL: [Self; 3] = [Self::Answer, Self::Figure, Self::Nothing];

    fn of(finding: &Finding, figures: &[FigureAsked]) -> Self {
        if finding.weight() == Weight::Aside {
            return Self::Nothing;
        }
        let is_deciding = |figure| {
            let mut asked = figures.iter().filter(|asked| asked.decides);
            asked.any(|asked| asked.figure == figure)
        };
        match doubted(finding, figures) {
            Some(figure) if !is_deciding(figure) => Self::Figure,
            _ => Self::Answer,
        }
    }
}

/// The only one of these figures that a finding is about; `None` if it is about all, or about none of them. What
/// spoils a figure spoils the run.
fn doubted(finding: &Finding, figures: &[FigureAsked]) -> Option<Figure> {
    let is_asked = |figure: &Figure| figures.iter().any(|asked| asked.figure == *figure);
    let only = finding.figure.filter(is_asked);
    only.filter(|_| finding.weight() != Weight::Spoil)
}

/// The findings of a cause that `is_of` is true of; `None` if there are none.
fn group(
    cause: TrustCause,
    reach: Reach,
    is_of: impl Fn(&Finding) -> bool,
    all: &[&Finding],
    points: &[PointSummary],
) -> Option<CauseFound> {
    let mut findings: Vec<&Finding> = all.iter().copied().filter(|one| is_of(one)).collect();
    // Within a severity, the table of findings has the strongest evidence first.
    findings.sort_by_key(|one| (Reverse(one.severity), FindingName::of(&one.name)));
    let first = findings.first()?;
    let with = |point: &&PointSummary| point.findings.iter().any(&is_of);
    let only = findings.iter().filter_map(|one| one.figure);
    let only: BTreeSet<Figure> = only.filter(|_| reach == Reach::Figure).collect();
    Some(CauseFound {
        cause,
        severity: first.severity,
        weight: findings.iter().map(|one| one.weight()).max()?,
        only: only.into_iter().collect(),
        is_of_points: points.iter().any(|point| point.findings.contains(first)),
        points: points.iter().filter(with).count(),
        of_points: points.len(),
        findings: findings.into_iter().cloned().collect(),
    })
}

/// The first finding of each name, with the number of the others of its name in its sentence.
fn one_of_each_name(all: &[Finding]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = Vec::new();
    for one in all {
        if findings.iter().any(|known| known.name == one.name) {
            continue;
        }
        let others = all.iter().filter(|other| other.name == one.name).count() - 1;
        let more = match others {
            0 => String::new(),
            others => format!(" (and {others} more of this kind)"),
        };
        findings.push(Finding {
            what: format!("{}{more}", one.what),
            ..one.clone()
        });
    }
    findings
}

impl CauseFound {
    /// The most damaging first, and before it what affects the answer.
    fn order(&self) -> (Reverse<bool>, Reverse<Weight>) {
        let is_of_answer = self.only.is_empty() && self.weight != Weight::Aside;
        (Reverse(is_of_answer), Reverse(self.weight))
    }

    /// `others used the disk in 31 of 59 points; it may do more`.
    pub fn sentence(&self) -> String {
        let happened = self.happened();
        match self.cause.consequence() {
            _ if self.is_led_by(FindingName::ReadsFromMemory) => happened,
            _ if self.is_led_by(FindingName::NotReached) => format!("{happened}; it may do more"),
            "" => happened,
            consequence => format!("{happened}; {consequence}"),
        }
    }

    /// The same without what follows.
    fn happened(&self) -> String {
        let is = |name| self.is_led_by(name);
        let clause = if is(FindingName::ReadsFromMemory) {
            "memory answered the database's reads, not its disk"
        } else if is(FindingName::CacheSuspected) || is(FindingName::Memory) {
            "a cache may have answered"
        } else if is(FindingName::Incomplete) {
            "not complete"
        } else if is(FindingName::NotReached) {
            "it was not at its limit"
        } else {
            self.cause.clause()
        };
        let points = match (self.points, self.of_points) {
            (0, _) | (_, 1) => String::new(),
            _ if !self.is_of_points => String::new(),
            (points, all) => format!(" in {points} of {all} points"),
        };
        format!("{clause}{points}")
    }

    /// True if its strongest finding is this one.
    fn is_led_by(&self, name: FindingName) -> bool {
        self.findings.first().is_some_and(|first| first.is(name))
    }

    /// A heading of its findings: what happened, or what they are about.
    pub fn title(&self) -> String {
        match self.weight {
            Weight::Aside => format!("about {}", self.cause.title()),
            _ => self.sentence(),
        }
    }

    /// The first hint among its findings; empty if there is none.
    pub fn hint(&self) -> &str {
        let mut hints = self.findings.iter().map(|finding| finding.hint.as_str());
        hints.find(|hint| !hint.is_empty()).unwrap_or("")
    }
}

/// How far the figures can be trusted: the level, and the causes that lower it.
#[derive(Serialize, JsonSchema)]
struct ReportedTrust {
    level: TrustLevel,
    /// How far each figure can be trusted, if the answer has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    figures: Vec<FigureTrust>,
    /// The causes that affect the figures, the most damaging first.
    causes: Vec<CauseFound>,
}

/// A cause with its findings.
#[derive(Serialize, JsonSchema)]
struct ReportedCause {
    cause: TrustCause,
    /// What it is, in a sentence.
    what: String,
    /// What can be done about it; empty if nothing.
    hint: String,
    /// Number of points that it affects.
    points: usize,
    /// The only figures that it affects; absent if it affects the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    only: Vec<Figure>,
    /// The names of its findings.
    findings: Vec<String>,
}

impl From<RunTrust> for ReportedTrust {
    fn from(trust: RunTrust) -> Self {
        Self {
            level: trust.level,
            figures: trust.figures.clone(),
            causes: trust.doubts().cloned().collect(),
        }
    }
}

impl From<CauseFound> for ReportedCause {
    fn from(found: CauseFound) -> Self {
        Self {
            cause: found.cause,
            what: found.sentence(),
            hint: found.hint().into(),
            points: found.points,
            only: found.only.clone(),
            findings: found.findings.iter().map(|one| one.name.clone()).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(name: FindingName) -> Finding {
        Finding::warning(name, format!("{} it is", name.name()), "do this")
    }

    #[test]
    fn findings_of_one_cause_are_one_and_the_worst_is_the_line() {
        let findings = [
            warning(FindingName::CpuBusy),
            warning(FindingName::Descheduled),
            warning(FindingName::OtherLoad),
            warning(FindingName::Descheduled),
            Finding::note(FindingName::Rotational, "it spins"),
            warning(FindingName::WallClock),
        ];
        let trust = RunTrust::of(findings.iter(), &[]);
        assert_eq!(trust.level, TrustLevel::WithCare);
        assert_eq!(
            trust.sentence(),
            "Trust: with care: others used the disk; it may do more."
        );
        let causes: Vec<TrustCause> = trust.doubts().map(|found| found.cause).collect();
        assert_eq!(causes, [TrustCause::OtherLoad, TrustCause::BusyMachine]);
        let cut = [FindingName::CacheSuspected, FindingName::Incomplete].map(warning);
        assert_eq!(
            RunTrust::of(cut.iter(), &[]).sentence(),
            "Trust: with care: the run is not complete, a cache may have answered."
        );
        let busy = &trust.causes[1];
        assert_eq!(busy.findings.len(), 2);
        assert_eq!(
            busy.findings[0].what,
            "descheduled it is (and 1 more of this kind)"
        );
        assert_eq!(trust.causes.len(), 4, "asides are kept");
        let json = serde_json::to_value(&trust).unwrap();
        assert_eq!(json["level"], "with care");
        assert_eq!(json["causes"][1]["findings"][1], "cpu-busy");
    }

    #[test]
    fn what_the_run_as_a_whole_shows_is_not_counted_by_points() {
        let trust = RunTrust::of([warning(FindingName::OtherLoad)].iter(), &[]);
        let of = |is_of_points| CauseFound {
            is_of_points,
            points: 1,
            of_points: 4,
            ..trust.causes[0].clone()
        };
        assert!(of(true).sentence().contains("in 1 of 4 points"));
        assert!(!of(false).sentence().contains("points"));
    }

    #[test]
    fn an_answer_of_two_parts_is_no_better_than_the_worse() {
        let of = |name| RunTrust::of([warning(name)].iter(), &[]);
        let both = of(FindingName::OtherLoad).and(of(FindingName::ReportCut));
        assert_eq!((both.level, both.causes.len()), (TrustLevel::WithCare, 2));
        let refused = [Finding::refusal(FindingName::Holes, "holes", "fill it")];
        let both = both.and(RunTrust::of(refused.iter(), &[]));
        assert_eq!(both.level, TrustLevel::DoNotUse);
        assert!(both.sentence().starts_with("Trust: do not use"));
        let twice = of(FindingName::OtherLoad).and(of(FindingName::OtherLoad));
        assert_eq!((twice.causes.len(), twice.causes[0].findings.len()), (1, 2));
    }

    const ASKED: [FigureAsked; 3] = [
        FigureAsked {
            figure: Figure::MaxIops,
            decides: true,
        },
        FigureAsked {
            figure: Figure::MaxThroughput,
            decides: false,
        },
        FigureAsked {
            figure: Figure::SustainedRate,
            decides: false,
        },
    ];

    #[test]
    fn a_doubt_about_one_figure_leaves_the_others_good_and_names_it() {
        let of = |findings: &[Finding]| RunTrust::of_figures(findings.iter(), &[], &ASKED);
        let levels = |trust: &RunTrust| {
            trust
                .figures
                .iter()
                .map(|one| one.level)
                .collect::<Vec<_>>()
        };
        let (good, care) = (TrustLevel::Good, TrustLevel::WithCare);
        let rising = |figure| warning(FindingName::NotReached).at(Some(figure));

        let large = of(&[rising(Figure::MaxThroughput)]);
        assert_eq!(
            (large.level, levels(&large)),
            (good, vec![good, care, good])
        );
        assert_eq!(
            large.sentence(),
            "Trust: good, but for MB/s: it was not at its limit; it may do more."
        );
        let two = of(&[
            rising(Figure::MaxThroughput),
            warning(FindingName::RateUncertain),
        ]);
        assert_eq!((two.level, levels(&two)), (good, vec![good, care, care]));
        assert!(
            two.sentence()
                .starts_with("Trust: good, but for MB/s and the sustained rate: ")
        );

        // The answer depends on max IOPS; what is of a figure that was not asked for, and what is of the run, affects
        // all.
        let small = of(&[rising(Figure::MaxIops), rising(Figure::MaxThroughput)]);
        assert_eq!(
            (small.level, levels(&small)),
            (care, vec![care, care, good])
        );
        assert!(
            small.sentence().starts_with("Trust: with care: it was not"),
            "{}",
            small.sentence()
        );
        for all in [
            rising(Figure::Writes),
            warning(FindingName::OtherLoad).at(Some(Figure::MaxThroughput)),
        ] {
            let trust = of(&[all]);
            assert_eq!((trust.level, levels(&trust)), (care, vec![care; 3]));
        }
        // What spoils a figure spoils the run.
        let refused =
            Finding::refusal(FindingName::NotReached, "it is", "").at(Some(Figure::MaxThroughput));
        assert_eq!(of(&[refused]).level, TrustLevel::DoNotUse);

        let json = serde_json::to_value(&large).unwrap();
        assert_eq!(json["level"], "good");
        assert_eq!(json["figures"][1]["figure"], "max-throughput");
        assert_eq!(json["figures"][1]["level"], "with care");
        assert_eq!(json["causes"][0]["only"][0], "max-throughput");
        // Beside something else that is doubted, all of it is.
        let both = large.and(RunTrust::of([warning(FindingName::ReportCut)].iter(), &[]));
        assert_eq!((both.level, levels(&both)), (care, vec![care; 3]));
        assert!(
            both.sentence()
                .starts_with("Trust: with care: a part is missing"),
            "{}",
            both.sentence()
        );
    }

    #[test]
    fn notes_leave_trust_good_and_a_refusal_ends_it() {
        let notes = [Finding::note(FindingName::Memory, "small")];
        assert_eq!(RunTrust::of(notes.iter(), &[]).sentence(), "Trust: good.");
        assert_eq!(
            RunTrust::default().unchecked().level,
            TrustLevel::NotChecked
        );
        let refused = [Finding::refusal(FindingName::Holes, "holes", "fill it")];
        let trust = RunTrust::of(refused.iter(), &[]);
        assert_eq!(trust.level, TrustLevel::DoNotUse);
        assert!(trust.sentence().starts_with("Trust: do not use"));
        assert_eq!(trust.unchecked().level, TrustLevel::DoNotUse);
    }
}
