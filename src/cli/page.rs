//! The page of a run as a file: next to its journal after every run, or where the user wants it.

use super::output::{self, raw, remark};
use super::outputs::{Kept, OutputFile, OutputKind, PAGE_NAME};

use rigel_device::bounded;
use rigel_model::{Error, shell_path};
use rigel_report::document::{Document, Extent};
use rigel_report::{html, text};
use rigel_verbs::{Evaluated, runs_before};
use std::path::{Path, PathBuf};

/// Shows a completed run: its screen of text or JSON on stdout, then where its results are.
pub(super) fn show(measured: &Evaluated, directory: &Path, json: bool) {
    let document = measured.document();
    if json {
        output::json(&measured.json());
    } else {
        output::result(&screen(&document, directory));
    }
    place(&document, measured, directory);
}

/// The same with all of the text, and where its page is.
pub(super) fn show_all(measured: &Evaluated, directory: &Path) {
    let document = measured.document();
    output::result(&text::render(&document, Extent::Full));
    put(&document, measured, directory);
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
pub(super) fn place(document: &Document, measured: &Evaluated, place: &Path) {
    let run = shell_path(place);
    remark(&format!("\nAll of it: rigel report {run} --verbose\n"));
    put(document, measured, place);
}

/// Writes a page next to the journal of the run at `place`, and prints its path.
pub(super) fn put(page: &Document, measured: &Evaluated, place: &Path) {
    let file = beside_journal(place);
    let kept = Kept::of_run(place, measured);
    match file.write(html::render(page).as_bytes(), &kept) {
        Ok(()) => remark(&format!("Page: {}\n", file.path().display())),
        Err(error) => remark(&format!(
            "rigel: {}\n  the journal is complete: rigel report {} --html FILE writes the page\n",
            error.what(),
            place.display()
        )),
    }
}

/// The page of the run at `place`.
fn beside_journal(place: &Path) -> OutputFile<'static> {
    let directory = if place.is_dir() {
        Some(place)
    } else {
        place.parent()
    };
    let path = directory.unwrap_or(Path::new("")).join(PAGE_NAME);
    OutputFile::beside(path, OutputKind::Page)
}

/// The file of `--html [FILE]` for the run at `place`, which is its directory or its journal; `None` for stdout.
pub(super) fn asked(file: Option<&PathBuf>, place: &Path) -> Option<OutputFile<'static>> {
    match file {
        None => Some(beside_journal(place)),
        Some(file) => named(file),
    }
}

/// The file that `--html FILE` names; `None` for stdout.
pub(super) fn named(file: &Path) -> Option<OutputFile<'static>> {
    let is_stdout = file == Path::new("-");
    (!is_stdout).then(|| OutputFile::named("--html", file, OutputKind::Page))
}

/// Writes a page, or prints it if there is no file.
pub(super) fn write(page: &Document, file: Option<&OutputFile>, kept: &Kept) -> Result<(), Error> {
    let text = html::render(page);
    let Some(file) = file else {
        raw(&text);
        return Ok(());
    };
    file.write(text.as_bytes(), kept)?;
    remark(&format!("Page: {}\n", file.path().display()));
    Ok(())
}
