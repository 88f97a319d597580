//! Files of one sweep of fio over outstanding I/Os and processes, as one source.
//!
//! Scripts run the same job for each `iodepth` and `numjobs`, and write a file each. Such files
//! agree in fio's version and in all options but those that a sweep varies.

use rigel_model::record::Imported;
use rigel_model::record::imported::{Figures, LoadPoint, ReportedLoad};
use std::collections::{BTreeMap, BTreeSet};

/// Minimum number of different loads: two files are a comparison.
const LOADS_MIN: usize = 3;

/// Options that a sweep varies, or that name its files.
const VARIED: [&str; 13] = [
    "iodepth",
    "numjobs",
    "rw",
    "readwrite",
    "rwmixread",
    "rwmixwrite",
    "bs",
    "blocksize",
    "filename",
    "write_bw_log",
    "write_iops_log",
    "write_lat_log",
    "write_hist_log",
];

/// Combines the files of each sweep in `found`; the other sources stay as they are.
pub(super) fn together(found: Vec<Imported>) -> Vec<Imported> {
    let mut groups: Vec<(Option<Vec<String>>, Vec<Imported>)> = Vec::new();
    for one in found {
        let key = key(&one);
        match groups
            .iter_mut()
            .find(|group| key.is_some() && group.0 == key)
        {
            Some((_, group)) => group.push(one),
            None => groups.push((key, vec![one])),
        }
    }
    let mut combined = Vec::new();
    for (key, group) in groups {
        match key.filter(|_| cells(&group).len() >= LOADS_MIN) {
            Some(key) => combined.push(one_source(&key, group)),
            None => combined.extend(group),
        }
    }
    combined
}

/// The point of a source that has one load, with a constant number of outstanding I/Os.
fn only_point(one: &Imported) -> Option<(&LoadPoint, u32, u32)> {
    let Figures::Loads(points) = &one.figures else {
        return None;
    };
    match (one.tool.as_str(), points.as_slice()) {
        ("fio", [point]) => match point.load {
            ReportedLoad::Closed { depth } => Some((point, depth, point.processes?)),
            _ => None,
        },
        _ => None,
    }
}

/// What the files of a sweep have in common: version and options.
fn key(one: &Imported) -> Option<Vec<String>> {
    only_point(one)?;
    let options = one
        .reported
        .iter()
        .find(|(name, _)| name.starts_with("job "));
    let words = options.map_or("", |(_, words)| words.as_str());
    let common = words.split(' ').filter(|word| {
        let name = word.split('=').next().unwrap_or_default();
        !VARIED.contains(&name)
    });
    let version = one.version.clone().unwrap_or_default();
    Some(
        [version]
            .into_iter()
            .chain(common.map(str::to_string))
            .collect(),
    )
}

/// The different loads: outstanding I/Os of all processes, and processes.
fn cells(group: &[Imported]) -> BTreeSet<(u32, u32)> {
    let points = group.iter().filter_map(only_point);
    points
        .map(|(_, depth, processes)| (depth, processes))
        .collect()
}

fn one_source(key: &[String], group: Vec<Imported>) -> Imported {
    let cells = cells(&group);
    let range = |values: BTreeSet<u32>| match (values.first(), values.last()) {
        (Some(first), Some(last)) if first != last => format!("{first} to {last}"),
        (Some(only), _) => only.to_string(),
        (None, _) => "-".into(),
    };
    let each = cells
        .iter()
        .map(|(depth, processes)| depth / (*processes).max(1));
    let sweep = format!(
        "{} files: iodepth {}, numjobs {}",
        group.len(),
        range(each.collect()),
        range(cells.iter().map(|cell| cell.1).collect())
    );
    let mut facts = vec![("sweep".to_string(), sweep)];
    if key.len() > 1 {
        facts.push(("every job".into(), key[1..].join(" ")));
    }
    // Facts that all files share, such as the disk, are listed once.
    let mut counts: BTreeMap<(String, String), usize> = BTreeMap::new();
    let (mut sources, mut notes, mut points) = (Vec::new(), Vec::new(), Vec::new());
    let (version, count) = (group[0].version.clone(), group.len());
    for one in group {
        let name = one.sources.first().cloned().unwrap_or_default();
        notes.extend(one.notes.iter().map(|note| format!("{name}: {note}")));
        for fact in one.reported {
            *counts.entry(fact).or_default() += 1;
        }
        sources.extend(one.sources);
        if let Figures::Loads(found) = one.figures {
            points.extend(found);
        }
    }
    facts.extend(
        counts
            .into_iter()
            .filter(|(_, n)| *n == count)
            .map(|(fact, _)| fact),
    );
    points.sort_by_key(|point: &LoadPoint| {
        let size = point.flows.first().and_then(|flow| flow.io_bytes);
        let depth = match point.load {
            ReportedLoad::Closed { depth } => depth,
            _ => 0,
        };
        let kinds: Vec<String> = point.flows.iter().map(|flow| flow.kind.clone()).collect();
        (
            point.label.clone(),
            point.pattern.clone(),
            kinds,
            size,
            point.processes,
            depth,
        )
    });
    Imported {
        sources,
        tool: "fio".into(),
        version,
        reported: facts,
        notes,
        figures: Figures::Loads(points),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Source, fio};

    const ONE: &str = include_str!("../../../tests/imports/fio_depth8_plus.json");

    fn file(depth: u32, processes: u32, more: &str) -> Imported {
        let options = format!("{more}\"iodepth\": \"{depth}\",\n\"numjobs\": \"{processes}\"");
        let text = ONE.replace("\"iodepth\": \"8\"", &options);
        assert_ne!(text, ONE);
        let name = format!("read-{depth}-{processes}.json");
        fio::read(Source {
            name: &name,
            text: &text,
        })
        .unwrap()
    }

    #[test]
    fn files_of_a_sweep_are_one_source_in_order_of_their_loads() {
        let files = [(4, 2), (1, 1), (1, 2), (4, 1)];
        let found = together(files.map(|(depth, jobs)| file(depth, jobs, "")).into());
        assert_eq!(found.len(), 1);
        let found = &found[0];
        assert_eq!(found.sources.len(), 4);
        assert_eq!(
            found.reported[0].1,
            "4 files: iodepth 1 to 4, numjobs 1 to 2"
        );
        let Figures::Loads(points) = &found.figures else {
            unreachable!("fio has loads")
        };
        let loads: Vec<(Option<u32>, &ReportedLoad)> = points
            .iter()
            .map(|point| (point.processes, &point.load))
            .collect();
        let depth = |depth| ReportedLoad::Closed { depth };
        assert_eq!(
            loads,
            [
                (Some(1), &depth(1)),
                (Some(1), &depth(4)),
                (Some(2), &depth(2)),
                (Some(2), &depth(8))
            ]
        );
    }

    #[test]
    fn files_with_other_options_stay_apart() {
        let two = vec![file(1, 1, ""), file(2, 1, "")];
        assert_eq!(together(two.clone()), two);
        let mut three = two;
        three.push(file(4, 1, "\"thinktime_blocks\": \"2\",\n"));
        assert_eq!(together(three.clone()), three);
        let all = vec![file(1, 1, ""), file(1, 1, ""), file(1, 1, "")];
        assert_eq!(together(all.clone()).len(), 3);
    }
}
