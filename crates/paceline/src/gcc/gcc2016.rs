//! GCC of 2016, as "Analysis and Design of the Google Congestion Control for Web Real-time Communication" (MMSys
//! 2016) prints it: delay-based control at the receiver, loss-based control at the sender, REMB between them.
//!
//! ```text
//! receiver:  packets -> FrameGroups -> ScalarKalman -> OveruseDetector -> RateController -> REMB
//!                        eq. 4          eq. 11-16       figure 3  ^        eq. 3, figure 4
//!                                            '--> AdaptiveThreshold       ^
//!                                                  eq. 17, 18             IncomingRate R, 500 ms
//! sender:    REMB A_r, receiver reports -> LossController (eq. 5) -> A = min(A_s, A_r)
//! ```
//!
//! Choices where the paper is silent, and their sources, stand in `docs/algorithms/gcc-2016.md`.

use super::{RateConfig, RateController, RateState, RembTimer};
use crate::blocks::{
    AdaptiveThreshold, Departure, FrameGroups, GroupDelta, IncomingRate, KalmanConfig, LossConfig, LossController,
    OveruseDetector, ScalarKalman, ThresholdConfig, Usage,
};
use crate::{
    Arrival, Config, Controller, Decision, Entry, FeedbackKind, Fields, MediaKind, Message, PacketKind, ReceiveHalf,
    ReceiverReport, SendHalf, Setup, SignalSpec, Signals,
};
use paceline_units::{Ecn, Rate, RemoteTime, StreamId, Time, TimeDelta};

const SOURCE: &str =
    "Carlucci, De Cicco, Holmer, Mascolo: Analysis and Design of the Google Congestion Control (MMSys 2016)";

/// `gcc-2016`: the paper.
pub(crate) fn adaptive() -> Entry {
    Entry::new("gcc-2016", "GCC of 2016: Kalman filter, adaptive threshold, REMB", SOURCE, Gcc2016Config::default())
}

/// `gcc-2016-static`: the threshold stays where it is (the paper's figures 9 to 11).
pub(crate) fn static_threshold() -> Entry {
    let threshold = ThresholdConfig { gamma_0: 25.0, k_u: 0.0, k_d: 0.0, ..Gcc2016Config::default().threshold };
    let config = Gcc2016Config { threshold, ..Gcc2016Config::default() };
    Entry::new("gcc-2016-static", "gcc-2016 with a static threshold of 25 ms", SOURCE, config)
}

/// `gcc-2016-guarded`: with the draft's 15 ms guard on the threshold's update.
pub(crate) fn guarded() -> Entry {
    let threshold = ThresholdConfig { guard: 15.0, ..Gcc2016Config::default().threshold };
    let config = Gcc2016Config { threshold, ..Gcc2016Config::default() };
    Entry::new(
        "gcc-2016-guarded",
        "gcc-2016 with draft-ietf-rmcat-gcc-02's 15 ms guard on the threshold",
        SOURCE,
        config,
    )
}

/// Every number of GCC 2016. `Default` is the paper; what it does not print cites its own source.
#[derive(Clone, Debug, PartialEq)]
pub struct Gcc2016Config {
    /// Which packet's departure stands for the frame's.
    pub departure: Departure,
    /// The arrival-time filter.
    pub kalman: KalmanConfig,
    /// The adaptive threshold.
    pub threshold: ThresholdConfig,
    /// How long over-use must last, ms.
    pub overuse_ms: f64,
    /// The remote rate controller.
    pub rate: RateConfig,
    /// Window of the incoming rate, ms.
    pub window_ms: f64,
    /// Interval of regular REMBs, ms.
    pub remb_ms: f64,
    /// The loss-based controller.
    pub loss: LossConfig,
    /// Pacing rate over target.
    pub pacing_factor: f64,
}

impl Default for Gcc2016Config {
    fn default() -> Self {
        Self {
            departure: Departure::First,
            kalman: KalmanConfig {
                q: 1e-3,
                beta: 0.95,
                p_0: 0.1,
                variance_0: 50.0,
                variance_min: 0.0,
                outlier_cap: 0.0,
            },
            threshold: ThresholdConfig {
                gamma_0: 12.5,
                k_u: 0.01,
                k_d: 0.00018,
                range: (6.0, 600.0),
                guard: f64::INFINITY,
            },
            overuse_ms: 100.0,
            rate: RateConfig {
                eta: 1.05,
                alpha: 0.85,
                headroom: 1.5,
                bound_hold: TimeDelta::from_millis(100),
                additive: None,
            },
            window_ms: 500.0,
            remb_ms: 1000.0,
            loss: LossConfig { low: 0.02, high: 0.1, increase: 1.05, step: Rate::ZERO, decrease: 0.5, tfrc: None },
            pacing_factor: 1.5,
        }
    }
}

