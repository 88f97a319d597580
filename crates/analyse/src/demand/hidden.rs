//! What a watch cannot see of its disks and databases, known before it begins.
//!
//! Input: facts of a disk or of a server. Output: findings.

use rigel_model::{BlockDevice, Finding, FindingName};

/// Says of a disk without a volatile cache that log writes cannot be distinguished: the kernel
/// sends it no flushes and drops the mark of forced unit access. `has_database` is true if the
/// counters of a database are watched too.
pub fn hidden_log_writes(device: &BlockDevice, has_database: bool) -> Option<Finding> {
    if device.write_cache != "write through" {
        return None;
    }
    let what = format!(
        "{} has no volatile cache: its log writes cannot be distinguished from page writes",
        device.name
    );
    let name = FindingName::LogWritesHidden;
    Some(if has_database {
        Finding::note(name, what)
    } else {
        Finding::warning(name, what, "add the URL of the database")
    })
}

/// Says that the server `url` hides from this user what others' sessions wait for.
pub fn hidden_waits(url: &str) -> Finding {
    Finding::warning(
        FindingName::WaitsHidden,
        format!("{url} hides what sessions of other users wait for: only those of this user count"),
        "GRANT pg_monitor TO the user",
    )
}

/// Says that the server `url` does not measure how long its I/O takes.
pub fn hidden_times(url: &str) -> Finding {
    Finding::note(
        FindingName::TimesHidden,
        format!(
            "{url} does not time its I/O, so its mean times are unknown: track_io_timing is off there"
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_does_not_time_its_reads_is_named() {
        let found = hidden_times("postgres://ana@db1/shop");
        assert!(found.is(FindingName::TimesHidden));
        assert!(
            found
                .what
                .starts_with("postgres://ana@db1/shop does not time")
        );
    }

    #[test]
    fn only_a_disk_without_a_cache_hides_its_log_writes() {
        let disk = |cache: &str| BlockDevice {
            name: "vda".into(),
            write_cache: cache.into(),
            ..BlockDevice::default()
        };
        assert_eq!(hidden_log_writes(&disk("write back"), false), None);
        assert_eq!(hidden_log_writes(&disk(""), false), None);
        let found = hidden_log_writes(&disk("write through"), false).unwrap();
        assert!(
            found.what.starts_with("vda has no volatile cache"),
            "{found:?}"
        );
        assert_eq!(found.hint, "add the URL of the database");
        let beside = hidden_log_writes(&disk("write through"), true).unwrap();
        assert!(beside.hint.is_empty(), "{beside:?}");
    }
}
