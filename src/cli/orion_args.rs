//! The command line of `orion`: Orion's own options with a single dash, and Rigel's additional
//! options.
//!
//! Input: the arguments after the program's name or the verb. Output: [`Parsed`], and from it by
//! [`OrionArgs::resolve`] a checked [`OrionRequest`] and its [`Target`]. Every refusal names the
//! option, its value and the valid values. Opens nothing, prints nothing.

use super::measuring::engines;
use super::outcome::OutcomeArgs;
use super::target::GivenTargets;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{ArgAction, CommandFactory, FromArgMatches, Parser};
use rigel_analyse::plan::{Plan, SIZE_KB_MAX};
use rigel_device::engine;
use rigel_model::{Bytes, Error, KIB, Layout, Target, usage};
use rigel_verbs::orion::LargeType;
use rigel_verbs::orion::Matrix;
use rigel_verbs::orion::OrionRequest;
use rigel_verbs::orion::RunLevel;
use rigel_verbs::orion::plan::{DURATION, NUM_STREAM_IO, SIZE_LARGE, SIZE_SMALL};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Measure storage as Oracle's ORION does, with its options and files, and a journal.
///
/// Each data point has a constant number of small I/Os (columns) and of large I/Os or sequential
/// streams (rows) outstanding.
#[derive(Debug, Clone, Parser)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own, in any combination"
)]
#[command(
    name = "orion",
    no_binary_name = true,
    disable_version_flag = true,
    disable_help_flag = true,
    override_usage = "orion --run LEVEL [--testname NAME] [OPTIONS]",
    after_help = "Targets are listed in NAME.lun, one per line, or given with --target.\nOrion's \
                  own files are written to the directory of --out, or to the current \
                  one.\nExample: orion --run oltp --testname mytest --num_disks 4\nExit status: 0 \
                  complete, 1 failed or incomplete, 2 wrong usage."
)]
pub struct OrionArgs {
    /// Run level: which loads to measure
    #[arg(
        long, value_name = "LEVEL", help_heading = ORIONS, ignore_case = true, value_parser = run_level(),
        required_unless_present = "resume"
    )]
    pub run: Option<RunLevel>,
    /// Test name: targets are read from NAME.lun, and names of all result files begin with it; may
    /// include a path
    #[arg(long, value_name = "NAME", help_heading = ORIONS, default_value = "orion")]
    pub testname: String,
    /// Number of disks; it only scales the range of loads [default: the number of targets]
    #[arg(long = "num_disks", value_name = "N", help_heading = ORIONS, value_parser = at_least(1))]
    pub num_disks: Option<u32>,
    /// Size of a small I/O
    #[arg(
        long = "size_small", value_name = "KB", help_heading = ORIONS, value_parser = size_kb(),
        default_value_t = kb(SIZE_SMALL)
    )]
    pub size_small: u32,
    /// Size of a large I/O
    #[arg(
        long = "size_large", value_name = "KB", help_heading = ORIONS, value_parser = size_kb(),
        default_value_t = kb(SIZE_LARGE)
    )]
    pub size_large: u32,
    /// Large I/O: random, or in sequential streams
    #[arg(
        long = "type", value_name = "TYPE", help_heading = ORIONS, ignore_case = true, value_parser = large_type(),
        default_value = "rand"
    )]
    pub large_type: LargeType,
    /// Outstanding I/Os of each sequential stream
    #[arg(
        long = "num_streamIO", value_name = "N", help_heading = ORIONS, value_parser = at_least(1),
        default_value_t = NUM_STREAM_IO
    )]
    pub num_stream_io: u32,
    /// How the targets are combined into one volume
    #[arg(
        long, value_name = "LAYOUT", help_heading = ORIONS, ignore_case = true, value_parser = simulate(),
        default_value = "concat"
    )]
    pub simulate: Simulate,
    /// Stripe depth for raid0 [default: 1024, or more if an I/O is larger]
    #[arg(long, value_name = "KB", help_heading = ORIONS, value_parser = size_kb())]
    pub stripe: Option<u32>,
    /// Percentage of writes among the I/Os; writes destroy the targets' data
    #[arg(
        long, value_name = "PERCENT", help_heading = ORIONS, value_parser = clap::value_parser!(u32).range(0..=100),
        default_value_t = 0
    )]
    pub write: u32,
    /// Amount to read at random before each data point; 0 = no warm-up [default: warm up with the
    /// point's own load]
    #[arg(long = "cache_size", value_name = "MB", help_heading = ORIONS, value_parser = at_least(0))]
    pub cache_size: Option<u32>,
    /// Measured time of each data point
    #[arg(long, value_name = "SECONDS", help_heading = ORIONS, value_parser = at_least(1), default_value_t = DURATION)]
    pub duration: u32,
    /// Which data points to measure [default: depends on the run level]
    #[arg(long, value_name = "MATRIX", help_heading = ORIONS, ignore_case = true, value_parser = matrix())]
    pub matrix: Option<Matrix>,
    /// Small load for point, col and max; for other matrices, the maximum small load
    #[arg(long = "num_small", value_name = "N", help_heading = ORIONS, value_parser = at_least(0))]
    pub num_small: Option<u32>,
    /// Large load for point, row and max; for other matrices, the maximum large load
    #[arg(long = "num_large", value_name = "N", help_heading = ORIONS, value_parser = at_least(0))]
    pub num_large: Option<u32>,
    /// Print each data point as it begins
    #[arg(long, help_heading = ORIONS)]
    pub verbose: bool,
    /// Accepted, has no effect: the Exadata storage library is not supported
    #[arg(long, help_heading = ORIONS)]
    pub storax: bool,
    /// Accepted, has no effect: huge pages are not used
    #[arg(long, help_heading = ORIONS)]
    pub hugenotneeded: bool,
    /// Print help
    #[arg(short, long, help_heading = ORIONS, action = ArgAction::HelpShort)]
    pub help: Option<bool>,

    /// Target instead of NAME.lun: a file, a device, a directory for a scratch file, sim:… or
    /// null:; may be repeated
    #[arg(long, value_name = "PATH", help_heading = RIGELS)]
    pub target: Vec<OsString>,
    /// Size of the scratch file, such as 4GiB [default: depends on the free space]
    #[arg(long, value_name = "SIZE", help_heading = RIGELS)]
    pub scratch_size: Option<Bytes>,
    /// Keep the scratch file
    #[arg(long, help_heading = RIGELS)]
    pub keep: bool,
    /// I/O engine; auto is the best one that works here
    #[arg(
        long, value_name = "ENGINE", help_heading = RIGELS, ignore_case = true,
        value_parser = engines().map(|name| name.to_ascii_lowercase()),
        default_value = "auto"
    )]
    pub engine: String,
    /// Use the page cache instead of direct I/O
    #[arg(long, help_heading = RIGELS)]
    pub buffered: bool,
    /// Compare every block that is read with what was written; name those that differ
    #[arg(long, help_heading = RIGELS)]
    pub verify: bool,
    /// Allow targets with holes: blocks that were never written
    #[arg(long, help_heading = RIGELS)]
    pub allow_holes: bool,
    /// Target that Rigel may overwrite, by the same path; may be repeated
    #[arg(long, value_name = "PATH", help_heading = RIGELS)]
    pub destroy: Vec<PathBuf>,
    #[expect(missing_docs, reason = "clap would show it instead of the options")]
    #[command(flatten, next_help_heading = RIGELS)]
    pub outcome: OutcomeArgs,
    /// Minimum number of threads; psync has one per outstanding I/O [default: 1]
    #[arg(long, value_name = "N", help_heading = RIGELS, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub workers: Option<u32>,

    /// Which of Orion's options were given, without dashes; the others have their defaults
    #[arg(skip)]
    pub given: Vec<String>,
}

