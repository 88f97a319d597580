//! A heat map: its colours, and the table of coloured cells that is used for small heat maps.

use super::escape;
use crate::document::{Heat, Unit};
use crate::unit;
use std::fmt::Write;

/// Points of a scale from dark blue to yellow with evenly increasing lightness, so that it can be
/// read in grey and by colour-blind people.
const SCALE: [[f64; 3]; 9] = [
    [68.0, 1.0, 84.0],
    [71.0, 45.0, 123.0],
    [59.0, 82.0, 139.0],
    [44.0, 114.0, 142.0],
    [33.0, 145.0, 140.0],
    [40.0, 174.0, 128.0],
    [94.0, 201.0, 98.0],
    [173.0, 220.0, 48.0],
    [253.0, 231.0, 37.0],
];

/// A heat map as a table with the value in each cell.
pub(super) fn grid(heat: &Heat) -> String {
    // Columns have a minimum width for a figure; if the page is too narrow, the table scrolls.
    let width = 3.4 + 2.7 * heat.columns.len() as f64;
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\"><table \
         class=\"heat\" style=\"min-width:{width:.1}rem\">",
        escape::html(&heat.label)
    );
    let (factor, _) = in_cells(heat);
    let _ = write!(
        html,
        "<caption class=\"unseen\">{}, by {} and {}</caption><tbody>",
        escape::html(&heat.label),
        escape::html(&heat.y_label),
        escape::html(&heat.x_label)
    );
    let ends = ends(heat);
    for (name, values) in heat.rows.iter().zip(&heat.values).rev() {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape::html(name));
        for value in values {
            if let (Some(value), Some(ends)) = (value, ends) {
                let colour = colour(place(*value, ends, heat.log));
                let ink = if is_light(colour) { "#000" } else { "#fff" };
                let [red, green, blue] = colour;
                let text = in_cell(heat.unit, *value / factor);
                let whole = escape::html(&unit::text(heat.unit, *value));
                let _ = write!(
                    html,
                    "<td title=\"{whole}\" \
                     style=\"background:#{red:02x}{green:02x}{blue:02x};color:{ink}\">{text}</td>"
                );
            } else {
                html += "<td class=\"none\" title=\"not measured\"><span class=\"unseen\">not \
                         measured</span></td>";
            }
        }
        html += "</tr>";
    }
    html += "</tbody><tfoot><tr><td></td>";
    for name in &heat.columns {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape::html(name));
    }
    html + "</tr></tfoot></table></div>"
}

/// Legend of the colours.
pub(super) fn legend(heat: &Heat) -> String {
    let Some((low, high)) = ends(heat) else {
        return String::new();
    };
    let figure = |value: f64| escape::html(&unit::text(heat.unit, value));
    let missing = heat.values.iter().flatten().any(Option::is_none);
    let missing = if missing {
        "<span><span class=\"none\"></span> not measured</span>"
    } else {
        ""
    };
    format!(
        "<p class=\"scale\"><span>{}{}</span><span class=\"ends\">{} <span class=\"ramp\" \
         style=\"background:linear-gradient(90deg,{})\"></span> {}</span>{}{missing}</p>",
        escape::html(&heat.label),
        if heat.written { in_cells(heat).1 } else { "" },
        figure(low),
        stops().join(","),
        figure(high),
        if heat.log && low < high {
            format!(
                "<span>(logarithmic: halfway is {})</span>",
                figure((low * high).sqrt())
            )
        } else {
            String::new()
        },
    )
}

/// The divisor of values in cells, and its unit for the legend: a unit in each cell would take more
/// space than the figure.
fn in_cells(heat: &Heat) -> (f64, &'static str) {
    let (low, high) = ends(heat).unwrap_or((0.0, 0.0));
    match heat.unit {
        Unit::Microseconds if low >= 1e5 => (1e6, ", in s"),
        Unit::Microseconds if high >= 1e3 => (1e3, ", in ms"),
        Unit::Microseconds => (1.0, ", in µs"),
        Unit::Share => (0.01, ", in %"),
        _ => (1.0, ""),
    }
}

