//! The parts of a report: a heading, a conclusion, headline figures, and sections with charts,
//! tables, findings and text. Plain data: each verb has one function that builds it, and each
//! format has one renderer ([`super::text`], [`super::html`]) for all verbs.

pub use rigel_analyse::quantity::Unit;
use rigel_analyse::{BoundVerdict, Limits, median};
pub use rigel_analyse::{CauseFound, Conclusion, RunTrust, Status};
use rigel_model::{Figure, spoken};
use serde::Serialize;
use std::borrow::Cow;

/// How much of a document a format shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Extent {
    /// One screen of text: what answers the question, whether to trust it, what to do next.
    #[default]
    Screen,
    /// Everything: a page, and text with `--verbose`.
    Full,
}

/// Maximum number of headline figures that a report shows first: more are a table.
pub const HEADLINES_MAX: usize = 4;

/// The report of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Document {
    /// Title of the browser's tab.
    pub title: String,
    /// Heading above the conclusion: verb, target, date.
    pub heading: String,
    /// What was measured, in a few words: workload, engine, number of points.
    pub about: String,
    /// The conclusion and its rating.
    pub conclusion: Conclusion,
    /// The outcome that the exit status says; `None` if it says only whether the run is complete.
    pub outcome: Option<BoundVerdict>,
    /// The headline figures, at most [`HEADLINES_MAX`] of which are shown first.
    pub headlines: Vec<Headline>,
    /// How far they can be trusted, and why; `None` if nothing was judged.
    pub trust: Option<RunTrust>,
    /// What the run cannot see, where the figures stand beside known kinds of storage, and what earlier runs say of the
    /// next one: a sentence each.
    pub standing: Vec<String>,
    /// Commands that are useful next, each with its purpose; `RUN` stands for this run.
    pub next: Vec<String>,
    /// The sections below, in this order.
    pub sections: Vec<Section>,
}

impl Document {
    /// The conclusion's sentences, after the mark of the outcome.
    pub(super) fn answer(&self) -> String {
        match self.outcome {
            Some(outcome) => format!("{} {}", outcome.mark(), self.conclusion.sentence),
            None => self.conclusion.sentence.clone(),
        }
    }

    /// The document with the names of servers in its sentences as a person reads them; tables, hints
    /// and commands have them as URLs, to be pasted back.
    pub(super) fn in_words(&self) -> Self {
        let mut document = self.clone();
        for text in [
            &mut document.title,
            &mut document.heading,
            &mut document.about,
            &mut document.conclusion.sentence,
        ] {
            speak(text);
        }
        for headline in &mut document.headlines {
            speak(&mut headline.label);
            speak(&mut headline.note);
        }
        for section in &mut document.sections {
            speak(&mut section.title);
            speak(&mut section.lead);
            section.blocks.iter_mut().for_each(Block::speak);
        }
        document
    }
}

fn speak(text: &mut String) {
    if let Cow::Owned(words) = spoken(text) {
        *text = words;
    }
}

impl Block {
    fn speak(&mut self) {
        match self {
            Self::Text(text) => speak(text),
            Self::Table(table) => speak(&mut table.caption),
            Self::Chart(chart) => {
                speak(&mut chart.title);
                speak(&mut chart.description);
            }
            Self::Causes(all) => all
                .iter_mut()
                .flat_map(|found| &mut found.findings)
                .for_each(|finding| speak(&mut finding.what)),
            Self::Beside(blocks) => blocks.iter_mut().for_each(Self::speak),
            Self::Code(_) => {}
        }
    }
}

/// A figure in large type.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Headline {
    /// A stable machine-readable name, such as `max_iops`; a test finds the figure in the JSON
    /// report by it.
    pub name: String,
    /// Label: `max IOPS`.
    pub label: String,
    /// The formatted figure: `79,941` or `450 µs`.
    pub value: String,
    /// Its 95 % interval in words, or empty: `± 0.4 %` or `438 to 463 µs`.
    pub interval: String,
    /// The conditions of its measurement: `random, 8 KiB, at depth 8`.
    pub note: String,
    /// The exact figure, in the unit of the JSON report.
    pub exact: f64,
    /// What it is, good or bad, which determines its colour.
    pub tone: Status,
    /// The figure of the answer that it is, whose own trust may differ from the answer's.
    pub figure: Option<Figure>,
}

impl Headline {
    /// The same, as this figure of the answer.
    #[must_use]
    pub fn of(self, figure: Figure) -> Self {
        let figure = Some(figure);
        Self { figure, ..self }
    }
}

/// A part of a document with a heading.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Section {
    /// Link target: `latency-throughput`. Unique in the document.
    pub id: String,
    /// The heading.
    pub title: String,
    /// What it shows, in a sentence; may be empty.
    pub lead: String,
    /// Its content.
    pub blocks: Vec<Block>,
    /// The extent from which on it is shown: the screen has only what is the answer.
    pub extent: Extent,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "is", content = "of")]
pub enum Block {
    /// A chart.
    Chart(Box<Chart>),
    /// Rows and columns.
    Table(Table),
    /// Findings by cause, with evidence and hints.
    Causes(Vec<CauseFound>),
    /// A paragraph.
    Text(String),
    /// Text to copy: a command, a version line.
    Code(String),
    /// Blocks side by side, if there is space.
    Beside(Vec<Block>),
}

/// A table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Table {
    /// What it shows.
    pub caption: String,
    /// The header.
    pub columns: Vec<Column>,
    /// A text for every column of every row.
    pub rows: Vec<Vec<String>>,
    /// Collapsed until the reader opens it, for long tables.
    pub folded: bool,
    /// The rows that decide: where there is no room for all, those are shown, and others beside the last.
    pub deciding: Vec<usize>,
}

