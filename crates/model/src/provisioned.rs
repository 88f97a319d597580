//! What a volume was sold with: operations and bytes per second.

use crate::{Bytes, Error, Expectation, usage};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is provisioned. One of the two is known at least.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Provisioned {
    /// Operations per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iops: Option<u64>,
    /// Bytes per second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_s: Option<Bytes>,
}

/// What a share of it is called where something is expected.
const SHARE: &str = "provisioned";

impl Provisioned {
    /// True if this is meant to be the expectation of a share, such as `provisioned>=95%`.
    pub fn is_meant(text: &str) -> bool {
        text.trim_start().starts_with(SHARE)
    }

    /// What `provisioned>=95%` expects of a volume that was sold so; a margin and a load stand behind it as
    /// behind any rate.
    ///
    /// # Errors
    /// It is no share.
    pub fn expected(&self, text: &str) -> Result<Vec<Expectation>, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not a share of what a volume was sold with",
                "write it as 'provisioned>=95%', in quotes"
            )
        };
        let rest = text.trim().strip_prefix(SHARE).map(str::trim_start);
        let rest = rest
            .and_then(|rest| rest.strip_prefix(['>', '≥']))
            .ok_or_else(wrong)?;
        let rest = rest.strip_prefix('=').unwrap_or(rest).trim_start();
        let (share, behind) = rest.split_once('%').ok_or_else(wrong)?;
        let share = share.trim().parse::<f64>().ok();
        let share = share
            .filter(|share| *share > 0.0 && *share <= 100.0)
            .ok_or_else(wrong)?;
        let of =
            |name: &str, sold: f64| format!("{name}>={}{behind}", sold * share / 100.0).parse();
        let iops = self.iops.map(|iops| of("iops", iops as f64));
        let bytes = self
            .bytes_per_s
            .map(|bytes| of("mbps", bytes.0 as f64 / 1e6));
        iops.into_iter().chain(bytes).collect()
    }
}

impl FromStr for Provisioned {
    type Err = Error;

    /// Parses `30000iops,500MB/s`, or one of them.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wrong = || {
            usage!(
                "'{text}' is not what a volume is provisioned with",
                "write it as 3000iops, 125MiB/s, or both: 3000iops,125MiB/s"
            )
        };
        let mut provisioned = Self {
            iops: None,
            bytes_per_s: None,
        };
        for part in text.split(',') {
            let part = part.trim().to_ascii_lowercase();
            if let Some(number) = part.strip_suffix("iops") {
                let iops = number.trim().parse().ok().filter(|iops| *iops > 0);
                let before = provisioned.iops.replace(iops.ok_or_else(wrong)?);
                before.map_or(Ok(()), |_| Err(wrong()))?;
            } else {
                let bytes = part.strip_suffix("/s").map(str::parse::<Bytes>);
                let bytes = bytes.and_then(Result::ok).filter(|bytes| bytes.0 > 0);
                // Who forgets the unit did not mean bytes.
                let has_unit = part.trim_end_matches("/s").ends_with('b');
                let bytes = bytes.filter(|_| has_unit).ok_or_else(wrong)?;
                let before = provisioned.bytes_per_s.replace(bytes);
                before.map_or(Ok(()), |_| Err(wrong()))?;
            }
        }
        Ok(provisioned)
    }
}

impl fmt::Display for Provisioned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let iops = self.iops.map(|iops| format!("{iops}iops"));
        let bytes = self.bytes_per_s.map(|bytes| format!("{}B/s", bytes.0));
        let parts: Vec<String> = iops.into_iter().chain(bytes).collect();
        f.write_str(&parts.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_expected_of_each_rate_that_was_sold() {
        let sold: Provisioned = "3000iops,125MB/s".parse().unwrap();
        let expected = |text: &str| -> Result<Vec<String>, String> {
            let expected = sold.expected(text).map_err(|error| error.to_string())?;
            Ok(expected.iter().map(ToString::to_string).collect())
        };
        assert_eq!(
            expected("provisioned >= 95%±2%"),
            Ok(vec!["iops>=2850±2%".into(), "mbps>=118.75±2%".into()])
        );
        for wrong in [
            "provisioned",
            "provisioned>=95",
            "provisioned<95%",
            "provisioned>=0%",
        ] {
            assert!(
                expected(wrong).unwrap_err().contains("'provisioned>=95%'"),
                "{wrong}"
            );
        }
        assert!(!Provisioned::is_meant("p99<2ms@depth:1"));
    }

    #[test]
    fn what_is_provisioned_is_read_in_the_units_of_the_vendors() {
        let both = |text: &str| {
            let read: Provisioned = text.parse().unwrap();
            assert_eq!(read.to_string().parse(), Ok(read), "{text}");
            (read.iops, read.bytes_per_s.map(|bytes| bytes.0))
        };
        assert_eq!(both("30000iops,500MB/s"), (Some(30_000), Some(500_000_000)));
        assert_eq!(both("125 MiB/s, 3000 IOPS"), (Some(3000), Some(125 << 20)));
        assert_eq!(both("3000iops"), (Some(3000), None));
        assert_eq!(both("1GB/s"), (None, Some(1_000_000_000)));
        for wrong in [
            "",
            "3000",
            "500MB",
            "500/s",
            "0iops",
            "-1iops",
            "1iops,2iops",
            "1MB/s,2MB/s",
            "iops",
            "3000iops,",
            "fastMB/s",
            "0MB/s",
        ] {
            let said = wrong.parse::<Provisioned>().unwrap_err().to_string();
            assert!(said.contains("3000iops,125MiB/s"), "{wrong}: {said}");
        }
    }
}
