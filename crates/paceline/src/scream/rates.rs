//! What is measured each time before the target rate is adjusted (RFC 8298, section 4.1.3): what was sent, what was
//! acknowledged, and what the encoders made.

use paceline_units::{DataSize, Rate, Time};

/// Samples of which the median is taken. "More than 10 s", at one each 200 ms.
const MEDIAN: usize = 60;

/// Which of the two rates of the flow is its throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// The greater, `max(rate_transmit, rate_ack)`.
    Greater,
    /// The lesser, as the code published with rmcat-ns3 has it.
    Lesser,
}

/// The rates of a flow.
#[derive(Clone, Debug)]
pub struct Rates {
    sent: DataSize,
    acked: DataSize,
    made: DataSize,
    since: Time,
    transmit: Rate,
    ack: Rate,
    media: Rate,
    /// The last `media`, in a ring, and the places of that in order of rate.
    history: [Rate; MEDIAN],
    order: [u8; MEDIAN],
    next: usize,
    filled: usize,
}

impl Rates {
    /// Nothing measured.
    pub fn new() -> Self {
        Self {
            sent: DataSize::ZERO,
            acked: DataSize::ZERO,
            made: DataSize::ZERO,
            since: Time::ZERO,
            transmit: Rate::ZERO,
            ack: Rate::ZERO,
            media: Rate::ZERO,
            history: [Rate::ZERO; MEDIAN],
            order: [0; MEDIAN],
            next: 0,
            filled: 0,
        }
    }

    /// From now on things count.
    pub fn begin(&mut self, now: Time) {
        self.since = now;
    }
    /// This left.
    #[inline]
    pub fn handle_sent(&mut self, size: DataSize) {
        self.sent += size;
    }
    /// The highest acknowledged packet moved by this.
    pub fn handle_acked(&mut self, size: DataSize) {
        self.acked += size;
    }
    /// The encoders made this.
    pub fn handle_made(&mut self, size: DataSize) {
        self.made += size;
    }

    /// Takes the rates since the last time.
    pub fn take(&mut self, now: Time) {
        let span = now - self.since;
        if !span.is_positive() {
            return;
        }
        self.since = now;
        let rate = |size: &mut DataSize| Rate::of(core::mem::take(size), span);
        (self.transmit, self.ack, self.media) = (rate(&mut self.sent), rate(&mut self.acked), rate(&mut self.made));
        self.remember(self.media);
    }

    /// The oldest leaves, the newest finds its place in the order.
    fn remember(&mut self, media: Rate) {
        let newest = self.next as u8;
        if self.filled == MEDIAN {
            let gone = self.order.iter().position(|place| *place == newest).unwrap_or(MEDIAN - 1);
            self.order.copy_within(gone + 1.., gone);
            self.filled -= 1;
        }
        self.history[self.next] = media;
        self.next = (self.next + 1) % MEDIAN;
        let at = self.order[..self.filled].partition_point(|place| self.history[*place as usize] < media);
        self.order.copy_within(at..self.filled, at + 1);
        self.order[at] = newest;
        self.filled += 1;
    }

    /// `rate_transmit`.
    pub fn transmit(&self) -> Rate {
        self.transmit
    }
    /// `rate_ack`.
    pub fn ack(&self) -> Rate {
        self.ack
    }
    /// `rate_media`.
    pub fn media(&self) -> Rate {
        self.media
    }
    /// `rate_media_median`.
    pub fn media_median(&self) -> Rate {
        let middle = self.order[..self.filled].get(self.filled / 2);
        middle.map_or(Rate::ZERO, |place| self.history[*place as usize])
    }
    /// `current_rate`.
    pub fn current(&self, which: Throughput) -> Rate {
        match which {
            Throughput::Greater => self.transmit.max(self.ack),
            Throughput::Lesser => self.transmit.min(self.ack),
        }
    }
}

impl Default for Rates {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_over_the_time_since_the_last() {
        let mut rates = Rates::new();
        let size = DataSize::from_bytes;
        rates.begin(Time::from_millis(1000));
        (0..5).for_each(|_| rates.handle_sent(size(5000)));
        rates.handle_acked(size(12_500));
        rates.handle_made(size(50_000));
        rates.take(Time::from_millis(1200));
        assert_eq!(rates.current(Throughput::Greater), Rate::from_kbps(1000));
        assert_eq!(rates.current(Throughput::Lesser), Rate::from_kbps(500));
        assert_eq!(rates.media(), Rate::from_kbps(2000));
        rates.take(Time::from_millis(1200));
        assert_eq!(rates.transmit(), Rate::from_kbps(1000), "no time, no rate");
        rates.take(Time::from_millis(1400));
        assert_eq!((rates.transmit(), rates.ack(), rates.media()), (Rate::ZERO, Rate::ZERO, Rate::ZERO));
    }

    #[test]
    fn the_median_is_that_of_the_last_sixty() {
        let mut rates = Rates::new();
        let made: Vec<u64> = (0..500).map(|n| n * 7919 % 101 * (n / 90 % 3)).collect();
        assert_eq!(rates.media_median(), Rate::ZERO);
        for (n, kilobytes) in made.iter().enumerate() {
            rates.handle_made(DataSize::from_bytes(1000 * kilobytes));
            rates.take(Time::from_millis(200 * (n as i64 + 1)));
            let mut window = made[(n + 1).saturating_sub(MEDIAN)..=n].to_vec();
            window.sort_unstable();
            assert_eq!(rates.media_median(), Rate::from_kbps(40 * window[window.len() / 2]), "{n}");
        }
    }

    /// A pause is forgiven for half of the median's 12 s.
    #[test]
    fn the_median_forgives_a_pause() {
        let mut rates = Rates::new();
        for n in 0..60 {
            rates.handle_made(DataSize::from_bytes(25_000));
            rates.take(Time::from_millis(200 * (n + 1)));
        }
        let pause = (60..).find(|n| {
            rates.take(Time::from_millis(200 * (n + 1)));
            rates.media_median() < Rate::from_kbps(1000)
        });
        assert!((85..=95).contains(&pause.unwrap()), "{pause:?}");
    }
}
