//! Advice as text and as JSON: each setting with its range, formula and source, and for each
//! product the statements in one block to copy.

use super::{against, text};
use rigel_analyse::{
    Advice, AdviceTerms, Answer, Calibration, DemandAgainst, PlanTest, Product, ProductAdvice,
    advise, warnings_of,
};
use rigel_model::record::journal::{Header, Run};
use serde::Serialize;
use std::fmt::Write;

/// Maximum columns of a line of prose; a comment has three more.
const WIDTH: usize = 97;

/// Indentation of the text about a setting.
const INDENT: usize = 4;

/// Holds for all advice.
const APPLIED: &str = "Nothing was applied: the statements are for you to judge and to run.";

/// The JSON document. Fields are only added, never renamed or removed.
#[derive(Debug, Serialize)]
struct AdviceReport<'a> {
    version: &'a str,
    started: &'a str,
    target: &'a str,
    applied: bool,
    /// Names of the run's warnings.
    warnings: Vec<String>,
    products: Vec<ProductAdvice>,
    /// Plans on a private PostgreSQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    plans: Option<&'a PlanTest>,
    /// A database's demand beside the calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<&'a DemandAgainst>,
}

/// Advice for `products`, as text.
pub fn text(run: &Run, found: &Calibration, products: &[Product], terms: AdviceTerms) -> String {
    let warnings = warnings_of(found, &run.header);
    let mut text = heading(&run.header, &warnings);
    let sections = advise(found, &run.header, products, terms);
    if let Some(demand) = terms.demand {
        text.push_str(&text::section(&against::section(demand)));
        text.push_str(&settings_that_matter(&sections));
    }
    for section in sections {
        let _ = writeln!(
            text,
            "\n{}\n{}",
            section.database.name(),
            "=".repeat(section.database.name().chars().count())
        );
        for (index, setting) in section.settings.iter().enumerate() {
            text.push_str(&setting_lines(setting, &section.settings[..index]));
        }
        text.push_str(&sources(&section));
        text.push('\n');
        for line in cautions(&section, &warnings).iter().chain(&section.apply) {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

/// Advice for `products`, as one JSON document.
pub fn json(run: &Run, found: &Calibration, products: &[Product], terms: AdviceTerms) -> String {
    let header = &run.header;
    let document = AdviceReport {
        version: &header.version,
        started: &header.started,
        target: &header.facts.name,
        applied: false,
        warnings: warnings_of(found, header),
        products: advise(found, header, products, terms),
        plans: terms.plans,
        demand: terms.demand,
    };
    let mut text =
        serde_json::to_string_pretty(&document).expect("advice is made of maps with text keys");
    text.push('\n');
    text
}

fn heading(header: &Header, warnings: &[String]) -> String {
    let what = format!(
        "settings for {}, measured {} through {} by Rigel {}",
        header.facts.name, header.started, header.engine.name, header.version
    );
    let mut text = wrapped("", &what, 0);
    let _ = writeln!(text, "{APPLIED}");
    if !warnings.is_empty() {
        let what = format!(
            "warning: {}; everything below is as uncertain as the run",
            warnings.join(", ")
        );
        let _ = write!(text, "\n{}", wrapped("", &what, 0));
        text.push_str("  hint: `rigel report` of this run shows each warning with its hint\n");
    }
    text
}

/// Names of the settings that matter for the demand, that do not, and for which it is undecided.
fn settings_that_matter(sections: &[ProductAdvice]) -> String {
    let mut text = String::from("\nSettings that matter for this demand:\n");
    for (answer, word) in [
        (Answer::Yes, "yes: "),
        (Answer::No, "no: "),
        (Answer::Undecided, "undecided: "),
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
            text.push_str(&wrapped(word, &all.join("; "), 2));
        }
    }
    text
}

/// The text about one setting. Parts that repeat a setting in `before` word for word refer to it
/// instead.
fn setting_lines(setting: &Advice, before: &[Advice]) -> String {
    let mut text = match (&setting.value, &setting.range) {
        (None, _) => format!("\n{}: not measured\n", setting.setting),
        (Some(value), Some([low, high])) if low != high || low != value => {
            format!("\n{} = {value}  [{low}, {high}]\n", setting.setting)
        }
        (Some(value), _) => format!("\n{} = {value}\n", setting.setting),
    };
    let mut part = |name: &str, what: &str, said: &dyn Fn(&Advice) -> bool| {
        let earlier = before.iter().find(|other| said(other));
        let what = earlier.map_or_else(
            || what.to_string(),
            |earlier| format!("as {}", earlier.setting),
        );
        if !what.is_empty() {
            text.push_str(&wrapped(&format!("{name}: "), &what, INDENT));
        }
    };
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
        (Some(command), None) => text.push_str(&command_line(command)),
    }
    text
}

/// A command to copy; if it is too long for one line, it is continued in shell syntax.
fn command_line(command: &str) -> String {
    let indent = " ".repeat(INDENT);
    let one = format!("{indent}measure by: {command}\n");
    if one.trim_end().chars().count() <= WIDTH {
        return one;
    }
    let broken = wrapped("", command, INDENT + 2);
    format!(
        "{indent}measure by:\n{}\n",
        broken.trim_end().replace('\n', " \\\n")
    )
}

/// Warnings as comments before the statements, because these are copied without the text above
/// them.
fn cautions(section: &ProductAdvice, warnings: &[String]) -> Vec<String> {
    let comment = section.database.comment();
    let mut lines = Vec::new();
    let mut warn = |what: &str| {
        let broken = wrapped("", what, 0);
        lines.extend(
            broken
                .lines()
                .map(|line| format!("{comment} {}", line.trim())),
        );
    };
    if !warnings.is_empty() {
        warn(&format!(
            "from a run with warnings: {}",
            warnings.join(", ")
        ));
    }
    for setting in section
        .settings
        .iter()
        .filter(|setting| setting.value.is_some())
    {
        let names = setting
            .warnings
            .iter()
            .filter_map(|warning| warning.split(':').next());
        let mut names: Vec<&str> = names.collect();
        names.dedup();
        if !names.is_empty() {
            warn(&format!(
                "uncertain: {} ({})",
                setting.setting,
                names.join(", ")
            ));
        }
    }
    lines
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
        text + &wrapped("source: ", source, 0)
    })
}

