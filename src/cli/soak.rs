//! `rigel soak`: the same round for hours to weeks, and how predictable the storage was.

use super::calibrate::size_of_io;
use super::exit_status::exit_status;
use super::measuring::rounds::{self, ResumedSoak, RoundsDone};
use super::measuring::{self, Job, MeasuringArgs};
use super::membership::Membership;
use super::metrics::Metrics;
use super::output::remark;
use super::results::Results;
use super::sql_args::WorkArgs;
use super::{database, page, ranges};
use clap::Args;
use rigel_analyse::plan::SqlStop;
use rigel_analyse::plan::SqlTerms;
use rigel_analyse::quantity::counted;
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_analyse::{BoundVerdict, Predictability, RoundCounts, SoakResult};
use rigel_model::record::journal::Header;
use rigel_model::record::{HowEnded, PointRecord, RunEnd};
use rigel_model::{
    Arrivals, Bytes, Error, Load, Mix, Nanos, Objective, Pattern, Ratio, SqlWork, WarmUp, failed,
    usage,
};
use rigel_verbs::Evaluated;
use rigel_verbs::curve::Loads;
use rigel_verbs::ending::resume_command;
use std::path::Path;

/// Default time between rounds of fixed work.
const EVERY_WORK: Nanos = Nanos::from_secs(15 * 60);

/// Default time between consecutive rounds: up to two days, and longer.
const EVERY_STEADY: [Nanos; 2] = [Nanos::from_secs(60), Nanos::from_secs(300)];

/// Duration above which a soak uses the longer rounds.
const DAYS: Nanos = Nanos::from_secs(2 * 86_400);

/// Repeat one round for hours to weeks, and report how predictable the storage is
///
/// Rounds either do fixed work (--work) and start at equal intervals, or follow each other without
/// a pause. Each round is in the journal before the next one starts: rigel report works during
/// the soak, and --resume resumes it after a reboot. Reads only, unless --mix or --update includes
/// writes. Targets may also be databases that rigel sql load has loaded.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 complete, 1 failed or incomplete, 2 wrong usage, 3 an objective \
                  was missed for longer than --slo-share allows, 4 that is not known."
)]
pub(super) struct SoakArgs {
    #[command(flatten)]
    timetable: TimetableArgs,
    #[command(flatten)]
    load: SoakLoadArgs,
    #[command(flatten)]
    work: WorkArgs,
    #[command(flatten)]
    measuring: MeasuringArgs,
}

/// When rounds begin, and how long the whole lasts.
#[derive(Debug, Args)]
#[command(next_help_heading = "Timetable")]
struct TimetableArgs {
    /// Fixed work per round: operations, such as 100000ops, or bytes, such as 2GiB [default: until
    /// the next round]
    #[arg(long, value_name = "WORK", conflicts_with = "resume")]
    work: Option<String>,
    /// Time from the start of one round to the start of the next [default: 15m with --work, else
    /// 1m, or 5m if --for exceeds 2d]
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    every: Option<Nanos>,
    /// Duration of the soak, such as 7d
    #[arg(
        long = "for",
        value_name = "TIME",
        conflicts_with = "resume",
        required_unless_present = "resume"
    )]
    lasting: Option<Nanos>,
    /// Maximum time of a round of fixed work [default: as --every]
    #[arg(
        long,
        value_name = "TIME",
        conflicts_with = "resume",
        requires = "work"
    )]
    limit: Option<Nanos>,
    /// Objective that every round must meet: 'p99<2ms', 'mean<500us', 'max<100ms', 'rate>5000';
    /// may be repeated
    #[arg(long, value_name = "OBJECTIVE", conflicts_with = "resume")]
    slo: Vec<Objective>,
    /// Share of the time in which objectives must be met; the rest is the error budget
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "99%",
        conflicts_with = "resume"
    )]
    slo_share: Ratio,
}

