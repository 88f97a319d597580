//! Laws and reports of `rigel curve` on the simulated device: virtual time, so the same seed gives
//! the same figures.
//!
//! The reports are in `tests/golden/curve/`; `UPDATE_GOLDEN=1 cargo test --test it curve::`
//! rewrites them.

use crate::common::{self, Place, rigel};
use serde_json::Value;

/// Runs with this seed into the directory `run`. Returns the report as JSON.
fn measured(place: &Place, arguments: &str) -> Value {
    measured_with(place, arguments, 7)
}

fn measured_with(place: &Place, arguments: &str, seed: u64) -> Value {
    let line = format!("curve {arguments} --seed {seed} --no-progress --json --out run");
    let output = rigel(place, &line).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

fn report(place: &Place, arguments: &str) -> String {
    let output = rigel(place, &format!("report run {arguments}"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Requested rate and the class of every open-loop point.
fn open_points(document: &Value) -> Vec<(f64, &Value)> {
    let points = document["points"].as_array().unwrap().iter();
    points
        .filter_map(|point| Some((point["rate_per_s"].as_f64()?, &point["classes"][0])))
        .collect()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn offered_equals_done_failed_and_unserved_and_overload_is_marked() {
    let place = Place::new("curve-law");
    let document = measured(&place, "sim:8,500us --rate 10%..120%");
    let maximum = number(&document["curve"]["maximum"]["iops"]["value"]);
    // Eight servers of 500 us each.
    assert!((maximum / 16_000.0 - 1.0).abs() < 0.02, "{maximum}");
    let points = open_points(&document);
    assert_eq!(points.len(), 12);
    let shown = report(&place, "--verbose");
    let place_of = |what: &str| shown.find(what).unwrap();
    assert!(
        place_of("\nLatency against throughput\n") < place_of("\nAll points\n"),
        "the chart comes before the tables"
    );
    let measured = |rate: f64| {
        let of_rate = |point: &&Value| point["rate_per_s"].as_f64() == Some(rate);
        number(
            &document["points"]
                .as_array()
                .unwrap()
                .iter()
                .find(of_rate)
                .unwrap()["measured_s"],
        )
    };
    let text = report(&place, "--verbose");
    for (rate, class) in points {
        let failed: f64 = class["failed"]
            .as_object()
            .unwrap()
            .values()
            .map(number)
            .sum();
        let (done, unserved) = (number(&class["done"]), number(&class["unserved"]));
        let offered = number(&class["offered"]) * measured(rate);
        assert!(
            (offered - (done + failed + unserved)).abs() < 0.5,
            "{rate}: {class}"
        );
        // Poisson arrivals: five standard deviations of chance.
        let expected = rate * measured(rate);
        assert!(
            (offered - expected).abs() < 5.0 * expected.sqrt(),
            "{rate}: {offered} of {expected}"
        );
        let line = text
            .lines()
            .find(|line| line.trim_start().starts_with(&format!("{rate}/s ")))
            .unwrap();
        if rate > 1.05 * maximum {
            assert!(
                line.ends_with("not met") && unserved > 0.0 && class["met"] == false,
                "{line}"
            );
        }
        if rate < 0.95 * maximum {
            assert!(
                !line.contains("not met") && unserved == 0.0 && class["met"] == true,
                "{line}"
            );
        }
    }
}

#[test]
fn response_counts_from_the_due_time_and_service_does_not() {
    let place = Place::new("curve-response");
    // One server of exactly 1 ms, offered 50 % at random times, waits as M/D/1 does: 0.5 ms on
    // average.
    let document = measured(
        &place,
        "sim:1,1ms,fixed --rate 500 --precision 1% --point-max 100s",
    );
    let points = open_points(&document);
    let (response, service) = (
        number(&points[0].1["mean_us"]),
        number(&points[0].1["service"]["mean_us"]),
    );
    assert!((response - 1500.0).abs() < 75.0, "{response}");
    // Waiting within the device is part of its service time; waiting to be issued would not be.
    assert!((response - service).abs() < 1.0, "{service}");
    let place = Place::new("curve-response-one");
    let document = measured(
        &place,
        "sim:1,1ms,fixed --rate 500 --in-flight 1 --precision 1% --point-max 100s",
    );
    let points = open_points(&document);
    let (response, service) = (
        number(&points[0].1["mean_us"]),
        number(&points[0].1["service"]["mean_us"]),
    );
    assert!(
        (response - 1500.0).abs() < 75.0 && (service - 1000.0).abs() < 5.0,
        "{response} {service}"
    );
}

#[test]
fn a_stall_is_in_the_open_loop_and_hidden_from_the_closed_one() {
    let place = Place::new("curve-stall");
    let stalls = "sim:8,100us,stall=1s/10s --precision 0.1% --point-max 20s";
    let open = measured(&place, &format!("{stalls} --rate 20k"));
    let place = Place::new("curve-stall-closed");
    let closed = measured(&place, &format!("{stalls} --depth 4"));
    let p99 = |document: &Value| number(&document["points"][0]["classes"][0]["p99_us"]);
    // A tenth of all arrivals meet the stall, and the latest tenth of those wait for 0.9 s of it.
    assert!(p99(&open) > 800_000.0, "{}", p99(&open));
    assert!(p99(&closed) < 1000.0, "{}", p99(&closed));
}

/// A csv without the one figure that depends on this machine instead of the model.
fn without_cpu(csv: &str) -> String {
    let column = csv
        .lines()
        .next()
        .unwrap()
        .split(',')
        .position(|name| name == "cpu_us_per_io")
        .unwrap();
    let line = |line: &str| {
        let mut cells: Vec<&str> = line.split(',').collect();
        cells[column] = "";
        cells.join(",") + "\n"
    };
    csv.lines().map(line).collect()
}

#[test]
fn reports_read_as_ever() {
    for (name, arguments) in [
        ("depth", "sim:8,100us --depth 1..64 --max-latency 500us"),
        (
            "rate",
            "sim:8,100us --rate 10%..120%/22% --arrivals uniform",
        ),
        (
            "beside",
            "sim:8,100us --depth 2,4 --mix read=70,log=30 --background large:2 --pattern zipf:0.99",
        ),
        ("capped", "sim:8,100us,limit=2000/s --depth 1..16"),
        (
            "logs",
            "sim:8,100us --log grow,reused --writers 1,4,16 --background read:500/s",
        ),
    ] {
        let place = Place::new(&format!("curve-golden-{name}"));
        measured(&place, arguments);
        let text = report(&place, "");
        // The heading ends with the time at which the run began.
        let (heading, rest) = text.split_once('\n').unwrap();
        let text = format!("{}, [begun]\n{rest}", heading.rsplit_once(", ").unwrap().0);
        common::golden_screen(&format!("curve/{name}.txt"), &text);
        common::golden(
            &format!("curve/{name}.csv"),
            &without_cpu(&report(&place, "--format csv")),
        );
    }
}

#[test]
fn commits_that_are_expected_are_those_of_writers_of_a_logs_own_file() {
    let place = Place::new("curve-expected-commits");
    measured(&place, "sim:8,100us --log grow,reused --writers 1,4");
    // Four writers of 100 us each.
    for (expected, status) in [
        ("commits>=20000@reused,4", 0),
        ("commits>=80000@grow,4", 3),
        ("commits>=1@reused,8", 5),
        ("log p99<1s@grow", 0),
    ] {
        let output = rigel(&place, "report run --expect")
            .arg(expected)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "{expected}: {output:?}");
    }
}

#[test]
fn a_load_that_was_too_short_to_judge_is_undecided_and_not_refused() {
    let place = Place::new("curve-undecided");
    // The device serves 3,000 per second, and no response time was above the bound.
    let measured = |seed: u32, rates: &str| {
        let line = format!(
            "curve sim:64,500us,limit=3000/s --rate {rates} --max-latency 10ms --seed {seed} \
             --no-progress --out {rates}-{seed}"
        );
        let output = rigel(&place, &line).output().unwrap();
        let mut shown = rigel(&place, &format!("report {rates}-{seed} --verbose"));
        let text = String::from_utf8(shown.output().unwrap().stdout).unwrap();
        let words: Vec<&str> = text.split_whitespace().collect();
        (output.status.code().unwrap(), words.join(" "))
    };
    let mut statuses = Vec::new();
    for seed in 1..=6 {
        let (status, text) = measured(seed, "2800");
        assert!(!text.contains("No offered rate met"), "{seed}: {text}");
        assert_eq!(status == 4, text.contains("is undecided"), "{seed}: {text}");
        statuses.push(status);
        let (status, text) = measured(seed, "1k,2k,2500");
        assert_eq!(status, 0, "{seed}: {text}");
        let is_all = text.contains("the maximum that was offered");
        assert_eq!(
            is_all,
            text.contains("it serves 2,500 I/Os"),
            "{seed}: {text}"
        );
    }
    assert!(statuses.contains(&4), "{statuses:?}");
    assert!(
        statuses.iter().all(|status| [0, 4].contains(status)),
        "{statuses:?}"
    );
    // More than the device can do is refused.
    let (status, text) = measured(1, "4k");
    assert_eq!(status, 3, "{text}");
    assert!(text.contains("No offered rate met the bound"), "{text}");
}

#[test]
fn visits_do_not_keep_step_with_a_regular_stall() {
    let place = Place::new("curve-regular");
    // Four at a time get 40,000 per second; a tenth of the time nothing is done. Visits of one length
    // at equal distances would each meet one stall of a second's and never the warm-up's.
    let document = measured(
        &place,
        "sim:8,100us,stall=100ms/1s --depth 4 --precision 0.1% --point-max 40s",
    );
    let point = &document["points"][0];
    let lengths: std::collections::BTreeSet<String> = point["visits"]
        .as_array()
        .unwrap()
        .iter()
        .map(|visit| visit["measured_s"].to_string())
        .collect();
    assert!(lengths.len() > 2, "{lengths:?}");
    let iops = number(&document["curve"]["maximum"]["iops"]["value"]);
    assert!((35_200.0..36_800.0).contains(&iops), "{iops}");
}

/// Stalls of seven seconds and visits of half a second: some begin in a warm-up and leave a visit empty.
#[test]
fn a_stall_that_outlasts_visits_is_as_long_as_it_was_and_stalled_all() {
    let place = Place::new("curve-long-stall");
    let target = "sim:4,1ms,stall=7s/20s --depth 1,2,4,8 --point-min 1s --point-max 30s";
    let document = measured(&place, target);
    let points = document["points"].as_array().unwrap();
    let stalls = points.iter().map(|point| &point["classes"][0]["stalls"]);
    let longest: Vec<f64> = stalls
        .filter_map(|stalls| stalls["longest_seconds"].as_f64())
        .collect();
    assert!(!longest.is_empty(), "{document}");
    assert!(
        longest
            .iter()
            .all(|seconds| (seconds / 7.0 - 1.0).abs() < 0.02),
        "{longest:?}"
    );
    let findings = document["findings"].as_array().unwrap();
    let stall = findings.iter().find(|finding| finding["name"] == "stall");
    let stall = stall.unwrap()["what"].as_str().unwrap();
    assert!(stall.contains(": all I/O stalled"), "{stall}");
    assert!(!stall.contains("others completed"), "{stall}");
}

/// Without the last rule of visits, this depth is precise after six seconds, before the first stall.
#[test]
fn one_depth_is_measured_long_enough_to_meet_a_stall_that_comes_every_ten_seconds() {
    let place = Place::new("curve-rare-stall");
    let document = measured(&place, "sim:4,250us,stall=1s/10s --depth 4");
    let point = &document["points"][0];
    assert!(number(&point["measured_s"]) >= 20.0, "{point}");
    let findings = document["findings"].as_array().unwrap();
    let stalls = findings.iter().filter(|finding| finding["name"] == "stall");
    assert_eq!(stalls.count(), 1, "{findings:?}");
    // A tenth of the time is lost: what one stall or two show of that is uncertain.
    let rate = &point["classes"][0]["confidence"]["iops"];
    let (value, error) = (number(&rate["value"]), number(&rate["error"]));
    assert!(error > 0.02 * value, "{rate}");
}

/// Rates far below the bound and one that is not served: the curve through the former meets the bound
/// beyond the latter.
#[test]
fn where_a_curve_meets_the_bound_at_what_is_not_served_the_rates_alone_say_where_it_is() {
    let place = Place::new("curve-beyond");
    let limited = "sim:16,1ms,limit=2000/s --rate 1500,1800,2200 --max-latency 20ms";
    let document = measured_with(&place, limited, 1);
    let sustained = &document["curve"]["sustained"];
    let [kept, broken] = ["kept_rate", "broken_rate"].map(|name| sustained[name].as_u64().unwrap());
    // The true one is 1,879.
    assert!(kept < 1879 && 1879 < broken, "{sustained}");
    let limits = &sustained["rate"]["interval"];
    let [low, high] = ["low", "high"].map(|end| limits[end].as_f64().unwrap());
    assert_eq!((low, high), (kept as f64, broken as f64));
}
