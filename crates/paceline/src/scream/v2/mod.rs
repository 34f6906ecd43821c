// SPDX-License-Identifier: MIT OR Apache-2.0
//! SCReAM version 2 (draft-ietf-ccwg-rfc8298bis-screamv2-01): a reference window that follows marks, losses and the queuing
//! delay, and a target rate that follows the window.
//!
//! ```text
//! feedback ─┬─ QueueDelay ─ DelayAverage ──┬── virtual marks, jitter scale ──┐
//!           ├─ L4sAlpha ───────────────────┤                                 │
//!           ├─ MissingPackets ─ LossRate ──┴──▶ ReferenceWindow ──▶ window ──┴─┬─▶ pacing
//! sent ─────┼─ FlightMax ──────────────────────────▲   │                       │
//!           └─ SmoothedRtt ────────────────────────────┴▶ TargetRate ──▶ target┴─▶ shares of streams
//! frames ───── MediaQueue ─────────────────────────────────▲
//! ```
//!
//! `docs/algorithms/scream-v2.md` lists the differences between the draft and the public implementations.

mod alpha;
mod config;
mod delay;
mod drift;
mod flight;
mod loss_rate;
mod media_queue;
mod pacing;
mod reference_window;
mod rtt;
mod sender;
pub(super) mod shares;
mod target_rate;

#[cfg(feature = "unstable-internals")]
pub use self::{
    delay::virtual_alpha,
    reference_window::{
        Backoff, Growth, WindowConfig as ReferenceWindowConfig, close_to_inflection, l4s_backoff,
        post_congestion_scale, window_increment,
    },
    target_rate::rate_of_window,
};
pub use config::ScreamV2Config;
pub(crate) use sender::entries;
