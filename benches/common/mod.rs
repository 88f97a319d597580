//! Shared by the benchmarks: settings from the command line, and the working folder.

use rigel_model::Nanos;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Settings of a benchmark.
pub(crate) struct Settings {
    /// The parts to run.
    pub(crate) parts: Vec<String>,
    /// Duration of each run or point in seconds.
    pub(crate) seconds: u32,
    /// Number of rounds.
    pub(crate) rounds: u32,
    /// True if the command line has that number.
    pub(crate) has_rounds: bool,
    /// When a part ends before it has done all rounds.
    pub(crate) length: Option<Duration>,
    /// Folder of files of levels.
    pub(crate) levels: Option<PathBuf>,
    /// Size of the test file.
    pub(crate) size_gib: u32,
    /// Folder of the test files.
    pub(crate) folder: PathBuf,
    /// The measured program.
    pub(crate) rigel: PathBuf,
}

impl Settings {
    /// Reads the command line, with these defaults; `parts` lists all valid parts.
    pub(crate) fn from_arguments(
        parts: &[&str],
        seconds: u32,
        rounds: u32,
    ) -> Result<Self, String> {
        let mut settings = Self {
            parts: Vec::new(),
            seconds,
            rounds,
            has_rounds: false,
            length: None,
            levels: None,
            size_gib: 4,
            folder: Path::new(env!("CARGO_MANIFEST_DIR")).join("target/bench"),
            rigel: env!("CARGO_BIN_EXE_rigel").into(),
        };
        // cargo adds `--bench` on its own.
        let mut arguments = std::env::args()
            .skip(1)
            .filter(|argument| argument != "--bench");
        while let Some(argument) = arguments.next() {
            if parts.contains(&argument.as_str()) {
                settings.parts.push(argument);
                continue;
            }
            let value = arguments.next().ok_or(format!(
                "'{argument}' is no part ({parts:?}), or lacks a value"
            ))?;
            let number = || {
                value
                    .parse::<u32>()
                    .ok()
                    .filter(|n| *n > 0)
                    .ok_or(format!("{argument} {value}: no number"))
            };
            // Benchmarks that count runs of a program call its options so.
            match argument.as_str() {
                "--seconds" => settings.seconds = number()?,
                "--rounds" | "--runs" => (settings.rounds, settings.has_rounds) = (number()?, true),
                "--for" => {
                    let length: Nanos = value.parse().map_err(|error| format!("{error}"))?;
                    settings.length = Some(Duration::from_nanos(length.0));
                }
                "--size-gib" => settings.size_gib = number()?,
                "--levels" => settings.levels = Some(absolute(&value)?),
                "--folder" => settings.folder = absolute(&value)?,
                "--rigel" | "--program" => settings.rigel = absolute(&value)?,
                _ => return Err(format!("unknown option '{argument}'")),
            }
        }
        if settings.parts.is_empty() {
            settings.parts = parts.iter().map(ToString::to_string).collect();
        }
        Ok(settings)
    }
}

/// Makes a path absolute, because runs may have their own working directory.
fn absolute(path: &str) -> Result<PathBuf, String> {
    std::path::absolute(path).map_err(|error| format!("{path}: {error}"))
}

/// The folder of the test files; removed at the end with its content.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// Makes a folder `name` inside `path`, so that only our own files are removed.
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
