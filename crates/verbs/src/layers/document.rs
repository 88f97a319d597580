//! The report of the layers from storage to a row: a table for each number of sessions, and the
//! differences between layers.

use super::request::LayersRequest;
use super::result::{LayerFigures, LayerStep, LayerTable, LayersResult};
use rigel_model::Layer;
use rigel_model::record::journal::Run;
use rigel_report::columns::TableOf;
use rigel_report::document::{
    Axis, Block, Document, Headline, Lines, Plot, Section, Series, Shape, Unit,
};
use rigel_report::frame::about_server;
use rigel_report::parts::Amount;
use rigel_report::points::{self, Units};
use rigel_report::{parts, setup, timeline};

/// What the columns of the tables mean.
const LEGEND: [&str; 4] = [
    "From storage: bytes that the kernel counted as read from storage, as a share of the blocks' \
     bytes: of raw I/O by the disks' counters, of the database by its processes'. Below 100 % a \
     cache served the rest; above it, more was read than requested.",
    "p50 and p99 are of a block; of the database, those of a statement divided by its blocks.",
    "Waiting: the part of a longer time that CPU time does not explain: for storage, or for a CPU that others use.",
    "CPU: seconds per million blocks, which is microseconds per block, user and system. The \
     client is this process; kernel threads and interrupts count for neither.",
];

/// Completes `frame`, which has the heading and the conclusion.
pub(super) fn document(
    run: &Run,
    result: &LayersResult,
    findings: Section,
    frame: Document,
) -> Document {
    let workload = workload(run);
    Document {
        about: about_server(
            &run.header,
            &workload,
            &parts::counted(result.points.len() as u64, "point"),
        ),
        headlines: result
            .widest()
            .map_or_else(Vec::new, |(index, table)| headlines(index, table)),
        sections: sections(run, result, findings, &workload),
        ..frame
    }
}

/// The workload; empty if another verb made the run.
fn workload(run: &Run) -> String {
    let Some(request) = run.header.invocation.asked::<LayersRequest>("layers") else {
        return String::new();
    };
    let rounds = if request.rounds == 1 {
        "once".into()
    } else {
        format!("{} times", request.rounds)
    };
    format!(
        "random reads of {} in the files of the table, each layer {rounds} for {}",
        parts::size(request.block()),
        request.point_time
    )
}

/// How storage is asked, by the layers that can have several I/Os outstanding.
struct LayerWays {
    /// The engine of the first layer; empty if another verb made the run.
    asynchronous: String,
    /// What the server reads ahead with.
    ahead: String,
}

impl LayerWays {
    fn of(run: &Run) -> Self {
        let request: Option<LayersRequest> = run.header.invocation.asked("layers");
        let asynchronous = request.map_or_else(String::new, |request| request.asynchronous);
        let server = run.header.facts.server.as_ref();
        let method = server.and_then(|server| server.settings.get("io_method"));
        let ahead = match method {
            Some(method) => format!("io_method {method}"),
            // PostgreSQL 16 and 17 with direct I/O: advice is for the page cache.
            None if server.is_some_and(|server| server.direct) => "not with direct I/O".into(),
            None => "posix_fadvise".into(),
        };
        Self {
            asynchronous,
            ahead,
        }
    }
}

fn headlines(index: usize, table: &LayerTable) -> Vec<Headline> {
    let mut figures = Vec::new();
    let index_of = |layer: Layer| {
        table
            .layers
            .iter()
            .position(|figures| figures.layer == layer)
    };
    for (layer, label) in [
        (Layer::Async, "raw blocks/s"),
        (Layer::Row, "blocks/s as rows"),
    ] {
        if let Some(at) = index_of(layer) {
            let figures_of = &table.layers[at];
            let name = format!("layers.tables.{index}.layers.{at}.blocks_per_s.value");
            let note = format!("layer {}, {} outstanding", layer.number(), table.sessions);
            figures.push(parts::rate(&name, label, figures_of.blocks_per_s, note));
        }
    }
    if let Some(at) = index_of(Layer::Row) {
        let row = &table.layers[at];
        let path = format!("layers.tables.{index}.layers.{at}");
        if let Some(share) = row.share_of_first {
            let name = format!("{path}.share_of_first.value");
            let note = "blocks read as rows, as a share of those by raw I/O".to_string();
            figures.push(parts::headline(
                &name,
                "share of raw I/O",
                share.value,
                parts::percent(share.value),
                Amount::new(share, Unit::Percent).range(),
                note,
            ));
        }
        if let Some(blocks) = row.blocks_per_cpu_s {
            let name = format!("{path}.blocks_per_cpu_s");
            let note = "client and server together, as rows".to_string();
            figures.push(parts::headline(
                &name,
                "blocks per CPU second",
                blocks,
                parts::count(blocks),
                String::new(),
                note,
            ));
        }
    }
    figures
}

