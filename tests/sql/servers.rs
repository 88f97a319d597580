//! Private servers of every supported kind and version: created, reached, stopped, and cleaned up
//! after a crash.

use crate::common::{self, Missing, Place, entries, in_time, test, text, wait_until};
use crate::{client, number};
use mysql::prelude::Queryable;
use rigel_database::server::{self, Server, ServerRequest};
use rigel_model::{Bytes, Dbms, Error, MIB};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// The programs of a supported version.
#[derive(Debug, Clone)]
struct Kind {
    dbms: Dbms,
    bin: PathBuf,
    version: &'static str,
}

impl Kind {
    fn new(
        dbms: Dbms,
        bin: impl Into<PathBuf>,
        program: &str,
        version: &'static str,
    ) -> Result<Self, Missing> {
        let bin = bin.into();
        if bin.join(program).exists() {
            Ok(Self { dbms, bin, version })
        } else {
            Err(Missing(format!(
                "{} has no {program}: scripts/setup.sh test brings it",
                bin.display()
            )))
        }
    }

    fn postgres_15() -> Result<Self, Missing> {
        Self::new(
            Dbms::Postgres,
            "/usr/lib/postgresql/15/bin",
            "postgres",
            "PostgreSQL 15.",
        )
    }

    fn postgres_18() -> Result<Self, Missing> {
        let brought =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("target/servers/postgresql-18/bin");
        Self::new(Dbms::Postgres, brought, "postgres", "PostgreSQL 18.")
    }

    fn mariadb() -> Result<Self, Missing> {
        Self::new(Dbms::Mysql, "/usr/sbin", "mariadbd", "MariaDB 1")
    }

    fn start(&self, place: &Place) -> Server {
        self.try_start(place, &[], false)
            .unwrap_or_else(|error| panic!("{error}"))
    }

    fn try_start(
        &self,
        place: &Place,
        settings: &[(String, String)],
        stop: bool,
    ) -> Result<Server, Error> {
        let request = ServerRequest {
            dbms: self.dbms,
            directory: &place.0,
            bin: Some(&self.bin),
            buffer_cache: Bytes(32 * MIB),
            sessions: 4,
            settings,
        };
        Server::start(&request, &AtomicBool::new(stop))
    }
}

/// The single value that a statement returns, as text.
fn ask(server: &Server, statement: &str) -> String {
    if server.url().starts_with("postgres:") {
        let rows = client(server.url()).run(statement).unwrap();
        rows.into_iter().next().unwrap_or_default()
    } else {
        let mut session = mysql::Conn::new(mysql::Opts::from_url(server.url()).unwrap()).unwrap();
        // In the text protocol every value is text, but not in the driver's types.
        let row: Option<mysql::Row> = session.query_first(statement).unwrap();
        row.and_then(|mut row| row.take::<Vec<u8>, _>(0))
            .map(|value| String::from_utf8(value).unwrap())
            .unwrap_or_default()
    }
}

/// Inodes of listening TCP sockets, of both protocols.
fn listening() -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"]
        .map(|table| fs::read_to_string(table).unwrap_or_default());
    let rows = tables.iter().flat_map(|table| table.lines().skip(1));
    // Column 3 is the state: 0A means listening. Column 9 is the inode.
    rows.filter_map(|row| {
        let fields: Vec<&str> = row.split_whitespace().collect();
        (fields.get(3) == Some(&"0A")).then(|| fields[9].to_string())
    })
    .collect()
}

fn sockets_of(process: u32) -> Vec<String> {
    let files = fs::read_dir(format!("/proc/{process}/fd"))
        .into_iter()
        .flatten()
        .flatten();
    files
        .filter_map(|file| {
            let link = fs::read_link(file.path()).ok()?;
            Some(
                link.to_str()?
                    .strip_prefix("socket:[")?
                    .trim_end_matches(']')
                    .to_string(),
            )
        })
        .collect()
}

