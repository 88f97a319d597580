//! The cost of each layer: the same blocks by raw I/O and through a database, side by side, with
//! the CPU time.
//!
//! Input: the records of a `layers` run. CPU time is that of this process and of the server's
//! processes. It does not include kernel threads or interrupts that hit other processes. One
//! microsecond of CPU per block is one CPU second per million blocks.

use rigel_analyse::Estimate;
use rigel_analyse::figures::latency::LatencySummary;
use rigel_analyse::figures::quantity::percent;
use rigel_analyse::point::summary::{PointSummary, summarise};
use rigel_model::record::{End, Latencies, PointRecord};
use rigel_model::{Coordinates, Finding, FindingName, Layer};
use rigel_stats::mean::Limits;
use serde::Serialize;

/// Fraction of blocks served by a cache above which a warning is raised.
const CACHED: f64 = 0.05;

/// Fraction of the CPUs in use above which they are the limit.
const CPU_BUSY: f64 = 0.9;

/// The results of a `layers` run.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LayersResult {
    /// One table for each number of sessions, ascending.
    pub tables: Vec<LayerTable>,
    /// All points, in measuring order.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// Findings about the run as a whole; findings about a point are in the point.
    pub findings: Vec<Finding>,
}

/// The layers at one number of sessions.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LayerTable {
    /// Outstanding I/Os, threads, or sessions.
    pub sessions: u32,
    /// The layers, from storage upwards.
    pub layers: Vec<LayerFigures>,
    /// The changes from layer to layer.
    pub steps: Vec<LayerStep>,
}

/// The figures of one layer, over all rounds.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LayerFigures {
    /// The layer.
    pub layer: Layer,
    /// Blocks per second. The interval contains the combined interval of all rounds and the mean
    /// of each round.
    pub blocks_per_s: Estimate,
    /// Blocks per second of each round.
    pub rounds: Vec<f64>,
    /// Blocks per operation.
    pub blocks_per_operation: f64,
    /// Blocks per second as a fraction of the first layer's.
    pub share_of_first: Option<Estimate>,
    /// Bytes that the kernel counted as read from storage, as a fraction of the blocks' bytes. For
    /// raw I/O the counters of the disks, for a database those of its processes.
    pub storage_share: Option<f64>,
    /// Fraction of blocks that the server found in its buffer cache; `None` for layers that do not
    /// use it.
    pub buffer_cache_share: Option<f64>,
    /// Median time of an operation, per block.
    pub p50_us: Option<f64>,
    /// 99th percentile of the time of an operation, per block.
    pub p99_us: Option<f64>,
    /// CPU time of this process per block, user and system.
    pub client_cpu_us: f64,
    /// CPU time of the server's processes per block, user and system; `None` for raw I/O, or if
    /// unknown.
    pub server_cpu_us: Option<f64>,
    /// CPU seconds of both per million blocks.
    pub cpu_s_per_million: Option<f64>,
    /// Blocks per second of CPU time.
    pub blocks_per_cpu_s: Option<f64>,
    /// Average number of CPUs kept busy by both.
    pub cpus_busy: Option<f64>,
}

/// The changes from one layer to another.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct LayerStep {
    /// From this layer.
    pub from: Layer,
    /// To this one.
    pub to: Layer,
    /// Blocks per second as a fraction of those of layer `from`.
    pub blocks_share: Estimate,
    /// Additional time of a session per block: the difference of sessions divided by blocks per
    /// second.
    pub time_us: f64,
    /// Additional CPU time per block in this process.
    pub client_cpu_us: f64,
    /// Additional CPU time per block in the server; `None` if unknown.
    pub server_cpu_us: Option<f64>,
}

impl LayersResult {
    /// The table of the maximum number of sessions, and its index.
    pub fn widest(&self) -> Option<(usize, &LayerTable)> {
        self.tables
            .iter()
            .enumerate()
            .max_by_key(|(_, table)| table.sessions)
    }
}

