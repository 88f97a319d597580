//! `PostgreSQL`: the cost of a random page, and the number of reads to keep in flight.

use super::decision::Decision;
use super::default::ProductDefault;
use super::durability;
use super::product::Product;
use super::setting::{
    Advice, Ground, Opinion, alter_system, other_block, size, unsteady_or_unknown, whole,
};
use crate::figures::quantity::{count, percent, time};
use crate::{AtLoad, Estimate, Limits};
use std::cmp::Ordering;

/// `BLCKSZ` of nearly every build.
const BLOCK: u32 = 8192;

/// Bytes that a sequential scan reads at once: `io_combine_limit` since 17, the kernel's read-ahead
/// before, both by default.
const SCAN_READ: u32 = 128 << 10;

/// Fraction of random reads that find their block in a cache; the documentation up to 17 says so of
/// the default.
const CACHED: f64 = 0.9;

/// A larger read is worth a trial if it may reach this many times the throughput. A choice.
const WORTH_A_LARGER_READ: f64 = 1.1;

/// Maximum value of `effective_io_concurrency`.
const CONCURRENCY_MAX: f64 = 1000.0;

/// Maximum value of `io_workers`.
const WORKERS_MAX: f64 = 32.0;

/// CPUs for one worker, in the usual advice for data that is mostly in the page cache.
const WORKERS_EACH_CPUS: u32 = 4;

const COSTS: &str = "PostgreSQL documentation, 19.7.2 Planner Cost Constants";
const IO: &str = "PostgreSQL documentation, 19.4 Resource Consumption (I/O, asynchronous behavior)";

/// All settings for `PostgreSQL`.
pub(super) fn settings(ground: &Ground) -> Vec<Advice> {
    let measured = [
        random_page_cost(ground),
        concurrency(ground, "effective_io_concurrency"),
        concurrency(ground, "maintenance_io_concurrency"),
        io_workers(ground),
        io_combine_limit(ground),
    ];
    measured
        .into_iter()
        .chain(durability::of_postgres(ground))
        .collect()
}

/// The statements that change something.
pub(super) fn apply(ground: &Ground, settings: &[Advice]) -> Vec<String> {
    if settings.iter().all(|setting| setting.statement.is_none()) {
        return Vec::new();
    }
    let mut lines: Vec<String> = Vec::new();
    let mut has_one_session = false;
    for setting in settings {
        let Some(statement) = &setting.statement else {
            continue;
        };
        match setting.setting {
            "random_page_cost" if ground.plans.is_some_and(|test| test.crossing.is_some()) => {
                lines.push(
                    "-- Where both scans took as long on a private server; one tablespace:".into(),
                );
            }
            "random_page_cost" => lines.push(
                "-- No plan was tested: first compare those of your queries; for one tablespace:"
                    .into(),
            ),
            "io_workers" => {
                lines.push("-- 18 only, and only with io_method = worker; it costs CPU:".into());
            }
            _ if ground.sessions.is_none() && !has_one_session => {
                has_one_session = true;
                lines.push(
                    "-- For one session that reads at a time; --sessions N divides by N:".into(),
                );
            }
            _ => {}
        }
        lines.push(statement.clone());
    }
    let is_comment = |line: &String| line.starts_with("--");
    let reload = "SELECT pg_reload_conf();";
    lines.push(if lines.iter().all(is_comment) {
        format!("-- {reload}")
    } else {
        reload.into()
    });
    lines
}

/// Formats a cost with its significant decimals; at least 1, the cost of a sequential page.
fn cost(ratio: f64) -> String {
    match ratio.max(1.0) {
        ratio if ratio < 9.95 => format!("{ratio:.1}"),
        ratio => whole(ratio),
    }
}

/// What reads of two sizes cost: the time of one at a time, or the storage's time at saturation.
#[derive(Clone, Copy)]
pub(super) struct TwoSizes {
    /// The cost of a read of one page over that of a large read.
    page_over_large: Estimate,
    page_bytes: u32,
    large_bytes: u32,
}

