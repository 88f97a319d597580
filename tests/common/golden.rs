//! Compares text with a file in `tests/golden/`, byte for byte. `UPDATE_GOLDEN=1 cargo test`
//! rewrites the files.

use std::path::Path;

/// Fails if `text` differs from the golden file `name`.
#[track_caller]
pub(crate) fn check(name: &str, text: &str) {
    // A crate's own folder, or the workspace's.
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .find(|folder| folder.join("tests/golden").is_dir())
        .expect("tests run in the project");
    let path = root.join("tests/golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let golden = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        golden == text,
        "{} differs; now:\n{text}\nUPDATE_GOLDEN=1 cargo test writes it anew",
        path.display()
    );
}
