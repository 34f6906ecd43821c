// SPDX-License-Identifier: MIT OR Apache-2.0
//! Decides when to probe and at which rate (libwebrtc's `ProbeController`).
//!
//! ```text
//! network available:                     clusters of 3 and 6 times the start rate
//! estimate > 0.7 of the last cluster:    a cluster of twice the estimate, within 1 s
//! maximum raised above the estimate:     a cluster of the maximum
//! allocation raised above the estimate:  clusters of 1 and 2 times the allocation, up to twice the estimate
//! application-limited for 5 s:           a cluster of twice the estimate (optional)
//! large drop, then under-use ended:      a cluster of 0.85 of the rate before the drop, in the application-limited region
//! ```
//!
//! No cluster exceeds the maximum or twice the allocation. While delay grows, loss limits the rate or feedback is missing, there
//! are no probes. Of the form of 2018 ([`ProbingConfig::Y2018`]), `gcc-tfb` has the first two rules.

use super::ProbingConfig;
use crate::{ProbeCluster, ProbeId};
use alloc::collections::VecDeque;
use paceline_units::{Rate, Time, TimeDelta};

/// The longest wait for the result of a cluster (`kMaxWaitingTimeForProbingResult`).
const RESULT_MAX: TimeDelta = TimeDelta::from_secs(1);
/// A drop is large below this share of the estimate (`kBitrateDropThreshold`).
const DROP_SHARE: f64 = 0.66;
/// A drop is probed within this time (`kBitrateDropTimeout`).
const DROP_TIMEOUT: TimeDelta = TimeDelta::from_secs(5);
/// The rate of the cluster over the rate before the drop (`kProbeFractionAfterDrop`).
const DROP_PROBE: f64 = 0.85;
/// The share of that rate which the result may lack (`kProbeUncertainty`).
const UNCERTAINTY: f64 = 0.05;
/// A drop is also probed within this time after the application-limited region (`kAlrEndedTimeout`).
const ALR_ENDED_TIMEOUT: TimeDelta = TimeDelta::from_secs(3);
/// The time between two such probes (`kMinTimeBetweenAlrProbes`).
const DROP_PROBE_INTERVAL: TimeDelta = TimeDelta::from_secs(5);

/// What limits the estimate (`BandwidthLimitedCause`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LimitCause {
    /// The delay, which does not change.
    #[default]
    Delay,
    /// The delay, which changes.
    DelayIncreased,
    /// Missing feedback.
    HighRtt,
    /// Loss.
    Loss,
    /// Loss, and the estimate increases.
    LossIncreasing,
}

/// The state of probing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing was sent.
    Start,
    /// An estimate above this rate leads to a further cluster.
    Waiting(Rate),
    Complete,
}

/// The controller of probes.
#[derive(Clone, Debug)]
pub struct ProbeController {
    config: ProbingConfig,
    phase: Phase,
    available: bool,
    cause: LimitCause,
    start: Rate,
    estimate: Rate,
    max: Rate,
    /// The sum of the sources' maxima; zero: unknown.
    allocation: Rate,
    /// The time of the last clusters.
    probed: Time,
    /// The end of repeated initial probing.
    repeat_until: Option<Time>,
    alr_since: Option<Time>,
    alr_ended: Option<Time>,
    /// The last large drop, and the estimate before it.
    drop: (Time, Rate),
    drop_probed: Time,
    due: VecDeque<ProbeCluster>,
    next_id: ProbeId,
}

impl ProbeController {
    /// Creates a controller without a network.
    pub fn new(config: ProbingConfig) -> Self {
        Self {
            config,
            phase: Phase::Start,
            available: false,
            cause: LimitCause::Delay,
            start: Rate::ZERO,
            estimate: Rate::ZERO,
            max: config.max,
            allocation: Rate::ZERO,
            probed: Time::ZERO,
            repeat_until: None,
            alr_since: None,
            alr_ended: None,
            drop: (Time::ZERO, Rate::ZERO),
            drop_probed: Time::ZERO,
            due: VecDeque::new(),
            next_id: 1,
        }
    }

