//! The cells of Orion's matrix as loads: what the csv files and the summary say about one cell is
//! put together, or doubted where they contradict each other.

use super::orion_histogram::{self, HistogramRow, KINDS};
use rigel_model::MIB;
use rigel_model::record::imported::{Flow, ReportedLatency};

/// Allowed relative difference of two means of the same I/Os.
const MEANS_DIFFER: f64 = 0.01;

/// Allowed relative difference of a histogram's count from IOPS times seconds: some I/Os of the
/// warm-up or of the end may be in one of them only.
const COUNTS_DIFFER: f64 = 0.25;

/// Figures of a cell from the files of a run.
#[derive(Debug, Clone, Default)]
pub(super) struct OrionCell {
    pub(super) iops: Option<f64>,
    pub(super) mbps: Option<f64>,
    /// Mean latency of small I/O in the csv, in the unit of the file.
    pub(super) latency: Option<f64>,
    /// Mean latency of its small I/O as the minimum of the summary, in nanoseconds.
    pub(super) least_ns: Option<f64>,
    /// Latencies of small reads and of small writes in the summary, in nanoseconds.
    lines: [Option<ReportedLatency>; 2],
    /// The rows of its histogram of small I/O.
    pub(super) histogram: Vec<HistogramRow>,
}

impl OrionCell {
    /// Adds a latency line of `Small Read` or `Small Write`. The summary repeats the line of a cell
    /// that has both the maximum and the minimum.
    pub(super) fn add_line(&mut self, kind: &str, latency: ReportedLatency) {
        let kind = kind.trim_start_matches("Small ").to_lowercase();
        if let Some(kind) = KINDS.iter().position(|known| *known == kind) {
            self.lines[kind].get_or_insert(latency);
        }
    }

    /// True if it has small operations of a kind.
    fn has(&self, kind: usize) -> bool {
        self.lines[kind].is_some() || orion_histogram::done(&self.histogram, kind).is_some()
    }
}

/// What the cells of a run have in common.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrionTerms {
    /// Bytes of a small and of a large I/O.
    pub(super) sizes: (Option<u32>, Option<u32>),
    /// Nanoseconds in the unit of latencies without one.
    pub(super) scale: f64,
    /// Duration of a cell.
    pub(super) seconds: Option<f64>,
    /// Kind of the operations, where a cell does not say more.
    pub(super) kind: &'static str,
}

impl OrionTerms {
    /// The kind by the requested percentage of writes, or else by what the cells have. Orion reads
    /// unless it is told to write.
    pub(super) fn kind<'a, Cells>(writes: Option<f64>, cells: &Cells) -> &'static str
    where
        Cells: Iterator<Item = &'a OrionCell> + Clone,
    {
        let has = |kind| cells.clone().any(|cell| cell.has(kind));
        match writes {
            Some(writes) if writes <= 0.0 => KINDS[0],
            Some(writes) if writes >= 100.0 => KINDS[1],
            Some(_) => "mixed",
            None => match (has(0), has(1)) {
                (true, true) => "mixed",
                (false, true) => KINDS[1],
                _ => KINDS[0],
            },
        }
    }
}

/// The flows of a cell: small reads and writes, and both together where it has both; large I/O.
pub(super) fn flows(
    place: (u32, u32),
    cell: &OrionCell,
    run: OrionTerms,
    notes: &mut Vec<String>,
) -> Vec<Flow> {
    let mut flows = small_flows(place, cell, run, notes);
    if let Some(mbps) = cell.mbps {
        let bytes_per_s = mbps * MIB as f64;
        flows.push(Flow {
            class: "large".into(),
            kind: run.kind.into(),
            io_bytes: run.sizes.1,
            iops: run.sizes.1.map(|size| bytes_per_s / f64::from(size)),
            bytes_per_s: Some(bytes_per_s),
            ..Flow::default()
        });
    }
    flows
}

fn small_flows(
    place: (u32, u32),
    cell: &OrionCell,
    run: OrionTerms,
    notes: &mut Vec<String>,
) -> Vec<Flow> {
    let csv_ns = cell.latency.map(|latency| latency * run.scale);
    let cell = &without_contradictions(place, cell, csv_ns, run, notes);
    let mean = csv_ns.or(cell.least_ns);
    let flow = |kind: &str, latency: Option<ReportedLatency>| Flow {
        class: "small".into(),
        kind: kind.into(),
        io_bytes: run.sizes.0,
        done: latency.as_ref().and_then(|latency| latency.count),
        latencies: latency.into_iter().collect(),
        ..Flow::default()
    };
    let with_rate = |flow: Flow| Flow {
        iops: cell.iops,
        bytes_per_s: cell
            .iops
            .zip(run.sizes.0)
            .map(|(iops, size)| iops * f64::from(size)),
        ..flow
    };
    let all_of = |mean: Option<f64>, latency: ReportedLatency| ReportedLatency {
        of: "total".into(),
        mean: mean.or(latency.mean),
        ..latency
    };
    let kinds: Vec<(&str, ReportedLatency)> = (0..KINDS.len())
        .filter(|kind| cell.has(*kind))
        .map(|kind| (KINDS[kind], timed(cell, kind)))
        .collect();
    match kinds.as_slice() {
        [] if cell.iops.is_none() && mean.is_none() => Vec::new(),
        [] => {
            let latency = mean.map(|mean| all_of(Some(mean), ReportedLatency::default()));
            vec![with_rate(flow(run.kind, latency))]
        }
        [(kind, latency)] => {
            let mean = latency.mean.or(mean);
            vec![with_rate(flow(kind, Some(all_of(mean, latency.clone()))))]
        }
        both => {
            let parts: Vec<ReportedLatency> = both.iter().map(|(_, one)| one.clone()).collect();
            let together = ReportedLatency::together("total", &parts);
            let mut flows = vec![with_rate(flow("mixed", Some(all_of(mean, together))))];
            flows.extend(both.iter().map(|(kind, one)| flow(kind, Some(one.clone()))));
            flows
        }
    }
}

