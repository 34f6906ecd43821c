// SPDX-License-Identifier: MIT OR Apache-2.0
//! The rate that a probe cluster has shown (libwebrtc's `ProbeBitrateEstimator`).
//!
//! ```text
//! send rate    = (bytes - bytes of the last sent packet) / (last - first send time)
//! receive rate = (bytes - bytes of the first received packet) / (last - first arrival time)
//! result       = min(send, receive);  0.95 receive if receive < 0.9 send;  none if receive > 2 send
//! ```

use crate::{PacketReport, ProbeCluster, ProbeId};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use paceline_units::{DataSize, Rate, RemoteTime, Time, TimeDelta};

/// The share of a cluster's packets and bytes that must have arrived (`kMinReceivedProbesRatio`,
/// `kMinReceivedBytesRatio`).
const RECEIVED_MIN: f64 = 0.8;
/// A receive rate above this multiple of the send rate is implausible (`kMaxValidRatio`).
const RATIO_MAX: f64 = 2.0;
/// Below this share of the send rate the path was saturated (`kMinRatioForUnsaturatedLink`).
const UNSATURATED_MIN: f64 = 0.9;
/// The share of a saturated path's rate that is used (`kTargetUtilizationFraction`).
const UTILIZATION: f64 = 0.95;
/// The longest time between first and last packet (`kMaxProbeInterval`).
const INTERVAL_MAX: TimeDelta = TimeDelta::from_secs(1);
/// The time for which the packets of a cluster are remembered, after the last one (`kMaxClusterHistory`).
const HISTORY: TimeDelta = TimeDelta::from_secs(1);
/// The number of clusters that are remembered.
const CLUSTERS_MAX: usize = 8;

/// The estimator. It remembers the clusters that were sent.
#[derive(Clone, Debug, Default)]
pub struct ProbeEstimator {
    clusters: VecDeque<Progress>,
}

/// What is known about a cluster.
#[derive(Clone, Debug)]
struct Progress {
    cluster: ProbeCluster,
    packets: u32,
    bytes: DataSize,
    /// First and last packet by send time, and by arrival time, each with its size.
    sent: Span<Time>,
    received: Span<RemoteTime>,
}

/// The earliest and the latest packet, with their sizes; of several packets of the same time, the first one.
#[derive(Clone, Copy, Debug)]
struct Span<T> {
    first: Option<(T, DataSize)>,
    last: Option<(T, DataSize)>,
}

impl<T: Copy + Ord> Span<T> {
    const EMPTY: Self = Self { first: None, last: None };

    fn add(&mut self, at: T, size: DataSize) {
        if self.first.is_none_or(|(first, _)| at < first) {
            self.first = Some((at, size));
        }
        if self.last.is_none_or(|(last, _)| at > last) {
            self.last = Some((at, size));
        }
    }
}

impl ProbeEstimator {
    /// Records that a cluster is sent.
    pub fn handle_cluster(&mut self, cluster: ProbeCluster) {
        if self.clusters.len() == CLUSTERS_MAX {
            self.clusters.pop_front();
        }
        self.clusters.push_back(Progress::new(cluster));
    }

    /// Handles the reports of a message. Returns the clusters of which enough has arrived, each with its rate; the one with the last
    /// report is the last one.
    pub fn handle_reports(&mut self, reports: &[PacketReport]) -> Vec<(ProbeId, Rate)> {
        let mut results = Vec::new();
        // Most flows send no clusters.
        if self.clusters.is_empty() {
            return results;
        }
        for report in reports {
            // Few packets belong to a cluster.
            let Some(id) = report.probe else { continue };
            if let Some(rate) = self.handle_report(report) {
                results.retain(|(other, _)| *other != id);
                results.push((id, rate));
            }
        }
        results
    }

    /// Handles the report on a packet. Returns the rate of its cluster, once enough of the cluster has arrived.
    pub fn handle_report(&mut self, report: &PacketReport) -> Option<Rate> {
        let (id, arrival) = (report.probe?, report.arrival?);
        for progress in &mut self.clusters {
            if progress.received.last.is_some_and(|(last, _)| last + HISTORY < arrival) {
                *progress = Progress::new(progress.cluster);
            }
        }
        let progress = self.clusters.iter_mut().find(|progress| progress.cluster.id == id)?;
        progress.packets += 1;
        progress.bytes += report.size;
        progress.sent.add(report.sent, report.size);
        progress.received.add(arrival, report.size);
        progress.rate()
    }
}

