// SPDX-License-Identifier: MIT OR Apache-2.0
//! The fair share of a media flow over time: max-min fairness over all flows of the path.
//!
//! A packet sent at t meets hop h at t + d_h, after the delays of the access line and of the hops before it. So the share of a flow
//! at t is computed from the capacity of each hop at t + d_h.
//!
//! Constant cross traffic takes what it wants first.

use super::{Steps, push, rate_at};
use paceline::Bounds;
use paceline_netsim::flow::tcp::Workload;
use paceline_netsim::link::HopPlan;
use paceline_netsim::plan::{FlowChange, FlowKind, FlowPlan, MediaPlan, Plan};
use paceline_units::{Rate, Time, TimeDelta};
use std::collections::BTreeSet;

/// A capacity of single transmissions is averaged over this time: a few packets of a link of 10 Mbit/s.
const BIN: TimeDelta = TimeDelta::from_millis(10);
/// Sources are looked at over this time.
const MOMENT: TimeDelta = TimeDelta::from_millis(1);
/// The controller that sends constant traffic.
const CONSTANT: &str = "fixed";

/// Returns the share over time of a media flow that takes all that it gets, bit/s; zero before its start and after its end.
/// `replaced` says which flows of the plan are under a controller other than that of the plan, and `mean` returns the mean of a capacity.
/// It is taken for each hop: what one hop carries in a moment waits in the queue of the next.
pub(super) fn over_time(plan: &Plan, flow: usize, replaced: &[bool], mean: impl Fn(Steps) -> Steps) -> Steps {
    let own = &plan.flows[flow];
    let end = Time::ZERO + plan.duration;
    // Hops that only others cross limit them without a shift.
    let mut delays = vec![TimeDelta::ZERO; plan.hops.len()];
    let mut delay = own.access_delay;
    for hop in &own.route {
        delays[*hop] = delay;
        delay += *plan.hops[*hop].delay.at(Time::ZERO);
    }
    let of_hops = plan.hops.iter().zip(delays);
    let capacities: Vec<Option<Steps>> = of_hops.map(|(hop, delay)| capacity(hop, end, delay).map(&mean)).collect();
    let mut times: BTreeSet<Time> = capacities.iter().flatten().flatten().map(|(at, _)| *at).collect();
    times.insert(Time::ZERO);
    for flow in &plan.flows {
        times.extend([flow.start, flow.stop].into_iter().filter(|at| *at < end));
        let Some(media) = flow.media() else { continue };
        times.extend(media.changes.iter().map(|(at, _)| *at));
        times.extend(media.streams.iter().flat_map(|stream| stream.changes()));
    }
    let is_constant = |n: usize| !replaced[n] && plan.flows[n].control() == CONSTANT;
    let (constant, elastic): (Vec<usize>, Vec<usize>) = (0..plan.flows.len()).partition(|n| is_constant(*n));
    let mut steps = Steps::new();
    for at in times.into_iter().filter(|at| *at < end) {
        let mut demands: Vec<f64> = plan.flows.iter().map(|flow| demand(flow, at)).collect();
        if (own.start..own.stop).contains(&at) {
            demands[flow] = f64::INFINITY;
        }
        let mut free: Vec<Option<f64>> = capacities.iter().map(|steps| Some(rate_at(steps.as_ref()?, at))).collect();
        fill(plan, &mut free, &demands, constant.clone());
        push(&mut steps, at, fill(plan, &mut free, &demands, elastic.clone())[flow]);
    }
    steps
}

/// Returns the capacity of a hop by the time at which packets are sent that reach it after `delay`.
fn capacity(hop: &HopPlan, end: Time, delay: TimeDelta) -> Option<Steps> {
    let values = &hop.queue.values;
    let policed = match hop.queue.discipline.name {
        "srtcm" => values.rate("rate").as_bps_f64(),
        "trtcm" => values.rate("peak_rate").as_bps_f64(),
        _ => f64::INFINITY,
    };
    let steps = match &hop.capacity {
        Some(_) if hop.server.service.shared_medium().is_some() => return None,
        Some(capacity) => capacity.steps(end + delay, BIN),
        None if policed.is_finite() => vec![(Time::ZERO, Rate::from_bps(u64::MAX))],
        None => return None,
    };
    let mut shifted = Steps::new();
    for (at, rate) in steps {
        push(&mut shifted, (at - delay).max(Time::ZERO), rate.as_bps_f64().min(policed));
    }
    Some(shifted)
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
            let constant = media.controller.config.iter().find(|(name, bps)| name == "rate_bps" && *bps > 0.0);
            let sources = constant.map_or(sources, |(_, bps)| sources.min(*bps));
            bounds(media, at).map_or(sources, |bounds| sources.min(bounds.max.as_bps_f64()))
        }
    }
}

/// Returns the limits of the target that are in force, if the scenario has changed them.
pub(super) fn bounds(media: &MediaPlan, at: Time) -> Option<Bounds> {
    let of = |(from, change): &(Time, FlowChange)| match change {
        FlowChange::Bounds(bounds) if *from <= at => Some(*bounds),
        _ => None,
    };
    media.changes.iter().rev().find_map(of)
}

/// Gives the open flows their max-min fair rate, by progressive filling: the rates of all grow together; a flow stops at its
/// demand, or when a hop of its route is full (Bertsekas and Gallager, Data Networks, section 6.5.2). `free` is what each hop has
/// left. Returns the rates.
fn fill(plan: &Plan, free: &mut [Option<f64>], demands: &[f64], mut open: Vec<usize>) -> Vec<f64> {
    /// Rounding errors, relative to all of a hop.
    const ROUNDING: f64 = 1e-9;
    let all = free.to_vec();
    let mut rates = vec![0.0; demands.len()];
    loop {
        let is_full = |hop: &usize| free[*hop].zip(all[*hop]).is_some_and(|(free, all)| free <= ROUNDING * all);
        open.retain(|flow| rates[*flow] < demands[*flow] && !plan.flows[*flow].route.iter().any(is_full));
        let crossing = |hop: usize| open.iter().filter(|flow| plan.flows[**flow].route.contains(&hop)).count() as f64;
        let crossings: Vec<f64> = (0..free.len()).map(crossing).collect();
        let of_hops = free.iter().zip(&crossings).filter(|(_, n)| **n > 0.0).filter_map(|(free, n)| Some((*free)? / n));
        let of_demands = open.iter().map(|flow| demands[*flow] - rates[*flow]);
        let step = of_hops.chain(of_demands).fold(f64::INFINITY, f64::min);
        open.iter().for_each(|flow| rates[*flow] += step);
        if open.is_empty() || step.is_infinite() {
            return rates;
        }
        for (free, crossing) in free.iter_mut().zip(crossings) {
            *free = free.map(|free| (free - step * crossing).max(0.0));
        }
    }
}
