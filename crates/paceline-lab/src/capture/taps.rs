//! The places of a capture: interfaces, and the addresses of packets that are seen there.
//!
//! Every place has addresses of its own, as if packets were translated between places. Wireshark and its kin tell
//! conversations apart by address and port and not by interface: were the addresses the same everywhere, each sight of a
//! packet after the first would count as a retransmission.

use crate::plan::{FlowKind, Plan};
use crate::sight::{Place, Sight};
use paceline_flow::tcp::TcpConfig;

/// Places are numbered from 1 to 255: senders, receivers, two for each hop.
pub(super) const HOPS_MAX: usize = 126;

/// Flows with the same addresses at a place; their ports differ.
const FLOWS_PER_PORT: u16 = 250;
/// Port of media at either end: the one that RFC 3551 gives RTP. RTCP shares it.
const MEDIA_PORT: u16 = 5004;
/// Port of a TCP receiver; its sender has one for each connection.
const TCP_PORT: u16 = 5001;
const CONNECTION_PORTS: std::ops::Range<u16> = 10_000..60_000;

/// An interface.
pub(super) struct Tap {
    pub name: String,
    pub description: String,
}

/// Which way a packet goes at a tap, by the numbers of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    In = 1,
    Out = 2,
}

/// Address and port of each end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Route {
    pub source: ([u8; 4], u16),
    pub destination: ([u8; 4], u16),
}

/// All taps of a run.
pub(super) struct Taps {
    taps: Vec<Tap>,
    /// Of each flow that is one.
    tcp: Vec<Option<TcpConfig>>,
}

impl Taps {
    /// None: too many hops.
    pub fn new(plan: &Plan) -> Option<Self> {
        if plan.hops.len() > HOPS_MAX {
            return None;
        }
        let tap = |name: &str, description: String| Tap { name: name.to_owned(), description };
        let mut taps = vec![
            tap("sender", "what the senders of all flows send and get".to_owned()),
            tap("receiver", "what the receivers of all flows send and get".to_owned()),
        ];
        for hop in &plan.hops {
            let id = &hop.id;
            taps.push(tap(&format!("{id} in"), format!("what comes to the queue of hop {id}, dropped or not")));
            taps.push(tap(&format!("{id} out"), format!("what has crossed hop {id}")));
        }
        for (index, tap) in taps.iter_mut().enumerate() {
            tap.description += &format!("; addresses 10.{}.0.0/16", index + 1);
        }
        taps.push(tap(
            "session",
            "descriptions of the media flows, which nobody sends: they name the ports".to_owned(),
        ));
        let tcp = |flow: &crate::plan::FlowPlan| match &flow.kind {
            FlowKind::Tcp(tcp) => Some(tcp.config),
            FlowKind::Media(_) => None,
        };
        Some(Self { taps, tcp: plan.flows.iter().map(tcp).collect() })
    }

    /// Every interface in order, the one of announcements last.
    pub fn iter(&self) -> impl Iterator<Item = &Tap> {
        self.taps.iter()
    }

    /// The interface of announcements.
    pub fn session(&self) -> u32 {
        self.taps.len() as u32 - 1
    }

    /// The configuration of a TCP flow.
    pub fn tcp(&self, flow: usize) -> &TcpConfig {
        self.tcp[flow].as_ref().expect("segments are of TCP flows")
    }

    /// Where a packet is seen, and which way it goes there.
    pub fn interface(&self, sight: &Sight<'_>) -> (u32, Way) {
        let way = match sight.place {
            Place::Exit { .. } => Way::Out,
            _ if sight.is_departure() => Way::Out,
            _ => Way::In,
        };
        (interface(sight.place), way)
    }

    /// Its addresses there; `connection` counts those of a TCP flow.
    pub fn route(&self, sight: &Sight<'_>, connection: u32) -> Route {
        let (sender, receiver) = self.ends(interface(sight.place), sight.packet.flow.0, connection);
        match sight.packet.class.goes_back() {
            true => Route { source: receiver, destination: sender },
            false => Route { source: sender, destination: receiver },
        }
    }

    /// Addresses and ports of a flow's sender and receiver at the place of this interface.
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

/// The number of a place's interface.
pub(super) fn interface(place: Place) -> u32 {
    match place {
        Place::Sender => 0,
        Place::Receiver => 1,
        Place::Entry { hop } => 2 + 2 * hop as u32,
        Place::Exit { hop, .. } => 3 + 2 * hop as u32,
    }
}
