//! Files that a user or a run names for output: the one place that says which may be written.
//!
//! Input: a path, what is to be written there, and what must stay ([`Kept`]). Output: the written file, or a refusal,
//! which verbs ask for before they measure, and which is asked again when the file is written. Such a file may be new,
//! empty, or Rigel's own by its first bytes (of messages: by its last line). It is never a target of the run, a file in
//! the run's directory, or a file that the command line names for something else: a journal, a profile and the data of
//! a device cannot be restored.

use super::measuring::{Job, begun_in, targets};
use rigel_device::bounded;
use rigel_device::engine::opened::Identity;
use rigel_model::record::journal;
use rigel_model::{Error, Target, failed, files, usage};
use rigel_report::{answers, html};
use rigel_verbs::expect::Baseline;
use rigel_verbs::orion::files as files_of_orion;
use rigel_verbs::{Evaluated, Verb};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// File name of a page in its run's directory.
pub(super) const PAGE_NAME: &str = "report.html";

/// Bytes at the beginning or end of a file that are looked at: more than any mark, or line of a message, has.
const LOOKED_AT: u64 = 8192;

/// What is written to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OutputKind<'a> {
    /// A page.
    Page,
    /// Answers, as tests of a build server.
    Junit,
    /// Answers, a line each, added to what is there.
    Message,
    /// One of Orion's files of a run.
    Orion {
        /// The end of its name.
        suffix: &'static str,
        /// The date and time in its name.
        stamp: &'a str,
    },
    /// A manual page.
    Manual,
}

impl OutputKind<'_> {
    /// What a file that may be replaced, or added to, is.
    fn own(self) -> &'static str {
        match self {
            Self::Page => "a page of Rigel",
            Self::Junit => "JUnit of Rigel",
            Self::Message => "answers of Rigel: its last line is something else",
            Self::Orion { .. } => "one of Orion's files of this run",
            Self::Manual => "a manual page of Rigel",
        }
    }

    /// True if the file is Rigel's own.
    fn is_own(self, path: &Path, file: &mut File) -> io::Result<bool> {
        if self == Self::Message {
            let skipped = file.metadata()?.len().saturating_sub(LOOKED_AT);
            file.seek(SeekFrom::Start(skipped))?;
            return Ok(answers::ends_message(&looked_at(file)?) || files::is_mounted_alone(path)?);
        }
        let begins = looked_at(file)?;
        Ok(match self {
            Self::Page => html::begins_page(&begins),
            Self::Junit => answers::begins_junit(&begins),
            Self::Orion { suffix, stamp } => files_of_orion::begins(suffix, stamp, &begins),
            Self::Manual | Self::Message => begins.contains(".TH rigel"),
        })
    }

    /// What to do if it cannot be written.
    fn hint(self) -> &'static str {
        match self {
            Self::Page => "give another file with --html FILE, or - for stdout",
            Self::Junit | Self::Message => {
                "the journal is complete: rigel report RUN --json has the same answers"
            }
            Self::Orion { .. } => {
                "the journal is complete: free some space, then `rigel report RUN --orion-files DIR` \
                 writes the files"
            }
            Self::Manual => "give a directory that you may write to",
        }
    }
}

fn looked_at(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(LOOKED_AT).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// What no file for output may be.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept {
    /// The run: its directory or its journal.
    run: Option<PathBuf>,
    /// Files and devices that are measured.
    targets: Vec<PathBuf>,
}

impl Kept {
    /// Targets and results of a run to be made or resumed.
    pub(super) fn of_job(job: &Job) -> Self {
        let begun_in = begun_in(&job.options.directory);
        Self::new(job.results.path(), (&job.target, &*job.verb), &begun_in)
    }

    /// Those of a run that was made.
    pub(super) fn of_run(run: &Path, measured: &Evaluated) -> Self {
        let header = &measured.run.header;
        let begun_in = begun_in(&header.invocation.options.directory);
        Self::new(run, (&header.target, &*measured.verb), &begun_in)
    }

    fn new(run: &Path, (target, verb): (&Target, &dyn Verb), begun_in: &Path) -> Self {
        let members = |target: &Target| match target {
            Target::Paths { members, .. } => members.clone(),
            Target::Scratch { .. } | Target::Sim(_) | Target::Null { .. } | Target::Sql(_) => {
                Vec::new()
            }
        };
        Self {
            run: Some(run.to_path_buf()),
            targets: targets(target, verb)
                .flat_map(members)
                .map(|path| begun_in.join(path))
                .collect(),
        }
    }

    /// What of it is at `path`, in words. `is_of_run` if a run has such a file itself; `named` is how often the
    /// command line may name it.
    fn holds(&self, path: &Path, is_of_run: bool, named: usize) -> Option<&'static str> {
        if self.targets.iter().any(|target| is_same(target, path)) {
            return Some("a target of this run");
        }
        if let Some(run) = &self.run {
            if is_same(&journal::file_of(run), path) {
                return Some("the journal of this run");
            }
            let own = directory_of(run).and_then(Identity::of_any);
            if !is_of_run && own.is_some() && own == Identity::of_any(above(path)) {
                return Some("in the directory of this run, which has its own files only");
            }
        }
        let words = std::env::args_os().skip(1);
        let leading = words.filter(|word| leads_to(&word.to_string_lossy(), path));
        (leading.count() > named).then_some("named for something else, too")
    }
}

