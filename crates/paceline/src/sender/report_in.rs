// SPDX-License-Identifier: MIT OR Apache-2.0
//! Reports of the receiver: on packets, on the loss and the round-trip time, and messages of the receive half.
//!
//! Each is validated before it changes any state: packets must have been sent and be unreported, and a [`Reception`] and the
//! messages behind it must be newer than what is known.

use super::{Sender, SenderEvent};
use crate::{Event, Feedback, Flight, Message, ReceiverReport, Reception, Report, RoundTrip};
use paceline_units::{Ecn, Fraction, RemoteTime, Time, TimeDelta};

/// The send half gets a fraction lost once reports have covered this many packets (libwebrtc of 2013). A smaller sample
/// is too coarse: one lost packet of three would be a third.
const REPORT_PACKETS_MIN: u64 = 20;
/// A timeout of the half that is this late was forgotten by the program: it is handled with the next report.
const FORGOTTEN: TimeDelta = TimeDelta::from_millis(100);

/// What reports said since the last fraction lost.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LossCount {
    expected: u64,
    /// Packets that are late can make it negative.
    lost: i64,
    /// What the last [`Report`] said: its number, one more than the highest packet, the packets that arrived.
    last: Option<(u64, u64, u64)>,
    /// The fraction lost that was last passed on.
    pub fraction: Option<Fraction>,
}

impl LossCount {
    /// Adds a report on `expected` packets. Returns the fraction lost once they are enough. Packets that arrived late were
    /// reported as lost before: they are subtracted from the next losses.
    pub fn add(&mut self, expected: u64, lost: i64) -> Option<Fraction> {
        self.expected = self.expected.saturating_add(expected);
        self.lost = self.lost.saturating_add(lost);
        if self.expected < REPORT_PACKETS_MIN {
            return None;
        }
        let (expected, lost) = (self.expected, self.lost);
        (self.expected, self.lost) = (0, lost.clamp(-(expected.min(i64::MAX as u64) as i64), 0));
        Some(Fraction::from_q8((u128::from(lost.max(0) as u64) * 256 / u128::from(expected)).min(255) as u8))
    }
}

impl<T> Sender<T> {
    /// Handles a report of a [`Receiver`](crate::Receiver), or one that a program fills for a receiver of its own. Packets below its last
    /// numbers without a gap that no report has named are no longer in flight.
    pub fn handle_report(&mut self, now: Time, report: &Report) {
        let now = self.advance(now);
        self.run_half_timeout(now, FORGOTTEN);
        let mut is_proof = false;
        if let (Some(history), Some(begin)) = (&mut self.history, report.begin()) {
            // Not if the report names packets that were never sent.
            if report.packets.last().is_some_and(|packet| packet.number < self.sent) {
                history.abandon_below(begin);
            }
            let packets = report.packets.iter().map(|packet| (packet.number, packet.arrival, packet.ecn));
            self.reader.handle_reports(history, packets);
            self.reader.measure_rtt(now, report.written);
            is_proof = self.deliver_reports(now);
        }
        // One part of a report in several has these.
        let has_news = report.reception.is_some() || !report.messages.is_empty();
        if has_news && self.loss.last.is_none_or(|(number, ..)| report.number > number) {
            let (_, end, arrived) = self.loss.last.unwrap_or_default();
            self.loss.last = Some((report.number, end, arrived));
            is_proof |= report.reception.is_some_and(|reception| self.handle_reception(now, &reception));
            for message in report.messages.iter().filter(|_| is_proof) {
                self.pass_message(now, message);
            }
        }
        self.follow(now);
        self.update_wake();
    }

    /// Returns whether the statistics cover new packets.
    fn handle_reception(&mut self, now: Time, reception: &Reception) -> bool {
        let Some((number, end, arrived)) = self.loss.last else { return false };
        let &Reception { end: new_end, arrived: new_arrived, echo, held } = reception;
        if new_end <= end || new_end > self.sent || new_arrived < arrived || new_arrived > new_end {
            return false;
        }
        self.loss.last = Some((number, new_end, new_arrived));
        let expected = new_end - end;
        let lost = expected as i64 - (new_arrived - arrived) as i64;
        if echo >= Time::ZERO && echo <= now {
            self.pass_rtt(now, (now - echo - held.max(TimeDelta::ZERO)).max(TimeDelta::ZERO));
        }
        self.pass_loss(now, expected, lost);
        true
    }

