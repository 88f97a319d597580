//! Distributions of response times: by percentile with a stretched tail, and as a histogram, both
//! from the recorded buckets.

use super::document::{Axis, Block, Lines, Plot, Section, Series, Shape, Unit};
use super::parts;
use rigel_model::record::{Histogram, PointRecord};

/// Approximate maximum number of bins of a histogram.
const BINS: f64 = 80.0;
/// Steps of a percentile plot per nine.
const STEPS_A_NINE: u32 = 20;

/// A point to be drawn, with its name.
pub type Chosen<'a> = (String, &'a PointRecord);

/// The two plots of the first class of these points; `None` if nothing was recorded.
pub fn section(chosen: &[Chosen<'_>]) -> Option<Section> {
    let histograms: Vec<(&str, Histogram)> = chosen
        .iter()
        .filter_map(|(name, record)| {
            Some((
                name.as_str(),
                record.streams.first()?.total().response.histogram,
            ))
        })
        .filter(|(_, histogram)| histogram.count() > 0)
        .collect();
    let outstanding = chosen.iter().filter_map(|(name, record)| {
        let left = record.streams.first()?.censored.as_ref()?;
        let count = left.histogram.count();
        (count > 0).then(|| format!("{count} of {name} had not ended"))
    });
    let outstanding: Vec<String> = outstanding.collect();
    let mut section = of_histograms(&histograms)?;
    if !outstanding.is_empty() {
        let which = outstanding.join(", ");
        section.lead = format!("{} Not in these: {which}.", section.lead);
    }
    Some(section)
}

/// The two plots of these named histograms.
pub fn of_histograms(histograms: &[(&str, Histogram)]) -> Option<Section> {
    if histograms.is_empty() {
        return None;
    }
    let blocks = parts::beside([Some(percentiles(histograms)), Some(bins(histograms))]);
    let lead = "Every operation that was due while measuring and has ended is in these; each is of \
                the point named. Where the left chart turns up, the tail begins.";
    Some(parts::section(
        "distribution",
        "Distribution of response times",
        lead,
        blocks.into_iter().collect::<Vec<Block>>(),
    ))
}

fn quantile_us(histogram: &Histogram, quantile: f64) -> Option<f64> {
    histogram.quantile(quantile).map(|band| band.middle() / 1e3)
}

fn percentiles(histograms: &[(&str, Histogram)]) -> super::document::Chart {
    let series = histograms.iter().map(|(name, histogram)| {
        // The last step is one operation among all that were counted.
        let most = (histogram.count() as f64).log10();
        // The steps begin above the minimum, which depends on chance alone.
        let steps = (1..)
            .map(|step| f64::from(step) / f64::from(STEPS_A_NINE))
            .take_while(|nines| *nines <= most);
        let x: Vec<f64> = steps.collect();
        let y = x
            .iter()
            .map(|nines| quantile_us(histogram, 1.0 - 10f64.powf(-nines)))
            .collect();
        Series {
            name: (*name).into(),
            x,
            y,
            ..Series::default()
        }
    });
    let described: Vec<String> = histograms
        .iter()
        .map(|(name, histogram)| {
            let time = |quantile| parts::known(quantile_us(histogram, quantile), parts::time);
            format!(
                "{name}: median {}, p99 {}, p99.9 {}",
                time(0.5),
                time(0.99),
                time(0.999)
            )
        })
        .collect();
    let lines = Lines {
        x: Axis {
            label: "share of operations that are not slower".into(),
            unit: Unit::Nines,
            ..Axis::default()
        },
        y: Axis {
            label: "response time".into(),
            unit: Unit::Microseconds,
            log: true,
            range: None,
        },
        series: series.collect(),
        ..Lines::default()
    };
    parts::chart(
        "percentiles",
        "By percentile",
        described.join("; ") + ".",
        Plot::Lines(lines),
    )
}

fn bins(histograms: &[(&str, Histogram)]) -> super::document::Chart {
    let buckets = || {
        histograms
            .iter()
            .flat_map(|(_, histogram)| histogram.buckets())
    };
    let middle = |(low, high, _): (u64, u64, u64)| f64::midpoint(low as f64, high as f64).max(1.0);
    let least = buckets().map(middle).fold(f64::INFINITY, f64::min).ln();
    let most = buckets().map(middle).fold(1.0, f64::max).ln();
    // Bins are not narrower than a few recorded buckets.
    let width = ((most - least) / BINS).max(0.02);
    let bin_of = |bucket| ((middle(bucket).ln() - least) / width).floor();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a few bins; float casts saturate"
    )]
    let whole = |bins: f64| bins as usize;
    let number = whole(((most - least) / width).floor()) + 1;
    let shape = if histograms.len() == 1 {
        Shape::Bars
    } else {
        Shape::Steps
    };
    let series = histograms.iter().map(|(name, histogram)| {
        let mut counts = vec![0_u64; number];
        for bucket in histogram.buckets() {
            counts[whole(bin_of(bucket)).min(number - 1)] += bucket.2;
        }
        let x = (0..number)
            .map(|bin| (least + width * (bin as f64 + 0.5)).exp() / 1e3)
            .collect();
        let y = counts
            .iter()
            .map(|count| (*count > 0).then_some(*count as f64))
            .collect();
        Series {
            name: (*name).into(),
            shape,
            x,
            y,
            ..Series::default()
        }
    });
    let described: Vec<String> = histograms
        .iter()
        .map(|(name, histogram)| {
            format!(
                "{name}: {} operations",
                parts::count(histogram.count() as f64)
            )
        })
        .collect();
    let lines = Lines {
        x: Axis {
            label: "response time".into(),
            unit: Unit::Microseconds,
            log: true,
            range: None,
        },
        y: Axis {
            label: "operations".into(),
            unit: Unit::Number,
            log: true,
            range: None,
        },
        series: series.collect(),
        ..Lines::default()
    };
    parts::chart(
        "histogram",
        "Histogram",
        described.join("; ") + ".",
        Plot::Lines(lines),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Chart;

    fn lines(chart: Chart) -> Lines {
        let Plot::Lines(lines) = chart.plot else {
            panic!("{chart:?}")
        };
        lines
    }

    #[test]
    fn a_histogram_loses_nothing_and_percentiles_end_where_knowledge_does() {
        let mut histogram = Histogram::default();
        (0..1000_u64).for_each(|at| histogram.record(100_000 + 977 * at));
        histogram.record(80_000_000);
        let of = [("depth 1", histogram)];
        let drawn = lines(bins(&of));
        let sum: f64 = drawn.series[0].y.iter().flatten().sum();
        assert!((sum - 1001.0).abs() < 0.5, "{sum}");
        assert!(
            drawn.series[0].x.len() <= 82
                && drawn.series[0].x.windows(2).all(|two| two[0] < two[1])
        );
        let drawn = lines(percentiles(&of));
        let last = *drawn.series[0].x.last().unwrap();
        assert!((2.9..=3.01).contains(&last), "{last}");
        let median = drawn.series[0]
            .x
            .iter()
            .position(|nines| (nines - 0.3).abs() < 1e-9)
            .unwrap();
        assert!(
            (drawn.series[0].y[median].unwrap() / 588.0 - 1.0).abs() < 0.02,
            "{:?}",
            drawn.series[0].y[median]
        );
    }
}
