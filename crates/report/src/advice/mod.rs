//! Advice as text and as JSON: one decision for each setting, and for each product the statements in
//! one block to copy.

mod full;
mod parts;
mod screen;

use super::document::Extent;
use crate::data;
use rigel_analyse::{
    AdviceTerms, Calibration, DemandAgainst, PlanTest, Product, ProductAdvice, RunTrust, advise,
};
use rigel_model::record::journal::Run;
use schemars::{JsonSchema, Schema};
use serde::Serialize;

/// The JSON document. Fields are only added, never renamed or removed.
#[derive(Debug, Serialize, JsonSchema)]
struct AdviceReport<'a> {
    version: &'a str,
    started: &'a str,
    target: &'a str,
    applied: bool,
    /// How far the run's figures can be trusted, and those of the demand.
    #[serde(skip_serializing_if = "Option::is_none")]
    trust: Option<RunTrust>,
    products: Vec<ProductAdvice>,
    /// Plans on a private PostgreSQL.
    #[serde(skip_serializing_if = "Option::is_none")]
    plans: Option<&'a PlanTest>,
    /// A database's demand beside the calibration.
    #[serde(skip_serializing_if = "Option::is_none")]
    demand: Option<&'a DemandAgainst>,
}

/// Advice for `products`, as text: what to do, or everything that it follows from.
pub fn text(
    run: &Run,
    calibration: &Calibration,
    products: &[Product],
    terms: AdviceTerms,
    extent: Extent,
) -> String {
    let sections = advise(calibration, &run.header, products, terms);
    match extent {
        Extent::Screen => screen::screen(&run.header, &sections, terms),
        Extent::Full => full::full(&run.header, &sections, terms),
    }
}

/// The statements for `products` alone, for a database's client: what is no statement is a comment.
pub fn statements(
    run: &Run,
    calibration: &Calibration,
    products: &[Product],
    terms: AdviceTerms,
) -> String {
    let sections = advise(calibration, &run.header, products, terms);
    let each = sections
        .iter()
        .map(|section| screen::statements(section, terms));
    each.collect::<String>().trim_start().into()
}

/// The JSON Schema of [`json`].
pub fn schema() -> Schema {
    data::schema_of::<AdviceReport>()
}

/// Advice for `products`, as one JSON document.
pub fn json(
    run: &Run,
    calibration: &Calibration,
    products: &[Product],
    terms: AdviceTerms,
) -> String {
    let header = &run.header;
    data::document(&AdviceReport {
        version: &header.version,
        started: &header.started,
        target: &header.facts.name,
        applied: false,
        trust: terms.trust_of_all(),
        products: advise(calibration, header, products, terms),
        plans: terms.plans,
        demand: terms.demand,
    })
}

#[cfg(test)]
mod tests;
