//! The request of `rigel fit`: one interval of a demand, what its streams must keep, and the range
//! of multiples.

use rigel_analyse::demand::stream_objective::StreamObjective;
use rigel_analyse::plan::SqlTerms;
use rigel_model::{
    Burst, DemandAt, DemandInterval, DemandKind, DemandStream, Finding, LogKind, MIB, Nanos,
    Objective, Ratio, SyncMethod,
};
use serde::{Deserialize, Serialize};

/// Largest request that is offered: the kernel splits larger ones, and so do databases.
const REQUEST_MAX: u32 = 1 << 20;

/// Direct writes to the log are rounded up to whole sectors of this many bytes, which every device
/// accepts.
const LOG_SECTOR: u32 = 4 << 10;

/// Memory for the outstanding I/Os of a stream.
const BUFFERS_MAX: u64 = 16 * MIB;

/// What one rank offers of a demand of several instances.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankDemand {
    /// Database and instance in words.
    pub database: String,
    /// Its interval, of the same time as those of the other ranks.
    pub interval: DemandInterval,
}

/// A stream of a demand as it is offered at 1 ×.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, schemars::JsonSchema)]
pub struct OfferedStream {
    /// The kind of I/O.
    pub kind: DemandKind,
    /// Operations per second.
    pub per_s: f64,
    /// Bytes of one operation.
    pub length: u32,
    /// Maximum number of outstanding operations: one for the log's only writer.
    pub in_flight_max: u32,
}

/// The options of `fit` and the demand that it offers. Kept in the journal's header, so that a
/// report needs the demand's own files no more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FitRequest {
    /// The demand as named by the user: a run's directory, or a file.
    pub named: String,
    /// Where it comes from: `AWR`, `iostat`, `PostgreSQL`.
    pub source: String,
    /// Database and instance in words, or the device.
    pub database: String,
    /// Size of a block in bytes.
    pub block: u32,
    /// True if the demand does not say the size of a block.
    pub is_block_assumed: bool,
    /// Which interval was asked for.
    pub at: DemandAt,
    /// The interval; of several instances, their sum.
    pub interval: DemandInterval,
    /// By rank: the demand that each offers. Empty if one process measures alone, and if every rank
    /// offers an equal part of `interval`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub of_ranks: Vec<RankDemand>,
    /// Number of intervals of the demand.
    pub intervals: usize,
    /// Share of the intervals with fewer I/O operations.
    pub below: f64,
    /// How much busier the busiest ten seconds of the demand are than their hour; `None` if its
    /// intervals are longer.
    #[serde(default)]
    pub burst: Option<Burst>,
    /// What the import of the demand found: a report that was cut, figures that contradict each
    /// other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<Finding>,
    /// What the streams must keep; at most one for each.
    pub objectives: Vec<StreamObjective>,
    /// The multiple that must be held.
    pub need: f64,
    /// Lowest multiple that may be tried.
    pub lowest: f64,
    /// Highest multiple that may be tried.
    pub highest: f64,
    /// Half-width of the answer's interval at which the search ends, as a fraction of the multiple.
    pub precision: Ratio,
    /// Measured time of each multiple.
    pub point_time: Nanos,
    /// True if the streams that write are offered too.
    pub writes: bool,
    /// How log writes are offered, to files of their own; `None` if they overwrite blocks of the volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogKind>,
    /// The sessions that offer the demand's operations to a database; `None` for files and devices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<FitSessions>,
}

/// The sessions that offer a demand's operations to a database.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FitSessions {
    /// Their work: that of the demand, on the tables of the target, without its updates if nothing
    /// is to be written.
    pub terms: SqlTerms,
    /// Their number. Operations that are due beyond it wait, and the wait counts.
    pub number: u32,
}

impl FitRequest {
    /// The streams that are offered, at 1 ×, in the order of the demand.
    pub fn offered(&self) -> Vec<OfferedStream> {
        if let Some(sessions) = self.sessions {
            let offered = self.operations().and_then(|asked| {
                Some(OfferedStream {
                    kind: DemandKind::Operations,
                    per_s: asked.per_s?,
                    length: sessions.terms.work.tables.block,
                    in_flight_max: sessions.number,
                })
            });
            return offered.into_iter().collect();
        }
        self.offered_in(&self.interval)
    }

