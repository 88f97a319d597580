//! The SLOB method on Oracle Database: files for SQL*Plus or SQLcl.
//!
//! The loop runs in the server, as SLOB's does, but each operation is timed, touches an exact number
//! of rows, and waits for its commit. docs/methods/slob.md describes the method.

use super::{ScriptFile, fill};
use rigel_model::{Bytes, Error, GIB, KIB, MIB, Nanos, Ratio, Redo, SqlWork, Think, usage};
use std::fmt::Write;

/// Rows that are loaded and noted in one transaction.
const CHUNK_ROWS: u64 = 10_000;

/// Redo of a loaded row: its 2.46 KB, headers, undo and its entry in the index.
const LOADED_ROW_REDO: u64 = 3 * KIB + 128;

/// Redo of a changed column of 128 bytes: the new value, and the old one in the undo.
const COLUMN_REDO: u64 = 2 * 129;

/// Redo of a changed row besides its columns: headers of its two change vectors.
const ROW_REDO: u64 = 250;

/// Columns of a row besides its key.
const COLUMNS: u64 = 19;

/// Rows of a table: the generator draws numbers below 2^31.
const ROWS_MAX: u64 = (1 << 31) - 1000;

/// Tables: the files have a few lines for each.
const TABLES_MAX: u32 = 256;

/// Statistics that are read, of the server and of each session.
const STATISTICS: [&str; 24] = [
    "Batched IO vector read count",
    "SQL*Net roundtrips to/from client",
    "consistent gets",
    "db block changes",
    "execute count",
    "parse count (hard)",
    "physical read IO requests",
    "physical read bytes",
    "physical read total IO requests",
    "physical read total bytes",
    "physical reads",
    "physical reads cache",
    "physical reads cache prefetch",
    "physical reads direct",
    "physical write IO requests",
    "physical write bytes",
    "physical write total IO requests",
    "physical write total bytes",
    "redo size",
    "redo synch writes",
    "redo writes",
    "session logical reads",
    "table fetch by rowid",
    "table fetch continued row",
];

/// Statistics that are read besides, for the proof of plans and commits.
const STATISTICS_OF_PLANS: [&str; 6] = [
    "redo wastage",
    "table scan blocks gotten",
    "table scan rows gotten",
    "table scans (direct read)",
    "user commits",
    "user rollbacks",
];

/// What the files are for.
#[derive(Debug, Clone, PartialEq)]
pub struct OracleScriptRequest {
    /// The tables, and the work of a session.
    pub work: SqlWork,
    /// Sessions.
    pub sessions: u32,
    /// Sessions that load at the same time.
    pub load_degree: u32,
    /// Measured time; `None` for fixed work.
    pub run_time: Option<Nanos>,
    /// Operations of each session; `None` if the run ends by time.
    pub work_loop: Option<u64>,
    /// Time before the measurement, in which all sessions work already.
    pub warm_up: Nanos,
    /// Redo that a load, and that a run, may write by the estimate.
    pub max_redo: Bytes,
    /// Tablespace of the tables; `None` for the user's default.
    pub tablespace: Option<String>,
    /// Seed of the random numbers.
    pub seed: u32,
}

/// Redo that is expected, from the sizes of rows and change vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RedoEstimate {
    /// Of the load.
    pub load: Bytes,
    /// Of one updated row.
    pub updated_row: Bytes,
    /// Of a run of fixed work; `None` for a run that ends by time, whose rate nobody knows.
    pub run: Option<Bytes>,
}

