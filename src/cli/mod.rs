//! The command line: one file per verb.
//!
//! Input: arguments. Output: an exit status, and everything that is printed. Output for programs
//! goes to stdout, the rest to stderr. This module measures nothing, and no other module prints.

mod advise;
mod attend;
mod calibrate;
pub mod check;
mod choice;
mod compare;
pub mod conf;
mod curve;
mod database;
mod demand;
mod duet;
mod examples;
mod exit_status;
mod expect;
mod expected;
mod fit;
pub mod import;
mod layers;
mod live;
mod measuring;
mod membership;
mod metrics;
mod orion;
pub mod orion_args;
pub mod outcome;
mod output;
mod outputs;
mod page;
mod pages;
mod plans;
mod private_server;
mod progress;
mod prompt;
pub mod ranges;
pub mod ranks;
mod report;
mod results;
mod schema;
mod soak;
mod sql;
mod sql_args;
mod sql_script;
mod stop;
mod target;
mod version;
mod watch;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use examples::EXAMPLES;
use membership::Membership;
use rigel_database::Address;
use rigel_database::access::{has_scheme, may_hold_password, names_password};
use rigel_device::{limits, rights};
use rigel_model::{Bytes, Error, MIB, usage};
use rustix::process::Resource;
use std::ffi::OsString;
use std::path::Path;

/// Measures what a storage platform will do for a database, and proves its answers.
///
/// Every run leaves a journal in its directory, and every report is computed from it.
#[derive(Debug, Parser)]
#[command(
    name = "rigel",
    version,
    arg_required_else_help = true,
    max_term_width = 120
)]
#[command(
    after_help = "Exit status: 0 success; 1 failed or incomplete; 2 wrong usage; 3 a limit was \
                  not met: --max-latency of calibrate, curve and sql run, --slo of soak, \
                  --need of fit, --fail-if-slower of compare and duet, an expectation of expect; or \
                  check has a warning; 4 that is undecided; 5 expect did not measure it.\nrigel \
                  --version --verbose names the commit, the target and the engines; \
                  rigel schema VERB prints the JSON Schema of its --json."
)]
struct Cli {
    #[command(subcommand)]
    verb: CliVerb,
}

#[derive(Debug, Subcommand)]
enum CliVerb {
    Calibrate(Box<calibrate::CalibrateArgs>),
    Curve(Box<curve::CurveArgs>),
    Sql(Box<sql::SqlArgs>),
    Layers(Box<layers::LayersArgs>),
    Soak(Box<soak::SoakArgs>),
    Watch(Box<watch::WatchArgs>),
    Fit(Box<fit::FitArgs>),
    Expect(Box<expect::ExpectArgs>),
    Duet(Box<duet::DuetArgs>),
    Check(check::CheckArgs),
    Import(import::ImportArgs),
    Report(report::ReportArgs),
    Advise(advise::AdviseArgs),
    Compare(compare::CompareArgs),
    #[command(hide = true)]
    Schema(schema::SchemaArgs),
    #[command(hide = true)]
    Man(pages::ManArgs),
    #[command(hide = true)]
    Completions(pages::CompletionsArgs),
}

/// The whole command line, for help, completions and manual pages. Orion's verb is defined and
/// parsed in its own file, because its options have a single dash.
pub fn command() -> clap::Command {
    let orion = orion_args::command().name("orion").no_binary_name(false);
    let mut command = Cli::command().subcommand(orion);
    // Verbs that measure are listed first.
    command = command.mut_subcommand("orion", |verb| verb.display_order(0));
    // The targets of the other verbs are one volume.
    command = command.mut_subcommand("fit", |verb| {
        verb.mut_arg("targets", |targets| {
            targets.help(fit::TARGETS).long_help(fit::TARGETS)
        })
    });
    command = command.mut_subcommand("expect", |verb| {
        verb.mut_arg("targets", |targets| {
            let targets = targets.value_name("EXPECTATION|TARGET");
            targets.help(expect::TARGETS).long_help(expect::TARGETS)
        })
    });
    command = command.mut_subcommand("duet", |verb| {
        verb.mut_arg("targets", |targets| {
            let targets = targets.help(duet::TARGETS).long_help(duet::TARGETS);
            targets.required_unless_present_any(["resume", "on"])
        })
    });
    // Verbs of one host refuse to be one of several ranks: --alone is all that they know of them.
    for name in ["duet", "expect", "layers", "watch"] {
        command = command.mut_subcommand(name, |verb| {
            verb.mut_args(|arg| {
                let is_of_ranks = arg.get_help_heading() == Some(ranks::SEVERAL_HOSTS);
                let is_refused = is_of_ranks && arg.get_long() != Some("alone");
                arg.hide(is_refused)
            })
        });
    }
    command
}

