//! `MariaDB` and `MySQL` with `InnoDB` as an engine: a session is a connection, an operation a
//! prepared statement.
//!
//! Input: operations whose position is a row number over all tables. Output: whether the statement
//! touched exactly the requested rows. The plan is an index range that reads one page after
//! another. Multi-range read would sort first, which is a different workload.

use super::client::{
    COLUMNS, INDEX, MysqlVersion, blocks_table, column_chars, connect, failed, in_words,
    scan_table, version,
};
use super::connection::MysqlConnection;
use super::load;
use super::watch::MysqlMonitor;
use crate::access::{Access, Address};
use crate::tables::DistinctServers;
use mysql::{Row, Statement, Value};
use rigel_device::clock::{Clock, fresh_seed};
use rigel_device::engine::blocking::Blocking;
use rigel_device::engine::{Engine, ServerMonitor, Session};
use rigel_model::{
    Bytes, Cause, Dbms, Error, Fault, Finding, FindingName, Kind, Nanos, Op, Outcome, ReadWay,
    Redo, ServerFacts, ServerSample, SqlWork, Tables, failed, usage,
};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `MariaDB` or `MySQL` on one or several servers.
pub(crate) struct Mysql {
    access: Access,
    work: SqlWork,
    clock: Clock,
    /// Number of connections opened so far: servers get them in turn, and the updates of each
    /// write different text.
    opened: AtomicUsize,
    monitors: Vec<MysqlMonitor>,
    about: String,
    /// The statement that sets the statement timeout, if one was requested.
    timeout: Option<String>,
}

impl Mysql {
    /// Opens the engine for `work` on the servers of `access`. Also returns facts and warnings
    /// about them.
    ///
    /// # Errors
    /// One of them cannot be reached, is too old, or does not have the tables for `work`.
    pub(crate) fn open(
        access: Access,
        work: SqlWork,
        statement_timeout: Option<Nanos>,
    ) -> Result<(Self, ServerFacts, Vec<Finding>), Error> {
        if work.way == ReadWay::File {
            return Err(usage!(
                "'{servers}' cannot read a block from a file: MySQL has no statement for it",
                "read through the buffer pool, or use PostgreSQL",
                servers = access.servers[0]
            ));
        }
        if work.way == ReadWay::Prefetch {
            return Err(usage!(
                "--prefetch is for PostgreSQL, and '{servers}' is not",
                "leave it out: InnoDB reads the blocks of such a list one after the other too",
                servers = access.servers[0]
            ));
        }
        if work.pipeline > 1 {
            return Err(usage!(
                "--pipeline is for PostgreSQL, and '{servers}' is not",
                "leave it out: the protocol has one operation at a time on a connection",
                servers = access.servers[0]
            ));
        }
        let mut monitors = Vec::new();
        let (mut facts, mut findings, mut timeout) = (ServerFacts::default(), Vec::new(), None);
        let (mut distinct, marks) = (DistinctServers::default(), ServerMarks::new());
        for (number, address) in access.servers.iter().enumerate() {
            let loaded = load::find(&access, address)?;
            crate::tables::refuse_other_tables(address, loaded, work.tables)?;
            let mut connection = connect(&access, address)?;
            distinct.add(marks.instance(&mut connection, number), address)?;
            let version = version(&mut connection, address)?;
            if number == 0 {
                facts = describe(&mut connection, address, &version, &work)?;
                findings = warnings(&facts);
                timeout = statement_timeout.map(|time| timeout_statement(&version, time));
            }
            monitors.push(MysqlMonitor::new(connection, address)?);
        }
        facts.local = monitors.iter().all(|monitor| monitor.process().is_some());
        let about = format!(
            "mysql: {}, {} rows per statement by index range, prepared",
            facts.version,
            work.blocks(Kind::Read)
        );
        let (clock, opened) = (Clock::real(), AtomicUsize::new(0));
        Ok((
            Self {
                access,
                work,
                clock,
                opened,
                monitors,
                about,
                timeout,
            },
            facts,
            findings,
        ))
    }
}

