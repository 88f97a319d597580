//! Checks the documents as far as a machine can: links lead somewhere, commands exist.
//!
//! Walks every Markdown file of the project. A relative link must name a file, and its `#heading`
//! must be a heading there. In blocks marked `sh` or `console`, a `make` target must be in the
//! Makefile, and a `rigel` or `orion` command must use a verb and options in the program's own
//! help. Commands on a simulated target are executed as written, and print the lines that are shown.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for (file, text) in documents() {
        for link in links(&text) {
            if let Some(what) = link_broken(&file, &link) {
                broken.push(format!("{}: {what}", name(&file)));
            }
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn every_command_is_known() {
    let makefile = fs::read_to_string(root().join("Makefile")).expect("Makefile");
    let mut helps = BTreeMap::new();
    let mut broken = Vec::new();
    for (file, text) in documents() {
        for command in commands(&text) {
            let what = match words(&command).first().map(String::as_str) {
                Some("make") => target_unknown(&command, &makefile),
                Some("rigel" | "orion") => {
                    let verb = verb_of(&command);
                    let help = helps.entry(verb.clone()).or_insert_with(|| help_of(&verb));
                    option_unknown(&command, help)
                }
                _ => None,
            };
            broken.extend(what.map(|what| format!("{}: `{command}`: {what}", name(&file))));
        }
    }
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
}

#[test]
fn commands_on_simulated_targets_print_what_documents_show() {
    let folder = std::env::temp_dir().join(format!("rigel-docs-{}", std::process::id()));
    // Several documents begin with the same command.
    let mut tried: BTreeMap<String, String> = BTreeMap::new();
    let mut shown = 0;
    let mut broken = Vec::new();
    for (file, text) in documents() {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder for what the commands leave");
        // Documents name the project's examples.
        symlink(root().join("docs"), folder.join("docs")).expect("a link to the examples");
        for (command, excerpt) in transcripts(&text) {
            let leaves = command.contains(" --out ");
            let known = tried.get(&command).filter(|_| !leaves).cloned();
            let Some(printed) = known.or_else(|| printed_by(&command, &folder, &file)) else {
                continue;
            };
            let missing = excerpt
                .split(|line| line == "…")
                .find(|part| !is_printed(part, &printed));
            if let Some(part) = missing {
                let part = part.join("\n");
                broken.push(format!(
                    "{}: `{command}` printed\n{printed}\nand not\n{part}",
                    name(&file)
                ));
            }
            shown += excerpt.len();
            tried.insert(command, printed);
        }
    }
    let _ = fs::remove_dir_all(&folder);
    assert!(broken.is_empty(), "\n{}\n", broken.join("\n"));
    assert!(shown > 20, "documents show only {shown} lines");
}

/// What a command prints that needs no machine: a measurement of a simulated target, or a report on those
/// before it; `None` of any other.
fn printed_by(command: &str, folder: &Path, file: &Path) -> Option<String> {
    let words = words(command);
    let reads = ["compare", "report", "advise"].contains(&words.get(1)?.as_str());
    let mut runs = words[2..].iter().filter(|word| !word.starts_with('-'));
    let is_there = reads
        && runs
            .next_back()
            .is_some_and(|run| folder.join(run).is_dir());
    if !is_there && !is_simulated(command) {
        return None;
    }
    let mut program = Command::new(env!("CARGO_BIN_EXE_rigel"));
    program
        .args((words[0] == "orion").then_some("orion"))
        .args(&words[1..])
        .current_dir(folder);
    let output = program.output().expect("the program starts");
    let said = String::from_utf8_lossy(&output.stderr);
    // A gate may say no.
    let is_answer = reads && output.status.code() == Some(3);
    assert!(
        output.status.success() || is_answer,
        "{}: `{command}`: {}\n{said}",
        name(file),
        output.status
    );
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// True if these lines are printed, one below the other.
fn is_printed(lines: &[String], printed: &str) -> bool {
    let printed: Vec<&str> = printed.lines().map(str::trim_end).collect();
    lines.is_empty() || printed.windows(lines.len()).any(|place| place == lines)
}

// ---- what each check looks for ----

fn link_broken(file: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = if path.is_empty() {
        file.to_owned()
    } else {
        file.parent()?.join(path)
    };
    if !target.exists() {
        return Some(format!("link to '{link}': there is no such file"));
    }
    if heading.is_empty() || target.extension().is_none_or(|extension| extension != "md") {
        return None;
    }
    let text = fs::read_to_string(&target).ok()?;
    let known = outside_blocks(&text)
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line) == heading);
    (!known).then(|| format!("link to '{link}': there is no such heading"))
}

