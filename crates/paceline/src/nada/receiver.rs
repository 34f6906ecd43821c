//! The receive half of both generations: it observes arrivals and sends a report at a fixed interval.

use super::{ReportTimer, SequencePosition, SequenceTracker};
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
    idle_timeout: TimeDelta,
    timer: ReportTimer,
    pending: Option<NadaReport>,
}

impl<O: Observe> Receiver<O> {
    pub fn new(observer: O, interval: TimeDelta, idle_timeout: TimeDelta) -> Self {
        let (sequences, timer) = (SequenceTracker::default(), ReportTimer::new(interval, idle_timeout));
        Self { observer, sequences, interval, idle_timeout, timer, pending: None }
    }
}

impl<O: Observe> ReceiveHalf for Receiver<O> {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, _: &mut Signals) {
        let in_sequence = matches!(arrival.kind, PacketKind::Media | PacketKind::Fec);
        let position = in_sequence.then(|| self.sequences.handle_arrival(arrival.stream, arrival.sequence));
        self.observer.handle_arrival(now, arrival, position);
        self.timer.handle_arrival(now);
    }

    fn handle_route_change(&mut self, _: RemoteTime, _: &Setup) {
        *self = Self::new(self.observer.restarted(), self.interval, self.idle_timeout);
    }

    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        self.pending = Some(self.observer.report(now, signals));
        self.timer.handle_report(now);
    }

    fn poll_timeout(&self) -> Option<RemoteTime> {
        self.timer.due()
    }

    #[inline]
    fn message_kind(&self) -> crate::MessageKind {
        crate::MessageKind::Nada
    }
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Nada)
    }
}
