// SPDX-License-Identifier: MIT OR Apache-2.0
//! TCP timestamps (RFC 7323). The simulated TCP counts the size of the option; a capture adds the values that a kernel
//! sends: a clock in milliseconds, and the echo according to section 4.3.

use paceline_netsim::flow::tcp::Segment;
use paceline_netsim::records::{TapPoint, TappedPacket};
use paceline_units::Time;
use std::collections::BTreeMap;

/// TSval and TSecr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamps {
    pub value: u32,
    pub echo: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct EchoState {
    connection: u32,
    /// TS.Recent.
    recent: u32,
    /// Last.ACK.sent.
    last_ack: u64,
}

impl EchoState {
    /// Returns the state for a connection; a later connection resets it.
    fn for_connection(&mut self, connection: u32) -> &mut Self {
        if connection > self.connection {
            *self = Self { connection, ..Self::default() };
        }
        self
    }
}

#[derive(Debug)]
pub(super) struct Timestamps {
    ends: Vec<[EchoState; 2]>,
    /// TSecr of each segment in transit.
    echoes: BTreeMap<u64, u32>,
}

impl Timestamps {
    pub fn new(flows: usize) -> Self {
        Self { ends: vec![Default::default(); flows], echoes: BTreeMap::new() }
    }

    pub fn stamp(&mut self, packet: &TappedPacket<'_>, segment: &Segment) -> Stamps {
        let (number, value) = (packet.packet.packet, clock(packet.sent));
        let end = match packet.point {
            TapPoint::Sender => 0,
            TapPoint::Receiver => 1,
            _ => return Stamps { value, echo: self.echoes.get(&number).copied().unwrap_or(0) },
        };
        let end = self.ends[packet.packet.flow.0 as usize][end].for_connection(segment.connection);
        if packet.is_departure() {
            let echo = if segment.flags.ack { end.recent } else { 0 };
            if segment.flags.ack && segment.connection == end.connection {
                end.last_ack = segment.acknowledgment;
            }
            self.echoes.insert(number, echo);
            return Stamps { value, echo };
        }
        if segment.connection == end.connection && segment.sequence <= end.last_ack {
            end.recent = end.recent.max(value);
        }
        Stamps { value, echo: self.echoes.remove(&number).unwrap_or(0) }
    }

    /// Removes the state of a dropped segment.
    pub fn forget(&mut self, packet: u64) {
        self.echoes.remove(&packet);
    }
}

/// Returns the clock of every end: milliseconds, starting at 1. It wraps after 49 days.
fn clock(at: Time) -> u32 {
    1 + ((at - Time::ZERO).as_nanos() / 1_000_000) as u32
}
