//! Whether objects under our names may be used: nobody else may make them run code.
//!
//! Input: a connection. Output: nothing, or why the objects are left alone. Only the system's
//! catalogues are read. A view, a trigger, a rule or a policy runs code with the rights of whoever
//! reads or writes the table, and the owner of a table can add one at any time. So this comes before
//! the first statement on our tables.

use super::client::failed;
use super::protocol::{PostgresClient, PostgresRow};
use crate::access::Address;
use crate::tables::{SCHEMA, is_name_of_ours};
use rigel_model::{Error, usage};

/// The schema, in a row without a name, and the relations in it: name, owner, whether the owner is
/// this user or a superuser, what kind it is, and what else would run code.
const OBJECTS: &str = "\
    WITH s AS (SELECT oid, nspowner FROM pg_namespace WHERE nspname = $1), \
    trusted AS (SELECT oid FROM pg_roles WHERE rolsuper OR rolname = current_user), \
    found AS (SELECT ''::text AS name, nspowner AS owner, 'r'::text AS kind, ''::text AS code FROM \
    s UNION ALL SELECT c.relname::text, c.relowner, c.relkind::text, CASE WHEN EXISTS (SELECT FROM \
    pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal) THEN 'a trigger' WHEN EXISTS \
    (SELECT FROM pg_rewrite r WHERE r.ev_class = c.oid) THEN 'a rule' WHEN c.relrowsecurity THEN \
    'row security' ELSE '' END FROM pg_class c, s WHERE c.relnamespace = s.oid) \
    SELECT name, pg_get_userbyid(owner)::text, owner IN (SELECT oid FROM trusted), kind, code, \
    current_user::text FROM found";

/// Refuses a schema or tables of ours that somebody else could make run code. A schema that does not
/// exist is fine.
///
/// # Errors
/// They are not to be trusted, or the server does not answer.
pub(super) fn refuse_foreign(client: &mut PostgresClient, address: &Address) -> Result<(), Error> {
    let rows = client
        .query(OBJECTS, &[SCHEMA])
        .map_err(|error| failed(address, "list the owners of its tables", &error))?;
    let is_ours = |row: &&PostgresRow| row.text(0).is_empty() || is_name_of_ours(row.text(0));
    rows.iter()
        .filter(is_ours)
        .try_for_each(|row| refuse(address, row))
}

fn refuse(address: &Address, row: &PostgresRow) -> Result<(), Error> {
    let (name, owner, user) = (row.text(0), row.text(1), row.text(5));
    let object = if name.is_empty() {
        format!("a schema named {SCHEMA}")
    } else {
        format!("a relation named {SCHEMA}.{name}")
    };
    let what = if !row.is_true(2) {
        format!("of {owner}, who could make it run code with the rights of {user}")
    } else if row.text(3) != "r" {
        "that is not a plain table, so it could run code".into()
    } else if !row.text(4).is_empty() {
        format!("that has {}, which could run code", row.text(4))
    } else {
        return Ok(());
    };
    Err(usage!(
        "'{address}' has {object} {what}; it is left alone",
        "connect as the user that loaded the tables, or give a database where no other user has \
         objects in the schema {SCHEMA}"
    ))
}
