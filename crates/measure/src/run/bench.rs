//! What a run measures on: the target, inspected and opened, with the engine that drives it.
//!
//! Input: a [`BenchRequest`]. Output: a [`Bench`] that is ready to measure points. Nothing is
//! written to a target before the guard permits it, and nothing is measured before it was
//! inspected.

mod samples;
mod server;

use crate::preflight;
use crate::stalls::NamedStall;
use rigel_analyse as analyse;
use rigel_analyse::plan::VolumeShape;
use rigel_database::Access;
use rigel_device::bounded;
use rigel_device::clock::{self, Clock};
use rigel_device::engine::layout::VolumeMap;
use rigel_device::engine::log::LogFile;
use rigel_device::engine::null::Null;
use rigel_device::engine::opened::{Identity, Opened};
use rigel_device::engine::scratch::{self, Scratch};
use rigel_device::engine::sim::Sim;
use rigel_device::engine::uring::SLOTS_MAX;
use rigel_device::engine::volume::Volume;
use rigel_device::engine::{self, Engine, guard};
use rigel_device::observe::{self, Observer};
use rigel_drive::{Cue, DetachedTerms, Live, LogEngines};
use rigel_model::record::journal::EngineChoice;
use rigel_model::record::{End, PointRecord, RankRecord, StallEvent, Window};
use rigel_model::{
    Bytes, Error, Finding, FindingName, Host, Layout, LogKind, Nanos, Point, PointLimits, Sample,
    Severity, SqlWork, StallDetector, Stream, Target, TargetFacts, VolumeMember, usage,
};
use samples::PointSamples;
pub(super) use server::ServerCounters;
use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Maximum number of threads for synchronous I/O: each needs some 30 KB beside its buffer, and a
/// run stays below 64 MiB.
const THREADS_MAX: u64 = 1024;

/// Minimum interval of host counter samples while a point runs.
const SAMPLE: Nanos = Nanos::from_secs(1);

/// What to measure, and with which settings.
pub struct BenchRequest<'a> {
    /// Target to measure.
    pub target: &'a Target,
    /// Engine to use.
    pub engine: &'a EngineChoice,
    /// Unit in bytes into which members of a volume are divided, so that no I/O crosses two
    /// members.
    pub grain: u64,
    /// Size of the largest I/O in bytes.
    pub largest: u64,
    /// The plan writes.
    pub writes: bool,
    /// Paths that may be overwritten, repeated by the user as confirmation.
    pub destroy: &'a [PathBuf],
    /// Accept files with parts that were never written.
    pub allow_holes: bool,
    /// Minimum number of worker threads.
    pub workers: usize,
    /// Seed of all random choices.
    pub seed: u64,
    /// For a database: how to connect, and the work of its sessions.
    pub sql: Option<SqlRequest<'a>>,
    /// The part of the volume that this rank measures, as its number and the number of parts;
    /// `None` for all of it.
    pub part: Option<(u64, u64)>,
    /// Name of the host, for one of several ranks. No other process attends to a rank, so a scratch
    /// file is made in a thread that can be left behind, and what does not answer is said here.
    pub host_of_rank: Option<&'a str>,
    /// The bench whose scratch file is measured in place of one of its own.
    pub beside: Option<&'a Bench>,
}

/// How to connect to a database, and what to run on it.
#[derive(Clone, Copy)]
pub struct SqlRequest<'a> {
    /// How to connect.
    pub access: &'a Access,
    /// Work of its sessions.
    pub work: SqlWork,
    /// Statement timeout of the server; `None` keeps the server's own setting.
    pub statement_timeout: Option<Nanos>,
    /// Whose counters are sampled.
    pub watch: ServerWatch<'a>,
}

/// The servers whose counters a process samples. A server counts for all its clients, so of several
/// ranks one samples those of all, and compares them with the sum of what all ranks did.
#[derive(Clone, Copy)]
pub enum ServerWatch<'a> {
    /// Its own, which no other rank uses.
    Own,
    /// Those of all ranks.
    All(&'a Access),
    /// None: another rank does.
    Elsewhere,
}

