//! pcapng and pcap captures with RTP, in clear or as SRTP, at the sender, at the receiver or with both in one file.
//!
//! Two passes: the first finds the streams, where each is seen first and last, and the ids of header extensions; the second fills
//! the model. SRTP leaves the RTP header, its extensions and the first 8 bytes of RTCP in clear (RFC 3711, sections 3.1 and 3.4).

use crate::error::ReadError;
use crate::model::{Call, Flow};
use crate::transport::{Ends, Transport};
use etherparse::{EtherType, LaxNetSlice, LaxSlicedPacket, TransportSlice};
use paceline_units::{Time, TimeDelta};
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read};
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

/// Name of the format.
pub const FORMAT: &str = "pcapng";

/// The longest block that is read. Larger ones are no packets of a network.
const BUFFER: usize = 4 << 20;
/// Streams at most; further ones are left out.
const STREAMS_MAX: usize = 1024;
/// Packets of a stream from which extension ids are learnt.
const LEARN: u32 = 400;
/// Two packets of the same SSRC at least make a stream.
const PACKETS_MIN: u32 = 20;

/// Addresses and ports of a packet.
type Route = ((IpAddr, u16), (IpAddr, u16));

/// A UDP datagram of the capture.
struct Datagram<'a> {
    at: Time,
    interface: u32,
    /// 1 in, 2 out, 0 unknown.
    direction: u32,
    route: Route,
    payload: &'a [u8],
    /// Size of the IP packet.
    bytes: u64,
}

/// Reads a capture. `open` is called twice.
///
/// # Errors
/// The file is damaged before the first packet, or has no RTP.
pub fn read(open: &mut dyn FnMut() -> std::io::Result<Box<dyn Read>>) -> Result<Call, ReadError> {
    let mut streams = BTreeMap::new();
    let mut other = Other::default();
    let mut first = None;
    let cut = each_datagram(open()?, &mut first, &mut |datagram| learn(&mut streams, &mut other, datagram))?;
    let plans = plan(&streams);
    if plans.is_empty() {
        let problem = match (other.datagrams, other.turn) {
            (0, _) => "no UDP datagram in it",
            (_, true) => "no RTP in it, and TURN channels, whose content is not read",
            _ => "no RTP in it",
        };
        return Err(ReadError::Empty { format: FORMAT, problem: problem.to_owned() });
    }
    let mut flows: Vec<Transport> = plans.iter().map(|plan| Transport::new(plan.ends())).collect();
    let mut roles: BTreeMap<(u32, Route), Vec<Role>> = BTreeMap::new();
    for (index, plan) in plans.iter().enumerate() {
        plan.roles(index, &mut roles);
    }
    let mut first = None;
    each_datagram(open()?, &mut first, &mut |datagram| {
        let Some(roles) = roles.get(&(datagram.interface, datagram.route)) else { return };
        for role in roles {
            fill(&mut flows[role.flow], &plans[role.flow], role.what, datagram);
        }
    })?;
    Ok(finish(flows, &plans, &other, cut))
}

fn finish(transports: Vec<Transport>, plans: &[FlowPlan], other: &Other, cut: Option<String>) -> Call {
    let mut notes: Vec<String> = cut.into_iter().collect();
    if other.dtls || transports.iter().any(|t| t.encrypted_reports > t.clear_reports) {
        notes.push(
            "SRTP: headers, sizes and times are clear; the content of reports is not, so losses and delays are known only at the \
             receiver or with both ends in the file"
                .to_owned(),
        );
    }
    if other.turn {
        notes.push("packets in TURN channels are left out".to_owned());
    }
    if plans.iter().any(|plan| plan.is_guessed) {
        notes.push(
            "the capture does not say which packets were sent: streams count as sent, unless their send times jitter"
                .to_owned(),
        );
    }
    let mut flows: Vec<Flow> = Vec::new();
    for (index, transport) in transports.into_iter().enumerate() {
        if !transport.is_empty() {
            flows.push(transport.finish(format!("flow {}", index + 1)));
        }
    }
    Call { format: FORMAT.to_owned(), flows, notes }
}

/// What else is in the file.
#[derive(Default)]
struct Other {
    datagrams: u64,
    dtls: bool,
    turn: bool,
}

/// A stream of one SSRC at one interface.
struct Seen {
    first: Time,
    packets: u32,
    /// Packets that came in and went out.
    directions: [u32; 2],
    route: Route,
    ids: Learner,
}

type Streams = BTreeMap<(u32, u32), Seen>;

