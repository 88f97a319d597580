//! A series of rounds as text and as CSV: the verdict, figures, a timeline, changes with their dates, objectives.
//!
//! Input: rounds and their analysis, from a soak's journal or from another tool's figures. What is unknown of such
//! figures, such as latencies, is left out.

use super::csv::Table;
use super::data::{self, Head};
use super::table::{self, Detail};
use crate::analyse::{
    ChangePoint, Conclusion, DailyPattern, Episode, HostShift, ObjectiveResult, Predictability, Quantity, Round,
    RoundEnd, SeriesFigures, SoakResult, median,
};
use crate::model::{Finding, Moment, Nanos, Resolution, Target};
use crate::record::journal::Header;
use serde::Serialize;
use std::fmt::Write;

/// Maximum width of a timeline's bar.
const BAR: f64 = 40.0;
/// Maximum number of rows of a timeline by rounds; with more rounds, several share a row.
const ROWS_MAX: usize = 26;
/// Duration in days from which on a row is a day.
const DAYS_MIN: i64 = 2;
/// Maximum number of lines of a list.
const LIST_MAX: usize = 12;
/// Bar characters from zero to the maximum.
const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The report, at most 120 columns wide. It needs only the header: the journal of a soak of weeks is never in memory
/// as a whole.
#[must_use]
pub fn text(header: &Header, result: &SoakResult, detail: Detail) -> String {
    let (heading, figures) = parts(header, result);
    let findings = table::findings(header.findings.iter().chain(&result.findings), detail);
    format!("{heading}\n{}\n{figures}{findings}", table::conclusion(&result.conclusion(header)))
}

/// The heading, and the figures.
pub(super) fn parts(header: &Header, result: &SoakResult) -> (String, String) {
    (heading(header, result), series(result))
}

/// The results of a series: figures, timeline, changes, objectives.
pub(super) fn series(result: &SoakResult) -> String {
    let found = &result.found;
    let mut text = figures(found).trim_start_matches('\n').to_string();
    text.push_str(&timeline(&result.rounds, found.resolution));
    text.push_str(&what_changed(found));
    text.push_str(&objectives(found));
    text.push_str(&rounds(found));
    text
}

/// The rounds as CSV: a header line, then one line per round. Columns are only added at the end, never renamed or
/// removed.
#[must_use]
pub fn csv(result: &SoakResult) -> String {
    let mut table = Table::new(
        "round,begin,seconds,done,failed,asked,rate,mean_us,p50_us,p99_us,max_us,end,kept,device,device_busy,\
         queue,cpu_busy,stolen,io_pressure,others_mb_per_s",
    );
    for round in &result.rounds {
        let kept: Vec<&str> = round.kept.iter().map(|kept| if kept.kept { "1" } else { "0" }).collect();
        let host = round.host.as_ref();
        table.value(round.number).value(round.begin).figure(Some(round.seconds));
        table.value(format_args!("{:.0}", round.done)).value(round.failed).maybe(round.asked);
        table.figure(round.rate).figure(round.mean_us).figure(round.p50_us).figure(round.p99_us).figure(round.max_us);
        table.value(end_name(&round.end)).value(kept.join(" "));
        table.text(host.and_then(|host| host.device.as_deref()).unwrap_or_default());
        table.figure(host.and_then(|host| host.device_busy)).figure(host.and_then(|host| host.queue));
        table.figure(host.map(|host| host.cpu_busy)).figure(host.map(|host| host.stolen));
        table.figure(host.and_then(|host| host.io_pressure)).figure(host.and_then(|host| host.others_mb_per_s));
        table.end();
    }
    table.into_text()
}

pub(super) fn end_name(end: &RoundEnd) -> &'static str {
    match end {
        RoundEnd::Whole => "whole",
        RoundEnd::Cut => "cut",
        RoundEnd::Stopped => "stopped",
        RoundEnd::Broken(_) => "broken",
    }
}

