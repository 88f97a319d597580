//! Advice on database settings, from the results of a calibration.
//!
//! Each setting has one decision with its reason, and what it follows from: the product's default,
//! the formula, the range, the source, the cases in which it misleads.
//!
//! Input: a calibration and the header of its run. Output: one section of advice per product. A
//! figure that was not measured is never made up: the setting says so, and names the command that
//! measures it. Nothing is applied, only what changes has a statement, and a statement that could do
//! harm is a comment.

pub mod decide;
pub mod decision;
pub mod default;
pub mod durability;
pub mod innodb;
pub mod linux;
pub mod oracle;
pub mod oracle_statistics;
pub mod plan_crossing;
pub mod postgres;
pub mod product;
pub mod relevance;
pub mod replicated;
pub mod seastar;
pub mod setting;

use crate::conclusion::{RunTrust, TrustLevel};
use crate::demand::{Answer, DemandAgainst};
use crate::search::calibration::Calibration;
use plan_crossing::PlanTest;
use rigel_model::record::journal::Header;
use setting::Ground;

pub use decision::Decision;
pub use default::ProductDefault;
pub use product::Product;
pub use setting::{Advice, Opinion, ProductAdvice, Relevance};

/// What is known besides the calibration.
#[derive(Debug, Clone, Copy, Default)]
pub struct AdviceTerms<'a> {
    /// The number of sessions that read at the same time.
    pub sessions: Option<u32>,
    /// What plans on a private `PostgreSQL` showed.
    pub plans: Option<&'a PlanTest>,
    /// What a database asks of its storage, beside the calibration.
    pub demand: Option<&'a DemandAgainst>,
    /// How far the figures of the run can be trusted; `None` if nobody judged it.
    pub trust: Option<&'a RunTrust>,
}

impl AdviceTerms<'_> {
    /// How far to trust the run and the demand together; `None` if nobody judged the run.
    pub fn trust_of_all(&self) -> Option<RunTrust> {
        let of_run = self.trust?.clone();
        Some(match self.demand {
            Some(demand) => of_run.and(demand.trust()),
            None => of_run,
        })
    }
}

/// Advice for `products`, as far as the figures were measured.
pub fn advise(
    calibration: &Calibration,
    header: &Header,
    products: &[Product],
    terms: AdviceTerms,
) -> Vec<ProductAdvice> {
    let ground = Ground {
        found: calibration,
        header,
        sessions: terms.sessions,
        plans: terms.plans,
    };
    let section = |product: &Product| {
        let mut settings = match product {
            Product::Postgres => postgres::settings(&ground),
            Product::Mysql | Product::Mariadb => innodb::settings(&ground, *product),
            Product::Oracle => oracle::settings(&ground),
            Product::Scylla | Product::Redpanda => seastar::settings(&ground, *product),
            Product::Etcd => replicated::of_etcd(&ground),
            Product::Cockroach => replicated::of_cockroach(&ground),
            Product::Linux => linux::settings(&ground),
        };
        settings.iter_mut().for_each(|one| decide_on(one, terms));
        let apply = match product {
            Product::Postgres => postgres::apply(&ground, &settings),
            Product::Mysql | Product::Mariadb => innodb::apply(*product, &settings),
            Product::Oracle => oracle::apply(&settings),
            Product::Scylla | Product::Redpanda => seastar::apply(*product, &settings),
            Product::Etcd => replicated::apply_etcd(&settings),
            Product::Cockroach => replicated::apply_cockroach(&settings),
            Product::Linux => linux::apply(&ground, &settings),
        };
        ProductAdvice {
            database: *product,
            settings,
            apply,
        }
    };
    products.iter().map(section).collect()
}

/// Leaves what follows from figures that are not to be used, and what a demand does not need. A file
/// that must be whole has no default to leave, so that no demand takes a line out of it.
fn decide_on(setting: &mut Advice, terms: AdviceTerms) {
    if let Some(demand) = terms.demand {
        let relevance = relevance::relevance(setting, demand);
        let is_known = demand.trust().level != TrustLevel::DoNotUse;
        let is_needless = relevance.matters == Answer::No && is_known;
        if is_needless && setting.default.is_some() && setting.is_open() {
            setting.left(relevance.why.clone());
        }
        setting.relevance = Some(relevance);
    }
    let is_spoilt = |trust: &RunTrust| trust.level == TrustLevel::DoNotUse;
    if terms.trust.is_some_and(is_spoilt) && setting.value.is_some() && setting.is_open() {
        setting.left("the figures of this run are not to be used".into());
    }
}

#[cfg(test)]
mod tests;
