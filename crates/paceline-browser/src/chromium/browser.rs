// SPDX-License-Identifier: MIT OR Apache-2.0
//! The browser process.

use crate::chromium::error::Error;
use crate::chromium::page::Page;
use crate::chromium::pipe::Pipe;
use crate::chromium::scratch::Scratch;
use serde_json::{Value, json};
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Starts Chromium with the protocol on descriptors 3 (commands) and 4 (replies). Chromium ends when descriptor 3 closes, also
/// if this process is killed. `nice` only prints a warning if it may not raise the priority.
const START: &str = r#"exec nice -n "$NICE" "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#;

/// Arguments of every browser: no background network access, and no throttling of hidden pages.
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

/// Names of the program on different systems.
const PROGRAM_NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Returns the path of Chromium if it is installed on the PATH.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .flat_map(|dir| PROGRAM_NAMES.map(|name| dir.join(name)))
        .find(|program| program.is_file())
}

/// A running Chromium and its files.
pub struct Browser {
    pipe: Pipe,
    // `None` only while the browser is dropped.
    scratch: Option<Scratch>,
    child: Child,
    version: String,
    command: Vec<String>,
}

impl Browser {
    /// Starts the installed Chromium with its profile in `scratch`, in the network namespace of the calling thread. `nice` is
    /// the niceness of its processes.
    ///
    /// # Errors
    /// Chromium is not installed or cannot be started.
    pub fn start(mut scratch: Scratch, nice: i8, arguments: &[String]) -> Result<Self, Error> {
        let none = || Error::Start(io::Error::new(io::ErrorKind::NotFound, "it is not installed"));
        let program = installed().ok_or_else(none)?;
        let mut command = vec![program.display().to_string()];
        command.extend(ARGUMENTS.map(str::to_owned));
        command.push(format!("--user-data-dir={}", scratch.path().join("profile").display()));
        command.extend_from_slice(arguments);
        let mut child = Command::new("sh")
            .args(["-c", START, "sh"])
            .args(&command)
            // Chromium writes temporary files and files in the home folder.
            .env("TMPDIR", scratch.path())
            .env("HOME", scratch.path())
            .env("NICE", nice.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(Error::Start)?;
        let registered = scratch.kill_on_drop(child.id());
        let (to, from) = (child.stdin.take().expect("stdio is piped"), child.stdout.take().expect("stdio is piped"));
        let mut browser =
            Self { pipe: Pipe::new(to, from), scratch: Some(scratch), child, version: String::new(), command };
        registered.map_err(Error::Start)?;
        let version = browser.call("Browser.getVersion", json!({}))?;
        browser.version = version["product"].as_str().unwrap_or_default().to_owned();
        Ok(browser)
    }

    /// Returns the folder of its files.
    pub fn folder(&self) -> &Path {
        self.scratch.as_ref().expect("present until drop").path()
    }

    /// Returns its name and version, such as `HeadlessChrome/141.0.7390.54`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns its command line.
    pub fn command(&self) -> &[String] {
        &self.command
    }

    /// Opens a page in a new window.
    pub fn open(&self, url: &str) -> Result<Page, Error> {
        let made = self.call("Target.createTarget", json!({"url": "about:blank", "newWindow": true}))?;
        let target = made["targetId"].as_str().unwrap_or_default().to_owned();
        let attached = self.call("Target.attachToTarget", json!({"targetId": target, "flatten": true}))?;
        let session = attached["sessionId"].as_str().unwrap_or_default().to_owned();
        let page = Page::new(self.pipe.clone(), session);
        page.navigate(url)?;
        Ok(page)
    }

    /// Calls a protocol method of the browser.
    pub fn call(&self, method: &str, parameters: Value) -> Result<Value, Error> {
        self.pipe.call("", method, parameters)
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The process is not reaped yet, so its id cannot be reused before the cleaner kills it.
        self.scratch = None;
        // In case the cleaner was killed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
