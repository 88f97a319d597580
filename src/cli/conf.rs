//! Reads SLOB's `slob.conf` and pgio's `pgio.conf` as settings of a database run.
//!
//! Input: the text of a file. Output: [`Conf`], or a refusal that names the key, its value, its
//! line and the hint. The files have shell syntax but are read as data: nothing is executed,
//! expanded or opened. No password appears in a value, a remark or a refusal.
//!
//! A refusal begins with the line number: the caller puts the name of the file before it.

mod connect;
mod shell;

use connect::NO_PASSWORD;
use rigel_model::{
    Bytes, Error, GIB, KIB, MIB, Nanos, Ratio, ReadWay, Redo, Think, letters_changed, usage,
};
use shell::Assignment;
use std::fmt::{self, Write};

/// The kit that a file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfDialect {
    /// `slob.conf`, of SLOB.
    Slob,
    /// `pgio.conf`, of pgio.
    Pgio,
}

impl ConfDialect {
    fn name(self) -> &'static str {
        match self {
            ConfDialect::Slob => "SLOB",
            ConfDialect::Pgio => "pgio",
        }
    }
}

/// Size of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableSize {
    /// Number of rows, each of which fills a block.
    Blocks(u64),
    /// Number of bytes, rounded down to whole blocks.
    Bytes(Bytes),
}

impl TableSize {
    /// The number of rows for blocks of `block` bytes: an incomplete block is not a row.
    pub fn blocks(self, block: u32) -> u64 {
        match self {
            TableSize::Blocks(blocks) => blocks,
            TableSize::Bytes(Bytes(bytes)) => bytes / u64::from(block.max(1)),
        }
    }
}

impl fmt::Display for TableSize {
    /// As in the files: `10000`, or an integer with a unit, `80M`. Bytes are rounded up to whole
    /// KiB, because there is no smaller unit.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TableSize::Blocks(blocks) => write!(f, "{blocks}"),
            TableSize::Bytes(Bytes(bytes)) => {
                let kib = bytes.div_ceil(KIB);
                let units = [("T", GIB), ("G", MIB), ("M", KIB), ("K", 1)];
                let fits = units
                    .iter()
                    .find(|(_, size)| kib > 0 && kib.is_multiple_of(*size));
                let (unit, size) = fits.unwrap_or(&("K", 1));
                write!(f, "{}{unit}", kib / size)
            }
        }
    }
}

/// A range of each table that receives part of the operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HotSpotSetting {
    /// Size of the range.
    pub bytes: Bytes,
    /// Offset of the range in the table.
    pub offset: Bytes,
    /// One of this many operations goes there; at least 1.
    pub every: u32,
}

/// Connections that load a table, where nothing is given.
pub(super) const LOAD_DEGREE: u32 = 2;

/// Settings in a file. `None` if a setting is absent, or turns off something that is off by
/// default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// Fraction of operations that update.
    pub updates: Option<Ratio>,
    /// Fraction of reads that are full scans.
    pub scans: Option<Ratio>,
    /// Duration of the measurement.
    pub run_time: Option<Nanos>,
    /// Number of operations after which a session ends.
    pub work_loop: Option<u64>,
    /// Size of each table for reads by key.
    pub scale: Option<TableSize>,
    /// Size of each table for scans.
    pub scan_table: Option<TableSize>,
    /// Rows, and so blocks, per operation.
    pub work_unit: Option<u32>,
    /// Rows per update, if different.
    pub update_work_unit: Option<u32>,
    /// Extent of the change of a row by an update.
    pub redo: Option<Redo>,
    /// How reads find and read their blocks; no file has it.
    pub way: Option<ReadWay>,
    /// Maximum number of operations in flight on a connection; no file has it.
    pub pipeline: Option<u32>,
    /// Number of connections that load in parallel.
    pub load_degree: Option<u32>,
    /// Number of sessions per table.
    pub threads_per_schema: Option<u32>,
    /// Number of tables for reads by key.
    pub schemas: Option<u32>,
    /// A range of each table that is visited more often.
    pub hot_spot: Option<HotSpotSetting>,
    /// One of this many operations goes to the first table.
    pub hot_schema_every: Option<u32>,
    /// Pauses of the sessions.
    pub think: Option<Think>,
    /// The server, without any password: `postgres://user@host:port/database?sslmode=…`, where all
    /// parts are optional.
    pub url: Option<String>,
    /// The name of the database as in `DBNAME`; `url` contains it too, unless it names another
    /// one.
    pub database: Option<String>,
    /// Whether pgio would make the table from which it copies its data. Has no effect here.
    pub create_base_table: Option<bool>,
}