impl TwoSizes {
    /// By the times of one read at a time.
    pub(super) fn alone(page: AtLoad, large: AtLoad) -> Self {
        Self {
            page_over_large: page.mean_us.over(large.mean_us),
            page_bytes: page.io_bytes,
            large_bytes: large.io_bytes,
        }
    }

    /// By the rates of saturated storage.
    pub(super) fn saturated(page: AtLoad, large: AtLoad) -> Self {
        Self {
            page_over_large: large.iops.over(page.iops),
            page_bytes: page.io_bytes,
            large_bytes: large.io_bytes,
        }
    }

    /// Pages of one read of a sequential scan, whatever size stands for a page.
    fn pages() -> f64 {
        f64::from(SCAN_READ) / f64::from(BLOCK)
    }

    /// What a random page costs, as the planner charges it: 1 is a page of a sequential scan, which
    /// reads [`SCAN_READ`] at once. Such a read costs at least as much as one page and at most as much
    /// as its pages one by one, so that the ratio lies between 1 and the number of pages.
    ///
    /// If another large size was measured, the cost of the scan's read lies on the straight line
    /// through those of both sizes; the range has what is possible: a longer read costs no less, and
    /// a byte of it no more.
    pub(super) fn random_page_cost(self) -> Estimate {
        let (pages, scan) = (Self::pages(), f64::from(SCAN_READ));
        let (page, large) = (f64::from(self.page_bytes), f64::from(self.large_bytes));
        let within = |ratio: f64| ratio.clamp(1.0, pages);
        // The cost of a read of this size over that of a large one.
        let cost = |ratio: f64, bytes: f64| ratio + (1.0 - ratio) * (bytes - page) / (large - page);
        let (block, longer) = (f64::from(BLOCK), large / scan);
        let on_line = |ratio: f64| pages * cost(ratio, block) / cost(ratio, scan);
        // Of a page that is as large as what was measured, or a part of it, or more.
        let (part, more) = ((block / page).min(1.0), (block / page).max(1.0));
        let of = self.page_over_large;
        Estimate::new(
            within(on_line(of.value)),
            of.interval.and_then(Limits::both).map(|known| Limits {
                low: within(pages * part * known.low * longer.min(1.0)),
                high: Some(within(pages * more * known.high * longer.max(1.0))),
            }),
        )
    }

    /// How many times the throughput of a scan's reads the large reads reach at most; `None` if that
    /// is not known.
    fn gain_of_large(self) -> Option<f64> {
        let ratio = self.page_over_large.interval.and_then(Limits::both)?;
        let longer = f64::from(self.large_bytes) / f64::from(SCAN_READ);
        // A scan's read costs no more than its pages, nor than the large read.
        Some(longer * (Self::pages() * ratio.high).min(1.0))
    }

    /// True if a page is shorter than a scan's read and than a large read.
    fn are_apart(self) -> bool {
        self.page_bytes < SCAN_READ.min(self.large_bytes)
    }
}

/// Decides on the cost. No cache was measured, and a cache lowers it: times can show that the default
/// is too high, but not that it is too low. Plans can show both. The name of the tablespace is not
/// known, so that the statement is a comment.
fn random_page_cost(ground: &Ground) -> Advice {
    let advice = cost_by_plans(ground);
    let Some(value) = advice.value.clone() else {
        return advice;
    };
    let crossing = ground.plans.map(|test| test.crossing);
    let decision = match (advice.default_beside_range(), crossing) {
        (None, _) => Decision::leave("measured too briefly for a range"),
        (Some(Ordering::Equal), _) => advice.leave_within(&value),
        (Some(_), Some(Some(_))) => Decision::set(
            value,
            "at this cost the planner changes between scans that take equally long",
        ),
        (Some(Ordering::Greater), _) => Decision::set(
            value,
            "a random page costs less than the default, even if no cache has it",
        ),
        (Some(Ordering::Less), None) => Decision::leave(format!(
            "{value} is for pages that no cache has; --plans-on DIR tests plans"
        )),
        (Some(Ordering::Less), Some(_)) => {
            Decision::leave(format!("{value} is for pages that no cache has"))
        }
    };
    let decision = match crossing {
        Some(None) => decision.because("plans gave no cost, and --verbose says why"),
        Some(Some(_)) | None => decision,
    };
    advice.decided(decision, true, |value| {
        format!("ALTER TABLESPACE name SET (random_page_cost = {value});")
    })
}

