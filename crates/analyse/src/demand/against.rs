//! A demand beside a calibration: how much of what the storage can do the database uses.
//!
//! Input: one interval of a demand, and a calibration. Output: for each stream the part of the
//! storage's time that it needs, as a range, and whether it fits: whether there is enough of that
//! time, and whether the stream keeps the objective that `rigel fit` would assume for it.
//!
//! The calibration measured one size of random I/O, one large size, and appends of a few sizes. An
//! I/O between two sizes needs at least the time of the smaller and at most that of the larger, and
//! at most the time of as many small ones as it is long. Both limits are printed, so that the
//! answer is certain or says that it is not.

use super::answer::Answer;
use super::keeps::{JudgedStream, StorageLoad, TimeAlone, exponential_us, keeps};
use super::read_kind::BLOCK_ASSUMED;
use super::sources::{demand_censored, demand_findings};
use super::stream_objective::{StreamObjective, assumed, objective_in_words, objective_of_stream};
use crate::conclusion::trust::RunTrust;
use crate::figures::quantity::{listed, mb_per_second, per_second, rounded_percent};
use crate::search::at_load::AtLoad;
use crate::search::calibration::{Calibration, LogWrites};
use rigel_model::record::Imported;
use rigel_model::{
    Bytes, Demand, DemandInterval, DemandKind, DemandStream, Finding, Moment, Step, with_causes,
};
use rigel_stats::estimate::Estimate;
use serde::Serialize;

/// The part of the storage's time that a stream needs; 1 is all of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Usage {
    /// At least this part.
    pub low: f64,
    /// At most this part; `None` if the calibration did not measure what would show it.
    pub high: Option<f64>,
}

impl Usage {
    /// No time at all.
    pub(crate) const NONE: Self = Self {
        low: 0.0,
        high: Some(0.0),
    };

    /// The parts of two streams together.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            low: self.low + other.low,
            high: self.high.zip(other.high).map(|(one, two)| one + two),
        }
    }

    /// Whether the storage has that much time.
    fn fits(self) -> Answer {
        match self.high {
            Some(high) if high <= 1.0 => Answer::Yes,
            _ if self.low > 1.0 => Answer::No,
            _ => Answer::Undecided,
        }
    }
}

/// A stream of the demand beside what the storage does.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct StreamAgainst {
    /// The kind of I/O.
    pub kind: DemandKind,
    /// Operations per second that the database asked for.
    pub per_s: f64,
    /// Their mean size; `None` if the source does not give it.
    pub mean_bytes: Option<f64>,
    /// Mean latency as the database saw it.
    pub database_us: Option<f64>,
    /// Mean response time of this storage at the lowest measured load that is at least as high, for
    /// I/Os of the measured size; `None` if none was measured.
    pub storage_us: Option<Estimate>,
    /// The part of the storage's time that the stream needs.
    pub usage: Usage,
    /// What it must keep; `None` if it must only be served.
    pub objective: Option<StreamObjective>,
    /// Whether it fits, alone.
    pub fits: Answer,
    /// Whether it keeps its objective while all streams run.
    pub keeps_together: Answer,
    /// What its response time would be while all streams run, in words; empty if there is no
    /// objective.
    pub together: String,
    /// The figure of the calibration that decides, in words; or what is missing.
    pub by: String,
}

/// A demand beside a calibration.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct DemandAgainst {
    /// Database and instance in words.
    pub database: String,
    /// The file or snapshots of the interval.
    pub label: String,
    /// When it began.
    pub begin: Option<Moment>,
    /// Its length.
    pub seconds: Option<f64>,
    /// The share of intervals with less I/O.
    pub share_below: f64,
    /// Number of intervals of the demand.
    pub intervals: usize,
    /// Its streams whose rate is known and above zero.
    pub streams: Vec<StreamAgainst>,
    /// The kinds of I/O of which there was none in the interval; what the source does not say is
    /// neither here nor among the streams.
    pub idle: Vec<DemandKind>,
    /// The sum over streams, without log writes: those wait for each other and not for a share of
    /// the throughput.
    pub together: Usage,
    /// Whether all streams fit together.
    pub fits: Answer,
    /// Why the database might have asked for more; empty if nothing speaks for it.
    pub censored: String,
    /// The bytes that a random read is taken to have, because the demand does not say it; `None` if
    /// it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assumed_block: Option<u32>,
    /// Doubts about the demand: nothing here is better than the demand.
    #[serde(serialize_with = "with_causes")]
    pub findings: Vec<Finding>,
}

