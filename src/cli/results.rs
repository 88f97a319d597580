//! The directory of a run's results: the one given by `--out`, or a new one.
//!
//! The name of a new directory consists of the verb and the minute. If it exists, for example from
//! a run in the same minute, a number is appended. The name is final only when the directory is
//! created, so that two runs that begin at the same moment never share one.

use rigel_device::clock;
use rigel_model::record::journal;
use rigel_model::{Error, failed};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The arguments of this process, for the header of a journal.
pub(super) fn own_arguments() -> Vec<String> {
    std::env::args_os()
        .skip(1)
        .map(|argument| argument.to_string_lossy().into_owned())
        .collect()
}

/// The directory of a run's results.
#[derive(Debug, Clone)]
pub(super) struct Results {
    /// The directory; or the journal itself, if it was resumed by a name of its own.
    path: PathBuf,
    /// The name without its number, if we choose the name.
    stem: Option<String>,
    /// Number in the name; the first name has none.
    number: u32,
    /// True if the directory was not there before.
    is_new: bool,
}

impl Results {
    /// The directory given by the user, or a new one in the current directory. Nothing is created
    /// yet.
    ///
    /// # Errors
    /// It is not an empty directory, or is not writable.
    pub(super) fn begin(out: Option<&Path>, verb: &str) -> Result<Self, Error> {
        match out {
            Some(directory) => Self::named(directory),
            None => Self::numbered(&format!("{verb}_{}", clock::file_stamp())),
        }
    }

    /// The directory given by the user.
    pub(super) fn named(directory: &Path) -> Result<Self, Error> {
        journal::refuse_unusable(directory)?;
        Ok(Self {
            path: directory.to_path_buf(),
            stem: None,
            number: 1,
            is_new: !directory.exists(),
        })
    }

    /// `STEM.rigel`, or if it exists `STEM-2.rigel` and so on.
    pub(super) fn numbered(stem: &str) -> Result<Self, Error> {
        let mut results = Self {
            path: PathBuf::new(),
            stem: Some(stem.to_string()),
            number: 0,
            is_new: true,
        };
        results.advance();
        // Another run may create a directory of this name in the meantime; `claim` then uses the
        // next number.
        journal::refuse_unwritable(&results.path)?;
        Ok(results)
    }

    /// No results here: rank 0 has them.
    pub(super) fn elsewhere() -> Self {
        Self {
            path: PathBuf::new(),
            stem: None,
            number: 1,
            is_new: false,
        }
    }

    /// The results of a resumed run, given by its directory or its journal.
    pub(super) fn existing(run: &Path) -> Self {
        let is_usual = !run.is_dir()
            && run
                .file_name()
                .is_some_and(|name| name == journal::FILE_NAME);
        let above = run.parent().filter(|_| is_usual);
        let path = above.map_or(run, |above| {
            if above.as_os_str().is_empty() {
                Path::new(".")
            } else {
                above
            }
        });
        Self {
            path: path.to_path_buf(),
            stem: None,
            number: 1,
            is_new: false,
        }
    }

    /// Creates the directory if we choose its name, with the next number if it exists by now.
    ///
    /// # Errors
    /// It cannot be created.
    pub(super) fn claim(&mut self) -> Result<(), Error> {
        if self.stem.is_none() {
            return Ok(());
        }
        let mut made = std::fs::create_dir(&self.path);
        while made
            .as_ref()
            .is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
        {
            self.advance();
            made = std::fs::create_dir(&self.path);
        }
        made.map_err(|error| {
            failed!(
                "cannot create the result directory '{path}': {error}",
                "give another with --out DIR",
                path = self.path.display()
            )
        })
    }

    /// Removes the journal of a new run that has nothing but its first line, and the directory if it was made for it:
    /// the same command can then be given again.
    pub(super) fn abandon(&self) {
        let _ = std::fs::remove_file(self.path.join(journal::FILE_NAME));
        if self.is_new {
            // Only if it is empty.
            let _ = std::fs::remove_dir(&self.path);
        }
    }

    /// The run as `rigel report` and `--resume` take it: its directory, or its journal if that has
    /// another name than usual.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The suffix that makes the name unique: empty, or `-2` and so on.
    pub(super) fn suffix(&self) -> String {
        suffix(self.number)
    }

    /// Advances to the next free name. Orion's files are next to the directory and use the same
    /// name.
    fn advance(&mut self) {
        let Some(stem) = &self.stem else { return };
        let is_taken = |name: &str| {
            [".rigel", "_summary.txt"]
                .iter()
                .any(|end| std::fs::symlink_metadata(format!("{name}{end}")).is_ok())
        };
        loop {
            self.number += 1;
            let name = format!("{stem}{}", suffix(self.number));
            if !is_taken(&name) {
                self.path = PathBuf::from(format!("{name}.rigel"));
                return;
            }
        }
    }
}

fn suffix(number: u32) -> String {
    if number > 1 {
        format!("-{number}")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resumed_run_is_named_as_a_report_takes_it() {
        let place = std::env::temp_dir().join(format!("rigel-resumed-{}", std::process::id()));
        std::fs::create_dir_all(&place).unwrap();
        for (given, named) in [
            (place.clone(), place.clone()),
            (place.join("journal.jsonl"), place.clone()),
            (place.join("other.jsonl"), place.join("other.jsonl")),
            ("journal.jsonl".into(), ".".into()),
        ] {
            assert_eq!(
                Results::existing(&given).path(),
                named,
                "{}",
                given.display()
            );
        }
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn a_name_that_is_taken_is_followed_by_a_number() {
        let place = std::env::temp_dir().join(format!("rigel-results-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir(&place).unwrap();
        let stem = place.join("orion_20261122_0103").display().to_string();
        let begun = || Results::numbered(&stem).unwrap();
        // Two runs begin before either has created its directory.
        let (mut one, mut other) = (begun(), begun());
        one.claim().unwrap();
        other.claim().unwrap();
        let mut third = begun();
        third.claim().unwrap();
        assert_eq!(
            [one.suffix(), other.suffix(), third.suffix()],
            ["", "-2", "-3"]
        );
        let directories = [&one, &other, &third].map(|results| results.path().to_path_buf());
        assert_eq!(
            directories,
            ["", "-2", "-3"].map(|suffix| PathBuf::from(format!("{stem}{suffix}.rigel")))
        );
        assert!(directories.iter().all(|directory| directory.is_dir()));
        // Orion's files of another run use the name too.
        std::fs::write(format!("{stem}-4_summary.txt"), "").unwrap();
        assert_eq!(begun().suffix(), "-5");
        std::fs::remove_dir_all(&place).unwrap();
    }
}
