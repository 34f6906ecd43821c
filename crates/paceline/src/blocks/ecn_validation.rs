// SPDX-License-Identifier: MIT OR Apache-2.0
//! Whether ECN works on a path, and the codepoint to send. Routers may clear the field (bleaching), change it, or drop
//! packets that have it.
//!
//! ```text
//! a packet arrives with the codepoint that was sent, or marked:   ECN works so far
//! a packet arrives with another codepoint, or its report has
//! no ECN field:                                                   Not-ECT from now on
//! the first 10 packets are all reported lost:                     Not-ECT from now on
//! no arrival is reported for 1 s after the tenth packet:          Not-ECT, until an arrival is reported
//! ```
//!
//! RFC 9000, sections 13.4.2.1 and 13.4.2.2 and appendix A.4, with the reports of RFC 8888 in place of counts. RFC 9331
//! (section 4.2) requires feedback of marks for L4S: a sender of ECT(1) whose marks do not come back must not use it. A
//! failed validation is final for the path until the controller wants another codepoint; a new route begins with a new one. If only reports were missing, the
//! state is "unknown" as in appendix A.4, and the next arrival decides.

use crate::PacketReport;
use paceline_units::{Ecn, Time, TimeDelta};

/// If all of the first packets are lost, the path may drop ECN-capable packets (RFC 9000, appendix A.4).
const TEST_PACKETS: u32 = 10;
/// A path that drops all ECN-capable packets gets no report either, so the test also ends after a time. RFC 9000 (section
/// 13.4.2) suggests ten packets or three probe timeouts; before the first round-trip time, one is 1 s (RFC 9002, section 6.2.2).
/// One after the ten packets is enough here, because a late report resumes ECN.
const TEST_TIME: TimeDelta = TimeDelta::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No arrival was reported. `last`: when the last of the first packets left.
    Testing {
        sent: u32,
        last: Time,
        lost: u32,
    },
    /// The same, and the time of the test is over.
    Unknown,
    Capable,
    Failed,
}

/// Decides whether packets are ECN-capable: not if the path clears or falsifies the field (RFC 9000, appendix A.4).
#[derive(Clone, Debug)]
pub(crate) struct EcnValidation {
    sent: Ecn,
    /// The number of the first packet with this codepoint, and on this path.
    first: u64,
    state: State,
}

impl EcnValidation {
    /// Creates the validation of packets that are sent with this codepoint from a number on.
    pub fn new(sent: Ecn, first: u64) -> Self {
        Self { sent, first, state: State::Testing { sent: 0, last: Time::ZERO, lost: 0 } }
    }

    /// Returns the codepoint to send instead of the one that the controller wants. Another one than before is validated anew.
    /// `next` is the number of the next packet.
    #[inline]
    pub fn allowed(&mut self, next: u64, wanted: Ecn) -> Ecn {
        if wanted != self.sent {
            *self = Self::new(wanted, next);
        }
        self.codepoint()
    }

    /// Validates the same codepoint on another path.
    pub fn restart(&mut self, next: u64) {
        *self = Self::new(self.sent, next);
    }

    /// Handles a packet that left. Returns whether the codepoint changed: it takes effect for the next packet.
    #[inline]
    pub fn handle_sent(&mut self, now: Time) -> bool {
        let State::Testing { sent, last, .. } = &mut self.state else { return false };
        if self.sent == Ecn::NotEct {
            return false;
        }
        if *sent < TEST_PACKETS {
            (*sent, *last) = (*sent + 1, now);
            return false;
        }
        let is_over = now - *last >= TEST_TIME;
        if is_over {
            self.state = State::Unknown;
        }
        is_over
    }

    /// Handles the report on a packet. Without the ECN field in it a sender cannot react to marks, so validation fails.
    #[inline]
    pub fn handle_report(&mut self, packet: &PacketReport) {
        match &mut self.state {
            State::Failed => {}
            _ if packet.sequence < self.first => {}
            state if packet.arrival.is_some() => {
                let is_kept = packet.ecn.is_some_and(|ecn| ecn == self.sent || ecn == Ecn::Ce);
                *state = if is_kept { State::Capable } else { State::Failed };
            }
            State::Testing { lost, .. } if *lost + 1 < TEST_PACKETS => *lost += 1,
            state @ State::Testing { .. } => *state = State::Failed,
            State::Unknown | State::Capable => {}
        }
    }

