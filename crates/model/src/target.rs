//! Where operations go: files and devices, a scratch file, a database, or a model of a device.

use super::{Bytes, Error, GIB, Nanos, Ratio, SqlTarget, in_line, shell_path, shell_word};
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// A target as the user named it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Target {
    /// Files and block devices that together form one volume.
    Paths {
        /// The members, in the order of the volume.
        members: Vec<PathBuf>,
        /// How the members form the volume.
        layout: Layout,
    },
    /// A scratch file that is created in this directory, filled, and removed at the end.
    Scratch {
        /// A directory on the storage under test.
        directory: PathBuf,
        /// Size of the file; `None` if chosen by the free space.
        bytes: Option<Bytes>,
        /// True if the file is kept at the end.
        keep: bool,
    },
    /// A queueing model in virtual time.
    Sim(SimSpec),
    /// Tables of a database, accessed through SQL.
    Sql(SqlTarget),
    /// No storage: every operation completes at once. Measures the tool itself.
    Null {
        /// Simulated size.
        bytes: Bytes,
    },
}

/// How several files form one volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One after the other.
    Concat,
    /// In turn, `stripe` bytes each (RAID 0).
    Stripe {
        /// Bytes on one member before the next one.
        stripe: Bytes,
    },
}

/// A storage device as a queueing model: `servers` serve one queue in parallel, first come first
/// served.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimSpec {
    /// Operations served at the same time.
    pub servers: u32,
    /// Mean service time of an operation, without the transfer of its bytes.
    pub service: Nanos,
    /// How service times vary.
    pub distribution: Distribution,
    /// Bytes per second that one server transfers, in addition to `service`; `None` if the
    /// transfer takes no time.
    pub bandwidth: Option<Bytes>,
    /// Regular stalls.
    pub stall: Option<Stall>,
    /// Fraction of operations that fail with an I/O error.
    pub errors: Ratio,
    /// A cap on operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Limit>,
    /// A cap on bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub byte_limit: Option<Limit>,
    /// A fraction of slow operations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow: Option<Slow>,
    /// A cache in the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<Cache>,
    /// A speed that varies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<SpeedLevel>,
    /// Simulated size.
    pub bytes: Bytes,
}

/// A cap like that of cloud volumes, a token bucket: an operation takes a token, or one for each of its
/// bytes, before it is served, or waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limit {
    /// Tokens added per second; at least 1.
    pub rate: u64,
    /// Initial and maximum number of tokens: the burst credit; at least 1.
    pub burst: u64,
}

/// Operations with a different, constant service time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Slow {
    /// Service time of such an operation, without the transfer of its bytes.
    pub service: Nanos,
    /// Fraction of slow operations; each operation is drawn independently.
    pub share: Ratio,
}

/// A cache in the device: reads of recently touched blocks have their own service time. Writes take
/// the device's time and leave their block in the cache. Blocks are identified by position and
/// length, so streams of different lengths share its space but not its contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cache {
    /// Capacity; when it is full, the least recently used block is evicted.
    pub bytes: Bytes,
    /// Service time of a hit, its bytes included.
    pub service: Nanos,
}

/// How the speed of the servers varies around its mean of 1, in windows of [`SpeedLevel::WINDOW`]: at the level 0.5
/// their work takes twice the time. Limits and stalls stay as they are.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SpeedLevel {
    /// As the counts of operations in this file, one for each window, again and again. The seed decides where in the
    /// file a run begins.
    File(PathBuf),
    /// At random: a log-normal level with this standard deviation. Its logarithm is an AR(1) whose correlation falls to
    /// 1 / e within `over`.
    Random {
        /// Standard deviation of the level.
        deviation: Ratio,
        /// Correlation time; above 0.
        over: Nanos,
    },
}

impl SpeedLevel {
    /// How long a level lasts.
    pub const WINDOW: Nanos = Nanos::from_millis(100);
}

/// How service times vary around their mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// Constant.
    Fixed,
    /// Exponential: the M of M/M/c.
    Exponential,
}

/// A device that does nothing for `length` at the end of every `period`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// Duration of a stall.
    pub length: Nanos,
    /// From the start of one stall to the start of the next.
    pub period: Nanos,
}

/// The default of `sim:`.
const SIM_DEFAULT: SimSpec = SimSpec {
    servers: 8,
    service: Nanos(100_000),
    distribution: Distribution::Exponential,
    bandwidth: None,
    stall: None,
    errors: Ratio::ZERO,
    limit: None,
    byte_limit: None,
    slow: None,
    cache: None,
    level: None,
    bytes: Bytes(4 * GIB),
};

