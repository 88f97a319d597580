//! The one table of all verbs.

use crate::calibrate::CalibrateRequest;
use crate::curve::{CurveRequest, CurveResult};
use crate::duet::{DuetRequest, DuetResult};
use crate::expect::{ExpectRequest, ExpectResult};
use crate::fit::{FitRequest, FitResult};
use crate::import::{ImportRequest, ImportedResult};
use crate::layers::{LayersRequest, LayersResult};
use crate::orion::{MatrixResult, OrionRequest};
use crate::{Verb, VerbResult};
use rigel_analyse::Calibration;
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::demand::watched_types::WatchResult;
use rigel_analyse::plan::check_sessions;
use rigel_analyse::series::soak::SoakResult;
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_model::record::journal::{Header, Run};
use rigel_model::{Error, Expectation, Invocation, Target, usage};
use rigel_report::data::SchemaOf;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::path::Path;

/// Reads the request of a verb.
type ReadRequest = fn(&Value) -> Result<Box<dyn Verb>, serde_json::Error>;

/// Each verb that makes a run, by its name in journals, with the JSON Schema of its report.
const VERBS: [(&str, ReadRequest, SchemaOf); 11] = [
    ("orion", request::<OrionRequest>, MatrixResult::schema),
    (
        "calibrate",
        request::<CalibrateRequest>,
        Calibration::schema,
    ),
    ("curve", request::<CurveRequest>, CurveResult::schema),
    ("sql", sql_request, CurveResult::schema),
    ("expect", request::<ExpectRequest>, ExpectResult::schema),
    ("duet", request::<DuetRequest>, DuetResult::schema),
    ("layers", request::<LayersRequest>, LayersResult::schema),
    ("soak", request::<SoakRequest>, SoakResult::schema),
    ("fit", request::<FitRequest>, FitResult::schema),
    ("watch", request::<WatchRequest>, WatchResult::schema),
    ("import", request::<ImportRequest>, ImportedResult::schema),
];

fn sql_request(members: &Value) -> Result<Box<dyn Verb>, serde_json::Error> {
    Ok(Box::new(CurveRequest {
        is_sql_run: true,
        ..CurveRequest::deserialize(members)?
    }))
}

fn request<T: Verb + DeserializeOwned + 'static>(
    members: &Value,
) -> Result<Box<dyn Verb>, serde_json::Error> {
    Ok(Box::new(T::deserialize(members)?))
}

/// The JSON Schema of the report of each verb that makes a run.
pub fn schemas() -> impl Iterator<Item = (&'static str, SchemaOf)> {
    VERBS.iter().map(|(name, _, schema)| (*name, *schema))
}

/// The verb that made the run of this header.
///
/// # Errors
/// This version does not know the verb, cannot read its request, or the request has numbers that no
/// command line can ask for: a journal may contain any.
pub fn of(header: &Header) -> Result<Box<dyn Verb>, Error> {
    let verb = asked(&header.invocation).map_err(|why| {
        let version = &header.version;
        usage!(
            "this run was written by rigel {version}, and {why}",
            "read it with rigel {version}; this is {own}",
            own = env!("CARGO_PKG_VERSION")
        )
    })?;
    check(&*verb, &header.target)?;
    let expected = header.invocation.options.expected.len();
    if expected > Expectation::MOST {
        return Err(usage!(
            "this run expects {expected} things of its figures",
            "the journal is damaged, or of another version"
        ));
    }
    Ok(verb)
}

/// The verb of an invocation.
///
/// # Errors
/// This version does not know the verb, or cannot read its request.
pub fn asked(invocation: &Invocation) -> Result<Box<dyn Verb>, String> {
    let (name, reader, _) = VERBS
        .iter()
        .find(|(name, ..)| *name == invocation.verb)
        .ok_or("this version does not know its verb")?;
    reader(&invocation.request)
        .map_err(|error| format!("the request of '{name}' cannot be read: {error}"))
}

/// Refuses numbers that no command line can ask for.
///
/// # Errors
/// The sentence names the value.
pub fn check(verb: &dyn Verb, target: &Target) -> Result<(), Error> {
    if let Some(work) = verb.work() {
        check_sessions(work, target)?;
    }
    verb.check_values()
}