impl DemandAgainst {
    /// How far the demand can be trusted.
    pub fn trust(&self) -> RunTrust {
        RunTrust::of(self.findings.iter(), &[])
    }

    /// Why the answer is what it is, in words.
    pub fn reason(&self) -> String {
        let of = |fits: Answer| self.streams.iter().find(|one| one.fits == fits);
        let together = |answer: Answer| {
            let mut streams = self.streams.iter();
            streams.find(|one| one.keeps_together == answer && !one.together.is_empty())
        };
        let beside = |one: &StreamAgainst| {
            let objective = one.objective.map(|one| objective_of_stream(&one));
            let objective = objective.unwrap_or_else(|| one.kind.words().into());
            format!("{objective}: {} while all streams run", one.together)
        };
        match (self.fits, of(Answer::No), of(Answer::Undecided)) {
            (Answer::No, Some(one), _) if one.usage.low > 1.0 => format!(
                "the {} need at least {} of what this storage can do",
                one.kind.words(),
                rounded_percent(one.usage.low)
            ),
            (Answer::No, Some(one), _) => {
                format!("the {} do not keep {}", one.kind.words(), one.by)
            }
            (Answer::Undecided, _, Some(one)) => format!("{}: {}", one.kind.words(), one.by),
            (Answer::Yes, ..) => {
                let objectives = self.streams.iter().filter_map(|one| one.objective);
                let objectives: Vec<String> =
                    objectives.map(|one| objective_of_stream(&one)).collect();
                let with = if objectives.is_empty() {
                    String::new()
                } else {
                    format!(", with {}", listed(&objectives))
                };
                format!(
                    "the streams together need at most {} of what this storage can do{with}",
                    rounded_percent(self.together.high.unwrap_or_default())
                )
            }
            _ if self.together.fits() == Answer::Yes => match together(self.fits) {
                Some(one) => beside(one),
                None => "what the streams delay each other is not known".into(),
            },
            _ => format!(
                "each stream fits alone, and together they need {} to {} of what this storage can \
                 do",
                rounded_percent(self.together.low),
                rounded_percent(self.together.high.unwrap_or_default())
            ),
        }
    }
}

/// The interval of `demand` with the most I/O, beside what `calibration` measured. `None` if no
/// stream of it has a rate. `imported` are the reports that the demand was read from.
pub fn against(
    demand: &Demand,
    imported: &[Imported],
    calibration: &Calibration,
) -> Option<DemandAgainst> {
    let (interval, share_below) = demand.busiest()?;
    let mut findings = demand_findings(std::slice::from_ref(demand), imported, interval);
    findings.extend(demand_censored(&demand.database, interval));
    let DemandInterval {
        label,
        begin,
        seconds,
        censored,
        ..
    } = interval;
    let asked: Vec<DemandLoad> = interval
        .streams
        .iter()
        .filter_map(|stream| {
            let objective = assumed(interval, stream, &findings);
            DemandLoad::of(stream, objective, demand.block_bytes, calibration)
        })
        .collect();
    let all = asked
        .iter()
        .fold(StorageLoad::NONE, |sum, one| sum.plus(one.load));
    let streams: Vec<StreamAgainst> = asked
        .into_iter()
        .map(|one| one.beside(all, calibration))
        .collect();
    let of = |wanted: fn(DemandKind) -> bool| {
        let chosen = streams.iter().filter(|one| wanted(one.kind));
        chosen.fold(Usage::NONE, |sum, one| sum.plus(one.usage))
    };
    let together = of(|kind| kind != DemandKind::LogWrites);
    // Reads and writes may have ways of their own: only one of the two can show that it is too much.
    let sides = [
        of(DemandKind::is_read),
        of(|kind| !kind.is_read() && kind != DemandKind::LogWrites),
    ];
    let is_too_much = sides.iter().any(|side| side.low > 1.0);
    let served = match together.fits() {
        Answer::Yes => Answer::Yes,
        _ if is_too_much => Answer::No,
        _ => Answer::Undecided,
    };
    let fits = streams.iter().fold(served, |fits, one| {
        fits.and(one.fits).and(one.keeps_together)
    });
    let is_assumed = |stream: &DemandStream| {
        stream.kind == DemandKind::RandomReads
            && stream.per_s.is_some_and(|per_s| per_s > 0.0)
            && stream.mean_bytes.is_none()
            && demand.block_bytes.is_none()
    };
    let assumed_block = interval
        .streams
        .iter()
        .any(is_assumed)
        .then_some(BLOCK_ASSUMED);
    let is_idle = |stream: &&DemandStream| stream.per_s == Some(0.0);
    let idle = interval.streams.iter().filter(is_idle);
    (!streams.is_empty()).then(|| DemandAgainst {
        database: demand.database.clone(),
        label: label.clone(),
        begin: *begin,
        seconds: *seconds,
        share_below,
        intervals: demand.intervals.len(),
        idle: idle.map(|stream| stream.kind).collect(),
        streams,
        together,
        fits,
        censored: censored.clone(),
        assumed_block,
        findings,
    })
}