fn starts_and_stops(kind: &Kind, name: &str) {
    let place = Place::new(name);
    let server = kind.start(&place);
    assert!(
        server.version().to_string().starts_with(kind.version),
        "{}",
        server.version()
    );
    assert_eq!(
        server.directory().parent(),
        Some(fs::canonicalize(&place.0).unwrap().as_path())
    );
    assert_eq!(
        fs::metadata(server.directory()).unwrap().mode() & 0o777,
        0o700
    );

    // It works, durably, with its configured cache, and from its own files.
    let postgres = kind.dbms == Dbms::Postgres;
    let asked = |statement: &str| ask(&server, statement);
    if postgres {
        assert_eq!(asked("show shared_buffers"), "32MB");
        assert_eq!(asked("show fsync"), "on");
        assert_eq!(asked("show listen_addresses"), "");
        assert!(asked("show data_directory").starts_with(text(server.directory())));
        if server.is_direct() {
            assert_eq!(asked("show debug_io_direct"), "data");
        }
    } else {
        assert_eq!(
            asked("select @@innodb_buffer_pool_size"),
            (32 * MIB).to_string()
        );
        assert_eq!(asked("select @@skip_networking"), "1");
        assert_eq!(asked("select @@performance_schema"), "1");
        assert_eq!(asked("select @@log_bin"), "0");
        assert!(asked("select @@datadir").starts_with(text(server.directory())));
    }
    ask(&server, "create table t (a int primary key)");
    assert_eq!(asked("select count(*) from t"), "0");

    // It does not run as root, and listens on no port.
    let processes = server.processes();
    assert!(
        processes.contains(&server.pid()),
        "{} is not among {processes:?}",
        server.pid()
    );
    let listening = listening();
    for process in &processes {
        let Ok(facts) = fs::metadata(format!("/proc/{process}")) else {
            continue;
        };
        assert_ne!(facts.uid(), 0, "process {process} runs as root");
        let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
        assert!(
            status.is_empty() || status.contains("NoNewPrivs:\t1"),
            "process {process} may gain privileges"
        );
        let ports: Vec<_> = sockets_of(*process)
            .into_iter()
            .filter(|socket| listening.contains(socket))
            .collect();
        assert!(
            ports.is_empty(),
            "process {process} listens on TCP sockets {ports:?}"
        );
    }
    assert!(
        !sockets_of(server.pid()).is_empty(),
        "the sockets of the server were not seen at all"
    );

    // It is not a leftover while it lives.
    let cleaned = server::clean(&place.0).unwrap();
    assert!(
        cleaned.removed.is_empty() && cleaned.kept.len() == 1,
        "{cleaned:?}"
    );
    assert_eq!(server::leftovers(&place.0).unwrap(), []);

    server.stop().unwrap();
    assert_eq!(entries(&place.0), [] as [PathBuf; 0]);
    for process in processes {
        assert!(!is_server(process), "process {process} is still there");
    }
}

fn is_server(process: u32) -> bool {
    let name = fs::read_to_string(format!("/proc/{process}/comm")).unwrap_or_default();
    let zombie = fs::read_to_string(format!("/proc/{process}/stat"))
        .unwrap_or_default()
        .contains(") Z ");
    ["postgres", "mariadbd"].contains(&name.trim()) && !zombie
}

#[test]
fn postgres_15_starts_and_stops() {
    test("postgres_15_starts_and_stops", || {
        starts_and_stops(&Kind::postgres_15()?, "servers-15");
        Ok(())
    });
}

#[test]
fn postgres_18_starts_and_stops() {
    test("postgres_18_starts_and_stops", || {
        starts_and_stops(&Kind::postgres_18()?, "servers-18");
        Ok(())
    });
}

#[test]
fn mariadb_starts_and_stops() {
    test("mariadb_starts_and_stops", || {
        starts_and_stops(&Kind::mariadb()?, "servers-mariadb");
        Ok(())
    });
}

