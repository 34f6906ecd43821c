//! The cap of a middlebox, `remb` in a scenario, at a local receiver: it lowers the REMB that the receiver sends.
//!
//! In the simulator the middlebox sends REMBs of its own. SRTCP is authenticated, so in a call only an end can write one.

use paceline_netsim::plan::{FlowChange, MediaPlan};
use paceline_units::{Rate, Time, TimeDelta};

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
            lower(compound, *cap);
        }
    }
}

/// Lowers the rate of each REMB (draft-alvestrand-rmcat-remb-03, section 2.2) above the cap to it.
fn lower(mut compound: &mut [u8], cap: Rate) {
    while let [first, kind, high, low, ..] = *compound {
        let size = 4 * (usize::from(u16::from_be_bytes([high, low])) + 1);
        let Some((packet, rest)) = compound.split_at_mut_checked(size) else { return };
        if kind == 206
            && first & 0x1F == 15
            && let [_, _, _, _, _, _, _, _, _, _, _, _, b'R', b'E', b'M', b'B', _, a, b, c, ..] = packet
        {
            let (exponent, mantissa) = (*a >> 2, u64::from(*a & 3) << 16 | u64::from(*b) << 8 | u64::from(*c));
            if mantissa << exponent > cap.as_bps() {
                let exponent = (u64::BITS - cap.as_bps().leading_zeros()).saturating_sub(18);
                let [_, high, middle, low] = ((cap.as_bps() >> exponent) as u32).to_be_bytes();
                (*a, *b, *c) = ((exponent as u8) << 2 | high, middle, low);
            }
        }
        compound = rest;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_wire::{CompoundWriter, Rtcp, parse_compound};

    /// The REMB that is left of one of this rate, in bit/s, between a receiver report and a second REMB of 100 kbit/s.
    fn lowered(bps: u64, cap: u64) -> Vec<u64> {
        let mut bytes = [0; 128];
        let mut writer = CompoundWriter::new(&mut bytes);
        writer.receiver_report(1, &[]).unwrap();
        writer.remb(1, Rate::from_bps(bps), &[2, 3]).unwrap();
        writer.remb(1, Rate::from_kbps(100), &[2]).unwrap();
        let len = writer.finish();
        lower(&mut bytes[..len], Rate::from_bps(cap));
        let rembs = parse_compound(&bytes[..len]).unwrap().into_iter().filter_map(|packet| match packet {
            Rtcp::Remb { rate, .. } => Some(rate.as_bps()),
            _ => None,
        });
        rembs.collect()
    }

    #[test]
    fn a_cap_lowers_a_higher_remb_alone() {
        assert_eq!(lowered(2_000_000, 500_000), [500_000, 100_000]);
        assert_eq!(lowered(400_000, 500_000), [400_000, 100_000]);
        // 18 bits of mantissa: 1,000,001 = 125,000 · 8 + 1.
        assert_eq!(lowered(3_000_000, 1_000_001), [1_000_000, 100_000]);
    }

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

    #[test]
    fn other_bytes_stay_as_they_are() {
        for mut bytes in [vec![], vec![0x8F, 206], vec![0x8F, 206, 0xFF, 0xFF, 1, 2, 3, 4], vec![0x8F, 206, 0, 0, 9]] {
            let before = bytes.clone();
            lower(&mut bytes, Rate::from_kbps(1));
            assert_eq!(bytes, before);
        }
    }
}
