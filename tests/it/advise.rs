//! Complete advice runs on a device with known results: `sim:` serves eight operations at a time,
//! each in 200 us plus 2 ns per byte.

use crate::common::{Place, rigel};
use serde_json::Value;
use std::path::Path;

const DEVICE: &str = "sim:8,200us,fixed,bandwidth=500MB";

fn advised(place: &Place, device: &str, command: &str, products: &str) -> Value {
    let run = rigel(
        place,
        &format!("calibrate {device} --seed 1 {command} --out run --no-progress"),
    )
    .output()
    .unwrap();
    assert!(run.status.success(), "{run:?}");
    let advice = rigel(place, &format!("advise run --json --for {products}"))
        .output()
        .unwrap();
    assert!(advice.status.success(), "{advice:?}");
    serde_json::from_slice(&advice.stdout).expect("one document on stdout")
}

fn setting<'a>(document: &'a Value, product: &str, name: &str) -> &'a Value {
    let products = document["products"].as_array().expect("products");
    let section = products
        .iter()
        .find(|section| section["database"] == product)
        .expect(product);
    let settings = section["settings"].as_array().expect("settings");
    settings
        .iter()
        .find(|setting| setting["setting"] == name)
        .expect(name)
}

/// Fails unless the figure is within 2 % of `truth`, the requested precision.
fn close(setting: &Value, truth: f64) {
    let figure = setting["estimate"]["value"]
        .as_f64()
        .unwrap_or_else(|| panic!("{setting}"));
    assert!(
        (figure / truth - 1.0).abs() < 0.02,
        "{figure} for {truth}: {setting}"
    );
}

#[test]
fn settings_follow_from_a_device_that_is_known() {
    let place = Place::new("advise-truth");
    let document = advised(
        &place,
        DEVICE,
        "--write --as mysql",
        "postgres,mysql,oracle",
    );
    let microseconds = |bytes: f64| 200.0 + bytes / 500.0;
    let (block, large) = (f64::from(16 << 10), f64::from(1 << 20));
    let rate = 8e6 / microseconds(block);
    // A scan reads 128 KiB at once, and the calibration 1 MiB.
    let scan = f64::from(128 << 10);
    // Pages of PostgreSQL have 8 KiB, and the calibration read 16 KiB.
    let page = f64::from(8 << 10);
    let of_scan = microseconds(scan) / (scan / page);
    close(
        setting(&document, "postgres", "random_page_cost"),
        microseconds(page) / of_scan,
    );
    let depth = setting(&document, "postgres", "effective_io_concurrency");
    assert_eq!(depth["value"], "8");
    // Eight servers need no 16 reads in flight.
    assert_eq!(depth["default"]["value"], "16");
    assert_eq!(depth["decision"]["is"], "set");
    close(
        setting(&document, "mysql", "innodb_io_capacity_max"),
        rate / 2.0,
    );
    close(
        setting(&document, "mysql", "innodb_io_capacity"),
        rate / 4.0,
    );
    close(setting(&document, "oracle", "MAX_IOPS"), rate);
    close(
        setting(&document, "oracle", "MAX_MBPS"),
        8.0 * large / microseconds(large),
    );
    close(
        setting(&document, "oracle", "MAX_PMBPS"),
        large / microseconds(large),
    );
}

#[test]
fn a_run_without_writes_names_the_command_that_measures_them() {
    let place = Place::new("advise-reads");
    let document = advised(&place, "sim:8,2ms", "", "mysql,scylla");
    let products: Vec<&Value> = document["products"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| &p["database"])
        .collect();
    assert_eq!(products, ["mysql", "scylla"]);
    for (product, name) in [("mysql", "innodb_io_capacity"), ("scylla", "write_iops")] {
        let missing = setting(&document, product, name);
        assert_eq!(missing["value"], Value::Null);
        let command = missing["measure_by"].as_str().unwrap();
        assert!(
            command.starts_with("rigel calibrate sim:") && command.contains("--write"),
            "{command}"
        );
    }
}

#[test]
fn a_run_that_is_no_calibration_is_refused_with_a_hint() {
    let place = Place::new("advise-other");
    let point = "orion -run advanced -matrix point -num_small 1 -num_large 0 -duration 1 --target \
                 sim:1,100us --out run";
    assert!(rigel(&place, point).output().unwrap().status.success());
    let advice = rigel(&place, "advise run").output().unwrap();
    let said = String::from_utf8_lossy(&advice.stderr);
    assert_eq!(advice.status.code(), Some(2), "{said}");
    assert!(
        said.contains("'run' is not a calibration") && said.contains("hint: run `rigel calibrate"),
        "{said}"
    );
    assert!(advice.stdout.is_empty());
}

#[test]
fn a_demand_stands_beside_what_the_storage_can() {
    let place = Place::new("advise-demand");
    let report = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/awr_synthetic.txt");
    let import = rigel(&place, "import --out import").arg(report).output();
    assert!(import.as_ref().unwrap().status.success(), "{import:?}");
    let document = advised(
        &place,
        DEVICE,
        "--write --as postgres --size 8KiB",
        "oracle --demand import",
    );
    let demand = &document["demand"];
    let streams = demand["streams"].as_array().expect("streams");
    let kinds: Vec<&str> = streams
        .iter()
        .map(|stream| stream["kind"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "random-reads",
            "multiblock-reads",
            "direct-reads",
            "page-writes",
            "direct-writes",
            "log-writes"
        ]
    );
    // 260 reads per second, each of 216 us, on eight servers.
    let random = &streams[0];
    let high = random["usage"]["high"].as_f64().expect("a range");
    let truth = random["per_s"].as_f64().unwrap() * (200e-6 + 2.0 * 8192e-9) / 8.0;
    assert!(
        random["usage"]["low"].as_f64().unwrap() <= truth * 1.001,
        "{random}"
    );
    assert!(truth * 0.999 <= high && high < 1.0, "{random}");
    assert_eq!(random["fits"], "yes");
    let settings = document["products"][0]["settings"].as_array().unwrap();
    for setting in settings {
        let relevance = &setting["relevance"];
        assert!(
            ["yes", "no", "undecided"].contains(&relevance["matters"].as_str().unwrap()),
            "{setting}"
        );
    }
    // 260 reads of some 37,000 that are possible.
    let seek = settings.iter().find(|one| one["setting"] == "SREADTIM");
    assert_eq!(seek.unwrap()["relevance"]["matters"], "no");

    // A report serves as it is, and says the same.
    let report = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/imports/awr_synthetic.txt");
    let direct = rigel(&place, "advise run --json --for oracle --demand")
        .arg(report)
        .output()
        .unwrap();
    let direct: serde_json::Value = serde_json::from_slice(&direct.stdout).unwrap();
    assert_eq!(direct["products"], document["products"]);

    let refused = rigel(&place, "advise run --demand run").output().unwrap();
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(
        said.contains("'run' does not say what a database asks"),
        "{said}"
    );
}