/// The cost by the plans of a private server, if they gave one; else by the ratio of times.
fn cost_by_plans(ground: &Ground) -> Advice {
    let mut advice = cost_by_times(ground);
    let Some(test) = ground.plans else {
        return advice;
    };
    let Some(crossing) = test.crossing else {
        let why = test.why_not.as_deref().unwrap_or("unknown");
        advice
            .warnings
            .push(format!("plans: no cost follows from them: {why}"));
        return advice;
    };
    let mut opinions = advice.opinions;
    if let Some(value) = advice.value {
        opinions.push(Opinion {
            value,
            why: "the ratio of times at the knee, which counts the reads of many sessions that \
                  overlap"
                .into(),
        });
    }
    let rows: Vec<u64> = test.costs.iter().map(|costs| costs.rows).collect();
    let range = (
        rows.iter().min().copied().unwrap_or(0) as f64,
        rows.iter().max().copied().unwrap_or(0) as f64,
    );
    let share = |rows: f64| percent(rows / test.table_rows.max(1) as f64);
    let blank = ground.blank(Product::Postgres, "random_page_cost", COSTS);
    Advice {
        derivation: format!(
            "by plans on a private {}: on a table of {} rows, one to a block of {}, an index scan \
             took as long as a sequential scan at {} to {} of the rows ({} rounds), and the \
             planner changes from one to the other there at a cost of {}. Blocks that did not \
             come from storage: {} of the index scans', {} of the sequential scans'",
            test.server,
            count(test.table_rows as f64),
            size(test.block),
            share(range.0),
            share(range.1),
            rows.len(),
            interval(crossing),
            percent(test.cached[0].unwrap_or(0.0).max(0.0)),
            percent(test.cached[1].unwrap_or(0.0).max(0.0)),
        ),
        misleads: "one session on idle storage, one row to a block in random order, all reads \
                   physical: where the page cache or shared_buffers serve most reads it is too \
                   high. Bitmap scans, which lie between the two plans, were off. \
                   effective_cache_size matters as much"
            .into(),
        opinions,
        warnings: advice.warnings,
        ..blank.valued(crossing, cost)
    }
}

