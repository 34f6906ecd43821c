// SPDX-License-Identifier: MIT OR Apache-2.0
//! The choice of the controller and of the ECN codepoint: SCReAM, GoogCC until the first CE mark and then SCReAM, or GoogCC with
//! ECT(1) until the first CE mark (`GoogCcScreamNetworkController`).

use super::config::{Mode, ScreamLibwebrtcConfig};
use super::sender::Sender;
use crate::googcc::GoogCc;
use crate::{Decision, Event, Feedback, GoogCcConfig, ProbeCluster, SendHalf, Setup, Signals};
use alloc::boxed::Box;
use alloc::sync::Arc;
use paceline_units::{Ecn, Rate, StreamId, Time};

/// The controllers that get the events.
#[derive(Clone, Debug)]
enum Controllers {
    Scream(Box<Sender>),
    GoogCc(Box<GoogCc>),
    /// GoogCC decides, and SCReAM gets the same events.
    Both(Box<GoogCc>, Box<Sender>),
}

/// The send half.
#[derive(Clone, Debug)]
pub struct Switch {
    config: Arc<ScreamLibwebrtcConfig>,
    controllers: Controllers,
    /// Whether a packet arrived with a mark.
    marked: bool,
}

impl Switch {
    pub fn new(config: &Arc<ScreamLibwebrtcConfig>, setup: &Setup) -> Self {
        Self::with_mark(config, setup, false)
    }

    /// Creates the controllers; `marked`: a packet arrived with a mark, on this route or an earlier one.
    fn with_mark(config: &Arc<ScreamLibwebrtcConfig>, setup: &Setup, marked: bool) -> Self {
        let scaled = Arc::new(ScreamLibwebrtcConfig {
            mss: setup.scaled(config.mss),
            min_window: setup.scaled(config.min_window),
            ..ScreamLibwebrtcConfig::clone(config)
        });
        let scream = || Box::new(Sender::new(&scaled, setup));
        let googcc = || Box::new(GoogCc::new(&Arc::new(GoogCcConfig::LIBWEBRTC), setup));
        let controllers = match config.mode {
            Mode::OnlyAfterCe if !marked => Controllers::Both(googcc(), scream()),
            Mode::Scream | Mode::OnlyAfterCe => Controllers::Scream(scream()),
            Mode::GoogCcWithEct1 => Controllers::GoogCc(googcc()),
        };
        Self { config: Arc::clone(config), controllers, marked }
    }

    /// Handles the ECN fields of a report. The first mark ends GoogCC in [`Mode::OnlyAfterCe`]; SCReAM continues with its state
    /// and handles this report.
    fn handle_marks(&mut self, feedback: &Feedback<'_>) {
        for packet in feedback.packets {
            self.marked |= packet.ecn == Some(Ecn::Ce) && packet.arrival.is_some();
        }
        if let Controllers::Both(_, scream) = &mut self.controllers
            && self.marked
        {
            self.controllers = Controllers::Scream(scream.clone());
        }
    }

    /// Returns the codepoint of packets. GoogCC does not react to marks, so it sends ECT(1) only until the first one.
    fn codepoint(&self) -> Ecn {
        match &self.controllers {
            Controllers::GoogCc(_) if self.marked => Ecn::NotEct,
            _ => Ecn::Ect1,
        }
    }

    pub(super) fn target(&self) -> Rate {
        match &self.controllers {
            Controllers::Scream(scream) => scream.decision.target,
            Controllers::GoogCc(googcc) | Controllers::Both(googcc, _) => googcc.decision().target,
        }
    }

    /// Returns whether SCReAM decides.
    pub(super) fn is_scream(&self) -> bool {
        matches!(self.controllers, Controllers::Scream(_))
    }
}

impl SendHalf for Switch {
    fn handle_event(&mut self, now: Time, event: &Event<'_>, signals: &mut Signals) {
        let before = self.target();
        match *event {
            // The mark survives the change of the route.
            Event::RouteChange(setup) => *self = Self::with_mark(&Arc::clone(&self.config), setup, self.marked),
            Event::Feedback(feedback) => self.handle_marks(feedback),
            _ => {}
        }
        if !matches!(event, Event::RouteChange(_)) {
            match &mut self.controllers {
                Controllers::Scream(scream) => scream.handle_event(now, event, signals),
                Controllers::GoogCc(googcc) => googcc.handle_event(now, event, &mut Signals::disabled()),
                Controllers::Both(googcc, scream) => {
                    scream.handle_event(now, event, signals);
                    googcc.handle_event(now, event, &mut Signals::disabled());
                }
            }
        }
        if signals.is_enabled() {
            self.emit_target(before, signals);
        }
    }

