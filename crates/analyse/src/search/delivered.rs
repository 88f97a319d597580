//! What a volume delivers of what it was sold with.

use crate::figures::quantity::{Amount, Unit, count, multiple};
use rigel_model::Provisioned;
use rigel_stats::estimate::Estimate;
use serde::Serialize;

/// More than this times what is sold comes from elsewhere.
const MORE: f64 = 1.05;

/// What a volume delivers, as shares of what it was sold with.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Delivered {
    /// What it was sold with.
    pub provisioned: Provisioned,
    /// Share of the operations per second, after burst credit ran out if it did.
    pub iops: Option<Estimate>,
    /// The same while there was burst credit; `None` if none ran out.
    pub iops_on_credit: Option<Estimate>,
    /// Share of the bytes per second, by large I/O.
    pub mb_per_s: Option<Estimate>,
}

/// The rates of a run, as far as they are known.
#[derive(Debug, Clone, Copy, Default)]
pub struct DeliveredRates {
    /// Operations per second that last.
    pub iops: Option<Estimate>,
    /// Operations per second on burst credit.
    pub iops_on_credit: Option<Estimate>,
    /// Megabytes (10^6 bytes) per second.
    pub mb_per_s: Option<Estimate>,
}

impl Delivered {
    /// What these rates are of `provisioned`.
    pub fn of(provisioned: Provisioned, rates: DeliveredRates) -> Self {
        let of_iops = |figure: Estimate| Some(figure.scaled(1.0 / provisioned.iops? as f64));
        let mb_per_s = provisioned.bytes_per_s.map(|bytes| bytes.0 as f64 / 1e6);
        let of_bytes = |figure: Estimate| Some(figure.scaled(1.0 / mb_per_s?));
        Self {
            provisioned,
            iops: rates.iops.and_then(of_iops),
            iops_on_credit: rates.iops_on_credit.and_then(of_iops),
            mb_per_s: rates.mb_per_s.and_then(of_bytes),
        }
    }

    /// The shares in a sentence; `None` if none is known.
    pub fn sentence(&self) -> Option<String> {
        /// So much more is no question of percent.
        const TIMES: f64 = 10.0;
        let share = |of: Estimate| {
            if of.value < TIMES {
                Amount::new(of, Unit::Percent).in_cell()
            } else {
                format!("{} ×", multiple(of.value))
            }
        };
        let iops = self.iops.zip(self.provisioned.iops).map(|(of, sold)| {
            let before = self.iops_on_credit.map_or_else(String::new, |of| {
                format!(", and {} on burst credit", share(of))
            });
            let sold = count(sold as f64);
            format!("{} of {sold} IOPS{before}", share(of))
        });
        let bytes = self.mb_per_s.zip(self.provisioned.bytes_per_s);
        let bytes = bytes.map(|(of, sold)| {
            let sold = count(sold.0 as f64 / 1e6);
            format!("{} of {sold} MB/s", share(of))
        });
        let is_more = |of: Option<Estimate>| of.is_some_and(|of| of.least() > MORE);
        let why = if is_more(self.iops) || is_more(self.mb_per_s) {
            ", more than was sold: by credit, a cache, or as nothing holds it back"
        } else {
            ""
        };
        let parts: Vec<String> = iops.into_iter().chain(bytes).collect();
        (!parts.is_empty())
            .then(|| format!("Provisioned, and delivered: {}{why}.", parts.join("; ")))
    }
}
