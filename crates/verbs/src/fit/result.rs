//! The results of `rigel fit`: which multiples of a demand the target carries, and which stream
//! breaks first.
//!
//! Input: the records of the run and its request. The answer is where a curve through the late
//! operations of all multiples meets the objective of the stream that breaks first. Beside it each
//! multiple is judged by all of its streams: held, not held, undecided. What is held at a multiple is
//! taken to be held at every lower one, so the answer lies between the highest multiple that
//! certainly held and the lowest that certainly did not.

use super::request::{FitRequest, OfferedStream};
use rigel_analyse::BoundVerdict;
use rigel_analyse::figures::confidence::WINDOWS_FOR_MEAN;
use rigel_analyse::figures::latency::LatencyFigure;
use rigel_analyse::figures::quantity::count;
use rigel_analyse::figures::quantity::{listed, multiple};
use rigel_analyse::point::objective::ObjectiveVerdict;
use rigel_analyse::point::of_ranks::add_ranks;
use rigel_analyse::point::summary::{ClassSummary, PointSummary, RankClasses, summarise};
use rigel_analyse::search::bracket::Bracket;
use rigel_analyse::search::credit::fell_behind;
use rigel_analyse::search::crossing::{Crossing, ServiceTimes, StallShare};
use rigel_analyse::search::run_checks::stalled;
use rigel_analyse::search::sustained::judge_together;
use rigel_analyse::{Estimate, Limits, demand_censored};
use rigel_model::record::{End, PointRecord, RankLines};
use rigel_model::{Coordinates, DemandKind, Finding, FindingName, Measure, Objective};
use serde::Serialize;

/// Why it is undecided whether a multiple is held, the most telling reason first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Undecided {
    /// Rigel itself issued operations so late that this alone may be why they took long.
    NoCpu,
    /// The figure has no interval: too little was measured, or it changed meanwhile.
    NoInterval,
    /// It is not certain whether the rate was served.
    Served,
    /// The limit lies within the interval of the figure, or of the curve.
    AtTheLimit,
}

impl Undecided {
    /// In a few words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoCpu => "no CPU",
            Self::NoInterval => "no interval",
            Self::Served => "served or not",
            Self::AtTheLimit => "at the limit",
        }
    }
}

/// One multiple of the demand.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TriedMultiple {
    /// The multiple.
    pub multiple: f64,
    /// Measured time in seconds, of all visits together.
    pub measured_s: f64,
    /// Whether every stream was served and kept its objective.
    pub verdict: BoundVerdict,
    /// True if what was measured held, whether certain or not.
    pub kept: bool,
    /// Its streams, in the order of the demand.
    pub streams: Vec<TriedStream>,
}

/// One stream on one host at a multiple.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct HostStream {
    /// The rank.
    pub rank: u32,
    /// Operations per second that were due on this host.
    pub offered_per_s: f64,
    /// Operations per second that completed on it.
    pub done_per_s: f64,
    /// Mean response time.
    pub mean_us: Option<Estimate>,
    /// 99th percentile of response time.
    pub p99_us: Option<Estimate>,
    /// The figure that the objective is about.
    pub judged_us: Option<Estimate>,
    /// Whether this host was served and kept the objective.
    pub verdict: BoundVerdict,
    /// The same by what was measured, whether certain or not.
    pub kept: bool,
}

/// One stream at a multiple. If several ranks measured, rates are sums and response times are those
/// of all operations; it holds if it holds on every host.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct TriedStream {
    /// The kind of I/O.
    pub kind: DemandKind,
    /// Operations per second that were due.
    pub offered_per_s: f64,
    /// Operations per second that completed.
    pub done_per_s: f64,
    /// Mean response time.
    pub mean_us: Option<Estimate>,
    /// 99th percentile of response time.
    pub p99_us: Option<Estimate>,
    /// The figure that its objective is about.
    pub judged_us: Option<Estimate>,
    /// What it must keep, and whether it does.
    pub objective: Option<ObjectiveVerdict>,
    /// Whether it was served and kept its objective.
    pub verdict: BoundVerdict,
    /// The same by what was measured, whether certain or not.
    pub kept: bool,
    /// True if it is too rare to matter, and was served: it decides nothing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_rare: bool,
    /// True if the curve through all multiples decides about it, and its own figures do not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub by_curve: bool,
    /// Why it is undecided; `None` if it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undecided: Option<Undecided>,
    /// By rank, if several measured: those to which the stream was offered.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostStream>,
}