impl Settings {
    /// Fills absent settings from `other`.
    pub fn or(self, other: Settings) -> Settings {
        Settings {
            updates: self.updates.or(other.updates),
            scans: self.scans.or(other.scans),
            run_time: self.run_time.or(other.run_time),
            work_loop: self.work_loop.or(other.work_loop),
            scale: self.scale.or(other.scale),
            scan_table: self.scan_table.or(other.scan_table),
            work_unit: self.work_unit.or(other.work_unit),
            update_work_unit: self.update_work_unit.or(other.update_work_unit),
            redo: self.redo.or(other.redo),
            way: self.way.or(other.way),
            pipeline: self.pipeline.or(other.pipeline),
            load_degree: self.load_degree.or(other.load_degree),
            threads_per_schema: self.threads_per_schema.or(other.threads_per_schema),
            schemas: self.schemas.or(other.schemas),
            hot_spot: self.hot_spot.or(other.hot_spot),
            hot_schema_every: self.hot_schema_every.or(other.hot_schema_every),
            think: self.think.or(other.think),
            url: self.url.or(other.url),
            database: self.database.or(other.database),
            create_base_table: self.create_base_table.or(other.create_base_table),
        }
    }

    /// Prints the settings as a file of that kit, which parses to the same settings. Leaves out
    /// settings that the kit does not have.
    pub fn print(&self, dialect: ConfDialect) -> String {
        let percent = |share: Ratio| share.exact().trim_end_matches('%').to_string();
        let mut lines = vec![
            ("UPDATE_PCT", self.updates.map(percent)),
            ("RUN_TIME", self.run_time.map(seconds)),
            ("SCALE", self.scale.map(|scale| scale.to_string())),
            ("WORK_UNIT", self.work_unit.map(|rows| rows.to_string())),
        ];
        match dialect {
            ConfDialect::Slob => {
                let (hot, think) = (self.hot_spot, self.think);
                lines.extend([
                    ("SCAN_PCT", self.scans.map(percent)),
                    ("WORK_LOOP", self.work_loop.map(|count| count.to_string())),
                    (
                        "SCAN_TABLE_SZ",
                        self.scan_table.map(|scale| scale.to_string()),
                    ),
                    (
                        "REDO_STRESS",
                        self.redo.map(|redo| {
                            if redo == Redo::Heavy { "HEAVY" } else { "LITE" }.to_string()
                        }),
                    ),
                    (
                        "LOAD_PARALLEL_DEGREE",
                        self.load_degree.map(|count| count.to_string()),
                    ),
                    (
                        "THREADS_PER_SCHEMA",
                        self.threads_per_schema.map(|count| count.to_string()),
                    ),
                    ("DO_HOTSPOT", hot.map(|_| "TRUE".to_string())),
                    ("HOTSPOT_MB", hot.map(|hot| (hot.bytes.0 / MIB).to_string())),
                    (
                        "HOTSPOT_OFFSET_MB",
                        hot.map(|hot| (hot.offset.0 / MIB).to_string()),
                    ),
                    ("HOTSPOT_FREQUENCY", hot.map(|hot| hot.every.to_string())),
                    (
                        "HOT_SCHEMA_FREQUENCY",
                        self.hot_schema_every.map(|every| every.to_string()),
                    ),
                    (
                        "THINK_TM_FREQUENCY",
                        think.map(|think| think.every.to_string()),
                    ),
                    ("THINK_TM_MIN", think.map(|think| seconds(think.least))),
                    ("THINK_TM_MAX", think.map(|think| seconds(think.most))),
                ]);
            }
            ConfDialect::Pgio => lines.extend([
                ("NUM_SCHEMAS", self.schemas.map(|count| count.to_string())),
                (
                    "NUM_THREADS",
                    self.threads_per_schema.map(|count| count.to_string()),
                ),
                (
                    "UPDATE_WORK_UNIT",
                    self.update_work_unit.map(|rows| rows.to_string()),
                ),
                ("DBNAME", self.database.clone()),
                ("CONNECT_STRING", self.url.clone()),
                (
                    "CREATE_BASE_TABLE",
                    self.create_base_table
                        .map(|made| made.to_string().to_uppercase()),
                ),
            ]),
        }
        lines
            .into_iter()
            .fold(String::new(), |mut text, (key, value)| {
                if let Some(value) = value {
                    let _ = writeln!(text, "{key}='{}'", value.replace('\'', "'\\''"));
                }
                text
            })
    }
}

