//! `rigel fit`: how many times a target carries the demand of a database.

use super::calibrate::{refuse_long_point, size_of_io};
use super::exit_status::exit_status;
use super::measuring::{self, Job, MeasuringArgs};
use super::membership::Membership;
use super::output::{self, remark};
use super::target::is_model;
use super::{database, demand, page, sql_args};
use clap::Args;
use rigel_analyse::RunTrust;
use rigel_analyse::demand::BLOCK_ASSUMED;
use rigel_analyse::demand::stream_objective::StreamObjective;
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::SqlStop;
use rigel_analyse::plan::SqlTerms;
use rigel_analyse::{BoundVerdict, DemandOfInstances, at_one_time, demand_findings, quantity};
use rigel_database::Access;
use rigel_model::record::journal;
use rigel_model::{
    Bytes, Demand, DemandAt, Error, LogKind, Nanos, Ratio, SqlWork, WarmUp, failed, shell_path,
    usage,
};
use rigel_verbs::fit::FitRequest;
use rigel_verbs::fit::FitResult;
use rigel_verbs::fit::FitSessions;
use rigel_verbs::fit::RankDemand;
use rigel_verbs::fit::objectives;
use rigel_verbs::fit::{FitOfTarget, fits};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Usual range of multiples.
const MULTIPLES: (f64, f64) = (0.125, 256.0);

/// Shortest measured time of a multiple: an interval needs windows.
const POINT_TIME_MIN: Nanos = Nanos::from_secs(2);

/// Offer a database's demand to storage, at rising multiples, until it no longer keeps up
///
/// DEMAND is what a database asks of its storage where it runs today: an AWR or Statspack report, a
/// capture of AWR-Miner, output of iostat, a csv file, or the directory of a run of rigel watch,
/// rigel import or rigel sql. All streams of one interval run at once, at times of their own. Reads
/// only, unless --write or --destroy is given. A target may also be a database that rigel sql load
/// has loaded: then the operations of a run of rigel sql are offered to it.
///
/// Under mpiexec or srun, rank n offers what instance n of a RAC asks for, if DEMAND has as many
/// instances as there are ranks; or the n-th of several demands, by --of or --also. Of a single
/// demand each rank offers an equal part. An objective must be kept on every host.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 the needed multiple is held, 1 failed or incomplete, 2 wrong \
                  usage, 3 it is not held, 4 undecided."
)]
pub(super) struct FitArgs {
    /// Report or series of a database, or a run that has one
    #[arg(value_name = "DEMAND", required_unless_present = "resume")]
    demand: Option<PathBuf>,
    /// Interval to offer: peak (most operations), p95 (the busiest 5 % left out), or a time in it
    #[arg(
        long,
        value_name = "WHICH",
        default_value = "peak",
        conflicts_with = "resume"
    )]
    at: DemandAt,
    /// Database, instance or device, if DEMAND has several; of several ranks, once for each
    /// [default: the one for all instances, or the first]
    #[arg(long, value_name = "NAME", conflicts_with = "resume")]
    of: Vec<String>,
    /// Demand of the next rank, under mpiexec or srun; may be repeated
    #[arg(long, value_name = "DEMAND", conflicts_with = "resume")]
    also: Vec<PathBuf>,
    /// Objective of a stream, such as 'random reads p99<2ms' or 'log writes mean<1ms'; may be
    /// repeated [default: as good as the database saw it, or 10 ms at p99 for reads and 20 ms for log
    /// writes]
    #[arg(long, value_name = "OBJECTIVE", conflicts_with = "resume")]
    slo: Vec<StreamObjective>,
    /// Multiple that must be held for exit status 0
    #[arg(
        long,
        value_name = "MULTIPLE",
        default_value = "1",
        value_parser = multiple,
        conflicts_with = "resume"
    )]
    need: f64,
    /// Lowest and highest multiple that may be tried [default: 0.125..256]
    #[arg(long, value_name = "FROM..TO", conflicts_with = "resume")]
    multiples: Option<String>,
    /// Half-width of the answer's interval at which the search ends
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "10%",
        conflicts_with = "resume"
    )]
    precision: Ratio,
    /// Measured time of each multiple; up to six times as long while a stream is too rare to be judged
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        conflicts_with = "resume"
    )]
    point_time: Nanos,
    /// Block size of the database, if DEMAND does not say it [default: 8KiB]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    size: Option<Bytes>,
    /// Offer the writes too; needs --destroy unless the target is a directory, in which a scratch
    /// file is made, or a database, of which only Rigel's own tables are changed
    #[arg(long, conflicts_with = "resume")]
    write: bool,
    /// How log writes are made in a directory, such as grow or reused+fsync, as in rigel curve --log
    /// [default: as the database of DEMAND makes them]
    #[arg(long, value_name = "STATE", conflicts_with = "resume")]
    log: Option<LogKind>,
    /// Sessions of a database; operations due beyond them wait, and the wait counts [default: 16, or
    /// as many as the demand had if more]
    #[arg(long, value_name = "N", conflicts_with = "resume", value_parser = clap::value_parser!(u32).range(1..=1000))]
    sessions: Option<u32>,
    #[command(flatten)]
    measuring: MeasuringArgs,
}

