// SPDX-License-Identifier: MIT OR Apache-2.0
//! `faulty-never-increases`: GoogCC whose target falls as it should and never rises, not even above the start rate. Probes, which
//! serve to increase the rate, are not sent.

use super::altered::{Alteration, Altered};
use paceline::{Decision, Entry, Event, ProbeCluster, SendHalf, Setup, Signals};
use paceline_units::{Rate, Time};

pub(super) const NAME: &str = "faulty-never-increases";

pub(super) fn entry() -> Entry {
    let summary = "one fault: googcc whose target never rises above its lowest value since the start";
    Entry::new(NAME, summary, "googcc, with the lowest target so far in place of the target", config())
}

fn config() -> Altered<NeverIncreases> {
    Altered::googcc(NeverIncreases { lowest: Rate::MAX })
}

#[derive(Clone, Debug)]
struct NeverIncreases {
    /// The lowest target so far; at the beginning the start rate.
    lowest: Rate,
}

impl Alteration for NeverIncreases {
    fn started(&self, setup: &Setup) -> Self {
        Self { lowest: setup.start }
    }

    fn poll_probe(&mut self, half: &mut dyn SendHalf, now: Time) -> Option<ProbeCluster> {
        while half.poll_probe(now).is_some() {}
        None
    }

    /// A new minimum applies at once.
    fn handle_event(&mut self, half: &mut dyn SendHalf, now: Time, event: &Event<'_>, signals: &mut Signals) {
        half.handle_event(now, event, signals);
        if let Event::Bounds(bounds) = event {
            self.lowest = self.lowest.max(bounds.min);
        }
    }

    fn update(&mut self, _: Time, decision: &Decision) {
        self.lowest = self.lowest.min(decision.target);
    }

    fn decision(&self, mut decision: Decision) -> Decision {
        let target = decision.target.min(self.lowest);
        let share = target.as_bps_f64() / decision.target.as_bps_f64();
        decision.target = target;
        decision.stable_target = decision.stable_target.min(target);
        decision.pacing = decision.pacing.scale(share).max(target);
        decision.padding = decision.padding.min(target);
        decision
    }
}

#[cfg(test)]
mod tests {
    use super::super::altered::tests::{SETUP, at, feed};
    use super::*;
    use paceline::{Bounds, Config};

    #[test]
    fn target_falls_with_delay_and_never_rises() {
        let mut half = config().halves(&SETUP).send.unwrap();
        let steady = feed(&mut *half, (0, 10_000), |_| Some(20));
        assert!(steady.iter().all(|target| *target == 1000), "{steady:?}");
        let growing = feed(&mut *half, (10_000, 15_000), |ms| Some(20 + (ms - 10_000) / 5));
        let fallen = *growing.last().unwrap();
        assert!(fallen < 900, "{growing:?}");
        let recovered = feed(&mut *half, (15_000, 40_000), |_| Some(20));
        assert!(recovered.iter().all(|target| *target <= fallen), "{recovered:?}");
        assert!(half.poll_probe(at(40_000)).is_none());
    }

    #[test]
    fn higher_minimum_raises_the_target() {
        let mut half = config().halves(&SETUP).send.unwrap();
        let bounds = Bounds::new(Rate::from_kbps(1500), Rate::from_kbps(4000));
        half.handle_event(at(0), &Event::Bounds(&bounds), &mut Signals::disabled());
        assert_eq!(half.decision().target, Rate::from_kbps(1500));
    }
}
