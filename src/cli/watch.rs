//! `rigel watch`: the demand of a live host, recorded until it is stopped, without a load of its own.

use super::attend;
use super::calibrate::size_of_io;
use super::database::PasswordArgs;
use super::measuring::commands;
use super::membership::Membership;
use super::metrics::WatchMetrics;
use super::outcome::{OutcomeArgs, RESULTS};
use super::output::remark;
use super::progress::{Progress, Total};
use super::results::{Results, own_arguments};
use super::stop::stop_flag;
use super::target::is_model;
use super::{database, page};
use clap::Args;
use rigel_analyse::demand::BLOCK_ASSUMED;
use rigel_analyse::demand::watch_request::StorageServes;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::demand::watch_request::WatchedDisk;
use rigel_analyse::{WatchReader, hidden_log_writes, hidden_times, hidden_waits, quantity};
use rigel_database::{Address, ServerStatus};
use rigel_device::clock;
use rigel_device::{observe, rights};
use rigel_measure::run::Event;
use rigel_measure::watch::{WatchNews, WatchedServer, Watcher, disks_below};
use rigel_model::Invocation;
use rigel_model::record::journal::Header;
use rigel_model::record::journal::MeasuredLine;
use rigel_model::record::journal::{self, EngineChoice, Journal};
use rigel_model::record::{RunEnd, WatchedInterval};
use rigel_model::{
    Bytes, Error, FileKind, Finding, FindingName, Layout, Nanos, RunOptions, Target, TargetFacts,
    VolumeMember, spoken, usage,
};
use rigel_verbs::Evaluated;
use rigel_verbs::{Verb as _, calibrate};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Shortest interval: shorter ones have too few requests for their figures.
const EVERY_MIN: Nanos = Nanos::from_secs(1);

/// Longest interval.
const EVERY_MAX: Nanos = Nanos::from_secs(86_400);

/// Record what databases and others ask of a host's storage, without any load of its own
///
/// TARGET is a directory or a device, whose disk's requests are traced one by one; or the URL of a
/// PostgreSQL, MariaDB or MySQL server, whose counters are read and whose sessions' waits are
/// sampled. It ends after --for or with Ctrl-C. rigel fit offers the recorded demand to other
/// storage, and rigel report shows it at any time.
#[derive(Debug, Args)]
#[command(
    after_help = "Tracing needs root, or the right CAP_PERFMON; without it the kernel's counters \
                  are read.\n\nExit status: 0 observed, 1 failed, 2 wrong usage."
)]
pub(super) struct WatchArgs {
    /// Directories of filesystems, devices, and URLs of databases
    #[arg(value_name = "TARGET", conflicts_with = "resume")]
    targets: Vec<OsString>,
    /// Another device, such as nvme0n1 or /dev/sda2; may be repeated
    #[arg(long, value_name = "DEVICE", conflicts_with = "resume")]
    device: Vec<OsString>,
    /// Length of an interval
    #[arg(
        long,
        value_name = "TIME",
        default_value = "10s",
        conflicts_with = "resume"
    )]
    every: Nanos,
    /// Duration of the whole, such as 1h or 7d [default: until it is stopped]
    #[arg(long = "for", value_name = "TIME", conflicts_with = "resume")]
    lasting: Option<Nanos>,
    /// Block of the database: reads of up to two blocks count as random [default: that of the
    /// database whose URL is given, else 8KiB]
    #[arg(long, value_name = "SIZE", conflicts_with = "resume")]
    size: Option<Bytes>,
    /// Directory of a calibration: say how much room its storage leaves
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    against: Option<PathBuf>,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten, next_help_heading = RESULTS)]
    outcome: OutcomeArgs,
}

