// SPDX-License-Identifier: MIT OR Apache-2.0
//! NADA as described in med16, after the drafts of 2015.
//!
//! ```text
//! receiver:  packets -> QueueDelay -> MedianEwma -> quartic_warping -> d~ ----\
//!            packets -> SequenceTracker -> ShareWindow p, 500 ms --------------> x_n = d~ + D_loss p, each 100 ms
//!            packets -> IncomingRate R, 500 ms --------------------------------> with R
//! sender:    x_n < 10 ms, no loss: ramp_up, else gradual -> R_n -> Shaping -> R_i to encoders, R_send to the pacer
//! ```
//!
//! `docs/algorithms/nada-2015.md` lists the points that the paper does not specify, with the sources of the choices.

use super::observer::OBSERVED;
use super::receiver::{Observe, Receiver};
use super::sender::{Generation, Sender, SenderConfig, SenderSignal};
use super::{
    GradualConfig, MedianEwma, RampUpConfig, SequencePosition, ShapingConfig, ShareWindow, linear_signal,
    quartic_warping,
};
use crate::blocks::units::{floor_arrival, floor_sent};
use crate::blocks::{BaseDelayConfig, IncomingRate, QueueDelay};
use crate::params::config;
use crate::{
    Arrival, Config, Controller, Entry, NadaMode, NadaReport, Setup, SignalName, SignalTables, Signals, signal_names,
};
use libm::floor;
use paceline_units::{Ecn, Rate, RemoteTime, TimeDelta};

pub(crate) fn entry() -> Entry {
    Entry::new(
        "nada-2015",
        "NADA of 2015: queuing delay and loss as one signal, ramp-up and gradual update, a rate-shaping buffer",
        "Carlucci et al.: Congestion Control for Real-time Communications, a comparison between NADA and GCC (MED 2016), section II-A; draft-ietf-rmcat-nada-00",
        Nada2015Config::default(),
    )
}

config! {
    /// The parameters of NADA in med16.
    #[derive(Clone, Debug, PartialEq)]
    pub struct Nada2015Config {
        /// The paper, and the draft where the paper gives no value.
        default const MED16;

        /// Time between two reports.
        interval as "delta_ms": TimeDelta = TimeDelta::from_millis(100), in 10.0..=1e4, from "section II-A, Delta";
        /// Window of loss ratio and received rate.
        window as "window_ms": TimeDelta = TimeDelta::from_millis(500), in 10.0..=1e4, from "section II-A";
        /// Weight of the past in the delay filter.
        alpha: f64 = 0.9, in 0.0..=1.0, from "section II-A";
        /// Queuing delay from which warping reduces it.
        warping_start as "knee_ms": f64 = 50.0, unit "ms", in 0.0..=1e4,
            from "figure 2; 100 in draft-ietf-rmcat-nada-00";
        /// Queuing delay from which on the warped delay is zero.
        warping_end as "d_max_ms": f64 = 400.0, unit "ms", in 0.0..=1e4, from "figure 2";
        /// Whether the delay is warped only while losses are in the window.
        warp_with_loss: bool = false, from "section II-A; so in draft-ietf-rmcat-nada-00";
        /// Delay that a loss ratio of 1 stands for.
        d_loss as "d_loss_ms": f64 = 1000.0, unit "ms", in 0.0..=1e5, from "section II-A, D_loss";
        /// Signal below which, without loss, the sender ramps up.
        ramp_up_ms: f64 = 10.0, unit "ms", in 0.0..=1e4, from "section II-A";
        /// Accelerated ramp-up.
        ramp_up: RampUpConfig = RampUpConfig { gamma_max: 0.2, q_bound: 50.0 }, block {
            gamma_max: "section II-A",
            q_bound as "q_bound_ms": "section II-A",
        };
        /// Gradual update.
        gradual: GradualConfig = GradualConfig::MED16, block {
            x_ref as "x_ref_ms": "section II-A; 10 in the simulator that med16 used",
            kappa: "draft-ietf-rmcat-nada-00; 1 in the simulator that med16 used",
            eta: "draft-ietf-rmcat-nada-00",
            tau: "draft-ietf-rmcat-nada-00",
            r_max: "not in the paper, where R_max is the highest rate of the source",
        };
        /// Round-trip time until a report gives one.
        rtt as "rtt_ms": TimeDelta = TimeDelta::from_millis(100), in 0.0..=1e4, from "the simulator that med16 used";
        /// Share of the shaping buffer that lowers the encoders' rate and raises the pacing rate.
        beta: f64 = 0.1, in 0.0..=10.0, from "section II-A";
        /// Frame rate that converts the shaping buffer to a rate.
        fps: f64 = 30.0, unit "1/s", in 1.0..=1000.0, from "draft-ietf-rmcat-nada-00";
        /// Largest difference due to shaping, as a share of the rate.
        beta_most: f64 = 1.0, in 0.0..=1.0, from "all, because the paper has no bound; 0.05 in RFC 8698";
        /// Pacing over `R_send`. With 100 frames leave at once, as in the simulator that med16 used.
        pacing_factor: f64 = 1.0, in 1.0..=1e3, from "figure 1";
        /// Whether delays are whole milliseconds and rates whole kbit/s, rounded in each step.
        whole_units: bool = false, from "not in the paper; so in the simulator that med16 used";
    }
}

