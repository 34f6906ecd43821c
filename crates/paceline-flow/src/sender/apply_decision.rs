//! Applies the controller's decision to pacer, padding and sources.

use super::stream::SenderStream;
use super::transmit::PADDING_SIZE;
use super::{MediaSender, RTT_DEFAULT, SenderEvent};
use crate::allocation::{self, RateRequest};
use paceline::{TargetSplit, split_target};
use paceline_units::{Rate, Time};

impl MediaSender {
    /// Reads the send half's decision and applies it if it changed, unless the half failed.
    pub(super) fn update_decision(&mut self, now: Time) {
        let Some(half) = &mut self.half else { return };
        if let Some(failure) = half.poll_failure() {
            (self.half, self.failure) = (None, Some(failure));
            return;
        }
        let decision = half.decision();
        // A calculated rate waits until the flow has its share.
        if decision != self.decision && self.calculated_rate().is_none() {
            self.decision = decision;
            self.events.push_back(SenderEvent::Decision(decision));
            self.apply_decision(now);
        }
    }

    /// Collects the probe clusters of the send half. A flow without video sends none, because it has no padding.
    pub(super) fn poll_probes(&mut self, now: Time) {
        let Some(half) = &mut self.half else { return };
        let pads = self.streams.iter().any(SenderStream::carries_padding);
        while let Some(cluster) = half.poll_probe(now) {
            if pads {
                self.prober.push(cluster);
            }
        }
    }

    pub(super) fn apply_decision(&mut self, now: Time) {
        self.pacer.set_rate(self.decision.pacing.max(Rate::from_bps(1)));
        self.pacer.set_burst(self.decision.burst);
        self.pacer.set_tick(self.decision.tick);
        self.update_window();
        // A new pacing rate or window does not concern the sources. The FEC share changes over time, and so do the
        // rates of a half that divides the target itself.
        if self.fec.is_some() || self.half_divides() || self.allocated_for != Some(self.allocation_inputs()) {
            self.allocate_rates(now);
        }
    }

    fn half_divides(&self) -> bool {
        self.half.as_ref().zip(self.streams.first()).is_some_and(|(h, s)| h.stream_rate(s.config.info.id).is_some())
    }

    /// Returns the inputs of the streams' shares, except the header overhead, which changes with each frame.
    fn allocation_inputs(&self) -> [Rate; 3] {
        [self.decision.target, self.decision.padding, self.resend_rate]
    }

    /// Sets each source's share of the target after retransmissions and FEC, and the FEC ratio of the video
    /// streams. Shares are divided as rates on the network, because each stream pays for its own headers: half of an
    /// audio stream and a twentieth of a video stream.
    pub(super) fn allocate_rates(&mut self, now: Time) {
        self.allocated_for = Some(self.allocation_inputs());
        let target = self.decision.target;
        let rtt = self.rtt.map_or(RTT_DEFAULT, |rtt| rtt.last);
        let wanted = self.fec.as_mut().map_or(Rate::ZERO, |demand| target.scale(demand.share(now, rtt)));
        let TargetSplit { fec, media } = split_target(target, wanted, self.resend_rate);
        self.requests.clear();
        self.requests.extend(self.streams.iter().map(SenderStream::rate_request));
        let pads = self.streams.iter().any(SenderStream::carries_padding);
        let most = self.requests.iter().map(|request| request.max).sum();
        // Padding proves the capacity that the next layer needs (libwebrtc's `pad_up_to_bitrate_bps`).
        let resumes_at = suspend_streams(now, media, &mut self.streams, &mut self.requests).min(target);
        let padding = self.decision.padding.max(resumes_at).min(most);
        self.padding.set_rate(if pads { padding } else { Rate::ZERO }, PADDING_SIZE);
        self.shares.clear();
        self.shares.resize(self.streams.len(), Rate::ZERO);
        allocation::divide(media, &self.requests, &mut self.shares);
        for (stream, share) in self.streams.iter_mut().zip(&self.shares).filter(|(stream, _)| !stream.suspended) {
            let half = self.half.as_ref().and_then(|h| h.stream_rate(stream.config.info.id));
            stream.allotted = half.unwrap_or(*share).scale(1.0 - stream.overhead);
            let target = if stream.muted { stream.config.source.range().0 } else { stream.allotted };
            stream.config.source.set_target(now, target);
        }
        if self.fec.is_some() {
            let video =
                self.streams.iter().zip(&self.shares).filter(|(s, _)| s.red).map(|(_, share)| *share).sum::<Rate>();
            let ratio = if video.is_zero() { 0.0 } else { fec.as_bps_f64() / video.as_bps_f64() };
            self.streams.iter_mut().filter(|s| s.red).for_each(|s| s.fec.set_ratio(ratio));
        }
    }
}

/// Suspends and resumes the streams that pause while the target is low: each needs its lowest rate after the highest rates
/// of the streams before it, and more than that to resume. Suspended streams request nothing. Returns the rate at which the
/// next one resumes; zero if none is suspended.
fn suspend_streams(now: Time, total: Rate, streams: &mut [SenderStream], requests: &mut [RateRequest]) -> Rate {
    let mut resumes_at = Rate::ZERO;
    if !streams.iter().any(|stream| stream.config.suspends) {
        return resumes_at;
    }
    let mut before = Rate::ZERO;
    for (stream, request) in streams.iter_mut().zip(requests) {
        if stream.config.suspends && !stream.is_inactive() {
            let needed = before + allocation::needed(request.min, stream.suspended);
            let suspended = total < needed;
            if stream.suspended && !suspended {
                stream.config.source.request_key_frame(now);
            }
            stream.suspended = suspended;
            if suspended && resumes_at.is_zero() {
                resumes_at = before + allocation::needed(request.min, true);
            }
        }
        if stream.suspended {
            (request.min, request.max) = (Rate::ZERO, Rate::ZERO);
        }
        before += request.max;
    }
    resumes_at
}
