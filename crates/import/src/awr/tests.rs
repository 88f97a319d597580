//! Tests of the readers of reports of databases.

use super::*;
use proptest::prelude::*;
use rigel_model::record::database::{Printed, WaitBucket, WaitHistogram, WaitRow, WaitTable};
use std::fmt::Write;

// Made for these tests, in the layout of 11.2.0.4: no figures of a real database.
const TEXT: &str = include_str!("../../../../tests/imports/awr_synthetic.txt");
const HTML: &str = include_str!("../../../../tests/imports/awr_synthetic.html");
const STATSPACK: &str = include_str!("../../../../tests/imports/statspack_synthetic.lst");

/// One report of a text as `rigel import` reads it, with control characters made visible.
fn one(text: &str) -> DatabaseReport {
    let text = rigel_model::escaped(text);
    let read = read(Source {
        name: "report",
        text: &text,
    });
    match read.unwrap().remove(0).figures {
        Figures::Database(mut reports) => reports.remove(0),
        other => panic!("{other:?}"),
    }
}

/// All reports of a text, and the notes.
fn all(text: &str) -> (Vec<DatabaseReport>, Vec<String>) {
    let text = rigel_model::escaped(text);
    let mut read = read(Source {
        name: "report",
        text: &text,
    })
    .unwrap();
    assert_eq!(read.len(), 1, "{read:?}");
    assert_eq!(read[0].sources, ["report"]);
    let one = read.remove(0);
    match one.figures {
        Figures::Database(reports) => (reports, one.notes),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_report_whose_heads_are_cells_like_others_is_the_same_report() {
    let cells = HTML.replace("<th", "<td").replace("</th>", "</td>");
    assert_ne!(cells, HTML);
    assert_eq!(one(&cells), one(HTML));
}

#[test]
fn each_report_of_a_file_is_a_report() {
    for text in [TEXT, HTML, STATSPACK] {
        let later = text.replace("102", "103").replace("101", "102");
        for between in ["", "\n", "Report written to x\nSQL> @awrrpt\n"] {
            let (reports, _) = all(&format!("{text}{between}{later}"));
            assert_eq!(reports.len(), 2, "{between}");
            let expected = [(1, one(text)), (2, one(&later))];
            for ((number, mut expected), report) in expected.into_iter().zip(reports) {
                expected.file = format!("report (report {number} of 2)");
                assert_eq!(report, expected, "{between}");
            }
        }
    }
}

#[test]
fn a_file_keeps_its_reports_beside_what_is_not_read() {
    let addm = "ADDM Report for Task 'TASK_12'\nand its advice\n";
    let (reports, notes) = all(&format!("{TEXT}{addm}"));
    assert_eq!(reports.len(), 1);
    assert!(
        notes.iter().any(|note| note.contains("report 2 of 2")
            && note.contains("an ADDM report: advice, no figures")),
        "{notes:?}"
    );
    let many = "STATSPACK report for\n".repeat(REPORTS_MAX + 1);
    assert!(refused(&many).contains("has 1001 reports, and the limit is 1000"));
}

fn refused(text: &str) -> String {
    read(Source {
        name: "report",
        text,
    })
    .unwrap_err()
    .to_string()
}

/// The same with all that may differ between text and HTML left out.
fn without_digits(report: &DatabaseReport) -> (Vec<String>, Vec<(String, Option<f64>)>) {
    let waits = |row: &WaitRow| format!("{:?} {} {:?}", row.of, row.event, row.waits);
    let total = |printed: Option<Printed>| printed.map(|printed| printed.value);
    (
        report.waits.iter().map(waits).collect(),
        report
            .statistics
            .iter()
            .map(|row| (row.name.clone(), total(row.total)))
            .collect(),
    )
}

fn meets(one: Option<Printed>, other: Option<Printed>) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => {
            (one.value - other.value).abs() <= (one.half + other.half) * 1.01
        }
        _ => false,
    }
}

