//! Oracle: the row of `DBA_RSRC_IO_CALIBRATE` that corresponds to this measurement, and the system
//! statistics of the optimizer.

use super::decision::Decision;
use super::oracle_statistics;
use super::product::Product;
use super::setting::{Advice, Ground, Opinion, size, unsteady_or_unknown, whole};
use crate::{AtLoad, Estimate};
use serde::Deserialize;

const VIEW: &str = "Oracle Database Reference, DBA_RSRC_IO_CALIBRATE";
const DOP: &str = "Oracle VLDB and Partitioning Guide, Automatic Degree of Parallelism; \
                   Reference, DBA_RSRC_IO_CALIBRATE";

/// No manual describes how to write the row, and one figure of it has an effect, with one feature.
const WHY_LEFT: &str =
    "only Auto DOP uses the row (MAX_PMBPS); the way to write it is CALIBRATE_IO";

/// A latency that is none in whole milliseconds: no row has it.
const BELOW_1_MS: &str = "<1";

/// The `MAX_PMBPS` that Auto DOP assumes if nothing was calibrated, since 12.1.
const PMBPS_DEFAULT: &str = "200";

/// All figures of the row, then the system statistics.
pub(super) fn settings(ground: &Ground) -> Vec<Advice> {
    let calibration = ground.found;
    let mut settings = vec![
        figure(
            ground,
            "MAX_IOPS",
            calibration.maximum,
            |at| at.iops,
            |at| {
                format!(
                    "the maximum rate of random reads of {}, at depth {}",
                    size(at.io_bytes),
                    at.depth
                )
            },
        ),
        figure(
            ground,
            "MAX_MBPS",
            calibration.large,
            |at| at.mb_per_s,
            |at| {
                format!(
                    "the maximum throughput of random reads of {}, at depth {}, in 10^6 bytes/s",
                    size(at.io_bytes),
                    at.depth
                )
            },
        ),
        figure(
            ground,
            "MAX_PMBPS",
            calibration.stream,
            |at| at.mb_per_s,
            |at| {
                format!(
                    "one sequential stream of {} reads, one after the other, in 10^6 bytes/s",
                    size(at.io_bytes)
                )
            },
        ),
        figure(
            ground,
            "LATENCY",
            calibration.maximum,
            |at| at.mean_us.scaled(1e-3),
            |at| {
                format!(
                    "mean response time at the rate of MAX_IOPS, {:.3} ms; Oracle has whole \
                     milliseconds, and a row with 0 says nothing",
                    at.mean_us.value / 1e3
                )
            },
        ),
    ];
    for latency in settings.iter_mut().filter(|one| one.setting == "LATENCY") {
        if latency.value.as_deref() == Some("0") {
            latency.value = Some(BELOW_1_MS.into());
            latency.range = None;
        }
    }
    settings.push(disks(ground));
    for setting in &mut settings {
        explain(setting);
        // Whatever was measured, or not.
        setting.decision = Decision::leave(WHY_LEFT);
    }
    settings.extend(oracle_statistics::settings(ground));
    settings
}

/// Both blocks of statements, all comments.
pub(super) fn apply(settings: &[Advice]) -> Vec<String> {
    let mut lines = apply_row(settings);
    lines.extend(oracle_statistics::apply(settings));
    lines
}

fn figure(
    ground: &Ground,
    setting: &'static str,
    at: Option<AtLoad>,
    of: impl Fn(AtLoad) -> Estimate,
    how: impl Fn(AtLoad) -> String,
) -> Advice {
    let blank = ground.blank(
        Product::Oracle,
        setting,
        if setting == "MAX_PMBPS" { DOP } else { VIEW },
    );
    let Some(at) = at else {
        return blank.not_measured(
            "such reads were not measured",
            ground.command("--as oracle"),
        );
    };
    Advice {
        derivation: how(at),
        warnings: unsteady_or_unknown(&[Some(at)]),
        ..blank.valued(of(at), whole)
    }
}

