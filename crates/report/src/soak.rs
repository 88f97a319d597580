//! The report of a series of rounds: the verdict, figures, a timeline, changes with their dates,
//! objectives.
//!
//! Input: rounds and their analysis, from a soak's journal or from another tool's figures. What is
//! unknown of such figures, such as latencies, is left out.

mod changes;
mod figures;
mod hosts;
mod timeline;

use super::columns::TableOf;
use super::csv::CsvTable;
use super::data::{self, Head, Reported};
use super::document::{Block, Document, HEADLINES_MAX, Headline, Section};
use super::frame::about;
use super::parts::{per_second as rate, rounded_percent, share};
use super::{parts, setup};
use changes::what_changed;
use figures::show;
pub use figures::{thinned, wall};
use rigel_analyse::quantity::counted;
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_analyse::{
    BoundVerdict, Conclusion, CutRounds, Extreme, Predictability, Quantity, Round, RoundEnd,
    RunTrust, Samples, SeriesFigures, ShownIn, Sight, SoakHosts, SoakResult,
};
use rigel_model::record::StallEvent;
use rigel_model::record::journal::Header;
use rigel_model::{Bytes, FindingWithCause, Load, Resolution};
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use std::fmt::Write;
use timeline::{calendar, repeats, timeline};

/// The section with the figures of all rounds.
const SPREAD: &str = "spread";

/// Maximum number of rows in the table of rounds.
const ROWS_MAX: usize = 1000;

/// The report of a soak. It needs only the header: the journal of a soak of weeks is never in
/// memory as a whole.
pub fn document(header: &Header, result: &SoakResult, frame: Document) -> Document {
    let workload = workload(header);
    let mut document = of_series(result, frame);
    document.about = about(header, &workload, &measured(result));
    if let Some(found) = &result.hosts {
        // Behind the figures that the hosts' are the parts of.
        let is_whole = |section: &Section| section.id == SPREAD;
        let place = document.sections.iter().position(is_whole);
        let place = place.map_or(document.sections.len(), |place| place + 1);
        document.sections.insert(place, hosts::section(found));
    }
    document.sections.push(setup::section(header, &workload));
    document
}

/// `672 of 700 rounds, 2026-03-01 12:30 to 2026-03-08 12:30`.
fn measured(result: &SoakResult) -> String {
    let of = result
        .found
        .rounds
        .planned
        .map_or_else(String::new, |planned| format!(" of {planned}"));
    let to = result.found.resolution;
    let span = match (result.rounds.first(), result.rounds.last()) {
        (Some(first), Some(last)) => {
            format!(", {} to {}", first.begin.shown(to), last.finish().shown(to))
        }
        _ => String::new(),
    };
    let rounds = result.rounds.len();
    let plural = if rounds == 1 && of.is_empty() {
        ""
    } else {
        "s"
    };
    format!("{rounds}{of} round{plural}{span}")
}

/// The workload of a round, in words; empty if the run is not a soak.
fn workload(header: &Header) -> String {
    let Some(request) = header.invocation.asked::<SoakRequest>("soak") else {
        return String::new();
    };
    let round = match request.work {
        Some(work) => {
            let limit = parts::lasting(request.limit);
            format!(
                "rounds of {} operations, at most {limit}",
                parts::count(work as f64)
            )
        }
        None => "rounds without a pause between them".into(),
    };
    let load = match request.load {
        Load::Closed { depth } => format!("{depth} outstanding"),
        Load::Open { rate, .. } => format!("{} per second at random times", parts::count(rate)),
    };
    let size = Bytes(request.length.into());
    let what = match (request.sql, request.mix.writes.get()) {
        (Some(terms), _) => terms.work.to_string(),
        (None, 0.0) => format!("reads of {size}, {}", request.pattern),
        (None, 1.0) => format!("writes of {size}, {}", request.pattern),
        (None, writes) => format!(
            "I/O of {size}, {} of it writes, {}",
            parts::percent(writes),
            request.pattern
        ),
    };
    let ranks = header.ranks.as_ref().map_or_else(String::new, |group| {
        format!(
            "; {} ranks on {} together, where a depth is that of each, and operations of a \
             round and rates are those of all",
            group.size(),
            counted(group.hosts() as u64, "host")
        )
    });
    format!(
        "{what}; {load}; {round}, one every {}, for {}{ranks}",
        parts::lasting(request.every),
        parts::lasting(request.lasting)
    )
}

