//! The delivery rate: what arrived, divided by the time in which it arrived, on the receiver's clock.
//!
//! ```text
//! D(W) = bytes that arrived in the last W / W
//! D    = D + 0.5 (D(W) - D);   D(W) if that differs from D by more than 30 %                      (1)
//! ```
//!
//! W is the shortest of 100, 200, 400 and 800 ms that has ten packets, and at least 200 ms. If the rate of the last 100 ms is below
//! 0.7 D(W), and that time has ten packets, it takes the place of D(W): a link that became slow is seen early.
//!
//! While the queue of the bottleneck is not empty, D is what the link gives to the flow. Otherwise it is what the flow sent.

use paceline_units::{DataSize, Rate, RemoteTime, TimeDelta};

/// Arrivals are counted per step of this length.
const STEP: TimeDelta = TimeDelta::from_millis(10);
/// The number of steps that are kept.
const STEPS: usize = 128;
/// The windows, in steps. The rate is that of the first one with enough packets.
const WINDOWS: [usize; 4] = [10, 20, 40, 80];
/// Below this many packets the number of packets in a window, and not the rate, decides what is measured.
const ENOUGH: u32 = 10;
/// The weight of a sample.
const GAIN: f64 = 0.5;
/// A sample that differs by more than this part is a change of the link, and taken as it is.
const CHANGE: f64 = 0.3;
/// The window that sees early that a link became slow.
const EARLY: TimeDelta = TimeDelta::from_millis(100);

/// Counts arrivals in steps of 10 ms.
#[derive(Clone, Debug)]
pub struct DeliveryRate {
    bytes: [u32; STEPS],
    packets: [u16; STEPS],
    /// The number of the step of the latest arrival, from the epoch of the receiver's clock.
    step: i64,
    /// The number of the step of the first arrival.
    first: Option<i64>,
    /// The smoothed rate.
    smoothed: Rate,
}

impl DeliveryRate {
    /// Creates a meter without arrivals.
    pub fn new() -> Self {
        Self { bytes: [0; STEPS], packets: [0; STEPS], step: 0, first: None, smoothed: Rate::ZERO }
    }

    /// Handles a packet that arrived at `at`. Packets may arrive in any order; those older than 1.28 s are ignored.
    pub fn handle_arrival(&mut self, at: RemoteTime, size: DataSize) {
        let step = at.as_nanos().div_euclid(STEP.as_nanos());
        if self.first.is_none() {
            (self.step, self.first) = (step, Some(step));
        }
        while self.step < step {
            // After a pause all steps are empty.
            self.step = (self.step + 1).max(step - STEPS as i64 + 1);
            let slot = self.step.rem_euclid(STEPS as i64) as usize;
            (self.bytes[slot], self.packets[slot]) = (0, 0);
        }
        if step > self.step - STEPS as i64 {
            self.count(step, size);
        }
    }

    fn count(&mut self, step: i64, size: DataSize) {
        let slot = step.rem_euclid(STEPS as i64) as usize;
        let bytes = u32::try_from(size.as_bytes()).unwrap_or(u32::MAX);
        self.bytes[slot] = self.bytes[slot].saturating_add(bytes);
        self.packets[slot] = self.packets[slot].saturating_add(1);
    }

    /// Takes a sample and returns the smoothed rate and the window (equation 1); `None` before a window has passed.
    pub fn sample(&mut self, shortest: TimeDelta) -> Option<(Rate, TimeDelta)> {
        let (rate, window) = self.rate(shortest)?;
        let early = self.rate(EARLY).map_or(rate, |(early, _)| early);
        let sample = if early < rate.scale(1.0 - CHANGE) { early } else { rate };
        let (new, old) = (sample.as_bps_f64(), self.smoothed.as_bps_f64());
        let gain = if (new - old).abs() > CHANGE * old { 1.0 } else { GAIN };
        self.smoothed = Rate::from_bps_f64(old + gain * (new - old));
        Some((self.smoothed, window))
    }

