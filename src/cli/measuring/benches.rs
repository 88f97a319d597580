//! The benches of a run, and which of them measures a point.
//!
//! Input: a job. Output: one bench; or one for each layer of `rigel layers` and each arm of
//! `rigel duet`, whose points differ in target and engine. Only this file knows that there may be
//! several.

use super::job::{Job, header};
use rigel_analyse::plan::VolumeShape;
use rigel_model::record::journal::Header;
use rigel_verbs::Verb;
use rigel_verbs::calibrate::CalibrateRequest;
use rigel_verbs::duet::{DuetArm, DuetRequest};
use rigel_verbs::layers::LayersRequest;

use rigel_database::Access;
use rigel_measure::run::agreement;
use rigel_measure::run::{Bench, BenchRequest, Listen, ServerWatch, SqlRequest};
use rigel_model::record::journal::EngineChoice;
use rigel_model::record::ranks::RankGroup;
use rigel_model::{
    Coordinates, Error, Layer, Layout, Nanos, Point, SqlTarget, SqlWork, Target, TargetFacts,
    arm_letter,
};
use rigel_verbs::calibrate::suspect_below;
use std::sync::atomic::AtomicBool;

/// The points of a run that one bench measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PointsOf {
    /// All.
    Run,
    /// Those of a layer.
    Layer(Layer),
    /// Those of an arm of a duet, by its number.
    Arm(u32),
}

/// A part of a run's points, and what they are measured on.
struct BenchPlan {
    points: PointsOf,
    target: Target,
    engine: EngineChoice,
    /// The work of database sessions, and their statement timeout.
    sql: Option<(SqlWork, Option<Nanos>)>,
    /// How its database is reached.
    access: Option<Access>,
}

/// The benches of a run.
pub(super) struct Benches(Vec<(PointsOf, Bench)>);

impl Benches {
    /// Prepares all of them.
    pub(super) fn prepare(
        job: &Job,
        stop: &AtomicBool,
        listen: &mut Listen,
    ) -> Result<Self, Error> {
        let mut made: Vec<(PointsOf, Bench)> = Vec::new();
        for part in parts(job) {
            // Arms of one directory read the same scratch file.
            let first = made.first().map(|(_, bench)| bench);
            let first = first.filter(|_| part.target == job.target);
            let bench = prepare(job, (&part, first), stop, listen)?;
            made.push((part.points, bench));
        }
        Ok(Self(made))
    }

    /// As [`all_ready`], with the main bench.
    pub(super) fn all_ready(&self, job: &Job) -> Result<Option<RankGroup>, Error> {
        all_ready(self.main(), job)
    }

    /// The bench whose target and engine the journal's header describes: of layers, the database's; of
    /// arms, the first.
    pub(super) fn main(&self) -> &Bench {
        self.find(PointsOf::Layer(Layer::Row))
            .unwrap_or(&self.0[0].1)
    }

    /// The bench that measures a point.
    pub(super) fn of(&self, point: &Point) -> &Bench {
        let points = match point.coordinates {
            Coordinates::Layer { layer, .. } => PointsOf::Layer(layer),
            Coordinates::Arm { arm, .. } => PointsOf::Arm(arm),
            _ => PointsOf::Run,
        };
        self.find(points).unwrap_or(self.main())
    }