    /// Handles reports on packets in a format of the program: number, arrival on the receiver's clock or `None` for a loss, ECN
    /// field if it is known. Packets that were never sent, or reported as arrived before, are ignored; one that was reported lost may arrive
    /// after all. Pass a whole report, of all streams, in one call: packets below its lowest number that no report has named are no longer
    /// in flight, because the report on them was lost or comes late, and the controller learns nothing of them until it comes. Name each
    /// packet in two reports if many reports are lost. Pass round-trip times and losses by [`handle_rtt`](Self::handle_rtt) and [`handle_loss`](Self::handle_loss);
    /// [`handle_report`](Self::handle_report) does all three.
    pub fn handle_reports(
        &mut self,
        now: Time,
        packets: impl IntoIterator<Item = (u64, Option<RemoteTime>, Option<Ecn>)>,
    ) {
        let now = self.advance(now);
        self.run_half_timeout(now, FORGOTTEN);
        if let Some(history) = &mut self.history {
            let (mut lowest, mut highest) = (u64::MAX, 0);
            let packets = packets.into_iter().inspect(|(number, ..)| {
                (lowest, highest) = (lowest.min(*number), highest.max(*number));
            });
            self.reader.handle_reports(history, packets);
            // Not if the report names packets that were never sent.
            if lowest <= highest && highest < self.sent {
                history.abandon_below(lowest);
            }
            self.deliver_reports(now);
        }
        self.follow(now);
        self.update_wake();
    }

    /// Handles the report that a packet arrived, without the time: it is not in flight any more, and the controller gets no report on
    /// it.
    pub fn handle_arrival_without_time(&mut self, number: u64) {
        if let Some(history) = &mut self.history {
            history.abandon(number);
        }
        self.update_wake();
    }

    /// Handles a round-trip time that the program measured.
    pub fn handle_rtt(&mut self, now: Time, sample: TimeDelta) {
        let now = self.advance(now);
        self.pass_rtt(now, sample.max(TimeDelta::ZERO));
        self.follow(now);
        self.update_wake();
    }

    /// Handles the loss that the program read from receiver reports, over at least 20 packets.
    pub fn handle_loss(&mut self, now: Time, fraction_lost: Fraction) {
        let now = self.advance(now);
        self.run_half_timeout(now, FORGOTTEN);
        self.pass_liveness(now);
        self.pass_fraction_lost(now, fraction_lost);
        self.follow(now);
        self.update_wake();
    }

    /// Handles a message of the receive half, which the program has checked to be newer than the last one.
    pub fn handle_message(&mut self, now: Time, message: &Message) {
        let now = self.advance(now);
        self.pass_message(now, message);
        self.follow(now);
        self.update_wake();
    }

    /// Passes the packet reports of a feedback message to the half. Returns whether there were any.
    pub(super) fn deliver_reports(&mut self, now: Time) -> bool {
        let Flight { outstanding, after_highest } = self.flight();
        if self.reader.reports().is_empty() {
            return false;
        }
        self.mark_answered();
        let (packets, rtt) = (self.reader.reports(), self.reader.rtt());
        let mut arrived = 0;
        for packet in packets {
            arrived += u64::from(packet.arrival.is_some());
            self.ecn.handle_report(packet);
        }
        self.reported.0 += arrived;
        self.reported.1 += packets.len() as u64 - arrived;
        let results = self.probes.handle_reports(packets);
        let feedback = Feedback { packets, outstanding, after_highest, rtt };
        self.half.handle(now, &Event::Feedback(&feedback));
        for (id, rate) in results {
            self.emit(SenderEvent::ProbeResult { id, rate });
        }
        true
    }

    pub(super) fn pass_message(&mut self, now: Time, message: &Message) {
        self.half.handle(now, &Event::Message(message));
    }

    pub(super) fn pass_rtt(&mut self, now: Time, sample: TimeDelta) {
        let rtt = RoundTrip::after(self.rtt, sample);
        self.rtt = Some(rtt);
        self.emit(SenderEvent::RoundTrip(sample));
        self.half.handle(now, &Event::RoundTrip(&rtt));
    }

    /// Passes on the loss of a report that covers `expected` packets, once reports cover enough of them.
    pub(super) fn pass_loss(&mut self, now: Time, expected: u64, lost: i64) {
        if expected > 0 {
            self.pass_liveness(now);
        }
        if let Some(fraction_lost) = self.loss.add(expected, lost) {
            self.pass_fraction_lost(now, fraction_lost);
        }
    }

    fn pass_fraction_lost(&mut self, now: Time, fraction_lost: Fraction) {
        self.loss.fraction = Some(fraction_lost);
        self.emit(SenderEvent::FractionLost(fraction_lost));
        self.half.handle(now, &Event::Report(&ReceiverReport { fraction_lost }));
    }

    /// Returns the fraction lost that was passed on since the last call, for loss protection.
    #[doc(hidden)]
    pub fn take_fraction_lost(&mut self) -> Option<Fraction> {
        self.loss.fraction.take()
    }

    /// Handles proof that packets arrive, such as a receiver report that covers too few packets for
    /// [`handle_loss`](Self::handle_loss).
    pub fn handle_liveness(&mut self, now: Time) {
        let now = self.advance(now);
        self.pass_liveness(now);
        self.follow(now);
        self.update_wake();
    }

    pub(super) fn pass_liveness(&mut self, now: Time) {
        self.mark_answered();
        self.half.handle(now, &Event::Liveness);
    }

    fn mark_answered(&mut self) {
        self.unanswered = Time::MAX;
        if core::mem::take(&mut self.feedback_lost) {
            self.emit(SenderEvent::FeedbackResumed);
        }
    }
}
