//! Oracles: senders that know the path. They show what is possible on it, so they bound what a test may demand.
//!
//! * `ideal` knows the path in advance. At each moment it sends its fair share of the capacity that its packets will meet, less 1 %
//!   for RTCP. So the link is full and its queue is empty.
//! * `causal` knows the path one round trip late. It sends its share as it was then, and nothing while packets that it sent too
//!   much wait in the queue.
//!
//! An oracle needs the plan of the whole run, so it is no controller: it makes another scenario of one, in which the media flows
//! follow rates that are computed before the run.

mod causal;
mod pacing;
mod share;

use paceline::{Bounds, Preset, Registry};
use paceline_netsim::plan::{ControllerPlan, FlowChange, Plan};
use paceline_scenario::Scenario;
use paceline_units::{Rate, Time};

/// The controller that follows the rates.
pub(crate) const FOLLOWER: &str = "fixed";
/// The lowest rate of the follower, bit/s: 0 would mean the maximum of the sources.
const LOWEST: f64 = 1.0;

/// The part of the share that an oracle uses. The rest is for what is not counted: RTCP of all flows, and retransmissions. A sender
/// of the whole share could never drain the queue that these leave.
const USED: f64 = 0.99;

/// A rate over time: the start and the rate, in bit/s, of each step. The first step starts at 0.
type Steps = Vec<(Time, f64)>;

/// A sender that knows the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oracle {
    /// Knows the path in advance.
    Ideal,
    /// Knows the path one round trip late.
    Causal,
}

impl Oracle {
    /// Every oracle, in order of results.
    pub const ALL: [Self; 2] = [Self::Ideal, Self::Causal];

    /// Returns its name in results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ideal => "ideal",
            Self::Causal => "causal",
        }
    }

    /// Returns a description of one line.
    pub fn summary(self) -> &'static str {
        match self {
            Self::Ideal => "an oracle: sends its fair share of the capacity that its packets will meet",
            Self::Causal => "an oracle: the same, but it knows the path one round trip late",
        }
    }

    /// Returns the registry with a controller of the name of each oracle, which follows rates as `fixed` does, so that results name the
    /// oracle.
    ///
    /// # Panics
    /// Panics if the registry lacks `fixed`, or if one of the names is taken.
    pub fn add_all(mut registry: Registry) -> Registry {
        for oracle in Self::ALL {
            let (name, summary) = (oracle.name(), oracle.summary());
            registry.add_preset(&Preset { name, base: FOLLOWER, values: &[], summary, source: None });
        }
        registry
    }

    /// Returns the oracle of this name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|oracle| oracle.name() == name)
    }

    /// Returns `written` with each flow that a controller can be put on under this oracle. `replaced` is the same scenario with
    /// `follower` as its controller: its flows differ from the written ones where they are not cross traffic. `None` if the bottleneck
    /// shares a medium, such as Wi-Fi: what such a link carries depends on who contends when, so it has no capacity to know.
    pub fn scenario(self, written: &Scenario, mut replaced: Scenario, follower: &str) -> Option<Scenario> {
        if shares_a_medium(&written.plan) {
            return None;
        }
        let plan = written.plan.clone();
        for (index, flow) in replaced.plan.flows.iter_mut().enumerate() {
            let is_written = plan.flows[index].control() == FOLLOWER;
            if flow.control() != follower {
                continue;
            }
            let Some(media) = flow.media_mut() else { continue };
            if is_written {
                media.controller.name = FOLLOWER.to_owned();
                continue;
            }
            let rates = self.rates(&plan, index);
            let packet = 8.0 * (plan.flows[index].largest_packet().as_bytes() as f64);
            let name = follower.to_owned();
            follow(&mut media.controller, name, &mut media.changes, &pacing::gaps(&rates, packet));
        }
        Some(replaced)
    }

    /// Returns the rate of a media flow over time.
    fn rates(self, plan: &Plan, flow: usize) -> Steps {
        let share: Steps = share::over_time(plan, flow).into_iter().map(|(at, bps)| (at, USED * bps)).collect();
        match self {
            Self::Ideal => share,
            Self::Causal => {
                let rtt = plan.flows[flow].base_rtt_at(plan, Time::ZERO);
                causal::rates(&share, rtt, (plan.flows[flow].start, Time::ZERO + plan.duration))
            }
        }
    }
}

/// Returns whether the bottleneck shares a medium with other links.
pub(crate) fn shares_a_medium(plan: &Plan) -> bool {
    plan.hops[plan.bottleneck].server.service.medium.is_some()
}

/// Makes a controller follow these rates: packets leave at the rate, and padding fills what the sources leave free.
fn follow(controller: &mut ControllerPlan, name: String, changes: &mut Vec<(Time, FlowChange)>, rates: &[(Time, f64)]) {
    let rate = |bps: f64| Rate::from_bps_f64(bps.max(LOWEST));
    let config = vec![("rate_bps".to_owned(), rates[0].1.max(LOWEST)), ("pacing_factor".to_owned(), 1.0)];
    *controller = ControllerPlan { name, config, overuse: None };
    changes.retain(|(_, change)| !matches!(change, FlowChange::Bounds(_)));
    let bounds = |bps: f64| FlowChange::Bounds(Bounds::new(rate(bps), rate(bps)));
    // A route change starts the controller again with limits of its own.
    let restarts: Vec<Time> =
        changes.iter().filter(|(_, change)| matches!(change, FlowChange::Route(_))).map(|(at, _)| *at).collect();
    changes.extend(restarts.into_iter().map(|at| (at, bounds(rate_at(rates, at)))));
    changes.extend(rates[1..].iter().map(|(at, bps)| (*at, bounds(*bps))));
    changes.sort_by_key(|(at, _)| *at);
}

/// Returns the rate in force at `at`.
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