impl OracleScriptRequest {
    /// The redo that is expected.
    pub fn redo(&self) -> RedoEstimate {
        let tables = self.work.tables;
        let columns = match self.work.redo {
            Redo::Lite => 2,
            Redo::Heavy => COLUMNS,
        };
        let rows = u64::from(tables.schemas) * (tables.scale + tables.scan_blocks);
        let updated_row = columns * COLUMN_REDO + ROW_REDO;
        let of_session = self.work_loop.map(|operations| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a count"
            )]
            let updates = (operations as f64 * self.work.updates.get()).ceil() as u64;
            updates.saturating_mul(u64::from(self.work.update_rows) * updated_row)
        });
        RedoEstimate {
            load: Bytes(rows.saturating_mul(LOADED_ROW_REDO)),
            updated_row: Bytes(updated_row),
            run: of_session.map(|redo| Bytes(redo.saturating_mul(self.sessions.into()))),
        }
    }

    /// Rows that a session may update until its part of the redo is reached; 0 if nothing is updated.
    fn updated_rows_max(&self) -> u64 {
        if self.work.updates == Ratio::ZERO {
            return 0;
        }
        self.max_redo.0 / u64::from(self.sessions.max(1)) / self.redo().updated_row.0
    }

    /// Refuses what the files cannot do, and redo above the limit.
    ///
    /// # Errors
    /// More tables or rows than the files can address; a name that is none; too much redo.
    pub fn check(&self) -> Result<(), Error> {
        let tables = self.work.tables;
        if tables.schemas > TABLES_MAX {
            return Err(usage!(
                "{schemas} tables are too many for Oracle's files",
                "give at most {TABLES_MAX}: -s is a number of tables, all of one user",
                schemas = tables.schemas
            ));
        }
        if tables.scale > ROWS_MAX || tables.scan_blocks > ROWS_MAX {
            return Err(usage!(
                "a table of {blocks} rows is too large",
                "give at most {ROWS_MAX} rows in a table, and more tables with -s",
                blocks = tables.scale.max(tables.scan_blocks)
            ));
        }
        if let Some(name) = self.tablespace.as_deref().filter(|name| !is_name(name)) {
            return Err(usage!(
                "--tablespace '{name}' is not a plain name",
                "write letters, digits, _, $ and #, beginning with a letter, at most 30",
                name = name.escape_debug()
            ));
        }
        let redo = self.redo();
        let over = |redo: Bytes| redo > self.max_redo;
        let raise = "raise --max-redo if the recovery area has room for it, or load less";
        if over(redo.load) {
            return Err(usage!(
                "the load would write about {load} of redo, and --max-redo is {max_redo}",
                raise,
                load = redo.load,
                max_redo = self.max_redo
            ));
        }
        if let Some(run) = redo.run.filter(|run| over(*run)) {
            return Err(usage!(
                "a run would write about {run} of redo, and --max-redo is {max_redo}",
                "raise --max-redo if the recovery area has room for it, or give a smaller \
                 --work-loop",
                max_redo = self.max_redo
            ));
        }
        let rows = u64::from(self.work.update_rows);
        if self.work.updates != Ratio::ZERO && self.updated_rows_max() < rows {
            return Err(usage!(
                "--max-redo {max_redo} is less than one update of each of {sessions} sessions",
                raise,
                max_redo = self.max_redo,
                sessions = self.sessions
            ));
        }
        Ok(())
    }
}

/// True for a plain identifier of Oracle's.
fn is_name(name: &str) -> bool {
    name.len() <= 30
        && name.starts_with(|first: char| first.is_ascii_alphabetic())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$' | b'#'))
}

/// The files, in the order in which they are used.
pub fn oracle(request: &OracleScriptRequest) -> Result<Vec<ScriptFile>, Error> {
    request.check()?;
    let values = values(request);
    let of = |name, template: &str, action: &str| {
        let header = fill(
            include_str!("oracle/header.sql"),
            &[("action", action.to_string())],
        );
        let values: Vec<(&str, String)> =
            values.iter().cloned().chain([("header", header)]).collect();
        ScriptFile {
            name,
            text: fill(template, &values),
        }
    };
    Ok(vec![
        of("README.txt", include_str!("oracle/README.txt"), ""),
        of("1_grants.sql", include_str!("oracle/1_grants.sql"), ""),
        of(
            "2_create.sql",
            include_str!("oracle/2_create.sql"),
            "create",
        ),
        of("3_load.sql", include_str!("oracle/3_load.sql"), "load"),
        of("4_index.sql", include_str!("oracle/4_index.sql"), "index"),
        of("5_proof.sql", include_str!("oracle/5_proof.sql"), "proof"),
        of("6_start.sql", include_str!("oracle/6_start.sql"), "start"),
        of(
            "7_figures.sql",
            include_str!("oracle/7_figures.sql"),
            "figures",
        ),
        of(
            "8_session.sql",
            include_str!("oracle/8_session.sql"),
            "session",
        ),
        of("9_drop.sql", include_str!("oracle/9_drop.sql"), "drop"),
        of("run.sh", include_str!("oracle/run.sh"), ""),
    ])
}

