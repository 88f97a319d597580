//! Parses a file of shell assignments as data: `KEY=VALUE`, `export KEY=VALUE`, comments, quotes.
//!
//! Input: the text of a file. Output: its assignments with their lines, or a refusal that names the
//! line of anything that only a shell could execute. Executes and expands nothing. A refusal never
//! shows a value, because it may be a password.

use rigel_model::{Error, usage};
use std::iter::Peekable;
use std::str::Chars;

/// One `KEY=VALUE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Assignment {
    /// The line it begins on, from 1.
    pub(super) line: usize,
    /// A valid shell name.
    pub(super) key: String,
    /// The value without quotes.
    pub(super) value: String,
}

/// Contents of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Script {
    /// In order of the file.
    pub(super) assignments: Vec<Assignment>,
    /// Names that are exported without a value, with their lines.
    pub(super) exported: Vec<(usize, String)>,
}

/// A word between blanks, without its quotes.
struct ShellWord {
    line: usize,
    text: String,
    /// Number of leading bytes that were neither quoted nor escaped; `None` if that is all of
    /// them.
    plain: Option<usize>,
}

/// Words that begin a command in sourced files; settings cannot begin with them.
const COMMANDS: [&str; 29] = [
    ".", ":", "[", "[[", "alias", "case", "cd", "declare", "do", "done", "echo", "elif", "else",
    "eval", "exec", "exit", "fi", "for", "function", "if", "local", "printf", "readonly", "set",
    "source", "then", "typeset", "unset", "while",
];

const AS_DATA: &str = "this file is read as data and never executed";

fn refusal(line: usize, what: &str, hint: &str) -> Error {
    usage!("line {line}: {what}", hint)
}

fn needs_shell(line: usize, what: &str, hint: &str) -> Error {
    refusal(line, &format!("{what} needs a shell, and {AS_DATA}"), hint)
}

/// Parses the assignments of a file. `is_key` accepts the names that a message may show.
///
/// # Errors
/// The text needs a shell, or is not valid for a shell.
pub(super) fn read(text: &str, is_key: impl Fn(&str) -> bool) -> Result<Script, Error> {
    // Other systems end lines with a carriage return and begin a file with a byte order mark.
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let mut script = Script::default();
    let reader = Reader {
        chars: text.chars().peekable(),
        line: 1,
    };
    for command in reader.commands()? {
        script.take(command, &is_key)?;
    }
    Ok(script)
}

impl Script {
    fn take(
        &mut self,
        command: Vec<ShellWord>,
        is_key: &impl Fn(&str) -> bool,
    ) -> Result<(), Error> {
        let is_export = command[0].text == "export" && command[0].plain.is_none();
        let mut before: Option<String> = None;
        for word in command.into_iter().skip(usize::from(is_export)) {
            let line = word.line;
            if let Some(assignment) = word.assignment()? {
                before = Some(assignment.key.clone());
                self.assignments.push(assignment);
            } else if is_export && word.plain.is_none() && is_name(&word.text) {
                before = Some(word.text.clone());
                self.exported.push((line, word.text));
            } else {
                return Err(no_assignment(
                    &word,
                    before.filter(|key| is_key(key)),
                    is_key,
                ));
            }
        }
        Ok(())
    }
}

/// The error for `word`; `before` is the key of the preceding assignment, if any.
fn no_assignment(
    word: &ShellWord,
    before: Option<String>,
    is_key: &impl Fn(&str) -> bool,
) -> Error {
    let (line, text) = (word.line, word.text.as_str());
    if let Some(key) = before {
        let what = format!("the word after {key} is not KEY=VALUE");
        let hint = format!(
            "write {key}=VALUE without spaces around =, and quote a value that contains spaces"
        );
        return refusal(line, &what, &hint);
    }
    if is_key(text) {
        return refusal(
            line,
            &format!("{text} has no ="),
            &format!("write {text}=VALUE, without spaces around ="),
        );
    }
    if COMMANDS.contains(&text) {
        return needs_shell(
            line,
            &format!("'{text}'"),
            "leave only lines of the form KEY=VALUE",
        );
    }
    refusal(
        line,
        "a word is not KEY=VALUE",
        "leave only lines of the form KEY=VALUE, and # before comments",
    )
}

