// SPDX-License-Identifier: MIT OR Apache-2.0
//! The receiver's part of libwebrtc's start-up probe until 2016: it finds clusters of packets with equal intervals among
//! the first packets, and takes their rate as its estimate.
//!
//! ```text
//! a cluster: at least 4 intervals in a row, each less than 2.5 ms from the mean of those before it
//! a cluster is valid if most of its intervals are at least 1 ms long at both ends, and if the mean interval at the
//!     receiver is at most 2 ms longer and at most 5 ms shorter than at the sender
//! its rate: mean packet size over the mean interval, the smaller of both ends
//! ```
//!
//! Source: `RemoteBitrateEstimatorAbsSendTime` of 2014 to 2019. There, times are whole milliseconds.

use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};

/// The time after the first packet in which packets may belong to a probe (`kInitialProbingIntervalMs`).
const PROBING: TimeDelta = TimeDelta::from_secs(2);
/// Larger packets are paced and may belong to a probe (`kMinProbePacketSize`). Sizes there are without IP and UDP headers.
const SIZE_MIN: DataSize = DataSize::from_bytes(200 + 28);
/// The fewest intervals of a cluster (`kMinClusterSize`).
const INTERVALS_MIN: u32 = 4;
/// The number of packets without any cluster above which the oldest packet is dropped (`kMaxProbePackets`).
const PACKETS_WITHOUT_CLUSTER: usize = 15;
/// The number of clusters after which the search starts anew (`kExpectedNumberOfProbes`).
const CLUSTERS_MAX: usize = 3;
/// The number of packets after which the search starts anew in any case: a limit of memory that libwebrtc does not have.
const PACKETS_MAX: usize = 100;
/// How far an interval of a cluster is from the mean of those before it.
const SPREAD: TimeDelta = TimeDelta::from_micros(2500);
/// The shortest interval that can be measured.
const INTERVAL_MIN: TimeDelta = TimeDelta::from_millis(1);
/// How much longer, and how much shorter, the mean interval of a valid cluster may be at the receiver.
const LONGER_MAX: TimeDelta = TimeDelta::from_millis(2);
const SHORTER_MAX: TimeDelta = TimeDelta::from_millis(5);

#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: Time,
    arrived: RemoteTime,
    size: DataSize,
}

/// Sums over the intervals of a cluster.
#[derive(Clone, Copy, Debug, Default)]
struct Cluster {
    intervals: u32,
    measurable: u32,
    sent: TimeDelta,
    arrived: TimeDelta,
    size: DataSize,
}

impl Cluster {
    /// Returns whether an interval of the sender belongs to the cluster.
    fn contains(&self, sent: TimeDelta) -> bool {
        self.intervals == 0 || (sent - self.sent / i64::from(self.intervals)).abs() < SPREAD
    }

    fn add(&mut self, sent: TimeDelta, arrived: TimeDelta, size: DataSize) {
        self.intervals += 1;
        self.sent += sent;
        self.arrived += arrived;
        self.size += size;
    }

    fn is_complete(&self) -> bool {
        self.intervals >= INTERVALS_MIN && self.sent.is_positive() && self.arrived.is_positive()
    }

    /// Returns the rate of the cluster, if it is valid.
    fn rate(&self) -> Option<Rate> {
        let longer = (self.arrived - self.sent) / i64::from(self.intervals);
        let valid = self.measurable > self.intervals / 2 && longer <= LONGER_MAX && -longer <= SHORTER_MAX;
        valid.then(|| Rate::from_size_and_time(self.size, self.sent.max(self.arrived)))
    }
}

/// The search for clusters.
#[derive(Clone, Debug, Default)]
pub struct ProbeClusters {
    first: Option<RemoteTime>,
    packets: Vec<Packet>,
}

impl ProbeClusters {
    /// Handles a packet with its send time. Returns the rate of the best cluster if it exceeds the estimate; `None` for the
    /// estimate means that there is none.
    #[inline]
    pub fn handle_arrival(
        &mut self,
        now: RemoteTime,
        sent: Time,
        size: DataSize,
        estimate: Option<Rate>,
    ) -> Option<Rate> {
        let first = *self.first.get_or_insert(now);
        if now - first >= PROBING || size <= SIZE_MIN { None } else { self.search(now, sent, size, estimate) }
    }

