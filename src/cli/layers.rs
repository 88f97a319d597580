//! `rigel layers`: the same blocks by raw I/O and through a database, in one run: where does the I/O go?

use super::measuring;
use super::outcome::OutcomeArgs;
use super::progress::Progress;
use super::results::Results;
use super::sql::{PAGE_CACHE, Private, PrivateArgs, ServerArgs};
use super::sql_args::{self, TablesArgs};
use super::{conf::Settings, page, ranges};
use crate::engine::sql::{self, Access};
use crate::model::{
    Coordinates, Dbms, Error, Finding, FindingName, Invocation, Layer, LayersRequest, Layout, Loads, Nanos, Request,
    RunOptions, SqlTarget, SqlWork, Tables, Target, WarmUp,
};
use crate::record::journal::{self, EngineChoice, Journal, Run};
use crate::record::{End, PointRecord};
use crate::report;
use crate::run::{Bench, BenchRequest, Event, Listen, Next, SqlRequest};
use clap::Args;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most sessions at the same time.
const SESSIONS_MAX: u32 = 1000;

/// Read the same blocks by raw I/O and through a database, to show the cost of each layer
///
/// Makes a private `PostgreSQL` server in the directory, loads a table, and reads its blocks through four layers in
/// turn: raw asynchronous I/O, raw synchronous I/O, the database without its buffer cache, and the database with
/// it. Removes the server afterwards.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 complete, 1 failed or incomplete, 2 wrong usage.")]
pub(super) struct LayersArgs {
    /// Directory on the storage under test
    #[arg(value_name = "DIR", default_value = ".")]
    directory: PathBuf,
    /// Number of outstanding I/Os, threads or sessions; a range or list makes one table per number
    #[arg(long, value_name = "RANGE", default_value = "16")]
    sessions: String,
    /// Number of times that each layer is measured, in turn
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Measured time of each layer in each round
    #[arg(long, value_name = "TIME", default_value = "8s")]
    point_time: Nanos,
    /// Maximum warm-up of each measurement; it ends earlier when throughput is steady
    #[arg(long, value_name = "TIME", default_value = "3s")]
    warm_up: Nanos,
    /// Size of the table, in blocks or in bytes such as 1GiB [default: 1GiB]
    #[arg(long, value_name = "SIZE")]
    scale: Option<String>,
    /// Rows, and so blocks, that one statement reads
    #[arg(long, value_name = "ROWS", default_value_t = 64)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    work_unit: u32,
    /// Also read one row per statement, to show the cost of a statement
    #[arg(long)]
    single: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten, next_help_heading = "Results")]
    outcome: OutcomeArgs,
}

/// Measures, and shows the table.
pub(super) fn run(args: &LayersArgs) -> Result<u8, Error> {
    // All that can be wrong with the request is found before anything is made.
    let request = args.request()?;
    let results = Results::begin(args.outcome.out.as_deref(), "layers")?;
    let stop = measuring::stop_flag()?;
    let expected = request.points_expected();
    let private = PrivateArgs { on: Some(args.directory.clone()), server: args.server.clone() };
    let tables = request.work.tables;
    let most = request.sessions.iter().copied().max().unwrap_or(1);
    let way = args.outcome.progress();
    let mut private = Private::make(&private, tables, most, None, way, &stop)?;
    // After this the files hold all that was loaded, so that their pages can be dropped.
    let files = sql::files(&private.access, tables)?;
    if private.server.is_direct() {
        let finding = limited(&mut private);
        private.findings.push(finding);
    }
    let seconds = request.point_seconds();
    let mut job = Job {
        directory: &args.directory,
        results,
        seed: args.outcome.seed(),
        access: private.access.clone(),
        findings: private.findings.clone(),
        files,
    };
    let title = format!("layers {}", args.directory.display());
    let progress = RefCell::new(Progress::new(&title, expected, seconds, way));
    let mut listen = |event: Event| progress.borrow_mut().hear(&event);
    let measured = job.measure(request, &stop, &mut listen);
    progress.borrow().finish();
    let removed = private.server.stop();
    measured?;
    removed?;
    let run = journal::read(job.results.directory())?;
    page::show(&run, &report::result(&run), job.results.directory(), args.outcome.json, "`rigel report`");
    refuse_incomplete(&run, expected)?;
    Ok(0)
}

