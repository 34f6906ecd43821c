//! The data of a run that metrics of whole seconds read.

use super::accumulators::RateBins;
use paceline_netsim::plan::Plan;
use paceline_scenario::Scenario;
use paceline_units::{DataSize, Time};

/// The data of a run for metrics that compute their values from bins of 1 s.
pub(crate) struct RunData<'a> {
    pub scenario: &'a Scenario,
    /// The plan with its links as they were at the end.
    pub plan: &'a Plan,
    /// Of each flow.
    pub rates: Vec<&'a RateBins>,
    /// Of each hop, the start and stop times of the flows that cross it, each in order.
    lives: Vec<[Vec<Time>; 2]>,
}

impl<'a> RunData<'a> {
    pub fn new(scenario: &'a Scenario, plan: &'a Plan, rates: Vec<&'a RateBins>) -> Self {
        let lives = |hop: usize| {
            let crossing = || scenario.plan.flows.iter().filter(|f| f.start < f.stop && f.route.contains(&hop));
            let (mut starts, mut stops): (Vec<_>, Vec<_>) = crossing().map(|f| (f.start, f.stop)).unzip();
            starts.sort_unstable();
            stops.sort_unstable();
            [starts, stops]
        };
        Self { scenario, plan, rates, lives: (0..plan.hops.len()).map(lives).collect() }
    }

    /// Returns the number of flows that live at this time and cross the hop.
    pub fn crossing(&self, hop: usize, at: Time) -> usize {
        let [starts, stops] = self.lives[hop].each_ref().map(|times| times.partition_point(|time| *time <= at));
        starts - stops
    }

    /// Returns the hop of a flow's route that can carry least from `from` to `to`, and how much that is; `None` if no hop
    /// has a capacity.
    pub fn slowest(&self, flow: usize, from: Time, to: Time) -> Option<(usize, DataSize)> {
        let to = to.max(from);
        let hops = self.plan.flows[flow].route.iter();
        let volumes = hops.filter_map(|h| Some((*h, self.plan.hops[*h].capacity.as_ref()?.volume(from, to))));
        volumes.min_by_key(|(_, volume)| *volume)
    }

    /// Returns the most that the sources of a flow make, bit/s; infinite for TCP.
    pub fn most(&self, flow: usize) -> f64 {
        self.plan.flows[flow].max_rate().map_or(f64::INFINITY, |most| most.as_bps_f64())
    }
}
