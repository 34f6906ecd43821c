// SPDX-License-Identifier: MIT OR Apache-2.0
//! What flows beside those under test keep of their fair share: the harm that a controller does to others.

use super::run_data::is_intermittent;
use super::{FlowResult, MetricSpec, WindowResult};
use paceline_netsim::plan::{FlowPlan, Plan};
use paceline_netsim::records::MetricKind;

/// The least time that a flow lives in the window to count, s. A shorter one has hardly started.
const LIFE_MIN: f64 = 10.0;

pub(super) const OTHERS_KEEP: MetricSpec = MetricSpec::new(
    "others_keep",
    MetricKind::Share,
    "what TCP and cross traffic receive of their fair share, at most 1, mean over those that live for at least 10 s: an equal part of \
     the slowest hop among the flows that share a hop with it, or what the sources of the flow allow, where that is less; of the run, even if a \
     flow is named",
    |r, _, _| r.others_keep,
);

/// Returns the part of their fair share that flows which are not under test receive, mean over them; `None` without any. A TCP flow
/// with breaks does not count: what it receives depends on when it sends.
pub(super) fn kept(run: &WindowResult, plan: &Plan) -> Option<f64> {
    let others = (0..plan.flows.len()).filter(|flow| is_competing(&plan.flows[*flow]));
    let parts: Vec<f64> = others.filter_map(|flow| part_of_fair_share(run, plan, flow)).collect();
    (!parts.is_empty()).then(|| parts.iter().sum::<f64>() / parts.len() as f64)
}

/// Returns whether a flow competes with those under test, which may harm it.
pub(crate) fn is_competing(flow: &FlowPlan) -> bool {
    flow.media().map_or(!is_intermittent(flow), |media| media.is_cross_traffic)
}

fn part_of_fair_share(run: &WindowResult, plan: &Plan, index: usize) -> Option<f64> {
    let flow = &run.flows[index];
    let life = |flow: &FlowResult| (flow.start_s.max(run.window_s.0), flow.stop_s.min(run.window_s.1));
    let (from, to) = life(flow);
    let meets = |other: &FlowPlan| {
        let shared = |hop: &&usize| plan.hops[**hop].capacity.is_some() && other.route.contains(hop);
        !is_intermittent(other) && plan.flows[index].route.iter().any(|hop| shared(&hop))
    };
    let together = |other: &FlowResult| (life(other).1.min(to) - life(other).0.max(from)).max(0.0);
    let flows = run.flows.iter().zip(&plan.flows).filter(|(_, plan)| meets(plan));
    let count = flows.map(|(other, _)| together(other)).sum::<f64>() / (to - from);
    let equal_part = flow.capacity_bytes? as f64 / count;
    let link_share = flow.link_share?;
    let received = flow.received_bytes as f64;
    let allowed = if received > 0.0 { received / link_share } else { f64::INFINITY };
    let part = (received / allowed.min(equal_part)).min(1.0);
    (part.is_finite() && to - from >= LIFE_MIN).then_some(part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Runner;
    use crate::yardsticks;
    use paceline::Registry;
    use paceline_scenario::{Changes, Origin};

    const SCENARIO: &str = r#"
id = "x"
title = ""
duration = "16 s"
[path]
rtt = "40 ms"
[path.forward]
capacity = "2 Mbps"
[[flow]]
id = "call"
controller = "nada"
stop = "12 s"
[[flow]]
id = "bulk"
kind = "tcp"
[[flow]]
id = "web"
kind = "tcp"
workload = { kind = "on-off", on = "1 s", off = "1 s" }
[[flow]]
id = "late"
kind = "tcp"
start = "15 s"
[[flow]]
id = "constant"
controller = "fixed"
cross_traffic = true
stop = "8 s"
"#;

    /// The TCP flow receives 500 kB. It could use 2 MB. The hop carries 4 MB, which it shares with a call for 12 of 16 seconds, with a
    /// late flow for one, and with constant traffic for 8: its part is 4 MB / 2.3125. Traffic with breaks does not count, and
    /// neither do flows that live for less than 10 s.
    #[test]
    fn other_flows_keep_a_part_of_their_fair_share() {
        let registry = yardsticks::add(Registry::standard());
        let origin = Origin::from_text("x", SCENARIO.to_owned());
        let scenario = paceline_scenario::load(&origin, &Changes::default(), &registry).unwrap();
        let mut run = Runner::simulator(&registry).run(&scenario, 1, None).unwrap().whole;
        assert_eq!(run.others_keep, kept(&run, &scenario.plan));
        let mut with = |received, link_share| {
            let flow = &mut run.flows[1];
            (flow.received_bytes, flow.link_share, flow.capacity_bytes) = (received, Some(link_share), Some(4_000_000));
            kept(&run, &scenario.plan).unwrap()
        };
        assert!((with(500_000, 0.25) - 0.5 * 2.3125 / 4.0).abs() < 1e-12);
        assert!((with(500_000, 0.5) - 0.5).abs() < 1e-12, "1 MB is all that it could use");
        assert_eq!(with(3_600_000, 0.9), 1.0);
        run.flows[1].stop_s = 9.9;
        assert_eq!(kept(&run, &scenario.plan), None);
    }
}
