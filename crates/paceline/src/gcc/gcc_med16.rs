// SPDX-License-Identifier: MIT OR Apache-2.0
//! GCC as described and simulated in med16, at the end of 2015: the receiver measures, the sender estimates.
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
//! `docs/algorithms/gcc-med16.md` lists the points that the paper does not specify, with the sources of the choices.

use super::STREAM_TIMEOUT;
use super::arrivals::Arrivals;
use super::filtered_detector::FilteredDetector;
use crate::blocks::units::floor_sent;
use crate::blocks::{
    AdaptiveDetector, Aimd, AimdConfig, BurstConfig, BurstGroups, GroupDelta, IncomingRate, LossConfig, LossController,
    RateState, ThresholdConfig, TwoStateConfig, Usage,
};
use crate::params::config;
use crate::{
    AppMessage, Arrival, Bounds, Config, Controller, Decision, Entry, Event, Message, ReceiveHalf, ReceiverReport,
    RoundTrip, SendHalf, Setup, SignalName, SignalTables, Signals, signal_names,
};
use paceline_units::{Rate, RemoteTime, Time, TimeDelta};

pub(crate) fn entry() -> Entry {
    Entry::new(
        "gcc-med16",
        "GCC of late 2015 at the sender: the receiver reports each group's gradient; two-state Kalman filter, adaptive threshold",
        "Carlucci et al.: Congestion Control for Real-time Communications, a comparison between NADA and GCC (MED 2016), section II-B; draft-ietf-rmcat-gcc of 2015",
        GccMed16Config::default(),
    )
}

config! {
    /// The parameters of GCC in med16.
    #[derive(Clone, Debug, PartialEq)]
    pub struct GccMed16Config {
        /// med16, and the draft of the same year where the paper gives no value.
        default const MED16;

        /// Grouping of packets.
        groups: BurstConfig = BurstConfig::Y2018, block {
            group: "kTimestampGroupLengthMs; as printed every packet is reported: 0, with burst_ms 0",
            burst,
            burst_max,
            resolution,
        };
        /// Resolution to which departures are rounded down; 0: no rounding.
        sent_clock as "sent_clock_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=100.0,
            from "abs-send-time; libwebrtc's simulation framework: 1";
        /// The arrival-time filter.
        kalman: TwoStateConfig = TwoStateConfig::Y2015, block { q_slope, q_offset, variance_min };
        /// The adaptive threshold.
        threshold: ThresholdConfig = ThresholdConfig::GCC_02, block {
            gamma_0: "draft-ietf-rmcat-gcc, del_var_th(0)",
            k_u: "draft-ietf-rmcat-gcc",
            k_d: "draft-ietf-rmcat-gcc",
            gamma_min: "draft-ietf-rmcat-gcc",
            gamma_max: "draft-ietf-rmcat-gcc",
            guard: "draft-ietf-rmcat-gcc",
        };
        /// Time for which over-use must last.
        overuse_ms: f64 = 10.0, unit "ms", in 0.0..=1e4, from "draft-ietf-rmcat-gcc, overuse_time_th";
        /// The rate control.
        rate: AimdConfig = AimdConfig::Y2018, block {
            eta: "draft-ietf-rmcat-gcc; figure 4 gives 1.005 to 1.3 a step",
            beta as "alpha": "draft-ietf-rmcat-gcc, beta; figure 4 gives 0.8 to 0.95",
            headroom: "section II-B",
            rtt: "kDefaultRttMs",
        };
        /// Window of R.
        window_ms: f64 = 500.0, unit "ms", in 10.0..=1e4, from "section II-B";
        /// The loss-based controller.
        loss: LossConfig = LossConfig::Y2016, block {
            low: "eq. 6", high: "eq. 6", increase: "eq. 6", decrease: "eq. 6",
        };
        /// Shortest time between two decreases for loss, to which the round-trip time is added.
        loss_hold as "loss_hold_ms": TimeDelta = TimeDelta::from_millis(300), in 0.0..=1e4,
            from "kBweDecreaseIntervalMs";
        /// Pacing rate over target.
        pacing_factor: f64 = 2.5, in 1.0..=10.0, from "kDefaultPaceMultiplier";
    }
}

