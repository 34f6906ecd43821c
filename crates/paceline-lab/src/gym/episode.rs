// SPDX-License-Identifier: MIT OR Apache-2.0
//! One run, in steps.

use super::agent::{self, ActionSpace, AgentState, FEATURES};
use super::error::GymError;
use super::ground_truth::{GroundTruth, Truth};
use super::reward::Reward;
use paceline::Registry;
use paceline_netsim::plan::{ControllerPlan, Plan};
use paceline_netsim::records::EventObserver;
use paceline_netsim::sim::{Simulation, start_time};
use paceline_netsim::world::{Outcome, WorldError};
use paceline_units::{RandomStreams, Rate, Time, TimeDelta};
use std::sync::Arc;

/// The default length of a step: two intervals of feedback.
pub const STEP: TimeDelta = TimeDelta::from_millis(100);

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// An agent from outside.
    #[default]
    Agent,
    Scenario,
    /// A registered controller: the flow's own as the scenario configures it, any other with its defaults.
    Controller(String),
}

/// A run in which one media flow is controlled and observed step by step. The steps begin when that flow starts. The
/// episode ends with the last whole step before the flow or the run ends. `O` also receives the events.
pub struct Episode<O = ()> {
    run: Simulation<(GroundTruth, O)>,
    plan: Arc<Plan>,
    seed: u64,
    /// `None` if a controller controls the flow.
    agent: Option<Arc<AgentState>>,
    space: ActionSpace,
    flow: usize,
    step: TimeDelta,
    now: Time,
    end: Time,
    truth: Truth,
}

impl Episode {
    /// Creates an episode of the flow with this index.
    ///
    /// # Errors
    /// It is not a media flow, it lasts less than a step, or a controller or source cannot be built.
    pub fn new(
        plan: &Plan,
        registry: &Registry,
        policy: &Policy,
        flow: usize,
        seed: u64,
        step: TimeDelta,
    ) -> Result<Self, GymError> {
        Self::with_observer(plan, registry, policy, flow, seed, step, ())
    }
}

impl<O: EventObserver> Episode<O> {
    /// Creates an episode with an observer of its events.
    pub fn with_observer(
        plan: &Plan,
        registry: &Registry,
        policy: &Policy,
        flow: usize,
        seed: u64,
        step: TimeDelta,
        observer: O,
    ) -> Result<Self, GymError> {
        let mut plan = plan.clone();
        let scenario = plan.id.clone();
        let Some(media) = plan.flows.get_mut(flow).and_then(|flow| flow.media_mut()) else {
            return Err(GymError::NoFlow { scenario, flow: None, known: Vec::new() });
        };
        let controller = |name: &str| ControllerPlan {
            name: name.to_owned(),
            config: Vec::new(),
            overuse: None,
            limits: Vec::new(),
        };
        match policy {
            Policy::Agent => media.controller = controller("agent"),
            Policy::Scenario => {}
            // The flow's own controller keeps its config, as with `--controller`.
            Policy::Controller(name) if *name == media.controller.name => {}
            Policy::Controller(name) => media.controller = controller(name),
        }
        let (start, space) = (media.start_rate, ActionSpace { min: media.min_rate, max: media.max_rate() });
        let streams = RandomStreams::new(seed);
        let starts: Vec<Time> = plan.flows.iter().map(|flow| start_time(flow, &streams)).collect();
        let now = starts[flow];
        let end = plan.flows[flow].stop.min(Time::ZERO + plan.duration);
        if !step.is_positive() || now + step > end {
            return Err(GymError::TooShort { scenario });
        }
        let plan = Arc::new(plan);
        let observers = (GroundTruth::new(Arc::clone(&plan), flow, starts, seed), observer);
        let agent = matches!(policy, Policy::Agent).then(|| AgentState::new(now, start));
        let entry = agent.as_ref().map(agent::entry);
        let run =
            Simulation::with_controller(&plan, registry, entry.as_ref().map(|entry| (flow, entry)), seed, observers)?;
        let truth = Truth { time_s: now.as_secs_f64(), seed: seed as f64, ..Truth::default() };
        let mut episode = Self { run, plan, seed, agent, space, flow, step, now, end, truth };
        // Events at the start of the flow belong to its first step.
        episode.advance(now - TimeDelta::from_nanos(1))?;
        Ok(episode)
    }

    fn advance(&mut self, until: Time) -> Result<(), WorldError> {
        self.run.advance(until).map_err(|failure| failure.in_run(&self.plan, self.seed))
    }

    pub fn space(&self) -> ActionSpace {
        self.space
    }

    pub fn is_over(&self) -> bool {
        self.now + self.step > self.end
    }

    /// Makes one step with an action (see [`ActionSpace`]) from its beginning on, and returns its reward. A controller
    /// ignores the action.
    ///
    /// # Errors
    /// A controller failed. The episode must not be used afterwards.
    ///
    /// # Panics
    /// The episode is over.
    pub fn step(&mut self, action: f32, reward: &Reward) -> Result<f64, GymError> {
        self.step_at(self.space.rate(action), reward)
    }

    /// Makes one step with a target in place of an action.
    ///
    /// # Panics
    /// The episode is over.
    pub fn step_at(&mut self, target: Rate, reward: &Reward) -> Result<f64, GymError> {
        assert!(!self.is_over(), "the episode is over");
        let (from, to) = (self.now, self.now + self.step);
        if let Some(agent) = &self.agent {
            agent.set_target(target.max(self.space.min).min(self.space.max));
            self.run.wake_sender(self.flow, from);
        }
        // Events at the end of the step belong to the next.
        self.advance(to - TimeDelta::from_nanos(1))?;
        self.now = to;
        let truth = &mut self.run.observer().0;
        let decided = truth.take_target();
        self.truth = truth.take(from, to);
        if let Some((agent, target)) = self.agent.as_ref().zip(decided) {
            agent.observed().set_target(target);
        }
        Ok(reward.evaluate(&self.truth))
    }

    /// Runs to the end of the run, beyond the last step.
    pub fn finish(&mut self) -> Result<Outcome, GymError> {
        self.advance(Time::MAX)?;
        Ok(self.run.outcome())
    }

    /// Writes the agent's observation of the last step, and begins the next: call it once per step. All values are zero if
    /// a controller controls the flow.
    pub fn observe(&self, out: &mut [f32]) {
        debug_assert_eq!(out.len(), FEATURES.len());
        match &self.agent {
            Some(agent) => out.copy_from_slice(&agent.observed().observe(self.now, self.step)),
            None => out.fill(0.0),
        }
    }

    /// Returns the truth of the last step.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    pub fn observer(&mut self) -> &mut O {
        &mut self.run.observer().1
    }
}
