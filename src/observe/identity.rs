//! What identifies this host and its disks from elsewhere.

use super::small_file::read;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Identifies the running kernel; empty if it does not say. Containers of one machine have the
/// same.
#[must_use]
pub fn boot_id() -> String {
    read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// CPUs that this process may run on, as a list such as `0-3,8`; empty if unknown.
#[must_use]
pub fn cpu_mask() -> String {
    let status = read("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_string()
}

/// World-wide name or serial number of a block device, with the number of the partition; `None` if
/// it has none, or if it is not known to be unique.
#[must_use]
pub fn storage_name((major, minor): (u32, u32)) -> Option<String> {
    let directory = format!("/sys/dev/block/{major}:{minor}");
    let directory = std::fs::canonicalize(directory).ok()?;
    let partition = read(directory.join("partition"));
    let disk = match &partition {
        Some(_) => directory.parent()?,
        None => &directory,
    };
    let name = [
        "wwid",
        "device/wwid",
        "dm/uuid",
        "md/uuid",
        "serial",
        "device/serial",
    ]
    .iter()
    .find_map(|file| read(disk.join(file)))?;
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(match partition {
        Some(number) => format!("{name}, partition {number}"),
        None => name,
    })
}

/// The addresses of this host's network interfaces that other hosts may reach, IPv4 first.
#[must_use]
pub fn addresses() -> Vec<String> {
    let four = read("/proc/net/fib_trie").unwrap_or_default();
    let six = read("/proc/net/if_inet6").unwrap_or_default();
    let four = parse_fib_trie(&four)
        .into_iter()
        .map(|found| found.to_string());
    let six = parse_if_inet6(&six)
        .into_iter()
        .map(|found| found.to_string());
    four.chain(six).collect()
}

/// The local addresses of the kernel's routing table: an address, and below it `/32 host LOCAL`.
fn parse_fib_trie(text: &str) -> Vec<Ipv4Addr> {
    let mut found: Vec<Ipv4Addr> = Vec::new();
    let mut last = None;
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.filter(|address| !address.is_loopback())
            && !found.contains(&address)
        {
            found.push(address);
        }
    }
    found
}

/// Addresses of global scope, which is `00` in the fourth column.
fn parse_if_inet6(text: &str) -> Vec<Ipv6Addr> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            let digits = words.next()?;
            let scope = words.nth(2)?;
            let address = u128::from_str_radix(digits, 16).ok()?;
            (scope == "00").then(|| Ipv6Addr::from(address))
        })
        .filter(|address| !address.is_loopback())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_those_that_others_reach() {
        let trie = "Main:\n  +-- 0.0.0.0/0 3 0 5\n     |-- 0.0.0.0\n        /0 universe UNICAST\n  \
                    |-- 10.77.0.1\n        /32 host LOCAL\n     |-- 10.77.0.255\n        /32 link \
                    BROADCAST\n     |-- 127.0.0.1\n        /32 host LOCAL\nLocal:\n     |-- \
                    10.77.0.1\n        /32 host LOCAL\n";
        assert_eq!(parse_fib_trie(trie), [Ipv4Addr::new(10, 77, 0, 1)]);
        let six = "00000000000000000000000000000001 01 80 10 80 lo\n\
                   fd000000000000000000000000000007 02 40 00 80 eth0\n\
                   fe800000000000000000000000000007 02 40 20 80 eth0\n";
        assert_eq!(
            parse_if_inet6(six),
            ["fd00::7".parse::<Ipv6Addr>().unwrap()]
        );
    }

    #[test]
    fn this_host_is_known() {
        assert!(!boot_id().is_empty());
        assert!(cpu_mask().starts_with(|first: char| first.is_ascii_digit()));
        assert_eq!(storage_name((0, 0)), None);
    }

    proptest! {
        #[test]
        fn no_text_makes_a_parser_panic(text in "([|\\-/ :0-9a-f.\\n]|.){0,80}") {
            let _ = (parse_fib_trie(&text), parse_if_inet6(&text));
        }
    }
}
