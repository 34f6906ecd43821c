// SPDX-License-Identifier: MIT OR Apache-2.0
//! The flow state exchange of coupled congestion control (RFC 8699): the flows of a sender that share a bottleneck share one
//! rate, by priority.
//!
//! ```text
//! each new rate CC_R(f) of a flow f:
//!   active        S_CR = S_CR + CC_R(f) - FSE_R(f)                                     section 5.3.1, step 3a
//!   conservative  a decrease: S_CR = S_CR · CC_R(f) / FSE_R(f), then 2 RTT without change   section 5.3.2
//!   both          FSE_R(i) = P(i) / sum of P · S_CR, at most DR(i); what is left goes to the others    steps 3b, 3c
//!                 every flow i sends at FSE_R(i)                                       step 3d
//! ```
//!
//! One exchange is one flow group. The program decides which flows share a bottleneck; RFC 8699, section 5.1, names
//! multiplexing, configuration and measurement. For each flow it calls [`register`](FlowStateExchange::register), then
//! [`update`](FlowStateExchange::update) with each new [`SendHalf::calculated_rate`](crate::SendHalf::calculated_rate), and passes
//! each flow's [`rate`](FlowStateExchange::rate) to the half as [`Event::CoupledRate`](crate::Event::CoupledRate).
//!
//! # Points that the RFC leaves open
//!
//! * **The desired rate of a flow without limit is infinite**, as in the RFC's passive algorithm (appendix C). By the letter of
//!   section 5.2 it is CC_R(f). Then no flow gets more than it calculated itself, and rates of 1 and 10 never become equal.
//! * **FSE_R(f) is the rate that the flow uses** (section 5.2). A flow whose minimum is above its share uses the minimum; the next
//!   difference counts from there. Otherwise each update would add the same difference to S_CR again.
//! * **The distribution ends with the first pass that limits no flow.** The RFC's condition, TLO - AR > 0, is the same in exact
//!   arithmetic; with rounding it may never become false.

use alloc::vec::Vec;
use paceline_units::{Rate, Time, TimeDelta};

/// The round-trip times without a change of the aggregate after a decrease (section 5.3.2).
const HOLD_ROUND_TRIPS: i64 = 2;

/// How a new rate of one flow changes the aggregate rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coupling {
    /// By the difference (section 5.3.1).
    #[default]
    Active,
    /// A decrease by the ratio; then the aggregate is constant for two round-trip times (section 5.3.2).
    Conservative,
}

