//! Several `PostgreSQL` sessions in one thread, each with a connection of its own.
//!
//! Input: operations in slots. A slot is a session, with at most one operation in flight. Output:
//! completions, in the order in which the server answers. With more sessions than CPUs a thread for
//! each of them would cost a change of threads for each answer, which the server needs itself if it
//! runs on the same machine.

use super::protocol::{PostgresAnswer, PostgresError, is_any_readable};
use super::session::PostgresSession;
use rigel_device::clock::Clock;
use rigel_device::engine::Session;
use rigel_model::{Completion, Fault, Kind, Nanos, Op, Slot};
use rustix::event::{PollFd, PollFlags};
use std::io::ErrorKind;
use std::time::Duration;

/// The sessions of a thread.
pub(super) struct PostgresGroup<'a> {
    members: Vec<GroupMember<'a>>,
    clock: Clock,
    /// Operations that ended before they were sent.
    over: Vec<Completion>,
    /// The slots whose connections have something to read.
    ready: Vec<Slot>,
}

struct GroupMember<'a> {
    session: PostgresSession<'a>,
    /// The kind of the operation whose answer has not come.
    sent: Option<Kind>,
}

impl<'a> PostgresGroup<'a> {
    /// A slot for each of these sessions.
    pub(super) fn new(sessions: Vec<PostgresSession<'a>>, clock: Clock) -> Self {
        let member = |session| GroupMember {
            session,
            sent: None,
        };
        Self {
            members: sessions.into_iter().map(member).collect(),
            clock,
            over: Vec::new(),
            ready: Vec::new(),
        }
    }

    /// Waits until `until`, or until a connection with an operation in flight has something to read.
    fn look(&mut self, until: Nanos) -> Result<(), Fault> {
        let time = Duration::from_nanos(until.since(self.clock.now()).0);
        let in_flight = (0..).zip(&self.members);
        let in_flight = in_flight.filter(|(_, member)| member.sent.is_some());
        self.ready.clear();
        self.ready.extend(in_flight.map(|(slot, _)| slot));
        let socket = |slot: &Slot| {
            let socket = self.members[usize::from(*slot)].session.client.descriptor();
            PollFd::from_borrowed_fd(socket, PollFlags::IN)
        };
        let mut asked: Vec<PollFd> = self.ready.iter().map(socket).collect();
        match is_any_readable(&mut asked, time) {
            Ok(_) => {}
            // The caller looks whether it is to stop.
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(Fault(format!(
                    "the connections cannot be waited for: {error}"
                )));
            }
        }
        let mut asked = asked.iter();
        self.ready
            .retain(|_| asked.next().is_some_and(|one| !one.revents().is_empty()));
        Ok(())
    }
}

impl GroupMember<'_> {
    /// Reads what has arrived. `None` if that is not the whole answer yet.
    fn hear(&mut self) -> Option<Result<PostgresAnswer, PostgresError>> {
        let client = &mut self.session.client;
        while client.hear().is_ok() {
            if client.has_answer() {
                return Some(client.next_answer(true));
            }
            if !client.hears_within(Duration::ZERO) {
                return None;
            }
        }
        // It may have said why it ends.
        Some(client.next_answer(true))
    }
}