impl Config for GccMed16Config {
    const SIGNALS: SignalTables = (SenderSignal::TABLE, &[]);

    fn couples(&self) -> bool {
        true
    }

    fn halves(&self, setup: &Setup) -> Controller {
        Controller::from_halves(Sender::new(self, setup), Receiver::new(self))
    }
}

/// A measurement of the receiver, in an application-defined message with four words of data. A value outside the range of
/// its word is written as the nearest value in range.
///
/// ```text
/// |       d_m = (t_i - t_{i-1}) - (T_i - T_{i-1}), signed, us     |
/// |       T_i - T_{i-1}, us                                       |
/// |       L_i - L_{i-1}, signed, bytes                            |
/// |       R, bit/s; 0 while it is unknown                         |
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct GradientReport {
    /// The step between two groups, which contains the gradient `d_m`.
    step: GroupDelta,
    /// `R`; zero while it is unknown.
    incoming: Rate,
}

impl GradientReport {
    const NAME: [u8; 4] = *b"GCCM";

    fn message(&self) -> Option<Message> {
        const MICROSECOND: TimeDelta = TimeDelta::from_micros(1);
        let micros = |span: TimeDelta| (span + MICROSECOND / 2).as_nanos().div_euclid(MICROSECOND.as_nanos());
        let signed = |value: i64| value.clamp(i32::MIN.into(), i32::MAX.into()) as u32;
        let GroupDelta { arrival, departure, size } = self.step;
        let departed = micros(departure).clamp(0, u32::MAX.into()) as u32;
        let rate = self.incoming.as_bps().min(u32::MAX.into()) as u32;
        let words = [signed(micros(arrival - departure)), departed, signed(size), rate];
        AppMessage::new(Self::NAME, 0, &words).map(Message::App)
    }

    /// Returns the measurement in a message; `None` for another message.
    fn read(message: &AppMessage) -> Option<Self> {
        let (Self::NAME, 0, &[gradient, departure, size, rate]) = (message.name(), message.subtype(), message.data())
        else {
            return None;
        };
        let (gradient, departure) =
            (TimeDelta::from_micros((gradient as i32).into()), TimeDelta::from_micros(departure.into()));
        let step = GroupDelta { arrival: gradient + departure, departure, size: (size as i32).into() };
        Some(Self { step, incoming: Rate::from_bps(rate.into()) })
    }
}

#[derive(Clone, Debug)]
struct Receiver {
    config: GccMed16Config,
    arrivals: Arrivals<BurstGroups>,
    pending: Option<GradientReport>,
}

impl Receiver {
    fn new(config: &GccMed16Config) -> Self {
        let incoming = IncomingRate::growing_window(TimeDelta::from_millis_f64(config.window_ms));
        let arrivals = Arrivals::new(BurstGroups::new(config.groups), incoming);
        Self { config: config.clone(), arrivals, pending: None }
    }
}

impl ReceiveHalf for Receiver {
    fn handle_route_change(&mut self, _: RemoteTime, _: &Setup) {
        *self = Self::new(&self.config);
    }

    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, _: &mut Signals) {
        let sent = arrival.sent.map(|sent| floor_sent(sent, self.config.sent_clock));
        let arrival = Arrival { sent, ..*arrival };
        if let Some(step) = self.arrivals.handle_arrival(now, &arrival).and_then(|step| step.delta) {
            let incoming = self.arrivals.incoming(now).unwrap_or(Rate::ZERO);
            self.pending = Some(GradientReport { step, incoming });
        }
    }

    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take()?.message()
    }
}

signal_names! {
    /// The signals of the send half.
    pub enum SenderSignal {
        Gradient = series("d_m", "ms"),
        Scaled = series("m scaled", "ms"),
        Threshold = series("gamma", "ms"),
        Usage = state("usage", Usage::NAMES),
        State = state("sigma", RateState::NAMES),
        Incoming = series("R", "bit/s"),
        DelayBased = series("A_r", "bit/s"),
        LossBased = series("A_s", "bit/s"),
        FractionLost = series("f_l", ""),
    }
}

