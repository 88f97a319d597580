//! The page of a run as a file: next to its journal after every run, or where the user wants it.

use super::output::{self, raw, remark};

use rigel_device::bounded;
use rigel_model::{Error, failed, files, shell_path, usage};
use rigel_report::document::{Document, Extent};
use rigel_report::{html, text};
use rigel_verbs::{Evaluated, runs_before};
use std::io::Read;
use std::path::{Path, PathBuf};

/// File name of a page in its run's directory.
const FILE_NAME: &str = "report.html";

/// The first bytes of every page.
const OPENING: &[u8] = b"<!doctype html>";

/// Shows a completed run: its screen of text or JSON on stdout, then where its results are.
pub(super) fn show(measured: &Evaluated, directory: &Path, json: bool) {
    let document = measured.document();
    if json {
        output::json(&measured.json());
    } else {
        output::result(&screen(&document, directory));
    }
    place(&document, directory);
}

/// The run at `place` with what the runs in the directories beside it say of the next one. Storage that
/// does not answer there is left alone.
pub(super) fn with_earlier(measured: Evaluated, place: &Path) -> Evaluated {
    let (run, header) = (place.to_path_buf(), measured.run.header.clone());
    let what = format!("looking for runs beside '{}'", place.display());
    let before = bounded::call(&what, bounded::ANSWER, move || runs_before(&run, &header));
    measured.with_earlier(&before.unwrap_or_default())
}

/// The report of the run at `place` on one screen of text.
pub(super) fn screen(document: &Document, place: &Path) -> String {
    let run = shell_path(place);
    let next = document.next.iter().map(|next| next.replace("RUN", &run));
    let document = Document {
        next: next.collect(),
        ..document.clone()
    };
    text::render(&document, Extent::Screen)
}

/// Writes the page of a run next to its journal, and prints how to see all of it, and where the page
/// is. `place` is the run's directory or its journal. A failure does not make the run fail.
pub(super) fn place(document: &Document, place: &Path) {
    let run = shell_path(place);
    remark(&format!("\nAll of it: rigel report {run} --verbose\n"));
    put(document, place);
}

/// Writes a page next to the journal of the run at `place`, and prints its path.
pub(super) fn put(page: &Document, place: &Path) {
    let path = beside_journal(place);
    match files::replace(&path, html::render(page).as_bytes()) {
        Ok(()) => remark(&format!("Page: {}\n", path.display())),
        Err(error) => remark(&format!(
            "rigel: cannot write '{}': {error}\n  the journal is complete: rigel report {} --html \
             writes the page again\n",
            path.display(),
            place.display()
        )),
    }
}

/// The path of the page of the run at `place`.
fn beside_journal(place: &Path) -> PathBuf {
    let directory = if place.is_dir() {
        Some(place)
    } else {
        place.parent()
    };
    directory.unwrap_or(Path::new("")).join(FILE_NAME)
}

/// `rigel report RUN --html [FILE]`: the page of the run at `place`, which is its directory or its
/// journal.
pub(super) fn again(page: &Document, place: &Path, file: Option<&Path>) -> Result<(), Error> {
    let path = file.map_or_else(|| beside_journal(place), PathBuf::from);
    write(page, &path)
}

/// Writes a page, or prints it if the file is `-`.
pub(super) fn write(page: &Document, path: &Path) -> Result<(), Error> {
    let text = html::render(page);
    if path == Path::new("-") {
        raw(&text);
        return Ok(());
    }
    refuse_other(path)?;
    files::replace(path, text.as_bytes()).map_err(|error| {
        failed!(
            "cannot write '{path}': {error}",
            "give another file with --html FILE, or - for stdout",
            path = path.display()
        )
    })?;
    remark(&format!("Page: {}\n", path.display()));
    Ok(())
}

/// Refuses to overwrite anything but a page: a journal or the data of a device cannot be restored.
fn refuse_other(path: &Path) -> Result<(), Error> {
    let mut begins = [0; OPENING.len()];
    let mut is_page = || {
        let read = files::open(path).and_then(|mut file| file.read_exact(&mut begins));
        read.is_ok() && begins.eq_ignore_ascii_case(OPENING)
    };
    if path.exists() && !(path.is_file() && is_page()) {
        return Err(usage!(
            "--html '{path}' exists and is not a page of Rigel",
            "give another file, such as report.html",
            path = path.display()
        ));
    }
    Ok(())
}
