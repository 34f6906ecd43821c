// SPDX-License-Identifier: MIT OR Apache-2.0
//! Probe clusters: packets at a rate of their own, ahead of the pacing rate.
//!
//! A packet of a cluster is due when the bytes before it have left at the cluster's rate. It is media from the pacer; if
//! no media waits, an earlier packet again, or padding. No other packet leaves during a cluster. This follows libwebrtc's
//! `BitrateProber`, except that each packet has a time of its own: there, packets leave in bursts of 2 ms.

use crate::{ProbeCluster, ProbeId};
use alloc::collections::VecDeque;
use paceline_units::{DataSize, Rate, Time, TimeDelta};

/// The most clusters that wait (libwebrtc's `kMaxPendingProbeClusters`). More replace the oldest.
const WAITING_MAX: usize = 5;

/// A cluster is given up if a packet is this late (libwebrtc's `max_probe_delay`): its rate would be wrong.
const LATE_MAX: TimeDelta = TimeDelta::from_millis(10);

/// The time between two bursts in libwebrtc (`min_probe_delta`).
const BURST: TimeDelta = TimeDelta::from_millis(2);

/// The clusters of a flow: those that wait, and the one that is being sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Prober {
    waiting: VecDeque<ProbeCluster>,
    active: Option<ActiveCluster>,
}

#[derive(Clone, Debug)]
struct ActiveCluster {
    cluster: ProbeCluster,
    started: Time,
    sent: DataSize,
    packets: u16,
}

impl ActiveCluster {
    #[inline]
    fn due(&self) -> Time {
        self.started + self.sent / self.cluster.rate
    }
}

impl Prober {
    /// Queues a cluster. One without a rate is ignored.
    pub fn push(&mut self, cluster: ProbeCluster) {
        if cluster.rate.is_zero() {
            return;
        }
        if self.waiting.len() == WAITING_MAX {
            self.waiting.pop_front();
        }
        self.waiting.push_back(cluster);
    }

    /// Gives up all clusters above this rate.
    pub fn drop_above(&mut self, rate: Rate) {
        self.waiting.retain(|cluster| cluster.rate <= rate);
        self.active.take_if(|active| active.cluster.rate > rate);
    }

    /// Removes the oldest waiting cluster, for a program that sends clusters itself.
    #[inline]
    pub fn take(&mut self) -> Option<ProbeCluster> {
        self.waiting.pop_front()
    }

    /// Returns whether a cluster is being sent. No other packet leaves in the meantime: a frame that overtakes the cluster
    /// would fill the link between its packets (libwebrtc's `PacingController::NextSendTime`).
    #[inline]
    pub fn is_active(&self) -> bool {
        self.active.is_some()
    }

    /// Returns the time at which the next packet of a cluster is due. A waiting cluster is due at once.
    #[inline]
    pub fn due(&self) -> Option<Time> {
        match &self.active {
            Some(active) => Some(active.due()),
            None => (!self.waiting.is_empty()).then_some(Time::ZERO),
        }
    }

    /// Returns the size of a burst of the active cluster in libwebrtc, which sends one each [`BURST`].
    pub fn burst(&self) -> DataSize {
        self.active.as_ref().map_or(DataSize::ZERO, |active| active.cluster.rate * BURST)
    }

    /// Returns the cluster of a packet that leaves at `now`, if one is due.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Option<ProbeId> {
        if self.active.as_ref().is_some_and(|active| now - active.due() > LATE_MAX) {
            self.active = None;
        }
        if self.active.is_none() {
            let cluster = self.waiting.pop_front()?;
            self.active = Some(ActiveCluster { cluster, started: now, sent: DataSize::ZERO, packets: 0 });
        }
        self.active.as_ref().filter(|active| active.due() <= now).map(|active| active.cluster.id)
    }

    /// Counts a packet of the active cluster, which ends when it has enough bytes and packets.
    #[inline(never)]
    pub fn handle_sent(&mut self, size: DataSize) {
        let Some(active) = &mut self.active else { return };
        active.sent += size;
        active.packets = active.packets.saturating_add(1);
        let ProbeCluster { rate, duration, packets, .. } = active.cluster;
        if active.sent >= rate * duration && active.packets >= packets {
            self.active = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn cluster(id: ProbeId, kbps: u64) -> ProbeCluster {
        ProbeCluster { id, rate: Rate::from_kbps(kbps), duration: TimeDelta::from_millis(15), packets: 5 }
    }

    /// Sends packets of 225 bytes, each when it is due. Returns time, µs, and cluster of each.
    fn send_all(prober: &mut Prober, late: TimeDelta) -> Vec<(i64, ProbeId)> {
        let (mut now, mut sent) = (Time::from_millis(100), Vec::new());
        while let Some(due) = prober.due() {
            now = now.max(due + late);
            if let Some(id) = prober.poll(now) {
                sent.push((now.as_nanos() / 1000 - 100_000, id));
                prober.handle_sent(DataSize::from_bytes(225));
            }
        }
        sent
    }

    /// By hand: 225 bytes take 2 ms at 900 kbit/s. 15 ms are 1688 bytes, so 8 packets, and the next cluster follows at
    /// twice the rate; 3375 bytes are 15 packets.
    #[test]
    fn clusters_follow_each_other_at_their_rates() {
        let mut prober = Prober::default();
        prober.push(cluster(1, 900));
        prober.push(cluster(2, 1800));
        let sent = send_all(&mut prober, TimeDelta::ZERO);
        let first: Vec<_> = (0..8).map(|n| (2000 * n, 1)).collect();
        let second: Vec<_> = (0..15).map(|n| (14_000 + 1000 * n, 2)).collect();
        assert_eq!(sent, [first, second].concat());
    }

    #[test]
    fn cluster_has_a_least_number_of_packets() {
        let mut prober = Prober::default();
        prober.push(ProbeCluster { duration: TimeDelta::from_millis(1), ..cluster(1, 900) });
        assert_eq!(send_all(&mut prober, TimeDelta::ZERO).len(), 5, "113 bytes would be one packet");
    }

    #[test]
    fn late_cluster_is_given_up() {
        let late = |ms: i64| {
            let mut prober = Prober::default();
            prober.push(cluster(1, 900));
            assert_eq!(prober.poll(Time::from_millis(100)), Some(1));
            prober.handle_sent(DataSize::from_bytes(225));
            prober.poll(Time::from_millis(102 + ms))
        };
        assert_eq!((late(-1), late(0), late(10), late(11)), (None, Some(1), Some(1), None));
    }

    #[test]
    fn waiting_clusters_are_bounded() {
        let mut prober = Prober::default();
        (0..9).for_each(|id| prober.push(cluster(id, 900)));
        let mut ids: Vec<ProbeId> = send_all(&mut prober, TimeDelta::ZERO).into_iter().map(|(_, id)| id).collect();
        ids.dedup();
        assert_eq!(ids, [4, 5, 6, 7, 8]);
        prober.push(ProbeCluster { rate: Rate::ZERO, ..cluster(1, 900) });
        assert_eq!(prober.due(), None, "a cluster without a rate");
    }
}