/// The targets of `[text](target)` outside code.
fn links(text: &str) -> Vec<String> {
    let mut links = Vec::new();
    for line in outside_blocks(text) {
        // Text between backquotes is code.
        let prose: String = line.split('`').step_by(2).collect();
        for rest in prose.split("](").skip(1) {
            links.extend(rest.split_once(')').map(|(link, _)| link.to_owned()));
        }
    }
    links
}

fn outside_blocks(text: &str) -> impl Iterator<Item = &str> {
    let mut inside = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        inside ^= fence;
        !inside && !fence
    })
}

/// The anchor of a heading.
fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>()
        .replace(' ', "-")
}

/// The commands in blocks marked `sh` (every line) or `console` (lines that begin with `$ `).
fn commands(text: &str) -> Vec<String> {
    let commands = transcripts(text).into_iter();
    commands.map(|(command, _)| command).collect()
}

/// The same, each with the lines that it is shown to print: those below it in a `console`, or those of
/// the `text` that follows the `sh` whose last command it is.
fn transcripts(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    // The mark of the current block; empty for an unmarked block.
    let mut block: Option<&str> = None;
    let mut continued = false;
    // True until something else than text follows the last command.
    let mut follows = false;
    for line in text.lines() {
        if let Some(mark) = line.trim_start().strip_prefix("```") {
            block = block.is_none().then(|| mark.trim());
            continued = false;
            continue;
        }
        let said = match block {
            Some("sh") => Some(line),
            Some("console") if continued => Some(line),
            Some("console") => line.strip_prefix("$ "),
            None => {
                follows &= !line.starts_with('#');
                continue;
            }
            _ => None,
        };
        let Some(said) = said else {
            let is_shown = follows && matches!(block, Some("console" | "text"));
            if let Some((_, shown)) = found.last_mut().filter(|_| is_shown) {
                shown.push(line.trim_end().to_owned());
            }
            continue;
        };
        let said = said.trim();
        if said.is_empty() || said.starts_with('#') {
            continue;
        }
        let (said, goes_on) = said
            .strip_suffix('\\')
            .map_or((said, false), |said| (said, true));
        match found.last_mut().filter(|_| continued) {
            Some((command, _)) => command.push_str(said),
            None => found.push((said.to_owned(), Vec::new())),
        }
        (continued, follows) = (goes_on, true);
    }
    found
}

/// The words of a command up to the first shell operator, without comment and leading variable
/// assignments. A quoted text is one word.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in command.chars() {
        let word = words.last_mut().expect("never empty");
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, '|' | '>' | '<' | ';' | '&') => break,
            (None, '#') if word.is_empty() => break,
            (None, _) if c.is_whitespace() => words.push(String::new()),
            _ => word.push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    let mut words: Vec<String> = words
        .into_iter()
        .skip_while(|word| word == "sudo" || word.contains('=') && !word.starts_with('-'))
        .collect();
    if let Some(program) = words.first_mut() {
        *program = program
            .trim_start_matches("./")
            .trim_start_matches("target/release/")
            .to_owned();
    }
    words
}

fn target_unknown(command: &str, makefile: &str) -> Option<String> {
    let words = words(command);
    let targets = words[1..]
        .iter()
        .filter(|word| !word.contains('=') && !word.starts_with('-'));
    targets
        .filter(|target| {
            !makefile
                .lines()
                .any(|line| line.starts_with(&format!("{target}:")))
        })
        .map(|target| format!("the Makefile has no '{target}'"))
        .next()
}

/// `orion` for the program of that name, otherwise the first word that is not an option; for `sql`,
/// the first two.
fn verb_of(command: &str) -> String {
    let words = words(command);
    if words[0] == "orion" {
        return "orion".into();
    }
    let is = |at: usize, wanted: &str| words.get(at).is_some_and(|word| word == wanted);
    let count = match (is(1, "sql"), is(2, "script")) {
        (true, true) => 3,
        (true, false) => 2,
        (false, _) => 1,
    };
    let verb: Vec<&str> = words[1..].iter().take(count).map(String::as_str).collect();
    verb.into_iter()
        .take_while(|word| !word.starts_with('-'))
        .collect::<Vec<_>>()
        .join(" ")
}

