//! `rigel schema`: the JSON Schema of everything that `--json` prints, made of the types that are printed.

use super::{check, output};
use clap::Args;
use rigel_model::{Error, usage};
use rigel_report::data::SchemaOf;
use rigel_report::{advice, claimed, compare, data};
use rigel_verbs::expect::Profile;
use rigel_verbs::registry;

/// Print the JSON Schema of what --json prints
#[derive(Debug, Args)]
#[command(
    after_help = "Without a name, all names. A verb's schema is also that of rigel report --format json for its runs; \
                  fit with several targets prints an array of its documents. Members are added in later versions, and \
                  none is renamed or removed: readers ignore those that they do not know."
)]
pub(super) struct SchemaArgs {
    /// The verb; or claim, a calibration beside what Oracle's own claims; or profiles, expect list
    name: Option<String>,
}

/// Those of verbs that make no run.
const OTHERS: [(&str, SchemaOf); 5] = [
    ("advise", advice::schema),
    ("check", check::schema),
    ("claim", claimed::schema),
    ("compare", compare::schema),
    ("profiles", data::schema_of::<Vec<Profile>>),
];

/// All names with their schemas.
fn all() -> impl Iterator<Item = (&'static str, SchemaOf)> {
    registry::schemas().chain(OTHERS)
}

/// Prints a schema, or the names of all.
pub(super) fn run(args: &SchemaArgs) -> Result<u8, Error> {
    let names: Vec<&str> = all().map(|(name, _)| name).collect();
    let Some(asked) = &args.name else {
        output::result(&(names.join("\n") + "\n"));
        return Ok(0);
    };
    let Some((_, schema)) = all().find(|(name, _)| name == asked) else {
        return Err(usage!(
            "no --json has the name '{asked}'",
            "there are {names}; rigel report prints that of the run's verb",
            names = names.join(", ")
        ));
    };
    let mut schema = schema();
    schema.insert("title".into(), format!("rigel: {asked}").into());
    output::json(&data::document(&schema));
    Ok(0)
}