const ORIONS: &str = "Orion's options";
const RIGELS: &str = "Rigel's options";

/// Orion's options in its spelling, with the valid values of each. Tests compare this table with
/// the definition above.
const ORION_OPTIONS: [(&str, &str); 19] = [
    ("run", "one of oltp, dss, simple, normal, advanced"),
    ("testname", "a name, which may include a path"),
    ("num_disks", "a whole number of at least 1"),
    ("size_small", "a whole number of KB from 1 to 1048576"),
    ("size_large", "a whole number of KB from 1 to 1048576"),
    ("type", "rand or seq"),
    ("num_streamIO", "a whole number of at least 1"),
    ("simulate", "concat or raid0"),
    ("stripe", "a whole number of KB from 1 to 1048576"),
    (
        "write",
        "a whole number from 0 to 100: the percentage of I/Os that are writes",
    ),
    ("cache_size", "a whole number of MB; 0 = no warm-up"),
    ("duration", "a whole number of seconds, at least 1"),
    ("matrix", "one of basic, detailed, point, row, col, max"),
    ("num_small", "a whole number"),
    ("num_large", "a whole number"),
    ("verbose", ""),
    ("storax", ""),
    ("hugenotneeded", ""),
    ("help", ""),
];

/// Rigel's options with a value, and the valid values of each; `valid_values` has those of
/// `--engine`.
const RIGEL_VALUES: [(&str, &str); 14] = [
    (
        "target",
        "a file, a block device, a directory, sim:SERVERS,SERVICE_TIME or null:",
    ),
    ("scratch-size", "a size such as 512MiB or 4GiB"),
    ("destroy", "the path of a target, as given there"),
    ("out", "a directory that is empty or does not exist"),
    ("resume", "the directory of a run, or its journal"),
    ("metrics", "an address such as 127.0.0.1:9464"),
    ("workers", "a whole number from 1 to 1024"),
    ("seed", "a whole number"),
    ("hosts", "a whole number from 1"),
    ("join", "a time such as 60s"),
    (
        "rank-journals",
        "a directory, in which each other rank makes its own",
    ),
    ("rank-address", "a name or an address of this host"),
    ("rank-ports", "a port, or a range such as 7000-7099"),
    ("rank-silence", "a time such as 60s"),
];

