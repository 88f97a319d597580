//! Renders a document as one self-contained HTML file: all text is in it as text; its script draws
//! charts from data in it.
//!
//! Input: a [`Document`]. Output: HTML that loads nothing. Without its script it is still complete,
//! because a table below each chart has its figures.

mod changes;
pub(crate) mod escape;
mod figures;
mod heat;

use super::document::{
    Block, CauseFound, Chart, Conclusion, Document, Headline, Plot, RunTrust, Section, Status,
    Table,
};
use super::parts;
use base64::{Engine, prelude::BASE64_STANDARD};
use rigel_analyse::{BoundVerdict, TrustLevel};
use rigel_model::{Finding, Severity, Weight};
use sha2::{Digest, Sha256};
use std::fmt::Write;

const STYLE: &str = include_str!("assets/rigel.css");
const SCRIPT: &str = concat!(
    "(() => {\n'use strict';\n",
    include_str!("assets/base.js"),
    include_str!("assets/axes.js"),
    include_str!("assets/drawing.js"),
    include_str!("assets/lines.js"),
    include_str!("assets/heat.js"),
    include_str!("assets/page.js"),
    "})();\n"
);
const CHARTS_STYLE: &str = include_str!("assets/uplot/uPlot.min.css");
const CHARTS_SCRIPT: &str = include_str!("assets/uplot/uPlot.iife.min.js");
const CHARTS_LICENCE: &str = include_str!("assets/uplot/LICENSE");

/// The first bytes of a page.
const OPENING: &str = "<!doctype html>\n";
/// What makes a page Rigel's: among its first bytes.
const GENERATOR: &str = "<meta name=\"generator\" content=\"rigel\">";
/// Bytes at the beginning of a page that contain the mark.
const MARKED: usize = 200;

/// True if a file that begins so is a page of Rigel's.
pub fn begins_page(begins: &str) -> bool {
    let mark = begins.find(GENERATOR);
    begins.starts_with(OPENING) && mark.is_some_and(|at| at + GENERATOR.len() <= MARKED)
}

/// Renders a document as one HTML file.
pub fn render(document: &Document) -> String {
    let document = &document.in_words();
    let title = escape::html(&document.title);
    let style = format!("\n{CHARTS_STYLE}\n{STYLE}");
    let scripts = [
        format!("/*\n{CHARTS_LICENCE}*/\n{CHARTS_SCRIPT}"),
        format!("\n{SCRIPT}"),
    ];
    let sections: String = document.sections.iter().map(section).collect();
    format!(
        "{OPENING}<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n{GENERATOR}\n<meta \
         http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n<meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" \
         content=\"light dark\">\n<title>{title}</title>\n<link rel=\"icon\" \
         href=\"data:,\">\n<style>{style}</style>\n</head>\n<body>\n<a class=\"skip\" \
         href=\"#answer\">To the answer</a>\n<header>\n<h1>{heading}</h1>\n<button \
         type=\"button\" id=\"theme\" hidden>Dark</button>\n</header>\n{about}<div \
         class=\"page\">\n{contents}<main>\n{answer}{sections}</main>\n</div>\n<footer><p>Made by \
         Rigel {version} from the journal of the run. This file is complete: it loads nothing. \
         Charts are drawn by uPlot 1.6.32, © 2022 Leon Sorokin, under the MIT \
         licence.</p></footer>\n<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n",
        scripts[0],
        scripts[1],
        policy = policy(&style, &scripts),
        version = env!("CARGO_PKG_VERSION"),
        heading = escape::html(&document.heading),
        about = match escape::html(&document.about) {
            none if none.is_empty() => none,
            about => format!("<p class=\"about\">{about}</p>\n"),
        },
        contents = contents(&document.sections),
        answer = answer(document),
    )
}

/// Content security policy: a browser may run and load only the page's own style and scripts,
/// identified by their hashes. This protects readers if any text of a journal ever gets past the
/// escaping. Colours of single cells are in attributes, which cannot load anything.
fn policy(style: &str, scripts: &[String; 2]) -> String {
    let hash = |text: &str| format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(text)));
    format!(
        "default-src 'none'; script-src {} {}; style-src {}; style-src-attr 'unsafe-inline'; \
         img-src data:; base-uri 'none'; form-action 'none'",
        hash(&scripts[0]),
        hash(&scripts[1]),
        hash(style),
    )
}

