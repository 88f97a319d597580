//! Whatever stands in the marker of a private server's folder, it is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_database::server;

fuzz_target!(|text: &str| {
    let whole = format!("a private server of rigel, format 1\n{text}");
    let _ = (server::is_marker(text), server::is_marker(&whole));
});
