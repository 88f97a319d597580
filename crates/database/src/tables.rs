//! The tables that Rigel makes: their names, the server that a session reads them on, and a check
//! of their size.

use super::access::Address;
use rigel_model::{Error, Tables, shell_word, usage};
use std::collections::BTreeMap;

/// Schema (or table prefix) of all our objects in a database.
pub const SCHEMA: &str = "rigel";

/// Name of table `number`, from 0, for reads by key.
pub(super) fn blocks_table(number: usize) -> String {
    format!("blocks_{}", number + 1)
}

/// Name of table `number`, from 0, for scans.
pub(super) fn scan_table(number: usize) -> String {
    format!("scan_{}", number + 1)
}

/// True if a load makes a table of this name.
pub(super) fn is_name_of_ours(name: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbered = ["blocks_", "scan_"]
        .iter()
        .find_map(|kind| name.strip_prefix(kind));
    ["manifest", "chunks"].contains(&name) || numbered.is_some_and(is_number)
}

/// The server for session `number`. Sessions take the servers in turn, and also the tables in turn.
/// So the turn shifts by one server after each full cycle, and each table is visited on each
/// server.
pub(super) fn server_of(number: usize, tables: Tables, servers: usize) -> usize {
    let tables = tables.schemas.max(1) as usize;
    let together = (1..=servers)
        .map(|times| tables * times)
        .find(|all| all.is_multiple_of(servers));
    (number + number / together.unwrap_or(1)) % servers
}

/// Refuses tables other than the wanted ones.
pub(super) fn refuse_other_tables(
    address: &Address,
    found: Option<Tables>,
    wanted: Tables,
) -> Result<(), Error> {
    match found {
        Some(found) if found == wanted => Ok(()),
        Some(found) => Err(usage!(
            "'{address}' has {found}, but {wanted} are expected",
            "give the existing size, or create the tables again: rigel sql drop, then rigel sql \
             load",
            found = in_words(found),
            wanted = in_words(wanted)
        )),
        None => Err(usage!(
            "'{address}' has no tables of rigel sql load, or not all of them",
            "create them: rigel sql load {word}",
            word = shell_word(&address.to_string())
        )),
    }
}

/// The servers of one process, each by what identifies it and what its counters are of.
#[derive(Default)]
pub(super) struct DistinctServers<'a>(BTreeMap<String, &'a Address>);

impl<'a> DistinctServers<'a> {
    /// Refuses a server that was given before by another URL: its counters are of all its clients,
    /// and would be added up once for each URL. Those of PostgreSQL are of one database, so two
    /// databases of a server are two. `instance` is `None` if the server does not identify itself.
    pub(super) fn add(
        &mut self,
        instance: Option<String>,
        address: &'a Address,
    ) -> Result<(), Error> {
        let twin = instance.and_then(|instance| self.0.insert(instance, address));
        let Some(twin) = twin else { return Ok(()) };
        Err(usage!(
            "'{address}' is the same server as '{twin}': it would be counted twice",
            "give each server once; all sessions and ranks share it"
        ))
    }
}

pub(super) fn in_words(tables: Tables) -> String {
    format!(
        "{} tables of {} rows and {} rows to scan",
        tables.schemas, tables.scale, tables.scan_blocks
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_tables_that_a_load_makes_are_told_from_others_by_name() {
        let made = [
            blocks_table(0),
            scan_table(11),
            "chunks".into(),
            "manifest".into(),
        ];
        assert!(made.iter().all(|name| is_name_of_ours(name)), "{made:?}");
        for other in ["mine", "blocks_", "blocks_1_id", "scan", "manifest_2", ""] {
            assert!(!is_name_of_ours(other), "{other}");
        }
    }

    #[test]
    fn every_table_is_visited_on_every_server_by_equally_many_sessions() {
        for (schemas, servers) in [(1, 1), (1, 2), (2, 2), (4, 2), (2, 4), (3, 2), (5, 3)] {
            let tables = Tables {
                schemas,
                scale: 1000,
                scan_blocks: 1,
                block: 8192,
            };
            let pair = |number: usize| {
                (
                    number % schemas as usize,
                    server_of(number, tables, servers),
                )
            };
            let all = schemas as usize * servers;
            let pairs: BTreeSet<_> = (0..all).map(pair).collect();
            assert_eq!(pairs.len(), all, "{schemas} tables, {servers} servers");
            let on_first = (0..servers * 6)
                .filter(|number| pair(*number).1 == 0)
                .count();
            assert!(
                on_first.abs_diff(6) <= 1,
                "{schemas} tables, {servers} servers: {on_first}"
            );
        }
    }
}
