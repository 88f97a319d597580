//! Tests of the text on the made-up calibration.

use super::parts::command_line;
use super::*;
use crate::golden;
use rigel_analyse::{Advice, Decision, examples};
use rigel_model::DemandKind;
use rigel_model::examples::stream;
use rigel_model::{Finding, FindingName};

fn run() -> Run {
    Run::begun(examples::header())
}

fn doubted() -> RunTrust {
    RunTrust::of(
        [Finding::warning(FindingName::Scheduler, "", "")].iter(),
        &[],
    )
}

fn printed(products: &[Product], terms: AdviceTerms, extent: Extent) -> String {
    text(&run(), &examples::calibration(), products, terms, extent)
}

#[test]
fn the_text_of_each_product_is_under_30_lines_of_80_columns() {
    let trust = doubted();
    let terms = AdviceTerms {
        trust: Some(&trust),
        ..AdviceTerms::default()
    };
    for product in Product::ALL {
        let text = printed(&[product], terms, Extent::Screen);
        assert!(text.lines().count() < 30, "{text}");
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None);
        let commands =
            text.matches("rigel calibrate /").count() + text.matches("iotune --").count();
        assert!(commands <= 2, "{text}");
    }
}

#[test]
fn the_text_of_all_products_is_one_screen_and_has_each_change() {
    let trust = doubted();
    let demand = examples::against(vec![stream(
        DemandKind::RandomReads,
        60_000.0,
        Some(8192.0),
    )]);
    let terms = AdviceTerms {
        trust: Some(&trust),
        demand: Some(&demand),
        ..AdviceTerms::default()
    };
    let text = printed(&Product::ALL, terms, Extent::Screen);
    // Two more lines name the command for one product.
    assert!(text.lines().count() <= 22, "{text}");
    let long = text.lines().find(|line| line.chars().count() > 80);
    assert_eq!(long, None);
    for section in advise(
        &examples::calibration(),
        &examples::header(),
        &Product::ALL,
        terms,
    ) {
        assert!(text.contains(section.database.name()), "{text}");
        let sets = |one: &&Advice| matches!(one.decision, Decision::Set { .. });
        let first = section.settings.iter().find(sets);
        let is_named = |one: &Advice| text.contains(&format!("  {} = ", one.setting));
        assert!(first.is_none_or(is_named), "{text}");
    }
}

#[test]
fn a_screen_on_which_every_setting_changes_is_under_30_lines_of_80_columns() {
    let mut found = examples::calibration();
    // A random page costs no more than a sequential one.
    found.large = Some(examples::at(
        8,
        128 << 10,
        found.at_knee.unwrap().iops.value / 16.0,
    ));
    found.at_knee.as_mut().unwrap().steady = Some(false);
    let trust = doubted();
    let terms = AdviceTerms {
        trust: Some(&trust),
        ..AdviceTerms::default()
    };
    let mut run = run();
    run.header.facts.name = "/a/path/of/many/words".repeat(2);
    for product in [Product::Postgres, Product::Mariadb] {
        let text = text(&run, &found, &[product], terms, Extent::Screen);
        assert!(text.lines().count() < 30, "{text}");
        let long = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(long, None);
        let own = ["random_page_cost = 1.0", "innodb_io_capacity = 10000"];
        assert!(own.iter().any(|set| text.contains(set)), "{text}");
    }
}

#[test]
fn settings_are_told_as_the_golden_files_have_them() {
    let trust = doubted();
    let terms = AdviceTerms {
        trust: Some(&trust),
        ..AdviceTerms::default()
    };
    let mut screens = printed(&Product::ALL, terms, Extent::Screen);
    for product in Product::ALL {
        screens.push_str("\n----\n\n");
        screens.push_str(&printed(&[product], terms, Extent::Screen));
    }
    golden::check("advice.txt", &screens);
    let full = printed(&Product::ALL, terms, Extent::Full);
    let long = full.lines().find(|line| line.chars().count() > 100);
    assert_eq!(long, None);
    golden::check("advice_verbose.txt", &full);
    let document = json(
        &run(),
        &examples::calibration(),
        &[Product::Postgres],
        terms,
    );
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    assert_eq!(document["applied"], false);
    assert_eq!(document["trust"]["level"], "with care");
    let cost = &document["products"][0]["settings"][0];
    assert_eq!(cost["value"], "7.5");
    assert_eq!(cost["default"]["value"], "4");
    assert_eq!(cost["decision"]["is"], "leave");
}

#[test]
fn a_long_command_is_continued_in_shell_syntax() {
    let command = format!(
        "rigel calibrate '/{}a b' --write --as mysql",
        "long/".repeat(10)
    );
    let lines = command_line(&command, 2, 80);
    assert!(
        lines.ends_with("a b' \\\n    --write \\\n    --as mysql\n"),
        "{lines}"
    );
    assert_eq!(command_line("rigel check .", 2, 80), "  rigel check .\n");
}

#[test]
fn a_setting_that_the_demand_does_not_need_is_left_and_not_measured() {
    let demand = examples::against(vec![stream(DemandKind::RandomReads, 1.0, Some(8192.0))]);
    let terms = AdviceTerms {
        demand: Some(&demand),
        ..AdviceTerms::default()
    };
    let text = printed(&[Product::Postgres], terms, Extent::Screen);
    assert!(
        text.contains("Settings that matter for this demand: none"),
        "{text}"
    );
    assert!(text.contains("random reads need at most"), "{text}");
    assert!(text.lines().count() < 30, "{text}");
}

#[test]
fn nothing_is_pasted_if_every_default_is_left() {
    let mut found = examples::calibration();
    found.writes = None;
    let text = text(
        &run(),
        &found,
        &[Product::Mysql],
        AdviceTerms::default(),
        Extent::Screen,
    );
    assert!(
        text.starts_with("MySQL: leave the defaults; 3 not measured.\n"),
        "{text}"
    );
    assert!(!text.contains("SET PERSIST"), "{text}");
    assert!(
        text.ends_with(
            "To measure the rest: rigel calibrate /data --as mysql --write\nWith --verbose: \
         formulas, other opinions, sources and all statements.\n"
        ),
        "{text}"
    );
}
