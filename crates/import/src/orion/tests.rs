//! Tests of the readers of Orion's files.

use super::*;
use rigel_model::MIB;
use rigel_model::record::imported::Flow;

const SIMPLE: [(&str, &str); 4] = [
    (
        "o_20110510_2303_iops.csv",
        include_str!("../../../../tests/golden/classic/simple_iops.csv"),
    ),
    (
        "o_20110510_2303_mbps.csv",
        include_str!("../../../../tests/golden/classic/simple_mbps.csv"),
    ),
    (
        "o_20110510_2303_lat.csv",
        include_str!("../../../../tests/golden/classic/simple_lat.csv"),
    ),
    (
        "o_20110510_2303_summary.txt",
        include_str!("../../../../tests/golden/classic/simple_summary.txt"),
    ),
];

fn loads(files: &[(&str, &str)]) -> (Imported, Vec<LoadPoint>) {
    let sources: Vec<Source> = files
        .iter()
        .map(|(name, text)| Source { name, text })
        .collect();
    let mut found = read(&sources).unwrap();
    assert_eq!(found.len(), 1);
    let found = found.remove(0);
    let Figures::Loads(points) = found.figures.clone() else {
        unreachable!("Orion has loads")
    };
    (found, points)
}

fn mean(point: &LoadPoint) -> f64 {
    point.flows[0].latencies[0].mean.unwrap()
}

#[test]
fn the_files_of_a_run_are_put_together() {
    let (found, points) = loads(&SIMPLE);
    assert_eq!(found.sources.len(), 4);
    assert_eq!(points.len(), 7);
    assert_eq!(points[0].load, ReportedLoad::Cell { small: 0, large: 1 });
    let flow = &points[2].flows[0];
    assert_eq!(
        (flow.iops, flow.io_bytes, flow.class.as_str()),
        (Some(2302.0), Some(8192), "small")
    );
    assert_eq!(points[0].flows[0].bytes_per_s, Some(271.58 * MIB as f64));
    assert!(
        found.reported.contains(&("Writes".into(), "0%".into())),
        "{:?}",
        found.reported
    );
}

#[test]
fn a_missing_unit_is_derived_from_littles_law() {
    let iops = (
        "t_iops.csv",
        "Large/Small,      1,      2\n          0,   1000,   1600\n",
    );
    let us = loads(&[
        iops,
        (
            "t_lat.csv",
            "Large/Small,      1,      2\n          0,1000.00,1250.00\n",
        ),
    ]);
    let ms = loads(&[
        iops,
        (
            "t_lat.csv",
            "Large/Small,      1,      2\n          0,   1.00,   1.25\n",
        ),
    ]);
    assert_eq!(
        (mean(&us.1[0]), mean(&ms.1[0]), mean(&ms.1[1])),
        (1e6, 1e6, 1.25e6)
    );
    assert!(ms.0.notes[0].contains("milliseconds"), "{:?}", ms.0.notes);
    let alone = loads(&[("t_lat.csv", "Large/Small,      1\n          0,   1.00\n")]);
    assert!(
        alone.0.notes[0].contains("taken as microseconds"),
        "{:?}",
        alone.0.notes
    );
}

#[test]
fn an_old_summary_gives_its_maxima() {
    let text = "ORION VERSION 11.1.0.7.0\n\nCommandline:\n-run simple -testname t -num_disks \
                    2 \n\nThis maps to this test:\nTest: t\nSmall IO size: 8 KB\nLarge IO size: \
                    1024 KB\nIO Types: Small Random IOs, Large Random IOs\nWrite: 0%\nMaximum \
                    Large MBPS=42.10 @ Small=0 and Large=4 \nMaximum Small IOPS=1250 @ Small=10 \
                    and Large=0 \nMinimum Small Latency=4.00 @ Small=1 and Large=0 \n";
    let (found, points) = loads(&[("t_summary.txt", text)]);
    assert_eq!(found.version.as_deref(), Some("11.1.0.7.0"));
    let labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(
        labels,
        ["Small=0, Large=4", "Small=1, Large=0", "Small=10, Large=0"]
    );
    // No IOPS are known for the cell of the latency, but the version is.
    assert_eq!(points[1].flows[0].latencies[0].mean, Some(4e6));
    assert!(
        found.notes[0].contains("milliseconds, which versions before 11.2.0.2 write"),
        "{:?}",
        found.notes
    );
    assert_eq!(points[2].flows[0].iops, Some(1250.0));
    let (found, points) = loads(&[("t.txt", &text.replace("11.1.0.7.0", "12.1.0.2.0"))]);
    assert_eq!(points[1].flows[0].latencies[0].mean, Some(4e3));
    assert!(found.notes[0].contains("not given"), "{:?}", found.notes);
}

