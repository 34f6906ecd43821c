// SPDX-License-Identifier: MIT OR Apache-2.0
//! The first stage of every receiver: packets become groups, and their sizes the incoming rate `R`.

use super::STREAM_TIMEOUT;
use crate::blocks::{BurstGroups, Departure, FrameGroups, GroupDelta, IncomingRate, rounded};
use crate::{Arrival, MediaKind, PacketKind};
use core::fmt::Debug;
use paceline_units::{Rate, RemoteTime, StreamId, TimeDelta};

/// A way to form groups of packets.
pub(super) trait Grouping: Clone + Debug + Send + 'static {
    /// Returns whether the packet is measured at all.
    fn accepts(&self, arrival: &Arrival) -> bool;
    /// Handles an accepted packet. Returns the step between two groups when the packet completes the second one.
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival) -> Option<GroupDelta>;
    fn restart(&mut self);
}

impl Grouping for BurstGroups {
    /// libwebrtc ignores packets without abs-send-time, also for `R`.
    fn accepts(&self, arrival: &Arrival) -> bool {
        arrival.sent.is_some()
    }
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival) -> Option<GroupDelta> {
        BurstGroups::handle_arrival(self, now, arrival.sent?, arrival.size)
    }
    fn restart(&mut self) {
        BurstGroups::restart(self);
    }
}

/// The frames of one video stream: the first one that arrives. The packets of every stream count towards `R`.
#[derive(Clone, Debug)]
pub(super) struct VideoFrames {
    groups: FrameGroups,
    /// Arrival times are rounded to this; zero: not at all.
    clock: TimeDelta,
    /// Whether FEC packets belong to their frame: they have its RTP timestamp and SSRC.
    with_fec: bool,
    stream: Option<StreamId>,
}

impl VideoFrames {
    pub fn new(departure: Departure, clock: TimeDelta, with_fec: bool) -> Self {
        Self { groups: FrameGroups::new(departure), clock, with_fec, stream: None }
    }
}

impl Grouping for VideoFrames {
    fn accepts(&self, _: &Arrival) -> bool {
        true
    }
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival) -> Option<GroupDelta> {
        let in_frame = arrival.kind == PacketKind::Media || (self.with_fec && arrival.kind == PacketKind::Fec);
        if !in_frame
            || arrival.media != MediaKind::Video
            || *self.stream.get_or_insert(arrival.stream) != arrival.stream
        {
            return None;
        }
        self.groups.handle_arrival(rounded(now, self.clock), arrival)
    }
    fn restart(&mut self) {
        self.groups.restart();
    }
}

/// Groups and incoming rate of one receiver.
#[derive(Clone, Debug)]
pub(super) struct Arrivals<G> {
    groups: G,
    incoming: IncomingRate,
    last: Option<RemoteTime>,
}

/// The result of one packet.
pub(super) struct ArrivalStep {
    /// The packet is the first one after a pause of more than [`STREAM_TIMEOUT`].
    pub after_pause: bool,
    /// The step between two groups, if the packet completes the second one.
    pub delta: Option<GroupDelta>,
}

impl<G: Grouping> Arrivals<G> {
    pub fn new(groups: G, incoming: IncomingRate) -> Self {
        Self { groups, incoming, last: None }
    }

    /// Handles a packet; `None` if it is not measured.
    #[inline(always)]
    pub fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival) -> Option<ArrivalStep> {
        if !self.groups.accepts(arrival) {
            return None;
        }
        self.incoming.handle_arrival(now, arrival.size);
        let after_pause = self.last.replace(now).is_some_and(|last| now - last > STREAM_TIMEOUT);
        if after_pause {
            self.groups.restart();
        }
        Some(ArrivalStep { after_pause, delta: self.groups.handle_arrival(now, arrival) })
    }

    /// Returns `R`, once it is known.
    #[inline]
    pub fn incoming(&mut self, now: RemoteTime) -> Option<Rate> {
        self.incoming.rate(now)
    }
}
