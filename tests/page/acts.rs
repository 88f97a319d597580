//! A reader's actions on a page and their results: pointing, hiding, zooming, changing the colours,
//! walking by keyboard, two fingers on a telephone, printing.
//!
//! Results are compared with the page's own data and colours.

use crate::browser::{Browser, PHONE};
use crate::common::test;
use crate::sample;
use rigel_model::Moment;
use rigel_report::html::render;
use serde_json::{Value, json};

/// Maximum relative difference between a figure in a tip and the data, which has more digits.
const ROUNDED: f64 = 0.006;

/// Width of a screen.
const SCREEN: u32 = 1280;

/// Runs actions on the sample page in a browser. At the end there must be no errors.
fn in_browser(name: &str, width: u32, body: impl FnOnce(&mut Browser)) {
    test(name, || {
        let mut browser = Browser::open(name, &render(&sample::page()), width)?;
        body(&mut browser);
        browser.nothing_wrong();
        Ok(())
    });
}

/// Parses a displayed figure into the unit of the data.
fn read(unit: &str, text: &str) -> f64 {
    let plain = text.replace(',', "");
    let number = |text: &str| {
        text.parse::<f64>()
            .unwrap_or_else(|_| panic!("{plain} in {unit}"))
    };
    match unit {
        "nines" => -(1.0 - number(plain.trim_start_matches('p')) / 100.0).log10(),
        "moment" => format!("{}+00:00", plain.replace(' ', "T"))
            .parse::<Moment>()
            .unwrap()
            .wall_seconds() as f64,
        "seconds" => plain
            .trim_end_matches(" s")
            .split(':')
            .fold(0.0, |sum, part| sum * 60.0 + number(part)),
        _ => {
            let end = plain
                .find(|c: char| !(c.is_ascii_digit() || c == '.'))
                .unwrap_or(plain.len());
            let factor = match plain[end..].trim() {
                "" | "µs" | "/s" | "MB/s" => 1.0,
                "ms" => 1e3,
                "s" => 1e6,
                "%" => 0.01,
                other => panic!("{other} of {plain} in {unit}"),
            };
            number(&plain[..end]) * factor
        }
    }
}

fn is_near(told: f64, exact: f64) -> bool {
    (told - exact).abs() <= exact.abs() * ROUNDED
}

/// The data of a chart in the page.
fn data(browser: &mut Browser, id: &str) -> Value {
    browser.value(&format!(
        "JSON.parse(document.querySelector('#chart-{id} > script').textContent)"
    ))
}

/// Position of a panel of a chart.
fn panel(browser: &mut Browser, id: &str, panel: usize) -> [f64; 4] {
    let mark =
        format!("document.querySelectorAll('#chart-{id} .u-over')[{panel}].id = '{id}-{panel}'");
    browser.value(&mark);
    browser.place(&format!("#{id}-{panel}"))
}

/// A position in a panel, by fractions of its width and height.
fn at([left, top, width, height]: [f64; 4], x: f64, y: f64) -> [f64; 2] {
    [left + width * x, top + height * y]
}

/// The tip of a chart, and the elements at the points that it marks.
fn told(browser: &mut Browser, id: &str, panel: usize) -> Value {
    browser.drawn(&format!(
        "(() => {{
           const figure = document.querySelector('#chart-{id}');
           const tip = figure.querySelector('.tip');
           const over = figure.querySelectorAll('.u-over')[{panel}];
           const of = (row, part) => row.querySelector(part)?.textContent ?? '';
           const pen = over.parentElement.querySelector('canvas').getContext('2d');
           const points = [...over.querySelectorAll('.u-cursor-pt')].map((point) => {{
             const [inner, outer] = [point.getBoundingClientRect(), over.getBoundingClientRect()];
             return [inner.left + inner.width / 2 - outer.left, inner.top + inner.height / 2 - \
         outer.top];
           }});
           return {{
             shown: !tip.hidden && tip.checkVisibility(),
             head: of(tip, 'strong'),
             rows: [...tip.querySelectorAll('div')].filter((row) => row.querySelector('b'))
               .map((row) => [of(row, 'span'), of(row, 'b'), of(row, 'small')]),
             points,
             colours: points.map(([x, y]) => [...pen.getImageData(over.offsetLeft + x, \
         over.offsetTop + y, 1, 1).data]),
           }};
         }})()"
    ))
}