#[test]
fn text_and_html_of_the_same_snapshots_give_the_same_figures() {
    let (text, html) = (one(TEXT), one(HTML));
    assert_eq!(text.identity, html.identity);
    assert_eq!(text.window, html.window);
    assert_eq!(without_digits(&text), without_digits(&html));
    assert_eq!(text.histograms.len(), html.histograms.len());
    for (one, other) in text.histograms.iter().zip(&html.histograms) {
        assert_eq!((&one.event, &one.buckets), (&other.event, &other.buckets));
    }
    assert_eq!(text.functions.len(), 7);
    for (one, other) in [
        (&text.functions, &html.functions),
        (&text.file_types, &html.file_types),
    ]
    .into_iter()
    .flat_map(|(one, other)| one.iter().zip(other))
    {
        assert_eq!(one.name, other.name);
        assert!(
            meets(one.reads_per_s, other.reads_per_s),
            "{one:?} {other:?}"
        );
        assert!(
            meets(one.write_mib_per_s, other.write_mib_per_s),
            "{one:?} {other:?}"
        );
        assert!(meets(one.mean_us, other.mean_us), "{one:?} {other:?}");
    }
    for (one, other) in text.waits.iter().zip(&html.waits) {
        assert!(meets(one.percent, other.percent), "{one:?} {other:?}");
        assert!(meets(one.mean_us, other.mean_us), "{one:?} {other:?}");
    }
    assert_eq!(text.parameters, html.parameters);
}

#[test]
fn identity_and_window_are_those_of_the_first_page() {
    let found = one(TEXT);
    let who = &found.identity;
    assert_eq!(who.db_name.as_deref(), Some("SYNTH"));
    assert_eq!(who.instance.as_deref(), Some("synth1"));
    assert_eq!(who.release.as_deref(), Some("11.2.0.4.0"));
    assert_eq!(
        (who.cpus, who.cores, who.block_bytes),
        (Some(8), Some(4), Some(8192))
    );
    assert_eq!(who.is_rac, Some(false));
    let window = &found.window;
    assert_eq!((window.begin_id, window.end_id), (Some(101), Some(102)));
    assert_eq!(
        window.begin.unwrap().to_string(),
        "2026-03-02T10:00:01+00:00"
    );
    assert!((window.elapsed_s.unwrap().value - 3613.2).abs() < 1e-6);
    assert_eq!(found.cut_after, None);
}

#[test]
fn statspack_names_its_database_in_the_titles_of_sections() {
    let found = one(STATSPACK);
    assert_eq!(found.kind, ReportKind::Statspack);
    assert_eq!(found.identity.db_name.as_deref(), Some("SYNTH"));
    assert_eq!(found.identity.cpus, Some(8));
    let cpu = (found.load_profile.iter()).find(|row| row.name.starts_with("DB CPU of"));
    assert!((cpu.unwrap().value.value - 1200.0).abs() < 1e-6);
    assert_eq!(found.notes, [""; 0]);
    let both = |row: &&WaitRow| row.of == WaitTable::Both && row.event == "db file sequential read";
    let row = found.waits.iter().find(both).unwrap();
    assert!((row.waits.unwrap().value - 920_000.0).abs() < 1e-9);
    assert!(
        found
            .histograms
            .iter()
            .any(|row| row.event == "log file parallel write")
    );
}

const HOST: &str =
    "     synthetic-report Linux x86 64-bit           8     4       1         62.8\n";