fn heading(header: &Header, result: &SoakResult) -> String {
    let size = match header.target {
        Target::Scratch { .. } => String::new(),
        _ if header.facts.usable.0 == 0 => String::new(),
        _ => format!(", {}", header.facts.usable),
    };
    let counts = &result.found.rounds;
    let of = counts.planned.map_or_else(String::new, |planned| format!(" of {planned}"));
    let to = result.found.resolution;
    let span = match (result.rounds.first(), result.rounds.last()) {
        (Some(first), Some(last)) => format!(", {} to {}", first.begin.shown(to), last.finish().shown(to)),
        _ => String::new(),
    };
    let rounds = result.rounds.len();
    let plural = if rounds == 1 && of.is_empty() { "" } else { "s" };
    format!(
        "{}{size}, by {}\n{rounds}{of} round{plural}{span}, Rigel {}\n",
        header.facts.name, header.engine.name, header.version
    )
}

/// Formats microseconds as `468us`.
pub(super) fn time(us: f64) -> String {
    Nanos::from_micros_f64(us).to_string()
}

/// Formats a value of a quantity with its unit.
pub(super) fn show(of: Quantity, value: f64) -> String {
    match of {
        Quantity::Rate => rate(value),
        Quantity::P99Us => time(value),
    }
}

/// Formats a rate with three significant digits, or all digits before the point.
pub(super) fn rate(value: f64) -> String {
    let digits = match value {
        small if small < 10.0 => 2,
        small if small < 100.0 => 1,
        _ => 0,
    };
    format!("{value:.digits$}/s")
}

fn figures(found: &Predictability) -> String {
    let rows = [("throughput", &found.rate), ("p50", &found.p50_us), ("p99", &found.p99_us)];
    if rows.iter().all(|(_, figures)| figures.is_none()) {
        return String::new();
    }
    let mut text = format!(
        "\n{:<12} {:>10} {:>10} {:>8}  {:<22} {:<24} {}\n",
        "", "median", "mean", "varies", "95 % of rounds", "least", "greatest"
    );
    let rate_of: fn(f64) -> String = rate;
    for (name, figures) in rows {
        let Some(figures) = figures else { continue };
        let show = if name == "throughput" { rate_of } else { time };
        let _ = writeln!(text, "{}", figures_row(name, figures, show, found.resolution));
    }
    let hour = |name: &str, figures: &SeriesFigures, show: fn(f64) -> String, worst: bool| {
        let hour = if worst { figures.least_hour } else { figures.greatest_hour }?;
        let share = hour.of_median * 100.0;
        Some(format!(
            "{name:<17} {} on average, {share:.0} % of the median, from {}\n",
            show(hour.value),
            hour.begin.shown(found.resolution)
        ))
    };
    let worst = found.rate.as_ref().and_then(|figures| hour("worst hour", figures, rate_of, true));
    let slowest = found.p99_us.as_ref().and_then(|figures| hour("worst hour of p99", figures, time, false));
    text + &worst.unwrap_or_default() + &slowest.unwrap_or_default()
}

fn figures_row(name: &str, figures: &SeriesFigures, show: fn(f64) -> String, to: Resolution) -> String {
    let varies = figures.variation.map_or_else(|| "?".into(), |variation| format!("{:.1} %", variation * 100.0));
    let range = format!("{} to {}", show(figures.low), show(figures.high));
    let at = |value: f64, at: Moment| format!("{} {}", show(value), &at.shown(to)[5..]);
    format!(
        "{name:<12} {:>10} {:>10} {varies:>8}  {range:<22} {:<24} {}",
        show(figures.median),
        show(figures.mean),
        at(figures.least.value, figures.least.at),
        at(figures.greatest.value, figures.greatest.at)
    )
}

/// The median of finite values; `None` if there are none.
pub(super) fn middle(values: impl Iterator<Item = f64>) -> Option<f64> {
    median(&values.filter(|value| value.is_finite()).collect::<Vec<_>>())
}

/// The rounds over time: one row per day if there are several days, else one row per round or per few rounds.
fn timeline(rounds: &[Round], to: Resolution) -> String {
    let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else { return String::new() };
    let greatest = rounds.iter().filter_map(Round::counted_rate).fold(0.0, f64::max);
    if greatest <= 0.0 {
        return String::new();
    }
    if last.finish().since(first.begin) > DAYS_MIN * 86_400 {
        calendar(rounds, greatest)
    } else {
        bars(rounds, greatest, to)
    }
}

