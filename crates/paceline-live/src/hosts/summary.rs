// SPDX-License-Identifier: MIT OR Apache-2.0
//! What the goodbye of a receiver carries beside its totals.

use crate::hosts::message::{SUMMARY_MAX, Totals};
use crate::hosts::statistics::Sample;
use serde::{Deserialize, Serialize};

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Closing {
    /// What it measured of the flows that it sent; `None` if there are none.
    pub back: Option<Summary>,
    /// Bytes that arrived over TCP; `None` if there was no TCP flow.
    pub tcp_bytes: Option<u64>,
}

/// What a receiver measured of the flows that it sent, of all flows together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Packets that were sent.
    pub sent_packets: u64,
    /// Their bytes, IP and UDP headers included.
    pub sent_bytes: u64,
    /// Packets up to the latest that arrived.
    pub known_packets: u64,
    /// Packets of which the sender of these flows has heard that they arrived.
    pub received_packets: u64,
    pub received_bytes: u64,
    /// Those that were marked as congestion experienced.
    pub marked_packets: u64,
    /// Sum of the mean targets, bit/s.
    pub target_bps: u64,
    /// Median, 95th and 99th percentile of the delay above the smallest one, ms.
    pub delay_variation_ms: [Option<f64>; 3],
    /// Median, 95th and 99th percentile of round-trip times of receiver reports, ms.
    pub rtt_ms: [Option<f64>; 3],
}

impl Summary {
    /// Returns the summary of what was sent and received, of which `known_packets` have a known fate, with delays and round-trip times.
    pub(crate) fn new(
        sent: &Totals,
        received: &Totals,
        known_packets: u64,
        target_bps: u64,
        [delays, round_trips]: [&Sample; 2],
    ) -> Self {
        Self {
            sent_packets: sent.packets,
            sent_bytes: sent.bytes,
            known_packets,
            received_packets: received.packets,
            received_bytes: received.bytes,
            marked_packets: received.marked,
            target_bps,
            delay_variation_ms: delays.percentiles_ms(),
            rtt_ms: round_trips.percentiles_ms(),
        }
    }
}

impl Closing {
    /// Returns the bytes for a goodbye.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers are JSON")
    }

    /// Reads the bytes of a goodbye; `None` if they are none.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= SUMMARY_MAX).then(|| serde_json::from_slice(bytes).ok()).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_survive_writing_and_reading() {
        let largest = Closing {
            back: Some(Summary {
                sent_packets: u64::MAX,
                sent_bytes: u64::MAX,
                known_packets: u64::MAX,
                received_packets: u64::MAX,
                received_bytes: u64::MAX,
                marked_packets: u64::MAX,
                target_bps: u64::MAX,
                delay_variation_ms: [Some(0.1 + 0.2), None, Some(f64::MAX)],
                rtt_ms: [Some(1.0 / 3.0); 3],
            }),
            tcp_bytes: Some(u64::MAX),
        };
        assert!(largest.to_bytes().len() <= SUMMARY_MAX);
        assert_eq!(Closing::from_bytes(&largest.to_bytes()), Some(largest));
        assert_eq!((Closing::from_bytes(b""), Closing::from_bytes(b"0")), (None, None));
    }
}
