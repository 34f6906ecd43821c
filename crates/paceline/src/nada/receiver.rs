// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receive half of both generations: it observes arrivals and sends a report at a fixed interval from the first packet
//! on, until no packet has arrived for a while.

use super::{SequencePosition, SequenceTracker};
use crate::{Arrival, Message, NadaReport, PacketKind, ReceiveHalf, Setup, Signals};
use core::fmt::Debug;
use paceline_units::{RemoteTime, TimeDelta};

/// Derives reports from arrivals.
pub(super) trait Observe: Clone + Debug + Send + 'static {
    /// Returns an observer with the same numbers, without packets.
    fn restarted(&self) -> Self;
    /// Handles a packet. `position` is `None` for retransmissions and padding, which are outside the media's sequence.
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, position: Option<SequencePosition>);
    fn report(&mut self, now: RemoteTime, signals: &mut Signals) -> NadaReport;
}

#[derive(Clone, Debug)]
pub(super) struct Receiver<O> {
    observer: O,
    sequences: SequenceTracker,
    interval: TimeDelta,
    /// Reports stop with the first one that is due this long after the last packet.
    idle_timeout: TimeDelta,
    last_packet: RemoteTime,
    /// The time of the next report; `None` while no packets arrive.
    due: Option<RemoteTime>,
    pending: Option<NadaReport>,
}

impl<O: Observe> Receiver<O> {
    pub fn new(observer: O, interval: TimeDelta, idle_timeout: TimeDelta) -> Self {
        let (sequences, last_packet) = (SequenceTracker::default(), RemoteTime::ZERO);
        Self { observer, sequences, interval, idle_timeout, last_packet, due: None, pending: None }
    }
}

impl<O: Observe> ReceiveHalf for Receiver<O> {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, _: &mut Signals) {
        let in_sequence = matches!(arrival.kind, PacketKind::Media | PacketKind::Fec);
        let position = in_sequence.then(|| self.sequences.handle_arrival(arrival.stream, arrival.sequence));
        self.observer.handle_arrival(now, arrival, position);
        self.last_packet = now;
        self.due.get_or_insert(now + self.interval);
    }

    fn handle_route_change(&mut self, _: RemoteTime, _: &Setup) {
        *self = Self::new(self.observer.restarted(), self.interval, self.idle_timeout);
    }

    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        self.pending = Some(self.observer.report(now, signals));
        self.due = (now - self.last_packet < self.idle_timeout).then(|| now + self.interval);
    }

    fn poll_timeout(&self) -> Option<RemoteTime> {
        self.due
    }

    #[inline]
    fn message_kind(&self) -> crate::MessageKind {
        crate::MessageKind::Nada
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Nada)
    }
}
