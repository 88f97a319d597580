//! Records on their way to rank 0.
//!
//! A message has a limit, and a record has none: a day of windows with histograms takes hundreds of
//! megabytes. So a rank sends the windows and counters of its record in parts, which rank 0 puts
//! together again. Rank 0 refuses a record that is not one of the point that it asked for: what
//! arrives from a rank may contain any numbers.

use super::news::{News, RankPart};
use rigel_model::record::{PointRecord, Window};
use rigel_model::{Error, Nanos, Point, Sample};
use std::collections::BTreeMap;

/// Windows or samples of one message. A window in which every bucket of both of its histograms
/// counts something takes 200 KB.
const PART: usize = 64;

/// Sends a record in parts.
///
/// # Errors
/// The connection broke.
pub(super) fn send(
    mut record: PointRecord,
    began: Nanos,
    send: &mut dyn FnMut(&News) -> Result<(), Error>,
) -> Result<(), Error> {
    for (number, stream) in record.streams.iter_mut().enumerate() {
        for (kind, record) in stream.kinds.iter_mut().enumerate() {
            let mut windows = std::mem::take(&mut record.windows).into_iter();
            while windows.len() > 0 {
                send(&News::Slice {
                    stream: number,
                    kind,
                    windows: windows.by_ref().take(PART).collect(),
                })?;
            }
        }
    }
    let mut samples = std::mem::take(&mut record.samples).into_iter();
    while samples.len() > 0 {
        send(&News::Samples(samples.by_ref().take(PART).collect()))?;
    }
    let record = Box::new(record);
    send(&News::Over { record, began })
}

/// What has arrived of the records of ranks.
#[derive(Default)]
pub(super) struct ArrivingRecords {
    by_rank: BTreeMap<usize, ArrivingRecord>,
}

/// What has arrived of one record.
#[derive(Default)]
struct ArrivingRecord {
    /// By the positions of the class and the kind.
    windows: BTreeMap<(usize, usize), Vec<Window>>,
    samples: Vec<Sample>,
}

impl ArrivingRecords {
    /// Takes a message of `rank` about `point`. Returns the record once it is complete.
    ///
    /// # Errors
    /// It is no record of the point; the sentence says why.
    pub(super) fn take(
        &mut self,
        rank: usize,
        news: News,
        point: &Point,
    ) -> Result<Option<RankPart>, String> {
        let most = windows_most(point);
        let arriving = self.by_rank.entry(rank).or_default();
        match news {
            News::Slice {
                stream,
                kind,
                windows,
            } => {
                let is_known = stream < point.streams.len() && kind < rigel_model::Kind::ALL.len();
                let all = arriving.windows.entry((stream, kind)).or_default();
                if !is_known || windows.len() > PART || all.len() + windows.len() > most {
                    return Err(format!("more windows than '{}' has", point.coordinates));
                }
                all.extend(windows);
            }
            News::Samples(samples) => {
                if arriving.samples.len() + samples.len() > most.saturating_add(PART) {
                    return Err(format!("more samples than '{}' has", point.coordinates));
                }
                arriving.samples.extend(samples);
            }
            News::Over { record, began } => {
                let arriving = self.by_rank.remove(&rank).unwrap_or_default();
                return arriving
                    .complete(*record, point)
                    .map(|record| Some((record, began)));
            }
            News::Warm | News::Windows(_) | News::Counts(_) | News::Stalled(_) => {}
        }
        Ok(None)
    }
}

impl ArrivingRecord {
    fn complete(self, mut record: PointRecord, point: &Point) -> Result<PointRecord, String> {
        for ((stream, kind), mut windows) in self.windows {
            let kinds = record
                .streams
                .get_mut(stream)
                .map(|stream| &mut stream.kinds);
            let Some(of_kind) = kinds.and_then(|kinds| kinds.get_mut(kind)) else {
                return Err("windows of a class that is not in the record".into());
            };
            windows.append(&mut of_kind.windows);
            of_kind.windows = windows;
        }
        let mut samples = self.samples;
        samples.append(&mut record.samples);
        record.samples = samples;
        if (record.coordinates, record.window) != (point.coordinates, point.window) {
            return Err(format!(
                "a record of {} in windows of {}, and '{}' has windows of {}",
                record.coordinates, record.window, point.coordinates, point.window
            ));
        }
        record.check_windows()?;
        Ok(record)
    }
}