/// A parsed file.
#[derive(Debug, Clone, PartialEq)]
pub struct Conf {
    /// Its kit; SLOB if no key decides it.
    pub dialect: ConfDialect,
    /// Its settings.
    pub settings: Settings,
    /// Remarks for users of that kit about keys with a different meaning or no effect here. One
    /// sentence each, sorted by line.
    pub remarks: Vec<String>,
}

/// SLOB's defaults. `schemas` is `None`: SLOB gets it on its command line.
pub fn slob_defaults() -> Settings {
    Settings {
        updates: Ratio::from_percent(10.0),
        scans: Some(Ratio::ZERO),
        run_time: Some(Nanos::from_secs(300)),
        scale: Some(TableSize::Bytes(Bytes(80 * MIB))),
        scan_table: Some(TableSize::Bytes(Bytes(MIB))),
        work_unit: Some(64),
        redo: Some(Redo::Lite),
        load_degree: Some(2),
        threads_per_schema: Some(1),
        ..Settings::default()
    }
}

/// Defaults of a pgio run. pgio's files contain all settings, and we know no defaults of pgio
/// itself: these are SLOB's, with one schema.
pub fn pgio_defaults() -> Settings {
    Settings {
        schemas: Some(1),
        ..slob_defaults()
    }
}

/// The kit that a key belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Both,
    Only(ConfDialect),
}

/// The keys of settings.
const KEYS: [(&str, Owner); 24] = [
    ("UPDATE_PCT", Owner::Both),
    ("RUN_TIME", Owner::Both),
    ("SCALE", Owner::Both),
    ("WORK_UNIT", Owner::Both),
    ("SCAN_PCT", Owner::Only(ConfDialect::Slob)),
    ("WORK_LOOP", Owner::Only(ConfDialect::Slob)),
    ("SCAN_TABLE_SZ", Owner::Only(ConfDialect::Slob)),
    ("REDO_STRESS", Owner::Only(ConfDialect::Slob)),
    ("LOAD_PARALLEL_DEGREE", Owner::Only(ConfDialect::Slob)),
    ("THREADS_PER_SCHEMA", Owner::Only(ConfDialect::Slob)),
    ("DO_HOTSPOT", Owner::Only(ConfDialect::Slob)),
    ("HOTSPOT_MB", Owner::Only(ConfDialect::Slob)),
    ("HOTSPOT_OFFSET_MB", Owner::Only(ConfDialect::Slob)),
    ("HOTSPOT_FREQUENCY", Owner::Only(ConfDialect::Slob)),
    ("HOT_SCHEMA_FREQUENCY", Owner::Only(ConfDialect::Slob)),
    ("THINK_TM_FREQUENCY", Owner::Only(ConfDialect::Slob)),
    ("THINK_TM_MIN", Owner::Only(ConfDialect::Slob)),
    ("THINK_TM_MAX", Owner::Only(ConfDialect::Slob)),
    ("NUM_SCHEMAS", Owner::Only(ConfDialect::Pgio)),
    ("NUM_THREADS", Owner::Only(ConfDialect::Pgio)),
    ("UPDATE_WORK_UNIT", Owner::Only(ConfDialect::Pgio)),
    ("DBNAME", Owner::Only(ConfDialect::Pgio)),
    ("CONNECT_STRING", Owner::Only(ConfDialect::Pgio)),
    ("CREATE_BASE_TABLE", Owner::Only(ConfDialect::Pgio)),
];

