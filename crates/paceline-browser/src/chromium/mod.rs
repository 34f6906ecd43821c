//! A headless Chromium, driven over the DevTools protocol.
//!
//! [`Browser::start`] starts a browser with its files in a [`Scratch`] folder, and [`Browser::open`] opens a page. A [`Page`]
//! evaluates scripts, takes screenshots and receives events. A browser runs in the network namespace of the calling thread.
//! Its processes and files are removed when the value is dropped and when the calling process is killed.

mod browser;
mod page;
mod pipe;
mod scratch;

pub use browser::Browser;
pub use page::Page;
pub use scratch::Scratch;

use std::io;
use std::path::PathBuf;

/// Names of the program on different systems.
const PROGRAM_NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// Returns the path of Chromium if it is installed on the PATH.
pub fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .flat_map(|dir| PROGRAM_NAMES.map(|name| dir.join(name)))
        .find(|program| program.is_file())
}

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

/// An error of a browser.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// It cannot be started.
    #[error("Chromium cannot be started: {0}")]
    Start(#[source] io::Error),
    /// Its process ended.
    #[error("Chromium has ended")]
    Gone,
    /// It does not reply.
    #[error("Chromium did not reply to `{0}` in time")]
    Late(String),
    /// It refuses a command.
    #[error("Chromium refuses `{method}`: {cause}")]
    Refused {
        /// The protocol method.
        method: String,
        /// Chromium's error message.
        cause: String,
    },
    /// A script in a page threw an exception.
    #[error("script in a page: {0}")]
    Script(String),
}
