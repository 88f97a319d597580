//! PMI-1, the wire protocol of MPI's process managers: Hydra of MPICH and Intel MPI, Slurm, Flux.
//!
//! Input: a connected stream. Output: rank and size, barriers, and a few keys that all ranks can
//! read. It is a launcher and a way to find each other, not a transport: servers never free a key,
//! and cannot tell that a rank hangs. docs/methods/ranks.md says how each launcher is started.
//!
//! One request at a time, each a whole line in one write: Slurm reads once and does not reassemble.
//! No key is put twice: older servers return the old value.

use super::manager::{BarrierTimes, ProcessManager};
use flate2::Crc;
use rigel_device::clock::Clock;
use rigel_model::{Error, Nanos, failed};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum length of a request with its line break. Slurm reads at most 1,024 bytes at once; what
/// follows is lost, or taken for another command.
const LINE_MAX: usize = 1000;
/// Maximum length of a reply. The longest value of any server has 4,096 bytes.
const REPLY_MAX: usize = 16 << 10;
/// Maximum length of a key; servers count its final NUL as the 64th byte.
const KEY_MAX: usize = 63;
/// How long any server takes to answer what needs no other rank.
const ANSWER: Nanos = Nanos::from_secs(30);

/// The key of what rank 0 announces.
const KEY: &str = "rigel-star";

/// A stream to the process manager.
pub trait Wire: Read + Write + Send {
    /// Limits how long a read may wait.
    ///
    /// # Errors
    /// The system refuses.
    fn wait_at_most(&self, time: Duration) -> std::io::Result<()>;
}

impl Wire for UnixStream {
    fn wait_at_most(&self, time: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(time))
    }
}

impl Wire for TcpStream {
    fn wait_at_most(&self, time: Duration) -> std::io::Result<()> {
        self.set_read_timeout(Some(time))
    }
}

/// The client of a process manager.
pub struct Pmi {
    wire: Box<dyn Wire>,
    /// Bytes read beyond the last line.
    rest: Vec<u8>,
    rank: usize,
    size: usize,
    space: String,
    /// Maximum length of a value, by what the server says.
    value_max: usize,
    put: BTreeSet<String>,
}

impl std::fmt::Debug for Pmi {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pmi({} of {})", self.rank, self.size)
    }
}

impl Pmi {
    /// Begins on an inherited channel, whose rank and size the environment says.
    ///
    /// # Errors
    /// The other end does not speak PMI-1, or does not answer.
    pub fn inherited(wire: Box<dyn Wire>, rank: usize, size: usize) -> Result<Self, Error> {
        let mut pmi = Self::new(wire, rank, size);
        pmi.begin()?;
        Ok(pmi)
    }

    /// Begins on a connection of our own: the server says rank and size to whom it knows by `id`.
    pub fn connected(wire: Box<dyn Wire>, id: &str) -> Result<Self, Error> {
        refuse_unwritable("PMI_ID", id)?;
        let mut pmi = Self::new(wire, 0, 0);
        pmi.request(
            "initack",
            &format!("cmd=initack pmiid={id}"),
            "initack",
            ANSWER,
        )?;
        let (mut rank, mut size) = (None, None);
        for _ in 0..3 {
            let set = pmi.reply("initack", "set", ANSWER)?;
            rank = rank.or(set.number("rank"));
            size = size.or(set.number("size"));
        }
        (pmi.rank, pmi.size) = rank
            .zip(size)
            .filter(|(rank, size)| rank < size)
            .ok_or_else(|| unexpected("initack", "no rank below a size"))?;
        pmi.begin()?;
        Ok(pmi)
    }

    fn new(wire: Box<dyn Wire>, rank: usize, size: usize) -> Self {
        Self {
            wire,
            rest: Vec::new(),
            rank,
            size,
            space: String::new(),
            value_max: 0,
            put: BTreeSet::new(),
        }
    }

    fn begin(&mut self) -> Result<(), Error> {
        // Slurm matches this line by a fixed format: spelling and order count.
        let line = "cmd=init pmi_version=1 pmi_subversion=1";
        let reply = self.request("init", line, "response_to_init", ANSWER)?;
        if reply.get("pmi_version") != Some("1") {
            return Err(unexpected("init", &reply.line));
        }
        let maxima = self.request("get_maxes", "cmd=get_maxes", "maxes", ANSWER)?;
        let value_max = maxima.number("vallen_max").unwrap_or(1024);
        // Maxima count the final NUL.
        self.value_max = value_max.saturating_sub(1);
        let named = "get_my_kvsname";
        let space = self.request(named, "cmd=get_my_kvsname", "my_kvsname", ANSWER)?;
        self.space = space
            .get("kvsname")
            .filter(|name| !name.is_empty())
            .ok_or_else(|| unexpected(named, &space.line))?
            .to_string();
        Ok(())
    }

