//! A session with a `PostgreSQL` server: what is sent, and what the answers say.
//!
//! Input: a connected socket and statements. Output: rows and counts. After each round trip the
//! server is ready for the next, or the connection is closed.

use super::error::{PostgresError, PostgresRefusal};
use super::inbox::{PostgresFrame, PostgresInbox, shown};
use super::outbox::{self, PostgresCall, PostgresFormat};
use super::row::{PostgresRow, first_number, rows_of};
use super::socket::{PostgresLink, PostgresSocket, is_late};
use rigel_device::bounded::{self, BoundedWait};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::time::Duration;

/// Maximum number of notices and changed settings that a server may send between two messages, and of
/// errors in one answer.
const ASIDES_MAX: usize = 10_000;

/// Maximum memory of the rows of one administrative query in bytes: the list of the chunks of
/// tables of a petabyte fits.
const ROWS_MAX: usize = 1024 * 1024 * 1024;

/// A session with a server.
pub(crate) struct PostgresClient<L: PostgresLink = PostgresSocket> {
    link: L,
    inbox: PostgresInbox,
    /// The messages of the next round trip, but of calls.
    pub(super) out: Vec<u8>,
    /// The time of logging in, while it lasts.
    login: Option<BoundedWait>,
    /// Number of statements that were prepared.
    prepared: u32,
    is_closed: bool,
    /// True if the server waits for a message.
    is_ready: bool,
}

/// A statement that the server has prepared in this session.
#[derive(Debug, Clone)]
pub(crate) struct PostgresStatement {
    name: String,
}

impl PostgresStatement {
    /// A call with these values in binary form.
    pub(crate) fn call(&self, values: &[&[u8]]) -> PostgresCall {
        PostgresCall::new(&self.name, values)
    }
}

/// The answer to a call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct PostgresAnswer {
    /// The first column of the last row, if it is a `bigint`.
    pub(crate) number: Option<i64>,
    /// Number of rows that were returned or changed.
    pub(crate) rows: u64,
}

impl PostgresClient {
    /// The socket, to wait for.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.link.descriptor()
    }
}

/// Reads what has arrived at a socket.
struct Arrived<'a, L>(&'a mut L);

impl<L: PostgresLink> Read for Arrived<'_, L> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read_arrived(into)
    }
}

#[cfg(test)]
impl PostgresClient {
    /// A client that is logged in to whoever is at the other end.
    pub(crate) fn of_pair(socket: std::os::unix::net::UnixStream) -> Self {
        Self::new(
            PostgresSocket::Local(super::socket::PostgresLocal::new(socket).expect("a socket")),
            None,
        )
    }
}

impl<L: PostgresLink> PostgresClient<L> {
    /// A client on a connected socket, which is not logged in yet.
    pub(super) fn new(link: L, login: Option<BoundedWait>) -> Self {
        Self {
            link,
            inbox: PostgresInbox::new(),
            out: Vec::new(),
            login,
            prepared: 0,
            is_closed: false,
            is_ready: false,
        }
    }

    /// Lets statements take as long as the server needs, once it is logged in.
    pub(super) fn be_patient(&mut self) {
        self.login = None;
    }

    /// True if the connection is lost.
    pub(crate) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Executes one or several statements whose rows nobody needs.
    ///
    /// # Errors
    /// The server refuses one of them, or the connection is lost.
    pub(crate) fn batch(&mut self, statements: &str) -> Result<(), PostgresError> {
        outbox::query(&mut self.out, statements);
        self.send_out()?;
        self.answer(b"CDTI", |_, _| Ok(()))
    }