#[test]
fn reads_are_direct_where_version_and_filesystem_can() {
    test("reads_are_direct_where_version_and_filesystem_can", || {
        let place = Place::new("servers-direct");
        // The oldest version never can; the others depend on the filesystem.
        assert!(!Kind::postgres_15()?.start(&place).is_direct());
        let flags =
            rustix::fs::OFlags::CREATE | rustix::fs::OFlags::RDWR | rustix::fs::OFlags::DIRECT;
        let can = rustix::fs::open(place.0.join("probe"), flags, rustix::fs::Mode::RUSR).is_ok();
        fs::remove_file(place.0.join("probe")).unwrap();
        assert_eq!(Kind::postgres_18()?.start(&place).is_direct(), can);
        Ok(())
    });
}

#[test]
fn a_server_comes_back_on_its_files_after_a_restart_and_after_a_crash() {
    test(
        "a_server_comes_back_on_its_files_after_a_restart_and_after_a_crash",
        || {
            for kind in [Kind::postgres_18()?, Kind::mariadb()?] {
                let place = Place::in_memory("servers-restart");
                let mut server = kind.start(&place);
                ask(&server, "create table t (a int primary key)");
                ask(&server, "insert into t values (7)");
                let before = server.pid();
                server.restart(&AtomicBool::new(false)).unwrap();
                assert_ne!(server.pid(), before);
                assert_eq!(ask(&server, "select a from t"), "7");
                server.kill().unwrap();
                assert_eq!((server.processes(), server.pid()), (vec![], 0));
                server.restart(&AtomicBool::new(false)).unwrap();
                assert_eq!(ask(&server, "select a from t"), "7");
                drop(server);
                assert_eq!(entries(&place.0), [] as [PathBuf; 0]);
            }
            Ok(())
        },
    );
}

#[test]
fn a_server_that_does_not_start_says_why_and_leaves_nothing() {
    test(
        "a_server_that_does_not_start_says_why_and_leaves_nothing",
        || {
            for kind in [Kind::postgres_15()?, Kind::postgres_18()?, Kind::mariadb()?] {
                let place = Place::in_memory("servers-refused");
                let setting = [("no_such_setting".to_string(), "1".to_string())];
                let error = kind.try_start(&place, &setting, false).unwrap_err();
                assert_eq!(error.exit_status(), 2);
                let said = error.to_string().replace('-', "_");
                assert!(
                    said.contains("no_such_setting")
                        && said.contains("did not start with these settings"),
                    "{said}"
                );
                // One line of the log, and the hint.
                assert_eq!(said.lines().count(), 2, "{said}");
                assert_eq!(entries(&place.0), [] as [PathBuf; 0]);

                let error = kind.try_start(&place, &[], true).unwrap_err();
                assert!(error.to_string().contains("stopped while"), "{error}");
                assert_eq!(entries(&place.0), [] as [PathBuf; 0]);
            }
            Ok(())
        },
    );
}

#[test]
fn a_folder_without_server_programs_is_refused() {
    let place = Place::new("servers-missing");
    let empty = place.0.join("empty");
    fs::create_dir(&empty).unwrap();
    for dbms in [Dbms::Postgres, Dbms::Mysql] {
        let kind = Kind {
            dbms,
            bin: empty.clone(),
            version: "",
        };
        let error = kind.try_start(&place, &[], false).unwrap_err();
        assert_eq!(error.exit_status(), 2);
        assert!(
            error.to_string().contains(text(&empty)) && error.to_string().contains("--server-bin"),
            "{error}"
        );
        assert_eq!(entries(&place.0), std::slice::from_ref(&empty));
    }
}

