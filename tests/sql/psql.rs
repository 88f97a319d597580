//! Sessions of psql: what our own client of `PostgreSQL` did is asked by the one that comes with it.

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Where the distribution keeps its versions, each with its psql.
const VERSIONS: &str = "/usr/lib/postgresql";

/// The psql of the distribution, whatever its version; that of a server which a test brings may be newer.
fn psql() -> Option<PathBuf> {
    let versions = std::fs::read_dir(VERSIONS).ok()?;
    let programs = versions
        .flatten()
        .map(|version| version.path().join("bin/psql"));
    programs.filter(|program| program.exists()).max()
}

/// What the server answers when all statements before are done.
const DONE: &str = "all statements are done";

/// A session.
pub(crate) struct Psql {
    process: Child,
    input: ChildStdin,
    said: BufReader<ChildStdout>,
}

impl Psql {
    /// A session of this database.
    ///
    /// # Errors
    /// There is no psql, or what it says where it cannot connect.
    pub(crate) fn connect(url: &str) -> Result<Self, String> {
        let missing = || format!("no psql in {VERSIONS}: scripts/setup.sh test brings it");
        let psql = psql().ok_or_else(missing)?;
        // What goes wrong stands between the answers.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 2>&1"])
            .arg(psql)
            .args(["-X", "-q", "-A", "-t", "-w", "-d", url])
            .env("PGOPTIONS", "-c client_min_messages=error")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| error.to_string())?;
        let input = process.stdin.take().expect("piped");
        let said = BufReader::new(process.stdout.take().expect("piped"));
        let mut session = Self {
            process,
            input,
            said,
        };
        session.run("")?;
        Ok(session)
    }

    /// Runs statements. Returns the rows of their answers, a line each.
    ///
    /// # Errors
    /// What the server or psql says of it.
    pub(crate) fn run(&mut self, statements: &str) -> Result<Vec<String>, String> {
        // A psql that ended said why.
        let _ = writeln!(self.input, "{statements}\n;SELECT '{DONE}';");
        let (mut rows, mut wrong) = (Vec::new(), String::new());
        loop {
            let mut line = String::new();
            let read = self.said.read_line(&mut line);
            let line = line.trim_end();
            match read {
                Ok(1..) if line == DONE => break,
                Ok(1..) if is_error(line) || !wrong.is_empty() => wrong.push_str(line),
                Ok(1..) => rows.push(line.into()),
                Ok(0) | Err(_) => return Err(format!("psql ended: {wrong}")),
            }
        }
        if wrong.is_empty() {
            Ok(rows)
        } else {
            Err(wrong)
        }
    }
}

fn is_error(line: &str) -> bool {
    ["ERROR:", "FATAL:", "psql:"]
        .iter()
        .any(|start| line.starts_with(start))
}

impl Drop for Psql {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
