//! `MySQL` and `MariaDB`: how much `InnoDB` may write in the background, and how many I/Os it may
//! have outstanding.

use super::decision::Decision;
use super::default::ProductDefault;
use super::durability;
use super::product::Product;
use super::setting::{
    Advice, Ground, Opinion, other_block, size, three_digits, unsteady_or_unknown, whole,
};
use crate::figures::quantity::per_second;
use crate::{AtLoad, Estimate};
use std::cmp::Ordering;
use std::fmt::Write;

/// Default `innodb_page_size`. It can only be set when the server is set up.
const PAGE: u32 = 16 << 10;

/// Maximum fraction of the write rate that background work may take; the rest is for reads. It is a
/// choice, and the output says so.
pub(super) const HEADROOM: f64 = 0.5;

/// Ratio of `innodb_io_capacity` to `innodb_io_capacity_max`, as in the product's own defaults.
const CAPACITY_OF_MAX: f64 = 0.5;

/// Minimum value of `innodb_io_capacity`.
const CAPACITY_MIN: f64 = 100.0;

/// `MySQL`'s manual (8.4, 17.8.7) advises against a greater `innodb_io_capacity`, unless lower
/// values are certain to be too low.
const CAPACITY_RECOMMENDED_MAX: f64 = 20_000.0;

/// Requests that one I/O thread serves.
const REQUESTS_A_THREAD: f64 = 256.0;

/// Minimum default number of I/O threads of each kind (read, write).
const THREADS_DEFAULT: f64 = 4.0;

/// Maximum number of I/O threads of each kind.
const THREADS_MAX: f64 = 64.0;

/// All settings for `MySQL` or `MariaDB`.
pub(super) fn settings(ground: &Ground, product: Product) -> Vec<Advice> {
    let calibration = ground.found;
    let mut settings = vec![
        // The maximum comes first: a capacity above it would be cut down to it.
        capacity(ground, product, "innodb_io_capacity_max", HEADROOM),
        capacity(
            ground,
            product,
            "innodb_io_capacity",
            HEADROOM * CAPACITY_OF_MAX,
        ),
        threads(
            ground,
            product,
            "innodb_read_io_threads",
            ground.knee().map(|(knee, _)| knee),
            calibration.at_knee,
        ),
        threads(
            ground,
            product,
            "innodb_write_io_threads",
            calibration.writes.map(|at| at.depth.into()),
            calibration.writes,
        ),
    ];
    settings.extend(durability::of_innodb(ground, product));
    settings
}

/// The lines that change something.
pub(super) fn apply(product: Product, settings: &[Advice]) -> Vec<String> {
    if settings.iter().all(|setting| setting.statement.is_none()) {
        return Vec::new();
    }
    let mut apply = match product {
        Product::Mariadb => {
            vec![
                "# MariaDB: in a .cnf file that the server reads, then restart".into(),
                "[mariadb]".into(),
            ]
        }
        _ => vec!["-- MySQL 8.0 and later; threads change at the next restart".to_string()],
    };
    apply.extend(settings.iter().flat_map(|setting| lines(setting, product)));
    apply
}

/// The lines that apply a setting.
fn lines(setting: &Advice, product: Product) -> Vec<String> {
    let (comment, name) = (product.comment(), setting.setting);
    let mut lines: Vec<String> = setting.statement.iter().cloned().collect();
    let measured = setting.estimate.map_or(0.0, |estimate| estimate.value);
    let is_capped = name.contains("capacity") && measured > recommended_max(name);
    if is_capped && !lines.is_empty() {
        lines.push(format!(
            "{comment} the share of the measured rate, only if that is certain to be too low:"
        ));
        lines.push(format!(
            "{comment} {}",
            statement_of(product, name, &three_digits(measured))
        ));
    }
    lines
}

fn statement_of(product: Product, setting: &str, value: &str) -> String {
    match product {
        Product::Mariadb => format!("{setting} = {value}"),
        _ if setting.ends_with("threads") => format!("SET PERSIST_ONLY {setting} = {value};"),
        _ => format!("SET PERSIST {setting} = {value};"),
    }
}

