//! Decides when to probe: twice at the start, and again as long as the estimate follows (libwebrtc's `ProbeController`,
//! exponential probing).
//!
//! ```text
//! start:                                           clusters of 3 and 6 times the start rate
//! estimate > 0.7 of the last cluster's rate:       a cluster of twice the estimate
//! no such estimate within 1 s, or rate = maximum:  the end of probing
//! ```

use crate::{ProbeCluster, ProbeId, params};
use alloc::collections::VecDeque;
use paceline_units::{Rate, Time, TimeDelta};

params! {
    /// The parameters of probing.
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub struct ProbeConfig {
        /// libwebrtc's values (`ProbeControllerConfig`), without probes.
        const OFF;

        /// Whether clusters of packets probe for more capacity.
        enabled as "probes": bool = false, from "off, because rmcat-ns3 has none; libwebrtc has them";
        /// Rate of the first cluster over the start rate.
        first as "probe_first": f64 = 3.0, in 1.0..=100.0, from "first_exponential_probe_scale";
        /// Rate of the second cluster over the start rate.
        second as "probe_second": f64 = 6.0, in 1.0..=100.0, from "second_exponential_probe_scale";
        /// Rate of a further cluster over the estimate.
        further as "probe_further": f64 = 2.0, in 1.0..=100.0, from "further_exponential_probe_scale";
        /// Share of a cluster's rate that the estimate must exceed for a further one.
        success as "probe_success": f64 = 0.7, in 0.0..=1.0, from "further_probe_threshold";
        /// Length of a cluster.
        duration as "probe_ms": TimeDelta = TimeDelta::from_millis(15), in 1.0..=1e3, from "min_probe_duration";
    }
}

/// The least number of packets of a cluster (`min_probe_packets_sent`).
const PACKETS_MIN: u16 = 5;
/// The longest wait for the result of a cluster (`kMaxWaitingTimeForProbingResult`).
const RESULT_MAX: TimeDelta = TimeDelta::from_secs(1);

/// The state of probing.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Nothing was sent.
    Start,
    /// The last packet of a cluster left at this time, or the cluster was requested; an estimate above this rate leads to a further one.
    Waiting(Time, Rate),
    Complete,
}

/// The controller of probes.
#[derive(Clone, Debug)]
pub struct ProbeController {
    config: ProbeConfig,
    /// The highest rate of a cluster.
    max: Rate,
    phase: Phase,
    due: VecDeque<ProbeCluster>,
    next_id: ProbeId,
    start: Rate,
}

impl ProbeController {
    /// Creates a controller for a flow that begins at the rate `start`. No cluster exceeds `max`.
    pub fn new(config: ProbeConfig, start: Rate, max: Rate) -> Self {
        let phase = if config.enabled { Phase::Start } else { Phase::Complete };
        Self { config, max, phase, due: VecDeque::new(), next_id: 0, start }
    }

    /// Sets the highest rate of a cluster.
    pub fn set_max(&mut self, max: Rate) {
        self.max = max;
        self.due.iter_mut().for_each(|cluster| cluster.rate = cluster.rate.min(max));
    }

    /// Returns the next cluster to send.
    pub fn poll(&mut self, now: Time) -> Option<ProbeCluster> {
        if self.phase == Phase::Start {
            let (first, second) = (self.config.first, self.config.second);
            self.probe(now, &[self.start.scale(first), self.start.scale(second)]);
        }
        self.due.pop_front()
    }

    /// Handles a packet of a cluster that left. The wait for the result begins now.
    pub fn handle_sent(&mut self, now: Time) {
        if let Phase::Waiting(since, _) = &mut self.phase {
            *since = now;
        }
    }

    /// Handles a change of the estimate.
    pub fn handle_estimate(&mut self, now: Time, estimate: Rate) {
        let Phase::Waiting(since, above) = self.phase else { return };
        if now - since > RESULT_MAX {
            self.phase = Phase::Complete;
        } else if estimate > above {
            self.probe(now, &[estimate.scale(self.config.further)]);
        }
    }

    /// Queues clusters of these rates. A rate at the maximum ends probing.
    fn probe(&mut self, now: Time, rates: &[Rate]) {
        for rate in rates.iter().map(|rate| (*rate).min(self.max)) {
            let (id, duration) = (self.next_id, self.config.duration);
            self.next_id = self.next_id.wrapping_add(1);
            self.due.push_back(ProbeCluster { id, rate, duration, packets: PACKETS_MIN });
            self.phase = Phase::Waiting(now, rate.scale(self.config.success));
            if rate == self.max {
                self.phase = Phase::Complete;
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const ON: ProbeConfig = ProbeConfig { enabled: true, ..ProbeConfig::OFF };

    fn at(ms: i64) -> Time {
        Time::from_millis(ms)
    }

    fn rates(probes: &mut ProbeController, ms: i64) -> Vec<u64> {
        core::iter::from_fn(|| probes.poll(at(ms))).map(|cluster| cluster.rate.as_bps() / 1000).collect()
    }

    /// The start-up of libwebrtc at 300 kbit/s on a link of 5 Mbit/s: 900 and 1800; 1800 > 1260 leads to 3600, and 3600 >
    /// 2520 to 7200, which is cut to the maximum of 5000 and ends probing.
    #[test]
    fn probing_continues_while_the_estimate_follows() {
        let mut probes = ProbeController::new(ON, Rate::from_kbps(300), Rate::from_kbps(5000));
        assert_eq!(rates(&mut probes, 0), [900, 1800]);
        probes.handle_estimate(at(100), Rate::from_kbps(1260));
        assert_eq!(rates(&mut probes, 100), [] as [u64; 0], "the estimate must exceed 0.7 of the last rate");
        probes.handle_estimate(at(120), Rate::from_kbps(1800));
        assert_eq!(rates(&mut probes, 120), [3600]);
        probes.handle_estimate(at(220), Rate::from_kbps(3600));
        assert_eq!(rates(&mut probes, 220), [5000]);
        probes.handle_estimate(at(320), Rate::from_kbps(5000));
        assert_eq!(rates(&mut probes, 320), [] as [u64; 0]);
    }

    #[test]
    fn result_after_a_second_is_too_late() {
        for (ms, further) in [(1000, 1), (1001, 0)] {
            let mut probes = ProbeController::new(ON, Rate::from_kbps(300), Rate::from_kbps(5000));
            rates(&mut probes, 0);
            probes.handle_estimate(at(ms), Rate::from_kbps(1800));
            assert_eq!(rates(&mut probes, ms).len(), further, "after {ms} ms");
        }
    }

    #[test]
    fn clusters_keep_the_maximum_and_may_be_off() {
        let mut probes = ProbeController::new(ON, Rate::from_kbps(300), Rate::from_kbps(800));
        assert_eq!(rates(&mut probes, 0), [800], "the second would have the same rate");
        let mut probes = ProbeController::new(ProbeConfig::OFF, Rate::from_kbps(300), Rate::from_kbps(5000));
        assert_eq!(rates(&mut probes, 0), [] as [u64; 0]);
    }
}
