//! What each fuzz target does with its input: one function for each parser of text or bytes that
//! others wrote, and for what is reported of them.
//!
//! A fuzzer calls them with inputs of its own (`fuzz_targets`), and the tests with a fixed sample
//! (`tests/it/fuzz.rs`, which includes this file): so none stops compiling unnoticed. A function
//! panics if what it says does not hold.

use flate2::Compression;
use flate2::write::GzEncoder;
use rigel::cli::import::header as imported_header;
use rigel::cli::orion_args::{self, Parsed};
use rigel::cli::{conf as settings, ranges as loads};
use rigel_analyse::{
    AdviceTerms, Calibration, PredictabilityTerms, Product, compare, database, predictability,
    round, summaries,
};
use rigel_database::access::{may_hold_password, shown};
use rigel_database::{Address, server};
use rigel_device::engine::trace::{RequestStep, TracepointFormat, id_of};
use rigel_device::engine::{self, signature as signs};
use rigel_import::{ImportFormat, Source, csv_columns::Columns, read};
use rigel_model::record::journal::{self as lines, MeasuredLine, Run};
use rigel_model::{
    Bound, Bytes, Error, Expectation, Moment, Nanos, Objective, Pattern, Provisioned, Ratio,
    SimSpec, drives_a_terminal, in_line, shell_word,
};
use rigel_report::document::Extent;
use rigel_report::{self as report, advice, compare as comparison, data, fio, html, text};
use rigel_verbs::Evaluated;
use rigel_verbs::calibrate::oracle_row;
use rigel_verbs::curve::Loads;
use rigel_verbs::expect::Profile;
use rigel_verbs::orion::lun as luns;
use std::io::Write;
use std::path::Path;

/// Whatever is typed as the URL of a database, it is read or refused with exit status 2; what was
/// read prints as a URL that is read as the same; and a refusal repeats nothing that stands before
/// an `@`.
pub fn access(text: &str) {
    const SECRET: &str = "Zq7vXk9";
    let read = |url: &str| Address::parse(url, &|_| None);
    for url in [text.to_string(), format!("postgres://ana:{text}@h/d")] {
        match read(&url) {
            Ok(address) => assert_eq!(read(&address.to_string()).as_ref(), Ok(&address), "{url}"),
            Err(error) => assert_eq!(error.exit_status(), 2),
        }
    }
    // The fuzzer learns the password from the comparisons below, and a host of that name may be
    // shown.
    if text.contains(SECRET) {
        return;
    }
    // A password in the middle of whatever was typed, with whatever follows the host.
    let middle = text.char_indices().nth(text.chars().count() / 2);
    let (before, after) = text.split_at(middle.map_or(0, |(at, _)| at));
    let url = format!("postgres://ana:{before}{SECRET}@{after}");
    assert!(
        may_hold_password(&url) && !shown(&url).contains(SECRET),
        "{url}"
    );
    if let Err(error) = read(&url) {
        assert!(!error.to_string().contains(SECRET), "{url}: {error}");
    }
}

/// Whatever a report of a database contains, it is read or refused; and what is read has a demand.
pub fn awr(text: &str) {
    /// The first words of each kind, which the fuzzer would take long to find.
    const STARTS: [&str; 5] = [
        "WORKLOAD REPOSITORY report for\n",
        "<html><h1>WORKLOAD REPOSITORY report for</h1>",
        "<html><h1>WORKLOAD REPOSITORY REPORT (RAC)</h1>",
        "STATSPACK report for\n",
        "~~BEGIN-OS-INFORMATION~~\n",
    ];
    let of = |name: &str, text: &str, format: ImportFormat| {
        let source = Source { name, text };
        if let Ok(found) = read(&[source], Some(format), &Columns::default()) {
            let _ = database(&found);
        }
    };
    for start in STARTS {
        of("report.1", &format!("{start}{text}"), ImportFormat::Awr);
    }
    of("listing", text, ImportFormat::Listing);
}

