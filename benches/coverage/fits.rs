//! The part `fit`: how many times a device carries a demand.

use super::Bench;
use super::table::{head, rows, share};
use super::truths::Queue;
use serde_json::Value;

/// Devices with exponential servers, the demand in reads per second, and the bound on p99 in
/// milliseconds.
const DEVICES: [(&str, u32, f64, f64, u32); 4] = [
    ("sim:8,2ms", 8, 0.002, 700.0, 15),
    ("sim:8,500us", 8, 0.0005, 5000.0, 3),
    ("sim:2,1ms", 2, 0.001, 400.0, 10),
    ("sim:16,4ms", 16, 0.004, 1500.0, 30),
];

/// Whether the interval of the multiple holds the truth, and how wide it is.
pub(crate) fn fit(bench: &Bench) -> Result<(), String> {
    head(
        "fit: the multiple of a demand",
        "`rigel fit DEMAND TARGET --slo 'random reads p99<BOUND'`. Truth: the rate at which p99 of \
         M/M/c crosses the bound, by Erlang's formula, divided by the demand.",
        "target | demand | p99 below | truth | interval holds it | above it | below it | median of \
         high / low",
    );
    for (row, (target, servers, service, demanded, bound_ms)) in DEVICES.into_iter().enumerate() {
        let queue = Queue {
            servers,
            service,
            rate: 0.0,
        };
        let truth = queue.greatest_rate(0.99, f64::from(bound_ms) / 1e3) / demanded;
        let demand = bench.folder.join(format!("demand-{row}.csv"));
        let lines = format!(
            "begin,reads_per_second,seconds\n2026-01-01T00:00,{demanded},600\n\
             2026-01-01T00:10,{demanded},600\n"
        );
        std::fs::write(&demand, lines).map_err(|error| error.to_string())?;
        let demand = demand.display();
        let slo = format!("--slo random-reads:p99<{bound_ms}ms");
        let runs = bench.each(row, |_| format!("fit {demand} {target} {slo}"))?;
        let limit = |run: &Value, name: &str| run["fit"][name].as_f64();
        let low = |run: &&Value| limit(run, "held").unwrap_or(0.0);
        let high = |run: &&Value| limit(run, "not_held").unwrap_or(f64::INFINITY);
        let above = runs.iter().filter(|run| low(run) > truth).count();
        let below = runs.iter().filter(|run| high(run) < truth).count();
        let all = u32::try_from(runs.len()).unwrap_or(u32::MAX);
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut widths: Vec<f64> = runs.iter().map(|run| high(&run) / low(&run)).collect();
        widths.sort_by(f64::total_cmp);
        rows(&[format!(
            "{target} | {demanded}/s | {bound_ms} ms | {truth:.3} | {} | {} | {} | {:.2}",
            share(all - number(above + below), all),
            share(number(above), all),
            share(number(below), all),
            widths[widths.len() / 2]
        )]);
    }
    Ok(())
}
