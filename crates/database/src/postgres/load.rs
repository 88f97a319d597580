//! Tables in `PostgreSQL`: create, resume, verify, remove.
//!
//! Input: the number of tables and rows. Output: tables with one row per block, and neighbouring
//! keys far apart. Rows are loaded in chunks. Each chunk is a transaction that also records the
//! chunk as loaded. So an interrupted load resumes with the missing chunks.

use super::client::{COLUMN_CHARS, COLUMNS, connect, failed};
use super::protocol::{PostgresClient, PostgresError, PostgresRow, column, columns};
use super::trust::refuse_foreign;
use crate::access::{Access, Address};
use crate::chunks::{self, Chunk, Loading, MAKER, ORDER};
use crate::loading::{LoadEvent, LoadListen, LoadRequest, LoadResult};
use crate::tables::{SCHEMA, blocks_table, scan_table};
use rigel_model::workload::Permutation;
use rigel_model::workload::rng::Rng;
use rigel_model::{Error, Tables, failed, shell_word, usage};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

/// Rows per chunk: 64 MiB of table, 8 MiB on the wire.
const CHUNK_ROWS: u64 = 8192;

/// The existing tables, if they are completely loaded.
pub(crate) fn find(
    client: &mut PostgresClient,
    address: &Address,
) -> Result<Option<Tables>, Error> {
    Ok(manifest(client, address)?
        .filter(|(_, loaded)| *loaded)
        .map(|(tables, _)| tables))
}

/// Contents of the manifest: the tables, and whether they are completely loaded; `None` without a
/// manifest. Refuses tables that others could make run code: so nothing else here reads or writes
/// them before this.
fn manifest(
    client: &mut PostgresClient,
    address: &Address,
) -> Result<Option<(Tables, bool)>, Error> {
    let asked = |error: &PostgresError| failed(address, "list its tables", error);
    refuse_foreign(client, address)?;
    let row = client
        .query_one(
            "SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = $1), to_regclass($1 || \
             '.manifest') IS NOT NULL",
            &[SCHEMA],
        )
        .map_err(|error| asked(&error))?;
    match (row.is_true(0), row.is_true(1)) {
        (false, _) => return Ok(None),
        (true, false) => return Err(not_ours(address)),
        (true, true) => (),
    }
    let text = format!(
        "SELECT schemas, scale, scan_blocks, block, loaded FROM {SCHEMA}.manifest WHERE maker = $1"
    );
    // A foreign table of that name has other columns.
    let rows = client
        .query(&text, &[MAKER])
        .map_err(|_| not_ours(address))?;
    let row = rows.first().ok_or_else(|| not_ours(address))?;
    let number = |at: usize| row.value::<u64>(at).unwrap_or(0);
    let small = |at: usize| u32::try_from(number(at)).unwrap_or(0);
    let tables = Tables {
        schemas: small(0),
        scale: number(1),
        scan_blocks: number(2),
        block: small(3),
    };
    Ok(Some((tables, row.is_true(4))))
}

fn not_ours(address: &Address) -> Error {
    usage!(
        "'{address}' has a schema named {SCHEMA} that was not made by rigel sql load; it is left \
         alone",
        "give another database in the URL, or rename that schema"
    )
}

/// Makes the tables on one server, or resumes.
pub(crate) fn load(
    access: &Access,
    address: &Address,
    request: &LoadRequest,
    stop: &AtomicBool,
    listen: &LoadListen,
) -> Result<LoadResult, Error> {
    let mut client = connect(access, address)?;
    refuse_second(&mut client, address)?;
    let block = client
        .query_one("SELECT current_setting('block_size')::int", &[])
        .and_then(|row| row.value(0))
        .map_err(|error| failed(address, "report its block size", &error))?;
    let tables = Tables {
        block,
        ..request.tables
    };
    let manifest = manifest(&mut client, address)?;
    match manifest {
        Some((found, _)) => chunks::refuse_others(address, found, tables)?,
        None => make(&mut client, address, tables, request.tablespace.as_deref())?,
    }
    if manifest.is_some_and(|(_, loaded)| !loaded) {
        reclaim(&mut client, address, tables)?;
    }
    let missing = missing_chunks(&mut client, address, tables)?;
    let connect = || connect(access, address);
    let loading = Loading::new(tables, &missing, stop, listen);
    loading.run(request.degree, connect, |client, chunk| {
        copy(client, chunk).map_err(|error| failed(address, "load rows", &error))
    })?;
    listen(LoadEvent::Indexing);
    chunks::each_table(tables, request.degree, connect, |client, table| {
        finish_table(client, address, table, tables)
    })?;
    listen(LoadEvent::Verifying);
    let (blocks, correlation) = verify(&mut client, address, tables)?;
    client
        .batch(&format!("UPDATE {SCHEMA}.manifest SET loaded = true"))
        .map_err(|error| failed(address, "record that the load is complete", &error))?;
    // Requires a superuser or a grant; otherwise the server does it by itself soon.
    let _ = client.batch("CHECKPOINT");
    Ok(LoadResult {
        rows_before: loading.rows_before,
        rows: loading.rows,
        blocks,
        correlation,
    })
}