/// The results of a fit.
#[derive(Debug, Clone, PartialEq, Serialize, schemars::JsonSchema)]
pub struct FitResult {
    /// The multiple at which the first stream meets its objective exactly, by a curve through all
    /// multiples, with its interval. Where no stream has a curve, the middle, in ratio, between the
    /// highest that held and the lowest that did not. `None` unless both ends are known.
    pub carries: Option<Estimate>,
    /// The highest multiple that certainly held, below the lowest that did not.
    pub held: Option<f64>,
    /// The lowest multiple that certainly did not hold.
    pub not_held: Option<f64>,
    /// The multiple that was to be held.
    pub need: f64,
    /// Whether it was.
    pub verdict: BoundVerdict,
    /// The streams that did not hold at the lowest multiple that did not.
    pub breaks_first: Vec<DemandKind>,
    /// The ranks on whose hosts those streams did not hold, the worst first; empty if one process
    /// measured alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub breaks_on: Vec<u32>,
    /// The tried multiples, rising.
    pub multiples: Vec<TriedMultiple>,
    /// The streams at 1 ×.
    pub offered: Vec<OfferedStream>,
    /// The same points in measuring order.
    #[serde(skip)]
    pub points: Vec<PointSummary>,
    /// Findings about the run as a whole.
    pub findings: Vec<Finding>,
}

impl TriedMultiple {
    /// The multiple of a point; `None` if the point is another step, or was not completed.
    fn of(point: &PointSummary, request: &FitRequest, curves: &[StreamCurve]) -> Option<Self> {
        let multiple = point
            .coordinates
            .multiple()
            .filter(|_| point.end == End::Complete)?;
        let of_class = |class: &ClassSummary| {
            let mut stream = TriedStream::of(class, &point.of_ranks)?;
            let of_ranks = point.of_ranks.iter().flat_map(|of| &of.classes);
            let mut each = of_ranks.filter(|own| own.name == class.name).chain([class]);
            let is_served = !each.clone().any(ClassSummary::is_not_met);
            stream.is_rare = request.is_rare(stream.kind) && is_served;
            if let Some(curve) = curves.iter().find(|curve| curve.kind == stream.kind) {
                let own = stream.verdict;
                stream.verdict = curve.judged(multiple, own, (class, point));
                stream.by_curve = ![own, BoundVerdict::Undecided].contains(&stream.verdict);
            }
            let is_late = each.any(|class| judged(class) != class.sustained());
            stream.undecided = stream.why_undecided(is_late);
            Some(stream)
        };
        let streams: Vec<TriedStream> = point.classes.iter().filter_map(of_class).collect();
        let mut tried = Self {
            multiple,
            measured_s: point.measured_s,
            verdict: BoundVerdict::Broken,
            kept: streams.iter().all(|stream| stream.kept),
            streams,
        };
        if !tried.streams.is_empty() {
            tried.verdict = BoundVerdict::all_of(tried.deciding().map(|one| one.verdict));
        }
        Some(tried)
    }

    /// The streams that decide: those that are not rare, or all if all are.
    fn deciding(&self) -> impl Iterator<Item = &TriedStream> {
        let all_are = self.streams.iter().all(|one| one.is_rare);
        let decides = move |one: &&TriedStream| all_are || !one.is_rare;
        self.streams.iter().filter(decides)
    }

    /// Why it is undecided; `None` if it is not.
    pub fn why_undecided(&self) -> Option<Undecided> {
        let reasons = self.deciding().filter_map(|one| one.undecided).min();
        reasons.filter(|_| self.verdict == BoundVerdict::Undecided)
    }

    /// True if the curve through all multiples decides about one of its streams.
    pub fn is_by_curve(&self) -> bool {
        self.verdict != BoundVerdict::Undecided && self.streams.iter().any(|one| one.by_curve)
    }

    /// The streams that certainly did not hold.
    fn broken(&self) -> Vec<DemandKind> {
        let broken = |one: &&TriedStream| one.verdict == BoundVerdict::Broken;
        self.deciding().filter(broken).map(|one| one.kind).collect()
    }

