// SPDX-License-Identifier: MIT OR Apache-2.0
//! NADA of RFC 8698. Arrivals are observed at the receiver (`nada`) or at the sender (`nada-sender`).
//!
//! ```text
//! nada:         arrivals ─ SequenceTracker ─ Observer ─ a report each DELTA ──▶ ┐
//! nada-sender:  arrivals ══ RFC 8888 ══▶ at each feedback: Observer ──────────▶ ┴─ r_ref ─ Shaping ─▶ r_vin, r_send
//!                                                       ramp_up, or gradual ─────────┘
//! ```
//!
//! `docs/algorithms/nada.md` lists the points that the RFC does not specify, with the choices.

use super::observer::OBSERVED;
use super::receiver::{Observe, Receiver};
use super::sender::{Generation, Sender, SenderConfig, SenderSignal};
use super::{GradualConfig, Observer, ObserverConfig, RampUpConfig, ReceivedPacket, SequencePosition, ShapingConfig};
use crate::params::config;
use crate::{
    Arrival, Config, Controller, Entry, NadaMode, NadaReport, Setup, SignalName, SignalTables, Signals, signal_names,
};
use paceline_units::{Ecn, RemoteTime, TimeDelta};

pub(crate) fn entries() -> [Entry; 2] {
    const SOURCE: &str = "Zhu, Pan, Ramalho, Mena: Network-Assisted Dynamic Adaptation (NADA), RFC 8698 (2020)";
    [
        Entry::new(
            "nada",
            "NADA: delay, loss and marks as one signal, ramp-up and gradual update, a rate-shaping buffer",
            SOURCE,
            NadaConfig::default(),
        ),
        Entry::new(
            "nada-sender",
            "the same, computed at the sender from per-packet feedback",
            SOURCE,
            NadaSenderConfig::default(),
        ),
    ]
}

config! {
    /// The parameters of RFC 8698, for either place of observation.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NadaConfig {
        /// RFC 8698, table 2.
        default const RFC_8698;

        /// Time between two reports.
        interval as "delta_ms": TimeDelta = TimeDelta::from_millis(100), in 10.0..=1e4, from "table 2, DELTA";
        /// The observation of arrivals.
        observer: ObserverConfig = ObserverConfig::RFC_8698, block all;
        /// Accelerated ramp-up.
        ramp_up: RampUpConfig = RampUpConfig::RFC_8698, block all;
        /// Bound of the filter's delay.
        filter_delay as "dfilt_ms": TimeDelta = TimeDelta::from_millis(120), in 0.0..=1e4, from "table 2, DFILT";
        /// Weight of the flow.
        priority as "prio": f64 = 1.0, in 0.0..=1e3, from "table 2, PRIO";
        /// Gradual update.
        gradual: GradualConfig = GradualConfig::RFC_8698, block all;
        /// The rate-shaping buffer.
        shaping: ShapingConfig = ShapingConfig::RFC_8698, block all;
    }
}

config! {
    /// The parameters of RFC 8698 with arrivals observed at the sender.
    #[derive(Clone, Debug, PartialEq)]
    pub struct NadaSenderConfig {
        /// RFC 8698, table 2.
        default const RFC_8698;

        /// The parameters that do not depend on the place.
        nada: NadaConfig = NadaConfig::RFC_8698, block all;
        /// Queue that the bytes in flight may cause before they lower the target; 0: no limit.
        window_queue as "window_ms": TimeDelta = TimeDelta::ZERO, in 0.0..=1e5,
            from "not in the RFC; libwebrtc has 350, QueueSize";
    }
}

/// The longest interval of per-packet feedback, used if feedback would take more than 5 % of the rate. Reports further
/// apart than 250 ms make the control loop unstable (section 6.3).
const FEEDBACK_LONGEST: TimeDelta = TimeDelta::from_millis(250);

signal_names! {
    /// The signals of the send half of `nada-sender`. That of `nada` has those before the first one of the observer.
    pub enum NadaSignal {
        Rate = series("r_ref", "bit/s"),
        Mode = state("rmode", NadaMode::NAMES),
        Signal = series("x_curr", "ms"),
        Received = series("r_recv", "bit/s"),
        Queued = series("buffer_len", "B"),
        Rtt = series("rtt", "ms"),
        AboveBase = series("d_fwd - d_base", "ms"),
        Queuing = series("d_queue", "ms"),
        Warped = series("d_tilde", "ms"),
        LossRatio = series("p_loss", ""),
        MarkingRatio = series("p_mark", ""),
        LossInterval = series("loss_int", "packets"),
    }
}