/// Refuses to load while another load runs. The lock is released with the connection, which a busy server
/// notices some time after the program has ended: so it is tried for a while.
fn refuse_second(client: &mut PostgresClient, address: &Address) -> Result<(), Error> {
    const TRIES: usize = 20;
    let failed = |error| failed(address, "lock its tables for loading", &error);
    let lock = format!("SELECT pg_try_advisory_lock({ORDER})");
    for _ in 0..TRIES {
        if client.query_one(&lock, &[]).map_err(failed)?.is_true(0) {
            return Ok(());
        }
        client.batch("SELECT pg_sleep(0.1)").map_err(failed)?;
    }
    Err(usage!(
        "'{address}' is being loaded by another rigel process",
        "wait for it, or stop it with Ctrl-C"
    ))
}

/// Creates the schema, its manifest and the empty tables in one transaction.
fn make(
    client: &mut PostgresClient,
    address: &Address,
    tables: Tables,
    tablespace: Option<&str>,
) -> Result<(), Error> {
    let columns: Vec<String> = (1..=COLUMNS)
        .map(|number| format!("c{number} text"))
        .collect();
    let columns = columns.join(", ");
    let place = tablespace.map_or(String::new(), |name| {
        format!(" TABLESPACE \"{}\"", name.replace('"', "\"\""))
    });
    let Tables {
        schemas,
        scale,
        scan_blocks,
        block,
    } = tables;
    let mut text = format!(
        "BEGIN; CREATE SCHEMA {SCHEMA}; CREATE TABLE {SCHEMA}.manifest (maker text, schemas \
         bigint, scale bigint, scan_blocks bigint, block bigint, loaded boolean); CREATE TABLE \
         {SCHEMA}.chunks (name text, first bigint, PRIMARY KEY (name, first)); INSERT INTO \
         {SCHEMA}.manifest VALUES ('{MAKER}', {schemas}, {scale}, {scan_blocks}, {block}, false); "
    );
    for table in 0..schemas as usize {
        for name in [blocks_table(table), scan_table(table)] {
            // Ten percent of a block is less than two rows: a second row never fits.
            let _ = write!(
                text,
                "CREATE TABLE {SCHEMA}.{name} (id bigint NOT NULL, {columns}) WITH (fillfactor = \
                 10, autovacuum_enabled = off){place}; "
            );
        }
    }
    text += "COMMIT";
    client.batch(&text).map_err(|error| {
        let _ = client.batch("ROLLBACK");
        failed(address, "create the tables", &error)
    })
}

fn missing_chunks(
    client: &mut PostgresClient,
    address: &Address,
    tables: Tables,
) -> Result<Vec<Chunk>, Error> {
    let rows = client
        .query(&format!("SELECT name, first FROM {SCHEMA}.chunks"), &[])
        .map_err(|error| failed(address, "list the loaded rows", &error))?;
    let there: BTreeSet<(String, u64)> = rows
        .iter()
        .map(|row| (row.text(0).into(), row.value(1).unwrap_or(u64::MAX)))
        .collect();
    Ok(chunks::missing(
        tables,
        CHUNK_ROWS,
        [blocks_table, scan_table],
        &there,
    ))
}

/// Frees the blocks of an interrupted load that were filled but not committed. Otherwise every row
/// loaded again would get a new block, and the old blocks would stay empty in between.
fn reclaim(client: &mut PostgresClient, address: &Address, tables: Tables) -> Result<(), Error> {
    let schemas = 0..tables.schemas as usize;
    for table in schemas.flat_map(|table| [blocks_table(table), scan_table(table)]) {
        // The lock is granted once the sessions of that load are gone; their client may have died
        // only a moment ago.
        for statement in [
            format!(
                "BEGIN; SET LOCAL lock_timeout = '30s'; LOCK TABLE {SCHEMA}.{table} IN SHARE \
                 MODE; COMMIT"
            ),
            format!("VACUUM {SCHEMA}.{table}"),
        ] {
            client
                .batch(&statement)
                .map_err(|error| failed(address, "free the space of unfinished rows", &error))?;
        }
    }
    Ok(())
}

