//! A page with every kind of block and drawing, in realistic proportions. Its figures are made up.

use rigel_analyse::{Limits, RunTrust};
use rigel_model::{Finding, FindingName, Severity};
use rigel_report::document::{
    Axis, Block, ChangeRow, Changes, Chart, Column, Conclusion, Document, Extent, Headline, Heat,
    Lines, Mark, Plot, Section, Series, Shape, Status, Table, Unit,
};

/// A name that would end a script, an attribute or a tag if it were interpreted as HTML.
pub(crate) const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \
                                  \"double\" 'single' & <!-- \u{2028}";

/// The sample page.
pub(crate) fn page() -> Document {
    Document {
        title: format!("Rigel: {HOSTILE}"),
        heading: "calibrate /dev/nvme1n1, 21 November 2026, 14:05 to 14:21".into(),
        conclusion: Conclusion {
            status: Status::Warning,
            sentence: "This storage serves 79,941 random reads of 8 KiB a second within 2 ms at \
                       the 99th percentile, and not more: a cap at 80,000 IOPS holds it, not the \
                       device."
                .into(),
        },
        outcome: None,
        about: "A page with everything in it".into(),
        headlines: headlines(),
        trust: Some(RunTrust::of(warned().iter(), &[])),
        standing: vec![
            "Is that good? It is like a SATA SSD (one reader 77 µs, 98,000/s, 560 MB/s).".into(),
            "By 8 runs like this one, the next has a max IOPS of 78,000 to 81,900.".into(),
        ],
        next: Vec::new(),
        sections: vec![
            latency_throughput(),
            findings(),
            changes(),
            matrix(),
            distribution(),
            timeline(),
            waits(),
            soak(),
            tables(),
            hostile(),
        ],
    }
}

fn headlines() -> Vec<Headline> {
    [
        (
            "max_iops",
            "max IOPS",
            "79,941",
            "± 0.4 %",
            "random reads, 8 KiB, at depth 32",
            79_941.3,
        ),
        (
            "max_mbps",
            "max MB/s",
            "1,204",
            "± 0.9 %",
            "sequential reads, 1 MiB, at depth 8",
            1204.2,
        ),
        (
            "latency_us",
            "latency",
            "452 µs",
            "438 to 463 µs",
            "mean of single reads, 8 KiB",
            452.1,
        ),
        (
            "p99_us",
            "p99 at max IOPS",
            "1.88 ms",
            "1.81 to 1.93 ms",
            "bound 2 ms",
            1880.4,
        ),
    ]
    .map(|(name, label, value, interval, note, exact)| Headline {
        name: name.into(),
        label: label.into(),
        value: value.into(),
        interval: interval.into(),
        note: note.into(),
        exact,
        tone: Status::Plain,
        figure: None,
    })
    .into()
}

fn warned() -> Vec<Finding> {
    vec![
        Finding::warning(
            FindingName::Cap,
            "throughput stands at 80,000 IOPS from depth 16 on while the device is busy for 61 % \
             of the time: a limit outside of the device holds it",
            "ask the provider for the volume's limit, or measure with `rigel calibrate --max-iops \
             80000`",
        ),
        Finding::note(
            FindingName::Scheduler,
            "the scheduler of nvme1n1 is `mq-deadline`",
        ),
        Finding::refusal(
            FindingName::WriteGuard,
            "the target holds a file system: nothing was written",
            "give `--scratch-size 4GiB`",
        ),
    ]
}

fn findings() -> Section {
    let causes = RunTrust::of(warned().iter(), &[]).causes;
    section("findings", "Findings", "", vec![Block::Causes(causes)])
}

