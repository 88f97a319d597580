//! The section of a run with several ranks: the sum and who contributed it, the ladder over numbers
//! of hosts, each host alone against all, and how far the figures can be trusted.

use super::columns::TableOf;
use super::csv::CsvTable;
use super::data::{high, low, value};
use super::document::{Axis, Block, Chart, Lines, Plot, Section, Series, Shape, Table, Unit};
use super::parts;
use super::parts::NOT_KNOWN;
use rigel_analyse::{
    self as analyse, AloneFigures, Estimate, HostFigures, HostRounds, HostsAtLoad, LadderGrowth,
    RanksResult,
};
use rigel_model::record::RankLost;
use rigel_model::record::journal::Run;
use rigel_model::{Bytes, Error, usage};
use std::fmt::Write;

/// Maximum number of hosts in the table of a summary.
const SHOWN_MAX: usize = 16;

/// What no figure can show.
pub(super) const NOT_ASKED: &str =
    "Hosts that are not in this run are not asked what they do to the storage.";

/// The section.
pub(super) fn section(result: &RanksResult) -> Section {
    let counts = (result.ranks, result.hosts);
    let mut blocks = vec![Block::Text(counted(counts, &result.names, &result.lost))];
    if let Some(at) = &result.at_load {
        blocks.push(Block::Text(sum(at)));
        blocks.push(Block::Table(hosts(at)));
        blocks.extend(fairness(at).map(Block::Text));
    }
    if let Some(rounds) = &result.rounds {
        blocks.extend(parts::beside([ladder_chart(rounds), alone_chart(rounds)]));
        blocks.push(Block::Table(ladder(rounds)));
        // At a lower depth fewer hosts may not fill what the storage can do.
        blocks.extend(result.fullest_rounds.as_ref().map(ladder).map(Block::Table));
        let fullest = result.fullest_rounds.as_ref().unwrap_or(rounds);
        blocks.extend(where_it_ends(fullest, result.hosts).map(Block::Text));
        blocks.push(Block::Table(alone(rounds)));
        blocks.extend(scaling(rounds).map(Block::Text));
    }
    if let Some(neighbours) = &result.neighbours {
        blocks.extend(super::neighbours::blocks(neighbours));
    }
    blocks.extend(honesty(result).into_iter().map(Block::Text));
    let lead = lead(result.is_separate);
    parts::section("hosts", "The hosts", lead, blocks)
}

/// What the figures of a report are of.
pub(super) fn lead(is_separate: bool) -> &'static str {
    if is_separate {
        "The hosts have storage of their own: figures of all of them stand side by side, and their \
         sum is not the rate of one storage."
    } else {
        "All figures of this report are of all ranks together: counts and histograms are added, \
         window by window, over the time in which all of them measured."
    }
}

/// The exit status of a run of several ranks that did not end well: what the launcher returned is no
/// proof.
pub(super) fn end(run: &Run) -> Option<Section> {
    let group = run.header.ranks.as_deref()?;
    let lost = run.ranks.lost.last();
    let status = run.ended.as_ref()?.status;
    let text = match (status, lost) {
        (0, _) => return None,
        (_, Some(lost)) => format!(
            "The run ended with exit status {status}, because {} was lost: {}. What is complete is \
             in this report; --resume continues it with {} ranks.",
            group.label(lost.rank),
            lost.how,
            group.size()
        ),
        (_, None) => {
            let why = match status {
                1 => ": it is incomplete, or operations failed",
                3 => ": what was asked for was not met",
                4 => ": what was measured does not decide",
                _ => "",
            };
            format!("The run ended with exit status {status} of all ranks{why}.")
        }
    };
    let blocks = vec![Block::Text(text)];
    Some(parts::section("end", "How the run ended", "", blocks))
}

