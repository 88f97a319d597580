//! The targets on a command line: files and devices, a directory for a scratch file, or a model of
//! a device.

use rigel_database::access::{has_scheme, shown};
use rigel_device::bounded;
use rigel_device::engine::level;
use rigel_device::engine::opened::Opened;
use rigel_model::record::journal;
use rigel_model::{Bytes, Error, Layout, Target, shell_path, usage};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Targets as given, and the options about a scratch file.
pub(super) struct GivenTargets<'a> {
    /// The targets as typed.
    pub(super) targets: &'a [OsString],
    /// The option that precedes a target on the command line, or nothing.
    pub(super) option: &'static str,
    /// Size of a scratch file.
    pub(super) scratch_size: Option<Bytes>,
    /// True if the scratch file is kept.
    pub(super) keep: bool,
}

impl GivenTargets<'_> {
    /// `sim:…` or `null:`, which must be the only target; `None` if neither was given.
    pub(super) fn model(&self) -> Result<Option<Target>, Error> {
        let mut models = self
            .targets
            .iter()
            .filter_map(|target| Some((target, model_of(target)?)));
        let Some((name, model)) = models.next() else {
            return Ok(None);
        };
        if self.targets.len() > 1 {
            return Err(usage!(
                "{option}{name} is given together with another target",
                "a model of a device must be the only target of its volume",
                option = self.option,
                name = name.display()
            ));
        }
        model.map(Some)
    }

    /// Concatenated files and devices, or a scratch file in a directory.
    pub(super) fn paths(
        &self,
        is_directory: impl Fn(&Path) -> Result<bool, Error>,
    ) -> Result<Target, Error> {
        let (option, members): (_, Vec<PathBuf>) = (
            self.option,
            self.targets.iter().map(PathBuf::from).collect(),
        );
        let is_twice = |(index, path): &(usize, &PathBuf)| members[..*index].contains(path);
        if let Some((_, twice)) = members.iter().enumerate().find(is_twice) {
            return Err(usage!(
                "{option}{twice} is given twice",
                "give every target once",
                twice = twice.display()
            ));
        }
        if let Some(url) = self
            .targets
            .iter()
            .map(|target| target.to_string_lossy())
            .find(|text| has_scheme(text))
        {
            return Err(is_url(&url));
        }
        match first(&members, &is_directory)? {
            None => Ok(Target::Paths {
                members,
                layout: Layout::Concat,
            }),
            Some(directory) if members.len() > 1 => Err(usage!(
                "{option}{directory} is a directory, and another target is given with it",
                "give only the directory, in which a scratch file is made; or only files and \
                 devices",
                directory = directory.display()
            )),
            Some(run) if run.join(journal::FILE_NAME).is_file() => Err(usage!(
                "{option}{run} is the directory of a run",
                "read it with rigel report {run}, to which --expect may be added; to measure the storage below it, \
                 give another directory there",
                run = shell_path(run)
            )),
            Some(directory) => Ok(Target::Scratch {
                directory: directory.clone(),
                bytes: self.scratch_size,
                keep: self.keep,
            }),
        }
    }

    /// Refuses options about a scratch file if none is made.
    pub(super) fn check_scratch(&self, target: &Target) -> Result<(), Error> {
        let option = match target {
            Target::Scratch {
                bytes: Some(Bytes(0)),
                ..
            } => {
                return Err(usage!(
                    "--scratch-size 0 leaves nothing to measure",
                    "give a size such as 4GiB"
                ));
            }
            Target::Scratch { .. } => return Ok(()),
            _ if self.scratch_size.is_some() => "--scratch-size",
            _ if self.keep => "--keep",
            _ => return Ok(()),
        };
        if let Target::Paths { members, .. } = target
            && let Some(missing) = members.iter().find(|path| !path.exists())
        {
            return Err(usage!(
                "'{missing}' does not exist",
                "give an existing directory, in which a scratch file is made: {option}DIR",
                missing = missing.display(),
                option = self.option
            ));
        }
        Err(usage!(
            "{option} is for a scratch file, and '{target}' has none",
            "give a directory: {prefix}DIR",
            prefix = self.option
        ))
    }
}

/// The first of these paths that `is_directory`.
fn first<'a>(
    paths: &'a [PathBuf],
    is_directory: &impl Fn(&Path) -> Result<bool, Error>,
) -> Result<Option<&'a PathBuf>, Error> {
    for path in paths {
        if is_directory(path)? {
            return Ok(Some(path));
        }
    }
    Ok(None)
}

/// True if there is a directory at this path.
///
/// # Errors
/// The storage does not answer.
pub(super) fn is_directory(path: &Path) -> Result<bool, Error> {
    let what = format!("looking at '{}'", path.display());
    let path = path.to_path_buf();
    Ok(bounded::call(&what, bounded::ANSWER, move || {
        path.is_dir()
    })?)
}

/// Refuses missing files and devices, and those that cannot be targets, before anything else is
/// examined.
pub(super) fn check_members(target: &Target) -> Result<(), Error> {
    match target {
        Target::Paths { members, .. } => members
            .iter()
            .try_for_each(|path| Opened::open(path).map(drop)),
        Target::Sim(spec) => spec.level.as_ref().map_or(Ok(()), level::check),
        Target::Scratch { .. } | Target::Null { .. } | Target::Sql(_) => Ok(()),
    }
}

/// The error for a URL where only files and devices are allowed.
pub(super) fn is_url(text: &str) -> Error {
    usage!(
        "{text} is a URL, not a file or device",
        "give files and devices, or a directory; use rigel sql, curve or soak for databases",
        text = shown(text)
    )
}

/// True if `target` names the model of a device, not a path.
pub(super) fn is_model(target: &Path) -> bool {
    model_of(target.as_os_str()).is_some()
}

/// The model of a device that `target` names; `None` for a path.
fn model_of(target: &OsStr) -> Option<Result<Target, Error>> {
    target.to_str().and_then(Target::model)
}