/// The headlines and sections of a series from any source. The caller adds a line about it, and the
/// setup.
pub fn of_series(result: &SoakResult, frame: Document) -> Document {
    let predictability = &result.found;
    let calendar = calendar(&result.rounds);
    let timeline = timeline(result).map(|timeline| {
        if calendar.is_none() {
            parts::in_text(timeline)
        } else {
            timeline
        }
    });
    let mut sections: Vec<Section> = timeline.into_iter().collect();
    sections.extend(what_changed(predictability));
    sections.extend(frame.trust.as_ref().map(parts::findings));
    sections.extend(calendar);
    sections.extend(predictability.calendar.iter().map(repeats));
    sections.extend(spread(predictability));
    sections.extend(objectives(predictability));
    sections.push(rounds(result));
    Document {
        headlines: headlines(predictability),
        sections,
        ..frame
    }
}

/// Median, mean, variation and extremes of each quantity; `None` if no round has figures.
fn spread(result: &Predictability) -> Option<Section> {
    type Show = fn(f64) -> String;
    let noun = result.samples.noun();
    let all: [(&str, &Option<SeriesFigures>, Show); 3] = [
        ("throughput", &result.rate, rate),
        ("p50", &result.p50_us, parts::time),
        ("p99", &result.p99_us, parts::time),
    ];
    let rows = all
        .into_iter()
        .filter_map(|(name, figures, show)| Some((name, figures.as_ref()?, show)));
    let extreme =
        |show: Show, it: Extreme| format!("{}, {}", show(it.value), it.at.shown(result.resolution));
    let table = TableOf::of("Rounds", rows)
        .text("", |(name, ..)| *name)
        .number("median", |(_, figures, show)| show(figures.median))
        .number("mean", |(_, figures, show)| show(figures.mean))
        .on_page()
        .percent("varies by", |(_, figures, _)| figures.variation)
        .text(&format!("95 % of {noun}s"), |(_, figures, show)| {
            format!("{} to {}", show(figures.low), show(figures.high))
        })
        .text("minimum", |(_, figures, show)| {
            extreme(*show, figures.least)
        })
        .text("maximum", |(_, figures, show)| {
            extreme(*show, figures.greatest)
        })
        .block();
    let hour = |name: &str, figures: &SeriesFigures, show: Show, worst: bool| {
        let hour = if worst {
            figures.least_hour
        } else {
            figures.greatest_hour
        }?;
        let (value, beside) = (show(hour.value), of_median(hour.of_median));
        let begin = hour.begin.shown(result.resolution);
        Some(format!(
            "Worst hour of {name}: {value} on average, {beside}, from {begin}."
        ))
    };
    let worst = result
        .rate
        .as_ref()
        .and_then(|figures| hour("throughput", figures, rate, true));
    let slowest = result
        .p99_us
        .as_ref()
        .and_then(|figures| hour("p99", figures, parts::time, false));
    let mut blocks = vec![table];
    blocks.extend(worst.into_iter().chain(slowest).map(Block::Text));
    let lead = format!(
        "Over all complete {noun}s; the variation is the standard deviation over the mean."
    );
    let title = format!("How much {noun}s vary");
    let section = parts::section(SPREAD, &title, &lead, blocks);
    (!section.blocks.is_empty()).then_some(section)
}