    /// The targets that other arms than the first have of their own, and what was found about them.
    pub(super) fn others<'a>(&'a self, job: &'a Job) -> Vec<(&'a Target, &'a TargetFacts)> {
        let duet = job.verb.downcast_ref::<DuetRequest>();
        let arms = duet.map_or(&[][..], |duet| &duet.arms);
        let own = arms.iter().zip(&self.0).filter_map(|(arm, (_, bench))| {
            let target = arm.target.as_ref()?;
            Some((target, &bench.facts))
        });
        own.collect()
    }

    /// Notes in the request from which response time on a cache is suspected, by what is known of
    /// the target.
    pub(super) fn note_suspicion(&self, job: &mut Job) {
        let bench = self.main();
        if let Some(request) = job.verb.downcast_mut::<CalibrateRequest>() {
            request.suspect_below = suspect_below(&job.target, &bench.facts, bench.host.memory);
        }
    }

    fn find(&self, points: PointsOf) -> Option<&Bench> {
        let (_, bench) = self.0.iter().find(|(of, _)| *of == points)?;
        Some(bench)
    }

    /// Stores in the request which engine was chosen for raw asynchronous I/O, so that a resumed
    /// run takes the same.
    pub(super) fn name_engines(&self, verb: &mut dyn Verb) {
        let request = verb.downcast_mut::<LayersRequest>();
        if let (Some(request), Some(raw)) = (request, self.find(PointsOf::Layer(Layer::Async))) {
            request.asynchronous = raw.engine_name().into();
        }
    }

    /// The first line of the journal. The files that raw I/O reads are members of the target, and
    /// every finding stands in it once.
    pub(super) fn header(&self, job: &Job) -> Header {
        let mut header = header(self.main(), job);
        if let Some(raw) = self.find(PointsOf::Layer(Layer::Async)) {
            header.engine_about = format!("{}; raw: {}", header.engine_about, raw.engine_about());
            header.facts.members.clone_from(&raw.facts.members);
        }
        if let [(PointsOf::Arm(_), _), ..] = self.0[..] {
            let each = (0..)
                .zip(&self.0)
                .map(|(arm, (_, bench))| format!("{}: {}", arm_letter(arm), bench.engine_about()));
            header.engine_about = each.collect::<Vec<_>>().join("; ");
            let others = self.others(job).into_iter();
            header.facts_of_others = others.map(|(_, facts)| facts.clone()).collect();
        }
        let of_server = job.private.iter().flat_map(|private| &private.findings);
        header.findings.clear();
        for finding in self
            .0
            .iter()
            .flat_map(|(_, bench)| &bench.findings)
            .chain(of_server)
        {
            if !header.findings.contains(finding) {
                header.findings.push(finding.clone());
            }
        }
        header
    }
}

/// Tells the other ranks that this one is ready, or waits for all of them at rank 0, which learns
/// what each is. Does nothing if this process measures alone.
///
/// # Errors
/// A rank could not prepare its target, or was lost.
pub(super) fn all_ready(bench: &Bench, job: &Job) -> Result<Option<RankGroup>, Error> {
    let Some(ranks) = job.membership.joined() else {
        return Ok(None);
    };
    let facts = (&bench.host, &bench.facts);
    let group = agreement::all_ready(ranks, facts, job.agreement.identity.clone())?;
    Ok(group.map(|group| RankGroup {
        separate: job.separate,
        same_blocks: job.same_blocks,
        ..group
    }))
}

/// The work of a verb's database sessions.
fn sessions(verb: &dyn Verb) -> Option<(SqlWork, Option<Nanos>)> {
    let terms = verb.sql()?;
    Some((terms.work, terms.statement_timeout))
}

/// The parts of a duet: its arms, each on a server of its own if it has one.
fn arms(job: &Job, duet: &DuetRequest) -> Vec<BenchPlan> {
    let mut servers = job.private.iter().map(|private| private.access.clone());
    let part = |(arm, of): (u32, &DuetArm)| BenchPlan {
        points: PointsOf::Arm(arm),
        target: of.target.clone().unwrap_or_else(|| job.target.clone()),
        engine: EngineChoice {
            name: of.engine.clone().unwrap_or_else(|| job.engine.name.clone()),
            ..job.engine.clone()
        },
        sql: sessions(duet),
        access: servers.next(),
    };
    (0..).zip(&duet.arms).map(part).collect()
}

/// The parts of a run.
fn parts(job: &Job) -> Vec<BenchPlan> {
    if let Some(duet) = job.verb.downcast_ref::<DuetRequest>() {
        return arms(job, duet);
    }
    let Some(layers) = job.verb.downcast_ref::<LayersRequest>() else {
        return vec![BenchPlan {
            points: PointsOf::Run,
            target: job.target.clone(),
            engine: job.engine.clone(),
            sql: sessions(&*job.verb),
            access: job.access.clone(),
        }];
    };
    let private = job.private.first();
    let files = private.map_or(&[][..], |private| &private.files);
    let raw = |engine: &str| {
        (
            Target::Paths {
                members: files.to_vec(),
                layout: Layout::Concat,
            },
            engine.to_string(),
        )
    };
    let part = |layer: Layer| {
        let (target, engine) = match layer {
            Layer::Async => raw(&layers.asynchronous),
            Layer::Sync => raw("psync"),
            Layer::File | Layer::Row | Layer::Prefetch | Layer::Single => {
                (job.target.clone(), job.engine.name.clone())
            }
        };
        let sql = layers.work_of(layer).map(|work| (work, None));
        BenchPlan {
            points: PointsOf::Layer(layer),
            target,
            engine: EngineChoice {
                name: engine,
                buffered: false,
                verify: false,
            },
            sql,
            access: job.access.clone(),
        }
    };
    layers.layers().into_iter().map(part).collect()
}

