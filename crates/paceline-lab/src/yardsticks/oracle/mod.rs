// SPDX-License-Identifier: MIT OR Apache-2.0
//! Oracles: senders that know the path. They show what is possible on it, so they bound what a test may demand.
//!
//! * `ideal` knows the capacity of its path in advance.
//! * `causal` knows it one round trip late.
//!
//! Both send their fair share of it, less what waits in the queue, which they compute from reports on packets ([`follower`]).
//!
//! An oracle needs the plan of the whole run, so it is no controller: it makes another scenario of one, in which the media flows
//! follow rates that are computed before the run.

mod follower;
mod seen;
mod share;

use crate::metrics::AgeLimits;
use follower::FollowerConfig;
use paceline::{Bounds, Entry, Registry};
use paceline_netsim::plan::{ControllerPlan, FlowChange, MediaUse, Plan};
use paceline_scenario::Scenario;
use paceline_units::{Rate, Time, TimeDelta};
use std::collections::BTreeSet;

/// The lowest limit of a rate, bit/s: 0 would mean the maximum of the sources.
const LOWEST: f64 = 1.0;
/// The highest, bit/s.
const HIGHEST: f64 = 1e12;

/// The part of the share that an oracle uses. The rest is for what is not counted: RTCP of all flows.
const USED: f64 = 0.99;

/// The name of its parameter that is set to [`free_queue`].
const FREE: &str = "free_s";

const CONSTANT: &str = "constant_bps";

/// The time over which an oracle takes the mean of the capacity of each hop: a few frames.
const WINDOW: TimeDelta = TimeDelta::from_millis(100);

/// A rate over time: the start and the rate, in bit/s, of each step. The first step starts at 0.
type Steps = Vec<(Time, f64)>;

/// A sender that knows the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    Ideal,
    /// Knows the path one round trip late.
    Causal,
}

impl Oracle {
    pub const ALL: [Self; 2] = [Self::Ideal, Self::Causal];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ideal => "ideal",
            Self::Causal => "causal",
        }
    }

    pub fn summary(self) -> &'static str {
        match self {
            Self::Ideal => "an oracle: sends its fair share of the capacity that its packets will meet",
            Self::Causal => "an oracle: the same, but it knows the path one round trip late",
        }
    }

    /// Returns the registry with a controller of the name of each oracle, which follows the rates that its scenario contains.
    ///
    /// # Panics
    /// Panics if one of the names is taken.
    pub fn add_all(mut registry: Registry) -> Registry {
        for oracle in Self::ALL {
            let source = "a yardstick, from no paper";
            registry.add(Entry::new(oracle.name(), oracle.summary(), source, FollowerConfig::default()));
        }
        registry
    }

    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|oracle| oracle.name() == name)
    }

    /// Returns `replaced`, which is `written` with the oracle as its controller, with the rates that the oracle follows. If the bottleneck
    /// shares a medium, such as Wi-Fi, what it carries depends on who contends when, so it has no capacity to know. Then this is the constant
    /// rate that the scenario names, or `None`.
    pub fn scenario(self, written: &Scenario, mut replaced: Scenario) -> Option<Scenario> {
        let constant = match shares_a_medium(&written.plan) {
            true => Some(written.oracle_rate?),
            false => None,
        };
        let is_own: Vec<bool> = replaced.plan.flows.iter().map(|flow| flow.control() == self.name()).collect();
        for (index, flow) in replaced.plan.flows.iter_mut().enumerate() {
            let Some(media) = flow.media_mut().filter(|_| is_own[index]) else { continue };
            if let Some(rate) = constant {
                media.controller.config = vec![(CONSTANT.to_owned(), rate.as_bps_f64())];
                continue;
            }
            let bounds = self.bounds(&written.plan, index, &is_own);
            media.controller.config = vec![(FREE.to_owned(), free_queue(media.media_use).as_secs_f64())];
            follow(&mut media.controller, &media.changes, bounds);
        }
        Some(replaced)
    }

    /// Returns over time, as limits, the rate that a flow may use and its share.
    fn bounds(self, plan: &Plan, flow: usize, is_own: &[bool]) -> Vec<(Time, Bounds)> {
        let own = &plan.flows[flow];
        let Some(media) = own.media() else { return Vec::new() };
        let rtt = |at| own.base_rtt_at(plan, at);
        let times = (own.start, (Time::ZERO + plan.duration).min(own.stop));
        let end = Time::ZERO + plan.duration;
        let share = share::over_time(plan, flow, is_own, |capacity| seen::mean(self, capacity, WINDOW, end));
        let share = seen::known(self, &share, rtt, times);
        let mut starts: BTreeSet<Time> = share.iter().map(|(at, _)| *at).collect();
        starts.extend(media.changes.iter().map(|(at, _)| *at));
        let limits = |at: Time| {
            let all = Rate::from_bps_f64((USED * rate_at(&share, at)).clamp(LOWEST, HIGHEST));
            (at, Bounds::new(share::bounds(media, at).map_or(all, |bounds| bounds.max.min(all)), all))
        };
        starts.into_iter().map(limits).collect()
    }
}

pub(crate) fn shares_a_medium(plan: &Plan) -> bool {
    plan.hops[plan.bottleneck].server.service.shared_medium().is_some()
}

/// Returns the queue that an oracle leaves: a third of the age up to which a picture is as good as a fresh one.
fn free_queue(media_use: MediaUse) -> TimeDelta {
    AgeLimits::from(media_use).free / 3
}

/// Makes a controller follow these limits. A route change starts it again with limits of its own.
fn follow(controller: &mut ControllerPlan, changes: &[(Time, FlowChange)], bounds: Vec<(Time, Bounds)>) {
    controller.overuse = None;
    let at = |at: Time| bounds[bounds.partition_point(|(from, _)| *from <= at).saturating_sub(1)].1;
    let restarts = changes.iter().filter(|(_, change)| matches!(change, FlowChange::Route(_)));
    let mut limits: Vec<(Time, Bounds)> = restarts.map(|(restart, _)| (*restart, at(*restart))).collect();
    limits.extend(bounds);
    limits.sort_by_key(|(at, _)| *at);
    controller.limits = limits;
}

fn rate_at(steps: &[(Time, f64)], at: Time) -> f64 {
    steps[steps.partition_point(|(from, _)| *from <= at).saturating_sub(1)].1
}

/// Adds a step, unless its rate is in force already. A step at the same time replaces the last one.
fn push(steps: &mut Steps, at: Time, bps: f64) {
    if steps.last().is_some_and(|(last, _)| *last == at) {
        steps.pop();
    }
    if steps.last().is_none_or(|(_, last)| *last != bps) {
        steps.push((at, bps));
    }
}

#[cfg(test)]
mod tests;
