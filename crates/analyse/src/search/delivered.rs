//! What a volume delivers of what it was sold with.

use crate::figures::confidence::Estimate;
use crate::figures::quantity::{Amount, Unit, count};
use rigel_model::Provisioned;
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
        let share = |of: Estimate| Amount::new(of, Unit::Percent).in_cell();
        let why = |of: Estimate| {
            if of.least() > MORE {
                ", more than was sold: by burst credit, by a cache, or as nothing holds this back"
            } else {
                ""
            }
        };
        let iops = self.iops.zip(self.provisioned.iops).map(|(of, sold)| {
            let before = self.iops_on_credit.map_or_else(String::new, |of| {
                format!(", and {} on burst credit", share(of))
            });
            let (sold, why) = (count(sold as f64), why(of));
            format!("{} of {sold} IOPS{why}{before}", share(of))
        });
        let bytes = self.mb_per_s.zip(self.provisioned.bytes_per_s);
        let bytes = bytes.map(|(of, sold)| {
            let (sold, why) = (count(sold.0 as f64 / 1e6), why(of));
            format!("{} of {sold} MB/s{why}", share(of))
        });
        let parts: Vec<String> = iops.into_iter().chain(bytes).collect();
        (!parts.is_empty()).then(|| format!("Provisioned, and delivered: {}.", parts.join("; ")))
    }
}
