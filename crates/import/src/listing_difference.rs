//! The difference of two listings of a histogram of waits.
//!
//! Each listing counts since the instance was started. What the later one has more is what was
//! waited for between the two.

use rigel_model::record::DatabaseReport;
use rigel_model::record::Imported;
use rigel_model::record::database::{Printed, WaitBucket, WaitHistogram};
use rigel_model::record::imported::Figures;
use rigel_model::{Error, file_name, usage};

/// The differences of each listing and the next, in the order of their times, or of the files if
/// they have none. A single listing stays as it is, and so do listings of which one does not
/// continue the other.
///
/// # Errors
/// The files are in the wrong order.
pub(super) fn differences(listings: Vec<Imported>) -> Result<Vec<Imported>, Error> {
    let is_snapshot = |one: &Imported| reports(one).iter().any(|of| of.window.end_id.is_some());
    let (snapshots, listings): (Vec<Imported>, Vec<Imported>) =
        listings.into_iter().partition(is_snapshot);
    let mut imported = of_snapshots(&snapshots);
    imported.extend(of_listings(listings)?);
    Ok(imported)
}

/// The differences of consecutive snapshots of each file. One in which counts fall, as after a
/// restart of the instance, is left out. Where they fall between most of them, they are differences already.
fn of_snapshots(snapshots: &[Imported]) -> Vec<Imported> {
    let mut imported: Vec<Imported> = Vec::new();
    for of_file in snapshots.chunk_by(|one, next| one.sources == next.sources) {
        let pairs = of_file.windows(2).map(|two| difference(&two[0], &two[1]));
        let pairs: Vec<Option<Imported>> = pairs.collect();
        let fallen = pairs.iter().filter(|pair| pair.is_none()).count();
        if fallen > 1 && 2 * fallen > pairs.len() {
            imported.extend(of_intervals(of_file));
            continue;
        }
        let mut whole: Vec<Imported> = pairs.into_iter().flatten().collect();
        let Some(first) = whole.first_mut() else {
            imported.extend(of_file.iter().cloned());
            continue;
        };
        first.notes = vec![format!(
            "counts of {} are cumulative: consecutive snapshots are subtracted",
            first.sources.join(", ")
        )];
        if fallen > 0 {
            first.notes.push(format!(
                "counts fall between snapshots, as after a restart of the instance: {fallen} of {} \
                 intervals are left out",
                of_file.len() - 1
            ));
        }
        for other in &mut whole[1..] {
            other.notes.clear();
        }
        imported.extend(whole);
    }
    imported
}

/// Snapshots of which each has counted since the one before.
fn of_intervals(snapshots: &[Imported]) -> Vec<Imported> {
    let mut intervals = snapshots.to_vec();
    let mut before = (None, None);
    for one in &mut intervals {
        one.notes
            .retain(|note| !note.contains(super::listing::SINCE_START));
        let Figures::Database(of_containers) = &mut one.figures else {
            continue;
        };
        for report in &mut *of_containers {
            (report.window.begin, report.window.begin_id) = before;
        }
        let window = of_containers.first().map(|report| &report.window);
        before = window.map_or((None, None), |window| (window.end, window.end_id));
    }
    if let Some(first) = intervals.first_mut() {
        first.notes.push(format!(
            "counts of {} fall between most snapshots: each has those since the one before",
            first.sources.join(", ")
        ));
    }
    intervals
}