fn sections(run: &Run, result: &LayersResult, findings: Section, workload: &str) -> Vec<Section> {
    let mut blocks: Vec<Block> = parts::beside([drawn(run, result), cpu(run, result)])
        .into_iter()
        .collect();
    for table in &result.tables {
        blocks.push(figures_table(&LayerWays::of(run), table));
        let caption = format!("Where the rest went, {} outstanding", table.sessions);
        blocks.push(steps(&caption, table));
    }
    blocks.extend(LEGEND.map(|text| Block::Text(text.into())));
    let lead = "The same blocks by raw I/O and through a database, layer by layer.";
    let mut sections = vec![
        parts::on_screen(parts::section("layers", "Layer by layer", lead, blocks)),
        findings,
    ];
    let units = Units::of("op/s");
    sections.extend(timeline::section(run, units));
    sections.push(points::section(run, &result.points, units));
    sections.push(setup::section(&run.header, workload));
    sections
}

/// The two layers of each step: the share of the blocks that is left, how much longer a session
/// takes for a block, how much of that is CPU time and how much waiting, and what lies between the
/// layers.
fn steps(caption: &str, table: &LayerTable) -> Block {
    let more = |us: f64| {
        format!(
            "{}{}",
            if us < 0.0 { "-" } else { "+" },
            parts::time(us.abs())
        )
    };
    TableOf::of(caption, &table.steps)
        .text("layers", |step| {
            format!("{} to {}", step.from.number(), step.to.number())
        })
        .percent("blocks (95 %)", |step| step.blocks_share)
        .number("time per block", |step| more(step.time_us))
        .number("client CPU", |step| more(step.client_cpu_us))
        .number("server CPU", |step| {
            parts::known(step.server_cpu_us.filter(|_| step.to.is_database()), more)
        })
        .number("waiting", |step| parts::known(waiting(step, table), more))
        .text("between them", |step| step.between())
        .block()
}

/// The part of a longer time that CPU time does not explain, in microseconds: waiting for storage,
/// or for a CPU that others use. `None` if it is within the precision of the rates.
fn waiting(step: &LayerStep, table: &LayerTable) -> Option<f64> {
    let cpu = step.client_cpu_us + step.server_cpu_us?;
    let rest = step.time_us - cpu.max(0.0);
    let whole = table
        .layers
        .iter()
        .find(|figures| figures.layer == step.to)?;
    let at_a_block = f64::from(table.sessions) * 1e6 / whole.blocks_per_s.value.max(1e-9);
    (rest > at_a_block / 10.0).then_some(rest)
}

/// `1 raw, asynchronous (uring)`.
fn name(figures: &LayerFigures, ways: &LayerWays) -> String {
    let of_statement = format!("{} per statement", figures.blocks_per_operation);
    let name = match figures.layer {
        Layer::Async => format!("raw, asynchronous ({})", ways.asynchronous),
        Layer::Sync => "raw, a thread each (psync)".into(),
        Layer::File => "database, no buffer cache".into(),
        Layer::Row => "database, through buffer cache".into(),
        Layer::Prefetch => format!("read ahead ({})", ways.ahead),
        Layer::Single => format!("the same, {of_statement}"),
    };
    format!("{} {name}", figures.layer.number())
}

/// The position of a layer on an axis.
fn place(layer: Layer) -> f64 {
    Layer::ALL
        .iter()
        .position(|known| *known == layer)
        .map_or(0.0, |at| (at + 1) as f64)
}

