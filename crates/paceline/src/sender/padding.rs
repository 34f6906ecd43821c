// SPDX-License-Identifier: MIT OR Apache-2.0
//! Padding: fills the part of the target rate that media leaves free, so that the flow's mean rate is the target.
//!
//! A virtual clock advances by the transmission time of each packet sent, media or not. When it lags behind the real
//! clock by the transmission time of a padding packet, padding is due. A large frame puts the virtual clock ahead, by
//! at most [`AHEAD_MAX`]. A pause leaves it behind, by at most [`BEHIND_MAX`], so that no burst follows a pause.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

const AHEAD_MAX: TimeDelta = TimeDelta::from_millis(500);
const BEHIND_MAX: TimeDelta = TimeDelta::from_millis(50);

#[derive(Clone, Debug)]
pub(super) struct Padding {
    rate: Rate,
    /// The transmission time of a padding packet.
    interval: TimeDelta,
    clock: Time,
}

impl Padding {
    pub fn new(start: Time) -> Self {
        Self { rate: Rate::ZERO, interval: TimeDelta::MAX, clock: start }
    }

    /// Sets the rate to fill up to with packets of `size`; zero turns padding off.
    #[inline]
    pub fn set_rate(&mut self, rate: Rate, size: DataSize) {
        (self.rate, self.interval) = (rate, size / rate);
    }

    /// Forgets what was sent before.
    pub fn restart(&mut self, now: Time) {
        self.clock = now;
    }

    /// Handles a sent packet.
    #[inline]
    pub fn handle_sent(&mut self, now: Time, size: DataSize) {
        if !self.rate.is_zero() {
            let clock = self.clock.max(now - BEHIND_MAX) + size / self.rate;
            self.clock = clock.min(now + AHEAD_MAX);
        }
    }

    /// Returns the time at which a padding packet is due if nothing else is sent before.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        (!self.rate.is_zero()).then(|| self.clock + self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mean_rate_is_the_target_and_no_burst_follows_a_pause() {
        let mut padding = Padding::new(Time::ZERO);
        let size = DataSize::from_bytes(250); // 2 ms
        padding.set_rate(Rate::from_kbps(1000), size);
        let sent_until = |padding: &mut Padding, end: Time| {
            let mut n = 0;
            while let Some(now) = padding.due().filter(|due| *due <= end) {
                padding.handle_sent(now, size);
                n += 1;
            }
            n
        };
        assert_eq!(sent_until(&mut padding, Time::from_secs(1)), 500);
        padding.handle_sent(Time::from_secs(1), DataSize::from_bytes(25_000)); // a frame of 200 ms
        assert_eq!(sent_until(&mut padding, Time::from_secs(2)), 400);
        padding.handle_sent(Time::from_secs(60), size);
        assert_eq!(padding.due(), Some(Time::from_millis(60_000 - 50 + 4)));
    }
}
