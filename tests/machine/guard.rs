//! The guard refuses to destroy existing data, on real files, loop devices and filesystems.
//!
//! Most of these tests need root, loop devices and a tool. If one is missing the test prints
//! `skipped: <test>: <reason>` and passes, unless `RIGEL_REQUIRE_ALL` is set: then it fails, so
//! that nothing is skipped silently on a machine that should have everything. The setup of a test
//! is removed even if the test fails.
//!
//! A new refusal of the guard needs a test here.

use crate::common::{
    Loop, Missing, Mounted, Place, Running, loop_device, need, one_at_a_time, say_skipped, test,
    text, wait_until,
};
use rigel_device::engine::guard;
use rigel_device::engine::opened::Opened;
use rigel_device::engine::scratch::Scratch;
use rigel_model::{Bytes, Error, MIB};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Swap in use, turned off on drop.
struct Swap(PathBuf);

impl Swap {
    fn new(path: &Path) -> Result<Self, Missing> {
        need("mkswap", &[text(path)])?;
        need("swapon", &[text(path)]).map(|_| Self(path.into()))
    }
}

impl Drop for Swap {
    fn drop(&mut self) {
        let _ = need("swapoff", &[text(&self.0)]);
    }
}

/// A process that holds a file open.
fn holder_of(path: &Path) -> Running {
    let mut command = Command::new("sleep");
    let command = command.arg("3600").stdin(File::open(path).unwrap());
    Running(command.spawn().unwrap())
}

fn permit_write(path: &Path, destroy: &[PathBuf]) -> Result<(), Error> {
    guard::permit(Opened::open(path)?, destroy).map(drop)
}

/// The guard must refuse `path` although it was named twice, and mention it, use these words, and
/// offer a hint.
#[track_caller]
fn refused(path: &Path, words: &str) {
    let error = permit_write(path, &[path.to_path_buf()]).expect_err(words);
    let said = error.to_string();
    assert!(
        said.contains(words) && said.contains(text(path)) && said.contains("\n  hint: "),
        "wanted {words}:\n{said}"
    );
    assert_eq!(error.exit_status(), 2, "{said}");
}

#[track_caller]
fn permitted(path: &Path, destroy: &[PathBuf]) {
    if let Err(error) = permit_write(path, destroy) {
        panic!("{error}");
    }
}

const SIZE: u64 = 64 * MIB;

#[test]
fn a_bare_file_is_refused_until_it_is_named_twice() {
    let place = Place::new("bare");
    let (file, other) = (place.file("file", SIZE), place.file("other", SIZE));
    let said = permit_write(&file, &[]).unwrap_err().to_string();
    assert!(
        said.contains(&format!("--destroy {}", file.display())),
        "{said}"
    );
    assert!(permit_write(&file, std::slice::from_ref(&other)).is_err());
    permitted(&file, std::slice::from_ref(&file));
    // Another spelling of the same path, and a link to it.
    let link = place.0.join("link");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    permitted(
        &file,
        &[
            other,
            place
                .0
                .join("../")
                .join(place.0.file_name().unwrap())
                .join("file"),
        ],
    );
    permitted(&file, std::slice::from_ref(&link));
    permitted(&link, std::slice::from_ref(&file));
}

#[test]
fn a_file_of_random_bytes_is_permitted_when_named_twice() {
    let place = Place::new("random");
    let path = place.0.join("file");
    let mut bytes = vec![0; 3 << 20];
    rigel_model::workload::content::fill(
        &mut bytes,
        &mut rigel_model::workload::rng::Rng::new(11, 0),
    );
    File::create(&path).unwrap().write_all(&bytes).unwrap();
    permitted(&path, std::slice::from_ref(&path));
}

