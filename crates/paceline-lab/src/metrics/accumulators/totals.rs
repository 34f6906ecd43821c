// SPDX-License-Identifier: MIT OR Apache-2.0
//! Sums of a span of time: of each hop, of each flow and of each of its streams. Sums of adjacent spans can be merged.

use super::{Delays, Needs};
use paceline_netsim::records::{PacketClass, PacketRecord};
use paceline_scenario::Scenario;
use paceline_units::{DataSize, Ecn, Time, TimeDelta};

/// A frame that is rendered later than this after its capture is late: the longest one-way delay that ITU-T G.114 accepts
/// in network planning.
pub(crate) const LATE: TimeDelta = TimeDelta::from_millis(400);

#[derive(Clone)]
pub(crate) struct Totals {
    pub hops: Vec<HopTotals>,
    pub flows: Vec<FlowTotals>,
    /// One-way delay over propagation of the flows that pooled distributions cover.
    pub one_way: Delays,
}

/// Sums of one hop, in bytes unless the name says otherwise.
#[derive(Clone, Default)]
pub(crate) struct HopTotals {
    pub crossed: u64,
    /// Bytes that were served and then lost on the wire.
    pub lost_on_wire: u64,
    pub dropped: u64,
    pub dropped_packets: u64,
    pub marked_packets: u64,
    pub waited: Delays,
}

/// Sums of one flow, in bytes unless the name says otherwise.
#[derive(Clone, Default)]
pub(crate) struct FlowTotals {
    pub sent: u64,
    pub received: u64,
    pub ecn_packets: u64,
    pub marked_packets: u64,
    /// Bytes of media packets received.
    pub media: u64,
    pub fec: RepairTotals,
    pub rtx: RepairTotals,
    pub lost: u64,
    /// Bytes that its receiver sent: RTCP, or acknowledgements.
    pub feedback: u64,
    pub owd: Delays,
    pub rtt: Delays,
    pub rtt_queue: Delays,
    /// Bytes that TCP's application read.
    pub read: u64,
    pub streams: Vec<StreamTotals>,
}

/// Bytes of one kind of repair.
#[derive(Clone, Copy, Default)]
pub(crate) struct RepairTotals {
    pub sent: u64,
    pub received: u64,
}

#[derive(Clone, Default)]
pub(crate) struct StreamTotals {
    pub bytes: u64,
    pub frames: u64,
    pub dropped: u64,
    /// Rendered frames that were later than [`LATE`].
    pub late: u64,
    /// Rendered frames that were too late for the playout buffer.
    pub discarded: u64,
    /// Capture times of the first and the last rendered frame.
    pub captured: Option<(Time, Time)>,
    /// Of rendered frames, and of frames between them that were not rendered.
    pub delay: Delays,
}

impl Totals {
    /// Creates empty sums. Distributions that are not needed stay empty.
    pub fn new(scenario: &Scenario, needs: Needs) -> Self {
        let gathered = |needed| if needed { Delays::new() } else { Delays::disabled() };
        let (delays, round_trips) = (gathered(needs.packet_delays), gathered(needs.round_trips));
        let hop = HopTotals { waited: delays.clone(), ..HopTotals::default() };
        let stream = StreamTotals { delay: delays.clone(), ..StreamTotals::default() };
        let flow = |streams: usize| FlowTotals {
            owd: delays.clone(),
            rtt: round_trips.clone(),
            rtt_queue: round_trips.clone(),
            streams: vec![stream.clone(); streams],
            ..FlowTotals::default()
        };
        let plan = &scenario.plan;
        Self {
            hops: vec![hop; plan.hops.len()],
            flows: plan.flows.iter().map(|f| flow(f.media().map_or(0, |m| m.streams.len()))).collect(),
            one_way: delays.clone(),
        }
    }

    /// Adds the sums of another span.
    pub fn merge(&mut self, other: &Self) {
        self.hops.iter_mut().zip(&other.hops).for_each(|(sums, more)| sums.merge(more));
        self.flows.iter_mut().zip(&other.flows).for_each(|(sums, more)| sums.merge(more));
        self.one_way.merge(&other.one_way);
    }
}

impl HopTotals {
    fn merge(&mut self, other: &Self) {
        let Self { crossed, lost_on_wire, dropped, dropped_packets, marked_packets, waited } = other;
        self.crossed += crossed;
        self.lost_on_wire += lost_on_wire;
        self.dropped += dropped;
        self.dropped_packets += dropped_packets;
        self.marked_packets += marked_packets;
        self.waited.merge(waited);
    }
}