fn cost_by_times(ground: &Ground) -> Advice {
    let calibration = ground.found;
    let setting = "random_page_cost";
    let blank = ground.blank(Product::Postgres, setting, COSTS);
    let sizes = calibration.at_knee.zip(calibration.large);
    let sizes = sizes.map(|(random, large)| (random, large, TwoSizes::saturated(random, large)));
    let Some((random, large, both)) = sizes.filter(|(.., both)| both.are_apart()) else {
        return blank.not_measured(
            "the knee or large reads were not measured",
            ground.command("--as postgres"),
        );
    };
    let at_knee = both.random_page_cost();
    let mut opinions = Vec::new();
    let alone = calibration.low_load.zip(calibration.stream);
    let alone = alone.map(|(page, stream)| (page, TwoSizes::alone(page, stream)));
    if let Some((page, alone)) = alone.filter(|(_, alone)| alone.are_apart()) {
        let ratio = alone.random_page_cost();
        opinions.push(Opinion {
            value: cost(ratio.value),
            why: format!(
                "at depth 1: {} for a random read, and {} times as long as a page of one \
                 sequential stream. A plain index scan waits for one page at a time, so a query \
                 alone on the storage sees this ratio",
                time(page.mean_us.value),
                interval(ratio),
            ),
        });
    }
    opinions.push(Opinion {
        value: cost(at_knee.value * (1.0 - CACHED)),
        why: "the ratio at the knee if 90 % of random reads find their block in a cache, which \
              the documentation up to 17 assumes for its default: 4 is 40 x (1 - 0.9). \
              seq_page_cost stays 1"
            .into(),
    });
    opinions.push(common_advice(ground));
    let warnings = unsteady_or_unknown(&[
        Some(random),
        Some(large),
        calibration.low_load,
        calibration.stream,
    ]);
    let other_block = other_block(random, BLOCK, "--as postgres");
    let between = if large.io_bytes == SCAN_READ {
        String::new()
    } else {
        format!(
            ", on the line through reads of {} and {}",
            size(random.io_bytes),
            size(large.io_bytes)
        )
    };
    Advice {
        derivation: format!(
            "at the knee, depth {}: {} of the storage's time for a random read of {} ({} \
             IOPS), {} for a page of a read of {}{between}; their ratio is {}. A sequential scan \
             reads that much at once, by io_combine_limit since 17 and by the kernel's read-ahead \
             before. Not at depth 1, because the reads of many sessions overlap, and a page costs \
             the storage's time",
            random.depth,
            time(1e6 / random.iops.value),
            size(random.io_bytes),
            count(random.iops.value),
            time(1e6 / random.iops.value / at_knee.value),
            size(SCAN_READ),
            interval(at_knee),
        ),
        misleads: "no plan was tested with it: the ratio is one of times, and the cost at which \
                   the planner's choice is right may be lower. It applies to reads that reach the \
                   storage: if the page cache or \
                   shared_buffers serve most of them it is too high, and sequential scans are \
                   chosen too often. The planner has one figure for all tables; a tablespace may \
                   have its own. effective_cache_size matters as much"
            .into(),
        opinions,
        warnings: warnings.into_iter().chain(other_block).collect(),
        ..blank.valued(at_knee, cost)
    }
}

fn interval(ratio: Estimate) -> String {
    ratio.interval.and_then(Limits::both).map_or_else(
        || format!("{:.2}", ratio.value),
        |i| format!("{:.2} [{:.2}, {:.2}]", ratio.value, i.low, i.high),
    )
}

fn common_advice(ground: &Ground) -> Opinion {
    let why = match ground.rotational() {
        Some(true) => {
            "the common advice for solid-state storage, in the documentation up to 17. A disk \
             below reports that it is rotational, so the advice does not apply to it (virtual \
             disks often report this wrongly)"
        }
        _ => {
            "the common advice for solid-state storage, in the documentation up to 17. It assumes \
             that reads overlap or hit a cache, where every page costs the same; the ratios here \
             are for reads that all reach the storage. To decide between them, use EXPLAIN \
             (ANALYZE, BUFFERS) on your own queries"
        }
    };
    Opinion {
        value: "1.1".into(),
        why: why.into(),
    }
}

/// The maximum setting before 13 whose prefetch distance, `n` (1 + 1/2 + … + 1/n), is not above
/// `depth`.
pub(super) fn before_13(depth: f64) -> f64 {
    let mut harmonic = 0.0;
    let mut count = 0.0;
    loop {
        harmonic += 1.0 / (count + 1.0);
        if (count + 1.0) * harmonic > depth {
            return f64::max(count, 1.0);
        }
        count += 1.0;
    }
}