fn latency_throughput() -> Section {
    let depths = [1.0, 2.0, 4.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0];
    let iops: Vec<f64> = depths
        .iter()
        .map(|depth: &f64| 82_000.0 * depth / (depth + 18.0) + depth * 60.0)
        .collect();
    let at = |factor: f64, curve: f64| -> Vec<Option<f64>> {
        depths
            .iter()
            .map(|depth: &f64| Some(factor * (230.0 + curve * depth.powf(1.7))))
            .collect()
    };
    let band = |values: &[Option<f64>], share: f64| {
        values
            .iter()
            .map(|value| {
                value.map(|value| Limits {
                    low: value * (1.0 - share),
                    high: Some(value * (1.0 + share * 1.3)),
                })
            })
            .collect()
    };
    let labels: Vec<String> = depths
        .iter()
        .map(|depth| format!("depth {depth}"))
        .collect();
    let (mean, tail) = (at(1.0, 0.5), at(1.9, 0.9));
    let series = vec![
        Series {
            band: band(&mean, 0.03),
            labels: labels.clone(),
            ..line("mean", &iops, mean)
        },
        Series {
            band: band(&tail, 0.09),
            labels,
            ..line("p99", &iops, tail)
        },
        Series {
            shape: Shape::Dashed,
            ..line("universal scalability law", &iops, at(0.95, 0.47))
        },
    ];
    let marks = vec![
        upright(iops[7], "knee: 55,000 IOPS at depth 32", Status::Plain),
        upright(iops[8], "cap?", Status::Warning),
        Mark {
            at: 2000.0,
            label: "bound 2 ms".into(),
            tone: Status::Bad,
            ..Mark::default()
        },
    ];
    let lines = Lines {
        x: axis("IOPS", Unit::PerSecond, false),
        y: axis("latency", Unit::Microseconds, true),
        right: None,
        series,
        marks,
    };
    let chart = chart(
        "load",
        "Latency against throughput",
        "Latency grows slowly up to the knee at 55,000 IOPS, and reaches the bound of 2 ms at \
         62,000.",
        Plot::Lines(lines),
    );
    section(
        "latency-throughput",
        "Latency against throughput",
        "Each point is a depth that was measured.",
        vec![chart],
    )
}

fn changes() -> Section {
    let row = |name: &str, [low, ratio, high]: [f64; 3], judgement: &str, tone| ChangeRow {
        name: name.into(),
        ratio,
        band: Limits {
            low,
            high: Some(high),
        },
        judgement: judgement.into(),
        tone,
    };
    let rows = vec![
        row("max IOPS", [0.79, 0.83, 0.87], "worse", Status::Bad),
        row("p99 at low load", [0.6, 0.7, 0.9], "better", Status::Good),
        row(
            HOSTILE,
            [0.98, 1.01, 1.04],
            "no difference shown",
            Status::Plain,
        ),
        row("max", [0.2, 30.0, 4000.0], "not known", Status::Plain),
    ];
    let plot = Plot::Changes(Changes { rows });
    let chart = chart("changes", "Change of each figure", "2 of 4 differ.", plot);
    section("changes", "What differs", "", vec![chart])
}

fn matrix() -> Section {
    let columns: Vec<String> = [0, 1, 2, 4, 8, 12, 16, 24, 32, 64]
        .iter()
        .map(ToString::to_string)
        .collect();
    let rows: Vec<String> = (0..6).map(|row| row.to_string()).collect();
    let value = |row: usize, column: usize| {
        (column > 0 && (row, column) != (5, 9))
            .then(|| 12_000.0 * (column as f64).powf(0.9) / (1.0 + row as f64 * 0.35))
    };
    let heat = |label: &str, unit, scale: f64| Heat {
        x_label: "outstanding small I/Os".into(),
        columns: columns.clone(),
        y_label: "outstanding large I/Os".into(),
        rows: rows.clone(),
        downward: false,
        values: (0..6)
            .map(|row| {
                (0..10)
                    .map(|column| value(row, column).map(|value| value * scale))
                    .collect()
            })
            .collect(),
        unit,
        label: label.into(),
        log: false,
        range: None,
        written: true,
    };
    let small = Plot::Heat(heat("IOPS of small reads", Unit::PerSecond, 1.0));
    let large = Plot::Heat(heat("p99 of small reads", Unit::Microseconds, 0.02));
    let beside = Block::Beside(vec![
        chart("iops", "IOPS", "From 12,000 to 87,000.", small),
        chart("p99", "p99", "From 87 µs to 1.7 ms.", large),
    ]);
    // The latencies of each second, as they look over twenty minutes.
    let cell = |second: usize, class: usize| {
        let middle =
            6.0 + (second as f64 / 90.0).sin() * 1.5 + if second > 160 { 4.0 } else { 0.0 };
        let count = 9000.0 * (-(class as f64 - middle).powi(2) / 4.0).exp();
        (count >= 1.0).then_some(count.round())
    };
    let over_time = Heat {
        x_label: "seconds".into(),
        columns: (0..240).map(|second| (second * 5).to_string()).collect(),
        y_label: "latency".into(),
        downward: false,
        rows: (0..18)
            .map(|class| format!("{:.0} µs", 50.0 * 2f64.powf(f64::from(class) / 2.0)))
            .collect(),
        values: (0..18)
            .map(|class| (0..240).map(|second| cell(second, class)).collect())
            .collect(),
        unit: Unit::Number,
        label: "operations".into(),
        log: true,
        range: None,
        written: false,
    };
    let over_time = chart(
        "latency-heat",
        "Latency over time",
        "At 800 s the latency grew fourfold.",
        Plot::Heat(over_time),
    );
    section(
        "matrix",
        "Matrix",
        "As Orion draws it.",
        vec![beside, over_time],
    )
}