    /// True if a stream is too rare to matter: it has less than a thousandth of the operations and of
    /// the bytes of the demand, so that it uses no part of the storage's time.
    pub fn is_rare(&self, kind: DemandKind) -> bool {
        const PART: f64 = 1e-3;
        let offered = self.offered();
        let share = |of: fn(&OfferedStream) -> f64| {
            let own = offered.iter().filter(|stream| stream.kind == kind).map(of);
            own.sum::<f64>() / offered.iter().map(of).sum::<f64>()
        };
        share(|stream| stream.per_s) < PART
            && share(|stream| stream.per_s * f64::from(stream.length)) < PART
    }

    /// True if log writes are among the streams that are offered.
    pub fn offers_log(&self) -> bool {
        let offered = self.offered();
        offered.iter().any(|one| one.kind == DemandKind::LogWrites)
    }

    /// The streams that one rank offers at 1 ×, of those that all together offer.
    pub fn offered_by(&self, demand: &RankDemand) -> Vec<OfferedStream> {
        let kinds: Vec<DemandKind> = self.offered().iter().map(|one| one.kind).collect();
        let mut own = self.offered_in(&demand.interval);
        own.retain(|one| kinds.contains(&one.kind));
        own
    }

    fn offered_in(&self, interval: &DemandInterval) -> Vec<OfferedStream> {
        interval
            .streams
            .iter()
            .filter(|stream| self.why_left_out(stream).is_none())
            .filter_map(|stream| self.offered_of(stream))
            .collect()
    }

    /// The operations that are offered to a database, as the demand has them: without its updates if
    /// those are left out. `None` for files and devices.
    pub fn operations(&self) -> Option<DemandStream> {
        let (sessions, asked) = (self.sessions?, self.interval.operations?);
        let is_whole = sessions.terms.work.updates == asked.work.updates;
        let (share, mean_us) = if is_whole {
            (1.0, asked.mean_us)
        } else {
            (1.0 - asked.work.updates.get(), asked.read_mean_us)
        };
        Some(DemandStream {
            kind: DemandKind::Operations,
            per_s: Some(asked.per_s * share),
            mean_bytes: None,
            mean_us,
            mean_range_us: None,
            waits: None,
            latencies: Vec::new(),
            rate_of: "operations that completed, by their sessions".into(),
            latency_of: "response time of an operation".into(),
        })
    }

    /// The stream of a kind as it was demanded.
    pub fn demanded(&self, kind: DemandKind) -> Option<DemandStream> {
        match kind {
            DemandKind::Operations => self.operations(),
            other => self.interval.stream(other).cloned(),
        }
    }

    /// The streams of the demand that are not offered, and why.
    pub fn left_out(&self) -> Vec<(DemandKind, &'static str)> {
        let streams = self.interval.streams.iter();
        let mut left_out: Vec<(DemandKind, &'static str)> = streams
            .filter_map(|stream| Some((stream.kind, self.why_left_out(stream)?)))
            .collect();
        if self.are_updates_left_out() {
            let why = "of those, the updates: --write offers them, to Rigel's own tables only";
            left_out.push((DemandKind::Operations, why));
        }
        left_out
    }

    /// True if operations are offered to a database without the updates among them.
    fn are_updates_left_out(&self) -> bool {
        let asked = self.interval.operations;
        self.sessions
            .zip(asked)
            .is_some_and(|(sessions, asked)| sessions.terms.work.updates != asked.work.updates)
    }

    /// The objective of a stream.
    pub fn objective(&self, kind: DemandKind) -> Option<Objective> {
        let given = self.objectives.iter().find(|one| one.kind == kind);
        given.map(|one| one.objective)
    }

    /// True if nothing that writes is offered.
    pub fn is_for_reads_only(&self) -> bool {
        if let Some(sessions) = self.sessions {
            return sessions.terms.work.updates == Ratio::ZERO;
        }
        self.offered().iter().all(|one| one.kind.is_read())
    }

    fn why_left_out(&self, stream: &DemandStream) -> Option<&'static str> {
        if self.sessions.is_some() {
            Some("the database makes them of its operations")
        } else if stream.per_s.is_none() {
            Some("the demand does not say how many they are")
        } else if !is_some_load(stream) {
            Some("there are none in this interval")
        } else if !self.writes && !stream.kind.is_read() {
            Some("--write or --destroy offers writes")
        } else if stream.mean_bytes.is_none() && !is_in_blocks(stream.kind) {
            Some("the demand does not say how large they are")
        } else {
            None
        }
    }