    /// Returns the rate over the shortest window, of at least `shortest` steps of 10 ms, that has ten packets, and that
    /// window; `None` before a window has passed. The steps that end before the latest arrival's count, so that a part of a
    /// step does not.
    pub fn rate(&self, shortest: TimeDelta) -> Option<(Rate, TimeDelta)> {
        let first = self.first?;
        let mut best = None;
        let (mut bytes, mut packets, mut counted) = (0_u64, 0_u32, 0);
        for window in WINDOWS {
            if self.step - first < window as i64 {
                break;
            }
            for back in counted + 1..=window {
                let slot = (self.step - back as i64).rem_euclid(STEPS as i64) as usize;
                (bytes, packets) = (bytes + u64::from(self.bytes[slot]), packets + u32::from(self.packets[slot]));
            }
            counted = window;
            let span = STEP * window as i64;
            best = Some((Rate::from_size_and_time(DataSize::from_bytes(bytes), span), span));
            if packets >= ENOUGH && span >= shortest {
                break;
            }
        }
        best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    /// Packets of 1250 bytes each `gap` ms from `from` to `until`, at any offset of the clock.
    fn arrivals(meter: &mut DeliveryRate, from: i64, until: i64, gap: usize) {
        for ms in (from..until).step_by(gap) {
            meter.handle_arrival(RemoteTime::from_millis(ms - 90_000), DataSize::from_bytes(1250));
        }
    }

    /// A packet each 10 ms is 1 Mbit/s, and ten of them need 100 ms; one each 50 ms is 200 kbit/s, and ten need 500 ms.
    #[test]
    fn window_has_ten_packets() {
        let mut meter = DeliveryRate::new();
        assert_eq!(meter.rate(MS(100)), None);
        arrivals(&mut meter, 0, 90, 10);
        assert_eq!(meter.rate(MS(100)), None, "no window has passed");
        arrivals(&mut meter, 90, 1000, 10);
        assert_eq!(meter.rate(MS(100)), Some((Rate::from_kbps(1000), MS(100))));
        assert_eq!(meter.rate(MS(200)), Some((Rate::from_kbps(1000), MS(200))));
        let mut slow = DeliveryRate::new();
        arrivals(&mut slow, 0, 2000, 50);
        assert_eq!(slow.rate(MS(100)), Some((Rate::from_kbps(200), MS(800))));
    }

    /// Order does not matter within 1.28 s, and packets that are older are ignored.
    #[test]
    fn late_packets_count_where_they_arrived() {
        let mut meter = DeliveryRate::new();
        arrivals(&mut meter, 0, 1000, 20);
        arrivals(&mut meter, 10, 1000, 20);
        assert_eq!(meter.rate(MS(100)).unwrap().0, Rate::from_kbps(1000));
        arrivals(&mut meter, 5000, 6000, 10);
        arrivals(&mut meter, 3000, 4000, 1);
        assert_eq!(meter.rate(MS(400)).unwrap().0, Rate::from_kbps(1000));
    }

    /// A step of the link is taken at once.
    #[test]
    fn changes_are_not_smoothed() {
        let mut meter = DeliveryRate::new();
        arrivals(&mut meter, 0, 1000, 2);
        assert_eq!(meter.sample(MS(200)).unwrap().0, Rate::from_kbps(5000), "the first sample");
        // 130 ms of a third of the rate: the window of 100 ms sees it, that of 200 ms is half full of it.
        arrivals(&mut meter, 1000, 1130, 6);
        let kbps = meter.sample(MS(200)).unwrap().0.as_bps_f64() / 1e3;
        assert!((1500.0..=1900.0).contains(&kbps), "{kbps}");
        // A fifth more is noise at first.
        let mut meter = DeliveryRate::new();
        arrivals(&mut meter, 0, 1000, 20);
        assert_eq!(meter.sample(MS(200)).unwrap().0, Rate::from_kbps(500), "the first sample");
        arrivals(&mut meter, 1000, 1100, 14);
        let kbps = meter.sample(MS(200)).unwrap().0.as_bps_f64() / 1e3;
        assert!((540.0..=560.0).contains(&kbps), "half of the difference: {kbps}");
    }
}