    /// The ranks on which a stream certainly did not hold, the worst of each stream first.
    fn broken_on(&self) -> Vec<u32> {
        let is_broken = |verdict: BoundVerdict| verdict == BoundVerdict::Broken;
        let streams = || self.deciding().filter(|one| is_broken(one.verdict));
        let worst = streams().filter_map(TriedStream::worst_host);
        let others = streams().flat_map(|one| &one.hosts);
        let mut ranks: Vec<u32> = Vec::new();
        for host in worst.chain(others.filter(|host| is_broken(host.verdict))) {
            if !ranks.contains(&host.rank) {
                ranks.push(host.rank);
            }
        }
        ranks
    }
}

impl TriedStream {
    fn of(class: &ClassSummary, of_ranks: &[RankClasses]) -> Option<Self> {
        let kind = DemandKind::ALL
            .into_iter()
            .find(|kind| kind.words() == class.name)?;
        let of_host = |of: &RankClasses| {
            let own = of.classes.iter().find(|own| own.name == class.name)?;
            Some(HostStream::of(of.rank, own))
        };
        let hosts: Vec<HostStream> = of_ranks.iter().filter_map(of_host).collect();
        let all = HostStream::of(0, class);
        // Percentiles of all hosts together would hide the one that is slow.
        let (verdict, kept) = if hosts.is_empty() {
            (all.verdict, all.kept)
        } else {
            let verdict = BoundVerdict::all_of(hosts.iter().map(|host| host.verdict));
            (verdict, hosts.iter().all(|host| host.kept))
        };
        Some(Self {
            kind,
            offered_per_s: all.offered_per_s,
            done_per_s: all.done_per_s,
            mean_us: all.mean_us,
            p99_us: all.p99_us,
            judged_us: all.judged_us,
            objective: class.objective,
            verdict,
            kept,
            is_rare: false,
            by_curve: false,
            undecided: None,
            hosts,
        })
    }

    /// Why it is undecided; `is_late` if Rigel itself was late on a host. `None` if it is not.
    fn why_undecided(&self, is_late: bool) -> Option<Undecided> {
        let has_interval = self.judged_us.is_some_and(|known| known.interval.is_some());
        let why = if is_late {
            Undecided::NoCpu
        } else if self.objective.is_none() {
            Undecided::Served
        } else if has_interval {
            Undecided::AtTheLimit
        } else {
            Undecided::NoInterval
        };
        (self.verdict == BoundVerdict::Undecided).then_some(why)
    }

    /// The host that decides about this stream: one on which it did not hold, else one on which it
    /// is undecided, else any; of these, the one with the highest figure that the objective is
    /// about. `None` if one process measured alone.
    pub fn worst_host(&self) -> Option<&HostStream> {
        let figure = |host: &HostStream| host.judged_us.map_or(f64::INFINITY, |known| known.value);
        let of_verdict = |host: &&HostStream| host.verdict == self.verdict;
        self.hosts
            .iter()
            .filter(of_verdict)
            .max_by(|one, other| figure(one).total_cmp(&figure(other)))
    }
}

impl HostStream {
    fn of(rank: u32, class: &ClassSummary) -> Self {
        Self {
            rank,
            offered_per_s: class.offered.unwrap_or(0.0),
            done_per_s: class.iops,
            mean_us: class.time(LatencyFigure::Mean),
            p99_us: class.time(LatencyFigure::P99),
            judged_us: class.time(judged_figure(class.objective.map(|known| known.objective))),
            verdict: judged(class),
            kept: class.kept(),
        }
    }
}

/// The figure of response times that an objective is about; p99 without one, and for a quantile that is no figure.
pub(super) fn judged_figure(objective: Option<Objective>) -> LatencyFigure {
    match objective.map(|objective| objective.0) {
        Some(Measure::Mean(_)) => LatencyFigure::Mean,
        Some(Measure::Max(_)) => LatencyFigure::Max,
        Some(Measure::Quantile(quantile, _)) => {
            LatencyFigure::of_quantile(quantile).unwrap_or(LatencyFigure::P99)
        }
        Some(Measure::Rate(_)) | None => LatencyFigure::P99,
    }
}

/// Whether a class was served and kept its objective. Where Rigel itself issued so late that this
/// alone may be why it did not, nothing is said about the storage: undecided.
fn judged(class: &ClassSummary) -> BoundVerdict {
    /// Share of the limit from which on a delay may be the reason.
    const SHARE: f64 = 0.5;
    let verdict = class.sustained();
    if verdict != BoundVerdict::Broken || class.is_not_met() {
        return verdict;
    }
    let both = class.scheduling_delay.zip(class.objective);
    let is_late = both.is_some_and(|(delay, judged)| {
        let (delay_us, limit) = match judged.objective.0 {
            Measure::Quantile(_, limit) => (delay.p99_us, limit),
            Measure::Mean(limit) => (delay.mean_us, limit),
            Measure::Max(limit) => (delay.max_us, limit),
            Measure::Rate(_) => return false,
        };
        delay_us > SHARE * limit.as_micros_f64()
    });
    if is_late {
        BoundVerdict::Undecided
    } else {
        verdict
    }
}

