//! Advice on one screen: for one product a table of decisions, the statements of those that change
//! something, and what to measure; for several, what to set in each.

use super::super::against::block_in_words;
use super::super::document::{Column, Extent, Table};
use super::super::lines::{self, wrapped};
use super::super::screen::{WIDTH, shortened};
use super::parts::{advised, cautions, command_line, heading, measured};
use rigel_analyse::quantity::{capital, listed};
use rigel_analyse::{
    Advice, AdviceTerms, Answer, Decision, DemandAgainst, ProductAdvice, ProductDefault,
};
use rigel_model::record::journal::Header;
use rigel_model::{Finding, FindingName, Weight};
use std::fmt::Write;

/// One screen.
pub(super) fn screen(header: &Header, sections: &[ProductAdvice], terms: AdviceTerms) -> String {
    if let [section] = sections {
        let answer = format!("{}{}.", answer(section), of_demand(section));
        return wrapped("", &answer, 0, WIDTH)
            + &beside(header, terms)
            + &of_product(section, terms);
    }
    let each = sections
        .iter()
        .map(|section| answer(section) + ".\n" + &changes(section));
    each.collect::<String>() + &beside(header, terms)
}

/// What the advice is from, how far to trust it, and whether the storage serves the demand.
fn beside(header: &Header, terms: AdviceTerms) -> String {
    let mut text = heading(header, terms, WIDTH);
    if let Some(demand) = terms.demand {
        let block = block_in_words(demand).map_or_else(String::new, |words| format!("; {words}"));
        let fits = format!(
            "{}: {}{block}.",
            capital(demand.fits.word()),
            demand.reason()
        );
        let question = "Does this storage serve the demand?";
        text.push_str(&wrapped(question, &fits, 2, WIDTH));
        text.push_str(&against_demand(demand));
    }
    text
}

/// Doubts about the demand, a line for each finding; notes are left for the full text, but for
/// what makes it more.
fn against_demand(demand: &DemandAgainst) -> String {
    let is_shown = |finding: &&Finding| {
        finding.weight() != Weight::Aside || finding.is(FindingName::DemandCensored)
    };
    let trust = demand.trust();
    let findings = trust.causes.iter().flat_map(|found| &found.findings);
    let lines = findings.filter(is_shown);
    let lines = lines.map(|one| shortened(&format!("  {}: {}", one.name, one.what), WIDTH) + "\n");
    lines.collect()
}

/// The settings that one screen has.
fn shown(section: &ProductAdvice) -> impl Iterator<Item = &Advice> {
    section
        .settings
        .iter()
        .filter(|setting| !setting.is_aside())
}

/// The settings of one product.
fn of_product(section: &ProductAdvice, terms: AdviceTerms) -> String {
    let mut text = "\n".to_string();
    if terms.demand.is_some() {
        text.push_str(&that_matter(section));
    }
    text.push_str(&table(section));
    text.push_str(&statements(section, terms));
    let to_run = to_measure(section);
    text.push_str(&to_run);
    // It follows other commands to run, if there are some.
    if to_run.is_empty() {
        text.push('\n');
    }
    text.push_str("With --verbose: formulas, other opinions, sources and all statements.\n");
    text
}

/// The settings to set, on one line, as many as fit; empty if all are left.
fn changes(section: &ProductAdvice) -> String {
    let change = |setting: &Advice| match &setting.decision {
        Decision::Set { value, .. } => Some(format!("{} = {value}", setting.setting)),
        Decision::Leave { .. } | Decision::NotMeasured => None,
    };
    let mut changes: Vec<String> = section.settings.iter().filter_map(change).collect();
    let line = |changes: &[String], left_out: usize| match left_out {
        0 => format!("  {}\n", changes.join(", ")),
        more => format!("  {} and {more} more\n", changes.join(", ")),
    };
    let all = changes.len();
    while changes.len() > 1 && line(&changes, all - changes.len()).chars().count() > WIDTH {
        changes.pop();
    }
    match changes[..] {
        [] => String::new(),
        _ => line(&changes, all - changes.len()),
    }
}

/// How many of a product's settings are worth a change.
fn answer(section: &ProductAdvice) -> String {
    let count = |is: fn(&Decision) -> bool| {
        let decisions = shown(section).map(|setting| &setting.decision);
        decisions.filter(|decision| is(decision)).count()
    };
    let (all, name) = (shown(section).count(), section.database.name());
    let set = count(|decision| matches!(decision, Decision::Set { .. }));
    let missing = count(|decision| *decision == Decision::NotMeasured);
    let older = count(|decision| {
        matches!(
            decision,
            Decision::Leave {
                before: Some(_),
                ..
            }
        )
    });
    let mut text = match set {
        0 if missing == all => format!("{name}: nothing that its settings need was measured"),
        0 if older > 0 => format!("{name}: leave the newest defaults, older versions set {older}"),
        0 => format!("{name}: leave the defaults"),
        1 if all == 1 => format!("{name}: set its one setting"),
        set if set == all => format!("{name}: set all {all} settings"),
        set => format!("{name}: set {set} of {all} settings, leave the others"),
    };
    if (1..all).contains(&missing) {
        let _ = write!(text, "; {missing} not measured");
    }
    text
}

