//! Manual pages and shell completions, from the same definition as the help.

use super::examples::EXAMPLES;
use super::outputs::{Kept, OutputFile, OutputKind};
use super::{orion_args, output};
use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;
use rigel_model::files::Directory;
use rigel_model::{Error, failed};
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// Write the manual pages into a directory
#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Directory for the pages
    directory: PathBuf,
}

/// Print completions for a shell
#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// How the statuses begin in the help of every verb.
const STATUS: &str = "Exit status: ";

/// Writes a page for the program, and one for each verb.
pub(super) fn man(args: &ManArgs, command: &Command) -> Result<u8, Error> {
    let failed = |error: io::Error| {
        failed!(
            "cannot write manual pages to '{directory}': {error}",
            "give a directory that you may write to",
            directory = args.directory.display()
        )
    };
    Directory::make(&args.directory).map_err(failed)?;
    for (name, page) in pages(command.clone()).map_err(failed)? {
        let file = args.directory.join(format!("{name}.1"));
        OutputFile::beside(file, OutputKind::Manual).write(&page, &Kept::default())?;
    }
    Ok(0)
}

/// The pages and their names.
fn pages(command: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let mut command = command.disable_help_subcommand(true);
    // Gives every verb its whole name.
    command.build();
    let (mut shown, mut ahead) = (Vec::new(), vec![&command]);
    while let Some(verb) = ahead.pop() {
        shown.push(verb);
        ahead.extend(verb.get_subcommands().filter(|verb| !verb.is_hide_set()));
    }
    let mut names: Vec<&str> = shown.iter().map(|verb| name_of(verb)).collect();
    names.sort_unstable();
    shown
        .into_iter()
        .map(|verb| Ok((name_of(verb).to_string(), page(verb, &names)?)))
        .collect()
}

/// The name of a verb's page: `rigel-sql-run`.
fn name_of(verb: &Command) -> &str {
    verb.get_display_name().unwrap_or_else(|| verb.get_name())
}

