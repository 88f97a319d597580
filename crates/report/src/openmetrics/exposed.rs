//! The exposed metrics of a soak: sums over all rounds, and the figures of the last round.

use super::accept::Format;
use super::family::{Family, Sort, Times, Value};
use super::protobuf;
use super::text::{self, Dialect};
use rigel_analyse::{DeviceLoad, LatencyFigure, Round, RoundEnd, Status, device_loads};
use rigel_model::record::{Latencies, PointRecord, RankGroup, RankRecord, Window};
use rigel_model::{Kind, Moment, Nanos, Objective};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of failure causes with their own metric; further causes count as [`OTHER`].
const CAUSES_MOST: usize = 50;
/// The cause that combines all further causes.
const OTHER: &str = "other";

/// Constant facts about a soak.
#[derive(Debug, Clone)]
pub struct About {
    /// The verb, such as `soak`.
    pub verb: String,
    /// Name of the target as in reports, without any password.
    pub target: String,
    /// The engine.
    pub engine: String,
    /// When the soak began, even in an earlier process: counters count from then.
    pub started: Moment,
    /// Planned duration; `None` if it runs until stopped.
    pub planned: Option<Nanos>,
    /// Objectives of the rounds, in the order of [`Round::kept`].
    pub objectives: Vec<Objective>,
    /// Fraction of time in which they must be met; the rest is their error budget.
    pub share: f64,
}

/// Metrics of a soak. Grows with classes, kinds of operation and disks, not with rounds.
#[derive(Debug, Clone)]
pub struct Exposed {
    about: About,
    /// By class and kind of operation.
    done: BTreeMap<(String, Kind), Latencies>,
    /// By class: operations that were due and never started.
    unserved: BTreeMap<String, u64>,
    /// By cause.
    failed: BTreeMap<String, u64>,
    ends: Ends,
    /// Number of skipped rounds.
    missed: u64,
    /// The rating of the rounds so far, once it is known.
    conclusion: Option<Status>,
    /// By objective.
    standings: Vec<Standing>,
    last: Option<Last>,
    /// By name of a rank, if several measure together.
    ranks: BTreeMap<String, RankCounts>,
    /// Responses since the last round was added.
    served: Vec<(Format, Arc<[u8]>)>,
}

/// Number of rounds by how they ended.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    whole: u64,
    cut: u64,
    stopped: u64,
    broken: u64,
}

/// What one of several ranks did.
#[derive(Debug, Clone, Copy, Default)]
struct RankCounts {
    done: u64,
    failed: u64,
    /// Operations per second in the last point.
    rate: f64,
    /// 99th percentile of response time in the last point, in seconds.
    p99_s: Option<f64>,
}

/// State of an objective over the rounds so far.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    met: u64,
    missed: u64,
    /// Rounds that did not take place after one that missed the objective.
    swallowed: u64,
}

impl Standing {
    /// Fraction of rounds that met it; `None` if no round has a result for it.
    fn share_met(&self) -> Option<f64> {
        let judged = self.met + self.missed;
        (judged > 0).then(|| self.met as f64 / judged as f64)
    }

    /// Used fraction of the error budget, as in the report; `None` if there is no budget.
    fn budget_used(&self, share: f64) -> Option<f64> {
        let missed = self.missed + self.swallowed;
        let budget = (1.0 - share) * (self.met + missed) as f64;
        (budget > 0.0).then(|| missed as f64 / budget)
    }
}

/// The last round, and every disk in it.
#[derive(Debug, Clone)]
struct Last {
    round: Round,
    devices: Vec<(String, DeviceLoad)>,
}

impl Exposed {
    /// Creates the metrics of a soak without rounds.
    pub fn new(about: About) -> Self {
        Self {
            standings: vec![Standing::default(); about.objectives.len()],
            about,
            done: BTreeMap::new(),
            unserved: BTreeMap::new(),
            failed: BTreeMap::new(),
            ends: Ends::default(),
            missed: 0,
            conclusion: None,
            last: None,
            ranks: BTreeMap::new(),
            served: Vec::new(),
        }
    }

    /// Objectives of the rounds, in the order of [`Round::kept`].
    pub fn objectives(&self) -> &[Objective] {
        &self.about.objectives
    }

    /// Sets the rating of the rounds so far, as the report concludes from them.
    pub fn conclude(&mut self, status: Status) {
        self.conclusion = Some(status);
        self.served.clear();
    }

