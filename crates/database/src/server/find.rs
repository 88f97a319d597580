//! Finds a database's server programs, their version, and the command to install them.
//!
//! Input: a folder named by the user, or nothing. Output: the newest installed programs. They are
//! run only to get their version, and as the server's user. If Rigel is root, programs in `PATH`
//! that other users could have placed there are ignored.

use super::account::Account;
use rigel_model::{Dbms, Error, usage};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The version of a server's programs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    /// `PostgreSQL`, `MariaDB` or `MySQL`.
    pub product: &'static str,
    /// Major version: 18 for `18.4`.
    pub major: u32,
    /// Minor version: 4 for `18.4`; 0 for `18beta1`.
    pub minor: u32,
    /// The version as printed by the program, without a distribution's suffix: `18.4`, `10.11.14`.
    pub number: String,
}

impl std::fmt::Display for Version {
    /// `PostgreSQL 18.4`
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.product, self.number)
    }
}

impl Version {
    /// Parses the output of `postgres --version` or `mariadbd --version`.
    pub(super) fn read(printed: &str) -> Option<Self> {
        let words: Vec<&str> = printed.split_whitespace().collect();
        let after = |mark: &str| {
            words
                .iter()
                .position(|word| *word == mark)
                .and_then(|at| words.get(at + 1))
        };
        let (product, number) = if let Some(number) = after("(PostgreSQL)") {
            ("PostgreSQL", *number)
        } else {
            let number = *after("Ver")?;
            (
                if number.contains("MariaDB") {
                    "MariaDB"
                } else {
                    "MySQL"
                },
                number.split('-').next()?,
            )
        };
        let mut parts = number.split('.').map(|part| {
            part.split(|c: char| !c.is_ascii_digit())
                .next()
                .unwrap_or("")
        });
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next().and_then(|part| part.parse().ok()).unwrap_or(0);
        Some(Self {
            product,
            major,
            minor,
            number: number.to_string(),
        })
    }

    /// Key for comparing versions: a newer version has a greater key.
    fn rank(&self) -> (u32, u32) {
        (self.major, self.minor)
    }
}

/// The programs of one server.
#[derive(Debug, Clone)]
pub(super) struct Programs {
    /// The server itself.
    pub(super) server: PathBuf,
    /// The program that creates its first files; `None` if the server does that itself.
    pub(super) maker: Option<PathBuf>,
    pub(super) version: Version,
}

/// Finds the newest programs, or those in `bin` if it is given.
pub(super) fn programs(
    dbms: Dbms,
    bin: Option<&Path>,
    account: Option<&Account>,
) -> Result<Programs, Error> {
    if let Some(bin) = bin {
        // The server will not run in the caller's directory.
        let whole = std::fs::canonicalize(bin).unwrap_or_else(|_| bin.to_path_buf());
        return programs_in(dbms, &whole, account).ok_or_else(|| {
            let names: Vec<_> = names(dbms)
                .iter()
                .map(|(server, maker)| format!("{server} and {maker}"))
                .collect();
            usage!(
                "{bin} has no {names} that runs",
                "give the directory of the server's programs, or leave out --server-bin",
                bin = bin.display(),
                names = names.join(", nor ")
            )
        });
    }
    let mut newest: Option<Programs> = None;
    for place in places(dbms, account) {
        if names(dbms)
            .iter()
            .all(|(server, _)| is_safe(&place.join(server)))
            && let Some(programs) = programs_in(dbms, &place, account)
            && newest
                .as_ref()
                .is_none_or(|best| programs.version.rank() > best.version.rank())
        {
            newest = Some(programs);
        }
    }
    newest.ok_or_else(|| missing(dbms))
}

/// Names of the server and of the program that creates its files; preferred names first.
fn names(dbms: Dbms) -> &'static [(&'static str, &'static str)] {
    match dbms {
        Dbms::Postgres => &[("postgres", "initdb")],
        Dbms::Mysql => &[
            ("mariadbd", "mariadb-install-db"),
            ("mysqld", "mysql_install_db"),
        ],
    }
}

