//! A page in headless Chromium, with mouse, keyboard and touch events like a reader's.
//!
//! Input: a page. Output: its state, and all errors in it. The browser is controlled through its
//! own protocol over a pipe, so that its events are real input events and not made by a script.

use crate::common::{Missing, Place, need, text, wait};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Timeout after which a browser counts as dead: it answers within a second, but machines stand
/// still.
const PATIENCE: Duration = Duration::from_secs(600);

/// Width of a telephone.
pub(crate) const PHONE: u32 = 390;

/// A browser that shows a page, closed on drop.
pub(crate) struct Browser {
    process: Child,
    orders: ChildStdin,
    said: Receiver<Value>,
    session: Value,
    last: u64,
    /// Errors, console output, dialogs, and attempted loads.
    pub(crate) wrong: Vec<Value>,
    place: Place,
}

impl Browser {
    /// Opens a page with a given width.
    pub(crate) fn open(name: &str, html: &str, width: u32) -> Result<Self, Missing> {
        need("chromium", &["--version"])?;
        let place = Place::new(&format!("page-{name}"));
        let profile = place.0.join("profile");
        // It reads commands from its descriptor 3, and writes answers to 4.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec chromium \"$@\" 3<&0 4>&1 >/dev/null",
                "sh",
                "--remote-debugging-pipe",
            ])
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .arg(format!("--user-data-dir={}", text(&profile)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let orders = process.stdin.take().unwrap();
        let answers = BufReader::new(process.stdout.take().unwrap());
        let (tell, said) = channel();
        std::thread::spawn(move || {
            for answer in answers.split(0).map_while(Result::ok) {
                let _ = tell.send(serde_json::from_slice(&answer).unwrap());
            }
        });
        let mut browser = Self {
            process,
            orders,
            said,
            session: Value::Null,
            last: 0,
            wrong: Vec::new(),
            place,
        };
        let page = browser.call("Target.createTarget", &json!({ "url": "about:blank" }));
        let attached = browser.call(
            "Target.attachToTarget",
            &json!({ "targetId": page["targetId"], "flatten": true }),
        );
        browser.session = attached["sessionId"].clone();
        for part in ["Page", "Runtime", "Log", "Network", "DOM", "Accessibility"] {
            browser.call(&format!("{part}.enable"), &json!({}));
        }
        browser.show(html, (width, 900));
        Ok(browser)
    }

    /// Shows a page in a window of this width and height.
    pub(crate) fn show(&mut self, html: &str, (width, height): (u32, u32)) {
        let file = self.place.0.join("page.html");
        std::fs::write(&file, html).unwrap();
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width == PHONE });
        self.call("Emulation.setDeviceMetricsOverride", &size);
        self.call(
            "Emulation.setTouchEmulationEnabled",
            &json!({ "enabled": width == PHONE, "maxTouchPoints": 5 }),
        );
        self.call(
            "Page.navigate",
            &json!({ "url": format!("file://{}", text(&file)) }),
        );
        self.until(
            "the page is there",
            "document.readyState === 'complete' && Boolean(document.querySelector('main'))",
        );
    }

    /// Sends a command to the browser, and waits for its answer.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut order = json!({ "id": self.last, "method": method, "params": parameters });
        if !self.session.is_null() {
            order["sessionId"] = self.session.clone();
        }
        self.orders
            .write_all(format!("{order}\0").as_bytes())
            .unwrap();
        loop {
            let mut said = self
                .said
                .recv_timeout(PATIENCE)
                .unwrap_or_else(|error| panic!("{method}: {error}"));
            if said["id"] == self.last {
                assert!(said["error"].is_null(), "{method}: {said}");
                return said["result"].take();
            }
            let loads = said["method"] == "Network.requestWillBeSent"
                && !said["params"]["request"]["url"]
                    .as_str()
                    .unwrap()
                    .ends_with("/page.html");
            // This test reads the canvases slowly; that is not an error of the page.
            let is_ours = said["params"]["entry"]["text"]
                .as_str()
                .is_some_and(|text| text.contains("willReadFrequently"));
            if is_ours {
                continue;
            }
            let events = [
                "Runtime.exceptionThrown",
                "Runtime.consoleAPICalled",
                "Log.entryAdded",
            ];
            if loads
                || said["method"] == "Page.javascriptDialogOpening"
                || events.iter().any(|event| said["method"] == *event)
            {
                self.wrong.push(said);
            }
        }
    }

    /// The value of a JavaScript expression.
    pub(crate) fn value(&mut self, expression: &str) -> Value {
        let asked =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let mut found = self.call("Runtime.evaluate", &asked);
        assert!(found["exceptionDetails"].is_null(), "{expression}: {found}");
        found["result"]["value"].take()
    }

    /// The value of an expression after the page was redrawn, when it has processed all input.
    pub(crate) fn drawn(&mut self, expression: &str) -> Value {
        let frames =
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))";
        self.value(&format!("{frames}.then(() => {expression})"))
    }

    /// Waits until an expression is true.
    pub(crate) fn until(&mut self, what: &str, expression: &str) {
        for _ in 0..15_000 {
            if self.value(expression) == true {
                return;
            }
            wait(20);
        }
        panic!("waited in vain until {what}");
    }

    /// Position of an element, after it was scrolled into view: left, top, width, height.
    pub(crate) fn place(&mut self, selector: &str) -> [f64; 4] {
        let found = self.value(&format!(
            "(() => {{ const one = document.querySelector({}); one.scrollIntoView({{ block: \
             'center', behavior: 'instant' }});
             const at = one.getBoundingClientRect(); return [at.left, at.top, at.width, \
             at.height]; }})()",
            json!(selector)
        ));
        serde_json::from_value(found).unwrap()
    }

    /// Moves, presses or releases the mouse.
    fn mouse(&mut self, kind: &str, [x, y]: [f64; 2], clicks: u8) {
        let pressed = u8::from(clicks > 0 && kind != "mouseReleased");
        let button = if clicks > 0 { "left" } else { "none" };
        let event = json!({ "type": kind, "x": x, "y": y, "button": button, "buttons": pressed, "clickCount": clicks });
        self.call("Input.dispatchMouseEvent", &event);
    }

    /// Moves the mouse to a position.
    pub(crate) fn point_at(&mut self, place: [f64; 2]) {
        self.mouse("mouseMoved", place, 0);
    }

    /// Clicks once or twice.
    pub(crate) fn click(&mut self, place: [f64; 2], times: u8) {
        self.point_at(place);
        for time in 1..=times {
            self.mouse("mousePressed", place, time);
            self.mouse("mouseReleased", place, time);
        }
    }

    /// Clicks the middle of an element.
    pub(crate) fn click_on(&mut self, selector: &str) {
        let [left, top, width, height] = self.place(selector);
        self.click([left + width / 2.0, top + height / 2.0], 1);
    }

    /// Drags from one position to another.
    pub(crate) fn drag(&mut self, from: [f64; 2], to: [f64; 2]) {
        self.point_at(from);
        self.mouse("mousePressed", from, 1);
        for step in 1..=5 {
            let along =
                |index: usize| from[index] + (to[index] - from[index]) * f64::from(step) / 5.0;
            self.mouse("mouseMoved", [along(0), along(1)], 1);
        }
        self.mouse("mouseReleased", to, 1);
    }

    /// Presses a key, such as `Tab`.
    pub(crate) fn key(&mut self, key: &str) {
        let (code, typed) = match key {
            "Tab" => (9, None),
            "Enter" => (13, Some("\r")),
            "ArrowLeft" => (37, None),
            "ArrowRight" => (39, None),
            "+" => (187, Some("+")),
            "-" => (189, Some("-")),
            other => panic!("no key {other}"),
        };
        let down = if typed.is_some() {
            "keyDown"
        } else {
            "rawKeyDown"
        };
        for kind in [down, "keyUp"] {
            let mut event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            if kind == "keyDown" {
                event["text"] = typed.into();
            }
            self.call("Input.dispatchKeyEvent", &event);
        }
    }

    /// Puts fingers on the first positions, moves them through the others, and lifts them.
    pub(crate) fn touch(&mut self, steps: &[&[[f64; 2]]]) {
        for (step, fingers) in steps.iter().enumerate() {
            let finger = |(id, [x, y]): (usize, &[f64; 2])| json!({ "x": x, "y": y, "id": id });
            let points: Vec<Value> = fingers.iter().enumerate().map(finger).collect();
            let kind = if step == 0 { "touchStart" } else { "touchMove" };
            self.call(
                "Input.dispatchTouchEvent",
                &json!({ "type": kind, "touchPoints": points }),
            );
        }
        self.call(
            "Input.dispatchTouchEvent",
            &json!({ "type": "touchEnd", "touchPoints": [] }),
        );
    }

    /// Checks that there was no error in the page so far.
    pub(crate) fn nothing_wrong(&mut self) {
        self.value("0");
        assert!(self.wrong.is_empty(), "{:#?}", self.wrong);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser must end by itself, otherwise its children write their profile while it is
        // being removed.
        let order = json!({ "id": 0, "method": "Browser.close" });
        let _ = self.orders.write_all(format!("{order}\0").as_bytes());
        while self.said.recv_timeout(Duration::from_secs(10)).is_ok() {}
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
