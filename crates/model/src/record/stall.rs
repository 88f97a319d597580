//! Events of storage that stops answering, as the journal has them.

use crate::{Coordinates, StalledIo};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum StallChange {
    /// Nothing has completed for ten seconds.
    Begun,
    /// Still nothing has completed.
    Lasts,
    /// Operations complete again.
    Over,
    /// The run ended before an operation completed.
    Ended,
}

/// An event of a stall: of all I/O during a point, of a disk or server that is watched, or of a
/// preparation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct StallEvent {
    /// The point; `None` if it is no point that stalls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub coordinates: Option<Coordinates>,
    /// What else stalls: the name of a disk or the URL of a server that is watched, or what is being
    /// prepared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// The host whose rank it was; `None` if one process measures alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Wall-clock time at which it was noticed.
    pub noticed: String,
    /// What happened.
    pub change: StallChange,
    /// The outstanding operations; at the end of a stall, those of the last look before it.
    pub stalled: StalledIo,
}

impl StallChange {
    /// What happened, in words, with the outstanding operations.
    pub fn words(self, stalled: StalledIo) -> String {
        match self {
            Self::Begun | Self::Lasts => stalled.to_string(),
            Self::Over => format!(
                "operations complete again, after {:.0} s",
                stalled.silent.as_secs_f64()
            ),
            Self::Ended => format!("ended while {stalled}"),
        }
    }
}

impl fmt::Display for StallEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.change.words(self.stalled);
        let point = self.coordinates.iter().map(ToString::to_string);
        let host = self.host.iter().map(|host| format!(" on {host}"));
        let place: String = point.chain(self.what.clone()).chain(host).collect();
        write!(f, "{place}: {words}")
    }
}
