//! Escapes foreign text for a page: for text, attributes and scripts.

use rigel_model::{escaped, escaped_json, unobeyed};
use serde_json::Value;

/// Escapes text, also for use between the double quotes of an attribute. What could control a terminal, or change the
/// direction of text, is spelled as there; and nothing is a command of a build server that shows the page.
pub(crate) fn html(text: &str) -> String {
    let text = escaped(text);
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            _ => safe.push(c),
        }
    }
    unobeyed(&safe, |c| format!("&#{};", u32::from(c))).into_owned()
}

/// Escapes text of a paragraph, and marks up `code` between backquotes.
pub(super) fn prose(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        // One backquote has no partner.
        return html(text);
    }
    let set = |(index, part): (usize, &&str)| {
        if index % 2 == 0 {
            html(part)
        } else {
            format!("<code>{}</code>", html(part))
        }
    };
    parts.iter().enumerate().map(set).collect()
}

/// Converts text to a value for `id` and for links to it: letters, digits, `-` and `_`.
pub(super) fn id(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || c == '_' {
                c
            } else {
                '-'
            }
        })
        .collect()
}

/// Escapes JSON for the inside of a `<script type="application/json">`. No `<` remains, so that
/// nothing in it can end the script or begin a comment.
pub(super) fn json(value: &Value) -> String {
    let document = value.to_string();
    let document = escaped_json(&document);
    unobeyed(&document, |c| format!("\\u{:04x}", u32::from(c)))
        .replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn code_is_set_as_code_only_between_two_backquotes() {
        assert_eq!(
            prose("run `rigel <x>` & see"),
            "run <code>rigel &lt;x&gt;</code> &amp; see"
        );
        assert_eq!(prose("a ` b"), "a ` b");
    }

    #[test]
    fn a_page_on_a_terminal_or_in_a_log_does_nothing() {
        let text = "a\u{1b}[2J \u{202e}b ##vso[x]\n::error::\n\tc";
        assert_eq!(
            html(text),
            "a\\u{1b}[2J \\u{202e}b #&#35;vso[x]\n:&#58;error::\n\tc"
        );
        let value = Value::from(text);
        let script = json(&value);
        assert!(
            !script.contains(['\u{1b}', '\u{202e}']) && !script.contains("##"),
            "{script}"
        );
        assert_eq!(serde_json::from_str::<Value>(&script).unwrap(), value);
    }

    proptest! {
        #[test]
        fn nothing_leaves_its_place(text in "[a-z<>&\"'`!/\\-\u{2028}\u{2029}]*") {
            let forbidden = ['<', '>', '"', '\''];
            prop_assert!(!html(&text).contains(forbidden));
            prop_assert!(!prose(&text).replace("<code>", "").replace("</code>", "").contains(forbidden));
            let script = json(&Value::from(text.clone()));
            let closing = ['<', '>', '&', '\u{2028}', '\u{2029}'];
            prop_assert!(!script.contains(closing));
            prop_assert_eq!(serde_json::from_str::<Value>(&script).unwrap(), Value::from(text));
        }
    }
}
