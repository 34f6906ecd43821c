//! Whose packet it is, by the ports that descriptions name, and what the link saw of each frame.
//!
//! SRTP leaves RTP's header readable: the payload type tells media from retransmissions, the timestamp frames from each other.

use crate::signalling::Description;
use crate::stats::SRTP_TAG;
use paceline_lab::rows::PacketClass;
use paceline_live::classify::ByPort;
use paceline_live::clock::Monotonic;
use paceline_live::ipv4::Transport;
use paceline_live::link::{Classify, Known, Side};
use paceline_units::{DataSize, Time, TimeDelta};
use paceline_wire::{ExtensionIds, RtpHeader, is_rtcp};
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// RTP's clock of video, Hz.
const CLOCK_RATE: i64 = 90_000;

/// Frames of a flow that are remembered until they are rendered: ten seconds.
const FRAMES: usize = 300;

/// What is known of all calls: their threads write it, the link reads it.
#[derive(Debug, Default)]
pub struct Directory {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Flow, by the side of an end and its port there.
    ports: BTreeMap<(u8, u16), usize>,
    calls: BTreeMap<usize, Call>,
}

#[derive(Debug)]
struct Call {
    sender: Side,
    retransmission: Option<u8>,
    frames: Frames,
}

/// A frame that came to its receiver's screen, as the link knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rendered {
    /// When it was captured.
    pub captured: Time,
    /// What was sent of it, without headers.
    pub size: DataSize,
    /// Frames that were sent since the one before and not rendered.
    pub dropped: u16,
}

impl Directory {
    /// A call of this flow, which begins at the side `sender`, by what that end says of itself.
    pub fn call(&self, flow: usize, sender: Side, description: &Description) {
        let call = Call { sender, retransmission: description.retransmission, frames: Frames::default() };
        self.locked().calls.insert(flow, call);
        self.reachable(flow, sender, description);
    }

    /// An end of the flow is at these ports.
    pub fn reachable(&self, flow: usize, side: Side, description: &Description) {
        let mut inner = self.locked();
        inner.ports.extend(description.ports.iter().map(|port| ((side as u8, *port), flow)));
    }

    /// A frame of this RTP timestamp was rendered; none: the link saw no such frame, or lately.
    pub fn rendered(&self, flow: usize, timestamp: u32) -> Option<Rendered> {
        self.locked().calls.get_mut(&flow)?.frames.rendered(timestamp)
    }

    fn locked(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells packets of calls apart, and those of TCP as the test track does.
pub struct ByDescription<'a> {
    /// What calls there are.
    pub directory: &'a Directory,
    /// Who knows TCP's.
    pub others: ByPort,
    /// When packets come.
    pub clock: Monotonic,
}

impl Classify for ByDescription<'_> {
    fn classify(&mut self, from: Side, packet: &[u8]) -> Option<Known> {
        let Transport::Udp { from: source, to, payload } = Transport::parse(packet)? else {
            return self.others.classify(from, packet);
        };
        let mut inner = self.directory.locked();
        let ends = [(from as u8, source), (from.other() as u8, to)];
        let flow = ends.iter().find_map(|end| inner.ports.get(end).copied())?;
        let class = inner.calls.get_mut(&flow)?.class(from, payload, || self.clock.now());
        Some(Known { flow, class })
    }
}

impl Call {
    fn class(&mut self, from: Side, payload: &[u8], now: impl FnOnce() -> Time) -> PacketClass {
        if from != self.sender {
            return PacketClass::ReceiverControl;
        }
        // RFC 7983: 128 to 191 is RTP or RTCP, below are STUN and DTLS.
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

/// The frames of a flow: when each was sent and how large it is.
///
/// Captured it was by RTP's clock, whose zero is where the frame that came onto the link soonest was sent when it was captured:
/// what encoding and pacing take of the fastest frame is left out.
#[derive(Debug, Default)]
struct Frames {
    /// Timestamp without wrap, and size of what was sent of it.
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
            if self.sent.len() > FRAMES {
                self.sent.pop_front();
            }
        }
        // An older one that is not here has been rendered or given up.
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

    fn directory() -> Directory {
        let directory = Directory::default();
        let of = |port, media| Description { ports: vec![port], media, retransmission: Some(media + 1) };
        directory.call(3, Side::Near, &of(40_000, 96));
        directory.reachable(3, Side::Far, &of(50_000, 96));
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
    fn packets_are_told_apart() {
        use paceline_lab::rows::PacketClass::*;
        let directory = directory();
        let plan = paceline_lab::scenario::Catalogue.find("mmsys16/table1").unwrap();
        let plan = paceline_lab::scenario::load(&plan, &Default::default(), &paceline::Registry::standard()).unwrap();
        let others = ByPort::new(&plan, &[Side::Near]);
        let clock = Monotonic::starting_in(TimeDelta::ZERO);
        let mut who = ByDescription { directory: &directory, others, clock };
        let mut class = |side, from, to, payload: &[u8]| {
            who.classify(side, &datagram(from, to, payload)).map(|k| (k.flow, k.class))
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
        assert_eq!(class(Side::Near, 40_000, 9, &stun), Some((3, SenderControl)), "one known end is enough");
        assert_eq!(class(Side::Near, 50_000, 40_000, &stun), None, "ports are those of their side");
        assert_eq!(class(Side::Near, 5353, 5353, &stun), None);
    }

    /// Frames 30 ms apart; the second is 5 ms faster onto the link, so it says when all were captured.
    #[test]
    fn frames_are_told_by_their_timestamp() {
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
        assert_eq!(frames.rendered(at(2)), None, "once");
        assert_eq!(frames.rendered(at(7)), None);
        assert_eq!(frames.rendered(at(3)).map(|r| r.dropped), Some(0));
    }
}
