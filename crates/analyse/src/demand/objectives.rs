//! What the streams of a demand must keep where nobody says it: one choice for every command that
//! judges storage by a demand.
//!
//! Input: an interval of a demand. Output: an objective for each stream. A stream whose latency the
//! database saw must be as fast as it was; other reads, log writes and operations must keep the usual
//! limits; page writes must only be served.

use crate::request::{FitRequest, StreamObjective};
use rigel_model::{DemandInterval, DemandKind, DemandStream, Error, Measure, Nanos, Objective};

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
            return Err(Error::usage(
                format!("--slo '{one}' is for a stream that is not offered"),
                format!("offered: {}", words.join(", ")),
            ));
        }
        if given[..index].iter().any(|before| before.kind == one.kind) {
            return Err(Error::usage(
                format!(
                    "--slo '{one}' is the second objective of {}",
                    one.kind.words()
                ),
                "give one for each stream",
            ));
        }
    }
    let of = |kind: &DemandKind| {
        let own = given.iter().find(|one| one.kind == *kind).copied();
        own.or_else(|| assumed(&request.interval, &request.demanded(*kind)?))
    };
    Ok(offered.iter().filter_map(of).collect())
}

/// The objective of a stream of this interval where none is given; `None` if it must only be served.
pub(super) fn assumed(interval: &DemandInterval, stream: &DemandStream) -> Option<StreamObjective> {
    const READS: Nanos = Nanos::from_millis(10);
    const LOG_WRITES: Nanos = Nanos::from_millis(20);
    const OPERATIONS: Nanos = Nanos::from_millis(20);
    // What Exadata's cells answer from flash over RDMA is no bar for other storage.
    let is_comparable = interval.stream(DemandKind::SmartScans).is_none();
    let measure = match stream.mean_us.filter(|_| is_comparable) {
        Some(us) => Measure::Mean(Nanos::from_micros_f64(us.round().max(1.0))),
        None if stream.kind.is_read() => Measure::Quantile(0.99, READS),
        None if stream.kind == DemandKind::LogWrites => Measure::Quantile(0.99, LOG_WRITES),
        None if stream.kind == DemandKind::Operations => Measure::Quantile(0.99, OPERATIONS),
        None => return None,
    };
    Some(StreamObjective {
        kind: stream.kind,
        objective: Objective(measure),
        is_assumed: true,
    })
}

/// Why an objective was assumed.
pub fn why_assumed(objective: Objective) -> &'static str {
    match objective.0 {
        Measure::Mean(_) => "as good as the database saw it",
        _ => "usual, because the demand has no latency that is a bar for this storage",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::fit as request;
    use rigel_model::examples::stream;

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
