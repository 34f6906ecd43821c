// SPDX-License-Identifier: MIT OR Apache-2.0
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
    /// The bytes in flight.
    pub bytes: DataSize,
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

    /// Returns the same as the flow counts them, with forgotten packets.
    pub fn of_flow(&self) -> DataSize {
        self.bytes + self.forgotten
    }

    /// Returns a window of the flow for a window on `bytes`.
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
    fn memory_is_bounded() {
        let mut flight = Flight::default();
        for sequence in 0..CAPACITY as u64 + 10 {
            flight.handle_sent(Time::ZERO, sequence, SIZE(1), &CONFIG);
        }
        assert_eq!((flight.packets.len(), flight.of_flow()), (CAPACITY, SIZE(CAPACITY as u64 + 10)));
        assert_eq!(flight.bytes, SIZE(CAPACITY as u64));
    }

    #[test]
    fn cap_is_at_least_the_least_window() {
        let small = ScreamLibwebrtcConfig { mss: SIZE(1), ..CONFIG };
        assert_eq!(FlightMax::default().window_cap(&small), SIZE(1000));
    }
}