    /// Creates a controller for a flow that begins at the rate `start`. No cluster exceeds `max`.
    pub fn starting_at(config: ProbingConfig, start: Rate, max: Rate) -> Self {
        Self { start, max, ..Self::new(config) }
    }

    /// Returns the next cluster to send.
    #[inline]
    pub fn poll(&mut self) -> Option<ProbeCluster> {
        self.due.pop_front()
    }

    /// Sets the lowest rate, the start rate (if there is a new one), and the highest rate ([`Rate::MAX`]: unknown).
    pub fn set_rates(&mut self, now: Time, min: Rate, start: Option<Rate>, max: Rate) {
        if let Some(start) = start.filter(|start| !start.is_zero()) {
            (self.start, self.estimate) = (start, start);
        } else if self.start.is_zero() {
            self.start = min;
        }
        let max = if max == Rate::MAX { self.config.max } else { max };
        let before = core::mem::replace(&mut self.max, max);
        match self.phase {
            Phase::Start if self.available => self.probe_exponentially(now),
            Phase::Complete
                if self.config.raised_max && !self.estimate.is_zero() && before < max && self.estimate < max =>
            {
                self.probe(now, &[max], false);
            }
            _ => {}
        }
    }

    /// Sets the highest rate of a cluster, also of those that are due.
    pub fn set_max(&mut self, max: Rate) {
        self.max = max;
        self.due.iter_mut().for_each(|cluster| cluster.rate = cluster.rate.min(max));
    }

    /// Handles a packet of a cluster that left. The wait for the result begins now.
    pub fn handle_sent(&mut self, now: Time) {
        if matches!(self.phase, Phase::Waiting(_)) {
            self.probed = now;
        }
    }

    /// Handles the loss and the return of the network.
    pub fn set_available(&mut self, now: Time, available: bool) {
        self.available = available;
        match self.phase {
            Phase::Waiting(_) if !available => self.phase = Phase::Complete,
            Phase::Start if available && !self.start.is_zero() => self.probe_exponentially(now),
            _ => {}
        }
    }

    /// Sets the sum of the sources' maxima; zero: there are no sources.
    pub fn set_allocation(&mut self, now: Time, allocation: Rate) {
        let c = self.config;
        let changed = allocation > self.allocation || (c.allocation_decrease && allocation != self.allocation);
        let probes = c.allocation && (self.alr_since.is_some() || c.allocation_anywhere);
        if probes && changed && self.phase == Phase::Complete && self.estimate < self.max && self.estimate < allocation
        {
            self.allocation = allocation;
            self.probe_allocation(now);
            return;
        }
        if !allocation.is_zero() {
            self.repeat_until = Some(now);
        }
        self.allocation = allocation;
    }

    fn probe_allocation(&mut self, now: Time) {
        let c = self.config;
        if c.allocation_first == 0.0 {
            return;
        }
        let limit = self.estimate.scale(c.allocation_limit);
        let [first, second] = [c.allocation_first, c.allocation_second].map(|scale| self.allocation.scale(scale));
        if limit < first {
            self.probe(now, &[limit], true);
        } else if c.allocation_second > 0.0 {
            let is_limited = limit < second;
            let rates = [first, second.min(limit)];
            let used = if rates[1] > rates[0] { &rates[..] } else { &rates[..1] };
            self.probe(now, used, is_limited);
        } else {
            self.probe(now, &[first], false);
        }
    }

    /// Handles a published estimate. In the time after a cluster it may lead to a further one.
    pub fn set_estimate(&mut self, now: Time, estimate: Rate, cause: LimitCause) {
        self.cause = cause;
        if estimate < self.estimate.scale(DROP_SHARE) {
            self.drop = (now, self.estimate);
        }
        self.estimate = estimate;
        let Phase::Waiting(above) = &mut self.phase else { return };
        let needed = self.max.min(if self.allocation.is_zero() { Rate::MAX } else { self.allocation.scale(2.0) });
        if self.config.aborts && estimate > needed {
            *above = Rate::MAX;
        }
        if estimate > *above {
            self.probe(now, &[estimate.scale(self.config.further)], true);
        }
    }

    /// Sets the time since when the application limits the flow.
    #[inline]
    pub fn set_alr_since(&mut self, since: Option<Time>) {
        self.alr_since = since;
    }

