//! What RFC 8698 does with packets that arrived (sections 4.2 and 5.1), wherever that runs: at the receiver, or at a sender
//! that is told of each packet (section 6.4).
//!
//! ```text
//! delay ─ QueueDelay ─┬─ MinFilter d_queue ─ exponential_warping, as LossIntervals say ─ d_tilde ─┐
//!                     └─ all below QEPS in LOGWIN? ──────────────────┐                            │
//! losses ─ ShareWindow p_inst ─┬─ smoothed_ratio p_loss ─────────────┼───────────────────────────┼─▶ x_curr
//!                              └─ none in LOGWIN? ───────────────────┴─▶ rmode                    │
//! marks ─ ShareWindow ─ smoothed_ratio p_mark ────────────────────────────────────────────────────┘
//! sizes ─ IncomingRate ─▶ r_recv
//! ```

use super::{
    LossIntervals, MinFilter, PenaltyConfig, ShareWindow, exponential_warping, quadratic_signal, smoothed_ratio,
};
use crate::blocks::{BaseDelayConfig, IncomingRate, QueueDelay};
use crate::{NadaMode, NadaReport, SignalSpec, Signals};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, Time, TimeDelta};

/// Numbers of what is observed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ObserverConfig {
    /// Window of losses, marks, delays and rate, `LOGWIN`.
    pub log_window: TimeDelta,
    /// How long the least delay is remembered.
    pub base_delay: BaseDelayConfig,
    /// From this delay on there is a queue, and no ramp-up, `QEPS`, ms.
    pub q_eps: f64,
    /// Queuing delay from which warping takes away, `QTH`, ms.
    pub q_th: f64,
    /// How fast it takes away, `LAMBDA`.
    pub lambda: f64,
    /// A loss expires after so many average loss intervals, `MULTILOSS`.
    pub multiloss: f64,
    /// Smoothing of losses and marks, `ALPHA`.
    pub alpha: f64,
    /// How often losses and marks are smoothed.
    pub smoothing: Smoothing,
    /// What losses and marks weigh.
    pub penalty: PenaltyConfig,
}

/// How often eq. 10 is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Smoothing {
    /// At each packet (section 4.2).
    Packets,
    /// At each report (the authors' ns-3 module).
    Reports,
}

/// The most that a report can say: 15 bits of 0.1 ms (section 5.3).
const X_MAX: f64 = 3276.7;

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it did.
    pub arrival: RemoteTime,
    /// When it was sent, if it told.
    pub sent: Option<Time>,
    /// Bytes on the network.
    pub size: DataSize,
    /// ECN field.
    pub ecn: Ecn,
    /// How many packets are missing before it; `None`: it has no place in a sequence, or comes too late for it and stays
    /// lost (section 5.1.2).
    pub missing: Option<u32>,
}

/// What the observer lets one see, in the order in which it emits.
pub(super) const SIGNALS: [SignalSpec; 6] = [
    SignalSpec::series("d_fwd - d_base", "ms"),
    SignalSpec::series("d_queue", "ms"),
    SignalSpec::series("d_tilde", "ms"),
    SignalSpec::series("p_loss", ""),
    SignalSpec::series("p_mark", ""),
    SignalSpec::series("loss_int", "packets"),
];

/// A packet that seems to arrive this much before the one before it came by a clock that was set (libwebrtc:
/// kArrivalTimeOffsetThresholdMs). The RFC says nothing of it.
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);

/// Turns packets into reports.
#[derive(Clone, Debug)]
pub struct Observer {
    config: ObserverConfig,
    /// When the last packet arrived; `None` before the first: a receiver's clock may read anything, also below zero.
    now: Option<RemoteTime>,
    queue: QueueDelay,
    filter: MinFilter,
    /// The last delay above the base, and what the filter made of it, ms.
    delay: (f64, f64),
    /// The last delay that was no less than `QEPS`.
    queued: Option<RemoteTime>,
    /// Lost and marked packets of those sent.
    shares: ShareWindow<2>,
    intervals: LossIntervals,
    p_loss: f64,
    p_mark: f64,
    incoming: IncomingRate,
}

impl Observer {
    /// Nothing seen.
    pub fn new(config: ObserverConfig) -> Self {
        Self {
            now: None,
            queue: QueueDelay::new(config.base_delay),
            filter: MinFilter::default(),
            delay: (0.0, 0.0),
            queued: None,
            shares: ShareWindow::new(config.log_window),
            intervals: LossIntervals::default(),
            p_loss: 0.0,
            p_mark: 0.0,
            incoming: IncomingRate::new(config.log_window),
            config,
        }
    }

