//! The plan of `fit`: all streams of a demand at once, at one multiple after the other.
//!
//! The multiples double from 1 until one certainly does not hold, or halve until one does. Then they
//! lie on both sides of where a curve through all of them meets the objective, in turn; without a
//! curve the search divides the gap, around what remains undecided. It ends when the answer is known
//! to the requested precision.

use super::request::{FitRequest, OfferedStream};
use super::result::{Tried, TriedMultiple, bracket, least_to_decide};
use rigel_analyse::plan::Plan;
use rigel_analyse::plan::SqlTerms;
use rigel_analyse::plan::ranks::of_rank;
use rigel_analyse::plan::search::{WARM_UP, WINDOW, seed_of};
use rigel_analyse::plan::visits::Visits;
use rigel_analyse::{Bracket, Estimate, Limits, PointSummary};
use rigel_model::{
    Arrivals, Coordinates, DemandKind, Load, Mix, Nanos, Pattern, Point, Ratio, Stream, Until,
};

/// Maximum number of multiples that are tried.
const MULTIPLES_MAX: usize = 16;

/// Maximum number of visits to a multiple, as long as it is undecided.
const VISITS_MAX: usize = 3;

/// Maximum number of visits in all: at 10 s each, with their warm-ups, they take four minutes.
const VISITS_TOTAL: usize = 20;

/// Maximum length of a point as a multiple of the requested one: a rare stream needs a longer point
/// to be judged.
const LONGER_MAX: f64 = 6.0;

/// Operations of a rare stream that a point offers, as a multiple of those without which nothing can
/// be decided: then one in a hundred may be beyond the bound.
const AMPLE: f64 = 2.0;

/// Number of multiples that must be near the root of the curve before it is the answer, and the
/// greatest logarithm of their ratio to it.
const NEAR_MIN: usize = 6;
const NEAR: f64 = 0.2;

/// A point is longer by up to one part in this many.
const LONGER_BY: u64 = 4;

/// Measured time in all, in times of a point, up to which points last longer.
const TIME_TOTAL: f64 = 20.0;

impl Plan for FitRequest {
    fn name(&self) -> &'static str {
        "fit"
    }

    fn precision(&self) -> Ratio {
        self.precision
    }

    fn sql(&self) -> Option<SqlTerms> {
        self.sessions.map(|sessions| sessions.terms)
    }

    fn sizes(&self) -> Vec<u32> {
        vec![self.block]
    }

    fn grain(&self) -> u64 {
        self.largest()
    }

    /// The next point on a volume of `usable` bytes after those in `done`; `None` if the search is
    /// complete.
    fn next(&self, usable: u64, seed: u64, done: &[PointSummary]) -> Option<Point> {
        let multiple = self.next_multiple(done)?;
        let spent: f64 = done.iter().map(|point| point.measured_s).sum();
        let time = self.time_at(multiple, spent);
        let point = self.point(coordinates(multiple), time, usable, seed);
        Some(Visits::again(point, usable, done, seed))
    }

    /// The points with the largest and most I/Os: all have the same, or those of each rank.
    fn extremes(&self, usable: u64, seed: u64) -> Vec<Point> {
        let point = self.point(coordinates(self.highest), self.point_time, usable, seed);
        if self.of_ranks.is_empty() {
            return vec![point];
        }
        let size = u32::try_from(self.of_ranks.len()).unwrap_or(u32::MAX);
        (0..size)
            .filter_map(|rank| of_rank(&point, rank, size, usable))
            .collect()
    }

    /// The approximate number of points when `done` are complete.
    fn points_expected(&self) -> usize {
        const USUAL: usize = 8;
        USUAL
    }

    /// Maximum time of a point in seconds.
    fn point_seconds(&self) -> f64 {
        self.time_at(1.0, 0.0).plus(WARM_UP.most).as_secs_f64()
    }

    /// Bytes of the largest I/O; each target is one file or device, so nothing has to be divided
    /// into smaller units.
    fn largest(&self) -> u64 {
        let of_ranks = self.of_ranks.iter().flat_map(|one| self.offered_by(one));
        let all = self.offered().into_iter().chain(of_ranks);
        all.map(|one| u64::from(one.length))
            .max()
            .unwrap_or_else(|| self.block.into())
    }

    /// True if any operation writes.
    fn writes(&self) -> bool {
        match self.sessions {
            Some(sessions) => sessions.terms.work.updates != Ratio::ZERO,
            None => self.offered().iter().any(|one| !one.kind.is_read()),
        }
    }
}

