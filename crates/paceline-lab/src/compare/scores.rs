//! What a ranking needs of the runs under each controller: the score, its losses, and what other flows keep.

use crate::metrics::{FlowResult, WindowResult, find, is_intermittent};
use crate::results::RowKind;
use crate::run_result::RunsResult;
use crate::yardsticks::{self, Oracle};
use paceline::Registry;
use paceline_netsim::plan::{FlowPlan, Plan};
use paceline_scenario::Scenario;

/// What costs points, with its metric.
pub(super) const CAUSES: [(&str, &str); 3] =
    [("rate", "score_lost_to_rate"), ("delay", "score_lost_to_delay"), ("freezes", "score_lost_to_freezes")];

/// A controller with the values of each of its runs.
#[derive(Clone, Debug)]
pub(super) struct Scored {
    pub(super) name: String,
    pub(super) kind: RowKind,
    pub(super) scores: Vec<f64>,
    /// In the order of [`CAUSES`].
    pub(super) lost: [Vec<f64>; 3],
    /// The part of their fair share that other flows receive.
    pub(super) others: Option<Vec<f64>>,
}

/// Returns each controller that has a score in all its runs.
pub(super) fn scored(
    names: &[String],
    scenarios: &[Scenario],
    results: &[RunsResult],
    registry: &Registry,
) -> Vec<Scored> {
    let others = other_flows(names, scenarios);
    let of = |((name, scenario), result): ((&String, &Scenario), &RunsResult)| {
        let values = |id: &str| -> Option<Vec<f64>> {
            let metric = find(id).expect("the metrics of the score are registered");
            result.runs.iter().map(|run| (metric.value)(&run.whole, None, &scenario.measure)).collect()
        };
        let [rate, delay, freezes] = CAUSES.map(|(_, metric)| values(metric));
        let kept = result.runs.iter().map(|run| kept(&run.whole, &scenario.plan, &others)).collect();
        Some(Scored {
            name: name.clone(),
            kind: kind(name, registry),
            scores: values("score")?,
            lost: [rate?, delay?, freezes?],
            others: kept,
        })
    };
    names.iter().zip(scenarios).zip(results).filter_map(of).collect()
}

/// Returns the purpose of a controller or an oracle. The rule is that of `suite::Subject`, which builds without storage lack.
fn kind(name: &str, registry: &Registry) -> RowKind {
    let controls = || registry.get(name).is_some_and(|entry| entry.controls());
    match Oracle::find(name) {
        Some(_) => RowKind::Oracle,
        None if yardsticks::is_faulty(name) || !controls() => RowKind::Faulty,
        None => RowKind::Controller,
    }
}

/// Returns the flows that have no compared controller. A TCP flow with breaks is none: what it receives depends on when it sends.
fn other_flows(names: &[String], scenarios: &[Scenario]) -> Vec<usize> {
    let is_other = |index: &usize| {
        let mut controls = scenarios.iter().map(|scenario| scenario.plan.flows[*index].control());
        let first = controls.next().expect("there is a controller");
        let same = controls.all(|control| control == first) && names.iter().any(|name| name != first);
        same && !is_intermittent(&scenarios[0].plan.flows[*index])
    };
    (0..scenarios[0].plan.flows.len()).filter(is_other).collect()
}

/// Returns the part of its fair share that each of these flows receives, mean over those that have one; `None` if none has.
fn kept(run: &WindowResult, plan: &Plan, others: &[usize]) -> Option<f64> {
    let parts: Vec<f64> = others.iter().filter_map(|flow| part_of_fair_share(run, plan, *flow)).collect();
    (!parts.is_empty()).then(|| parts.iter().sum::<f64>() / parts.len() as f64)
}

/// Returns what a flow receives of its fair share, at most 1. The share is an equal part of the slowest hop among the flows that
/// meet this flow at a hop with a capacity, or what its sources allow, where that is less.
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
    Some((received / allowed.min(equal_part)).min(1.0)).filter(|part| part.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Runner;
    use paceline_scenario::{Changes, Origin};

    const SCENARIO: &str = r#"
id = "x"
title = ""
duration = "4 s"
[path]
rtt = "40 ms"
[path.forward]
capacity = "2 Mbps"
[[flow]]
id = "call"
controller = "nada"
stop = "3 s"
[[flow]]
id = "bulk"
kind = "tcp"
[[flow]]
id = "web"
kind = "tcp"
workload = { kind = "on-off", on = "1 s", off = "1 s" }
"#;

    /// The flow receives 125 kB. It could use 500 kB. The hop carries 1 MB, which it shares with a call for three of four seconds: its
    /// part is 1 MB / 1.75 = 571 kB. Traffic with breaks does not count.
    #[test]
    fn other_flows_keep_a_part_of_their_fair_share() {
        let registry = yardsticks::add(Registry::standard());
        let names = ["nada", "scream-v2", "faulty-oscillates"].map(str::to_owned);
        let load = |name: &String| {
            let changes = Changes { controller: Some(name.clone()), ..Changes::default() };
            paceline_scenario::load(&Origin::from_text("x", SCENARIO.to_owned()), &changes, &registry).unwrap()
        };
        let scenarios: Vec<Scenario> = names.iter().map(load).collect();
        let runner = Runner::simulator(&registry);
        let results: Vec<RunsResult> = scenarios.iter().map(|s| runner.run_all(s, &[1, 2]).unwrap()).collect();
        assert_eq!(other_flows(&names, &scenarios), [1]);
        let mut run = results[0].runs[0].whole.clone();
        let (flow, plan) = (&mut run.flows[1], &scenarios[0].plan);
        (flow.received_bytes, flow.link_share, flow.capacity_bytes) = (125_000, Some(0.25), Some(1_000_000));
        assert_eq!(kept(&run, plan, &[1]), Some(0.25));
        run.flows[1].link_share = Some(0.125);
        assert!((kept(&run, plan, &[1]).unwrap() - 0.125 * 1.75).abs() < 1e-12);
        (run.flows[1].received_bytes, run.flows[1].link_share) = (900_000, Some(0.9));
        assert_eq!(kept(&run, plan, &[1]), Some(1.0));
        assert_eq!(kept(&run, plan, &[]), None);

        let scored = scored(&names, &scenarios, &results, &registry);
        let kinds = [RowKind::Controller, RowKind::Controller, RowKind::Faulty];
        assert_eq!(scored.iter().map(|of| of.kind).collect::<Vec<_>>(), kinds);
        for (of, result) in scored.iter().zip(&results) {
            let lost: f64 = of.lost.iter().map(|lost| lost[1]).sum();
            assert!((of.scores[1] + lost - 100.0).abs() < 1e-9, "{of:?}");
            assert_eq!(of.scores.iter().sum::<f64>() / 2.0, result.summary["score"].mean);
            assert!(of.others.as_ref().unwrap().iter().all(|part| (0.0..=1.0).contains(part)));
        }
    }
}
