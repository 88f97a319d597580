//! A soak of several processes, started as MPI's process managers start them: its report says what
//! each of them did.

use crate::common::launched::{Rank, start};
use crate::common::pmi::{Dialect, Server};
use crate::common::{Place, rigel, scratch_file, wait_until};
use rigel_model::record::journal::Run;
use rigel_model::record::{End, PointRecord};
use std::fs::File;
use std::path::Path;
use std::process::Output;

#[test]
fn the_report_of_a_soak_has_what_each_rank_did_in_all_rounds() {
    let place = Place::new("ranks-soak-report");
    let line = "soak sim:8,100us --work 301ops --every 1m --for 5m --seed 1 --out out";
    let (_server, ranks) = start(&place, line, 3, |_, _| ());
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    let stderr = String::from_utf8_lossy(&outputs[0].stderr).into_owned();
    assert!(
        outputs.iter().all(|output| output.status.code() == Some(0)),
        "{stderr}"
    );
    let shown = rigel(&place, "report out --verbose").output().unwrap();
    let said = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(said.contains("The hosts\n"), "{said}");
    // Lines of progress say how many hosts they are of.
    assert!(stderr.contains("round 3, 3 hosts:"), "{stderr}");

    let report = rigel(&place, "report out --json").output().unwrap();
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let run = Run::read(&place.0.join("out")).unwrap();
    for (at, wanted) in [505_u64, 500, 500].into_iter().enumerate() {
        let host = &report["ranks"]["by_host"][at];
        let parts = run.ranks.parts.iter().flat_map(|point| &point.parts);
        let own = parts.filter(|part| part.rank as usize == at);
        let done: u64 = own.map(|part| part.record.streams[0].done()).sum();
        assert_eq!(
            (done, &host["operations"]),
            (wanted, &wanted.into()),
            "{host}"
        );
        assert_eq!(host["lost_rounds"], 0);
    }
    assert_eq!(report["ranks"]["rounds"], 5);
    assert_eq!(report["ranks"]["end_status"], 0);
}

/// A soak of two ranks on `/proc/self/fd/0/file`, each in the directory that its standard input is.
fn soak_in(place: &Place, directories: [&Path; 2]) -> (Server, Vec<Rank>) {
    let line = "soak /proc/self/fd/0/file --separate --work 20ops --every 1s --for 1h \
                --no-progress --out out";
    let (server, ends) = Server::start(Dialect::Hydra5, 2, usize::MAX);
    let ranks = ends.into_iter().enumerate().map(|(rank, end)| {
        let mut command = rigel(place, line);
        command.env("RIGEL_TEST_BOOT_ID", format!("boot-{rank}"));
        command.stdin(File::open(directories[rank]).unwrap());
        Rank::start(command, &end, rank, 2)
    });
    let ranks = ranks.collect();
    (server, ranks)
}

/// Replaces the file of one rank or of both while they measure it, and puts it back.
fn replaced_and_put_back(name: &str, is_of_both: bool) {
    let place = Place::new(name);
    let directories = ["a", if is_of_both { "a" } else { "b" }].map(|name| place.0.join(name));
    for directory in &directories {
        let _ = std::fs::create_dir(directory);
        let content = scratch_file(name, 1 << 20);
        std::fs::copy(&content.path, directory.join("file")).unwrap();
    }
    std::fs::copy(directories[1].join("file"), place.0.join("other")).unwrap();
    let (_server, ranks) = soak_in(&place, [&directories[0], &directories[1]]);
    let rounds = || {
        Run::read(&place.0.join("out")).map_or_else(
            |_| Vec::new(),
            |run| {
                let ends = run.points.iter().map(|point| point.end.clone());
                ends.collect::<Vec<End>>()
            },
        )
    };
    let is_broken = |end: Option<&End>, words: &str| matches!(end, Some(End::Broken(why)) if why.contains(words));
    let is_complete = |end: Option<&End>| end == Some(&End::Complete);
    wait_until("a round is done", || is_complete(rounds().last()));
    let (file, aside) = (directories[1].join("file"), place.0.join("aside"));
    // In one step: at no moment is the name missing.
    std::fs::hard_link(&file, &aside).unwrap();
    std::fs::rename(place.0.join("other"), &file).unwrap();
    let host = Run::read(&place.0.join("out")).unwrap().header.host.name;
    let of_rank = if is_of_both {
        String::new()
    } else {
        format!("rank 1 on {host}: ")
    };
    let noticed = format!("{of_rank}'/proc/self/fd/0/file' is no longer the file");
    wait_until("it is noticed", || {
        rounds().iter().any(|end| is_broken(Some(end), &noticed))
    });
    let refused = format!("{of_rank}the target of this run was replaced: ");
    wait_until("no rank measures another file", || {
        is_broken(rounds().last(), &refused)
    });
    std::fs::rename(&aside, &file).unwrap();
    wait_until("all ranks measure again", || is_complete(rounds().last()));
    let run = Run::read(&place.0.join("out")).unwrap();
    let last = run.ranks.parts.last().unwrap();
    assert_eq!(last.parts.len(), 2);
    let done = |record: &PointRecord| record.streams[0].done();
    assert_eq!(run.points[last.at].streams[0].done(), 20);
    assert!(last.parts.iter().all(|part| done(&part.record) == 10));
    ranks[0].signal("INT");
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    let statuses = outputs.iter().map(|output| output.status.code());
    assert_eq!(statuses.collect::<Vec<_>>(), [Some(1); 2]);
    // Rounds that no rank measured are in the report.
    let report = rigel(&place, "report out --verbose").output().unwrap();
    assert!(report.status.code() == Some(1) && !report.stdout.is_empty());
}

#[test]
fn ranks_whose_file_was_replaced_measure_it_again_when_it_is_back() {
    replaced_and_put_back("ranks-soak-replaced", true);
}

#[test]
fn a_rank_whose_own_file_was_replaced_is_named_and_measures_again() {
    replaced_and_put_back("ranks-soak-other", false);
}
