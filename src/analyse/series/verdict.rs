//! The verdict on a series, as a word and a sentence.

use super::change_points::VALUES_MIN;
use super::episodes::Episode;
use super::rounds::Round;
use super::series_figures::SeriesFigures;
use super::types::{ChangePoint, DailyPattern, Predictability, Quantity, RoundCounts, SeriesClass};
use crate::analyse::figures::quantity::{count, rounded_percent as percent};
use crate::model::{Nanos, Resolution};
use std::fmt::Write;

/// Rounds without a pattern are erratic above this variation.
const ERRATIC: f64 = 0.10;
/// Smallest change of p99 that the verdict mentions: a tail is never as steady as the rate.
const TAIL: f64 = 0.10;
/// Rounds without a pattern are erratic above this deviation of the p99's logarithm.
const ERRATIC_TAIL: f64 = 0.25;

/// Fraction of rounds without figures above which the verdict begins with them.
const WITHOUT_FIGURES: f64 = 0.01;
/// Fraction of failed operations from which on it is shown in percent.
const FAILED_SHARE: f64 = 0.001;

/// Problems so frequent that the verdict begins with them; `counting` are the rounds with a rate.
pub(super) fn troubles(rounds: &[Round], counting: &[&Round], counts: &RoundCounts) -> Vec<String> {
    let mut troubles = Vec::new();
    let due = rounds.len() + counts.missing;
    let of = |count: usize| format!("{count} of {due} round{}", plural(due));
    if (counts.broken + counts.missing) as f64 > WITHOUT_FIGURES * due as f64 {
        if counts.broken > 0 {
            troubles.push(format!("{} could not be measured.", of(counts.broken)));
        }
        if counts.missing > 0 {
            troubles.push(format!("{} did not take place.", of(counts.missing)));
        }
    }
    if counts.failed_operations > 0 {
        let done: f64 = rounds
            .iter()
            .map(|round| round.done)
            .filter(|done| done.is_finite())
            .sum();
        let failed = counts.failed_operations as f64;
        let failed_share = failed / (done + failed);
        troubles.push(if failed_share >= FAILED_SHARE {
            format!("{} of operations failed.", share(failed_share))
        } else {
            format!("{failed} of {:.0} operations failed.", done + failed)
        });
    }
    let idle = counting
        .iter()
        .filter(|round| round.rate.is_some_and(|rate| rate <= 0.0))
        .count();
    if idle > 0 {
        troubles.push(format!(
            "In {idle} of {} measured round{} no operation completed.",
            counting.len(),
            plural(counting.len())
        ));
    }
    troubles
}

/// The verdict on an analysis; `counting` are the rounds with a rate.
pub(super) fn verdict(found: &Predictability, counting: &[&Round]) -> (SeriesClass, String) {
    let (Some(rate), Some(first), Some(last)) = (&found.rate, counting.first(), counting.last())
    else {
        let (word, nothing) = (
            SeriesClass::TooFew,
            "Nothing was measured: no round has a rate.".into(),
        );
        return (
            word_of(found, word),
            told_first(found, nothing) + &missed(found),
        );
    };
    let seconds = last.finish().since(first.begin);
    let took = format!(
        "{} round{} over {}",
        rate.rounds,
        plural(rate.rounds),
        duration(seconds as f64)
    );
    if rate.rounds < VALUES_MIN {
        let text = format!("Too early to judge: {took}, fewer than the minimum of {VALUES_MIN}.");
        return (
            word_of(found, SeriesClass::TooFew),
            told_first(found, text) + &missed(found),
        );
    }
    let (word, text) = judged(found, &took);
    (
        word_of(found, word),
        told_first(found, text) + &missed(found),
    )
}

/// Replaces a good word, or "too few", by "failing" if there are troubles.
fn word_of(found: &Predictability, word: SeriesClass) -> SeriesClass {
    match word {
        SeriesClass::Steady | SeriesClass::Daily | SeriesClass::TooFew
            if !found.troubles.is_empty() =>
        {
            SeriesClass::Failing
        }
        word => word,
    }
}

/// Prepends the troubles to the text.
fn told_first(found: &Predictability, text: String) -> String {
    if found.troubles.is_empty() {
        text
    } else {
        format!("{} {text}", found.troubles.join(" "))
    }
}

