//! Whether ECN works on a path, and the codepoint to send. Routers may clear the field (bleaching), change it, or drop
//! packets that have it.
//!
//! ```text
//! a packet arrives with the codepoint that was sent, or marked:   ECN works so far
//! a packet arrives with another codepoint, or without report:     Not-ECT from now on
//! the first 10 packets are all lost:                              Not-ECT from now on
//! ```
//!
//! RFC 9000, sections 13.4.2.1 and 13.4.2.2 and appendix A.4, with the reports of RFC 8888 in place of counts. RFC 9330
//! (section 5.1) needs the same for L4S: a sender of ECT(1) whose marks do not come back must not use it. A failed
//! validation is final for the path; a new route begins with a new one.

use crate::PacketReport;
use paceline_units::Ecn;

/// If all of the first packets are lost, the path may drop ECN-capable packets (RFC 9000, appendix A.4).
const TEST_PACKETS: u32 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No packet has arrived; this many were lost.
    Testing(u32),
    Capable,
    Failed,
}

/// The validation of one path.
#[derive(Clone, Debug)]
pub struct EcnValidation {
    sent: Ecn,
    state: State,
}

impl EcnValidation {
    /// Creates the validation of packets that are sent with this codepoint from the first on.
    pub fn new(sent: Ecn) -> Self {
        Self { sent, state: State::Testing(0) }
    }

    /// Handles the report on a packet. Without the ECN field in it a sender cannot react to marks, so validation fails.
    #[inline]
    pub fn handle_report(&mut self, packet: &PacketReport) {
        if self.state == State::Failed {
            return;
        }
        self.state = match (packet.arrival, packet.ecn) {
            (Some(_), Some(ecn)) if ecn == self.sent || ecn == Ecn::Ce => State::Capable,
            (Some(_), _) => State::Failed,
            (None, _) => match self.state {
                State::Testing(lost) if lost + 1 < TEST_PACKETS => State::Testing(lost + 1),
                State::Testing(_) => State::Failed,
                state => state,
            },
        };
    }

    /// Returns the codepoint to send.
    #[inline]
    pub fn codepoint(&self) -> Ecn {
        if self.state == State::Failed { Ecn::NotEct } else { self.sent }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{DataSize, RemoteTime, Time};

    /// Returns the codepoints to send after each of these reports: the ECN field of an arrival, or lost.
    fn codepoints(sent: Ecn, reports: &[Option<Option<Ecn>>]) -> Vec<Ecn> {
        let mut validation = EcnValidation::new(sent);
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

    #[test]
    fn ten_lost_packets_at_the_start_end_ecn() {
        use Ecn::{Ect0, NotEct};
        let lost = codepoints(Ect0, &[LOST; 11]);
        assert_eq!((lost[8], lost[9], lost[10]), (Ect0, NotEct, NotEct));
        let later = [&[LOST; 9][..], &[arrived(Ect0)], &[LOST; 20]].concat();
        assert_eq!(codepoints(Ect0, &later), [Ect0; 30], "ordinary loss after the first arrival");
    }
}
