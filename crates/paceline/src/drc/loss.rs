// SPDX-License-Identifier: MIT OR Apache-2.0
//! The loss that the flow itself causes, found by experiment.
//!
//! A cumulative sum (Page, Biometrika 1954) watches for a loss above that of the path. S grows with each loss, falls with each arrival, and is
//! never negative, so that heavy loss is found at once, and light loss after many packets.
//!
//! ```text
//! p_0 = max(loss of the path, e / 2),   p_1 = 2 p_0 + e
//! S   = max(S + lost ln(p_1 / p_0) + arrived ln((1 - p_1) / (1 - p_0)), 0)          (11)
//! congested   if S > h, and S > 0 for W
//! ```
//!
//! The rate is then lowered, and the flow waits for two periods P: the first shows what was sent before, the second, of 100 packets at least,
//! what the decrease has changed. If the loss still exceeds that of the path by e, and most packets met a short queue, the decrease was in
//! vain: the loss is the path's own. A queue that stands in spite of the decrease loses packets itself. The loss of the path falls to that of five
//! periods in which nothing was found.

use super::DrcConfig;
use paceline_units::Time;

/// The periods of an experiment, and of the loss of the path.
const PERIODS: (i64, i64) = (2, 5);

/// What was reported, and lost, since a time.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    start: Time,
    reported: u32,
    lost: u32,
    /// The packets that met a short queue.
    short: u32,
    /// The bits that arrived.
    bits: f64,
}

impl Counts {
    fn since(start: Time) -> Self {
        Self { start, ..Self::default() }
    }

    fn add(&mut self, seen: &Seen) {
        self.reported += seen.arrived + seen.lost;
        self.lost += seen.lost;
        self.short += if seen.is_short { seen.arrived + seen.lost } else { 0 };
        self.bits += seen.bits;
    }

    fn ratio(&self) -> f64 {
        f64::from(self.lost) / f64::from(self.reported.max(1))
    }
}

/// What a message shows.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    /// The packets that arrived.
    pub arrived: u32,
    /// The packets that were lost.
    pub lost: u32,
    /// The bits that arrived.
    pub bits: f64,
    /// Whether the queue is within its reference.
    pub is_short: bool,
}

/// What a message changes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// Nothing.
    Nothing,
    /// The flow loses packets that it would not lose at a lower rate. What arrived while it lost them, bit/s.
    Congested(f64),
    /// The last decrease has not changed the loss.
    InVain,
}

/// The loss of the path.
#[derive(Clone, Debug)]
pub struct LossExperiment {
    /// The loss of the path, as far as it is known.
    path: f64,
    /// S, and what was counted since it was 0.
    sum: f64,
    rising: Counts,
    /// What was counted in the current periods.
    current: Counts,
    /// Whether the rate was lowered, and it is not known what that has changed.
    pub is_testing: bool,
}

impl LossExperiment {
    /// Creates the state of a path that loses nothing by itself, as far as is known.
    pub fn new() -> Self {
        let none = Counts::default();
        Self { path: 0.0, sum: 0.0, rising: none, current: none, is_testing: false }
    }

    /// Begins again: what was counted was lost on another path, or before the rate was lowered.
    pub fn restart(&mut self, now: Time) {
        let none = Counts::since(now);
        *self = Self { sum: 0.0, rising: none, current: none, is_testing: false, path: self.path };
    }

    pub fn handle(&mut self, now: Time, seen: &Seen, config: &DrcConfig) -> Verdict {
        if self.is_testing { self.test(now, seen, config) } else { self.watch(now, seen, config) }
    }

    fn test(&mut self, now: Time, seen: &Seen, config: &DrcConfig) -> Verdict {
        let time = now - self.current.start;
        if time < config.period {
            return Verdict::Nothing;
        }
        self.current.add(seen);
        let Counts { reported, short, .. } = self.current;
        if time < config.period * PERIODS.0 || f64::from(reported) < config.packets {
            return Verdict::Nothing;
        }
        let loss = self.current.ratio();
        let is_in_vain = loss - self.path > config.excess && short * 2 > reported;
        if is_in_vain {
            self.path = loss;
        }
        self.restart(now);
        if is_in_vain { Verdict::InVain } else { Verdict::Nothing }
    }

