//! The advice on one setting: its types, what it is based on, and what the products' files share.

use super::decision::Decision;
use super::default::ProductDefault;
use super::plan_crossing::PlanTest;
use super::product::Product;
use crate::{Answer, AtLoad, Calibration, Estimate, Interval, Limits};
use rigel_model::record::journal::Header;
use rigel_model::{Bytes, Coordinates, Target, shell_path, shell_word};
use serde::Serialize;
use std::path::Path;

/// The settings that are left by nearly everybody: a screen has them only if they are to be changed.
const ASIDE: [&str; 4] = [
    "commit_delay",
    "full_page_writes",
    "innodb_flush_log_at_trx_commit",
    "innodb_doublewrite",
];

/// The statement that changes a setting of `PostgreSQL`.
pub(super) fn alter_system(setting: &str, value: &str) -> String {
    format!("ALTER SYSTEM SET {setting} = {value};")
}

/// Another recommended value, and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Opinion {
    /// The value, as it is written in a configuration.
    pub value: String,
    /// Where it comes from, and why it differs.
    pub why: String,
}

/// Advice on one setting.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Advice {
    /// The product that the setting belongs to.
    pub database: Product,
    /// Name of the setting.
    pub setting: &'static str,
    /// What to do with it.
    pub decision: Decision,
    /// What the product uses if nobody sets it; `None` if it must be set, or has no value then.
    pub default: Option<ProductDefault>,
    /// The value that follows from the measurement, as it is written in a configuration, whatever
    /// was decided; `None` if the figures it needs were not measured.
    pub value: Option<String>,
    /// The minimum and maximum values that the measurement allows, as they are written in a
    /// configuration.
    pub range: Option<[String; 2]>,
    /// The value before rounding and clamping to what the product accepts, in the product's unit.
    pub estimate: Option<Estimate>,
    /// The formula with its numbers; for a missing value, what is known about it.
    pub derivation: String,
    /// Document and section.
    pub source: &'static str,
    /// The cases in which it is known to mislead.
    pub misleads: String,
    /// The statement or file line that applies the decision, as a comment if it could do harm;
    /// `None` if it is a part of a larger one, or if there is nothing to apply.
    pub statement: Option<String>,
    /// What others recommend.
    pub opinions: Vec<Opinion>,
    /// Warnings about the figures that the value is based on.
    pub warnings: Vec<String>,
    /// For a missing value: the command that measures it.
    pub measure_by: Option<String>,
    /// Whether it matters for the demand; `None` if no demand was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub relevance: Option<Relevance>,
}

impl Advice {
    /// True if it is left as nearly everybody leaves it: a screen does not show it.
    pub fn is_aside(&self) -> bool {
        ASIDE.contains(&self.setting) && matches!(self.decision, Decision::Leave { .. })
    }

    /// The same advice with this value, formatted by `write`.
    pub(super) fn valued(self, estimate: Estimate, write: impl Fn(f64) -> String) -> Self {
        Self {
            value: Some(write(estimate.value)),
            range: estimate
                .interval
                .and_then(Limits::both)
                .map(|Interval { low, high }| [write(low), write(high)]),
            estimate: Some(estimate),
            ..self
        }
    }

    /// The same advice without a value: `known` says what is known, `command` what measures it.
    pub(super) fn not_measured(self, known: impl Into<String>, command: String) -> Self {
        Self {
            derivation: known.into(),
            measure_by: Some(command),
            ..self
        }
    }
}

/// Whether a setting matters for a demand.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Relevance {
    /// Yes, no or undecided.
    pub matters: Answer,
    /// Why, in words.
    pub why: String,
}

/// The advice for one product.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ProductAdvice {
    /// The product.
    pub database: Product,
    /// Its settings.
    pub settings: Vec<Advice>,
    /// What to run, or to write into a file: lines with comments.
    pub apply: Vec<String>,
}

/// What the advice is based on.
pub(super) struct Ground<'a> {
    pub(super) found: &'a Calibration,
    pub(super) header: &'a Header,
    /// Number of sessions that read at the same time; `None` if the user did not say.
    pub(super) sessions: Option<u32>,
    /// What plans on a private `PostgreSQL` showed.
    pub(super) plans: Option<&'a PlanTest>,
}

