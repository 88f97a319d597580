//! Names of events, statistics and parameters that the demand is made of. Text reports cut names to
//! the width of their column; a cut name is found by its beginning.

/// Events of I/O. An event that has another's name as its beginning stands after it.
const EVENTS: &[&str] = &[
    "cell list of blocks physical read",
    "cell multiblock physical read",
    "cell single block physical read",
    "cell single block physical read: RDMA",
    "cell single block physical read: flash cache",
    "cell single block physical read: pmem cache",
    "cell single block physical read: xrmem cache",
    "cell smart incremental backup",
    "cell smart index scan",
    "cell smart table scan",
    "control file parallel write",
    "control file sequential read",
    "control file single write",
    "db file async I/O submit",
    "db file parallel read",
    "db file parallel write",
    "db file scattered read",
    "db file sequential read",
    "db file single write",
    "direct path read",
    "direct path read temp",
    "direct path write",
    "direct path write temp",
    "free buffer waits",
    "log buffer space",
    "log file parallel write",
    "log file sequential read",
    "log file switch (archiving needed)",
    "log file switch (checkpoint incomplete)",
    "log file switch (private strand flush incomplete)",
    "log file switch completion",
    "log file sync",
    "read by other session",
    "resmgr: I/O prioritization",
    "resmgr: I/O rate limit",
    "write complete waits",
];

/// Statistics that say something about I/O, with the names that text reports cut.
const STATISTICS: &[&str] = &[
    "DB time",
    "cell flash cache read hits",
    "cell physical IO bytes eligible for predicate offload",
    "cell physical IO bytes eligible for smart IOs",
    "cell physical IO bytes saved by columnar cache",
    "cell physical IO bytes saved by storage index",
    "cell physical IO interconnect bytes",
    "cell physical IO interconnect bytes returned by smart scan",
    "execute count",
    "physical read IO requests",
    "physical read bytes",
    "physical read requests optimized",
    "physical read total IO requests",
    "physical read total bytes",
    "physical read total bytes optimized",
    "physical read total multi block requests",
    "physical reads",
    "physical reads cache",
    "physical reads cache prefetch",
    "physical reads direct",
    "physical reads direct (lob)",
    "physical reads direct temporary tablespace",
    "physical reads for flashback new",
    "physical write IO requests",
    "physical write bytes",
    "physical write total IO requests",
    "physical write total bytes",
    "physical write total multi block requests",
    "physical writes",
    "physical writes direct",
    "physical writes direct (lob)",
    "physical writes direct temporary tablespace",
    "physical writes from cache",
    "redo blocks written",
    "redo size",
    "redo synch writes",
    "redo wastage",
    "redo writes",
    "session logical reads",
    "user commits",
    "user rollbacks",
    "user calls",
];

/// Parameters that matter to I/O.
const PARAMETERS: &[&str] = &[
    "cluster_database",
    "commit_logging",
    "commit_wait",
    "commit_write",
    "compatible",
    "cpu_count",
    "db_block_size",
    "db_cache_size",
    "db_file_multiblock_read_count",
    "db_flash_cache_file",
    "db_flash_cache_size",
    "db_lost_write_protect",
    "db_writer_processes",
    "dbwr_io_slaves",
    "disk_asynch_io",
    "fast_start_mttr_target",
    "filesystemio_options",
    "inmemory_size",
    "log_buffer",
    "memory_target",
    "pga_aggregate_target",
    "resource_manager_plan",
    "sga_max_size",
    "sga_target",
];

/// The whole name of an event. A name that fills its column may have been cut: it is the first
/// known event with this beginning, and the kinds of single-block reads, which are added anyway,
/// share one.
pub(crate) fn event(printed: &str, may_be_cut: bool) -> String {
    whole(EVENTS, printed, may_be_cut)
        .unwrap_or(printed)
        .to_string()
}

/// The whole name of a statistic, if it says something about I/O. `None` for others, and for a cut
/// name that could be one of several.
pub(super) fn statistic(printed: &str, may_be_cut: bool) -> Option<String> {
    // Since 12.1 the sizes of redo writes are counted: `redo write size count (   4KB)`.
    if printed.starts_with("redo write size count (") {
        return Some(super::grid::words(printed));
    }
    if STATISTICS.contains(&printed) {
        return Some(printed.to_string());
    }
    let mut fitting = STATISTICS
        .iter()
        .filter(|name| may_be_cut && name.starts_with(printed));
    let first = fitting.next()?;
    fitting.next().is_none().then(|| (*first).to_string())
}

/// True for an event of I/O, by its whole name.
pub(super) fn is_of_io(event: &str) -> bool {
    EVENTS.contains(&event)
}

/// True for a line of a load profile that counts blocks, requests or bytes of I/O.
pub(super) fn is_io_line(name: &str) -> bool {
    const BEGINNINGS: [&str; 4] = ["Physical ", "Read IO", "Redo size", "Write IO"];
    BEGINNINGS.iter().any(|start| name.starts_with(start))
}

/// True if a parameter matters to I/O.
pub(super) fn is_parameter(name: &str) -> bool {
    PARAMETERS.contains(&name)
}

fn whole<'a>(names: &[&'a str], printed: &str, may_be_cut: bool) -> Option<&'a str> {
    names
        .iter()
        .find(|name| **name == printed)
        .or_else(|| {
            names
                .iter()
                .find(|name| may_be_cut && !printed.is_empty() && name.starts_with(printed))
        })
        .copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_name_is_the_known_one_with_this_beginning() {
        assert_eq!(
            event("control file sequential re", true),
            "control file sequential read"
        );
        assert_eq!(
            event("cell single block physical", true),
            "cell single block physical read"
        );
        assert_eq!(event("direct path read", false), "direct path read");
        assert_eq!(event("gcs remote message", true), "gcs remote message");
        assert_eq!(
            statistic("physical reads direct", false).unwrap(),
            "physical reads direct"
        );
        assert_eq!(
            statistic("physical writes direct temporary", true).unwrap(),
            "physical writes direct temporary tablespace"
        );
    }

    #[test]
    fn a_cut_name_that_two_share_is_not_read() {
        assert_eq!(statistic("cell physical IO bytes saved by", true), None);
        assert_eq!(statistic("redo synch time overhead count (", true), None);
        assert_eq!(
            statistic("physical reads", false).unwrap(),
            "physical reads"
        );
    }
}
