//! Connections to `MariaDB` and `MySQL` whose statements heed the request to stop.
//!
//! Input: a connection of the client's library, which waits for an answer without limit. Output: the
//! same statements. One that still waits a while after the program was asked to stop fails, and says
//! how long the server did not answer: one thread looks at all connections, and shuts the socket of
//! such a one down.

use mysql::prelude::{AsStatement, FromRow, Queryable};
use mysql::{Conn, Params, Statement};
use rigel_device::bounded::{self, BoundedWait};
use rigel_device::rights;
use rigel_model::Nanos;
use rustix::net::{Shutdown, shutdown};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::Duration;

/// A connection with the settings of every session.
pub(crate) struct MysqlConnection {
    connection: Conn,
    watched: Arc<WatchedSocket>,
}

/// What the thread that looks knows of a connection.
struct WatchedSocket {
    socket: OwnedFd,
    statement: Mutex<StatementWait>,
}

/// How a connection waits for its server.
enum StatementWait {
    /// No statement runs.
    Idle,
    Running(BoundedWait),
    /// The socket was shut down after this time without an answer.
    Over(Nanos),
}

/// The sockets of all connections, which one thread of the process looks at: a server that is silent
/// must not cost each of hundreds of sessions a second thread.
static SOCKETS: Mutex<Vec<Weak<WatchedSocket>>> = Mutex::new(Vec::new());

impl MysqlConnection {
    pub(super) fn new(connection: Conn) -> io::Result<Self> {
        // SAFETY: the connection holds its descriptor open for as long as it is borrowed here.
        let socket = unsafe { BorrowedFd::borrow_raw(connection.as_raw_fd()) };
        let watched = Arc::new(WatchedSocket {
            socket: socket.try_clone_to_owned()?,
            statement: Mutex::new(StatementWait::Idle),
        });
        look_at_all()?;
        let mut sockets = locked(&SOCKETS);
        sockets.retain(|socket| socket.strong_count() > 0);
        sockets.push(Arc::downgrade(&watched));
        drop(sockets);
        Ok(Self {
            connection,
            watched,
        })
    }

    pub(super) fn query<T: FromRow>(
        &mut self,
        query: impl AsRef<str>,
    ) -> Result<Vec<T>, mysql::Error> {
        self.bounded(|connection| connection.query(query))
    }

    pub(super) fn query_first<T: FromRow>(
        &mut self,
        query: impl AsRef<str>,
    ) -> Result<Option<T>, mysql::Error> {
        self.bounded(|connection| connection.query_first(query))
    }

    pub(crate) fn query_drop(&mut self, query: impl AsRef<str>) -> Result<(), mysql::Error> {
        self.bounded(|connection| connection.query_drop(query))
    }

    pub(super) fn prep(&mut self, query: impl AsRef<str>) -> Result<Statement, mysql::Error> {
        self.bounded(|connection| connection.prep(query))
    }

    pub(super) fn exec_first<T: FromRow>(
        &mut self,
        statement: impl AsStatement,
        parameters: impl Into<Params>,
    ) -> Result<Option<T>, mysql::Error> {
        self.bounded(|connection| connection.exec_first(statement, parameters))
    }

    pub(super) fn exec_drop(
        &mut self,
        statement: impl AsStatement,
        parameters: impl Into<Params>,
    ) -> Result<(), mysql::Error> {
        self.bounded(|connection| connection.exec_drop(statement, parameters))
    }

    /// Number of rows that the last statement changed.
    pub(super) fn affected_rows(&self) -> u64 {
        self.connection.affected_rows()
    }

    /// The server's number of this connection.
    pub(super) fn connection_id(&self) -> u32 {
        self.connection.connection_id()
    }

    /// Makes a call that waits for the server.
    fn bounded<T>(
        &mut self,
        call: impl FnOnce(&mut Conn) -> Result<T, mysql::Error>,
    ) -> Result<T, mysql::Error> {
        self.watched.begin()?;
        let answer = call(&mut self.connection);
        self.watched.end()?;
        answer
    }
}

impl WatchedSocket {
    /// Begins a statement.
    fn begin(&self) -> io::Result<()> {
        let mut statement = locked(&self.statement);
        if let StatementWait::Over(waited) = *statement {
            return Err(silent(waited));
        }
        *statement = StatementWait::Running(BoundedWait::new(bounded::NEVER));
        Ok(())
    }

    /// Ends it. An error if its wait was ended.
    fn end(&self) -> io::Result<()> {
        let mut statement = locked(&self.statement);
        if let StatementWait::Over(waited) = *statement {
            return Err(silent(waited));
        }
        *statement = StatementWait::Idle;
        Ok(())
    }

    /// Ends the wait for a statement if it is over.
    fn look(&self) {
        let mut statement = locked(&self.statement);
        if let StatementWait::Running(wait) = &mut *statement
            && wait.is_over()
        {
            *statement = StatementWait::Over(wait.waited());
            // A socket that cannot be shut down is no longer connected.
            let _ = shutdown(&self.socket, Shutdown::Both);
        }
    }
}

/// The error of a connection whose server did not answer for this time.
pub(super) fn silent(waited: Nanos) -> io::Error {
    let why = format!(
        "the server did not answer for {:.0} s",
        waited.as_secs_f64()
    );
    io::Error::new(io::ErrorKind::TimedOut, why)
}

/// Starts the thread that looks at all connections, once.
fn look_at_all() -> io::Result<()> {
    static STARTED: Once = Once::new();
    let mut started = Ok(());
    STARTED.call_once(|| {
        let look = || {
            // Sockets that are open need none.
            let _ = rights::give_up_all();
            loop {
                thread::sleep(Duration::from_nanos(bounded::LOOK.0));
                let sockets: Vec<_> = locked(&SOCKETS).iter().filter_map(Weak::upgrade).collect();
                sockets.iter().for_each(|socket| socket.look());
            }
        };
        let thread = thread::Builder::new().name("mysql".into());
        started = thread.spawn(look).map(drop);
    });
    started
}

/// A value behind a lock, also after a panic elsewhere: no change of it is half made.
fn locked<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
}
