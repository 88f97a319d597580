//! The knee of a curve that another tool measured, or that reports of a database make: from its
//! loads, which have no intervals.

use super::series::imported::LoadFigures;
use rigel_stats::knee::{CurvePoint, knee};
use rigel_stats::mean::Mean;
use serde::Serialize;

/// Two throughputs are the same within this part: a load that was measured once has no interval.
pub const MARGIN: f64 = 0.05;

/// The lowest load from which on throughput no longer rises by more than [`MARGIN`].
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ReportedKnee {
    /// The load, in the source's words: `16 sessions`.
    pub label: String,
    /// Operations per second there.
    pub iops: f64,
    /// Mean response time there.
    pub mean_us: f64,
    /// Mean of the throughput from there on.
    pub plateau_iops: f64,
    /// True if a higher load only waited longer, so that the knee is known to be there.
    pub is_reached: bool,
    /// True if it is the highest load: throughput may rise beyond it.
    pub is_highest: bool,
}

/// The knee of these loads; `None` unless they are one curve: four or more, each with another
/// number of outstanding operations, throughput and mean, and all of the same kind.
pub fn reported_knee(loads: &[&LoadFigures]) -> Option<ReportedKnee> {
    const LOADS_MIN: usize = 4;
    let first = loads.first()?;
    let is_alike = |load: &&LoadFigures| {
        (&load.class, &load.kind, load.io_bytes) == (&first.class, &first.kind, first.io_bytes)
    };
    let point = |load: &&LoadFigures| {
        let iops = load.iops.filter(|iops| *iops > 0.0)?;
        Some(CurvePoint {
            load: f64::from(load.outstanding?),
            throughput: Mean {
                value: iops,
                error: 0.0,
                effective_n: 1.0,
                degrees: f64::INFINITY,
            },
            response: load.latency.mean_us? / 1e6,
        })
    };
    let points: Vec<CurvePoint> = loads.iter().map(point).collect::<Option<_>>()?;
    let mut outstanding: Vec<Option<u32>> = loads.iter().map(|load| load.outstanding).collect();
    outstanding.sort_unstable();
    outstanding.dedup();
    let is_curve = outstanding.len() == loads.len() && loads.len() >= LOADS_MIN;
    if !is_curve || !loads.iter().all(is_alike) {
        return None;
    }
    let knee = knee(&points, MARGIN)?;
    let load = loads
        .iter()
        .find(|load| load.outstanding.map(f64::from) == Some(knee.load))?;
    let has_own_name = loads[1..].iter().all(|load| load.label != first.label);
    let name = if has_own_name {
        &load.label
    } else {
        &load.load
    };
    Some(ReportedKnee {
        label: name.clone(),
        iops: load.iops?,
        mean_us: load.latency.mean_us?,
        plateau_iops: knee.plateau.throughput,
        is_reached: knee.bounded_above,
        is_highest: Some(&load.outstanding) == outstanding.last(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::latency::LatencySummary;
    use crate::series::imported::imported;
    use rigel_import::{Source, csv_columns::Columns, read};

    /// Loads of a device with `servers` of 1 ms each, as fio reports them.
    fn loads(depths: &[u32], servers: u32) -> Vec<LoadFigures> {
        let example = Source {
            name: "fio.json",
            text: include_str!("../../../tests/imports/fio_depth8_plus.json"),
        };
        let example = read(&[example], None, &Columns::default()).unwrap();
        let example = imported(&example[0]).loads.remove(0);
        let load = |depth: &u32| {
            let iops = f64::from((*depth).min(servers)) * 1000.0;
            LoadFigures {
                load: format!("depth {depth}"),
                outstanding: Some(*depth),
                iops: Some(iops),
                latency: LatencySummary {
                    mean_us: Some(f64::from(*depth) / iops * 1e6),
                    ..LatencySummary::default()
                },
                ..example.clone()
            }
        };
        depths.iter().map(load).collect()
    }

    fn of(loads: &[LoadFigures]) -> Option<ReportedKnee> {
        reported_knee(&loads.iter().collect::<Vec<_>>())
    }

    #[test]
    fn throughput_rises_up_to_the_knee_and_latency_from_there() {
        let found = of(&loads(&[32, 1, 2, 4, 8, 16], 8)).unwrap();
        assert_eq!((found.label.as_str(), found.is_reached), ("depth 8", true));
        assert!((found.plateau_iops - 8000.0).abs() < 1e-6, "{found:?}");
        let rising = of(&loads(&[1, 2, 4, 8], 8)).unwrap();
        assert_eq!(
            (rising.label.as_str(), rising.is_reached),
            ("depth 8", false)
        );
    }

    #[test]
    fn what_is_no_single_curve_has_no_knee() {
        assert_eq!(of(&loads(&[1, 2, 4], 8)), None);
        assert_eq!(of(&loads(&[1, 2, 2, 4, 8], 8)), None);
        let mut mixed = loads(&[1, 2, 4, 8], 4);
        mixed[2].kind = "write".into();
        assert_eq!(of(&mixed), None);
    }
}
