//! What a server says of its own I/O: counters by its own names, and what its sessions wait for.
//!
//! Input: an [`Access`]. Output: numbers by name, of the whole server, and waits. Nothing is loaded,
//! changed or written, and no text of a statement is read.

use super::access::Access;
use super::{mysql, postgres};
use crate::model::{Dbms, Error};
use std::collections::BTreeMap;

/// A connection to one server for its statistics.
pub struct ServerStatus {
    connection: StatusConnection,
    /// Product and version.
    pub version: String,
    /// Bytes of a block.
    pub block: u32,
}

enum StatusConnection {
    Postgres(postgres::PostgresStatus),
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
                    connection: StatusConnection::Postgres(connection),
                    version,
                    block,
                }
            }
            Dbms::Mysql => {
                let (connection, version, block) = mysql::MysqlStatus::connect(access, address)?;
                Self {
                    connection: StatusConnection::Mysql(connection),
                    version,
                    block,
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
    ///
    /// # Errors
    /// As [`ServerStatus::counters`].
    pub fn waits(&mut self) -> Result<BTreeMap<String, u64>, String> {
        match &mut self.connection {
            StatusConnection::Postgres(connection) => connection.waits(),
            StatusConnection::Mysql(connection) => connection.waits(),
        }
    }
}

/// The pairs of name and number among rows of text.
pub(super) fn numbers(
    rows: impl IntoIterator<Item = (String, Option<String>)>,
) -> BTreeMap<String, u64> {
    rows.into_iter()
        .filter_map(|(name, value)| Some((name, value?.trim().parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_number_is_absent() {
        let rows = [
            ("a", Some("7")),
            ("b", None),
            ("c", Some("ON")),
            ("d", Some("-1")),
        ];
        let found = numbers(rows.map(|(name, value)| (name.to_string(), value.map(String::from))));
        assert_eq!(found, BTreeMap::from([("a".to_string(), 7)]));
    }

    proptest! {
        #[test]
        fn every_number_is_read(value in any::<u64>(), text in ".{0,20}") {
            let rows = [("a".to_string(), Some(format!(" {value}"))), ("b".into(), Some(text))];
            prop_assert_eq!(numbers(rows).get("a"), Some(&value));
        }
    }
}
