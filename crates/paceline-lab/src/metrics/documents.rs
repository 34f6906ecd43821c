// SPDX-License-Identifier: MIT OR Apache-2.0
//! The results of a run as documents: what `run --json` prints, and what metrics take their values from.

use super::Distribution;
use super::accumulators::Score;
use super::dips::Dips;
use super::oscillation::Oscillations;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// A name that the program knows.
type Name = &'static str;

fn kind<'de, D: Deserializer<'de>>(input: D) -> Result<Name, D::Error> {
    let text = String::deserialize(input)?;
    let known = ["media", "tcp", "video", "audio"].into_iter().find(|known| *known == text);
    known.ok_or_else(|| D::Error::custom("no kind of flow or stream"))
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WindowResult {
    pub window_s: (f64, f64),
    pub links: Vec<LinkResult>,
    /// The forward bottleneck again.
    pub link: LinkResult,
    pub flows: Vec<FlowResult>,
    /// Jain's index of the flows whose data crosses `link`.
    pub jain: Option<f64>,
    /// The same for the media flows among them.
    pub media_jain: Option<f64>,
    /// Jain's index of the flows that are active in each second.
    pub active_jain: Option<f64>,
    /// What TCP and cross traffic keep of their fair share.
    pub others_keep: Option<f64>,
    /// Delays of all media flows together; of all flows, where none is media.
    #[serde(skip)]
    pub pooled: Pooled,
    /// Values of metrics with an accumulator of their own: by metric id, of each flow.
    #[serde(skip)]
    pub(crate) own: BTreeMap<&'static str, Vec<Option<f64>>>,
}

/// Distributions over several flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Pooled {
    /// Round-trip time over its minimum, of each RTCP sample.
    pub rtcp: Option<Distribution>,
    /// One-way delay over propagation, of each packet. Propagation is taken when the packet is sent.
    pub one_way: Option<Distribution>,
    /// Round-trip time, of each RTCP sample.
    pub rtt: Option<Distribution>,
    /// One-way delay, of each packet.
    pub owd: Option<Distribution>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    pub id: String,
    /// Bits served, including those then lost on the wire, over the capacity; none for an unlimited hop.
    pub utilization: Option<f64>,
    /// Bytes dropped over bytes that arrived at the hop.
    pub loss_ratio: f64,
    pub dropped_packets: u64,
    /// Packets that it marked (congestion experienced) and that crossed it.
    pub marked_packets: u64,
    /// Waiting time of each packet that crossed, without its own serialisation time.
    pub queue_ms: Option<Distribution>,
    /// Mean capacity over the window, bit/s; none for an unlimited hop.
    pub capacity_bps: Option<f64>,
}

