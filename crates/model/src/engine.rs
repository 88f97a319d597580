//! Properties of an engine for files and devices: plain data, which the engine's own file fills in.

/// Properties of an engine for files and devices.
#[derive(Debug, Clone, Copy)]
pub struct EngineInfo {
    /// Value of `--engine`.
    pub name: &'static str,
    /// What it executes an I/O with, for the help: one phrase in lower case.
    pub help: &'static str,
    /// True if a session has only one outstanding I/O, so that each needs a thread of its own.
    pub thread_per_io: bool,
    /// The same in fio.
    pub fio: FioEngine,
}

/// The engine of fio that does the same.
#[derive(Debug, Clone, Copy)]
pub struct FioEngine {
    /// Value of `ioengine`.
    pub name: &'static str,
    /// Other options that a job needs for it, one on each line.
    pub options: &'static str,
    /// Comment lines on the difference between its durable writes and fio's `sync=dsync`.
    pub log_writes: &'static str,
}
