// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classification of packets by flow, from the port, and by class, from the content.

use crate::testbed::five_tuple::FiveTupleHash;
use crate::testbed::ip::{Transport, dscp, is_ipv6_multicast};
use crate::testbed::link::{Classifier, PacketIdentity, Side};
use paceline_netsim::flow::{MediaKind, StreamInfo};
use paceline_netsim::network::HeaderClass;
use paceline_netsim::plan::{FlowKind, Plan};
use paceline_netsim::records::PacketClass;
use paceline_units::StreamId;
use paceline_wire::red::Red;
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use std::collections::BTreeMap;

/// Port of the first flow of a plan; the other flows follow. Below the ephemeral ports of the kernel.
const FIRST_PORT: u16 = 20_000;

/// Returns the port of a flow: of both ends of media, and of the receiver of TCP.
pub fn port_of(flow: usize) -> u16 {
    FIRST_PORT + flow as u16
}

/// Classifies the packets of a plan by port and content.
pub struct ByPort {
    /// The side of each flow's sender, and whether it is TCP.
    flows: Vec<(Side, bool)>,
    extensions: ExtensionIds,
    stream_info: StreamInfo,
    /// The sequence number after the highest sent, by flow and port of the sender.
    sent: BTreeMap<(usize, u16), u32>,
}

impl ByPort {
    /// Creates a classifier for the flows of a plan; `senders` is the side of each sender.
    pub fn new(plan: &Plan, senders: &[Side]) -> Self {
        let flows = plan.flows.iter().zip(senders);
        let flows = flows.map(|(flow, side)| (*side, matches!(flow.kind, FlowKind::Tcp(_)))).collect();
        // Payload types are the same for all streams of video.
        let stream_info =
            StreamInfo { id: StreamId(0), kind: MediaKind::Video, ssrc: 0, rtx_ssrc: 0, clock_rate: 90_000 };
        Self { flows, extensions: ExtensionIds::default(), stream_info, sent: BTreeMap::new() }
    }

    fn flow(&self, tcp: bool, ports: [u16; 2]) -> Option<usize> {
        let flow = |port: u16| {
            let flow = port.checked_sub(FIRST_PORT)? as usize;
            (self.flows.get(flow)?.1 == tcp).then_some(flow)
        };
        ports.into_iter().find_map(flow)
    }

    fn media(&self, payload: &[u8]) -> PacketClass {
        let Ok((header, offset)) = RtpHeader::parse(payload, &self.extensions) else { return PacketClass::Media };
        let (stream_info, rest) = (&self.stream_info, &payload[offset.min(payload.len())..]);
        let is = |payload_type: u8| header.payload_type == payload_type;
        if is(stream_info.rtx_payload_type()) || is(stream_info.red_rtx_payload_type()) {
            return if header.padding { PacketClass::Padding } else { PacketClass::Retransmission };
        }
        let primary = |red: Red<'_>| red.payload_type() == stream_info.ulpfec_payload_type();
        match is(stream_info.red_payload_type()) && Red::parse(rest).is_ok_and(primary) {
            true => PacketClass::Fec,
            false => PacketClass::Media,
        }
    }

    /// Returns whether all data of a segment was sent before.
    fn is_retransmission(&mut self, flow: usize, port: u16, sequence: u32, length: u32, syn: bool) -> bool {
        let end = sequence.wrapping_add(length);
        let next = self.sent.entry((flow, port)).or_insert(sequence);
        if syn && sequence != next.wrapping_sub(1) {
            *next = sequence; // a new connection from a port that was used before
        }
        let is_new = (end.wrapping_sub(*next) as i32) > 0;
        if is_new {
            *next = end;
        }
        length > 0 && !is_new
    }
}

impl Classifier for ByPort {
    fn classify(&mut self, from: Side, packet: &[u8]) -> Option<PacketIdentity> {
        let (flow, class) = match Transport::parse(packet)? {
            Transport::Udp { from: source, to, payload } => {
                let flow = self.flow(false, [source, to])?;
                let class = match (from == self.flows[flow].0, is_rtcp(payload)) {
                    (true, true) => PacketClass::SenderControl,
                    (true, false) => self.media(payload),
                    (false, _) => PacketClass::ReceiverControl,
                };
                (flow, class)
            }
            Transport::Tcp { from: source, to, sequence, length, syn } => {
                let flow = self.flow(true, [to, source])?;
                let class = match from == self.flows[flow].0 {
                    false => PacketClass::TcpAck,
                    true if self.is_retransmission(flow, source, sequence, length, syn) => {
                        PacketClass::TcpRetransmission
                    }
                    true => PacketClass::TcpData,
                };
                (flow, class)
            }
        };
        Some(PacketIdentity { flow, class, header: None })
    }
}

/// Assigns all packets to one flow whose sender is at the near side.
#[derive(Clone, Copy, Debug)]
pub struct SingleFlow {
    /// Whether packets are IP packets: other ones, and IPv6 to multicast addresses, are rejected. Queues classify IP packets by
    /// header, with this hash of five-tuples.
    ip: Option<FiveTupleHash>,
}

impl SingleFlow {
    /// Classifies every packet. For relays, whose packets are payloads without IP headers.
    pub const ANY_PACKET: Self = Self { ip: None };

    /// Classifies IP packets, without IPv6 to multicast addresses. For TUN devices, which also receive packets that the kernel
    /// sends by itself.
    pub fn ip(hash: FiveTupleHash) -> Self {
        Self { ip: Some(hash) }
    }
}

impl Classifier for SingleFlow {
    fn classify(&mut self, from: Side, packet: &[u8]) -> Option<PacketIdentity> {
        let header = match &self.ip {
            Some(_) if is_ipv6_multicast(packet) => return None,
            Some(hash) => Some(HeaderClass { flow: hash.of(packet)?, dscp: dscp(packet) }),
            None => None,
        };
        let class = match from {
            Side::Near => PacketClass::TcpData,
            Side::Far => PacketClass::TcpAck,
        };
        Some(PacketIdentity { flow: 0, class, header })
    }
}
