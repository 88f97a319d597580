//! What identifies this host and its disks from elsewhere.

use super::small_file::read;
use super::stack::Sys;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Identifies the running kernel; empty if it does not say. Containers of one machine have the
/// same.
pub fn boot_id() -> String {
    read("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// CPUs that this process may run on, as a list such as `0-3,8`; empty if unknown.
pub fn cpu_mask() -> String {
    let status = read("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    line.unwrap_or_default().trim().to_string()
}

/// World-wide name or serial number of a block device, with the number of the partition; `None` if
/// it has none, or if it is not known to be unique.
pub fn storage_name(number: (u32, u32)) -> Option<String> {
    let node = Sys::default().node(number).ok()?;
    let partition = node.text("partition");
    let disk = node.disk().unwrap_or(node);
    let name = [
        "wwid",
        "device/wwid",
        "dm/uuid",
        "md/uuid",
        "serial",
        "device/serial",
    ]
    .iter()
    .find_map(|file| disk.text(file))?;
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(match partition {
        Some(number) => format!("{name}, partition {number}"),
        None => name,
    })
}

/// The addresses of this host's network interfaces that other hosts may reach, IPv4 first.
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

/// Number of paths to a block device, by its major and minor number, if it is of multipath.
pub fn paths(number: (u32, u32)) -> Option<u32> {
    let node = Sys::default().node(number).ok()?;
    let disk = node.disk().unwrap_or(node);
    let is_multipath = disk.text("dm/uuid")?.starts_with("mpath-");
    is_multipath.then(|| u32::try_from(disk.slaves().len()).unwrap_or(u32::MAX))
}

/// Largest packet in bytes of the network interface by which the kernel reaches an address; `None` if
/// that is unknown, as for IPv6 and for this machine's own addresses.
pub fn mtu_towards(address: IpAddr) -> Option<u32> {
    let IpAddr::V4(address) = address.to_canonical() else {
        return None;
    };
    let routes = read("/proc/net/route")?;
    let interface = interface_towards(address, &routes)?;
    read(format!("/sys/class/net/{interface}/mtu"))?
        .parse()
        .ok()
}

/// The interface of the route with the longest mask that leads to an address. Addresses and masks of
/// `/proc/net/route` are hexadecimal, in the order of this machine's bytes.
fn interface_towards(address: Ipv4Addr, routes: &str) -> Option<String> {
    let address = u32::from_ne_bytes(address.octets());
    let number = |text: &str| u32::from_str_radix(text, 16).ok();
    let route = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (destination, mask) = (number(fields.get(1)?)?, number(fields.get(7)?)?);
        (address & mask == destination).then(|| (mask.count_ones(), fields[0].to_string()))
    };
    let routes = routes.lines().skip(1).filter_map(route);
    routes.max_by_key(|(bits, _)| *bits).map(|(_, name)| name)
}

/// The local addresses of the kernel's routing table: an address, and below it `/32 host LOCAL`.
fn parse_fib_trie(text: &str) -> Vec<Ipv4Addr> {
    let mut addresses: Vec<Ipv4Addr> = Vec::new();
    let mut last = None;
    for line in text.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL"
            && let Some(address) = last.filter(|address| !address.is_loopback())
            && !addresses.contains(&address)
        {
            addresses.push(address);
        }
    }
    addresses
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
    fn the_route_with_the_longest_mask_leads_to_an_address() {
        let hex = |text: &str| {
            format!(
                "{:08X}",
                u32::from_ne_bytes(text.parse::<Ipv4Addr>().unwrap().octets())
            )
        };
        let route = |name: &str, to: &str, mask: &str| {
            format!(
                "{name}\t{}\t00000000\t0001\t0\t0\t0\t{}\t0\t0\t0\n",
                hex(to),
                hex(mask)
            )
        };
        let routes = "Iface\tDestination\n".to_string()
            + &route("eth0", "0.0.0.0", "0.0.0.0")
            + &route("ib0", "10.77.0.0", "255.255.255.0")
            + &route("eth1", "10.0.0.0", "255.0.0.0");
        let to = |address: &str| interface_towards(address.parse().unwrap(), &routes);
        assert_eq!(to("10.77.0.3").as_deref(), Some("ib0"));
        assert_eq!(to("10.1.0.3").as_deref(), Some("eth1"));
        assert_eq!(to("192.0.2.1").as_deref(), Some("eth0"));
        assert_eq!(
            interface_towards("192.0.2.1".parse().unwrap(), "x\ny z"),
            None
        );
    }

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
