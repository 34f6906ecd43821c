// SPDX-License-Identifier: MIT OR Apache-2.0
//! A browser with one page and without network access, which records errors.

use paceline_browser::chromium::{Browser as Chromium, Page, Scratch};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

#[derive(Default)]
struct Log {
    complaints: Vec<String>,
    requests: Vec<String>,
}

/// A browser with one page and without network access.
pub struct Browser {
    page: Page,
    log: Arc<Mutex<Log>>,
    pub complaints: Vec<String>,
    pub requests: Vec<String>,
    _browser: Chromium,
}

impl Browser {
    pub fn start() -> Self {
        let browser = Chromium::start(Scratch::new().expect("a folder"), 0, &[]).expect("chromium starts");
        let page = browser.open("about:blank").expect("a page");
        let log = Arc::new(Mutex::new(Log::default()));
        let events = Arc::clone(&log);
        page.listen(move |method, parameters| events.lock().unwrap().record(method, parameters));
        let mut browser = Self { page, log, complaints: Vec::new(), requests: Vec::new(), _browser: browser };
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.call("Network.setBlockedURLs", json!({"urls": ["http://*", "https://*", "ws://*", "wss://*"]}));
        browser
    }

    /// Opens a page and waits until its plots are drawn.
    pub fn open(&mut self, page: &Path) {
        self.requests.clear();
        self.call("Page.navigate", json!({"url": format!("file://{}", page.display())}));
        self.evaluate(
            "new Promise((done) => { const look = () => window.paceline && (paceline.ready || paceline.error) \
             ? done() : setTimeout(look, 20); look(); })",
        );
    }

    /// Evaluates an expression in the page; a promise is awaited.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let value = self.page.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        self.take_log();
        value
    }

    pub fn picture(&mut self, part: (f64, f64, f64)) -> Vec<u8> {
        self.page.screenshot(part).expect("a picture")
    }

    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.page.call(method, parameters).unwrap_or_else(|error| panic!("{error}"));
        self.take_log();
        answer
    }

    fn take_log(&mut self) {
        let mut log = self.log.lock().unwrap();
        self.complaints.append(&mut log.complaints);
        self.requests.append(&mut log.requests);
    }
}

impl Log {
    fn record(&mut self, method: &str, parameters: &Value) {
        match method {
            "Runtime.exceptionThrown" => self.complaints.push(parameters["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" if matches!(parameters["type"].as_str(), Some("error" | "warning")) => {
                self.complaints.push(parameters["args"].to_string());
            }
            "Log.entryAdded" if parameters["entry"]["level"] == "error" => {
                self.complaints.push(parameters["entry"].to_string());
            }
            "Network.requestWillBeSent" => {
                self.requests.push(parameters["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
}
