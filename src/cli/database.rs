//! Databases on a command line: their URLs, and the password, which is never an argument.

use super::membership::Membership;
use super::output::remark_of_host;
use super::prompt;
use clap::Args;
use rigel_database::access::{from_pgpass, shown};
use rigel_database::{Access, Address, Secret};
use rigel_model::files;
use rigel_model::{Dbms, Error, Tables, shell_word, spoken, usage};
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Where the password is.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PasswordArgs {
    /// File whose first line is the database's password [default: PGPASSWORD, ~/.pgpass or
    /// MYSQL_PWD, else a prompt on the terminal]
    #[arg(long, value_name = "FILE")]
    pub(super) password_file: Option<PathBuf>,
}

/// The database URLs among the targets; `None` if there are none. Mixing them with other targets is
/// an error.
pub(super) fn urls(targets: &[OsString]) -> Result<Option<Vec<String>>, Error> {
    let is_url = |target: &&OsString| target.to_str().is_some_and(Address::is_url);
    let Some(url) = targets.iter().find(is_url) else {
        return Ok(None);
    };
    if let Some(other) = targets.iter().find(|target| !is_url(target)) {
        return Err(usage!(
            "'{other}' and the database '{url}' cannot be measured together",
            "give only databases, or only files and devices",
            other = shown(&other.to_string_lossy()),
            url = shown(&url.to_string_lossy())
        ));
    }
    Ok(Some(
        targets
            .iter()
            .map(|target| target.to_string_lossy().into_owned())
            .collect(),
    ))
}

/// Access to the databases with these URLs. The password is taken from where libpq and the clients
/// of `MySQL` take it, or requested on a terminal if a server needs one.
pub(super) fn access(
    urls: &[String],
    args: &PasswordArgs,
    membership: &Membership,
) -> Result<Access, Error> {
    let environment = |name: &str| std::env::var(name).ok();
    let mut access = Access::parse(urls.iter().map(String::as_str), &environment)?;
    set_passwords(&mut access, args, membership)?;
    asked_if_wanted(access, membership)
}

/// Access to the databases in a run's journal. Whoever can write the journal may have replaced the
/// URLs, so they are shown before the first connection, and only a password that is given now is
/// sent.
pub(super) fn access_again(
    urls: &[String],
    args: &PasswordArgs,
    membership: &Membership,
) -> Result<Access, Error> {
    let mut access = Access::parse(urls.iter().map(String::as_str), &|name| {
        std::env::var(name).ok()
    })?;
    access
        .servers
        .iter()
        .map(|server| format!("resuming on '{server}', as the journal says\n"))
        .for_each(|said| remark_of_host(&spoken(&said)));
    let password = args.password_file.as_deref().map(first_line).transpose()?;
    let variable = variable(&access);
    if password.is_none() && std::env::var_os(variable).is_some() {
        remark_of_host(&format!(
            "{variable} is not used for a server that comes from a journal: use --password-file, \
             or type the password when asked\n"
        ));
    }
    password.inspect(|password| set_for_all(&mut access, password, membership));
    asked_if_wanted(access, membership)
}

/// The tables that a database has from us.
pub(super) fn tables_of(access: &Access, membership: &Membership) -> Result<Tables, Error> {
    let access = membership.own_servers(access);
    rigel_database::find(&access)?.ok_or_else(|| {
        let address = &access.servers[0];
        usage!(
            "'{address}' has no tables of rigel sql load, or not all of them",
            "create them: rigel sql load {word}",
            word = shell_word(&address.to_string())
        )
    })
}

/// Requests the passwords on the terminal of the servers that need one and have none.
fn asked_if_wanted(mut access: Access, membership: &Membership) -> Result<Access, Error> {
    if !std::io::stdin().is_terminal() {
        return Ok(access);
    }
    for address in membership.own_servers(&access).servers {
        if access.password(&address).is_none() && rigel_database::wants_password(&access, &address)?
        {
            access.set_password(&address, prompt::password(&address)?);
        }
    }
    Ok(access)
}

/// Sets the one password that the user gave for all servers of the command line.
fn set_for_all(access: &mut Access, password: &Secret, membership: &Membership) {
    for address in membership.own_servers(access).servers {
        access.set_password(&address, password.clone());
    }
}

fn variable(access: &Access) -> &'static str {
    if access.dbms() == Dbms::Postgres {
        "PGPASSWORD"
    } else {
        "MYSQL_PWD"
    }
}

/// Sets the passwords of the servers that this process uses.
fn set_passwords(
    access: &mut Access,
    args: &PasswordArgs,
    membership: &Membership,
) -> Result<(), Error> {
    if let Some(path) = &args.password_file {
        set_for_all(access, &first_line(path)?, membership);
        return Ok(());
    }
    // An empty password counts as none, as in libpq.
    if let Some(password) = std::env::var(variable(access))
        .ok()
        .filter(|password| !password.is_empty())
    {
        set_for_all(access, &Secret::new(password), membership);
        return Ok(());
    }
    if access.dbms() != Dbms::Postgres {
        return Ok(());
    }
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".pgpass"));
    let Some(path) = std::env::var_os("PGPASSFILE")
        .map(PathBuf::from)
        .or_else(home)
    else {
        return Ok(());
    };
    // A line of that file is for the servers that it names, and for no other.
    for address in membership.own_servers(access).servers {
        let (password, why_not) = from_pgpass(&path, &address);
        if let Some(why) = why_not {
            remark_of_host(&format!("rigel: {why}\n"));
            return Ok(());
        }
        if let Some(password) = password {
            access.set_password(&address, password);
        }
    }
    Ok(())
}

fn first_line(path: &Path) -> Result<Secret, Error> {
    let text = files::read_secret(path, files::HAND_WRITTEN_MAX).map_err(|error| {
        usage!(
            "the password file '{path}' cannot be read: {error}",
            "give a file whose first line is the password and which only you may read (chmod 600)",
            path = path.display()
        )
    })?;
    Ok(Secret::new(
        text.lines().next().unwrap_or_default().to_string(),
    ))
}