/// A file for output.
#[derive(Debug, Clone)]
pub(super) struct OutputFile<'a> {
    path: PathBuf,
    kind: OutputKind<'a>,
    /// The option whose value is the path; empty if none is.
    option: &'static str,
}

impl<'a> OutputFile<'a> {
    /// The file that the value of `option` names.
    pub(super) fn named(option: &'static str, path: &Path, kind: OutputKind<'a>) -> Self {
        Self {
            option,
            ..Self::beside(path.to_path_buf(), kind)
        }
    }

    /// A file whose name follows from a run or a directory.
    pub(super) fn beside(path: PathBuf, kind: OutputKind<'a>) -> Self {
        Self {
            path,
            kind,
            option: "",
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// True for a file that a run's directory has.
    fn is_of_run(&self) -> bool {
        match self.kind {
            OutputKind::Page => self.path.file_name().is_some_and(|name| name == PAGE_NAME),
            OutputKind::Orion { .. } => true,
            OutputKind::Junit | OutputKind::Message | OutputKind::Manual => false,
        }
    }

    /// Refuses a file that must not be replaced or added to.
    ///
    /// # Errors
    /// It is kept, or another's, or nothing can be written there.
    pub(super) fn refuse_other(&self, kept: &Kept) -> Result<(), Error> {
        let path = &self.path;
        let said = match self.option {
            "" => format!("'{}'", path.display()),
            option => format!("{option} '{}'", path.display()),
        };
        let unwritable = |error: io::Error| {
            usage!(
                "cannot write '{path}': {error}",
                "name a file that may be made or replaced",
                path = path.display()
            )
        };
        let there = match self.kind {
            OutputKind::Message => files::existing_to_append(path),
            _ => files::existing(path),
        };
        let there = there.map_err(unwritable)?;
        let named = usize::from(!self.option.is_empty());
        let (what, own) = (format!("looking at '{}'", path.display()), kept.clone());
        let (name, is_of_run) = (path.clone(), self.is_of_run());
        let holds = bounded::call(&what, bounded::ANSWER, move || {
            own.holds(&name, is_of_run, named)
        })?;
        if let Some(what) = holds {
            return Err(usage!("{said} is {what}", "name another file"));
        }
        let Some(mut file) = there else {
            return Ok(());
        };
        let is_free = file.metadata().is_ok_and(|facts| facts.len() == 0);
        if is_free || self.kind.is_own(path, &mut file).map_err(unwritable)? {
            return Ok(());
        }
        Err(usage!(
            "{said} exists and is not {own}",
            "name another file, or remove this one",
            own = self.kind.own()
        ))
    }

    /// Writes the file, which is refused as before.
    ///
    /// # Errors
    /// As [`OutputFile::refuse_other`], or it cannot be written.
    pub(super) fn write(&self, bytes: &[u8], kept: &Kept) -> Result<(), Error> {
        self.refuse_other(kept)?;
        let written = match self.kind {
            OutputKind::Message => files::append(&self.path, bytes),
            _ => files::replace(&self.path, bytes),
        };
        written.map_err(|error| {
            failed!(
                "cannot write '{path}': {error}",
                self.kind.hint(),
                path = self.path.display()
            )
        })
    }
}

/// The directory of a run of its own; `None` of a journal by another name, which lies among a user's files.
pub(super) fn directory_of(run: &Path) -> Option<&Path> {
    let is_journal = run
        .file_name()
        .is_some_and(|name| name == journal::FILE_NAME);
    if run.is_dir() {
        Some(run)
    } else {
        is_journal.then(|| above(run))
    }
}

/// True if a word of the command line names the file at `path`: by itself, as an option's value, as the run whose
/// journal it is, or as one that is not to be worse.
fn leads_to(word: &str, path: &Path) -> bool {
    let value = word
        .split_once('=')
        .filter(|_| word.starts_with('-'))
        .map(|(_, value)| PathBuf::from(value));
    let baseline = Baseline::named(word).ok().flatten().map(|run| run.path);
    [Some(PathBuf::from(word)), value, baseline]
        .into_iter()
        .flatten()
        .any(|named| is_same(&named, path) || is_same(&journal::file_of(&named), path))
}

/// True if both paths lead to one file; of files that do not exist, to one name.
fn is_same(one: &Path, other: &Path) -> bool {
    let name = |path: &Path| {
        Some((
            Identity::of_any(above(path))?,
            path.file_name()?.to_os_string(),
        ))
    };
    match (Identity::of_any(one), Identity::of_any(other)) {
        (None, None) => name(one).is_some() && name(one) == name(other),
        (one, other) => one == other,
    }
}

fn above(path: &Path) -> &Path {
    match path.parent() {
        Some(above) if !above.as_os_str().is_empty() => above,
        _ => Path::new("."),
    }
}
