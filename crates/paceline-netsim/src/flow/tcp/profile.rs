// SPDX-License-Identifier: MIT OR Apache-2.0
//! Profiles: the behaviour of sender and receiver where the RFCs leave a choice or the Linux kernel deviates from them.

use paceline_units::TimeDelta;

/// The reduction of the window when a loss is found, or a classic ECN mark arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WindowReduction {
    /// Immediately to the slow-start threshold. Nothing is sent until the flight is below it (RFC 6675, section 5).
    Immediate,
    /// Gradually, in proportion to the delivered data (proportional rate reduction, RFC 6937).
    Proportional,
}

/// The computation of the retransmission timeout from the round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRule {
    /// RFC 6298: `SRTT + 4 RTTVAR`, raised to the minimum.
    Rfc6298 {
        /// The minimum timeout.
        minimum: TimeDelta,
    },
    /// `tcp_rtt_estimator` of Linux: the variance term is the largest of the last round trip, and the minimum applies
    /// to this term.
    Linux {
        /// The minimum of the variance term.
        minimum: TimeDelta,
    },
}

/// The parameters that differ between TCP according to the RFCs and TCP of the Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// The name in scenarios.
    pub name: &'static str,
    /// A one-line description.
    pub summary: &'static str,
    /// The largest growth of the window per ACK in slow start, in segments; `None`: by the acknowledged data.
    pub slow_start_limit: Option<u32>,
    /// Whether CUBIC uses HyStart to leave slow start before a loss.
    pub hystart: bool,
    /// Until the first loss, CUBIC's window grows by at least one segment per 20 acknowledged. A loss reduces the
    /// window rather than FlightSize, to whole segments.
    pub kernel_windows: bool,
    pub reduction: WindowReduction,
    /// The computation of the retransmission timeout.
    pub rto: RtoRule,
    /// The maximum of the retransmission timeout.
    pub rto_max: TimeDelta,
    /// A retransmission of the first segment restarts the timer (allowed by RFC 6675, section 6; Linux:
    /// `tcp_xmit_retransmit_queue`).
    pub restart_timer: bool,
    /// A retransmission is lost, and repeated, once a segment sent after it has arrived (RFC 8985).
    pub detect_lost_retransmissions: bool,
    /// Selectively acknowledged segments also give round-trip times.
    pub sack_samples: bool,
    /// Selective acknowledgments remain valid after a timeout.
    pub keep_sack_on_timeout: bool,
    /// The longest delay of an ACK that waits for a second segment.
    pub delayed_ack: TimeDelta,
    /// The number of segments at the start of a connection that are acknowledged at once.
    pub quick_acks: u32,
}

/// RFC 6298, rule 2.4.
const RTO_MIN_RFC: TimeDelta = TimeDelta::from_secs(1);
/// RFC 6298, rule 2.5: a maximum must be 60 s or more.
const RTO_MAX_RFC: TimeDelta = TimeDelta::from_secs(60);
/// RFC 5681, section 4.2, allows 500 ms; the timer of BSD expired every 200 ms.
const DELAYED_ACK_RFC: TimeDelta = TimeDelta::from_millis(200);
/// RFC 5681, section 3.1, equation 2: at most one segment per ACK.
const SLOW_START_LIMIT_RFC: u32 = 1;

/// `TCP_RTO_MIN` (`include/net/tcp.h`): HZ / 5.
const RTO_MIN_LINUX: TimeDelta = TimeDelta::from_millis(200);
/// `TCP_RTO_MAX` (`include/net/tcp.h`).
const RTO_MAX_LINUX: TimeDelta = TimeDelta::from_secs(120);
/// `TCP_DELACK_MIN`, `TCP_ATO_MIN` (`include/net/tcp.h`): HZ / 25.
const DELAYED_ACK_LINUX: TimeDelta = TimeDelta::from_millis(40);
/// A receiver acknowledges each segment while its receive window grows (`tcp_grow_window`), which lasts far longer than
/// `TCP_MAX_QUICKACKS`. The value was measured on the testbed, where nothing else limits the window.
const QUICK_ACKS_LINUX: u32 = 1_450;

impl Profile {
    /// TCP exactly according to the RFCs.
    pub const RFC: Self = Self {
        name: "rfc",
        summary: "the RFCs to the letter: 5681, 6298, 6675, 6928, 8312",
        slow_start_limit: Some(SLOW_START_LIMIT_RFC),
        hystart: false,
        kernel_windows: false,
        reduction: WindowReduction::Immediate,
        rto: RtoRule::Rfc6298 { minimum: RTO_MIN_RFC },
        rto_max: RTO_MAX_RFC,
        restart_timer: false,
        detect_lost_retransmissions: false,
        sack_samples: false,
        keep_sack_on_timeout: false,
        delayed_ack: DELAYED_ACK_RFC,
        quick_acks: 0,
    };
    /// TCP of the Linux kernel.
    pub const LINUX: Self = Self {
        name: "linux",
        summary: "with HyStart, proportional rate reduction, short timers and quick ACKs, as in the Linux kernel",
        slow_start_limit: None,
        hystart: true,
        kernel_windows: true,
        reduction: WindowReduction::Proportional,
        rto: RtoRule::Linux { minimum: RTO_MIN_LINUX },
        rto_max: RTO_MAX_LINUX,
        restart_timer: true,
        detect_lost_retransmissions: true,
        sack_samples: true,
        keep_sack_on_timeout: true,
        delayed_ack: DELAYED_ACK_LINUX,
        quick_acks: QUICK_ACKS_LINUX,
    };
    const ALL: &'static [Self] = &[Self::RFC, Self::LINUX];
    /// Name and summary of each.
    pub const NAMES: &'static [(&'static str, &'static str)] =
        &[(Self::RFC.name, Self::RFC.summary), (Self::LINUX.name, Self::LINUX.summary)];

    /// Returns the profile with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|profile| profile.name == name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_profile() {
        for (name, summary) in Profile::NAMES {
            assert_eq!(Profile::named(name).map(|p| (p.name, p.summary)), Some((*name, *summary)));
        }
        assert_eq!(Profile::NAMES.len(), Profile::ALL.len());
        assert_eq!(Profile::named("bsd"), None);
    }
}
