//! Whatever stands in a journal, every report of it is made or refused: the page, fio's job, advice, and a comparison of
//! the run with the next one. The input is two journals, one after the other, with an empty line between them.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rigel_analyse::{AdviceTerms, Calibration, Product, compare};
use rigel_device::engine;
use rigel_model::record::journal::Run;
use rigel_report::document::Extent;
use rigel_report::{advice, compare as comparison, fio, html, text};
use rigel_verbs::Evaluated;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let between = bytes.windows(2).position(|two| two == b"\n\n").map_or(bytes.len(), |at| at + 1);
    let (first, second) = bytes.split_at(between);
    let read = |text: &[u8]| Run::parse(Path::new("journal"), text.strip_prefix(b"\n").unwrap_or(text)).ok();
    let read = |text: &[u8]| Evaluated::of(read(text)?).ok();
    let runs: Vec<Evaluated> = [first, second].into_iter().filter_map(read).collect();
    runs.iter().for_each(report);
    if let [one, two] = &runs[..] {
        let subjects = [one.subject("one"), two.subject("two")];
        let found = compare(&subjects, None);
        let _ = comparison::json(&found);
        let beside: Vec<_> = runs.iter().map(|measured| &measured.run).zip(&subjects).collect();
        let document = comparison::document(&beside, &found);
        let _ = (html::render(&document), text::render(&document, Extent::Full));
    }
});

fn report(measured: &Evaluated) {
    let run = &measured.run;
    let document = measured.document();
    let _ = (html::render(&document), text::render(&document, Extent::Screen));
    let _ = (measured.json(), measured.results.csv());
    if let Some(found) = measured.results.downcast_ref::<Calibration>() {
        let terms = AdviceTerms::default();
        let _ = (
            advice::text(run, found, &Product::ALL, terms),
            advice::json(run, found, &Product::ALL, terms),
        );
    }
    for point in &run.header.points {
        if let Ok(job) = fio::job(run, measured.verb.grain(), &point.coordinates.name(), engine::info(&run.header.engine.name)) {
            // Nothing that stands in the journal becomes an option of its own.
            let known = |line: &str| line.is_empty() || line.starts_with([';', '#', '[']) || line.contains('=');
            assert!(job.lines().all(|line| known(line) && !line.starts_with("exec")), "{job}");
        }
    }
}