fn of_listings(mut listings: Vec<Imported>) -> Result<Vec<Imported>, Error> {
    let time = |one: &Imported| reports(one).iter().filter_map(|of| of.window.end).max();
    if listings.iter().all(|one| time(one).is_some()) {
        listings.sort_by_key(time);
    }
    let all = |listings: &[Imported]| -> Option<Vec<Imported>> {
        let pairs = listings.windows(2);
        pairs.map(|two| difference(&two[0], &two[1])).collect()
    };
    Ok(match all(&listings) {
        Some(pairs) if !pairs.is_empty() => pairs,
        _ => {
            let mut backwards = listings.clone();
            backwards.reverse();
            if all(&backwards).is_some_and(|pairs| !pairs.is_empty()) {
                let names = |of: &[Imported]| {
                    let names: Vec<String> = of.iter().map(|one| one.sources.join(" ")).collect();
                    names.join(" ")
                };
                return Err(usage!(
                    "the counts of the listings fall from each to the next: {given}",
                    "give the earlier one first: {backwards}",
                    given = names(&listings),
                    backwards = names(&backwards)
                ));
            }

            if let [first, others @ ..] = listings.as_mut_slice()
                && !others.is_empty()
            {
                first.notes.push(
                    "the listings do not continue each other, because a count falls or a bucket is \
                     missing: each is shown by itself"
                        .into(),
                );
            }
            listings
        }
    })
}

/// The files of both, each once.
fn together(one: &[String], other: &[String]) -> Vec<String> {
    let more = other.iter().filter(|name| !one.contains(name));
    one.iter().chain(more).cloned().collect()
}

fn reports(of: &Imported) -> &[DatabaseReport] {
    match &of.figures {
        Figures::Database(reports) => reports,
        Figures::Loads(_) | Figures::Series(_) | Figures::Claims(_) => &[],
    }
}

/// `None` if a count falls, or if something of the earlier listing is missing in the later one.
fn difference(earlier: &Imported, later: &Imported) -> Option<Imported> {
    let (before, after) = (reports(earlier), reports(later));
    let is_known = |one: &DatabaseReport, other: &DatabaseReport| {
        one.identity.container == other.identity.container
    };
    if !before
        .iter()
        .all(|one| after.iter().any(|other| is_known(one, other)))
    {
        return None;
    }
    let of = |report: &DatabaseReport| match before.iter().find(|one| is_known(one, report)) {
        Some(one) => between(one, report),
        None => Some(report.clone()),
    };
    let named = |report: DatabaseReport| {
        let first = before.first().map_or("", |one| one.file.as_str());
        if first == report.file {
            return report;
        }
        DatabaseReport {
            file: format!("{} to {}", file_name(first), file_name(&report.file)),
            ..report
        }
    };
    let reports: Vec<DatabaseReport> = after
        .iter()
        .map(|report| of(report).map(named))
        .collect::<Option<_>>()?;
    let is_timed = reports.iter().all(|one| one.window.elapsed_s.is_some());
    let mut notes = vec![format!(
        "the difference of {} and {}: what was waited for between them{}",
        earlier.sources.join(", "),
        if earlier.sources == later.sources {
            "the next listing in it".into()
        } else {
            later.sources.join(", ")
        },
        if is_timed {
            "; their times are the last updates that they list, so rates are approximate"
        } else {
            ", without a rate: list LAST_UPDATE_TIME, too, for one"
        }
    )];
    let is_own = |note: &&String| !note.contains(super::listing::SINCE_START);
    notes.extend(later.notes.iter().filter(is_own).cloned());
    Some(Imported {
        sources: together(&earlier.sources, &later.sources),
        notes,
        figures: Figures::Database(reports),
        ..later.clone()
    })
}

