//! Commits and torn pages: the settings by which databases make a commit durable, and keep a page whole.
//!
//! Input: commits per second by method, by state of the log's file and by number of writers; and the largest write
//! that the storage says it stores as a whole. Most of these settings are dangerous to change and right as they are:
//! those are advised to be left, with what they cost here.

use super::decision::Decision;
use super::product::Product;
use super::setting::{Advice, Ground, Opinion, alter_system, unsteady_or_unknown, whole};
use crate::Limits;
use crate::figures::quantity::{count, time};
use rigel_model::{Bytes, KIB, LogKind, SyncMethod};

const LOG: &str = "PostgreSQL documentation, 19.5 Write Ahead Log";
const INNODB: &str =
    "MySQL 8.4 Reference Manual, 17.14 InnoDB Startup Options and System Variables";
const MARIADB: &str = "MariaDB documentation, InnoDB Flush Method";

/// Sessions that commit together, where their commits were measured.
const TOGETHER: u32 = 16;

/// Those of `PostgreSQL`.
pub(super) fn of_postgres(ground: &Ground) -> Vec<Advice> {
    let torn = torn_pages(
        ground,
        Product::Postgres,
        ("full_page_writes", 8 * KIB),
        LOG,
    );
    [
        wal_sync_method(ground),
        wal_init_zero(ground),
        commit_delay(ground),
        torn,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Those of `MySQL` and `MariaDB`.
pub(super) fn of_innodb(ground: &Ground, product: Product) -> Vec<Advice> {
    let torn = torn_pages(ground, product, ("innodb_doublewrite", 16 * KIB), INNODB);
    let through = if product == Product::Mariadb {
        write_through(ground)
    } else {
        None
    };
    [through, flush_log(ground, product), torn]
        .into_iter()
        .flatten()
        .collect()
}

/// Advice on the setting of `blank` to use the method of these with the most commits to a file that is reused, by the
/// name that `value` gives it; `None` unless it certainly has more than the usual one.
fn faster(
    ground: &Ground,
    blank: Advice,
    methods: &[SyncMethod],
    value: impl Fn(SyncMethod) -> String,
) -> Option<(Advice, Decision)> {
    let commits = |method| ground.found.commits(LogKind::REUSED.by(method), 1);
    let usual = commits(SyncMethod::Fdatasync)?;
    let others = methods
        .iter()
        .filter_map(|method| Some((*method, commits(*method)?)));
    let (method, best) =
        others.max_by(|(_, one), (_, other)| one.iops.value.total_cmp(&other.iops.value))?;
    let gain = best.iops.over(usual.iops);
    gain.interval.filter(|known| known.low > 1.0)?;
    let times = format!("{:.2} times as many commits as fdatasync", gain.value);
    let value = value(method);
    let advice = Advice {
        value: Some(value.clone()),
        estimate: Some(gain),
        derivation: format!(
            "{} commits per second by fdatasync, {} by {}, one session, to a file that is reused",
            count(usual.iops.value),
            count(best.iops.value),
            method.name()
        ),
        misleads: "several sessions share one fdatasync; without it one of them writes for all"
            .into(),
        warnings: unsteady_or_unknown(&[Some(usual), Some(best)]),
        ..blank
    };
    Some((advice, Decision::set(value, times)))
}

/// Another method, if it certainly commits more often than the default; `None` otherwise.
fn wal_sync_method(ground: &Ground) -> Option<Advice> {
    const SETTING: &str = "wal_sync_method";
    let blank = ground.blank(Product::Postgres, SETTING, LOG);
    let methods = [SyncMethod::OpenDatasync, SyncMethod::Fsync];
    let (advice, decision) = faster(ground, blank, &methods, |method| method.name().into())?;
    Some(advice.decided(decision, false, |value| alter_system(SETTING, value)))
}

/// Writes of `MariaDB`'s log that are durable by themselves, if they certainly commit more often; `None` otherwise.
fn write_through(ground: &Ground) -> Option<Advice> {
    const SETTING: &str = "innodb_log_file_write_through";
    let blank = ground.blank(Product::Mariadb, SETTING, MARIADB);
    let methods = [SyncMethod::Direct, SyncMethod::OpenDatasync];
    let (advice, decision) = faster(ground, blank, &methods, |_| "ON".into())?;
    Some(advice.decided(decision, false, |value| format!("{SETTING} = {value}")))
}

/// Not to fill new files of the log before they are used, if commits to a file that was written before are
/// certainly slower than to one that was not; `None` otherwise: the default is as good.
fn wal_init_zero(ground: &Ground) -> Option<Advice> {
    let written = ground.found.commits(LogKind::REUSED, 1)?;
    let unwritten = ground.found.commits(LogKind::SIZED, 1)?;
    let gain = written.iops.over(unwritten.iops);
    gain.interval
        .and_then(Limits::both)
        .filter(|known| known.high < 1.0)?;
    let advice = Advice {
        value: Some("off".into()),
        estimate: Some(gain),
        derivation: format!(
            "{} commits per second to a file that was written before, {} to one that was not: {:.2} \
             times as many",
            count(written.iops.value),
            count(unwritten.iops.value),
            gain.value
        ),
        misleads:
            "it is about new files; with wal_recycle, most are old ones. Filesystems that copy \
                   on write need neither"
                .into(),
        warnings: unsteady_or_unknown(&[Some(written), Some(unwritten)]),
        ..ground.blank(Product::Postgres, "wal_init_zero", LOG)
    };
    let decision = Decision::set(
        "off",
        "commits to a file that was filled are certainly slower here",
    );
    Some(advice.decided(decision, false, |value| {
        alter_system("wal_init_zero", value)
    }))
}

/// What a wait for more sessions could gain: commits of one session, and of many that wait for none.
fn commit_delay(ground: &Ground) -> Option<Advice> {
    let alone = ground.found.commits(LogKind::REUSED, 1)?;
    let together = ground.found.commits(LogKind::REUSED, TOGETHER)?;
    let half = alone.mean_us.scaled(0.5);
    let advice = Advice {
        derivation: format!(
            "{} commits per second of one session, {} of {TOGETHER} that share a sync without a delay",
            count(alone.iops.value),
            count(together.iops.value)
        ),
        misleads: "sessions that do little but commit form groups by themselves; those of long transactions may not"
            .into(),
        opinions: vec![Opinion {
            value: whole(half.value),
            why: "PostgreSQL's manual: half of a commit's time, in microseconds, if groups stay small; commit_siblings \
                  = 5 leaves it out while fewer than 6 transactions are open"
                .into(),
        }],
        warnings: unsteady_or_unknown(&[Some(alone), Some(together)]),
        ..ground.blank(Product::Postgres, "commit_delay", LOG)
    };
    let gain = together.iops.value / alone.iops.value;
    let why = format!("{TOGETHER} sessions commit {gain:.1} times as often as one without it");
    Some(advice.decided(Decision::leave(why), false, |value| {
        alter_system("commit_delay", value)
    }))
}

/// What it costs that each commit waits for the log.
fn flush_log(ground: &Ground, product: Product) -> Option<Advice> {
    const SETTING: &str = "innodb_flush_log_at_trx_commit";
    // MariaDB syncs by fdatasync, and so does MySQL with innodb_use_fdatasync.
    let fsync = ground
        .found
        .commits(LogKind::REUSED.by(SyncMethod::Fsync), 1);
    let usual = ground.found.commits(LogKind::REUSED, 1);
    let at = if product == Product::Mariadb {
        usual
    } else {
        fsync.or(usual)
    }?;
    let wait = time(at.mean_us.value);
    let advice = Advice {
        derivation: format!(
            "a commit of {} waits {wait} for the log, {} at p99",
            Bytes(at.io_bytes.into()),
            time(at.p99_us.value)
        ),
        misleads: "sessions that commit together share the wait; with a binary log, sync_binlog = 1 waits once more"
            .into(),
        opinions: vec![Opinion {
            value: "2".into(),
            why: format!("a commit then waits for no storage, {wait} less; a crash of the host loses up to a second of them"),
        }],
        warnings: unsteady_or_unknown(&[Some(at)]),
        ..ground.blank(product, SETTING, INNODB)
    };
    let why = format!("it costs a commit {wait} here, and 2 loses commits when the host crashes");
    Some(advice.decided(Decision::leave(why), false, |value| {
        format!("{SETTING} = {value}")
    }))
}

/// Protection against pages of which a power failure leaves a part.
fn torn_pages(
    ground: &Ground,
    product: Product,
    (setting, page): (&'static str, u64),
    source: &'static str,
) -> Option<Advice> {
    let members = &ground.header.facts.members;
    let first = members.first()?;
    let most = members.iter().map(|one| one.atomic_write_max).min();
    let page = Bytes(page);
    let known = most.flatten().filter(|most| *most >= page);
    let name = product.name();
    let (derivation, why) = match known {
        Some(most) => (
            format!(
                "'{}' stores writes of up to {most} as a whole, if they ask for it",
                first.path.display()
            ),
            format!("{name} does not ask that a page of {page} is written as a whole"),
        ),
        None => (
            format!(
                "'{}' names no write of {page} that it stores as a whole",
                first.path.display()
            ),
            format!("this storage does not promise to store a page of {page} as a whole"),
        ),
    };
    let advice = Advice {
        derivation: format!("{derivation} (statx, atomic_write_unit_max)"),
        misleads:
            "what a device really keeps of a write when the power fails is only known by trying"
                .into(),
        ..ground.blank(product, setting, source)
    };
    Some(advice.decided(Decision::leave(why), true, |value| {
        format!("{setting} = {value}")
    }))
}
