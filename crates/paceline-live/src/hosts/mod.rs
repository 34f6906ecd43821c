// SPDX-License-Identifier: MIT OR Apache-2.0
//! Media flows between two hosts: the endpoints of the simulator over UDP, with RTP and RTCP of all flows on one port.
//!
//! A session starts with a handshake that proves the sender's address ([`listener::Listener`], [`caller::Caller`]). The receiver then
//! reports the arrival of every packet and each rendered frame (`arrivals.rs`), and the sender derives its view of the path from those reports
//! (`path_log.rs`). A TCP flow may run beside the media (`tcp_sender.rs`, `tcp_receiver.rs`). State machines have no sockets and no
//! clock; [`sender`] and [`receiver`] drive them, and [`world::TwoHosts`] is the sender as a world.

mod arrivals;
pub mod caller;
mod diagnosis;
mod drift;
mod endpoint;
pub mod flow_number;
mod host_facts;
pub mod listener;
pub mod message;
mod path_log;
pub mod receive_side;
pub mod receiver;
pub mod report;
pub mod seal;
pub mod send_side;
pub mod sender;
pub mod session_flow;
pub mod session_plan;
mod statistics;
pub mod summary;
mod targets;
mod tcp_receiver;
mod tcp_sender;
pub mod terms;
#[cfg(test)]
mod testing;
mod timers;
mod token;
mod unsuitable;
mod window;
pub mod world;
