//! A headless Chromium, driven over the DevTools protocol.
//!
//! [`Browser::start`] runs one with its files in a [`Scratch`] folder, [`Browser::open`] opens a page in it, and a [`Page`]
//! evaluates, takes pictures and listens. A browser is started in the network namespace of the calling thread. Nothing of
//! it is left when its value goes, nor when the process is killed that has it.
#![cfg(unix)]

mod browser;
mod page;
mod pipe;
mod scratch;

pub use browser::Browser;
pub use page::Page;
pub use scratch::Scratch;

use std::io;
use std::path::PathBuf;

/// Where it is called what.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The program, if there is one on the path.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).flat_map(|dir| NAMES.map(|name| dir.join(name))).find(|program| program.is_file())
}

/// For tests: the program, if it is installed. Says aloud that a test does less without it.
///
/// # Panics
/// It is not, and `PACELINE_REQUIRE` asks for `chromium`.
pub fn required() -> Option<PathBuf> {
    let found = installed();
    let required = std::env::var("PACELINE_REQUIRE").is_ok_and(|list| list.split([',', ' ']).any(|r| r == "chromium"));
    assert!(found.is_some() || !required, "PACELINE_REQUIRE asks for chromium, and none is installed");
    if found.is_none() {
        eprintln!("NOT TESTED: no Chromium is installed, so no page was opened");
    }
    found
}

/// What went wrong with a browser.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system does not let it be started.
    #[error("Chromium cannot be started: {0}")]
    Start(#[source] io::Error),
    /// It ended, or was ended.
    #[error("Chromium is gone")]
    Gone,
    /// It does not answer.
    #[error("Chromium has not answered `{0}` in time")]
    Late(String),
    /// It does not do what it was asked.
    #[error("Chromium refuses `{method}`: {cause}")]
    Refused {
        /// The method of the protocol.
        method: String,
        /// What it says.
        cause: String,
    },
    /// Script in a page threw.
    #[error("script in a page: {0}")]
    Script(String),
}