fn help_of(verb: &str) -> Result<String, String> {
    let mut program = Command::new(env!("CARGO_BIN_EXE_rigel"));
    let output = program
        .args(verb.split_whitespace())
        .arg("--help")
        .output()
        .expect("the program starts");
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("there is no verb '{verb}'"))
    }
}

fn option_unknown(command: &str, help: &Result<String, String>) -> Option<String> {
    let help = match help {
        Ok(help) => help,
        Err(what) => return Some(what.clone()),
    };
    let is_option = |word: &&String| {
        word.starts_with('-') && word.chars().nth(1).is_some_and(|c| !c.is_ascii_digit())
    };
    words(command)[1..]
        .iter()
        .filter(is_option)
        .map(|word| word.split('=').next().unwrap_or_default())
        .filter(|option| *option != "-" && *option != "--")
        .find(|option| !help_names(help, option))
        .map(|option| format!("the help does not know '{option}'"))
}

fn help_names(help: &str, option: &str) -> bool {
    let part_of_name = |c: char| c.is_alphanumeric() || c == '-' || c == '_';
    help.match_indices(option).any(|(at, _)| {
        !help[..at].ends_with(part_of_name) && !help[at + option.len()..].starts_with(part_of_name)
    })
}

/// True for commands in virtual time: `null:` takes its real time.
fn is_simulated(command: &str) -> bool {
    let words = words(command);
    words
        .first()
        .is_some_and(|word| word == "rigel" || word == "orion")
        && words.iter().any(|word| word.starts_with("sim:"))
}

// ---- the project's files ----

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn name(file: &Path) -> String {
    file.strip_prefix(root())
        .unwrap_or(file)
        .display()
        .to_string()
}

/// Every Markdown file of the project with its text.
fn documents() -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry of a folder").path();
            let hidden = path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with('.'));
            let built = ["target", "dist", "demo"]
                .iter()
                .any(|name| path == root().join(name));
            if hidden || built {
                continue;
            }
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                let text = fs::read_to_string(&path).expect("documents are text");
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 5, "only {} documents were found", found.len());
    found
}

// ---- every check can fail ----

#[test]
fn a_broken_link_is_found() {
    let file = root().join("CONTRIBUTING.md");
    let text = "[a](b.md) and `[no](code.md)`, [x](https://example.org)\n```\n[no](block.md)\n```\n[c](#d)";
    assert_eq!(links(text), ["b.md", "https://example.org", "#d"]);
    assert!(link_broken(&file, "no-such-file.md").is_some());
    assert!(link_broken(&file, "#no-such-heading").is_some());
    assert!(link_broken(&file, "https://example.org/no-such-page").is_none());
    assert!(link_broken(&file, "Makefile").is_none());
    assert_eq!(anchor("## What it does, and `how`"), "what-it-does-and-how");
}

#[test]
fn commands_are_taken_from_their_blocks() {
    let text = "```sh\nmake demo  # minutes\n\nrigel a \\\n  --b c\n```\n```\nrigel \
                no\n```\n```console\n$ rigel d | head\nrigel no\n```\n";
    assert_eq!(
        commands(text),
        ["make demo  # minutes", "rigel a --b c", "rigel d | head"]
    );
    assert_eq!(words("make demo  # minutes"), ["make", "demo"]);
    assert_eq!(
        words("sudo A=1 ./target/release/rigel d --e='f g' | head"),
        ["rigel", "d", "--e=f g"]
    );
    assert_eq!(
        words("make bench ARGS='--rounds 3'"),
        ["make", "bench", "ARGS=--rounds 3"]
    );
}

#[test]
fn an_unknown_target_verb_or_option_is_found() {
    assert!(target_unknown("make nothing", "test: lint\n").is_some());
    assert!(target_unknown("make test PARTS=cpu", "test: lint\n").is_none());
    let help = Ok("  --engine <NAME>\n  -run <LEVEL>\n".to_owned());
    assert!(option_unknown("rigel orion -run simple --engine=psync -5", &help).is_none());
    assert!(option_unknown("rigel orion --eng psync", &help).is_some());
    assert!(option_unknown("rigel orion -runs simple", &help).is_some());
    assert!(option_unknown("rigel x", &Err("there is no verb 'x'".into())).is_some());
    assert_eq!(
        [
            verb_of("orion -run simple"),
            verb_of("rigel check x"),
            verb_of("rigel --version")
        ],
        ["orion", "check", ""]
    );
    assert!(
        is_simulated("rigel orion -run simple --target sim:8,100us")
            && !is_simulated("rigel check x")
    );
}
