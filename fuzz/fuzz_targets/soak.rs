//! Any journal of a soak is scanned to its end or refused, and its predictability can be reported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_analyse::{PredictabilityTerms, predictability, round};
use rigel_model::record::journal::{self, MeasuredLine};

fuzz_target!(|bytes: &[u8]| {
    let path = std::env::temp_dir().join(format!("rigel-fuzz-soak-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("there is room for a journal");
    let mut rounds = Vec::new();
    let scanned = journal::scan(&path, &mut |_, measured| {
        if let MeasuredLine::Point(record, _) = measured {
            rounds.extend(round(&record, &[]));
        }
    });
    let _ = std::fs::remove_file(&path);
    if scanned.is_ok() {
        let terms =
            PredictabilityTerms { objectives: vec![], share: 0.99, every_seconds: Some(60.0), planned: None, is_open: false };
        let _ = predictability(&rounds, &terms);
    }
});
