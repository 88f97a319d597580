//! An expectation of storage: a figure, its limit, and the load at which it holds.
//!
//! `p99<2ms@3000/s` is an objective and a load. Limits are those of [`Objective`], which reads them.

use super::{Bytes, Coordinates, Error, Kind, LogKind, MIB, Measure, Nanos, Objective, Ratio};
use crate::text::letters_changed;
use crate::units::{per_second, whole_per_second};
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What an expectation is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedOf {
    /// Random reads: their number per second, or their response times.
    Reads,
    /// Megabytes (10^6 bytes) per second of large random reads.
    Throughput,
    /// Log writes: their response times, or the number of commits per second.
    Log,
    /// The random reads of a load that reads and writes.
    MixedReads,
    /// The random writes of a load that writes.
    MixedWrites,
}

/// The load at which an expectation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedLoad {
    /// This number of outstanding I/Os.
    Depth(u32),
    /// This number of I/Os per second, due at random times.
    Rate(u64),
    /// Random reads and writes.
    Mix {
        /// Outstanding I/Os.
        depth: u32,
        /// Writes among 100 of them.
        write_percent: u32,
    },
    /// Log writes to a file of their own.
    Log {
        /// The state of the file.
        log: LogKind,
        /// Bytes of a log write.
        bytes: u32,
        /// Sessions that commit together.
        writers: u32,
    },
}

impl ExpectedLoad {
    /// Bytes of a log write where nothing else is said: those of a single commit.
    pub const LOG_BYTES: u32 = 4096;

    /// Commits where nothing else is said: most databases reuse the files of their logs.
    pub const COMMITS: Self = Self::Log {
        log: LogKind::REUSED,
        bytes: Self::LOG_BYTES,
        writers: 1,
    };

    /// The size as that of a log write, if it can be one: a segment holds several.
    pub fn log_bytes(Bytes(bytes): Bytes) -> Option<u32> {
        let is_one = (1..=16 * MIB).contains(&bytes);
        u32::try_from(bytes).ok().filter(|_| is_one)
    }
}

/// A condition that storage is expected to keep.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Expectation {
    /// What it is about.
    pub of: ExpectedOf,
    /// The figure and its limit.
    pub limit: Objective,
    /// The load, if one is given.
    pub load: Option<ExpectedLoad>,
    /// So far from the limit, as a fraction of it, either answer may be given.
    pub margin: Ratio,
}

/// The greatest number of outstanding I/Os.
const DEPTH_MAX: u32 = 4096;

/// The greatest number of sessions that commit.
const WRITERS_MAX: u32 = 1024;

/// The greatest margin: beyond it nothing would be expected.
const MARGIN_MAX: f64 = 0.5;

/// How expectations are written.
const USAGE: &str = "write it as 'iops>=3000', 'mbps>=125', 'mibps>=125', 'p99<2ms@3000/s', 'p50<300us@depth:1', \
                     'mean<1ms@3000/s', 'log p99<10ms', 'log p99<10ms@grow:2300', \
                     'commits>=2000/s@4', 'writes>=5000@mix:4,30%', 'write p99<2ms@mix:4,30%' or \
                     'no stall>1s', in quotes";

/// The names that can be given, besides p50, p99 and so on.
const NAMES: [&str; 11] = [
    "iops", "mbps", "mibps", "commits", "reads", "writes", "p50", "p99", "p99.9", "mean", "max",
];

impl Expectation {
    /// Most of them that one run has: each has its part of the error.
    pub const MOST: usize = 100;

    /// How an expectation begins that is the figures of an earlier run.
    pub const NOT_WORSE: &str = "not worse than ";

    /// True if this argument of a command line is meant to be an expectation and not a path: it has a
    /// sign of comparison, is the name of a figure, or names an earlier run.
    pub fn is_meant(text: &str) -> bool {
        text.contains(['<', '>', '≤', '≥'])
            || NAMES.contains(&text)
            || text.trim_start().starts_with(Self::NOT_WORSE)
    }

    /// True if it is about the writes of a log to a file of its own.
    pub fn is_of_own_file(&self) -> bool {
        matches!(self.load, Some(ExpectedLoad::Log { .. }))
    }

    /// True if it is measured by writes, to the target or to files of a log.
    pub fn writes(&self) -> bool {
        self.of == ExpectedOf::Log || self.writes_to_target()
    }