#[test]
fn a_folded_line_of_the_host_is_read_by_its_words() {
    let expected = one(STATSPACK).identity;
    assert!(STATSPACK.contains(HOST));
    let heads = "Host Name             Platform                CPUs Cores Sockets   Memory (G)\n\
                     ~~~~ ---------------- ---------------------- ----- ----- ------- ------------\n";
    assert!(STATSPACK.contains(heads));
    let folded_heads = "Host Name             Platform\n~~~~ ---------------- \
                            ----------------------\n CPUs Cores Sockets   Memory (G)\n\
                            ----- ----- ------- ------------\n";
    let folded = "     synthetic-report Linux x86 64-bit\n    8     4       1         62.8\n";
    for text in [
        STATSPACK.replace(HOST, folded),
        STATSPACK.replace(
            HOST,
            &folded.replace("    8  ", "                         8  "),
        ),
        STATSPACK.replace(heads, folded_heads).replace(HOST, folded),
    ] {
        assert_eq!(one(&text).identity, expected, "{text}");
    }
    let long = one(&STATSPACK.replace("synthetic-report", "synthetic-report-with-a-long-name"));
    assert_eq!(
        long.identity.host.as_deref(),
        Some("synthetic-report-with-a-long-name")
    );
    assert_eq!(long.identity.platform.as_deref(), Some("Linux x86 64-bit"));
    // Which of the four it is cannot be known.
    let short = one(&STATSPACK.replace(HOST, &folded.replace("    1   ", "")));
    let who = &short.identity;
    assert_eq!((who.cpus, who.cores, who.memory_gib), (None, None, None));
    let says = |note: &String| note.contains("3 of 4 numbers");
    assert!(short.notes.iter().any(says), "{:?}", short.notes);
}

/// As `unexpand -a` and `set tab on` write it.
fn tabbed(text: &str) -> String {
    const TAB: usize = 8;
    let mut tabbed = String::new();
    for line in text.lines() {
        let cells: Vec<char> = line.chars().collect();
        for piece in cells.chunks(TAB) {
            let piece: String = piece.iter().collect();
            let text = piece.trim_end_matches(' ');
            let is_tab = piece.len() == TAB && piece.len() > text.len() + 1;
            tabbed += if is_tab { text } else { &piece };
            tabbed += if is_tab { "\t" } else { "" };
        }
        tabbed.push('\n');
    }
    tabbed
}

#[test]
fn tabs_in_place_of_blanks_change_nothing() {
    for text in [TEXT, STATSPACK] {
        let tabbed = tabbed(text);
        assert!(tabbed.contains('\t'));
        assert_eq!(one(&tabbed), one(text));
    }
}

#[test]
fn a_report_of_names_without_figures_is_refused() {
    let scrambled = STATSPACK.replace(|c: char| c.is_ascii_digit() || c == '.', "x");
    assert!(refused(&scrambled).contains("has no figures of the database"));
}

#[test]
fn a_number_that_begins_left_of_its_column_is_whole() {
    let row = "db file scattered read           60,000     0        270       4";
    assert!(TEXT.contains(row));
    let left = row.replace("     0        270", "      12345678.25");
    let report = one(&TEXT.replace(row, &left));
    let waits =
        |row: &&WaitRow| row.of == WaitTable::Foreground && row.event == "db file scattered read";
    let time = report.waits.iter().find(waits).unwrap().time_s;
    assert!(
        (time.unwrap().value - 12_345_678.25).abs() < 1e-6,
        "{time:?}"
    );
}

#[test]
fn a_disfigured_report_gives_every_figure_unchanged() {
    let (text, html) = (one(TEXT), one(HTML));
    let mut paged = String::new();
    for (at, line) in TEXT.replace('\u{c}', "").lines().enumerate() {
        if at % 47 == 46 {
            paged.extend(["\nOUTPUT\n", &"-".repeat(80), "\n"]);
        }
        paged.extend([line, "   \n"]);
    }
    for disfigured in [TEXT.replace('\n', "\r\n"), TEXT.replace('\u{c}', ""), paged] {
        assert_eq!(one(&disfigured), text, "{disfigured}");
    }
    for disfigured in [
        HTML.replace("</td>", ""),
        HTML.replace("</tr>", "").replace("</td>", ""),
        HTML.replace("<td", "<TD")
            .replace("<table", "<TABLE")
            .replace("<h3", "<H3"),
        HTML.replace("class=\"awrc\"", "class=awrc id=\">=2m\""),
        HTML.replace('\n', "\r\n"),
        format!("SQL> @awrrpt\nSpecify the Report Name\n{HTML}\nReport written to x\nSQL>"),
    ] {
        assert_eq!(one(&disfigured), html, "{disfigured}");
    }
}

