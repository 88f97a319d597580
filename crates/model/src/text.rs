//! Makes untrusted text harmless: for a terminal, in a line of ours, in a command, and in JSON. Compares words.
//!
//! File names, a server's errors and journals may contain anything. Characters that control a
//! terminal are escaped, so that they are visible and have no effect.

use serde::de::{Deserialize, Deserializer, Error as _};
use std::borrow::Cow;
use std::path::Path;

/// `text` for display: characters that control a terminal, or change the direction of text, are
/// escaped. Line breaks and tabs stay.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let stays = |at: usize, c: char| matches!(c, '\n' | '\t') || text[at..].starts_with("\r\n");
    spelled(
        text,
        |at, c| drives_a_terminal(c) && !stays(at, c),
        |c| c.escape_default().to_string(),
    )
}

/// `text` for the log of a build server, which obeys commands in it: `##vso[…]` and `##[…]` anywhere, `::…` at the
/// beginning of a line. The second character of such a beginning is written by `spell`. Characters that no reader sees
/// may stand between the two: some servers compare texts without them.
pub fn unobeyed(text: &str, spell: impl Fn(char) -> String) -> Cow<'_, str> {
    let is_second = |at: usize, c: char| {
        let mut before = seen(&text[..at]);
        match c {
            '#' => before.next() == Some('#'),
            ':' if before.next() == Some(':') => before
                .find(|c| matches!(c, '\n' | '\r') || !c.is_whitespace())
                .is_none_or(|c| matches!(c, '\n' | '\r')),
            _ => false,
        }
    };
    spelled(text, is_second, spell)
}

/// The characters of `text` that every reader sees, and its line breaks, from the end.
fn seen(text: &str) -> impl Iterator<Item = char> {
    let is_seen = |c: &char| c.is_ascii() && (!c.is_control() || c.is_whitespace());
    text.chars().rev().filter(is_seen)
}

/// A name or a sentence as part of a line: as [`escaped`], with line breaks and tabs escaped, too. A
/// file may be named like a line of ours, with a hint of its own below.
pub fn in_line(text: &str) -> Cow<'_, str> {
    spelled(
        text,
        |_, c| drives_a_terminal(c),
        |c| c.escape_default().to_string(),
    )
}

/// Reads a text of a journal as [`in_line`].
///
/// # Errors
/// It is no text.
pub(crate) fn read_in_line<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    String::deserialize(from).map(|text| in_line(&text).into_owned())
}

/// `a, b and c`; nothing for no words.
pub fn listed<T: AsRef<str>>(words: &[T]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    match &words[..] {
        [before @ .., last] if !before.is_empty() => {
            format!("{} and {last}", before.join(", "))
        }
        few => few.concat(),
    }
}

/// The last part of a path, by which messages and tables name a file.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A word of a command that is printed: as it is where a shell takes it so, else quoted. A word with
/// line breaks or other control characters is spelled in one line (`$'a\nb'`, of bash, zsh and ksh).
pub fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%,=".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.into();
    }
    if !word.chars().any(drives_a_terminal) {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let spelled: String = word
        .chars()
        .map(|c| match c {
            '\'' | '\\' => format!("\\{c}"),
            c if drives_a_terminal(c) => format!("\\U{:08x}", u32::from(c)),
            c => c.to_string(),
        })
        .collect();
    format!("$'{spelled}'")
}

/// As [`shell_word`], of a path.
pub fn shell_path(path: &Path) -> String {
    shell_word(&path.display().to_string())
}

/// Reads the kernel's name of a block device. It becomes part of paths and of commands.
///
/// # Errors
/// It has other characters than `[A-Za-z0-9!._-]`, begins with a dot, or is empty.
pub(crate) fn read_device_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "!._-".contains(c);
    if !name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain) {
        return Ok(name);
    }
    Err(D::Error::custom(format!(
        "'{}' is no name of a block device, which has letters, digits and !._- only",
        in_line(&name)
    )))
}

/// Reads a part of the name of a file that is written.
///
/// # Errors
/// It has a slash or a control character, or is empty.
pub fn read_file_name<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    if !name.is_empty() && !name.contains(|c: char| c == '/' || drives_a_terminal(c)) {
        return Ok(name);
    }
    Err(D::Error::custom(format!(
        "'{}' is no part of a file name",
        in_line(&name)
    )))
}

/// A JSON document with the same characters escaped, as JSON escapes them. Its meaning does not
/// change: such characters occur only within strings, and other control characters never occur.
pub fn escaped_json(document: &str) -> Cow<'_, str> {
    let drives = |_, c| drives_a_terminal(c) && !c.is_ascii_whitespace();
    spelled(document, drives, |c| format!("\\u{:04x}", u32::from(c)))
}

/// True for control characters, and for those that change the direction of text.
pub fn drives_a_terminal(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn spelled(
    text: &str,
    is_to_be: impl Fn(usize, char) -> bool,
    spell: impl Fn(char) -> String,
) -> Cow<'_, str> {
    if !text.char_indices().any(|(at, c)| is_to_be(at, c)) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        if is_to_be(at, c) {
            plain.push_str(&spell(c));
        } else {
            plain.push(c);
        }
    }
    Cow::Owned(plain)
}