/// How the targets are combined into one volume, as in `-simulate`; the stripe is given by
/// `-stripe`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Simulate {
    /// One after the other.
    Concat,
    /// In turn, a stripe each.
    Raid0,
}

fn kb(bytes: u32) -> u32 {
    bytes / 1024
}

/// A parser for the names of `all`, ignoring case.
fn words<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(all.iter().map(|value| name(*value))).map(move |word| {
        let named = all
            .iter()
            .find(|value| name(**value).eq_ignore_ascii_case(&word));
        *named.expect("the parser lets only these words through")
    })
}

fn run_level() -> impl TypedValueParser<Value = RunLevel> {
    words(&RunLevel::ALL, RunLevel::name)
}

fn large_type() -> impl TypedValueParser<Value = LargeType> {
    words(&LargeType::ALL, LargeType::name)
}

fn matrix() -> impl TypedValueParser<Value = Matrix> {
    words(&Matrix::ALL, Matrix::name)
}

fn simulate() -> impl TypedValueParser<Value = Simulate> {
    words(
        &[Simulate::Concat, Simulate::Raid0],
        |simulate| match simulate {
            Simulate::Concat => "concat",
            Simulate::Raid0 => "raid0",
        },
    )
}

fn at_least(least: i64) -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(least..)
}

fn size_kb() -> impl TypedValueParser<Value = u32> {
    clap::value_parser!(u32).range(1..=i64::from(SIZE_KB_MAX))
}

