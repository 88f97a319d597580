//! Times in which Rigel itself did not run, in words.

use crate::figures::quantity::{counted, time};
use rigel_model::record::{PointRecord, Suspension};
use rigel_model::{Finding, FindingName};

/// Says that Rigel itself did not run during this point; `None` if it did.
pub(super) fn finding(record: &PointRecord) -> Option<Finding> {
    let is_left_out = !record.has_suspensions();
    of(
        &format!("at {}", record.coordinates),
        &record.suspended,
        is_left_out,
    )
}

/// The same of these times in `place`; their windows count, or are left out.
pub(crate) fn of(place: &str, times: &[Suspension], is_left_out: bool) -> Option<Finding> {
    let lengths = || times.iter().map(|one| one.lasts.as_secs_f64() * 1e6);
    let longest = lengths().max_by(f64::total_cmp)?;
    let times = match times.len() {
        1 => String::new(),
        many => format!(
            ", {} in {}",
            time(lengths().sum()),
            counted(many as u64, "pause")
        ),
    };
    let did_not_run = format!(
        "{place} Rigel itself did not run for {}{times}: it was stopped, or its machine",
        time(longest)
    );
    let name = FindingName::Suspended;
    Some(if is_left_out {
        Finding::note(
            name,
            format!("{did_not_run}; the figures leave that time out"),
        )
    } else {
        Finding::warning(
            name,
            format!("{did_not_run}; the figures contain it"),
            "look for a pause of the virtual machine, a frozen group of processes or a signal; then \
             measure again",
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::point::summary::summarise;
    use rigel_model::Nanos;
    use rigel_model::record::visits::joined;

    /// What is found where Rigel did not run from three seconds on, and reads that were outstanding ended then.
    fn found(lasts_s: u64) -> (Vec<String>, String) {
        let mut record = crate::examples::reads_of_a_millisecond();
        record.suspended = vec![Suspension {
            at: Nanos::from_millis(3050),
            until: Nanos::from_millis(3050 + 1000 * lasts_s),
            lasts: Nanos::from_secs(lasts_s),
        }];
        let windows = &mut record.streams[0].kinds[0].windows;
        windows[3].response.record(Nanos::from_secs(lasts_s));
        windows[4..6].fill(rigel_model::record::Window::default());
        let record = joined(std::slice::from_ref(&record)).remove(0);
        let summary = summarise(&record);
        let all = crate::search::run_checks::stalled(&[record], std::slice::from_ref(&summary));
        let names = summary
            .findings
            .iter()
            .chain(&all)
            .map(|finding| finding.name.clone());
        let what = summary
            .findings
            .iter()
            .find(|finding| finding.is(FindingName::Suspended));
        (names.collect(), what.unwrap().what.clone())
    }

    #[test]
    fn a_pause_of_rigel_itself_is_no_stall_and_in_no_figure() {
        let (names, what) = found(3);
        assert_eq!(names, ["suspended"]);
        assert!(what.contains("did not run for 3.00 s: "), "{what}");
        assert!(what.ends_with("leave that time out"), "{what}");
    }
}