    /// When the last packet arrived.
    pub fn now(&self) -> RemoteTime {
        self.now.unwrap_or(RemoteTime::ZERO)
    }

    /// A packet. One that was overtaken counts as arrived when the others did; from a clock that was set back all begins
    /// anew.
    pub fn handle_packet(&mut self, packet: &Seen) {
        if self.now.is_some_and(|now| now - packet.arrival > CLOCK_JUMP) {
            *self = Self::new(self.config);
        }
        let now = self.now.map_or(packet.arrival, |now| now.max(packet.arrival));
        self.now = Some(now);
        self.incoming.restart_if_empty(now);
        self.incoming.handle_arrival(now, packet.size);
        if let Some(sent) = packet.sent {
            let delay = self.queue.update(sent, sent, packet.arrival).as_millis_f64();
            self.delay = (delay, self.filter.update(delay));
            if delay >= self.config.q_eps {
                self.queued = Some(now);
            }
        }
        if let Some(missing) = packet.missing {
            let lost_and_marked = [i64::from(missing), i64::from(packet.ecn == Ecn::Ce)];
            self.shares.add(now, lost_and_marked, u64::from(missing) + 1);
            self.intervals.handle_packet(missing);
            if self.config.smoothing == Smoothing::Packets {
                self.smooth(now);
            }
        }
    }

    fn smooth(&mut self, now: RemoteTime) {
        let [lost, marked] = self.shares.shares(now);
        self.p_loss = smoothed_ratio(lost, self.p_loss, self.config.alpha);
        self.p_mark = smoothed_ratio(marked, self.p_mark, self.config.alpha);
    }

    /// What there is to report at `now`, no earlier than the last packet. `first` is the index of the first signal.
    pub fn report(&mut self, now: RemoteTime, signals: &mut Signals, first: u8) -> NadaReport {
        if self.config.smoothing == Smoothing::Reports {
            self.smooth(now);
        }
        let d_tilde = self.warped();
        let x = quadratic_signal(d_tilde, self.p_loss, self.p_mark, &self.config.penalty).min(X_MAX);
        let average = self.intervals.average().unwrap_or(0.0);
        let values = [self.delay.0, self.delay.1, d_tilde, self.p_loss, self.p_mark, average];
        (first..).zip(values).for_each(|(index, value)| signals.emit(index, value));
        let incoming = self.incoming.rate_so_far(now).unwrap_or(Rate::ZERO);
        NadaReport { mode: self.mode(now), signal: TimeDelta::from_millis_f64(x), incoming }
    }

    /// Eq. 1 while the last loss stands, and a line from there to the delay itself while it expires (section 4.2).
    fn warped(&self) -> f64 {
        let (c, d_queue) = (&self.config, self.delay.1);
        let standing = self.intervals.standing(c.multiloss);
        standing * exponential_warping(d_queue, c.q_th, c.lambda) + (1.0 - standing) * d_queue
    }