    /// Adds a round and its record. Rounds come in the order of the journal; a resumed soak begins
    /// with those in the journal, so that no counter falls.
    pub fn add_round(&mut self, round: &Round, record: &PointRecord) {
        for stream in &record.streams {
            for kind in &stream.kinds {
                let total = kind.total();
                self.done
                    .entry((stream.name.clone(), kind.kind))
                    .or_default()
                    .merge(&total.response);
                total
                    .failed
                    .iter()
                    .for_each(|(cause, count)| self.add_failures(cause, *count));
            }
            *self.unserved.entry(stream.name.clone()).or_default() +=
                stream.unserved.iter().sum::<u64>();
        }
        match round.end {
            RoundEnd::Whole => self.ends.whole += 1,
            RoundEnd::Cut => self.ends.cut += 1,
            RoundEnd::Stopped => self.ends.stopped += 1,
            RoundEnd::Broken(_) => self.ends.broken += 1,
        }
        let before = self.last.as_ref().map(|last| &last.round);
        let missing = u64::from(round.missing_after(before));
        self.missed += missing;
        for (at, standing) in self.standings.iter_mut().enumerate() {
            if before.is_some_and(|before| before.has_kept(at) == Some(false)) {
                standing.swallowed += missing;
            }
            match round.has_kept(at) {
                Some(true) => standing.met += 1,
                Some(false) => standing.missed += 1,
                None => {}
            }
        }
        let devices = match (record.samples.first(), record.samples.last()) {
            (Some(first), Some(last)) => device_loads(first, last),
            _ => Vec::new(),
        };
        self.last = Some(Last {
            round: round.clone(),
            devices,
        });
        self.served.clear();
    }

    /// Adds what each rank measured of a round or point, beside the sum that `add_round` adds. Ranks
    /// that waited have no rate in it.
    pub fn add_ranks(&mut self, group: &RankGroup, parts: &[RankRecord]) {
        for counts in self.ranks.values_mut() {
            (counts.rate, counts.p99_s) = (0.0, None);
        }
        for part in parts {
            let counts = self.ranks.entry(group.label(part.rank)).or_default();
            let mut total = Window::default();
            part.record
                .streams
                .iter()
                .for_each(|stream| total.merge(&stream.total()));
            counts.done += total.done;
            counts.failed += total.failures();
            let seconds = part.record.measured.as_secs_f64();
            counts.rate = if seconds > 0.0 {
                total.done as f64 / seconds
            } else {
                0.0
            };
            let p99 = total.response.histogram.quantile(0.99);
            counts.p99_s = p99.map(|band| band.middle() / 1e9);
        }
        self.served.clear();
    }

    /// The content type and the body for this `Accept` header. A body is encoded only once per
    /// round, however often it is requested: encoding takes time from the measurement.
    pub fn answer(&mut self, accept: &str) -> (&'static str, Arc<[u8]>) {
        let format = Format::negotiate(accept);
        let served = self
            .served
            .iter()
            .find(|(known, _)| *known == format)
            .map(|(_, body)| Arc::clone(body));
        let body = served.unwrap_or_else(|| {
            let body: Arc<[u8]> = self.encode(format).into();
            self.served.push((format, Arc::clone(&body)));
            body
        });
        (format.content_type(), body)
    }

    /// Encodes all metrics in a format.
    pub fn encode(&self, format: Format) -> Vec<u8> {
        let created = self.about.started.unix_seconds();
        let families = self.families();
        match format {
            Format::Text => text::encode(&families, created, Dialect::Prometheus),
            Format::OpenMetrics => text::encode(&families, created, Dialect::OpenMetrics),
            Format::Protobuf => protobuf::encode(&families, created),
        }
    }

    /// All families that have a metric.
    fn families(&self) -> Vec<Family> {
        let mut families = self.soak();
        families.extend(self.operations());
        families.extend(self.rounds());
        if let Some(last) = &self.last {
            families.extend(last.figures());
            families.extend(last.machine());
        }
        families.extend(self.of_ranks());
        families.extend(self.objective_families());
        families.retain(|family| !family.metrics.is_empty());
        families
    }

