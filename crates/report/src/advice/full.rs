//! Advice with all that it follows from: each setting with its range, formula and source.

use super::super::lines::wrapped;
use super::super::{against, text};
use super::parts::{advised, cautions, command_line, heading, measured};
use rigel_analyse::{
    Advice, AdviceTerms, Answer, ProductAdvice, ProductDefault, RunTrust, TrustLevel,
};
use rigel_model::record::journal::Header;
use std::fmt::Write;

/// Maximum columns of a line of prose; a comment has three more.
const WIDTH: usize = 97;

/// Indentation of the text about a setting.
const INDENT: usize = 4;

/// The text.
pub(super) fn full(header: &Header, sections: &[ProductAdvice], terms: AdviceTerms) -> String {
    let mut text = heading(header, terms, WIDTH);
    let is_doubted = |trust: &RunTrust| trust.level != TrustLevel::Good;
    if terms.trust.is_some_and(is_doubted) {
        text.push_str("  hint: `rigel report` of this run shows each warning with its hint\n");
    }
    if let Some(demand) = terms.demand {
        text.push_str(&text::section(&against::section(demand)));
        let trust = demand.trust();
        text.push_str(&text::causes(&trust.causes.iter().collect::<Vec<_>>()));
        text.push_str(&settings_that_matter(sections));
    }
    for section in sections {
        let name = section.database.name();
        let _ = writeln!(text, "\n{name}\n{}", "=".repeat(name.chars().count()));
        for (index, setting) in section.settings.iter().enumerate() {
            text.push_str(&setting_lines(setting, &section.settings[..index]));
        }
        text.push_str(&sources(section));
        if !section.apply.is_empty() {
            text.push('\n');
            for line in cautions(section, terms, WIDTH).iter().chain(&section.apply) {
                let _ = writeln!(text, "{line}");
            }
        }
    }
    text
}

/// Names of the settings that matter for the demand, that do not, and for which it is undecided.
fn settings_that_matter(sections: &[ProductAdvice]) -> String {
    let mut text = String::from("\nSettings that matter for this demand:\n");
    for (answer, word) in [
        (Answer::Yes, "  yes:"),
        (Answer::No, "  no:"),
        (Answer::Undecided, "  undecided:"),
    ] {
        let names = |section: &ProductAdvice| {
            let is_so = |setting: &&Advice| {
                let relevance = setting.relevance.as_ref();
                relevance.is_some_and(|relevance| relevance.matters == answer)
            };
            let names = section.settings.iter().filter(is_so);
            let names: Vec<&str> = names.map(|setting| setting.setting).collect();
            (!names.is_empty()).then(|| format!("{} {}", section.database.name(), names.join(", ")))
        };
        let all: Vec<String> = sections.iter().filter_map(names).collect();
        if !all.is_empty() {
            text.push_str(&wrapped(word, &all.join("; "), 4, WIDTH));
        }
    }
    text
}

/// The text about one setting. Parts that repeat a setting in `before` word for word refer to it
/// instead.
fn setting_lines(setting: &Advice, before: &[Advice]) -> String {
    let mut text = format!("\n{}: {}\n", setting.setting, advised(setting));
    let mut part = |name: &str, what: &str, said: &dyn Fn(&Advice) -> bool| {
        let earlier = before.iter().find(|other| said(other));
        let what = earlier.map_or_else(
            || what.to_string(),
            |earlier| format!("as {}", earlier.setting),
        );
        if !what.is_empty() {
            text.push_str(&wrapped(&opening(name), &what, INDENT + 2, WIDTH));
        }
    };
    part("why", setting.decision.why(), &|other| {
        other.decision == setting.decision
    });
    let own = setting.default.as_ref();
    let own = own.map_or_else(|| "none".into(), ProductDefault::words);
    part("default", &own, &|_| false);
    part("measured", &measured(setting), &|_| false);
    let value = setting.value.is_some();
    part(
        if value { "from" } else { "known" },
        &setting.derivation,
        &|other| other.derivation == setting.derivation,
    );
    if let Some(relevance) = &setting.relevance {
        let what = format!("{}; {}", relevance.matters.word(), relevance.why);
        part("matters", &what, &|_| false);
    }
    for opinion in &setting.opinions {
        part(&format!("or {}", opinion.value), &opinion.why, &|other| {
            other
                .opinions
                .iter()
                .any(|theirs| theirs.why == opinion.why)
        });
    }
    for warning in &setting.warnings {
        part("warning", warning, &|other| {
            other.warnings.contains(warning)
        });
    }
    let misleads = &setting.misleads;
    part("misleads", misleads, &|other| {
        !misleads.is_empty() && other.misleads == *misleads
    });
    match (
        &setting.measure_by,
        before
            .iter()
            .find(|other| other.measure_by == setting.measure_by),
    ) {
        (None, _) => {}
        (Some(_), Some(earlier)) => {
            part("measure by", &format!("as {}", earlier.setting), &|_| false);
        }
        (Some(command), None) => {
            let _ = writeln!(text, "{}", opening("measure by"));
            text.push_str(&command_line(command, INDENT + 2, WIDTH));
        }
    }
    text
}

/// The name of a part of the text about a setting.
fn opening(name: &str) -> String {
    format!("{}{name}:", " ".repeat(INDENT))
}

/// Sources of the settings, each document once.
fn sources(section: &ProductAdvice) -> String {
    let mut sources: Vec<&str> = Vec::new();
    for setting in &section.settings {
        if !sources.contains(&setting.source) {
            sources.push(setting.source);
        }
    }
    sources.iter().fold("\n".to_string(), |text, source| {
        text + &wrapped("source:", source, 2, WIDTH)
    })
}
