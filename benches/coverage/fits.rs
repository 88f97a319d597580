//! The part `fit`: how many times a device carries a demand.

use super::Bench;
use super::modelled::{self, Device, EXACTLY, SMALL};
use super::table::{head, rows, share};
use rigel_model::{Bound, Nanos};
use serde_json::Value;

/// A device, the demand in reads per second, and the bound on p99 in milliseconds.
struct Row {
    target: &'static str,
    demanded: f64,
    bound_ms: u32,
}

const fn row(target: &'static str, demanded: f64, bound_ms: u32) -> Row {
    Row {
        target,
        demanded,
        bound_ms,
    }
}

const DEVICES: [Row; 8] = [
    row("sim:8,2ms", 700.0, 15),
    row("sim:8,500us", 5000.0, 3),
    row("sim:2,1ms", 400.0, 10),
    row("sim:16,4ms", 1500.0, 30),
    row("sim:1,3ms", 60.0, 30),
    row("sim:16,1ms,limit=2000/s", 500.0, 20),
    row("sim:4,1ms,fixed", 800.0, 4),
    row("sim:4,250us,stall=100ms/12s", 3000.0, 20),
];

/// Whether the interval of the multiple holds the truth, and how wide it is.
pub(crate) fn fit(bench: &Bench) -> Result<(), String> {
    head(
        "fit: the multiple of a demand",
        "`rigel fit DEMAND TARGET --slo 'random reads p99<BOUND'`. Truth: the rate at which p99 of \
         M/M/c crosses the bound, by Erlang's formula, or by simulation, divided by the demand.",
        "target | demand | p99 below | truth | mean of given / truth | interval holds it | above it | \
         below it | median of high / low | median length in s",
    );
    for (row, device) in DEVICES.into_iter().enumerate() {
        let Row {
            target,
            demanded,
            bound_ms,
        } = device;
        let bound = Bound {
            latency: Nanos::from_millis(bound_ms.into()),
            quantile: 0.99,
        };
        let spec = modelled::spec(target);
        let rate = Device::of(&spec, SMALL).greatest_rate(bound, EXACTLY);
        let truth = rate.ok_or(format!("{target} never keeps the bound"))? / demanded;
        let demand = bench.folder.join(format!("demand-{row}.csv"));
        let lines = format!(
            "begin,reads_per_second,seconds\n2026-01-01T00:00,{demanded},600\n\
             2026-01-01T00:10,{demanded},600\n"
        );
        std::fs::write(&demand, lines).map_err(|error| error.to_string())?;
        let demand = demand.display();
        let slo = format!("--slo random-reads:p99<{bound_ms}ms");
        let runs = bench.each(row, |_| format!("fit {demand} {target} {slo}"))?;
        let fit = |run: &Value| run["fit"].clone();
        let end = |run: &Value, name: &str, alone: &str| {
            let of_root = fit(run)["carries"]["interval"][name].as_f64();
            of_root.or_else(|| fit(run)[alone].as_f64())
        };
        let low = |run: &&Value| end(run, "low", "held").unwrap_or(0.0);
        let high = |run: &&Value| end(run, "high", "not_held").unwrap_or(f64::INFINITY);
        let given: Vec<f64> = runs
            .iter()
            .filter_map(|run| fit(run)["carries"]["value"].as_f64())
            .collect();
        let mean = given.iter().sum::<f64>() / given.len() as f64 / truth;
        let mut lengths: Vec<f64> = runs.iter().map(measured_s).collect();
        lengths.sort_by(f64::total_cmp);
        let above = runs.iter().filter(|run| low(run) > truth).count();
        let below = runs.iter().filter(|run| high(run) < truth).count();
        let all = u32::try_from(runs.len()).unwrap_or(u32::MAX);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut widths: Vec<f64> = runs.iter().map(|run| high(&run) / low(&run)).collect();
        widths.sort_by(f64::total_cmp);
        rows(&[format!(
            "{target} | {demanded}/s | {bound_ms} ms | {truth:.3} | {mean:.3} of {} | {} | {} | {} | {:.2} | {:.0}",
            given.len(),
            share(all - number(above + below), all),
            share(number(above), all),
            share(number(below), all),
            widths[widths.len() / 2],
            lengths[lengths.len() / 2]
        )]);
    }
    Ok(())
}

/// Measured time of all points with their warm-ups.
fn measured_s(run: &Value) -> f64 {
    let points = run["points"].as_array();
    let time = |point: &Value, name: &str| point[name].as_f64().unwrap_or(0.0);
    points.map_or(0.0, |points| {
        let of = |point| time(point, "measured_s") + time(point, "warm_up_s");
        points.iter().map(of).sum()
    })
}
