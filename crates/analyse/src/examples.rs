//! Made-up values that tests of several files and crates share: a device that is easy to reckon with, and what was
//! measured on it.

use crate::{
    AtLoad, Calibration, DemandAgainst, Estimate, Knee, KneeRange, LatencySummary, Limits,
    LogWrites, Mean, ObjectiveCheck, Plateau, Round, RoundEnd, RoundHost,
};
use rigel_model::examples::interval;
use rigel_model::record::journal::EngineChoice;
use rigel_model::record::journal::Header;
use rigel_model::record::{
    Coverage, CoverageMap, DiskInterval, End, FlowKind, KindRecord, Latencies, OperationTimes,
    PointRecord, Recorder, RequestFlow, StreamRecord, TracedRequests, WatchedInterval, Window,
};
use rigel_model::{
    BlockDevice, Bound, Bytes, Coordinates, Counters, Demand, DemandStream, Load, Moment, Nanos,
    Pattern, Ratio, Sample, ServerSample, SqlWork, Tables, Target, TargetFacts, VolumeMember,
};
use rigel_model::{Invocation, LogKind};
use rigel_model::{Kind, Outcome};

/// One load, with figures known to 1 %.
pub fn at(depth: u32, io_bytes: u32, iops: f64) -> AtLoad {
    let estimate = |value: f64| {
        Estimate::new(
            value,
            Some(Limits {
                low: value * 0.99,
                high: Some(value * 1.01),
            }),
        )
    };
    let response_us = f64::from(depth) / iops * 1e6;
    AtLoad {
        depth,
        ranks: None,
        io_bytes,
        iops: estimate(iops),
        mb_per_s: estimate(iops * f64::from(io_bytes) / 1e6),
        mean_us: estimate(response_us),
        p50_us: estimate(response_us),
        p99_us: estimate(response_us),
        p999_us: estimate(response_us),
        steady: Some(true),
    }
}

/// A device that serves 8 operations at a time, each in 100 us plus 1 ns per byte, seen by a closed
/// loop of reads of 8 KiB and 1 MiB; and 40,000 writes of 16 KiB per second.
pub fn calibration() -> Calibration {
    let rate =
        |depth: u32, bytes: u32| f64::from(depth.min(8)) / (100e-6 + f64::from(bytes) * 1e-9);
    let read = |depth, bytes| Some(at(depth, bytes, rate(depth, bytes)));
    let mut calibration = crate::calibration(&[], Bound::CALIBRATE_IO, Ratio::of(2, 100));
    let most = Mean {
        value: rate(8, 8192),
        error: 1.0,
        effective_n: 20.0,
        degrees: 4.0,
    };
    calibration.low_load = read(1, 8192);
    calibration.at_knee = read(8, 8192);
    calibration.maximum = read(16, 8192);
    calibration.large = read(8, 1 << 20);
    calibration.large_low_load = read(1, 1 << 20);
    calibration.stream = read(1, 1 << 20);
    calibration.writes = Some(at(16, 16 << 10, 40_000.0));
    calibration.log_writes = vec![LogWrites {
        bytes: 4096,
        log: None,
        at: at(1, 4096, 1000.0),
    }];
    let log_file = |log, writers, rate| LogWrites {
        bytes: 4096,
        log: Some(log),
        at: at(writers, 4096, rate),
    };
    calibration.large_writes.lasting = Some(at(8, 1 << 20, 800.0));
    calibration.large_writes.first_minute = Some(at(8, 1 << 20, 2000.0));
    calibration.log_files = vec![
        log_file(LogKind::GROW, 1, 500.0),
        log_file(LogKind::SIZED, 1, 600.0),
        log_file(LogKind::REUSED, 1, 1000.0),
        log_file(LogKind::REUSED, 16, 9000.0),
    ];
    calibration.curve.knee = Some(Knee {
        load: 8.0,
        throughput: most,
        range: KneeRange {
            low: 5.0,
            high: Some(8.0),
        },
        plateau: Plateau {
            throughput: most.value,
            interval: most.interval(),
            from: 8.0,
            to: 16.0,
            degrees: 5.0,
        },
        bounded_below: true,
        bounded_above: true,
    });
    calibration
}

