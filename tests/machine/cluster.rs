//! Three hosts on this machine, as network namespaces with host names and clocks of their own, and
//! mpiexec over them: what happens when a link is cut, a host is missing, another device has the same
//! name, or the launcher is killed.

use crate::common::{Missing, Place, in_time, need, signal, stderr, test, text, wait, wait_until};
use rigel_model::record::End;
use rigel_model::record::journal::Run;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of clusters so far: their namespaces have names of their own.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// The launcher, and root to make namespaces.
fn needed() -> Result<(), Missing> {
    need("mpiexec.hydra", &["--version"])?;
    need("unshare", &["--net", "--uts", "--mount", "--time", "true"])?;
    Ok(())
}

/// The hosts; taken down when it is dropped.
struct Cluster {
    place: Place,
    /// How the namespaces' names begin.
    mark: String,
}

impl Cluster {
    /// Three hosts that see the files of this machine. `on_second` is a shell command that the
    /// second runs first, in a mount namespace of its own.
    fn up(name: &str, on_second: &str) -> Self {
        let place = Place::new(&format!("cluster-{name}"));
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("rgt{}{number}", std::process::id());
        let cluster = Self { place, mark };
        let mark = &cluster.mark;
        ip(&["netns", "add", &format!("{mark}-sw")]);
        let bridge = "link add br0 type bridge";
        cluster.ip_at("sw", bridge);
        cluster.ip_at("sw", "link set br0 up");
        for number in 1..=3 {
            let host = format!("h{number}");
            let space = format!("{mark}-{host}");
            ip(&["netns", "add", &space]);
            cluster.ip_at(&host, "link set lo up");
            let pair = format!("link add p{number} type veth peer name eth0 netns {space}");
            cluster.ip_at("sw", &pair);
            cluster.ip_at("sw", &format!("link set p{number} master br0 up"));
            cluster.ip_at(&host, &format!("addr add 10.78.0.{number}/24 dev eth0"));
            cluster.ip_at(&host, "link set eth0 up");
            let names = Path::new("/etc/netns").join(&space);
            std::fs::create_dir_all(&names).unwrap();
            let hosts = "127.0.0.1 localhost\n10.78.0.1 h1\n10.78.0.2 h2\n10.78.0.3 h3\n";
            std::fs::write(names.join("hosts"), hosts).unwrap();
        }
        // What mpiexec calls instead of ssh: [-x] HOST COMMAND.
        let script = format!(
            "#!/bin/sh\nwhile [ \"${{1#-}}\" != \"$1\" ]; do shift; done\nhost=$1; shift\nexec ip \
             netns exec \"{mark}-$host\" unshare --uts --mount --time --monotonic $((${{host#h}} * \
             3600)) --fork --kill-child env RIGEL_TEST_BOOT_ID=\"${{BOOT:-$host}}\" sh -c 'hostname $0; [ $0 \
             != h2 ] || {{ {on_second}; }}; exec sh -c \"$*\"' \"$host\" \"$@\"\n"
        );
        let launcher = cluster.path("launch");
        std::fs::write(&launcher, script).unwrap();
        std::fs::set_permissions(&launcher, PermissionsExt::from_mode(0o755)).unwrap();
        std::fs::create_dir(cluster.path("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_rigel"), cluster.path("bin/rigel")).unwrap();
        cluster
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.place.0.join(name)
    }

    fn ip_at(&self, host: &str, line: &str) {
        let space = format!("{}-{host}", self.mark);
        let words: Vec<&str> = ["-n", &space].into_iter().chain(line.split(' ')).collect();
        ip(&words);
    }

    /// Starts `rigel LINE` once on each of these hosts. The process is mpiexec itself.
    fn start(&self, hosts: &str, line: &str) -> Child {
        self.command(hosts, line).spawn().unwrap()
    }

