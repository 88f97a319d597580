//! What a reader sees of the pages of runs: at first sight, on a telephone, in the dark, on paper.
//!
//! The browser measures the page as it is laid out: what is cut, what is below the first screen, what
//! can hardly be read. One browser shows all pages in all ways.

use crate::browser::{Browser, PHONE};
use crate::common::{Place, rigel, test};
use crate::sample;
use rigel_report::html::render;
use serde_json::{Value, json};

/// A way to look at a page.
#[derive(Debug, Clone, Copy, PartialEq)]
enum View {
    Light,
    Dark,
    Phone,
    /// A4 paper, without the browser's margins.
    Print,
}

impl View {
    const ALL: [Self; 4] = [Self::Light, Self::Dark, Self::Phone, Self::Print];

    /// Width and height.
    fn size(self) -> (u32, u32) {
        match self {
            Self::Light | Self::Dark => (1280, 900),
            Self::Phone => (PHONE, 844),
            Self::Print => (718, 1000),
        }
    }
}

/// Contrast that WCAG 2 requires of body text.
const CONTRAST_MIN: f64 = 4.5;

/// What the page is like as it is laid out.
const SEEN: &str = r"(() => {
  const seen = (one) => one.checkVisibility({ visibilityProperty: true }) && one.getClientRects().length > 0;
  const box = (one) => one.getBoundingClientRect();
  const name = (one) => one.outerHTML.slice(0, 100);
  const all = (selector) => [...document.querySelectorAll(selector)].filter(seen);
  const printed = matchMedia('print').matches;
  const bottom = (selector) => all(selector).map((one) => box(one).bottom + scrollY)[0] ?? null;
  const top = (selector) => Math.min(...all(selector).map((one) => box(one).top + scrollY), 1e9);
  const scrolls = (one) => !printed && one.closest('.scroll, pre');
  // Colours are computed by the browser; transparent parts show what is below.
  const pen = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const light = (colours) => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    const linear = [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3)
      .map((part) => part / 255).map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] + 0.05;
  };
  const grounds = (one) => (one ? [...grounds(one.parentElement), getComputedStyle(one).backgroundColor] : ['#fff']);
  const contrast = (one) => {
    const below = grounds(one);
    const [text, ground] = [light([...below, getComputedStyle(one).color]), light(below)];
    return Math.max(text, ground) / Math.min(text, ground);
  };
  const texts = all('body *:not(.unseen, .skip, script)')
    .filter((one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()));
  return {
    wide: document.documentElement.scrollWidth - innerWidth,
    beyond: all('body *:not(.unseen, .skip)')
      .filter((one) => !scrolls(one) && !one.closest('.unseen') && box(one).right > innerWidth + 1).map(name).slice(0, 5),
    answer: bottom('#answer .answer'),
    trust: bottom('#answer .trust'),
    said: document.querySelector('#answer .trust')?.textContent ?? '',
    chart: top('figure.chart'),
    table: top('main table:not(figure table)'),
    faint: texts.map((one) => [contrast(one), name(one)]).filter(([found]) => found < LEAST).slice(0, 5),
    hidden: [...document.querySelectorAll('.findings .hint')].filter((one) => !seen(one)).map(name),
    height: innerHeight,
  };
})()";

/// Shows a page in a way.
fn look(browser: &mut Browser, html: &str, view: View) {
    let (width, height) = view.size();
    let (media, scheme) = match view {
        View::Light | View::Phone => ("screen", "light"),
        View::Dark => ("screen", "dark"),
        View::Print => ("print", "light"),
    };
    let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
    browser.call(
        "Emulation.setEmulatedMedia",
        &json!({ "media": media, "features": features }),
    );
    browser.show(html, (width, height));
    if view == View::Print {
        browser.value("dispatchEvent(new Event('beforeprint'))");
    }
}

/// What is wrong with the page that the browser shows; empty if nothing is.
fn wrong(browser: &mut Browser, view: View) -> Vec<String> {
    let seen = browser.drawn(&SEEN.replace("LEAST", &CONTRAST_MIN.to_string()));
    let number = |name: &str| seen[name].as_f64();
    let mut wrong = Vec::new();
    let mut unless = |is_right: bool, what: &str, shown: &Value| {
        if !is_right {
            wrong.push(format!("{what}: {shown}"));
        }
    };
    let is_none = |found: &Value| found.as_array().unwrap().is_empty();
    unless(number("wide").unwrap() <= 0.0, "too wide", &seen["wide"]);
    unless(is_none(&seen["beyond"]), "beyond the edge", &seen["beyond"]);
    for what in ["answer", "trust"] {
        let is_first = number(what).is_some_and(|end| end <= number("height").unwrap());
        unless(is_first, &format!("{what} not at first sight"), &seen[what]);
    }
    let said = seen["said"].as_str().unwrap();
    unless(said.contains("Trust: "), "no trust", &seen["said"]);
    unless(
        number("chart") < number("table"),
        "table first",
        &seen["table"],
    );
    unless(is_none(&seen["faint"]), "hard to read", &seen["faint"]);
    if view == View::Print {
        unless(is_none(&seen["hidden"]), "hint lost", &seen["hidden"]);
    }
    wrong
}