    /// True if it needs writes to the target itself.
    pub fn writes_to_target(&self) -> bool {
        let is_mixed = matches!(self.of, ExpectedOf::MixedReads | ExpectedOf::MixedWrites);
        is_mixed || (self.of == ExpectedOf::Log && !self.is_of_own_file())
    }

    /// The kind of operations that it is about, of those that its load has; `None` if of all.
    pub fn kind(&self) -> Option<Kind> {
        match self.of {
            ExpectedOf::MixedReads => Some(Kind::Read),
            ExpectedOf::MixedWrites => Some(Kind::Write),
            ExpectedOf::Reads | ExpectedOf::Throughput | ExpectedOf::Log => None,
        }
    }

    /// True if a point of a run has the load that this is about. A rate without a load is about every
    /// load: storage that gives it at one of them gives it. Figures of points are of reads and writes
    /// together, so that none has a mix.
    pub fn is_of(&self, at: Coordinates) -> bool {
        match (self.of, self.load) {
            (
                ExpectedOf::Log,
                Some(ExpectedLoad::Log {
                    log,
                    bytes,
                    writers,
                }),
            ) => {
                let own = Coordinates::Log {
                    bytes,
                    log: Some(log),
                    writers,
                };
                at == own
            }
            (ExpectedOf::Log, _) => {
                matches!(at, Coordinates::Log { log: None, .. })
            }
            (ExpectedOf::MixedReads | ExpectedOf::MixedWrites, _) => false,
            (ExpectedOf::Throughput, load) => {
                let depth = match at {
                    Coordinates::Large { depth } => Some(depth),
                    other => other.large_alone(),
                };
                depth
                    .is_some_and(|depth| load.is_none_or(|load| load == ExpectedLoad::Depth(depth)))
            }
            (ExpectedOf::Reads, Some(ExpectedLoad::Rate(rate))) => at.rate() == Some(rate),
            (ExpectedOf::Reads, load) => {
                let depth = at.depth().or(at.small_alone());
                let is_longest = matches!(self.limit.0, Measure::Max(_));
                match (load, depth) {
                    (Some(load), Some(depth)) => load == ExpectedLoad::Depth(depth),
                    (Some(_), None) => false,
                    (None, depth) => depth.is_some() || (is_longest && at.rate().is_some()),
                }
            }
        }
    }

    /// True if one of several loads is enough.
    pub const fn is_at_best(&self) -> bool {
        self.load.is_none() && matches!(self.limit.0, Measure::Rate(_))
    }

    /// A limit of throughput in MiB/s, where that is the shorter number: volumes are sold with 125 MiB/s,
    /// which are 131.072 MB/s.
    pub fn mib_per_s(&self) -> Option<f64> {
        // A whole byte per second is known at most.
        const DIGITS: f64 = 1e6;
        let (ExpectedOf::Throughput, Measure::Rate(mb)) = (self.of, self.limit.0) else {
            return None;
        };
        let mib = (mb * Self::MIB_OF_MB * DIGITS).round() / DIGITS;
        let digits = |number: f64| number.to_string().len();
        (digits(mib) < digits(mb)).then_some(mib)
    }

    /// MiB in a MB.
    pub const MIB_OF_MB: f64 = 1e6 / MIB as f64;

    /// The limit as a time; `None` if it is a rate.
    pub fn time(&self) -> Option<Nanos> {
        match self.limit.0 {
            Measure::Quantile(_, time) | Measure::Mean(time) | Measure::Max(time) => Some(time),
            Measure::Rate(_) => None,
        }
    }

