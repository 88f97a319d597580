//! Files as users of SLOB and pgio have them, and files with errors.

use super::*;
use proptest::prelude::*;

/// A file that a DBA has used for a while.
const SLOB: &str = r#"
# all-flash array, second shelf -- reads first
UPDATE_PCT=25            # was 0 before the upgrade
SCAN_PCT=5
RUN_TIME=900
WORK_LOOP=0
SCALE=16G
SCAN_TABLE_SZ=64M
WORK_UNIT=32
REDO_STRESS=HEAVY
#REDO_STRESS=LITE

LOAD_PARALLEL_DEGREE=8
THREADS_PER_SCHEMA=4

DATABASE_STATISTICS_TYPE=awr   # Permitted values: [statspack|awr]
ADMIN_SQLNET_SERVICE=orcl
SQLNET_SERVICE_BASE="orcl"
SQLNET_SERVICE_MAX='2'
DBA_PRIV_USER="perf"
SYSDBA_PASSWD="hush#1400"
EXTERNAL_SCRIPT=""
OBFUSCATE_COLUMNS=TRUE

DO_HOTSPOT=true
HOTSPOT_MB=512
HOTSPOT_OFFSET_MB=1024
HOTSPOT_FREQUENCY=10
HOT_SCHEMA_FREQUENCY=4
THINK_TM_FREQUENCY=20
THINK_TM_MIN=.1
THINK_TM_MAX=1.25

export UPDATE_PCT SCAN_PCT RUN_TIME
export WORK_LOOP
"#;

const PGIO: &str = "UPDATE_PCT=0\r\nRUN_TIME=120\r\nNUM_SCHEMAS=8\r\nNUM_THREADS=2\r\n\
                    WORK_UNIT=255\r\nUPDATE_WORK_UNIT=8\r\nSCALE=1048576\r\n\r\nDBNAME=pgio\r\n\
                    CONNECT_STRING=\"-h db1 -U bench pgio\"\r\nCREATE_BASE_TABLE=TRUE\r\n";

