//! What a server says of its own I/O: counters by its own names, and what its sessions wait for.
//!
//! Input: an [`Access`]. Output: numbers by name, of the whole server, and waits. Nothing is loaded,
//! changed or written, and no text of a statement is read.

use super::access::Access;
use super::{mysql, postgres};
use rigel_model::{Dbms, Error, LogKind};
use std::collections::BTreeMap;

/// A connection to one server for its statistics.
pub struct ServerStatus {
    connection: StatusConnection,
    /// Product and version.
    pub version: String,
    /// Bytes of a block.
    pub block: u32,
    /// How it writes its log; `None` if it waits for no write.
    pub log: Option<LogKind>,
    /// True if the server is known to hide from this user what others' sessions wait for.
    pub hides_waits: bool,
    /// True if the server is known not to measure how long its I/O takes.
    pub hides_times: bool,
}

enum StatusConnection {
    Postgres(Box<postgres::PostgresStatus>),
    Mysql(mysql::MysqlStatus),
}

impl ServerStatus {
    /// Connects to the first server of `access`.
    ///
    /// # Errors
    /// It cannot be reached, is too old, or does not show its statistics to this user.
    pub fn connect(access: &Access) -> Result<Self, Error> {
        let address = &access.servers[0];
        Ok(match access.dbms() {
            Dbms::Postgres => {
                let (connection, version, block) =
                    postgres::PostgresStatus::connect(access, address)?;
                Self {
                    log: connection.log,
                    hides_waits: connection.hides_waits,
                    hides_times: connection.hides_times,
                    connection: StatusConnection::Postgres(Box::new(connection)),
                    version,
                    block,
                }
            }
            Dbms::Mysql => {
                let (connection, version, block) = mysql::MysqlStatus::connect(access, address)?;
                Self {
                    log: connection.log,
                    connection: StatusConnection::Mysql(connection),
                    version,
                    block,
                    hides_waits: false,
                    hides_times: false,
                }
            }
        })
    }

    /// The server's counters by its own names; times are in microseconds, and their names end in
    /// `_us`.
    ///
    /// # Errors
    /// The server does not answer, in its own words.
    pub fn counters(&mut self) -> Result<BTreeMap<String, u64>, String> {
        match &mut self.connection {
            StatusConnection::Postgres(connection) => connection.counters(),
            StatusConnection::Mysql(connection) => connection.counters(),
        }
    }

    /// What each active session waits for right now, with the number of sessions; `CPU` is nothing.
    pub fn waits(&mut self) -> Result<BTreeMap<String, u64>, String> {
        match &mut self.connection {
            StatusConnection::Postgres(connection) => connection.waits(),
            StatusConnection::Mysql(connection) => connection.waits(),
        }
    }
}