#[derive(Clone, Debug)]
struct Sender {
    config: GccMed16Config,
    detector: FilteredDetector,
    rate: Aimd<Time>,
    loss: LossController,
    rtt: TimeDelta,
    /// The time at which `A_s` last decreased for loss.
    decreased: Option<Time>,
    /// A receiver that estimates the rate itself may bound it as well.
    remb: Rate,
    /// `A_r`, after the first gradient.
    delay_based: Option<Rate>,
    /// The receiver's clock: the sum of the reported steps.
    clock: RemoteTime,
    last_gradient: Option<Time>,
    bounds: Bounds,
}

impl SendHalf for Sender {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        match *event {
            Event::RoundTrip(rtt) => self.handle_rtt(rtt),
            Event::Report(report) => self.handle_report(now, report, signals),
            Event::Message(message) => self.handle_message(now, message, signals),
            Event::Bounds(bounds) => self.handle_bounds(bounds, signals),
            Event::RouteChange(setup) => *self = Self::new(&self.config, setup),
            Event::CoupledRate(share) => self.set_coupled_rate(share, signals),
            _ => {}
        }
    }

    fn decides_on_sent(&self) -> bool {
        false
    }

    /// RFC 8699, appendix A: the estimate of the available bandwidth is exchanged. Both parts of it are at the sender.
    fn calculated_rate(&self) -> Option<Rate> {
        Some(self.loss.rate())
    }

    /// `A = min(A_s, A_r)`. libwebrtc does not pad a single video stream.
    fn decision(&self) -> Decision {
        let target = self.loss.rate();
        Decision { pacing: target.scale(self.config.pacing_factor), ..Decision::new(target) }
    }
}

impl Sender {
    fn handle_rtt(&mut self, rtt: &RoundTrip) {
        self.rtt = rtt.last;
        self.rate.set_rtt(rtt.last);
        self.loss.set_rtt(rtt.last);
    }

    fn handle_report(&mut self, now: Time, report: &ReceiverReport, signals: &mut Signals) {
        // Several reports arrive per round trip, but a decrease is visible in them only after one round trip.
        let decreases = report.fraction_lost.get() > self.config.loss.high;
        if !decreases || self.decreased.is_none_or(|at| now - at >= self.config.loss_hold + self.rtt) {
            self.loss.handle_report(report.fraction_lost);
            self.decreased = if decreases { Some(now) } else { self.decreased };
        }
        self.bound(signals);
        signals.emit(SenderSignal::FractionLost, report.fraction_lost.get());
    }

    fn handle_message(&mut self, now: Time, message: &Message, signals: &mut Signals) {
        match message {
            Message::Remb(rate) => self.remb = *rate,
            Message::App(message) => match GradientReport::read(message) {
                Some(report) => self.handle_gradient(now, &report, signals),
                None => return,
            },
            Message::Nada(_) => return,
        }
        self.bound(signals);
    }

    fn handle_bounds(&mut self, bounds: &Bounds, signals: &mut Signals) {
        self.rate.set_min(bounds.min);
        self.bounds = *bounds;
        self.bound(signals);
    }

    fn set_coupled_rate(&mut self, share: Rate, signals: &mut Signals) {
        let ratio = share.as_bps_f64() / self.loss.rate().as_bps_f64().max(1.0);
        self.rate.scale(ratio);
        self.delay_based = self.delay_based.map(|rate| rate.scale(ratio).max(share));
        self.loss.set_coupled(share);
        self.bound(signals);
    }
}

impl Sender {
    fn new(config: &GccMed16Config, setup: &Setup) -> Self {
        let c = config.clone();
        let detector = AdaptiveDetector::new(c.overuse_ms, c.threshold, false);
        Self {
            detector: FilteredDetector::new(c.kalman, detector),
            rate: Aimd::starting_at(c.rate, setup),
            loss: LossController::new(c.loss, setup),
            rtt: c.rate.rtt,
            decreased: None,
            remb: Rate::MAX,
            delay_based: None,
            clock: RemoteTime::ZERO,
            last_gradient: None,
            // The maximum of the sources does not bound the target of the paper.
            bounds: Bounds { max: Rate::MAX, ..setup.bounds() },
            config: c,
        }
    }

