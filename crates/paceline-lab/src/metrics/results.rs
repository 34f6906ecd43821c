// SPDX-License-Identifier: MIT OR Apache-2.0
//! Computes the results of a window from what was accumulated in it.

use super::accumulators::{FlowTotals, Freezes, HopTotals, Needs, ScoreSums, StreamTotals, TargetSum};
use super::documents::{FlowResult, LinkResult, StreamResult, WindowResult};
use super::run_data::RunData;
use super::{convergence, dips, link_share, oscillation, quality, rate, score};
use paceline::FecScheme;
use paceline_netsim::plan::{HopPlan, StreamPlan};
use paceline_scenario::{LossMeasure, Window};

pub(super) struct FlowInWindow<'a> {
    pub totals: &'a FlowTotals,
    pub target: TargetSum,
    /// Of each stream.
    pub freezes: &'a [Freezes],
    pub scores: &'a [ScoreSums],
    pub needs: &'a Needs,
}

/// Returns the result of one flow in a window. `all_received`: the bytes that all flows received in it.
pub(super) fn flow_result(
    run: &RunData<'_>,
    flow: &FlowInWindow<'_>,
    index: usize,
    window: &Window,
    all_received: u64,
    result: &WindowResult,
) -> FlowResult {
    let FlowInWindow { totals, target, freezes, scores, needs } = flow;
    let plan = &run.scenario.plan.flows[index];
    let (from, to) = (plan.start.max(window.from), plan.stop.min(window.to));
    let seconds = (to - from).as_secs_f64().max(0.0);
    let per_second = |bytes: u64| if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 };
    let denominator = match run.scenario.measure.loss {
        LossMeasure::Sent => totals.sent,
        LossMeasure::Received => totals.received,
    };
    let target_bps = target.time.is_positive().then(|| target.bits / target.time.as_secs_f64());
    let stream_plans = plan.media().map_or(&[][..], |m| &m.streams);
    let streams =
        totals.streams.iter().zip(*freezes).zip(*scores).zip(stream_plans).map(|(((s, freezes), score), p)| {
            let freeze_s = freezes.total.as_secs_f64();
            let dropped = s.dropped + missing(s, p);
            let late_or_lost = (s.frames > 0).then(|| (s.late + dropped) as f64 / (s.frames + dropped) as f64);
            let frame_delay_ms = s.delay.distribution();
            let facts = quality::Facts {
                seconds,
                bytes: s.bytes,
                frames: s.frames,
                late_or_lost,
                mean_delay_ms: frame_delay_ms.map(|delay| delay.mean),
            };
            StreamResult {
                id: p.id.clone(),
                kind: p.kind.name(),
                throughput_bps: per_second(s.bytes),
                target_bps_mean: target_bps,
                frame_delay_ms,
                freezes: freezes.count,
                freeze_s,
                freeze_ratio: (seconds > 0.0).then(|| (freeze_s / seconds).min(1.0)),
                frames: s.frames,
                frames_dropped: dropped,
                late_or_lost_ratio: late_or_lost,
                discard_ratio: (s.frames > 0).then(|| s.discarded as f64 / s.frames as f64),
                quality_mos: quality::of_stream(p, freezes, &facts),
                score: score.score(),
            }
        });
    let streams: Vec<StreamResult> = streams.collect();
    // What a connection that carries media delivers is read as frames.
    let useful_bytes = match plan.media() {
        Some(_) => totals.streams.iter().map(|s| s.bytes).sum(),
        None => totals.read,
    };
    let rtx = plan.media().map(|_| totals.rtx);
    let fec = plan.media().filter(|m| m.protection.fec != FecScheme::None).map(|_| totals.fec);
    let of_sent = |bytes: u64| (totals.sent > 0).then(|| bytes as f64 / totals.sent as f64);
    let rates = run.rates[index];
    let (rise_time_s, convergence_time_s) =
        if needs.shares { convergence::times(run, index, from, to) } else { (None, None) };
    FlowResult {
        id: plan.id.clone(),
        kind: plan.kind.name(),
        controller: Some(plan.control().to_owned()),
        start_s: plan.start.as_secs_f64(),
        stop_s: plan.stop.as_secs_f64(),
        throughput_bps: per_second(totals.received),
        goodput_bps: per_second(useful_bytes),
        target_bps,
        received_bytes: totals.received,
        ecn_packets: totals.ecn_packets,
        marked_packets: totals.marked_packets,
        useful_bytes,
        good_bytes: totals.read + totals.media,
        fec_bytes: fec.map(|fec| fec.received),
        rtx_bytes: rtx.map(|rtx| rtx.received),
        fec_share: fec.and_then(|fec| of_sent(fec.sent)),
        rtx_share: rtx.and_then(|rtx| of_sent(rtx.sent)),
        fec_over_target_max: fec.and_then(|_| rates.fec_over_target(from, to)).map(|(_, most)| most),
        target_bits: target.bits,
        capacity_bytes: run.slowest(index, from, to).map(|(_, volume)| volume.as_bytes()),
        crosses_link: plan.route.contains(&run.plan.bottleneck),
        link_share: link_share::share(run, index, totals.received, from, to),
        share: (all_received > 0).then(|| totals.received as f64 / all_received as f64),
        rate_cv: rate::variation(run, index, from, to),
        rate_cv_200ms: (
            rate::variation_of(rates.sent_intervals(from, to)),
            rate::variation_of(rates.received_intervals(from, to)),
        ),
        dips: if needs.shares { dips::of_flow(run, index, from, to) } else { None },
        oscillations: oscillation::of_flow(run, index, from, to),
        rise_time_s,
        convergence_time_s,
        sent_over_target: rates.sent_over_target(from, to),
        loss_ratio: if denominator > 0 { totals.lost as f64 / denominator as f64 } else { 0.0 },
        lost_bytes: totals.lost,
        sent_bytes: totals.sent,
        feedback_bytes: totals.feedback,
        owd_ms: totals.owd.distribution(),
        rtt_ms: totals.rtt.distribution(),
        rtt_sampled_queue_ms: totals.rtt_queue.distribution(),
        remb_count: result.own("remb_count", index).unwrap_or(0.0) as u64,
        overuse_count: result.own("overuse_count", index).map(|n| n as u64),
        reported_loss: result.own("reported_loss", index),
        score: plan.media().filter(|m| !m.is_cross_traffic).and_then(|m| score::of_flow(&m.streams, &streams)),
        streams,
    }
}

