//! Changes with their intervals: rows of a table, each with a whisker and a point on a common axis.
//!
//! Places are percentages in `style`, so that the drawing is as wide as its column without a script,
//! on a telephone and on paper.

use super::escape;
use crate::document::{ChangeRow, Changes, Status};
use crate::parts;
use rigel_analyse::Limits;
use std::fmt::Write;

/// The factors up to which an axis shows changes, in either direction: small changes look small, and
/// what is beyond the last ends at the edge.
const SPANS: [f64; 8] = [1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0];

/// The rows, and the axis below them.
pub(super) fn rows(title: &str, changes: &Changes) -> String {
    let span = span(changes);
    let mut html = format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table \
         class=\"changes\"><caption class=\"unseen\">{0}</caption><tbody>\n",
        escape::html(title)
    );
    for row in &changes.rows {
        let (low, high) = (place(row.band.low, span), upper(row.band, span));
        let _ = writeln!(
            html,
            "<tr class=\"{}\"><th scope=\"row\">{}</th><td class=\"track\" \
             aria-hidden=\"true\"><span class=\"whisker\" style=\"left:{low:.2}%;width:{:.2}%\"></span><span \
             class=\"point\" style=\"left:{:.2}%\"></span></td><td>{}</td></tr>",
            class(row.tone),
            escape::html(&row.name),
            high - low,
            place(row.ratio, span),
            escape::html(&words(row)),
        );
    }
    let ends = [1.0 / span, 1.0 / span.sqrt(), 1.0, span.sqrt(), span].map(|ratio| {
        let text = if (ratio - 1.0).abs() < 1e-9 {
            "0".into()
        } else {
            parts::change(ratio)
        };
        format!(
            "<span style=\"left:{:.0}%\">{text}</span>",
            place(ratio, span)
        )
    });
    html + &format!(
        "</tbody><tfoot aria-hidden=\"true\"><tr><td></td><td \
         class=\"track\">{}</td><td></td></tr></tfoot></table></div><p class=\"key\">Whiskers \
         are 95 % intervals; the line in the middle is no change.</p>",
        ends.concat()
    )
}

/// `+1.5 % (-0.4 to +3.4 %), no difference shown`.
fn words(row: &ChangeRow) -> String {
    let end = |ratio: f64| parts::change(ratio).replace(" %", "");
    let range = match row.band.high {
        Some(high) => format!("{} to {}", end(row.band.low), parts::change(high)),
        None => format!("at least {}", parts::change(row.band.low)),
    };
    format!("{} ({range}), {}", parts::change(row.ratio), row.judgement)
}

/// The greatest factor that the axis shows, in either direction.
fn span(changes: &Changes) -> f64 {
    let ends = changes
        .rows
        .iter()
        .flat_map(|row| [Some(row.ratio), Some(row.band.low), row.band.high]);
    let factors = ends.flatten().map(|ratio| ratio.max(1.0 / ratio));
    let greatest = factors
        .filter(|factor| factor.is_finite())
        .fold(1.0, f64::max);
    let last = SPANS[SPANS.len() - 1];
    SPANS
        .into_iter()
        .find(|span| *span >= greatest)
        .unwrap_or(last)
}

/// The place of a ratio in percent of the axis: 50 is no change.
fn place(ratio: f64, span: f64) -> f64 {
    let share = ratio.max(f64::MIN_POSITIVE).ln() / span.ln();
    50.0 + 50.0 * share.clamp(-1.0, 1.0)
}

/// The place of the upper end; one that is not known is at the edge.
fn upper(band: Limits, span: f64) -> f64 {
    band.high.map_or(100.0, |high| place(high, span))
}

fn class(tone: Status) -> &'static str {
    match tone {
        Status::Good => "good",
        Status::Plain => "plain",
        Status::Warning => "warning",
        Status::Bad => "bad",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ratio: f64, low: f64, high: Option<f64>) -> ChangeRow {
        ChangeRow {
            name: "p99".into(),
            ratio,
            band: Limits { low, high },
            judgement: "worse".into(),
            tone: Status::Bad,
        }
    }

    #[test]
    fn no_change_is_in_the_middle_and_equal_factors_are_equally_far() {
        assert!((place(1.0, 2.0) - 50.0).abs() < 1e-9);
        assert!((place(2.0, 2.0) - 100.0).abs() < 1e-9);
        assert!((place(0.5, 2.0) - 0.0).abs() < 1e-9);
        let (more, less) = (place(1.25, 4.0), place(0.8, 4.0));
        assert!((more - 50.0 - (50.0 - less)).abs() < 1e-9);
    }

    #[test]
    fn what_is_beyond_the_axis_or_not_known_ends_at_its_edge() {
        let changes = Changes {
            rows: vec![row(1.1, 0.0, None), row(1000.0, 900.0, Some(1100.0))],
        };
        assert!((span(&changes) - 10.0).abs() < 1e-9);
        assert!((place(0.0, 10.0) - 0.0).abs() < 1e-9);
        assert!((upper(changes.rows[0].band, 10.0) - 100.0).abs() < 1e-9);
        assert!((place(1000.0, 10.0) - 100.0).abs() < 1e-9);
        let still = Changes {
            rows: vec![row(1.0, 1.0, Some(1.0))],
        };
        assert!((span(&still) - 1.05).abs() < 1e-9);
    }

    #[test]
    fn a_row_says_the_change_its_interval_and_the_judgement() {
        assert_eq!(
            words(&row(1.015, 0.996, Some(1.034))),
            "+1.5 % (−0.4 to +3.4 %), worse"
        );
        assert_eq!(
            words(&row(1.5, 1.2, None)),
            "+50.0 % (at least +20.0 %), worse"
        );
    }
}
