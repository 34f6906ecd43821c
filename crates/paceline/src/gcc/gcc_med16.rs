//! GCC as med16 describes and simulates it, at the end of 2015: the receiver measures, the sender estimates.
//!
//! ```text
//! receiver:  packets -> BurstGroups -> d_m(i), dL(i)  --\
//!                        5 ms                            report of each group  (and f_l in its receiver report)
//!            packets -> IncomingRate R, 500 ms ---------/
//! sender:    d_m, dL -> TwoStateKalman -> OveruseDetector -> Aimd A_r <- R
//!                        1/C and m  '--> AdaptiveThreshold ^
//!            f_l -> LossController A_s, eq. 6                              A = min(A_s, A_r)
//! ```
//!
//! What the paper leaves open, and where it is taken from, stands in `docs/algorithms/gcc-med16.md`.

use super::{Aimd, AimdConfig, RateState};
use crate::blocks::{
    AdaptiveThreshold, BurstConfig, BurstGroups, IncomingRate, LossConfig, LossController, OveruseDetector,
    ThresholdConfig, TwoStateConfig, TwoStateKalman, Usage,
};
use crate::{
    Arrival, Config, Controller, Decision, Entry, FeedbackKind, Fields, GradientReport, Message, ReceiveHalf,
    ReceiverReport, SendHalf, Setup, SignalSpec, Signals,
};
use paceline_units::{Ecn, Rate, RemoteTime, Time, TimeDelta};

/// The registry's line.
pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-med16",
        "GCC of late 2015 at the sender: the receiver reports each group's gradient; two-state Kalman filter, adaptive threshold",
        "Carlucci et al.: Congestion Control for Real-time Communications, a comparison between NADA and GCC (MED 2016), section II-B; draft-ietf-rmcat-gcc of 2015",
        GccMed16Config::default(),
    )
}

/// Every number of GCC as med16 has it. `Default` is the paper's, and the draft's of the same year where it gives none.
#[derive(Clone, Debug, PartialEq)]
pub struct GccMed16Config {
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
    /// The loss-based controller.
    pub loss: LossConfig,
    /// Least time between two falls for loss, before the round-trip time.
    pub loss_hold: TimeDelta,
    /// Pacing rate over target.
    pub pacing_factor: f64,
}

impl Default for GccMed16Config {
    fn default() -> Self {
        Self {
            groups: BurstConfig::LIBWEBRTC,
            kalman: TwoStateConfig::Y2015,
            threshold: ThresholdConfig { gamma_0: 12.5, k_u: 0.01, k_d: 0.00018, range: (6.0, 600.0), guard: 15.0 },
            overuse_ms: 10.0,
            rate: AimdConfig { eta: 1.08, alpha: 0.85, headroom: 1.5, rtt: TimeDelta::from_millis(200) },
            window_ms: 500.0,
            loss: LossConfig { low: 0.02, high: 0.1, increase: 1.05, step: Rate::ZERO, decrease: 0.5, tfrc: None },
            loss_hold: TimeDelta::from_millis(300),
            pacing_factor: 2.5,
        }
    }
}