fn distribution() -> Section {
    let drawn: Vec<f64> = (0..=80).map(|step| f64::from(step) * 0.06).collect();
    let latency = |scale: f64| {
        drawn
            .iter()
            .map(|nines| Some(scale * 180.0 * (1.0 + nines.powf(2.6))))
            .collect()
    };
    let percentiles = Lines {
        x: axis("percentile", Unit::Nines, false),
        y: axis("latency", Unit::Microseconds, true),
        series: vec![
            line("depth 1", &drawn, latency(1.0)),
            line("depth 32", &drawn, latency(3.4)),
        ],
        ..Lines::default()
    };
    let centres: Vec<f64> = (0..70).map(|step| 80.0 * 1.08f64.powi(step)).collect();
    let counts: Vec<Option<f64>> = centres
        .iter()
        .map(|at| {
            (3e5 * (-((at / 240.0).ln() * 2.2).powi(2)).exp()
                + 300.0 * (-((at / 4000.0).ln() * 3.0).powi(2)).exp())
            .floor()
        })
        .map(|count| (count > 0.0).then_some(count))
        .collect();
    let histogram = Lines {
        x: axis("latency", Unit::Microseconds, true),
        y: axis("reads", Unit::Number, true),
        series: vec![Series {
            shape: Shape::Bars,
            ..line("reads", &centres, counts)
        }],
        marks: vec![
            upright(238.0, "median", Status::Plain),
            upright(690.0, "p99", Status::Plain),
        ],
        ..Lines::default()
    };
    let beside = Block::Beside(vec![
        chart(
            "percentiles",
            "Percentiles",
            "The tail bends at p99.",
            Plot::Lines(percentiles),
        ),
        chart(
            "histogram",
            "Histogram",
            "A second mode stands at 4 ms.",
            Plot::Lines(histogram),
        ),
    ]);
    section("distribution", "Latency distribution", "", vec![beside])
}

/// Made-up noise that is the same every time.
fn noise(index: usize) -> f64 {
    ((index as f64 * 12.9898).sin() * 43_758.545).fract()
}

fn timeline() -> Section {
    let seconds: Vec<f64> = (0..1000).map(|second| f64::from(second) + 0.5).collect();
    let with = |make: &dyn Fn(usize) -> f64| {
        (0..seconds.len())
            .map(|index| Some(make(index)))
            .collect::<Vec<_>>()
    };
    let dip = |index: usize| {
        if (620..680).contains(&index) {
            0.55
        } else {
            1.0
        }
    };
    let iops = with(&|index| 79_000.0 * dip(index) + 900.0 * noise(index));
    let p50 = with(&|index| 380.0 / dip(index) + 8.0 * noise(index));
    let p99 = with(&|index| 1700.0 / dip(index).powi(2) + 200.0 * noise(index).abs());
    let depth = with(&|index| 32.0 - 2.0 * noise(index).abs());
    let busy = with(&|index| 0.93 * dip(index) + 0.02 * noise(index));
    let cpu = with(&|index| 0.22 + 0.03 * noise(index));
    let steal = with(&|index| {
        if (620..680).contains(&index) {
            0.31
        } else {
            0.01
        }
    });
    let waiting = with(&|_| 0.05);
    let marks = || {
        vec![
            upright(620.0, "throughput fell by 45 %", Status::Bad),
            Mark {
                to: Some(300.0),
                ..upright(240.0, "warming up", Status::Plain)
            },
            upright(680.0, "recovered", Status::Good),
        ]
    };
    let panel = |y, right, series| Lines {
        x: axis("time", Unit::Seconds, false),
        y,
        right,
        series,
        marks: marks(),
    };
    let stacked = |name: &str, y| Series {
        shape: Shape::Stacked,
        ..line(name, &seconds, y)
    };
    let panels = vec![
        panel(
            axis("IOPS", Unit::PerSecond, false),
            None,
            vec![line("IOPS", &seconds, iops)],
        ),
        panel(
            axis("latency", Unit::Microseconds, true),
            None,
            vec![line("p50", &seconds, p50), line("p99", &seconds, p99)],
        ),
        panel(
            axis("utilisation", Unit::Share, false),
            Some(axis("queue depth", Unit::Number, false)),
            vec![
                line("busy", &seconds, busy),
                Series {
                    at_right: true,
                    shape: Shape::Steps,
                    ..line("queue depth", &seconds, depth)
                },
            ],
        ),
        panel(
            axis("CPU", Unit::Share, false),
            None,
            vec![
                stacked("user and system", cpu),
                stacked("waiting", waiting),
                stacked("steal", steal),
            ],
        ),
    ];
    let chart = chart(
        "timeline",
        "Throughput, latency and the host",
        "Throughput fell by 45 % at 620 s for one minute, while the hypervisor took 31 % of the \
         CPU time.",
        Plot::Stack { panels },
    );
    section(
        "timeline",
        "Timeline",
        "What happened at the same time stands below each other.",
        vec![chart],
    )
}

