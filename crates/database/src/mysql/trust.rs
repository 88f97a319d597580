//! Whether objects under our names may be used: none may run code.
//!
//! Input: a connection. Output: nothing, or why the objects are left alone. Only the server's own
//! catalogue is read. A view calls its functions with the rights of whoever reads it, if it was made
//! so, and a trigger runs with each write. So this comes before the first statement on our tables.

use super::client::failed;
use super::connection::MysqlConnection;
use crate::access::Address;
use crate::tables::{SCHEMA, is_name_of_ours};
use rigel_model::{Error, usage};

/// Names and types. Asked for more, the server would open the views.
const TYPES: &str = "SELECT TABLE_NAME, TABLE_TYPE, NULL FROM information_schema.TABLES WHERE \
                     TABLE_SCHEMA = DATABASE()";

/// Names, types and engines, once all that we use are tables.
const ENGINES: &str = "SELECT TABLE_NAME, TABLE_TYPE, ENGINE FROM information_schema.TABLES WHERE \
                       TABLE_SCHEMA = DATABASE() AND TABLE_TYPE = 'BASE TABLE'";

/// The table and the name of each trigger.
const TRIGGERS: &str = "SELECT EVENT_OBJECT_TABLE, TRIGGER_NAME, NULL FROM \
                        information_schema.TRIGGERS WHERE EVENT_OBJECT_SCHEMA = DATABASE()";

/// Refuses views, tables of other engines and triggers in the place of our tables.
///
/// # Errors
/// There is one, or the server does not answer.
pub(super) fn refuse_foreign(
    connection: &mut MysqlConnection,
    address: &Address,
) -> Result<(), Error> {
    let mut rows = |text: &str| -> Result<Vec<(String, String, Option<String>)>, Error> {
        let rows: Vec<(String, String, Option<String>)> = connection
            .query(text)
            .map_err(|error| failed(address, "list its tables", &error))?;
        Ok(rows.into_iter().filter(|row| is_ours(&row.0)).collect())
    };
    if let Some((name, kind, _)) = rows(TYPES)?.iter().find(|row| row.1 != "BASE TABLE") {
        let what = format!("named {name} that is a {}", kind.to_lowercase());
        return Err(refused(address, &what));
    }
    let engines = rows(ENGINES)?;
    let is_other = |engine: &str| !engine.eq_ignore_ascii_case("InnoDB");
    let engine = |row: &(String, String, Option<String>)| row.2.clone().unwrap_or_default();
    if let Some(row) = engines.iter().find(|row| is_other(&engine(row))) {
        let what = format!("named {} of the engine '{}'", row.0, engine(row));
        return Err(refused(address, &what));
    }
    match rows(TRIGGERS)?.first() {
        Some((name, trigger, _)) => {
            let what = format!("named {name} that has the trigger '{trigger}'");
            Err(refused(address, &what))
        }
        None => Ok(()),
    }
}

/// True if a load makes a table of this name. Some servers know only lower case.
fn is_ours(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let rest = name
        .strip_prefix(SCHEMA)
        .and_then(|rest| rest.strip_prefix('_'));
    rest.is_some_and(is_name_of_ours)
}

fn refused(address: &Address, what: &str) -> Error {
    usage!(
        "'{address}' has an object {what}, which could run code; it is left alone",
        "remove it, or give a database in which no other user may create objects"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_tables_are_told_from_others_by_name() {
        for name in [
            "rigel_manifest",
            "RIGEL_CHUNKS",
            "rigel_blocks_12",
            "rigel_scan_1",
        ] {
            assert!(is_ours(name), "{name}");
        }
        for name in ["manifest", "rigel_blocks", "rigelmanifest", "rigel_shop"] {
            assert!(!is_ours(name), "{name}");
        }
    }
}
