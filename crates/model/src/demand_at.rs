//! Which interval of a demand is meant, by its rank or by a time in it.

use super::{Error, Moment};
use crate::usage;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Which interval of a demand is offered.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum DemandAt {
    /// The one with the most I/O operations.
    #[default]
    Peak,
    /// The busiest one after the busiest 5 % are left out.
    P95,
    /// The one that this moment lies in.
    Time(Moment),
}

impl fmt::Display for DemandAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Peak => f.write_str("peak"),
            Self::P95 => f.write_str("p95"),
            Self::Time(moment) => moment.fmt(f),
        }
    }
}

impl FromStr for DemandAt {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "peak" => Ok(Self::Peak),
            "p95" => Ok(Self::P95),
            time => time.parse().map(Self::Time).map_err(|_| {
                usage!(
                    "'{text}' is no interval of a demand",
                    "give peak, p95, or a time such as 2026-04-23T12:59"
                )
            }),
        }
    }
}

impl From<DemandAt> for String {
    fn from(at: DemandAt) -> Self {
        at.to_string()
    }
}

impl TryFrom<String> for DemandAt {
    type Error = Error;

    fn try_from(text: String) -> Result<Self, Error> {
        text.parse()
    }
}
