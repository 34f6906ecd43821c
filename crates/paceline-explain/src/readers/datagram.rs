// SPDX-License-Identifier: MIT OR Apache-2.0
//! pcapng and pcap files to datagrams: of UDP, and messages of TCP streams.

use super::layers::{Packet, Unpacked, unpack};
use super::tcp::{Message, Streams};
use crate::error::ReadError;
use paceline_units::{Ecn, Time, TimeDelta};
use paceline_wire::is_rtcp;
use pcap_file::DataLink;
use pcap_file::pcap::PcapReader;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::{Block, PcapNgReader};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{ErrorKind, Read};
use std::time::Duration;

pub use super::layers::Route;

/// Name of the format.
pub const FORMAT: &str = "pcapng";
/// The longest block that is read. Larger ones are no packets of a network.
const BUFFER: usize = 4 << 20;
/// Link types at most that are named in a message.
const LINKS_MAX: usize = 8;

/// The same media on the same interface within this time is one packet that was captured twice, on another interface below it or
/// inside and outside of a tunnel: the first counts. Assumed: hosts forward in less; a retransmission follows a round trip.
const COPY: TimeDelta = TimeDelta::from_millis(10);
/// Packets that are compared at most: bounds the memory.
const COPIES_MAX: usize = 1 << 14;

/// Directions of a packet, as in the flags of pcapng.
pub const INCOMING: u32 = 1;
/// See [`INCOMING`].
pub const OUTGOING: u32 = 2;

/// A UDP datagram of the capture, or a message of a TCP stream.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Datagram<'a> {
    /// Time since the first packet of the file. A message of a stream has the time at which it is complete and in order.
    pub at: Time,
    /// Time since 1970.
    pub since: Duration,
    /// Index of the interface.
    pub interface: u32,
    /// [`INCOMING`], [`OUTGOING`], 0 unknown.
    pub direction: u32,
    /// From and to.
    pub route: Route,
    /// What there is of the payload.
    pub payload: &'a [u8],
    /// Size of the IP packet. Each message of a stream counts with headers of its own.
    pub bytes: u64,
    /// ECN field of the IP packet; [`Ecn::NotEct`] for messages of a stream.
    pub ecn: Ecn,
    /// Whether the capture has the whole packet.
    pub is_whole: bool,
}

/// What a pass over a file met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pass {
    /// Packets of any kind.
    pub packets: u64,
    /// A note if the file is cut or damaged after some packets.
    pub cut: Option<String>,
    /// Link types that are not read.
    pub links: BTreeSet<String>,
    /// Tunnels and streams whose content is encrypted.
    pub encrypted: BTreeSet<&'static str>,
    /// Time of the last packet.
    pub last: Time,
    /// Packets that are in the file before.
    pub copies: u64,
    /// The bytes at which the longest packet is cut that is.
    pub cut_at: Option<usize>,
}

/// Finds [copies](COPY).
#[derive(Default)]
struct Copies {
    last: BTreeMap<u64, Time>,
    order: VecDeque<(u64, Time)>,
}

impl Copies {
    /// Returns whether this is the copy of a packet of RTP.
    fn is_copy(&mut self, interface: u32, at: Time, payload: &[u8], bytes: u64) -> bool {
        if payload.len() < 12 || !(128..192).contains(&payload[0]) || is_rtcp(payload) {
            return false;
        }
        let mut hasher = DefaultHasher::new();
        (interface, bytes, payload).hash(&mut hasher);
        let key = hasher.finish();
        while let Some((old, since)) = self.order.front().copied()
            && (at - since > COPY || self.order.len() > COPIES_MAX)
        {
            self.order.pop_front();
            self.last.remove(&old);
        }
        if self.last.get(&key).is_some_and(|since| (at - *since).abs() <= COPY) {
            return true;
        }
        self.last.insert(key, at);
        self.order.push_back((key, at));
        false
    }
}