fn waits() -> Section {
    let seconds: Vec<f64> = (0..60).map(|step| f64::from(step) * 10.0).collect();
    let of = |name: &str, share: f64, index: usize| Series {
        shape: Shape::Stacked,
        ..line(
            name,
            &seconds,
            (0..60)
                .map(|at| Some(share + 0.1 * share * noise(at + index)))
                .collect(),
        )
    };
    let lines = Lines {
        x: axis("time", Unit::Seconds, false),
        y: axis("average sessions", Unit::Number, false),
        series: vec![
            of("on CPU", 3.0, 0),
            of("DataFileRead", 9.0, 1),
            of("WALWrite", 2.0, 2),
            of("BufferMapping", 1.0, 3),
            of("other", 0.6, 4),
        ],
        ..Lines::default()
    };
    let waits = chart(
        "waits",
        "What sessions waited for",
        "Mostly for reads: 9 of 16 sessions.",
        Plot::Lines(lines),
    );
    section("waits", "Wait events", "", vec![waits])
}

fn soak() -> Section {
    let start = 1_795_270_000.0;
    let rounds: Vec<f64> = (0..3000)
        .map(|round| start + f64::from(round) * 120.0)
        .collect();
    let values: Vec<Option<f64>> = (0..3000)
        .map(|round| {
            (round % 700 != 3)
                .then(|| 6300.0 - if round > 1800 { 1900.0 } else { 0.0 } + 240.0 * noise(round))
        })
        .collect();
    let marks = (0..7)
        .map(|index| {
            upright(
                start + 40_000.0 * f64::from(index) + 20_000.0,
                &format!("change {index}: kernel updated"),
                Status::Warning,
            )
        })
        .collect();
    let lines = Lines {
        x: axis("round", Unit::Moment, false),
        y: Axis {
            range: Some((0.0, 7000.0)),
            ..axis("reads", Unit::PerSecond, false)
        },
        right: Some(axis("throughput", Unit::MbPerSecond, false)),
        series: vec![
            Series {
                shape: Shape::Points,
                ..line("reads a second", &rounds, values.clone())
            },
            Series {
                at_right: true,
                band: values
                    .iter()
                    .map(|value| {
                        value.map(|value| Limits {
                            low: value / 130.0,
                            high: Some(value / 115.0),
                        })
                    })
                    .collect(),
                ..line(
                    "MB/s",
                    &rounds,
                    values
                        .iter()
                        .map(|value| value.map(|value| value / 122.0))
                        .collect(),
                )
            },
        ],
        marks,
    };
    let rounds = chart(
        "rounds",
        "Rounds",
        "3,000 rounds over four days.",
        Plot::Lines(lines),
    );
    section(
        "soak",
        "Soak",
        "",
        vec![rounds, Block::Text("Each round is 100,000 reads.".into())],
    )
}