/// Names of the tables: those read by key, then those that are scanned.
fn tables(request: &OracleScriptRequest) -> Vec<(String, u64)> {
    let tables = request.work.tables;
    let of = |what: &str, rows: u64| {
        (1..=tables.schemas)
            .map(|number| (format!("rigel_{what}_{number}"), rows))
            .collect::<Vec<_>>()
    };
    [of("blocks", tables.scale), of("scan", tables.scan_blocks)].concat()
}

/// `template` for each of `tables`, one after the other.
fn each(request: &OracleScriptRequest, tables: &[(String, u64)], template: &str) -> String {
    let filled = tables.iter().map(|(table, rows)| {
        let values = [
            ("table", table.clone()),
            ("TABLE", table.to_uppercase()),
            ("rows", rows.to_string()),
            ("tablespace", tablespace(request)),
        ];
        fill(template, &values)
    });
    filled.collect()
}

fn tablespace(request: &OracleScriptRequest) -> String {
    let named = request.tablespace.as_ref();
    named.map_or_else(String::new, |name| format!(" TABLESPACE {name}"))
}

/// What the names in the files stand for.
fn values(request: &OracleScriptRequest) -> Vec<(&'static str, String)> {
    let tables = tables(request);
    let (blocks, scans) = tables.split_at(tables.len() / 2);
    let indexes = [
        each(request, blocks, include_str!("oracle/index.sql")),
        each(request, scans, include_str!("oracle/index_scan.sql")),
    ];
    let proofs = [
        each(request, &tables, include_str!("oracle/proof.sql")),
        each(request, blocks, include_str!("oracle/correlation.sql")),
    ];
    let data = Bytes(
        tables
            .iter()
            .map(|(_, rows)| rows * u64::from(request.work.tables.block))
            .sum(),
    );
    let mut values = numbers(request);
    values.extend([
        (
            "tables",
            each(request, &tables, include_str!("oracle/create_table.sql")),
        ),
        ("table_names", {
            let names: Vec<&str> = tables.iter().map(|(name, _)| name.as_str()).collect();
            names.join(" ")
        }),
        ("indexes", indexes.concat()),
        ("proofs", proofs.concat()),
        ("keys", include_str!("oracle/keys.sql").into()),
        ("values", column_values()),
        ("clock", include_str!("oracle/clock.sql").into()),
        ("figures_of", include_str!("oracle/figures_of.sql").into()),
        ("statistics", statistics()),
        ("data_gib", format!("{:.1}", data.0 as f64 / GIB as f64)),
        ("quota_mib", (data.0 / 10 * 11 / MIB + 64).to_string()),
        ("load_data", data.to_string()),
        ("load_redo", request.redo().load.to_string()),
        ("logic", logic(request)),
        ("take_figures", take_figures(request)),
        ("settings", settings(request)),
        ("run_redo", run_redo(request)),
        ("keys_of_slob", keys_of_slob(request)),
    ]);
    values
}

fn numbers(request: &OracleScriptRequest) -> Vec<(&'static str, String)> {
    let work = &request.work;
    let until = request
        .run_time
        .filter(|_| request.work_loop.is_none())
        .map_or_else(
            || "0".to_string(),
            |time| format!("c_from_us + {}", time.0 / 1000),
        );
    vec![
        ("schemas", work.tables.schemas.to_string()),
        ("scale", work.tables.scale.to_string()),
        ("scan_blocks", work.tables.scan_blocks.to_string()),
        ("sessions", request.sessions.to_string()),
        ("degree", request.load_degree.to_string()),
        ("chunk_rows", CHUNK_ROWS.to_string()),
        ("read_rows", work.read_rows.to_string()),
        ("warm_up_us", (warm_up(request).0 / 1000).to_string()),
        ("until_us", until),
        ("work_loop", request.work_loop.unwrap_or(0).to_string()),
        ("updated_rows_max", request.updated_rows_max().to_string()),
        ("seed", request.seed.to_string()),
        ("lead_s", lead_s(request).to_string()),
        ("how_long", how_long(request)),
        ("max_redo", request.max_redo.to_string()),
    ]
}

