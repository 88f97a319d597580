//! The cost of each layer as text: a table for each number of sessions, then the differences between layers.

use super::sql;
use crate::analyse::{LayerFigures, LayerStep, LayerTable, LayersResult, quantity};
use crate::model::{Bytes, Layer, LayersRequest, Nanos, Request};
use crate::record::journal::Run;
use std::fmt::Write;

/// Width of a layer's name.
const NAME: usize = 33;

fn request(run: &Run) -> Option<&LayersRequest> {
    match run.header.request() {
        Request::Layers(request) => Some(request),
        _ => None,
    }
}

/// The engine of the first layer; empty if another verb made the run.
pub(super) fn asynchronous(run: &Run) -> String {
    request(run).map_or_else(String::new, |request| request.asynchronous.clone())
}

/// The heading; and the tables with the differences. Empty if another verb made the run.
pub(super) fn parts(run: &Run, found: &LayersResult) -> (String, String) {
    let Some(request) = request(run) else { return Default::default() };
    let mut text = String::new();
    found.tables.iter().for_each(|table| text.push_str(&one_table(table, &request.asynchronous)));
    text.push_str(LEGEND);
    (heading(run, request), text)
}

const LEGEND: &str = "
storage: bytes the kernel counted as read from storage, as a share of the blocks' (raw by the disks' counters, the
database by its processes'); below 100 % a cache served the rest, above it somebody read more than was asked for
p50, p99: of a block; of the database, of a statement divided by its blocks
CPU: seconds a million blocks, which is microseconds a block, user and system: `here` of this process, `server` of
the server's; threads of the kernel and its interrupts are in neither
";

fn heading(run: &Run, request: &LayersRequest) -> String {
    let header = &run.header;
    let mut text = format!("{}\n", header.facts.name);
    if let Some(server) = &header.facts.server {
        let _ = writeln!(text, "{}", sql::server_line(server));
    }
    let rounds = if request.rounds == 1 { "once".into() } else { format!("{} times", request.rounds) };
    let _ = writeln!(
        text,
        "random reads of {} in the files of the table, each layer {rounds} {} long; {} CPUs, Rigel {}",
        Bytes(request.block().into()),
        request.point_time,
        header.host.cpus,
        header.version
    );
    text
}

/// The table for one number of sessions, and the changes from layer to layer.
fn one_table(table: &LayerTable, asynchronous: &str) -> String {
    let mut text = format!(
        "\n{:<NAME$} {:>8} {:<8} {:>6} {:>7} {:>7} {:>7}  {:>7} {:>7} {:>7} {:>10}\n",
        format!("{} at a time", table.sessions),
        "blocks/s",
        "",
        "of 1",
        "storage",
        "p50",
        "p99",
        "CPU",
        "here",
        "server",
        "/CPU s"
    );
    for figures in &table.layers {
        text.push_str(&line(figures, asynchronous));
    }
    if !table.steps.is_empty() {
        text.push_str("\nwhere the rest went\n");
    }
    table.steps.iter().for_each(|step| text.push_str(&step_line(step, table)));
    text
}

fn line(figures: &LayerFigures, asynchronous: &str) -> String {
    let known = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "-".to_string(), |value| format!("{value:.decimals$}"))
    };
    let percent = |share: Option<f64>| share.map_or_else(|| "-".into(), |share| format!("{:.1}%", share * 100.0));
    let time = |us: Option<f64>| us.map_or_else(|| "-".into(), |us| Nanos::from_micros_f64(us).to_string());
    let line = format!(
        "{:<NAME$} {:>8.0} {:<8} {:>6} {:>7} {:>7} {:>7}  {:>7} {:>7} {:>7} {:>10}",
        name(figures, asynchronous),
        figures.blocks_per_s.value,
        quantity::precision(figures.blocks_per_s),
        percent(figures.share_of_first),
        percent(figures.storage_share),
        time(figures.p50_us),
        time(figures.p99_us),
        known(figures.cpu_s_per_million, 1),
        format!("{:.1}", figures.client_cpu_us),
        known(figures.server_cpu_us, 1),
        known(figures.blocks_per_cpu_s, 0),
    );
    line.trim_end().to_string() + "\n"
}

