// SPDX-License-Identifier: MIT OR Apache-2.0
//! A headless Chromium, driven over the DevTools protocol.
//!
//! [`Browser::start`] starts a browser with its files in a [`Scratch`] folder, and [`Browser::open`] opens a page. A [`Page`]
//! evaluates scripts, takes screenshots and receives events. A browser runs in the network namespace of the calling thread.
//! Its processes and files are removed when the value is dropped and when the calling process is killed.

mod browser;
mod error;
mod page;
mod pipe;
mod scratch;

pub use browser::{Browser, installed};
pub use error::Error;
pub use page::Page;
pub use scratch::Scratch;

use std::path::PathBuf;

/// Returns the path of Chromium for a test, or prints a note that the test is skipped.
///
/// # Panics
/// Chromium is not installed although `PACELINE_REQUIRE` lists `chromium`.
pub fn required() -> Option<PathBuf> {
    let found = installed();
    let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|list| list.split([',', ' ']).any(|r| r == "chromium"));
    assert!(found.is_some() || !required, "PACELINE_REQUIRE requires chromium, which is not installed");
    if found.is_none() {
        eprintln!("NOT TESTED: Chromium is not installed");
    }
    found
}
