//! The figures of one report, from its facts and its demand.

use super::captures;
use super::database_figures::DatabaseFigures;
use super::distribution::{P99_WAITS_MIN, distribution, quantile_us};
use super::evidence::{
    COMMIT, DIRECT_READ, LOG_WRITE, MULTI_BLOCK, PAGE_WRITE_BATCH, PARALLEL_READ, SINGLE_BLOCK,
    waited,
};
use super::rates::{
    MIB, TRANSACTIONS, WAITS_MIN, cpu_per_s, db_time_s, rate, redo_write_bytes, seconds,
};
use rigel_model::record::DatabaseReport;
use rigel_model::record::database::{ReportKind, WaitTable};
use rigel_model::{DemandInterval, DemandKind};

/// The figures of a report, whose demand is `interval`.
pub(super) fn figures(report: &DatabaseReport, interval: &DemandInterval) -> DatabaseFigures {
    let who = &report.identity;
    let mib = |name: &str| rate(report, name).map(|bytes| bytes / MIB);
    let seconds = seconds(report);
    let mut figures = DatabaseFigures {
        file: report.file.clone(),
        kind: report.kind.name().into(),
        release: who.release.clone(),
        db: who.db_name.clone(),
        instance: who.instance.clone(),
        begin: report.window.begin,
        seconds: interval.seconds,
        cpus: who.cpus,
        active_sessions: db_time_s(report).zip(seconds).map(|(time, s)| time / s),
        cpu_seconds_per_s: cpu_per_s(report),
        executions_per_s: rate(report, "execute count"),
        transactions_per_s: transactions(report),
        logical_reads_per_s: rate(report, "session logical reads"),
        db_reads_per_s: rate(report, "physical read IO requests"),
        db_read_mib_per_s: mib("physical read bytes"),
        all_reads_per_s: rate(report, "physical read total IO requests"),
        all_read_mib_per_s: mib("physical read total bytes"),
        db_writes_per_s: rate(report, "physical write IO requests"),
        db_write_mib_per_s: mib("physical write bytes"),
        all_writes_per_s: rate(report, "physical write total IO requests"),
        all_write_mib_per_s: mib("physical write total bytes"),
        redo_mib_per_s: mib("redo size"),
        redo_writes_per_s: rate(report, "redo writes"),
        redo_write_bytes: redo_write_bytes(report),
        ..DatabaseFigures::default()
    };
    latencies(report, &mut figures);
    host(report, &mut figures);
    top_event(report, &mut figures);
    if report.kind == ReportKind::Capture {
        captures::figures(report, &mut figures);
    }
    if let Some(stream) = interval.stream(DemandKind::RandomReads) {
        figures.random_reads_per_s = stream.per_s;
    }
    figures
}

fn latencies(report: &DatabaseReport, figures: &mut DatabaseFigures) {
    let mean = |events: &[&str]| {
        let waited = waited(report, events)?;
        waited.mean_us().filter(|_| waited.waits >= WAITS_MIN)
    };
    let waits = |events: &[&str]| waited(report, events).map(|waited| waited.waits);
    let quantile_of = |events: &[&str], quantile: f64, waits_min: f64| {
        let enough = waits(events).is_some_and(|waits| waits >= waits_min);
        let all = distribution(report, events);
        enough.then(|| quantile_us(&all, quantile)).flatten()
    };
    figures.single_block_waits = waits(SINGLE_BLOCK);
    figures.random_read_us = mean(SINGLE_BLOCK);
    figures.random_read_p50_us = quantile_of(SINGLE_BLOCK, 0.5, WAITS_MIN);
    figures.random_read_p99_us = quantile_of(SINGLE_BLOCK, 0.99, P99_WAITS_MIN);
    figures.multiblock_read_us = mean(MULTI_BLOCK);
    figures.direct_read_us = mean(DIRECT_READ);
    figures.parallel_read_us = mean(PARALLEL_READ);
    figures.log_write_us = mean(LOG_WRITE);
    figures.log_write_p99_us = quantile_of(LOG_WRITE, 0.99, P99_WAITS_MIN);
    figures.commits_per_s = waits(COMMIT)
        .zip(seconds(report))
        .map(|(waits, s)| waits / s);
    figures.commit_us = mean(COMMIT);
    figures.commit_p99_us = quantile_of(COMMIT, 0.99, P99_WAITS_MIN);
    figures.page_write_batch_us = mean(PAGE_WRITE_BATCH);
}

fn transactions(report: &DatabaseReport) -> Option<f64> {
    let rollbacks = || rate(report, "user rollbacks").unwrap_or(0.0);
    let commits = rate(report, "user commits").map(|commits| commits + rollbacks());
    commits.or_else(|| rate(report, TRANSACTIONS))
}

fn host(report: &DatabaseReport, figures: &mut DatabaseFigures) {
    let of = |name: &str| {
        let row = report.host_cpu.iter().find(|row| row.name == name)?;
        Some(row.value.value)
    };
    // Of several hosts, the mean weighted by CPUs.
    let of_hosts = |head: &str| {
        let of = |head: &str| -> Vec<f64> {
            let named = |name: &str| {
                name.strip_prefix("OS Statistics By Instance: ")
                    .is_some_and(|of| of.replace(' ', "") == head)
            };
            let rows = report.per_instance.iter().filter(|row| named(&row.name));
            rows.map(|row| row.value.value).collect()
        };
        let (values, cpus) = (of(head), of("#CPUs"));
        let all: f64 = cpus.iter().sum();
        let sum: f64 = values
            .iter()
            .zip(&cpus)
            .map(|(value, cpus)| value * cpus)
            .sum();
        (!values.is_empty() && values.len() <= cpus.len() && all > 0.0).then(|| sum / all)
    };
    figures.host_busy_percent = of("idle")
        .map(|idle| 100.0 - idle)
        .or_else(|| of_hosts("%Busy"));
    figures.io_wait_percent = of("wio").or_else(|| of_hosts("%WIO"));
}

/// The event of foreground sessions, or CPU, with the largest share of DB time.
fn top_event(report: &DatabaseReport, figures: &mut DatabaseFigures) {
    let rows = report.waits.iter().filter(|row| row.of == WaitTable::Top);
    let top = rows
        .filter_map(|row| Some((row, row.percent?.value)))
        .max_by(|one, other| one.1.total_cmp(&other.1));
    if let Some((row, percent)) = top {
        figures.top_event = Some(row.event.clone());
        figures.top_event_percent = Some(percent);
    }
}