/// Measures each target, and shows the results.
pub(super) fn run(args: &FitArgs, membership: &Membership) -> Result<u8, Error> {
    args.measuring.enter(membership)?;
    if let Some(run) = &args.measuring.outcome.resume {
        // The demand is in the journal: all that is named are targets.
        let mut measuring = args.measuring.clone();
        let first = args.demand.iter().map(|path| path.clone().into_os_string());
        measuring.targets.splice(..0, first);
        let job = measuring::resume(run, &measuring, membership, "fit", &[])?;
        let fitted = measure(job, &measuring, true)?;
        return Ok(fitted.map_or(0, |one| exit_status(one.found.verdict)));
    }
    let request = args.shared_request(membership)?;
    let targets = &args.measuring.targets;
    let each: Vec<MeasuringArgs> = targets
        .iter()
        .enumerate()
        .map(|(at, target)| args.for_target(at, target))
        .collect();
    // What is wrong with any of the targets is found before the first is measured.
    let jobs = each
        .iter()
        .map(|one| args.begin(one, membership, request.clone()))
        .collect::<Result<Vec<Job>, Error>>()?;
    let mut fitted = Vec::new();
    for (job, one) in jobs.into_iter().zip(&each) {
        fitted.extend(measure(job, one, targets.len() == 1)?);
    }
    if let [_, _, ..] = fitted[..] {
        args.show_together(&fitted);
    }
    // Every target must hold it.
    let verdicts = fitted.iter().map(|one| one.found.verdict);
    Ok(exit_status(BoundVerdict::all_of(verdicts)))
}

/// What was found on one target.
struct Fitted {
    target: String,
    run: PathBuf,
    json: String,
    found: FitResult,
    trust: RunTrust,
}

impl FitArgs {
    /// Options of one of several targets: each is a run of its own.
    fn for_target(&self, at: usize, target: &OsString) -> MeasuringArgs {
        let mut args = self.measuring.clone();
        let is_one_of_many = args.targets.len() > 1;
        args.targets = vec![target.clone()];
        // The permission to overwrite is for the target that it names.
        args.destroy
            .retain(|path| !is_one_of_many || path.as_os_str() == target);
        if let Some(out) = args.outcome.out.as_mut().filter(|_| is_one_of_many) {
            out.as_mut_os_string().push(format!("-{}", at + 1));
        }
        args
    }

    /// Begins the run of one target, which `one` names.
    fn begin(
        &self,
        one: &MeasuringArgs,
        membership: &Membership,
        mut request: FitRequest,
    ) -> Result<Job, Error> {
        let urls = database::urls(&one.targets)?;
        request.log = self.log_of(one, &request)?;
        let access = match &urls {
            Some(urls) => Some(self.with_sessions(one, membership, &urls[0], &mut request)?),
            None if self.sessions.is_some() => {
                return Err(usage!(
                    "--sessions is for a database, and none is given",
                    "leave it out: the streams of a demand have limits of their own"
                ));
            }
            None => None,
        };
        refuse_nothing_to_offer(&request)?;
        request.highest = request.highest.min(most_multiple(&request)?);
        request.objectives = objectives(&self.slo, &request)?;
        let request = Box::new(request);
        match access {
            Some(access) => measuring::begin_sql(one, membership, request, access),
            None => measuring::begin(one, membership, request, "auto"),
        }
    }

    /// How log writes are offered to a directory; `None` where they overwrite blocks of the target.
    fn log_of(&self, one: &MeasuringArgs, request: &FitRequest) -> Result<Option<LogKind>, Error> {
        let is_offered = request.offers_log();
        match self.log {
            Some(_) if !is_offered => Err(usage!(
                "--log is given, and no log writes are offered",
                "add --write, and give a demand that has log writes"
            )),
            Some(_) => {
                one.clone().require_directory("--log", false)?;
                Ok(self.log)
            }
            None => Ok(request.log.filter(|_| is_offered && one.is_directory())),
        }
    }

