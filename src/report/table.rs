//! The parts of the text report.

use crate::analyse::{ClassSummary, Conclusion, MatrixResult, PointSummary};
use crate::model::{Bytes, Finding, Nanos, Severity, Target};
use crate::record::End;
use crate::record::journal::Run;
use std::fmt::Write;

/// Wraps words after `opening` to `width` columns; further lines are indented by `hang`. A longer word has its own
/// line.
pub(super) fn wrapped(opening: &str, words: &str, hang: usize, width: usize) -> String {
    let (mut text, mut line) = (String::new(), opening.to_string());
    for word in words.split_whitespace() {
        let is_blank = line.trim().is_empty();
        if !is_blank && line.chars().count() + 1 + word.chars().count() > width {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(hang);
        } else if !is_blank {
            line.push(' ');
        }
        line.push_str(word);
    }
    text + &line + "\n"
}

/// The conclusion as a paragraph.
pub(super) fn conclusion(conclusion: &Conclusion) -> String {
    wrapped("", &conclusion.sentence, 0, 118)
}

/// The heading, and the figures of a matrix.
pub(super) fn parts(run: &Run, result: &MatrixResult) -> (String, String) {
    let header = &run.header;
    let summaries = &result.points;
    let mut text = String::new();
    let facts = &header.facts;
    // The name of a scratch file contains its size.
    let size = match header.target {
        Target::Scratch { .. } => String::new(),
        _ => format!(" of {}", facts.usable),
    };
    let _ = writeln!(text, "{}{size}, begun {}", facts.name, header.started);
    let _ = writeln!(text, "{} CPUs, Linux {}; {}", header.host.cpus, header.host.kernel, header.engine_about);
    let (done, planned) = (summaries.len(), header.points.len());
    let of = if planned > 0 { format!(" of {planned}") } else { String::new() };
    let _ = writeln!(text, "{done}{of} data points, Rigel {}", header.version);
    let figures = [points(summaries), "\n".into(), coverage(summaries), witness(summaries, &header.findings)];
    (text, figures.concat())
}

/// Says that the journal's last line was lost, if it was.
pub(super) fn cut_off(run: &Run) -> &'static str {
    if run.cut {
        "\nThe journal's last line was cut off and is left out: the run was killed while writing it.\n"
    } else {
        ""
    }
}

/// One line for every class of every point.
#[must_use]
pub fn points(summaries: &[PointSummary]) -> String {
    let mut text = format!(
        "{:>5} {:>5}  {:<5} {:>9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  {:<7} {:>7}\n",
        "small", "large", "class", "IOPS", "MiB/s", "mean", "p50", "p99", "p99.9", "max", "steady", "CPU/IO"
    );
    for summary in summaries {
        for class in &summary.classes {
            let (small, large) = summary.coordinates.small_and_large();
            let _ = writeln!(text, "{small:>5} {large:>5}  {}", class_line(class, summary));
        }
    }
    text
}

fn class_line(class: &ClassSummary, summary: &PointSummary) -> String {
    let time = |us: f64| Nanos::from_micros_f64(us).to_string();
    let latency = class.latency.map_or_else(
        || ["-"; 5].map(String::from),
        |latency| [latency.mean_us, latency.p50_us, latency.p99_us, latency.p999_us, latency.max_us].map(time),
    );
    let [mean, p50, p99, p999, max] = latency;
    let steady = match (&summary.end, class.steady) {
        (End::Stopped, _) => "stopped",
        (End::Broken(_), _) => "broken",
        (End::Complete, None) => "-",
        (End::Complete, Some(steady)) if steady.steady => "yes",
        (End::Complete, Some(_)) => "no",
    };
    let cpu = summary.cpu_us_per_io.map_or_else(|| "-".into(), time);
    format!(
        "{:<5} {:>9.0} {:>8.1} {mean:>8} {p50:>8} {p99:>8} {p999:>8} {max:>8}  {steady:<7} {cpu:>7}",
        class.name, class.iops, class.mib_per_s
    )
}