fn in_cell(unit: Unit, value: f64) -> String {
    match unit {
        // Differences below a hundredth of a millisecond are not shown in so little space.
        Unit::Microseconds | Unit::Share if value.abs() < 0.1 => unit::significant(value, 2),
        Unit::Microseconds | Unit::Share => unit::short(Unit::Number, value),
        _ => unit::short(unit, value),
    }
}

/// The points of the scale in CSS syntax.
pub(super) fn stops() -> Vec<String> {
    SCALE
        .iter()
        .map(|[red, green, blue]| format!("rgb({red},{green},{blue})"))
        .collect()
}

/// Minimum and maximum value; on a logarithmic scale only of values above zero.
fn ends(heat: &Heat) -> Option<(f64, f64)> {
    let range = heat.range.iter().flat_map(|(low, high)| [*low, *high]);
    let values = heat.values.iter().flatten().flatten().copied();
    // A heat map without values has no colours, whatever its range.
    values.clone().next()?;
    let values = values.chain(range);
    let drawn = values.filter(|value| value.is_finite() && !(heat.log && *value <= 0.0));
    drawn.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// Position of a value between the ends, from 0 to 1.
fn place(value: f64, (low, high): (f64, f64), log: bool) -> f64 {
    if low >= high {
        return 0.5;
    }
    let share = if log {
        (value / low).ln() / (high / low).ln()
    } else {
        (value - low) / (high - low)
    };
    if share.is_nan() {
        0.0
    } else {
        share.clamp(0.0, 1.0)
    }
}

fn colour(place: f64) -> [u8; 3] {
    let along = place * (SCALE.len() - 1) as f64;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to 8"
    )]
    let below = (along as usize).min(SCALE.len() - 2);
    let share = along - below as f64;
    std::array::from_fn(|part| {
        let mixed = SCALE[below][part] * (1.0 - share) + SCALE[below + 1][part] * share;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "from 0 to 255"
        )]
        let byte = mixed.round() as u8;
        byte
    })
}

/// True if black text has more contrast than white: the luminance is above 0.179 (WCAG 2, relative
/// luminance).
fn is_light(colour: [u8; 3]) -> bool {
    luminance(colour) > 0.179
}

fn luminance(colour: [u8; 3]) -> f64 {
    let linear = colour.map(|part| {
        let part = f64::from(part) / 255.0;
        if part <= 0.040_45 {
            part / 12.92
        } else {
            ((part + 0.055) / 1.055).powf(2.4)
        }
    });
    0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lightness_grows_and_what_is_written_can_be_read_on_every_colour() {
        let mut before = -1.0;
        for step in 0..=100 {
            let colour = colour(f64::from(step) / 100.0);
            let light = luminance(colour);
            assert!(light > before, "{step}");
            before = light;
            let contrast = if is_light(colour) {
                (light + 0.05) / 0.05
            } else {
                1.05 / (light + 0.05)
            };
            assert!(contrast >= 4.5, "{step}: {contrast}");
        }
    }

    #[test]
    fn the_least_value_has_the_first_colour_and_the_greatest_the_last() {
        for log in [false, true] {
            assert_eq!(colour(place(10.0, (10.0, 1000.0), log)), [68, 1, 84]);
            assert_eq!(colour(place(1000.0, (10.0, 1000.0), log)), [253, 231, 37]);
        }
        assert!((place(100.0, (10.0, 1000.0), true) - 0.5).abs() < 1e-12);
        assert!((place(7.0, (7.0, 7.0), true) - 0.5).abs() < 1e-12);
        assert!(place(0.0, (10.0, 1000.0), true).abs() < 1e-12);
    }

    #[test]
    fn a_cell_without_a_value_says_so() {
        let heat = Heat {
            columns: vec!["1".into(), "2".into()],
            rows: vec!["a".into()],
            values: vec![vec![Some(1.0), None]],
            ..Heat::default()
        };
        assert!(grid(&heat).contains("not measured") && legend(&heat).contains("not measured"));
    }
}
