//! Per-packet feedback: passes transport-wide feedback and RFC 8888 reports to the send half.

use super::MediaSender;
use super::stream::SenderStream;
use paceline::{Event, Feedback, History};
use paceline_units::Time;
use paceline_wire::{CongestionFeedback, TransportFeedback};

impl MediaSender {
    pub(super) fn handle_transport_feedback(&mut self, now: Time, feedback: &TransportFeedback<'_>) {
        let ours = |s: &SenderStream| [s.config.info.ssrc, s.config.info.rtx_ssrc].contains(&feedback.media_ssrc);
        let history = self.history.as_mut().filter(|_| !self.by_ssrc && self.streams.iter().any(ours));
        let Some(history) = history else {
            self.ignored += 1;
            return;
        };
        self.ignored += self.reader.handle_transport_feedback(history, feedback);
        self.deliver_reports(now);
    }

    pub(super) fn handle_congestion_feedback(&mut self, now: Time, feedback: &CongestionFeedback<'_>) {
        let Some(history) = &mut self.history else {
            self.ignored += 1;
            return;
        };
        self.ignored += self.reader.handle_congestion_feedback(now, history, &self.sequence_maps, feedback);
        self.deliver_reports(now);
    }

    /// Passes the packet reports of a feedback message to the send half, if there are any.
    fn deliver_reports(&mut self, now: Time) {
        let flight = self.history.as_ref().map(History::flight).unwrap_or_default();
        let (packets, rtt) = (self.reader.reports(), self.reader.rtt());
        if let (Some(half), false) = (&mut self.half, packets.is_empty()) {
            let (outstanding, after_highest) = (flight.outstanding, flight.after_highest);
            let joined = Feedback { packets, outstanding, after_highest, rtt };
            half.handle_event(now, &Event::Feedback(&joined), &mut self.signals);
        }
    }
}
