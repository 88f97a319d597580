//! Tests of the formulas on a made-up calibration: every setting follows from a few figures.

use super::decision::Decision;
use super::setting::*;
use super::*;
use crate::examples::{at, calibration as example, header};
use crate::{Estimate, KneeRange, Limits, calibration};
use rigel_model::{Bound, Bytes, LogKind, Ratio, SyncMethod, Target};
use std::path::PathBuf;

/// A number without an error, as an estimate.
fn exact(value: f64) -> Estimate {
    Estimate::new(
        value,
        Some(Limits {
            low: value,
            high: Some(value),
        }),
    )
}

fn of_sessions(sessions: Option<u32>) -> AdviceTerms<'static> {
    AdviceTerms {
        sessions,
        ..AdviceTerms::default()
    }
}

fn settings(found: &Calibration, product: Product) -> Vec<Advice> {
    advise(found, &header(), &[product], AdviceTerms::default())
        .remove(0)
        .settings
}

fn setting(found: &Calibration, product: Product, name: &str) -> Advice {
    settings(found, product)
        .into_iter()
        .find(|setting| setting.setting == name)
        .expect(name)
}

fn value(found: &Calibration, product: Product, name: &str) -> String {
    setting(found, product, name).value.expect(name)
}

fn apply(found: &Calibration, product: Product) -> String {
    advise(found, &header(), &[product], AdviceTerms::default())
        .remove(0)
        .apply
        .join("\n")
}

#[test]
fn a_random_page_costs_its_time_over_that_of_a_sequential_one() {
    let found = example();
    // 100 us and 8.192 us, over 231.072 us for the 16 pages of 128 KiB; at depth 8 both are done
    // eight at a time.
    let truth = 108.192 / (231.072 / 16.0);
    let random_page_cost = setting(&found, Product::Postgres, "random_page_cost");
    let estimate = random_page_cost.estimate.unwrap();
    assert!((estimate.value - truth).abs() < 1e-9, "{estimate:?}");
    assert!(estimate.interval.unwrap().contains(truth));
    let alone = postgres::TwoSizes::alone(found.low_load.unwrap(), found.stream.unwrap());
    let alone = alone.random_page_cost();
    assert!((alone.value - truth).abs() < 1e-9, "{alone:?}");
    let others: Vec<&str> = random_page_cost
        .opinions
        .iter()
        .map(|opinion| opinion.value.as_str())
        .collect();
    // At depth 1, with nine in ten cached, and the common advice.
    assert_eq!(others, ["7.5", "1.0", "1.1"]);
    let mut level = found.clone();
    // Random reads that use the storage's whole bandwidth: a page costs the same wherever it lies,
    // never less.
    level.at_knee = Some(at(64, 8192, 2e6));
    assert_eq!(value(&level, Product::Postgres, "random_page_cost"), "1.0");
}

/// The example, with large reads of another size.
fn with_large_reads(bytes: u32, us_each: f64) -> Calibration {
    let mut found = example();
    found.large = Some(at(8, bytes, 8e6 / us_each));
    found
}

#[test]
fn a_random_page_costs_the_same_whatever_large_size_was_measured() {
    let us = |bytes: u32| 100.0 + f64::from(bytes) * 1e-3;
    for bytes in [64 << 10, 128 << 10, 256 << 10, 1 << 20] {
        let found = with_large_reads(bytes, us(bytes));
        assert_eq!(
            value(&found, Product::Postgres, "random_page_cost"),
            "7.5",
            "{bytes}"
        );
        // A read that takes as long whatever its size: a scan reads 16 pages in one.
        let found = with_large_reads(bytes, us(8192));
        let cost = setting(&found, Product::Postgres, "random_page_cost");
        assert_eq!(cost.value.as_deref(), Some("16"), "{bytes}");
        assert_eq!(cost.range.unwrap()[1], "16", "{bytes}");
    }
}

