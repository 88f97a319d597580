//! What the first words of a report tell about it.

use rigel_model::record::database::ReportKind;

/// What a file says about itself at its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Report(ReportKind),
    Capture,
    /// A kind that has no figures of the kind that is wanted: its name, and what to do.
    Refused(&'static str, &'static str),
}

/// The first words of each kind, in lower case with single blanks, and what they tell.
pub(super) const WORDS: &[(&str, Told)] = &[
    (
        "workload repository compare period report",
        Told::Refused(
            "an AWR compare period report: two periods in one report",
            "give the two reports themselves: awrrpt.sql for each period",
        ),
    ),
    (
        "workload repository sql report",
        Told::Refused(
            "an AWR SQL report: the figures of one statement",
            "give the report of the database: awrrpt.sql",
        ),
    ),
    (
        "workload diagnosis report",
        Told::Refused(
            "a WDR report of openGauss or MogDB: it is not read",
            "give what iostat -x -t recorded on the database's host at the same time",
        ),
    ),
    (
        "addm report for",
        Told::Refused(
            "an ADDM report: advice, no figures",
            "give the AWR report of the same snapshots: awrrpt.sql",
        ),
    ),
    (
        "ash report for",
        Told::Refused(
            "an ASH report: samples of sessions, no rates",
            "give the AWR report of the same time: awrrpt.sql",
        ),
    ),
    (
        "ash report - from",
        Told::Refused(
            "an ASH report: samples of sessions, no rates",
            "give the AWR report of the same time: awrrpt.sql",
        ),
    ),
    (
        "workload repository report (rac)",
        Told::Report(ReportKind::AwrGlobal),
    ),
    (
        "workload repository pdb report",
        Told::Report(ReportKind::AwrPdb),
    ),
    (
        "workload repository report for",
        Told::Report(ReportKind::AwrText),
    ),
    ("statspack report for", Told::Report(ReportKind::Statspack)),
    (
        "statspack statistics report for",
        Told::Report(ReportKind::Statspack),
    ),
];