/// The range of 95 % of the rounds, in words.
fn range(samples: Samples, figures: &SeriesFigures, show: impl Fn(f64) -> String) -> String {
    format!(
        "95 % of {} {}s: {} to {}",
        parts::count(figures.rounds as f64),
        samples.noun(),
        show(figures.low),
        show(figures.high)
    )
}

/// What the variation is. A round far from all others can make most of it, as where credit ran out.
fn deviation(figures: &SeriesFigures, variation: f64) -> &'static str {
    const FAR: f64 = 3.0;
    let most = (figures.high - figures.low) / figures.median;
    if variation > FAR * most {
        "standard deviation over mean, by a few far from the others"
    } else {
        "standard deviation over mean"
    }
}

/// A headline figure; `name` is its path in the JSON report.
fn headline(name: &str, label: &str, value: String, note: String, exact: f64) -> Headline {
    Headline {
        name: format!("predictability.{name}"),
        label: label.into(),
        value,
        interval: String::new(),
        note,
        exact,
        ..Headline::default()
    }
}

/// The quantity that the verdict uses: its median, worst hour and variation.
fn of_verdict(result: &Predictability) -> Vec<Headline> {
    let mut figures = Vec::new();
    let (of, main) = match result.judged_by {
        Quantity::Rate => ("rate", &result.rate),
        Quantity::P99Us => ("p99_us", &result.p99_us),
    };
    if let Some(figure) = main {
        let quantity = result.judged_by;
        let label = format!("median {}", quantity.name());
        let value = show(quantity, figure.median);
        let median = headline(
            &format!("{of}.median"),
            &label,
            value,
            String::new(),
            figure.median,
        );
        figures.push(Headline {
            interval: range(result.samples, figure, |value| show(quantity, value)),
            ..median
        });
        let (name, hour) = match quantity {
            Quantity::Rate => ("least_hour", figure.least_hour),
            Quantity::P99Us => ("greatest_hour", figure.greatest_hour),
        };
        if let Some(hour) = hour {
            let note = format!(
                "{}, from {}",
                of_median(hour.of_median),
                hour.begin.shown(result.resolution)
            );
            let value = show(quantity, hour.value);
            let name = format!("{of}.{name}.value");
            figures.push(headline(&name, "worst hour", value, note, hour.value));
        }
        if let Some(variation) = figure.variation {
            let value = parts::percent(variation);
            let name = format!("{of}.variation");
            figures.push(headline(
                &name,
                "varies by",
                value,
                deviation(figure, variation).into(),
                variation,
            ));
        }
    }
    figures
}

fn headlines(found: &Predictability) -> Vec<Headline> {
    let mut figures = of_verdict(found);
    let least = found
        .objectives
        .iter()
        .enumerate()
        .filter_map(|(at, result)| Some((at, result, result.share_kept?)))
        // What is known of others says nothing of rounds in which a closed loop hid it.
        .filter(|(_, result, _)| result.hidden == 0 || result.outcome != BoundVerdict::Undecided);
    if let Some((at, result, kept)) = least.min_by(|a, b| a.2.total_cmp(&b.2)) {
        let used = result.budget_used.map_or_else(String::new, |used| {
            format!(", budget used {}", budget(used))
        });
        let note = format!("{} required{used}", share(result.share_asked));
        let label = format!("{} met for", result.objective);
        let kept = headline(
            &format!("objectives.{at}.share_kept"),
            &label,
            share(kept),
            note,
            kept,
        );
        // Between rounds nobody looked.
        let interval = result
            .share_least
            .map_or_else(String::new, |least| format!("at least {}", share(least)));
        figures.push(Headline {
            interval,
            tone: Conclusion::of_outcome(result.outcome).status,
            ..kept
        });
    } else if let (Quantity::P99Us, Some(figure)) = (found.judged_by, &found.rate) {
        let median = headline(
            "rate.median",
            "median throughput",
            rate(figure.median),
            String::new(),
            figure.median,
        );
        figures.push(Headline {
            interval: range(found.samples, figure, rate),
            ..median
        });
    } else if let Some(p99) = &found.p99_us {
        let median = headline(
            "p99_us.median",
            "median p99",
            parts::time(p99.median),
            String::new(),
            p99.median,
        );
        figures.push(Headline {
            interval: range(found.samples, p99, parts::time),
            ..median
        });
    }
    if let Some(cut) = &found.cut {
        let mut limit = cut.limit_seconds.map_or_else(String::new, |limit| {
            format!("by the time limit of {limit:.0} s")
        });
        if cut.in_pieces > 0 {
            let _ = write!(limit, "; {} of two lines", cut.in_pieces);
        }
        let value = format!("{} of {}", cut.rounds, cut.of);
        figures.push(headline(
            "cut.rounds",
            "rounds cut short",
            value,
            limit,
            cut.rounds as f64,
        ));
    }
    figures.truncate(HEADLINES_MAX);
    figures
}