fn learn(streams: &mut Streams, other: &mut Other, datagram: &Datagram<'_>) {
    other.datagrams += 1;
    let Some(first) = datagram.payload.first() else { return };
    // Content types of DTLS, and its version (RFC 9147, section 4).
    other.dtls |= (20..=26).contains(first) && datagram.payload.get(1) == Some(&0xFE);
    other.turn |= (64..80).contains(first);
    if is_rtcp(datagram.payload) {
        return;
    }
    let none = ExtensionIds { abs_send_time: 0, transport_sequence: 0 };
    let Ok((header, _)) = RtpHeader::parse(datagram.payload, &none) else { return };
    let key = (header.ssrc, datagram.interface);
    if streams.len() >= STREAMS_MAX && !streams.contains_key(&key) {
        return;
    }
    let seen = streams.entry(key).or_insert_with(|| Seen {
        first: datagram.at,
        packets: 0,
        directions: [0; 2],
        route: datagram.route,
        ids: Learner::default(),
    });
    seen.packets += 1;
    if let Some(count) = datagram.direction.checked_sub(1).and_then(|index| seen.directions.get_mut(index as usize)) {
        *count += 1;
    }
    if seen.packets <= LEARN {
        seen.ids.packet(datagram.at, datagram.payload);
    }
}

/// Learns which ids are the transport-wide sequence number and the send time: a value of 2 bytes that rises by little, and one of
/// 3 bytes that rises by 2^18 in a second.
#[derive(Default)]
pub struct Learner {
    /// By id: last value, steps, and steps that fit.
    counters: [(Option<u16>, u32, u32); 15],
    /// By id: first time and value, last time and value without wraps, and the spread of the difference.
    clocks: [Option<Clock>; 15],
}

#[derive(Clone, Copy)]
struct Clock {
    first: (f64, u32),
    last: u32,
    total: i64,
    at: f64,
    low: f64,
    high: f64,
}

impl Learner {
    /// Learns from a packet.
    pub fn packet(&mut self, at: Time, payload: &[u8]) {
        for id in 1..=14u8 {
            let Ok((header, _)) =
                RtpHeader::parse(payload, &ExtensionIds { abs_send_time: id, transport_sequence: id })
            else {
                return;
            };
            let index = usize::from(id);
            if let Some(value) = header.transport_sequence {
                let (last, steps, fit) = &mut self.counters[index];
                if let Some(last) = *last {
                    *steps += 1;
                    *fit += u32::from((1..=64).contains(&value.wrapping_sub(last)));
                }
                *last = Some(value);
            }
            if let Some(value) = header.abs_send_time {
                let (at, bits) = (at.since(Time::ZERO).as_secs_f64(), value.bits());
                let clock = self.clocks[index].get_or_insert(Clock {
                    first: (at, bits),
                    last: bits,
                    total: 0,
                    at,
                    low: 0.0,
                    high: 0.0,
                });
                clock.total += i64::from(((bits.wrapping_sub(clock.last) << 8) as i32) >> 8);
                (clock.last, clock.at) = (bits, at);
                let delay = (at - clock.first.0) - clock.total as f64 / f64::from(1 << 18);
                (clock.low, clock.high) = (clock.low.min(delay), clock.high.max(delay));
            }
        }
    }

    /// Returns the ids; 0 for an unknown one.
    pub fn ids(&self) -> ExtensionIds {
        let transport_sequence = (1..15).find(|id| {
            let (_, steps, fit) = self.counters[*id];
            steps >= 10 && 10 * fit >= 8 * steps
        });
        let abs_send_time = (1..15).find(|id| self.clock(*id).is_some());
        ExtensionIds {
            abs_send_time: abs_send_time.unwrap_or(0) as u8,
            transport_sequence: transport_sequence.unwrap_or(0) as u8,
        }
    }

    fn clock(&self, id: usize) -> Option<&Clock> {
        let clock = self.clocks[id].as_ref()?;
        let (span, ticks) = (clock.at - clock.first.0, clock.total as f64 / f64::from(1 << 18));
        (span > 0.2 && (0.8..1.25).contains(&(ticks / span))).then_some(clock)
    }

    /// Returns by how much the send times jitter against the capture, if they are known.
    fn jitter(&self) -> Option<f64> {
        (1..15).find_map(|id| self.clock(id)).map(|clock| clock.high - clock.low)
    }
}

/// Where the packets of a flow are.
struct FlowPlan {
    /// Interface, route and ids at the sender and at the receiver.
    sender: Option<(u32, Route)>,
    receiver: Option<(u32, Route)>,
    ids: ExtensionIds,
    is_guessed: bool,
}

