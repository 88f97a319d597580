//! The page of the layers from storage to a row.

use super::page::{Axis, Block, Headline, Lines, Page, Plot, Section, Series, Shape, Unit};
use super::{points, setup, throughput, timeline, words};
use crate::analyse::{LayerFigures, LayerStep, LayerTable, LayersResult};
use crate::model::Layer;
use crate::record::journal::Run;
use crate::report::layers;

/// Completes `page`, which has the heading and the conclusion.
pub(super) fn page(run: &Run, found: &LayersResult, findings: Section, page: Page) -> Page {
    let table = found.widest();
    Page {
        figures: table.map_or_else(Vec::new, |(index, table)| figures(index, table)),
        sections: sections(run, found, findings),
        ..page
    }
}

fn figures(index: usize, table: &LayerTable) -> Vec<Headline> {
    let mut figures = Vec::new();
    let at = |layer: Layer| table.layers.iter().position(|figures| figures.layer == layer);
    for (layer, label) in [(Layer::Async, "raw blocks/s"), (Layer::Row, "blocks/s as rows")] {
        if let Some(at) = at(layer) {
            let figures_of = &table.layers[at];
            let name = format!("layers.tables.{index}.layers.{at}.blocks_per_s.value");
            let note = format!("layer {}, {} at a time", layer.number(), table.sessions);
            figures.push(words::rate(&name, label, figures_of.blocks_per_s, note));
        }
    }
    if let Some(at) = at(Layer::Row) {
        let row = &table.layers[at];
        let path = format!("layers.tables.{index}.layers.{at}");
        if let Some(share) = row.share_of_first {
            let name = format!("{path}.share_of_first");
            let note = "blocks read as rows, of those by raw I/O".to_string();
            figures.push(words::headline(
                &name,
                "of the storage used",
                share,
                words::percent(share),
                String::new(),
                note,
            ));
        }
        if let Some(blocks) = row.blocks_per_cpu_s {
            let name = format!("{path}.blocks_per_cpu_s");
            let note = "client and server together, as rows".to_string();
            figures.push(words::headline(
                &name,
                "blocks a CPU second",
                blocks,
                words::count(blocks),
                String::new(),
                note,
            ));
        }
    }
    figures
}

fn sections(run: &Run, found: &LayersResult, findings: Section) -> Vec<Section> {
    let mut blocks: Vec<Block> = throughput::beside([drawn(run, found), cpu(run, found)]).into_iter().collect();
    for table in &found.tables {
        blocks.push(Block::Table(figures_table(run, table)));
        let steps = table.steps.iter().map(|step| step_row(step, table)).collect();
        let caption = format!("Where the rest went, {} at a time", table.sessions);
        blocks.push(Block::Table(words::rows(&caption, &["from layer to layer", "what is between", "so that"], steps)));
    }
    let lead = "The same blocks by raw I/O and through a database, one layer after the other.";
    let mut sections = vec![words::section("layers", "Layer by layer", lead, blocks), findings];
    sections.extend(timeline::section(run, "operations a second"));
    sections.push(points::section(&found.points, "op/s"));
    sections.push(setup::section(&run.header, "random reads of the blocks of the table, by each layer in turn"));
    sections
}

/// The two layers of a step, what lies between them, and its cost, as in the text report.
fn step_row(step: &LayerStep, table: &LayerTable) -> Vec<String> {
    let text = layers::step_line(step, table);
    let costs = text.lines().skip(1).map(str::trim).collect::<Vec<_>>().join("; ");
    vec![format!("{} to {}", step.from.number(), step.to.number()), step.between().into(), costs]
}

/// The position of a layer on an axis.
fn place(layer: Layer) -> f64 {
    Layer::ALL.iter().position(|known| *known == layer).map_or(0.0, |at| (at + 1) as f64)
}

fn drawn(run: &Run, found: &LayersResult) -> Option<super::page::Chart> {
    let asynchronous = layers::asynchronous(run);
    let series: Vec<Series> = found
        .tables
        .iter()
        .map(|table| Series {
            name: format!("{} at a time", table.sessions),
            shape: if found.tables.len() == 1 { Shape::Bars } else { Shape::Line },
            x: table.layers.iter().map(|figures| place(figures.layer)).collect(),
            y: table.layers.iter().map(|figures| Some(figures.blocks_per_s.value)).collect(),
            band: table.layers.iter().map(|figures| figures.blocks_per_s.interval).collect(),
            labels: table.layers.iter().map(|figures| layers::name(figures, &asynchronous)).collect(),
            ..Series::default()
        })
        .collect();
    over_layers("layers-blocks", "Blocks a second", "blocks/s", Unit::PerSecond, series)
}