/// SLOB's keys for features that only Oracle has: their effect there, and the equivalent here.
const ORACLE: [(&str, &str); 8] = [
    (
        "DATABASE_STATISTICS_TYPE",
        "chooses AWR or Statspack in SLOB; Rigel reads the server's own statistics before, after \
         and each second",
    ),
    (
        "ADMIN_SQLNET_SERVICE",
        "names SLOB's administrative service; Rigel connects only to the URL on the command line",
    ),
    (
        "SQLNET_SERVICE_BASE",
        "names the service of SLOB's sessions; give Rigel one or several URLs, which sessions use \
         in turn",
    ),
    (
        "SQLNET_SERVICE_MAX",
        "is the number of services that SLOB's sessions use in turn; give Rigel the same number \
         of URLs",
    ),
    (
        "DBA_PRIV_USER",
        "names SLOB's administrator; Rigel's user is in the URL, and need not be an administrator",
    ),
    ("SYSDBA_PASSWD", "is a password, which"),
    (
        "EXTERNAL_SCRIPT",
        "is executed by SLOB before and after a run; Rigel executes nothing from a file: call the \
         script yourself",
    ),
    (
        "OBFUSCATE_COLUMNS",
        "makes SLOB fill its rows with random text; Rigel always does",
    ),
];

/// Maximum number of rows of a table: `PostgreSQL` numbers its blocks in 32 bits.
const BLOCKS_MAX: u64 = 0xFFFF_FFFE;
/// Maximum size of a table in bytes: that number of blocks of 8 KiB.
const BYTES_MAX: u64 = 32 * KIB * GIB;
/// Minimum number of blocks that SLOB accepts.
const SLOB_BLOCKS_MIN: u64 = 10_000;
/// The block size that SLOB nearly always uses.
const SLOB_BLOCK: u32 = 8192;
/// One year.
const RUN_TIME_MAX: Nanos = Nanos::from_secs(365 * 86_400);
/// One hour.
const THINK_TIME_MAX: Nanos = Nanos::from_secs(3600);
/// The default hot spot, if a file only turns it on.
const HOT_SPOT: HotSpotSetting = HotSpotSetting {
    bytes: Bytes(8 * MIB),
    offset: Bytes(16 * MIB),
    every: 3,
};
/// SLOB's default minimum and maximum pause, if a file gives only the frequency.
const THINK: (Nanos, Nanos) = (Nanos::from_millis(100), Nanos::from_millis(500));

/// Parses the text of a `slob.conf` or a `pgio.conf`.
///
/// # Errors
/// The text needs a shell; a key is unknown, or belongs to the other kit; a value is invalid. Each
/// message begins with the line, and shows no value of a key that may contain a password.
pub fn parse(text: &str) -> Result<Conf, Error> {
    let script = shell::read(text, |name| owner(name).is_some())?;
    let mut remarks = Vec::new();
    for (line, name) in script.exported {
        // Kits export their own variables. Other exported names do not affect a run and are not
        // settings.
        if owner(&name).is_none() {
            remarks.push((
                line,
                format!("{name} is exported; it is not a setting and has no effect"),
            ));
        }
    }
    let mut given: Vec<Assignment> = Vec::new();
    for assignment in script.assignments {
        if owner(&assignment.key).is_none() {
            return Err(unknown(&assignment));
        }
        if let Some(before) = given.iter_mut().find(|before| before.key == assignment.key) {
            let key = &assignment.key;
            remarks.push((
                assignment.line,
                format!(
                    "{key} was already set on line {}; the last value counts",
                    before.line
                ),
            ));
            *before = assignment;
        } else {
            given.push(assignment);
        }
    }
    let dialect = dialect(&given)?;
    let mut file = File {
        given,
        dialect,
        remarks,
    };
    let settings = file.settings()?;
    file.remark();
    file.remarks.sort_by_key(|(line, _)| *line);
    let remarks = file
        .remarks
        .into_iter()
        .map(|(line, remark)| format!("line {line}: {remark}"))
        .collect();
    Ok(Conf {
        dialect,
        settings,
        remarks,
    })
}