/// The settings of a model that are written as `name=value`.
const SIM_SETTINGS: [&str; 10] = [
    "servers",
    "service",
    "bandwidth",
    "stall",
    "errors",
    "limit",
    "slow",
    "cache",
    "level",
    "size",
];

impl FromStr for SimSpec {
    type Err = Error;

    /// Parses the text after `sim:`, for example
    /// `8,100us,fixed,bandwidth=1GB,stall=300ms/2s,errors=1%,size=4GiB`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let (mut spec, mut has_servers) = (SIM_DEFAULT, false);
        let mut given = Vec::new();
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let wrong = |why: &str| {
                usage!(
                    "'{part}' in 'sim:{text}': {why}",
                    "sim:SERVERS,SERVICE_TIME[,fixed|exponential][,bandwidth=1GB][,stall=300ms/2s][,errors=1%][,limit=2000/s+10000][,limit=125MB/s+10GB][,slow=50ms@0.5%][,cache=256MiB@20us][,level=8% over 20s][,level=FILE.csv][,size=4GiB]"
                )
            };
            let servers = |text: &str| {
                let number = text.parse::<u32>().ok().filter(|n| (1..=4096).contains(n));
                number.ok_or_else(|| wrong("the number of servers must be from 1 to 4096"))
            };
            match part.split_once('=') {
                Some(("servers", value)) => spec.servers = servers(value)?,
                Some(("service", value)) => {
                    spec.service = value.parse().map_err(|_| wrong("not a duration"))?;
                }
                Some(("bandwidth", value)) => {
                    spec.bandwidth = Some(parse_bandwidth(value).map_err(wrong)?);
                }
                Some(("stall", value)) => {
                    let stall = parse_stall(value).ok_or_else(|| {
                        wrong(
                            "a stall is DURATION/PERIOD, with the duration shorter than the period",
                        )
                    })?;
                    spec.stall = Some(stall);
                }
                Some(("errors", value)) => {
                    spec.errors = value.parse().map_err(|_| wrong("not a share"))?;
                }
                Some(("limit", value)) => {
                    let wrong = || {
                        wrong(
                            "a limit is RATE/s or RATE/s+BURST, both above 0: 3000/s of I/Os, 125MB/s or 64KiB/s of bytes",
                        )
                    };
                    if is_in_bytes(value) {
                        spec.byte_limit = Some(parse_limit(value, bytes).ok_or_else(wrong)?);
                    } else {
                        spec.limit = Some(parse_limit(value, operations).ok_or_else(wrong)?);
                    }
                }
                Some(("slow", value)) => {
                    let slow = parse_slow(value)
                        .ok_or_else(|| wrong("slow is SERVICE_TIME@SHARE, with a time above 0"))?;
                    spec.slow = Some(slow);
                }
                Some(("cache", value)) => {
                    let cache = parse_cache(value)
                        .ok_or_else(|| wrong("a cache is SIZE@SERVICE_TIME, both above 0"))?;
                    spec.cache = Some(cache);
                }
                Some(("level", value)) => {
                    let level = parse_level(value).ok_or_else(|| {
                        wrong("a level is SHARE over TIME, such as 8% over 20s, or a file of counts, such as quiet.csv")
                    })?;
                    spec.level = Some(level);
                }
                Some(("size", value)) => {
                    spec.bytes = value.parse().map_err(|_| wrong("not a size"))?;
                }
                Some((name, _)) => return Err(wrong(&no_setting(name))),
                None if part == "fixed" => spec.distribution = Distribution::Fixed,
                None if part == "exponential" => spec.distribution = Distribution::Exponential,
                None if part.bytes().all(|byte| byte.is_ascii_digit()) => {
                    if std::mem::replace(&mut has_servers, true) {
                        return Err(wrong(&format!(
                            "the number of servers is given already, and a service time has a \
                             unit, as {part}us"
                        )));
                    }
                    spec.servers = servers(part)?;
                }
                None => {
                    spec.service = part
                        .parse()
                        .map_err(|_| wrong("it is no number of servers, no duration such as 100us, and no distribution: fixed or exponential"))?;
                }
            }
            // Asked last: of a word that is not known, nobody knows whether it is given twice.
            if is_again(&mut given, part) {
                return Err(wrong("it is given twice"));
            }
        }
        if spec.service == Nanos(0) && spec.bandwidth.is_none() {
            return Err(usage!(
                "'sim:{text}' has a service time of 0",
                "give a service time such as 100us, or use null:, the target that takes no time"
            ));
        }
        Ok(spec)
    }
}

