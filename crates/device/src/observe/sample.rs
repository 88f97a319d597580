//! Samples of the counters of the host and its disks.

use super::small_file::read;
use rigel_model::{Bytes, Counters, Nanos, OwnThreads, Sample};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Samples the counters of some devices and of the host.
#[derive(Debug, Clone)]
pub struct Observer {
    /// Device names, and the files of their counters.
    devices: Vec<(String, PathBuf)>,
}

impl Observer {
    /// Creates an observer of the devices with these names, such as `nvme0n1`.
    pub fn new<I: IntoIterator<Item = S>, S: Into<String>>(names: I) -> Self {
        let with_path = |name: S| {
            let name = name.into();
            // The kernel replaces the slash in a name such as `cciss/c0d0` by an exclamation mark,
            // as does /sys.
            let path = PathBuf::from(format!("/sys/block/{}/stat", name.replace('/', "!")));
            (name, path)
        };
        Self {
            devices: names.into_iter().map(with_path).collect(),
        }
    }

    /// Samples the counters now, at the moment `at`. Takes some 100 µs: negligible once a second,
    /// but not once per I/O.
    pub fn sample(&self, at: Nanos) -> Sample {
        let devices = self.devices.iter().filter_map(|(name, path)| {
            let counters = parse_counters(&read(path)?)?;
            Some((name.clone(), counters))
        });
        Sample {
            server: None,
            at,
            devices: devices.collect(),
            cpu_ticks: read("/proc/stat")
                .and_then(|text| parse_cpu_ticks(&text))
                .unwrap_or_default(),
            io_pressure_us: read("/proc/pressure/io").and_then(|text| parse_pressure(&text)),
            major_faults: read("/proc/vmstat")
                .and_then(|text| parse_major_faults(&text))
                .unwrap_or_default(),
            own_threads: own_threads(),
        }
    }
}

/// The counters of the disk or partition `name`; `None` if the kernel has no such device.
pub fn disk_counters(name: &str) -> Option<Counters> {
    parse_counters(&disk_stat(name)?)
}

/// Number of requests that the disk or partition `name` has completed, of whatever kind, and of those
/// in flight; `None` if the kernel has no such device.
pub fn disk_progress(name: &str) -> Option<(u64, u64)> {
    let stat = disk_stat(name)?;
    let Counters {
        reads,
        writes,
        in_flight,
        ..
    } = parse_counters(&stat)?;
    let number = |field: usize| stat.split_whitespace().nth(field)?.parse::<u64>().ok();
    // Kernels before 4.18 do not count discards, and before 5.5 no flushes.
    let (discards, flushes) = (number(11).unwrap_or(0), number(15).unwrap_or(0));
    let completed = [reads, writes, discards, flushes].iter().sum();
    Some((completed, in_flight))
}

fn disk_stat(name: &str) -> Option<String> {
    let name = name.replace('/', "!");
    read(format!("/sys/class/block/{name}/stat"))
}

