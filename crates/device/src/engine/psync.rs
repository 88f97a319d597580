//! Synchronous I/O with pread and pwrite: one thread per outstanding operation, like a database's
//! foreground session.

use super::buffers::Buffers;
use super::volume::Volume;
use super::{Engine, FileEngine, Session};
use crate::clock::Clock;
use rigel_model::record::Verified;
use rigel_model::{
    Completion, EngineInfo, Error, Fault, FioEngine, Kind, Nanos, Op, Outcome, Slot,
};
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
        Ok(Box::new(PsyncSession {
            volume: &self.volume,
            clock: &self.clock,
            buffers: Buffers::new(lengths, self.volume.is_writable()),
            pending: None,
        }))
    }
}

struct PsyncSession<'a> {
    volume: &'a Volume,
    clock: &'a Clock,
    buffers: Buffers,
    pending: Option<(Slot, Op)>,
}

impl PsyncSession<'_> {
    fn execute(&mut self, slot: Slot, op: Op) -> Outcome {
        let (number, offset) = self.volume.locate(op);
        let file = &self.volume.files()[number];
        let contents = self.volume.contents();
        let piece = self.buffers.take(slot, op, (number, offset), contents);
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
        Outcome::of_transfer(transferred, op.length)
    }
}

impl Session for PsyncSession<'_> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        self.pending = Some((slot, op));
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        match self.pending.take() {
            Some((slot, op)) => out.push(Completion {
                slot,
                outcome: self.execute(slot, op),
            }),
            None => self.clock.wait_until(until),
        }
        Ok(())
    }

    fn look(&mut self, slot: Slot, outcome: Outcome) -> Outcome {
        self.buffers.look(slot, outcome, self.volume.contents())
    }
}