/// A stream, with what the calibration says of I/Os of its kind and size.
struct DemandLoad {
    kind: DemandKind,
    per_s: f64,
    bytes: Option<f64>,
    database_us: Option<f64>,
    objective: Option<StreamObjective>,
    figures: AgainstFigures,
    /// What it asks of the storage, alone.
    load: StorageLoad,
}

impl DemandLoad {
    fn of(
        stream: &DemandStream,
        objective: Option<StreamObjective>,
        block_bytes: Option<u32>,
        calibration: &Calibration,
    ) -> Option<Self> {
        let per_s = stream.per_s.filter(|rate| *rate > 0.0)?;
        let kind = stream.kind;
        let bytes = stream.mean_bytes.or_else(|| {
            let of_blocks = kind == DemandKind::RandomReads;
            of_blocks.then(|| block_bytes.unwrap_or(BLOCK_ASSUMED).into())
        });
        let figures = match kind {
            DemandKind::LogWrites => log_writes(per_s, bytes, calibration),
            _ if kind.is_read() => reads(per_s, bytes, kind, calibration),
            _ => writes(per_s, bytes, calibration),
        };
        Some(Self {
            kind,
            per_s,
            bytes,
            database_us: stream.mean_us,
            objective,
            load: load(kind, per_s, bytes, &figures, calibration),
            figures,
        })
    }

    /// The stream beside the figures that it is compared with, while `all` streams run.
    fn beside(self, all: StorageLoad, calibration: &Calibration) -> StreamAgainst {
        let AgainstFigures {
            usage,
            storage_us,
            by,
            alone,
        } = self.figures;
        let is_log = self.kind == DemandKind::LogWrites;
        let small = calibration
            .maximum
            .map_or(f64::INFINITY, |at| at.io_bytes.into());
        let judged = |load: StorageLoad| {
            let judged = JudgedStream {
                objective: self.objective?.objective,
                alone,
                serial_per_s: if is_log { self.per_s } else { 0.0 },
                is_like_small_reads: self.kind.is_read()
                    && self.bytes.is_some_and(|bytes| bytes >= small),
            };
            Some(keeps(&judged, load, calibration))
        };
        // A writer's own appends wait for each other, and not for a share of the throughput.
        let own = if is_log { StorageLoad::NONE } else { self.load };
        let own_answer = judged(own);
        let fits = own_answer
            .as_ref()
            .map_or(Answer::Yes, |(answer, _)| *answer)
            .and(usage.fits());
        let by = match self.objective.zip(own_answer) {
            Some((objective, (_, words))) => {
                format!("{}: {words}; {by}", objective_in_words(objective.objective))
            }
            None => by,
        };
        let (keeps_together, together) =
            judged(all).unwrap_or_else(|| (Answer::Yes, String::new()));
        StreamAgainst {
            kind: self.kind,
            per_s: self.per_s,
            mean_bytes: self.bytes,
            database_us: self.database_us,
            storage_us,
            usage,
            objective: self.objective,
            fits,
            keeps_together,
            together,
            by,
        }
    }
}