/// A column of a table.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Column {
    /// Its header.
    pub name: String,
    /// True if the cells are numbers, which are right-aligned.
    pub is_number: bool,
    /// True if its end may be cut where there is no room; only of the last column.
    pub may_be_cut: bool,
    /// The extent from which on it is shown: text has few columns.
    pub extent: Extent,
}

/// A chart. All its data can also be read as a table, which is generated from it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chart {
    /// Identifier, unique in the document.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// A text alternative for readers who cannot see the chart: a sentence with figures.
    pub description: String,
    /// The plot.
    pub plot: Plot,
    /// True if text draws it, too; else it has the description.
    pub in_text: bool,
}

/// The kinds of plot.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", tag = "kind")]
pub enum Plot {
    /// Lines, bands, points and bars over one axis.
    Lines(Lines),
    /// Several line plots below each other, with a common horizontal axis and zoom.
    Stack {
        /// The panels, from top to bottom.
        panels: Vec<Lines>,
    },
    /// A heat map.
    Heat(Heat),
    /// Changes with their intervals, one below the other.
    Changes(Changes),
}

/// Ratios with their intervals, on one logarithmic axis with a line where nothing changed.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Changes {
    /// One row for each.
    pub rows: Vec<ChangeRow>,
}

/// A ratio and what it means.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChangeRow {
    /// What changed: `p99 at low load`.
    pub name: String,
    /// The ratio: 1 is no change.
    pub ratio: f64,
    /// Its 95 % interval.
    pub band: Limits,
    /// The meaning in a word or two: `worse`, `no difference shown`.
    pub judgement: String,
    /// The same as a colour.
    pub tone: Status,
}

/// Lines over one axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Lines {
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis on the left.
    pub y: Axis,
    /// A second vertical axis on the right.
    pub right: Option<Axis>,
    /// The drawn series.
    pub series: Vec<Series>,
    /// Labelled straight lines across the plot: the knee, a bound, a change.
    pub marks: Vec<Mark>,
}

/// An axis.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Axis {
    /// What it measures: `IOPS`.
    pub label: String,
    /// Unit of its values.
    pub unit: Unit,
    /// True for a logarithmic axis.
    pub log: bool,
    /// Minimum and maximum value that must be visible.
    pub range: Option<(f64, f64)>,
}

/// A drawn series of values.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Series {
    /// Its name in the legend.
    pub name: String,
    /// How it is drawn.
    pub shape: Shape,
    /// True for a lighter continuation of the previous series, with the same marker and legend
    /// entry.
    pub faint: bool,
    /// True if it uses the axis on the right.
    pub at_right: bool,
    /// Index of one of eight colours; `None` for the next colour.
    pub colour: Option<u8>,
    /// Horizontal positions, ascending.
    pub x: Vec<f64>,
    /// Values; `None` is a gap.
    pub y: Vec<Option<f64>>,
    /// The 95 % interval of each value; empty if there are none.
    pub band: Vec<Option<Limits>>,
    /// The tooltip of each value; empty for the figures alone.
    pub labels: Vec<String>,
    /// How values that share a place are combined.
    pub merge: Merge,
}

/// How values are combined if there are too many to show each.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Merge {
    /// Their median.
    #[default]
    Median,
    /// Their minimum.
    Least,
    /// Their maximum.
    Greatest,
}

impl Merge {
    /// Combines finite values; `None` if there are none.
    pub fn of(self, values: &[f64]) -> Option<f64> {
        let finite: Vec<f64> = values
            .iter()
            .copied()
            .filter(|value| value.is_finite())
            .collect();
        match self {
            Self::Median => median(&finite),
            Self::Least => finite.into_iter().reduce(f64::min),
            Self::Greatest => finite.into_iter().reduce(f64::max),
        }
    }
}

/// How a series is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Shape {
    /// A line, with points if there are few.
    #[default]
    Line,
    /// Points alone.
    Points,
    /// Bars starting at the axis.
    Bars,
    /// A line that stays level from one value to the next.
    Steps,
    /// A line with the space below it filled, stacked on the previous series: fractions of a whole.
    Stacked,
    /// A thin dashed line: the values of a law or a fit.
    Dashed,
}

/// A straight line across a plot.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Mark {
    /// Its position: on the horizontal axis if `upright`, else on the vertical one.
    pub at: f64,
    /// End of a range that begins at `at`; `None` for a line.
    pub to: Option<f64>,
    /// True for a vertical line.
    pub upright: bool,
    /// Its label.
    pub label: String,
    /// Its meaning, which determines its colour.
    pub tone: Status,
}

/// A heat map.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Heat {
    /// Label of the columns.
    pub x_label: String,
    /// Header of each column.
    pub columns: Vec<String>,
    /// Label of the rows.
    pub y_label: String,
    /// Header of each row, from bottom to top.
    pub rows: Vec<String>,
    /// True if the quantity of the rows increases downwards, as in a calendar with the first day
    /// at the top.
    pub downward: bool,
    /// Values by row, then by column; `None` if nothing was measured.
    pub values: Vec<Vec<Option<f64>>>,
    /// The unit of the values.
    pub unit: Unit,
    /// Label of the values: `IOPS of small reads`.
    pub label: String,
    /// True for a logarithmic colour scale.
    pub log: bool,
    /// Minimum range of the colour scale, so that small differences have similar colours.
    pub range: Option<(f64, f64)>,
    /// True to write the value into each cell, for few cells.
    pub written: bool,
}