/// Runs the program with `arguments`, the first of which is its name; returns the exit status.
pub fn main(arguments: Vec<OsString>) -> u8 {
    // Before anything is read, and before there is a second process or thread.
    let is_watch = is_watch(&arguments);
    let begun = rights::give_up_those_of_the_file(is_watch).and_then(|()| require_stack());
    if let Err(error) = begun {
        output::complain(&error);
        return error.exit_status();
    }
    stop::survive_file_size_limit();
    if touches_storage(&arguments) {
        attend::attended(is_watch, || run(arguments))
    } else {
        run(arguments)
    }
}

/// Sees to it that the first thread may have as large a stack as every other one, which is 2 MiB by Rust's
/// standard library: with too small a one the process would end without a word of ours.
fn require_stack() -> Result<(), Error> {
    const STACK: Bytes = Bytes(2 * MIB);
    limits::raise(Resource::Stack, STACK.0).map_err(|why| {
        usage!(
            "the stack of a process is limited, and Rigel needs {STACK}: {why}",
            "raise the limit: ulimit -s {kib}",
            kib = STACK.0 / 1024
        )
    })
}

/// True for `rigel watch`, the only verb that traces.
fn is_watch(arguments: &[OsString]) -> bool {
    let called = arguments.first().map(Path::new).and_then(Path::file_name);
    called.is_none_or(|name| name != "orion")
        && arguments.get(1).is_some_and(|verb| verb == "watch")
}

/// True for a command that reads or writes files and devices which may not answer: also one whose
/// target is a model or a server has a directory for its results. Ranks are not attended: their
/// launcher watches the process that it started.
fn touches_storage(arguments: &[OsString]) -> bool {
    const OTHERS: [&str; 4] = ["completions", "help", "man", "schema"];
    let is_rank = ["PMI_FD", "PMI_PORT", "PMI_RANK", "PMIX_RANK"]
        .iter()
        .any(|name| std::env::var_os(name).is_some());
    let called = arguments.first().map(Path::new).and_then(Path::file_name);
    let verb = arguments.get(1);
    let is_verb = called.is_some_and(|name| name == "orion")
        || verb.is_some_and(|verb| {
            let verb = verb.to_string_lossy();
            !verb.starts_with('-') && !OTHERS.contains(&verb.as_ref())
        });
    is_verb && !is_rank
}

fn run(arguments: Vec<OsString>) -> u8 {
    output::note_reader(&arguments);
    let membership = &Membership::default();
    let called = arguments.first().map(Path::new).and_then(Path::file_name);
    let outcome = if let Err(refused) = refuse_passwords(&arguments) {
        Err(refused)
    } else if called.is_some_and(|name| name == "orion") {
        orion::run(&arguments[1..], membership)
    } else if arguments.get(1).is_some_and(|verb| verb == "orion") {
        orion::run(&arguments[2..], membership)
    } else if arguments.iter().skip(1).eq(["help", "orion"]) {
        orion::run(&["-help".into()], membership)
    } else if version::is_asked(&arguments) {
        output::result(&version::about());
        Ok(0)
    } else {
        other_verb(arguments, membership)
    };
    ranks::concluded(membership, output::concluded(outcome))
}

/// Refuses arguments that contain, or may contain, a password, before anything can repeat them,
/// store them in a journal or pass them on.
fn refuse_passwords(arguments: &[OsString]) -> Result<(), Error> {
    for argument in arguments.iter().map(|argument| argument.to_string_lossy()) {
        let value = argument
            .split_once('=')
            .filter(|_| argument.starts_with('-'));
        let value = value.map_or(argument.as_ref(), |(_, value)| value);
        if names_password(&argument) && !has_scheme(value) {
            return Err(usage!(
                "an argument contains 'password=', and every user of this machine can read \
                 arguments",
                "write postgres://user@host:port/database, and give the password in PGPASSWORD or \
                 MYSQL_PWD, in the file of --password-file, or at the prompt"
            ));
        }
        if may_hold_password(value) {
            Address::parse(value, &|_| None)?;
        }
    }
    Ok(())
}