/// The servers whose counters a bench samples.
enum CountedServers {
    /// Those of its engine.
    Own(ServerCounters),
    /// Those of all ranks, by an engine that has no sessions.
    OfAll(ServerCounters),
    /// None.
    None,
}

/// Progress of preparing a bench and of measuring.
pub enum Event<'a> {
    /// A scratch file is being filled.
    Fill {
        /// Bytes written.
        done: Bytes,
        /// Bytes to write in total.
        of: Bytes,
    },
    /// It takes longer than a second to see who has a target open, as with many processes.
    LookForHolders {
        /// The target.
        target: &'a Path,
    },
    /// A point begins.
    Begin {
        /// The point.
        point: &'a Point,
    },
    /// A point is running.
    Live {
        /// The point.
        point: &'a Point,
        /// Its state: of all ranks together, if there are several.
        live: &'a Live<'a>,
        /// Counters of this host since the point began, in order of time.
        samples: &'a [Sample],
        /// The ranks that measure it together; `None` if this process measures alone.
        ranks: Option<&'a RunningRanks>,
    },
    /// What each rank measured of a point was written to the journal; the sum follows.
    Parts(&'a [RankRecord]),
    /// A point was written to the journal.
    End(&'a PointRecord),
    /// Storage stopped answering, or went on.
    Stall(&'a StallEvent),
    /// The next round of a soak is not due yet.
    Waiting {
        /// Time left until it is due.
        left: Nanos,
    },
    /// A soak survived a problem: describes the problem and its consequence.
    Trouble(&'a str),
}

/// Asks the guard, and says what is being done if that takes long.
fn judge(member: &Opened, destroy: &[PathBuf], listen: &mut Listen) -> Result<(), Error> {
    const QUIET: Duration = Duration::from_secs(1);
    let (over, answer) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || over.send(guard::judge(member, destroy)));
        answer.recv_timeout(QUIET).unwrap_or_else(|_| {
            let target = member.path();
            listen(Event::LookForHolders { target });
            answer.recv().expect("the guard answers")
        })
    })
}

/// The ranks that measure a point, while they do.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningRanks {
    /// Number of them.
    pub ranks: usize,
    /// Number of hosts on which they run.
    pub hosts: usize,
    /// The slowest of them; `None` if that is not known yet, if there is only one, or if each has a
    /// load of its own.
    pub slowest: Option<SlowestHost>,
}

impl fmt::Display for RunningRanks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hosts = if self.hosts == 1 { "host" } else { "hosts" };
        if self.ranks > self.hosts {
            write!(f, "{} ranks on ", self.ranks)?;
        }
        write!(f, "{} {hosts}", self.hosts)
    }
}

/// The host with the lowest rate of several that have the same load.
#[derive(Debug, Clone, PartialEq)]
pub struct SlowestHost {
    /// Its name.
    pub name: String,
    /// Its operations per second in the last second.
    pub rate: f64,
}

/// Opens the members of a volume, for writing if the plan writes and the guard permits it. Says what the guard doubts.
fn open_volume(
    request: &BenchRequest,
    members: Vec<Opened>,
    map: VolumeMap,
    (scratch, doubts): (&Option<Arc<Scratch>>, &mut Vec<Finding>),
) -> Result<Volume, Error> {
    let is_direct = !request.engine.buffered;
    let mut volume = match scratch {
        _ if !request.writes => Volume::to_read(&members, map, is_direct)?,
        Some(scratch) => Volume::to_write(&[scratch.permit()?], map, is_direct)?,
        None => {
            // Check again a second later, at the last moment: another program may have begun to
            // use it.
            let permit = |member| guard::permit(member, request.destroy);
            let permits = members
                .into_iter()
                .map(permit)
                .collect::<Result<Vec<_>, _>>()?;
            doubts.extend(permits.iter().filter_map(guard::Permit::doubt).cloned());
            Volume::to_write(&permits, map, is_direct)?
        }
    };
    if request.engine.verify {
        volume.verify(request.grain)?;
    }
    Ok(volume)
}

/// Receives events.
pub type Listen<'a> = dyn FnMut(Event) + 'a;

