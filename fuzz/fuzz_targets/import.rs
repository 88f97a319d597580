//! Whatever stands in a file, it is some tool's results or refused; and what is read can be reported.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_analyse::{database, imported, summaries};
use rigel_import::{ImportFormat, Source, read, table::Columns};

fuzz_target!(|text: &str| {
    for format in ImportFormat::ALL.map(Some).into_iter().chain([None]) {
        // What a log of fio counts is in its name alone.
        for name in ["t_lat.csv", "t_lat.1.log", "t_iops.1.log"] {
            let source = Source { name, text };
            for found in read(&[source], format, &Columns::default()).unwrap_or_default() {
                let _ = imported(&found);
                let _ = database(std::slice::from_ref(&found));
                let _ = summaries(&[found]);
            }
        }
    }
});