/// `what` after `name`, wrapped to [`WIDTH`] columns and indented by `indent`, further lines by two
/// more. A longer word has its own line.
fn wrapped(name: &str, what: &str, indent: usize) -> String {
    let mut text = format!("{}{}", " ".repeat(indent), name.trim_end());
    let mut column = text.chars().count();
    for word in what.split_whitespace() {
        let length = word.chars().count();
        if column + 1 + length > WIDTH {
            let _ = write!(text, "\n{}{word}", " ".repeat(indent + 2));
            column = indent + 2 + length;
        } else {
            let space = if column > 0 { " " } else { "" };
            let _ = write!(text, "{space}{word}");
            column += space.len() + length;
        }
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden;
    use rigel_analyse::examples;
    use rigel_model::Finding;
    use rigel_model::FindingName;
    use rigel_model::record::RankLines;

    #[test]
    fn settings_are_told_as_the_golden_file_has_them() {
        let (found, mut header) = (examples::calibration(), examples::header());
        header
            .findings
            .push(Finding::warning(FindingName::Scheduler, "", ""));
        let run = Run {
            header,
            points: Vec::new(),
            imported: Vec::new(),
            watched: Vec::new(),
            stalls: Vec::new(),
            ranks: RankLines::default(),
            cut: false,
        };
        let text = text(&run, &found, &Product::ALL, AdviceTerms::default());
        let long = text.lines().find(|line| line.chars().count() > 100);
        assert_eq!(long, None);
        golden::check("advice.txt", &text);
        let document: serde_json::Value = serde_json::from_str(&json(
            &run,
            &found,
            &[Product::Postgres],
            AdviceTerms::default(),
        ))
        .unwrap();
        assert_eq!(document["applied"], false);
        assert_eq!(document["warnings"][0], "scheduler");
        assert_eq!(document["products"][0]["settings"][0]["value"], "12");
    }

    #[test]
    fn prose_is_broken_between_words_and_indented() {
        let text = wrapped("from: ", &"word ".repeat(40), 4);
        assert!(text.starts_with("    from: word word"), "{text}");
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with("      word")),
            "{text}"
        );
        assert!(text.lines().all(|line| line.len() <= WIDTH), "{text}");
        assert_eq!(text.split_whitespace().count(), 41);
        assert_eq!(wrapped("", "a b", 0), "a b\n");
    }
}
