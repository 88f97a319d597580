//! The guard under attack: exactly the checked target is written, and everything that shares its
//! bytes is found.
//!
//! Each test does what somebody did, or could do, to make Rigel overwrite existing data. Tests that
//! need root, loop devices or a tool report it if that is missing, as in `guard.rs`.

use crate::common::{
    Loop, Missing, Mounted, Place, Running, loop_device, need, one_at_a_time, test, text, wait,
    wait_until,
};
use rigel_device::engine::guard;
use rigel_device::engine::layout::VolumeMap;
use rigel_device::engine::opened::Opened;
use rigel_device::engine::scratch::{Scratch, refuse_filling};
use rigel_device::engine::volume::Volume;
use rigel_model::{Bytes, Error, Layout, MIB};
use rustix::fs::{CWD, RenameFlags};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

const SIZE: u64 = 4 * MIB;

/// The steps of `rigel` between its command line and its first write.
fn open_to_write(path: &Path, destroy: &[PathBuf]) -> Result<Volume, Error> {
    let permit = guard::permit(Opened::open(path)?, destroy)?;
    Volume::to_write(
        &[permit],
        VolumeMap::new(&[SIZE], Layout::Concat, 4096)?,
        false,
    )
}

/// The guard must refuse `path` although it was named twice, and use these words.
#[track_caller]
fn refused(path: &Path, words: &str) {
    let error = open_to_write(path, &[path.to_path_buf()]).expect_err(words);
    let said = error.to_string();
    assert!(
        said.contains(words) && said.contains("\n  hint: "),
        "wanted {words}:\n{said}"
    );
}

#[track_caller]
fn permitted(path: &Path) {
    if let Err(error) = open_to_write(path, &[path.to_path_buf()]) {
        panic!("{error}");
    }
}

/// The attacker's own file, a victim's file that is to be overwritten, and links to both.
struct Stage {
    _place: Place,
    mine: PathBuf,
    victim: PathBuf,
    link: PathBuf,
    other: PathBuf,
}

impl Stage {
    fn new(name: &str) -> Self {
        let place = Place::new(name);
        let (mine, victim) = (place.file("mine", SIZE), place.file("victim", SIZE));
        let (link, other) = (place.0.join("link"), place.0.join("other"));
        symlink(&mine, &link).unwrap();
        symlink(&victim, &other).unwrap();
        Self {
            _place: place,
            mine,
            victim,
            link,
            other,
        }
    }

    /// In one step, so that `link` always leads somewhere.
    fn exchange(&self) {
        rustix::fs::renameat_with(CWD, &self.link, CWD, &self.other, RenameFlags::EXCHANGE)
            .unwrap();
    }

    fn leads_to_mine(&self) -> bool {
        std::fs::read_link(&self.link).unwrap() == self.mine
    }
}

fn first_bytes(path: &Path) -> [u8; 8] {
    let mut bytes = [0; 8];
    File::open(path)
        .unwrap()
        .read_exact_at(&mut bytes, 0)
        .unwrap();
    bytes
}

#[test]
fn writes_go_to_the_checked_file_even_if_its_path_changes() {
    let stage = Stage::new("exchanged");
    let opened = Opened::open(&stage.link).unwrap();
    stage.exchange();
    let permit = guard::permit(opened, std::slice::from_ref(&stage.mine)).unwrap();
    stage.exchange();
    stage.exchange();
    assert!(!stage.leads_to_mine());
    let map = VolumeMap::new(&[SIZE], Layout::Concat, 4096).unwrap();
    let volume = Volume::to_write(&[permit], map, false).unwrap();
    volume.files()[0].write_all_at(b"measured", 0).unwrap();
    assert_eq!(
        (&first_bytes(&stage.mine), first_bytes(&stage.victim)),
        (b"measured", [0; 8])
    );
    // The name in `--destroy` is resolved like any other: if it leads elsewhere, it does not permit
    // this target.
    let opened = Opened::open(&stage.victim).unwrap();
    assert!(guard::permit(opened, std::slice::from_ref(&stage.mine)).is_err());
}