impl SenderSignal for NadaSignal {
    const RATE: Self = Self::Rate;
    const REPORT: [Self; 4] = [Self::Mode, Self::Signal, Self::Received, Self::Queued];
    const RTT: Self = Self::Rtt;
    const OBSERVED: Option<[Self; OBSERVED]> =
        Some([Self::AboveBase, Self::Queuing, Self::Warped, Self::LossRatio, Self::MarkingRatio, Self::LossInterval]);
}

signal_names! {
    /// The signals of the receive half of `nada`.
    pub enum ReceiverSignal {
        AboveBase = series("d_fwd - d_base", "ms"),
        Queuing = series("d_queue", "ms"),
        Warped = series("d_tilde", "ms"),
        LossRatio = series("p_loss", ""),
        MarkingRatio = series("p_mark", ""),
        LossInterval = series("loss_int", "packets"),
    }
}

impl ReceiverSignal {
    pub(super) const ALL: [Self; OBSERVED] =
        [Self::AboveBase, Self::Queuing, Self::Warped, Self::LossRatio, Self::MarkingRatio, Self::LossInterval];
}

impl NadaConfig {
    fn sender(&self, setup: &Setup, at_sender: Option<Observer>, window_queue: TimeDelta) -> Sender<NadaSignal> {
        let config = SenderConfig {
            generation: Generation::Rfc8698,
            interval: self.interval,
            response: self.interval + self.filter_delay,
            ramp_up: self.ramp_up,
            gradual: GradualConfig { x_ref: self.priority * self.gradual.x_ref, ..self.gradual },
            shaping: self.shaping,
            rtt: TimeDelta::ZERO,
            ecn: Ecn::Ect0,
            window_queue,
        };
        Sender::new(config, setup, at_sender)
    }
}

impl Config for NadaConfig {
    const SIGNALS: SignalTables = (NadaSignal::TABLE.split_at(NadaSignal::AboveBase as usize).0, ReceiverSignal::TABLE);

    fn couples(&self) -> bool {
        true
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let receiver = Receiver::new(Observer::new(self.observer), self.interval, self.observer.log_window);
        Controller::from_halves(self.sender(setup, None, TimeDelta::ZERO), receiver)
    }
}

impl Config for NadaSenderConfig {
    const SIGNALS: SignalTables = (NadaSignal::TABLE, &[]);

    fn couples(&self) -> bool {
        !self.window_queue.is_positive()
    }

    fn halves(&self, setup: &Setup) -> Controller {
        let sender = self.nada.sender(setup, Some(Observer::new(self.nada.observer)), self.window_queue);
        Controller::from_reports(sender, self.nada.interval, FEEDBACK_LONGEST, true)
    }
}

/// Section 4.2, at the receiver.
impl Observe for Observer {
    fn restarted(&self) -> Self {
        Observer::restarted(self)
    }

    #[inline]
    fn handle_arrival(&mut self, now: RemoteTime, arrival: &Arrival, position: Option<SequencePosition>) {
        let missing = match position {
            Some(SequencePosition::Next { missing }) => Some(missing),
            _ => None,
        };
        let Arrival { sent, size, ecn, .. } = *arrival;
        self.handle_packet(&ReceivedPacket { arrival: now, sent, size, ecn, missing });
    }

