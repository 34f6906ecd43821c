// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC of 2016, as printed in "Analysis and Design of the Google Congestion Control for Web Real-time Communication"
//! (MMSys 2016): delay-based control at the receiver, loss-based control at the sender, REMB between them.
//!
//! ```text
//! receiver:  packets -> FrameGroups -> ScalarKalman -> OveruseDetector -> RateController -> REMB
//!                        eq. 4          eq. 11-16       figure 3  ^        eq. 3, figure 4
//!                                            '--> AdaptiveThreshold       ^
//!                                                  eq. 17, 18             IncomingRate R, 500 ms
//! sender:    REMB A_r, receiver reports -> LossController (eq. 5) -> A = min(A_s, A_r)
//! ```
//!
//! `docs/algorithms/gcc-2016.md` lists the points that the paper does not specify, with the sources of the choices.

use super::arrivals::{Grouping, VideoFrames};
use super::filtered_detector::{EstimatorSignal, emit_detector, emit_update};
use super::remb_sender::{RembSender, RembSenderConfig, RembSenderSignal};
use super::{RateConfig, RateController, RembTimer};
use crate::blocks::{
    AdaptiveDetector, Departure, GroupDelta, IncomingRate, KalmanConfig, LossConfig, ProbeClusters, ScalarKalman,
    ThresholdConfig,
};
use crate::params::config;
use crate::{
    Arrival, Bounds, Config, Controller, Entry, Message, ReceiveHalf, Setup, SignalName, SignalTables, Signals,
};
use paceline_units::{Rate, RemoteTime, TimeDelta};

pub(crate) fn entries() -> [Entry; 3] {
    const SOURCE: &str =
        "Carlucci, De Cicco, Holmer, Mascolo: Analysis and Design of the Google Congestion Control (MMSys 2016)";
    [
        Entry::new("gcc-2016", "GCC of 2016: Kalman filter, adaptive threshold, REMB", SOURCE, Gcc2016Config::MMSYS16),
        Entry::new("gcc-2016-static", "gcc-2016 with a static threshold of 25 ms", SOURCE, Gcc2016Config::STATIC),
        Entry::new(
            "gcc-2016-guarded",
            "gcc-2016 with draft-ietf-rmcat-gcc-02's 15 ms guard on the threshold",
            SOURCE,
            Gcc2016Config::GUARDED,
        ),
    ]
}

config! {
    /// The parameters of GCC 2016.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Gcc2016Config {
        /// mmsys16. A value that the paper does not print has a source of its own.
        default const MMSYS16;

        /// Packet whose departure counts as that of the frame; 0: the first, 1: the last.
        departure as "departure_last": Departure = Departure::First, of [Departure::First, Departure::Last],
            from "eq. 4; the last in gcc-02 section 5.2 and libwebrtc";
        /// The arrival-time filter.
        kalman: KalmanConfig = KalmanConfig::MMSYS16, block all;
        /// The adaptive threshold.
        threshold: ThresholdConfig = ThresholdConfig::MMSYS16, block {
            gamma_0: "not printed, 12.5 in gcc-02 table 1",
            k_u: "section 4.2",
            k_d: "section 4.2",
            gamma_min: "not printed, 6 in gcc-02 section 5.4",
            gamma_max: "not printed, 600 in gcc-02 section 5.4",
            guard: "none in the paper, 15 in gcc-02 section 5.4",
        };
        /// Time for which over-use must last.
        overuse_ms: f64 = 100.0, unit "ms", in 0.0..=1e4, from "section 3.3";
        /// The remote rate controller.
        rate: RateConfig = RateConfig::MMSYS16, block all;
        /// Window of R.
        window_ms: f64 = 500.0, unit "ms", in 10.0..=1e4, from "section 3.3";
        /// Interval of regular REMBs.
        remb_ms: f64 = 1000.0, unit "ms", in 10.0..=1e5, from "section 3.3";
        /// The loss-based controller.
        loss: LossConfig = LossConfig::Y2016, block { low, high, increase, decrease };
        /// Pacing rate over target.
        pacing_factor: f64 = 1.5, in 1.0..=10.0, from "section 3.5";
        /// Whether the call starts with two probe clusters.
        start_probes: bool = false, from "not in the paper, libwebrtc's BitrateProber of 2014";
    }
}

impl Gcc2016Config {
    /// The static threshold of figures 9 to 11.
    pub(crate) const STATIC: Self = Self {
        threshold: ThresholdConfig { gamma_0: 25.0, k_u: 0.0, k_d: 0.0, ..ThresholdConfig::MMSYS16 },
        ..Self::MMSYS16
    };
    /// The guard on the threshold of draft-ietf-rmcat-gcc-02, section 5.4.
    pub(crate) const GUARDED: Self =
        Self { threshold: ThresholdConfig { guard: 15.0, ..ThresholdConfig::MMSYS16 }, ..Self::MMSYS16 };
}

impl Config for Gcc2016Config {
    const SIGNALS: SignalTables = (RembSenderSignal::TABLE, EstimatorSignal::ADAPTIVE);

