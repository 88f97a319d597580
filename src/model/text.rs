//! Makes untrusted text harmless, for a terminal and in JSON.
//!
//! File names, a server's errors and journals may contain anything. Characters that control a
//! terminal are escaped, so that they are visible and have no effect.

use std::borrow::Cow;

/// `text` for display: characters that control a terminal, or change the direction of text, are
/// escaped. Line breaks and tabs stay.
#[must_use]
pub fn escaped(text: &str) -> Cow<'_, str> {
    let stays = |at: usize, c: char| matches!(c, '\n' | '\t') || text[at..].starts_with("\r\n");
    spelled(
        text,
        |at, c| drives_a_terminal(c) && !stays(at, c),
        |c| c.escape_default().to_string(),
    )
}

/// A JSON document with the same characters escaped, as JSON escapes them. Its meaning does not
/// change: such characters occur only within strings, and other control characters never occur.
#[must_use]
pub fn escaped_json(document: &str) -> Cow<'_, str> {
    let drives = |_, c| drives_a_terminal(c) && !c.is_ascii_whitespace();
    spelled(document, drives, |c| format!("\\u{:04x}", u32::from(c)))
}

/// True for control characters, and for those that change the direction of text.
#[must_use]
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

#[cfg(test)]
mod tests {
    use super::*;

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
