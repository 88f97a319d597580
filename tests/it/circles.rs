//! No circle of imports between the files of a crate, and no type name twice in all of them.
//!
//! Reads the sources as `tidy` does. A file imports another if one of its paths (`use crate::…`,
//! `super::…`, `module::item`) leads to an item that is defined there. Re-exports are followed to
//! the definition. So `mod.rs` may re-export the items of its folder, and the folder's files may
//! import each other through it. Methods that one file adds to another file's type are not seen.
//! Code in `#[cfg(test)]`, and files that only tests contain, do not count.

use crate::tidy::{Source, closing, is_word, leading_name, sources, without_tests, words_at};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Type names that may occur more than once, with the reason.
const REPEATED: &[(&str, &str)] = &[
    ("Header", "that of any request, and that of our requests"),
    (
        "Invocation",
        "that of any request, and that of our requests",
    ),
    ("Run", "that of any request, and that of our requests"),
];

#[test]
fn no_file_imports_itself_through_others() {
    let sources = sources();
    let crates = crates_of(&sources);
    let modules: usize = crates.values().map(|crate_| crate_.modules.len()).sum();
    assert!(modules > 200, "only {modules} files were read");
    let circles: Vec<String> = crates
        .iter()
        .flat_map(|(name, crate_)| {
            let circles = crate_.circles().into_iter();
            circles.map(move |circle| format!("{name}: {circle}"))
        })
        .collect();
    assert!(
        circles.is_empty(),
        "\nmove what both need to a file of its own:\n{}\n",
        circles.join("\n")
    );
}

#[test]
fn no_type_name_occurs_twice() {
    let sources = sources();
    let crates = crates_of(&sources);
    let files = crates.values().flat_map(|crate_| crate_.modules.values());
    let twice = names_twice(files.map(|module| (module.file.as_str(), module.code.as_str())));
    assert!(twice.is_empty(), "\n{}\n", twice.join("\n"));
}

fn crates_of(sources: &[Source]) -> BTreeMap<&str, Crate> {
    let mut files: BTreeMap<&str, Vec<(&str, String)>> = BTreeMap::new();
    for source in sources {
        let (name, path) = source.place();
        let of_crate = files.entry(name).or_default();
        of_crate.push((path, source.product_code()));
    }
    let crates = files.into_iter();
    crates
        .map(|(name, files)| (name, Crate::of_code(files)))
        .collect()
}

/// A sentence for each type name that occurs more than once in these files: pairs of name and code.
fn names_twice<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut homes: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (file, code) in files {
        for name in code.lines().filter_map(type_name) {
            homes.entry(name).or_default().push(file);
        }
    }
    homes
        .into_iter()
        .filter(|(name, files)| {
            files.len() > 1 && !REPEATED.iter().any(|(allowed, _)| allowed == name)
        })
        .map(|(name, files)| {
            format!(
                "`{name}` names a type in each of {}: give them telling names",
                files.join(", ")
            )
        })
        .collect()
}

/// The type that this line declares, if it does. Types of functions and implementations are
/// indented.
fn type_name(line: &str) -> Option<String> {
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest
            .strip_prefix('(')
            .and_then(|rest| rest.split_once(')'))
            .map_or(rest, |(_, rest)| rest),
        None => line,
    };
    let line = line.strip_prefix(' ').unwrap_or(line);
    let line = line.strip_prefix("unsafe ").unwrap_or(line);
    let (kind, rest) = line.split_once(' ')?;
    ["struct", "enum", "trait", "type", "union"]
        .contains(&kind)
        .then(|| leading_name(rest))
}

// ---- the graph ----

/// A path of names: of a module from the crate's root, or as written in a source.
type Names = Vec<String>;

/// One file as a module.
struct Module {
    /// Path of the file below `src/`.
    file: String,
    /// Its code without tests.
    code: String,
    imports: Vec<Import>,
}

/// One name that a `use` brings into a file.
struct Import {
    path: Names,
    /// The name under which the file knows it.
    name: String,
    is_public: bool,
}