/// What a round does.
#[derive(Debug, Args)]
#[command(next_help_heading = "Load")]
struct SoakLoadArgs {
    /// Closed loop: number of outstanding I/Os [default: 8] or of database sessions [default: 16,
    /// or one per table if more]
    #[arg(long, value_name = "N", conflicts_with_all = ["resume", "rate"], value_parser = clap::value_parser!(u32).range(1..=4096))]
    depth: Option<u32>,
    /// Open loop: offered load in I/Os per second, due at random times
    #[arg(long, value_name = "RATE", conflicts_with = "resume")]
    rate: Option<String>,
    /// Maximum outstanding I/Os with --rate; I/Os due beyond it wait, and the wait counts
    /// [default: 256]
    #[arg(
        long,
        value_name = "N",
        requires = "rate",
        conflicts_with = "depth",
        value_parser = clap::value_parser!(u32).range(1..=4096)
    )]
    in_flight: Option<u32>,
    /// Kinds of I/O in percent, such as read=70,write=30 or read=70,log=30 for durable writes
    /// [default: read=100]
    #[arg(long, value_name = "MIX", conflicts_with = "resume")]
    mix: Option<String>,
    /// Size of an I/O
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "8KiB",
        conflicts_with = "resume"
    )]
    size: String,
    /// Order of the blocks: uniform, zipf:0.99, hotspot:20%:80%, sequential or permutation
    #[arg(
        long,
        value_name = "PATTERN",
        default_value = "uniform",
        conflicts_with = "resume"
    )]
    pattern: String,
}

/// Measures, and reports how predictable the storage was.
pub(super) fn run(args: &SoakArgs, membership: &Membership) -> Result<u8, Error> {
    args.measuring.enter(membership)?;
    if args.measuring.outcome.resume.is_some() && args.work != WorkArgs::default() {
        return Err(usage!(
            "a resumed soak has its original options",
            "give --resume without options of the work, or start another soak"
        ));
    }
    if let Some(ranks) = membership.as_follower() {
        let resumed = args.measuring.outcome.resume.as_deref();
        return rounds::follow(ranks, resumed, &args.measuring, membership, &|| {
            args.begin(membership)
        })
        .map(|()| 0);
    }
    let metrics = Metrics::of(&args.measuring.outcome)?;
    let mut ended = |header: &Header, record: Option<&PointRecord>| {
        if let Some(metrics) = &metrics {
            metrics.add(header, record);
        }
    };
    let json = args.measuring.outcome.json;
    let (mut job, done) = match &args.measuring.outcome.resume {
        Some(run) => match rounds::resume(run, &args.measuring, membership, &mut ended)? {
            ResumedSoak::Job(job, done) => (*job, done),
            ResumedSoak::Over(over) => {
                remark("this soak is complete: nothing is left to measure\n\n");
                let directory = Results::existing(run);
                let end = RunEnd::complete(0);
                let measured = Evaluated::read_ending(directory.path(), end)?;
                let status = status_of_complete(&measured);
                over.end(&RunEnd::complete(status))?;
                page::show(&measured, directory.path(), json);
                return Ok(status);
            }
        },
        None => (args.begin(membership)?, RoundsDone::default()),
    };
    let stopped = rounds::measure(&mut job, done, &args.measuring, &mut ended)?;
    let directory = job.results.path().to_path_buf();
    let end = RunEnd {
        how: if stopped {
            HowEnded::Stopped
        } else {
            HowEnded::Complete
        },
        status: u8::from(stopped),
    };
    let how = end.how.clone();
    let measured = match Evaluated::read_ending(&directory, end) {
        Ok(measured) => measured,
        Err(error) => return job.ended(how, Err(error)),
    };
    let outcome = job.ended(how, outcome_of(&measured, &directory, stopped));
    page::show(&measured, &directory, json);
    outcome
}

/// The exit status of a soak of which nothing was left to measure: 0 unless an objective was missed,
/// so that a service manager stops restarting it.
fn status_of_complete(measured: &Evaluated) -> u8 {
    match measured.outcome() {
        Some(outcome @ BoundVerdict::Broken) => exit_status(outcome),
        _ => 0,
    }
}

/// The outcome of a soak that was measured until it was `stopped`, or its time was over.
fn outcome_of(measured: &Evaluated, directory: &Path, stopped: bool) -> Result<u8, Error> {
    if stopped {
        return Err(failed!(
            "the soak ended before it was complete",
            "resume it with `{command}`",
            command = resume_command(&*measured.verb, &measured.run.header, Some(directory))
        ));
    }
    let outcome = measured.outcome().unwrap_or(BoundVerdict::Kept);
    if outcome == BoundVerdict::Broken {
        return Ok(exit_status(outcome));
    }
    refuse_incomplete(&measured.results_of::<SoakResult>("a soak")?.found)?;
    Ok(exit_status(outcome))
}