/// How many ranks and hosts there were, their names, and those that were lost.
pub(super) fn counted(
    (ranks, hosts): (usize, usize),
    names: &[String],
    lost: &[RankLost],
) -> String {
    let hosts = if hosts == 1 {
        "one host".to_string()
    } else {
        format!("{hosts} hosts")
    };
    let names = match names {
        [first, .., end] if names.len() > SHOWN_MAX => format!("{first} to {end}"),
        _ => names.join(", "),
    };
    let mut text = String::new();
    for one in lost {
        let _ = write!(
            text,
            " Rank {} on {} was lost at {}: {}.",
            one.rank, one.host, one.coordinates, one.how
        );
    }
    format!("{ranks} ranks on {hosts}: {names}.{text}")
}

/// The sum at the load at which hosts are compared, and the worst host's tail.
fn sum(at: &HostsAtLoad) -> String {
    let mut text = format!(
        "At {}: {} operations/s ({}) together",
        at.load(),
        parts::count(at.sum.value),
        parts::plus_minus(at.sum)
    );
    if let Some(p99) = at.p99_us {
        let _ = write!(text, "; p99 of all operations {}", parts::time(p99.value));
    }
    let worst = at.worst().and_then(|host| Some((host, host.p99_us?)));
    if let Some((host, p99)) = worst {
        let _ = write!(
            text,
            ", of the worst host, {}, {}: what waits for every host waits for that",
            host.host,
            parts::time(p99.value)
        );
    }
    text + "."
}

/// A host that completed more than this share of what was due has completed it: the last operations
/// end after the measurement.
const ALL_SERVED: f64 = 0.995;

/// A row for each host: of many, the slowest.
fn hosts(at: &HostsAtLoad) -> Table {
    let caption = format!("Each host, {}", at.load());
    let mut shown: Vec<&HostFigures> = at.hosts.iter().collect();
    let all = shown.len();
    if all > SHOWN_MAX {
        shown.sort_by(|one, other| one.iops.value.total_cmp(&other.iops.value));
        shown.truncate(SHOWN_MAX);
    }
    let caption = if all > SHOWN_MAX {
        format!("{caption}: the {SHOWN_MAX} of {all} with the lowest rates")
    } else {
        caption
    };
    with_figures(TableOf::of(&caption, shown), |host| host)
}

/// A table whose rows have a host's figures, with their columns.
fn with_figures<R>(table: TableOf<R>, host: impl Fn(&R) -> &HostFigures) -> Table {
    table
        .text("host", |row| host(row).host.clone())
        .count("op/s", |row| host(row).iops.value)
        .precision("± (95 %)", |row| host(row).iops)
        .percent("share", |row| host(row).share)
        .time("p50", |row| value(host(row).p50_us))
        .time("p99 (95 % interval)", |row| host(row).p99_us)
        .time("p99.9", |row| value(host(row).p999_us))
        .on_page()
        .time("CPU per op", |row| host(row).cpu_us_per_io)
        .on_page()
        .text("", |row| if host(row).is_slow { "slow" } else { "" })
        .table()
}

/// How equally the hosts were served.
fn fairness(at: &HostsAtLoad) -> Option<String> {
    let (least, most) = at.extremes()?;
    let ends = if let Some((low, high)) = least.served.zip(most.served) {
        served((least, low), (most, high))
    } else {
        format!(
            "least {} ({}), most {} ({})",
            least.host,
            parts::count(least.iops.value),
            most.host,
            parts::count(most.iops.value)
        )
    };
    if let Some(jain) = at.jain {
        return Some(format!(
            "Fairness: {jain:.3} by Jain's index, where 1 is equal rates and {:.3} is one host \
             with everything; {ends}.",
            1.0 / at.hosts.len() as f64
        ));
    }
    let ratio = at.p99_worst_to_median?;
    Some(format!(
        "Fairness: the worst host's p99 is {} times the median of the hosts' p99; {ends}.",
        parts::count(ratio)
    ))
}

/// Who completed how much of what was due on it: rates say nothing, as each host may be asked for
/// another.
fn served((least, low): (&HostFigures, f64), (most, high): (&HostFigures, f64)) -> String {
    if low > ALL_SERVED {
        return "every host completed what was due on it".into();
    }
    format!(
        "of what was due on it, {} completed least ({}), {} most ({})",
        least.host,
        parts::percent(low),
        most.host,
        parts::percent(high)
    )
}

