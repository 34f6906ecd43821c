// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC of early 2013, as described in "Experimental Investigation of the Google Congestion Control for Real-Time Flows"
//! (FhMN 2013): a static threshold by region at the receiver, REMBs only while the rate falls, and a sender that grows
//! until one arrives.
//!
//! ```text
//! receiver:  packets -> FrameGroups -> TwoStateKalman -> OveruseDetector -> RegionControl -> REMB, falls only
//!                        timestamps     1/C and m          T, 100 ms  ^      |    ^
//!                                                     25 or 12.5 ms   '------'    IncomingRate R, 500 ms
//! sender:    receiver reports -> LossController with TFRC -> A_s (eq. 1);  at a REMB: A_s = min(A_s, A_r) (eq. 2)
//! ```
//!
//! Values that the paper does not specify are taken from libwebrtc of March 2013; `docs/algorithms/gcc-2013.md` lists
//! it.

use super::arrivals::{Arrivals, VideoFrames};
use super::filtered_detector::EstimatorSignal;
use super::region_estimator::RegionEstimator;
use super::remb_receiver::{RembParts, RembReceiver};
use super::remb_sender::{RembSender, RembSenderConfig, RembSenderSignal};
use super::{RegionConfig, RembRule, RembTimer};
use crate::blocks::{Departure, IncomingRate, LossConfig, TwoStateConfig};
use crate::params::config;
use crate::{Config, Controller, Entry, Setup, SignalName, SignalTables};
use paceline_units::TimeDelta;

pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-2013",
        "GCC of 2013: two-state Kalman filter, static threshold by region, REMB for falls, TFRC floor",
        "De Cicco, Carlucci, Mascolo: Experimental Investigation of the Google Congestion Control for Real-Time Flows (FhMN 2013); libwebrtc of March 2013",
        Gcc2013Config::default(),
    )
}

config! {
    /// The parameters of GCC 2013.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Gcc2013Config {
        /// fhmn13, and libwebrtc of 2013 for what the paper does not give.
        default const FHMN13;

        /// Resolution to which arrivals are rounded; 0: no rounding.
        clock as "clock_ms": TimeDelta = TimeDelta::from_millis(1), in 0.0..=100.0,
            from "libwebrtc counts whole milliseconds";
        /// The arrival-time filter.
        kalman: TwoStateConfig = TwoStateConfig::Y2013, block {
            q_slope: "OverUseDetectorOptions: per frame of 33.3 ms",
            q_offset: "OverUseDetectorOptions: per frame of 33.3 ms",
            scale_noise,
            cap_keeps_sign,
            variance_min,
            learns,
        };
        /// Detector and rate control.
        region: RegionConfig = RegionConfig::Y2013, block {
            threshold_ms: "SetRateControlRegion",
            overuse_ms: "kOverUsingTimeThreshold",
            alpha_near: "eq. 3; ChangeRegion",
            alpha_far: "eq. 3; ChangeRegion",
            recovery: "ChangeBitRate",
            repeat_decrease: "TimeToReduceFurther",
            headroom: "section 2.2",
            rtt: "kDefaultRttMs",
            window: "eq. 3",
            remb: "section 2.2",
        };
        /// Times at which REMBs are sent; 0: when A_r is lower, 1: in the state Decrease as well, 2: always, as in libwebrtc.
        remb_rule: RembRule = RembRule::Decrease, of [RembRule::Fall, RembRule::Decrease, RembRule::Always],
            from "section 2.2: while A_r decreases";
        /// Whether a REMB bounds `A_s` until the next one, as in libwebrtc; otherwise it lowers `A_s` when it arrives.
        remb_lasts: bool = false, from "eq. 2";
        /// The loss-based controller.
        loss: LossConfig = LossConfig::Y2013, block {
            low: "eq. 1", high: "eq. 1", increase: "eq. 1", step: "eq. 1", decrease: "eq. 1", tfrc: "eq. 1",
        };
        /// Pacing rate over target; 0: packets leave when they are made.
        pacing_factor: f64 = 0.0, in 0.0..=10.0, from "Chromium, where video_leaky_bucket was off";
    }
}

impl Config for Gcc2013Config {
    const SIGNALS: SignalTables = (RembSenderSignal::TABLE, EstimatorSignal::TABLE);

    fn halves(&self, setup: &Setup) -> Controller {
        let sender = RembSenderConfig {
            loss: self.loss,
            remb_lasts: self.remb_lasts,
            max: None,
            pacing_factor: (self.pacing_factor > 0.0).then_some(self.pacing_factor.max(1.0)),
            pads: false,
            start_probes: false,
        };
        Controller::from_halves(RembSender::new(sender, setup), RembReceiver::new(self, setup))
    }
}

impl RembParts for Gcc2013Config {
    type Groups = VideoFrames;
    type Estimator = RegionEstimator;

