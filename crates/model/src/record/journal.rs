//! The journal of a run: `journal.jsonl` in the run's directory, append-only, one fact per line.
//!
//! Input: a header, then the record of each point when it ends. Each record is synced to disk
//! before the next point begins. Output: the same lines, however the run ended. A truncated last
//! line is dropped and reported. The journal never changes a line that it has written.

use super::ranks::{RankGroup, RankLines, RankLost, RankRecord, RankedPoint};
use super::{
    End, Ending, HowEnded, Imported, PointRecord, RunEnd, StallChange, StallEvent, WatchedInterval,
};
use crate::files::{self, Directory};
use crate::{
    Bytes, Coordinates, Error, Finding, Host, Invocation, KIB, Point, StalledIo, Target,
    TargetFacts,
};
use crate::{failed, usage};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Version of the journal's format.
pub const FORMAT: u32 = 1;

/// File name of the journal within the run's directory.
pub const FILE_NAME: &str = "journal.jsonl";

/// Minimum free space: enough for the header and a few points. With less the filesystem counts as
/// full.
const FREE_MIN: Bytes = Bytes(128 * KIB);

/// Maximum line length. A point of a week with one-second windows takes about half of it.
const LINE_MAX: Bytes = Bytes(4 << 30);

/// The first line: the request, the program, the machine and the target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of this format.
    pub format: u32,
    /// Version of the program.
    pub version: String,
    /// Wall-clock time of the beginning.
    pub started: String,
    /// The command line.
    pub command: Vec<String>,
    /// The target as named by the user.
    pub target: Target,
    /// The engine used, and whether I/O goes through the page cache.
    pub engine: EngineChoice,
    /// Engine features that the machine allowed.
    pub engine_about: String,
    /// All planned points, in order.
    pub points: Vec<Point>,
    /// Request and options, used to reproduce the verb's reports and to resume.
    #[serde(rename = "plan")]
    pub invocation: Invocation,
    /// The machine.
    pub host: Host,
    /// Facts found about the target.
    pub facts: TargetFacts,
    /// The same about the targets that other arms of a duet have of their own, in the order of the arms.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub facts_of_others: Vec<TargetFacts>,
    /// Warnings and notes from before the first point.
    pub findings: Vec<Finding>,
    /// The ranks that measure together; `None` if one process measures alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Box<RankGroup>>,
    /// True if the program writes a last line when the run ends: without it the run was killed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub says_end: bool,
}

/// The engine that executes the operations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineChoice {
    /// Its name, such as `uring`; `auto` takes the best engine that the machine allows.
    pub name: String,
    /// Uses the page cache instead of direct I/O.
    pub buffered: bool,
    /// Compares every block that is read with what was written.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub verify: bool,
}