#[test]
fn lines_below_a_wrong_label_do_not_count() {
    let files = [
        ("t_lat.csv", "Large/Small,      5\n          0, 639.00\n"),
        (
            "t_summary.txt",
            "ORION VERSION 11.2.0.2.0\nMaximum Small IOPS=7800 @ Small=5 and Large=0\nSmall \
                 Read Latency: avg=248.000 us, min=20 us, max=900 us, std dev=9 us @ Small=5 and \
                 Large=0\nMinimum Small Latency=639.000 usecs @ Small=5 and Large=0\n",
        ),
    ];
    let (found, points) = loads(&files);
    assert_eq!(
        (mean(&points[0]), points[0].flows[0].latencies[0].min),
        (639_000.0, None)
    );
    assert!(
        found
            .notes
            .iter()
            .any(|note| note.contains("below the label of another cell")),
        "{:?}",
        found.notes
    );
}

#[test]
fn truncated_files_are_refused() {
    for (name, text) in SIMPLE {
        for end in 0..text.len() {
            let left = &text[..end];
            // A missing row between complete lines cannot be detected, nor can lines that older
            // versions do not write.
            let is_csv = text.starts_with("Large/Small");
            let may_end = is_csv
                || left.contains("Minimum Small Latency=") && !left.contains("Histogram")
                || left.contains("134217728 - 268435456");
            let found = read(&[Source { name, text: left }]);
            let is_noted = found.as_ref().is_ok_and(|found| {
                let mut notes = found.iter().flat_map(|one| &one.notes);
                notes.any(|note| note.contains("may be cut short"))
            });
            assert!(
                may_end && (left.ends_with('\n') || is_noted) || found.is_err(),
                "{name} cut after {end} bytes: {found:?}"
            );
        }
    }
    let troubled = include_str!("../../../../tests/golden/classic/troubled_summary.txt");
    assert!(loads(&[("t_summary.txt", troubled)]).1.len() > 1);
    let rows = include_str!("../../../../tests/golden/classic/troubled_iops.csv");
    let (found, _) = loads(&[("t_iops.csv", rows)]);
    assert!(
        found.notes[0].contains("t_iops.csv line 2: 2 values for 5 columns"),
        "{:?}",
        found.notes
    );
}

/// What 19.3 prints, with figures of our own.
const OF_19C: &str = "ORION: ORacle IO Numbers -- Version RDBMS_19.3.0.0.0DBRU_LINUX.X64_190417\n\
        t_20211113_1809\nCalibration will take approximately 44 minutes.\nSetting ftype=0\n\
        Maximum Large MBPS=1571.33 @ Small=0 and Large=5\n\n\
        Maximum Small IOPS=50000 @ Small=10 and Large=0\n\
        Small Read Latency: avg=200.000 us, min=128.000 us, max=1924.000 us, std dev=13.566 us @ \
        Small=10 and Large=0\n\n\
        Minimum Small Latency=97.677 usecs @ Small=2 and Large=0\n\
        Small Read Latency: avg=97.677 us, min=63.652 us, max=2133.198 us, std dev=47.348 us @ \
        Small=2 and Large=0\n\
        Small Read / Write Latency Histogram @ Small=2 and Large=0\n        \
        Latency:                         # of IOs (read)          # of IOs (write)\n        \
        0 - 32         us:               0 (  0.00%)              0 (  0.00%)\n     \
        2048 - 4096       us:               2 (100.00%)              0 (  0.00%)\n     \
        4096 - 268435456  us:               0 (100.00%)              0 (  0.00%)";