/// What `after` counted that `before` had not.
fn between(before: &DatabaseReport, after: &DatabaseReport) -> Option<DatabaseReport> {
    let all_remain = before.histograms.iter().all(|row| {
        let now = after.histograms.iter().find(|now| now.event == row.event);
        now.is_some_and(|now| {
            let is_left = |one: &WaitBucket| now.buckets.iter().any(|other| is_same(one, other));
            row.buckets.iter().all(is_left)
        })
    });
    if !all_remain {
        return None;
    }
    let row = |row: &WaitHistogram| {
        let earlier = before.histograms.iter().find(|one| one.event == row.event);
        let bucket = |bucket: &WaitBucket| {
            let earlier = earlier?.buckets.iter().find(|one| is_same(one, bucket));
            let count = bucket.count? - earlier.map_or(Some(0.0), |one| one.count)?;
            (count >= 0.0).then(|| WaitBucket {
                count: Some(count),
                ..bucket.clone()
            })
        };
        if earlier.is_none() {
            return Some(row.clone());
        }
        let buckets: Vec<WaitBucket> = row.buckets.iter().map(bucket).collect::<Option<_>>()?;
        Some(WaitHistogram {
            buckets: buckets
                .into_iter()
                .filter(|bucket| bucket.count != Some(0.0))
                .collect(),
            ..row.clone()
        })
    };
    let histograms: Vec<WaitHistogram> = after.histograms.iter().map(row).collect::<Option<_>>()?;
    let mut report = DatabaseReport {
        histograms: histograms
            .into_iter()
            .filter(|row| !row.buckets.is_empty())
            .collect(),
        ..after.clone()
    };
    let seconds = before
        .window
        .end
        .zip(after.window.end)
        .map(|(from, to)| to.since(from));
    report.window.begin = before.window.end;
    report.window.begin_id = before.window.end_id;
    report.window.elapsed_s = seconds
        .filter(|seconds| *seconds > 0)
        .map(|seconds| Printed {
            value: seconds as f64,
            half: 1.0,
        });
    Some(report)
}

fn is_same(one: &WaitBucket, other: &WaitBucket) -> bool {
    one.high_us.map(f64::to_bits) == other.high_us.map(f64::to_bits)
}

#[cfg(test)]
mod tests {
    use super::super::{Source, csv_columns::Columns, read};
    use super::*;

    fn listing(counts: [u32; 3], time: &str) -> String {
        let [a, b, c] = counts;
        format!(
            "EVENT                    WAIT_TIME_MICRO WAIT_COUNT LAST_UPDATE_TIME\n\
             ------------------------ --------------- ---------- ----------------------------\n\
             db file sequential read              256 {a:>10} 23-APR-16 09.00.00.000000 AM\n\
             db file sequential read              512 {b:>10} {time}\n\
             log file parallel write              512 {c:>10} 23-APR-16 09.00.00.000000 AM\n"
        )
    }

    fn imported(texts: &[&str]) -> Vec<Imported> {
        let names = ["one.txt", "two.txt", "three.txt"];
        let sources: Vec<Source> = texts
            .iter()
            .zip(names)
            .map(|(text, name)| Source { name, text })
            .collect();
        read(&sources, None, &Columns::default()).unwrap()
    }

    fn counts(of: &DatabaseReport) -> Vec<(&str, f64)> {
        of.histograms
            .iter()
            .flat_map(|row| {
                row.buckets
                    .iter()
                    .map(move |bucket| (row.event.as_str(), bucket.count.unwrap()))
            })
            .collect()
    }

    #[test]
    fn two_listings_are_what_was_waited_for_between_them() {
        let early = listing([100, 20, 7], "23-APR-16 10.00.00.000000 AM");
        let late = listing([1100, 520, 7], "23-APR-16 10.10.00.000000 AM");
        // The order of the files does not matter if there are times.
        for (texts, order) in [
            ([&early, &late], "one.txt and two.txt"),
            ([&late, &early], "two.txt and one.txt"),
        ] {
            let found = imported(&texts.map(String::as_str));
            assert_eq!(found.len(), 1);
            let report = &reports(&found[0])[0];
            assert_eq!(report.file, order.replace("and", "to"));
            let read = "db file sequential read";
            assert_eq!(counts(report), [(read, 1000.0), (read, 500.0)]);
            let seconds = report.window.elapsed_s.map(|time| time.value);
            assert_eq!(seconds, Some(600.0));
            assert!(found[0].notes[0].contains(order), "{:?}", found[0].notes);
        }
    }

