// SPDX-License-Identifier: MIT OR Apache-2.0
//! The plan of one hop.

use super::MTU;
use super::capacity::Capacity;
use super::delay::Jitter;
use super::loss::LossModel;
use super::queue::{QueueLimit, QueuePlan};
use super::schedule::Schedule;
use super::server::ServerPlan;
use paceline_units::{DataSize, TimeDelta};

/// One hop: what a plan says of it, and what its [`Link`](super::Link) does.
#[derive(Clone, Debug)]
pub struct HopPlan {
    /// Name in results.
    pub id: String,
    /// Rate of service over time; `None` means unlimited, and packets never wait.
    pub capacity: Option<Capacity>,
    /// Link server. A token bucket and a turn on a shared medium require a capacity of rates, and exclude each other.
    pub server: ServerPlan,
    /// Queue discipline.
    pub queue: QueuePlan,
    /// Propagation delay; the value in force when a packet leaves the server applies.
    pub delay: Schedule<TimeDelta>,
    /// Jitter, added to the propagation delay.
    pub jitter: Option<Jitter>,
    /// Loss on the wire; the model in force when a packet leaves the server applies.
    pub loss: Schedule<LossModel>,
    /// Size of the largest IP packet that it carries; larger ones are dropped. The value in force when a packet arrives
    /// applies.
    pub mtu: Schedule<DataSize>,
    /// Whether it sets the ECN field of every packet that enters to Not-ECT (bleaching).
    pub clears_ecn: bool,
}

/// The largest IP packet (RFC 791, section 3.1).
const LARGEST_IP_PACKET: DataSize = DataSize::from_bytes(65_535);

impl HopPlan {
    /// Returns a hop of unlimited capacity, without delay, jitter and loss, with a drop-tail queue of this limit and the
    /// MTU of Ethernet.
    pub fn new(id: impl Into<String>, limit: QueueLimit) -> Self {
        Self {
            id: id.into(),
            capacity: None,
            server: ServerPlan::default(),
            queue: QueuePlan::drop_tail(limit),
            delay: Schedule::constant(TimeDelta::ZERO),
            jitter: None,
            loss: Schedule::constant(LossModel::NONE),
            mtu: Schedule::constant(MTU),
            clears_ecn: false,
        }
    }

    /// Returns the MTU of its interface, by which queue disciplines recognise a queue of about one packet. A hop that carries
    /// every IP packet, up to 65535 bytes, sets no MTU: then it is that of Ethernet. Of several MTUs it is the largest.
    pub fn interface_mtu(&self) -> DataSize {
        let largest = self.mtu.points().iter().map(|(_, mtu)| *mtu).max().unwrap_or(MTU);
        if largest >= LARGEST_IP_PACKET { MTU } else { largest }
    }
}
