// SPDX-License-Identifier: MIT OR Apache-2.0
//! What carries a media flow over TCP: one connection each way, as through a TURN server over TCP or with ICE over TCP.
//!
//! Packets come late, never lost: one whose segment is lost delays all after it. Each packet is a segment of its own, as without
//! Nagle's algorithm. The ACKs of a connection are segments without data, although real ones ride on those of the other way.

use crate::flow::tcp::{Segment, SegmentKind, TcpConfig, TcpReceiver, TcpReceiverEvent, TcpSender, Workload};
use crate::flow::{Datagram, IP_UDP_HEADERS};
use crate::network::FlowEnd;
use crate::plan::{FRAMING, FlowPlan};
use crate::records::PacketClass;
use paceline::Signals;
use paceline_units::{DataSize, Ecn, RandomStreams, Time};
use std::collections::VecDeque;

/// Data that waits in a socket at most; what comes then is dropped, as by libwebrtc (`AsyncTCPSocketBase::Send`). The most that Linux
/// allows (`tcp_wmem`, Documentation/networking/ip-sysctl).
const SEND_BUFFER: DataSize = DataSize::from_bytes(4 << 20);
/// Part of the number of connections from the receiver to the sender.
const FROM_RECEIVER: u32 = 1 << 31;

/// Both connections of a flow, that of the sender's packets first.
pub(super) struct OverTcp([Connection; 2]);

/// A packet until its segment is acknowledged.
pub(super) struct Carried {
    pub datagram: Datagram,
    pub sent: Time,
    pub class: PacketClass,
    /// Position in the stream of bytes at which it ends.
    end: u64,
}

/// A connection. Its sender counts full segments, as Linux counts packets; on the network each has the size of its packet.
struct Connection {
    config: TcpConfig,
    sender: TcpSender,
    receiver: TcpReceiver,
    packets: VecDeque<Carried>,
    /// Packets that were acknowledged, and where the last of them ends.
    acknowledged: (u64, u64),
    /// Bytes that were written, and those that arrived in order.
    written: u64,
    arrived: u64,
    /// Packets of `packets` that were read.
    read: usize,
}

impl OverTcp {
    pub fn new(plan: &FlowPlan, config: TcpConfig, start: Time, streams: &RandomStreams) -> Self {
        Self(["sender", "receiver"].map(|end| {
            let random = streams.stream(&format!("flow/{}/{end}/tcp", plan.id));
            let sender = TcpSender::new(config, Workload::Bulk, start, random, Signals::disabled());
            Connection {
                config,
                sender: sender.with_written_data(),
                receiver: TcpReceiver::new(config),
                packets: VecDeque::new(),
                acknowledged: (0, 0),
                written: 0,
                arrived: 0,
                read: 0,
            }
        }))
    }

    /// Accepts a packet of an end.
    pub fn write(&mut self, now: Time, end: FlowEnd, class: PacketClass, datagram: &Datagram) {
        self.0[end as usize].write(now, class, datagram);
    }

    /// Returns the next packet that has arrived at an end, in order.
    pub fn read(&mut self, end: FlowEnd) -> Option<&Carried> {
        self.0[end.other() as usize].read()
    }

    pub fn poll_timeout(&self, end: FlowEnd) -> Option<Time> {
        let due = [self.0[end as usize].sender.poll_timeout(), self.0[end.other() as usize].receiver.poll_timeout()];
        due.into_iter().flatten().min()
    }

    pub fn handle_timeout(&mut self, now: Time, end: FlowEnd) {
        self.0[end as usize].sender.handle_timeout(now);
        self.0[end.other() as usize].receiver.handle_timeout(now);
    }