/// The latencies of a kind: those of its line, with the counts of the histogram.
fn timed(cell: &OrionCell, kind: usize) -> ReportedLatency {
    let line = cell.lines[kind].as_ref();
    ReportedLatency {
        of: "total".into(),
        count: orion_histogram::done(&cell.histogram, kind),
        histogram: orion_histogram::spread(&cell.histogram, kind, line),
        ..line.cloned().unwrap_or_default()
    }
}

/// The cell without what contradicts its other figures: some versions print figures below the label
/// of another cell.
fn without_contradictions(
    (small, large): (u32, u32),
    cell: &OrionCell,
    csv_ns: Option<f64>,
    run: OrionTerms,
    notes: &mut Vec<String>,
) -> OrionCell {
    let mut cell = cell.clone();
    let name = format!("Small={small} and Large={large}");
    let us = |ns: f64| ns / 1e3;
    let means: Vec<f64> = cell
        .lines
        .iter()
        .flatten()
        .filter_map(|line| line.mean)
        .collect();
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let most = means.iter().copied().fold(0.0, f64::max);
    if let Some(csv) = csv_ns.filter(|_| !means.is_empty())
        && !(least * (1.0 - MEANS_DIFFER)..=most * (1.0 + MEANS_DIFFER)).contains(&csv)
    {
        notes.push(format!(
            "{name}: the summary has a mean latency of {:.0} us, the csv {:.0} us: the csv is used, \
             because Orion 11.2.0.2 is known to print figures below the label of another cell",
            us(means[0]),
            us(csv)
        ));
        cell.lines = [None, None];
    }
    if cell.histogram.is_empty() {
        return cell;
    }
    if let Some(why) = contradicted(&cell, csv_ns, run) {
        notes.push(format!(
            "{name}: {why}: the histogram is not used, because it may be that of another cell"
        ));
        cell.histogram.clear();
    } else if cell.iops.is_none() && csv_ns.or(cell.least_ns).is_none() && means.is_empty() {
        notes.push(format!(
            "{name}: nothing but the histogram has this label, so that it may be that of another \
             cell"
        ));
    }
    cell
}

/// What contradicts the histogram of a cell.
fn contradicted(cell: &OrionCell, csv_ns: Option<f64>, run: OrionTerms) -> Option<String> {
    let us = |ns: f64| ns / 1e3;
    let is_outside = |mean: f64, (low, high): (f64, f64)| {
        mean < low * (1.0 - MEANS_DIFFER) || mean > high * (1.0 + MEANS_DIFFER)
    };
    for (kind, line) in cell.lines.iter().enumerate() {
        let bounds = orion_histogram::mean_bounds_ns(&cell.histogram, kind);
        let mean = line.as_ref().and_then(|line| line.mean);
        if let (Some(mean), Some((low, high))) = (mean, bounds)
            && is_outside(mean, (low, high))
        {
            return Some(format!(
                "the mean of its {}s is {:.0} us, and by its histogram {:.0} to {:.0} us",
                KINDS[kind],
                us(mean),
                us(low),
                us(high)
            ));
        }
    }
    let done: Vec<f64> = (0..KINDS.len())
        .filter_map(|kind| orion_histogram::done(&cell.histogram, kind))
        .map(|done| done as f64)
        .collect();
    let all: f64 = done.iter().sum();
    if all <= 0.0 {
        return None;
    }
    let bounds = (0..KINDS.len())
        .filter_map(|kind| orion_histogram::mean_bounds_ns(&cell.histogram, kind))
        .zip(&done)
        .fold((0.0, 0.0), |(low, high), (of, done)| {
            (low + of.0 * done / all, high + of.1 * done / all)
        });
    let has_lines = cell.lines.iter().any(Option::is_some);
    let mean = csv_ns.or(cell.least_ns).filter(|_| !has_lines);
    if let Some(mean) = mean.filter(|mean| is_outside(*mean, bounds)) {
        return Some(format!(
            "its mean is {:.0} us, and by its histogram {:.0} to {:.0} us",
            us(mean),
            us(bounds.0),
            us(bounds.1)
        ));
    }
    let expected = cell.iops? * run.seconds?;
    ((all / expected - 1.0).abs() > COUNTS_DIFFER).then(|| {
        format!(
            "its histogram has {all:.0} I/Os, and {:.0} IOPS in {} s are {expected:.0}",
            cell.iops.unwrap_or(0.0),
            run.seconds.unwrap_or(0.0)
        )
    })
}
