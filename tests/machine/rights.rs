//! Rights of the program file (`setcap`) serve nobody but a trace, and a watch of weeks keeps few.

use crate::common::{Missing, Place, Running, need, processes, rigel, test, text, wait_until};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Numbers of the rights that tracing needs: `CAP_PERFMON` and `CAP_BPF`.
const TRACING: u64 = 1 << 38 | 1 << 39;

/// `CAP_IPC_LOCK`, for rings of CPUs that come online later.
const LARGE_RINGS: u64 = 1 << 14;

/// A copy of a program in a directory for all, whose file brings these rights.
fn with_rights(place: &Place, program: &Path, rights: &str) -> Result<PathBuf, Missing> {
    std::fs::set_permissions(&place.0, PermissionsExt::from_mode(0o755)).unwrap();
    let copy = place.0.join(program.file_name().unwrap());
    // Not by this process: a child that another test starts meanwhile would hold it open for
    // writing, and it could not be run.
    need("cp", &[text(program), text(&copy)])?;
    need("setcap", &[rights, text(&copy)])?;
    Ok(copy)
}

/// A command of a user without rights, in the place. It sees the kernel's tracing where it is usual.
fn as_nobody(place: &Place, program: &Path) -> Command {
    const TRACEFS: &str = "[ -e /sys/kernel/tracing/events ] || \
                           mount -t tracefs none /sys/kernel/tracing; exec setpriv \"$@\"";
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c", TRACEFS, "sh"])
        .args(["--reuid=nobody", "--regid=65534", "--clear-groups", "--"])
        .arg(program)
        .current_dir(&place.0);
    command
}

fn output(command: &mut Command) -> Result<Output, Missing> {
    let output = command.output();
    output.map_err(|error| Missing(format!("unshare: {error}")))
}

/// The process of a program that traces.
fn tracing(child: &Child) -> u32 {
    *processes(child).last().unwrap()
}

/// The hexadecimal number in a line of a process's status.
fn status_of(pid: u32, line: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let value = status
        .lines()
        .find_map(|text| text.strip_prefix(line)?.strip_prefix(':'));
    u64::from_str_radix(value.unwrap().trim(), 16).unwrap()
}

/// The sets of every thread of a process.
fn permitted_of_threads(pid: u32) -> Vec<u64> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let statuses = tasks.flatten().filter_map(|task| {
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let value = status
            .lines()
            .find_map(|text| text.strip_prefix("CapPrm:"))?;
        u64::from_str_radix(value.trim(), 16).ok()
    });
    statuses.collect()
}

#[test]
fn rights_of_the_program_file_open_no_file_of_others() {
    test("rights_of_the_program_file_open_no_file_of_others", || {
        let place = Place::new("rights-file");
        let only = place.0.join("rootonly");
        std::fs::create_dir(&only).unwrap();
        let secret = only.join("file");
        std::fs::write(&secret, "root:$6$HASH\n").unwrap();
        std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::set_permissions(&only, PermissionsExt::from_mode(0o700)).unwrap();

        let rights = "cap_perfmon,cap_bpf,cap_dac_read_search+ep";
        let cat = with_rights(&place, Path::new("/bin/cat"), rights)?;
        let read = output(as_nobody(&place, &cat).arg(&secret))?;
        if read.stdout != b"root:$6$HASH\n" {
            return Err(Missing("a program file brings no rights here".into()));
        }
        let program = with_rights(&place, Path::new(env!("CARGO_BIN_EXE_rigel")), rights)?;
        for arguments in [
            &["import", "rootonly/file"][..],
            &["curve", "rootonly/file"],
            &["watch", "rootonly"],
            &[
                "watch",
                "postgres://u@127.0.0.1:1/d",
                "--password-file",
                "rootonly/file",
            ],
        ] {
            let refused = output(as_nobody(&place, &program).args(arguments))?;
            let said = String::from_utf8_lossy(&refused.stderr).to_lowercase();
            assert_eq!(refused.status.code(), Some(2), "{arguments:?}: {said}");
            assert!(
                said.contains("permission denied") && !said.contains("hash"),
                "{arguments:?}: {said}"
            );
        }
        Ok(())
    });
}