#[test]
fn what_stands_before_a_cut_is_read_and_the_last_section_is_named() {
    let whole = one(TEXT);
    let cut = &TEXT[..TEXT.find("IOStat by Function").unwrap()];
    let found = one(cut);
    assert_eq!(
        found.cut_after.as_deref(),
        Some("Other Instance Activity Stats")
    );
    assert_eq!(
        (found.waits, found.statistics),
        (whole.waits, whole.statistics)
    );
    assert!(found.functions.is_empty());
    assert!(refused(&TEXT[..40]).contains("ends before its first section"));
}

#[test]
fn kinds_without_the_wanted_figures_are_refused_by_name() {
    for (text, part) in [
        (
            "WORKLOAD REPOSITORY COMPARE PERIOD REPORT\n",
            "two periods in one report",
        ),
        (
            "<html><h1>WORKLOAD REPOSITORY SQL Report</h1>",
            "the figures of one statement",
        ),
        ("   ADDM Report for Task 'TASK_12'\n", "advice, no figures"),
        (
            "WORKLOAD REPOSITORY REPORT (RAC)\n",
            "global report as text",
        ),
        (
            "<title>ASH Report - From 1 to 2</title>",
            "samples of sessions",
        ),
        (
            "WORKLOAD REPOSITORY report for\nDB Name  DB Id  Inst num\nX  1  1\nBack to Top\n",
            "text of a page",
        ),
    ] {
        assert!(is_like(text), "{text}");
        assert!(refused(text).contains(part), "{}", refused(text));
    }
    assert!(!is_like("hello"));
}

#[test]
fn every_kind_is_told_by_its_beginning() {
    for (text, kind) in [
        (TEXT, TextKind::Report(ReportKind::AwrText)),
        (HTML, TextKind::Report(ReportKind::AwrHtml)),
        (STATSPACK, TextKind::Report(ReportKind::Statspack)),
        (
            "<h1>WORKLOAD REPOSITORY REPORT (RAC)</h1>",
            TextKind::Report(ReportKind::AwrGlobal),
        ),
        (
            "<h1>WORKLOAD REPOSITORY PDB report (root snapshots)</h1>",
            TextKind::Report(ReportKind::AwrPdb),
        ),
        ("~~BEGIN-OS-INFORMATION~~\n", TextKind::Capture),
    ] {
        assert_eq!(kind_of(text), Some(kind));
    }
    // A report has whole sections of others near its end.
    let with_addm = TEXT.replace(
        "End of Report",
        "ADDM Report for Task 'TASK_1'\nEnd of Report",
    );
    assert_eq!(
        kind_of(&with_addm),
        Some(TextKind::Report(ReportKind::AwrText))
    );
}

/// A part of a report as `rigel import` recognises it.
fn part(text: &str) -> DatabaseReport {
    let source = Source {
        name: "pasted.txt",
        text,
    };
    let columns = crate::csv_columns::Columns::default();
    let found = crate::read(&[source], None, &columns).unwrap().remove(0);
    match found.figures {
        Figures::Database(mut reports) => reports.remove(0),
        other => panic!("{other:?}"),
    }
}

const TOP_10: &str = "\
Top 10 Foreground Events by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                           Tota    Wait   % DB
Event                                 Waits Time Avg(ms)   time Wait Class
------------------------------ ------------ ---- ------- ------ ----------
db file sequential read             920,000 2040       2   51.1 User I/O
log file sync                        98,000  118       1    2.9 Commit
";

const BACKGROUND: &str = "\
Background Wait Events
-> ordered by wait time desc

                                        %Time Total Wait    wait    Waits   % bg
Event                             Waits -outs   Time (s)    (ms)     /txn   time
-------------------------- ------------ ----- ---------- ------- -------- ------
log file parallel write          99,000     0         79       1      1.0   20.1
";

const STATSPACK_5: &str = "\
Top 5 Timed Events                                                    Avg %Total
~~~~~~~~~~~~~~~~~~                                                   wait   Call
Event                                            Waits    Time (s)   (ms)   Time
----------------------------------------- ------------ ----------- ------ ------
db file sequential read                        920,000       2,040      2   51.1
";

