//! Synchronous I/O with pread and pwrite: one thread per outstanding operation, like a database's
//! foreground session.

use super::blocking::{Blocking, Execute};
use super::buffers::Buffers;
use super::volume::Volume;
use super::{Engine, FileEngine, Session};
use crate::clock::Clock;
use rigel_model::record::Verified;
use rigel_model::{EngineInfo, Error, Fault, FioEngine, Kind, Op, Outcome};
use std::os::unix::fs::FileExt;

/// This engine in the table of engines.
pub(super) const ENGINE: FileEngine = FileEngine {
    info: EngineInfo {
        name: "psync",
        help: "pread and pwrite, one thread per outstanding I/O",
        thread_per_io: true,
        fio: FioEngine {
            name: "psync",
            options: "",
            log_writes: "# Rigel measures pwrite and fdatasync together; with fdatasync=1 fio \
                         reports that time separately, under \"sync\"\n",
        },
    },
    open: |clock, volume, _| Ok(Box::new(Psync::new(clock, volume))),
};

/// pread and pwrite on a volume.
#[derive(Debug)]
pub struct Psync {
    volume: Volume,
    clock: Clock,
}

impl Psync {
    /// Creates the engine for `volume`.
    pub fn new(clock: Clock, volume: Volume) -> Self {
        Self { volume, clock }
    }
}

impl Engine for Psync {
    fn name(&self) -> &'static str {
        ENGINE.info.name
    }

    fn about(&self) -> String {
        "psync: pread and pwrite, one thread per outstanding I/O".into()
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        1
    }

    fn usable(&self) -> u64 {
        self.volume.usable()
    }

    fn verifies(&self) -> bool {
        self.volume.contents().is_verified()
    }

    fn verified(&self) -> Option<Verified> {
        self.volume.contents().take()
    }

    fn open(&self, lengths: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        self.volume.contents().catch_up();
        let calls = PsyncCalls {
            volume: &self.volume,
            buffers: Buffers::new(lengths, self.volume.is_writable()),
        };
        Ok(Box::new(Blocking::new(self.clock.clone(), calls)))
    }
}

/// The calls of one session.
struct PsyncCalls<'a> {
    volume: &'a Volume,
    buffers: Buffers,
}

impl Execute for PsyncCalls<'_> {
    fn execute(&mut self, op: Op) -> Result<Outcome, Fault> {
        let (number, offset) = self.volume.locate(op);
        let file = &self.volume.files()[number];
        let contents = self.volume.contents();
        let piece = self.buffers.take(0, op, (number, offset), contents);
        let memory = &mut self.buffers.piece(piece)[..op.length as usize];
        let result = match op.kind {
            Kind::Read | Kind::Scan => file.read_at(memory, offset),
            Kind::Write => file.write_at(memory, offset),
            // Two calls, as PostgreSQL makes them: docs/decisions/0010-log-writes.md.
            Kind::Log => file
                .write_at(memory, offset)
                .and_then(|bytes| file.sync_data().map(|()| bytes)),
        };
        let transferred = match result {
            Ok(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
            Err(error) => -i64::from(error.raw_os_error().unwrap_or(libc::EIO)),
        };
        Ok(Outcome::of_transfer(transferred, op.length))
    }

    fn look(&mut self, outcome: Outcome) -> Outcome {
        self.buffers.look(0, outcome, self.volume.contents())
    }
}
