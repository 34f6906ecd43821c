// SPDX-License-Identifier: MIT OR Apache-2.0
//! The cap of a middlebox, `remb` in a scenario, at a local receiver: it lowers the REMB that the receiver sends.
//!
//! In the simulator the middlebox sends REMBs of its own. SRTCP is authenticated, so in a call only an end can write one.

use paceline_netsim::plan::{FlowChange, MediaPlan};
use paceline_units::{Rate, Time, TimeDelta};
use paceline_wire::lower_rembs;

/// A middlebox repeats its cap every second; after this time it is lifted.
const LASTS: TimeDelta = TimeDelta::from_millis(1500);

/// The caps of a flow over time.
#[derive(Clone, Debug)]
pub(super) struct RembCap(Vec<(Time, Rate)>);

impl RembCap {
    pub fn new(media: &MediaPlan) -> Self {
        let caps = media.changes.iter().filter_map(|(at, change)| match change {
            FlowChange::Remb(rate) => Some((*at, *rate)),
            _ => None,
        });
        Self(caps.collect())
    }

    /// Lowers each REMB of a compound that is sent at `now` to the cap in force.
    pub fn apply(&self, now: Time, compound: &mut [u8]) {
        let last = self.0.iter().rev().find(|(at, _)| *at <= now);
        if let Some((_, cap)) = last.filter(|(at, _)| now - *at <= LASTS) {
            lower_rembs(compound, *cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_wire::{CompoundWriter, Rtcp, parse_compound};

    #[test]
    fn a_cap_lasts_until_the_next_would_be_due() {
        let cap =
            RembCap(vec![(Time::from_secs(10), Rate::from_kbps(500)), (Time::from_secs(11), Rate::from_kbps(600))]);
        let at = |ms: i64| {
            let mut bytes = [0; 64];
            let mut writer = CompoundWriter::new(&mut bytes);
            writer.remb(1, Rate::from_kbps(2000), &[2]).unwrap();
            let len = writer.finish();
            cap.apply(Time::from_millis(ms), &mut bytes[..len]);
            match parse_compound(&bytes[..len]).unwrap().into_iter().next() {
                Some(Rtcp::Remb { rate, .. }) => rate.as_bps() / 1000,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!([9_999, 10_000, 11_200, 12_500, 12_501].map(at), [2000, 500, 600, 600, 2000]);
    }
}
