//! The parts about whole calibrations: `maximum`, `sustained` and `warnings`.

use super::Bench;
use super::lookup::{self, Printed, knee};
use super::modelled::{self, Device, EXACTLY, SMALL};
use super::table::{self, Said, Tally, distribution, head, median, rows, share};
use serde_json::Value;

/// Devices, their maximum rate, and the load that is enough for it.
///
/// Exponential servers in a closed loop give min(depth, servers) / service. So the lowest depth
/// whose throughput is within 2 % of the maximum is the number of servers, below fifty of them.
/// With a limit the knee has no closed form: the operations that wait for a token leave servers
/// idle by chance.
const DEVICES: [(&str, f64, Option<f64>); 10] = [
    ("sim:1,5ms", 200.0, Some(1.0)),
    ("sim:3,250us", 12_000.0, Some(3.0)),
    ("sim:3,2500us", 1_200.0, Some(3.0)),
    ("sim:5,700us", 5.0 / 700e-6, Some(5.0)),
    ("sim:7,1300us", 7.0 / 1300e-6, Some(7.0)),
    ("sim:4,4ms", 1_000.0, Some(4.0)),
    ("sim:12,400us", 30_000.0, Some(12.0)),
    ("sim:8,200us,limit=10000/s", 10_000.0, None),
    ("sim:16,1ms,limit=2000/s", 2_000.0, None),
    ("sim:3,250us,limit=9000/s", 9_000.0, None),
];

/// Max IOPS and the knee.
pub(crate) fn maximum(bench: &Bench) -> Result<(), String> {
    let (mut figures, mut knees, mut said) = (Vec::new(), Vec::new(), Vec::new());
    for (row, (target, truth, truth_of_knee)) in DEVICES.into_iter().enumerate() {
        let runs = bench.each(row, |_| format!("calibrate {target}"))?;
        let is_capped = |run: &&Value| lookup::notes(run).contains("cap");
        let (capped, free): (Vec<&Value>, Vec<&Value>) = runs.iter().partition(is_capped);
        let all = runs.iter().collect();
        for (name, runs) in [("all", all), ("cap named", capped), ("no cap named", free)] {
            let mut tally = Tally::default();
            runs.iter()
                .for_each(|run| tally.add(lookup::maximum(run), truth));
            figures.push(format!(
                "{target} | {name} | {truth:.0}/s | {}",
                tally.cells()
            ));
        }
        knees.push(format!("{target} | {}", knee_cells(&runs, truth_of_knee)));
        said.push(format!("{target} | {}", Said::of(&runs).cells()));
    }
    head(
        "maximum: max IOPS",
        "`rigel calibrate TARGET`. Truth: servers / service time, or the limit. The runs that name a \
         cap pool their level points.",
        &format!("target | runs | truth | {}", Tally::HEAD),
    );
    rows(&figures);
    head(
        "maximum: the knee",
        "The documents call the knee the lowest measured load whose throughput is close to the \
         maximum: within the precision, 2 %. For exponential servers that is their number.",
        KNEE_HEAD,
    );
    rows(&knees);
    table::said("maximum", &said);
    Ok(())
}

const KNEE_HEAD: &str =
    "target | truth | right | distribution | range holds it | median width of range";

fn knee_cells(runs: &[Value], truth: Option<f64>) -> String {
    let found: Vec<Printed> = runs.iter().filter_map(knee).collect();
    let all = count(&found, |_| true);
    let ranges: Vec<Printed> = found
        .iter()
        .filter(|it| it.low.is_some())
        .copied()
        .collect();
    let width = |it: &Printed| Some(it.high? - it.low?);
    let widths: Vec<f64> = ranges.iter().filter_map(width).collect();
    let is_right = |it: &Printed| truth.is_some_and(|truth| (it.value - truth).abs() < 0.01);
    let holds = |it: &Printed| {
        let (low, high) = (it.low.unwrap_or(0.0), it.high.unwrap_or(f64::INFINITY));
        truth.is_some_and(|truth| low <= truth && truth <= high)
    };
    let known = |cell: String| if truth.is_some() { cell } else { "-".into() };
    format!(
        "{} | {} | {} | {} | {}",
        truth.map_or("-".into(), |truth| truth.to_string()),
        known(share(count(&found, is_right), all)),
        distribution(found.iter().map(|it| it.value)),
        known(share(count(&ranges, holds), count(&ranges, |_| true))),
        median(&widths).map_or("-".into(), |width| width.to_string())
    )
}

fn count<T>(of: &[T], is: impl Fn(&T) -> bool) -> u32 {
    of.iter().map(|one| u32::from(is(one))).sum()
}