    /// Refuses a load that the figure does not have, and a response time without one.
    fn with_possible_load(self, text: &str) -> Result<Self, Error> {
        let wrong = |why: &str, hint: &str| Err(usage!("'{text}': {why}", hint));
        let is_mixed = self.kind().is_some();
        let has_mix = matches!(self.load, Some(ExpectedLoad::Mix { .. }));
        match (self.of, self.limit.0, self.load) {
            _ if is_mixed && !has_mix => wrong(
                "a load that reads and writes is to be given",
                "add @mix:4,30% for 4 outstanding, of which 30 % are writes",
            ),
            _ if has_mix && !is_mixed => wrong(
                "of a mix, reads or writes can be expected",
                "such as 'reads>=5000@mix:4,30%' or 'write p99<2ms@mix:4,30%'",
            ),
            (
                ExpectedOf::MixedReads,
                _,
                Some(ExpectedLoad::Mix {
                    write_percent: 100, ..
                }),
            ) => wrong("there are no reads in it", "give a part below 100%"),
            (_, Measure::Max(_), Some(ExpectedLoad::Mix { .. })) => wrong(
                "of a mix, rates and response times can be expected",
                "such as 'write p99.9<20ms@mix:4,30%'",
            ),
            (ExpectedOf::Log, _, Some(ExpectedLoad::Depth(_) | ExpectedLoad::Rate(_))) => wrong(
                "log writes have no such load",
                "write it without @, such as 'log p99<10ms', or with the life cycle of the log's \
                 file, and its writers if it has several: @grow, @reserved, @sized, @reused or \
                 @reused,4",
            ),
            (ExpectedOf::Reads | ExpectedOf::Throughput, _, Some(ExpectedLoad::Log { .. })) => {
                wrong(
                    "only log writes have a life cycle",
                    "write 'log' before it, such as 'log p99<10ms@grow'",
                )
            }
            (ExpectedOf::Log, Measure::Rate(_), None) | (ExpectedOf::Log, Measure::Max(_), _) => {
                wrong(
                    "of log writes, response times and commits can be expected",
                    "such as 'log p99<10ms', 'log mean<2ms' or 'commits>=2000/s'",
                )
            }
            (_, Measure::Rate(_), Some(ExpectedLoad::Rate(_))) => wrong(
                "at an offered rate no more is done than is offered",
                "give a depth, such as @depth:32, or none",
            ),
            (ExpectedOf::Reads, Measure::Quantile(..) | Measure::Mean(_), None) => wrong(
                "response times depend on the load, and none is given",
                "add @3000/s for 3,000 I/Os per second at random times, or @depth:1 for one at a \
                 time",
            ),
            _ => Ok(self),
        }
    }
}

impl fmt::Display for Expectation {
    /// The form that [`Expectation::from_str`] reads.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.of, self.limit.0) {
            (ExpectedOf::Throughput, Measure::Rate(rate)) => match self.mib_per_s() {
                Some(mib) => write!(f, "mibps>={mib}")?,
                None => write!(f, "mbps>={rate}")?,
            },
            (ExpectedOf::Log, Measure::Rate(rate)) => write!(f, "commits>={rate}/s")?,
            (ExpectedOf::MixedReads, Measure::Rate(rate)) => write!(f, "reads>={rate}")?,
            (ExpectedOf::MixedWrites, Measure::Rate(rate)) => write!(f, "writes>={rate}")?,
            (_, Measure::Rate(rate)) => write!(f, "iops>={rate}")?,
            (_, Measure::Max(time)) => write!(f, "no stall>{}", time.exact())?,
            (ExpectedOf::Log, _) => write!(f, "log {}", self.limit)?,
            (ExpectedOf::MixedReads, _) => write!(f, "read {}", self.limit)?,
            (ExpectedOf::MixedWrites, _) => write!(f, "write {}", self.limit)?,
            _ => write!(f, "{}", self.limit)?,
        }
        if self.margin != Ratio::ZERO {
            write!(f, "±{}", self.margin.exact())?;
        }
        match self.load {
            None => Ok(()),
            Some(ExpectedLoad::Depth(depth)) => write!(f, "@depth:{depth}"),
            Some(ExpectedLoad::Rate(rate)) => write!(f, "@{rate}/s"),
            Some(ExpectedLoad::Mix {
                depth,
                write_percent,
            }) => write!(f, "@mix:{depth},{write_percent}%"),
            Some(ExpectedLoad::Log {
                log,
                bytes,
                writers,
            }) => {
                write!(f, "@{log}")?;
                if bytes != ExpectedLoad::LOG_BYTES {
                    write!(f, ":{bytes}")?;
                }
                if writers != 1 {
                    write!(f, ",{writers}")?;
                }
                Ok(())
            }
        }
    }
}

impl From<Expectation> for String {
    fn from(expectation: Expectation) -> Self {
        expectation.to_string()
    }
}

impl TryFrom<String> for Expectation {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}

impl FromStr for Expectation {
    type Err = Error;