/// Why a setting is refused that no model has.
fn no_setting(name: &str) -> String {
    format!(
        "there is no '{name}': a model has {}",
        SIM_SETTINGS.join(", ")
    )
}

/// Parses `1GB` or `1GB/s`, or says what is wrong.
fn parse_bandwidth(text: &str) -> Result<Bytes, &'static str> {
    let size = text.strip_suffix("/s").unwrap_or(text);
    match size.parse() {
        Ok(Bytes(0)) => Err("a bandwidth is above 0: leave it out for none"),
        bandwidth => bandwidth.map_err(|_| "not a size"),
    }
}

/// Parses `300ms/2s`.
fn parse_stall(text: &str) -> Option<Stall> {
    let (length, period) = text.split_once('/')?;
    let stall = Stall {
        length: length.parse().ok()?,
        period: period.parse().ok()?,
    };
    (stall.length < stall.period).then_some(stall)
}

/// True if this setting was given before. A limit of I/Os and one of bytes are two.
fn is_again<'a>(given: &mut Vec<(&'a str, bool)>, part: &'a str) -> bool {
    let setting = match part.split_once('=') {
        Some((name, value)) => (name, name == "limit" && is_in_bytes(value)),
        None if ["fixed", "exponential"].contains(&part) => ("distribution", false),
        // The number of servers, which says itself why there are no two.
        None if part.bytes().all(|byte| byte.is_ascii_digit()) => return false,
        None => ("service", false),
    };
    let is_again = given.contains(&setting);
    given.push(setting);
    is_again
}

/// True if a limit is one of bytes. Without a unit it is one of operations; 3k could be either.
fn is_in_bytes(limit: &str) -> bool {
    limit.contains(['B', 'b'])
}

fn operations(text: &str) -> Option<u64> {
    text.parse::<u32>().ok().map(u64::from)
}

fn bytes(text: &str) -> Option<u64> {
    let has_unit = text.ends_with(['B', 'b']);
    let bytes = text.parse::<Bytes>().ok().filter(|_| has_unit)?;
    Some(bytes.0)
}

/// Parses `2000/s`, or `2000/s+10000`, where `number` reads both numbers.
fn parse_limit(text: &str, number: impl Fn(&str) -> Option<u64>) -> Option<Limit> {
    let (rate, burst) = text.split_once("/s")?;
    let burst = if burst.is_empty() {
        1
    } else {
        number(burst.strip_prefix('+')?)?
    };
    let limit = Limit {
        rate: number(rate)?,
        burst,
    };
    (limit.rate > 0 && limit.burst > 0).then_some(limit)
}

/// Parses `50ms@0.5%`.
fn parse_slow(text: &str) -> Option<Slow> {
    let (service, share) = text.split_once('@')?;
    let slow = Slow {
        service: service.parse().ok()?,
        share: share.parse().ok()?,
    };
    (slow.service > Nanos(0)).then_some(slow)
}

/// Parses `256MiB@20us`.
fn parse_cache(text: &str) -> Option<Cache> {
    let (bytes, service) = text.split_once('@')?;
    let cache = Cache {
        bytes: bytes.parse().ok()?,
        service: service.parse().ok()?,
    };
    (cache.bytes > Bytes(0) && cache.service > Nanos(0)).then_some(cache)
}

/// Parses `8% over 20s`; what is no share before the word is the name of a file.
fn parse_level(text: &str) -> Option<SpeedLevel> {
    let (share, over) = text.split_once("over").unwrap_or((text, ""));
    // A share has its unit, or the name of a file could be one.
    if !share.contains('%') {
        return (!text.is_empty()).then(|| SpeedLevel::File(text.into()));
    }
    let (deviation, over) = (share.trim().parse().ok()?, over.trim().parse().ok()?);
    (over > Nanos(0)).then_some(SpeedLevel::Random { deviation, over })
}

/// Bytes of a limit with their unit, which tells them from operations.
fn in_bytes(bytes: u64) -> String {
    const MB: u64 = 1_000_000;
    if bytes.is_multiple_of(MB) {
        format!("{}MB", bytes / MB)
    } else {
        format!("{bytes}B")
    }
}

