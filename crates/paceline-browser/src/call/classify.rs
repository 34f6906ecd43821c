// SPDX-License-Identifier: MIT OR Apache-2.0
//! Classifies the packets of calls by port and payload type, and measures the frames that cross the link.
//!
//! SRTP does not encrypt the RTP header. The payload type separates media from retransmissions; the timestamp identifies
//! the frame.

use crate::call::signalling::Description;
use crate::call::stats::SRTP_TAG;
use paceline_live::testbed::classify::ByPort;
use paceline_live::testbed::clock::Monotonic;
use paceline_live::testbed::ip::Transport;
use paceline_live::testbed::link::{Classifier, PacketIdentity, Side};
use paceline_netsim::records::PacketClass;
use paceline_units::{DataSize, Time, TimeDelta};
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// RTP clock rate of video, Hz.
const CLOCK_RATE: i64 = 90_000;

/// Frames of a flow kept until they are rendered: ten seconds.
const MAX_FRAMES: usize = 300;

/// Ports and frames of all calls. The threads of the calls write it; the link reads it.
#[derive(Debug, Default)]
pub struct FlowDirectory {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Flow by side and port of an endpoint.
    ports: BTreeMap<(u8, u16), usize>,
    calls: BTreeMap<usize, Call>,
}

#[derive(Debug)]
struct Call {
    sender: Side,
    retransmission: Option<u8>,
    frames: Frames,
}

/// A frame that the receiver rendered, as measured at the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// Capture time.
    pub captured: Time,
    /// Payload bytes sent.
    pub size: DataSize,
    /// Frames sent since the previous rendered frame that were not rendered.
    pub dropped: u16,
}

impl FlowDirectory {
    /// Adds the call of this flow with the sender's side and description.
    pub fn add_call(&self, flow: usize, sender: Side, description: &Description) {
        let call = Call { sender, retransmission: description.retransmission, frames: Frames::default() };
        self.locked().calls.insert(flow, call);
        self.add_ports(flow, sender, description);
    }

    /// Registers the ports of an endpoint of the flow.
    pub fn add_ports(&self, flow: usize, side: Side, description: &Description) {
        let mut inner = self.locked();
        inner.ports.extend(description.ports.iter().map(|port| ((side as u8, *port), flow)));
    }

    /// Removes and returns the rendered frame with this RTP timestamp; `None` if the link has not seen it.
    pub fn rendered(&self, flow: usize, timestamp: u32) -> Option<Rendered> {
        self.locked().calls.get_mut(&flow)?.frames.rendered(timestamp)
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Classifies packets of calls by their descriptions, and TCP packets as the testbed does.
pub struct CallClassifier<'a> {
    /// Ports and frames of the calls.
    pub directory: &'a FlowDirectory,
    /// The classifier of TCP packets.
    pub others: ByPort,
    /// The clock of the run.
    pub clock: Monotonic,
}

impl Classifier for CallClassifier<'_> {
    fn classify(&mut self, from: Side, packet: &[u8]) -> Option<PacketIdentity> {
        let Transport::Udp { from: source, to, payload } = Transport::parse(packet)? else {
            return self.others.classify(from, packet);
        };
        let mut inner = self.directory.locked();
        let ends = [(from as u8, source), (from.other() as u8, to)];
        let flow = ends.iter().find_map(|end| inner.ports.get(end).copied())?;
        let class = inner.calls.get_mut(&flow)?.class(from, payload, || self.clock.now());
        Some(PacketIdentity { flow, class, header: None })
    }
}

impl Call {
    fn class(&mut self, from: Side, payload: &[u8], now: impl FnOnce() -> Time) -> PacketClass {
        if from != self.sender {
            return PacketClass::ReceiverControl;
        }
        // RFC 7983: first bytes 128 to 191 are RTP or RTCP, lower ones STUN and DTLS.
        let is_rtp = matches!(payload.first(), Some(128..=191)) && !is_rtcp(payload);
        let Some((header, start)) = is_rtp.then(|| RtpHeader::parse(payload, &ExtensionIds::default()).ok()).flatten()
        else {
            return PacketClass::SenderControl;
        };
        match () {
            () if Some(header.payload_type) != self.retransmission => {
                let size = payload.len().saturating_sub(start + SRTP_TAG) as u64;
                self.frames.sent(now(), header.timestamp, DataSize::from_bytes(size));
                PacketClass::Media
            }
            () if header.padding => PacketClass::Padding,
            () => PacketClass::Retransmission,
        }
    }
}

/// The frames of a flow with their send time and size.
///
/// Capture times follow the RTP clock. Its zero is chosen such that the fastest frame was sent at its capture time, so the
/// minimum encoding and pacing delay is not included.
#[derive(Debug, Default)]
struct Frames {
    /// Unwrapped timestamp and bytes sent.
    sent: VecDeque<(i64, DataSize)>,
    /// Time of timestamp zero, ns.
    zero: Option<i64>,
    last: Option<i64>,
}

impl Frames {
    fn unwrapped(&self, timestamp: u32) -> i64 {
        let last = self.last.unwrap_or(timestamp as i64);
        last + timestamp.wrapping_sub(last as u32) as i32 as i64
    }

