//! GCC as libwebrtc's receiver ran it until the sender took over: its estimator from abs-send-time, of 2018. This is
//! what Chromium did when mmsys16 was measured, give or take two years, and what rmcat-ns3 calls REMB-GCC.
//!
//! ```text
//! receiver:  packets -> BurstGroups -> TwoStateKalman -> OveruseDetector -> Aimd -> REMB, each 200 ms
//!                        5 ms           1/C and m          T, 10 ms  ^        ^
//!                                              '--> AdaptiveThreshold     IncomingRate R, 1 s
//! sender:    REMB, receiver reports -> SendSideEstimate
//! ```
//!
//! What differs from the code, and why, stands in `docs/algorithms/gcc-remb-2018.md`.

use super::{Aimd, AimdConfig, RateState, RembTimer};
use crate::blocks::{
    AdaptiveThreshold, BurstConfig, BurstGroups, GroupDelta, IncomingRate, OveruseDetector, SendSideConfig,
    SendSideEstimate, ThresholdConfig, TwoStateConfig, TwoStateKalman, Usage,
};
use crate::{
    Arrival, Config, Controller, Decision, Entry, FeedbackKind, Fields, Message, ReceiveHalf, ReceiverReport, SendHalf,
    Setup, SignalSpec, Signals,
};
use paceline_units::{Ecn, Rate, RemoteTime, Time, TimeDelta};

/// The registry's line.
pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-remb-2018",
        "GCC as libwebrtc's receiver had it in 2018: two-state Kalman filter, adaptive threshold, AIMD, REMB",
        "libwebrtc of 2018: remote_bitrate_estimator_abs_send_time, send_side_bandwidth_estimation",
        GccRemb2018Config::default(),
    )
}

/// Every number of GCC with REMB of 2018. `Default` is libwebrtc's.
#[derive(Clone, Debug, PartialEq)]
pub struct GccRemb2018Config {
    /// Grouping of packets.
    pub groups: BurstConfig,
    /// The arrival-time filter.
    pub kalman: TwoStateConfig,
    /// The adaptive threshold.
    pub threshold: ThresholdConfig,
    /// How long over-use must last, ms.
    pub overuse_ms: f64,
    /// The rate control.
    pub rate: AimdConfig,
    /// Window of the incoming rate, ms.
    pub window_ms: f64,
    /// Least interval of REMBs, ms, unless the rate falls.
    pub remb_ms: f64,
    /// The loss-based controller.
    pub loss: SendSideConfig,
    /// Pacing rate over target.
    pub pacing_factor: f64,
}

impl Default for GccRemb2018Config {
    fn default() -> Self {
        Self {
            groups: BurstConfig::LIBWEBRTC,
            kalman: TwoStateConfig::Y2015,
            threshold: ThresholdConfig { gamma_0: 12.5, k_u: 0.0087, k_d: 0.039, range: (6.0, 600.0), guard: 15.0 },
            overuse_ms: 10.0,
            rate: AimdConfig { eta: 1.08, alpha: 0.85, headroom: 1.5, rtt: TimeDelta::from_millis(200) },
            window_ms: 1000.0,
            remb_ms: 200.0,
            loss: SendSideConfig { low: 0.02, high: 0.1, increase: 1.08, decrease: 0.5 },
            pacing_factor: 2.5,
        }
    }
}