/// The definition of the command line with double dashes, for help, completions and manual pages.
pub fn command() -> clap::Command {
    // A negative number is an invalid value, reported with its option, and not an unknown option.
    let negative = |arg: clap::Arg| {
        if arg.get_action().takes_values() {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    };
    OrionArgs::command().mut_args(negative)
}

/// What the arguments request.
#[derive(Debug, Clone)]
pub enum Parsed {
    /// A measurement.
    Measure(Box<OrionArgs>),
    /// A text to print: the help, or the version.
    Help(String),
}

/// Parses the arguments, without the program's name or the verb.
///
/// # Errors
/// An argument is unknown, has no value or an invalid one, or contradicts another.
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Parsed, Error> {
    let typed: Vec<OsString> = arguments.into_iter().collect();
    if let [only] = &typed[..]
        && ["--version", "-version", "-V"]
            .iter()
            .any(|version| only == version)
    {
        return Ok(Parsed::Help(format!(
            "orion of rigel {}\n",
            env!("CARGO_PKG_VERSION")
        )));
    }
    let normal = double_dash(&typed)?;
    let matches = match command().try_get_matches_from(normal) {
        Ok(matches) => matches,
        Err(error) if error.kind() == ErrorKind::DisplayHelp => {
            return Ok(Parsed::Help(single_dash(&error.render().to_string())));
        }
        Err(error) => return Err(refusal(&error, &typed)),
    };
    let mut args =
        OrionArgs::from_arg_matches(&matches).map_err(|error| refusal(&error, &typed))?;
    let from_here = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    args.given = command()
        .get_arguments()
        .filter(|arg| from_here(arg.get_id().as_str()))
        .filter_map(|arg| arg.get_long().map(String::from))
        .filter(|long| is_orions(long))
        .collect();
    args.check()?;
    Ok(Parsed::Measure(Box::new(args)))
}

/// True for one of Orion's options, in its own spelling and without dashes.
fn is_orions(name: &str) -> bool {
    ORION_OPTIONS.iter().any(|(option, _)| *option == name)
}

/// Converts Orion's options to the double-dash form of the parser; everything else is unchanged.
fn double_dash(typed: &[OsString]) -> Result<Vec<OsString>, Error> {
    let mut normal = Vec::with_capacity(typed.len());
    for argument in typed {
        let dashed = argument.to_str().and_then(|text| text.strip_prefix('-'));
        let Some(rest) = dashed.filter(|rest| {
            rest.trim_start_matches('-')
                .starts_with(|c: char| c.is_ascii_alphabetic())
        }) else {
            normal.push(argument.clone());
            continue;
        };
        let (double, rest) = rest
            .strip_prefix('-')
            .map_or((false, rest), |rest| (true, rest));
        let (name, value) = rest.find('=').map_or((rest, ""), |at| rest.split_at(at));
        if let Some((known, _)) = ORION_OPTIONS
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
        {
            normal.push(format!("--{known}{value}").into());
        } else if double || name.len() == 1 {
            normal.push(argument.clone());
        } else if command()
            .get_arguments()
            .any(|arg| arg.get_long() == Some(name))
        {
            return Err(usage!(
                "unknown option '-{name}'",
                "--{name} has two dashes, because it is Rigel's own option and not Orion's"
            ));
        } else {
            normal.push(format!("--{rest}").into());
        }
    }
    Ok(normal)
}

/// Converts Orion's options in a text to Orion's form: `--run` becomes `-run`. At the start of a
/// line a space replaces the removed dash, so that columns stay aligned.
fn single_dash(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("--") {
        let (before, after) = (&rest[..at], &rest[at + 2..]);
        let name = &after[..after
            .find(|c: char| !c.is_ascii_alphanumeric() && !"_-".contains(c))
            .unwrap_or(after.len())];
        out.push_str(before);
        let indented = out
            .rsplit('\n')
            .next()
            .is_some_and(|line| !line.is_empty() && line.trim().trim_end_matches("-h,").is_empty());
        out.push_str(match (is_orions(name), indented) {
            (true, true) => " -",
            (true, false) => "-",
            (false, _) => "--",
        });
        out.push_str(name);
        rest = &after[name.len()..];
    }
    out.push_str(rest);
    out
}

/// A manual page with Orion's options in Orion's form. In roff, a dash is `\\-`.
pub(super) fn single_dash_roff(page: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(page).replace("\\-", "-");
    single_dash(&text).replace('-', "\\-").into_bytes()
}

/// A parser error as a refusal that names the option, its value and the valid values.
fn refusal(error: &clap::Error, typed: &[OsString]) -> Error {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    // The text is "--run <LEVEL>": the option and its value's name.
    let argument = text(ContextKind::InvalidArg).unwrap_or_default();
    let long = argument.split(' ').next().unwrap_or_default();
    let option = single_dash(long);
    let valid = valid_values(long.trim_start_matches('-'));
    let value = text(ContextKind::InvalidValue).unwrap_or_default();
    match error.kind() {
        ErrorKind::UnknownArgument => unknown(long, text(ContextKind::SuggestedArg), typed),
        ErrorKind::InvalidValue | ErrorKind::ValueValidation if value.is_empty() => {
            usage!("{option} has no value", "give {valid}")
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            usage!("{option} '{value}' is not valid", "give {valid}")
        }
        ErrorKind::TooManyValues => usage!("{option} takes no value", "write {option} alone"),
        ErrorKind::ArgumentConflict => match text(ContextKind::PriorArg) {
            Some(other) if !other.starts_with(long) => usage!(
                "{long} and {other} exclude each other",
                "leave one of them out"
            ),
            _ => usage!("{option} is given twice", "give it once"),
        },
        ErrorKind::MissingRequiredArgument => {
            usage!("{option} is missing", "give {option} and {valid}")
        }
        ErrorKind::InvalidUtf8 => {
            let bad = typed
                .iter()
                .find(|argument| argument.to_str().is_none())
                .cloned()
                .unwrap_or_default();
            usage!(
                "'{bad}' is not UTF-8 text",
                "only paths may contain other bytes",
                bad = bad.display()
            )
        }
        _ => {
            let rendered = single_dash(&error.render().to_string());
            let first = rendered.lines().next().unwrap_or_default();
            Error::usage(
                first.trim_start_matches("error: "),
                "-help lists the options",
            )
        }
    }
}

/// A refusal of an argument that the parser does not know, in the form in which it was typed.
fn unknown(long: &str, suggestion: Option<String>, typed: &[OsString]) -> Error {
    let single = long.strip_prefix('-').unwrap_or(long);
    let has = |form: &str| {
        let whole = |text: &str| {
            text == form
                || text
                    .strip_prefix(form)
                    .is_some_and(|rest| rest.starts_with('='))
        };
        typed
            .iter()
            .filter_map(|argument| argument.to_str())
            .any(whole)
    };
    let form = if single.starts_with('-') && has(single) {
        single
    } else {
        long
    };
    if !form.starts_with('-') {
        let hint = "options begin with a dash; targets are given in a .lun file or with --target";
        return usage!("'{form}' is not an option", hint);
    }
    let hint = match suggestion {
        Some(suggestion) => format!(
            "did you mean {}? -help lists the options",
            single_dash(&suggestion)
        ),
        None => "-help lists the options".into(),
    };
    usage!("unknown option '{form}'", hint)
}

/// The valid values of the option `name`.
fn valid_values(name: &str) -> String {
    if name == "engine" {
        return format!("one of {}", engine::names().collect::<Vec<_>>().join(", "));
    }
    let mut options = ORION_OPTIONS.iter().chain(&RIGEL_VALUES);
    options
        .find(|(option, _)| *option == name)
        .map_or("a value", |(_, valid)| valid)
        .into()
}

impl OrionArgs {
    /// Refuses contradictions that can be found without the targets.
    fn check(&self) -> Result<(), Error> {
        let Some(run) = &self.outcome.resume else {
            return Ok(());
        };
        let fixed = self
            .given
            .iter()
            .find(|option| *option != "verbose")
            .map(|option| format!("-{option}"));
        let rigels = [
            ("--engine", self.engine != "auto"),
            ("--buffered", self.buffered),
            ("--verify", self.verify),
            ("--allow-holes", self.allow_holes),
            ("--workers", self.workers.is_some()),
        ];
        let rigels = rigels
            .into_iter()
            .find(|(_, given)| *given)
            .map(|(option, _)| option.to_string());
        match fixed.or(rigels) {
            None => Ok(()),
            Some(option) => Err(usage!(
                "{option} cannot be given with --resume {run}",
                "a resumed run has its original options; start another run to change them",
                run = run.display()
            )),
        }
    }

    /// The request and its target. `lun` reads the LUN file, and is called only if no target was
    /// given; `is_directory` checks a path.
    ///
    /// # Errors
    /// The request or the target is invalid, or `lun` failed.
    pub fn resolve(
        &self,
        lun: impl FnOnce() -> Result<Vec<PathBuf>, Error>,
        is_directory: impl Fn(&Path) -> bool,
    ) -> Result<(OrionRequest, Target), Error> {
        let target = match self.given().model()? {
            Some(target) => target,
            None if self.target.is_empty() => {
                let members = lun()?;
                if let Some(directory) = members.iter().find(|member| is_directory(member)) {
                    let name = directory.display();
                    return Err(usage!(
                        "'{name}' in the LUN file is a directory",
                        "list files or devices there, or make a scratch file with --target {name}"
                    ));
                }
                Target::Paths {
                    members,
                    layout: Layout::Concat,
                }
            }
            None => self.given().paths(|path| Ok(is_directory(path)))?,
        };
        self.given().check_scratch(&target)?;
        let disks = match &target {
            Target::Paths { members, .. } => u32::try_from(members.len()).unwrap_or(u32::MAX),
            Target::Scratch { .. } | Target::Sim(_) | Target::Null { .. } | Target::Sql(_) => 1,
        };
        let request = self.request(disks)?;
        let target = match target {
            Target::Paths { members, .. } => Target::Paths {
                members,
                layout: request.simulate,
            },
            other => other,
        };
        Ok((request, target))
    }

    /// The request alone, for `targets` files or devices.
    ///
    /// # Errors
    /// The request is invalid.
    pub fn request(&self, targets: u32) -> Result<OrionRequest, Error> {
        let run = self.run.ok_or_else(|| {
            usage!(
                "-run is missing",
                "give {values}",
                values = valid_values("run")
            )
        })?;
        let mut request = OrionRequest {
            run,
            testname: self.testname.clone(),
            num_disks: self.num_disks.unwrap_or(targets),
            size_small: bytes_of(self.size_small),
            size_large: bytes_of(self.size_large),
            large_type: self.large_type,
            num_stream_io: self.num_stream_io,
            simulate: Layout::Concat,
            write: self.write,
            cache_size: self.cache_size,
            duration: self.duration,
            matrix: self.matrix,
            num_small: self.num_small,
            num_large: self.num_large,
            verbose: self.verbose,
            given: self.given.clone(),
        };
        if self.simulate == Simulate::Raid0 {
            let given = self.stripe.map(|kb| Bytes(u64::from(kb) * KIB));
            request.simulate = Layout::Stripe {
                stripe: given.unwrap_or_else(|| request.default_stripe()),
            };
        }
        request.check_values()?;
        Ok(request)
    }

    /// A sentence for each given option that has no effect here.
    pub fn remarks(&self) -> Vec<String> {
        let remarks = [
            (
                self.storax,
                "-storax has no effect: it is for Exadata's storage library, which only Oracle's \
                 program has",
            ),
            (
                self.hugenotneeded,
                "-hugenotneeded has no effect: huge pages are not used",
            ),
            (
                !self.destroy.is_empty() && self.write == 0 && self.outcome.resume.is_none(),
                "--destroy has no effect: without -write nothing is written",
            ),
        ];
        remarks
            .into_iter()
            .filter(|(given, _)| *given)
            .map(|(_, remark)| remark.to_string())
            .collect()
    }

    fn given(&self) -> GivenTargets<'_> {
        GivenTargets {
            targets: &self.target,
            option: "--target ",
            scratch_size: self.scratch_size,
            keep: self.keep,
        }
    }
}