/// True for a valid shell name.
fn is_name(text: &str) -> bool {
    !text.starts_with(|c: char| c.is_ascii_digit())
        && !text.is_empty()
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl ShellWord {
    /// `None` for a word that is not an assignment.
    fn assignment(&self) -> Result<Option<Assignment>, Error> {
        let Some((key, value)) = self.text.split_once('=') else {
            return Ok(None);
        };
        if self.plain.is_some_and(|plain| plain <= key.len()) {
            return Ok(None);
        }
        if key.strip_suffix('+').is_some_and(is_name) {
            return Err(needs_shell(
                self.line,
                "+=",
                "write the whole value: KEY=VALUE",
            ));
        }
        let assignment = || Assignment {
            line: self.line,
            key: key.into(),
            value: value.into(),
        };
        Ok(is_name(key).then(assignment))
    }
}

struct Reader<'a> {
    chars: Peekable<Chars<'a>>,
    line: usize,
}

impl Reader<'_> {
    /// The words of each command; no command is empty.
    fn commands(mut self) -> Result<Vec<Vec<ShellWord>>, Error> {
        let mut commands = Vec::new();
        let mut words: Vec<ShellWord> = Vec::new();
        loop {
            match self.chars.peek().copied() {
                None | Some('\n' | ';') => {
                    let end = self.next();
                    if end == Some(';') && words.is_empty() {
                        return Err(refusal(
                            self.line,
                            "there is nothing before ';'",
                            "remove it",
                        ));
                    }
                    if !words.is_empty() {
                        commands.push(std::mem::take(&mut words));
                    }
                    if end.is_none() {
                        return Ok(commands);
                    }
                }
                Some(c) if is_blank(c) => {
                    self.next();
                }
                Some('#') => while self.chars.next_if(|c| *c != '\n').is_some() {},
                Some(_) => words.extend(self.word()?),
            }
        }
    }

    fn next(&mut self) -> Option<char> {
        let next = self.chars.next();
        // The line break belongs to its line: the number takes effect when the next word begins.
        self.line += usize::from(next == Some('\n'));
        next
    }

    /// One word; `None` if a backslash only joins two lines.
    fn word(&mut self) -> Result<Option<ShellWord>, Error> {
        let mut word = ShellWord {
            line: self.line,
            text: String::new(),
            plain: None,
        };
        while let Some(c) = self
            .chars
            .peek()
            .copied()
            .filter(|c| !is_blank(*c) && !matches!(c, '\n' | ';'))
        {
            self.next();
            let so_far = word.text.len();
            match c {
                '\'' => self.single(&mut word.text)?,
                '"' => self.double(&mut word.text)?,
                '\\' => match self.next() {
                    Some('\n') => {
                        // A word that continues on the next line still counts as plain.
                        if word.text.is_empty() {
                            return Ok(None);
                        }
                        continue;
                    }
                    escaped => word.text.push(escaped.unwrap_or('\\')),
                },
                _ => {
                    self.refuse_special(c, &word.text)?;
                    word.text.push(c);
                    continue;
                }
            }
            word.plain = word.plain.or(Some(so_far));
        }
        Ok(Some(word))
    }

    /// Refuses characters with a meaning in a shell, outside quotes.
    fn refuse_special(&mut self, c: char, before: &str) -> Result<(), Error> {
        let line = self.line;
        match c {
            '$' if self.expands(true) => Err(dollar(line)),
            '`' => Err(backquote(line)),
            '&' | '|' | '<' | '>' | '(' | ')' => {
                let hint = "leave only KEY=VALUE; if it is part of a value, put the value in \
                            single quotes";
                Err(needs_shell(line, &format!("'{c}'"), hint))
            }
            '*' | '?' | '[' | '{' => {
                let hint =
                    "write the value itself; if the character is part of it, use single quotes";
                Err(needs_shell(line, &format!("the pattern '{c}'"), hint))
            }
            '~' if before.is_empty() || before.ends_with(['=', ':']) => Err(needs_shell(
                line,
                "'~'",
                "write the whole path, or put the value in single quotes",
            )),
            _ => Ok(()),
        }
    }

    /// True if the `$` just read begins an expansion.
    fn expands(&mut self, outside_quotes: bool) -> bool {
        self.chars.peek().is_some_and(|c| {
            c.is_ascii_alphanumeric()
                || "_({[@*#?$!-".contains(*c)
                || outside_quotes && matches!(c, '\'' | '"')
        })
    }

    fn single(&mut self, into: &mut String) -> Result<(), Error> {
        let line = self.line;
        loop {
            match self.next() {
                Some('\'') => return Ok(()),
                Some(c) => into.push(c),
                None => return Err(open_quote(line, '\'')),
            }
        }
    }

    fn double(&mut self, into: &mut String) -> Result<(), Error> {
        let line = self.line;
        loop {
            match self.next() {
                Some('"') => return Ok(()),
                Some('$') if self.expands(false) => return Err(dollar(self.line)),
                Some('`') => return Err(backquote(self.line)),
                Some('\\') => match self.chars.peek().copied() {
                    Some('\n') => {
                        self.next();
                    }
                    Some(c @ ('$' | '`' | '"' | '\\')) => {
                        self.next();
                        into.push(c);
                    }
                    _ => into.push('\\'),
                },
                Some(c) => into.push(c),
                None => return Err(open_quote(line, '"')),
            }
        }
    }
}