#[test]
fn a_file_made_by_rigel_needs_no_confirmation() {
    let place = Place::new("scratch");
    let scratch = Scratch::make(&place.0, Some(Bytes(SIZE)), false, &mut |_, _| true).unwrap();
    guard::permit(scratch.opened().unwrap(), &[]).unwrap();
    drop(scratch);
    let kept = Scratch::make(&place.0, Some(Bytes(SIZE)), true, &mut |_, _| true).unwrap();
    let path = PathBuf::from(kept.display_name());
    drop(kept);
    permitted(&path, &[]);
    // A copy has the bytes but not the permission.
    let copy = place.0.join("copy");
    std::fs::copy(&path, &copy).unwrap();
    assert!(permit_write(&copy, &[]).is_err());
}

#[test]
fn only_files_and_devices_are_accepted() {
    let place = Place::new("kinds");
    refused(&place.0, "is a directory");
    refused(&place.0.join("absent"), "does not exist");
    refused(Path::new("/dev/null"), "is a character device");
}

#[test]
fn a_bare_device_is_refused_until_it_is_named_twice() {
    test("a_bare_device_is_refused_until_it_is_named_twice", || {
        let (_turn, _place, device) = loop_device("device", SIZE)?;
        let said = permit_write(&device.0, &[]).unwrap_err().to_string();
        assert!(
            said.contains(&format!("--destroy {}", device.0.display())) && said.contains("64 MiB"),
            "{said}"
        );
        permitted(&device.0, std::slice::from_ref(&device.0));
        Ok(())
    });
}

#[test]
fn a_read_only_device_is_refused_before_the_first_point() {
    test(
        "a_read_only_device_is_refused_before_the_first_point",
        || {
            let (_turn, place, device) = loop_device("read-only", SIZE)?;
            need("blockdev", &["--setro", text(&device.0)])?;
            let shown = device.0.display();
            let line = format!(
                "curve {shown} --mix write=100 --depth 1 --destroy {shown} --allow-holes --out run"
            );
            let output = crate::common::ends(&place, &line, 2);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(
                said.contains(&format!("refused to write to '{shown}': it is read-only"))
                    && said.contains("blockdev --setrw"),
                "{said}"
            );
            assert!(!place.0.join("run").exists());
            need("blockdev", &["--setrw", text(&device.0)])?;
            permitted(&device.0, std::slice::from_ref(&device.0));
            Ok(())
        },
    );
}

#[test]
fn a_loop_device_over_holes_is_refused_as_its_file_is() {
    test("a_loop_device_over_holes_is_refused_as_its_file_is", || {
        let _turn = one_at_a_time();
        let place = Place::new("holes");
        let file = place.file("file", SIZE);
        // The first half is written.
        let half = usize::try_from(SIZE / 2).unwrap();
        File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .write_all(&vec![7; half])
            .unwrap();
        let run = |line: &str| {
            let output = crate::common::rigel(&place, line).output().unwrap();
            let said = [output.stdout, output.stderr].concat();
            let words = String::from_utf8_lossy(&said)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ");
            (output.status.code(), words)
        };
        let (status, said) = run("curve file --depth 1");
        assert!(said.contains("50 % of file was never written"), "{said}");
        assert_eq!(status, Some(2), "{said}");
        let device = Loop::new(&file)?;
        let shown = device.0.display();
        for (line, wanted) in [("curve --depth 1", 2), ("check --verbose", 3)] {
            let (status, said) = run(&format!("{line} {shown}"));
            assert!(
                said.contains(&format!("50 % of {shown} was never written")),
                "{said}"
            );
            assert_eq!(status, Some(wanted), "{said}");
        }
        drop(device);
        // Of a part of it, that part counts. What else is said depends on the machine.
        let offset = (SIZE / 2).to_string();
        for (part, is_empty) in [("--offset", true), ("--sizelimit", false)] {
            let device =
                Loop(need("losetup", &["--find", "--show", part, &offset, text(&file)])?.into());
            let (_, said) = run(&format!("check --verbose {}", device.0.display()));
            assert!(said.contains("rigel check of /dev/loop"), "{said}");
            let words = format!("100 % of {} was never written", device.0.display());
            assert_eq!(said.contains(&words), is_empty, "{said}");
            assert_eq!(said.contains("was never written"), is_empty, "{said}");
        }
        Ok(())
    });
}