impl Config for Gcc2016Config {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (
        &[
            SignalSpec::series("A_s", "bit/s"),
            SignalSpec::series("A_r received", "bit/s"),
            SignalSpec::series("f_l", ""),
        ],
        &[
            SignalSpec::series("d_m", "ms"),
            SignalSpec::series("m scaled", "ms"),
            SignalSpec::series("gamma", "ms"),
            SignalSpec::state("usage", Usage::NAMES),
            SignalSpec::state("sigma", RateState::NAMES),
            SignalSpec::series("R", "bit/s"),
            SignalSpec::series("A_r", "bit/s"),
        ],
    );

    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.choice("departure_last", &[Departure::First, Departure::Last], &mut self.departure).says(
            "a frame departs with its first packet (0: the paper, eq. 4) or its last (1: gcc-02 section 5.2, libwebrtc)",
        );
        fields.block(
            &mut self.kalman,
            &[
                ("q", ", eq. 15"),
                ("beta", ", eq. 16"),
                ("p_0", ", section 4.1.2"),
                ("variance_0", "; not printed, libwebrtc's 50"),
                ("variance_min", "; none in the paper, 1 in gcc-02 section 5.3"),
                ("outlier_cap", "; none (0) in the paper, 3 in gcc-02 section 5.3"),
            ],
        );
        fields.block(
            &mut self.threshold,
            &[
                ("gamma_0", "; not printed, 12.5 in gcc-02 table 1"),
                ("k_u", ", section 4.2"),
                ("k_d", ", section 4.2"),
                ("gamma_min", "; not printed, 6 in gcc-02 section 5.4"),
                ("gamma_max", "; not printed, 600 in gcc-02 section 5.4"),
                ("guard_ms", "; none in the paper, 15 in gcc-02 section 5.4"),
            ],
        );
        fields
            .number("overuse_ms", "ms", (0.0, 1e4), &mut self.overuse_ms)
            .says("how long over-use must last, section 3.3");
        fields.block(
            &mut self.rate,
            &[
                ("eta", ", eq. 3; printed per frame, used per second (gcc-02 section 5.5)"),
                ("alpha", ", eq. 3"),
                ("headroom", ", section 3.3"),
                ("bound_hold_ms", "; at once (0) in the words of section 3.3, here the detector's 100"),
                ("additive_rtt_ms", " (gcc-02 section 5.5); none (0): eta everywhere, eq. 3"),
            ],
        );
        fields.number("window_ms", "ms", (10.0, 1e4), &mut self.window_ms).says("window of R, section 3.3");
        fields.number("remb_ms", "ms", (10.0, 1e5), &mut self.remb_ms).says("interval of regular REMBs, section 3.3");
        fields.block(
            &mut self.loss,
            &[
                ("loss_low", ", eq. 5"),
                ("loss_high", ", eq. 5"),
                ("loss_increase", ", eq. 5"),
                ("loss_decrease", ", eq. 5"),
            ],
        );
        fields
            .number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factor)
            .says("pacing rate over target, section 3.5");
    }

    fn build(&self, setup: &Setup) -> Controller {
        Controller {
            send: Some(Box::new(Sender {
                loss: LossController::new(self.loss, setup.start),
                remb: None,
                min: setup.min,
                pacing_factor: self.pacing_factor,
            })),
            receive: Some(Box::new(Receiver {
                groups: FrameGroups::new(self.departure),
                kalman: ScalarKalman::new(self.kalman),
                threshold: AdaptiveThreshold::new(self.threshold),
                detector: OveruseDetector::new(self.overuse_ms),
                incoming: IncomingRate::new(TimeDelta::from_millis_f64(self.window_ms)),
                rate: RateController::new(self.rate, setup.start, setup.min),
                remb: RembTimer::new(TimeDelta::from_millis_f64(self.remb_ms)),
                steering: None,
                frames: 0,
            })),
            feedback: FeedbackKind::None,
            ecn: Ecn::NotEct,
        }
    }
}

struct Receiver {
    groups: FrameGroups,
    kalman: ScalarKalman,
    threshold: AdaptiveThreshold,
    detector: OveruseDetector,
    incoming: IncomingRate,
    rate: RateController,
    remb: RembTimer,
    /// The stream whose frames are grouped: the first video stream that came. Everything counts towards R.
    steering: Option<StreamId>,
    frames: u64,
}

impl ReceiveHalf for Receiver {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        self.incoming.handle_arrival(now, arrival.size);
        if arrival.kind == PacketKind::Media
            && arrival.media == MediaKind::Video
            && *self.steering.get_or_insert(arrival.stream) == arrival.stream
            && let Some(delta) = self.groups.handle_arrival(now, arrival)
        {
            self.handle_frame(now, &delta, signals);
        }
    }

    fn poll_timeout(&self) -> RemoteTime {
        self.remb.next().unwrap_or(RemoteTime::MAX)
    }

    #[inline]
    fn poll_message(&mut self, now: RemoteTime) -> Option<Message> {
        // Nothing to tell before the first gradient: the sender's own start rate stands.
        (self.frames > 0 && self.remb.poll(now, self.rate.rate())).then(|| Message::Remb(self.rate.rate()))
    }
}

