//! The HTML page in a browser: headless Chromium opens a page with every kind of block and drawing.
//!
//! A script that the test puts before the page's own keeps what goes wrong and, at the end, writes into the document
//! what the browser made of the page; the test reads it from there.

#[path = "../common/mod.rs"]
mod common;
mod sample;

use common::{Missing, Place, need, test, text};
use rigel::report::html::page::{Block, Page, Plot};
use rigel::report::html::render;
use serde_json::Value;
use std::process::Command;

/// Keeps errors and what is printed on the console; tells them with what was drawn, once charts had time to be.
const WATCH: &str = r"<script>
const wrong = [];
addEventListener('error', (event) => wrong.push(String(event.message || event.target.outerHTML)), true);
addEventListener('unhandledrejection', (event) => wrong.push(String(event.reason)));
for (const kind of ['error', 'warn', 'log', 'info', 'debug']) console[kind] = (...said) => wrong.push(kind + ': ' + said.join(' '));
window.alert = (said) => wrong.push('alert: ' + said);
addEventListener('load', () => setTimeout(() => {
  const painted = (canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean);
  const figures = [...document.querySelectorAll('figure')].map((figure) => ({
    id: figure.id,
    canvases: figure.querySelectorAll('canvas').length,
    painted: [...figure.querySelectorAll('canvas')].every(painted),
    cells: figure.querySelectorAll('table.heat td').length,
    empty: Boolean(figure.querySelector('.none-drawn')),
    rows: figure.querySelectorAll('details tbody tr').length,
  }));
  const headings = [...document.querySelectorAll('h1, h2, h3, h4')].map((heading) => Number(heading.tagName[1]));
  const ids = [...document.querySelectorAll('[id]')].map((one) => one.id);
  const outside = [...document.querySelectorAll('[src], [href]')]
    .map((one) => one.getAttribute('src') || one.getAttribute('href')).filter((url) => !/^(#|data:,$)/.test(url));
  const headlines = [...document.querySelectorAll('[data-name][data-value]')].map((one) => [one.dataset.name, Number(one.dataset.value)]);
  const told = {
    wrong, figures, headings, outside, headlines, images: document.images.length,
    twice: ids.filter((id, at) => ids.indexOf(id) !== at),
    loaded: performance.getEntriesByType('resource').map((one) => one.name),
    wide: document.documentElement.scrollWidth - innerWidth,
    title: document.title, last: document.querySelector('#names h2').textContent,
  };
  const found = document.createElement('pre');
  found.id = 'found';
  found.textContent = btoa(unescape(encodeURIComponent(JSON.stringify(told))));
  document.body.append(found);
}, 300));
</script>";

/// What the browser says of the page at a width.
fn opened(html: &str, width: u32) -> Result<Value, Missing> {
    need("chromium", &["--version"])?;
    let place = Place::new(&format!("page-{width}"));
    let (file, profile) = (place.0.join("page.html"), place.0.join("profile"));
    std::fs::write(&file, html.replacen("<head>", &format!("<head>{WATCH}"), 1)).unwrap();
    let output = Command::new("chromium")
        .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"])
        .args(["--virtual-time-budget=20000", "--enable-logging=stderr", "--v=0"])
        .arg(format!("--window-size={width},900"))
        .arg(format!("--user-data-dir={}", text(&profile)))
        .arg(format!("file://{}", text(&file)))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let console: Vec<_> = said.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{}", console.join("\n"));
    let document = String::from_utf8_lossy(&output.stdout);
    let found = document.split_once("<pre id=\"found\">").and_then(|(_, rest)| rest.split_once("</pre>"));
    let Some((found, _)) = found else { panic!("the browser did not run the page: {said}") };
    Ok(serde_json::from_slice(&decoded(found)).unwrap())
}

/// The bytes of base64, which no escaping of the document touches.
fn decoded(text: &str) -> Vec<u8> {
    const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut bytes, mut bits, mut count) = (Vec::new(), 0_u32, 0);
    for byte in text.bytes() {
        let Some(digit) = DIGITS.iter().position(|one| *one == byte) else { continue };
        bits = bits << 6 | u32::try_from(digit).unwrap();
        count += 6;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}

/// Every drawing of a page, by the id of its figure.
fn plots(page: &Page) -> Vec<(String, &Plot)> {
    fn of<'a>(blocks: &'a [Block], found: &mut Vec<(String, &'a Plot)>) {
        for block in blocks {
            match block {
                Block::Chart(chart) => found.push((chart.id.clone(), &chart.plot)),
                Block::Beside(blocks) => of(blocks, found),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    page.sections.iter().for_each(|section| of(&section.blocks, &mut found));
    found
}

#[test]
fn a_browser_draws_every_chart_and_finds_nothing_wrong() {
    test("a_browser_draws_every_chart_and_finds_nothing_wrong", || {
        let page = sample::page();
        for width in [1280, 500] {
            let found = opened(&render(&page), width)?;
            for nothing in ["wrong", "outside", "twice", "loaded"] {
                assert_eq!(found[nothing], serde_json::json!([]), "{nothing} at {width}");
            }
            assert_eq!(found["images"], 0);
            assert!(found["wide"].as_i64().unwrap() <= 0, "the page is {} wider than {width}", found["wide"]);
            assert_eq!(found["title"], page.title);
            assert_eq!(found["last"], sample::HOSTILE);
            check_figures(&page, found["figures"].as_array().unwrap());
            let levels: Vec<i64> =
                found["headings"].as_array().unwrap().iter().map(|one| one.as_i64().unwrap()).collect();
            assert_eq!(levels[0], 1);
            assert!(levels.windows(2).all(|pair| pair[1] <= pair[0] + 1 && pair[1] > 1), "{levels:?}");
            let exact: Vec<_> = page.figures.iter().map(|one| serde_json::json!([one.name, one.exact])).collect();
            assert_eq!(found["headlines"], Value::from(exact));
        }
        Ok(())
    });
}

fn check_figures(page: &Page, figures: &[Value]) {
    let plots = plots(page);
    assert_eq!(figures.len(), plots.len());
    for ((id, plot), found) in plots.iter().zip(figures) {
        let canvases = match plot {
            _ if id == "empty" => 0,
            Plot::Lines(_) => 1,
            Plot::Stack { panels } => panels.len(),
            Plot::Heat(heat) => usize::from(!heat.written),
        };
        assert_eq!(found["canvases"], canvases, "{id}");
        assert_eq!(found["painted"], true, "{id}");
        assert_eq!(found["empty"], id == "empty", "{id}");
        if let Plot::Heat(heat) = plot
            && heat.written
        {
            let corner = 1;
            assert_eq!(found["cells"], heat.rows.len() * heat.columns.len() + corner, "{id}");
        } else if id != "empty" {
            assert!(found["rows"].as_u64().unwrap() > 0, "{id} has no table");
        }
    }
}

#[test]
fn a_page_is_small_loads_nothing_and_shows_names_as_text() {
    let html = render(&sample::page());
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(!html.contains("<script>alert") && !html.contains("<img"), "a name became HTML");
    // The licence and the libraries name their homes; nothing else may speak of a network.
    for attribute in ["src=\"", "srcset=", "url(http", "@import", "<link rel=\"stylesheet"] {
        assert!(!html.contains(attribute), "{attribute}");
    }
    assert!(html.contains("Permission is hereby granted"), "the licence of what draws charts goes with it");
    // Four blocks of script: two that run, and the data of each chart.
    let data =
        plots(&sample::page()).iter().filter(|(_, plot)| !matches!(plot, Plot::Heat(heat) if heat.written)).count();
    assert_eq!(html.matches("<script").count(), 2 + data);
    assert_eq!(html.matches("</script").count(), 2 + data);
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let html = render(&Page::default());
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
}
