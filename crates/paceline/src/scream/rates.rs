// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rates that are measured before each update of the target rate (RFC 8298, section 4.1.3): sent, acknowledged and
//! encoded.

use paceline_units::{DataSize, Rate, Time};

/// The samples of the median: "more than 10 s", with one sample each 200 ms.
const MEDIAN: usize = 60;

/// The definition of the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// The greater rate, `max(rate_transmit, rate_ack)`.
    Greater,
    /// The lesser rate, as in the code published with rmcat-ns3.
    Lesser,
}

/// The rates of a flow.
#[derive(Clone, Debug)]
pub struct Rates {
    sent: DataSize,
    acked: DataSize,
    encoded: DataSize,
    since: Time,
    /// `rate_transmit`.
    pub transmit: Rate,
    /// `rate_ack`.
    pub ack: Rate,
    /// `rate_media`.
    pub media: Rate,
    /// The last values of `media`, in a ring buffer.
    history: [Rate; MEDIAN],
    next: usize,
    len: usize,
}

impl Default for Rates {
    fn default() -> Self {
        Self {
            sent: DataSize::ZERO,
            acked: DataSize::ZERO,
            encoded: DataSize::ZERO,
            since: Time::ZERO,
            transmit: Rate::ZERO,
            ack: Rate::ZERO,
            media: Rate::ZERO,
            history: [Rate::ZERO; MEDIAN],
            next: 0,
            len: 0,
        }
    }
}

impl Rates {
    pub fn start(&mut self, now: Time) {
        self.since = now;
    }
    #[inline]
    pub fn handle_sent(&mut self, size: DataSize) {
        self.sent += size;
    }
    pub fn handle_acked(&mut self, size: DataSize) {
        self.acked += size;
    }
    pub fn handle_encoded(&mut self, size: DataSize) {
        self.encoded += size;
    }

    /// Computes the rates since the last call.
    pub fn update(&mut self, now: Time) {
        let span = now - self.since;
        if !span.is_positive() {
            return;
        }
        self.since = now;
        let rate = |size: &mut DataSize| Rate::from_size_and_time(core::mem::take(size), span);
        (self.transmit, self.ack, self.media) = (rate(&mut self.sent), rate(&mut self.acked), rate(&mut self.encoded));
        self.history[self.next] = self.media;
        self.next = (self.next + 1) % MEDIAN;
        self.len = (self.len + 1).min(MEDIAN);
    }

    pub fn media_median(&self) -> Rate {
        let mut sorted = self.history;
        let known = &mut sorted[..self.len];
        if known.is_empty() { Rate::ZERO } else { *known.select_nth_unstable(self.len / 2).1 }
    }
    pub fn current(&self, which: Throughput) -> Rate {
        match which {
            Throughput::Greater => self.transmit.max(self.ack),
            Throughput::Lesser => self.transmit.min(self.ack),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn rates_cover_the_time_since_the_last_update() {
        let mut rates = Rates::default();
        let size = DataSize::from_bytes;
        rates.start(Time::from_millis(1000));
        (0..5).for_each(|_| rates.handle_sent(size(5000)));
        rates.handle_acked(size(12_500));
        rates.handle_encoded(size(50_000));
        rates.update(Time::from_millis(1200));
        assert_eq!(rates.current(Throughput::Greater), Rate::from_kbps(1000));
        assert_eq!(rates.current(Throughput::Lesser), Rate::from_kbps(500));
        assert_eq!(rates.media, Rate::from_kbps(2000));
        rates.update(Time::from_millis(1200));
        assert_eq!(rates.transmit, Rate::from_kbps(1000), "no time has passed");
        rates.update(Time::from_millis(1400));
        assert_eq!((rates.transmit, rates.ack, rates.media), (Rate::ZERO, Rate::ZERO, Rate::ZERO));
    }

    #[test]
    fn median_covers_the_last_sixty_samples() {
        let mut rates = Rates::default();
        let encoded: Vec<u64> = (0..500).map(|n| n * 7919 % 101 * (n / 90 % 3)).collect();
        assert_eq!(rates.media_median(), Rate::ZERO);
        for (n, kilobytes) in encoded.iter().enumerate() {
            rates.handle_encoded(DataSize::from_bytes(1000 * kilobytes));
            rates.update(Time::from_millis(200 * (n as i64 + 1)));
            let mut window = encoded[(n + 1).saturating_sub(MEDIAN)..=n].to_vec();
            window.sort_unstable();
            assert_eq!(rates.media_median(), Rate::from_kbps(40 * window[window.len() / 2]), "{n}");
        }
    }

    /// Half of its 12 s.
    #[test]
    fn median_ignores_short_pauses() {
        let mut rates = Rates::default();
        for n in 0..60 {
            rates.handle_encoded(DataSize::from_bytes(25_000));
            rates.update(Time::from_millis(200 * (n + 1)));
        }
        let pause = (60..).find(|n| {
            rates.update(Time::from_millis(200 * (n + 1)));
            rates.media_median() < Rate::from_kbps(1000)
        });
        assert!((85..=95).contains(&pause.unwrap()), "{pause:?}");
    }
}