impl Config for Nada2015Config {
    const SIGNALS: SignalTables = (Nada2015Signal::TABLE, Receiver2015Signal::TABLE);

    fn couples(&self) -> bool {
        true
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let sender = SenderConfig {
            generation: Generation::Y2015 { pacing_factor: self.pacing_factor, whole_kbps: self.whole_units },
            interval: self.interval,
            response: self.interval,
            ramp_up: self.ramp_up,
            gradual: self.gradual,
            shaping: ShapingConfig { beta_v: self.beta, beta_s: self.beta, fps: self.fps, most: self.beta_most },
            rtt: self.rtt,
            ecn: Ecn::NotEct,
            window_queue: TimeDelta::ZERO,
        };
        let observer = Observer2015::new(self);
        Controller::from_halves(
            Sender::<Nada2015Signal>::new(sender, setup, None),
            Receiver::new(observer, self.interval, self.window),
        )
    }
}

signal_names! {
    /// The signals of the send half.
    pub enum Nada2015Signal {
        Rate = series("R_n", "bit/s"),
        Mode = state("mode", NadaMode::NAMES),
        Signal = series("x_n", "ms"),
        Received = series("r_recv", "bit/s"),
        Queued = series("b_l", "B"),
        Rtt = series("rtt", "ms"),
    }
}

impl SenderSignal for Nada2015Signal {
    const RATE: Self = Self::Rate;
    const REPORT: [Self; 4] = [Self::Mode, Self::Signal, Self::Received, Self::Queued];
    const RTT: Self = Self::Rtt;
    const OBSERVED: Option<[Self; OBSERVED]> = None;
}

signal_names! {
    /// The signals of the receive half.
    pub enum Receiver2015Signal {
        Queuing = series("d_q", "ms"),
        Smoothed = series("d_q smoothed", "ms"),
        Warped = series("d warped", "ms"),
        LossRatio = series("p_loss", ""),
    }
}

/// The resolution of delays in the simulator that med16 used.
const MILLISECOND: TimeDelta = TimeDelta::from_millis(1);

/// Section II-A at the receiver.
#[derive(Clone, Debug)]
struct Observer2015 {
    config: Nada2015Config,
    queuing: QueueDelay,
    filter: MedianEwma,
    loss: ShareWindow,
    incoming: IncomingRate,
    /// The last queuing delay, and the filtered one, ms.
    delay: (f64, f64),
}

impl Observer2015 {
    fn new(config: &Nada2015Config) -> Self {
        Self {
            config: config.clone(),
            queuing: QueueDelay::new(BaseDelayConfig::WHOLE_CALL),
            filter: MedianEwma::new(config.alpha, config.whole_units),
            loss: ShareWindow::new(config.window),
            incoming: IncomingRate::growing_window(config.window),
            delay: (0.0, 0.0),
        }
    }
}

