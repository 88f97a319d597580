//! The work of database sessions and their tables: from options, and from the files of SLOB's and
//! pgio's users.

use super::conf::{self, Conf, ConfDialect, HotSpotSetting, Settings, TableSize};
use super::database;
use super::measuring::MeasuringArgs;
use super::membership::Membership;
use super::output::remark;
use clap::{Args, ValueEnum};
use rigel_database::Access;
use rigel_model::files;
use rigel_model::{
    self as model, Bytes, Dbms, Error, MIB, Nanos, Ratio, ReadWay, Redo, SqlWork, Tables, Think,
    in_line, usage,
};
use std::path::PathBuf;

/// Default number of sessions: enough to keep a local disk busy, few enough for a small server.
pub(super) const SESSIONS: u32 = 16;

/// Maximum number of operations in flight on a connection. The answers to all of them fit the
/// buffers of a socket (208 KiB by default, of which a small message takes 768 bytes): so a server
/// never has to wait until we read, while we wait until it reads.
const PIPELINE_MAX: i64 = 128;

/// What the sessions do.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Sessions of a database")]
pub(super) struct WorkArgs {
    /// Read these settings from a slob.conf or pgio.conf; options override them
    #[arg(long, value_name = "FILE")]
    conf: Option<PathBuf>,
    /// Rows, and so blocks, per read operation [default: 64]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    work_unit: Option<u32>,
    /// Rows per update operation [default: as --work-unit]
    #[arg(long, value_name = "ROWS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    update_work_unit: Option<u32>,
    /// Share of operations that update and commit, such as 10% [default: 0%]
    #[arg(long, value_name = "SHARE")]
    update: Option<Ratio>,
    /// Share of reads that scan a whole table [default: 0%]
    #[arg(long, value_name = "SHARE")]
    scan: Option<Ratio>,
    /// PostgreSQL: name all rows of an operation in one list, so that the server reads their blocks
    /// ahead (bitmap scan), instead of one after the other by index
    #[arg(long)]
    prefetch: bool,
    /// PostgreSQL: send up to N operations on a connection before the answer to the first has come;
    /// no application does this unless it pipelines too [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=PIPELINE_MAX))]
    pipeline: Option<u32>,
    /// How much of a row an update changes [default: lite]
    #[arg(long, value_name = "HOW", value_enum)]
    redo_stress: Option<RedoStress>,
    /// Direct every Nth operation to a part of its table, by offset and size, such as 16MiB+8MiB/3
    #[arg(long, value_name = "OFFSET+SIZE/N")]
    hot_spot: Option<String>,
    /// Direct every Nth operation to the first table
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    hot_schema: Option<u32>,
    /// Pause after every Nth operation, such as 100ms..500ms/10
    #[arg(long, value_name = "MIN..MAX/N")]
    think: Option<String>,
    /// Timeout of a statement at the server; the operation then counts as failed
    #[arg(long, value_name = "TIME")]
    statement_timeout: Option<Nanos>,
}

/// How much of a row an update changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum RedoStress {
    /// Two of nineteen columns
    Lite,
    /// All nineteen columns
    Heavy,
}

/// Which tables, and by how many connections they are loaded.
#[derive(Debug, Clone, Default, PartialEq, Args)]
#[command(next_help_heading = "Tables")]
pub(super) struct TablesArgs {
    /// Number of tables, each with its own sessions [default: 1]
    #[arg(short = 's', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    pub(super) schemas: Option<u32>,
    /// Size of each table, in blocks or in bytes such as 1GiB [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    scale: Option<String>,
    /// Size of each table for scans, in blocks or bytes [default: 1MiB]
    #[arg(long, value_name = "SIZE")]
    scan_table: Option<String>,
    /// Number of connections that load in parallel [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    load_degree: Option<u32>,
}

impl WorkArgs {
    /// Only a configuration file, without other options.
    pub(super) fn of_file(conf: Option<PathBuf>) -> Self {
        Self {
            conf,
            ..Self::default()
        }
    }

    /// The combined settings of file and options. Prints remarks that users of the file's original
    /// tool should know.
    pub(super) fn settings(&self) -> Result<Settings, Error> {
        let asked = Settings {
            updates: self.update,
            scans: self.scan,
            work_unit: self.work_unit,
            update_work_unit: self.update_work_unit,
            redo: self.redo_stress.map(|how| {
                if how == RedoStress::Heavy {
                    Redo::Heavy
                } else {
                    Redo::Lite
                }
            }),
            way: self.prefetch.then_some(ReadWay::Prefetch),
            pipeline: self.pipeline,
            hot_spot: self.hot_spot.as_deref().map(hot_spot).transpose()?,
            hot_schema_every: self.hot_schema,
            think: self.think.as_deref().map(think).transpose()?,
            ..Settings::default()
        };
        let (Some(path), Some(file)) = (&self.conf, self.file()?) else {
            return Ok(asked);
        };
        file.remarks.iter().for_each(|what| {
            remark(&format!(
                "{}: {}\n",
                in_line(&path.to_string_lossy()),
                in_line(what)
            ));
        });
        let defaults = match file.dialect {
            ConfDialect::Slob => conf::slob_defaults(),
            ConfDialect::Pgio => conf::pgio_defaults(),
        };
        Ok(asked.or(file.settings).or(defaults))
    }