impl FitRequest {
    /// How long to measure a multiple: as long as requested, or longer if a stream is too rare to be
    /// judged in that time. Not longer once the `spent` seconds reach the limit of the whole search.
    fn time_at(&self, multiple: f64, spent: f64) -> Nanos {
        let usual = self.point_time.as_secs_f64();
        let streams: Vec<OfferedStream> = if self.of_ranks.is_empty() {
            self.offered()
        } else {
            // Each host is judged by its own operations.
            let ranks = self.of_ranks.iter();
            ranks.flat_map(|demand| self.offered_by(demand)).collect()
        };
        let needs = streams.iter().filter(|stream| !self.is_rare(stream.kind));
        let needs = needs.filter_map(|stream| {
            let least = least_to_decide(self.objective(stream.kind)?);
            Some(AMPLE * least / (stream.per_s * multiple))
        });
        let wanted = needs.fold(usual, f64::max).min(LONGER_MAX * usual);
        let is_in_time = spent + wanted <= TIME_TOTAL * usual;
        Nanos::from_secs_f64(if is_in_time { wanted.ceil() } else { usual })
    }

    fn next_multiple(&self, done: &[PointSummary]) -> Option<f64> {
        let tried = Tried::of(done, self);
        let has_failed = |point: &PointSummary| {
            let mut classes = point.classes.iter();
            classes.any(|class| !class.failed.is_empty())
        };
        if done.iter().any(has_failed) {
            // If I/Os fail, no multiple is carried.
            return None;
        }
        let is_new = |wanted: &f64| {
            let is_other = |point: &PointSummary| point.coordinates != coordinates(*wanted);
            done.iter().all(is_other)
        };
        let visits =
            |point: &PointSummary| Some((point.coordinates.multiple()?, point.visits_made()));
        let visits: Vec<(f64, usize)> = done.iter().filter_map(visits).collect();
        let spent: usize = visits.iter().map(|(_, visits)| visits).sum();
        if tried.bracket.held.is_some()
            && tried.bracket.not_held.is_some()
            && let Some(root) = tried.root()
        {
            // Far from the root the curve is another one.
            let is_near = |one: &&TriedMultiple| (one.multiple / root.value).ln().abs() < NEAR;
            let near = tried.multiples.iter().filter(is_near).count();
            let is_over = spent >= VISITS_TOTAL || near >= NEAR_MIN && self.is_answered(root);
            let may_be_tried = |multiple: &f64| (self.lowest..=self.highest).contains(multiple);
            let next = tried.next_beside(spent).filter(may_be_tried);
            if is_over || next.is_some() {
                return next.filter(|_| !is_over);
            }
        }
        let tried = &tried.multiples;
        let wanted = if tried.len() < MULTIPLES_MAX {
            self.wanted(tried).filter(is_new)
        } else {
            None
        };
        wanted.or_else(|| self.again(tried, &visits))
    }

    /// True if this root of the curve is known to the requested precision, and says whether what is
    /// needed is held.
    fn is_answered(&self, root: Estimate) -> bool {
        let ends = root.interval.and_then(Limits::both);
        root.precision()
            .is_some_and(|half| half <= self.precision.get())
            && ends.is_some_and(|ends| self.need <= ends.low || ends.high <= self.need)
    }

    /// The multiple that the search wants next.
    fn wanted(&self, tried: &[TriedMultiple]) -> Option<f64> {
        let (Some(first), Some(last)) = (tried.first(), tried.last()) else {
            return Some(1.0f64.clamp(self.lowest, self.highest));
        };
        let Bracket { held, not_held, .. } = bracket(tried);
        let Some(limit) = not_held else {
            let next = (last.multiple * 2.0).min(self.highest);
            return (next > last.multiple).then_some(next);
        };
        let Some(held) = held else {
            let next = (first.multiple / 2.0).max(self.lowest);
            return (next < first.multiple).then_some(next);
        };
        let is_tried = |one: &TriedMultiple| coordinates(one.multiple) == coordinates(self.need);
        if held < self.need && self.need < limit && !tried.iter().any(is_tried) {
            return Some(self.need);
        }
        self.between(tried, held, limit)
    }

