//! This process among others: rank, size, barrier, exchange, abort.
//!
//! Input: a channel to a process manager that started this process several times. Output:
//! [`Ranks`], by which rank 0 and the others exchange messages and know of each other's end. The
//! process manager is asked only at the beginning and at the end (`manager`): by its own protocol
//! (`pmi`), or through a library of MPI (`library`). In between, every rank
//! has a connection to rank 0 (`star`), because a process manager cannot tell that a rank hangs,
//! and takes a hundred times as long.
//!
//! Every rank sends a heartbeat each second. Rank 0 gives up a rank that it has not heard for ten
//! seconds, or as long as the user says, and others give up rank 0 three seconds earlier. Who gives
//! up, or whose launcher is gone, sets the stop flag of its run. This module knows nothing of what is
//! measured.

mod clocks;
mod descriptors;
mod frame;
#[cfg(feature = "mpi")]
mod library;
mod manager;
mod place;
pub mod pmi;
mod star;

pub use clocks::ClockOffset;
use frame::FRAME_MAX;
#[cfg(feature = "mpi")]
pub use library::MpiLibrary;
pub use manager::{BarrierTimes, ProcessManager};
pub use place::{Channel, Environment, LaunchedAs};

use clocks::Pong;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use frame::{FrameKind, Seal};
use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos, failed, listed};
use ring::digest;
use rustix::process::{Pid, Signal, getpid, getppid, kill_process};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use star::{Connection, Invitation, Listening};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

/// Barriers that only bound the clocks.
const BOUNDING: usize = 3;
/// Time from one heartbeat to the next.
const BEAT: Nanos = Nanos::from_secs(1);
/// Rank 0 gives up a rank that is silent for this long, unless the user says longer.
pub const SILENCE_LEAST: Nanos = Nanos::from_secs(10);
/// Another rank gives up rank 0 so much earlier, and stops: a rank whose link is cut has stopped before
/// rank 0 says that it is lost: see `limit_of`.
const EARLIER: Nanos = Nanos::from_secs(3);
/// How often the stop flag and the launcher are looked at.
const LOOK: Nanos = Nanos::from_millis(100);
/// A rank that is cut off from rank 0 ends itself after this time, whatever its I/O does.
const GRACE: Nanos = Nanos::from_secs(5);
/// The same for rank 0, which writes first what it has.
const GRACE_ROOT: Nanos = Nanos::from_secs(60);
/// Time for the last barrier, after rank 0 has announced the end of the run.
const LAST: Nanos = Nanos::from_secs(30);
/// Messages from this length on are deflated.
const DEFLATE_FROM: usize = 4096;
/// Number of messages that wait to be received. Who reads a connection waits with the next one.
const INBOX: usize = 64;

/// How to join the others.
#[derive(Debug, Clone)]
pub struct Joining {
    /// Time in which all ranks must have started, and then reach rank 0.
    pub within: Nanos,
    /// Time without a heartbeat after which a rank is lost; at least [`SILENCE_LEAST`], and the same
    /// at every rank.
    pub silence: Nanos,
    /// Names and addresses of this host, best first, for the case that it is rank 0's.
    pub addresses: Vec<String>,
    /// The only address to listen on and to be reached at, if the user gave one.
    pub address: Option<String>,
    /// First and last port to listen on; any free one if the user gave none.
    pub ports: Option<(u16, u16)>,
    /// Ends the process at once if the run is over and its I/O hangs: [`kill_itself`]; `None` if it
    /// shall wait.
    pub end_itself: Option<fn()>,
}

/// Ends this process at once, whatever its threads do.
pub fn kill_itself() {
    let _ = kill_process(getpid(), Signal::KILL);
}

/// Who a rank is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankMember {
    /// Name of its host.
    pub host: String,
    /// Identifies the running kernel: ranks of one host have the same.
    pub boot_id: String,
    /// Version of the program.
    pub version: String,
    /// Digest of its file, which tells two builds of one version apart; empty if it cannot be read.
    pub build: String,
    /// Digest of the command line and the working directory.
    pub arguments: String,
}

/// Digest of a program's file, which tells builds apart.
///
/// # Errors
/// The file cannot be read.
pub fn digest_of_program(path: &Path) -> std::io::Result<String> {
    let mut file = std::fs::File::open(path)?;
    let mut digest = digest::Context::new(&digest::SHA256);
    let mut piece = vec![0; 1 << 20];
    loop {
        match std::io::Read::read(&mut file, &mut piece)? {
            0 => return Ok(hexadecimal(&digest.finish().as_ref()[..8])),
            count => digest.update(&piece[..count]),
        }
    }
}

impl RankMember {
    /// A rank of this version of the program.
    pub fn of_this_program(host: String, boot_id: String) -> Self {
        Self {
            host,
            boot_id,
            version: env!("CARGO_PKG_VERSION").into(),
            // However its file is called now.
            build: digest_of_program(Path::new("/proc/self/exe")).unwrap_or_default(),
            arguments: String::new(),
        }
    }

