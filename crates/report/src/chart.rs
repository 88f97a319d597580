//! A chart in plain characters: latency on a logarithmic axis over throughput on a linear one.
//!
//! Input: a plot. Output: lines for a terminal with 80 columns, without colour.

use super::document::{Lines, Mark, Series, Shape, Unit};
use super::unit;
use std::fmt::Write;

/// Width and height of the area within the axes.
const WIDTH: usize = 68;
const HEIGHT: usize = 17;

/// Width of the labels left of the vertical axis.
const MARGIN: usize = 7;

/// The character where two series overlap.
const BOTH: char = '*';
/// Characters of the series, in their order.
const MARKS: [char; 4] = ['o', 'x', '+', '#'];

/// A chart with a legend: a time over a rate. Empty if there is nothing to draw.
pub(super) fn draw(lines: &Lines) -> String {
    let marked = || {
        let mut next = 0;
        lines.series.iter().map(move |series| {
            if !series.faint {
                next += 1;
            }
            (MARKS[(next.max(1) - 1) % MARKS.len()], series)
        })
    };
    let of = |series: &Series| -> Vec<(f64, f64)> {
        series
            .x
            .iter()
            .zip(&series.y)
            .filter_map(|(x, y)| Some((*x, (*y)?)))
            .filter(|(x, y)| *x > 0.0 && *y > 0.0)
            .collect()
    };
    let points: Vec<(f64, f64)> = lines.series.iter().flat_map(of).collect();
    if points.is_empty() {
        return String::new();
    }
    let upright = || lines.marks.iter().filter(|mark| mark.upright);
    let across = Across::of(
        points
            .iter()
            .map(|(x, _)| *x)
            .chain(upright().flat_map(|mark| std::iter::once(mark.at).chain(mark.to))),
    );
    let up = Up::of(points.iter().map(|(_, y)| *y));
    let mut grid = vec![vec![' '; WIDTH]; HEIGHT];
    for series in lines
        .series
        .iter()
        .filter(|series| !series.faint && series.shape != Shape::Points)
    {
        for two in of(series).windows(2) {
            join(
                &mut grid,
                (across.column(two[0].0), up.row(two[0].1)),
                (across.column(two[1].0), up.row(two[1].1)),
            );
        }
    }
    for (mark, series) in marked() {
        for (x, y) in of(series) {
            let cell = &mut grid[up.row(y)][across.column(x)];
            *cell = if *cell == ' ' || *cell == '.' || *cell == mark {
                mark
            } else {
                BOTH
            };
        }
    }
    let mut legend: Vec<String> = marked()
        .filter(|(_, series)| !series.faint)
        .map(|(mark, series)| format!("{mark} {}", series.name))
        .collect();
    if grid.iter().flatten().any(|cell| *cell == BOTH) {
        legend.push(format!("{BOTH} several"));
    }
    let mut text = format!(
        "{} over {}: {}\n",
        lines.y.label,
        lines.x.label,
        legend.join(", ")
    );
    let labels = up.labels();
    for (row, cells) in grid.iter().enumerate() {
        let label = labels
            .iter()
            .find(|(at, _)| *at == row)
            .map(|(_, label)| label.as_str());
        let axis = if label.is_some() { '+' } else { '|' };
        let cells: String = cells.iter().collect();
        let _ = writeln!(
            text,
            "{:>MARGIN$} {axis}{}",
            label.unwrap_or_default(),
            cells.trim_end()
        );
    }
    text + &across.axis(&lines.x.label) + &across.marks(upright())
}