impl Config for GccRemb2018Config {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (
        &[SignalSpec::series("A", "bit/s"), SignalSpec::series("A_r received", "bit/s"), SignalSpec::series("f_l", "")],
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
        fields.block(
            &mut self.groups,
            &[
                ("group_ms", " (kTimestampGroupLengthMs)"),
                ("burst_ms", " (kBurstDeltaThresholdMs)"),
                ("clock_ms", ": libwebrtc counts whole milliseconds; 0: as they are"),
            ],
        );
        fields.block(
            &mut self.kalman,
            &[
                ("q_slope", "group (OverUseDetectorOptions)"),
                ("q_offset", "group (OverUseDetectorOptions)"),
                ("variance_min", " (UpdateNoiseEstimate)"),
            ],
        );
        fields.block(
            &mut self.threshold,
            &[
                ("gamma_0", " (overuse_detector.cc)"),
                ("k_u", " (k_up_)"),
                ("k_d", " (k_down_)"),
                ("gamma_min", " (UpdateThreshold)"),
                ("gamma_max", " (UpdateThreshold)"),
                ("guard_ms", " (kMaxAdaptOffsetMs)"),
            ],
        );
        fields
            .number("overuse_ms", "ms", (0.0, 1e4), &mut self.overuse_ms)
            .says("how long over-use must last (kOverUsingTimeThreshold)");
        fields.block(
            &mut self.rate,
            &[
                ("eta", " (MultiplicativeRateIncrease)"),
                ("alpha", " (kDefaultBackoffFactor)"),
                ("headroom", " (ClampBitrate)"),
                ("rtt_ms", " that a receiver assumes (kDefaultRttMs)"),
            ],
        );
        fields.number("window_ms", "ms", (10.0, 1e4), &mut self.window_ms).says("window of R (kBitrateWindowMs)");
        fields
            .number("remb_ms", "ms", (10.0, 1e5), &mut self.remb_ms)
            .says("least interval of REMBs but for a fall of 3 % (kRembSendIntervalMs)");
        fields.block(
            &mut self.loss,
            &[
                ("loss_low", " (kDefaultLowLossThreshold)"),
                ("loss_high", " (kDefaultHighLossThreshold)"),
                ("loss_increase", " (UpdateEstimate)"),
                ("loss_decrease", " (UpdateEstimate)"),
            ],
        );
        fields
            .number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factor)
            .says("pacing rate over target (kDefaultPaceMultiplier)");
    }

    fn build(&self, setup: &Setup) -> Controller {
        Controller {
            send: Some(Box::new(Sender {
                estimate: SendSideEstimate::new(self.loss, setup.start, setup.min),
                pacing_factor: self.pacing_factor,
            })),
            receive: Some(Box::new(Receiver {
                groups: BurstGroups::new(self.groups),
                filter: self.kalman,
                kalman: TwoStateKalman::new(self.kalman),
                threshold: AdaptiveThreshold::new(self.threshold),
                detector: OveruseDetector::new(self.overuse_ms),
                incoming: IncomingRate::new(TimeDelta::from_millis_f64(self.window_ms)),
                rate: Aimd::new(self.rate, setup.min),
                remb: RembTimer::new(TimeDelta::from_millis_f64(self.remb_ms)),
                pending: None,
                heard: None,
                updated: None,
            })),
            feedback: FeedbackKind::None,
            ecn: Ecn::NotEct,
        }
    }
}

/// After this much silence filter and groups begin anew (kStreamTimeOutMs).
const SILENCE: TimeDelta = TimeDelta::from_secs(2);

struct Receiver {
    groups: BurstGroups,
    filter: TwoStateConfig,
    kalman: TwoStateKalman,
    threshold: AdaptiveThreshold,
    detector: OveruseDetector,
    incoming: IncomingRate,
    rate: Aimd<RemoteTime>,
    remb: RembTimer,
    pending: Option<Rate>,
    /// When the last packet arrived.
    heard: Option<RemoteTime>,
    /// When the estimate was last updated.
    updated: Option<RemoteTime>,
}

impl ReceiveHalf for Receiver {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, signals: &mut Signals) {
        let Some(sent) = arrival.sent else { return };
        self.incoming.restart_if_empty(now);
        self.incoming.handle_arrival(now, arrival.size);
        if self.heard.replace(now).is_none_or(|heard| now - heard > SILENCE) {
            self.groups.restart();
            self.kalman = TwoStateKalman::new(self.filter);
            self.detector.recount();
        }
        if let Some(delta) = self.groups.handle_arrival(now, sent, arrival.size) {
            self.handle_group(now, &delta, signals);
        }
        if self.is_due(now) {
            self.update(now, signals);
        }
    }

    #[inline]
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Remb)
    }
}

impl Receiver {
    fn handle_group(&mut self, now: RemoteTime, delta: &GroupDelta, signals: &mut Signals) {
        let (arrival, departure) = (delta.arrival.as_millis_f64(), delta.departure.as_millis_f64());
        let usage = self.detector.usage();
        let m = self.kalman.update(arrival, departure, delta.size as f64, usage == Usage::Normal, usage.sign());
        let scaled = self.detector.scale(m);
        let usage = self.detector.update(m, scaled, self.threshold.gamma_ms(), departure);
        if self.detector.is_ready() {
            self.threshold.update(now, scaled);
        }
        signals.emit(0, delta.gradient_ms());
        signals.emit(1, scaled);
        signals.emit(2, self.threshold.gamma_ms());
        signals.emit(3, usage.index());
    }

    /// Regularly, and while over-use goes on as often as another decrease is allowed.
    fn is_due(&mut self, now: RemoteTime) -> bool {
        self.updated.is_none_or(|updated| now - updated > self.rate.interval())
            || (self.detector.usage() == Usage::Over
                && self.incoming.rate_so_far(now).is_some_and(|r| self.rate.may_decrease_again(now, r)))
    }

    fn update(&mut self, now: RemoteTime, signals: &mut Signals) {
        let incoming = self.incoming.rate_so_far(now);
        let Some(rate) = self.rate.update(now, self.detector.usage(), incoming) else { return };
        self.updated = Some(now);
        if self.remb.poll(now, rate) {
            self.pending = Some(rate);
        }
        signals.emit(4, self.rate.state().index());
        signals.emit(5, incoming.unwrap_or(Rate::ZERO).as_bps_f64());
        signals.emit(6, rate.as_bps_f64());
    }
}

