//! What a run cannot have seen: rare pauses, large burst credit, a large cache.
//!
//! Input: the records of all visits, one after the other, as they were measured. Output: a [`Sight`], which text, page
//! and JSON have under every answer. It is arithmetic on what was done and when: it never judges, and no interval is
//! wider for it.

use crate::compare::subject::Maxima;
use crate::figures::quantity::{count, rounded_length};
use rigel_model::record::{PointRecord, StreamRecord};
use rigel_model::{Bytes, Finding, FindingName, GIB, KIB, MIB, Nanos, Pattern, TrustCause, Weight};
use serde::Serialize;

/// The share of the maximum rate that lasts without credit, for which the credit is said that a run cannot see.
const LASTING_SHARE: f64 = 0.5;

/// Pauses that were never met in a time T come, with 95 % confidence, less often than every T/3 (the rule of three:
/// Hanley and Lippman-Hand, JAMA 249, 1983).
const RULE_OF_THREE: f64 = 3.0;

/// What a run cannot have seen. A part that does not apply is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, schemars::JsonSchema)]
pub struct Sight {
    /// Pauses of the storage that come less often than once in this many seconds may be in no figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses_rarer_than_s: Option<f64>,
    /// Burst credit of more than this, or of as many bytes, may be in all figures. Absent if credit ran out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_beyond: Option<UnseenCredit>,
    /// A cache of more bytes than these, which were touched, may have answered. Absent if one certainly or probably
    /// did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_beyond_bytes: Option<u64>,
}

/// The least credit that this run could not have used up, at a lasting share of the maximum: less would have shown.
///
/// It is the largest sum of (done − share × maximum × time) over any stretch of the run, everything counted: also what
/// warms up, large reads, and pauses, in which credit grows again. A bucket of this size would have been empty at the
/// end of that stretch.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct UnseenCredit {
    /// In operations.
    pub operations: f64,
    /// In bytes.
    pub bytes: f64,
    /// How long operations at the maximum rate use it up, in seconds.
    pub operations_s: f64,
    /// The same of bytes.
    pub bytes_s: f64,
    /// The lasting share of the maximum.
    pub lasting_share: f64,
}

impl Sight {
    /// What remains of it where these were found: credit that ran out was seen, and so was a cache that answered.
    #[must_use]
    pub fn beside<'a>(mut self, findings: impl Iterator<Item = &'a Finding>) -> Self {
        for finding in findings {
            if finding.is(FindingName::BurstCredit) {
                self.credit_beyond = None;
            }
            if finding.cause() == TrustCause::Cache && finding.weight() != Weight::Aside {
                self.cache_beyond_bytes = None;
            }
        }
        self
    }

    /// That of an answer about both: of each part the one that sees less.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        fn least<T>(one: Option<T>, other: Option<T>, less: impl Fn(T, T) -> T) -> Option<T> {
            one.zip(other).map(|(one, other)| less(one, other))
        }
        let less = |one: UnseenCredit, other: UnseenCredit| UnseenCredit {
            operations: one.operations.min(other.operations),
            bytes: one.bytes.min(other.bytes),
            operations_s: one.operations_s.min(other.operations_s),
            bytes_s: one.bytes_s.min(other.bytes_s),
            lasting_share: one.lasting_share,
        };
        let pauses = (self.pauses_rarer_than_s, other.pauses_rarer_than_s);
        let caches = (self.cache_beyond_bytes, other.cache_beyond_bytes);
        Self {
            pauses_rarer_than_s: least(pauses.0, pauses.1, f64::min),
            credit_beyond: least(self.credit_beyond, other.credit_beyond, less),
            cache_beyond_bytes: least(caches.0, caches.1, u64::min),
        }
    }

    /// `This run cannot see pauses rarer than every 13 s or a cache over 2.1 GiB.`; `None` if no part applies.
    pub fn sentence(&self) -> Option<String> {
        let pauses = self.pauses_rarer_than_s.map(|seconds| {
            let every = rounded_length(two_digits(seconds));
            format!("pauses rarer than every {every}")
        });
        let credit = self.credit_beyond.map(|credit| {
            let (operations, bytes) = (in_round(credit.operations), decimal_bytes(credit.bytes));
            format!("burst credit over {operations} I/Os or {bytes} if half the rate lasts")
        });
        let cache = self
            .cache_beyond_bytes
            .map(|bytes| format!("a cache over {}", binary_bytes(bytes)));
        let mut parts: Vec<String> = [pauses, credit, cache].into_iter().flatten().collect();
        let last = parts.pop()?;
        let listed = match parts.len() {
            0 => last,
            1 => format!("{} or {last}", parts[0]),
            _ => format!("{}, or {last}", parts.join(", ")),
        };
        Some(format!("This run cannot see {listed}."))
    }
}