/// All modules that are files, by their path.
struct Crate {
    modules: BTreeMap<Names, Module>,
}

impl Crate {
    /// Takes paths below `src/`, each with its code.
    fn of_code(files: Vec<(&str, String)>) -> Self {
        let mut modules: BTreeMap<Names, Module> = files
            .into_iter()
            .filter(|(file, _)| *file != "main.rs")
            .map(|(file, code)| {
                let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
                // The root of the crate has no name.
                let names = path.split('/').filter(|name| *name != "lib");
                let imports = imports_of(&code);
                (
                    names.map(str::to_owned).collect(),
                    Module {
                        file: file.to_owned(),
                        code,
                        imports,
                    },
                )
            })
            .collect();
        // A file of tests has no declaration outside `#[cfg(test)]`.
        let declared = |names: &Names, modules: &BTreeMap<Names, Module>| {
            let Some((name, parent)) = names.split_last() else {
                return true;
            };
            modules
                .get(parent)
                .is_none_or(|parent| parent.code.contains(&format!("mod {name};")))
        };
        let tests: Vec<Names> = modules
            .keys()
            .filter(|names| !declared(names, &modules))
            .cloned()
            .collect();
        tests.iter().for_each(|names| _ = modules.remove(names));
        Self { modules }
    }

    /// The file that defines what `path` means in module `from`; `None` for a module, or another
    /// crate's item.
    fn home(&self, path: &[String], from: &[String], depth: usize) -> Option<&Names> {
        // Two files that re-export all of each other would never end.
        let depth = depth.checked_sub(1)?;
        let (mut at, mut rest) = match path.first()?.as_str() {
            "crate" => (Names::new(), &path[1..]),
            "self" => (from.to_vec(), &path[1..]),
            "super" => {
                let up = path.iter().take_while(|name| *name == "super").count();
                (from[..from.len().checked_sub(up)?].to_vec(), &path[up..])
            }
            first if self.modules.contains_key(&below(from, first)) => (from.to_vec(), path),
            first => {
                let import = self
                    .import(from, first)
                    .filter(|import| import.path[0] != first)?;
                return self.home(&[&import.path, &path[1..]].concat(), from, depth);
            }
        };
        while let Some((name, after)) = rest.split_first() {
            let child = below(&at, name);
            if self.modules.contains_key(&child) {
                (at, rest) = (child, after);
                continue;
            }
            if let Some(import) = self
                .import(&at, name)
                .filter(|import| at != from || import.path != path)
            {
                return self.home(&[&import.path, after].concat(), &at, depth);
            }
            return self.modules.get_key_value(&at).map(|(names, _)| names);
        }
        None
    }

    fn import(&self, module: &[String], name: &str) -> Option<&Import> {
        self.modules
            .get(module)?
            .imports
            .iter()
            .find(|import| import.name == name)
    }

    /// The modules that this one imports.
    fn imported_by<'a>(&'a self, names: &'a Names) -> BTreeSet<&'a Names> {
        const DEPTH_MAX: usize = 20;
        let module = &self.modules[names];
        let code = without_imports(&module.code);
        // A re-export is no import, unless the file also uses the name itself.
        let used = module
            .imports
            .iter()
            .filter(|import| !import.is_public || words_at(&code, &import.name).count() > 0);
        let mut found: BTreeSet<&Names> = used
            .filter_map(|import| self.home(&import.path, names, DEPTH_MAX))
            .collect();
        found.extend(
            paths_in(&code)
                .iter()
                .filter_map(|path| self.home(path, names, DEPTH_MAX)),
        );
        found.remove(names);
        found
    }

    /// The shortest circle through each file that is part of one, as a line each.
    fn circles(&self) -> Vec<String> {
        let edges: BTreeMap<&Names, Vec<&Names>> = (self.modules.keys())
            .map(|names| (names, self.imported_by(names).into_iter().collect()))
            .collect();
        let mut circles = BTreeMap::new();
        for start in edges.keys() {
            if let Some(circle) = shortest_circle(start, &edges) {
                let mut files = circle.clone();
                files.sort();
                circles.entry(files).or_insert_with(|| {
                    let names: Vec<&str> = circle
                        .iter()
                        .map(|names| self.modules[*names].file.as_str())
                        .collect();
                    format!("{} imports {}", names.join(" imports "), names[0])
                });
            }
        }
        circles.into_values().collect()
    }
}