impl Coupling {
    /// The algorithms by name, each with a description.
    pub const NAMES: [(&'static str, Self); 2] = [("active", Self::Active), ("conservative", Self::Conservative)];
}

/// The state of one flow (section 5.2).
#[derive(Clone, Copy, Debug)]
struct FlowState {
    /// f.
    flow: usize,
    /// P(f).
    priority: f64,
    /// FSE_R(f), bit/s.
    rate: f64,
    /// DR(f), bit/s; infinite without limit.
    desired: f64,
}

/// The flow state exchange of one group of flows.
#[derive(Clone, Debug)]
pub struct FlowStateExchange {
    coupling: Coupling,
    flows: Vec<FlowState>,
    /// S_CR, bit/s.
    sum: f64,
    /// The time until which the aggregate is constant.
    timer: Option<Time>,
}

impl FlowStateExchange {
    /// Creates an exchange without flows.
    pub fn new(coupling: Coupling) -> Self {
        Self { coupling, flows: Vec::new(), sum: 0.0, timer: None }
    }

    /// Returns whether the flow is registered.
    pub fn contains(&self, flow: usize) -> bool {
        self.flows.iter().any(|state| state.flow == flow)
    }

    /// Registers a flow that starts or resumes, with the rate of its controller. Its desired rate is unlimited (section 5.3.1,
    /// step 1).
    ///
    /// # Panics
    /// The priority is not above zero, or the flow is registered.
    pub fn register(&mut self, flow: usize, priority: f64, initial: Rate) {
        assert!(priority.is_finite() && priority > 0.0, "priority {priority}");
        assert!(!self.contains(flow), "flow {flow} is registered");
        let rate = initial.as_bps_f64();
        self.flows.push(FlowState { flow, priority, rate, desired: f64::INFINITY });
        self.sum += rate;
    }

    /// Removes a flow that stops or pauses (section 5.3.1, step 2). Its rate stays in the aggregate, so the others get it.
    pub fn remove(&mut self, flow: usize) {
        self.flows.retain(|state| state.flow != flow);
        if self.flows.is_empty() {
            (self.sum, self.timer) = (0.0, None);
        }
    }

    /// Sets the desired rate of a flow, the most that it can use (section 5.2). It counts from the next update on.
    pub fn set_desired(&mut self, flow: usize, desired: Rate) {
        if let Some(state) = self.state(flow) {
            state.desired = desired.as_bps_f64();
        }
    }

    /// Sets the rate that a flow uses, if its minimum or maximum differs from its share (section 5.2).
    pub fn set_used(&mut self, flow: usize, used: Rate) {
        if let Some(state) = self.state(flow) {
            state.rate = used.as_bps_f64();
        }
    }

    /// Handles a rate that the controller of a flow calculated (UPDATE, section 5.3.1, step 3). `rtt` is the round-trip time of
    /// the flow. Afterwards each flow of the group has a new [`rate`](Self::rate).
    pub fn update(&mut self, now: Time, flow: usize, calculated: Rate, rtt: TimeDelta) {
        let Some(before) = self.state(flow).map(|state| state.rate) else { return };
        let calculated = calculated.as_bps_f64();
        match self.coupling {
            Coupling::Active => self.sum = active_sum(self.sum, calculated, before),
            Coupling::Conservative if self.timer.is_some_and(|end| now < end) => {}
            Coupling::Conservative => {
                self.timer = (calculated < before).then(|| now + rtt * HOLD_ROUND_TRIPS);
                self.sum = conservative_sum(self.sum, calculated, before);
            }
        }
        distribute(&mut self.flows, self.sum);
    }

    /// Returns the rate of a flow, FSE_R(f); `None` if it is not registered.
    pub fn rate(&self, flow: usize) -> Option<Rate> {
        self.flows.iter().find(|state| state.flow == flow).map(|state| Rate::from_bps_f64(state.rate))
    }

    /// Returns the sum of the calculated rates, S_CR.
    pub fn sum(&self) -> Rate {
        Rate::from_bps_f64(self.sum)
    }

    fn state(&mut self, flow: usize) -> Option<&mut FlowState> {
        self.flows.iter_mut().find(|state| state.flow == flow)
    }
}

/// Returns S_CR after a new rate: section 5.3.1, step 3a. It is never negative, although rates below a flow's minimum may not be
/// used.
fn active_sum(sum: f64, calculated: f64, before: f64) -> f64 {
    (sum + calculated - before).max(0.0)
}

/// Returns S_CR after a new rate outside the timer: section 5.3.2, step a.
fn conservative_sum(sum: f64, calculated: f64, before: f64) -> f64 {
    if calculated < before { sum * calculated / before } else { active_sum(sum, calculated, before) }
}

/// Distributes S_CR among the flows by priority, at most the desired rate to each: section 5.3.1, steps 3b and 3c.
fn distribute(flows: &mut [FlowState], sum: f64) {
    // A flow that wants nothing takes no part.
    let takes_part = |state: &&FlowState| state.desired > 0.0;
    let (mut left, mut priorities) = (sum, flows.iter().filter(takes_part).map(|state| state.priority).sum::<f64>());
    flows.iter_mut().for_each(|state| state.rate = 0.0);
    let mut limits = true;
    while core::mem::take(&mut limits) {
        for state in flows.iter_mut().filter(|state| state.rate < state.desired) {
            let share = left * state.priority / priorities;
            if share >= state.desired {
                left -= state.desired;
                priorities -= state.priority;
                (state.rate, limits) = (state.desired, true);
            } else {
                state.rate = share;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::at;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    /// Flows 0, 1, … of these priorities and rates in kbit/s.
    fn exchange(coupling: Coupling, flows: &[(f64, u64)]) -> FlowStateExchange {
        let mut exchange = FlowStateExchange::new(coupling);
        for (flow, (priority, kbps)) in flows.iter().enumerate() {
            exchange.register(flow, *priority, Rate::from_kbps(*kbps));
        }
        exchange
    }
    fn update(exchange: &mut FlowStateExchange, ms: i64, flow: usize, kbps: u64) -> Vec<u64> {
        exchange.update(at(ms), flow, Rate::from_kbps(kbps), RTT);
        let flows: Vec<usize> = exchange.flows.iter().map(|state| state.flow).collect();
        flows.into_iter().map(|flow| exchange.rate(flow).unwrap().as_bps() / 1000).collect()
    }

    /// By hand: 1000 + 300 = 1300; 400 more are 1700, which is 850 for each; 250 less are 1450.
    #[test]
    fn equal_priorities_share_the_sum_equally() {
        let mut exchange = exchange(Coupling::Active, &[(1.0, 1000), (1.0, 300)]);
        assert_eq!(update(&mut exchange, 0, 0, 1400), [850, 850]);
        assert_eq!(update(&mut exchange, 10, 1, 600), [725, 725]);
        assert_eq!(exchange.sum(), Rate::from_kbps(1450));
    }

    /// By hand: 500 + 500 + 200 = 1200, of which one and three quarters are 300 and 900. Twice the priorities are the same.
    #[test]
    fn priorities_of_one_to_three_give_rates_of_one_to_three() {
        for factor in [1.0, 2.0, 0.125] {
            let mut exchange = exchange(Coupling::Active, &[(factor, 500), (3.0 * factor, 500)]);
            assert_eq!(update(&mut exchange, 0, 0, 700), [300, 900]);
            assert_eq!(update(&mut exchange, 0, 1, 500), [200, 600], "400 less");
        }
    }

    /// By hand: of 1600 a quarter is 400 each, and twice that 800. The first wants 500, so 1100 remain for the others; of these the
    /// second wants 300, and the third gets 800.
    #[test]
    fn what_a_limited_flow_leaves_goes_to_the_others_by_priority() {
        let mut exchange = exchange(Coupling::Active, &[(2.0, 600), (1.0, 500), (1.0, 500)]);
        exchange.set_desired(0, Rate::from_kbps(500));
        assert_eq!(update(&mut exchange, 0, 1, 500), [500, 550, 550]);
        exchange.set_desired(1, Rate::from_kbps(300));
        assert_eq!(update(&mut exchange, 0, 2, 550), [500, 300, 800]);
        exchange.set_desired(2, Rate::from_kbps(400));
        assert_eq!(update(&mut exchange, 0, 2, 800), [500, 300, 400], "400 remain, which no flow can use");
        assert_eq!(exchange.sum(), Rate::from_kbps(1600));
    }

    /// A flow that wants nothing leaves all to the other.
    #[test]
    fn a_flow_without_desire_takes_no_share() {
        let mut exchange = exchange(Coupling::Active, &[(3.0, 500), (1.0, 500)]);
        exchange.set_desired(0, Rate::ZERO);
        assert_eq!(update(&mut exchange, 0, 1, 500), [0, 1000]);
    }

    /// The result does not depend on the order of the flows: 100, 200 and 1200 of 1500, by equal priorities.
    #[test]
    fn distribution_is_independent_of_the_order() {
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [2, 0, 1]] {
            let desired = [100.0, 200.0, f64::INFINITY];
            let mut flows = order.map(|flow| FlowState { flow, priority: 1.0, rate: 0.0, desired: desired[flow] });
            distribute(&mut flows, 1500.0);
            flows.sort_by_key(|state| state.flow);
            assert_eq!(flows.map(|state| state.rate), [100.0, 200.0, 1200.0], "{order:?}");
        }
    }

    /// By hand: 2000 · 800 / 1000 = 1600. Until 2 RTT later nothing changes; then 100 more are 1700. The active algorithm would
    /// have 1800 after the first.
    #[test]
    fn conservative_decrease_is_in_proportion_and_holds_for_two_round_trips() {
        let mut exchange = exchange(Coupling::Conservative, &[(1.0, 1000), (1.0, 1000)]);
        assert_eq!(update(&mut exchange, 1000, 0, 800), [800, 800]);
        assert_eq!(update(&mut exchange, 1100, 1, 700), [800, 800], "within the timer");
        assert_eq!(update(&mut exchange, 1199, 0, 900), [800, 800], "also an increase");
        assert_eq!(update(&mut exchange, 1200, 0, 900), [850, 850]);
        assert_eq!(update(&mut exchange, 1210, 0, 950), [900, 900], "an increase sets no timer");
    }

    #[test]
    fn a_flow_joins_with_its_rate_and_leaves_it_to_the_others() {
        let mut exchange = exchange(Coupling::Active, &[(1.0, 1000)]);
        exchange.register(7, 1.0, Rate::from_kbps(200));
        assert_eq!((exchange.rate(0), exchange.rate(7)), (Some(Rate::from_kbps(1000)), Some(Rate::from_kbps(200))));
        assert_eq!(update(&mut exchange, 0, 0, 1000), [600, 600]);
        exchange.remove(0);
        assert_eq!((exchange.contains(0), exchange.rate(0)), (false, None));
        assert_eq!(update(&mut exchange, 0, 7, 600), [1200]);
        exchange.remove(7);
        assert_eq!(exchange.sum(), Rate::ZERO, "nothing is left of an empty group");
        exchange.update(at(0), 7, Rate::from_kbps(100), RTT);
        assert_eq!(exchange.rate(7), None);
    }

    /// A flow that keeps 200 instead of its share of 100 reports 210: the sum grows by 10, not by 110.
    #[test]
    fn difference_counts_from_the_rate_that_a_flow_uses() {
        let mut exchange = exchange(Coupling::Active, &[(1.0, 200), (7.0, 600)]);
        assert_eq!(update(&mut exchange, 0, 1, 600), [100, 700]);
        exchange.set_used(0, Rate::from_kbps(200));
        assert_eq!(update(&mut exchange, 0, 0, 210), [101, 708]);
        assert_eq!(exchange.sum(), Rate::from_kbps(810));
    }

    /// With DR(f) = CC_R(f), the letter of section 5.2, no flow would get more than it calculated.
    #[test]
    fn desired_rates_equal_to_calculated_rates_keep_unequal_rates_apart() {
        let mut exchange = exchange(Coupling::Active, &[(1.0, 1000), (1.0, 10_000)]);
        exchange.set_desired(0, Rate::from_kbps(1000));
        exchange.set_desired(1, Rate::from_kbps(10_000));
        assert_eq!(update(&mut exchange, 0, 1, 10_000), [1000, 10_000]);
    }
}