fn cpu(run: &Run, found: &LayersResult) -> Option<super::page::Chart> {
    let asynchronous = layers::asynchronous(run);
    let table = found.widest()?.1;
    let x: Vec<f64> = table.layers.iter().map(|figures| place(figures.layer)).collect();
    let labels: Vec<String> = table.layers.iter().map(|figures| layers::name(figures, &asynchronous)).collect();
    let stacked = |name: &str, of: fn(&LayerFigures) -> f64| Series {
        name: name.into(),
        shape: Shape::Bars,
        x: x.clone(),
        y: table.layers.iter().map(|figures| Some(of(figures))).collect(),
        labels: labels.clone(),
        ..Series::default()
    };
    // Bars overlap: the sum is behind, a part of it in front.
    let series = vec![
        stacked("client and server", |figures| figures.client_cpu_us + figures.server_cpu_us.unwrap_or(0.0)),
        stacked("of it the client, Rigel", |figures| figures.client_cpu_us),
    ];
    let title = format!("CPU time a block, {} at a time", table.sessions);
    over_layers("layers-cpu", &title, "CPU time a block", Unit::Microseconds, series)
}

fn over_layers(id: &str, title: &str, label: &str, unit: Unit, series: Vec<Series>) -> Option<super::page::Chart> {
    let most = series.iter().flat_map(|series| &series.y).flatten().copied().fold(0.0, f64::max);
    let figure = |value: f64| if unit == Unit::Microseconds { words::time(value) } else { words::count(value) };
    let described: Vec<String> = series
        .iter()
        .map(|series| {
            let figures: Vec<String> = series.y.iter().flatten().map(|value| figure(*value)).collect();
            format!("{} {}", series.name, figures.join(", "))
        })
        .collect();
    let last = series.iter().flat_map(|series| &series.x).copied().fold(0.0, f64::max);
    let lines = Lines {
        x: Axis {
            label: "1 raw, 2 a thread each, 3 database without buffer cache, 4 through it, 5 a row a statement".into(),
            range: Some((0.4, last + 0.6)),
            ..Axis::default()
        },
        y: Axis { label: label.into(), unit, range: Some((0.0, most * 1.05)), ..Axis::default() },
        series,
        ..Lines::default()
    };
    (most > 0.0)
        .then(|| throughput::chart(id, title, format!("Layer by layer: {}.", described.join("; ")), Plot::Lines(lines)))
}

fn figures_table(run: &Run, table: &LayerTable) -> super::page::Table {
    let asynchronous = layers::asynchronous(run);
    let known =
        |value: Option<f64>, decimals: usize| value.map_or_else(|| "-".into(), |value| format!("{value:.decimals$}"));
    let share = |value: Option<f64>| value.map_or_else(|| "-".into(), words::percent);
    let time = |value: Option<f64>| value.map_or_else(|| "-".into(), words::time);
    let rows = table
        .layers
        .iter()
        .map(|figures| {
            vec![
                layers::name(figures, &asynchronous),
                words::count(figures.blocks_per_s.value),
                words::plus_minus(figures.blocks_per_s),
                share(figures.share_of_first),
                share(figures.storage_share),
                time(figures.p50_us),
                time(figures.p99_us),
                known(figures.cpu_s_per_million, 1),
                known(Some(figures.client_cpu_us), 1),
                known(figures.server_cpu_us, 1),
                figures.blocks_per_cpu_s.map_or_else(|| "-".into(), words::count),
            ]
        })
        .collect();
    let columns = [
        "layer",
        "#blocks/s",
        "#±",
        "#of the first",
        "#from storage",
        "#p50",
        "#p99",
        "#CPU s a million",
        "#client µs",
        "#server µs",
        "#blocks a CPU s",
    ];
    words::rows(&format!("{} at a time", table.sessions), &columns, rows)
}