impl Progress {
    fn new(cluster: ProbeCluster) -> Self {
        Self { cluster, packets: 0, bytes: DataSize::ZERO, sent: Span::EMPTY, received: Span::EMPTY }
    }

    fn rate(&self) -> Option<Rate> {
        let ProbeCluster { rate, duration, packets, .. } = self.cluster;
        // Whole packets and bytes, as there.
        let packets_min = (f64::from(packets) * RECEIVED_MIN) as u32;
        let bytes_min = ((rate * duration).as_bytes() as f64 * RECEIVED_MIN) as u64;
        if self.packets < packets_min || self.bytes.as_bytes() < bytes_min {
            return None;
        }
        let ((first_sent, _), (last_sent, last_size)) = self.sent.first.zip(self.sent.last)?;
        let ((first_received, first_size), (last_received, _)) = self.received.first.zip(self.received.last)?;
        let (sending, receiving) = (last_sent - first_sent, last_received - first_received);
        if [sending, receiving].iter().any(|interval| !interval.is_positive() || *interval > INTERVAL_MAX) {
            return None;
        }
        let sent = Rate::from_size_and_time(self.bytes - last_size, sending);
        let received = Rate::from_size_and_time(self.bytes - first_size, receiving);
        probed_rate(sent, received)
    }
}

/// Returns the rate that a cluster has shown, from its send and receive rates; `None` if they are implausible.
fn probed_rate(sent: Rate, received: Rate) -> Option<Rate> {
    if received.as_bps_f64() > RATIO_MAX * sent.as_bps_f64() {
        return None;
    }
    let saturated = received.as_bps_f64() < UNSATURATED_MIN * sent.as_bps_f64();
    Some(if saturated { received.scale(UTILIZATION) } else { sent.min(received) })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reports on packets of 1000 bytes, sent 4 ms apart (2 Mbit/s) and received this far apart; returns each result.
    fn results(lost: &[i64], apart_ms: i64) -> Vec<Option<u64>> {
        let mut estimator = ProbeEstimator::default();
        let (rate, duration) = (Rate::from_kbps(2000), TimeDelta::from_millis(16));
        estimator.handle_cluster(ProbeCluster { id: 3, rate, duration, packets: 5 });
        let reports = (0..6).map(|n| {
            let arrival = (!lost.contains(&n)).then(|| RemoteTime::from_millis(500 + apart_ms * n));
            let report = PacketReport::new(n as u64, Time::from_millis(4 * n), DataSize::from_bytes(1000), arrival);
            PacketReport { probe: Some(3), ..report }
        });
        reports.map(|report| estimator.handle_report(&report).map(Rate::as_bps)).collect()
    }

    /// By hand: 5 packets need 4 of them, and 4000 bytes need 3200. Between 4 packets are 3 intervals of 4 ms: 2 Mbit/s.
    /// Received 8 ms apart: 1 Mbit/s is below 0.9 times that, so 0.95 Mbit/s.
    #[test]
    fn four_of_five_packets_suffice() {
        let two = Some(2_000_000);
        assert_eq!(results(&[], 4), [None, None, None, two, two, two]);
        assert_eq!(results(&[], 8)[3..], [Some(950_000); 3]);
        assert_eq!(results(&[], 1)[3..], [None; 3], "8 Mbit/s is implausible");
        assert_eq!(results(&[0, 1, 2], 4), [None; 6], "three of six");
        assert_eq!(results(&[], 500)[3], None, "more than a second");
    }

    #[test]
    fn packets_of_no_cluster_and_of_unknown_clusters_give_no_rate() {
        let mut estimator = ProbeEstimator::default();
        let report = PacketReport::new(1, Time::ZERO, DataSize::from_bytes(1000), Some(RemoteTime::ZERO));
        assert_eq!(estimator.handle_report(&report), None);
        assert_eq!(estimator.handle_report(&PacketReport { probe: Some(9), ..report }), None);
        let cluster = |id| ProbeCluster { id, rate: Rate::from_kbps(1), duration: TimeDelta::ZERO, packets: 1 };
        (0..20).for_each(|id| estimator.handle_cluster(cluster(id)));
        assert_eq!(estimator.clusters.len(), CLUSTERS_MAX, "the memory is bounded");
    }
}