    /// The rows of a statement. `values` are the text of its parameters, whose types the server
    /// infers.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    pub(crate) fn query(
        &mut self,
        statement: &str,
        values: &[&str],
    ) -> Result<Vec<PostgresRow>, PostgresError> {
        outbox::parse(&mut self.out, "", statement, &[]);
        self.bind_and_fetch("", values)
    }

    /// The only row of a statement.
    ///
    /// # Errors
    /// As [`query`](Self::query); or there is no row.
    pub(crate) fn query_one(
        &mut self,
        statement: &str,
        values: &[&str],
    ) -> Result<PostgresRow, PostgresError> {
        only(self.query(statement, values)?)
    }

    /// Prepares a statement. Parameters without a type in `types` get the one that the server
    /// infers.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    pub(crate) fn prepare(
        &mut self,
        statement: &str,
        types: &[u32],
    ) -> Result<PostgresStatement, PostgresError> {
        let name = format!("s{}", self.prepared);
        self.prepared += 1;
        outbox::parse(&mut self.out, &name, statement, types);
        outbox::sync(&mut self.out);
        self.send_out()?;
        self.answer(b"1", |_, _| Ok(()))?;
        Ok(PostgresStatement { name })
    }

    /// The rows of a prepared statement, with the text of its parameters.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    pub(crate) fn query_prepared(
        &mut self,
        statement: &PostgresStatement,
        values: &[&str],
    ) -> Result<Vec<PostgresRow>, PostgresError> {
        self.bind_and_fetch(&statement.name, values)
    }

    fn bind_and_fetch(
        &mut self,
        name: &str,
        values: &[&str],
    ) -> Result<Vec<PostgresRow>, PostgresError> {
        let values: Vec<&[u8]> = values.iter().map(|value| value.as_bytes()).collect();
        outbox::bind(&mut self.out, name, PostgresFormat::Text, &values);
        outbox::execute(&mut self.out);
        outbox::sync(&mut self.out);
        self.send_out()?;
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.answer(b"12DCI", |tag, body| {
            if tag == b'D' {
                let row = PostgresRow::parse(body)?;
                bytes += row.bytes();
                if bytes > ROWS_MAX {
                    return Err(PostgresError::protocol("rows without an end"));
                }
                rows.push(row);
            }
            Ok(())
        })?;
        Ok(rows)
    }

    /// Executes a call: one write, and one read if the answer arrives in one piece.
    ///
    /// # Errors
    /// The server refuses it, or the connection is lost.
    #[inline]
    pub(crate) fn run(&mut self, call: &PostgresCall) -> Result<PostgresAnswer, PostgresError> {
        self.send(call.bytes())?;
        self.called()
    }

    /// Sends a call, and does not wait for its answer.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn start(&mut self, call: &PostgresCall) -> Result<(), PostgresError> {
        self.send(call.bytes())
    }

    /// Reads once. The socket must have something to read, or its end; of a record of TLS that is not
    /// complete, nothing can be read yet.
    ///
    /// # Errors
    /// The connection is lost.
    pub(crate) fn hear(&mut self) -> io::Result<()> {
        match self.inbox.read(&mut Arrived(&mut self.link)) {
            Err(error) if is_late(&error) => Ok(()),
            read => read,
        }
    }

    /// Adds a call to those that [`flush_queue`](Self::flush_queue) sends. Each is answered on its
    /// own, in this order.
    #[inline]
    pub(crate) fn queue(&mut self, call: &PostgresCall) {
        self.out.extend_from_slice(call.bytes());
    }

    /// Sends the queued calls with one write. Waits for no answer.
    ///
    /// # Errors
    /// The connection is lost.
    #[inline]
    pub(crate) fn flush_queue(&mut self) -> Result<(), PostgresError> {
        if self.out.is_empty() {
            Ok(())
        } else {
            self.send_out()
        }
    }

    /// The answer to the oldest call that was sent and not answered yet. `is_last` if it is the only
    /// one.
    ///
    /// # Errors
    /// The server refuses that call, or the connection is lost.
    #[inline]
    pub(crate) fn next_answer(&mut self, is_last: bool) -> Result<PostgresAnswer, PostgresError> {
        let answered = self.called();
        self.is_ready &= is_last;
        answered
    }

    /// True if a complete answer has been read from the socket.
    #[inline]
    pub(crate) fn has_answer(&self) -> bool {
        self.inbox.has(b'Z')
    }

    /// Waits until the server sends something, or the connection ends; false if neither happens
    /// within `time`.
    pub(crate) fn hears_within(&mut self, time: Duration) -> bool {
        self.link.hears_within(time)
    }

    /// The answer to a call.
    #[inline]
    fn called(&mut self) -> Result<PostgresAnswer, PostgresError> {
        let (mut found, mut is_complete) = (PostgresAnswer::default(), false);
        self.answer(b"2DC", |tag, body| {
            match tag {
                b'D' => found.number = first_number(body),
                b'C' => (found.rows, is_complete) = (rows_of(body), true),
                _ => (),
            }
            Ok(())
        })?;
        if is_complete {
            Ok(found)
        } else {
            Err(self.broken("an answer without a result".into()))
        }
    }

    /// Sends the prepared messages.
    pub(super) fn send_out(&mut self) -> Result<(), PostgresError> {
        let out = std::mem::take(&mut self.out);
        let sent = self.send(&out);
        self.out = out;
        // It may have held a password.
        self.out.fill(0);
        self.out.clear();
        sent
    }

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> Result<(), PostgresError> {
        if self.is_closed {
            return Err(PostgresError::Lost("the connection is closed".into()));
        }
        self.is_ready = false;
        let (mut left, mut wait) = (bytes, None);
        loop {
            match self.link.send(&mut left) {
                Ok(()) => return Ok(()),
                Err(error) if is_late(&error) => self.go_on_waiting(&mut wait)?,
                Err(error) => return Err(self.last_words(error.into())),
            }
        }
    }

    /// Called where nothing could be read or sent for a look.
    ///
    /// # Errors
    /// The time of logging in is up, or the program was asked to stop a while ago.
    #[cold]
    fn go_on_waiting(&mut self, statement: &mut Option<BoundedWait>) -> Result<(), PostgresError> {
        let wait = match &mut self.login {
            Some(login) => login,
            None => statement.get_or_insert_with(|| BoundedWait::new(bounded::NEVER)),
        };
        if wait.is_over() {
            let waited = wait.waited();
            self.is_closed = true;
            return Err(PostgresError::Silent(waited));
        }
        Ok(())
    }

    /// Why the server does not listen any more: in its own words if it sent some, otherwise
    /// `instead`.
    fn last_words(&mut self, instead: PostgresError) -> PostgresError {
        for _ in 0..ASIDES_MAX {
            match self.receive() {
                Ok(frame) if frame.tag == b'E' => {
                    let refusal = PostgresRefusal::parse(self.inbox.body(&frame));
                    self.is_closed = true;
                    return PostgresError::Refused(Box::new(refusal));
                }
                Ok(_) => (),
                Err(_) => break,
            }
        }
        self.is_closed = true;
        instead
    }

    /// Reads an answer to its end. `take` gets the messages of the `expected` types.
    ///
    /// # Errors
    /// The first error message of the server, or of `take`; a message that is not expected; or the
    /// connection is lost.
    #[inline]
    pub(super) fn answer(
        &mut self,
        expected: &[u8],
        mut take: impl FnMut(u8, &[u8]) -> Result<(), PostgresError>,
    ) -> Result<(), PostgresError> {
        let (mut refused, mut errors) = (None, 0);
        loop {
            let frame = self.receive()?;
            match frame.tag {
                b'Z' => {
                    self.is_ready = true;
                    return refused.map_or(Ok(()), Err);
                }
                b'E' => {
                    let error = self.refusal(&frame);
                    if error.is_closed() {
                        return Err(error);
                    }
                    errors += 1;
                    if errors > ASIDES_MAX {
                        let why = format!("more than {ASIDES_MAX} errors in one answer");
                        return Err(self.broken(why));
                    }
                    refused.get_or_insert(error);
                }
                tag if expected.contains(&tag) => {
                    let taken = take(tag, self.inbox.body(&frame));
                    taken.inspect_err(|_| self.is_closed = true)?;
                }
                tag => return Err(self.unexpected(tag)),
            }
        }
    }

    /// The error message in `frame`.
    pub(super) fn refusal(&mut self, frame: &PostgresFrame) -> PostgresError {
        let refusal = PostgresRefusal::parse(self.inbox.body(frame));
        self.is_closed |= refusal.is_fatal();
        PostgresError::Refused(Box::new(refusal))
    }

    /// The error for a message of this type that must not come now.
    pub(super) fn unexpected(&mut self, tag: u8) -> PostgresError {
        self.broken(format!("an unexpected message of type {}", shown(tag)))
    }

    /// Closes the connection because of a breach of the protocol.
    pub(super) fn broken(&mut self, why: String) -> PostgresError {
        self.is_closed = true;
        PostgresError::Protocol(why)
    }

    /// The next message but notices, changed settings and notifications, which can come at any
    /// time.
    ///
    /// # Errors
    /// The connection is lost, or a message is not possible.
    #[inline]
    pub(super) fn receive(&mut self) -> Result<PostgresFrame, PostgresError> {
        for _ in 0..ASIDES_MAX {
            let frame = loop {
                match self.inbox.next() {
                    Ok(Some(frame)) => break frame,
                    Ok(None) => self.read()?,
                    Err(error) => {
                        self.is_closed = true;
                        return Err(error);
                    }
                }
            };
            if !matches!(frame.tag, b'N' | b'S' | b'A') {
                return Ok(frame);
            }
        }
        Err(self.broken(format!("more than {ASIDES_MAX} notices in one answer")))
    }

    /// The body of a message just received.
    pub(super) fn body(&self, frame: &PostgresFrame) -> &[u8] {
        self.inbox.body(frame)
    }

    #[inline]
    fn read(&mut self) -> Result<(), PostgresError> {
        let mut wait = None;
        if self.login.is_some() {
            // A server that sends a byte now and then is never late with one.
            self.go_on_waiting(&mut wait)?;
        }
        loop {
            match self.inbox.read(&mut self.link) {
                Ok(()) => return Ok(()),
                Err(error) if is_late(&error) => self.go_on_waiting(&mut wait)?,
                Err(error) => {
                    self.is_closed = true;
                    return Err(error.into());
                }
            }
        }
    }

    /// Bytes of memory for what the server sends.
    pub(super) fn memory(&self) -> usize {
        self.inbox.capacity()
    }
}