/// The value on the horizontal axis that a tip refers to.
fn head(data: &Value, told: &Value) -> f64 {
    let axis = &data["panels"][0]["x"];
    let text = told["head"].as_str().unwrap();
    let label = format!("{} ", axis["label"].as_str().unwrap());
    read(
        axis["unit"].as_str().unwrap(),
        text.strip_prefix(&label).unwrap_or(text),
    )
}

/// Checks that every figure of a tip equals the data at its position.
fn is_of_the_data(id: &str, data: &Value, told: &Value) {
    assert_eq!(told["shown"], true, "{id}: {told}");
    let head = head(data, told);
    let axis = data["panels"][0]["x"]["unit"].as_str().unwrap();
    let rows = told["rows"].as_array().unwrap();
    assert!(!rows.is_empty(), "{id}: {told}");
    for row in rows {
        let [name, value, more] = [0, 1, 2].map(|part| row[part].as_str().unwrap());
        let panels = data["panels"].as_array().unwrap().iter();
        let mut all = panels.flat_map(|panel| {
            panel["series"]
                .as_array()
                .unwrap()
                .iter()
                .map(move |one| (panel, one))
        });
        let (panel, series) = all
            .find(|(_, one)| one["name"] == name)
            .unwrap_or_else(|| panic!("{id}: no {name}"));
        let place = more
            .rsplit(", ")
            .next()
            .and_then(|last| last.strip_prefix("at "));
        let place = place.map_or(head, |text| read(axis, text));
        let scale = if series["right"] == true {
            "right"
        } else {
            "y"
        };
        let value = read(panel[scale]["unit"].as_str().unwrap(), value);
        let xs = data["xs"][usize::try_from(series["x"].as_u64().unwrap()).unwrap()]
            .as_array()
            .unwrap();
        // Times are rounded to the second, quantiles to two digits of the remainder.
        let rounded = match axis {
            "seconds" => 0.51,
            "nines" => 0.022,
            _ => 0.0,
        };
        let is_place = |x: f64| is_near(place, x) || (place - x).abs() <= rounded;
        let mut both = xs.iter().zip(series["y"].as_array().unwrap());
        let found = both.any(|(x, y)| {
            is_place(x.as_f64().unwrap()) && y.as_f64().is_some_and(|y| is_near(value, y))
        });
        assert!(found, "{id}: {name} is not {value} at {place}: {told}");
    }
}

#[test]
fn pointing_at_a_line_shows_the_figures_of_the_data() {
    in_browser(
        "pointing_at_a_line_shows_the_figures_of_the_data",
        SCREEN,
        |browser| {
            for id in [
                "load",
                "percentiles",
                "histogram",
                "timeline",
                "waits",
                "rounds",
            ] {
                let data = data(browser, id);
                for (panel_at, _) in data["panels"].as_array().unwrap().iter().enumerate() {
                    let place = panel(browser, id, panel_at);
                    let mut before = f64::NEG_INFINITY;
                    for across in [0.05, 0.2, 0.35, 0.5, 0.71, 0.95] {
                        browser.point_at(at(place, across, 0.5));
                        let told = told(browser, id, panel_at);
                        is_of_the_data(id, &data, &told);
                        let head = head(&data, &told);
                        assert!(head >= before, "{id}: {head} stands right of {before}");
                        before = head;
                    }
                }
                browser.point_at([2.0, 2.0]);
                assert_eq!(told(browser, id, 0)["shown"], false, "{id}: the tip stays");
            }
        },
    );
}

#[test]
fn the_tooltip_shows_the_value_nearest_to_the_pointer() {
    in_browser(
        "the_tooltip_shows_the_value_nearest_to_the_pointer",
        SCREEN,
        |browser| {
            let data = data(browser, "load");
            let place = panel(browser, "load", 0);
            let first = colour(browser, 0);
            let mut found: Vec<(f64, f64, f64)> = Vec::new();
            for step in 0..=40 {
                let across = (0.01 + 0.98 * f64::from(step) / 40.0) * place[2];
                browser.point_at([place[0] + across, place[1] + place[3] / 2.0]);
                let told = told(browser, "load", 0);
                let head = head(&data, &told);
                found.push((across, head, told["points"][0][0].as_f64().unwrap()));
                let marks = data["panels"][0]["marks"].as_array().unwrap();
                let is_marked = marks
                    .iter()
                    .any(|mark| is_near(head, mark["at"].as_f64().unwrap()));
                let drawn: Vec<u8> = serde_json::from_value(told["colours"][0].clone()).unwrap();
                assert!(
                    is_marked || drawn[..3] == first,
                    "at {head} {drawn:?} is drawn, not {first:?}"
                );
            }
            // The axis is linear: two positions determine all others.
            let (one, other) = (found[0], found[found.len() - 1]);
            let pixel =
                |value: f64| one.2 + (value - one.1) / (other.1 - one.1) * (other.2 - one.2);
            let xs: Vec<f64> = serde_json::from_value(data["xs"][0].clone()).unwrap();
            for (pointer, head, _) in found {
                let nearest = xs
                    .iter()
                    .map(|x| (pixel(*x) - pointer).abs())
                    .fold(f64::INFINITY, f64::min);
                let away = (pixel(head) - pointer).abs();
                assert!(
                    away <= nearest + 1.0,
                    "{head} is {away} away, another {nearest}"
                );
            }
        },
    );
}