fn other_verb(arguments: Vec<OsString>, membership: &Membership) -> Result<u8, Error> {
    let parsed = command()
        .try_get_matches_from(arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches));
    match parsed {
        Ok(cli) => match cli.verb {
            CliVerb::Calibrate(args) => calibrate::run(&args, membership),
            CliVerb::Curve(args) => curve::run(&args, membership),
            CliVerb::Sql(args) => sql::run(&args, membership),
            CliVerb::Layers(args) => layers::run(&args, membership),
            CliVerb::Soak(args) => soak::run(&args, membership),
            CliVerb::Watch(args) => watch::run(&args, membership),
            CliVerb::Fit(args) => fit::run(&args, membership),
            CliVerb::Expect(args) => expect::run(&args, membership),
            CliVerb::Duet(args) => duet::run(&args, membership),
            CliVerb::Check(args) => check::run(&args, membership),
            CliVerb::Import(args) => import::run(&args),
            CliVerb::Report(args) => report::run(&args),
            CliVerb::Advise(args) => advise::run(&args),
            CliVerb::Compare(args) => compare::run(&args),
            CliVerb::Schema(args) => schema::run(&args),
            CliVerb::Man(args) => pages::man(&args, &command()),
            CliVerb::Completions(args) => {
                pages::completions(&args, command());
                Ok(0)
            }
        },
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
                output::noted(error.print());
                Ok(0)
            }
            // Without a verb, the help lists the verbs: on stdout, as it is longer than a screen.
            ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
                output::help(&error.render());
                Ok(2)
            }
            ErrorKind::MissingRequiredArgument => {
                let text = error.render().to_string();
                Err(match example(&text) {
                    Some(example) => refusal(&format!("{text}\n\ntip: for example: {example}")),
                    None => refusal(&text),
                })
            }
            _ => Err(refusal(&error.render().to_string())),
        },
    }
}

/// A complete command of the verb whose usage the parser shows.
fn example(said: &str) -> Option<&'static str> {
    let (missing, usage) = said.split_once("Usage: ")?;
    ["TARGET>", "<RUN>", "<DEMAND>", "--for"]
        .iter()
        .find(|name| missing.contains(**name))?;
    let verb = usage.split_whitespace().nth(1)?;
    let is_own = |example: &&&str| example.split(' ').nth(1) == Some(verb);
    EXAMPLES.iter().find(is_own).copied()
}

/// A parser error in the form of our own refusals.
fn refusal(said: &str) -> Error {
    let in_a_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (first, rest) = said.trim().split_once("\n\n").unwrap_or((said.trim(), ""));
    // A value that we refused ourselves brings its own hint.
    let (what, own) = match first.split_once("\n  hint: ") {
        Some((what, hint)) => (what, Some(in_a_line(hint))),
        None => (first, None),
    };
    let what = plainly(&in_a_line(what));
    let hints: Vec<String> = rest
        .split("\n\n")
        .map(in_a_line)
        .filter_map(|text| {
            let usage = text
                .strip_prefix("Usage: ")
                .map(|usage| format!("usage: {usage}"));
            usage.or_else(|| tip(text.strip_prefix("tip: ")?))
        })
        .filter(|hint| !is_far_fetched(hint, &what))
        .chain(["see --help".into()])
        .collect();
    let hints: Vec<String> = own.into_iter().chain(hints).collect();
    Error::usage(what.trim_start_matches("error: "), hints.join("; "))
}

/// What the parser says of a number, in words for users.
fn plainly(what: &str) -> String {
    let Some((value, why)) = what.rsplit_once("': ") else {
        return what.into();
    };
    let why = match why {
        "invalid digit found in string" | "cannot parse integer from empty string" => {
            "it is not a whole number".into()
        }
        "number too large to fit in target type" => "it is too large".into(),
        other => other.replace("..=", " to "),
    };
    format!("{value}': {why}")
}

/// True if a tip names a subcommand that begins otherwise than the one that was refused: the parser calls 'calibrate'
/// similar to 'frobnicate'.
fn is_far_fetched(tip: &str, what: &str) -> bool {
    let quoted = |text: &str| text.split('\'').nth(1)?.chars().next();
    tip.contains("similar subcommand") && quoted(tip) != quoted(what)
}