/// Reads the whole run in `path`, if its verb is known and its request is sound.
///
/// # Errors
/// The journal cannot be read, or as [`of`].
pub fn read(path: &Path) -> Result<Run, Error> {
    let run = Run::read(path)?;
    of(&run.header)?;
    Ok(run)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::curve::Loads;
    use crate::curve::plan::tests::request as curve;
    use crate::duet::DuetArm;
    use rigel_model::{Bytes, Dbms, Mix, Nanos, Ratio, SqlTarget};
    use serde_json::json;

    #[test]
    fn every_verb_reads_the_request_that_it_wrote() {
        let written: Vec<Box<dyn Verb>> = vec![
            Box::new(CalibrateRequest::DEFAULT),
            Box::new(curve(Loads::Depths(vec![1]))),
            Box::new(CurveRequest {
                is_sql_run: true,
                ..curve(Loads::Depths(vec![1]))
            }),
            Box::new(OrionRequest::new(crate::orion::RunLevel::Oltp)),
            Box::new(crate::examples::fit(Vec::new())),
            Box::new(ExpectRequest {
                expectations: vec!["p99<2ms±5%@3000/s".parse().unwrap()],
                profiles: Vec::new(),
                block: 8192,
                large: ExpectRequest::LARGE,
                budget: Nanos::from_secs(180),
                error: Ratio::of(1, 100),
            }),
            Box::new(DuetRequest {
                arms: vec![DuetArm {
                    name: "depth=4".into(),
                    target: Some(Target::Null { bytes: Bytes(1) }),
                    engine: Some("psync".into()),
                    length: 8192,
                    depth: 4,
                    log: None,
                }],
                budget: Nanos::from_secs(300),
                margin: Ratio::of(2, 100),
                error: Ratio::of(5, 100),
                slower_most: Some(Ratio::of(5, 100)),
                mix: Mix::READS,
                rate_per_s: None,
                together: false,
                sql: None,
                server_setting: None,
            }),
            Box::new(WatchRequest::default()),
            Box::new(ImportRequest::default()),
        ];
        for verb in written {
            let invocation = verb.invocation();
            assert_eq!(invocation.verb, verb.name());
            let read = asked(&invocation).unwrap();
            assert_eq!(
                (read.name(), read.to_value()),
                (verb.name(), verb.to_value())
            );
        }
    }

    #[test]
    fn a_request_that_cannot_be_read_is_an_error_that_names_its_verb() {
        let why = |verb: &str| asked(&Invocation::of(verb, &json!({ "every": 1 }))).unwrap_err();
        let missing = why("soak");
        assert!(
            missing.contains("'soak'") && missing.contains("missing field"),
            "{missing}"
        );
        let other = why("divine");
        assert!(other.contains("does not know its verb"), "{other}");
    }

    #[test]
    fn sessions_work_on_a_database_whose_blocks_can_be_counted() {
        let database = Target::Sql(SqlTarget {
            dbms: Dbms::Postgres,
            urls: Vec::new(),
            private_in: None,
            private: None,
        });
        let request = |change: &dyn Fn(&mut CurveRequest)| {
            let mut curve = curve(Loads::Depths(vec![1]));
            change(&mut curve);
            curve
        };
        assert_eq!(check(&request(&|_| ()), &database), Ok(()));
        assert_eq!(
            check(
                &request(&|curve| curve.sql = None),
                &Target::Null { bytes: Bytes(0) }
            ),
            Ok(())
        );
        let refused = |request: &CurveRequest, target: &Target, why: &str| {
            let error = check(request, target).unwrap_err().to_string();
            assert!(error.contains(why), "{why}: {error}");
        };
        refused(
            &request(&|_| ()),
            &Target::Null { bytes: Bytes(0) },
            "sessions of a database",
        );
        for (schemas, scale) in [(u32::MAX, u64::MAX), (2, 1 << 63), (0, 10_000), (1, 0)] {
            let odd = request(&|curve| {
                let tables = &mut curve.sql.as_mut().unwrap().work.tables;
                (tables.schemas, tables.scale) = (schemas, scale);
            });
            refused(
                &odd,
                &database,
                &format!("{schemas} tables of {scale} blocks"),
            );
        }
        let odd = request(&|curve| curve.sql.as_mut().unwrap().work.read_rows = 10_001);
        refused(&odd, &database, "an operation of 10001 rows");
    }
}
