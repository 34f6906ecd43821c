// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delivery rate: what the link gives to the flow while it is busy, and what arrives.
//!
//! A packet that waited in the queue arrives as soon as the link could carry it, so the time since the packet before is what the link needed.
//! Packets that did not wait say how fast they were sent.
//!
//! ```text
//! D = bytes of packets that waited / sum of their times since the packet before,    over the last W        (1)
//! R = bytes that arrived / W                                                        over the last W
//! ```
//!
//! A packet that arrived a time t ago has the weight exp(-t / W).

use paceline_units::{DataSize, RemoteTime, TimeDelta};

/// The two rates.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// W, s.
    window: f64,
    last: Option<RemoteTime>,
    /// The bits of packets that waited, and the time that they took, s.
    waited: (f64, f64),
    /// The bits of all packets.
    all: f64,
}

impl Delivery {
    /// Creates rates of no packets, over the time W.
    pub fn new(window: TimeDelta) -> Self {
        Self { window: window.as_secs_f64(), last: None, waited: (0.0, 0.0), all: 0.0 }
    }

    /// Handles a packet that arrived at `at`, and that waited in a queue or not.
    pub fn handle_arrival(&mut self, at: RemoteTime, size: DataSize, has_waited: bool) {
        let last = *self.last.get_or_insert(at);
        let time = (at - last).max(TimeDelta::ZERO).as_secs_f64();
        self.last = Some(last.max(at));
        // exp(-t / W), for times that are short beside W.
        let kept = (1.0 - time / self.window).max(0.0);
        let bits = size.as_bits() as f64;
        self.all = self.all * kept + bits;
        let (earlier, busy) = (self.waited.0 * kept, self.waited.1 * kept);
        self.waited = if has_waited { (earlier + bits, busy + time) } else { (earlier, busy) };
    }

    pub fn received(&self) -> f64 {
        self.all / self.window
    }

    /// Returns D, bit/s; R if packets have waited for less than W / 4.
    pub fn delivered(&self) -> f64 {
        let (bits, busy) = self.waited;
        if busy * 4.0 < self.window { self.received() } else { bits / busy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets of 1250 bytes, one each `gap` ms, from `from` to `until`, at any offset of the clock.
    fn arrivals(delivery: &mut Delivery, from: i64, until: i64, gap: usize, has_waited: bool) {
        for ms in (from..until).step_by(gap) {
            delivery.handle_arrival(RemoteTime::from_millis(ms - 90_000), DataSize::from_bytes(1250), has_waited);
        }
    }

    /// Packets that waited, each 5 ms, are 2 Mbit/s. Later ones do not wait and come each 20 ms: the link could carry more, and what arrives
    /// is 0.5 Mbit/s (2 % more with this weight of a packet, up to one packet of 0.1 Mbit/s more in its first moment).
    #[test]
    fn packets_that_did_not_wait_do_not_show_the_link() {
        let mut delivery = Delivery::new(TimeDelta::from_millis(100));
        arrivals(&mut delivery, 0, 1000, 5, true);
        assert!((delivery.delivered() / 2e6 - 1.0).abs() < 1e-3, "{}", delivery.delivered());
        arrivals(&mut delivery, 1000, 1060, 20, false);
        assert!((delivery.delivered() / 2e6 - 1.0).abs() < 1e-3, "{}", delivery.delivered());
        arrivals(&mut delivery, 1060, 3000, 20, false);
        assert!((4.9e5..=6.1e5).contains(&delivery.delivered()), "{}", delivery.delivered());
    }

    /// A third of the rate is seen to two thirds within W: 1 - 1/e.
    #[test]
    fn slower_link_is_seen_within_its_memory() {
        let mut delivery = Delivery::new(TimeDelta::from_millis(100));
        arrivals(&mut delivery, 0, 1000, 2, true);
        assert!((delivery.delivered() / 5e6 - 1.0).abs() < 1e-3, "{}", delivery.delivered());
        arrivals(&mut delivery, 1000, 1100, 6, true);
        assert!((2.5e6..=3.5e6).contains(&delivery.delivered()), "{}", delivery.delivered());
        arrivals(&mut delivery, 1100, 1500, 6, true);
        assert!((1.6e6..=1.75e6).contains(&delivery.delivered()), "{}", delivery.delivered());
    }

    /// Order does not matter: a packet that was overtaken adds its bytes and no time.
    #[test]
    fn overtaken_packets_add_no_time() {
        let mut delivery = Delivery::new(TimeDelta::from_millis(100));
        for ms in (0..1000).step_by(10) {
            for at in [ms + 5, ms] {
                delivery.handle_arrival(RemoteTime::from_millis(at), DataSize::from_bytes(1250), true);
            }
        }
        assert!((1.9e6..=2.1e6).contains(&delivery.delivered()), "{}", delivery.delivered());
    }
}
