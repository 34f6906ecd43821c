// SPDX-License-Identifier: MIT OR Apache-2.0
//! The watch page: shows a real-time run in a browser and changes its link by hand.
//!
//! ```text
//!  world ── unordered events ─▶ LiveSeries ─▶ points of 100 ms ─┐
//!  world ── JPEG images ──────▶ PreviewImages: the latest ──────┼─▶ web socket ─▶ page
//!  world ◀─ LinkControl ◀───────────────────────────────────────┴─── sliders
//! ```
//!
//! The run never waits for a page. Events are aggregated in a ring of points, and only the latest image is kept. Each page
//! has its own thread; a slow page misses points or is closed. The server is independent of the world. A world must emit
//! unordered events and accept [`LinkControl`](paceline_netsim::link_control::LinkControl); it may provide
//! [`PreviewImages`](paceline_netsim::preview::PreviewImages).

mod live_series;
mod page;
mod request;
mod server;
mod ui_commands;

pub use live_series::LiveObserver;
pub use request::{AccessControl, Resource};
pub use server::{WatchServer, WatchedRun};
pub use ui_commands::parse as parse_command;
