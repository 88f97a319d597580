//! Whatever a report of a database contains, it is read or refused; and what is read has a demand.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_analyse::{database};
use rigel_import::{ImportFormat, Source, read, table::Columns};

/// The first words of each kind, which the fuzzer would take long to find.
const STARTS: [&str; 5] = [
    "WORKLOAD REPOSITORY report for\n",
    "<html><h1>WORKLOAD REPOSITORY report for</h1>",
    "<html><h1>WORKLOAD REPOSITORY REPORT (RAC)</h1>",
    "STATSPACK report for\n",
    "~~BEGIN-OS-INFORMATION~~\n",
];

fuzz_target!(|text: &str| {
    for start in STARTS {
        let text = format!("{start}{text}");
        let source = Source { name: "report.1", text: &text };
        if let Ok(found) = read(&[source], Some(ImportFormat::Awr), &Columns::default()) {
            let _ = database(&found);
        }
    }
    let source = Source { name: "listing", text };
    if let Ok(found) = read(&[source], Some(ImportFormat::Listing), &Columns::default()) {
        let _ = database(&found);
    }
});