/// The bench of a part, on the scratch file of another one if it has the same.
fn prepare(
    job: &Job,
    (part, beside): (&BenchPlan, Option<&Bench>),
    stop: &AtomicBool,
    listen: &mut Listen,
) -> Result<Bench, Error> {
    let (request, options) = (&job.verb, &job.options);
    let ranks = job.membership.joined();
    let own = part.access.as_ref();
    let own = own.map(|access| job.membership.own_servers(access));
    let target = own_target(&part.target, own.as_ref());
    let sql = own.as_ref().zip(part.sql);
    // Of several ranks, the first counts for all.
    let watch = match ranks.filter(|_| !job.separate) {
        None => ServerWatch::Own,
        Some(ranks) if ranks.is_root() => job
            .access
            .as_ref()
            .map_or(ServerWatch::Own, ServerWatch::All),
        Some(_) => ServerWatch::Elsewhere,
    };
    let rank = ranks.map_or(0, |ranks| ranks.rank() as u64);
    let of = ranks.map_or(1, |ranks| ranks.size() as u64);
    let shares = job.same_blocks || job.separate;
    let asked = BenchRequest {
        target: &target,
        engine: &part.engine,
        grain: request.grain(),
        largest: request.largest(),
        writes: request.writes(),
        destroy: &options.destroy,
        allow_holes: options.allow_holes,
        workers: options.workers,
        // Models of two arms are two devices.
        seed: options.seed.wrapping_add(match part.points {
            PointsOf::Arm(arm) => arm.into(),
            PointsOf::Run | PointsOf::Layer(_) => rank,
        }),
        part: part_of((rank, of), request.writes(), shares),
        beside,
        host_of_rank: ranks.map(|ranks| ranks.members()[ranks.rank()].host.as_str()),
        sql: sql.map(|(access, (work, statement_timeout))| SqlRequest {
            access,
            work,
            statement_timeout,
            watch,
        }),
    };
    let (layers, duet) = (request.downcast_ref(), request.downcast_ref());
    let points = |volume: VolumeShape<'_>| match (part.points, layers, duet) {
        (PointsOf::Layer(layer), Some(layers), _) => {
            LayersRequest::extremes_of(layers, layer, options.seed)
        }
        (PointsOf::Arm(arm), _, Some(duet)) => DuetRequest::extremes_of(duet, arm, options.seed),
        _ => request.prepared(volume, options.seed),
    };
    Bench::prepare(&asked, points, stop, listen)
}

/// The part of the storage that a rank uses, and of how many; `None` if it uses all. What several
/// ranks write lies apart, unless they are to write to the same blocks, or have storage of their
/// own.
fn part_of((rank, of): (u64, u64), writes: bool, shares: bool) -> Option<(u64, u64)> {
    (of > 1 && writes && !shares).then_some((rank, of))
}

/// The target with those servers only that this process uses.
fn own_target(target: &Target, own: Option<&Access>) -> Target {
    match (target, own) {
        (Target::Sql(given), Some(own)) => Target::Sql(SqlTarget {
            urls: own.servers.iter().map(ToString::to_string).collect(),
            ..given.clone()
        }),
        _ => target.clone(),
    }
}

/// The only bench of a run without layers or arms.
pub(super) fn only(job: &Job, stop: &AtomicBool, listen: &mut Listen) -> Result<Bench, Error> {
    let part = parts(job).swap_remove(0);
    prepare(job, (&part, None), stop, listen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_several_ranks_write_to_one_storage_lies_apart() {
        assert_eq!(part_of((1, 3), true, false), Some((1, 3)));
        // As --same-blocks and --separate ask for.
        assert_eq!(part_of((1, 3), true, true), None);
        assert_eq!(part_of((1, 3), false, false), None);
        assert_eq!(part_of((0, 1), true, false), None);
    }
}