fn of_each(rounds: &HostRounds) -> String {
    match rounds.rate_per_s {
        Some(rate) => format!("{} offered by each", parts::per_second(rate as f64)),
        None => format!("depth {} on each", rounds.depth),
    }
}

fn ladder(rounds: &HostRounds) -> Table {
    let caption = format!("More and more ranks, {}", of_each(rounds));
    TableOf::of(&caption, &rounds.ladder)
        .number("ranks", |step| step.ranks)
        .count("op/s together", |step| step.sum.value)
        .precision("± (95 %)", |step| step.sum)
        .time("p99 (95 % interval)", |step| step.p99_us)
        .percent("each, of one alone", |step| step.efficiency)
        .table()
}

/// Where the sum stops growing with the hosts.
fn where_it_ends(rounds: &HostRounds, hosts: usize) -> Option<String> {
    let (first, last) = (rounds.ladder.first()?, rounds.ladder.last()?);
    if rounds.ladder.len() < 2 || rounds.rate_per_s.is_some() {
        return None;
    }
    let steps: Vec<String> = rounds
        .ladder
        .iter()
        .map(|step| format!("{} with {}", parts::count(step.sum.value), step.ranks))
        .collect();
    let steps = steps.join(", ");
    if hosts == 1 {
        return Some(format!(
            "{steps}: all ranks ran on one host, whose own limit may be what they share."
        ));
    }
    Some(match (rounds.growth(), rounds.hosts_that_fill()) {
        (LadderGrowth::Level, Some(fill)) => format!(
            "{steps}: the sum stops growing. The rate of {} like the first fills the storage at {}, \
             if the hosts were not busy themselves.",
            match parts::count(fill) {
                one if one == "1" => "1 rank".to_string(),
                more => format!("{more} ranks"),
            },
            of_each(rounds)
        ),
        (LadderGrowth::Level, None) => format!("{steps}: the sum does not grow with the hosts."),
        (LadderGrowth::Grows, _) => format!(
            "{steps}: the sum still grew from {} to {} ranks; the storage may do more for more hosts.",
            first.ranks, last.ranks
        ),
        (LadderGrowth::Unknown, _) => format!(
            "{steps}: the intervals are too wide to say whether the sum still grows with the hosts."
        ),
    })
}

fn alone(rounds: &HostRounds) -> Table {
    let rounds_of = match rounds.rounds {
        1 => "one round".to_string(),
        count => format!("{count} rounds in turn"),
    };
    let caption = format!("Alone against together, {}, {rounds_of}", of_each(rounds));
    TableOf::of(&caption, &rounds.alone)
        .text("host", |one| one.host.clone())
        .count("op/s alone", |one| one.alone.value)
        .count("op/s with all", |one| one.together.value)
        .number("of it left", |one| match (one.rate_ratio, one.p99_ratio) {
            (Some(ratio), _) => {
                format!(
                    "{} ({})",
                    parts::percent(ratio.value),
                    parts::plus_minus(ratio)
                )
            }
            (None, Some(ratio)) => format!("p99 x {}", parts::count(ratio)),
            (None, None) => NOT_KNOWN.into(),
        })
        .time("p99 alone", |one| value(one.alone_p99_us))
        .time("p99 with all", |one| value(one.together_p99_us))
        .table()
}

fn scaling(rounds: &HostRounds) -> Option<String> {
    let scaling = rounds.scaling?;
    Some(format!(
        "Together these hosts did {} of what they did one at a time.",
        parts::percent(scaling)
    ))
}

/// Which host's sessions were on which database.
fn databases(result: &RanksResult) -> Option<String> {
    let mut by_url: Vec<(&str, Vec<&str>)> = Vec::new();
    for (url, host) in result.databases.iter().zip(&result.names) {
        match by_url.iter_mut().find(|(known, _)| known == url) {
            Some((_, hosts)) => hosts.push(host),
            None => by_url.push((url, vec![host])),
        }
    }
    let each = by_url
        .iter()
        .map(|(url, hosts)| format!("of {} on {url}", hosts.join(", ")));
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| format!("Sessions {}.", each.join("; ")))
}