impl LayersArgs {
    fn request(&self) -> Result<LayersRequest, Error> {
        if self.server.dbms() == Dbms::Mysql {
            return Err(Error::usage(
                "MariaDB and MySQL have no function that reads one block of a file, which is the third layer",
                "leave --server out: PostgreSQL has one; or use rigel sql run --server mariadb",
            ));
        }
        if self.point_time < Nanos::from_millis(500) {
            return Err(Error::usage(format!("--point-time {} is too short", self.point_time), "give 1s or more"));
        }
        let sessions = match ranges::depths("--sessions", &self.sessions)? {
            Loads::Depths(sessions) => sessions,
            Loads::Rates(_) | Loads::Percents(_) => Vec::new(),
        };
        if let Some(most) = sessions.iter().find(|sessions| **sessions > SESSIONS_MAX) {
            return Err(Error::usage(
                format!("--sessions {most} is more than a private server allows"),
                format!("give at most {SESSIONS_MAX}"),
            ));
        }
        let sizes = TablesArgs::of_scale(self.scale.as_deref());
        let settings = Settings { work_unit: Some(self.work_unit), ..Settings::default() };
        let settings = sizes.or(settings)?;
        let tables: Tables = sql_args::tables(&settings, self.server.dbms())?;
        let work: SqlWork = sql_args::work(&settings, tables)?;
        Ok(LayersRequest {
            sessions,
            rounds: self.rounds,
            point_time: self.point_time,
            warm_up: WarmUp { least: Nanos::from_millis(500).min(self.warm_up), most: self.warm_up },
            work,
            single: self.single,
            asynchronous: "auto".into(),
        })
    }
}

/// Layer 3 reads through the page cache whatever the server does otherwise: it gets little of it.
fn limited(private: &mut Private) -> Finding {
    match private.server.limit_page_cache(PAGE_CACHE) {
        Ok(limit) => Finding::note(
            FindingName::MemoryLimit,
            format!(
                "layer 3 reads through the page cache; the server's processes are limited to {limit} of memory in \
                 total, cache included"
            ),
        ),
        Err(why) => Finding::warning(
            FindingName::PageCacheUnlimited,
            format!("layer 3 reads through the page cache, and the server's memory could not be limited: {why}"),
            "run as root, or give a --scale several times as large as the memory",
        ),
    }
}

/// A server that is ready, and where the record goes.
struct Job<'a> {
    directory: &'a Path,
    results: Results,
    seed: u64,
    access: Access,
    findings: Vec<Finding>,
    files: Vec<PathBuf>,
}