impl LayerFigures {
    /// Fraction of blocks that the kernel's page cache served, if it is known and worth a warning.
    pub fn page_cache_share(&self) -> Option<f64> {
        self.storage_share
            .filter(|_| self.layer.is_database())
            .map(|storage| 1.0 - self.buffer_cache_share.unwrap_or(0.0) - storage)
            .filter(|share| *share > CACHED)
    }
}

impl LayerTable {
    /// The figures of this layer.
    pub fn of(&self, layer: Layer) -> Option<&LayerFigures> {
        self.layers.iter().find(|figures| figures.layer == layer)
    }
}

impl LayerStep {
    /// Describes what lies between the two layers.
    pub fn between(&self) -> &'static str {
        match (self.from, self.to) {
            (Layer::Async, _) => "a thread waits for each I/O, and is woken after it",
            (Layer::Sync, Layer::File) => "the database's file call, the page cache, the client",
            (Layer::File, _) => "buffer management, the index and the row, instead of file calls",
            (Layer::Row, Layer::Prefetch) => "a session's blocks are read ahead, not one by one",
            (Layer::Sync, _) => "everything that the database adds to a session's waiting time",
            _ => "a statement, its answer and the client for every block",
        }
    }
}

/// The compared pairs of layers.
const PAIRS: [(Layer, Layer); 6] = [
    (Layer::Async, Layer::Sync),
    (Layer::Sync, Layer::File),
    (Layer::File, Layer::Row),
    (Layer::Sync, Layer::Row),
    (Layer::Row, Layer::Prefetch),
    (Layer::Row, Layer::Single),
];

/// Evaluates the records of a `layers` run; `cpus` is the machine's number of CPUs, 0 if unknown.
pub fn layers(records: &[PointRecord], cpus: u32) -> LayersResult {
    let points: Vec<PointSummary> = records.iter().map(summarise).collect();
    let mut sessions: Vec<u32> = points
        .iter()
        .map(|point| point.coordinates.outstanding())
        .collect();
    sessions.sort_unstable();
    sessions.dedup();
    let rounds: Vec<LayerRound> = records
        .iter()
        .zip(&points)
        .filter_map(|(record, point)| LayerRound::of(record, point))
        .collect();
    let tables: Vec<LayerTable> = sessions
        .into_iter()
        .map(|sessions| table(sessions, &rounds))
        .collect();
    let findings = tables
        .iter()
        .flat_map(|table| warnings(table, cpus))
        .collect();
    LayersResult {
        tables,
        points,
        findings,
    }
}

/// The figures of one layer in one round.
struct LayerRound {
    layer: Layer,
    sessions: u32,
    blocks: f64,
    seconds: f64,
    blocks_per_operation: f64,
    half_width: Option<f64>,
    response: Latencies,
    client_cpu_us: f64,
    server_cpu_us: Option<f64>,
    storage_share: Option<f64>,
    buffer_cache_share: Option<f64>,
}

impl LayerRound {
    /// `None` if the point is not a layer, is not complete, or completed no operation.
    fn of(record: &PointRecord, point: &PointSummary) -> Option<Self> {
        let Coordinates::Layer { layer, .. } = point.coordinates else {
            return None;
        };
        let (stream, class) = (record.streams.first()?, point.classes.first()?);
        let total = stream.total();
        if total.done == 0 || record.end != End::Complete {
            return None;
        }
        let (each, sql) = (
            stream.sql.map_or(1.0, |work| f64::from(work.read_rows)),
            point.sql.as_deref(),
        );
        let blocks = total.done as f64 * each;
        let server = sql.and_then(|sql| sql.server.as_ref());
        let per_block = |per_operation: f64| per_operation / each;
        let of_disks = || {
            point
                .witness
                .map(|w| w.device_bytes as f64 / (w.asked_bytes as f64).max(1.0))
        };
        let of_server = |bytes: f64| per_block(bytes) / f64::from(stream.length);
        Some(Self {
            layer,
            sessions: point.coordinates.outstanding(),
            blocks,
            seconds: point.measured_s,
            blocks_per_operation: each,
            half_width: class
                .rate()
                .interval
                .and_then(Limits::both)
                .map(|interval| interval.half_width() * each),
            response: total.response,
            client_cpu_us: record.cpu.as_micros_f64() / blocks,
            server_cpu_us: server
                .and_then(|server| server.cpu_us)
                .map(|cpu| per_block(cpu.per_operation)),
            storage_share: if layer.is_database() {
                server
                    .and_then(|server| server.storage_read)
                    .map(|bytes| of_server(bytes.per_operation))
            } else {
                of_disks()
            },
            buffer_cache_share: server
                .filter(|_| matches!(layer, Layer::Row | Layer::Prefetch | Layer::Single))
                .and_then(|server| server.physical)
                .map(|physical| (1.0 - per_block(physical.per_operation)).max(0.0)),
        })
    }