#[test]
fn a_pasted_section_is_read_with_prose_around_and_indented() {
    let event = |report: &DatabaseReport| report.waits[0].event.clone();
    let indented = |text: &str| {
        let lines = text.lines().map(|line| format!("    {line}\n"));
        lines.collect::<String>()
    };
    for (text, first) in [
        (TOP_10, "db file sequential read"),
        (BACKGROUND, "log file parallel write"),
        (STATSPACK_5, "db file sequential read"),
    ] {
        for text in [
            text.to_string(),
            indented(text),
            format!("We looked at the report.\n\n{text}\nWhy does it wait?\n"),
        ] {
            let report = part(&text);
            assert_eq!(report.kind, ReportKind::Fragment);
            assert_eq!(event(&report), first, "{text}");
            assert_eq!((report.cut_after, report.window.elapsed_s), (None, None));
            assert!(
                report.notes[0].contains("no window, so no rates"),
                "{:?}",
                report.notes
            );
        }
    }
    let both = part(&format!("{TOP_10}\n{BACKGROUND}"));
    assert_eq!(both.waits.len(), 3, "{:?}", both.waits);
    assert!(
        both.notes[0].starts_with("part of a report: Top 10 Foreground Events"),
        "{:?}",
        both.notes
    );
    assert!(!is_fragment("Top of the world events\n\nhello\n"));
}

fn refusal(text: &str) -> String {
    let columns = crate::csv_columns::Columns::default();
    let source = Source { name: "f", text };
    crate::read(&[source], None, &columns)
        .unwrap_err()
        .to_string()
}

#[test]
fn a_report_without_a_figure_of_io_is_refused() {
    let page = |title: &str| {
        format!(
            "<html><head><title>{title}</title></head><body><h2>Top Wait Events</h2><table><tr>\
                 <th>Event</th><th>Waits</th><th>Total Wait Time (s)</th></tr><tr><td>DataFileRead\
                 </td><td>1000</td><td>5</td></tr></table></body></html>"
        )
    };
    let refused = refusal(&page("openGauss WDR Workload Diagnosis Report"));
    assert!(
        refused.contains("'f' is a WDR report of openGauss"),
        "{refused}"
    );
    let refused = refusal(&page("Report"));
    assert!(refused.contains("'f' has no figure of I/O"), "{refused}");
    let refused = refusal(&TOP_10.replace("db file", "gc").replace("log file", "gc"));
    assert!(refused.contains("'f' has no figure of I/O"), "{refused}");
    assert_eq!(part(&TOP_10.replace("db file", "gc")).waits.len(), 2);
}

#[test]
fn decimal_commas_are_refused_by_name() {
    let swapped = |text: &str| -> String {
        let swap = |c: char| match c {
            '.' => ',',
            ',' => '.',
            other => other,
        };
        text.chars().map(swap).collect()
    };
    let profile = section(TEXT, "Load Profile", "Transactions:");
    for (whole, part) in [
        (TEXT, "60.22 (mins)"),
        (HTML, "60.22 (mins)"),
        (TEXT, profile),
        (STATSPACK, "60.22 (mins)"),
    ] {
        assert!(whole.contains(part), "{part}");
        let refused = refusal(&whole.replacen(part, &swapped(part), 1));
        assert!(
            refused.contains("'f' has numbers with a decimal comma"),
            "{refused}"
        );
        assert!(refused.contains("nls_numeric_characters"), "{refused}");
    }
}

#[test]
fn a_whole_report_is_not_said_to_end_early() {
    let mut numbered = String::new();
    for (number, line) in TEXT.lines().enumerate() {
        writeln!(numbered, "{number:>6}  {line}").unwrap();
    }
    let refused = refusal(&numbered);
    let end = TEXT
        .lines()
        .position(|line| line.contains("End of Report"))
        .unwrap();
    assert!(!refused.contains("whole file"), "{refused}");
    assert!(
        refused.contains(&format!("such as '{end}' before 'End of Report'")),
        "{refused}"
    );
    let refused = refusal("WORKLOAD REPOSITORY report for\n\nDB Name\n");
    assert!(
        refused.contains("it ends before its first section"),
        "{refused}"
    );
}

