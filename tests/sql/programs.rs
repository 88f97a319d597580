//! The programs of a `PostgreSQL`, with one change: its files are made once, and copied for each
//! server of a test. `initdb` takes a second of CPU, and every test has a server of its own.
//! servers.rs tests the programs as they are.

use crate::common::{Missing, scratch_directory, text};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Stands in for `initdb`, for each user and each set of arguments: whoever comes first makes the
/// files, which have the user's right to read them and no other.
const COPIES: &str = r#"#!/bin/sh
set -e
for last; do :; done
data=${last#--pgdata=}
made=MADE/$(id -u)-$(echo "$*" | sed 's/--pgdata=.*//' | cksum | tr -d ' ')
if [ ! -d "$made" ]; then
    new=$(mktemp -d -p MADE)
    INITDB "$@" >&2
    cp -R "$data" "$new/data"
    # Two may come first.
    mv -T "$new" "$made" 2>/dev/null || rm -r "$new"
    exit
fi
mkdir -p "$data"
chmod 700 "$data"
cp -R "$made/data/." "$data"
"#;

/// A folder with the programs in `bin`, of which `initdb` copies. It stays for the next run.
pub(crate) fn copying(bin: &Path, version: &str) -> Result<PathBuf, Missing> {
    /// The versions that this process has made.
    static READY: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let initdb = bin.join("initdb");
    if !initdb.exists() {
        return Err(Missing(format!(
            "{} is missing: scripts/setup.sh test brings it",
            initdb.display()
        )));
    }
    let folder = scratch_directory().join(format!("programs-{version}"));
    let mut ready = READY.lock().unwrap();
    if ready.insert(version.into()) {
        let _ = fs::remove_dir_all(&folder);
        let made = folder.with_extension("made");
        for folder in [&folder, &made] {
            fs::create_dir_all(folder).unwrap();
        }
        // The server's user makes the files.
        fs::set_permissions(&made, fs::Permissions::from_mode(0o1777)).unwrap();
        for program in fs::read_dir(bin).unwrap().flatten() {
            symlink(program.path(), folder.join(program.file_name())).unwrap();
        }
        let script = COPIES.replace("MADE", text(&made));
        let script = script.replace("INITDB", text(&initdb));
        let copies = folder.join("initdb");
        fs::remove_file(&copies).unwrap();
        fs::write(&copies, script).unwrap();
        fs::set_permissions(&copies, fs::Permissions::from_mode(0o755)).unwrap();
    }
    Ok(folder)
}
