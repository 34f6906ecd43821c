// SPDX-License-Identifier: MIT OR Apache-2.0
//! Fairness metrics.

use super::run_data::is_intermittent;
use super::{MetricSpec, RunData, accumulators::whole_seconds};
use paceline_netsim::plan::FlowPlan;
use paceline_netsim::records::{Better, MetricKind, jain};
use paceline_scenario::Window;
use paceline_units::Time;

pub(super) const JAIN: MetricSpec = MetricSpec::new(
    "jain",
    MetricKind::Jain,
    "Jain's index of the rates of the flows that cross the forward bottleneck, in bins of 1 s, mean over bins; no value for a \
     single flow; of the run, even if a flow is named",
    |r, _, _| r.jain,
)
.with_shares();

pub(super) const MEDIA_JAIN: MetricSpec = MetricSpec::new(
    "media_jain",
    MetricKind::Jain,
    "Jain's index as in `jain`, of the media flows alone; of the run, even if a flow is named",
    |r, _, _| r.media_jain,
)
.with_shares();

pub(super) const ACTIVE_JAIN: MetricSpec = MetricSpec::new(
    "active_jain",
    MetricKind::Jain,
    "Jain's index as in `jain`, in each second of the flows that are active: that have started, have not stopped and are not \
     paused; no value if there are never two; of the run, even if a flow is named",
    |r, _, _| r.active_jain,
)
.with_shares();

pub(super) const MAX_MIN_RATIO: MetricSpec = MetricSpec::new(
    "max_min_ratio",
    MetricKind::Number,
    "largest over smallest throughput of the media flows; of the run, even if a flow is named",
    |r, _, _| {
        let rates = || r.media().map(|f| f.throughput_bps);
        let (most, least) = (rates().reduce(f64::max)?, rates().reduce(f64::min)?);
        (least > 0.0).then(|| most / least)
    },
)
.with_better(Better::Lower);

pub(super) const SHARE: MetricSpec = MetricSpec::new(
    "share",
    MetricKind::Share,
    "throughput of a flow over that of all flows; of the first, if none is named",
    |r, flow, _| r.flow(flow).share,
);

/// Returns Jain's index, averaged over whole seconds, of the flows that `counts` selects and that cross the bottleneck; `None` if
/// there is at most one such flow. Only seconds in which all flows of the window live and receive data count. A flow with
/// pauses is one of them in the seconds in which it receives data.
pub(super) fn index(run: &RunData<'_>, window: &Window, counts: impl Fn(&FlowPlan) -> bool) -> Option<f64> {
    let plan = &run.scenario.plan;
    let crosses = |f: &FlowPlan| f.route.contains(&plan.bottleneck) && f.start < window.to && f.stop > window.from;
    let selected = (0..plan.flows.len()).filter(|f| counts(&plan.flows[*f]) && crosses(&plan.flows[*f]));
    let (intermittent, steady): (Vec<usize>, Vec<usize>) = selected.partition(|f| is_intermittent(&plan.flows[*f]));
    let flow = |f: &usize| &plan.flows[*f];
    let from = steady.iter().map(|f| flow(f).start).max().unwrap_or(window.from).max(window.from);
    let to = steady.iter().map(|f| flow(f).stop).min().unwrap_or(window.to).min(window.to);
    let mut indices = Vec::new();
    for (second, _) in whole_seconds(from, to) {
        let received = |f: &usize| run.rates[*f].received_at(second) as f64;
        let sends = |f: &&usize| received(f) > 0.0;
        let rates: Vec<f64> = steady.iter().chain(intermittent.iter().filter(sends)).map(received).collect();
        if rates.len() > 1 {
            indices.extend(jain(&rates));
        }
    }
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}

/// Returns Jain's index, averaged over the whole seconds in which at least two flows that cross the bottleneck are active; `None`
/// without such a second. A flow is active in a second if it lives all the time and its sources may send; one with pauses, if
/// it receives data.
pub(super) fn active_index(run: &RunData<'_>, window: &Window) -> Option<f64> {
    let plan = &run.scenario.plan;
    let crossing: Vec<usize> =
        (0..plan.flows.len()).filter(|f| plan.flows[*f].route.contains(&plan.bottleneck)).collect();
    let is_active = |index: usize, from: Time, to: Time| {
        let flow = &plan.flows[index];
        let has_data = match is_intermittent(flow) {
            true => run.rates[index].received_at(from) > 0,
            false => run.most(index, from, to) > 0.0,
        };
        flow.start <= from && to <= flow.stop && has_data
    };
    let indices: Vec<f64> = whole_seconds(window.from, window.to)
        .filter_map(|(from, to)| {
            let active = crossing.iter().filter(|flow| is_active(**flow, from, to));
            let rates: Vec<f64> = active.map(|flow| run.rates[*flow].received_at(from) as f64).collect();
            (rates.len() > 1).then(|| jain(&rates)).flatten()
        })
        .collect();
    (!indices.is_empty()).then(|| indices.iter().sum::<f64>() / indices.len() as f64)
}
