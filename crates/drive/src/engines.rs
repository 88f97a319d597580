//! The engines of a point's streams: that of the volume, and those of logs that have files of their own.
//!
//! Input: a stream. Output: the engine that executes its operations. A worker has one session, so it has
//! streams of one engine only.

use rigel_device::engine::Engine;
use rigel_model::record::{Latencies, Verified};
use rigel_model::{LogKind, Point, Stream};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Engines of log writes to files of their own. A log that has none is written to the volume.
pub type LogEngines = BTreeMap<LogKind, Arc<dyn Engine>>;

/// The engines of a point's streams.
#[derive(Clone, Copy)]
pub(super) struct Engines<'a> {
    volume: &'a dyn Engine,
    logs: &'a LogEngines,
}

impl<'a> Engines<'a> {
    pub(super) const fn new(volume: &'a dyn Engine, logs: &'a LogEngines) -> Self {
        Self { volume, logs }
    }

    /// That of the volume, by whose clock the point runs.
    pub(super) fn volume(self) -> &'a dyn Engine {
        self.volume
    }

    /// That of a stream.
    pub(super) fn of(self, stream: &Stream) -> &'a dyn Engine {
        self.own(stream).map_or(self.volume, |(_, engine)| engine)
    }

    /// What looking at the bytes of the volume found since the last call; `None` if nobody looked.
    pub(super) fn verified(self, point: &Point) -> Option<Verified> {
        let is_of_volume = |stream: &Stream| self.own(stream).is_none();
        let looked = point.streams.iter().any(is_of_volume);
        looked.then(|| self.volume.verified()).flatten()
    }

    /// How long the syncs of the logs of `point` took since the last call; `None` if there were none.
    pub(super) fn syncs(self, point: &Point) -> Option<Latencies> {
        let all = self.groups(point).into_iter();
        let all: Vec<Option<Latencies>> = all.map(|(engine, _)| engine.syncs()).collect();
        Latencies::of_parts(all.iter().map(Option::as_ref))
    }

    /// The engine of a stream's log; `None` if it has none of its own.
    fn own(self, stream: &Stream) -> Option<(LogKind, &'a dyn Engine)> {
        let log = stream.log?;
        Some((log, self.logs.get(&log)?.as_ref()))
    }

    /// The streams of `point` by their engines, those of the volume first.
    pub(super) fn groups(self, point: &Point) -> Vec<(&'a dyn Engine, Vec<usize>)> {
        let key = |stream: &Stream| self.own(stream).map(|(log, _)| log);
        let keys: BTreeSet<Option<LogKind>> = point.streams.iter().map(key).collect();
        let group = |wanted: Option<LogKind>| {
            let streams = point.streams.iter().enumerate();
            let own = streams.filter(|(_, stream)| key(stream) == wanted);
            let own: Vec<usize> = own.map(|(index, _)| index).collect();
            (self.of(&point.streams[own[0]]), own)
        };
        keys.into_iter().map(group).collect()
    }
}
