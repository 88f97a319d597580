//! One host with a fixed rate beside the others, in the section of the hosts.

use super::columns::TableOf;
use super::document::{Axis, Block, Chart, Lines, Plot, Series, Table, Unit};
use super::parts;
use rigel_analyse::{Neighbours, NeighboursStep};

/// The sentence, the chart and the table.
pub(super) fn blocks(neighbours: &Neighbours) -> Vec<Block> {
    let mut blocks = vec![Block::Text(answer(neighbours))];
    blocks.extend(parts::beside([chart(neighbours)]));
    blocks.push(Block::Table(table(neighbours)));
    blocks
}

/// What the neighbours do to the host.
fn answer(neighbours: &Neighbours) -> String {
    let (host, rate) = (
        &neighbours.host,
        parts::per_second(neighbours.rate_per_s as f64),
    );
    let p99 = |step: &NeighboursStep| step.p99_us.map(|p99| parts::time(p99.value));
    let Some(alone) = neighbours.alone().and_then(p99) else {
        return format!("{host} offered {rate}, and its response time alone is not known.");
    };
    let beside = neighbours.fullest().and_then(|step| {
        let (sum, depth) = (sum(step), step.depth);
        Some(format!(
            ", {} while they did {sum}, each at depth {depth}",
            p99(step)?
        ))
    });
    format!(
        "{host} offered {rate} beside the other hosts: p99 {alone} while they waited{}. {}{}",
        beside.unwrap_or_default(),
        disturbed(neighbours),
        missed(neighbours)
    )
}

/// From which load on the neighbours certainly raise the host's p99.
fn disturbed(neighbours: &Neighbours) -> String {
    let alone = neighbours
        .alone()
        .and_then(|step| step.p99_us?.interval?.high);
    match (neighbours.disturbed_from(), alone) {
        (Some(step), _) => format!("They raise it, from {} on at the latest.", sum(step)),
        (None, Some(_)) => "That they raise it is not shown.".into(),
        (None, None) => "Too little was measured to say whether they raise it.".into(),
    }
}

/// That not all of the offered operations were served.
fn missed(neighbours: &Neighbours) -> String {
    let mut steps = neighbours.steps.iter();
    let missed = steps.find_map(|step| {
        let served = step.served.filter(|served| *served < LEAST_SERVED)?;
        Some((step.depth, served))
    });
    missed.map_or_else(String::new, |(depth, served)| {
        format!(
            " Beside depth {depth} on each, only {} of what it offered was served.",
            parts::percent(served)
        )
    })
}

/// The operations per second of all neighbours together.
fn sum(step: &NeighboursStep) -> String {
    parts::per_second(step.neighbours.map_or(0.0, |sum| sum.value))
}

/// The share of the offered operations below which the answer says that they were not served.
const LEAST_SERVED: f64 = 0.98;

fn table(neighbours: &Neighbours) -> Table {
    let rounds = match neighbours.rounds {
        1 => "one round".to_string(),
        count => format!("{count} rounds in turn"),
    };
    let caption = format!(
        "{} with {} offered, beside its neighbours, {rounds}",
        neighbours.host,
        parts::per_second(neighbours.rate_per_s as f64)
    );
    TableOf::of(&caption, &neighbours.steps)
        .number("depth of each neighbour", |step| match step.depth {
            0 => "they wait".into(),
            depth => depth.to_string(),
        })
        .count("op/s of neighbours", |step| {
            step.neighbours.map(|sum| sum.value)
        })
        .count("op/s served", |step| step.iops.value)
        .time("p50 (95 % interval)", |step| step.p50_us)
        .time("p99 (95 % interval)", |step| step.p99_us)
        .number("of p99 alone", |step| {
            parts::known(step.p99_ratio, |ratio| format!("x {}", parts::count(ratio)))
        })
        .table()
}

fn chart(found: &Neighbours) -> Option<Chart> {
    let steps = || found.steps.iter().filter(|step| step.p99_us.is_some());
    if steps().count() < 2 {
        return None;
    }
    let x: Vec<f64> = steps()
        .map(|step| step.neighbours.map_or(0.0, |sum| sum.value))
        .collect();
    let most = x.iter().copied().fold(0.0, f64::max);
    let p99 = Series {
        name: format!("p99 of {}", found.host),
        y: steps()
            .map(|step| step.p99_us.map(|p99| p99.value))
            .collect(),
        band: steps()
            .map(|step| step.p99_us.and_then(|p99| p99.interval))
            .collect(),
        labels: steps()
            .map(|step| match step.depth {
                0 => "neighbours wait".into(),
                depth => format!("depth {depth} on each neighbour"),
            })
            .collect(),
        x: x.clone(),
        ..Series::default()
    };
    let p50 = Series {
        name: format!("p50 of {}", found.host),
        y: steps()
            .map(|step| step.p50_us.map(|p50| p50.value))
            .collect(),
        x,
        ..Series::default()
    };
    let described: Vec<String> = steps()
        .filter_map(|step| {
            let p99 = parts::time(step.p99_us?.value);
            Some(format!("{p99} beside {}", sum(step)))
        })
        .collect();
    let lines = Lines {
        x: Axis {
            label: "operations per second of the neighbours".into(),
            unit: Unit::PerSecond,
            range: Some((0.0, most)),
            ..Axis::default()
        },
        y: Axis {
            label: format!("response time of {}", found.host),
            unit: Unit::Microseconds,
            ..Axis::default()
        },
        series: vec![p99, p50],
        ..Lines::default()
    };
    Some(parts::chart(
        "hosts-neighbours",
        &format!("Response time of {} beside its neighbours", found.host),
        format!("p99: {}.", described.join(", ")),
        Plot::Lines(lines),
    ))
}