/// `None` for an unknown key.
fn owner(key: &str) -> Option<Owner> {
    let setting = KEYS
        .iter()
        .find(|(known, _)| *known == key)
        .map(|(_, owner)| *owner);
    setting.or_else(|| {
        ORACLE
            .iter()
            .any(|(known, _)| *known == key)
            .then_some(Owner::Only(ConfDialect::Slob))
    })
}

fn unknown(assignment: &Assignment) -> Error {
    let Assignment { line, key, .. } = assignment;
    let keys = KEYS
        .iter()
        .map(|(known, _)| *known)
        .chain(ORACLE.iter().map(|(known, _)| *known));
    let near = keys
        .map(|name| (letters_changed(&key.to_ascii_uppercase(), name), name))
        .min();
    let hint = match near {
        Some((distance, name)) if distance <= name.len() / 4 => format!("did you mean {name}?"),
        _ => "remove the line, or put # before it; docs/methods/slob.md lists the keys".into(),
    };
    usage!(
        "line {line}: {key} is not a key of slob.conf or pgio.conf",
        hint
    )
}

/// The kit of a file, decided by keys that only one kit has.
fn dialect(given: &[Assignment]) -> Result<ConfDialect, Error> {
    let first = |dialect| {
        given
            .iter()
            .find(|assignment| owner(&assignment.key) == Some(Owner::Only(dialect)))
    };
    match (first(ConfDialect::Slob), first(ConfDialect::Pgio)) {
        (Some(slob), Some(pgio)) => Err(usage!(
            "line {pgio_line}: {pgio_key} is a key of pgio, and {slob_key} on line {slob_line} a \
             key of SLOB",
            "use the keys of one of them, and give the rest as options on the command line",
            pgio_line = pgio.line,
            pgio_key = pgio.key,
            slob_key = slob.key,
            slob_line = slob.line
        )),
        (None, Some(_)) => Ok(ConfDialect::Pgio),
        _ => Ok(ConfDialect::Slob),
    }
}

/// The assignments of a file: each key once, all of one kit.
struct File {
    given: Vec<Assignment>,
    dialect: ConfDialect,
    /// Remarks with their lines.
    remarks: Vec<(usize, String)>,
}

impl File {
    fn settings(&mut self) -> Result<Settings, Error> {
        let schemas = self.count("NUM_SCHEMAS", 1, 4096)?;
        let (threads, load_degree) = match self.dialect {
            ConfDialect::Slob => (
                self.count("THREADS_PER_SCHEMA", 1, 4096)?,
                self.count("LOAD_PARALLEL_DEGREE", 1, 1024)?,
            ),
            // pgio loads with the number of threads that later work on a schema.
            ConfDialect::Pgio => (
                self.count("NUM_THREADS", 1, 4096)?,
                self.count("NUM_THREADS", 1, 4096)?,
            ),
        };
        let hot_schema_every = self
            .count("HOT_SCHEMA_FREQUENCY", 0, u32::MAX)?
            .filter(|every| *every > 0);
        let database = self.database()?;
        let (url, database) = self.server(database);
        Ok(Settings {
            way: None,
            pipeline: None,
            updates: self.percent("UPDATE_PCT")?,
            scans: self.percent("SCAN_PCT")?,
            run_time: self.time("RUN_TIME", Nanos(1), RUN_TIME_MAX)?,
            work_loop: self
                .whole("WORK_LOOP", 0, 1 << 53)?
                .filter(|count| *count > 0),
            scale: self.scale("SCALE")?,
            scan_table: self.scale("SCAN_TABLE_SZ")?,
            work_unit: self.count("WORK_UNIT", 1, 1_000_000)?,
            update_work_unit: self.count("UPDATE_WORK_UNIT", 1, 1_000_000)?,
            redo: self.word(
                "REDO_STRESS",
                &[("LITE", Redo::Lite), ("HEAVY", Redo::Heavy)],
            )?,
            load_degree,
            threads_per_schema: threads,
            schemas,
            hot_spot: self.hot_spot()?,
            hot_schema_every,
            think: self.think()?,
            url,
            database,
            create_base_table: self.truth("CREATE_BASE_TABLE")?,
        })
    }

