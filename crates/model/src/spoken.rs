//! The URLs of servers in sentences, as a person reads them.
//!
//! In a URL the path of a local socket is percent-encoded: `postgres://ana@%2Frun%2Fpg/shop`. This is
//! the one place that decides how a sentence says it: `ana@/run/pg (shop)`. What is to be pasted back
//! (commands, tables, hints, JSON) keeps the URL.

use super::text::drives_a_terminal;
use std::borrow::Cow;

/// What URLs of databases begin with.
const SCHEMES: [&str; 4] = ["postgres://", "postgresql://", "mysql://", "mariadb://"];

/// `text` with each URL of a server on a local socket as `user@/path (database)`. URLs with a host
/// are readable, and stay.
pub fn spoken(text: &str) -> Cow<'_, str> {
    if !text.contains("://") {
        return Cow::Borrowed(text);
    }
    let mut spoken = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, scheme)) = next_scheme(rest) {
        let (before, url) = rest.split_at(at);
        spoken.push_str(before);
        let end = url.find(|c: char| !is_of_url(c)).unwrap_or(url.len());
        // What ends a sentence ends no URL.
        let url = url[..end].trim_end_matches(['.', ':', '?']);
        match of_socket(&url[scheme.len()..]) {
            Some(words) => spoken.push_str(&words),
            None => spoken.push_str(url),
        }
        rest = &rest[at + url.len()..];
    }
    spoken.push_str(rest);
    Cow::Owned(spoken)
}

/// The first URL of a database: where it begins, and its scheme.
fn next_scheme(text: &str) -> Option<(usize, &'static str)> {
    let places = SCHEMES
        .iter()
        .filter_map(|scheme| Some((text.find(scheme)?, *scheme)));
    places.min_by_key(|(at, _)| *at)
}

fn is_of_url(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-._~%@:/?=&[]".contains(c)
}

/// `user@%2Fpath:port/database?…` in words; `None` if the host is no path, or anything in it is not
/// fit to be shown.
fn of_socket(rest: &str) -> Option<String> {
    let (rest, _) = rest.split_once('?').unwrap_or((rest, ""));
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let (user, place) = authority.rsplit_once('@').unwrap_or(("", authority));
    let (host, port) = place.split_once(':').unwrap_or((place, ""));
    let [user, host, database] = [user, host, database].map(decoded);
    let (user, host, database) = (user?, host?, database?);
    if !host.starts_with('/') || [&user, &host, &database].iter().any(|it| is_unfit(it)) {
        return None;
    }
    let mut words = host;
    if !user.is_empty() {
        words = format!("{user}@{words}");
    }
    if !port.is_empty() {
        words = format!("{words}:{port}");
    }
    if !database.is_empty() {
        words = format!("{words} ({database})");
    }
    Some(words)
}

fn is_unfit(text: &str) -> bool {
    text.chars().any(drives_a_terminal)
}

/// Decodes `%2F` and the like; `None` if that gives no text.
pub fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_server_on_a_socket_is_said_by_its_path() {
        for (text, words) in [
            (
                "vda and postgres://postgres@%2Fvar%2Ftmp%2Fpg/bench was asked for 914/s",
                "vda and postgres@/var/tmp/pg (bench) was asked for 914/s",
            ),
            ("'mysql://a%40b@%2Frun%2Fm.sock/x'", "'a@b@/run/m.sock (x)'"),
            ("postgres://%2Frun:5433", "/run:5433"),
            (
                "postgres://u@%2Fa/one postgres://u@%2Fb/two?sslmode=disable: none",
                "u@/a (one) u@/b (two): none",
            ),
            ("of postgres://u@%2frun/d.", "of u@/run (d)."),
        ] {
            assert_eq!(spoken(text), words, "{text}");
        }
    }

    #[test]
    fn what_is_readable_or_unfit_stays() {
        for text in [
            "a sentence",
            "postgres://bench@db1/perf",
            "https://example.org/%2Fa",
            "postgres://u@%2Frun%1b[2J/d",
            "postgres://u@%2Frun%zz/d",
            "postgres://",
        ] {
            assert_eq!(spoken(text), text);
        }
    }

    proptest! {
        #[test]
        fn any_text_can_be_said(before in ".*", url in "[a-z%2F@:/.?]{0,30}", after in ".*") {
            let said = spoken(&format!("{before} mysql://{url} {after}")).into_owned();
            // What was said is no URL of a socket any more.
            prop_assert_eq!(spoken(&said).into_owned(), said);
        }
    }
}
