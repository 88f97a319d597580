//! Metrics as Prometheus's protobuf: `io.prometheus.client.MetricFamily`, each preceded by its
//! length.
//!
//! Field numbers are those of `metrics.proto` in the project `prometheus/client_model`. The
//! encoding is written by hand: it needs only varints, doubles and nesting, while a generator would
//! add a build step and two crates. A histogram contains both classic and native buckets, and the
//! scraper uses the kind that it supports.

use super::family::{Family, LIMITS, Metric, SCHEMA, Sort, Times, Value};

/// Encodes the families, each preceded by its length. `created` is the beginning of the counters,
/// in seconds since 1970.
pub(super) fn encode(families: &[Family], created: i64) -> Vec<u8> {
    let mut bytes = Vec::new();
    for family in families {
        let message = family_message(family, created).0;
        put_varint(&mut bytes, message.len() as u64);
        bytes.extend(message);
    }
    bytes
}

fn family_message(family: &Family, created: i64) -> Message {
    let mut message = Message::default();
    message.text(1, &family.full_name());
    message.text(2, family.help);
    let sort = match family.sort {
        Sort::Counter => 0,
        Sort::Gauge | Sort::Info => 1,
        Sort::Histogram => 4,
    };
    message.unsigned(3, sort);
    family
        .metrics
        .iter()
        .for_each(|metric| message.nested(4, &metric_message(family, metric, created)));
    if let Some(unit) = family.unit {
        message.text(5, unit);
    }
    message
}

fn metric_message(family: &Family, metric: &Metric, created: i64) -> Message {
    let mut message = Message::default();
    for (name, value) in &metric.labels {
        let mut label = Message::default();
        label.text(1, name);
        label.text(2, value);
        message.nested(1, &label);
    }
    let mut since = Message::default();
    // A timestamp before 1970 is sent as 0.
    since.unsigned(1, created.try_into().unwrap_or(0));
    match &metric.value {
        Value::Number(value) => {
            let mut number = Message::default();
            number.double(1, *value);
            let is_counter = family.sort == Sort::Counter;
            if is_counter {
                number.nested(3, &since);
            }
            message.nested(if is_counter { 3 } else { 2 }, &number);
        }
        Value::Times(times) => {
            let mut histogram = histogram_message(times);
            histogram.nested(15, &since);
            message.nested(7, &histogram);
        }
    }
    message
}

fn histogram_message(times: &Times) -> Message {
    let mut message = Message::default();
    message.unsigned(1, times.count);
    message.double(2, times.sum);
    for ((_, limit), counted) in LIMITS.iter().zip(&times.classic) {
        let mut bucket = Message::default();
        bucket.unsigned(1, *counted);
        bucket.double(2, limit.parse().expect("a limit is a number"));
        message.nested(3, &bucket);
    }
    message.signed(5, SCHEMA.into());
    // Only zero itself is outside of all buckets.
    message.double(6, 0.0);
    message.unsigned(7, times.zeros);
    let spans = spans(&times.native);
    // An empty span marks a native histogram that has no other span.
    let spans = if spans.is_empty() {
        vec![(0, 0)]
    } else {
        spans
    };
    for (offset, length) in spans {
        let mut span = Message::default();
        span.signed(1, offset);
        span.unsigned(2, length);
        message.nested(12, &span);
    }
    let mut before = 0;
    for (_, count) in &times.native {
        let count = i64::try_from(*count).unwrap_or(i64::MAX);
        message.signed(13, count - before);
        before = count;
    }
    message
}

/// Runs of consecutive buckets: the gap between the previous run (or 0) and the first index, and
/// the length.
fn spans(buckets: &[(i32, u64)]) -> Vec<(i64, u64)> {
    let mut spans: Vec<(i64, u64)> = Vec::new();
    let mut next = 0;
    for (index, _) in buckets {
        let index = i64::from(*index);
        match spans.last_mut() {
            Some((_, length)) if index == next => *length += 1,
            _ => spans.push((index - next, 1)),
        }
        next = index + 1;
    }
    spans
}

/// A protobuf message: a sequence of fields.
#[derive(Debug, Default)]
struct Message(Vec<u8>);

impl Message {
    const VARINT: u64 = 0;
    const DOUBLE: u64 = 1;
    const BYTES: u64 = 2;

    fn tag(&mut self, field: u64, wire: u64) {
        put_varint(&mut self.0, field << 3 | wire);
    }

    fn unsigned(&mut self, field: u64, value: u64) {
        self.tag(field, Self::VARINT);
        put_varint(&mut self.0, value);
    }

    /// sint32 and sint64: zigzag encoding, which makes small numbers of either sign short.
    fn signed(&mut self, field: u64, value: i64) {
        self.unsigned(field, ((value << 1) ^ (value >> 63)).cast_unsigned());
    }

    fn double(&mut self, field: u64, value: f64) {
        self.tag(field, Self::DOUBLE);
        self.0.extend(value.to_le_bytes());
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.tag(field, Self::BYTES);
        put_varint(&mut self.0, bytes.len() as u64);
        self.0.extend(bytes);
    }

    fn text(&mut self, field: u64, text: &str) {
        self.bytes(field, text.as_bytes());
    }

    fn nested(&mut self, field: u64, message: &Message) {
        self.bytes(field, &message.0);
    }
}

/// Seven bits per byte, the lowest first; the eighth bit marks that more bytes follow.
#[expect(clippy::cast_possible_truncation, reason = "seven bits")]
fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_are_written_as_the_examples_of_the_specification() {
        let mut message = Message::default();
        message.unsigned(1, 150);
        message.text(2, "testing");
        assert_eq!(
            message.0,
            [
                0x08, 0x96, 0x01, 0x12, 0x07, 0x74, 0x65, 0x73, 0x74, 0x69, 0x6e, 0x67
            ]
        );
        let signed = |value| {
            let mut message = Message::default();
            message.signed(1, value);
            message.0[1..].to_vec()
        };
        assert_eq!(
            [signed(0), signed(-1), signed(1), signed(-2)],
            [vec![0], vec![1], vec![2], vec![3]]
        );
        assert_eq!(signed(i64::MIN), [[0xff; 9].as_slice(), &[1]].concat());
    }

    proptest! {
        #[test]
        fn spans_lead_back_to_the_buckets(indices in prop::collection::btree_set(-900i32..900, 0..60)) {
            let buckets: Vec<(i32, u64)> = indices.iter().map(|index| (*index, 1)).collect();
            let (mut at, mut back) = (0, Vec::new());
            for (offset, length) in spans(&buckets) {
                at += offset;
                for _ in 0..length {
                    back.push(i32::try_from(at).unwrap());
                    at += 1;
                }
            }
            prop_assert_eq!(back, indices.into_iter().collect::<Vec<_>>());
        }
    }
}