/// A line of the journal: written from what is borrowed, read as what is owned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum JournalLine<'a> {
    Point(Cow<'a, PointRecord>),
    Imported(Cow<'a, Imported>),
    Rank(Cow<'a, RankRecord>),
    Lost(Cow<'a, RankLost>),
    End(Cow<'a, RunEnd>),
    Watched(Cow<'a, WatchedInterval>),
    Stall(Cow<'a, StallEvent>),
    /// A header below the first line, where none may be.
    #[serde(skip_serializing)]
    Header(serde::de::IgnoredAny),
}

/// The first line of the journal.
#[derive(Serialize, Deserialize)]
struct HeaderLine<H> {
    header: H,
}

/// The contents of a journal.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The request and its surroundings.
    pub header: Header,
    /// The points that ended, in the order they ran.
    pub points: Vec<PointRecord>,
    /// Measurements of other tools, in the order they were read.
    pub imported: Vec<Imported>,
    /// What ranks measured, if there were several.
    pub ranks: RankLines,
    /// The intervals that `rigel watch` observed, in order.
    pub watched: Vec<WatchedInterval>,
    /// When storage stopped answering and went on, in order.
    pub stalls: Vec<StallEvent>,
    /// True if a truncated last line was dropped: the run was killed while writing it.
    pub cut: bool,
    /// The last line; `None` if the run was killed, still runs, or was measured by a program that
    /// does not write it.
    pub ended: Option<RunEnd>,
    /// True if another process is still writing the journal.
    pub is_running: bool,
    /// Number of points and intervals that were read, whether they are in this or not.
    pub lines_read: usize,
}

impl Run {
    /// Reads the journal of the run in `path`, which is the run's directory or the journal itself.
    ///
    /// # Errors
    /// It is missing, unreadable, of a later format, or damaged anywhere except in its last line.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = file_of(path);
        Self::parse(&path, opened(&path)?)
    }

    /// Parses a journal's `text`; `path` is only for messages.
    ///
    /// # Errors
    /// The text is of a later format, or damaged anywhere except in its last line.
    pub fn parse(path: &Path, text: impl BufRead) -> Result<Self, Error> {
        let (mut points, mut watched, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        let mut each = |_: &Header, measured| match measured {
            MeasuredLine::Point(point, of_ranks) => {
                if !of_ranks.is_empty() {
                    parts.push(RankedPoint {
                        at: points.len(),
                        parts: of_ranks,
                    });
                }
                points.push(*point);
            }
            MeasuredLine::Interval(interval) => watched.push(*interval),
        };
        let (mut run, _) = read_lines(path, text, &mut each)?;
        run.ranks.parts = parts;
        Ok(Self {
            points,
            watched,
            ..run
        })
    }
}

impl Run {
    /// A run of which nothing was measured yet.
    pub fn begun(header: Header) -> Self {
        Self {
            header,
            points: Vec::new(),
            imported: Vec::new(),
            ranks: RankLines::default(),
            watched: Vec::new(),
            stalls: Vec::new(),
            cut: false,
            ended: None,
            is_running: false,
            lines_read: 0,
        }
    }

    /// How the run ended.
    pub fn ending(&self) -> Ending<'_> {
        match &self.ended {
            _ if self.is_running => Ending::Running,
            Some(end) => Ending::Said(end),
            None if self.header.says_end => Ending::Killed,
            None => Ending::Unknown,
        }
    }

    /// False if it was cut off, ended before it was complete, or is still running.
    pub fn is_complete(&self) -> bool {
        let is_whole = match self.ending() {
            Ending::Said(end) => end.how == HowEnded::Complete,
            Ending::Unknown => true,
            Ending::Killed | Ending::Running => false,
        };
        is_whole && !self.cut
    }

    /// One record for each point, in the order they ran: its visits joined, or the last attempt if
    /// none was completed.
    pub fn joined(&self) -> Vec<PointRecord> {
        let mut joined = super::visits::joined(&self.points);
        for point in &mut joined {
            point.silences = self.silences_at(point.coordinates);
        }
        joined
    }

    /// The times in which nothing completed at a point, each as long as it was at last. Those of one
    /// host of several are not of the point.
    fn silences_at(&self, coordinates: Coordinates) -> Vec<StalledIo> {
        let mut silences = Vec::new();
        for event in &self.stalls {
            if event.coordinates != Some(coordinates) || event.host.is_some() {
                continue;
            }
            if event.change != StallChange::Begun {
                silences.pop();
            }
            silences.push(event.stalled);
        }
        silences
    }

    /// The points that completed.
    pub fn complete(&self) -> Vec<Coordinates> {
        let joined = self.joined().into_iter();
        joined
            .filter(|point| point.end == End::Complete)
            .map(|point| point.coordinates)
            .collect()
    }
}

impl Header {
    /// Reads only the header of the run in `path`, whatever the journal's length.
    ///
    /// # Errors
    /// As [`Run::read`], for the first line.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let path = file_of(path);
        let first = read_line(&mut opened(&path)?).map_err(|error| unreadable(&path, &error))?;
        read_lines(&path, opened(&path)?.take(first.bytes), &mut |_, _| ())
            .map(|(run, _)| run.header)
    }
}

/// A journal being written.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    /// Length of all complete lines, in bytes.
    whole: Arc<AtomicU64>,
    /// True once the end of the run was written.
    has_end: bool,
}

impl Journal {
    /// Creates `directory` and in it a journal that begins with `header`.
    ///
    /// # Errors
    /// The directory exists and is not empty, or cannot be created or written.
    pub fn create(directory: &Path, header: &Header) -> Result<Self, Error> {
        refuse_occupied(directory)?;
        let failed = |error: std::io::Error| {
            failed!(
                "cannot write the run's directory '{directory}': {error}",
                "give another with --out DIR",
                directory = directory.display()
            )
        };
        let made = Directory::make(directory).map_err(failed)?;
        let path = directory.join(FILE_NAME);
        let file = made.create(FILE_NAME).map_err(failed)?;
        lock(&path, &file)?;
        let mut journal = Self {
            path,
            file,
            whole: Arc::default(),
            has_end: false,
        };
        journal.append(&[HeaderLine { header }])?;
        // The directory entry of the file must be on disk too, otherwise a power failure loses the
        // whole file.
        made.sync().map_err(failed)?;
        Ok(journal)
    }

    /// Opens the journal of an interrupted run to add more points. `path` is the run's directory or
    /// the journal itself. Drops a truncated last line.
    ///
    /// # Errors
    /// The journal cannot be read or written.
    pub fn reopen(path: &Path) -> Result<(Self, Run), Error> {
        let mut points = Vec::new();
        let (journal, run) = Self::reopen_each(path, &mut |_, measured| {
            if let MeasuredLine::Point(point, _) = measured {
                points.push(*point);
            }
        })?;
        Ok((journal, Run { points, ..run }))
    }

    /// Like [`Journal::reopen`], for a journal of any length: passes what was measured to `each` and
    /// stores none of it.
    pub fn reopen_each(path: &Path, each: &mut Each) -> Result<(Self, Run), Error> {
        let path = file_of(path);
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => unreadable(&path, &error),
            _ => failed!(
                "cannot write '{path}': {error}",
                "check that you may write to it, and that its filesystem is writable",
                path = path.display()
            ),
        };
        // A device is not even opened for writing.
        if std::fs::symlink_metadata(&path)
            .is_ok_and(|facts| !facts.is_file() && !facts.is_symlink())
        {
            return Err(failed(std::io::Error::other("it is not a regular file")));
        }
        let (directory, name) = (
            path.parent().unwrap_or(Path::new("")),
            path.file_name().unwrap_or_default(),
        );
        // Read, truncate and append through the same open file.
        let file = Directory::open(directory)
            .and_then(|directory| directory.append(name))
            .map_err(failed)?;
        // Read only once no other process can append any more.
        lock(&path, &file)?;
        let (run, whole) = read_lines(&path, BufReader::new(&file), each)?;
        file.set_len(whole).map_err(failed)?;
        // A run that is resumed ends anew.
        let journal = Self {
            path,
            file,
            whole: Arc::new(AtomicU64::new(whole)),
            has_end: false,
        };
        Ok((journal, run))
    }

    /// Appends the record of a point and waits until it is on disk.
    ///
    /// # Errors
    /// The disk is full or gone. Earlier lines stay readable.
    pub fn point(&mut self, record: &PointRecord) -> Result<(), Error> {
        self.check(record, "the record")?;
        self.append(&[JournalLine::Point(Cow::Borrowed(record))])
    }

    /// Appends what each rank measured of a point, and then their sum, and waits once until all of it
    /// is on disk. Lines of ranks without their point are left out when the journal is read.
    ///
    /// # Errors
    /// As [`Journal::point`]. Nothing is written if one of the records could not be read again.
    pub fn point_of_ranks(
        &mut self,
        parts: &[RankRecord],
        merged: &PointRecord,
    ) -> Result<(), Error> {
        for part in parts {
            self.check(&part.record, &format!("the record of rank {}", part.rank))?;
        }
        self.check(merged, "the sum of the ranks")?;
        let of_ranks = parts.iter().map(Cow::Borrowed).map(JournalLine::Rank);
        let mut lines: Vec<_> = of_ranks.collect();
        lines.push(JournalLine::Point(Cow::Borrowed(merged)));
        self.append(&lines)
    }

    /// Appends that a rank was lost, and waits until it is on disk.
    pub fn lost(&mut self, lost: &RankLost) -> Result<(), Error> {
        self.append(&[JournalLine::Lost(Cow::Borrowed(lost))])
    }

    /// Appends how the run ended, and waits until it is on disk. Does nothing if this journal has its
    /// end already.
    pub fn end(&mut self, end: &RunEnd) -> Result<(), Error> {
        if !self.has_end {
            self.append(&[JournalLine::End(Cow::Borrowed(end))])?;
            self.has_end = true;
        }
        Ok(())
    }

    /// Appends a measurement of another tool and waits until it is on disk.
    pub fn imported(&mut self, imported: &Imported) -> Result<(), Error> {
        self.append(&[JournalLine::Imported(Cow::Borrowed(imported))])
    }

    /// Appends an interval of `rigel watch` and waits until it is on disk.
    pub fn watched(&mut self, interval: &WatchedInterval) -> Result<(), Error> {
        self.append(&[JournalLine::Watched(Cow::Borrowed(interval))])
    }

    /// Refuses a record that the reader would refuse. `whom` names it.
    fn check(&self, record: &PointRecord, whom: &str) -> Result<(), Error> {
        record.check_windows().map_err(|why| {
            failed!(
                "cannot write {whom} at {coordinates} to '{path}': {why}",
                "what was measured before is complete; use the same version on all hosts",
                coordinates = record.coordinates,
                path = self.path.display()
            )
        })
    }

    /// A writer of events beside the points. The journal's file stays locked while it lives.
    ///
    /// # Errors
    /// The system refuses a descriptor.
    pub fn events(&self) -> Result<EventWriter, Error> {
        let file = self.file.try_clone().map_err(|error| {
            failed!(
                "cannot write '{path}': {error}",
                "",
                path = self.path.display()
            )
        })?;
        Ok(EventWriter(Self {
            path: self.path.clone(),
            file,
            whole: Arc::clone(&self.whole),
            has_end: true,
        }))
    }

    /// True if the file has no name any more: it is deleted when it is closed, with everything written
    /// to it.
    pub fn is_removed(&self) -> bool {
        rustix::fs::fstat(&self.file).is_ok_and(|file| file.st_nlink == 0)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn append(&mut self, lines: &[impl Serialize]) -> Result<(), Error> {
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)
                .expect("a journal line is made of maps with text keys");
            text.push(b'\n');
        }
        if self.is_removed() {
            return Err(failed!(
                "'{path}' was removed during this run",
                "start another run, and leave its directory in place until it ends",
                path = self.path.display()
            ));
        }
        let written = self
            .file
            .write_all(&text)
            .and_then(|()| self.file.sync_data());
        if written.is_ok() {
            self.whole.fetch_add(text.len() as u64, Ordering::Relaxed);
        } else {
            // Half a line would damage the next one. A caller that continues after this error finds
            // the journal intact.
            let _ = self.file.set_len(self.whole.load(Ordering::Relaxed));
        }
        written.map_err(|error| {
            let hint = match error.kind() {
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                    "free some space, then resume with --resume"
                }
                ErrorKind::FileTooLarge => {
                    "raise the limit of file sizes (ulimit -f), then resume with --resume"
                }
                _ => "resume with --resume when the directory is writable",
            };
            failed!(
                "cannot write '{path}': {error}",
                hint,
                path = self.path.display()
            )
        })
    }
}