impl Observe for Observer2015 {
    fn restarted(&self) -> Self {
        Self::new(&self.config)
    }

    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, position: Option<SequencePosition>) {
        self.incoming.handle_arrival(now, arrival.size);
        match position {
            Some(SequencePosition::Next { missing }) => {
                self.loss.add(now, [i64::from(missing)], u64::from(missing) + 1);
            }
            // A late packet fills its gap.
            Some(SequencePosition::Late) => self.loss.add(now, [-1], 0),
            Some(SequencePosition::Duplicate) | None => {}
        }
        if let Some(sent) = arrival.sent {
            let (sent, now) = if self.config.whole_units {
                (floor_sent(sent, MILLISECOND), floor_arrival(now, MILLISECOND))
            } else {
                (sent, now)
            };
            let delay = self.queuing.update(sent, sent, now).as_millis_f64();
            self.delay = (delay, self.filter.update(delay));
        }
    }

    fn report(&mut self, now: RemoteTime, signals: &mut Signals) -> NadaReport {
        let c = &self.config;
        let (delay, smoothed) = self.delay;
        let [loss] = self.loss.shares(now);
        let warps = loss > 0.0 || !c.warp_with_loss;
        let warped = if warps { quartic_warping(smoothed, c.warping_start, c.warping_end) } else { smoothed };
        let warped = if c.whole_units { floor(warped) } else { warped };
        let x = linear_signal(warped, loss, c.d_loss);
        let x = if c.whole_units { floor(x + 0.5) } else { x };
        let mode = if x < c.ramp_up_ms && loss == 0.0 { NadaMode::RampUp } else { NadaMode::Gradual };
        let incoming = self.incoming.rate(now).unwrap_or(Rate::ZERO);
        signals.emit(Receiver2015Signal::Queuing, delay);
        signals.emit(Receiver2015Signal::Smoothed, smoothed);
        signals.emit(Receiver2015Signal::Warped, warped);
        signals.emit(Receiver2015Signal::LossRatio, loss);
        NadaReport { mode, signal: TimeDelta::from_millis_f64(x), incoming }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Drive, arrival};
    use crate::{Event, Guard, Message, ReceiveHalf, SendHalf, StreamState};
    use alloc::boxed::Box;
    use alloc::vec::Vec;
    use paceline_units::{DataSize, StreamId, Time};

    const SETUP: Setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(50), Rate::from_kbps(2500));

    fn pair(config: &Nada2015Config) -> (Guard, Box<dyn ReceiveHalf>) {
        let pair = config.halves(&SETUP);
        (pair.send.expect("a send half"), pair.receive.expect("a receive half"))
    }

    fn report(mode: NadaMode, x_ms: f64, kbps: u64) -> Message {
        Message::Nada(NadaReport { mode, signal: TimeDelta::from_millis_f64(x_ms), incoming: Rate::from_kbps(kbps) })
    }

    /// Returns the reports on ten packets of 1250 bytes each 100 ms, with this queuing delay and these losses.
    fn reports(seconds: i64, queue_ms: impl Fn(i64) -> i64, lost: impl Fn(i64) -> bool) -> Vec<(i64, NadaReport)> {
        reports_of(&Nada2015Config::default(), seconds, queue_ms, lost)
    }

    fn reports_of(
        config: &Nada2015Config,
        seconds: i64,
        queue_ms: impl Fn(i64) -> i64,
        lost: impl Fn(i64) -> bool,
    ) -> Vec<(i64, NadaReport)> {
        let (_, mut half) = pair(config);
        let mut signals = Signals::disabled();
        let mut reports = Vec::new();
        for n in (0..seconds * 100).filter(|n| !lost(*n)) {
            let now = RemoteTime::from_millis(90_000 + 10 * n + queue_ms(n));
            while let Some(due) = half.poll_timeout().filter(|due| *due <= now) {
                half.handle_timeout(due, &mut signals);
                let Some(Message::Nada(report)) = half.poll_message(due) else { panic!("a report is due") };
                reports.push(((due - RemoteTime::from_millis(90_000)).as_nanos() / 1_000_000, report));
            }
            let packet = Arrival { sequence: n as u16, ..arrival(10 * n, 1250) };
            half.handle_arrival(now, &packet, &mut signals);
        }
        reports
    }

    #[test]
    fn receiver_reports_every_100_ms() {
        let all = reports(10, |_| 0, |_| false);
        assert_eq!(all.len(), 99);
        assert!(all.iter().zip(1..).all(|((ms, _), i)| *ms == 100 * i));
        for (ms, report) in &all {
            assert_eq!((report.mode, report.signal), (NadaMode::RampUp, TimeDelta::ZERO), "{ms}");
            let kbps = report.incoming.as_bps() / 1000;
            assert!((980..=1020).contains(&kbps), "{ms}: {kbps}");
        }
    }

    /// A queuing delay of 30 ms from second 2 on passes the filter; of 200 ms warping leaves 5.33.
    #[test]
    fn signal_contains_the_warped_delay() {
        let at = |all: &[(i64, NadaReport)], ms| {
            let (_, report) = all.iter().find(|(at, _)| *at >= ms).expect("a report");
            (report.mode, (report.signal.as_millis_f64() * 100.0).round() / 100.0)
        };
        let all = reports(6, |n| if n < 200 { 0 } else { 30 }, |_| false);
        assert_eq!(at(&all, 1900), (NadaMode::RampUp, 0.0));
        assert_eq!(at(&all, 5500), (NadaMode::Gradual, 30.0));
        let all = reports(6, |n| if n < 200 { 0 } else { 200 }, |_| false);
        assert_eq!(at(&all, 5500), (NadaMode::RampUp, 5.33), "a long queue appears empty");
        // The draft warps only if losses show that other flows keep the queue full.
        let draft = Nada2015Config { warp_with_loss: true, ..Nada2015Config::default() };
        let queue = |n| if n < 200 { 0 } else { 200 };
        assert_eq!(at(&reports_of(&draft, 6, queue, |_| false), 5500), (NadaMode::Gradual, 200.0));
        let (mode, signal) = at(&reports_of(&draft, 6, queue, |n| n % 50 == 20), 5500);
        assert!(mode == NadaMode::Gradual && (24.0..=27.0).contains(&signal), "5.33 and 2 % lost: {signal}");
    }

    /// 1 of 100 packets is lost, and the window holds 50: 2 % for half a second, then zero.
    #[test]
    fn signal_contains_the_loss_ratio() {
        let all = reports(10, |_| 0, |n| n % 100 == 42);
        let signal = |ms| all.iter().find(|(at, _)| *at == ms).expect("a report").1;
        assert_eq!((signal(5400).mode, signal(5400).signal.as_nanos()), (NadaMode::RampUp, 0));
        for ms in [5500, 5600, 5900] {
            let x = signal(ms).signal.as_millis_f64();
            assert!((19.0..=21.5).contains(&x) && signal(ms).mode == NadaMode::Gradual, "{ms}: {x}");
        }
        assert_eq!(signal(6000).mode, NadaMode::RampUp);
    }

    #[test]
    fn reports_stop_without_packets_and_resume_with_them() {
        let all = reports(10, |_| 0, |n| (200..700).contains(&n));
        let silent = all.iter().filter(|(ms, _)| (2600..7100).contains(ms)).count();
        assert_eq!(silent, 0, "{all:?}");
        assert!(all.iter().filter(|(ms, _)| (2000..2600).contains(ms)).count() >= 4);
        let (ms, report) = all.iter().find(|(ms, _)| *ms >= 7100).expect("a report");
        // The first packet after the pause is 499 ahead of the last one: all packets in between are missing.
        assert_eq!((*ms, report.mode), (7100, NadaMode::Gradual));
        assert!(report.signal.as_millis_f64() > 900.0, "{:?}", report.signal);
    }

    /// V5.5 and V5.4 of 2015, one report after the other.
    #[test]
    fn rate_follows_the_reports() {
        let (mut half, _) = pair(&Nada2015Config::default());
        let mut after = |mode, x, kbps| half.on(0, Event::Message(&report(mode, x, kbps))).as_bps();
        // x_o = 0 - 50, x_d = 0: +1 %; then x_o = 30 - 49.505, x_d = 30.
        assert_eq!(after(NadaMode::Gradual, 0.0, 1000), 1_010_000);
        assert_eq!(after(NadaMode::Gradual, 30.0, 1000), 953_340);
        assert_eq!(after(NadaMode::RampUp, 5.0, 900), 1_080_000, "of the received rate");
        assert_eq!(after(NadaMode::RampUp, 5.0, 2400), 2_500_000, "at most R_max");
        assert_eq!(after(NadaMode::Gradual, 3000.0, 1000), 50_000, "at least R_min");
        let (mut half, _) = pair(&Nada2015Config::default());
        assert_eq!(half.on(0, Event::RoundTrip(&testing::rtt(400))), SETUP.start, "loss is part of the signal");
        half.on(0, Event::Message(&report(NadaMode::RampUp, 0.0, 1000)));
        assert_eq!(half.decision().target.as_bps(), 1_100_000);
    }

    /// With an encoder that exceeds its target by 20 % the buffer is stable where `1.2 (R_n - y) = R_n + y`, at
    /// `y = R_n / 11`: 3788 bytes or 28 ms. Without shaping it grows by 200 ms per second.
    #[test]
    fn shaping_bounds_the_buffer_of_an_encoder_above_its_target() {
        let delay_after = |beta, seconds: i64| {
            let config = Nada2015Config { beta, ..Nada2015Config::default() };
            let (mut half, _) = pair(&config);
            let (mut buffer, mut worst) = (0.0f64, 0.0f64);
            for frame in 0..30 * seconds {
                let queued = DataSize::from_bytes(buffer as u64);
                let now = Time::from_millis(frame * 1000 / 30);
                let stream = StreamState::new(StreamId(0), queued);
                half.handle_event(now, &Event::Stream(&stream), &mut Signals::disabled());
                let decision = half.decision();
                assert!(decision.target <= SETUP.start && decision.pacing >= SETUP.start);
                worst = worst.max(buffer * 8e3 / decision.pacing.as_bps_f64());
                buffer += 1.2 * decision.target.as_bps_f64() / 8.0 / 30.0;
                buffer = (buffer - decision.pacing.as_bps_f64() / 8.0 / 30.0).max(0.0);
            }
            (buffer, worst)
        };
        let (stable, worst) = delay_after(0.1, 20);
        assert!((3700.0..=3850.0).contains(&stable), "{stable} bytes");
        assert!((25.0..=30.0).contains(&worst), "{worst} ms");
        assert!(delay_after(0.0, 20).1 > 3000.0);
    }
}