fn read(text: &str) -> Conf {
    parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn percent(percent: f64) -> Option<Ratio> {
    Ratio::from_percent(percent)
}

#[test]
fn a_slob_conf_of_a_dba_is_read_whole() {
    let conf = read(SLOB);
    let wanted = Settings {
        updates: percent(25.0),
        scans: percent(5.0),
        run_time: Some(Nanos::from_secs(900)),
        work_loop: None,
        scale: Some(TableSize::Bytes(Bytes(16 * GIB))),
        scan_table: Some(TableSize::Bytes(Bytes(64 * MIB))),
        work_unit: Some(32),
        redo: Some(Redo::Heavy),
        load_degree: Some(8),
        threads_per_schema: Some(4),
        hot_spot: Some(HotSpotSetting {
            bytes: Bytes(512 * MIB),
            offset: Bytes(1024 * MIB),
            every: 10,
        }),
        hot_schema_every: Some(4),
        think: Some(Think {
            every: 20,
            least: Nanos::from_millis(100),
            most: Nanos::from_millis(1250),
        }),
        ..Settings::default()
    };
    assert_eq!((conf.dialect, conf.settings), (ConfDialect::Slob, wanted));
    let keys: Vec<String> = conf
        .remarks
        .iter()
        .map(|remark| remark.split(' ').nth(2).unwrap_or("").into())
        .collect();
    let oracle = [
        "DATABASE_STATISTICS_TYPE",
        "ADMIN_SQLNET_SERVICE",
        "SQLNET_SERVICE_BASE",
        "SQLNET_SERVICE_MAX",
    ];
    let others = ["DBA_PRIV_USER", "SYSDBA_PASSWD", "OBFUSCATE_COLUMNS"];
    assert_eq!(keys, [&["WORK_UNIT"][..], &oracle, &others].concat());
    assert!(
        conf.remarks[0].contains("exactly 32 rows per operation here; SLOB touches 31, pgio 33")
    );
    assert!(
        conf.remarks[6].starts_with("line 21: SYSDBA_PASSWD ")
            && conf.remarks[6].contains("set PGPASSWORD")
    );
    assert!(!format!("{:?}", read(SLOB)).contains("hush"));
}

#[test]
fn a_pgio_conf_is_read_whole_also_with_carriage_returns() {
    let conf = read(PGIO);
    let wanted = Settings {
        updates: percent(0.0),
        run_time: Some(Nanos::from_secs(120)),
        scale: Some(TableSize::Blocks(1_048_576)),
        work_unit: Some(255),
        update_work_unit: Some(8),
        load_degree: Some(2),
        threads_per_schema: Some(2),
        schemas: Some(8),
        url: Some("postgres://bench@db1/pgio".into()),
        database: Some("pgio".into()),
        create_base_table: Some(true),
        ..Settings::default()
    };
    assert_eq!((conf.dialect, conf.settings), (ConfDialect::Pgio, wanted));
    let lines: Vec<&str> = conf
        .remarks
        .iter()
        .filter_map(|remark| remark.split(':').next())
        .collect();
    assert_eq!(lines, ["line 5", "line 11"], "{:?}", conf.remarks);
}

#[test]
fn nothing_said_is_nothing_set_and_the_defaults_are_slobs() {
    let conf = read("\n# nothing\n");
    assert_eq!(
        conf,
        Conf {
            dialect: ConfDialect::Slob,
            settings: Settings::default(),
            remarks: vec![]
        }
    );
    let settings = read("UPDATE_PCT=50").settings.or(slob_defaults());
    assert_eq!(
        (settings.updates, settings.work_unit),
        (percent(50.0), Some(64))
    );
    assert_eq!(settings.scale.map(|scale| scale.blocks(8192)), Some(10_240));
    assert_eq!(
        (slob_defaults().schemas, pgio_defaults().schemas),
        (None, Some(1))
    );
    assert_eq!(
        Settings {
            schemas: None,
            ..pgio_defaults()
        },
        slob_defaults()
    );
}

#[test]
fn sizes_are_blocks_or_binary_bytes() {
    for (text, wanted) in [
        ("10000", TableSize::Blocks(10_000)),
        ("1", TableSize::Blocks(1)),
        ("512k", TableSize::Bytes(Bytes(512 << 10))),
        ("80M", TableSize::Bytes(Bytes(80 << 20))),
        ("80 M", TableSize::Bytes(Bytes(80 << 20))),
        ("16g", TableSize::Bytes(Bytes(16 << 30))),
        ("32T", TableSize::Bytes(Bytes(32 << 40))),
    ] {
        assert_eq!(
            read(&format!("SCALE='{text}'")).settings.scale,
            Some(wanted),
            "{text}"
        );
    }
    assert_eq!(TableSize::Bytes(Bytes(20_000)).blocks(8192), 2);
    assert_eq!(TableSize::Blocks(7).blocks(8192), 7);
    assert_eq!(TableSize::Bytes(Bytes(1025)).to_string(), "2K");
}

#[test]
fn disabled_settings_are_not_set() {
    let off = "DO_HOTSPOT=FALSE\nHOTSPOT_MB=8\nHOT_SCHEMA_FREQUENCY=0\nTHINK_TM_FREQUENCY=0\n\
               THINK_TM_MIN=9\nWORK_LOOP=0";
    assert_eq!(read(off).settings, Settings::default());
    assert_eq!(
        read("HOTSPOT_MB=8\nHOTSPOT_OFFSET_MB=1").settings.hot_spot,
        None
    );
    for word in ["TRUE", "true", "Yes", "1"] {
        let spot = HotSpotSetting {
            bytes: Bytes(8 << 20),
            offset: Bytes(16 << 20),
            every: 3,
        };
        assert_eq!(
            read(&format!("DO_HOTSPOT={word}")).settings.hot_spot,
            Some(spot),
            "{word}"
        );
    }
    let conf = read("DO_HOTSPOT=TRUE\nHOTSPOT_FREQUENCY=0");
    assert_eq!(conf.settings.hot_spot, None);
    assert!(
        conf.remarks[0].starts_with("line 2: HOTSPOT_FREQUENCY is 0"),
        "{:?}",
        conf.remarks
    );
    let think = Think {
        every: 2,
        least: Nanos::from_millis(100),
        most: Nanos::from_millis(500),
    };
    assert_eq!(read("THINK_TM_FREQUENCY=2").settings.think, Some(think));
}

#[test]
fn values_that_slob_refuses_are_remarked() {
    for (text, said) in [
        ("UPDATE_PCT=75", "SLOB refuses 51 to 99"),
        ("UPDATE_PCT=51", "SLOB refuses 51 to 99"),
        ("UPDATE_PCT=12.5", "SLOB accepts whole percentages"),
        (
            "UPDATE_PCT=.5\nNUM_SCHEMAS=1",
            "pgio accepts whole percentages",
        ),
        ("SCAN_PCT=0.5", "SLOB accepts whole percentages"),
        ("SCALE=9999", "SLOB's minimum of 10,000 blocks"),
        ("SCALE=78M", "SLOB's minimum of 10,000 blocks"),
        ("RUN_TIME=", "RUN_TIME is empty"),
        ("export LD_LIBRARY_PATH", "LD_LIBRARY_PATH is exported"),
    ] {
        let remarks = read(text).remarks;
        assert!(
            remarks.len() == 1 && remarks[0].contains(said),
            "{text}: {remarks:?}"
        );
    }
    for text in [
        "UPDATE_PCT=50",
        "UPDATE_PCT=100",
        "UPDATE_PCT=75\nNUM_SCHEMAS=1",
        "SCALE=10000",
        "SCALE=80M",
    ] {
        assert_eq!(read(text).remarks, [""; 0], "{text}");
    }
    let conf = read("UPDATE_PCT=10\nRUN_TIME=5\nUPDATE_PCT=20");
    assert_eq!(conf.settings.updates, percent(20.0));
    assert_eq!(
        conf.remarks,
        ["line 3: UPDATE_PCT was already set on line 1; the last value counts"]
    );
}

#[test]
fn a_value_that_makes_no_sense_is_refused_by_line_key_and_value() {
    for text in [
        "UPDATE_PCT=101",
        "UPDATE_PCT=-1",
        "UPDATE_PCT=1e1",
        "UPDATE_PCT=10%",
        "UPDATE_PCT=0.1234567",
        "UPDATE_PCT=.",
        "SCAN_PCT=x",
        "RUN_TIME=0",
        "RUN_TIME=5m",
        "RUN_TIME=31536001",
        "WORK_LOOP=-1",
        "WORK_LOOP=1.5",
        "SCALE=0",
        "SCALE=0M",
        "SCALE=M",
        "SCALE=10P",
        "SCALE=33T",
        "SCALE=4294967295",
        "SCALE=1.5G",
        "SCALE=99999999999999T",
        "SCAN_TABLE_SZ=x",
        "WORK_UNIT=0",
        "WORK_UNIT=1000001",
        "REDO_STRESS=MEDIUM",
        "LOAD_PARALLEL_DEGREE=0",
        "THREADS_PER_SCHEMA=0",
        "THREADS_PER_SCHEMA=4097",
        "DO_HOTSPOT=MAYBE",
        "HOTSPOT_MB=0",
        "HOTSPOT_MB=1.5",
        "HOTSPOT_FREQUENCY=99999999999",
        "HOT_SCHEMA_FREQUENCY=x",
        "THINK_TM_MIN=3601",
        "THINK_TM_MAX=a",
        "NUM_SCHEMAS=0",
        "NUM_THREADS=x",
        "UPDATE_WORK_UNIT=0",
        "CREATE_BASE_TABLE=2",
    ] {
        let error = parse(&format!("# a line\n{text}\n")).unwrap_err();
        assert_eq!(error.exit_status(), 2, "{text}");
        assert!(
            error
                .to_string()
                .starts_with(&format!("line 2: {text} is not ")),
            "{text}: {error}"
        );
        assert!(
            error.to_string().contains("\n  hint: write "),
            "{text}: {error}"
        );
    }
    let error = parse("THINK_TM_FREQUENCY=1\nTHINK_TM_MIN=.6")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("line 2: THINK_TM_MIN=0.6 is more than THINK_TM_MAX=0.5"),
        "{error}"
    );
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_that_is_known() {
    for (text, near) in [
        ("UPDATE_PTC=1", "UPDATE_PCT"),
        ("update_pct=1", "UPDATE_PCT"),
        ("WORKLOOP=1", "WORK_LOOP"),
        ("SYSDBA_PASSWORD=hush", "SYSDBA_PASSWD"),
        ("SQLNET_SERVICE_MIN=1", "SQLNET_SERVICE_MAX"),
    ] {
        let error = parse(&format!("\n{text}")).unwrap_err().to_string();
        let key = text.split('=').next().unwrap_or_default();
        assert!(
            error.starts_with(&format!(
                "line 2: {key} is not a key of slob.conf or pgio.conf"
            )),
            "{error}"
        );
        assert!(
            error.contains(&format!("did you mean {near}?")) && !error.contains("hush"),
            "{error}"
        );
    }
    let error = parse("PGPASSWORD=hush").unwrap_err().to_string();
    assert!(
        !error.contains("did you mean") && !error.contains("hush"),
        "{error}"
    );
    assert_eq!(
        [
            letters_changed("", "ab"),
            letters_changed("abc", "abc"),
            letters_changed("abc", "adc"),
            letters_changed("ab", "ba")
        ],
        [2, 0, 1, 2]
    );
}

#[test]
fn keys_of_both_kits_in_one_file_are_refused() {
    let error = parse("REDO_STRESS=LITE\nNUM_SCHEMAS=2")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with(
            "line 2: NUM_SCHEMAS is a key of pgio, and REDO_STRESS on line 1 a key of SLOB"
        ),
        "{error}"
    );
}

