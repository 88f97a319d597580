//! `rigel calibrate`: the storage's limits and latencies, each with its interval, in one command.

use super::expected::ExpectedArgs;
use super::measuring::{self, MeasuringArgs};
use super::membership::Membership;
use super::output::result;
use super::page;
use clap::{Args, ValueEnum};
use rigel_analyse::Calibration;
use rigel_analyse::plan::visits::Visits;
use rigel_analyse::quantity::lasting;
use rigel_verbs::calibrate::oracle_row::oracle_row;

use rigel_device::engine::log::LogFile;
use rigel_model::{Bound, Bytes, Error, KIB, Nanos, Provisioned, Ratio, SyncMethod, usage};
use rigel_verbs::calibrate::{CalibrateRequest, OwnLogs};
use std::path::Path;

/// Measure the limits of a target: maximum IOPS and MB/s, latency, knee, with 95 % intervals
///
/// The open successor of DBMS_RESOURCE_MANAGER.CALIBRATE_IO. Reads only, unless --write is given.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0 complete, 1 failed or incomplete, 2 wrong usage, 3 no rate met \
                  --max-latency, 4 undecided."
)]
pub(super) struct CalibrateArgs {
    /// Block size of the database [default: 8KiB, or that of --as]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    size: Option<Bytes>,
    /// Maximum response time at the sustained rate, such as 2ms or 500us@p99.9
    /// [default: 20ms@p99]
    #[arg(long, value_name = "LATENCY[@QUANTILE]", conflicts_with = "resume")]
    max_latency: Option<Bound>,
    /// Stop a point when the half-width of its 95 % interval is below this share of the figure
    #[arg(
        long,
        value_name = "SHARE",
        default_value = "2%",
        conflicts_with = "resume"
    )]
    precision: Ratio,
    /// About how long the run takes: every load is measured for as much longer or shorter as this
    /// differs from the usual 90s, so that intervals are narrower or wider
    #[arg(long = "for", value_name = "TIME", conflicts_with = "resume")]
    lasting: Option<Nanos>,
    /// Minimum measured time of a point, spread over three visits or more [default: 2s of 90s]
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    point_min: Option<Nanos>,
    /// Maximum measured time of a point, even if --precision is not reached [default: 5s of 90s]
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    point_max: Option<Nanos>,
    /// Measured time of the closing measurements, of small and large reads and of writes; 0s for none
    /// [default: 10s of 90s]
    #[arg(long, value_name = "TIME", conflicts_with = "resume")]
    closing: Option<Nanos>,
    /// Read as this database does: its block sizes and I/O engine
    #[arg(
        long = "as",
        value_name = "DATABASE",
        value_enum,
        conflicts_with = "resume"
    )]
    like: Option<Database>,
    /// Also measure random writes and log writes; needs --destroy unless Rigel made the target
    #[arg(long, conflicts_with = "resume")]
    write: bool,
    /// With --write: write the whole target twice before writes are measured, once sequentially and
    /// once in random order, so that flash is not measured fresh
    #[arg(long, conflicts_with = "resume")]
    precondition: bool,
    /// Second depth that the search tries, after depth 1: the number of disks, if known
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    #[arg(conflicts_with = "resume")]
    num_disks: u32,
    /// What the volume was sold with, such as 30000iops,500MB/s: the report says what share of it was
    /// delivered
    #[arg(long, value_name = "RATES", conflicts_with = "resume")]
    provisioned: Option<Provisioned>,
    /// Print the row of DBA_RSRC_IO_CALIBRATE instead of the report
    #[arg(long, conflicts_with = "json")]
    like_oracle: bool,
    #[command(flatten)]
    expected: ExpectedArgs,
    #[command(flatten)]
    measuring: MeasuringArgs,
}

