// SPDX-License-Identifier: MIT OR Apache-2.0
//! Changes of the network, of the limits and of the streams during a call.

use super::prober::Prober;
use super::report_in::LossCount;
use super::{Sender, StreamConfig};
use crate::blocks::{ProbeEstimator, UnusedRate};
use crate::{Bounds, Event, Setup};
use paceline_units::{Rate, StreamId, Time};

impl<T> Sender<T> {
    /// Sets the limits of the target, which hold at once. Probe clusters above the new maximum are given up.
    pub fn set_bounds(&mut self, now: Time, bounds: &Bounds) {
        let now = self.advance(now);
        self.apply_bounds(now, bounds);
        self.follow(now);
        self.divide();
        self.update_wake();
    }

    pub(super) fn apply_bounds(&mut self, now: Time, bounds: &Bounds) {
        self.outbox.prober.drop_above(bounds.max);
        self.streams.handle_max(bounds.max);
        self.half.handle(now, &Event::Bounds(bounds));
    }

    /// Handles a change of the network route. The controller starts again with this setup, whose limits also bound the target.
    /// Reports on packets that were sent before are ignored, and the round-trip time is unknown. Packets in the pacer, numbers
    /// and streams stay.
    pub fn handle_route_change(&mut self, now: Time, setup: &Setup) {
        let now = self.advance(now);
        if let Some(history) = &mut self.history {
            history.restart();
        }
        (self.outbox.prober, self.rtt, self.loss) = (Prober::default(), None, LossCount::default());
        self.probes = ProbeEstimator::default();
        self.reader.restart();
        self.ecn.restart(self.sent);
        #[cfg(feature = "rtp")]
        self.rtp.handle_route_change(now);
        self.unanswered = Time::MAX;
        self.restart_application_limit(now);
        self.half.handle(now, &Event::RouteChange(setup));
        self.apply_bounds(now, &setup.bounds());
        if !self.outbox.is_available() {
            self.half.handle(now, &Event::Availability(false));
        }
        self.follow(now);
        self.divide();
        self.update_wake();
    }

    /// Sets whether there is a network. While there is none, nothing is sent: packets in the pacer wait, at most for the limit
    /// of the queue, and new frames are dropped, because they would be too old afterwards.
    pub fn set_available(&mut self, now: Time, available: bool) {
        let now = self.advance(now);
        if self.outbox.is_available() == available {
            return;
        }
        self.outbox.set_available(now, available);
        self.unanswered = Time::MAX;
        self.restart_application_limit(now);
        self.half.handle(now, &Event::Availability(available));
        self.follow(now);
        self.update_wake();
    }

    /// Returns whether there is a network.
    pub fn is_available(&self) -> bool {
        self.outbox.is_available()
    }

    /// Adds a stream. Returns its place, from 0, in the order in which streams are added; `None` if there are 256 streams, or
    /// one with this id that has not ended.
    pub fn add_stream(&mut self, stream: &StreamConfig) -> Option<usize> {
        if self.streams.list.len() > usize::from(u8::MAX) || self.streams.find(stream.id).is_some() {
            return None;
        }
        self.outbox.pacer.add_stream(stream.priority);
        let place = self.streams.add(*stream);
        self.divide();
        self.update_wake();
        Some(place)
    }

    /// Ends a stream: it has no share of the target any more. Its packets in the pacer still leave, and feedback on them
    /// counts. Returns whether there was such a stream.
    pub fn remove_stream(&mut self, now: Time, id: StreamId) -> bool {
        let now = self.advance(now);
        let Some(place) = self.streams.find(id) else { return false };
        self.streams.list[place].removed = true;
        self.end_share(now, id);
        true
    }

    /// Sets the lowest and the highest rate of a stream's source, IP and UDP headers included. A maximum of zero pauses the
    /// stream: its frames are dropped, and it has no share of the target. Returns whether there is such a stream.
    pub fn set_stream_limits(&mut self, now: Time, id: StreamId, min: Rate, max: Rate) -> bool {
        let now = self.advance(now);
        let Some(place) = self.streams.find(id) else { return false };
        let stream = &mut self.streams.list[place];
        let was_inactive = stream.is_inactive();
        (stream.config.min, stream.config.max) = (min, max);
        if max.is_zero() && !was_inactive {
            stream.unused = UnusedRate::default();
            self.end_share(now, id);
        } else {
            self.divide();
            self.update_wake();
        }
        true
    }

    /// Sets the weight of a stream, above zero, when streams share the target. Returns whether there is such a stream.
    pub fn set_priority(&mut self, id: StreamId, priority: f64) -> bool {
        let Some(place) = self.streams.find(id) else { return false };
        self.streams.list[place].config.priority = priority;
        self.outbox.pacer.set_weight(place, priority);
        self.divide();
        self.update_wake();
        true
    }

    /// Sets the limits of the stream at a place as [`set_stream_limits`](Self::set_stream_limits) does, but they count only from the
    /// next [`set_reserved`](Self::set_reserved) on.
    #[doc(hidden)]
    #[inline]
    pub fn prepare_limits(&mut self, place: usize, min: Rate, max: Rate) {
        let config = &mut self.streams.list[place].config;
        (config.min, config.max) = (min, max);
    }

    /// Sets the part of the target that retransmissions and forward error correction take. The streams share the rest.
    #[doc(hidden)]
    pub fn set_reserved(&mut self, reserved: Rate) {
        self.reserved = reserved;
        self.divide();
        self.update_wake();
    }

    /// Gives up what depends on a stream that ended or pauses: its limits, and probes if no stream can carry them.
    fn end_share(&mut self, now: Time, id: StreamId) {
        if !self.streams.carry_padding() {
            self.outbox.prober = Prober::default();
        }
        self.half.handle(now, &Event::StreamRemoved(id));
        self.divide();
        self.follow(now);
        self.update_wake();
    }
}