    /// The assignment to `key`, if it has a value.
    fn find(&self, key: &str) -> Option<&Assignment> {
        self.given
            .iter()
            .find(|given| given.key == key && !given.value.trim().is_empty())
    }

    /// The value of `key`, parsed by `read`; `wanted` describes valid values.
    fn value<T>(
        &self,
        key: &str,
        wanted: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(Assignment { line, value, .. }) = self.find(key) else {
            return Ok(None);
        };
        let wrong = || {
            let shown: String = value.trim().chars().take(40).collect();
            let what = format!(
                "line {line}: {key}={} is not {wanted}",
                shown.escape_debug()
            );
            Error::usage(what, format!("write {key} as {wanted}"))
        };
        read(value.trim()).map(Some).ok_or_else(wrong)
    }

    fn whole(&self, key: &str, least: u64, most: u64) -> Result<Option<u64>, Error> {
        let wanted = format!("a whole number from {least} to {most}");
        self.value(key, &wanted, |text| {
            digits(text).filter(|number| (least..=most).contains(number))
        })
    }

    fn count(&self, key: &str, least: u32, most: u32) -> Result<Option<u32>, Error> {
        let number = self.whole(key, least.into(), most.into())?;
        Ok(number.map(|number| u32::try_from(number).expect("checked to be at most a u32")))
    }

    fn percent(&self, key: &str) -> Result<Option<Ratio>, Error> {
        self.value(
            key,
            "a percentage from 0 to 100 with at most 6 decimals",
            |text| {
                fixed(text, 6)?;
                Ratio::from_percent(text.parse().ok()?)
            },
        )
    }

    fn time(&self, key: &str, least: Nanos, most: Nanos) -> Result<Option<Nanos>, Error> {
        let above = if least > Nanos(0) { "more than 0" } else { "0" };
        let wanted = format!(
            "seconds, from {above} to {}, with at most 9 decimals",
            seconds(most)
        );
        self.value(key, &wanted, |text| {
            fixed(text, 9)
                .map(Nanos)
                .filter(|time| (least..=most).contains(time))
        })
    }

    fn scale(&self, key: &str) -> Result<Option<TableSize>, Error> {
        let wanted = format!(
            "blocks, from 1 to {BLOCKS_MAX}, or bytes such as 512K, 80M, 16G or 1T, up to 32T"
        );
        self.value(key, &wanted, |text| {
            let units = [('K', KIB), ('M', MIB), ('G', GIB), ('T', KIB * GIB)];
            let with_unit = units.iter().find_map(|(unit, size)| {
                Some((
                    text.strip_suffix([*unit, unit.to_ascii_lowercase()])?
                        .trim_end(),
                    size,
                ))
            });
            let Some((number, size)) = with_unit else {
                return digits(text)
                    .filter(|blocks| (1..=BLOCKS_MAX).contains(blocks))
                    .map(TableSize::Blocks);
            };
            let bytes = digits(number)?.checked_mul(*size)?;
            (1..=BYTES_MAX)
                .contains(&bytes)
                .then_some(TableSize::Bytes(Bytes(bytes)))
        })
    }

    fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Result<Option<T>, Error> {
        let wanted = words
            .iter()
            .map(|(word, _)| *word)
            .collect::<Vec<_>>()
            .join(" or ");
        self.value(key, &wanted, |text| {
            words
                .iter()
                .find(|(word, _)| word.eq_ignore_ascii_case(text))
                .map(|(_, meant)| *meant)
        })
    }

    fn truth(&self, key: &str) -> Result<Option<bool>, Error> {
        let words = [
            ("TRUE", true),
            ("FALSE", false),
            ("YES", true),
            ("NO", false),
            ("1", true),
            ("0", false),
        ];
        self.word(key, &words)
    }

    fn hot_spot(&mut self) -> Result<Option<HotSpotSetting>, Error> {
        let mib = |count: u64| Bytes(count * MIB);
        // Reject an invalid value even if it has no effect.
        let bytes = self
            .whole("HOTSPOT_MB", 1, BYTES_MAX / MIB)?
            .map_or(HOT_SPOT.bytes, mib);
        let offset = self
            .whole("HOTSPOT_OFFSET_MB", 0, BYTES_MAX / MIB)?
            .map_or(HOT_SPOT.offset, mib);
        let every = self
            .count("HOTSPOT_FREQUENCY", 0, u32::MAX)?
            .unwrap_or(HOT_SPOT.every);
        let is_on = self.truth("DO_HOTSPOT")?.unwrap_or(false);
        if is_on && every == 0 {
            self.note(
                "HOTSPOT_FREQUENCY",
                "is 0: no operation goes to the hot spot, regardless of DO_HOTSPOT",
            );
        }
        Ok((is_on && every > 0).then_some(HotSpotSetting {
            bytes,
            offset,
            every,
        }))
    }

    fn think(&self) -> Result<Option<Think>, Error> {
        let every = self.count("THINK_TM_FREQUENCY", 0, u32::MAX)?.unwrap_or(0);
        let least = self
            .time("THINK_TM_MIN", Nanos(0), THINK_TIME_MAX)?
            .unwrap_or(THINK.0);
        let most = self
            .time("THINK_TM_MAX", Nanos(0), THINK_TIME_MAX)?
            .unwrap_or(THINK.1);
        if every == 0 {
            return Ok(None);
        }
        if least > most {
            let line = ["THINK_TM_MIN", "THINK_TM_MAX"]
                .iter()
                .filter_map(|key| self.find(key))
                .map(|found| found.line);
            let (least, most) = (seconds(least), seconds(most));
            return Err(usage!(
                "line {line}: THINK_TM_MIN={least} is more than THINK_TM_MAX={most}",
                "write the minimum pause as THINK_TM_MIN and the maximum as THINK_TM_MAX; their \
                 defaults are .1 and .5",
                line = line.max().unwrap_or_default()
            ));
        }
        Ok(Some(Think { every, least, most }))
    }

    /// `DBNAME`. It must be a plain name: libpq accepts more, which might contain a password.
    fn database(&self) -> Result<Option<String>, Error> {
        let Some(Assignment { line, value, .. }) = self.find("DBNAME") else {
            return Ok(None);
        };
        let name = value.trim();
        let is_name = name.len() <= 63
            && !name.contains("://")
            && !name.contains(|c: char| c == '=' || c.is_control());
        is_name.then(|| Some(name.to_string())).ok_or_else(|| {
            usage!(
                "line {line}: DBNAME is not a plain database name",
                "write only the name, at most 63 bytes; the server belongs in CONNECT_STRING"
            )
        })
    }

    /// The server's URL and the database, from `CONNECT_STRING` and the name in `DBNAME`.
    fn server(&mut self, database: Option<String>) -> (Option<String>, Option<String>) {
        let Some(given) = self.find("CONNECT_STRING") else {
            return (database.as_deref().map(connect::local), database);
        };
        let connection = connect::connection(&given.value, database.as_deref());
        for remark in &connection.remarks {
            self.note("CONNECT_STRING", remark);
        }
        // Without the URL, the name alone would lead to another server.
        let database = database.filter(|_| connection.url.is_some());
        (connection.url, database)
    }