    fn report(&mut self, now: RemoteTime, signals: &mut Signals) -> NadaReport {
        Observer::report(self, now, signals, ReceiverSignal::ALL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Drive, arrival, rtt};
    use crate::{Event, Feedback, Guard, Message, PacketReport, SendHalf, StreamState};
    use alloc::vec::Vec;
    use paceline_units::{DataSize, Rate, StreamId, Time};

    const SETUP: Setup = Setup::new(Rate::from_kbps(1000), Rate::from_kbps(150), Rate::from_kbps(1500));

    fn sender(config: &impl Config) -> Guard {
        config.halves(&SETUP).send.expect("a send half")
    }

    /// Handles a NADA report. Returns the new target.
    fn target_after(half: &mut dyn SendHalf, ms: i64, mode: NadaMode, x_ms: f64, kbps: u64) -> u64 {
        let report = NadaReport { mode, signal: TimeDelta::from_millis_f64(x_ms), incoming: Rate::from_kbps(kbps) };
        half.on(ms, Event::Message(&Message::Nada(report))).as_bps()
    }

    /// V5.4 and V5.5, one report after the other.
    #[test]
    fn rate_follows_the_reports() {
        use NadaMode::{Gradual, RampUp};
        let mut half = sender(&NadaConfig::default());
        assert_eq!(half.on(0, Event::RoundTrip(&rtt(50))), SETUP.start, "loss is part of the signal");
        assert_eq!(target_after(&mut *half, 100, Gradual, 15.0, 1000), 970_000, "x_o = 0, x_d = 15: -3 %");
        assert_eq!(target_after(&mut *half, 200, RampUp, 20.0, 900), 1_066_667);
        assert_eq!(target_after(&mut *half, 300, RampUp, 20.0, 600), 1_066_667, "a ramp-up does not lower the rate");
        assert_eq!(target_after(&mut *half, 400, RampUp, 20.0, 1500), 1_500_000, "at most RMAX");
        // x_prev is that of the ramp-up: x_o = 30 - 10, x_d = 10; -0.4 % and -2 %.
        assert_eq!(target_after(&mut *half, 500, Gradual, 30.0, 1500), 1_464_000);
        assert_eq!(target_after(&mut *half, 600, Gradual, 3000.0, 1500), 150_000, "at least RMIN");
    }

    /// The offset is multiplied by the time since the last report, at most TAU: 1 % for 100 ms at 1 Mbit/s.
    #[test]
    fn gradual_update_is_proportional_to_the_time_since_the_last_report() {
        let mut config = NadaConfig::default();
        config.gradual.eta = 0.0;
        // An offset of 50 ms, first above 15 RMAX / r at 1 Mbit/s, then at 990 kbit/s.
        let (first, second) = (65.0, 50.0 + 15.0 / 0.99);
        for (ms, less) in [(50, 4950), (100, 9900), (500, 49_500), (2000, 49_500), (86_400_000, 49_500)] {
            let mut half = sender(&config);
            assert_eq!(target_after(&mut *half, 1000, NadaMode::Gradual, first, 1000), 990_000);
            let after = target_after(&mut *half, 1000 + ms, NadaMode::Gradual, second, 1000);
            assert!(after.abs_diff(990_000 - less) <= 1, "{ms}: {after}");
        }
    }

    /// The equilibrium is where x = PRIO XREF RMAX / r: a flow of twice the weight has twice the rate.
    #[test]
    fn priority_moves_the_equilibrium() {
        for (priority, x, rests) in [(1.0, 15.0, true), (2.0, 30.0, true), (2.0, 15.0, false)] {
            let mut half = sender(&NadaConfig { priority, ..NadaConfig::default() });
            target_after(&mut *half, 100, NadaMode::Gradual, x, 1000);
            let before = half.decision().target;
            let after = target_after(&mut *half, 200, NadaMode::Gradual, x, 1000);
            let moved = after.abs_diff(before.as_bps());
            assert!(if rests { moved < 800 } else { moved > 2000 }, "{priority} {x}: {before} to {after}");
        }
    }

    /// Runs the controller on packets of 1250 bytes each 10 ms, which have this delay or are lost. Returns the target
    /// after each second.
    fn targets(config: &impl Config, delay: impl Fn(i64) -> Option<i64>) -> Vec<u64> {
        let pair = config.halves(&SETUP);
        let (mut send, mut receive) = (pair.send.expect("a send half"), pair.receive);
        let (mut signals, mut reports, mut targets) = (Signals::disabled(), Vec::new(), Vec::new());
        for n in 0..2000i64 {
            let (sent, size) = (Time::from_millis(10 * n), DataSize::from_bytes(1250));
            let arrived = delay(n).map(|ms| RemoteTime::from_millis(90_000 + 10 * n + ms));
            let ecn = Ecn::Ect0;
            if let (Some(half), Some(now)) = (&mut receive, arrived) {
                while let Some(due) = half.poll_timeout().filter(|due| *due < now) {
                    half.handle_timeout(due, &mut signals);
                    let message = half.poll_message(due).expect("a report is due");
                    send.handle_event(sent, &Event::Message(&message), &mut signals);
                }
                let packet = Arrival { sequence: n as u16, ecn, ..arrival(10 * n, 1250) };
                half.handle_arrival(now, &packet, &mut signals);
            }
            reports.push(PacketReport { ecn: Some(ecn), ..PacketReport::new(n as u64, sent, size, arrived) });
            if n % 10 == 9 {
                let feedback = Feedback::new(&reports, size, size);
                send.handle_event(sent, &Event::Feedback(&feedback), &mut signals);
                reports.clear();
            }
            if n % 100 == 99 {
                targets.push(send.decision().target.as_bps());
            }
        }
        targets
    }

    /// On an empty path, with a queue, and with losses.
    #[test]
    fn observation_at_sender_and_receiver_agree() {
        let paths: [fn(i64) -> Option<i64>; 3] =
            [|_| Some(40), |n| Some(40 + (n / 20) % 30), |n| (n % 150 != 77).then_some(40 + (n / 40) % 15)];
        for (path, moves) in paths.into_iter().zip([false, true, true]) {
            let (receiver, sender) =
                (targets(&NadaConfig::default(), path), targets(&NadaSenderConfig::default(), path));
            for (receiver, sender) in receiver.iter().zip(&sender) {
                let difference = *sender as f64 / *receiver as f64 - 1.0;
                assert!(difference.abs() < 0.05, "{receiver} and {sender}");
            }
            let ends = (receiver.iter().min().unwrap(), receiver.iter().max().unwrap());
            assert_eq!(ends.0 < ends.1, moves, "{ends:?}");
        }
    }

    /// An empty report is accepted as well.
    #[test]
    fn packet_that_was_counted_as_lost_does_not_count_again() {
        let mut half = sender(&NadaSenderConfig::default());
        let mut signals = Signals::enabled();
        let mut feed = |packets: &[(u64, Option<i64>)]| {
            let report = |&(n, ms): &(u64, Option<i64>)| {
                let (sent, size) = (Time::from_millis(10 * n as i64), DataSize::from_bytes(1250));
                let arrival = ms.map(|ms| RemoteTime::from_millis(500 + ms));
                PacketReport { ecn: Some(Ecn::Ect0), ..PacketReport::new(n, sent, size, arrival) }
            };
            let packets: Vec<PacketReport> = packets.iter().map(report).collect();
            let feedback = Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO);
            half.handle_event(Time::from_millis(200), &Event::Feedback(&feedback), &mut signals);
            signals.drain().find(|(index, _)| *index == 9).expect("p_loss").1
        };
        assert_eq!(feed(&[]), 0.0);
        assert_eq!(feed(&[(0, Some(0)), (1, Some(10)), (2, Some(20))]), 0.0);
        let lost = feed(&[(3, None), (4, Some(40))]);
        // 1 of 5, smoothed once.
        assert!((lost - 0.02).abs() < 1e-9, "{lost}");
        assert_eq!(feed(&[(3, Some(45))]), lost);
    }