fn contents(sections: &[Section]) -> String {
    let link = |section: &Section| {
        format!(
            "<li><a href=\"#{}\">{}</a></li>",
            escape::id(&section.id),
            escape::html(&section.title)
        )
    };
    let links: String = sections.iter().map(link).collect();
    format!(
        "<nav aria-label=\"Contents\"><ul><li><a \
         href=\"#answer\">Answer</a></li>{links}</ul></nav>\n"
    )
}

fn answer(document: &Document) -> String {
    let of_trust = document.trust.as_ref();
    let headlines = document.headlines.iter();
    let figures: String = headlines.map(|one| headline(one, of_trust)).collect();
    let figures = if figures.is_empty() {
        figures
    } else {
        format!("<dl class=\"headlines\">{figures}</dl>\n")
    };
    let (first, more) = first_sentence(&document.conclusion.sentence);
    let paragraph = |text: &str| match text {
        "" => String::new(),
        text => format!("<p class=\"more\">{}</p>\n", escape::prose(text)),
    };
    let more = document
        .standing
        .iter()
        .map(|text| paragraph(text))
        .collect::<String>()
        + &paragraph(more);
    format!(
        "<section id=\"answer\" aria-labelledby=\"answer-title\" tabindex=\"-1\">\n<h2 \
         id=\"answer-title\" class=\"unseen\">Answer</h2>\n<p class=\"answer\">{}{}</p>\n\
         {}{figures}{more}</section>\n",
        document.outcome.map_or_else(String::new, mark),
        escape::prose(first),
        document.trust.as_ref().map_or_else(String::new, trust),
    )
}

/// The mark of an outcome, before the answer.
fn mark(outcome: BoundVerdict) -> String {
    let class = class_of(Conclusion::of_outcome(outcome).status);
    let mark = outcome.mark();
    format!("<span class=\"tone {class}\" aria-hidden=\"true\">{mark}</span> ")
}

/// The class of what has this tone.
fn class_of(tone: Status) -> &'static str {
    match tone {
        Status::Good => "good",
        Status::Plain => "plain",
        Status::Warning => "warning",
        Status::Bad => "bad",
    }
}

/// The class and the sign of a level of trust.
fn sign_of(level: TrustLevel) -> (&'static str, &'static str) {
    match level {
        TrustLevel::Good => ("good", "✓"),
        TrustLevel::NotChecked => ("plain", "?"),
        TrustLevel::WithCare => ("warning", "!"),
        TrustLevel::DoNotUse => ("bad", "✕"),
    }
}

/// The line of trust, as the text has it, after a sign.
fn trust(trust: &RunTrust) -> String {
    let (class, sign) = sign_of(trust.level);
    format!(
        "<p class=\"trust {class}\"><span class=\"tone\" aria-hidden=\"true\">{sign}</span> \
         {}</p>\n",
        escape::prose(&trust.sentence())
    )
}

/// Splits off the first sentence. A full stop ends a sentence if a space and a capital letter
/// follow.
fn first_sentence(text: &str) -> (&str, &str) {
    let is_end = |(at, _): &(usize, &str)| text[at + 2..].starts_with(char::is_uppercase);
    text.match_indices(". ")
        .find(is_end)
        .map_or((text, ""), |(at, _)| (&text[..=at], &text[at + 2..]))
}

/// A figure in large type, with a mark if its own trust differs from the answer's.
fn headline(figure: &Headline, of_answer: Option<&RunTrust>) -> String {
    let own = figure.figure.zip(of_answer);
    let own = own.map(|(figure, of_answer)| (of_answer.level_of(figure), of_answer.level));
    let mark = own.filter(|(own, of_answer)| own != of_answer);
    let mark = mark.map_or_else(String::new, |(own, _)| {
        let (class, sign) = sign_of(own);
        format!(
            "<dd class=\"trust {class}\"><span class=\"tone\" aria-hidden=\"true\">{sign}</span> {}</dd>",
            own.words()
        )
    });
    let optional = |class: &str, text: &str| {
        if text.is_empty() {
            String::new()
        } else {
            format!("<dd class=\"{class}\">{}</dd>", escape::html(text))
        }
    };
    let exact = if figure.exact.is_finite() {
        figure.exact.to_string()
    } else {
        String::new()
    };
    let class = match figure.tone {
        Status::Plain => String::new(),
        tone => format!(" class=\"{}\"", class_of(tone)),
    };
    format!(
        "<div data-name=\"{}\" data-value=\"{exact}\"{class}><dt>{}</dt><dd \
         class=\"value\">{}</dd>{}{}{mark}</div>",
        escape::html(&figure.name),
        escape::html(&figure.label),
        escape::html(&figure.value),
        optional("interval", &figure.interval),
        optional("note", &figure.note),
    )
}

