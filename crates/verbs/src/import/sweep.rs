//! Charts of a sweep over outstanding operations and processes: curves, and heat maps.

use rigel_analyse::LoadFigures;
use rigel_report::document::{Axis, Chart, Heat, Lines, Plot, Section, Series, Shape, Unit};
use rigel_report::parts;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Minimum number of loads: two points are no curve.
const LOADS_MIN: usize = 3;

/// Maximum number of columns and of rows of a heat map with values in its cells.
const WRITTEN_MAX: usize = 8;

/// Maximum number of cells of a heat map: those of loads that share neither row nor column would be the
/// square of their number.
const CELLS_MAX: usize = 10_000;

type FigureOf = fn(&LoadFigures) -> Option<f64>;

/// The loads of one kind of work that differ in outstanding operations and processes alone.
struct Sweep<'a> {
    work: String,
    loads: Vec<SweptLoad<'a>>,
}

struct SweptLoad<'a> {
    processes: u32,
    /// Outstanding operations of each process.
    depth: u32,
    figures: &'a LoadFigures,
}

/// The section of all sweeps in `loads`; `None` if there is none.
pub(super) fn section(loads: &[&LoadFigures]) -> Option<Section> {
    let mut blocks = Vec::new();
    for (number, sweep) in sweeps(loads).iter().enumerate() {
        let id = |what: &str| format!("sweep-{}-{what}", number + 1);
        let (latency, of): (&str, FigureOf) = if sweep
            .loads
            .iter()
            .any(|load| load.figures.latency.p99_us.is_some())
        {
            ("p99", |load| load.latency.p99_us)
        } else {
            ("Mean latency", |load| load.latency.mean_us)
        };
        let title = |what: &str| format!("{what} of {}", sweep.work);
        blocks.extend(parts::beside([
            sweep.throughput(&id("throughput"), &title("Throughput")),
            sweep.latency(&id("latency"), &title(latency), of),
        ]));
        blocks.extend(parts::beside([
            sweep.heat(
                &id("iops"),
                &title("IOPS"),
                |load| load.iops,
                Unit::PerSecond,
            ),
            sweep.heat(&id("heat"), &title(latency), of, Unit::Microseconds),
        ]));
    }
    let lead = "Each line is a number of processes; the columns of the heat maps are outstanding \
                operations of each process. There are no intervals: a difference may be chance.";
    (!blocks.is_empty()).then(|| parts::section("sweep", "Sweep", lead, blocks))
}

/// The sweeps in `loads`, by the name of the job, kind and size of the operations.
fn sweeps<'a>(loads: &[&'a LoadFigures]) -> Vec<Sweep<'a>> {
    let mut sweeps: Vec<Sweep> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for load in loads {
        let (Some(outstanding), Some(processes)) = (load.outstanding, load.processes) else {
            continue;
        };
        let size = load
            .io_bytes
            .map_or_else(String::new, |size| format!(" of {}", parts::size(size)));
        let kind = if load.kind == "mixed" {
            "reads and writes".to_string()
        } else {
            format!("{}s", load.kind)
        };
        let work = format!("{}: {kind}{size}", load.label);
        let swept = SweptLoad {
            processes,
            depth: outstanding / processes.max(1),
            figures: load,
        };
        let place = *places.entry(work).or_insert_with_key(|work| {
            sweeps.push(Sweep {
                work: work.clone(),
                loads: Vec::new(),
            });
            sweeps.len() - 1
        });
        sweeps[place].loads.push(swept);
    }
    sweeps.retain(|sweep| {
        let cells: BTreeSet<(u32, u32)> = sweep
            .loads
            .iter()
            .map(|load| (load.processes, load.depth))
            .collect();
        cells.len() >= LOADS_MIN
    });
    sweeps
}