    /// Filter and detector take every report into account.
    fn handle_gradient(&mut self, now: Time, report: &GradientReport, signals: &mut Signals) {
        if self.last_gradient.replace(now).is_some_and(|last| now - last > STREAM_TIMEOUT) {
            self.detector.restart();
        }
        let before = self.detector.usage();
        self.clock += report.step.arrival.max(TimeDelta::ZERO);
        let names = [SenderSignal::Gradient, SenderSignal::Scaled, SenderSignal::Threshold, SenderSignal::Usage];
        self.detector.handle_group(self.clock, &report.step, signals, names);
        if self.is_due(now, before, report.incoming) {
            let incoming = Some(report.incoming).filter(|r| !r.is_zero());
            self.delay_based = self.rate.update(now, self.detector.usage(), incoming);
        }
        signals.emit(SenderSignal::State, self.rate.state().index());
        signals.emit(SenderSignal::Incoming, report.incoming.as_bps_f64());
        signals.emit(SenderSignal::DelayBased, self.delay_based.unwrap_or(Rate::ZERO).as_bps_f64());
    }

    /// The rate is updated regularly, when over-use is detected, and while it lasts once per round-trip time.
    fn is_due(&self, now: Time, before: Usage, incoming: Rate) -> bool {
        match (self.detector.usage(), before) {
            (Usage::Over, Usage::Over) => self.rate.may_decrease_again(now, incoming),
            (Usage::Over, _) => true,
            _ => self.rate.is_interval_over(now),
        }
    }

