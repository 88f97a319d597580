//! What to set in a database, from what a calibration found: each setting with its formula, its range, its source,
//! when it misleads, and the statement that would apply it.
//!
//! Goes in: a calibration and the header of its run. Comes out: advice, a section a product. A figure that was not
//! measured is never made up: the setting says so, and what would measure it. Nothing is applied.

mod innodb;
mod linux;
mod oracle;
mod postgres;
mod scylla;

use crate::analyse::{AtLoad, Calibration, Estimate, Interval, Limits};
use crate::model::{Bytes, Coordinates, Nanos, Severity, Step, Target};
use crate::record::journal::Header;
use serde::Serialize;
use std::path::Path;

/// What is advised about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Product {
    /// `PostgreSQL`.
    Postgres,
    /// `MySQL`.
    Mysql,
    /// `MariaDB`.
    Mariadb,
    /// Oracle Database.
    Oracle,
    /// `ScyllaDB`, and whatever else is built on Seastar.
    Scylla,
    /// The kernel's own model of what I/O costs.
    Linux,
}

impl Product {
    /// All of them, in the order in which they are told.
    pub const ALL: [Product; 6] = [Self::Postgres, Self::Mysql, Self::Mariadb, Self::Oracle, Self::Scylla, Self::Linux];

    /// As its makers write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Postgres => "PostgreSQL",
            Self::Mysql => "MySQL",
            Self::Mariadb => "MariaDB",
            Self::Oracle => "Oracle",
            Self::Scylla => "ScyllaDB (Seastar)",
            Self::Linux => "Linux",
        }
    }

    /// What begins a comment where its statements are written.
    #[must_use]
    pub fn comment(self) -> &'static str {
        match self {
            Self::Postgres | Self::Mysql | Self::Oracle => "--",
            Self::Mariadb | Self::Scylla | Self::Linux => "#",
        }
    }
}

/// Another value that is advised, and its reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Opinion {
    /// As one would write it.
    pub value: String,
    /// Where it comes from, and why it differs.
    pub why: String,
}

/// One setting.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Advice {
    /// Whose setting it is.
    pub database: Product,
    /// Its name.
    pub setting: &'static str,
    /// As one would write it; none if what it is derived from was not measured.
    pub value: Option<String>,
    /// The least and the greatest value that the measurement allows, as one would write them.
    pub range: Option<[String; 2]>,
    /// The value before it is rounded and kept within what the product takes, in the product's unit.
    pub estimate: Option<Estimate>,
    /// The formula with its numbers; of a value that is missing, what is known about it.
    pub derivation: String,
    /// Document and section.
    pub source: &'static str,
    /// When it is known to mislead.
    pub misleads: String,
    /// The statement, or line of a file, that applies it; none if it is a part of a larger one.
    pub statement: Option<String>,
    /// What others say.
    pub opinions: Vec<Opinion>,
    /// What is doubtful about the figures that this one was made of.
    pub warnings: Vec<String>,
    /// Of a value that is missing: the command that would measure it.
    pub measure_by: Option<String>,
}

impl Advice {
    /// Without a value yet.
    fn blank(database: Product, setting: &'static str, source: &'static str) -> Self {
        Self {
            database,
            setting,
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
        }
    }

    /// With this value, told by `write`.
    fn valued(self, estimate: Estimate, write: impl Fn(f64) -> String) -> Self {
        Self {
            value: Some(write(estimate.value)),
            range: estimate.interval.and_then(Limits::both).map(|Interval { low, high }| [write(low), write(high)]),
            estimate: Some(estimate),
            ..self
        }
    }

    /// Without a value: `known` says what is known, `command` what would measure it.
    fn not_measured(self, known: impl Into<String>, command: String) -> Self {
        Self { derivation: known.into(), measure_by: Some(command), ..self }
    }
}

/// All that is advised about one product.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Section {
    /// The product.
    pub database: Product,
    /// Its settings.
    pub settings: Vec<Advice>,
    /// What to run, or to write into a file, line by line, with comments.
    pub apply: Vec<String>,
}

/// What to set in `products`, as far as it was measured.
#[must_use]
pub fn advise(found: &Calibration, header: &Header, products: &[Product]) -> Vec<Section> {
    let ground = Ground { found, header };
    let section = |product: &Product| match product {
        Product::Postgres => postgres::section(&ground),
        Product::Mysql | Product::Mariadb => innodb::section(&ground, *product),
        Product::Oracle => oracle::section(&ground),
        Product::Scylla => scylla::section(&ground),
        Product::Linux => linux::section(&ground),
    };
    products.iter().map(section).collect()
}

/// The names of what is doubtful about a run, each once: in the look before it, in the run as a whole, in a point.
#[must_use]
pub fn warnings_of(found: &Calibration, header: &Header) -> Vec<String> {
    let of_points = found.points.iter().flat_map(|point| &point.findings);
    let all = header.findings.iter().chain(&found.findings).chain(of_points);
    let mut names: Vec<String> = Vec::new();
    for finding in all.filter(|finding| finding.severity != Severity::Note) {
        if !names.contains(&finding.name) {
            names.push(finding.name.clone());
        }
    }
    names
}

/// What advice stands on.
struct Ground<'a> {
    found: &'a Calibration,
    header: &'a Header,
}