    /// Digest of a command line, without the program, and the directory that it is given in.
    pub fn digest_of(arguments: impl Iterator<Item = OsString>, directory: &Path) -> String {
        let mut digest = digest::Context::new(&digest::SHA256);
        for argument in arguments {
            digest.update(argument.as_bytes());
            digest.update(&[0]);
        }
        digest.update(directory.as_os_str().as_bytes());
        hexadecimal(&digest.finish().as_ref()[..8])
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
    digits.collect::<Vec<_>>().concat()
}

/// A rank that was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// Its number.
    pub rank: usize,
    /// How it was noticed.
    pub how: String,
}

/// A message, or what came instead of one.
enum Arrival {
    Data(Vec<u8>),
    Fail(Failure),
    End,
    Lost,
}

/// Why a rank cannot go on.
#[derive(Serialize, Deserialize)]
struct Failure {
    status: u8,
    what: String,
    hint: String,
}

/// One connection.
struct Link {
    /// The rank at its other end.
    peer: usize,
    stream: Arc<TcpStream>,
    /// Of what is written to it.
    seal: Mutex<Seal>,
}

/// What the threads of a process share.
struct SharedLinks {
    rank: usize,
    /// Time without a heartbeat after which this rank gives up another.
    limit: Nanos,
    clock: Clock,
    links: Vec<Link>,
    /// The run's stop flag.
    stop: Arc<AtomicBool>,
    /// The ranks that were lost, as they were noticed together.
    lost: OnceLock<Vec<Loss>>,
    /// The status that rank 0 sent at the end.
    ended: OnceLock<u8>,
    /// True once connections may close without being a loss.
    over: AtomicBool,
    /// True once this process has nothing left to do but to say goodbye.
    has_finished: AtomicBool,
}

/// This process among others.
pub struct Ranks {
    size: usize,
    /// The process manager, once all have joined.
    manager: Option<Mutex<Box<dyn ProcessManager>>>,
    shared: Arc<SharedLinks>,
    inbox: Mutex<Receiver<(usize, Arrival)>>,
    pongs: Mutex<Receiver<Pong>>,
    members: Vec<RankMember>,
    /// By rank: the barriers at the beginning.
    barriers: Vec<Vec<BarrierTimes>>,
}

impl Ranks {
    /// Joins the other ranks. `stop` is the run's stop flag: if one rank's is set, all are.
    ///
    /// # Errors
    /// Not all ranks were started, or rank 0 cannot be reached. The process manager is returned with
    /// the error, since somebody has to end those that were started.
    pub fn join(
        mut manager: Box<dyn ProcessManager>,
        joining: &Joining,
        member: &RankMember,
        stop: Arc<AtomicBool>,
    ) -> Result<Self, (Error, Box<dyn ProcessManager>)> {
        let clock = Clock::real();
        let (barriers, streams) = match Self::meet(&mut *manager, joining, &clock) {
            Ok(met) => met,
            Err(error) => return Err((error, manager)),
        };
        let place = (manager.rank(), manager.size());
        let limits = (joining.silence, joining.end_itself);
        let connected = Self::connected(place, clock, streams, stop, limits);
        let joined = connected.and_then(|mut ranks| {
            let of_all = ranks.exchange(&(member.clone(), barriers), joining.within)?;
            (ranks.members, ranks.barriers) = of_all.into_iter().unzip();
            Ok(ranks)
        });
        match joined {
            Ok(mut ranks) => {
                ranks.manager = Some(Mutex::new(manager));
                Ok(ranks)
            }
            Err(error) => Err((error, manager)),
        }
    }

    /// Waits for all ranks, and connects them with rank 0.
    fn meet(
        manager: &mut dyn ProcessManager,
        joining: &Joining,
        clock: &Clock,
    ) -> Result<(Vec<BarrierTimes>, Vec<Connection>), Error> {
        let (rank, size) = (manager.rank(), manager.size());
        let within = joining.within;
        let mut barriers = vec![manager.barrier(clock, within)?];
        let streams = if rank == 0 {
            descriptors::raise_for(size)?;
            let listening = Listening::listen(joining.address.as_deref(), joining.ports)?;
            let text = listening
                .invitation(joining.reachable())?
                .to_text(manager.room())?;
            barriers.push(manager.announce(&text, clock, within)?);
            listening.welcome(size, clock, within)?
        } else {
            let (text, times) = manager.announced(clock, within)?;
            barriers.push(times);
            vec![star::join(
                &Invitation::of_text(&text)?,
                rank,
                clock,
                within,
            )?]
        };
        // Each rank late once in turn would make the bounds narrow; three barriers check enough.
        for _ in 0..BOUNDING {
            barriers.push(manager.barrier(clock, within)?);
        }
        Ok((barriers, streams))
    }