impl<L: PostgresLink> Drop for PostgresClient<L> {
    fn drop(&mut self) {
        // A server that is busy does not read: writing could wait for it. It notices the closed
        // socket.
        if self.is_ready && !self.is_closed {
            self.out.clear();
            outbox::terminate(&mut self.out);
            let _ = self.link.send(&mut self.out.as_slice());
        }
    }
}

fn only(rows: Vec<PostgresRow>) -> Result<PostgresRow, PostgresError> {
    rows.into_iter()
        .next()
        .ok_or_else(|| PostgresError::protocol("no row where there is always one"))
}

#[cfg(test)]
mod tests {
    use super::super::socket::PostgresLocal;
    use super::*;
    use rigel_model::Nanos;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_server_that_says_or_takes_nothing_is_silent_once_the_wait_is_over() {
        let more_than_a_socket_holds = "-".repeat(16 * 1024 * 1024);
        for statement in ["SELECT 1", &more_than_a_socket_holds] {
            let (ours, _theirs) = UnixStream::pair().unwrap();
            let link = PostgresSocket::Local(PostgresLocal::new(ours).unwrap());
            let wait = BoundedWait::new(Nanos::from_millis(200));
            let mut client = PostgresClient::new(link, Some(wait));
            let error = client.batch(statement).unwrap_err();
            assert!(matches!(error, PostgresError::Silent(_)), "{error:?}");
            assert!(error.is_closed() && client.is_closed());
        }
    }
}
