//! The words that a page is written in: an answer, figures, sections of charts, tables and findings. Plain data; how it
//! looks is decided elsewhere, so every verb's page looks alike.

use crate::analyse::Limits;
pub use crate::analyse::{Conclusion, Status};
use crate::model::Finding;
use serde::Serialize;

/// A page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Page {
    /// What the browser's tab says.
    pub title: String,
    /// Above the answer: verb, target, date.
    pub heading: String,
    /// The answer in a sentence, and how good it is.
    pub conclusion: Conclusion,
    /// Four figures, or about as many, that a reader goes away with.
    pub figures: Vec<Headline>,
    /// What comes below, in this order.
    pub sections: Vec<Section>,
}

/// A figure in large type.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Headline {
    /// A stable name for programs, such as `max_iops`: the page's test finds it in the JSON report by this.
    pub name: String,
    /// What it is: `max IOPS`.
    pub label: String,
    /// The figure as people read it: `79,941` or `450 µs`.
    pub value: String,
    /// Its 95 % interval in words, or empty: `± 0.4 %` or `438 to 463 µs`.
    pub interval: String,
    /// Where it was measured: `random, 8 KiB, at depth 8`.
    pub note: String,
    /// The figure itself, in the unit of the JSON report.
    pub exact: f64,
}

/// A part of a page with a heading.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Section {
    /// What links to it lead to: `latency-throughput`. Unique in the page.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What is to be seen in it, in a sentence; may be empty.
    pub lead: String,
    /// What it holds.
    pub blocks: Vec<Block>,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "is", content = "of")]
pub enum Block {
    /// A drawing.
    Chart(Box<Chart>),
    /// Rows and columns.
    Table(Table),
    /// Sentences with evidence and hint.
    Findings(Vec<Finding>),
    /// A paragraph.
    Text(String),
    /// Text to copy: a command, a version line.
    Code(String),
    /// Pieces beside each other where there is room.
    Beside(Vec<Block>),
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The head.
    pub columns: Vec<Column>,
    /// A text for every column of every row.
    pub rows: Vec<Vec<String>>,
    /// Hidden until somebody opens it: long ones.
    pub folded: bool,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Column {
    /// Its head.
    pub name: String,
    /// Figures stand at the right.
    pub is_number: bool,
}

/// A drawing. All that is in it can be read as a table too, which is made from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Unique in the page.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// What is to be seen in it, for who cannot see it: a sentence with figures.
    pub description: String,
    /// The drawing.
    pub plot: Plot,
}

/// A kind of drawing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Plot {
    /// Lines, bands, points and bars over one axis.
    Lines(Lines),
    /// Several of those below each other on one horizontal axis, zoomed together.
    Stack {
        /// From top to bottom.
        panels: Vec<Lines>,
    },
    /// A field of coloured cells.
    Heat(Heat),
}

/// Lines over one axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Lines {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis, at the left.
    pub y: Axis,
    /// A second vertical axis, at the right.
    pub right: Option<Axis>,
    /// What is drawn.
    pub series: Vec<Series>,
    /// Straight lines across, with a word each: the knee, a bound, a change.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What it measures: `IOPS`.
    pub label: String,
    /// In which unit values are given.
    pub unit: Unit,
    /// Logarithmic.
    pub log: bool,
    /// Least and greatest value that must be in view.
    pub range: Option<(f64, f64)>,
}

/// The unit of values, which decides how they are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// A plain number.
    #[default]
    Number,
    /// Things a second.
    PerSecond,
    /// Megabytes (10^6) a second.
    MbPerSecond,
    /// Microseconds, written as µs, ms or s.
    Microseconds,
    /// A share of 1, written in percent.
    Share,
    /// A quantile of 1, on an axis that stretches the tail: drawn at `-log10(1 - q)`, written p50, p99, p99.9. Values
    /// are given as drawn.
    Nines,
    /// Seconds since the beginning.
    Seconds,
    /// Seconds since 1970 in local time of the run, written as date and time.
    Moment,
}

/// What is drawn.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// More of the series before it, drawn lighter: it has that one's marker and its place in the legend.
    pub faint: bool,
    /// Drawn against the axis at the right.
    pub at_right: bool,
    /// Which of the eight colours of the page; none for the next.
    pub colour: Option<u8>,
    /// Where, ascending.
    pub x: Vec<f64>,
    /// What; none is a gap.
    pub y: Vec<Option<f64>>,
    /// The ends of each value's 95 % interval; empty where there is none.
    pub band: Vec<Option<Limits>>,
    /// What to say of each value when pointed at; empty for the figures alone.
    pub labels: Vec<String>,
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// A line, with points where there are few.
    #[default]
    Line,
    /// Points alone.
    Points,
    /// Bars from the axis up.
    Bars,
    /// A line that stays level from one value to the next.
    Steps,
    /// The space below the line is filled, above the series before it: shares of a whole.
    Stacked,
    /// A thin dashed line: what a law or a fit says.
    Dashed,
}

/// A straight line across a drawing.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mark {
    /// Where: on the horizontal axis if `upright`, else on the vertical one.
    pub at: f64,
    /// Where a range ends that begins at `at`; none for a line.
    pub to: Option<f64>,
    /// It goes from bottom to top.
    pub upright: bool,
    /// What it is.
    pub label: String,
    /// How it is to be taken.
    pub tone: Status,
}

/// A field of coloured cells.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Heat {
    /// What the columns are.
    pub x_label: String,
    /// The head of each column.
    pub columns: Vec<String>,
    /// What the rows are.
    pub y_label: String,
    /// The head of each row, from bottom to top.
    pub rows: Vec<String>,
    /// What the rows are grows downward: the first day of a calendar stands at the top.
    pub downward: bool,
    /// By row, then by column; none where nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
    /// The unit of the values.
    pub unit: Unit,
    /// What the values are: `IOPS of small reads`.
    pub label: String,
    /// Colours go by the logarithm.
    pub log: bool,
    /// Least and greatest value that colours must span, so that small differences have like colours.
    pub range: Option<(f64, f64)>,
    /// Write the value into each cell: for few cells.
    pub written: bool,
}