    /// Starts the threads of the connections.
    fn connected(
        (rank, size): (usize, usize),
        clock: Clock,
        connections: Vec<Connection>,
        stop: Arc<AtomicBool>,
        (silence, end_itself): (Nanos, Option<fn()>),
    ) -> Result<Self, Error> {
        let limit = limit_of(rank, silence);
        let failed = |error| failed!("a connection to a rank failed: {error}", "");
        let (arrivals, inbox) = mpsc::sync_channel(INBOX);
        let (ponged, pongs) = mpsc::sync_channel(INBOX);
        let mut links = Vec::new();
        let mut readers = Vec::new();
        for (peer, connection) in (usize::from(rank == 0)..).zip(connections) {
            let stream = Arc::new(connection.stream);
            // Silence is noticed by this timeout, since a beat comes every second.
            let silent = Some(Duration::from_nanos(limit.0));
            stream.set_read_timeout(silent).map_err(failed)?;
            stream.set_write_timeout(silent).map_err(failed)?;
            readers.push((peer, Arc::clone(&stream), connection.theirs));
            links.push(Link {
                peer,
                stream,
                seal: Mutex::new(connection.ours),
            });
        }
        let shared = Arc::new(SharedLinks {
            rank,
            limit,
            clock,
            links,
            stop,
            lost: OnceLock::new(),
            ended: OnceLock::new(),
            over: AtomicBool::new(false),
            has_finished: AtomicBool::new(false),
        });
        let start = |name: String, run: Box<dyn FnOnce() + Send>| {
            let thread = std::thread::Builder::new().name(name).spawn(run);
            thread.map(drop).map_err(failed)
        };
        for (peer, stream, seal) in readers {
            let (shared, arrivals, ponged) =
                (Arc::clone(&shared), arrivals.clone(), ponged.clone());
            let read = move || shared.read(peer, (&stream, seal), &arrivals, &ponged);
            start(format!("rank {peer}"), Box::new(read))?;
        }
        let of_beats = Arc::clone(&shared);
        let beat = move || of_beats.beat(&arrivals, end_itself);
        start("beats".into(), Box::new(beat))?;
        Ok(Self {
            size,
            manager: None,
            shared,
            inbox: Mutex::new(inbox),
            pongs: Mutex::new(pongs),
            members: Vec::new(),
            barriers: Vec::new(),
        })
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.shared.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// True for rank 0, which plans, judges and writes.
    pub fn is_root(&self) -> bool {
        self.shared.rank == 0
    }

    /// The address of the rank at the other end of the first connection: for all but rank 0, that of
    /// rank 0.
    pub fn peer_address(&self) -> Option<IpAddr> {
        let stream = &self.shared.links.first()?.stream;
        stream.peer_addr().ok().map(|address| address.ip())
    }

    /// Who the ranks are, by rank.
    pub fn members(&self) -> &[RankMember] {
        &self.members
    }

    /// The clock of this rank; other ranks' offsets are between such clocks.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The ranks that were lost. The run ends with the first loss, so later ones are not known.
    pub fn lost(&self) -> &[Loss] {
        self.shared.lost.get().map_or(&[], Vec::as_slice)
    }

    /// Gives up ranks that live and did not answer in `within`, as if they were lost. Returns the
    /// error for it.
    pub fn give_up(&self, ranks: &[usize], within: Nanos) -> Error {
        let how = format!(
            "it did not answer in {}: does its I/O hang?",
            within.exact()
        );
        let loss = |rank: &usize| Loss {
            rank: *rank,
            how: how.clone(),
        };
        let _ = self.shared.lost.set(ranks.iter().map(loss).collect());
        self.shared.stop.store(true, Ordering::Relaxed);
        self.loss_error()
    }

    /// The status with which rank 0 ended the run, once it has.
    pub fn ended(&self) -> Option<u8> {
        self.shared.ended.get().copied()
    }

    /// Rank and host in words: `rank 1 on h2`.
    pub fn named(&self, rank: usize) -> String {
        match self.members.get(rank) {
            Some(member) => format!("rank {rank} on {}", member.host),
            None => format!("rank {rank}"),
        }
    }

    /// Number of different kernels.
    pub fn hosts(&self) -> usize {
        self.hosts_of(&(0..self.size).collect::<Vec<_>>())
    }

    /// Number of different kernels on which these ranks run.
    pub fn hosts_of(&self, ranks: &[usize]) -> usize {
        let members = ranks.iter().filter_map(|rank| self.members.get(*rank));
        let mut boots: Vec<&str> = members.map(|one| &*one.boot_id).collect();
        boots.sort_unstable();
        boots.dedup();
        boots.len()
    }

    /// Sends a message to another rank. Ranks other than 0 can only send to rank 0.
    ///
    /// # Errors
    /// The connection broke, or the message is too long.
    pub fn send(&self, to: usize, message: &impl Serialize) -> Result<(), Error> {
        let (kind, bytes) = packed(message)?;
        self.shared.send(to, kind, &bytes)
    }

    /// Sends a message to all ranks that rank 0 is connected to.
    pub fn send_all(&self, message: &impl Serialize) -> Result<(), Error> {
        let (kind, bytes) = packed(message)?;
        let mut links = self.shared.links.iter();
        links.try_for_each(|link| self.shared.send(link.peer, kind, &bytes))
    }

    /// The next message of any rank, until `due` on this rank's clock; `None` if none came. Rank 0
    /// keeps no order between ranks.
    ///
    /// # Errors
    /// A rank was lost, or cannot go on; or rank 0 has ended the run.
    pub fn receive<Message: DeserializeOwned>(
        &self,
        due: Nanos,
    ) -> Result<Option<(usize, Message)>, Error> {
        let left = due.since(self.shared.clock.now());
        let arrived = lock(&self.inbox).recv_timeout(Duration::from_nanos(left.0));
        match arrived {
            Err(mpsc::RecvTimeoutError::Timeout) if self.lost().is_empty() => Ok(None),
            Err(_) | Ok((_, Arrival::Lost)) => Err(self.loss_error()),
            Ok((from, Arrival::Data(bytes))) => {
                let read = serde_json::from_slice(&bytes);
                let message = read.map_err(|error| self.unreadable(from, &error.to_string()))?;
                Ok(Some((from, message)))
            }
            Ok((from, Arrival::Fail(failure))) => {
                let what = format!("{}: {}", self.named(from), failure.what);
                Err(match failure.status {
                    2 => Error::usage(what, failure.hint),
                    _ => Error::failed(what, failure.hint),
                })
            }
            Ok((_, Arrival::End)) => Err(failed!("rank 0 has ended the run", "")),
        }
    }

    /// The error for a message that does not say what it should.
    pub fn unreadable(&self, from: usize, why: &str) -> Error {
        failed!(
            "{from} sent what cannot be read: {why}",
            "is it the same version of rigel?",
            from = self.named(from)
        )
    }

    /// The error for ranks that were lost.
    pub fn loss_error(&self) -> Error {
        let lost = self.lost();
        let how = lost
            .first()
            .map_or("its connection is gone", |loss| &loss.how);
        let ranks: Vec<usize> = lost.iter().map(|loss| loss.rank).collect();
        let (ranks, verb) = match ranks.as_slice() {
            [] => (&[0][..], "was"),
            [_] => (&ranks[..], "was"),
            _ => (&ranks[..], "were"),
        };
        failed!(
            "{ranks} {verb} lost: {how}",
            "what is complete is in the journal; resume it with --resume and as many ranks",
            ranks = self.all_named(ranks)
        )
    }

    /// Every rank gives a value and receives those of all, by rank. Also a barrier.
    ///
    /// # Errors
    /// As [`Ranks::receive`], or a rank did not answer in `within`.
    pub fn exchange<Value: Serialize + DeserializeOwned + Clone>(
        &self,
        value: &Value,
        within: Nanos,
    ) -> Result<Vec<Value>, Error> {
        if self.is_root() {
            let values = self.gather(value, within)?;
            self.send_all(&values)?;
            Ok(values)
        } else {
            self.send(0, value)?;
            let values: Vec<Value> = self.from_root(within)?;
            if values.len() == self.size {
                Ok(values)
            } else {
                Err(self.unreadable(0, &format!("{} values of {}", values.len(), self.size)))
            }
        }
    }

    /// Rank 0's side of an exchange whose result it keeps for itself: the values of all, by rank.
    pub fn gather<Value: DeserializeOwned + Clone>(
        &self,
        own: &Value,
        within: Nanos,
    ) -> Result<Vec<Value>, Error> {
        let due = self.shared.clock.now().plus(within);
        let mut values: Vec<Option<Value>> = vec![None; self.size];
        values[0] = Some(own.clone());
        while values.iter().any(Option::is_none) {
            let Some((from, value)) = self.receive(due)? else {
                let missing = (0..self.size).filter(|rank| values[*rank].is_none());
                return Err(self.no_answer(&missing.collect::<Vec<_>>(), within));
            };
            values[from] = Some(value);
        }
        Ok(values.into_iter().flatten().collect())
    }

    /// The next message of rank 0.
    pub fn from_root<Message: DeserializeOwned>(&self, within: Nanos) -> Result<Message, Error> {
        let due = self.shared.clock.now().plus(within);
        let (_, message) = self
            .receive(due)?
            .ok_or_else(|| self.no_answer(&[0], within))?;
        Ok(message)
    }

    /// Waits until all ranks have come here.
    pub fn barrier(&self, within: Nanos) -> Result<(), Error> {
        self.exchange(&(), within).map(drop)
    }

    /// The error for ranks that live and do not answer.
    fn no_answer(&self, ranks: &[usize], within: Nanos) -> Error {
        let named = self.all_named(ranks);
        failed!(
            "{named} did not answer in {within}",
            "it is alive: does its I/O hang? See its kernel's log",
            within = within.exact()
        )
    }

    /// These ranks in words: `rank 1 on h2 and rank 2 on h3`.
    fn all_named(&self, ranks: &[usize]) -> String {
        let names: Vec<String> = ranks.iter().map(|rank| self.named(*rank)).collect();
        listed(&names)
    }

    /// Tells rank 0 that this rank cannot go on, and why. Waits for the end of the run. Does
    /// nothing on rank 0, or if rank 0 is lost or has ended the run.
    pub fn fail(&self, error: &Error) {
        if self.is_root() || self.ended().is_some() || !self.lost().is_empty() {
            return;
        }
        let (what, hint) = match error {
            Error::Usage { what, hint } | Error::Failed { what, hint } => (what, hint),
        };
        let failure = Failure {
            status: error.exit_status(),
            what: what.clone(),
            hint: hint.clone(),
        };
        let text = serde_json::to_vec(&failure).expect("text and a number");
        let _ = self.shared.send(0, FrameKind::Fail, &text);
    }

    /// Ends the run with the status of rank 0: rank 0 sends its own, the others wait for it. Then
    /// all say goodbye to the process manager together. Returns the status of all.
    ///
    /// # Errors
    /// A rank was lost before.
    pub fn end(&self, status: u8) -> Result<u8, Error> {
        let status = if self.is_root() {
            self.shared.over.store(true, Ordering::Release);
            for link in &self.shared.links {
                let _ = self.shared.send(link.peer, FrameKind::End, &[status]);
            }
            status
        } else {
            self.await_end()?
        };
        self.shared.has_finished.store(true, Ordering::Release);
        if let Some(manager) = &self.manager {
            let mut manager = lock(manager);
            let all = manager.barrier(&self.shared.clock, LAST);
            all.map_err(|error| {
                let what = format!("not all ranks ended: {}", error.what());
                Error::failed(what, "does the I/O of one hang? See its kernel's log")
            })?;
            manager.finalize()?;
        }
        Ok(status)
    }

    /// Waits for the end that rank 0 sends, however long its report takes.
    fn await_end(&self) -> Result<u8, Error> {
        loop {
            if let Some(status) = self.ended() {
                return Ok(status);
            }
            if !self.lost().is_empty() {
                return Err(self.loss_error());
            }
            let due = self.shared.clock.now().plus(BEAT);
            // Messages of a run that ends early are no longer needed.
            let _ = self.receive::<serde::de::IgnoredAny>(due);
        }
    }

    /// Asks the process manager to end all ranks, this one included. Does not wait for it.
    pub fn abort(&self, status: u8) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(manager) = &self.manager {
            let _ = lock(manager).abort(status);
        }
    }

