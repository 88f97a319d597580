//! Names and numbers among rows of text, as servers report their counters.

use std::collections::BTreeMap;

/// The pairs of name and number among rows of text.
pub(super) fn numbers(
    rows: impl IntoIterator<Item = (String, Option<String>)>,
) -> BTreeMap<String, u64> {
    rows.into_iter()
        .filter_map(|(name, value)| Some((name, value?.trim().parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_no_number_is_absent() {
        let rows = [
            ("a", Some("7")),
            ("b", None),
            ("c", Some("ON")),
            ("d", Some("-1")),
        ];
        let found = numbers(rows.map(|(name, value)| (name.to_string(), value.map(String::from))));
        assert_eq!(found, BTreeMap::from([("a".to_string(), 7)]));
    }

    proptest! {
        #[test]
        fn every_number_is_read(value in any::<u64>(), text in ".{0,20}") {
            let rows = [("a".to_string(), Some(format!(" {value}"))), ("b".into(), Some(text))];
            let found = numbers(rows);
            prop_assert_eq!(found.get("a"), Some(&value));
        }
    }
}