impl Config for GccMed16Config {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (
        &[
            SignalSpec::series("d_m", "ms"),
            SignalSpec::series("m scaled", "ms"),
            SignalSpec::series("gamma", "ms"),
            SignalSpec::state("usage", Usage::NAMES),
            SignalSpec::state("sigma", RateState::NAMES),
            SignalSpec::series("R", "bit/s"),
            SignalSpec::series("A_r", "bit/s"),
            SignalSpec::series("A_s", "bit/s"),
            SignalSpec::series("f_l", ""),
        ],
        &[],
    );

    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields.block(
            &mut self.groups,
            &[
                ("group_ms", " (kTimestampGroupLengthMs); 0, with burst_ms 0: every packet is reported, as printed"),
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
                ("gamma_0", " (draft-ietf-rmcat-gcc, del_var_th(0))"),
                ("k_u", " (draft-ietf-rmcat-gcc)"),
                ("k_d", " (draft-ietf-rmcat-gcc)"),
                ("gamma_min", " (draft-ietf-rmcat-gcc)"),
                ("gamma_max", " (draft-ietf-rmcat-gcc)"),
                ("guard_ms", " (draft-ietf-rmcat-gcc)"),
            ],
        );
        fields
            .number("overuse_ms", "ms", (0.0, 1e4), &mut self.overuse_ms)
            .says("how long over-use must last (draft-ietf-rmcat-gcc, overuse_time_th)");
        fields.block(
            &mut self.rate,
            &[
                ("eta", " (draft-ietf-rmcat-gcc); figure 4 says 1.005 to 1.3 a step"),
                ("alpha", " (draft-ietf-rmcat-gcc, beta); figure 4 says 0.8 to 0.95"),
                ("headroom", ", section II-B"),
                ("rtt_ms", " until a report gives one (kDefaultRttMs)"),
            ],
        );
        fields.number("window_ms", "ms", (10.0, 1e4), &mut self.window_ms).says("window of R, section II-B");
        fields.block(
            &mut self.loss,
            &[
                ("loss_low", ", eq. 6"),
                ("loss_high", ", eq. 6"),
                ("loss_increase", ", eq. 6"),
                ("loss_decrease", ", eq. 6"),
            ],
        );
        fields.millis("loss_hold_ms", (0.0, 1e4), &mut self.loss_hold).says(
            "A_s does not fall again for this and a round-trip time (kBweDecreaseIntervalMs); with 0 once a round-trip time",
        );
        fields
            .number("pacing_factor", "", (1.0, 10.0), &mut self.pacing_factor)
            .says("pacing rate over target (kDefaultPaceMultiplier)");
    }

    fn build(&self, setup: &Setup) -> Controller {
        Controller {
            send: Some(Box::new(Sender {
                filter: self.kalman,
                kalman: TwoStateKalman::new(self.kalman),
                threshold: AdaptiveThreshold::new(self.threshold),
                detector: OveruseDetector::new(self.overuse_ms),
                rate: Aimd::starting_at(self.rate, setup.start, setup.min),
                loss: LossController::new(self.loss, setup.start),
                loss_high: self.loss.high,
                loss_hold: self.loss_hold,
                rtt: self.rate.rtt,
                fell: None,
                remb: Rate::MAX,
                delay: None,
                clock: RemoteTime::ZERO,
                heard: None,
                updated: None,
                min: setup.min,
                pacing_factor: self.pacing_factor,
            })),
            receive: Some(Box::new(Receiver {
                groups: BurstGroups::new(self.groups),
                incoming: IncomingRate::new(TimeDelta::from_millis_f64(self.window_ms)),
                heard: None,
                pending: None,
            })),
            feedback: FeedbackKind::None,
            ecn: Ecn::NotEct,
        }
    }
}

/// After this much silence groups and filter begin anew (kStreamTimeOutMs).
const SILENCE: TimeDelta = TimeDelta::from_secs(2);

struct Receiver {
    groups: BurstGroups,
    incoming: IncomingRate,
    /// When the last packet arrived.
    heard: Option<RemoteTime>,
    pending: Option<GradientReport>,
}

impl ReceiveHalf for Receiver {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, _: &mut Signals) {
        let Some(sent) = arrival.sent else { return };
        self.incoming.restart_if_empty(now);
        self.incoming.handle_arrival(now, arrival.size);
        if self.heard.replace(now).is_none_or(|heard| now - heard > SILENCE) {
            self.groups.restart();
        }
        if let Some(step) = self.groups.handle_arrival(now, sent, arrival.size) {
            let incoming = self.incoming.rate_so_far(now).unwrap_or(Rate::ZERO);
            self.pending = Some(GradientReport { step, incoming });
        }
    }

    #[inline]
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Gradient)
    }
}

