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
    detector: DelayDetector,
    aimd: Aimd<Time>,
    last_feedback: Option<Time>,
    /// The last updated estimate; zero before it.
    last: Rate,
    /// The last step between groups.
    delta: Option<GroupDelta>,
}

impl DelayBased {
    /// Creates an estimate without feedback.
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

    /// Returns the detector.
    pub fn detector(&self) -> &DelayDetector {
        &self.detector
    }

    /// Returns the rate control.
    pub fn aimd(&self) -> &Aimd<Time> {
        &self.aimd
    }

    /// Returns the rate control, to set limits and round-trip time.
    pub fn aimd_mut(&mut self) -> &mut Aimd<Time> {
        &mut self.aimd
    }

    /// Returns the last updated estimate; zero before it.
    pub fn last(&self) -> Rate {
        self.last
    }

    /// Returns the step between the last two groups, if the last message completed one.
    pub fn delta(&self) -> Option<&GroupDelta> {
        self.delta.as_ref()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SETUP;
    use alloc::vec::Vec;

    /// Feeds a message per 50 ms of packets of 1200 bytes each 5 ms, whose delay grows by `growth` ms per message. Returns the
    /// results.
    fn run(
        delay: &mut DelayBased,
        messages: core::ops::Range<i64>,
        growth: i64,
        acked: Option<Rate>,
    ) -> Vec<DelayBasedResult> {
        let result = |n: i64| {
            let packet = |i: i64| ArrivedPacket {
                arrival: RemoteTime::from_millis(70_000 + 50 * n + 5 * i + growth * n),
                sent: Time::from_millis(50 * n + 5 * i),
                size: DataSize::from_bytes(1200),
                index: 0,
            };
            let packets: Vec<ArrivedPacket> = (0..10).map(packet).collect();
            delay.handle_feedback(Time::from_millis(50 * n + 100), &packets, acked, None, false)
        };
        messages.map(result).collect()
    }

    fn started() -> DelayBased {
        let (groups, detector) = (BurstConfig::LIBWEBRTC, DelayDetectorConfig::LIBWEBRTC);
        let mut delay = DelayBased::new(groups, detector, AimdConfig::LIBWEBRTC, &SETUP);
        delay.aimd_mut().set_start(Rate::from_kbps(2000));
        delay
    }

    #[test]
    fn growing_delay_decreases_the_rate_and_constant_delay_does_not() {
        let acked = Some(Rate::from_kbps(1920));
        let mut delay = started();
        let steady = run(&mut delay, 0..100, 0, acked);
        assert!(steady.iter().all(|result| result.updated.is_some() && !result.recovered));
        assert!(delay.last() > Rate::from_kbps(2000) && delay.detector().usage() == Usage::Normal);
        run(&mut delay, 100..130, 10, acked);
        // 0.85 * 1920 - 5 = 1627.
        assert_eq!(delay.last(), Rate::from_kbps(1627));
    }

    #[test]
    fn over_use_without_acknowledged_rate_halves_in_each_message() {
        let mut delay = started();
        let results = run(&mut delay, 0..40, 10, None);
        let first = results.iter().position(|r| r.updated.is_some_and(|rate| rate < Rate::from_kbps(1500))).unwrap();
        let rates: Vec<u64> = results[first..first + 4].iter().map(|r| r.updated.unwrap().as_bps()).collect();
        assert!(rates.windows(2).all(|pair| pair[0].abs_diff(2 * pair[1]) <= 1), "{rates:?}");
    }

    #[test]
    fn probe_sets_the_rate_unless_there_is_over_use() {
        let packet =
            ArrivedPacket { arrival: RemoteTime::ZERO, sent: Time::ZERO, size: DataSize::from_bytes(1200), index: 0 };
        let probed = Some(Rate::from_kbps(3000));
        let mut delay = started();
        let result = delay.handle_feedback(Time::from_millis(100), &[packet], None, probed, false);
        assert_eq!(result, DelayBasedResult { updated: probed, is_probe: true, recovered: false });
        let mut delay = started();
        run(&mut delay, 0..20, 10, Some(Rate::from_kbps(1920)));
        assert_eq!(delay.detector().usage(), Usage::Over);
        // It belongs to the last group.
        let packet = ArrivedPacket { sent: Time::from_millis(995), arrival: RemoteTime::from_millis(71_186), ..packet };
        let result =
            delay.handle_feedback(Time::from_millis(1101), &[packet], Some(Rate::from_kbps(1920)), probed, false);
        assert!(!result.is_probe && delay.last() < Rate::from_kbps(2000));
    }

    #[test]
    fn pause_of_feedback_restarts_the_detector() {
        let mut delay = started();
        run(&mut delay, 0..20, 10, Some(Rate::from_kbps(1920)));
        assert_eq!(delay.detector().usage(), Usage::Over);
        run(&mut delay, 59..60, 10, Some(Rate::from_kbps(1920)));
        assert_eq!(delay.detector().usage(), Usage::Over, "2 s");
        run(&mut delay, 101..102, 10, Some(Rate::from_kbps(1920)));
        assert_eq!(delay.detector().usage(), Usage::Normal, "2.1 s");
    }
}