/// True if the late operations of a class are part of its stream's curve: one process measured, the
/// class was served, and Rigel itself was in time.
fn is_on_curve(class: &ClassSummary, point: &PointSummary) -> bool {
    point.of_ranks.is_empty()
        && !class.is_not_met()
        && class.late.is_some()
        && judged(class) == class.sustained()
}

/// The late operations and the stalls of a stream over all multiples.
struct StreamCurve {
    kind: DemandKind,
    crossing: Option<Crossing>,
    stalls: StallShare,
}

impl StreamCurve {
    /// What all multiples together say of one, of which its own figures say `own`.
    fn judged(
        &self,
        multiple: f64,
        own: BoundVerdict,
        (class, point): (&ClassSummary, &PointSummary),
    ) -> BoundVerdict {
        match &self.crossing {
            Some(crossing) if is_on_curve(class, point) => crossing.judged(multiple, own),
            _ if own == BoundVerdict::Kept
                && point.of_ranks.is_empty()
                && self.stalls.would_break(class) =>
            {
                BoundVerdict::Undecided
            }
            _ => own,
        }
    }
}

/// The curves of the streams that have a quantile to keep. Of several hosts each is judged alone.
fn curves(points: &[PointSummary], request: &FitRequest) -> Vec<StreamCurve> {
    /// Part of what is served at most.
    const BUSY: f64 = 0.8;
    let curve = |kind: DemandKind| {
        let of_kind = || {
            points.iter().filter_map(|point| {
                let mut classes = point.classes.iter();
                Some((point, classes.find(|class| class.name == kind.words())?))
            })
        };
        let classes = of_kind().filter_map(|(point, class)| {
            let multiple = point.coordinates.multiple()?;
            let is_part = class.is_not_met() || is_on_curve(class, point);
            is_part.then_some((multiple, class))
        });
        // Near what is served at most, queues look like stalls.
        let not_met = of_kind().filter(|(_, class)| class.is_not_met());
        let served = not_met
            .map(|(_, class)| class.iops)
            .fold(f64::INFINITY, f64::min);
        let mut stalls = StallShare::below(f64::INFINITY);
        for (point, class) in of_kind() {
            if class.offered.is_some_and(|rate| rate <= BUSY * served) {
                stalls.include(class, point.measured_s);
            }
        }
        let alone = alone(of_kind()).unwrap_or(ServiceTimes::UNKNOWN);
        StreamCurve {
            kind,
            crossing: Crossing::of(classes, alone, stalls),
            stalls: stalls.at_most(served),
        }
    };
    DemandKind::ALL
        .into_iter()
        .filter(|kind| !request.is_rare(*kind))
        .map(curve)
        .collect()
}

/// The times of a stream's operations at the lowest multiple, if that is so far below the lowest that
/// was not held that hardly any waits for another.
fn alone<'a>(
    of_kind: impl Iterator<Item = (&'a PointSummary, &'a ClassSummary)> + Clone,
) -> Option<ServiceTimes> {
    const IDLE: f64 = 0.5;
    let multiple = |point: &PointSummary| point.coordinates.multiple();
    let broken = of_kind
        .clone()
        .filter(|(_, class)| class.sustained() == BoundVerdict::Broken)
        .filter_map(|(point, _)| multiple(point))
        .fold(f64::INFINITY, f64::min);
    let (lowest, class) = of_kind
        .filter(|(point, class)| is_on_curve(class, point))
        .filter_map(|(point, class)| Some((multiple(point)?, class)))
        .min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    ServiceTimes::of(class).filter(|_| lowest <= IDLE * broken)
}

/// What the multiples of a fit show so far.
pub(super) struct Tried {
    /// The multiples, rising.
    pub(super) multiples: Vec<TriedMultiple>,
    /// Where they stop being held.
    pub(super) bracket: Bracket<f64>,
    curves: Vec<StreamCurve>,
}