struct Sender {
    filter: TwoStateConfig,
    kalman: TwoStateKalman,
    threshold: AdaptiveThreshold,
    detector: OveruseDetector,
    rate: Aimd<Time>,
    loss: LossController,
    /// Above this fraction lost `A_s` falls.
    loss_high: f64,
    /// Least time between two falls for loss, before the round-trip time.
    loss_hold: TimeDelta,
    rtt: TimeDelta,
    /// When `A_s` last fell for loss.
    fell: Option<Time>,
    /// A receiver that estimates may bound the rate, too.
    remb: Rate,
    /// `A_r`, once there was a gradient.
    delay: Option<Rate>,
    /// The receiver's clock as the steps that were reported add up to.
    clock: RemoteTime,
    /// When the last gradient came.
    heard: Option<Time>,
    /// When the rate was last updated.
    updated: Option<Time>,
    min: Rate,
    pacing_factor: f64,
}

impl SendHalf for Sender {
    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        if let Some(rtt) = report.rtt {
            self.rtt = rtt;
            self.rate.set_rtt(rtt);
        }
        // Reports come several times a round trip, and a fall shows in them only after one.
        let falls = report.fraction_lost.get() > self.loss_high;
        if !falls || self.fell.is_none_or(|fell| now - fell >= self.loss_hold + self.rtt) {
            self.loss.handle_report(report.fraction_lost, report.rtt);
            self.fell = if falls { Some(now) } else { self.fell };
        }
        self.bound(signals);
        signals.emit(8, report.fraction_lost.get());
    }

    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        match message {
            Message::Gradient(report) => self.handle_gradient(now, report, signals),
            Message::Remb(rate) => self.remb = *rate,
            Message::Nada(_) => return,
        }
        self.bound(signals);
    }

    /// `A = min(A_s, A_r)`; one video stream gets no padding from libwebrtc.
    fn decision(&self) -> Decision {
        let target = self.loss.rate();
        Decision { target, pacing: target.scale(self.pacing_factor), window: None, padding: Rate::ZERO }
    }
}

impl Sender {
    /// Filter and detector take every report.
    fn handle_gradient(&mut self, now: Time, report: &GradientReport, signals: &mut Signals) {
        if self.heard.replace(now).is_none_or(|heard| now - heard > SILENCE) {
            self.kalman = TwoStateKalman::new(self.filter);
            self.detector.recount();
        }
        let step = &report.step;
        let (arrival, departure) = (step.arrival.as_millis_f64(), step.departure.as_millis_f64());
        let before = self.detector.usage();
        let m = self.kalman.update(arrival, departure, step.size as f64, before == Usage::Normal, before.sign());
        let scaled = self.detector.scale(m);
        let usage = self.detector.update(m, scaled, self.threshold.gamma_ms(), departure);
        self.clock += step.arrival.max(TimeDelta::ZERO);
        if self.detector.is_ready() {
            self.threshold.update(self.clock, scaled);
        }
        if self.is_due(now, before, report.incoming) {
            self.delay = self.rate.update(now, usage, Some(report.incoming).filter(|r| !r.is_zero()));
            self.updated = Some(now);
        }
        signals.emit(0, step.gradient_ms());
        signals.emit(1, scaled);
        signals.emit(2, self.threshold.gamma_ms());
        signals.emit(3, usage.index());
        signals.emit(4, self.rate.state().index());
        signals.emit(5, report.incoming.as_bps_f64());
        signals.emit(6, self.delay.unwrap_or(Rate::ZERO).as_bps_f64());
    }

    /// The rate follows regularly, when over-use is found, and once a round-trip time while it lasts.
    fn is_due(&self, now: Time, before: Usage, incoming: Rate) -> bool {
        let regular = self.updated.is_none_or(|updated| now - updated > self.rate.interval());
        match (self.detector.usage(), before) {
            (Usage::Over, Usage::Over) => self.rate.may_decrease_again(now, incoming),
            (Usage::Over, _) => true,
            _ => regular,
        }
    }