#[test]
fn the_size_of_a_scans_read_is_decided_whatever_large_size_was_measured() {
    let decision = |bytes: u32, us_each: f64| {
        let found = with_large_reads(bytes, us_each);
        setting(&found, Product::Postgres, "io_combine_limit").decision
    };
    let us_of_page = 8e6 / example().at_knee.unwrap().iops.value;
    for (bytes, us_each, why) in [
        (128 << 10, us_of_page, "no read above 128 KiB was measured"),
        // As many bytes a second as pages reach.
        (1 << 20, 128.0 * us_of_page, "reach at most"),
        (1 << 20, us_of_page, "may reach more"),
    ] {
        let decision = decision(bytes, us_each);
        assert!(matches!(decision, Decision::Leave { .. }), "{decision:?}");
        assert!(decision.why().contains(why), "{why}: {decision:?}");
    }
}

#[test]
fn concurrency_is_the_depth_at_the_knee_within_the_servers_limits() {
    let mut found = example();
    let names = [
        "effective_io_concurrency",
        "maintenance_io_concurrency",
        "io_workers",
    ];
    assert_eq!(
        names.map(|name| value(&found, Product::Postgres, name)),
        ["8", "8", "8"]
    );
    found.curve.knee.as_mut().unwrap().load = 2048.0;
    found.curve.knee.as_mut().unwrap().bounded_above = false;
    assert_eq!(
        names.map(|name| value(&found, Product::Postgres, name)),
        ["1000", "1000", "32"]
    );
    let open = setting(&found, Product::Postgres, "io_workers");
    assert!(
        open.warnings
            .iter()
            .any(|warning| warning.starts_with("knee-not-reached")),
        "{:?}",
        open.warnings
    );
    found.curve.knee = None;
    assert!(
        names
            .iter()
            .all(|name| setting(&found, Product::Postgres, name).value.is_none())
    );
}

#[test]
fn files_of_a_log_are_filled_unless_that_is_certainly_slower() {
    let mut found = example();
    let of = |found: &Calibration| {
        let mut all = settings(found, Product::Postgres).into_iter();
        all.find(|one| one.setting == "wal_init_zero")
    };
    assert_eq!(of(&found), None, "it is faster");
    let mut unwritten = |rate: f64| {
        for log in &mut found.log_files {
            let is_unwritten = log.log == Some(LogKind::SIZED);
            log.at.iops = exact(if is_unwritten { rate } else { 300.0 });
        }
        of(&found)
    };
    assert_eq!(unwritten(300.0), None, "no difference is certain");
    let plain = unwritten(900.0).unwrap();
    assert!(plain.statement.unwrap().contains("wal_init_zero = off"));
}

#[test]
fn another_method_is_set_only_where_it_certainly_commits_more_often() {
    let mut found = example();
    let of = |found: &Calibration| {
        let mut all = settings(found, Product::Postgres).into_iter();
        all.find(|one| one.setting == "wal_sync_method")
    };
    assert_eq!(of(&found), None, "no other was measured");
    let mut other = found.log_files[2];
    other.log = Some(LogKind::REUSED.by(SyncMethod::OpenDatasync));
    other.at.iops = exact(1500.0);
    found.log_files.push(other);
    let faster = of(&found).unwrap();
    assert!(
        faster
            .statement
            .unwrap()
            .contains("wal_sync_method = open_datasync")
    );
    found.log_files.last_mut().unwrap().at.iops = exact(900.0);
    assert_eq!(of(&found), None, "the default is as good");
}

#[test]
fn what_is_left_says_what_it_costs_here() {
    let found = example();
    let wait = setting(&found, Product::Postgres, "commit_delay");
    assert!(
        wait.decision.why().contains("9.0 times as often"),
        "{:?}",
        wait.decision
    );
    let half = whole(found.log_files[2].at.mean_us.value / 2.0);
    assert_eq!(wait.opinions[0].value, half);
    let price = setting(&found, Product::Mysql, "innodb_flush_log_at_trx_commit");
    assert!(
        price.decision.why().contains("it costs a commit 1.00 ms"),
        "{:?}",
        price.decision
    );
    for advice in [wait, price] {
        assert!(advice.is_aside() && advice.statement.is_none());
    }
}