/// Whatever stands in a slob.conf or pgio.conf, it is settings that are printed as the same, or
/// refused with status 2.
pub fn conf(text: &str) {
    match settings::parse(text) {
        Ok(read) => {
            let printed = read.settings.print(read.dialect);
            assert_eq!(settings::parse(&printed).unwrap().settings, read.settings);
        }
        Err(error) => assert_eq!(error.exit_status(), 2),
    }
}

/// Whatever is sent to the server of metrics, it is answered by a whole head of HTTP, or more is
/// waited for.
pub fn http(bytes: &[u8]) {
    let content = |accept: &str| ("text/plain", accept.as_bytes().into());
    match rigel::serve::respond(bytes, &content) {
        Some(answer) => {
            let end = answer.windows(4).position(|four| four == b"\r\n\r\n");
            let head = &answer[..end.expect("a head has an end")];
            let head = std::str::from_utf8(head).expect("a head is text");
            let is_whole = head.lines().all(|line| !line.contains('\r'));
            assert!(head.starts_with("HTTP/1.1 ") && is_whole, "{head}");
        }
        None => assert!(bytes.len() <= 8 * 1024),
    }
}

/// Whatever stands in a file, it is some tool's results or refused; and what is read can be
/// reported, up to its page.
pub fn import(text: &str) {
    for format in ImportFormat::ALL.map(Some).into_iter().chain([None]) {
        // What a log of fio counts is in its name alone.
        for name in ["t_lat.csv", "t_lat.1.log", "t_iops.1.log"] {
            let source = Source { name, text };
            let found = read(&[source], format, &Columns::default()).unwrap_or_default();
            let _ = summaries(&found);
            if found.is_empty() {
                continue;
            }
            let header = imported_header(&[name.into()], &found);
            let run = Run {
                imported: found,
                ..Run::begun(header)
            };
            every_report(&Evaluated::of(run).expect("a run of what was read"));
        }
    }
}

/// Whatever stands in a journal, reading it ends in a run or in an error, and every report of a run
/// can be made.
pub fn journal(bytes: &[u8]) {
    let run = Run::parse(Path::new("journal.jsonl"), bytes);
    if let Ok(measured) = run.and_then(Evaluated::of) {
        let _ = (
            text::render(&measured.document(), Extent::Full),
            measured.json(),
        );
        let _ = measured.results.csv();
    }
}

/// Whatever stands in a LUN file, it is a list of targets or refused.
pub fn lun(text: &str) {
    if let Ok(members) = luns::parse(text, Path::new("t.lun"), |_| false) {
        assert!(!members.is_empty());
    }
}

/// Whatever stands in the marker of a private server's folder, it is read or refused.
pub fn marker(text: &str) {
    let whole = format!("a private server of rigel, format 1\n{text}");
    let _ = (server::is_marker(text), server::is_marker(&whole));
}

/// Whatever is typed after `orion`, it is a request, a help text or a refusal with exit status 2.
pub fn orion_arguments(text: &str) {
    match orion_args::parse(text.split('\n').map(Into::into)) {
        Ok(Parsed::Measure(args)) => {
            let members = || Ok(vec!["/dev/a".into(), "/dev/b".into()]);
            if let Err(error) = args.resolve(members, |_| false) {
                assert_eq!(error.exit_status(), 2);
            }
        }
        Ok(Parsed::Help(_)) => {}
        Err(error) => assert_eq!(error.exit_status(), 2),
    }
}

/// Whatever the bytes of a file are, compressed or not, their text is small and read or refused.
pub fn packed(bytes: &[u8]) {
    /// How often a compressed file repeats the bytes: few bytes on disk, many in memory.
    const TIMES: usize = 4096;
    let mut packed = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..TIMES {
        packed.write_all(bytes).expect("memory takes every byte");
    }
    let packed = packed.finish().expect("memory takes every byte");
    for bytes in [bytes, &packed] {
        if let Ok(text) = rigel_import::text("f", bytes.to_vec()) {
            let source = Source {
                name: "f",
                text: &text,
            };
            let _ = read(&[source], None, &Columns::default());
        }
    }
}

