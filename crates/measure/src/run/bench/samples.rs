//! Samples of the counters of the host, and of the server, while a point runs.
//!
//! A server answers in a thread of its own. A sample waits for its answer, and nothing waits for the
//! sample: without an answer it is one of the host alone.

use super::server::ServerCounters;
use crate::asked::PATIENCE;
use rigel_device::observe::Observer;
use rigel_model::{Nanos, Sample};
use std::sync::atomic::AtomicBool;

/// Takes the samples of a point.
pub(super) struct PointSamples<'a> {
    observer: &'a Observer,
    servers: Option<&'a ServerCounters>,
    /// A sample for which the server has not answered yet.
    pending: Option<Sample>,
    taken: Vec<Sample>,
}

impl<'a> PointSamples<'a> {
    /// Takes the first sample, before the point begins.
    pub(super) fn begin(observer: &'a Observer, servers: Option<&'a ServerCounters>) -> Self {
        let server = servers.and_then(ServerCounters::begin);
        let first = Sample {
            server,
            ..observer.sample(Nanos(0))
        };
        Self {
            observer,
            servers,
            pending: None,
            taken: vec![first],
        }
    }

    /// The samples so far, in order of time.
    pub(super) fn taken(&self) -> &[Sample] {
        &self.taken
    }

    /// True if samples have the counters of a server.
    pub(super) fn has_server(&self) -> bool {
        self.servers.is_some()
    }

    /// Begins a sample at this time since the point began.
    pub(super) fn take(&mut self, at: Nanos) {
        self.taken.extend(self.pending.take());
        let sample = self.observer.sample(at);
        if self.servers.is_some_and(ServerCounters::ask) {
            self.pending = Some(sample);
        } else {
            self.taken.push(sample);
        }
    }

    /// Completes the sample if the server has answered, or does not answer in time.
    pub(super) fn look(&mut self, now: Nanos) {
        let Some((sample, servers)) = self.pending.as_mut().zip(self.servers) else {
            return;
        };
        if servers.is_pending() && now.since(sample.at) < PATIENCE {
            return;
        }
        sample.server = servers.answer();
        self.taken.extend(self.pending.take());
    }

    /// Takes the last sample, after a point that ended at `end` or later.
    pub(super) fn end(mut self, end: Nanos, is_broken: bool, stop: &AtomicBool) -> Vec<Sample> {
        if self.servers.is_some_and(ServerCounters::is_pending) {
            // The last sample is of the same moment.
            self.pending = None;
        }
        self.look(Nanos::MAX);
        let server = self
            .servers
            .and_then(|servers| servers.end(is_broken, stop));
        // Waiting for the last operations takes time too.
        let moment = self.taken.last().map_or(end, |last| last.at.max(end));
        self.taken.push(Sample {
            server,
            ..self.observer.sample(moment)
        });
        self.taken
    }
}
