//! `rigel --version --verbose`: which program exactly this is, for reports of defects and for packages.

use rigel_device::engine;
use rigel_model::record::journal;
use std::env::consts::{ARCH, OS};
use std::ffi::OsString;

/// The commit that it was built from, by `make build` and `make dist`.
const COMMIT: Option<&str> = option_env!("RIGEL_COMMIT");

/// True if the whole command line asks for it.
pub(super) fn is_asked(arguments: &[OsString]) -> bool {
    let is_one_of = |word: &OsString, names: [&str; 2]| names.iter().any(|name| word == name);
    let is_version = |word: &OsString| is_one_of(word, ["--version", "-V"]);
    let is_verbose = |word: &OsString| is_one_of(word, ["--verbose", "-v"]);
    match arguments {
        [_, first, second] => {
            (is_version(first) && is_verbose(second)) || (is_verbose(first) && is_version(second))
        }
        _ => false,
    }
}

/// Version, commit, target and features, a line each.
pub(super) fn about() -> String {
    let library = if cfg!(target_env = "musl") {
        "musl"
    } else {
        "gnu"
    };
    let linked = if cfg!(target_feature = "crt-static") {
        "static"
    } else {
        "dynamic"
    };
    let engines: Vec<&str> = engine::names()
        .filter(|name| *name != engine::AUTO)
        .collect();
    format!(
        "rigel {}\ncommit: {}\ntarget: {ARCH}-{OS}-{library}, {linked}\nengines: {}\ndatabases: PostgreSQL, MySQL, \
         MariaDB; files of Oracle\njournal: format {}\n",
        env!("CARGO_PKG_VERSION"),
        COMMIT
            .filter(|commit| !commit.is_empty())
            .unwrap_or("not recorded"),
        engines.join(", "),
        journal::FORMAT,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_words_ask_for_it_in_any_order_and_nothing_else_does() {
        let asks = |line: &str| is_asked(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        assert!(asks("rigel --version --verbose") && asks("rigel -v -V"));
        for line in [
            "rigel --version",
            "rigel --verbose --verbose",
            "rigel curve --version --verbose",
        ] {
            assert!(!asks(line), "{line}");
        }
    }

    #[test]
    fn a_defect_can_be_traced_to_a_commit_a_target_and_a_format() {
        let about = about();
        let lines: Vec<&str> = about.lines().collect();
        assert_eq!(lines[0], format!("rigel {}", env!("CARGO_PKG_VERSION")));
        for (line, name) in
            lines[1..]
                .iter()
                .zip(["commit", "target", "engines", "databases", "journal"])
        {
            assert!(line.starts_with(&format!("{name}: ")), "{about}");
        }
        assert!(
            lines[2].contains(ARCH) && lines[3].contains("psync"),
            "{about}"
        );
    }
}