    /// Number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Puts `text` under `key`, which no rank has used before. Others can read it after the next
    /// barrier. Its length and checksum travel with it: a server that cuts it says nothing.
    ///
    /// # Errors
    /// The key is in use, or key or text do not fit into this server's lines; or it refuses.
    pub fn put(&mut self, key: &str, text: &str) -> Result<(), Error> {
        let value = format!("{}-{:08x}-{text}", text.len(), checksum(text));
        let line = format!("cmd=put kvsname={} key={key} value={value}", self.space);
        let longest = self
            .value_max
            .min(LINE_MAX - 1 - (line.len() - value.len()));
        refuse_unwritable("a key", key)?;
        refuse_unwritable("a value", &value)?;
        if key.len() > KEY_MAX || value.len() > longest {
            return Err(failed!(
                "'{key}' with {count} bytes does not fit into this process manager's lines of \
                 {longest}",
                "",
                count = value.len()
            ));
        }
        if !self.put.insert(key.to_string()) {
            return Err(failed!(
                "'{key}' was put already: older process managers return the old value",
                ""
            ));
        }
        self.request("put", &line, "put_result", ANSWER).map(drop)
    }

    /// The most that [`Pmi::put`] accepts as text under `key`, in bytes.
    pub fn room(&self, key: &str) -> usize {
        let line = format!("cmd=put kvsname={} key={key} value=", self.space);
        let value = self
            .value_max
            .min((LINE_MAX - 1).saturating_sub(line.len()));
        value.saturating_sub("1000-00000000-".len())
    }

    /// The text that a rank put under `key` before the last barrier.
    ///
    /// # Errors
    /// There is none, or it arrived damaged.
    pub fn get(&mut self, key: &str) -> Result<String, Error> {
        refuse_unwritable("a key", key)?;
        let line = format!("cmd=get kvsname={} key={key}", self.space);
        let reply = self.request("get", &line, "get_result", ANSWER)?;
        let value = reply
            .get("value")
            .ok_or_else(|| unexpected("get", &reply.line))?;
        let mut parts = value.splitn(3, '-');
        let (length, sum, text) = (parts.next(), parts.next(), parts.next());
        let is_whole = |text: &&str| {
            length.and_then(|length| length.parse().ok()) == Some(text.len())
                && sum.and_then(|sum| u32::from_str_radix(sum, 16).ok()) == Some(checksum(text))
        };
        text.filter(is_whole).map(String::from).ok_or_else(|| {
            failed!(
                "the process manager returned '{key}' damaged",
                "is it MPICH's, Intel's, Slurm's or Flux's? See docs/methods/ranks.md"
            )
        })
    }

    /// Waits until all ranks have come here, for at most `within`.
    ///
    /// # Errors
    /// Not all ranks came, or the channel broke.
    pub fn barrier(&mut self, clock: &Clock, within: Nanos) -> Result<BarrierTimes, Error> {
        let enter = clock.now();
        self.request("barrier_in", "cmd=barrier_in", "barrier_out", within)?;
        Ok(BarrierTimes {
            enter,
            leave: clock.now(),
        })
    }

    /// Says goodbye. An exit without it ends the others.
    ///
    /// # Errors
    /// The channel broke.
    pub fn finalize(&mut self) -> Result<(), Error> {
        self.request("finalize", "cmd=finalize", "finalize_ack", ANSWER)
            .map(drop)
    }

    /// Asks for the end of all ranks, this one included. Nobody answers.
    ///
    /// # Errors
    /// The channel broke.
    pub fn abort(&mut self, status: u8) -> Result<(), Error> {
        self.write("abort", &format!("cmd=abort exitcode={status}"))
    }

    fn request(
        &mut self,
        name: &str,
        line: &str,
        answer: &str,
        within: Nanos,
    ) -> Result<PmiReply, Error> {
        self.write(name, line)?;
        self.reply(name, answer, within)
    }