/// Tells servers apart by locks of users, which every user may take: `MariaDB` has nothing that names
/// a server, and the names and files of servers in containers are alike.
struct ServerMarks(String);

impl ServerMarks {
    fn new() -> Self {
        Self(format!("rigel-{:016x}", fresh_seed()))
    }

    /// What identifies the server of server number `number`: the lock that an earlier connection of
    /// this process holds there, else a new one, as long as this connection lasts; `None` if the
    /// server has no such locks. A cluster's nodes do not share them.
    fn instance(&self, connection: &mut MysqlConnection, number: usize) -> Option<String> {
        let lock = |number: usize| format!("{}-{number}", self.0);
        for earlier in (0..number).map(lock) {
            let holder = format!("SELECT IS_USED_LOCK('{earlier}')");
            if connection
                .query_first::<Option<u64>>(&holder)
                .ok()??
                .is_some()
            {
                return Some(earlier);
            }
        }
        let own = lock(number);
        let taken = format!("SELECT GET_LOCK('{own}', 0)");
        let taken = connection.query_first::<Option<u64>>(&taken).ok()??;
        (taken == Some(1)).then_some(own)
    }
}

/// Sets a statement timeout. `MySQL` limits only reads, `MariaDB` every statement.
fn timeout_statement(version: &MysqlVersion, time: Nanos) -> String {
    if version.is_mariadb {
        format!("SET SESSION max_statement_time = {}", time.0 as f64 / 1e9)
    } else {
        format!(
            "SET SESSION max_execution_time = {}",
            time.0.div_ceil(1_000_000)
        )
    }
}

impl Engine for Mysql {
    fn name(&self) -> &'static str {
        Dbms::Mysql.name()
    }

    fn about(&self) -> String {
        self.about.clone()
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn slots_max(&self) -> usize {
        1
    }

    fn usable(&self) -> u64 {
        self.work.tables.bytes().0
    }

    fn open(&self, _: &[u32]) -> Result<Box<dyn Session + '_>, Error> {
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        let turn = crate::tables::server_of(number, self.work.tables, self.access.servers.len());
        let address = &self.access.servers[turn];
        let mut client = connect(&self.access, address)?;
        if let Some(timeout) = &self.timeout {
            client
                .query_drop(timeout)
                .map_err(|error| failed(address, "apply its settings", &error))?;
        }
        self.monitors[turn].watch(client.connection_id());
        let mut connection = MysqlSession::new(client, self, number);
        Ok(Box::new(Blocking::new(self.clock.clone(), move |op| {
            connection.execute(op)
        })))
    }

    fn server_monitor(&self) -> Option<&dyn ServerMonitor> {
        Some(self)
    }
}

/// The statements of one table, prepared on first use.
#[derive(Default, Clone)]
struct MysqlStatements {
    read: Option<Statement>,
    update: Option<Statement>,
    scan: Option<Statement>,
}

/// One session.
struct MysqlSession<'a> {
    client: MysqlConnection,
    engine: &'a Mysql,
    number: usize,
    tables: Vec<MysqlStatements>,
    updates: u64,
    chars: usize,
}

impl<'a> MysqlSession<'a> {
    fn new(client: MysqlConnection, engine: &'a Mysql, number: usize) -> Self {
        let Tables { schemas, block, .. } = engine.work.tables;
        let tables = vec![MysqlStatements::default(); schemas as usize];
        Self {
            client,
            engine,
            number,
            tables,
            updates: fresh_seed(),
            chars: column_chars(block),
        }
    }

    fn execute(&mut self, op: Op) -> Result<Outcome, Fault> {
        let result = match op.kind {
            Kind::Read => self.read(op),
            Kind::Write | Kind::Log => self.update(op),
            Kind::Scan => self.scan(op),
        };
        match result {
            Ok(rows) if rows == self.engine.work.blocks(op.kind) => Ok(Outcome::Done),
            Ok(_) => Ok(Outcome::Failed(Cause::Rows)),
            Err(error) => judge(&error),
        }
    }

    /// Number of the table, and the first key of the operation in it.
    fn place(&self, op: Op) -> (usize, u64) {
        let scale = self.engine.work.tables.scale;
        let table = usize::try_from(op.position / scale).expect("tables are few");
        (table, op.position % scale)
    }