#[test]
fn a_page_may_be_torn_unless_the_storage_promises_and_the_database_asks() {
    let mut header = header();
    let mut why = |most: Option<u64>| {
        header.facts.members[0].atomic_write_max = most.map(Bytes);
        let of = |product, name: &str| {
            let found = &advise(&example(), &header, &[product], AdviceTerms::default())[0];
            let mut settings = found.settings.iter();
            let setting = settings.find(|one| one.setting == name).unwrap();
            assert_eq!(setting.statement, None, "it is never switched off");
            setting.decision.why().to_string()
        };
        [
            of(Product::Postgres, "full_page_writes"),
            of(Product::Mariadb, "innodb_doublewrite"),
        ]
    };
    let promises = |whys: [String; 2]| whys.map(|why| why.contains("does not ask"));
    assert_eq!(promises(why(None)), [false, false]);
    assert_eq!(
        promises(why(Some(8192))),
        [true, false],
        "a page of InnoDB is larger"
    );
    assert_eq!(promises(why(Some(65_536))), [true, true]);
}

#[test]
fn mariadbs_log_is_written_through_only_where_that_certainly_commits_more_often() {
    let mut found = example();
    let of = |found: &Calibration| {
        let mut all = settings(found, Product::Mariadb).into_iter();
        all.find(|one| one.setting == "innodb_log_file_write_through")
    };
    assert_eq!(of(&found), None, "no other method was measured");
    let mut other = found.log_files[2];
    other.log = Some(LogKind::REUSED.by(SyncMethod::Direct));
    other.at.iops = exact(1500.0);
    found.log_files.push(other);
    let faster = of(&found).unwrap();
    assert_eq!(
        faster.statement.as_deref(),
        Some("innodb_log_file_write_through = ON")
    );
}

#[test]
fn before_13_a_value_counted_disks() {
    // The release notes of 13 give 1, 3, 5.5, 8.3 and 29.3 reads in flight for the values 1 to 4
    // and 10.
    let found = [0.5, 1.0, 2.9, 3.0, 8.0, 8.34, 29.3].map(postgres::before_13);
    assert_eq!(found.map(whole), ["1", "1", "1", "2", "3", "4", "10"]);
}

#[test]
fn background_writes_leave_half_of_the_storage_to_reads() {
    let mut found = example();
    for product in [Product::Mysql, Product::Mariadb] {
        assert_eq!(value(&found, product, "innodb_io_capacity_max"), "20000");
        assert_eq!(value(&found, product, "innodb_io_capacity"), "10000");
    }
    let max = setting(&found, Product::Mysql, "innodb_io_capacity_max");
    assert_eq!(max.range, Some(["19800".into(), "20200".into()]));
    // Pages of 16 KiB may take as long as the four blocks in each; a warning says that the block
    // size differs.
    found.writes = Some(at(16, 4096, 40_000.0));
    let max = setting(&found, Product::Mysql, "innodb_io_capacity_max");
    assert_eq!(max.range, Some(["4950".into(), "20200".into()]));
    assert!(
        max.warnings[0].starts_with("block-size"),
        "{:?}",
        max.warnings
    );
    found.writes = Some(at(1, 16 << 10, 120.0));
    assert_eq!(
        value(&found, Product::Mysql, "innodb_io_capacity"),
        "100",
        "the minimum that the server accepts"
    );
}