/// Refuses a soak with missing or broken rounds or failed operations.
fn refuse_incomplete(result: &Predictability) -> Result<(), Error> {
    let RoundCounts {
        broken,
        missing,
        ahead,
        failed_operations,
        ..
    } = result.rounds;
    let counts = [
        (broken as u64, "round", "could not be measured"),
        ((missing + ahead) as u64, "round", "did not take place"),
        (failed_operations, "operation", "failed"),
    ];
    let words =
        |(count, thing, what): &(u64, &str, &str)| format!("{} {what}", counted(*count, thing));
    let troubles: Vec<String> = counts
        .iter()
        .filter(|(count, ..)| *count > 0)
        .map(words)
        .collect();
    if troubles.is_empty() {
        Ok(())
    } else {
        Err(Error::failed(
            troubles.join(", "),
            "the report shows which, and why",
        ))
    }
}

impl SoakArgs {
    fn begin(&self, membership: &Membership) -> Result<Job, Error> {
        if let Some(urls) = database::urls(&self.measuring.targets)? {
            return self.on_database(&urls, membership);
        }
        if self.work != WorkArgs::default() {
            return Err(usage!(
                "options for database sessions are given, but no database",
                "give one, such as postgres://user@host/database; for files and devices use --mix, \
                 --pattern and --size"
            ));
        }
        let length = size_of_io("--size", self.load.size.parse::<Bytes>()?)?;
        let request = self.request(length, 8, None)?;
        measuring::begin(&self.measuring, membership, Box::new(request), "auto")
    }

    fn on_database(&self, urls: &[String], membership: &Membership) -> Result<Job, Error> {
        let own = [
            ("--mix", self.load.mix.is_some(), "--update"),
            ("--pattern", self.load.pattern != "uniform", "--hot-spot"),
            ("--size", self.load.size != "8KiB", "the database's block"),
        ];
        let has_rate = self.load.rate.is_some();
        let on = self
            .work
            .on_database(urls, &self.measuring, membership, &own, has_rate)?;
        let request = self.request(on.tables.block, on.sessions, Some(on.work))?;
        measuring::begin_sql(&self.measuring, membership, Box::new(request), on.access)
    }

    fn request(&self, length: u32, depth: u32, sql: Option<SqlWork>) -> Result<SoakRequest, Error> {
        let Self {
            timetable, load, ..
        } = self;
        let work = timetable
            .work
            .as_deref()
            .map(|text| operations(text, length))
            .transpose()?;
        let lasting = timetable.lasting.unwrap_or_default();
        let steady = EVERY_STEADY[usize::from(lasting > DAYS)];
        let every = timetable
            .every
            .unwrap_or(if work.is_some() { EVERY_WORK } else { steady });
        refuse_timetable(every, lasting, timetable.limit)?;
        // Each of several sessions can have several operations in flight.
        let pipeline = sql.map_or(1, |work| work.pipeline);
        let in_flight = load.in_flight.unwrap_or(if sql.is_some() {
            depth
        } else {
            ranges::IN_FLIGHT
        });
        let in_flight_max = in_flight.saturating_mul(pipeline);
        let load_of_round = match &load.rate {
            Some(rate) => Load::Open {
                rate: one_rate(rate)?,
                arrivals: Arrivals::Poisson,
                in_flight_max,
            },
            None => Load::Closed {
                depth: load.depth.unwrap_or(depth).saturating_mul(pipeline),
            },
        };
        let share = timetable.slo_share;
        if share == Ratio::ZERO {
            return Err(usage!(
                "--slo-share {share} requires nothing of an objective",
                "give the share of time in which it must be met, such as 99%",
                share = share.exact()
            ));
        }
        let mut objectives: Vec<Objective> = Vec::new();
        // Equal objectives, such as `p99<1s` and `p99<1000ms`, count once.
        for objective in &timetable.slo {
            if !objectives.contains(objective) {
                objectives.push(*objective);
            }
        }
        Ok(SoakRequest {
            load: load_of_round,
            length,
            mix: load.mix.as_deref().map_or(Ok(Mix::READS), ranges::mix)?,
            pattern: load.pattern.parse::<Pattern>()?,
            sql: sql.map(|work| SqlTerms {
                work,
                stop: SqlStop::Precise,
                warm_up: WarmUp::NONE,
                statement_timeout: self.work.statement_timeout(),
            }),
            work,
            limit: timetable.limit.unwrap_or(every),
            every,
            lasting,
            objectives,
            share,
        })
    }
}