    fn read(&mut self, op: Op) -> Result<u64, mysql::Error> {
        let (table, first) = self.place(op);
        let end = first + u64::from(self.engine.work.read_rows);
        let read = &mut self.tables[table].read;
        if read.is_none() {
            *read = Some(self.client.prep(read_statement(table))?);
        }
        let statement = read.as_ref().expect("prepared just now");
        Ok(self
            .client
            .exec_first(statement, (first, end))?
            .unwrap_or(0))
    }

    fn update(&mut self, op: Op) -> Result<u64, mysql::Error> {
        let (table, first) = self.place(op);
        let (redo, rows) = (
            self.engine.work.redo,
            u64::from(self.engine.work.update_rows),
        );
        self.updates += 1;
        let text = update_text(self.number, self.updates, op.position, self.chars);
        let update = &mut self.tables[table].update;
        if update.is_none() {
            *update = Some(self.client.prep(update_statement(table, redo, rows))?);
        }
        let mut values = vec![Value::from(text); if redo == Redo::Lite { 2 } else { COLUMNS }];
        values.extend(update_keys(first, rows));
        self.client
            .exec_drop(update.as_ref().expect("prepared just now"), values)?;
        Ok(self.client.affected_rows())
    }

    fn scan(&mut self, op: Op) -> Result<u64, mysql::Error> {
        let (table, _) = self.place(op);
        let scan = &mut self.tables[table].scan;
        if scan.is_none() {
            *scan = Some(
                self.client
                    .prep(format!("SELECT COUNT(c1) FROM {}", scan_table(table)))?,
            );
        }
        Ok(self
            .client
            .exec_first(scan.as_ref().expect("prepared just now"), ())?
            .unwrap_or(0))
    }
}

/// Decides whether the statement failed or the session broke.
fn judge(error: &mysql::Error) -> Result<Outcome, Fault> {
    const SHUTDOWN: u16 = 1053;
    const KILLED: u16 = 1927;
    // MySQL's error code for a statement timeout; its SQLSTATE is only "general error".
    const TIMED_OUT: u16 = 3024;
    if let mysql::Error::MySqlError(said) = error
        && let Ok(mut state) = <[u8; 5]>::try_from(said.state.as_bytes())
        && !state.starts_with(b"08")
        && ![SHUTDOWN, KILLED].contains(&said.code)
    {
        if said.code == TIMED_OUT {
            state = *b"70100";
        }
        return Ok(Outcome::Failed(Cause::SqlState(state)));
    }
    Err(Fault(format!(
        "the connection was lost: {}",
        in_words(error)
    )))
}

/// Text that an update writes. It differs for each update and session, otherwise the server would
/// write nothing.
fn update_text(session: usize, update: u64, position: u64, chars: usize) -> String {
    let mut text = String::with_capacity(chars);
    let _ = write!(text, "{session:0>6}-{update:0>20}-");
    let width = chars.saturating_sub(text.len());
    let _ = write!(text, "{position:x>width$}");
    text
}

/// Counts a column other than the key, so that the row itself is visited.
fn read_statement(table: usize) -> String {
    format!(
        "SELECT COUNT(c1) FROM {} FORCE INDEX ({INDEX}) WHERE id >= ? AND id < ?",
        blocks_table(table)
    )
}

/// Maximum number of rows for which an update lists each key.
const KEYS_MAX: u64 = 64;

/// Lists the keys one by one if there are few. An update does not check conditions on the index, so
/// for a range the server also reads and locks the row after the last one. (LIMIT is worse: the
/// server then reads every row twice.)
fn update_statement(table: usize, redo: Redo, rows: u64) -> String {
    let columns: Vec<String> = match redo {
        Redo::Lite => vec!["c1 = ?".into(), format!("c{COLUMNS} = ?")],
        Redo::Heavy => (1..=COLUMNS)
            .map(|number| format!("c{number} = ?"))
            .collect(),
    };
    let keys = if rows <= KEYS_MAX {
        format!(
            "id IN ({})",
            vec!["?"; usize::try_from(rows).expect("they are few")].join(", ")
        )
    } else {
        "id >= ? AND id < ?".into()
    };
    format!(
        "UPDATE {} FORCE INDEX ({INDEX}) SET {} WHERE {keys}",
        blocks_table(table),
        columns.join(", ")
    )
}

