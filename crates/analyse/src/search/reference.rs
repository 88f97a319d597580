//! Reference classes: kinds of storage by their published figures, and which of them a calibration is like.
//!
//! Input: the figures of a calibration. Output: the class in whose ranges all its figures lie, or that it is
//! like none. A class is data, with its source; how far a run may be from what is published is decided here, by
//! its ranges: media differ within a kind, and a rate that is sold does not.

use serde::{Deserialize, Serialize};

/// The known classes.
const KNOWN: &str = include_str!("reference_classes.json");

/// A kind of storage.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReferenceClass {
    /// What it is, with its article.
    pub name: String,
    /// The figures of one that is sold, as its vendor publishes them.
    pub published: String,
    /// The page where they stand.
    pub source: String,
    /// The day on which they stood there.
    pub date: String,
    /// From and to: the median of one reader, in microseconds.
    read_us: [f64; 2],
    /// From and to: the maximum rate of small random reads.
    iops: [f64; 2],
    /// From and to: the maximum throughput of large random reads.
    mbps: [f64; 2],
}

/// Where a run stands beside the known classes.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct ClassStanding {
    /// The class that it is like, or else the nearest.
    pub class: String,
    /// True if all of its figures are those of the class.
    pub is_like: bool,
    /// The figure that is farthest from those of the nearest class, if it is like none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub but_for: Option<&'static str>,
    /// What is published of the class.
    pub published: String,
    /// The page where it stands.
    pub source: String,
}

impl ReferenceClass {
    /// All that are known.
    ///
    /// # Panics
    /// Never: a test reads them.
    pub fn known() -> Vec<Self> {
        serde_json::from_str(KNOWN).expect("the known classes can be read")
    }

    /// How far each figure is from the range of this class, as a factor; and what it is.
    fn distances(&self, [read_us, iops, mbps]: [f64; 3]) -> [(f64, &'static str); 3] {
        let beyond = |value: f64, [low, high]: [f64; 2]| (low / value).max(value / high).max(1.0);
        [
            (beyond(read_us, self.read_us), "the time of one reader"),
            (beyond(iops, self.iops), "its operations per second"),
            (beyond(mbps, self.mbps), "its throughput"),
        ]
    }

    /// How wide its ranges are together.
    fn width(&self) -> f64 {
        let ranges = [self.read_us, self.iops, self.mbps];
        ranges.map(|[low, high]| high / low).iter().product()
    }
}

/// Where storage stands by the median of one reader in microseconds, its small random reads per second, and its
/// megabytes per second; of several classes that it is like, beside the one that says most.
///
/// # Panics
/// Never: there are classes.
pub fn standing_of(figures: [f64; 3]) -> ClassStanding {
    let mut classes = ReferenceClass::known();
    classes.sort_by(|one, other| one.width().total_cmp(&other.width()));
    let farthest = |class: &ReferenceClass| {
        let distances = class.distances(figures).into_iter();
        distances.max_by(|one, other| one.0.total_cmp(&other.0))
    };
    let nearest = classes.into_iter().min_by(|one, other| {
        let far = |class| farthest(class).map_or(f64::INFINITY, |(factor, _)| factor);
        far(one).total_cmp(&far(other))
    });
    let class = nearest.expect("there are classes");
    let but_for = farthest(&class).filter(|(factor, _)| *factor > 1.0);
    ClassStanding {
        is_like: but_for.is_none(),
        but_for: but_for.map(|(_, figure)| figure),
        class: class.name,
        published: class.published,
        source: class.source,
    }
}

impl ClassStanding {
    /// One line for a report.
    pub fn sentence(&self) -> String {
        let (class, published) = (&self.class, &self.published);
        match self.but_for {
            None => format!("Is that good? It is like {class} ({published})."),
            Some(figure) => {
                format!(
                    "Is that good? Like none that is known; nearest is {class}, but for {figure}."
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::quantity::{count, time};
    use std::fmt::Write;
    use std::path::Path;

    const OPENING: &str = "\
# Is that good?

<!-- Made from crates/analyse/src/search/reference_classes.json: `UPDATE_GOLDEN=1 cargo test -p rigel-analyse --lib
reference::` writes it again. -->

The report of `rigel calibrate` has a line that says which of these kinds of storage the run is like: all three figures
lie in its ranges. If it is like none, the line names the nearest, and the figure that is farthest. Nothing is said
where a cache may have answered. Ranges are wide for media, and 5 % for what is sold by rate.

| like | one reader | reads/s | MB/s | published |
|---|---|---|---|---|
";

    /// docs/reference-classes.md.
    fn page() -> String {
        let mut page = OPENING.to_string();
        for class in ReferenceClass::known() {
            let [from, to] = class.read_us.map(time);
            let rate = |[low, high]: [f64; 2]| format!("{} to {}", count(low), count(high));
            let _ = writeln!(
                page,
                "| {} | {from} to {to} | {} | {} | [{}]({}), {} |",
                class.name,
                rate(class.iops),
                rate(class.mbps),
                class.published,
                class.source,
                class.date
            );
        }
        page
    }

    #[test]
    fn the_page_of_classes_is_made_of_the_data() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference-classes.md");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&path, page()).unwrap();
        }
        let written = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            written == page(),
            "docs/reference-classes.md differs from the data: UPDATE_GOLDEN=1 cargo test writes it anew"
        );
    }

    #[test]
    fn every_class_has_a_source_and_ranges_that_another_does_not_hide() {
        for class in ReferenceClass::known() {
            assert!(class.source.starts_with("https://"), "{class:?}");
            assert_eq!(class.date.len(), 10, "{class:?}");
            let ranges = [class.read_us, class.iops, class.mbps];
            assert!(
                ranges.iter().all(|[low, high]| 0.0 < *low && low < high),
                "{class:?}"
            );
            let middle = ranges.map(|[low, high]| (low * high).sqrt());
            assert_eq!(standing_of(middle).class, class.name);
        }
    }

    #[test]
    fn a_run_is_like_a_class_or_like_none() {
        let said = |figures| standing_of(figures).sentence();
        assert_eq!(
            said([80.0, 97_000.0, 540.0]),
            "Is that good? It is like a SATA SSD (one reader 77 µs, 98,000/s, 560 MB/s)."
        );
        assert!(said([600.0, 3010.0, 131.0]).contains("like Amazon EBS gp3 as it comes"));
        let odd = said([90.0, 97_000.0, 5000.0]);
        assert_eq!(
            odd,
            "Is that good? Like none that is known; nearest is a local NVMe drive, but for its \
             operations per second."
        );
    }
}