/// A figure beside the median: `73 % of the median`, `12,770 times the median`.
fn of_median(factor: f64) -> String {
    const TIMES: f64 = 10.0;
    if factor < TIMES {
        format!("{} of the median", rounded_percent(factor))
    } else {
        format!("{} times the median", parts::count(factor.round()))
    }
}

/// The used part of an error budget; above the whole, as a multiple.
fn budget(used: f64) -> String {
    if used < 2.0 {
        rounded_percent(used)
    } else {
        format!("{used:.0} times over")
    }
}

fn objectives(found: &Predictability) -> Option<Section> {
    let to = found.resolution;
    let table = TableOf::of("Objectives and their error budgets", &found.objectives)
        .text("objective", |result| result.objective)
        .text("", |result| match result.outcome {
            BoundVerdict::Kept => "met",
            BoundVerdict::Broken => "missed",
            BoundVerdict::Undecided | BoundVerdict::NotMeasured => "not known",
        })
        .number("met for", |result| {
            result.share_kept.map_or_else(|| "not known".into(), share)
        })
        .number("of all time", |result| {
            let least = result.share_least;
            least.map_or_else(String::new, |least| format!("at least {}", share(least)))
        })
        .on_page()
        .number("required", |result| share(result.share_asked))
        .number("budget used", |result| {
            result.budget_used.map_or_else(String::new, budget)
        })
        .number("rounds that missed it", |result| {
            format!("{} of {}", result.missed, result.kept + result.missed)
        })
        .number("unknown", |result| result.unknown)
        .on_page()
        .text("longest breach", |result| match result.longest_breach {
            Some(breach) => format!("{} to {}", breach.begin.shown(to), breach.end.shown(to)),
            None => "none".into(),
        })
        .table();
    let lead = "The share of time in which each was met; a broken round has missed it.";
    (!table.rows.is_empty())
        .then(|| parts::section("objectives", "Objectives", lead, vec![Block::Table(table)]))
}

fn rounds(result: &SoakResult) -> Section {
    let (all, noun) = (&result.rounds, result.found.samples.noun());
    let last = &all[all.len().saturating_sub(ROWS_MAX)..];
    let caption = if last.len() < all.len() {
        let (shown, all) = (
            parts::count(last.len() as f64),
            parts::count(all.len() as f64),
        );
        format!("The last {shown} of {all} {noun}s; rigel report --format csv has all")
    } else {
        format!("Every {noun}")
    };
    // Text has the rounds in its timeline.
    let table = TableOf::of(&caption, last)
        .number(noun, |round| round.number)
        .on_page()
        .text("begun", |round| round.begin.shown(result.found.resolution))
        .on_page()
        .number("seconds", |round| format!("{:.0}", round.seconds))
        .on_page()
        .count("done", |round| round.done.round())
        .on_page()
        .per_second("throughput", |round| round.rate)
        .on_page()
        .times(ShownIn::Pages, |round, figure| round.latency.get(figure))
        .text("end", |round| end_name(&round.end))
        .on_page()
        .folded_if(true)
        .block();
    let mut blocks: Vec<Block> = incomplete(&result.found)
        .into_iter()
        .map(Block::Text)
        .collect();
    blocks.push(table);
    let nouns = format!("{}s", parts::capital(noun));
    let lead = format!("{nouns} that are not complete, and the figures of each.");
    parts::section("rounds", &nouns, &lead, blocks)
}