    fn offered_of(&self, stream: &DemandStream) -> Option<OfferedStream> {
        let per_s = stream.per_s?;
        let bytes = match stream.kind {
            kind if is_in_blocks(kind) => stream.mean_bytes.unwrap_or(f64::from(self.block)),
            _ => stream.mean_bytes?,
        };
        let is_log = stream.kind == DemandKind::LogWrites;
        let unit = match self.log.filter(|_| is_log) {
            Some(log) if log.method != SyncMethod::Direct => 1,
            _ if is_log => LOG_SECTOR,
            _ => self.block,
        };
        // Larger requests are offered as several: bytes per second stay the same.
        let parts = (bytes / f64::from(REQUEST_MAX)).ceil().max(1.0);
        let units = bytes / parts / f64::from(unit);
        let units = if is_log { units.ceil() } else { units.round() };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most REQUEST_MAX / unit, which is an integer of 32 bits"
        )]
        let length = (units.max(1.0) as u32)
            .saturating_mul(unit)
            .min(REQUEST_MAX.max(unit));
        let slots = (BUFFERS_MAX / u64::from(length)).clamp(16, 256);
        Some(OfferedStream {
            kind: stream.kind,
            per_s: per_s * parts,
            length,
            in_flight_max: if is_log {
                1
            } else {
                u32::try_from(slots).unwrap_or(256)
            },
        })
    }
}

/// True if what does not say its size is one block each: a report of Oracle counts such reads so, and a csv file
/// has no sizes.
fn is_in_blocks(kind: DemandKind) -> bool {
    matches!(
        kind,
        DemandKind::RandomReads | DemandKind::PageAndDirectWrites
    )
}

