//! A private server: its options, and how it is made, loaded and limited.

use super::attend::LeftNote;
use super::conf::LOAD_DEGREE;
use super::output::remark;
use super::progress::{Progress, ProgressMode, Total};
use clap::{Args, ValueEnum};
use rigel_database::server::{self, Server};
use rigel_database::{self as sql, Access, LoadEvent, LoadRequest};
use rigel_model::{
    Bytes, Dbms, Error, Finding, FindingName, MIB, PrivateServer, Tables, in_line, shell_path,
    usage,
};
use rigel_verbs::duet::SERVER_BIN;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::AtomicBool;

/// Page cache that a private server may have where it cannot do without: so little that reads are
/// physical.
const PAGE_CACHE: Bytes = Bytes(32 * MIB);

/// Usual size of a private server's buffer cache.
const BUFFER_CACHE: Bytes = Bytes(32 * MIB);

/// Maximum number of connections that load, as for `--load-degree`.
const LOAD_DEGREE_MAX: u32 = 64;

/// A server of Rigel's own, and where.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A private server")]
pub(super) struct PrivateArgs {
    /// Make a private server in this directory, on the storage under test [without a value: .]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", conflicts_with = "resume")]
    pub(super) on: Option<PathBuf>,
    #[command(flatten)]
    pub(super) server: ServerArgs,
}

/// What a server of Rigel's own is made of.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "A private server")]
pub(super) struct ServerArgs {
    /// Kind of server [default: postgres]
    #[arg(long, value_name = "SERVER", value_enum, conflicts_with = "resume")]
    server: Option<ServerKind>,
    /// Directory of the server's programs [default: the newest installed version]
    #[arg(long, value_name = "DIR")]
    server_bin: Option<PathBuf>,
    /// Configuration setting of the server, such as io_method=io_uring; may be repeated
    #[arg(long, value_name = "NAME=VALUE")]
    server_set: Vec<String>,
    /// Size of the server's buffer cache; small, so that reads are physical [default: 32MiB]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    buffer_cache: Option<Bytes>,
}

/// A kind of server that can be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ServerKind {
    /// PostgreSQL
    Postgres,
    /// MariaDB or MySQL
    Mariadb,
}

/// A private server.
pub(super) struct Private {
    /// It is removed with this.
    pub(super) server: Server,
    /// How it is reached.
    pub(super) access: Access,
    /// Number of connections that load.
    degree: u32,
    /// What is doubtful about it.
    pub(super) findings: Vec<Finding>,
    /// The files of its tables, if raw I/O reads them too.
    pub(super) files: Vec<PathBuf>,
    /// Dropped after the server has ended.
    _left: LeftNote,
}

impl Drop for Private {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            remark(&format!("{error}\n"));
        }
    }
}

impl Private {
    /// Makes one without tables, after [`refuse_full`].
    pub(super) fn start(
        dbms: Dbms,
        directory: &Path,
        made: &PrivateServer,
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        tell_leftovers(directory);
        let degree = made.load_degree.clamp(1, LOAD_DEGREE_MAX);
        let request = server::ServerRequest {
            dbms,
            directory,
            bin: made.bin.as_deref(),
            buffer_cache: made.buffer_cache,
            sessions: made.sessions.max(degree),
            settings: &made.settings,
        };
        let left = LeftNote::new(format!(
            "what is left of a private server in '{}': `rigel sql clean {}` ends and removes it\n",
            in_line(&directory.to_string_lossy()),
            shell_path(directory)
        ));
        let server = Server::start(&request, stop)?;
        let elsewhere = server.detour().map_or_else(String::new, |detour| {
            format!(
                ", on the same filesystem as {}: user {} cannot pass {}",
                in_line(&detour.named.to_string_lossy()),
                detour.user,
                in_line(&detour.closed.to_string_lossy())
            )
        });
        remark(&format!(
            "a private {} in {}{elsewhere}\n",
            server.version(),
            server.directory().display()
        ));
        Ok(Self {
            access: Access::parse([server.url()], &|_| None)?,
            server,
            degree,
            findings: Vec::new(),
            files: Vec::new(),
            _left: left,
        })
    }

    /// Ends the server and removes it, once.
    pub(super) fn end(&mut self) -> Result<(), Error> {
        self.server
            .end(&mut |line| remark(&format!("{}\n", in_line(line))))
    }

