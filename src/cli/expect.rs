//! `rigel expect`: whether storage keeps what is expected of it, with an exit status for each answer.

use super::calibrate::size_of_io;
use super::expected::{AnswerArgs, ExpectationsAsked, check_list, neither, resumed};
use super::measuring::{self, MeasuringArgs};
use super::membership::Membership;
use super::outcome::RESULTS;
use super::outputs::Kept;
use super::{output, page};
use clap::Args;
use rigel_model::{Bytes, Error, Expectation, ExpectedOf, KIB, Nanos, Provisioned, Ratio, usage};
use rigel_report::data;
use rigel_verbs::expect::{ExpectRequest, Profile};
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Shortest time for all visits.
const BUDGET_MIN: Nanos = Nanos::from_secs(10);

/// What the first arguments are.
pub(super) const TARGETS: &str = "What is expected, each in quotes, or a profile; then files and \
                                  devices (addressed as one volume), a directory for a scratch file, \
                                  or a model such as sim:8,500us";

/// The word that shows the known profiles, in place of a target.
const LIST: &str = "list";

/// Size of an I/O where neither the user nor a profile says it.
const SIZE_USUAL: Bytes = Bytes(8 * KIB);

/// Decide whether a target keeps what is expected of it: met, not met, undecided, not measured
///
/// Expectations come before the target, each in quotes: 'iops>=3000', 'mbps>=125',
/// 'p99<2ms@3000/s' (an offered rate, at random times), 'p50<300us@depth:1', 'mean<1ms@3000/s',
/// 'no stall>1s' (no I/O takes longer, at any load), 'log p99<10ms' (durable appends of 4KiB, with
/// --write), 'log p99<10ms@grow:2300' (of 2,300 bytes to a file that grows; or @reserved, @sized,
/// @reused), 'writes>=5000@mix:4,30%' and 'write p99<2ms@mix:4,30%' (or reads, read: of 4
/// outstanding, of which 30 % are writes, with --write). IOPS are measured at depth 32 and MB/s at
/// depth 8, unless @depth:N says otherwise. With a margin, 'p99<10ms±5%', either answer may be given
/// within it. Loads are visited in turn until every line is decided, and the error is that of the
/// whole list.
///
/// 'not worse than RUN by 10%' stands for the figures of an earlier run, each with its own interval
/// forgiven.
///
/// A profile stands for several: gp3, or gp3:16000,1000 for a volume that is provisioned so. 'rigel
/// expect list' shows those that are known; a path that ends in .json is one of yours, an object
/// with its name and expect as 'rigel expect list --json' shows, and FILE.json:2500 gives its values.
#[derive(Debug, Args)]
#[command(
    override_usage = "rigel expect [OPTIONS] EXPECTATION|PROFILE... TARGET...\n       rigel expect \
                      --resume RUN\n       rigel expect list [--json]",
    after_help = "Exit status: 0 all are met, 1 failed or incomplete, 2 wrong usage, 3 one is not \
                  met; else 5 one was not measured, 4 one is undecided."
)]
pub(super) struct ExpectArgs {
    /// Maximum time of all visits: what is undecided then stays so
    #[arg(
        long,
        value_name = "TIME",
        default_value = "3min",
        visible_alias = "for",
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
    /// What the volume was sold with, such as 30000iops,500MB/s, for 'provisioned>=95%'
    #[arg(long, value_name = "RATES", conflicts_with = "resume")]
    provisioned: Option<Provisioned>,
    /// Size of an I/O; for MB/s at least 1MiB [default: that of the profile, or 8KiB]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    size: Option<Bytes>,
    /// Allow writes; needs --destroy unless Rigel made the target
    #[arg(long, conflicts_with = "resume")]
    write: bool,
    #[command(flatten)]
    measuring: MeasuringArgs,
    #[command(flatten, next_help_heading = RESULTS)]
    answers: AnswerArgs,
}

/// Measures until all is decided, and shows the lines.
pub(super) fn run(args: &ExpectArgs, membership: &Membership) -> Result<u8, Error> {
    args.measuring.enter(membership)?;
    if args.measuring.targets == [LIST] {
        list(args.measuring.outcome.json);
        return Ok(0);
    }
    membership.refuse_shared(
        "expect",
        "its expectations are of one host",
        "start one process, with --alone; rigel curve --max-latency measures all hosts together",
    )?;
    let (expected, targets) = apart(&args.measuring.targets, args.provisioned)?;
    let mut measuring = MeasuringArgs {
        targets,
        ..args.measuring.clone()
    };
    let expectations = &expected.expectations;
    if let Some(own) = expectations.iter().find(|one| one.is_of_own_file()) {
        let is_all = expectations.iter().all(Expectation::is_of_own_file);
        measuring.require_directory(&format!("'{own}'"), is_all)?;
    }
    let mut job = if let Some(run) = &measuring.outcome.resume {
        if let Some(first) = expected.expectations.first() {
            return Err(resumed(&first.to_string()));
        }
        measuring::resume(run, &measuring, membership, "expect", &[])?
    } else {
        let request = args.request(expected)?;
        if measuring.targets.is_empty() {
            return Err(usage!(
                "expectations are given, but no target",
                "name it behind them, such as rigel expect 'iops>=3000' /var/lib/data",
            ));
        }
        measuring::begin(&measuring, membership, Box::new(request), "auto")?
    };
    let kept = Kept::of_job(&job);
    args.answers.refuse_others(&kept)?;
    let Some((measured, outcome)) = measuring::measure(&mut job, &measuring)? else {
        return Ok(0);
    };
    page::show(&measured, job.results.path(), measuring.outcome.json);
    args.answers.tell(&measured, &kept)?;
    measuring::conclude(job, outcome)
}