/// Whatever a PostgreSQL server sends, in pieces of whatever size, the client ends with an answer or
/// an error in words, and takes bounded memory.
pub fn postgres((piece, bytes): (u16, &[u8])) {
    let (steps, memory, end) = rigel_database::converse(bytes, piece.into());
    assert!(steps == 6 || end.is_some_and(|why| !why.is_empty()));
    assert!(memory <= 2 * 1024 * 1024, "{memory}");
}

/// Sizes, durations, shares, bounds, objectives, expectations, profiles, moments, patterns and models: what is read is
/// printed in a form that is read as the same.
pub fn quantities(text: &str) {
    let _ = text.parse::<Ratio>();
    if let Ok(nanos) = text.parse::<Nanos>() {
        assert_eq!(nanos.exact().parse(), Ok(nanos));
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        assert_eq!(bytes.exact().parse(), Ok(bytes));
    }
    if let Ok(bound) = text.parse::<Bound>() {
        // A quantile goes through percent, and so through rounding.
        let again: Bound = bound.to_string().parse().unwrap();
        assert!(again.latency == bound.latency && (again.quantile - bound.quantile).abs() < 1e-6);
    }
    if let Ok(objective) = text.parse::<Objective>() {
        assert_eq!(objective.to_string().parse(), Ok(objective));
    }
    if let Ok(expectation) = text.parse::<Expectation>() {
        assert_eq!(expectation.to_string().parse(), Ok(expectation));
    }
    if let Ok(sold) = text.parse::<Provisioned>() {
        assert_eq!(sold.to_string().parse(), Ok(sold));
    }
    let _ = Profile::parse(text, "ours.json");
    if let Ok(moment) = text.parse::<Moment>() {
        assert_eq!(moment.to_string().parse(), Ok(moment));
    }
    if let Ok(pattern) = text.parse::<Pattern>() {
        assert_eq!(pattern.to_string().parse(), Ok(pattern));
    }
    if let Ok(spec) = text.parse::<SimSpec>() {
        let printed = spec.to_string();
        assert_eq!(printed.trim_start_matches("sim:").parse(), Ok(spec));
    }
}

/// Whatever is typed as the loads of a curve, it is few loads, ascending and above zero, or refused
/// with exit status 2.
pub fn ranges(text: &str) {
    for loads in [loads::depths("--depth", text), loads::rates(text)] {
        let loads: Vec<f64> = match loads {
            Ok(Loads::Depths(depths)) => depths.into_iter().map(f64::from).collect(),
            Ok(Loads::Rates(rates)) => rates.into_iter().map(|rate| rate as f64).collect(),
            Ok(Loads::Percents(percents)) => percents,
            Err(error) => {
                assert_eq!(error.exit_status(), 2);
                continue;
            }
        };
        assert!((1..=200).contains(&loads.len()) && loads[0] > 0.0);
        assert!(loads.windows(2).all(|two| two[0] < two[1]));
    }
    if let Ok(mix) = loads::mix(text) {
        assert!((0.0..=1.0).contains(&mix.writes.get()));
    }
    if let Ok(background) = loads::background(text) {
        assert!(background.iter().all(|one| one.depth > 0 && one.length > 0));
    }
}

/// Whatever stands in a journal, every report of it is made or refused, and so is a comparison of
/// the run with the next one. The input is two journals, one after the other, with an empty line
/// between them.
pub fn reports(bytes: &[u8]) {
    let between = bytes.windows(2).position(|two| two == b"\n\n");
    let (first, second) = bytes.split_at(between.map_or(bytes.len(), |at| at + 1));
    let read = |text: &[u8]| {
        let text = text.strip_prefix(b"\n").unwrap_or(text);
        let run = Run::parse(Path::new("journal"), text).ok()?;
        Evaluated::of(run).ok()
    };
    let runs: Vec<Evaluated> = [first, second].into_iter().filter_map(read).collect();
    runs.iter().for_each(every_report);
    if let [one, two] = &runs[..] {
        comparison_of([("one", one), ("two", two)]);
    }
}

