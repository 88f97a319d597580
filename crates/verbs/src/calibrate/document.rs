//! The report of a calibration.

use super::request::CalibrateRequest;
use rigel_analyse::search::reference::ClassStanding;
use rigel_analyse::{AtLoad, BoundVerdict, Calibration, LogWrites, PointSummary};
use rigel_model::record::PointRecord;
use rigel_model::record::journal::Run;
use rigel_model::{Figure, Finding, FindingName, LogKind, Step};
use rigel_report::columns::TableOf;
use rigel_report::distribution::Chosen;
use rigel_report::document::{Block, Document, Headline, Section, Unit};
use rigel_report::frame::about;
use rigel_report::points::{self, Units};
use rigel_report::throughput::{
    self, first_classes, knee, not_sustained, sustained_headline, sustained_sentence,
};
use rigel_report::{distribution, parts, setup, timeline};

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    calibration: &Calibration,
    findings: Section,
    frame: Document,
) -> Document {
    let sizes = calibration.maximum.zip(calibration.large).map_or_else(
        || "random reads".into(),
        |(small, large)| {
            format!(
                "random reads of {} and {}",
                parts::size(small.io_bytes),
                parts::size(large.io_bytes)
            )
        },
    );
    let standing = calibration.standing.iter().map(ClassStanding::sentence);
    Document {
        standing: standing.chain(frame.standing).collect(),
        about: about(
            &run.header,
            &sizes,
            &parts::counted(calibration.points.len() as u64, "point"),
        ),
        headlines: headlines(calibration),
        sections: sections(run, calibration, findings, &sizes),
        ..frame
    }
}

/// The headline of a maximum; a lower limit if the throughput of these reads was still rising at the
/// maximum depth that was tried.
fn greatest(calibration: &Calibration, figure: Figure, found: Headline) -> Headline {
    let is_open = |one: &Finding| one.is(FindingName::NotReached) && one.figure == Some(figure);
    let found = found.of(figure);
    if calibration.findings.iter().any(is_open) {
        let value = format!("at least {}", found.value);
        Headline { value, ..found }
    } else {
        found
    }
}

fn headlines(calibration: &Calibration) -> Vec<Headline> {
    let is_cached = calibration.cache.reread.and_then(|test| test.is_cached) == Some(true);
    let doubt = if is_cached { "; may be a cache's" } else { "" };
    let of = |at: AtLoad| {
        format!(
            "random reads of {}, {} outstanding{}{doubt}",
            parts::size(at.io_bytes),
            at.depth,
            parts::on_each(at.ranks)
        )
    };
    let mut figures = Vec::new();
    if let Some(at) = calibration.maximum {
        let on_credit = calibration.on_credit.map_or_else(String::new, |iops| {
            format!("; {} on burst credit", parts::count(iops.value))
        });
        let name = "calibration.maximum.iops.value";
        let rate = parts::rate(name, "max IOPS", at.iops, of(at) + &on_credit);
        figures.push(greatest(calibration, Figure::MaxIops, rate));
    }
    if let Some(at) = calibration.large {
        let name = "calibration.large.mb_per_s.value";
        let throughput = parts::throughput(name, "max throughput", at.mb_per_s, of(at));
        figures.push(greatest(calibration, Figure::MaxThroughput, throughput));
    }
    if let Some(at) = calibration.low_load {
        let note = format!(
            "random reads of {}, one at a time{}; median {}{doubt}",
            parts::size(at.io_bytes),
            parts::on_each(at.ranks),
            parts::time(at.p50_us.value)
        );
        let name = "calibration.low_load.p99_us.value";
        let latency = parts::latency(name, "p99 at low load", at.p99_us, note);
        figures.push(latency.of(Figure::LowLoad));
    }
    let label = format!("within {}", parts::bound_in_words(&calibration.bound));
    if let Some(root) = sustained_headline("calibration.sustained", &label, &calibration.sustained)
    {
        figures.push(root.of(Figure::SustainedRate));
        return figures;
    }
    match (
        calibration.sustained.kept,
        calibration.sustained.kept_rate,
        calibration.at_knee,
    ) {
        (Some(at), Some(rate), _) => {
            let tried = not_sustained(&calibration.sustained);
            let note = format!(
                "offered at random times and served; p99 {}",
                parts::time(at.p99_us.value)
            );
            let value = parts::per_second(rate as f64);
            let name = "calibration.sustained.kept_rate";
            let served = parts::headline(name, &label, rate as f64, value, tried, note);
            figures.push(served.of(Figure::SustainedRate));
        }
        (_, _, Some(at)) => {
            let knee = calibration.curve.knee;
            let label = if knee.is_some_and(|knee| knee.bounded_above) {
                "p99 at the knee"
            } else {
                "p99 at the maximum"
            };
            let name = "calibration.at_knee.p99_us.value";
            let latency = parts::latency(name, label, at.p99_us, of(at));
            figures.push(latency.of(Figure::MaxIops));
        }
        _ => {}
    }
    figures
}