#[test]
fn the_page_cache_of_a_server_can_be_limited() {
    test("the_page_cache_of_a_server_can_be_limited", || {
        let place = Place::new("servers-memory");
        let mut server = Kind::postgres_15()?.start(&place);
        let limit = server.limit_page_cache(Bytes(16 * MIB)).map_err(Missing)?;
        let group = |process: u32| {
            let text = fs::read_to_string(format!("/proc/{process}/cgroup")).unwrap();
            text.lines()
                .find(|line| line.contains("rigel-sql-"))
                .map(String::from)
        };
        let ours = group(server.pid()).expect("the server is in a group of ours");
        for process in server.processes() {
            assert_eq!(group(process).as_ref(), Some(&ours), "process {process}");
        }
        // Of a table twice as large as the limit, most pages have left the cache by the time its
        // end was read.
        let rows = 2 * limit.0 / 1024;
        ask(
            &server,
            &format!(
                "create table t as select repeat('x', 950) as a from generate_series(1, {rows})"
            ),
        );
        let statement = "select sum(length(a)) from t";
        ask(&server, statement);
        let read = read_by_one_session(&server, statement);
        assert!(
            read > limit.0,
            "{} came from the disk, the limit is {limit}",
            Bytes(read)
        );

        server.restart(&AtomicBool::new(false)).unwrap();
        assert_eq!(group(server.pid()), Some(ours.clone()));
        let path = group_directory(&ours);
        assert!(path.exists(), "{}", path.display());
        server.stop().unwrap();
        assert!(!path.exists(), "{} is still there", path.display());
        Ok(())
    });
}

/// Bytes that the kernel read from disk for one session that runs a statement.
fn read_by_one_session(server: &Server, statement: &str) -> u64 {
    let mut client = client(server.url());
    client
        .run("set max_parallel_workers_per_gather = 0")
        .unwrap();
    let process = number(&mut client, "pg_backend_pid()");
    let read = || {
        let text = fs::read_to_string(format!("/proc/{process}/io")).unwrap();
        text.lines()
            .find_map(|line| line.strip_prefix("read_bytes: "))
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    let before = read();
    client.run(statement).unwrap();
    read() - before
}

/// The directory of a group, from its line in /proc/PID/cgroup.
fn group_directory(line: &str) -> PathBuf {
    let path = line.rsplit_once(":/").unwrap().1;
    let mount = if line.contains(":memory:") {
        "/sys/fs/cgroup/memory"
    } else {
        "/sys/fs/cgroup"
    };
    Path::new(mount).join(path)
}

/// Not a test: the process that [`a_killed_rigel_is_cleaned_up_after`] kills.
#[test]
#[ignore = "holds a server for another test"]
fn hold_a_server() {
    let Some(place) = std::env::var_os("RIGEL_TEST_HOLD") else {
        return;
    };
    let kind = match std::env::var("RIGEL_TEST_KIND").unwrap().as_str() {
        "postgres" => Kind::postgres_18(),
        _ => Kind::mariadb(),
    };
    let kind = kind.unwrap_or_else(|Missing(why)| panic!("{why}"));
    // The directory belongs to the other test, and nothing here is cleaned up.
    let place = std::mem::ManuallyDrop::new(Place(place.into()));
    let mut server = std::mem::ManuallyDrop::new(kind.start(&place));
    let _ = server.limit_page_cache(Bytes(64 * MIB));
    fs::write(place.0.join("pid"), server.pid().to_string()).unwrap();
    loop {
        std::thread::park();
    }
}

/// Kills a process that has a server. Returns the server's process.
fn killed_with_its_server(place: &Place, dbms: Dbms, path: Option<&str>) -> u32 {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "servers::hold_a_server", "--ignored"])
        .stdout(Stdio::null());
    command
        .env("RIGEL_TEST_HOLD", &place.0)
        .env("RIGEL_TEST_KIND", dbms.name());
    if let Some(path) = path {
        command.env("PATH", path);
    }
    let mut child = command.spawn().unwrap();
    let file = place.0.join("pid");
    let mut pid = None;
    wait_until("the server runs", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        pid = fs::read_to_string(&file)
            .ok()
            .and_then(|text| text.parse().ok());
        pid.is_some()
    });
    let in_use = server::clean(&place.0).unwrap();
    assert!(
        in_use.removed.is_empty() && in_use.kept[0].contains(&child.id().to_string()),
        "{in_use:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    fs::remove_file(&file).unwrap();
    pid.unwrap()
}

