//! The reports of one file: spools and `cat` put several of them one after the other.

use super::grid::plain;
use super::kinds::{TextKind, WORDS};

/// How much behind a beginning is compared with the words of a kind.
const WORDS_BYTES: usize = 128;

/// The reports of a file so far.
struct Reports<'a> {
    text: &'a str,
    /// Where each begins.
    starts: Vec<usize>,
    /// True if the current report had a beginning or a section.
    has_report: bool,
    /// Where the line below `End of Report` begins, if the current report has ended.
    ended: Option<usize>,
    /// Database, instance and snapshots in the titles of the current report's sections.
    titled: Option<&'a str>,
    /// True if the current report began in a heading of HTML.
    is_page: bool,
}

/// The reports of `text`, at least one, which together are all of it. A report begins with the first
/// words of its kind. Behind `End of Report` it begins with sections of other snapshots, too, in case
/// its first page is missing.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut reports = Reports {
        text,
        starts: vec![0],
        has_report: false,
        ended: None,
        titled: None,
        is_page: false,
    };
    let mut place = 0;
    for line in text.split_inclusive('\n') {
        reports.line(place, line);
        place += line.len();
    }
    let ends = reports.starts.iter().skip(1).copied();
    let ends: Vec<usize> = ends.chain([text.len()]).collect();
    let starts = reports.starts.iter().zip(ends);
    starts.map(|(from, to)| &text[*from..to]).collect()
}

impl<'a> Reports<'a> {
    fn line(&mut self, place: usize, line: &'a str) {
        let first = place + line.len() - without_feed(line).len();
        if let Some((start, is_page)) = self.beginning(first, without_feed(line)) {
            self.begin(start, is_page);
        }
        // A page may be one line.
        let mut rest = 0;
        while let Some(tag) = heading_tag(&line[rest..]) {
            rest += tag;
            let Some(close) = line[rest..].find('>') else {
                break;
            };
            if let Some(kind) = kind_at(&line[rest + close + 1..])
                && self.is_beginning(kind)
            {
                self.begin(place + rest, true);
            }
            rest += close + 1;
        }
        if let Some((_, named)) = line.split_once("DB/Inst:") {
            let named = named.trim();
            if let Some(end) = self.ended
                && self.titled.is_some_and(|titled| titled != named)
            {
                self.begin(end, false);
            }
            self.titled = Some(named);
            self.has_report = true;
        }
        if line.contains("End of Report") && (self.is_page || line.starts_with("End of Report")) {
            self.ended = Some(place + line.len());
        }
    }

    fn begin(&mut self, start: usize, is_page: bool) {
        if self.has_report {
            let before = self.ended.or(self.starts.last().copied()).unwrap_or(0);
            let page = is_page.then(|| page_before(&self.text[before..start]));
            self.starts
                .push(page.flatten().map_or(start, |page| before + page));
        }
        self.has_report = true;
        self.ended = None;
        self.titled = None;
        self.is_page = is_page;
    }

    /// Where a report begins whose first words `line` begins with, at `place`, and whether they are
    /// in a heading of HTML.
    fn beginning(&self, place: usize, line: &str) -> Option<(usize, bool)> {
        let kind = kind_at(line)?;
        // The tag may end the line above. Elsewhere in a page, the words are somebody's text.
        let above = self.text[..place].trim_end();
        let tag = above
            .rfind('<')
            .filter(|tag| above.ends_with('>') && heading_tag(&above[*tag..]) == Some(0));
        let is_text = !self.is_page || self.ended.is_some();
        (self.is_beginning(kind) && (tag.is_some() || is_text))
            .then_some((tag.unwrap_or(place), tag.is_some()))
    }

    /// A report of ADDM or ASH may be a section of another report, until that has ended.
    fn is_beginning(&self, kind: TextKind) -> bool {
        let has_ended = self.ended.is_some() || !self.has_report;
        !matches!(kind, TextKind::Refused(what, _) if what.contains("ADDM") || what.contains("ASH"))
            || has_ended
    }
}