    #[inline(never)]
    fn search(&mut self, now: RemoteTime, sent: Time, size: DataSize, estimate: Option<Rate>) -> Option<Rate> {
        if self.packets.len() == PACKETS_MAX {
            self.packets.clear();
        }
        self.packets.push(Packet { sent, arrived: now, size });
        let clusters = self.clusters();
        if clusters.is_empty() {
            if self.packets.len() >= PACKETS_WITHOUT_CLUSTER {
                self.packets.remove(0);
            }
            return None;
        }
        // A cluster that is not valid ends the search: the link is slower than this one, and so than later ones.
        let best = clusters.iter().map_while(Cluster::rate).max();
        let better = best.filter(|rate| estimate.is_none_or(|estimate| *rate > estimate));
        if better.is_none() && clusters.len() >= CLUSTERS_MAX {
            self.packets.clear();
        }
        better
    }

    /// Returns the complete clusters among the packets.
    fn clusters(&self) -> Vec<Cluster> {
        let (mut complete, mut current) = (Vec::new(), Cluster::default());
        for pair in self.packets.windows(2) {
            let (sent, arrived) = (pair[1].sent - pair[0].sent, pair[1].arrived - pair[0].arrived);
            // libwebrtc counts the interval before it knows to which cluster it belongs.
            current.measurable += u32::from(sent >= INTERVAL_MIN && arrived >= INTERVAL_MIN);
            if !current.contains(sent) {
                complete.extend(Some(current).filter(Cluster::is_complete));
                current = Cluster::default();
            }
            current.add(sent, arrived, pair[1].size);
        }
        complete.extend(Some(current).filter(Cluster::is_complete));
        complete
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends packets of 1000 bytes at these times, ms, over a link with this interval per packet, µs. Returns the results in
    /// kbit/s.
    fn probe(sent: &[i64], link: i64) -> Vec<u64> {
        let (mut probes, mut free, mut estimate) = (ProbeClusters::default(), 0, None);
        let mut results = Vec::new();
        for ms in sent {
            free = (ms * 1000).max(free) + link;
            let (at, size) = (RemoteTime::from_nanos(free * 1000), DataSize::from_bytes(1000));
            if let Some(rate) = probes.handle_arrival(at, Time::from_millis(*ms), size, estimate) {
                estimate = Some(rate);
                results.push(rate.as_bps() / 1000);
            }
        }
        results
    }

    /// Six packets at 800 kbit/s and five at 1.6 Mbit/s: intervals of 10 and 5 ms.
    const SENT: [i64; 11] = [0, 10, 20, 30, 40, 50, 55, 60, 65, 70, 75];

    /// The first cluster has four intervals with the fifth packet. The second one raises the estimate with its fourth interval.
    #[test]
    fn rate_of_the_best_cluster_is_the_estimate() {
        assert_eq!(probe(&SENT, 1000), [800, 1600]);
    }

    /// A link of 1 Mbit/s needs 8 ms for a packet: it carries the first cluster. The second one arrives with intervals of 8
    /// ms, 3 ms longer than it was sent, and is not valid.
    #[test]
    fn cluster_above_the_capacity_is_not_valid() {
        assert_eq!(probe(&SENT, 8000), [800]);
        assert_eq!(probe(&SENT, 16_000), [] as [u64; 0], "500 kbit/s: 6 ms longer");
        assert_eq!(probe(&SENT, 6000), [800, 1333], "1333 kbit/s: 1 ms longer, the rate at the receiver counts");
    }

    #[test]
    fn packets_after_two_seconds_are_no_probe() {
        let late = |ms: i64| SENT.map(|at| if at == 0 { 0 } else { at + ms });
        assert_eq!(probe(&late(1900), 1000).len(), 2);
        assert_eq!(probe(&late(2000), 1000), [] as [u64; 0]);
    }

    #[test]
    fn memory_is_bounded() {
        let mut probes = ProbeClusters::default();
        for ms in 0..1999 {
            let sent = Time::from_millis(ms);
            probes.handle_arrival(RemoteTime::from_millis(ms), sent, DataSize::from_bytes(1000), Some(Rate::MAX));
            assert!(probes.packets.len() <= PACKETS_MAX);
        }
    }
}
