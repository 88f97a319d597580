//! `rigel curve`: latency against throughput, at the requested loads.

use super::calibrate::{refuse_imprecise, size_of_io, times_of_point};
use super::database;
use super::expected::ExpectedArgs;
use super::measuring::{self, MeasuringArgs};
use super::membership::Membership;
use super::sql_args::WorkArgs;
use super::{page, ranges, ranks};
use clap::{Args, ValueEnum};
use rigel_analyse::plan::SqlStop;
use rigel_analyse::plan::SqlTerms;
use rigel_model::{
    Arrivals, Bound, Bytes, Error, ExpectedLoad, KIB, LogKind, Mix, Nanos, Pattern, Provisioned,
    Ratio, WarmUp, usage,
};
use rigel_verbs::curve::CurveRequest;
use rigel_verbs::curve::Loads;

/// Measure latency against throughput, by queue depth or offered rate: table, chart, knee
///
/// Reads only, unless --mix or --update includes writes. Targets may also be databases that rigel
/// sql load has loaded.
#[derive(Debug, Args)]
#[command(
    after_help = "A range includes both ends: 1..64 doubles, 1k..30k takes about 12 steps, \
                  1..64/8 takes steps of 8. 1,2,5,9 is a list.\nExit status: 0 complete, 1 failed \
                  or incomplete, 2 wrong usage, 3 no load met --max-latency, 4 \
                  undecided."
)]
pub(super) struct CurveArgs {
    /// Closed loop: number of outstanding I/Os [default: 1..64]
    #[arg(long, value_name = "RANGE", group = "loads", conflicts_with = "resume")]
    depth: Option<String>,
    /// Closed loop: number of threads with one I/O at a time each, or of sessions of a database
    #[arg(long, value_name = "RANGE", group = "loads", conflicts_with = "resume")]
    sessions: Option<String>,
    /// Commits to a log's own file, made in the directory, whose depths are writers that commit
    /// together: grow, reserved, sized or reused, such as reused+fsync by another method, or
    /// reused+own for a file of each writer; a list such as grow,reused compares them
    #[arg(
        long,
        value_name = "STATE",
        value_delimiter = ',',
        conflicts_with_all = ["resume", "sessions", "mix", "pattern", "neighbours"]
    )]
    log: Vec<LogKind>,
    /// Writers of --log, as --depth
    #[arg(
        long,
        value_name = "RANGE",
        group = "loads",
        requires = "log",
        conflicts_with = "resume"
    )]
    writers: Option<String>,
    /// Open loop: I/Os due per second, whatever the target does; 10%..120% is of the maximum,
    /// which is measured first
    #[arg(long, value_name = "RANGE", group = "loads", conflicts_with = "resume")]
    rate: Option<String>,
    /// Spacing of the due times of --rate [default: poisson]
    #[arg(
        long,
        value_name = "SPACING",
        value_enum,
        requires = "rate",
        conflicts_with_all = ["resume", "depth", "sessions"]
    )]
    arrivals: Option<Spacing>,
    /// Maximum outstanding I/Os with --rate; I/Os due beyond it wait, and the wait counts
    /// [default: 256]
    #[arg(
        long,
        value_name = "N",
        requires = "rate",
        conflicts_with_all = ["depth", "sessions"],
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    in_flight: Option<u32>,
    /// Kinds of I/O in percent, such as read=70,write=30 or read=70,log=30 for durable writes
    /// [default: read=100]
    #[arg(long, value_name = "MIX", conflicts_with = "resume")]
    mix: Option<String>,
    /// Size of an I/O; with --log bytes of a commit, such as 2300 [default: 8KiB; of a commit 4KiB]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    size: Option<Bytes>,
    /// Add random I/O to every point: large:2 keeps 2 reads of 1MiB outstanding, large:2@512k 2 of
    /// 512KiB; read:5000/s,write:500/s@16k are due at random times
    #[arg(long, value_name = "KIND:LOAD[@SIZE]", conflicts_with = "resume")]
    background: Option<String>,
    /// Order of the blocks: uniform, zipf:0.99, hotspot:20%:80%, sequential or permutation
    #[arg(
        long,
        value_name = "PATTERN",
        default_value = "uniform",
        conflicts_with = "resume"
    )]
    pattern: String,
    /// Maximum response time of a point, such as 2ms or 500us@p99.9
    #[arg(long, value_name = "LATENCY[@QUANTILE]", conflicts_with = "resume")]
    max_latency: Option<String>,
    /// Stop a point when the half-width of its 95 % interval is below this share of the figure
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "2%",
        conflicts_with = "resume"
    )]
    precision: String,
    /// Minimum measured time of a point; depths are measured in three visits or more, spread over
    /// the run, rates in one piece [default: 5s]
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    point_min: Option<Nanos>,
    /// Maximum measured time of a point, even if --precision is not reached [default: 20s]
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    point_max: Option<Nanos>,
    /// What the volume was sold with, such as 30000iops,500MB/s: the report says what share of it was
    /// delivered
    #[arg(long, value_name = "RATES", conflicts_with = "resume")]
    provisioned: Option<Provisioned>,
    #[command(flatten)]
    expected: ExpectedArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// Then let the last rank offer this number of I/Os per second while the others wait and climb:
    /// what neighbours do to its response time
    #[arg(long, value_name = "RATE", help_heading = ranks::SEVERAL_HOSTS, hide_short_help = true, conflicts_with = "resume")]
    neighbours: Option<String>,
}