    /// An encoder that exceeds its target by 20 % for a second fills the buffer by 10 % of the rate, 90 ms: r_vin and
    /// r_send differ by at most 10 %. Back at its target the buffer drains. By eq. 11 and 12 it never drains if the
    /// encoder stays 20 % above; without their bound it stays at 28 ms.
    #[test]
    fn shaping_buffer_drains_when_the_encoder_returns_to_its_target() {
        let delays = |most, over: std::ops::Range<i64>| {
            let mut config = NadaConfig::default();
            config.shaping.most = most;
            let (mut half, mut buffer) = (sender(&config), 0.0f64);
            let step = |frame: i64| {
                let queued = DataSize::from_bytes(buffer as u64);
                let now = Time::from_millis(frame * 1000 / 30);
                let stream = StreamState::new(StreamId(0), queued);
                half.handle_event(now, &Event::Stream(&stream), &mut Signals::disabled());
                let decision = half.decision();
                let factor = if over.contains(&frame) { 1.2 } else { 1.0 };
                buffer += factor * decision.target.as_bps_f64() / 8.0 / 30.0;
                let waits = buffer * 8e3 / decision.pacing.as_bps_f64();
                buffer = (buffer - decision.pacing.as_bps_f64() / 8.0 / 30.0).max(0.0);
                waits
            };
            (0..300).map(step).collect::<Vec<f64>>()
        };
        let most = |delays: &[f64]| delays.iter().copied().fold(0.0, f64::max);
        let burst = delays(0.05, 0..30);
        assert!((80.0..140.0).contains(&most(&burst)), "{}", most(&burst));
        // A single frame takes 33 ms.
        assert!(burst[29] - 33.4 < 100.0 && burst[29] > 100.0 && most(&burst[70..]) < 36.0, "{burst:?}");
        assert!(most(&delays(0.05, 0..300)) > 800.0);
        let unbounded = delays(1.0, 0..300);
        assert!((55.0..66.0).contains(&most(&unbounded)), "{}", most(&unbounded));
    }
}