/// The shortest way from `start` back to it.
fn shortest_circle<'a>(
    start: &'a Names,
    edges: &BTreeMap<&'a Names, Vec<&'a Names>>,
) -> Option<Vec<&'a Names>> {
    let mut before: BTreeMap<&Names, &Names> = BTreeMap::new();
    let mut next = VecDeque::from([start]);
    while let Some(at) = next.pop_front() {
        for to in &edges[at] {
            if *to == start {
                let mut circle = vec![at];
                while let Some(earlier) = before.get(circle[circle.len() - 1]) {
                    circle.push(earlier);
                }
                circle.reverse();
                return Some(circle);
            }
            if !before.contains_key(to) {
                before.insert(to, at);
                next.push_back(to);
            }
        }
    }
    None
}

fn below(module: &[String], name: &str) -> Names {
    [module, &[name.to_owned()]].concat()
}

// ---- reading paths ----

/// Start and end of every `use …;`.
fn import_spans(code: &str) -> Vec<(usize, usize)> {
    words_at(code, "use")
        .filter_map(|at| Some((at, at + code[at..].find(';')?)))
        .collect()
}

fn imports_of(code: &str) -> Vec<Import> {
    let mut imports = Vec::new();
    for (start, end) in import_spans(code) {
        let before = code[..start]
            .rfind([';', '}', '{', ']'])
            .map_or(0, |at| at + 1);
        let is_public = code[before..start].trim_start().starts_with("pub");
        expand(&code[start + 3..end], &[], is_public, &mut imports);
    }
    imports
}

fn names_of(path: &str) -> impl Iterator<Item = String> {
    path.split("::")
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
}

/// Takes a tree of imports apart: `a::{b, c as d}`.
fn expand(tree: &str, before: &[String], is_public: bool, imports: &mut Vec<Import>) {
    if let Some(open) = tree.find('{') {
        let before: Names = before
            .iter()
            .cloned()
            .chain(names_of(&tree[..open]))
            .collect();
        let end = closing(tree, open).unwrap_or(tree.len()) - 1;
        let mut depth = 0;
        let items = tree[open + 1..end].split(|c| {
            depth += i32::from(c == '{') - i32::from(c == '}');
            c == ',' && depth == 0
        });
        items
            .filter(|item| !item.trim().is_empty())
            .for_each(|item| expand(item, &before, is_public, imports));
        return;
    }
    let (path, renamed) = tree
        .split_once(" as ")
        .map_or((tree, None), |(path, name)| (path, Some(name.trim())));
    let mut path: Names = before.iter().cloned().chain(names_of(path)).collect();
    if path.len() > 1 {
        path.pop_if(|last| last == "self");
    }
    let Some(last) = path.last() else { return };
    imports.push(Import {
        name: renamed.unwrap_or(last).to_owned(),
        path,
        is_public,
    });
}

/// The code with every `use …;` blanked.
fn without_imports(code: &str) -> String {
    let mut kept = code.to_owned();
    for (start, end) in import_spans(code) {
        kept.replace_range(start..end, &" ".repeat(end - start));
    }
    kept
}

/// Every path of two or more names that begins with a module.
fn paths_in(code: &str) -> BTreeSet<Names> {
    let bytes = code.as_bytes();
    let mut paths = BTreeSet::new();
    for (at, _) in code.match_indices("::") {
        let start = bytes[..at]
            .iter()
            .rposition(|byte| !is_word(*byte))
            .map_or(0, |before| before + 1);
        // The first `::` of a path only, and no type's own items.
        if start == at || code[..start].ends_with("::") || !bytes[start].is_ascii_lowercase() {
            continue;
        }
        let path = code[start..].split("::").map(leading_name);
        let mut names: Names = Vec::new();
        for (name, part) in path.zip(code[start..].split("::")) {
            if name.is_empty() {
                break;
            }
            let is_last = name.len() < part.len();
            names.push(name);
            if is_last {
                break;
            }
        }
        if names.len() > 1 {
            paths.insert(names);
        }
    }
    paths
}

