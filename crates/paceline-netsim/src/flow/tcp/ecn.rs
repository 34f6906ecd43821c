// SPDX-License-Identifier: MIT OR Apache-2.0
//! Explicit congestion notification in TCP: which packets are ECN-capable, what the receiver echoes, and when the sender reacts.
//!
//! ```text
//! classic   ECE on every ACK from a mark until CWR arrives; one reduction per window (RFC 3168, section 6.1)
//! accurate  every ACK has the count of marked bytes (RFC 9768, modelled as a number without limits)
//! ```
//!
//! Both ends of a flow have the same configuration, so the negotiation in SYN and SYN-ACK is not modelled.

use super::segment::Segment;
use paceline_units::{DataSize, Ecn};

/// The use of ECN by a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum TcpEcn {
    /// Packets are not ECN-capable.
    #[default]
    Off,
    /// A mark counts as a loss (RFC 3168).
    Classic,
    /// A mark reduces the window less than a loss (ABE, RFC 8511).
    Alternative,
    /// The receiver reports how much was marked; for controls that need it.
    Accurate,
    /// The same with ECT(1), for L4S queues (RFC 9331).
    L4s,
}

impl TcpEcn {
    const ALL: [Self; 5] = [Self::Off, Self::Classic, Self::Alternative, Self::Accurate, Self::L4s];
    /// Name and summary of each.
    pub const NAMES: &'static [(&'static str, &'static str)] = &[
        ("off", "packets are not ECN-capable"),
        ("classic", "RFC 3168: a mark counts as a loss; for new-reno and cubic"),
        ("abe", "RFC 8511: a mark reduces the window less than a loss; for new-reno and cubic"),
        ("accurate", "the receiver reports how much was marked (RFC 9768); for dctcp"),
        ("l4s", "the same with ECT(1), for L4S queues; for dctcp and prague"),
    ];

    /// Returns the use with this name.
    pub fn named(name: &str) -> Option<Self> {
        let at = Self::NAMES.iter().position(|(known, _)| *known == name)?;
        Some(Self::ALL[at])
    }

    /// Returns what a congestion control uses by default.
    pub fn default_of(congestion: &str) -> Self {
        match congestion {
            "dctcp" => Self::Accurate,
            "prague" => Self::L4s,
            _ => Self::Off,
        }
    }

    /// Returns whether a congestion control can work with this.
    pub fn fits(self, congestion: &str) -> bool {
        match self {
            Self::Off => !["dctcp", "prague"].contains(&congestion),
            Self::Classic | Self::Alternative => ["new-reno", "cubic"].contains(&congestion),
            Self::Accurate => congestion == "dctcp",
            Self::L4s => ["dctcp", "prague"].contains(&congestion),
        }
    }

    /// Returns the codepoint of ECN-capable packets.
    pub(super) fn codepoint(self) -> Ecn {
        match self {
            Self::Off => Ecn::NotEct,
            Self::Classic | Self::Alternative | Self::Accurate => Ecn::Ect0,
            Self::L4s => Ecn::Ect1,
        }
    }

    /// Returns whether ECE and CWR are in use.
    pub(super) fn is_classic(self) -> bool {
        matches!(self, Self::Classic | Self::Alternative)
    }
}

/// The receiver's part of ECN.
#[derive(Debug, Default)]
pub(super) struct MarkEcho {
    ecn: TcpEcn,
    /// A mark was not yet confirmed by CWR.
    ece: bool,
    /// Whether the last data packet was marked.
    marked: bool,
    /// Marked bytes of the connection; wraps around.
    ce_bytes: u32,
}

impl MarkEcho {
    pub fn new(ecn: TcpEcn) -> Self {
        Self { ecn, ..Self::default() }
    }

    /// Handles a packet with data. Returns whether the change must be acknowledged at once (RFC 8257, section 3.2, and RFC 9768,
    /// section 3.2.2.5.1).
    pub fn handle_data(&mut self, segment: &Segment, ecn: Ecn) -> bool {
        let marked = ecn == Ecn::Ce;
        let changed = core::mem::replace(&mut self.marked, marked) != marked;
        match self.ecn {
            TcpEcn::Off => false,
            TcpEcn::Classic | TcpEcn::Alternative => {
                self.ece = marked || self.ece && !segment.cwr;
                false
            }
            TcpEcn::Accurate | TcpEcn::L4s => {
                self.ce_bytes = self.ce_bytes.wrapping_add(if marked { segment.payload } else { 0 });
                changed
            }
        }
    }

    /// Writes the echo into an ACK.
    pub fn write(&self, ack: &mut Segment) {
        (ack.ece, ack.ce_bytes) = (self.ece, self.ce_bytes);
    }
}