#[test]
fn a_link_that_is_exchanged_without_pause_never_leads_to_the_victim() {
    let stage = Stage::new("raced");
    let over = AtomicBool::new(false);
    let (mut written, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                stage.exchange();
            }
        });
        // Many attempts, and more until both outcomes of the race occurred.
        for attempt in 0..100_000 {
            match open_to_write(&stage.link, std::slice::from_ref(&stage.mine)) {
                Ok(volume) => {
                    volume.files()[0].write_all_at(b"measured", 0).unwrap();
                    written += 1;
                }
                Err(error) => {
                    assert!(error.to_string().contains("--destroy"), "{error}");
                    refused += 1;
                }
            }
            if attempt >= 100 && written > 0 && refused > 0 {
                break;
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(
        written > 0 && refused > 0,
        "{written} written, {refused} refused: there was no race"
    );
    assert_eq!(
        (&first_bytes(&stage.mine), first_bytes(&stage.victim)),
        (b"measured", [0; 8])
    );
}

#[test]
fn an_open_file_without_a_name_is_not_taken_for_rigels_own() {
    let place = Place::new("inherited");
    let path = place.file("file", SIZE);
    let held = File::options().read(true).write(true).open(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let inherited = PathBuf::from(format!("/proc/self/fd/{}", held.as_raw_fd()));
    let error = open_to_write(&inherited, &[]).unwrap_err();
    assert!(error.to_string().contains("--destroy"), "{error}");
    // It is as good a target as any other if the user names it twice.
    permitted(&inherited);
}

#[test]
fn a_pipe_that_took_the_place_of_a_file_is_neither_waited_for_nor_opened() {
    let place = Place::new("pipe");
    let path = place.0.join("pipe");
    let owner_only = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(CWD, &path, rustix::fs::FileType::Fifo, owner_only, 0).unwrap();
    assert!(
        Opened::open(&path)
            .unwrap_err()
            .to_string()
            .contains("is a pipe")
    );
    // Nobody has opened the other end: a non-blocking writer is refused.
    let writer = rustix::fs::open(
        &path,
        rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::NONBLOCK,
        owner_only,
    );
    assert_eq!(writer.unwrap_err(), rustix::io::Errno::NXIO);
}

// ---- what a target stands on ----

/// A loop device over a part of a file.
fn loop_from(file: &Path, offset: u64) -> Result<Loop, Missing> {
    let offset = offset.to_string();
    need(
        "losetup",
        &["--find", "--show", "--offset", &offset, text(file)],
    )
    .map(|device| Loop(device.into()))
}

#[test]
fn a_second_loop_device_on_a_mounted_image_is_refused() {
    test("a_second_loop_device_on_a_mounted_image_is_refused", || {
        let _turn = one_at_a_time();
        let place = Place::new("twin");
        let image = place.file("image", 64 * MIB);
        let first = Loop::new(&image)?;
        need("mkfs.ext4", &["-q", text(&first.0)])?;
        // Behind every superblock: this area alone shows nothing of the filesystem.
        let second = loop_from(&image, 20 * MIB)?;
        refused(&second.0, "is backed by '");
        let mounted = Mounted::new(&first.0, &place)?;
        refused(
            &second.0,
            &format!("shares storage with {}, which is mounted on", name(&first)),
        );
        drop(mounted);
        Ok(())
    });
}

#[test]
fn a_loop_device_over_a_mounted_one_is_refused() {
    test("a_loop_device_over_a_mounted_one_is_refused", || {
        let _turn = one_at_a_time();
        let place = Place::new("over");
        let first = Loop::new(&place.file("image", 64 * MIB))?;
        need("mkfs.ext4", &["-q", text(&first.0)])?;
        let second = loop_from(&first.0, 20 * MIB)?;
        let mounted = Mounted::new(&first.0, &place)?;
        refused(
            &second.0,
            &format!("is backed by {}, which is mounted on", name(&first)),
        );
        drop(mounted);
        Ok(())
    });
}

#[test]
fn a_loop_device_over_a_databases_file_is_refused() {
    test("a_loop_device_over_a_databases_file_is_refused", || {
        let _turn = one_at_a_time();
        let place = Place::new("database");
        place.file("PG_VERSION", 0);
        let file = place.file("table", SIZE);
        let device = Loop::new(&file)?;
        refused(&device.0, "which is a PostgreSQL data directory");
        // The file is found by its identity, whatever its current name.
        std::fs::rename(&file, place.0.join("renamed")).unwrap();
        refused(&device.0, "which is a PostgreSQL data directory");
        Ok(())
    });
}

fn name(device: &Loop) -> &str {
    device.0.file_name().and_then(|name| name.to_str()).unwrap()
}

#[test]
fn a_second_name_of_a_databases_file_is_refused() {
    let place = Place::new("linked");
    std::fs::create_dir(place.0.join("data")).unwrap();
    place.file("data/PG_VERSION", 0);
    let file = place.file("data/table", SIZE);
    let second = place.0.join("second");
    std::fs::hard_link(&file, &second).unwrap();
    refused(&second, "has 2 names");
    std::fs::remove_file(&file).unwrap();
    permitted(&second);
}

#[test]
fn a_directory_of_a_database_is_known_wherever_it_is_mounted() {
    test(
        "a_directory_of_a_database_is_known_wherever_it_is_mounted",
        || {
            let place = Place::new("bound");
            std::fs::create_dir_all(place.0.join("data/base")).unwrap();
            place.file("data/PG_VERSION", 0);
            place.file("data/base/table", SIZE);
            let point = place.0.join("mounted");
            std::fs::create_dir(&point).unwrap();
            need(
                "mount",
                &["--bind", text(&place.0.join("data/base")), text(&point)],
            )?;
            let _mounted = Mounted(point.clone());
            refused(&point.join("table"), "which is a PostgreSQL data directory");
            Ok(())
        },
    );
}

#[test]
fn a_file_in_a_layer_of_an_overlay_is_refused() {
    test("a_file_in_a_layer_of_an_overlay_is_refused", || {
        let _turn = one_at_a_time();
        let place = Place::new("layers");
        for directory in [
            "lower/base/1",
            "upper/base/1",
            "upper/other",
            "work",
            "merged",
            "near",
        ] {
            std::fs::create_dir_all(place.0.join(directory)).unwrap();
        }
        place.file("lower/base/PG_VERSION", 0);
        let files =
            ["lower/file", "upper/other/file", "near/file"].map(|file| place.file(file, SIZE));
        let of_database = place.file("upper/base/1/16384", SIZE);
        for file in files.iter().chain([&of_database]) {
            permitted(file);
        }
        let layers = |prefix: &str| {
            format!("lowerdir={prefix}lower,upperdir={prefix}upper,workdir={prefix}work")
        };
        // By paths from the root, and as programs for containers mount it.
        for prefix in [format!("{}/", text(&place.0)), String::new()] {
            let script = "cd \"$1\" && mount -t overlay -o \"$2\" overlay merged";
            need(
                "sh",
                &["-c", script, "sh", text(&place.0), &layers(&prefix)],
            )?;
            let mounted = Mounted(place.0.join("merged"));
            let words = format!(
                "a layer of the overlay filesystem mounted on {}",
                mounted.0.display()
            );
            refused(&files[0], &words);
            refused(&files[1], &words);
            permitted(&files[2]);
            // What makes it a database's is in the other layer.
            refused(
                &of_database,
                "merged/base, which is a PostgreSQL data directory",
            );
            let device = Loop::new(&files[0])?;
            refused(&device.0, &words);
            drop(device);
            // The overlay itself is as good a directory as any.
            permitted(&mounted.0.join("other/file"));
            drop(mounted);
        }
        Ok(())
    });
}

#[test]
fn a_file_of_a_tablespace_is_refused() {
    let place = Place::new("tablespace");
    std::fs::create_dir_all(place.0.join("PG_15_202209061/5")).unwrap();
    refused(
        &place.file("PG_15_202209061/5/16384", SIZE),
        "which is a PostgreSQL tablespace",
    );
}

#[test]
fn filesystems_that_are_seldom_seen_are_refused() {
    test("filesystems_that_are_seldom_seen_are_refused", || {
        let place = Place::new("seldom");
        let source = place.0.join("source");
        std::fs::create_dir(&source).unwrap();
        std::fs::write(source.join("file"), "content").unwrap();
        let image = place.0.join("image");
        need("mkfs.cramfs", &[text(&source), text(&image)])?;
        refused(&image, "contains a cramfs filesystem");
        let image = place.file("bfs", SIZE);
        need("mkfs.bfs", &[text(&image)])?;
        refused(&image, "contains a BFS filesystem");
        Ok(())
    });
}

// ---- who holds it ----

/// A process that holds what the shell opens with `redirection`.
fn holder_by(redirection: &str) -> Running {
    let script = format!("exec sleep 600 {redirection}");
    let holder = Running(Command::new("sh").args(["-c", &script]).spawn().unwrap());
    let comm = format!("/proc/{}/comm", holder.0.id());
    wait_until("the shell has become sleep", || {
        std::fs::read_to_string(&comm).is_ok_and(|name| name == "sleep\n")
    });
    holder
}

/// A process of Python that holds `path` in a way of its own, and says so.
fn python(script: &str, path: &Path) -> Result<Running, Missing> {
    let mut child = Command::new("python3")
        .args(["-c", script, text(path)])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| Missing(format!("python3: {error}")))?;
    let mut said = String::new();
    let read = BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut said);
    let holder = Running(child);
    match (read, said.as_str()) {
        (Ok(_), "held\n") => Ok(holder),
        _ => Err(Missing(format!("python3 cannot hold a device: {said}"))),
    }
}

