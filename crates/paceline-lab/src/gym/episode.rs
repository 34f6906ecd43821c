//! One run, in steps.

use super::agent::{self, ActionSpace, FEATURES, Seat};
use super::tally::{Tally, Truth};
use super::{GymError, Reward};
use crate::plan::{ControllerPlan, Plan};
use crate::rows::{Row, RowSink};
use crate::sim::{Simulation, begin};
use crate::world::Outcome;
use paceline::Registry;
use paceline_units::{Rate, Streams, Time, TimeDelta};
use std::sync::Arc;

/// The length of a step unless told: two intervals of feedback.
pub const STEP: TimeDelta = TimeDelta::from_millis(100);

/// Who flies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Pilot {
    /// An agent from outside.
    #[default]
    Agent,
    /// The controller that the scenario gives the flow.
    Scenario,
    /// A registered controller: another one with its own defaults, the flow's own as the scenario sets it.
    Controller(String),
}

/// A run of which one media flow is steered, and looked at, step by step. Steps begin when that flow does; the episode ends
/// with the last whole step before the flow or the run does. `S` hears the rows as well.
pub struct Episode<S = ()> {
    run: Simulation<(Tally, S)>,
    seat: Option<Arc<Seat>>,
    space: ActionSpace,
    flow: usize,
    seed: u64,
    step: TimeDelta,
    now: Time,
    end: Time,
    truth: Truth,
}

impl RowSink for () {
    fn row(&mut self, _: &Row) {}
}

impl Episode {
    /// An episode of the plan's flow of this number.
    ///
    /// # Errors
    /// It is no media flow, it lives for less than a step, or something cannot be built.
    pub fn new(
        plan: &Plan,
        registry: &Registry,
        pilot: &Pilot,
        flow: usize,
        seed: u64,
        step: TimeDelta,
    ) -> Result<Self, GymError> {
        Self::watched(plan, registry, pilot, flow, seed, step, ())
    }
}

impl<S: RowSink> Episode<S> {
    /// The same, with somebody who hears the rows.
    ///
    /// # Errors
    /// As of [`new`](Episode::new).
    pub fn watched(
        plan: &Plan,
        registry: &Registry,
        pilot: &Pilot,
        flow: usize,
        seed: u64,
        step: TimeDelta,
        sink: S,
    ) -> Result<Self, GymError> {
        let mut plan = plan.clone();
        let scenario = plan.id.clone();
        let Some(media) = plan.flows.get_mut(flow).and_then(|flow| flow.media_mut()) else {
            return Err(GymError::NoFlow { scenario, flow: None, known: Vec::new() });
        };
        let fly = |name: &str| ControllerPlan { name: name.to_owned(), config: Vec::new(), overuse: None };
        match pilot {
            Pilot::Agent => media.controller = fly("agent"),
            Pilot::Scenario => {}
            // The flow's own keeps what the scenario sets of it, as under `--controller`.
            Pilot::Controller(name) if *name == media.controller.name => {}
            Pilot::Controller(name) => media.controller = fly(name),
        }
        let (start, space) = (media.start_rate, ActionSpace { min: media.min_rate, max: media.most() });
        let streams = Streams::new(seed);
        let begins: Vec<Time> = plan.flows.iter().map(|flow| begin(flow, &streams)).collect();
        let now = begins[flow];
        let end = plan.flows[flow].stop.min(Time::ZERO + plan.duration);
        if !step.is_positive() || now + step > end {
            return Err(GymError::TooShort { scenario });
        }
        let plan = Arc::new(plan);
        let rows = (Tally::new(Arc::clone(&plan), flow, begins), sink);
        let seat = matches!(pilot, Pilot::Agent).then(|| Seat::new(now, start));
        let entry = seat.as_ref().map(agent::entry);
        let mut run = Simulation::seated(&plan, registry, entry.as_ref().map(|entry| (flow, entry)), seed, rows)?;
        // What happens as the flow begins is of its first step.
        run.advance(now - TimeDelta::from_nanos(1));
        let truth = Truth { time_s: now.as_secs_f64(), seed: seed as f64, ..Truth::default() };
        Ok(Self { run, seat, space, flow, seed, step, now, end, truth })
    }

    /// What actions mean here.
    pub fn space(&self) -> ActionSpace {
        self.space
    }

    /// Whether the last step is done.
    pub fn is_over(&self) -> bool {
        self.now + self.step > self.end
    }

    /// One step: the agent wants `action` (see [`ActionSpace`]) from its beginning on; a controller that flies itself wants
    /// what it wants. Answers what the step is worth.
    ///
    /// # Panics
    /// The episode is over.
    pub fn step(&mut self, action: f32, reward: &Reward) -> f64 {
        self.step_at(self.space.rate(action), reward)
    }

    /// The same with a target in place of an action.
    ///
    /// # Panics
    /// The episode is over.
    pub fn step_at(&mut self, target: Rate, reward: &Reward) -> f64 {
        assert!(!self.is_over(), "the episode is over");
        let (from, to) = (self.now, self.now + self.step);
        if let Some(seat) = &self.seat {
            seat.want(target.max(self.space.min).min(self.space.max));
            self.run.ask(self.flow, from);
        }
        // What happens at its end is of the next.
        self.run.advance(to - TimeDelta::from_nanos(1));
        self.now = to;
        let tally = &mut self.run.rows().0;
        let decided = tally.take_target();
        self.truth = tally.take(from, to, self.seed);
        if let Some((seat, target)) = self.seat.as_ref().zip(decided) {
            seat.decided(target);
        }
        reward.of(&self.truth)
    }

    /// Goes on to the run's end, beyond the last step.
    pub fn finish(&mut self) -> Outcome {
        self.run.advance(Time::MAX);
        self.run.outcome()
    }

    /// Writes what the agent observes of the last step; all zero for a controller that flies itself. Once per step: it
    /// begins the next.
    pub fn observe(&self, out: &mut [f32]) {
        debug_assert_eq!(out.len(), FEATURES.len());
        match &self.seat {
            Some(seat) => seat.observe(self.now, self.step, out),
            None => out.fill(0.0),
        }
    }

    /// What was true of the last step.
    pub fn truth(&self) -> &Truth {
        &self.truth
    }

    /// Who hears the rows.
    pub fn sink(&mut self) -> &mut S {
        &mut self.run.rows().1
    }
}