fn sections(run: &Run, calibration: &Calibration, findings: Section, sizes: &str) -> Vec<Section> {
    let records = run.joined();
    let mut sections = vec![curve(run, calibration), findings];
    sections.extend(distribution::section(&chosen(calibration, &records)));
    sections.extend(timeline::section(run, Units::of("IOPS")));
    sections.push(figures(calibration));
    sections.extend(log_files(calibration));
    sections.push(points::section(run, &calibration.points, Units::of("IOPS")));
    sections.extend(points::coverage(&calibration.points, &run.header.findings));
    sections.push(setup::section(&run.header, sizes));
    sections
}

fn curve(run: &Run, calibration: &Calibration) -> Section {
    let closed = first_classes(&calibration.points, |point| point.step() == Step::Depth);
    let open = first_classes(&calibration.points, |point| point.step() == Step::Rate);
    let large = first_classes(&calibration.points, |point| point.step() == Step::Large);
    let request: Option<CalibrateRequest> = run.header.invocation.asked("calibrate");
    let bound = request.map(|request| request.bound);
    let groups = throughput::closed_and_open(
        closed.clone(),
        open,
        &calibration.curve,
        bound,
        &calibration.sustained,
    );
    let mut blocks: Vec<Block> = throughput::latency_charts(groups, "IOPS")
        .into_iter()
        .collect();
    blocks.extend(parts::beside([
        throughput::depth_chart(&closed, &calibration.curve, "IOPS"),
        throughput::large_chart(&large, "large random reads", Unit::MbPerSecond),
    ]));
    blocks.extend(
        knee(&calibration.curve)
            .into_iter()
            .chain(sustained(calibration))
            .chain(reach(calibration))
            .map(Block::Text),
    );
    let lead = "Random reads of the small size. Along the line more operations are outstanding; \
                beyond the knee, where points are fainter, they only wait longer. Operations \
                offered at random times arrive whether or not the storage is ready.";
    parts::section(
        "latency-throughput",
        "Latency against throughput",
        lead,
        blocks,
    )
}

/// How much the storage changed during the run, and what of it the intervals include.
fn reach(calibration: &Calibration) -> Vec<String> {
    let mut sentences = Vec::new();
    if let Some(variation) = calibration.variation {
        let what = if let Some(lasting) = variation.lasting {
            format!(
                "Visits at neighbouring times were alike, whatever their load: the storage has states that \
                 last, which change the mean of a run by {} (Allan deviation). Max IOPS includes that.",
                parts::percent(lasting.error)
            )
        } else if variation.is_significant() {
            format!(
                "From visit to visit to the same load, throughput varied by {} (standard \
                 deviation) beyond chance; all intervals include that.",
                parts::percent(variation.share)
            )
        } else {
            format!(
                "Visits to the same load differed by {} (standard deviation), no more than chance \
                 explains.",
                parts::percent(variation.share.hypot(variation.within))
            )
        };
        sentences.push(what);
    }
    let lost = calibration
        .points
        .iter()
        .filter(|point| point.step() != Step::Refill)
        .filter_map(|point| point.classes.first()?.lost.as_ref())
        .map(|lost| lost.times)
        .sum();
    if lost > 0 {
        sentences.push(format!(
            "{} of stalled or slow I/O came at some loads and might have come at any: all intervals \
             include that, which can make them alike.",
            parts::counted(lost, "phase")
        ));
    }
    sentences
}

/// The highest rate that was offered and served within the bound, and the best constant depth
/// within it.
fn sustained(calibration: &Calibration) -> Vec<String> {
    let (sustained, bound) = (
        &calibration.sustained,
        parts::bound_in_words(&calibration.bound),
    );
    let rate = |rate: u64| parts::per_second(rate as f64);
    let open = if let (Some(at), Some(kept)) = (sustained.kept, sustained.kept_rate) {
        let not = not_sustained(sustained);
        let p99 = parts::time_in_cell(at.p99_us);
        format!(
            "Within {bound}: {}, offered at random times, was certainly served, with p99 {p99}; {not}.",
            rate(kept)
        )
    } else {
        let mut rates = calibration
            .points
            .iter()
            .filter(|point| point.step() == Step::Rate);
        let fails =
            |point: &PointSummary| point.classes.iter().any(|class| !class.failed.is_empty());
        let why = match (sustained.broken_rate, sustained.undecided_rate) {
            (Some(_), _) if rates.any(fails) => "I/Os failed at every offered rate".to_string(),
            (None, None) => "no offered rate was measured".to_string(),
            (_, Some(_)) => format!(
                "no offered rate was certainly served by itself; {}",
                not_sustained(sustained)
            ),
            (Some(broken), None) => {
                let is_open = sustained.offered_verdict == Some(BoundVerdict::Undecided);
                let lower = if is_open { "; a lower one may be" } else { "" };
                format!(
                    "no offered rate was served, down to {}{lower}",
                    rate(broken)
                )
            }
        };
        format!("Within {bound}: {why}.")
    };
    let closed = sustained.closed.map(|at| {
        let (iops, known) = (parts::count(at.iops.value), parts::plus_minus(at.iops));
        format!(
            "Within {bound}: {iops} IOPS ({known}) with a constant {} outstanding{}.",
            at.depth,
            parts::on_each(at.ranks)
        )
    });
    let root = sustained_sentence(&bound, sustained);
    root.into_iter().chain([open]).chain(closed).collect()
}

