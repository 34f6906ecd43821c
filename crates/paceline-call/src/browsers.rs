//! The Chromiums of a run: one for each side and set of field trials, each in its side's network.

use paceline_chromium::{Browser, Error, Page, Scratch};
use paceline_live::link::Side;
use paceline_live::track::Track;
use std::fs;
use std::io;
use std::path::Path;

use crate::camera::{Camera, HEIGHT, RATE, WIDTH};

/// What each page is.
const PAGE: &str = include_str!("page.html");

/// Chromium does not give way: what the machine does else would change how a call goes.
const NICE: i8 = -10;

/// Folder of a browser's event logs, in its own.
const EVENTS: &str = "events";

/// Browsers by side and field trials.
pub struct Browsers {
    /// Whether each writes its event log.
    logs: bool,
    /// Whether pages show what they send or receive.
    shown: bool,
    running: Vec<Running>,
}

struct Running {
    side: Side,
    trials: &'static str,
    browser: Browser,
}

impl Browsers {
    /// None yet.
    pub fn new(logs: bool, shown: bool) -> Self {
        Self { logs, shown, running: Vec::new() }
    }

    /// A page for one end of a call, on this side of the track; its camera is on if it `sends`.
    ///
    /// # Errors
    /// Chromium does not start, or has no camera.
    pub fn page(&mut self, track: &Track, side: Side, trials: &'static str, sends: bool) -> Result<Page, Error> {
        let known = self.running.iter().position(|one| one.side == side && one.trials == trials);
        let index = match known {
            Some(index) => index,
            None => {
                let browser = self.start(track, side, trials)?;
                self.running.push(Running { side, trials, browser });
                self.running.len() - 1
            }
        };
        let browser = &self.running[index].browser;
        let shown = if self.shown { "#shown" } else { "" };
        let page = browser.open(&format!("file://{}{shown}", browser.folder().join("page.html").display()))?;
        if sends {
            page.evaluate(&format!("prepare({WIDTH}, {HEIGHT}, {RATE})"))?;
        }
        Ok(page)
    }

    fn start(&self, track: &Track, side: Side, trials: &str) -> Result<Browser, Error> {
        let scratch = Scratch::new().map_err(Error::Start)?;
        let furnished = furnish(scratch.path());
        furnished.map_err(Error::Start)?;
        let within = |name: &str| scratch.path().join(name).display().to_string();
        let mut arguments = vec![
            "--use-fake-device-for-media-stream".to_owned(),
            "--use-fake-ui-for-media-stream".to_owned(),
            "--autoplay-policy=no-user-gesture-required".to_owned(),
            // Addresses of the link are to be seen as they are.
            "--disable-features=WebRtcHideLocalIpsWithMdns".to_owned(),
            format!("--use-file-for-fake-video-capture={}", within("camera.y4m")),
        ];
        if self.logs {
            arguments.push(format!("--webrtc-event-logging={}", within(EVENTS)));
        }
        if !trials.is_empty() {
            arguments.push(format!("--force-fieldtrials={trials}"));
        }
        let started = track.namespace(side).within(|| Ok(Browser::start(scratch, NICE, &arguments)));
        started.map_err(Error::Start)?
    }

    /// The event logs of all calls that have ended, by name.
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

/// The number of the connection that an event log is of: its file is `event_log_DATE_TIME_PID_NUMBER.log`.
fn call_number(file: &str) -> Option<u64> {
    file.trim_end_matches(".log").rsplit('_').next()?.parse().ok()
}

/// What a browser finds in its folder.
fn furnish(folder: &Path) -> io::Result<()> {
    fs::create_dir(folder.join(EVENTS))?;
    fs::write(folder.join("page.html"), PAGE)?;
    Camera::default().film(&folder.join("camera.y4m"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tenth_call_comes_after_the_second() {
        let of = |number: u32| format!("event_log_20260101_1200_77_{number}.log");
        assert_eq!([1, 2, 10].map(|number| call_number(&of(number))), [Some(1), Some(2), Some(10)]);
        assert_eq!(call_number("another"), None);
    }
}