    fn halves(&self, setup: &Setup) -> Controller {
        let sender = RembSenderConfig {
            loss: self.loss,
            remb_lasts: true,
            max: Some(Rate::MAX),
            pacing_factor: Some(self.pacing_factor),
            pads: true,
            start_probes: self.start_probes,
        };
        Controller::from_halves(RembSender::new(sender, setup), Receiver::new(self, setup))
    }
}

/// Unlike the receivers of the other generations it updates the rate at each frame, and repeats the REMB regularly even
/// if no packet arrives.
#[derive(Clone, Debug)]
struct Receiver {
    config: Gcc2016Config,
    frames: VideoFrames,
    incoming: IncomingRate,
    kalman: ScalarKalman,
    detector: AdaptiveDetector,
    rate: RateController,
    timer: RembTimer,
    /// The search for probe clusters; `None` without probes.
    probes: Option<ProbeClusters>,
    /// Whether there is an estimate: a gradient, or the result of a probe.
    has_estimate: bool,
    is_probed: bool,
}

impl ReceiveHalf for Receiver {
    fn handle_bounds(&mut self, _: RemoteTime, bounds: &Bounds) {
        self.rate.set_min(bounds.min);
    }

    fn handle_route_change(&mut self, _: RemoteTime, setup: &Setup) {
        *self = Self::new(&self.config, setup);
    }

    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        self.incoming.handle_arrival(now, arrival.size);
        if let Some((probes, sent)) = self.probes.as_mut().zip(arrival.sent) {
            // The rate of the start is no estimate (`AimdRateControl::ValidEstimate`).
            let estimate = self.is_probed.then(|| self.rate.rate());
            if let Some(rate) = probes.handle_arrival(now, sent, arrival.size, estimate) {
                self.rate.set_rate(rate);
                (self.is_probed, self.has_estimate) = (true, true);
            }
        }
        if let Some(delta) = self.frames.handle_arrival(now, arrival) {
            self.handle_frame(now, &delta, signals);
        }
    }

    fn poll_timeout(&self) -> Option<RemoteTime> {
        self.timer.next_due()
    }

    #[inline]
    fn message_kind(&self) -> crate::MessageKind {
        crate::MessageKind::Remb
    }
    fn poll_message(&mut self, now: RemoteTime) -> Option<Message> {
        // Before the first gradient the start rate of the sender stays in force.
        let rate = self.rate.rate();
        (self.has_estimate && self.timer.poll(now, rate)).then_some(Message::Remb(rate))
    }
}

impl Receiver {
    fn new(config: &Gcc2016Config, setup: &Setup) -> Self {
        let c = config.clone();
        Self {
            frames: VideoFrames::new(c.departure, TimeDelta::ZERO, false),
            incoming: IncomingRate::full_window(TimeDelta::from_millis_f64(c.window_ms)),
            kalman: ScalarKalman::new(c.kalman),
            detector: AdaptiveDetector::new(c.overuse_ms, c.threshold, true),
            rate: RateController::new(c.rate, setup),
            timer: RembTimer::new(TimeDelta::from_millis_f64(c.remb_ms)),
            probes: c.start_probes.then(ProbeClusters::default),
            has_estimate: false,
            is_probed: false,
            config: c,
        }
    }

    fn handle_frame(&mut self, now: RemoteTime, delta: &GroupDelta, signals: &mut Signals) {
        self.has_estimate = true;
        let d_m = delta.gradient_ms();
        let m = self.kalman.update(d_m);
        signals.emit(EstimatorSignal::Gradient, d_m);
        let names = [EstimatorSignal::Scaled, EstimatorSignal::Threshold, EstimatorSignal::Usage];
        self.detector.update(now, m, delta.departure.as_millis_f64());
        emit_detector(&self.detector, signals, names);
        let incoming = self.incoming.rate(now);
        let rate = self.rate.update(now, delta.departure, self.detector.usage(), incoming);
        emit_update(self.rate.state(), incoming, rate, signals);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MediaKind;
    use crate::testing::{SETUP, arrival};
    use paceline_units::StreamId;

    /// Audio starts first and has more packets. Both streams count towards `R`.
    #[test]
    fn only_video_frames_give_gradients() {
        let mut half = Gcc2016Config::default().halves(&SETUP).receive.expect("a receive half");
        let mut signals = Signals::enabled();
        let (mut gradients, mut incoming) = (0, 0.0);
        for ms in (0..2000).step_by(10) {
            let media = if ms % 40 == 0 { MediaKind::Video } else { MediaKind::Audio };
            let stream = StreamId(u8::from(media == MediaKind::Video));
            // 125 bytes each 10 ms are 100 kbit/s.
            let packet = Arrival { timestamp: ms as u32, stream, media, ..arrival(ms, 125) };
            half.handle_arrival(RemoteTime::from_millis(ms + 7), &packet, &mut signals);
            for (signal, value) in signals.drain() {
                gradients += usize::from(signal == 0);
                incoming = if signal == 5 { value } else { incoming };
            }
        }
        assert_eq!(gradients, 48, "50 video frames give 48 gradients: the last one is not complete");
        assert!((99e3..=103e3).contains(&incoming), "{incoming}");
    }
}