/// What a stream asks of the storage.
fn load(
    kind: DemandKind,
    per_s: f64,
    bytes: Option<f64>,
    figures: &AgainstFigures,
    calibration: &Calibration,
) -> StorageLoad {
    let small = calibration.low_load.and_then(|at| at.mean_us.interval);
    let small_us = small.map(|limits| limits.low).filter(|low| *low > 0.0);
    let alone_us = figures.alone.high_us;
    let between_us = calibration.maximum.map(|at| 1e6 / at.iops.least());
    let times_small = alone_us.zip(small_us).map(|(us, small)| us / small);
    let blocks = calibration.maximum.zip(bytes).map(|(at, bytes)| {
        let blocks = bytes / f64::from(at.io_bytes);
        blocks.ceil()
    });
    let times = match (kind.is_read(), times_small, blocks) {
        // A read of the small size is one small read, however precisely its time is known.
        (true, Some(times), Some(blocks)) => Some(times.max(1.0).min(blocks)),
        (true, None, blocks) => blocks,
        (_, times, _) => times.map(|times| times.max(1.0)),
    };
    let used = match kind {
        // One writer keeps one of the I/Os busy that the storage can do at a time.
        DemandKind::LogWrites => alone_us
            .zip(between_us)
            .zip(small_us)
            .map(|((us, between), small)| per_s * us / small * between / 1e6),
        _ => figures.usage.high,
    };
    // A limit of the storage makes I/Os wait even if each is short.
    let longest_us = alone_us
        .zip(between_us)
        .zip(times)
        .map(|((us, between), times)| us.max(between * times));
    let is_like_small_reads = kind.is_read()
        && calibration
            .maximum
            .zip(bytes)
            .is_some_and(|(at, bytes)| bytes >= at.io_bytes.into());
    StorageLoad {
        used,
        reads_per_s: if is_like_small_reads { per_s } else { 0.0 },
        longest_us,
        longest_times: times,
    }
}

/// What a stream is compared with.
#[derive(Default)]
struct AgainstFigures {
    /// The part of the storage's time that it needs.
    usage: Usage,
    /// The response time.
    storage_us: Option<Estimate>,
    /// The figure that decides, in words.
    by: String,
    /// The time of one I/O at the lowest load.
    alone: TimeAlone,
}

impl AgainstFigures {
    fn missing(by: &str) -> Self {
        Self {
            by: by.into(),
            ..Self::default()
        }
    }
}

fn reads(
    per_s: f64,
    bytes: Option<f64>,
    kind: DemandKind,
    calibration: &Calibration,
) -> AgainstFigures {
    let Some(small) = calibration.maximum else {
        return AgainstFigures::missing(
            "the calibration has no random reads: it was stopped early",
        );
    };
    let size = Size::of(small);
    // An offered rate that was served is possible.
    let served = calibration.sustained.kept.map_or(0.0, |at| at.iops.least());
    let size = Size {
        most_per_s: size.most_per_s.max(served),
        ..size
    };
    let words = format!("{} at most", per_second(small.iops.value));
    let by = match calibration.large {
        _ if kind == DemandKind::RandomReads => words,
        Some(at) => format!(
            "{words}; {} of large reads",
            mb_per_second(at.mb_per_s.value)
        ),
        None => format!("{words}; large reads were not measured"),
    };
    let storage_us = (kind == DemandKind::RandomReads)
        .then(|| response(per_s, calibration))
        .flatten();
    AgainstFigures {
        usage: usage(per_s, bytes, size, calibration.large.map(Size::of)),
        storage_us,
        by,
        alone: time_alone(bytes, calibration.low_load, calibration.large_low_load),
    }
}

fn writes(per_s: f64, bytes: Option<f64>, calibration: &Calibration) -> AgainstFigures {
    let Some(at) = calibration.writes else {
        return AgainstFigures::missing("writes were not measured: calibrate with --write");
    };
    AgainstFigures {
        usage: usage(per_s, bytes, Size::of(at), None),
        storage_us: None,
        by: format!("{} random writes at most", per_second(at.iops.value)),
        alone: time_alone(bytes, calibration.write_low_load, None),
    }
}