    /// Parses `p99<2ms±5%@3000/s` and the like; `<=`, `≤` and `<` mean the same, and so do `>=`, `≥` and
    /// `>`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| usage!("'{text}' {why}", USAGE);
        let plain = text.trim().replace('≤', "<=").replace('≥', ">=");
        let plain = plain.replace("+-", "±").replace("+/-", "±");
        let (head, load) = match plain.split_once('@') {
            None => (plain.as_str(), None),
            Some((head, load)) => (head, Some(load_of(load.trim(), text)?)),
        };
        let (head, margin) = match head.split_once('±') {
            None => (head, Ratio::ZERO),
            Some((head, margin)) => (head, margin_of(margin.trim(), text)?),
        };
        let head = head.trim();
        let words = head.split_whitespace().collect::<Vec<_>>();
        let (of, head) = match words[..] {
            [first @ ("log" | "read" | "write"), ..] => {
                let of = match first {
                    "log" => ExpectedOf::Log,
                    "read" => ExpectedOf::MixedReads,
                    _ => ExpectedOf::MixedWrites,
                };
                (of, head[first.len()..].trim_start().to_string())
            }
            ["no", ..] => {
                let rest = words[1..].concat();
                let limit = rest.strip_prefix("stall>");
                let limit = limit.ok_or_else(|| wrong("is not the absence of stalls"))?;
                (ExpectedOf::Reads, format!("max<{limit}"))
            }
            _ => (ExpectedOf::Reads, head.to_string()),
        };
        let at = head.find(['<', '>']).ok_or_else(|| {
            wrong("has no limit; a shell takes < and > for itself where there are no quotes")
        })?;
        let (name, limit) = head.split_at(at);
        let name = name.trim();
        check_name(name, text)?;
        let is_rate = matches!(
            name,
            "iops" | "mbps" | "mibps" | "commits" | "reads" | "writes"
        );
        if limit.starts_with('>') != is_rate {
            return Err(wrong(if is_rate {
                "is an upper limit of a rate: at least so much can be expected, with >="
            } else {
                "is a lower limit of a time: at most so much can be expected, with <"
            }));
        }
        if !is_rate
            && limit
                .trim_end()
                .ends_with(|last: char| last.is_ascii_digit())
        {
            return Err(wrong("has a time without its unit, such as ms or us"));
        }
        let objective = if is_rate {
            let limit = limit.trim_end().trim_end_matches("/s");
            match per_second(limit.trim_start_matches(['>', '='])) {
                Some(rate) => format!("rate>={rate}"),
                None => format!("rate{limit}"),
            }
        } else {
            format!("{name}{limit}")
        };
        let limit: Objective = objective
            .parse()
            .map_err(|_| wrong("has no limit that can be read"))?;
        let (of, limit) = match (name, limit.0) {
            ("mibps", Measure::Rate(rate)) => (
                ExpectedOf::Throughput,
                Objective(Measure::Rate(rate * MIB as f64 / 1e6)),
            ),
            ("mbps", _) => (ExpectedOf::Throughput, limit),
            ("commits", _) => (ExpectedOf::Log, limit),
            ("reads", _) => (ExpectedOf::MixedReads, limit),
            ("writes", _) => (ExpectedOf::MixedWrites, limit),
            _ => (of, limit),
        };
        let load = load.or((name == "commits").then_some(ExpectedLoad::COMMITS));
        let expectation = Self {
            of,
            limit,
            load,
            margin,
        };
        expectation.with_possible_load(text)
    }
}

/// Refuses the name of no figure, with the nearest that is one.
fn check_name(name: &str, text: &str) -> Result<(), Error> {
    let percent = name.strip_prefix('p').map(str::parse::<f64>);
    if NAMES.contains(&name) || matches!(percent, Some(Ok(_))) {
        return Ok(());
    }
    let nearest = NAMES
        .iter()
        .map(|known| (letters_changed(name, known), known))
        .min();
    // With half of its letters changed it is another word.
    let nearest = nearest
        .filter(|(changed, _)| 2 * changed < name.chars().count())
        .map_or_else(String::new, |(_, known)| {
            format!("the nearest is {known}; ")
        });
    Err(usage!(
        "'{text}': '{name}' is not a figure that can be expected",
        "{nearest}{USAGE}"
    ))
}

