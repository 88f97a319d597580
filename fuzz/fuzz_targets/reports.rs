//! Whatever stands in a journal, every report of it is made or refused: the page, fio's job, advice, and a comparison of
//! the run with the next one. The input is two journals, one after the other, with an empty line between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel::analyse::{Product, RunResult, compare};
use rigel::record::journal::{self, Run};
use rigel::report::table::Detail;
use rigel::report::{advice, comparison, data, fio, html};
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let between = bytes.windows(2).position(|two| two == b"\n\n").map_or(bytes.len(), |at| at + 1);
    let (first, second) = bytes.split_at(between);
    let read = |text: &[u8]| journal::parse(Path::new("journal"), text.strip_prefix(b"\n").unwrap_or(text)).ok();
    let runs: Vec<Run> = [first, second].into_iter().filter_map(read).collect();
    runs.iter().for_each(report);
    if let [one, two] = &runs[..] {
        let subjects = [comparison::subject("one", one), comparison::subject("two", two)];
        let found = compare(&subjects, None);
        let _ = (comparison::text(&found), comparison::json(&found));
        let beside: Vec<_> = runs.iter().zip(&subjects).collect();
        let _ = html::render(&html::compared(&beside, &found));
    }
});

fn report(run: &Run) {
    let _ = (html::render(&html::of(run)), data::json(run));
    let result = rigel::report::result(run);
    let _ = rigel::report::text(run, &result, Detail::Usual);
    let _ = rigel::report::csv(run, &result);
    if let RunResult::Calibration(found) = &result {
        let _ = (advice::text(run, found, &Product::ALL), advice::json(run, found, &Product::ALL));
    }
    for point in &run.header.points {
        if let Ok(job) = fio::job(run, &point.coordinates.name()) {
            // Nothing that stands in the journal becomes an option of its own.
            let known = |line: &str| line.is_empty() || line.starts_with([';', '#', '[']) || line.contains('=');
            assert!(job.lines().all(|line| known(line) && !line.starts_with("exec")), "{job}");
        }
    }
}