/// The keys for the placeholders of [`update_statement`].
fn update_keys(first: u64, rows: u64) -> Vec<Value> {
    let keys = if rows <= KEYS_MAX {
        (first..first + rows).collect()
    } else {
        vec![first, first + rows]
    };
    keys.into_iter().map(Value::from).collect()
}

/// Settings that affect the measurement.
const TOLD: [&str; 25] = [
    "version",
    "version_comment",
    "innodb_flush_method",
    "innodb_data_file_buffering",
    "innodb_buffer_pool_size",
    "innodb_page_size",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
    "sync_binlog",
    "log_bin",
    "binlog_format",
    "innodb_read_ahead_threshold",
    "innodb_random_read_ahead",
    "innodb_adaptive_hash_index",
    "innodb_change_buffering",
    "innodb_use_native_aio",
    "innodb_io_capacity",
    "innodb_log_file_size",
    "innodb_flush_neighbors",
    "max_connections",
    "performance_schema",
    "datadir",
    "innodb_use_fdatasync",
    "innodb_log_file_buffering",
    "innodb_log_file_write_through",
];

/// Facts about the server, including its plan for the read.
fn describe(
    connection: &mut MysqlConnection,
    address: &Address,
    version: &MysqlVersion,
    work: &SqlWork,
) -> Result<ServerFacts, Error> {
    let text = format!(
        "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('{}')",
        TOLD.join("', '")
    );
    let rows: Vec<(String, String)> = connection
        .query(text)
        .map_err(|error| failed(address, "report its settings", &error))?;
    let mut settings: BTreeMap<String, String> = rows.into_iter().collect();
    // The name that other databases use.
    if let Some(directory) = settings.remove("datadir") {
        settings.insert("data_directory".into(), directory);
    }
    let end = 64 + work.blocks(Kind::Read);
    let read = read_statement(0)
        .replacen('?', "64", 1)
        .replacen('?', &end.to_string(), 1);
    let rows: Vec<Row> = connection
        .query(format!("EXPLAIN {read}"))
        .map_err(|error| failed(address, "explain the read", &error))?;
    let plan: Vec<String> = rows.into_iter().map(plan_line).collect();
    refuse_other_plan(address, &plan)?;
    let buffer_cache = Bytes(
        settings
            .get("innodb_buffer_pool_size")
            .and_then(|text| text.parse().ok())
            .unwrap_or(0),
    );
    Ok(ServerFacts {
        version: version.name.clone(),
        tables: Some(work.tables),
        direct: is_direct(&settings),
        settings,
        plan,
        local: false,
        buffer_cache,
    })
}

/// Formats a row of the plan as `key=id rows=64 Extra=…`.
fn plan_line(row: Row) -> String {
    let columns = row.columns();
    let fields = columns
        .iter()
        .zip(row.unwrap())
        .filter(|(_, value)| *value != Value::NULL);
    let texts = fields.map(|(column, value)| {
        let value = mysql::from_value_opt::<String>(value.clone())
            .unwrap_or_else(|_| value.as_sql(true).trim_matches('\'').to_string());
        format!("{}={value}", column.name_str())
    });
    texts.collect::<Vec<_>>().join(" ")
}

fn refuse_other_plan(address: &Address, plan: &[String]) -> Result<(), Error> {
    let is_range = |line: &String| {
        line.contains("type=range")
            && line.contains(&format!(" key={INDEX} "))
            && !line.contains("MRR")
    };
    if plan.iter().any(is_range) {
        return Ok(());
    }
    Err(failed!(
        "'{address}' does not read by index, one page after the other: {plan}",
        "check that the tables have their index, or load them again",
        plan = plan.join(" | ")
    ))
}