/// Loads one chunk and records it in the manifest, in one transaction.
fn copy(client: &mut PostgresClient, chunk: &Chunk) -> Result<(), PostgresError> {
    let Chunk {
        table,
        first,
        end,
        of,
    } = chunk;
    client.batch("BEGIN")?;
    let order = Permutation::new(*of, ORDER);
    let loaded = client
        .copy_in(
            &format!("COPY {SCHEMA}.{table} FROM STDIN (FORMAT binary)"),
            *first..*end,
            |place, out| row(order.of(place), out),
        )
        .and_then(|()| {
            let text = format!("INSERT INTO {SCHEMA}.chunks VALUES ($1, $2)");
            client.query(&text, &[table, &first.to_string()])
        })
        .and_then(|_| client.batch("COMMIT"));
    loaded.inspect_err(|_| {
        let _ = client.batch("ROLLBACK");
    })
}

/// Appends the row with key `id` in COPY's binary format. Its text is random but the same in every
/// load, so that no storage can compress or deduplicate it.
fn row(id: u64, out: &mut Vec<u8>) {
    columns(out, 1 + COLUMNS);
    column(out, size_of_val(&id), id.to_be_bytes().into_iter());
    let mut rng = Rng::new(ORDER, id);
    for _ in 0..COLUMNS {
        let text = crate::loading::random_text(&mut rng, COLUMN_CHARS);
        column(out, COLUMN_CHARS, text.into_iter());
    }
}

/// Creates the index of one table, collects planner statistics, and marks all rows as visible to
/// all.
fn finish_table(
    client: &mut PostgresClient,
    address: &Address,
    table: usize,
    tables: Tables,
) -> Result<(), Error> {
    let (blocks, scan) = (blocks_table(table), scan_table(table));
    let text = format!(
        "SELECT tablespace FROM pg_tables WHERE schemaname = '{SCHEMA}' AND tablename = $1"
    );
    let rows = client.query(&text, &[&blocks]).unwrap_or_default();
    let space = match rows.first().map_or("", |row| row.text(0)) {
        // The database's own, which has no name here.
        "" => String::new(),
        name => format!(" TABLESPACE \"{}\"", name.replace('"', "\"\"")),
    };
    let mut statements = vec![
        format!("CREATE UNIQUE INDEX IF NOT EXISTS {blocks}_id ON {SCHEMA}.{blocks} (id){space}"),
        format!("VACUUM (FREEZE, ANALYZE) {SCHEMA}.{blocks}"),
    ];
    if tables.scan_blocks > 0 {
        statements.push(format!("VACUUM (FREEZE, ANALYZE) {SCHEMA}.{scan}"));
    }
    for statement in statements {
        client
            .batch(&statement)
            .map_err(|error| failed(address, "finish a table", &error))?;
    }
    Ok(())
}

/// Number of rows of a table whose blocks are inspected one by one.
const SAMPLE_ROWS: f64 = 5000.0;

/// The blocks and rows of a table, the maximum rows per block in a sample, and the correlation of
/// key and position.
fn look_at(
    client: &mut PostgresClient,
    name: &str,
    block: u32,
    rows: u64,
) -> Result<(u64, u64, u64, f64), PostgresError> {
    let count = |row: &PostgresRow| row.value::<u64>(0);
    let table = format!("{SCHEMA}.{name}");
    let pages = client.query_one(
        "SELECT pg_relation_size($1::text::regclass) / $2",
        &[&table, &block.to_string()],
    )?;
    // After the vacuum all rows are visible to all, so this reads only the index, if there is one.
    let there = client.query_one(&format!("SELECT count(*) FROM {table}"), &[])?;
    let percent = (SAMPLE_ROWS / rows.max(1) as f64 * 100.0).min(100.0);
    let fullest = client.query_one(
        &format!(
            "SELECT coalesce(max(n), 0) FROM (SELECT count(*) AS n FROM {table} TABLESAMPLE \
             SYSTEM ({percent}) GROUP BY (ctid::text::point)[0]) AS b"
        ),
        &[],
    )?;
    let correlation = client.query(
        "SELECT correlation::float8 FROM pg_stats WHERE schemaname = $1 AND tablename = $2 AND \
         attname = 'id'",
        &[SCHEMA, name],
    )?;
    let correlation = correlation.first().map(|row| row.optional(0)).transpose()?;
    let correlation = correlation.flatten().unwrap_or(0.0);
    Ok((
        count(&pages)?,
        count(&there)?,
        count(&fullest)?,
        correlation,
    ))
}