    /// The file, if the user gave one.
    fn file(&self) -> Result<Option<Conf>, Error> {
        let Some(path) = &self.conf else {
            return Ok(None);
        };
        let text = files::read_text(path, files::HAND_WRITTEN_MAX).map_err(|error| {
            usage!(
                "'{path}' cannot be read: {error}",
                "give a slob.conf or a pgio.conf",
                path = path.display()
            )
        })?;
        let in_file = |error: Error| match error {
            Error::Usage { what, hint } => {
                usage!("{path}: {what}", hint, path = path.display())
            }
            failed @ Error::Failed { .. } => failed,
        };
        conf::parse(&text).map(Some).map_err(in_file)
    }

    /// The settings of the file, without its tool's defaults and without printing remarks; empty if
    /// there is no file.
    pub(super) fn stated(&self) -> Result<Settings, Error> {
        Ok(self.file()?.map(|file| file.settings).unwrap_or_default())
    }

    /// True if sessions pause.
    pub(super) fn has_pauses(&self) -> bool {
        self.think.is_some() || self.stated().is_ok_and(|settings| settings.think.is_some())
    }

    /// The time after which the server cancels a statement.
    pub(super) fn statement_timeout(&self) -> Option<Nanos> {
        self.statement_timeout
    }
}

/// An option, whether it is given, and what there is in its place.
pub(super) type Raw<'a> = (&'a str, bool, &'a str);