    fn arrivals(&self) -> Arrivals<VideoFrames> {
        let frames = VideoFrames::new(Departure::Timestamp, self.clock, true);
        Arrivals::new(frames, IncomingRate::full_window(self.region.window))
    }

    fn estimator(&self, setup: &Setup) -> RegionEstimator {
        RegionEstimator::new(self.kalman, self.region, *setup, true)
    }

    fn timer(&self) -> RembTimer {
        self.region.timer()
    }

    fn rule(&self) -> RembRule {
        self.remb_rule
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SETUP, arrival};
    use crate::{Arrival, Message, PacketKind, Signals};
    use alloc::vec::Vec;
    use paceline_units::RemoteTime;

    /// Returns the REMBs of 20 s of frames at 480 kbit/s as (ms, kbit/s). From second `queue.0` to `queue.1` each frame
    /// takes 4 ms more than the previous one, so that packets arrive at 429 kbit/s.
    fn rembs(config: &Gcc2013Config, queue: (i64, i64), kind: PacketKind) -> Vec<(i64, u64)> {
        let mut half = config.halves(&SETUP).receive.expect("a receive half");
        let mut signals = Signals::disabled();
        let mut rembs = Vec::new();
        let mut delay = 0;
        for i in 0..600 {
            let sent = i * 100 / 3;
            delay += if (queue.0 * 1000..queue.1 * 1000).contains(&sent) { 4 } else { 0 };
            let now = RemoteTime::from_millis(70_000 + sent + delay);
            let packet = Arrival { sent: None, timestamp: (i * 3000) as u32, kind, ..arrival(0, 2000) };
            half.handle_arrival(now, &packet, &mut signals);
            if let Some(Message::Remb(rate)) = half.poll_message(now) {
                rembs.push((sent, rate.as_bps() / 1000));
            }
        }
        rembs
    }

    /// Without over-use `A_r` only grows, and no REMB is sent; libwebrtc sends one each second.
    #[test]
    fn growth_sends_no_remb() {
        let config = Gcc2013Config::default();
        assert_eq!(rembs(&config, (0, 0), PacketKind::Media), []);
        let all = rembs(&Gcc2013Config { remb_rule: RembRule::Always, ..config }, (0, 0), PacketKind::Media);
        assert!((17..=20).contains(&all.len()), "{all:?}");
        assert!(all.windows(2).all(|pair| pair[0].1 <= pair[1].1) && all[0].1 < all[5].1, "{all:?}");
    }

    /// The REMB is 0.9 of the incoming rate. Frames consist of media and FEC packets, not of retransmissions.
    #[test]
    fn overuse_sends_a_remb_immediately() {
        let config = Gcc2013Config::default();
        for kind in [PacketKind::Media, PacketKind::Fec] {
            let rembs = rembs(&config, (10, 13), kind);
            let (at, rate) = rembs[0];
            assert!((10_100..10_700).contains(&at), "{rembs:?}");
            assert!((386..=446).contains(&rate), "0.9 of 429 to 480, plus one frame: {rembs:?}");
            assert!(rembs.iter().all(|(at, _)| (10_000..14_500).contains(at)), "{rembs:?}");
        }
        assert_eq!(rembs(&config, (10, 13), PacketKind::Retransmission), []);
    }

    /// 3 s of over-use: receivers of 2012 update at its beginning and each second, those of 2013 each 200 ms.
    #[test]
    fn receivers_of_2012_signal_only_the_beginning_of_overuse() {
        let falls = |repeat_decrease| {
            let mut config = Gcc2013Config { remb_rule: RembRule::Always, ..Gcc2013Config::default() };
            config.region.repeat_decrease = repeat_decrease;
            config.region.remb = TimeDelta::ZERO;
            rembs(&config, (10, 13), PacketKind::Media)
                .into_iter()
                .filter(|(at, _)| (10_000..13_000).contains(at))
                .count()
        };
        assert!((3..=5).contains(&falls(false)), "{}", falls(false));
        assert!((9..=16).contains(&falls(true)), "{}", falls(true));
    }

    /// Eq. 3 gives nearly the same value again and again during 8 s of over-use.
    #[test]
    fn rule_decides_whether_lasting_overuse_repeats_the_remb() {
        let rembs = |remb_rule| {
            let config = Gcc2013Config { remb_rule, ..Gcc2013Config::default() };
            rembs(&config, (10, 18), PacketKind::Media)
        };
        let (repeated, lower) = (rembs(RembRule::Decrease), rembs(RembRule::Fall));
        assert!((6..=10).contains(&repeated.len()), "{repeated:?}");
        assert!((1..=4).contains(&lower.len()), "{lower:?}");
        assert!(lower.windows(2).all(|pair| pair[1].1 < pair[0].1), "{lower:?}");
    }
}
