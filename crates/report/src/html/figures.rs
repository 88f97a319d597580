//! Contents of a chart, twice: as data for the script that draws it, and as a table for readers who
//! cannot see it.

use crate::document::{Axis, Column, Heat, Lines, Mark, Plot, Series, Table, Unit};
use crate::unit;
use rigel_analyse::Limits;
use serde_json::{Value, json};
use std::fmt::Write;

/// Maximum number of rows of a table made from a chart: more rows make the page large, and nobody
/// reads them.
const ROWS_MAX: usize = 500;
/// Maximum number of columns of a table made from a heat map.
const COLUMNS_MAX: usize = 40;

/// The data of a chart, with as many digits as are visible.
pub(super) fn data(plot: &Plot) -> Value {
    match plot {
        Plot::Lines(lines) => panels("lines", std::slice::from_ref(lines)),
        Plot::Stack { panels: stacked } => panels("stack", stacked),
        Plot::Heat(heat) => field(heat),
        // Its rows are HTML, which the script does not draw.
        Plot::Changes(_) => Value::Null,
    }
}

/// The figures of a chart, and a sentence if some were left out.
pub(super) fn table(title: &str, plot: &Plot) -> (Table, Option<String>) {
    match plot {
        Plot::Lines(lines) => table_of_panels(title, std::slice::from_ref(lines)),
        Plot::Stack { panels } => table_of_panels(title, panels),
        Plot::Heat(heat) => table_of_field(title, heat),
        Plot::Changes(_) => (Table::default(), None),
    }
}

/// Descriptions of the marks in a chart.
pub(super) fn marks(plot: &Plot) -> Vec<String> {
    let say = |lines: &Lines, mark: &Mark| {
        let axis = if mark.upright { &lines.x } else { &lines.y };
        let end = mark
            .to
            .map(|to| format!(" to {}", unit::text(axis.unit, to)))
            .unwrap_or_default();
        format!(
            "{}: {} {}{end}",
            mark.label,
            axis.label,
            unit::text(axis.unit, mark.at)
        )
    };
    let of = |lines: &Lines| {
        lines
            .marks
            .iter()
            .map(|mark| say(lines, mark))
            .collect::<Vec<_>>()
    };
    match plot {
        Plot::Lines(lines) => of(lines),
        Plot::Stack { panels } => {
            let mut marks: Vec<String> = panels.iter().flat_map(of).collect();
            // A mark at a point in time is repeated in every panel.
            let mut seen = std::collections::BTreeSet::new();
            marks.retain(|mark| seen.insert(mark.clone()));
            marks
        }
        Plot::Heat(_) | Plot::Changes(_) => Vec::new(),
    }
}

fn panels(kind: &str, panels: &[Lines]) -> Value {
    // Series over the same values share them.
    let mut shared: Vec<(&[f64], Unit)> = Vec::new();
    let mut drawn = Vec::new();
    for lines in panels {
        let mut of = Vec::new();
        for series in &lines.series {
            let index = shared
                .iter()
                .position(|(x, unit)| *x == series.x.as_slice() && *unit == lines.x.unit);
            let index = index.unwrap_or_else(|| {
                shared.push((&series.x, lines.x.unit));
                shared.len() - 1
            });
            of.push(series_data(lines, series, index));
        }
        drawn.push(json!({
            "x": axis(&lines.x),
            "y": axis(&lines.y),
            "right": lines.right.as_ref().map(axis),
            "series": of,
            "marks": lines.marks.iter().map(|mark| mark_data(lines, mark)).collect::<Vec<_>>(),
        }));
    }
    let xs: Vec<Value> = shared
        .iter()
        .map(|(x, unit)| x.iter().map(|value| number(*unit, *value)).collect())
        .collect();
    json!({ "kind": kind, "xs": xs, "panels": drawn })
}

fn axis(axis: &Axis) -> Value {
    let range = axis
        .range
        .map(|(low, high)| [number(axis.unit, low), number(axis.unit, high)]);
    json!({ "label": axis.label, "unit": axis.unit, "log": axis.log, "range": range })
}

fn series_data(lines: &Lines, series: &Series, x: usize) -> Value {
    let unit = vertical(lines, series).unit;
    let ends = |end: fn(Limits) -> Option<f64>| -> Vec<Value> {
        (0..series.band.len())
            .map(|at| {
                band(series, at)
                    .and_then(end)
                    .map_or(Value::Null, |end| number(unit, end))
            })
            .collect()
    };
    let mut data = json!({
        "name": series.name,
        "shape": series.shape,
        "x": x,
        "y": series.y.iter().map(|value| value.map_or(Value::Null, |value| number(unit, value))).collect::<Vec<_>>(),
    });
    if series.at_right && lines.right.is_some() {
        data["right"] = true.into();
    }
    if series.faint {
        data["faint"] = true.into();
    }
    if let Some(colour) = series.colour {
        data["colour"] = colour.into();
    }
    if !series.band.is_empty() {
        data["low"] = ends(|band| Some(band.low)).into();
        data["high"] = ends(|band| band.high).into();
    }
    if series.labels.iter().any(|label| !label.is_empty()) {
        data["labels"] = json!(series.labels);
    }
    data
}

