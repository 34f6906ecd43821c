// SPDX-License-Identifier: MIT OR Apache-2.0
//! `paceline call --watch` without a browser: its output, access to its page, its end, and its results. The page itself is
//! tested in `paceline-live/tests/browser.rs`.

use super::hosts::{Background, signal};
use super::track::is_required;
use super::{paceline, stderr};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::{ClientRequestBuilder, Message, WebSocket};

/// Starts a watched call, and returns the host and path of its page; `None` if the world is not available.
fn watched(world: &str, arguments: &[&str]) -> Option<(Background, String, String)> {
    match Background::try_start(&[&["call", "--watch", "--world", world], arguments].concat(), "http://") {
        Ok(call) => {
            let (host, path) = call.address.split_once('/').unwrap();
            let (host, path) = (host.to_owned(), format!("/{path}"));
            Some((call, host, path))
        }
        Err((code, line)) => {
            assert!(!is_required(), "PACELINE_REQUIRE names `track`, but: {line}");
            assert_eq!(code, Some(3), "{line}");
            eprintln!("SKIPPED: {line}");
            None
        }
    }
}

pub fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

pub fn socket(host: &str, path: &str) -> WebSocket<TcpStream> {
    let uri = format!("ws://{host}{path}socket").parse().unwrap();
    let request = ClientRequestBuilder::new(uri).with_header("Origin", format!("http://{host}"));
    tungstenite::client(request, TcpStream::connect(host).unwrap()).unwrap().0
}

/// Reads points until one fulfils the condition.
pub fn until(socket: &mut WebSocket<TcpStream>, wanted: impl Fn(&Value) -> bool) -> Value {
    let started = Instant::now();
    loop {
        assert!(started.elapsed() < Duration::from_secs(30), "timeout");
        let Message::Text(text) = socket.read().unwrap() else { continue };
        let message: Value = serde_json::from_str(&text).unwrap();
        let point = message["points"].as_array().into_iter().flatten().find(|point| wanted(point));
        if let Some(point) = point {
            return point.clone();
        }
    }
}

/// Reads until the page learns the outcome, and returns it.
pub fn outcome(socket: &mut WebSocket<TcpStream>) -> String {
    loop {
        let Message::Text(text) = socket.read().unwrap() else { continue };
        let message: Value = serde_json::from_str(&text).unwrap();
        if let Some(outcome) = message["over"].as_str() {
            return outcome.to_owned();
        }
    }
}

#[test]
fn the_page_shows_the_call_and_changes_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let Some((call, host, path)) = watched("testbed", &["--json", "--out", out.to_str().unwrap()]) else { return };
    assert!(host.starts_with("127.0.0.1:") && path.len() == 34, "{host}{path}");
    assert!(get(&host, &path).starts_with("HTTP/1.1 200 "));
    let mut page = socket(&host, &path);
    let first = until(&mut page, |point| point["flows"][0]["received"].as_u64() > Some(0));
    assert_eq!(first["capacity"], serde_json::json!(2e6));
    page.send(Message::text(r#"{"capacity_bps":500000}"#)).unwrap();
    let moved = until(&mut page, |point| point["capacity"] == serde_json::json!(5e5));
    until(&mut page, |point| point["t"].as_f64() > Some(moved["t"].as_f64().unwrap() + 2.0));
    signal("-INT", call.child.id());
    let document: Value = serde_json::from_str(&call.output()).unwrap();
    let (run, at) = (&document["runs"][0], moved["t"].as_f64().unwrap());
    let lasted = run["duration_s"].as_f64().unwrap();
    assert!((at + 1.0..at + 10.0).contains(&lasted), "{lasted} s, changed at {at} s");
    let notes: Vec<&str> = document["notes"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let by_hand: Vec<&&str> = notes.iter().filter(|note| note.ends_with("capacity 500 kbps, by hand")).collect();
    assert_eq!(by_hand.len(), 1, "{notes:?}");
    // 2 Mbit/s before the change (its point may be 0.1 s later), 0.5 Mbit/s after it.
    let mean = |at: f64| (2e6 * at + 5e5 * (lasted - at)) / lasted;
    let capacity = run["link"]["capacity_bps"].as_f64().unwrap();
    assert!((mean(at - 0.2)..=mean(at)).contains(&capacity), "{capacity}, and {} to {}", mean(at - 0.2), mean(at));

    // The stored results agree, and there is a report.
    let about = serde_json::to_value(&paceline_lab::results::Store::read(out).unwrap().runs[0].about).unwrap();
    let steps = about["inputs"]["setting"]["hops"][0]["capacity"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[0], &steps[1][1]), (2, &serde_json::json!([0.0, 2e6]), &serde_json::json!(5e5)));
    assert!(out.join("report.html").is_file());
}

#[test]
fn rejects_calls_that_cannot_be_watched() {
    for (arguments, message) in [
        (&["call", "--watch", "--world", "sim"][..], "--watch needs a world in real time"),
        (&["call", "--watch", "--world", "testbed", "--controller", "gcc-2016,nada"], "--watch shows one run"),
        (&["call", "--port", "8000"], "--watch"),
    ] {
        let output = paceline(arguments).output().unwrap();
        assert!(output.status.code() == Some(2) && stderr(&output).contains(message), "{}", stderr(&output));
    }
}

/// Not a test: `cargo xtask screenshots` calls it.
#[test]
#[ignore = "writes the guide's picture"]
fn writes_screenshot() {
    use paceline_browser::chromium::{Browser, Scratch};
    let to = std::env::var_os("PACELINE_PICTURE").expect("PACELINE_PICTURE names the file");
    let (mut call, host, path) = watched("browser", &[]).expect("the screenshot needs the world `browser`");
    let browser = Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap();
    let page = browser.open(&format!("http://{host}{path}")).unwrap();
    let screen = serde_json::json!({"width": 1280, "height": 780, "deviceScaleFactor": 1, "mobile": false});
    page.call("Emulation.setDeviceMetricsOverride", screen).unwrap();
    let wait = |from: u32| {
        for until in (from..=from + 20).step_by(5) {
            let look = format!(
                "new Promise((done) => {{ const look = () => paceline.points.at(-1)?.t >= {until} ? done() : setTimeout(look, 50); look(); }})"
            );
            page.evaluate(&look).unwrap();
        }
    };
    wait(10);
    page.evaluate("document.getElementById('halve').click()").unwrap();
    wait(30);
    std::fs::write(to, page.screenshot((1280.0, 0.0, 780.0)).unwrap()).unwrap();
    signal("-INT", call.child.id());
    call.child.wait().unwrap();
}