/// What limits the figures.
fn honesty(result: &RanksResult) -> Vec<String> {
    let reach = result.reach;
    let blocks = match (result.is_separate, result.same_blocks) {
        _ if !result.databases.is_empty() => {
            "Sessions of every rank read and update rows of all tables of their database."
        }
        (true, _) => {
            "Every host reads and writes its own storage: their sum is not the rate of one storage."
        }
        (false, _) if result.own_files => {
            "Every rank reads and writes a scratch file of its own, all in one directory."
        }
        (false, true) => "Every rank reads and writes all blocks, in an order of its own.",
        (false, false) if result.own_parts => {
            "Every rank reads and writes a part of the target of its own."
        }
        (false, false) => "Every rank reads from all blocks, in an order of its own.",
    };
    let mut sentences: Vec<String> = databases(result).into_iter().collect();
    sentences.push(blocks.into());
    if reach.target_bytes > 0 && !result.is_separate && result.databases.is_empty() {
        sentences.push(format!(
            "All hosts together touched at most {} of {}: a cache of the storage of that size may \
             have answered what was read twice.",
            Bytes(reach.touched_bytes_max),
            Bytes(reach.target_bytes)
        ));
    }
    let overlap = result.overlap;
    let dropped = match overlap.windows_dropped {
        0 => "no window was left out".to_string(),
        count => format!(
            "{} of {} windows at the edges were left out",
            parts::count(count as f64),
            parts::count(overlap.windows as f64)
        ),
    };
    sentences.push(format!(
        "Measurements began at most {} apart; {dropped}; clocks are known to within {}.",
        parts::time(overlap.skew_us),
        parts::time(overlap.clock_bound_us)
    ));
    sentences.push(NOT_ASKED.into());
    sentences
}

fn ladder_chart(rounds: &HostRounds) -> Option<Chart> {
    let last = rounds.ladder.last().filter(|_| rounds.ladder.len() > 1)?;
    let x: Vec<f64> = rounds
        .ladder
        .iter()
        .map(|step| f64::from(step.ranks))
        .collect();
    let measured = Series {
        name: "measured".into(),
        y: rounds
            .ladder
            .iter()
            .map(|step| Some(step.sum.value))
            .collect(),
        band: rounds.ladder.iter().map(|step| step.sum.interval).collect(),
        x: x.clone(),
        ..Series::default()
    };
    let first = rounds.ladder.first().filter(|step| step.ranks == 1);
    let proportional = first.map(|step| Series {
        name: "if hosts did not share".into(),
        shape: Shape::Dashed,
        y: x.iter().map(|ranks| Some(step.sum.value * ranks)).collect(),
        x: x.clone(),
        ..Series::default()
    });
    let described: Vec<String> = rounds
        .ladder
        .iter()
        .map(|step| format!("{} with {} ranks", parts::count(step.sum.value), step.ranks))
        .collect();
    let lines = Lines {
        x: Axis {
            label: "ranks that measure".into(),
            range: Some((0.0, f64::from(last.ranks))),
            ..Axis::default()
        },
        y: Axis {
            label: "operations per second, all together".into(),
            unit: Unit::PerSecond,
            range: Some((0.0, last.sum.value)),
            ..Axis::default()
        },
        series: std::iter::once(measured).chain(proportional).collect(),
        ..Lines::default()
    };
    let title = format!("Sum by number of ranks, {}", of_each(rounds));
    let description = format!("Operations per second together: {}.", described.join(", "));
    Some(parts::chart(
        "hosts-ladder",
        &title,
        description,
        Plot::Lines(lines),
    ))
}