fn margin_of(margin: &str, text: &str) -> Result<Ratio, Error> {
    let share = margin.parse::<Ratio>().ok();
    share
        .filter(|share| margin.ends_with('%') && share.get() > 0.0 && share.get() <= MARGIN_MAX)
        .ok_or_else(|| {
            usage!(
                "'{text}': '{margin}' is not a margin",
                "write it as ±5% or +-5%, behind the limit; at most 50%"
            )
        })
}

/// Log writes as they stand behind the @: `grow`, `grow:2300`, `grow:2300,4`, `4`; `None` if these are none.
fn log_load_of(load: &str, text: &str) -> Result<Option<ExpectedLoad>, Error> {
    let (file, writers) = match load.rsplit_once(',') {
        Some((file, writers)) => (file.trim(), writers.trim()),
        None if load.starts_with(|first: char| first.is_ascii_digit()) => ("reused", load),
        None => (load, "1"),
    };
    let (state, size) = file.split_once(':').unwrap_or((file, ""));
    let Ok(log) = state.parse::<LogKind>() else {
        return Ok(None);
    };
    let bytes = match size {
        "" => Some(ExpectedLoad::LOG_BYTES),
        size => size.parse().ok().and_then(ExpectedLoad::log_bytes),
    };
    let bytes = bytes.ok_or_else(|| {
        usage!(
            "'{text}': '{size}' is not the size of a log write",
            "give bytes, up to 16MiB, such as @{state}:2300 or @{state}:8KiB"
        )
    })?;
    let writers = writers.parse().ok();
    let writers = writers.filter(|writers| (1..=WRITERS_MAX).contains(writers));
    let Some(writers) = writers else {
        return Ok(None);
    };
    log.check(writers, bytes)?;
    Ok(Some(ExpectedLoad::Log {
        log,
        bytes,
        writers,
    }))
}

/// A mix as it stands behind `mix:`: `4,30%`.
fn mix_of(mix: &str) -> Option<ExpectedLoad> {
    let (depth, writes) = mix.split_once(',')?;
    let depth = depth.trim().parse::<u32>().ok()?;
    let percent = writes.trim().strip_suffix('%')?.trim_end();
    let write_percent = percent.parse::<u32>().ok()?;
    let is_possible = (1..=DEPTH_MAX).contains(&depth) && (1..=100).contains(&write_percent);
    is_possible.then_some(ExpectedLoad::Mix {
        depth,
        write_percent,
    })
}