impl fmt::Display for SimSpec {
    /// The form that [`SimSpec::from_str`] reads, with `sim:` before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sim:{},{}", self.servers, self.service.exact())?;
        match self.distribution {
            Distribution::Fixed => write!(f, ",fixed")?,
            Distribution::Exponential => write!(f, ",exponential")?,
        }
        if let Some(bandwidth) = self.bandwidth {
            write!(f, ",bandwidth={}", bandwidth.exact())?;
        }
        if let Some(stall) = self.stall {
            write!(
                f,
                ",stall={}/{}",
                stall.length.exact(),
                stall.period.exact()
            )?;
        }
        if self.errors != Ratio::ZERO {
            write!(f, ",errors={}", self.errors.get())?;
        }
        if let Some(Limit { rate, burst }) = self.limit {
            write!(f, ",limit={rate}/s")?;
            if burst > 1 {
                write!(f, "+{burst}")?;
            }
        }
        if let Some(Limit { rate, burst }) = self.byte_limit {
            write!(f, ",limit={}/s", in_bytes(rate))?;
            if burst > 1 {
                write!(f, "+{}", in_bytes(burst))?;
            }
        }
        if let Some(Slow { service, share }) = self.slow {
            write!(f, ",slow={}@{}", service.exact(), share.exact())?;
        }
        if let Some(Cache { bytes, service }) = self.cache {
            write!(f, ",cache={}@{}", bytes.exact(), service.exact())?;
        }
        match &self.level {
            Some(SpeedLevel::File(path)) => write!(f, ",level={}", path.display())?,
            Some(SpeedLevel::Random { deviation, over }) => {
                write!(f, ",level={} over {}", deviation.exact(), over.exact())?;
            }
            None => {}
        }
        write!(f, ",size={}", self.bytes.exact())
    }
}

impl Target {
    /// The model of a device that `name` is, such as `sim:4,1ms`, or what is wrong with it; `None` of a path.
    pub fn model(name: &str) -> Option<Result<Self, Error>> {
        if let Some(spec) = name.strip_prefix("sim:") {
            return Some(spec.parse().map(Self::Sim));
        }
        let size = name.strip_prefix("null:")?;
        let bytes = if size.is_empty() {
            Ok(Bytes(4 * GIB))
        } else {
            size.parse()
        };
        let named = |_| {
            usage!(
                "'{size}' in '{name}' is not a size",
                "write it as null:4GiB, or just null:"
            )
        };
        Some(bytes.map(|bytes| Self::Null { bytes }).map_err(named))
    }

    /// True if it is the model of a device, and neither files nor a database.
    pub fn is_model(&self) -> bool {
        matches!(self, Self::Sim(_) | Self::Null { .. })
    }

    /// True if it is a server that is made for the run and removed.
    pub fn is_private(&self) -> bool {
        matches!(
            self,
            Self::Sql(SqlTarget {
                private: Some(_),
                ..
            })
        )
    }