/// A database whose reads are imitated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Database {
    /// 8 KiB by pread, one I/O per thread; read-ahead of 128 KiB
    Postgres,
    /// 16 KiB by libaio; extents of 1 MiB
    Mysql,
    /// 8 KiB by libaio; multiblock reads of 1 MiB
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
pub(super) fn run(args: &CalibrateArgs, membership: &Membership) -> Result<u8, Error> {
    args.measuring.enter(membership)?;
    let is_resumed = args.measuring.outcome.resume.is_some();
    let expected = args
        .expected
        .expectations_of_new(is_resumed, args.provisioned)?;
    let mut job = if let Some(run) = &args.measuring.outcome.resume {
        measuring::resume(run, &args.measuring, membership, "calibrate", &[])?
    } else {
        let engine = args.like.map_or("auto", |like| like.manner().2);
        measuring::begin(
            &args.measuring,
            membership,
            Box::new(args.request(membership)?),
            engine,
        )?
    };
    job.expect(expected);
    let Some((measured, outcome)) = measuring::measure(&mut job, &args.measuring)? else {
        return Ok(0);
    };
    let path = job.results.path();
    let measured = page::with_earlier(measured, path);
    let calibration = measured.results_of::<Calibration>("a calibration")?;
    if args.like_oracle {
        result(&oracle_row(&measured.run, calibration));
        page::place(&measured.document(), &measured, path);
    } else {
        page::show(&measured, path, args.measuring.outcome.json);
    }
    measuring::conclude(job, outcome)
}

impl CalibrateArgs {
    /// All, if this process alone may write, and a directory is there for them.
    fn own_logs(&self, membership: &Membership) -> OwnLogs {
        if self.write && self.measuring.is_directory() && membership.joined().is_none() {
            OwnLogs::All
        } else {
            OwnLogs::None
        }
    }

    /// The ways to make a record durable that are compared with fdatasync.
    fn log_methods(&self, membership: &Membership) -> Vec<SyncMethod> {
        let directory = self.measuring.targets.first().map(Path::new);
        let directory = directory.filter(|_| !self.own_logs(membership).is_none());
        let mut methods = directory.map_or_else(Vec::new, LogFile::methods);
        methods.retain(|method| *method != SyncMethod::Fdatasync);
        methods
    }

    fn request(&self, membership: &Membership) -> Result<CalibrateRequest, Error> {
        let default = CalibrateRequest::DEFAULT;
        let (block, large, _) = self
            .like
            .map_or((default.block, default.large, ""), Database::manner);
        let block = match self.size {
            None => block,
            Some(size) => size_of_io("--size", size)?,
        };
        refuse_imprecise(self.precision)?;
        let usual = match self.lasting {
            None => default.clone(),
            Some(time) => {
                refuse_run_of(time)?;
                CalibrateRequest::lasting(time)
            }
        };
        let (point_least, point_most) = times_of_point(
            self.point_min,
            self.point_max,
            usual.point_least,
            usual.point_most,
        )?;
        let closing = self.closing.unwrap_or(usual.closing);
        refuse_short_closing(closing)?;
        refuse_preconditioning(self.precondition, self.write)?;
        Ok(CalibrateRequest {
            block,
            large: large.max(block),
            bound: self.max_latency.unwrap_or(default.bound),
            precision: self.precision,
            point_least,
            point_most,
            // Who names the time of a point gets it.
            visits_until: usual.visits_until.filter(|_| self.point_max.is_none()),
            closing,
            num_disks: self.num_disks,
            writes: self.write,
            own_logs: self.own_logs(membership),
            log_methods: self.log_methods(membership),
            precondition: self.precondition,
            provisioned: self.provisioned,
            bound_given: self.max_latency.is_some(),
            ..default
        })
    }
}

/// The size as that of an I/O, if it can be one; `option` is named in the refusal.
pub(super) fn size_of_io(option: &str, Bytes(size): Bytes) -> Result<u32, Error> {
    let in_range = (512..=16 << 20).contains(&size) && size.is_multiple_of(512);
    u32::try_from(size)
        .ok()
        .filter(|_| in_range)
        .ok_or_else(|| {
            // 8KB is refused because it is 8000 bytes, which 7.8 KiB would not show.
            let size = if size.is_multiple_of(KIB) && size > 0 {
                Bytes(size).to_string()
            } else {
                format!("{size} bytes")
            };
            usage!(
                "{option} {size} is not a valid I/O size",
                "give a multiple of 512 up to 16MiB, such as 8k"
            )
        })
}

