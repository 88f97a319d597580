//! The conclusion of the layers from storage to a row.

use super::parts::{Conclusion, Objections, failures, warnings};
use crate::analyse::figures::quantity::{count, percent};
use crate::analyse::search::layers::{LayerStep, LayersResult};
use crate::model::Layer;
use crate::record::journal::Header;
use std::fmt::Write;

pub(super) fn conclusion(header: &Header, found: &LayersResult) -> Conclusion {
    let mut text = String::new();
    let table = found.widest().map(|(_, table)| table);
    let both =
        table.and_then(|table| Some((table, table.of(Layer::Async)?, table.of(Layer::Row)?)));
    if let Some((table, raw, row)) = both {
        let _ = write!(
            text,
            "Raw I/O reads {} blocks per second with {} at a time, and as many sessions of the \
             database read {}",
            count(raw.blocks_per_s.value),
            table.sessions,
            count(row.blocks_per_s.value)
        );
        let share = match row.share_of_first {
            Some(share) if share <= 1.0 => format!(
                ": {} of the storage's rate arrives at a row",
                percent(share)
            ),
            Some(_) => ": more than the storage delivered, so a cache served some".into(),
            None => String::new(),
        };
        let _ = write!(text, "{share}.");
        let costs = |step: &&LayerStep| {
            step.blocks_share < 1.0 && (step.from, step.to) != (Layer::Sync, Layer::Row)
        };
        let dearest = table.steps.iter().filter(costs);
        if let Some(step) =
            dearest.min_by(|one, other| one.blocks_share.total_cmp(&other.blocks_share))
        {
            let _ = write!(
                text,
                " The most expensive step is from layer {} to {}, {}: {} of the blocks per second \
                 remain.",
                step.from.number(),
                step.to.number(),
                step.between(),
                percent(step.blocks_share)
            );
        }
    } else {
        text.push_str("Not all layers were measured.");
    }
    let objections = Objections {
        caution: None,
        failure: failures(&found.points),
    };
    objections.conclude(&text, &warnings(header, &found.findings, &found.points))
}
