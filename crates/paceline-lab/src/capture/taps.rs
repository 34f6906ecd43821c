// SPDX-License-Identifier: MIT OR Apache-2.0
//! The taps of a capture: interfaces, and the addresses of packets at each.
//!
//! Each tap uses separate addresses, as if the network translated them. Wireshark identifies conversations by address
//! and port, not by interface: with equal addresses, each further observation of a packet would count as a
//! retransmission.

use paceline_netsim::flow::tcp::TcpConfig;
use paceline_netsim::plan::{FlowKind, FlowPlan, Plan};
use paceline_netsim::records::{TapPoint, TappedPacket};

/// Taps are numbered from 1 to 255: senders, receivers, two for each hop.
pub(super) const HOPS_MAX: usize = 126;

/// Number of flows with different addresses at a tap; further flows have different ports.
const FLOWS_PER_PORT: u16 = 250;
/// Port of media at both ends, the RTP port of RFC 3551. RTCP shares it.
const MEDIA_PORT: u16 = 5004;
/// Port of a TCP receiver; the sender uses one port per connection.
const TCP_PORT: u16 = 5001;
const CONNECTION_PORTS: std::ops::Range<u16> = 10_000..60_000;

pub(super) struct Tap {
    pub name: String,
    pub description: String,
}

/// Direction of a packet at a tap, with the values of pcapng.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    In = 1,
    Out = 2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub source: ([u8; 4], u16),
    pub destination: ([u8; 4], u16),
}

pub(super) struct Taps {
    taps: Vec<Tap>,
    tcp: Vec<Option<TcpConfig>>,
}

impl Taps {
    /// Returns the taps of a plan; `None` if it has more than [`HOPS_MAX`] hops.
    pub fn new(plan: &Plan) -> Option<Self> {
        if plan.hops.len() > HOPS_MAX {
            return None;
        }
        let tap = |name: &str, description: String| Tap { name: name.to_owned(), description };
        let mut taps = vec![
            tap("sender", "packets that the senders of all flows send and receive".to_owned()),
            tap("receiver", "packets that the receivers of all flows send and receive".to_owned()),
        ];
        for hop in &plan.hops {
            let id = &hop.id;
            taps.push(tap(&format!("{id} in"), format!("packets that reach the queue of hop {id}, dropped or not")));
            taps.push(tap(&format!("{id} out"), format!("packets that have crossed hop {id}")));
        }
        for (index, tap) in taps.iter_mut().enumerate() {
            tap.description += &format!("; addresses 10.{}.0.0/16", index + 1);
        }
        taps.push(tap("session", "descriptions of the media flows and their ports; no endpoint sends them".to_owned()));
        let tcp = |flow: &FlowPlan| match &flow.kind {
            FlowKind::Tcp(tcp) => Some(tcp.config),
            FlowKind::Media(media) => media.over_tcp(),
        };
        Some(Self { taps, tcp: plan.flows.iter().map(tcp).collect() })
    }

    /// Returns every interface in order, the one of announcements last.
    pub fn iter(&self) -> impl Iterator<Item = &Tap> {
        self.taps.iter()
    }

    pub fn session(&self) -> u32 {
        self.taps.len() as u32 - 1
    }

    /// Returns the configuration of a TCP flow, or of media over TCP.
    pub fn tcp(&self, flow: usize) -> &TcpConfig {
        self.tcp[flow].as_ref().expect("segments are of TCP flows")
    }

    /// Returns the interface of a packet, and its direction there.
    pub fn interface(&self, packet: &TappedPacket<'_>) -> (u32, Direction) {
        let direction = match packet.point {
            TapPoint::Exit { .. } => Direction::Out,
            _ if packet.is_departure() => Direction::Out,
            _ => Direction::In,
        };
        (interface(packet.point), direction)
    }

    /// Returns the addresses of a packet at its tap; `connection` is the number of its TCP connection.
    pub fn route(&self, packet: &TappedPacket<'_>, connection: u32) -> Route {
        let (sender, receiver) = self.ends(interface(packet.point), packet.packet.flow.0, connection);
        match packet.packet.class.is_from_receiver() {
            true => Route { source: receiver, destination: sender },
            false => Route { source: sender, destination: receiver },
        }
    }

    /// Returns addresses and ports of a flow's sender and receiver at an interface.
    pub fn ends(&self, interface: u32, flow: u16, connection: u32) -> (([u8; 4], u16), ([u8; 4], u16)) {
        let host = |end| [10, interface as u8 + 1, (flow % FLOWS_PER_PORT) as u8, end];
        let more = flow / FLOWS_PER_PORT;
        let (from, to) = match self.tcp[flow as usize] {
            None => (MEDIA_PORT + 2 * more, MEDIA_PORT + 2 * more),
            Some(_) => {
                let among = CONNECTION_PORTS.len() as u32;
                (CONNECTION_PORTS.start + (connection % among) as u16, TCP_PORT + more)
            }
        };
        ((host(1), from), (host(2), to))
    }
}

pub(super) fn interface(point: TapPoint) -> u32 {
    match point {
        TapPoint::Sender => 0,
        TapPoint::Receiver => 1,
        TapPoint::Entry { hop } => 2 + 2 * hop as u32,
        TapPoint::Exit { hop, .. } => 3 + 2 * hop as u32,
    }
}
