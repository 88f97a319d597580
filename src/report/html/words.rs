//! Figures and findings in the words of a page: numbers with their thousands apart, times with their unit, intervals
//! beside them, and the answer that a page opens with.

use super::page::{Answer, Block, Column, Headline, Section, Table, Tone};
use crate::analyse::{Estimate, Limits, PointSummary};
use crate::model::{Bytes, Finding, Nanos, Severity};
use crate::record::journal::Run;
use crate::report::{calibration, table};
use std::fmt::Write;

/// What is said of a figure without an interval.
pub(super) const UNKNOWN: &str = "interval not known";

/// `79,941`; below a hundred with a decimal where there is one.
pub(super) fn count(value: f64) -> String {
    if value.abs() < 99.95 && value.fract().abs() > 1e-9 {
        return format!("{value:.1}");
    }
    let digits = format!("{:.0}", value.abs());
    let mut text = if value <= -0.5 { "-".to_string() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `450 µs`, `1.24 ms`: three significant digits of microseconds.
pub(super) fn time(us: f64) -> String {
    let text = Nanos::from_micros_f64(us).to_string();
    let unit = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    format!("{number} {}", if unit == "us" { "µs" } else { unit })
}

/// `8 KiB`.
pub(super) fn size(bytes: u32) -> String {
    Bytes(bytes.into()).to_string()
}

/// `12.5 %`.
pub(super) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// `± 0.4 %`.
pub(super) fn plus_minus(estimate: Estimate) -> String {
    match estimate.interval {
        Some(_) => calibration::plus_minus(estimate),
        None => UNKNOWN.into(),
    }
}

/// `438 to 463 µs`; `at least 438 µs` where the upper end is not known.
pub(super) fn from_to(interval: Option<Limits>) -> String {
    let Some(Limits { low, high }) = interval else { return UNKNOWN.into() };
    let Some(high) = high else { return format!("at least {}", time(low)) };
    let (low, high) = (time(low), time(high));
    let unit = |text: &str| text.split_once(' ').map_or_else(String::new, |(_, unit)| unit.to_string());
    let same = unit(&low) == unit(&high);
    let low = if same { low.split(' ').next().unwrap_or_default().to_string() } else { low };
    format!("{low} to {high}")
}

/// `458 µs (438 to 463)`: for a cell of a table.
pub(super) fn time_between(estimate: Estimate) -> String {
    let value = time(estimate.value);
    if estimate.interval.is_none() {
        return value;
    }
    let between = from_to(estimate.interval);
    let unit = value.split_once(' ').map_or("", |(_, unit)| unit);
    let words: Vec<&str> = between.split(' ').collect();
    match words[..] {
        [low, to, high, same] if same == unit => format!("{value} ({low} {to} {high})"),
        _ => format!("{value} ({between})"),
    }
}

/// A sentence that begins as one.
pub(super) fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `1 point`, `20 points`.
pub(super) fn points(number: usize) -> String {
    if number == 1 { "1 point".into() } else { format!("{number} points") }
}

/// `1 sample`, `20 samples`.
pub(super) fn samples(number: usize) -> String {
    if number == 1 { "1 sample".into() } else { format!("{number} samples") }
}

/// A rate in large type. `name` is the figure's place in the JSON report.
pub(super) fn rate(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    headline(name, label, figure.value, count(figure.value), plus_minus(figure), note)
}

/// Megabytes a second in large type.
pub(super) fn throughput(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    headline(name, label, figure.value, format!("{} MB/s", count(figure.value)), plus_minus(figure), note)
}

/// A time in large type.
pub(super) fn latency(name: &str, label: &str, figure: Estimate, note: String) -> Headline {
    headline(name, label, figure.value, time(figure.value), from_to(figure.interval), note)
}

/// A time that was asked for: `7 days`, `15 min`, `90 s`.
pub(super) fn lasting(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    let units = [(86_400.0, "days"), (3600.0, "h"), (60.0, "min")];
    let whole = units.iter().find(|(size, _)| seconds > 0.0 && seconds % size == 0.0);
    whole.map_or_else(|| time.exact(), |(size, name)| format!("{} {name}", seconds / size))
}

/// Anything in large type.
pub(super) fn headline(name: &str, label: &str, exact: f64, value: String, interval: String, note: String) -> Headline {
    Headline { name: name.into(), label: label.into(), value, interval, note, exact }
}

/// The answer: what was found, then what stands against it: `care` is what of the storage itself a reader must mind,
/// `bad` a promise that was not kept; `warnings` come in the order in which they matter.
pub(super) fn answer(found: &str, care: Option<&str>, bad: Option<&str>, warnings: &[&Finding]) -> Answer {
    let mut sentence = found.to_string();
    if let Some(care) = care {
        let _ = write!(sentence, " {care}");
    }
    let mut kinds: Vec<&Finding> = Vec::new();
    for finding in warnings.iter().filter(|finding| finding.severity != Severity::Note) {
        if kinds.iter().all(|known| known.name != finding.name) {
            kinds.push(finding);
        }
    }
    if let Some(bad) = bad {
        let _ = write!(sentence, " {bad}");
    }
    let more = match kinds.len() {
        0 | 1 => String::new(),
        2 => " One more warning is told below.".into(),
        kinds => format!(" {} more warnings are told below.", kinds - 1),
    };
    match kinds.first() {
        Some(first) => {
            let same = warnings.iter().filter(|finding| finding.name == first.name).count() - 1;
            let others = if same > 0 { format!(", and {same} more of this kind") } else { String::new() };
            let _ = write!(sentence, " Warning: {}{others}.{more}", first.what.trim_end_matches('.'));
        }
        None if bad.is_none() && care.is_none() => {
            sentence.push_str(" Nothing that was watched speaks against these figures.");
        }
        None => {}
    }
    let tone = match (bad.is_some(), kinds.is_empty() && care.is_none()) {
        (true, _) => Tone::Bad,
        (false, false) => Tone::Warning,
        (false, true) => Tone::Good,
    };
    Answer { tone, sentence }
}

/// The warnings that an answer names, those of the run as a whole first. Failures have a sentence of their own.
pub(super) fn warnings<'a>(run: &'a Run, of_run: &'a [Finding], points: &'a [PointSummary]) -> Vec<&'a Finding> {
    let of_points = points.iter().flat_map(|point| &point.findings);
    let all = of_run.iter().chain(of_points).chain(&run.header.findings);
    all.filter(|finding| finding.severity != Severity::Note && finding.name != "failures").collect()
}