    #[inline]
    fn codepoint(&self) -> Ecn {
        if matches!(self.state, State::Failed | State::Unknown) { Ecn::NotEct } else { self.sent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use paceline_units::{DataSize, RemoteTime};

    /// Returns the codepoints to send after each of these reports: the ECN field of an arrival, or lost.
    fn codepoints(sent: Ecn, reports: &[Option<Option<Ecn>>]) -> Vec<Ecn> {
        let mut validation = EcnValidation::new(sent, 0);
        let mut after = |report: &Option<Option<Ecn>>| {
            let (size, arrival) = (DataSize::from_bytes(1200), report.map(|_| RemoteTime::ZERO));
            let packet = PacketReport::new(0, Time::ZERO, size, arrival);
            validation.handle_report(&PacketReport { ecn: report.flatten(), ..packet });
            validation.codepoint()
        };
        reports.iter().map(&mut after).collect()
    }

    const LOST: Option<Option<Ecn>> = None;
    const fn arrived(ecn: Ecn) -> Option<Option<Ecn>> {
        Some(Some(ecn))
    }

    /// Sends a packet each 50 ms, and reports the first at 2 s if this is a codepoint. Returns the time, ms, at which each
    /// codepoint was first sent.
    fn without_reports(packets: i64, late: Option<Ecn>) -> Vec<(i64, Ecn)> {
        let mut validation = EcnValidation::new(Ecn::Ect0, 0);
        let mut sent: Vec<(i64, Ecn)> = Vec::new();
        for ms in (0..50 * packets).step_by(50) {
            if sent.last().is_none_or(|(_, before)| *before != validation.codepoint()) {
                sent.push((ms, validation.codepoint()));
            }
            let before = validation.codepoint();
            assert_eq!(validation.handle_sent(Time::from_millis(ms)), validation.codepoint() != before);
            if let (2000, Some(ecn)) = (ms, late) {
                let packet = PacketReport::new(0, Time::ZERO, DataSize::from_bytes(1200), Some(RemoteTime::ZERO));
                validation.handle_report(&PacketReport { ecn: Some(ecn), ..packet });
            }
        }
        sent
    }

    /// The tenth packet leaves at 450 ms, the packet at 1450 ms ends the test.
    #[test]
    fn silence_ends_ecn_until_an_arrival_is_reported() {
        use Ecn::{Ce, Ect0, NotEct};
        let silent = [(0, Ect0), (1500, NotEct)];
        assert_eq!(without_reports(29, None), silent[..1], "not yet a second after the tenth packet");
        assert_eq!(without_reports(100, None), silent);
        assert_eq!(without_reports(100, Some(NotEct)), silent, "a packet without the codepoint arrived");
        for late in [Ect0, Ce] {
            assert_eq!(without_reports(100, Some(late)), [silent[0], silent[1], (2050, Ect0)]);
        }
    }

    #[test]
    fn reported_arrival_ends_the_test() {
        let mut validation = EcnValidation::new(Ecn::Ect0, 0);
        let packet = PacketReport::new(0, Time::ZERO, DataSize::from_bytes(1200), Some(RemoteTime::ZERO));
        validation.handle_report(&PacketReport { ecn: Some(Ecn::Ect0), ..packet });
        assert!((0..100).all(|s| !validation.handle_sent(Time::from_secs(s))), "an outage later is not about ECN");
        assert_eq!(validation.codepoint(), Ecn::Ect0);
    }

    #[test]
    fn arrivals_as_sent_and_marks_keep_the_codepoint() {
        for sent in [Ecn::Ect0, Ecn::Ect1] {
            let reports = [arrived(sent), arrived(Ecn::Ce), LOST, arrived(sent), arrived(Ecn::Ce)];
            assert_eq!(codepoints(sent, &reports), [sent; 5]);
        }
    }

    #[test]
    fn changed_field_ends_ecn_for_good() {
        use Ecn::{Ect0, Ect1, NotEct};
        for changed in [arrived(NotEct), arrived(Ect1), Some(None)] {
            let reports = [arrived(Ect0), changed, arrived(NotEct), arrived(Ect0), LOST];
            assert_eq!(codepoints(Ect0, &reports), [Ect0, NotEct, NotEct, NotEct, NotEct], "{changed:?}");
        }
        assert_eq!(codepoints(Ect1, &[arrived(Ect0)]), [NotEct]);
        assert_eq!(codepoints(NotEct, &[arrived(NotEct)]), [NotEct]);
    }

    /// Reports on packets that left before say nothing about the new codepoint, or about the new path.
    #[test]
    fn another_codepoint_and_another_path_are_validated_anew() {
        use Ecn::{Ect1, NotEct};
        let report = |number, ecn| {
            PacketReport::new(number, Time::ZERO, DataSize::from_bytes(1200), Some(RemoteTime::ZERO))
                .with_ecn(Some(ecn))
        };
        let mut validation = EcnValidation::new(NotEct, 0);
        assert_eq!([validation.allowed(1, NotEct), validation.allowed(2, Ect1)], [NotEct, Ect1]);
        validation.handle_report(&report(1, NotEct));
        assert_eq!(validation.allowed(3, Ect1), Ect1);
        validation.handle_report(&report(2, NotEct));
        assert_eq!(validation.allowed(4, Ect1), NotEct);
        validation.restart(5);
        validation.handle_report(&report(4, NotEct));
        assert_eq!(validation.allowed(6, Ect1), Ect1);
    }

    #[test]
    fn ten_lost_packets_at_the_start_end_ecn() {
        use Ecn::{Ect0, NotEct};
        let lost = codepoints(Ect0, &[LOST; 11]);
        assert_eq!((lost[8], lost[9], lost[10]), (Ect0, NotEct, NotEct));
        let later = [&[LOST; 9][..], &[arrived(Ect0)], &[LOST; 20]].concat();
        assert_eq!(codepoints(Ect0, &later), [Ect0; 30], "ordinary loss after the first arrival");
    }
}
