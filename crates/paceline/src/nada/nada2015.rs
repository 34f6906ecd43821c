//! NADA as med16 describes it, after the drafts of 2015.
//!
//! ```text
//! receiver:  packets -> QueueDelay -> MedianEwma -> quartic_warping -> d~ ----\
//!            packets -> Sequences -> ShareWindow p, 500 ms --------------------> x_n = d~ + D_loss p, each 100 ms
//!            packets -> IncomingRate R, 500 ms --------------------------------> with R
//! sender:    x_n < 10 ms, nothing lost: ramp_up, else gradual -> R_n -> Shaping -> R_i to encoders, R_send to the pacer
//! ```
//!
//! What the paper leaves open, and where it is taken from, stands in `docs/algorithms/nada-2015.md`.

use super::{
    GradualConfig, MedianEwma, Place, RampUpConfig, ReportClock, Sequences, Shaping, ShapingConfig, ShareWindow,
    gradual, linear_signal, quartic_warping, ramp_up,
};
use crate::blocks::{BaseDelayConfig, IncomingRate, QueueDelay};
use crate::{
    Arrival, Config, Controller, Decision, Entry, FeedbackKind, Fields, Message, NadaMode, NadaReport, PacketKind,
    ReceiveHalf, ReceiverReport, SendHalf, Setup, SignalSpec, Signals, StreamState,
};
use paceline_units::{Ecn, Rate, RemoteTime, Time, TimeDelta};

/// The registry's line.
pub(crate) fn entry() -> Entry {
    Entry::new(
        "nada-2015",
        "NADA of 2015: queuing delay and loss as one signal, ramp-up and gradual update, a rate-shaping buffer",
        "Carlucci et al.: Congestion Control for Real-time Communications, a comparison between NADA and GCC (MED 2016), section II-A; draft-ietf-rmcat-nada-00",
        Nada2015Config::default(),
    )
}

/// Every number of NADA as med16 has it. `Default` is the paper's, and the draft's where it gives none.
#[derive(Clone, Debug, PartialEq)]
pub struct Nada2015Config {
    /// Time between two reports, `Delta`.
    pub interval: TimeDelta,
    /// Window of loss ratio and received rate.
    pub window: TimeDelta,
    /// Weight of the past in the delay filter.
    pub alpha: f64,
    /// Where warping begins and where it ends, ms.
    pub warping: (f64, f64),
    /// Whether delay is warped only while losses are in the window.
    pub warp_with_loss: bool,
    /// Delay that a loss of everything stands for, `D_loss`, ms.
    pub d_loss: f64,
    /// Below this signal, without loss, the sender ramps up, ms.
    pub ramp_up_ms: f64,
    /// Accelerated ramp-up.
    pub ramp_up: RampUpConfig,
    /// Gradual update.
    pub gradual: GradualConfig,
    /// Round-trip time until a report gives one.
    pub rtt: TimeDelta,
    /// The rate-shaping buffer.
    pub shaping: ShapingConfig,
    /// Pacing over `R_send`.
    pub pacing_factor: f64,
}

impl Default for Nada2015Config {
    fn default() -> Self {
        Self {
            interval: TimeDelta::from_millis(100),
            window: TimeDelta::from_millis(500),
            alpha: 0.9,
            warping: (50.0, 400.0),
            warp_with_loss: false,
            d_loss: 1000.0,
            ramp_up_ms: 10.0,
            ramp_up: RampUpConfig { gamma_max: 0.2, q_bound: 50.0 },
            gradual: GradualConfig { x_ref: 20.0, kappa: 0.5, eta: 2.0, tau: 500.0 },
            rtt: TimeDelta::from_millis(100),
            shaping: ShapingConfig { beta_v: 0.1, beta_s: 0.1, fps: 30.0, most: 1.0 },
            pacing_factor: 1.0,
        }
    }
}

impl Config for Nada2015Config {
    const SIGNALS: (&'static [SignalSpec], &'static [SignalSpec]) = (
        &[
            SignalSpec::series("R_n", "bit/s"),
            SignalSpec::state("mode", NadaMode::NAMES),
            SignalSpec::series("x_n", "ms"),
            SignalSpec::series("r_recv", "bit/s"),
            SignalSpec::series("b_l", "B"),
            SignalSpec::series("rtt", "ms"),
        ],
        &[
            SignalSpec::series("d_q", "ms"),
            SignalSpec::series("d_q smoothed", "ms"),
            SignalSpec::series("d warped", "ms"),
            SignalSpec::series("p_loss", ""),
        ],
    );