fn concurrency(ground: &Ground, setting: &'static str) -> Advice {
    let blank = ground.blank(Product::Postgres, setting, IO);
    let Some((knee, [low, high])) = ground.knee() else {
        return blank.not_measured("no knee was found", ground.command("--as postgres"));
    };
    let write = |depth: f64| whole(depth.clamp(1.0, CONCURRENCY_MAX));
    let maintenance = setting.starts_with("maintenance");
    let large = ground.found.large.map_or_else(String::new, |large| {
        format!(
            "; reads of {} need a depth of {}",
            size(large.io_bytes),
            large.depth
        )
    });
    let sessions = f64::from(ground.sessions.unwrap_or(1));
    let mut opinions = vec![match ground.sessions {
        None => Opinion {
            value: write(knee / 4.0),
            why: "for example with four sessions at once: the knee is that of the whole machine, \
                  the setting that of one session. `rigel advise --sessions N` divides by the \
                  number of sessions that scan at the same time"
                .into(),
        },
        Some(_) => Opinion {
            value: write(knee),
            why: "for a session that has the storage to itself, with SET in that session: the \
                  whole knee"
                .into(),
        },
    }];
    if !maintenance {
        opinions.push(Opinion {
            value: write(before_13(knee / sessions)),
            why: "before 13, which counted disks: a value of n meant n (1 + 1/2 + ... + 1/n) \
                  reads in flight"
                .into(),
        });
    }
    let between = if low < high {
        format!(" (between {low} and {high})")
    } else {
        String::new()
    };
    // Fewer than the low end, each, would be too few together.
    let low = (low / sessions).ceil();
    let high = (high / sessions).floor().max(low);
    let advice = Advice {
        range: Some([write(low), write(high)]),
        derivation: format!(
            "the depth at the knee, {knee}{between}, {}. With fewer \
             outstanding, throughput was lower; with more, only latency grows{large}",
            match ground.sessions {
                None => "for one session that reads at a time, which is an assumption".into(),
                Some(sessions) => format!("over the {sessions} sessions of --sessions"),
            }
        ),
        misleads: if maintenance {
            "like effective_io_concurrency, for VACUUM, ANALYZE and recovery: several autovacuum \
             workers share the storage"
                .into()
        } else {
            "one session with this value saturates the storage; with many, reads queue and every \
             query waits longer, as the documentation of 18 warns. Up to 17 only bitmap heap \
             scans use it; since 18 most scans do, and a read may be as long as \
             io_combine_limit, so fewer are enough"
                .to_string()
        },
        opinions,
        warnings: unsteady_or_unknown(&[ground.found.at_knee])
            .into_iter()
            .chain(ground.knee_warning())
            .collect(),
        ..blank.valued((knee / sessions).into(), write)
    };
    let low = write(low);
    let decision = match advice.default_beside_range() {
        Some(Ordering::Less) => Decision::set(
            low.clone(),
            format!("with fewer than {low}, throughput was certainly lower"),
        ),
        Some(Ordering::Greater) if ground.is_knee_open() => {
            Decision::leave("throughput still rose at the maximum depth measured")
        }
        Some(Ordering::Greater) => Decision::set(
            low.clone(),
            format!("no depth is certainly better than {low}"),
        ),
        Some(Ordering::Equal) | None => advice.leave_within(&low),
    };
    // Too high a value makes the reads of all sessions wait, so that their number must be known.
    advice.decided(decision, ground.sessions.is_none(), |value| {
        alter_system(setting, value)
    })
}

