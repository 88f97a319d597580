//! The verdict on a series, in a word and in a sentence.

use super::change_points::VALUES_MIN;
use super::predictability::{ChangePoint, Predictability, Quantity, Word};
use super::rounds::Round;
use super::series_figures::SeriesFigures;
use std::fmt::Write;

/// Variation beyond which rounds without a pattern are erratic.
const ERRATIC: f64 = 0.10;
/// Changes of the latency's tail that are left unsaid in the verdict: it is never as steady as the rate.
const TAIL: f64 = 0.10;

/// The verdict on what was found; `counting` are the rounds that have a rate.
pub(super) fn verdict(found: &Predictability, counting: &[&Round]) -> (Word, String) {
    let (Some(rate), Some(first), Some(last)) = (&found.rate, counting.first(), counting.last()) else {
        return (Word::TooFew, "Nothing was measured: no round has a rate.".into());
    };
    let seconds = last.finish().since(first.begin);
    let took = format!("{} round{} over {}", rate.rounds, plural(rate.rounds), duration(seconds as f64));
    if rate.rounds < VALUES_MIN {
        let text = format!("Too early to judge: {took}, and fewer than {VALUES_MIN} say little.");
        return (Word::TooFew, text + &missed(found));
    }
    let (word, text) = judged(found, rate, &took);
    (word, text + &missed(found))
}

fn judged(found: &Predictability, rate: &SeriesFigures, took: &str) -> (Word, String) {
    let within = within(rate);
    let worst = found.episodes.iter().max_by(|a, b| a.lost().total_cmp(&b.lost()));
    if let Some(worst) = worst {
        let others = match found.episodes.len() - 1 {
            0 => String::new(),
            1 => " It slowed down once more.".into(),
            more => format!(" It slowed down {more} more times."),
        };
        let end = worst.end.map_or("not back when the series ended".into(), |end| format!("back on {}", end.short()));
        return (
            Word::Slowed,
            format!(
                "Not predictable: throughput fell by {:.0} %, from {:.0} to {:.0} a second: slow from {}, worst on {}, {end}.\
             {others}",
                worst.lost() * 100.0,
                worst.usual,
                worst.worst_rate,
                worst.begin.short(),
                worst.worst.short(),
            ),
        );
    }
    if let Some(change) = greatest(found, Quantity::Rate, 0.0) {
        return (Word::Stepped, format!("Not predictable: {}.{}", sentence(change), more(found, Quantity::Rate)));
    }
    if let Some(trend) = found.trends.iter().find(|trend| trend.of == Quantity::Rate) {
        let way = if trend.factor < 1.0 { "falls" } else { "rises" };
        return (
            Word::Drifting,
            format!(
                "Not predictable: throughput {way} by {} a day, {} over {took}.",
                percent((trend.factor_per_day - 1.0).abs()),
                percent((trend.factor - 1.0).abs()),
            ),
        );
    }
    let tail = greatest(found, Quantity::P99Us, TAIL);
    let tail_text =
        tail.map_or_else(String::new, |change| format!(" But {}.{}", sentence(change), more(found, Quantity::P99Us)));
    if let Some(daily) = found.daily.iter().find(|daily| daily.of == Quantity::Rate) {
        let text = format!(
            "Predictable by the hour: throughput follows the day, {} at about {:02}:00 and {} at about {:02}:00; {took}.",
            signed(daily.peak_factor - 1.0),
            daily.peak_hour,
            signed(daily.trough_factor - 1.0),
            daily.trough_hour,
        );
        return (Word::Daily, text + &tail_text);
    }
    if rate.variation.is_some_and(|variation| variation > ERRATIC) {
        let text = format!("Not predictable: {took} differ without a pattern, 95 % of them {within} of the median.");
        return (Word::Erratic, text + &tail_text);
    }
    let word = if tail.is_some() { Word::Stepped } else { Word::Steady };
    let text = format!("Predictable in throughput: {took}, 95 % of them {within} of the median.");
    let text = if tail.is_some() { text } else { text.replace(" in throughput", "") };
    (word, text + &tail_text)
}

/// `within ±1.2 %`: of 95 % of rounds.
fn within(rate: &SeriesFigures) -> String {
    let share = (rate.high / rate.median - 1.0).max(1.0 - rate.low / rate.median);
    format!("within ±{}", percent(share))
}

fn greatest(found: &Predictability, of: Quantity, least: f64) -> Option<&ChangePoint> {
    let of_it = found.changes.iter().filter(|change| change.of == of && change.factor.ln().abs() >= least);
    of_it.max_by(|a, b| a.factor.ln().abs().total_cmp(&b.factor.ln().abs()))
}

fn more(found: &Predictability, of: Quantity) -> String {
    match found.changes.iter().filter(|change| change.of == of).count() {
        0 | 1 => String::new(),
        2 => " It changed once more.".into(),
        count => format!(" It changed {} more times.", count - 1),
    }
}

/// `throughput fell by 30.1 % on 2016-04-23 19:17`.
fn sentence(change: &ChangePoint) -> String {
    let way = if change.factor < 1.0 { "fell" } else { "rose" };
    let by = percent((change.factor - 1.0).abs());
    let when = match change.until {
        Some(until) => format!("from {} to {}", change.at.short(), until.short()),
        None => format!("on {}", change.at.short()),
    };
    format!("{} {way} by {by} {when}", change.of.name())
}

/// Objectives that were missed, in a sentence of their own.
fn missed(found: &Predictability) -> String {
    let mut text = String::new();
    for result in found.objectives.iter().filter(|result| result.met == Some(false)) {
        let kept = result.share_kept.unwrap_or(0.0);
        let _ = write!(
            text,
            " The objective {} was missed: kept for {} of the time, {} asked.",
            result.objective,
            share(kept),
            share(result.share_asked)
        );
    }
    text
}

/// A share in percent, never rounded up to all of it.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    let digits = [0, 1, 2, 3].into_iter().find(|digits| {
        let shown: f64 = format!("{percent:.digits$}").parse().unwrap_or(percent);
        (shown - percent).abs() < 0.05 && (shown < 100.0 || value >= 1.0)
    });
    format!("{percent:.*} %", digits.unwrap_or(3))
}

fn signed(value: f64) -> String {
    format!("{}{}", if value < 0.0 { "-" } else { "+" }, percent(value.abs()))
}

fn percent(value: f64) -> String {
    let digits = usize::from(value < 0.0995);
    format!("{:.digits$} %", value * 100.0)
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// `7 days`, `5.2 hours`, `40 minutes`.
fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        days if days >= 2.0 * 86_400.0 => (days / 86_400.0, "days"),
        hours if hours >= 7200.0 => (hours / 3600.0, "hours"),
        _ => (seconds / 60.0, "minutes"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}