#[test]
fn a_mounted_device_is_refused_and_then_its_filesystem() {
    test(
        "a_mounted_device_is_refused_and_then_its_filesystem",
        || {
            let (_turn, place, device) = loop_device("mounted", SIZE)?;
            need("mkfs.ext4", &["-q", text(&device.0)])?;
            let mounted = Mounted::new(&device.0, &place)?;
            refused(&device.0, "it is mounted on ");
            drop(mounted);
            refused(&device.0, "contains an ext4 filesystem");
            Ok(())
        },
    );
}

#[test]
fn a_device_that_is_mounted_in_another_container_is_refused() {
    test(
        "a_device_that_is_mounted_in_another_container_is_refused",
        || {
            let (_turn, place, device) = loop_device("container", SIZE)?;
            need("mkfs.ext4", &["-q", text(&device.0)])?;
            let script = format!(
                "mount {} {} && echo mounted && exec sleep 3600",
                text(&device.0),
                text(&place.0)
            );
            let mut container = Command::new("unshare")
                .args(["--mount", "sh", "-c", &script])
                .stdout(Stdio::piped())
                .spawn()
                .map(Running)
                .map_err(|error| Missing(format!("unshare: {error}")))?;
            let mut answer = [0; 8];
            let read = container
                .0
                .stdout
                .take()
                .expect("it is piped")
                .read_exact(&mut answer);
            read.map_err(|_| Missing("nothing can be mounted in a namespace of its own".into()))?;
            // As far as this process sees, nothing is mounted.
            refused(&device.0, "is held open by the kernel");
            drop(container);
            Ok(())
        },
    );
}

#[test]
fn a_disk_is_refused_for_its_mounted_partition() {
    test("a_disk_is_refused_for_its_mounted_partition", || {
        let _turn = one_at_a_time();
        let place = Place::new("partition");
        let file = place.file("file", SIZE);
        partition(&file, "dos")?;
        let device = Loop::new(&file)?;
        let first = PathBuf::from(format!("{}p1", device.0.display()));
        if !first.exists() {
            // A kernel that does not know this kind of table must be told about the partition.
            need("partx", &["--add", text(&device.0)])?;
        }
        need("mkfs.ext4", &["-q", text(&first)])?;
        let mounted = Mounted::new(&first, &place)?;
        refused(&device.0, "has a partition, ");
        refused(&first, "it is mounted on ");
        drop(mounted);
        // Another test's namespace that was made meanwhile has the mount until it ends.
        wait_until("no namespace has the partition mounted", || {
            let error = permit_write(&first, std::slice::from_ref(&first)).unwrap_err();
            !error.to_string().contains("held open by the kernel")
        });
        refused(&first, "contains an ext4 filesystem");
        refused(&device.0, "contains a partition table (MBR)");
        Ok(())
    });
}

#[test]
fn a_disk_is_refused_for_what_its_partition_contains_without_a_table() {
    let name = "a_disk_is_refused_for_what_its_partition_contains_without_a_table";
    test(name, || {
        let _turn = one_at_a_time();
        let place = Place::new("partition-wiped");
        let file = place.file("file", SIZE);
        partition(&file, "dos")?;
        let device = Loop::new(&file)?;
        let first = PathBuf::from(format!("{}p1", device.0.display()));
        if !first.exists() {
            need("partx", &["--add", text(&device.0)])?;
        }
        let named = std::slice::from_ref(&device.0);
        let wipe = |path: &Path| {
            let disk = File::options().write(true).open(path).unwrap();
            std::os::unix::fs::FileExt::write_all_at(&disk, &[0; 4096], 0).unwrap();
        };
        need("mkfs.ext4", &["-q", text(&first)])?;
        // By the file below, so that the kernel does not read the table again.
        wipe(&file);
        need("blockdev", &["--flushbufs", text(&device.0)])?;
        if !first.exists() {
            return Err(Missing("the kernel forgot the partition".into()));
        }
        refused(&device.0, "that contains an ext4 filesystem");
        // Without it nothing speaks against a disk that was named twice.
        wipe(&first);
        need("blockdev", &["--flushbufs", text(&first)])?;
        wait_until("nothing holds the disk", || {
            permit_write(&device.0, named).is_ok()
        });
        Ok(())
    });
}