#[test]
fn a_killed_rigel_is_cleaned_up_after() {
    test("a_killed_rigel_is_cleaned_up_after", || {
        let (_, _) = (Kind::postgres_18()?, Kind::mariadb()?);
        for dbms in [Dbms::Postgres, Dbms::Mysql] {
            let place = Place::in_memory("servers-killed");
            // Without setpriv the server outlives it.
            let pid = killed_with_its_server(&place, dbms, Some("/nowhere"));
            assert!(
                is_server(pid),
                "the server is gone: there is nothing to be cleaned up"
            );
            let group = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
            let group = group
                .lines()
                .find(|line| line.contains("rigel-sql-"))
                .map(group_directory);
            let left = server::leftovers(&place.0).unwrap();
            assert!(
                left.len() == 1 && left[0].running.contains(&pid) && left[0].dbms == dbms.name(),
                "{left:?}"
            );
            // Another test's process that is about to start holds the lock of the look before.
            let mut cleaned = server::clean(&place.0).unwrap();
            wait_until("nobody holds its lock", || {
                let is_held = !cleaned.kept.is_empty();
                if is_held {
                    cleaned = server::clean(&place.0).unwrap();
                }
                !is_held
            });
            assert!(
                cleaned.removed.len() == 1 && cleaned.removed[0].contains("ended its"),
                "{cleaned:?}"
            );
            assert!(!is_server(pid), "the server is still there");
            assert_eq!(entries(&place.0), [] as [PathBuf; 0]);
            assert!(
                group.is_none_or(|group| !group.exists()),
                "its control group is still there"
            );
        }
        Ok(())
    });
}

#[test]
fn a_killed_rigel_takes_its_server_with_it() {
    test("a_killed_rigel_takes_its_server_with_it", || {
        Kind::postgres_18()?;
        common::need("setpriv", &["--version"])?;
        let place = Place::in_memory("servers-together");
        let pid = killed_with_its_server(&place, Dbms::Postgres, None);
        wait_until("the server is gone", || !is_server(pid));
        assert_eq!(server::clean(&place.0).unwrap().removed.len(), 1);
        assert_eq!(entries(&place.0), [] as [PathBuf; 0]);
        Ok(())
    });
}

#[test]
fn a_start_that_is_interrupted_half_way_leaves_nothing() {
    test(
        "a_start_that_is_interrupted_half_way_leaves_nothing",
        || {
            let kind = Kind::postgres_18()?;
            let place = Place::new("servers-interrupted");
            let error = in_time("the start was interrupted", |_| {
                let stop = AtomicBool::new(false);
                let started = std::thread::scope(|scope| {
                    scope.spawn(|| {
                        wait_until("its files are being made", || {
                            let folder = entries(&place.0).into_iter().next();
                            folder.is_some_and(|folder| folder.join("data/base").exists())
                        });
                        stop.store(true, Ordering::Relaxed);
                    });
                    let request = ServerRequest {
                        dbms: kind.dbms,
                        directory: &place.0,
                        bin: Some(&kind.bin),
                        buffer_cache: Bytes(32 * MIB),
                        sessions: 4,
                        settings: &[],
                    };
                    Server::start(&request, &stop)
                });
                started.err()
            });
            assert!(error.to_string().contains("stopped while"), "{error}");
            assert_eq!(entries(&place.0), [] as [PathBuf; 0]);
            Ok(())
        },
    );
}

/// A directory that only root can pass, with another one in it: `closed/inner` in `place`.
fn closed(place: &Place) -> Result<(PathBuf, PathBuf), Missing> {
    if !rustix::process::geteuid().is_root() {
        return Err(Missing(
            "only root's servers run as another user, who cannot pass a directory".into(),
        ));
    }
    let closed = fs::canonicalize(&place.0).unwrap().join("closed");
    let inner = closed.join("inner");
    fs::create_dir_all(&inner).unwrap();
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o700)).unwrap();
    Ok((closed, inner))
}

