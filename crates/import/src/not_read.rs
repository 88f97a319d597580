//! Formats that are known by their first lines and are not read, so that a refusal can name them.

use super::source::{Source, beginning};
use rigel_model::{Error, usage};

/// Bytes at the beginning of a file that are looked at.
const LOOKED_AT: usize = 16 << 10;

/// What to give instead of counters that a tool samples.
const SERIES: &str =
    "give iostat -x -t, or a csv of times and values; `rigel import --help` lists what is read";

/// What to give instead of a benchmark's output.
const BENCHMARK: &str =
    "measure with rigel or fio (--output-format=json+); `rigel import --help` lists what is read";

/// What it is, texts of which all stand at its beginning, and what to give instead.
const FORMATS: &[(&str, &[&str], &str)] = &[
    ("sadf -j", &["\"sysdata-version\""], SERIES),
    ("sadf -d", &["# hostname;interval;timestamp"], SERIES),
    ("sar -d", &["DEV ", "tps", "%util"], SERIES),
    ("sar", &["CPU ", "%user", "%nice", "Average:"], SERIES),
    ("vmstat", &["procs ", "-memory-", "-swap-"], SERIES),
    ("dstat", &["----total-", "-dsk/total-"], SERIES),
    ("nmon", &["AAA,progname,"], SERIES),
    ("perfmon", &["(PDH-CSV "], SERIES),
    ("CloudWatch", &["\"Datapoints\"", "\"Label\""], SERIES),
    ("CloudWatch", &["\"MetricDataResults\""], SERIES),
    ("CloudWatch", &["Label,", "\nFullName,", "\nStat,"], SERIES),
    ("Azure Monitor", &["\"timespan\"", "\"timeseries\""], SERIES),
    ("Prometheus", &["\"resultType\"", "\"result\""], SERIES),
    ("a Prometheus exporter", &["# HELP ", "# TYPE "], SERIES),
    ("DiskSpd", &["<Results>", "<TimeSpan>"], BENCHMARK),
    (
        "DiskSpd",
        &["Command Line: ", "Input parameters:", "timespan:"],
        BENCHMARK,
    ),
    ("vdbench", &["Vdbench"], BENCHMARK),
    (
        "vdbench",
        &["tod ", "Run ", "Interval ", "reqrate "],
        BENCHMARK,
    ),
    ("sysbench", &["sysbench ", "File operations:"], BENCHMARK),
    (
        "sysbench",
        &["sysbench ", "Running the test with following options:"],
        BENCHMARK,
    ),
    (
        "pgbench",
        &["transaction type: ", "scaling factor: "],
        BENCHMARK,
    ),
    ("pg_test_fsync", &["Compare file sync methods"], BENCHMARK),
    ("bdevperf", &["Running I/O for ", "Job: "], BENCHMARK),
    ("ioping", &["ioping statistics"], BENCHMARK),
];

/// Refuses a file of such a format by name.
///
/// # Errors
/// It is one.
pub(super) fn refuse(source: Source) -> Result<(), Error> {
    let top = beginning(source.text, LOOKED_AT);
    let is = |marks: &[&str]| marks.iter().all(|mark| top.contains(mark));
    let name = source.name;
    if name.contains("_clat_hist.") || name.contains("_clat_hist_") {
        return Err(usage!(
            "'{name}' is a log of histograms of fio, which Rigel does not read",
            "give NAME_lat.1.log or NAME_clat.1.log of the same run"
        ));
    }
    match FORMATS.iter().find(|(_, marks, _)| is(marks)) {
        Some((what, _, hint)) => Err(usage!(
            "'{name}' is output of {what}, which Rigel does not read",
            *hint
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{csv_columns::Columns, read};

    #[test]
    fn formats_that_are_not_read_are_refused_by_name() {
        for (text, what) in [
            (
                "Linux 6.1.0 (db1)\t05/14/2026\n\n10:00:00  DEV  tps  rkB/s  %util\n10:00:10 sda 1 2 3\n",
                "sar -d",
            ),
            (
                "# hostname;interval;timestamp;DEV;tps\ndb1;600;2026-05-14 10:00:00 UTC;sda;1\n",
                "sadf -d",
            ),
            ("{\"sysstat\": {\"sysdata-version\": 2.17}}", "sadf -j"),
            (
                "procs -----------memory---------- ---swap-- -----io----\n r  b\n",
                "vmstat",
            ),
            ("{\"Label\":\"ReadIOPS\",\"Datapoints\":[]}", "CloudWatch"),
            (
                "Label,VolumeReadOps\nFullName,vol-0123\nStat,Sum\nPeriod,5 Minutes\n2026/03/01 10:00:00,420360\n",
                "CloudWatch",
            ),
            (
                "\"(PDH-CSV 4.0) (UTC)(0)\",\"\\\\HOST\\PhysicalDisk(_Total)\\Disk Reads/sec\"\n",
                "perfmon",
            ),
            ("AAA,progname,topas_nmon\nAAA,command,nmon\n", "nmon"),
            (
                "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[]}}",
                "Prometheus",
            ),
        ] {
            let source = Source { name: "f", text };
            let refused = read(&[source], None, &Columns::default())
                .unwrap_err()
                .to_string();
            assert!(
                refused.starts_with(&format!("'f' is output of {what}")),
                "{refused}"
            );
        }
        let name = "job_clat_hist.1.log";
        let source = Source {
            name,
            text: "1000, 0, 4096, 0, 1, 2, 3\n",
        };
        let refused = read(&[source], None, &Columns::default())
            .unwrap_err()
            .to_string();
        assert!(refused.contains("a log of histograms of fio"), "{refused}");
    }
}
