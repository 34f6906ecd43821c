// SPDX-License-Identifier: MIT OR Apache-2.0
//! The playground: scenario text in, series and metrics out, for one HTML page that simulates in the browser.
//!
//! The page and the engine exchange bytes: a request is JSON, and an answer is the length of its JSON (4 bytes, little endian),
//! the JSON, and the columns that the JSON refers to (32-bit floats, little endian). The engine keeps no state between
//! requests: the scenario text is in every request.
//!
//! ```text
//! page.js ── read, edit ──▶ engine in the page       text to controls, change of a control to text
//!         ── run ─────────▶ engine in two workers    text, controller, seed to series and metrics
//! ```

#[cfg(target_family = "wasm")]
mod abi;
pub mod controls;
pub mod files;
#[cfg(not(target_family = "wasm"))]
pub mod page;
pub mod problem;
pub mod request;
mod run;
mod series;
pub mod start;

pub use request::answer;
