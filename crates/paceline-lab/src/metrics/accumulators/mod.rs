// SPDX-License-Identifier: MIT OR Apache-2.0
//! Accumulators that several metrics read. Each is fed with events and knows nothing of metrics.

mod delays;
mod freezes;
mod histogram;
mod jitter_buffer;
mod needs;
mod playout;
mod rate_bins;
mod spans;
mod target_sum;
mod totals;
mod tracks;
mod viewer;

pub(super) use delays::Delays;
pub use delays::Distribution;
pub use freezes::Freezes;
pub(super) use jitter_buffer::{JitterBuffer, Rendered};
pub(super) use needs::Needs;
pub(super) use playout::PlayoutBuffer;
pub(super) use rate_bins::{RateBins, seconds_between, whole_seconds};
pub(super) use spans::{Spans, contains};
pub(super) use target_sum::{TargetInForce, TargetSum};
pub(super) use totals::{FlowTotals, HopTotals, StreamTotals, Totals};
pub(super) use tracks::Tracks;
pub use viewer::{AgeLimits, Score};
pub(super) use viewer::{ScoreSums, Viewer};