/// The kind whose first words the text begins with.
pub(super) fn kind_at(text: &str) -> Option<TextKind> {
    let text = text.trim_start();
    // Most lines begin with none of these letters.
    if !text.starts_with(['W', 'w', 'S', 's', 'A', 'a', '~']) {
        return None;
    }
    let end = (0..=WORDS_BYTES.min(text.len()))
        .rev()
        .find(|end| text.is_char_boundary(*end))?;
    let line = text[..end].lines().next()?;
    if line.starts_with("~~BEGIN-OS-INFORMATION~") {
        return Some(TextKind::Capture);
    }
    let line = plain(line);
    let kinds = WORDS.iter().find(|(words, _)| line.starts_with(words));
    kinds.map(|(_, kind)| *kind)
}

/// Where the last page begins.
fn page_before(text: &str) -> Option<usize> {
    text.rfind("<html").max(text.rfind("<HTML"))
}

/// Where the first `<h1` begins.
fn heading_tag(text: &str) -> Option<usize> {
    text.match_indices('<')
        .map(|(tag, _)| tag)
        .find(|tag| matches!(text.as_bytes()[*tag + 1..], [b'h' | b'H', b'1', ..]))
}

/// Without the form feed and the blanks at a line's start. Control characters of files were made
/// visible.
fn without_feed(line: &str) -> &str {
    let line = line.trim_start_matches(['\u{c}', ' ', '\t']);
    line.strip_prefix("\\u{c}")
        .unwrap_or(line)
        .trim_start_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const AWR: &str = "WORKLOAD REPOSITORY report for\nx\nA Section  DB/Inst: X/x1  Snaps: 1-2\n\
                       End of Report\n";
    const PAGE: &str = "<html><title>AWR Report for DB: X</title>\n<h1 class=\"awr\">\nWORKLOAD \
                        REPOSITORY report for\n</h1><table></table>End of Report</html>\n";

    #[test]
    fn a_report_begins_with_the_first_words_of_its_kind() {
        for one in [
            AWR,
            PAGE,
            "STATSPACK report for\nx\nEnd of Report ( sp.lst )\n",
            "~~BEGIN-OS-INFORMATION~~\n",
        ] {
            assert_eq!(parts(one).len(), 1, "{one}");
            for other in [AWR, PAGE] {
                let both = format!("SQL> @awrrpt\n{one}Report written to x\nSQL> @awrrpt\n{other}");
                let found = parts(&both);
                assert_eq!(found.len(), 2, "{both}");
                assert_eq!(found.concat(), both);
                assert!(plain(found[1]).contains("workload repository report for"));
            }
        }
        let line = PAGE.replace('\n', " ").repeat(3);
        assert_eq!(parts(&line).len(), 3);
        assert_eq!(parts("").len(), 1);
    }

    #[test]
    fn a_report_without_its_first_page_begins_behind_the_end_of_another() {
        let cut = AWR.replace("WORKLOAD REPOSITORY report for\n", "");
        let other = cut.replace("1-2", "2-3");
        assert_eq!(parts(&format!("{AWR}{other}")).len(), 2);
        // A section in the middle ends as the whole does.
        assert_eq!(parts(&format!("{AWR}{cut}")).len(), 1);
    }

    #[test]
    fn sections_of_other_reports_are_no_reports() {
        let addm = "ADDM Report for Task 'TASK_1'\n";
        let within = AWR.replace("End of", &format!("{addm}End of"));
        assert_eq!(parts(&within).len(), 1);
        assert_eq!(parts(&format!("{AWR}{addm}")).len(), 2);
        let quoted = PAGE.replace("<table>", "\nWORKLOAD REPOSITORY report for\n<table>");
        assert_eq!(parts(&quoted).len(), 1);
    }

    proptest! {
        #[test]
        fn parts_are_the_whole_text(pieces in prop::collection::vec(0..6usize, 0..9), put in "(?s).{0,20}") {
            let all = [AWR, PAGE, "<h1>", "End of Report\n", "STATSPACK report for\n", &put];
            let text: String = pieces.iter().map(|piece| all[*piece]).collect();
            prop_assert_eq!(parts(&text).concat(), text);
        }
    }
}
