//! The choice of the controller and of the ECN codepoint: SCReAM, GoogCC until the first CE mark and then SCReAM, or GoogCC with
//! ECT(1) until the first CE mark (`GoogCcScreamNetworkController`).

use super::config::{Mode, ScreamLibwebrtcConfig};
use super::sender::Sender;
use crate::blocks::EcnValidation;
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
    ecn: EcnValidation,
}

impl Switch {
    /// Creates the controllers of the mode.
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
        Self { config: Arc::clone(config), controllers, marked, ecn: EcnValidation::new(Ecn::Ect1) }
    }

    /// Handles the ECN fields of a report. The first mark ends GoogCC in [`Mode::OnlyAfterCe`]; SCReAM continues with its state
    /// and handles this report.
    fn handle_marks(&mut self, feedback: &Feedback<'_>) {
        for packet in feedback.packets {
            self.ecn.handle_report(packet);
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
            _ => self.ecn.codepoint(),
        }
    }

    pub(super) fn target(&self) -> Rate {
        match &self.controllers {
            Controllers::Scream(scream) => scream.decision().target,
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
            Event::Sent(_) => {
                self.ecn.handle_sent(now);
            }
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
            Controllers::Scream(scream) => Some(scream.poll_timeout()),
            Controllers::GoogCc(googcc) => googcc.poll_timeout(),
            Controllers::Both(googcc, scream) => googcc.poll_timeout().into_iter().chain([scream.poll_timeout()]).min(),
        }
    }

    fn decision(&self) -> Decision {
        let decision = match &self.controllers {
            Controllers::Scream(scream) => scream.decision(),
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
            Controllers::Scream(scream) => scream.poll_probe(),
            Controllers::GoogCc(googcc) => googcc.poll_probe(now),
            Controllers::Both(googcc, scream) => {
                scream.poll_probe();
                googcc.poll_probe(now)
            }
        }
    }
}