impl Job<'_> {
    /// Measures every point into the journal. Ends early when `stop` is set.
    fn measure(&mut self, mut request: LayersRequest, stop: &AtomicBool, listen: &mut Listen) -> Result<(), Error> {
        let layers = request.layers();
        let benches: Vec<(Layer, Bench)> = layers
            .iter()
            .map(|layer| Ok((*layer, self.bench(*layer, &request, stop, listen)?)))
            .collect::<Result<_, Error>>()?;
        let of = |layer: Layer| {
            let bench = benches.iter().find(|(of, _)| *of == layer).map(|(_, bench)| bench);
            bench.ok_or_else(|| Error::failed(format!("layer {} is not ready", layer.number()), ""))
        };
        request.asynchronous = of(Layer::Async)?.engine_name().into();
        let header = self.header(&request, &benches)?;
        self.results.claim()?;
        let mut journal = Journal::create(self.results.directory(), &header)?;
        let (mut records, mut summaries) = (Vec::<PointRecord>::new(), Vec::new());
        while !stop.load(Ordering::Relaxed)
            && let Some(point) = request.next(self.seed, &summaries)
        {
            let Coordinates::Layer { layer, .. } = point.coordinates else { break };
            let mut once = Some(Next { warming: None, point });
            let before = records.len();
            records = of(layer)?.measure(&mut journal, records, &mut |_| once.take(), stop, listen)?;
            // A point that left no record is not asked for twice.
            let Some(record) = records.get(before) else { break };
            summaries.push(crate::analyse::summarise(record));
        }
        Ok(())
    }

    /// What measures a layer, ready.
    fn bench(
        &self,
        layer: Layer,
        request: &LayersRequest,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<Bench, Error> {
        let work = request.work_of(layer);
        let (target, engine) = match layer {
            Layer::Async => (self.raw(), "auto"),
            Layer::Sync => (self.raw(), "psync"),
            Layer::File | Layer::Row | Layer::Single => (self.database(), Dbms::Postgres.name()),
        };
        let block = u64::from(request.block());
        let asked = BenchRequest {
            target: &target,
            engine: &EngineChoice { name: engine.into(), buffered: false },
            grain: block,
            largest: block,
            writes: false,
            destroy: &[],
            allow_holes: false,
            workers: 1,
            seed: self.seed,
            sql: work.map(|work| SqlRequest { access: &self.access, work, statement_timeout: None }),
        };
        Bench::prepare(&asked, |_| request.extremes_of(layer, self.seed), stop, listen)
    }

    fn raw(&self) -> Target {
        Target::Paths { members: self.files.clone(), layout: Layout::Concat }
    }

    fn database(&self) -> Target {
        let urls = self.access.servers.iter().map(ToString::to_string).collect();
        let private_in = Some(self.directory.display().to_string());
        Target::Sql(SqlTarget { dbms: Dbms::Postgres, urls, private_in })
    }

    /// The first line of the journal: the database is its target, and the files that raw I/O reads are its members.
    fn header(&self, request: &LayersRequest, benches: &[(Layer, Bench)]) -> Result<journal::Header, Error> {
        let of = |layer: Layer| benches.iter().find(|(of, _)| *of == layer).map(|(_, bench)| bench);
        let both = of(Layer::Row).zip(of(Layer::Async));
        let (row, raw) = both.ok_or_else(|| Error::failed("not all layers are ready", ""))?;
        let command: Vec<String> =
            std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
        let options = RunOptions { seed: self.seed, ..RunOptions::default() };
        let invocation = Invocation { request: Request::Layers(request.clone()), options, files: None };
        let mut header = measuring::header(row, Vec::new(), &command, &self.database(), false, &invocation);
        header.engine_about = format!("{}; raw: {}", header.engine_about, raw.engine_about());
        header.facts.members.clone_from(&raw.facts.members);
        let mut findings = self.findings.clone();
        for finding in benches.iter().flat_map(|(_, bench)| &bench.findings) {
            if !findings.contains(finding) {
                findings.push(finding.clone());
            }
        }
        header.findings = findings;
        Ok(header)
    }
}

/// Refuses a run that is not whole: it was stopped, a session broke, or reads failed.
fn refuse_incomplete(run: &Run, expected: usize) -> Result<(), Error> {
    let points = run.latest();
    let broken = points.iter().find_map(|point| match &point.end {
        End::Broken(why) => Some(format!("at {}: {why}", point.coordinates)),
        _ => None,
    });
    let whole = points.iter().filter(|point| point.end == End::Complete).count();
    if whole < expected {
        let why = broken.unwrap_or_else(|| format!("after {whole} of {expected} points"));
        return Err(Error::failed(
            format!("the run ended {why}"),
            "its private server was removed: start another run; rigel report shows the points so far",
        ));
    }
    measuring::refuse_failed(&points)
}
