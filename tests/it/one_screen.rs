//! What a person sees by default fits on a terminal of 80 columns and 24 lines: every transcript is
//! looked at, also those of verbs that come later.

use std::path::Path;

const COLUMNS: usize = 80;
const LINES: usize = 24;

/// What is asked for beyond the default, or is for programs.
const MORE: [&str; 8] = [
    "--verbose",
    "--json",
    "--help",
    "--html",
    "--format",
    "--csv",
    " schema",
    // Orion's own lines, which programs read; on a terminal it has one screen, too.
    "orion ",
];

/// A command of a transcript, its exit status, and the lines that it printed.
struct Shown<'a> {
    command: &'a str,
    status: &'a str,
    lines: Vec<&'a str>,
}

/// The commands of a transcript.
fn commands(transcript: &str) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown> = Vec::new();
    for line in transcript.lines() {
        if let Some(command) = line.strip_prefix("$ ") {
            all.push(Shown {
                command,
                status: "0",
                lines: Vec::new(),
            });
        } else if let Some(last) = all.last_mut() {
            match line.strip_prefix("? ") {
                Some(status) if last.lines.is_empty() => last.status = status,
                _ if line.starts_with("```") => {}
                _ => last.lines.push(line),
            }
        }
    }
    for shown in &mut all {
        let used = shown.lines.iter().rposition(|line| !line.trim().is_empty());
        shown.lines.truncate(used.map_or(0, |last| last + 1));
    }
    all
}

/// Why a command's text does not fit; `None` if it does. Errors have a line of their own, of any
/// width: they are searched for, and copied.
fn excess(shown: &Shown) -> Option<String> {
    let is_error = |line: &&&str| line.starts_with("rigel: ") || line.starts_with("  hint: ");
    let text = shown.lines.iter().filter(|line| !is_error(line));
    let widest = text.map(|line| line.chars().count()).max().unwrap_or(0);
    let lines = shown.lines.len();
    (widest > COLUMNS || lines > LINES)
        .then(|| format!("{lines} lines of {widest} columns: {}", shown.command))
}

#[test]
fn every_default_text_of_the_transcripts_fits_a_terminal() {
    let mut looked_at = 0;
    let mut too_large = Vec::new();
    for entry in Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cmd")
        .read_dir()
        .unwrap()
    {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "trycmd") {
            continue;
        }
        let transcript = std::fs::read_to_string(&path).unwrap();
        for shown in commands(&transcript) {
            let is_more = MORE.iter().any(|more| shown.command.contains(more));
            if is_more || shown.status == "2" {
                continue;
            }
            looked_at += 1;
            too_large.extend(excess(&shown).map(|why| format!("{}: {why}", path.display())));
        }
    }
    assert!(too_large.is_empty(), "{}", too_large.join("\n"));
    assert!(looked_at > 20, "only {looked_at} commands were looked at");
}

#[test]
fn a_text_that_is_too_wide_or_too_long_is_found() {
    let transcript = format!(
        "$ rigel one\n{wide}\n\n$ rigel two\n? 3\nrigel: {wide}\n  hint: {wide}\n\n$ rigel three\n{long}",
        wide = "x".repeat(COLUMNS + 1),
        long = "line\n".repeat(LINES + 1)
    );
    let all = commands(&transcript);
    let found: Vec<bool> = all.iter().map(|shown| excess(shown).is_some()).collect();
    assert_eq!(found, [true, false, true]);
    assert_eq!(all[1].status, "3");
}
