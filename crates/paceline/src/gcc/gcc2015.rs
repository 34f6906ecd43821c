// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC as in libwebrtc's receiver of March 2015: the baseline of uottawa15, with a threshold and a decrease factor by
//! region. The thesis replaces the decrease factor by its dynamic alpha.
//!
//! ```text
//! receiver:  packets -> BurstGroups -> TwoStateKalman -> OveruseDetector -> RegionControl -> REMB
//!                        5 ms           1/C and m          T, 100 ms  ^      |    ^
//!                                                    25 or 12.5 ms    '------'    IncomingRate R, 1 s
//! sender:    REMB A_r, receiver reports -> LossController with TFRC -> A = min(A_s, A_r)
//! ```
//!
//! The thesis modifies `aimd_rate_control.cc`, so the growth law is the one of that file;
//! `docs/algorithms/gcc-dynamic-alpha.md` lists the sources of everything else.

use super::arrivals::Arrivals;
use super::filtered_detector::EstimatorSignal;
use super::region_estimator::RegionEstimator;
use super::remb_receiver::{RembParts, RembReceiver};
use super::remb_sender::{RembSender, RembSenderConfig, RembSenderSignal};
use super::{AlphaVariant, RegionConfig, RembTimer};
use crate::blocks::{BurstConfig, BurstGroups, IncomingRate, LossConfig, TwoStateConfig};
use crate::params::config;
use crate::{Config, Controller, Entry, Setup, SignalName, SignalTables};
use paceline_units::Rate;

pub(crate) fn entries() -> [Entry; 2] {
    const SOURCE: &str = "Atwah: Dynamic Alpha Congestion Controller for WebRTC (thesis, Ottawa 2015), chapters 3 and 4; libwebrtc of 2014 and 2015";
    [
        Entry::new(
            "gcc-2015",
            "GCC of 2015: two-state Kalman filter, threshold and decrease factor by region, REMB",
            SOURCE,
            Gcc2015Config::UOTTAWA15,
        ),
        Entry::new(
            "gcc-dynamic-alpha",
            "gcc-2015 with the thesis's dynamic decrease factor",
            SOURCE,
            Gcc2015Config::DYNAMIC_ALPHA,
        ),
    ]
}

config! {
    /// The parameters of GCC 2015.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Gcc2015Config {
        /// libwebrtc of March 2015, as far as the thesis shows it.
        default const UOTTAWA15;

        /// Grouping of packets.
        groups: BurstConfig = BurstConfig::Y2018, block all;
        /// The arrival-time filter.
        kalman: TwoStateConfig = TwoStateConfig::Y2015, block { q_slope, q_offset, variance_min };
        /// Detector and rate control.
        region: RegionConfig = RegionConfig::Y2015, block {
            threshold_ms: "section 4.1; algorithm 2",
            overuse_ms: "overusing_time_threshold",
            growth: "aimd_rate_control.cc, which the thesis changes",
            alpha_near: "section 4.3",
            alpha_far: "section 4.3",
            dynamic: "chapter 4 of the thesis",
            recovery: "in 2013 and 2014; the thesis shows no such line",
            headroom: "section 3.2.2",
            rtt: "kDefaultRttMs",
            window: "incoming_bitrate_",
            remb: "kRembSendIntervalMs",
        };
        /// The loss-based controller.
        loss: LossConfig = LossConfig::Y2013, block {
            low: "eq. 3.1", high: "eq. 3.1", increase: "eq. 3.1", step: "eq. 3.1", decrease: "eq. 3.1", tfrc: "eq. 3.1",
        };
        /// Pacing rate over target.
        pacing_factor: f64 = 2.5, in 1.0..=10.0, from "kDefaultPaceMultiplier";
    }
}

impl Gcc2015Config {
    /// The decrease factor of chapter 4 of the thesis.
    pub(crate) const DYNAMIC_ALPHA: Self = Self {
        region: RegionConfig { dynamic: Some(AlphaVariant::Printed), ..RegionConfig::Y2015 },
        ..Self::UOTTAWA15
    };
}

