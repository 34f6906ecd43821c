//! What a sender and receiver do where the RFCs leave a choice, or where a kernel does more than they say.

use paceline_units::TimeDelta;

/// How the window comes down when a loss is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// To the slow-start threshold at once; nothing is sent until the flight has drained below it (RFC 6675, section 5).
    AtOnce,
    /// In proportion to what is delivered (RFC 6937).
    Proportional,
}

/// How the retransmission timeout is made of the round-trip times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RtoRule {
    /// RFC 6298: `SRTT + 4 RTTVAR`, raised to the minimum.
    Rfc6298 {
        /// The least timeout.
        minimum: TimeDelta,
    },
    /// `tcp_rtt_estimator` of Linux: the variance term is the largest of the last round trip, and it is that term which
    /// has a minimum.
    Linux {
        /// The least variance term.
        minimum: TimeDelta,
    },
}

/// The facts that differ between a TCP by the RFCs and a TCP by the Linux kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name in scenarios.
    pub name: &'static str,
    /// In a line.
    pub summary: &'static str,
    /// Growth of the window by one ACK in slow start, in segments at most; `None`: as much as was acknowledged.
    pub slow_start_limit: Option<u32>,
    /// CUBIC may leave slow start before a loss.
    pub hystart: bool,
    /// CUBIC's window grows by a segment for 20 acknowledged, at least, until its first loss. A loss brings a window, not the
    /// flight, down to its part, in whole segments.
    pub kernel_windows: bool,
    /// How the window comes down.
    pub reduction: Reduction,
    /// Making of the retransmission timeout.
    pub rto: RtoRule,
    /// The greatest timeout that backing off leads to.
    pub rto_max: TimeDelta,
    /// A retransmission of the first segment restarts the timer (RFC 6675, section 6, allows it; Linux: `tcp_xmit_retransmit_queue`).
    pub restart_timer: bool,
    /// A retransmission is lost, and leaves again, once something that left after it has arrived (RFC 8985).
    pub watches_resent: bool,
    /// A segment that was acknowledged selectively also gives a round-trip time.
    pub sack_samples: bool,
    /// What was acknowledged selectively is still believed after a timeout.
    pub keep_sack_on_timeout: bool,
    /// How long an ACK may wait for a second segment.
    pub delayed_ack: TimeDelta,
    /// So many segments at the start are acknowledged at once.
    pub quick_acks: u32,
}

/// RFC 6298, rule 2.4.
const RTO_MIN_RFC: TimeDelta = TimeDelta::from_secs(1);
/// RFC 6298, rule 2.5: a maximum must be 60 s or more.
const RTO_MAX_RFC: TimeDelta = TimeDelta::from_secs(60);
/// RFC 5681, section 4.2, allows 500 ms; BSD's timer, which those who wrote it had in mind, fired every 200 ms.
const DELAYED_ACK_RFC: TimeDelta = TimeDelta::from_millis(200);
/// RFC 5681, section 3.1, equation 2: at most one segment per ACK.
const SLOW_START_LIMIT_RFC: u32 = 1;

/// `TCP_RTO_MIN` (`include/net/tcp.h`): HZ / 5.
const RTO_MIN_LINUX: TimeDelta = TimeDelta::from_millis(200);
/// `TCP_RTO_MAX` (`include/net/tcp.h`).
const RTO_MAX_LINUX: TimeDelta = TimeDelta::from_secs(120);
/// `TCP_DELACK_MIN`, `TCP_ATO_MIN` (`include/net/tcp.h`): HZ / 25.
const DELAYED_ACK_LINUX: TimeDelta = TimeDelta::from_millis(40);
/// A receiver acknowledges each segment by which the window that it offers opens (`tcp_grow_window`), and that is far longer
/// than `TCP_MAX_QUICKACKS`: as many were measured on the test track, where nothing else bounds the window.
const QUICK_ACKS_LINUX: u32 = 1_450;

impl Profile {
    /// The RFCs to the letter.
    pub const RFC: Self = Self {
        name: "rfc",
        summary: "the RFCs to the letter: 5681, 6298, 6675, 6928, 8312",
        slow_start_limit: Some(SLOW_START_LIMIT_RFC),
        hystart: false,
        kernel_windows: false,
        reduction: Reduction::AtOnce,
        rto: RtoRule::Rfc6298 { minimum: RTO_MIN_RFC },
        rto_max: RTO_MAX_RFC,
        restart_timer: false,
        watches_resent: false,
        sack_samples: false,
        keep_sack_on_timeout: false,
        delayed_ack: DELAYED_ACK_RFC,
        quick_acks: 0,
    };
    /// What the Linux kernel does and the RFCs do not.
    pub const LINUX: Self = Self {
        name: "linux",
        summary: "with HyStart, proportional rate reduction, short timers and quick ACKs, as in the Linux kernel",
        slow_start_limit: None,
        hystart: true,
        kernel_windows: true,
        reduction: Reduction::Proportional,
        rto: RtoRule::Linux { minimum: RTO_MIN_LINUX },
        rto_max: RTO_MAX_LINUX,
        restart_timer: true,
        watches_resent: true,
        sack_samples: true,
        keep_sack_on_timeout: true,
        delayed_ack: DELAYED_ACK_LINUX,
        quick_acks: QUICK_ACKS_LINUX,
    };
    const ALL: &'static [Self] = &[Self::RFC, Self::LINUX];
    /// Name and summary of each.
    pub const NAMES: &'static [(&'static str, &'static str)] =
        &[(Self::RFC.name, Self::RFC.summary), (Self::LINUX.name, Self::LINUX.summary)];

    /// The profile of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|profile| profile.name == name).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_its_profile() {
        for (name, summary) in Profile::NAMES {
            assert_eq!(Profile::named(name).map(|p| (p.name, p.summary)), Some((*name, *summary)));
        }
        assert_eq!(Profile::NAMES.len(), Profile::ALL.len());
        assert_eq!(Profile::named("bsd"), None);
    }
}
