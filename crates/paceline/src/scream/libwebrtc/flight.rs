//! Bytes in flight: what was sent after the highest packet that a report mentions (`InFlightBytesTracker`), and the largest of
//! these in the last two round-trip times.

use super::config::{ScreamLibwebrtcConfig, since};
use super::rounding::scale_size;
use alloc::collections::VecDeque;
use paceline_units::{DataSize, Time, TimeDelta};

/// The number of packets without report that are kept, as in the history of the flow.
const CAPACITY: usize = 32_768;

#[derive(Clone, Copy, Debug)]
struct Unreported {
    sequence: u64,
    sent: Time,
    size: DataSize,
}

/// The packets after the highest one that arrived.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    packets: VecDeque<Unreported>,
    bytes: DataSize,
    /// What the flow counts in flight beyond these packets: those that were forgotten.
    forgotten: DataSize,
}

impl Flight {
    /// Handles a packet that left. Packets that left too long ago are forgotten; returns whether there were any.
    pub fn handle_sent(&mut self, now: Time, sequence: u64, size: DataSize, config: &ScreamLibwebrtcConfig) -> bool {
        let before = self.forgotten;
        while let Some(oldest) = self.packets.front() {
            if self.packets.len() < CAPACITY && now - oldest.sent <= config.history {
                break;
            }
            self.forgotten += oldest.size;
            self.bytes = self.bytes.saturating_sub(oldest.size);
            self.packets.pop_front();
        }
        self.packets.push_back(Unreported { sequence, sent: now, size });
        self.bytes += size;
        self.forgotten != before
    }

    /// Handles the highest packet of a report that arrived. `after_highest`: the bytes in flight as the flow counts them.
    pub fn handle_report(&mut self, highest: Option<u64>, after_highest: DataSize) {
        while let Some(oldest) = self.packets.front().filter(|oldest| Some(oldest.sequence) <= highest) {
            self.bytes = self.bytes.saturating_sub(oldest.size);
            self.packets.pop_front();
        }
        self.forgotten = after_highest.saturating_sub(self.bytes);
    }

    /// Returns the bytes in flight.
    pub fn bytes(&self) -> DataSize {
        self.bytes
    }

    /// Returns the same as the flow counts them, with forgotten packets.
    pub fn of_flow(&self) -> DataSize {
        self.bytes + self.forgotten
    }

    /// Returns a window of the flow for a window on [`bytes`](Self::bytes).
    pub fn window_of_flow(&self, window: DataSize) -> DataSize {
        window + self.forgotten
    }
}

/// The most bytes in flight during this and the last round-trip time.
#[derive(Clone, Debug, Default)]
pub struct FlightMax {
    this: DataSize,
    previous: DataSize,
    rotated: Option<Time>,
}

impl FlightMax {
    /// Handles bytes in flight.
    pub fn handle(&mut self, in_flight: DataSize) {
        self.this = self.this.max(in_flight);
    }

    /// Begins the next round-trip time, of length `rtt`, if this one is over.
    pub fn update(&mut self, now: Time, rtt: TimeDelta) {
        if since(now, self.rotated) >= rtt {
            self.rotated = Some(now);
            self.previous = core::mem::take(&mut self.this);
        }
    }

    /// Returns the size up to which the reference window may grow (`max_allowed_ref_window`).
    pub fn window_cap(&self, config: &ScreamLibwebrtcConfig) -> DataSize {
        (config.mss + scale_size(self.this.max(self.previous), config.head_room)).max(config.min_window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: ScreamLibwebrtcConfig = ScreamLibwebrtcConfig::LIBWEBRTC;
    const SIZE: fn(u64) -> DataSize = DataSize::from_bytes;

    #[test]
    fn packets_up_to_the_highest_are_not_in_flight() {
        let mut flight = Flight::default();
        for sequence in 0..5 {
            flight.handle_sent(Time::ZERO, sequence, SIZE(100), &CONFIG);
        }
        assert_eq!(flight.bytes(), SIZE(500));
        flight.handle_report(Some(2), SIZE(200));
        assert_eq!((flight.bytes(), flight.of_flow()), (SIZE(200), SIZE(200)));
        flight.handle_report(None, SIZE(200));
        flight.handle_report(Some(1), SIZE(200));
        assert_eq!(flight.bytes(), SIZE(200), "nothing new arrived");
    }

    /// The flow counts packets of more than 60 s ago; libwebrtc forgets them when a packet leaves.
    #[test]
    fn old_packets_are_forgotten() {
        let mut flight = Flight::default();
        flight.handle_sent(Time::ZERO, 0, SIZE(1000), &CONFIG);
        assert!(!flight.handle_sent(Time::from_secs(60), 1, SIZE(100), &CONFIG));
        assert_eq!((flight.bytes(), flight.window_of_flow(SIZE(5000))), (SIZE(1100), SIZE(5000)));
        assert!(flight.handle_sent(Time::from_millis(60_001), 2, SIZE(100), &CONFIG));
        assert_eq!((flight.bytes(), flight.of_flow()), (SIZE(200), SIZE(1200)));
        assert_eq!(flight.window_of_flow(SIZE(5000)), SIZE(6000));
        flight.handle_report(Some(1), SIZE(100));
        assert_eq!(flight.window_of_flow(SIZE(5000)), SIZE(5000));
    }

    #[test]
    fn memory_is_bounded() {
        let mut flight = Flight::default();
        for sequence in 0..CAPACITY as u64 + 10 {
            flight.handle_sent(Time::ZERO, sequence, SIZE(1), &CONFIG);
        }
        assert_eq!((flight.packets.len(), flight.of_flow()), (CAPACITY, SIZE(CAPACITY as u64 + 10)));
        assert_eq!(flight.bytes(), SIZE(CAPACITY as u64));
    }

    /// By hand: 1280 + 1.1 * 2000 = 3480.
    #[test]
    fn cap_follows_the_last_two_round_trips() {
        let rtt = TimeDelta::from_millis(50);
        let mut flight = FlightMax::default();
        assert_eq!(flight.window_cap(&CONFIG), SIZE(1280));
        flight.handle(SIZE(2000));
        flight.handle(SIZE(1000));
        assert_eq!(flight.window_cap(&CONFIG), SIZE(3480));
        flight.update(Time::ZERO, rtt);
        flight.update(Time::from_millis(49), rtt);
        assert_eq!(flight.window_cap(&CONFIG), SIZE(3480));
        flight.update(Time::from_millis(50), rtt);
        assert_eq!(flight.window_cap(&CONFIG), SIZE(1280));
        let small = ScreamLibwebrtcConfig { mss: SIZE(1), ..CONFIG };
        assert_eq!(flight.window_cap(&small), SIZE(1000), "the least window");
    }
}