fn programs_in(dbms: Dbms, bin: &Path, account: Option<&Account>) -> Option<Programs> {
    names(dbms).iter().find_map(|(server, maker)| {
        let server = bin.join(server);
        let version = version_of(&server, account)?;
        // MariaDB installs the server in /usr/sbin and the other program in /usr/bin; a tarball has
        // it in scripts/.
        let beside = [
            Some(bin.to_path_buf()),
            sibling(bin, "bin"),
            sibling(bin, "scripts"),
        ];
        let maker = beside
            .into_iter()
            .flatten()
            .map(|folder| folder.join(maker))
            .find(|path| path.is_file());
        // MySQL's server creates its files itself.
        (maker.is_some() || version.product == "MySQL").then_some(Programs {
            server,
            maker,
            version,
        })
    })
}

fn sibling(bin: &Path, name: &str) -> Option<PathBuf> {
    Some(bin.parent()?.join(name))
}

fn version_of(server: &Path, account: Option<&Account>) -> Option<Version> {
    if !server.is_file() {
        return None;
    }
    Version::read(&printed(server, "--version", account)?)
}

/// Output of a program run as the server's user; `None` if it fails.
fn printed(program: &Path, argument: &str, account: Option<&Account>) -> Option<String> {
    let mut command = Command::new(program);
    if let Some(account) = account {
        command.gid(account.gid).uid(account.uid);
    }
    let quiet = command
        .arg(argument)
        .env("LC_ALL", "C")
        .current_dir("/")
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    let output = quiet
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Finds the program of this name in `PATH`.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    folders_of_path()
        .into_iter()
        .map(|folder| folder.join(name))
        .find(|path| path.is_file() && is_safe(path))
}

/// The absolute folders of `PATH`. A relative one would change with the server's current directory.
fn folders_of_path() -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|folder| folder.is_absolute())
        .collect()
}

/// False if Rigel is root and another user could have placed this program: they own it or one of
/// its folders, or may write to it. A missing program is safe.
fn is_safe(program: &Path) -> bool {
    if !rustix::process::geteuid().is_root() {
        return true;
    }
    // Check both the given path and the path after resolving links.
    let whole = std::fs::canonicalize(program).unwrap_or_else(|_| program.into());
    let mut ways = program.ancestors().chain(whole.ancestors());
    ways.all(|path| std::fs::symlink_metadata(path).map_or(true, |facts| is_roots_alone(&facts)))
}

/// True if only root can exchange this file or the contents of this folder.
fn is_roots_alone(facts: &Metadata) -> bool {
    let group = if facts.gid() == 0 { 0 } else { 0o020 };
    let by_others = facts.mode() & (group | 0o002) != 0;
    // In a folder with the sticky bit, others cannot exchange root's files.
    let harmless = facts.file_type().is_symlink() || facts.is_dir() && facts.mode() & 0o1000 != 0;
    facts.uid() == 0 && (!by_others || harmless)
}

/// Folders that may contain server programs.
fn places(dbms: Dbms, account: Option<&Account>) -> Vec<PathBuf> {
    let mut places = folders_of_path();
    match dbms {
        Dbms::Postgres => {
            let directory =
                on_path("pg_config").and_then(|program| printed(&program, "--bindir", account));
            places.extend(
                directory
                    .map(PathBuf::from)
                    .filter(|folder| folder.is_absolute()),
            );
            // Debian; Red Hat and PostgreSQL's own packages for it; SUSE.
            for (folder, start) in [
                ("/usr/lib/postgresql", ""),
                ("/usr", "pgsql-"),
                ("/usr/lib", "postgresql"),
            ] {
                places.extend(
                    folders_below(Path::new(folder), start)
                        .into_iter()
                        .map(|folder| folder.join("bin")),
                );
            }
            places.push("/usr/local/pgsql/bin".into());
        }
        Dbms::Mysql => {
            let usual = [
                "/usr/sbin",
                "/usr/libexec",
                "/usr/bin",
                "/usr/local/mysql/bin",
                "/usr/local/mariadb/bin",
            ];
            places.extend(usual.map(PathBuf::from));
        }
    }
    places
}