/// What a datagram is for a flow.
#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    DataLeft,
    DataArrived,
    ReportLeft,
    ReportArrived,
}

struct Role {
    flow: usize,
    what: What,
}

/// Larger jitter of send times than this is that of a path. Ours.
const SENDER_JITTER: f64 = 0.002;

fn plan(streams: &Streams) -> Vec<FlowPlan> {
    let mut by_ssrc: BTreeMap<u32, Vec<(u32, &Seen)>> = BTreeMap::new();
    for ((ssrc, interface), seen) in streams {
        if seen.packets >= PACKETS_MIN {
            by_ssrc.entry(*ssrc).or_default().push((*interface, seen));
        }
    }
    let mut plans: Vec<FlowPlan> = Vec::new();
    let mut places: Vec<(Time, Vec<(u32, &Seen)>)> = by_ssrc
        .into_values()
        .map(|mut places| {
            places.sort_by_key(|(interface, seen)| (seen.first, *interface));
            (places[0].1.first, places)
        })
        .collect();
    places.sort_by_key(|(first, _)| *first);
    for (_, places) in places {
        let (first, last) = (&places[0], &places[places.len() - 1]);
        let place = |(interface, seen): &(u32, &Seen)| (*interface, seen.route);
        let [came, went] = first.1.directions;
        let is_guessed = places.len() == 1 && came + went == 0;
        let is_sender = match (went > came, is_guessed) {
            (_, true) => first.1.ids.jitter().is_none_or(|jitter| jitter <= SENDER_JITTER),
            (is_sender, false) => is_sender,
        };
        let plan = FlowPlan {
            sender: (places.len() > 1 || is_sender).then(|| place(first)),
            receiver: (places.len() > 1 || !is_sender).then(|| place(last)),
            ids: first.1.ids.ids(),
            is_guessed,
        };
        match plans.iter_mut().find(|other| other.sender == plan.sender && other.receiver == plan.receiver) {
            // A stream with few packets teaches fewer ids.
            Some(other) => {
                other.ids.abs_send_time = other.ids.abs_send_time.max(plan.ids.abs_send_time);
                other.ids.transport_sequence = other.ids.transport_sequence.max(plan.ids.transport_sequence);
            }
            None => plans.push(plan),
        }
    }
    plans
}

impl FlowPlan {
    fn ends(&self) -> Ends {
        match (self.sender.is_some(), self.receiver.is_some()) {
            (true, true) => Ends::Both,
            (true, false) => Ends::Sender,
            _ => Ends::Receiver,
        }
    }

    fn roles(&self, flow: usize, roles: &mut BTreeMap<(u32, Route), Vec<Role>>) {
        let ends =
            [(self.sender, What::DataLeft, What::ReportArrived), (self.receiver, What::DataArrived, What::ReportLeft)];
        for (place, data, report) in ends {
            let Some((interface, route)) = place else { continue };
            roles.entry((interface, route)).or_default().push(Role { flow, what: data });
            roles.entry((interface, (route.1, route.0))).or_default().push(Role { flow, what: report });
        }
    }
}

fn fill(flow: &mut Transport, plan: &FlowPlan, what: What, datagram: &Datagram<'_>) {
    let (at, payload) = (datagram.at, datagram.payload);
    match (what, is_rtcp(payload)) {
        (What::DataLeft, true) => flow.rtcp_sent(at, payload),
        (What::ReportLeft, true) => flow.report_sent(at, payload),
        (What::ReportArrived, true) => flow.report_arrived(at, payload),
        (What::DataLeft | What::DataArrived, false) => {
            let Ok((header, _)) = RtpHeader::parse(payload, &plan.ids) else { return };
            match what {
                What::DataLeft => flow.rtp_sent(at, &header, datagram.bytes),
                _ => flow.rtp_arrived(at, &header, datagram.bytes),
            }
        }
        _ => {}
    }
}

