//! Databases on a command line: their URLs, and the password, which is never one of the arguments.

use super::output::remark;
use crate::engine::sql::access::from_pgpass;
use crate::engine::sql::{Access, Address, Secret};
use crate::files;
use crate::model::{Dbms, Error};
use clap::Args;
use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

/// Where the password is.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PasswordArgs {
    /// The database's password is the first line of this file [default: that of `PGPASSWORD`, `~/.pgpass` or
    /// `MYSQL_PWD`, or asked for on a terminal]
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<PathBuf>,
}

/// The URLs among targets, which must then all be URLs; none if there are none.
pub(super) fn urls(targets: &[OsString]) -> Result<Option<Vec<String>>, Error> {
    let is_url = |target: &&OsString| target.to_str().is_some_and(Address::is_url);
    let Some(url) = targets.iter().find(is_url) else { return Ok(None) };
    if let Some(other) = targets.iter().find(|target| !is_url(target)) {
        return Err(Error::asked(
            format!("'{}' stands beside the database '{}'", other.display(), without_password(url)),
            "name databases alone, or files and devices alone",
        ));
    }
    Ok(Some(targets.iter().map(|target| target.to_string_lossy().into_owned()).collect()))
}

/// A URL for a message; with a password in it, its scheme alone.
fn without_password(url: &OsString) -> String {
    let text = url.to_string_lossy();
    Address::parse(&text, &|_| None).map_or_else(|_| "URL".into(), |address| address.to_string())
}

/// The access to the databases of these URLs. The password is looked for where libpq and the clients of `MySQL` do, and
/// asked for on a terminal if a server wants one.
pub(super) fn access(urls: &[String], args: &PasswordArgs) -> Result<Access, Error> {
    let environment = |name: &str| std::env::var(name).ok();
    let mut access = Access::parse(urls.iter().map(String::as_str), &environment)?;
    access.password = password(&access, args)?;
    if access.password.is_none() && std::io::stdin().is_terminal() && crate::engine::sql::wants_password(&access)? {
        access.password = Some(ask(&access.servers[0])?);
    }
    Ok(access)
}

fn password(access: &Access, args: &PasswordArgs) -> Result<Option<Secret>, Error> {
    if let Some(path) = &args.password_file {
        return first_line(path).map(Some);
    }
    let variable = if access.dbms() == Dbms::Postgres { "PGPASSWORD" } else { "MYSQL_PWD" };
    // An empty one is none, as libpq has it.
    if let Some(password) = std::env::var(variable).ok().filter(|password| !password.is_empty()) {
        return Ok(Some(Secret::new(password)));
    }
    if access.dbms() != Dbms::Postgres {
        return Ok(None);
    }
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let Some(path) = std::env::var_os("PGPASSFILE").map(PathBuf::from).or_else(home) else { return Ok(None) };
    let (found, why_not) = from_pgpass(&path, &access.servers[0]);
    if let Some(why) = why_not {
        remark(&format!("rigel: {why}\n"));
    }
    Ok(found)
}

fn first_line(path: &Path) -> Result<Secret, Error> {
    let text = files::read_secret(path, files::HAND_WRITTEN_MAX).map_err(|error| {
        Error::asked(
            format!("the password file '{}' cannot be read: {error}", path.display()),
            "name a file whose first line is the password, which nobody else may read (chmod 600)",
        )
    })?;
    Ok(Secret::new(text.lines().next().unwrap_or_default().to_string()))
}

/// Asks at the terminal, which shows nothing of the answer.
fn ask(address: &Address) -> Result<Secret, Error> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let input = std::io::stdin();
    let failed = |error: std::io::Error| {
        Error::failed(format!("the password cannot be asked for: {error}"), "put it in a file named by --password-file")
    };
    remark(&format!("password for '{address}': "));
    let before = tcgetattr(&input).map_err(|error| failed(error.into()))?;
    let mut silent = before.clone();
    silent.local_modes.remove(LocalModes::ECHO);
    tcsetattr(&input, OptionalActions::Flush, &silent).map_err(|error| failed(error.into()))?;
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    // Whatever was typed, the terminal shows again what is.
    let _ = tcsetattr(&input, OptionalActions::Flush, &before);
    remark("\n");
    read.map_err(failed)?;
    Ok(Secret::new(line.trim_end_matches(['\r', '\n']).to_string()))
}
