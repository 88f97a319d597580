//! What changed in a series of rounds: slowdowns, changes of level, trends, single rounds that stand out.

use super::super::columns::TableOf;
use super::figures::show;
use crate::document::{Block, Section, Unit};
use crate::parts::{self, Amount};
use rigel_analyse::{
    Episode, Estimate, HostShift, Limits, Outlier, Predictability, Quantity, SpreadChange,
};
use rigel_model::Resolution;

/// Maximum number of listed changes and slowdowns in text.
const LIST_MAX: usize = 12;

fn factor(value: f64, interval: Option<Limits>, unit: Unit) -> Amount {
    Amount::new(Estimate::new(value, interval), unit)
}

/// Slowdowns, changes of level, trends and single rounds that stand out, each with its date and
/// size.
pub(super) fn what_changed(result: &Predictability) -> Option<Section> {
    let to = result.resolution;
    let too_often = result.changed_too_often.iter().map(|of| too_often(*of));
    let episodes = result
        .episodes
        .iter()
        .take(LIST_MAX)
        .map(|slow| episode(slow, to));
    let sentence = |text: String| Block::Text(parts::capital(&text) + ".");
    let mut blocks: Vec<Block> = too_often.chain(episodes).map(sentence).collect();
    if !result.changes.is_empty() {
        let changes = TableOf::of("Changes of level", result.changes.iter().take(LIST_MAX))
            .text("when", |change| {
                let until = change.until.map_or_else(String::new, |until| {
                    format!(" to {}, in steps", until.shown(to))
                });
                format!("{}{until}, round {}", change.at.shown(to), change.round)
            })
            .text("what", |change| change.of.name())
            .number("change", |change| parts::change(change.factor))
            .number("95 % interval", |change| {
                let interval = change.interval.map(Limits::from);
                let range = |_| factor(change.factor, interval, Unit::Change).range();
                interval.map_or_else(String::new, range)
            })
            .and_if(
                result.changes.iter().any(|change| change.host.is_some()),
                |table| table.text("host", |change| host(change.host.as_deref())),
            );
        blocks.push(changes.block());
    }
    blocks.extend(result.trends.iter().map(|trend| {
        let fine = |value, interval| factor(value, interval, Unit::FineChange);
        let daily = fine(trend.factor_per_day, Some(trend.interval.into()));
        let daily = if trend.lasts_a_day() {
            format!(" {daily} per day ({}),", daily.range())
        } else {
            String::new()
        };
        let whole = fine(trend.factor, None);
        sentence(format!(
            "{}{daily} {whole} over the series",
            trend.of.name()
        ))
    }));
    let spreads = result.spread_changes.iter().take(LIST_MAX);
    blocks.extend(spreads.map(|change| sentence(spread(change, to))));
    let left_out = result.episodes.len().saturating_sub(LIST_MAX)
        + result.changes.len().saturating_sub(LIST_MAX);
    if left_out > 0 {
        blocks.push(sentence(format!("{left_out} more are in the JSON report")));
    }
    blocks.extend(outliers(result).map(sentence));
    let lead = "Each with its date and size, and what the host showed at that time.";
    (!blocks.is_empty()).then(|| parts::section("changes", "What changed", lead, blocks))
}

/// Describes a change of the spread of rounds.
fn spread(change: &SpreadChange, to: Resolution) -> String {
    format!(
        "{} differed by up to {} between rounds before {}, round {}, and by up to {} after it (95 % \
         of the rounds)",
        change.of.name(),
        parts::percent(change.before),
        change.at.shown(to),
        change.round,
        parts::percent(change.after)
    )
}

/// Names the single rounds that differ most from their neighbours.
fn outliers(result: &Predictability) -> Option<String> {
    let mut farthest: Vec<&Outlier> = result.outliers.iter().collect();
    farthest.sort_by(|a, b| b.factor.ln().abs().total_cmp(&a.factor.ln().abs()));
    let sentence = |outlier: &&Outlier| {
        let value = show(outlier.of, outlier.value);
        format!(
            "{} {value} on {}",
            outlier.of.name(),
            outlier.at.shown(result.resolution)
        )
    };
    let named: Vec<String> = farthest.iter().take(3).map(sentence).collect();
    let (count, differs) = (
        farthest.len(),
        if farthest.len() == 1 {
            "round differs"
        } else {
            "rounds differ"
        },
    );
    (count > 0).then(|| {
        format!(
            "{count} single {differs} from their neighbours: {}",
            named.join(", ")
        )
    })
}

/// Replaces the list of changes of a quantity that changed too often.
fn too_often(of: Quantity) -> String {
    format!(
        "{}: too many changes to tell apart, so none is listed",
        of.name()
    )
}

/// Describes a slowdown in a sentence.
fn episode(slow: &Episode, to: Resolution) -> String {
    let end = slow
        .end
        .map_or("not over when the series ended".into(), |end| {
            format!("over from {} on", end.shown(to))
        });
    let host = match host(slow.host.as_deref()) {
        unknown if unknown.is_empty() => unknown,
        known => format!("; {known}"),
    };
    format!(
        "slowdown: from {} on below {}, usually {}; worst {} ({} lower) on {}; {end}; {} \
         rounds{host}",
        slow.begin.shown(to),
        parts::per_second(slow.edge),
        parts::per_second(slow.usual),
        parts::per_second(slow.worst_rate),
        parts::rounded_percent(slow.lost()),
        slow.worst.shown(to),
        slow.rounds,
    )
}

/// Describes what changed on the host; empty if nothing is known of it, as of another tool's figures.
fn host(shifts: Option<&[HostShift]>) -> String {
    match shifts {
        None => String::new(),
        Some([]) => "no counter of the host changed with it".into(),
        Some(shifts) => {
            let each: Vec<String> = shifts.iter().map(HostShift::sentence).collect();
            each.join(", ")
        }
    }
}