/// The interval of a value; that of a rate or a time does not begin below zero.
fn band(series: &Series, at: usize) -> Option<Limits> {
    let band = series.band.get(at).copied().flatten()?;
    let is_positive = series
        .y
        .get(at)
        .copied()
        .flatten()
        .is_some_and(|value| value >= 0.0);
    let low = if is_positive {
        band.low.max(0.0)
    } else {
        band.low
    };
    Some(Limits { low, ..band })
}

fn mark_data(lines: &Lines, mark: &Mark) -> Value {
    let unit = if mark.upright {
        lines.x.unit
    } else {
        lines.y.unit
    };
    let to = mark.to.map(|to| number(unit, to));
    json!({ "at": number(unit, mark.at), "to": to, "upright": mark.upright, "label": mark.label, "tone": mark.tone })
}

fn field(heat: &Heat) -> Value {
    let cell = |value: &Option<f64>| value.map_or(Value::Null, |value| number(heat.unit, value));
    json!({
        "kind": "heat",
        "x": heat.x_label,
        "y": heat.y_label,
        "columns": heat.columns,
        "rows": heat.rows,
        "downward": heat.downward,
        "range": heat.range,
        "values": heat.values.iter().map(|row| row.iter().map(cell).collect()).collect::<Vec<Value>>(),
        "unit": heat.unit,
        "label": heat.label,
        "log": heat.log,
    })
}

/// Rounds to six significant digits; moments and durations to milliseconds.
fn number(unit: Unit, value: f64) -> Value {
    if !value.is_finite() {
        return Value::Null;
    }
    let rounded = match unit {
        Unit::Moment | Unit::Seconds => (value * 1000.0).round() / 1000.0,
        _ => format!("{value:.5e}").parse().unwrap_or(value),
    };
    if rounded.fract() == 0.0 && rounded.abs() < 1e15 {
        #[expect(clippy::cast_possible_truncation, reason = "a whole number below 2^53")]
        let whole = rounded as i64;
        return whole.into();
    }
    rounded.into()
}

/// The vertical axis of a series.
fn vertical<'a>(lines: &'a Lines, series: &Series) -> &'a Axis {
    lines
        .right
        .as_ref()
        .filter(|_| series.at_right)
        .unwrap_or(&lines.y)
}

fn number_column(name: String) -> Column {
    Column {
        name,
        is_number: true,
        ..Column::default()
    }
}

fn table_of_panels(title: &str, panels: &[Lines]) -> (Table, Option<String>) {
    let of_all = || {
        panels
            .iter()
            .flat_map(|lines| lines.series.iter().map(move |series| (lines, series)))
    };
    let mut xs: Vec<f64> = of_all()
        .flat_map(|(_, series)| series.x.iter().copied())
        .collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let step = xs.len().div_ceil(ROWS_MAX).max(1);
    let x = panels
        .first()
        .map(|lines| lines.x.clone())
        .unwrap_or_default();
    let head = |(lines, series): (&Lines, &Series)| {
        let of = vertical(lines, series);
        let name = if series.name == of.label || of.label.is_empty() {
            series.name.clone()
        } else {
            format!("{}: {}", series.name, of.label)
        };
        number_column(name)
    };
    let columns = std::iter::once(number_column(x.label.clone())).chain(of_all().map(head));
    let row = |at: f64| {
        let cells = of_all().map(|(lines, series)| cell(vertical(lines, series).unit, series, at));
        std::iter::once(unit::text(x.unit, at))
            .chain(cells)
            .collect()
    };
    let rows: Vec<Vec<String>> = xs.iter().step_by(step).map(|at| row(*at)).collect();
    let cut = (step > 1).then(|| {
        format!(
            "This table has one of every {step} of the {} rows.",
            xs.len()
        )
    });
    let caption = format!("Figures of: {title}");
    (
        Table {
            caption,
            columns: columns.collect(),
            rows,
            folded: false,
            ..Table::default()
        },
        cut,
    )
}

