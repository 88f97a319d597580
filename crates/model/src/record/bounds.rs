//! What a record may contain at most, for whoever reads one that others wrote: a journal, or what a
//! rank sends. Journals are checked when they are read and before they are written, so that none is
//! written that could not be read.

use super::PointRecord;

/// Maximum number of windows per point: 115 days of one-second windows. Analysis needs memory for
/// each window.
pub(crate) const WINDOWS_MAX: u64 = 10_000_000;

impl PointRecord {
    /// Number of windows that were measured to their end. Those that have no window in the record
    /// do not count: a record may claim any duration.
    pub fn whole_windows(&self) -> usize {
        let written = self.streams.iter().flat_map(|stream| &stream.kinds);
        let written = written.map(|kind| kind.windows.len()).max().unwrap_or(0);
        let measured = self.measured.0 / self.window.0.max(1);
        usize::try_from(measured).map_or(written, |measured| measured.min(written))
    }

    /// Checks that analysis needs no more memory than the record itself.
    ///
    /// # Errors
    /// The windows are too many for the measured time, or a kind of operation lacks windows that
    /// others have; the sentence names the value and the limit.
    pub fn check_windows(&self) -> Result<(), String> {
        let (measured, window) = (self.measured, self.window);
        let claimed = measured.0 / window.0.max(1);
        if claimed > WINDOWS_MAX {
            return Err(format!(
                "{measured} in windows of {window} are {claimed} windows, and the limit is \
                 {WINDOWS_MAX}"
            ));
        }
        let whole = self.whole_windows();
        for stream in &self.streams {
            for kind in &stream.kinds {
                if kind.windows.len() < whole {
                    return Err(format!(
                        "'{}' has {} windows of {}, and the record has {whole}",
                        stream.name,
                        kind.windows.len(),
                        kind.kind.name()
                    ));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::Nanos;
    use crate::record::Window;
    use crate::record::journal::Run;
    use std::path::Path;

    const JOURNAL: &str = include_str!("../../../../tests/journals/v0.1.0.jsonl");

    /// The journal with other times in its first point.
    fn claimed(measured: u64, window: u64) -> Result<Run, crate::Error> {
        let mut lines: Vec<serde_json::Value> = JOURNAL
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let point = lines.iter_mut().find_map(|line| line.get_mut("point"));
        let point = point.unwrap();
        (point["measured"], point["window"]) = (measured.into(), window.into());
        let text: String = lines
            .iter()
            .flat_map(|line| [line.to_string(), "\n".into()])
            .collect();
        Run::parse(Path::new("journal.jsonl"), text.as_bytes())
    }

    #[test]
    fn a_record_has_no_more_windows_than_are_written() {
        let sound: Run = Run::parse(Path::new("journal.jsonl"), JOURNAL.as_bytes()).unwrap();
        let written = sound.points[0].whole_windows();
        assert!(written > 0);
        for shift in [20, 21, 22] {
            let run = claimed(1 << (30 + shift), 1 << 30).unwrap();
            assert_eq!(run.points[0].whole_windows(), written);
        }
        for (measured, window) in [(1 << 50, 1 << 20), (u64::MAX, 0)] {
            let refused = claimed(measured, window).unwrap_err().to_string();
            assert!(refused.contains("and the limit is 10000000"), "{refused}");
        }
    }

    #[test]
    fn each_kind_has_the_windows_that_others_have() {
        let run: Run = Run::parse(Path::new("journal.jsonl"), JOURNAL.as_bytes()).unwrap();
        let mut record = run.points[0].clone();
        assert_eq!(record.check_windows(), Ok(()));
        let mut stream = record.streams[0].clone();
        stream.name = "other".into();
        stream.kinds[0].windows.clear();
        record.streams.push(stream);
        let refused = record.check_windows().unwrap_err();
        assert!(refused.starts_with("'other' has 0 windows of"), "{refused}");
        // What was measured beyond the last whole window may be in one kind alone.
        record.streams.pop();
        record.streams[0].kinds[0].windows.push(Window::default());
        assert_eq!(record.check_windows(), Ok(()));
        record.window = Nanos(0);
        assert!(record.check_windows().is_err());
    }
}
