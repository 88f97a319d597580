//! Resource use of a server's processes: CPU, and bytes from and to storage.

use super::small_file::read;
use rigel_model::Nanos;

/// The kernel's clock ticks per second for CPU time in /proc: the same on every Linux for decades.
const TICKS: u64 = 100;

/// Resource use of processes since they began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessCounters {
    /// CPU time, user and system.
    pub cpu: Nanos,
    /// Bytes read from storage on their behalf; `None` without permission to see it.
    pub storage_read: Option<u64>,
    /// Bytes written to storage on their behalf; `None` without permission to see it.
    pub storage_written: Option<u64>,
}

/// Resource use of these processes and their children, for servers that fork a process per session.
/// Includes children that have ended. `None` without processes, or if one of `roots` is gone.
pub fn processes_below(roots: &[u32]) -> Option<ProcessCounters> {
    let mut sum = ProcessCounters {
        cpu: Nanos(0),
        storage_read: Some(0),
        storage_written: Some(0),
    };
    let (mut count, mut ticks) = (0, 0);
    for root in roots {
        let children = read(format!("/proc/{root}/task/{root}/children")).unwrap_or_default();
        let children = children
            .split_whitespace()
            .filter_map(|pid| pid.parse().ok());
        for pid in std::iter::once(*root).chain(children) {
            let is_root = pid == *root;
            // A child that ends meanwhile is counted with its parent next time.
            let Some(used) =
                read(format!("/proc/{pid}/stat")).and_then(|stat| parse_ticks(&stat, is_root))
            else {
                if is_root {
                    return None;
                }
                continue;
            };
            ticks += used;
            count += 1;
            let io = read(format!("/proc/{pid}/io"));
            let bytes = |name: &str| parse_bytes(io.as_deref()?, name);
            sum.storage_read = sum
                .storage_read
                .zip(bytes("read_bytes"))
                .map(|(a, b)| a + b);
            sum.storage_written = sum
                .storage_written
                .zip(bytes("write_bytes"))
                .map(|(a, b)| a + b);
        }
    }
    sum.cpu = Nanos(ticks * (1_000_000_000 / TICKS));
    (count > 0).then_some(sum)
}

/// Clock ticks in `/proc/PID/stat`: of the process, and for a root also of its children that have
/// ended.
fn parse_ticks(stat: &str, with_children: bool) -> Option<u64> {
    // The name, in parentheses, may contain anything. After it: state, and from there utime is the
    // 12th.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let own = number(11)? + number(12)?;
    Some(if with_children {
        own + number(13)? + number(14)?
    } else {
        own
    })
}

/// The number after `name:` in `/proc/PID/io`.
fn parse_bytes(io: &str, name: &str) -> Option<u64> {
    io.lines().find_map(|line| {
        line.strip_prefix(name)?
            .strip_prefix(": ")?
            .trim()
            .parse()
            .ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_of_a_process_is_read_from_proc() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 900 80 0 0 150 50 30 20 20 0 1 0 100";
        assert_eq!(
            (parse_ticks(stat, false), parse_ticks(stat, true)),
            (Some(200), Some(250))
        );
        assert_eq!(parse_ticks("7 (x", false), None);
        let io = "rchar: 9\nwchar: 8\nread_bytes: 4096\nwrite_bytes: 0\n";
        assert_eq!(
            (
                parse_bytes(io, "read_bytes"),
                parse_bytes(io, "write_bytes")
            ),
            (Some(4096), Some(0))
        );
        assert_eq!(parse_bytes(io, "cancelled"), None);
    }

    #[test]
    fn this_process_has_used_some_cpu_and_one_that_is_not_there_nothing() {
        assert!(processes_below(&[std::process::id()]).is_some());
        assert_eq!(
            (processes_below(&[]), processes_below(&[u32::MAX])),
            (None, None)
        );
    }
}
