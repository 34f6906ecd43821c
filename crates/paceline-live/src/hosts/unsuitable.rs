// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flows of a plan have that those of a session cannot have.

use paceline_netsim::flow::PACKET_SIZE_DEFAULT;
use paceline_netsim::plan::{
    Direction, FlowChange, FlowKind, FlowPlan, MediaPlan, MediaUse, Plan, StreamPlan, Transport,
};
use paceline_units::{Dscp, Time, TimeDelta};

/// Part of a plan that a session cannot have.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Unsuitable {
    /// The flow; `None` for the plan itself.
    pub flow: Option<usize>,
    /// Keys in scenarios, of which the first that is given has the wrong value.
    pub keys: Vec<String>,
    /// What is wrong.
    pub message: String,
    /// How to mend it.
    pub help: String,
}

pub(super) fn unsuitable<T>(
    flow: usize,
    keys: &[&str],
    message: String,
    help: impl Into<String>,
) -> Result<T, Unsuitable> {
    let keys = keys.iter().map(|key| (*key).to_owned()).collect();
    Err(Unsuitable { flow: Some(flow), keys, message, help: help.into() })
}

/// Returns the keys of scenarios of which the first that is given breaks the rule about a key, and what mends it.
pub(super) fn keys_and_help(key: &str) -> (&'static [&'static str], &'static str) {
    match key {
        "direction" => (&["direction"], "this host must send: let a media flow go forward"),
        "count" => (&["count"], "lower `count`"),
        "stream" => (&["count", "stream"], "lower `count`, or let flows have fewer streams"),
        "duration" => (&["duration"], "--duration sets another one"),
        "encoder.max" => (&["encoder.max", "count"], "lower `max` of the encoder"),
        "start" => (&["start", "stop", "start_spread"], "change `start` or `stop` of a flow, or the duration"),
        "id" => (&["id"], "equal flows that follow each other in the file count once"),
        _ => (&["min_rate", "start_rate", "encoder.max", "config"], "change `min_rate`, `start_rate` or `encoder.max`"),
    }
}

/// Returns whether there is a TCP flow.
pub(super) fn check_tcp(plan: &Plan) -> Result<bool, Unsuitable> {
    let (mut has_tcp, end) = (false, Time::ZERO + plan.duration);
    for (index, flow) in plan.flows.iter().enumerate() {
        let FlowKind::Tcp(tcp) = &flow.kind else { continue };
        let lasts = (flow.start, flow.start_spread, flow.stop) == (Time::ZERO, TimeDelta::ZERO, end);
        let problems = [
            (has_tcp, &["count"][..], "is a second TCP flow", "two hosts have one"),
            (
                flow.direction == Direction::Reverse,
                &["direction"],
                "is a TCP flow that goes back",
                "the TCP flow between two hosts goes forward",
            ),
            (!tcp.is_bulk(), &["workload"], "is a TCP flow without bulk data", "leave `workload` out"),
            (
                !lasts,
                &["start", "start_spread", "stop"],
                "is a TCP flow that does not start and end with the session",
                "leave out `start`, `start_spread` and `stop`",
            ),
        ];
        if let Some((_, keys, what, help)) = problems.into_iter().find(|(is_wrong, ..)| *is_wrong) {
            return unsuitable(index, keys, format!("`{}` {what}", flow.id), help);
        }
        has_tcp = true;
    }
    Ok(has_tcp)
}

/// Checks that a flow has nothing that terms cannot say. What the sender of a flow alone must know counts only if that is the receiver of the
/// session.
pub(super) fn check_flow(index: usize, flow: &FlowPlan, media: &MediaPlan, back: bool) -> Result<(), Unsuitable> {
    // Terms have these, or the real path, hosts and clocks take their place.
    let MediaPlan {
        media_use,
        is_cross_traffic: _,
        controller: _,
        start_rate: _,
        min_rate: _,
        retransmit: _,
        protection: _,
        clock: _,
        coupling,
        streams,
        packet_size,
        rtcp_interval,
        feedback_interval,
        pacer_limit,
        transport,
        changes,
    } = media;
    let is_refused =
        |(_, change): &&(Time, FlowChange)| back || matches!(change, FlowChange::Bounds(_) | FlowChange::Route(_));
    let changed: &[&str] = match changes.iter().find(is_refused) {
        None => &[],
        Some((_, FlowChange::Bounds(_))) => &["max_rate", "min_rate"],
        Some((_, FlowChange::Route(_))) => &["route_change_at"],
        Some((_, FlowChange::Availability(_))) => &["available"],
        Some((_, FlowChange::Remb(_))) => &["remb"],
        Some((_, FlowChange::StreamMax(..) | FlowChange::StreamMuted(..) | FlowChange::StreamEnd(_))) => &["stream"],
    };
    let is_steady = |stream: &StreamPlan| !StreamPlan { suspends: false, ..stream.clone() }.changes_during_run();
    let others = [
        ("dscp", flow.dscp != Dscp::DEFAULT),
        ("coupling", coupling.is_some()),
        ("transport", *transport != Transport::Udp),
        ("use", *media_use != MediaUse::default()),
        ("packet_size", *packet_size != PACKET_SIZE_DEFAULT),
        ("rtcp_interval", *rtcp_interval != MediaPlan::RTCP_INTERVAL),
        ("feedback_interval", feedback_interval.is_some()),
        ("pacer_limit", back && *pacer_limit != MediaPlan::PACER_LIMIT),
    ];
    let (keys, help) = if let Some((key, _)) = others.iter().find(|(_, differs)| *differs) {
        let help = "flows between two hosts have the default codepoint, use, transport, sizes and intervals, and are not coupled; leave it out";
        (&[*key][..], help)
    } else if back && !streams.iter().all(is_steady) {
        (&["stream"][..], "a stream that the receiver sends stays as it is at the start")
    } else if !changed.is_empty() {
        (
            changed,
            "`max` of the encoder limits the rate, and limits stay as they are at the start; leave out what changes",
        )
    } else {
        return Ok(());
    };
    let message = format!("`{}` of `{}` does not work between two hosts", keys.join("` or `"), flow.id);
    unsuitable(index, keys, message, help)
}