fn folders_below(folder: &Path, start: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with(start))
        .map(|entry| entry.path())
        .collect()
}

fn missing(dbms: Dbms) -> Error {
    let product = if dbms == Dbms::Postgres {
        "PostgreSQL"
    } else {
        "MariaDB or MySQL"
    };
    let release = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let what = format!("no server programs of {product} were found");
    let root = rustix::process::geteuid().is_root();
    Error::failed(
        what,
        match install_command(dbms, &release) {
            Some(command) => format!(
                "install them with `{}{command}`, or give their directory with --server-bin DIR",
                if root { "" } else { "sudo " }
            ),
            None => format!(
                "install {product}, or give the directory of its programs with --server-bin DIR"
            ),
        },
    )
}

/// The command that installs a server, for the given text of /etc/os-release; `None` for unknown
/// systems.
fn install_command(dbms: Dbms, release: &str) -> Option<String> {
    let value = |key: &str| {
        let line = release
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.unwrap_or("").trim_matches(['"', '\'']).to_string()
    };
    let systems = format!("{} {}", value("ID"), value("ID_LIKE"));
    let (install, postgres, mariadb) = systems.split_whitespace().find_map(|system| {
        Some(match system {
            "debian" | "ubuntu" => ("apt-get install", "postgresql", "mariadb-server"),
            "fedora" | "rhel" | "centos" => ("dnf install", "postgresql-server", "mariadb-server"),
            "suse" | "sles" | "opensuse" => ("zypper install", "postgresql-server", "mariadb"),
            "alpine" => ("apk add", "postgresql", "mariadb"),
            "arch" => ("pacman -S", "postgresql", "mariadb"),
            _ => return None,
        })
    })?;
    Some(format!(
        "{install} {}",
        if dbms == Dbms::Postgres {
            postgres
        } else {
            mariadb
        }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn versions_are_read_from_what_the_programs_print() {
        for (printed, shown, major, minor) in [
            (
                "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)",
                "PostgreSQL 15.18",
                15,
                18,
            ),
            ("postgres (PostgreSQL) 18beta1", "PostgreSQL 18beta1", 18, 0),
            ("postgres (PostgreSQL) 9.6.24", "PostgreSQL 9.6.24", 9, 6),
            (
                "mariadbd  Ver 10.11.14-MariaDB-0+deb12u2 for debian-linux-gnu on x86_64",
                "MariaDB 10.11.14",
                10,
                11,
            ),
            (
                "/usr/sbin/mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)",
                "MySQL 8.0.36",
                8,
                0,
            ),
            (
                "/usr/sbin/mysqld  Ver 8.0.36-0ubuntu0.22.04.1 for Linux on x86_64 ((Ubuntu))",
                "MySQL 8.0.36",
                8,
                0,
            ),
        ] {
            let version = Version::read(printed).unwrap_or_else(|| panic!("{printed}"));
            assert_eq!(
                (version.to_string().as_str(), version.major, version.minor),
                (shown, major, minor)
            );
        }
        for printed in [
            "",
            "postgres (PostgreSQL)",
            "postgres (PostgreSQL) devel",
            "bash 5.2",
        ] {
            assert_eq!(Version::read(printed), None, "{printed}");
        }
    }

    #[test]
    fn versions_are_ordered_as_numbers() {
        let rank = |number: &str| {
            Version::read(&format!("postgres (PostgreSQL) {number}"))
                .unwrap()
                .rank()
        };
        assert!(
            rank("9.6.24") < rank("10.1")
                && rank("18.4") < rank("18.10")
                && rank("18beta1") < rank("18.1")
        );
    }

    #[test]
    fn the_newest_programs_are_taken_and_a_named_folder_alone_where_it_is_named() {
        let place = std::env::temp_dir().join(format!("rigel-find-{}", std::process::id()));
        let make = |folder: &str, names: &[&str], number: &str| {
            std::fs::create_dir_all(place.join(folder)).unwrap();
            for name in names {
                let script = format!("#!/bin/sh\necho 'postgres (PostgreSQL) {number}'\n");
                let path = place.join(folder).join(name);
                std::fs::write(&path, script).unwrap();
                std::fs::set_permissions(
                    &path,
                    std::os::unix::fs::PermissionsExt::from_mode(0o755),
                )
                .unwrap();
            }
        };
        make("whole", &["postgres", "initdb"], "15.3");
        make("client", &["initdb"], "16.1");
        make("half", &["postgres"], "17.1");
        let found = |folder: &str| programs(Dbms::Postgres, Some(&place.join(folder)), None);
        assert_eq!(
            found("whole").unwrap().version.to_string(),
            "PostgreSQL 15.3"
        );
        for folder in ["client", "half", "none"] {
            let error = found(folder).unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(
                error.to_string().contains(folder)
                    && error.to_string().contains("postgres and initdb"),
                "{error}"
            );
        }
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn root_takes_no_program_that_another_user_could_have_put_there() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let place = std::env::temp_dir().join(format!("rigel-safe-{}", std::process::id()));
        let make = |folder: &str, owner: u32, mode: u32| {
            let folder = place.join(folder);
            std::fs::create_dir_all(&folder).unwrap();
            let program = folder.join("postgres");
            std::fs::write(&program, "#!/bin/sh\n").unwrap();
            chown(&program, Some(0), Some(0)).unwrap();
            chown(&folder, Some(owner), Some(owner)).unwrap();
            std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
            program
        };
        assert!(is_safe(&make("own", 0, 0o755)) && is_safe(&place.join("own/missing")));
        let theirs = make("theirs", 65534, 0o755);
        for unsafe_one in [
            theirs.clone(),
            make("open", 0, 0o777),
            make("theirs/below", 0, 0o755),
        ] {
            assert!(!is_safe(&unsafe_one), "{}", unsafe_one.display());
        }
        symlink(&theirs, place.join("own/link")).unwrap();
        assert!(!is_safe(&place.join("own/link")), "a link to one of theirs");
        let program = place.join("own/postgres");
        chown(&program, Some(65534), None).unwrap();
        assert!(!is_safe(&program), "their own program");
        std::fs::remove_dir_all(&place).unwrap();
    }

    #[test]
    fn versions_are_queried_as_the_servers_user() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let nobody = Account {
            name: "nobody".into(),
            uid: 65534,
            gid: 65534,
        };
        assert_eq!(
            printed(Path::new("/usr/bin/id"), "-u", Some(&nobody)).as_deref(),
            Some("65534")
        );
        assert_eq!(
            printed(Path::new("/usr/bin/id"), "-G", Some(&nobody)).as_deref(),
            Some("65534")
        );
    }

    #[test]
    fn the_command_that_installs_is_that_of_the_system() {
        let command = |dbms, release| install_command(dbms, release).unwrap_or_default();
        let debian = "PRETTY_NAME=\"Debian\"\nID=debian\n";
        assert_eq!(
            command(Dbms::Postgres, debian),
            "apt-get install postgresql"
        );
        assert_eq!(
            command(Dbms::Mysql, debian),
            "apt-get install mariadb-server"
        );
        assert_eq!(
            command(Dbms::Postgres, "ID=linuxmint\nID_LIKE=\"ubuntu debian\""),
            "apt-get install postgresql"
        );
        assert_eq!(
            command(
                Dbms::Postgres,
                "ID=\"rocky\"\nID_LIKE=\"rhel centos fedora\""
            ),
            "dnf install postgresql-server"
        );
        assert_eq!(
            command(Dbms::Mysql, "ID=opensuse-leap\nID_LIKE=\"suse opensuse\""),
            "zypper install mariadb"
        );
        assert_eq!(command(Dbms::Postgres, "ID=alpine"), "apk add postgresql");
        assert_eq!(command(Dbms::Postgres, "ID=arch"), "pacman -S postgresql");
        assert_eq!(command(Dbms::Postgres, "ID=plan9"), "");
        assert!(
            missing(Dbms::Mysql)
                .to_string()
                .contains("--server-bin DIR")
        );
    }
}