#[test]
fn a_shell_is_refused_with_the_line() {
    let error = parse("UPDATE_PCT=10\nSCALE=$SIZE").unwrap_err().to_string();
    assert!(
        error.starts_with("line 2: ") && error.contains("never executed"),
        "{error}"
    );
    let error = parse("UPDATE_PCT = 10").unwrap_err().to_string();
    assert!(error.contains("write UPDATE_PCT=VALUE"), "{error}");
}

#[test]
fn the_server_comes_from_the_connect_string_and_the_database_from_either() {
    let server = |text: &str| {
        let Settings { url, database, .. } = read(text).settings;
        (url, database)
    };
    let both = |url: &str, name: &str| (Some(url.to_string()), Some(name.to_string()));
    assert_eq!(server("DBNAME=pgio"), both("postgres:///pgio", "pgio"));
    assert_eq!(
        server("DBNAME=a\nCONNECT_STRING='host=db1'"),
        both("postgres://db1/a", "a")
    );
    assert_eq!(
        server("DBNAME=a\nCONNECT_STRING='host=db1 dbname=b'"),
        both("postgres://db1/b", "a")
    );
    assert_eq!(
        server("CONNECT_STRING=b"),
        (Some("postgres:///b".into()), None)
    );
    // Never fall back to another server than the intended one.
    assert_eq!(
        server("DBNAME=a\nCONNECT_STRING='host=db1,db2'"),
        (None, None)
    );
    for name in [
        "host=db1 password=hush",
        "postgres://u:hush@h/d",
        &"x".repeat(64),
    ] {
        let error = parse(&format!("DBNAME='{name}'")).unwrap_err().to_string();
        assert!(
            error.starts_with("line 1: DBNAME is not") && !error.contains("hush"),
            "{error}"
        );
    }
    let conf = read("\nCONNECT_STRING='postgres://u:hush@h/d'");
    assert!(
        conf.remarks[0].starts_with("line 2: CONNECT_STRING has a password")
            && !format!("{conf:?}").contains("hush")
    );
}