/// `1  raw, asynchronous (uring)`.
pub(super) fn name(figures: &LayerFigures, asynchronous: &str) -> String {
    let of_statement = format!("{} a statement", figures.blocks_per_operation);
    let name = match figures.layer {
        Layer::Async => format!("raw, asynchronous ({asynchronous})"),
        Layer::Sync => "raw, a thread each (psync)".into(),
        Layer::File => "database, no buffer cache".into(),
        Layer::Row => "database, through buffer cache".into(),
        Layer::Single => format!("the same, {of_statement}"),
    };
    format!("{:<2} {name}", figures.layer.number())
}

/// `2 to 4`, what lies between, and a line such as `83.4 % of the blocks; at a block a session is 300us longer; CPU
/// 5.1us more here, 35.0us more in the server`.
pub(super) fn step_line(step: &LayerStep, table: &LayerTable) -> String {
    let more = |us: f64| {
        let size = Nanos::from_micros_f64(us.abs());
        if us < 0.0 { format!("{size} less") } else { format!("{size} more") }
    };
    let longer = Nanos::from_micros_f64(step.time_us.abs());
    let how = if step.time_us < 0.0 { "shorter" } else { "longer" };
    let cpu = match step.server_cpu_us {
        Some(server) if step.to.is_database() => {
            format!("CPU {} here, {} in the server", more(step.client_cpu_us), more(server))
        }
        Some(_) => format!("CPU {}", more(step.client_cpu_us)),
        None => format!("CPU {} here, the server's is not known", more(step.client_cpu_us)),
    };
    let mut text = format!(
        "  {:<2} to {:<2}  {}\n            {:.1} % of the blocks; at a block a session is {longer} {how}; {cpu}\n",
        step.from.number(),
        step.to.number(),
        step.between(),
        step.blocks_share * 100.0
    );
    if let Some(note) = waiting(step, table) {
        let _ = writeln!(text, "            {note}");
    }
    text
}

/// Says how much of a longer time is waiting, if CPU time does not explain it.
fn waiting(step: &LayerStep, table: &LayerTable) -> Option<String> {
    let cpu = step.client_cpu_us + step.server_cpu_us?;
    let rest = step.time_us - cpu.max(0.0);
    // A rest below a tenth of the block's time is within the precision of the rates.
    let whole = table.layers.iter().find(|figures| figures.layer == step.to)?;
    let at_a_block = f64::from(table.sessions) * 1e6 / whole.blocks_per_s.value.max(1e-9);
    (rest > at_a_block / 10.0).then(|| {
        format!("{} of that is waiting: for storage, or for a CPU that others use", Nanos::from_micros_f64(rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyse::{Estimate, Limits};
    use crate::report::golden;

    fn figures(layer: Layer, rate: f64, client: f64, server: Option<f64>) -> LayerFigures {
        let cpu = if layer.is_database() { server.map(|server| server + client) } else { Some(client) };
        LayerFigures {
            layer,
            blocks_per_s: Estimate {
                value: rate,
                interval: Some(Limits { low: rate * 0.99, high: Some(rate * 1.01) }),
            },
            rounds: vec![rate],
            blocks_per_operation: if layer == Layer::Row || layer == Layer::File { 64.0 } else { 1.0 },
            share_of_first: Some(rate / 40_000.0),
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
            if figures.layer.is_database() { figures.server_cpu_us } else { Some(0.0) }
        };
        LayerStep {
            from: from.layer,
            to: to.layer,
            blocks_share: to.blocks_per_s.value / from.blocks_per_s.value,
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
            figures(Layer::Single, 15_000.0, 20.0, None),
        ];
        let pairs = [(0, 1), (1, 2), (2, 3), (1, 3), (3, 4)];
        let steps = pairs.map(|(from, to)| between(&layers[from], &layers[to])).to_vec();
        golden::check("layers.txt", &one_table(&LayerTable { sessions: 16, layers, steps }, "uring"));
    }
}