/// The results of a flow. It lives in a part of the window only if it starts later or stops earlier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowResult {
    pub id: String,
    /// `media` or `tcp`.
    #[serde(deserialize_with = "kind")]
    pub kind: Name,
    /// Its controller, or TCP's congestion control.
    pub controller: Option<String>,
    pub start_s: f64,
    pub stop_s: f64,
    /// Bytes that arrived, all headers included, while it lived; bit/s.
    pub throughput_bps: f64,
    /// Bytes of rendered frames, or bytes that TCP's application read, over the same time; bit/s.
    pub goodput_bps: f64,
    /// Mean target, bit/s.
    pub target_bps: Option<f64>,
    /// Bytes that arrived, all headers included.
    pub received_bytes: u64,
    /// Packets that arrived ECN-capable, marked ones included.
    pub ecn_packets: u64,
    /// Packets that arrived marked (congestion experienced).
    pub marked_packets: u64,
    /// Bytes of rendered frames, or bytes that TCP's application read.
    pub useful_bytes: u64,
    /// Bytes of media packets that arrived at their first transmission, headers included, or bytes that TCP's application
    /// read.
    pub good_bytes: u64,
    /// Bytes of forward error correction that arrived; none for a flow without it.
    pub fec_bytes: Option<u64>,
    /// Bytes of retransmissions that arrived; of a media flow only.
    pub rtx_bytes: Option<u64>,
    /// Bytes of forward error correction over bytes sent; none for a flow without it.
    pub fec_share: Option<f64>,
    /// Bytes of retransmissions over bytes sent; of a media flow only.
    pub rtx_share: Option<f64>,
    /// Largest mean over 5 s of forward error correction sent over the target; none for a flow without it, or where no
    /// whole 5 s has a target.
    pub fec_over_target_max: Option<f64>,
    /// Integral of the target over time, bit.
    pub target_bits: f64,
    /// Bytes that the slowest hop of its route could carry while it lived; none if no hop has a capacity.
    pub capacity_bytes: Option<u64>,
    /// Whether its data crosses `link`.
    pub crosses_link: bool,
    /// Throughput over what its sources and its route allow, second by second.
    pub link_share: Option<f64>,
    /// Throughput over the sum of all flows.
    pub share: Option<f64>,
    /// Coefficient of variation of what arrives in each second; none if nothing arrives.
    pub rate_cv: Option<f64>,
    /// Coefficients of variation over intervals of 200 ms of what is sent and of what arrives; none if nothing is or does.
    pub rate_cv_200ms: (Option<f64>, Option<f64>),
    /// Falls of the receive rate below its level that the path does not explain; none without seconds to judge.
    pub dips: Option<Dips>,
    /// Oscillations of the sending rate; none without seconds to judge.
    pub oscillations: Option<Oscillations>,
    /// Time until it first receives 90 % of its fair share, s; none: never.
    pub rise_time_s: Option<f64>,
    /// Time from which on it keeps its fair share, s; none: never.
    pub convergence_time_s: Option<f64>,
    /// Least and largest mean over 5 s of what was sent over the target; none if no whole 5 s has a target.
    pub sent_over_target: Option<(f64, f64)>,
    /// Bytes lost over bytes sent or received, as `measure.loss` says.
    pub loss_ratio: f64,
    /// Bytes that hops dropped.
    pub lost_bytes: u64,
    pub sent_bytes: u64,
    /// Bytes that its receiver sent: RTCP, or acknowledgements.
    pub feedback_bytes: u64,
    /// One-way delay of each packet.
    pub owd_ms: Option<Distribution>,
    /// Round-trip time, sampled by RTCP.
    pub rtt_ms: Option<Distribution>,
    /// Round-trip time over its minimum, sampled by RTCP.
    pub rtt_sampled_queue_ms: Option<Distribution>,
    pub remb_count: u64,
    /// How often the over-use detector of its controller entered over-use; none if it has no detector, or if the scenario
    /// does not use the metric.
    pub overuse_count: Option<u64>,
    /// Mean fraction lost in receiver reports; none if no report had one.
    pub reported_loss: Option<f64>,
    /// Its score, over its streams; none without one.
    #[serde(flatten)]
    pub score: Option<Score>,
    pub streams: Vec<StreamResult>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    pub id: String,
    /// `video` or `audio`.
    #[serde(deserialize_with = "kind")]
    pub kind: Name,
    /// Bytes of rendered frames; bit/s.
    pub throughput_bps: f64,
    /// Mean target of its flow, bit/s.
    pub target_bps_mean: Option<f64>,
    /// From capture until a frame can be rendered, before the jitter buffer. A video frame that was never rendered counts with the time until the next frame was.
    pub frame_delay_ms: Option<Distribution>,
    /// Gaps between frames that left the jitter buffer of more than max(3 x mean, mean + 150 ms), or of 1 s and more, including the one open at
    /// the end; one if nothing was rendered.
    pub freezes: u64,
    /// Their total, s.
    pub freeze_s: f64,
    /// Their total over the time that the stream lived; none if it did not live in the window.
    pub freeze_ratio: Option<f64>,
    pub frames: u64,
    /// Frames that were not rendered although later ones were. Of video: the receiver abandoned them, or the pacer refused
    /// them, which leaves a gap in the picture numbers. Of audio with a constant interval: they did not arrive.
    pub frames_dropped: u64,
    /// Frames that were not rendered, or later than 400 ms after their capture (ITU-T G.114), over all of them; none if
    /// nothing was rendered.
    pub late_or_lost_ratio: Option<f64>,
    /// Frames that were later than 100 ms after the fastest one so far, over those rendered; none if nothing was rendered.
    pub discard_ratio: Option<f64>,
    /// Estimated mean opinion score, 1 to 5; none if the stream did not live in the window, or the source has no resolution.
    pub quality_mos: Option<f64>,
    /// Its score; none if the stream was not active in the window, or the source has no resolution.
    #[serde(flatten)]
    pub score: Option<Score>,
}