    /// Handles a segment that reached an end.
    pub fn handle_segment(&mut self, now: Time, end: FlowEnd, segment: &Segment, ecn: Ecn) {
        let from = if segment.connection & FROM_RECEIVER == 0 { FlowEnd::Sender } else { FlowEnd::Receiver };
        let segment = Segment { connection: segment.connection & !FROM_RECEIVER, ..*segment };
        let connection = &mut self.0[from as usize];
        match from == end {
            true => connection.handle_acknowledgment(now, segment),
            false => connection.handle_data(now, &segment, ecn),
        }
    }

    /// Returns the next segment that an end sends. Call until it returns `None`.
    pub fn poll_transmit(&mut self, now: Time, end: FlowEnd) -> Option<(Segment, PacketClass, Ecn)> {
        let number = |end| if end == FlowEnd::Sender { 0 } else { FROM_RECEIVER };
        let own = &mut self.0[end as usize];
        let (segment, class, ecn) = match own.poll_transmit(now) {
            Some((segment, kind)) => {
                let class = match kind {
                    SegmentKind::Data | SegmentKind::Control => PacketClass::TcpData,
                    SegmentKind::Retransmission => PacketClass::TcpRetransmission,
                };
                let connection = segment.connection | number(end);
                (Segment { connection, ..segment }, class, own.sender.codepoint(kind))
            }
            None => {
                let segment = self.0[end.other() as usize].receiver.poll_transmit(now)?;
                let connection = segment.connection | number(end.other());
                (Segment { connection, ..segment }, PacketClass::TcpData, Ecn::NotEct)
            }
        };
        Some((segment, if end == FlowEnd::Sender { class } else { PacketClass::TcpAck }, ecn))
    }
}

impl Connection {
    fn write(&mut self, now: Time, class: PacketClass, datagram: &Datagram) {
        let size = datagram.size() - IP_UDP_HEADERS + FRAMING;
        let (_, acknowledged) = self.acknowledged;
        if DataSize::from_bytes(self.written - acknowledged) + size <= SEND_BUFFER {
            self.written += size.as_bytes();
            self.packets.push_back(Carried { datagram: datagram.clone(), sent: now, class, end: self.written });
            self.sender.write_segment();
        }
    }

    fn read(&mut self) -> Option<&Carried> {
        let packet = self.packets.get(self.read).filter(|packet| packet.end <= self.arrived)?;
        self.read += 1;
        Some(packet)
    }

    fn poll_transmit(&mut self, now: Time) -> Option<(Segment, SegmentKind)> {
        let (mut segment, kind) = self.sender.poll_transmit(now)?;
        if segment.payload > 0 {
            let (first, acknowledged) = self.acknowledged;
            let index = ((segment.sequence - 1) / self.config.segment.as_bytes() - first) as usize;
            let start = index.checked_sub(1).map_or(acknowledged, |before| self.packets[before].end);
            (segment.sequence, segment.payload) = (1 + start, (self.packets[index].end - start) as u32);
        }
        Some((segment, kind))
    }

    fn handle_acknowledgment(&mut self, now: Time, mut segment: Segment) {
        let (first, _) = self.acknowledged;
        let in_segments = |position: u64| {
            let number = self.packets.partition_point(|packet| packet.end < position);
            1 + (first + number as u64) * self.config.segment.as_bytes()
        };
        let (sack, position) = (segment.sack, segment.acknowledgment);
        segment.acknowledgment = in_segments(position);
        segment.sack = Default::default();
        for (start, end) in sack.iter() {
            segment.sack.push(in_segments(start), in_segments(end));
        }
        self.sender.handle_segment(now, &segment);
        while let Some(packet) = self.packets.pop_front_if(|packet| packet.end < position) {
            self.acknowledged = (self.acknowledged.0 + 1, packet.end);
            self.read = self.read.saturating_sub(1);
        }
    }

    fn handle_data(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        self.receiver.handle_packet(now, segment, ecn);
        while let Some(TcpReceiverEvent::Read(size)) = self.receiver.poll_event() {
            self.arrived += size.as_bytes();
        }
    }
}