/// True if data files are read with direct I/O. `MariaDB` 11 has a separate setting for that.
fn is_direct(settings: &BTreeMap<String, String>) -> bool {
    match settings.get("innodb_data_file_buffering") {
        Some(buffering) => buffering == "OFF",
        None => settings
            .get("innodb_flush_method")
            .is_some_and(|method| method.starts_with("O_DIRECT")),
    }
}

/// Warnings about settings that make a run doubtful.
fn warnings(facts: &ServerFacts) -> Vec<Finding> {
    let mut findings = Vec::from_iter(crate::counters::cache_warning(facts, "buffer pool"));
    let setting = |name: &str| facts.settings.get(name).map_or("", String::as_str);
    let mut wanted = vec![
        ("innodb_flush_log_at_trx_commit", "1"),
        ("innodb_doublewrite", "ON"),
    ];
    if setting("log_bin") == "ON" {
        wanted.push(("sync_binlog", "1"));
    }
    findings.extend(crate::counters::less_durable(facts, &wanted));
    if !facts.plan.is_empty()
        && !facts
            .plan
            .iter()
            .any(|line| line.contains("Using index condition"))
    {
        findings.push(Finding::warning(
            FindingName::IndexCondition,
            format!(
                "the server does not evaluate the key on the index alone: {}",
                facts.plan.join(" | ")
            ),
            "expect one more page per read: the row after the last one is read too",
        ));
    }
    if setting("innodb_random_read_ahead") == "ON" {
        findings.push(Finding::warning(
            FindingName::RandomReadAhead,
            "innodb_random_read_ahead is ON on the server: it reads pages that were not requested",
            "set innodb_random_read_ahead = OFF",
        ));
    }
    findings
}

impl ServerMonitor for Mysql {
    fn begin(&self) {
        self.monitors.iter().for_each(MysqlMonitor::begin);
    }

    fn look(&self) {
        self.monitors.iter().for_each(MysqlMonitor::look);
    }

    fn counters(&self) -> Option<ServerSample> {
        crate::counters::sum_of_all(self.monitors.iter().map(MysqlMonitor::counters))
    }

    fn flush(&self) {
        self.monitors.iter().for_each(MysqlMonitor::flush);
    }