/// The findings of a run, those that recur told once, worst first; none if there are none.
pub(super) fn findings<'a>(all: impl Iterator<Item = &'a Finding>) -> Section {
    let told: Vec<Finding> = table::grouped(all)
        .into_iter()
        .map(|(finding, others)| {
            let more = if others > 0 { format!(" (and {others} more of this kind)") } else { String::new() };
            Finding { what: format!("{}{more}", finding.what), ..finding.clone() }
        })
        .collect();
    let warnings = told.iter().filter(|finding| finding.severity != Severity::Note).count();
    let lead = match (warnings, told.len()) {
        (_, 0) => "Nothing was found that a reader of these figures must know.".to_string(),
        (0, _) => "No warnings; what is worth knowing beside the figures.".into(),
        (1, _) => "One warning, with its evidence and what to do about it; notes after.".into(),
        (warnings, _) => format!("{warnings} warnings, each with its evidence and what to do about it; notes after."),
    };
    let blocks = if told.is_empty() { Vec::new() } else { vec![Block::Findings(told)] };
    section("findings", "Warnings and notes", &lead, blocks)
}

/// A section; tables without a row are left out.
pub(super) fn section(id: &str, title: &str, lead: &str, mut blocks: Vec<Block>) -> Section {
    blocks.retain(|block| !matches!(block, Block::Table(table) if table.rows.is_empty()));
    Section { id: id.into(), title: title.into(), lead: lead.into(), blocks }
}

/// A table whose columns with a `#` in front hold figures.
pub(super) fn rows(caption: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let column = |name: &&str| match name.strip_prefix('#') {
        Some(name) => Column { name: name.into(), is_number: true },
        None => Column { name: (*name).into(), is_number: false },
    };
    Table { caption: caption.into(), columns: columns.iter().map(column).collect(), rows, folded: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_for_people() {
        let counts = [0.0, 7.25, 99.96, 999.6, 79_941.4, 1_234_567.0, -12_345.0].map(count);
        assert_eq!(counts, ["0", "7.2", "100", "1,000", "79,941", "1,234,567", "-12,345"]);
        assert_eq!([0.25, 102.4, 1234.5, 2e6].map(time), ["250 ns", "102 µs", "1.23 ms", "2.00 s"]);
        let interval = |low, high| Some(Limits { low, high: Some(high) });
        assert_eq!(from_to(interval(438.0, 463.0)), "438 to 463 µs");
        assert_eq!(from_to(interval(980.0, 1200.0)), "980 µs to 1.20 ms");
        assert_eq!(from_to(None), UNKNOWN);
        let open = Some(Limits { low: 438.0, high: None });
        assert_eq!(from_to(open), "at least 438 µs");
        assert_eq!(time_between(Estimate { value: 1450.0, interval: open }), "1.45 ms (at least 438 µs)");
        let between = |interval| time_between(Estimate { value: 450.0, interval });
        assert_eq!(between(interval(438.0, 463.0)), "450 µs (438 to 463)");
        assert_eq!(between(interval(438.0, 1463.0)), "450 µs (438 µs to 1.46 ms)");
    }

    #[test]
    fn an_answer_says_what_stands_against_it() {
        let (note, warning) = (Finding::note("n", "a note"), Finding::warning("d", "a warning", "a hint"));
        assert_eq!(answer("It is.", None, None, &[&note]).tone, Tone::Good);
        let found = answer("It is.", None, None, &[&note, &warning, &warning]);
        assert_eq!(
            (found.tone, found.sentence.as_str()),
            (Tone::Warning, "It is. Warning: a warning, and 1 more of this kind.")
        );
        let other = Finding::warning("e", "another", "a hint");
        assert!(
            answer("It is.", None, None, &[&warning, &other]).sentence.ends_with("One more warning is told below.")
        );
        assert_eq!(answer("It is.", Some("Mind it."), None, &[]).tone, Tone::Warning);
        assert_eq!(answer("It is.", None, Some("It broke."), &[&warning]).tone, Tone::Bad);
    }
}
