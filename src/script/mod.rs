//! Files for a database that Rigel does not reach itself: a DBA reads them, and runs them by the
//! database's own client.
//!
//! Input: what is wanted. Output: names and texts of files. Pure: it opens nothing. What the client
//! prints is read by `import`.

pub mod calibrate_io;
pub mod oracle;

/// A file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptFile {
    /// Its name, without a directory.
    pub name: &'static str,
    /// Its text.
    pub text: String,
}

/// Replaces each `{{name}}` of `template` by its value. A value is not searched for names again, and
/// a name without a value stays: a test finds it.
fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        text.push_str(before);
        let filled = after.split_once("}}").and_then(|(name, after)| {
            let (_, value) = values.iter().find(|(known, _)| *known == name)?;
            Some((value, after))
        });
        rest = if let Some((value, after)) = filled {
            text.push_str(value);
            after
        } else {
            text.push_str("{{");
            after
        };
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::fill;

    #[test]
    fn names_are_replaced_once_and_others_stay() {
        let values = [("a", "{{b}}".to_string()), ("b", "2".to_string())];
        assert_eq!(fill("{{a}} {{b}} {{c}} {{", &values), "{{b}} 2 {{c}} {{");
    }
}
