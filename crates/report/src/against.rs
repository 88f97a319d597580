//! A demand beside a calibration: the table by stream and the answer.

use super::columns::TableOf;
use super::document::{Block, Section};
use super::{database, parts};
use rigel_analyse::demand::stream_objective::assumed_in_words;
use rigel_analyse::quantity::{capital, per_second, rounded_length, rounded_percent};
use rigel_analyse::{DemandAgainst, Usage};
use rigel_model::Bytes;

/// The section.
pub(super) fn section(of: &DemandAgainst) -> Section {
    let table = TableOf::of(&interval(of), &of.streams)
        .text("stream", |one| one.kind.words())
        .number("asked", |one| per_second(one.per_s))
        .number("size", |one| parts::known(one.mean_bytes, size))
        .time("in the database", |one| one.database_us)
        .time("here", |one| one.storage_us.map(|us| us.value))
        .number("uses", |one| usage(one.usage))
        .text("fits", |one| one.fits.word())
        .text("this storage", |one| one.by.clone())
        .block();
    let mut sentences = vec![
        format!("{}: {}.", capital(of.fits.word()), of.reason()),
        "'Uses' is the part of the storage's time that a stream needs; the streams of the \
         calibration were measured one after the other, so the sum is an estimate."
            .into(),
    ];
    let objectives = of.streams.iter().filter_map(|one| one.objective);
    let objectives: Vec<String> = objectives.map(|one| assumed_in_words(&one)).collect();
    if !objectives.is_empty() {
        sentences.push(format!(
            "Assumed, as by `rigel fit`: {}.",
            objectives.join("; ")
        ));
    }
    sentences.extend(block_in_words(of).map(|words| format!("{}.", capital(&words))));
    sentences.extend(of.seconds.map(|seconds| {
        format!(
            "The rates are means of {}: bursts are not in them.",
            rounded_length(seconds)
        )
    }));
    if !of.censored.is_empty() {
        sentences.push(format!(
            "The database asked for at least this: {}.",
            of.censored
        ));
    }
    let mut blocks = vec![table];
    blocks.extend(sentences.into_iter().map(Block::Text));
    parts::section(
        "demand",
        "What the database asks, beside what this storage can do",
        "",
        blocks,
    )
}

/// What a random read was taken to have; `None` if the demand says it.
pub(super) fn block_in_words(of: &DemandAgainst) -> Option<String> {
    let bytes = of.assumed_block?;
    Some(format!(
        "a random read is taken to have {}, because the demand does not say it",
        Bytes(bytes.into())
    ))
}

fn interval(of: &DemandAgainst) -> String {
    let among = database::among(of.intervals, of.share_below);
    database::caption(&of.database, &of.label, of.begin, of.seconds, &among)
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a size is positive; casts saturate"
)]
fn size(bytes: f64) -> String {
    Bytes(bytes as u64).to_string()
}

/// The range of a part, such as `5 % to 9 %`.
fn usage(of: Usage) -> String {
    let low = rounded_percent(of.low);
    match of.high.map(rounded_percent) {
        None => format!("{low} or more"),
        Some(high) if high == low => low,
        Some(high) => format!("{low} to {high}"),
    }
}