    /// Loads its tables, and then limits the page cache of a server that reads through it.
    pub(super) fn load(
        &mut self,
        tables: Tables,
        way: ProgressMode,
        stop: &AtomicBool,
    ) -> Result<(), Error> {
        let request = LoadRequest {
            tables,
            degree: self.degree,
            tablespace: None,
        };
        load_tables(&self.access, &request, way, stop)?;
        if !self.server.is_direct() {
            self.findings.extend(limited(&mut self.server, tables));
        }
        Ok(())
    }

    /// Lets raw I/O and file calls of the server read the files of its tables: writes all that was
    /// loaded to them, so that their pages can be dropped, and limits the page cache of a
    /// server that does without it otherwise.
    pub(super) fn share_files(&mut self, tables: Tables) -> Result<(), Error> {
        self.files = sql::files(&self.access, tables)?;
        if self.server.is_direct() {
            self.findings.push(layer_3_limited(&mut self.server));
        }
        Ok(())
    }
}

/// Layer 3 reads through the page cache whatever the server does otherwise: it gets little of it.
fn layer_3_limited(server: &mut Server) -> Finding {
    match server.limit_page_cache(PAGE_CACHE) {
        Ok(limit) => Finding::note(
            FindingName::MemoryLimit,
            format!(
                "layer 3 reads through the page cache; the server's processes are limited to \
                 {limit} of memory in total, cache included"
            ),
        ),
        Err(why) => Finding::warning(
            FindingName::PageCacheUnlimited,
            format!(
                "layer 3 reads through the page cache, and the server's memory could not be \
                 limited: {why}"
            ),
            format!(
                "{}give a --scale several times as large as the memory",
                as_root()
            ),
        ),
    }
}

/// The part of a hint that is no use to root.
fn as_root() -> &'static str {
    if rustix::process::geteuid().is_root() {
        ""
    } else {
        "run as root, or "
    }
}

/// Says which servers a killed Rigel left in the directory: they take its space.
fn tell_leftovers(directory: &Path) {
    // A directory that cannot be listed is refused for what it is elsewhere.
    for left in server::leftovers(directory).unwrap_or_default() {
        remark(&format!(
            "a {} server of rigel {}, which no longer runs, takes {} in {}; `rigel sql clean {}` \
             removes it\n",
            left.dbms,
            left.rigel,
            left.bytes,
            in_line(&left.folder.to_string_lossy()),
            shell_path(directory)
        ));
    }
}

/// A server that reads through the page cache gets little of it.
fn limited(server: &mut Server, tables: Tables) -> Vec<Finding> {
    let version = server.version().to_string();
    match server.limit_page_cache(PAGE_CACHE) {
        Ok(limit) if tables.bytes() <= limit => {
            let finding = Finding::warning(
                FindingName::PageCache,
                format!(
                    "{version} reads through the page cache; its processes may use {limit} of memory, and \
                     the tables have {}: memory can hold all of them",
                    tables.bytes()
                ),
                format!("give a --scale several times as large as {limit}"),
            );
            remark(&format!(
                "rigel: {}\n  hint: {}\n",
                finding.what, finding.hint
            ));
            vec![finding]
        }
        Ok(limit) => vec![Finding::note(
            FindingName::MemoryLimit,
            format!(
                "{version} reads through the page cache; its processes are limited to {limit} of \
                 memory in total, cache included"
            ),
        )],
        Err(why) => vec![Finding::warning(
            FindingName::PageCacheUnlimited,
            format!(
                "{version} reads through the page cache, and its memory could not be limited: \
                 {why}"
            ),
            format!(
                "{}install PostgreSQL 16 or newer, or load tables several times as large as the \
                 memory",
                as_root()
            ),
        )],
    }
}

/// The tables of all servers, their logs and what loading needs beside must fit.
pub(super) fn refuse_full(
    directory: &Path,
    tables: Tables,
    updates: bool,
    servers: usize,
) -> Result<(), Error> {
    let Ok(facts) = rustix::fs::statvfs(directory) else {
        return Ok(());
    };
    let free = Bytes(facts.f_bavail * facts.f_frsize);
    let needed = tables.bytes().0.saturating_add(tables.scanned_bytes().0);
    // A tenth for the index, the log that loading makes, room for an empty server, and the log that
    // updates may make: the server keeps up to 4 GB of it.
    let log = if updates {
        4096 * MIB
    } else {
        (needed / 4).min(4096 * MIB)
    };
    let needed = Bytes(
        needed
            .saturating_add(needed / 10)
            .saturating_add(log + 512 * MIB)
            .saturating_mul(servers as u64),
    );
    if free < needed {
        return Err(usage!(
            "'{directory}' has {free} free, but the tables and {server} need {needed}",
            "give a smaller --scale, or another directory",
            directory = directory.display(),
            server = match servers {
                1 => "the server".to_string(),
                several => format!("the {several} servers"),
            }
        ));
    }
    Ok(())
}

