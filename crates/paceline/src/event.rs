// SPDX-License-Identifier: MIT OR Apache-2.0
//! The events that a send half handles.

use crate::setters::setters;
use crate::{Message, PacketReport, SentPacket, Setup};
use paceline_units::{DataSize, Fraction, Rate, StreamId, TimeDelta};

/// An event at the sender.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A packet left the pacer.
    Sent(&'a SentPacket),
    /// A per-packet feedback message arrived.
    Feedback(&'a Feedback<'a>),
    /// A sample of the round-trip time: one for each report from which it can be computed, also if the report covers too
    /// few packets for [`Report`](Self::Report).
    RoundTrip(&'a RoundTrip),
    /// The loss of sender or receiver reports on this flow, once they cover at least 20 packets.
    Report(&'a ReceiverReport),
    /// A message of the receive half arrived, in a compound with a report. The report alone counts as proof that packets
    /// arrive.
    Message(&'a Message),
    /// Proof that packets arrive, in a report that covers too few packets to be passed on. The guard around every
    /// registered half needs it; a driver that withholds such reports passes this instead.
    Liveness,
    /// The state of a stream, which may be new or have other limits than before. The flow passes this before each of the
    /// stream's frames.
    Stream(&'a StreamState),
    /// A stream ended. Its queue counts no longer.
    StreamRemoved(StreamId),
    /// A frame was queued in the pacer. It follows [`Stream`](Self::Stream), except for a frame that the flow drops. A
    /// change of the decision takes effect after the next event.
    Frame(&'a QueuedFrame),
    /// Whether the application limits the flow has changed: if so, the flow has no backlog and sends less than the target
    /// allows. A flow begins without this limitation. The check
    /// happens when a frame is due, so a source without frames causes no event.
    ApplicationLimit(bool),
    /// New limits of the target, which apply at once. The half keeps what it has measured.
    Bounds(&'a Bounds),
    /// The network route changed: what was measured says nothing about the new path. Afterwards the half behaves like one
    /// that was built with the same config and this setup. The flow passes on no reports on packets that were sent before.
    RouteChange(&'a Setup),
    /// The network was lost (`false`) or is back (`true`). While it is unavailable, the flow sends nothing.
    Availability(bool),
    /// The flow's share of the rate of several flows, which replaces the calculated rate (RFC 8699, section 5.3.1, step 3d)
    /// within the limits of the target. What was measured stays. The flow passes this only if there is a
    /// [`calculated_rate`](crate::SendHalf::calculated_rate).
    CoupledRate(Rate),
    /// The time returned by [`poll_timeout`](crate::SendHalf::poll_timeout) has come.
    Timeout,
}

/// One per-packet feedback message, joined with the history of sent packets.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Feedback<'a> {
    /// The packets whose state this message changes, in the order of their sequence numbers: newly reported packets,
    /// and packets that arrived after all although they had been reported lost.
    pub packets: &'a [PacketReport],
    /// The bytes that are neither acknowledged nor lost after this message. Packets of a report that was lost do not
    /// count.
    pub outstanding: DataSize,
    /// The bytes sent after the highest acknowledged packet (bytes in flight of RFC 8298), after this message.
    pub after_highest: DataSize,
    /// The round-trip time of the highest packet that arrived, without the time for which the receiver held its report, to
    /// 1/1024 s. `None` if the message has no packet that arrived, or if its format does not contain that time,
    /// as transport-wide feedback.
    pub rtt: Option<RoundTrip>,
}

impl<'a> Feedback<'a> {
    /// Returns a message without a round-trip time.
    #[inline]
    pub const fn new(packets: &'a [PacketReport], outstanding: DataSize, after_highest: DataSize) -> Self {
        Self { packets, outstanding, after_highest, rtt: None }
    }
    setters! { with_rtt(rtt: Option<RoundTrip>) }
}

/// The loss in the RTCP sender or receiver reports on the flow, over at least 20 packets.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReceiverReport {
    /// The fraction of packets lost since the previous one (RFC 3550, section 6.4.1).
    pub fraction_lost: Fraction,
}

impl ReceiverReport {
    /// Returns a report with this loss.
    #[inline]
    pub const fn new(fraction_lost: Fraction) -> Self {
        Self { fraction_lost }
    }
}

/// The round-trip time of the path, without the time for which the receiver held the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundTrip {
    /// The last sample.
    pub last: TimeDelta,
    /// The smoothed time: each sample has a weight of 1/8 (RFC 6298, section 2).
    pub smoothed: TimeDelta,
}

impl RoundTrip {
    /// The weight of a sample (alpha of RFC 6298, section 2, equation 2.3).
    const WEIGHT: f64 = 1.0 / 8.0;

    /// Returns a state with these times.
    #[inline]
    pub const fn new(last: TimeDelta, smoothed: TimeDelta) -> Self {
        Self { last, smoothed }
    }
    /// Returns the state after a sample; `before` is the state before it, if there was one (RFC 6298, equations 2.2 and
    /// 2.3).
    pub fn after(before: Option<Self>, sample: TimeDelta) -> Self {
        let smoothed = before.map_or(sample, |b| b.smoothed + (sample - b.smoothed).scale(Self::WEIGHT));
        Self { last: sample, smoothed }
    }
}

/// Limits of the target. If they contradict each other, the minimum takes precedence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Bounds {
    /// The lowest target.
    pub min: Rate,
    /// The highest target.
    pub max: Rate,
}

impl Bounds {
    /// Returns these limits.
    #[inline]
    pub const fn new(min: Rate, max: Rate) -> Self {
        Self { min, max }
    }
    /// Returns the rate within the limits that is next to `rate`.
    pub fn clamp(&self, rate: Rate) -> Rate {
        rate.min(self.max).max(self.min)
    }
}

/// The state of a stream at the sender, and its limits.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct StreamState {
    /// The stream.
    pub stream: StreamId,
    /// The size of the stream's packets in the pacer's queue.
    pub queued: DataSize,
    /// The rate that was allocated to the stream and that its source did not use, IP and UDP headers included: allocated
    /// minus produced over the last window of at least 500 ms, or zero if the source produced more.
    pub unused: Rate,
    /// The weight when streams share the target; above zero.
    pub priority: f64,
    /// The lowest rate of the source, IP and UDP headers included.
    pub min: Rate,
    /// The highest rate of the source, IP and UDP headers included.
    pub max: Rate,
}

impl StreamState {
    /// Returns the state of a stream of weight 1 that can use any rate.
    #[inline]
    pub const fn new(stream: StreamId, queued: DataSize) -> Self {
        Self { stream, queued, unused: Rate::ZERO, priority: 1.0, min: Rate::ZERO, max: Rate::from_bps(u64::MAX) }
    }
    setters! {
        with_unused(unused: Rate),
        with_priority(priority: f64),
        with_min(min: Rate),
        with_max(max: Rate),
    }
}

/// A frame whose packets are in the pacer's queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueuedFrame {
    /// The stream.
    pub stream: StreamId,
    /// The size of its packets on the network, FEC included.
    pub size: DataSize,
    /// The number of its packets, FEC included.
    pub packets: u32,
    /// Whether it can be decoded without earlier frames.
    pub key: bool,
}

impl QueuedFrame {
    /// Returns a frame that needs earlier ones.
    #[inline]
    pub const fn new(stream: StreamId, size: DataSize, packets: u32) -> Self {
        Self { stream, size, packets, key: false }
    }
    setters! { with_key(key: bool) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn round_trip_time_is_smoothed_by_an_eighth() {
        // By hand: 100; 100 + (180 - 100) / 8 = 110; 110 + (30 - 110) / 8 = 100 ms.
        let mut rtt = None;
        for (sample, smoothed) in [(100, 100), (180, 110), (30, 100)] {
            let after = RoundTrip::after(rtt, TimeDelta::from_millis(sample));
            let expected =
                RoundTrip { last: TimeDelta::from_millis(sample), smoothed: TimeDelta::from_millis(smoothed) };
            assert_eq!(after, expected);
            rtt = Some(after);
        }
    }
}
