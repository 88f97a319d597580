//! The parts about points of `curve`: `open`, `closed`, `overload` and `stalls`.

use super::Bench;
use super::lookup::{self, FIGURES, PointFigures, Printed, Served, points, warnings};
use super::table::{self, Said, Tally, head, rows};
use super::truths::{Queue, Saturated, SlowShare};
use serde_json::Value;

const QUANTILES: [f64; 3] = [0.5, 0.99, 0.999];

/// A device of exponential service: servers, its service time as `sim:` reads it, and in seconds.
type Device = (u32, &'static str, f64);

const THREE_FAST: Device = (3, "250us", 250e-6);
const EIGHT_FAST: Device = (8, "100us", 100e-6);
const THREE_SLOW: Device = (3, "2500us", 2500e-6);
const DISK: Device = (1, "5ms", 5e-3);

fn queue((servers, _, service): Device, load: f64) -> Queue {
    let rate = (load * f64::from(servers) / service).round();
    Queue {
        servers,
        service,
        rate,
    }
}

fn named((servers, service, _): Device) -> String {
    format!("sim:{servers},{service}")
}

/// Poisson load below saturation: response times of M/M/c, and of M/G/1 with rare slow operations.
pub(crate) fn open(bench: &Bench) -> Result<(), String> {
    let loads: [(Device, &[f64]); 4] = [
        (THREE_FAST, &[0.3, 0.6, 0.9, 0.95]),
        (EIGHT_FAST, &[0.9, 0.95, 0.98]),
        (THREE_SLOW, &[0.9, 0.95]),
        (DISK, &[0.6, 0.9, 0.95]),
    ];
    let (mut figures, mut said) = (Vec::new(), Vec::new());
    let mut add = |row: usize, target: &str, load: f64, rate: f64, truths: [Option<f64>; 5]| {
        let runs = bench.each(row, |_| format!("curve {target} --rate {rate}"))?;
        let name = format!("{target} at {:.0} %", load * 100.0);
        figures.extend(figure_rows(&name, &runs, truths));
        said.push(format!("{name} | {}", Said::of(&runs).cells()));
        Ok::<(), String>(())
    };
    let mut row = 0;
    for (device, shares) in loads {
        for load in shares {
            let queue = queue(device, *load);
            let [p50, p99, p999] = QUANTILES.map(|quantile| Some(queue.quantile(quantile)));
            let truths = [Some(queue.rate), Some(queue.mean()), p50, p99, p999];
            add(row, &named(device), *load, queue.rate, truths)?;
            row += 1;
        }
    }
    // One in ten thousand takes 100 ms, the others 100 us; half of the capacity.
    let slow = SlowShare {
        service: 100e-6,
        slow: 0.1,
        share: 1e-4,
    };
    let rate = (0.5 / slow.mean()).round();
    let truths = [Some(rate), Some(slow.mean_response(rate)), None, None, None];
    add(row, "sim:1,100us,slow=100ms@0.01%", 0.5, rate, truths)?;
    head(
        "open: response times of a Poisson load",
        "`rigel curve TARGET --rate R`. Truth: M/M/c, Erlang C; the last device M/G/1, \
         Pollaczek-Khinchine.",
        &format!("setting | figure | truth | {}", Tally::HEAD),
    );
    rows(&figures);
    table::said("open", &said);
    Ok(())
}

/// A row per figure that has a truth, over all points of all runs.
fn figure_rows(name: &str, runs: &[Value], truths: [Option<f64>; 5]) -> Vec<String> {
    let points: Vec<PointFigures> = runs.iter().flat_map(points).collect();
    let row = |at: usize| {
        let truth = truths[at]?;
        let mut tally = Tally::default();
        points
            .iter()
            .for_each(|point| tally.add(point.figures[at], truth));
        let shown = match at {
            0 => format!("{truth:.0}/s"),
            _ => format!("{:.1} us", truth * 1e6),
        };
        Some(format!(
            "{name} | {} | {shown} | {}",
            FIGURES[at],
            tally.cells()
        ))
    };
    (0..FIGURES.len()).filter_map(row).collect()
}

/// Closed loops that keep the servers of a device busy.
pub(crate) fn closed(bench: &Bench) -> Result<(), String> {
    head(
        "closed: saturated servers",
        "`rigel curve sim:4,250us --depth D`. Truth: exponential service after \
         Erlang's wait.",
        &format!("setting | figure | truth | {}", Tally::HEAD),
    );
    let mut all = Vec::new();
    for (row, depth) in [4, 8, 16, 32, 64].into_iter().enumerate() {
        let words = format!("curve sim:4,250us --depth {depth}");
        let runs = bench.each(row, |_| words.clone())?;
        let busy = Saturated {
            servers: 4,
            service: 250e-6,
            depth,
        };
        let [p50, p99, p999] = QUANTILES.map(|quantile| Some(busy.quantile(quantile)));
        let truths = [Some(16_000.0), Some(busy.mean()), p50, p99, p999];
        rows(&figure_rows(&format!("depth {depth}"), &runs, truths));
        all.extend(runs);
    }
    table::said("closed", &[format!("all | {}", Said::of(&all).cells())]);
    Ok(())
}

/// Rates above the capacity, which nothing can serve for long.
pub(crate) fn overload(bench: &Bench) -> Result<(), String> {
    head(
        "overload: rates above the capacity",
        "`rigel curve TARGET --rate R`: is the rate said to be served? The truth is no.",
        &format!("setting | served: yes | undecided | no | {}", Said::HEAD),
    );
    let devices = [DISK, THREE_SLOW, THREE_FAST];
    let loads = devices
        .into_iter()
        .flat_map(|device| [1.01, 1.05, 1.1].map(|load| (device, load)));
    for (row, (device, load)) in loads.enumerate() {
        let (target, rate) = (named(device), queue(device, load).rate);
        let runs = bench.each(row, |_| format!("curve {target} --rate {rate}"))?;
        let answers: Vec<Served> = runs.iter().flat_map(points).map(|it| it.served).collect();
        let counted = [Served::Yes, Served::Undecided, Served::No].map(|answer| {
            answers
                .iter()
                .filter(|given| **given == answer)
                .count()
                .to_string()
        });
        rows(&[format!(
            "{target} at {:.0} % | {} | {}",
            load * 100.0,
            counted.join(" | "),
            Said::of(&runs).cells()
        )]);
    }
    Ok(())
}

/// Ranges that the periods of stalls are drawn from, in seconds.
const PERIODS: [(f64, f64); 4] = [(0.7, 2.5), (3.0, 5.0), (8.0, 12.0), (25.0, 35.0)];

/// A device of 16,000 a second that stands still a tenth of each period.
pub(crate) fn stalling(bench: &Bench, row: usize, run: u32, (low, high): (f64, f64)) -> String {
    let period = low + (high - low) * bench.draws(row, run).unit();
    format!(
        "sim:4,250us,stall={:.0}us/{:.0}us",
        period * 1e5,
        period * 1e6
    )
}

/// Stalls and slow operations that are rarer than a point is long.
pub(crate) fn stalls(bench: &Bench) -> Result<(), String> {
    let (mut figures, mut said) = (Vec::new(), Vec::new());
    let mut add = |name: &str, what: &str, of: Figures, truth: f64, runs: &[Value]| {
        let (quiet, all) = tallies(runs, of, truth);
        let mut row = |of, tally: Tally| {
            figures.push(format!(
                "{name} | {what} | {of} | {truth:.0}/s | {}",
                tally.cells()
            ));
        };
        row("all", all);
        row("without a warning", quiet);
        if runs.iter().any(|run| lookup::closing(run).is_some()) {
            row("closing measurement", tallies(runs, closing, truth).1);
        }
        said.push(format!("{name}: {what} | {}", Said::of(runs).cells()));
    };
    for (at, period) in PERIODS.into_iter().enumerate() {
        let name = format!("still 10 % of each {} to {} s", period.0, period.1);
        let runs = bench.each(at, |run| {
            format!("curve {} --depth 4..11/1", stalling(bench, at, run, period))
        })?;
        add(&name, "points", throughputs, 14_400.0, &runs);
        let row = PERIODS.len() + at;
        let runs = bench.each(row, |run| {
            format!("calibrate {}", stalling(bench, row, run, period))
        })?;
        add(&name, "max IOPS", maximum, 14_400.0, &runs);
    }
    let slow = [
        ("20ms", "0.1", 0.02, 1e-3),
        ("100ms", "0.01", 0.1, 1e-4),
        ("1s", "0.001", 1.0, 1e-5),
    ];
    for (at, (time, percent, seconds, part)) in slow.into_iter().enumerate() {
        let truth = 1.0
            / SlowShare {
                service: 100e-6,
                slow: seconds,
                share: part,
            }
            .mean();
        let words = format!("curve sim:1,100us,slow={time}@{percent}% --depth 1,2");
        let runs = bench.each(2 * PERIODS.len() + at, |_| words.clone())?;
        add(
            &format!("{percent} % take {time}, others 100 us"),
            "points",
            throughputs,
            truth,
            &runs,
        );
    }
    head(
        "stalls: what comes less often than a point lasts",
        "`rigel curve sim:4,250us,stall=L/P --depth 4..11/1` and `rigel calibrate` of the same, with P \
         drawn from the range for each run; the first stall comes after nine tenths of P. Truth: 16,000/s for nine tenths of the time; below, 1 / \
         mean service time.",
        &format!("setting | figure | which | truth | {}", Tally::HEAD),
    );
    rows(&figures);
    table::said("stalls", &said);
    Ok(())
}

/// Figures that a run gives for one truth, and whether a warning was raised: about the point, or for
/// a figure of the run, about anything in it.
type Figures = fn(&Value) -> Vec<(Option<Printed>, bool)>;

fn throughputs(run: &Value) -> Vec<(Option<Printed>, bool)> {
    let points = points(run).into_iter();
    points.map(|it| (it.figures[0], it.is_warned)).collect()
}

fn maximum(run: &Value) -> Vec<(Option<Printed>, bool)> {
    vec![(lookup::maximum(run), !warnings(run).is_empty())]
}

fn closing(run: &Value) -> Vec<(Option<Printed>, bool)> {
    vec![(lookup::closing(run), false)]
}

/// Of the figures without a warning, and of all.
fn tallies(runs: &[Value], figures: Figures, truth: f64) -> (Tally, Tally) {
    let (mut quiet, mut all) = (Tally::default(), Tally::default());
    for (printed, is_warned) in runs.iter().flat_map(figures) {
        all.add(printed, truth);
        if !is_warned {
            quiet.add(printed, truth);
        }
    }
    (quiet, all)
}