/// Draws a dotted line over blank cells.
fn join(grid: &mut [Vec<char>], from: (usize, usize), to: (usize, usize)) {
    let steps = from.0.abs_diff(to.0).max(from.1.abs_diff(to.1));
    for step in 1..steps {
        let between = |from: usize, to: usize| {
            let share = step as f64 / steps as f64;
            cell(from as f64 + (to as f64 - from as f64) * share)
        };
        let cell = &mut grid[between(from.1, to.1)][between(from.0, to.0)];
        if *cell == ' ' {
            *cell = '.';
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "cells are few; float casts saturate"
)]
fn cell(place: f64) -> usize {
    place.round() as usize
}

/// The horizontal axis, from zero.
struct Across {
    step: f64,
    steps: usize,
}

impl Across {
    fn of(values: impl Iterator<Item = f64>) -> Self {
        const STEPS: f64 = 5.0;
        let greatest = values.fold(f64::MIN_POSITIVE, f64::max);
        let wanted = greatest / STEPS;
        let decade = 10f64.powf(wanted.log10().floor());
        let round = [1.0, 2.0, 2.5, 5.0, 10.0].map(|digit| digit * decade);
        let step = round
            .into_iter()
            .find(|step| *step >= wanted * 0.999)
            .unwrap_or(wanted);
        Self {
            step,
            steps: cell((greatest / step - 1e-9).ceil()).max(1),
        }
    }

    fn column(&self, value: f64) -> usize {
        cell(value / (self.step * self.steps as f64) * (WIDTH - 1) as f64).min(WIDTH - 1)
    }

    /// The axis line, and its numbers below.
    fn axis(&self, unit: &str) -> String {
        let mut line = vec!['-'; WIDTH];
        let mut numbers = vec![' '; MARGIN + 2 + WIDTH + MARGIN];
        for tick in 0..=self.steps {
            let value = self.step * tick as f64;
            line[self.column(value)] = '+';
            let number = count(value);
            // Each number is centred below its tick.
            let start = MARGIN + 2 + self.column(value) - number.len() / 2;
            numbers.splice(start..start + number.len(), number.chars());
        }
        let text = |cells: Vec<char>| cells.into_iter().collect::<String>();
        format!(
            "{:MARGIN$} +{}\n{} {unit}\n",
            "",
            text(line),
            text(numbers).trim_end()
        )
    }

    fn marks<'a>(&self, marks: impl Iterator<Item = &'a Mark>) -> String {
        let mut text = String::new();
        for mark in marks {
            let (from, to) = (mark.at, mark.to.unwrap_or(mark.at));
            let [column, end] = [from, to].map(|at| MARGIN + 2 + self.column(at));
            let word = &mark.label;
            let place = match end - column {
                0 => "^".to_string(),
                apart => format!("^{}^", "-".repeat(apart - 1)),
            };
            // Labels in the right half extend to the left.
            let line = if column > WIDTH / 2 {
                format!("{word} {place}")
            } else {
                format!("{place} {word}")
            };
            let width = if column > WIDTH / 2 {
                end + 1
            } else {
                column + line.chars().count()
            };
            let _ = writeln!(text, "{line:>width$}");
        }
        text
    }
}

/// Formats a number as `20k`, `1.5M`, `800`.
fn count(value: f64) -> String {
    let (value, suffix) = match value {
        small if small < 1e3 => (small, ""),
        thousands if thousands < 1e6 => (thousands / 1e3, "k"),
        millions => (millions / 1e6, "M"),
    };
    // A round step has two decimals; further ones are binary rounding.
    let text = format!("{value:.2}");
    format!(
        "{}{suffix}",
        text.trim_end_matches('0').trim_end_matches('.')
    )
}

/// The vertical axis: round times, the maximum at the top.
struct Up {
    /// Both limits are in microseconds.
    low: f64,
    high: f64,
}

impl Up {
    fn of(values: impl Iterator<Item = f64> + Clone) -> Self {
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let greatest = values.fold(0.0, f64::max);
        let low = rounds(least, least)
            .into_iter()
            .rfind(|round| *round <= least * 1.001)
            .unwrap_or(least);
        let high = rounds(low, greatest)
            .into_iter()
            .find(|round| *round > low && *round >= greatest * 0.999);
        Self {
            low,
            high: high.unwrap_or(greatest * 2.0),
        }
    }

    fn row(&self, value: f64) -> usize {
        let share = (self.high / value).ln() / (self.high / self.low).ln();
        cell(share.clamp(0.0, 1.0) * (HEIGHT - 1) as f64)
    }