/// A loop device that is held in this way is refused, and a file too.
fn refused_while_held(name: &str, script: &str, words: &str) -> Result<(), Missing> {
    let (_turn, place, device) = loop_device(name, SIZE)?;
    let holder = python(script, &device.0)?;
    refused(&device.0, words);
    drop(holder);
    permitted(&device.0);
    let file = place.file("other", SIZE);
    let _holder = python(script, &file)?;
    refused(&file, words);
    Ok(())
}

#[test]
fn a_device_open_in_a_thread_after_the_main_thread_ended_is_refused() {
    test(
        "a_device_open_in_a_thread_after_the_main_thread_ended_is_refused",
        || {
            refused_while_held(
                "thread",
                "import ctypes, os, sys, threading, time\n\
                 def hold():\n    \
                     time.sleep(0.2)\n    \
                     fd = os.open(sys.argv[1], os.O_RDWR)\n    \
                     print('held', flush=True)\n    \
                     time.sleep(600)\n\
                 threading.Thread(target=hold).start()\n\
                 ctypes.CDLL(None).syscall(60, 0)\n",
                "is held open by process",
            )
        },
    );
}

#[test]
fn a_device_open_in_a_thread_with_descriptors_of_its_own_is_refused() {
    test(
        "a_device_open_in_a_thread_with_descriptors_of_its_own_is_refused",
        || {
            refused_while_held(
                "table",
                "import ctypes, os, sys, threading, time\n\
                 def hold():\n    \
                     assert ctypes.CDLL(None).unshare(0x400) == 0\n    \
                     fd = os.open(sys.argv[1], os.O_RDWR)\n    \
                     print('held', flush=True)\n    \
                     time.sleep(600)\n\
                 threading.Thread(target=hold).start()\n\
                 time.sleep(600)\n",
                "is held open by process",
            )
        },
    );
}