impl Sweep<'_> {
    fn processes(&self) -> BTreeSet<u32> {
        self.loads.iter().map(|load| load.processes).collect()
    }

    fn depths(&self) -> BTreeSet<u32> {
        self.loads.iter().map(|load| load.depth).collect()
    }

    /// A series for each number of processes, of the figures that are known.
    fn series(
        &self,
        shape: Shape,
        x: &dyn Fn(&SweptLoad) -> Option<f64>,
        y: FigureOf,
    ) -> Vec<Series> {
        let mut by_processes: BTreeMap<u32, Vec<&SweptLoad>> = BTreeMap::new();
        for load in &self.loads {
            by_processes.entry(load.processes).or_default().push(load);
        }
        let of = |(processes, loads): (u32, Vec<&SweptLoad>)| {
            let mut points: Vec<(f64, f64, String)> = loads
                .into_iter()
                .filter_map(|load| {
                    let label = format!("{} of each process", load.depth);
                    Some((x(load)?, y(load.figures)?, label))
                })
                .collect();
            points.sort_by(|one, other| one.0.total_cmp(&other.0));
            Series {
                name: if processes == 1 {
                    "1 process".into()
                } else {
                    format!("{processes} processes")
                },
                shape,
                x: points.iter().map(|point| point.0).collect(),
                y: points.iter().map(|point| Some(point.1)).collect(),
                labels: points.into_iter().map(|point| point.2).collect(),
                ..Series::default()
            }
        };
        let mut series: Vec<Series> = by_processes.into_iter().map(of).collect();
        series.retain(|series| !series.x.is_empty());
        series
    }

    /// Operations per second over outstanding operations of all processes.
    fn throughput(&self, id: &str, title: &str) -> Option<Chart> {
        let outstanding = |load: &SweptLoad| load.figures.outstanding.map(f64::from);
        let lines = Lines {
            x: Axis {
                label: "outstanding operations of all processes".into(),
                log: true,
                ..Axis::default()
            },
            y: Axis {
                label: "IOPS".into(),
                unit: Unit::PerSecond,
                ..Axis::default()
            },
            series: self.series(Shape::Line, &outstanding, |load| load.iops),
            ..Lines::default()
        };
        let best = self.extreme(|load| load.iops)?;
        let description = format!(
            "{title}: at most {} per second, at {}.",
            parts::count(best.figures.iops?),
            best.figures.load
        );
        Some(parts::chart(id, title, description, Plot::Lines(lines)))
    }

    /// Latency over operations per second. Points are not joined: beyond its maximum the throughput
    /// falls while the latency rises.
    fn latency(&self, id: &str, title: &str, of: FigureOf) -> Option<Chart> {
        let series = self.series(Shape::Points, &|load| load.figures.iops, of);
        let lines = parts::latency_over_iops(series);
        if lines.series.is_empty() {
            return None;
        }
        let most = self.extreme(of)?;
        let description = format!(
            "{title}: at most {}, at {}.",
            parts::time(of(most.figures)?),
            most.figures.load
        );
        let title = format!("{title} against throughput");
        Some(parts::chart(id, &title, description, Plot::Lines(lines)))
    }

    /// The load with the maximum of a figure.
    fn extreme(&self, of: FigureOf) -> Option<&SweptLoad<'_>> {
        let figures = self
            .loads
            .iter()
            .filter_map(|load| Some((of(load.figures)?, load)));
        figures
            .max_by(|one, other| one.0.total_cmp(&other.0))
            .map(|(_, load)| load)
    }

    /// The figure by outstanding operations of each process and processes; `None` if one of them
    /// does not vary.
    fn heat(&self, id: &str, title: &str, of: FigureOf, unit: Unit) -> Option<Chart> {
        let (columns, rows) = (self.depths(), self.processes());
        if columns.len() < 2 || rows.len() < 2 || columns.len() * rows.len() > CELLS_MAX {
            return None;
        }
        // Of a load that was measured several times, the last one counts.
        let loads = self.loads.iter();
        let loads: HashMap<(u32, u32), &LoadFigures> = loads
            .map(|load| ((load.processes, load.depth), load.figures))
            .collect();
        let value = |processes: u32, depth: u32| of(loads.get(&(processes, depth))?);
        let values: Vec<Vec<Option<f64>>> = rows
            .iter()
            .map(|row| columns.iter().map(|column| value(*row, *column)).collect())
            .collect();
        let count = values.iter().flatten().flatten().count();
        if count == 0 {
            return None;
        }
        let heat = Heat {
            x_label: "outstanding operations of each process".into(),
            y_label: "processes".into(),
            written: columns.len() <= WRITTEN_MAX && rows.len() <= WRITTEN_MAX,
            columns: columns.iter().map(ToString::to_string).collect(),
            rows: rows.iter().map(ToString::to_string).collect(),
            values,
            unit,
            label: title.into(),
            log: unit == Unit::Microseconds,
            ..Heat::default()
        };
        let description = format!("{title}: {count} combinations.");
        Some(parts::chart(id, title, description, Plot::Heat(heat)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::imported;
    use rigel_import::{Source, csv_columns::Columns, read};
    use rigel_report::document::Block;

    /// The loads of a sweep that delivers 1000 operations per second for each outstanding one.
    fn loads() -> Vec<LoadFigures> {
        const ONE: &str = include_str!("../../../../tests/imports/fio_depth8_plus.json");
        let files: Vec<(String, String)> = [(1, 1), (4, 1), (1, 2), (4, 2)]
            .into_iter()
            .map(|(depth, jobs)| {
                let options = format!("\"iodepth\": \"{depth}\", \"numjobs\": \"{jobs}\"");
                let rate = format!("\"iops\": {}.0", depth * jobs * 1000);
                let text = ONE
                    .replace("\"iodepth\": \"8\"", &options)
                    .replace("\"iops\": 55479.76012", &rate);
                assert!(text.contains(&options) && text.contains(&rate));
                (format!("read-{depth}-{jobs}.json"), text)
            })
            .collect();
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source { name, text })
            .collect();
        let found = read(&sources, None, &Columns::default()).unwrap();
        assert_eq!(found.len(), 1);
        imported(&found[0]).loads
    }

    fn plots(loads: &[LoadFigures]) -> Vec<Plot> {
        let loads: Vec<&LoadFigures> = loads.iter().collect();
        let blocks = section(&loads).map_or(Vec::new(), |section| section.blocks);
        let charts = blocks.into_iter().flat_map(|block| match block {
            Block::Beside(blocks) => blocks,
            block => vec![block],
        });
        charts
            .filter_map(|block| match block {
                Block::Chart(chart) => Some(chart.plot),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn a_sweep_has_a_line_for_each_number_of_processes_and_a_heat_map() {
        let plots = plots(&loads());
        let [
            Plot::Lines(rates),
            Plot::Lines(times),
            Plot::Heat(heat),
            Plot::Heat(_),
        ] = &plots[..]
        else {
            panic!("{plots:?}")
        };
        let names: Vec<&str> = rates.series.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["1 process", "2 processes"]);
        let [one, two] = &rates.series[..] else {
            panic!("{rates:?}")
        };
        assert_eq!((&one.x[..], &two.x[..]), (&[1.0, 4.0][..], &[2.0, 8.0][..]));
        assert_eq!(one.y, [Some(1000.0), Some(4000.0)]);
        assert_eq!(two.y, [Some(2000.0), Some(8000.0)]);
        assert_eq!(times.series.len(), 2);
        assert_eq!(
            (heat.columns.clone(), heat.rows.clone()),
            (
                vec!["1".to_string(), "4".into()],
                vec!["1".to_string(), "2".into()]
            )
        );
        assert_eq!(
            heat.values,
            [[Some(1000.0), Some(4000.0)], [Some(2000.0), Some(8000.0)]]
        );
    }

    #[test]
    fn one_number_of_processes_has_curves_alone_and_two_loads_have_nothing() {
        let mut all = loads();
        all.retain(|load| load.processes == Some(1));
        assert!(plots(&all).is_empty());
        let mut third = all[0].clone();
        third.outstanding = Some(16);
        all.push(third);
        let plots = plots(&all);
        assert!(
            matches!(plots[..], [Plot::Lines(_), Plot::Lines(_)]),
            "{plots:?}"
        );
    }
}