/// Shows that the whole volume was measured, not a corner of it: one line per class, over all points.
#[must_use]
pub fn coverage(summaries: &[PointSummary]) -> String {
    let mut text = String::new();
    let mut names: Vec<&str> = Vec::new();
    for class in summaries.iter().flat_map(|summary| &summary.classes) {
        if !names.contains(&class.name.as_str()) {
            names.push(&class.name);
        }
    }
    for name in names {
        let of_class = summaries.iter().flat_map(|summary| &summary.classes).filter(|class| class.name == name);
        let Some(best) = of_class.max_by_key(|class| class.coverage.distinct) else { continue };
        let coverage = best.coverage;
        let _ = write!(
            text,
            "{name} I/O touched {} of {} blocks of {} in its widest point",
            coverage.distinct,
            coverage.watched,
            Bytes(best.io_bytes.into())
        );
        if let Some(expected) = coverage.expected {
            let _ = write!(text, " (chance says {expected:.0})");
        }
        let _ = writeln!(text, ", in {} of {} slices of the volume", coverage.slices_touched, coverage.slices);
    }
    text
}

/// The kernel's byte count of the devices, over all points; empty if not available. `findings` are those about the
/// target.
#[must_use]
pub fn witness(summaries: &[PointSummary], findings: &[Finding]) -> String {
    let witnesses = summaries.iter().filter_map(|summary| summary.witness);
    let (device, asked) =
        witnesses.fold((0, 0), |(device, asked), witness| (device + witness.device_bytes, asked + witness.asked_bytes));
    if asked == 0 {
        return String::new();
    }
    let share = device as f64 / asked as f64 * 100.0;
    let has_holes = findings.iter().any(|finding| finding.name == "holes");
    let why = match share {
        ..98.0 if has_holes => ": blocks that were never written are answered without the device",
        ..98.0 => ": the rest was answered by a cache or another layer",
        ..=102.0 => "",
        _ => ": the devices had other work",
    };
    format!("the kernel counted {share:.1} % of the bytes asked for on the devices below{why}\n")
}

/// Notes that apply to nearly every virtual disk, each with a short text. Several of them are folded into one line.
const USUAL: [(&str, &str); 3] = [
    ("rotational", "says that it spins"),
    ("write-cache", "has a write-back cache"),
    ("merges", "may merge adjacent requests"),
];

/// One note that replaces those that apply to nearly every virtual disk; `None` if there are fewer than two.
fn usual_of_disks(findings: &[(&Finding, usize)]) -> Option<String> {
    let has = |name: &str| findings.iter().any(|(finding, _)| finding.name == name);
    let found: Vec<&str> = USUAL.iter().filter(|(name, _)| has(name)).map(|(_, words)| *words).collect();
    let sentence =
        || format!("the disk {}, as virtual disks do: `rigel report --verbose` tells more", found.join(", "));
    (found.len() > 1).then(sentence)
}

/// True for a note that [`usual_of_disks`] may replace.
fn is_usual_of_disks(finding: &Finding) -> bool {
    USUAL.iter().any(|(name, _)| *name == finding.name)
}

/// The amount of detail of findings in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Detail {
    /// Notes that apply to nearly every virtual disk are folded into one line.
    Usual,
    /// Every finding in full.
    Verbose,
}

/// The findings, highest severity first; one per kind, with the number of others of its kind.
pub(super) fn grouped<'a>(findings: impl Iterator<Item = &'a Finding>) -> Vec<(&'a Finding, usize)> {
    let mut sorted: Vec<&Finding> = findings.collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let is_first = |index: &usize| sorted[..*index].iter().all(|before| before.name != sorted[*index].name);
    let others = |index: usize| sorted[index + 1..].iter().filter(|other| other.name == sorted[index].name).count();
    (0..sorted.len()).filter(is_first).map(|index| (sorted[index], others(index))).collect()
}

/// The findings, highest severity first: each warning with its hint, then notes, one line each; empty if there are
/// none. Findings of the same kind appear once.
#[must_use]
pub fn findings<'a>(findings: impl Iterator<Item = &'a Finding>, detail: Detail) -> String {
    let (mut warnings, mut notes) = (String::new(), String::new());
    let grouped = grouped(findings);
    let usual = usual_of_disks(&grouped).filter(|_| detail == Detail::Usual);
    for (finding, others) in grouped {
        if usual.is_some() && is_usual_of_disks(finding) {
            continue;
        }
        let more = if others > 0 { format!(" (and {others} more of this kind)") } else { String::new() };
        match finding.severity {
            Severity::Note => {
                let _ = writeln!(notes, "note: {}{more}", finding.what);
            }
            Severity::Warning | Severity::Refusal => {
                let _ = writeln!(warnings, "\nwarning: {}{more}\n  hint: {}", finding.what, finding.hint);
            }
        }
    }
    usual.iter().for_each(|usual| {
        let _ = writeln!(notes, "note: {usual}");
    });
    if !notes.is_empty() {
        notes.insert(0, '\n');
    }
    warnings + &notes
}