/// The highest value of a capacity in a statement. The maximum is in the proportion of the
/// product's own defaults.
fn recommended_max(setting: &str) -> f64 {
    if setting.ends_with("max") {
        CAPACITY_RECOMMENDED_MAX / CAPACITY_OF_MAX
    } else {
        CAPACITY_RECOMMENDED_MAX
    }
}

fn source(product: Product, setting: &str) -> &'static str {
    match (product, setting.ends_with("threads")) {
        (Product::Mariadb, false) => "MariaDB documentation, InnoDB System Variables",
        (Product::Mariadb, true) => "MariaDB documentation, Configure the InnoDB I/O Threads",
        (_, false) => "MySQL 8.4 Reference Manual, 17.8.7 Configuring InnoDB I/O Capacity",
        (_, true) => {
            "MySQL 8.4 Reference Manual, 17.8.5 Configuring the Number of Background InnoDB I/O \
             Threads"
        }
    }
}

fn capacity(ground: &Ground, product: Product, setting: &'static str, share: f64) -> Advice {
    let blank = ground.blank(product, setting, source(product, setting));
    let Some(writes) = ground.found.writes else {
        let missing = "no writes were measured, and the rate of reads does not predict them";
        return blank.not_measured(missing, ground.command("--as mysql --write"));
    };
    let most = recommended_max(setting);
    let write = |rate: f64| three_digits(rate.clamp(CAPACITY_MIN, most));
    let is_max = setting.ends_with("max");
    let (part, for_what) = if is_max {
        (
            "half",
            "for the case that flushing falls behind; the other half is left for reads",
        )
    } else {
        (
            "a quarter",
            "half of innodb_io_capacity_max, as in the product's default",
        )
    };
    let seconds = ground.write_seconds().map_or_else(String::new, |seconds| {
        format!(
            "The rate was measured for {seconds:.0} s: an SSD's cache accepts more at first than \
             the SSD sustains for hours (--precision 0.1% --point-max 60s measures longer). "
        )
    });
    let mut derivation = format!(
        "{part} of the maximum rate of random writes of {}, {} at depth {}: {for_what}. The \
         share is a choice, not a measurement",
        size(writes.io_bytes),
        per_second(writes.iops.value),
        writes.depth,
    );
    let measured = writes.iops.value * share;
    if measured > most {
        let _ = write!(
            derivation,
            ". That would be {}, and the value is {most:.0}: MySQL's manual advises against an \
             innodb_io_capacity above {CAPACITY_RECOMMENDED_MAX}, unless lower values are certain \
             to be too low for the workload",
            three_digits(measured)
        );
    }
    let advice = Advice {
        derivation,
        misleads: format!(
            "{seconds}The lowest value that keeps up is best: pages that are written early \
             are written again. The doublewrite buffer writes each page twice, and redo and reads \
             share the storage"
        ),
        opinions: vec![Opinion {
            value: three_digits(writes.iops.value),
            why: "the full write rate of the storage, if the manual's \"IOPS of the system\" is \
                  taken literally: it leaves nothing for reads, and the manual also says to keep \
                  it low"
                .into(),
        }],
        warnings: unsteady_or_unknown(&[Some(writes)])
            .into_iter()
            .chain(other_block(writes, PAGE, "--as mysql --write"))
            .collect(),
        ..blank.valued(with_pages(writes).scaled(share), write)
    };
    let value = write(measured);
    let decision = match advice.default_beside_range() {
        Some(Ordering::Less) => Decision::set(
            value,
            format!("{part} of what the storage writes; less if flushing keeps up"),
        ),
        Some(Ordering::Equal) => advice.leave_within(&value),
        // The share is a choice: only a default that the storage cannot do is certainly too high.
        Some(Ordering::Greater) if !is_too_high(&advice, writes, share) => {
            let most = per_second(writes.iops.value);
            advice.leave_since(
                &format!("the storage can do the default: it writes {most}"),
                advice.is_older_default_outside(),
                &value,
            )
        }
        Some(Ordering::Greater) => Decision::set(
            value,
            format!("{part} of what the storage writes, which is less than the default asks"),
        ),
        None => Decision::leave("measured too briefly for a range"),
    };
    advice.decided(decision, false, |value| {
        statement_of(product, setting, value)
    })
}

