//! The packet slab: storage with reusable slots for all packets in transit.
//!
//! Metadata is stored apart from content: hops and events read only metadata, and thousands of packets may wait in a
//! long queue, so compact metadata stays in the processor's cache.

use paceline_flow::Datagram;
use paceline_flow::tcp::Segment;
use paceline_records::{Content, PacketRecord, TapPoint, TappedPacket};
use paceline_units::{Ecn, Time};

/// A packet in transit, without its content.
#[derive(Debug)]
pub struct Packet {
    /// The packet as events name it.
    pub record: PacketRecord,
    /// The time at which an endpoint sent the packet.
    pub sent: Time,
    /// Number of hops of its route that the packet has crossed.
    pub(super) hop: u16,
    /// ECN field after the last hop.
    pub ecn: Ecn,
}

/// Packets by handle. The class of a packet determines whether its content is a segment or a datagram.
#[derive(Debug, Default)]
pub(super) struct Packets {
    packets: Vec<Packet>,
    segments: Vec<Segment>,
    datagrams: Vec<Datagram>,
    free: Vec<u32>,
}

impl Packets {
    /// Allocates a slot; `record` is a placeholder for new slots.
    #[inline]
    pub fn alloc(&mut self, record: PacketRecord) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet { record, sent: Time::ZERO, hop: 0, ecn: Ecn::NotEct });
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

    #[inline]
    pub fn get(&self, handle: u32) -> &Packet {
        &self.packets[handle as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.packets[handle as usize]
    }

    #[inline]
    pub fn segment_mut(&mut self, handle: u32) -> &mut Segment {
        &mut self.segments[handle as usize]
    }

    #[inline]
    pub fn datagram_mut(&mut self, handle: u32) -> &mut Datagram {
        &mut self.datagrams[handle as usize]
    }

    /// Returns a packet as a tap at `point` observes it.
    pub fn tapped(&self, handle: u32, at: Time, point: TapPoint) -> TappedPacket<'_> {
        let packet = self.get(handle);
        let content = match packet.record.class.is_tcp() {
            true => Content::Segment(&self.segments[handle as usize]),
            false => Content::Datagram(&self.datagrams[handle as usize]),
        };
        TappedPacket { at, point, packet: packet.record, sent: packet.sent, ecn: packet.ecn, content }
    }
}