fn count() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(1u32..=1024)
}

fn scale() -> impl Strategy<Value = Option<TableSize>> {
    let blocks = (1..=BLOCKS_MAX).prop_map(TableSize::Blocks);
    let bytes = (1..=BYTES_MAX / KIB).prop_map(|kib| TableSize::Bytes(Bytes(kib * KIB)));
    prop::option::of(prop_oneof![blocks, bytes])
}

fn share() -> impl Strategy<Value = Option<Ratio>> {
    // As in a file: a decimal percentage.
    prop::option::of(
        (0u32..=100_000_000)
            .prop_map(|parts| percent(f64::from(parts) / 1e6).expect("at most 100")),
    )
}

fn slob() -> impl Strategy<Value = Settings> {
    let shares = (
        share(),
        share(),
        prop::option::of(1..=RUN_TIME_MAX.0),
        prop::option::of(1u64..=1 << 53),
    );
    let sizes = (scale(), scale(), count(), any::<Option<bool>>());
    let spot = prop::option::of((1u64..=1 << 20, 0u64..=1 << 20, 1u32..));
    let think = prop::option::of((1u32.., 0..=THINK_TIME_MAX.0, 0..=THINK_TIME_MAX.0));
    (
        shares,
        sizes,
        (count(), count()),
        (spot, prop::option::of(1u32..), think),
    )
        .prop_map(
            |(
                (updates, scans, run_time, work_loop),
                (scale, scan_table, work_unit, heavy),
                (load, threads),
                hot,
            )| {
                Settings {
                    updates,
                    scans,
                    run_time: run_time.map(Nanos),
                    work_loop,
                    scale,
                    scan_table,
                    work_unit,
                    redo: heavy.map(|heavy| if heavy { Redo::Heavy } else { Redo::Lite }),
                    load_degree: load,
                    threads_per_schema: threads,
                    hot_spot: hot.0.map(|(size, offset, every)| HotSpotSetting {
                        bytes: Bytes(size * MIB),
                        offset: Bytes(offset * MIB),
                        every,
                    }),
                    hot_schema_every: hot.1,
                    think: hot.2.map(|(every, one, other)| Think {
                        every,
                        least: Nanos(one.min(other)),
                        most: Nanos(one.max(other)),
                    }),
                    ..Settings::default()
                }
            },
        )
}