/// Returns the frames of a source with a constant interval that are missing between the first and the last rendered frame.
/// Frames of such a source that overtake each other are not missing.
fn missing(stream: &StreamTotals, plan: &StreamPlan) -> u64 {
    let Some(((first, last), interval)) = stream.captured.zip(plan.source.config.frame_interval()) else { return 0 };
    // Half an interval: capture times are rounded to the RTP clock.
    let captured = (last - first + interval / 2).as_nanos() / interval.as_nanos() + 1;
    (captured as u64).saturating_sub(stream.frames + stream.dropped)
}

pub(super) fn link_result(totals: &HopTotals, plan: &HopPlan, window: &Window) -> LinkResult {
    let span = (window.to - window.from).as_secs_f64();
    let volume = plan.capacity.as_ref().map(|c| c.volume(window.from, window.to).as_bytes() as f64);
    let came = (totals.crossed + totals.dropped) as f64;
    LinkResult {
        id: plan.id.clone(),
        utilization: volume.filter(|v| *v > 0.0).map(|v| (totals.crossed + totals.lost_on_wire) as f64 / v),
        loss_ratio: if came > 0.0 { totals.dropped as f64 / came } else { 0.0 },
        dropped_packets: totals.dropped_packets,
        marked_packets: totals.marked_packets,
        queue_ms: totals.waited.distribution(),
        capacity_bps: volume.map(|v| v * 8.0 / span),
    }
}