fn calendar(rounds: &[Round], greatest: f64) -> String {
    let mut text = format!(
        "\n{:<11} {:<24} {:>10} {:>10} {:>10}   median throughput by the hour, █ is {}\n",
        "day",
        "00    06    12    18",
        "median",
        "least",
        "p99, most",
        rate(greatest)
    );
    for day in rounds.chunk_by(|one, other| one.begin.day() == other.begin.day()) {
        let of_hour = |hour: u32| {
            let hourly = day.iter().filter(|round| round.begin.second_of_day() / 3600 == hour);
            let broken = hourly.clone().any(|round| matches!(round.end, RoundEnd::Broken(_)));
            match middle(hourly.filter_map(Round::counted_rate)) {
                Some(value) => level(value / greatest),
                None if broken => 'x',
                None => ' ',
            }
        };
        let line: String = (0..24).map(of_hour).collect();
        let or_none = |figure: Option<String>| figure.unwrap_or_else(|| "-".into());
        let _ = writeln!(
            text,
            "{:<11} {line} {:>10} {:>10} {:>10}",
            day[0].begin.date(),
            or_none(middle(day.iter().filter_map(Round::counted_rate)).map(rate)),
            or_none(day.iter().filter_map(Round::counted_rate).reduce(f64::min).map(rate)),
            or_none(day.iter().filter_map(|round| round.p99_us).reduce(f64::max).map(time)),
        );
    }
    text
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of eight levels")]
fn level(share: f64) -> char {
    LEVELS[((share.clamp(0.0, 1.0) * 8.0).ceil() as usize).clamp(1, 8) - 1]
}

fn bars(rounds: &[Round], greatest: f64, to: Resolution) -> String {
    let width = if to == Resolution::Seconds { 19 } else { 16 };
    let each = rounds.len().div_ceil(ROWS_MAX);
    let of = if each > 1 { format!("median of {each} rounds") } else { "a round".into() };
    let mut text = format!(
        "\n{:<width$} {:>10}  {:<40}  {:>10} {:>10}\n",
        "begun",
        "throughput",
        format!("{of} to a row, full width is {}", rate(greatest)),
        if each > 1 { "least" } else { "" },
        if rounds.iter().any(|round| round.p99_us.is_some()) { "p99, most" } else { "" }
    );
    for row in rounds.chunks(each) {
        let value = middle(row.iter().filter_map(Round::counted_rate));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the bar's columns")]
        let bar = value.map_or_else(
            || end_name(&row[0].end).to_string(),
            |value| "█".repeat(((value / greatest * BAR).round() as usize).max(1)),
        );
        let least = row.iter().filter_map(Round::counted_rate).reduce(f64::min).filter(|_| each > 1);
        let line = format!(
            "{:<width$} {:>10}  {bar:<40}  {:>10} {:>10}",
            row[0].begin.shown(to),
            value.map_or_else(|| "-".into(), rate),
            least.map_or_else(String::new, rate),
            row.iter().filter_map(|round| round.p99_us).reduce(f64::max).map_or_else(String::new, time)
        );
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

fn what_changed(found: &Predictability) -> String {
    let to = found.resolution;
    let mut lines: Vec<String> = found.changed_too_often.iter().map(|of| too_often(*of)).collect();
    lines.extend(found.episodes.iter().take(LIST_MAX).map(|slow| episode(slow, to)));
    lines.extend(found.changes.iter().take(LIST_MAX).map(|one| change(one, to)));
    lines.extend(found.trends.iter().map(|trend| {
        let percent = |factor: f64| format!("{:+.2} %", (factor - 1.0) * 100.0);
        format!(
            "{} {} a day [{}, {}], {} over the series",
            trend.of.name(),
            percent(trend.factor_per_day),
            percent(trend.interval.low),
            percent(trend.interval.high),
            percent(trend.factor)
        )
    }));
    lines.extend(found.daily.iter().map(daily));
    let left_out = found.episodes.len().saturating_sub(LIST_MAX) + found.changes.len().saturating_sub(LIST_MAX);
    if left_out > 0 {
        lines.push(format!("and {left_out} more, in the JSON report"));
    }
    if !found.outliers.is_empty() {
        let mut farthest: Vec<_> = found.outliers.iter().collect();
        farthest.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
        let one = |outlier: &&crate::analyse::Outlier| {
            format!("{} {} on {}", outlier.of.name(), show(outlier.of, outlier.value), outlier.at.shown(to))
        };
        let named: Vec<String> = farthest.iter().take(3).map(one).collect();
        let count = found.outliers.len();
        let stand = if count == 1 { "round stands" } else { "rounds stand" };
        lines.push(format!("{count} single {stand} out from those around: {}", named.join(", ")));
    }
    if lines.is_empty() {
        return String::new();
    }
    "\nwhat changed\n".to_string() + &lines.iter().map(|line| wrapped(line, 2)).collect::<String>()
}

/// Replaces the list of changes of a quantity that changed too often.
pub(super) fn too_often(of: Quantity) -> String {
    format!("{}: too many changes to tell apart, so none is told", of.name())
}

/// Describes a slowdown in a sentence.
pub(super) fn episode(slow: &Episode, to: Resolution) -> String {
    let end = slow.end.map_or("not back when the series ended".into(), |end| format!("back from {} on", end.shown(to)));
    format!(
        "slowdown: from {} on below {}, the usual rate being {}; worst {} ({:.0} % less) on {}; {end}; {} rounds; {}",
        slow.begin.shown(to),
        rate(slow.edge),
        rate(slow.usual),
        rate(slow.worst_rate),
        slow.lost() * 100.0,
        slow.worst.shown(to),
        slow.rounds,
        host(slow.host.as_deref())
    )
}

/// Describes a change in a sentence.
pub(super) fn change(change: &ChangePoint, to: Resolution) -> String {
    let percent = |factor: f64| format!("{:+.1} %", (factor - 1.0) * 100.0);
    let known = change
        .interval
        .map_or_else(String::new, |interval| format!(" [{}, {}]", percent(interval.low), percent(interval.high)));
    let until = change.until.map_or_else(String::new, |until| format!(" until {}, in several steps", until.shown(to)));
    format!(
        "{} {}{known} from {} on (round {}){until}; {}",
        change.of.name(),
        percent(change.factor),
        change.at.shown(to),
        change.round,
        host(change.host.as_deref())
    )
}

/// Describes what changed on the host.
pub(super) fn host(shifts: Option<&[HostShift]>) -> String {
    match shifts {
        None => "of the host nothing is known".into(),
        Some([]) => "nothing that the host shows changed with it".into(),
        Some(shifts) => shifts.iter().map(HostShift::sentence).collect::<Vec<_>>().join(", "),
    }
}

/// Describes a daily pattern in a sentence.
pub(super) fn daily(pattern: &DailyPattern) -> String {
    let percent = |factor: f64| format!("{:+.1} %", (factor - 1.0) * 100.0);
    format!(
        "{} follows the hour of the day: {} at about {:02}:00, {} at about {:02}:00",
        pattern.of.name(),
        percent(pattern.peak_factor),
        pattern.peak_hour,
        percent(pattern.trough_factor),
        pattern.trough_hour
    )
}

/// Formats a fraction in percent; 100 % is shown only if it is exact.
pub(super) fn share(value: f64) -> String {
    let shown = format!("{:.2}", value * 100.0);
    if shown == "100.00" && value < 1.0 { "99.99 %".into() } else { format!("{shown} %") }
}

fn objectives(found: &Predictability) -> String {
    if found.objectives.is_empty() {
        return String::new();
    }
    let mut text = format!(
        "\n{:<16} {:<7} {:>10} {:>8} {:>7} {:>7} {:>8} {:>12}  {}\n",
        "objective", "", "kept for", "asked", "rounds", "missed", "unknown", "budget used", "longest breach"
    );
    for result in &found.objectives {
        text.push_str(&objective(result, found.resolution));
    }
    text
}

fn objective(result: &ObjectiveResult, to: Resolution) -> String {
    let met = match result.met {
        Some(true) => "met",
        Some(false) => "missed",
        None => "?",
    };
    let breach = result.longest_breach.map_or_else(
        || "none".to_string(),
        |breach| format!("{} to {}", breach.begin.shown(to), &breach.end.shown(to)[5..]),
    );
    let used = result.budget_used.map_or_else(|| "-".into(), |used| format!("{:.0} %", used * 100.0));
    format!(
        "{:<16} {met:<7} {:>10} {:>8} {:>7} {:>7} {:>8} {used:>12}  {breach}\n",
        result.objective.to_string(),
        result.share_kept.map_or_else(|| "?".into(), share),
        share(result.share_asked),
        result.kept + result.missed,
        result.missed,
        result.unknown
    )
}

/// Describes rounds that are not complete.
pub(super) fn rounds(found: &Predictability) -> String {
    let mut lines: Vec<String> = found.cut.iter().map(|rounds| cut(rounds, found.resolution)).collect();
    let counts = &found.rounds;
    let mut count = |count: usize, one: &str, many: &str| {
        if count > 0 {
            lines.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    count(counts.broken, "round broke and has no figures", "rounds broke and have no figures");
    count(counts.stopped, "round was stopped and is left out", "rounds were stopped and are left out");
    count(counts.missing, "round did not take place", "rounds did not take place");
    count(counts.ahead, "planned round is not there", "planned rounds are not there");
    if counts.failed_operations > 0 {
        lines.push(format!("{} operations failed", counts.failed_operations));
    }
    if lines.is_empty() {
        return String::new();
    }
    "\nrounds\n".to_string() + &lines.iter().map(|line| wrapped(line, 2)).collect::<String>()
}

/// Describes the cut rounds in a sentence.
pub(super) fn cut(cut: &crate::analyse::CutRounds, to: Resolution) -> String {
    let (was, s) = if cut.rounds == 1 { ("was", "") } else { ("were", "s") };
    let limit = cut.limit_seconds.map_or_else(String::new, |seconds| format!(" of {seconds:.0} s"));
    let work = cut.work.map_or_else(String::new, |work| format!(", before their work of {work:.0} was done"));
    let when = format!("between {} and {}", cut.first.shown(to), cut.last.shown(to));
    let pieces = match cut.in_pieces {
        0 => String::new(),
        1 => "; 1 round stands in two lines, which are taken together".into(),
        count => format!("; {count} rounds stand in two lines each, which are taken together"),
    };
    let inferred = if cut.inferred { " (inferred: most rounds did the same work)" } else { "" };
    format!("{} of {} round{s} {was} cut by the time limit{limit}{work}, {when}{inferred}{pieces}", cut.rounds, cut.of)
}

/// Wraps text to 118 columns; further lines are indented by two more.
fn wrapped(text: &str, indent: usize) -> String {
    table::wrapped(&" ".repeat(indent), text, if indent == 0 { 0 } else { indent + 2 }, 118)
}

/// The JSON report of a soak. Fields are only added, never renamed or removed.
#[derive(Serialize)]
struct Report<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    conclusion: Conclusion,
    predictability: &'a Predictability,
    rounds: &'a [Round],
    findings: Vec<&'a Finding>,
}

/// The report as one JSON document.
#[must_use]
pub fn json(header: &Header, result: &SoakResult) -> String {
    let report = Report {
        head: Head::of(header),
        conclusion: result.conclusion(header),
        predictability: &result.found,
        rounds: &result.rounds,
        findings: header.findings.iter().chain(&result.findings).collect(),
    };
    data::document(&report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_two_lies_between_them() {
        assert_eq!(middle([3.0, 1.0].into_iter()), Some(2.0));
        assert_eq!(middle([9.0, 1.0, f64::NAN, 2.0].into_iter()), Some(2.0));
        assert_eq!(middle(std::iter::empty()), None);
    }
}
