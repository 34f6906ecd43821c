//! The loss that the flow itself causes: what exceeds the loss of the path.
//!
//! Random loss depends neither on the rate nor on the queue; the loss of a queue or of a policer does. So the path's own loss is the
//! least of the last periods, and not more than that of packets that met a short queue; only a significant excess is congestion.
//!
//! ```text
//! p         = lost / reported, over a period of 1 s and 100 packets, which ends at once if 50 packets have p > 20 %
//! base      = min(p of the last 16 periods, p of the last packets that met q < q_ref / 2)
//! congested   if p - base > 1 % + 3 sqrt(p (1 - p) / n)
//! ```

use paceline_units::{Time, TimeDelta};

const PERIOD: TimeDelta = TimeDelta::from_secs(1);
const PACKETS: u32 = 100;
const PERIODS: usize = 16;
/// The packets after which, and the loss above which, a period ends at once.
const EARLY: (u32, f64) = (50, 0.2);
/// The least excess.
const EXCESS: f64 = 0.01;
/// The excess in standard deviations of the loss of a period.
const DEVIATIONS: f64 = 3.0;
/// The weight of a packet that met a short queue.
const GAIN: f64 = 1.0 / 300.0;

/// The excess of loss.
#[derive(Clone, Debug)]
pub struct ExcessLoss {
    start: Time,
    reported: u32,
    lost: u32,
    /// The ratios of the last periods, in a ring.
    past: [f32; PERIODS],
    next: usize,
    /// The loss of packets that met a short queue, and their number.
    without_queue: f64,
    counted: u32,
}

impl Default for ExcessLoss {
    fn default() -> Self {
        Self::new()
    }
}

impl ExcessLoss {
    /// Creates an estimate without packets.
    pub fn new() -> Self {
        let past = [f32::MAX; PERIODS];
        Self { start: Time::ZERO, reported: 0, lost: 0, past, next: 0, without_queue: 0.0, counted: 0 }
    }

    /// Begins a new period: what was counted was lost on another path.
    pub fn restart(&mut self, now: Time) {
        (self.start, self.reported, self.lost) = (now, 0, 0);
    }

    /// Handles the counts of a feedback message, whose packets met a short queue or not. Returns whether a period ended with a
    /// significant excess.
    pub fn handle(&mut self, now: Time, reported: u32, lost: u32, is_short: bool) -> bool {
        (self.reported, self.lost) = (self.reported + reported, self.lost + lost);
        if is_short && reported > 0 {
            let p = f64::from(lost) / f64::from(reported);
            self.counted = self.counted.saturating_add(reported);
            // Over the first packets, the mean.
            let gain = (f64::from(reported) * GAIN).max(f64::from(reported) / f64::from(self.counted)).min(1.0);
            self.without_queue += (p - self.without_queue) * gain;
        }
        let (n, p) = (f64::from(self.reported), f64::from(self.lost) / f64::from(self.reported.max(1)));
        let is_early = self.reported >= EARLY.0 && p > EARLY.1;
        if (now - self.start < PERIOD || self.reported < PACKETS) && !is_early {
            return false;
        }
        let mut base = f64::from(self.past.iter().copied().fold(f32::MAX, f32::min)).min(p);
        if self.counted >= PACKETS {
            base = base.min(self.without_queue);
        }
        self.past[self.next] = p as f32;
        self.next = (self.next + 1) % PERIODS;
        self.restart(now);
        p - base > EXCESS + DEVIATIONS * (p * (1.0 - p) / n).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of 10 packets each 25 ms for `s` seconds from `from`, of which every `nth` message loses one. Returns how often the
    /// excess is significant.
    fn run(loss: &mut ExcessLoss, from: i64, s: i64, nth: i64, is_short: bool) -> usize {
        let messages = (from * 40)..((from + s) * 40);
        messages.filter(|n| loss.handle(Time::from_millis(25 * n), 10, u32::from(n % nth == 0), is_short)).count()
    }

    /// 1 in 20 from the beginning is the path's own; 1 in 200 before and 1 in 20 then is not.
    #[test]
    fn constant_loss_is_no_congestion_and_more_is() {
        let mut constant = ExcessLoss::new();
        assert_eq!(run(&mut constant, 1, 60, 2, false), 0);
        let mut rising = ExcessLoss::new();
        assert_eq!(run(&mut rising, 1, 20, 20, false), 0);
        let found = run(&mut rising, 21, 30, 1, false);
        assert!((10..=17).contains(&found), "until it is in all of the 16 periods: {found}");
    }

    /// The same loss counts if packets that met a short queue were not lost.
    #[test]
    fn loss_of_a_queue_is_congestion_for_ever() {
        let mut loss = ExcessLoss::new();
        let mut found = 0;
        for n in 0..30 {
            found += run(&mut loss, 2 * n, 1, 1, false);
            found += run(&mut loss, 2 * n + 1, 1, 1000, true);
        }
        assert!((20..=31).contains(&found), "{found}");
    }

    /// A third of the first 50 packets of a period does not wait for the end of the period; a tenth does.
    #[test]
    fn heavy_loss_is_seen_at_once() {
        let at = |lost: u32| {
            let mut loss = ExcessLoss::new();
            run(&mut loss, 0, 10, 1000, false);
            (0..40).find(|n| loss.handle(Time::from_millis(10_000 + 25 * n), 9, lost, false))
        };
        assert_eq!([at(3), at(1)], [Some(6), None]);
    }
}
