//! Advice on database settings, from the results of a calibration.
//!
//! Each setting has its formula, its range, its source, the cases in which it misleads, and the
//! statement that would apply it.
//!
//! Input: a calibration and the header of its run. Output: one section of advice per product. A
//! figure that was not measured is never made up: the setting says so, and names the command that
//! measures it. Nothing is applied, and a statement that could do harm is a comment.

pub mod innodb;
pub mod linux;
pub mod oracle;
pub mod oracle_statistics;
pub mod plan_crossing;
pub mod postgres;
pub mod relevance;
pub mod scylla;
pub mod setting;

use crate::demand::DemandAgainst;
use crate::search::calibration::Calibration;
use plan_crossing::PlanTest;
use rigel_model::Severity;
use rigel_model::record::journal::Header;
use setting::Ground;

pub use setting::{Advice, Opinion, Product, ProductAdvice, Relevance};

/// What is known besides the calibration.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdviceTerms<'a> {
    /// The number of sessions that read at the same time.
    pub sessions: Option<u32>,
    /// What plans on a private `PostgreSQL` showed.
    pub plans: Option<&'a PlanTest>,
    /// What a database asks of its storage, beside the calibration.
    pub demand: Option<&'a DemandAgainst>,
}

/// Advice for `products`, as far as the figures were measured.
pub fn advise(
    found: &Calibration,
    header: &Header,
    products: &[Product],
    terms: AdviceTerms,
) -> Vec<ProductAdvice> {
    let ground = Ground {
        found,
        header,
        sessions: terms.sessions,
        plans: terms.plans,
    };
    let section = |product: &Product| match product {
        Product::Postgres => postgres::section(&ground),
        Product::Mysql | Product::Mariadb => innodb::section(&ground, *product),
        Product::Oracle => oracle::section(&ground),
        Product::Scylla => scylla::section(&ground),
        Product::Linux => linux::section(&ground),
    };
    let mut all: Vec<ProductAdvice> = products.iter().map(section).collect();
    if let Some(demand) = terms.demand {
        for setting in all.iter_mut().flat_map(|product| &mut product.settings) {
            setting.relevance = Some(relevance::relevance(setting, demand));
        }
    }
    all
}

/// Names of all findings above a note, each once: from the check before the run, the run as a
/// whole, and its points.
pub fn warnings_of(found: &Calibration, header: &Header) -> Vec<String> {
    let of_points = found.points.iter().flat_map(|point| &point.findings);
    let all = header
        .findings
        .iter()
        .chain(&found.findings)
        .chain(of_points);
    let mut names: Vec<String> = Vec::new();
    for finding in all.filter(|finding| finding.severity != Severity::Note) {
        if !names.contains(&finding.name) {
            names.push(finding.name.clone());
        }
    }
    names
}

#[cfg(test)]
mod tests;
