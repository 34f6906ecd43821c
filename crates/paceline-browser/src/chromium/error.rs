// SPDX-License-Identifier: MIT OR Apache-2.0
//! Errors of a browser.

use std::io;

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