#[test]
fn pointing_at_a_heat_map_shows_the_cell_below() {
    in_browser(
        "pointing_at_a_heat_map_shows_the_cell_below",
        SCREEN,
        |browser| {
            let id = "latency-heat";
            let data = data(browser, id);
            let place = browser.place(&format!("#chart-{id} canvas"));
            let scale: Vec<Vec<f64>> = serde_json::from_value(browser.value(&format!(
                "JSON.parse(document.querySelector('#chart-{id} > \
                 script').textContent).scale.map((one) => one.match(/\\d+/g).map(Number))"
            )))
            .unwrap();
            let values = || {
                data["values"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .flat_map(|row| row.as_array().unwrap())
            };
            let drawn = || values().filter_map(Value::as_f64).map(f64::ln);
            let (least, most) = (
                drawn().fold(f64::INFINITY, f64::min),
                drawn().fold(f64::NEG_INFINITY, f64::max),
            );
            let text = |value: &Value| value.as_str().unwrap().to_string();
            let mut cells = 0;
            for step in 0..60 {
                let (across, up) = (
                    0.1 + 0.85 * f64::from(step) / 60.0,
                    0.1 + 0.75 * f64::from(step % 7) / 7.0,
                );
                let [x, y] = at(place, across, up);
                browser.point_at([x, y]);
                let told = browser.drawn(&format!(
                    "(() => {{
                   const tip = document.querySelector('#chart-{id} .tip');
                   const canvas = document.querySelector('#chart-{id} canvas');
                   return {{
                     said: [...tip.children].map((one) => one.textContent),
                     colour: [...canvas.getContext('2d').getImageData({}, {}, 1, 1).data],
                   }};
                 }})()",
                    x - place[0],
                    y - place[1]
                ));
                let heads = |name: &str| {
                    data[name]
                        .as_array()
                        .unwrap()
                        .iter()
                        .map(text)
                        .collect::<Vec<_>>()
                };
                let of = |part: usize, label: &str, heads: Vec<String>| {
                    let name = text(&told["said"][part]);
                    let name = name
                        .strip_prefix(&format!("{} ", text(&data[label])))
                        .unwrap()
                        .to_string();
                    heads.iter().position(|head| *head == name).unwrap()
                };
                let (column, row) = (of(1, "x", heads("columns")), of(2, "y", heads("rows")));
                let said = text(&told["said"][0]);
                let Some(value) = data["values"][row][column].as_f64() else {
                    assert_eq!(said, "not measured");
                    continue;
                };
                cells += 1;
                assert!(
                    is_near(read("number", said.rsplit(": ").next().unwrap()), value),
                    "{said}, not {value}"
                );
                let along = (value.ln() - least) / (most - least) * (scale.len() - 1) as f64;
                let below = (0..scale.len() - 1)
                    .rfind(|at| *at as f64 <= along)
                    .unwrap();
                for part in 0..3 {
                    let share = along - below as f64;
                    let wanted =
                        scale[below][part] * (1.0 - share) + scale[below + 1][part] * share;
                    let found = told["colour"][part].as_f64().unwrap();
                    assert!((wanted - found).abs() < 2.0, "{told} where {value} is told");
                }
            }
            assert!(cells > 20, "{cells}");
        },
    );
}

/// A colour of a series, as the page currently defines it.
fn colour(browser: &mut Browser, number: usize) -> [u8; 3] {
    let name = format!(
        "getComputedStyle(document.documentElement).getPropertyValue('--c{number}').trim()"
    );
    let text = browser.value(&name);
    let part = |at: usize| u8::from_str_radix(&text.as_str().unwrap()[at..at + 2], 16).unwrap();
    [part(1), part(3), part(5)]
}

