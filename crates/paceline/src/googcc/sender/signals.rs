// SPDX-License-Identifier: MIT OR Apache-2.0
//! The internal variables that the send half shows.

use super::GoogCc;
use crate::blocks::{GroupDelta, RateState, Usage};
use crate::googcc::LossState;
use crate::{Signals, signal_names};
use paceline_units::Rate;

signal_names! {
    /// The signals of the send half.
    pub enum SenderSignal {
        Gradient = series("d_m", "ms"),
        Trend = series("trend", "ms/ms"),
        Scaled = series("m scaled", "ms"),
        Threshold = series("gamma", "ms"),
        Usage = state("usage", Usage::NAMES),
        State = state("sigma", RateState::NAMES),
        Acked = series("R", "bit/s"),
        Capacity = series("link capacity", "bit/s"),
        DelayBased = series("A_r", "bit/s"),
        Rate = series("A", "bit/s"),
        FractionLost = series("f_l", ""),
        LossState = state("loss state", LossState::NAMES),
        AverageLoss = series("average loss", ""),
        InherentLoss = series("inherent loss", ""),
        PushedBack = series("pushed back", "bit/s"),
        Alr = state("application-limited", &["no", "yes"]),
        Probed = series("probe result", "bit/s"),
    }
}

impl GoogCc {
    #[cold]
    pub(super) fn emit(&self, delta: Option<GroupDelta>, acked: Option<Rate>, signals: &mut Signals) {
        let (detector, aimd, v2) = (&self.delay.detector, &self.delay.aimd, &self.bandwidth.v2);
        if let Some(delta) = delta {
            signals.emit(SenderSignal::Gradient, delta.gradient_ms());
            signals.emit(SenderSignal::Trend, detector.trend);
            signals.emit(SenderSignal::Scaled, detector.detector.scaled);
            signals.emit(SenderSignal::Threshold, detector.detector.gamma_ms());
            signals.emit(SenderSignal::Usage, detector.usage().index());
        }
        let bps = |rate: Option<Rate>| rate.unwrap_or(Rate::ZERO).as_bps_f64();
        // After a decrease libwebrtc's state is already Hold.
        let state = if aimd.state() == RateState::Decrease { RateState::Hold } else { aimd.state() };
        signals.emit(SenderSignal::State, state.index());
        signals.emit(SenderSignal::Acked, bps(acked));
        signals.emit(SenderSignal::Capacity, bps(aimd.capacity()));
        signals.emit(SenderSignal::DelayBased, bps(aimd.estimate()));
        signals.emit(SenderSignal::LossState, self.bandwidth.loss_state.index());
        signals.emit(SenderSignal::AverageLoss, v2.average_loss);
        signals.emit(SenderSignal::InherentLoss, v2.inherent_loss());
        signals.emit(SenderSignal::PushedBack, self.published.pushed_back.as_bps_f64());
        signals.emit(SenderSignal::Alr, f64::from(u8::from(self.alr.since.is_some())));
    }

    pub(super) fn emit_rate(&self, before: Rate, signals: &mut Signals) {
        if self.decision.target != before {
            signals.emit(SenderSignal::Rate, self.decision.target.as_bps_f64());
        }
    }
}
