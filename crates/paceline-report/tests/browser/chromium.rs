//! A browser with one page, which reaches no network and complains aloud.

use paceline_chromium::{Browser as Chromium, Page, Scratch};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};

/// What the page complained of, and what it asked the network for.
#[derive(Default)]
struct Heard {
    complaints: Vec<String>,
    requests: Vec<String>,
}

/// A browser with one page, which reaches no network.
pub struct Browser {
    page: Page,
    heard: Arc<Mutex<Heard>>,
    /// What the page complained of, and what it asked the network for.
    pub complaints: Vec<String>,
    pub requests: Vec<String>,
    _browser: Chromium,
}

impl Browser {
    /// Starts it.
    pub fn start() -> Self {
        let browser = Chromium::start(Scratch::new().expect("a folder"), 0, &[]).expect("chromium starts");
        let page = browser.open("about:blank").expect("a page");
        let heard = Arc::new(Mutex::new(Heard::default()));
        let hears = Arc::clone(&heard);
        page.listen(move |method, parameters| hears.lock().unwrap().hear(method, parameters));
        let mut browser = Self { page, heard, complaints: Vec::new(), requests: Vec::new(), _browser: browser };
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

    /// The value of an expression in the page; of a promise, what it comes to.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let value = self.page.evaluate(expression).unwrap_or_else(|error| panic!("{expression}: {error}"));
        self.take_heard();
        value
    }

    /// A picture of the page below `top` and above `bottom`, px, as PNG.
    pub fn picture(&mut self, part: (f64, f64, f64)) -> Vec<u8> {
        self.page.picture(part).expect("a picture")
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.page.call(method, parameters).unwrap_or_else(|error| panic!("{error}"));
        self.take_heard();
        answer
    }

    fn take_heard(&mut self) {
        let mut heard = self.heard.lock().unwrap();
        self.complaints.append(&mut heard.complaints);
        self.requests.append(&mut heard.requests);
    }
}

impl Heard {
    fn hear(&mut self, method: &str, parameters: &Value) {
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