    fn watch(&mut self, now: Time, seen: &Seen, config: &DrcConfig) -> Verdict {
        self.current.add(seen);
        let (time, packets) = (now - self.current.start, f64::from(self.current.reported));
        if time >= config.period * PERIODS.1 && packets >= PERIODS.1 as f64 * config.packets {
            self.path = self.path.min(self.current.ratio());
            self.current = Counts::since(now);
        }
        let usual = self.path.max(config.excess / 2.0);
        let more = (2.0 * usual + config.excess).min(0.9);
        self.sum += f64::from(seen.lost) * libm::log(more / usual)
            + f64::from(seen.arrived) * libm::log((1.0 - more) / (1.0 - usual));
        if self.sum <= 0.0 {
            (self.sum, self.rising) = (0.0, Counts::since(now));
            return Verdict::Nothing;
        }
        self.rising.add(seen);
        let time = now - self.rising.start;
        if self.sum < config.evidence || time < config.delivery {
            return Verdict::Nothing;
        }
        let rate = self.rising.bits / time.as_secs_f64();
        self.restart(now);
        self.is_testing = true;
        Verdict::Congested(rate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const C: DrcConfig = DrcConfig::DEFAULT;

    /// Messages of 10 packets of 1250 bytes each 25 ms, from message `from` on, of which `lost(n)` are lost. Returns the verdicts and their messages.
    fn run(
        loss: &mut LossExperiment,
        from: i64,
        until: i64,
        is_short: bool,
        lost: impl Fn(i64) -> u32,
    ) -> Vec<(i64, Verdict)> {
        let message = |n: i64| {
            let lost = lost(n);
            let seen = Seen { arrived: 10 - lost, lost, bits: f64::from(10 - lost) * 1e4, is_short };
            (n, loss.handle(Time::from_millis(25 * n), &seen, &C))
        };
        (from..until).map(message).filter(|(_, verdict)| *verdict != Verdict::Nothing).collect()
    }

    /// S grows by ln 4 for each loss and falls by 0.0152 for each arrival. Two of ten in a message are 2.65, so three messages exceed 7, but S must
    /// be above 0 for 100 ms, which is after four. 8 of 10 packets each 25 ms are 3.2 Mbit/s. One loss in 40 packets: 0.79 in four messages.
    #[test]
    fn heavy_loss_is_found_at_once_and_light_loss_later() {
        let mut loss = LossExperiment::new();
        run(&mut loss, 0, 400, true, |_| 0);
        let found = run(&mut loss, 400, 440, true, |_| 2);
        let (n, Verdict::Congested(rate)) = found[0] else { panic!("{found:?}") };
        assert!((403..=404).contains(&n) && (3.1e6..=4.3e6).contains(&rate), "{n} {rate}");
        let mut loss = LossExperiment::new();
        run(&mut loss, 0, 400, true, |_| 0);
        let found = run(&mut loss, 400, 480, true, |n| u32::from(n % 4 == 0));
        assert!((430..=440).contains(&found[0].0), "{found:?}");
        // One loss in 100 packets is the least that is never found: 1.39 - 1.51 < 0.
        let mut loss = LossExperiment::new();
        assert_eq!(run(&mut loss, 0, 4000, true, |n| u32::from(n % 10 == 0)), []);
    }

    /// 5 % are lost at any rate: the first decrease is in vain, and no other follows. The loss is the path's own then.
    #[test]
    fn loss_that_no_decrease_changes_is_the_paths_own() {
        let mut loss = LossExperiment::new();
        let found = run(&mut loss, 0, 2400, true, |n| u32::from(n % 2 == 0));
        assert!(matches!(found[..], [(_, Verdict::Congested(_)), (_, Verdict::InVain)]), "{found:?}");
        assert!((found[1].0 - found[0].0 - 80).abs() <= 1, "two seconds: {found:?}");
        assert!((0.045..=0.055).contains(&loss.path), "{}", loss.path);
        // A path that loses less is learned in five periods.
        run(&mut loss, 2400, 3000, true, |_| 0);
        assert_eq!(loss.path, 0.0);
    }

    /// The same loss is the flow's own if the decrease ends it, or if the queue stands all the while.
    #[test]
    fn loss_of_a_queue_is_the_flows_own() {
        let mut loss = LossExperiment::new();
        let found = run(&mut loss, 0, 40, true, |n| u32::from(n % 2 == 0));
        assert!(matches!(found[..], [(_, Verdict::Congested(_))]), "{found:?}");
        assert_eq!((run(&mut loss, 40, 400, true, |_| 0), loss.path), (Vec::new(), 0.0));
        let mut loss = LossExperiment::new();
        let found = run(&mut loss, 0, 2400, false, |n| u32::from(n % 2 == 0));
        assert!(found.len() > 10 && found.iter().all(|(_, of)| matches!(of, Verdict::Congested(_))), "{found:?}");
        assert_eq!(loss.path, 0.0);
    }
}