/// The pages of a run of each verb that needs no server and no right, and of a comparison.
fn pages(place: &Place) -> Vec<(&'static str, String)> {
    let day = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/examples/cloud-day.csv");
    let runs = [
        (
            "calibrate",
            "calibrate sim:8,250us,exponential --closing 5s".to_string(),
        ),
        (
            "curve",
            "curve sim:8,1ms --rate 10%..120% --max-latency 10ms".into(),
        ),
        (
            "other",
            "curve sim:4,1ms --rate 10%..120% --max-latency 10ms".into(),
        ),
        (
            "fit",
            format!("fit {day} sim:8,250us,exponential --point-time 2s"),
        ),
        (
            "soak",
            "soak sim:8,100us,slow=5ms@0.5% --work 1kops --every 15m --for 3d --slo p99<1ms".into(),
        ),
        (
            "orion",
            "orion -run advanced -matrix detailed -num_disks 1 -duration 2 --target sim:8,1ms"
                .into(),
        ),
        ("import", format!("import {day}")),
    ];
    let mut pages = Vec::new();
    for (run, arguments) in runs {
        let options = if run == "import" {
            ""
        } else {
            "--seed 7 --no-progress"
        };
        let made = rigel(place, &format!("{arguments} {options} --out {run}"));
        let output = { made }.output().unwrap();
        // No, and undecided, are answers.
        assert!(
            matches!(output.status.code(), Some(0 | 3 | 4)),
            "{output:?}"
        );
        pages.push((run, format!("{run}/report.html")));
    }
    for arguments in [
        "report import --html",
        "compare curve other --html compare.html",
    ] {
        let output = rigel(place, arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    pages.push(("compare", "compare.html".into()));
    pages
        .into_iter()
        .map(|(name, file)| (name, std::fs::read_to_string(place.0.join(file)).unwrap()))
        .chain([("every kind of block", render(&sample::page()))])
        .collect()
}

#[test]
fn a_reader_sees_answer_trust_and_chart_on_every_screen_and_on_paper() {
    test(
        "a_reader_sees_answer_trust_and_chart_on_every_screen_and_on_paper",
        || {
            let mut browser = Browser::open("shown", "<main></main>", 1280)?;
            let place = Place::new("page-shown-runs");
            for (name, html) in pages(&place) {
                for view in View::ALL {
                    look(&mut browser, &html, view);
                    let wrong = wrong(&mut browser, view);
                    assert!(wrong.is_empty(), "{name}, {view:?}: {wrong:#?}");
                    browser.nothing_wrong();
                }
            }
            Ok(())
        },
    );
}

#[test]
fn what_is_wrong_with_a_page_is_found() {
    test("what_is_wrong_with_a_page_is_found", || {
        let mut browser = Browser::open("broken", "<main></main>", 1280)?;
        let html = render(&sample::page());
        let style = |of: &str, what: &str| format!("document.querySelector('{of}').style.{what}");
        let table = "document.querySelector('#latency-throughput').prepend(document.querySelector('#what-was-run .scroll'))";
        for (view, broken, found) in [
            (
                View::Phone,
                style("main", "minWidth = '3000px'"),
                "too wide",
            ),
            (
                View::Print,
                style("#matrix", "width = '3000px'"),
                "beyond the edge",
            ),
            (
                View::Phone,
                style(".answer", "marginTop = '900px'"),
                "answer not at first sight",
            ),
            (
                View::Light,
                style(".trust", "display = 'none'"),
                "trust not at first sight",
            ),
            (View::Light, table.into(), "table first"),
            (View::Dark, style(".lead", "color = '#555'"), "hard to read"),
            (
                View::Print,
                "document.querySelector('.findings details').open = false".into(),
                "hint lost",
            ),
        ] {
            look(&mut browser, &html, view);
            browser.value(&broken);
            let wrong = wrong(&mut browser, view);
            assert!(
                wrong.iter().any(|one| one.starts_with(found)),
                "{broken}: {wrong:#?}"
            );
        }
        Ok(())
    });
}