    /// Sets the time at which the application ceased to limit the flow.
    pub fn set_alr_ended(&mut self, at: Time) {
        self.alr_ended = Some(at);
    }

    /// Handles the end of under-use: after a large drop of the estimate, the rate before it is probed (`RequestProbe`).
    pub fn handle_recovery(&mut self, now: Time) {
        let ended_recently = self.alr_ended.is_some_and(|at| now - at < ALR_ENDED_TIMEOUT);
        let (dropped, before) = self.drop;
        let rate = before.scale(DROP_PROBE);
        if (self.alr_since.is_some() || ended_recently || self.config.rapid_recovery)
            && self.phase == Phase::Complete
            && rate.scale(1.0 - UNCERTAINTY) > self.estimate
            && now - dropped < DROP_TIMEOUT
            && now - self.drop_probed > DROP_PROBE_INTERVAL
        {
            self.drop_probed = now;
            self.probe(now, &[rate], false);
        }
    }

    /// Handles the passing of time: ends the wait for a result, and starts repeated and periodic probes (`Process`).
    pub fn handle_timeout(&mut self, now: Time) {
        if now - self.probed > RESULT_MAX && matches!(self.phase, Phase::Waiting(_)) {
            self.phase = Phase::Complete;
        }
        if self.estimate.is_zero() || self.phase != Phase::Complete {
            return;
        }
        let repeats = self.repeat_until.is_some_and(|end| end > now) && now >= self.probed + RESULT_MAX;
        if repeats {
            self.probe(now, &[self.estimate.scale(self.config.first)], true);
        } else if self.periodic_probe_due(now) {
            self.probe(now, &[self.estimate.scale(self.config.periodic_scale)], true);
        }
    }

    fn periodic_probe_due(&self, now: Time) -> bool {
        let (enabled, interval) = (self.config.periodic, self.config.periodic_interval);
        enabled && self.alr_since.is_some_and(|since| now >= since.max(self.probed) + interval)
    }

    fn probe_exponentially(&mut self, now: Time) {
        if self.config.repeats && self.allocation.is_zero() {
            self.repeat_until = Some(now + self.config.repeat_time);
        }
        let (first, second) = (self.config.first, self.config.second);
        let rates = [self.start.scale(first), self.start.scale(second)];
        self.probe(now, if second > 0.0 { &rates } else { &rates[..1] }, true);
    }

    /// Queues clusters of these rates, within the limits (`InitiateProbing`). `further`: whether an estimate near the last
    /// rate leads to a further cluster.
    fn probe(&mut self, now: Time, rates: &[Rate], further: bool) {
        if self.is_unneeded() {
            self.phase = Phase::Complete;
            return;
        }
        let mut max = self.max;
        if !self.allocation.is_zero() {
            max = max.min(self.allocation.scale(2.0));
        }
        match self.cause {
            LimitCause::HighRtt | LimitCause::DelayIncreased | LimitCause::Loss => return,
            LimitCause::LossIncreasing => max = max.min(self.estimate.scale(self.config.loss_limited_scale)),
            LimitCause::Delay => {}
        }
        let (mut last, mut further) = (Rate::ZERO, further);
        for rate in rates {
            last = (*rate).min(max);
            further &= *rate < max;
            self.push(now, last);
            if self.config.once_at_max && last == max {
                break;
            }
        }
        self.probed = now;
        self.phase = match further {
            true => Phase::Waiting(last.scale(self.config.success)),
            false => Phase::Complete,
        };
    }

    fn is_unneeded(&self) -> bool {
        let highest = match self.allocation.is_zero() {
            true => self.max,
            false => self.max.min(self.allocation.scale(self.config.skip_allocation)),
        };
        self.config.skip_above > 0.0 && self.estimate > highest.scale(self.config.skip_above)
    }

    fn push(&mut self, now: Time, rate: Rate) {
        let repeats = self.repeat_until.is_some_and(|end| now < end);
        let duration = if repeats { self.config.repeat_duration } else { self.config.duration };
        let (id, packets) = (self.next_id, self.config.packets as u16);
        self.next_id = self.next_id.wrapping_add(1);
        // A caller that never polls must not grow the queue.
        if self.config.enabled && self.due.len() < DUE_MAX {
            self.due.push_back(ProbeCluster { id, rate, duration, packets });
        }
    }
}