fn drawn(run: &Run, result: &LayersResult) -> Option<rigel_report::document::Chart> {
    let ways = LayerWays::of(run);
    let series: Vec<Series> = result
        .tables
        .iter()
        .map(|table| Series {
            name: format!("{} outstanding", table.sessions),
            shape: if result.tables.len() == 1 {
                Shape::Bars
            } else {
                Shape::Line
            },
            x: table
                .layers
                .iter()
                .map(|figures| place(figures.layer))
                .collect(),
            y: table
                .layers
                .iter()
                .map(|figures| Some(figures.blocks_per_s.value))
                .collect(),
            band: table
                .layers
                .iter()
                .map(|figures| figures.blocks_per_s.interval)
                .collect(),
            labels: table
                .layers
                .iter()
                .map(|figures| name(figures, &ways))
                .collect(),
            ..Series::default()
        })
        .collect();
    over_layers(
        "layers-blocks",
        "Blocks per second",
        "blocks/s",
        Unit::PerSecond,
        series,
    )
}

fn cpu(run: &Run, result: &LayersResult) -> Option<rigel_report::document::Chart> {
    let ways = LayerWays::of(run);
    let table = result.widest()?.1;
    let x: Vec<f64> = table
        .layers
        .iter()
        .map(|figures| place(figures.layer))
        .collect();
    let labels: Vec<String> = table
        .layers
        .iter()
        .map(|figures| name(figures, &ways))
        .collect();
    let stacked = |name: &str, of: fn(&LayerFigures) -> f64| Series {
        name: name.into(),
        shape: Shape::Bars,
        x: x.clone(),
        y: table
            .layers
            .iter()
            .map(|figures| Some(of(figures)))
            .collect(),
        labels: labels.clone(),
        ..Series::default()
    };
    // Bars overlap: the sum is behind, a part of it in front.
    let series = vec![
        stacked("client and server", |figures| {
            figures.client_cpu_us + figures.server_cpu_us.unwrap_or(0.0)
        }),
        stacked("of that the client, Rigel", |figures| figures.client_cpu_us),
    ];
    let title = format!("CPU time per block, {} outstanding", table.sessions);
    over_layers(
        "layers-cpu",
        &title,
        "CPU time per block",
        Unit::Microseconds,
        series,
    )
}

fn over_layers(
    id: &str,
    title: &str,
    label: &str,
    unit: Unit,
    series: Vec<Series>,
) -> Option<rigel_report::document::Chart> {
    let most = series
        .iter()
        .flat_map(|series| &series.y)
        .flatten()
        .copied()
        .fold(0.0, f64::max);
    let figure = |value: f64| {
        if unit == Unit::Microseconds {
            parts::time(value)
        } else {
            parts::count(value)
        }
    };
    let described: Vec<String> = series
        .iter()
        .map(|series| {
            let figures: Vec<String> = series
                .y
                .iter()
                .flatten()
                .map(|value| figure(*value))
                .collect();
            format!("{} {}", series.name, figures.join(", "))
        })
        .collect();
    let last = series
        .iter()
        .flat_map(|series| &series.x)
        .copied()
        .fold(0.0, f64::max);
    let lines = Lines {
        x: Axis {
            label: "1 raw, 2 a thread each, 3 database without buffer cache, 4 through it, 5 one row per statement"
                .into(),
            range: Some((0.4, last + 0.6)),
            ..Axis::default()
        },
        y: Axis {
            label: label.into(),
            unit,
            range: Some((0.0, most * 1.05)),
            ..Axis::default()
        },
        series,
        ..Lines::default()
    };
    (most > 0.0).then(|| {
        parts::chart(
            id,
            title,
            format!("Layer by layer: {}.", described.join("; ")),
            Plot::Lines(lines),
        )
    })
}