/// The header of a run on a file on one disk.
pub fn header() -> Header {
    let device = BlockDevice {
        name: "nvme0n1".into(),
        ..BlockDevice::default()
    };
    let member = VolumeMember {
        path: "/data/file".into(),
        kind: rigel_model::FileKind::File,
        bytes: Bytes(4 << 30),
        inode: 7,
        alignment: 512,
        atomic_write_max: None,
        filesystem: Some("ext4".into()),
        mount_options: None,
        extents: None,
        device_number: Some((259, 1)),
        devices: vec![device],
    };
    Header {
        format: 1,
        version: "0.0.0".into(),
        started: "2026-01-02T03:04:05+00:00".into(),
        command: Vec::new(),
        target: Target::Paths {
            members: vec!["/data/file".into()],
            layout: rigel_model::Layout::Concat,
        },
        engine: EngineChoice {
            name: "uring".into(),
            buffered: false,
            verify: false,
        },
        engine_about: String::new(),
        points: Vec::new(),
        invocation: Invocation::of("calibrate", &serde_json::json!({ "num_disks": 4 })),
        host: rigel_model::Host {
            cpus: 32,
            ..rigel_model::Host::default()
        },
        facts_of_others: Vec::new(),
        facts: TargetFacts {
            server: None,
            name: "/data/file".into(),
            usable: Bytes(4 << 30),
            members: vec![member],
        },
        findings: Vec::new(),
        ranks: None,
        says_end: false,
    }
}

/// Rounds every five minutes with small differences, for tests; every second one misses the second
/// of two objectives.
pub fn rounds(n: u32) -> Vec<Round> {
    let begin: Moment = "2026-01-02T00:00:00+00:00".parse().unwrap();
    let round = |at: u32| {
        let rate = 12_000.0 + f64::from(at * 7919 % 101);
        Round {
            number: at + 1,
            begin: begin.plus_seconds(i64::from(at) * 300),
            seconds: 300.0,
            done: rate * 300.0,
            failed: 0,
            unserved: 0,
            asked: None,
            offered_per_s: None,
            rate: Some(rate),
            latency: LatencySummary {
                mean_us: Some(600.0),
                p50_us: Some(500.0 + f64::from(at % 13)),
                p99_us: Some(1500.0 + f64::from(at % 17)),
                max_us: Some(4000.0 + f64::from(at % 19)),
                ..LatencySummary::default()
            },
            end: RoundEnd::Whole,
            kept: vec![
                ObjectiveCheck {
                    kept: Some(true),
                    share: None,
                },
                ObjectiveCheck {
                    kept: Some(!at.is_multiple_of(2)),
                    share: None,
                },
            ],
            host: Some(RoundHost {
                device: Some("nvme0n1".into()),
                device_busy: Some(0.731),
                queue: Some(7.91),
                cpu_busy: 0.123,
                stolen: 0.0,
                io_pressure: Some(0.321),
                others_mb_per_s: Some(1.234),
            }),
        }
    };
    (0..n).map(round).collect()
}

/// 1,000 reads of 64 rows measured in ten seconds, after 100 in the warm-up, by four sessions.
pub fn sessions(updates: Ratio) -> PointRecord {
    let tables = Tables {
        schemas: 1,
        scale: 10_000,
        scan_blocks: 128,
        block: 8192,
    };
    let mut window = Window {
        done: 100,
        ..Window::default()
    };
    (0..100).for_each(|_| window.response.record(Nanos::from_millis(40)));
    let work = SqlWork {
        updates,
        ..SqlWork::reads(tables)
    };
    let kinds = work.kinds().into_iter().map(|kind| KindRecord {
        kind,
        windows: vec![window.clone(); 10],
    });
    let stream = StreamRecord {
        name: "small".into(),
        length: 8192,
        loads: vec![Load::Closed { depth: 4 }],
        patterns: vec![Pattern::Uniform],
        sql: Some(work),
        kinds: kinds.collect(),
        unserved: Vec::new(),
        drained: 0,
        censored: None,
        delay: None,
        warm_up_done: 100,
        coverage: Coverage {
            slices: vec![1100 * 64],
            ..Coverage::default()
        },
    };
    PointRecord {
        coordinates: Coordinates::at_depth(4),
        started: "2026-01-01T00:00:00+00:00".into(),
        began: Nanos(0),
        warm_up: Nanos::from_secs(1),
        measured: Nanos::from_secs(10),
        end: End::Complete,
        cpu: Nanos::from_millis(100),
        cpus: 2,
        window: Nanos::from_secs(1),
        asked: None,
        streams: vec![stream],
        samples: (0..=11).map(sample).collect(),
        merge: None,
        verified: None,
        syncs: None,
        visits: Vec::new(),
        silences: Vec::new(),
        suspended: Vec::new(),
        left_out: Nanos(0),
    }
}