    /// A multiple between what held and what did not: in the wider of the gaps on the two sides of
    /// what is undecided.
    fn between(&self, tried: &[TriedMultiple], held: f64, not_held: f64) -> Option<f64> {
        let enough = self.ratio();
        if not_held / held <= enough {
            return None;
        }
        let undecided: Vec<f64> = tried
            .iter()
            .map(|one| one.multiple)
            .filter(|multiple| held < *multiple && *multiple < not_held)
            .collect();
        let lower = (held, undecided.first().copied().unwrap_or(not_held));
        let upper = (undecided.last().copied().unwrap_or(held), not_held);
        let ratio = |(from, to): (f64, f64)| to / from;
        let wider = if ratio(upper) > ratio(lower) {
            upper
        } else {
            lower
        };
        // Closer to what is undecided, the answer would be undecided too.
        (ratio(wider) > enough.sqrt()).then(|| (wider.0 * wider.1).sqrt())
    }

    /// A further visit to a multiple that is undecided: to the one that is needed, else to the lowest
    /// or highest above what held and below what did not. `visits` has the number of visits to each
    /// multiple so far.
    fn again(&self, tried: &[TriedMultiple], visits: &[(f64, usize)]) -> Option<f64> {
        let spent: usize = visits.iter().map(|(_, visits)| visits).sum();
        if spent >= VISITS_TOTAL {
            return None;
        }
        let visits = |wanted: f64| {
            let mut of = visits.iter();
            let of = of.find(|(multiple, _)| coordinates(*multiple) == coordinates(wanted));
            of.map_or(VISITS_MAX, |(_, visits)| *visits)
        };
        let Bracket { held, not_held, .. } = bracket(tried);
        let is_open = held.is_none_or(|held| held < self.need)
            && not_held.is_none_or(|limit| limit > self.need);
        let need = Some(self.need).filter(|need| is_open && visits(*need) < VISITS_MAX);
        let outermost = || {
            let (held, not_held) = (held.unwrap_or(0.0), not_held.unwrap_or(f64::INFINITY));
            if not_held / held <= self.ratio() {
                return None;
            }
            let between = || {
                let all = tried.iter().map(|one| one.multiple);
                all.filter(|multiple| held < *multiple && *multiple < not_held)
            };
            let ends = between().next().into_iter().chain(between().next_back());
            ends.filter(|multiple| visits(*multiple) < VISITS_MAX)
                .min_by_key(|multiple| visits(*multiple))
        };
        need.or_else(outermost)
    }

    /// The ratio of the lowest multiple that does not hold to the highest that does, at which the
    /// answer is precise enough.
    fn ratio(&self) -> f64 {
        let precision = self.precision.get();
        (1.0 + precision) / (1.0 - precision)
    }

    fn point(&self, coordinates: Coordinates, time: Nanos, usable: u64, seed: u64) -> Point {
        let multiple = coordinates.multiple().unwrap_or(1.0);
        let seed = seed_of(seed, coordinates);
        let of_all = self.offered().into_iter().map(|one| (None, one));
        let streams: Vec<(Option<u32>, OfferedStream)> = if self.of_ranks.is_empty() {
            of_all.collect()
        } else {
            let ranks = (0..).zip(&self.of_ranks);
            let of_rank = |(rank, demand)| {
                let offered = self.offered_by(demand).into_iter();
                offered.map(move |one| (Some(rank), one))
            };
            ranks.flat_map(of_rank).collect()
        };
        let stream = |(rank, one): (Option<u32>, OfferedStream)| Stream {
            rank,
            ..self.stream(one, multiple, usable, seed)
        };
        // Of one length, points would always meet the same part of what comes regularly, such as a
        // stall every 12 seconds.
        let until = Until::Elapsed(Nanos(
            time.0 + seed % (time.0 / LONGER_BY / WINDOW.0 + 1) * WINDOW.0,
        ));
        Point {
            coordinates,
            streams: streams.into_iter().map(stream).collect(),
            warm_up: WARM_UP,
            until,
            window: until.window(WINDOW),
            seed,
        }
    }

