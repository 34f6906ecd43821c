// SPDX-License-Identifier: MIT OR Apache-2.0
//! The Chromium processes of a run: one per side and set of field trials, each in the network namespace of its side.

use crate::chromium::{Browser, Error, Page, Scratch};
use paceline_live::testbed::link::Side;
use paceline_live::testbed::testbed_network::TestbedNetwork;
use paceline_netsim::records::Program;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::call::camera::{Camera, HEIGHT, RATE, WIDTH};

/// The page that holds one endpoint of a call.
const PAGE: &str = include_str!("page.html");

/// Niceness of Chromium: other processes must not change the course of a call.
const NICE: i8 = -10;

/// Folder of a browser's event logs, inside the browser's folder.
const EVENTS: &str = "events";

/// The page that collects API calls and statistics of the connections of a browser.
const INTERNALS: &str = "chrome://webrtc-internals";

/// Returns the text of the dump that a click on the button of [`INTERNALS`] would save.
const DUMP: &str = r#"(async () => {
  let dump;
  URL.createObjectURL = (blob) => { dump = blob; return ""; };
  HTMLAnchorElement.prototype.click = () => {};
  document.getElementById("dump-checkbox").checked = false;
  document.getElementById("dump-click-target").click();
  for (let n = 0; !dump && n < 20; n++) await new Promise((done) => setTimeout(done, 100));
  return dump.text();
})()"#;

/// Browsers by side and field trials.
pub struct Browsers {
    /// Whether each browser writes event logs and collects what a dump contains.
    records: bool,
    /// Whether pages show the video that they send or receive.
    show_video: bool,
    running: Vec<Running>,
}

struct Running {
    side: Side,
    field_trials: &'static str,
    browser: Browser,
    /// [`INTERNALS`].
    internals: Option<Arc<Page>>,
}

/// A page that holds one endpoint of a call.
pub struct CallPage {
    /// The page.
    pub page: Page,
    internals: Option<Arc<Page>>,
}

impl CallPage {
    /// Returns the webrtc-internals dump of the browser, if it is collected and this version of Chromium gives it. Closed
    /// connections are not in it.
    pub fn dump(&self) -> Option<String> {
        self.internals.as_ref()?.evaluate(DUMP).ok()?.as_str().map(str::to_owned)
    }
}

impl Browsers {
    /// Creates an empty set of browsers.
    pub fn new(records: bool, show_video: bool) -> Self {
        Self { records, show_video, running: Vec::new() }
    }

    /// Opens a page for one endpoint of a call on this side of the track. The camera is on if the endpoint `sends`.
    ///
    /// # Errors
    /// Chromium does not start or has no camera.
    pub fn page(
        &mut self,
        network: &TestbedNetwork,
        side: Side,
        field_trials: &'static str,
        sends: bool,
    ) -> Result<CallPage, Error> {
        let known = self.running.iter().position(|one| one.side == side && one.field_trials == field_trials);
        let index = match known {
            Some(index) => index,
            None => {
                let browser = self.start(network, side, field_trials)?;
                let internals = if self.records { Some(Arc::new(browser.open(INTERNALS)?)) } else { None };
                self.running.push(Running { side, field_trials, browser, internals });
                self.running.len() - 1
            }
        };
        let Running { browser, internals, .. } = &self.running[index];
        let fragment = if self.show_video { "#shown" } else { "" };
        let page = browser.open(&format!("file://{}{fragment}", browser.folder().join("page.html").display()))?;
        if sends {
            page.evaluate(&format!("prepare({WIDTH}, {HEIGHT}, {RATE})"))?;
        }
        Ok(CallPage { page, internals: internals.clone() })
    }

    fn start(&self, network: &TestbedNetwork, side: Side, field_trials: &str) -> Result<Browser, Error> {
        let scratch = Scratch::new().map_err(Error::Start)?;
        write_files(scratch.path()).map_err(Error::Start)?;
        let within = |name: &str| scratch.path().join(name).display().to_string();
        let mut arguments = vec![
            "--use-fake-device-for-media-stream".to_owned(),
            "--use-fake-ui-for-media-stream".to_owned(),
            "--autoplay-policy=no-user-gesture-required".to_owned(),
            // Candidates must contain the addresses of the link.
            "--disable-features=WebRtcHideLocalIpsWithMdns".to_owned(),
            format!("--use-file-for-fake-video-capture={}", within("camera.y4m")),
        ];
        if self.records {
            arguments.push(format!("--webrtc-event-logging={}", within(EVENTS)));
        }
        if !field_trials.is_empty() {
            arguments.push(format!("--force-fieldtrials={field_trials}"));
        }
        let started = network.namespace(side).within(|| Ok(Browser::start(scratch, NICE, &arguments)));
        started.map_err(Error::Start)?
    }

    /// Returns the version and the command line of each browser, equal ones once.
    pub fn programs(&self) -> Vec<Program> {
        let mut programs: Vec<Program> = Vec::new();
        for Running { browser, .. } in &self.running {
            let folder = browser.folder().display().to_string();
            let command = browser.command().iter().map(|word| word.replace(&folder, "{folder}")).collect();
            let program = Program { version: browser.version().to_owned(), command };
            if !programs.contains(&program) {
                programs.push(program);
            }
        }
        programs
    }

    /// Returns the name and content of the event logs of all ended calls.
    pub fn event_logs(&self) -> io::Result<Vec<(String, Vec<u8>)>> {
        let mut logs = Vec::new();
        for (number, Running { side, browser, .. }) in self.running.iter().enumerate() {
            let side = match side {
                Side::Near => "near",
                Side::Far => "far",
            };
            let mut files: Vec<_> = fs::read_dir(browser.folder().join(EVENTS))?.collect::<io::Result<_>>()?;
            files.sort_by_key(|file| call_number(&file.file_name().to_string_lossy()));
            for (call, file) in files.iter().enumerate() {
                logs.push((
                    format!("chromium-{}-{side}-{}.rtc-event-log", number + 1, call + 1),
                    fs::read(file.path())?,
                ));
            }
        }
        Ok(logs)
    }
}

/// Returns the connection number in the name of an event log: `event_log_DATE_TIME_PID_NUMBER.log`.
fn call_number(file: &str) -> Option<u64> {
    file.trim_end_matches(".log").rsplit('_').next()?.parse().ok()
}

/// Writes the page and the camera's video into a browser's folder.
fn write_files(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder.join(EVENTS))?;
    fs::write(folder.join("page.html"), PAGE)?;
    Camera::default().write_y4m(&folder.join("camera.y4m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_event_logs_by_number() {
        let of = |number: u32| format!("event_log_20260101_1200_77_{number}.log");
        assert_eq!([1, 2, 10].map(|number| call_number(&of(number))), [Some(1), Some(2), Some(10)]);
        assert_eq!(call_number("another"), None);
    }
}