    /// The clocks of all ranks against that of rank 0, by rank; only rank 0 asks.
    ///
    /// # Errors
    /// A rank was lost, or did not answer.
    pub fn clock_offsets(&self, exchanges: usize) -> Result<Vec<ClockOffset>, Error> {
        let (pongs, limit) = (lock(&self.pongs), self.shared.limit);
        while pongs.try_recv().is_ok() {}
        let mut offsets = vec![ClockOffset::default()];
        for link in &self.shared.links {
            let mut best = ClockOffset::UNKNOWN;
            for _ in 0..exchanges {
                let sent = self.shared.clock.now();
                self.shared
                    .send(link.peer, FrameKind::Ping, &sent.0.to_be_bytes())?;
                let pong = loop {
                    // A rank that is gone is noticed first where its connection is read.
                    match pongs.recv_timeout(Duration::from_nanos(limit.plus(GRACE).0)) {
                        // An answer to an earlier question may come late.
                        Ok(pong) if pong.peer == link.peer && pong.sent == sent => break pong,
                        Ok(_) => {}
                        Err(_) if self.lost().is_empty() => {
                            return Err(self.no_answer(&[link.peer], limit));
                        }
                        Err(_) => return Err(self.loss_error()),
                    }
                };
                best = best.better_of(ClockOffset::of(&pong));
            }
            let bounds = clocks::bounds(&self.barriers[0], &self.barriers[link.peer]);
            best.agreed = best.agrees_with(bounds);
            offsets.push(best);
        }
        Ok(offsets)
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        for link in &self.shared.links {
            // Wakes the thread that reads from it.
            let _ = link.stream.shutdown(Shutdown::Both);
        }
    }
}