/// Number of pixels of a chart in a colour.
fn painted(browser: &mut Browser, id: &str, [red, green, blue]: [u8; 3]) -> u64 {
    let count = browser.drawn(&format!(
        "[...document.querySelectorAll('#chart-{id} canvas')].reduce((sum, canvas) => {{
           const {{ data }} = canvas.getContext('2d').getImageData(0, 0, canvas.width, \
         canvas.height);
           const is = (at) => data[at] === {red} && data[at + 1] === {green} && data[at + 2] === \
         {blue};
           for (let at = 0; at < data.length; at += 4) if (data[at + 3] === 255 && is(at)) sum++;
           return sum;
         }}, 0)"
    ));
    count.as_u64().unwrap()
}

/// The exact pixels of a chart.
fn looks(browser: &mut Browser, id: &str) -> Value {
    browser.drawn(&format!(
        "[...document.querySelectorAll('#chart-{id} canvas')].map((one) => one.toDataURL()).join()"
    ))
}

#[test]
fn the_legend_hides_a_series_and_shows_it_again() {
    in_browser(
        "the_legend_hides_a_series_and_shows_it_again",
        SCREEN,
        |browser| {
            let second = colour(browser, 1);
            let mark = "[...document.querySelectorAll('#chart-load .legend button')][1]";
            assert_eq!(
                browser.value(&format!("{mark}.id = 'second', {mark}.textContent")),
                "p99"
            );
            let whole = looks(browser, "load");
            for (pressed, is_there) in [("true", true), ("false", false), ("true", true)] {
                assert_eq!(
                    browser.value(&format!("{mark}.getAttribute('aria-pressed')")),
                    pressed
                );
                assert_eq!(painted(browser, "load", second) > 50, is_there, "{pressed}");
                let place = panel(browser, "load", 0);
                browser.point_at(at(place, 0.4, 0.5));
                let told = told(browser, "load", 0);
                let rows = told["rows"].as_array().unwrap();
                assert_eq!(rows.iter().any(|row| row[0] == "p99"), is_there, "{told}");
                assert!(rows.iter().any(|row| row[0] == "mean"), "{told}");
                browser.click_on("#second");
            }
            browser.click_on("#second");
            browser.point_at([2.0, 2.0]);
            assert_eq!(looks(browser, "load"), whole, "as it was");
        },
    );
}

#[test]
fn the_theme_changes_the_colours_of_text_and_charts() {
    in_browser(
        "the_theme_changes_the_colours_of_text_and_charts",
        SCREEN,
        |browser| {
            let scheme = |browser: &mut Browser, name: &str| {
                let features =
                    json!({ "features": [{ "name": "prefers-color-scheme", "value": name }] });
                browser.call("Emulation.setEmulatedMedia", &features);
            };
            let paper = |browser: &mut Browser| {
                browser.value("getComputedStyle(document.body).backgroundColor")
            };
            let (light, on_light) = (colour(browser, 0), paper(browser));
            scheme(browser, "dark");
            let (dark, on_dark) = (colour(browser, 0), paper(browser));
            assert!(
                light != dark && on_light != on_dark,
                "{light:?} {dark:?} {on_light} {on_dark}"
            );
            // First the system's preference, then the button, which overrides the system.
            for (says, button, is_dark) in [
                ("light", None, false),
                ("dark", None, true),
                ("dark", Some("Light"), false),
                ("light", None, false),
                ("light", Some("Dark"), true),
                ("dark", None, true),
            ] {
                scheme(browser, says);
                if let Some(name) = button {
                    assert_eq!(
                        browser.value("document.querySelector('#theme').textContent"),
                        name
                    );
                    browser.click_on("#theme");
                }
                assert_eq!(
                    paper(browser),
                    if is_dark {
                        on_dark.clone()
                    } else {
                        on_light.clone()
                    },
                    "{says} {button:?}"
                );
                for id in ["load", "timeline"] {
                    assert_eq!(
                        painted(browser, id, light) > 50,
                        !is_dark,
                        "{id}: {says} {button:?}"
                    );
                    assert_eq!(
                        painted(browser, id, dark) > 50,
                        is_dark,
                        "{id}: {says} {button:?}"
                    );
                }
            }
        },
    );
}

