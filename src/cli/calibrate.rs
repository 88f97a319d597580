//! `rigel calibrate`: the storage's limits and latencies, each with its interval, in one command.

use super::measuring::{self, MeasuringArgs};
use super::output::result;
use super::page;
use crate::analyse::RunResult;
use crate::model::{Bound, Bytes, CalibrateRequest, Error, Nanos, Ratio, Request};
use crate::report;
use clap::{Args, ValueEnum};

/// Finds what a storage can do: IOPS, MB/s, latency, the knee, each with its confidence
///
/// The open successor of `DBMS_RESOURCE_MANAGER.CALIBRATE_IO`. Reads only, unless --write is given.
#[derive(Debug, Args)]
#[command(after_help = "Exit status: 0 complete, 1 failed or incomplete, 2 wrong usage, 3 the bound was not met.")]
pub(super) struct CalibrateArgs {
    #[command(flatten)]
    measuring: MeasuringArgs,
    /// The database's block [default: 8KiB, or that of --as]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    size: Option<Bytes>,
    /// Response time objective of the sustained rate, such as 2ms, 500us@p99.9; a bare number is ms [default: 20ms@p99]
    #[arg(long, value_name = "LATENCY[@QUANTILE]", conflicts_with = "resume")]
    max_latency: Option<Bound>,
    /// Ends a point when half of its 95 % interval is below this share of the figure
    #[arg(long, value_name = "SHARE", default_value = "2%", conflicts_with = "resume")]
    precision: Ratio,
    /// Maximum time of a point, precise or not
    #[arg(long, value_name = "TIME", default_value = "5s", conflicts_with = "resume")]
    point_max: Nanos,
    /// Block size and manner of reading of this database
    #[arg(long = "as", value_name = "DATABASE", value_enum, conflicts_with = "resume")]
    like: Option<Database>,
    /// Measures random writes and log writes too; needs --destroy for what Rigel did not make
    #[arg(long, conflicts_with_all = ["read_only", "resume"])]
    write: bool,
    /// Has no effect: reading is the default
    #[arg(long)]
    read_only: bool,
    /// Second depth of the search, after depth 1: the number of disks, if you know it
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    #[arg(conflicts_with = "resume")]
    num_disks: u32,
    /// Prints the row that `DBA_RSRC_IO_CALIBRATE` would have
    #[arg(long)]
    like_oracle: bool,
}

/// A database whose reads are imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    /// 8 KiB by pread, a process for each; 128 KiB where it reads ahead
    Postgres,
    /// 16 KiB by libaio; 1 MiB extents
    Mysql,
    /// 8 KiB by libaio; 1 MiB multiblock reads
    Oracle,
}

impl Database {
    /// Block size, size of large reads, and engine.
    fn manner(self) -> (u32, u32, &'static str) {
        match self {
            Self::Postgres => (8 << 10, 128 << 10, "psync"),
            Self::Mysql => (16 << 10, 1 << 20, "libaio"),
            Self::Oracle => (8 << 10, 1 << 20, "libaio"),
        }
    }
}

/// Measures, and shows the results.
pub(super) fn run(args: &CalibrateArgs) -> Result<u8, Error> {
    let mut job = if let Some(run) = &args.measuring.outcome.resume {
        measuring::resume(run, &args.measuring, "calibrate", None)?
    } else {
        let engine = args.like.map_or("auto", |like| like.manner().2);
        measuring::begin(&args.measuring, Request::Calibrate(args.request()?), engine)?
    };
    let (run, stopped) = measuring::measure(&mut job, &args.measuring)?;
    let path = job.results.path();
    let found = report::result(&run);
    let RunResult::Calibration(calibration) = &found else {
        return Err(Error::failed("the journal is no calibration's any more", "rigel report shows what it is"));
    };
    let verbs = "`rigel report`, `advise` and `compare`";
    if args.like_oracle && !args.measuring.outcome.json {
        result(&report::oracle_row::oracle_row(&run, calibration));
        page::place(&run, &found, path, verbs);
    } else {
        page::show(&run, &found, path, args.measuring.outcome.json, verbs);
    }
    measuring::conclude(job, &run, stopped)?;
    let asked = matches!(run.header.request(), Request::Calibrate(request) if request.bound_given);
    Ok(if asked && calibration.sustained.kept.is_none() { 3 } else { 0 })
}

impl CalibrateArgs {
    fn request(&self) -> Result<CalibrateRequest, Error> {
        let default = CalibrateRequest::DEFAULT;
        let (block, large, _) = self.like.map_or((default.block, default.large, ""), Database::manner);
        let block = match self.size {
            None => block,
            Some(size) => size_of_io("--size", size)?,
        };
        refuse_imprecise(self.precision)?;
        refuse_short(self.point_max)?;
        Ok(CalibrateRequest {
            block,
            large: large.max(block),
            bound: self.max_latency.unwrap_or(default.bound),
            precision: self.precision,
            point_most: self.point_max,
            num_disks: self.num_disks,
            writes: self.write,
            bound_given: self.max_latency.is_some(),
            ..default
        })
    }
}

/// The size as that of an I/O, if it can be one; `option` is named in the refusal.
pub(super) fn size_of_io(option: &str, Bytes(size): Bytes) -> Result<u32, Error> {
    let in_range = (512..=16 << 20).contains(&size) && size.is_multiple_of(512);
    u32::try_from(size).ok().filter(|_| in_range).ok_or_else(|| {
        Error::usage(
            format!("{option} {} is no size of an I/O", Bytes(size)),
            "give a multiple of 512 up to 16MiB, such as 8k",
        )
    })
}

/// Refuses a precision that cannot be reached, or that is meaningless.
pub(super) fn refuse_imprecise(precision: Ratio) -> Result<(), Error> {
    if !(0.001..=0.5).contains(&precision.get()) {
        return Err(Error::usage(
            format!("--precision {} % is out of range", precision.get() * 100.0),
            "give 0.1% to 50%; 2% is usual",
        ));
    }
    Ok(())
}

/// Refuses a measurement that is too short for an interval.
pub(super) fn refuse_short(point_most: Nanos) -> Result<(), Error> {
    if point_most < Nanos::from_secs(1) {
        return Err(Error::usage(
            format!("--point-max {point_most} is too short"),
            "give a second or more, such as 5s",
        ));
    }
    Ok(())
}