/// A prepared measurement: engine, target and points.
pub struct Bench {
    pub(super) engine: Arc<dyn Engine>,
    /// Engines of log writes to files of their own.
    logs: Arc<LogEngines>,
    counted: CountedServers,
    observer: Observer,
    workers: usize,
    /// Scratch file; deleted when the bench is dropped.
    scratch: Option<Arc<Scratch>>,
    /// Files and devices named by the user, and the identity of the file each path led to.
    named: Vec<(PathBuf, Identity)>,
    /// The machine.
    pub host: Host,
    /// Facts found about the target.
    pub facts: TargetFacts,
    /// Warnings and notes.
    pub findings: Vec<Finding>,
    /// The plan's points on this volume.
    pub points: Vec<Point>,
    /// What a point may ask for.
    limits: PointLimits,
}

impl Bench {
    /// Prepares a bench: inspects the target, asks the guard, creates a scratch file if requested,
    /// has `plan` make the points for the volume, and opens the engine.
    ///
    /// # Errors
    /// The target is invalid, may not be used in this way, or cannot be opened; or `stop` was set.
    pub fn prepare(
        request: &BenchRequest,
        plan: impl FnOnce(VolumeShape) -> Vec<Point>,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<Self, Error> {
        let (members, layout, scratch) = match request.target {
            Target::Paths { members, layout } => {
                let members = members
                    .iter()
                    .map(|path| Opened::open(path))
                    .collect::<Result<Vec<_>, _>>()?;
                if request.writes {
                    members
                        .iter()
                        .try_for_each(|member| judge(member, request.destroy, listen))?;
                }
                (members, *layout, None)
            }
            Target::Scratch {
                directory,
                bytes,
                keep,
            } => {
                let of_other = request.beside.and_then(|bench| bench.scratch.clone());
                let scratch = if let Some(scratch) = of_other {
                    scratch
                } else if let Some(host) = request.host_of_rank {
                    detached_scratch(directory, (*bytes, *keep), host, stop, listen)?.into()
                } else {
                    let mut filled = |done, of| {
                        listen(Event::Fill { done, of });
                        !stop.load(Ordering::Relaxed)
                    };
                    Scratch::make(directory, *bytes, *keep, &mut filled)?.into()
                };
                (vec![scratch.opened()?], Layout::Concat, Some(scratch))
            }
            Target::Sim(spec) => {
                let engine = Sim::open(spec.clone(), request.seed)?;
                let note = "this target is a model of a device; the figures say nothing about \
                            this machine's storage";
                return Self::without_files(
                    request,
                    Box::new(engine),
                    plan,
                    Finding::note(FindingName::Sim, note),
                );
            }
            Target::Sql(_) => return Self::on_database(request, plan),
            Target::Null { bytes } => {
                let engine = Null::new(Clock::real(), bytes.0);
                let note = "this target does no I/O; the figures are the speed of the tool itself";
                return Self::without_files(
                    request,
                    Box::new(engine),
                    plan,
                    Finding::note(FindingName::Null, note),
                );
            }
        };
        let small = match (request.target, &scratch) {
            (Target::Scratch { bytes: None, .. }, Some(scratch)) => scratch.smaller_than_usual(),
            _ => None,
        };
        let mut bench = Self::on_files(request, members, layout, scratch, plan)?;
        bench.findings.extend(small);
        Ok(bench)
    }

    fn on_files(
        request: &BenchRequest,
        members: Vec<Opened>,
        layout: Layout,
        scratch: Option<Arc<Scratch>>,
        plan: impl FnOnce(VolumeShape) -> Vec<Point>,
    ) -> Result<Self, Error> {
        let buffered = request.engine.buffered;
        let called = scratch.as_deref().map(Scratch::display_name);
        let look_at = preflight::PreflightRequest {
            members: &[],
            called,
            layout,
            grain: request.grain,
            largest: request.largest,
            buffered,
            watch: preflight::WATCH,
        };
        let (members, mut look) = preflight::inspect_members(members, &look_at)?;
        refuse(&look.findings, request.allow_holes)?;
        if request.writes {
            scratch::refuse_filling(&members)?;
        }
        let sizes: Vec<u64> = look
            .target
            .members
            .iter()
            .map(|member| member.bytes.0)
            .collect();
        let whole = VolumeMap::new(&sizes, layout, request.grain)?;
        let map = match request.part {
            Some((index, of)) if scratch.is_none() => whole.part(index, of, request.grain)?,
            _ => whole,
        };
        let member_starts: Vec<u64> = (0..sizes.len()).map(|index| map.start_of(index)).collect();
        let usable = map.usable();
        let points = plan(VolumeShape {
            member_starts: &member_starts,
            usable,
        });
        if !buffered {
            refuse_unaligned(&points, &look.target.members)?;
        }
        let named = if scratch.is_some() {
            Vec::new()
        } else {
            members.iter().map(named).collect()
        };
        let volume = open_volume(request, members, map, (&scratch, &mut look.findings))?;
        refuse_too_many(&points, request, look.host.memory)?;
        let logs = log_files(request.target, &points)?;
        let mut streams = points.iter().flat_map(|point| &point.streams);
        if !logs.is_empty() && streams.all(|stream| stream.log.is_some()) {
            // No memory can answer a commit, however small the file.
            let is_of_memory = |finding: &Finding| finding.is(FindingName::Memory);
            look.findings.retain(|finding| !is_of_memory(finding));
        }
        let lengths = points
            .iter()
            .map(|point| rigel_drive::slot_lengths(point, SLOTS_MAX, request.workers));
        let lengths = lengths
            .max_by_key(|lengths| lengths.iter().map(|l| u64::from(*l)).sum::<u64>())
            .unwrap_or_default();
        let (engine, warning) = engine::choose(&request.engine.name, volume, &lengths)?;
        look.findings.extend(warning);
        let devices = counted_devices(&look.target.members);
        if let Some(scratch) = &scratch {
            look.target.name = scratch.display_name().into();
            look.target.members[0].path = scratch.display_name().into();
        }
        Ok(Self {
            engine: engine.into(),
            logs: Arc::new(logs),
            counted: CountedServers::None,
            observer: Observer::new(devices),
            workers: request.workers,
            scratch,
            named,
            host: look.host,
            facts: look.target,
            findings: look.findings,
            limits: PointLimits::of(&points, usable, request.writes, false),
            points,
        })
    }

    fn on_database(
        request: &BenchRequest,
        plan: impl FnOnce(VolumeShape) -> Vec<Point>,
    ) -> Result<Self, Error> {
        let SqlRequest {
            access,
            work,
            statement_timeout,
            watch,
        } = request.sql.ok_or_else(|| {
            usage!(
                "'{target}' is a database, which this verb cannot measure",
                "use rigel sql run, or rigel curve",
                target = request.target
            )
        })?;
        let (engine, server, findings) =
            rigel_database::open(access.clone(), work, statement_timeout)?;
        let engine: Arc<dyn Engine> = engine.into();
        let counted = match watch {
            ServerWatch::Own => ServerCounters::of(&engine).map(CountedServers::Own),
            ServerWatch::All(all) => {
                let of_all = rigel_database::open(all.clone(), work, None)?.0.into();
                ServerCounters::of(&of_all).map(CountedServers::OfAll)
            }
            ServerWatch::Elsewhere => None,
        };
        // A thread for each CPU: it has one session, or several whose answers it waits for together.
        let cpus = std::thread::available_parallelism().map_or(1, NonZero::get);
        let usable = engine.usable();
        let points = plan(VolumeShape {
            member_starts: &[0],
            usable,
        });
        let data = server.settings.get("data_directory").map(PathBuf::from);
        // Observe the disks of the data directory if the server is on this machine.
        let devices = data
            .filter(|_| server.local)
            .map_or_else(Vec::new, |path| observe::devices_of(&path));
        Ok(Self {
            limits: PointLimits::of(&points, usable, request.writes, true),
            points,
            engine,
            logs: Arc::default(),
            counted: counted.unwrap_or(CountedServers::None),
            observer: Observer::new(devices),
            workers: request.workers.max(cpus),
            scratch: None,
            named: Vec::new(),
            host: observe::host(),
            facts: TargetFacts {
                name: request.target.to_string(),
                usable: Bytes(usable),
                members: Vec::new(),
                server: Some(Box::new(server)),
            },
            findings,
        })
    }

    fn without_files(
        request: &BenchRequest,
        engine: Box<dyn Engine>,
        plan: impl FnOnce(VolumeShape) -> Vec<Point>,
        note: Finding,
    ) -> Result<Self, Error> {
        let usable = VolumeMap::new(&[engine.usable()], Layout::Concat, request.grain)?.usable();
        let points = plan(VolumeShape {
            member_starts: &[0],
            usable,
        });
        Ok(Self {
            limits: PointLimits::of(&points, usable, request.writes, false),
            points,
            engine: engine.into(),
            logs: Arc::default(),
            counted: CountedServers::None,
            observer: Observer::new(Vec::<String>::new()),
            workers: request.workers,
            scratch: None,
            named: Vec::new(),
            host: observe::host(),
            facts: TargetFacts {
                server: None,
                name: request.target.to_string(),
                usable: Bytes(usable),
                members: Vec::new(),
            },
            findings: vec![note],
        })
    }

    /// Describes a named target whose path now leads to another file or to nothing; `None` if all
    /// are still there.
    pub(super) fn lost(&self) -> Option<String> {
        self.named
            .iter()
            .find_map(|(path, identity)| match Identity::at(path) {
                Some(found) if found == *identity => None,
                Some(_) => Some(format!(
                    "'{}' is no longer the file or device that was measured",
                    path.display()
                )),
                None => Some(format!("'{}' no longer exists", path.display())),
            })
    }

    /// Name of the engine in use, also where it was chosen automatically.
    pub fn engine_name(&self) -> &'static str {
        self.engine.name()
    }