impl Joining {
    /// The names at which rank 0 is reached: the user's, or all of this host but those that only
    /// this host reaches.
    fn reachable(&self) -> Vec<String> {
        if let Some(address) = &self.address {
            return vec![address.clone()];
        }
        let others: Vec<String> = self
            .addresses
            .iter()
            .filter(|name| !star::is_loopback(name))
            .cloned()
            .collect();
        if others.is_empty() {
            vec!["127.0.0.1".into()]
        } else {
            others
        }
    }
}

impl Link {
    fn write(&self, kind: FrameKind, bytes: &[u8]) -> std::io::Result<()> {
        // Frames are numbered in the order in which they are written.
        let mut seal = lock(&self.seal);
        frame::write(&mut &*self.stream, &mut seal, kind, bytes)
    }

    /// Writes a frame without content, unless another thread is writing one: who waits until a rank
    /// takes its message must not keep the others waiting for a heartbeat. True if it was tried.
    fn try_write(&self, kind: FrameKind) -> bool {
        let Ok(mut seal) = self.seal.try_lock() else {
            return false;
        };
        // A broken connection is noticed where it is read.
        let _ = frame::write(&mut &*self.stream, &mut seal, kind, &[]);
        true
    }
}

impl SharedLinks {
    fn send(&self, to: usize, kind: FrameKind, bytes: &[u8]) -> Result<(), Error> {
        let link = self.links.iter().find(|link| link.peer == to);
        let link = link.expect("ranks send to rank 0, and rank 0 to all others");
        link.write(kind, bytes)
            .map_err(|error| failed!("rank {to} cannot be reached: {error}", ""))
    }

