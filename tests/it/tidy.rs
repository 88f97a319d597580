//! Tests of the architecture: reads the sources and fails if a house rule is broken.
//!
//! Each rule is a row of a table below, with the reason that a failure prints. Which crate may use
//! which is in their manifests, and Cargo keeps it; a test compares them with the document. Code in `#[cfg(test)]` is exempt from most rules; comments and strings never
//! count as code. The last tests break every rule on purpose, on small strings, to show that each
//! can fail. `circles` has the rules that need all files together: no circle of imports, no type
//! name twice.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Code that is allowed only in certain files.
struct Banned {
    /// The code; it matches only if no letter, digit or underscore adjoins it.
    code: &'static str,
    /// Paths in the project where it is allowed; a path that ends in `/` is a folder.
    allowed_in: &'static [&'static str],
    /// True if it is also allowed in `#[cfg(test)]`.
    allowed_in_tests: bool,
    /// Message if the rule is broken.
    why: &'static str,
}

const PRINTING: &str = "only the command line prints: return the text, or a Finding";
const TIME: &str =
    "only clock.rs reads time: take a Clock, or the whole of it cannot run on virtual time";
const UNFINISHED: &str = "nothing unfinished is committed";

const BANNED: &[Banned] = &[
    Banned {
        code: "Instant",
        allowed_in: &["crates/device/src/clock.rs"],
        allowed_in_tests: false,
        why: TIME,
    },
    Banned {
        code: "SystemTime",
        allowed_in: &["crates/device/src/clock.rs"],
        allowed_in_tests: false,
        why: TIME,
    },
    Banned {
        code: "println!",
        allowed_in: &["src/cli/", "src/main.rs"],
        allowed_in_tests: true,
        why: PRINTING,
    },
    Banned {
        code: "print!",
        allowed_in: &["src/cli/", "src/main.rs"],
        allowed_in_tests: true,
        why: PRINTING,
    },
    Banned {
        code: "eprintln!",
        allowed_in: &["src/cli/", "src/main.rs"],
        allowed_in_tests: true,
        why: PRINTING,
    },
    Banned {
        code: "eprint!",
        allowed_in: &["src/cli/", "src/main.rs"],
        allowed_in_tests: true,
        why: PRINTING,
    },
    Banned {
        code: "io::stdout",
        allowed_in: &["src/cli/", "src/main.rs"],
        allowed_in_tests: false,
        why: PRINTING,
    },
    Banned {
        code: "io::stderr",
        allowed_in: &["src/cli/", "src/main.rs"],
        allowed_in_tests: false,
        why: PRINTING,
    },
    Banned {
        code: "unsafe",
        allowed_in: &["crates/device/src/engine/", "crates/database/src/"],
        allowed_in_tests: false,
        why: "unsafe code lives in the engines of files, devices and databases: elsewhere use std or rustix",
    },
    Banned {
        code: "process::exit",
        allowed_in: &["src/main.rs"],
        allowed_in_tests: false,
        why: "the process ends in main.rs alone: return an Error, or destructors do not run",
    },
    Banned {
        code: "dbg!",
        allowed_in: &[],
        allowed_in_tests: false,
        why: UNFINISHED,
    },
    Banned {
        code: "todo!",
        allowed_in: &[],
        allowed_in_tests: false,
        why: UNFINISHED,
    },
    Banned {
        code: "unimplemented!",
        allowed_in: &[],
        allowed_in_tests: false,
        why: UNFINISHED,
    },
];

/// Marks that must not occur in any text of the project, including comments and documents. Written
/// in two halves, because this file is searched too.
/// A static whose value changes, and what of the process it is.
struct KeptStatic {
    /// Path in the project.
    path: &'static str,
    name: &'static str,
    /// Why it cannot be handed down.
    why: &'static str,
}

const NO_STATE: &str = "state is handed down: a static may only hold what the kernel keeps for the \
                        process, see STATICS";