/// Whether the settings to set matter for the demand, as a clause; empty without one, and if all do.
fn of_demand(section: &ProductAdvice) -> String {
    let is_set = |setting: &&Advice| matches!(setting.decision, Decision::Set { .. });
    let set = || shown(section).filter(is_set);
    if set().all(|one| one.relevance.is_none()) {
        return String::new();
    }
    let matters = |one: &&Advice| {
        let relevance = one.relevance.as_ref();
        relevance.is_some_and(|relevance| relevance.matters == Answer::Yes)
    };
    let certain: Vec<&str> = set().filter(matters).map(|one| one.setting).collect();
    match &certain[..] {
        [] => "; none certainly matters for this demand".into(),
        all if all.len() == set().count() => String::new(),
        [only] => format!("; of these {only} certainly matters for this demand"),
        several => format!(
            "; of these {} certainly matter for this demand",
            listed(several)
        ),
    }
}

/// The settings that matter for the demand, and those for which it is undecided.
fn that_matter(section: &ProductAdvice) -> String {
    let is = |setting: &Advice, answer: Answer| {
        let relevance = setting.relevance.as_ref();
        relevance.is_some_and(|relevance| relevance.matters == answer)
    };
    let of = |answer: Answer| {
        if section.settings.iter().all(|setting| is(setting, answer)) {
            return "all".into();
        }
        let is_so = |setting: &&Advice| is(setting, answer);
        let all = section.settings.iter().filter(is_so);
        all.map(|setting| setting.setting)
            .collect::<Vec<_>>()
            .join(", ")
    };
    let mut words = of(Answer::Yes);
    if words.is_empty() {
        words = "none".into();
    }
    let undecided = of(Answer::Undecided);
    if !undecided.is_empty() {
        let _ = write!(words, "; undecided: {undecided}");
    }
    wrapped("Settings that matter for this demand:", &words, 2, WIDTH)
}

/// The product's settings, one row each, and the reason below the last row that has it.
fn table(section: &ProductAdvice) -> String {
    let column = |name: &str| Column {
        name: name.into(),
        ..Column::default()
    };
    let row = |setting: &Advice| {
        let own = setting.default.as_ref();
        vec![
            setting.setting.into(),
            own.map_or_else(|| "none".into(), ProductDefault::words),
            advised(setting).into(),
            measured(setting),
        ]
    };
    let table = Table {
        columns: [section.database.name(), "default", "advice", "measured"]
            .map(column)
            .into(),
        rows: shown(section).map(row).collect(),
        ..Table::default()
    };
    let text = lines::table(&table, Extent::Screen, usize::MAX);
    let mut rows = text.lines();
    let mut text = format!("{}\n", rows.next().unwrap_or_default());
    let mut settings = shown(section).peekable();
    for row in rows {
        let _ = writeln!(text, "{row}");
        let why = settings.next().map_or("", |setting| setting.decision.why());
        let below = settings.peek().map_or("", |setting| setting.decision.why());
        if why != below && !why.is_empty() {
            text.push_str(&wrapped("  ", why, 2, WIDTH));
        }
    }
    text
}

/// The statements of what changes; empty if nothing does.
pub(super) fn statements(section: &ProductAdvice, terms: AdviceTerms) -> String {
    if section.settings.iter().all(|one| one.statement.is_none()) {
        return String::new();
    }
    let lines = [cautions(section, terms, WIDTH), section.apply.clone()].concat();
    format!("\n{}\n", lines.join("\n"))
}

/// The commands that measure what was not, without those that are a part of another; Rigel's first.
fn to_measure(section: &ProductAdvice) -> String {
    let is_missing = |setting: &&Advice| setting.decision == Decision::NotMeasured;
    let missing = section.settings.iter().filter(is_missing);
    let mut commands: Vec<&str> = missing
        .filter_map(|one| one.measure_by.as_deref())
        .collect();
    commands.sort_unstable_by_key(|command| (!command.starts_with("rigel"), *command));
    commands.dedup();
    let has_all = |whole: &str, part: &str| {
        part.split(' ')
            .all(|word| whole.split(' ').any(|it| it == word))
    };
    let is_whole = |one: &&str| {
        !commands
            .iter()
            .any(|other| other != one && has_all(other, one))
    };
    let whole: Vec<&str> = commands.iter().copied().filter(is_whole).collect();
    let title = "To measure the rest:";
    match whole[..] {
        [] => String::new(),
        [one] if title.len() + 1 + one.chars().count() <= WIDTH => format!("\n{title} {one}\n"),
        _ => {
            let lines = whole.iter().map(|command| command_line(command, 2, WIDTH));
            format!("\n{title}\n{}", lines.collect::<String>())
        }
    }
}
