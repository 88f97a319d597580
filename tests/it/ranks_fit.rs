//! `rigel fit` over several hosts, on a model for each: the demand is the sum over the hosts, and the
//! answer is that of the host on which it breaks first.

use crate::fit::{request, stream};
use crate::queues::truths::Queue;
use crate::ranks::{cluster, spec};
use rigel_analyse::BoundVerdict;
use rigel_model::record::journal::Run;
use rigel_model::{DemandInterval, DemandKind, DemandStream};
use rigel_report::document::Extent;
use rigel_report::text;
use rigel_verbs::fit::FitRequest;
use rigel_verbs::fit::FitResult;
use rigel_verbs::fit::RankDemand;
use rigel_verbs::fit::TriedStream;

/// The result, and the report as words with single spaces.
fn found(run: &Run) -> (FitResult, String) {
    let measured = crate::common::evaluated(run);
    let said = text::render(&measured.document(), Extent::Full);
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let result = measured.results.downcast_ref::<FitResult>();
    (result.expect("a fit").clone(), said)
}

fn of_kind(streams: &[TriedStream], kind: DemandKind) -> &TriedStream {
    streams.iter().find(|one| one.kind == kind).unwrap()
}

#[test]
fn a_multiple_holds_only_if_every_host_holds_it() {
    // Three equal parts of 1,000 reads per second; the third host has a quarter of the others' servers.
    let (service, demanded) = (0.001, 3000.0);
    let slow = Queue {
        servers: 2,
        service,
        rate: 0.0,
    };
    let truth = slow.greatest_rate(0.99, 0.02) / (demanded / 3.0);
    let asked = request(
        vec![stream(DemandKind::RandomReads, demanded, 8192.0)],
        &["random reads p99<20ms"],
    );
    let run = cluster("fit-slow", 3, asked, &|rank, _| {
        spec(if rank == 2 { "2,1ms" } else { "8,1ms" })
    });
    let (found, said) = found(&run);
    let (held, limit) = (found.held.unwrap(), found.not_held.unwrap());
    assert!(held <= truth && truth <= limit, "{held} {truth} {limit}");
    assert_eq!(found.breaks_on, [2]);
    assert!(
        said.contains("on every host; random reads break first, on h3."),
        "{said}"
    );
    assert!(said.contains("Each of the 3 ranks offers an equal part of the demand."));
    let at_limit = found
        .multiples
        .iter()
        .find(|one| one.verdict == BoundVerdict::Broken);
    let stream = of_kind(&at_limit.unwrap().streams, DemandKind::RandomReads);
    let verdicts: Vec<BoundVerdict> = stream.hosts.iter().map(|host| host.verdict).collect();
    assert_eq!(
        verdicts,
        [BoundVerdict::Kept, BoundVerdict::Kept, BoundVerdict::Broken]
    );
    // What is offered and done is the sum.
    let sum =
        |of: fn(&rigel_verbs::fit::HostStream) -> f64| stream.hosts.iter().map(of).sum::<f64>();
    assert!((stream.offered_per_s - sum(|host| host.offered_per_s)).abs() < 1e-6);
    assert!((stream.done_per_s - sum(|host| host.done_per_s)).abs() < 1e-6);
}

/// Two instances: the second scans in larger pieces, and writes no log.
fn instances() -> FitRequest {
    let of = |name: &str, streams: Vec<DemandStream>| RankDemand {
        database: name.into(),
        interval: DemandInterval {
            streams,
            ..request(Vec::new(), &[]).interval
        },
    };
    let first = vec![
        stream(DemandKind::RandomReads, 300.0, 8192.0),
        stream(DemandKind::MultiblockReads, 60.0, 65_536.0),
        stream(DemandKind::LogWrites, 40.0, 4096.0),
    ];
    let second = vec![
        stream(DemandKind::RandomReads, 100.0, 8192.0),
        stream(DemandKind::MultiblockReads, 30.0, 262_144.0),
    ];
    let sum = vec![
        stream(DemandKind::RandomReads, 400.0, 8192.0),
        stream(DemandKind::MultiblockReads, 90.0, 131_072.0),
        stream(DemandKind::LogWrites, 40.0, 4096.0),
    ];
    FitRequest {
        of_ranks: vec![of("RAC/R1", first), of("RAC/R2", second)],
        database: "RAC, all 2 instances".into(),
        highest: 1.0,
        ..request(sum, &["random reads p99<50ms", "log writes p99<50ms"])
    }
}

#[test]
fn each_rank_offers_the_demand_of_its_own_instance() {
    let asked = instances();
    let run = cluster("fit-own", 2, asked, &|_, _| spec("16,1ms"));
    let parts = &run.ranks.parts[0].parts;
    let of_part = |rank: usize| -> Vec<(&str, u32)> {
        let streams = parts[rank].record.streams.iter();
        streams.map(|it| (it.name.as_str(), it.length)).collect()
    };
    assert_eq!(
        of_part(0),
        [
            ("random reads", 8192),
            ("multi-block reads", 65_536),
            ("log writes", 4096)
        ]
    );
    assert_eq!(
        of_part(1),
        [("random reads", 8192), ("multi-block reads", 262_144)]
    );
    // The sum has every operation of the parts, and their bytes to within rounding.
    for merged in &run.points[0].streams {
        let own = parts
            .iter()
            .filter_map(|part| part.record.stream(&merged.name));
        let (done, bytes) = own.fold((0, 0), |(done, bytes), stream| {
            let own = stream.total().done;
            (done + own, bytes + own * u64::from(stream.length))
        });
        assert_eq!(merged.total().done, done, "{}", merged.name);
        let mean = u64::from(merged.length);
        assert!(
            mean * done <= bytes && bytes < (mean + 1) * done.max(1),
            "{}",
            merged.name
        );
    }
    let (found, said) = found(&run);
    assert_eq!(found.held, Some(1.0), "{said}");
    let log = of_kind(&found.multiples[0].streams, DemandKind::LogWrites);
    assert_eq!(
        log.hosts.iter().map(|host| host.rank).collect::<Vec<_>>(),
        [0]
    );
    assert!(
        said.contains("each rank offers its own: h1 that of RAC/R1, h2 that of RAC/R2."),
        "{said}"
    );
}
