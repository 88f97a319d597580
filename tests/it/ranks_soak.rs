//! The hosts in the report of a soak: rounds of three models in virtual time, through a journal.

use crate::common::{Place, golden, header};
use crate::ranks::{group, measured, spec};
use rigel_analyse::series::soak_request::SoakRequest;
use rigel_analyse::{SoakReader, SoakResult};
use rigel_model::record::journal::Header;
use rigel_model::record::journal::MeasuredLine;
use rigel_model::record::journal::Run;
use rigel_model::record::journal::{self, Journal};
use rigel_model::record::ranks::merged;
use rigel_model::record::{End, RankLost, RunEnd};
use rigel_model::{FindingName, Moment, Nanos};
use rigel_report::document::{Document, Extent};
use rigel_report::{html, soak, text};

const ROUNDS: u32 = 10;

fn request() -> SoakRequest {
    SoakRequest {
        limit: Nanos::from_secs(60),
        every: Nanos::from_secs(60),
        lasting: Nanos::from_secs(600),
        objectives: Vec::new(),
        ..crate::compare_series::request()
    }
}

/// The journal of a soak by three hosts. The third is slow from round 4 on; in round 7 the second is
/// lost, which ends the soak until it is resumed.
fn soaked(place: &Place) -> (Header, SoakResult) {
    let (request, directory) = (request(), place.0.join("run"));
    let start: Moment = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut header = header(spec("2,1ms"), &request, &start.to_string());
    header.ranks = Some(Box::new(group(3)));
    let mut journal = Journal::create(&directory, &header).unwrap();
    for number in 1..=ROUNDS {
        let point = request.point(number, Nanos(0), 1 << 30, u64::from(number));
        if number == 7 {
            let lost = RankLost {
                rank: 1,
                host: "h2".into(),
                coordinates: point.coordinates,
                how: "no beat for 10s".into(),
            };
            journal.lost(&lost).unwrap();
            continue;
        }
        let slow = |rank, _| {
            spec(if rank == 2 && number >= 4 {
                "2,2ms"
            } else {
                "2,1ms"
            })
        };
        let now = u64::from(number) * 60_000_000_000;
        let parts = measured(&point, 3, now, &slow);
        let began = start.plus_seconds(i64::from(number - 1) * 60);
        let sum = merged(began.to_string(), &parts).unwrap();
        assert_eq!(sum.end, End::Complete, "{}", sum.coordinates);
        journal.point_of_ranks(&parts, &sum).unwrap();
    }
    journal.end(&RunEnd::complete(0)).unwrap();
    read(&directory)
}

/// Round by round, as the program reads it.
fn read(directory: &std::path::Path) -> (Header, SoakResult) {
    let mut reader = SoakReader::new(&request());
    let run = journal::scan(directory, &mut |_, measured| {
        let MeasuredLine::Point(record, parts) = measured else {
            panic!("a soak has rounds");
        };
        assert_eq!(parts.len(), 3, "{}", record.coordinates);
        reader.add(&record);
        reader.add_parts(&parts);
    })
    .unwrap();
    assert!(!run.cut && run.ranks.parts.is_empty());
    reader.end(&run);
    (run.header, reader.result(&request()))
}

#[test]
fn a_soak_says_what_each_host_did_and_in_how_many_rounds_it_was_slow() {
    let place = Place::new("ranks-soak-hosts");
    let (header, result) = soaked(&place);
    let hosts = result.hosts.as_ref().unwrap();
    assert_eq!((hosts.ranks, hosts.hosts, hosts.rounds), (3, 3, 9));
    let slow: Vec<u32> = hosts.by_host.iter().map(|host| host.slow_rounds).collect();
    let lost: Vec<u32> = hosts.by_host.iter().map(|host| host.lost_rounds).collect();
    assert_eq!((slow, lost), (vec![0, 0, 6], vec![0, 1, 0]));
    // Nothing is lost between the hosts and the sum: models begin in common windows.
    let run = Run::read(&place.0.join("run")).unwrap();
    for host in &hosts.by_host {
        let parts = run.ranks.parts.iter().flat_map(|point| &point.parts);
        let own = parts.filter(|part| part.rank == host.rank);
        let done: u64 = own.map(|part| part.record.streams[0].done()).sum();
        assert_eq!(host.operations, done, "{}", host.host);
    }
    let third = &hosts.by_host[2];
    let times = [&hosts.by_host[0], third].map(|host| host.p99_us.unwrap());
    assert!(times[1] > 1.5 * times[0], "{times:?}");
    assert!(
        third.differs_in.iter().any(|one| one.fact == "MTU"),
        "{third:?}"
    );
    let has = |name: FindingName| result.findings.iter().any(|finding| finding.is(name));
    assert!(has(FindingName::Unequal) && has(FindingName::RankLost));

    let document = soak::document(&header, &result, Document::default());
    golden("ranks/soak.txt", &section(&document));
    let page = html::render(&document);
    assert!(page.contains("The hosts") && page.contains("lost rounds"));
    let whole = crate::common::evaluated(&run);
    let json: serde_json::Value = serde_json::from_str(&whole.json()).unwrap();
    assert_eq!(json["ranks"]["by_host"][2]["slow_rounds"], 6);
    assert_eq!(json["ranks"]["lost"][0]["host"], "h2");
    assert_eq!(json["ranks"]["end_status"], 0);

    // A report of a journal in memory says the same.
    let whole = whole.results.downcast_ref::<SoakResult>().unwrap();
    assert_eq!(whole.hosts, result.hosts);
    let what = |found: &SoakResult| {
        let findings = found.findings.iter();
        findings
            .map(|finding| finding.what.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(what(whole), what(&result));
}

/// The section about the hosts, as text.
fn section(document: &Document) -> String {
    let hosts = document
        .sections
        .iter()
        .filter(|section| section.id == "hosts");
    let alone = Document {
        headlines: Vec::new(),
        sections: hosts.cloned().collect(),
        ..document.clone()
    };
    assert_eq!(alone.sections.len(), 1, "once");
    let text = text::render(&alone, Extent::Full);
    let from = text.find("The hosts\n").unwrap();
    text[from..].to_string()
}

#[test]
fn a_soak_of_one_process_has_no_hosts() {
    let place = Place::new("soak-alone");
    let (mut header, _) = soaked(&place);
    header.ranks = None;
    let mut reader = SoakReader::new(&request());
    reader.end(&Run::begun(header.clone()));
    let result = reader.result(&request());
    assert_eq!(result.hosts, None);
    let ids = soak::document(&header, &result, Document::default()).sections;
    assert!(ids.iter().all(|section| section.id != "hosts"));
}