/// Refuses options that are for files and devices where a database is measured: those that all verbs
/// have, and the verb's `own`.
pub(super) fn refuse_raw(args: &MeasuringArgs, own: &[Raw<'_>], url: &str) -> Result<(), Error> {
    let shared = [
        ("--engine", args.engine.is_some(), "the database's own I/O"),
        ("--buffered", args.buffered, "the database's own setting"),
        ("--verify", args.blocks.verify, "checksums of its own"),
        (
            "--workers",
            args.workers.is_some(),
            "sessions have threads of their own",
        ),
    ];
    match own.iter().chain(&shared).find(|(_, given, _)| *given) {
        Some((option, _, instead)) => Err(usage!(
            "{option} is for files and devices, and '{url}' is a database",
            "leave it out; a database has {instead} instead"
        )),
        None => Ok(()),
    }
}

/// Sessions on the tables of a database, for a verb that measures files and devices, too.
pub(super) struct OnDatabase {
    /// How the database is reached.
    pub(super) access: Access,
    /// Its tables.
    pub(super) tables: Tables,
    /// What the sessions do.
    pub(super) work: SqlWork,
    /// Their usual number.
    pub(super) sessions: u32,
}

impl WorkArgs {
    /// Opens the databases at `urls`. `own` are the verb's options for files and devices; `has_rate`
    /// is true if the load is offered.
    pub(super) fn on_database(
        &self,
        urls: &[String],
        args: &MeasuringArgs,
        membership: &Membership,
        own: &[Raw<'_>],
        has_rate: bool,
    ) -> Result<OnDatabase, Error> {
        refuse_raw(args, own, &urls[0])?;
        if has_rate && self.has_pauses() {
            return Err(rate_with_pauses());
        }
        let access = database::access(urls, &args.password, membership)?;
        let settings = self.settings()?;
        refuse_foreign(&settings, access.dbms())?;
        let tables = database::tables_of(&access, membership)?;
        Ok(OnDatabase {
            work: work(&settings, tables)?,
            sessions: sessions(&settings, tables),
            access,
            tables,
        })
    }
}

/// Offered operations wait for a session that pauses.
pub(super) fn rate_with_pauses() -> Error {
    usage!(
        "--rate and --think exclude each other: a pause would count as response time",
        "leave one of them out"
    )
}

/// The work of the sessions on `tables`.
pub(super) fn work(settings: &Settings, tables: Tables) -> Result<SqlWork, Error> {
    let read_rows = settings.work_unit.unwrap_or(64);
    let block = u64::from(tables.block);
    let hot_spot = settings.hot_spot.map(|spot| model::HotSpot {
        every: spot.every,
        first: spot.offset.0 / block,
        rows: spot.bytes.0 / block,
    });
    let work = SqlWork {
        read_rows,
        update_rows: settings.update_work_unit.unwrap_or(read_rows),
        updates: settings.updates.unwrap_or(Ratio::ZERO),
        scans: settings.scans.unwrap_or(Ratio::ZERO),
        redo: settings.redo.unwrap_or_default(),
        hot_spot,
        hot_schema_every: settings.hot_schema_every,
        think: settings.think,
        way: settings.way.unwrap_or_default(),
        pipeline: settings.pipeline.unwrap_or(1),
        ..SqlWork::reads(tables)
    };
    work.check()?;
    Ok(work)
}

/// Refuses settings that only sessions of `PostgreSQL` have.
pub(super) fn refuse_foreign(settings: &Settings, dbms: Dbms) -> Result<(), Error> {
    if dbms == Dbms::Postgres {
        return Ok(());
    }
    let asked = [
        (
            settings.way.is_some(),
            "--prefetch is for PostgreSQL",
            "leave it out: InnoDB reads the blocks of such a list one after the other too",
        ),
        (
            settings.pipeline.is_some_and(|pipeline| pipeline > 1),
            "--pipeline is for PostgreSQL: the protocol of MySQL and MariaDB has one operation at a \
             time on a connection",
            "leave it out, or use more sessions (-t)",
        ),
    ];
    match asked.into_iter().find(|(is_asked, ..)| *is_asked) {
        Some((_, what, hint)) => Err(Error::usage(what, hint)),
        None => Ok(()),
    }
}

/// Total number of sessions on these tables.
pub(super) fn sessions(settings: &Settings, tables: Tables) -> u32 {
    match settings.threads_per_schema {
        Some(threads) => threads.saturating_mul(tables.schemas),
        None => SESSIONS.max(tables.schemas),
    }
}

impl TablesArgs {
    /// One table of the size given by `--scale`.
    pub(super) fn of_scale(scale: Option<&str>) -> Self {
        Self {
            scale: scale.map(String::from),
            ..Self::default()
        }
    }

    /// The options, completed by `settings`.
    pub(super) fn or(&self, settings: Settings) -> Result<Settings, Error> {
        let asked = Settings {
            schemas: self.schemas,
            scale: self
                .scale
                .as_deref()
                .map(|text| scale("--scale", text))
                .transpose()?,
            scan_table: self
                .scan_table
                .as_deref()
                .map(|text| scale("--scan-table", text))
                .transpose()?,
            load_degree: self.load_degree,
            ..Settings::default()
        };
        Ok(asked.or(settings))
    }
}

impl TablesArgs {
    /// Refuses requested sizes that differ from those of the existing tables. Sizes that only a
    /// file `stated` cause a remark.
    pub(super) fn refuse_others(&self, stated: &Settings, there: Tables) -> Result<(), Error> {
        let blocks = |scale: Option<TableSize>| scale.map(|scale| scale.blocks(there.block));
        let asked = self.or(Settings::default())?;
        let sizes = |settings: &Settings| {
            [
                settings.schemas.map(u64::from),
                blocks(settings.scale),
                blocks(settings.scan_table),
            ]
        };
        let loaded = [u64::from(there.schemas), there.scale, there.scan_blocks];
        let names = ["tables", "blocks in each", "blocks to scan"];
        for ((name, loaded), (asked, stated)) in names
            .into_iter()
            .zip(loaded)
            .zip(sizes(&asked).into_iter().zip(sizes(stated)))
        {
            if let Some(wanted) = asked.filter(|wanted| *wanted != loaded) {
                return Err(usage!(
                    "{wanted} {name} are requested, but {loaded} are loaded",
                    "leave the option out, or create the tables again: rigel sql drop, then rigel \
                     sql load"
                ));
            }
            if let Some(wanted) = stated.filter(|wanted| asked.is_none() && *wanted != loaded) {
                remark(&format!(
                    "the file says {wanted} {name}; {loaded} are loaded and used\n"
                ));
            }
        }
        Ok(())
    }
}

/// The requested tables.
pub(super) fn tables(settings: &Settings, dbms: Dbms) -> Result<Tables, Error> {
    let block = match dbms {
        Dbms::Postgres => 8192,
        Dbms::Mysql => 16_384,
    };
    tables_in_blocks(settings, block)
}

/// The requested tables, whose blocks have `block` bytes.
pub(super) fn tables_in_blocks(settings: &Settings, block: u32) -> Result<Tables, Error> {
    let size = |scale: Option<TableSize>, default: u64| {
        scale
            .unwrap_or(TableSize::Bytes(Bytes(default)))
            .blocks(block)
    };
    let tables = Tables {
        schemas: settings.schemas.unwrap_or(1),
        scale: size(settings.scale, 1024 * MIB),
        scan_blocks: size(settings.scan_table, MIB),
        block,
    };
    for (option, blocks, least) in [
        ("--scale", tables.scale, 1000),
        ("--scan-table", tables.scan_blocks, 1),
    ] {
        if blocks < least {
            return Err(usage!(
                "{option} is {blocks} blocks of {block}",
                "give at least {least}: blocks, or bytes such as 1GiB",
                block = Bytes(block.into())
            ));
        }
    }
    Ok(tables)
}

/// Parses `131072`, or `1GiB`.
fn scale(option: &str, text: &str) -> Result<TableSize, Error> {
    if let Ok(blocks) = text.parse() {
        return Ok(TableSize::Blocks(blocks));
    }
    let wrong = |_| {
        usage!(
            "{option} '{text}' is not a size",
            "give a number of blocks, such as 131072, or bytes, such as 1GiB"
        )
    };
    text.parse().map(TableSize::Bytes).map_err(wrong)
}

/// Parses `16MiB+8MiB/3`.
fn hot_spot(text: &str) -> Result<HotSpotSetting, Error> {
    let parts = || {
        let (place, every) = text.rsplit_once('/')?;
        let (offset, size) = place.split_once('+')?;
        let every = every.parse().ok().filter(|every| *every > 0)?;
        Some(HotSpotSetting {
            every,
            offset: offset.parse().ok()?,
            bytes: size.parse().ok()?,
        })
    };
    parts().ok_or_else(|| {
        usage!(
            "--hot-spot '{text}' is not a hot spot",
            "write OFFSET+SIZE/N, such as 16MiB+8MiB/3 for every third operation"
        )
    })
}

/// Parses `100ms..500ms/10`.
fn think(text: &str) -> Result<Think, Error> {
    let parts = || {
        let (times, every) = text.rsplit_once('/')?;
        let (least, most) = times.split_once("..").unwrap_or((times, times));
        let every = every.parse().ok().filter(|every| *every > 0)?;
        let think = Think {
            every,
            least: least.parse().ok()?,
            most: most.parse().ok()?,
        };
        (think.least <= think.most).then_some(think)
    };
    parts().ok_or_else(|| {
        usage!(
            "--think '{text}' is not a pause",
            "write MIN..MAX/N, such as 100ms..500ms/10 for a pause after every tenth operation"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLES: Tables = Tables {
        schemas: 2,
        scale: 10_000,
        scan_blocks: 128,
        block: 8192,
    };

    #[test]
    fn options_are_read_and_refused_by_name() {
        let spot = hot_spot("16MiB+8MiB/3").unwrap();
        assert_eq!(
            (spot.offset, spot.bytes, spot.every),
            (Bytes(16 * MIB), Bytes(8 * MIB), 3)
        );
        assert!(hot_spot("16MiB+8MiB").is_err() && hot_spot("16MiB+8MiB/0").is_err());
        let pause = think("100ms..500ms/10").unwrap();
        assert_eq!(
            (pause.least, pause.most, pause.every),
            (Nanos::from_millis(100), Nanos::from_millis(500), 10)
        );
        assert!(think("500ms..100ms/1").is_err() && think("1s").is_err());
        assert_eq!(scale("--scale", "20000"), Ok(TableSize::Blocks(20_000)));
        assert!(
            scale("--scale", "many")
                .unwrap_err()
                .to_string()
                .contains("--scale 'many'")
        );
    }

    #[test]
    fn work_that_does_not_fit_its_tables_is_refused() {
        let settings = |rows| Settings {
            work_unit: Some(rows),
            ..Settings::default()
        };
        assert!(work(&settings(10_000), TABLES).is_ok());
        assert!(work(&settings(10_001), TABLES).is_err());
        let spot = |offset: u64, bytes: u64| Settings {
            hot_spot: Some(HotSpotSetting {
                every: 3,
                offset: Bytes(offset * MIB),
                bytes: Bytes(bytes * MIB),
            }),
            ..Settings::default()
        };
        // Ten thousand blocks are 78 MiB.
        assert_eq!(
            work(&spot(16, 8), TABLES).unwrap().hot_spot.unwrap().rows,
            1024
        );
        assert!(work(&spot(76, 8), TABLES).is_err());
        let tiny = Settings {
            scale: Some(TableSize::Blocks(10)),
            ..Settings::default()
        };
        assert!(
            tables(&tiny, Dbms::Postgres)
                .unwrap_err()
                .to_string()
                .contains("--scale is 10 blocks")
        );
    }

    #[test]
    fn sessions_are_tables_times_threads() {
        let threads = Settings {
            threads_per_schema: Some(8),
            ..Settings::default()
        };
        assert_eq!(
            (
                sessions(&threads, TABLES),
                sessions(&Settings::default(), TABLES)
            ),
            (16, 16)
        );
    }
}
