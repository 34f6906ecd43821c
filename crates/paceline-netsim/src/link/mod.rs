// SPDX-License-Identifier: MIT OR Apache-2.0
//! One hop of a path, without a clock: capacity, queue, propagation delay, jitter and loss.
//!
//! A [`Link`] handles [`Descriptor`]s; the driver keeps the bytes. Every drop and every departure time follows
//! from arrival times, capacity and seed, never from when the link was polled: a late poll returns the overdue
//! outputs with the times at which they were due. The same object therefore runs under the simulator's event loop
//! and behind a network device.
//!
//! ```text
//!  handle_packet          at service start         finish          finish + delay + jitter
//!  ------------> [queue] -----------------> [server] -------> [wire] ------------------> poll_output
//!       \ MTU, overflow: dropped at once       capacity          loss: dropped at the far end
//! ```
//!
//! The packet in service is not in the queue: a queue limit bounds waiting packets only, as on a line card.

mod capacity;
mod delay;
mod hop;
mod hop_plan;
pub mod loss;
pub mod medium;
mod medium_plan;
mod output;
pub mod queue;
mod rate_step;
mod schedule;
pub mod server;
mod wire;

pub use capacity::{Capacity, CapacityEnd, CapacityError};
pub use delay::{Jitter, JitterOrder};
pub use hop::{Link, LinkChange};
pub use hop_plan::HopPlan;
pub use loss::LossModel;
pub use medium::Medium;
pub use medium_plan::{Batch, MediumKind, MediumPlan};
pub use output::Output;
pub use queue::Descriptor;
pub use rate_step::RateStep;
pub use schedule::Schedule;

use paceline_units::DataSize;

/// The MTU of Ethernet (RFC 894), which applies where a plan gives no other.
pub const MTU: DataSize = DataSize::from_bytes(1500);