/// True if there is anything to offer of a stream.
fn is_some_load(stream: &DemandStream) -> bool {
    stream.per_s.is_some_and(|per_s| per_s > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::examples::fit as request;
    use rigel_model::examples::stream;

    #[test]
    fn a_log_with_a_file_of_its_own_has_the_bytes_of_the_demand_unless_they_bypass_the_cache() {
        let mut asked = request(vec![stream(DemandKind::LogWrites, 5.0, Some(9144.4))]);
        asked.writes = true;
        let mut length = |log: Option<LogKind>| {
            asked.log = log;
            asked.offered()[0].length
        };
        assert_eq!(length(None), 12_288, "blocks of the volume");
        assert_eq!(length(Some(LogKind::GROW)), 9145);
        assert_eq!(length(Some(LogKind::ORACLE)), 12_288);
    }

    #[test]
    fn sizes_are_whole_blocks_and_the_log_has_one_writer() {
        let mut asked = request(vec![
            stream(DemandKind::RandomReads, 100.0, None),
            stream(DemandKind::MultiblockReads, 10.0, Some(791.0 * 1024.0)),
            stream(DemandKind::SmartScans, 2.0, Some(2.5 * 1024.0 * 1024.0)),
            stream(DemandKind::DirectReads, 3.0, None),
            stream(DemandKind::LogWrites, 5.0, Some(9144.0)),
        ]);
        asked.writes = true;
        let offered: Vec<(DemandKind, f64, u32, u32)> = asked
            .offered()
            .into_iter()
            .map(|one| (one.kind, one.per_s, one.length, one.in_flight_max))
            .collect();
        assert_eq!(
            offered,
            [
                (DemandKind::RandomReads, 100.0, 8192, 256),
                (DemandKind::MultiblockReads, 10.0, 99 * 8192, 20),
                // Three requests in place of one that is too large: 2.5 MiB / 3 is 107 blocks.
                (DemandKind::SmartScans, 6.0, 107 * 8192, 19),
                (DemandKind::LogWrites, 5.0, 12288, 1),
            ]
        );
        assert_eq!(
            asked.left_out(),
            [(
                DemandKind::DirectReads,
                "the demand does not say how large they are"
            )]
        );
        assert!(!asked.is_for_reads_only());
        asked.writes = false;
        assert!(asked.is_for_reads_only());
        assert_eq!(asked.offered().len(), 3);
    }

    #[test]
    fn random_reads_have_their_mean_size_where_it_is_known() {
        let length = |bytes: Option<f64>| {
            let asked = request(vec![stream(DemandKind::RandomReads, 100.0, bytes)]);
            asked.offered()[0].length
        };
        // MariaDB reads pages of 16 KiB, whatever block was assumed.
        assert_eq!(length(Some(16_384.0)), 16_384);
        assert_eq!(length(Some(8192.0)), 8192);
        // Never less than a block: the demand rounds to whole ones.
        assert_eq!(length(Some(4096.0)), 8192);
        assert_eq!(length(None), 8192);
    }

    #[test]
    fn operations_without_their_updates_are_fewer_and_have_their_own_mean() {
        use rigel_analyse::plan::SqlStop;
        use rigel_model::{DemandOperations, SqlWork, Tables, WarmUp};
        let tables = Tables {
            schemas: 1,
            scale: 10_000,
            scan_blocks: 1,
            block: 16_384,
        };
        let work = SqlWork {
            updates: Ratio::of(25, 100),
            ..SqlWork::reads(tables)
        };
        let mut asked = request(vec![stream(DemandKind::RandomReads, 6400.0, None)]);
        assert!(asked.operations().is_none());
        asked.interval.operations = Some(DemandOperations {
            per_s: 100.0,
            mean_us: Some(900.0),
            read_mean_us: Some(600.0),
            sessions: 4,
            work,
        });
        let of = |work| {
            Some(FitSessions {
                terms: SqlTerms {
                    work,
                    stop: SqlStop::Precise,
                    warm_up: WarmUp::NONE,
                    statement_timeout: None,
                },
                number: 16,
            })
        };
        asked.sessions = of(work);
        let whole = asked.demanded(DemandKind::Operations).unwrap();
        assert_eq!((whole.per_s, whole.mean_us), (Some(100.0), Some(900.0)));
        assert!(!asked.is_for_reads_only());
        asked.sessions = of(SqlWork::reads(tables));
        let reads = asked.demanded(DemandKind::Operations).unwrap();
        assert_eq!((reads.per_s, reads.mean_us), (Some(75.0), Some(600.0)));
        assert!(asked.is_for_reads_only());
        let offered: Vec<(DemandKind, f64, u32, u32)> = asked
            .offered()
            .into_iter()
            .map(|one| (one.kind, one.per_s, one.length, one.in_flight_max))
            .collect();
        assert_eq!(offered, [(DemandKind::Operations, 75.0, 16_384, 16)]);
        let left_out: Vec<DemandKind> = asked.left_out().iter().map(|one| one.0).collect();
        assert_eq!(left_out, [DemandKind::RandomReads, DemandKind::Operations]);
    }

    #[test]
    fn an_objective_names_its_stream() {
        let read = |text: &str| text.parse::<StreamObjective>();
        let found = read("log writes p99<5ms").unwrap();
        assert_eq!(found.kind, DemandKind::LogWrites);
        assert_eq!(found.to_string(), "log writes p99<5ms");
        assert_eq!(read("log-writes:p99<5ms").unwrap(), found);
        assert_eq!(
            read("multi-block reads mean<20ms").unwrap().kind,
            DemandKind::MultiblockReads
        );
        for wrong in ["p99<5ms", "log p99<5ms", "log writes", "log writes rate>5"] {
            let said = read(wrong).unwrap_err().to_string();
            assert!(
                said.contains(wrong) && said.contains("random reads"),
                "{said}"
            );
        }
    }

    #[test]
    fn an_interval_is_named_by_rank_or_time() {
        for text in ["peak", "p95", "2026-04-23T12:59:00+00:00"] {
            let at: DemandAt = text.parse().unwrap();
            assert_eq!(at.to_string().parse::<DemandAt>().unwrap(), at);
        }
        assert!("noon".parse::<DemandAt>().is_err());
    }
}
