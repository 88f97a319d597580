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
        let file = table.of(Layer::File);
        let is_cached = file.is_some_and(|file| file.page_cache_share().is_some());
        if let Some(step) = most_expensive(&table.steps, is_cached) {
            let _ = write!(
                text,
                " The most expensive step is from layer {} to {}, {}: {} of the blocks per second \
                 remain.",
                step.from.number(),
                step.to.number(),
                step.between(),
                percent(step.blocks_share)
            );
            if is_cached {
                let file = Layer::File.number();
                let _ = write!(
                    text,
                    " Layer {file} is left out, as the page cache served part of its blocks."
                );
            }
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

/// The step between neighbouring layers that loses most. Without the layer of file calls if the
/// page cache served it: the steps to it and from it would measure memory.
fn most_expensive(steps: &[LayerStep], is_cached: bool) -> Option<&LayerStep> {
    let costs = |step: &&LayerStep| {
        let has_file = [step.from, step.to].contains(&Layer::File);
        let skips_file = (step.from, step.to) == (Layer::Sync, Layer::Row);
        step.blocks_share < 1.0 && if is_cached { !has_file } else { !skips_file }
    };
    let steps = steps.iter().filter(costs);
    steps.min_by(|one, other| one.blocks_share.total_cmp(&other.blocks_share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_that_the_page_cache_served_is_not_part_of_the_most_expensive_step() {
        let step = |from, to, blocks_share| LayerStep {
            from,
            to,
            blocks_share,
            time_us: 0.0,
            client_cpu_us: 0.0,
            server_cpu_us: None,
        };
        let steps = [
            step(Layer::Async, Layer::Sync, 0.8),
            step(Layer::Sync, Layer::File, 2.0),
            step(Layer::File, Layer::Row, 0.3),
            step(Layer::Sync, Layer::Row, 0.6),
        ];
        assert_eq!(most_expensive(&steps, false), Some(&steps[2]));
        assert_eq!(most_expensive(&steps, true), Some(&steps[3]));
    }
}