/// Blocks of all tables, and the worst correlation of key and position.
fn verify(
    client: &mut PostgresClient,
    address: &Address,
    tables: Tables,
) -> Result<(u64, f64), Error> {
    let (mut blocks, mut worst) = (0, 0.0f64);
    for (name, rows) in chunks::named(tables, [blocks_table, scan_table]) {
        let (pages, there, fullest, correlation) = look_at(client, &name, tables.block, rows)
            .map_err(|error| failed(address, "check a table", &error))?;
        if there != rows || pages < rows || pages > blocks_most(rows) || fullest > 1 {
            return Err(failed!(
                "'{address}' has {there} rows in {pages} blocks in {SCHEMA}.{name}, up to \
                 {fullest} in a block, but {rows} rows were loaded, one per block",
                "remove the tables and load again: rigel sql drop {word}",
                word = shell_word(&address.to_string())
            ));
        }
        worst = chunks::refuse_ordered(address, &name, rows, correlation, worst)?;
        blocks += pages;
    }
    Ok((blocks, worst))
}

/// Maximum number of blocks of a table with this number of rows. From version 16 on, a server adds
/// 64 blocks at a time for each COPY, and unused ones stay empty: reads by key never visit them.
fn blocks_most(rows: u64) -> u64 {
    rows + rows / 16 + 64
}

/// Removes the tables of the manifest, the manifest, and the schema if nothing else is in it.
pub(crate) fn remove(access: &Access) -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    for address in &access.servers {
        let mut client = connect(access, address)?;
        let Some((tables, _)) = manifest(&mut client, address)? else {
            continue;
        };
        client
            .batch(&format!("UPDATE {SCHEMA}.manifest SET loaded = false"))
            .map_err(|error| failed(address, "record that the tables are removed", &error))?;
        let schemas = 0..tables.schemas as usize;
        let names = schemas.flat_map(|table| [blocks_table(table), scan_table(table)]);
        for name in names {
            let text = format!("DROP TABLE IF EXISTS {SCHEMA}.{name} RESTRICT");
            client
                .batch(&text)
                .map_err(|error| failed(address, "remove a table", &error))?;
            removed.push(format!("{SCHEMA}.{name}"));
        }
        // Drop both or none: without the manifest nobody knows which objects are left.
        let text = format!(
            "BEGIN; DROP TABLE {SCHEMA}.chunks RESTRICT; DROP TABLE {SCHEMA}.manifest RESTRICT; \
             COMMIT"
        );
        client
            .batch(&text)
            .map_err(|error| failed(address, "remove the manifest", &error))?;
        removed.extend(["chunks", "manifest"].map(|name| format!("{SCHEMA}.{name}")));
        // The schema stays if it contains somebody else's objects.
        if client
            .batch(&format!("DROP SCHEMA {SCHEMA} RESTRICT"))
            .is_ok()
        {
            removed.push(format!("schema {SCHEMA}"));
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_random_and_fills_more_than_a_tenth_of_a_block() {
        let bytes = |id| {
            let mut bytes = Vec::new();
            row(id, &mut bytes);
            bytes
        };
        let whole = bytes(12_345);
        let (number, mut rest) = whole.split_first_chunk().unwrap();
        assert_eq!(usize::from(u16::from_be_bytes(*number)), COLUMNS + 1);
        let mut fields = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk() {
            let (field, after) = after.split_at(u32::from_be_bytes(*length) as usize);
            fields.push(field);
            rest = after;
        }
        assert_eq!(
            (fields.len(), fields[0]),
            (COLUMNS + 1, &12_345u64.to_be_bytes()[..])
        );
        let distinct: BTreeSet<&[u8]> = fields.iter().copied().collect();
        let is_text = |field: &&[u8]| {
            let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._".contains(byte);
            field.len() == COLUMN_CHARS && field.iter().all(plain)
        };
        assert!(distinct.len() == COLUMNS + 1 && fields[1..].iter().all(is_text));
        assert!(bytes(12_345) == whole && bytes(12_346) != whole);
        // A tenth of a block of 8 KiB is 819 bytes: if the texts alone are longer than that, a
        // second row never fits.
        assert!((820..1500).contains(&(COLUMNS * COLUMN_CHARS)));
    }
}