fn figures_table(ways: &LayerWays, table: &LayerTable) -> Block {
    TableOf::of(&format!("{} outstanding", table.sessions), &table.layers)
        .text("layer", |figures| name(figures, ways))
        .count("blocks/s", |figures| figures.blocks_per_s.value)
        .precision("±", |figures| figures.blocks_per_s)
        .percent("of the first", |figures| figures.share_of_first)
        .on_page()
        .percent("from storage", |figures| figures.storage_share)
        .time("p50", |figures| figures.p50_us)
        .time("p99", |figures| figures.p99_us)
        .number("CPU s per million", |figures| {
            parts::known(figures.cpu_s_per_million, |seconds| format!("{seconds:.1}"))
        })
        .on_page()
        .time("client", |figures| figures.client_cpu_us)
        .time("server", |figures| figures.server_cpu_us)
        .count("per CPU s", |figures| figures.blocks_per_cpu_s)
        .block()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{golden, screen};
    use rigel_analyse::{Estimate, Limits};
    use rigel_report::document::Extent;
    use rigel_report::text;

    fn figures(layer: Layer, rate: f64, client: f64, server: Option<f64>) -> LayerFigures {
        let cpu = if layer.is_database() {
            server.map(|server| server + client)
        } else {
            Some(client)
        };
        LayerFigures {
            layer,
            blocks_per_s: Estimate::new(
                rate,
                Some(Limits {
                    low: rate * 0.99,
                    high: Some(rate * 1.01),
                }),
            ),
            rounds: vec![rate],
            blocks_per_operation: if layer.is_database() && layer != Layer::Single {
                64.0
            } else {
                1.0
            },
            share_of_first: Some(Estimate::from(rate / 40_000.0)),
            storage_share: Some(1.0),
            buffer_cache_share: None,
            p50_us: Some(16e6 / rate),
            p99_us: Some(32e6 / rate),
            client_cpu_us: client,
            server_cpu_us: server,
            cpu_s_per_million: cpu,
            blocks_per_cpu_s: cpu.map(|cpu| 1e6 / cpu),
            cpus_busy: cpu.map(|cpu| cpu * rate / 1e6),
        }
    }

    fn between(from: &LayerFigures, to: &LayerFigures) -> LayerStep {
        let time = |figures: &LayerFigures| 16e6 / figures.blocks_per_s.value;
        let server = |figures: &LayerFigures| {
            if figures.layer.is_database() {
                figures.server_cpu_us
            } else {
                Some(0.0)
            }
        };
        LayerStep {
            from: from.layer,
            to: to.layer,
            blocks_share: to.blocks_per_s.over(from.blocks_per_s),
            time_us: time(to) - time(from),
            client_cpu_us: to.client_cpu_us - from.client_cpu_us,
            server_cpu_us: server(to).zip(server(from)).map(|(to, from)| to - from),
        }
    }

    #[test]
    fn the_table_has_every_layer_and_what_is_between_them() {
        let layers = vec![
            figures(Layer::Async, 40_000.0, 4.0, None),
            figures(Layer::Sync, 38_000.0, 9.0, None),
            figures(Layer::File, 30_000.0, 0.5, Some(22.0)),
            figures(Layer::Row, 33_000.0, 0.4, Some(18.0)),
            figures(Layer::Prefetch, 36_000.0, 0.4, Some(15.0)),
            figures(Layer::Single, 15_000.0, 20.0, None),
        ];
        let pairs = [(0, 1), (1, 2), (2, 3), (1, 3), (3, 4), (3, 5)];
        let steps = pairs
            .map(|(from, to)| between(&layers[from], &layers[to]))
            .to_vec();
        let table = LayerTable {
            sessions: 16,
            layers,
            steps,
        };
        let ways = LayerWays {
            asynchronous: "uring".into(),
            ahead: "io_method worker".into(),
        };
        let blocks = vec![
            figures_table(&ways, &table),
            super::steps("Where the rest went", &table),
        ];
        let section = parts::section("layers", "Layer by layer", "", blocks);
        let sections = vec![parts::on_screen(section)];
        let document = Document {
            sections,
            ..Document::default()
        };
        let shown = text::render(&document, Extent::Screen);
        screen::must_fit(&shown);
        golden::check("layers.txt", &shown);
        let all = text::render(&document, Extent::Full);
        golden::check("layers.verbose.txt", &all);
    }
}
