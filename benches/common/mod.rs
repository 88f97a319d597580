//! What benchmarks share: their settings from the command line, and the folder that they work in.

use std::fs;
use std::path::{Path, PathBuf};

/// What a benchmark was asked for.
pub(crate) struct Settings {
    /// The parts to run.
    pub(crate) parts: Vec<String>,
    /// Of each run, or point.
    pub(crate) seconds: u32,
    /// How often.
    pub(crate) rounds: u32,
    /// Of the test file.
    pub(crate) size_gib: u32,
    /// Where the test files go.
    pub(crate) folder: PathBuf,
    /// The program that is measured.
    pub(crate) rigel: PathBuf,
}

impl Settings {
    /// From the command line, with these defaults; `parts` are all that there are.
    pub(crate) fn from_arguments(parts: &[&str], seconds: u32, rounds: u32) -> Result<Self, String> {
        let mut settings = Self {
            parts: Vec::new(),
            seconds,
            rounds,
            size_gib: 4,
            folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench"),
            rigel: env!("CARGO_BIN_EXE_rigel").into(),
        };
        // cargo adds `--bench` of its own accord.
        let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            if parts.contains(&argument.as_str()) {
                settings.parts.push(argument);
                continue;
            }
            let value = arguments.next().ok_or(format!("'{argument}' is no part ({parts:?}), or lacks a value"))?;
            let number =
                || value.parse::<u32>().ok().filter(|n| *n > 0).ok_or(format!("{argument} {value}: no number"));
            match argument.as_str() {
                "--seconds" => settings.seconds = number()?,
                "--rounds" => settings.rounds = number()?,
                "--size-gib" => settings.size_gib = number()?,
                "--folder" => settings.folder = absolute(&value)?,
                "--rigel" => settings.rigel = absolute(&value)?,
                _ => return Err(format!("unknown option '{argument}'")),
            }
        }
        if settings.parts.is_empty() {
            settings.parts = parts.iter().map(ToString::to_string).collect();
        }
        Ok(settings)
    }
}

/// Runs may have a working directory of their own, so no path may be relative to ours.
fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{path}: {error}"))
}

/// Where the test files lie; removed at the end with all that is in it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Its own folder, called `name`, inside the one that was named: only what we made is removed.
    pub(crate) fn make(path: &Path, name: &str) -> Result<Self, String> {
        let folder = path.join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}