/// Calls `each` with every UDP datagram. Returns a note if the file is cut or damaged after some packets.
fn each_datagram(
    input: Box<dyn Read>,
    first: &mut Option<Duration>,
    each: &mut dyn FnMut(&Datagram<'_>),
) -> Result<Option<String>, ReadError> {
    let mut input = input;
    let mut magic = [0; 4];
    input.read_exact(&mut magic).map_err(|error| damaged(0, &error.to_string()))?;
    let input = std::io::Cursor::new(magic).chain(input);
    let mut packets = 0u64;
    let mut give = |since: Duration, interface, direction, link, data: &[u8]| {
        let first = *first.get_or_insert(since);
        let nanos = since.as_nanos() as i128 - first.as_nanos() as i128;
        // Times before the first packet, or more than 100 days after it, are those of a damaged file.
        let Some(nanos) = i64::try_from(nanos).ok().filter(|nanos| (0..8_640_000_000_000_000).contains(nanos)) else {
            return;
        };
        packets += 1;
        if let Some(datagram) = datagram(Time::ZERO + TimeDelta::from_nanos(nanos), interface, direction, link, data) {
            each(&datagram);
        }
    };
    let problem = if magic == [0x0A, 0x0D, 0x0D, 0x0A] {
        let mut reader = PcapNgReader::with_capacity(input, BUFFER).map_err(|error| damaged(0, &error.to_string()))?;
        loop {
            let position = reader.bytes_parsed();
            let block = match reader.next_block() {
                None => break None,
                Some(Err(error)) => break Some((position, error.to_string())),
                Some(Ok((Block::EnhancedPacket(packet), state))) => {
                    let link = state.interfaces().get(packet.interface_id as usize).map(|interface| interface.linktype);
                    let direction = packet.options.iter().find_map(|option| match option {
                        EnhancedPacketOption::Flags(flags) => Some(flags & 3),
                        _ => None,
                    });
                    link.map(|link| (packet.timestamp, packet.interface_id, direction.unwrap_or(0), link, packet.data))
                }
                Some(Ok(_)) => None,
            };
            if let Some((at, interface, direction, link, data)) = block {
                give(at, interface, direction, link, &data);
            }
        }
    } else {
        let mut reader = PcapReader::with_capacity(input, BUFFER).map_err(|error| damaged(0, &error.to_string()))?;
        let link = reader.header().datalink;
        let mut number = 0;
        loop {
            match reader.next_packet() {
                None => break None,
                Some(Err(error)) => break Some((number, error.to_string())),
                Some(Ok(packet)) => give(packet.timestamp(), 0, 0, link, packet.data()),
            }
            number += 1;
        }
    };
    match problem {
        None => Ok(None),
        Some((at, problem)) if packets == 0 => Err(damaged(at, &problem)),
        Some((at, problem)) => {
            Ok(Some(format!("the file is cut or damaged after {packets} packets (at {at}: {problem})")))
        }
    }
}

fn damaged(at: u64, problem: &str) -> ReadError {
    ReadError::Damaged { format: FORMAT, place: format!("byte {at}"), problem: problem.to_owned() }
}

/// Finds the UDP datagram in a packet, of which only the first bytes may exist.
fn datagram(at: Time, interface: u32, direction: u32, link: DataLink, data: &[u8]) -> Option<Datagram<'_>> {
    let packet = match link {
        DataLink::ETHERNET => LaxSlicedPacket::from_ethernet(data).ok()?,
        DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => LaxSlicedPacket::from_ip(data).ok()?,
        // Linux "cooked": the protocol in the last two of 16 bytes; version 2: in the first two of 20.
        DataLink::LINUX_SLL => LaxSlicedPacket::from_ether_type(
            EtherType(u16::from_be_bytes([*data.get(14)?, *data.get(15)?])),
            data.get(16..)?,
        ),
        DataLink::LINUX_SLL2 => LaxSlicedPacket::from_ether_type(
            EtherType(u16::from_be_bytes([*data.first()?, *data.get(1)?])),
            data.get(20..)?,
        ),
        DataLink::NULL | DataLink::LOOP => LaxSlicedPacket::from_ip(data.get(4..)?).ok()?,
        _ => return None,
    };
    let Some(TransportSlice::Udp(udp)) = packet.transport else { return None };
    let (from, to, bytes): (IpAddr, IpAddr, u64) = match packet.net? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            (header.source_addr().into(), header.destination_addr().into(), header.total_len().into())
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let address = |bytes: [u8; 16]| IpAddr::from(Ipv6Addr::from(bytes));
            (address(header.source()), address(header.destination()), 40 + u64::from(header.payload_length()))
        }
        LaxNetSlice::Arp(_) => return None,
    };
    let route = ((from, udp.source_port()), (to, udp.destination_port()));
    Some(Datagram { at, interface, direction, route, payload: udp.payload(), bytes })
}

impl From<std::io::Error> for ReadError {
    fn from(source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::UnexpectedEof => damaged(0, "the file ends too early"),
            _ => Self::Io { path: std::path::PathBuf::new(), source },
        }
    }
}