impl Receiver {
    fn handle_frame(&mut self, now: RemoteTime, delta: &GroupDelta, signals: &mut Signals) {
        self.frames += 1;
        let d_m = delta.gradient_ms();
        let m = self.kalman.update(d_m);
        let scaled = self.detector.scale(m);
        let usage = self.detector.update(m, scaled, self.threshold.gamma_ms(), delta.departure.as_millis_f64());
        self.threshold.update(now, scaled);
        let incoming = self.incoming.rate(now);
        let rate = self.rate.update(now, delta.departure, usage, incoming);
        signals.emit(0, d_m);
        signals.emit(1, scaled);
        signals.emit(2, self.threshold.gamma_ms());
        signals.emit(3, usage.index());
        signals.emit(4, self.rate.state().index());
        signals.emit(5, incoming.unwrap_or(Rate::ZERO).as_bps_f64());
        signals.emit(6, rate.as_bps_f64());
    }
}

struct Sender {
    loss: LossController,
    remb: Option<Rate>,
    min: Rate,
    pacing_factor: f64,
}

impl SendHalf for Sender {
    fn handle_report(&mut self, _: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.loss.handle_report(report.fraction_lost, report.rtt);
        self.loss.bound(self.min, self.remb.unwrap_or(Rate::MAX));
        signals.emit(0, self.loss.rate().as_bps_f64());
        signals.emit(2, report.fraction_lost.get());
    }

    fn handle_message(&mut self, _: Time, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.remb = Some(rate);
        self.loss.bound(self.min, rate);
        signals.emit(0, self.loss.rate().as_bps_f64());
        signals.emit(1, rate.as_bps_f64());
    }

    /// `A = min(A_s, A_r)` (section 3.5).
    fn decision(&self) -> Decision {
        let target = self.loss.rate().min(self.remb.unwrap_or(Rate::MAX)).max(self.min);
        let pacing = target.scale(self.pacing_factor).max(target);
        Decision { target, pacing, window: None, padding: target }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use paceline_units::{DataSize, Fraction};

    /// Rates beyond 2^53 bit/s are rounded when they are scaled: never to a pacer slower than the target.
    #[test]
    fn pacing_is_no_slower_than_an_absurd_target() {
        let setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(30), max: Rate::from_kbps(2000) };
        let loss = LossConfig { increase: 10.0, ..Gcc2016Config::default().loss };
        let config = Gcc2016Config { loss, pacing_factor: 1.0, ..Gcc2016Config::default() };
        let mut half = config.build(&setup).send.expect("it has one");
        let mut signals = Signals::unheard();
        for second in 0..20 {
            let report = ReceiverReport { fraction_lost: Fraction::new(0.0).unwrap(), rtt: None };
            half.handle_report(Time::from_secs(second), &report, &mut signals);
        }
        let odd = Rate::from_bps((1 << 60) + 1);
        half.handle_message(Time::from_secs(20), &Message::Remb(odd), &mut signals);
        let decision = half.decision();
        assert!(decision.target == odd && decision.pacing >= odd, "{decision:?}");
    }

    /// Audio comes first and more often, but only frames of video steer; both count towards `R`.
    #[test]
    fn video_steers_beside_audio() {
        let setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(30), max: Rate::from_kbps(2000) };
        let mut half = Gcc2016Config::default().build(&setup).receive.expect("it has one");
        let mut signals = Signals::heard();
        let (mut gradients, mut incoming) = (0, 0.0);
        for ms in (0..2000).step_by(10) {
            let media = if ms % 40 == 0 { MediaKind::Video } else { MediaKind::Audio };
            let arrival = Arrival {
                sent: Some(Time::from_millis(ms)),
                timestamp: ms as u32,
                sequence: 0,
                stream: StreamId(u8::from(media == MediaKind::Video)),
                media,
                kind: PacketKind::Media,
                size: DataSize::from_bytes(125), // each 10 ms: 100 kbps
                ecn: Ecn::NotEct,
            };
            half.handle_arrival(RemoteTime::from_millis(ms + 7), &arrival, &mut signals);
            for (signal, value) in signals.drain() {
                gradients += usize::from(signal == 0);
                incoming = if signal == 5 { value } else { incoming };
            }
        }
        assert_eq!(gradients, 48, "50 video frames give 48 gradients: the last is not complete");
        assert!((99e3..=103e3).contains(&incoming), "{incoming}");
    }
}