#[test]
fn blanks_that_do_not_break_are_blanks() {
    let mail = TEXT.replace(' ', "\u{a0}");
    let text = crate::text("report", mail.into_bytes()).unwrap();
    assert_eq!(one(&text), one(TEXT));
}

/// The section of a report from `heading` to where `end` is.
fn section<'a>(text: &'a str, heading: &str, end: &str) -> &'a str {
    let from = text.find(heading).unwrap();
    let to = text[from..].find(end).unwrap() + from;
    &text[from..to + end.len()]
}

#[test]
fn a_pasted_section_of_html_is_that_of_the_report() {
    let whole = one(HTML);
    let profile = section(HTML, "Load Profile<p />", "</table>");
    let top = section(HTML, "Top 10 Foreground Events", "</table>");
    let histogram = section(HTML, "Wait Event Histogram</h3>", "</table>");
    let bold = format!("<b>{}", profile.replacen("<p />", "</b>\n", 1));
    for text in [
        section(HTML, "<h3 class=\"awr\"><a", "</table>"),
        profile,
        &bold,
        &format!("<p>We looked at it:</p>{profile}<p>Why?</p><h3>{histogram}"),
        &format!("<html><body><h1>An article</h1><h2>A part</h2>{profile}{top}</html>"),
    ] {
        let report = part(text);
        assert_eq!(report.kind, ReportKind::Fragment);
        assert_eq!(report.load_profile, whole.load_profile, "{text}");
        assert_eq!(report.window.elapsed_s, None);
    }
    let is_top = |row: &&WaitRow| row.of == WaitTable::Top;
    assert!(part(top).waits.iter().eq(whole.waits.iter().filter(is_top)));
    let report = part(&format!("<h3>{histogram}"));
    let is_main = |row: &&WaitHistogram| !row.is_detail;
    let expected = whole.histograms.iter().filter(is_main);
    assert!(report.histograms.iter().eq(expected), "{report:?}");
    assert!(report.notes[0].contains("part of a report: Wait Event Histogram"));
    // Nothing above the table: its heads tell which it is, also where they are ordinary cells.
    let table = |section: &str| section[section.find("<table").unwrap()..].to_string();
    let profile = table(profile);
    for text in [
        &profile,
        &profile.replace("th", "td"),
        &format!("<h1>Slow</h1>{profile}"),
    ] {
        assert_eq!(part(text).load_profile, whole.load_profile, "{text}");
    }
    assert!(
        part(&table(top))
            .waits
            .iter()
            .eq(whole.waits.iter().filter(is_top))
    );
    let report = part(&table(histogram));
    let expected = whole.histograms.iter().filter(is_main);
    assert!(report.histograms.iter().eq(expected), "{report:?}");
    // Other pages have tables too.
    for other in [
        "<table><tr><th>Event</th><th>Date</th></tr><tr><td>1</td><td>2</td></tr></table>",
        "<h3>Top of the world</h3><table><tr><td>1</td></tr></table>",
        "<p>Load Profile<table></table>",
    ] {
        assert!(!is_fragment(other), "{other}");
    }
}

#[test]
fn a_report_as_text_in_a_page_is_read_as_text() {
    let escaped = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;");
    let in_page = |text: &str| {
        format!(
            "<html><body><p>Our report:</p>\n<PRE>{}</PRE></html>",
            escaped(text)
        )
    };
    let of = |report: &DatabaseReport| (report.waits.clone(), report.histograms.clone());
    let mut whole = one(TEXT);
    whole.notes.clear();
    let mut read = one(&in_page(TEXT));
    read.notes.clear();
    assert_eq!(read, whole);
    let histogram = section(TEXT, "Wait Event Histogram ", "Wait Event Histogram Detail");
    for text in [TOP_10, BACKGROUND, histogram] {
        let expected = part(text);
        for page in [in_page(text), format!("<pre>{}</pre>", escaped(text))] {
            let report = part(&page);
            assert_eq!(of(&report), of(&expected), "{page}");
            assert_eq!(report.kind, ReportKind::Fragment);
        }
    }
    assert!(!is_fragment("<pre>Load Profile</pre>"));
}