/// Creates one partition over the whole file.
fn partition(file: &Path, label: &str) -> Result<(), Missing> {
    need(
        "sh",
        &[
            "-c",
            &format!(
                "printf 'label: {label}\\n,,L\\n' | sfdisk --quiet '{}'",
                file.display()
            ),
        ],
    )
    .map(drop)
}

#[test]
fn partition_tables_are_refused() {
    test("partition_tables_are_refused", || {
        let _turn = one_at_a_time();
        let place = Place::new("tables");
        for (label, words) in [("gpt", "(GPT)"), ("dos", "(MBR)")] {
            let file = place.file(label, SIZE);
            partition(&file, label)?;
            refused(&file, words);
            let device = Loop::new(&file)?;
            refused(&device.0, words);
        }
        // The start of the disk was wiped; the copy at its end still exists.
        let file = place.file("wiped", SIZE);
        partition(&file, "gpt")?;
        let wiped = File::options().write(true).open(&file).unwrap();
        std::os::unix::fs::FileExt::write_all_at(&wiped, &[0; 8192], 0).unwrap();
        drop(wiped);
        refused(&file, "the backup of a partition table");
        Ok(())
    });
}

#[test]
fn filesystems_are_refused_on_devices_and_in_files() {
    test("filesystems_are_refused_on_devices_and_in_files", || {
        let _turn = one_at_a_time();
        let place = Place::new("filesystems");
        let kinds: [(&str, &[&str], &str); 4] = [
            ("mkfs.ext4", &["-q"], "an ext4 filesystem"),
            ("mkfs.ext3", &["-q"], "an ext3 filesystem"),
            ("mkfs.ext2", &["-q"], "an ext2 filesystem"),
            ("mkfs.xfs", &["-q", "-f"], "an XFS filesystem"),
        ];
        for (program, options, words) in kinds {
            // XFS needs at least 300 MB; the file has holes, so this costs little.
            let file = place.file(program, 400 * MIB);
            need(program, &[options, &[text(&file)]].concat())?;
            refused(&file, words);
            let device = Loop::new(&file)?;
            refused(&device.0, words);
        }
        Ok(())
    });
}

#[test]
fn the_log_device_of_an_xfs_filesystem_is_refused() {
    test("the_log_device_of_an_xfs_filesystem_is_refused", || {
        let _turn = one_at_a_time();
        let place = Place::new("xfs-log");
        let data = Loop::new(&place.file("data", 400 * MIB))?;
        let log = Loop::new(&place.file("log", 100 * MIB))?;
        let option = format!("logdev={},size=80m", log.0.display());
        need("mkfs.xfs", &["-q", "-f", "-l", &option, text(&data.0)])?;
        refused(&log.0, "contains the log of an XFS filesystem");
        let point = place.0.join("mounted");
        std::fs::create_dir(&point).unwrap();
        let option = format!("logdev={}", log.0.display());
        // Its head moves on.
        for round in 0..3 {
            need("mount", &["-o", &option, text(&data.0), text(&point)])?;
            let mounted = Mounted(point.clone());
            for number in 0..200 {
                std::fs::write(point.join(format!("{round}-{number}")), "content").unwrap();
            }
            refused(&log.0, "is held open by the kernel");
            drop(mounted);
            refused(&log.0, "contains the log of an XFS filesystem");
        }
        Ok(())
    });
}

