//! What quoted a file adds to each of its lines: `> ` in a mail, blanks in Markdown, the name of a log.
//!
//! Input: a text. Output: the same without what all its lines begin with.

use super::awr;
use std::borrow::Cow;

/// Characters with which mail programs and wikis begin the lines that they quote.
const MARKS: [char; 4] = ['>', '|', ' ', '\t'];

/// A text without what its lines begin with.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Unquoted<'a> {
    pub(super) text: Cow<'a, str>,
    /// What was left out at the begin of each line; empty for most texts.
    pub(super) prefix: &'a str,
}

/// The text without the prefix that all its lines share. Lines around those that begin with `>` stay
/// as they are: a mail says something before it quotes.
pub(super) fn unquoted(text: &str) -> Unquoted<'_> {
    let quoted = quoted_lines(text);
    let prefix = prefix_of(text, quoted);
    if prefix.is_empty() {
        return Unquoted {
            text: Cow::Borrowed(text),
            prefix,
        };
    }
    let mut plain = String::with_capacity(text.len());
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let is_quoted = quoted.is_none_or(|(first, last)| (first..=last).contains(&number));
        match line.strip_prefix(prefix) {
            Some(rest) if is_quoted => plain += rest,
            // Shorter than the prefix: nothing was in it.
            _ if is_quoted => plain.push('\n'),
            _ => plain += line,
        }
    }
    Unquoted {
        text: Cow::Owned(plain),
        prefix,
    }
}

/// The numbers of the first and the last line that begin with `>`, if all between do.
fn quoted_lines(text: &str) -> Option<(usize, usize)> {
    let lines = || text.lines().enumerate();
    let is_quoted = |line: &str| line.starts_with('>');
    let (first, _) = lines().find(|(_, line)| is_quoted(line))?;
    let (last, _) = lines().filter(|(_, line)| is_quoted(line)).last()?;
    let mut between = text.lines().skip(first).take(last - first);
    between
        .all(|line| is_quoted(line) || line.trim().is_empty())
        .then_some((first, last))
}

/// The prefix of all these lines; empty if there is none, or if it may belong to them.
fn prefix_of(text: &str, quoted: Option<(usize, usize)>) -> &str {
    let (first, last) = quoted.unwrap_or((0, usize::MAX));
    let lines = || {
        text.lines()
            .skip(first)
            .take((last - first).saturating_add(1))
    };
    let has_content = |line: &&str| !line.trim_matches(MARKS).is_empty();
    let mut filled = lines().filter(has_content);
    let Some(mut shared) = filled.next() else {
        return "";
    };
    let mut count = 1;
    for line in filled {
        let same = shared.char_indices().zip(line.chars());
        let length = same
            .take_while(|((_, one), other)| one == other)
            .last()
            .map_or(0, |((place, c), _)| place + c.len_utf8());
        shared = &shared[..length];
        count += 1;
        if shared.is_empty() {
            return "";
        }
    }
    // A tag is the file's own.
    let shared = shared.split('<').next().unwrap_or_default();
    let marks = &shared[..shared.len() - shared.trim_start_matches(MARKS).len()];
    let begins_report = || lines().any(|line| awr::begins(line.strip_prefix(shared).unwrap_or("")));
    let prefix = if marks != shared && awr::is_like(text) && (awr::is_html(text) || begins_report())
    {
        shared
    } else {
        marks
    };
    // Blanks in front of tabs are part of the way to where the tabs end.
    let may_be_columns = prefix.contains(' ') && prefix.trim().is_empty() && text.contains('\t');
    let is_of_all = lines()
        .filter(|line| !has_content(line))
        .all(|line| line.starts_with(prefix) || prefix.starts_with(line.trim_end()));
    if count < 2 || may_be_columns || !is_of_all {
        return "";
    }
    prefix
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn quoted(text: &str, prefix: &str) -> String {
        let lines = text.lines().flat_map(|line| [prefix, line, "\n"]);
        lines.collect()
    }

    #[test]
    fn what_all_lines_share_is_left_out() {
        const REPORT: &str = "WORKLOAD REPOSITORY report for\n\n   Elapsed: 1\nEnd of Report\n";
        const PAGE: &str = "<h1>\nWORKLOAD REPOSITORY report for\n</h1>\n\n<td>1</td>\n";
        for text in [REPORT, PAGE, "{\n  \"a\": 1\n}\n"] {
            for prefix in ["> ", ">", "> > ", "| ", "    ", "\t"] {
                let plain = unquoted(&quoted(text, prefix)).text.into_owned();
                assert_eq!(plain, text, "{prefix:?}");
                // Editors remove blanks at the end of a line.
                let trimmed: Vec<String> = quoted(text, prefix)
                    .lines()
                    .map(|line| line.trim_end().to_string())
                    .collect();
                assert_eq!(
                    unquoted(&(trimmed.join("\n") + "\n")).text,
                    text,
                    "{prefix:?}"
                );
            }
        }
        for prefix in ["LOG: ", "* ", "10.0.0.1 "] {
            assert_eq!(unquoted(&quoted(REPORT, prefix)).text, REPORT, "{prefix:?}");
            assert_eq!(unquoted(&quoted(PAGE, prefix)).text, PAGE, "{prefix:?}");
        }
        let mail = format!("On Monday Ana wrote:\n\n{}\n-- \nBob\n", quoted(PAGE, "> "));
        assert_eq!(
            unquoted(&mail).text,
            format!("On Monday Ana wrote:\n\n{PAGE}\n-- \nBob\n")
        );
    }

    #[test]
    fn what_belongs_to_the_lines_stays() {
        for text in [
            "",
            "\n\n",
            "> only one line\n",
            "2026-01-01,1\n2026-01-02,2\n",
            "\"a\",\"b\"\n\"c\",\"d\"\n",
            "0, 1, 0\n0, 2, 0\n",
            "<tr>\n<td>\n",
            ";1;2\n;3;4\n",
            // Where a tab ends depends on what is before it.
            "  a\tb\n  c\td\n",
            "> one\nanswer\n> two\n",
        ] {
            assert_eq!(unquoted(text).text, text);
        }
    }

    proptest! {
        #[test]
        fn a_quoted_text_is_the_text(text in "(?s)[a-z<>|\n]{0,60}", prefix in "> (> )?") {
            let text = quoted(&text, "");
            let quotation = quoted(&text, &prefix);
            let plain = unquoted(&quotation);
            if text.lines().filter(|line| !line.trim_matches(MARKS).is_empty()).count() > 1
                && !text.lines().any(|line| line.starts_with(['>', '|', ' ']))
            {
                prop_assert_eq!(plain.text, text);
            }
        }

        #[test]
        fn no_text_breaks_it(text in "(?s).{0,200}") {
            let _ = unquoted(&text);
        }
    }
}