    /// Writes a line, whole.
    fn write(&mut self, name: &str, line: &str) -> Result<(), Error> {
        if line.len() >= LINE_MAX || line.contains('\n') {
            return Err(failed!(
                "a request {name} of {count} bytes is too long for PMI",
                "",
                count = line.len()
            ));
        }
        self.wire
            .write_all(format!("{line}\n").as_bytes())
            .map_err(|error| broken(name, &error))
    }

    /// Reads a line, and refuses it if it is not `answer`, or an error.
    fn reply(&mut self, name: &str, answer: &str, within: Nanos) -> Result<PmiReply, Error> {
        let reply = PmiReply {
            line: self.line(name, within)?,
        };
        let has_failed = reply.get("rc").is_some_and(|code| code != "0");
        if reply.get("cmd") != Some(answer) || has_failed {
            return Err(unexpected(name, &reply.line));
        }
        Ok(reply)
    }

    fn line(&mut self, name: &str, within: Nanos) -> Result<String, Error> {
        // A timeout of zero means none at all.
        let time = Duration::from_nanos(within.0.max(1_000_000));
        self.wire
            .wait_at_most(time)
            .map_err(|error| broken(name, &error))?;
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_string());
            }
            if self.rest.len() > REPLY_MAX {
                return Err(unexpected(name, "a line without end"));
            }
            let mut piece = [0; 4096];
            match self.wire.read(&mut piece) {
                Ok(0) => return Err(broken(name, &ErrorKind::UnexpectedEof.into())),
                Ok(length) => self.rest.extend_from_slice(&piece[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return Err(silent(name, within));
                }
                Err(error) => return Err(broken(name, &error)),
            }
        }
    }
}

impl ProcessManager for Pmi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn size(&self) -> usize {
        self.size
    }

    fn barrier(&mut self, clock: &Clock, within: Nanos) -> Result<BarrierTimes, Error> {
        Self::barrier(self, clock, within)
    }

    fn room(&self) -> usize {
        Self::room(self, KEY)
    }

    fn announce(
        &mut self,
        text: &str,
        clock: &Clock,
        within: Nanos,
    ) -> Result<BarrierTimes, Error> {
        self.put(KEY, text)?;
        Self::barrier(self, clock, within)
    }

    fn announced(&mut self, clock: &Clock, within: Nanos) -> Result<(String, BarrierTimes), Error> {
        let times = Self::barrier(self, clock, within)?;
        Ok((self.get(KEY)?, times))
    }

    fn finalize(&mut self) -> Result<(), Error> {
        Self::finalize(self)
    }

    fn abort(&mut self, status: u8) -> Result<(), Error> {
        Self::abort(self, status)
    }
}

/// A reply: words, each a key and a value at its first `=`. Order differs by server, and unknown
/// keys are ignored.
struct PmiReply {
    line: String,
}

impl PmiReply {
    fn get(&self, name: &str) -> Option<&str> {
        self.line
            .split(' ')
            .filter_map(|word| word.split_once('='))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.get(name)?.parse().ok()
    }
}

/// Refuses what servers cut, lose or end the job over: an empty text, spaces, backslashes.
fn refuse_unwritable(what: &str, text: &str) -> Result<(), Error> {
    let is_safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if text.is_empty() || !text.bytes().all(is_safe) {
        return Err(failed!("'{text}' is {what} that PMI cannot carry", ""));
    }
    Ok(())
}

fn checksum(text: &str) -> u32 {
    let mut crc = Crc::new();
    crc.update(text.as_bytes());
    crc.sum()
}

fn unexpected(request: &str, reply: &str) -> Error {
    let shown: String = reply.chars().take(200).collect();
    failed!(
        "the process manager answered '{shown}' to {request}",
        "is it MPICH's, Intel's, Slurm's or Flux's? See docs/methods/ranks.md"
    )
}

fn broken(request: &str, error: &std::io::Error) -> Error {
    failed!(
        "the process manager is gone, at {request}: {error}",
        "see the launcher's own lines above"
    )
}

fn silent(request: &str, within: Nanos) -> Error {
    if request == "barrier_in" {
        return failed!(
            "the barrier did not complete in {within}: a host was not started",
            "see the launcher's lines above; slow starts need --join TIME",
            within = within.exact()
        );
    }
    failed!(
        "the process manager did not answer {request} in {within}",
        "is it MPICH's, Intel's, Slurm's or Flux's? See docs/methods/ranks.md",
        within = within.exact()
    )
}