#[test]
fn a_watch_keeps_the_rights_to_trace_unused_and_no_others() {
    test(
        "a_watch_keeps_the_rights_to_trace_unused_and_no_others",
        || {
            let place = Place::new("rights-watch");
            let program = Path::new(env!("CARGO_BIN_EXE_rigel"));
            let all = "cap_perfmon,cap_bpf,cap_dac_read_search,cap_sys_admin,cap_setuid+ep";
            let copy = with_rights(&place, program, all)?;
            std::fs::set_permissions(&place.0, PermissionsExt::from_mode(0o777)).unwrap();
            let begun = |mut command: Command, name: &str| {
                let out = place.0.join(name);
                command
                    .args(["watch", ".", "--every", "1s", "--no-progress", "--out"])
                    .arg(&out)
                    .stdout(Stdio::null())
                    .stderr(Stdio::null());
                let child = Running(command.spawn().unwrap());
                wait_until("the watch has an interval", || {
                    std::fs::read_to_string(out.join("journal.jsonl"))
                        .is_ok_and(|text| text.lines().count() > 1)
                });
                child
            };
            // Root: what it had is gone once everything is open.
            let child = begun(rigel(&place, ""), "root");
            let pid = tracing(&child.0);
            assert_eq!(status_of(pid, "CapEff"), 0);
            assert_eq!(status_of(pid, "CapPrm"), TRACING | LARGE_RINGS);
            assert_eq!(status_of(pid, "NoNewPrivs"), 1);
            // The process that was started does not trace.
            assert!(pid != child.0.id());
            assert_eq!(status_of(child.0.id(), "CapPrm"), 0);
            for permitted in permitted_of_threads(pid) {
                assert!([0, TRACING | LARGE_RINGS].contains(&permitted));
            }
            drop(child);
            // `unshare`, which becomes the program.
            let child = begun(as_nobody(&place, &copy), "nobody");
            assert_eq!(status_of(tracing(&child.0), "CapEff"), 0);
            assert_eq!(status_of(tracing(&child.0), "CapPrm"), TRACING);
            assert_eq!(status_of(child.0.id(), "CapPrm"), 0);
            Ok(())
        },
    );
}

/// Options of the tracefs of this machine, which all mounts of it share, until it is dropped.
struct TracefsOptions;

impl TracefsOptions {
    fn set(options: &str) -> Result<Self, Missing> {
        const MOUNT: &str = "[ -e /sys/kernel/tracing/events ] || \
                             mount -t tracefs none /sys/kernel/tracing; \
                             mount -o remount,\"$1\" /sys/kernel/tracing";
        let mut command = Command::new("unshare");
        let output = output(command.args(["--mount", "sh", "-c", MOUNT, "sh", options]))?;
        if output.status.success() {
            Ok(Self)
        } else {
            let why = String::from_utf8_lossy(&output.stderr);
            Err(Missing(format!("tracefs with other options: {why}")))
        }
    }
}

impl Drop for TracefsOptions {
    fn drop(&mut self) {
        let _ = Self::set("gid=0,mode=700").map(std::mem::forget);
    }
}

#[test]
fn a_group_traces_with_the_rights_and_the_mount_that_the_documents_advise() {
    let name = "a_group_traces_with_the_rights_and_the_mount_that_the_documents_advise";
    test(name, || {
        const NOBODY: &str = "gid=65534,mode=750";
        let place = Place::new("rights-group");
        let program = Path::new(env!("CARGO_BIN_EXE_rigel"));
        let copy = with_rights(&place, program, "cap_perfmon,cap_bpf+p")?;
        std::fs::set_permissions(&place.0, PermissionsExt::from_mode(0o777)).unwrap();
        let documented = include_str!("../../docs/methods/watch.md");
        assert!(documented.contains("setcap cap_perfmon,cap_bpf+p "));
        assert!(documented.contains(",mode=750 /sys/kernel/tracing"));
        let _options = TracefsOptions::set(NOBODY)?;
        let out = place.0.join("run");
        let mut command = as_nobody(&place, &copy);
        command
            .args(["watch", ".", "--every", "1s", "--no-progress", "--out"])
            .arg(&out)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let child = Running(command.spawn().unwrap());
        let journal = out.join("journal.jsonl");
        wait_until("the watch has an interval", || {
            std::fs::read_to_string(&journal).is_ok_and(|text| text.lines().count() > 1)
        });
        drop(child);
        let text = std::fs::read_to_string(&journal).unwrap();
        assert!(!text.contains("not-traced"), "{text}");
        Ok(())
    });
}