/// `NUM_PHYSICAL_DISKS` is an input to the measurement (`--num-disks`), not a result.
fn disks(ground: &Ground) -> Advice {
    #[derive(Deserialize)]
    struct Asked {
        num_disks: u32,
    }
    let asked: Option<Asked> = ground.header.invocation.asked("calibrate");
    let disks = asked.map_or(1, |asked| asked.num_disks);
    Advice {
        value: Some(disks.to_string()),
        derivation: "the value of --num-disks: not measured, with no effect on the figures".into(),
        ..ground.blank(Product::Oracle, "NUM_PHYSICAL_DISKS", VIEW)
    }
}

fn explain(setting: &mut Advice) {
    match setting.setting {
        "MAX_PMBPS" => {
            setting.misleads = "it is the only figure that Auto DOP uses: time = bytes / \
                                MAX_PMBPS, so a higher figure gives fewer parallel servers. A \
                                process that also processes the data is slower than this stream"
                .into();
            setting.opinions.push(Opinion {
                value: PMBPS_DEFAULT.into(),
                why: "the usual manual setting if the figure of CALIBRATE_IO makes too many or \
                      too few statements parallel; since 12.1 a default is used without a \
                      calibration, so no setting is required"
                    .into(),
            });
        }
        "MAX_MBPS" => {
            setting.misleads = "PARALLEL_DEGREE_LIMIT = IO caps the degree at MAX_MBPS / \
                                MAX_PMBPS; no other use is known"
                .into();
        }
        "NUM_PHYSICAL_DISKS" => setting.misleads = "informational".into(),
        _ => setting.misleads = "shown in DBA_RSRC_IO_CALIBRATE; Auto DOP does not use it".into(),
    }
}

fn apply_row(settings: &[Advice]) -> Vec<String> {
    let value = |name: &str| {
        settings
            .iter()
            .find(|setting| setting.setting == name)?
            .value
            .clone()
    };
    // The name of each in the table below the view.
    let columns = [
        ("MAX_IOPS", "MAX_IOPS"),
        ("MAX_MBPS", "MAX_MBPS"),
        ("MAX_PMBPS", "MAX_PMBPS"),
        ("LATENCY", "LATENCY"),
        ("NUM_PHYSICAL_DISKS", "NUM_DISKS"),
    ];
    let cells = columns.map(|(name, column)| Some((column, value(name)?)));
    let cells: Option<Vec<(&str, String)>> = cells.into_iter().collect();
    let mut lines: Vec<String> = [
        "-- Oracle. Supported: let the database measure itself, as SYSDBA, at a quiet time:",
        "--   DECLARE iops INTEGER; mbps INTEGER; lat INTEGER;",
        "--   BEGIN DBMS_RESOURCE_MANAGER.CALIBRATE_IO(1, 20, iops, mbps, lat); END;",
    ]
    .map(String::from)
    .to_vec();
    let Some(mut cells) = cells else {
        lines.push("-- The row is incomplete: some of it was not measured.".into());
        return lines;
    };
    cells.retain(|(_, value)| value != BELOW_1_MS);
    let (names, values): (Vec<&str>, Vec<String>) = cells.into_iter().unzip();
    let names = format!("--   (START_TIME, END_TIME, {})", names.join(", "));
    // Every line is a comment, so that a block pasted with the others does not write into a table
    // of the dictionary.
    let row = format!(
        "--   VALUES (SYSTIMESTAMP, SYSTIMESTAMP, {});",
        values.join(", ")
    );
    lines.extend(
        [
            "-- The other way writes to the table below the view. No manual describes it; \
             practitioners cite",
            "-- note 1269321.1 of Oracle Support. Ask there first, then remove the dashes on \
             purpose.",
            "-- WHENEVER SQLERROR EXIT ROLLBACK",
            "-- CREATE TABLE rigel_old_io_calibrate AS SELECT * FROM sys.resource_io_calibrate$;",
            "-- DELETE FROM sys.resource_io_calibrate$;",
            "-- INSERT INTO sys.resource_io_calibrate$",
            &names,
            &row,
            "-- COMMIT;",
        ]
        .map(String::from),
    );
    lines
}
