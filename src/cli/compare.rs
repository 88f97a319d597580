//! `rigel compare`: runs side by side, each difference with its interval and whether it is one.

use super::{output, page, soak};
use crate::analyse::{self, Condition, Subject};
use crate::model::{Error, Ratio};
use crate::record::imported::Figures;
use crate::record::journal::{self, Run};
use crate::report::{comparison, html};
use clap::Args;
use std::path::{Path, PathBuf};

/// Compares runs: each figure's ratio to the first run's, its interval, and whether it is a difference
///
/// Conditions that differ are named first. Runs of other sizes of I/O, another workload or another target size are
/// refused: their figures are of different things.
#[derive(Debug, Args)]
#[command(
    after_help = "--fail-if-slower fails only on what is certain: with 95 % confidence, over all headline figures \
                  together, some rate is lower or some response time higher by more than the share. What may be is \
                  printed as a hint.\n\n\
                  Exit status: 0 compared, 1 could not, 2 asked wrongly or not comparable, 3 slower than \
                  --fail-if-slower allows."
)]
pub(super) struct CompareArgs {
    /// Directories of runs, or their journals; the first is the baseline
    #[arg(value_name = "RUN", required = true, num_args = 2..)]
    runs: Vec<PathBuf>,
    /// Ends with status 3 if a headline figure is certainly slower than the baseline's by more than this share
    #[arg(long, value_name = "SHARE")]
    fail_if_slower: Option<Ratio>,
    /// Prints the comparison as JSON
    #[arg(long)]
    json: bool,
    /// Writes a page to look at as well, in one file that needs nothing else; - is stdout, in place of the text
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    html: Option<PathBuf>,
}

/// Compares, and shows what came out.
pub(super) fn run(args: &CompareArgs) -> Result<u8, Error> {
    refuse_duplicates(&args.runs)?;
    for path in &args.runs {
        refuse_soak(path)?;
    }
    let runs = args.runs.iter().map(|path| journal::read(path)).collect::<Result<Vec<Run>, Error>>()?;
    let names = names(&args.runs);
    let subjects: Vec<Subject> = names.iter().zip(&runs).map(|(name, run)| comparison::subject(name, run)).collect();
    let found = analyse::compare(&subjects, args.fail_if_slower);
    refuse_incomparable(&names, &found.conditions)?;
    if let Some(nothing) = names.iter().enumerate().skip(1).find(|(run, _)| !found.has_common(*run)) {
        return Err(Error::asked(
            format!("{} and {} have no figure and no load in common", nothing.1, names[0]),
            cure_of_nothing_in_common(&runs),
        ));
    }
    if args.html.as_deref() != Some(Path::new("-")) {
        output::result(&if args.json { comparison::json(&found) } else { comparison::text(&found) });
    }
    if let Some(file) = &args.html {
        let together: Vec<(String, &Run)> = names.iter().cloned().zip(&runs).collect();
        page::write(&html::compared(&together, &found), file)?;
    }
    let Some(slower) = &found.slower else { return Ok(0) };
    if !slower.certain.is_empty() {
        return Ok(3);
    }
    if let Some(broken) = subjects.iter().find(|subject| !subject.whole || subject.doubts.contains_key("failures")) {
        return Err(Error::failed(
            format!("{} is not whole, or I/Os failed in it: that nothing is slower in it means nothing", broken.name),
            "go on with it by --resume, or measure again",
        ));
    }
    // A step of a build that passes because nothing could be judged would pass for ever.
    if found.verdicts.iter().any(|verdict| verdict.judged == 0) {
        return Err(Error::failed(
            "no headline figure has an interval in both runs, so nothing can be said to be slower",
            "measure longer, or see that both runs came to their end",
        ));
    }
    Ok(0)
}

/// What to do where nothing can be held against anything.
fn cure_of_nothing_in_common(runs: &[Run]) -> &'static str {
    let is_series = |run: &Run| run.imported.iter().any(|one| matches!(one.figures, Figures::Series(_)));
    if runs.iter().any(is_series) {
        "series over time are not compared: `rigel report` shows each of them"
    } else {
        "compare runs of one verb that were asked for the same"
    }
}

/// Rounds with the same number have nothing in common but that.
fn refuse_soak(path: &Path) -> Result<(), Error> {
    if soak::is_soak(&journal::header(path)?) {
        return Err(Error::asked(
            format!("'{}' is a soak, whose rounds are held against each other in its own report", path.display()),
            "look at the pages of both: rigel report RUN --html",
        ));
    }
    Ok(())
}

/// A run against itself shows nothing, and is hardly meant.
fn refuse_duplicates(paths: &[PathBuf]) -> Result<(), Error> {
    let place = |path: &Path| journal::file_of(path).canonicalize().ok();
    for (index, path) in paths.iter().enumerate() {
        if place(path).is_some() && paths[..index].iter().any(|before| place(before) == place(path)) {
            return Err(Error::asked(format!("'{}' is given twice", path.display()), "name every run once"));
        }
    }
    Ok(())
}

/// What the runs are called: by their directories' names, and by what is before that where two have the same.
fn names(paths: &[PathBuf]) -> Vec<String> {
    let directory = |path: &PathBuf| match path.file_name() {
        Some(name) if name == journal::FILE_NAME => path.parent().map_or_else(PathBuf::new, Path::to_path_buf),
        _ => path.clone(),
    };
    let directories: Vec<PathBuf> = paths.iter().map(directory).collect();
    let short = |path: &PathBuf| {
        let name = path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
        name.strip_suffix(".rigel").map_or(name.clone(), str::to_string)
    };
    let names: Vec<String> = directories.iter().map(short).collect();
    let is_alone = |name: &String| names.iter().filter(|other| *other == name).count() == 1;
    let whole =
        |(name, path): (&String, &PathBuf)| if is_alone(name) { name.clone() } else { path.display().to_string() };
    names.iter().zip(&directories).map(whole).collect()
}

fn refuse_incomparable(names: &[String], conditions: &[Condition]) -> Result<(), Error> {
    let different: Vec<String> = conditions
        .iter()
        .filter(|condition| condition.incomparable)
        .map(|it| format!("{} {} in {} and {} in {}", it.name, it.before, names[0], it.after, names[it.run]))
        .collect();
    if different.is_empty() {
        return Ok(());
    }
    Err(Error::asked(
        format!("the figures are of different things: {}", different.join("; ")),
        "measure again with the same options on a target of the same size; --scratch-size sets that of a scratch file",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_called_by_their_directories() {
        let named = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(named(&["runs/a.rigel", "b/journal.jsonl"]), ["a", "b"]);
        assert_eq!(named(&["monday/run", "tuesday/run", "run2"]), ["monday/run", "tuesday/run", "run2"]);
    }
}
