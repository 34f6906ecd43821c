//! Padding: fills what media leaves free of the target, so that the flow's mean rate is the target.
//!
//! A virtual clock runs one packet-time ahead for each packet sent, media or not. When it lags behind the real one by
//! a padding packet's time, a padding packet is due. A large frame puts it ahead, which counts for at most
//! [`AHEAD_MAX`]; silence leaves it behind, which counts for at most [`BEHIND_MAX`], so that a pause ends in no burst.

use paceline_units::{DataSize, Rate, Time, TimeDelta};

const AHEAD_MAX: TimeDelta = TimeDelta::from_millis(500);
const BEHIND_MAX: TimeDelta = TimeDelta::from_millis(50);

/// Payload bytes of a padding packet: the most that RTP's padding octet can count, in whole words.
pub(crate) const PADDING_PAYLOAD: u64 = 252;

/// Decides when padding is due.
#[derive(Debug)]
pub(crate) struct Padding {
    rate: Rate,
    clock: Time,
}

impl Padding {
    pub fn new(start: Time) -> Self {
        Self { rate: Rate::ZERO, clock: start }
    }

    /// Fills up to `rate`; zero: never.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// A packet left.
    pub fn handle_sent(&mut self, now: Time, size: DataSize) {
        if !self.rate.is_zero() {
            let clock = self.clock.max(now - BEHIND_MAX) + size / self.rate;
            self.clock = clock.min(now + AHEAD_MAX);
        }
    }

    /// When a padding packet of `size` is due, if nothing else is sent before.
    pub fn due(&self, size: DataSize) -> Time {
        if self.rate.is_zero() { Time::MAX } else { self.clock + size / self.rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_is_the_target_and_a_pause_is_no_burst() {
        let mut padding = Padding::new(Time::ZERO);
        padding.set_rate(Rate::from_kbps(1000));
        let size = DataSize::from_bytes(250); // 2 ms
        let sent_until = |padding: &mut Padding, end: Time| {
            let mut n = 0;
            while padding.due(size) <= end {
                let now = padding.due(size);
                padding.handle_sent(now, size);
                n += 1;
            }
            n
        };
        assert_eq!(sent_until(&mut padding, Time::from_secs(1)), 500);
        padding.handle_sent(Time::from_secs(1), DataSize::from_bytes(25_000)); // a frame of 200 ms
        assert_eq!(sent_until(&mut padding, Time::from_secs(2)), 400);
        padding.handle_sent(Time::from_secs(60), size);
        assert_eq!(padding.due(size), Time::from_millis(60_000 - 50 + 4));
    }
}
