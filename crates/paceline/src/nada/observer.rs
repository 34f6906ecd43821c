// SPDX-License-Identifier: MIT OR Apache-2.0
//! The observation of arrivals in RFC 8698 (sections 4.2 and 5.1), at the receiver or, from per-packet feedback, at the
//! sender (section 6.4).
//!
//! ```text
//! delay ─ QueueDelay ─┬─ MinFilter d_queue ─ exponential_warping, by LossIntervals ───── d_tilde ─┐
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
use crate::{NadaMode, NadaReport, SignalName, Signals, params};
use paceline_units::{DataSize, Ecn, Rate, RemoteTime, Time, TimeDelta};

params! {
    /// The parameters of the observation.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ObserverConfig {
        /// Table 2. The highest signal is that of the authors' ns-3 module (cisco/ns3-rmcat, `XMAX`): the RFC names none,
        /// and its report can carry seven times as much.
        const RFC_8698;

        /// Window of losses, marks, delays and rate.
        log_window as "logwin_ms": TimeDelta = TimeDelta::from_millis(500), in 10.0..=1e4, from "table 2, LOGWIN";
        /// Time for which the lowest delay is remembered.
        base_minutes: usize = 20, unit "min", in 1..=BaseDelayConfig::HISTORY_MAX,
            from "section 5.1.1: tens of minutes";
        /// Queuing delay from which on there is a queue, and no ramp-up.
        q_eps as "qeps_ms": f64 = 10.0, unit "ms", in 0.0..=1e4, from "table 2, QEPS";
        /// Queuing delay from which warping reduces it.
        q_th as "qth_ms": f64 = 50.0, unit "ms", in 0.1..=1e4, from "table 2, QTH";
        /// Scaling of warping; 0: the delay is capped at qth_ms.
        lambda: f64 = 0.5, in 0.0..=100.0, from "table 2, LAMBDA";
        /// Number of average loss intervals after which a loss expires.
        multiloss: f64 = 7.0, in 0.0..=1e6, from "table 2, MULTILOSS";
        /// Smoothing factor of loss and marking ratio.
        alpha: f64 = 0.1, in 0.0..=1.0, from "table 2, ALPHA";
        /// Event at which the ratios are smoothed; 0: each packet, 1: each report.
        smoothing as "smooth_reports": RatioSmoothing = RatioSmoothing::Packets,
            of [RatioSmoothing::Packets, RatioSmoothing::Reports],
            from "section 4.2; 1 in the authors' ns-3 module";
        /// The delays that losses and marks stand for.
        penalty: PenaltyConfig = PenaltyConfig::RFC_8698, block all;
        /// Highest signal. The report of section 5.3 carries up to 3276.7.
        x_max as "xmax_ms": f64 = 500.0, unit "ms", in 1.0..=X_CARRIED, from "the authors' ns-3 module";
    }
}

/// The interval at which eq. 10 is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RatioSmoothing {
    /// At each packet (section 4.2).
    Packets,
    /// At each report (the authors' ns-3 module).
    Reports,
}

/// The highest signal that a report can contain, ms: 15 bits of 0.1 ms (section 5.3).
pub(super) const X_CARRIED: f64 = 3276.7;

/// A packet that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceivedPacket {
    /// The arrival time.
    pub arrival: RemoteTime,
    /// The send time, if it is known.
    pub sent: Option<Time>,
    /// The size on the network.
    pub size: DataSize,
    /// The ECN field.
    pub ecn: Ecn,
    /// The number of missing packets before it; `None` if it is outside the sequence, or late and therefore counts as
    /// lost (section 5.1.2).
    pub missing: Option<u32>,
}

/// The number of values of a report that are signals.
pub(super) const OBSERVED: usize = 6;

/// If a packet seems to arrive this much before the previous one, the receiver's clock was set (libwebrtc:
/// kArrivalTimeOffsetThresholdMs). The RFC does not mention this case.
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(3);

/// Derives reports from packets.
#[derive(Clone, Debug)]
pub struct Observer {
    config: ObserverConfig,
    /// The latest arrival; `None` before the first one. A receiver's clock may show any time, also a negative one.
    now: Option<RemoteTime>,
    queue: QueueDelay,
    filter: MinFilter,
    /// The last queuing delay, and the filtered one, ms.
    delay: (f64, f64),
    /// The time at which a queuing delay of at least `QEPS` was last observed.
    queued: Option<RemoteTime>,
    /// Shares of lost and of marked packets in the packets sent.
    shares: ShareWindow<2>,
    intervals: LossIntervals,
    p_loss: f64,
    p_mark: f64,
    incoming: IncomingRate,
}

