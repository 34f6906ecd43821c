//! Calls with a real browser: Chromium, and our own WebRTC endpoint.
#![cfg(target_os = "linux")]

pub mod endpoint;