/// Two significant digits, rounded down: no more is claimed than was done.
fn two_digits(value: f64) -> f64 {
    // What differs from a whole number by the error of a division is that number.
    const EXACT: f64 = 1e-9;
    if value <= 0.0 || !value.is_finite() {
        return 0.0;
    }
    let scale = 10f64.powf(value.log10().floor() - 1.0);
    (value / scale + EXACT).floor() * scale
}

/// `24,000`, `1.3 million`.
fn in_round(operations: f64) -> String {
    const MILLION: f64 = 1e6;
    if operations < MILLION {
        count(two_digits(operations))
    } else {
        format!("{} million", count(two_digits(operations / MILLION)))
    }
}

/// `1.3 GB`, in powers of 1000, as providers count credit.
fn decimal_bytes(bytes: f64) -> String {
    let units = [(1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let (size, unit) = units
        .into_iter()
        .find(|(size, _)| bytes >= *size)
        .unwrap_or((1.0, "bytes"));
    format!("{} {unit}", count(two_digits(bytes / size)))
}

/// `1.3 GiB`, as the target's size is written; whole units are exact.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded down from a u64"
)]
fn binary_bytes(bytes: u64) -> String {
    let units = [KIB * GIB, GIB, MIB, KIB, 1];
    let unit = units.into_iter().find(|unit| bytes >= *unit).unwrap_or(1);
    let rounded = match bytes % unit {
        0 => bytes,
        _ => (two_digits(bytes as f64 / unit as f64) * unit as f64) as u64,
    };
    Bytes(rounded).to_string()
}

/// The largest sum over any stretch of neighbours; 0 if every sum is negative. It is how far a bucket that is full at
/// first, and takes and gives these amounts, was ever below full.
fn largest_stretch(gains: impl Iterator<Item = f64>) -> f64 {
    let (mut most, mut here) = (0.0_f64, 0.0_f64);
    for gain in gains {
        here = (here + gain).max(0.0);
        most = most.max(here);
    }
    most
}

/// A piece of the time of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Piece {
    seconds: f64,
    operations: f64,
    bytes: f64,
}

impl Piece {
    /// A time of unknown length with nothing done: any credit is full after it.
    const UNKNOWN: Self = Self {
        seconds: f64::INFINITY,
        operations: 0.0,
        bytes: 0.0,
    };

    fn add(&mut self, stream: &StreamRecord, operations: f64) {
        self.operations += operations;
        self.bytes += operations * f64::from(stream.length);
    }
}

/// What was done and when, so far.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SightReader {
    pieces: Vec<Piece>,
    /// The end of the last visit, on the engine's clock.
    end: Option<Nanos>,
    /// Seconds of measured time, in which a pause would have been met.
    measured_s: f64,
    /// The greatest rates of a visit, in operations and in bytes per second.
    fastest: [f64; 2],
    /// The share of the volume that uniform draws left untouched, and the bytes of the volume.
    untouched: Option<(f64, f64)>,
    /// The most bytes that another stream of one visit touched.
    touched: f64,
}