/// Resident memory of this process; zero if the kernel does not say it.
pub fn own_memory() -> Bytes {
    let status = read("/proc/self/status").unwrap_or_default();
    let kib = status.lines().find_map(|line| {
        let value = line.strip_prefix("VmRSS:")?;
        value.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    Bytes(kib.unwrap_or(0).saturating_mul(1024))
}

/// ID of the thread that is not counted; 0 = none. The kernel lists the threads of the process, also
/// those that whoever takes a sample does not know.
static ASIDE: AtomicI32 = AtomicI32::new(0);

/// Excludes the calling thread from [`Sample::own_threads`]. A thread that only shows progress may
/// wait for a CPU without any effect on the measurement. Only one thread of the process can be
/// excluded: the last to call this.
pub fn set_this_thread_aside() {
    ASIDE.store(rustix::thread::gettid().as_raw_nonzero().get(), Relaxed);
}

/// The number of threads of this process, and their total wait for a CPU; `None` without
/// `CONFIG_SCHED_INFO`.
fn own_threads() -> Option<OwnThreads> {
    let path = |task| {
        PathBuf::from("/proc/self/task")
            .join(task)
            .join("schedstat")
    };
    let delays = tasks(ASIDE.load(Relaxed))?.filter_map(|task| parse_run_delay(&read(path(task))?));
    let (count, nanos) = delays.fold((0, 0), |(count, sum), delay| (count + 1, sum + delay));
    (count > 0).then_some(OwnThreads {
        count,
        run_delay_us: nanos / 1000,
    })
}

/// The threads of this process except `aside`, by their names in /proc.
fn tasks(aside: i32) -> Option<impl Iterator<Item = OsString>> {
    let aside = OsString::from(aside.to_string());
    let names = std::fs::read_dir("/proc/self/task")
        .ok()?
        .flatten()
        .map(|task| task.file_name());
    Some(names.filter(move |name| *name != aside))
}

/// The second of three numbers of a thread's schedstat: nanoseconds spent waiting on a run queue.
fn parse_run_delay(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().nth(1)?.parse().ok()
}

/// Parses the eleven or more numbers of `/sys/block/*/stat`.
fn parse_counters(stat: &str) -> Option<Counters> {
    let numbers: Vec<u64> = stat
        .split_whitespace()
        .map_while(|field| field.parse().ok())
        .collect();
    let [
        reads,
        _,
        read_sectors,
        read_ms,
        writes,
        _,
        write_sectors,
        write_ms,
        in_flight,
        busy_ms,
        ..,
    ] = numbers[..]
    else {
        return None;
    };
    Some(Counters {
        reads,
        read_sectors,
        read_ms,
        writes,
        write_sectors,
        write_ms,
        in_flight,
        busy_ms,
    })
}

/// Parses the line for all CPUs: `cpu  user nice system idle iowait irq softirq steal …`.
fn parse_cpu_ticks(stat: &str) -> Option<[u64; 8]> {
    let numbers = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let mut ticks = [0; 8];
    for (tick, field) in ticks.iter_mut().zip(numbers.split_whitespace()) {
        *tick = field.parse().ok()?;
    }
    Some(ticks)
}

/// Parses the total of `some avg10=0.35 avg60=0.33 avg300=0.21 total=4911330`.
fn parse_pressure(text: &str) -> Option<u64> {
    let some = text.lines().find(|line| line.starts_with("some "))?;
    some.split_whitespace()
        .find_map(|field| field.strip_prefix("total="))?
        .parse()
        .ok()
}

/// Parses the line `pgmajfault 1234`.
fn parse_major_faults(vmstat: &str) -> Option<u64> {
    vmstat
        .lines()
        .find_map(|line| line.strip_prefix("pgmajfault "))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_counters_of_a_disk_stand_where_the_kernel_puts_them() {
        let stat = " 57861 8457 5125930 24359 11779 20914 6582336 14252 3 8252 39195 5449 28 \
                    1910360 546 1053 36\n";
        let counters = Counters {
            reads: 57861,
            read_sectors: 5_125_930,
            read_ms: 24359,
            writes: 11779,
            write_sectors: 6_582_336,
            write_ms: 14252,
            in_flight: 3,
            busy_ms: 8252,
        };
        assert_eq!(parse_counters(stat), Some(counters));
        assert_eq!(parse_counters("1 2 3"), None);
    }

    #[test]
    fn the_hosts_counters_are_found_in_their_files() {
        let stat = "cpu  10 20 30 40 50 60 70 80 90 100\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        assert_eq!(
            parse_cpu_ticks(stat),
            Some([10, 20, 30, 40, 50, 60, 70, 80])
        );
        // Kernels before 2.6.11 have no steal; missing fields count as zero.
        assert_eq!(
            parse_cpu_ticks("cpu  1 2 3 4\n"),
            Some([1, 2, 3, 4, 0, 0, 0, 0])
        );
        let pressure =
            "some avg10=0.35 avg60=0.33 avg300=0.21 total=4911330\nfull avg10=0.2 total=450\n";
        assert_eq!(parse_pressure(pressure), Some(4_911_330));
        assert_eq!(parse_major_faults("pgfault 9\npgmajfault 77\n"), Some(77));
        assert_eq!(parse_run_delay("182013 5120 31\n"), Some(5120));
    }

    #[test]
    fn a_thread_that_was_set_aside_is_not_counted() {
        let (is_aside, end) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                set_this_thread_aside();
                is_aside.wait();
                end.wait();
            });
            is_aside.wait();
            let aside = ASIDE.load(Relaxed);
            let path = format!("/proc/self/task/{aside}");
            assert!(
                aside > 0 && std::fs::exists(path).unwrap(),
                "the thread is there"
            );
            // Other tests have their own threads, so only this one can be checked.
            assert!(
                !tasks(aside)
                    .unwrap()
                    .any(|task| task.to_string_lossy() == aside.to_string())
            );
            assert!(
                tasks(0)
                    .unwrap()
                    .any(|task| task.to_string_lossy() == aside.to_string())
            );
            end.wait();
        });
    }

    #[test]
    fn unreadable_values_are_left_out() {
        let sample = Observer::new(["no such device"]).sample(Nanos(5));
        assert_eq!((sample.at, sample.devices.len()), (Nanos(5), 0));
        assert!(sample.cpu_ticks.iter().sum::<u64>() > 0, "{sample:?}");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "(cpu |some |total=|pgmajfault |[0-9 \n]|.){0,60}") {
            let _ = parse_run_delay(&text);
            let _ = (parse_counters(&text), parse_cpu_ticks(&text), parse_pressure(&text), parse_major_faults(&text));
        }
    }
}