    fn rate(&self) -> f64 {
        self.blocks / self.seconds.max(1e-9)
    }
}

fn table(sessions: u32, rounds: &[LayerRound]) -> LayerTable {
    let mut layers: Vec<LayerFigures> = Vec::new();
    for layer in Layer::ALL {
        let of_layer: Vec<&LayerRound> = rounds
            .iter()
            .filter(|round| round.layer == layer && round.sessions == sessions)
            .collect();
        layers.extend(figures(layer, &of_layer));
    }
    let first = layers
        .iter()
        .find(|figures| figures.layer == Layer::Async)
        .map(|first| first.blocks_per_s);
    for figures in &mut layers {
        figures.share_of_first = first.map(|first| figures.blocks_per_s.over(first));
    }
    let of = |layer| layers.iter().find(|figures| figures.layer == layer);
    let steps = PAIRS
        .iter()
        .filter_map(|(from, to)| Some(step(sessions, of(*from)?, of(*to)?)))
        .collect();
    LayerTable {
        sessions,
        layers,
        steps,
    }
}

fn figures(layer: Layer, rounds: &[&LayerRound]) -> Option<LayerFigures> {
    let blocks: f64 = rounds.iter().map(|round| round.blocks).sum();
    let seconds: f64 = rounds.iter().map(|round| round.seconds).sum();
    let each = rounds.first()?.blocks_per_operation;
    let rates: Vec<f64> = rounds.iter().map(|round| round.rate()).collect();
    // Rounds are weighted by their number of blocks.
    let mean = |of: &dyn Fn(&LayerRound) -> Option<f64>| {
        let sum = rounds
            .iter()
            .map(|round| Some(of(round)? * round.blocks))
            .sum::<Option<f64>>();
        sum.map(|sum| sum / blocks)
    };
    let mut response = Latencies::default();
    rounds
        .iter()
        .for_each(|round| response.merge(&round.response));
    let latency = LatencySummary::of(&response);
    let rate = blocks / seconds.max(1e-9);
    let client_cpu_us = mean(&|round| Some(round.client_cpu_us))?;
    let server_cpu_us = mean(&|round| round.server_cpu_us);
    let cpu = if layer.is_database() {
        server_cpu_us.map(|server| server + client_cpu_us)
    } else {
        Some(client_cpu_us)
    };
    Some(LayerFigures {
        layer,
        blocks_per_s: Estimate::new(rate, interval(rate, rounds, &rates)),
        rounds: rates,
        blocks_per_operation: each,
        share_of_first: None,
        storage_share: mean(&|round| round.storage_share),
        buffer_cache_share: mean(&|round| round.buffer_cache_share),
        p50_us: latency.map(|latency| latency.p50_us / each),
        p99_us: latency.map(|latency| latency.p99_us / each),
        client_cpu_us,
        server_cpu_us,
        cpu_s_per_million: cpu,
        blocks_per_cpu_s: cpu.filter(|cpu| *cpu > 0.0).map(|cpu| 1e6 / cpu),
        cpus_busy: cpu.map(|cpu| cpu * rate / 1e6),
    })
}

