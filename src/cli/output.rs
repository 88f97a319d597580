//! Printing: results to stdout, everything else to stderr. A closed pipe is not an error; any other
//! failure to print results is.
//!
//! Text for people is escaped where it could control their terminal: file names, a server's errors
//! and the texts of a journal may contain anything. A rank that only measures leaves results and
//! remarks to rank 0; its errors are printed.

use super::live::look::ColourMode;
use clap::builder::StyledStr;
use rigel_model::{Error, escaped, escaped_json, failed, spoken, unobeyed};
use rustix::io::Errno;
use std::borrow::Cow;
use std::ffi::OsString;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What becomes of what is printed.
struct Printing {
    /// Results and remarks are left to rank 0.
    is_silent: bool,
    /// A build server obeys commands in the output.
    is_obeyed: bool,
    /// The first reason why results could not be printed. Reported at the end: a run that cannot show
    /// its results is still written to its directory.
    lost: Option<String>,
}

/// A process has one stdout, and every part of the command line prints to it.
static PRINTING: Mutex<Printing> = Mutex::new(Printing {
    is_silent: false,
    is_obeyed: false,
    lost: None,
});

fn printing() -> MutexGuard<'static, Printing> {
    PRINTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on, results and remarks are another rank's to print.
pub(super) fn leave_to_root() {
    printing().is_silent = true;
}

/// Notes whether a build server reads the output, by its variables or by what the arguments ask for.
pub(super) fn note_reader(arguments: &[OsString]) {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let asks = |argument: &OsString| argument.to_string_lossy().starts_with("--annotations");
    printing().is_obeyed =
        is_set("TF_BUILD") || is_set("GITHUB_ACTIONS") || arguments.iter().any(asks);
}

/// Prints a result as text; it may be piped to programs. On a terminal with colours the marks of verdicts
/// have theirs.
pub(super) fn result(text: &str) {
    let text = escaped(text);
    if io::stdout().is_terminal() {
        table(&marked(&text, ColourMode::of_terminal()));
    } else {
        table(&text);
    }
}

/// The text with the marks of verdicts, where a line begins with one, in colours.
fn marked(text: &str, look: ColourMode) -> String {
    let line = |line: &str| {
        let mut characters = line.chars();
        let mark = characters.next().filter(|_| characters.next() == Some(' '));
        match mark.and_then(|mark| Some((mark, look.mark(mark)?))) {
            Some((mark, style)) => {
                let rest = &line[mark.len_utf8()..];
                format!("{style}{mark}{style:#}{rest}")
            }
            None => line.to_string(),
        }
    };
    text.split_inclusive('\n').map(line).collect()
}

/// Prints a result in JSON.
pub(super) fn json(document: &str) {
    let spell = |c| format!("\\u{:04x}", u32::from(c));
    raw(&for_reader(&escaped_json(document), spell));
}

/// Prints a result whose format escapes what could control a terminal, such as CSV.
pub(super) fn table(text: &str) {
    raw(&for_reader(text, |c| c.escape_unicode().to_string()));
}

fn for_reader(text: &str, spell: impl Fn(char) -> String) -> Cow<'_, str> {
    if printing().is_obeyed {
        unobeyed(text, spell)
    } else {
        Cow::Borrowed(text)
    }
}

/// Prints a help, on a terminal in its style.
pub(super) fn help(text: &StyledStr) {
    let is_styled = io::stdout().is_terminal() && ColourMode::of_terminal() != ColourMode::Plain;
    if is_styled {
        raw(&text.ansi().to_string());
    } else {
        raw(&text.to_string());
    }
}

/// Prints a result as it is: a page, completions, annotations.
pub(super) fn raw(text: &str) {
    if printing().is_silent {
        return;
    }
    let mut out = io::stdout().lock();
    noted(out.write_all(text.as_bytes()).and_then(|()| out.flush()));
}

/// Remembers that a result could not be printed.
pub(super) fn noted(printed: io::Result<()>) {
    if let Err(error) = printed
        && error.kind() != ErrorKind::BrokenPipe
    {
        printing().lost.get_or_insert_with(|| error.to_string());
    }
}

/// The final outcome of the program: a failure if results could not be printed.
pub(super) fn concluded(outcome: Result<u8, Error>) -> Result<u8, Error> {
    match (outcome, &printing().lost) {
        (Ok(_), Some(why)) => Err(failed!(
            "the results could not be written to stdout: {why}",
            "free some space; `rigel report` prints the results of a run again"
        )),
        (outcome, _) => outcome,
    }
}

/// Prints complete lines for people.
pub(super) fn remark(text: &str) {
    if !printing().is_silent {
        print(text);
    }
}

/// Prints complete lines for people at every rank: what concerns this host's own passwords and
/// storage is no other rank's to say.
pub(super) fn remark_of_host(text: &str) {
    print(text);
}

fn print(text: &str) {
    let text = escaped(text);
    let text = for_reader(&text, |c| c.escape_unicode().to_string());
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints an error and its hint.
pub(super) fn complain(error: &Error) {
    // The hint may hold a command.
    let hint = match hint(error) {
        "" => String::new(),
        hint => format!("\n  hint: {hint}"),
    };
    print(&format!("rigel: {}{hint}\n", spoken(error.what())));
}

/// The hint of an error. Where the process may open no more files, nothing else helps, whatever was to be opened.
fn hint(error: &Error) -> &str {
    let is_used_up = error
        .what()
        .contains(&io::Error::from(Errno::MFILE).to_string());
    if is_used_up {
        "allow more open files: ulimit -n 1024"
    } else {
        error.hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_at_the_beginning_of_lines_have_colours_where_the_terminal_has() {
        let text = "✗ Not met: ✗\n\n? undecided\n✓ met\nwhat?\n";
        assert_eq!(marked(text, ColourMode::Plain), text);
        let coloured = marked(text, ColourMode::Indexed);
        assert_eq!(coloured.matches("\u{1b}[0m").count(), 3, "{coloured:?}");
        assert!(coloured.ends_with("met\nwhat?\n"), "{coloured:?}");
    }
}