/// Whether each histogram is a detail, and the bounds and shares of its buckets.
type Buckets = (bool, Vec<(Option<f64>, Option<f64>)>);

fn buckets(report: &DatabaseReport) -> Vec<Buckets> {
    let of = |bucket: &WaitBucket| (bucket.high_us, bucket.percent.map(|it| it.value));
    let row = |row: &WaitHistogram| (row.is_detail, row.buckets.iter().map(of).collect());
    report.histograms.iter().map(row).collect()
}

#[test]
fn a_pasted_histogram_has_the_bounds_of_its_release() {
    // 11.2 and 12.1: powers of two of a millisecond.
    let heading = "Wait Event Histogram Detail";
    let old = section(TEXT, "Wait Event Histogram ", heading).trim_end_matches(heading);
    let untitled = old.replace("DB/Inst: SYNTH/synth1  Snaps: 101-102", "");
    let of_two = format!("{old}\n{MICROSECONDS}");
    for text in [old, &untitled, &of_two] {
        let report = part(text);
        let is_read = |row: &&WaitHistogram| row.event == "db file sequential read";
        let row = report.histograms.iter().find(is_read).unwrap();
        let bounds: Vec<_> = row.buckets.iter().map(|bucket| bucket.high_us).collect();
        assert_eq!(bounds[..2], [Some(1000.0), Some(2000.0)]);
        assert_eq!((bounds.len(), row.last_bound_us), (7, Some(1_024_000.0)));
    }
    // 12.2 and later: powers of two of a microsecond.
    let main = vec![
        (Some(128.0), Some(10.5)),
        (Some(256.0), Some(30.0)),
        (Some(512.0), Some(20.0)),
        (None, Some(39.5)),
    ];
    let shortest = vec![
        (Some(32.0), Some(10.0)),
        (Some(64.0), Some(0.5)),
        (None, Some(89.5)),
    ];
    let middle = vec![
        (Some(512.0), Some(60.5)),
        (Some(1024.0), Some(30.0)),
        (Some(32_768.0), Some(0.5)),
        (None, Some(9.0)),
    ];
    let all = format!("{MICROSECONDS}{UP_TO_64_US}{UP_TO_32_MS}");
    assert_eq!(
        buckets(&part(&all)),
        [
            (false, main.clone()),
            (true, shortest.clone()),
            (true, middle.clone())
        ]
    );
    assert_eq!(buckets(&part(MICROSECONDS)), [(false, main)]);
    assert_eq!(buckets(&part(UP_TO_64_US)), [(true, shortest)]);
    assert_eq!(buckets(&part(UP_TO_32_MS)), [(true, middle)]);
    // No head of this one has microseconds, its title tells.
    let longest = UP_TO_32_MS
        .replace("(up to 32 ms)", "(up to 2 sec)")
        .replace(
            " <512  <1ms  <2ms  <4ms  <8ms <16ms <32ms >=32m",
            "<32ms <64ms <1/8s <1/4s <1/2s   <1s   <2s  >=2s",
        );
    assert_eq!(
        buckets(&part(&longest))[0].1,
        [
            (Some(32_768.0), Some(60.5)),
            (Some(65_536.0), Some(30.0)),
            (Some(2_097_152.0), Some(0.5)),
            (None, Some(9.0))
        ]
    );
}

// By hand, in the layout of 12.2 and later, with as many notes as there are.
const MICROSECONDS: &str = "\
Wait Event Histogram
-> K is 1000, M is 1000000
-> .0 is less than .05
   nothing is 0
-> 512 is 512us
-> by name

                                                    % of Waits
                                 -----------------------------------------------
                           Total