/// A carriage return within a line is a blank too: no value contains one.
fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\r')
}

fn dollar(line: usize) -> Error {
    needs_shell(
        line,
        "an expansion with '$'",
        "write the value itself; in single quotes, $ has no special meaning",
    )
}

fn backquote(line: usize) -> Error {
    needs_shell(
        line,
        "a command in backquotes",
        "write the value itself; in single quotes, backquotes have no special meaning",
    )
}

fn open_quote(line: usize, quote: char) -> Error {
    refusal(
        line,
        &format!("the quote {quote} is not closed"),
        &format!("put {quote} at the end of the value"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_key(text: &str) -> bool {
        ["A", "B", "SYSDBA_PASSWD"].contains(&text)
    }

    fn pairs(text: &str) -> Vec<(usize, String, String)> {
        let script = read(text, is_key).unwrap_or_else(|error| panic!("{text:?}: {error}"));
        script
            .assignments
            .into_iter()
            .map(|found| (found.line, found.key, found.value))
            .collect()
    }

    fn value(text: &str) -> String {
        let pairs = pairs(text);
        assert_eq!(pairs.len(), 1, "{text:?}: {pairs:?}");
        pairs[0].2.clone()
    }

    #[test]
    fn values_are_what_a_shell_would_assign() {
        for (text, wanted) in [
            ("A=1", "1"),
            ("  A=1  ", "1"),
            ("A=", ""),
            ("A=1;", "1"),
            ("A=1 ; ", "1"),
            ("A=1 # one", "1"),
            ("A=1#2", "1#2"),
            ("A='1 # 2'# no comment", "1 # 2#"),
            ("A=\"1 2\"", "1 2"),
            ("A='it'\\''s'", "it's"),
            ("A=a\"b\"'c'd", "abcd"),
            ("A='$x `y` \\'", "$x `y` \\"),
            ("A=\"\\$x \\\\ \\\" \\n\"", "$x \\ \" \\n"),
            ("A=\"5$\"", "5$"),
            ("A=a\\ b", "a b"),
            ("A=1\\\n2", "12"),
            ("A=\"1\\\n2\"", "12"),
            ("A='1\n2'", "1\n2"),
            ("A=b=c", "b=c"),
            ("A=1\r\n", "1"),
            ("\u{feff}A=1\r", "1"),
            ("export A=1", "1"),
            ("\texport\tA='x y'", "x y"),
            ("A=x~y", "x~y"),
            ("A=\\*", "*"),
        ] {
            let text = text
                .strip_suffix("# no comment")
                .map_or(text.to_string(), |text| format!("{text}#"));
            assert_eq!(value(&text), wanted, "{text:?}");
        }
    }

    #[test]
    fn assignments_keep_their_lines_also_after_values_of_several_lines() {
        let text = "#!/bin/bash\n\nA=1 B=2\nA='x\ny'; B=\"\n\"\nexport A=5 B\n\\\nB=6";
        let wanted = [
            (3, "A", "1"),
            (3, "B", "2"),
            (4, "A", "x\ny"),
            (5, "B", "\n"),
            (7, "A", "5"),
            (9, "B", "6"),
        ];
        assert_eq!(
            pairs(text),
            wanted.map(|(line, key, value)| (line, key.into(), value.into()))
        );
        assert_eq!(read(text, is_key).unwrap().exported, [(7, "B".to_string())]);
        assert_eq!(read("", is_key), Ok(Script::default()));
        assert_eq!(
            read("export\n# A=1\n;".trim_end_matches(';'), is_key),
            Ok(Script::default())
        );
    }

    #[test]
    fn lines_that_need_a_shell_are_refused() {
        for text in [
            "A=$B",
            "A=${B}",
            "A=\"$B\"",
            "A=$(date)",
            "A=$((1+1))",
            "A=`date`",
            "A=\"`date`\"",
            "A=$'x'",
            "A=$1",
            "A=*",
            "A=x?",
            "A=[12]",
            "A={1,2}",
            "A=~",
            "A=x:~",
            "A=1 | B=2",
            "A=1 && B=2",
            "A=1 &",
            "A=(1 2)",
            "A=1 >x",
            "if true",
            "for i in 1",
            "source x",
            ". x",
            "echo x",
            "fi",
            "[ x ]",
            "set -a",
            "A+=1",
            "declare A=1",
        ] {
            let error = read(&format!("A=1\n{text}\n"), is_key).unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(error.to_string().starts_with("line 2: "), "{text}: {error}");
            assert!(
                error.to_string().contains("needs a shell"),
                "{text}: {error}"
            );
            assert!(error.to_string().contains("\n  hint: "), "{text}: {error}");
        }
    }

    #[test]
    fn lines_that_are_not_assignments_are_refused() {
        for (text, said) in [
            ("A = 1", "A has no ="),
            ("A", "A has no ="),
            ("A= 1", "the word after A is not KEY=VALUE"),
            ("export A 1", "the word after A is not KEY=VALUE"),
            ("export -p", "a word is not KEY=VALUE"),
            ("1A=2", "a word is not KEY=VALUE"),
            ("'A'=2", "a word is not KEY=VALUE"),
            ("\\A=2", "a word is not KEY=VALUE"),
            ("A=1;;", "there is nothing before ';'"),
            (";", "there is nothing before ';'"),
            ("A='x", "the quote ' is not closed"),
            ("A=\"x\n", "the quote \" is not closed"),
        ] {
            let error = read(&format!("\n\n{text}"), is_key).unwrap_err();
            let first = error.to_string();
            assert_eq!(
                first.lines().next(),
                Some(format!("line 3: {said}").as_str()),
                "{text:?}"
            );
            assert_eq!(error.exit_status(), 2);
        }
    }

    #[test]
    fn no_refusal_shows_a_value() {
        for text in [
            "SYSDBA_PASSWD=hush;hush",
            "SYSDBA_PASSWD=hush hush",
            "SYSDBA_PASSWD=hush$hush",
            "SYSDBA_PASSWD hush",
            "SYSDBA_PASSWD='hush",
            "SYSDBA_PASSWD=\"hush`",
            "PASSWORD=1 hush",
            "SYSDBA_PASSWD+=hush",
            "A=1\nhush",
        ] {
            let error = read(text, is_key).unwrap_err().to_string();
            assert!(!error.contains("hush"), "{text}: {error}");
        }
    }
}