/// The value on the horizontal axis at a fraction of a panel's width.
fn value_at(browser: &mut Browser, id: &str, panel_at: usize, across: f64) -> f64 {
    let place = panel(browser, id, panel_at);
    browser.point_at(at(place, across, 0.5));
    let told = told(browser, id, panel_at);
    head(&data(browser, id), &told)
}

#[test]
fn dragging_zooms_every_panel_and_a_double_click_shows_all_again() {
    in_browser(
        "dragging_zooms_every_panel_and_a_double_click_shows_all_again",
        SCREEN,
        |browser| {
            let id = "timeline";
            browser.point_at([2.0, 2.0]);
            let whole = looks(browser, id);
            let [from, to] = [0.4, 0.6].map(|across| value_at(browser, id, 0, across));
            let shows_all =
                "document.querySelector('#chart-timeline .labels.across button').hidden";
            for again in ["double click", "button"] {
                assert_eq!(browser.value(shows_all), true);
                let place = panel(browser, id, 0);
                browser.drag(at(place, 0.4, 0.5), at(place, 0.6, 0.5));
                for of in [0, 2] {
                    let [left, right] =
                        [0.005, 0.995].map(|across| value_at(browser, id, of, across));
                    assert!(
                        (left - from).abs() <= 4.0 && (right - to).abs() <= 4.0,
                        "{left} to {right}: panel {of}"
                    );
                    is_of_the_data(id, &data(browser, id), &told(browser, id, of));
                }
                assert_ne!(looks(browser, id), whole);
                assert_eq!(browser.value(shows_all), false);
                if again == "button" {
                    browser.click_on("#chart-timeline .labels.across button");
                } else {
                    let place = panel(browser, id, 2);
                    browser.click(at(place, 0.5, 0.5), 2);
                }
                browser.point_at([2.0, 2.0]);
                assert_eq!(looks(browser, id), whole, "{again}");
            }
        },
    );
}

#[test]
fn two_fingers_zoom_and_move_and_one_scrolls_the_page() {
    in_browser(
        "two_fingers_zoom_and_move_and_one_scrolls_the_page",
        PHONE,
        |browser| {
            let id = "timeline";
            let before = [0.4, 0.6].map(|across| value_at(browser, id, 1, across));
            let place = panel(browser, id, 1);
            let fingers = |one: f64, other: f64| [at(place, one, 0.4), at(place, other, 0.6)];
            browser.touch(&[&fingers(0.4, 0.6), &fingers(0.3, 0.7), &fingers(0.2, 0.8)]);
            let span = before[1] - before[0];
            let near = |found: f64, wanted: f64| (found - wanted).abs() < span * 0.06;
            // The values below the fingers are the same as before.
            let after = [0.2, 0.8].map(|across| value_at(browser, id, 1, across));
            assert!(
                near(after[0], before[0]) && near(after[1], before[1]),
                "{before:?} became {after:?}"
            );
            let place = panel(browser, id, 1);
            let fingers = |one: f64, other: f64| [at(place, one, 0.4), at(place, other, 0.6)];
            browser.touch(&[&fingers(0.2, 0.5), &fingers(0.3, 0.6), &fingers(0.4, 0.7)]);
            let moved = value_at(browser, id, 1, 0.4);
            assert!(near(moved, before[0]), "{} was moved to {moved}", before[0]);
            assert_eq!(
                browser.value("visualViewport.scale"),
                1,
                "the page itself is as it was"
            );

            let place = panel(browser, id, 1);
            let scrolled = browser.value("scrollY").as_f64().unwrap();
            let finger = |up: f64| [[place[0] + place[2] / 2.0, place[1] + place[3] / 2.0 - up]];
            browser.touch(&[
                &finger(0.0),
                &finger(40.0),
                &finger(90.0),
                &finger(140.0),
                &finger(190.0),
            ]);
            browser.until(
                "one finger scrolls the page",
                &format!("scrollY > {scrolled} + 100"),
            );
            assert!(
                near(value_at(browser, id, 1, 0.4), before[0]),
                "and leaves the chart as it was"
            );
        },
    );
}

