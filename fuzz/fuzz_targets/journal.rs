//! Whatever stands in a journal, reading it ends in a run or in an error, and every report of a run can be made.
#![no_main]

use rigel_model::record::journal::Run;
use libfuzzer_sys::fuzz_target;
use rigel_report::document::Extent;
use rigel_report::{self as report, data, text};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(run) = Run::parse(std::path::Path::new("journal.jsonl"), bytes) {
        let result = report::result(&run);
        let _ = (text::render(&report::document(&run, &result), Extent::Full), data::json(&run, &result));
        let _ = report::csv(&result);
    }
});