    /// Rows with a round time and its label: 1, 2 and 5 of each decade if there is space, else the
    /// powers of ten.
    fn labels(&self) -> Vec<(usize, String)> {
        const MOST: usize = 9;
        let mut times = rounds(self.low, self.high);
        times.retain(|round| (self.low * 0.999..=self.high * 1.001).contains(round));
        if times.len() > MOST {
            times.retain(|round| (round.log10() - round.log10().round()).abs() < 1e-6);
        }
        times
            .into_iter()
            .map(|us| (self.row(us), unit::short(Unit::Microseconds, us)))
            .collect()
    }
}

/// 1, 2 and 5 times each power of ten, ascending: from one that is not above `low` to one that is
/// above `high`.
fn rounds(low: f64, high: f64) -> Vec<f64> {
    let (mut found, mut decade) = (Vec::new(), 10f64.powf(low.log10().floor()));
    while decade <= high * 10.0 {
        found.extend([1.0, 2.0, 5.0].map(|digit| digit * decade));
        decade *= 10.0;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Axis;

    fn series(name: &str, points: impl Iterator<Item = (f64, f64)>) -> Series {
        let (x, y) = points.map(|(x, y)| (x, Some(y))).unzip();
        Series {
            name: name.into(),
            x,
            y,
            ..Series::default()
        }
    }

    fn lines(series: Vec<Series>) -> Lines {
        let axis = |label: &str| Axis {
            label: label.into(),
            ..Axis::default()
        };
        Lines {
            x: axis("IOPS"),
            y: axis("latency"),
            series,
            ..Lines::default()
        }
    }

    #[test]
    fn a_curve_is_drawn_within_its_axes() {
        let p50 = (1..=8)
            .map(|n| (f64::from(n) * 10_000.0, 100.0))
            .chain([(80_000.0, 200.0), (80_100.0, 800.0)]);
        let p99 = (1..=8)
            .map(|n| (f64::from(n) * 10_000.0, 480.0))
            .chain([(80_000.0, 700.0), (80_100.0, 1900.0)]);
        let knee = Mark {
            at: 80_000.0,
            upright: true,
            label: "knee, depth 8".into(),
            ..Mark::default()
        };
        let series = vec![series("p50", p50), series("p99", p99)];
        crate::golden::check(
            "chart.txt",
            &draw(&Lines {
                marks: vec![knee],
                ..lines(series)
            }),
        );
    }

    #[test]
    fn an_interval_is_marked_from_end_to_end() {
        let mark = |at, to| Mark {
            at,
            to: Some(to),
            upright: true,
            label: "rate".into(),
            ..Mark::default()
        };
        let across = Across::of([10_000.0].into_iter());
        let (low, high) = (mark(1000.0, 2000.0), mark(8000.0, 10_000.0));
        let text = across.marks([&low, &high].into_iter());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].trim_start(), "^-----^ rate");
        assert_eq!(lines[1].trim_start(), "rate ^------------^");
        assert_eq!(lines[1].len(), MARGIN + 2 + WIDTH);
    }

    #[test]
    fn what_is_measured_lies_between_round_labels() {
        let up = Up::of([0.3, 20_000.0].into_iter());
        assert!((up.low - 0.2).abs() < 1e-9 && (up.high - 20_000.0).abs() < 1e-6);
        assert_eq!(up.labels()[0].1, "1 µs");
        assert_eq!((up.row(20_000.0), up.row(0.2)), (0, HEIGHT - 1));
        let across = Across::of([30_100.0].into_iter());
        assert_eq!((count(across.step), across.steps), ("10k".to_string(), 4));
    }

    #[test]
    fn nothing_and_one_point_are_drawn_as_such() {
        assert_eq!(draw(&lines(Vec::new())), "");
        let chart = draw(&lines(vec![series("p50", [(5.0, 100.0)].into_iter())]));
        let drawn = chart
            .lines()
            .skip(1)
            .filter(|line| line.contains('|') || line.contains(" +"));
        assert_eq!(
            drawn.map(|line| line.matches('o').count()).sum::<usize>(),
            1,
            "{chart}"
        );
    }
}