impl Config for Gcc2015Config {
    const SIGNALS: SignalTables = (RembSenderSignal::TABLE, EstimatorSignal::TABLE);

    fn halves(&self, setup: &Setup) -> Controller {
        let sender = RembSenderConfig {
            loss: self.loss,
            remb_lasts: true,
            max: Some(Rate::from_kbps(1_000_000)),
            pacing_factor: Some(self.pacing_factor),
            pads: false,
            start_probes: false,
        };
        Controller::from_halves(RembSender::new(sender, setup), RembReceiver::new(self, setup))
    }
}

impl RembParts for Gcc2015Config {
    type Groups = BurstGroups;
    type Estimator = RegionEstimator;

    fn arrivals(&self) -> Arrivals<BurstGroups> {
        Arrivals::new(BurstGroups::new(self.groups), IncomingRate::growing_window(self.region.window))
    }

    fn estimator(&self, setup: &Setup) -> RegionEstimator {
        RegionEstimator::new(self.kalman, self.region, *setup, false)
    }

    fn timer(&self) -> RembTimer {
        self.region.timer()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Signals;
    use crate::gcc::Region;
    use crate::testing::{SETUP, arrival};
    use alloc::vec::Vec;
    use paceline_units::RemoteTime;

    /// Returns the signals (threshold, alpha, region) whenever they change, for a queue that grows from 10 s on.
    fn steps(config: &Gcc2015Config) -> Vec<(f64, f64, f64)> {
        let mut half = config.halves(&SETUP).receive.expect("a receive half");
        let mut signals = Signals::enabled();
        let (mut now, mut steps) = ((0.0, 0.0, 0.0), Vec::new());
        for i in 0..600 {
            let at = RemoteTime::from_millis(90_000 + 20 * i + 4 * (i - 500).max(0));
            half.handle_arrival(at, &arrival(20 * i, 1250), &mut signals);
            for (signal, value) in signals.drain() {
                match signal {
                    2 => now.0 = value,
                    7 => now.2 = value,
                    8 => now.1 = value,
                    _ => {}
                }
            }
            if steps.last() != Some(&now) {
                steps.push(now);
            }
        }
        steps.retain(|(gamma, alpha, _)| *gamma > 0.0 && *alpha > 0.0);
        steps
    }

    /// Over-use halves the threshold and, with constants, raises alpha from 0.9 to 0.95.
    #[test]
    fn threshold_and_alpha_follow_the_region() {
        let (near, unknown) = (Region::NearMax.index(), Region::MaxUnknown.index());
        let fixed = steps(&Gcc2015Config::default());
        // The threshold is emitted with the next group.
        assert_eq!(fixed, [(25.0, 0.9, unknown), (25.0, 0.95, near), (12.5, 0.95, near)]);
    }

    /// By equation 4.1 the first over-use, just above the threshold, gives nearly 0.99. The following ones near the
    /// maximum lie between 0.95 and 1, or between 0.90 and 0.99 if the first line of 4.2 applies to all regions.
    #[test]
    fn dynamic_alpha_follows_the_gradient() {
        for (variant, low, high) in [(AlphaVariant::Printed, 0.9517, 1.0), (AlphaVariant::Tabulated, 0.9015, 0.9923)] {
            let mut config = Gcc2015Config::default();
            config.region.dynamic = Some(variant);
            let all = steps(&config);
            assert_eq!(all[0].1, 0.9, "before over-use: section 4.3");
            assert!((0.94..0.9923).contains(&all[1].1), "{all:?}");
            let later: Vec<f64> = all[3..].iter().map(|(_, alpha, _)| *alpha).collect();
            assert!(!later.is_empty() && later.iter().all(|alpha| (low..=high).contains(alpha)), "{all:?}");
        }
    }
}