/// Rounds that are not complete, a sentence for each kind.
fn incomplete(result: &Predictability) -> Vec<String> {
    let mut lines: Vec<String> = result
        .cut
        .iter()
        .map(|rounds| cut(rounds, result.resolution) + ".")
        .collect();
    let counts = &result.rounds;
    let mut count = |count: usize, one: &str, many: &str| {
        if count > 0 {
            lines.push(format!("{count} {}.", if count == 1 { one } else { many }));
        }
    };
    count(
        counts.broken,
        "round broke and has no figures",
        "rounds broke and have no figures",
    );
    count(
        counts.stopped,
        "round was stopped and is left out",
        "rounds were stopped and are left out",
    );
    count(
        counts.missing,
        "round did not take place",
        "rounds did not take place",
    );
    count(
        counts.ahead,
        "planned round is missing",
        "planned rounds are missing",
    );
    if counts.failed_operations > 0 {
        lines.push(format!("{} operations failed.", counts.failed_operations));
    }
    lines
}

/// Describes the cut rounds in a sentence.
fn cut(cut: &CutRounds, to: Resolution) -> String {
    let (was, s) = if cut.rounds == 1 {
        ("was", "")
    } else {
        ("were", "s")
    };
    let limit = cut
        .limit_seconds
        .map_or_else(String::new, |seconds| format!(" of {seconds:.0} s"));
    let work = cut.work.map_or_else(String::new, |work| {
        let work = parts::count(work.round());
        format!(", before their work of {work} operations was done")
    });
    let when = format!("between {} and {}", cut.first.shown(to), cut.last.shown(to));
    let pieces = match cut.in_pieces {
        0 => String::new(),
        1 => "; 1 round is in two lines, which are merged".into(),
        count => format!("; {count} rounds are in two lines each, which are merged"),
    };
    let inferred = if cut.inferred {
        " (inferred: most rounds did the same work)"
    } else {
        ""
    };
    format!(
        "{} of {} round{s} {was} cut short by the time limit{limit}{work}, \
         {when}{inferred}{pieces}",
        cut.rounds, cut.of
    )
}

/// The rounds as CSV: a header line, then one line per round. Columns are read by their names,
/// which are never changed or removed.
pub fn csv(result: &SoakResult) -> String {
    CsvTable::of(&result.rounds)
        .value("round", |round| round.number)
        .value("begin", |round| round.begin)
        .figure("seconds", |round| round.seconds)
        .value("done", |round| format!("{:.0}", round.done))
        .value("failed", |round| round.failed)
        .maybe("asked", |round| round.asked)
        .figure("rate", |round| round.rate)
        .times(|round, figure| round.latency.get(figure))
        .value("end", |round| end_name(&round.end))
        .value("kept", |round| {
            let marks = round
                .kept
                .iter()
                .map(|kept| kept.kept.map_or("", |kept| if kept { "1" } else { "0" }));
            marks.collect::<Vec<&str>>().join(" ")
        })
        .text("device", |round| {
            let device = round.host.as_ref().and_then(|host| host.device.as_deref());
            device.unwrap_or_default()
        })
        .figure("device_busy", |round| round.host.as_ref()?.device_busy)
        .figure("queue", |round| round.host.as_ref()?.queue)
        .figure("cpu_busy", |round| Some(round.host.as_ref()?.cpu_busy))
        .figure("stolen", |round| Some(round.host.as_ref()?.stolen))
        .figure("io_pressure", |round| round.host.as_ref()?.io_pressure)
        .figure("others_mb_per_s", |round| {
            round.host.as_ref()?.others_mb_per_s
        })
        .into_text()
}

