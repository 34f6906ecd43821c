// SPDX-License-Identifier: MIT OR Apache-2.0
//! Loss detection (RFC 8298, section 4.1.2.4): a packet is lost if it is missing for longer than the reordering window.
//!
//! A packet below the highest acknowledged one that a report does not acknowledge is marked. If a later report
//! acknowledges it, the time in between becomes the reordering window. A packet that is marked for the length of the
//! window is lost.

use crate::params;
use paceline_units::{Time, TimeDelta};

params! {
    /// The parameters of the reordering window.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ReorderingConfig {
        /// RFC 8298, section 4.1.2.4, and draft-ietf-ccwg-rfc8298bis-screamv2.
        const RFC_8298;

        /// Initial and shortest reordering window.
        first as "reorder_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e4,
            from "section 4.1.2.4: none; C++: kReorderTime, 20 ms in 2018, 30 ms in 2026";
        /// Longest window after a late packet, in smoothed round-trip times; 0: the window is constant.
        most_rtts as "reorder_rtts": f64 = 1.0, in 0.0..=10.0, from "assumed";
    }
}

/// The number of missing packets that are kept; if there are more, the oldest ones are lost immediately.
const CAPACITY: usize = 32;

/// A packet that a report did not acknowledge.
#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u64,
    marked: Time,
    /// Neither lost nor arrived yet.
    open: bool,
}

/// The missing packets of a flow.
#[derive(Clone, Debug)]
pub struct MissingPackets {
    config: ReorderingConfig,
    window: TimeDelta,
    packets: [Missing; CAPACITY],
    next: usize,
    open: usize,
    /// An open packet was overwritten.
    overflowed: bool,
}

impl MissingPackets {
    pub fn new(config: ReorderingConfig) -> Self {
        let none = Missing { sequence: u64::MAX, marked: Time::ZERO, open: false };
        let window = config.first;
        Self { config, window, packets: [none; CAPACITY], next: 0, open: 0, overflowed: false }
    }

    /// Handles a packet that a report does not acknowledge.
    pub fn handle_missing(&mut self, now: Time, sequence: u64) {
        let slot = &mut self.packets[self.next];
        self.overflowed |= slot.open;
        self.open += usize::from(!slot.open);
        *slot = Missing { sequence, marked: now, open: true };
        self.next = (self.next + 1) % CAPACITY;
    }

    /// Handles a packet below the highest one that arrived after all.
    pub fn handle_late(&mut self, now: Time, sequence: u64, s_rtt: TimeDelta) {
        let Some(slot) = self.packets.iter_mut().find(|p| p.sequence == sequence) else { return };
        self.open -= usize::from(core::mem::take(&mut slot.open));
        slot.sequence = u64::MAX;
        let most = s_rtt.scale(self.config.most_rtts).max(self.config.first);
        self.window = (now - slot.marked).min(most).max(self.config.first);
    }

    /// Returns whether packets have become lost since the last call.
    pub fn take_lost(&mut self, now: Time) -> bool {
        let mut lost = core::mem::take(&mut self.overflowed);
        if self.open > 0 {
            for slot in self.packets.iter_mut().filter(|p| p.open && now - p.marked >= self.window) {
                slot.open = false;
                self.open -= 1;
                lost = true;
            }
        }
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const RTT: TimeDelta = TimeDelta::from_millis(100);
    const ADAPTIVE: ReorderingConfig = ReorderingConfig { first: TimeDelta::ZERO, most_rtts: 1.0 };

    /// Initially a missing packet is lost immediately. After a packet was 30 ms late, missing packets are lost after 30
    /// ms. The most recent late packet counts.
    #[test]
    fn reordering_window_follows_late_packets() {
        let mut missing = MissingPackets::new(ADAPTIVE);
        missing.handle_missing(at(0), 7);
        assert!(missing.take_lost(at(0)) && !missing.take_lost(at(0)));
        missing.handle_late(at(30), 7, RTT);
        assert_eq!(missing.window, TimeDelta::from_millis(30));
        missing.handle_missing(at(100), 9);
        missing.handle_missing(at(110), 12);
        assert!(!missing.take_lost(at(129)));
        missing.handle_late(at(129), 12, RTT);
        assert_eq!(missing.window, TimeDelta::from_millis(19));
        assert!(missing.take_lost(at(129)) && !missing.take_lost(at(500)));
        // At most a round-trip time.
        missing.handle_late(at(900), 9, RTT);
        assert_eq!(missing.window, RTT);
    }

    #[test]
    fn window_is_constant_without_a_maximum() {
        let first = TimeDelta::from_millis(20);
        let mut missing = MissingPackets::new(ReorderingConfig { first, most_rtts: 0.0 });
        missing.handle_missing(at(0), 7);
        missing.handle_late(at(300), 7, RTT);
        assert_eq!(missing.window, first);
        assert!(!missing.take_lost(at(300)));
    }

    #[test]
    fn packets_beyond_the_capacity_are_lost() {
        let mut missing = MissingPackets::new(ReorderingConfig { first: RTT, most_rtts: 1.0 });
        (0..32).for_each(|n| missing.handle_missing(at(0), n));
        assert!(!missing.take_lost(at(1)));
        missing.handle_missing(at(1), 32);
        assert!(missing.take_lost(at(1)));
        assert!(!missing.take_lost(at(2)));
        assert!(missing.take_lost(at(100)), "the others");
    }
}