/// Observes, and reports what was seen.
pub(super) fn run(args: &WatchArgs, membership: &Membership) -> Result<u8, Error> {
    args.outcome.ranks.joining.enter(membership, false)?;
    membership.refuse_shared(
        "watch",
        "each host has requests of its own",
        "start one process for each host, with --alone",
    )?;
    if args.outcome.seed.is_some() {
        return Err(usage!(
            "--seed is given, and a watch makes no random choices",
            "leave it out"
        ));
    }
    let stop = stop_flag()?;
    let (mut watcher, mut journal, header, directory) = match &args.outcome.resume {
        Some(run) => {
            let Some((watcher, journal, header)) = resume(run, &args.password, membership)? else {
                remark("this watch is complete: nothing is left to observe\n\n");
                return report_on(
                    Results::existing(run).path(),
                    RunEnd::complete(0),
                    args.outcome.json,
                );
            };
            (
                watcher,
                journal,
                header,
                Results::existing(run).path().into(),
            )
        }
        None => args.begin(membership)?,
    };
    // What others send is read from here on, for weeks: the metrics' clients, databases.
    rights::keep_those_to_trace()?;
    let verb = rigel_verbs::of(&header)?;
    attend::has_journal(commands(&*verb, &header, &directory));
    let observed = observe_all(&mut watcher, &mut journal, &header, &stop, args);
    // A watch without --for lasts until it is stopped.
    attend::is_measured();
    let is_early = stop.load(Ordering::Relaxed) && lasts(&header);
    let observed = observed.map(|()| 0);
    let end = RunEnd::of(&observed, is_early);
    let written = journal.end(&end);
    observed.and(written)?;
    drop(journal);
    report_on(&directory, end, args.outcome.json)
}

/// True if the watch ends by itself.
fn lasts(header: &Header) -> bool {
    let request = header.invocation.asked::<WatchRequest>("watch");
    request.is_some_and(|request| request.lasting.is_some())
}

/// Observes interval after interval into the journal.
fn observe_all(
    watcher: &mut Watcher,
    journal: &mut Journal,
    header: &Header,
    stop: &AtomicBool,
    args: &WatchArgs,
) -> Result<(), Error> {
    let request = &header
        .invocation
        .asked::<WatchRequest>("watch")
        .ok_or_else(|| usage!("this run is not a watch", "rigel report reads any run"))?;
    let last = request.intervals().unwrap_or(u32::MAX);
    let metrics = WatchMetrics::of(&args.outcome, header, request)?;
    let mut progress = Progress::new(
        &format!("watch {}", header.facts.name),
        Total::Known(request.intervals().map_or(0, |count| count as usize)),
        request.every.as_secs_f64(),
        args.outcome.progress(),
    );
    progress.say(&format!(
        "watching {}{}; Ctrl-C ends it",
        header.facts.name,
        request
            .lasting
            .map_or_else(String::new, |lasting| format!(" for {lasting}"))
    ));
    let mut events = journal.events()?;
    while watcher.next_number() <= last && !watcher.is_over() {
        let interval = watcher.interval(stop, &mut |news| match news {
            WatchNews::Stall(event) => {
                events.stall(event);
                progress.on_event(&Event::Stall(event));
            }
            WatchNews::Silent(stalled) => progress.silent(stalled),
        });
        // Of an interval that was stopped at once nothing is known.
        if interval.measured > Nanos(0) {
            journal.watched(&interval)?;
            if let Some(metrics) = &metrics {
                metrics.add(&interval);
            }
            progress.observed(&interval, &line(&interval, request));
        }
    }
    watcher.end(&mut |news| {
        if let WatchNews::Stall(event) = news {
            events.stall(event);
            progress.on_event(&Event::Stall(event));
        }
    });
    progress.finish();
    Ok(())
}

