//! Every crate in the build has a licence that `deny.toml` allows.
//!
//! Reads `cargo metadata` and the list in `deny.toml`; needs no other tool and no network besides
//! the build's.

use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let allowed = allowed_licences(&read("deny.toml"));
    let mut broken = Vec::new();
    let packages = packages();
    assert!(
        packages.len() > 20,
        "only {} packages were found",
        packages.len()
    );
    for (name, licence) in &packages {
        if !is_allowed(licence, &allowed) {
            broken.push(format!(
                "{name}: '{licence}' is not among {allowed:?} (deny.toml)"
            ));
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn every_licence_on_the_list_occurs() {
    let packages = packages();
    for licence in allowed_licences(&read("deny.toml")) {
        let occurs = packages
            .iter()
            .any(|(_, expression)| words(expression).contains(&licence));
        assert!(
            occurs,
            "no crate is under '{licence}' any more: take it off the list in deny.toml"
        );
    }
}

/// Files that are not a crate are in no lock file. These are the files of uPlot 1.6.32 as published
/// in the `dist` of its npm package.
#[test]
fn vendored_files_match_their_publication() {
    for (name, published) in [
        (
            "uPlot.iife.min.js",
            "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
        ),
        (
            "uPlot.min.css",
            "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        ),
        (
            "LICENSE",
            "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
        ),
    ] {
        let digest = Sha256::digest(read(&format!("crates/report/src/html/assets/uplot/{name}")));
        let found = digest
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<Vec<_>>()
            .concat();
        assert_eq!(found, published, "SHA-256 of {name}");
    }
}

/// Name and licence expression of every package of the build on Linux.
fn packages() -> Vec<(String, String)> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version=1",
            "--locked",
            "--all-features",
            "--filter-platform=x86_64-unknown-linux-gnu",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata is JSON");
    let packages = metadata["packages"]
        .as_array()
        .expect("metadata lists packages");
    let text = |package: &Value, field: &str| package[field].as_str().unwrap_or("none").to_owned();
    let clarified = clarified(&read("deny.toml"));
    let licence = |package: &Value| match clarified.get(&text(package, "name")) {
        Some(expression) if package["license"].is_null() => expression.clone(),
        _ => text(package, "license"),
    };
    packages
        .iter()
        .map(|package| (text(package, "name"), licence(package)))
        .collect()
}

/// Licences per crate, for crates with a licence text but no name: the `[[licenses.clarify]]` of
/// `deny.toml`.
fn clarified(deny: &str) -> BTreeMap<String, String> {
    let value = |part: &str, key: &str| -> Option<String> {
        let line = part
            .lines()
            .find_map(|line| line.strip_prefix(&format!("{key} = ")))?;
        Some(line.trim_matches('"').to_owned())
    };
    let parts = deny.split("[[licenses.clarify]]").skip(1);
    parts
        .filter_map(|part| Some((value(part, "crate")?, value(part, "expression")?)))
        .collect()
}

fn read(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The strings of `allow = […]`.
fn allowed_licences(deny: &str) -> BTreeSet<String> {
    let list = deny
        .split_once("\nallow = [")
        .expect("deny.toml has a list of licences")
        .1;
    let list = list.split_once(']').expect("the list ends").0;
    list.split('"')
        .skip(1)
        .step_by(2)
        .map(str::to_owned)
        .collect()
}

/// The words of an expression: licences, `AND`, `OR`, `WITH` and parentheses. `/` is the old form
/// of `OR`.
fn words(expression: &str) -> Vec<String> {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut words: Vec<String> = Vec::new();
    let mut parts = spaced.split_whitespace();
    while let Some(part) = parts.next() {
        if part == "WITH"
            && let (Some(licence), Some(exception)) = (words.last_mut(), parts.next())
        {
            // An exception turns it into another licence, with its own entry in the list.
            *licence = format!("{licence} WITH {exception}");
        } else {
            words.push(part.to_owned());
        }
    }
    words
}

/// True if allowed licences are enough to satisfy the expression.
fn is_allowed(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let words = words(expression);
    let mut rest = words.as_slice();
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(words: &mut &[String], allowed: &BTreeSet<String>) -> bool {
    let mut met = both(words, allowed);
    while take(words, "OR") {
        met |= both(words, allowed);
    }
    met
}

fn both(words: &mut &[String], allowed: &BTreeSet<String>) -> bool {
    let mut met = single(words, allowed);
    while take(words, "AND") {
        met &= single(words, allowed);
    }
    met
}

fn single(words: &mut &[String], allowed: &BTreeSet<String>) -> bool {
    if take(words, "(") {
        let met = either(words, allowed);
        return take(words, ")") && met;
    }
    let Some((licence, rest)) = words.split_first() else {
        return false;
    };
    *words = rest;
    allowed.contains(licence)
}

fn take(words: &mut &[String], word: &str) -> bool {
    match words.split_first() {
        Some((first, rest)) if first == word => {
            *words = rest;
            true
        }
        _ => false,
    }
}

#[test]
fn an_expression_is_met_or_not() {
    let allowed = BTreeSet::from(["MIT".to_owned(), "Unicode-3.0".to_owned()]);
    for met in [
        "MIT",
        "MIT/Apache-2.0",
        "GPL-3.0 OR MIT",
        "(MIT OR Apache-2.0) AND Unicode-3.0",
    ] {
        assert!(is_allowed(met, &allowed), "{met}");
    }
    for unmet in [
        "GPL-3.0",
        "",
        "none",
        "MIT AND GPL-3.0",
        "MIT WITH GCC-exception",
        "(MIT OR X) AND GPL-3.0",
        "MIT MIT",
        "(MIT",
    ] {
        assert!(!is_allowed(unmet, &allowed), "{unmet}");
    }
}
