//! The page of a run as a file: beside its journal after every run, or where it is asked for.

use super::output::{self, raw, remark};
use crate::analyse::RunResult;
use crate::files;
use crate::model::Error;
use crate::record::journal::Run;
use crate::report::html::{self, page::Page};
use crate::report::table::Detail;
use crate::report::{self, data};
use std::io::Read;
use std::path::{Path, PathBuf};

/// What a page is called in the directory of its run.
const FILE_NAME: &str = "report.html";

/// What every page begins with.
const OPENING: &[u8] = b"<!doctype html>";

/// Writes the page of a run that was just made beside its journal, and says where. A run is no less whole without it.
pub(super) fn beside(run: &Run, result: &RunResult, directory: &Path) {
    put(&html::of(run, result), directory);
}

/// Shows a run that has just ended: its report on stdout, then where its record is, for these verbs, and its page.
pub(super) fn show(run: &Run, result: &RunResult, directory: &Path, json: bool, verbs: &str) {
    if json {
        output::json(&data::json(run, result));
    } else {
        output::result(&report::text(run, result, Detail::Usual));
    }
    place(run, result, directory, verbs);
}

/// Says where the record of a run is, and makes its page.
pub(super) fn place(run: &Run, result: &RunResult, directory: &Path, verbs: &str) {
    remark(&format!("\nthe whole record, for {verbs}:\n  {}\n", directory.display()));
    beside(run, result, directory);
}

/// The same of a page that is made already.
pub(super) fn put(page: &Page, directory: &Path) {
    let path = directory.join(FILE_NAME);
    match files::replace(&path, html::render(page).as_bytes()) {
        Ok(()) => remark(&format!("the page to look at:\n  {}\n", path.display())),
        Err(error) => remark(&format!(
            "rigel: cannot write '{}': {error}\n  the journal is whole: rigel report {} --html writes it again\n",
            path.display(),
            directory.display()
        )),
    }
}

/// `rigel report RUN --html [FILE]`: the page of the run in `place`, its directory or its journal.
pub(super) fn again(page: &Page, place: &Path, file: Option<&Path>) -> Result<(), Error> {
    let directory = if place.is_dir() { Some(place) } else { place.parent() };
    let path = file.map_or_else(|| directory.unwrap_or(Path::new("")).join(FILE_NAME), PathBuf::from);
    write(page, &path)
}

/// Writes a page, or prints it if the file is `-`.
pub(super) fn write(page: &Page, path: &Path) -> Result<(), Error> {
    let text = html::render(page);
    if path == Path::new("-") {
        raw(&text);
        return Ok(());
    }
    refuse_other(path)?;
    files::replace(path, text.as_bytes()).map_err(|error| {
        Error::failed(
            format!("cannot write '{}': {error}", path.display()),
            "name another file by --html FILE, or - for stdout",
        )
    })?;
    remark(&format!("the page to look at:\n  {}\n", path.display()));
    Ok(())
}

/// Refuses to write over anything but a page: a journal cannot be made again, nor can what a device holds.
fn refuse_other(path: &Path) -> Result<(), Error> {
    let mut begins = [0; OPENING.len()];
    let mut is_page = || {
        let read = files::open(path).and_then(|mut file| file.read_exact(&mut begins));
        read.is_ok() && begins.eq_ignore_ascii_case(OPENING)
    };
    if path.exists() && !(path.is_file() && is_page()) {
        return Err(Error::usage(
            format!("--html '{}' exists and is no page", path.display()),
            "name another file, such as report.html",
        ));
    }
    Ok(())
}
