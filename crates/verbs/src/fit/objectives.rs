//! What the streams of a demand must keep where nobody says it: one choice for every command that
//! judges storage by a demand.
//!
//! Input: an interval of a demand. Output: an objective for each stream. A stream whose latency the
//! database saw must be as fast as it was; other reads, log writes and operations must keep the usual
//! limits; page writes must only be served.

use super::request::FitRequest;
use rigel_analyse::demand::stream_objective::{StreamObjective, assumed};
use rigel_model::{DemandKind, Error, usage};

/// What each offered stream must keep: as given, else as assumed.
///
/// # Errors
/// An objective is for a stream that is not offered, or the second for one stream.
pub fn objectives(
    given: &[StreamObjective],
    request: &FitRequest,
) -> Result<Vec<StreamObjective>, Error> {
    let offered: Vec<DemandKind> = request.offered().iter().map(|one| one.kind).collect();
    for (index, one) in given.iter().enumerate() {
        if !offered.contains(&one.kind) {
            let words: Vec<&str> = offered.iter().map(|kind| kind.words()).collect();
            return Err(usage!(
                "--slo '{one}' is for a stream that is not offered",
                "offered: {words}",
                words = words.join(", ")
            ));
        }
        if given[..index].iter().any(|before| before.kind == one.kind) {
            return Err(usage!(
                "--slo '{one}' is the second objective of {kind}",
                "give one for each stream",
                kind = one.kind.words()
            ));
        }
    }
    let of = |kind: &DemandKind| {
        let own = given.iter().find(|one| one.kind == *kind).copied();
        own.or_else(|| {
            assumed(
                &request.interval,
                &request.demanded(*kind)?,
                &request.findings,
            )
        })
    };
    Ok(offered.iter().filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::fit as request;
    use rigel_model::examples::stream;
    use rigel_model::{DemandStream, Finding, FindingName};

    #[test]
    fn without_an_objective_storage_must_be_as_good_as_the_database_saw_it() {
        let reads = DemandStream {
            mean_us: Some(850.0),
            ..stream(DemandKind::RandomReads, 100.0, None)
        };
        let scans = stream(DemandKind::MultiblockReads, 5.0, Some(1e6));
        let log = stream(DemandKind::LogWrites, 5.0, Some(4096.0));
        let mut asked = request(vec![reads, scans, log]);
        let chosen = |asked: &FitRequest, given: &[&str]| {
            let given: Vec<StreamObjective> =
                given.iter().map(|text| text.parse().unwrap()).collect();
            objectives(&given, asked).map(|all| {
                let shown = all.iter().map(|one| (one.to_string(), one.is_assumed));
                shown.collect::<Vec<_>>()
            })
        };
        let assumed = |text: &str| (text.to_string(), true);
        assert_eq!(
            chosen(&asked, &[]).unwrap(),
            [
                assumed("random reads mean<850us"),
                assumed("multi-block reads p99<10ms")
            ]
        );
        asked.writes = true;
        assert_eq!(
            chosen(&asked, &["random reads p99<2ms"]).unwrap(),
            [
                ("random reads p99<2ms".to_string(), false),
                assumed("multi-block reads p99<10ms"),
                assumed("log writes p99<20ms")
            ]
        );
        asked.writes = false;
        let refused = chosen(&asked, &["log writes p99<2ms"])
            .unwrap_err()
            .to_string();
        assert!(refused.contains("not offered"), "{refused}");
        let twice = chosen(&asked, &["random reads p99<2ms", "random reads mean<2ms"]);
        assert!(twice.unwrap_err().to_string().contains("second"));
    }

    #[test]
    fn what_memory_answered_is_no_bar_and_the_log_still_has_its_own() {
        let seen = |kind| DemandStream {
            mean_us: Some(12.8),
            ..stream(kind, 7000.0, Some(8192.0))
        };
        let mut asked = request(vec![
            seen(DemandKind::RandomReads),
            seen(DemandKind::LogWrites),
        ]);
        asked.writes = true;
        let memory = FindingName::ReadsFromMemory;
        asked.findings = vec![Finding::warning(memory, "it came from memory", "")];
        let chosen = objectives(&[], &asked).unwrap();
        let shown: Vec<String> = chosen.iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["random reads p99<10ms", "log writes mean<13us"]);
    }

    #[test]
    fn latencies_of_an_exadata_are_no_bar() {
        let reads = DemandStream {
            mean_us: Some(350.0),
            ..stream(DemandKind::RandomReads, 100.0, None)
        };
        let scans = stream(DemandKind::SmartScans, 5.0, Some(1e6));
        let asked = request(vec![reads, scans]);
        let chosen = objectives(&[], &asked).unwrap();
        assert_eq!(chosen[0].to_string(), "random reads p99<10ms");
    }
}