    /// Adds to `request` the sessions that offer the demand's operations to the database at `url`.
    fn with_sessions(
        &self,
        one: &MeasuringArgs,
        membership: &Membership,
        url: &str,
        request: &mut FitRequest,
    ) -> Result<Access, Error> {
        membership.refuse_shared(
            "fit on a database",
            "every host would offer all operations of the demand to it",
            "start it on one host, with one URL",
        )?;
        let own = [
            ("--size", self.size.is_some(), "the database's block"),
            ("--scratch-size", one.scratch_size.is_some(), "tables"),
            ("--destroy", !one.destroy.is_empty(), "--write"),
            (
                "--log",
                self.log.is_some(),
                "the database writes its own log",
            ),
        ];
        sql_args::refuse_raw(one, &own, url)?;
        let Some(operations) = request.interval.operations else {
            return Err(usage!(
                "'{named}' says what was asked of storage, and not which operations asked for it: \
                 there is nothing to offer to the database '{url}'",
                "give a run of rigel sql run or rigel curve on a database, or a file, device or \
                 directory as the target",
                named = request.named
            ));
        };
        let access = database::access(&[url.to_string()], &one.password, membership)?;
        let tables = database::tables_of(&access, membership)?;
        let there = operations.work.tables;
        if there != tables {
            remark(&format!("the demand is of {there}; here are {tables}\n"));
        }
        let work = SqlWork {
            tables,
            updates: if self.write {
                operations.work.updates
            } else {
                Ratio::ZERO
            },
            // The demand's rate has its pauses already; and one operation at a time is the usual.
            think: None,
            pipeline: 1,
            ..operations.work
        };
        work.check()?;
        request.block = tables.block;
        request.is_block_assumed = false;
        request.sessions = Some(FitSessions {
            terms: SqlTerms {
                work,
                stop: SqlStop::Elapsed(self.point_time),
                warm_up: WarmUp::NONE,
                statement_timeout: None,
            },
            number: self
                .sessions
                .unwrap_or(sql_args::SESSIONS.max(operations.sessions)),
        });
        Ok(access)
    }

    /// What all of several targets carry, or their reports as a list in JSON.
    fn show_together(&self, fitted: &[Fitted]) {
        if self.measuring.outcome.json {
            let each: Vec<&str> = fitted.iter().map(|one| one.json.trim_end()).collect();
            output::json(&format!("[{}]\n", each.join(",\n")));
            return;
        }
        let each = fitted.iter().map(|one| FitOfTarget {
            target: &one.target,
            run: &one.run,
            found: &one.found,
            trust: one.trust.clone(),
        });
        output::result(&format!("\n{}", fits(each.collect())));
    }

    /// The request, which all ranks have from rank 0: only its host needs the files of the demand.
    fn shared_request(&self, membership: &Membership) -> Result<FitRequest, Error> {
        match membership.joined() {
            None => self.request(1),
            Some(ranks) if ranks.is_root() => {
                let request = self.request(ranks.size())?;
                ranks.send_all(&request)?;
                Ok(request)
            }
            Some(ranks) => {
                let request: FitRequest = ranks.from_root(measuring::SHARED)?;
                self.refuse_unlike(&request)?;
                Ok(request)
            }
        }
    }

    /// Refuses a request of rank 0 that this command line did not ask for: whether it writes, and what
    /// it measures with, is not for another host to say.
    fn refuse_unlike(&self, request: &FitRequest) -> Result<(), Error> {
        let unlike = |what: &str| {
            let hint = "start the same program with the same arguments on every host";
            Err(failed!(
                "rank 0 sent a fit that {what}, which was not asked for",
                hint
            ))
        };
        if request.writes != self.writes() {
            return unlike(if request.writes {
                "writes"
            } else {
                "only reads"
            });
        }
        if request.sessions.is_some() {
            return unlike("has sessions of a database");
        }
        request.check_values()
    }

    /// True if the command line allows to write.
    fn writes(&self) -> bool {
        self.write || !self.measuring.destroy.is_empty()
    }

