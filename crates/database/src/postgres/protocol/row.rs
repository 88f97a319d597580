//! Rows and counts in the answers of a `PostgreSQL` server.

use super::error::PostgresError;
use std::str::FromStr;

/// A row of an administrative query, whose values are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PostgresRow(Vec<Option<String>>);

impl PostgresRow {
    /// Reads the body of a `DataRow`.
    pub(super) fn parse(body: &[u8]) -> Result<Self, PostgresError> {
        let mut values = Vec::new();
        for_each_value(body, |value| {
            values.push(value.map(|text| String::from_utf8_lossy(text).into_owned()));
        })?;
        Ok(Self(values))
    }

    /// The value in column `at`, from 0; `None` if it is null.
    ///
    /// # Errors
    /// The row has no such column, or its value is not of this type.
    pub(crate) fn optional<T: FromStr>(&self, at: usize) -> Result<Option<T>, PostgresError> {
        let odd = |what: &str| {
            PostgresError::protocol(format!("{what} in column {} of an answer", at + 1))
        };
        let value = self.0.get(at).ok_or_else(|| odd("nothing"))?;
        value
            .as_deref()
            .map(|text| {
                text.parse()
                    .map_err(|_| odd(&format!("an unexpected value, '{text}',")))
            })
            .transpose()
    }

    /// The value in column `at`, from 0, which must not be null.
    ///
    /// # Errors
    /// As [`optional`](Self::optional); or it is null.
    pub(crate) fn value<T: FromStr>(&self, at: usize) -> Result<T, PostgresError> {
        let null = || PostgresError::protocol(format!("null in column {} of an answer", at + 1));
        self.optional(at)?.ok_or_else(null)
    }

    /// The text in column `at`; empty if it is null or absent.
    pub(crate) fn text(&self, at: usize) -> &str {
        self.0.get(at).and_then(Option::as_deref).unwrap_or("")
    }

    /// True if the value in column `at` is the server's `true`.
    pub(crate) fn is_true(&self, at: usize) -> bool {
        self.text(at) == "t"
    }

    /// Bytes of memory that its values take.
    pub(super) fn bytes(&self) -> usize {
        let values = self.0.iter().flatten();
        size_of_val(self.0.as_slice()) + values.map(String::len).sum::<usize>()
    }
}

/// Calls `take` for each value of a `DataRow`; null is `None`.
///
/// # Errors
/// The body is cut short, or has bytes too many.
fn for_each_value(body: &[u8], mut take: impl FnMut(Option<&[u8]>)) -> Result<(), PostgresError> {
    let cut = || PostgresError::protocol("a row that is cut short");
    let (columns, mut rest) = body.split_first_chunk().ok_or_else(cut)?;
    for _ in 0..u16::from_be_bytes(*columns) {
        let (length, after) = rest.split_first_chunk().ok_or_else(cut)?;
        // Null has the length -1.
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = after;
            take(None);
            continue;
        };
        let (value, after) = after.split_at_checked(length).ok_or_else(cut)?;
        rest = after;
        take(Some(value));
    }
    if rest.is_empty() {
        Ok(())
    } else {
        Err(PostgresError::protocol("a row that is too long"))
    }
}

/// The number in the first column of a row in binary form; `None` if it is no `bigint`.
#[inline]
pub(super) fn first_number(body: &[u8]) -> Option<i64> {
    match body {
        [0, 1, 0, 0, 0, 8, number @ ..] => Some(i64::from_be_bytes(number.try_into().ok()?)),
        _ => None,
    }
}

/// The number of rows in a `CommandComplete`, such as `UPDATE 64`; 0 if it names none.
#[inline]
pub(super) fn rows_of(body: &[u8]) -> u64 {
    let tag = body.strip_suffix(b"\0").unwrap_or(body);
    let digits = tag.rsplit(|byte| *byte == b' ').next().unwrap_or_default();
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn body(values: &[Option<Vec<u8>>]) -> Vec<u8> {
        let mut out = u16::try_from(values.len()).unwrap().to_be_bytes().to_vec();
        for value in values {
            let length = value
                .as_ref()
                .map_or(-1, |value| i32::try_from(value.len()).unwrap());
            out.extend(length.to_be_bytes());
            out.extend(value.iter().flatten());
        }
        out
    }

    #[test]
    fn values_are_typed_and_null_is_not_a_value() {
        let values = ["17", "t", "0.5", "x"].map(|text| Some(text.as_bytes().to_vec()));
        let row = PostgresRow::parse(&body(&[&values[..], &[None]].concat())).unwrap();
        assert_eq!(row.value::<i64>(0), Ok(17));
        assert!(row.is_true(1) && !row.is_true(0) && !row.is_true(9));
        assert_eq!(row.optional::<f64>(2), Ok(Some(0.5)));
        assert_eq!(row.optional::<i64>(4), Ok(None));
        for wrong in [
            row.value::<i64>(3),
            row.value::<i64>(4),
            row.value::<i64>(5),
        ] {
            assert!(
                matches!(wrong, Err(PostgresError::Protocol(_))),
                "{wrong:?}"
            );
        }
        assert_eq!((row.text(3), row.text(4), row.text(5)), ("x", "", ""));
    }

    #[test]
    fn counts_are_read_from_answers() {
        for (tag, rows) in [("UPDATE 64", 64), ("INSERT 0 3", 3), ("COMMIT", 0), ("", 0)] {
            assert_eq!(rows_of(format!("{tag}\0").as_bytes()), rows, "{tag}");
        }
        let number = body(&[Some(64i64.to_be_bytes().to_vec())]);
        assert_eq!(first_number(&number), Some(64));
        for other in [
            &number[..13],
            &[&number[..], &[0]].concat(),
            &body(&[None]),
            b"",
        ] {
            assert_eq!(first_number(other), None);
        }
    }

    proptest! {
        #[test]
        fn a_row_is_read_back_and_a_part_of_it_is_refused(
            values in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..30)), 0..20),
            cut in any::<prop::sample::Index>(),
        ) {
            let whole = body(&values);
            let mut found = Vec::new();
            for_each_value(&whole, |value| found.push(value.map(<[u8]>::to_vec))).unwrap();
            prop_assert_eq!(found, values);
            prop_assert!(PostgresRow::parse(&whole[..cut.index(whole.len())]).is_err());
        }

        #[test]
        fn no_bytes_make_the_parsers_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = (PostgresRow::parse(&bytes), first_number(&bytes), rows_of(&bytes));
        }
    }
}