/// Usual minimum measured time of a point.
const POINT_MIN: Nanos = Nanos::from_secs(5);
/// Usual maximum measured time of a point.
const POINT_MAX: Nanos = Nanos::from_secs(20);

/// How the due times of an open loop are spaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Spacing {
    /// Independent of each other, as requests of many users are
    Poisson,
    /// At equal distances
    Uniform,
}

/// Measures, and shows the curve.
pub(super) fn run(args: &CurveArgs, membership: &Membership) -> Result<u8, Error> {
    args.measuring.enter(membership)?;
    let is_resumed = args.measuring.outcome.resume.is_some();
    let expected = args
        .expected
        .expectations_of_new(is_resumed, args.provisioned)?;
    let mut job = if let Some(run) = &args.measuring.outcome.resume {
        if args.work != WorkArgs::default() {
            return Err(usage!(
                "a resumed curve has its original options",
                "give --resume without it, or start another curve"
            ));
        }
        measuring::resume(run, &args.measuring, membership, "curve", &[])?
    } else if let Some(urls) = database::urls(&args.measuring.targets)? {
        args.on_database(&urls, membership)?
    } else {
        if args.work != WorkArgs::default() {
            return Err(usage!(
                "options for database sessions are given, but no database",
                "give one, such as postgres://user@host/database; for files and devices use --mix, \
                 --pattern and --size"
            ));
        }
        let engine = if args.sessions.is_some() {
            "psync"
        } else {
            "auto"
        };
        let mut measuring = args.measuring.clone();
        let request = args.request(membership)?;
        if !request.logs.is_empty() {
            measuring.require_directory("--log", request.background.is_empty())?;
        }
        measuring::begin(&measuring, membership, Box::new(request), engine)?
    };
    job.expect(expected);
    let Some((measured, outcome)) = measuring::measure(&mut job, &args.measuring)? else {
        return Ok(0);
    };
    page::show(&measured, job.results.path(), args.measuring.outcome.json);
    measuring::conclude(job, outcome)
}

impl CurveArgs {
    /// Begins a curve of database sessions.
    fn on_database(
        &self,
        urls: &[String],
        membership: &Membership,
    ) -> Result<measuring::Job, Error> {
        let own = [
            ("--mix", self.mix.is_some(), "--update"),
            ("--background", self.background.is_some(), "--scan"),
            ("--pattern", self.pattern != "uniform", "--hot-spot"),
            ("--size", self.size.is_some(), "the database's block"),
            ("--log", !self.log.is_empty(), "--update"),
            (
                "--provisioned",
                self.provisioned.is_some(),
                "rigel calibrate on the volume",
            ),
            (
                "--neighbours",
                self.neighbours.is_some(),
                "--rate, at which all hosts offer the same",
            ),
        ];
        let has_rate = self.rate.is_some();
        let on = self
            .work
            .on_database(urls, &self.measuring, membership, &own, has_rate)?;
        let warm_up = WarmUp {
            least: Nanos::from_secs(1),
            most: Nanos::from_secs(5),
        };
        let terms = SqlTerms {
            work: on.work,
            stop: SqlStop::Precise,
            warm_up,
            statement_timeout: self.work.statement_timeout(),
        };
        let request = CurveRequest {
            in_flight_max: self.in_flight.unwrap_or(on.sessions),
            length: on.tables.block,
            sql: Some(terms),
            ..self.request(membership)?
        };
        measuring::begin_sql(&self.measuring, membership, Box::new(request), on.access)
    }

