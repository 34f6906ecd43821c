//! The browser's process.

use crate::page::Page;
use crate::pipe::Pipe;
use crate::scratch::Scratch;
use crate::{Error, installed};
use serde_json::{Value, json};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Chromium reads the protocol from descriptor 3 and answers on 4, and ends when 3 does: also where we are killed. The rest of
/// what it says is talk. `nice` complains where it may not go up and runs it all the same.
const START: &str = r#"exec nice -n "$NICE" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// What every browser is told: nothing of its own accord on the network, and pages that nobody sees are as awake as others.
const ARGUMENTS: [&str; 16] = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--no-startup-window",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
    "--remote-debugging-pipe",
];

/// A running Chromium and its files.
pub struct Browser {
    pipe: Pipe,
    // In this order, so that its files go and it is ended, then buried.
    scratch: Option<Scratch>,
    child: Child,
}

impl Browser {
    /// Starts the one that is installed, its profile in `scratch`, in the network namespace of the calling thread. `nice`: how
    /// much it gives way, or below zero does not.
    ///
    /// # Errors
    /// There is none, or the system refuses.
    pub fn start(mut scratch: Scratch, nice: i8, arguments: &[String]) -> Result<Self, Error> {
        let none = || Error::Start(io::Error::new(io::ErrorKind::NotFound, "none is installed"));
        let program = installed().ok_or_else(none)?;
        let mut child = Command::new("sh")
            .args(["-c", START, "sh"])
            .arg(program)
            .args(ARGUMENTS)
            .arg(format!("--user-data-dir={}", scratch.path().join("profile").display()))
            .args(arguments)
            // It makes temporary files of its own, and some in whoever's home.
            .env("TMPDIR", scratch.path())
            .env("HOME", scratch.path())
            .env("NICE", nice.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(Error::Start)?;
        let employed = scratch.employ(child.id());
        let (to, from) = (child.stdin.take().expect("it is a pipe"), child.stdout.take().expect("it is a pipe"));
        let browser = Self { pipe: Pipe::new(to, from), scratch: Some(scratch), child };
        employed.map_err(Error::Start)?;
        browser.call("Browser.getVersion", json!({}))?;
        Ok(browser)
    }

    /// Where its files are, and what else it was given.
    pub fn folder(&self) -> &Path {
        self.scratch.as_ref().expect("it is there until the end").path()
    }

    /// Opens a page in a window of its own.
    ///
    /// # Errors
    /// The browser does not.
    pub fn open(&self, url: &str) -> Result<Page, Error> {
        let made = self.call("Target.createTarget", json!({"url": "about:blank", "newWindow": true}))?;
        let target = made["targetId"].as_str().unwrap_or_default().to_owned();
        let attached = self.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}))?;
        let session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        let page = Page::new(self.pipe.clone(), session);
        page.navigate(url)?;
        Ok(page)
    }

    /// Calls a method of the protocol that is not of a page.
    ///
    /// # Errors
    /// Chromium does not do it.
    pub fn call(&self, method: &str, parameters: Value) -> Result<Value, Error> {
        self.pipe.call("", method, parameters)
    }

    /// Its process.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Not yet buried, its number is nobody else's when the janitor ends it.
        self.scratch = None;
        // Where the janitor was killed, nobody has ended it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
