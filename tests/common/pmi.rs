//! A server of PMI-1 in the dialects of real process managers, as they were observed. It never ends
//! a process by itself, and needs nothing installed.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};

/// How a server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// Hydra of MPICH 4.0: cuts long values and returns old ones, both without a word.
    Hydra4,
    /// Hydra of MPICH 5.
    Hydra5,
    /// Slurm's pmi2 plugin: one read a command, and silence for what it does not know.
    Slurm,
    /// Flux: small names, refuses what is too long.
    Flux,
}

impl Dialect {
    pub(crate) const ALL: [Self; 4] = [Self::Hydra4, Self::Hydra5, Self::Slurm, Self::Flux];
}

/// What the ranks have done.
#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) keys: BTreeMap<String, String>,
    waiting: Vec<UnixStream>,
    barriers: usize,
    pub(crate) finalized: usize,
    pub(crate) aborted: Option<String>,
    /// Commands that a real server ends the job over, or never answers.
    pub(crate) unknown: Vec<String>,
    /// The longest line of all.
    pub(crate) longest: usize,
}

/// A running server.
pub(crate) struct Server {
    shared: Arc<Mutex<State>>,
}

/// One rank's connection at the server.
struct Connection {
    dialect: Dialect,
    size: usize,
    rank: usize,
    /// Barriers complete only up to this number.
    barriers_max: usize,
    stream: UnixStream,
    shared: Arc<Mutex<State>>,
}

impl Server {
    /// Starts a server; returns one end for each rank. Only the first `barriers_max` barriers ever
    /// complete.
    pub(crate) fn start(
        dialect: Dialect,
        size: usize,
        barriers_max: usize,
    ) -> (Self, Vec<UnixStream>) {
        let shared = Arc::<Mutex<State>>::default();
        let ends = (0..size).map(|rank| {
            let (ours, theirs) = UnixStream::pair().unwrap();
            let shared = Arc::clone(&shared);
            let mut connection = Connection {
                dialect,
                size,
                rank,
                barriers_max,
                stream: ours,
                shared,
            };
            std::thread::spawn(move || connection.serve());
            theirs
        });
        let ends = ends.collect();
        (Self { shared }, ends)
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap()
    }
}

impl Connection {
    fn serve(&mut self) {
        let mut rest = Vec::new();
        while let Some(line) = self.line(&mut rest) {
            let mut state = self.shared.lock().unwrap();
            state.longest = state.longest.max(line.len() + 1);
            drop(state);
            let Some(reply) = self.reply(&line) else {
                continue;
            };
            if self.stream.write_all(reply.as_bytes()).is_err() {
                return;
            }
        }
    }

    /// The next command; `None` at the end.
    fn line(&mut self, rest: &mut Vec<u8>) -> Option<String> {
        let mut piece = [0; 1024];
        if self.dialect == Dialect::Slurm {
            // It reads once. What follows the first line of a read is lost.
            let length = self
                .stream
                .read(&mut piece)
                .ok()
                .filter(|length| *length > 0)?;
            let text = String::from_utf8_lossy(&piece[..length]).into_owned();
            return text.lines().next().map(String::from);
        }
        loop {
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = rest.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line).trim_end().to_string());
            }
            let length = self
                .stream
                .read(&mut piece)
                .ok()
                .filter(|length| *length > 0)?;
            rest.extend_from_slice(&piece[..length]);
        }
    }

    fn reply(&self, line: &str) -> Option<String> {
        use Dialect::{Flux, Hydra4, Hydra5, Slurm};
        let word = |name: &str| {
            line.split(' ')
                .filter_map(|word| word.split_once('='))
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_string())
        };
        let dialect = self.dialect;
        let space = if dialect == Flux {
            "f1"
        } else {
            "kvs_17_0_99_h1"
        };
        let command = word("cmd").unwrap_or_default();
        Some(match command.as_str() {
            "initack" => format!(
                "cmd=initack rc=0\ncmd=set size={}\ncmd=set rank={}\ncmd=set debug=0\n",
                self.size, self.rank
            ),
            "init" if dialect == Slurm && line != "cmd=init pmi_version=1 pmi_subversion=1" => {
                return None;
            }
            "init" => {
                let minor = if dialect == Hydra5 { 2 } else { 1 };
                let head = "cmd=response_to_init";
                match dialect {
                    Slurm => format!("{head} rc=0 pmi_version=1 pmi_subversion={minor}\n"),
                    _ => format!("{head} pmi_version=1 pmi_subversion={minor} rc=0\n"),
                }
            }
            "get_maxes" => {
                let name = if dialect == Flux { 64 } else { 256 };
                format!("cmd=maxes kvsname_max={name} keylen_max=64 vallen_max=1024\n")
            }
            "get_my_kvsname" => format!("cmd=my_kvsname kvsname={space}\n"),
            "put" => self.put(&word("key")?, word("value").unwrap_or_default()),
            "get" => {
                let state = self.shared.lock().unwrap();
                let key = word("key")?;
                match (state.keys.get(&key), dialect) {
                    (Some(value), Hydra5) => {
                        format!("cmd=get_result rc=0 value={value} found=TRUE\n")
                    }
                    (Some(value), Slurm) => format!("cmd=get_result value={value} rc=0\n"),
                    (Some(value), _) => {
                        format!("cmd=get_result rc=0 msg=success value={value}\n")
                    }
                    (None, Hydra4) => {
                        format!("cmd=get_result rc=-1 msg=key_{key}_not_found value=unknown\n")
                    }
                    (None, _) => "cmd=get_result rc=1\n".into(),
                }
            }
            "barrier_in" => {
                self.barrier();
                return None;
            }
            "finalize" => {
                self.shared.lock().unwrap().finalized += 1;
                "cmd=finalize_ack\n".into()
            }
            "abort" => {
                self.shared.lock().unwrap().aborted = word("exitcode");
                return None;
            }
            _ => {
                self.shared.lock().unwrap().unknown.push(line.into());
                if dialect != Slurm {
                    // The real one ends the job.
                    let _ = self.stream.shutdown(std::net::Shutdown::Both);
                }
                return None;
            }
        })
    }

    fn put(&self, key: &str, mut value: String) -> String {
        let mut state = self.shared.lock().unwrap();
        if self.dialect == Dialect::Flux && (value.len() > 1023 || key.len() > 63) {
            return "cmd=put_result rc=-1\n".into();
        }
        if self.dialect == Dialect::Hydra4 {
            value.truncate(1023);
            state.keys.entry(key.into()).or_insert(value);
        } else {
            state.keys.insert(key.into(), value);
        }
        let said = if self.dialect == Dialect::Hydra4 {
            " msg=success"
        } else {
            ""
        };
        format!("cmd=put_result rc=0{said}\n")
    }

    /// Counts a rank; answers all when the last one has come.
    fn barrier(&self) {
        let mut state = self.shared.lock().unwrap();
        if state.barriers >= self.barriers_max {
            return;
        }
        state.waiting.push(self.stream.try_clone().unwrap());
        if state.waiting.len() < self.size {
            return;
        }
        state.barriers += 1;
        let tail = if self.dialect == Dialect::Hydra5 {
            " rc=0 tag=0"
        } else {
            ""
        };
        for mut rank in state.waiting.drain(..) {
            // It may be gone.
            let _ = rank.write_all(format!("cmd=barrier_out{tail}\n").as_bytes());
        }
    }
}