/// Appends events to a journal while a point runs.
#[derive(Debug)]
pub struct EventWriter(Journal);

impl EventWriter {
    /// Appends that storage stopped answering or went on, and waits until it is on disk. What cannot
    /// be written is not reported: the next point fails at it.
    pub fn stall(&mut self, event: &StallEvent) {
        let _ = self.0.append(&[JournalLine::Stall(Cow::Borrowed(event))]);
    }
}

/// Locks the journal against other writers while `file` is open. A process that was killed a moment ago may still have
/// the lock: the kernel releases it once its last thread has ended.
fn lock(path: &Path, file: &File) -> Result<(), Error> {
    const TRIES: u32 = 40;
    const PAUSE: Duration = Duration::from_millis(50);
    let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    for _ in 0..TRIES {
        // Measure anyway on a filesystem without locks.
        if rustix::fs::flock(file, exclusive) != Err(rustix::io::Errno::WOULDBLOCK) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
    Err(usage!(
        "another process is still writing '{path}'",
        "wait for that run, or stop it with Ctrl-C, then resume it",
        path = path.display()
    ))
}

/// The journal file of the run in `path`, which is the run's directory or the journal itself.
pub fn file_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        path.join(FILE_NAME)
    } else {
        path.to_path_buf()
    }
}

