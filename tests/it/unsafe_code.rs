//! Every `unsafe` of the program, with its argument, in one list: tests/golden/unsafe.md. Who adds one adds a line.

use crate::common::golden;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// The sources of the program, in order.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

/// Where `unsafe` begins in a text, and the argument above each: the comment's lines from `SAFETY:` on.
fn arguments(text: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or_default();
        let words = ["unsafe {", "unsafe impl", "unsafe fn", "unsafe extern"];
        if !words.iter().any(|word| code.contains(word)) {
            continue;
        }
        let above = lines[..number]
            .iter()
            .rposition(|line| line.starts_with("// SAFETY:"));
        let argument = above.map_or_else(String::new, |begin| {
            let comment = lines[begin..number]
                .iter()
                .map_while(|line| line.strip_prefix("//"));
            let words: Vec<&str> = comment.map(str::trim).collect();
            words.join(" ").replacen("SAFETY: ", "", 1)
        });
        found.push((number + 1, argument));
    }
    found
}

#[test]
fn each_unsafe_is_listed_with_its_argument() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    for folder in ["src", "crates"] {
        sources(&root.join(folder), &mut files);
    }
    let mut list = String::from("# Every `unsafe` and why it is sound\n");
    let mut all = 0;
    for path in files {
        let found = arguments(&std::fs::read_to_string(&path).unwrap());
        if found.is_empty() {
            continue;
        }
        let name = path.strip_prefix(root).unwrap().display();
        writeln!(list, "\n## {name}\n").unwrap();
        for (line, argument) in found {
            assert!(
                argument.len() > 8,
                "{name}, line {line}: unsafe without an argument"
            );
            writeln!(list, "* {argument}").unwrap();
            all += 1;
        }
    }
    assert!(all > 20, "only {all} were found");
    golden("unsafe.md", &list);
}

#[test]
fn an_unsafe_without_an_argument_is_found() {
    let with = "// SAFETY: it is ours,\n// alone.\nunsafe { free(it) };";
    assert_eq!(arguments(with), [(3, "it is ours, alone.".to_string())]);
    assert_eq!(arguments("let a = unsafe { b };"), [(1, String::new())]);
    assert_eq!(arguments("// unsafe { not code }"), []);
}
