//! The loss that the flow itself causes: what exceeds the loss of the path.
//!
//! Random loss depends neither on the rate nor on the queue; the loss of a queue or of a policer does. So the path's own loss is the
//! least of the last periods, and not more than that of packets that met a short queue; only a significant excess is congestion.
//!
//! ```text
//! p         = lost / reported, over a period of 1 s and 100 packets, which ends at once if 50 packets have p > 20 %
//! p_0       = p of the last packets that met q < q_ref / 2
//! base      = min(p of the last 16 periods, p_0)
//! congested   if p - base > 1 % + 3 sqrt(p (1 - p) / n)
//! ```
//!
//! An AQM keeps the loss of a flow that fills its queue at 1 to 3 %, which one period of 100 packets does not distinguish from chance. A
//! longer one sees 1.6 % with 500 packets, and 1 % with 1600:
//!
//! ```text
//! p         = lost / reported of packets that met q >= q_ref / 2, over a period of 5 s and 500 such packets
//! lasting     if p - p_0 > 0.5 % + 2 sqrt(p (1 - p) / n)
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
/// The same of lasting loss: the period, its packets, the least excess and the deviations.
const LASTING: (TimeDelta, u32, f64, f64) = (TimeDelta::from_secs(5), 500, 0.005, 2.0);
/// The weight of a packet that met a short queue.
const GAIN: f64 = 1.0 / 300.0;

/// What a message completes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Excess {
    /// A period with a significant excess.
    pub congested: bool,
    /// A long period in which the queue has lost packets.
    pub lasting: bool,
}

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
    /// The long period: its start, the packets that met a queue, and those that were lost.
    long: (Time, u32, u32),
}

impl ExcessLoss {
    /// Creates an estimate without packets.
    pub fn new() -> Self {
        let past = [f32::MAX; PERIODS];
        Self {
            start: Time::ZERO,
            reported: 0,
            lost: 0,
            past,
            next: 0,
            without_queue: 0.0,
            counted: 0,
            long: (Time::ZERO, 0, 0),
        }
    }

    /// Begins new periods: what was counted was lost on another path.
    pub fn restart(&mut self, now: Time) {
        (self.start, self.reported, self.lost) = (now, 0, 0);
        self.long = (now, 0, 0);
    }

    /// Handles the counts of a feedback message, whose packets met a short queue or not.
    pub fn handle(&mut self, now: Time, reported: u32, lost: u32, is_short: bool) -> Excess {
        let lasting = self.is_lasting(now, reported, lost, is_short);
        Excess { congested: self.is_congested(now, reported, lost, is_short), lasting }
    }

    fn is_lasting(&mut self, now: Time, reported: u32, lost: u32, is_short: bool) -> bool {
        let (period, packets, excess, deviations) = LASTING;
        if !is_short {
            (self.long.1, self.long.2) = (self.long.1 + reported, self.long.2 + lost);
        }
        let (start, reported, lost) = self.long;
        if now - start < period || reported < packets {
            return false;
        }
        self.long = (now, 0, 0);
        let (n, p) = (f64::from(reported), f64::from(lost) / f64::from(reported));
        self.counted >= PACKETS && p - self.without_queue > excess + deviations * libm::sqrt(p * (1.0 - p) / n)
    }

    fn is_congested(&mut self, now: Time, reported: u32, lost: u32, is_short: bool) -> bool {
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
        (self.start, self.reported, self.lost) = (now, 0, 0);
        p - base > EXCESS + DEVIATIONS * libm::sqrt(p * (1.0 - p) / n)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of 10 packets each 25 ms for `s` seconds from `from`, of which every `nth` message loses one. Returns how often the
    /// excess is significant.
    fn run(loss: &mut ExcessLoss, from: i64, s: i64, nth: i64, is_short: bool) -> usize {
        let messages = (from * 40)..((from + s) * 40);
        let found = |n: &i64| loss.handle(Time::from_millis(25 * n), 10, u32::from(n % nth == 0), is_short).congested;
        messages.filter(found).count()
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
            (0..40).find(|n| loss.handle(Time::from_millis(10_000 + 25 * n), 9, lost, false).congested)
        };
        assert_eq!([at(3), at(1)], [Some(6), None]);
    }

    /// 1.25 % of the packets that meet a queue are lost: too few for a period of a second, enough for the long one, if without a queue
    /// fewer are lost. The same loss without a queue makes it the path's own.
    #[test]
    fn loss_that_lasts_is_seen_over_a_longer_time() {
        let found = |loss_without_queue: i64| {
            let (mut loss, mut found) = (ExcessLoss::new(), (0, 0));
            for n in 40..(40 * 61) {
                let is_short = n / 40 % 6 == 0;
                let nth = if is_short { loss_without_queue } else { 8 };
                let excess = loss.handle(Time::from_millis(25 * n), 10, u32::from(n % nth == 0), is_short);
                found = (found.0 + u32::from(excess.congested), found.1 + u32::from(excess.lasting));
            }
            found
        };
        assert_eq!(found(8), (0, 0));
        let (congested, lasting) = found(1000);
        assert!(congested == 0 && (8..=12).contains(&lasting), "{congested} {lasting}");
    }
}