/// The combined interval of the rounds, widened to contain every round: rounds may differ more than
/// windows within a round.
fn interval(rate: f64, rounds: &[&LayerRound], rates: &[f64]) -> Option<Limits> {
    let squares = rounds
        .iter()
        .map(|round| round.half_width.map(|half| half * half))
        .sum::<Option<f64>>()?;
    let within = squares.sqrt() / rounds.len() as f64;
    let apart = rates
        .iter()
        .map(|round| (round - rate).abs())
        .fold(0.0, f64::max);
    let half = within.max(apart);
    Some(Limits {
        low: (rate - half).max(0.0),
        high: Some(rate + half),
    })
}

fn step(sessions: u32, from: &LayerFigures, to: &LayerFigures) -> LayerStep {
    let time =
        |figures: &LayerFigures| f64::from(sessions) / figures.blocks_per_s.value.max(1e-9) * 1e6;
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

fn warnings(table: &LayerTable, cpus: u32) -> Vec<Finding> {
    let mut findings = Vec::new();
    for figures in &table.layers {
        let layer = format!("layer {} of {}", figures.layer.number(), table.sessions);
        let buffered = figures.buffer_cache_share.unwrap_or(0.0);
        if let Some(share) = figures.page_cache_share() {
            findings.push(Finding::warning(
                FindingName::PageCache,
                format!(
                    "at {layer} the page cache served {} of the blocks: that share of its \
                     figures measures memory",
                    percent(share)
                ),
                "give a larger --scale",
            ));
        }
        if buffered > CACHED {
            findings.push(Finding::warning(
                FindingName::BufferCache,
                format!(
                    "at {layer} the server's buffer cache served {} of the blocks",
                    percent(buffered)
                ),
                "give a smaller --buffer-cache, or a larger --scale",
            ));
        }
        if let Some(busy) = figures
            .cpus_busy
            .filter(|busy| cpus > 0 && *busy > CPU_BUSY * f64::from(cpus))
        {
            findings.push(Finding::note(
                FindingName::CpuLimit,
                format!(
                    "at {layer} {busy:.2} of {cpus} CPUs were busy: there the limit is the CPU, \
                     not the storage"
                ),
            ));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::record::{Coverage, KindRecord, StreamRecord, Window};
    use rigel_model::{
        Coordinates, Kind, Load, Nanos, Pattern, Sample, ServerSample, SqlWork, Tables,
    };

    /// A record of `done` operations in one second, each taking 1 ms.
    fn record(layer: Layer, round: u32, done: u64, work: Option<SqlWork>) -> PointRecord {
        let mut window = Window {
            done: done / 10,
            ..Window::default()
        };
        for _ in 0..done / 10 {
            window.response.histogram.record(1_000_000);
        }
        window.response.sum = done / 10 * 1_000_000;
        (window.response.min, window.response.max) = (1_000_000, 1_000_000);
        let stream = StreamRecord {
            name: "small".into(),
            length: 8192,
            loads: vec![Load::Closed { depth: 4 }],
            patterns: vec![Pattern::Uniform],
            sql: work,
            kinds: vec![KindRecord {
                kind: Kind::Read,
                windows: vec![window; 10],
            }],
            unserved: Vec::new(),
            drained: 0,
            censored: None,
            delay: None,
            warm_up_done: 0,
            coverage: Coverage::default(),
        };
        PointRecord {
            coordinates: Coordinates::Layer {
                layer,
                sessions: 4,
                round,
            },
            started: "2026-01-01T00:00:00+00:00".into(),
            began: Nanos(0),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(1),
            end: End::Complete,
            cpu: Nanos::from_millis(100),
            cpus: 2,
            window: Nanos::from_millis(100),
            asked: None,
            streams: vec![stream],
            samples: Vec::new(),
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: Vec::new(),
            left_out: Nanos(0),
        }
    }

    /// The same with a server that used half a second of CPU and read `bytes` from storage.
    fn served(layer: Layer, operations: u64, rows: u32, physical: u64, bytes: u64) -> PointRecord {
        let tables = Tables {
            schemas: 1,
            scale: 10_000,
            scan_blocks: 128,
            block: 8192,
        };
        let work = SqlWork {
            read_rows: rows,
            ..SqlWork::reads(tables)
        };
        let sample = |at, part: u64| Sample {
            at: Nanos::from_secs(at),
            server: Some(Box::new(ServerSample {
                logical: Some(physical * part),
                physical: Some(physical * part),
                cpu: Some(Nanos::from_millis(500 * part)),
                storage_read: Some(bytes * part),
                ..ServerSample::default()
            })),
            ..Sample::default()
        };
        PointRecord {
            samples: vec![sample(0, 0), sample(1, 1)],
            ..record(layer, 1, operations, Some(work))
        }
    }

    #[test]
    fn a_block_of_a_database_has_its_part_of_the_operation_and_both_sides_cpu() {
        let blocks = 64_000;
        let records = [
            record(Layer::Sync, 1, 20_000, None),
            served(Layer::Row, 1000, 64, blocks, blocks * 8192),
        ];
        let found = layers(&records, 2);
        let [sync, row] = &found.tables[0].layers[..] else {
            panic!("{found:?}")
        };
        assert_eq!((sync.layer, row.layer), (Layer::Sync, Layer::Row));
        assert!(
            (sync.blocks_per_s.value - 20_000.0).abs() < 1e-6
                && (row.blocks_per_s.value - 64_000.0).abs() < 1e-6
        );
        // 100 ms of CPU in this process for 20,000 blocks, and 600 ms in both for 64,000.
        assert!(
            (sync.cpu_s_per_million.unwrap() - 5.0).abs() < 1e-9,
            "{sync:?}"
        );
        assert!(
            (row.cpu_s_per_million.unwrap() - 9.375).abs() < 1e-9,
            "{row:?}"
        );
        assert!((row.p50_us.unwrap() - 1000.0 / 64.0).abs() < 0.1, "{row:?}");
        assert!((row.storage_share.unwrap() - 1.0).abs() < 1e-9, "{row:?}");
        // 4 sessions: 200 us per block, and 62.5.
        let step = found.tables[0].steps[0];
        assert!(
            (step.time_us + 137.5).abs() < 1e-6 && (step.blocks_share.value - 3.2).abs() < 1e-9,
            "{step:?}"
        );
        assert_eq!(row.share_of_first, None);
    }

    #[test]
    fn the_interval_holds_every_round() {
        let rounds = [
            record(Layer::Async, 1, 10_000, None),
            record(Layer::Async, 2, 12_000, None),
        ];
        let found = layers(&rounds, 2);
        let rate = found.tables[0].layers[0].blocks_per_s;
        assert!((rate.value - 11_000.0).abs() < 1e-6, "{rate:?}");
        let interval = rate.interval.unwrap();
        assert!(
            interval.contains(10_000.0) && interval.contains(12_000.0),
            "{interval:?}"
        );
    }

    #[test]
    fn a_layer_served_by_a_cache_raises_a_warning() {
        let blocks = 64_000;
        let names = |record: PointRecord| -> Vec<String> {
            layers(&[record], 2)
                .findings
                .into_iter()
                .map(|finding| finding.name)
                .collect()
        };
        assert_eq!(
            names(served(Layer::File, 1000, 64, 0, blocks * 4096)),
            ["page-cache"]
        );
        assert_eq!(
            names(served(Layer::File, 1000, 64, 0, blocks * 8192)),
            [""; 0]
        );
        assert_eq!(
            names(served(Layer::Row, 1000, 64, blocks / 2, blocks * 4096)),
            ["buffer-cache"]
        );
    }

    #[test]
    fn a_round_that_broke_is_no_figure() {
        let broken = PointRecord {
            end: End::Broken("gone".into()),
            ..record(Layer::Async, 1, 100, None)
        };
        assert!(layers(&[broken], 2).tables[0].layers.is_empty());
    }
}