/// An interval in a line.
fn line(interval: &WatchedInterval, request: &WatchRequest) -> String {
    let mut reader = WatchReader::default();
    reader.add(interval);
    let result = reader.result(request);
    let each = result.sources.iter().map(|source| {
        // Nothing is known of a server that did not answer, which is not "0/s".
        if source.gaps > 0 {
            return format!("{}: {}", source.name, source.gap);
        }
        let all: f64 = source.streams.iter().map(|stream| stream.per_s).sum();
        let latency = source.streams.iter().find_map(|stream| {
            let p99 = stream.response?.p99_us;
            Some(format!(", {} p99 {}", stream.name, quantity::time(p99)))
        });
        format!(
            "{} {}{}",
            source.name,
            quantity::per_second(all),
            latency.unwrap_or_default()
        )
    });
    format!(
        "interval {}: {}",
        interval.number,
        each.collect::<Vec<_>>().join("; ")
    )
}

/// Continues a watch; `None` if its time is over.
fn resume(
    run: &Path,
    password: &PasswordArgs,
    membership: &Membership,
) -> Result<Option<(Watcher, Journal, Header)>, Error> {
    let mut last = 0;
    let (mut journal, so_far) = Journal::reopen_each(run, &mut |_, measured| {
        if let MeasuredLine::Interval(interval) = measured {
            last = last.max(interval.number);
        }
    })?;
    if so_far.cut {
        remark("the journal's last line is incomplete: its interval is lost\n");
    }
    let is_ended = so_far.is_complete();
    let header = so_far.header;
    let verb = rigel_verbs::of(&header)?;
    let request = verb.downcast_ref::<WatchRequest>().ok_or_else(|| {
        usage!(
            "this run was made by rigel {command}",
            "resume it with the verb that started it",
            command = verb.command()
        )
    })?;
    let gone = clock::gone_since(header.started.parse()?);
    let is_last = request.intervals().is_some_and(|all| last >= all);
    if is_last || request.lasting.is_some_and(|lasting| gone >= lasting) {
        if !is_ended {
            journal.end(&RunEnd::complete(0))?;
        }
        return Ok(None);
    }
    for disk in &request.disks {
        let (now, _) = disks_below(Path::new(&disk.named))?;
        if !now.contains(disk) {
            return Err(usage!(
                "this run cannot be resumed: '{named}' was on {name} and is elsewhere now",
                "start another watch",
                named = disk.named,
                name = disk.name
            ));
        }
    }
    let servers = request
        .urls
        .iter()
        .map(|url| {
            let access = database::access_again(std::slice::from_ref(url), password, membership)?;
            let status = rights::in_thread_that_connects(|| ServerStatus::connect(&access))?;
            Ok((url.clone(), access, status))
        })
        .collect::<Result<Vec<WatchedServer>, Error>>()?;
    let (watcher, findings) = Watcher::begin(request, servers, gone, last);
    observed_alike(&header.engine_about, &watcher.about())?;
    findings
        .iter()
        .for_each(|finding| remark(&format!("rigel: {}\n", spoken(&finding.what))));
    Ok(Some((watcher, journal, header)))
}

/// Refuses to continue a run in another way: its intervals would not be comparable.
fn observed_alike(before: &str, now: &str) -> Result<(), Error> {
    if before == now {
        return Ok(());
    }
    Err(usage!(
        "this run cannot be resumed: its disks were observed by {before}, and would be by {now}",
        "resume it with the rights that it began with (tracing needs root), or start another watch"
    ))
}

/// Shows the report of the journal in `directory`.
fn report_on(directory: &Path, end: RunEnd, json: bool) -> Result<u8, Error> {
    let measured = Evaluated::read_ending(directory, end)?;
    page::show(&measured, directory, json);
    Ok(0)
}

impl WatchArgs {
    /// Starts to observe, and makes the journal.
    fn begin(&self, membership: &Membership) -> Result<(Watcher, Journal, Header, PathBuf), Error> {
        let (request, servers, mut findings) = self.request(membership)?;
        let mut results = Results::begin(self.outcome.out.as_deref(), "watch")?;
        let (watcher, more) = Watcher::begin(&request, servers, Nanos(0), 0);
        findings.extend(more);
        let header = header(&request, watcher.about(), findings);
        results.claim()?;
        let journal = Journal::create(results.path(), &header)?;
        Ok((watcher, journal, header, results.path().to_path_buf()))
    }