fn section(section: &Section) -> String {
    let id = escape::id(&section.id);
    let lead = if section.lead.is_empty() {
        String::new()
    } else {
        format!("<p class=\"lead\">{}</p>\n", escape::prose(&section.lead))
    };
    let blocks: String = section.blocks.iter().map(block).collect();
    format!(
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 \
         id=\"{id}-title\">{}</h2>\n{lead}{blocks}</section>\n",
        escape::html(&section.title)
    )
}

fn block(block: &Block) -> String {
    match block {
        Block::Chart(chart) => figure(chart),
        Block::Table(table) => whole_table(table),
        Block::Causes(causes) => list(causes),
        Block::Text(text) => format!("<p>{}</p>\n", escape::prose(text)),
        Block::Code(code) => {
            format!(
                "<div class=\"code\"><pre tabindex=\"0\" role=\"region\" aria-label=\"Text to \
                 copy\"><code>{}</code></pre></div>\n",
                escape::html(code)
            )
        }
        Block::Beside(blocks) => {
            let inside: Vec<String> = blocks.iter().map(self::block).collect();
            format!(
                "<div class=\"beside\"><div>{}</div></div>\n",
                inside.join("</div><div>")
            )
        }
    }
}

/// One item for each cause: its strongest evidence, and the others folded.
fn list(causes: &[CauseFound]) -> String {
    let item = |found: &CauseFound| {
        let (class, sign, word) = severity_words(found.severity);
        let is_aside = found.weight == Weight::Aside;
        // What changes no decision is folded as a whole.
        let (open, folded) = found.findings.split_at(usize::from(!is_aside));
        let more = match (folded.len(), is_aside) {
            (0, _) => String::new(),
            (count, _) => {
                let summary = match (is_aside, count) {
                    (true, 1) => "1 remark".to_owned(),
                    (true, _) => format!("{count} remarks"),
                    (false, _) => format!("{count} more"),
                };
                let inside: String = folded.iter().map(finding).collect();
                format!("<details><summary>{summary}</summary><ul>{inside}</ul></details>")
            }
        };
        let open: String = open.iter().map(finding).collect();
        let open = if open.is_empty() {
            open
        } else {
            format!("<ul>{open}</ul>")
        };
        format!(
            "<li class=\"{class}\"><p><span class=\"tone\"><span aria-hidden=\"true\">{sign}</span> \
             {word}</span> <b>{}</b></p>{open}{more}</li>\n",
            escape::prose(&parts::capital(&found.title()))
        )
    };
    let items: String = causes.iter().map(item).collect();
    format!("<ul class=\"findings\">{items}</ul>\n")
}

/// CSS class, sign and word of a severity.
fn severity_words(severity: Severity) -> (&'static str, &'static str, &'static str) {
    match severity {
        Severity::Note => ("plain", "•", "Note"),
        Severity::Warning => ("warning", "!", "Warning"),
        Severity::Refusal => ("bad", "✕", "Refusal"),
    }
}

fn finding(finding: &Finding) -> String {
    let hint = if finding.hint.is_empty() {
        String::new()
    } else {
        format!(
            "<p class=\"hint\"><b>Hint</b> {}</p>",
            escape::prose(&finding.hint)
        )
    };
    let name = escape::html(&finding.name);
    format!(
        "<li class=\"{}\" data-name=\"{name}\"><p><b>{name}</b> {}</p>{hint}</li>\n",
        severity_words(finding.severity).0,
        escape::prose(&finding.what)
    )
}

fn whole_table(table: &Table) -> String {
    if table.folded {
        let rows = table.rows.len();
        let count = if rows == 1 {
            "1 row".to_owned()
        } else {
            format!("{rows} rows")
        };
        return format!(
            "<details><summary>{} <span class=\"count\">{count}</span></summary>{}</details>\n",
            escape::html(&table.caption),
            self::table(table, true)
        );
    }
    self::table(table, false)
}

