//! Orion's list of targets: the LUN file.
//!
//! Input: a test's name, and the text of a file. Output: where the list may be, and its targets.
//! Opens no file.

use rigel_model::{Error, Target, usage};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Possible paths of the list of targets of `testname`, in the order to try.
///
/// Orion always appends `.lun`, even to a name that ends in it. A user who types the whole file
/// name means that file, so it is tried second.
pub fn candidates(testname: &str) -> Vec<PathBuf> {
    let mut candidates = vec![PathBuf::from(format!("{testname}.lun"))];
    if is_lun_name(testname) {
        candidates.push(PathBuf::from(testname));
    }
    candidates
}

/// A remark about the list found at `found`; `None` if it is the one that Orion would read.
pub fn remark(testname: &str, found: &Path) -> Option<String> {
    (is_lun_name(testname) && found == Path::new(testname)).then(|| {
        format!(
            "-testname {testname}: reads {testname}; Orion would look for {testname}.lun \
             (-testname takes no .lun)"
        )
    })
}

fn is_lun_name(testname: &str) -> bool {
    Path::new(testname)
        .extension()
        .is_some_and(|extension| extension == "lun")
}

/// The targets in a LUN file: one per line, without surrounding spaces; blank lines and lines that
/// begin with `#` are skipped. `path` is for messages.
///
/// # Errors
/// The list is empty, names a target twice, names a model, or has a line with surrounding spaces for which a file
/// with exactly that name exists: Orion would take that file.
pub fn parse(
    text: &str,
    path: &Path,
    is_there: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, Error> {
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    let mut members = Vec::new();
    // Some editors begin a file with a byte order mark, which is not part of a name.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (index, line) in text.lines().enumerate() {
        let name = line.trim();
        if name.is_empty() || name.starts_with('#') {
            continue;
        }
        // The line as in the file, without the line ending.
        let whole = line.trim_end_matches('\r');
        if whole != name && is_there(Path::new(whole)) {
            return Err(usage!(
                "'{path}', line {number}: '{whole}' exists, but spaces at the ends of a line are \
                 ignored",
                "rename it; or remove the spaces, if '{name}' is meant",
                path = path.display(),
                number = index + 1
            ));
        }
        if Target::model(name).is_some() {
            return Err(usage!(
                "'{path}' lists '{name}', a model, which is no file or device",
                "give it with --target '{name}'",
                path = path.display()
            ));
        }
        if let Some(first) = lines.insert(name, index + 1) {
            return Err(usage!(
                "'{path}' lists '{name}' twice, in lines {first} and {number}",
                "remove one of them",
                path = path.display(),
                number = index + 1
            ));
        }
        members.push(PathBuf::from(name));
    }
    if members.is_empty() {
        return Err(usage!(
            "'{path}' lists no target",
            "write one file or device per line, such as /dev/sdb",
            path = path.display()
        ));
    }
    Ok(members)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, proptest};

    #[test]
    fn a_lun_file_may_have_comments_blanks_and_carriage_returns() {
        let text = "\u{feff}# disks\r\n /dev/sdb \r\n\r\n/data/with space\t\n";
        let members = parse(text, Path::new("t.lun"), |_| false).unwrap();
        assert_eq!(
            members,
            [PathBuf::from("/dev/sdb"), PathBuf::from("/data/with space")]
        );
    }

    #[test]
    fn a_lun_file_that_is_empty_or_names_a_target_twice_is_refused() {
        let error = parse("# nothing\n\n", Path::new("t.lun"), |_| false).unwrap_err();
        assert!(
            error.to_string().contains("'t.lun' lists no target"),
            "{error}"
        );
        let error = parse("/a\n/b\n\n/a \n", Path::new("t.lun"), |_| false).unwrap_err();
        assert!(
            error.to_string().contains("'/a' twice, in lines 1 and 4"),
            "{error}"
        );
    }

    #[test]
    fn a_model_in_a_lun_file_is_refused_and_said_where_it_belongs() {
        let error = parse("/a\nsim:8,500us\n", Path::new("t.lun"), |_| false).unwrap_err();
        assert_eq!(error.hint(), "give it with --target 'sim:8,500us'");
    }

    #[test]
    fn a_name_that_differs_from_another_by_a_space_is_refused() {
        let text = "/data/a\n/data/b \r\n";
        let is_there = |path: &Path| path == Path::new("/data/b ");
        let error = parse(text, Path::new("t.lun"), is_there).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("'t.lun', line 2: '/data/b ' exists"),
            "{error}"
        );
        assert_eq!(parse(text, Path::new("t.lun"), |_| false).unwrap().len(), 2);
    }

    #[test]
    fn a_name_that_ends_in_lun_finds_both() {
        assert_eq!(candidates("t"), [PathBuf::from("t.lun")]);
        assert_eq!(
            candidates("/x/t.lun"),
            [PathBuf::from("/x/t.lun.lun"), PathBuf::from("/x/t.lun")]
        );
        assert_eq!(remark("t", Path::new("t.lun")), None);
        assert_eq!(remark("t.lun", Path::new("t.lun.lun")), None);
        assert!(remark("t.lun", Path::new("t.lun")).is_some());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in any::<String>()) {
            let _ = parse(&text, Path::new("t.lun"), |_| false);
        }
    }
}