/// The most clusters that wait for the flow.
const DUE_MAX: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{at, kbps};
    use alloc::vec::Vec;

    fn polled(probes: &mut ProbeController) -> Vec<u64> {
        core::iter::from_fn(|| probes.poll()).map(|cluster| cluster.rate.as_bps() / 1000).collect()
    }
    fn started(config: ProbingConfig, max: Rate) -> ProbeController {
        let mut probes = ProbeController::new(config);
        probes.set_rates(at(0), kbps(30), Some(kbps(300)), max);
        assert_eq!(polled(&mut probes), [] as [u64; 0], "no network");
        probes.set_available(at(0), true);
        probes
    }
    fn complete(config: ProbingConfig, max: Rate) -> ProbeController {
        let mut probes = started(config, max);
        polled(&mut probes);
        probes.handle_timeout(at(1001));
        assert_eq!(probes.phase, Phase::Complete);
        probes
    }
    const ON: ProbingConfig = ProbingConfig::LIBWEBRTC;
    const NONE: [u64; 0] = [];

    #[test]
    fn raised_maximum_is_probed() {
        let mut probes = complete(ON, kbps(2000));
        probes.set_rates(at(2000), kbps(30), None, kbps(2000));
        assert_eq!(polled(&mut probes), NONE);
        probes.set_rates(at(2000), kbps(30), None, kbps(2500));
        assert_eq!(polled(&mut probes), [2500]);
        probes.set_rates(at(2000), kbps(30), None, kbps(1000));
        assert_eq!(polled(&mut probes), NONE);
        probes.set_estimate(at(2100), kbps(1200), LimitCause::Delay);
        probes.set_rates(at(2200), kbps(30), None, kbps(1100));
        assert_eq!(polled(&mut probes), NONE, "below the estimate");
    }

    /// The estimate is 300 kbit/s: its double bounds the clusters. Above twice the allocation there is none.
    #[test]
    fn raised_allocation_is_probed() {
        let rates = |allocation| {
            let mut probes = complete(ON, Rate::MAX);
            probes.set_allocation(at(2000), kbps(allocation));
            (polled(&mut probes), matches!(probes.phase, Phase::Waiting(_)))
        };
        assert_eq!(rates(300), (vec![], false), "not above the estimate");
        assert_eq!(rates(301), (vec![301, 600], true));
        assert_eq!(rates(600), (vec![600], true));
        assert_eq!(rates(2000), (vec![600], true));
        let mut probes = complete(ON, Rate::MAX);
        probes.set_estimate(at(2000), kbps(1000), LimitCause::Delay);
        probes.set_allocation(at(2000), kbps(1500));
        assert_eq!(polled(&mut probes), [1500, 2000]);
        probes.handle_timeout(at(3001));
        probes.set_allocation(at(3001), kbps(1400));
        assert_eq!(polled(&mut probes), NONE, "a decrease");
        probes.set_allocation(at(3001), kbps(1450));
        assert_eq!(polled(&mut probes), [1450, 2000]);
        let mut probes = complete(ProbingConfig { allocation_anywhere: false, ..ON }, Rate::MAX);
        probes.set_allocation(at(2000), kbps(1500));
        assert_eq!(polled(&mut probes), NONE, "not application-limited");
        probes.set_alr_since(Some(at(2000)));
        probes.set_allocation(at(2000), kbps(1600));
        assert_eq!(polled(&mut probes), [600]);
    }

    #[test]
    fn application_limited_flow_probes_every_five_seconds() {
        let mut probes = complete(ProbingConfig { periodic: true, ..ON }, Rate::MAX);
        probes.set_alr_since(Some(at(1500)));
        let mut after = |ms| {
            probes.handle_timeout(at(ms));
            polled(&mut probes)
        };
        assert_eq!([after(6499), after(6500), after(7501), after(11_499)], [vec![], vec![600], vec![], vec![]]);
        assert_eq!(after(11_500), [600]);
        let mut off = complete(ON, Rate::MAX);
        off.set_alr_since(Some(at(1500)));
        off.handle_timeout(at(60_000));
        assert_eq!(polled(&mut off), NONE);
    }

    /// 0.85 · 0.95 · 1000 = 807.5 kbit/s must exceed the estimate after the drop.
    #[test]
    fn drop_in_the_application_limited_region_is_probed_once() {
        let mut probes = complete(ON, Rate::MAX);
        probes.set_estimate(at(6000), kbps(1000), LimitCause::Delay);
        probes.set_estimate(at(7000), kbps(660), LimitCause::Delay);
        probes.set_alr_since(Some(at(6500)));
        probes.handle_recovery(at(8000));
        assert_eq!(polled(&mut probes), NONE, "0.66 is no large drop");
        probes.set_estimate(at(8000), kbps(1000), LimitCause::Delay);
        probes.set_estimate(at(9000), kbps(650), LimitCause::Delay);
        let rates = [9500, 9600].map(|ms| {
            probes.handle_recovery(at(ms));
            polled(&mut probes)
        });
        assert_eq!(rates, [vec![850], vec![]]);
        // Outside the region, at most 3 s after it.
        for (ms, expected) in [(12_999, &[850][..]), (13_000, &[])] {
            let mut probes = complete(ON, Rate::MAX);
            probes.set_estimate(at(6000), kbps(1000), LimitCause::Delay);
            probes.set_estimate(at(12_000), kbps(500), LimitCause::Delay);
            probes.set_alr_ended(at(10_000));
            probes.handle_recovery(at(ms));
            assert_eq!(polled(&mut probes), expected, "at {ms}");
        }
    }

    #[test]
    fn first_cluster_is_repeated_until_streams_exist() {
        let mut probes = started(ProbingConfig { repeats: true, ..ON }, Rate::MAX);
        let first: Vec<ProbeCluster> = core::iter::from_fn(|| probes.poll()).collect();
        assert!(first.iter().all(|cluster| cluster.duration == TimeDelta::from_millis(100)));
        probes.handle_timeout(at(1001));
        assert_eq!(polled(&mut probes), [900]);
        probes.set_allocation(at(1500), kbps(2000));
        probes.handle_timeout(at(2100));
        assert_eq!(polled(&mut probes), NONE);
    }

    /// In 2018 the second cluster would have the same rate, and a raised maximum is not probed.
    #[test]
    fn clusters_of_2018_keep_the_maximum_and_may_be_off() {
        for (enabled, expected) in [(true, &[800][..]), (false, &[])] {
            let config = ProbingConfig { enabled, ..ProbingConfig::Y2018 };
            let mut probes = ProbeController::starting_at(config, kbps(300), kbps(800));
            probes.set_available(at(0), true);
            assert_eq!(polled(&mut probes), expected);
            probes.set_rates(at(100), kbps(30), None, kbps(2000));
            assert_eq!(polled(&mut probes), NONE);
        }
        let mut probes = ProbeController::starting_at(ON, kbps(300), kbps(5000));
        probes.set_available(at(0), true);
        probes.set_max(kbps(1000));
        assert_eq!(polled(&mut probes), [900, 1000]);
        probes.handle_sent(at(900));
        probes.handle_timeout(at(1900));
        assert_eq!(probes.phase, Phase::Waiting(kbps(1260)), "1 s after the last packet of a cluster");
    }

    #[test]
    fn loss_of_the_network_ends_the_wait() {
        let mut probes = started(ON, Rate::MAX);
        polled(&mut probes);
        probes.set_available(at(100), false);
        probes.set_estimate(at(200), kbps(1800), LimitCause::Delay);
        probes.set_available(at(300), true);
        assert_eq!(polled(&mut probes), NONE);
    }

    #[test]
    fn unpolled_clusters_are_bounded() {
        let mut probes = complete(ON, Rate::MAX);
        (0..100).for_each(|n| probes.set_rates(at(2000 + n), kbps(30), None, kbps(5001 + n as u64)));
        assert_eq!(polled(&mut probes).len(), DUE_MAX);
    }
}
