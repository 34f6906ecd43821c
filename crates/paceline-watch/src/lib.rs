//! The watch page: a run in real time as it goes, in a browser, and a link that is moved by hand.
//!
//! ```text
//!  world ── rows, early ──▶ Board ──▶ points of 100 ms ──┐
//!  world ── JPEG frames ──▶ Pictures: the latest ────────┼──▶ web socket ──▶ page
//!  world ◀── Moves ◀────────────────────────────────────┴──── sliders
//! ```
//!
//! The run never waits for the page. Rows are summed up in a ring of points, of pictures the latest is kept, and each page is
//! served by a thread of its own: a slow one misses points, or is closed. Nothing here knows what world it is; all it asks of
//! one is to tell rows early, to take [`Moves`](paceline_lab::moves::Moves), and to put [`Pictures`](paceline_lab::pictures::Pictures) if it has any.

mod asked;
mod board;
mod page;
mod request;
mod server;

pub use board::Sink;
pub use server::{Look, Watch};