#[test]
fn a_server_whose_user_cannot_reach_the_directory_is_made_above_it() {
    test(
        "a_server_whose_user_cannot_reach_the_directory_is_made_above_it",
        || {
            for kind in [Kind::postgres_18()?, Kind::mariadb()?] {
                let place = Place::new("servers-closed");
                let (closed, inner) = closed(&place)?;
                let request = ServerRequest {
                    dbms: kind.dbms,
                    directory: &inner,
                    bin: Some(&kind.bin),
                    buffer_cache: Bytes(32 * MIB),
                    sessions: 4,
                    settings: &[],
                };
                let server = Server::start(&request, &AtomicBool::new(false)).unwrap();
                assert_eq!(ask(&server, "select 7"), "7");
                let detour = server.detour().unwrap();
                assert_eq!(detour.closed, closed);
                assert_eq!(server.directory().parent(), closed.parent());
                assert_eq!(
                    fs::metadata(server.directory()).unwrap().dev(),
                    fs::metadata(&inner).unwrap().dev()
                );
                // Whoever cleans the directory is told of it.
                let kept = server::clean(&inner).unwrap().kept;
                assert!(
                    kept.len() == 1 && kept[0].contains("in use by rigel"),
                    "{kept:?}"
                );
                server.stop().unwrap();
                assert_eq!(entries(&place.0), [place.0.join("closed")]);
                assert_eq!(entries(&inner), [] as [PathBuf; 0]);
            }
            Ok(())
        },
    );
}

#[test]
fn a_server_is_made_on_no_other_filesystem_than_that_of_the_directory() {
    test(
        "a_server_is_made_on_no_other_filesystem_than_that_of_the_directory",
        || {
            let kind = Kind::postgres_18()?;
            let place = Place::new("servers-mounted");
            let (closed, _) = closed(&place)?;
            common::need("unshare", &["--mount", "true"])?;
            // Nobody but the program sees this filesystem, whose own top is what cannot be passed.
            let script = "mount -t tmpfs -o mode=700 none \"$0\"; exec \"$@\"";
            let output = Command::new("unshare")
                .args(["--mount", "sh", "-ec", script, text(&closed)])
                .arg(env!("CARGO_BIN_EXE_rigel"))
                .args(["sql", "run", "--scale", "1000", "--on", text(&closed)])
                .args(["--server-bin", text(&kind.bin)])
                .current_dir(&place.0)
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{said}");
            assert!(
                said.contains("cannot pass the directory") && said.contains("chmod o+x"),
                "{said}"
            );
            Ok(())
        },
    );
}

#[test]
fn the_next_run_reports_what_a_killed_rigel_left() {
    let place = Place::new("servers-told");
    let left = place.0.join("rigel-sql-4194305");
    fs::create_dir(&left).unwrap();
    let marker = "a private server of rigel, format 1\nrigel 4194305\ndbms postgres\n";
    fs::write(left.join("rigel-server"), marker).unwrap();
    fs::write(left.join("table"), vec![b'x'; 3 << 20]).unwrap();
    let output = common::rigel(&place, "sql run --on . --server-bin missing --scale 1000")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        said.contains("a postgres server of rigel 4194305, which no longer runs, takes 3.0 MiB in"),
        "{said}"
    );
    assert!(
        said.contains(text(&left)) && said.contains("`rigel sql clean .` removes it"),
        "{said}"
    );
    assert!(left.exists(), "telling removes nothing");
}