#[test]
fn a_thread_serves_256_requests() {
    let mut found = example();
    for (depth, threads) in [
        (1_u32, "1"),
        (1024, "4"),
        (1025, "5"),
        (2048, "8"),
        (1 << 20, "64"),
    ] {
        found.curve.knee.as_mut().unwrap().load = f64::from(depth);
        found.writes = Some(at(depth, 16 << 10, 40_000.0));
        for name in ["innodb_read_io_threads", "innodb_write_io_threads"] {
            assert_eq!(
                value(&found, Product::Mysql, name),
                threads,
                "{name} at depth {depth}"
            );
        }
    }
    assert!(apply(&found, Product::Mariadb).contains("\ninnodb_read_io_threads = 64"));
}

#[test]
fn no_statement_lowers_the_number_of_threads_or_leaves_it_as_it_is() {
    let mut found = example();
    for product in [Product::Mysql, Product::Mariadb] {
        let script = apply(&found, product);
        let mut threads = script.lines().filter(|line| line.contains("_io_threads"));
        assert!(
            threads.all(|line| line.starts_with(product.comment())),
            "the default is as good: {script}"
        );
    }
    // Since 8.4, MySQL has 16 read threads on these 32 CPUs.
    for (depth, statement) in [
        (
            2048_u32,
            "-- before 8.4: SET PERSIST_ONLY innodb_read_io_threads = 8;",
        ),
        (8192, "SET PERSIST_ONLY innodb_read_io_threads = 32;"),
    ] {
        found.curve.knee.as_mut().unwrap().load = f64::from(depth);
        let script = apply(&found, Product::Mysql);
        assert!(script.lines().any(|line| line == statement), "{script}");
    }
}

#[test]
fn capacity_is_at_most_what_the_manual_recommends_and_more_is_a_comment() {
    let mut found = example();
    found.writes = Some(at(64, 16 << 10, 800_000.0));
    for (product, live, comment) in [
        (
            Product::Mysql,
            "SET PERSIST innodb_io_capacity = 20000;",
            "-- SET PERSIST innodb_io_capacity = 200000;",
        ),
        (
            Product::Mariadb,
            "innodb_io_capacity = 20000",
            "# innodb_io_capacity = 200000",
        ),
    ] {
        let script = apply(&found, product);
        for wanted in [live, comment] {
            assert!(script.lines().any(|line| line == wanted), "{script}");
        }
        // The maximum keeps the proportion of the product's defaults.
        assert_eq!(value(&found, product, "innodb_io_capacity_max"), "40000");
        let reported = setting(&found, product, "innodb_io_capacity").derivation;
        assert!(reported.contains("advises against"), "{reported}");
    }
}

#[test]
fn sessions_share_the_depth_at_the_knee() {
    let mut found = example();
    found.curve.knee.as_mut().unwrap().load = 64.0;
    found.curve.knee.as_mut().unwrap().range = KneeRange {
        low: 48.0,
        high: Some(80.0),
    };
    let of = |sessions| {
        let section = advise(
            &found,
            &header(),
            &[Product::Postgres],
            of_sessions(sessions),
        )
        .remove(0);
        let setting = section
            .settings
            .into_iter()
            .find(|it| it.setting == "effective_io_concurrency");
        setting.unwrap()
    };
    let shared = of(Some(16));
    assert_eq!(shared.value.as_deref(), Some("4"));
    assert_eq!(shared.range, Some(["3".into(), "5".into()]));
    assert_eq!(
        shared.statement.as_deref(),
        Some("ALTER SYSTEM SET effective_io_concurrency = 3;")
    );
    // Three each would be 45 together, and fewer than 48 were slower.
    assert_eq!(of(Some(15)).range, Some(["4".into(), "5".into()]));
    assert_eq!(of(Some(1000)).value.as_deref(), Some("1"));
    // Without a number of sessions the value is that of one, which only a comment says.
    assert_eq!(
        of(None).statement.as_deref(),
        Some("-- ALTER SYSTEM SET effective_io_concurrency = 48;")
    );
}