    fn sent(&mut self, at: Time, timestamp: u32, size: DataSize) {
        let timestamp = self.unwrapped(timestamp);
        self.last = Some(self.last.map_or(timestamp, |last| last.max(timestamp)));
        let newest = self.sent.back().is_none_or(|(known, _)| *known < timestamp);
        if newest {
            let zero = at.as_nanos() - nanos(timestamp);
            self.zero = Some(self.zero.map_or(zero, |known| known.min(zero)));
            self.sent.push_back((timestamp, DataSize::ZERO));
            if self.sent.len() > MAX_FRAMES {
                self.sent.pop_front();
            }
        }
        // An older frame that is not in the queue has been rendered or dropped.
        if let Some((_, sum)) = self.sent.iter_mut().rev().find(|(known, _)| *known == timestamp) {
            *sum += size;
        }
    }

    fn rendered(&mut self, timestamp: u32) -> Option<Rendered> {
        let timestamp = self.unwrapped(timestamp);
        let place = self.sent.iter().position(|(known, _)| *known == timestamp)?;
        let (_, size) = self.sent[place];
        self.sent.drain(..=place);
        let captured = Time::from_nanos(self.zero? + nanos(timestamp));
        Some(Rendered { captured, size, dropped: place.min(u16::MAX as usize) as u16 })
    }
}

fn nanos(timestamp: i64) -> i64 {
    TimeDelta::from_secs(1).as_nanos() / 1000 * timestamp / (CLOCK_RATE / 1000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::PacketBuilder;

    fn directory() -> FlowDirectory {
        let directory = FlowDirectory::default();
        let of = |port, media| Description { ports: vec![port], media, retransmission: Some(media + 1) };
        directory.add_call(3, Side::Near, &of(40_000, 96));
        directory.add_ports(3, Side::Far, &of(50_000, 96));
        directory
    }

    fn datagram(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        PacketBuilder::ipv4([10, 77, 0, 1], [10, 77, 0, 2], 64).udp(from, to).write(&mut bytes, payload).unwrap();
        bytes
    }

    fn rtp(payload_type: u8, padding: bool, timestamp: u32, len: usize) -> Vec<u8> {
        let mut bytes = vec![if padding { 0xA0 } else { 0x80 }, payload_type, 0, 7];
        bytes.extend_from_slice(&timestamp.to_be_bytes());
        bytes.extend_from_slice(&[1, 2, 3, 4]);
        bytes.resize(12 + len + SRTP_TAG, 0);
        bytes
    }

    #[test]
    fn classifies_packets_by_port_and_payload_type() {
        use paceline_netsim::records::PacketClass::*;
        let directory = directory();
        let plan = paceline_scenario::Catalogue.find("mmsys16/table1").unwrap();
        let plan = paceline_scenario::load(&plan, &Default::default(), &paceline::Registry::standard()).unwrap();
        let others = ByPort::new(&plan.plan, &[Side::Near]);
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let mut classifier = CallClassifier { directory: &directory, others, clock };
        let mut class = |side, from, to, payload: &[u8]| {
            classifier.classify(side, &datagram(from, to, payload)).map(|k| (k.flow, k.class))
        };
        let stun = [0, 1, 0, 0];
        for (payload, expected) in [
            (rtp(96, false, 0, 100), Media),
            (rtp(97, false, 0, 100), Retransmission),
            (rtp(97, true, 0, 100), Padding),
            (vec![0x80, 200, 0, 6], SenderControl),
            (stun.to_vec(), SenderControl),
            (vec![22, 254, 253, 0], SenderControl),
        ] {
            assert_eq!(class(Side::Near, 40_000, 50_000, &payload), Some((3, expected)));
            assert_eq!(class(Side::Far, 50_000, 40_000, &payload), Some((3, ReceiverControl)));
        }
        assert_eq!(class(Side::Near, 40_000, 9, &stun), Some((3, SenderControl)), "one known port is enough");
        assert_eq!(class(Side::Near, 50_000, 40_000, &stun), None, "a port belongs to its side");
        assert_eq!(class(Side::Near, 5353, 5353, &stun), None);
    }

    /// Frames 30 ms apart. The second has 5 ms less delay, so it defines the zero of the capture clock.
    #[test]
    fn identifies_frames_by_timestamp() {
        let (mut frames, ms, bytes) = (Frames::default(), Time::from_millis, DataSize::from_bytes);
        let start = u32::MAX - 2000;
        let at = |n: u32| start.wrapping_add(2700 * n);
        frames.sent(ms(110), at(0), bytes(1000));
        frames.sent(ms(111), at(0), bytes(500));
        frames.sent(ms(135), at(1), bytes(700));
        frames.sent(ms(171), at(2), bytes(800));
        frames.sent(ms(200), at(3), bytes(900));
        assert_eq!(frames.rendered(at(0)), Some(Rendered { captured: ms(105), size: bytes(1500), dropped: 0 }));
        assert_eq!(frames.rendered(at(2)), Some(Rendered { captured: ms(165), size: bytes(800), dropped: 1 }));
        assert_eq!(frames.rendered(at(2)), None, "already returned");
        assert_eq!(frames.rendered(at(7)), None);
        assert_eq!(frames.rendered(at(3)).map(|r| r.dropped), Some(0));
    }
}