/// A table in its own box, which scrolls if the page is narrow. Its caption is hidden if a summary
/// repeats it.
fn table(table: &Table, captioned: bool) -> String {
    let class = |column: usize| {
        if table
            .columns
            .get(column)
            .is_some_and(|column| column.is_number)
        {
            " class=\"number\""
        } else {
            ""
        }
    };
    let mut html = String::from("<div class=\"scroll\" tabindex=\"0\" role=\"region\"");
    let _ = write!(
        html,
        " aria-label=\"{}\"><table>",
        escape::html(&table.caption)
    );
    if !table.caption.is_empty() {
        let hidden = if captioned { " class=\"unseen\"" } else { "" };
        let _ = write!(
            html,
            "<caption{hidden}>{}</caption>",
            escape::html(&table.caption)
        );
    }
    html += "<thead><tr>";
    for (index, column) in table.columns.iter().enumerate() {
        let _ = write!(
            html,
            "<th scope=\"col\"{}>{}</th>",
            class(index),
            escape::html(&column.name)
        );
    }
    html += "</tr></thead><tbody>\n";
    for row in &table.rows {
        html += "<tr>";
        for (index, text) in row.iter().enumerate() {
            let text = escape::html(&if table.columns[index].is_number {
                unbroken(text)
            } else {
                text.clone()
            });
            let (tag, scope) = if index == 0 {
                ("th", " scope=\"row\"")
            } else {
                ("td", "")
            };
            let _ = write!(html, "<{tag}{scope}{}>{text}</{tag}>", class(index));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// Keeps a figure and its unit on one line; its interval may go to the next line.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
        .replace("\u{a0}(", " (")
        .replace("\u{a0}[", " [")
        .replace("\u{a0}±", " ±")
}

fn figure(chart: &Chart) -> String {
    let id = escape::id(&chart.id);
    let title = escape::html(&chart.title);
    let description = if chart.description.is_empty() {
        String::new()
    } else {
        format!("<p>{}</p>", escape::prose(&chart.description))
    };
    let kind = match &chart.plot {
        Plot::Lines(_) => "lines",
        Plot::Stack { .. } => "stack",
        Plot::Heat(_) => "heat",
        Plot::Changes(_) => "changes",
    };
    let head = format!(
        "<figure id=\"chart-{id}\" class=\"chart \
         {kind}\">\n<figcaption><h3>{title}</h3>{description}</figcaption>\n"
    );
    let drawing = match &chart.plot {
        // Their cells are already a table.
        Plot::Heat(of) if of.written => return format!("{head}{}</figure>\n", written(of)),
        Plot::Changes(of) => {
            return format!("{head}{}</figure>\n", changes::rows(&chart.title, of));
        }
        Plot::Heat(of) => heat::legend(of),
        Plot::Lines(_) | Plot::Stack { .. } => String::new(),
    };
    let mut data = figures::data(&chart.plot);
    if kind == "heat" {
        data["scale"] = heat::stops().into();
    }
    let label = escape::html(&format!("{}. {}", chart.title, chart.description));
    format!(
        "{head}<div class=\"plot\" role=\"img\" aria-label=\"{label}\"></div>{drawing}\n{}<script \
         type=\"application/json\">{}</script>\n</figure>\n",
        as_table(chart),
        escape::json(&data)
    )
}

fn written(of: &super::document::Heat) -> String {
    format!(
        "<p class=\"axis\">{} {}</p>{}<p class=\"axis across\">{} →</p>{}",
        escape::html(&of.y_label),
        if of.downward { "↓" } else { "↑" },
        heat::grid(of),
        escape::html(&of.x_label),
        heat::legend(of)
    )
}

fn as_table(chart: &Chart) -> String {
    let (table, cut) = figures::table(&chart.title, &chart.plot);
    let cut = cut
        .map(|cut| format!("<p>{}</p>", escape::html(&cut)))
        .unwrap_or_default();
    let marks: Vec<String> = figures::marks(&chart.plot)
        .iter()
        .map(|mark| escape::html(mark))
        .collect();
    let marks = match marks.join("</li><li>") {
        none if none.is_empty() => none,
        marks => format!("<p>Marked:</p><ul><li>{marks}</li></ul>"),
    };
    format!(
        "<details class=\"figures\"><summary>Figures as a \
         table</summary>{cut}{}{marks}</details>\n",
        self::table(&table, true)
    )
}