struct Sender {
    estimate: SendSideEstimate,
    pacing_factor: f64,
}

impl SendHalf for Sender {
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.estimate.handle_report(now, report.fraction_lost, report.rtt);
        signals.emit(0, self.estimate.rate().as_bps_f64());
        signals.emit(2, report.fraction_lost.get());
    }

    fn handle_message(&mut self, _: Time, message: &Message, signals: &mut Signals) {
        let &Message::Remb(rate) = message else { return };
        self.estimate.handle_remb(rate);
        signals.emit(0, self.estimate.rate().as_bps_f64());
        signals.emit(1, rate.as_bps_f64());
    }

    fn handle_timeout(&mut self, now: Time, signals: &mut Signals) {
        let before = self.estimate.rate();
        self.estimate.handle_timeout(now);
        if self.estimate.rate() != before {
            signals.emit(0, self.estimate.rate().as_bps_f64());
        }
    }

    fn poll_timeout(&self) -> Time {
        self.estimate.poll_timeout()
    }

    /// One video stream gets no padding from libwebrtc.
    fn decision(&self) -> Decision {
        let target = self.estimate.rate();
        Decision { target, pacing: target.scale(self.pacing_factor), window: None, padding: Rate::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MediaKind, PacketKind};
    use paceline_units::{DataSize, StreamId};

    const SETUP: Setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(30), max: Rate::from_kbps(2000) };

    fn receiver() -> Box<dyn ReceiveHalf> {
        GccRemb2018Config::default().build(&SETUP).receive.expect("it has one")
    }

    /// A packet of 1250 bytes; answers REMBs.
    fn arrive(half: &mut dyn ReceiveHalf, sent_ms: i64, arrived_ms: i64, signals: &mut Signals) -> Option<Rate> {
        let arrival = Arrival {
            sent: Some(Time::from_millis(sent_ms)),
            timestamp: 0,
            sequence: 0,
            stream: StreamId(0),
            media: MediaKind::Video,
            kind: PacketKind::Media,
            size: DataSize::from_bytes(1250),
            ecn: Ecn::NotEct,
        };
        let now = RemoteTime::from_millis(arrived_ms);
        half.handle_arrival(now, &arrival, signals);
        half.poll_message(now)
            .map(|message| if let Message::Remb(rate) = message { rate } else { panic!("{message:?}") })
    }

    /// 500 kbit/s on a path that stays: nothing for five seconds, then 500 kbit/s and 8 % more each second, every 200 ms and
    /// a packet; never above 1.5 R + 10.
    #[test]
    fn a_call_without_over_use() {
        let (mut half, mut signals) = (receiver(), Signals::unheard());
        let told: Vec<(i64, Rate)> = (0..1000)
            .filter_map(|i| Some((20 * i, arrive(&mut *half, 20 * i, 90_000 + 20 * i, &mut signals)?)))
            .collect();
        let (first, rate) = told[0];
        assert!((5000..=5100).contains(&first), "{first}");
        assert!((495..=510).contains(&(rate.as_bps() / 1000)), "{rate}");
        assert!((50..=75).contains(&told.len()), "15 s at 220 ms: {}", told.len());
        let (_, after) = told[told.iter().position(|(ms, _)| *ms >= first + 3000).unwrap()];
        // 1.08^3 = 1.26, a step more or less.
        assert!((610..=650).contains(&(after.as_bps() / 1000)), "{after}");
        let last = told[told.len() - 1].1.as_bps() / 1000;
        assert!((750..=775).contains(&last), "{last}");
    }

    /// After two seconds of silence the filter begins anew: what the gradient was no longer counts.
    #[test]
    fn silence_is_forgotten() {
        let gradient_after = |pause_ms: i64| {
            let (mut half, mut signals) = (receiver(), Signals::heard());
            for i in 0..200 {
                // The queue grows by 2 ms each 20 ms.
                arrive(&mut *half, 20 * i, 90_000 + 22 * i, &mut signals);
            }
            let pause = 4000 + pause_ms;
            signals.drain().for_each(drop);
            for i in 0..4 {
                arrive(&mut *half, pause + 20 * i, 90_400 + pause + 20 * i, &mut signals);
            }
            let last = signals.drain().filter(|(signal, _)| *signal == 1).last();
            last.expect("two groups").1
        };
        assert!(gradient_after(1900) > 6.0, "{}", gradient_after(1900));
        assert!(gradient_after(2100).abs() < 0.01, "{}", gradient_after(2100));
    }
}