/// Devices of the kinds that there are, a bound for each, and the load that is enough for the maximum.
const BOUNDED: [(&str, &str, Option<f64>); 11] = [
    ("sim:3,2500us", "20ms@p99", Some(3.0)),
    ("sim:1,1ms", "10ms@p99", Some(1.0)),
    ("sim:3,250us", "3ms@p99.9", Some(3.0)),
    ("sim:8,200us,slow=2ms@5%", "5ms@p99", Some(8.0)),
    ("sim:4,1ms,fixed", "4ms@p99", Some(4.0)),
    ("sim:16,1ms,limit=2000/s", "20ms@p99", None),
    ("sim:48,2ms", "12ms@p99", Some(48.0)),
    ("sim:2,8ms", "80ms@p99", Some(2.0)),
    ("sim:4,250us,slow=50ms@0.2%", "60ms@p99.9", Some(4.0)),
    ("sim:4,250us,stall=100ms/12s", "20ms@p99", Some(4.0)),
    ("sim:8,500us,limit=12000/s+300000", "20ms@p99", None),
];

/// The greatest rate within a bound on response time, and beside it max IOPS and the knee.
pub(crate) fn sustained(bench: &Bench) -> Result<(), String> {
    let (mut rates, mut maxima, mut knees, mut said) = (vec![], vec![], vec![], vec![]);
    for (row, (target, bound, truth_of_knee)) in BOUNDED.into_iter().enumerate() {
        let spec = modelled::spec(target);
        let of_bound = bound.parse().map_err(|error| format!("{bound}: {error}"))?;
        let device = Device::of(&spec, SMALL);
        let truth = device.greatest_rate(of_bound, EXACTLY);
        let truth = truth.ok_or(format!("{target} never keeps {bound}"))?;
        let runs = bench.each(row, |_| format!("calibrate {target} --max-latency {bound}"))?;
        let found: Vec<Printed> = runs.iter().filter_map(lookup::sustained).collect();
        let mut tally = Tally::default();
        runs.iter()
            .for_each(|run| tally.add(lookup::sustained(run), truth));
        let ratios: Vec<f64> = found.iter().map(|it| it.value / truth).collect();
        let number = ratios.len().max(1) as f64;
        let mean = ratios.iter().sum::<f64>() / number;
        let squares: f64 = ratios.iter().map(|ratio| (ratio - mean).powi(2)).sum();
        rates.push(format!(
            "{target} | {bound} | {truth:.0}/s | {} | {mean:.3} ± {:.3} | {}",
            share(count(&found, |_| true), bench.runs()),
            (squares / number).sqrt(),
            tally.cells()
        ));
        let (truth, mut tally) = (device.capacity(), Tally::default());
        runs.iter()
            .for_each(|run| tally.add(lookup::maximum(run), truth));
        maxima.push(format!(
            "{target} | {:.0}/s | {}",
            truth.middle(),
            tally.cells()
        ));
        knees.push(format!("{target} | {}", knee_cells(&runs, truth_of_knee)));
        said.push(format!("{target} | {}", Said::of(&runs).cells()));
    }
    head(
        "sustained: the greatest rate within a bound",
        "`rigel calibrate TARGET --max-latency BOUND`. Truth: the rate at which the tail of M/M/c \
         meets the bound, or a simulation's. The range is from the rate that met it to the lowest that \
         did not, or the printed one.",
        &format!(
            "target | bound | truth | given | mean / truth ± deviation | {}",
            Tally::HEAD
        ),
    );
    rows(&rates);
    head(
        "sustained: max IOPS",
        "Of the same runs.",
        &format!("target | truth | {}", Tally::HEAD),
    );
    rows(&maxima);
    head("sustained: the knee", "Of the same runs.", KNEE_HEAD);
    rows(&knees);
    table::said("sustained", &said);
    Ok(())
}

/// Which warnings steady devices raise, and which a device that stalls.
pub(crate) fn warnings(bench: &Bench) -> Result<(), String> {
    head(
        "warnings: of devices in one state, and of one that stands still 100 ms of every second",
        "Any warning about the first ones is a false alarm; the others should raise one.",
        &format!("command | {}", Said::HEAD),
    );
    let stalls = "sim:3,250us,stall=100ms/1s";
    let steady = ["sim:1,5ms", "sim:3,2500us", "sim:3,250us", "sim:8,100us"];
    let mut commands: Vec<String> = steady.iter().map(|it| format!("calibrate {it}")).collect();
    for rate in [3_600, 7_200, 10_800, 11_400] {
        commands.push(format!("curve sim:3,250us --rate {rate}"));
    }
    commands.push("curve sim:3,250us --depth 1..8".into());
    commands.push(format!("calibrate {stalls}"));
    commands.extend([3_600, 7_200].map(|rate| format!("curve {stalls} --rate {rate}")));
    commands.push(format!("curve {stalls} --depth 1..8"));
    for (row, words) in commands.into_iter().enumerate() {
        let runs = bench.each(row, |_| words.clone())?;
        rows(&[format!("{words} | {}", Said::of(&runs).cells())]);
    }
    Ok(())
}