/// Fixed work begins at once: its operations are counted from the first one on.
fn warm_up(request: &OracleScriptRequest) -> Nanos {
    if request.work_loop.is_some() {
        Nanos(0)
    } else {
        request.warm_up
    }
}

/// Seconds in which all sessions connect: 10, and one for every 10 of them.
fn lead_s(request: &OracleScriptRequest) -> u32 {
    10 + request.sessions / 10
}

fn how_long(request: &OracleScriptRequest) -> String {
    match (request.work_loop, request.run_time) {
        (Some(operations), _) => format!("{operations} operations each"),
        (None, time) => format!(
            "{} after {} of warm-up",
            time.unwrap_or_default(),
            warm_up(request)
        ),
    }
}

/// The expressions that fill the columns of a loaded row: 128 characters each, of SHA-512.
fn column_values() -> String {
    let values: Vec<String> = (1..=COLUMNS)
        .map(|column| {
            format!(
                "              RAWTOHEX(STANDARD_HASH(TO_CHAR(v_ids(n)) || '/{column}', 'SHA512'))"
            )
        })
        .collect();
    values.join(",\n")
}

/// The names of statistics, in a text of SQL within a text of PL/SQL, on lines of moderate length.
fn statistics() -> String {
    let mut text = String::new();
    let mut width = 0;
    for (at, name) in STATISTICS.iter().chain(&STATISTICS_OF_PLANS).enumerate() {
        if at > 0 {
            text.push_str(", ");
        }
        if at == 0 || width > 70 {
            text.push_str("'\n      || '");
            width = 0;
        }
        let _ = write!(text, "''{name}''");
        width += name.len() + 6;
    }
    text
}

/// The number of cards of the smallest deck in which a share is a whole number; else 100.
fn cards(share: Ratio) -> u32 {
    const DECK_MAX: u32 = 100;
    let is_whole = |size: &u32| {
        let hits = share.get() * f64::from(*size);
        (hits - hits.round()).abs() < 1e-9
    };
    (1..=DECK_MAX).find(is_whole).unwrap_or(DECK_MAX)
}