const STATICS: &[KeptStatic] = &[
    KeptStatic {
        path: "crates/database/src/mysql/connection.rs",
        name: "SOCKETS",
        why: "one thread looks at the sockets of all connections",
    },
    KeptStatic {
        path: "crates/database/src/mysql/connection.rs",
        name: "STARTED",
        why: "that thread is started once",
    },
    KeptStatic {
        path: "crates/device/src/bounded.rs",
        name: "STOP",
        why: "a signal is sent to the process",
    },
    KeptStatic {
        path: "crates/device/src/bounded.rs",
        name: "LEFT",
        why: "threads in the kernel keep the process from ending",
    },
    KeptStatic {
        path: "crates/device/src/engine/inherited.rs",
        name: "ADOPTED",
        why: "descriptors are handed over by exec, once",
    },
    KeptStatic {
        path: "crates/device/src/observe/sample.rs",
        name: "ASIDE",
        why: "the kernel lists the threads of the process",
    },
    KeptStatic {
        path: "src/cli/attend.rs",
        name: "PARENT",
        why: "a process has one parent",
    },
    KeptStatic {
        path: "src/cli/live/screen.rs",
        name: "TAKEN",
        why: "the terminal's settings, which a panic restores",
    },
    KeptStatic {
        path: "src/cli/live/screen.rs",
        name: "ONCE",
        why: "a process has one panic hook",
    },
    KeptStatic {
        path: "src/cli/output.rs",
        name: "PRINTING",
        why: "a process has one stdout",
    },
    KeptStatic {
        path: "src/cli/stop.rs",
        name: "SIGNALS",
        why: "a process has one handler for a signal",
    },
];

const MARKS: &[(&str, &str)] = &[
    (concat!("TO", "DO"), "open an issue, or do it"),
    (concat!("FIX", "ME"), "open an issue, or do it"),
    (concat!("XX", "X"), "open an issue, or do it"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("<<<<", "<<<"), "half of a merge"),
    (concat!(">>>>", ">>>"), "half of a merge"),
];

/// Maximum number of lines in main.rs.
const MAIN_LINES_MAX: usize = 60;
/// Maximum number of lines in a source file, including tests.
const FILE_LINES_MAX: usize = 1200;
/// Maximum number of lines in a function outside tests: one screen.
const FUNCTION_LINES_MAX: usize = 100;
/// Maximum number of characters per line, for text that rustfmt cannot break: comments and macros.
/// A line with a string may be longer, because messages are searched for in one piece.
const LINE_CHARS_MAX: usize = 120;

/// The only allowed source of dependencies. A lock file written with a mirror would name the
/// mirror.
const INDEX: &str = "registry+https://github.com/rust-lang/crates.io-index";

// ---- the rules, on the project's files ----

