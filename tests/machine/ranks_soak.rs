//! A soak of several processes, started as MPI's process managers start them: its report says what
//! each of them did.

use crate::common::launched::{Rank, start};
use crate::common::{Place, rigel};
use rigel_model::record::journal::Run;
use std::process::Output;

#[test]
fn the_report_of_a_soak_has_what_each_rank_did_in_all_rounds() {
    let place = Place::new("ranks-soak-report");
    let line = "soak sim:8,100us --work 301ops --every 1m --for 5m --seed 1 --out out";
    let (_server, ranks) = start(&place, line, 3, |_, _| ());
    let outputs: Vec<Output> = ranks.into_iter().map(Rank::end).collect();
    let said = String::from_utf8_lossy(&outputs[0].stdout).into_owned();
    let stderr = String::from_utf8_lossy(&outputs[0].stderr).into_owned();
    assert!(
        outputs.iter().all(|output| output.status.code() == Some(0)),
        "{stderr}"
    );
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