fn judged(found: &Predictability, took: &str) -> (SeriesClass, String) {
    let worst = found
        .episodes
        .iter()
        .max_by(|a, b| a.lost().total_cmp(&b.lost()));
    if let Some(worst) = worst {
        return (
            SeriesClass::Slowed,
            slowed(worst, found.episodes.len() - 1, found.resolution),
        );
    }
    let main = found.judged_by;
    let other = if main == Quantity::Rate {
        Quantity::P99Us
    } else {
        Quantity::Rate
    };
    let shape_of_main = shape(found, main);
    let is_daily = |shape: &Option<Deviation>| {
        shape
            .as_ref()
            .is_some_and(|shape| shape.word == SeriesClass::Daily)
    };
    // If both follow the day, one sentence is enough.
    let but = shape(found, other)
        .filter(|but| but.word != SeriesClass::Daily || !is_daily(&shape_of_main));
    let but_text = but
        .as_ref()
        .map_or_else(String::new, |but| format!(" But {}", but.text));
    let untroubled = |text: &'static str| {
        if found.troubles.is_empty() {
            text
        } else {
            "Among the measured rounds"
        }
    };
    let figures = figures(found, main);
    let of_main = if main == Quantity::Rate {
        ""
    } else {
        "p99 of "
    };
    let within = figures.map_or_else(String::new, |figures| {
        format!("{of_main}{}", within(main, figures))
    });
    match shape_of_main {
        Some(Deviation {
            word: SeriesClass::Daily,
            text,
        }) => {
            let text = text.trim_end_matches('.');
            (
                SeriesClass::Daily,
                format!(
                    "{}: {text}; {took}.{but_text}",
                    untroubled("Predictable by the hour")
                ),
            )
        }
        Some(Deviation {
            word: SeriesClass::Erratic,
            ..
        }) => (
            SeriesClass::Erratic,
            format!("Not predictable: {took} differ without a pattern, {within}.{but_text}"),
        ),
        Some(Deviation {
            word: SeriesClass::Drifting,
            text,
        }) => {
            let text = text.trim_end_matches(" in total.");
            (
                SeriesClass::Drifting,
                format!("Not predictable: {text} over {took}."),
            )
        }
        Some(Deviation { word, text }) => (word, format!("Not predictable: {text}")),
        None => {
            let opening = untroubled(match (main, but.is_some()) {
                (Quantity::Rate, false) => "Predictable",
                (Quantity::Rate, true) => "Predictable in throughput",
                (Quantity::P99Us, _) => "Predictable in response time",
            });
            let word = but.map_or(SeriesClass::Steady, |but| but.word);
            (word, format!("{opening}: {took}, {within}.{but_text}"))
        }
    }
}

/// Describes the worst slowdown, and the number of others.
fn slowed(worst: &Episode, others: usize, resolution: Resolution) -> String {
    let others = match others {
        0 => String::new(),
        1 => " It slowed down once more.".into(),
        more => format!(" It slowed down {more} more times."),
    };
    let end = worst
        .end
        .map_or("not recovered when the series ended".into(), |end| {
            format!("recovered on {}", end.shown(resolution))
        });
    format!(
        "Not predictable: throughput fell by {}, from {} to {} per second: slow from \
         {}, worst on {}, {end}.{others}",
        percent(worst.lost()),
        count(worst.usual.round()),
        count(worst.worst_rate.round()),
        worst.begin.shown(resolution),
        worst.worst.shown(resolution),
    )
}

/// A quantity's deviation from a constant level, as a clause that begins with its name.
struct Deviation {
    word: SeriesClass,
    text: String,
}

/// The shape of a quantity that is worth reporting; `None` if it held its level.
fn shape(found: &Predictability, of: Quantity) -> Option<Deviation> {
    let figures = figures(found, of)?;
    let least = if of == Quantity::Rate { 0.0 } else { TAIL };
    if found.changed_too_often.contains(&of) && figures.high.ln() - figures.low.ln() >= least {
        let text = format!(
            "{} changed too often to tell the changes apart, {}.",
            of.name(),
            within(of, figures)
        );
        return Some(Deviation {
            word: SeriesClass::Stepped,
            text,
        });
    }
    if let Some(change) = greatest(found, of, least) {
        return Some(Deviation {
            word: SeriesClass::Stepped,
            text: format!("{}.{}", sentence(change, found.resolution), more(found, of)),
        });
    }
    if let Some(trend) = found
        .trends
        .iter()
        .find(|trend| trend.of == of && trend.factor.ln().abs() >= least)
    {
        let way = if trend.factor < 1.0 { "falls" } else { "rises" };
        let (a_day, whole) = (
            percent((trend.factor_per_day - 1.0).abs()),
            percent((trend.factor - 1.0).abs()),
        );
        let text = format!("{} {way} by {a_day} per day, {whole} in total.", of.name());
        return Some(Deviation {
            word: SeriesClass::Drifting,
            text,
        });
    }
    let swing = |daily: &DailyPattern| daily.peak_factor.ln().max(-daily.trough_factor.ln());
    if let Some(daily) = found
        .daily
        .iter()
        .find(|daily| daily.of == of && swing(daily) >= least)
    {
        let text = format!(
            "{} follows a daily pattern, {} at about {:02}:00 and {} at about {:02}:00.",
            of.name(),
            signed(daily.peak_factor - 1.0),
            daily.peak_hour,
            signed(daily.trough_factor - 1.0),
            daily.trough_hour,
        );
        return Some(Deviation {
            word: SeriesClass::Daily,
            text,
        });
    }
    let is_erratic = match of {
        Quantity::Rate => figures
            .variation
            .is_some_and(|variation| variation > ERRATIC),
        // By the range of most rounds: a single stall says nothing about the others.
        Quantity::P99Us => (figures.high / figures.low).ln() > 2.0 * 1.96 * ERRATIC_TAIL,
    };
    let text = || {
        format!(
            "{} differs from round to round without a pattern, {}.",
            of.name(),
            within(of, figures)
        )
    };
    is_erratic.then(|| Deviation {
        word: SeriesClass::Erratic,
        text: text(),
    })
}

