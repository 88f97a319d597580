//! Whatever a name contains, it stays in its line, and a shell takes it as one word.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_model::{Error, drives_a_terminal, in_line, shell_word};

fuzz_target!(|name: &str| {
    let spelled = in_line(name);
    let word = shell_word(name);
    for text in [&spelled[..], &word] {
        assert!(!text.chars().any(drives_a_terminal), "{text:?}");
    }
    assert_eq!(in_line(&spelled), spelled);
    let is_quoted = word.ends_with('\'') && word.trim_start_matches('$').starts_with('\'');
    assert!(is_quoted || !word.contains([' ', ';', '&', '|', '$', '`', '\'', '"', '\\', '<', '>', '(']));
    let error = Error::usage(format!("'{name}' is no target"), "give another");
    assert_eq!(error.to_string().lines().count(), 2);
});