Event                      Waits  <8us <16us <32us <64us <128u <256u <512u >=512
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
db file sequential read     920K                          10.5  30.0  20.0  39.5
                          ------------------------------------------------------

";

const UP_TO_64_US: &str = "\
Wait Event Histogram (up to 64 us)
-> K is 1000, M is 1000000
-> of all waits:
   us is a microsecond
   ms is 1024 of them
-> idle ones too
-> .0 is less than .05
   nothing is 0
-> by name

                                                 % of Total Waits
                                 -----------------------------------------------
                           Waits
                           up to
Event                       64us  <1us  <2us  <4us  <8us <16us <32us <64us >=64u
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
db file sequential read    96.6K                                10.0    .5  89.5
                          ------------------------------------------------------

";

const UP_TO_32_MS: &str = "\
Wait Event Histogram (up to 32 ms)

                                                 % of Total Waits
                                 -----------------------------------------------
                           Waits
                           512us
Event                     to 32m  <512  <1ms  <2ms  <4ms  <8ms <16ms <32ms >=32m
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
db file sequential read    96.6K  60.5  30.0                            .5   9.0
                          ------------------------------------------------------

";

#[test]
fn a_pasted_load_profile_of_each_release_is_read() {
    // 10g has two columns, 11.2 and later four, and other names of its rows.
    for (text, names) in [
        (
            "Load Profile\n\
                 ~~~~~~~~~~~~                            Per Second       Per Transaction\n\
                 \x20                                  ---------------       ---------------\n\
                 \x20                 Redo size:            730,500.12             11,836.10\n\
                 \x20            Physical reads:              1,250.50                 20.26\n",
            ["Redo size", "Physical reads"],
        ),
        (
            "Load Profile              Per Second    Per Transaction   Per Exec   Per Call\n\
                 ~~~~~~~~~~~~         ---------------    --------------- ---------- ----------\n\
                 \x20      Redo size:       730,500.12          11,836.1\n\
                 \x20 Physical reads:         1,250.50              20.3\n",
            ["Redo size", "Physical reads"],
        ),
        (
            "Load Profile                    Per Second   Per Transaction  Per Exec  Per Call\n\
                 ~~~~~~~~~~~~~~~            ---------------   --------------- --------- ---------\n\
                 \x20     Redo size (bytes):       730,500.1          11,836.1\n\
                 Physical read (blocks):         1,250.5              20.3\n",
            ["Redo size (bytes)", "Physical read (blocks)"],
        ),
    ] {
        let report = part(text);
        let rows: Vec<(&str, f64)> = report
            .load_profile
            .iter()
            .map(|row| (row.name.as_str(), row.value.value.round()))
            .collect();
        assert_eq!(rows, [(names[0], 730_500.0), (names[1], 1251.0)], "{text}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Any part of a report removed, doubled or replaced: it is read or refused.
    #[test]
    fn no_damage_breaks_the_reader(which in 0..3usize, at in 0.0..1.0f64, length in 0..3000usize, put in "[ -~\\n\u{e9}]{0,20}", doubled: bool) {
        let text = [TEXT, HTML, STATSPACK][which];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the text")]
        let from = (at * text.len() as f64) as usize;
        let to = (from + length).min(text.len());
        let (from, to) = if doubled { (to, from) } else { (from, to) };
        let damaged = format!("{}{put}{}", &text[..from], &text[to..]);
        let _ = read(Source { name: "report", text: &damaged });
        let _ = read(Source { name: "report", text: &text[..from] });
    }

    #[test]
    fn no_text_breaks_the_reader(text in "(?s).{0,300}") {
        for start in ["Load Profile\n~~~~ ---- ----\n", "<p>Load Profile<table><tr><th>Per Second<th>Per Transaction<tr><td>1", "WORKLOAD REPOSITORY report for\n", "<html><h1>WORKLOAD REPOSITORY report for</h1>", "STATSPACK report for\n", "~~BEGIN-OS-INFORMATION~~\n"] {
            let _ = read(Source { name: "report", text: &format!("{start}{text}") });
        }
    }
}