fn load_of(load: &str, text: &str) -> Result<ExpectedLoad, Error> {
    if let Some(mix) = load.strip_prefix("mix:") {
        return mix_of(mix).ok_or_else(|| {
            usage!(
                "'{text}': '{mix}' is not a mix",
                "write @mix:4,30% for 4 outstanding, of which 30 % are writes: in whole percent, 1% to 100%"
            )
        });
    }
    if let Some(log) = log_load_of(load, text)? {
        return Ok(log);
    }
    let depth = load.strip_prefix("depth:").map(|depth| {
        let depth = depth.parse::<u32>().ok();
        depth.filter(|depth| (1..=DEPTH_MAX).contains(depth))
    });
    let rate = load.strip_suffix("/s");
    let rate = rate.map(|rate| whole_per_second(&rate.replace('_', "")));
    match (depth, rate) {
        (Some(Some(depth)), _) => Ok(ExpectedLoad::Depth(depth)),
        (_, Some(Some(rate))) => Ok(ExpectedLoad::Rate(rate)),
        _ => Err(usage!(
            "'{text}': '@{load}' is not a load",
            "write it as @depth:8, up to 4096, or as @3000/s, in whole I/Os per second; log writes \
             have @grow, @reserved, @sized or @reused, @grow:2300 with their bytes, or \
             @reused,4 with up to 1024 writers"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn expectations_read_as_people_write_them() {
        for (text, shown) in [
            ("iops>=3000", "iops>=3000"),
            ("iops ≥ 3_000 @ depth:8", "iops>=3000@depth:8"),
            ("mbps>125", "mbps>=125"),
            ("mibps>=125", "mibps>=125"),
            ("mibps>=118.75±5%", "mibps>=118.75±5%"),
            ("mbps>=118.75", "mbps>=118.75"),
            ("mibps>=1000", "mibps>=1000"),
            ("mbps>=1000", "mbps>=1000"),
            ("p99<2ms@3000/s", "p99<2ms@3000/s"),
            ("p99<2ms@1.5k/s", "p99<2ms@1500/s"),
            ("iops>=100k", "iops>=100000"),
            ("p99.9<=2ms±5%@3000/s", "p99.9<2ms±5%@3000/s"),
            ("p50 < 300us +-2.5% @depth:1", "p50<300us±2.5%@depth:1"),
            ("mean<1ms@3000/s", "mean<1ms@3000/s"),
            ("no stall > 1s", "no stall>1s"),
            ("no stall>500ms@depth:1", "no stall>500ms@depth:1"),
            ("max<1s", "no stall>1s"),
            ("log p99<10ms", "log p99<10ms"),
            ("log p99 < 10ms @ sized:2300", "log p99<10ms@sized:2300"),
            ("log mean<2ms@reused:4KiB", "log mean<2ms@reused"),
            ("log p99<2ms@grow:2300, 4", "log p99<2ms@grow:2300,4"),
            ("commits >= 2_000/s", "commits>=2000/s@reused"),
            ("commits>=2000@4", "commits>=2000/s@reused,4"),
            ("commits>=2000/s@grow,16", "commits>=2000/s@grow,16"),
            ("writes >= 10k @mix: 4, 50 %", "writes>=10000@mix:4,50%"),
            ("reads>=500/s±5%@mix:8,30%", "reads>=500±5%@mix:8,30%"),
            ("write p99<2ms@mix:1,100%", "write p99<2ms@mix:1,100%"),
            ("read mean<250us@mix:1,50%", "read mean<250us@mix:1,50%"),
        ] {
            let read = text.parse::<Expectation>();
            assert_eq!(read.unwrap().to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_cannot_be_expected_is_refused_with_its_reason() {
        for (text, why) in [
            ("p99<2ms", "none is given"),
            ("p99<2@depth:1", "without its unit"),
            ("iop>=3000", "the nearest is iops"),
            ("pp9<2ms@depth:1", "the nearest is p99"),
            ("iops<3000", "with >="),
            ("p99>2ms@depth:1", "with <"),
            ("iops", "quotes"),
            ("iops>=-1", "no limit that can be read"),
            ("p100<2ms@depth:1", "no limit that can be read"),
            ("iops>=3000@3000/s", "than is offered"),
            ("p99<2ms@3000", "is not a load"),
            ("p99<2ms@depth:0", "is not a load"),
            ("p99<2ms@0/s", "is not a load"),
            ("p99<2ms±5@depth:1", "is not a margin"),
            ("p99<2ms±60%@depth:1", "is not a margin"),
            ("log p99<2ms@depth:1", "have no such load"),
            ("log iops>=100", "response times and commits"),
            ("commits>=100@depth:1", "have no such load"),
            ("commits>=100@reused,0", "is not a load"),
            ("commits<100", "with >="),
            ("log p99<2ms@grow:0", "is not the size of a log write"),
            ("log p99<2ms@grow:17MiB", "is not the size of a log write"),
            ("p99<2ms@grow", "only log writes have a life cycle"),
            ("no stalls", "stalls"),
            ("writes>=100", "a load that reads and writes"),
            ("write p99<2ms@depth:4", "a load that reads and writes"),
            ("iops>=100@mix:4,50%", "reads or writes can be expected"),
            ("reads>=100@mix:4,100%", "there are no reads in it"),
            ("write max<2s@mix:4,50%", "rates and response times"),
            ("writes>=100@mix:4", "is not a mix"),
            ("writes>=100@mix:4,0%", "is not a mix"),
            ("writes>=100@mix:0,50%", "is not a mix"),
            ("writes>=100@mix:4,101%", "is not a mix"),
        ] {
            let refused = text.parse::<Expectation>().unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "(log |no |read |write |reads|writes|iops|mbps|mibps|commits|p99|[<>=@±%]|[0-9]{1,3}|ms|depth:|mix:|%|grow|sized:|,|/s|\\PC){0,8}") {
            if let Ok(expectation) = text.parse::<Expectation>() {
                prop_assert_eq!(expectation.to_string().parse::<Expectation>().unwrap(), expectation);
            }
        }
    }
}
