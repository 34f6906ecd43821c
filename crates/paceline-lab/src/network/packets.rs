//! The packet slab: every packet under way, slots used again and again.
//!
//! Thousands wait in a long queue, and each is looked at again when it has come to the front: what hops and rows ask of it
//! lies apart from what only its ends read, or the cache would hold few of them.

use crate::rows::PacketRow;
use crate::sight::{Content, Place, Sight};
use paceline_flow::Datagram;
use paceline_flow::tcp::Segment;
use paceline_units::{Ecn, Time};

/// A packet under way, without what it carries.
#[derive(Debug)]
pub struct Packet {
    /// What rows call it.
    pub row: PacketRow,
    /// When an end sent it.
    pub sent: Time,
    /// How many hops of its route it has crossed.
    pub(super) hop: u16,
    /// ECN field, as the last hop left it.
    pub ecn: Ecn,
}

/// Slots by handle. Whether a packet carries a segment or a datagram is known to the ends of its flow, and its class says.
#[derive(Debug, Default)]
pub(super) struct Packets {
    packets: Vec<Packet>,
    segments: Vec<Segment>,
    datagrams: Vec<Datagram>,
    free: Vec<u32>,
}

impl Packets {
    /// A slot to write into; `row` stands for what is not known yet.
    #[inline]
    pub fn take(&mut self, row: PacketRow) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.packets.push(Packet { row, sent: Time::ZERO, hop: 0, ecn: Ecn::NotEct });
            self.segments.push(Segment::default());
            self.datagrams.push(Datagram::new());
            self.packets.len() as u32 - 1
        })
    }

    /// The slot is free again.
    #[inline]
    pub fn give_back(&mut self, handle: u32) {
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

    /// How a packet looks at `place`.
    pub fn seen(&self, handle: u32, at: Time, place: Place) -> Sight<'_> {
        let packet = self.get(handle);
        let content = match packet.row.class.is_tcp() {
            true => Content::Segment(&self.segments[handle as usize]),
            false => Content::Datagram(&self.datagrams[handle as usize]),
        };
        Sight { at, place, packet: packet.row, sent: packet.sent, ecn: packet.ecn, content }
    }
}
