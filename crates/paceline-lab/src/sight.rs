//! Packets where they are seen: what a tap on the network would tell. Rows say what became of a packet; a sight shows
//! the packet itself, for captures.

use crate::rows::PacketRow;
use paceline_flow::Datagram;
use paceline_flow::tcp::Segment;
use paceline_units::{Ecn, Time, TimeDelta};

/// Where a packet is seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At its flow's sender, which sends it or which it reached.
    Sender,
    /// At its flow's receiver, likewise.
    Receiver,
    /// Where it comes to a hop, dropped there or not.
    Entry {
        /// Index in [`RunHeader::hops`](crate::rows::RunHeader::hops).
        hop: u16,
    },
    /// At a hop's far end.
    Exit {
        /// Which hop.
        hop: u16,
        /// How long it waited there before its service.
        waited: TimeDelta,
    },
}

/// What a packet consists of above the IP header.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// UDP payload: the bytes that exist, and how many there would be.
    Datagram(&'a Datagram),
    /// TCP, which carries lengths and no bytes.
    Segment(&'a Segment),
}

/// A packet at a place.
#[derive(Clone, Copy, Debug)]
pub struct Sight<'a> {
    /// When.
    pub at: Time,
    /// Where.
    pub place: Place,
    /// Which packet.
    pub packet: PacketRow,
    /// When it was sent.
    pub sent: Time,
    /// ECN field, as it is here.
    pub ecn: Ecn,
    /// What is in it.
    pub content: Content<'a>,
}

impl Sight<'_> {
    /// Whether an end sends it here; otherwise it reaches an end, or a hop has to do with it.
    pub fn is_departure(&self) -> bool {
        match self.place {
            Place::Sender => !self.packet.class.goes_back(),
            Place::Receiver => self.packet.class.goes_back(),
            Place::Entry { .. } | Place::Exit { .. } => false,
        }
    }
}
