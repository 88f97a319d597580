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