    /// The request, and what the reader should know of the disks.
    fn request(
        &self,
        membership: &Membership,
    ) -> Result<(WatchRequest, Vec<WatchedServer>, Vec<Finding>), Error> {
        let (mut disks, mut findings): (Vec<WatchedDisk>, Vec<Finding>) = Default::default();
        let is_url = |target: &&OsString| target.to_str().is_some_and(Address::is_url);
        let urls: Vec<&OsString> = self.targets.iter().filter(is_url).collect();
        let paths = self.targets.iter().filter(|target| !is_url(target));
        for target in paths.chain(&self.device) {
            if is_model(Path::new(target)) {
                return Err(usage!(
                    "{name} is a model: there is nothing to watch",
                    "give a directory, a device or the URL of a database",
                    name = target.display()
                ));
            }
            let (below, more) = disks_below(Path::new(target))?;
            for disk in below {
                if disks.iter().all(|known| known.name != disk.name) {
                    disks.push(disk);
                }
            }
            findings.extend(more);
        }
        if disks.is_empty() && urls.is_empty() {
            return Err(usage!(
                "nothing to watch is given",
                "give a directory, a device or the URL of a database, such as rigel watch \
                 /var/lib/postgresql"
            ));
        }
        if !(EVERY_MIN..=EVERY_MAX).contains(&self.every) {
            return Err(usage!(
                "--every {every} is no length of an interval",
                "give 1s to 24h, such as 10s",
                every = self.every.exact()
            ));
        }
        if let Some(lasting) = self.lasting.filter(|lasting| *lasting < self.every) {
            return Err(usage!(
                "--for {lasting} ends before the first interval of {every}",
                "give a longer --for, such as 1h, or a shorter --every",
                lasting = lasting.exact(),
                every = self.every.exact()
            ));
        }
        let block = self
            .size
            .map(|size| size_of_io("--size", size))
            .transpose()?;
        let servers = self.servers(&urls, membership)?;
        for (url, access, status) in &servers {
            findings.extend(access.clear_text_warning());
            findings.extend(status.hides_waits.then(|| hidden_waits(url)));
            findings.extend(status.hides_times.then(|| hidden_times(url)));
        }
        let numbers: BTreeSet<(u32, u32)> = disks.iter().map(|disk| disk.number).collect();
        let whole = |number| observe::devices(number).into_iter().next();
        let whole = numbers.into_iter().filter_map(whole);
        findings.extend(whole.filter_map(|disk| hidden_log_writes(&disk, !urls.is_empty())));
        let block = block.or_else(|| servers.first().map(|(.., status)| status.block));
        let request = WatchRequest {
            disks,
            urls: servers.iter().map(|(url, ..)| url.clone()).collect(),
            every: self.every,
            lasting: self.lasting,
            block: block.unwrap_or(BLOCK_ASSUMED),
            is_block_assumed: block.is_none(),
            against: self.against.as_deref().map(serves).transpose()?,
        };
        findings.extend(elsewhere(&request));
        Ok((request, servers, findings))
    }

    /// Connections to the databases with these URLs, of which each may be another product.
    fn servers(
        &self,
        urls: &[&OsString],
        membership: &Membership,
    ) -> Result<Vec<WatchedServer>, Error> {
        let mut servers: Vec<WatchedServer> = Vec::new();
        for url in urls {
            let url = url.to_string_lossy().into_owned();
            let access = database::access(&[url], &self.password, membership)?;
            let status = rights::in_thread_that_connects(|| ServerStatus::connect(&access))?;
            let name = access.servers[0].to_string();
            if servers.iter().any(|(known, ..)| *known == name) {
                return Err(usage!(
                    "'{name}' is given twice",
                    "give every database once"
                ));
            }
            servers.push((name, access, status));
        }
        Ok(servers)
    }
}