/// Log writes to files of their own, by the state of the file and the number of writers.
fn log_files(found: &Calibration) -> Option<Section> {
    let logs = &found.log_files;
    let first = logs.first()?;
    let table = TableOf::of("Commits", logs)
        .text("the log is", |log| {
            log.log.map_or_else(String::new, LogKind::about)
        })
        .number("writers", |log| log.at.depth)
        .count("commits/s", |log| log.at.iops.value)
        .precision("± (95 %)", |log| log.at.iops)
        .time("p50 (95 % interval)", |log| log.at.p50_us)
        .time("p99 (95 % interval)", |log| log.at.p99_us);
    let lead = format!(
        "Each writes {} behind the record before, and waits until it is durable, by fdatasync if nothing else is \
         said; writers commit together, as sessions of a database do. A filesystem that must note a new size, or that \
         a block is written now, does so before a commit is over. etcd's log has its size; those of Oracle, InnoDB \
         and, with wal_recycle, PostgreSQL are reused.",
        parts::size(first.bytes)
    );
    Some(parts::section(
        "log-files",
        "Log writes",
        &lead,
        std::iter::once(table.block())
            .chain(points::syncs(&found.points))
            .collect(),
    ))
}

/// All figures with their intervals: throughput, then latency.
fn figures(found: &Calibration) -> Section {
    let fixed = [
        ("random reads, low load", found.low_load),
        ("random reads, at the knee", found.at_knee),
        (
            "random reads, maximum",
            found.maximum.filter(|_| found.at_knee.is_none()),
        ),
        ("random reads, closing measurement", found.closing.knee),
        ("large random reads, low load", found.large_low_load),
        ("large random reads, at the maximum", found.large),
        (
            "large random reads, closing measurement",
            found.closing.large,
        ),
        ("one sequential stream", found.stream),
        ("within the bound, offered", found.sustained.kept),
        ("random writes, low load", found.write_low_load),
        ("random writes, at the maximum", found.writes),
        ("random writes, closing measurement", found.closing.writes),
        (
            "large writes, first minute",
            found.large_writes.first_minute,
        ),
        ("large writes after it", found.large_writes.lasting),
    ];
    let fixed = fixed
        .into_iter()
        .filter_map(|(name, at)| Some((name.to_string(), at?)));
    let log = |log: &LogWrites| {
        (
            format!("durable log writes of {}", parts::size(log.bytes)),
            log.at,
        )
    };
    let all: Vec<(String, AtLoad)> = fixed.chain(found.log_writes.iter().map(log)).collect();
    let loads = |caption| {
        TableOf::of(caption, &all)
            .text("", |(name, _)| name.clone())
            .number("outstanding", |(_, at)| at.depth)
            .number("size", |(_, at)| parts::size(at.io_bytes))
    };
    let throughput = loads("Throughput")
        .count("IOPS", |(_, at)| at.iops.value)
        .precision("± (95 %)", |(_, at)| at.iops)
        .count("MB/s", |(_, at)| at.mb_per_s.value)
        .precision("± (95 %)", |(_, at)| at.mb_per_s)
        .on_page();
    let latency = loads("Latency")
        .on_page()
        .time("p50 (95 % interval)", |(_, at)| at.p50_us)
        .time("p99 (95 % interval)", |(_, at)| at.p99_us)
        .time("p99.9 (95 % interval)", |(_, at)| at.p999_us);
    let about =
        "Each figure is of one measured point, or of several that are named; none is interpolated.";
    parts::section(
        "figures",
        "All figures",
        about,
        vec![throughput.block(), latency.block()],
    )
}

/// Low load, the knee, and the maximum measured depth.
fn chosen<'a>(calibration: &Calibration, records: &'a [PointRecord]) -> Vec<Chosen<'a>> {
    let deepest = records
        .iter()
        .filter_map(|record| record.coordinates.depth())
        .max();
    let wanted = [
        calibration.low_load.map(|at| at.depth),
        calibration.at_knee.map(|at| at.depth),
        deepest,
    ];
    let mut chosen: Vec<Chosen<'a>> = Vec::new();
    for depth in wanted.into_iter().flatten() {
        let name = format!("depth {depth}");
        if let Some(record) = records
            .iter()
            .find(|record| record.coordinates.depth() == Some(depth))
            && chosen.iter().all(|(known, _)| *known != name)
        {
            chosen.push((name, record));
        }
    }
    chosen
}
