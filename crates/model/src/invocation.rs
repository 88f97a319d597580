//! How a run was called: the options that every verb has, and the request of one.

use super::Expectation;
use super::text::read_file_name;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The options that every verb has, and that `--resume` takes from the original run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RunOptions {
    /// Targets that may be overwritten: `--destroy`.
    pub destroy: Vec<PathBuf>,
    /// True if holes of a file may be read: `--allow-holes`.
    pub allow_holes: bool,
    /// Minimum number of threads: `--workers`.
    pub workers: usize,
    /// Seed of all random choices: `--seed`.
    pub seed: u64,
    /// Working directory of the run: relative paths are resolved against it. Empty if unknown.
    pub directory: PathBuf,
    /// What is expected of what the run measures: `--expect`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expected: Vec<Expectation>,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            destroy: Vec::new(),
            allow_holes: false,
            workers: 1,
            seed: 0,
            directory: PathBuf::new(),
            expected: Vec::new(),
        }
    }
}

/// Names of the files that `rigel orion` writes as Orion did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OrionFiles {
    /// Date and time in the names.
    #[serde(deserialize_with = "read_file_name")]
    pub stamp: String,
    /// Path of the files without `_summary.txt` and the other suffixes. That of a journal says where they were
    /// first, and names no file that is written.
    pub prefix: PathBuf,
}

/// How a run was called: the verb, what it was asked for, and the options that every verb has. The
/// journal's header keeps it, so that reports can be made again and the run can be resumed.
#[derive(Debug, Clone, PartialEq)]
pub struct Invocation {
    /// The verb: the first word after `rigel`.
    pub verb: String,
    /// What it was asked for, as data: only the verb can read it.
    pub request: Value,
    /// The options that every verb has.
    pub options: RunOptions,
    /// The files of `rigel orion`.
    pub files: Option<OrionFiles>,
}

impl Invocation {
    /// A request with default options.
    ///
    /// # Panics
    /// The request cannot be written as JSON: it has a map without text keys.
    pub fn of(verb: &str, request: &impl Serialize) -> Self {
        Self {
            verb: verb.into(),
            request: serde_json::to_value(request).expect("a request is plain data"),
            options: RunOptions::default(),
            files: None,
        }
    }

    /// What `verb` was asked for; `None` if another verb made the run, or if a member is missing.
    pub fn asked<T: DeserializeOwned>(&self, verb: &str) -> Option<T> {
        (self.verb == verb)
            .then(|| T::deserialize(&self.request).ok())
            .flatten()
    }
}

impl Serialize for Invocation {
    /// The request stands under the name of its verb, among the options.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Members<'a> {
            #[serde(flatten)]
            request: BTreeMap<&'a str, &'a Value>,
            #[serde(flatten)]
            options: &'a RunOptions,
            #[serde(flatten)]
            files: &'a Option<OrionFiles>,
        }
        let members = Members {
            request: BTreeMap::from([(self.verb.as_str(), &self.request)]),
            options: &self.options,
            files: &self.files,
        };
        members.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Invocation {
    /// The one member that is no option is the request.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const OPTIONS: [&str; 8] = [
            "destroy",
            "allow_holes",
            "workers",
            "seed",
            "directory",
            "expected",
            "stamp",
            "prefix",
        ];
        let mut members = Map::deserialize(deserializer)?;
        let verb = members.keys().find(|key| !OPTIONS.contains(&key.as_str()));
        let (verb, request) = verb
            .cloned()
            .and_then(|verb| members.remove_entry(&verb))
            .ok_or_else(|| D::Error::custom("it has no request"))?;
        let rest = Value::Object(members);
        Ok(Self {
            verb,
            request,
            options: RunOptions::deserialize(&rest).map_err(D::Error::custom)?,
            files: match rest.get("stamp") {
                None => None,
                Some(_) => OrionFiles::deserialize(&rest)
                    .map(Some)
                    .map_err(D::Error::custom)?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_invocation_survives_serialization() {
        let invocation = Invocation {
            options: RunOptions {
                seed: 7,
                workers: 2,
                directory: "/there".into(),
                destroy: vec!["/dev/a".into()],
                allow_holes: true,
                expected: vec!["iops>=3000".parse().unwrap()],
            },
            files: Some(OrionFiles {
                stamp: "20260102_0304".into(),
                prefix: "run/orion_20260102_0304".into(),
            }),
            ..Invocation::of("orion", &json!({ "run": "oltp", "most": u64::MAX }))
        };
        let kept = serde_json::to_value(&invocation).unwrap();
        assert_eq!(
            (&kept["seed"], &kept["orion"]["run"]),
            (&json!(7), &json!("oltp"))
        );
        assert_eq!(
            serde_json::from_value::<Invocation>(kept).unwrap(),
            invocation
        );
    }

    #[test]
    fn a_stamp_is_a_part_of_a_file_name() {
        let read = |stamp: &str| {
            let members = json!({ "orion": {}, "stamp": stamp, "prefix": "/etc/x" });
            serde_json::from_value::<Invocation>(members).map(|read| read.files.unwrap().stamp)
        };
        assert_eq!(read("20260102_0304-2").unwrap(), "20260102_0304-2");
        for stamp in ["../../etc/x", "a\n* * * * * root id", "\u{1b}c", ""] {
            let refused = read(stamp).unwrap_err().to_string();
            assert!(refused.contains("is no part of a file name"), "{refused}");
        }
    }

    #[test]
    fn options_that_a_journal_has_not_are_the_usual_ones() {
        let read = |members: Value| serde_json::from_value::<Invocation>(members);
        let imported = read(json!({ "import": { "files": ["a.csv"] } })).unwrap();
        let request = json!({ "files": ["a.csv"] });
        assert_eq!(imported, Invocation::of("import", &request));
        let missing = read(json!({ "seed": 1 })).unwrap_err().to_string();
        assert!(missing.contains("no request"), "{missing}");
    }
}
