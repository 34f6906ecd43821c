//! Signals of the sender: each is emitted when its value changes.

use super::{RecoveryPhase, TcpSender};
use crate::tcp::congestion::NO_THRESHOLD;
use paceline::signal_names;
use paceline_units::{DataSize, TimeDelta};

signal_names! {
    pub(super) enum TcpSignal {
        Window = series("cwnd", "B"),
        Threshold = series("ssthresh", "B"),
        SmoothedRtt = series("srtt", "ms"),
        State = state("state", &["open", "disorder", "recovery", "loss", "cwr"]),
        Target = series("W_max", "B"),
    }
}

/// Values of the signals as last emitted.
#[derive(Debug)]
pub(super) struct EmittedSignals {
    cwnd: DataSize,
    ssthresh: DataSize,
    srtt: Option<TimeDelta>,
    state: u8,
    target: Option<DataSize>,
}

impl EmittedSignals {
    /// Nothing was emitted yet.
    pub const NONE: Self =
        Self { cwnd: DataSize::ZERO, ssthresh: NO_THRESHOLD, srtt: None, state: u8::MAX, target: None };
}

impl TcpSender {
    /// Emits the signals that changed.
    #[inline]
    pub(super) fn emit_signals(&mut self) {
        if !self.signals_enabled {
            return;
        }
        let bytes = |size: DataSize| size.as_bytes() as f64;
        if self.window.cwnd != self.emitted.cwnd {
            self.signals.emit(TcpSignal::Window, bytes(self.window.cwnd));
        }
        if self.window.ssthresh != self.emitted.ssthresh && self.window.ssthresh != NO_THRESHOLD {
            self.signals.emit(TcpSignal::Threshold, bytes(self.window.ssthresh));
        }
        (self.emitted.cwnd, self.emitted.ssthresh) = (self.window.cwnd, self.window.ssthresh);
        let srtt = self.rtt.srtt();
        if let Some(srtt) = srtt
            && self.emitted.srtt != Some(srtt)
        {
            self.signals.emit(TcpSignal::SmoothedRtt, srtt.as_millis_f64());
        }
        self.emitted.srtt = srtt;
        let state = match self.phase {
            RecoveryPhase::Open => self.scoreboard.has_holes() as u8,
            RecoveryPhase::Recovery(_) => 2,
            RecoveryPhase::Loss { .. } => 3,
            RecoveryPhase::Reduction(_) => 4,
        };
        if state != self.emitted.state {
            self.signals.emit(TcpSignal::State, state as f64);
            self.emitted.state = state;
        }
        let target = self.congestion.target();
        if let Some(target) = target
            && self.emitted.target != Some(target)
        {
            self.signals.emit(TcpSignal::Target, bytes(target));
        }
        self.emitted.target = target;
    }
}