/// Mounts a directory, a file and a filesystem in memory in a folder, one after the other, while `act`
/// runs with what is mounted, and checks that it is untouched.
fn with_mounts_in(
    folder: &Path,
    place: &Place,
    mut act: impl FnMut(&Path),
) -> Result<(), common::Missing> {
    let precious = place.0.join("precious");
    fs::create_dir(&precious).unwrap();
    fs::write(precious.join("file"), "precious").unwrap();
    let (below, file) = (folder.join("below"), folder.join("file"));
    fs::create_dir(&below).unwrap();
    fs::write(&file, "").unwrap();
    let (source, one) = (text(&precious), text(&precious.join("file")).to_string());
    let mounts: [(&Path, Vec<&str>); 3] = [
        (&below, vec!["--bind", source]),
        (&file, vec!["--bind", &one]),
        (&below, vec!["-t", "tmpfs", "tmpfs"]),
    ];
    for (point, mut arguments) in mounts {
        arguments.push(text(point));
        common::need("mount", &arguments)?;
        let mounted = common::Mounted(point.to_path_buf());
        if !point.is_file() {
            fs::write(point.join("more"), "precious").unwrap();
        }
        act(point);
        assert!(point.is_file() || point.join("more").exists());
        assert_eq!(fs::read(precious.join("file")).unwrap(), b"precious");
        drop(mounted);
    }
    Ok(())
}

#[test]
fn cleaning_removes_nothing_where_something_is_mounted() {
    test(
        "cleaning_removes_nothing_where_something_is_mounted",
        || {
            let place = Place::new("servers-mounted-left");
            let left = place.0.join("rigel-sql-4194305");
            fs::create_dir(&left).unwrap();
            let marker = "a private server of rigel, format 1\nrigel 4194305\ndbms postgres\n";
            fs::write(left.join("rigel-server"), marker).unwrap();
            fs::write(left.join("a table"), "").unwrap();
            with_mounts_in(&left, &place, |point| {
                let before = entries(&left);
                let output = common::ends(&place, "sql clean .", 1);
                let said = common::stderr(&output);
                assert!(
                    said.contains(&format!("something is mounted at '{}'", point.display())),
                    "{said}"
                );
                assert_eq!(entries(&left), before);
            })?;
            common::ends(&place, "sql clean .", 0);
            assert!(!left.exists());
            Ok(())
        },
    );
}

#[test]
fn the_end_of_a_server_removes_nothing_where_something_is_mounted() {
    test(
        "the_end_of_a_server_removes_nothing_where_something_is_mounted",
        || {
            let kind = Kind::postgres_15()?;
            let place = Place::new("servers-mounted");
            let server = kind.start(&place);
            let folder = server.directory().to_path_buf();
            let mut server = Some(server);
            with_mounts_in(&folder, &place, |point| {
                let Some(server) = server.take() else { return };
                let error = server.stop().unwrap_err().to_string();
                assert!(
                    error.contains(&format!("something is mounted at '{}'", point.display()))
                        && error.contains("`rigel sql clean "),
                    "{error}"
                );
                // As all was before its files were to be removed.
                assert!(folder.join("data/PG_VERSION").exists());
                assert!(folder.join("rigel-server").exists());
            })?;
            assert_eq!(server::clean(&place.0).unwrap().removed.len(), 1);
            assert!(!folder.exists());
            Ok(())
        },
    );
}

#[test]
fn a_directory_of_another_user_neither_stops_cleaning_nor_uses_memory() {
    test(
        "a_directory_of_another_user_neither_stops_cleaning_nor_uses_memory",
        || {
            let place = Place::new("servers-strange");
            for name in ["rigel-sql-1", "rigel-sql-2", "rigel-sql-3"] {
                fs::create_dir(place.0.join(name)).unwrap();
            }
            common::need("mkfifo", &[text(&place.0.join("rigel-sql-1/rigel-server"))])?;
            fs::File::create(place.0.join("rigel-sql-2/rigel-server"))
                .unwrap()
                .set_len(2 << 30)
                .unwrap();
            std::os::unix::fs::symlink("/dev/zero", place.0.join("rigel-sql-3/rigel-server"))
                .unwrap();
            let mut command = common::rigel(&place, "sql clean .");
            let mut child = command
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let mut ended = None;
            let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                wait_until("cleaning ends", || {
                    ended = child.try_wait().unwrap();
                    ended.is_some()
                });
            }));
            if waited.is_err() {
                let _ = child.kill();
            }
            assert!(ended.is_some_and(|status| status.success()), "{ended:?}");
            assert_eq!(entries(&place.0).len(), 3, "what is not ours is left");
            Ok(())
        },
    );
}
