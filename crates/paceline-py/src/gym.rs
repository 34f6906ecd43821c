// SPDX-License-Identifier: MIT OR Apache-2.0
//! The gym: steps of many episodes at once, without the GIL, written into arrays that Python then owns.

use crate::controller::Registered;
use crate::errors::Failure;
use crate::request::{Request, check_controller, registry};
use crate::stop::interruptible;
use crate::types;
use numpy::ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyReadonlyArray1};
use paceline::Registry;
use paceline_lab::gym::{
    ActionSpace, FEATURES, GymError, Observation, Outputs, Policy, Quantity, Range, Reward, TRUTHS, TaskDistribution,
    TaskSpec,
};
use paceline_units::{DataSize, Rate, Time, TimeDelta};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

impl From<GymError> for Failure {
    fn from(error: GymError) -> Self {
        match error {
            GymError::Scenario(problem) => Self::ScenarioError(problem),
            GymError::World(error) => Self::World(error),
            error => {
                let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
                Self::Raised(PyValueError::new_err(format!("{error}{hint}")))
            }
        }
    }
}

/// A distribution of episodes: `paceline.gym._Task`.
#[derive(FromPyObject)]
pub struct Task {
    requests: Vec<Request>,
    ranges: Vec<(String, String, f64, f64)>,
    flow: Option<String>,
    step_s: f64,
    delay_per_s: f64,
    loss: f64,
}

impl Task {
    fn tasks(&self, policy: Policy, registry: &Registry) -> Result<TaskDistribution, Failure> {
        let each = |request: &Request| Ok((request.origin()?, request.changes(None)?));
        let range = |(key, text, low, high): &(String, String, f64, f64)| Range {
            key: key.clone(),
            text: text.clone(),
            low: *low,
            high: *high,
        };
        let spec = TaskSpec {
            scenarios: self.requests.iter().map(each).collect::<Result<_, Failure>>()?,
            ranges: self.ranges.iter().map(range).collect(),
            flow: self.flow.clone(),
            policy,
            step: TimeDelta::from_secs_f64(self.step_s),
            reward: Reward { delay_per_s: self.delay_per_s, loss: self.loss },
        };
        Ok(TaskDistribution::new(spec, registry)?)
    }
}

/// Environments that run in parallel.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Gym {
    gym: Mutex<paceline_lab::gym::Gym>,
    environments: usize,
    history: usize,
    /// Rates of the actions -1 and 1, bit/s.
    #[pyo3(get)]
    rates: (u64, u64),
}

/// Result of a step: observations, rewards, ends, ground truth.
type Step<'py> =
    (Bound<'py, PyArray3<f32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray2<f64>>);

#[pymethods]
impl Gym {
    #[new]
    fn new(
        task: Task,
        environments: usize,
        history: usize,
        threads: usize,
        controllers: Vec<Registered>,
    ) -> PyResult<Self> {
        // Controllers in Python run on one thread at a time, and this one has the GIL.
        let threads = if controllers.is_empty() { threads } else { 1 };
        let registry = registry(controllers)?;
        let tasks = task.tasks(Policy::Agent, &registry)?;
        let rates = (tasks.space().min.as_bps(), tasks.space().max.as_bps());
        let gym =
            paceline_lab::gym::Gym::new(tasks, registry, environments, history, threads).map_err(Failure::from)?;
        Ok(Self { environments, history: gym.history(), gym: Mutex::new(gym), rates })
    }

    /// Starts an episode in every environment.
    fn reset<'py>(&self, py: Python<'py>, seeds: Vec<Option<u64>>) -> PyResult<Step<'py>> {
        self.act(py, |gym, out| gym.reset(&seeds, out))
    }

    /// Makes one step of every episode.
    fn step<'py>(&self, py: Python<'py>, actions: PyReadonlyArray1<'py, f32>) -> PyResult<Step<'py>> {
        let actions = actions.as_array().to_vec();
        self.act(py, |gym, out| gym.step(&actions, out))
    }
}