    fn soak(&self) -> Vec<Family> {
        let About {
            verb,
            target,
            engine,
            started,
            planned,
            ..
        } = &self.about;
        let labels = [
            ("version", env!("CARGO_PKG_VERSION")),
            ("verb", verb),
            ("target", target),
            ("engine", engine),
        ];
        vec![
            Family::new("", Sort::Info, "The program, and what it measures.").with(&labels, 1.0),
            Family::new(
                "soak_started_timestamp_seconds",
                Sort::Gauge,
                "When the run began, since 1970.",
            )
            .with(&[], started.unix_seconds() as f64),
            Family::new(
                "soak_planned_seconds",
                Sort::Gauge,
                "How long the soak is to take.",
            )
            .with(&[], planned.map(Nanos::as_secs_f64)),
            self.conclusion(),
        ]
    }

    /// The rating as a set of states, of which one is 1. The sentence is not a label: it changes
    /// with every round, and each would be a new series.
    fn conclusion(&self) -> Family {
        let mut family = Family::new(
            "soak_conclusion",
            Sort::Gauge,
            "1 for the status of the report's conclusion from the rounds so far, 0 for the others.",
        );
        if let Some(conclusion) = self.conclusion {
            for status in Status::ALL {
                let is_it = f64::from(u8::from(status == conclusion));
                family.push(&[("status", status.name())], Value::Number(is_it));
            }
        }
        family
    }

    fn operations(&self) -> Vec<Family> {
        let mut operations = Family::new(
            "operations",
            Sort::Counter,
            "Operations that succeeded, in all rounds or points.",
        );
        let mut times = Family::new(
            "response_seconds",
            Sort::Histogram,
            "Response times of the operations of all rounds or points, from the moment each was due.",
        );
        for ((class, kind), latencies) in &self.done {
            let labels = [("class", class.as_str()), ("kind", kind.name())];
            let counted = Times::of(latencies);
            operations.push(&labels, Value::Number(counted.count as f64));
            times.push(&labels, Value::Times(counted));
        }
        let mut failures = Family::new(
            "operation_failures",
            Sort::Counter,
            "Operations that failed, by cause.",
        );
        for (cause, count) in &self.failed {
            failures.push(&[("cause", cause)], Value::Number(*count as f64));
        }
        let mut unserved = Family::new(
            "operations_unserved",
            Sort::Counter,
            "Operations that were due and never started.",
        );
        for (class, count) in &self.unserved {
            unserved.push(&[("class", class)], Value::Number(*count as f64));
        }
        vec![operations, failures, unserved, times]
    }

    fn rounds(&self) -> Vec<Family> {
        let Ends {
            whole,
            cut,
            stopped,
            broken,
        } = self.ends;
        let mut ends = Family::new(
            "rounds",
            Sort::Counter,
            "Rounds of a soak, or points of another run, by how they ended: the work done, cut by \
             the time limit, stopped by somebody, broken.",
        );
        for (end, count) in [
            ("whole", whole),
            ("cut", cut),
            ("stopped", stopped),
            ("broken", broken),
        ] {
            ends.push(&[("end", end)], Value::Number(count as f64));
        }
        let missed = Family::new(
            "rounds_missed",
            Sort::Counter,
            "Rounds that were due and did not take place.",
        );
        vec![ends, missed.with(&[], self.missed as f64)]
    }

    /// What each of several ranks did.
    fn of_ranks(&self) -> Vec<Family> {
        let mut done = Family::new(
            "rank_operations",
            Sort::Counter,
            "Operations of each rank that succeeded, in all rounds or points.",
        );
        let mut failed = Family::new(
            "rank_operation_failures",
            Sort::Counter,
            "Operations of each rank that failed.",
        );
        let mut rate = Family::new(
            "rank_round_operations_per_second",
            Sort::Gauge,
            "Operations per second of each rank in the last round; 0 if it waited.",
        );
        let mut p99 = Family::new(
            "rank_round_response_p99_seconds",
            Sort::Gauge,
            "99th percentile of response time of each rank in the last round.",
        );
        for (name, counts) in &self.ranks {
            let labels = [("rank", name.as_str())];
            done = done.with(&labels, counts.done as f64);
            failed = failed.with(&labels, counts.failed as f64);
            rate = rate.with(&labels, counts.rate);
            p99 = p99.with(&labels, counts.p99_s);
        }
        vec![done, failed, rate, p99]
    }