/// Text of a series at a position, with its interval and its own words.
fn cell(unit: Unit, series: &Series, at: f64) -> String {
    let Ok(index) = series.x.binary_search_by(|x| x.total_cmp(&at)) else {
        return String::new();
    };
    let Some(value) = series.y.get(index).copied().flatten() else {
        return String::new();
    };
    let mut text = unit::text(unit, value);
    if let Some(Limits { low, high }) = band(series, index) {
        let low = unit::text(unit, low);
        let _ = match high {
            Some(high) => write!(text, " ({low} to {})", unit::text(unit, high)),
            None => write!(text, " (at least {low})"),
        };
    }
    if let Some(label) = series.labels.get(index).filter(|label| !label.is_empty()) {
        let _ = write!(text, ", {label}");
    }
    text
}

fn table_of_field(title: &str, heat: &Heat) -> (Table, Option<String>) {
    let step = heat.columns.len().div_ceil(COLUMNS_MAX).max(1);
    let corner = Column {
        name: format!("{} / {}", heat.y_label, heat.x_label),
        ..Column::default()
    };
    let heads = heat
        .columns
        .iter()
        .step_by(step)
        .map(|name| number_column(name.clone()));
    let text =
        |value: &Option<f64>| value.map_or(String::new(), |value| unit::text(heat.unit, value));
    // The topmost row of the drawing first.
    let rows = heat
        .rows
        .iter()
        .zip(&heat.values)
        .rev()
        .map(|(name, values)| {
            std::iter::once(name.clone())
                .chain(values.iter().step_by(step).map(text))
                .collect()
        });
    let cut = (step > 1).then(|| {
        format!(
            "This table has one of every {step} of the {} columns.",
            heat.columns.len()
        )
    });
    let caption = format!("Figures of: {title}");
    let columns = std::iter::once(corner).chain(heads).collect();
    (
        Table {
            caption,
            columns,
            rows: rows.collect(),
            folded: false,
            ..Table::default()
        },
        cut,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_can_be_seen() {
        for (unit, value, written) in [
            (Unit::Number, 1.0, "1"),
            (Unit::Number, 123_456.789, "123457"),
            (Unit::Number, 0.001_234_567_8, "0.00123457"),
            (Unit::Moment, 1_772_368_205.123_456, "1772368205.123"),
            (Unit::Number, f64::NAN, "null"),
            (Unit::Number, f64::INFINITY, "null"),
        ] {
            assert_eq!(number(unit, value).to_string(), written);
        }
    }

    #[test]
    fn series_over_the_same_values_share_them() {
        let series = |x: &[f64]| Series {
            x: x.to_vec(),
            y: vec![Some(1.0); x.len()],
            ..Series::default()
        };
        let lines = Lines {
            series: vec![series(&[1.0, 2.0]), series(&[1.0, 2.0]), series(&[3.0])],
            ..Lines::default()
        };
        let data = data(&Plot::Lines(lines));
        assert_eq!(data["xs"], json!([[1, 2], [3]]));
        let at: Vec<_> = data["panels"][0]["series"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["x"].clone())
            .collect();
        assert_eq!(at, [0, 0, 1]);
    }

    #[test]
    fn a_long_table_is_cut_and_says_so() {
        let x: Vec<f64> = (0..1200).map(f64::from).collect();
        let y = x.iter().map(|x| Some(*x)).collect();
        let lines = Lines {
            series: vec![Series {
                x,
                y,
                ..Series::default()
            }],
            ..Lines::default()
        };
        let (table, cut) = table("t", &Plot::Lines(lines));
        assert_eq!(
            (table.rows.len(), cut.as_deref()),
            (400, Some("This table has one of every 3 of the 1200 rows."))
        );
        assert_eq!(table.rows[1], ["3", "3"]);
    }

    #[test]
    fn an_interval_wider_than_its_value_begins_at_zero() {
        let series = |value: f64| Series {
            x: vec![1.0],
            y: vec![Some(value)],
            band: vec![Some(Limits {
                low: -3.0,
                high: Some(9.0),
            })],
            ..Series::default()
        };
        let low = |value| band(&series(value), 0).unwrap().low;
        assert!(low(2.0).abs() < 1e-9);
        assert!(
            (low(-2.0) + 3.0).abs() < 1e-9,
            "a difference may be negative"
        );
    }

    #[test]
    fn a_cell_says_value_interval_and_words() {
        let series = Series {
            x: vec![1.0, 2.0],
            y: vec![Some(100.0), None],
            band: vec![
                Some(Limits {
                    low: 90.0,
                    high: Some(1100.0),
                }),
                None,
            ],
            labels: vec!["at depth 4".into(), String::new()],
            ..Series::default()
        };
        assert_eq!(
            cell(Unit::Microseconds, &series, 1.0),
            "100 µs (90.0 µs to 1.10 ms), at depth 4"
        );
        assert_eq!(cell(Unit::Microseconds, &series, 2.0), "");
        assert_eq!(cell(Unit::Microseconds, &series, 1.5), "");
    }
}