impl Gym {
    fn act<'py>(
        &self,
        py: Python<'py>,
        act: impl FnOnce(&mut paceline_lab::gym::Gym, Outputs<'_>) -> Result<(), GymError> + Send,
    ) -> PyResult<Step<'py>> {
        let Self { environments, history, .. } = *self;
        let mut observations = Array3::zeros((environments, history, FEATURES.len()));
        let mut truths = Array2::zeros((environments, TRUTHS.len()));
        let (mut rewards, mut truncated) = (vec![0.0; environments], vec![false; environments]);
        py.detach(|| {
            let out = Outputs {
                observations: observations.as_slice_mut().expect("the array is contiguous"),
                rewards: &mut rewards,
                truncated: &mut truncated,
                truths: truths.as_slice_mut().expect("the array is contiguous"),
            };
            // After a panic the episodes are in an unknown but valid state.
            act(&mut self.gym.lock().unwrap_or_else(PoisonError::into_inner), out)
        })
        .map_err(Failure::from)?;
        Ok((
            observations.into_pyarray(py),
            rewards.into_pyarray(py),
            truncated.into_pyarray(py),
            truths.into_pyarray(py),
        ))
    }
}

/// Computes the observations of a policy that is a controller.
#[pyclass(module = "paceline._paceline")]
#[derive(Clone)]
pub struct Observer {
    observation: Observation,
    space: ActionSpace,
    step: TimeDelta,
}

#[pymethods]
impl Observer {
    /// `rates_bps` are the start, the minimum and the maximum of the target.
    #[new]
    fn new(begin_s: f64, rates_bps: (u64, u64, u64), step_s: f64) -> Self {
        let (start, min, max) = rates_bps;
        Self {
            observation: Observation::new(Time::from_secs_f64(begin_s), Rate::from_bps(start)),
            space: ActionSpace { min: Rate::from_bps(min), max: Rate::from_bps(max) },
            step: TimeDelta::from_secs_f64(step_s),
        }
    }

    /// Adds a packet of this size that left the pacer.
    fn handle_sent(&mut self, size: u64) {
        self.observation.handle_sent(DataSize::from_bytes(size));
    }

    /// Adds the packets of a feedback message.
    fn handle_feedback(&mut self, now_s: f64, feedback: &types::Feedback) {
        self.observation.handle_feedback(Time::from_secs_f64(now_s), &feedback.packets);
    }

    /// Returns the features of the step that ends now, and begins the next.
    fn observe<'py>(&mut self, py: Python<'py>, now_s: f64) -> Bound<'py, PyArray1<f32>> {
        PyArray1::from_slice(py, &self.observation.observe(Time::from_secs_f64(now_s), self.step))
    }

    /// Returns the rate of an action, bit/s, which is the target from now on.
    fn act(&mut self, action: f32) -> u64 {
        let target = self.space.rate(action);
        self.observation.set_target(target);
        target.as_bps()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }
}

/// A score: seed, steps, reward, used, delay (s), loss.
type Score = (u64, u64, f64, f64, f64, f64);

/// Runs the episodes of these seeds under a registered controller; `None`: under the scenario's own.
#[pyfunction]
#[pyo3(signature = (task, controller, seeds, threads, controllers))]
pub fn evaluate(
    py: Python<'_>,
    task: Task,
    controller: Option<String>,
    seeds: Vec<u64>,
    threads: usize,
    controllers: Vec<Registered>,
) -> PyResult<Vec<Score>> {
    let threads = if controllers.is_empty() { threads } else { 1 };
    let registry = registry(controllers)?;
    interruptible(py, |stop| {
        if let Some(name) = &controller {
            check_controller(name, &registry)?;
        }
        let tasks = task.tasks(controller.map_or(Policy::Scenario, Policy::Controller), &registry)?;
        let mut scores = Vec::new();
        // A few at a time, to check for Ctrl-C between them.
        for seeds in seeds.chunks(threads.max(1) * 4) {
            if stop.is_requested() {
                break;
            }
            scores.extend(paceline_lab::gym::evaluate(&tasks, &registry, seeds, threads)?);
        }
        Ok(scores.iter().map(|s| (s.seed, s.steps, s.reward, s.used, s.delay_s, s.loss)).collect())
    })
}

/// Name, unit and meaning of each quantity.
type Quantities = Vec<(&'static str, &'static str, &'static str)>;

/// Returns the features of an observation, and the ground truth of a step.
#[pyfunction]
pub fn quantities() -> (Quantities, Quantities) {
    let described = |of: &[Quantity]| of.iter().map(|q| (q.name, q.unit, q.meaning)).collect();
    (described(&FEATURES), described(&TRUTHS))
}