    /// Reads from a connection until it ends.
    fn read(
        &self,
        peer: usize,
        (mut stream, mut seal): (&TcpStream, Seal),
        arrivals: &SyncSender<(usize, Arrival)>,
        pongs: &SyncSender<Pong>,
    ) {
        loop {
            let read = frame::read(&mut stream, &mut seal);
            let received = self.clock.now();
            // The receivers live as long as the process measures.
            let arrived = |arrival| drop(arrivals.send((peer, arrival)));
            match read {
                Ok((FrameKind::Beat, _)) => {}
                Ok((FrameKind::Ping, mut bytes)) => {
                    bytes.extend_from_slice(&self.clock.now().0.to_be_bytes());
                    let _ = self.send(peer, FrameKind::Pong, &bytes);
                }
                Ok((FrameKind::Pong, bytes)) => {
                    if let Some(pong) = Pong::read(peer, &bytes, received) {
                        // Who asks reads them; others are not needed.
                        let _ = pongs.try_send(pong);
                    }
                }
                Ok((FrameKind::Stop, _)) => self.stop.store(true, Ordering::Relaxed),
                Ok((FrameKind::Data, bytes)) => arrived(Arrival::Data(bytes)),
                Ok((FrameKind::Deflated, bytes)) => match inflated(&bytes) {
                    Ok(bytes) => arrived(Arrival::Data(bytes)),
                    Err(error) => return self.lose(peer, &error, arrivals),
                },
                Ok((FrameKind::Fail, bytes)) => match serde_json::from_slice(&bytes) {
                    Ok(failure) => arrived(Arrival::Fail(failure)),
                    Err(error) => return self.lose(peer, &error.into(), arrivals),
                },
                Ok((FrameKind::End, bytes)) => {
                    let status = bytes.first().copied().unwrap_or(1);
                    self.over.store(true, Ordering::Release);
                    let _ = self.ended.set(status);
                    self.stop.store(true, Ordering::Relaxed);
                    return arrived(Arrival::End);
                }
                Err(error) => return self.lose(peer, &error, arrivals),
            }
        }
    }

    /// Notes that a rank is gone.
    fn lose(&self, peer: usize, error: &std::io::Error, arrivals: &SyncSender<(usize, Arrival)>) {
        use std::io::ErrorKind::{TimedOut, UnexpectedEof, WouldBlock};
        let how = match error.kind() {
            WouldBlock | TimedOut => format!("no beat for {}", self.limit.exact()),
            UnexpectedEof => "its connection closed".into(),
            _ => format!("its connection broke: {error}"),
        };
        self.note_loss(peer, how, arrivals);
    }

    fn note_loss(&self, rank: usize, how: String, arrivals: &SyncSender<(usize, Arrival)>) {
        if self.over.load(Ordering::Acquire) {
            return;
        }
        let _ = self.lost.set(vec![Loss { rank, how }]);
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the receiver. A full inbox wakes it too, and beats must go on.
        let _ = arrivals.try_send((rank, Arrival::Lost));
    }

    /// Sends heartbeats, passes a stop on, and watches the launcher.
    fn beat(&self, arrivals: &SyncSender<(usize, Arrival)>, end_itself: Option<fn()>) {
        let launcher = getppid();
        let (mut next, mut unstopped) = (Nanos(0), Vec::from_iter(&self.links));
        while !self.over.load(Ordering::Acquire) {
            let now = self.clock.now();
            if self.lost.get().is_some() {
                break;
            }
            if is_gone(launcher) {
                self.note_loss(self.rank, "its launcher is gone".into(), arrivals);
                continue;
            }
            if self.stop.load(Ordering::Relaxed) {
                unstopped.retain(|link| !link.try_write(FrameKind::Stop));
            }
            if now >= next {
                next = now.plus(BEAT);
                for link in &self.links {
                    link.try_write(FrameKind::Beat);
                }
            }
            self.clock.wait_until(now.plus(LOOK));
        }
        self.end_after_grace(end_itself);
    }

