// SPDX-License-Identifier: MIT OR Apache-2.0
//! The packet slab: storage with reusable slots for all packets in transit.
//!
//! Metadata is stored apart from content: hops and events read only metadata, and thousands of packets may wait in a
//! long queue, so compact metadata stays in the processor's cache.

use crate::flow::Datagram;
use crate::flow::tcp::Segment;
use crate::records::{Content, PacketClass, PacketRecord, TapPoint, TappedPacket};
use paceline_units::{DataSize, Dscp, Ecn, FlowId, Time};

/// A packet in transit, without its content.
#[derive(Debug)]
pub struct Packet {
    /// The packet as events name it.
    pub record: PacketRecord,
    /// The time at which an endpoint sent the packet.
    pub sent: Time,
    /// Place of its next hop in the routes of the network.
    pub(super) place: u32,
    /// Differentiated Services codepoint of its flow.
    pub(super) dscp: Dscp,
    /// ECN field after the last hop.
    pub ecn: Ecn,
    /// By what queues classify the packet; `None` for the flow and DSCP of the plan.
    pub header: Option<HeaderClass>,
}

impl Packet {
    /// Returns what queues classify the packet by.
    #[inline]
    pub(super) fn header_class(&self) -> HeaderClass {
        self.header.unwrap_or(HeaderClass { flow: self.record.flow, dscp: self.dscp })
    }
}

/// What the header of a packet from outside says, for queues that classify. The plan does not know its flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderClass {
    /// Hash of the five-tuple.
    pub flow: FlowId,
    /// Differentiated Services codepoint.
    pub dscp: Dscp,
}

/// Packets by handle. The class of a packet determines whether its content is a segment or a datagram.
#[derive(Debug, Default)]
pub struct Packets {
    packets: Vec<Packet>,
    segments: Vec<Segment>,
    datagrams: Vec<Datagram>,
    free: Vec<u32>,
}

impl Packets {
    /// Allocates a slot for a packet; pass it to [`Network::send`](super::Network::send) or [`free`](Self::free).
    #[inline]
    pub fn alloc(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let (flow, class) = (FlowId(0), PacketClass::Media);
            let record = PacketRecord { packet: 0, flow, class, size: DataSize::ZERO };
            self.packets.push(Packet {
                record,
                sent: Time::ZERO,
                place: 0,
                dscp: Dscp::DEFAULT,
                ecn: Ecn::NotEct,
                header: None,
            });
            self.segments.push(Segment::default());
            self.datagrams.push(Datagram::new());
            self.packets.len() as u32 - 1
        })
    }

    /// Frees a slot.
    #[inline]
    pub fn free(&mut self, handle: u32) {
        self.free.push(handle);
    }

    /// Returns the packet in a slot.
    #[inline]
    pub fn get(&self, handle: u32) -> &Packet {
        &self.packets[handle as usize]
    }

    /// Returns the packet in a slot, to set its ECN field.
    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.packets[handle as usize]
    }

    /// Returns the content of a TCP packet.
    #[inline]
    pub fn segment_mut(&mut self, handle: u32) -> &mut Segment {
        &mut self.segments[handle as usize]
    }

    /// Returns the content of a packet that is not TCP.
    #[inline]
    pub fn datagram_mut(&mut self, handle: u32) -> &mut Datagram {
        &mut self.datagrams[handle as usize]
    }

    /// Returns a packet as a tap at `point` observes it.
    pub(super) fn tapped(&self, handle: u32, at: Time, point: TapPoint) -> TappedPacket<'_> {
        let packet = self.get(handle);
        let dscp = packet.header_class().dscp;
        let content = match packet.record.class.is_tcp() {
            true => Content::Segment(&self.segments[handle as usize]),
            false => Content::Datagram(&self.datagrams[handle as usize]),
        };
        TappedPacket { at, point, packet: packet.record, sent: packet.sent, ecn: packet.ecn, dscp, content }
    }
}