#[test]
fn no_test_takes_the_time() {
    let files = files_below(&root().join("tests"));
    // Tests of known results compare measurements with a clock of their own, as an external bound.
    let others = files
        .iter()
        .filter(|file| !file.starts_with(root().join("tests/truth")));
    let broken: Vec<String> = others
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .flat_map(|file| {
            let found = watches_found(&code_of(
                &fs::read_to_string(file).expect("sources are text"),
            ));
            found
                .into_iter()
                .map(move |what| format!("{}: {what}", file.display()))
        })
        .collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

fn watches_found(code: &str) -> Vec<String> {
    let found = |word| words_at(code, word).map(move |at| (line_of(code, at), word));
    let found = ["Instant", "SystemTime"].into_iter().flat_map(found);
    found
        .map(|(line, word)| format!("line {line}: '{word}': a test holds however long it takes"))
        .collect()
}

#[test]
fn every_file_of_a_test_program_is_part_of_it() {
    let mut left_out = Vec::new();
    for file in files_below(&root().join("tests")) {
        let main = file.with_file_name("main.rs");
        let name = file
            .file_stem()
            .expect("files have names")
            .to_string_lossy()
            .into_owned();
        if file.extension().is_some_and(|extension| extension == "rs")
            && name != "main"
            && main.exists()
        {
            let text = fs::read_to_string(&main).expect("sources are text");
            if !declares(&text, &name) {
                left_out.push(format!(
                    "{}: its tests do not run: {} lacks `mod {name};`",
                    file.display(),
                    main.display()
                ));
            }
        }
    }
    assert!(left_out.is_empty(), "\n{}\n", left_out.join("\n"));
}

fn declares(text: &str, name: &str) -> bool {
    text.lines()
        .any(|line| line.trim() == format!("mod {name};"))
}

#[test]
fn the_table_of_crates_is_that_of_the_document() {
    let document = read("docs/ARCHITECTURE.md");
    let wrong = table_differences(&document, &crates());
    assert!(
        wrong.is_empty(),
        "\ndocs/ARCHITECTURE.md:\n{}\n",
        wrong.join("\n")
    );
}

#[test]
fn code_that_belongs_to_one_crate_stands_there() {
    check_sources(|source| {
        let banned = |code: &str, in_tests| banned_found(&source.path, code, in_tests);
        let product = source.product_code();
        [banned(&product, false), banned(&source.code(), true)].concat()
    });
}

#[test]
fn texts_of_errors_stand_in_macros() {
    check_sources(|source| error_texts_in_calls(&source.product_code()));
}

#[test]
fn state_is_handed_down_and_not_kept_in_statics() {
    assert!(STATICS.iter().all(|one| !one.why.is_empty()));
    let kept = STATICS.iter();
    let mut unseen: BTreeSet<(String, String)> =
        kept.map(|one| (one.path.into(), one.name.into())).collect();
    let mut broken = Vec::new();
    let is_product = |one: &Source| {
        format!("/{}", one.path).contains("/src/") && !one.path.ends_with("/tests.rs")
    };
    for source in sources().into_iter().filter(is_product) {
        for (line, name) in statics_with_state(&source.product_code()) {
            let found = (source.path.clone(), name);
            if !unseen.remove(&found) {
                let (path, name) = found;
                broken.push(format!("{path}:{line}: static {name}: {NO_STATE}"));
            }
        }
    }
    broken.extend(
        unseen
            .iter()
            .map(|(path, name)| format!("{path} has no static {name}")),
    );
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_file_opens_with_what_it_is() {
    check_sources(|source| opening_missing(&source.text));
}

#[test]
fn files_functions_and_lines_fit_a_reader() {
    check_sources(|source| {
        let lines_max = if source.path == "src/main.rs" {
            MAIN_LINES_MAX
        } else {
            FILE_LINES_MAX
        };
        [
            too_many_lines(&source.text, lines_max),
            long_functions(&source.product_code(), FUNCTION_LINES_MAX),
            long_lines(&source.text),
        ]
        .concat()
    });
}

#[test]
fn the_library_root_is_a_map_without_code() {
    check_sources(|source| {
        if source.path == "src/lib.rs" {
            code_in_map(&source.code())
        } else {
            Vec::new()
        }
    });
}

#[test]
fn every_dependency_says_why_it_is_there() {
    report(
        &dependencies_without_reason(&read("Cargo.toml")),
        "Cargo.toml",
    );
}

#[test]
fn the_lock_file_names_one_source() {
    report(&foreign_sources(&read("Cargo.lock")), "Cargo.lock");
}

#[test]
fn no_text_carries_a_mark_of_unfinished_work() {
    let mut searched = 0;
    for file in project_files() {
        // Files that are not text (vendored pictures, recorded journals) contain no such marks.
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        report(&marks_found(&text), &file.display().to_string());
        searched += 1;
    }
    assert!(
        searched > 20,
        "only {searched} files were searched: is this the project's folder?"
    );
}

// ---- what each rule looks for; every function returns one sentence for each breach ----

/// Our own crates, each with those of ours that its product code depends on.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let folders = fs::read_dir(root().join("crates")).expect("the folder of crates");
    let mut crates: BTreeMap<String, BTreeSet<String>> = folders
        .map(|entry| entry.expect("an entry of a folder"))
        .map(|entry| {
            let name = entry.file_name().to_string_lossy().into_owned();
            let manifest = read(&format!("crates/{name}/Cargo.toml"));
            (name, own_dependencies(&manifest))
        })
        .collect();
    crates.insert("rigel".into(), own_dependencies(&read("Cargo.toml")));
    crates
}

/// The crates of ours that a manifest names below `[dependencies]`.
fn own_dependencies(manifest: &str) -> BTreeSet<String> {
    let lines = manifest
        .lines()
        .skip_while(|line| *line != "[dependencies]")
        .skip(1)
        .take_while(|line| !line.starts_with('['));
    lines
        .filter_map(|line| line.strip_prefix("rigel-"))
        .map(leading_name)
        .collect()
}

/// Compares `crates` with the table of the document. Its cells are names in backticks, `nothing`
/// or `all`.
fn table_differences(document: &str, crates: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let names = |cell: &str| {
        cell.split('`')
            .skip(1)
            .step_by(2)
            .map(|name| name.trim_start_matches("rigel-").to_owned())
            .collect::<BTreeSet<String>>()
    };
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let (_, table) = document
        .split_once("| crate | what it is | knows |\n")
        .unwrap_or_default();
    for row in table
        .lines()
        .skip(1)
        .take_while(|line| line.starts_with('|'))
    {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [name, _, known] = cells[..] else {
            return vec![format!("'{row}' has not three cells")];
        };
        for name in names(name) {
            let others = crates.keys().filter(|other| **other != name);
            let known = match known {
                "all" => others.cloned().collect(),
                known => names(known),
            };
            shown.insert(name, known);
        }
    }
    let all: BTreeSet<&String> = shown.keys().chain(crates.keys()).collect();
    all.into_iter()
        .filter(|name| shown.get(*name) != crates.get(*name))
        .map(|name| {
            format!(
                "'{name}' knows {:?} there and {:?} in its manifest",
                shown.get(name),
                crates.get(name)
            )
        })
        .collect()
}

fn banned_found(path: &str, code: &str, in_tests: bool) -> Vec<String> {
    BANNED
        .iter()
        .filter(|banned| banned.allowed_in_tests != in_tests)
        .filter(|banned| {
            !banned
                .allowed_in
                .iter()
                .any(|place| path == *place || place.ends_with('/') && path.starts_with(place))
        })
        .flat_map(|banned| {
            words_at(code, banned.code)
                .map(|at| {
                    format!(
                        "line {}: `{}`: {}",
                        line_of(code, at),
                        banned.code,
                        banned.why
                    )
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Errors made by a call with a text, where a macro shows the text as the user reads it.
fn error_texts_in_calls(code: &str) -> Vec<String> {
    let calls = ["usage", "failed"].map(|kind| (kind, format!("Error::{kind}(")));
    let texts = |(kind, call): &(&str, String)| -> Vec<String> {
        let has_text = |at: &usize| {
            let argument = code[at + call.len()..].trim_start();
            // A string is blank here, so that its comma comes first.
            argument.starts_with("format!") || argument.starts_with(',')
        };
        let found = words_at(code, call).filter(has_text);
        found
            .map(|at| format!("line {}: write `{kind}!`", line_of(code, at)))
            .collect()
    };
    calls.iter().flat_map(texts).collect()
}

/// Lines and names of statics that can change.
fn statics_with_state(code: &str) -> Vec<(usize, String)> {
    const CHANGING: [&str; 11] = [
        "Cell",
        "LazyCell",
        "LazyLock",
        "Mutex",
        "Once",
        "OnceCell",
        "OnceLock",
        "RefCell",
        "RwLock",
        "UnsafeCell",
        "mut",
    ];
    let declaration = |at: usize| {
        let rest = code[at + "static".len()..].trim_start();
        let (declared, _) = rest.split_once('=')?;
        let is_changing = declared
            .split(|letter: char| !letter.is_alphanumeric())
            .any(|word| CHANGING.contains(&word) || word.starts_with("Atomic"));
        let named = rest.trim_start_matches("mut ").trim_start();
        let name = leading_name(named);
        // Behind a lifetime there is a type.
        let is_item = named[name.len()..].starts_with(':') && !name.is_empty();
        (is_changing && is_item).then(|| (line_of(code, at), name))
    };
    words_at(code, "static").filter_map(declaration).collect()
}

fn opening_missing(text: &str) -> Vec<String> {
    let found = text.starts_with("//! ");
    if found {
        Vec::new()
    } else {
        vec!["does not open with `//! `: what it is, what goes in and comes out".into()]
    }
}

fn too_many_lines(text: &str, most: usize) -> Vec<String> {
    let lines = text.lines().count();
    if lines > most {
        vec![format!(
            "has {lines} lines, at most {most}: make it two files"
        )]
    } else {
        Vec::new()
    }
}

fn long_lines(text: &str) -> Vec<String> {
    text.lines()
        .enumerate()
        .filter(|(_, line)| !line.contains('"') || line.trim_start().starts_with("//"))
        .map(|(index, line)| (index + 1, line.chars().count()))
        .filter(|(_, chars)| *chars > LINE_CHARS_MAX)
        .map(|(number, chars)| {
            format!("line {number} has {chars} characters, at most {LINE_CHARS_MAX}")
        })
        .collect()
}

fn long_functions(code: &str, most: usize) -> Vec<String> {
    let mut long = Vec::new();
    for at in words_at(code, "fn") {
        let name = leading_name(code[at + 2..].trim_start());
        // `fn(u64) -> u64` is a type.
        if name.is_empty() {
            continue;
        }
        let Some(body) = body_of(code, at) else {
            continue;
        };
        let lines = code[at..closing(code, body).unwrap_or(code.len())]
            .lines()
            .count();
        if lines > most {
            long.push(format!(
                "line {}: `{name}` has {lines} lines, at most {most}",
                line_of(code, at)
            ));
        }
    }
    long
}

fn code_in_map(code: &str) -> Vec<String> {
    code.lines()
        .map(str::trim)
        .filter(|line| {
            !line.is_empty() && !line.starts_with("pub mod ") && !line.starts_with("#![")
        })
        .map(|line| format!("`{line}`: the root only declares rooms"))
        .collect()
}

fn dependencies_without_reason(manifest: &str) -> Vec<String> {
    let mut without = Vec::new();
    let mut in_dependencies = false;
    let mut reasoned: Option<&str> = None;
    let mut above = "";
    for line in manifest.lines().map(str::trim) {
        if line.starts_with('[') {
            in_dependencies = line.ends_with("dependencies]");
        } else if line.starts_with("rigel-") || line.contains("workspace = true") {
            // Ours, and what the workspace's table gives the reason of.
        } else if in_dependencies && let Some((name, _)) = line.split_once(" = ") {
            let family = |name: &str| name.split(['_', '-']).next().map(str::to_owned);
            // `clap_mangen` right below `clap` needs no reason of its own.
            let related =
                reasoned.is_some_and(|before| family(before) == family(name)) && !above.is_empty();
            if above.starts_with("# ") || related {
                reasoned = Some(name);
            } else {
                without.push(format!(
                    "'{name}' has no comment above it that says what it is for"
                ));
            }
        }
        above = line;
    }
    without
}

fn foreign_sources(lock: &str) -> Vec<String> {
    lock.lines()
        .filter_map(|line| line.strip_prefix("source = "))
        .filter(|source| source.trim_matches('"') != INDEX)
        .map(|source| format!("{source} is not {INDEX}"))
        .collect()
}

fn marks_found(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (mark, why) in MARKS {
        for (at, _) in text.match_indices(mark) {
            found.push(format!("line {}: '{mark}': {why}", line_of(text, at)));
        }
    }
    found
}

// ---- reading sources ----

/// A source file of one of our crates.
pub(crate) struct Source {
    /// Path in the project.
    pub(crate) path: String,
    text: String,
}

impl Source {
    /// The crate, and the path below its `src/`.
    pub(crate) fn place(&self) -> (&str, &str) {
        let within = self.path.strip_prefix("crates/");
        within
            .and_then(|path| path.split_once("/src/"))
            .unwrap_or_else(|| ("rigel", self.path.trim_start_matches("src/")))
    }

    /// The text with comments and the contents of strings blanked.
    fn code(&self) -> String {
        code_of(&self.text)
    }

    /// The code without parts that are compiled only for tests.
    pub(crate) fn product_code(&self) -> String {
        without_tests(&self.code())
    }
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

pub(crate) fn sources() -> Vec<Source> {
    let crates = fs::read_dir(root().join("crates")).expect("the folder of crates");
    let mut folders: Vec<PathBuf> = crates
        .map(|entry| entry.expect("an entry of a folder").path().join("src"))
        .collect();
    folders.push(root().join("src"));
    folders
        .iter()
        .flat_map(|folder| files_below(folder))
        .filter(|file| file.extension().is_some_and(|extension| extension == "rs"))
        .map(|file| Source {
            path: file
                .strip_prefix(root())
                .expect("below the root")
                .display()
                .to_string(),
            text: fs::read_to_string(&file).expect("sources are text"),
        })
        .collect()
}

/// Every file that a commit could contain.
fn project_files() -> Vec<PathBuf> {
    let kept = |entry: &PathBuf| {
        let name = entry
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        ![
            "target",
            "dist",
            "demo",
            "corpus",
            "artifacts",
            ".git",
            "Cargo.lock",
            "LICENSE",
        ]
        .contains(&name.as_str())
            && Path::new(&name)
                .extension()
                .is_none_or(|extension| extension != "rigel")
    };
    let entries = fs::read_dir(root())
        .expect("the project's folder")
        .map(|entry| entry.expect("an entry").path());
    entries
        .filter(kept)
        .flat_map(|entry| {
            if entry.is_dir() {
                files_below(&entry)
            } else {
                vec![entry]
            }
        })
        .collect()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
    {
        let path = entry.expect("an entry of a folder").path();
        if path.is_dir() {
            files.extend(files_below(&path));
        } else {
            files.push(path);
        }
    }
    files.sort();
    files
}

fn check_sources(rule: impl Fn(&Source) -> Vec<String>) {
    let sources = sources();
    assert!(
        sources.iter().any(|source| source.path == "src/main.rs"),
        "no sources were found"
    );
    let broken: Vec<String> = sources
        .iter()
        .flat_map(|source| {
            rule(source)
                .into_iter()
                .map(|what| format!("{}: {what}", source.path))
        })
        .collect();
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

fn report(broken: &[String], file: &str) {
    let lines: Vec<String> = broken
        .iter()
        .map(|what| format!("{file}: {what}"))
        .collect();
    assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
}

/// Blanks comments and the contents of strings and characters. Every other byte and every line
/// keeps its position.
fn code_of(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = bytes.to_vec();
    let mut at = 0;
    while at < bytes.len() {
        let end = match bytes[at] {
            b'/' if bytes[at..].starts_with(b"//") => {
                at + find(&bytes[at..], b"\n").unwrap_or(bytes.len() - at)
            }
            b'/' if bytes[at..].starts_with(b"/*") => comment_end(bytes, at),
            b'"' => string_end(bytes, at),
            b'r' if !adjoins_word(bytes, at) && raw_hashes(bytes, at + 1).is_some() => {
                raw_string_end(bytes, at + 1)
            }
            b'\'' => character_end(bytes, at),
            _ => {
                at += 1;
                continue;
            }
        };
        code[at..end]
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b' ');
        at = end;
    }
    String::from_utf8(code).expect("whole strings and comments were blanked")
}

fn find(bytes: &[u8], what: &[u8]) -> Option<usize> {
    bytes.windows(what.len()).position(|window| window == what)
}

fn comment_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth) = (start, 0);
    while at < bytes.len() {
        if bytes[at..].starts_with(b"/*") {
            (at, depth) = (at + 2, depth + 1);
        } else if bytes[at..].starts_with(b"*/") {
            (at, depth) = (at + 2, depth - 1);
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    bytes.len()
}

fn string_end(bytes: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

/// The number of `#` between `r` and a quote, if they are at `at`.
fn raw_hashes(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = bytes[at..].iter().take_while(|byte| **byte == b'#').count();
    (bytes.get(at + hashes) == Some(&b'"')).then_some(hashes)
}

fn raw_string_end(bytes: &[u8], after_r: usize) -> usize {
    let hashes = raw_hashes(bytes, after_r).unwrap_or(0);
    let close = [b"\"".to_vec(), vec![b'#'; hashes]].concat();
    let inside = after_r + hashes + 1;
    find(&bytes[inside..], &close).map_or(bytes.len(), |found| inside + found + close.len())
}

/// The end of a character literal, or of only the quote if it begins a lifetime.
fn character_end(bytes: &[u8], start: usize) -> usize {
    let rest = &bytes[start + 1..];
    if rest.first() == Some(&b'\\') {
        // After the escaped byte, which may itself be a quote.
        return start + 3 + find(&rest[2..], b"'").map_or(0, |found| found + 1);
    }
    // A character has at most four bytes; a lifetime has no quote that close, or has a letter
    // before it.
    let quote = rest.iter().take(5).position(|byte| *byte == b'\'');
    match quote {
        Some(end)
            if std::str::from_utf8(&rest[..end])
                .is_ok_and(|inside| inside.chars().count() == 1) =>
        {
            start + 1 + end + 1
        }
        _ => start + 1,
    }
}

/// Blanks every item after `#[cfg(test)]`.
pub(crate) fn without_tests(code: &str) -> String {
    const MARK: &str = "#[cfg(test)]";
    let mut kept = code.to_owned();
    while let Some(start) = kept.find(MARK) {
        let after = start + MARK.len();
        let item = kept[after..]
            .find(['{', ';'])
            .map_or(kept.len(), |found| after + found);
        let end = closing(&kept, item).unwrap_or((item + 1).min(kept.len()));
        let blank: String = kept[start..end]
            .chars()
            .map(|c| if c == '\n' { '\n' } else { ' ' })
            .collect();
        kept.replace_range(start..end, &blank);
    }
    kept
}

/// The position just after the brace that closes the one at `open`.
pub(crate) fn closing(code: &str, open: usize) -> Option<usize> {
    if code.as_bytes().get(open) != Some(&b'{') {
        return None;
    }
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        depth += i32::from(byte == b'{') - i32::from(byte == b'}');
        if depth == 0 {
            return Some(at + 1);
        }
    }
    None
}

/// Where the body of the function at `start` opens; `None` if it has none.
fn body_of(code: &str, start: usize) -> Option<usize> {
    let mut depth = 0;
    for (at, byte) in code.bytes().enumerate().skip(start) {
        match byte {
            b'(' | b'[' => depth += 1,
            b')' | b']' => depth -= 1,
            b'{' if depth == 0 => return Some(at),
            b';' if depth == 0 => return None,
            _ => {}
        }
    }
    None
}

pub(crate) fn is_word(byte: u8) -> bool {
    byte == b'_' || byte.is_ascii_alphanumeric()
}

fn adjoins_word(bytes: &[u8], at: usize) -> bool {
    at > 0 && is_word(bytes[at - 1])
}

/// Positions of `word` as a whole word. An end that is not a letter, such as `::`, may adjoin
/// anything.
pub(crate) fn words_at<'a>(code: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    let bytes = code.as_bytes();
    let open_end = word.as_bytes().last().is_some_and(|byte| !is_word(*byte));
    code.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let after = bytes.get(at + word.len());
            !adjoins_word(bytes, *at) && (open_end || after.is_none_or(|byte| !is_word(*byte)))
        })
}

pub(crate) fn leading_name(text: &str) -> String {
    text.chars()
        .take_while(|c| *c == '_' || c.is_alphanumeric())
        .collect()
}

fn line_of(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

// ---- every rule can fail ----

#[test]
fn a_table_that_differs_is_found() {
    let crates = crates();
    let names = |known: &BTreeSet<String>| match known.len() {
        0 => "nothing".to_string(),
        count if count == crates.len() - 1 => "all".to_string(),
        _ => {
            let quoted: Vec<String> = known.iter().map(|name| format!("`{name}`")).collect();
            quoted.join(", ")
        }
    };
    let rows: Vec<String> = crates
        .iter()
        .map(|(name, known)| format!("| `{name}` | what | {} |", names(known)))
        .collect();
    let document = format!(
        "| crate | what it is | knows |\n|---|---|---|\n{}\n",
        rows.join("\n")
    );
    assert_eq!(table_differences(&document, &crates), Vec::<String>::new());
    for (row, changed) in [
        ("| `model` | what | nothing |\n", ""),
        (
            "| `model` | what | nothing |",
            "| `model` | what | `device` |",
        ),
        ("| `model` | what |", "| `model`, `attic` | what |"),
        ("| `rigel` | what | all |", "| `rigel` | what | `model` |"),
    ] {
        assert!(document.contains(row), "{row}");
        assert_eq!(
            table_differences(&document.replace(row, changed), &crates).len(),
            1,
            "{changed}"
        );
    }
}

#[test]
fn code_out_of_its_place_is_found() {
    for banned in BANNED {
        let code = format!("fn f() {{ {} }}", banned.code);
        let found = |path: &str| {
            [
                banned_found(path, &code, false),
                banned_found(path, &code, true),
            ]
            .concat()
            .len()
        };
        assert_eq!(
            found("crates/analyse/src/plan/mod.rs"),
            1,
            "{}",
            banned.code
        );
        for place in banned.allowed_in {
            let path = if place.ends_with('/') {
                format!("{place}x.rs")
            } else {
                (*place).to_owned()
            };
            assert_eq!(found(&path), 0, "{} in {path}", banned.code);
        }
    }
    assert_eq!(
        banned_found(
            "crates/analyse/src/plan/mod.rs",
            "struct InstantView; let unsafe_reads = 1;",
            false
        ),
        Vec::<String>::new()
    );
}

#[test]
fn a_text_of_an_error_in_a_call_is_found() {
    let found = |code: &str| error_texts_in_calls(&code_of(code)).len();
    assert_eq!(found("Error::usage(\n    format!(\"{a}\"), \"b\")"), 1);
    assert_eq!(found("Error::failed(\"a\", \"b\")"), 1);
    assert_eq!(found("Error::usage(what, \"b\"); usage!(\"a\", \"b\")"), 0);
}

#[test]
fn a_static_with_state_is_found() {
    let found = |code: &str| statics_with_state(code);
    for code in [
        "static A: AtomicBool = x;",
        "static A: Mutex<Option<Arc<X>>> = x;",
        "static A: std::sync::OnceLock<X> = x;",
        "static A: [Mutex<X>; 2] = x;",
        "static mut A: u8 = 1;",
    ] {
        assert_eq!(found(code), [(1, "A".to_string())], "{code}");
    }
    assert_eq!(
        found("f();\nthread_local! { static B: Cell<u8> = x; }")[0].0,
        2
    );
    for code in [
        "static A: &[&str] = x;",
        "fn f(a: &'static Mutex<X>)",
        "pub static A: u8 = 1;",
    ] {
        assert!(found(code).is_empty(), "{code}");
    }
}

#[test]
fn a_test_with_a_watch_is_found() {
    assert_eq!(
        watches_found("let began = Instant::now();\nlet instants = 1;").len(),
        1
    );
}

#[test]
fn a_test_file_that_is_not_declared_is_found() {
    let text = "mod common;\nmod guard;\n";
    assert!(declares(text, "guard") && !declares(text, "guards") && !declares(text, "soak"));
}

#[test]
fn a_file_without_opening_or_with_too_much_is_found() {
    assert_eq!(opening_missing("use std::fs;\n").len(), 1);
    assert_eq!(opening_missing("//! What it is.\n").len(), 0);
    assert_eq!(too_many_lines("a\nb\nc\n", 2).len(), 1);
    assert_eq!(too_many_lines("a\nb\n", 2).len(), 0);
    assert_eq!(long_lines(&"é".repeat(LINE_CHARS_MAX)).len(), 0);
    assert_eq!(long_lines(&"x".repeat(LINE_CHARS_MAX + 1)).len(), 1);
    assert_eq!(
        long_lines(&format!(
            "say(\"{}\");\n// \"{0}\"",
            "x".repeat(LINE_CHARS_MAX)
        ))
        .len(),
        1
    );
    assert_eq!(code_in_map("pub mod a;\n\nfn f() {}\n").len(), 1);
}

#[test]
fn a_long_function_is_found_and_measured_from_its_name_to_its_brace() {
    let code = "trait T { fn none(&self, a: [u8; 2]); }\nfn long<T>(\n    a: [u8; 4],\n) -> \
                fn(u8) -> u8\nwhere T: Copy,\n{\n if a {}\n}\nfn ok() {}\n";
    assert_eq!(
        long_functions(code, 6),
        ["line 2: `long` has 7 lines, at most 6"]
    );
    assert_eq!(long_functions(code, 7), Vec::<String>::new());
}

#[test]
fn a_dependency_without_reason_is_found() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\n# The lines.\nserde = \
                    \"1\"\nserde_json = \"1\"\nrand = \"1\"\n\nserde_yaml = \
                    \"1\"\n[dev-dependencies]\nfuser = \"1\"\n[profile.release]\nlto = true\n";
    let names: Vec<String> = dependencies_without_reason(manifest);
    assert_eq!(names.len(), 3, "{names:?}");
    assert!(
        names[0].contains("rand") && names[1].contains("serde_yaml") && names[2].contains("fuser"),
        "{names:?}"
    );
}

#[test]
fn a_foreign_source_and_a_mark_are_found() {
    assert_eq!(
        foreign_sources("source = \"registry+https://mirror.example/index\"\n").len(),
        1
    );
    assert_eq!(foreign_sources(&format!("source = \"{INDEX}\"\n")).len(), 0);
    for (mark, _) in MARKS {
        assert_eq!(marks_found(&format!("first\n// {mark} later")).len(), 1);
    }
}

#[test]
fn comments_strings_and_characters_are_no_code() {
    let text = "a // unsafe\n/* x /* unsafe */ unsafe */ b \"un\\\"safe\" r#\"uns\"afe\"# '\"' \
                '\\'' c: &'static str 'é' d";
    let code = code_of(text);
    assert_eq!(
        code.split_whitespace().collect::<Vec<_>>(),
        ["a", "b", "c:", "&", "static", "str", "d"]
    );
    assert_eq!(code.lines().count(), text.lines().count());
    assert_eq!(code.len(), text.len());
}

#[test]
fn test_code_is_no_product_code() {
    let code = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { {} }\n}\nfn c() \
                {}\n#[cfg(test)]\nuse x::y;\nfn d() {}\n";
    let kept = without_tests(code);
    assert_eq!(
        kept.split_whitespace()
            .filter(|word| word.contains("()"))
            .collect::<Vec<_>>(),
        ["a()", "c()", "d()"]
    );
    assert_eq!(kept.lines().count(), code.lines().count());
}