    fn processes(&self) -> Vec<u32> {
        crate::counters::all_or_none(self.monitors.iter().map(MysqlMonitor::process))
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::NO_SUCH_TABLE;
    use super::*;

    #[test]
    fn versions_are_distinguished() {
        let maria = MysqlVersion::parse("10.11.19-MariaDB-0+deb12u1");
        assert_eq!(
            (maria.is_mariadb, maria.numbers, maria.name.as_str()),
            (true, (10, 11), "MariaDB 10.11.19")
        );
        assert_eq!(
            MysqlVersion::parse("5.5.5-10.6.2-MariaDB-log").numbers,
            (10, 6)
        );
        let mysql = MysqlVersion::parse("8.0.36-28");
        assert_eq!(
            (mysql.is_mariadb, mysql.numbers, mysql.name.as_str()),
            (false, (8, 0), "MySQL 8.0.36-28")
        );
        assert!(
            MysqlVersion::parse("5.6.50-log").is_old()
                && MysqlVersion::parse("10.1.48-MariaDB").is_old()
        );
        assert!(!mysql.is_old() && !maria.is_old());
    }

    #[test]
    fn each_server_has_its_own_statement_timeout_setting() {
        let time = Nanos(1_500_000_000);
        let maria = timeout_statement(&MysqlVersion::parse("10.11.19-MariaDB"), time);
        assert_eq!(maria, "SET SESSION max_statement_time = 1.5");
        assert_eq!(
            timeout_statement(&MysqlVersion::parse("8.0.36"), time),
            "SET SESSION max_execution_time = 1500"
        );
    }

    #[test]
    fn an_update_names_few_keys_and_writes_other_text_each_time() {
        assert_eq!(
            update_statement(1, Redo::Lite, 3),
            "UPDATE rigel_blocks_2 FORCE INDEX (id) SET c1 = ?, c19 = ? WHERE id IN (?, ?, ?)"
        );
        for rows in [1, KEYS_MAX, KEYS_MAX + 1] {
            let asked = update_statement(0, Redo::Lite, rows).matches('?').count();
            assert_eq!(asked, 2 + update_keys(5, rows).len(), "{rows}");
        }
        assert_eq!(
            update_keys(5, 100),
            [Value::from(5u64), Value::from(105u64)]
        );
        assert_eq!(
            update_statement(0, Redo::Heavy, 1).matches('?').count(),
            COLUMNS + 1
        );
        let texts =
            [(0, 1), (0, 2), (1, 1)].map(|(session, update)| update_text(session, update, 99, 420));
        assert!(texts.iter().all(|text| text.len() == 420), "{texts:?}");
        assert!(texts[0] != texts[1] && texts[0] != texts[2]);
    }

    #[test]
    fn a_failed_statement_is_distinguished_from_a_lost_session() {
        let said = |code, state: &str| {
            mysql::Error::MySqlError(mysql::MySqlError {
                state: state.into(),
                message: "no".into(),
                code,
            })
        };
        let state = |code| Ok(Outcome::Failed(Cause::SqlState(code)));
        assert_eq!(judge(&said(NO_SUCH_TABLE, "42S02")), state(*b"42S02"));
        assert_eq!(judge(&said(1969, "70100")), state(*b"70100"));
        assert_eq!(judge(&said(3024, "HY000")), state(*b"70100"));
        for lost in [
            said(1053, "08S01"),
            said(1927, "70100"),
            std::io::Error::other("gone").into(),
        ] {
            assert!(judge(&lost).is_err(), "{lost}");
        }
    }

    fn facts(settings: &[(&str, &str)]) -> ServerFacts {
        let settings = settings
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect();
        let tables = Some(Tables {
            schemas: 1,
            scale: 1000,
            scan_blocks: 1,
            block: 16_384,
        });
        ServerFacts {
            settings,
            tables,
            buffer_cache: Bytes(1000 * 16_384 / 2),
            ..ServerFacts::default()
        }
    }

    #[test]
    fn doubtful_settings_raise_warnings() {
        let good = [
            ("innodb_flush_log_at_trx_commit", "1"),
            ("innodb_doublewrite", "ON"),
            ("sync_binlog", "0"),
        ];
        assert_eq!(warnings(&facts(&good)), []);
        let bad = [
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "OFF"),
            ("sync_binlog", "0"),
            ("log_bin", "ON"),
            ("innodb_random_read_ahead", "ON"),
        ];
        let mut cached = facts(&bad);
        cached.plan = vec!["type=range Extra=Using where".into()];
        cached.buffer_cache = Bytes(1 << 30);
        let names: Vec<String> = warnings(&cached)
            .into_iter()
            .map(|warning| warning.name)
            .collect();
        let wanted = ["buffer-cache", "not-durable", "not-durable", "not-durable"];
        assert_eq!(
            names,
            [&wanted[..], &["index-condition", "random-read-ahead"]].concat()
        );
    }

    #[test]
    fn direct_reads_are_detected_by_either_setting() {
        for (settings, direct) in [
            (&[("innodb_flush_method", "O_DIRECT_NO_FSYNC")][..], true),
            (&[("innodb_flush_method", "fsync")], false),
            (
                &[
                    ("innodb_flush_method", "O_DIRECT"),
                    ("innodb_data_file_buffering", "ON"),
                ],
                false,
            ),
            (&[], false),
        ] {
            assert_eq!(is_direct(&facts(settings).settings), direct, "{settings:?}");
        }
    }

    #[test]
    fn another_plan_is_refused() {
        let address = Address::parse("mysql://root@h/d", &|_| None).unwrap();
        let good = "table=rigel_blocks_1 type=range key=id key_len=9 Extra=Using index condition"
            .to_string();
        assert!(refuse_other_plan(&address, std::slice::from_ref(&good)).is_ok());
        for other in [
            good.replace("range", "ALL"),
            good.replace("=id ", "=PRIMARY "),
            format!("{good}; Using MRR"),
        ] {
            let error = refuse_other_plan(&address, std::slice::from_ref(&other)).unwrap_err();
            assert!(error.to_string().contains(&other), "{error}");
        }
    }
}