    fn command(&self, hosts: &str, line: &str) -> Command {
        let (first, launcher) = (format!("{}-h1", self.mark), self.path("launch"));
        let count = hosts.split(',').count().to_string();
        let program = self.path("bin/rigel");
        let mut command = Command::new("ip");
        command
            .args(["netns", "exec", &first, "unshare", "--uts", "sh", "-c"])
            .args(["hostname h1; exec \"$@\"", "sh", "mpiexec.hydra"])
            .args(["-launcher", "ssh", "-launcher-exec", text(&launcher)])
            .args(["-ppn", "1", "-hosts", hosts, "-n", &count, text(&program)])
            .args(line.split(' '))
            .env("HYDRA_LAUNCHER_AUTOFORK", "0")
            .current_dir(&self.place.0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Starts a run whose first point takes this number of seconds, and waits until it measures.
    fn running(&self, seconds: u32) -> Child {
        self.running_with(seconds, "--depth 2")
    }

    /// The same with more options.
    fn running_with(&self, seconds: u32, load: &str) -> Child {
        std::fs::create_dir(self.path("storage")).unwrap();
        let child = self.start(
            "h1,h2,h3",
            &format!(
                "curve storage {load} --scratch-size 64MiB --out out --point-min {seconds}s \
                 --point-max {seconds}s"
            ),
        );
        let path = self.path("out/journal.jsonl");
        wait_until("the journal is begun", || {
            std::fs::read_to_string(&path).is_ok_and(|text| text.contains('\n'))
        });
        child
    }

    /// The processes of this name on a host.
    fn processes(&self, host: &str, name: &str) -> Vec<String> {
        let space = format!("{}-{host}", self.mark);
        let output = Command::new("ip").args(["netns", "pids", &space]).output();
        let pids = String::from_utf8(output.unwrap().stdout).unwrap();
        let is_named = |pid: &&str| {
            std::fs::read_to_string(format!("/proc/{pid}/comm"))
                .is_ok_and(|comm| comm.trim() == name)
        };
        pids.lines().filter(is_named).map(String::from).collect()
    }

    fn wait_until_no_rank_is_left(&self) {
        for host in ["h1", "h2", "h3"] {
            wait_until(&format!("no rank is left on {host}"), || {
                self.processes(host, "rigel").is_empty()
            });
        }
    }

    fn journal(&self) -> Run {
        Run::read(&self.path("out")).unwrap()
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        for host in ["h1", "h2", "h3", "sw"] {
            let space = format!("{}-{host}", self.mark);
            if let Ok(output) = Command::new("ip").args(["netns", "pids", &space]).output() {
                for pid in String::from_utf8_lossy(&output.stdout).lines() {
                    let _ = Command::new("kill").args(["-9", pid]).status();
                }
            }
            let _ = Command::new("ip").args(["netns", "del", &space]).status();
            let _ = std::fs::remove_dir_all(Path::new("/etc/netns").join(&space));
        }
    }
}

#[track_caller]
fn ip(words: &[&str]) {
    let status = Command::new("ip").args(words).status().unwrap();
    assert!(status.success(), "ip {words:?}");
}

#[test]
fn a_host_whose_link_is_cut_is_lost_and_its_rank_ends_itself() {
    test("a host whose link is cut", || {
        needed()?;
        let (cluster, output) = in_time("a link was cut", |factor| {
            let cluster = Cluster::up("cut", "true");
            let child = cluster.running(30 * factor);
            cluster.ip_at("h3", "link set eth0 down");
            let output = child.wait_with_output().unwrap();
            let was_running = cluster.journal().ranks.lost.len() == 1;
            was_running.then_some((cluster, output))
        });
        let run = cluster.journal();
        let lost = &run.ranks.lost[0];
        assert_eq!((lost.rank, &*lost.host), (2, "h3"), "{}", stderr(&output));
        assert_eq!(lost.how, "no beat for 10s");
        assert_eq!(run.ended.as_ref().map(|end| end.status), Some(6));
        // What rank 0 said of it may be lost with the launcher, which ends all at once.
        // The launcher cannot reach it: it must end by itself.
        cluster.wait_until_no_rank_is_left();
        let left = std::fs::read_dir(cluster.path("storage")).unwrap().count();
        assert_eq!(left, 0);
        Ok(())
    });
}

#[test]
fn a_link_that_is_away_for_longer_than_usual_is_survived_if_that_is_allowed() {
    test("a link that is away for a while", || {
        needed()?;
        let cluster = Cluster::up("away", "true");
        // Each of some fifteen visits takes so long.
        let child = cluster.running_with(5, "--rate 300 --rank-silence 5min");
        cluster.ip_at("h3", "link set eth0 down");
        // Twice the time after which a rank is lost otherwise.
        wait(20_000);
        cluster.ip_at("h3", "link set eth0 up");
        let output = child.wait_with_output().unwrap();
        let run = cluster.journal();
        assert_eq!(run.ranks.lost, [], "{}", stderr(&output));
        assert_eq!(
            run.ended.as_ref().map(|end| end.status),
            Some(0),
            "{}",
            stderr(&output)
        );
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert!(run.points.iter().all(|point| point.end == End::Complete));
        cluster.wait_until_no_rank_is_left();
        Ok(())
    });
}

#[test]
fn a_host_that_is_cut_off_writes_nothing_once_its_rank_is_gone() {
    test("a host that is cut off writes nothing", || {
        needed()?;
        // Its storage is its own: what changes there, its rank has written.
        let line = "curve target --depth 2 --mix write=100 --destroy target --separate --out out \
                    --point-min 600s --point-max 600s";
        let cluster = Cluster::up("written", "mount --bind other target");
        let path = |name: &str| cluster.path(name);
        for name in ["target", "other"] {
            std::fs::write(path(name), vec![1; 4 << 20]).unwrap();
        }
        let bytes = || std::fs::read(path("other")).unwrap();
        let before = bytes();
        let child = cluster.start("h1,h2", line);
        wait_until("the second host writes", || bytes() != before);
        cluster.ip_at("h2", "link set eth0 down");
        wait_until("its rank has ended itself", || {
            cluster.processes("h2", "rigel").is_empty()
        });
        let left = bytes();
        let output = child.wait_with_output().unwrap();
        cluster.wait_until_no_rank_is_left();
        // Not a time in which something must happen: nothing may.
        wait(1000);
        assert!(bytes() == left, "written after its rank was gone");
        let run = cluster.journal();
        let lost: Vec<&str> = run.ranks.lost.iter().map(|lost| &*lost.host).collect();
        assert_eq!(lost, ["h2"], "{}", stderr(&output));
        assert_eq!(run.ended.as_ref().map(|end| end.status), Some(6));
        Ok(())
    });
}

#[test]
fn another_file_of_the_same_name_on_one_host_is_refused_for_all() {
    test("another file of the same name on one host", || {
        needed()?;
        let line = "curve target --depth 1 --mix read=50,write=50 --destroy target --out out";
        let others: [(&str, &str, &str); 2] = [
            (
                "other",
                "true",
                "'target' on h2 is not 'target' on h1: its first block differs",
            ),
            (
                "image",
                "mkfs.ext4 -qF",
                "rank 1 on h2: refused to write to 'target': it contains an ext4 filesystem",
            ),
        ];
        for (name, make, expected) in others {
            let cluster = Cluster::up(name, "mount --bind other target");
            let path = |name: &str| cluster.path(name);
            std::fs::write(path("target"), vec![1; 4 << 20]).unwrap();
            std::fs::write(path("other"), vec![2; 4 << 20]).unwrap();
            let words: Vec<&str> = make.split(' ').collect();
            let mut making = Command::new(words[0]);
            let made = making.args(&words[1..]).arg(path("other")).status();
            assert!(made.unwrap().success(), "{make}");
            let bytes = || ["target", "other"].map(|name| std::fs::read(path(name)).unwrap());
            let before = bytes();
            // The hosts have one kernel: what one rank holds open, the guard of another would see.
            let mut command = cluster.command("h1,h2,h3", line);
            let output = command.env("BOOT", "one").output().unwrap();
            assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
            assert!(stderr(&output).contains(expected), "{}", stderr(&output));
            assert_eq!(
                stderr(&output).matches("rigel: ").count(),
                1,
                "{}",
                stderr(&output)
            );
            assert!(bytes() == before, "nothing was written");
            assert!(!path("out").exists());
            cluster.wait_until_no_rank_is_left();
        }
        Ok(())
    });
}

#[test]
fn a_missing_host_or_program_is_reported_and_the_job_ends() {
    test("a missing host or program", || {
        const OURS: &str = "did not complete in 5s: a host was not started";
        needed()?;
        let line = "curve sim:8,100us --depth 1 --out out --join 5s";
        let cases = [
            // The launcher may end the job itself, before rank 0 has waited so long.
            ("gone", "h1,h9", "true", "Cannot open network namespace"),
            (
                "empty",
                "h1,h2",
                "mount -t tmpfs none bin",
                "No such file or directory",
            ),
        ];
        for (name, hosts, on_second, or_else) in cases {
            let cluster = Cluster::up(name, on_second);
            let output = cluster.start(hosts, line).wait_with_output().unwrap();
            let is_said = [OURS, or_else]
                .iter()
                .any(|why| stderr(&output).contains(why));
            assert!(is_said, "{name}: {}", stderr(&output));
            assert!(!output.status.success(), "{name}");
            assert!(!cluster.path("out").exists());
            cluster.wait_until_no_rank_is_left();
        }
        Ok(())
    });
}

#[test]
fn no_rank_outlives_its_launcher() {
    test("no rank outlives its launcher", || {
        needed()?;
        for (name, how) in [("k", "KILL"), ("te", "TERM"), ("int", "INT")] {
            let cluster = Cluster::up(name, "true");
            let child = cluster.running(600);
            signal(child.id(), how);
            cluster.wait_until_no_rank_is_left();
            let output = child.wait_with_output().unwrap();
            let run = cluster.journal();
            // Killed at once, rank 0 has no time to write the end.
            let has_end = how == "KILL" || run.ended.is_some();
            assert!(has_end, "{how}: {output:?} {:?}", run.ranks);
        }
        let cluster = Cluster::up("proxy", "true");
        let mut child = cluster.running(600);
        for proxy in cluster.processes("h3", "hydra_pmi_proxy") {
            signal(proxy.parse().unwrap(), "KILL");
        }
        cluster.wait_until_no_rank_is_left();
        let _ = child.kill();
        let _ = child.wait();
        // Whether rank 0 could still say why depends on what the launcher does first.
        let ended = cluster.journal().ended;
        assert!(
            ended.as_ref().is_none_or(|end| end.status != 0),
            "{ended:?}"
        );
        Ok(())
    });
}