#[test]
fn a_device_that_is_mapped_and_closed_is_refused() {
    test("a_device_that_is_mapped_and_closed_is_refused", || {
        refused_while_held(
            "mapped",
            "import ctypes, os, sys, time\n\
             libc = ctypes.CDLL(None)\n\
             libc.mmap.restype = ctypes.c_void_p\n\
             libc.mmap.argtypes = [ctypes.c_void_p] + [ctypes.c_size_t] + [ctypes.c_int] * 3 + \
             [ctypes.c_long]\n\
             fd = os.open(sys.argv[1], os.O_RDWR)\n\
             at = libc.mmap(None, 4096, 3, 1, fd, 0)\n\
             assert at not in (None, 2**64 - 1)\n\
             os.close(fd)\n\
             print('held', flush=True)\n\
             time.sleep(600)\n",
            "is held open (mapped) by process",
        )
    });
}

#[test]
fn a_partition_of_a_disk_that_is_open_for_writing_is_refused() {
    test(
        "a_partition_of_a_disk_that_is_open_for_writing_is_refused",
        || {
            let _turn = one_at_a_time();
            let place = Place::new("whole");
            let file = place.file("file", 64 * MIB);
            need(
                "sh",
                &[
                    "-c",
                    &format!(
                        "printf 'label: dos\\n,,L\\n' | sfdisk --quiet '{}'",
                        text(&file)
                    ),
                ],
            )?;
            let device = Loop::new(&file)?;
            let part = PathBuf::from(format!("{}p1", device.0.display()));
            if !part.exists() {
                need("partx", &["--add", text(&device.0)])?;
            }
            let holder = holder_by(&format!("<> {}", device.0.display()));
            refused(
                &part,
                &format!(
                    "is a partition of {}, which is held open for writing by process",
                    name(&device)
                ),
            );
            drop(holder);
            let reader = holder_by(&format!("< {}", device.0.display()));
            permitted(&part);
            drop(reader);
            Ok(())
        },
    );
}

