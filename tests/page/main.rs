//! The HTML page in a browser: headless Chromium opens a page with every kind of block and drawing.

mod acts;
mod browser;
mod colours;
#[path = "../common/mod.rs"]
mod common;
mod sample;
mod shown;

use browser::{Browser, PHONE};
use common::test;
use rigel_report::document::{Block, Document, Plot};
use rigel_report::html::render;
use serde_json::Value;

/// The elements that the browser made of a page.
const MADE: &str = r"(() => {
  const painted = (canvas) => canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some(Boolean);
  const all = (selector) => [...document.querySelectorAll(selector)];
  const figures = all('figure').map((figure) => ({
    id: figure.id,
    canvases: figure.querySelectorAll('canvas').length,
    painted: [...figure.querySelectorAll('canvas')].every(painted),
    cells: figure.querySelectorAll('table.heat td').length,
    empty: Boolean(figure.querySelector('.none-drawn')),
    rows: figure.querySelectorAll('details tbody tr').length,
  }));
  const ids = all('[id]').map((one) => one.id);
  return {
    figures,
    headings: all('h1, h2, h3, h4').map((heading) => Number(heading.tagName[1])),
    outside: all('[src], [href]')
      .map((one) => one.getAttribute('src') || one.getAttribute('href')).filter((url) => !/^(#|data:,$)/.test(url)),
    headlines: all('[data-name][data-value]').map((one) => [one.dataset.name, Number(one.dataset.value)]),
    images: document.images.length,
    twice: ids.filter((id, at) => ids.indexOf(id) !== at),
    wide: document.documentElement.scrollWidth - innerWidth,
    title: document.title,
    last: document.querySelector('#names h2').textContent,
  };
})()";

/// Every drawing of a page, by the id of its figure.
fn plots(page: &Document) -> Vec<(String, &Plot)> {
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
    page.sections
        .iter()
        .for_each(|section| of(&section.blocks, &mut found));
    found
}

#[test]
fn a_browser_draws_every_chart_and_finds_nothing_wrong() {
    test(
        "a_browser_draws_every_chart_and_finds_nothing_wrong",
        || {
            let page = sample::page();
            let mut browser = Browser::open("whole", "<main></main>", 1280)?;
            for width in [1280, PHONE] {
                browser.show(&render(&page), (width, 900));
                let found = browser.drawn(MADE);
                browser.nothing_wrong();
                for nothing in ["outside", "twice"] {
                    assert_eq!(
                        found[nothing],
                        serde_json::json!([]),
                        "{nothing} at {width}"
                    );
                }
                assert_eq!(found["images"], 0);
                assert!(
                    found["wide"].as_i64().unwrap() <= 0,
                    "the page is {} wider than {width}",
                    found["wide"]
                );
                assert_eq!(found["title"], page.title);
                assert_eq!(found["last"], sample::HOSTILE);
                check_figures(&page, found["figures"].as_array().unwrap());
                let levels: Vec<i64> = found["headings"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .map(|one| one.as_i64().unwrap())
                    .collect();
                assert_eq!(levels[0], 1);
                assert!(
                    levels
                        .windows(2)
                        .all(|pair| pair[1] <= pair[0] + 1 && pair[1] > 1),
                    "{levels:?}"
                );
                let exact: Vec<_> = page
                    .headlines
                    .iter()
                    .map(|one| serde_json::json!([one.name, one.exact]))
                    .collect();
                assert_eq!(found["headlines"], Value::from(exact));
            }
            Ok(())
        },
    );
}

fn check_figures(page: &Document, figures: &[Value]) {
    let plots = plots(page);
    assert_eq!(figures.len(), plots.len());
    for ((id, plot), found) in plots.iter().zip(figures) {
        let canvases = match plot {
            _ if id == "empty" => 0,
            Plot::Lines(_) => 1,
            Plot::Stack { panels } => panels.len(),
            Plot::Heat(heat) => usize::from(!heat.written),
            Plot::Changes(_) => 0,
        };
        assert_eq!(found["canvases"], canvases, "{id}");
        assert_eq!(found["painted"], true, "{id}");
        assert_eq!(found["empty"], id == "empty", "{id}");
        if let Plot::Heat(heat) = plot
            && heat.written
        {
            let corner = 1;
            assert_eq!(
                found["cells"],
                heat.rows.len() * heat.columns.len() + corner,
                "{id}"
            );
        } else if !matches!(plot, Plot::Changes(_)) && id != "empty" {
            assert!(found["rows"].as_u64().unwrap() > 0, "{id} has no table");
        }
    }
}

#[test]
fn a_page_is_small_loads_nothing_and_shows_names_as_text() {
    let html = render(&sample::page());
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(
        !html.contains("<script>alert") && !html.contains("<img"),
        "a name became HTML"
    );
    // The licence and the libraries contain their home pages; nothing else may refer to a network.
    for attribute in [
        "src=\"",
        "srcset=",
        "url(http",
        "@import",
        "<link rel=\"stylesheet",
    ] {
        assert!(!html.contains(attribute), "{attribute}");
    }
    assert!(
        html.contains("Permission is hereby granted"),
        "the licence of what draws charts goes with it"
    );
    // The script blocks: two that run, and the data of each chart.
    let data = plots(&sample::page())
        .iter()
        .filter(|(_, plot)| match plot {
            Plot::Lines(_) | Plot::Stack { .. } => true,
            Plot::Heat(heat) => !heat.written,
            Plot::Changes(_) => false,
        })
        .count();
    assert_eq!(html.matches("<script").count(), 2 + data);
    assert_eq!(html.matches("</script").count(), 2 + data);
}

#[test]
fn a_page_of_nothing_is_a_page() {
    let html = render(&Document::default());
    assert!(html.starts_with("<!doctype html>") && html.ends_with("</html>\n"));
}