/// The time of an I/O of `bytes` at the lowest load, by those of two sizes.
fn time_alone(bytes: Option<f64>, small: Option<AtLoad>, large: Option<AtLoad>) -> TimeAlone {
    let Some(bytes) = bytes else {
        return TimeAlone::default();
    };
    let size = |at: AtLoad| f64::from(at.io_bytes);
    let measured = || small.into_iter().chain(large);
    // What is smaller than a small one may be faster than it.
    let low = measured().rfind(|at| size(*at) <= bytes);
    // No longer than as many of a measured size, one after the other.
    let high = measured().filter_map(|at| Some((bytes / size(at)).ceil() * exponential_us(at)?));
    TimeAlone {
        high_us: high.reduce(f64::min),
        ..low.map_or_else(TimeAlone::default, TimeAlone::at_least)
    }
}

/// Appends that wait for each other: the part of the time in which one is on its way.
fn log_writes(per_s: f64, bytes: Option<f64>, calibration: &Calibration) -> AgainstFigures {
    /// Appends are rounded up to whole sectors of this many bytes.
    const SECTOR: f64 = 4096.0;
    if calibration.log_writes.is_empty() {
        return AgainstFigures::missing(
            "log writes were not measured: calibrate with --write --as postgres",
        );
    }
    let Some(bytes) = bytes else {
        return AgainstFigures::missing("the mean size of a log write is not known");
    };
    let whole = (bytes / SECTOR).ceil() * SECTOR;
    let of_size = |one: &&LogWrites| f64::from(one.bytes);
    let larger = calibration
        .log_writes
        .iter()
        .filter(|one| of_size(one) >= whole)
        .min_by_key(|one| one.bytes);
    let smaller = calibration
        .log_writes
        .iter()
        .filter(|one| of_size(one) <= whole)
        .max_by_key(|one| one.bytes);
    let usage = Usage {
        low: smaller.map_or(0.0, |one| per_s / one.at.iops.greatest()),
        high: larger.map(|one| per_s / one.at.iops.least()),
    };
    let by = larger.or(smaller).map_or_else(String::new, |one| {
        format!(
            "{} appends of {} by one writer",
            per_second(one.at.iops.value),
            Bytes(one.bytes.into())
        )
    });
    let low = smaller.map_or_else(TimeAlone::default, |one| TimeAlone::at_least(one.at));
    AgainstFigures {
        usage,
        storage_us: larger.map(|one| one.at.mean_us),
        by,
        alone: TimeAlone {
            high_us: larger.and_then(|one| exponential_us(one.at)),
            ..low
        },
    }
}

/// A measured size.
#[derive(Clone, Copy)]
struct Size {
    bytes: f64,
    /// This number per second is certainly served.
    sure_per_s: f64,
    /// No more than this number per second is served.
    most_per_s: f64,
}

impl Size {
    fn of(at: AtLoad) -> Self {
        Self {
            bytes: at.io_bytes.into(),
            sure_per_s: at.iops.least(),
            most_per_s: at.iops.greatest(),
        }
    }

    /// The most time that an I/O of `bytes` needs: that of as many of this size.
    fn at_most(self, bytes: f64) -> f64 {
        (bytes / self.bytes).ceil() / self.sure_per_s
    }
}

/// The part of the time that `per_s` I/Os of `bytes` need on a device on which an I/O of `small`
/// and of `large` size was measured.
fn usage(per_s: f64, bytes: Option<f64>, small: Size, large: Option<Size>) -> Usage {
    let Some(bytes) = bytes else {
        return Usage::default();
    };
    let as_large = large.map_or(f64::INFINITY, |large| large.at_most(bytes));
    let as_small = small.at_most(bytes);
    // What is smaller than a small one may be faster than it.
    let by_count = if bytes < small.bytes {
        0.0
    } else {
        1.0 / small.most_per_s
    };
    // A byte is cheapest in the largest I/O that was measured; beyond its size that is unknown.
    let by_bytes = large.map_or(0.0, |large| {
        let bandwidth = (large.bytes * large.most_per_s).max(small.bytes * small.most_per_s);
        bytes.min(large.bytes) / bandwidth
    });
    Usage {
        low: per_s * by_count.max(by_bytes),
        high: Some(per_s * as_small.min(as_large)),
    }
}