    /// What names it in a command line; `None` of servers, whose passwords are nobody's to print.
    pub fn argument(&self) -> Option<String> {
        match self {
            Self::Paths { members, .. } => {
                let names: Vec<String> = members.iter().map(|path| shell_path(path)).collect();
                Some(names.join(" "))
            }
            Self::Scratch { directory, .. } => Some(shell_path(directory)),
            Self::Sim(_) | Self::Null { .. } => Some(shell_word(&self.to_string())),
            Self::Sql(_) => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Paths { members, .. } => {
                let names: Vec<_> = members
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                f.write_str(&in_line(&names.join(" ")))
            }
            Target::Scratch { directory, .. } => {
                let directory = directory.display().to_string();
                write!(f, "a scratch file in {}", in_line(&directory))
            }
            Target::Sim(spec) => spec.fmt(f),
            Target::Sql(SqlTarget {
                private_in: Some(directory),
                dbms,
                ..
            }) => {
                write!(
                    f,
                    "a private {} server in {}",
                    dbms.name(),
                    in_line(directory)
                )
            }
            Target::Sql(servers) => f.write_str(&in_line(&servers.urls.join(" "))),
            Target::Null { .. } => f.write_str("null:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_sim_is_described_by_position_or_by_name() {
        let short: SimSpec = "2,500us,fixed".parse().unwrap();
        let long: SimSpec = "servers=2,service=500us,fixed".parse().unwrap();
        assert_eq!(short, long);
        assert_eq!((short.servers, short.service), (2, Nanos(500_000)));
    }

    #[test]
    fn a_level_is_a_share_over_a_time_or_a_file() {
        let level = |text: &str| text.parse::<SimSpec>().unwrap().level.unwrap();
        let random = SpeedLevel::Random {
            deviation: Ratio::from_percent(8.0).unwrap(),
            over: Nanos::from_secs(20),
        };
        for text in ["8,1ms,level=8% over 20s", "8,1ms,level=8%over20s"] {
            assert_eq!(level(text), random);
        }
        for file in ["recovered.csv", "/a/b over c.csv", "./8.csv"] {
            let read = level(&format!("8,1ms,level={file},size=1GiB"));
            assert_eq!(read, SpeedLevel::File(file.into()));
        }
    }

    #[test]
    fn a_sim_that_makes_no_sense_is_refused_by_name() {
        let shapes = ["0,1ms", "servers=x", "stall=2s/1s", "speed=9", "1,0s"];
        // A time without a unit would be a second number of servers.
        let unitless = "8,100".parse::<SimSpec>().unwrap_err().to_string();
        assert!(
            unitless.contains("'100' in 'sim:8,100'") && unitless.contains("100us"),
            "{unitless}"
        );
        // A word that is not known is no second one of those that are.
        for (unknown, name, known) in [
            ("8,1ms,lognormal", "'lognormal'", "fixed or exponential"),
            ("8,lognormal", "'lognormal'", "fixed or exponential"),
            ("8,1ms,write=2ms", "'write'", "servers, service, bandwidth"),
        ] {
            let said = unknown.parse::<SimSpec>().unwrap_err().to_string();
            let is_named = said.contains(name) && said.contains(known);
            assert!(is_named && !said.contains("twice"), "{unknown}: {said}");
        }
        for name in SIM_SETTINGS {
            let said = format!("{name}=").parse::<SimSpec>().unwrap_err();
            assert!(!said.to_string().contains("there is no"), "{said}");
        }
        let limits = [
            "limit=0/s",
            "limit=2000",
            "limit=2000/s+0",
            "limit=2000/s10",
            "limit=-1/s",
            "limit=5000000000/s",
        ];
        let others = [
            "slow=50ms",
            "slow=0s@1%",
            "slow=50ms@101%",
            "cache=0@20us",
            "cache=1MiB@0s",
            "cache=20us",
            "bandwidth=0",
            "level=",
            "level=8%",
            "level=8% over 0s",
            "level=8% over 20",
            "level=200% over 20s",
        ];
        for text in [&shapes[..], &limits, &others].concat() {
            let error = text.parse::<SimSpec>().unwrap_err();
            assert_eq!(error.exit_status(), 2);
            assert!(
                error.to_string().contains(text.split(',').next().unwrap()),
                "{error}"
            );
        }
        for (twice, second) in [
            ("limit=9/s,limit=2MB/s,limit=8/s", "limit=8/s"),
            ("fixed,exponential", "exponential"),
            ("1ms,2ms", "2ms"),
        ] {
            let error = twice.parse::<SimSpec>().unwrap_err().to_string();
            assert!(
                error.contains(&format!("'{second}'")) && error.contains("twice"),
                "{error}"
            );
        }
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read_back(
            servers in 1u32..4096, service in 1u64..1_000_000_000, stall in 1u64..1000, errors in 0u32..100,
            limit in prop::option::of((1u32.., 1u32..)), bytes in prop::option::of((1u64..1 << 40, 1u64..1 << 50)),
            slow in prop::option::of((1u64..1_000_000_000, 0u32..=1000)),
            cache in prop::option::of((1u64..1 << 40, 1u64..1_000_000_000)),
            level in prop::option::of(prop_oneof![
                (0u32..=1000, 1u64..1 << 50).prop_map(|(share, over)| SpeedLevel::Random {
                    deviation: Ratio::from_percent(f64::from(share) / 10.0).unwrap(),
                    over: Nanos(over),
                }),
                "[a-z/.]{1,9}".prop_map(|path| SpeedLevel::File(path.into())),
            ]),
        ) {
            let spec = SimSpec {
                servers,
                service: Nanos(service),
                stall: Some(Stall { length: Nanos(stall), period: Nanos(stall * 2) }),
                errors: Ratio::from_percent(f64::from(errors)).unwrap(),
                limit: limit.map(|(rate, burst)| Limit { rate: rate.into(), burst: burst.into() }),
                byte_limit: bytes.map(|(rate, burst)| Limit { rate, burst }),
                slow: slow.map(|(service, share)| Slow {
                    service: Nanos(service),
                    share: Ratio::from_percent(f64::from(share) / 10.0).unwrap(),
                }),
                cache: cache.map(|(bytes, service)| Cache { bytes: Bytes(bytes), service: Nanos(service) }),
                level,
                ..SIM_DEFAULT
            };
            prop_assert_eq!(spec.to_string().trim_start_matches("sim:").parse::<SimSpec>().unwrap(), spec);
        }

        #[test]
        fn no_text_makes_the_parser_panic(text in ".{0,40}") {
            let _ = text.parse::<SimSpec>();
        }
    }
}