    /// Ends a process that is cut off, or whose run rank 0 has ended, and that does not end by
    /// itself: its I/O hangs.
    fn end_after_grace(&self, end_itself: Option<fn()>) {
        let Some(end_itself) = end_itself else { return };
        let grace = match self.rank {
            0 => GRACE_ROOT,
            _ if self.ended.get().is_some() => LAST,
            _ => GRACE,
        };
        let due = self.clock.now().plus(grace);
        while self.clock.now() < due {
            // The process manager may take its time with the goodbye.
            if self.has_finished.load(Ordering::Acquire) {
                return;
            }
            self.clock.wait_until(self.clock.now().plus(LOOK));
        }
        end_itself();
    }
}

/// The silence after which `rank` gives up the other end of a connection.
///
/// The last heartbeat that arrived at rank 0 was sent up to a beat before the link was cut, so
/// rank 0 may wait that much less than its limit from then on. The other side waits for all of its
/// own limit, and needs some time to stop. Between the two are 3 s.
fn limit_of(rank: usize, silence: Nanos) -> Nanos {
    if rank == 0 {
        silence
    } else {
        silence.since(EARLIER)
    }
}

/// True if the process that started this one is gone: another one has become its parent.
fn is_gone(launcher: Option<Pid>) -> bool {
    getppid() != launcher
}

fn packed(message: &impl Serialize) -> Result<(FrameKind, Vec<u8>), Error> {
    let text = serde_json::to_vec(message).expect("messages are maps with text keys");
    if text.len() > FRAME_MAX {
        return Err(failed!(
            "a message of {count} bytes is longer than 16 MiB",
            "measure shorter points, or with wider windows",
            count = text.len()
        ));
    }
    if text.len() < DEFLATE_FROM {
        return Ok((FrameKind::Data, text));
    }
    let mut deflated = DeflateEncoder::new(Vec::new(), Compression::fast());
    deflated
        .write_all(&text)
        .and_then(|()| deflated.finish())
        .map(|bytes| (FrameKind::Deflated, bytes))
        .map_err(|error| failed!("a message cannot be deflated: {error}", ""))
}

fn inflated(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    DeflateDecoder::new(bytes)
        .take(FRAME_MAX as u64 + 1)
        .read_to_end(&mut text)?;
    if text.len() > FRAME_MAX {
        return Err(std::io::Error::other("a message longer than 16 MiB"));
    }
    Ok(text)
}