fn end_name(end: &RoundEnd) -> &'static str {
    match end {
        RoundEnd::Whole => "whole",
        RoundEnd::Cut => "cut",
        RoundEnd::Stopped => "stopped",
        RoundEnd::Broken(_) => "broken",
    }
}

/// The JSON report of a soak. Fields are only added, never renamed or removed.
#[derive(Serialize, JsonSchema)]
struct SoakReport<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    conclusion: Conclusion,
    trust: RunTrust,
    /// What the rounds cannot have seen.
    sight: Sight,
    predictability: &'a Predictability,
    rounds: &'a [Round],
    /// For a soak with several ranks: its hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    ranks: Option<&'a SoakHosts>,
    /// When storage or a server stopped answering, and when it went on.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stalls: &'a [StallEvent],
    findings: Vec<FindingWithCause<'a>>,
}

/// The JSON Schema of [`json`].
pub fn schema() -> Schema {
    data::schema_of::<SoakReport>()
}

/// The report as one JSON document.
pub fn json(report: Reported, result: &SoakResult) -> String {
    let report = SoakReport {
        head: Head::of(&report.run.header).ended(report.ended),
        conclusion: report.conclusion,
        trust: report.trust,
        sight: report.sight,
        predictability: &result.found,
        rounds: &result.rounds,
        ranks: result.hosts.as_ref(),
        stalls: &report.run.stalls,
        findings: report.findings,
    };
    data::document(&report)
}

#[cfg(test)]
mod tests {
    use super::figures::POINTS_MAX;
    use super::*;
    use crate::document::{Plot, Series};
    use crate::html::render;
    use rigel_analyse::examples::rounds as example_rounds;
    use rigel_analyse::{PredictabilityTerms, predictability};
    use rigel_model::Invocation;
    use rigel_model::record::journal::{EngineChoice, FORMAT, Run};
    use rigel_model::{Host, Layout, Moment, Target, TargetFacts};

    fn header() -> Header {
        Header {
            format: FORMAT,
            version: "0.1.0".into(),
            started: "2026-01-02T03:04:05+00:00".into(),
            command: vec!["soak".into()],
            target: Target::Paths {
                members: Vec::new(),
                layout: Layout::Concat,
            },
            engine: EngineChoice {
                name: "sim".into(),
                buffered: false,
                verify: false,
            },
            engine_about: String::new(),
            points: Vec::new(),
            invocation: Invocation::of("import", &serde_json::json!({})),
            host: Host::default(),
            facts_of_others: Vec::new(),
            facts: TargetFacts {
                name: "disk".into(),
                ..TargetFacts::default()
            },
            findings: Vec::new(),
            ranks: None,
            says_end: false,
        }
    }

    fn result(rounds: Vec<Round>, of: usize) -> SoakResult {
        result_of(rounds, of, false)
    }

    fn result_of(rounds: Vec<Round>, of: usize, is_open: bool) -> SoakResult {
        let objectives = vec!["p99<2ms".parse().unwrap(), "p99<1ms".parse().unwrap()];
        let terms = PredictabilityTerms {
            objectives,
            share: 0.4,
            every_seconds: Some(300.0),
            planned: Some(20_000),
            is_open,
            samples: Samples::Rounds,
        };
        let found = predictability(&rounds[..of], &terms);
        SoakResult {
            rounds,
            found,
            hosts: None,
            verified: None,
            sight: Sight::default(),
            findings: Vec::new(),
        }
    }

