//! TCP timestamps (RFC 7323). The model gives the option its size; a capture gives it the values that a kernel would:
//! a clock of milliseconds, and the echo by the rule of section 4.3.

use crate::sight::{Place, Sight};
use paceline_flow::tcp::Segment;
use paceline_units::Time;
use std::collections::BTreeMap;

/// TSval and TSecr.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamps {
    pub value: u32,
    pub echo: u32,
}

/// What an end of a flow has to echo.
#[derive(Clone, Copy, Debug, Default)]
struct End {
    connection: u32,
    /// TS.Recent.
    recent: u32,
    /// Last.ACK.sent.
    last_ack: u64,
}

impl End {
    /// The state of this connection: a later one begins anew.
    fn of(&mut self, connection: u32) -> &mut Self {
        if connection > self.connection {
            *self = Self { connection, ..Self::default() };
        }
        self
    }
}

/// The stamps of every segment under way.
#[derive(Debug)]
pub(super) struct Timestamps {
    /// Sender and receiver of each flow.
    ends: Vec<[End; 2]>,
    /// What each segment under way echoes.
    echoes: BTreeMap<u64, u32>,
}

impl Timestamps {
    pub fn new(flows: usize) -> Self {
        Self { ends: vec![Default::default(); flows], echoes: BTreeMap::new() }
    }

    /// The stamps of a segment that is seen, wherever.
    pub fn of(&mut self, sight: &Sight<'_>, segment: &Segment) -> Stamps {
        let (number, value) = (sight.packet.packet, clock(sight.sent));
        let end = match sight.place {
            Place::Sender => 0,
            Place::Receiver => 1,
            _ => return Stamps { value, echo: self.echoes.get(&number).copied().unwrap_or(0) },
        };
        let end = self.ends[sight.packet.flow.0 as usize][end].of(segment.connection);
        if sight.is_departure() {
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

    /// A segment is gone.
    pub fn forget(&mut self, packet: u64) {
        self.echoes.remove(&packet);
    }
}

/// The clock of every end: milliseconds, from 1 on. It wraps after 49 days.
fn clock(at: Time) -> u32 {
    1 + ((at - Time::ZERO).as_nanos() / 1_000_000) as u32
}