impl Tried {
    /// That of these points.
    pub(super) fn of(points: &[PointSummary], request: &FitRequest) -> Self {
        let curves = curves(points, request);
        let tried = |point| TriedMultiple::of(point, request, &curves);
        let mut multiples: Vec<TriedMultiple> = points.iter().filter_map(tried).collect();
        multiples.sort_by(|one, other| one.multiple.total_cmp(&other.multiple));
        Self {
            bracket: bracket(&multiples),
            multiples,
            curves,
        }
    }

    /// The multiple at which a stream meets its objective exactly: by its curve, or somewhere between those
    /// that were decided alone. `None` if one end is not known.
    fn root_of(&self, kind: DemandKind) -> Option<Estimate> {
        let verdicts = self.multiples.iter().filter_map(|tried| {
            let stream = tried.deciding().find(|stream| stream.kind == kind)?;
            Some((tried.multiple, stream.verdict))
        });
        let decided = Bracket::of(verdicts);
        self.crossing(kind)
            .and_then(|crossing| crossing.within(&decided, f64::INFINITY))
            .or_else(|| decided.between(f64::INFINITY))
    }

    fn crossing(&self, kind: DemandKind) -> Option<&Crossing> {
        let mut curves = self.curves.iter();
        let own = curves.find(|curve| curve.kind == kind)?;
        own.crossing.as_ref()
    }

    /// The streams of which both ends are known, with their roots, the lowest first.
    fn roots(&self) -> Vec<(DemandKind, Estimate)> {
        let of_kind = |kind| Some((kind, self.root_of(kind)?));
        let mut roots: Vec<_> = DemandKind::ALL.into_iter().filter_map(of_kind).collect();
        roots.sort_by(|(_, one), (_, other)| one.value.total_cmp(&other.value));
        roots
    }

    /// The multiple at which the first stream meets its objective exactly; `None` if no stream has one that is
    /// known.
    pub(super) fn root(&self) -> Option<Estimate> {
        let roots = self.roots();
        let (_, first) = roots.first()?;
        // Another stream may break below it.
        let curves = self.curves.iter().filter_map(|one| one.crossing.as_ref());
        let of_curves = curves.map(|crossing| crossing.root().least());
        let lows = roots.iter().map(|(_, root)| root.least()).chain(of_curves);
        let low = lows.fold(first.least(), f64::min);
        let highs = roots.iter().map(|(_, root)| root.greatest());
        let limits = Limits {
            low: low.max(self.bracket.held.unwrap_or(0.0)),
            high: Some(highs.fold(first.greatest(), f64::min)),
        };
        Some(Estimate::new(first.value, Some(limits)))
    }

    /// The multiple that tells most about the root, `turn` being the number of visits so far; `None` if the
    /// first stream has no curve.
    pub(super) fn next_beside(&self, turn: usize) -> Option<f64> {
        let (first, _) = *self.roots().first()?;
        Some(self.crossing(first)?.next_load(turn))
    }
}

/// Where these multiples, which must be rising, stop being held.
pub fn bracket(multiples: &[TriedMultiple]) -> Bracket<f64> {
    Bracket::of(multiples.iter().map(|one| (one.multiple, one.verdict)))
}

/// Evaluates the records of a fit; `lines` has what each rank measured, if there were several.
pub fn fit(records: &[PointRecord], lines: &RankLines, request: &FitRequest) -> FitResult {
    let mut points: Vec<PointSummary> = records.iter().map(summarise).collect();
    judge_together(&mut points);
    points.iter_mut().for_each(|point| add_ranks(point, lines));
    let tried = Tried::of(&points, request);
    let root = tried.root();
    let Tried {
        multiples, bracket, ..
    } = tried;
    let Bracket { held, not_held, .. } = bracket;
    let between = || bracket.between(f64::INFINITY);
    let carries = root.filter(|_| not_held.is_some()).or_else(between);
    let ends = carries.and_then(|carries| carries.interval?.both());
    let tried = |multiple: f64| multiples.iter().find(|one| is_same(one.multiple, multiple));
    let limit = not_held.and_then(tried);
    let breaks_first = limit.map_or_else(Vec::new, TriedMultiple::broken);
    let breaks_on = limit.map_or_else(Vec::new, TriedMultiple::broken_on);
    let is_held = held.is_some_and(|held| held >= request.need)
        || ends.is_some_and(|ends| ends.low >= request.need);
    let is_broken = not_held.is_some_and(|not_held| not_held <= request.need)
        || ends.is_some_and(|ends| ends.high <= request.need);
    let verdict = if is_held {
        BoundVerdict::Kept
    } else if is_broken {
        BoundVerdict::Broken
    } else {
        BoundVerdict::Undecided
    };
    for point in &mut points {
        leave_out_expected(point, &multiples);
    }
    FitResult {
        carries,
        held,
        not_held,
        need: request.need,
        verdict,
        breaks_first,
        breaks_on,
        findings: findings(request, (&multiples, carries), (records, &points)),
        multiples,
        offered: request.offered(),
        points,
    }
}

