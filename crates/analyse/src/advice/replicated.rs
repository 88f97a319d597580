//! Databases that agree with others on every commit: etcd, whose followers wait for the leader's disk, and
//! `CockroachDB`, which divides a store's bandwidth.

use super::decision::Decision;
use super::product::Product;
use super::setting::{Advice, Ground, size, three_digits, unsteady_or_unknown};
use crate::AtLoad;
use crate::figures::quantity::time;
use rigel_model::{LogKind, MIB};

/// Milliseconds between two heartbeats of a leader, by default.
const HEARTBEAT: f64 = 100.0;

/// Heartbeats that fit into an election timeout at least.
const ELECTION: f64 = 10.0;

/// The longest response of a commit at which etcd's authors call a disk fast enough, in milliseconds.
const FAST: f64 = 10.0;

/// All settings of etcd, whose segments have their size, and were never written.
pub(super) fn of_etcd(ground: &Ground) -> Vec<Advice> {
    let commit = ground.found.commits(LogKind::SIZED, 1);
    [("heartbeat-interval", 1.0), ("election-timeout", ELECTION)]
        .map(|(setting, times)| timeout(ground, setting, times, commit))
        .to_vec()
}

fn timeout(ground: &Ground, setting: &'static str, times: f64, at: Option<AtLoad>) -> Advice {
    const SOURCE: &str = "etcd, tuning.md (time parameters), hardware.md (disks)";
    let blank = ground.blank(Product::Etcd, setting, SOURCE);
    let Some(at) = at else {
        let missing = "commits to a log that has its size were not measured";
        return blank.not_measured(missing, ground.command_of_log());
    };
    let p99 = at.p99_us.scaled(1e-3);
    // A leader cannot send a heartbeat while its log is synced.
    let needed = p99.scaled(2.0 * times);
    let default = HEARTBEAT * times;
    let whole = |ms: f64| format!("{:.0}", (ms / 10.0).ceil() * 10.0);
    let decision = if needed.greatest() <= default {
        let fast = if p99.greatest() < FAST {
            ""
        } else {
            "; etcd's authors want it below 10 ms"
        };
        Decision::leave(format!(
            "a commit takes {} at p99, and the default waits longer{fast}",
            time(at.p99_us.value)
        ))
    } else {
        Decision::set(
            whole(needed.value),
            format!(
                "a commit takes {} at p99: a leader that waits for it would be voted out",
                time(at.p99_us.value)
            ),
        )
    };
    let advice = Advice {
        derivation: format!(
            "twice the p99 of a commit of {} to a log that has its size, by one writer{}, in ms",
            size(at.io_bytes),
            if times > 1.0 { ", times ten" } else { "" }
        ),
        misleads: "the network's round trip counts as well: take the larger of both, the same on all members".into(),
        warnings: unsteady_or_unknown(&[Some(at)]),
        ..blank.valued(needed, whole)
    };
    advice.decided(decision, false, |value| format!("{setting}: {value}"))
}

/// The lines of etcd's file.
pub(super) fn apply_etcd(settings: &[Advice]) -> Vec<String> {
    let lines = settings.iter().filter_map(|one| one.statement.clone());
    let mut apply = vec!["# etcd.conf.yml, on every member".to_string()];
    apply.extend(lines);
    if apply.len() == 1 {
        apply.push("# The defaults are right for this storage.".into());
    }
    apply
}

/// The bandwidth of a store of `CockroachDB`.
pub(super) fn of_cockroach(ground: &Ground) -> Vec<Advice> {
    const SETTING: &str = "provisioned_bandwidth";
    const SOURCE: &str = "CockroachDB, cluster settings; admission control";
    let blank = ground.blank(Product::Cockroach, SETTING, SOURCE);
    let (Some(reads), Some(writes)) = (ground.found.large, ground.found.large_writes.lasting)
    else {
        let missing = "large writes that last were not measured";
        return vec![blank.not_measured(missing, ground.command("--write"))];
    };
    let lower = if writes.mb_per_s.value < reads.mb_per_s.value {
        writes
    } else {
        reads
    };
    let value = |mb: f64| format!("{}MiB", three_digits(mb * 1e6 / MIB as f64));
    let why = "without it, background work is not held back before the disk is full";
    let advice = Advice {
        derivation: format!(
            "the lower of the throughputs of large reads and of large writes after their first minute, {} at depth {}",
            size(lower.io_bytes),
            lower.depth
        ),
        misleads: "it is of reads and writes together, and the same for all stores: nodes with other disks need \
                   provisioned-rate in their --store"
            .into(),
        warnings: unsteady_or_unknown(&[Some(lower)]),
        ..blank.valued(lower.mb_per_s, value)
    };
    vec![advice.set_as_measured(ground, why, |value| {
        format!("SET CLUSTER SETTING kvadmission.store.{SETTING} = '{value}';")
    })]
}

/// The statement of `CockroachDB`.
pub(super) fn apply_cockroach(settings: &[Advice]) -> Vec<String> {
    let statement = |one: &Advice| match &one.statement {
        Some(statement) => statement.clone(),
        None => format!("-- {}: missing", one.setting),
    };
    settings.iter().map(statement).collect()
}