#[test]
fn rarer_filesystems_are_refused_too() {
    test("rarer_filesystems_are_refused_too", || {
        let place = Place::new("rarer");
        for (program, words) in [
            ("mkfs.btrfs", "btrfs"),
            ("mkfs.vfat", "FAT"),
            ("mkfs.exfat", "exFAT"),
            ("mkfs.f2fs", "F2FS"),
        ] {
            let file = place.file(program, 400 * MIB);
            need(program, &[text(&file)])?;
            refused(&file, words);
        }
        Ok(())
    });
}

#[test]
fn an_lvm_physical_volume_is_refused() {
    test("an_lvm_physical_volume_is_refused", || {
        let (_turn, _place, device) = loop_device("lvm", SIZE)?;
        let devices = format!(
            "devices {{ scan=[\"/dev\"] filter=[\"a|^{}$|\",\"r|.*|\"] }}",
            device.0.display()
        );
        need(
            "pvcreate",
            &["--quiet", "--config", &devices, text(&device.0)],
        )?;
        refused(&device.0, "contains an LVM physical volume");
        Ok(())
    });
}

#[test]
fn swap_is_refused_in_use_and_at_rest() {
    test("swap_is_refused_in_use_and_at_rest", || {
        let (_turn, _place, device) = loop_device("swap", SIZE)?;
        let swap = Swap::new(&device.0)?;
        refused(&device.0, "is in use as swap");
        drop(swap);
        refused(&device.0, "contains swap space");
        Ok(())
    });
}

#[test]
fn a_swap_file_is_refused() {
    test("a_swap_file_is_refused", || {
        let place = Place::new("swapfile");
        let file = place.0.join("file");
        // Swap files may have no holes.
        File::create(&file)
            .unwrap()
            .write_all(&vec![0; 8 << 20])
            .unwrap();
        need("chmod", &["600", text(&file)])?;
        let swap = Swap::new(&file)?;
        refused(&file, "is in use as swap");
        drop(swap);
        refused(&file, "contains swap space");
        Ok(())
    });
}

#[test]
fn the_file_behind_a_loop_device_is_refused() {
    test("the_file_behind_a_loop_device_is_refused", || {
        let _turn = one_at_a_time();
        let place = Place::new("behind");
        let file = place.file("file", SIZE);
        let device = Loop::new(&file)?;
        refused(&file, "is the backing file of the loop device ");
        drop(device);
        permitted(&file, std::slice::from_ref(&file));
        Ok(())
    });
}

#[test]
fn a_member_of_a_mapped_device_is_refused() {
    const NAME: &str = "a_member_of_a_mapped_device_is_refused";
    // A kernel without device mapper has no such devices; the guard's parsing of them is tested on
    // a copy of /sys.
    if !std::fs::read_to_string("/proc/devices")
        .is_ok_and(|devices| devices.contains("device-mapper"))
    {
        say_skipped(NAME, "this kernel has no device mapper");
        return;
    }
    test(NAME, || {
        struct Mapped(String);
        impl Drop for Mapped {
            fn drop(&mut self) {
                let _ = need("dmsetup", &["remove", &self.0]);
            }
        }
        let (_turn, _place, device) = loop_device("mapped", SIZE)?;
        let name = format!("rigel-guard-{}", std::process::id());
        need(
            "dmsetup",
            &[
                "create",
                &name,
                "--table",
                &format!("0 65536 linear {} 0", device.0.display()),
            ],
        )?;
        let mapped = Mapped(name);
        refused(&device.0, "is part of dm-");
        drop(mapped);
        permitted(&device.0, std::slice::from_ref(&device.0));
        Ok(())
    });
}

#[test]
fn a_target_open_in_another_process_is_refused() {
    let place = Place::new("held");
    let file = place.file("file", SIZE);
    let holder = holder_of(&file);
    refused(
        &file,
        &format!("is held open by process {} (sleep)", holder.0.id()),
    );
    drop(holder);
    permitted(&file, std::slice::from_ref(&file));
}

