//! The conclusion of a watch: what the busiest interval asked for.

use rigel_analyse::conclusion::parts::{Conclusion, Status};
use rigel_analyse::demand::watch_request::WatchRequest;
use rigel_analyse::demand::{WatchResult, WatchedSource, WatchedStream};
use rigel_analyse::figures::quantity::{
    capital, lasting, mb_per_second, per_second, rounded_percent,
};
use rigel_model::record::journal::Header;
use rigel_model::{FindingName, Nanos};
use std::fmt::Write;

/// Number of sources that the sentence describes.
const SOURCES_MAX: usize = 2;

/// The conclusion of a watch; `header` is its journal's header.
pub(super) fn conclusion(header: &Header, result: &WatchResult) -> Conclusion {
    if result.intervals == 0 {
        return Conclusion {
            status: Status::Warning,
            sentence: "No interval was observed to its end.".into(),
        };
    }
    let described = result.sources.iter().take(SOURCES_MAX).map(source);
    let mut sentence = of_room(header, result);
    sentence.push_str(&described.collect::<Vec<_>>().join(" "));
    if result.sources.len() > SOURCES_MAX {
        let _ = write!(
            sentence,
            " The report has {} more.",
            result.sources.len() - SOURCES_MAX
        );
    }
    Conclusion {
        status: Status::Plain,
        sentence,
    }
}

/// How much room a calibrated storage leaves, with a blank behind it; empty without one. Says
/// first if that is other storage.
fn of_room(header: &Header, result: &WatchResult) -> String {
    let Some(request) = header.invocation.asked::<WatchRequest>("watch") else {
        return String::new();
    };
    let Some((room, serves)) = result.room.as_ref().zip(request.against.as_ref()) else {
        return String::new();
    };
    let mut text = String::new();
    let elsewhere = FindingName::CalibrationElsewhere;
    if let Some(other) = header.findings.iter().find(|one| one.is(elsewhere)) {
        let _ = write!(text, "{}. ", capital(&other.what));
    }
    // Where there are several kinds of I/O, the one of which the most is used decides.
    let least = room
        .streams
        .iter()
        .max_by(|one, other| one.used.total_cmp(&other.used));
    match least {
        Some(least) => {
            let _ = write!(text, "{} {}. ", room.source, least.sentence);
        }
        None => {
            let _ = write!(
                text,
                "The calibration in {} measured no I/O of the kinds of {}. ",
                serves.run, room.source
            );
        }
    }
    text
}

/// What a source asked for, in a sentence.
fn source(found: &WatchedSource) -> String {
    let Some(busiest) = found.busiest.filter(|busiest| busiest.per_s > 0.0) else {
        return format!("{} was idle.", found.name);
    };
    let all: f64 = found.streams.iter().map(|stream| stream.per_s).sum();
    let bytes: f64 = found
        .streams
        .iter()
        .filter_map(WatchedStream::bytes_per_s)
        .sum();
    let rate = match bytes {
        0.0 => per_second(all),
        bytes => format!("{}, {}", per_second(all), mb_per_second(bytes / 1e6)),
    };
    let busy = found.busy.map_or_else(String::new, |busy| {
        format!(", busy {} of the time", rounded_percent(busy))
    });
    format!(
        "{}: {rate} on average{busy}; {} in the busiest {} ({}).",
        found.name,
        per_second(busiest.per_s),
        lasting(Nanos::from_secs_f64(busiest.seconds.round().max(1.0))),
        busiest.begin.short(),
    )
}
