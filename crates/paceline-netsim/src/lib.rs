// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packet simulator, and the interfaces that it shares with every other world.
//!
//! A [`plan::Plan`] and a seed go in; events and a [`world::Outcome`] come out.
//!
//! ```text
//!  Plan + seed ──> World::run ──> EventObserver::on_event(EventRecord), Outcome { trace_hash, … }
//!                   │
//!                   ├─ sim::Simulator: endpoints of `flow`, virtual time
//!                   └─ other crates: real sockets and devices, the monotonic clock
//!                   both drive the same network::Network ──> link::Link ──> link::queue::Discipline
//! ```
//!
//! # Example
//!
//! A [`network::Network`] carries packets between the endpoints of a plan. The driver, here a loop, sends packets and
//! polls for arrivals:
//!
//! ```
//! use paceline_netsim::network::{FlowEnd, Network, Wake};
//! use paceline_netsim::plan::Plan;
//! use paceline_netsim::records::PacketClass;
//! use paceline_units::{DataSize, RandomStreams, Time};
//!
//! fn one_packet(plan: &Plan) -> Option<Time> {
//!     let mut network = Network::new(plan, &RandomStreams::new(1), ());
//!     let handle = network.packets.alloc();
//!     let size = DataSize::from_bytes(1200);
//!     network.send(Time::ZERO, 0, FlowEnd::Sender, PacketClass::Media, size, handle);
//!     while let Some((now, wake)) = network.poll(Time::ZERO + plan.duration) {
//!         if let Wake::Arrived { handle, .. } = wake {
//!             network.packets.free(handle);
//!             return Some(now);
//!         }
//!     }
//!     None
//! }
//! ```
//!
//! [`sim::Simulation`] does this with the endpoints of a plan; [`sim::Simulator`] runs a plan to its end.
//!
//! # How to extend
//!
//! * **A world** implements [`world::World`]: it runs a plan and emits events. It uses [`media_flow`] to build media
//!   endpoints, so that every world draws the same random values for the same seed.
//! * **A queue discipline** implements [`link::queue::Discipline`]: a file in `link/queue/` with an entry, and a line in
//!   [`link::queue::DISCIPLINES`]. Its scenario keys are derived from the parameters of the entry. The same holds for a loss
//!   model ([`link::loss::LOSS_MODELS`]) and a link server ([`link::server::SERVERS`]).
//! * **A link** is a [`link::Link`]: capacity, queue, delay, jitter and loss of one hop, without a clock. Its decisions
//!   depend on arrival times and the seed alone, so it serves in virtual and in real time.

// Other programs embed `paceline`, not this crate: what a name says needs no comment.
#![allow(missing_docs)]

mod controller_failure;
mod describe;
pub mod flow;
mod flow_end;
pub mod link;
pub mod link_control;
pub mod media_flow;
pub mod network;
pub mod path;
pub mod plan;
pub mod preview;
mod receiver_clock;
pub mod records;
pub mod sim;
pub mod world;

pub use controller_failure::ControllerFailure;
pub use flow::{parameter, source};
