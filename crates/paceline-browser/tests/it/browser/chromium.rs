// SPDX-License-Identifier: MIT OR Apache-2.0
//! Browser control, error reporting, and cleanup after normal and forced ends.

use paceline_browser::chromium::{Browser, Error, Scratch, required};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Generous timeout for a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(20);

/// Returns the processes with the folder in their arguments, except zombies.
fn working_in(folder: &Path) -> Vec<u32> {
    let folder = folder.to_str().unwrap();
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok());
    let works =
        |id: &u32| std::fs::read_to_string(format!("/proc/{id}/cmdline")).is_ok_and(|line| line.contains(folder));
    ids.filter(works).collect()
}

fn gone(folder: &Path) -> bool {
    let since = Instant::now();
    while since.elapsed() < TIMEOUT {
        if !folder.exists() && working_in(folder).is_empty() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// Starts a browser; `None` if this machine has none.
fn start() -> Option<Browser> {
    required().map(|_| Browser::start(Scratch::new().unwrap(), 0, &[]).unwrap())
}

#[test]
fn page_evaluates_reports_errors_and_takes_pictures() {
    let Some(browser) = start() else { return };
    let page = browser.open("data:text/html,<title>here</title><h1>Hello</h1>").unwrap();
    assert_eq!(page.evaluate("document.title").unwrap(), json!("here"));
    assert_eq!(page.evaluate("new Promise((done) => setTimeout(() => done(6 * 7), 10))").unwrap(), json!(42));
    let thrown = page.evaluate("null.nothing").unwrap_err();
    assert!(matches!(&thrown, Error::Script(text) if text.contains("TypeError")), "{thrown}");
    let refused = page.call("Page.fly", json!({})).unwrap_err();
    assert!(matches!(&refused, Error::Refused { method, .. } if method == "Page.fly"), "{refused}");
    assert!(browser.open("file:///no/such/page").is_err());

    let other = browser.open("about:blank").unwrap();
    assert_eq!(
        other.evaluate("document.title + (window.mine ?? 'none')").unwrap(),
        json!("none"),
        "pages share no state"
    );
    let png = page.screenshot((200.0, 0.0, 100.0)).unwrap();
    assert!(png.starts_with(b"\x89PNG") && png.len() > 100);
    let (to, pictures) = mpsc::channel();
    page.screencast(320, 1, move |jpeg| drop(to.send(jpeg))).unwrap();
    page.evaluate("void setInterval(() => document.querySelector('h1').textContent = Math.random(), 50)").unwrap();
    for _ in 0..3 {
        let jpeg = pictures.recv_timeout(TIMEOUT).unwrap();
        assert!(jpeg.starts_with(&[0xFF, 0xD8]) && jpeg.len() > 100, "every frame is a JPEG");
    }
    let folder = browser.folder().to_path_buf();
    assert!(folder.join("profile").is_dir() && !working_in(&folder).is_empty());
    drop(browser);
    assert!(!folder.exists() && gone(&folder), "not removed: {:?}", working_in(&folder));
}

#[test]
fn pending_calls_fail_if_the_browser_dies() {
    let Some(browser) = start() else { return };
    let page = browser.open("about:blank").unwrap();
    let id = browser.id().to_string();
    let killer = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        Command::new("kill").args(["-KILL", &id]).status().unwrap()
    });
    let waited = page.evaluate("new Promise(() => {})").unwrap_err();
    assert!(killer.join().unwrap().success());
    assert!(matches!(waited, Error::Gone), "{waited}");
    assert!(matches!(page.evaluate("1"), Err(Error::Gone)) && matches!(browser.open("about:blank"), Err(Error::Gone)));
    let folder = browser.folder().to_path_buf();
    drop(browser);
    assert!(gone(&folder));
}

/// Run by [`killed_process_is_cleaned_up`] in a child process.
#[test]
#[ignore = "part of another test"]
fn child_process_that_is_killed() {
    let browser = start().unwrap();
    let _page = browser.open("about:blank").unwrap();
    println!("\nfolder {}", browser.folder().display());
    std::thread::sleep(Duration::from_secs(600));
}

#[test]
fn killed_process_is_cleaned_up() {
    if required().is_none() {
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "browser::chromium::child_process_that_is_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let folder = PathBuf::from(lines.find_map(|line| Some(line.strip_prefix("folder ")?.to_owned())).unwrap());
    assert!(folder.is_dir() && working_in(&folder).len() > 2, "{:?}", working_in(&folder));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(gone(&folder), "not removed: {}, {:?}", folder.exists(), working_in(&folder));
}