#[test]
fn a_histogram_with_shares_and_a_wide_last_bucket_is_whole() {
    let whole = format!("{OF_19C}\n");
    let (found, points) = loads(&[("t.txt", &whole)]);
    assert_eq!(
        found.version.as_deref(),
        Some("RDBMS_19.3.0.0.0DBRU_LINUX.X64_190417")
    );
    let reported: Vec<(&str, Option<f64>, Option<f64>)> = points
        .iter()
        .map(|point| {
            let flow = &point.flows[0];
            let mean = flow.latencies.first().and_then(|timed| timed.mean);
            (point.label.as_str(), flow.iops, mean)
        })
        .collect();
    assert_eq!(
        reported,
        [
            ("Small=0, Large=5", None, None),
            ("Small=2, Large=0", None, Some(97_677.0)),
            ("Small=10, Large=0", Some(50_000.0), Some(200_000.0))
        ]
    );
    let cut = OF_19C.split_inclusive('\n').count() - 1;
    let without: String = OF_19C.split_inclusive('\n').take(cut).collect();
    let said = read(&[Source {
        name: "t.txt",
        text: &without,
    }]);
    let said = said.unwrap_err().to_string();
    assert!(said.contains("its histogram has no last bucket"), "{said}");
}

#[test]
fn a_pasted_file_without_a_last_line_end_is_read_with_a_note() {
    let (found, points) = loads(&[("t.txt", OF_19C)]);
    assert_eq!(points.len(), 3);
    assert!(
        found.notes[0].contains("has no line end: it is read, and may be cut short"),
        "{:?}",
        found.notes
    );
    let (found, points) = loads(&[(
        "t_iops.csv",
        "Large/Small,      1,      2\n          0,   2302,   4398",
    )]);
    assert_eq!(points[1].flows[0].iops, Some(4398.0));
    assert!(
        found.notes[0].starts_with("t_iops.csv line 2: '0,   2302,   4398' has no line end"),
        "{:?}",
        found.notes
    );
}

#[test]
fn several_reports_in_one_file_are_runs_of_their_own() {
    let one = "ORION VERSION 11.1.0.7.0\nWrite: 0%\nName: /dev/vdb\tSize: 21474836480\n\
                   Maximum Small IOPS=20000 @ Small=5 and Large=0\n\
                   Minimum Small Latency=0.25 @ Small=5 and Large=0\n";
    let both = format!(
        "{one}\n\n{}",
        one.replace("20000", "10000").replace("0.25", "0.50")
    );
    let source = Source {
        name: "all.txt",
        text: &both,
    };
    let found = read(&[source]).unwrap();
    let rates: Vec<Option<f64>> = found
        .iter()
        .map(|one| match &one.figures {
            Figures::Loads(points) => points[0].flows[0].iops,
            Figures::Series(_) | Figures::Database(_) | Figures::Claims(_) => None,
        })
        .collect();
    assert_eq!(rates, [Some(20_000.0), Some(10_000.0)]);
    let place = ("report".to_string(), "2 of 2, from line 8".to_string());
    assert!(
        found[1].reported.contains(&place),
        "{:?}",
        found[1].reported
    );
    let broken = both.replace("=10000 @", "=x @");
    let said = read(&[Source {
        text: &broken,
        ..source
    }]);
    let said = said.unwrap_err().to_string();
    assert!(said.contains("'all.txt' line 11: "), "{said}");
}

/// What 12.2 prints of a mix, with figures of our own.
const OF_A_MIX: &str = "ORION: ORacle IO Numbers -- Version 12.2.0.1.0\n\
        Maximum Small IOPS=900 @ Small=68 and Large=0\n\
        Small Read Latency: avg=74000.000 us, min=62000.000 us, max=180000.000 us, std dev=12000.0 \
        us @ Small=68 and Large=0\n\
        Small Write Latency: avg=73000.000 us, min=62000.000 us, max=187000.000 us, std dev=12000.0 \
        us @ Small=68 and Large=0Minimum Small Latency=4400.000 usecs @ Small=4 and Large=0\n\
        Small Read Latency: avg=4450.000 us, min=2900.000 us, max=126000.000 us, std dev=2700.0 us @ \
        Small=4 and Large=0\n\
        Small Write Latency: avg=4350.000 us, min=2600.000 us, max=137000.000 us, std dev=3400.0 us \
        @ Small=4 and Large=0\n";