impl SightReader {
    /// That of these visits, in the order of time.
    pub fn of<'a>(visits: impl IntoIterator<Item = &'a PointRecord>) -> Self {
        let mut reader = Self::default();
        visits.into_iter().for_each(|visit| reader.add(visit));
        reader
    }

    /// Adds the next visit.
    pub fn add(&mut self, visit: &PointRecord) {
        self.measured_s += visit.measured.as_secs_f64();
        let begin = visit.began.since(visit.warm_up);
        let pause = self.end.map(|end| {
            // The clock began anew, as that of a resumed run does, or is not known.
            let is_anew = begin < end || visit.began.is_zero();
            if is_anew {
                Piece::UNKNOWN
            } else {
                Piece {
                    seconds: begin.since(end).as_secs_f64(),
                    ..Piece::default()
                }
            }
        });
        self.pieces.extend(pause);
        self.end = Some(visit.began.plus(visit.measured));
        // What sessions of a database ask of the storage is not counted here.
        let streams: Vec<&StreamRecord> = visit
            .streams
            .iter()
            .filter(|stream| stream.sql.is_none())
            .collect();
        let mut warm_up = Piece {
            seconds: visit.warm_up.as_secs_f64(),
            ..Piece::default()
        };
        for stream in &streams {
            warm_up.add(stream, stream.warm_up_done as f64);
            self.touch(stream);
        }
        self.pieces.push(warm_up);
        let mut whole = Piece {
            seconds: visit.measured.as_secs_f64(),
            ..Piece::default()
        };
        for stream in &streams {
            whole.add(stream, visit.rate_of(stream) * whole.seconds);
        }
        if whole.seconds > 0.0 {
            let rates = [whole.operations, whole.bytes].map(|done| done / whole.seconds);
            self.fastest = [0, 1].map(|at| self.fastest[at].max(rates[at]));
        }
        // In an open loop, much of what was due in a window may have been done in a later one.
        if streams.iter().any(|stream| stream.is_open()) {
            self.pieces.push(whole);
        } else {
            self.pieces.extend(windows(visit, &streams));
        }
    }

    /// Notes which blocks were touched.
    fn touch(&mut self, stream: &StreamRecord) {
        let coverage = &stream.coverage;
        if coverage.tracked == 0 {
            return;
        }
        let share = (coverage.distinct as f64 / coverage.tracked as f64).min(1.0);
        let volume = coverage.extent as f64 * f64::from(stream.length);
        let is_uniform = |pattern: &Pattern| matches!(pattern, Pattern::Uniform);
        if stream.patterns.iter().all(is_uniform) {
            let (left, known) = self.untouched.unwrap_or((1.0, 0.0));
            self.untouched = Some((left * (1.0 - share), known.max(volume)));
        } else {
            self.touched = self.touched.max(share * volume);
        }
    }

    /// What the run cannot have seen, whose maxima are these; where one is not known, the fastest visit's.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float casts saturate"
    )]
    pub fn sight(&self, maxima: Maxima) -> Sight {
        let most = [
            maxima.iops.map(|iops| iops.value),
            maxima.mb_per_s.map(|rate| rate.value * 1e6),
        ];
        let [iops, bytes_per_s] = [0, 1].map(|at| most[at].unwrap_or(self.fastest[at]));
        let beyond = |lasting: f64, done: fn(&Piece) -> f64| {
            let gain = |piece: &Piece| done(piece) - lasting * piece.seconds;
            largest_stretch(self.pieces.iter().map(gain))
        };
        let credit = |share: f64| {
            let operations = beyond(share * iops, |piece| piece.operations);
            let bytes = beyond(share * bytes_per_s, |piece| piece.bytes);
            UnseenCredit {
                operations,
                bytes,
                operations_s: operations / ((1.0 - share) * iops),
                bytes_s: bytes / ((1.0 - share) * bytes_per_s),
                lasting_share: share,
            }
        };
        let uniform = self
            .untouched
            .map_or(0.0, |(left, volume)| (1.0 - left) * volume);
        let touched = uniform.max(self.touched) as u64;
        Sight {
            pauses_rarer_than_s: (self.measured_s > 0.0).then(|| self.measured_s / RULE_OF_THREE),
            credit_beyond: (iops > 0.0 && bytes_per_s > 0.0).then(|| credit(LASTING_SHARE)),
            cache_beyond_bytes: (touched > 0).then_some(touched),
        }
    }
}

