//! What another tool measured, as its files tell it.
//!
//! Facts only: what the tool does not say is none, and nothing is reckoned from anything else but where several entries
//! of one load are added up. Which of Rigel's own loads a load is like, analysis says.

use super::Histogram;
use crate::model::Moment;
use serde::{Deserialize, Serialize};

/// What one source tells: a file, or the files of one run of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Imported {
    /// The files, as they were named.
    pub sources: Vec<String>,
    /// The tool that wrote them: `fio`, `orion`, `iostat` or `csv`.
    pub tool: String,
    /// Its version, where it says so.
    pub version: Option<String>,
    /// What it says of the host, the target and what was asked for, by name.
    pub told: Vec<(String, String)>,
    /// What the reader of the figures has to know: what was left out, taken for granted, or cannot be known.
    pub notes: Vec<String>,
    /// The figures.
    pub figures: Figures,
}

/// The figures of another tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Figures {
    /// What was reached at each of some loads.
    Loads(Vec<LoadPoint>),
    /// What was counted over time.
    Series(Vec<Series>),
}

/// What was reached at one load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadPoint {
    /// What the tool calls it: the job's name, or the cell.
    pub label: String,
    /// The load.
    pub load: ToldLoad,
    /// Which blocks, in the words of [`Pattern`](crate::model::Pattern) where they mean the same.
    pub pattern: Option<String>,
    /// Percent of the operations that were to be writes.
    pub writes_percent: Option<f64>,
    /// What ran at the same time, by label.
    pub beside: Vec<String>,
    /// When it began.
    pub began: Option<Moment>,
    /// How long it was measured.
    pub seconds: Option<f64>,
    /// What it did, by class and kind.
    pub flows: Vec<Flow>,
}

/// A load, as far as it is told.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToldLoad {
    /// A cell of Orion's matrix.
    Cell {
        /// Outstanding small I/Os.
        small: u32,
        /// Outstanding large I/Os, or sequential streams.
        large: u32,
    },
    /// So many operations outstanding, always: of all processes together.
    Closed {
        /// Outstanding operations.
        depth: u32,
    },
    /// So many operations asked for a second: of all processes together.
    Open {
        /// Operations a second.
        rate: u64,
        /// Most operations outstanding.
        in_flight: u32,
    },
    /// Neither; in words.
    Other(String),
}

/// The operations of one class and kind at one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// `small` or `large`.
    pub class: String,
    /// `read`, `write`, `mixed` or `trim`.
    pub kind: String,
    /// Bytes of one operation.
    pub io_bytes: Option<u32>,
    /// Operations done.
    pub done: Option<u64>,
    /// Operations done a second.
    pub iops: Option<f64>,
    /// Bytes a second.
    pub bytes_per_s: Option<f64>,
    /// Times of operations.
    pub latencies: Vec<ToldLatency>,
}

/// Times of operations, in nanoseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ToldLatency {
    /// From where to where: `total`, `completion` (without the time to submit) or `submission` (that time alone).
    pub of: String,
    /// How many were timed.
    pub count: Option<u64>,
    /// Mean.
    pub mean: Option<f64>,
    /// Least.
    pub min: Option<f64>,
    /// Greatest.
    pub max: Option<f64>,
    /// Standard deviation.
    pub deviation: Option<f64>,
    /// Quantiles: the share of operations that are not slower, and the time.
    pub quantiles: Vec<(f64, f64)>,
    /// All of them, in our buckets; where the tool's are wider, each is counted at its middle.
    pub histogram: Option<Histogram>,
}

/// What was counted over time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What it is, such as `physical_reads_per_second` or `sda r/s`.
    pub name: String,
    /// Unit of the values, such as `/s`; empty where it is not told.
    pub unit: String,
    /// In the order of time.
    pub samples: Vec<Counted>,
}

/// One sample of a series.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Counted {
    /// When it began.
    pub begin: Moment,
    /// How long it took.
    pub seconds: Option<f64>,
    /// Its value, in the unit of the series.
    pub value: Option<f64>,
    /// How many were counted in that time.
    pub count: Option<f64>,
}

impl Flow {
    /// The times told of it from here to there, as in [`ToldLatency::of`].
    #[must_use]
    pub fn latency(&self, of: &str) -> Option<&ToldLatency> {
        self.latencies.iter().find(|latency| latency.of == of)
    }
}

impl ToldLatency {
    /// The `share`-quantile, in nanoseconds: as told, or else from the histogram.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<f64> {
        let told = self.quantiles.iter().find(|(of, _)| (of - share).abs() < 1e-9).map(|(_, value)| *value);
        told.or_else(|| Some(self.histogram.as_ref()?.quantile(share)?.middle()))
    }
}

impl ToldLatency {
    /// The times of several flows that ran together, as far as they follow from those of each: quantiles only where all
    /// have a histogram.
    #[must_use]
    pub fn together(of: &str, all: &[ToldLatency]) -> Self {
        let counts: Option<Vec<f64>> = all.iter().map(|one| one.count.map(|count| count as f64)).collect();
        let total = counts.as_ref().map(|counts| counts.iter().sum::<f64>()).filter(|total| *total > 0.0);
        let weighted = |of: &dyn Fn(&ToldLatency) -> Option<f64>| {
            let parts = all.iter().zip(counts.as_ref()?).map(|(one, count)| Some(of(one)? * count));
            Some(parts.sum::<Option<f64>>()? / total?)
        };
        let mean = weighted(&|one| one.mean);
        let squares = weighted(&|one| Some(one.deviation?.powi(2) + one.mean?.powi(2)));
        let extreme = |of: fn(&ToldLatency) -> Option<f64>, pick: fn(f64, f64) -> f64| {
            all.iter().map(of).collect::<Option<Vec<f64>>>()?.into_iter().reduce(pick)
        };
        let histograms: Option<Vec<&Histogram>> = all.iter().map(|one| one.histogram.as_ref()).collect();
        let sum = histograms.filter(|all| all.iter().all(|one| one.count() < 1 << 50)).map(|all| {
            let mut sum = Histogram::default();
            all.into_iter().for_each(|one| sum.merge(one));
            sum
        });
        ToldLatency {
            of: of.into(),
            count: all.iter().try_fold(0u64, |sum, one| sum.checked_add(one.count?)),
            mean,
            min: extreme(|one| one.min, f64::min),
            max: extreme(|one| one.max, f64::max),
            deviation: squares.zip(mean).map(|(squares, mean)| (squares - mean * mean).max(0.0).sqrt()),
            quantiles: Vec::new(),
            histogram: sum.filter(is_countable),
        }
    }
}

/// True of a histogram that has counts which add up to a number that there is.
#[must_use]
pub fn is_countable(histogram: &Histogram) -> bool {
    let sum = histogram.buckets().try_fold(0u64, |sum, (.., count)| sum.checked_add(count));
    sum.is_some_and(|sum| (1..1 << 62).contains(&sum))
}

impl Counted {
    /// The value: as told, or else how many were counted a second.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        let counted = || Some(self.count? / self.seconds.filter(|seconds| *seconds > 0.0)?);
        self.value.or_else(counted)
    }
}