/// The sender's part of ECN.
#[derive(Debug, Default)]
pub(super) struct MarkReaction {
    /// The first segment that was not yet sent at the last reduction.
    point: u64,
    /// The next new data says that the window was reduced.
    cwr: bool,
    ce_bytes: u32,
}

impl MarkReaction {
    /// Handles a reduction of the window for any reason; `end` is the number of the next new segment.
    pub fn handle_reduction(&mut self, end: u64) {
        (self.point, self.cwr) = (end, true);
    }

    /// Returns whether the echo in an ACK that leaves `base` as the first unacknowledged segment reduces the window: once per
    /// window of data (RFC 3168, section 6.1.2). The echo lasts until the segment with CWR arrives, the first after the
    /// reduction; so the ACK of the segment before it still belongs to the last reduction.
    pub fn reacts(&self, ece: bool, base: u64) -> bool {
        ece && base > self.point
    }

    /// Returns whether segment `base` was sent before the last reduction. Its loss does not reduce the window again (RFC 3168,
    /// section 6.1.2).
    pub fn covers_loss(&self, base: u64) -> bool {
        base < self.point
    }

    /// Returns whether the packet with new data has CWR.
    pub fn take_cwr(&mut self) -> bool {
        core::mem::take(&mut self.cwr)
    }

    /// Returns the bytes that an ACK newly reports as marked.
    pub fn newly_marked(&mut self, ack: &Segment) -> DataSize {
        let before = core::mem::replace(&mut self.ce_bytes, ack.ce_bytes);
        let newly = ack.ce_bytes.wrapping_sub(before) as i32;
        if newly < 0 {
            // An older ACK that arrives late.
            self.ce_bytes = before;
        }
        DataSize::from_bytes(newly.max(0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_a_use_and_fits_its_controls() {
        for (n, (name, _)) in TcpEcn::NAMES.iter().enumerate() {
            assert_eq!(TcpEcn::named(name), Some(TcpEcn::ALL[n]));
        }
        assert_eq!(TcpEcn::named("prague"), None);
        for (congestion, ..) in super::super::CONGESTION {
            assert!(TcpEcn::default_of(congestion).fits(congestion), "{congestion}");
        }
        assert!(!TcpEcn::Accurate.fits("cubic") && !TcpEcn::Off.fits("prague") && !TcpEcn::Classic.fits("bbr"));
    }

    /// RFC 3168, section 6.1.3: ECE from the mark until CWR; a packet with CWR may be marked itself.
    #[test]
    fn classic_echo_lasts_until_cwr() {
        let mut echo = MarkEcho::new(TcpEcn::Classic);
        let echoed: Vec<bool> =
            [(Ecn::Ect0, false), (Ecn::Ce, false), (Ecn::Ect0, false), (Ecn::Ect0, true), (Ecn::Ce, true)]
                .map(|(ecn, cwr)| {
                    assert!(!echo.handle_data(&Segment { payload: 1000, cwr, ..Segment::default() }, ecn));
                    let mut ack = Segment::default();
                    echo.write(&mut ack);
                    ack.ece
                })
                .to_vec();
        assert_eq!(echoed, [false, true, true, false, true]);
    }

    #[test]
    fn accurate_echo_counts_bytes_and_reports_changes_at_once() {
        let (mut echo, mut reaction) = (MarkEcho::new(TcpEcn::Accurate), MarkReaction::default());
        echo.ce_bytes = u32::MAX - 500;
        reaction.ce_bytes = echo.ce_bytes;
        let data = Segment { payload: 1000, ..Segment::default() };
        let mut acks = Vec::new();
        for (ecn, changes) in [(Ecn::Ect1, false), (Ecn::Ce, true), (Ecn::Ce, false), (Ecn::Ect1, true)] {
            assert_eq!(echo.handle_data(&data, ecn), changes);
            let mut ack = Segment::default();
            echo.write(&mut ack);
            acks.push(ack);
        }
        let newly = |reaction: &mut MarkReaction, n: usize| reaction.newly_marked(&acks[n]).as_bytes();
        assert_eq!([newly(&mut reaction, 0), newly(&mut reaction, 2)], [0, 2000]);
        assert_eq!([newly(&mut reaction, 1), newly(&mut reaction, 3)], [0, 0], "an ACK that comes late");
    }

    #[test]
    fn sender_reacts_once_per_window_and_says_so() {
        let mut reaction = MarkReaction::default();
        assert!(reaction.reacts(true, 1) && !reaction.reacts(false, 1) && !reaction.take_cwr());
        reaction.handle_reduction(10);
        assert!(!reaction.reacts(true, 10) && reaction.reacts(true, 11), "segment 10 carries CWR");
        assert!(reaction.covers_loss(9) && !reaction.covers_loss(10));
        assert!(reaction.take_cwr() && !reaction.take_cwr());
    }
}
