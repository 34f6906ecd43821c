//! Which packets are lost (RFC 8298, section 4.1.2.4): those that are missing for longer than packets are known to be
//! late.
//!
//! A packet below the highest acknowledged one that the report lacks is marked. If a later report has it after all, the
//! time between is the reordering window; a packet that is marked for as long as the window is lost.

use paceline_units::{Time, TimeDelta};

/// Numbers of the reordering window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReorderingConfig {
    /// The window before anything was late, and the least ever.
    pub first: TimeDelta,
    /// The most that a late packet makes of it, in smoothed round-trip times. Zero: it stays as it is.
    pub most_rtts: f64,
}

/// How many missing packets are remembered; of more, the oldest are lost at once.
const REMEMBERED: usize = 32;

/// A packet that a report lacked.
#[derive(Clone, Copy, Debug)]
struct Missing {
    sequence: u64,
    marked: Time,
    /// Not lost yet, and not come.
    open: bool,
}

/// The missing packets of a flow.
#[derive(Clone, Debug)]
pub struct MissingPackets {
    config: ReorderingConfig,
    window: TimeDelta,
    packets: [Missing; REMEMBERED],
    next: usize,
    open: usize,
    /// An open one had to be forgotten.
    forgotten: bool,
}

impl MissingPackets {
    /// None missing.
    pub fn new(config: ReorderingConfig) -> Self {
        let none = Missing { sequence: u64::MAX, marked: Time::ZERO, open: false };
        let window = config.first;
        Self { config, window, packets: [none; REMEMBERED], next: 0, open: 0, forgotten: false }
    }

    /// A report lacks this packet.
    pub fn handle_missing(&mut self, now: Time, sequence: u64) {
        let place = &mut self.packets[self.next];
        self.forgotten |= place.open;
        self.open += usize::from(!place.open);
        *place = Missing { sequence, marked: now, open: true };
        self.next = (self.next + 1) % REMEMBERED;
    }

    /// A packet below the highest came after all.
    pub fn handle_late(&mut self, now: Time, sequence: u64, s_rtt: TimeDelta) {
        let Some(place) = self.packets.iter_mut().find(|p| p.sequence == sequence) else { return };
        self.open -= usize::from(core::mem::take(&mut place.open));
        place.sequence = u64::MAX;
        let most = s_rtt.scale(self.config.most_rtts).max(self.config.first);
        self.window = (now - place.marked).min(most).max(self.config.first);
    }

    /// Whether packets have become lost since the last call.
    pub fn take_lost(&mut self, now: Time) -> bool {
        let mut lost = core::mem::take(&mut self.forgotten);
        if self.open > 0 {
            for place in self.packets.iter_mut().filter(|p| p.open && now - p.marked >= self.window) {
                place.open = false;
                self.open -= 1;
                lost = true;
            }
        }
        lost
    }

    /// The reordering window.
    pub fn window(&self) -> TimeDelta {
        self.window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);
    const LEARNS: ReorderingConfig = ReorderingConfig { first: TimeDelta::ZERO, most_rtts: 1.0 };

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    /// At first missing is lost. After one came 30 ms late, missing is lost after 30 ms, and who comes before is not; the
    /// latest to come late counts.
    #[test]
    fn lateness_is_learned() {
        let mut missing = MissingPackets::new(LEARNS);
        missing.handle_missing(at(0), 7);
        assert!(missing.take_lost(at(0)) && !missing.take_lost(at(0)));
        missing.handle_late(at(30), 7, RTT);
        assert_eq!(missing.window(), TimeDelta::from_millis(30));
        missing.handle_missing(at(100), 9);
        missing.handle_missing(at(110), 12);
        assert!(!missing.take_lost(at(129)));
        missing.handle_late(at(129), 12, RTT);
        assert_eq!(missing.window(), TimeDelta::from_millis(19));
        assert!(missing.take_lost(at(129)) && !missing.take_lost(at(500)));
        // Most of all a round-trip time.
        missing.handle_late(at(900), 9, RTT);
        assert_eq!(missing.window(), RTT);
    }

    #[test]
    fn a_window_that_does_not_learn_stays() {
        let first = TimeDelta::from_millis(20);
        let mut missing = MissingPackets::new(ReorderingConfig { first, most_rtts: 0.0 });
        missing.handle_missing(at(0), 7);
        missing.handle_late(at(300), 7, RTT);
        assert_eq!(missing.window(), first);
        assert!(!missing.take_lost(at(300)));
    }

    #[test]
    fn more_than_can_be_remembered_are_lost() {
        let mut missing = MissingPackets::new(ReorderingConfig { first: RTT, most_rtts: 1.0 });
        (0..32).for_each(|n| missing.handle_missing(at(0), n));
        assert!(!missing.take_lost(at(1)));
        missing.handle_missing(at(1), 32);
        assert!(missing.take_lost(at(1)));
        assert!(!missing.take_lost(at(2)));
        assert!(missing.take_lost(at(100)), "the others");
    }
}
