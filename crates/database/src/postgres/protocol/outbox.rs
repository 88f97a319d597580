//! Messages to a `PostgreSQL` server.
//!
//! Input: statements and their parameters. Output: bytes in the protocol's format, appended to a
//! buffer. A [`PostgresCall`] is an operation that was made beforehand, of which only the values
//! change.

use std::ops::Range;

/// Version 3.0 of the protocol.
const VERSION: u32 = 3 << 16;

/// The code that asks for TLS in the place of a version.
const TLS: u32 = 80_877_103;

/// Types of parameters, by their number in the catalogue of every server.
pub(crate) mod types {
    /// `bigint`.
    pub(crate) const BIGINT: u32 = 20;
    /// `text`.
    pub(crate) const TEXT: u32 = 25;
    /// `bigint[]`.
    pub(crate) const BIGINTS: u32 = 1016;
    /// `text[]`.
    pub(crate) const TEXTS: u32 = 1009;
}

/// How values are written: as text, or as the server's binary form.
#[derive(Debug, Clone, Copy)]
pub(super) enum PostgresFormat {
    Text,
    Binary,
}

/// Appends a message of this type, whose body `fill` appends.
pub(super) fn message(out: &mut Vec<u8>, tag: u8, fill: impl FnOnce(&mut Vec<u8>)) {
    out.push(tag);
    untagged(out, fill);
}

/// Appends a message without a type, as the first ones of a connection are.
fn untagged(out: &mut Vec<u8>, fill: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; 4]);
    fill(out);
    let length = u32::try_from(out.len() - start).expect("messages are short");
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

/// Appends a text and the zero that ends it. A zero within it ends it early.
fn text(out: &mut Vec<u8>, text: &str) {
    out.extend(text.bytes().take_while(|byte| *byte != 0));
    out.push(0);
}

fn short(out: &mut Vec<u8>, number: usize) {
    let number = u16::try_from(number).expect("parameters are few");
    out.extend(number.to_be_bytes());
}

fn value(out: &mut Vec<u8>, value: &[u8]) -> Range<usize> {
    let length = i32::try_from(value.len()).expect("values are short");
    out.extend(length.to_be_bytes());
    out.extend_from_slice(value);
    out.len() - value.len()..out.len()
}

pub(super) fn tls_request(out: &mut Vec<u8>) {
    untagged(out, |out| out.extend(TLS.to_be_bytes()));
}

/// Asks for a session with these settings.
pub(super) fn startup(out: &mut Vec<u8>, settings: &[(&str, &str)]) {
    untagged(out, |out| {
        out.extend(VERSION.to_be_bytes());
        for (name, setting) in settings {
            text(out, name);
            text(out, setting);
        }
        out.push(0);
    });
}

/// Executes one or several statements without parameters, in one transaction.
pub(super) fn query(out: &mut Vec<u8>, statement: &str) {
    message(out, b'Q', |out| text(out, statement));
}

/// Prepares a statement under a name; the empty name is for one use. The server infers the types
/// of further parameters.
pub(super) fn parse(out: &mut Vec<u8>, name: &str, statement: &str, types: &[u32]) {
    message(out, b'P', |out| {
        text(out, name);
        text(out, statement);
        short(out, types.len());
        types.iter().for_each(|oid| out.extend(oid.to_be_bytes()));
    });
}

/// Gives a prepared statement its values. Values and results are of this format. Returns where the
/// values are.
pub(super) fn bind(
    out: &mut Vec<u8>,
    name: &str,
    format: PostgresFormat,
    values: &[&[u8]],
) -> Vec<Range<usize>> {
    let mut places = Vec::with_capacity(values.len());
    message(out, b'B', |out| {
        text(out, "");
        text(out, name);
        for_all(out, format);
        short(out, values.len());
        places.extend(values.iter().map(|bytes| value(out, bytes)));
        for_all(out, format);
    });
    places
}

/// One format for all values.
fn for_all(out: &mut Vec<u8>, format: PostgresFormat) {
    short(out, 1);
    short(
        out,
        match format {
            PostgresFormat::Text => 0,
            PostgresFormat::Binary => 1,
        },
    );
}

/// Executes what was bound, and asks for all its rows.
pub(super) fn execute(out: &mut Vec<u8>) {
    message(out, b'E', |out| {
        text(out, "");
        out.extend(0u32.to_be_bytes());
    });
}

/// Ends a transaction, and a series of messages that the server skips after an error.
pub(super) fn sync(out: &mut Vec<u8>) {
    message(out, b'S', |_| ());
}

pub(super) fn terminate(out: &mut Vec<u8>) {
    message(out, b'X', |_| ());
}

/// An array of one dimension in binary form, whose elements are of this type.
pub(crate) fn array(element_type: u32, elements: &[impl AsRef<[u8]>]) -> Vec<u8> {
    let mut out = Vec::new();
    let length = u32::try_from(elements.len()).expect("elements are few");
    // One dimension, no nulls; its length, and the number of its first element.
    for number in [1, 0, element_type, length, 1] {
        out.extend(number.to_be_bytes());
    }
    for element in elements {
        value(&mut out, element.as_ref());
    }
    out
}

/// An operation of a session: a prepared statement with values, executed and committed in one round
/// trip.
#[derive(Debug, Clone)]
pub(crate) struct PostgresCall {
    message: Vec<u8>,
    values: Vec<Range<usize>>,
}

impl PostgresCall {
    /// A call of the statement that was prepared as `name`, with these values in binary form.
    pub(super) fn new(name: &str, values: &[&[u8]]) -> Self {
        let mut message = Vec::new();
        let values = bind(&mut message, name, PostgresFormat::Binary, values);
        execute(&mut message);
        sync(&mut message);
        Self { message, values }
    }

    /// Replaces value `number`, from 0, by one of the same length.
    #[inline]
    pub(crate) fn set(&mut self, number: usize, value: &[u8]) {
        self.message[self.values[number].clone()].copy_from_slice(value);
    }

    /// The bytes for the server.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_protocol() {
        let mut out = Vec::new();
        startup(&mut out, &[("user", "ana")]);
        assert_eq!(out, b"\0\0\0\x12\0\x03\0\0user\0ana\0\0");
        out.clear();
        tls_request(&mut out);
        assert_eq!(out, b"\0\0\0\x08\x04\xd2\x16\x2f");
        out.clear();
        parse(&mut out, "r", "SELECT $1", &[types::BIGINT]);
        assert_eq!(out, b"P\0\0\0\x16r\0SELECT $1\0\0\x01\0\0\0\x14");
        out.clear();
        query(&mut out, "a\0b");
        assert_eq!(out, b"Q\0\0\0\x06a\0");
    }

    #[test]
    fn of_a_call_only_the_value_changes() {
        let mut call = PostgresCall::new("r", &[&[0; 8], b"abc"]);
        let before = call.bytes().to_vec();
        let bound: &[u8] = b"B\0\0\0\x24\0r\0\0\x01\0\x01\0\x02\0\0\0\x08\0\0\0\0\0\0\0\0\0\0\0\x03abc\0\x01\0\x01";
        let rest: &[u8] = b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04";
        assert_eq!(before, [bound, rest].concat());
        call.set(0, &77i64.to_be_bytes());
        call.set(1, b"xyz");
        let changed: Vec<usize> = (0..before.len())
            .filter(|at| before[*at] != call.bytes()[*at])
            .collect();
        assert_eq!(changed, [25, 30, 31, 32]);
    }
}
