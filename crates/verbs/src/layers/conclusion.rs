//! The conclusion of the layers from storage to a row.

use super::result::{LayerFigures, LayerStep, LayersResult};
use rigel_analyse::conclusion::parts::{Conclusion, Objections, failures};
use rigel_analyse::figures::quantity::{Amount, Unit, count, listed};
use rigel_model::Layer;
use std::fmt::Write;

pub(super) fn conclusion(result: &LayersResult) -> Conclusion {
    let mut text = String::new();
    let table = result.widest().map(|(_, table)| table);
    let both =
        table.and_then(|table| Some((table, table.of(Layer::Async)?, table.of(Layer::Row)?)));
    if let Some((table, raw, row)) = both {
        let cached: Vec<Layer> = table
            .layers
            .iter()
            .filter(|figures| figures.page_cache_share().is_some())
            .map(|figures| figures.layer)
            .collect();
        let _ = write!(
            text,
            "Raw I/O reads {} blocks per second with {} at a time",
            count(raw.blocks_per_s.value),
            table.sessions,
        );
        text.push_str(&of_database(row, &cached));
        if let Some(step) = most_expensive(&table.steps, &cached) {
            let most = if step.blocks_share.greatest() < 1.0 {
                "Most is lost"
            } else {
                "No layer certainly loses any; most may be lost"
            };
            let _ = write!(
                text,
                " {most} from layer {} to {}, {}: {} remain.",
                step.from.number(),
                step.to.number(),
                step.between(),
                Amount::new(step.blocks_share, Unit::Percent).in_cell()
            );
        }
        if let Some(sentence) = left_out(&cached) {
            let _ = write!(text, " {sentence}");
        }
    } else {
        text.push_str("Not all layers were measured.");
    }
    let objections = Objections {
        caution: None,
        failure: failures(&result.points),
    };
    objections.conclude(&text, &result.findings)
}

/// How much of the rate of raw I/O the database's sessions get, if storage read their blocks.
fn of_database(row: &LayerFigures, cached: &[Layer]) -> String {
    if cached.contains(&Layer::Row) {
        return ". What the database adds is unknown, as not only storage served its rows.".into();
    }
    let share = match row.share_of_first {
        Some(share) if share.least() > 1.0 => {
            ": more than the storage delivered, so a cache served some".into()
        }
        Some(share) => format!(
            ": {} of the rate",
            Amount::new(share, Unit::Percent).in_cell()
        ),
        None => String::new(),
    };
    format!(
        ", as many sessions of the database read {}{share}.",
        count(row.blocks_per_s.value)
    )
}

/// The step between neighbouring layers that loses most. Without the layers that the page cache
/// served: the steps to them and from them would measure memory.
fn most_expensive<'a>(steps: &'a [LayerStep], cached: &[Layer]) -> Option<&'a LayerStep> {
    let costs = |step: &&LayerStep| {
        let is_cached = [step.from, step.to].iter().any(|it| cached.contains(it));
        let skips_file = (step.from, step.to) == (Layer::Sync, Layer::Row);
        let is_neighbour = !skips_file || cached.contains(&Layer::File);
        step.blocks_share.value < 1.0 && !is_cached && is_neighbour
    };
    let steps = steps.iter().filter(costs);
    steps.min_by(|one, other| one.blocks_share.value.total_cmp(&other.blocks_share.value))
}

/// Names the layers that no step is judged by; `None` if there are none.
fn left_out(cached: &[Layer]) -> Option<String> {
    let numbers: Vec<String> = cached
        .iter()
        .map(|layer| layer.number().to_string())
        .collect();
    let why = "as the page cache served part of";
    match numbers.len() {
        0 => None,
        1 => Some(format!(
            "Layer {} is left out, {why} its blocks.",
            numbers[0]
        )),
        _ => Some(format!(
            "Layers {} are left out, {why} their blocks.",
            listed(&numbers)
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::Estimate;

    #[test]
    fn rows_that_the_page_cache_served_are_not_compared_with_raw_reads() {
        let row = LayerFigures {
            layer: Layer::Row,
            blocks_per_s: Estimate::from(9000.0),
            rounds: vec![9000.0],
            blocks_per_operation: 1.0,
            share_of_first: Some(Estimate::from(0.9)),
            storage_share: Some(0.5),
            buffer_cache_share: Some(0.0),
            p50_us: None,
            p99_us: None,
            client_cpu_us: 1.0,
            server_cpu_us: None,
            cpu_s_per_million: None,
            blocks_per_cpu_s: None,
            cpus_busy: None,
        };
        let compared = of_database(&row, &[]);
        assert!(compared.contains("9,000: 90.0 % of the rate"), "{compared}");
        let unknown = of_database(&row, &[Layer::Row]);
        assert!(
            !unknown.contains("9,000") && unknown.contains("unknown"),
            "{unknown}"
        );
    }

    #[test]
    fn a_layer_that_the_page_cache_served_is_not_part_of_the_most_expensive_step() {
        let step = |from, to, blocks_share| LayerStep {
            from,
            to,
            blocks_share: Estimate::from(blocks_share),
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
        assert_eq!(most_expensive(&steps, &[]), Some(&steps[2]));
        assert_eq!(most_expensive(&steps, &[Layer::File]), Some(&steps[3]));
        // Every layer that the cache served is left out, not only the first.
        let both = [Layer::File, Layer::Row];
        assert_eq!(most_expensive(&steps, &both), Some(&steps[0]));
        assert_eq!(
            left_out(&both).unwrap(),
            "Layers 3 and 4 are left out, as the page cache served part of their blocks."
        );
        assert_eq!(left_out(&[]), None);
    }
}
