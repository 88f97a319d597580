//! Options whose value is one of a closed set.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser of one of `all`, each with its name and its help text.
pub(super) fn one_of<T: Copy + Send + Sync + 'static>(
    all: &'static [T],
    name_and_help: fn(T) -> (&'static str, &'static str),
) -> impl TypedValueParser<Value = T> {
    let shown = all.iter().map(move |value| {
        let (name, help) = name_and_help(*value);
        PossibleValue::new(name).help(help)
    });
    PossibleValuesParser::new(shown).map(move |name| {
        let is_it = |value: &&T| name_and_help(**value).0 == name;
        *all.iter().find(is_it).expect("clap accepts no other name")
    })
}
