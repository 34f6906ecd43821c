// SPDX-License-Identifier: MIT OR Apache-2.0
//! The data of a run that metrics of whole seconds read.

use super::accumulators::RateBins;
use paceline_netsim::flow::tcp::Workload;
use paceline_netsim::plan::{FlowKind, FlowPlan, Plan};
use paceline_scenario::Scenario;
use paceline_units::{DataSize, Time};

/// The data of a run for metrics that compute their values from bins of 1 s.
pub(crate) struct RunData<'a> {
    pub scenario: &'a Scenario,
    /// The plan with its links as they were at the end.
    pub plan: &'a Plan,
    /// Of each flow.
    pub rates: Vec<&'a RateBins>,
    /// Of each hop, the start and stop times of the flows that cross it and always have data, each in order.
    lives: Vec<[Vec<Time>; 2]>,
    /// Of each hop, the flows that cross it and have data at times.
    intermittent: Vec<Vec<usize>>,
}

impl<'a> RunData<'a> {
    pub fn new(scenario: &'a Scenario, plan: &'a Plan, rates: Vec<&'a RateBins>) -> Self {
        let flows = &scenario.plan.flows;
        let lives = |hop: usize| {
            let crosses = |f: &&FlowPlan| f.start < f.stop && f.route.contains(&hop) && !is_intermittent(f);
            let crossing = || flows.iter().filter(crosses);
            let (mut starts, mut stops): (Vec<_>, Vec<_>) = crossing().map(|f| (f.start, f.stop)).unzip();
            starts.sort_unstable();
            stops.sort_unstable();
            [starts, stops]
        };
        let intermittent = |hop: usize| {
            let crosses = |f: &&usize| flows[**f].route.contains(&hop) && is_intermittent(&flows[**f]);
            (0..flows.len()).filter(|f| crosses(&f)).collect()
        };
        let hops = || 0..plan.hops.len();
        Self {
            scenario,
            plan,
            rates,
            lives: hops().map(lives).collect(),
            intermittent: hops().map(intermittent).collect(),
        }
    }

    /// Returns the number of flows that cross the hop in the second from `at` on: those that always have data and live at
    /// this time, and the others if they receive data in it.
    pub fn crossing(&self, hop: usize, at: Time) -> usize {
        let [starts, stops] = self.lives[hop].each_ref().map(|times| times.partition_point(|time| *time <= at));
        starts - stops + self.intermittent[hop].iter().filter(|flow| self.rates[**flow].received_at(at) > 0).count()
    }

    /// Returns the hop of a flow's route that can carry least from `from` to `to`, and how much that is; `None` if no hop
    /// has a capacity.
    pub fn slowest(&self, flow: usize, from: Time, to: Time) -> Option<(usize, DataSize)> {
        let to = to.max(from);
        let hops = self.plan.flows[flow].route.iter();
        let volumes = hops.filter_map(|h| Some((*h, self.plan.hops[*h].capacity.as_ref()?.volume(from, to))));
        volumes.min_by_key(|(_, volume)| *volume)
    }

    /// Returns the most that the sources of a flow make from `from` to `to` on average, bit/s; infinite for TCP.
    pub fn most(&self, flow: usize, from: Time, to: Time) -> f64 {
        let media = self.plan.flows[flow].media();
        media.map_or(f64::INFINITY, |media| media.mean_max_rate(from, to).as_bps_f64())
    }
}

/// Returns whether a flow has data only at times: TCP with pauses. It shares a link only while it has data.
pub(crate) fn is_intermittent(flow: &FlowPlan) -> bool {
    matches!(&flow.kind, FlowKind::Tcp(tcp) if tcp.workload != Workload::Bulk)
}