fn tables() -> Section {
    // As wide as real tables, which must fit on paper.
    let quantiles = [
        "mean (95 %)",
        "p50 (95 %)",
        "p90 (95 %)",
        "p99 (95 %)",
        "p99.9 (95 %)",
    ];
    let number = |name: &str| Column {
        name: name.into(),
        is_number: true,
        extent: Extent::Screen,
        may_be_cut: false,
    };
    let point = Column {
        name: "point".into(),
        is_number: false,
        extent: Extent::Screen,
        may_be_cut: false,
    };
    let columns: Vec<Column> = std::iter::once(point)
        .chain([number("IOPS")])
        .chain(quantiles.map(number))
        .chain([number("max")])
        .collect();
    let rows = (1..=12).map(|depth| {
        let time = format!("{} µs", depth * 140);
        let interval = format!("{time} ({} to {} µs)", depth * 131, depth * 149);
        let name = format!("random reads, depth {depth}");
        let intervals = quantiles.map(|_| interval.clone());
        [name, (depth * 6500).to_string()]
            .into_iter()
            .chain(intervals)
            .chain([time])
            .collect()
    });
    let rows: Vec<_> = rows.collect();
    let open = Table {
        caption: "Points".into(),
        columns: columns.clone(),
        rows: rows[..4].to_vec(),
        folded: false,
        ..Table::default()
    };
    let folded = Table {
        caption: "All points".into(),
        columns,
        rows,
        folded: true,
        ..Table::default()
    };
    let again = "rigel calibrate /dev/nvme1n1 --seed 1 --bound 'p99<2ms' --out \
                 runs/calibrate_20261121_140512";
    section(
        "what-was-run",
        "What was run",
        "",
        vec![
            Block::Text(
                "On Linux 6.12 with 16 CPUs; Rigel 0.1.0, engine io_uring. Run it again by:".into(),
            ),
            Block::Code(again.into()),
            Block::Table(open),
            Block::Table(folded),
        ],
    )
}

/// The hostile name wherever a name can appear.
fn hostile() -> Section {
    let name = || HOSTILE.to_owned();
    let lines = Lines {
        x: axis(HOSTILE, Unit::Number, false),
        y: axis(HOSTILE, Unit::Number, false),
        right: None,
        series: vec![
            Series {
                labels: vec![name(), name()],
                ..line(HOSTILE, &[1.0, 2.0], vec![Some(1.0), Some(0.5)])
            },
            line("other", &[1.0, 2.0], vec![Some(f64::NAN), Some(2.0)]),
        ],
        marks: vec![upright(1.5, HOSTILE, Status::Plain)],
    };
    let heat = Heat {
        columns: vec![name()],
        rows: vec![name()],
        values: vec![vec![Some(1.0)]],
        label: name(),
        ..Heat::default()
    };
    let table = Table {
        caption: name(),
        columns: vec![Column {
            name: name(),
            is_number: false,
            extent: Extent::Screen,
            may_be_cut: false,
        }],
        rows: vec![vec![name()]],
        folded: false,
        ..Table::default()
    };
    let empty = Plot::Lines(Lines {
        series: vec![line("nothing", &[], Vec::new())],
        ..Lines::default()
    });
    let hostile = Finding {
        severity: Severity::Warning,
        name: HOSTILE.into(),
        what: HOSTILE.into(),
        hint: HOSTILE.into(),
        figure: None,
    };
    let blocks = vec![
        Block::Text(name()),
        Block::Code(name()),
        Block::Table(table),
        Block::Causes(RunTrust::of([hostile].iter(), &[]).causes),
        chart("hostile\" onload=\"x", HOSTILE, HOSTILE, Plot::Lines(lines)),
        chart(
            "hostile-heat",
            HOSTILE,
            HOSTILE,
            Plot::Heat(Heat {
                written: true,
                ..heat.clone()
            }),
        ),
        chart("hostile-field", HOSTILE, HOSTILE, Plot::Heat(heat)),
        chart("empty", "Nothing", "", empty),
    ];
    section("names", HOSTILE, HOSTILE, blocks)
}

fn section(id: &str, title: &str, lead: &str, blocks: Vec<Block>) -> Section {
    Section {
        id: id.into(),
        title: title.into(),
        lead: lead.into(),
        blocks,
        extent: Extent::Screen,
    }
}

fn chart(id: &str, title: &str, description: &str, plot: Plot) -> Block {
    Block::Chart(Box::new(Chart {
        id: id.into(),
        title: title.into(),
        description: description.into(),
        plot,
        in_text: false,
    }))
}

fn axis(label: &str, unit: Unit, log: bool) -> Axis {
    Axis {
        label: label.into(),
        unit,
        log,
        range: None,
    }
}

fn line(name: &str, x: &[f64], y: Vec<Option<f64>>) -> Series {
    Series {
        name: name.into(),
        x: x.to_vec(),
        y,
        ..Series::default()
    }
}

fn upright(at: f64, label: &str, tone: Status) -> Mark {
    Mark {
        at,
        upright: true,
        label: label.into(),
        tone,
        ..Mark::default()
    }
}