    /// Adds a remark about `key`, if it is in the file.
    fn note(&mut self, key: &str, remark: &str) {
        if let Some(line) = self
            .given
            .iter()
            .find(|given| given.key == key)
            .map(|given| given.line)
        {
            self.remarks.push((line, format!("{key} {remark}")));
        }
    }

    /// Adds remarks for users of the kit about valid values.
    fn remark(&mut self) {
        let is_setting = |key: &str| KEYS.iter().any(|(known, _)| *known == key);
        let empty: Vec<String> = self
            .given
            .iter()
            .filter(|given| given.value.trim().is_empty())
            .map(|given| given.key.clone())
            .collect();
        for key in empty.iter().filter(|key| is_setting(key)) {
            self.note(key, "is empty: the default is used");
        }
        for (key, meaning) in ORACLE {
            if self.find(key).is_some() {
                let password = if key == "SYSDBA_PASSWD" {
                    format!(" {NO_PASSWORD}")
                } else {
                    String::new()
                };
                self.note(key, &format!("{meaning}{password}"));
            }
        }
        self.remark_shares();
        self.remark_rows();
        if self.find("CREATE_BASE_TABLE").is_some() {
            self.note(
                "CREATE_BASE_TABLE",
                "makes pgio create a table to copy from; it has no effect here, because Rigel \
                 loads each table directly",
            );
        }
    }

    fn remark_shares(&mut self) {
        for key in ["UPDATE_PCT", "SCAN_PCT"] {
            let Some(percent) = self
                .find(key)
                .and_then(|found| found.value.trim().parse::<f64>().ok())
            else {
                continue;
            };
            if self.dialect == ConfDialect::Slob
                && key == "UPDATE_PCT"
                && percent > 50.0
                && percent < 100.0
            {
                self.note(
                    key,
                    &format!(
                        "is {percent}: SLOB refuses 51 to 99; Rigel accepts it, and the mix is \
                         exact"
                    ),
                );
            } else if percent.fract() > 0.0 {
                self.note(
                    key,
                    &format!(
                        "is {percent}: {} accepts whole percentages only; Rigel accepts it, and \
                         the mix is exact",
                        self.dialect.name()
                    ),
                );
            }
        }
    }

    fn remark_rows(&mut self) {
        for key in ["WORK_UNIT", "UPDATE_WORK_UNIT"] {
            let Some(rows) = self.find(key).and_then(|found| digits(found.value.trim())) else {
                continue;
            };
            let (fewer, more) = (rows - 1, rows + 1);
            self.note(
                key,
                &format!(
                    "is {rows}: exactly {rows} rows per operation here; SLOB touches {fewer}, \
                     pgio {more}"
                ),
            );
            // One remark is enough.
            break;
        }
        let blocks = self
            .scale("SCALE")
            .ok()
            .flatten()
            .map(|scale| scale.blocks(SLOB_BLOCK));
        if self.dialect == ConfDialect::Slob
            && blocks.is_some_and(|blocks| blocks < SLOB_BLOCKS_MIN)
        {
            self.note(
                "SCALE",
                "is below SLOB's minimum of 10,000 blocks; Rigel accepts it, but a cache may hold \
                 all of it",
            );
        }
    }
}

/// Parses a text of only digits.
fn digits(text: &str) -> Option<u64> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())?
}

/// Parses a plain decimal number as an integer of its last place: `1.5` with 3 `places` is 1500.
/// `None` with more decimals.
fn fixed(text: &str, places: usize) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    // `.1` and `1.` are numbers, `.` is not.
    if decimals.len() > places || whole.len() + decimals.len() == 0 {
        return None;
    }
    digits(&format!("{whole}{decimals:0<places$}"))
}

/// Formats seconds as in the files: `300`, `0.1`.
fn seconds(time: Nanos) -> String {
    let text = format!("{}.{:09}", time.0 / 1_000_000_000, time.0 % 1_000_000_000);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

#[cfg(test)]
mod tests;