fn page(verb: &Command, names: &[&str]) -> io::Result<Vec<u8>> {
    let (name, spoken) = (name_of(verb), verb.get_bin_name().unwrap_or_default());
    let help = verb.get_after_long_help().or_else(|| verb.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let (statuses, notes): (Vec<&str>, Vec<&str>) =
        help.lines().partition(|line| line.starts_with(STATUS));
    let synopsis = verb.clone().render_usage().to_string();
    // The sections below have what is after the help, and the footer has the version.
    let verb = verb
        .clone()
        .after_help(None)
        .after_long_help(None)
        .version(None)
        .override_usage(synopsis.replace("Usage: ", ""))
        // A page has what the short help leaves out.
        .mut_args(
            |arg| match arg.get_long_help().or(arg.get_help()).cloned() {
                Some(help) => arg.long_help(help),
                None => arg,
            },
        );
    let options: Vec<&str> = verb
        .get_arguments()
        .filter_map(clap::Arg::get_long)
        .collect();
    let mut page = Vec::new();
    Man::new(verb.clone())
        .title(name)
        .source(concat!("rigel ", env!("CARGO_PKG_VERSION")))
        .render(&mut page)?;
    let mut page = String::from_utf8_lossy(&page).into_owned();
    section(&mut page, "NOTES", &paragraphs(&notes.join("\n")));
    for status in &statuses {
        section(
            &mut page,
            "EXIT STATUS",
            &paragraphs(&status[STATUS.len()..]),
        );
    }
    section(&mut page, "FILES", &files(&options));
    let is_own = |example: &&&str| is_of(example, spoken);
    let examples: Vec<String> = EXAMPLES
        .iter()
        .filter(is_own)
        .map(|example| format!(".PP\n.nf\n{}\n.fi\n", escaped(example)))
        .collect();
    section(&mut page, "EXAMPLES", &examples.concat());
    section(&mut page, "SEE ALSO", &see_also(name, names));
    Ok(if name == "rigel-orion" {
        orion_args::single_dash_roff(page.as_bytes())
    } else {
        page.into_bytes()
    })
}

/// True if the command `example` is one of the verb `spoken`, such as `rigel sql run`.
fn is_of(example: &str, spoken: &str) -> bool {
    let rest = example.strip_prefix(spoken);
    rest.is_some_and(|rest| rest.starts_with(' '))
}

fn section(page: &mut String, heading: &str, body: &str) {
    if !body.is_empty() {
        let _ = write!(page, ".SH \"{heading}\"\n{body}");
    }
}

/// Lines of a help as paragraphs; empty lines are dropped.
fn paragraphs(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines
        .map(|line| format!(".PP\n{}\n", escaped(line)))
        .collect::<Vec<_>>()
        .concat()
}

/// Files that a verb with these options reads or leaves.
fn files(options: &[&str]) -> String {
    const FILES: [(&str, &str, &str); 4] = [
        (
            "out",
            "VERB_TIME.rigel/journal.jsonl",
            "The journal of a run: all that was recorded, of which every report is made.",
        ),
        (
            "out",
            "VERB_TIME.rigel/report.html",
            "The report of the run as a page.",
        ),
        (
            "password-file",
            "~/.pgpass",
            "Passwords of PostgreSQL, read if no other is given.",
        ),
        (
            "on",
            "rigel-sql-NUMBER",
            "A private server in the directory of \\-\\-on while it runs; rigel sql clean removes what is left \
             if Rigel was killed.",
        ),
    ];
    FILES
        .iter()
        .filter(|(option, ..)| options.contains(option))
        .map(|(_, file, what)| format!(".TP\n\\fI{}\\fR\n{what}\n", escaped(file)))
        .collect::<Vec<_>>()
        .concat()
}

/// The pages above and below this one; all others at the program's own.
fn see_also(name: &str, names: &[&str]) -> String {
    let is_near = |other: &&&str| {
        let (longer, shorter) = if other.len() > name.len() {
            (**other, name)
        } else {
            (name, **other)
        };
        longer != shorter && longer.starts_with(&format!("{shorter}-"))
    };
    let near: Vec<String> = names
        .iter()
        .filter(is_near)
        .map(|other| format!("\\fB{}\\fR(1)", escaped(other)))
        .collect();
    format!("{}\n", near.join(",\n"))
}

/// Text of a page, in the language of manual pages.
fn escaped(text: &str) -> String {
    let text = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq");
    if text.starts_with('.') {
        format!("\\&{text}")
    } else {
        text
    }
}

/// Prints the completions of a shell.
pub(super) fn completions(args: &CompletionsArgs, mut command: clap::Command) {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut command, "rigel", &mut text);
    output::raw(&String::from_utf8_lossy(&text));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn all() -> Vec<(String, String)> {
        let made = pages(super::super::command()).unwrap();
        made.into_iter()
            .map(|(name, page)| (name, String::from_utf8(page).unwrap().replace("\\-", "-")))
            .collect()
    }

    fn found<'a>(command: &'a Command, name: &str) -> Option<&'a Command> {
        if name_of(command) == name {
            return Some(command);
        }
        command.get_subcommands().find_map(|verb| found(verb, name))
    }

    /// Names before `(1)` in a page.
    fn references(page: &str) -> BTreeSet<String> {
        let plain = page
            .replace("\\-", "-")
            .replace("\\fR", "")
            .replace("\\fB", "");
        let parts: Vec<&str> = plain.split("(1)").collect();
        let before = &parts[..parts.len() - 1];
        before
            .iter()
            .map(|part| {
                let name = part.rsplit(|c: char| !c.is_ascii_lowercase() && c != '-');
                name.into_iter().next().unwrap_or_default().to_string()
            })
            .collect()
    }

    #[test]
    fn every_page_that_a_page_names_exists() {
        let pages = all();
        let names: BTreeSet<String> = pages.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(names.len(), pages.len());
        for name in ["rigel", "rigel-orion", "rigel-sql-run", "rigel-sql-clean"] {
            assert!(names.contains(name), "{name}: {names:?}");
        }
        for (name, page) in &pages {
            let cited = references(page);
            assert!(
                !cited.is_empty() && cited.is_subset(&names),
                "{name}: {cited:?}"
            );
        }
        let from_the_top = references(&pages.iter().find(|(name, _)| name == "rigel").unwrap().1);
        assert_eq!(from_the_top.len(), names.len() - 1, "{from_the_top:?}");
    }

    #[test]
    fn every_page_of_a_verb_has_the_sections_that_readers_look_for() {
        let mut command = super::super::command();
        command.build();
        for (name, page) in all() {
            let verb = found(&command, &name).unwrap();
            let title = format!(".TH {name} 1");
            assert!(page.contains(&title), "{name}: no {title}: {page}");
            assert!(!page.contains("EXTRA"), "{name}");
            let mut wanted = vec!["NAME", "SYNOPSIS", "DESCRIPTION", "SEE ALSO"];
            if !verb.has_subcommands() {
                wanted.extend(["EXIT STATUS", "EXAMPLES"]);
            }
            let has = |heading: &str| {
                let plain = page.contains(&format!(".SH {heading}\n"));
                plain || page.contains(&format!(".SH \"{heading}\"\n"))
            };
            for heading in wanted {
                assert!(has(heading), "{name} has no {heading}: {page}");
            }
            let lines: Vec<&str> = page.lines().collect();
            for three in lines.windows(3).filter(|three| three[0] == ".TP") {
                assert!(
                    !three[2].starts_with(".TP") && !three[2].starts_with(".SH"),
                    "{name}: {three:?}"
                );
            }
            let leaves_a_run = verb
                .get_arguments()
                .any(|arg| arg.get_long() == Some("out"));
            assert!(!leaves_a_run || has("FILES"), "{name}");
        }
    }

    #[test]
    fn every_example_is_a_command_of_the_program() {
        for example in EXAMPLES {
            let words: Vec<String> = example
                .split(' ')
                .map(|word| word.replace('\'', ""))
                .collect();
            let parsed = super::super::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{example}: {}", parsed.unwrap_err());
        }
    }
}
