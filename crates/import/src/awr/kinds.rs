//! What the first words of a report tell about it.

use rigel_model::record::database::ReportKind;

/// What a file says about itself at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Report(ReportKind),
    Capture,
    /// A kind that has no figures of the kind that is wanted: its name, and what to do.
    Refused(&'static str, &'static str),
}

/// The first words of each kind, in lower case with single blanks, and what they tell.
pub(super) const WORDS: &[(&str, TextKind)] = &[
    (
        "workload repository compare period report",
        TextKind::Refused(
            "an AWR compare period report: two periods in one report",
            "give the two reports themselves: awrrpt.sql for each period",
        ),
    ),
    (
        "workload repository sql report",
        TextKind::Refused(
            "an AWR SQL report: the figures of one statement",
            "give the report of the database: awrrpt.sql",
        ),
    ),
    (
        "workload diagnosis report",
        TextKind::Refused(
            "a WDR report of openGauss or MogDB: it is not read",
            "give what iostat -x -t recorded on the database's host at the same time",
        ),
    ),
    (
        "addm report for",
        TextKind::Refused(
            "an ADDM report: advice, no figures",
            "give the AWR report of the same snapshots: awrrpt.sql",
        ),
    ),
    (
        "ash report for",
        TextKind::Refused(
            "an ASH report: samples of sessions, no rates",
            "give the AWR report of the same time: awrrpt.sql",
        ),
    ),
    (
        "ash report - from",
        TextKind::Refused(
            "an ASH report: samples of sessions, no rates",
            "give the AWR report of the same time: awrrpt.sql",
        ),
    ),
    (
        "workload repository report (rac)",
        TextKind::Report(ReportKind::AwrGlobal),
    ),
    (
        "workload repository pdb report",
        TextKind::Report(ReportKind::AwrPdb),
    ),
    (
        "workload repository report for",
        TextKind::Report(ReportKind::AwrText),
    ),
    (
        "statspack report for",
        TextKind::Report(ReportKind::Statspack),
    ),
    (
        "statspack statistics report for",
        TextKind::Report(ReportKind::Statspack),
    ),
];
