// SPDX-License-Identifier: MIT OR Apache-2.0
//! `drc`, delivery-rate control: the rate follows what the link delivers while a queue exceeds its reference, and grows while none does.
//!
//! ```text
//!            ┌─ Delivery ─ D, R ──────────┐
//! feedback ──┼─ Delays ─ q, jitter, rtt ──┼─▶ law ─▶ rate ─▶ target, window, pacing
//!            ├─ QueueOfOthers ─ f ────────┤
//!            ├─ marks ─ alpha ────────────┤
//!            └─ LossExperiment ───────────┘
//! ```
//!
//! `docs/algorithms/drc.md` derives it and lists its weaknesses.

mod config;
mod delivery;
mod law;
mod loss;
mod others;
mod path;
mod sender;

pub use config::DrcConfig;
pub(crate) use sender::entry;