/// A share as a number of SQL.
fn share(share: Ratio) -> String {
    let text = format!("{:.12}", share.get());
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// The loop's logic: what an operation is, and its statements.
fn logic(request: &OracleScriptRequest) -> String {
    let work = &request.work;
    let columns: Vec<u64> = match work.redo {
        Redo::Lite => vec![1, COLUMNS],
        Redo::Heavy => (1..=COLUMNS).collect(),
    };
    let changes: Vec<String> = columns
        .iter()
        .map(|column| format!("b.c{column} = g_value"))
        .collect();
    let lines: Vec<String> = changes.chunks(5).map(|some| some.join(", ")).collect();
    let hot = work.hot_spot;
    let think = work.think;
    let ms = |time: Nanos| (time.0 / 1_000_000).to_string();
    fill(
        include_str!("oracle/logic.sql"),
        &[
            ("scale", work.tables.scale.to_string()),
            ("read_rows", work.read_rows.to_string()),
            ("update_rows", work.update_rows.to_string()),
            ("scan_blocks", work.tables.scan_blocks.to_string()),
            ("update_share", share(work.updates)),
            ("update_cards", cards(work.updates).to_string()),
            ("scan_share", share(work.scans)),
            ("scan_cards", cards(work.scans).to_string()),
            ("hot_every", hot.map_or(0, |hot| hot.every).to_string()),
            ("hot_first", hot.map_or(0, |hot| hot.first).to_string()),
            ("hot_rows", hot.map_or(0, |hot| hot.rows).to_string()),
            (
                "first_table_every",
                work.hot_schema_every.unwrap_or(0).to_string(),
            ),
            (
                "think_every",
                think.map_or(0, |think| think.every).to_string(),
            ),
            (
                "think_min_ms",
                think.map_or_else(|| "0".into(), |think| ms(think.least)),
            ),
            (
                "think_max_ms",
                think.map_or_else(|| "0".into(), |think| ms(think.most)),
            ),
            ("changes", lines.join(",\n        ")),
        ],
    )
}

/// The part of `run.sh` that takes the server's figures: inside the measured time, or around fixed
/// work, whose end nobody knows before.
fn take_figures(request: &OracleScriptRequest) -> String {
    let Some(time) = request.run_time.filter(|_| request.work_loop.is_none()) else {
        return "  execute 7_figures.sql \"$id\" before \"$start\" >\"work_$name/before.txt\" 2>&1 &\n  \
                started=\"$started $!\"\n  ended=0\n  wait_for_all || ended=1\n  \
                # Fixed work has no end that is known before: these figures have the time after the \
                last operation in them.\n  \
                execute 7_figures.sql \"$id\" after 0 >\"work_$name/after.txt\" 2>&1 || ended=1"
            .into();
    };
    let margin_us = (time.0 / 1000 / 10).min(1_000_000);
    let from_us = warm_up(request).0 / 1000 + margin_us;
    let until_us = warm_up(request).0 / 1000 + time.0 / 1000 - margin_us;
    format!(
        "  # Both moments lie inside the time in which all sessions work.\n  \
         execute 7_figures.sql \"$id\" before \"$((start + {from_us}))\" >\"work_$name/before.txt\" 2>&1 &\n  \
         started=\"$started $!\"\n  \
         execute 7_figures.sql \"$id\" after \"$((start + {until_us}))\" >\"work_$name/after.txt\" 2>&1 &\n  \
         started=\"$started $!\"\n  ended=0\n  wait_for_all || ended=1"
    )
}

/// Lines of `run.sh` that print what was asked for.
fn settings(request: &OracleScriptRequest) -> String {
    let work = &request.work;
    let seconds = |time: Nanos| time.as_secs_f64().to_string();
    let all = [
        ("sessions", request.sessions.to_string()),
        ("schemas", work.tables.schemas.to_string()),
        ("scale", work.tables.scale.to_string()),
        ("scan_blocks", work.tables.scan_blocks.to_string()),
        ("read_rows", work.read_rows.to_string()),
        ("update_rows", work.update_rows.to_string()),
        ("update_share", share(work.updates)),
        ("scan_share", share(work.scans)),
        (
            "changed_columns",
            if work.redo == Redo::Heavy { "19" } else { "2" }.into(),
        ),
        (
            "think",
            work.think.map_or(0, |think| think.every).to_string(),
        ),
        ("warm_up_s", seconds(warm_up(request))),
        (
            "run_time_s",
            seconds(
                request
                    .run_time
                    .filter(|_| request.work_loop.is_none())
                    .unwrap_or_default(),
            ),
        ),
        ("work_loop", request.work_loop.unwrap_or(0).to_string()),
        (
            "redo_of_updated_row",
            request.redo().updated_row.0.to_string(),
        ),
    ];
    let lines: Vec<String> = all
        .iter()
        .map(|(name, value)| {
            format!("    printf 'RIGEL|%s|driver|setting|{name}|{value}\\n' \"$id\"")
        })
        .collect();
    lines.join("\n")
}

/// What a run writes to the redo log, in a sentence.
fn run_redo(request: &OracleScriptRequest) -> String {
    let redo = request.redo();
    if request.work.updates == Ratio::ZERO {
        return "run changes no row: it writes hardly any redo.".into();
    }
    if let Some(run) = redo.run {
        return format!(
            "run writes about {run} of redo: {} of each updated row.",
            Bytes(redo.updated_row.0)
        );
    }
    format!(
        "run writes at most about {} of redo, {} of each updated row: a session ends after {} updated rows.",
        request.max_redo,
        Bytes(redo.updated_row.0),
        request.updated_rows_max()
    )
}

/// Keys of `slob.conf` that do not act, and why.
const IDLE_KEYS: [(&str, &str); 8] = [
    (
        "DATABASE_STATISTICS_TYPE",
        "the server's views are read, before and after; take AWR snapshots yourself if you are licensed",
    ),
    (
        "ADMIN_SQLNET_SERVICE",
        "nothing is done as an administrator but 1_grants.sql, which you run",
    ),
    (
        "SQLNET_SERVICE_BASE",
        "RIGEL_CONNECT of run.sh names the service",
    ),
    (
        "SQLNET_SERVICE_MAX",
        "one service for all sessions; on RAC, name one that all instances offer",
    ),
    ("DBA_PRIV_USER", "no file but 1_grants.sql needs a DBA"),
    (
        "SYSDBA_PASSWD",
        "no password is read from a file of settings",
    ),
    (
        "EXTERNAL_SCRIPT",
        "call it yourself before and after run.sh",
    ),
    ("OBFUSCATE_COLUMNS", "rows always hold random text"),
];

/// Each key of `slob.conf`, and what became of it.
fn keys_of_slob(request: &OracleScriptRequest) -> String {
    let tables = request.work.tables;
    let work = &request.work;
    let changed = if work.redo == Redo::Heavy {
        "all"
    } else {
        "2 of"
    };
    let loop_of = |count: u64| format!("{count} operations of each session");
    let off = || "off".to_string();
    let mut rows: Vec<(&str, String)> = vec![
        (
            "UPDATE_PCT",
            format!(
                "{} of the operations update and commit",
                work.updates.exact()
            ),
        ),
        (
            "SCAN_PCT",
            format!("{} of the reads scan a whole table", work.scans.exact()),
        ),
        ("RUN_TIME", how_long(request)),
        ("WORK_LOOP", request.work_loop.map_or_else(off, loop_of)),
        (
            "SCALE",
            format!("{} rows, each in a block of its own", tables.scale),
        ),
        ("SCAN_TABLE_SZ", format!("{} rows", tables.scan_blocks)),
        (
            "WORK_UNIT",
            format!(
                "exactly {} rows of an operation; SLOB touches one less",
                work.read_rows
            ),
        ),
        (
            "REDO_STRESS",
            format!("an update changes {changed} 19 columns"),
        ),
        (
            "LOAD_PARALLEL_DEGREE",
            format!("{} sessions load a table", request.load_degree),
        ),
        (
            "THREADS_PER_SCHEMA",
            format!(
                "{} sessions in all, assigned to {} tables in turn",
                request.sessions, tables.schemas
            ),
        ),
    ];
    rows.extend(hot_and_think(work));
    rows.extend(
        IDLE_KEYS
            .iter()
            .map(|(key, why)| (*key, format!("does not act: {why}"))),
    );
    rows.iter().fold(String::new(), |mut text, (key, what)| {
        let _ = writeln!(text, "  {key:24}  {what}");
        text
    })
}

/// The keys of hot spots and pauses.
fn hot_and_think(work: &SqlWork) -> Vec<(&'static str, String)> {
    let off = || "off".to_string();
    let one_of = |every: u32| format!("one of {every} operations");
    let (hot, think) = (work.hot_spot, work.think);
    let pause = |of: fn(&Think) -> Nanos| {
        think
            .as_ref()
            .map_or_else(off, |think| of(think).to_string())
    };
    let rows = |count: u64| format!("{count} rows");
    vec![
        ("DO_HOTSPOT", hot.map_or_else(off, |_| "on".into())),
        ("HOTSPOT_MB", hot.map_or_else(off, |hot| rows(hot.rows))),
        (
            "HOTSPOT_OFFSET_MB",
            hot.map_or_else(off, |hot| format!("after {}", rows(hot.first))),
        ),
        (
            "HOTSPOT_FREQUENCY",
            hot.map_or_else(off, |hot| one_of(hot.every)),
        ),
        (
            "HOT_SCHEMA_FREQUENCY",
            work.hot_schema_every.map_or_else(off, one_of),
        ),
        (
            "THINK_TM_FREQUENCY",
            think.map_or_else(off, |think| {
                format!("a pause after {}", one_of(think.every))
            }),
        ),
        ("THINK_TM_MIN", pause(|think| think.least)),
        ("THINK_TM_MAX", pause(|think| think.most)),
    ]
}