impl Session for PostgresGroup<'_> {
    fn submit(&mut self, slot: Slot, op: Op) -> Result<(), Fault> {
        let member = &mut self.members[usize::from(slot)];
        match member.session.start(op) {
            Ok(()) => member.sent = Some(op.kind),
            Err(error) => {
                let outcome = member.session.judge(op.kind, Err(error))?;
                self.over.push(Completion { slot, outcome });
            }
        }
        Ok(())
    }

    fn reap(&mut self, until: Nanos, out: &mut Vec<Completion>) -> Result<(), Fault> {
        out.append(&mut self.over);
        if self.members.iter().all(|member| member.sent.is_none()) {
            if out.is_empty() {
                self.clock.wait_until(until);
            }
            return Ok(());
        }
        self.look(if out.is_empty() { until } else { Nanos(0) })?;
        for slot in self.ready.drain(..) {
            let member = &mut self.members[usize::from(slot)];
            let Some(answered) = member.hear() else {
                continue;
            };
            if let Some(kind) = member.sent.take() {
                let outcome = member.session.judge(kind, answered)?;
                out.push(Completion { slot, outcome });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::pipeline::tests::{TABLES, answer, hear, message, read};
    use super::*;
    use crate::postgres::protocol::PostgresClient;
    use rigel_model::{Cause, Outcome, SqlWork};
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    /// This number of sessions whose statement is prepared, and the servers' ends of their sockets.
    fn group(count: usize) -> (PostgresGroup<'static>, Vec<UnixStream>) {
        let (ours, mut theirs): (Vec<_>, Vec<_>) =
            (0..count).map(|_| UnixStream::pair().unwrap()).unzip();
        let session = |socket| {
            PostgresSession::new(PostgresClient::of_pair(socket), SqlWork::reads(TABLES), &[])
        };
        let sessions = ours.into_iter().map(session).collect();
        let mut group = PostgresGroup::new(sessions, Clock::real());
        for (slot, socket) in (0..).zip(&mut theirs) {
            // What arrives before it is asked for waits in the socket.
            let prepared = [message(b'1', b""), message(b'Z', b"I")].concat();
            socket.write_all(&prepared).unwrap();
            group.submit(slot, read(100 * u64::from(slot))).unwrap();
            hear(socket, 2);
        }
        (group, theirs)
    }

    /// What completes, however often it must be asked for.
    fn completed(group: &mut PostgresGroup, count: usize) -> Vec<(Slot, Outcome)> {
        let (mut out, mut all) = (Vec::new(), Vec::new());
        while all.len() < count {
            let soon = group.clock.now().plus(Nanos::from_millis(10));
            group.reap(soon, &mut out).unwrap();
            all.extend(out.drain(..).map(|one| (one.slot, one.outcome)));
        }
        all
    }

    #[test]
    fn whoever_is_answered_first_completes_first() {
        let (mut group, mut servers) = group(3);
        let mut out = Vec::new();
        group.reap(Nanos(0), &mut out).unwrap();
        assert!(out.is_empty(), "nothing was answered");
        servers[2].write_all(&answer(Some(64))).unwrap();
        assert_eq!(completed(&mut group, 1), [(2, Outcome::Done)]);
        servers[0].write_all(&answer(None)).unwrap();
        servers[1].write_all(&answer(Some(63))).unwrap();
        let mut found = completed(&mut group, 2);
        found.sort_by_key(|(slot, _)| *slot);
        let cancelled = Outcome::Failed(Cause::SqlState(*b"57014"));
        let short = Outcome::Failed(Cause::Rows);
        assert_eq!(found, [(0, cancelled), (1, short)]);
        // Each goes on after its error.
        for (slot, server) in (0..).zip(&mut servers) {
            group.submit(slot, read(7)).unwrap();
            server.write_all(&answer(Some(64))).unwrap();
        }
        let found = completed(&mut group, 3);
        assert!(
            found.iter().all(|(_, outcome)| *outcome == Outcome::Done),
            "{found:?}"
        );
    }

    #[test]
    fn half_an_answer_keeps_nobody_else_waiting() {
        let (mut group, mut servers) = group(2);
        let whole = answer(Some(64));
        let (half, rest) = whole.split_at(whole.len() / 2);
        servers[0].write_all(half).unwrap();
        servers[1].write_all(&whole).unwrap();
        assert_eq!(completed(&mut group, 1), [(1, Outcome::Done)]);
        servers[0].write_all(rest).unwrap();
        assert_eq!(completed(&mut group, 1), [(0, Outcome::Done)]);
    }

    #[test]
    fn a_server_that_ends_a_session_is_quoted() {
        let (mut group, mut servers) = group(2);
        let last = b"SFATAL\0VFATAL\0C57P01\0Mterminating connection\0\0";
        servers[1].write_all(&message(b'E', last)).unwrap();
        drop(servers.pop());
        let fault = loop {
            let soon = group.clock.now().plus(Nanos::from_millis(10));
            if let Err(fault) = group.reap(soon, &mut Vec::new()) {
                break fault;
            }
        };
        assert!(fault.0.contains("terminating connection"), "{}", fault.0);
    }
}