#[test]
fn without_a_number_of_sessions_no_statement_for_postgres_or_oracle_runs() {
    let found = example();
    for product in [Product::Postgres, Product::Oracle] {
        let script = apply(&found, product);
        assert!(
            script.lines().all(|line| line.starts_with("--")),
            "{script}"
        );
        assert!(script.lines().count() > 5, "{script}");
    }
    let sections = advise(
        &found,
        &header(),
        &[Product::Postgres],
        of_sessions(Some(4)),
    );
    let live: Vec<&String> = sections[0]
        .apply
        .iter()
        .filter(|line| !line.starts_with("--"))
        .collect();
    assert_eq!(
        live,
        [
            "ALTER SYSTEM SET effective_io_concurrency = 2;",
            "ALTER SYSTEM SET maintenance_io_concurrency = 2;",
            "SELECT pg_reload_conf();"
        ]
    );
}

#[test]
fn system_statistics_are_the_times_of_one_read_and_of_its_transfer() {
    let mut found = example();
    // 100 us and 1 ns a byte: 108.192 us for 8 KiB, 1148.576 us for 1 MiB, 10^6 bytes per ms.
    for (name, truth) in [
        ("SREADTIM", "0.108"),
        ("MREADTIM", "1.149"),
        ("MBRC", "128"),
        ("IOSEEKTIM", "0.100"),
        ("IOTFRSPEED", "1000000"),
    ] {
        let statistic = setting(&found, Product::Oracle, name);
        assert_eq!(statistic.value.as_deref(), Some(truth), "{name}");
        if let Some(estimate) = statistic.estimate {
            let interval = estimate.interval.unwrap();
            assert!(interval.contains(estimate.value), "{name}: {interval:?}");
        }
        let call = format!("-- EXEC DBMS_STATS.SET_SYSTEM_STATS('{name}', {truth});");
        let script = apply(&found, Product::Oracle);
        assert!(script.lines().any(|line| line == call), "{script}");
    }
    // A large read that takes no longer than a small one: Oracle would not use such statistics.
    found.stream = Some(at(1, 1 << 20, 1e4));
    assert!(!apply(&found, Product::Oracle).contains("SET_SYSTEM_STATS"));
    // Nor one of a model whose reads take as long whatever their size, but for chance: its bytes
    // would come at 240 GB/s, and this storage transfers 7.3.
    found.stream = Some(at(1, 1 << 20, 1e6 / 112.5));
    assert!(!apply(&found, Product::Oracle).contains("SET_SYSTEM_STATS"));
}

#[test]
fn the_row_of_oracle_is_whole_or_not_there() {
    let mut found = example();
    // 8 / 108.192 us; 8 MiB and 1 MiB in 1148.576 us; and `--num-disks`. 16 / 73943 s are 0 whole
    // milliseconds, which say nothing.
    let script = apply(&found, Product::Oracle);
    assert!(
        script.contains("VALUES (SYSTIMESTAMP, SYSTIMESTAMP, 73943, 7303, 913, 4);"),
        "{script}"
    );
    // The table has had another column since 18c: without column names the insert fails after the
    // old row was deleted.
    let names = "(START_TIME, END_TIME, MAX_IOPS, MAX_MBPS, MAX_PMBPS, NUM_DISKS)";
    assert!(script.contains(names), "{script}");
    let mut slow = example();
    slow.maximum = Some(at(16, 8192, 4000.0));
    let of_slow = apply(&slow, Product::Oracle);
    assert!(
        of_slow.contains("MAX_PMBPS, LATENCY, NUM_DISKS)"),
        "{of_slow}"
    );
    assert!(of_slow.contains("4000, 7303, 913, 4, 4);"), "{of_slow}");
    let place = |text: &str| {
        script
            .find(text)
            .unwrap_or_else(|| panic!("no {text} in {script}"))
    };
    assert!(
        place("WHENEVER SQLERROR EXIT ROLLBACK") < place("CREATE TABLE"),
        "{script}"
    );
    assert!(place("INSERT INTO") < place("COMMIT"), "{script}");
    assert!(
        script
            .lines()
            .all(|line| line.is_empty() || line.starts_with("--")),
        "{script}"
    );
    found.stream = None;
    assert!(!apply(&found, Product::Oracle).contains("INSERT"));
    assert!(
        setting(&found, Product::Oracle, "MAX_PMBPS")
            .measure_by
            .is_some()
    );
}