    fn request(&self, ranks: usize) -> Result<FitRequest, Error> {
        let first = self.demand.as_deref().unwrap_or(Path::new(""));
        let paths: Vec<&Path> = std::iter::once(first)
            .chain(self.also.iter().map(PathBuf::as_path))
            .collect();
        self.refuse_target_first(first)?;
        let demand::Asked { demands, imported } = demand::for_ranks(&paths, &self.of, ranks)?;
        let (demand, of_ranks) = self.at_one_time(&demands)?;
        let (lowest, highest) = self.range()?;
        self.refuse_options()?;
        let block = match self.size {
            Some(size) => Some(size_of_io("--size", size)?),
            None => demands[0].block_bytes,
        };
        let names = |each: Vec<String>| each.join(" and ");
        Ok(FitRequest {
            named: names(paths.iter().map(|it| it.display().to_string()).collect()),
            source: demands[0].source.clone(),
            database: names(demands.iter().map(|it| it.database.clone()).collect()),
            block: block.unwrap_or(BLOCK_ASSUMED),
            is_block_assumed: block.is_none(),
            at: self.at,
            findings: demand_findings(&demands, &imported, &demand.sum),
            interval: demand.sum,
            of_ranks,
            intervals: demand.intervals,
            below: demand.below,
            burst: demand.burst,
            objectives: Vec::new(),
            need: self.need,
            lowest,
            highest,
            precision: self.precision,
            point_time: self.point_time,
            writes: self.writes(),
            log: self.log.or(demands[0].log),
            sessions: None,
        })
    }

    /// Refuses a model, or a directory without a run, in place of the demand: most likely the target
    /// was named first.
    fn refuse_target_first(&self, demand: &Path) -> Result<(), Error> {
        let shown = demand.display();
        let what = if is_model(demand) {
            format!("DEMAND '{shown}' is a model of a storage")
        } else if demand.is_dir() && !demand.join(journal::FILE_NAME).exists() {
            format!("DEMAND '{shown}' is a directory in which no run is")
        } else {
            return Ok(());
        };
        let mut targets = self.measuring.targets.iter().map(Path::new);
        let hint = match targets.find(|target| target.is_file()) {
            Some(file) => format!(
                "the demand comes first, then the targets: rigel fit {} {}",
                shell_path(file),
                shell_path(demand)
            ),
            None => {
                "give a report of AWR or Statspack, a csv, or a run of rigel watch first, then the \
                     targets"
                    .into()
            }
        };
        Err(Error::usage(what, hint))
    }

    /// The intervals of all demands at the time that is asked for, and what each of several ranks
    /// offers of them.
    fn at_one_time(
        &self,
        demands: &[Demand],
    ) -> Result<(DemandOfInstances, Vec<RankDemand>), Error> {
        let instances = at_one_time(demands, self.at).ok_or_else(|| {
            let of = |demand: &Demand| format!("{}: {}", demand.database, range_of(demand));
            let each: Vec<String> = demands.iter().map(of).collect();
            Error::usage(
                match demands {
                    [only] => format!("no interval of {} holds {}", only.database, self.at),
                    _ => format!("no time is {} of every demand", self.at),
                },
                format!("intervals of {}", each.join("; of ")),
            )
        })?;
        let of_ranks = demands.iter().zip(&instances.each);
        let of_ranks = of_ranks.map(|(demand, interval)| RankDemand {
            database: demand.database.clone(),
            interval: interval.clone(),
        });
        let of_ranks = of_ranks.filter(|_| demands.len() > 1).collect();
        Ok((instances, of_ranks))
    }

    fn range(&self) -> Result<(f64, f64), Error> {
        let Some(text) = &self.multiples else {
            return Ok(MULTIPLES);
        };
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let range = text.split_once("..").and_then(|(low, high)| {
            let (low, high) = (number(low)?, number(high)?);
            (low >= 0.001 && low <= high && high <= 100_000.0).then_some((low, high))
        });
        range.ok_or_else(|| {
            usage!(
                "--multiples '{text}' is not a range of multiples",
                "write it as 1..8 or 0.5..4"
            )
        })
    }

    fn refuse_options(&self) -> Result<(), Error> {
        let (lowest, highest) = self.range()?;
        if !(lowest..=highest).contains(&self.need) {
            return Err(usage!(
                "--multiples {lowest}..{highest} has no place for --need {need}, the multiple that must \
                 be held",
                "name one of these with --need, or give a range with {need} in it",
                need = self.need
            ));
        }
        refuse_long_point("--point-time", self.point_time)?;
        if self.point_time < POINT_TIME_MIN {
            return Err(usage!(
                "--point-time {point_time} is too short for an interval",
                "give at least {POINT_TIME_MIN}",
                point_time = self.point_time
            ));
        }
        if !(0.01..=0.5).contains(&self.precision.get()) {
            return Err(usage!(
                "--precision {precision} cannot be reached",
                "give 1% to 50%",
                precision = self.precision
            ));
        }
        Ok(())
    }
}

/// A multiple: `2`, `2x`.
fn multiple(text: &str) -> Result<f64, Error> {
    let number = text.trim().trim_end_matches(['x', 'X', '×']).trim_end();
    number.parse().map_err(|_| {
        usage!(
            "'{text}' is not a multiple",
            "give a number, such as 2 for twice the demand"
        )
    })
}

