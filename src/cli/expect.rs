//! `rigel expect`: whether storage keeps what is expected of it, with an exit status for each answer.

use super::calibrate::size_of_io;
use super::exit_status::exit_status;
use super::measuring::{self, MeasuringArgs};
use super::{page, ranks};
use clap::Args;
use rigel_model::{Bytes, Error, Expectation, ExpectedOf, Nanos, Ratio, failed, files, usage};
use rigel_verbs::Evaluated;
use rigel_verbs::expect::{ExpectRequest, ExpectResult};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Shortest time for all visits.
const BUDGET_MIN: Nanos = Nanos::from_secs(10);

/// What the first arguments are.
pub(super) const TARGETS: &str = "What is expected, each in quotes; then files and devices (addressed \
                                  as one volume), a directory for a scratch file, or a model: sim:… \
                                  or null:";

/// Most expectations of one run: each has its part of the error.
const LINES_MAX: usize = 100;

/// Decide whether a target keeps what is expected of it: met, not met, undecided, not measured
///
/// Expectations come before the target, each in quotes: 'iops>=3000', 'mbps>=125',
/// 'p99<2ms@3000/s' (an offered rate, at random times), 'p50<300us@depth:1', 'mean<1ms@3000/s',
/// 'no stall>1s' (no I/O takes longer, at any load), 'log p99<10ms' (durable appends of 4KiB, with
/// --write). IOPS are measured at depth 32 and MB/s at depth 8, unless @depth:N says otherwise.
/// With a margin, 'p99<10ms±5%', either answer may be given within it. Loads are visited in turn
/// until every line is decided, and the error is that of the whole list.
#[derive(Debug, Args)]
#[command(
    override_usage = "rigel expect [OPTIONS] EXPECTATION... TARGET...\n       rigel expect --resume \
                      RUN",
    after_help = "Exit status: 0 all are met, 1 failed or incomplete, 2 wrong usage, 3 one is not \
                  met; else 5 one was not measured, 4 one is undecided."
)]
pub(super) struct ExpectArgs {
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// Maximum time of all visits: what is undecided then stays so
    #[arg(
        long,
        value_name = "TIME",
        default_value = "3min",
        conflicts_with = "resume"
    )]
    budget: Nanos,
    /// Share of runs with a wrong answer anywhere in their list
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "1%",
        conflicts_with = "resume"
    )]
    error: Ratio,
    /// Size of an I/O; for MB/s at least 1MiB
    #[arg(
        long,
        value_name = "SIZE",
        default_value = "8KiB",
        conflicts_with = "resume"
    )]
    size: Bytes,
    /// Also write the answers to this file, as JUnit XML for build servers
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Allow log writes; needs --destroy unless Rigel made the target
    #[arg(long, conflicts_with = "resume")]
    write: bool,
}

/// Measures until all is decided, and shows the lines.
pub(super) fn run(args: &ExpectArgs) -> Result<u8, Error> {
    args.measuring.enter()?;
    ranks::refuse_shared(
        "expect",
        "its expectations are of one host",
        "start one process, with --alone; rigel curve --max-latency measures all hosts together",
    )?;
    let (expected, targets) = apart(&args.measuring.targets)?;
    let measuring = MeasuringArgs {
        targets,
        ..args.measuring.clone()
    };
    let mut job = if let Some(run) = &measuring.outcome.resume {
        if !expected.is_empty() {
            return Err(usage!(
                "'{first}' is given with --resume",
                "a resumed run has its own expectations: leave them out, or start another run",
                first = expected[0]
            ));
        }
        measuring::resume(run, &measuring, "expect", None)?
    } else {
        let request = args.request(expected)?;
        if measuring.targets.is_empty() {
            return Err(usage!(
                "expectations are given, but no target",
                "name it behind them, such as rigel expect 'iops>=3000' /var/lib/data",
            ));
        }
        measuring::begin(&measuring, Box::new(request), "auto")?
    };
    let Some((run, stopped)) = measuring::measure(&mut job, &measuring)? else {
        return Ok(0);
    };
    let measured = Evaluated::of(run)?;
    page::show(&measured, job.results.path(), measuring.outcome.json);
    let found = measured.results.downcast_ref::<ExpectResult>();
    if let Some((file, found)) = args.junit.as_deref().zip(found) {
        write_junit(file, &found.junit(&measured.run.header.facts.name))?;
    }
    let status = found.map_or(0, |found| exit_status(found.outcome));
    measuring::conclude(job, &measured, stopped, status)
}

fn write_junit(file: &Path, xml: &str) -> Result<(), Error> {
    files::replace(file, xml.as_bytes()).map_err(|error| {
        failed!(
            "cannot write '{file}': {error}",
            "the journal is complete: rigel report RUN --json has the same answers",
            file = file.display()
        )
    })
}

/// The expectations, which come first, and the targets behind them.
fn apart(arguments: &[OsString]) -> Result<(Vec<Expectation>, Vec<OsString>), Error> {
    let is_meant = |text: &OsStr| text.to_str().is_some_and(Expectation::is_meant);
    let first = arguments.iter().position(|argument| !is_meant(argument));
    let (expected, targets) = arguments.split_at(first.unwrap_or(arguments.len()));
    if let Some(late) = targets.iter().find(|argument| is_meant(argument)) {
        return Err(usage!(
            "'{late}' comes behind the target",
            "give what is expected first, and the target last",
            late = late.display()
        ));
    }
    let read = |text: &OsString| text.to_string_lossy().parse();
    let expected = expected.iter().map(read).collect::<Result<_, Error>>()?;
    Ok((expected, targets.to_vec()))
}

impl ExpectArgs {
    fn request(&self, expectations: Vec<Expectation>) -> Result<ExpectRequest, Error> {
        if expectations.is_empty() {
            return Err(usage!(
                "nothing is expected of the target",
                "name it before the target, in quotes: 'iops>=3000', 'p99<2ms@3000/s'",
            ));
        }
        if expectations.len() > LINES_MAX {
            return Err(usage!(
                "{count} expectations are too many for one run",
                "give at most {LINES_MAX}",
                count = expectations.len()
            ));
        }
        for (at, one) in expectations.iter().enumerate() {
            if expectations[..at].contains(one) {
                return Err(usage!(
                    "'{one}' is given twice",
                    "give every expectation once"
                ));
            }
        }
        let log = expectations.iter().find(|one| one.of == ExpectedOf::Log);
        if let Some(log) = log.filter(|_| !self.write) {
            return Err(usage!(
                "'{log}' needs log writes, and this run may not write",
                "add --write, and --destroy PATH unless the target is a directory",
            ));
        }
        if log.is_none() && self.write {
            return Err(usage!(
                "--write is given, and nothing is expected of writes",
                "omit it, or expect something such as 'log p99<10ms'",
            ));
        }
        if self.budget < BUDGET_MIN {
            return Err(usage!(
                "--budget {budget} is too short for an answer",
                "give 10s or more, such as 3min",
                budget = self.budget
            ));
        }
        if !(1e-6..=0.2).contains(&self.error.get()) {
            return Err(usage!(
                "--error {error} is out of range",
                "give 0.0001% to 20%; 1% is usual",
                error = self.error.exact()
            ));
        }
        let block = size_of_io("--size", self.size)?;
        Ok(ExpectRequest {
            expectations,
            block,
            large: ExpectRequest::LARGE.max(block),
            budget: self.budget,
            error: self.error,
        })
    }
}
