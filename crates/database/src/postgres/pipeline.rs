//! A `PostgreSQL` session with several operations in flight on its connection.
//!
//! Input: operations in slots. Output: their completions, in the order in which they were sent: a
//! server answers in the order of the requests. Each operation is a transaction of its own, which
//! ends with a `Sync`: after an error the server continues with the next operation, so an error is
//! that of the operation whose turn it is.

use super::session::PostgresSession;
use rigel_device::clock::Clock;
use rigel_device::engine::Session;
use rigel_model::{Completion, Fault, Kind, Nanos, Op, Slot};
use std::collections::VecDeque;
use std::time::Duration;

/// A session that sends operations before the answers to earlier ones have come.
pub(super) struct PostgresPipeline<'a> {
    session: PostgresSession<'a>,
    clock: Clock,
    /// Number of slots.
    slots: usize,
    /// Operations that are to be sent.
    queued: VecDeque<(Slot, Op)>,
    /// Operations whose answer has not come, in the order in which they were sent.
    sent: VecDeque<(Slot, Kind)>,
}

impl<'a> PostgresPipeline<'a> {
    /// A session with this number of slots.
    pub(super) fn new(session: PostgresSession<'a>, clock: Clock, slots: usize) -> Self {
        Self {
            session,
            clock,
            slots,
            queued: VecDeque::with_capacity(slots),
            sent: VecDeque::with_capacity(slots),
        }
    }

    /// Sends what is queued, with one write.
    fn send(&mut self, out: &mut Vec<Completion>) -> Result<(), Fault> {
        while let Some((slot, op)) = self.queued.pop_front() {
            if !self.session.is_prepared(op) {
                // Preparing is a round trip, whose answer comes after those of earlier operations.
                self.flush()?;
                while !self.sent.is_empty() {
                    self.take_answer(out)?;
                }
            }
            match self.session.prepare(op) {
                Ok(()) => {
                    self.session.queue(op);
                    self.sent.push_back((slot, op.kind));
                }
                Err(error) => {
                    let outcome = self.session.judge(op.kind, Err(error))?;
                    out.push(Completion { slot, outcome });
                }
            }
        }
        self.flush()
    }

    fn flush(&mut self) -> Result<(), Fault> {
        let lost = |error: super::protocol::PostgresError| {
            Fault(format!("the connection was lost: {}", error.in_words()))
        };
        self.session.client.flush_queue().map_err(lost)
    }

    /// Takes the answer to the oldest operation, and waits for it.
    fn take_answer(&mut self, out: &mut Vec<Completion>) -> Result<(), Fault> {
        let Some((slot, kind)) = self.sent.pop_front() else {
            return Ok(());
        };
        let answered = self.session.client.next_answer(self.sent.is_empty());
        let outcome = self.session.judge(kind, answered)?;
        out.push(Completion { slot, outcome });
        Ok(())
    }
}

impl Session for PostgresPipeline<'_> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        self.queued.push_back((slot, op));
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        self.send(out)?;
        if self.sent.is_empty() {
            if out.is_empty() {
                self.clock.wait_until(until);
            }
            return Ok(());
        }
        if out.is_empty() && !self.session.client.has_answer() {
            // While a slot is free, the next operation may be due before the next answer comes.
            let is_full = self.sent.len() == self.slots;
            let left = Duration::from_nanos(until.since(self.clock.now()).0);
            if !is_full && !self.session.client.hears_within(left) {
                return Ok(());
            }
            self.take_answer(out)?;
        }
        while !self.sent.is_empty() && self.session.client.has_answer() {
            self.take_answer(out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::postgres::protocol::PostgresClient;
    use rigel_model::{Cause, Outcome, SqlWork, Tables};
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;
    use std::thread;

    pub(in super::super) const TABLES: Tables = Tables {
        schemas: 1,
        scale: 1000,
        scan_blocks: 1,
        block: 8192,
    };

    pub(in super::super) fn message(tag: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap().to_be_bytes();
        [&[tag][..], &length, body].concat()
    }

    /// The answer to a read: the rows that it counted, or an error.
    pub(in super::super) fn answer(rows: Option<i64>) -> Vec<u8> {
        let result = rows.map_or_else(
            || message(b'E', b"VERROR\0C57014\0Mcancelled\0\0"),
            |rows| {
                let row = [&[0, 1, 0, 0, 0, 8][..], &rows.to_be_bytes()].concat();
                [message(b'D', &row), message(b'C', b"SELECT 1\0")].concat()
            },
        );
        [message(b'2', b""), result, message(b'Z', b"I")].concat()
    }

    /// Reads messages until `count` of them ended a transaction.
    pub(in super::super) fn hear(socket: &mut UnixStream, count: usize) {
        let mut syncs = 0;
        while syncs < count {
            let mut head = [0; 5];
            socket.read_exact(&mut head).unwrap();
            let [tag, length @ ..] = head;
            let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
            socket.read_exact(&mut body).unwrap();
            syncs += usize::from(tag == b'S');
        }
    }

    pub(in super::super) fn read(position: u64) -> Op {
        Op {
            kind: Kind::Read,
            position,
            length: 8192,
        }
    }

    #[test]
    fn operations_are_sent_before_the_answers_and_end_in_their_order() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        // Only keeps a client that waits for the first answer from hanging.
        theirs
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let server = thread::spawn(move || {
            hear(&mut theirs, 1);
            theirs
                .write_all(&[message(b'1', b""), message(b'Z', b"I")].concat())
                .unwrap();
            // Nothing is answered until all three have arrived; then the answer to the second is an
            // error, and the third is short of a row.
            hear(&mut theirs, 3);
            for rows in [Some(64), None, Some(63)] {
                theirs.write_all(&answer(rows)).unwrap();
            }
            hear(&mut theirs, 1);
            theirs.write_all(&answer(Some(64))).unwrap();
        });
        let work = SqlWork {
            pipeline: 4,
            ..SqlWork::reads(TABLES)
        };
        let session = PostgresSession::new(PostgresClient::of_pair(ours), work, &[]);
        let mut session = PostgresPipeline::new(session, Clock::real(), 4);
        for slot in 0..3 {
            session.submit(slot, read(100 * u64::from(slot))).unwrap();
        }
        let (mut out, mut over) = (Vec::new(), Vec::new());
        while over.len() < 3 {
            let soon = session.clock.now().plus(Nanos::from_millis(10));
            session.reap(soon, &mut out).unwrap();
            over.append(&mut out);
        }
        let found: Vec<_> = over.iter().map(|one| (one.slot, one.outcome)).collect();
        let cancelled = Outcome::Failed(Cause::SqlState(*b"57014"));
        let short = Outcome::Failed(Cause::Rows);
        assert_eq!(found, [(0, Outcome::Done), (1, cancelled), (2, short)]);
        // The session goes on after both.
        session.submit(2, read(7)).unwrap();
        while out.is_empty() {
            let soon = session.clock.now().plus(Nanos::from_millis(10));
            session.reap(soon, &mut out).unwrap();
        }
        assert_eq!((out[0].slot, out[0].outcome), (2, Outcome::Done));
        server.join().unwrap();
    }

    #[test]
    fn a_connection_that_ends_is_a_fault() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let session =
            PostgresSession::new(PostgresClient::of_pair(ours), SqlWork::reads(TABLES), &[]);
        let mut session = PostgresPipeline::new(session, Clock::real(), 2);
        session.submit(0, read(0)).unwrap();
        let fault = session.reap(Nanos(0), &mut Vec::new()).unwrap_err();
        assert!(fault.0.contains("the connection was lost"), "{}", fault.0);
    }
}