    /// `rmode`: ramp-up with neither loss nor queue in the window (section 4.2).
    fn mode(&mut self, now: RemoteTime) -> NadaMode {
        let queued = self.queued.is_some_and(|at| now - at < self.config.log_window);
        let [lost, _] = self.shares.shares(now);
        if queued || lost > 0.0 { NadaMode::Gradual } else { NadaMode::RampUp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nada::NadaConfig;

    /// A packet of 1250 bytes each 10 ms; `delay` in ms and `missing` by number.
    fn observer(packets: std::ops::Range<i64>, delay: impl Fn(i64) -> i64, missing: impl Fn(i64) -> u32) -> Observer {
        let mut observer = Observer::new(NadaConfig::<false>::default().observer);
        feed(&mut observer, packets, delay, missing);
        observer
    }

    fn feed(o: &mut Observer, packets: std::ops::Range<i64>, delay: impl Fn(i64) -> i64, missing: impl Fn(i64) -> u32) {
        for n in packets {
            o.handle_packet(&Seen {
                arrival: RemoteTime::from_millis(10 * n + 40_000 + delay(n)),
                sent: Some(Time::from_millis(10 * n)),
                size: DataSize::from_bytes(1250),
                ecn: Ecn::Ect0,
                missing: Some(missing(n)),
            });
        }
    }

    fn told(observer: &mut Observer) -> (NadaMode, f64, u64) {
        let report = observer.report(observer.now(), &mut Signals::unheard(), 0);
        (report.mode, report.signal.as_millis_f64(), report.incoming.as_bps() / 1000)
    }

    #[test]
    fn an_empty_path_lets_one_ramp_up() {
        let (mode, x, kbps) = told(&mut observer(0..200, |_| 30, |_| 0));
        assert_eq!((mode, x), (NadaMode::RampUp, 0.0));
        assert!((980..=1020).contains(&kbps), "{kbps}");
    }

    /// One delay of 9 ms does not matter, one of 10 ends the ramp-up for half a second, and neither passes the filter.
    #[test]
    fn one_late_packet_ends_the_ramp_up() {
        for (ms, expected) in [(9, NadaMode::RampUp), (10, NadaMode::Gradual)] {
            let mut seen = observer(0..200, |n| if n == 180 { ms } else { 0 }, |_| 0);
            assert_eq!((told(&mut seen).0, told(&mut seen).1), (expected, 0.0));
            feed(&mut seen, 200..232, |_| 0, |_| 0);
            assert_eq!(told(&mut seen).0, NadaMode::RampUp);
        }
    }

    /// A queue of 200 ms is 200 until a loss, then 50 exp(-1.5) and what the loss weighs, and 200 once it has expired.
    #[test]
    fn losses_bring_warping_and_their_expiry_ends_it() {
        let queue = |n| if n < 100 { 0 } else { 200 };
        let mut seen = observer(0..200, queue, |_| 0);
        assert_eq!(told(&mut seen), (NadaMode::Gradual, 200.0, told(&mut seen).2));
        // One in 50 is lost; loss_int is 51 with the lost one, after 200 before the first.
        feed(&mut seen, 200..800, queue, |n| u32::from(n % 50 == 0));
        let (warped, share) = (50.0 * libm::exp(-1.5), 100.0 / 51.0);
        let (_, x, _) = told(&mut seen);
        assert!((x - warped - 10.0 * share * share).abs() < 3.0, "{x}");
        let average = seen.intervals.average().unwrap();
        assert!((50.0..=90.0).contains(&average), "{average}");
        feed(&mut seen, 800..1000, queue, |_| 0);
        let (_, x, _) = told(&mut seen);
        assert!((x - warped).abs() < 0.1, "the losses are gone, what they say stands: {x}");
        feed(&mut seen, 1000..1700, queue, |_| 0);
        assert_eq!(told(&mut seen).1, 200.0);
    }

    /// Marks weigh by their share of what was sent; a packet that comes late is no second one.
    #[test]
    fn marks_and_late_packets() {
        let mut seen = observer(0..200, |_| 0, |_| 0);
        let packet = |n: i64, ecn, missing| Seen {
            arrival: RemoteTime::from_millis(40_000 + 10 * n),
            sent: Some(Time::from_millis(10 * n)),
            size: DataSize::from_bytes(1250),
            ecn,
            missing,
        };
        for n in 200..400 {
            seen.handle_packet(&packet(n, if n % 25 == 0 { Ecn::Ce } else { Ecn::Ect0 }, Some(0)));
            seen.handle_packet(&packet(n, Ecn::Ce, None));
        }
        let (mode, x, kbps) = told(&mut seen);
        // 4 % of marks are 2 ms times 16.
        assert!((mode, (28.0..=36.0).contains(&x)) == (NadaMode::RampUp, true), "{x}");
        assert!((1960..=2040).contains(&kbps), "{kbps}");
    }

    /// Eq. 10 at each packet is all but done in half a second, at each report 0.1 of the way.
    #[test]
    fn smoothing_by_packet_or_by_report() {
        let after = |smoothing| {
            let mut observer = Observer::new(ObserverConfig { smoothing, ..NadaConfig::<false>::default().observer });
            feed(&mut observer, 0..200, |_| 0, |n| u32::from(n % 10 == 0));
            told(&mut observer);
            observer.p_loss
        };
        let (packets, reports) = (after(Smoothing::Packets), after(Smoothing::Reports));
        assert!((0.085..=0.1).contains(&packets) && (0.0085..=0.01).contains(&reports), "{packets} {reports}");
    }
}