/// Refuses a timetable that leaves a round no time, or that ends before the first round.
fn refuse_timetable(every: Nanos, lasting: Nanos, limit: Option<Nanos>) -> Result<(), Error> {
    let least = Nanos::from_secs(1);
    let too_short = [("--every", every), ("--limit", limit.unwrap_or(every))]
        .into_iter()
        .find(|(_, time)| *time < least);
    if let Some((option, time)) = too_short {
        return Err(usage!(
            "{option} {time} is too short for a round",
            "give a second or more, such as 1m",
            time = time.exact()
        ));
    }
    if let Some(limit) = limit.filter(|limit| *limit > every) {
        return Err(usage!(
            "--limit {limit} is longer than --every {every}, when the next round is due",
            "give a shorter --limit, or a longer --every",
            limit = limit.exact(),
            every = every.exact()
        ));
    }
    if lasting < every {
        return Err(usage!(
            "--for {lasting} is shorter than one round of --every {every}",
            "give a longer --for, such as 1d, or a shorter --every",
            lasting = lasting.exact(),
            every = every.exact()
        ));
    }
    Ok(())
}

/// Parses `100000ops`, `100kops`, `2GiB` into a number of operations of `length` bytes.
fn operations(text: &str, length: u32) -> Result<u64, Error> {
    let wrong = || {
        usage!(
            "--work '{text}' is not an amount of work",
            "write it in operations, such as 100000ops or 100kops, or in bytes, such as 2GiB"
        )
    };
    let trimmed = text.trim();
    let count = if let Some(number) = trimmed.strip_suffix("ops") {
        let number = number.trim();
        let (digits, scale) = match number.char_indices().last() {
            Some((at, 'k')) => (&number[..at], 1_000),
            Some((at, 'M')) => (&number[..at], 1_000_000),
            _ => (number, 1),
        };
        digits
            .trim()
            .replace('_', "")
            .parse::<u64>()
            .ok()
            .and_then(|count| count.checked_mul(scale))
            .ok_or_else(wrong)?
    } else if !trimmed.ends_with(['B', 'b']) {
        // 100k could be operations or bytes.
        return Err(wrong());
    } else {
        trimmed.parse::<Bytes>().map_err(|_| wrong())?.0 / u64::from(length)
    };
    if count == 0 { Err(wrong()) } else { Ok(count) }
}

/// Parses a single rate, in operations per second.
fn one_rate(text: &str) -> Result<f64, Error> {
    match ranges::rates(text)? {
        Loads::Rates(rates) if rates.len() == 1 => Ok(rates[0] as f64),
        _ => Err(usage!(
            "--rate '{text}' is not a single rate",
            "a soak has one load: write it as 5000 or 5k; rigel curve has ranges"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_operations_or_bytes_and_never_a_bare_number() {
        for (text, count) in [
            ("100000ops", 100_000),
            ("100kops", 100_000),
            ("3 Mops", 3_000_000),
            ("1MiB", 128),
        ] {
            assert_eq!(operations(text, 8192).unwrap(), count, "{text}");
        }
        for wrong in [
            "",
            "ops",
            "100000",
            "100k",
            "0ops",
            "1KiB",
            "-1ops",
            "99999999999999999999ops",
            "18446744073709551615Mops",
        ] {
            assert!(operations(wrong, 8192).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_soak_has_one_rate() {
        assert!((one_rate("5k").unwrap() - 5000.0).abs() < 1e-9);
        assert!(one_rate("1k..5k").is_err() && one_rate("50%").is_err());
    }
}