/// Refuses a precision that cannot be reached, or that is meaningless.
pub(super) fn refuse_imprecise(precision: Ratio) -> Result<(), Error> {
    if !(0.001..=0.5).contains(&precision.get()) {
        return Err(usage!(
            "--precision {percent} % is out of range",
            "give 0.1% to 50%; 2% is usual",
            percent = precision.get() * 100.0
        ));
    }
    Ok(())
}

/// The minimum and the maximum time of a point, both whole windows: as given, or the usual ones. A
/// usual one gives way to one that was given. Refuses times that are too short for an interval, or in
/// the wrong order.
pub(super) fn times_of_point(
    least: Option<Nanos>,
    most: Option<Nanos>,
    usual_least: Nanos,
    usual_most: Nanos,
) -> Result<(Nanos, Nanos), Error> {
    for (option, time) in [("--point-min", least), ("--point-max", most)] {
        if let Some(time) = time.filter(|time| *time < Nanos::from_secs(1)) {
            return Err(usage!(
                "{option} {time} is too short",
                "give a second or more, such as 5s"
            ));
        }
        time.map_or(Ok(()), |time| refuse_long_point(option, time))?;
    }
    if let (Some(least), Some(most)) = (least, most)
        && least > most
    {
        return Err(usage!(
            "--point-min {least} is longer than --point-max {most}",
            "give a minimum that is not above the maximum"
        ));
    }
    let chosen_least = least.unwrap_or(usual_least.min(most.unwrap_or(usual_least)));
    let chosen_most = most.unwrap_or(usual_most.max(chosen_least));
    Ok((
        Visits::whole_windows(chosen_least),
        Visits::whole_windows(chosen_most),
    ))
}

/// Refuses preconditioning where nothing is written.
pub(super) fn refuse_preconditioning(precondition: bool, writes: bool) -> Result<(), Error> {
    if precondition && !writes {
        return Err(usage!(
            "--precondition writes the whole target, and this run does not write",
            "add --write, or omit --precondition"
        ));
    }
    Ok(())
}

/// Refuses a point that would last for more than a week.
pub(super) fn refuse_long_point(option: &str, time: Nanos) -> Result<(), Error> {
    const MOST: Nanos = Nanos::from_secs(7 * 86_400);
    if time > MOST {
        return Err(usage!(
            "{option} {time} is too long for a point",
            "give at most 7d; rigel soak measures for longer",
            time = lasting(time)
        ));
    }
    Ok(())
}

/// Refuses a run too short for a few visits to each load, and one of which a point lasts for too long.
fn refuse_run_of(time: Nanos) -> Result<(), Error> {
    if time < Nanos::from_secs(30) {
        return Err(usage!(
            "--for {time} is too short for a calibration",
            "give 30s or more, such as 90s or 15min"
        ));
    }
    refuse_long_point("--for", time)
}

/// Refuses a closing measurement that is too short to show more than the search.
fn refuse_short_closing(closing: Nanos) -> Result<(), Error> {
    if closing > Nanos(0) && closing < CalibrateRequest::CLOSING_LEAST {
        return Err(usage!(
            "--closing {closing} is too short",
            "give 3s or more, such as 60s, or 0s for no closing measurement"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: CalibrateArgs,
    }

    #[test]
    fn a_run_of_any_time_that_is_accepted_has_parts_that_are() {
        for time in ["30s", "45s", "90s", "15min"] {
            let line = ["calibrate", "sim:1,1ms", "--for", time];
            let request = Line::try_parse_from(line)
                .unwrap()
                .args
                .request(&Membership::default())
                .unwrap();
            assert!(
                request.closing >= CalibrateRequest::CLOSING_LEAST,
                "{time}: {request:?}"
            );
        }
        let line = ["calibrate", "sim:1,1ms", "--closing", "2s"];
        let refused = Line::try_parse_from(line)
            .unwrap()
            .args
            .request(&Membership::default());
        let words = refused.unwrap_err().to_string();
        assert!(words.contains("--closing 2.00 s is too short"), "{words}");
    }
}
