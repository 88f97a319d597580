//! A rank 0 that is the test itself: it knows the secret of the run, and says what it likes to a
//! process of the program that is rank 1.

use super::launched::Rank;
use super::pmi::{Dialect, Server};
use super::{Place, rigel};
use rigel_model::{Error, Nanos};
use rigel_ranks::pmi::Pmi;
use rigel_ranks::{Joining, RankMember, Ranks, SILENCE_LEAST, digest_of_program};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// Time for any answer of the other rank.
const LONG: Nanos = Nanos::from_secs(60);

/// Rank 0, and the process that is rank 1.
pub(crate) struct FakeRoot {
    ranks: Ranks,
    other: Rank,
    _server: Server,
}

impl FakeRoot {
    /// Starts `line` as rank 1 of 2, and joins it.
    pub(crate) fn beside(place: &Place, line: &str) -> Self {
        let program = rigel(place, line);
        let build = digest_of_program(Path::new(program.get_program())).unwrap();
        Self::of_build(place, line, build)
    }

    /// The same, by a program whose file has this digest.
    pub(crate) fn of_build(place: &Place, line: &str, build: String) -> Self {
        let (server, mut ends) = Server::start(Dialect::Hydra5, 2, usize::MAX);
        let mut command = rigel(place, line);
        command.env("RIGEL_TEST_BOOT_ID", "boot-1");
        // So that rank 1 sends its own, which is then that of rank 0 too.
        let member = RankMember {
            arguments: arguments_of(&command),
            build,
            ..RankMember::of_this_program("fake".into(), "boot-0".into())
        };
        command.stdin(std::process::Stdio::null());
        let other = Rank::start(command, &ends[1], 1, 2);
        let own = Pmi::inherited(Box::new(ends.remove(0)), 0, 2).unwrap();
        let joining = Joining {
            within: LONG,
            silence: SILENCE_LEAST,
            addresses: Vec::new(),
            address: Some("127.0.0.1".into()),
            ports: None,
            end_itself: None,
        };
        let ranks = Ranks::join(Box::new(own), &joining, &member, std::sync::Arc::default());
        Self {
            ranks: ranks.map_err(|(error, _)| error).unwrap(),
            other,
            _server: server,
        }
    }

    /// Sends rank 1 this message.
    pub(crate) fn say(&self, message: &Value) {
        self.ranks.send(1, message).unwrap();
    }

    /// The next message of rank 1.
    ///
    /// # Errors
    /// It cannot go on, and says why.
    pub(crate) fn hear(&self) -> Result<Value, Error> {
        let due = self.ranks.clock().now().plus(LONG);
        let (_, message) = self.ranks.receive(due)?.expect("an answer");
        Ok(message)
    }

    /// Agrees with all that rank 1 says, until it is ready to measure.
    ///
    /// # Errors
    /// It refuses.
    pub(crate) fn agree(&self) -> Result<(), Error> {
        self.agree_but(&mut |_| None)
    }

    /// The same, but for what `answer` returns for a message: the value of rank 0.
    ///
    /// # Errors
    /// It refuses.
    pub(crate) fn agree_but(
        &self,
        answer: &mut dyn FnMut(&Value) -> Option<Value>,
    ) -> Result<(), Error> {
        loop {
            let value = self.hear()?;
            if value.get("wall").is_some() {
                return Ok(());
            }
            let own = answer(&value).unwrap_or_else(|| value.clone());
            self.ranks.send(1, &[own, value])?;
        }
    }

    /// Ends the run. Returns what rank 1 printed.
    pub(crate) fn end(self) -> Output {
        let _ = self.ranks.end(0);
        self.other.end()
    }
}

/// The digest of a command's arguments and its working directory, as a rank sends it.
fn arguments_of(command: &std::process::Command) -> String {
    let arguments = command.get_args().map(std::ffi::OsStr::to_os_string);
    let here = command.get_current_dir().expect("a place to run in");
    RankMember::digest_of(arguments, &here.canonicalize().unwrap())
}
