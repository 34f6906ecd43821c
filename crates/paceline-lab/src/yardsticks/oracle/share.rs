//! The fair share of a media flow over time: max-min fairness over the hops of all flows.
//!
//! A packet sent at t meets hop h at t + d_h, after the delays of the access line and of the hops before it. So the share of a flow
//! at t is computed from the capacity of each hop at t + d_h. It is not above what the sources can use.

use super::{Steps, push};
use paceline::Bounds;
use paceline_netsim::flow::tcp::Workload;
use paceline_netsim::plan::{FlowChange, FlowKind, FlowPlan, MediaPlan, Plan};
use paceline_units::{Rate, Time, TimeDelta};
use std::collections::BTreeSet;

/// A capacity of single transmissions is averaged over this time: a few packets of a link of 10 Mbit/s.
const BIN: TimeDelta = TimeDelta::from_millis(10);
/// Sources are looked at over this time.
const MOMENT: TimeDelta = TimeDelta::from_millis(1);

/// Returns the share of a media flow over time, bit/s, zero before its start and after its end.
pub(super) fn over_time(plan: &Plan, flow: usize) -> Steps {
    let own = &plan.flows[flow];
    let end = Time::ZERO + plan.duration;
    let mut delay = own.access_delay;
    // The capacity of each hop by the time at which packets of this flow are sent.
    let mut capacities: Vec<Option<Vec<(Time, Rate)>>> = vec![None; plan.hops.len()];
    for hop in &own.route {
        let plan = &plan.hops[*hop];
        if let Some(capacity) = plan.capacity.as_ref().filter(|_| plan.server.service.medium.is_none()) {
            let steps = capacity.steps(end + delay, BIN);
            capacities[*hop] = Some(steps.into_iter().map(|(at, rate)| ((at - delay).max(Time::ZERO), rate)).collect());
        }
        delay += *plan.delay.at(Time::ZERO);
    }
    // Hops that only others cross limit them without a shift.
    for (hop, plan) in plan.hops.iter().enumerate().filter(|(hop, _)| !own.route.contains(hop)) {
        let capacity = plan.capacity.as_ref().filter(|_| plan.server.service.medium.is_none());
        capacities[hop] = capacity.map(|capacity| capacity.steps(end, BIN));
    }
    let mut times: BTreeSet<Time> = capacities.iter().flatten().flatten().map(|(at, _)| *at).collect();
    times.insert(Time::ZERO);
    for flow in &plan.flows {
        times.extend([flow.start, flow.stop].into_iter().filter(|at| *at < end));
        let Some(media) = flow.media() else { continue };
        times.extend(media.changes.iter().map(|(at, _)| *at));
        times.extend(media.streams.iter().flat_map(|stream| stream.changes()));
    }
    let mut steps = Steps::new();
    for at in times.into_iter().filter(|at| *at < end) {
        let capacity = |hop: usize| {
            let steps = capacities[hop].as_ref()?;
            let index = steps.partition_point(|(from, _)| *from <= at).saturating_sub(1);
            Some(steps.get(index)?.1.as_bps_f64())
        };
        let demands: Vec<f64> = plan.flows.iter().map(|flow| demand(flow, at)).collect();
        push(&mut steps, at, max_min(plan, &demands, capacity)[flow]);
    }
    steps
}

/// Returns what a flow could use at `at`, bit/s. A TCP flow without breaks uses what it gets. When one with breaks sends depends on
/// the run, so that it is not counted.
fn demand(flow: &FlowPlan, at: Time) -> f64 {
    if !(flow.start..flow.stop).contains(&at) {
        return 0.0;
    }
    match &flow.kind {
        FlowKind::Tcp(tcp) => match tcp.workload {
            Workload::Bulk => f64::INFINITY,
            Workload::OnOff { .. } | Workload::Short { .. } | Workload::Bursts { .. } => 0.0,
        },
        FlowKind::Media(media) => {
            let sources = media.mean_max_rate(at, at + MOMENT).as_bps_f64();
            bounds(media, at).map_or(sources, |bounds| sources.min(bounds.max.as_bps_f64()))
        }
    }
}

/// Returns the limits of the target that are in force, if the scenario has changed them.
fn bounds(media: &MediaPlan, at: Time) -> Option<Bounds> {
    let of = |(from, change): &(Time, FlowChange)| match change {
        FlowChange::Bounds(bounds) if *from <= at => Some(*bounds),
        _ => None,
    };
    media.changes.iter().rev().find_map(of)
}

/// Returns the max-min fair rate of each flow, by progressive filling: the rates of all flows grow together; a flow stops at its
/// demand, or when a hop of its route is full (Bertsekas and Gallager, Data Networks, section 6.5.2).
fn max_min(plan: &Plan, demands: &[f64], capacity: impl Fn(usize) -> Option<f64>) -> Vec<f64> {
    let mut rates = vec![0.0; demands.len()];
    let mut open: Vec<usize> = (0..demands.len()).filter(|flow| demands[*flow] > 0.0).collect();
    let mut free: Vec<Option<f64>> = (0..plan.hops.len()).map(capacity).collect();
    while !open.is_empty() {
        let crossing = |hop: usize| open.iter().filter(|flow| plan.flows[**flow].route.contains(&hop)).count() as f64;
        let of_hops =
            (0..free.len()).filter(|hop| crossing(*hop) > 0.0).filter_map(|hop| Some(free[hop]? / crossing(hop)));
        let of_demands = open.iter().map(|flow| demands[*flow] - rates[*flow]);
        let step = of_hops.chain(of_demands).fold(f64::INFINITY, f64::min);
        open.iter().for_each(|flow| rates[*flow] += step);
        if step.is_infinite() {
            break;
        }
        let full: Vec<bool> = (0..free.len())
            .map(|hop| {
                let used = step * crossing(hop);
                // Full up to rounding.
                let left = free[hop].map(|free| (free - used, 1e-9 * (free + used)));
                free[hop] = left.map(|(left, _)| left.max(0.0));
                left.is_some_and(|(left, rounding)| left <= rounding) && crossing(hop) > 0.0
            })
            .collect();
        open.retain(|flow| rates[*flow] < demands[*flow] && !plan.flows[*flow].route.iter().any(|hop| full[*hop]));
    }
    rates
}