/// True while another process writes to the journal of the run in `path`.
pub fn is_being_written(path: &Path) -> bool {
    let path = file_of(path);
    let shared = rustix::fs::FlockOperation::NonBlockingLockShared;
    files::open(&path)
        .is_ok_and(|file| rustix::fs::flock(&file, shared) == Err(rustix::io::Errno::WOULDBLOCK))
}

/// Refuses a run directory that is not empty or not writable. Called before measuring or filling a
/// scratch file.
///
/// # Errors
/// The directory exists and is not empty, is no directory, may not be written to, or its filesystem
/// is full. Or root must not write there, because another user could exchange its contents, or the directory
/// itself.
pub fn refuse_unusable(directory: &Path) -> Result<(), Error> {
    refuse_occupied(directory)?;
    files::refuse_unsafe(directory).map_err(|error| unusable(directory, &error.to_string()))?;
    refuse_unwritable(directory)
}

fn unusable(directory: &Path, why: &str) -> Error {
    usage!(
        "the result directory '{directory}' cannot be used: {why}",
        "give another with --out DIR",
        directory = directory.display()
    )
}

/// Refuses a new run directory that cannot be made, or whose filesystem is full. Whoever owns the one above it:
/// a run without `--out` is made where its caller stands.
///
/// # Errors
/// It is such a directory.
pub fn refuse_unwritable(directory: &Path) -> Result<(), Error> {
    let unusable = |why: String| unusable(directory, &why);
    let existing = directory.ancestors().map(|above| {
        if above == Path::new("") {
            Path::new(".")
        } else {
            above
        }
    });
    let Some(existing) = existing.into_iter().find(|above| above.exists()) else {
        return Ok(());
    };
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    rustix::fs::access(existing, access).map_err(|error| {
        unusable(format!(
            "'{}' cannot be written to: {error}",
            existing.display()
        ))
    })?;
    let facts = rustix::fs::statvfs(existing).ok();
    // As /proc and /sys, which are of the kernel.
    if facts.as_ref().is_some_and(|facts| facts.f_blocks == 0) {
        return Err(unusable(format!(
            "'{}' is on a filesystem without any space for files",
            existing.display()
        )));
    }
    let free = facts.map_or(u64::MAX, |facts| {
        facts.f_bavail.saturating_mul(facts.f_frsize)
    });
    if free < FREE_MIN.0 {
        return Err(unusable(format!(
            "{} are free there, and a run needs at least {FREE_MIN}",
            Bytes(free)
        )));
    }
    Ok(())
}