fn told_of(flow: &Flow) -> (&str, Option<f64>, Option<f64>, Option<u64>) {
    let mean = flow.latency("total").and_then(|timed| timed.mean);
    (flow.kind.as_str(), flow.iops, mean, flow.done)
}

#[test]
fn reads_and_writes_of_a_mix_are_loads_of_their_own_in_every_cell() {
    let (_, points) = loads(&[("t.txt", OF_A_MIX)]);
    let labels: Vec<&str> = points.iter().map(|point| point.label.as_str()).collect();
    assert_eq!(labels, ["Small=4, Large=0", "Small=68, Large=0"]);
    let of = |point: usize| -> Vec<_> { points[point].flows.iter().map(told_of).collect() };
    assert_eq!(
        of(0),
        [
            ("mixed", None, Some(4.4e6), None),
            ("read", None, Some(4.45e6), None),
            ("write", None, Some(4.35e6), None)
        ]
    );
    assert_eq!(
        of(1),
        [
            ("mixed", Some(900.0), None, None),
            ("read", None, Some(74e6), None),
            ("write", None, Some(73e6), None)
        ]
    );
    let screen = format!("$ ./orion -run oltp -write 50 -testname t\n{OF_A_MIX}");
    let (found, points) = loads(&[("t.txt", &screen)]);
    assert_eq!(points[0].writes_percent, Some(50.0), "{:?}", found.reported);
}

#[test]
fn without_a_word_of_writes_loads_are_reads() {
    let (_, points) = loads(&[("t_iops.csv", "Large/Small,      1\n          0,   2302\n")]);
    assert_eq!(points[0].flows[0].kind, "read");
    let written = OF_A_MIX.replace("Small Read Latency: avg", "Other Latency: avg");
    let (_, points) = loads(&[("t.txt", &written)]);
    assert_eq!(points[0].flows.len(), 1, "{points:?}");
    assert_eq!(points[0].flows[0].kind, "write");
}

/// A histogram of 11.2 in tabs, of any cell.
fn histogram(cell: &str, counts: &[(u32, u64, u64)]) -> String {
    let mut text = format!(
        "Small Read / Write Latency Histogram @ {cell}\n\tLatency:\t\t# of IOs (read) \t # of IOs \
             (write) \n        0 - 1\t\tus:\t\t"
    );
    let count = |from: u32| {
        let row = counts.iter().find(|(known, ..)| *known == from);
        row.map_or("0\t\t\t0".into(), |(_, reads, writes)| {
            format!("{reads}\t\t\t{writes}")
        })
    };
    text += &count(0);
    for power in 1..28 {
        let from = 1_u32 << power;
        let row = [from.to_string(), (from * 2).to_string(), count(from)];
        text += "\n";
        text += &" ".repeat(9_usize.saturating_sub(row[0].len()));
        text += &[&row[0], " - ", &row[1], "\t\tus:\t\t", &row[2]].concat();
    }
    text + "\n"
}

#[test]
fn a_histogram_alone_is_the_load_of_its_cell() {
    let counts = [(256, 750, 0), (512, 250, 0), (4096, 0, 9)];
    let text = histogram("Small=3 and Large=0", &counts);
    let (found, points) = loads(&[("pasted.txt", &text)]);
    assert_eq!(points[0].load, ReportedLoad::Cell { small: 3, large: 0 });
    let of: Vec<_> = points[0].flows.iter().map(told_of).collect();
    assert_eq!(
        of,
        [
            ("mixed", None, None, Some(1009)),
            ("read", None, None, Some(1000)),
            ("write", None, None, Some(9))
        ]
    );
    let reads = &points[0].flows[1].latencies[0];
    let p50 = reads.quantile(0.5).unwrap();
    assert!(
        (p50 / 256e3 / 2f64.powf(2.0 / 3.0) - 1.0).abs() < 0.01,
        "{p50}"
    );
    let notes = found.notes.join("; ");
    assert!(
        notes.contains("nothing but the histogram has this label"),
        "{notes}"
    );
    assert!(notes.contains("interpolated within the buckets"), "{notes}");
    let row = "512 - 1024\t\tus:\t\t250";
    let text = text.replace(&format!("{row}\t\t\t0"), row);
    let said = read(&[Source {
        name: "pasted.txt",
        text: &text,
    }]);
    let said = said.unwrap_err().to_string();
    assert!(
        said.contains("line 12") && said.contains("not a row of a histogram"),
        "{said}"
    );
}

