//! The conclusion of another tool's figures.

use super::parts::{Conclusion, Status};
use crate::analyse::figures::quantity::{count, samples, time};
use crate::analyse::result::ImportedResult;
use crate::analyse::series::imported::{ImportedSummary, LoadFigures};
use crate::model::Severity;
use crate::record::journal::Header;

pub(super) fn conclusion(header: &Header, found: &ImportedResult) -> Conclusion {
    if let Some(series) = &found.series {
        return series.conclusion(header);
    }
    let mut all = header.findings.iter().chain(&found.findings);
    let status = if all.any(|finding| finding.severity != Severity::Note) {
        Status::Warning
    } else {
        Status::Plain
    };
    Conclusion {
        status,
        sentence: sentence(found),
    }
}

fn sentence(found: &ImportedResult) -> String {
    let mut tools: Vec<String> = found
        .sources
        .iter()
        .map(ImportedSummary::tool_and_version)
        .collect();
    tools.dedup();
    let report = if tools.len() == 1 {
        "reports"
    } else {
        "report"
    };
    let tools = tools.join(" and ");
    let loads = found
        .sources
        .iter()
        .map(|source| source.loads.len())
        .sum::<usize>();
    if let Some((
        LoadFigures {
            load, kind, p99_us, ..
        },
        iops,
    )) = found
        .best()
        .map(|(_, best)| (best, best.iops.unwrap_or(0.0)))
    {
        let p99 = p99_us.map_or_else(String::new, |p99| format!(", p99 {}", time(p99)));
        return format!(
            "{tools} {report} {loads} load{}: the maximum is {} {}s per second at {load}{p99}. No \
             confidence interval is reported.",
            if loads == 1 { "" } else { "s" },
            count(iops),
            if kind == "mixed" { "operation" } else { kind },
        );
    }
    let series = || found.sources.iter().flat_map(|source| &source.series);
    let number: usize = series().map(|one| one.samples.len()).sum();
    format!(
        "{tools} {report} {} series with {}.",
        series().count(),
        samples(number)
    )
}