/// The number of letters to insert, delete or replace to make one text of another (Levenshtein,
/// Soviet Physics Doklady 10, 1966).
pub fn letters_changed(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (at, letter) in one.chars().enumerate() {
        let mut before = row[0];
        row[0] = at + 1;
        for (place, wanted) in other.chars().enumerate() {
            let replaced = before + usize::from(letter != wanted);
            before = row[place + 1];
            row[place + 1] = replaced.min(before + 1).min(row[place] + 1);
        }
    }
    row[row.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_text_has_the_fewest_letters_to_change() {
        assert_eq!(letters_changed("iop", "iops"), 1);
        assert_eq!(letters_changed("", "p50"), 3);
        assert_eq!(letters_changed("mean", "mean"), 0);
    }

    #[test]
    fn only_terminal_control_characters_are_escaped() {
        let plain = "a line\n\tand µs, 20 °C, ±1 %\r\nthe next";
        assert!(matches!(escaped(plain), Cow::Borrowed(same) if same == plain));
        assert_eq!(escaped("\u{1b}]0;x\u{7}"), "\\u{1b}]0;x\\u{7}");
        assert_eq!(
            escaped("done\rfailed\u{9b}2J\u{7f}\u{85}"),
            "done\\rfailed\\u{9b}2J\\u{7f}\\u{85}"
        );
        assert_eq!(escaped("evil\u{202e}txt.exe"), "evil\\u{202e}txt.exe");
    }

    #[test]
    fn no_text_of_others_is_a_command_of_a_build_server() {
        for (text, is) in [
            ("x ##vso[task.x]y", "x #\\u{23}vso[task.x]y"),
            ("##[error] ### a", "#\\u{23}[error] #\\u{23}\\u{23} a"),
            ("#\u{200b}\u{ad}#[x]", "#\u{200b}\u{ad}\\u{23}[x]"),
            ("a\n \u{a0}\t::error::x", "a\n \u{a0}\t:\\u{3a}error::x"),
            ("::set-env::", ":\\u{3a}set-env::"),
            (":\u{200d}:x\r\n:::", ":\u{200d}\\u{3a}x\r\n:\\u{3a}:"),
        ] {
            let safe = unobeyed(text, |c| c.escape_unicode().to_string());
            assert_eq!(safe, is, "{text}");
        }
        for text in ["# a #1 :x: a::b", "std::io\n x ::y", "c# #2", ": :x"] {
            let safe = unobeyed(text, |c| c.escape_unicode().to_string());
            assert!(matches!(safe, Cow::Borrowed(_)), "{safe}");
        }
    }

    #[test]
    fn a_name_stays_in_its_line() {
        assert_eq!(
            in_line("f\nrigel: fine\n  hint: add\t--destroy\r\u{1b}[2J"),
            "f\\nrigel: fine\\n  hint: add\\t--destroy\\r\\u{1b}[2J"
        );
        assert!(matches!(in_line("it's µs"), Cow::Borrowed("it's µs")));
        assert_eq!(in_line(&in_line("a\nb")), in_line("a\nb"));
    }

    #[test]
    fn a_word_is_quoted_as_a_shell_takes_it() {
        for (word, is) in [
            ("/dev/disk/by-id/a_b-1:0", "/dev/disk/by-id/a_b-1:0"),
            ("sim:8,100us", "sim:8,100us"),
            ("postgres://u@h/d?a=1&b=2", "'postgres://u@h/d?a=1&b=2'"),
            ("/a b/it's", r"'/a b/it'\''s'"),
            ("$HOME", "'$HOME'"),
            ("~x", "'~x'"),
            ("", "''"),
            ("größe", "'größe'"),
        ] {
            assert_eq!(shell_word(word), is);
        }
        let words = [
            "a\nb",
            "x';touch y\n\\'$(id)",
            "a\u{202e}b",
            "`id`; rm -r x",
        ];
        for word in words {
            let printed = shell_word(word);
            assert!(!printed.chars().any(drives_a_terminal), "{printed}");
            let Ok(output) = std::process::Command::new("bash")
                // Words are read before an assignment on the same line holds.
                .env("LC_ALL", "C.UTF-8")
                .args(["-c", &format!("printf %s {printed}")])
                .output()
            else {
                continue;
            };
            assert_eq!(String::from_utf8_lossy(&output.stdout), word, "{printed}");
        }
    }

    #[test]
    fn a_document_in_json_says_the_same() {
        let text = "\u{9b}2J \u{7f} \u{202e} µ \u{1b}";
        let document = serde_json::to_string_pretty(&[text]).unwrap();
        let safe = escaped_json(&document);
        assert!(
            !safe.chars().any(|c| drives_a_terminal(c) && c != '\n'),
            "{safe}"
        );
        assert_eq!(serde_json::from_str::<[String; 1]>(&safe).unwrap(), [text]);
    }
}