impl Observer {
    /// Creates an observer without packets.
    pub fn new(config: ObserverConfig) -> Self {
        Self {
            now: None,
            queue: QueueDelay::new(BaseDelayConfig { history: config.base_minutes, ..BaseDelayConfig::RFC_6817 }),
            filter: MinFilter::default(),
            delay: (0.0, 0.0),
            queued: None,
            shares: ShareWindow::new(config.log_window),
            intervals: LossIntervals::default(),
            p_loss: 0.0,
            p_mark: 0.0,
            incoming: IncomingRate::whole_window(config.log_window),
            config,
        }
    }

    /// Returns an observer with the same numbers, without packets.
    pub fn restarted(&self) -> Self {
        Self::new(self.config)
    }

    /// Returns the latest arrival.
    pub fn now(&self) -> RemoteTime {
        self.now.unwrap_or(RemoteTime::ZERO)
    }

    /// Handles a packet. A reordered packet counts as arrived at the latest arrival. If the clock was set back, the
    /// observation starts again.
    pub fn handle_packet(&mut self, packet: &ReceivedPacket) {
        if self.now.is_some_and(|now| now - packet.arrival > CLOCK_JUMP) {
            *self = self.restarted();
        }
        let now = self.now.map_or(packet.arrival, |now| now.max(packet.arrival));
        self.now = Some(now);
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
            if self.config.smoothing == RatioSmoothing::Packets {
                self.smooth(now);
            }
        }
    }

    fn smooth(&mut self, now: RemoteTime) {
        let [lost, marked] = self.shares.shares(now);
        self.p_loss = smoothed_ratio(lost, self.p_loss, self.config.alpha);
        self.p_mark = smoothed_ratio(marked, self.p_mark, self.config.alpha);
    }

    /// Returns the report at `now`, which is not before the latest arrival. The names are those of delay
    /// above the base delay, queuing delay, warped delay, loss ratio, marking ratio and loss interval.
    pub fn report<S: SignalName>(
        &mut self,
        now: RemoteTime,
        signals: &mut Signals,
        names: [S; OBSERVED],
    ) -> NadaReport {
        if self.config.smoothing == RatioSmoothing::Reports {
            self.smooth(now);
        }
        let d_tilde = self.warped();
        let x = quadratic_signal(d_tilde, self.p_loss, self.p_mark, &self.config.penalty).min(self.config.x_max);
        let average = self.intervals.average.unwrap_or(0.0);
        let values = [self.delay.0, self.delay.1, d_tilde, self.p_loss, self.p_mark, average];
        names.into_iter().zip(values).for_each(|(name, value)| signals.emit(name, value));
        let incoming = self.incoming.rate(now).unwrap_or(Rate::ZERO);
        NadaReport { mode: self.mode(now), signal: TimeDelta::from_millis_f64(x), incoming }
    }

    /// Returns the delay warped by eq. 1 while the last loss counts; while it expires, the result changes linearly to
    /// the delay itself (section 4.2).
    fn warped(&self) -> f64 {
        let (c, d_queue) = (&self.config, self.delay.1);
        let weight = self.intervals.last_loss_weight(c.multiloss);
        weight * exponential_warping(d_queue, c.q_th, c.lambda) + (1.0 - weight) * d_queue
    }

    /// Returns `rmode`: ramp-up if there is neither loss nor queuing in the window (section 4.2).
    fn mode(&mut self, now: RemoteTime) -> NadaMode {
        let queued = self.queued.is_some_and(|at| now - at < self.config.log_window);
        let [lost, _] = self.shares.shares(now);
        if queued || lost > 0.0 { NadaMode::Gradual } else { NadaMode::RampUp }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nada::rfc8698::ReceiverSignal;

    /// Observes a packet of 1250 bytes each 10 ms; `delay` in ms and `missing` depend on its number.
    fn observer(packets: core::ops::Range<i64>, delay: impl Fn(i64) -> i64, missing: impl Fn(i64) -> u32) -> Observer {
        let mut observer = Observer::new(ObserverConfig::RFC_8698);
        feed(&mut observer, packets, delay, missing);
        observer
    }

    fn feed(
        o: &mut Observer,
        packets: core::ops::Range<i64>,
        delay: impl Fn(i64) -> i64,
        missing: impl Fn(i64) -> u32,
    ) {
        for n in packets {
            o.handle_packet(&ReceivedPacket {
                arrival: RemoteTime::from_millis(10 * n + 40_000 + delay(n)),
                sent: Some(Time::from_millis(10 * n)),
                size: DataSize::from_bytes(1250),
                ecn: Ecn::Ect0,
                missing: Some(missing(n)),
            });
        }
    }

    fn report(observer: &mut Observer) -> (NadaMode, f64, u64) {
        let report = observer.report(observer.now(), &mut Signals::disabled(), ReceiverSignal::ALL);
        (report.mode, report.signal.as_millis_f64(), report.incoming.as_bps() / 1000)
    }

    #[test]
    fn empty_path_gives_ramp_up() {
        let (mode, x, kbps) = report(&mut observer(0..200, |_| 30, |_| 0));
        assert_eq!((mode, x), (NadaMode::RampUp, 0.0));
        assert!((980..=1020).contains(&kbps), "{kbps}");
    }

    /// A single delay of 9 ms has no effect; one of 10 ms ends the ramp-up for half a second. Neither passes the
    /// filter.
    #[test]
    fn one_delayed_packet_ends_the_ramp_up() {
        for (ms, expected) in [(9, NadaMode::RampUp), (10, NadaMode::Gradual)] {
            let mut seen = observer(0..200, |n| if n == 180 { ms } else { 0 }, |_| 0);
            assert_eq!((report(&mut seen).0, report(&mut seen).1), (expected, 0.0));
            feed(&mut seen, 200..232, |_| 0, |_| 0);
            assert_eq!(report(&mut seen).0, NadaMode::RampUp);
        }
    }

    /// A queuing delay of 200 ms gives a signal of 200 until a loss, then 50 exp(-1.5) plus the penalty of the loss,
    /// and 200 again when the loss has expired.
    #[test]
    fn losses_enable_warping_until_they_expire() {
        let queue = |n| if n < 100 { 0 } else { 200 };
        let mut seen = observer(0..200, queue, |_| 0);
        assert_eq!(report(&mut seen), (NadaMode::Gradual, 200.0, report(&mut seen).2));
        // One in 50 is lost; loss_int is 51 with the lost one, after 200 before the first.
        feed(&mut seen, 200..800, queue, |n| u32::from(n % 50 == 0));
        let (warped, share) = (50.0 * libm::exp(-1.5), 100.0 / 51.0);
        let (_, x, _) = report(&mut seen);
        assert!((x - warped - 10.0 * share * share).abs() < 3.0, "{x}");
        let average = seen.intervals.average.unwrap();
        assert!((50.0..=90.0).contains(&average), "{average}");
        feed(&mut seen, 800..1000, queue, |_| 0);
        let (_, x, _) = report(&mut seen);
        assert!((x - warped).abs() < 0.1, "no loss in the window, but the last one has not expired: {x}");
        feed(&mut seen, 1000..1700, queue, |_| 0);
        assert_eq!(report(&mut seen).1, 200.0);
    }

    #[test]
    fn marks_count_by_their_share_and_late_packets_do_not() {
        let mut seen = observer(0..200, |_| 0, |_| 0);
        let packet = |n: i64, ecn, missing| ReceivedPacket {
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
        let (mode, x, kbps) = report(&mut seen);
        // 4 % of marks are 2 ms times 16.
        assert!((mode, (28.0..=36.0).contains(&x)) == (NadaMode::RampUp, true), "{x}");
        assert!((1960..=2040).contains(&kbps), "{kbps}");
    }

    /// Applied at each packet, eq. 10 nearly converges in half a second; applied at each report, it covers 10 % of the
    /// way.
    #[test]
    fn ratios_are_smoothed_per_packet_or_per_report() {
        let after = |smoothing| {
            let mut observer = Observer::new(ObserverConfig { smoothing, ..ObserverConfig::RFC_8698 });
            feed(&mut observer, 0..200, |_| 0, |n| u32::from(n % 10 == 0));
            report(&mut observer);
            observer.p_loss
        };
        let (packets, reports) = (after(RatioSmoothing::Packets), after(RatioSmoothing::Reports));
        assert!((0.085..=0.1).contains(&packets) && (0.0085..=0.01).contains(&reports), "{packets} {reports}");
    }
}
