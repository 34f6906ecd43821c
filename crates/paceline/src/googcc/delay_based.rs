// SPDX-License-Identifier: MIT OR Apache-2.0
//! The delay-based estimate (libwebrtc's `DelayBasedBwe`): groups, delay detector and rate control, and the rule that combines
//! them once per feedback message.
//!
//! ```text
//! state Over:  acknowledged rate known, and a round-trip time since the last change:   A decreases
//!              acknowledged rate unknown:                                              A = A / 2
//! otherwise:   a probe has a result:                                                   A = that result
//!              else the rate control grows, or holds
//! ```

use crate::Setup;
use crate::blocks::{
    Aimd, AimdConfig, BurstConfig, BurstGroups, DelayDetector, DelayDetectorConfig, GroupDelta, Usage,
};
use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};

/// After a pause of feedback of this length groups and detector restart (`kStreamTimeOut`, `delay_based_bwe.cc`).
const STREAM_TIMEOUT: TimeDelta = TimeDelta::from_secs(2);

/// A packet that arrived, with times of libwebrtc's resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrivedPacket {
    /// The arrival.
    pub arrival: RemoteTime,
    /// The send time.
    pub sent: Time,
    /// The size on the network.
    pub size: DataSize,
    /// The index of its report in the message.
    pub index: usize,
}

/// The result of a feedback message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DelayBasedResult {
    /// The estimate, if the message updated it.
    pub updated: Option<Rate>,
    /// Whether it is the result of a probe.
    pub is_probe: bool,
    /// Whether under-use has ended, so that the rate may grow again.
    pub recovered: bool,
}

/// The estimate.
#[derive(Clone, Debug)]
pub struct DelayBased {
    config: DelayDetectorConfig,
    groups: BurstGroups,
    /// The detector.
    pub detector: DelayDetector,
    /// The rate control.
    pub aimd: Aimd<Time>,
    last_feedback: Option<Time>,
    /// The last updated estimate; zero before it.
    pub last: Rate,
    /// The step between the last two groups, if the last message completed one.
    pub delta: Option<GroupDelta>,
}

impl DelayBased {
    pub fn new(groups: BurstConfig, detector: DelayDetectorConfig, aimd: AimdConfig, setup: &Setup) -> Self {
        Self {
            config: detector,
            // The sender has rounded the times.
            groups: BurstGroups::new(BurstConfig { resolution: TimeDelta::ZERO, ..groups }),
            detector: DelayDetector::new(detector),
            aimd: Aimd::new(aimd, setup),
            last_feedback: None,
            last: Rate::ZERO,
            delta: None,
        }
    }

    /// Handles the packets of a message, in order of arrival, with the acknowledged rate, the result of a probe, and whether the
    /// application limits the flow.
    pub fn handle_feedback(
        &mut self,
        now: Time,
        packets: &[ArrivedPacket],
        acked: Option<Rate>,
        probed: Option<Rate>,
        in_alr: bool,
    ) -> DelayBasedResult {
        if packets.is_empty() {
            return DelayBasedResult::default();
        }
        self.restart_after_pause(now);
        let recovered = self.handle_packets(now, packets);
        self.aimd.set_in_alr(in_alr);
        let result = self.updated(now, acked, probed, recovered);
        self.last = result.updated.unwrap_or(self.last);
        result
    }

    fn restart_after_pause(&mut self, now: Time) {
        if self.last_feedback.replace(now).is_none_or(|last| now - last > STREAM_TIMEOUT) {
            self.groups.restart();
            self.detector = DelayDetector::new(self.config);
        }
    }

    /// Returns whether the detector went from Under to Normal.
    fn handle_packets(&mut self, now: Time, packets: &[ArrivedPacket]) -> bool {
        let mut recovered = false;
        self.delta = None;
        for packet in packets {
            if let Some(delta) = self.groups.handle_report(now, packet.arrival, packet.sent, packet.size) {
                let before = self.detector.usage();
                self.detector.handle_group(packet.arrival, &delta);
                recovered |= before == Usage::Under && self.detector.usage() == Usage::Normal;
                self.delta = Some(delta);
            }
        }
        recovered
    }

    /// Updates the rate (`MaybeUpdateEstimate`).
    fn updated(&mut self, now: Time, acked: Option<Rate>, probed: Option<Rate>, recovered: bool) -> DelayBasedResult {
        let usage = self.detector.usage();
        match (usage, acked, probed) {
            (Usage::Over, Some(rate), _) if self.aimd.may_decrease_again(now, rate) => {
                DelayBasedResult { updated: self.aimd.update(now, usage, acked), ..Default::default() }
            }
            (Usage::Over, None, _) if self.aimd.may_halve(now) => {
                self.aimd.halve(now);
                DelayBasedResult { updated: self.aimd.estimate(), ..Default::default() }
            }
            (Usage::Over, ..) => DelayBasedResult::default(),
            (_, _, Some(rate)) => {
                self.aimd.set_estimate(now, rate);
                DelayBasedResult { updated: self.aimd.estimate(), is_probe: true, recovered: false }
            }
            (_, _, None) => {
                DelayBasedResult { updated: self.aimd.update(now, usage, acked), is_probe: false, recovered }
            }
        }
    }
}