    /// Features that the engine uses on this machine.
    pub fn engine_about(&self) -> String {
        self.engine.about()
    }

    /// Refuses a point that asks for more than this bench was prepared for.
    pub(super) fn check(&self, point: &Point) -> Result<(), Error> {
        point.check(&self.limits)
    }

    pub(super) fn drive(
        &self,
        point: &Point,
        stop: &AtomicBool,
        cue: Option<&Cue>,
        watch: &mut rigel_drive::Watch,
    ) -> Result<PointRecord, Error> {
        self.check(point)?;
        // The measured class comes first. Other streams need not be precise. Of several ranks, none
        // decides for itself.
        let (is_alone, until) = (cue.is_none(), point.until);
        let enough = move |classes: &[Vec<Window>]| {
            is_alone
                && classes
                    .first()
                    .is_some_and(|windows| analyse::is_enough(until, windows))
        };
        let terms = DetachedTerms {
            workers: self.workers,
            stop,
            enough: Box::new(enough),
            cue: cue.cloned(),
        };
        // A model of a device has no filesystem: its log writes all cost the same.
        let engines = (&self.engine, &self.logs);
        let driven = rigel_drive::detached(engines, point, terms, watch);
        if !bounded::left_behind().is_empty() {
            // Closing the scratch file, or that of a log, may block as well.
            std::mem::forget((self.scratch.clone(), self.logs.clone()));
            let is_broken = |record: &PointRecord| matches!(record.end, End::Broken(_));
            if driven.as_ref().is_ok_and(is_broken) {
                // Another point would wait as long.
                stop.store(true, Ordering::Relaxed);
            }
        }
        driven
    }

