//! From the controller's decision to what pacer, padding and sources do.

use super::{MediaSender, RTT_DEFAULT, SenderEvent, Stream};
use crate::allocation;
use paceline::{Division, MediaKind, divide};
use paceline_units::{Rate, Time};

impl MediaSender {
    /// Asks the half what to do, and does it if it is new.
    pub(super) fn ask(&mut self, now: Time) {
        let Some(half) = &self.half else { return };
        let decision = half.decision();
        if decision != self.decision {
            self.decision = decision;
            self.events.push_back(SenderEvent::Decision(decision));
            self.obey(now);
        }
    }

    pub(super) fn obey(&mut self, now: Time) {
        self.pacer.set_rate(self.decision.pacing.max(Rate::from_bps(1)));
        // A new pace or window is nothing to sources. How much FEC is wanted changes by itself, and what a half divides.
        if self.fec.is_some() || self.half_divides() || self.directed != Some(self.asked_of_sources()) {
            self.direct_sources(now);
        }
    }

    fn half_divides(&self) -> bool {
        self.half.as_ref().zip(self.streams.first()).is_some_and(|(h, s)| h.stream_rate(s.config.names.id).is_some())
    }

    /// What their shares come of, but for the overhead, which moves with each frame.
    fn asked_of_sources(&self) -> [Rate; 3] {
        [self.decision.target, self.decision.padding, self.resend_rate]
    }

    /// Tells each source its share of what the target leaves after retransmissions and FEC, and the video streams how
    /// much FEC goes with it. Shares are divided as they are on the network: a stream pays for its own headers, which
    /// are half of an audio stream and a twentieth of video.
    pub(super) fn direct_sources(&mut self, now: Time) {
        self.directed = Some(self.asked_of_sources());
        let target = self.decision.target;
        let rtt = self.rtt.unwrap_or(RTT_DEFAULT);
        let wanted = self.fec.as_mut().map_or(Rate::ZERO, |demand| target.scale(demand.share(now, rtt)));
        let Division { fec, media } = divide(target, wanted, self.resend_rate);
        self.claims.clear();
        self.claims.extend(self.streams.iter().map(Stream::claim));
        let pads = self.streams.iter().any(|s| s.config.names.kind == MediaKind::Video);
        let most = self.claims.iter().map(|c| c.max).sum();
        self.padding.set_rate(if pads { self.decision.padding.min(most) } else { Rate::ZERO });
        self.shares.clear();
        self.shares.resize(self.streams.len(), Rate::ZERO);
        allocation::divide(media, &self.claims, &mut self.shares);
        for (stream, share) in self.streams.iter_mut().zip(&self.shares) {
            let half = self.half.as_ref().and_then(|h| h.stream_rate(stream.config.names.id));
            stream.allotted = half.unwrap_or(*share).scale(1.0 - stream.overhead);
            stream.config.source.set_target(now, stream.allotted);
        }
        if self.fec.is_some() {
            let video =
                self.streams.iter().zip(&self.shares).filter(|(s, _)| s.red).map(|(_, share)| *share).sum::<Rate>();
            let ratio = if video.is_zero() { 0.0 } else { fec.as_bps_f64() / video.as_bps_f64() };
            self.streams.iter_mut().filter(|s| s.red).for_each(|s| s.fec.set_ratio(ratio));
        }
    }
}