    /// The rate that one rank offers beside the others.
    fn neighbours_per_s(&self, membership: &Membership) -> Result<Option<u64>, Error> {
        let Some(text) = &self.neighbours else {
            return Ok(None);
        };
        let rate = ranges::rates(text).ok().and_then(|loads| match loads {
            Loads::Rates(rates) if rates.len() == 1 => rates.first().copied(),
            _ => None,
        });
        let rate = rate.ok_or_else(|| {
            usage!(
                "--neighbours {text}: not one number of I/Os per second",
                "write it as 500 or 2k"
            )
        })?;
        if membership.joined().is_none() {
            return Err(usage!(
                "--neighbours {text} needs other hosts, and this process measures alone",
                "start several under mpiexec or srun: docs/methods/ranks.md"
            ));
        }
        Ok(Some(rate))
    }

    /// Refuses logs that cannot be written so, or not be compared.
    fn check_logs(&self, loads: &Loads, size: u32) -> Result<(), Error> {
        for (at, log) in self.log.iter().enumerate() {
            log.check(loads.most_sessions(1), size)?;
            if self.log[..at].contains(log) {
                return Err(usage!("--log names '{log}' twice", "give each log once"));
            }
        }
        if self.log.len() > 1 && !matches!(loads, Loads::Depths(_)) {
            return Err(usage!(
                "--log names {logs} logs, and --rate offers to one",
                "compare logs by --writers, or give one of them",
                logs = self.log.len()
            ));
        }
        Ok(())
    }

    fn request(&self, membership: &Membership) -> Result<CurveRequest, Error> {
        let given = [
            ("--sessions", &self.sessions),
            ("--writers", &self.writers),
            ("--depth", &self.depth),
        ];
        let given = given
            .into_iter()
            .find_map(|(option, range)| Some((option, range.as_deref()?)));
        let loads = match (&self.rate, given) {
            (Some(rate), _) => ranges::rates(rate)?,
            (None, given) => {
                let (option, range) = given.unwrap_or(("--depth", "1..64"));
                ranges::depths(option, range)?
            }
        };
        let precision: Ratio = self.precision.parse()?;
        refuse_imprecise(precision)?;
        let (point_least, point_most) =
            times_of_point(self.point_min, self.point_max, POINT_MIN, POINT_MAX)?;
        let size = length("--size", self.size, self.log.first().copied())?;
        self.check_logs(&loads, size)?;
        Ok(CurveRequest {
            is_sql_run: false,
            sql: None,
            ranks: 0,
            neighbours_per_s: self.neighbours_per_s(membership)?,
            loads,
            arrivals: match self.arrivals {
                Some(Spacing::Uniform) => Arrivals::Uniform,
                _ => Arrivals::Poisson,
            },
            in_flight_max: self.in_flight.unwrap_or(ranges::IN_FLIGHT),
            length: size,
            mix: match (&self.mix, self.log.first()) {
                (Some(mix), _) => ranges::mix(mix)?,
                (None, Some(_)) => Mix::LOG,
                (None, None) => Mix::READS,
            },
            pattern: match self.log.first() {
                Some(_) => Pattern::Sequential { start: 0 },
                None => self.pattern.parse()?,
            },
            logs: self.log.clone(),
            provisioned: self.provisioned,
            background: self
                .background
                .as_deref()
                .map(ranges::background)
                .transpose()?
                .unwrap_or_default(),
            bound: self
                .max_latency
                .as_deref()
                .map(str::parse::<Bound>)
                .transpose()?,
            precision,
            point_least,
            point_most,
        })
    }
}

/// Bytes of an I/O that an option gives, or of a commit to a log.
pub(super) fn length(
    option: &str,
    size: Option<Bytes>,
    log: Option<LogKind>,
) -> Result<u32, Error> {
    const USUAL: Bytes = Bytes(8 * KIB);
    match (log, size) {
        (None, size) => size_of_io(option, size.unwrap_or(USUAL)),
        (Some(_), None) => Ok(ExpectedLoad::LOG_BYTES),
        (Some(_), Some(size)) => ExpectedLoad::log_bytes(size).ok_or_else(|| {
            usage!(
                "{option} {size} is not the size of a commit",
                "give bytes up to 16MiB, such as 2300 or 8KiB"
            )
        }),
    }
}
