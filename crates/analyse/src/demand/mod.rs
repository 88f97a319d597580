//! Reports of databases: what they ask of their storage, what they got, and whether the figures of a
//! report agree with each other.
//!
//! Input: facts of reports. Output: a demand for each instance, figures of each report, findings.

pub mod against;
pub mod answer;
pub mod captures;
pub mod checks;
pub mod database_figures;
pub mod database_result;
pub mod distribution;
pub mod event_distribution;
pub mod evidence;
pub mod hidden;
pub mod instances;
pub mod keeps;
pub mod loops;
pub mod memory;
pub mod notes;
pub mod rates;
pub mod read_kind;
pub mod report_figures;
pub mod room;
pub mod scale_up;
pub mod sources;
pub mod stream_objective;
pub mod streams;
pub mod watch_request;
pub mod watched;
pub mod watched_counters;
pub mod watched_demand;
pub mod watched_streams;
pub mod watched_types;

pub use against::{DemandAgainst, StreamAgainst, Usage, against};
pub use answer::Answer;
pub use database_figures::DatabaseFigures;
pub use database_result::{DatabaseResult, WaitShare, database};
pub use event_distribution::{EventBucket, EventDistribution, bound_of_bucket};
pub use evidence::has_possible_reads;
pub use hidden::{hidden_log_writes, hidden_times, hidden_waits};
pub use instances::{DemandOfInstances, at_one_time};
pub use loops::{LoopFigures, LoopKind, LoopWait, LoopWitness};
pub use read_kind::BLOCK_ASSUMED;
pub use scale_up::load_points;
pub use sources::{
    demand_at_least, demand_censored, demand_findings, demands, imported_demands, mean_time,
};
pub use watched::WatchReader;
pub use watched_demand::WatchDemands;
pub use watched_types::{
    BusiestInterval, OwnCost, StorageRoom, StreamPoint, StreamRoom, WatchResult, WatchedPoint,
    WatchedSource, WatchedStream,
};

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_import::{Source, csv_columns::Columns, read};
    use rigel_model::record::Imported;
    use rigel_model::{DemandKind, FindingName, Severity};

    // Made for these tests, in the layout of 11.2.0.4: no figures of a real database.
    const TEXT: &str = include_str!("../../../../tests/imports/awr_synthetic.txt");
    const HTML: &str = include_str!("../../../../tests/imports/awr_synthetic.html");
    const STATSPACK: &str = include_str!("../../../../tests/imports/statspack_synthetic.lst");

    fn imported(files: &[(&str, &str)]) -> Vec<Imported> {
        let sources: Vec<Source> = files
            .iter()
            .map(|(name, text)| Source { name, text })
            .collect();
        read(&sources, None, &Columns::default()).unwrap()
    }

    fn result(text: &str) -> DatabaseResult {
        database(&imported(&[("report", text)])).unwrap()
    }

    fn near(figure: Option<f64>, known: f64, tolerance: f64) {
        let figure = figure.expect("it is known");
        assert!(
            (figure / known - 1.0).abs() <= tolerance,
            "{figure} and not {known}"
        );
    }

    /// The report was made from these numbers.
    #[test]
    fn the_demand_of_a_report_is_what_it_was_made_of() {
        const SECONDS: f64 = 3613.02;
        for (text, digits) in [(TEXT, 1e-3), (HTML, 1e-4)] {
            let found = result(text);
            let interval = &found.demands[0].intervals[0];
            near(interval.seconds, SECONDS, 1e-5);
            let stream = |kind| interval.stream(kind).unwrap();
            let random = stream(DemandKind::RandomReads);
            near(random.per_s, (1_000_000.0 - 60_000.0) / SECONDS, digits);
            near(random.mean_us, 2220.0 / 0.92, 0.005);
            near(random.mean_bytes, 8192.0, 1e-9);
            let multi = stream(DemandKind::MultiblockReads);
            near(multi.per_s, 60_000.0 / SECONDS, 1e-5);
            near(
                multi.mean_bytes,
                (1_500_000.0 - 940_000.0) / 60_000.0 * 8192.0,
                1e-2,
            );
            let direct = stream(DemandKind::DirectReads);
            near(direct.per_s, 12_500.0 / SECONDS, 0.02);
            let pages = stream(DemandKind::PageWrites);
            near(pages.per_s, 150_000.0 / SECONDS, 2e-3);
            near(pages.mean_bytes, 200_000.0 * 8192.0 / 150_000.0, 3e-3);
            assert_eq!(pages.mean_us, None, "a batch is no write");
            let log = stream(DemandKind::LogWrites);
            near(log.per_s, 100_000.0 / SECONDS, 1e-5);
            near(log.mean_bytes, 12_400.0, 1e-9);
            near(log.mean_us, 800.0, 0.01);
        }
    }

    #[test]
    fn the_figures_for_spreadsheets_are_those_the_report_was_made_of() {
        let found = &result(HTML).figures[0];
        near(found.all_reads_per_s, 1_042_500.0 / 3613.02, 1e-5);
        near(found.db_write_mib_per_s, 220_000.0 / 128.0 / 3613.02, 1e-5);
        near(found.redo_write_bytes, 12_400.0, 1e-9);
        near(found.commit_us, 1200.0, 0.005);
        near(found.host_busy_percent, 18.2, 1e-9);
        near(found.active_sessions, 4000.0 / 3613.02, 1e-4);
        // Of 920,000: 95 % below 8 ms, 99 % below 16 ms: on the bound.
        near(found.random_read_p99_us, 16_000.0, 0.001);
        assert_eq!(found.top_event.as_deref(), Some("db file sequential read"));
    }

    #[test]
    fn statspack_of_the_same_window_agrees_within_a_percent() {
        let (awr, statspack) = (result(HTML), result(STATSPACK));
        let (one, other) = (&awr.figures[0], &statspack.figures[0]);
        for (one, other) in [
            (one.seconds, other.seconds),
            (one.all_reads_per_s, other.all_reads_per_s),
            (one.all_write_mib_per_s, other.all_write_mib_per_s),
            (one.redo_writes_per_s, other.redo_writes_per_s),
            (one.redo_write_bytes, other.redo_write_bytes),
            (one.random_reads_per_s, other.random_reads_per_s),
            (one.random_read_us, other.random_read_us),
            (one.random_read_p99_us, other.random_read_p99_us),
            (one.log_write_us, other.log_write_us),
            (one.host_busy_percent, other.host_busy_percent),
        ] {
            near(one, other.unwrap(), 0.01);
        }
    }

    fn warnings(text: &str) -> Vec<String> {
        let found = result(text).findings.into_iter();
        found
            .filter(|finding| finding.severity != Severity::Note)
            .map(|finding| finding.what)
            .collect()
    }

    #[test]
    fn a_report_that_agrees_with_itself_has_no_warning() {
        for text in [TEXT, HTML, STATSPACK] {
            assert_eq!(warnings(text), Vec::<String>::new());
        }
        let notes = result(HTML).findings;
        assert!(
            notes
                .iter()
                .any(|finding| finding.is(FindingName::DemandCensored))
        );
        assert!(
            notes
                .iter()
                .any(|finding| finding.is(FindingName::BurstsUnknown))
        );
    }

    #[test]
    fn one_changed_digit_is_named_with_both_figures() {
        for (text, whole, changed, part) in [
            // A count, a time, an average and a share of one row.
            (
                TEXT,
                "60,000     0        270",
                "61,000     0        970",
                "db file scattered read",
            ),
            (
                HTML,
                ">108</td><td class=\"awrc\">1<",
                ">508</td><td class=\"awrc\">1<",
                "log file sync",
            ),
            (HTML, ">100,000</td>", ">170,000</td>", "redo writes"),
            (HTML, ">1,900,000</td>", ">1,800,000</td>", "physical reads"),
            (HTML, ">332,132.12</td>", ">382,132.12</td>", "redo size"),
            (HTML, "60.22 (mins)", "62.22 (mins)", "elapsed time"),
            (HTML, ">40.0</td>", ">60.0</td>", "shares of the histogram"),
        ] {
            assert!(text.contains(whole), "{whole}");
            let said = warnings(&text.replacen(whole, changed, 1));
            assert!(
                said.iter().any(|what| what.contains(part)),
                "{part}: {said:?}"
            );
        }
    }

    #[test]
    fn an_edited_report_is_doubted() {
        let edited = HTML
            .replace(">1,900,000</td>", ">2,900,000</td>")
            .replace(">100,000</td>", ">170,000</td>")
            .replace("60.22 (mins)", "90.22 (mins)");
        let found = result(&edited).findings;
        assert!(
            found
                .iter()
                .any(|finding| finding.is(FindingName::ReportDoubted))
        );
    }

    #[test]
    fn a_figure_that_contradicts_itself_is_not_used() {
        let found = result(&TEXT.replacen("99,500     0         80", "99,500     0        480", 1));
        assert_eq!(found.figures[0].log_write_us, None);
        let log = found.demands[0].intervals[0]
            .stream(DemandKind::LogWrites)
            .unwrap();
        assert!(log.mean_us.is_none() && log.per_s.is_some());
    }

    /// The same report as that of the other instance of a RAC.
    fn of_instance(number: u32) -> String {
        HTML.replace("<td class=\"awrc\">NO</td>", "<td class=\"awrc\">YES</td>")
            .replace("synth1", &format!("synth{number}"))
            .replace(
                "<th class=\"awrbg\" scope=\"col\">Cursors/Session</th>",
                "<th>Cursors/Session</th><th>Instances</th>",
            )
            .replace(">1.1</td></tr>", ">1.1</td><td>2</td></tr>")
    }

    #[test]
    fn instances_of_a_rac_stay_apart_and_are_summed() {
        let (one, two) = (of_instance(1), of_instance(2));
        let found = database(&imported(&[("1.html", &one), ("2.html", &two)])).unwrap();
        let names: Vec<&str> = found
            .demands
            .iter()
            .map(|demand| demand.database.as_str())
            .collect();
        assert_eq!(
            names,
            ["SYNTH/synth1", "SYNTH/synth2", "SYNTH, all 2 instances"]
        );
        let rate = |at: usize| {
            let interval = &found.demands[at].intervals[0];
            interval
                .stream(DemandKind::RandomReads)
                .unwrap()
                .per_s
                .unwrap()
        };
        assert!((rate(2) - rate(0) - rate(1)).abs() < 1e-9);
        assert_eq!(found.main_demand(), Some(2));
        let alone = database(&imported(&[("1.html", &one)])).unwrap();
        let missing = |finding: &&rigel_model::Finding| finding.is(FindingName::InstancesMissing);
        let said = &alone.findings.iter().find(missing).unwrap().what;
        assert!(said.contains("1 of 2 instances"), "{said}");
    }

    #[test]
    fn files_numbered_by_sessions_are_loads_of_a_curve() {
        let files = [
            ("awr.txt.4", TEXT),
            ("awr.txt.16", TEXT),
            ("awr.txt.1", TEXT),
        ];
        let all = imported(&files);
        let found = database(&all).unwrap();
        let sessions: Vec<Option<u32>> = found.figures.iter().map(|one| one.sessions).collect();
        assert_eq!(sessions, [Some(1), Some(4), Some(16)]);
        assert!(
            found
                .findings
                .iter()
                .any(|finding| finding.is(FindingName::ScaleUp))
        );
        let rigel_model::record::imported::Figures::Database(reports) = &all[0].figures else {
            panic!("reports of a database")
        };
        let points = load_points(reports);
        near(points[0].flows[0].iops, 260.2, 0.001);
        near(points[0].flows[0].latencies[0].mean, 2.413e6, 0.005);
    }

    const FIRST_PAGE: &str = include_str!("../../../../tests/imports/awr_first_page.txt");
    const CONTAINER: &str = include_str!("../../../../tests/imports/awr_pdb_19c.txt");

    /// Rate and mean size of a stream of the first demand.
    fn stream_of(found: &DatabaseResult, kind: DemandKind) -> Option<(f64, Option<f64>)> {
        let stream = found.demands[0].intervals[0].stream(kind)?;
        Some((stream.per_s?, stream.mean_bytes))
    }

    fn said(found: &DatabaseResult, name: FindingName) -> Vec<&str> {
        let named = found.findings.iter().filter(|finding| finding.is(name));
        named.map(|finding| finding.what.as_str()).collect()
    }

    #[test]
    fn a_first_page_has_the_demand_that_its_profiles_print() {
        let found = result(FIRST_PAGE);
        let (reads, bytes) = stream_of(&found, DemandKind::RandomReads).unwrap();
        near(Some(reads), 30_000.0, 1e-9);
        near(bytes, 8192.0, 1e-9);
        assert_eq!(found.demands[0].block_bytes, Some(8192), "MB over blocks");
        let (writes, bytes) = stream_of(&found, DemandKind::PageAndDirectWrites).unwrap();
        near(Some(writes), 4000.0, 1e-9);
        near(bytes, 8192.0, 0.002);
        let (log, bytes) = stream_of(&found, DemandKind::LogWrites).unwrap();
        near(Some(log * bytes.unwrap()), 120_000.0, 1e-9);
        near(Some(log), 25.0, 1e-9);
        assert_eq!(said(&found, FindingName::DemandIncomplete), [""; 0]);
        assert_eq!(said(&found, FindingName::ReportCut).len(), 1);
        let figures = &found.figures[0];
        for (figure, printed) in [
            (figures.db_reads_per_s, 30_000.0),
            (figures.db_read_mib_per_s, 234.4),
            (figures.all_reads_per_s, 30_010.0),
            (figures.db_writes_per_s, 4000.0),
            (figures.all_write_mib_per_s, 32.1),
            (figures.executions_per_s, 600.0),
            (figures.transactions_per_s, 20.0),
            (figures.logical_reads_per_s, 20_000.0),
            (figures.redo_mib_per_s, 120_000.0 / 1_048_576.0),
            (figures.cpu_seconds_per_s, 0.5),
        ] {
            near(figure, printed, 1e-9);
        }
        // Not printed: requests to log files are those of all members.
        assert_eq!(figures.redo_writes_per_s, None);
    }

    #[test]
    fn reads_of_several_blocks_on_a_first_page_keep_their_bytes() {
        // 30,000 requests of 61 MB/s more: those that are no wait for a single block are larger.
        let page = FIRST_PAGE
            .replace("30,000.0              11.5", "60,000.0              11.5")
            .replace("        234.4 ", "        468.8 ")
            .replace("   360,000      720.0", "36,000,000    72000.0");
        let found = result(&page);
        let (random, _) = stream_of(&found, DemandKind::RandomReads).unwrap();
        near(Some(random), 10_000.0, 1e-6);
        let (direct, bytes) = stream_of(&found, DemandKind::DirectReads).unwrap();
        near(Some(direct), 20_000.0, 1e-6);
        near(bytes, 50_000.0 / 20_000.0 * 8192.0, 1e-3);
        // Without any wait for reads.
        let without: Vec<&str> = page
            .lines()
            .filter(|line| !line.contains("db file"))
            .collect();
        let found = result(&without.join("\n"));
        let (all, bytes) = stream_of(&found, DemandKind::DirectReads).unwrap();
        near(Some(all), 30_000.0, 1e-9);
        near(bytes, 16_384.0, 1e-3);
    }

    #[test]
    fn a_page_of_an_old_release_counts_blocks_alone_and_what_is_missing_is_said() {
        let lines = FIRST_PAGE.lines().filter(|line| {
            let is_new = ["Read IO", "Write IO", "Redo Requests", "Requests:", "(MB):"];
            !is_new.iter().any(|name| line.contains(name))
        });
        let page = lines.collect::<Vec<_>>().join("\n");
        let cache = "\n\nCache Sizes                       Begin        End\n\
                     ~~~~~~~~~~~                  ---------- ----------\n               Buffer Cache:    \
                     2,048M     2,048M  Std Block Size:         8K\n";
        let found = result(&format!("{page}{cache}"));
        let missing = said(&found, FindingName::DemandIncomplete);
        let [missing] = missing[..] else {
            panic!("{missing:?}")
        };
        for part in [
            "245 MB/s of 246 MB/s of reads",
            "32.8 MB/s of writes",
            "0.12 MB/s of the log",
        ] {
            assert!(missing.contains(part), "{missing}");
        }
    }

    #[test]
    fn a_container_without_statistics_has_the_demand_of_its_first_page() {
        let found = result(CONTAINER);
        assert_eq!(said(&found, FindingName::ReportCut), [""; 0]);
        let (random, bytes) = stream_of(&found, DemandKind::RandomReads).unwrap();
        near(Some(random), 1200.0, 1e-9);
        near(bytes, 8192.0, 1e-9);
        let (others, bytes) = stream_of(&found, DemandKind::DirectReads).unwrap();
        near(Some(others), 300.0, 1e-9);
        near(bytes, 5.0 * 8192.0, 1e-2);
        let (writes, _) = stream_of(&found, DemandKind::PageAndDirectWrites).unwrap();
        near(Some(writes), 80.0, 1e-9);
        let missing = said(&found, FindingName::DemandIncomplete);
        assert!(missing[0].contains("0.12 MB/s of the log"), "{missing:?}");
        // Where it counts the requests to its log, these are in the demand.
        let profile = "\nIO Profile                  Read+Write/Second     Read/Second    Write/Second\n\
                       ~~~~~~~~~~                  ----------------- --------------- ---------------\n\
                       \x20            Redo Requests:              25.0             N/A            25.0\n";
        let found =
            result(&CONTAINER.replacen("\nHost CPU\n", &format!("{profile}\nHost CPU\n"), 1));
        let (log, bytes) = stream_of(&found, DemandKind::LogWrites).unwrap();
        near(Some(log), 25.0, 1e-9);
        near(bytes, 4800.0, 1e-9);
        assert_eq!(said(&found, FindingName::DemandIncomplete), [""; 0]);
    }

    #[test]
    fn the_host_is_as_busy_as_a_line_says_that_is_shorter_than_its_ruler() {
        let figures = &result(CONTAINER).figures[0];
        near(figures.host_busy_percent, 2.9, 1e-9);
        near(figures.io_wait_percent, 1.5, 1e-9);
        let wrong = result(&CONTAINER.replace("97.1", "57.1")).figures;
        assert_eq!(wrong[0].host_busy_percent, None, "shares sum to 100");
    }

    #[test]
    fn a_container_of_one_instance_of_a_rac_is_said_to_be_a_part() {
        let of = |files: &[(&str, &str)]| database(&imported(files)).unwrap();
        let one = of(&[("1.txt", CONTAINER)]);
        let missing = said(&one, FindingName::InstancesMissing);
        assert!(
            missing[0].starts_with("SYNTH/PDBX: reports of 1 of 2 instances"),
            "{missing:?}"
        );
        let second = CONTAINER.replace("synth1              1", "synth2              2");
        let both = of(&[("1.txt", CONTAINER), ("2.txt", &second)]);
        assert_eq!(said(&both, FindingName::InstancesMissing), [""; 0]);
        let names: Vec<&str> = both
            .demands
            .iter()
            .map(|one| one.database.as_str())
            .collect();
        assert_eq!(
            names,
            [
                "SYNTH/synth1/PDBX",
                "SYNTH/synth2/PDBX",
                "SYNTH/PDBX, all 2 instances"
            ]
        );
        let alone = CONTAINER.replace("YES YES", "NO  YES");
        assert_eq!(
            said(&of(&[("1.txt", &alone)]), FindingName::InstancesMissing),
            [""; 0]
        );
    }

    #[test]
    fn a_page_that_a_browser_saved_as_one_file_is_the_page() {
        let html = include_str!("../../../../tests/imports/awr_small.html");
        let saved = include_bytes!("../../../../tests/imports/awr_small.mht");
        let text = rigel_import::text("report", saved.to_vec()).unwrap();
        let (whole, found) = (result(html), result(&text));
        assert_eq!(found, whole);
        assert_eq!(whole.figures[0].db.as_deref(), Some("MYDB"));
    }

    #[test]
    fn a_quoted_report_is_the_report() {
        let small = include_str!("../../../../tests/imports/awr_small.html");
        let apart = small.replace(
            "<td scope=\"row\" class=\"awrc\">",
            "<td scope=\"row\" class=\"awrc\">\n",
        );
        for text in [TEXT, HTML, STATSPACK, &apart, FIRST_PAGE, CAPTURE] {
            let whole = result(text);
            for prefix in ["> ", "> > ", "| ", "    ", "* ", "LOG: "] {
                let quoted = text.lines().map(|line| format!("{prefix}{line}\n"));
                assert_eq!(result(&quoted.collect::<String>()), whole, "{prefix:?}");
            }
        }
        // An answer in between: which lines are the page's is not known.
        let quoted = apart
            .lines()
            .enumerate()
            .map(|(number, line)| match number {
                20 => format!("Look at this!\n{line}\n"),
                _ => format!("> {line}\n"),
            });
        let text: String = quoted.collect();
        let source = Source {
            name: "mail",
            text: &text,
        };
        let refused = read(&[source], None, &Columns::default())
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("'mail' is a page of which some lines begin with '>'"),
            "{refused}"
        );
    }

    const CAPTURE: &str = "\
~~BEGIN-OS-INFORMATION~~
STAT_NAME                      STAT_VALUE
------------------------------ --------------------
NUM_CPUS                       8
PHYSICAL_MEMORY_GB             62,8
VERSION                        11.2.0.3.0
DB_NAME                        SYNTH
INSTANCES                      2
AWR_MINER_VER                  4.0.11
~~END-OS-INFORMATION~~
Elapsed: 00:00:00.13
~~BEGIN-MAIN-METRICS~~

      snap      dur_m end                  inst  read_iops read_iops_max write_iops  redo_mb_s