#[test]
fn a_device_that_another_process_holds_open_is_refused() {
    test(
        "a_device_that_another_process_holds_open_is_refused",
        || {
            let (_turn, _place, device) = loop_device("held-device", SIZE)?;
            let holder = holder_of(&device.0);
            refused(&device.0, "is held open by process ");
            drop(holder);
            permitted(&device.0, std::slice::from_ref(&device.0));
            Ok(())
        },
    );
}

#[test]
fn files_of_postgres_are_refused_by_content_and_by_location() {
    test(
        "files_of_postgres_are_refused_by_content_and_by_location",
        || {
            let place = Place::new("postgres");
            // initdb does not run as root, and its user must be able to reach its directory.
            let user = need("id", &["-u", "postgres"])
                .map(|_| "postgres")
                .or_else(|_| need("id", &["-u", "nobody"]).map(|_| "nobody"))?;
            let home = need("mktemp", &["-d"]).map(PathBuf::from)?;
            let home = Place(home);
            need("chown", &[user, text(&home.0)])?;
            let data = home.0.join("data");
            let initialise = [
                "-u",
                user,
                "--",
                "initdb",
                "--no-sync",
                "--auth=trust",
                "-D",
                text(&data),
            ];
            need("runuser", &initialise)?;

            // A table and an index of template1, by their permanent file names: pg_class and its
            // index of names.
            let of = |name: &str| data.join(name);
            let log = std::fs::read_dir(of("pg_wal"))
                .unwrap()
                .flatten()
                .find(|entry| entry.file_name().len() == 24)
                .unwrap();
            let files = [
                (of("base/1/1259"), "contains a PostgreSQL data file"),
                (of("base/1/2662"), "contains a PostgreSQL data file"),
                (
                    of("global/pg_control"),
                    "contains a PostgreSQL control file",
                ),
                (log.path(), "contains a PostgreSQL log segment"),
            ];
            for (path, words) in files {
                refused(&path, words);
                // In another place it is still recognised.
                let copy = place.0.join("copy");
                std::fs::copy(&path, &copy).unwrap();
                refused(&copy, words);
            }
            // A file without any recognisable bytes belongs to the database by its location.
            let plain = of("base/1/99999");
            File::create(&plain).unwrap().set_len(SIZE).unwrap();
            refused(&plain, "which is a PostgreSQL data directory");
            Ok(())
        },
    );
}

#[test]
fn a_file_among_a_databases_files_is_refused() {
    let marks = [
        ("ibdata1", "MySQL or MariaDB"),
        ("PG_VERSION", "PostgreSQL"),
        ("system01.dbf", "Oracle"),
    ];
    for (mark, words) in marks {
        let place = Place::new(&format!("among-{mark}"));
        place.file(mark, 0);
        std::fs::create_dir(place.0.join("database")).unwrap();
        let file = place.file("database/table", SIZE);
        refused(&file, words);
    }
}

#[test]
fn the_files_of_the_system_are_refused() {
    refused(Path::new("/etc/passwd"), "belongs to the system");
    refused(Path::new("/proc/self/mem"), "belongs to the system");
}

#[test]
fn the_files_of_other_databases_are_refused() {
    let place = Place::new("others");
    let mut oracle = vec![0; 1 << 20];
    oracle[1] = 0xa2;
    oracle[20..24].copy_from_slice(&8192u32.to_le_bytes());
    oracle[28..32].copy_from_slice(b"}|{z");
    let mut innodb = vec![0; 1 << 20];
    innodb[25] = 8;
    innodb[49] = 64;
    let mut sqlite = vec![0; 1 << 20];
    sqlite[..16].copy_from_slice(b"SQLite format 3\0");
    let mut asm = vec![0; 1 << 20];
    asm[32..40].copy_from_slice(b"ORCLDISK");
    for (name, bytes, words) in [
        ("oracle", oracle, "an Oracle data file"),
        ("innodb", innodb, "an InnoDB tablespace"),
        ("sqlite", sqlite, "an SQLite database"),
        ("asm", asm, "an Oracle ASM disk"),
    ] {
        let path = place.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        refused(&path, words);
    }
}
