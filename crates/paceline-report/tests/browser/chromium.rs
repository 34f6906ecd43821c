//! A headless Chromium, driven over the DevTools protocol.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tungstenite::protocol::WebSocketConfig;
use tungstenite::{Message, WebSocket};

/// Where it is called what.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A browser with one page, which reaches no network.
pub struct Browser {
    child: Child,
    socket: WebSocket<TcpStream>,
    session: String,
    id: u64,
    /// What the page complained of, and what it asked the network for.
    pub complaints: Vec<String>,
    pub requests: Vec<String>,
}

/// The program, if it is installed; a panic if it is not and the environment requires it.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).flat_map(|dir| NAMES.map(|name| dir.join(name))).find(|p| p.is_file());
    let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|list| list.split([',', ' ']).any(|r| r == "chromium"));
    assert!(found.is_some() || !required, "PACELINE_REQUIRE asks for chromium, and none is installed");
    if found.is_none() {
        eprintln!("NOT TESTED: no Chromium is installed, so no page was opened");
    }
    found
}

impl Browser {
    /// Starts it, its own files in `profile`.
    pub fn start(program: &Path, profile: &Path) -> Self {
        let mut child = Command::new(program)
            .args(["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"])
            .args(["--no-first-run", "--disable-background-networking", "--disable-component-update"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0"])
            .arg(format!("--user-data-dir={}", profile.display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("chromium starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr is a pipe")).lines().map_while(Result::ok);
        let address = lines.find_map(|line| Some(line.split_once("DevTools listening on ")?.1.to_owned()));
        let address = address.expect("chromium says where it listens");
        let host = address.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).expect("an address");
        let stream = TcpStream::connect(host).expect("chromium answers");
        let config = WebSocketConfig::default().max_message_size(None).max_frame_size(None);
        let (socket, _) =
            tungstenite::client::client_with_config(address.as_str(), stream, Some(config)).expect("a web socket");
        let mut browser =
            Self { child, socket, session: String::new(), id: 0, complaints: Vec::new(), requests: Vec::new() };
        let target = browser.call("Target.createTarget", json!({"url": "about:blank"}));
        let attached = browser.call("Target.attachToTarget", json!({"targetId": target["targetId"], "flatten": true}));
        browser.session = attached["sessionId"].as_str().expect("a session").to_owned();
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
        let wanted = json!({"expression": expression, "awaitPromise": true, "returnByValue": true});
        let answer = self.call("Runtime.evaluate", wanted);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// A picture of the page below `top` and above `bottom`, px, as PNG.
    pub fn picture(&mut self, (width, top, bottom): (f64, f64, f64)) -> Vec<u8> {
        use base64::Engine;
        let clip = json!({"x": 0, "y": top, "width": width, "height": bottom - top, "scale": 1});
        let wanted = json!({"format": "png", "clip": clip, "captureBeyondViewport": true});
        let answer = self.call("Page.captureScreenshot", wanted);
        base64::engine::general_purpose::STANDARD.decode(answer["data"].as_str().expect("a picture")).expect("base64")
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.id += 1;
        let mut message = json!({"id": self.id, "method": method, "params": parameters});
        if !self.session.is_empty() {
            message["sessionId"] = json!(self.session);
        }
        self.socket.send(Message::text(message.to_string())).expect("chromium listens");
        loop {
            let Message::Text(text) = self.socket.read().expect("chromium answers") else { continue };
            let answer: Value = serde_json::from_str(&text).expect("the protocol is JSON");
            if answer["id"] == json!(self.id) {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
            self.heard(&answer);
        }
    }

    fn heard(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
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

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