fn io_workers(ground: &Ground) -> Advice {
    let blank = ground.blank(Product::Postgres, "io_workers", IO);
    let Some((knee, [low, high])) = ground.knee() else {
        return blank.not_measured("no knee was found", ground.command("--as postgres"));
    };
    let write = |depth: f64| whole(depth.clamp(1.0, WORKERS_MAX));
    let low = low.ceil();
    let cpus = ground.header.host.cpus;
    let advice = Advice {
        range: Some([write(low), write(high)]),
        derivation: format!(
            "the smaller of {WORKERS_MAX}, the highest allowed value, and the depth at the knee, \
             {knee}: a worker has one read in flight, so the server never has more than the \
             number of workers"
        ),
        misleads: format!(
            "with io_method = io_uring or sync it has no effect. Workers take CPU, for checksums \
             and for copying from the page cache: this machine has {cpus}. 19 has io_min_workers \
             and io_max_workers instead"
        ),
        opinions: vec![Opinion {
            value: whole(f64::from(cpus / WORKERS_EACH_CPUS).clamp(3.0, WORKERS_MAX)),
            why: "a quarter of the CPUs and at least the default, the usual advice if the data is \
                  mostly in the page cache and workers copy more than they wait"
                .into(),
        }],
        warnings: unsteady_or_unknown(&[ground.found.at_knee])
            .into_iter()
            .chain(ground.knee_warning())
            .collect(),
        ..blank.valued(knee.into(), write)
    };
    let decision = match advice.default_beside_range() {
        Some(Ordering::Less) => more_workers(&advice, low.min(WORKERS_MAX), cpus),
        Some(Ordering::Equal) | None => advice.leave_within(&write(low)),
        Some(Ordering::Greater) => {
            Decision::leave("more than this storage needs, and idle workers cost little")
        }
    };
    advice.decided(decision, true, |value| alter_system("io_workers", value))
}

/// Decides on workers if the default is fewer than the storage needs: each takes CPU, so that at most
/// a quarter of the CPUs may be workers.
fn more_workers(advice: &Advice, needed: f64, cpus: u32) -> Decision {
    let quarter = f64::from(cpus / WORKERS_EACH_CPUS);
    let own = advice.default.as_ref().and_then(ProductDefault::number);
    let value = whole(needed.min(quarter));
    if own.is_some_and(|own| quarter <= own) {
        Decision::leave(format!(
            "a worker takes CPU, and a quarter of the {cpus} CPUs here is not more"
        ))
    } else if quarter < needed {
        Decision::set(
            value,
            format!("a quarter of the {cpus} CPUs here: a worker takes CPU"),
        )
    } else {
        Decision::set(
            value,
            format!(
                "with fewer than {}, throughput was certainly lower",
                whole(needed)
            ),
        )
    }
}

/// Decides on the size of a scan's read by the throughput that a larger one can reach. Of a run with
/// large reads of another size than [`SCAN_READ`] only its bounds are known.
fn io_combine_limit(ground: &Ground) -> Advice {
    let calibration = ground.found;
    let blank = ground.blank(Product::Postgres, "io_combine_limit", IO);
    let sizes = calibration.at_knee.zip(calibration.large);
    let sizes = sizes.map(|(small, large)| (small, large, TwoSizes::saturated(small, large)));
    let Some((small, large, both)) = sizes.filter(|(.., both)| both.are_apart()) else {
        return blank.not_measured(
            "large reads were not measured",
            ground.command("--as postgres"),
        );
    };
    let gain = both.gain_of_large();
    let rates = format!(
        "reads of {} reach {} MB/s, reads of {} {} MB/s",
        size(small.io_bytes),
        count(small.mb_per_s.value),
        size(large.io_bytes),
        count(large.mb_per_s.value),
    );
    let decision = match gain {
        _ if large.io_bytes <= SCAN_READ => {
            Decision::leave("no read above 128 KiB was measured; it would make others wait longer")
        }
        Some(gain) if gain < WORTH_A_LARGER_READ => Decision::leave(format!(
            "reads of {} reach at most {} more than those of 128 KiB",
            size(large.io_bytes),
            percent(gain - 1.0)
        )),
        _ => Decision::leave(format!(
            "reads of {} may reach more, and make others wait longer: try your scans",
            size(large.io_bytes)
        )),
    };
    Advice {
        decision,
        derivation: format!(
            "{rates}; what lies between was not measured. A run with and one without --as \
             postgres, whose large reads are of 128 KiB and 1 MiB, show it together: `rigel \
             compare` has both throughputs. A higher value needs io_max_combine_limit since 18"
        ),
        misleads: "the kernel splits reads larger than max_sectors_kb, and a larger read makes \
                   others wait"
            .into(),
        warnings: unsteady_or_unknown(&[Some(small), Some(large)]),
        ..blank
    }
}
