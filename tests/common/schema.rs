//! What `--json` printed, against the schema that the program itself prints for it.

use serde_json::Value;
use std::process::Command;

/// The schema of `rigel schema NAME`, which allows members of later versions.
pub(crate) fn schema(name: &str) -> Value {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rigel"));
    let output = command.args(["schema", name]).output().unwrap();
    assert!(output.status.success(), "{name}: {output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Compares a document with the schema `name`, and with what it says of each member: one that the schema does not know is
/// an error here.
///
/// # Errors
/// Where it differs, and how.
pub(crate) fn compared(name: &str, document: &Value) -> Result<(), String> {
    let mut schema = schema(name);
    close(&mut schema, false);
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("schema:of", schema).unwrap();
    let index = compiler.compile("schema:of", &mut schemas).unwrap();
    schemas
        .validate(document, index)
        .map_err(|error| format!("{name}: {error:#}"))
}

/// Fails unless a document is as the schema `name` says.
pub(crate) fn fits(name: &str, document: &Value) {
    if let Err(why) = compared(name, document) {
        panic!("{why}\n{document:#}");
    }
}

/// Refuses members that are not named. `is_part`: of an object that refuses them itself.
fn close(schema: &mut Value, is_part: bool) {
    match schema {
        Value::Object(members) => {
            let is_closed = members.contains_key("properties");
            for (name, member) in members.iter_mut() {
                let is_choice = ["anyOf", "oneOf", "allOf"].contains(&name.as_str());
                close(member, is_choice && (is_closed || is_part));
            }
            if is_closed && !is_part {
                members.insert("unevaluatedProperties".into(), false.into());
            }
        }
        Value::Array(all) => all.iter_mut().for_each(|one| close(one, is_part)),
        _ => (),
    }
}
