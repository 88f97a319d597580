//! Whatever stands in a journal, reading it ends in a run or in an error, and every report of a run can be made.
#![no_main]

use rigel_model::record::journal::Run;
use libfuzzer_sys::fuzz_target;
use rigel_report::document::Extent;
use rigel_report::text;
use rigel_verbs::Evaluated;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(measured) = Run::parse(std::path::Path::new("journal.jsonl"), bytes).and_then(Evaluated::of) {
        let _ = (text::render(&measured.document(), Extent::Full), measured.json());
        let _ = measured.results.csv();
    }
});
