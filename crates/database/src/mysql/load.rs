//! Tables in `MariaDB` and `MySQL`: create, resume, verify, remove.
//!
//! Input: the number of tables and rows. Output: tables with one row per page, and neighbouring
//! keys far apart. `InnoDB` stores rows in the order of their primary key. So the primary key is
//! the position, in loading order, and the key for reads has a separate index. Rows are loaded in
//! chunks. Each chunk is a transaction that also records the chunk as loaded. So an interrupted
//! load resumes with the missing chunks.

use super::client::{
    COLUMNS, INDEX, NO_SUCH_DATABASE, NO_SUCH_TABLE, blocks_table, code, column_chars, connect,
    connect_outside, failed, scan_table, try_connect, version,
};
use super::connection::MysqlConnection;
use super::trust::refuse_foreign;
use crate::access::{Access, Address};
use crate::chunks::{self, Chunk, Loading, MAKER, ORDER};
use crate::loading::{LoadEvent, LoadListen, LoadRequest, LoadResult};
use rigel_model::workload::Permutation;
use rigel_model::workload::rng::Rng;
use rigel_model::{Error, Tables, failed, shell_word, usage};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

/// The manifest: the table that lists what was made. Its comment must show that it is ours before
/// anything is touched.
const MANIFEST: &str = "rigel_manifest";

/// The table that lists the loaded chunks.
const CHUNKS: &str = "rigel_chunks";

/// Rows per chunk: 16 MiB of pages, 8 MiB on the wire.
const CHUNK_ROWS: u64 = 1024;

/// Size of one statement in bytes, if the server accepts that much.
const STATEMENT_BYTES: usize = 512 << 10;

/// Number of neighbouring keys used to compute the correlation of key and position.
const CORRELATION_ROWS: u64 = 100_000;

/// Maximum page size. Half a page must hold a row, and `InnoDB` has no row over 16 KiB: four would
/// fit into a page of 64 KiB.
const PAGE_MAX: u32 = 32_768;

/// The existing tables, if they are completely loaded.
pub(crate) fn find(access: &Access, address: &Address) -> Result<Option<Tables>, Error> {
    let Some(mut connection) = connect_if_there(access, address)? else {
        return Ok(None);
    };
    Ok(manifest(&mut connection, address)?
        .filter(|(_, loaded)| *loaded)
        .map(|(tables, _)| tables))
}

/// A connection to the database; `None` if the database does not exist.
fn connect_if_there(access: &Access, address: &Address) -> Result<Option<MysqlConnection>, Error> {
    match try_connect(access, address, Some(&address.database)) {
        Ok(connection) => Ok(Some(connection)),
        Err(error) if code(&error) == Some(NO_SUCH_DATABASE) => Ok(None),
        Err(_) => connect(access, address).map(Some),
    }
}

/// Contents of the manifest: the tables, and whether they are completely loaded. `None` without a
/// manifest, or if it is still empty. Refuses objects in the place of our tables that could run
/// code: so nothing else here reads or writes them before this.
fn manifest(
    connection: &mut MysqlConnection,
    address: &Address,
) -> Result<Option<(Tables, bool)>, Error> {
    refuse_foreign(connection, address)?;
    let comment: Option<String> = connection
        .exec_first(
            "SELECT TABLE_COMMENT FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
             AND TABLE_NAME = ?",
            (MANIFEST,),
        )
        .map_err(|error| failed(address, "list its tables", &error))?;
    match comment {
        None => return Ok(None),
        Some(comment) if comment != MAKER => return Err(not_ours(address, MANIFEST)),
        Some(_) => (),
    }
    let text = format!(
        "SELECT `schemas`, scale, scan_blocks, block, loaded FROM {MANIFEST} WHERE maker = \
         '{MAKER}'"
    );
    let row: Option<(u32, u64, u64, u32, bool)> = connection
        .query_first(text)
        .map_err(|error| failed(address, "list its tables", &error))?;
    Ok(row.map(|(schemas, scale, scan_blocks, block, loaded)| {
        (
            Tables {
                schemas,
                scale,
                scan_blocks,
                block,
            },
            loaded,
        )
    }))
}