    #[test]
    fn sixty_days_are_small_and_keep_the_least() {
        let mut all = example_rounds(17_280);
        all[9_001].rate = Some(17.0);
        let page = document(&header(), &result(all, 600), Document::default());
        let Some(Block::Chart(chart)) = page.sections[0].blocks.first() else {
            panic!("{:?}", page.sections[0].title)
        };
        let Plot::Stack { panels } = &chart.plot else {
            panic!("{chart:?}")
        };
        let series: Vec<&Series> = panels.iter().flat_map(|panel| &panel.series).collect();
        assert!(series.iter().all(|series| series.y.len() <= POINTS_MAX));
        let least = series
            .iter()
            .find(|series| series.name == "minimum")
            .unwrap();
        assert!(least.y.contains(&Some(17.0)) && !series[0].y.contains(&Some(17.0)));
        let bytes = render(&page).len();
        assert!(bytes < 2_000_000, "{bytes} bytes");
    }

    #[test]
    fn a_clock_that_is_set_to_winter_time_draws_no_line_backwards() {
        let mut all = example_rounds(48);
        for (at, round) in all.iter_mut().enumerate() {
            let offset = if at < 24 { "+02:00" } else { "+01:00" };
            let zone: Moment = format!("2026-01-02T00:00:00{offset}").parse().unwrap();
            round.begin = round.begin.by_the_clock_of(zone);
        }
        let Some(Block::Chart(chart)) = timeline(&result(all, 48)).unwrap().blocks.pop() else {
            panic!("no chart")
        };
        let Plot::Stack { panels } = &chart.plot else {
            panic!("{chart:?}")
        };
        let x = &panels[0].series[0].x;
        assert!(
            x.len() == 48
                && x.windows(2)
                    .all(|two| (two[1] - two[0] - 300.0).abs() < 1e-9),
            "{x:?}"
        );
        assert!(
            panels[0].x.label.contains("before it was changed"),
            "{}",
            panels[0].x.label
        );
    }

    #[test]
    fn large_figures_are_those_of_the_json_report() {
        for is_open in [false, true] {
            large_figures_are_in_the_report(is_open);
        }
    }

    fn large_figures_are_in_the_report(is_open: bool) {
        let result = result_of(example_rounds(60), 60, is_open);
        let run = Run::begun(header());
        let reported = Reported {
            run: &run,
            ended: None,
            conclusion: result.conclusion(&run.header),
            trust: RunTrust::default(),
            sight: result.sight,
            next_run: None,
            expect: None,
            verified: None,
            points: &[],
            findings: Vec::new(),
            each_host: &[],
        };
        let report: serde_json::Value = serde_json::from_str(&json(reported, &result)).unwrap();
        let page = document(&header(), &result, Document::default());
        let names: Vec<&str> = page
            .headlines
            .iter()
            .map(|figure| figure.name.as_str())
            .collect();
        assert!(
            names.contains(&"predictability.objectives.1.share_kept"),
            "{names:?}"
        );
        for figure in &page.headlines {
            let reported = report
                .pointer(&format!("/{}", figure.name.replace('.', "/")))
                .and_then(serde_json::Value::as_f64);
            let reported = reported.unwrap_or(f64::NAN);
            // The JSON parser rounds the last digit.
            assert!(
                (reported - figure.exact).abs() <= 1e-12 * reported.abs(),
                "{}: {reported}",
                figure.name
            );
        }
        let median = &page.headlines[0];
        let (value, least) = if is_open {
            ("1.51 ms", "1.50 ms to ")
        } else {
            ("12,0", "12,0")
        };
        let interval = format!("95 % of 60 rounds: {least}");
        assert!(
            median.value.starts_with(value) && median.interval.starts_with(&interval),
            "{median:?}"
        );
        let said = incomplete(&result.found);
        assert!(
            said.contains(&"19940 planned rounds are missing.".to_string()),
            "{said:?}"
        );
    }

    #[test]
    fn a_soak_without_rounds_has_no_empty_chart() {
        let page = document(&header(), &result(Vec::new(), 0), Document::default());
        assert!(page.sections.iter().all(|section| section.id != "timeline"));
        assert!(
            page.sections
                .iter()
                .flat_map(|section| &section.blocks)
                .all(|block| match block {
                    Block::Table(table) => !table.rows.is_empty(),
                    _ => true,
                })
        );
    }
}