    fn fields(&mut self, fields: &mut Fields<'_>) {
        fields
            .millis("delta_ms", (10.0, 1e4), &mut self.interval)
            .says("time between two reports, Delta, section II-A");
        fields
            .millis("window_ms", (10.0, 1e4), &mut self.window)
            .says("window of loss ratio and received rate, section II-A");
        fields
            .number("alpha", "", (0.0, 1.0), &mut self.alpha)
            .says("weight of the past in the delay filter, section II-A");
        fields
            .number("knee_ms", "ms", (0.0, 1e4), &mut self.warping.0)
            .says("queuing delay from which warping takes away, figure 2; 100 in draft-ietf-rmcat-nada-00");
        fields
            .number("d_max_ms", "ms", (0.0, 1e4), &mut self.warping.1)
            .says("queuing delay from which on the signal is nothing, figure 2");
        fields.flag("warp_with_loss", &mut self.warp_with_loss).says(
            "0: every delay is warped, section II-A; 1: only while losses are in the window (draft-ietf-rmcat-nada-00)",
        );
        fields
            .number("d_loss_ms", "ms", (0.0, 1e5), &mut self.d_loss)
            .says("delay that a loss of everything stands for, D_loss, section II-A");
        fields
            .number("ramp_up_ms", "ms", (0.0, 1e4), &mut self.ramp_up_ms)
            .says("below this signal, without loss, the sender ramps up, section II-A");
        fields
            .number("gamma_max", "", (0.0, 10.0), &mut self.ramp_up.gamma_max)
            .says("most that a ramp-up adds to the received rate, section II-A");
        fields
            .number("q_bound_ms", "ms", (0.0, 1e4), &mut self.ramp_up.q_bound)
            .says("queuing delay that a ramp-up may cause, section II-A");
        fields
            .number("x_ref_ms", "ms", (0.0, 1e4), &mut self.gradual.x_ref)
            .says("reference signal, section II-A; 10 in the simulator that med16 used");
        fields
            .number("kappa", "", (0.0, 10.0), &mut self.gradual.kappa)
            .says("scaling of the gradual update (draft-ietf-rmcat-nada-00); 1 in the simulator that med16 used");
        fields
            .number("eta", "", (0.0, 100.0), &mut self.gradual.eta)
            .says("weight of the signal's change (draft-ietf-rmcat-nada-00)");
        fields
            .number("tau_ms", "ms", (1.0, 1e5), &mut self.gradual.tau)
            .says("longest round-trip time for which the loop is stable (draft-ietf-rmcat-nada-00)");
        fields
            .millis("rtt_ms", (0.0, 1e4), &mut self.rtt)
            .says("round-trip time until a report gives one (the simulator that med16 used)");
        fields
            .number("beta", "", (0.0, 10.0), &mut self.shaping.beta_s)
            .says("share of the shaping buffer that goes into a frame's time, section II-A");
        self.shaping.beta_v = self.shaping.beta_s;
        fields
            .number("fps", "1/s", (1.0, 1000.0), &mut self.shaping.fps)
            .says("frames a second by which the shaping buffer becomes a rate (draft-ietf-rmcat-nada-00)");
        fields.number("beta_most", "", (0.0, 1.0), &mut self.shaping.most).says(
            "most that shaping takes and adds, as a share of the rate: all, for the paper has no bound; 0.05 in RFC 8698",
        );
        fields
            .number("pacing_factor", "", (1.0, 1e3), &mut self.pacing_factor)
            .says("pacing over R_send, figure 1; with 100 frames leave at once, as in the simulator that med16 used");
    }

    fn build(&self, setup: &Setup) -> Controller {
        Controller {
            send: Some(Box::new(Sender {
                config: self.clone(),
                min: setup.min,
                max: setup.max,
                rate: setup.start.min(setup.max),
                before: 0.0,
                rtt: self.rtt,
                shaping: Shaping::new(self.shaping),
            })),
            receive: Some(Box::new(Receiver {
                config: self.clone(),
                queuing: QueueDelay::new(BaseDelayConfig::WHOLE_CALL),
                filter: MedianEwma::new(self.alpha),
                sequences: Sequences::default(),
                loss: ShareWindow::new(self.window),
                incoming: IncomingRate::new(self.window),
                delay: (0.0, 0.0),
                clock: ReportClock::new(self.interval, self.window),
                pending: None,
            })),
            feedback: FeedbackKind::None,
            ecn: Ecn::NotEct,
        }
    }
}