/// Mean response time at the lowest measured load of random reads with at least this throughput.
fn response(per_s: f64, calibration: &Calibration) -> Option<Estimate> {
    let classes = calibration
        .points
        .iter()
        .filter(|point| matches!(point.step(), Step::Depth | Step::Rate))
        .filter_map(|point| Some((point, point.classes.first()?)));
    classes
        .filter(|(_, class)| class.iops >= per_s && !class.is_not_met())
        .min_by(|(_, one), (_, other)| one.iops.total_cmp(&other.iops))
        .and_then(|(point, class)| AtLoad::of(point, class))
        .map(|at| at.mean_us)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples;
    use crate::examples::against as against_example;
    use crate::{AtRate, Limits, RateMet};

    fn stream(kind: DemandKind, per_s: f64, bytes: f64) -> DemandStream {
        rigel_model::examples::stream(kind, per_s, Some(bytes))
    }

    /// Time of one of the example's eight servers for a read: 100 us and 1 ns a byte.
    fn part(per_s: f64, bytes: f64) -> f64 {
        per_s * (100e-6 + bytes * 1e-9) / 8.0
    }

    #[test]
    fn the_range_holds_what_a_device_that_is_known_needs() {
        for kib in [8, 12, 16, 64, 100, 128, 512, 700, 1024, 2048] {
            let bytes = f64::from(kib << 10);
            let found = against_example(vec![stream(DemandKind::MultiblockReads, 100.0, bytes)]);
            let (usage, truth) = (found.streams[0].usage, part(100.0, bytes));
            let high = usage.high.expect("both sizes were measured");
            assert!(
                usage.low <= truth && truth <= high,
                "{kib} KiB: {usage:?} and not {truth}"
            );
        }
    }

    #[test]
    fn the_answer_is_yes_no_or_undecided() {
        let most = 1.0 / part(1.0, 8192.0);
        let fits = |share: f64| {
            let found =
                against_example(vec![stream(DemandKind::RandomReads, share * most, 8192.0)]);
            (found.streams[0].fits, found.fits)
        };
        assert_eq!(fits(0.5), (Answer::Yes, Answer::Yes));
        assert_eq!(fits(1.0), (Answer::Undecided, Answer::Undecided));
        assert_eq!(fits(1.1), (Answer::No, Answer::No));
    }

    #[test]
    fn streams_that_fit_alone_may_be_too_much_together() {
        let half = 0.6 / part(1.0, 8192.0);
        let found = against_example(vec![
            stream(DemandKind::RandomReads, half, 8192.0),
            stream(DemandKind::PageWrites, 24_000.0, 16384.0),
        ]);
        assert!(found.streams.iter().all(|one| one.fits == Answer::Yes));
        assert_eq!(found.fits, Answer::Undecided, "{:?}", found.together);
        assert!(found.reason().starts_with("each stream fits alone"));
        // Two kinds of reads have no way of their own.
        let reads = against_example(vec![
            stream(DemandKind::RandomReads, half, 8192.0),
            stream(DemandKind::DirectReads, half, 8192.0),
        ]);
        assert_eq!(reads.fits, Answer::No);
    }

    #[test]
    fn log_writes_need_the_time_of_an_append_of_at_least_their_size() {
        // The example has 1,000 appends of 4 KiB a second.
        let of = |per_s, bytes| {
            against_example(vec![stream(DemandKind::LogWrites, per_s, bytes)])
                .streams
                .remove(0)
        };
        assert_eq!(of(500.0, 4096.0).fits, Answer::Yes);
        assert_eq!(of(500.0, 3000.0).fits, Answer::Yes);
        assert_eq!(of(1100.0, 4096.0).fits, Answer::No);
        let larger = of(500.0, 9000.0);
        assert_eq!((larger.usage.high, larger.fits), (None, Answer::Undecided));
    }

    #[test]
    fn random_reads_without_a_size_are_taken_to_be_blocks_and_it_is_said() {
        let reads = DemandStream {
            mean_bytes: None,
            ..stream(DemandKind::RandomReads, 1000.0, 8192.0)
        };
        let of = |block_bytes: Option<u32>, reads: &DemandStream| {
            let demand = Demand {
                block_bytes,
                ..examples::demand(vec![reads.clone()])
            };
            against(&demand, &[], &examples::calibration()).unwrap()
        };
        let known = of(Some(BLOCK_ASSUMED), &reads);
        let assumed = of(None, &reads);
        assert_eq!((known.fits, known.assumed_block), (Answer::Yes, None));
        assert_eq!(
            (assumed.fits, assumed.assumed_block),
            (Answer::Yes, Some(BLOCK_ASSUMED))
        );
        assert_eq!(assumed.streams, known.streams);
        let sized = stream(DemandKind::RandomReads, 1000.0, 4096.0);
        assert_eq!(of(None, &sized).assumed_block, None);
    }

    #[test]
    fn what_was_not_measured_is_named() {
        let mut found = examples::calibration();
        found.writes = None;
        let AgainstFigures { usage, by, .. } = writes(100.0, Some(8192.0), &found);
        assert_eq!((usage.high, usage.fits()), (None, Answer::Undecided));
        assert!(by.contains("--write"), "{by}");
    }

    /// Random reads that took `us` in the database.
    fn seen(per_s: f64, us: f64) -> StreamAgainst {
        let stream = DemandStream {
            mean_us: Some(us),
            ..stream(DemandKind::RandomReads, per_s, 8192.0)
        };
        against_example(vec![stream]).streams.remove(0)
    }

    #[test]
    fn storage_that_has_the_time_must_also_be_as_fast_as_the_database_saw_it() {
        // A read takes 108 us here at the lowest load, and 8 run at the same time.
        let slower = seen(1000.0, 100.0);
        assert!(slower.usage.high.unwrap() < 0.1);
        assert_eq!(slower.fits, Answer::No, "{}", slower.by);
        assert!(
            slower.by.starts_with("mean < 100 µs: mean is at least"),
            "{}",
            slower.by
        );
        assert_eq!(seen(1000.0, 200.0).fits, Answer::Yes);
        // With a tenth of the time left, reads wait.
        let busy = 0.9 / part(1.0, 8192.0);
        assert_eq!(seen(busy, 200.0).fits, Answer::Undecided);
        assert_eq!(seen(busy, 2000.0).fits, Answer::Yes);
    }

    #[test]
    fn an_offered_rate_that_was_measured_decides() {
        let capacity = 1.0 / part(1.0, 8192.0);
        let mut found = examples::calibration();
        let rate = |share: f64, us: f64| AtRate {
            offered_per_s: share * capacity,
            met: RateMet::Yes,
            at: AtLoad {
                mean_us: Estimate::new(
                    us,
                    Some(Limits {
                        low: us * 0.95,
                        high: Some(us * 1.05),
                    }),
                ),
                ..examples::at(256, 8192, share * capacity)
            },
        };
        found.rates = vec![rate(0.5, 110.0), rate(0.95, 180.0)];
        let fits = |share: f64, us: f64| {
            let stream = DemandStream {
                mean_us: Some(us),
                ..stream(DemandKind::RandomReads, share * capacity, 8192.0)
            };
            let demand = examples::demand(vec![stream]);
            let found = against(&demand, &[], &found).unwrap();
            (found.fits, found.reason())
        };
        assert_eq!(fits(0.9, 200.0).0, Answer::Yes);
        assert_eq!(fits(0.9, 150.0).0, Answer::Undecided);
        let (answer, reason) = fits(0.96, 150.0);
        assert_eq!(answer, Answer::No);
        assert!(
            reason.starts_with("the random reads do not keep mean < 150 µs: "),
            "{reason}"
        );
    }

    #[test]
    fn streams_delay_each_other() {
        let reads = DemandStream {
            mean_us: Some(130.0),
            ..stream(DemandKind::RandomReads, 3000.0, 8192.0)
        };
        assert_eq!(against_example(vec![reads.clone()]).fits, Answer::Yes);
        // A large read takes ten times as long as a small one, which waits behind it.
        let large = stream(DemandKind::MultiblockReads, 2000.0, 1_048_576.0);
        let both = against_example(vec![reads, large]);
        assert!(both.streams.iter().all(|one| one.fits == Answer::Yes));
        assert!(both.together.high.unwrap() < 1.0);
        assert_eq!(both.fits, Answer::Undecided);
        let reason = both.reason();
        assert!(
            reason.starts_with("random reads mean < 130 µs: "),
            "{reason}"
        );
        assert!(reason.ends_with(" while all streams run"), "{reason}");
    }
}