/// The most windows of a record. A measurement ends when its last operations do, so that some may
/// be longer than was asked for; storage that does not answer may take an hour.
fn windows_most(point: &Point) -> usize {
    const BEYOND: Nanos = Nanos::from_secs(3600);
    const WITHOUT_LIMIT: usize = 10_000_000;
    let most = point.until.longest().map(|longest| {
        let time = longest.plus(BEYOND);
        usize::try_from(time.0 / point.window.0.max(1) + 2).unwrap_or(WITHOUT_LIMIT)
    });
    most.map_or(WITHOUT_LIMIT, |most| most.min(WITHOUT_LIMIT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::record::{Coverage, End, KindRecord, StreamRecord};
    use rigel_model::{Coordinates, Kind, Load, Mix, Pattern, Stream, Until, WarmUp};

    fn point() -> Point {
        Point {
            coordinates: Coordinates::at_depth(1),
            streams: vec![Stream {
                name: "small".into(),
                load: Load::Closed { depth: 1 },
                mix: Mix::READS,
                pattern: Pattern::Uniform,
                length: 8192,
                objective: None,
                sql: None,
                rank: None,
                log: None,
            }],
            warm_up: WarmUp::NONE,
            until: Until::Elapsed(Nanos::from_secs(200)),
            window: Nanos::from_secs(1),
            seed: 1,
        }
    }

    fn record(windows: u64) -> PointRecord {
        let window = |done| Window {
            done,
            ..Window::default()
        };
        PointRecord {
            coordinates: point().coordinates,
            started: String::new(),
            began: Nanos(0),
            warm_up: Nanos(0),
            measured: Nanos::from_secs(windows),
            end: End::Complete,
            cpu: Nanos(0),
            cpus: 1,
            window: point().window,
            asked: None,
            streams: vec![StreamRecord {
                name: "small".into(),
                length: 8192,
                loads: Vec::new(),
                patterns: Vec::new(),
                sql: None,
                kinds: vec![KindRecord {
                    kind: Kind::Read,
                    windows: (0..windows).map(window).collect(),
                }],
                unserved: Vec::new(),
                drained: 0,
                censored: None,
                delay: None,
                warm_up_done: 0,
                coverage: Coverage::default(),
            }],
            samples: (0..windows)
                .map(|second| Sample {
                    at: Nanos::from_secs(second),
                    ..Sample::default()
                })
                .collect(),
            merge: None,
            verified: None,
            syncs: None,
            visits: Vec::new(),
            silences: Vec::new(),
            suspended: Vec::new(),
            left_out: Nanos(0),
        }
    }

    #[test]
    fn a_record_in_parts_is_the_record() {
        for windows in [0, 1, 64, 65, 200] {
            let mut arriving = ArrivingRecords::default();
            let mut complete = None;
            send(record(windows), Nanos(7), &mut |news| {
                let text = serde_json::to_string(news).unwrap();
                let news = serde_json::from_str(&text).unwrap();
                assert!(complete.is_none());
                complete = arriving.take(3, news, &point()).unwrap();
                Ok(())
            })
            .unwrap();
            assert_eq!(complete, Some((record(windows), Nanos(7))));
        }
    }

    #[test]
    fn a_record_that_is_none_of_the_point_is_refused() {
        let refused = |change: &dyn Fn(&mut PointRecord), why: &str| {
            let mut odd = record(2);
            change(&mut odd);
            let record = Box::new(odd);
            let began = Nanos(0);
            let news = News::Over { record, began };
            let error = ArrivingRecords::default().take(1, news, &point());
            assert!(error.clone().unwrap_err().contains(why), "{why}: {error:?}");
        };
        refused(&|record| record.window = Nanos(0), "in windows of 0");
        refused(
            &|record| record.coordinates = Coordinates::at_depth(2),
            "a record of depth 2",
        );
        refused(
            &|record| record.measured = Nanos::MAX,
            "and the limit is 10000000",
        );
        let slice = |stream, count| News::Slice {
            stream,
            kind: 0,
            windows: vec![Window::default(); count],
        };
        let mut arriving = ArrivingRecords::default();
        assert!(arriving.take(1, slice(1, 1), &point()).is_err());
        assert!(arriving.take(1, slice(0, PART + 1), &point()).is_err());
        let mut arriving = ArrivingRecords::default();
        let count = (0..1000).find(|_| arriving.take(1, slice(0, PART), &point()).is_err());
        // The point has 200 windows, and an hour may go by before its storage answers.
        assert_eq!(count, Some(3802 / PART));
    }
}