/// A tip of the parser. It takes a negative number and an unknown option for names of files.
fn tip(said: &str) -> Option<String> {
    let Some(rest) = said.strip_prefix("to pass '-") else {
        return Some(said.into());
    };
    if rest.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return Some("no value is negative".into());
    }
    (!rest.starts_with('-')).then(|| said.into())
}

#[cfg(test)]
mod tests {
    #[test]
    fn verbs_that_read_or_write_files_are_attended() {
        let is_attended = |line: &str| {
            let arguments: Vec<_> = line.split(' ').map(Into::into).collect();
            super::touches_storage(&arguments)
        };
        for line in [
            "rigel check /d",
            "rigel report run",
            "rigel watch /d",
            "rigel sql run postgres://a/b",
            "rigel curve sim:",
            "orion -run simple",
        ] {
            assert!(is_attended(line), "{line}");
        }
        for line in ["rigel", "rigel --version", "rigel help", "rigel man"] {
            assert!(!is_attended(line), "{line}");
        }
    }

    #[test]
    fn the_definition_of_the_command_line_is_consistent() {
        super::command().debug_assert();
    }

    #[test]
    fn every_verb_says_its_exit_statuses_and_no_help_has_backquotes() {
        let command = super::command();
        for (name, verb) in verbs(&command) {
            let help = verb.clone().render_long_help().to_string();
            assert!(!help.contains('`'), "{name}: {help}");
            assert!(
                verb.is_hide_set() || help.contains("Exit status: 0"),
                "{name}"
            );
        }
    }

    /// The options that mean the same in every verb that measures.
    const COMMON: [&str; 7] = [
        "out",
        "json",
        "no-progress",
        "live",
        "seed",
        "resume",
        "metrics",
    ];

    /// All verbs below `command` that have no verbs of their own, with their names after `rigel`.
    fn verbs(command: &clap::Command) -> Vec<(String, &clap::Command)> {
        command
            .get_subcommands()
            .flat_map(|verb| {
                let name = verb.get_name().to_string();
                if verb.has_subcommands() {
                    verbs(verb)
                        .into_iter()
                        .map(|(below, verb)| (format!("{name} {below}"), verb))
                        .collect()
                } else {
                    vec![(name, verb)]
                }
            })
            .collect()
    }

