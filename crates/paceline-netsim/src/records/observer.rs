// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver of a run's events.

use crate::records::event::EventRecord;
use crate::records::packet::PacketRecord;
use crate::records::tap::TappedPacket;
use paceline_units::{Ecn, Time, TimeDelta};

/// Receives the events of a run. A world calls it in order of time, up to the skew between a hop's decision and the
/// arrival at its far end.
pub trait EventObserver {
    /// Receives an event. The simulator passes the three most frequent ones to methods of their own, which call this one by
    /// default; other callers pass all events here. An observer that implements those methods handles both.
    fn on_event(&mut self, event: &EventRecord);
    /// Receives an [`EventRecord::Sent`].
    #[inline]
    fn on_sent(&mut self, at: Time, packet: &PacketRecord) {
        self.on_event(&EventRecord::Sent { at, packet: *packet });
    }
    /// Receives an [`EventRecord::Crossed`].
    #[inline]
    fn on_crossed(&mut self, at: Time, hop: u16, packet: &PacketRecord, waited: TimeDelta, left: Time, marked: bool) {
        self.on_event(&EventRecord::Crossed { at, hop, packet: *packet, waited, left, marked });
    }
    /// Receives an [`EventRecord::Arrived`].
    #[inline]
    fn on_arrived(&mut self, at: Time, packet: &PacketRecord, delay: TimeDelta, ecn: Ecn) {
        self.on_event(&EventRecord::Arrived { at, packet: *packet, delay, ecn });
    }
    /// Receives an event without delay: in real time only, and possibly before earlier events of other threads.
    /// [`on_event`](Self::on_event) receives the same event in order, about one second later.
    fn on_unordered_event(&mut self, event: &EventRecord) {
        let _ = event;
    }
    /// Returns whether the observer needs [`EventRecord::Signal`]s. Worlds call this once, before the run.
    fn wants_signals(&self) -> bool {
        false
    }
    /// Returns whether the observer needs [`on_tap`](Self::on_tap). Worlds call this once, before the run.
    fn wants_taps(&self) -> bool {
        false
    }
    /// Receives a packet at a tap, in order of time, before the event that belongs to it.
    fn on_tap(&mut self, packet: &TappedPacket<'_>) {
        let _ = packet;
    }
    /// Returns whether the observer needs [`on_attachment`](Self::on_attachment). Worlds call this once, before the
    /// run.
    fn wants_attachments(&self) -> bool {
        false
    }
    /// Receives a file that the run produced besides events, such as a program's log, after the last event.
    fn on_attachment(&mut self, name: &str, bytes: &[u8]) {
        let _ = (name, bytes);
    }
}

/// Observes nothing.
impl EventObserver for () {
    fn on_event(&mut self, _: &EventRecord) {}
}

/// Implements every method by a call for each contained observer; `$all` lists them exclusively and `$shared` shared.
macro_rules! forward_to_all {
    ($self:ident, $all:expr, $shared:expr) => {
        #[inline]
        fn on_event(&mut $self, event: &EventRecord) {
            $all.into_iter().for_each(|observer| observer.on_event(event));
        }
        #[inline]
        fn on_sent(&mut $self, at: Time, packet: &PacketRecord) {
            $all.into_iter().for_each(|observer| observer.on_sent(at, packet));
        }
        #[inline]
        fn on_crossed(
            &mut $self,
            at: Time,
            hop: u16,
            packet: &PacketRecord,
            waited: TimeDelta,
            left: Time,
            marked: bool,
        ) {
            $all.into_iter().for_each(|observer| observer.on_crossed(at, hop, packet, waited, left, marked));
        }
        #[inline]
        fn on_arrived(&mut $self, at: Time, packet: &PacketRecord, delay: TimeDelta, ecn: Ecn) {
            $all.into_iter().for_each(|observer| observer.on_arrived(at, packet, delay, ecn));
        }
        fn on_unordered_event(&mut $self, event: &EventRecord) {
            $all.into_iter().for_each(|observer| observer.on_unordered_event(event));
        }
        fn wants_signals(&$self) -> bool {
            $shared.into_iter().any(|observer| observer.wants_signals())
        }
        fn wants_taps(&$self) -> bool {
            $shared.into_iter().any(|observer| observer.wants_taps())
        }
        fn on_tap(&mut $self, packet: &TappedPacket<'_>) {
            $all.into_iter().for_each(|observer| observer.on_tap(packet));
        }
        fn wants_attachments(&$self) -> bool {
            $shared.into_iter().any(|observer| observer.wants_attachments())
        }
        fn on_attachment(&mut $self, name: &str, bytes: &[u8]) {
            $all.into_iter().for_each(|observer| observer.on_attachment(name, bytes));
        }
    };
}

impl<O: EventObserver + ?Sized> EventObserver for &mut O {
    forward_to_all!(self, [&mut **self], [&**self]);
}

/// An observer that may be absent.
impl<O: EventObserver> EventObserver for Option<O> {
    forward_to_all!(self, self.as_mut(), self.as_ref());
}

/// Two observers of the same run.
impl<A: EventObserver, B: EventObserver> EventObserver for (A, B) {
    forward_to_all!(
        self,
        [&mut self.0 as &mut dyn EventObserver, &mut self.1],
        [&self.0 as &dyn EventObserver, &self.1]
    );
}