impl Ground<'_> {
    /// Advice that has no value yet.
    pub(super) fn blank(
        &self,
        database: Product,
        setting: &'static str,
        source: &'static str,
    ) -> Advice {
        Advice {
            database,
            setting,
            decision: Decision::NotMeasured,
            default: ProductDefault::of(database, setting, self.header.host.cpus),
            value: None,
            range: None,
            estimate: None,
            derivation: String::new(),
            source,
            misleads: String::new(),
            statement: None,
            opinions: Vec::new(),
            warnings: Vec::new(),
            measure_by: None,
            relevance: None,
        }
    }

    /// The command that measures what this run did not; `options` follow the target. It never names
    /// existing data as a target for writes, but a scratch file beside it.
    pub(super) fn command(&self, options: &str) -> String {
        let target = match &self.header.target {
            Target::Paths { members, .. } => {
                let path = members.first().map_or(Path::new(""), |path| path);
                let directory = path.parent().filter(|parent| !parent.starts_with("/dev"));
                match directory {
                    Some(here) if here.as_os_str().is_empty() => ".".into(),
                    Some(directory) => shell_path(directory),
                    None => "DIRECTORY-ON-IT".into(),
                }
            }
            other => other
                .argument()
                .unwrap_or_else(|| shell_word(&other.to_string())),
        };
        format!("rigel calibrate {target} {options}")
    }

    /// The command that measures a log of its own: only a directory has one, and a model is none.
    pub(super) fn command_of_log(&self) -> String {
        match &self.header.target {
            Target::Sim(_) => "rigel calibrate DIRECTORY --write".into(),
            _ => self.command("--write"),
        }
    }

    /// The depth at the knee, and the range in which it lies.
    pub(super) fn knee(&self) -> Option<(f64, [f64; 2])> {
        let knee = self.found.curve.knee?;
        let high = knee.range.high.unwrap_or(knee.plateau.to);
        Some((knee.load, [knee.range.low, high]))
    }

    /// True if there may be a knee beyond the measured depths.
    pub(super) fn is_knee_open(&self) -> bool {
        let knee = self.found.curve.knee;
        knee.is_some_and(|knee| !knee.bounded_above)
    }

    /// The warning that there may be a knee beyond the measured depths.
    pub(super) fn knee_warning(&self) -> Option<String> {
        self.is_knee_open()
            .then(|| "knee-not-reached: throughput still rose at the maximum depth measured".into())
    }

    /// True if a disk of the target reports that it spins; `None` if no disk is known.
    pub(super) fn rotational(&self) -> Option<bool> {
        let mut devices = self
            .header
            .facts
            .members
            .iter()
            .flat_map(|member| &member.devices)
            .peekable();
        devices.peek()?;
        Some(devices.any(|device| device.rotational))
    }

    /// Seconds for which the maximum rate of random writes was measured.
    pub(super) fn write_seconds(&self) -> Option<f64> {
        let depth = self.found.writes?.depth;
        let points = &self.found.points;
        points
            .iter()
            .find(|point| point.coordinates == Coordinates::Write { depth })
            .map(|point| point.measured_s)
    }
}

/// Warnings about single figures: not steady, or without an interval.
pub(super) fn unsteady_or_unknown(figures: &[Option<AtLoad>]) -> Vec<String> {
    let measured = figures.iter().flatten();
    let unsteady = measured
        .clone()
        .filter(|at| at.steady == Some(false))
        .map(|at| {
            format!(
                "unsteady: I/O of {} at depth {} was not steady",
                size(at.io_bytes),
                at.depth
            )
        });
    let unknown = measured.filter(|at| at.iops.interval.is_none()).map(|at| {
        format!(
            "no-interval: I/O of {} at depth {} was measured too briefly",
            size(at.io_bytes),
            at.depth
        )
    });
    let mut warnings: Vec<String> = Vec::new();
    for warning in unsteady.chain(unknown) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// The warning that the product's block size is not the measured one; `None` if it is. `options`
/// would measure it.
pub(super) fn other_block(measured: AtLoad, block: u32, options: &str) -> Option<String> {
    (measured.io_bytes != block).then(|| {
        format!(
            "block-size: I/Os of {} were measured, not of {}, which {options} measures",
            size(measured.io_bytes),
            size(block),
        )
    })
}

/// Formats a value as a whole number.
pub(super) fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// Formats a value as a whole number with three significant digits.
pub(super) fn three_digits(value: f64) -> String {
    let scale = 10_f64.powf((value.abs().max(1.0).log10().floor() - 2.0).max(0.0));
    format!("{:.0}", (value / scale).round() * scale)
}

/// Formats a size.
pub(super) fn size(bytes: u32) -> Bytes {
    Bytes(bytes.into())
}
