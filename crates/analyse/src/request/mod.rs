//! The request of a run: plain data, kept in the journal's header. `plan` makes points from it.
//!
//! Input: the options of a verb with their defaults filled in. Output: values that serialise, so
//! that a run's reports can be made again and the run can be resumed.

mod calibrate;
mod curve;
mod fit;
mod layers;
mod orion;
mod soak;
mod watch;

use crate::plan::{Plan, check_sessions};
pub use calibrate::CalibrateRequest;
pub use curve::{Background, CurveRequest, Loads, SqlStop, SqlTerms};
pub use fit::{BLOCK_ASSUMED, FitRequest, FitSessions, OfferedStream, RankDemand, StreamObjective};
pub use layers::LayersRequest;
pub use orion::{LargeType, Matrix, OrionRequest, RunLevel};
use rigel_model::record::journal;
use rigel_model::{Error, Target, VerbRequest};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
pub use soak::SoakRequest;
use std::ops::Deref;
pub use watch::{ServedStream, StorageServes, WatchRequest, WatchedDisk};

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_alone(ranks: &u32) -> bool {
    *ranks == 0
}

/// The request of a run, by verb.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Request {
    /// `rigel orion`: a matrix of small and large I/O.
    Orion(OrionRequest),
    /// `rigel calibrate`.
    Calibrate(CalibrateRequest),
    /// `rigel curve`.
    Curve(CurveRequest),
    /// `rigel sql run`: one or several loads by the sessions of a database.
    Sql(CurveRequest),
    /// `rigel layers`: the same blocks through each layer in turn.
    Layers(LayersRequest),
    /// `rigel soak`: the same round repeatedly.
    Soak(SoakRequest),
    /// `rigel fit`: the demand of a database, in multiples.
    Fit(Box<FitRequest>),
    /// `rigel watch`: the demand of a live host, without a load of its own.
    Watch(Box<WatchRequest>),
    /// `rigel import`: figures of other tools.
    Import(ImportRequest),
}

/// The request of `rigel import`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ImportRequest {
    /// The files that were read, as the user named them.
    pub files: Vec<String>,
}

impl Plan for ImportRequest {
    fn name(&self) -> &'static str {
        "import"
    }
}

impl Request {
    /// The key of each request in a journal's header.
    const KEYS: [&'static str; 9] = [
        "orion",
        "calibrate",
        "curve",
        "sql",
        "layers",
        "soak",
        "fit",
        "watch",
        "import",
    ];

    /// Says that `size` ranks measure together, before the first point is planned. The points of
    /// Orion's matrix, the rounds of a soak and the multiples of a fit stay as they are, and each is
    /// measured by all ranks; the other verbs refuse ranks.
    pub fn set_ranks(&mut self, size: u32) {
        match self {
            Self::Calibrate(request) => request.ranks = size,
            Self::Curve(request) | Self::Sql(request) => request.ranks = size,
            _ => {}
        }
    }

    /// The plan of its verb.
    fn plan(&self) -> &(dyn Plan + 'static) {
        match self {
            Self::Orion(request) => request,
            Self::Calibrate(request) => request,
            Self::Curve(request) | Self::Sql(request) => request,
            Self::Layers(request) => request,
            Self::Soak(request) => request,
            Self::Fit(request) => &**request,
            Self::Watch(request) => &**request,
            Self::Import(request) => request,
        }
    }

    /// The verb: the first word after `rigel`.
    pub fn verb(&self) -> &'static str {
        match self {
            Self::Sql(_) => "sql",
            other => other.name(),
        }
    }

    /// The words after `rigel` for a command with `--resume`.
    pub fn command(&self) -> &'static str {
        if let Self::Sql(_) = self {
            "sql run"
        } else {
            self.verb()
        }
    }
}

impl Deref for Request {
    type Target = dyn Plan;

    fn deref(&self) -> &Self::Target {
        self.plan()
    }
}

impl VerbRequest for Request {
    fn take(members: &mut Map<String, Value>) -> Result<Self, String> {
        let (key, asked) = Self::KEYS
            .into_iter()
            .find_map(|key| members.remove_entry(key))
            .ok_or("this version does not know its verb")?;
        serde_json::from_value(Value::Object(Map::from_iter([(key.clone(), asked)])))
            .map_err(|error| format!("the request of '{key}' cannot be read: {error}"))
    }

    fn check(&self, target: &Target) -> Result<(), Error> {
        if let Some(work) = self.work() {
            check_sessions(work, target)?;
        }
        self.check_values()
    }
}

/// How a run was called.
pub type Invocation = rigel_model::Invocation<Request>;

/// The first line of a journal.
pub type Header = journal::Header<Request>;

/// The contents of a journal.
pub type Run = journal::Run<Request>;

#[cfg(test)]
mod tests {
    use super::*;
    use rigel_model::{OrionFiles, RunOptions};
    use serde_json::json;

    fn read(invocation: Value) -> Result<Invocation, String> {
        serde_json::from_value(invocation).map_err(|error| error.to_string())
    }

    #[test]
    fn an_invocation_survives_serialization() {
        let options = RunOptions {
            seed: 7,
            workers: 2,
            directory: "/there".into(),
            ..RunOptions::default()
        };
        let files = Some(OrionFiles {
            stamp: "20260102_0304".into(),
            prefix: "run/orion_20260102_0304".into(),
        });
        let request = Request::Orion(OrionRequest::new(RunLevel::Oltp));
        let invocation = Invocation {
            request,
            options,
            files,
        };
        let kept = serde_json::to_value(&invocation).unwrap();
        assert_eq!(
            (&kept["seed"], &kept["orion"]["run"]),
            (&json!(7), &json!("oltp"))
        );
        assert_eq!(read(kept), Ok(invocation));
    }

    #[test]
    fn options_that_no_journal_of_then_had_are_the_usual_ones() {
        let imported = read(json!({ "import": { "files": ["a.csv"] } })).unwrap();
        assert_eq!(
            imported,
            Invocation::of(Request::Import(ImportRequest {
                files: vec!["a.csv".into()]
            }))
        );
    }

    #[test]
    fn a_request_that_cannot_be_read_is_an_error_that_names_its_verb() {
        let missing = read(json!({ "soak": { "every": 1 }, "seed": 1 })).unwrap_err();
        assert!(
            missing.contains("'soak'") && missing.contains("missing field"),
            "{missing}"
        );
        let other = read(json!({ "divine": {}, "seed": 1 })).unwrap_err();
        assert!(other.contains("does not know its verb"), "{other}");
    }
}