    /// `A_s` cannot exceed `A_r`.
    fn bound(&mut self, signals: &mut Signals) {
        self.loss
            .bound(self.bounds.min, self.delay_based.unwrap_or(self.bounds.max).min(self.remb).min(self.bounds.max));
        signals.emit(SenderSignal::LossBased, self.loss.rate().as_bps_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Guard;
    use crate::testing::{Drive, SETUP, arrival, report, rtt};
    use alloc::boxed::Box;
    use alloc::vec::Vec;

    fn pair(changes: impl FnOnce(&mut GccMed16Config)) -> (Guard, Box<dyn ReceiveHalf>) {
        let mut config = GccMed16Config::default();
        changes(&mut config);
        let pair = config.halves(&SETUP);
        (pair.send.expect("a send half"), pair.receive.expect("a receive half"))
    }

    fn report_in(message: Message) -> GradientReport {
        let Message::App(message) = message else { panic!("{message:?}") };
        GradientReport::read(&message).expect("a gradient")
    }

    /// By hand: -1.5 ms, 33 ms, -240 bytes, 2.5 Mbit/s; then what does not fit its word.
    #[test]
    fn message_holds_the_report_in_four_words() {
        let us = TimeDelta::from_micros;
        let through = |arrival, departure, size, incoming| {
            let report = GradientReport { step: GroupDelta { arrival, departure, size }, incoming };
            let Some(Message::App(message)) = report.message() else { panic!() };
            (message, report, GradientReport::read(&message).unwrap())
        };
        let (message, report, read) = through(us(31_500), us(33_000), -240, Rate::from_kbps(2500));
        assert_eq!((message.name(), message.subtype()), (*b"GCCM", 0));
        assert_eq!(message.data(), [-1500i32 as u32, 33_000, -240i32 as u32, 2_500_000]);
        assert_eq!(read, report);
        for (sign, end) in [(1, i32::MAX), (-1, i32::MIN)] {
            let far = us(sign * (1 << 40));
            let (_, _, read) = through(far * 2, far, i64::from(end) * 2, Rate::MAX);
            let departure = us(if sign > 0 { u32::MAX.into() } else { 0 });
            let step = GroupDelta { arrival: us(end.into()) + departure, departure, size: end.into() };
            assert_eq!(read, GradientReport { step, incoming: Rate::from_bps(u32::MAX.into()) });
        }
        for (name, subtype, words) in [(b"GCCM", 0, 3), (b"GCCM", 1, 4), (b"MINE", 0, 4)] {
            let other = AppMessage::new(*name, subtype, &[0; 4][..words]).unwrap();
            assert_eq!(GradientReport::read(&other), None);
        }
    }

    /// Departures at 20.9 and 41.2 ms count as 20 and 41 ms: a step of 21 ms in place of 20.3.
    #[test]
    fn departures_have_the_resolution_of_the_clock() {
        let step = |sent_clock| {
            let mut half = pair(|c| c.sent_clock = TimeDelta::from_millis(sent_clock)).1;
            let reports = [0, 20_900, 41_200, 60_000].map(|us| {
                let now = RemoteTime::from_nanos(90_000_000_000 + us * 1000);
                let packet = Arrival { sent: Some(Time::from_nanos(us * 1000)), ..arrival(0, 1200) };
                half.handle_arrival(now, &packet, &mut Signals::disabled());
                half.poll_message(now)
            });
            let departures = reports.into_iter().flatten().map(|message| report_in(message).step.departure);
            departures.map(|departure| departure.as_nanos() / 1000).collect::<Vec<_>>()
        };
        assert_eq!((step(0), step(1)), (vec![20_900, 20_300], vec![20_000, 21_000]));
    }

    /// Handles a packet. Returns the report, if one is sent.
    fn arrive(half: &mut dyn ReceiveHalf, sent_ms: i64, arrived_ms: i64, bytes: u64) -> Option<GradientReport> {
        let now = RemoteTime::from_millis(arrived_ms);
        half.handle_arrival(now, &arrival(sent_ms, bytes), &mut Signals::disabled());
        half.poll_message(now).map(report_in)
    }

    fn gradient(arrival_ms: i64, departure_ms: i64, size: i64, kbps: u64) -> Message {
        let (arrival, departure) = (TimeDelta::from_millis(arrival_ms), TimeDelta::from_millis(departure_ms));
        let step = GroupDelta { arrival, departure, size };
        GradientReport { step, incoming: Rate::from_kbps(kbps) }.message().expect("a message")
    }

    /// By hand: groups of two packets each 20 ms, the second pair 3 ms late; d_m = 23 - 20 = 3 ms, 400 bytes more. The
    /// first packet of the third group completes it. With neither groups nor bursts each packet from the third on gives
    /// a report.
    #[test]
    fn receiver_reports_each_group() {
        let packets = [(0, 1000, 1000), (2, 1002, 1000), (20, 1023, 1200), (22, 1025, 1200), (40, 1043, 1000)];
        let reports_of = |half: &mut dyn ReceiveHalf| -> Vec<_> {
            packets.iter().map(|&(sent, came, bytes)| arrive(half, sent, came, bytes)).collect()
        };
        let reports = reports_of(&mut *pair(|_| {}).1);
        assert!(reports[..4].iter().all(Option::is_none), "{reports:?}");
        let report = reports[4].unwrap();
        assert_eq!((report.step.gradient_ms(), report.step.size), (3.0, 400));
        // 5400 bytes in 43 ms plus the millisecond that libwebrtc adds: 981.8 kbit/s.
        assert_eq!(report.incoming.as_bps(), 981_818);
        let mut half = pair(|c| (c.groups.group, c.groups.burst) = (TimeDelta::ZERO, TimeDelta::ZERO)).1;
        let gradients: Vec<_> = reports_of(&mut *half).iter().map(|r| r.map(|r| r.step.gradient_ms())).collect();
        // Each report describes the packet before the one that completes it.
        assert_eq!(gradients, [None, None, Some(0.0), Some(3.0), Some(0.0)]);
    }

    /// Eq. 6: 5 % more per report without loss; less half of the loss if that exceeds 10 %; never above A_r.
    #[test]
    fn loss_based_rate_follows_equation_6_below_the_delay_based_rate() {
        let after = |fractions: &[f64]| {
            let mut half = pair(|_| {}).0;
            for ms in [10, 1010] {
                half.on(ms, Event::Message(&gradient(33, 33, 0, 900)));
            }
            for f in fractions {
                half.on(1020, Event::Report(&report(*f)));
            }
            half.decision().target.as_bps()
        };
        // The first step in Increase adds 1 kbit/s to A_r; a second later it grows by 8 %: 325.08.
        assert_eq!([after(&[0.0]), after(&[0.05]), after(&[0.2])], [315_000, 300_000, 270_000]);
        assert_eq!(after(&[0.0, 0.0, 0.0]), 325_080, "A_r");
    }

    /// 20 % lost in each of ten reports within a second: 0.9 immediately, then after each 300 ms plus round-trip time.
    #[test]
    fn decreases_for_loss_once_per_round_trip() {
        let mut half = pair(|_| {}).0;
        half.on(0, Event::RoundTrip(&rtt(100)));
        let report = report(0.2);
        let mut targets = Vec::new();
        for i in 0..10 {
            half.on(5000 + 100 * i, Event::Report(&report));
            targets.push(half.decision().target.as_bps());
        }
        assert_eq!(targets, [[270_000; 4].as_slice(), &[243_000; 4], &[218_700; 2]].concat());
    }

    /// On an empty path the rate grows by 8 % per second. When the queue grows by 3 ms per group, it falls to 0.85 R,
    /// and again after a round-trip time.
    #[test]
    fn sender_estimates_the_rate_from_gradients() {
        let mut half = pair(|_| {}).0;
        for i in 0..300 {
            half.on(33 * i, Event::Message(&gradient(33, 33, 0, 1000)));
            half.on(33 * i, Event::Report(&report(0.0)));
        }
        let grown = half.decision().target.as_bps();
        // 301, then 1.08 per second for 9.9 s: 645.
        assert!((630_000..=650_000).contains(&grown), "{grown}");
        let mut falls = Vec::new();
        for i in 300..330 {
            let before = half.decision().target;
            half.on(33 * i, Event::Message(&gradient(36, 33, 0, 600)));
            let after = half.decision().target;
            if after < before {
                falls.push((i - 300, after.as_bps()));
            }
        }
        assert_eq!(falls.len(), 1, "R does not change: {falls:?}");
        assert!((2..25).contains(&falls[0].0) && falls[0].1 == 510_000, "{falls:?}");
        // Over-use continues and R is lower: another decrease.
        half.on(33 * 340, Event::Message(&gradient(36, 33, 0, 400)));
        assert_eq!(half.decision().target.as_bps(), 340_000);
    }

    #[test]
    fn filter_restarts_after_two_seconds_without_reports() {
        let scaled_after = |pause_ms: i64| {
            let (mut half, mut signals) = (pair(|_| {}).0, Signals::enabled());
            for i in 0..200 {
                half.on(20 * i, Event::Message(&gradient(22, 20, 0, 500)));
            }
            let (now, message) = (Time::from_millis(3980 + pause_ms), gradient(20, 20, 0, 500));
            half.handle_event(now, &Event::Message(&message), &mut signals);
            let mut scaled = signals.drain().filter(|(signal, _)| *signal == 1).map(|(_, value)| value);
            scaled.next().expect("one report")
        };
        assert!(scaled_after(1900) > 60.0, "{}", scaled_after(1900));
        assert!(scaled_after(2100).abs() < 0.01, "{}", scaled_after(2100));
    }

    #[test]
    fn remb_bounds_the_rate_and_nada_reports_are_ignored() {
        let mut half = pair(|_| {}).0;
        assert_eq!(half.on(10, Event::Message(&Message::Remb(Rate::from_kbps(200)))), Rate::from_kbps(200));
        let before = half.decision();
        let (mode, signal) = (crate::NadaMode::Gradual, TimeDelta::from_secs(2));
        let report = crate::NadaReport { mode, signal, incoming: Rate::from_kbps(50) };
        half.on(20, Event::Message(&Message::Nada(report)));
        assert_eq!(half.decision(), before);
    }
}
