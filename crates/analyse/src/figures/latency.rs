//! The figures of response times: one table, from which every output takes them.
//!
//! A row has the figure's key in files, its label for people, how it is computed, and the narrowest
//! output that shows it. Input: recorded times, or what another tool reports. Output: one value for
//! each row. A new row is in JSON, csv and metrics at once, and in tables, pages, comparisons and
//! the live view as far as it says so.

use rigel_model::record::{Band, Latencies};
use serde::Serialize;

/// How a figure is computed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistic {
    /// The mean.
    Mean,
    /// The standard deviation.
    Deviation,
    /// The minimum.
    Min,
    /// The quantile of this fraction.
    Quantile(f64),
    /// The maximum.
    Max,
}

/// Outputs, the widest first: what one of them shows, all before it show, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShownIn {
    /// JSON, csv, metrics: all figures.
    Files,
    /// Tables of a page, and of `--verbose`.
    Pages,
    /// Tables of the default text, and comparisons at a load.
    Tables,
    /// Charts over time, and comparisons of soaks.
    Charts,
    /// Lines of progress, the live view's list of points, and charts over throughput.
    Lines,
}

/// Declares the figures: the enum that names them, and the structure that has a value for each.
macro_rules! latency_figures {
    ($($(#[$about:meta])* $figure:ident: $key:ident, $label:literal, $statistic:expr, $narrowest:ident;)+) => {
        /// A figure of response times.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum LatencyFigure {
            $($(#[$about])* $figure,)+
        }

        impl LatencyFigure {
            /// All of them, in the order in which outputs show them.
            pub const ALL: &'static [Self] = &[$(Self::$figure),+];

            /// Its name in files, with its unit: `p99_us`.
            pub fn key(self) -> &'static str {
                match self {
                    $(Self::$figure => stringify!($key),)+
                }
            }

            /// Its name for people: `p99`.
            pub fn label(self) -> &'static str {
                match self {
                    $(Self::$figure => $label,)+
                }
            }

            /// How it is computed.
            pub fn statistic(self) -> Statistic {
                match self {
                    $(Self::$figure => $statistic,)+
                }
            }

            fn narrowest(self) -> ShownIn {
                match self {
                    $(Self::$figure => ShownIn::$narrowest,)+
                }
            }
        }

        /// Response times in microseconds. A true quantile of recorded times lies within 0.4 % of
        /// the figure: half the width of a bucket. `T` is `Option<f64>` where single figures may be
        /// unknown.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
        pub struct LatencySummary<T = f64> {
            $($(#[$about])* pub $key: T,)+
        }

        impl<T: Copy> LatencySummary<T> {
            /// The summary with the value that `figure` gives for each.
            pub fn from_figures(figure: impl Fn(LatencyFigure) -> T) -> Self {
                Self {
                    $($key: figure(LatencyFigure::$figure),)+
                }
            }

            /// The value of a figure.
            pub fn get(&self, figure: LatencyFigure) -> T {
                match figure {
                    $(LatencyFigure::$figure => self.$key,)+
                }
            }
        }
    };
}

latency_figures! {
    /// Mean.
    Mean: mean_us, "mean", Statistic::Mean, Pages;
    /// Standard deviation.
    Deviation: deviation_us, "deviation", Statistic::Deviation, Files;
    /// Minimum.
    Min: min_us, "min", Statistic::Min, Files;
    /// Median.
    P50: p50_us, "p50", Statistic::Quantile(0.5), Lines;
    /// 90th percentile.
    P90: p90_us, "p90", Statistic::Quantile(0.9), Files;
    /// 99th percentile.
    P99: p99_us, "p99", Statistic::Quantile(0.99), Lines;
    /// 99.9th percentile.
    P999: p999_us, "p99.9", Statistic::Quantile(0.999), Tables;
    /// Maximum.
    Max: max_us, "max", Statistic::Max, Charts;
}

impl LatencyFigure {
    /// The figures that an output shows, in order.
    pub fn shown_in(output: ShownIn) -> impl DoubleEndedIterator<Item = Self> {
        let all = Self::ALL.iter().copied();
        all.filter(move |figure| figure.is_shown_in(output))
    }

    /// The figure that is this quantile.
    pub fn of_quantile(quantile: f64) -> Option<Self> {
        let is_it = |figure: &Self| match figure.statistic() {
            Statistic::Quantile(own) => (own - quantile).abs() < 1e-9,
            _ => false,
        };
        Self::ALL.iter().copied().find(is_it)
    }

    /// True if an output shows it.
    pub fn is_shown_in(self, output: ShownIn) -> bool {
        self.narrowest() >= output
    }
}

impl LatencySummary {
    /// The figures of recorded times; `None` if there are none.
    pub fn of(latencies: &Latencies) -> Option<Self> {
        let Latencies {
            histogram,
            sum,
            sum_squares,
            min,
            max,
        } = latencies;
        let (min, max) = (*min as f64, *max as f64);
        let count = histogram.count();
        if count == 0 {
            return None;
        }
        let mean = *sum as f64 / count as f64;
        let nanoseconds = |figure: LatencyFigure| match figure.statistic() {
            Statistic::Mean => mean,
            Statistic::Deviation => (sum_squares / count as f64 - mean * mean).max(0.0).sqrt(),
            Statistic::Min => min,
            // The extremes are exact, and no quantile lies outside them. (`clamp` would panic on a
            // damaged record.)
            Statistic::Quantile(quantile) => {
                let band = histogram.quantile(quantile);
                band.map_or(0.0, Band::middle).max(min).min(max)
            }
            Statistic::Max => max,
        };
        Some(Self::from_figures(|figure| nanoseconds(figure) / 1e3))
    }
}

impl LatencySummary<Option<f64>> {
    /// The figures, if all of them are known.
    pub fn all(self) -> Option<LatencySummary> {
        let is_known = |figure: &LatencyFigure| self.get(*figure).is_some();
        LatencyFigure::ALL
            .iter()
            .all(is_known)
            .then(|| LatencySummary::from_figures(|figure| self.get(figure).unwrap_or_default()))
    }
}

impl From<Option<LatencySummary>> for LatencySummary<Option<f64>> {
    fn from(known: Option<LatencySummary>) -> Self {
        Self::from_figures(|figure| known.map(|known| known.get(figure)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::Nanos;

    #[test]
    fn every_figure_is_in_files_under_its_key_and_wider_outputs_show_more() {
        let mut latencies = Latencies::default();
        (1..=1000).for_each(|us| latencies.record(Nanos::from_micros(us)));
        let summary = LatencySummary::of(&latencies).unwrap();
        let json = serde_json::to_value(summary).unwrap();
        assert_eq!(json.as_object().unwrap().len(), LatencyFigure::ALL.len());
        for figure in LatencyFigure::ALL {
            let value = summary.get(*figure);
            assert_eq!(json[figure.key()].as_f64(), Some(value), "{figure:?}");
            if let Statistic::Quantile(quantile) = figure.statistic() {
                assert!(
                    (value / (quantile * 1e3) - 1.0).abs() < 0.01,
                    "{figure:?}: {value}"
                );
            }
        }
        let shown = |output| LatencyFigure::shown_in(output).map(LatencyFigure::label);
        assert!(shown(ShownIn::Files).eq(LatencyFigure::ALL.iter().map(|one| one.label())));
        assert_eq!(
            shown(ShownIn::Tables).collect::<Vec<_>>(),
            ["p50", "p99", "p99.9", "max"]
        );
        assert_eq!(shown(ShownIn::Lines).collect::<Vec<_>>(), ["p50", "p99"]);
        assert_eq!(LatencySummary::of(&Latencies::default()), None);
    }

    #[test]
    fn a_summary_with_one_unknown_figure_is_not_whole() {
        let known = LatencySummary::from_figures(|figure| figure.label().len() as f64);
        let reported: LatencySummary<Option<f64>> = Some(known).into();
        assert_eq!(reported.all(), Some(known));
        let max_us = None;
        assert_eq!(LatencySummary { max_us, ..reported }.all(), None);
        assert_eq!(LatencySummary::from(None), LatencySummary::default());
    }
}