/// Measures one target and shows its report; that of the only one as JSON if that is wanted. `None`
/// at a rank that only measures.
fn measure(mut job: Job, args: &MeasuringArgs, is_only: bool) -> Result<Option<Fitted>, Error> {
    let Some((measured, outcome)) = measuring::measure(&mut job, args)? else {
        return Ok(None);
    };
    let json = args.outcome.json;
    let place = job.results.path().to_path_buf();
    if is_only {
        page::show(&measured, &place, json);
    } else {
        // All of them are shown together.
        page::put(&measured.document(), &measured, &place);
    }
    let text = measured.json();
    let target = measured.run.header.facts.name.clone();
    let found = measured.results_of::<FitResult>("a fit")?;
    let fitted = Fitted {
        target,
        run: place,
        json: text,
        found: found.clone(),
        trust: measured.trust(),
    };
    measuring::conclude(job, outcome)?;
    Ok(Some(fitted))
}

/// Help for the targets, of which each is measured by itself.
pub(super) const TARGETS: &str = "Files, devices, directories for a scratch file, databases by their URLs, or a model: sim:… or \
     null:; each is measured by itself";

/// From the begin of the first interval to that of the last.
fn range_of(demand: &Demand) -> String {
    let mut begins = demand
        .intervals
        .iter()
        .filter_map(|interval| interval.begin);
    match (begins.next(), begins.next_back()) {
        (Some(first), Some(last)) => format!("{} to {}", first.short(), last.short()),
        (Some(only), None) => only.short(),
        (None, _) => "none has a time".into(),
    }
}

/// Refuses a demand of which nothing can be offered, or next to nothing; or nothing by one rank.
fn refuse_nothing_to_offer(request: &FitRequest) -> Result<(), Error> {
    let mut of_ranks = request.of_ranks.iter().enumerate();
    if let Some((rank, idle)) = of_ranks.find(|(_, one)| request.offered_by(one).is_empty()) {
        return Err(usage!(
            "rank {rank} would have nothing to offer: {database} asked for nothing in {label}",
            "give another time with --at; or --write, if it only wrote",
            database = idle.database,
            label = idle.interval.label
        ));
    }
    let offered: f64 = request.offered().iter().map(|one| one.per_s).sum();
    if offered >= 1.0 {
        return Ok(());
    }
    let left_out: Vec<String> = request
        .left_out()
        .into_iter()
        .map(|(kind, why)| format!("{}: {why}", kind.words()))
        .collect();
    Err(usage!(
        "there is no demand to speak of in {label}: {offered} I/Os per second to offer",
        if left_out.is_empty() {
            "give a demand of a busier time".into()
        } else {
            format!("left out: {}", left_out.join("; "))
        },
        label = request.interval.label,
        offered = quantity::multiple(offered.abs())
    ))
}

/// The multiple up to which a demand is offered at most. Refuses one of which nobody offers even the lowest.
fn most_multiple(request: &FitRequest) -> Result<f64, Error> {
    /// Operations per second.
    const MOST: f64 = 100e6;
    let offered: f64 = request.offered().iter().map(|one| one.per_s).sum();
    if offered * request.lowest.max(1.0) <= MOST {
        return Ok(MOST / offered);
    }
    Err(usage!(
        "{label} of {named} asks for {offered} I/Os per second, and at most {most} are offered",
        "look at its columns: are they operations of an interval, or per second?",
        label = request.interval.label,
        named = request.named,
        offered = quantity::count(offered.round()),
        most = quantity::count(MOST)
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::DemandKind;
    use rigel_model::examples::stream;
    use rigel_verbs::examples::fit as request;

    #[test]
    fn an_idle_database_has_no_demand_to_speak_of() {
        let asked = request(vec![stream(DemandKind::RandomReads, 0.4, None)]);
        let said = refuse_nothing_to_offer(&asked).unwrap_err().to_string();
        assert!(said.contains("0.4 I/Os per second"), "{said}");
        assert!(refuse_nothing_to_offer(&request(Vec::new())).is_err());
    }

    #[test]
    fn a_demand_that_nobody_offers_is_refused_and_its_multiples_end_where_nobody_does() {
        let asked = |per_s| request(vec![stream(DemandKind::RandomReads, per_s, None)]);
        assert_eq!(most_multiple(&asked(1e6)).ok(), Some(100.0));
        let said = most_multiple(&asked(2e9)).unwrap_err().to_string();
        assert!(said.contains("asks for 2,000,000,000 I/Os"), "{said}");
    }
}