/// Converts KB to bytes; sizes on the command line are checked to fit.
fn bytes_of(kb: u32) -> u32 {
    kb.saturating_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rigel_model::GIB;

    fn parsed(line: &str) -> Result<Parsed, Error> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn args(line: &str) -> OrionArgs {
        match parsed(line) {
            Ok(Parsed::Measure(args)) => *args,
            other => panic!("{line}: {other:?}"),
        }
    }

    fn refused(line: &str) -> String {
        let error = match parsed(line) {
            Ok(Parsed::Measure(args)) => args
                .resolve(|| Ok(vec!["/dev/a".into()]), |path| path.ends_with("dir"))
                .unwrap_err(),
            Ok(Parsed::Help(_)) => panic!("{line} asks for help"),
            Err(error) => error,
        };
        assert_eq!(error.exit_status(), 2, "{line}: {error}");
        error.to_string()
    }

    #[test]
    fn one_dash_or_two_in_any_case_mean_the_same() {
        for line in [
            "-run oltp -num_streamIO 8",
            "--run oltp --num_streamIO 8",
            "-RUN OLTP -num_streamio=8",
        ] {
            let args = args(line);
            assert_eq!(
                (args.run, args.num_stream_io),
                (Some(RunLevel::Oltp), 8),
                "{line}"
            );
            assert_eq!(args.given, ["run", "num_streamIO"]);
        }
        assert_eq!(
            args("-run Simple -simulate RAID0").simulate,
            Simulate::Raid0
        );
    }

    #[test]
    fn defaults_are_orions() {
        let (request, target) = args("-run simple")
            .resolve(|| Ok(vec!["/dev/a".into(), "/dev/b".into()]), |_| false)
            .unwrap();
        assert_eq!(
            request,
            OrionRequest {
                num_disks: 2,
                given: vec!["run".into()],
                ..OrionRequest::new(RunLevel::Simple)
            }
        );
        let members = vec!["/dev/a".into(), "/dev/b".into()];
        assert_eq!(
            target,
            Target::Paths {
                members,
                layout: Layout::Concat
            }
        );
    }

    #[test]
    fn every_option_reaches_the_request() {
        let line = "-run advanced -testname /tmp/o -num_disks 3 -size_small 4 -size_large 512 \
                    -type seq -num_streamIO 2 -simulate raid0 -stripe 2048 -write 30 -cache_size \
                    0 -duration 5 -matrix point -num_small 7 -num_large 6 -verbose";
        let (request, target) = args(line)
            .resolve(|| Ok(vec!["/dev/a".into()]), |_| false)
            .unwrap();
        let layout = Layout::Stripe {
            stripe: Bytes(2048 * KIB),
        };
        let expected = OrionRequest {
            testname: "/tmp/o".into(),
            num_disks: 3,
            size_small: 4096,
            size_large: 524_288,
            large_type: LargeType::Seq,
            num_stream_io: 2,
            simulate: layout,
            write: 30,
            cache_size: Some(0),
            duration: 5,
            matrix: Some(Matrix::Point),
            num_small: Some(7),
            num_large: Some(6),
            verbose: true,
            given: request.given.clone(),
            ..OrionRequest::new(RunLevel::Advanced)
        };
        assert_eq!(request, expected);
        assert_eq!(request.given.len(), 16);
        assert_eq!(
            target,
            Target::Paths {
                members: vec!["/dev/a".into()],
                layout
            }
        );
    }

    #[test]
    fn targets_may_be_paths_a_directory_or_a_model() {
        let resolve = |line: &str| {
            args(line)
                .resolve(
                    || panic!("the LUN file is not wanted"),
                    |path| path.ends_with("dir"),
                )
                .unwrap()
                .1
        };
        assert_eq!(
            resolve("-run oltp --target /data/dir --scratch-size 1GiB --keep"),
            Target::Scratch {
                directory: "/data/dir".into(),
                bytes: Some(Bytes(GIB)),
                keep: true
            }
        );
        assert!(
            matches!(resolve("-run oltp --target sim:2,100us"), Target::Sim(spec) if spec.servers == 2)
        );
        assert_eq!(
            resolve("-run oltp --target null:"),
            Target::Null {
                bytes: Bytes(4 * GIB)
            }
        );
        assert_eq!(
            resolve("-run oltp --target a --target b"),
            Target::Paths {
                members: vec!["a".into(), "b".into()],
                layout: Layout::Concat
            }
        );
    }

    #[test]
    fn a_refusal_names_the_option_the_value_and_valid_values() {
        for (line, words) in [
            (
                "",
                &["-run is missing", "oltp, dss, simple, normal, advanced"][..],
            ),
            ("-run", &["-run has no value", "oltp, dss"]),
            ("-run fast", &["-run 'fast' is not valid", "oltp, dss"]),
            (
                "-run oltp -num_disks x",
                &["-num_disks 'x' is not valid", "at least 1"],
            ),
            ("-run oltp -num_disks 0", &["-num_disks '0'", "at least 1"]),
            (
                "-run oltp -num_disks -3",
                &["-num_disks '-3'", "at least 1"],
            ),
            ("-run oltp -write 101", &["-write '101'", "0 to 100"]),
            ("-run oltp -write -1", &["-write '-1'", "0 to 100"]),
            ("-run oltp -duration 0", &["-duration '0'"]),
            ("-run oltp -testname -write 3", &["-testname has no value"]),
            (
                "-run oltp -nmu_disks 3",
                &["unknown option '-nmu_disks'", "did you mean -num_disks?"],
            ),
            (
                "-run oltp --nmu_disks 3",
                &["unknown option '--nmu_disks'", "did you mean -num_disks?"],
            ),
            (
                "-run oltp -engine psync",
                &["'-engine'", "--engine has two dashes"],
            ),
            (
                "-run oltp --engine fio",
                &["--engine 'fio' is not valid", "libaio"],
            ),
            ("-run oltp -x", &["unknown option '-x'"]),
            (
                "-run oltp /dev/sdb",
                &["'/dev/sdb' is not an option", "--target"],
            ),
            ("-run oltp -run dss", &["-run is given twice"]),
            ("-run oltp -verbose=yes", &["-verbose takes no value"]),
            (
                "-run oltp --seed minus",
                &["--seed 'minus' is not valid", "a whole number"],
            ),
            (
                "-run oltp --scratch-size big",
                &["--scratch-size 'big' is not valid", "4GiB"],
            ),
            ("-run oltp --target sim:0,1ms", &["sim:0,1ms"]),
            (
                "-run oltp --target sim: --target /a",
                &["sim:", "only target"],
            ),
            ("-run oltp --target /a --target /a", &["/a", "twice"]),
            (
                "-run oltp --target dir --target /a",
                &["dir", "give only the directory"],
            ),
            ("-run oltp --target /a --keep", &["/a", "--target DIR"]),
            (
                "-run advanced -matrix point -num_small 1",
                &["needs -num_large"],
            ),
            ("--resume run -duration 5", &["-duration", "--resume run"]),
            ("--resume run --engine psync", &["--engine", "--resume run"]),
        ] {
            let message = refused(line);
            assert!(
                words.iter().all(|word| message.contains(word)),
                "{line}: {message}"
            );
        }
    }

    #[test]
    fn a_directory_in_the_lun_file_is_refused() {
        let error = args("-run oltp")
            .resolve(|| Ok(vec!["/data/dir".into()]), |_| true)
            .unwrap_err();
        assert!(error.to_string().contains("--target /data/dir"), "{error}");
    }

    #[test]
    fn a_run_is_resumed_without_orions_options() {
        let args = args("--resume some/run -verbose");
        assert_eq!(
            (args.run, args.outcome.resume.as_deref()),
            (None, Some(Path::new("some/run")))
        );
    }

    #[test]
    fn options_without_effect_are_explained() {
        let remarks = args("-run oltp -storax -hugenotneeded").remarks();
        assert!(
            remarks[0].starts_with("-storax") && remarks[1].starts_with("-hugenotneeded"),
            "{remarks:?}"
        );
        assert!(args("-run oltp").remarks().is_empty());
    }

    #[test]
    fn help_shows_each_option_in_its_own_form() {
        for line in ["-help", "--help", "-h", "-run oltp -help"] {
            let Ok(Parsed::Help(help)) = parsed(line) else {
                panic!("{line}")
            };
            for (option, _) in ORION_OPTIONS {
                assert!(help.contains(&format!(" -{option}")), "{option} in {help}");
                assert!(!help.contains(&format!("--{option}")), "{option} in {help}");
            }
            assert!(
                help.contains("--engine <ENGINE>") && help.contains("--scratch-size"),
                "{help}"
            );
        }
        assert_eq!(
            single_dash("      --run <LEVEL>  a\n  -h, --help  b --type, --run-x"),
            "       -run <LEVEL>  a\n  -h,  -help  b -type, --run-x"
        );
    }

    #[test]
    fn the_tables_and_the_definition_hold_the_same_options() {
        let command = super::command();
        for (option, valid) in &ORION_OPTIONS {
            let arg = command
                .get_arguments()
                .find(|arg| arg.get_long() == Some(option))
                .expect(option);
            assert_eq!(arg.get_help_heading(), Some(ORIONS), "{option}");
            assert_eq!(
                valid.is_empty(),
                !arg.get_action().takes_values(),
                "{option}"
            );
        }
        for arg in command
            .get_arguments()
            .filter(|arg| arg.get_action().takes_values())
        {
            let long = arg.get_long().unwrap();
            assert_ne!(valid_values(long), "a value", "{long}");
        }
        command.debug_assert();
    }

    fn argument() -> impl Strategy<Value = String> {
        let names: Vec<String> = command()
            .get_arguments()
            .filter_map(|arg| arg.get_long().map(String::from))
            .collect();
        let values = [
            "oltp",
            "advanced",
            "point",
            "col",
            "seq",
            "raid0",
            "0",
            "1",
            "7",
            "100",
            "4294967295",
            "-1",
            "sim:",
            "4k",
        ];
        prop_oneof![
            4 => (prop::sample::select(names), "-{0,3}", "(=.{0,3})?")
                .prop_map(|(name, dashes, value)| format!("{dashes}{name}{value}")),
            4 => prop::sample::select(values.map(String::from).to_vec()),
            1 => ".{0,6}",
        ]
    }

    proptest! {
        #[test]
        fn no_arguments_make_it_panic(run in any::<bool>(), arguments in prop::collection::vec(argument(), 0..8)) {
            let mut line: Vec<OsString> = if run { vec!["-run".into(), "advanced".into()] } else { Vec::new() };
            line.extend(arguments.into_iter().map(OsString::from));
            match parse(line) {
                Ok(Parsed::Measure(args)) => {
                    if let Ok((request, _)) = args.resolve(|| Ok(vec!["/a".into()]), |_| false) {
                        prop_assert!(request.overrides().len() < 20);
                        prop_assert!(request.estimate_seconds().end() >= request.estimate_seconds().start());
                        prop_assert!(request.estimate_minutes() > 0);
                        prop_assert!(!request.cells().is_empty());
                    }
                }
                Ok(Parsed::Help(help)) => prop_assert!(!help.is_empty()),
                Err(error) => prop_assert_eq!(error.exit_status(), 2),
            }
        }
    }
}