/// The windows of a visit, also what is left of the last one.
fn windows(visit: &PointRecord, streams: &[&StreamRecord]) -> Vec<Piece> {
    let kinds = || streams.iter().flat_map(|stream| &stream.kinds);
    let written = kinds().map(|kind| kind.windows.len()).max().unwrap_or(0);
    let (width, measured) = (visit.window.as_secs_f64(), visit.measured.as_secs_f64());
    let piece = |at: usize| {
        let begin = at as f64 * width;
        let mut piece = Piece {
            seconds: (measured - begin).clamp(0.0, width),
            ..Piece::default()
        };
        for stream in streams {
            piece.add(stream, stream.done_at(at) as f64);
        }
        piece
    };
    let mut pieces: Vec<Piece> = (0..written).map(piece).collect();
    let left = measured - written as f64 * width;
    pieces.push(Piece {
        seconds: left.max(0.0),
        ..Piece::default()
    });
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::reads_of_a_millisecond;
    use rigel_model::record::Window;
    use rigel_model::workload::rng::Rng;
    use rigel_stats::estimate::Estimate;

    /// A visit with these counts in windows of a second each, whose measured time begins at `began_s`, after a
    /// warm-up of a second with `warm_up` operations.
    fn visit(began_s: u64, warm_up: u64, counts: &[u64]) -> PointRecord {
        let mut visit = reads_of_a_millisecond();
        visit.window = Nanos::from_secs(1);
        visit.warm_up = Nanos::from_secs(1);
        visit.began = Nanos::from_secs(began_s);
        visit.measured = Nanos::from_secs(counts.len() as u64);
        visit.streams[0].warm_up_done = warm_up;
        let windows = counts.iter().map(|done| Window {
            done: *done,
            ..Window::default()
        });
        visit.streams[0].kinds[0].windows = windows.collect();
        visit
    }

    fn at_most(iops: f64) -> Maxima {
        Maxima {
            iops: Some(Estimate::from(iops)),
            mb_per_s: None,
        }
    }

    #[test]
    fn the_credit_is_the_largest_sum_of_all_stretches_warm_ups_and_pauses_included() {
        let mut random = Rng::new(7, 0);
        for _ in 0..60 {
            // What was done in each second of the run.
            let (mut seconds, mut visits) = (Vec::new(), Vec::new());
            for _ in 0..=random.below(6) {
                let pause = random.below(4) * u64::from(!seconds.is_empty());
                seconds.extend((0..pause).map(|_| 0));
                let done: Vec<u64> = (0..2 + random.below(5))
                    .map(|_| random.below(2000))
                    .collect();
                visits.push(visit(seconds.len() as u64 + 1, done[0], &done[1..]));
                seconds.extend(done);
            }
            let gain = |at: usize| seconds[at] as f64 - 900.0;
            let ends =
                (0..seconds.len()).flat_map(|from| (from..seconds.len()).map(move |to| (from, to)));
            let sums = ends.map(|(from, to)| (from..=to).map(gain).sum::<f64>());
            let most = sums.fold(0.0, f64::max);
            let sight = SightReader::of(&visits).sight(at_most(1800.0));
            let found = sight.credit_beyond.unwrap();
            assert!(
                (found.operations - most).abs() < 1e-6,
                "{found:?} {most} {seconds:?}"
            );
            assert!(
                (found.operations_s - most / 900.0).abs() < 1e-6,
                "{found:?}"
            );
        }
    }

    #[test]
    fn a_clock_that_began_anew_ends_every_stretch() {
        let credit = |visits: &[PointRecord]| {
            let sight = SightReader::of(visits).sight(at_most(1000.0));
            sight.credit_beyond.unwrap().operations
        };
        let (first, second) = (visit(1, 1000, &[1000; 3]), visit(5, 1000, &[1000; 3]));
        assert!((credit(&[first.clone(), second.clone()]) - 4000.0).abs() < 1e-6);
        assert!((credit(&[second, first.clone()]) - 2000.0).abs() < 1e-6);
        let unknown = PointRecord {
            began: Nanos(0),
            ..first.clone()
        };
        assert!((credit(&[first, unknown]) - 2000.0).abs() < 1e-6);
    }

    #[test]
    fn sessions_of_a_database_are_no_io_but_met_any_pause() {
        let mut sessions = crate::examples::sessions(rigel_model::Ratio::ZERO);
        sessions.measured = Nanos::from_secs(30);
        let sight = SightReader::of([&sessions]).sight(Maxima::default());
        assert_eq!(sight.pauses_rarer_than_s, Some(10.0));
        assert_eq!(
            (sight.credit_beyond, sight.cache_beyond_bytes),
            (None, None)
        );
        assert_eq!(
            sight.sentence().unwrap(),
            "This run cannot see pauses rarer than every 10 s."
        );
        assert_eq!(Sight::default().sentence(), None);
    }

    #[test]
    fn all_that_uniform_reads_touched_counts_and_of_other_streams_the_most() {
        let mut reads = visit(1, 0, &[1000]);
        let coverage = &mut reads.streams[0].coverage;
        (coverage.extent, coverage.tracked, coverage.distinct) = (1 << 20, 1 << 10, 1 << 9);
        let volume = (1 << 20) * u64::from(reads.streams[0].length);
        let cache = |visits: &[&PointRecord]| {
            let sight = SightReader::of(visits.iter().copied()).sight(Maxima::default());
            sight.cache_beyond_bytes.unwrap()
        };
        assert_eq!(cache(&[&reads]), volume / 2);
        assert_eq!(cache(&[&reads, &reads]), volume / 4 * 3);
        let mut part = reads.clone();
        part.streams[0].patterns = vec![Pattern::Sequential { start: 0 }];
        assert_eq!(cache(&[&part, &part]), volume / 2);
    }

    #[test]
    fn what_was_seen_is_left_out_and_numbers_are_rounded_down() {
        let credit = UnseenCredit {
            operations: 24_999.0,
            bytes: 1.39e9,
            operations_s: 5.0,
            bytes_s: 5.0,
            lasting_share: 0.5,
        };
        let sight = Sight {
            pauses_rarer_than_s: Some(13.9),
            credit_beyond: Some(credit),
            cache_beyond_bytes: Some(GIB - 1),
        };
        assert_eq!(
            sight.sentence().unwrap(),
            "This run cannot see pauses rarer than every 13 s, burst credit over 24,000 I/Os or 1.3 GB if half the \
             rate lasts, or a cache over 1000 MiB."
        );
        let warning = |name| Finding::warning(name, "it is", "");
        let found = [FindingName::BurstCredit, FindingName::CacheSuspected].map(warning);
        let left = sight.beside(found.iter());
        assert_eq!((left.credit_beyond, left.cache_beyond_bytes), (None, None));
        let note = Finding::note(FindingName::Memory, "it is");
        assert_eq!(sight.beside([note].iter()), sight);
        let other = Sight {
            pauses_rarer_than_s: Some(20.0),
            cache_beyond_bytes: Some(4 * GIB),
            ..sight
        };
        assert_eq!(sight.and(other), sight);
        assert_eq!(left.and(sight), left);
        let rounded = [0.0, 4.0, 129.9].map(|value| count(two_digits(value)));
        assert_eq!(rounded, ["0", "4", "120"]);
    }
}