// ---- every rule can fail ----

fn circles_in(files: &[(&str, &str)]) -> Vec<String> {
    let files = files
        .iter()
        .map(|(file, code)| (*file, without_tests(code)))
        .collect();
    Crate::of_code(files).circles()
}

#[test]
fn a_circle_is_found_in_every_form() {
    for (a, b) in [
        ("use crate::b::B;", "use crate::a::A;"),
        ("use super::b::{B, C};", "fn f() { crate::a::go() }"),
        (
            "use crate::{b, c::C}; fn f() { b::go() }",
            "use super::a;\nfn f() -> a::A {}",
        ),
        (
            "use crate::{b::{self as other}}; fn f() { other::go() }",
            "pub(crate) use crate::a::A as One; fn f(one: One) {}",
        ),
    ] {
        assert_eq!(
            circles_in(&[("a.rs", a), ("b.rs", b)]),
            ["a.rs imports b.rs imports a.rs"],
            "{a} {b}"
        );
    }
    let three = [
        ("a.rs", "use crate::b::B;"),
        ("b.rs", "use crate::c::C;"),
        ("c.rs", "use crate::a::A;"),
    ];
    assert_eq!(
        circles_in(&three),
        ["a.rs imports b.rs imports c.rs imports a.rs"]
    );
    let folder = [
        ("d/mod.rs", "mod e; struct D; fn f() { e::go() }"),
        ("d/e.rs", "use super::D;"),
    ];
    assert_eq!(
        circles_in(&folder),
        ["d/mod.rs imports d/e.rs imports d/mod.rs"]
    );
    let through = [
        ("d/mod.rs", "mod e; pub use e::E;"),
        ("d/e.rs", "use crate::a::A;"),
        ("a.rs", "use crate::d::E;"),
    ];
    assert_eq!(circles_in(&through), ["a.rs imports d/e.rs imports a.rs"]);
}

#[test]
fn a_re_export_a_module_or_a_test_makes_no_circle() {
    for (a, b) in [
        ("use crate::b::B;", "pub use crate::a::A;"),
        ("use crate::b::B;", "use crate::a;"),
        (
            "use crate::b::B;",
            "#[cfg(test)]\nmod tests { use crate::a::A; }",
        ),
        (
            "use crate::b::B; use other::a::A;",
            "use std::a::A; fn f() { B::a::<u8>() }",
        ),
    ] {
        assert_eq!(
            circles_in(&[("a.rs", a), ("b.rs", b)]),
            Vec::<String>::new(),
            "{a} {b}"
        );
    }
    let siblings = [
        ("d/mod.rs", "mod e; mod g; pub use e::E;"),
        ("d/e.rs", "struct E;"),
        ("d/g.rs", "use super::E;"),
    ];
    assert_eq!(circles_in(&siblings), Vec::<String>::new());
    let of_tests = [
        ("d/mod.rs", "#[cfg(test)]\nmod e;\nstruct D;"),
        ("d/e.rs", "use super::D; fn f() { super::e() }"),
    ];
    assert_eq!(circles_in(&of_tests), Vec::<String>::new());
}

#[test]
fn a_type_name_that_occurs_twice_is_found() {
    let twice = |one, other| names_twice([("a.rs", one), ("b.rs", other)].into_iter()).len();
    assert_eq!(
        twice("pub struct Name<T>(T);", "pub(in crate::b) enum Name {}"),
        1
    );
    assert_eq!(
        twice(
            "type Name = u8;",
            "    pub unsafe trait Name {}\npub unsafe trait Name {}"
        ),
        1
    );
    assert_eq!(
        twice(
            "struct Name;",
            "impl Other for It {\n    type Name = u8;\n}\nstruct Named;\nfn Name() {}"
        ),
        0
    );
}