/// Makes every report of a run.
pub fn every_report(measured: &Evaluated) {
    let run = &measured.run;
    let document = measured.document();
    let _ = html::render(&document);
    let _ = [Extent::Full, Extent::Screen].map(|extent| text::render(&document, extent));
    let _ = (measured.json(), measured.results.csv());
    let _ = (
        data::csv(measured.results.points()),
        report::csv_of_hosts(run),
    );
    if let Some(found) = measured.results.downcast_ref::<Calibration>() {
        let terms = AdviceTerms::default();
        let _ = oracle_row::oracle_row(run, found);
        let _ = [Extent::Full, Extent::Screen]
            .map(|extent| advice::text(run, found, &Product::ALL, terms, extent));
        let _ = advice::json(run, found, &Product::ALL, terms);
    }
    let engine = engine::info(&run.header.engine.name);
    for point in run.header.points.iter().take(4) {
        let name = point.coordinates.name();
        if let Ok(job) = fio::job(run, measured.verb.grain(), &name, engine) {
            // Nothing that stands in the journal becomes an option of its own.
            let known = |line: &str| {
                line.is_empty() || line.starts_with([';', '#', '[']) || line.contains('=')
            };
            let is_sound = |line: &str| known(line) && !line.starts_with("exec");
            assert!(job.lines().all(is_sound), "{job}");
        }
    }
}

/// Compares two runs, and makes every report of that.
pub fn comparison_of(runs: [(&str, &Evaluated); 2]) {
    let subjects = runs.map(|(name, measured)| measured.subject(name));
    let found = compare(&subjects, None);
    let _ = comparison::json(&found);
    let beside = runs.map(|(_, measured)| &measured.run);
    let beside: Vec<_> = beside.into_iter().zip(&subjects).collect();
    let document = comparison::document(&beside, &found);
    let _ = (
        html::render(&document),
        text::render(&document, Extent::Full),
    );
}

/// Whatever a device holds, looking for the signs of data on it ends.
pub fn signature(bytes: &[u8]) {
    let (head, tail) = bytes.split_at(bytes.len() / 2);
    let _ = signs::signature(head, tail, bytes.len() as u64);
}

/// Any journal of a soak is scanned to its end or refused, and its predictability can be reported.
pub fn soak(bytes: &[u8]) {
    let path = std::env::temp_dir().join(format!("rigel-fuzz-soak-{}", std::process::id()));
    std::fs::write(&path, bytes).expect("there is room for a journal");
    let mut rounds = Vec::new();
    let scanned = lines::scan(&path, &mut |_, measured| {
        if let MeasuredLine::Point(record, _) = measured {
            rounds.extend(round(&record, &[]));
        }
    });
    let _ = std::fs::remove_file(&path);
    if scanned.is_ok() {
        let terms = PredictabilityTerms {
            objectives: Vec::new(),
            share: 0.99,
            every_seconds: Some(60.0),
            planned: None,
            is_open: false,
            samples: rigel_analyse::Samples::Rounds,
        };
        let _ = predictability(&rounds, &terms);
    }
}

/// The layout of a tracepoint, and the bytes of its events: any text and any bytes.
pub fn tracepoint((text, raw): (&str, &[u8])) {
    for step in RequestStep::ALL {
        if let Ok(format) = TracepointFormat::parse(step, text) {
            let _ = format.event(1, raw);
        }
    }
    let _ = id_of(raw);
}

/// Whatever a name contains, it stays in its line, and a shell takes it as one word.
pub fn words(name: &str) {
    let spelled = in_line(name);
    let word = shell_word(name);
    for text in [&spelled[..], &word] {
        assert!(!text.chars().any(drives_a_terminal), "{text:?}");
    }
    assert_eq!(in_line(&spelled), spelled);
    let is_quoted = word.ends_with('\'') && word.trim_start_matches('$').starts_with('\'');
    let special = [' ', ';', '&', '|', '$', '`', '\'', '"', '\\', '<', '>', '('];
    assert!(is_quoted || !word.contains(special));
    let error = Error::usage(format!("'{name}' is no target"), "give another");
    assert_eq!(error.to_string().lines().count(), 2);
}
