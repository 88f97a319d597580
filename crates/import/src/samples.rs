//! Remarks about the samples of series: which are left out or doubtful, where the first of them is,
//! and why.

use rigel_model::record::imported::{Counted, ImportedSeries};
use rigel_model::{Error, failed};

/// A remark about some samples.
#[derive(Debug)]
struct Remark {
    is_left_out: bool,
    why: String,
    count: usize,
    /// Line of the first such sample.
    first: usize,
}

/// Remarks about the samples of a file, in order of first appearance.
#[derive(Debug, Default)]
pub(super) struct Remarks(Vec<Remark>);

impl Remarks {
    /// Records that a sample of `line` is left out.
    pub(super) fn left_out(&mut self, line: usize, why: &str) {
        self.add(line, why, true);
    }

    /// Records that a sample of `line` is kept but may be wrong.
    pub(super) fn doubtful(&mut self, line: usize, why: &str) {
        self.add(line, why, false);
    }

    fn add(&mut self, line: usize, why: &str, is_left_out: bool) {
        match self
            .0
            .iter_mut()
            .find(|known| known.is_left_out == is_left_out && known.why == why)
        {
            Some(known) => known.count += 1,
            None => self.0.push(Remark {
                is_left_out,
                why: why.into(),
                count: 1,
                first: line,
            }),
        }
    }

    /// The remarks as sentences.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().map(|remark| {
            let what = if remark.is_left_out {
                "left out"
            } else {
                "doubtful"
            };
            let (line, why) = (remark.first, &remark.why);
            match remark.count {
                1 => format!("1 sample is {what}, in line {line}: {why}"),
                count => format!("{count} samples are {what}, the first in line {line}: {why}"),
            }
        })
    }

    /// Refuses a file without any remaining sample.
    ///
    /// # Errors
    /// Samples were left out, and no series has any sample left.
    pub(super) fn refuse_all_left_out(
        &self,
        name: &str,
        series: &[ImportedSeries],
    ) -> Result<(), Error> {
        if !self.0.iter().any(|remark| remark.is_left_out)
            || series.iter().any(|one| !one.samples.is_empty())
        {
            return Ok(());
        }
        let notes: Vec<String> = self.notes().collect();
        Err(failed!(
            "'{name}' has no valid sample: {notes}",
            "check that the columns contain what their names say; for csv, select others with \
             --time, --value, --count and --seconds",
            notes = notes.join("; ")
        ))
    }
}

/// Why a sample in `unit` is empty or impossible; `None` if it is valid. Values without a unit may
/// be negative.
pub(super) fn impossible(sample: &Counted, unit: &str) -> Option<&'static str> {
    let is_negative = |figure: Option<f64>| figure.is_some_and(|figure| figure < 0.0);
    if sample.value.is_none() && sample.count.is_none() {
        Some("the value is empty")
    } else if is_negative(sample.count) {
        Some("the count is negative, as after a reset of a counter")
    } else if is_negative(sample.value) && !unit.is_empty() {
        Some("the value is negative")
    } else if is_negative(sample.seconds) {
        Some("it ends before it begins")
    } else if sample.seconds == Some(0.0) {
        Some("its duration is 0")
    } else if sample.rate().is_none() {
        Some("it has a count but no duration, so its rate is unknown")
    } else {
        None
    }
}

/// Sorts the samples of every series by time. Returns a note if they were not sorted.
pub(super) fn put_in_order(series: &mut [ImportedSeries]) -> Option<String> {
    let mut was_ordered = true;
    for one in series {
        if !one.samples.is_sorted_by_key(|sample| sample.begin) {
            one.samples.sort_by_key(|sample| sample.begin);
            was_ordered = false;
        }
    }
    (!was_ordered)
        .then(|| "times go back, as after a clock is set back: samples were sorted by time".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remark_has_its_count_its_first_line_and_why() {
        let mut remarks = Remarks::default();
        remarks.left_out(4, "the value is empty");
        remarks.doubtful(5, "it is odd");
        remarks.left_out(9, "the value is empty");
        let said: Vec<String> = remarks.notes().collect();
        assert_eq!(
            said,
            [
                "2 samples are left out, the first in line 4: the value is empty",
                "1 sample is doubtful, in line 5: it is odd"
            ]
        );
        assert!(
            remarks
                .refuse_all_left_out("f", &[])
                .unwrap_err()
                .to_string()
                .contains("2 samples are left out")
        );
    }
}
