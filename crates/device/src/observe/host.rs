//! The machine: processor, memory, clock, limits.

use super::small_file::{read, read_number};
use crate::clock;
use rigel_model::{Bytes, Host, KIB, LimitFacts};
use rustix::process::{Resource, getrlimit};

/// Facts about this machine. Takes some 100 µs, a quarter of them to time the clock.
pub fn host() -> Host {
    let system = rustix::system::uname();
    let allowed = rustix::thread::sched_getaffinity(None).map_or(0, |cpus| cpus.count());
    Host {
        name: system.nodename().to_string_lossy().into_owned(),
        kernel: system.release().to_string_lossy().into_owned(),
        cpu: read("/proc/cpuinfo")
            .and_then(|text| parse_cpu(&text))
            .unwrap_or_else(|| machine(system.machine())),
        cpus: allowed,
        cpu_quota: read("/proc/self/cgroup").and_then(|text| cpu_quota(&text, &|path| read(path))),
        memory: Bytes(
            read("/proc/meminfo")
                .and_then(|text| parse_memory(&text))
                .unwrap_or_default(),
        ),
        clock_source: read("/sys/devices/system/clocksource/clocksource0/current_clocksource")
            .unwrap_or_default(),
        clock_read_ns: clock::read_cost_ns(),
        limits: limits(),
    }
}

/// The least quota of CPU time of the control groups that this process is in, in CPUs; `groups` is the
/// text of `/proc/self/cgroup`. Source: the kernel's Documentation/admin-guide/cgroup-v2.rst, `cpu.max`,
/// and scheduler/sched-bwc.rst for version 1.
fn cpu_quota(groups: &str, read: &dyn Fn(&str) -> Option<String>) -> Option<f64> {
    let quota_in = |directory: &str| -> Option<f64> {
        let both = read(&format!("{directory}/cpu.max")).or_else(|| {
            let quota = read(&format!("{directory}/cpu.cfs_quota_us"))?;
            Some(format!(
                "{} {}",
                quota.trim(),
                read(&format!("{directory}/cpu.cfs_period_us"))?.trim()
            ))
        })?;
        let mut numbers = both.split_whitespace().map(str::parse::<f64>);
        let (quota, period) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
        (quota > 0.0 && period > 0.0).then(|| quota / period)
    };
    let of_group = |line: &str| -> Option<f64> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let root = if controllers.is_empty() {
            "/sys/fs/cgroup".to_string()
        } else if controllers.split(',').any(|one| one == "cpu") {
            format!("/sys/fs/cgroup/{controllers}")
        } else {
            return None;
        };
        // Each group above has a limit of its own.
        let above = std::iter::successors(Some(path.trim_end_matches('/')), |path| {
            Some(&path[..path.rfind('/')?])
        });
        above
            .filter_map(|path| quota_in(&format!("{root}{path}")))
            .reduce(f64::min)
    };
    groups.lines().filter_map(of_group).reduce(f64::min)
}

fn machine(name: &std::ffi::CStr) -> String {
    name.to_string_lossy().into_owned()
}

fn limits() -> LimitFacts {
    LimitFacts {
        aio_max: read_number("/proc/sys/fs/aio-max-nr").unwrap_or_default(),
        aio_used: read_number("/proc/sys/fs/aio-nr").unwrap_or_default(),
        locked_memory: getrlimit(Resource::Memlock)
            .current
            .map(Bytes)
            .filter(|_| !locks_without_limit()),
        open_files: getrlimit(Resource::Nofile).current,
        io_uring_disabled: read_number("/proc/sys/kernel/io_uring_disabled"),
    }
}

/// True if the limit on locked memory does not apply to this process: it has the capability
/// `CAP_IPC_LOCK` on the machine itself, not just in a container with its own user namespace.
fn locks_without_limit() -> bool {
    let status = read("/proc/self/status").unwrap_or_default();
    let users = read("/proc/self/uid_map").unwrap_or_default();
    has_lock_capability(&status) && maps_every_user(&users)
}

/// True if bit 14 is set, as in `CapEff: 000001ffffffffff`.
fn has_lock_capability(status: &str) -> bool {
    const IPC_LOCK: u32 = 14;
    let mask = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> IPC_LOCK & 1 == 1)
}

/// True for `0 0 4294967295`, which maps every user of the machine to itself.
fn maps_every_user(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// The first `model name`; architectures other than x86 use `Model`, `cpu model` or `uarch`.
fn parse_cpu(cpuinfo: &str) -> Option<String> {
    let named = |name: &str| {
        let (_, value) = cpuinfo
            .lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(key, _)| key.trim() == name)?;
        Some(value.trim().to_string()).filter(|value| !value.is_empty())
    };
    ["model name", "Model", "cpu model", "cpu", "uarch"]
        .into_iter()
        .find_map(named)
}

/// The memory in a line such as `MemTotal:       24684092 kB`, in bytes.
fn parse_memory(meminfo: &str) -> Option<u64> {
    let value = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))?;
    value
        .trim()
        .strip_suffix("kB")?
        .trim()
        .parse::<u64>()
        .ok()?
        .checked_mul(KIB)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_processor_and_the_memory_are_read_from_the_kernels_text() {
        let cpuinfo =
            "processor\t: 0\nvendor_id\t: AuthenticAMD\nmodel\t\t: 17\nmodel name\t: AMD EPYC\n";
        assert_eq!(parse_cpu(cpuinfo).as_deref(), Some("AMD EPYC"));
        assert_eq!(parse_cpu("processor : 0\nmodel name :\n"), None);
        assert_eq!(
            parse_memory("MemTotal:       24684092 kB\nMemFree: 1 kB\n"),
            Some(24_684_092 * 1024)
        );
    }

    #[test]
    fn the_limit_on_locked_memory_holds_for_those_without_the_capability() {
        assert!(has_lock_capability("Name:\tx\nCapEff:\t000001ffffffffff\n"));
        assert!(has_lock_capability("CapEff:\t0000000000004000\n"));
        assert!(!has_lock_capability(
            "CapEff:\t00000000a80425fb\nCapBnd:\t000001ffffffffff\n"
        ));
        assert!(!has_lock_capability(""));
        assert!(maps_every_user("         0          0 4294967295\n"));
        assert!(!maps_every_user("         0       1000          1\n"));
    }

    #[test]
    fn the_least_quota_of_all_groups_above_counts() {
        let files = [
            ("/sys/fs/cgroup/pod/one/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/pod/cpu.max", "150000 100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n"),
        ];
        let read = |path: &str| {
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| (*text).to_string())
        };
        assert_eq!(cpu_quota("0::/pod/one\n", &read), Some(1.5));
        assert_eq!(cpu_quota("0::/other\n", &read), None);
        let first = "5:memory:/a\n4:cpu,cpuacct:/a\n0::/\n";
        assert_eq!(cpu_quota(first, &read), Some(0.5));
        assert_eq!(cpu_quota("4:cpu,cpuacct:/\nx\n", &read), None);
    }

    #[test]
    fn this_machine_has_a_name_processors_memory_and_limits() {
        let host = host();
        assert!(!host.kernel.is_empty() && !host.cpu.is_empty(), "{host:?}");
        assert!(
            host.cpus > 0 && host.memory.0 > 0 && host.limits.open_files != Some(0),
            "{host:?}"
        );
        assert!(host.clock_read_ns > 0.0, "{host:?}");
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "(MemTotal:|model name|[ :0-9kB\n]|.){0,40}") {
            let _ = (parse_cpu(&text), parse_memory(&text), has_lock_capability(&text), maps_every_user(&text));
        }
    }
}