/// Shows the known profiles.
fn list(is_json: bool) {
    let known = Profile::known();
    if is_json {
        output::json(&data::document(&known));
        return;
    }
    let shown = known.iter().map(|profile| {
        format!(
            "{profile}  {}\n{}",
            profile.about,
            in_lines(&profile.expect)
        )
    });
    output::result(&format!(
        "{each}Without the figures in brackets, the smallest that is sold. Sources: --json\n",
        each = shown.collect::<String>()
    ));
}

/// Expectations side by side, in as many lines as they need.
fn in_lines(all: &[String]) -> String {
    const WIDTH: usize = 80;
    let mut lines: Vec<String> = Vec::new();
    for one in all {
        let fits = |line: &&mut String| line.chars().count() + 2 + one.chars().count() <= WIDTH;
        match lines.last_mut().filter(fits) {
            Some(line) => line.extend(["  ", one]),
            None => lines.push(format!("  {one}")),
        }
    }
    lines.join("\n") + "\n"
}

/// What is expected, which comes first, and the targets behind it.
fn apart(
    arguments: &[OsString],
    sold: Option<Provisioned>,
) -> Result<(ExpectationsAsked, Vec<OsString>), Error> {
    let is_meant = |text: &OsStr| text.to_str().is_some_and(Expectation::is_meant);
    let mut asked = ExpectationsAsked {
        sold,
        ..ExpectationsAsked::default()
    };
    let mut first = 0;
    for argument in arguments {
        if !asked.include(&argument.to_string_lossy())? {
            break;
        }
        first += 1;
    }
    let targets = &arguments[first..];
    if let Some(late) = targets.iter().find(|argument| is_meant(argument)) {
        return Err(usage!(
            "'{late}' comes behind the target",
            "give what is expected first, and the target last",
            late = late.display()
        ));
    }
    Ok((asked, targets.to_vec()))
}

impl ExpectArgs {
    /// Size of a small I/O, in bytes.
    fn block(&self, by_profile: Option<&(Bytes, String)>) -> Result<u32, Error> {
        let size = match (self.size, by_profile) {
            (Some(size), Some((its, name))) if size != *its => {
                return Err(usage!(
                    "--size {size} is given, and '{name}' is about I/Os of {its}",
                    "leave --size out, or give its expectations one by one: rigel expect list"
                ));
            }
            (Some(size), _) | (None, Some(&(size, _))) => size,
            (None, None) => SIZE_USUAL,
        };
        size_of_io("--size", size)
    }

    fn request(&self, asked: ExpectationsAsked) -> Result<ExpectRequest, Error> {
        let ExpectationsAsked {
            expectations,
            profiles,
            size,
            ..
        } = asked;
        if expectations.is_empty() {
            if let [first, _, ..] = &self.measuring.targets[..]
                && !Path::new(first).exists()
            {
                return Err(neither(
                    &first.to_string_lossy(),
                    "a known profile, nor a file",
                ));
            }
            return Err(usage!(
                "nothing is expected of the target",
                "name it before the target, in quotes: 'iops>=3000', 'p99<2ms@3000/s'; or a profile: \
                 rigel expect list",
            ));
        }
        check_list(&expectations)?;
        // The files of a log are Rigel's own, and are refused where there is no directory for them.
        let mut written = expectations.iter().filter(|one| one.writes_to_target());
        if let Some(written) = written.next().filter(|_| !self.write) {
            let own = if written.of == ExpectedOf::Log {
                "; for a directory, @grow, @reserved, @sized or @reused behind it measures files \
                 that Rigel makes"
            } else {
                ""
            };
            return Err(usage!(
                "'{written}' needs writes, and this run may not write",
                "add --write, and --destroy PATH unless the target is a directory{own}",
            ));
        }
        if self.write && !expectations.iter().any(Expectation::writes) {
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
        let block = self.block(size.as_ref())?;
        Ok(ExpectRequest {
            expectations,
            profiles,
            block,
            large: ExpectRequest::LARGE.max(block),
            budget: self.budget,
            error: self.error,
        })
    }
}