/// What the calibration in `path` measured.
fn serves(path: &Path) -> Result<StorageServes, Error> {
    let run = rigel_verbs::read(path)?;
    let Some(found) = calibrate::results(&run) else {
        return Err(usage!(
            "--against '{path}' is not a calibration",
            "run rigel calibrate TARGET, and give the directory of that run",
            path = path.display()
        ));
    };
    let members = &run.header.facts.members;
    let disks = members.iter().flat_map(|member| &member.devices);
    Ok(StorageServes {
        run: path.display().to_string(),
        target: run.header.facts.name.clone(),
        host: run.header.host.name.clone(),
        disks: disks.map(|disk| disk.name.clone()).collect(),
        ..StorageServes::of(&found)
    })
}

/// Says that a calibration is of other storage than that which is watched.
fn elsewhere(request: &WatchRequest) -> Option<Finding> {
    let serves = request.against.as_ref()?;
    let is_watched = |name: &String| {
        let whole = |disk: &WatchedDisk| observe::devices(disk.number);
        let mut below = request.disks.iter().flat_map(whole);
        below.any(|device| device.name == *name)
    };
    let is_same = serves.host == observe::host().name && serves.disks.iter().any(is_watched);
    if is_same || request.disks.is_empty() {
        return None;
    }
    let of = if serves.host == observe::host().name {
        serves.target.clone()
    } else {
        format!("{} on the host {}", serves.target, serves.host)
    };
    Some(Finding::warning(
        FindingName::CalibrationElsewhere,
        format!(
            "the calibration in {} is of other storage than is watched: {of}",
            serves.run
        ),
        "that is right for storage that the database may move to; else calibrate this one",
    ))
}

fn header(request: &WatchRequest, about: String, findings: Vec<Finding>) -> Header {
    let disks = request.disks.iter().map(|disk| &disk.name);
    let names: Vec<&str> = disks.chain(&request.urls).map(String::as_str).collect();
    Header {
        format: journal::FORMAT,
        version: env!("CARGO_PKG_VERSION").into(),
        started: clock::wall_time(),
        command: own_arguments(),
        target: Target::Paths {
            members: request
                .disks
                .iter()
                .map(|disk| PathBuf::from(&disk.named))
                .collect(),
            layout: Layout::Concat,
        },
        engine: EngineChoice {
            name: "watch".into(),
            buffered: false,
            verify: false,
        },
        engine_about: about,
        points: Vec::new(),
        invocation: Invocation {
            options: RunOptions {
                directory: std::env::current_dir().unwrap_or_default(),
                ..RunOptions::default()
            },
            ..request.invocation()
        },
        host: observe::host(),
        facts_of_others: Vec::new(),
        facts: TargetFacts {
            name: names.join(" and "),
            members: request.disks.iter().map(member).collect(),
            ..TargetFacts::default()
        },
        findings,
        ranks: None,
        says_end: true,
    }
}

fn member(disk: &WatchedDisk) -> VolumeMember {
    let devices = observe::devices(disk.number);
    // What was named may be a directory; what is watched is the device below it.
    VolumeMember {
        path: Path::new("/dev").join(disk.name.replace('!', "/")),
        kind: FileKind::Device,
        bytes: devices.first().map_or(Bytes(0), |device| device.bytes),
        inode: 0,
        alignment: 0,
        atomic_write_max: None,
        filesystem: None,
        mount_options: None,
        extents: None,
        device_number: Some(disk.number),
        devices,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_was_traced_is_not_continued_by_counters() {
        assert!(observed_alike("tracepoints", "tracepoints").is_ok());
        let refused = observed_alike("tracepoints", "the kernel's counters").unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("by tracepoints, and would be by the kernel's counters"),
            "{said}"
        );
        assert!(said.contains("start another watch"), "{said}");
    }
}