---------- ---------- -------------- ---------- ---------- ------------- ---------- ----------
        10         60 26/03/02 11:00          1      300,5          1803       30,5         ,5
        10         60 26/03/02 11:00          2      100,5           603       10,5         ,1
        11         60 26/03/02 12:00          1      200,5          1203       20,5         ,3
~~END-MAIN-METRICS~~
~~BEGIN-IO-WAIT-HISTOGRAM~~

   SNAP_ID WAIT_CLASS           EVENT_NAME                            WAIT_TIME_MILLI WAIT_COUNT
---------- -------------------- ------------------------------------- --------------- ----------
        10 User I/O             db file sequential read                             1     600000
        10 User I/O             db file sequential read                             8     300000
        10 System I/O           log file parallel write                             1      36000
~~END-IO-WAIT-HISTOGRAM~~
";

    #[test]
    fn a_capture_is_a_series_and_a_snapshot_without_an_instance_is_left_out() {
        let found = result(CAPTURE);
        assert_eq!(found.figures.len(), 2);
        let demand = &found.demands[0];
        assert_eq!(demand.intervals.len(), 1, "the second lacks instance 2");
        let random = demand.intervals[0].stream(DemandKind::RandomReads).unwrap();
        near(random.per_s, 900_000.0 / 3600.0, 1e-9);
        assert!((random.latencies[1].low_us - 4000.0).abs() < 1e-9);
        let log = demand.intervals[0].stream(DemandKind::LogWrites).unwrap();
        near(log.per_s, 10.0, 1e-9);
        near(log.mean_bytes, 0.6 * 1_048_576.0 / 10.0, 1e-6);
        let writes = demand.intervals[0]
            .stream(DemandKind::PageAndDirectWrites)
            .unwrap();
        near(writes.per_s, 31.0, 1e-9);
        near(found.figures[0].all_reads_per_s, 401.0, 1e-9);
        // What the histogram has no wait for.
        let direct = demand.intervals[0].stream(DemandKind::DirectReads);
        near(direct.unwrap().per_s, 401.0 - 250.0, 1e-9);
        let said: Vec<&str> = found
            .findings
            .iter()
            .map(|finding| finding.what.as_str())
            .collect();
        assert!(
            said.iter()
                .any(|what| what.contains("1 of 2 snapshots lack")),
            "{said:?}"
        );
        assert!(
            said.iter()
                .any(|what| what.contains("6.0 times its mean read")),
            "{said:?}"
        );
    }

    #[test]
    fn the_busiest_snapshot_of_a_capture_without_a_histogram_is_that_of_most_requests() {
        let without = CAPTURE.split("~~BEGIN-IO-WAIT").next().unwrap();
        let found = result(&without.replace(
            "INSTANCES                      2",
            "INSTANCES                      1",
        ));
        let (busiest, _) = found.demands[0].busiest().unwrap();
        let reads = busiest.stream(DemandKind::RandomReads).unwrap();
        let writes = busiest.stream(DemandKind::PageAndDirectWrites).unwrap();
        assert!(
            reads.per_s > Some(300.0) && writes.per_s > Some(30.0),
            "{busiest:?}"
        );
        assert!(reads.latencies.is_empty());
    }

    #[test]
    fn an_average_above_its_maximum_is_named() {
        let said = warnings(&CAPTURE.replace("1803", " 103"));
        assert!(
            said.iter()
                .any(|what| what.contains("read_iops of instance 1 is 300.5")),
            "{said:?}"
        );
    }
}