/// Loads the file by the rules of Seastar: one section of disks, each with a mount point and four figures, which are
/// whole numbers with at most a letter for their size, and not zero.
fn seastar_loads(file: &str) -> Result<Vec<u64>, String> {
    const KEYS: [&str; 4] = [
        "read_iops",
        "read_bandwidth",
        "write_iops",
        "write_bandwidth",
    ];
    let lines = file
        .lines()
        .map(|line| line.split('#').next().unwrap_or("").trim_end());
    let mut lines = lines.filter(|line| !line.is_empty());
    if lines.next() != Some("disks:") {
        return Err("the only section is disks".into());
    }
    let mut figures = std::collections::BTreeMap::new();
    for line in lines {
        let key_and_value = line.trim_start().trim_start_matches("- ").split_once(": ");
        let (key, value) = key_and_value.ok_or_else(|| format!("no value: {line}"))?;
        figures.insert(key.to_string(), value.to_string());
    }
    figures.get("mountpoint").ok_or("no mount point")?;
    let figure = |key: &str| {
        let value = figures.get(key).ok_or_else(|| format!("no {key}"))?;
        let digits = value.trim_end_matches(['k', 'M', 'G', 'T']);
        let number: u64 = digits.parse().map_err(|_| format!("{key}: {value}"))?;
        if number == 0 {
            Err(format!("{key} is zero"))
        } else {
            Ok(number)
        }
    };
    KEYS.into_iter().map(figure).collect()
}

#[test]
fn seastars_file_is_whole_or_says_what_is_missing() {
    let mut found = example();
    let figures = [73_900, 7_300_000_000, 40_000, 839_000_000];
    for (product, place) in [
        (Product::Scylla, "/etc/scylla.d/io_properties.yaml"),
        (Product::Redpanda, "/etc/redpanda/io-config.yaml"),
    ] {
        let file = apply(&found, product);
        assert!(file.contains(place), "{file}");
        assert_eq!(seastar_loads(&file), Ok(figures.to_vec()), "{file}");
    }
    found.large_writes.lasting = None;
    let file = apply(&found, Product::Scylla);
    assert!(file.contains("\n    # write_bandwidth: missing"), "{file}");
    assert_eq!(seastar_loads(&file), Err("no write_bandwidth".into()));
}

#[test]
fn etcd_waits_longer_than_a_commit_takes_and_cockroach_knows_what_lasts() {
    let mut found = example();
    let heartbeat = setting(&found, Product::Etcd, "heartbeat-interval");
    assert!(
        matches!(heartbeat.decision, Decision::Leave { .. }),
        "{heartbeat:?}"
    );
    assert!(apply(&found, Product::Etcd).contains("The defaults are right"));
    // 120 ms at p99: twice that, and ten times that.
    found.log_files[1].at.p99_us = exact(120_000.0);
    let lines = apply(&found, Product::Etcd);
    assert!(
        lines.ends_with("heartbeat-interval: 240\nelection-timeout: 2400"),
        "{lines}"
    );
    let statement = apply(&found, Product::Cockroach);
    assert_eq!(
        statement,
        "SET CLUSTER SETTING kvadmission.store.provisioned_bandwidth = '800MiB';"
    );
}

