//! Counts of intervals that hold the truth, and Markdown tables of them.

use super::lookup::{Printed, length_s, notes, warnings};
use super::modelled::Truth;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// How often the intervals of one figure hold the truth.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    both: u32,
    both_hold: u32,
    lower: u32,
    lower_hold: u32,
    none: u32,
    /// Half-widths of intervals with both ends, as shares of the truth.
    halves: Vec<f64>,
    /// Values as shares of the truth.
    ratios: Vec<f64>,
    /// Interval scores as shares of the truth.
    scores: Vec<f64>,
}

/// What an interval of 95 % pays for each unit by which it misses the truth, beside its width: with 2 / (1 - 95 %) the
/// true quantiles have the lowest mean (Gneiting and Raftery, Journal of the American Statistical Association 102, 2007).
pub(crate) const MISS: f64 = 40.0;

impl Tally {
    pub(crate) const HEAD: &'static str = "both ends hold | lower end alone holds | no interval | half-width | value / truth | mean score";

    /// Adds what a run printed. A truth that is a range is held by an interval that meets it.
    pub(crate) fn add(&mut self, printed: Option<Printed>, truth: impl Into<Truth>) {
        let truth = truth.into();
        let middle = truth.middle();
        if let Some(printed) = printed {
            self.ratios.push(printed.value / middle);
        }
        match printed.map(|printed| (printed.low, printed.high)) {
            Some((Some(low), Some(high))) => {
                let miss = (low - truth.high).max(truth.low - high).max(0.0);
                self.both += 1;
                self.both_hold += u32::from(miss <= 0.0);
                self.halves.push((high - low) / 2.0 / middle);
                self.scores.push((high - low + MISS * miss) / middle);
            }
            Some((Some(low), None)) => {
                self.lower += 1;
                self.lower_hold += u32::from(low <= truth.high);
            }
            _ => self.none += 1,
        }
    }

    /// The cells of a row under [`Tally::HEAD`].
    pub(crate) fn cells(&self) -> String {
        let half =
            median(&self.halves).map_or("-".into(), |half| format!("± {:.1} %", half * 100.0));
        let ratio = median(&self.ratios).map_or("-".into(), |ratio| format!("{ratio:.3}"));
        format!(
            "{} | {} | {} | {half} | {ratio} | {}",
            share(self.both_hold, self.both),
            share(self.lower_hold, self.lower),
            self.none,
            self.score()
                .map_or("-".into(), |score| format!("{score:.3}"))
        )
    }

    /// The mean interval score as a share of the truth: of widths and misses in one figure, the less the better.
    pub(crate) fn score(&self) -> Option<f64> {
        mean(&self.scores)
    }
}

pub(crate) fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// What runs said besides their figures.
#[derive(Debug, Default)]
pub(crate) struct Said {
    runs: u32,
    warned: u32,
    warnings: BTreeMap<String, u32>,
    notes: BTreeMap<String, u32>,
    seconds: f64,
}

impl Said {
    pub(crate) const HEAD: &'static str =
        "runs | mean length, virtual s | with a warning | warnings | notes";

    pub(crate) fn of<'a>(runs: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut said = Self::default();
        for run in runs {
            let names = warnings(run);
            said.runs += 1;
            said.warned += u32::from(!names.is_empty());
            said.seconds += length_s(run);
            count(&mut said.warnings, names);
            count(&mut said.notes, notes(run));
        }
        said
    }

    /// The cells of a row under [`Said::HEAD`].
    pub(crate) fn cells(&self) -> String {
        let percent = |of: u32| 100.0 * f64::from(of) / f64::from(self.runs.max(1));
        let names = |counts: &BTreeMap<String, u32>| {
            let each = counts
                .iter()
                .map(|(name, runs)| format!("{name} {:.0} %", percent(*runs)));
            or_dash(each.collect::<Vec<_>>().join(", "))
        };
        format!(
            "{} | {:.0} | {} | {} | {}",
            self.runs,
            self.seconds / f64::from(self.runs.max(1)),
            share(self.warned, self.runs),
            names(&self.warnings),
            names(&self.notes)
        )
    }
}

fn count(counts: &mut BTreeMap<String, u32>, names: BTreeSet<String>) {
    for name in names {
        *counts.entry(name).or_default() += 1;
    }
}

/// `95.0 % of 200`, or a dash where there is nothing to count.
pub(crate) fn share(part: u32, of: u32) -> String {
    if of == 0 {
        return "-".into();
    }
    format!("{:.1} % of {of}", 100.0 * f64::from(part) / f64::from(of))
}

/// `12 of 240: 5.0 % (2.9 to 8.5 %)`, with the 95 % interval of Wilson (Journal of the American Statistical Association
/// 22, 1927).
pub(crate) fn share_between(part: u32, of: u32) -> String {
    const Z: f64 = 1.96;
    if of == 0 {
        return "0 of 0".into();
    }
    let (number, share) = (f64::from(of), f64::from(part) / f64::from(of));
    let widened = 1.0 + Z * Z / number;
    let centre = (share + Z * Z / number / 2.0) / widened;
    let half = Z * (share * (1.0 - share) / number + (Z / number / 2.0).powi(2)).sqrt() / widened;
    let percent = |share: f64| share.clamp(0.0, 1.0) * 100.0;
    format!(
        "{part} of {of}: {:.1} % ({:.1} to {:.1} %)",
        percent(share),
        percent(centre - half),
        percent(centre + half)
    )
}

pub(crate) fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied()
}

/// How often each value occurs: `3 × 85, 4 × 15`.
pub(crate) fn distribution(values: impl IntoIterator<Item = f64>) -> String {
    let mut counts: Vec<(f64, u32)> = Vec::new();
    for value in values {
        match counts
            .iter_mut()
            .find(|(known, _)| known.total_cmp(&value).is_eq())
        {
            Some((_, count)) => *count += 1,
            None => counts.push((value, 1)),
        }
    }
    counts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let each = counts
        .iter()
        .map(|(value, count)| format!("{value}: {count}"));
    or_dash(each.collect::<Vec<_>>().join(", "))
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".into() } else { text }
}

/// Prints the title of a table, what it shows if that is not clear, and its head.
pub(crate) fn head(title: &str, about: &str, columns: &str) {
    let line = "|---".repeat(columns.split('|').count());
    let about = if about.is_empty() {
        String::new()
    } else {
        format!("{about}\n\n")
    };
    println!("\n## {title}\n\n{about}| {columns} |\n{line}|");
}

/// Prints a table of what the runs of each setting say.
pub(crate) fn said(part: &str, rows_said: &[String]) {
    let columns = format!("setting | {}", Said::HEAD);
    head(&format!("{part}: what the runs say"), "", &columns);
    rows(rows_said);
}

/// Prints rows under a head.
pub(crate) fn rows(rows: &[String]) {
    for row in rows {
        println!("| {row} |");
    }
}
