//! Whatever stands in a journal, reading it ends in a run or in an error, and every report of a run can be made.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel::record::journal;
use rigel::report::{data, table};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(run) = journal::parse(std::path::Path::new("journal.jsonl"), bytes) {
        let _ = (table::text(&run, table::Detail::Verbose), data::json(&run), data::csv(&run));
    }
});