proptest! {
    #[test]
    fn what_is_printed_is_read_back(settings in slob()) {
        prop_assert_eq!(read(&settings.print(ConfDialect::Slob)).settings, settings);
    }

    #[test]
    fn what_is_printed_for_pgio_is_read_back(
        slob in slob(), counts in (count(), count(), count()), made: Option<bool>, name in "[a-z'$ ]{0,4}[a-z]",
    ) {
        let settings = Settings {
            scans: None, work_loop: None, scan_table: None, redo: None, hot_spot: None, hot_schema_every: None,
            think: None, load_degree: counts.0, threads_per_schema: counts.0, schemas: counts.1,
            update_work_unit: counts.2, create_base_table: made, url: Some(connect::local(name.trim())),
            database: Some(name.trim().into()), ..slob
        };
        prop_assert_eq!(read(&settings.print(ConfDialect::Pgio)).settings, settings);
    }

    #[test]
    fn no_text_panics_and_what_is_read_keeps_its_value(
        parts in prop::collection::vec(prop_oneof![
            prop::sample::select(KEYS.map(|(key, _)| key).to_vec()).prop_map(String::from),
            "[=;# \n'\"\\\\$`]", "[0-9]{1,3}[KMGTkmgt.]?", "(TRUE|LITE|export |host=a|\r\n)", ".{0,3}",
        ], 0..24),
    ) {
        let text = parts.concat();
        if let Ok(conf) = parse(&text) {
            prop_assert_eq!(read(&conf.settings.print(conf.dialect)).settings, conf.settings);
        }
    }

    #[test]
    fn a_line_of_each_key_with_any_value_keeps_its_value(
        key in prop::sample::select(KEYS.map(|(key, _)| key).to_vec()), value in "[0-9]{0,4}[.]?[0-9]{0,3} ?[KMGTa-z]?",
    ) {
        if let Ok(conf) = parse(&format!("{key}='{value}'\n")) {
            prop_assert_eq!(read(&conf.settings.print(conf.dialect)).settings, conf.settings);
        }
    }
}
