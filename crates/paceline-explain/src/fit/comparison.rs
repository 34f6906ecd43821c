// SPDX-License-Identifier: MIT OR Apache-2.0
//! Measures of a run that both worlds have, to compare a session with a run on its fitted path.

use super::observation::{Observation, Packet};
use super::statistics::quantile;
use serde::Serialize;

/// Measures of a run, from what its ends know.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measures {
    /// Rate of arrived packets with all headers, over the time from the first to the last arrival, bit/s.
    pub received_bps: f64,
    /// Share of packets lost.
    pub loss_ratio: f64,
    /// Delay above the smallest one: median, ms.
    pub variation_p50_ms: f64,
    /// Its 95th percentile, ms.
    pub variation_p95_ms: f64,
    /// Median round-trip time of receiver reports, ms; `None` without reports.
    pub rtt_p50_ms: Option<f64>,
}

impl Measures {
    /// Measures a run.
    pub fn of(seen: &Observation) -> Self {
        let arrived = || seen.forward.iter().filter_map(|packet| Some((packet, packet.arrived?)));
        let (first, last) = arrived().fold((f64::INFINITY, 0.0f64), |span, (_, at)| (span.0.min(at), span.1.max(at)));
        let bits: f64 = arrived().map(|(packet, _)| packet.bits).sum();
        let mut delays: Vec<f64> = seen.forward.iter().filter_map(Packet::delay).collect();
        let least = delays.iter().copied().fold(f64::INFINITY, f64::min);
        let lost = seen.forward.iter().filter(|packet| packet.arrived.is_none()).count();
        let mut round_trips: Vec<f64> = seen.round_trips.iter().map(|(_, rtt)| *rtt).collect();
        Self {
            received_bps: bits / (last - first).max(1e-9),
            loss_ratio: lost as f64 / seen.forward.len().max(1) as f64,
            variation_p50_ms: (quantile(&mut delays, 0.5) - least) * 1e3,
            variation_p95_ms: (quantile(&mut delays, 0.95) - least) * 1e3,
            rtt_p50_ms: (!round_trips.is_empty()).then(|| quantile(&mut round_trips, 0.5) * 1e3),
        }
    }
}