#[test]
fn a_histogram_that_contradicts_its_cell_is_not_used() {
    let line = "Maximum Small IOPS=1000 @ Small=3 and Large=0\nSmall Read Latency: avg=700.000 \
                    us, min=20 us, max=9000 us, std dev=9 us @ Small=3 and Large=0\nMinimum Small \
                    Latency=700.000 usecs @ Small=3 and Large=0\n";
    let head = "ORION VERSION 11.2.0.2.0\nDuration for each data point: 60 seconds\n";
    let of = |counts: &[(u32, u64, u64)]| {
        let histogram = histogram("Small=3 and Large=0", counts);
        let (found, mut points) = loads(&[("t_summary.txt", &format!("{head}{line}{histogram}"))]);
        let flow = points.remove(0).flows.remove(0);
        (flow.done, flow.latencies[0].mean, found.notes.join("; "))
    };
    let (done, mean, notes) = of(&[(512, 60_000, 0)]);
    assert_eq!((done, mean), (Some(60_000), Some(700e3)), "{notes}");
    let (done, mean, notes) = of(&[(2048, 60_000, 0)]);
    assert_eq!((done, mean), (None, Some(700e3)));
    assert!(
        notes.contains("the mean of its reads is 700 us, and by its histogram 2048 to 4096 us"),
        "{notes}"
    );
    let (done, _, notes) = of(&[(512, 20_000, 0)]);
    assert_eq!(done, None);
    assert!(
        notes.contains("its histogram has 20000 I/Os, and 1000 IOPS in 60 s are 60000"),
        "{notes}"
    );
}

#[test]
fn a_count_of_files_that_contradicts_their_names_is_noted() {
    let files = |count: u32| {
        let text = format!(
            "ORION VERSION 11.2.0.2.0\nName: /dev/vdb\tSize: 1\nName: /dev/vdc\tSize: 1\n\
                 {count} FILEs found.\nMaximum Large MBPS=9.00 @ Small=0 and Large=2\n"
        );
        loads(&[("t_summary.txt", &text)]).0.notes.join("; ")
    };
    assert!(
        files(1).contains("says '1 FILEs found.' below 2 lines"),
        "{}",
        files(1)
    );
    assert!(!files(2).contains("FILEs"), "{}", files(2));
}

#[test]
fn damage_is_named_with_its_line() {
    for (name, text, part) in [
        (
            "t_iops.csv",
            "Large/Small, 1, 2\n 0, 2302, x\n",
            "line 2: 'x' is not a number",
        ),
        (
            "t_iops.csv",
            "Large/Small, 1\n 0, 2302, 7\n",
            "line 2: 2 values for 1 columns",
        ),
        ("t_iops.csv", "Large/Small, 1\n", "contains no figures"),
        (
            "t_iops.csv",
            "Large/Small, 1, 2\n 0, 10000,  20",
            "line 2: '0, 10000,  20' has no line end: the file is truncated",
        ),
        (
            "t_summary.txt",
            "ORION VERSION 11\nMaximum Small IOPS=12 @ Sma\n",
            "line 2: '12 @ Sma' is not a figure",
        ),
        (
            "t_summary.txt",
            "ORION VERSION 11\nMaximum Small IOPS=12 @ Small=1 and Large=0\n",
            "line 2: the file is truncated here: there is no 'Minimum Small Latency='",
        ),
        (
            "t_summary.txt",
            "ORION VERSION 11\nTest: t\n",
            "line 2: the file is truncated here: there are no results",
        ),
        ("t.txt", "hello\n", "is not a file of Orion's"),
    ] {
        let said = read(&[Source { name, text }]).unwrap_err().to_string();
        assert!(said.contains(part) && said.contains("hint: "), "{said}");
    }
}