    #[test]
    fn listings_in_the_wrong_order_are_refused_with_the_right_one() {
        let [early, late] = [[100, 20, 7], [1100, 520, 7]].map(|counts| listing(counts, ""));
        let source = |name, text| Source { name, text };
        let sources = [source("b.txt", &late), source("a.txt", &early)];
        let said = read(&sources, None, &Columns::default()).unwrap_err();
        assert!(said.hint().ends_with("first: a.txt b.txt"), "{said}");
    }

    #[test]
    fn three_listings_are_two_differences() {
        let texts = [[1, 1, 1], [3, 1, 1], [3, 1, 9]].map(|counts| listing(counts, ""));
        let found = imported(&texts.each_ref().map(String::as_str));
        assert_eq!(found.len(), 1, "{found:?}");
        let all: Vec<_> = reports(&found[0]).iter().map(counts).collect();
        let first = vec![("db file sequential read", 2.0)];
        assert_eq!(all, [first, vec![("log file parallel write", 8.0)]]);
    }

    #[test]
    fn snapshots_are_subtracted_and_a_restart_is_left_out() {
        let row = |snap: u32, bound: u32, count: u32| {
            format!("{snap:>10} db file sequential read {bound:>15} {count:>10}\n")
        };
        let rows = [
            row(11, 1, 1000),
            row(12, 1, 1030),
            row(12, 2, 5),
            row(13, 1, 20),
            row(14, 1, 25),
        ];
        let text = format!(
            "   SNAP_ID EVENT_NAME              WAIT_TIME_MILLI WAIT_COUNT\n---------- \
             ----------------------- --------------- ----------\n{}",
            rows.concat()
        );
        let found = imported(&[&text]);
        assert_eq!(found.len(), 1);
        let all: Vec<Vec<f64>> = reports(&found[0])
            .iter()
            .map(|report| counts(report).into_iter().map(|(_, count)| count).collect())
            .collect();
        assert_eq!(all, [vec![30.0, 5.0], vec![5.0]]);
        let ids: Vec<_> = reports(&found[0])
            .iter()
            .map(|of| (of.window.begin_id, of.window.end_id))
            .collect();
        assert_eq!(ids, [(Some(11), Some(12)), (Some(13), Some(14))]);
        let said = found[0].notes.join("; ");
        assert!(said.contains("1 of 3 intervals are left out"), "{said}");
    }

    #[test]
    fn counts_that_fall_again_and_again_are_of_each_snapshot() {
        let row = |snap: u32, count: u32| {
            format!("{snap:>10} db file sequential read               1 {count:>10}\n")
        };
        let rows = [row(11, 900), row(12, 300), row(13, 700), row(14, 200)];
        let text = format!(
            "   SNAP_ID EVENT_NAME              WAIT_TIME_MILLI WAIT_COUNT\n---------- \
             ----------------------- --------------- ----------\n{}",
            rows.concat()
        );
        let found = imported(&[&text]);
        let all = found.iter().flat_map(reports);
        let all: Vec<_> = all
            .map(|of| (of.window.begin_id, counts(of)[0].1))
            .collect();
        let expected = [
            (None, 900.0),
            (Some(11), 300.0),
            (Some(12), 700.0),
            (Some(13), 200.0),
        ];
        assert_eq!(all, expected);
        let said = found[0].notes.join("; ");
        assert!(said.contains("fall between most snapshots"), "{said}");
    }

    #[test]
    fn a_count_that_falls_is_no_difference() {
        let early = listing([100, 20, 7], "23-APR-16 10.00.00.000000 AM");
        let late = listing([90, 520, 7], "23-APR-16 10.10.00.000000 AM");
        let found = imported(&[&early, &late]);
        assert_eq!(reports(&found[0]).len(), 2);
        let said = found[0].notes.join("; ");
        assert!(said.contains("do not continue each other"), "{said}");
    }
}