    /// Drives a point without a record, before another one.
    pub(super) fn warm(
        &self,
        point: &Point,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<(), Error> {
        let mut stall = NamedStall::of_point(point.coordinates);
        let mut watch = |live: &Live| {
            if let Some(event) = stall.look(live.stalled) {
                listen(Event::Stall(&event));
            }
        };
        let driven = self.drive(point, stop, None, &mut watch);
        if let Some(event) = stall.end() {
            listen(Event::Stall(&event));
        }
        driven.map(drop)
    }

    pub(super) fn measure_point(
        &self,
        point: &Point,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<PointRecord, Error> {
        self.measure_on_cue(point, stop, None, listen)
    }

    /// The same for a point that several ranks measure together.
    pub(super) fn measure_on_cue(
        &self,
        point: &Point,
        stop: &AtomicBool,
        cue: Option<&Cue>,
        listen: &mut Listen,
    ) -> Result<PointRecord, Error> {
        let mut samples = PointSamples::begin(&self.observer, self.own_servers());
        // One sample of counters per window of operations: the windows of a soak are wide.
        let every = point.window.max(SAMPLE);
        let mut due = every;
        let mut is_measuring = false;
        let mut stall = NamedStall::of_point(point.coordinates);
        let mut watch = |live: &Live| {
            if let Some(event) = stall.look(live.stalled) {
                listen(Event::Stall(&event));
            }
            samples.look(live.elapsed);
            if live.elapsed >= due {
                due = live.elapsed.plus(every);
                samples.take(live.elapsed);
            } else if !samples.has_server() && !is_measuring && live.measuring_since.is_some() {
                // From here on the kernel's counters are those of measured operations.
                samples.take(live.elapsed);
            }
            is_measuring = live.measuring_since.is_some();
            listen(Event::Live {
                point,
                live,
                samples: samples.taken(),
                ranks: None,
            });
        };
        let driven = self.drive(point, stop, cue, &mut watch);
        if let Some(event) = stall.end() {
            listen(Event::Stall(&event));
        }
        let is_broken = !matches!(&driven, Ok(record) if !matches!(record.end, End::Broken(_)));
        let end = driven
            .as_ref()
            .map_or(Nanos(0), |record| record.warm_up.plus(record.measured));
        let samples = samples.end(end, is_broken, stop);
        let mut record = driven?;
        // The model's time is not the host's, and no figure depends on what the host does
        // meanwhile.
        record.samples = if self.engine.clock().is_virtual() {
            Vec::new()
        } else {
            samples
        };
        Ok(record)
    }
}

impl Bench {
    fn own_servers(&self) -> Option<&ServerCounters> {
        match &self.counted {
            CountedServers::Own(servers) => Some(servers),
            CountedServers::OfAll(_) | CountedServers::None => None,
        }
    }

    /// The counters of the servers of all ranks, at the rank that reads them.
    pub(super) fn servers_of_all(&self) -> Option<&ServerCounters> {
        match &self.counted {
            CountedServers::OfAll(servers) => Some(servers),
            CountedServers::Own(_) | CountedServers::None => None,
        }
    }
}

/// Makes a scratch file in a thread that is left behind if the storage hangs and the run is stopped.
/// Reports a stall if nothing is written for ten seconds.
fn detached_scratch(
    directory: &Path,
    (bytes, keep): (Option<Bytes>, bool),
    host: &str,
    stop: &AtomicBool,
    listen: &mut Listen,
) -> Result<Scratch, Error> {
    let what = format!("making a scratch file in '{}'", directory.display());
    let directory = directory.to_path_buf();
    let own_stop = Arc::new(AtomicBool::new(false));
    let is_stopped = Arc::clone(&own_stop);
    let (filled, progress) = mpsc::channel();
    let make = move || {
        Scratch::make(&directory, bytes, keep, &mut |done, of| {
            let _ = filled.send((done, of));
            !is_stopped.load(Ordering::Relaxed)
        })
    };
    let mut detector = StallDetector::new(clock::monotonic(), bounded::LOOK);
    let mut stall = NamedStall::of(&what, Some(host));
    let mut written = 0;
    let scratch = bounded::call_while(&what, bounded::NEVER, make, &mut || {
        own_stop.store(stop.load(Ordering::Relaxed), Ordering::Relaxed);
        for (done, of) in progress.try_iter() {
            written = done.0;
            listen(Event::Fill { done, of });
        }
        let look = detector.look(clock::monotonic(), written, || (1, None));
        if let Some(event) = stall.look(look.stalled) {
            listen(Event::Stall(&event));
        }
    })??;
    if let Some(event) = stall.look(None) {
        listen(Event::Stall(&event));
    }
    Ok(scratch)
}

/// Makes the files of all logs that have their own.
fn log_files(target: &Target, points: &[Point]) -> Result<LogEngines, Error> {
    // The most writers of each in one point.
    let mut logs: BTreeMap<LogKind, u64> = BTreeMap::new();
    for point in points {
        let mut writers: BTreeMap<LogKind, u64> = BTreeMap::new();
        for stream in &point.streams {
            if let Some(log) = stream.log {
                *writers.entry(log).or_default() += u64::from(stream.load.slots());
            }
        }
        for (log, writers) in writers {
            let most = logs.entry(log).or_default();
            *most = writers.max(*most);
        }
    }
    let Some((first, _)) = logs.first_key_value() else {
        return Ok(LogEngines::new());
    };
    let Target::Scratch { directory, .. } = target else {
        return Err(usage!(
            "log writes to {about} need a directory, and '{target}' is none",
            "give a directory on the storage, where the file of the log is made",
            about = first.about()
        ));
    };
    let made = LogFile::all(directory, &logs)?.into_iter();
    Ok(made
        .map(|(log, file)| (log, Arc::new(file) as Arc<dyn Engine>))
        .collect())
}

/// Path and identity of a target.
fn named(target: &Opened) -> (PathBuf, Identity) {
    (target.path().to_path_buf(), target.identity())
}

/// Refuses points that need more threads or buffers than this machine has. They would end the
/// program instead of the request.
fn refuse_too_many(points: &[Point], request: &BenchRequest, memory: Bytes) -> Result<(), Error> {
    let engine = engine::info(&request.engine.name);
    for point in points {
        let slots = |stream: &Stream| u64::from(stream.load.slots());
        let threads: u64 = point.streams.iter().map(slots).sum();
        if engine.thread_per_io && threads > THREADS_MAX {
            return Err(usage!(
                "{coordinates} needs {threads} threads of {name}; the maximum is {THREADS_MAX}",
                "request fewer outstanding I/Os, or use --engine uring",
                coordinates = point.coordinates,
                name = engine.name
            ));
        }
        // A session that writes has a second buffer for each slot.
        let copies = if request.writes { 2 } else { 1 };
        let buffers: u64 = point
            .streams
            .iter()
            .map(|stream| slots(stream) * u64::from(stream.length) * copies)
            .sum();
        if buffers > memory.0 / 2 {
            return Err(usage!(
                "{coordinates} needs {buffers} of buffers, more than half of the memory",
                "request fewer outstanding I/Os, or smaller ones",
                coordinates = point.coordinates,
                buffers = Bytes(buffers)
            ));
        }
    }
    Ok(())
}

/// Refuses direct I/O of lengths that a member's device does not support: every such I/O would
/// fail.
fn refuse_unaligned(points: &[Point], members: &[VolumeMember]) -> Result<(), Error> {
    let streams = points.iter().flat_map(|point| &point.streams);
    for stream in streams.filter(|stream| stream.log.is_none()) {
        if let Some(member) = members
            .iter()
            .find(|member| !stream.length.is_multiple_of(member.alignment))
        {
            let (length, alignment) = (Bytes(stream.length.into()), Bytes(member.alignment.into()));
            return Err(usage!(
                "{name} I/Os of {length} are not a multiple of {alignment}, the block size of \
                 '{path}'",
                "use a multiple of it, or the page cache with --buffered",
                name = stream.name,
                path = member.path.display()
            ));
        }
    }
    Ok(())
}

/// Returns the first refusal among `findings` as an error. Ignores refusals because of holes if
/// holes are allowed.
fn refuse(findings: &[Finding], allow_holes: bool) -> Result<(), Error> {
    let refusals = findings
        .iter()
        .filter(|finding| finding.severity == Severity::Refusal);
    match refusals
        .into_iter()
        .find(|finding| !(allow_holes && finding.is(FindingName::Holes)))
    {
        Some(finding) => Err(Error::usage(finding.what.clone(), finding.hint.clone())),
        None => Ok(()),
    }
}

/// Names of the disks whose counters are compared with ours: none unless every member has one.
fn counted_devices(members: &[VolumeMember]) -> Vec<String> {
    let first = |member: &VolumeMember| member.devices.first().map(|device| device.name.clone());
    let devices: Option<Vec<String>> = members.iter().map(first).collect();
    let mut devices = devices.unwrap_or_default();
    devices.dedup();
    devices
}
