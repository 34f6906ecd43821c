//! Calls in real time, and control of the browser.
#![cfg(unix)]

mod browser;
#[cfg(target_os = "linux")]
mod loopback;