/// True if both are one multiple, which is planned in thousandths.
pub fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() < 5e-4
}

/// A search has to go beyond the limit: there, queues that grow are no warning.
fn leave_out_expected(point: &mut PointSummary, multiples: &[TriedMultiple]) {
    const EXPECTED: [FindingName; 3] = [
        FindingName::RateNotMet,
        FindingName::Unsteady,
        FindingName::TooShort,
    ];
    let Coordinates::Multiple { .. } = point.coordinates else {
        return;
    };
    let held = multiples.iter().any(|one| {
        one.verdict == BoundVerdict::Kept
            && point
                .coordinates
                .multiple()
                .is_some_and(|multiple| is_same(one.multiple, multiple))
    });
    if !held {
        point
            .findings
            .retain(|finding| !EXPECTED.iter().any(|name| finding.is(*name)));
    }
}

fn findings(
    request: &FitRequest,
    (multiples, carries): (&[TriedMultiple], Option<Estimate>),
    (records, points): (&[PointRecord], &[PointSummary]),
) -> Vec<Finding> {
    // Doubts about the demand come first: no figure of the fit is better than its demand.
    let mut findings = request.findings.clone();
    findings.extend(stalled(records, points));
    findings.extend(fell_behind(records));
    let (found, times) = (bracket(multiples), |at| format!("{} ×", multiple(at)));
    findings.extend(found.contradiction(times));
    let hint = "measure longer, with `--point-time 60s`";
    findings.extend(found.uncertainty(carries, ("the multiple", hint), times));
    findings.extend(too_few(request, multiples));
    findings.extend(left_out(request, multiples));
    findings.extend(demand_censored(&request.database, &request.interval));
    findings
}

/// The square of the quantile of the normal distribution for 95 %.
const Z_SQUARED: f64 = 3.84;

/// Number of operations from which on it can be decided whether an objective is kept.
///
/// Fewer show nothing about a quantile, even if all are within the bound: Wilson's interval of none
/// among n ends at z² / (n + z²).
pub fn least_to_decide(objective: Objective) -> f64 {
    objective.bound().map_or(WINDOWS_FOR_MEAN as f64, |bound| {
        Z_SQUARED * bound.quantile / (1.0 - bound.quantile)
    })
}

/// A stream with so few operations that its objective cannot be judged.
fn too_few(request: &FitRequest, multiples: &[TriedMultiple]) -> Option<Finding> {
    let undecided = multiples
        .iter()
        .find(|one| one.verdict == BoundVerdict::Undecided)?;
    let stream = undecided
        .streams
        .iter()
        .filter(|one| one.verdict == BoundVerdict::Undecided && !one.is_rare)
        .min_by(|one, other| one.offered_per_s.total_cmp(&other.offered_per_s))?;
    let objective = request.objective(stream.kind)?;
    let least = least_to_decide(objective);
    let or_else = match objective.bound() {
        Some(_) => format!(", or a mean: --slo '{} mean<10ms'", stream.kind.words()),
        None => String::new(),
    };
    // Of several hosts, the one that is judged.
    let host = stream.worst_host();
    let done_per_s = host.map_or(stream.done_per_s, |host| host.done_per_s);
    let done = done_per_s * undecided.measured_s;
    (done < least).then(|| {
        Finding::note(
            FindingName::TooShort,
            format!(
                "at {} × only {} {} were offered in {:.0} s, and it takes {} or more to decide whether \
                 {objective} is kept: give --point-time more{or_else}",
                multiple(undecided.multiple),
                count(done),
                stream.kind.words(),
                undecided.measured_s,
                count(least.ceil()),
            ),
        )
    })
}

