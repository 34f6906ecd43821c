// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a session at either end, as `--json` prints them.

use crate::hosts::diagnosis::{Diagnosis, Evidence, diagnose};
use crate::hosts::message::Totals;
use crate::hosts::summary::Summary;
use crate::hosts::tcp_receiver::TcpTotals;
use crate::hosts::tcp_sender::TcpSent;
use crate::hosts::terms::Terms;
use crate::testbed::lateness::Lateness;
use paceline_netsim::records::ratio_interval;
use paceline_units::TimeDelta;
use serde::Serialize;
use std::net::SocketAddr;

/// The reason why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum End {
    /// Its duration was over.
    Complete,
    /// This end was interrupted.
    Interrupted,
    PeerLeft,
    /// The peer was silent for ten seconds.
    Silence,
}

/// The result of a session at its sender.
#[derive(Serialize)]
pub struct SendReport {
    pub end: End,
    /// Time from its start to the last media, s.
    pub lasted_s: f64,
    /// All flows together.
    #[serde(flatten)]
    pub measured: Measured,
    /// Received rate relative to the mean target.
    pub target_use: f64,
    /// Rendered frames, and those that were given up, if the receiver confirmed its totals.
    pub frames: Option<u64>,
    pub frames_dropped: Option<u64>,
    /// Whether the receiver confirmed its totals at the end.
    pub confirmed: bool,
    /// Reported packets that were never sent, or that were reported before.
    pub unknown_arrivals: u64,
    /// Datagrams that are not of the session, and malformed ones.
    pub stranger_datagrams: u64,
    pub flows: Vec<FlowReport>,
    /// The flows of the other direction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<BackReport>,
    /// The TCP flow beside the media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpReport>,
    pub verdict: Diagnosis,
    /// The reason for the verdict, in one sentence.
    pub why: String,
    pub evidence: Evidence,
    /// Whether the frames that the receiver rendered are known up to the end.
    #[serde(skip)]
    pub knows_frames: bool,
    /// Lateness of timers.
    #[serde(skip)]
    pub lateness: Lateness,
}

impl SendReport {
    /// Sets the largest share of time for which a video stream was frozen, `None` if it is not known, and judges again.
    pub fn set_frozen(&mut self, ratio: Option<f64>) {
        self.evidence.frozen_ratio = ratio;
        (self.verdict, self.why) = diagnose(&self.evidence);
    }
}

/// What the sender of media measured of them. Rates are over the time in which they were active, and arrivals those of which it knows.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    pub sent_packets: u64,
    pub sent_bps: f64,
    pub received_packets: u64,
    pub received_bps: f64,
    /// Packets that arrived marked as congestion experienced.
    pub marked_packets: u64,
    /// Mean target.
    pub target_bps: f64,
    /// Round-trip times of receiver reports.
    pub rtt_ms: Quantiles,
    /// One-way delay above the smallest one; the clocks of the hosts are not synchronised.
    pub delay_variation_ms: Quantiles,
    pub loss_ratio: f64,
    /// Its 95 % interval, if losses are independent.
    pub loss_interval: (f64, f64),
}

impl Measured {
    pub(crate) fn new(of: &Summary, lasted: TimeDelta) -> Self {
        let (sent_bps, received_bps) = (rate(of.sent_bytes, lasted), rate(of.received_bytes, lasted));
        let lost = of.known_packets.saturating_sub(of.received_packets);
        Self {
            sent_packets: of.sent_packets,
            sent_bps,
            received_packets: of.received_packets,
            received_bps,
            marked_packets: of.marked_packets,
            target_bps: of.target_bps as f64,
            rtt_ms: of.rtt_ms.into(),
            delay_variation_ms: of.delay_variation_ms.into(),
            loss_ratio: lost as f64 / of.known_packets.max(1) as f64,
            loss_interval: ratio_interval(lost, of.known_packets),
        }
    }
}

/// Returns the rate of so many bytes, bit/s.
pub(crate) fn rate(bytes: u64, lasted: TimeDelta) -> f64 {
    bytes as f64 * 8.0 / lasted.as_secs_f64().max(1e-9)
}

/// Quantiles of a time, ms.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Quantiles {
    pub p50: Option<f64>,
    pub p95: Option<f64>,
    pub p99: Option<f64>,
}

impl From<[Option<f64>; 3]> for Quantiles {
    fn from([p50, p95, p99]: [Option<f64>; 3]) -> Self {
        Self { p50, p95, p99 }
    }
}

#[derive(Serialize)]
pub struct FlowReport {
    pub id: String,
    #[serde(flatten)]
    pub measured: Measured,
}

/// The flows from the receiver to the sender.
#[derive(Serialize)]
pub struct BackReport {
    /// What arrived of all flows.
    #[serde(flatten)]
    pub received: Received,
    /// What arrived of each flow.
    pub flows: Vec<Received>,
    /// What the receiver measured of them; `None` if its goodbye did not arrive.
    pub measured: Option<Measured>,
}

/// What arrived. Rates are over the whole session, also of a flow that starts later.
#[derive(Serialize)]
pub struct Received {
    pub received_packets: u64,
    pub received_bps: f64,
    pub frames: u64,
    pub frames_dropped: u64,
}

impl Received {
    pub(crate) fn new(totals: &Totals, lasted: TimeDelta) -> Self {
        let Totals { packets, bytes, frames, frames_dropped, .. } = *totals;
        Self { received_packets: packets, received_bps: rate(bytes, lasted), frames, frames_dropped }
    }
}

/// The TCP flow.
#[derive(Serialize)]
pub struct TcpReport {
    #[serde(flatten)]
    pub sent: TcpSent,
    /// Bytes that the receiver counted, at most those that were sent; `None` if it had no connection, or if its goodbye did not arrive.
    pub received_bytes: Option<u64>,
    /// Their rate over the duration of the media, bit/s.
    pub received_bps: Option<f64>,
}

/// The result of a session at its receiver: what arrived.
#[derive(Clone, Debug, Serialize)]
pub struct ReceiveReport {
    pub peer: SocketAddr,
    pub terms: Terms,
    pub end: End,
    #[serde(flatten)]
    pub totals: Totals,
    pub received_bps: f64,
    /// Time from the first to the last packet, s.
    pub lasted_s: f64,
    pub flows: Vec<Totals>,
    /// What arrived over TCP; `None` if there was no TCP flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpTotals>,
    /// What was measured of the flows that this end sent; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub back: Option<Summary>,
    /// Time for which media were sent: from the start of the session to its end, at most the agreed duration.
    #[serde(skip)]
    pub media: TimeDelta,
    /// Whether the frames of the flows that this end sent are known up to the end.
    #[serde(skip)]
    pub knows_frames: bool,
}