struct Receiver {
    config: Nada2015Config,
    queuing: QueueDelay,
    filter: MedianEwma,
    sequences: Sequences,
    loss: ShareWindow,
    incoming: IncomingRate,
    /// The last queuing delay and what is left of it after the filter, ms.
    delay: (f64, f64),
    clock: ReportClock,
    pending: Option<NadaReport>,
}

impl ReceiveHalf for Receiver {
    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, _: &mut Signals) {
        self.incoming.restart_if_empty(now);
        self.incoming.handle_arrival(now, arrival.size);
        // FEC has a place in the media's sequence; retransmissions and padding have not.
        if matches!(arrival.kind, PacketKind::Media | PacketKind::Fec) {
            match self.sequences.handle_arrival(arrival.stream, arrival.sequence) {
                Place::Next { missing } => self.loss.add(now, [i64::from(missing)], u64::from(missing) + 1),
                // A packet that comes late fills its gap.
                Place::Late => self.loss.add(now, [-1], 0),
                Place::Again => {}
            }
        }
        if let Some(sent) = arrival.sent {
            let delay = self.queuing.update(sent, sent, now).as_millis_f64();
            self.delay = (delay, self.filter.update(delay));
        }
        self.clock.handle_arrival(now);
    }

    fn handle_timeout(&mut self, now: RemoteTime, signals: &mut Signals) {
        self.report(now, signals);
        self.clock.handle_report(now);
    }

    fn poll_timeout(&self) -> RemoteTime {
        self.clock.due()
    }

    #[inline]
    fn poll_message(&mut self, _: RemoteTime) -> Option<Message> {
        self.pending.take().map(Message::Nada)
    }
}

impl Receiver {
    fn report(&mut self, now: RemoteTime, signals: &mut Signals) {
        let c = &self.config;
        let (delay, smoothed) = self.delay;
        let [loss] = self.loss.shares(now);
        let warps = loss > 0.0 || !c.warp_with_loss;
        let warped = if warps { quartic_warping(smoothed, c.warping.0, c.warping.1) } else { smoothed };
        let x = linear_signal(warped, loss, c.d_loss);
        let mode = if x < c.ramp_up_ms && loss == 0.0 { NadaMode::RampUp } else { NadaMode::Gradual };
        let incoming = self.incoming.rate_so_far(now).unwrap_or(Rate::ZERO);
        self.pending = Some(NadaReport { mode, signal: TimeDelta::from_millis_f64(x), incoming });
        signals.emit(0, delay);
        signals.emit(1, smoothed);
        signals.emit(2, warped);
        signals.emit(3, loss);
    }
}

struct Sender {
    config: Nada2015Config,
    min: Rate,
    max: Rate,
    /// `R_n`.
    rate: Rate,
    /// `x_n` of the report before, ms.
    before: f64,
    rtt: TimeDelta,
    shaping: Shaping,
}

impl SendHalf for Sender {
    /// Loss comes in the signal; here only the round-trip time is new.
    fn handle_report(&mut self, _: Time, report: &ReceiverReport, signals: &mut Signals) {
        self.rtt = report.rtt.unwrap_or(self.rtt);
        signals.emit(5, self.rtt.as_millis_f64());
    }

    fn handle_message(&mut self, _: Time, message: &Message, signals: &mut Signals) {
        let Message::Nada(report) = message else { return };
        let (c, x) = (&self.config, report.signal.as_millis_f64());
        let rate = match report.mode {
            NadaMode::RampUp => ramp_up(report.incoming, self.rtt + c.interval, &c.ramp_up),
            NadaMode::Gradual => gradual(self.rate, x, self.before, c.interval, self.max, &c.gradual),
        };
        self.rate = rate.min(self.max).max(self.min);
        self.before = x;
        signals.emit(0, self.rate.as_bps_f64());
        signals.emit(1, report.mode.index());
        signals.emit(2, x);
        signals.emit(3, report.incoming.as_bps_f64());
        signals.emit(4, self.shaping.queued().as_bytes() as f64);
    }

    fn handle_stream(&mut self, _: Time, stream: &StreamState) {
        self.shaping.handle_queued(stream.stream, stream.queued);
    }