fn not_ours(address: &Address, table: &str) -> Error {
    usage!(
        "'{address}' has a table named {table} that was not made by rigel sql load; it is left \
         alone",
        "give another database in the URL, or rename that table"
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
    make_database(access, address)?;
    let mut connection = connect(access, address)?;
    let tables = Tables {
        block: page(&mut connection, address)?,
        ..request.tables
    };
    let manifest = manifest(&mut connection, address)?;
    if let Some((found, _)) = manifest {
        chunks::refuse_others(address, found, tables)?;
    }
    if manifest.is_none_or(|(_, loaded)| !loaded) {
        make(
            &mut connection,
            address,
            tables,
            request.tablespace.as_deref(),
            manifest.is_some(),
        )?;
    }
    let missing = missing_chunks(&mut connection, address, tables)?;
    let loading = Loading::new(tables, &missing, stop, listen);
    let chars = column_chars(tables.block);
    loading.run(
        request.degree,
        || connect_to_load(access, address),
        |(connection, bytes), chunk| {
            insert(connection, chunk, chars, *bytes)
                .map_err(|error| failed(address, "load rows", &error))
        },
    )?;
    listen(LoadEvent::Indexing);
    let finish = |connection: &mut MysqlConnection, table| finish_table(connection, address, table);
    chunks::each_table(tables, request.degree, || connect(access, address), finish)?;
    listen(LoadEvent::Verifying);
    let (blocks, correlation) = verify(&mut connection, address, tables)?;
    connection
        .query_drop(format!("UPDATE {MANIFEST} SET loaded = TRUE"))
        .map_err(|error| failed(address, "record that the load is complete", &error))?;
    Ok(LoadResult {
        rows_before: loading.rows_before,
        rows: loading.rows,
        blocks,
        correlation,
    })
}

/// Creates the database of the URL if it does not exist.
fn make_database(access: &Access, address: &Address) -> Result<(), Error> {
    if connect_if_there(access, address)?.is_some() {
        return Ok(());
    }
    let name = address.database.replace('`', "``");
    connect_outside(access, address)?
        .query_drop(format!("CREATE DATABASE IF NOT EXISTS `{name}`"))
        .map_err(|error| failed(address, "create the database", &error))
}

/// Page size of the server in bytes.
fn page(connection: &mut MysqlConnection, address: &Address) -> Result<u32, Error> {
    let page: Option<u32> = connection
        .query_first("SELECT @@innodb_page_size")
        .map_err(|error| failed(address, "report its page size", &error))?;
    let page = page.unwrap_or(0);
    if !(4096..=PAGE_MAX).contains(&page) {
        return Err(usage!(
            "'{address}' has pages of {page} bytes, which one row cannot fill",
            "use a server with innodb_page_size of 4 KiB to 32 KiB"
        ));
    }
    Ok(page)
}

/// Creates the manifest and the empty tables; if there is a manifest, only missing tables. Such
/// statements cannot be rolled back together. So the manifest comes first, and everything made
/// after it is known to be ours.
fn make(
    connection: &mut MysqlConnection,
    address: &Address,
    tables: Tables,
    tablespace: Option<&str>,
    is_known: bool,
) -> Result<(), Error> {
    let place = match tablespace {
        None => String::new(),
        Some(name) if version(connection, address)?.is_mariadb => {
            return Err(usage!(
                "tablespace '{name}' is requested, but '{address}' is MariaDB, which does not \
                 support it",
                "leave out --tablespace"
            ));
        }
        Some(name) => format!(" TABLESPACE `{}`", name.replace('`', "``")),
    };
    // While the manifest is empty, there are no tables of ours either.
    if !is_known && let Some(table) = first_of_ours(connection, address, tables)? {
        return Err(not_ours(address, &table));
    }
    let Tables {
        schemas,
        scale,
        scan_blocks,
        block,
    } = tables;
    let mut step = |text: &str| {
        connection
            .query_drop(text)
            .map_err(|error| failed(address, "create the tables", &error))
    };
    if !is_known {
        step(&format!(
            "CREATE TABLE IF NOT EXISTS {MANIFEST} (maker VARCHAR(64) PRIMARY KEY, `schemas` \
             BIGINT UNSIGNED, scale BIGINT UNSIGNED, scan_blocks BIGINT UNSIGNED, block BIGINT \
             UNSIGNED, loaded BOOLEAN) ENGINE=InnoDB DEFAULT CHARACTER SET ascii COMMENT='{MAKER}'"
        ))?;
        step(&format!(
            "INSERT INTO {MANIFEST} VALUES ('{MAKER}', {schemas}, {scale}, {scan_blocks}, \
             {block}, FALSE)"
        ))?;
    }
    step(&format!(
        "CREATE TABLE IF NOT EXISTS {CHUNKS} (name VARCHAR(64), first BIGINT UNSIGNED, PRIMARY \
         KEY (name, first)) ENGINE=InnoDB DEFAULT CHARACTER SET ascii"
    ))?;
    let chars = column_chars(block);
    let columns: Vec<String> = (1..=COLUMNS)
        .map(|number| format!("c{number} VARCHAR({chars})"))
        .collect();
    let columns = columns.join(", ");
    for name in (0..schemas as usize).flat_map(|table| [blocks_table(table), scan_table(table)]) {
        step(&format!(
            "CREATE TABLE IF NOT EXISTS {name} (place BIGINT UNSIGNED NOT NULL PRIMARY KEY, id \
             BIGINT UNSIGNED, {columns}) ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET \
             ascii COLLATE ascii_bin STATS_PERSISTENT=1 STATS_AUTO_RECALC=0{place}"
        ))?;
    }
    Ok(())
}

/// The first existing table with a name that we are going to use.
fn first_of_ours(
    connection: &mut MysqlConnection,
    address: &Address,
    tables: Tables,
) -> Result<Option<String>, Error> {
    let there: Vec<String> = connection
        .query("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE()")
        .map_err(|error| failed(address, "list its tables", &error))?;
    let mut names = names(tables).into_iter().filter(|name| name != MANIFEST);
    Ok(names.find(|name| there.iter().any(|table| table.eq_ignore_ascii_case(name))))
}

/// All tables that a load makes, the manifest last.
fn names(tables: Tables) -> Vec<String> {
    let schemas = 0..tables.schemas as usize;
    let names = schemas.flat_map(|table| [blocks_table(table), scan_table(table)]);
    names.chain([CHUNKS.into(), MANIFEST.into()]).collect()
}

fn missing_chunks(
    connection: &mut MysqlConnection,
    address: &Address,
    tables: Tables,
) -> Result<Vec<Chunk>, Error> {
    let rows: Vec<(String, u64)> = connection
        .query(format!("SELECT name, first FROM {CHUNKS}"))
        .map_err(|error| failed(address, "list the loaded rows", &error))?;
    let there: BTreeSet<(String, u64)> = rows.into_iter().collect();
    Ok(chunks::missing(
        tables,
        CHUNK_ROWS,
        [blocks_table, scan_table],
        &there,
    ))
}

/// A connection for loading, and the size of its statements in bytes.
fn connect_to_load(access: &Access, address: &Address) -> Result<(MysqlConnection, usize), Error> {
    let mut connection = connect(access, address)?;
    let packet: Option<usize> = connection
        .query_first("SELECT @@max_allowed_packet")
        .map_err(|error| failed(address, "report its maximum packet size", &error))?;
    // Except for the largest pages, a pair of rows is smaller than the minimum of
    // max_allowed_packet.
    Ok((
        connection,
        STATEMENT_BYTES.min(packet.unwrap_or(STATEMENT_BYTES) / 2),
    ))
}

/// Loads one chunk and records it, in one transaction, with statements of about `bytes` bytes. After
/// an error the connection cannot be used any more.
fn insert(
    connection: &mut MysqlConnection,
    chunk: &Chunk,
    chars: usize,
    bytes: usize,
) -> Result<(), mysql::Error> {
    let Chunk {
        table,
        first,
        end,
        of,
    } = chunk;
    connection.query_drop("START TRANSACTION")?;
    let order = Permutation::new(*of, ORDER);
    let begin = format!("INSERT INTO {table} VALUES ");
    let mut text = begin.clone();
    for place in *first..*end {
        pair(place, order.of(place), chars, &mut text);
        if text.len() >= bytes || place + 1 == *end {
            text.pop();
            connection.query_drop(&text)?;
            text.truncate(begin.len());
        }
    }
    connection.exec_drop(
        format!("INSERT INTO {CHUNKS} VALUES (?, ?)"),
        (table, first),
    )?;
    connection.query_drop("COMMIT")
}

/// The row with key `id`, and before it a short row, which keeps it off the page of the previous
/// row. Both are numbered by `place`. The short row has no key, so that no query finds it, and no
/// `c1`, so that it is not counted.
///
/// The short row comes first because another loader may already be loading the following rows: so
/// two long rows never meet. If they met, the server would split pages in such a way that all
/// following rows, short or long, get one page each. Columns are random text, so that no storage
/// can compress or deduplicate them.
fn pair(place: u64, id: u64, chars: usize, text: &mut String) {
    let mut rng = Rng::new(ORDER, id);
    let mut columns = |text: &mut String, count: usize| {
        for _ in 0..count {
            text.push_str(",'");
            let random = crate::loading::random_text(&mut rng, chars);
            text.push_str(std::str::from_utf8(&random).expect("all of them are ASCII"));
            text.push('\'');
        }
    };
    let _ = write!(text, "({},NULL,NULL", place * 2);
    columns(text, 2);
    (3..COLUMNS).for_each(|_| text.push_str(",NULL"));
    let _ = write!(text, "),({},{id}", place * 2 + 1);
    columns(text, COLUMNS);
    text.push_str("),");
}

/// Finishes one table: creates the index, collects planner statistics, and writes its pages to
/// storage so that no run has to. The index is created after the rows because it is then sorted and
/// written once.
fn finish_table(
    connection: &mut MysqlConnection,
    address: &Address,
    table: usize,
) -> Result<(), Error> {
    let asked = |error: &mysql::Error| failed(address, "finish a table", error);
    let (blocks, scan) = (blocks_table(table), scan_table(table));
    let is_there: Option<u64> = connection
        .exec_first(
            "SELECT COUNT(*) FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = DATABASE() \
             AND TABLE_NAME = ? AND INDEX_NAME = ?",
            (&blocks, INDEX),
        )
        .map_err(|error| asked(&error))?;
    if is_there == Some(0) {
        let text = format!("ALTER TABLE {blocks} ADD UNIQUE INDEX {INDEX} (id)");
        connection.query_drop(text).map_err(|error| asked(&error))?;
    }
    connection
        .query_drop(format!("ANALYZE TABLE {blocks}, {scan}"))
        .map_err(|error| asked(&error))?;
    // Requires privileges; otherwise the server does it by itself soon.
    let _ = connection.query_drop(format!("FLUSH TABLES {blocks}, {scan} FOR EXPORT"));
    let _ = connection.query_drop("UNLOCK TABLES");
    Ok(())
}

/// Pages of all tables, and the worst correlation of key and position.
fn verify(
    connection: &mut MysqlConnection,
    address: &Address,
    tables: Tables,
) -> Result<(u64, f64), Error> {
    let (mut blocks, mut worst) = (0, 0.0f64);
    for (name, rows) in chunks::named(tables, [blocks_table, scan_table]) {
        let (pages, most) = pages(connection, address, &name, rows, tables.block)?;
        let is_read_by_key = rows == tables.scale && name.contains("blocks");
        let counted = if is_read_by_key {
            format!("COUNT(id) FROM {name} FORCE INDEX ({INDEX})")
        } else {
            format!("COUNT(c1) FROM {name}")
        };
        let count: Option<u64> = connection
            .query_first(format!("SELECT {counted}"))
            .map_err(|error| failed(address, "check a table", &error))?;
        let count = count.unwrap_or(0);
        if count != rows || pages < rows || pages > most {
            return Err(failed!(
                "'{address}' has {pages} pages and {count} rows in {name}, but {rows} of each were \
                 loaded",
                "remove the tables and load again: rigel sql drop {word}",
                word = shell_word(&address.to_string())
            ));
        }
        blocks += pages;
        if is_read_by_key {
            let correlation = correlation(connection, address, &name)?;
            worst = chunks::refuse_ordered(address, &name, rows, correlation, worst)?;
        }
    }
    Ok((blocks, worst))
}

/// Number of pages with the rows of a table, and its allowed maximum. The number is the server's
/// own exact count, and the maximum is one percent more than there are rows. If this user may not
/// read that count, the size of the table is used, which includes index pages above the rows and
/// reserved pages.
fn pages(
    connection: &mut MysqlConnection,
    address: &Address,
    name: &str,
    rows: u64,
    page: u32,
) -> Result<(u64, u64), Error> {
    // Maximum number of pages that the server may reserve for a table in advance.
    const AHEAD: u64 = 512;
    // A smaller table gets its pages one by one. Then the server's count of leaf pages is not
    // reliable, but its count of all pages is.
    const SINGLE: u64 = 30;
    let (text, most) = if rows < SINGLE {
        ("size", rows + 2)
    } else {
        ("n_leaf_pages", rows + rows / 100 + 2)
    };
    let count: Result<Option<u64>, mysql::Error> = connection.exec_first(
        "SELECT stat_value FROM mysql.innodb_index_stats WHERE database_name = DATABASE() AND \
         table_name = ? AND index_name = 'PRIMARY' AND stat_name = ?",
        (name, text),
    );
    if let Ok(Some(count)) = count {
        return Ok((count, most));
    }
    let bytes: Option<u64> = connection
        .exec_first(
            "SELECT DATA_LENGTH FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
             AND TABLE_NAME = ?",
            (name,),
        )
        .map_err(|error| failed(address, "check a table", &error))?;
    Ok((bytes.unwrap_or(0) / u64::from(page), most + AHEAD))
}

/// Correlation of key and position among the first keys, from the index alone.
fn correlation(
    connection: &mut MysqlConnection,
    address: &Address,
    name: &str,
) -> Result<f64, Error> {
    let text = format!(
        "SELECT (AVG(1e0 * id * place) - AVG(1e0 * id) * AVG(1e0 * place)) / (STDDEV_POP(1e0 * \
         id) * STDDEV_POP(1e0 * place)) FROM {name} FORCE INDEX ({INDEX}) WHERE id < \
         {CORRELATION_ROWS}"
    );
    let correlation: Option<Option<f64>> = connection
        .query_first(text)
        .map_err(|error| failed(address, "check a table", &error))?;
    Ok(correlation.flatten().unwrap_or(0.0))
}

/// Removes the tables of the manifest, and the manifest. The database stays: it may contain more.
pub(crate) fn remove(access: &Access) -> Result<Vec<String>, Error> {
    let mut removed = Vec::new();
    for address in &access.servers {
        let Some(mut connection) = connect_if_there(access, address)? else {
            continue;
        };
        let asked = |error: &mysql::Error| failed(address, "remove a table", error);
        let Some((tables, _)) = manifest(&mut connection, address)? else {
            continue;
        };
        // From now on nobody takes the tables for complete.
        connection
            .query_drop(format!("UPDATE {MANIFEST} SET loaded = FALSE"))
            .map_err(|error| asked(&error))?;
        for name in names(tables) {
            match connection.query_drop(format!("DROP TABLE {name}")) {
                Ok(()) => removed.push(name),
                Err(error) if matches!(code(&error), Some(NO_SUCH_TABLE | 1051)) => (),
                Err(error) => return Err(asked(&error)),
            }
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_random_and_three_fit_into_no_page() {
        let mut text = String::new();
        pair(7, 12_345, column_chars(16_384), &mut text);
        let (spacer, data) = text
            .strip_prefix('(')
            .unwrap()
            .strip_suffix("),")
            .unwrap()
            .split_once("),(")
            .unwrap();
        let fields: Vec<&str> = data.split(',').collect();
        assert_eq!(
            (fields.len(), fields[0], fields[1]),
            (COLUMNS + 2, "15", "12345")
        );
        let distinct: BTreeSet<&str> = fields[2..].iter().copied().collect();
        assert!(
            distinct.len() == COLUMNS && distinct.iter().all(|field| field.len() == 420 + 2),
            "{distinct:?}"
        );
        let short: Vec<&str> = spacer.split(',').collect();
        assert_eq!(
            (short.len(), &short[..3]),
            (COLUMNS + 2, &["14", "NULL", "NULL"][..])
        );
        assert_eq!(
            short.iter().filter(|field| **field == "NULL").count(),
            COLUMNS - 1
        );
        for page in [4096, 8192, 16_384, 32_768] {
            // Header of 5, lengths of 1 or 2 per column, NULL bits, place, key, transaction and
            // roll pointer.
            let long = |columns: usize| {
                columns * (column_chars(page) + 1 + usize::from(page > 8192)) + 5 + 3 + 29
            };
            let room = page as usize - 132;
            assert!(long(COLUMNS) <= room / 2, "{page}: a row is too long");
            assert!(
                2 * long(COLUMNS) + long(2) - 8 > room,
                "{page}: three rows fit"
            );
        }
    }

    #[test]
    fn the_manifest_is_removed_last() {
        let names = names(Tables {
            schemas: 1,
            scale: 1000,
            scan_blocks: 1,
            block: 16_384,
        });
        assert_eq!(
            names,
            [
                "rigel_blocks_1",
                "rigel_scan_1",
                "rigel_chunks",
                "rigel_manifest"
            ]
        );
    }
}
