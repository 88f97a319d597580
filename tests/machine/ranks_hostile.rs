//! A rank 0 that sends what it should not: no other rank opens, writes or pays for it.

use crate::common::fake_root::FakeRoot;
use crate::common::{Place, entries, need, text};
use crate::secrets::{SECRET, Thief, resumable};
use rigel_model::{
    Arrivals, Coordinates, Load, Mix, Nanos, Pattern, Point, Ratio, SqlWork, Stream, Tables, Until,
    WarmUp,
};
use serde_json::{Value, json};

/// What rank 0 sends of a run that is resumed, with a target that no command line names.
fn plan(request: &Value, target: &Value) -> Value {
    let mut plan = json!({
        "verb": "curve", "request": request, "seed": 1, "workers": 1, "allow_holes": false,
        "engine": {"name": "auto", "buffered": false}, "layout": "concat",
    });
    // As the header of a journal has it, too.
    let header = serde_json::to_value(resumable("postgres://ana@127.0.0.1:1/d")).unwrap();
    for (key, value) in header.as_object().unwrap() {
        plan.as_object_mut()
            .unwrap()
            .entry(key)
            .or_insert(value.clone());
    }
    plan["target"] = target.clone();
    plan
}

#[test]
fn a_password_goes_to_the_server_of_the_own_command_line_alone() {
    let place = Place::new("ranks-thief");
    let (own, other) = (Thief::new(), Thief::new());
    let url = |port: u16| format!("postgres://ana@127.0.0.1:{port}/d?require_auth=password");
    std::fs::write(place.0.join("password"), format!("{SECRET}\n")).unwrap();
    need("chmod", &["600", text(&place.0.join("password"))])
        .ok()
        .unwrap();
    let line = format!(
        "curve --resume run {} --password-file password",
        url(own.port)
    );
    let root = FakeRoot::beside(&place, &line);
    let head = resumable(&url(other.port));
    let request = serde_json::to_value(&head.invocation.request).unwrap();
    root.say(&plan(
        &request,
        &serde_json::to_value(&head.target).unwrap(),
    ));
    let refused = root.agree().unwrap_err().to_string();
    let output = root.end();
    assert!(own.heard().contains(SECRET), "{refused} {output:?}");
    assert_eq!(other.heard(), "", "the server that rank 0 names was asked");
}

#[test]
fn a_scratch_file_is_made_in_the_directory_of_the_own_command_line_alone() {
    let place = Place::new("ranks-directory-named");
    for name in ["own", "other"] {
        std::fs::create_dir(place.0.join(name)).unwrap();
    }
    let line = "curve --resume run own --scratch-size 64MiB --keep";
    let root = FakeRoot::beside(&place, line);
    let curve = crate::secrets::curve_request();
    let target =
        json!({"scratch": {"directory": place.0.join("other"), "bytes": 64 << 20, "keep": true}});
    root.say(&plan(&curve, &target));
    // The file that shows that the directory is the same, of rank 0 too.
    let mut answer = |value: &Value| {
        if let Some(nonce) = value.as_u64() {
            let name = format!("{nonce:016x}-0");
            std::fs::write(place.0.join(format!("own/.rigel-ranks-{name}")), name).unwrap();
        }
        None
    };
    root.agree_but(&mut answer).unwrap();
    root.say(&json!("Over"));
    let output = root.end();
    assert_eq!(entries(&place.0.join("other")).len(), 0, "{output:?}");
    let made = entries(&place.0.join("own"));
    let has_scratch = made
        .iter()
        .any(|path| text(path).contains("rigel-scratch-"));
    assert!(has_scratch, "{made:?} {output:?}");
}

/// A point that rank 1 was prepared for: `curve --depth 2`.
fn point() -> Point {
    Point {
        coordinates: Coordinates::at_depth(2),
        streams: vec![Stream {
            name: "small".into(),
            load: Load::Closed { depth: 2 },
            mix: Mix {
                writes: Ratio::ONE,
                durable: false,
            },
            pattern: Pattern::Uniform,
            length: 8192,
            objective: None,
            sql: None,
            rank: None,
            log: None,
        }],
        warm_up: WarmUp::NONE,
        until: Until::Ops(10),
        window: Nanos::from_millis(100),
        seed: 1,
    }
}

/// What makes another point of one.
type PointChange<'a> = &'a dyn Fn(&mut Point);