impl Ground<'_> {
    /// The command that would measure what this run did not: `options` come after the target. What is there already is
    /// never named for writing; a scratch file beside it is.
    fn command(&self, options: &str) -> String {
        let target = match &self.header.target {
            Target::Scratch { directory, .. } => quoted(directory),
            Target::Paths { members, .. } => {
                let path = members.first().map_or(Path::new(""), |path| path);
                let directory = path.parent().filter(|parent| !parent.starts_with("/dev"));
                directory.map_or_else(|| "DIRECTORY-ON-IT".into(), quoted)
            }
            model => model.to_string(),
        };
        format!("rigel calibrate {target} {options}")
    }

    /// The depth at the knee, and the depths between which it lies: the next lower one that was measured did less.
    fn knee(&self) -> Option<(f64, [f64; 2])> {
        let knee = self.found.curve.knee?;
        let depths = self.found.points.iter().filter(|point| point.step() == Step::Depth);
        let below =
            depths.filter_map(|point| point.coordinates.depth().map(f64::from)).filter(|depth| *depth < knee.load);
        let low = below.fold(0.0, f64::max) + 1.0;
        Some((knee.load, [low, knee.load]))
    }

    /// The warning that there may be a knee beyond the depths that were measured.
    fn knee_warning(&self) -> Option<String> {
        let open = self.found.curve.knee.is_some_and(|knee| !knee.bounded_above);
        open.then(|| "knee-not-reached: throughput still rose at the greatest depth measured".into())
    }

    /// True if a disk below says that it spins; none if there is none, or none that is known.
    fn rotational(&self) -> Option<bool> {
        let mut devices = self.header.facts.members.iter().flat_map(|member| &member.devices).peekable();
        devices.peek()?;
        Some(devices.any(|device| device.rotational))
    }

    /// Seconds for which the greatest rate of random writes was measured.
    fn write_seconds(&self) -> Option<f64> {
        let depth = self.found.writes?.depth;
        let points = &self.found.points;
        points.iter().find(|point| point.coordinates == Coordinates::Write { depth }).map(|point| point.measured_s)
    }

    /// The greatest MB/s of any write that was measured: no write as large as large reads is.
    fn most_written(&self) -> Option<f64> {
        let log = self.found.log_writes.iter().map(|log| log.at.mb_per_s.value);
        let random = self.found.writes.map(|at| at.mb_per_s.value);
        log.chain(random).reduce(f64::max)
    }
}

/// What is doubtful about single figures, in words.
fn unsteady_or_unknown(figures: &[Option<AtLoad>]) -> Vec<String> {
    let known = figures.iter().flatten();
    let unsteady = known
        .clone()
        .filter(|at| at.steady == Some(false))
        .map(|at| format!("unsteady: I/O of {} at depth {} was not steady", size(at.io_bytes), at.depth));
    let unknown = known
        .filter(|at| at.iops.interval.is_none())
        .map(|at| format!("no-interval: I/O of {} at depth {} was measured too briefly", size(at.io_bytes), at.depth));
    let mut warnings: Vec<String> = Vec::new();
    for warning in unsteady.chain(unknown) {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    warnings
}

/// The warning that the product's block is another one than was measured; none if it is this one. `options` measure
/// it.
fn other_block(measured: AtLoad, block: u32, options: &str) -> Option<String> {
    (measured.io_bytes != block).then(|| {
        format!(
            "block-size: I/Os of {} were measured, not of {}, which {options} measures",
            size(measured.io_bytes),
            size(block),
        )
    })
}

/// A path as a shell reads it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@".contains(c);
    match text.as_str() {
        "" => ".".into(),
        text if text.chars().all(plain) => text.into(),
        text => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// A number without an error.
fn exact(value: f64) -> Estimate {
    Estimate { value, interval: Some(Limits { low: value, high: Some(value) }) }
}

/// `a / b`. The interval is that of independent figures by the delta method on logarithms: the distances of the ends
/// add up as squares. None where either has none with both ends, or where one reaches zero.
fn quotient(a: Estimate, b: Estimate) -> Estimate {
    let value = a.value / b.value;
    let ends = |of: Estimate| {
        let interval = of.interval.and_then(Limits::both).filter(|interval| interval.low > 0.0)?;
        Some(((of.value / interval.low).ln(), (interval.high / of.value).ln()))
    };
    let interval = ends(a).zip(ends(b)).map(|((a_down, a_up), (b_down, b_up))| Limits {
        low: value * (-a_down.hypot(b_up)).exp(),
        high: Some(value * a_up.hypot(b_down).exp()),
    });
    Estimate { value, interval }
}

/// A whole number.
fn whole(value: f64) -> String {
    format!("{value:.0}")
}

/// A whole number of three significant digits.
fn three_digits(value: f64) -> String {
    let scale = 10_f64.powf((value.abs().max(1.0).log10().floor() - 2.0).max(0.0));
    format!("{:.0}", (value / scale).round() * scale)
}

/// A time of so many microseconds.
fn time(us: f64) -> String {
    Nanos::from_micros_f64(us).to_string()
}

/// A size.
fn size(bytes: u32) -> Bytes {
    Bytes(bytes.into())
}

#[cfg(test)]
pub(crate) mod tests;
