// SPDX-License-Identifier: MIT OR Apache-2.0
//! Packet taps: a packet with its content at one point of the network, for captures.

use crate::flow::Datagram;
use crate::flow::tcp::Segment;
use crate::records::packet::PacketRecord;
use paceline_units::{Dscp, Ecn, Time, TimeDelta};

/// A point of the network at which packets are observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapPoint {
    /// The flow's sender, as the packet leaves or reaches it.
    Sender,
    /// The flow's receiver, as the packet leaves or reaches it.
    Receiver,
    /// The entry of a hop, before its queue.
    Entry {
        /// Index in [`RunHeader::hops`](crate::records::RunHeader::hops).
        hop: u16,
    },
    /// The far end of a hop.
    Exit {
        /// Index in [`RunHeader::hops`](crate::records::RunHeader::hops).
        hop: u16,
        /// Queuing delay at the hop.
        waited: TimeDelta,
    },
}

/// The content of a packet above the IP header.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// A UDP payload: the bytes that exist, and the full length.
    Datagram(&'a Datagram),
    /// A TCP segment, which carries lengths and no bytes.
    Segment(&'a Segment),
}

/// A packet at a tap.
#[derive(Clone, Copy, Debug)]
pub struct TappedPacket<'a> {
    /// Time of observation.
    pub at: Time,
    /// Point of observation.
    pub point: TapPoint,
    pub packet: PacketRecord,
    /// The time at which an endpoint sent the packet.
    pub sent: Time,
    /// ECN field at this point.
    pub ecn: Ecn,
    /// Differentiated Services codepoint.
    pub dscp: Dscp,
    pub content: Content<'a>,
}

impl TappedPacket<'_> {
    /// Returns whether an endpoint sends the packet at this point.
    pub fn is_departure(&self) -> bool {
        match self.point {
            TapPoint::Sender => !self.packet.class.is_from_receiver(),
            TapPoint::Receiver => self.packet.class.is_from_receiver(),
            TapPoint::Entry { .. } | TapPoint::Exit { .. } => false,
        }
    }
}