/// The counters after `second` seconds; the last ones are final and include what was not
/// published before.
fn sample(second: u64) -> Sample {
    let blocks = if second == 11 {
        1100 * 64
    } else {
        second * 100 * 60
    };
    let reads = Counters {
        reads: blocks,
        read_sectors: blocks * 16,
        read_ms: blocks,
        ..Counters::default()
    };
    Sample {
        at: Nanos::from_secs(second),
        devices: [("vda".to_string(), reads)].into(),
        server: Some(Box::new(ServerSample {
            visited: Some(blocks),
            logical: Some(blocks * 2),
            physical: Some(blocks),
            read_time: Some(Nanos(blocks * 250_000)),
            storage_read: Some(blocks * 8192),
            cpu: Some(Nanos(blocks * 20_000)),
            waits: [
                ("IO:DataFileRead".into(), second * 30),
                ("CPU".into(), second * 10),
            ]
            .into(),
            looks: second * 10,
            ..ServerSample::default()
        })),
        ..Sample::default()
    }
}

/// An hour with these streams beside the example of a calibration.
pub fn against(streams: Vec<DemandStream>) -> DemandAgainst {
    crate::against(&demand(streams), &[], &calibration()).expect("it has rates")
}

/// A database that asks for these streams in one hour.
pub fn demand(streams: Vec<DemandStream>) -> Demand {
    Demand {
        source: "AWR".into(),
        database: "X".into(),
        release: None,
        host: None,
        block_bytes: Some(8192),
        log: None,
        intervals: vec![interval(streams)],
        sum_of: Vec::new(),
        is_device: false,
    }
}

/// A point of 10 s with one operation after the other of 1 ms, on every block of a small volume
/// in turn.
pub fn reads_of_a_millisecond() -> PointRecord {
    let mut recorder = Recorder::new(false, &[Kind::Read], std::sync::Arc::default());
    recorder.measure_from(Nanos(0));
    let map = CoverageMap::new(100);
    for i in 0..10_000 {
        let due = Nanos::from_millis(i);
        let done = due.plus(Nanos::from_millis(1));
        recorder.record(
            Kind::Read,
            OperationTimes {
                due,
                start: due,
                done,
            },
            Outcome::Done,
        );
        map.touch(i % 100);
    }
    let mut stream = StreamRecord {
        sql: None,
        name: "small".into(),
        length: 8192,
        loads: vec![Load::Closed { depth: 1 }],
        patterns: vec![Pattern::Uniform],
        kinds: vec![KindRecord {
            kind: Kind::Read,
            windows: Vec::new(),
        }],
        unserved: Vec::new(),
        drained: 0,
        censored: None,
        delay: None,
        warm_up_done: 0,
        coverage: map.read(),
    };
    recorder.merge_into(&mut stream);
    PointRecord {
        coordinates: Coordinates::cell(1, 0),
        started: String::new(),
        began: Nanos(0),
        warm_up: Nanos(0),
        measured: Nanos::from_secs(10),
        end: End::Complete,
        cpu: Nanos::from_millis(50),
        cpus: 1,
        window: rigel_model::record::WINDOW,
        asked: None,
        streams: vec![stream],
        samples: Vec::new(),
        merge: None,
        verified: None,
        syncs: None,
        visits: Vec::new(),
        silences: Vec::new(),
        suspended: Vec::new(),
        left_out: Nanos(0),
    }
}

/// An interval of a watch: a random read of a traced disk.
pub fn watched() -> WatchedInterval {
    let mut device = Latencies::default();
    device.record(Nanos::from_micros(150));
    let flow = RequestFlow {
        kind: FlowKind::RandomReads,
        requests: 1,
        failed: 0,
        bytes: 8192,
        sequential: 0,
        device,
        queue: Latencies::default(),
        response: None,
    };
    WatchedInterval {
        number: 1,
        started: "2026-01-02T03:04:05+00:00".into(),
        measured: Nanos::from_secs(10),
        disks: vec![DiskInterval {
            name: "sda".into(),
            counters: None,
            traced: Some(TracedRequests {
                flows: vec![flow],
                ..TracedRequests::default()
            }),
        }],
        ..WatchedInterval::default()
    }
}