    /// `A_s` cannot exceed `A_r`.
    fn bound(&mut self, signals: &mut Signals) {
        self.loss.bound(self.min, self.delay.unwrap_or(Rate::MAX).min(self.remb));
        signals.emit(7, self.loss.rate().as_bps_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::GroupDelta;
    use crate::{MediaKind, PacketKind};
    use paceline_units::{DataSize, Fraction, StreamId};

    const SETUP: Setup = Setup { start: Rate::from_kbps(300), min: Rate::from_kbps(30), max: Rate::from_kbps(2000) };

    fn pair(changes: impl FnOnce(&mut GccMed16Config)) -> (Box<dyn SendHalf>, Box<dyn ReceiveHalf>) {
        let mut config = GccMed16Config::default();
        changes(&mut config);
        let pair = config.build(&SETUP);
        (pair.send.expect("it has one"), pair.receive.expect("it has one"))
    }

    /// A packet of so many bytes; answers what is reported.
    fn arrive(half: &mut dyn ReceiveHalf, sent_ms: i64, arrived_ms: i64, bytes: u64) -> Option<GradientReport> {
        let arrival = Arrival {
            sent: Some(Time::from_millis(sent_ms)),
            timestamp: 0,
            sequence: 0,
            stream: StreamId(0),
            media: MediaKind::Video,
            kind: PacketKind::Media,
            size: DataSize::from_bytes(bytes),
            ecn: Ecn::NotEct,
        };
        let now = RemoteTime::from_millis(arrived_ms);
        half.handle_arrival(now, &arrival, &mut Signals::unheard());
        match half.poll_message(now)? {
            Message::Gradient(report) => Some(report),
            other => panic!("{other:?}"),
        }
    }

    fn gradient(arrival_ms: i64, departure_ms: i64, size: i64, kbps: u64) -> Message {
        let (arrival, departure) = (TimeDelta::from_millis(arrival_ms), TimeDelta::from_millis(departure_ms));
        let step = GroupDelta { arrival, departure, size };
        Message::Gradient(GradientReport { step, incoming: Rate::from_kbps(kbps) })
    }

    /// By hand: groups of two packets each 20 ms, the second pair 3 ms late; d_m = 23 - 20 = 3 ms, 400 bytes more. The
    /// third begins and completes it. With neither groups nor bursts each packet from the third on has a report.
    #[test]
    fn the_receiver_measures_each_group() {
        let packets = [(0, 1000, 1000), (2, 1002, 1000), (20, 1023, 1200), (22, 1025, 1200), (40, 1043, 1000)];
        let told = |half: &mut dyn ReceiveHalf| -> Vec<_> {
            packets.iter().map(|&(sent, came, bytes)| arrive(half, sent, came, bytes)).collect()
        };
        let reports = told(&mut *pair(|_| {}).1);
        assert!(reports[..4].iter().all(Option::is_none), "{reports:?}");
        let report = reports[4].unwrap();
        assert_eq!((report.step.gradient_ms(), report.step.size), (3.0, 400));
        // 5400 bytes in 43 ms and the one that libwebrtc adds: 981.8 kbit/s.
        assert_eq!(report.incoming.as_bps(), 981_818);
        let mut half = pair(|c| (c.groups.group, c.groups.burst) = (TimeDelta::ZERO, TimeDelta::ZERO)).1;
        let gradients: Vec<_> = told(&mut *half).iter().map(|r| r.map(|r| r.step.gradient_ms())).collect();
        // Each report is on the packet before the one that completes it.
        assert_eq!(gradients, [None, None, Some(0.0), Some(3.0), Some(0.0)]);
    }

    /// 5 % per report without loss, half of what is lost when that is more than a tenth: eq. 6; never above A_r.
    #[test]
    fn equation_6_below_the_delay_based_rate() {
        let after = |fractions: &[f64]| {
            let mut half = pair(|_| {}).0;
            let mut signals = Signals::unheard();
            for ms in [10, 1010] {
                half.handle_message(Time::from_millis(ms), &gradient(33, 33, 0, 900), &mut signals);
            }
            for f in fractions {
                let report = ReceiverReport { fraction_lost: Fraction::new(*f).unwrap(), rtt: None };
                half.handle_report(Time::from_millis(1020), &report, &mut signals);
            }
            half.decision().target.as_bps()
        };
        // The step into Increase adds a kbit/s to A_r, a second later there is 8 % more: 325.08.
        assert_eq!([after(&[0.0]), after(&[0.05]), after(&[0.2])], [315_000, 300_000, 270_000]);
        assert_eq!(after(&[0.0, 0.0, 0.0]), 325_080, "A_r");
    }

    /// A fifth lost in each of ten reports within a second: 0.9 at once, and again each 300 ms and round trip.
    #[test]
    fn loss_is_answered_once_a_round_trip() {
        let mut half = pair(|_| {}).0;
        let report =
            ReceiverReport { fraction_lost: Fraction::new(0.2).unwrap(), rtt: Some(TimeDelta::from_millis(100)) };
        let mut targets = Vec::new();
        for i in 0..10 {
            half.handle_report(Time::from_millis(5000 + 100 * i), &report, &mut Signals::unheard());
            targets.push(half.decision().target.as_bps());
        }
        assert_eq!(targets, [[270_000; 4].as_slice(), &[243_000; 4], &[218_700; 2]].concat());
    }

    /// The queue grows by 3 ms a group and the sender falls to 0.85 R; once, and again when a round-trip time has
    /// passed; a path that stays lets it grow by 8 % a second.
    #[test]
    fn the_sender_estimates() {
        let mut half = pair(|_| {}).0;
        let mut signals = Signals::unheard();
        for i in 0..300 {
            half.handle_message(Time::from_millis(33 * i), &gradient(33, 33, 0, 1000), &mut signals);
            let report = ReceiverReport { fraction_lost: Fraction::from_q8(0), rtt: Some(TimeDelta::from_millis(100)) };
            half.handle_report(Time::from_millis(33 * i), &report, &mut signals);
        }
        let grown = half.decision().target.as_bps();
        // 301, then 1.08 per second for 9.9 s: 645.
        assert!((630_000..=650_000).contains(&grown), "{grown}");
        let mut falls = Vec::new();
        for i in 300..330 {
            let before = half.decision().target;
            half.handle_message(Time::from_millis(33 * i), &gradient(36, 33, 0, 600), &mut signals);
            let after = half.decision().target;
            if after < before {
                falls.push((i - 300, after.as_bps()));
            }
        }
        assert_eq!(falls.len(), 1, "R stays: {falls:?}");
        assert!((2..25).contains(&falls[0].0) && falls[0].1 == 510_000, "{falls:?}");
        // Still over-used, and less comes in: again.
        half.handle_message(Time::from_millis(33 * 340), &gradient(36, 33, 0, 400), &mut signals);
        assert_eq!(half.decision().target.as_bps(), 340_000);
    }

    /// After two seconds without a report the filter begins anew: what the gradient was no longer counts.
    #[test]
    fn silence_is_forgotten() {
        let scaled_after = |pause_ms: i64| {
            let (mut half, mut signals) = (pair(|_| {}).0, Signals::heard());
            for i in 0..200 {
                half.handle_message(Time::from_millis(20 * i), &gradient(22, 20, 0, 500), &mut signals);
            }
            signals.drain().for_each(drop);
            half.handle_message(Time::from_millis(3980 + pause_ms), &gradient(20, 20, 0, 500), &mut signals);
            let mut scaled = signals.drain().filter(|(signal, _)| *signal == 1).map(|(_, value)| value);
            scaled.next().expect("one report")
        };
        assert!(scaled_after(1900) > 60.0, "{}", scaled_after(1900));
        assert!(scaled_after(2100).abs() < 0.01, "{}", scaled_after(2100));
    }

    /// A REMB bounds it like every GCC, and NADA's reports are not for it.
    #[test]
    fn other_messages() {
        let mut half = pair(|_| {}).0;
        let mut signals = Signals::unheard();
        half.handle_message(Time::from_millis(10), &Message::Remb(Rate::from_kbps(200)), &mut signals);
        assert_eq!(half.decision().target, Rate::from_kbps(200));
        let before = half.decision();
        let (mode, signal) = (crate::NadaMode::Gradual, TimeDelta::from_secs(2));
        let report = crate::NadaReport { mode, signal, incoming: Rate::from_kbps(50) };
        half.handle_message(Time::from_millis(20), &Message::Nada(report), &mut signals);
        assert_eq!(half.decision(), before);
    }
}