/// Output of `rigel` for a run that writes to `target`, started by `wrapper`.
fn run_wrapped(place: &Place, wrapper: &[&str], target: &Path) -> Result<String, Missing> {
    let (program, arguments) = wrapper.split_first().expect("a wrapper is a program");
    let output = Command::new(program)
        .args(arguments)
        .arg(env!("CARGO_BIN_EXE_rigel"))
        .args([
            "orion",
            "-run",
            "advanced",
            "-matrix",
            "point",
            "-num_small",
            "1",
            "-num_large",
            "0",
        ])
        .args([
            "-size_small",
            "8",
            "-write",
            "100",
            "-cache_size",
            "0",
            "-duration",
            "1",
            "--no-progress",
        ])
        .arg("--target")
        .arg(target)
        .arg("--destroy")
        .arg(target)
        .current_dir(&place.0)
        .output()
        .map_err(|error| Missing(format!("{program}: {error}")))?;
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn a_device_is_not_written_where_its_holders_cannot_be_seen() {
    test(
        "a_device_is_not_written_where_its_holders_cannot_be_seen",
        || {
            let (_turn, place, device) = loop_device("unseen", SIZE)?;
            let _holder = holder_by(&format!("<> {}", device.0.display()));
            let said = run_wrapped(
                &place,
                &["unshare", "--pid", "--fork", "--mount-proc"],
                &device.0,
            )?;
            assert!(
                said.contains(
                    "the processes that have it open cannot be listed: this container has its own \
                     process namespace"
                ),
                "{said}"
            );
            // The owner of the node, who may not inspect the processes of others.
            std::fs::set_permissions(&place.0, PermissionsExt::from_mode(0o777)).unwrap();
            need("chown", &["nobody", text(&device.0)])?;
            let wrapper = ["setpriv", "--reuid=nobody", "--clear-groups", "--"];
            // A loop device of another test is a reason of its own, while it is attached.
            let is_of_others = |said: &Result<String, Missing>| {
                said.as_ref()
                    .is_ok_and(|said| said.contains("the backing of /dev/loop"))
            };
            let mut said = run_wrapped(&place, &wrapper, &device.0);
            wait_until("no other loop device is attached", || {
                let is_again = is_of_others(&said);
                if is_again {
                    said = run_wrapped(&place, &wrapper, &device.0);
                }
                !is_again
            });
            need("chown", &["root", text(&device.0)])?;
            let said = said?;
            if !said.contains("refused") {
                return Err(Missing(format!(
                    "nobody cannot run the program here: {said}"
                )));
            }
            assert!(
                said.contains("belongs to another user; run as root"),
                "{said}"
            );
            Ok(())
        },
    );
}

#[test]
fn nothing_is_written_where_proc_or_sys_cannot_be_read() {
    test(
        "nothing_is_written_where_proc_or_sys_cannot_be_read",
        || {
            let place = Place::new("blind");
            let file = place.file("file", 64 * MIB);
            std::fs::write(&file, vec![7; 64 << 20]).unwrap();
            let cases = [
                ("mount -t tmpfs none /sys", "cannot be read from /sys"),
                (
                    "mount --bind /dev/null /proc/swaps",
                    "/proc/swaps cannot be read",
                ),
                ("mount -t tmpfs none /proc", "/proc is not mounted here"),
            ];
            for (hide, words) in cases {
                let script = format!("{hide} && exec \"$@\"");
                let said = run_wrapped(
                    &place,
                    &["unshare", "--mount", "sh", "-c", &script, "sh"],
                    &file,
                )?;
                assert!(said.contains(words), "{hide}: {said}");
            }
            Ok(())
        },
    );
}

// ---- what Rigel made itself ----

/// A kept scratch file.
fn kept(place: &Place) -> PathBuf {
    let scratch = Scratch::make(&place.0, Some(Bytes(64 * MIB)), true, &mut |_, _| true).unwrap();
    scratch.display_name().into()
}

#[test]
fn a_kept_scratch_file_changed_by_others_is_protected() {
    let place = Place::new("kept");
    let path = kept(&place);
    open_to_write(&path, &[]).unwrap();
    // The shell's `>`: the file stays the same, with completely different content.
    std::fs::write(&path, "somebody's backup").unwrap();
    let said = open_to_write(&path, &[]).unwrap_err().to_string();
    assert!(
        said.contains("that Rigel did not make") && said.contains("--destroy"),
        "{said}"
    );
    let renamed = place.0.join("backup.tar");
    std::fs::rename(&path, &renamed).unwrap();
    assert!(open_to_write(&renamed, &[]).is_err());
    permitted(&renamed);
}

#[test]
fn a_kept_scratch_file_whose_time_was_set_back_is_protected() {
    let place = Place::new("set-back");
    let path = kept(&place);
    let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
    // As `cp -p`, `rsync -t` and restores do: in place, with the same length and the old time.
    let file = File::options().write(true).open(&path).unwrap();
    let length = usize::try_from(file.metadata().unwrap().len()).unwrap();
    file.write_all_at(&vec![7; length], 0).unwrap();
    file.set_modified(changed).unwrap();
    drop(file);
    let said = open_to_write(&path, &[]).unwrap_err().to_string();
    assert!(said.contains("that Rigel did not make"), "{said}");
    permitted(&path);
}

#[test]
fn a_kept_scratch_file_of_which_a_part_was_rewritten_is_protected() {
    let place = Place::new("part");
    let path = kept(&place);
    open_to_write(&path, &[]).unwrap();
    let changed = std::fs::metadata(&path).unwrap().modified().unwrap();
    // The mark is younger than the filesystem's clock may be coarse.
    wait(1100);
    // Between the blocks by which its content is known, as `rsync --inplace -t` and restores do.
    let file = File::options().write(true).open(&path).unwrap();
    file.write_all_at(&vec![7; 2 << 20], 1 << 20).unwrap();
    file.set_modified(changed).unwrap();
    drop(file);
    let said = open_to_write(&path, &[]).unwrap_err().to_string();
    assert!(said.contains("that Rigel did not make"), "{said}");
    permitted(&path);
}

#[test]
fn a_mark_is_void_after_any_change_of_the_file_and_marks_of_older_versions_are_not_known() {
    let place = Place::new("void");
    let path = kept(&place);
    let mut mark = [0; 256];
    let length = rustix::fs::getxattr(&path, "user.rigel.scratch", &mut mark[..]).unwrap();
    let mark = std::str::from_utf8(&mark[..length]).unwrap();
    open_to_write(&path, &[]).unwrap();
    wait(1100);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    assert!(open_to_write(&path, &[]).is_err());
    // Without the time.
    let (older, _) = mark.rsplit_once(' ').unwrap();
    let flags = rustix::fs::XattrFlags::empty();
    rustix::fs::setxattr(&path, "user.rigel.scratch", older.as_bytes(), flags).unwrap();
    assert!(open_to_write(&path, &[]).is_err());
    // A mark that somebody set again is as old as it was.
    rustix::fs::setxattr(&path, "user.rigel.scratch", mark.as_bytes(), flags).unwrap();
    assert!(open_to_write(&path, &[]).is_err());
    permitted(&path);
}

#[test]
fn a_kept_scratch_file_written_by_rigel_needs_no_confirmation() {
    let place = Place::new("rewritten");
    let path = kept(&place);
    for _ in 0..2 {
        let volume = open_to_write(&path, &[]).unwrap();
        // The file clock has a resolution of some milliseconds.
        wait(50);
        volume.files()[0].write_all_at(b"measured", 0).unwrap();
    }
    // Naming a file twice does not make it Rigel's.
    std::fs::write(&path, vec![7; 1 << 20]).unwrap();
    drop(open_to_write(&path, std::slice::from_ref(&path)).unwrap());
    assert!(open_to_write(&path, &[]).is_err());
}

#[test]
fn holes_that_would_fill_the_filesystem_are_not_written() {
    test(
        "holes_that_would_fill_the_filesystem_are_not_written",
        || {
            let place = Place::new("filling");
            let small = Mounted::in_memory(&place, "size=160m")?;
            let file = |name: &str, size: u64| {
                let path = place.file(&format!("small/{name}"), size);
                Opened::open(&path).unwrap()
            };
            let (large, half) = (file("large", 900 * MIB), file("half", 60 * MIB));
            assert_eq!(refuse_filling(std::slice::from_ref(&half)), Ok(()));
            let said = refuse_filling(&[half, large]).unwrap_err().to_string();
            assert!(said.contains("would fill its filesystem"), "{said}");
            // Two files that fit one by one, but not together.
            let said = refuse_filling(&[file("one", 60 * MIB), file("two", 60 * MIB)])
                .unwrap_err()
                .to_string();
            assert!(said.contains("120 MiB of the blocks to write"), "{said}");
            drop(small);
            Ok(())
        },
    );
}