    /// Encoders are told `R_i`, the pacer `R_send`: the sum of the two stays, and so does what the network sees on average.
    fn decision(&self) -> Decision {
        let (encoder, pacer) = self.shaping.rates(self.rate);
        let target = encoder.max(self.min);
        let pacing = pacer.max(target).scale(self.config.pacing_factor);
        Decision { target, pacing, window: None, padding: Rate::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MediaKind;
    use paceline_units::{DataSize, Fraction, StreamId};

    const SETUP: Setup = Setup { start: Rate::from_kbps(1000), min: Rate::from_kbps(50), max: Rate::from_kbps(2500) };

    fn pair(config: &Nada2015Config) -> (Box<dyn SendHalf>, Box<dyn ReceiveHalf>) {
        let pair = config.build(&SETUP);
        (pair.send.expect("it has one"), pair.receive.expect("it has one"))
    }

    fn report(mode: NadaMode, x_ms: f64, kbps: u64) -> Message {
        Message::Nada(NadaReport { mode, signal: TimeDelta::from_millis_f64(x_ms), incoming: Rate::from_kbps(kbps) })
    }

    /// Ten packets of 1250 bytes each 100 ms, of which some are lost and all wait for a queue; answers the reports.
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
        let mut signals = Signals::unheard();
        let mut told = Vec::new();
        for n in (0..seconds * 100).filter(|n| !lost(*n)) {
            let now = RemoteTime::from_millis(90_000 + 10 * n + queue_ms(n));
            while half.poll_timeout() <= now {
                let due = half.poll_timeout();
                half.handle_timeout(due, &mut signals);
                let Some(Message::Nada(report)) = half.poll_message(due) else { panic!("a report is due") };
                told.push(((due - RemoteTime::from_millis(90_000)).as_nanos() / 1_000_000, report));
            }
            let arrival = Arrival {
                sent: Some(Time::from_millis(10 * n)),
                timestamp: 0,
                sequence: n as u16,
                stream: StreamId(0),
                media: MediaKind::Video,
                kind: PacketKind::Media,
                size: DataSize::from_bytes(1250),
                ecn: Ecn::NotEct,
            };
            half.handle_arrival(now, &arrival, &mut signals);
        }
        told
    }

    #[test]
    fn the_receiver_reports_each_tenth_of_a_second() {
        let told = reports(10, |_| 0, |_| false);
        assert_eq!(told.len(), 99);
        assert!(told.iter().zip(1..).all(|((ms, _), i)| *ms == 100 * i));
        for (ms, report) in &told {
            assert_eq!((report.mode, report.signal), (NadaMode::RampUp, TimeDelta::ZERO), "{ms}");
            let kbps = report.incoming.as_bps() / 1000;
            assert!((980..=1020).contains(&kbps), "{ms}: {kbps}");
        }
    }

    /// A queue of 30 ms from the second second on is seen through the filter; of 200 ms warping leaves 5.33.
    #[test]
    fn delay_becomes_the_signal() {
        let at = |told: &[(i64, NadaReport)], ms| {
            let (_, report) = told.iter().find(|(at, _)| *at >= ms).expect("it was told");
            (report.mode, (report.signal.as_millis_f64() * 100.0).round() / 100.0)
        };
        let told = reports(6, |n| if n < 200 { 0 } else { 30 }, |_| false);
        assert_eq!(at(&told, 1900), (NadaMode::RampUp, 0.0));
        assert_eq!(at(&told, 5500), (NadaMode::Gradual, 30.0));
        let told = reports(6, |n| if n < 200 { 0 } else { 200 }, |_| false);
        assert_eq!(at(&told, 5500), (NadaMode::RampUp, 5.33), "a long queue looks like none");
        // The draft warps only where losses say that others keep the queue full.
        let draft = Nada2015Config { warp_with_loss: true, ..Nada2015Config::default() };
        let queue = |n| if n < 200 { 0 } else { 200 };
        assert_eq!(at(&reports_of(&draft, 6, queue, |_| false), 5500), (NadaMode::Gradual, 200.0));
        let (mode, signal) = at(&reports_of(&draft, 6, queue, |n| n % 50 == 20), 5500);
        assert!(mode == NadaMode::Gradual && (24.0..=27.0).contains(&signal), "5.33 and 2 % lost: {signal}");
    }

    /// One of a hundred lost, and the window holds fifty: for half a second 2 %, then nothing.
    #[test]
    fn loss_becomes_the_signal() {
        let told = reports(10, |_| 0, |n| n % 100 == 42);
        let signal = |ms| told.iter().find(|(at, _)| *at == ms).expect("it was told").1;
        assert_eq!((signal(5400).mode, signal(5400).signal.as_nanos()), (NadaMode::RampUp, 0));
        for ms in [5500, 5600, 5900] {
            let x = signal(ms).signal.as_millis_f64();
            assert!((19.0..=21.5).contains(&x) && signal(ms).mode == NadaMode::Gradual, "{ms}: {x}");
        }
        assert_eq!(signal(6000).mode, NadaMode::RampUp);
    }

    /// A receiver that hears nothing falls silent, and tells again when something comes.
    #[test]
    fn silence_ends_the_reports() {
        let told = reports(10, |_| 0, |n| (200..700).contains(&n));
        let silent = told.iter().filter(|(ms, _)| (2600..7100).contains(ms)).count();
        assert_eq!(silent, 0, "{told:?}");
        assert!(told.iter().filter(|(ms, _)| (2000..2600).contains(ms)).count() >= 4);
        let (ms, report) = told.iter().find(|(ms, _)| *ms >= 7100).expect("it goes on");
        // The first packet after the pause is 499 ahead of the last: all but it are missing.
        assert_eq!((*ms, report.mode), (7100, NadaMode::Gradual));
        assert!(report.signal.as_millis_f64() > 900.0, "{:?}", report.signal);
    }

    /// V5.5 and V5.4 of 2015, one report after the other.
    #[test]
    fn the_sender_follows_its_laws() {
        let (mut half, _) = pair(&Nada2015Config::default());
        let mut signals = Signals::unheard();
        let mut after = |mode, x, kbps| {
            half.handle_message(Time::ZERO, &report(mode, x, kbps), &mut signals);
            half.decision().target.as_bps()
        };
        // x_o = 0 - 50, x_d = 0: +1 %; then x_o = 30 - 49.505, x_d = 30.
        assert_eq!(after(NadaMode::Gradual, 0.0, 1000), 1_010_000);
        assert_eq!(after(NadaMode::Gradual, 30.0, 1000), 953_340);
        assert_eq!(after(NadaMode::RampUp, 5.0, 900), 1_080_000, "of what is received");
        assert_eq!(after(NadaMode::RampUp, 5.0, 2400), 2_500_000, "at most R_max");
        assert_eq!(after(NadaMode::Gradual, 3000.0, 1000), 50_000, "at least R_min");
        let (mut half, _) = pair(&Nada2015Config::default());
        let rtt = Some(TimeDelta::from_millis(400));
        half.handle_report(Time::ZERO, &ReceiverReport { fraction_lost: Fraction::from_q8(128), rtt }, &mut signals);
        assert_eq!(half.decision().target, SETUP.start, "loss comes in the signal");
        half.handle_message(Time::ZERO, &report(NadaMode::RampUp, 0.0, 1000), &mut signals);
        assert_eq!(half.decision().target.as_bps(), 1_100_000);
    }

    /// An encoder a fifth over its target: where `1.2 (R_n - y) = R_n + y` the buffer rests, at `y = R_n / 11`, 3788 bytes or
    /// 28 ms. Without shaping it grows by 200 ms a second.
    #[test]
    fn an_encoder_over_its_target_is_drained() {
        let delay_after = |beta, seconds: i64| {
            let mut config = Nada2015Config::default();
            (config.shaping.beta_v, config.shaping.beta_s) = (beta, beta);
            let (mut half, _) = pair(&config);
            let (mut buffer, mut worst) = (0.0f64, 0.0f64);
            for frame in 0..30 * seconds {
                let queued = DataSize::from_bytes(buffer as u64);
                let now = Time::from_millis(frame * 1000 / 30);
                half.handle_stream(now, &StreamState::new(StreamId(0), queued));
                let decision = half.decision();
                assert!(decision.target <= SETUP.start && decision.pacing >= SETUP.start);
                worst = worst.max(buffer * 8e3 / decision.pacing.as_bps_f64());
                buffer += 1.2 * decision.target.as_bps_f64() / 8.0 / 30.0;
                buffer = (buffer - decision.pacing.as_bps_f64() / 8.0 / 30.0).max(0.0);
            }
            (buffer, worst)
        };
        let (rest, worst) = delay_after(0.1, 20);
        assert!((3700.0..=3850.0).contains(&rest), "{rest} bytes");
        assert!((25.0..=30.0).contains(&worst), "{worst} ms");
        assert!(delay_after(0.0, 20).1 > 3000.0);
    }
}