#[test]
fn everything_is_reached_by_keyboard_and_has_a_name() {
    in_browser(
        "everything_is_reached_by_keyboard_and_has_a_name",
        SCREEN,
        |browser| {
            let count = browser.value(
                "(window.operable = [...document.querySelectorAll('a[href], button, summary, \
                 [tabindex]')]
               .filter((one) => one.tabIndex >= 0 && one.checkVisibility())).length",
            );
            let count = usize::try_from(count.as_u64().unwrap()).unwrap();
            for step in 0..count {
                browser.key("Tab");
                let reached = browser.value("operable.indexOf(document.activeElement)");
                let element = browser.value("document.activeElement.outerHTML.slice(0, 200)");
                assert_eq!(reached, step, "after {step} others {element}");
                let one = browser.call(
                    "Runtime.evaluate",
                    &json!({ "expression": "document.activeElement" }),
                );
                let asked =
                    json!({ "objectId": one["result"]["objectId"], "fetchRelatives": false });
                let node =
                    browser.call("Accessibility.getPartialAXTree", &asked)["nodes"][0].take();
                let name = node["name"]["value"].as_str().unwrap_or_default().trim();
                let role = node["role"]["value"].as_str().unwrap_or_default();
                assert!(
                    !name.is_empty() && !["generic", "none", ""].contains(&role),
                    "{role} {name:?}: {element}"
                );
                let outline =
                    browser.value("getComputedStyle(document.activeElement).outlineStyle");
                assert_ne!(
                    outline, "none",
                    "nobody sees that the keyboard is at {element}"
                );
            }
            assert!(count > 40, "{count}");
        },
    );
}

#[test]
fn the_keyboard_walks_along_a_chart_and_zooms_it() {
    in_browser(
        "the_keyboard_walks_along_a_chart_and_zooms_it",
        SCREEN,
        |browser| {
            let data = data(browser, "load");
            let xs: Vec<f64> = serde_json::from_value(data["xs"][0].clone()).unwrap();
            browser.value("document.querySelector('#chart-load .plot').focus()");
            let stand = |browser: &mut Browser, key: &str, at: usize| {
                browser.key(key);
                let told = told(browser, "load", 0);
                is_of_the_data("load", &data, &told);
                assert!(
                    is_near(head(&data, &told), xs[at]),
                    "{told} after {key}, not {}",
                    xs[at]
                );
            };
            for (key, at) in [
                ("ArrowRight", 0),
                ("ArrowRight", 1),
                ("ArrowRight", 2),
                ("ArrowLeft", 1),
            ] {
                stand(browser, key, at);
            }
            let whole = looks(browser, "load");
            browser.key("+");
            assert_ne!(looks(browser, "load"), whole);
            // Values out of view are skipped.
            for _ in 0..20 {
                browser.key("ArrowRight");
            }
            let last = head(&data, &told(browser, "load", 0));
            assert!(last < xs[xs.len() - 1] * 0.9, "{last}");
            browser.key("-");
            assert_eq!(looks(browser, "load"), whole);
            // Enter activates the focused element.
            let paper = "getComputedStyle(document.body).backgroundColor";
            let before = browser.value(paper);
            browser.value("document.querySelector('#theme').focus()");
            browser.key("Enter");
            assert_ne!(browser.value(paper), before);
        },
    );
}

#[test]
fn printing_is_light_and_leaves_the_screen_as_it_was() {
    in_browser(
        "printing_is_light_and_leaves_the_screen_as_it_was",
        SCREEN,
        |browser| {
            browser.click_on("#theme");
            browser.point_at([2.0, 2.0]);
            let before = looks(browser, "timeline");
            browser.value(
                "addEventListener('beforeprint', () => (window.theme = \
                 document.documentElement.dataset.theme))",
            );
            let printed = browser.call("Page.printToPDF", &json!({}));
            assert!(printed["data"].as_str().unwrap().len() > 100_000);
            assert_eq!(browser.value("theme"), "light");
            assert_eq!(
                browser.value("document.documentElement.dataset.theme"),
                "dark"
            );
            assert_eq!(looks(browser, "timeline"), before);
            // Nothing extends beyond the edge of A4 paper, without the browser's margins.
            let size =
                json!({ "width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": false });
            browser.call("Emulation.setDeviceMetricsOverride", &size);
            browser.call("Emulation.setEmulatedMedia", &json!({ "media": "print" }));
            let beyond = browser.drawn(
                "[...document.querySelectorAll('main *:not(.unseen)')]
               .filter((one) => one.checkVisibility() && one.getBoundingClientRect().right > \
                 innerWidth + 1)
               .map((one) => one.outerHTML.slice(0, 80))",
            );
            assert_eq!(beyond, json!([]));
        },
    );
}