    fn objective_families(&self) -> Vec<Family> {
        let mut met = Family::new(
            "objective_met",
            Sort::Gauge,
            "1 if the last round met the objective, else 0.",
        );
        let mut ratio = Family::new(
            "objective_met_ratio",
            Sort::Gauge,
            "Share of the rounds that met it, without stopped rounds.",
        );
        let mut budget = Family::new(
            "error_budget_used_ratio",
            Sort::Gauge,
            "How much of the error budget is used; 1 is all.",
        );
        let last = |at: usize| self.last.as_ref().and_then(|last| last.round.kept.get(at));
        for (at, (objective, standing)) in self
            .about
            .objectives
            .iter()
            .zip(&self.standings)
            .enumerate()
        {
            let objective = objective.to_string();
            let labels = [("objective", objective.as_str())];
            let last = last(at)
                .and_then(|last| last.kept)
                .map(|kept| f64::from(u8::from(kept)));
            met = met.with(&labels, last);
            ratio = ratio.with(&labels, standing.share_met());
            budget = budget.with(&labels, standing.budget_used(self.about.share));
        }
        vec![met, ratio, budget]
    }

    fn add_failures(&mut self, cause: &str, count: u64) {
        let is_known = self.failed.contains_key(cause) || self.failed.len() < CAUSES_MOST;
        *self
            .failed
            .entry(if is_known { cause } else { OTHER }.to_string())
            .or_default() += count;
    }
}

impl Last {
    /// Metrics of the round's measurements.
    fn figures(&self) -> Vec<Family> {
        let round = &self.round;
        let gauge = |name: &str, help, value: Option<f64>| {
            Family::new(name, Sort::Gauge, help).with(&[], value)
        };
        // Not `quantile`: that is the label of a summary, whose quantiles cover everything ever
        // counted.
        let response = Family::new(
            "round_response_seconds",
            Sort::Gauge,
            "Response time in the last round.",
        );
        let response = LatencyFigure::ALL.iter().fold(response, |family, figure| {
            let seconds = round.latency.get(*figure).map(|us| us / 1e6);
            family.with(&[("statistic", figure.label())], seconds)
        });
        let work = round
            .asked
            .filter(|asked| *asked > 0)
            .map(|asked| round.done / asked as f64);
        let finished = round.finish().unix_seconds() as f64;
        vec![
            gauge(
                "round_number",
                "Number of the last round or point, from 1.",
                Some(round.number.into()),
            ),
            gauge(
                "round_finished_timestamp_seconds",
                "When the last round ended, since 1970.",
                Some(finished),
            ),
            gauge(
                "round_duration_seconds",
                "How long the last round was measured.",
                Some(round.seconds),
            ),
            gauge(
                "round_operations_per_second",
                "Operations per second in the last round.",
                round.rate,
            ),
            gauge(
                "round_work_done_ratio",
                "Share of its fixed work that the last round did.",
                work,
            ),
            response,
        ]
    }

    /// Metrics of the host and its disks during the round.
    fn machine(&self) -> Vec<Family> {
        let mut busy = Family::new(
            "device_busy_ratio",
            Sort::Gauge,
            "Share of the last round in which the disk had a request in flight.",
        );
        let mut queue = Family::new(
            "device_queue",
            Sort::Gauge,
            "Requests in flight at the disk in the last round, on average.",
        );
        for (name, load) in &self.devices {
            busy = busy.with(&[("device", name)], load.busy);
            queue = queue.with(&[("device", name)], load.queue);
        }
        let host = self.round.host.as_ref();
        let gauge = |name: &str, help, value: Option<f64>| {
            Family::new(name, Sort::Gauge, help).with(&[], value)
        };
        let others = host
            .and_then(|host| host.others_mb_per_s)
            .map(|megabytes| megabytes * 1e6);
        vec![
            busy,
            queue,
            gauge(
                "device_other_bytes_per_second",
                "Bytes per second that the disks moved in the last round beyond what it requested.",
                others,
            ),
            gauge(
                "host_cpu_busy_ratio",
                "Share of the CPUs that was in use in the last round.",
                host.map(|host| host.cpu_busy),
            ),
            gauge(
                "host_steal_ratio",
                "Share of the CPU time that the hypervisor took in the last round.",
                host.map(|host| host.stolen),
            ),
            gauge(
                "host_io_pressure_ratio",
                "Share of the last round in which some task waited for I/O.",
                host.and_then(|host| host.io_pressure),
            ),
        ]
    }
}