#[test]
fn a_rank_measures_no_point_that_it_was_not_prepared_for() {
    const BYTES: u64 = 4 << 20;
    let work = SqlWork {
        updates: Ratio::ONE,
        ..SqlWork::reads(Tables {
            schemas: 1,
            scale: 1 << 23,
            scan_blocks: 1,
            block: 8192,
        })
    };
    let offered = Load::Open {
        rate: -1.0,
        arrivals: Arrivals::Poisson,
        in_flight_max: 2,
    };
    let changes: [(&str, PointChange<'_>); 6] = [
        ("operations of 0 bytes", &|point| {
            point.streams[0].length = 0;
        }),
        ("4294967295 outstanding", &|point| {
            point.streams[0].load = Load::Closed { depth: u32::MAX };
        }),
        ("sessions of a database", &|point| {
            point.streams[0].sql = Some(work);
        }),
        ("windows last 0s", &|point| point.window = Nanos(0)),
        ("-1 operations per second", &|point| {
            point.streams[0].load = offered;
        }),
        ("no stream", &|point| point.streams.clear()),
    ];
    let place = Place::new("ranks-points");
    let file = place.0.join("target");
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    for (why, change) in changes {
        for is_warming in [false, true] {
            let line = "curve target --depth 2 --mix write=100 --destroy target --same-blocks";
            let root = FakeRoot::beside(&place, line);
            root.agree().unwrap();
            let mut odd = point();
            change(&mut odd);
            let (measured, warming) = if is_warming {
                (point(), json!(odd))
            } else {
                (odd, Value::Null)
            };
            root.say(&json!({"Point": {"point": measured, "warming": warming}}));
            let refused = root.hear().unwrap_err().to_string();
            let output = root.end();
            assert!(refused.contains(why), "{why}: {refused} {output:?}");
            assert!(refused.contains("rank 1"), "{refused}");
            assert_eq!(std::fs::metadata(&file).unwrap().len(), BYTES, "{why}");
        }
    }
}

#[test]
fn a_rank_refuses_an_agreement_that_is_not_its_own() {
    type Answer<'a> = &'a dyn Fn(&Value) -> Option<Value>;
    let cases: [(&str, Answer<'_>); 2] = [
        // A name that would be a path.
        ("sent what cannot be read", &|value| {
            value.is_u64().then(|| json!("x/../../elsewhere"))
        }),
        ("is the most that this host makes", &|value| {
            value["scratch"].is_object().then(|| {
                let mut huge = value.clone();
                huge["scratch"] = json!({"bytes": 1_u64 << 50, "is_given": true});
                huge
            })
        }),
    ];
    let place = Place::new("ranks-agreement");
    std::fs::create_dir(place.0.join("own")).unwrap();
    for (why, answer) in cases {
        let root = FakeRoot::beside(&place, "curve own --scratch-size 64MiB --depth 1");
        let mut other = |value: &Value| {
            let odd = answer(value);
            if let (Some(nonce), None) = (value.as_u64(), &odd) {
                let name = format!("{nonce:016x}-0");
                std::fs::write(place.0.join(format!("own/.rigel-ranks-{name}")), name).unwrap();
            }
            odd
        };
        let refused = root.agree_but(&mut other).unwrap_err().to_string();
        let output = root.end();
        assert!(refused.contains(why), "{why}: {refused} {output:?}");
        let made = entries(&place.0.join("own"));
        let scratch = made.iter().find(|path| text(path).contains("scratch"));
        assert_eq!(scratch, None, "{why}");
        assert!(!place.0.join("elsewhere").exists(), "{why}");
    }
}

#[test]
fn two_builds_of_one_version_do_not_measure_together() {
    let place = Place::new("ranks-build");
    let line = "curve sim:1,1ms --depth 1";
    let refusal = |root: &FakeRoot| root.hear().map_err(|error| error.to_string());
    let root = FakeRoot::beside(&place, line);
    let of_one_build = refusal(&root);
    root.end();
    assert!(of_one_build.is_ok(), "{of_one_build:?}");
    let root = FakeRoot::of_build(&place, line, "another".into());
    let refused = refusal(&root).unwrap_err();
    root.end();
    assert!(refused.contains("is another build of rigel"), "{refused}");
}

#[test]
fn a_check_is_of_one_host() {
    let place = Place::new("ranks-check");
    let root = FakeRoot::beside(&place, "check .");
    let refused = root.hear().unwrap_err().to_string();
    root.end();
    assert!(
        refused.contains("2 ranks cannot share rigel check"),
        "{refused}"
    );
}

#[test]
fn a_rank_refuses_fewer_values_than_there_are_ranks() {
    let place = Place::new("ranks-short");
    let root = FakeRoot::beside(&place, "curve sim:1,1ms --depth 1");
    let value = root.hear().unwrap();
    root.say(&json!([value]));
    let refused = root.hear().unwrap_err().to_string();
    let output = root.end();
    assert!(refused.contains("1 values of 2"), "{refused} {output:?}");
}

#[test]
fn a_rank_of_a_soak_says_that_its_target_was_replaced() {
    let place = Place::new("ranks-replaced");
    let file = place.0.join("target");
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    let line = "soak target --work 10ops --every 1s --for 10s";
    let root = FakeRoot::beside(&place, line);
    root.agree().unwrap();
    std::fs::rename(&file, place.0.join("before")).unwrap();
    std::fs::write(&file, vec![7; 4 << 20]).unwrap();
    let mut round = point();
    round.coordinates = Coordinates::Round {
        round: 1,
        outstanding: 2,
    };
    round.streams[0].mix = Mix::READS;
    root.say(&json!({"Point": {"point": round, "warming": null}}));
    let record = loop {
        let news = root.hear().unwrap();
        if news == json!("Warm") {
            root.say(&json!({"Start": 0}));
        }
        if let Some(over) = news.get("Over") {
            break over["record"].clone();
        }
    };
    root.say(&json!("Over"));
    let output = root.end();
    let end = record["end"]["broken"].as_str().unwrap_or_default();
    let why = "'target' is no longer the file or device that was measured";
    assert_eq!(end, why, "{output:?}");
}