fn figures(found: &Predictability, of: Quantity) -> Option<&SeriesFigures> {
    match of {
        Quantity::Rate => found.rate.as_ref(),
        Quantity::P99Us => found.p99_us.as_ref(),
    }
}

/// The range of most rounds: `95 % of them within ±1.2 % of the median`, `95 % of them between 6ms
/// and 7.2ms`.
fn within(of: Quantity, figures: &SeriesFigures) -> String {
    let SeriesFigures {
        median, low, high, ..
    } = *figures;
    if of == Quantity::P99Us {
        let time = Nanos::from_micros_f64;
        return format!("95 % of them between {} and {}", time(low), time(high));
    }
    // A median of 0 has no relative range.
    if median <= 0.0 {
        return format!(
            "95 % of them between {} and {} per second, with a median of 0",
            count(low.round()),
            count(high.round())
        );
    }
    let share = (high / median - 1.0).max(1.0 - low / median);
    format!("95 % of them within ±{} of the median", percent(share))
}

fn greatest(found: &Predictability, of: Quantity, least: f64) -> Option<&ChangePoint> {
    let of_it = found
        .changes
        .iter()
        .filter(|change| change.of == of && change.factor.ln().abs() >= least);
    of_it.max_by(|a, b| a.factor.ln().abs().total_cmp(&b.factor.ln().abs()))
}

fn more(found: &Predictability, of: Quantity) -> String {
    match found
        .changes
        .iter()
        .filter(|change| change.of == of)
        .count()
    {
        0 | 1 => String::new(),
        2 => " It changed once more.".into(),
        count => format!(" It changed {} more times.", count - 1),
    }
}

/// `throughput fell by 30.1 % on 2016-04-23 19:17`.
fn sentence(change: &ChangePoint, resolution: Resolution) -> String {
    let way = if change.factor < 1.0 { "fell" } else { "rose" };
    let by = percent((change.factor - 1.0).abs());
    let when = match change.until {
        Some(until) => format!(
            "from {} to {}",
            change.at.shown(resolution),
            until.shown(resolution)
        ),
        None => format!("on {}", change.at.shown(resolution)),
    };
    format!("{} {way} by {by} {when}", change.of.name())
}

/// A sentence for each missed objective.
fn missed(found: &Predictability) -> String {
    let mut text = String::new();
    for result in found
        .objectives
        .iter()
        .filter(|result| result.met == Some(false))
    {
        let kept = result.share_kept.unwrap_or(0.0);
        let _ = write!(
            text,
            " The objective {} was missed: met for {} of the time, the target is {}.",
            result.objective,
            share(kept),
            share(result.share_asked)
        );
    }
    text
}

/// Formats a fraction in percent, never rounded up to 100 %.
fn share(value: f64) -> String {
    let percent = value * 100.0;
    let digits = [0, 1, 2, 3].into_iter().find(|digits| {
        let shown: f64 = format!("{percent:.digits$}").parse().unwrap_or(percent);
        (shown - percent).abs() < 0.05 && (shown < 100.0 || value >= 1.0)
    });
    format!("{percent:.*} %", digits.unwrap_or(3))
}

fn signed(value: f64) -> String {
    format!(
        "{}{}",
        if value < 0.0 { "-" } else { "+" },
        percent(value.abs())
    )
}

fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

/// `7 days`, `5.2 hours`, `40 minutes`, `90 seconds`.
fn duration(seconds: f64) -> String {
    let (value, unit) = match seconds {
        days if days >= 2.0 * 86_400.0 => (days / 86_400.0, "days"),
        hours if hours >= 7200.0 => (hours / 3600.0, "hours"),
        minutes if minutes >= 120.0 => (minutes / 60.0, "minutes"),
        seconds => (seconds, "seconds"),
    };
    let text = format!("{value:.1}");
    format!("{} {unit}", text.strip_suffix(".0").unwrap_or(&text))
}
