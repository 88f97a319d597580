//! What both texts of advice have: the heading, the cells of a setting, comments and commands.

use super::super::frame;
use super::super::lines::wrapped;
use super::super::parts::NOT_KNOWN;
use rigel_analyse::{Advice, AdviceTerms, Decision, ProductAdvice, RunTrust};
use rigel_model::in_line;
use rigel_model::record::journal::Header;

/// What the advice is from, that nothing was applied, and how far to trust it.
pub(super) fn heading(header: &Header, terms: AdviceTerms, width: usize) -> String {
    let from = format!(
        "{}, by {}. Nothing was applied.",
        frame::heading(header),
        header.engine.name
    );
    let trust = terms.trust_of_all().map_or_else(String::new, |trust| {
        wrapped("", &trust.sentence(), 2, width)
    });
    wrapped("", &in_line(&from), 0, width) + &trust
}

/// The value to set, or `leave`; `-` if there is nothing to leave it at.
pub(super) fn advised(setting: &Advice) -> &str {
    match &setting.decision {
        Decision::Set { value, .. } => value,
        Decision::NotMeasured if setting.default.is_none() => NOT_KNOWN,
        Decision::Leave { .. } | Decision::NotMeasured => "leave",
    }
}

/// The value that was measured, with its range. That of random pages is no advice where it is left.
pub(super) fn measured(setting: &Advice) -> String {
    let figure = figure(setting);
    let is_left = matches!(setting.decision, Decision::Leave { .. });
    if is_left && setting.value.is_some() && setting.setting == "random_page_cost" {
        format!("{figure} uncached")
    } else {
        figure
    }
}

fn figure(setting: &Advice) -> String {
    match (&setting.value, &setting.range) {
        (None, _) if setting.measure_by.is_none() => NOT_KNOWN.into(),
        (None, _) => "not measured".into(),
        (Some(value), Some([low, high])) if low != high || low != value => {
            format!("{value} [{low}, {high}]")
        }
        (Some(value), _) => value.clone(),
    }
}

/// Warnings as comments before the statements, because these are copied without the text above
/// them.
pub(super) fn cautions(section: &ProductAdvice, terms: AdviceTerms, width: usize) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    let doubted = terms.trust_of_all();
    let doubted = doubted.filter(|trust| trust.doubts().next().is_some());
    all.extend(doubted.as_ref().map(RunTrust::sentence));
    // Settings with the same warnings share a line.
    let mut uncertain: Vec<(Vec<&str>, Vec<&str>)> = Vec::new();
    let is_named = |setting: &&Advice| {
        let mut lines = section.apply.iter();
        setting.value.is_some() && lines.any(|line| line.contains(setting.setting))
    };
    for setting in section.settings.iter().filter(is_named) {
        let names = setting.warnings.iter();
        let mut names: Vec<&str> = names.filter_map(|one| one.split(':').next()).collect();
        names.dedup();
        match uncertain.iter_mut().find(|(known, _)| *known == names) {
            Some((_, settings)) => settings.push(setting.setting),
            None if names.is_empty() => {}
            None => uncertain.push((names, vec![setting.setting])),
        }
    }
    let line = |(names, settings): &(Vec<&str>, Vec<&str>)| {
        format!("uncertain ({}): {}", names.join(", "), settings.join(", "))
    };
    all.extend(uncertain.iter().map(line));
    let comment = section.database.comment();
    let opening = format!("{comment} ");
    let lines = all
        .iter()
        .map(|one| wrapped("", one, 0, width - opening.len()));
    lines
        .flat_map(|broken| {
            broken
                .lines()
                .map(|line| format!("{opening}{line}"))
                .collect::<Vec<_>>()
        })
        .collect()
}

/// A command to copy; if it is too long for one line, each option has its own, in shell syntax.
pub(super) fn command_line(command: &str, indent: usize, width: usize) -> String {
    let line = format!("{}{command}\n", " ".repeat(indent));
    if line.trim_end().chars().count() <= width {
        return line;
    }
    // A break between words might be within quotes.
    line.replace(" --", &format!(" \\\n{}--", " ".repeat(indent + 2)))
}
