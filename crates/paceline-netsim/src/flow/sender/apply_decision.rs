// SPDX-License-Identifier: MIT OR Apache-2.0
//! Applies the decision of the core: what repair needs of the target, and the targets of the sources.

use super::MediaSender;
use paceline::TargetSplit;
use paceline_units::{Rate, Time};

impl MediaSender {
    /// Follows the core after a call.
    #[inline]
    pub(super) fn follow_core(&mut self, now: Time) {
        if self.core.take_decision_changed() {
            self.apply_decision(now);
        }
    }

    /// A new pacing rate or window does not concern the sources. The FEC share changes over time, and so do the rates of a
    /// controller that divides the target itself.
    fn apply_decision(&mut self, now: Time) {
        let is_new = self.allocated_for != Some(self.allocation_inputs());
        if is_new || self.repair.has_fec() || self.core.controller_divides() {
            self.allocate_rates(now);
        }
    }

    /// Returns the inputs of the streams' shares, except the header overhead, which changes with each frame.
    fn allocation_inputs(&self) -> [Rate; 3] {
        let decision = self.core.decision();
        [decision.target, decision.padding, self.repair.resend_rate]
    }

    /// Sets each source's share of the target after retransmissions and FEC, and the FEC ratio of the video
    /// streams. Shares are divided as rates on the network, because each stream pays for its own headers: half of an
    /// audio stream and a twentieth of a video stream.
    pub(super) fn allocate_rates(&mut self, now: Time) {
        self.allocated_for = Some(self.allocation_inputs());
        let target = self.core.decision().target;
        let TargetSplit { fec, media } = self.repair.split(now, target, &self.core);
        for (place, stream) in self.streams.iter().enumerate() {
            let (min, max) = stream.limits();
            self.core.prepare_limits(place, min, max);
        }
        self.core.set_reserved(target.saturating_sub(media));
        for (place, stream) in self.streams.iter_mut().enumerate() {
            let (share, suspended) = self.core.share_at(place);
            if core::mem::replace(&mut stream.suspended, suspended) && !suspended {
                stream.config.source.request_key_frame(now);
            }
            if suspended {
                continue;
            }
            stream.allotted = share.scale(1.0 - stream.overhead);
            let target = if stream.muted { stream.config.source.range().0 } else { stream.allotted };
            stream.config.source.set_target(now, target);
        }
        if self.repair.has_fec() {
            self.set_fec_ratio(fec);
        }
    }

    /// Divides the rate of FEC among the video streams, in proportion to their media.
    fn set_fec_ratio(&mut self, fec: Rate) {
        let protected = self.streams.iter().enumerate().filter(|(_, stream)| stream.red);
        let video = protected.map(|(place, _)| self.core.share_at(place).0).sum::<Rate>();
        let ratio = if video.is_zero() { 0.0 } else { fec.as_bps_f64() / video.as_bps_f64() };
        self.streams.iter_mut().filter(|stream| stream.red).for_each(|stream| stream.fec.set_ratio(ratio));
    }
}