fn lock<Value>(mutex: &Mutex<Value>) -> MutexGuard<'_, Value> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use ring::hkdf;
    use std::net::TcpListener;

    /// Rank 0 of two, and the other end of its connection.
    fn rank_0() -> (Ranks, TcpStream, Seal) {
        one_of_two(0, None)
    }

    fn one_of_two(rank: usize, end_itself: Option<fn()>) -> (Ranks, TcpStream, Seal) {
        let (connection, other) = connection();
        let (stop, clock) = (Arc::default(), Clock::real());
        let ranks = Ranks::connected(
            (rank, 2),
            clock,
            vec![connection],
            stop,
            (SILENCE_LEAST, end_itself),
        );
        (ranks.unwrap(), other, Seal::of(&shared_secret(), b"theirs"))
    }

    fn shared_secret() -> hkdf::Prk {
        hkdf::Salt::new(hkdf::HKDF_SHA256, b"nonces").extract(b"secret")
    }

    /// A connection and its other end.
    fn connection() -> (Connection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let connection = Connection {
            stream: listener.accept().unwrap().0,
            ours: Seal::of(&shared_secret(), b"ours"),
            theirs: Seal::of(&shared_secret(), b"theirs"),
        };
        (connection, other)
    }

    #[test]
    fn a_rank_that_takes_no_message_keeps_no_heartbeat_from_the_others() {
        let (connections, others): (Vec<_>, Vec<_>) =
            [connection(), connection()].into_iter().unzip();
        let (stop, clock) = (Arc::<AtomicBool>::default(), Clock::real());
        let ranks = Ranks::connected(
            (0, 3),
            clock,
            connections,
            Arc::clone(&stop),
            (SILENCE_LEAST, None),
        );
        let ranks = ranks.unwrap();
        // As if a message to the first of them were waiting for the connection to take it.
        let stuck = lock(&ranks.shared.links[0].seal);
        stop.store(true, Ordering::Relaxed);
        let mut seal = Seal::of(&shared_secret(), b"ours");
        // A rank that hears nothing for this long gives up rank 0.
        let silent = Some(Duration::from_nanos(limit_of(1, SILENCE_LEAST).0));
        others[1].set_read_timeout(silent).unwrap();
        let (mut stops, mut beats) = (0, 0);
        while stops < 1 || beats < 3 {
            match frame::read(&mut &others[1], &mut seal).unwrap() {
                (FrameKind::Stop, _) => stops += 1,
                (FrameKind::Beat, _) => beats += 1,
                _ => panic!("nothing else is sent"),
            }
        }
        assert_eq!(stops, 1);
        drop(stuck);
        // Once it takes messages again, it gets the stop too.
        let mut seal = Seal::of(&shared_secret(), b"ours");
        while frame::read(&mut &others[0], &mut seal).unwrap().0 != FrameKind::Stop {}
    }

    #[test]
    fn a_rank_that_does_not_come_to_the_end_of_its_run_ends_itself() {
        static HAS_ENDED: AtomicBool = AtomicBool::new(false);
        let end_itself = || HAS_ENDED.store(true, Ordering::Release);
        let (ranks, mut other, mut seal) = one_of_two(1, Some(end_itself));
        frame::write(&mut other, &mut seal, FrameKind::End, &[1]).unwrap();
        // As if the thread that measures were in the kernel, where it learns of nothing.
        while !HAS_ENDED.load(Ordering::Acquire) {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(ranks.ended(), Some(1));
    }

    #[test]
    fn who_changes_frames_on_their_way_ends_the_run_by_name() {
        type Relay<'a> = &'a dyn Fn(&mut Vec<Vec<u8>>);
        let relays: [(&str, Relay<'_>); 4] = [
            ("changed", &|frames| frames[1][5] ^= 1),
            ("left out", &|frames| drop(frames.remove(1))),
            ("repeated", &|frames| frames[1] = frames[0].clone()),
            ("swapped", &|frames| frames.swap(1, 2)),
        ];
        for (name, relay) in relays {
            let (ranks, mut other, mut seal) = rank_0();
            let mut frames: Vec<Vec<u8>> = Vec::new();
            for number in ["100", "200", "300"] {
                let mut frame = Vec::new();
                let bytes = number.as_bytes();
                frame::write(&mut frame, &mut seal, FrameKind::Data, bytes).unwrap();
                frames.push(frame);
            }
            relay(&mut frames);
            other.write_all(&frames.concat()).unwrap();
            let due = ranks.clock().now().plus(Nanos::from_secs(60));
            let mut received = Vec::new();
            let error = loop {
                match ranks.receive::<u64>(due) {
                    Ok(message) => received.push(message),
                    Err(error) => break error.to_string(),
                }
            };
            assert_eq!(received, [Some((1, 100))], "{name}");
            let why = "rank 1 was lost: its connection broke: a frame was changed, left out";
            assert!(error.contains(why), "{name}: {error}");
        }
    }

    #[test]
    fn a_message_needs_no_more_than_16_mib_on_either_side() {
        let long = "x".repeat(FRAME_MAX);
        let error = packed(&long).unwrap_err().to_string();
        assert!(error.contains("longer than 16 MiB"), "{error}");
        let deflated = |length: usize| {
            let mut deflated = DeflateEncoder::new(Vec::new(), Compression::fast());
            deflated.write_all(&vec![0; length]).unwrap();
            deflated.finish().unwrap()
        };
        assert_eq!(inflated(&deflated(FRAME_MAX)).unwrap().len(), FRAME_MAX);
        assert!(inflated(&deflated(FRAME_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn a_rank_whose_link_is_cut_stops_before_rank_0_gives_it_up(
            // When the link is cut, after the last heartbeat that went through.
            since_beat in 0.0..1.0_f64,
            // A heartbeat that a busy machine sends late, and one that is long on its way.
            late_ms in 0.0..500.0_f64,
            delay_ms in 0.0..500.0_f64,
            // Each clock runs too fast or too slow by this.
            (root_ppm, other_ppm) in (-500.0..500.0_f64, -500.0..500.0_f64),
        ) {
            let ms = |time: Nanos| time.as_secs_f64() * 1e3;
            let longest = ms(BEAT) + ms(LOOK) + late_ms;
            // Rank 0 heard of it last before the cut, the other of rank 0 last when what was on its
            // way had arrived.
            let cut = since_beat * longest;
            let given_up = ms(limit_of(0, SILENCE_LEAST)) * (1.0 - root_ppm / 1e6);
            let gives_up = cut + delay_ms + ms(limit_of(1, SILENCE_LEAST)) * (1.0 + other_ppm / 1e6);
            // The stop flag is looked at twice on its way to the last operation.
            let has_stopped = gives_up + 2.0 * ms(LOOK);
            prop_assert!(has_stopped < given_up, "{has_stopped} ms, {given_up} ms");
        }
    }
}