/// Calls `each` with every datagram.
///
/// # Errors
/// The file is damaged before the first packet.
pub fn each_datagram(input: Box<dyn Read>, each: &mut dyn FnMut(&Datagram<'_>)) -> Result<Pass, ReadError> {
    let mut input = input;
    let mut magic = [0; 4];
    input.read_exact(&mut magic).map_err(|error| damaged(0, &error.to_string()))?;
    let input = std::io::Cursor::new(magic).chain(input);
    let mut pass = Pass::default();
    let mut first = None;
    let mut streams = Streams::default();
    let mut copies = Copies::default();
    let mut give = |since: Duration, interface, direction, link, data: &[u8], length: u32| {
        let first = *first.get_or_insert(since);
        let nanos = since.as_nanos() as i128 - first.as_nanos() as i128;
        // Times before the first packet, or more than 100 days after it, are those of a damaged file.
        let Some(nanos) = i64::try_from(nanos).ok().filter(|nanos| (0..8_640_000_000_000_000).contains(nanos)) else {
            return;
        };
        pass.packets += 1;
        let is_whole = data.len() >= length as usize;
        if !is_whole {
            pass.cut_at = pass.cut_at.max(Some(data.len()));
        }
        let at = Time::ZERO + TimeDelta::from_nanos(nanos);
        pass.last = pass.last.max(at);
        let direction = if direction == 0 { direction_of(link, data) } else { direction };
        match unpack(link, data) {
            Some(Packet::Datagram(Unpacked { payload, bytes, .. }))
                if copies.is_copy(interface, at, payload, bytes) =>
            {
                pass.copies += 1;
            }
            Some(Packet::Datagram(Unpacked { route, payload, bytes, ecn })) => {
                each(&Datagram { at, since, interface, direction, route, payload, bytes, ecn, is_whole });
            }
            Some(Packet::Segment(segment)) => {
                streams.add((interface, direction), at, &segment, &mut |message| each(&of_message(first, message)));
            }
            Some(Packet::Encrypted(tunnel)) => drop(pass.encrypted.insert(tunnel)),
            Some(Packet::Other) => {}
            None if pass.links.len() < LINKS_MAX => drop(pass.links.insert(format!("{link:?}"))),
            None => {}
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
                    let (length, interface) = (packet.original_len, packet.interface_id);
                    link.map(|link| (packet.timestamp, interface, direction.unwrap_or(0), link, packet.data, length))
                }
                Some(Ok(_)) => None,
            };
            if let Some((at, interface, direction, link, data, length)) = block {
                give(at, interface, direction, link, &data, length);
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
                Some(Ok(packet)) => give(packet.timestamp(), 0, 0, link, packet.data(), packet.orig_len()),
            }
            number += 1;
        }
    };
    streams.finish(&mut |message| each(&of_message(first.unwrap_or_default(), message)));
    pass.encrypted.append(&mut streams.encrypted);
    match problem {
        Some((at, problem)) if pass.packets == 0 => return Err(damaged(at, &problem)),
        Some((at, problem)) => {
            pass.cut = Some(format!("the file is cut or damaged after {} packets (at {at}: {problem})", pass.packets));
        }
        None => {}
    }
    Ok(pass)
}

/// Returns a message of a stream, with the time of the first packet of the file.
fn of_message<'a>(first: Duration, message: &Message<'a>) -> Datagram<'a> {
    let Message { at, interface, direction, route, content: payload, bytes } = *message;
    let since = first + Duration::from_nanos(at.as_nanos().unsigned_abs());
    Datagram { at, since, interface, direction, route, payload, bytes, ecn: Ecn::NotEct, is_whole: true }
}

/// Returns the error of a damaged capture.
pub fn damaged(at: u64, problem: &str) -> ReadError {
    ReadError::Damaged { format: FORMAT, place: format!("byte {at}"), problem: problem.to_owned() }
}

/// Returns the direction that the header of the link says. Linux "cooked": sent by somebody else to this host, or by this host.
fn direction_of(link: DataLink, data: &[u8]) -> u32 {
    let kind = match link {
        DataLink::LINUX_SLL => data.first_chunk().map(|bytes| u16::from_be_bytes(*bytes)),
        DataLink::LINUX_SLL2 => data.get(10).map(|byte| u16::from(*byte)),
        _ => None,
    };
    match kind {
        Some(0) => INCOMING,
        Some(4) => OUTGOING,
        _ => 0,
    }
}

impl From<std::io::Error> for ReadError {
    fn from(source: std::io::Error) -> Self {
        match source.kind() {
            ErrorKind::UnexpectedEof => damaged(0, "the file ends too early"),
            _ => Self::Io { source },
        }
    }
}
