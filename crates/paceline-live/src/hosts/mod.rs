//! Media flows between two hosts: the endpoints of the simulator over UDP, with RTP and RTCP of all flows on one port.
//!
//! A session starts with a handshake that proves the sender's address ([`listener::Listener`], [`caller::Caller`]). The receiver then
//! reports the arrival of every packet and each rendered frame (`arrivals.rs`), and the sender derives its view of the path from those reports
//! (`path_log.rs`). A TCP flow may run beside the media (`tcp_sender.rs`, `tcp_receiver.rs`). State machines have no sockets and no
//! clock; [`sender`] and [`receiver`] drive them (Linux), and [`world::TwoHosts`] is the sender as a world.

mod arrivals;
pub mod caller;
#[cfg(target_os = "linux")]
mod diagnosis;
mod drift;
#[cfg(target_os = "linux")]
mod endpoint;
pub mod flow_number;
#[cfg(target_os = "linux")]
mod host_facts;
pub mod listener;
pub mod message;
mod path_log;
pub mod receive_side;
#[cfg(target_os = "linux")]
pub mod receiver;
#[cfg(target_os = "linux")]
pub mod report;
pub mod seal;
#[cfg(target_os = "linux")]
pub mod send_side;
#[cfg(target_os = "linux")]
pub mod sender;
pub mod session_flow;
pub mod session_plan;
mod statistics;
pub mod summary;
#[cfg(target_os = "linux")]
mod targets;
#[cfg(target_os = "linux")]
mod tcp_receiver;
#[cfg(target_os = "linux")]
mod tcp_sender;
pub mod terms;
#[cfg(all(test, target_os = "linux"))]
mod testing;
mod timers;
mod token;
mod window;
#[cfg(target_os = "linux")]
pub mod world;
