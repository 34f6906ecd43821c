// SPDX-License-Identifier: MIT OR Apache-2.0
//! The internal variables that the send half shows.

use super::sender::Sender;
use super::switch::Switch;
use crate::{Signals, signal_names};
use paceline_units::{DataSize, Rate, TimeDelta};

signal_names! {
    /// The signals of the send half.
    pub enum ScreamLibwebrtcSignal {
        QueueDelayAverage = series("qdelay_avg", "ms"),
        QueueDelayMinAverage = series("qdelay_min_avg", "ms"),
        DifferenceAverage = series("latency_difference_avg", "ms"),
        Alpha = series("l4s_alpha", ""),
        LossLevel = series("congestion_level", ""),
        Window = series("ref_window", "B"),
        Inflection = series("ref_window_i", "B"),
        SendWindow = series("max_data_in_flight", "B"),
        InFlight = series("data_in_flight", "B"),
        SmoothedRtt = series("smoothed_rtt", "ms"),
        HoldTime = series("feedback_hold_time", "ms"),
        Received = series("received_rate", "bit/s"),
        Limited = state("application-limited", &["no", "yes"]),
        Reduction = series("cwnd_reduce_ratio", ""),
        Padding = series("padding", "bit/s"),
        Target = series("A", "bit/s"),
        Controller = state("controller", &["GoogCC", "SCReAM"]),
    }
}

impl Sender {
    #[cold]
    pub(super) fn emit(&self, signals: &mut Signals) {
        use ScreamLibwebrtcSignal as S;
        let ms = TimeDelta::as_millis_f64;
        let bytes = |size: DataSize| size.as_bytes() as f64;
        let core = &self.core;
        signals.emit(S::QueueDelayAverage, ms(core.delay.average.unwrap_or_default()));
        signals.emit(S::QueueDelayMinAverage, ms(core.delay.min_average));
        signals.emit(S::DifferenceAverage, ms(core.delay.difference_average));
        signals.emit(S::Alpha, core.alpha.0);
        signals.emit(S::LossLevel, core.loss.level);
        signals.emit(S::Window, bytes(core.window.size));
        signals.emit(S::Inflection, bytes(core.window.inflection));
        signals.emit(S::SendWindow, bytes(core.send_window()));
        signals.emit(S::InFlight, bytes(self.flight.bytes));
        signals.emit(S::SmoothedRtt, ms(core.rtt.smoothed));
        signals.emit(S::HoldTime, ms(core.rtt.hold));
        signals.emit(S::Received, core.received.finite().unwrap_or(Rate::ZERO).as_bps_f64());
        signals.emit(S::Limited, f64::from(u8::from(core.limited)));
        signals.emit(S::Reduction, self.published.reduction);
        signals.emit(S::Padding, self.published.padding.as_bps_f64());
    }
}

impl Switch {
    /// Emits the target if it changed, and with it the controller that decides.
    pub(super) fn emit_target(&self, before: Rate, signals: &mut Signals) {
        let target = self.target();
        if target != before {
            signals.emit(ScreamLibwebrtcSignal::Target, target.as_bps_f64());
            signals.emit(ScreamLibwebrtcSignal::Controller, f64::from(u8::from(self.is_scream())));
        }
    }
}