fn alone_chart(rounds: &HostRounds) -> Option<Chart> {
    if rounds.alone.len() < 2 {
        return None;
    }
    // Side by side, since intervals would cover each other.
    let series = |name: &str, aside: f64, of: fn(&AloneFigures) -> Estimate| Series {
        name: name.into(),
        shape: Shape::Points,
        x: (1..=rounds.alone.len())
            .map(|at| at as f64 + aside)
            .collect(),
        y: rounds.alone.iter().map(|one| Some(of(one).value)).collect(),
        band: rounds.alone.iter().map(|one| of(one).interval).collect(),
        labels: rounds
            .alone
            .iter()
            .map(|one| format!("{}, {name}", one.host))
            .collect(),
        ..Series::default()
    };
    let most = rounds
        .alone
        .iter()
        .map(|one| one.alone.value.max(one.together.value))
        .fold(0.0, f64::max);
    let described: Vec<String> = rounds
        .alone
        .iter()
        .map(|one| {
            let [alone, together] = [one.alone, one.together].map(|rate| parts::count(rate.value));
            format!("{} {alone} alone and {together} with all", one.host)
        })
        .collect();
    let names: Vec<String> = rounds
        .alone
        .iter()
        .enumerate()
        .map(|(at, one)| format!("{} {}", at + 1, one.host))
        .collect();
    let lines = Lines {
        x: Axis {
            label: names.join(", "),
            range: Some((0.4, rounds.alone.len() as f64 + 0.6)),
            ..Axis::default()
        },
        y: Axis {
            label: "operations per second".into(),
            unit: Unit::PerSecond,
            range: Some((0.0, most * 1.05)),
            ..Axis::default()
        },
        series: vec![
            series("alone", -0.06, |one| one.alone),
            series("with all", 0.06, |one| one.together),
        ],
        ..Lines::default()
    };
    let title = format!("Each host alone and with all, {}", of_each(rounds));
    let description = format!("Operations per second: {}.", described.join("; "));
    Some(parts::chart(
        "hosts-alone",
        &title,
        description,
        Plot::Lines(lines),
    ))
}

/// All hosts at every load, for `--per-host`.
///
/// # Errors
/// One process measured alone.
pub fn each_load(run: &Run) -> Result<Vec<HostsAtLoad>, Error> {
    if run.header.ranks.is_none() {
        return Err(usage!(
            "--per-host: one process measured this run alone",
            "leave --per-host out"
        ));
    }
    Ok(analyse::each_load(run))
}

/// Each host at every load, for `--per-host`.
pub(super) fn per_host(loads: &[HostsAtLoad]) -> Section {
    let rows = loads
        .iter()
        .flat_map(|at| at.hosts.iter().map(move |host| (at, host)));
    let table = TableOf::of("Each host at every load", rows).text("load", |(at, _)| at.coordinates);
    let table = with_figures(table, |(_, host)| host);
    let lead = "Figures of the first class of each point.";
    parts::section("per-host", "Each host", lead, vec![Block::Table(table)])
}

/// Each host at every load, one line each. Columns are only added at the end.
pub(super) fn per_host_csv(loads: &[HostsAtLoad]) -> String {
    let interval = |figure: Option<Estimate>| figure.and_then(|figure| figure.interval);
    CsvTable::of(
        loads
            .iter()
            .flat_map(|at| at.hosts.iter().map(move |host| (at, host))),
    )
    .value("step", |(at, _)| at.coordinates.name())
    .value("rank", |(_, host)| host.rank)
    .text("host", |(_, host)| &host.host)
    .figure("iops", |(_, host)| host.iops.value)
    .figure("iops_low", |(_, host)| low(host.iops.interval))
    .figure("iops_high", |(_, host)| high(host.iops.interval))
    .figure("share", |(_, host)| host.share)
    .figure("p50_us", move |(_, host)| value(host.p50_us))
    .figure("p99_us", move |(_, host)| value(host.p99_us))
    .figure("p99_low_us", move |(_, host)| low(interval(host.p99_us)))
    .figure("p99_high_us", move |(_, host)| high(interval(host.p99_us)))
    .figure("p999_us", move |(_, host)| value(host.p999_us))
    .figure("cpu_us_per_io", |(_, host)| host.cpu_us_per_io)
    .value("slow", |(_, host)| if host.is_slow { "yes" } else { "no" })
    .into_text()
}