    fn stream(&self, offered: OfferedStream, multiple: f64, usable: u64, seed: u64) -> Stream {
        // What sessions of a database do is part of their work.
        let is_of_sessions = offered.kind == DemandKind::Operations;
        let writes = if offered.kind.is_read() || is_of_sessions {
            Ratio::ZERO
        } else {
            Ratio::ONE
        };
        let is_log = offered.kind == DemandKind::LogWrites;
        let blocks = (usable / u64::from(offered.length)).max(1);
        Stream {
            name: offered.kind.words().into(),
            load: Load::Open {
                rate: offered.per_s * multiple,
                arrivals: Arrivals::Poisson,
                in_flight_max: offered.in_flight_max,
            },
            mix: Mix {
                writes,
                durable: is_log,
            },
            pattern: if is_log {
                Pattern::Sequential {
                    start: seed % blocks,
                }
            } else {
                Pattern::Uniform
            },
            length: offered.length,
            objective: self.objective(offered.kind),
            sql: self.sessions.map(|sessions| sessions.terms.work),
            rank: None,
            log: self.log.filter(|_| is_log),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a multiple; float casts saturate"
)]
fn coordinates(multiple: f64) -> Coordinates {
    Coordinates::Multiple {
        thousandths: (multiple * 1e3).round() as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::fit as request;
    use BoundVerdict::{Broken, Kept, Undecided};
    use rigel_analyse::BoundVerdict;
    use rigel_model::LogKind;
    use rigel_model::examples::stream;

    fn asked() -> FitRequest {
        request(vec![
            stream(DemandKind::RandomReads, 100.0, None),
            stream(DemandKind::LogWrites, 10.0, Some(4000.0)),
        ])
    }

    fn tried(multiple: f64, verdict: BoundVerdict) -> TriedMultiple {
        TriedMultiple {
            multiple,
            measured_s: 10.0,
            verdict,
            kept: verdict == Kept,
            streams: Vec::new(),
        }
    }

    /// The multiples that a search tries on a target of which `truth` says what it carries.
    fn search(asked: &FitRequest, truth: impl Fn(f64) -> BoundVerdict) -> Vec<f64> {
        let (mut done, mut order): (Vec<TriedMultiple>, _) = (Vec::new(), Vec::new());
        while let Some(multiple) = asked.wanted(&done) {
            if order.len() == MULTIPLES_MAX || order.contains(&multiple) {
                break;
            }
            order.push(multiple);
            done.push(tried(multiple, truth(multiple)));
            done.sort_by(|one, other| one.multiple.total_cmp(&other.multiple));
        }
        order
    }

    #[test]
    fn multiples_double_until_one_does_not_hold_and_then_close_in() {
        let order = search(
            &asked(),
            |multiple| if multiple < 2.7 { Kept } else { Broken },
        );
        assert_eq!(order[..3], [1.0, 2.0, 4.0]);
        let held = order
            .iter()
            .copied()
            .filter(|one| *one < 2.7)
            .fold(0.0, f64::max);
        let limit = order
            .iter()
            .copied()
            .filter(|one| *one >= 2.7)
            .fold(9.0, f64::min);
        assert!(limit / held <= 1.1 / 0.9, "{order:?}");
        assert!(order.len() <= 7, "{order:?}");
    }

    #[test]
    fn multiples_halve_until_one_holds() {
        let order = search(
            &asked(),
            |multiple| if multiple < 0.3 { Kept } else { Broken },
        );
        assert_eq!(order[..3], [1.0, 0.5, 0.25]);
        let never = search(&asked(), |_| Broken);
        assert_eq!(never, [1.0, 0.5, 0.25, 0.125]);
        let always = search(&asked(), |_| Kept);
        assert_eq!(always, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0]);
    }

    #[test]
    fn the_multiple_that_is_needed_is_tried_itself() {
        let mut asked = asked();
        asked.need = 3.0;
        let order = search(
            &asked,
            |multiple| if multiple < 3.5 { Kept } else { Broken },
        );
        assert_eq!(order[..4], [1.0, 2.0, 4.0, 3.0]);
    }

    #[test]
    fn a_search_goes_around_what_is_undecided() {
        let order = search(&asked(), |multiple| match multiple {
            ..2.5 => Kept,
            ..3.2 => Undecided,
            _ => Broken,
        });
        let held = order
            .iter()
            .copied()
            .filter(|one| *one < 2.5)
            .fold(0.0, f64::max);
        let limit = order
            .iter()
            .copied()
            .filter(|one| *one >= 3.2)
            .fold(9.0, f64::min);
        assert!(held > 2.2 && limit < 3.6, "{order:?}");
        assert!(order.len() <= 10, "{order:?}");
    }

    #[test]
    fn what_is_undecided_is_visited_again_wherever_it_lies() {
        let mut asked = asked();
        let again = |asked: &FitRequest, verdicts: &[(f64, BoundVerdict)], visits: &[usize]| {
            let all: Vec<TriedMultiple> = verdicts.iter().map(|(at, of)| tried(*at, *of)).collect();
            let visits: Vec<(f64, usize)> = verdicts
                .iter()
                .zip(visits)
                .map(|((at, _), visits)| (*at, *visits))
                .collect();
            asked.again(&all, &visits)
        };
        // First what is needed, then the ends of what is undecided.
        let both = [(0.5, Kept), (1.0, Undecided), (2.0, Undecided)];
        assert_eq!(again(&asked, &both, &[1, 1, 1]), Some(1.0));
        asked.need = 0.5;
        assert_eq!(again(&asked, &both, &[1, 2, 1]), Some(2.0));
        assert_eq!(again(&asked, &both, &[1, 3, 3]), None);
        // Nothing held, and the highest did not.
        asked.need = 4.0;
        let low = [(1.0, Undecided), (2.0, Undecided), (4.0, Broken)];
        assert_eq!(again(&asked, &low, &[2, 1, 1]), Some(2.0));
        // Decided to the requested precision.
        asked.need = 1.0;
        let near = [(1.0, Kept), (1.05, Undecided), (1.1, Broken)];
        assert_eq!(again(&asked, &near, &[1, 1, 1]), None);
        // The answer must come in a few minutes.
        assert_eq!(again(&asked, &both, &[18, 1, 1]), None);
    }

    #[test]
    fn a_multiple_with_a_rare_stream_is_measured_longer() {
        let mut asked = asked();
        asked.writes = true;
        asked.objectives = vec![
            "random reads p99<10ms".parse().unwrap(),
            "log writes p99<20ms".parse().unwrap(),
        ];
        let time = |multiple, spent| asked.time_at(multiple, spent);
        // It takes 381 operations to decide a p99, and the log has ten a second.
        assert_eq!(time(1.0, 0.0), Nanos::from_secs(60));
        assert_eq!(time(2.0, 0.0), Nanos::from_secs(39));
        assert_eq!(time(8.0, 0.0), Nanos::from_secs(10));
        // The answer must come in a few minutes.
        assert_eq!(time(2.0, 160.0), Nanos::from_secs(39));
        assert_eq!(time(2.0, 170.0), Nanos::from_secs(10));
        asked.writes = false;
        assert_eq!(asked.time_at(1.0, 0.0), Nanos::from_secs(10));
    }

    #[test]
    fn a_point_offers_every_stream_at_once_and_the_log_one_write_at_a_time() {
        let mut asked = asked();
        asked.writes = true;
        let point = asked.next(1 << 30, 7, &[]).unwrap();
        assert_eq!(point.coordinates, coordinates(1.0));
        let [reads, log] = &point.streams[..] else {
            panic!("{:?}", point.streams)
        };
        assert_eq!((reads.length, log.length), (8192, 4096));
        let in_flight = |stream: &Stream| stream.load.slots();
        assert_eq!((in_flight(reads), in_flight(log)), (256, 1));
        assert!(log.mix.durable && log.mix.writes == Ratio::ONE && asked.writes());
        assert_eq!(reads.mix, Mix::READS);
        assert_eq!((reads.log, log.log), (None, None));
        asked.log = Some(LogKind::REUSED);
        let own = asked.next(1 << 30, 7, &[]).unwrap();
        let logs: Vec<_> = own.streams.iter().map(|one| one.log).collect();
        assert_eq!(
            logs,
            [None, asked.log],
            "the log alone has a file of its own"
        );
        asked.writes = false;
        assert!(!asked.writes());
        assert_eq!(asked.next(1 << 30, 7, &[]).unwrap().streams.len(), 1);
    }
}
