//! Metrics of a running watch: counters of each kind of I/O of each disk and database, and what
//! Rigel itself needs.
//!
//! Input: the intervals, one by one. Output: a content type and a body. Sums only: it is no larger
//! after a thousand intervals than after ten.

use super::accept::Format;
use super::family::{Family, Sort, Times, Value};
use super::protobuf;
use super::text::{self, Dialect};
use rigel_analyse::WatchReader;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_model::Moment;
use rigel_model::record::{Latencies, WatchedInterval};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is served during a watch.
#[derive(Debug)]
pub struct ExposedWatch {
    started: Moment,
    request: WatchRequest,
    /// By source and stream.
    streams: BTreeMap<(String, String), ExposedStream>,
    cpu_seconds: f64,
    lost: f64,
    memory_bytes: f64,
}

/// The sums of one kind of I/O.
#[derive(Debug, Default)]
struct ExposedStream {
    operations: f64,
    bytes: Option<f64>,
    response: Option<Latencies>,
}

impl ExposedWatch {
    /// Nothing observed yet, of a watch that began at this moment.
    pub fn new(started: Moment, request: &WatchRequest) -> Self {
        Self {
            started,
            request: request.clone(),
            streams: BTreeMap::new(),
            cpu_seconds: 0.0,
            lost: 0.0,
            memory_bytes: 0.0,
        }
    }

    /// Adds an interval.
    pub fn add(&mut self, interval: &WatchedInterval) {
        let mut reader = WatchReader::default();
        reader.add(interval);
        let result = reader.result(&self.request);
        self.cpu_seconds += interval.cpu.as_secs_f64();
        self.lost += result.own.lost_events as f64;
        self.memory_bytes = interval.memory.0 as f64;
        for source in &result.sources {
            for stream in &source.streams {
                let key = (source.name.clone(), stream.name.clone());
                let sums = self.streams.entry(key).or_default();
                sums.operations += stream.operations;
                if let Some(mean) = stream.mean_bytes {
                    *sums.bytes.get_or_insert(0.0) +=
                        mean * (stream.operations - stream.failed as f64);
                }
            }
        }
        for disk in &interval.disks {
            for flow in disk.all_requests().into_iter().flat_map(|all| &all.flows) {
                let key = (disk.name.clone(), flow.kind.words().to_string());
                let sums = self.streams.entry(key).or_default();
                sums.response.get_or_insert_default().merge(flow.response());
            }
        }
    }

    /// The content type and the body for this `Accept` header.
    pub fn answer(&self, accept: &str) -> (&'static str, Arc<[u8]>) {
        let format = Format::negotiate(accept);
        let created = self.started.unix_seconds();
        let families = self.families();
        let body = match format {
            Format::Text => text::encode(&families, created, Dialect::Prometheus),
            Format::OpenMetrics => text::encode(&families, created, Dialect::OpenMetrics),
            Format::Protobuf => protobuf::encode(&families, created),
        };
        (format.content_type(), body.into())
    }

    fn families(&self) -> Vec<Family> {
        let mut operations = Family::new(
            "watch_operations",
            Sort::Counter,
            "Requests that ended, by disk or database and kind.",
        );
        let mut bytes = Family::new("watch_bytes", Sort::Counter, "Bytes that they transferred.");
        let mut response = Family::new(
            "watch_response_seconds",
            Sort::Histogram,
            "Time from the first sight of a request to its end.",
        );
        for ((source, stream), sums) in &self.streams {
            let labels = [("source", source.as_str()), ("stream", stream.as_str())];
            operations.push(&labels, Value::Number(sums.operations));
            if let Some(count) = sums.bytes {
                bytes.push(&labels, Value::Number(count));
            }
            if let Some(times) = &sums.response {
                response.push(&labels, Value::Times(Times::of(times)));
            }
        }
        let own = Family::new(
            "watch_own_cpu_seconds",
            Sort::Counter,
            "CPU time of Rigel itself.",
        );
        let memory = Family::new(
            "watch_own_memory_bytes",
            Sort::Gauge,
            "Resident memory of Rigel itself.",
        );
        let lost = Family::new(
            "watch_lost_events",
            Sort::Counter,
            "Events that the kernel could not deliver.",
        );
        let all = [
            operations,
            bytes,
            response,
            own.with(&[], self.cpu_seconds),
            memory.with(&[], self.memory_bytes),
            lost.with(&[], self.lost),
        ];
        all.into_iter()
            .filter(|family| !family.metrics.is_empty())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_only_rise_and_have_source_and_kind() {
        let interval = rigel_analyse::examples::watched();
        let started = interval.started.parse().unwrap();
        let mut exposed = ExposedWatch::new(started, &WatchRequest::default());
        exposed.add(&interval);
        exposed.add(&interval);
        let (_, body) = exposed.answer("");
        let text = String::from_utf8(body.to_vec()).unwrap();
        let labels = "{source=\"sda\",stream=\"random reads\"}";
        assert!(
            text.contains(&format!("rigel_watch_operations_total{labels} 2")),
            "{text}"
        );
        assert!(
            text.contains(&format!("rigel_watch_bytes_total{labels} 16384")),
            "{text}"
        );
        assert!(
            text.contains(&format!("rigel_watch_response_seconds_count{labels} 2")),
            "{text}"
        );
    }
}