fn refuse_occupied(directory: &Path) -> Result<(), Error> {
    let hint = "give another with --out DIR, or resume the run in it with --resume DIR";
    match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(usage!(
            "the result directory '{directory}' cannot be used: {error}",
            "give another with --out DIR",
            directory = directory.display()
        )),
        Ok(mut entries) => match entries.next() {
            Some(_) => Err(usage!(
                "the result directory '{directory}' exists and is not empty",
                hint,
                directory = directory.display()
            )),
            None => Ok(()),
        },
    }
}

/// Opens a journal for reading. It must be a regular file, because users may name any path.
fn opened(path: &Path) -> Result<BufReader<File>, Error> {
    files::open(path)
        .map(BufReader::new)
        .map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Error {
    usage!(
        "cannot read the journal '{path}': {error}",
        "give the directory of a run, as printed at its end",
        path = path.display()
    )
}

/// Reads the journal of the run in `path` line by line, so that a journal of any length needs the
/// memory of only one. Returns the run without what was measured.
pub fn scan(path: &Path, each: &mut Each) -> Result<Run, Error> {
    let path = file_of(path);
    Ok(read_lines(&path, opened(&path)?, each)?.0)
}

/// What a line of a journal says was measured.
pub enum MeasuredLine {
    /// A point, and what each rank measured of it, by rank, if there were several.
    Point(Box<PointRecord>, Vec<RankRecord>),
    /// An interval of `rigel watch`.
    Interval(Box<WatchedInterval>),
}

/// Receives what was measured, together with the journal's header.
pub type Each<'a> = dyn FnMut(&Header, MeasuredLine) + 'a;

/// Passes what was measured to `each`. Returns the run without it, and the length of all complete
/// lines in bytes.
fn read_lines(path: &Path, mut text: impl BufRead, each: &mut Each) -> Result<(Run, u64), Error> {
    let damaged = |number: usize, why: &str| {
        // A parser counts lines of what it was given, which was one.
        let why = why.rsplit_once(" at line ").map_or(why, |(why, _)| why);
        if number == 1 {
            return usage!(
                "'{path}' is not the journal of a run: line 1 is damaged: {why}",
                "give the directory of a run, as printed at its end; reports and captures of other \
                 tools are read by rigel import",
                path = path.display()
            );
        }
        failed!(
            "'{path}' line {number} is damaged: {why}",
            "the lines before it are complete; truncate the file there to read them",
            path = path.display()
        )
    };
    let (mut run, mut number, mut whole): (Option<Box<Run>>, _, _) = (None, 0, 0);
    let cut = loop {
        number += 1;
        let line = read_line(&mut text).map_err(|error| unreadable(path, &error))?;
        if let Some(why) = line.damage {
            return Err(damaged(number, why));
        }
        if !line.is_whole {
            break line.bytes > 0;
        }
        whole += line.bytes;
        check_format(path, &line.text)?;
        let Some(run) = &mut run else {
            let first = serde_json::from_slice::<HeaderLine<Header>>(&line.text);
            let first = first.map(|line| line.header).map_err(|error| {
                let line = serde_json::from_slice::<JournalLine>(&line.text);
                if line.is_ok_and(|line| !matches!(line, JournalLine::Header(_))) {
                    return damaged(number, "a point before the header");
                }
                damaged(number, &error.to_string())
            })?;
            run = Some(Box::new(Run::begun(first)));
            continue;
        };
        let entry = serde_json::from_slice(&line.text)
            .map_err(|error| damaged(number, &error.to_string()))?;
        // A run that was resumed has its earlier end above what it measured later.
        run.ended = None;
        match entry {
            JournalLine::Header(_) => return Err(damaged(number, "a second header")),
            JournalLine::Point(point) => {
                point.check_windows().map_err(|why| damaged(number, &why))?;
                let parts = run.ranks.parts_of(&point);
                run.lines_read += 1;
                each(
                    &run.header,
                    MeasuredLine::Point(Box::new(point.into_owned()), parts),
                );
            }
            JournalLine::Imported(imported) => run.imported.push(imported.into_owned()),
            JournalLine::Rank(part) => {
                let checked = part.record.check_windows();
                checked.map_err(|why| damaged(number, &why))?;
                run.ranks.record(part.into_owned());
            }
            JournalLine::Lost(lost) => run.ranks.lost.push(lost.into_owned()),
            JournalLine::End(end) => run.ended = Some(end.into_owned()),
            JournalLine::Watched(interval) => {
                run.lines_read += 1;
                each(
                    &run.header,
                    MeasuredLine::Interval(Box::new(interval.into_owned())),
                );
            }
            JournalLine::Stall(event) => run.stalls.push(event.into_owned()),
        }
    };
    let run = run.ok_or_else(|| {
        usage!(
            "'{path}' contains no run: it is empty, or its first line is incomplete",
            "start the run again",
            path = path.display()
        )
    })?;
    Ok((Run { cut, ..*run }, whole))
}

/// A line as it is in the file.
#[derive(Default)]
struct RawLine {
    /// Includes the line break; empty if the line cannot be from a journal.
    text: Vec<u8>,
    bytes: u64,
    /// True if the line has its line break.
    is_whole: bool,
    /// Why the line cannot be from a journal.
    damage: Option<&'static str>,
}

/// Reads a line. Users may name any file as a journal: once a line cannot be from a journal, its
/// bytes are counted up to [`LINE_MAX`], but no longer stored.
fn read_line(text: &mut impl BufRead) -> std::io::Result<RawLine> {
    let mut line = RawLine::default();
    let mut is_ours = true;
    loop {
        let piece = text.fill_buf()?;
        let end = piece.iter().position(|byte| *byte == b'\n');
        let piece = &piece[..end.map_or(piece.len(), |at| at + 1)];
        let length = piece.len();
        // JSON escapes control characters. After a power failure, a truncated line may end in
        // zeros.
        is_ours &= !piece
            .iter()
            .any(|byte| *byte < b' ' && !byte.is_ascii_whitespace());
        if is_ours {
            line.text.extend_from_slice(piece);
        } else {
            line.text = Vec::new();
        }
        line.bytes += length as u64;
        line.is_whole = end.is_some();
        text.consume(length);
        if line.bytes > LINE_MAX.0 {
            line.damage = Some("it is longer than 4 GiB");
        } else if line.is_whole && !is_ours {
            line.damage = Some("it contains control characters");
        }
        if line.is_whole || length == 0 || line.damage.is_some() {
            return Ok(line);
        }
    }
}

/// Reports another format as such, instead of failing on the first thing that it changed.
fn check_format(path: &Path, line: &[u8]) -> Result<(), Error> {
    #[derive(Deserialize)]
    struct Only {
        header: Format,
    }
    #[derive(Deserialize)]
    struct Format {
        format: u32,
    }
    match serde_json::from_slice::<Only>(line) {
        Ok(Only {
            header: Format { format },
        }) if format != FORMAT => Err(usage!(
            "'{path}' has format {format}, and this version reads format {FORMAT}",
            "read it with the version that wrote it",
            path = path.display()
        )),
        _ => Ok(()),
    }
}
