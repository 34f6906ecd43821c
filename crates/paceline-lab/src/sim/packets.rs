//! The packet slab: every datagram under way, header bytes inline, slots used again and again.

use paceline_flow::Datagram;
use paceline_units::Time;

use crate::rows::PacketRow;

/// A datagram under way.
#[derive(Debug)]
pub(crate) struct Packet {
    pub datagram: Datagram,
    pub row: PacketRow,
    pub sent: Time,
    /// How many hops of its route it has crossed.
    pub hop: u16,
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
            self.slots.push(Packet { datagram: Datagram::new(), row, sent: Time::ZERO, hop: 0 });
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