#[test]
fn unmeasured_settings_are_gaps_in_the_line() {
    let mut found = example();
    found.large_writes.lasting = None;
    let line = apply(&found, Product::Linux);
    assert!(
        line.contains("rbps=7300000000 rseqiops=? rrandiops=? "),
        "I/Os of 8 KiB are no I/Os of 4 KiB: {line}"
    );
    found.maximum = Some(at(16, 4096, 80_000.0));
    found.writes = Some(at(16, 4096, 50_000.0));
    let line = apply(&found, Product::Linux);
    assert!(line.contains("/sys/block/nvme0n1/dev"), "{line}");
    assert!(
        line.contains("rrandiops=80000 wbps=? ") && line.contains("wseqiops=? wrandiops=50000"),
        "{line}"
    );
}

#[test]
fn nothing_is_said_of_writes_that_were_not_measured() {
    let mut found = example();
    found.writes = None;
    found.log_writes.clear();
    found.log_files.clear();
    found.large_writes.lasting = None;
    for section in advise(&found, &header(), &Product::ALL, AdviceTerms::default()) {
        for setting in &section.settings {
            let needs = setting.setting.starts_with('w')
                || setting.setting.contains("_write_")
                || setting.setting.contains("capacity");
            // A size is decided on by the figures of others, and what is only left needs no value.
            let needs_none = setting.is_aside() || setting.setting == "io_combine_limit";
            let has_none = setting.value.is_none() && !needs_none;
            assert_eq!(
                has_none,
                setting.measure_by.is_some(),
                "{}",
                setting.setting
            );
            if needs {
                assert!(
                    setting.value.is_none() && setting.statement.is_none(),
                    "{}",
                    setting.setting
                );
            }
        }
    }
    let nothing = calibration(&[], Bound::CALIBRATE_IO, Ratio::of(2, 100));
    let sections = advise(&nothing, &header(), &Product::ALL, AdviceTerms::default());
    let valued = sections
        .iter()
        .flat_map(|section| &section.settings)
        .filter(|setting| setting.value.is_some());
    assert_eq!(
        valued.map(|setting| setting.setting).collect::<Vec<_>>(),
        ["NUM_PHYSICAL_DISKS"]
    );
}

#[test]
fn no_command_that_writes_names_an_existing_target() {
    let found = example();
    let mut header = header();
    let command = |header: &Header| {
        Ground {
            found: &found,
            header,
            sessions: None,
            plans: None,
        }
        .command("--write")
    };
    assert_eq!(command(&header), "rigel calibrate /data --write");
    let paths = |path: &str| Target::Paths {
        members: vec![PathBuf::from(path)],
        layout: rigel_model::Layout::Concat,
    };
    header.target = paths("/dev/mapper/data");
    assert_eq!(command(&header), "rigel calibrate DIRECTORY-ON-IT --write");
    header.target = paths("file");
    assert_eq!(command(&header), "rigel calibrate . --write");
    header.target = Target::Scratch {
        directory: "/my data".into(),
        bytes: None,
        keep: false,
    };
    assert_eq!(command(&header), "rigel calibrate '/my data' --write");
    header.target = Target::Null { bytes: Bytes(1) };
    assert_eq!(command(&header), "rigel calibrate null: --write");
}

#[test]
fn figures_that_are_not_steady_or_too_brief_are_warned_of() {
    let mut found = example();
    found.at_knee.as_mut().unwrap().steady = Some(false);
    found.large.as_mut().unwrap().iops.interval = None;
    let warnings = setting(&found, Product::Postgres, "random_page_cost").warnings;
    assert!(
        warnings[0].starts_with("unsteady") && warnings[1].starts_with("no-interval"),
        "{warnings:?}"
    );
}

#[test]
fn figures_are_rounded_to_significant_digits() {
    let found = [0.4, 7.0, 999.4, 1004.0, 1006.0, 7_317_562_514.0].map(three_digits);
    assert_eq!(found, ["0", "7", "999", "1000", "1010", "7320000000"]);
}