/// Streams too rare to matter, which decide nothing.
fn left_out(request: &FitRequest, multiples: &[TriedMultiple]) -> Option<Finding> {
    let streams = &multiples.first()?.streams;
    let is_left_out = |one: &&TriedStream| one.is_rare && request.objective(one.kind).is_some();
    let rare: Vec<&str> = streams
        .iter()
        .filter(is_left_out)
        .map(|one| one.kind.words())
        .collect();
    (!rare.is_empty()).then(|| {
        Finding::note(
            FindingName::RareStream,
            format!(
                "{} are less than a thousandth of the demand's operations and bytes: they are \
                 offered, and decide nothing as long as they are served",
                listed(&rare)
            ),
        )
    })
}

impl FitResult {
    /// The ends of the answer: those of its interval, or what held and what did not.
    pub fn ends(&self) -> (Option<f64>, Option<f64>) {
        let limits = self.carries.and_then(|carries| carries.interval);
        limits.map_or((self.held, self.not_held), |limits| {
            (Some(limits.low), limits.high)
        })
    }

    /// What it carries by a curve; `None` where only the ends are known, whose middle nobody measured.
    pub fn by_curve(&self) -> Option<f64> {
        let middle = self
            .held
            .zip(self.not_held)
            .map(|(low, high)| (low * high).sqrt());
        let value = self.carries?.value;
        (!middle.is_some_and(|middle| is_same(value, middle))).then_some(value)
    }

    /// The multiple that the table of streams is of: the highest that held, else the lowest tried.
    pub fn shown(&self) -> Option<&TriedMultiple> {
        let held = |held: f64| {
            self.multiples
                .iter()
                .find(|one| is_same(one.multiple, held))
        };
        self.held.and_then(held).or_else(|| self.multiples.first())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_analyse::LatencySummary;

    fn tried(multiple: f64, verdict: BoundVerdict) -> TriedMultiple {
        TriedMultiple {
            multiple,
            measured_s: 10.0,
            verdict,
            kept: verdict != BoundVerdict::Broken,
            streams: Vec::new(),
        }
    }

    #[test]
    fn the_answer_lies_between_what_certainly_held_and_what_certainly_did_not() {
        use BoundVerdict::{Broken, Kept, Undecided};
        let of = |verdicts: &[(f64, BoundVerdict)]| {
            let all: Vec<TriedMultiple> = verdicts.iter().map(|(at, v)| tried(*at, *v)).collect();
            let found = bracket(&all);
            (found.held, found.not_held)
        };
        assert_eq!(
            of(&[(1.0, Kept), (2.0, Kept), (2.5, Undecided), (4.0, Broken)]),
            (Some(2.0), Some(4.0))
        );
        assert_eq!(of(&[(1.0, Undecided), (2.0, Kept)]), (Some(2.0), None));
        assert_eq!(of(&[(0.5, Undecided), (1.0, Broken)]), (None, Some(1.0)));
        // What held above a multiple that did not is not believed.
        let contradicting = [(1.0, Kept), (2.0, Broken), (4.0, Kept)];
        assert_eq!(of(&contradicting), (Some(1.0), Some(2.0)));
    }

    #[test]
    fn operations_that_rigel_issued_late_say_nothing_about_the_storage() {
        let mut class = summarise(&rigel_analyse::examples::reads_of_a_millisecond())
            .classes
            .remove(0);
        let response = class.latency.expect("operations of 1 ms");
        let objective: Objective = "p99<900us".parse().unwrap();
        let verdict = |class: &mut ClassSummary, delay_us: Option<f64>| {
            class.objective = Some(ObjectiveVerdict {
                objective,
                verdict: BoundVerdict::Broken,
                kept: false,
            });
            class.scheduling_delay = delay_us.map(|p99_us| LatencySummary { p99_us, ..response });
            judged(class)
        };
        assert_eq!(verdict(&mut class, None), BoundVerdict::Broken);
        assert_eq!(verdict(&mut class, Some(450.0)), BoundVerdict::Broken);
        assert_eq!(verdict(&mut class, Some(451.0)), BoundVerdict::Undecided);
        // Failures are the storage's.
        class.failed.insert("EIO".into(), 1);
        assert_eq!(verdict(&mut class, Some(451.0)), BoundVerdict::Broken);
    }

    #[test]
    fn a_multiple_has_three_digits() {
        let said = [0.125, 0.063, 1.0, 2.714, 13.04, 128.3].map(multiple);
        assert_eq!(said, ["0.125", "0.063", "1", "2.71", "13", "128"]);
    }
}