impl ServerArgs {
    /// Which system.
    pub(super) fn dbms(&self) -> Dbms {
        match self.server {
            None | Some(ServerKind::Postgres) => Dbms::Postgres,
            Some(ServerKind::Mariadb) => Dbms::Mysql,
        }
    }

    /// The same with one more setting, or with the programs in another directory: a server for an arm of
    /// a duet.
    pub(super) fn varied(&self, name: &str, value: &str) -> Self {
        let mut varied = self.clone();
        if name == SERVER_BIN {
            varied.server_bin = Some(value.into());
        } else {
            varied.server_set.push(format!("{name}={value}"));
        }
        varied
    }

    /// True if any of these options is given.
    pub(super) fn is_given(&self) -> bool {
        self.server.is_some()
            || self.buffer_cache.is_some()
            || self.server_bin.is_some()
            || !self.server_set.is_empty()
    }

    /// The refusal of these options where no private server is made.
    pub(super) fn without_server() -> Error {
        usage!(
            "--server, --server-bin, --server-set and --buffer-cache are for a private server, and --on is missing",
            "add --on DIR, or leave them out"
        )
    }

    /// How a server with these options is made, for this number of sessions.
    pub(super) fn made(
        &self,
        sessions: u32,
        load_degree: Option<u32>,
    ) -> Result<PrivateServer, Error> {
        Ok(PrivateServer {
            bin: self.server_bin.clone(),
            buffer_cache: self.buffer_cache.unwrap_or(BUFFER_CACHE),
            settings: self.settings()?,
            sessions,
            load_degree: load_degree.unwrap_or(LOAD_DEGREE),
            device: None,
        })
    }

    /// True if a resumed run's server is made with the programs and settings that these options
    /// name. Whoever can write the journal may have replaced those in it, and a setting of a
    /// server may contain a command.
    pub(super) fn confirm(&self, made: &mut PrivateServer) -> Result<bool, Error> {
        let is_same = (made.bin.is_none() || self.server_bin.is_some())
            && made.settings == self.settings()?;
        if is_same {
            made.bin.clone_from(&self.server_bin);
        }
        Ok(is_same)
    }

    fn settings(&self) -> Result<Vec<(String, String)>, Error> {
        let pair = |text: &String| {
            text.split_once('=')
                .map(|(name, value)| (name.trim().to_string(), value.trim().to_string()))
                .ok_or_else(|| {
                    usage!(
                        "--server-set '{text}' is not a setting",
                        "write NAME=VALUE, such as io_method=sync"
                    )
                })
        };
        self.server_set.iter().map(pair).collect()
    }
}

/// Loads with progress, and tells what came of it.
pub(super) fn load_tables(
    access: &Access,
    request: &LoadRequest,
    way: ProgressMode,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let block = u64::from(request.tables.block);
    let progress = Mutex::new(Progress::new(
        &format!("loading {}", access.servers[0]),
        Total::Known(1),
        0.0,
        way,
    ));
    let listen = |event| {
        let mut progress = progress
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        match event {
            LoadEvent::Rows { done, of } => {
                progress.fill("loading", Bytes(done * block), Bytes(of * block));
            }
            LoadEvent::Indexing => progress.say("creating the indexes"),
            LoadEvent::Verifying => progress.say("checking rows, blocks and order"),
        }
    };
    let loaded = sql::load(access, request, stop, &listen);
    progress
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
        .finish();
    let loaded = loaded?;
    let before = match loaded.rows_before {
        0 => String::new(),
        rows => format!(", {rows} of them by an earlier load"),
    };
    remark(&format!(
        "loaded: {} rows{before} in {} blocks; correlation of key and position {:.3}\n",
        loaded.rows, loaded.blocks, loaded.correlation
    ));
    Ok(())
}