impl RepairTotals {
    fn merge(&mut self, other: &Self) {
        self.sent += other.sent;
        self.received += other.received;
    }
}

impl StreamTotals {
    fn merge(&mut self, other: &Self) {
        let Self { bytes, frames, dropped, late, discarded, captured, delay } = other;
        self.bytes += bytes;
        self.frames += frames;
        self.dropped += dropped;
        self.late += late;
        self.discarded += discarded;
        if let Some((first, last)) = *captured {
            self.add_captured(first);
            self.add_captured(last);
        }
        self.delay.merge(delay);
    }

    /// Adds a frame of `size` that was captured at `captured` and rendered at `at`, after `dropped` frames that were never
    /// rendered. Those were captured at equal intervals since `previous`, the capture of the last rendered frame, and count
    /// with the time until this frame replaced them.
    pub fn add_frame(&mut self, at: Time, captured: Time, size: DataSize, dropped: u16, previous: Time) {
        self.bytes += size.as_bytes();
        self.frames += 1;
        self.dropped += u64::from(dropped);
        let interval = (captured - previous) / (i64::from(dropped) + 1);
        (0..=i64::from(dropped)).rev().for_each(|earlier| self.delay.add(at - captured + interval * earlier));
        self.late += u64::from(at - captured > LATE);
        self.add_captured(captured);
    }

    fn add_captured(&mut self, at: Time) {
        let (first, last) = self.captured.unwrap_or((at, at));
        self.captured = Some((first.min(at), last.max(at)));
    }
}

impl FlowTotals {
    #[inline]
    pub fn add_sent(&mut self, packet: &PacketRecord) {
        let bytes = packet.size.as_bytes();
        self.sent += bytes;
        match packet.class {
            PacketClass::Fec => self.fec.sent += bytes,
            PacketClass::Retransmission => self.rtx.sent += bytes,
            _ => {}
        }
    }

    #[inline]
    pub fn add_arrived(&mut self, packet: &PacketRecord, delay: TimeDelta, ecn: Ecn) {
        let bytes = packet.size.as_bytes();
        self.received += bytes;
        if ecn.is_capable() {
            self.ecn_packets += 1;
            self.marked_packets += u64::from(ecn == Ecn::Ce);
        }
        match packet.class {
            PacketClass::Media => self.media += bytes,
            PacketClass::Fec => self.fec.received += bytes,
            PacketClass::Retransmission => self.rtx.received += bytes,
            _ => {}
        }
        self.owd.add(delay);
    }

    fn merge(&mut self, other: &Self) {
        let Self {
            sent,
            received,
            ecn_packets,
            marked_packets,
            media,
            fec,
            rtx,
            lost,
            feedback,
            owd,
            rtt,
            rtt_queue,
            read,
            streams,
        } = other;
        self.sent += sent;
        self.received += received;
        self.ecn_packets += ecn_packets;
        self.marked_packets += marked_packets;
        self.media += media;
        self.fec.merge(fec);
        self.rtx.merge(rtx);
        self.lost += lost;
        self.feedback += feedback;
        self.owd.merge(owd);
        self.rtt.merge(rtt);
        self.rtt_queue.merge(rtt_queue);
        self.read += read;
        self.streams.iter_mut().zip(streams).for_each(|(sums, more)| sums.merge(more));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lost_frames_count_until_the_next_frame_is_rendered() {
        let at = Time::from_millis;
        let mut stream = StreamTotals { delay: Delays::new(), ..StreamTotals::default() };
        stream.add_frame(at(50), at(0), DataSize::from_bytes(100), 0, at(0));
        // Three frames between 0 and 160 ms are lost: captured at 40, 80 and 120 ms.
        stream.add_frame(at(500), at(160), DataSize::from_bytes(100), 3, at(0));
        // 401 ms late.
        stream.add_frame(at(601), at(200), DataSize::from_bytes(100), 0, at(160));
        let delay = stream.delay.distribution().unwrap();
        assert_eq!((delay.samples, delay.mean), (6, (50.0 + 460.0 + 420.0 + 380.0 + 340.0 + 401.0) / 6.0));
        assert_eq!((stream.frames, stream.dropped, stream.late, stream.bytes), (3, 3, 1, 300));
        assert_eq!(stream.captured, Some((at(0), at(200))));
    }
}
