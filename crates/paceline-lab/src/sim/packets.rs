//! The packet slab: every packet under way, header bytes inline, slots used again and again.

use crate::rows::PacketRow;
use crate::sight::{Content, Place, Sight};
use paceline_flow::Datagram;
use paceline_flow::tcp::Segment;
use paceline_units::{Ecn, Time};

/// A packet under way. Which of `datagram` and `segment` it carries is known to the ends of its flow, and its class says.
#[derive(Debug)]
pub(crate) struct Packet {
    pub row: PacketRow,
    pub sent: Time,
    /// How many hops of its route it has crossed.
    pub hop: u16,
    /// ECN field, as the last hop left it.
    pub ecn: Ecn,
    pub segment: Segment,
    pub datagram: Datagram,
}

impl Packet {
    /// How it looks at `place`.
    pub fn seen(&self, at: Time, place: Place) -> Sight<'_> {
        let content = match self.row.class.is_tcp() {
            true => Content::Segment(&self.segment),
            false => Content::Datagram(&self.datagram),
        };
        Sight { at, place, packet: self.row, sent: self.sent, ecn: self.ecn, content }
    }
}

/// Slots by handle.
#[derive(Debug, Default)]
pub(crate) struct Packets {
    slots: Vec<Packet>,
    free: Vec<u32>,
}

impl Packets {
    /// A slot to write into; `row` stands for what is not known yet.
    #[inline]
    pub fn take(&mut self, row: PacketRow) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let (segment, datagram) = (Segment::default(), Datagram::new());
            self.slots.push(Packet { row, sent: Time::ZERO, hop: 0, ecn: Ecn::NotEct, segment, datagram });
            self.slots.len() as u32 - 1
        })
    }

    /// The slot is free again.
    #[inline]
    pub fn give_back(&mut self, handle: u32) {
        self.free.push(handle);
    }

    #[inline]
    pub fn get(&self, handle: u32) -> &Packet {
        &self.slots[handle as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, handle: u32) -> &mut Packet {
        &mut self.slots[handle as usize]
    }
}
