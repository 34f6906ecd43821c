// SPDX-License-Identifier: MIT OR Apache-2.0
//! The start-up probe of libwebrtc until 2016: two short clusters of packets at the start of a call, which the receiver
//! measures ([`ProbeClusters`](super::ProbeClusters)).
//!
//! ```text
//! start:  6 packets at 3 times the start rate, then 5 packets at 6 times the start rate
//! ```

use crate::{ProbeCluster, Setup};
use alloc::collections::VecDeque;
use paceline_units::{Rate, TimeDelta};

/// Rate over the start rate, and number of packets, of each cluster (`BitrateProber` of 2014 to 2016,
/// `kProbeBitrateMultipliers`, `kPacketsPerProbe`; the first one has a packet more, so that both have five intervals).
const CLUSTERS: [(f64, u16); 2] = [(3.0, 6), (6.0, 5)];

/// The clusters that are still to be sent.
#[derive(Clone, Debug)]
pub struct StartProbes {
    due: VecDeque<ProbeCluster>,
}

impl StartProbes {
    /// Creates the clusters of a flow. None exceeds the highest rate of its sources.
    pub fn new(setup: &Setup) -> Self {
        let cluster = |(id, (factor, packets)): (usize, (f64, u16))| ProbeCluster {
            id: id as u16,
            rate: setup.start.scale(factor).min(setup.max).max(Rate::from_bps(1)),
            // The number of packets alone ends a cluster.
            duration: TimeDelta::ZERO,
            packets,
        };
        Self { due: CLUSTERS.into_iter().enumerate().map(cluster).collect() }
    }

    /// Returns the next cluster to send.
    pub fn poll(&mut self) -> Option<ProbeCluster> {
        self.due.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SETUP;
    use alloc::vec::Vec;

    #[test]
    fn two_clusters_start_a_call() {
        let clusters = |setup: &Setup| {
            let mut probes = StartProbes::new(setup);
            core::iter::from_fn(move || probes.poll())
                .map(|cluster| (cluster.rate.as_bps() / 1000, cluster.packets))
                .collect::<Vec<_>>()
        };
        assert_eq!(clusters(&SETUP), [(900, 6), (1800, 5)]);
        let limited = Setup { max: Rate::from_kbps(1000), ..SETUP };
        assert_eq!(clusters(&limited), [(900, 6), (1000, 5)]);
    }
}