    fn poll_timeout(&self) -> Option<Time> {
        match &self.controllers {
            Controllers::Scream(scream) => Some(scream.next_process),
            Controllers::GoogCc(googcc) => googcc.poll_timeout(),
            Controllers::Both(googcc, scream) => googcc.poll_timeout().into_iter().chain([scream.next_process]).min(),
        }
    }

    fn decision(&self) -> Decision {
        let decision = match &self.controllers {
            Controllers::Scream(scream) => scream.decision,
            Controllers::GoogCc(googcc) | Controllers::Both(googcc, _) => googcc.decision(),
        };
        Decision { ecn: self.codepoint(), ..decision }
    }

    fn stream_rate(&self, stream: StreamId) -> Option<Rate> {
        match &self.controllers {
            Controllers::Scream(scream) => scream.stream_rate(stream),
            Controllers::GoogCc(_) | Controllers::Both(..) => None,
        }
    }

    /// What SCReAM would probe while GoogCC decides is dropped.
    fn poll_probe(&mut self, now: Time) -> Option<ProbeCluster> {
        match &mut self.controllers {
            Controllers::Scream(scream) => scream.padding.poll_probe(),
            Controllers::GoogCc(googcc) => googcc.poll_probe(now),
            Controllers::Both(googcc, scream) => {
                scream.padding.poll_probe();
                googcc.poll_probe(now)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::config::ScreamLibwebrtcConfig;
    use super::*;
    use crate::testing::{SETUP, at};
    use crate::{PacketReport, SentPacket};
    use paceline_units::{DataSize, RemoteTime};

    fn switch(mode: Mode) -> Switch {
        Switch::new(&Arc::new(ScreamLibwebrtcConfig { mode, ..ScreamLibwebrtcConfig::LIBWEBRTC }), &SETUP)
    }

    fn googcc() -> GoogCc {
        GoogCc::new(&Arc::new(GoogCcConfig::LIBWEBRTC), &SETUP)
    }

    fn on(half: &mut dyn SendHalf, ms: i64, event: &Event<'_>) -> Decision {
        half.handle_event(at(ms), event, &mut Signals::disabled());
        half.decision()
    }

    /// Sends packet `n` at 50 n ms and reports it 45 ms later with this codepoint, or as lost.
    fn pass(half: &mut dyn SendHalf, n: i64, ecn: Option<Ecn>) -> Decision {
        let size = DataSize::from_bytes(1200);
        on(half, 50 * n, &Event::Sent(&SentPacket::new(n as u64, size)));
        on(half, 50 * n + 20, &Event::Timeout);
        let arrival = ecn.map(|_| RemoteTime::from_millis(50 * n + 22));
        let packets = [PacketReport::new(n as u64, at(50 * n), size, arrival).with_ecn(ecn)];
        on(half, 50 * n + 45, &Event::Feedback(&Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO)))
    }

    const ECT1: Option<Ecn> = Some(Ecn::Ect1);
    const CE: Option<Ecn> = Some(Ecn::Ce);

    fn without_ecn(decision: Decision) -> Decision {
        Decision { ecn: Ecn::NotEct, ..decision }
    }

    /// GoogCC decides until the first mark, and then SCReAM as if it had decided from the start.
    #[test]
    fn first_mark_ends_googcc() {
        let (mut both, mut googcc, mut scream) = (switch(Mode::OnlyAfterCe), googcc(), switch(Mode::Scream));
        for n in 0..40 {
            let decision = pass(&mut both, n, ECT1);
            assert_eq!((decision.ecn, without_ecn(decision)), (Ecn::Ect1, pass(&mut googcc, n, ECT1)));
            pass(&mut scream, n, ECT1);
            assert_eq!(both.poll_timeout(), googcc.poll_timeout().min(scream.poll_timeout()));
        }
        assert_ne!(both.target(), scream.target());
        assert!(!both.is_scream());
        for n in 40..50 {
            let codepoint = if n == 40 { CE } else { ECT1 };
            assert_eq!(pass(&mut both, n, codepoint), pass(&mut scream, n, codepoint), "{n}");
        }
        assert!(both.is_scream());
    }

    /// GoogCC decides throughout; packets are ECT(1) until the first mark.
    #[test]
    fn first_mark_ends_ect1_of_googcc() {
        let (mut half, mut googcc) = (switch(Mode::GoogCcWithEct1), googcc());
        for n in 0..9 {
            let codepoint = if n == 5 { CE } else { ECT1 };
            let decision = pass(&mut half, n, codepoint);
            assert_eq!(decision.ecn, if n < 5 { Ecn::Ect1 } else { Ecn::NotEct });
            assert_eq!(without_ecn(decision), pass(&mut googcc, n, codepoint));
        }
        assert_eq!((half.is_scream(), half.stream_rate(StreamId(0))), (false, None));
    }

    /// A lost packet has no mark, and a path that clears the field causes no switch.
    #[test]
    fn cleared_field_is_no_mark() {
        for mode in [Mode::Scream, Mode::OnlyAfterCe, Mode::GoogCcWithEct1] {
            let mut half = switch(mode);
            for (n, ecn) in [None, ECT1, Some(Ecn::NotEct)].into_iter().enumerate() {
                pass(&mut half, n as i64, ecn);
            }
            assert_eq!((half.is_scream(), half.marked), (mode == Mode::Scream, false));
            let packets = [PacketReport::new(3, at(1), DataSize::from_bytes(1), None).with_ecn(CE)];
            on(&mut half, 200, &Event::Feedback(&Feedback::new(&packets, DataSize::ZERO, DataSize::ZERO)));
            assert!(!half.marked, "it did not arrive");
        }
    }

    /// After a change of the route the measurement begins anew, but a mark is remembered.
    #[test]
    fn mark_survives_a_change_of_the_route() {
        for (mode, codepoint, decides) in
            [(Mode::OnlyAfterCe, Ecn::Ect1, true), (Mode::GoogCcWithEct1, Ecn::NotEct, false)]
        {
            for marked in [false, true] {
                let mut half = switch(mode);
                pass(&mut half, 0, ECT1);
                pass(&mut half, 1, if marked { CE } else { ECT1 });
                pass(&mut half, 2, if mode == Mode::OnlyAfterCe { Some(Ecn::NotEct) } else { ECT1 });
                let decision = on(&mut half, 200, &Event::RouteChange(&SETUP));
                assert_eq!((decision.ecn, decision.target), (if marked { codepoint } else { Ecn::Ect1 }, SETUP.start));
                assert_eq!(half.is_scream(), decides && marked, "{mode:?}");
                assert_eq!(half.marked, marked);
            }
        }
    }

    /// What SCReAM would probe is not sent while GoogCC decides.
    #[test]
    fn probes_are_those_of_the_controller_that_decides() {
        let config =
            |mode| ScreamLibwebrtcConfig { mode, probes_before_media: true, ..ScreamLibwebrtcConfig::LIBWEBRTC };
        let first = |mode| {
            let mut half = Switch::new(&Arc::new(config(mode)), &SETUP);
            on(&mut half, 0, &Event::Timeout);
            let clusters: alloc::vec::Vec<_> = core::iter::from_fn(|| half.poll_probe(at(0))).collect();
            clusters.iter().map(|cluster| cluster.rate.as_bps() / 1000).collect::<alloc::vec::Vec<_>>()
        };
        assert_eq!(first(Mode::Scream), [50]);
        assert_eq!(first(Mode::OnlyAfterCe), first(Mode::GoogCcWithEct1));
        assert_eq!(first(Mode::OnlyAfterCe)[0], 900);
    }

    /// Sizes that stand for packets follow the largest packet of the flow.
    #[test]
    fn window_is_in_proportion_to_packets() {
        let setup = Setup { packet_size: DataSize::from_bytes(600), ..SETUP };
        let half = Switch::new(&Arc::new(ScreamLibwebrtcConfig::LIBWEBRTC), &setup);
        let window = |bytes| Some(crate::Window::AfterHighest(DataSize::from_bytes(bytes)));
        assert_eq!((half.decision().window, switch(Mode::Scream).decision().window), (window(1500), window(3000)));
    }
}