/// True if the default certainly asks more than the storage can write. The default of
/// `innodb_io_capacity` is [`CAPACITY_OF_MAX`] of that of its maximum.
fn is_too_high(advice: &Advice, writes: AtLoad, share: f64) -> bool {
    let own = advice.default.as_ref().and_then(ProductDefault::number);
    let high = writes.iops.interval.and_then(|limits| limits.high);
    own.zip(high)
        .is_some_and(|(own, high)| own > high * share / HEADROOM)
}

/// The write rate, with its interval widened for pages larger than the measured size: a page may
/// take as long as all the blocks in it.
pub(super) fn with_pages(writes: AtLoad) -> Estimate {
    let smaller = (f64::from(writes.io_bytes) / f64::from(PAGE)).min(1.0);
    let mut rate = writes.iops;
    if let Some(interval) = &mut rate.interval {
        interval.low *= smaller;
    }
    rate
}

fn threads(
    ground: &Ground,
    product: Product,
    setting: &'static str,
    depth: Option<f64>,
    figure: Option<AtLoad>,
) -> Advice {
    let blank = ground.blank(product, setting, source(product, setting));
    let Some(depth) = depth else {
        let (missing, options) = if setting.contains("_write_") {
            ("no writes were measured", "--as mysql --write")
        } else {
            ("no knee was found", "--as mysql")
        };
        return blank.not_measured(missing, ground.command(options));
    };
    let enough = (depth / REQUESTS_A_THREAD).ceil().max(1.0);
    let what = if setting.contains("_write_") {
        "the depth of the maximum write rate"
    } else {
        "the depth at the knee"
    };
    let how = if product == Product::Mariadb {
        "since 10.5 it is not a number of threads: the maximum number of I/Os in flight is 256 \
         times the value"
    } else {
        "with native AIO each thread serves up to 256 requests, so more than a few have no effect"
    };
    let write = |threads: f64| whole(threads.min(THREADS_MAX));
    let advice = Advice {
        derivation: format!(
            "{what}, {depth}, over {REQUESTS_A_THREAD}, rounded up: {enough}; {how}"
        ),
        misleads: "query threads read their own pages; these serve read-ahead, flushing and \
                   merging. Pending requests near the limit in SHOW ENGINE INNODB STATUS show \
                   that it is too low"
            .into(),
        opinions: vec![Opinion {
            value: whole(depth.clamp(THREADS_DEFAULT, THREADS_MAX)),
            why: "with innodb_use_native_aio = OFF, where a thread has one request at a time: the \
                  depth, at most 64"
                .into(),
        }],
        warnings: {
            let open = if setting.contains("_read_") {
                ground.knee_warning()
            } else {
                None
            };
            unsteady_or_unknown(&[figure])
                .into_iter()
                .chain(open)
                .collect()
        },
        ..blank.valued(enough.into(), write)
    };
    let own = advice.default.as_ref();
    let is_enough = |own: Option<f64>| own.is_none_or(|own| enough <= own);
    let value = write(enough);
    let decision = if is_enough(own.and_then(ProductDefault::number)) {
        let is_older_worse = !is_enough(own.and_then(ProductDefault::number_before));
        advice.leave_since(
            "the default is enough for this storage",
            is_older_worse,
            &value,
        )
    } else {
        Decision::set(
            value,
            format!("{what} is {depth}, and each serves 256 requests"),
        )
    };
    advice.decided(decision, false, |value| {
        statement_of(product, setting, value)
    })
}