    #[test]
    fn every_verb_that_measures_has_the_same_options_for_its_run() {
        let command = super::command();
        let option = |verb: &clap::Command, name: &str| {
            let arg = verb
                .get_arguments()
                .find(|arg| arg.get_long() == Some(name))?;
            let values: Vec<String> = arg
                .get_value_names()
                .unwrap_or_default()
                .iter()
                .map(ToString::to_string)
                .collect();
            let helps =
                [arg.get_help(), arg.get_long_help()].map(|help| help.map(ToString::to_string));
            let defaults: Vec<String> = arg
                .get_default_values()
                .iter()
                .map(|value| value.to_string_lossy().into_owned())
                .collect();
            Some((helps, values, defaults, arg.get_num_args()))
        };
        let measures = |verb: &clap::Command| {
            ["live", "seed", "resume", "metrics"]
                .iter()
                .any(|name| option(verb, name).is_some())
        };
        let measuring: Vec<_> = verbs(&command)
            .into_iter()
            .filter(|(_, verb)| measures(verb))
            .collect();
        let mut names: Vec<&str> = measuring.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "calibrate",
                "curve",
                "duet",
                "expect",
                "fit",
                "layers",
                "orion",
                "soak",
                "sql run",
                "watch"
            ]
        );
        let (_, first) = &measuring[0];
        for name in COMMON {
            let expected = option(first, name);
            assert!(expected.is_some(), "{name}");
            for (verb, of_verb) in &measuring {
                assert_eq!(option(of_verb, name), expected, "--{name} of rigel {verb}");
            }
        }
    }

    #[test]
    fn only_options_of_ranks_are_below_the_heading_of_several_hosts() {
        let ranks = [
            "hosts",
            "separate",
            "same-blocks",
            "neighbours",
            "rank-journals",
            "join",
            "rank-address",
            "rank-ports",
            "rank-silence",
            "alone",
        ];
        for (name, verb) in verbs(&super::command()) {
            for option in verb.get_arguments().filter_map(|arg| {
                let is_below = arg.get_help_heading()?.starts_with("Several hosts");
                arg.get_long().filter(|_| is_below)
            }) {
                assert!(ranks.contains(&option), "--{option} of rigel {name}");
            }
        }
    }

    #[test]
    fn options_that_change_the_answer_come_before_those_of_the_engine_and_of_results() {
        use super::outcome::{RESULTS, TARGET_AND_ENGINE};
        use super::ranks::SEVERAL_HOSTS;
        const LAST: [&str; 3] = [TARGET_AND_ENGINE, RESULTS, SEVERAL_HOSTS];
        let mut with_both = 0;
        for (name, verb) in verbs(&super::command()) {
            let help = verb.clone().render_long_help().to_string();
            let headings: Vec<&str> = help
                .lines()
                .filter_map(|line| line.strip_suffix(':'))
                .filter(|line| !line.starts_with(' '))
                .collect();
            let first = headings.iter().position(|heading| LAST.contains(heading));
            let last = &headings[first.unwrap_or(headings.len())..];
            let places: Vec<_> = last
                .iter()
                .map(|heading| LAST.iter().position(|last| last == heading))
                .collect();
            assert!(
                places.is_sorted() && !places.contains(&None),
                "{name}: {headings:?}"
            );
            with_both += usize::from(last.len() > 1);
        }
        assert!(with_both > 5, "{with_both}");
    }

    #[test]
    fn verbs_of_one_host_show_no_option_of_ranks_that_they_refuse() {
        for (name, verb) in verbs(&super::command()) {
            let options = verb.get_arguments().filter(|option| {
                option.get_help_heading() == Some(super::ranks::SEVERAL_HOSTS)
                    && !option.is_hide_set()
            });
            let shown: Vec<&str> = options.filter_map(clap::Arg::get_long).collect();
            match name.as_str() {
                "duet" | "expect" | "layers" | "watch" => assert_eq!(shown, ["alone"], "{name}"),
                "calibrate" | "curve" | "fit" => assert!(shown.len() > 5, "{name}: {shown:?}"),
                _ => {}
            }
        }
    }

    #[test]
    fn parser_errors_have_our_form() {
        let said = "error: unrecognized subcommand 'ornion'\n\n  tip: a similar subcommand \
                    exists: 'orion'\n\nUsage: rigel <COMMAND>\n\nFor more information, try \
                    '--help'.\n";
        let hint = "a similar subcommand exists: 'orion'; usage: rigel <COMMAND>; see --help";
        assert_eq!(
            super::refusal(said).to_string(),
            format!("unrecognized subcommand 'ornion'\n  hint: {hint}")
        );
        let far = said
            .replace("ornion", "frobnicate")
            .replace("'orion'", "'calibrate'");
        assert_eq!(
            super::refusal(&far).to_string(),
            "unrecognized subcommand 'frobnicate'\n  hint: usage: rigel <COMMAND>; see --help"
        );
        let own = "error: invalid value 'noon' for '--at <WHICH>': 'noon' is no interval\n  hint: \
                   give peak\n\nFor more information, try '--help'.\n";
        assert_eq!(
            super::refusal(own).to_string(),
            "invalid value 'noon' for '--at <WHICH>': 'noon' is no interval\n  hint: give peak; see \
             --help"
        );
    }

    #[test]
    fn numbers_are_refused_in_words() {
        let said = |line: &str| {
            let parsed = super::command().try_get_matches_from(line.split(' '));
            super::refusal(&parsed.unwrap_err().to_string()).to_string()
        };
        for (line, expected) in [
            (
                "rigel curve sim: --depth -1",
                "hint: no value is negative; usage",
            ),
            (
                "rigel curve sim: --seed 18446744073709551616",
                "<N>': it is no whole number from 0 to 18446744073709551615",
            ),
            (
                "rigel curve sim: --workers x",
                "<N>': it is not a whole number",
            ),
            (
                "rigel curve sim: --workers 18446744073709551616",
                "<N>': it is too large",
            ),
            (
                "rigel curve sim: --workers 0",
                "<N>': 0 is not in 1 to 1024",
            ),
            ("rigel check . --no-progress", "found\n  hint: usage: rigel"),
            ("rigel check -file", "to pass '-f' as a value, use '-- -f'"),
        ] {
            let said = said(line);
            assert!(said.contains(expected), "{line}: {said}");
        }
    }
}
