//! Where the results of a run go: the directory that was named by `--out`, or one with a name of its own.
//!
//! A name of ours is made of the verb and the minute. Where that is taken, by a run of the same minute for one, a
//! number follows it. The name is only settled when the directory is made, so that two runs that begin at the same
//! moment never meet.

use crate::clock;
use crate::model::Error;
use crate::record::journal;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// The directory for the results of a run.
#[derive(Debug, Clone)]
pub(super) struct Results {
    directory: PathBuf,
    /// The name without its number, if the name is ours to choose.
    stem: Option<String>,
    /// As the name says it: the first has none.
    number: u32,
}

impl Results {
    /// The directory that was named, or a new one in the current directory. Nothing is made yet.
    ///
    /// # Errors
    /// It is no empty directory, or could not be written.
    pub(super) fn begin(out: Option<&Path>, verb: &str) -> Result<Self, Error> {
        match out {
            Some(directory) => Self::named(directory),
            None => Self::numbered(&format!("{verb}_{}", clock::file_stamp())),
        }
    }

    /// The directory that was named.
    ///
    /// # Errors
    /// As [`Results::begin`].
    pub(super) fn named(directory: &Path) -> Result<Self, Error> {
        journal::refuse_unusable(directory)?;
        Ok(Self::existing(directory))
    }

    /// `STEM.rigel`, or where that is taken `STEM-2.rigel` and so on.
    ///
    /// # Errors
    /// As [`Results::begin`].
    pub(super) fn numbered(stem: &str) -> Result<Self, Error> {
        let mut results = Self { directory: PathBuf::new(), stem: Some(stem.to_string()), number: 0 };
        results.advance();
        // Another run may make a directory of this name meanwhile, and write to it: this one then takes the next.
        journal::refuse_unwritable(&results.directory)?;
        Ok(results)
    }

    /// The directory of a run that is gone on with.
    pub(super) fn existing(directory: &Path) -> Self {
        Self { directory: directory.to_path_buf(), stem: None, number: 1 }
    }

    /// Makes the directory if its name is ours to choose: under the next number if somebody took the name meanwhile.
    ///
    /// # Errors
    /// It cannot be made.
    pub(super) fn claim(&mut self) -> Result<(), Error> {
        if self.stem.is_none() {
            return Ok(());
        }
        let mut made = std::fs::create_dir(&self.directory);
        while made.as_ref().is_err_and(|error| error.kind() == ErrorKind::AlreadyExists) {
            self.advance();
            made = std::fs::create_dir(&self.directory);
        }
        made.map_err(|error| {
            Error::failed(
                format!("cannot make the result directory '{}': {error}", self.directory.display()),
                "name another with --out DIR",
            )
        })
    }

    /// The directory.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// What follows the name to tell it from others: nothing, or `-2` and so on.
    pub(super) fn suffix(&self) -> String {
        suffix(self.number)
    }

    /// The next number whose name is free. Orion's files stand beside the directory and have the same name.
    fn advance(&mut self) {
        let Some(stem) = &self.stem else { return };
        let is_taken = |name: &str| {
            [".rigel", "_summary.txt"].iter().any(|end| std::fs::symlink_metadata(format!("{name}{end}")).is_ok())
        };
        loop {
            self.number += 1;
            let name = format!("{stem}{}", suffix(self.number));
            if !is_taken(&name) {
                self.directory = PathBuf::from(format!("{name}.rigel"));
                return;
            }
        }
    }
}

fn suffix(number: u32) -> String {
    if number > 1 { format!("-{number}") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_followed_by_a_number() {
        let place = std::env::temp_dir().join(format!("rigel-results-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&place);
        std::fs::create_dir(&place).unwrap();
        let stem = place.join("orion_20261122_0103").display().to_string();
        let begun = || Results::numbered(&stem).unwrap();
        // Two begin before either has made its directory.
        let (mut one, mut other) = (begun(), begun());
        one.claim().unwrap();
        other.claim().unwrap();
        let mut third = begun();
        third.claim().unwrap();
        assert_eq!([one.suffix(), other.suffix(), third.suffix()], ["", "-2", "-3"]);
        let directories = [&one, &other, &third].map(|results| results.directory().to_path_buf());
        assert_eq!(directories, ["", "-2", "-3"].map(|suffix| PathBuf::from(format!("{stem}{suffix}.rigel"))));
        assert!(directories.iter().all(|directory| directory.is_dir()));
        // Orion's files of another run have the name as well.
        std::fs::write(format!("{stem}-4_summary.txt"), "").unwrap();
        assert_eq!(begun().suffix(), "-5");
        std::fs::remove_dir_all(&place).unwrap();
    }
}
